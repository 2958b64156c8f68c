//! Users' own kernels as operations: in captured graphs, in eager and compiled tensors, beside what is fused, in the caches.

use sublane::capture::{CaptureOptions, Context, Tensor, capture, compile as compile_fn};
use sublane::compiler::cache::Key;
use sublane::compiler::{CompileOptions, Compiled, Mode, compile};
use sublane::device::DeviceOptions;
use sublane::graph::{Graph, TensorType};
use sublane::kernels_gen::{Formula, Target};
use sublane::ops::custom::{CustomKernel, CustomOp, Launch, Workgroups};
use sublane::ops::prelude::*;
use sublane::ops::{RefTensor, Tolerance, reference_graph};
use sublane::{DType, Device, Error, ErrorKind, HostTensor, Result, Session};

/// `out[r, c] = x[r, columns - 1 - c] + factor * bias[c]`, and a loop that adds nothing, so that there is a bound to state.
const MIRROR: &str = "
struct Params { rows: u32, columns: u32, factor: f32, idle: u32, }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;
@compute @workgroup_size(64)
fn mirror(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = (wid.x + wid.y * grid.x) * 64u + lane;
    if (i >= params.rows * params.columns) { return; }
    let c = i % params.columns;
    var sum = params.factor * bias[c];
    for (var k = 0u; k < params.idle; k++) { sum += 0.0 * f32(k); }
    y[i] = x[i - c + params.columns - 1u - c] + sum;
}";

fn kernel(wgsl: &str) -> CustomKernel {
    CustomKernel {
        name: "mirror".into(),
        wgsl: wgsl.into(),
        max_iterations: Formula::Param(3) + Formula::Const(1),
        flops: Formula::Const(0),
    }
}

fn rule(factor: f32, idle: u32) -> impl Fn(&[&TensorType]) -> Result<Launch> {
    move |inputs: &[&TensorType]| {
        let (x, bias) = (inputs[0], inputs[1]);
        if x.rank() != 2 || bias.shape != x.shape[1..] || x.dtype != DType::F32 || bias.dtype != DType::F32 {
            return Err(Error::invalid(format!("x f32[rows, columns] and bias f32[columns] are taken, {x} and {bias} are given")));
        }
        Ok(Launch {
            result: x.clone(),
            workgroups: Workgroups::Linear(x.num_elems().div_ceil(64) as u64),
            params: vec![x.shape[0] as u32, x.shape[1] as u32, factor.to_bits(), idle],
        })
    }
}

fn mirror_with(factor: f32, idle: u32) -> CustomOp {
    let op = CustomOp::new(kernel(MIRROR), rule(factor, idle)).expect("an operation");
    op.with_reference(move |inputs: &[&RefTensor]| {
        let (x, bias) = (inputs[0], inputs[1]);
        let columns = x.shape[1];
        let value = |i: usize| x.data[i - i % columns + columns - 1 - i % columns] + f64::from(factor) * bias.data[i % columns];
        RefTensor::new(DType::F32, x.shape.clone(), (0..x.data.len()).map(value).collect())
    })
}

fn mirror(factor: f32) -> CustomOp {
    mirror_with(factor, 3)
}

fn numbers(shape: &[usize], phase: f32) -> HostTensor {
    let count: usize = shape.iter().product();
    HostTensor::new(shape, (0..count).map(|i| (i as f32 * 0.61 + phase).sin()).collect::<Vec<f32>>()).expect("a tensor")
}

fn device() -> Device {
    Device::open(&DeviceOptions::from_env()).expect("a device")
}

