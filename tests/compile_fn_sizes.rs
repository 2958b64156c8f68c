//! Functions whose sizes differ from call to call: which kernels are made, and that each size is right.

mod device_common;

use std::cell::Cell;
use std::slice::from_ref;

use device_common::open;
use sublane::capture::{CaptureOptions, CompiledFn, Context, Reason, Sizes, Tensor, capture, compile};
use sublane::kernels_gen::threefry::Key;
use sublane::ops::prelude::*;
use sublane::ops::{Tolerance, reference_graph};
use sublane::{DType, HostTensor, Result};

fn random(shape: &[usize], stream: u64) -> HostTensor {
    let key = Key::new(4).stream(stream);
    let count: usize = shape.iter().product();
    HostTensor::new(shape, (0..count as u64).map(|i| key.uniform(i) * 2.0 - 1.0).collect::<Vec<f32>>()).expect("a tensor")
}

/// A program of one input `[n, features]` and weights.
type Program<V> = fn(&V, &[V]) -> Result<V>;

fn mlp<V: Value>(x: &V, w: &[V]) -> Result<V> {
    x.linear(&w[0], &w[1])?.gelu()?.linear(&w[2], &w[3])?.softmax(-1)
}

fn rows<V: Value>(x: &V, w: &[V]) -> Result<V> {
    x.softmax(-1)?.layer_norm(&w[0], Some(&w[1]), -1, 1e-5)?.mul_scalar(0.5)?.add(x)
}

/// Attention of four heads over the rows of `x`, and a feed-forward part.
fn block<V: Value>(x: &V, w: &[V]) -> Result<V> {
    let (s, d, heads) = (x.ty().shape[0] as isize, x.ty().shape[1] as isize, 4);
    let normal = x.layer_norm(&w[0], Some(&w[1]), -1, 1e-5)?;
    let split = |w: &V| normal.matmul(w)?.reshape(&[s, heads, d / heads])?.transpose(&[1, 0, 2]);
    let (q, k, v) = (split(&w[2])?, split(&w[3])?, split(&w[4])?);
    let scores = q.matmul(&k.transpose(&[0, 2, 1])?)?.mul_scalar(1.0 / ((d / heads) as f64).sqrt())?;
    let mixed = scores.softmax(-1)?.matmul(&v)?.transpose(&[1, 0, 2])?.reshape(&[s, d])?;
    let x = mixed.matmul(&w[5])?.add(x)?;
    x.layer_norm(&w[0], Some(&w[1]), -1, 1e-5)?.matmul(&w[6])?.silu()?.matmul(&w[7])?.add(&x)
}

/// A program compiled with a dynamic first dimension, and what it is compared with.
struct Case<F> {
    context: Context,
    features: usize,
    weights: Vec<HostTensor>,
    tolerance: f64,
    reference: Program<sublane::capture::Traced>,
    f: CompiledFn<F>,
}

fn case(
    features: usize,
    weights: Vec<HostTensor>,
    tolerance: f64,
    reference: Program<sublane::capture::Traced>,
    program: Program<Tensor>,
) -> Case<impl Fn(&[Tensor]) -> Result<Tensor>> {
    let context = Context::new(&open());
    let on_device: Vec<Tensor> = weights.iter().map(|w| context.tensor(w).expect("uploads")).collect();
    let f = compile(&context, CaptureOptions::default(), move |x: &[Tensor]| program(&x[0], &on_device));
    Case { context, features, weights, tolerance, reference, f }
}

impl<F: Fn(&[Tensor]) -> Result<Tensor>> Case<F> {
    /// Runs one size, checks it, and says how many pipelines the device has made for it.
    fn run(&self, n: usize) -> usize {
        let x = random(&[n, self.features], 100 + n as u64);
        let before = self.context.device().num_pipelines();
        let y = self.f.call(&[self.context.tensor(&x).expect("uploads")]).unwrap_or_else(|e| panic!("size {n}: {e}"));
        let y = y[0].to_host().expect("reads");
        let made = self.context.device().num_pipelines() - before;
        let graph = capture(|t| {
            let x = t.input("x", [n, self.features], DType::F32)?;
            let weights = self.weights.iter().map(|w| t.constant(w.clone())).collect::<Result<Vec<_>>>()?;
            (self.reference)(&x, &weights)
        });
        let expected = reference_graph(&graph.expect("records"), &[("x", x)]).expect("has a value").remove(0).1;
        Tolerance::Norm(self.tolerance).check(&y, &expected).unwrap_or_else(|e| panic!("size {n}: {e}"));
        made
    }

