//! Cases of the kernels that number and draw spanning trees.

use super::{Agreement, TwinCase};
use crate::error::Result;
use crate::motifs::gpu::{TreeDraws, TreeRound, tree_round};
use crate::motifs::{Anchor, Motif, TemporalGraph, Ties};
use kernels_gen::Target;
use kernels_gen::threefry::Key;

/// A tree to draw.
struct Tree {
    motif: &'static str,
    anchor: &'static str,
    /// Vertices, edges and times of the graph, and delta.
    graph: [u32; 4],
    /// Strata of each of 128 lanes.
    per_lane: u32,
    num_replicates: u32,
    is_wide: bool,
}

const TREES: &[Tree] = &[
    // Children of the centre without children; loops and edges of one pair among them.
    Tree { motif: "0>1 0>2 0>3", anchor: "tree:1,0,2", graph: [9, 60, 40, 12], per_lane: 9, num_replicates: 1, is_wide: false },
    Tree { motif: "0>1 0>2 0>3", anchor: "tree:0,1,2", graph: [6, 60, 40, 12], per_lane: 40, num_replicates: 1, is_wide: false },
    // One child with a child of its own, drawn and enumerated.
    Tree { motif: "E5", anchor: "tree:1,0,2,3", graph: [30, 300, 90, 30], per_lane: 20, num_replicates: 3, is_wide: false },
    Tree { motif: "E6", anchor: "tree:2,1,3,0", graph: [8, 80, 40, 12], per_lane: 60, num_replicates: 1, is_wide: false },
    // A chain of children, drawn and enumerated.
    Tree { motif: "E5", anchor: "tree:0,1,2,3", graph: [30, 300, 90, 30], per_lane: 20, num_replicates: 8, is_wide: false },
    Tree { motif: "E11", anchor: "tree:4,3,2,1", graph: [8, 80, 40, 10], per_lane: 60, num_replicates: 1, is_wide: false },
    // Numbers past 2^32: seven edges, from their middle and as a star.
    Tree {
        motif: "0>1 1>2 2>3 3>4 4>5 5>6 6>7",
        anchor: "tree:3,2,4,1,5,0,6",
        graph: [14, 2_500, 900, 900],
        per_lane: 16,
        num_replicates: 3,
        is_wide: true,
    },
    Tree {
        motif: "0>1 2>0 0>3 4>0 0>5 6>0 0>7",
        anchor: "tree:2,0,1,3,4,5,6",
        graph: [20, 2_500, 900, 900],
        per_lane: 16,
        num_replicates: 1,
        is_wide: true,
    },
];

pub(super) fn cases(target: &Target, key: Key) -> Result<Vec<TwinCase>> {
    rounds(target, key)?.into_iter().map(|(name, round)| Ok(case(name, round))).collect()
}

fn case(name: String, round: TreeRound) -> TwinCase {
    TwinCase { name, plan: round.plan, inputs: round.inputs, output: round.output, agreement: Agreement::Exact }
}

fn rounds(target: &Target, key: Key) -> Result<Vec<(String, TreeRound)>> {
    let mut rounds = Vec::new();
    for (tree, stream) in TREES.iter().zip(0..) {
        let key = key.stream(stream);
        let [vertices, edges, times, delta] = tree.graph;
        let below = |n: u64, bound: u32| key.below(n, bound.into()) as u32;
        let edge = |n: u32| {
            let n = 3 * u64::from(n);
            (below(n, vertices), below(n + 1, vertices), i64::from(below(n + 2, times)))
        };
        let graph = TemporalGraph::from_edges((0..edges).map(edge).collect(), vertices, 0)?;
        let motif = Motif::parse(tree.motif)?;
        let anchor = Anchor::parse(tree.anchor, &motif)?;
        for ties in [Ties::Order, Ties::Strict] {
            let wanted = TreeDraws {
                motif: &motif,
                anchor: &anchor,
                delta: delta.into(),
                ties,
                key: key.stream(1),
                lanes: [128, tree.per_lane],
                num_replicates: tree.num_replicates,
                is_wide: tree.is_wide,
            };
            let round = tree_round(target, &graph, &wanted)?;
            let kernel = round.plan.kernels.last().map(|kernel| kernel.name.clone()).unwrap_or_default();
            rounds.push((format!("weigh_subtrees and {kernel}, {} {anchor}, {} valid trees", motif.name(), round.num_valid), round));
        }
    }
    Ok(rounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rounds_draw_what_the_processor_draws() {
        let (mut drawn_all, mut drawn_some) = (0, 0);
        for (name, round) in rounds(&Target::webgpu(), Key::new(1)).expect("cases") {
            let (num_valid, enumerates) = (round.num_valid, name.contains("enumerate"));
            let drawn_words = round.plan.slots.iter().find(|slot| slot.name == "drawn").map_or(0, |slot| slot.bytes as usize / 4);
            let words = case(name.clone(), round).expected().expect("runs");
            let drawn = &words[words.len() - drawn_words..];
            assert_eq!(drawn[2 * 128 + 2..][..128].iter().map(|&n| u64::from(n)).sum::<u64>(), num_valid, "{name}");
            assert!(num_valid > 0, "{name}");
            if enumerates { drawn_all += 1 } else { drawn_some += 1 }
        }
        assert!(drawn_all >= 4 && drawn_some >= 8, "{drawn_all} enumerated, {drawn_some} drawn");
    }
}
