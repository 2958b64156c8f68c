//! Products of packed operands in all their forms on the adapter: summed over either dimension, in batches and groups, with epilogues; each
//! against f64, each one kernel that reads the words as they lie.

mod device_common;

use device_common::open;
use kernels_gen::threefry::Key;
use sublane::capture::{Traced, Tracer, capture};
use sublane::compiler::{CompileOptions, compile};
use sublane::ops::prelude::*;
use sublane::ops::quantised::Packed;
use sublane::stats::relative_error;
use sublane::tensor::quantised::{QuantiseOptions, Quantised};
use sublane::tensor::scheme::{PRESETS, Scheme};
use sublane::{DType, Device, HostTensor, Session};

fn numbers(key: Key, count: usize) -> Vec<f32> {
    (0..count as u64).map(|n| 4.0 * key.uniform(n) - 2.0).collect()
}

/// A quantised matrix, its scheme a Hadamard transform aside, and the numbers it stands for.
struct Weights {
    matrix: Quantised,
    numbers: Vec<f32>,
    k: usize,
}

impl Weights {
    fn new(scheme: &Scheme, key: Key, rows: usize, k: usize) -> Self {
        let matrix = Quantised::new(&numbers(key, rows * k), rows, k, scheme, &QuantiseOptions::default()).expect("quantises");
        Weights { numbers: matrix.dequantise(), matrix, k }
    }

    fn tensors(&self) -> Vec<(String, HostTensor)> {
        let tensors = Packed::<Traced>::tensors(&self.matrix).expect("fits");
        tensors.into_iter().enumerate().map(|(i, tensor)| (format!("w{i}"), tensor)).collect()
    }

    fn inputs(&self, t: &Tracer) -> sublane::Result<Packed<Traced>> {
        let inputs = self.tensors().into_iter().map(|(name, x)| t.input(name, x.shape(), x.dtype())).collect::<sublane::Result<_>>()?;
        Packed::new(*self.matrix.scheme(), self.matrix.rows(), self.matrix.k(), self.matrix.seed(), inputs)
    }

    fn at(&self, row: usize, p: usize) -> f64 {
        f64::from(self.numbers[row * self.k + p])
    }
}

/// Runs what `build` makes of the weights and `x`: `kernels` kernels, and one more at most where scales or zero points are computed before it. None of
/// them may write what the codes stand for.
fn run(
    device: &Device,
    weights: &Weights,
    given: &[(&str, HostTensor)],
    kernels: usize,
    build: impl Fn(&Packed<Traced>, &[Traced]) -> sublane::Result<Traced>,
) -> Vec<f64> {
    let graph = capture(|t| {
        let inputs = given.iter().map(|(name, x)| t.input(*name, x.shape(), x.dtype())).collect::<sublane::Result<Vec<_>>>()?;
        build(&weights.inputs(t)?, &inputs)
    });
    let compiled = compile(&graph.expect("records"), &device.target(), &CompileOptions::default()).expect("compiles");
    let fusion = compiled.fusion();
    assert!(compiled.plan().num_dispatches() <= kernels + 1, "{}\n{fusion}", weights.matrix.scheme());
    let product = compiled.outputs()[0].slot;
    let inputs: Vec<_> = compiled.inputs().iter().map(|port| port.slot).collect();
    for (slot, at) in compiled.plan().slots.iter().zip(0..) {
        let given = [product].iter().chain(&inputs).any(|s| s.0 == at);
        assert!(
            given || slot.bytes < 2 * weights.numbers.len().max(64) as u64,
            "{}: {} bytes\n{fusion}",
            weights.matrix.scheme(),
            slot.bytes
        );
    }
    let session = Session::load(device, &compiled).expect("loads");
    let tensors = weights.tensors();
    let inputs = tensors.iter().map(|(name, x)| (name.as_str(), x)).chain(given.iter().map(|(name, x)| (*name, x)));
    session.run(&inputs.collect::<Vec<_>>()).expect("runs").single().expect("one").to_f64()
}

