//! Tensors of f16: codes to the bit, lengths and views that do not fill words, memory, and what is one kernel.

mod device_common;
mod graph_common;

use device_common::open;
use graph_common::random_inputs;
use kernels_gen::Target;
use kernels_gen::threefry::Key;
use sublane::capture::{Traced, capture};
use sublane::compiler::{CompileOptions, Compiled, Mode, compile};
use sublane::device::{Device, DeviceOptions, LimitsMode};
use sublane::graph::{Graph, Prim};
use sublane::ops::Tolerance;
use sublane::ops::attention::Attention;
use sublane::ops::conv::Conv;
use sublane::ops::dot::Gemm;
use sublane::ops::prelude::*;
use sublane::plan::SlotRole;
use sublane::suite::ops::{compare_graph, compare_graph_as};
use sublane::{DType, ErrorKind, HostTensor, Result, Session, f16};

fn devices() -> [Device; 2] {
    let limits = DeviceOptions { limits: LimitsMode::Webgpu, ..DeviceOptions::from_env() };
    [open(), Device::open(&limits).expect("these tests need an adapter")]
}

fn of(dtype: DType, shape: &[usize], f: impl FnOnce(&Traced) -> Result<Traced>) -> Graph {
    capture(|t| f(&t.input("x", shape, dtype)?)).expect("records")
}

fn run(device: &Device, graph: &Graph, mode: Mode, x: &HostTensor) -> HostTensor {
    let options = CompileOptions { mode, ..CompileOptions::default() };
    let compiled = compile(graph, &device.target(), &options).expect("compiles");
    let session = Session::load(device, &compiled).expect("loads");
    session.run(&[("x", x)]).expect("runs").into_iter().next().expect("a result").1
}

fn codes(tensor: &HostTensor) -> Vec<u16> {
    tensor.as_slice::<f16>().expect("f16").iter().map(|h| h.to_bits()).collect()
}

/// The same code; a NaN may have other bits but its sign.
fn same(a: u16, b: u16) -> bool {
    let nan = |code: u16| code & 0x7fff > 0x7c00;
    a == b || nan(a) && nan(b) && a & 0x8000 == b & 0x8000
}

