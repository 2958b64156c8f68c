//! Faults that other engines shipped, each a test here: sizes, values and buffers at the edges, on the adapter of the machine.
//!
//! Some have their tests elsewhere: fused and tuned at once, candidates that fail or compute something else, `tune.rs`; tiles of products and
//! convolutions at awkward sizes, `heroes.rs`; tensors past 128 MiB, `chunks.rs`; inputs that are donated, or are one tensor,
//! `compile_fn.rs`; a pipeline that fails, `device_faults.rs`; memory over many calls, `memory.rs`.

mod device_common;
mod graph_common;

use device_common::open;
use graph_common::*;
use kernels_gen::Target;
use sublane::capture::{Traced, capture};
use sublane::compiler::{CompileOptions, Mode, compile};
use sublane::device::{Device, DeviceOptions, DeviceTensor, LimitsMode};
use sublane::graph::{Graph, GraphBuilder, Prim, TensorType, UnaryOp};
use sublane::ops::Tolerance;
use sublane::ops::attention::Attention;
use sublane::ops::conv::Conv;
use sublane::ops::prelude::*;
use sublane::session::Session;
use sublane::suite::ops::compare_graph;
use sublane::{DType, Error, ErrorKind, HostTensor, Result};

/// Sums of products, by the largest of them.
const SUM: Tolerance = Tolerance::Norm(2e-5);
const CLOSE: Tolerance = Tolerance::Relative { relative: 5e-5, absolute: 1e-6 };

/// The graph must have its reference value on the device, eager and compiled.
fn right_on(device: &Device, graph: &Graph, inputs: &[(String, HostTensor)], tolerance: Tolerance) {
    for mode in [Mode::Eager, Mode::Compiled] {
        match compare_graph(graph, inputs, tolerance, device, mode) {
            Ok(None) => {}
            Ok(Some(fault)) => panic!("{}: {fault}\n{graph}", mode.name()),
            Err(error) => panic!("{}: error: {error}\n{graph}", mode.name()),
        }
    }
}

fn right(device: &Device, graph: &Graph, tolerance: Tolerance) {
    right_on(device, graph, &random_inputs(graph, 9), tolerance);
}

/// `f` of an input with the given values.
fn right_of(device: &Device, x: HostTensor, tolerance: Tolerance, f: impl FnOnce(&Traced) -> Result<Traced>) {
    let graph = capture(|t| f(&t.input("x", x.shape(), x.dtype())?)).expect("records");
    right_on(device, &graph, &[("x".into(), x)], tolerance);
}

fn floats(values: &[f32]) -> HostTensor {
    HostTensor::new([values.len()], values.to_vec()).expect("fits")
}

fn at_webgpu_limits() -> Device {
    let options = DeviceOptions { limits: LimitsMode::Webgpu, ..DeviceOptions::from_env() };
    Device::open(&options).expect("these tests need an adapter")
}

fn refused(graph: &Graph, target: &Target, kind: ErrorKind, parts: &[&str]) {
    for mode in [Mode::Eager, Mode::Compiled] {
        let result = compile(graph, target, &CompileOptions { mode, ..CompileOptions::default() });
        says(&result.expect_err("must be refused"), kind, parts);
    }
}