fn tensor(shape: &[usize], values: &[f32]) -> HostTensor {
    HostTensor::new(shape, values.to_vec()).expect("fits")
}

fn check(what: &str, got: &[f64], expected: &[f64], terms: usize) {
    let (error, allowed) = (relative_error(got, expected), 1e-6 * (terms.max(1) as f64).sqrt());
    assert!(error <= allowed, "{what}: {error:.2e}, {allowed:.1e} allowed");
}

/// Schemes with codes and without a Hadamard transform.
fn schemes() -> impl Iterator<Item = Scheme> {
    let all = PRESETS.iter().copied().chain(["int4-group32-f16", "fp8-channel-f16"]).map(|name| Scheme::parse(name).expect(name));
    all.filter(|scheme| scheme.format().is_some())
}

/// `x * W`, which sums over the rows that the weights are packed along no more.
#[test]
fn packed_operands_are_summed_over_their_rows_too() {
    let device = open();
    for (at, scheme) in schemes().enumerate() {
        let [m, rows, k] = [[3usize, 127, 64], [33, 16, 257], [1, 257, 130], [64, 1, 33]][at % 4];
        let weights = Weights::new(&scheme, Key::new(at as u64), rows, k);
        let x = numbers(Key::new(100), m * rows);
        let got = run(&device, &weights, &[("x", tensor(&[m, rows], &x))], 1, |w, x| w.matmul_transposed(&x[0]));
        let element = |i: usize| (0..rows).map(|r| f64::from(x[i / k * rows + r]) * weights.at(r, i % k)).sum();
        check(&scheme.to_string(), &got, &(0..m * k).map(element).collect::<Vec<_>>(), rows);
    }
}

/// `W^T * y` and `W * y`: the packed operand on the left.
#[test]
fn packed_operands_stand_on_the_left_too() {
    let device = open();
    for (at, scheme) in schemes().enumerate() {
        let [rows, k, n] = [[127usize, 64, 5], [16, 257, 33], [130, 33, 64]][at % 3];
        let weights = Weights::new(&scheme, Key::new(at as u64), rows, k);
        let y = numbers(Key::new(101), rows * n);
        let got = run(&device, &weights, &[("y", tensor(&[rows, n], &y))], 1, |w, y| w.dequantise()?.transpose(&[1, 0])?.matmul(&y[0]));
        let element = |i: usize| (0..rows).map(|r| weights.at(r, i / n) * f64::from(y[r * n + i % n])).sum();
        check(&scheme.to_string(), &got, &(0..k * n).map(element).collect::<Vec<_>>(), rows);
        let y = numbers(Key::new(102), k * n);
        let got = run(&device, &weights, &[("y", tensor(&[k, n], &y))], 1, |w, y| w.dequantise()?.matmul(&y[0]));
        let element = |i: usize| (0..k).map(|p| weights.at(i / n, p) * f64::from(y[p * n + i % n])).sum();
        check(&scheme.to_string(), &got, &(0..rows * n).map(element).collect::<Vec<_>>(), k);
    }
}