#[test]
fn every_code_is_read_and_written_to_the_bit() {
    let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let x = HostTensor::new([all.len()], all.clone()).expect("fits");
    let back = |x: &Traced| Traced::apply(Prim::Slice { starts: vec![65_535], steps: vec![-1], sizes: vec![65_536] }.into(), &[x]);
    for device in devices() {
        let floats = run(&device, &of(DType::F16, &[65_536], |x| x.cast(DType::F32)), Mode::Compiled, &x);
        for (code, (&got, want)) in floats.as_slice::<f32>().expect("f32").iter().zip(&all).enumerate() {
            let want = want.to_f32();
            assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{code:#06x} is read as {got}, it is {want}");
        }
        let written = run(&device, &of(DType::F32, &[65_536], |x| x.cast(DType::F16)), Mode::Compiled, &floats);
        let wrong = (0..=u16::MAX).zip(codes(&written)).find(|&(want, got)| !same(want, got));
        assert_eq!(wrong, None, "(wanted, written)");
        // Element by element.
        let reversed = run(&device, &of(DType::F16, &[65_536], back), Mode::Compiled, &x);
        let wrong = (0..=u16::MAX).rev().zip(codes(&reversed)).find(|&(want, got)| !same(want, got));
        assert_eq!(wrong, None, "(wanted, moved)");
    }
}

#[test]
fn floats_are_rounded_as_the_standard_says() {
    let key = Key::new(21);
    let mut values: Vec<f32> = (0..1 << 18).map(|i| f32::from_bits(key.word(i))).collect();
    // Where f16 has numbers, and its subnormals.
    values.extend((0..1 << 18).map(|i| f32::from_bits(key.word(i + (1 << 18)) % 0x1800_0000 + 0x3200_0000)));
    // Middles of neighbours, and what lies right beside them.
    for code in 0..0x7c00u16 {
        let next = if code == 0x7bff { 65_536.0 } else { f16::from_bits(code + 1).to_f32() };
        let middle = ((f64::from(f16::from_bits(code).to_f32()) + f64::from(next)) / 2.0) as f32;
        values.extend([-1, 0, 1].map(|step| f32::from_bits(middle.to_bits().wrapping_add_signed(step))));
    }
    let want: Vec<u16> = values.iter().map(|&v| f16::from_f32(v).to_bits()).collect();
    let (n, x) = (values.len(), HostTensor::new([values.len()], values.clone()).expect("fits"));
    for device in devices() {
        let got = codes(&run(&device, &of(DType::F32, &[n], |x| x.cast(DType::F16)), Mode::Compiled, &x));
        let wrong = (0..n).find(|&i| !same(want[i], got[i]));
        assert_eq!(wrong.map(|i| (values[i], want[i], got[i])), None, "(value, wanted, rounded)");
        // Rounded inside a kernel and widened again.
        let got = run(&device, &of(DType::F32, &[n], |x| x.cast(DType::F16)?.cast(DType::F32)?.neg()), Mode::Compiled, &x);
        let got = got.as_slice::<f32>().expect("f32");
        let nan = |i: usize| got[i].is_nan() && values[i].is_nan();
        let wrong = (0..n).find(|&i| !nan(i) && !same(want[i], f16::from_f32(-got[i]).to_bits()));
        assert_eq!(wrong.map(|i| (values[i], want[i], got[i])), None, "(value, wanted, minus rounded)");
    }
}

fn right(device: &Device, graph: &Graph, tolerance: Tolerance) {
    for mode in [Mode::Eager, Mode::Compiled] {
        match compare_graph(graph, &random_inputs(graph, 5), tolerance, device, mode) {
            Ok(None) => {}
            Ok(Some(fault)) => panic!("{}: {fault}\n{graph}", mode.name()),
            Err(error) => panic!("{}: error: {error}\n{graph}", mode.name()),
        }
    }
}

const CLOSE: Tolerance = Tolerance::Norm(2e-3);

#[test]
fn lengths_and_views_that_fill_no_words() {
    for device in devices() {
        for n in [0, 1, 2, 3, 5, 7, 255, 257] {
            right(&device, &of(DType::F16, &[n], |x| x.mul(x)?.add_scalar(1.0)), Tolerance::Norm(0.0));
        }
        right(&device, &of(DType::F16, &[5, 7, 3], |x| x.transpose(&[2, 0, 1])?.reshape(&[7, 15])?.exp()), CLOSE);
        right(&device, &of(DType::F16, &[1, 7], |x| x.broadcast_to(&[3, 5, 7])?.transpose(&[2, 1, 0])), Tolerance::Bits);
        right(&device, &of(DType::F16, &[3, 5], |x| x.pad(&[1, 2], &[0, 4], -1.5)), Tolerance::Bits);
        right(&device, &of(DType::F16, &[3, 5], |x| Traced::concat(&[x, x, x], 1)), Tolerance::Bits);
        right(&device, &of(DType::F16, &[3, 0, 2], |x| x.neg()), Tolerance::Bits);
        let slice = Prim::Slice { starts: vec![1, 6], steps: vec![2, -3], sizes: vec![2, 3] };
        right(&device, &of(DType::F16, &[4, 7], |x| Traced::apply(slice.into(), &[x])?.abs()), Tolerance::Bits);
        right(&device, &of(DType::F16, &[6, 13], |x| x.softmax(-1)?.transpose(&[1, 0])?.sum(&[1], true)), CLOSE);
    }
}

#[test]
fn permuted_operands_of_kernels_with_products() {
    let device = open();
    for n in [13, 16] {
        let graph = capture(|t| {
            let (a, b) = (t.input("a", [20, 9], DType::F16)?, t.input("b", [n, 20], DType::F16)?);
            a.transpose(&[1, 0])?.matmul(&b.transpose(&[1, 0])?)?.relu()
        });
        right(&device, &graph.expect("records"), CLOSE);
        let graph = capture(|t| {
            let (x, w) = (t.input("x", [2, 8, n, 3], DType::F16)?, t.input("w", [3, 3, 3, 4], DType::F16)?);
            x.transpose(&[0, 3, 1, 2])?.conv(&w.transpose(&[3, 0, 1, 2])?, None, Conv::new(2))
        });
        right(&device, &graph.expect("records"), CLOSE);
        let graph = capture(|t| {
            let (q, v) = (t.input("q", [9, 2, 8], DType::F16)?, t.input("v", [9, 2, n], DType::F16)?);
            let q = q.transpose(&[1, 0, 2])?;
            q.attention(&q, &v.transpose(&[1, 0, 2])?, None, Attention { scale: None, causal: true })
        });
        right(&device, &graph.expect("records"), CLOSE);
    }
}

/// 256 elements a workgroup.
#[test]
fn more_than_65535_workgroups() {
    let n = 65_535 * 256 + 1027;
    let values: Vec<f16> = (0..n).map(|i| f16::from_bits((i % 0x7c00) as u16)).collect();
    let x = HostTensor::new([n], values).expect("fits");
    let got = run(&open(), &of(DType::F16, &[n], |x| x.neg()), Mode::Compiled, &x);
    let wrong = codes(&x).into_iter().zip(codes(&got)).position(|(x, got)| got != x | 0x8000);
    assert_eq!(wrong, None);
}

/// Each operation rounds its result once, however operations are fused.
#[test]
fn fusion_changes_no_bit_of_a_chain() {
    let graph = of(DType::F16, &[1000], |x| x.mul_scalar(1.7)?.add(x)?.mul(x)?.sub(&x.mul_scalar(0.3)?)?.relu());
    let x = HostTensor::from_f64(DType::F16, [1000], &(0..1000).map(|i| f64::from(i) / 37.0 - 11.0).collect::<Vec<_>>()).expect("fits");
    let device = open();
    let [eager, compiled] = [Mode::Eager, Mode::Compiled].map(|mode| run(&device, &graph, mode, &x));
    assert_eq!(codes(&eager), codes(&compiled));
}

fn compiled(graph: &Graph) -> Compiled {
    compile(graph, &Target::software(), &CompileOptions::default()).expect("compiles")
}

#[test]
fn what_is_one_kernel_in_f32_is_one_in_f16() {
    let half = |shape: &[usize], f: fn(&Traced) -> Result<Traced>| compiled(&of(DType::F16, shape, f)).kernels().len();
    assert_eq!(half(&[64], |x| x.add(x)?.mul(x)?.tanh()), 1);
    assert_eq!(half(&[8, 256], |x| x.softmax(-1)), 1);
    assert_eq!(half(&[8, 64], |x| x.rms_norm(&x.constant(HostTensor::zeros(DType::F16, [64])?)?, -1, 1e-5)), 1);
    assert_eq!(half(&[16, 16], |x| x.matmul(x)?.gelu()), 1);
    assert_eq!(half(&[2, 16, 8], |x| x.attention(x, x, None, Attention { scale: None, causal: true })), 1);
    let conv = |x: &Traced| x.conv(&x.constant(HostTensor::zeros(DType::F16, [8, 8, 3, 3])?)?, None, Conv::new(2))?.relu();
    assert_eq!(half(&[1, 8, 10, 10], conv), 1);
}

#[test]
fn tensors_take_two_bytes_an_element() {
    let table: Vec<f64> = (0..64 * 48).map(|i| f64::from(i % 17)).collect();
    let graph = capture(|t| {
        let weights = |shape: [usize; 2]| t.constant(HostTensor::from_f64(DType::F16, shape, &table)?);
        let x = t.input("x", [16, 64], DType::F16)?;
        let y = x.matmul(&weights([64, 48])?)?.gelu()?;
        let gemm = Gemm { alpha: 1.0, beta: 1.0, trans_a: false, trans_b: true };
        Traced::apply(sublane::graph::Op::composite(gemm), &[&y, &weights([64, 48])?])?.softmax(-1)
    });
    let compiled = compiled(&graph.expect("records"));
    for slot in &compiled.plan().slots {
        let most = if matches!(slot.role, SlotRole::Constant(_)) { 64 * 48 * 2 } else { 16 * 64 * 2 };
        assert!(slot.bytes <= most, "{} takes {} bytes", slot.name, slot.bytes);
    }
}

#[test]
fn types_do_not_mix() {
    let graph = capture(|t| t.input("x", [4, 4], DType::F16)?.matmul(&t.input("y", [4, 4], DType::F32)?));
    assert!(graph.expect_err("refused").to_string().contains("convert with Cast"));
}

/// `x * y + x`, its root, and a maximum, which has no f16.
fn arithmetic() -> Graph {
    let graph = capture(|t| {
        let (x, y) = (t.input("x", [5, 67], DType::F16)?, t.input("y", [5, 67], DType::F16)?);
        let chain = x.mul(&y)?.add(&x)?.abs()?.sqrt()?.add_scalar(0.5)?;
        Ok(vec![chain.maximum(&y)?.mul_scalar(0.25)?, chain.sum(&[1], false)?, chain.div(&x.exp()?)?])
    });
    graph.expect("records")
}

fn in_f16(mode: Mode) -> CompileOptions {
    CompileOptions { mode, f16_arithmetic: true, ..CompileOptions::default() }
}

#[test]
fn arithmetic_in_f16_on_request() {
    let device = open();
    assert!(device.target().f16, "the adapter of these tests has f16");
    let graph = arithmetic();
    for mode in [Mode::Eager, Mode::Compiled] {
        let fault = compare_graph_as(&graph, &random_inputs(&graph, 5), Tolerance::Norm(4e-3), &device, &in_f16(mode));
        assert_eq!(fault.expect("runs"), None, "{}", mode.name());
    }
    let sums = of(DType::F16, &[3, 5000], |x| x.add(x)?.sum(&[1], false));
    let x = HostTensor::from_f64(DType::F16, [3, 5000], &[1.0; 15_000]).expect("fits");
    let fault = compare_graph_as(&sums, &[("x".into(), x)], Tolerance::Exact, &device, &in_f16(Mode::Compiled));
    assert_eq!(fault.expect("runs"), None, "a sum stays f32");
}

/// Kernels say that they need f16, are valid for targets that have it, and no kernel needs it without the option.
#[test]
fn kernels_with_f16_are_known_by_their_features() {
    let graph = arithmetic();
    for target in [Target::software(), Target::desktop()] {
        let compiled = compile(&graph, &target, &in_f16(Mode::Compiled)).expect("compiles");
        assert!(compiled.plan().kernels.iter().any(|k| k.features.f16 && k.wgsl.contains("vec4<f16>")));
        for kernel in &compiled.plan().kernels {
            kernels_gen::validate::validate(kernel, &target).unwrap_or_else(|e| panic!("{e}"));
        }
        let plain = compile(&graph, &target, &CompileOptions::default()).expect("compiles");
        assert!(plain.plan().kernels.iter().all(|k| !k.features.f16 && !k.wgsl.contains("f16;")));
    }
    let error = compile(&graph, &Target::webgpu(), &in_f16(Mode::Compiled)).expect_err("webgpu has no f16");
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`webgpu`") && error.to_string().contains("f16_arithmetic"), "{error}");
}
