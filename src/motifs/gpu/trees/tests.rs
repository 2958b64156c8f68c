//! Trees on the device against trees on the processor and against backtracking. These tests need an adapter.

use super::*;
use crate::device::DeviceOptions;
use crate::motifs::exact::backtrack;
use crate::motifs::graph::GenerateOptions;
use crate::motifs::paths::{Draws, Numbered};
use crate::progress::Work;
use kernels_gen::threefry::Key;

/// A graph on a device, with its keys for one delta and tie policy.
struct Uploaded<'g> {
    graph: GpuGraph,
    lists: GpuLists,
    gpu_keys: GpuKeys,
    keys: Keys<'g>,
    max_bytes: u64,
}

impl<'g> Uploaded<'g> {
    fn new(device: &Device, graph: &'g TemporalGraph, delta: i64, ties: Ties) -> Self {
        let keys = Keys::new(graph, delta, ties);
        Uploaded {
            graph: GpuGraph::upload(device, graph, true).expect("fits"),
            lists: GpuLists::upload(device, graph).expect("fits"),
            gpu_keys: GpuKeys::upload(device, graph, &keys).expect("fits"),
            keys,
            max_bytes: u64::MAX,
        }
    }

    fn number(&self, motif: &Motif, anchor: &Anchor) -> Result<GpuPaths> {
        GpuPaths::number_tree(&self.graph, &self.lists, &self.gpu_keys, &Recipe::new(motif, anchor), self.max_bytes)
    }
}

fn open() -> Device {
    Device::open(&DeviceOptions::from_env()).expect("these tests need an adapter")
}

fn generated(seed: u64, edges: u64, vertices: u32) -> TemporalGraph {
    let options = GenerateOptions { vertices, seed, span: 4 * edges, gap: 40, loops: 0.05, ties: 0.2, ..GenerateOptions::new(edges) };
    TemporalGraph::generate(&options, &Work::quiet()).expect("generates")
}

fn motif(text: &str) -> Motif {
    Motif::parse(text).expect("a motif")
}

/// Draws of replicates from `num_strata` strata: all from the same ones, or (`apart`) each without the strata before its number.
fn replicates(total: u64, num_strata: u64, replicates: u64, apart: bool) -> Vec<Draws> {
    let width = total.div_ceil(num_strata).max(1);
    let end = total.div_ceil(width);
    let draws = |r: u64| Draws { strata: Strata { width, key: Key::new(3).stream(r) }, range: if apart { r.min(end) } else { 0 }..end };
    (0..replicates).map(draws).collect()
}

#[test]
fn trees_on_the_device_are_those_on_the_processor() {
    let device = open();
    let work = Work::quiet();
    let part = work.part("tests", 0);
    let (mut nonzero, mut drawn) = (0, 0);
    for (seed, edges, vertices, delta) in [(1, 700, 30, 150), (2, 260, 9, 60)] {
        let graph = generated(seed, edges, vertices);
        for ties in [Ties::Order, Ties::Strict] {
            let uploaded = Uploaded::new(&device, &graph, delta, ties);
            for text in ["E5", "E6", "E8", "E11", "E12", "E13", "0>1 0>2 0>3", "1>0 0>2 0>3 3>2", "0>1 1>0"] {
                let motif = motif(text);
                let exact = backtrack(&graph, &motif, delta, ties, &work).expect("counts").value;
                nonzero += u64::from(exact > 0);
                // From the middle and from the ends.
                let anchors = Anchor::all_trees(&motif, usize::MAX);
                let some = [0, 1, anchors.len() / 2, anchors.len() - 1].map(|at| at.min(anchors.len() - 1));
                for (n, anchor) in some.into_iter().map(|at| &anchors[at]).enumerate() {
                    let what = format!("{text} {anchor}, seed {seed}, {ties:?}");
                    let paths = Paths::new(&graph, &uploaded.keys, &motif, anchor, Prune::Off, u64::MAX).expect("numbers");
                    let gpu = uploaded.number(&motif, anchor).expect("numbers");
                    assert_eq!(gpu.total(), paths.total(), "{what}");
                    let all = replicates(paths.total(), u64::MAX, 1, false);
                    let found = gpu.tallies(&all, &part).expect("counts");
                    assert_eq!(found[0].sum, exact, "{what}, enumerated");
                    assert_eq!(found, paths.tallies(&all, &part).expect("counts"), "{what}, enumerated");
                    // One more than draw together.
                    let some = replicates(paths.total(), 3_001 + n as u64, [3, 9][n % 2], n % 2 == 0);
                    let found = gpu.tallies(&some, &part).expect("counts");
                    drawn += found.iter().map(|tally| tally.nonzero).sum::<u64>();
                    assert_eq!(found, paths.tallies(&some, &part).expect("counts"), "{what}, sampled");
                }
            }
        }
    }
    assert!(nonzero >= 30 && drawn > 1_000, "{nonzero} motifs have matches, {drawn} draws found one");
}

