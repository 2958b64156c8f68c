//! Pairs of vertices without their directions.

use rayon::prelude::*;

use crate::motifs::graph::{NO_PAIR, TemporalGraph};

/// Neighbours of each vertex in order of their numbers; a vertex is none of its own.
pub(super) struct Neighbours {
    offsets: Vec<usize>,
    pub list: Vec<Neighbour>,
}

/// A neighbour of some vertex.
#[derive(Clone, Copy)]
pub(super) struct Neighbour {
    pub vertex: u32,
    /// The pair of edges to it, or [`NO_PAIR`].
    pub outgoing: u32,
    /// The pair of edges from it, or [`NO_PAIR`].
    pub incoming: u32,
    /// Number of edges both ways.
    pub num_edges: u32,
}

impl Neighbours {
    pub fn new(graph: &TemporalGraph) -> Self {
        let pairs = &graph.pairs;
        let num_vertices = graph.num_vertices();
        // A pair is seen from its source, and from its destination where no pair goes back.
        let mut seen: Vec<(u32, Neighbour)> = Vec::with_capacity(2 * pairs.len());
        let size = |pair: u32| pairs.edges(pair).len() as u32;
        for u in 0..num_vertices as u32 {
            for pair in pairs.of_source(u) {
                let v = pairs.destinations[pair];
                if u == v {
                    continue;
                }
                let pair = pair as u32;
                let back = pairs.of_edge[pairs.edges(pair)[0] as usize][1];
                seen.push((u, Neighbour { vertex: v, outgoing: pair, incoming: back, num_edges: size(pair) + size(back) }));
                if back == NO_PAIR {
                    seen.push((v, Neighbour { vertex: u, outgoing: NO_PAIR, incoming: pair, num_edges: size(pair) }));
                }
            }
        }
        seen.par_sort_unstable_by_key(|(u, neighbour)| (*u, neighbour.vertex));
        let mut offsets = vec![0; num_vertices + 1];
        for (u, _) in &seen {
            offsets[*u as usize + 1] += 1;
        }
        for v in 0..num_vertices {
            offsets[v + 1] += offsets[v];
        }
        Neighbours { offsets, list: seen.into_iter().map(|(_, neighbour)| neighbour).collect() }
    }

    pub fn range(&self, vertex: u32) -> std::ops::Range<usize> {
        self.offsets[vertex as usize]..self.offsets[vertex as usize + 1]
    }

    pub fn of(&self, vertex: u32) -> &[Neighbour] {
        &self.list[self.range(vertex)]
    }

    pub fn degree(&self, vertex: usize) -> usize {
        self.offsets[vertex + 1] - self.offsets[vertex]
    }
}