/// The kernel between fusable neighbours, on views, on constants that need no memory, on one tensor twice, and its result used twice.
fn model() -> Graph {
    capture(|t| {
        let (x, b) = (t.input("x", [12, 10], DType::F32)?, t.input("b", [10], DType::F32)?);
        let first = mirror(2.0).apply(&[&x.mul_scalar(0.5)?.tanh()?, &b])?;
        let turned = mirror(-1.0).apply(&[&first.transpose(&[1, 0])?, &t.constant(numbers(&[12], 0.0))?])?;
        let ones = t.constant(HostTensor::new([10], vec![1f32; 10])?)?;
        let repeated = mirror(1.0).apply(&[&first.reshape(&[12, 10])?, &ones])?;
        let square = mirror(1.0).apply(&[&x.slice(&[0, 0], &[1, 10])?, &x.slice(&[1, 0], &[2, 10])?.reshape(&[10])?])?;
        let sum = repeated.add(&turned.transpose(&[1, 0])?)?.add(&ones)?.relu()?;
        Ok([("sum", sum), ("mean", first.mean(&[1], false)?), ("first", first), ("square", square), ("repeated", repeated)])
    })
    .expect("captured")
}

fn compiled(graph: &Graph, target: &Target, mode: Mode) -> Compiled {
    compile(graph, target, &CompileOptions { mode, ..CompileOptions::default() }).expect("compiles")
}

#[test]
fn a_kernel_runs_between_what_is_fused_in_both_modes_and_agrees_with_its_reference() {
    let (device, graph) = (device(), model());
    let inputs = [("x", numbers(&[12, 10], 1.0)), ("b", numbers(&[10], 2.0))];
    let expected = reference_graph(&graph, &inputs).expect("reference");
    for mode in [Mode::Compiled, Mode::Eager] {
        let session = Session::load(&device, &compiled(&graph, &device.target(), mode)).expect("loads");
        for _ in 0..2 {
            let outputs = session.run(&[("x", &inputs[0].1), ("b", &inputs[1].1)]).expect("runs");
            for ((name, got), (_, want)) in outputs.iter().zip(&expected) {
                Tolerance::Norm(1e-5).check(got, want).unwrap_or_else(|e| panic!("{} {name}: {e}", mode.name()));
            }
        }
    }
}

#[test]
fn the_plan_says_what_the_kernel_is_and_why_its_neighbours_are_not_in_it() {
    let compiled = compiled(&model(), &Target::webgpu(), Mode::Compiled);
    let own: Vec<_> = compiled.kernels().iter().filter(|k| k.name.starts_with("mirror_")).collect();
    assert_eq!(own.len(), 4);
    assert!(own.iter().all(|k| k.name == own[0].name && k.origins == ["mirror"]), "one text is one kernel: {own:?}");
    // x, bias and the result, each once.
    assert_eq!(own[0].bytes, 4 * (120 + 10 + 120));
    assert_eq!(compiled.plan().kernels.iter().filter(|k| k.name == own[0].name).count(), 1);
    assert_eq!(compiled.groups().iter().filter(|g| g.kind == "custom").count(), 4);
    let reasons: Vec<&str> = compiled.refusals().iter().map(|r| r.reason.as_str()).collect();
    assert!(reasons.contains(&"a user's kernel reads its operands from memory"), "{reasons:?}");
    assert!(reasons.contains(&"a user's kernel stores its result") || reasons.iter().any(|r| r.contains("several kernels")), "{reasons:?}");
}

#[test]
fn compiled_functions_take_it_at_several_sizes_and_see_its_parameters() {
    let context = Context::new(&device());
    for mode in [Mode::Eager, Mode::Compiled] {
        let factor = std::cell::Cell::new(1.0f32);
        let f = |args: &[Tensor]| mirror(factor.get()).apply(&[&args[0].mul_scalar(2.0)?, &args[1]])?.sub(&args[1]);
        let function = compile_fn(&context, CaptureOptions::default(), f);
        for (rows, scale) in [(4, 1.0), (4, 1.0), (8, 1.0), (12, 1.0), (16, 1.0), (1, 1.0), (12, 0.25), (12, -3.0)] {
            factor.set(scale);
            let (x, b) = (numbers(&[rows, 10], rows as f32), numbers(&[10], 0.5));
            let args = [context.tensor(&x).expect("x"), context.tensor(&b).expect("b")];
            let got = match mode {
                Mode::Compiled => function.call(&args).expect("runs")[0].to_host(),
                Mode::Eager => f(&args).expect("runs").to_host(),
            };
            let graph = capture(|t| {
                let (x, b) = (t.input("x", [rows, 10], DType::F32)?, t.input("b", [10], DType::F32)?);
                mirror(scale).apply(&[&x.mul_scalar(2.0)?, &b])?.sub(&b)
            });
            let want = reference_graph(&graph.expect("captured"), &[("x", x), ("b", b)]).expect("reference").remove(0).1;
            Tolerance::Norm(1e-5).check(&got.expect("read"), &want).unwrap_or_else(|e| panic!("{} {rows} x {scale}: {e}", mode.name()));
        }
    }
}

