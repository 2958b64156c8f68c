//! All 36 two- and three-vertex motifs of three edges in time that grows with the lists of edges and not with the matches, after Paranjape,
//! Benson and Leskovec, "Motifs in temporal networks" (WSDM 2017): sequences on two vertices by pair, stars by centre, triangles by the
//! pair of theirs with the most edges.

mod neighbours;
mod sweep;

use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::{Count, Windows};
use crate::error::Result;
use crate::motifs::graph::TemporalGraph;
use crate::motifs::{Motif, Ties};
use crate::progress::{Cancel, Part, Work};
use neighbours::{Neighbour, Neighbours};
use sweep::{Sequences, Sweep};

/// Exact numbers of matches of the 36 motifs within `delta` ticks, by row and column (see [`Motif::grid`]); loops match nothing. All
/// threads of rayon's pool take part.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a negative delta;
/// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when the work is cancelled.
pub fn grid(graph: &TemporalGraph, delta: i64, ties: Ties, work: &Work) -> Result<[[Count; 6]; 6]> {
    let windows = Windows::new(graph, delta, ties)?;
    let neighbours = Neighbours::new(graph);
    let num_vertices = graph.num_vertices();
    let program = Program { graph, windows: &windows, neighbours: &neighbours, cancel: work.cancel(), idle: Mutex::new(Vec::new()) };
    let stars = {
        let part = work.part("pairs and stars", num_vertices as u64);
        program.run(&blocks(num_vertices, |v| neighbours.degree(v)), |range, scratch| program.stars(range, scratch, &part))?
    };
    // A part of a vertex's neighbours at a time, since few vertices may have most of the triangles.
    let chunks: Vec<(u32, u32)> =
        (0..num_vertices as u32).flat_map(|u| neighbours.range(u).step_by(CHUNK).map(move |at| (u, at as u32))).collect();
    let part = work.part("triangles", chunks.len() as u64);
    let triangles = program.run(&blocks(chunks.len(), |at| neighbours.degree(chunks[at].0 as usize)), |range, scratch| {
        program.triangles(&chunks[range], scratch, &part)
    })?;
    let mut total = stars;
    total.add(&triangles);
    Ok(std::array::from_fn(|row| std::array::from_fn(|column| total.count(&Motif::grid(row + 1, column + 1)))))
}

/// Neighbours of a vertex that are looked at together for triangles.
const CHUNK: usize = 256;

/// Ranges of 0..`len` of about equal weight.
fn blocks(len: usize, weight: impl Fn(usize) -> usize) -> Vec<std::ops::Range<usize>> {
    let mut blocks = Vec::new();
    let (mut start, mut sum) = (0, 0);
    for at in 0..len {
        sum += weight(at) + 1;
        if sum >= 2048 || at + 1 == len {
            blocks.push(start..at + 1);
            (start, sum) = (at + 1, 0);
        }
    }
    blocks
}

/// Numbers of all triples of the three kinds.
#[derive(Clone, Default)]
struct Totals {
    /// By direction of each edge, 0 from the smaller vertex.
    sequences: Sequences,
    /// Base: the edge to the neighbour that has no other; labels: directions, 0 out of the centre. Triples on one neighbour are in them.
    stars: Sweep<2>,
    /// Base: the edge on the pair (u, v), 0 from u; labels: direction, 0 from w, plus 2 where it joins w and v.
    triangles: Sweep<4>,
}

impl Totals {
    fn add(&mut self, other: &Totals) {
        self.sequences.add(&other.sequences);
        self.stars.add(&other.stars);
        self.triangles.add(&other.triangles);
    }

