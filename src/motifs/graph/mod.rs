//! Temporal graphs: edges in the order of their times, adjacency both ways, and the lists of edges of each ordered pair of vertices.

mod binary;
mod columns;
mod generate;
mod ids;
mod number;
mod read;
mod summary;
mod text;
mod write;

pub use columns::Columns;
pub use generate::GenerateOptions;
pub use read::{ReadOptions, ReadSummary};
pub use summary::GraphSummary;

use rayon::prelude::*;

use crate::error::{Error, Result};

/// Ends every list of edges of a pair; no edge has this index.
pub const SENTINEL: u32 = u32::MAX;
/// In place of a pair that has no edge.
pub const NO_PAIR: u32 = u32::MAX;

/// A directed multigraph whose edges have times. Edges are ordered by (time, position in the input); the position in this order is an
/// edge's *index*. Immutable; everything that does not depend on a motif is made once.
#[derive(Debug, Clone, PartialEq)]
pub struct TemporalGraph {
    pub(in crate::motifs) num_vertices: u32,
    /// (source, destination), by index.
    pub(in crate::motifs) edges: Vec<[u32; 2]>,
    /// Times, by index, in ticks: 10^`decimals` ticks are one unit of the file.
    pub(in crate::motifs) times: Vec<i64>,
    pub(in crate::motifs) decimals: u32,
    /// Dense rank of the time, by index.
    pub(in crate::motifs) ranks: Vec<u32>,
    /// Edges by source.
    pub(in crate::motifs) outgoing: Adjacency,
    /// Edges by destination.
    pub(in crate::motifs) incoming: Adjacency,
    pub(in crate::motifs) pairs: Pairs,
}

/// Edges of each vertex in one direction, in order of their indices; loops are left out.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::motifs) struct Adjacency {
    /// First entry of each vertex, and the end.
    pub offsets: Vec<u32>,
    /// (index of the edge, vertex at its other end).
    pub entries: Vec<[u32; 2]>,
}

/// Ordered pairs of vertices that have edges, loops included, and the indices of their edges.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::motifs) struct Pairs {
    /// First pair of each source, and the end. The pairs of a source are in order of their destinations.
    pub offsets: Vec<u32>,
    /// Destination of each pair.
    pub destinations: Vec<u32>,
    /// Where the list of each pair begins in `list`, and where a list after the last would; a list ends one before the next begins.
    pub starts: Vec<u32>,
    /// Indices of the edges of each pair, increasing, each list followed by [`SENTINEL`].
    pub list: Vec<u32>,
    /// Of each edge: its pair, and the pair of the opposite direction or [`NO_PAIR`].
    pub of_edge: Vec<[u32; 2]>,
}

impl TemporalGraph {
    /// A graph of edges (source, destination, time) in any order. Vertices are below `num_vertices`; 10^`decimals` ticks of the times are
    /// one unit.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for more than 2^31 edges; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument)
    /// for a vertex out of range.
    pub fn from_edges(mut edges: Vec<(u32, u32, i64)>, num_vertices: u32, decimals: u32) -> Result<Self> {
        if edges.len() > 1 << 31 {
            return Err(Error::limit(format!("{} edges are given, at most 2^31 are allowed; split the graph by time", edges.len())));
        }
        if let Some((u, v, _)) = edges.iter().find(|(u, v, _)| *u >= num_vertices || *v >= num_vertices) {
            return Err(Error::invalid(format!("edge {u} -> {v} names a vertex outside 0..{num_vertices}")));
        }
        // Stable, so that equal times keep the order of the input.
        edges.par_sort_by_key(|&(_, _, time)| time);
        let times: Vec<i64> = edges.iter().map(|&(_, _, time)| time).collect();
        let edges: Vec<[u32; 2]> = edges.into_iter().map(|(u, v, _)| [u, v]).collect();
        let ranks = ranks(&times);
        let outgoing = || Adjacency::new(&edges, num_vertices, |[u, v]| (u, v));
        let incoming = || Adjacency::new(&edges, num_vertices, |[u, v]| (v, u));
        let (pairs, (outgoing, incoming)) = rayon::join(|| Pairs::new(&edges, num_vertices), || rayon::join(outgoing, incoming));
        Ok(TemporalGraph { num_vertices, edges, times, decimals, ranks, outgoing, incoming, pairs })
    }

    /// Number of edges, loops and duplicates included.
    pub fn num_edges(&self) -> usize {
        self.edges.len()
    }

    /// Number of vertices.
    pub fn num_vertices(&self) -> usize {
        self.num_vertices as usize
    }

    /// (source, destination) of each edge, by index.
    pub fn edges(&self) -> &[[u32; 2]] {
        &self.edges
    }

