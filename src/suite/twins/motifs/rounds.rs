//! Whole rounds of draws: draw, look up, prefix sum, chains and sum, with all they leave in their buffers.

use super::{Agreement, TwinCase};
use crate::error::Result;
use crate::motifs::gpu::trial::{Trial, TrialPlan};
use crate::motifs::{Prune, TemporalGraph, Ties};
use kernels_gen::Target;
use kernels_gen::threefry::Key;

pub(super) fn cases(target: &Target, key: Key) -> Result<Vec<TwinCase>> {
    let case = |(what, trial): (&str, TrialPlan)| {
        let names: Vec<&str> = trial.plan.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let chains = names.iter().find(|name| name.starts_with("count_chains")).unwrap_or(&"");
        let (gaps, rounds) = (trial.gaps, trial.num_rounds);
        let lists = names.iter().find(|name| name.starts_with("look_up")).unwrap_or(&"");
        let name = format!("{}, {lists}, {chains}: {what}, gaps {gaps:?}, rounds {rounds}", names[0]);
        TwinCase { name, plan: trial.plan, inputs: trial.inputs, output: trial.output, agreement: Agreement::Exact }
    };
    Ok(trials(target, key)?.into_iter().map(case).collect())
}

/// A graph of random edges between few vertices, with loops, duplicates and ties.
fn small(key: Key, vertices: u32, edges: u64, times: u64) -> Result<TemporalGraph> {
    let edge = |i: u64| {
        let word = |n: u64, below: u64| (u64::from(key.word(3 * i + n)) * below) >> 32;
        (word(0, vertices.into()) as u32, word(1, vertices.into()) as u32, word(2, times) as i64)
    };
    TemporalGraph::from_edges((0..edges).map(edge).collect(), vertices, 0)
}

/// So many edges from vertex 0 to vertex 1, then so many from there to vertex 2.
fn parallel(edges: i64) -> Result<TemporalGraph> {
    TemporalGraph::from_edges((0..2 * edges).map(|time| if time < edges { (0, 1, time) } else { (1, 2, time) }).collect(), 3, 0)
}

/// An edge from vertex 0 to vertex 1 with so many edges to it before, and from it after, each to its own vertex.
fn star(leaves: u32) -> Result<TemporalGraph> {
    let edge = |i: u32| match i {
        i if i < leaves => (2 + i, 0, i64::from(i)),
        i if i == leaves => (0, 1, i64::from(i)),
        i => (1, 1 + i, i64::from(i)),
    };
    TemporalGraph::from_edges((0..=2 * leaves).map(edge).collect(), 2 * leaves + 2, 0)
}