/// Matrices of a batch, and matrices that blocks of rows choose.
#[test]
fn packed_matrices_come_in_batches_and_groups() {
    let device = open();
    for (at, name) in
        ["int4-group32", "int8-channel", "nf4", "mxfp4", "nvfp4", "mxfp6-e2m3", "fp8-tile", "int4-group64-affine", "mxfp4-hadamard32"]
            .into_iter()
            .enumerate()
    {
        let scheme = Scheme::parse(name).expect(name);
        let [count, m, n, k] = [[3usize, 5, 16, 64], [2, 33, 7, 257], [4, 1, 65, 130]][at % 3];
        let weights = Weights::new(&scheme, Key::new(at as u64), count * n, k);
        let more = usize::from(scheme.hadamard.is_some());
        let product = |x: &[f32], of: &dyn Fn(usize) -> usize, blocks: usize| -> Vec<f64> {
            let element = |i: usize| {
                let (block, row) = (i / (m * n), i / n);
                (0..k).map(|p| f64::from(x[row * k + p]) * weights.at(of(block) * n + i % n, p)).sum()
            };
            (0..blocks * m * n).map(element).collect()
        };
        let x = numbers(Key::new(103), count * m * k);
        let got = run(&device, &weights, &[("x", tensor(&[count, m, k], &x))], 1 + more, |w, x| w.matmul_batched(&x[0], count));
        check(name, &got, &product(&x, &|b| b, count), 4 * k);
        let groups: Vec<i32> = [2, 0, 1, 1, 3, 0, 2].into_iter().map(|g: i32| g % count as i32).collect();
        let x = numbers(Key::new(104), groups.len() * m * k);
        let given = [("x", tensor(&[groups.len(), m, k], &x)), ("g", HostTensor::new([groups.len()], groups.clone()).expect("fits"))];
        let got = run(&device, &weights, &given, 1 + more, |w, x| w.matmul_grouped(&x[0], &x[1], count));
        check(name, &got, &product(&x, &|b| groups[b] as usize, groups.len()), 4 * k);
    }
    let weights = Weights::new(&Scheme::parse("nf4").expect("a scheme"), Key::new(0), 6, 64);
    let message =
        capture(|t| weights.inputs(t)?.matmul_batched(&t.input("x", [4, 2, 64], DType::F32)?, 4)).expect_err("6 rows").to_string();
    assert!(message.contains("6 rows") && message.contains("4 matrices"), "{message}");
}

/// Bias, activation, residual and a change of type are part of the product's kernel; what is quantised again follows it.
#[test]
fn packed_products_keep_their_epilogues() {
    let device = open();
    for name in ["int4-group32", "int8-channel", "mxfp8-e4m3", "nvfp4"] {
        let scheme = Scheme::parse(name).expect(name);
        let [m, n, k] = [17usize, 64, 257];
        let weights = Weights::new(&scheme, Key::new(7), n, k);
        let (x, bias, residual) = (numbers(Key::new(8), m * k), numbers(Key::new(9), n), numbers(Key::new(10), m * n));
        let given = [("x", tensor(&[m, k], &x)), ("bias", tensor(&[n], &bias)), ("residual", tensor(&[m, n], &residual))];
        let element = |i: usize| {
            let sum: f64 = (0..k).map(|p| f64::from(x[i / n * k + p]) * weights.at(i % n, p)).sum();
            (sum + f64::from(bias[i % n])).max(0.0) + f64::from(residual[i])
        };
        let expected: Vec<f64> = (0..m * n).map(element).collect();
        let layer = |w: &Packed<Traced>, x: &[Traced]| w.matmul(&x[0])?.add(&x[1])?.relu()?.add(&x[2]);
        check(name, &run(&device, &weights, &given, 1, layer), &expected, k);
        let half = run(&device, &weights, &given, 1, |w, x| layer(w, x)?.cast(DType::F16));
        assert!(relative_error(&half, &expected) < 4e-4, "{name}: {:.2e}", relative_error(&half, &expected));
        let int8 = Scheme::parse("int8-channel").expect("a scheme");
        let graph = capture(|t| {
            let inputs = given.iter().map(|(name, x)| t.input(*name, x.shape(), x.dtype())).collect::<sublane::Result<Vec<_>>>()?;
            layer(&weights.inputs(t)?, &inputs)?.fake_quantise(&int8, 0, 0)
        });
        let compiled = compile(&graph.expect("records"), &device.target(), &CompileOptions::default()).expect("compiles");
        assert!(compiled.plan().num_dispatches() <= 4, "{}", compiled.fusion());
    }
}
