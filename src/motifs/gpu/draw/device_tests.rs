//! Draws on the device against draws on the processor, bit for bit. These need an adapter.

use super::*;
use crate::device::{Device, DeviceOptions};
use crate::motifs::graph::GenerateOptions;
use crate::motifs::paths::{Keys, Prune, Strata};
use crate::motifs::{Anchor, Motif, TemporalGraph, Ties};
use crate::progress::{Cancel, Progress, Work};
use kernels_gen::threefry::Key;
use std::sync::atomic::{AtomicU64, Ordering};

fn open() -> Device {
    Device::open(&DeviceOptions::from_env()).expect("these tests need an adapter")
}

/// Counts how often the host found that a round was not done, and the strata drawn from.
#[derive(Default)]
struct Rests {
    rests: AtomicU64,
    strata: AtomicU64,
}

impl Progress for Rests {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, steps: u64) {
        self.rests.fetch_add(u64::from(steps == 0), Ordering::Relaxed);
        self.strata.fetch_add(steps, Ordering::Relaxed);
    }
    fn end(&self) {}
}

/// Compares the sums over `draws`; returns them, and how often a round was not done.
fn compare(what: &str, paths: &Paths<'_>, on_device: &GpuPaths, draws: &[Draws]) -> (Vec<Tally>, u64) {
    let quiet = Work::quiet();
    let expected = paths.tallies(draws, &quiet.part("draws", 0)).expect("nobody cancels");
    let rests = Rests::default();
    let work = Work::new(&rests, Cancel::new());
    let measured = on_device.tallies(draws, &work.part("draws", 0)).expect("the device stays");
    assert_eq!(measured, expected, "{what}");
    (measured, rests.rests.into_inner())
}

/// Replicates of `count` draws, from the middle of all strata of that width on where there are more.
fn replicates(paths: &Paths<'_>, width: u64, count: u64) -> Vec<Draws> {
    let strata = paths.total().div_ceil(width);
    let first = (strata / 2).min(strata.saturating_sub(count));
    let of = |replicate| Draws { strata: Strata { width, key: Key::new(5).stream(replicate) }, range: first..strata.min(first + count) };
    // Not a whole team, and more than one.
    (0..if width == 1 { 1 } else { 3 + 7 * (width % 2) }).map(of).collect()
}

#[test]
fn sums_on_the_device_are_those_on_the_processor() {
    let device = open();
    let options = GenerateOptions { vertices: 150, seed: 3, ties: 0.2, duplicates: 0.05, ..GenerateOptions::new(12_000) };
    let graph = TemporalGraph::generate(&options, &Work::quiet()).expect("makes edges");
    let on_device = GpuGraph::upload(&device, &graph, true).expect("fits");
    let (off, pairs, rows) = (Prune::Off, Prune::Pairs, Prune::Rows);
    let mut saw_chunks = false;
    for (motif, anchor, days, prune, ties, width) in [
        ("M4-1", "4:0,8", 28, off, Ties::Order, 977),
        ("M4-1", "4:0,8", 28, rows, Ties::Order, 1),
        ("M4-1", "1:0,2", 7, pairs, Ties::Strict, 3),
        ("M4-0", "1:0,2", 1, off, Ties::Strict, 1),
        ("M4-0", "0:1,3", 2, rows, Ties::Strict, 2),
        ("M4-2", "0:3,5", 7, pairs, Ties::Order, 5),
        ("M4-3", "3:0,5", 7, rows, Ties::Strict, 1),
        ("M3-0", "4:0", 28, off, Ties::Order, 1),
        ("M3-1", "4:0", 28, pairs, Ties::Order, 1),
        ("clique4", "0:1,4", 14, off, Ties::Order, 31),
        ("E1", "1:0,2", 1, off, Ties::Order, 3),
        ("G12", "0:1", 7, pairs, Ties::Strict, 1),
        ("G51", "0", 7, off, Ties::Order, 1),
    ] {
        let what = format!("{motif} {anchor} {days} days {prune:?} {ties:?} width {width}");
        let motif = Motif::parse(motif).expect("named");
        let anchor = Anchor::parse(anchor, &motif).expect("a path");
        let keys = Keys::new(&graph, days * 86_400, ties);
        let paths = Paths::new(&graph, &keys, &motif, &anchor, prune, u64::MAX).expect("numbers");
        let keys_on_device = GpuKeys::upload(&device, &graph, &keys).expect("fits");
        // Every second case in bindings of some thousand units.
        let max_binding_bytes = if width == 1 { 100_000 } else { u64::MAX };
        let numbered = GpuPaths::upload(&on_device, &keys_on_device, &paths, max_binding_bytes).expect("fits");
        saw_chunks |= numbered.units.len() > 2;
        assert_eq!(numbered.total(), paths.total());
        let (tallies, _) = compare(&what, &paths, &numbered, &replicates(&paths, width, 60_000));
        assert!(tallies.iter().any(|tally| tally.nonzero > 0), "{what}: {tallies:?}");
    }
    assert!(saw_chunks);
}

