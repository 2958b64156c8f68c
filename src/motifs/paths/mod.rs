//! Paths: numbering, drawing and checking placements of an anchor, and counting the chains around each. Plain Rust; the kernels of
//! `shaders/motifs` do the same and share the formats.

mod centres;
mod embed;
mod keys;
mod recipe;
mod sample;
mod tree;
mod units;

pub(in crate::motifs) use embed::{EMBEDDING_WORDS, Embedded, Embedding, NUM_SLOTS};
pub(in crate::motifs) use keys::Keys;
pub(in crate::motifs) use recipe::{Recipe, SOURCE};
pub(in crate::motifs) use sample::{Paths, Strata, TALLY_WORDS, Tally};
pub use units::Prune;
#[cfg(test)]
pub(in crate::motifs) use units::Units;
pub(in crate::motifs) use units::{DEAD, SideEdges, Unit, check_table, first_path, set_first, too_many, unit};

use std::ops::Range;

use crate::error::Result;
use crate::progress::Part;

/// Draws of one replicate: path numbers from the strata of a range, which are summed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::motifs) struct Draws {
    pub strata: Strata,
    pub range: Range<u64>,
}

/// Numbered paths that can be drawn from, on the processor ([`Paths`]) or on a device. All give the same sums, bit for bit.
pub(in crate::motifs) trait Numbered {
    /// Number of paths.
    fn total(&self) -> u64;

    /// The sums over each of `draws`. Tells `part` of every stratum drawn from.
    fn tallies(&self, draws: &[Draws], part: &Part<'_>) -> Result<Vec<Tally>>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motifs::{Anchor, Motif, TemporalGraph, Ties};
    use kernels_gen::threefry::Key;

    /// Matches by the definition: all increasing choices of edges.
    fn brute_force(graph: &TemporalGraph, motif: &Motif, delta: i64, ties: Ties) -> u64 {
        fn extend(graph: &TemporalGraph, motif: &Motif, delta: i64, ties: Ties, chosen: &mut Vec<usize>) -> u64 {
            let l = chosen.len();
            if l == motif.num_edges() {
                return 1;
            }
            let mut count = 0;
            for e in chosen.last().map_or(0, |&e| e + 1)..graph.num_edges() {
                if let (Some(&first), Some(&last)) = (chosen.first(), chosen.last())
                    && (graph.times[e] - graph.times[first] > delta || ties == Ties::Strict && graph.times[e] == graph.times[last])
                {
                    continue;
                }
                chosen.push(e);
                let mut map = vec![None; motif.num_vertices()];
                let fits = chosen
                    .iter()
                    .zip(motif.edges())
                    .all(|(&e, edge)| (0..2).all(|end| *map[edge[end] as usize].get_or_insert(graph.edges[e][end]) == graph.edges[e][end]));
                let mut images: Vec<u32> = map.iter().flatten().copied().collect();
                let mapped = images.len();
                images.sort_unstable();
                images.dedup();
                if fits && images.len() == mapped {
                    count += extend(graph, motif, delta, ties, chosen);
                }
                chosen.pop();
            }
            count
        }
        extend(graph, motif, delta, ties, &mut Vec::new())
    }

    fn random_graph(key: Key, vertices: u32, edges: u64, times: u64) -> TemporalGraph {
        let edges = (0..edges).map(|i| {
            let word = |n: u64, below: u64| ((u64::from(key.word(4 * i + n)) * below) >> 32) as u32;
            (word(0, vertices.into()), word(1, vertices.into()), i64::from(word(2, times)))
        });
        TemporalGraph::from_edges(edges.collect(), vertices, 0).expect("builds")
    }

    #[test]
    fn every_anchor_enumerates_to_the_definition() {
        let mut nonzero = 0;
        for (n, motif) in Motif::all_named().iter().chain(&extra_motifs()).enumerate() {
            for round in 0..4 {
                let key = Key::new(n as u64).stream(round);
                let (vertices, edges) = if motif.num_edges() > 6 { (motif.num_vertices() as u32, 22) } else { (5, 18) };
                let graph = random_graph(key, vertices, edges, 14);
                let delta = [3, 8, 20, 0][round as usize];
                for ties in [Ties::Order, Ties::Strict] {
                    let exact = brute_force(&graph, motif, delta, ties);
                    nonzero += u64::from(exact > 0);
                    let keys = Keys::new(&graph, delta, ties);
                    for anchor in Anchor::all_paths(motif).into_iter().chain(Anchor::all_trees(motif, 40)) {
                        let prunes = [Prune::Off, Prune::Pairs, Prune::Rows];
                        for &prune in if anchor.is_tree() { &prunes[..1] } else { &prunes[..] } {
                            let paths = Paths::new(&graph, &keys, motif, &anchor, prune, u64::MAX).expect("numbers");
                            let tally = paths.tally(&Strata { width: 1, key }, 0..paths.total());
                            assert_eq!(tally.sum, exact, "{} {anchor} {prune:?} {ties:?} delta {delta} round {round}", motif.name());
                        }
                    }
                }
            }
        }
        assert!(nonzero > 100, "{nonzero}");
    }

    /// Motifs with loops, and on two vertices.
    fn extra_motifs() -> Vec<Motif> {
        [
            "0>1 1>1 1>0",
            "0>0 0>1 1>2",
            "0>1",
            "0>1 0>1 1>0 0>1 1>0",
            "0>1 1>2 2>2 2>3 0>3 3>1",
            "0>1 1>2 0>1 0>1 2>1 1>2",
            "0>1 0>2 0>3",
            "1>0 2>0 3>0 0>1 3>4",
        ]
        .map(|m| Motif::parse(m).expect("edges"))
        .to_vec()
    }
}
