//! Real temporal graphs. Needs the data folder, named by `SUBLANE_DATA`.

use std::path::{Path, PathBuf};

use sublane::motifs::TemporalGraph;
use sublane::motifs::graph::{Columns, ReadOptions, ReadSummary};
use sublane::progress::Work;

fn data(name: &str) -> PathBuf {
    let folder = std::env::var_os("SUBLANE_DATA").expect("set SUBLANE_DATA to the absolute path of the data folder");
    Path::new(&folder).join("graphs").join(name)
}

fn open(name: &str, columns: Option<&str>) -> (TemporalGraph, ReadSummary) {
    let columns = columns.map(|c| Columns::parse(c).expect("columns"));
    TemporalGraph::open(data(name), &ReadOptions { columns }, &Work::quiet()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn every_graph_reads_with_the_published_counts() {
    // Edges and vertices are those of the readme of the data and of SNAP's pages; all counts are those of an independent script.
    for (name, columns, edges, vertices, loops, duplicates, ties, distinct_times, pairs, times, decimals) in [
        ("snap-example.txt", None, 25, 6, 0, 0, 0, 25, 12, (5, 201), 0),
        ("CollegeMsg.txt.gz", None, 59_835, 1_899, 0, 37, 1_678, 58_911, 20_296, (1_082_040_961, 1_098_777_142), 0),
        ("email-Eu-core-temporal.txt.gz", None, 332_334, 986, 0, 4_998, 164_368, 207_880, 24_929, (0, 69_459_254), 0),
        ("email-Eu-core-temporal-Dept1.txt.gz", None, 61_046, 309, 0, 896, 31_611, 35_097, 3_031, (0, 69_444_618), 0),
        ("email-Eu-core-temporal-Dept2.txt.gz", None, 46_772, 162, 0, 762, 21_470, 32_340, 1_772, (0, 69_440_727), 0),
        ("email-Eu-core-temporal-Dept3.txt.gz", None, 12_216, 89, 0, 165, 4_649, 8_911, 1_506, (0, 69_317_577), 0),
        ("email-Eu-core-temporal-Dept4.txt.gz", None, 48_141, 142, 0, 616, 26_937, 26_496, 1_375, (0, 69_419_231), 0),
        ("sx-mathoverflow.txt.gz", None, 506_550, 24_818, 116_109, 27, 1_527, 505_784, 239_978, (1_254_192_988, 1_457_262_355), 0),
        ("sx-mathoverflow-a2q.txt.gz", None, 107_581, 21_688, 3_443, 0, 68, 107_547, 90_489, (1_254_192_988, 1_457_261_621), 0),
        (
            "soc-sign-bitcoinotc.csv.gz",
            Some("src,dst,_,t"),
            35_592,
            5_881,
            0,
            0,
            0,
            35_592,
            35_592,
            (128_924_191_172_836, 145_368_432_375_728),
            5,
        ),
    ] {
        let (graph, found) = open(name, columns);
        let sizes = (found.graph.edges, found.graph.vertices, found.graph.loops, found.graph.duplicates);
        assert_eq!(sizes, (edges, vertices, loops, duplicates), "{name}");
        assert_eq!((found.graph.ties, found.graph.distinct_times, found.graph.pairs), (ties, distinct_times, pairs), "{name}");
        assert_eq!((found.graph.times, graph.decimals()), (Some(times), decimals), "{name}");
        assert_eq!((found.lines, found.comments, found.blank, found.header), (edges, 0, 0, false), "{name}");
        assert!(graph.num_edges() as u64 == edges && graph.times().is_sorted(), "{name}");
    }
    let error = TemporalGraph::open(data("soc-sign-bitcoinotc.csv.gz"), &ReadOptions::default(), &Work::quiet()).expect_err("4 columns");
    assert!(error.to_string().contains("--columns src,dst,_,t"), "{error}");
}
