//! Random graphs: every pass keeps the value, and the adapter of the machine finds it too, eager and compiled.

mod device_common;
#[path = "graph_common/random.rs"]
mod random;

use device_common::open;
use kernels_gen::Target;
use kernels_gen::threefry::Key;
use proptest::prelude::*;
use random::{Sample, genes, grow, has_composites};
use std::collections::BTreeSet;
use sublane::compiler::{CompileOptions, Mode, OptionalStage, compile, passes};
use sublane::device::{Device, DeviceOptions, LimitsMode};
use sublane::graph::{Graph, ReduceOp, verify};
use sublane::ops::prelude::*;
use sublane::ops::{RefTensor, Tolerance, name, reference_graph};
use sublane::suite::ops::compare_graph_as;
use sublane::{DType, HostTensor, Result};

fn values(graph: &Graph, inputs: &[(String, HostTensor)]) -> Vec<(String, RefTensor)> {
    let named: Vec<(&str, HostTensor)> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    reference_graph(graph, &named).unwrap_or_else(|e| panic!("{e}\n{graph}"))
}

type Pass = (&'static str, fn(&Graph) -> Result<Graph>);

/// Applies the passes one after the other, each to what the one before made, and compares the values after each.
fn keep_the_value(graph: &Graph, inputs: &[(String, HostTensor)], tolerance: Tolerance, passes: &[Pass]) {
    let expected = values(graph, inputs);
    let mut graph = graph.clone();
    for (name, pass) in passes {
        let before = graph.to_string();
        graph = pass(&graph).unwrap_or_else(|e| panic!("{name}: {e}\n{before}"));
        verify(&graph).unwrap_or_else(|faults| panic!("{name}: {faults:?}\n{graph}"));
        for ((output, got), (_, expected)) in values(&graph, inputs).iter().zip(&expected) {
            let checked = got.to_host().and_then(|got| tolerance.check(&got, expected));
            checked.unwrap_or_else(|e| panic!("{name} changes `{output}`: {e}\nfrom\n{before}\nto\n{graph}"));
        }
    }
}

const PASSES: &[Pass] = &[
    ("eliminate_dead_code", passes::eliminate_dead_code),
    ("decompose", passes::decompose),
    ("fold", passes::fold),
    ("fold_scale", passes::fold_scale),
    ("fold again", passes::fold),
    ("merge_products", |g| passes::merge_products(g, &Target::software())),
    ("stage", |g| passes::stage(g, &Target::software())),
    ("fold after stage", passes::fold),
    ("layout", passes::layout),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn passes_keep_the_value(genes in prop::collection::vec(any::<u32>(), 40..300), skipped in any::<u16>()) {
        let Sample { graph, inputs, tolerance } = grow(&genes);
        // What is left out of the passes is drawn; no later pass needs an earlier one but decomposition.
        let passes: Vec<Pass> =
            PASSES.iter().enumerate().filter(|(at, (name, _))| *name == "decompose" || (skipped >> at) & 1 == 0).map(|(_, pass)| *pass).collect();
        keep_the_value(&graph, &inputs, tolerance, &passes);
        prop_assert!(!has_composites(&passes::decompose(&graph).expect("decomposes")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cutting_long_reductions_keeps_the_value(
        rows in 1usize..4,
        cols in 16_000usize..50_000,
        op in prop::sample::select(vec![ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min]),
        dtype in prop::sample::select(vec![DType::F32, DType::I32, DType::I8, DType::U8]),
        outer in any::<bool>(),
    ) {
        let (shape, axis) = if outer { ([cols, rows], 0) } else { ([rows, cols], 1) };
        let graph = sublane::capture::capture(|t| t.input("x", shape, dtype)?.reduce(op, &[axis], true)).expect("records");
        let data: Vec<f64> = (0..rows * cols).map(|i| ((i * 7919) % 101) as f64).collect();
        let inputs = vec![("x".to_string(), HostTensor::from_f64(dtype, shape, &data).expect("fits"))];
        keep_the_value(&graph, &inputs, Tolerance::Exact, &PASSES[1..]);
    }
}

/// Without this the other tests could pass on graphs of nothing.
#[test]
fn the_graphs_hold_most_operations() {
    let (mut names, mut nodes, mut kernels) = (BTreeSet::new(), 0, 0);
    for seed in 0..40 {
        let graph = grow(&genes(seed, num_genes(seed))).graph;
        names.extend(graph.nodes().iter().map(|node| name(&node.op)));
        nodes += graph.nodes().len();
        kernels += compile(&graph, &Target::software(), &CompileOptions::default()).expect("compiles").kernels().len();
    }
    println!("{nodes} nodes, {kernels} kernels, {} operations: {names:?}", names.len());
    assert!(names.len() > 45 && nodes > 1500 && kernels > 200, "{nodes} nodes, {kernels} kernels, operations {names:?}");
}

fn num_genes(seed: u64) -> usize {
    100 + (seed as usize * 37) % 200
}

/// Stages left out of a compilation, drawn by the seed: all of them stay one time in four.
fn without(seed: u64) -> BTreeSet<OptionalStage> {
    let drawn = Key::new(seed).word(0);
    OptionalStage::ALL
        .into_iter()
        .enumerate()
        .filter(|(at, _)| !drawn.is_multiple_of(4) && (drawn >> (8 + at)) & 1 == 1)
        .map(|(_, stage)| stage)
        .collect()
}

/// Odd seeds run at the limits of WebGPU. `SUBLANE_RANDOM_GRAPHS=1000..2000` runs other seeds.
#[test]
fn the_adapter_agrees_eager_and_compiled() {
    let range = std::env::var("SUBLANE_RANDOM_GRAPHS").unwrap_or_else(|_| "0..150".into());
    let (from, to) = range.split_once("..").expect("FROM..TO");
    let seeds = from.parse::<u64>().expect("a number")..to.parse::<u64>().expect("a number");
    let limits = DeviceOptions { limits: LimitsMode::Webgpu, ..DeviceOptions::from_env() };
    let devices = [open(), Device::open(&limits).expect("these tests need an adapter")];
    let mut faults = Vec::new();
    for seed in seeds {
        let Sample { graph, inputs, tolerance } = grow(&genes(seed, num_genes(seed)));
        let device = &devices[seed as usize % 2];
        for mode in [Mode::Eager, Mode::Compiled] {
            let options = CompileOptions { mode, without: without(seed), ..CompileOptions::default() };
            let fault = compare_graph_as(&graph, &inputs, tolerance, device, &options);
            if let Some(fault) = fault.unwrap_or_else(|e| Some(format!("error: {e}"))) {
                faults.push(format!("seed {seed}, {} without {:?}: {fault}\n{graph}", mode.name(), options.without));
            }
        }
    }
    assert!(faults.is_empty(), "{} disagree:\n{}", faults.len(), faults.join("\n"));
}