    /// Times by index, in ticks; see [`TemporalGraph::decimals`].
    pub fn times(&self) -> &[i64] {
        &self.times
    }

    /// 10^`decimals` ticks are one unit of the file the graph was read from.
    pub fn decimals(&self) -> u32 {
        self.decimals
    }
}

/// Dense ranks of sorted times.
fn ranks(times: &[i64]) -> Vec<u32> {
    let mut ranks = Vec::with_capacity(times.len());
    let mut rank = 0;
    for i in 0..times.len() {
        rank += u32::from(i > 0 && times[i] != times[i - 1]);
        ranks.push(rank);
    }
    ranks
}

impl Adjacency {
    /// `ends` of an edge are the vertex that lists it and the other one.
    fn new(edges: &[[u32; 2]], num_vertices: u32, ends: impl Fn([u32; 2]) -> (u32, u32)) -> Self {
        let mut offsets = vec![0u32; num_vertices as usize + 1];
        for &[u, v] in edges.iter().filter(|[u, v]| u != v) {
            offsets[ends([u, v]).0 as usize + 1] += 1;
        }
        for v in 0..num_vertices as usize {
            offsets[v + 1] += offsets[v];
        }
        let mut next = offsets.clone();
        let mut entries = vec![[0; 2]; offsets[num_vertices as usize] as usize];
        for (index, &edge) in edges.iter().enumerate().filter(|(_, [u, v])| u != v) {
            let (owner, other) = ends(edge);
            entries[next[owner as usize] as usize] = [index as u32, other];
            next[owner as usize] += 1;
        }
        Adjacency { offsets, entries }
    }

    /// Entries of `vertex`, as a range.
    pub fn range(&self, vertex: u32) -> std::ops::Range<usize> {
        self.offsets[vertex as usize] as usize..self.offsets[vertex as usize + 1] as usize
    }
}

impl Pairs {
    fn new(edges: &[[u32; 2]], num_vertices: u32) -> Self {
        // By source in order of indices, then each source's edges by (destination, index).
        let mut first = vec![0u32; num_vertices as usize + 1];
        for [u, _] in edges {
            first[*u as usize + 1] += 1;
        }
        for v in 0..num_vertices as usize {
            first[v + 1] += first[v];
        }
        let mut next = first.clone();
        let mut by_source = vec![[0; 2]; edges.len()];
        for (index, &[u, v]) in edges.iter().enumerate() {
            by_source[next[u as usize] as usize] = [v, index as u32];
            next[u as usize] += 1;
        }
        let mut slices = Vec::with_capacity(num_vertices as usize);
        let mut rest = by_source.as_mut_slice();
        for v in 0..num_vertices as usize {
            let (slice, after) = rest.split_at_mut((first[v + 1] - first[v]) as usize);
            slices.push(slice);
            rest = after;
        }
        slices.par_iter_mut().for_each(|slice| slice.sort_unstable());

        let mut pairs = Pairs {
            offsets: Vec::with_capacity(num_vertices as usize + 1),
            destinations: Vec::new(),
            starts: Vec::new(),
            list: Vec::with_capacity(edges.len() + edges.len() / 2),
            of_edge: vec![[NO_PAIR; 2]; edges.len()],
        };
        for v in 0..num_vertices as usize {
            pairs.offsets.push(pairs.destinations.len() as u32);
            for group in by_source[first[v] as usize..first[v + 1] as usize].chunk_by(|a, b| a[0] == b[0]) {
                let pair = pairs.destinations.len() as u32;
                pairs.destinations.push(group[0][0]);
                pairs.starts.push(pairs.list.len() as u32);
                for &[_, index] in group {
                    pairs.list.push(index);
                    pairs.of_edge[index as usize][0] = pair;
                }
                pairs.list.push(SENTINEL);
            }
        }
        pairs.offsets.push(pairs.destinations.len() as u32);
        pairs.starts.push(pairs.list.len() as u32);
        let opposite = pairs.opposites();
        pairs.of_edge.par_iter_mut().for_each(|of| of[1] = opposite[of[0] as usize]);
        pairs
    }