#[test]
fn a_result_without_elements_launches_nothing_and_many_workgroups_are_folded() {
    let op = mirror(1.0);
    let graph =
        |rows: usize| capture(|t| op.apply(&[&t.input("x", [rows, 4], DType::F32)?, &t.constant(numbers(&[4], 0.0))?])).expect("captured");
    let device = device();
    let session = Session::load(&device, &compiled(&graph(0), &device.target(), Mode::Compiled)).expect("loads");
    assert_eq!(session.run(&[("x", &numbers(&[0, 4], 0.0))]).expect("runs").single().expect("one").shape(), [0, 4]);
    // 70,000 workgroups of 64.
    let rows = 70_000 * 16;
    let session = Session::load(&device, &compiled(&graph(rows), &device.target(), Mode::Compiled)).expect("loads");
    let x = numbers(&[rows, 4], 0.0);
    let got = session.run(&[("x", &x)]).expect("runs").single().expect("one");
    let (x, got, bias) = (x.to_f64(), got.to_f64(), numbers(&[4], 0.0).to_f64());
    for i in [0, 5, 64 * 65_535 + 3, rows * 4 - 1] {
        assert!((got[i] - (x[i - i % 4 + 3 - i % 4] + bias[i % 4])).abs() < 1e-6, "element {i}");
    }
}

#[test]
fn a_dispatch_past_the_loop_bound_is_refused() {
    let device = device();
    let Some(bound) = device.info().limits.max_loop_iterations else { return };
    let op = mirror_with(1.0, u32::try_from(bound).expect("a bound"));
    let graph = capture(|t| op.apply(&[&t.input("x", [2, 4], DType::F32)?, &t.input("b", [4], DType::F32)?])).expect("captured");
    let error = Session::load(&device, &compiled(&graph, &device.target(), Mode::Compiled)).expect_err("refused");
    assert!(error.kind() == ErrorKind::Limit && error.to_string().contains("loop iterations"), "{error}");
}