    fn count(&self, motif: &Motif) -> Count {
        let edges: Vec<[u8; 2]> = motif.edges().to_vec();
        let total = if motif.num_vertices() == 2 {
            // The first edge may leave either vertex of the pair.
            (0..2).map(|flip| self.sequences.get([0, 1, 2].map(|i| usize::from(edges[i][0] != edges[0][0]) ^ flip))).sum()
        } else if let Some(centre) = (0..3).find(|v| edges.iter().all(|edge| edge.contains(v))) {
            let directions = [0, 1, 2].map(|i: usize| usize::from(edges[i][0] != centre));
            let other = |i: usize| edges[i][0] + edges[i][1] - centre;
            let odd = (0..3).find(|&i| (0..3).all(|j| j == i || other(j) != other(i))).unwrap_or(0);
            // Those on one neighbour, seen from both of its ends, are no stars.
            let same = self.sequences.get(directions) + self.sequences.get(directions.map(|d| 1 - d));
            self.stars.get(odd, directions) - same
        } else {
            let role = |base: usize, flip: usize| {
                let (u, v) = (edges[base][flip], edges[base][1 - flip]);
                let label = |[from, to]: [u8; 2]| match (from == u || to == u, from == v || to == v) {
                    (true, true) => flip,
                    (_, at_v) => usize::from(from == u || from == v) + 2 * usize::from(at_v),
                };
                self.triangles.get(base, [0, 1, 2].map(|i: usize| label(edges[i])))
            };
            (0..3).map(|base| role(base, 0) + role(base, 1)).sum()
        };
        Count::saturating(u64::try_from(total).unwrap_or(u64::MAX))
    }
}

/// What all threads read, and room for their work that waits for the next block.
struct Program<'a> {
    graph: &'a TemporalGraph,
    windows: &'a Windows,
    neighbours: &'a Neighbours,
    cancel: &'a Cancel,
    idle: Mutex<Vec<Scratch>>,
}

/// Room for the work of one thread.
struct Scratch {
    totals: Totals,
    /// (index of an edge, what it is in the sweep), in order.
    events: Vec<(u32, u32)>,
    stars: sweep::State<2>,
    triangles: sweep::State<4>,
    /// Of each vertex, one more than its place among the neighbours of `marked`; 0 if it is none.
    places: Vec<u32>,
    marked: Option<u32>,
    /// Third vertices of the triangles whose base is the pair at hand: their places among the neighbours of its two vertices.
    thirds: Vec<(usize, usize)>,
}