#[test]
fn long_lists_are_counted_in_several_dispatches() {
    let device = open();
    let edges = (0..20_000).map(|time| if time % 2 == 0 { (0, 1, time) } else { (1, 0, time) });
    let graph = TemporalGraph::from_edges(edges.collect(), 2, 0).expect("builds");
    let keys = Keys::new(&graph, 20_000, Ties::Order);
    let on_device = GpuGraph::upload(&device, &graph, true).expect("fits");
    let keys_on_device = GpuKeys::upload(&device, &graph, &keys).expect("fits");
    let mut most_rests = 0;
    // The first is merged in vectors, the second in arrays: there an element costs so many steps that no adapter is done with a round at once.
    for (num_edges, count) in [(4, 1_000), (10, 64)] {
        let edges: Vec<&str> = ["0>1", "1>0"].into_iter().cycle().take(num_edges).collect();
        let motif = Motif::parse(&edges.join(" ")).expect("edges");
        let anchor = Anchor::parse("0", &motif).expect("a path");
        let paths = Paths::new(&graph, &keys, &motif, &anchor, Prune::Off, u64::MAX).expect("numbers");
        let numbered = GpuPaths::upload(&on_device, &keys_on_device, &paths, u64::MAX).expect("fits");
        let draws = Draws { strata: Strata { width: 3, key: Key::new(1) }, range: 0..count };
        let (tallies, rests) = compare(motif.name(), &paths, &numbered, &[draws]);
        assert_eq!((tallies[0].valid, tallies[0].nonzero), (count, count));
        most_rests = most_rests.max(rests);
    }
    assert!(most_rests > 0, "no round was left unfinished");
}

#[test]
fn the_times_of_a_round_name_its_kernels() {
    let device = open();
    let graph = TemporalGraph::generate(&GenerateOptions::new(4_000), &Work::quiet()).expect("makes edges");
    let motif = Motif::parse("M4-0").expect("named");
    let anchor = Anchor::parse("1:0,2", &motif).expect("a path");
    let keys = Keys::new(&graph, 86_400, Ties::Order);
    let paths = Paths::new(&graph, &keys, &motif, &anchor, Prune::Off, u64::MAX).expect("numbers");
    let numbered = GpuGraph::upload(&device, &graph, true)
        .and_then(|graph_on_device| GpuPaths::upload(&graph_on_device, &GpuKeys::upload(&device, &graph, &keys)?, &paths, u64::MAX))
        .expect("fits");
    let (times, strata) = numbered.phases(&replicates(&paths, 2, 10_000), 2).expect("runs");
    assert!(strata > 0);
    for name in ["draw_paths", "look_up_lists", "scan_apply", "count_chains"] {
        assert!(times.iter().any(|(kernel, ms)| kernel == name && *ms >= 0.0), "`{name}` is not in {times:?}");
    }
}