/// Every kernel in all its permutations, at sizes and numbers where they go wrong most easily.
fn trials(target: &Target, key: Key) -> Result<Vec<(&'static str, TrialPlan)>> {
    let four = small(key.stream(0), 4, 260, 120)?;
    let three = small(key.stream(1), 3, 160, 80)?;
    let two = small(key.stream(2), 2, 90, 60)?;
    let sparse = small(key.stream(3), 30, 900, 400)?;
    // Paths of the one edge in its middle: 70,000^2, past 2^32.
    let star = star(70_000)?;
    let parallel = parallel(700)?;
    let (strict, rows) = (Ties::Strict, Prune::Rows);
    let square = |anchor: &str, delta| Trial::new(&four, "M4-0", anchor, delta);
    let long = |anchor: &str| Trial::new(&four, "M4-1", anchor, 60);
    let cycles = Trial::new(&three, "M3-0", "4:0", 50)?;
    // One gap of five lists.
    let replies = Trial { key, ..Trial::new(&two, "0>1 1>0 0>1 0>1 1>0 1>0", "0", 30)? };
    let through = Trial::new(&star, "E1", "1:0,2", 200_000)?;
    let repeated = vec!["0>1"; 22].join(" ");
    let pairs = ["0>1 0>1 0>1 0>1 0>1", "1>2 1>2 1>2 1>2 1>2"].join(" ");
    let past = 1 << 40;

    let trials = vec![
        (
            "a list alone in its gap, three bindings",
            Trial { width: 3, num_lanes: 200, margin: 5, num_chunks: 3, max_rounds: 2, ..square("1:0,2", 30)? },
        ),
        ("most buckets empty", Trial { width: 17, per_lane: 1, max_rounds: 3, ..Trial::new(&sparse, "M4-0", "1:0,2", 60)? }),
        (
            "three replicates",
            Trial { width: 5, num_replicates: 3, num_lanes: 72, num_chunks: 2, margin: 9, max_rounds: 3, ..long("4:0,8")? },
        ),
        (
            "both sides after the centre, one draw each",
            Trial { width: 2, num_lanes: 1_000, per_lane: 1, ties: strict, ..square("0:1,3", 9)? },
        ),
        ("one invocation", Trial { width: 701, num_lanes: 1, margin: 2, max_rounds: 2, ..square("3:0,2", 40)? }),
        ("a list alone and two others", Trial { num_lanes: 1_024, max_rounds: 2, ..Trial::new(&four, "M4-2", "0:3,5", 40)? }),
        ("strata past 2^41", Trial { ties: strict, shift: 2 * past, num_lanes: 512, margin: 9, max_rounds: 2, ..square("2:1,3", 20)? }),
        ("strata past 2^37", Trial { width: 5, shift: past + 3, margin: 9, num_lanes: 333, max_rounds: 2, ..long("4:0,8")? }),
        ("2^32 paths of one centre, strata wider than that", Trial { width: (1 << 32) + 5, margin: 3, num_lanes: 1, ..through.clone() }),
        (
            "2^32 paths of one centre, eight replicates",
            Trial { width: 800_011, num_replicates: 8, num_lanes: 1_024, max_rounds: 2, ..through },
        ),
        ("numbers past 2^40", Trial { wide: true, width: 3, ties: strict, shift: past, num_lanes: 512, max_rounds: 2, ..long("4:0,8")? }),
        ("rows", Trial { width: 2, prune: rows, num_lanes: 300, max_rounds: 2, num_chunks: 2, margin: 1, ..long("4:0,8")? }),
        (
            "rows, lists before the first placed edge",
            Trial { width: 3, num_replicates: 8, prune: rows, ties: strict, max_rounds: 6, ..long("4:6,8")? },
        ),
        ("rows, every path", Trial { prune: rows, num_lanes: 1_024, max_rounds: 2, ..long("4:0,8")? }),
        ("rows of one side, every path", Trial { prune: rows, ties: strict, num_lanes: 128, ..cycles.clone() }),
        ("rows of 2^34 paths", Trial { prune: rows, width: 3 << 33, stretch: (1 << 34) + 7, shift: 3, margin: 1, ..cycles.clone() }),
        ("rows past 2^40", Trial { wide: true, width: 3, prune: rows, ties: strict, shift: past, max_rounds: 4, ..long("4:0,8")? }),
        (
            "stopped and resumed",
            Trial { steps: vec![29, 30, 31, 50_000], prune: Prune::Pairs, num_lanes: 100, max_rounds: 2, ..cycles.clone() },
        ),
        (
            "resumed with counts near 2^64",
            Trial { steps: vec![16, 11, 50_000], ways: Some(key.stream(4)), max_rounds: 2, ..cycles.clone() },
        ),
        ("gaps of up to four lists", Trial { long: true, per_lane: 2, num_lanes: 128, max_rounds: 2, ..cycles }),
        ("five lists in a gap", Trial { num_lanes: 70, per_lane: 1, ..replies.clone() }),
        (
            "six lists in a gap, two replicates",
            Trial { width: 2, num_replicates: 2, prune: rows, margin: 4, max_rounds: 6, ..long("7:6,8")? },
        ),
        ("stopped and resumed", Trial { steps: vec![29, 30, 31, 50_000], per_lane: 1, ..replies.clone() }),
        ("stopped and resumed", Trial { steps: vec![300, 301, 1_000, 60_000], long: true, per_lane: 1, ..replies.clone() }),
        ("resumed with counts near 2^64", Trial { steps: vec![25, 26, 60_000], ways: Some(key.stream(5)), per_lane: 2, ..replies.clone() }),
        ("resumed with counts near 2^64", Trial { steps: vec![400, 290, 60_000], ways: Some(key.stream(6)), long: true, ..replies }),
        ("products past 2^64", Trial { per_lane: 1, max_rounds: 1, ..Trial::new(&parallel, &pairs, "0:5", 2_000)? }),
        (
            "chains past 2^64",
            Trial { num_lanes: 1, per_lane: 1, steps: vec![60_000; 12], max_rounds: 2, ..Trial::new(&parallel, &repeated, "0", 800)? },
        ),
    ];
    trials.into_iter().map(|(what, trial)| Ok((what, trial.plan(target)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::twins::TwinCase;

    #[test]
    fn the_trials_reach_what_they_are_for() {
        let target = Target::webgpu();
        let (mut with_empty_buckets, mut gap_sizes, mut not_found) = (0, [0; 33], 0);
        for (what, trial) in trials(&target, Key::new(1)).expect("plans") {
            let TrialPlan { plan, inputs, output, gaps, num_rounds } = trial;
            let mut end = 0;
            let parts = ["drawn", "found", "state", "unfinished", "state", "unfinished", "totals"].map(|name| {
                let slot = plan.find(name).expect("a slot");
                end += (plan.slots[slot.0 as usize].bytes / 4) as usize;
                end - (plan.slots[slot.0 as usize].bytes / 4) as usize..end
            });
            let case = TwinCase { name: what.into(), plan, inputs, output, agreement: Agreement::Exact };
            let words = case.expected().expect("runs");
            let part = |at: usize| &words[parts[at].clone()];
            let num_lanes = parts[2].len() / 110;
            let found: Vec<u32> = part(1).chunks(2).take(num_lanes + 1).map(|sum| sum[0]).collect();
            // The first eight totals are of nothing.
            let wide = |at: usize| u64::from(part(6)[80 + at]) | u64::from(part(6)[81 + at]) << 32;
            let [sum, valid, nonzero] = [wide(0), wide(6), wide(8)];

            assert!(num_rounds > 0 && num_rounds < 40, "{what}: {num_rounds} rounds");
            assert!(valid > 0 && nonzero > 0 && sum >= nonzero, "{what}: {sum}, {valid} valid, {nonzero} not zero");
            assert_eq!(part(5), [0], "{what}: unfinished at the end");
            let stops = what.contains("resumed") || what.contains("chains past");
            assert_eq!(part(3), [u32::from(stops)], "{what}: unfinished before");
            if stops {
                let merging = part(2).chunks(num_lanes).nth(11).expect("marks").iter().filter(|&&mark| mark >> 31 == 1).count();
                assert!(merging > 0, "{what}: nothing is being merged");
            }
            assert_eq!(sum == u64::MAX, what.contains("2^64"), "{what}: {sum}");
            assert_eq!(part(6)[..80], [0; 80], "{what}: a sum of nothing");

            not_found += usize::from(found[num_lanes] < part(0)[2 * num_lanes]);
            let full = |range: std::ops::Range<usize>| range.clone().any(|lane| found[lane + 1] > found[lane]);
            with_empty_buckets +=
                usize::from((1..num_lanes).any(|lane| found[lane] == found[lane + 1] && full(0..lane) && full(lane..num_lanes)));
            gaps.iter().for_each(|&size| gap_sizes[size] += 1);
        }
        assert!(with_empty_buckets > 5 && not_found > 5, "{with_empty_buckets} {not_found}");
        assert!([1, 2, 3, 4, 5, 6, 21].iter().all(|&size| gap_sizes[size] > 0), "{gap_sizes:?}");
    }
}
