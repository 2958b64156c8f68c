//! Statistics of estimates on real graphs: 64 fixed seeds in each of several cells, none of them counted exactly.
//!
//! Needs `SUBLANE_DATA`, the folder with the project's data. Takes minutes, so it is asked for with `--ignored`.

use std::path::PathBuf;
use sublane::motifs::{Anchor, CountOptions, Delta, How, Method, Motif, Prune, TemporalGraph, TimeUnit, Value, count};
use sublane::progress::Work;

const SEEDS: u64 = 64;

/// (motif, delta, anchor, pruning, samples), by graph.
type Cell = (&'static str, &'static str, &'static str, Prune, u64);
const CELLS: &[(&str, &[Cell])] = &[
    (
        "CollegeMsg.txt.gz",
        &[
            ("M4-0", "1d", "1:0,2", Prune::Off, 200_000),
            ("M4-1", "1w", "7:0,8", Prune::Rows, 600_000),
            ("E3", "1d", "1:0,2", Prune::Pairs, 200_000),
            ("E6", "1h", "tree:1,0,2,3", Prune::Off, 200_000),
        ],
    ),
    ("email-Eu-core-temporal.txt.gz", &[("M4-0", "1d", "1:0,2", Prune::Rows, 200_000), ("G42", "1h", "0:1", Prune::Off, 200_000)]),
    (
        "sx-mathoverflow.txt.gz",
        &[
            ("M4-0", "1w", "1:0,2", Prune::Rows, 200_000),
            ("M4-1", "4w", "7:6,8", Prune::Rows, 200_000),
            ("G42", "1d", "0:1", Prune::Pairs, 200_000),
        ],
    ),
];

fn open(name: &str) -> TemporalGraph {
    let data = std::env::var_os("SUBLANE_DATA").expect("SUBLANE_DATA must name the folder with the project's data");
    let path = PathBuf::from(data).join("graphs").join(name);
    TemporalGraph::open(&path, &Default::default(), &Work::quiet()).unwrap_or_else(|e| panic!("{}: {e}", path.display())).0
}

#[test]
#[ignore = "needs SUBLANE_DATA and takes minutes"]
fn errors_average_to_nothing_and_intervals_hold_the_truth() {
    let (mut covered, mut intervals) = (0, 0);
    let mut faults = Vec::new();
    for &(name, cells) in CELLS {
        let graph = open(name);
        for &(motif_name, delta, anchor, prune, samples) in cells {
            let motif = Motif::parse(motif_name).expect("named");
            let ticks = Delta::parse(delta).expect("a span").ticks(TimeUnit::S, graph.decimals());
            let anchor = Anchor::parse(anchor, &motif).expect("legal");
            let with = |method, seed| {
                let options = CountOptions { method, seed, anchor: Some(anchor.clone()), prune: Some(prune), ..CountOptions::new(ticks) };
                count(&graph, &motif, &options, &Work::quiet()).expect("counts")
            };
            let exactly = with(Method::Enumerate, 0);
            let Value::Exact(exact) = exactly.value else { panic!("{motif_name} is not exact") };
            let (mut errors, mut squares, mut least, mut inside) = (0.0, 0.0, u64::MAX, 0);
            for seed in 0..SEEDS {
                let found = with(Method::Samples(samples), seed);
                let Value::Estimate(estimate) = found.value else { panic!("{motif_name} was counted") };
                // Strata of one path would be no draws.
                assert!(found.method == How::Sample && found.w_pruned > Some(found.samples / 32), "{name} {motif_name} was counted");
                let error = estimate - exact as f64;
                errors += error;
                squares += error * error;
                least = least.min(found.nonzero);
                let [low, high] = found.ci95.expect("32 replicates");
                inside += u32::from(low <= exact as f64 && exact as f64 <= high);
            }
            let mean = errors / SEEDS as f64;
            let deviation = (squares / SEEDS as f64 - mean * mean).max(0.0) * SEEDS as f64 / (SEEDS - 1) as f64;
            let standard = (deviation / SEEDS as f64).sqrt();
            println!(
                "{name} {motif_name} {delta}: {exact} exactly, w {:?}, mean error {:.2} standard errors, deviation {:.2} %, {inside} of {SEEDS} \
                 intervals, at least {least} non-zero",
                exactly.w_pruned,
                mean / standard,
                100.0 * deviation.sqrt() / exact as f64
            );
            if mean.abs() > 4.0 * standard || least < 500 {
                faults.push(format!("{name} {motif_name} {delta}: mean error {mean} +- {standard}, {least} non-zero samples"));
            }
            covered += inside;
            intervals += SEEDS as u32;
        }
    }
    assert!(faults.is_empty(), "{faults:?}");
    let share = f64::from(covered) / f64::from(intervals);
    println!("{covered} of {intervals} intervals hold the exact count: {:.1} %", 100.0 * share);
    assert!((0.92..=0.98).contains(&share), "{covered} of {intervals}");
}