#[test]
fn what_does_not_fit_is_an_error_that_says_what_would() {
    let refused = |wgsl: String, part: &str| {
        let error = CustomOp::new(kernel(&wgsl), rule(1.0, 0)).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Shader);
        assert!(error.to_string().contains(part), "{error}");
    };
    refused(MIRROR.replace("let c =", "let c :"), "is not WGSL");
    refused(MIRROR.replace("fn mirror(", "fn main("), "name the operation after the entry point");
    refused(MIRROR.replace("var<uniform> params", "var<storage, read_write> params"), "then its one result");
    refused(MIRROR.replace("idle: u32, }", "}").replace("params.idle", "3u"), "takes word 3 of the parameter block");

    let apply = |op: &CustomOp, shapes: &[&[usize]]| {
        let graph = capture(|t| {
            let inputs = shapes.iter().enumerate().map(|(i, s)| t.input(format!("x{i}"), *s, DType::F32)).collect::<Result<Vec<_>>>()?;
            op.apply(&inputs.iter().collect::<Vec<_>>())
        });
        let error = graph.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        error.to_string()
    };
    let message = apply(&mirror(1.0), &[&[2, 3]]);
    assert!(message.contains("`mirror` reads 2 operands (x, bias), given are 1: f32[2, 3]"), "{message}");
    let message = apply(&mirror(1.0), &[&[2, 3], &[4]]);
    assert!(message.contains("mirror: x f32[rows, columns] and bias f32[columns] are taken, f32[2, 3] and f32[4] are given"), "{message}");
    let short = CustomOp::new(kernel(MIRROR), |inputs: &[&TensorType]| {
        Ok(Launch { result: inputs[0].clone(), workgroups: Workgroups::Grid([1; 3]), params: vec![1] })
    });
    let message = apply(&short.expect("an operation"), &[&[2, 3], &[3]]);
    assert!(message.contains("gives 1 parameter words, the text's parameter block has 4"), "{message}");

    // What would run on no workgroup, or read past its tensor; without elements nothing runs.
    let with = |text: String, workgroups: Workgroups| {
        CustomOp::new(kernel(&text), move |inputs: &[&TensorType]| Ok(Launch { workgroups, ..rule(1.0, 0)(inputs)? }))
            .expect("an operation")
    };
    for (workgroups, given) in [(Workgroups::Linear(0), "Linear(0)"), (Workgroups::Grid([3, 0, 1]), "Grid([3, 0, 1])")] {
        let message = apply(&with(MIRROR.into(), workgroups), &[&[2, 3], &[3]]);
        assert!(message.contains(&format!("`mirror` gives {given}")) && message.contains("f32[2, 3]"), "{message}");
        let none = capture(|t| {
            let inputs = [t.input("x", [0, 3], DType::F32)?, t.input("b", [3], DType::F32)?];
            with(MIRROR.into(), workgroups).apply(&[&inputs[0], &inputs[1]])
        });
        none.expect("nothing is to be written");
    }
    for (name, from) in [("x", "x: array<f32>"), ("bias", "bias: array<f32>"), ("y", "y: array<f32>")] {
        let fixed = |count: usize| with(MIRROR.replace(from, &from.replace("f32", &format!("f32, {count}"))), Workgroups::Linear(1));
        let message = apply(&fixed(100), &[&[2, 4], &[4]]);
        assert!(message.contains(&format!("`mirror` declares `{name}` with at least 400 bytes")), "{message}");
        let fits = capture(|t| fixed(4).apply(&[&t.input("x", [2, 4], DType::F32)?, &t.input("b", [4], DType::F32)?])).expect("captured");
        let device = device();
        let session = Session::load(&device, &compiled(&fits, &device.target(), Mode::Compiled)).expect("loads");
        session.run(&[("x", &numbers(&[2, 4], 0.0)), ("b", &numbers(&[4], 0.0))]).expect("runs");
    }

    // A target that lacks what the text needs, and one with too few buffers.
    let compile_for = |op: &CustomOp, target: &Target| {
        let graph = capture(|t| op.apply(&[&t.input("x", [2, 4], DType::F32)?, &t.input("b", [4], DType::F32)?])).expect("captured");
        compile(&graph, target, &CompileOptions::default()).expect_err("refused").to_string()
    };
    let halves = MIRROR.replace("\nstruct", "enable f16;\nstruct").replace("var sum = params.factor", "var sum = f32(f16(params.factor))");
    let halves = CustomOp::new(kernel(&halves), rule(1.0, 0)).expect("an operation");
    let message = compile_for(&halves, &Target::webgpu());
    assert!(message.contains("needs 16-bit floats, which the target does not have"), "{message}");
    let few = Target { max_storage_buffers: 2, ..Target::webgpu() };
    let message = compile_for(&mirror(1.0), &few);
    assert!(message.contains("binds 3 storage buffers, the target takes 2"), "{message}");
    let wide = CustomOp::new(kernel(MIRROR), |inputs: &[&TensorType]| {
        Ok(Launch { result: inputs[0].clone(), workgroups: Workgroups::Grid([70_000, 1, 1]), params: vec![0; 4] })
    });
    let message = compile_for(&wide.expect("an operation"), &Target::webgpu());
    assert!(message.contains("takes 65535 in a dimension; give `Workgroups::Linear`"), "{message}");

    // No reference was given, or one of another type.
    let inputs = [("x", numbers(&[2, 4], 0.0)), ("b", numbers(&[4], 0.0))];
    let ask = |op: &CustomOp| {
        let graph = capture(|t| op.apply(&[&t.input("x", [2, 4], DType::F32)?, &t.input("b", [4], DType::F32)?])).expect("captured");
        reference_graph(&graph, &inputs).expect_err("refused").to_string()
    };
    let bare = CustomOp::new(kernel(MIRROR), rule(1.0, 0)).expect("an operation");
    let message = ask(&bare);
    assert!(message.contains("`mirror` has no reference value; give it one with `CustomOp::with_reference`"), "{message}");
    let message = ask(&bare.with_reference(|inputs: &[&RefTensor]| Ok(inputs[1].clone())));
    assert!(message.contains("gives f32[4] with 4 elements, its rule says f32[2, 4]"), "{message}");
}