impl Program<'_> {
    /// Runs `block` on each of the blocks, in all threads, and adds up what they count.
    fn run(
        &self,
        blocks: &[std::ops::Range<usize>],
        block: impl Fn(std::ops::Range<usize>, &mut Scratch) -> Result<()> + Sync,
    ) -> Result<Totals> {
        blocks.par_iter().try_for_each(|range| -> Result<()> {
            let mut scratch = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_else(|| Scratch {
                totals: Totals::default(),
                events: Vec::new(),
                stars: sweep::State::default(),
                triangles: sweep::State::default(),
                places: vec![0; self.graph.num_vertices()],
                marked: None,
                thirds: Vec::new(),
            });
            block(range.clone(), &mut scratch)?;
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
            Ok(())
        })?;
        let mut totals = Totals::default();
        for scratch in self.idle.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            totals.add(&std::mem::take(&mut scratch.totals));
        }
        Ok(totals)
    }

    /// Numbers the neighbours of `u` in `scratch.places`.
    fn mark(&self, u: u32, scratch: &mut Scratch) {
        if scratch.marked == Some(u) {
            return;
        }
        if let Some(old) = scratch.marked.replace(u) {
            for neighbour in self.neighbours.of(old) {
                scratch.places[neighbour.vertex as usize] = 0;
            }
        }
        for (place, neighbour) in self.neighbours.of(u).iter().enumerate() {
            scratch.places[neighbour.vertex as usize] = place as u32 + 1;
        }
    }

    /// Triples around each of the vertices, and those on each pair with a larger vertex.
    fn stars(&self, vertices: std::ops::Range<usize>, scratch: &mut Scratch, part: &Part) -> Result<()> {
        let graph = self.graph;
        for u in vertices {
            let neighbours = self.neighbours.of(u as u32);
            for neighbour in neighbours.iter().filter(|n| n.vertex as usize > u && n.num_edges > 2) {
                scratch.events.clear();
                scratch.events.extend(self.pair_events(neighbour));
                scratch.totals.sequences.sweep(&scratch.events, self.windows, self.cancel);
            }
            let (outgoing, incoming) = (graph.outgoing.range(u as u32), graph.incoming.range(u as u32));
            if outgoing.len() + incoming.len() > 2 {
                self.mark(u as u32, scratch);
                let of = |[index, other]: [u32; 2], direction: u32, places: &[u32]| (index, (places[other as usize] - 1) << 1 | direction);
                let places = &scratch.places;
                let outgoing = graph.outgoing.entries[outgoing].iter().map(|&entry| of(entry, 0, places));
                let incoming = graph.incoming.entries[incoming].iter().map(|&entry| of(entry, 1, places));
                scratch.events.clear();
                scratch.events.extend(merge(outgoing, incoming));
                scratch.stars.prepare(neighbours.len());
                // Each edge is a base as well.
                scratch
                    .totals
                    .stars
                    .sweep(&scratch.events, self.windows, self.cancel, &mut scratch.stars, |e| (Some((e >> 1, e & 1)), Some(e & 1)));
            }
            part.advance(1)?;
        }
        Ok(())
    }

    /// Edges of a pair by index, with 0 for those that leave the vertex whose neighbour is given.
    fn pair_events<'s>(&'s self, neighbour: &'s Neighbour) -> impl Iterator<Item = (u32, u32)> + 's {
        let pairs = &self.graph.pairs;
        merge(pairs.edges(neighbour.outgoing).iter().map(|&e| (e, 0)), pairs.edges(neighbour.incoming).iter().map(|&e| (e, 1)))
    }

    /// Triples of the triangles of which the pair of a vertex and one of its neighbours of smaller degree has the most edges; such a chunk
    /// of neighbours begins at a position and ends `CHUNK` on.
    fn triangles(&self, chunks: &[(u32, u32)], scratch: &mut Scratch, part: &Part) -> Result<()> {
        for &(u, from) in chunks {
            let range = self.neighbours.range(u);
            let degree = range.len();
            for at in from as usize..range.end.min(from as usize + CHUNK) {
                let base = &self.neighbours.list[at];
                let v = base.vertex;
                if (self.neighbours.degree(v as usize), v) > (degree, u) {
                    continue;
                }
                self.mark(u, scratch);
                scratch.thirds.clear();
                for (third, to_v) in self.neighbours.of(v).iter().enumerate() {
                    let place = scratch.places[to_v.vertex as usize];
                    if place == 0 {
                        continue;
                    }
                    let to_u = &self.neighbours.of(u)[place as usize - 1];
                    // Of pairs with as many edges the one with the smaller vertices is the base.
                    let rank = |n: &Neighbour, a: u32| (n.num_edges, std::cmp::Reverse([a.min(n.vertex), a.max(n.vertex)]));
                    if rank(base, u) > rank(to_u, u) && rank(base, u) > rank(to_v, v) {
                        scratch.thirds.push((place as usize - 1, third));
                    }
                }
                if !scratch.thirds.is_empty() {
                    self.triangles_of(u, at, scratch);
                    self.cancel.check()?;
                }
            }
            part.advance(1)?;
        }
        Ok(())
    }

    /// Triples on the pair of `u` and its neighbour at position `at` and on each of `scratch.thirds`.
    fn triangles_of(&self, u: u32, at: usize, scratch: &mut Scratch) {
        let base = &self.neighbours.list[at];
        let pairs = &self.graph.pairs;
        let events = &mut scratch.events;
        events.clear();
        for (place, &(to_u, to_v)) in scratch.thirds.iter().enumerate() {
            let (to_u, to_v) = (&self.neighbours.of(u)[to_u], &self.neighbours.of(base.vertex)[to_v]);
            let place = place as u32 + 1;
            // What comes in to u or v leaves w.
            for (pair, label) in [(to_u.incoming, 0), (to_u.outgoing, 1), (to_v.incoming, 2), (to_v.outgoing, 3)] {
                events.extend(pairs.edges(pair).iter().map(|&e| (e, place << 2 | label)));
            }
        }
        events.extend(self.pair_events(base));
        events.sort_unstable();
        scratch.triangles.prepare(scratch.thirds.len());
        scratch.totals.triangles.sweep(events, self.windows, self.cancel, &mut scratch.triangles, |event| match event >> 2 {
            0 => (None, Some(event & 1)),
            place => (Some((place - 1, event & 3)), None),
        });
    }
}

