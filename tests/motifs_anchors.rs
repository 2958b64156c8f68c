//! Every anchor of every named motif enumerates to the exact count on a real graph. Needs the data folder, named by `SUBLANE_DATA`, and for
//! a part an adapter.

use std::path::PathBuf;

use sublane::Device;
use sublane::device::DeviceOptions;
use sublane::motifs::graph::ReadOptions;
use sublane::motifs::{Anchor, CountOptions, Engine, Method, Motif, Prune, TemporalGraph, Ties, Value, count, exact, plan};
use sublane::progress::Work;

const DAY: i64 = 86_400;

fn graph() -> TemporalGraph {
    let folder = std::env::var_os("SUBLANE_DATA").expect("set SUBLANE_DATA to the absolute path of the data folder");
    let path = PathBuf::from(folder).join("graphs/CollegeMsg.txt.gz");
    TemporalGraph::open(path, &ReadOptions::default(), &Work::quiet()).expect("readable").0
}

fn exactly(graph: &TemporalGraph, motif: &Motif, delta: i64, ties: Ties) -> u64 {
    exact::backtrack(graph, motif, delta, ties, &Work::quiet()).expect("counts").value
}

/// The count of all paths of an anchor.
fn enumerated(graph: &TemporalGraph, motif: &Motif, anchor: &Anchor, options: CountOptions) -> u64 {
    let options = CountOptions { method: Method::Enumerate, anchor: Some(anchor.clone()), ..options };
    let counted = count(graph, motif, &options, &Work::quiet()).expect("counts");
    match counted.value {
        Value::Exact(value) => value,
        other => panic!("{other:?} is not exact"),
    }
}

const PRUNINGS: [Prune; 3] = [Prune::Off, Prune::Pairs, Prune::Rows];

/// Delta of the test of a motif: the motifs on three vertices are rare in a day.
fn delta(motif: &Motif) -> i64 {
    if motif.name().starts_with("M3") { 7 * DAY } else { DAY }
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn every_path_anchor_enumerates_to_the_exact_count() {
    let graph = graph();
    let mut anchors = 0;
    for motif in Motif::all_named() {
        let delta = delta(&motif);
        let expected = exactly(&graph, &motif, delta, Ties::Order);
        for anchor in Anchor::all_paths(&motif) {
            for prune in PRUNINGS {
                let options = CountOptions { prune: Some(prune), ..CountOptions::new(delta) };
                assert_eq!(enumerated(&graph, &motif, &anchor, options), expected, "{} {anchor} {prune:?}", motif.name());
            }
            anchors += 1;
        }
    }
    assert!(anchors > 150, "{anchors}");
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn the_planned_tree_enumerates_to_the_exact_count() {
    let graph = graph();
    for name in ["E5", "E6", "E8", "E11", "E12", "E13"] {
        let motif = Motif::parse(name).expect("named");
        for ties in [Ties::Order, Ties::Strict] {
            let options = CountOptions { ties, method: Method::Samples(1_000_000), ..CountOptions::new(DAY) };
            let anchor = plan(&graph, &motif, &options, &Work::quiet()).expect("plans").anchor;
            assert!(anchor.is_tree(), "{name}: {anchor}");
            let options = CountOptions { prune: Some(Prune::Off), ..options };
            assert_eq!(enumerated(&graph, &motif, &anchor, options), exactly(&graph, &motif, DAY, ties), "{name} {anchor} {ties:?}");
        }
    }
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn the_cheapest_anchors_of_the_longest_motif_agree_at_four_weeks() {
    let graph = graph();
    let motif = Motif::parse("M4-4").expect("named");
    let delta = 28 * DAY;
    let expected = exactly(&graph, &motif, delta, Ties::Order);
    assert!(expected > 0);
    let table = plan(&graph, &motif, &CountOptions::new(delta), &Work::quiet()).expect("plans");
    let mut rows: Vec<_> = table.rows.iter().filter_map(|row| Some((row.w?, &row.anchor))).collect();
    rows.sort_by_key(|(w, _)| *w);
    for (w, anchor) in rows.into_iter().take(3) {
        for prune in PRUNINGS {
            let options = CountOptions { prune: Some(prune), ..CountOptions::new(delta) };
            assert_eq!(enumerated(&graph, &motif, anchor, options), expected, "{anchor} with {w} paths, {prune:?}");
        }
    }
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn the_adapter_enumerates_to_the_exact_count_too() {
    let graph = graph();
    let device = Device::open(&DeviceOptions::from_env()).expect("an adapter");
    for name in ["M3-0", "M4-0", "M4-1", "M4-2", "M4-3", "clique4", "E3", "E5", "E7", "E11", "G11", "G42", "G66"] {
        let motif = Motif::parse(name).expect("named");
        let delta = delta(&motif);
        // Trees take minutes on software Vulkan, so each is counted under one policy; their numbering is compared with the processor's under both
        // beside the code.
        let policies: &[Ties] = match name {
            "E5" => &[Ties::Strict],
            "E11" => &[Ties::Order],
            _ => &[Ties::Order, Ties::Strict],
        };
        for &ties in policies {
            let options = CountOptions { ties, method: Method::Enumerate, engine: Engine::Gpu(device.clone()), ..CountOptions::new(delta) };
            let counted = count(&graph, &motif, &options, &Work::quiet()).expect("counts");
            assert_eq!(counted.value, Value::Exact(exactly(&graph, &motif, delta, ties)), "{name} {ties:?}");
        }
    }
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn pruning_by_rows_leaves_a_fiftieth_of_the_paths() {
    let graph = graph();
    let motif = Motif::parse("M4-1").expect("named");
    let anchor = Anchor::parse("4:0,8", &motif).expect("a path");
    let counted =
        count(&graph, &motif, &CountOptions { anchor: Some(anchor), ..CountOptions::new(28 * DAY) }, &Work::quiet()).expect("counts");
    let (w, pruned) = (counted.w.expect("numbered"), counted.w_pruned.expect("numbered"));
    assert_eq!(w, 274_818_149);
    assert!(pruned * 50 <= w, "{pruned} of {w}");
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn paths_of_the_authors_anchors_are_as_many_as_published() {
    let graph = graph();
    let cases = [
        ("M3-0", "4:0", 436_115),
        ("M4-1", "4:0,8", 9_211_391),
        ("M4-2", "0:3,5", 6_108_335),
        ("M4-3", "3:0,5", 6_192_224),
        ("M4-4", "0:4,9", 7_257_315),
        ("M4-0", "1:0,2", 4_449_469),
    ];
    for (name, anchor, expected) in cases {
        let motif = Motif::parse(name).expect("named");
        let anchor = Some(Anchor::parse(anchor, &motif).expect("a path"));
        let options = CountOptions { anchor, prune: Some(Prune::Off), method: Method::Samples(1000), ..CountOptions::new(DAY) };
        assert_eq!(count(&graph, &motif, &options, &Work::quiet()).expect("counts").w, Some(expected), "{name}");
    }
}