#[test]
fn graphs_are_told_apart_by_text_and_parameters() {
    let graph =
        |op: CustomOp| capture(|t| op.apply(&[&t.input("x", [2, 4], DType::F32)?, &t.input("b", [4], DType::F32)?])).expect("captured");
    let key = |op: CustomOp| Key::new(&graph(op), &Target::webgpu(), &CompileOptions::default(), "").text;
    let other = |from: &str, to: &str| CustomOp::new(kernel(&MIRROR.replace(from, to)), rule(1.0, 3)).expect("an operation");
    assert_eq!(key(mirror(1.0)), key(other("", "")));
    assert_ne!(key(mirror(1.0)), key(mirror(2.0)), "a parameter");
    assert_ne!(key(mirror(1.0)), key(other("= x[", "= -x[")), "the text");
    // Two texts of one name stand side by side.
    let both = capture(|t| {
        let (x, b) = (t.input("x", [2, 4], DType::F32)?, t.input("b", [4], DType::F32)?);
        Ok([("plus", mirror(1.0).apply(&[&x, &b])?), ("minus", other("= x[", "= -x[").apply(&[&x, &b])?)])
    });
    let device = device();
    let session = Session::load(&device, &compiled(&both.expect("captured"), &device.target(), Mode::Compiled)).expect("loads");
    let outputs = session.run(&[("x", &numbers(&[2, 4], 1.0)), ("b", &HostTensor::zeros(DType::F32, [4]).expect("zeros"))]).expect("runs");
    let (plus, minus) = (outputs.get("plus").expect("plus").to_f64(), outputs.get("minus").expect("minus").to_f64());
    assert!(plus.iter().zip(&minus).all(|(a, b)| *a == -b && *a != 0.0), "{plus:?} {minus:?}");
}

#[test]
fn a_comment_is_not_taken_for_the_entry_point() {
    let text = MIRROR.replace("fn mirror(", "// fn mirror(\nfn /* not fn mirror( */ mirror /**/ (");
    let op = CustomOp::new(kernel(&text), rule(2.0, 0)).expect("an operation");
    let device = device();
    let graph = |op: &CustomOp| capture(|t| op.apply(&[&t.input("x", [2, 4], DType::F32)?, &t.input("b", [4], DType::F32)?]));
    let run = |op: &CustomOp| {
        let session = Session::load(&device, &compiled(&graph(op).expect("captured"), &device.target(), Mode::Compiled)).expect("loads");
        session.run(&[("x", &numbers(&[2, 4], 0.0)), ("b", &numbers(&[4], 1.0))]).expect("runs")
    };
    let plain = CustomOp::new(kernel(MIRROR), rule(2.0, 0)).expect("an operation");
    assert_eq!(run(&op).single().expect("one"), run(&plain).single().expect("one"));
}
