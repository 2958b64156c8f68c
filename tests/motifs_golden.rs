//! The exact counters on real graphs against counts of an independent program. Needs the data folder, named by `SUBLANE_DATA`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sublane::motifs::graph::ReadOptions;
use sublane::motifs::{Motif, TemporalGraph, Ties, exact};
use sublane::progress::Work;

fn data(path: &str) -> PathBuf {
    let folder = std::env::var_os("SUBLANE_DATA").expect("set SUBLANE_DATA to the absolute path of the data folder");
    PathBuf::from(folder).join(path)
}

fn graph(path: &str) -> TemporalGraph {
    TemporalGraph::open(data(path), &ReadOptions::default(), &Work::quiet()).expect("readable").0
}

const COLLEGE: &str = "graphs/CollegeMsg.txt.gz";
const POLICIES: [Ties; 2] = [Ties::Order, Ties::Strict];

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn every_row_of_the_golden_table() {
    let table = std::fs::read_to_string(data("golden/motif_counts.tsv")).expect("readable");
    let graphs = BTreeMap::from([("snapex", graph("graphs/snap-example.txt")), ("CollegeMsg", graph(COLLEGE))]);
    let mut rows = 0;
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [graph, delta, name, edges, order, strict] = columns[..] else { panic!("`{line}` has no six columns") };
        let motif = Motif::parse(&edges.replace('-', ">")).expect("edges").renamed(name);
        for (ties, expected) in POLICIES.into_iter().zip([order, strict]) {
            let delta = delta.parse().expect("a span");
            let counted = exact::backtrack(&graphs[graph], &motif, delta, ties, &Work::quiet()).expect("counts");
            assert_eq!(counted.to_string(), expected, "{graph} {delta} {name} {ties:?}");
        }
        rows += 1;
    }
    assert_eq!(rows, 90);
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn named_motifs_of_a_day_of_college_messages() {
    let order = [
        ("0>1 1>2 2>3", 1_492_281),
        ("M3-0", 0),
        ("M3-1", 0),
        ("M4-0", 64_263),
        ("M4-1", 865_611),
        ("M4-2", 12_388),
        ("M4-3", 3_046),
        ("M4-4", 0),
        ("clique4", 386),
        ("E1", 1_492_281),
        ("E2", 1_508_093),
        ("E3", 55_360),
        ("E4", 64_263),
        ("E5", 5_658_171),
        ("E6", 18_692_649),
        ("E7", 271_023),
        ("E8", 13_062_243),
        ("E9", 43_616),
        ("E10", 3_314),
        ("E11", 106_824),
        ("E12", 326_585),
        ("E13", 291_925),
    ];
    let strict = [("0>1 1>2 2>3", 1_492_028), ("M4-0", 64_101), ("M4-1", 865_611), ("M4-2", 12_379)];
    let graph = graph(COLLEGE);
    for (ties, counts) in POLICIES.into_iter().zip([&order[..], &strict[..]]) {
        for &(name, expected) in counts {
            let motif = Motif::parse(name).expect("motif");
            let counted = exact::backtrack(&graph, &motif, 86_400, ties, &Work::quiet()).expect("counts");
            assert_eq!((counted.value, counted.saturated), (expected, false), "{name} {ties:?}");
        }
    }
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn the_programme_for_small_motifs_agrees_with_backtracking() {
    for (path, delta) in [(COLLEGE, 86_400), ("graphs/email-Eu-core-temporal.txt.gz", 3_600), ("graphs/sx-mathoverflow.txt.gz", 86_400)] {
        let graph = graph(path);
        for ties in POLICIES {
            let counted = exact::grid(&graph, delta, ties, &Work::quiet()).expect("counts");
            for (row, column) in (0..36).map(|at| (at / 6, at % 6)) {
                let motif = Motif::grid(row + 1, column + 1);
                let expected = exact::backtrack(&graph, &motif, delta, ties, &Work::quiet()).expect("counts");
                assert_eq!(counted[row][column], expected, "{path} {} {ties:?}", motif.name());
                assert!(expected.value > 0, "{path} {} {ties:?}", motif.name());
            }
        }
    }
}