/// Two sequences in order of their edges, as one.
fn merge(a: impl Iterator<Item = (u32, u32)>, b: impl Iterator<Item = (u32, u32)>) -> impl Iterator<Item = (u32, u32)> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(x), Some(y)) if x.0 > y.0 => b.next(),
        (None, _) => b.next(),
        _ => a.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn graph(edges: Vec<(u32, u32, i64)>, vertices: u32) -> TemporalGraph {
        TemporalGraph::from_edges(edges, vertices, 0).expect("builds")
    }

    #[test]
    fn graphs_without_triples_count_nothing() {
        for (edges, vertices) in [(vec![], 0), (vec![], 1), (vec![(0, 1, 3)], 2), ((0..9).map(|t| (0, 0, t)).collect(), 1)] {
            let counts = grid(&graph(edges, vertices), i64::MAX, Ties::Order, &Work::quiet()).expect("counts");
            assert_eq!(counts, [[Count::default(); 6]; 6]);
        }
        assert!(grid(&graph(vec![], 0), -1, Ties::Order, &Work::quiet()).is_err());
    }

    #[test]
    fn a_star_with_a_million_leaves_is_one_sweep() {
        // Leaf v is called, calls back and is called again before the next leaf's turn.
        let leaves = 1_000_000u32;
        let calls = (1..=leaves).flat_map(|v| [(0, v, 0), (v, 0, 1), (0, v, 2)].map(|(a, b, t)| (a, b, 3 * i64::from(v) + t))).collect();
        let star = graph(calls, leaves + 1);
        let counts = grid(&star, 2, Ties::Order, &Work::quiet()).expect("counts");
        // 0>1 1>0 0>1 once a leaf; 0>1 0>2 with what comes between them, each once for two neighbouring leaves.
        let n = u64::from(leaves);
        assert_eq!(counts[4][0].value, n);
        let total: u64 = counts.as_flattened().iter().map(|count| count.value).sum();
        assert_eq!(total, n + 2 * (n - 1));
        assert_eq!(grid(&star, i64::MAX, Ties::Strict, &Work::quiet()).expect("counts")[4][0].value, n);
    }

    #[test]
    fn counts_past_64_bits_say_so() {
        let parallel = graph((0..5_000_000).map(|t| (0, 1, t)).collect(), 2);
        let counts = grid(&parallel, i64::MAX, Ties::Strict, &Work::quiet()).expect("counts");
        assert_eq!(counts[5][5], Count::default(), "0>1 0>1 2>1");
        assert_eq!(counts[5][0], Count { value: u64::MAX, saturated: true }, "0>1 0>1 0>1");
    }

    #[test]
    fn cancelled_work_stops() {
        let work = Work::new(&(), Cancel::new());
        work.cancel().cancel();
        let edges = (0..100).map(|t| (t % 7, t % 5, i64::from(t))).collect();
        assert_eq!(grid(&graph(edges, 7), 5, Ties::Order, &work).expect_err("cancelled").kind(), ErrorKind::Cancelled);
    }
}