    /// The pair of the opposite direction of each pair, or [`NO_PAIR`].
    fn opposites(&self) -> Vec<u32> {
        // Pairs by destination; those of one destination are in order of their sources, as the others are in order of their destinations,
        // so that one pass over both finds what they share.
        let num_vertices = self.offsets.len() - 1;
        let mut first = vec![0u32; num_vertices + 1];
        for &v in &self.destinations {
            first[v as usize + 1] += 1;
        }
        for v in 0..num_vertices {
            first[v + 1] += first[v];
        }
        let mut next = first.clone();
        let mut by_destination = vec![[0; 2]; self.len()];
        for u in 0..num_vertices as u32 {
            for pair in self.of_source(u) {
                let place = &mut next[self.destinations[pair] as usize];
                by_destination[*place as usize] = [u, pair as u32];
                *place += 1;
            }
        }
        let of_source = |u: u32| {
            let mut incoming = by_destination[first[u as usize] as usize..first[u as usize + 1] as usize].iter().peekable();
            self.of_source(u).map(move |pair| {
                let v = self.destinations[pair];
                while incoming.next_if(|[source, _]| *source < v).is_some() {}
                incoming.next_if(|[source, _]| *source == v).map_or(NO_PAIR, |[_, opposite]| *opposite)
            })
        };
        (0..num_vertices as u32).into_par_iter().flat_map_iter(of_source).collect()
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.destinations.len()
    }

    /// Pairs with that source, as a range.
    pub fn of_source(&self, source: u32) -> std::ops::Range<usize> {
        self.offsets[source as usize] as usize..self.offsets[source as usize + 1] as usize
    }

    /// The pair, or [`NO_PAIR`].
    pub fn find(&self, source: u32, destination: u32) -> u32 {
        let range = self.of_source(source);
        match self.destinations[range.clone()].binary_search(&destination) {
            Ok(at) => (range.start + at) as u32,
            Err(_) => NO_PAIR,
        }
    }

    /// Where the list of a pair lies in `list`, the sentinel left out; the empty list for [`NO_PAIR`].
    pub fn range(&self, pair: u32) -> std::ops::Range<usize> {
        match pair {
            NO_PAIR => 0..0,
            pair => self.starts[pair as usize] as usize..self.starts[pair as usize + 1] as usize - 1,
        }
    }

    /// Indices of the edges of a pair, increasing.
    pub fn edges(&self, pair: u32) -> &[u32] {
        &self.list[self.range(pair)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_ordered_by_time_then_input_and_listed_by_pair() {
        let edges = vec![(0, 1, 5), (1, 0, 3), (0, 1, 3), (2, 2, 9), (0, 1, 5)];
        let graph = TemporalGraph::from_edges(edges, 3, 0).expect("builds");
        assert_eq!(graph.edges, [[1, 0], [0, 1], [0, 1], [0, 1], [2, 2]]);
        assert_eq!(graph.ranks, [0, 0, 1, 1, 2]);
        assert_eq!(graph.outgoing.entries[graph.outgoing.range(0)], [[1, 1], [2, 1], [3, 1]]);
        assert_eq!(graph.incoming.entries[graph.incoming.range(1)], [[1, 0], [2, 0], [3, 0]]);
        assert!(graph.outgoing.range(2).is_empty() && graph.incoming.range(2).is_empty());
        let pairs = &graph.pairs;
        assert_eq!(pairs.edges(pairs.find(0, 1)), [1, 2, 3]);
        assert_eq!(pairs.edges(pairs.find(2, 2)), [4]);
        assert_eq!(pairs.find(1, 2), NO_PAIR);
        assert_eq!(pairs.of_edge[0], [pairs.find(1, 0), pairs.find(0, 1)]);
        assert_eq!(pairs.of_edge[4], [pairs.find(2, 2); 2]);
        assert_eq!(pairs.list.len(), 5 + pairs.len());
        assert!(TemporalGraph::from_edges(vec![(0, 3, 1)], 3, 0).is_err());
        let empty = TemporalGraph::from_edges(Vec::new(), 0, 0).expect("builds");
        assert_eq!((empty.num_edges(), empty.pairs.starts.len()), (0, 1));
    }

    #[test]
    fn pairs_of_random_graphs_are_those_of_a_search() {
        let key = kernels_gen::threefry::Key::new(5);
        for graph in 0..50u64 {
            let (key, n) = (key.stream(graph), 1 + graph as u32 % 9);
            let edge = |i: u64| (key.word(3 * i) % n, key.word(3 * i + 1) % n, i64::from(key.word(3 * i + 2) % 9));
            let graph = TemporalGraph::from_edges((0..40).map(edge).collect(), n, 0).expect("builds");
            let pairs = &graph.pairs;
            let mut seen = 0;
            for u in 0..n {
                for v in 0..n {
                    let of_pair = (0..40u32).filter(|&i| graph.edges[i as usize] == [u, v]);
                    let pair = pairs.find(u, v);
                    assert!(of_pair.clone().eq(pairs.edges(pair).iter().copied()));
                    assert!(of_pair.clone().all(|i| pairs.of_edge[i as usize] == [pair, pairs.find(v, u)]));
                    seen += of_pair.count();
                }
            }
            assert_eq!(seen, 40);
        }
    }
}
