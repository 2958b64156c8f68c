//! Compiled graphs at WebGPU's default limits on the null device, which checks every call and runs no kernel. Needs no adapter.

mod graph_common;

use graph_common::*;
use kernels_gen::threefry::Key;
use sublane::compiler::{CompileOptions, Mode, compile};
use sublane::device::Device;
use sublane::graph::Graph;
use sublane::ops::{cases, name};
use sublane::session::Session;
use sublane::suite::samples;
use sublane::{HostTensor, Result};

fn runs(device: &Device, graph: &Graph, inputs: &[(String, HostTensor)], mode: Mode) -> Result<()> {
    let compiled = compile(graph, &device.target(), &CompileOptions { mode, ..CompileOptions::default() })?;
    let session = Session::load(device, &compiled)?;
    let named: Vec<(&str, &HostTensor)> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let outputs = session.run(&named)?;
    for ((name, tensor), (expected, id)) in outputs.iter().zip(graph.outputs()) {
        assert_eq!((name, tensor.shape()), (expected.as_str(), &graph.ty(*id).shape[..]));
    }
    Ok(())
}

#[test]
fn models_load_and_run() {
    let device = Device::noop().expect("opens");
    let key = Key::new(1);
    for graph in [
        samples::mlp(key, 3).expect("records"),
        samples::cnn(key, 2).expect("records"),
        samples::attention_block(key, 2).expect("records"),
        residual_block(16, 16),
        embedding(100, 32, &[7, 9]),
        quantise(&[1001]),
        of_x(&[1 << 22], |x| sublane::ops::prelude::ReduceOps::sum(x, &[0], false)),
    ] {
        let inputs = random_inputs(&graph, 1);
        for mode in [Mode::Compiled, Mode::Eager] {
            runs(&device, &graph, &inputs, mode).unwrap_or_else(|e| panic!("{}: {e}\n{graph}", mode.name()));
        }
    }
}

#[test]
fn every_operation_loads_and_runs() {
    let device = Device::noop().expect("opens");
    let mut seen = std::collections::BTreeMap::new();
    for case in cases() {
        // Three cases of each operation; the validity tests take the kernels of all.
        let count = seen.entry(name(&case.op)).or_insert(0);
        *count += 1;
        if *count <= 3 {
            let (graph, inputs) = (case.graph().expect("builds"), case.inputs(1).expect("made"));
            runs(&device, &graph, &inputs, Mode::Compiled).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        }
    }
    assert!(seen.len() > 60);
}