fn says(error: &Error, kind: ErrorKind, parts: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn matrix_times_vector_is_not_vector_times_matrix() {
    let device = open();
    for k in [1, 7, 256, 1000] {
        right(&device, &matmul(&[33, k], &[k]), SUM);
        right(&device, &matmul(&[k], &[k, 33]), SUM);
    }
    right(&device, &matmul(&[257, 65], &[65, 1]), SUM);
    right(&device, &matmul(&[1, 65], &[65, 257]), SUM);
    right(&device, &matmul(&[40], &[40]), SUM);
}

/// Tiles of one or two rows begin between vectors of rows.
#[test]
fn few_rows_or_columns_of_vectors() {
    for device in [open(), at_webgpu_limits()] {
        for (m, n, k) in [(16, 8, 24), (8, 16, 24), (12, 4, 7), (4, 12, 8), (20, 8, 64), (300, 2, 12)] {
            right(&device, &matmul(&[3, m, k], &[3, k, n]), SUM);
            right(&device, &of_x(&[k, m], |x| x.transpose(&[1, 0])?.matmul(&x.constant(weights(&[k, n], 1))?)), SUM);
        }
    }
}

#[test]
fn products_whose_k_is_no_multiple_of_a_subgroup() {
    let device = open();
    for k in [1, 2, 3, 5, 7, 9, 31, 33, 63] {
        right(&device, &matmul(&[17, k], &[k, 20]), SUM);
    }
}

#[test]
fn products_of_many_rows_and_long_k_are_not_zero() {
    let device = open();
    right(&device, &matmul(&[501, 64], &[64, 36]), SUM);
    right(&device, &matmul(&[640, 257], &[257, 16]), SUM);
    right(&device, &matmul(&[64, 513], &[513, 64]), SUM);
}

#[test]
fn products_of_257_rows() {
    let device = open();
    right(&device, &matmul(&[257, 257], &[257, 257]), SUM);
    right(&device, &matmul(&[257, 16], &[16, 1]), SUM);
}

#[test]
fn a_product_over_nothing_is_zero_and_takes_its_epilogue() {
    let device = open();
    right(&device, &matmul(&[3, 0], &[0, 4]), Tolerance::Exact);
    right(&device, &matmul(&[2, 257, 0], &[0, 33]), Tolerance::Exact);
    right(
        &device,
        &of_x(&[5, 0], |x| x.linear(&x.constant(weights(&[0, 6], 1))?, &x.constant(weights(&[6], 2))?)?.relu()),
        Tolerance::Exact,
    );
}

#[test]
fn a_convolution_over_nothing_is_zero() {
    let device = open();
    let graph = of_x(&[2, 0, 5, 5], |x| {
        x.conv(&x.constant(weights(&[3, 0, 3, 3], 1))?, Some(&x.constant(weights(&[3], 2))?), Conv::new(2))?.relu()
    });
    right(&device, &graph, Tolerance::Exact);
}

/// Software drivers end loops silently after some 65,000 iterations.
#[test]
fn sums_longer_than_a_driver_loops() {
    let graph = capture(|t| t.input("x", [70_000, 256], DType::Bool)?.cast(DType::I32)?.sum(&[0], false)).expect("records");
    right(&open(), &graph, Tolerance::Exact);
    for device in [open(), at_webgpu_limits()] {
        right(&device, &matmul(&[2, 300_001], &[300_001, 3]), SUM);
        right(&device, &of_x(&[3, 70_001], |x| x.softmax(-1)), CLOSE);
        right(&device, &of_x(&[2, 140_000], |x| x.mul(x)?.mean(&[1], true)?.sqrt()), CLOSE);
        right(&device, &of_x(&[1, 1, 70_003], |x| x.conv(&x.constant(weights(&[1, 1, 9], 1))?, None, Conv::new(1))), SUM);
    }
}

#[test]
fn pointwise_convolutions_of_104_to_208_channels() {
    let device = open();
    for (channels, outputs) in [(104, 104), (120, 208), (144, 32), (176, 105), (208, 120)] {
        let graph = of_x(&[1, channels, 7, 7], |x| {
            x.conv(&x.constant(weights(&[outputs, channels, 1, 1], 3))?, Some(&x.constant(weights(&[outputs], 4))?), Conv::new(2))?.relu()
        });
        right(&device, &graph, SUM);
    }
}

#[test]
fn more_than_65535_workgroups() {
    let device = at_webgpu_limits();
    // Four elements an invocation, 64 invocations a workgroup.
    let elems = 65_535 * 256 + 5;
    let graph = capture(|t| t.input("x", [elems], DType::U8)?.not()).expect("records");
    let data: Vec<u8> = (0..elems).map(|i| (i % 251) as u8).collect();
    let expected: Vec<u8> = data.iter().map(|b| !b).collect();
    let compiled = compile(&graph, &device.target(), &CompileOptions::default()).expect("compiles");
    let session = Session::load(&device, &compiled).expect("loads");
    let got = session.run(&[("x", &HostTensor::new([elems], data).expect("fits"))]).expect("runs").single().expect("one");
    assert!(got.as_slice::<u8>().expect("bytes") == expected, "a workgroup is missing");
    drop(session);
    // A product and a convolution for each of 70,000 examples.
    right(&device, &matmul(&[70_000, 2, 2], &[70_000, 2, 2]), SUM);
    let graph = of_x(&[70_000, 1, 2, 2], |x| x.conv(&x.constant(weights(&[1, 1, 1, 1], 3))?, None, Conv::new(2)));
    right(&device, &graph, SUM);
    // A row a workgroup, of more rows than one dimension holds.
    right(&device, &of_x(&[66_000, 65], |x| x.max(&[1], false)), Tolerance::Exact);
}

#[test]
fn a_tensor_past_one_binding_is_refused_with_both_sizes() {
    let sizes = ["134217732", "134217728"];
    let elems = (32 << 20) + 1;
    let target = Target::webgpu();
    // What can be bound in parts is, see `tests/chunks.rs`.
    refused(&of_x(&[elems], |x| x.exp()?.pad(&[1], &[0], 0.0)), &target, ErrorKind::Limit, &sizes[1..]);
    refused(&of_x(&[elems, 1], |x| x.broadcast_to(&[elems, 2])?.transpose(&[1, 0])), &target, ErrorKind::Limit, &["268435464", sizes[1]]);
    // The operation of the user's program is named.
    let mut builder = GraphBuilder::new();
    builder.begin_origin("the wide node");
    let x = builder.input("x", TensorType::new(DType::F32, [1])).expect("fits");
    let zero = builder.scalar(DType::F32, 0.0).expect("fits");
    let wide = builder.broadcast_to(x, &[elems]).expect("fits");
    let wide = builder.unary(UnaryOp::Exp, wide).expect("fits");
    let wide = builder.add(Prim::Pad { low: vec![1], high: vec![0] }, &[wide, zero]).expect("fits");
    builder.output("y", wide).expect("fits");
    refused(&builder.finish(), &target, ErrorKind::Limit, &["the wide node", "134217736"]);
    let between = of_x(&[3, 1], |x| {
        let wide = x.exp()?.broadcast_to(&[3, (16 << 20) + 1])?.tanh()?;
        wide.sum(&[0], false)?.add(&wide.max(&[0], false)?)?.sum(&[0], false)?.add(&wide.sum(&[0, 1], false)?)
    });
    // Where fusion keeps the value in registers it is no tensor; where it does not, both sizes are named.
    if let Err(error) = compile(&between, &target, &CompileOptions { mode: Mode::Eager, ..CompileOptions::default() }) {
        says(&error, ErrorKind::Limit, &["201326604", "134217728"]);
    }
}

#[test]
fn indices_past_two_to_the_31_are_refused() {
    let side = 46_341;
    let wide = capture(|t| t.input("x", [side, 1], DType::F32)?.broadcast_to(&[side, side])?.sum(&[0, 1], false));
    says(&wide.expect_err("refused"), ErrorKind::Limit, &["2147488281", "2^31"]);
    let endless = capture(|t| t.input("x", [usize::MAX / 2, 4], DType::F32));
    assert_eq!(endless.expect_err("refused").kind(), ErrorKind::Limit);
    let mut builder = GraphBuilder::new();
    let x = builder.input("x", TensorType::new(DType::F32, [1, 1])).expect("fits");
    let huge = Prim::Broadcast { shape: vec![1 << 40, 1 << 40], dims: vec![0, 1] };
    assert_eq!(builder.add(huge, &[x]).expect_err("refused").kind(), ErrorKind::Limit);
}

#[test]
fn more_buffers_than_the_target_binds() {
    let device = at_webgpu_limits();
    assert_eq!(device.target().max_storage_buffers, 7);
    let graph = capture(|t| {
        let mut values = Vec::new();
        for i in 0..19 {
            values.push(t.input(format!("x{i}"), [6, i % 4 + 1], DType::F32)?);
        }
        let mut sum = values[3].clone();
        for x in values.iter().filter(|x| x.shape() == [6, 4]) {
            sum = sum.add(x)?.mul(&values[0])?;
        }
        let tail = values[1..7].iter().try_fold(values[0].clone(), |sum, x| sum.add(&x.sum(&[1], true)?))?;
        Ok((sum, Traced::concat(&values.iter().collect::<Vec<_>>(), 1)?, tail))
    });
    right(&device, &graph.expect("records"), SUM);
}

#[test]
fn the_same_buffer_as_input_and_output() {
    let device = open();
    // Handed through, named twice, and read twice by one kernel.
    let graph = capture(|t| {
        let x = t.input("x", [20, 20], DType::F32)?;
        let square = x.matmul(&x)?;
        Ok(vec![("same", x.clone()), ("again", x.clone()), ("square", square.clone()), ("square again", square), ("sum", x.add(&x)?)])
    });
    right(&device, &graph.expect("records"), SUM);
    // One tensor bound to both sides would be read while it is written.
    let compiled = compile(&chain(&[64]), &device.target(), &CompileOptions::default()).expect("compiles");
    let session = Session::load(&device, &compiled).expect("loads");
    let tensor = DeviceTensor::zeros(&device, DType::F32, &[64]).expect("fits");
    let (x, out) = (compiled.inputs()[0].slot, compiled.outputs()[0].slot);
    session.executor().bind(x, &tensor).expect("an input");
    let bound = session.executor().bind(out, &tensor).and_then(|()| session.executor().run(&[], &[out]).map(drop));
    let error = bound.expect_err("must be refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    device.check_alive().expect("the device stays");
}

#[test]
fn tensors_without_elements() {
    let device = open();
    let exact = Tolerance::Exact;
    right(&device, &of_x(&[0, 5], |x| x.softmax(-1)?.exp()), exact);
    right(&device, &of_x(&[5, 0], |x| x.softmax(-1)), exact);
    right(&device, &of_x(&[4, 0], |x| x.sum(&[1], false)?.add_scalar(2.0)), exact);
    right(&device, &of_x(&[4, 0], |x| x.max(&[1], false)), exact);
    right(&device, &of_x(&[0, 4], |x| x.max(&[1], false)), exact);
    right(&device, &matmul(&[0, 4], &[4, 3]), exact);
    right(&device, &matmul(&[2, 4], &[4, 0]), exact);
    right(&device, &of_x(&[0, 3, 8, 8], |x| conv3(x, 4, 1)?.relu()), exact);
    right(&device, &of_x(&[3, 0], |x| Traced::concat(&[x, &x.constant(weights(&[3, 2], 1))?, x], 1)), exact);
    right(&device, &of_x(&[0], |x| x.pad(&[2], &[1], 3.0)), exact);
    right(&device, &embedding(5, 3, &[0]), exact);
}

#[test]
fn sizes_of_1_in_every_position() {
    let device = open();
    for bits in 0..8 {
        let size = |at: usize, size: usize| if bits >> at & 1 == 1 { 1 } else { size };
        let (a, b, c) = (size(0, 3), size(1, 5), size(2, 8));
        right(&device, &of_x(&[a, b, c], |x| x.transpose(&[2, 0, 1])?.softmax(1)?.add(&x.transpose(&[2, 0, 1])?.max(&[0], true)?)), CLOSE);
        right(&device, &matmul(&[2, a, b], &[b, c]), SUM);
        let graph = of_x(&[2, a, b, c], |x| {
            let weights = x.constant(weights(&[size(0, 6), a, size(1, 3), size(2, 3)], 2))?;
            x.conv(&weights, None, Conv { padding: sublane::ops::window::Padding::symmetric(&[1, 1]), ..Conv::new(2) })
        });
        right(&device, &graph, SUM);
    }
}

#[test]
fn functions_do_not_overflow_on_the_way() {
    let device = open();
    let large = || floats(&[1e4, -1e4, 89.0, -89.0, 3e38, -3e38, 710.0, -710.0, 0.0, 1e-30, 12.0, -12.0]);
    right_of(&device, large(), CLOSE, |x| x.tanh());
    right_of(&device, large(), CLOSE, |x| x.gelu());
    right_of(&device, large(), CLOSE, |x| x.sigmoid());
    right_of(&device, large(), CLOSE, |x| x.silu());
    right_of(&device, large(), CLOSE, |x| x.activation(sublane::ops::activation::Activation::GeluTanh));
    right_of(&device, large(), CLOSE, |x| x.activation(sublane::ops::activation::Activation::Softplus));
    right_of(&device, large(), CLOSE, |x| x.softmax(0));
    right_of(&device, large(), CLOSE, |x| x.log_softmax(0));
    right_of(&device, large(), CLOSE, |x| x.log_sum_exp(&[0], false));
    // The same inside a kernel of more operations.
    right_of(&device, large(), CLOSE, |x| x.mul_scalar(2.0)?.tanh()?.add_scalar(1.0)?.mul(&x.sigmoid()?));
}

#[test]
fn rows_with_everything_masked() {
    let device = open();
    let inf = f32::NEG_INFINITY;
    let rows = HostTensor::new([3, 4], vec![inf, inf, inf, inf, 1.0, inf, 2.0, inf, 0.0, 0.5, 1.0, 1.5]).expect("fits");
    // A softmax of nothing is NaN, attention to nothing is 0.
    right_of(&device, rows, CLOSE, |x| x.softmax(1));
    let graph = capture(|t| {
        let (x, mask) = (t.input("x", [6, 8], DType::F32)?, t.input("mask", [6, 6], DType::Bool)?);
        x.attention(&x, &x, Some(&mask), Attention { scale: None, causal: false })
    });
    let graph = graph.expect("records");
    let mut keep = [true; 36];
    keep[6..12].fill(false);
    keep[20] = false;
    let mut inputs = random_inputs(&graph, 3);
    inputs[1].1 = HostTensor::from_bools([6, 6], &keep).expect("fits");
    right_on(&device, &graph, &inputs, SUM);
}

#[test]
fn nan_and_infinity_through_min_max_and_select() {
    let device = open();
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let values = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0];
    let x: Vec<f32> = values.iter().flat_map(|&v| [v; 7]).collect();
    let y: Vec<f32> = (0..49).map(|i| values[i % 7]).collect();
    let graph = capture(|t| {
        let (x, y) = (t.input("x", [49], DType::F32)?, t.input("y", [49], DType::F32)?);
        let square = x.reshape(&[7, 7])?;
        Ok(vec![
            ("max", x.maximum(&y)?),
            ("min", x.minimum(&y)?),
            ("relu", x.relu()?),
            ("clip", x.clip(-0.5, 0.5)?),
            ("select", x.less(&y)?.select(&x, &y)?),
            ("not less", x.less(&y)?.not()?.select(&x, &y)?),
            ("equal", x.equal(&y)?),
            ("differ", x.not_equal(&y)?),
            ("is nan", x.is_nan()?),
            ("row max", square.max(&[1], false)?),
            ("column min", square.min(&[0], false)?),
            ("pool", square.reshape(&[1, 1, 7, 7])?.max_pool(&[2, 2], &[1, 1])?),
            ("late", x.maximum(&y)?.neg()?.minimum(&x)?),
        ])
    });
    let inputs = [("x".to_string(), floats(&x)), ("y".to_string(), floats(&y))];
    right_on(&device, &graph.expect("records"), &inputs, Tolerance::Exact);
}

#[test]
fn integers_divide_and_wrap_as_stated() {
    let device = open();
    for dtype in [DType::I32, DType::I8, DType::U32, DType::U8] {
        let (low, high) = match dtype {
            DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
            DType::I8 => (-128.0, 127.0),
            DType::U32 => (0.0, f64::from(u32::MAX)),
            _ => (0.0, 255.0),
        };
        let signed = [-7.0, -1.0, -3.0, -100.0];
        let values: Vec<f64> = [low, high, 0.0, 1.0, 7.0, 3.0, 100.0].into_iter().chain(signed.into_iter().filter(|v| *v >= low)).collect();
        let n = values.len();
        let (x, y): (Vec<f64>, Vec<f64>) = (0..n * n).map(|i| (values[i / n], values[i % n])).unzip();
        let graph = capture(|t| {
            let (x, y) = (t.input("x", [n * n], dtype)?, t.input("y", [n * n], dtype)?);
            Ok(vec![("div", x.div(&y)?), ("rem", x.rem(&y)?), ("add", x.add(&y)?), ("mul", x.mul(&y)?), ("less", x.less(&y)?.cast(dtype)?)])
        });
        let tensor = |v: &[f64]| HostTensor::from_f64(dtype, [n * n], v).expect("fits");
        let inputs = [("x".to_string(), tensor(&x)), ("y".to_string(), tensor(&y))];
        right_on(&device, &graph.expect("records"), &inputs, Tolerance::Exact);
    }
}

#[test]
fn permuted_then_reshaped() {
    let device = open();
    right(&device, &of_x(&[3, 5, 8], |x| x.transpose(&[2, 0, 1])?.reshape(&[6, 20])), Tolerance::Bits);
    right(&device, &of_x(&[4, 6, 8], |x| x.transpose(&[1, 2, 0])?.reshape(&[8, 24])?.transpose(&[1, 0])?.reshape(&[2, -1])?.exp()), CLOSE);
    right(&device, &of_x(&[4, 6, 8], |x| x.transpose(&[0, 2, 1])?.reshape(&[32, 6])?.sum(&[1], false)), SUM);
    right(&device, &of_x(&[4, 6, 8], |x| x.transpose(&[2, 1, 0])?.reshape(&[8, 24])?.softmax(0)), CLOSE);
}

/// Four neighbouring rows whose coordinates divide by sizes that share no factor with four.
#[test]
fn inner_axes_reduced_between_odd_sizes() {
    let device = open();
    for shape in [[7, 8, 4, 3], [5, 4, 6, 3], [4, 3, 5, 7]] {
        right(&device, &of_x(&shape, |x| x.max(&[2], false)), Tolerance::Exact);
        right(&device, &of_x(&shape, |x| x.softmax(2)), CLOSE);
        right(&device, &of_x(&shape, |x| x.mean(&[1], true)?.add(x)), CLOSE);
    }
}

#[test]
fn permuted_inputs_to_every_hero() {
    let device = open();
    let graph = capture(|t| {
        let (a, b) = (t.input("a", [20, 3, 12], DType::F32)?, t.input("b", [3, 9, 20], DType::F32)?);
        a.transpose(&[1, 2, 0])?.matmul(&b.transpose(&[0, 2, 1])?)
    });
    right(&device, &graph.expect("records"), SUM);
    // Images and weights whose channels come last.
    let graph = capture(|t| {
        let (x, w) = (t.input("x", [2, 9, 10, 5], DType::F32)?, t.input("w", [3, 3, 5, 8], DType::F32)?);
        let conv = Conv { padding: sublane::ops::window::Padding::symmetric(&[1, 1]), ..Conv::new(2) };
        let y = x.transpose(&[0, 3, 1, 2])?.conv(&w.transpose(&[3, 2, 0, 1])?, None, conv)?;
        y.transpose(&[0, 2, 3, 1])
    });
    right(&device, &graph.expect("records"), SUM);
    right(&device, &of_x(&[2, 8, 6, 3], |x| x.transpose(&[0, 3, 1, 2])?.max_pool(&[2, 2], &[2, 2])), Tolerance::Exact);
    right(
        &device,
        &of_x(&[6, 4, 8], |x| {
            let h = x.transpose(&[1, 0, 2])?;
            h.attention(&h, &h, None, Attention { scale: None, causal: true })
        }),
        SUM,
    );
    let graph = capture(|t| t.input("x", [5, 7, 4], DType::F32)?.transpose(&[2, 1, 0])?.gather(&t.input("i", [2, 3], DType::I32)?, 1));
    right(&device, &graph.expect("records"), Tolerance::Bits);
    right(&device, &of_x(&[6, 4, 8], |x| x.transpose(&[1, 2, 0])?.sum(&[1], false)), SUM);
}

#[test]
fn fused_is_right_where_each_alone_is() {
    let device = open();
    let graph = capture(|t| {
        let (x, w, r) = (t.input("x", [40, 24], DType::F32)?, t.input("w", [36, 24], DType::F32)?, t.input("r", [36], DType::F32)?);
        let y = x.mul_scalar(0.5)?.pad(&[0, 0], &[1, 0], 1.0)?.matmul(&w.transpose(&[1, 0])?)?;
        y.add(&r)?.relu()?.mul(&y)?.softmax(-1)
    });
    right(&device, &graph.expect("records"), CLOSE);
    right(&device, &residual_block(8, 12), SUM);
    right(&device, &of_x(&[3, 10, 9, 9], |x| conv3(&x.relu()?, 6, 1)?.sigmoid()?.average_pool(&[3, 3], &[2, 2])), SUM);
    right(&device, &layer_norm(&[7, 130]), CLOSE);
    right(&device, &attention(2, 33, 12), SUM);
}

#[test]
fn a_slot_is_taken_again_at_another_type() {
    let device = open();
    // Reductions between make each step a kernel; the slots of dead values are taken again, by smaller types too.
    let graph = of_x(&[64, 48], |x| {
        let row = |v: &Traced| v.sub(&v.max(&[1], true)?.sub(&v.min(&[0], true)?)?);
        let a = row(x)?.mul_scalar(20.0)?.cast(DType::I32)?;
        let b = row(&a)?.cast(DType::U8)?;
        let c = row(&b)?.cast(DType::Bool)?;
        let d = c.select(&x.exp()?, x)?;
        row(&d)?.sum(&[0], false)
    });
    let compiled = compile(&graph, &device.target(), &CompileOptions::default()).expect("compiles");
    let temps = compiled.plan().slots.iter().filter(|s| matches!(s.role, sublane::plan::SlotRole::Temp)).count();
    assert!(temps + 1 < compiled.kernels().len(), "no slot is taken again: {temps} for {} kernels", compiled.kernels().len());
    // Halves are exact, so that no conversion meets a rounding.
    let values: Vec<f32> = (0..64 * 48).map(|i| ((i * 37) % 17) as f32 * 0.5 - 4.0).collect();
    right_on(&device, &graph, &[("x".into(), HostTensor::new([64, 48], values).expect("fits"))], SUM);
}

#[test]
fn memory_does_not_grow_over_calls() {
    let device = open();
    let before = device.used_bytes();
    let graph = residual_block(4, 8);
    let inputs = random_inputs(&graph, 1);
    let named: Vec<(&str, &HostTensor)> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let compiled = compile(&graph, &device.target(), &CompileOptions::default()).expect("compiles");
    let session = Session::load(&device, &compiled).expect("loads");
    let first = session.run(&named).expect("runs");
    let loaded = device.used_bytes();
    for _ in 0..50 {
        assert_eq!(session.run(&named).expect("runs"), first);
    }
    assert_eq!(device.used_bytes(), loaded);
    for _ in 0..5 {
        Session::load(&device, &compiled).expect("loads").run(&named).expect("runs");
    }
    assert_eq!(device.used_bytes(), loaded);
    drop(session);
    assert_eq!(device.used_bytes(), before);
}

#[test]
fn a_lost_device_is_an_error_and_another_goes_on() {
    let device = open();
    let graph = chain(&[1000]);
    let inputs = random_inputs(&graph, 1);
    let named: Vec<(&str, &HostTensor)> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let compiled = compile(&graph, &device.target(), &CompileOptions::default()).expect("compiles");
    let session = Session::load(&device, &compiled).expect("loads");
    let before = session.run(&named).expect("runs");
    device.destroy();
    says(&session.run(&named).expect_err("lost"), ErrorKind::DeviceLost, &["destroyed"]);
    says(&Session::load(&device, &compiled).expect_err("lost"), ErrorKind::DeviceLost, &["destroyed"]);
    let session = Session::load(&open(), &compiled).expect("loads");
    assert_eq!(session.run(&named).expect("runs"), before);
}

#[test]
fn a_kernel_that_does_not_load_leaves_the_device_usable() {
    let device = at_webgpu_limits();
    // Made for an adapter that has more than this device was opened with.
    let graph = matmul(&[64, 64], &[64, 64]);
    let target = Target { max_workgroup_invocations: 1024, ..Target::software() };
    let foreign = compile(&graph, &target, &CompileOptions::default()).expect("compiles");
    assert!(foreign.plan().kernels.iter().any(|k| k.features.subgroups), "the kernel must be one this device lacks a feature for");
    let used = device.used_bytes();
    says(&Session::load(&device, &foreign).expect_err("refused"), ErrorKind::Unsupported, &["subgroup"]);
    assert_eq!(device.used_bytes(), used);
    right(&device, &graph, SUM);
}

#[test]
fn wrong_inputs_are_named() {
    let device = open();
    let compiled = compile(&chain(&[8]), &device.target(), &CompileOptions::default()).expect("compiles");
    let session = Session::load(&device, &compiled).expect("loads");
    let good = floats(&[0.0; 8]);
    let wrong = |inputs: &[(&str, &HostTensor)], parts: &[&str]| {
        says(&session.run(inputs).expect_err("refused"), ErrorKind::InvalidArgument, parts)
    };
    wrong(&[("x", &good)], &["`y` is missing", "`x` f32[8]"]);
    wrong(&[("x", &good), ("y", &good), ("z", &good)], &["`z`", "`y` f32[8]"]);
    wrong(&[("x", &good), ("y", &floats(&[1.0]))], &["f32[8]", "f32[1]"]);
    wrong(&[("x", &good), ("y", &HostTensor::zeros(DType::I32, [8]).expect("fits"))], &["f32[8]", "i32[8]"]);
    wrong(&[("x", &good), ("x", &good), ("y", &good)], &["`x` is given twice"]);
    session.run(&[("x", &good), ("y", &good)]).expect("runs");
}

#[test]
fn long_chains_do_not_nest_past_parsers() {
    let x = floats(&(0..257).map(|i| i as f32 / 64.0 - 2.0).collect::<Vec<_>>());
    right_of(&open(), x, CLOSE, |x| (0..240).try_fold(x.clone(), |y, i| if i % 2 == 0 { y.tanh() } else { y.add(x) }));
}

#[test]
fn names_of_operations_do_not_become_code() {
    let name = "relu\u{2028}var<private> evil: u32 = 1u;\r\n\u{85}fn evil() {}\u{b}\u{c}\u{2029}*/";
    let graph = capture(|t| t.scope(name, || t.input("x", [8], DType::F32)?.relu())).expect("records");
    let compiled = compile(&graph, &Target::webgpu(), &CompileOptions::default()).expect("compiles");
    for kernel in &compiled.plan().kernels {
        let evil: Vec<&str> = kernel.wgsl.lines().filter(|line| line.contains("evil")).collect();
        assert!(!kernel.wgsl.contains(['\u{2028}', '\u{2029}', '\u{85}', '\u{b}', '\u{c}']), "{}", kernel.wgsl);
        assert!(evil.iter().all(|line| line.starts_with("//")), "{evil:?}");
    }
}

#[test]
fn rows_kept_between_their_reductions() {
    let device = open();
    for (rows, cols) in [(1, 256), (3, 512), (257, 1024), (5, 992), (2, 1056), (1, 2048)] {
        let graph = capture(|t| t.input("x", [rows, cols], DType::F32)?.softmax(-1)).expect("records");
        right(&device, &graph, CLOSE);
        let graph = capture(|t| {
            let (scale, shift) = (t.input("scale", [cols], DType::F32)?, t.input("shift", [cols], DType::F32)?);
            t.input("x", [rows, cols], DType::F32)?.layer_norm(&scale, Some(&shift), 1, 1e-5)
        });
        right(&device, &graph.expect("records"), SUM);
    }
}

/// Workgroups of several subgroups, and of lanes without a subgroup, combine values alike; NaN and infinity come through.
#[test]
fn rows_shared_by_workgroups_with_and_without_subgroups() {
    let without = DeviceOptions { subgroups: false, ..DeviceOptions::from_env() };
    for device in [open(), Device::open(&without).expect("these tests need an adapter")] {
        let mut rows = vec![0.5f32; 5 * 1001];
        for (i, value) in rows.iter_mut().enumerate() {
            *value = ((i * 37) % 101) as f32 / 50.0 - 1.0;
        }
        rows[1001 + 700] = f32::NAN;
        rows[2 * 1001..3 * 1001].fill(f32::NEG_INFINITY);
        rows[3 * 1001 + 1000] = f32::INFINITY;
        let x = || HostTensor::new([5, 1001], rows.clone()).expect("fits");
        right_of(&device, x(), Tolerance::Exact, |x| x.max(&[1], false));
        right_of(&device, x(), Tolerance::Exact, |x| x.min(&[1], false));
        right(&device, &of_x(&[5, 1001], |x| x.sum(&[1], false)), SUM);
        for dtype in [DType::I32, DType::U32] {
            let values: Vec<f64> = (0..3 * 777).map(|i| f64::from((i * 7919) % 2003)).collect();
            let x = || HostTensor::from_f64(dtype, vec![3, 777], &values).expect("fits");
            right_of(&device, x(), Tolerance::Exact, |x| x.sum(&[1], false));
            right_of(&device, x(), Tolerance::Exact, |x| x.product(&[1], false));
            right_of(&device, x(), Tolerance::Exact, |x| x.max(&[1], false));
            right_of(&device, x(), Tolerance::Exact, |x| x.min(&[1], false));
        }
        right(&device, &of_x(&[9, 2048], |x| x.softmax(-1)), CLOSE);
        right(&device, &of_x(&[7, 300], |x| x.layer_norm(&x.constant(weights(&[300], 1))?, None, -1, 1e-5)), CLOSE);
    }
}

/// k in parts that are added up, with an epilogue after the sum.
#[test]
fn products_of_few_results_and_a_long_k() {
    for device in [open(), at_webgpu_limits()] {
        right(&device, &matmul(&[3, 65_536], &[65_536, 5]), SUM);
        right(&device, &matmul(&[2, 1, 131_072], &[2, 131_072, 1]), SUM);
        right(
            &device,
            &of_x(&[8, 40_000], |x| x.linear(&x.constant(weights(&[40_000, 6], 1))?, &x.constant(weights(&[6], 2))?)?.relu()),
            SUM,
        );
    }
}

fn halves(shape: &[usize], values: &[f64]) -> HostTensor {
    HostTensor::from_f64(DType::F16, shape, values).expect("fits")
}

/// A sum that passes f16 is infinite where it is the result, and nowhere before.
#[test]
fn reductions_of_f16_are_made_in_f32() {
    for device in [open(), at_webgpu_limits()] {
        let ones = || halves(&[2, 70_000], &[1.0; 140_000]);
        right_of(&device, ones(), Tolerance::Exact, |x| x.sum(&[1], false));
        right_of(&device, ones(), Tolerance::Exact, |x| x.mean(&[1], false));
        right_of(&device, ones(), Tolerance::Exact, |x| x.transpose(&[1, 0])?.mean(&[0], true));
        // 2,048 + 1 is no f16.
        right_of(&device, halves(&[4099], &[1.0; 4099]), Tolerance::Exact, |x| x.cumsum(0));
        let large = || halves(&[3, 512], &(0..3 * 512).map(|i| f64::from(i % 2) * 600.0 - 300.0).collect::<Vec<_>>());
        right_of(&device, large(), CLOSE, |x| x.rms_norm(&x.constant(halves(&[512], &[1.0; 512]))?, -1, 1e-5));
        right_of(&device, large(), CLOSE, |x| x.layer_norm(&x.constant(halves(&[512], &[1.0; 512]))?, None, -1, 1e-5));
        right_of(&device, large(), CLOSE, |x| x.softmax(0));
    }
}

/// Products of 1e8 that cancel, and scores past f16.
#[test]
fn products_of_f16_hold_outliers() {
    for device in [open(), at_webgpu_limits()] {
        for (m, k, n) in [(1, 64, 40), (33, 64, 20), (64, 64, 64), (7, 16, 5)] {
            let a: Vec<f64> = (0..m * k).map(|i| [1e4, 1e4, 32.0, 64.0][i % k % 4]).collect();
            let b: Vec<f64> = (0..k * n).map(|i| [1e4, -1e4, 16.0 * (1 + i % n % 3) as f64, 8.0][i / n % 4]).collect();
            let (a, b) = (halves(&[m, k], &a), halves(&[k, n], &b));
            let graph = capture(|t| t.input("a", [m, k], DType::F16)?.matmul(&t.input("b", [k, n], DType::F16)?)).expect("records");
            right_on(&device, &graph, &[("a".into(), a), ("b".into(), b)], Tolerance::Exact);
        }
        let x = halves(&[1, 4, 6, 6], &(0..144).map(|i| if i / 36 < 2 { 1e4 } else { 32.0 }).collect::<Vec<_>>());
        let w = halves(&[4, 4, 1, 1], &(0..16).map(|i| [1e4, -1e4, 16.0, 8.0][i % 4]).collect::<Vec<_>>());
        right_of(&device, x, Tolerance::Exact, |x| x.conv(&x.constant(w.clone())?, None, Conv::new(2)));
        let q = halves(&[1, 5, 8], &(0..40).map(|i| f64::from(1 + i / 8) * 1e3).collect::<Vec<_>>());
        right_of(&device, q, Tolerance::Exact, |q| q.attention(q, q, None, Attention { scale: None, causal: false }));
    }
}