    /// Sizes of one class, then of another one, each time with no kernel made once the class is known.
    fn check(&self, class: &[usize], other: &[usize]) {
        assert!(self.run(class[0]) > 0);
        let second = self.run(class[1]);
        for &n in &class[2..] {
            assert_eq!(self.run(n), 0, "size {n} made kernels after {second} for the second size\n{}", self.f.explain());
        }
        self.run(other[0]);
        for &n in &other[1..] {
            assert_eq!(self.run(n), 0, "size {n} of the other class made kernels\n{}", self.f.explain());
        }
        // What was made serves all the sizes still.
        for &n in class.iter().chain(other).rev() {
            assert_eq!(self.run(n), 0, "size {n} again");
        }
        for n in [0, 1, 2, 3] {
            self.run(n);
        }
        assert_eq!(self.f.explain().fallen_back, None);
    }
}

#[test]
fn the_batch_of_an_mlp() {
    let shapes: [&[usize]; 4] = [&[20, 48], &[48], &[48, 10], &[10]];
    let weights = shapes.iter().enumerate().map(|(i, shape)| random(shape, i as u64)).collect();
    case(20, weights, 1e-4, mlp, mlp).check(&[72, 76, 80, 88, 120], &[73, 91, 109]);
}

#[test]
fn rows_of_softmax_and_layer_norm() {
    let weights = vec![random(&[96], 1), random(&[96], 2)];
    case(96, weights, 1e-4, rows, rows).check(&[12, 13, 31, 64, 200, 513], &[1000, 129]);
}

#[test]
fn the_sequence_of_a_transformer_block() {
    let d = 32;
    let shapes: [&[usize]; 8] = [&[d], &[d], &[d, d], &[d, d], &[d, d], &[d, d], &[d, 2 * d], &[2 * d, d]];
    let weights = shapes.iter().enumerate().map(|(i, shape)| random(shape, i as u64)).collect();
    case(d, weights, 1e-4, block, block).check(&[72, 80, 84, 96, 128], &[73, 77, 89]);
}

#[test]
fn sizes_that_are_told_static_are_recompilations() {
    let context = Context::new(&open());
    let options = CaptureOptions { sizes: Sizes::Static, max_recompiles: 1, ..CaptureOptions::default() };
    let f = compile(&context, options, |x: &[Tensor]| x[0].exp());
    for n in [4, 8, 12] {
        let x = context.tensor(&random(&[n], 0)).expect("uploads");
        assert_eq!(f.call(from_ref(&x)).expect("runs")[0].shape(), [n]);
    }
    let explained = f.explain();
    assert_eq!(explained.compilations.iter().map(|c| c.reason).collect::<Vec<_>>(), [Reason::First, Reason::Size]);
    assert!(explained.compilations[1].difference.contains("dimension 0 is 8, was 4"), "{explained}");
    assert!(explained.fallen_back.is_some());
}

#[test]
fn a_scalar_that_follows_the_size_is_right() {
    let context = Context::new(&open());
    let factor = Cell::new(1.0);
    let f = compile(&context, CaptureOptions::default(), |x: &[Tensor]| {
        let n = x[0].shape()[0];
        x[0].mul_scalar(1.0 / n as f64)?.add_scalar(factor.get())
    });
    for (n, add) in [(8, 1.0), (12, 1.0), (20, 1.0), (20, 2.0), (28, 3.0), (8, 4.0)] {
        factor.set(add);
        let x = random(&[n], n as u64);
        let y = f.call(&[context.tensor(&x).expect("uploads")]).expect("runs");
        let expected: Vec<f32> = x.as_slice::<f32>().expect("f32").iter().map(|v| v * (1.0 / n as f32) + add as f32).collect();
        let y = y[0].to_host().expect("reads");
        let close = y.as_slice::<f32>().expect("f32").iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6 * b.abs().max(1.0));
        assert!(close, "size {n}, {add}: {y:?} {expected:?}");
    }
}
