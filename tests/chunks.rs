//! Tensors past one binding: the same graphs at targets whose bindings are small, against the reference.

mod device_common;
mod graph_common;

use device_common::open;
use graph_common::*;
use kernels_gen::Target;
use sublane::capture::capture;
use sublane::compiler::{CompileOptions, Mode, compile};
use sublane::device::{Device, DeviceOptions, LimitsMode};
use sublane::graph::Graph;
use sublane::ops::Tolerance;
use sublane::ops::attention::Attention;
use sublane::ops::conv::Conv;
use sublane::ops::prelude::*;
use sublane::ops::reference_graph;
use sublane::plan::Command;
use sublane::session::Session;
use sublane::{DType, ErrorKind, HostTensor};

/// The graph must have its reference value where a binding holds `bytes`, in more dispatches than it takes without that limit.
fn right_in_parts(device: &Device, graph: &Graph, bytes: u64) {
    let inputs = random_inputs(graph, 4);
    let given: Vec<(&str, HostTensor)> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let expected = reference_graph(graph, &given).expect("a reference");
    for mode in [Mode::Compiled, Mode::Eager] {
        let options = CompileOptions { mode, ..CompileOptions::default() };
        let whole = compile(graph, &device.target(), &options).expect("compiles");
        let target = Target { max_binding_bytes: bytes, ..device.target() };
        let compiled = compile(graph, &target, &options).unwrap_or_else(|e| panic!("{}: {e}\n{graph}", mode.name()));
        assert!(compiled.plan().num_dispatches() > whole.plan().num_dispatches(), "{}", compiled.fusion());
        for command in &compiled.plan().commands {
            let Command::Dispatch { bindings, .. } = command else { continue };
            for range in bindings {
                let slot = &compiled.plan().slots[range.slot.0 as usize];
                let len = range.len_bytes.unwrap_or(slot.bytes - range.offset_bytes);
                assert!(len <= bytes && range.offset_bytes % 256 == 0, "{range:?} of `{}`", slot.name);
            }
        }
        let session = Session::load(device, &compiled).expect("loads");
        let named: Vec<(&str, &HostTensor)> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
        let results = session.run(&named).expect("runs");
        for (name, reference) in &expected {
            let got = results.get(name).expect("a result");
            let compared = Tolerance::Norm(5e-5).check(got, reference);
            compared.unwrap_or_else(|e| panic!("{}: `{name}`: {e}\n{graph}", mode.name()));
        }
    }
}

#[test]
fn elementwise_groups_run_in_parts() {
    let device = open();
    right_in_parts(&device, &chain(&[3003]), 4096);
    right_in_parts(&device, &quantise(&[9001]), 4096);
    right_in_parts(&device, &embedding(50, 12, &[700]), 4096);
    // A row for all, neighbours exchanged within each part, and padding inside.
    right_in_parts(
        &device,
        &of_x(&[20, 12, 16], |x| x.transpose(&[0, 2, 1])?.add(&x.constant(weights(&[12], 1))?)?.pad(&[0, 0, 1], &[0, 0, 3], 2.0)?.exp()),
        8192,
    );
    right_in_parts(&device, &of_x(&[1, 64, 32], |x| x.reshape(&[32, 64])?.abs()), 2048);
}

#[test]
fn reductions_of_rows_run_in_parts() {
    let device = open();
    right_in_parts(&device, &softmax(&[100, 64]), 4096);
    right_in_parts(&device, &layer_norm(&[60, 32]), 4096);
    right_in_parts(&device, &of_x(&[130, 40], |x| x.mul(x)?.sum(&[1], false)?.sqrt()), 16384);
    // Cut in two by `stage`, the first of them in parts.
    right_in_parts(&device, &of_x(&[1 << 19], |x| x.abs()?.sum(&[0], false)), 1 << 20);
}

#[test]
fn heroes_run_in_parts() {
    let device = open();
    right_in_parts(&device, &linear_relu(200, 32, 16), 8192);
    right_in_parts(&device, &matmul(&[20, 16, 24], &[20, 24, 8]), 4096);
    right_in_parts(&device, &of_x(&[300, 24], |x| x.matmul(&x.constant(weights(&[24, 20], 1))?)?.gelu()?.mul(&x.sum(&[1], true)?)), 8192);
    right_in_parts(&device, &of_x(&[8, 4, 12, 12], |x| x.conv(&x.constant(weights(&[16, 4, 3, 3], 2))?, None, Conv::new(2))?.relu()), 8192);
    let attended = capture(|t| {
        let (q, k) = (t.input("q", [12, 20, 16], DType::F32)?, t.input("k", [4, 20, 16], DType::F32)?);
        q.attention(&k, &k, None, Attention { scale: None, causal: true })
    });
    right_in_parts(&device, &attended.expect("records"), 8192);
}

#[test]
fn what_cannot_be_cut_is_refused_with_its_reason() {
    let target = Target { max_binding_bytes: 4096, ..Target::webgpu() };
    let refused = |graph: &Graph, parts: &[&str]| {
        let error = compile(graph, &target, &CompileOptions::default()).expect_err("must be refused");
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        for part in parts {
            assert!(error.to_string().contains(part), "`{part}` is not in: {error}");
        }
    };
    refused(&of_x(&[100, 64], |x| x.transpose(&[1, 0])), &["25600", "4096", "Transpose", "keep the rows"]);
    refused(&of_x(&[64, 64], |x| x.sum(&[0], false)), &["16384", "4096"]);
    refused(&of_x(&[2000], |x| x.pad(&[1], &[0], 0.0)), &["Pad"]);
    // The right operand of a product is needed whole.
    refused(&matmul(&[100, 64], &[64, 64]), &["16384", "all of it"]);
    // Rows that are longer than a binding.
    refused(&of_x(&[3, 2000], |x| x.softmax(1)), &["24000", "4096", "rows"]);
}

/// The limits of WebGPU, and a tensor that is larger than one binding by 1,000 bytes.
#[test]
fn a_tensor_past_the_binding_of_webgpu() {
    let device = Device::open(&DeviceOptions { limits: LimitsMode::Webgpu, ..DeviceOptions::from_env() }).expect("an adapter");
    let elems = (128 << 20) + 1000;
    let graph = capture(|t| t.input("x", [elems], DType::U8)?.not()).expect("records");
    let compiled = compile(&graph, &device.target(), &CompileOptions::default()).expect("compiles");
    assert_eq!(compiled.plan().num_dispatches(), 2);
    let session = Session::load(&device, &compiled).expect("loads");
    let data: Vec<u8> = (0..elems).map(|i| (i % 251) as u8).collect();
    let x = HostTensor::new([elems], data).expect("fits");
    let got = session.run(&[("x", &x)]).expect("runs").single().expect("one");
    let (got, given) = (got.as_slice::<u8>().expect("bytes"), x.as_slice::<u8>().expect("bytes"));
    assert!(got.iter().zip(given).all(|(a, b)| *a == !b), "an element is wrong");
}