#[test]
fn numbers_past_32_bits_are_drawn_and_those_past_64_refused() {
    let device = open();
    let work = Work::quiet();
    let part = work.part("tests", 0);
    let graph = generated(5, 3_000, 60);
    // A path from its middle, and a star: seven edges each.
    for (text, tree) in [("0>1 1>2 2>3 3>4 4>5 5>6 6>7", "tree:3,0,1,2,4,5,6"), ("0>1 2>0 0>3 4>0 0>5 6>0 0>7", "tree:3,0,1,2,4,5,6")] {
        let motif = motif(text);
        let anchor = Anchor::parse(tree, &motif).expect("a tree");
        for ties in [Ties::Order, Ties::Strict] {
            let uploaded = Uploaded::new(&device, &graph, 12_000, ties);
            let paths = Paths::new(&graph, &uploaded.keys, &motif, &anchor, Prune::Off, u64::MAX).expect("numbers");
            let gpu = uploaded.number(&motif, &anchor).expect("numbers");
            assert!(gpu.most_paths == u64::MAX && paths.total() > 1 << 33, "{}", paths.total());
            assert_eq!(gpu.total(), paths.total());
            let draws = replicates(paths.total(), 20_000, 2, false);
            let found = gpu.tallies(&draws, &part).expect("counts");
            assert!(found.iter().all(|tally| tally.nonzero > 0), "{found:?}");
            assert_eq!(found, paths.tallies(&draws, &part).expect("counts"), "{text} {ties:?}");
        }
    }
    // A hub that all edges leave: a centre has about 3,000 to the power of 6 trees.
    let hub = TemporalGraph::from_edges((1..6_000).map(|v| (0, v, i64::from(v))).collect(), 6_000, 0).expect("builds");
    let motif = motif("0>1 0>2 0>3 0>4 0>5 0>6 0>7");
    let anchor = Anchor::parse("tree:3,0,1,2,4,5,6", &motif).expect("a tree");
    let uploaded = Uploaded::new(&device, &hub, i64::MAX, Ties::Order);
    let on_processor = Paths::new(&hub, &uploaded.keys, &motif, &anchor, Prune::Off, u64::MAX).err().expect("refused");
    let on_device = uploaded.number(&motif, &anchor).err().expect("refused");
    assert_eq!((on_device.kind(), on_device.to_string()), (ErrorKind::Limit, on_processor.to_string()));
}

#[test]
fn empty_graphs_have_no_trees_and_tables_that_do_not_fit_are_refused() {
    let device = open();
    let work = Work::quiet();
    let part = work.part("tests", 0);
    let motif = motif("E5");
    let anchor = Anchor::parse("tree:1,0,2,3", &motif).expect("a tree");
    for edges in [vec![], vec![(0, 1, 5)], vec![(0, 0, 1), (1, 1, 1)]] {
        let graph = TemporalGraph::from_edges(edges, 2, 0).expect("builds");
        let uploaded = Uploaded::new(&device, &graph, 10, Ties::Strict);
        let gpu = uploaded.number(&motif, &anchor).expect("numbers");
        assert_eq!(gpu.total(), 0);
        let draws = [Draws { strata: Strata { width: 1, key: Key::new(1) }, range: 0..10 }];
        assert_eq!(gpu.tallies(&draws, &part).expect("counts"), [crate::motifs::paths::Tally::default()]);
    }
    let graph = generated(1, 50, 16);
    let mut uploaded = Uploaded::new(&device, &graph, 10, Ties::Order);
    uploaded.max_bytes = 1_000;
    let refused = uploaded.number(&motif, &anchor).err().expect("refused");
    assert_eq!(refused.kind(), ErrorKind::OutOfMemory);
    assert!(refused.to_string().contains("1000 may be used"), "{refused}");
    uploaded.max_bytes = u64::MAX;
    let limit = device.info().limits.max_binding_bytes;
    uploaded.lists.shape.num_edges = (limit / 24 + 1) as u32;
    let refused = uploaded.number(&motif, &anchor).err().expect("refused");
    let bytes = 24 * (limit / 24 + 1);
    assert_eq!(refused.kind(), ErrorKind::Limit);
    assert!(refused.to_string().contains(&format!("windows takes {bytes} bytes")), "{refused}");
}
