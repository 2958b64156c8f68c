//! Graphs that several tests compile.
#![allow(dead_code)]

use kernels_gen::threefry::Key;
use sublane::capture::{Traced, capture};
use sublane::graph::{Graph, TensorType};
use sublane::ops::attention::Attention;
use sublane::ops::conv::Conv;
use sublane::ops::prelude::*;
use sublane::ops::window::Padding;
use sublane::suite::inputs;
use sublane::{DType, HostTensor, Result};

/// Random f32 values in -1..1, a function of shape and seed.
pub fn weights(shape: &[usize], seed: u64) -> HostTensor {
    inputs::random(&TensorType::new(DType::F32, shape), Key::new(seed)).expect("fits")
}

/// A random value for each input of `graph`.
pub fn random_inputs(graph: &Graph, seed: u64) -> Vec<(String, HostTensor)> {
    let random = |(i, (name, id)): (usize, (&str, _))| {
        (name.to_string(), inputs::random(graph.ty(id), Key::new(seed).stream(i as u64)).expect("fits"))
    };
    graph.inputs().enumerate().map(random).collect()
}

/// A function of one f32 input `x`.
pub fn of_x(shape: &[usize], f: impl FnOnce(&Traced) -> Result<Traced>) -> Graph {
    capture(|t| f(&t.input("x", shape, DType::F32)?)).expect("records")
}

/// `relu((x + y) * x - y) * 0.5 + 1`.
pub fn chain(shape: &[usize]) -> Graph {
    let graph = capture(|t| {
        let (x, y) = (t.input("x", shape, DType::F32)?, t.input("y", shape, DType::F32)?);
        x.add(&y)?.mul(&x)?.sub(&y)?.relu()?.mul_scalar(0.5)?.add_scalar(1.0)
    });
    graph.expect("records")
}

pub fn softmax(shape: &[usize]) -> Graph {
    of_x(shape, |x| x.softmax(-1))
}

pub fn layer_norm(shape: &[usize]) -> Graph {
    let width = shape[shape.len() - 1];
    of_x(shape, |x| {
        let (scale, bias) = (x.constant(weights(&[width], 1))?, x.constant(weights(&[width], 2))?);
        x.layer_norm(&scale, Some(&bias), -1, 1e-5)
    })
}

pub fn rms_norm(shape: &[usize]) -> Graph {
    let width = shape[shape.len() - 1];
    of_x(shape, |x| x.rms_norm(&x.constant(weights(&[width], 1))?, -1, 1e-5))
}

/// `relu(x w + b)` with constant weights.
pub fn linear_relu(m: usize, k: usize, n: usize) -> Graph {
    of_x(&[m, k], |x| x.linear(&x.constant(weights(&[k, n], 3))?, &x.constant(weights(&[n], 4))?)?.relu())
}

/// A product of two inputs.
pub fn matmul(a: &[usize], b: &[usize]) -> Graph {
    let graph = capture(|t| t.input("a", a, DType::F32)?.matmul(&t.input("b", b, DType::F32)?));
    graph.expect("records")
}

/// A 3x3 convolution, padded to keep the size.
pub fn conv3(x: &Traced, outputs: usize, seed: u64) -> Result<Traced> {
    let weights = x.constant(weights(&[outputs, x.shape()[1], 3, 3], seed))?;
    x.conv(&weights, None, Conv { padding: Padding::symmetric(&[1, 1]), ..Conv::new(2) })
}

/// Batch normalisation with constant statistics.
pub fn batch_norm(x: &Traced, seed: u64) -> Result<Traced> {
    let channels = [x.shape()[1]];
    let positive = |seed| {
        let values: Vec<f32> = weights(&channels, seed).to_f64().iter().map(|v| v.abs() as f32 + 0.5).collect();
        x.constant(HostTensor::new(channels, values)?)
    };
    let (bias, mean) = (x.constant(weights(&channels, seed))?, x.constant(weights(&channels, seed + 1))?);
    x.batch_norm(&positive(seed + 2)?, &bias, &mean, &positive(seed + 3)?, 1e-5)
}

/// `relu(batch_norm(conv(x)))`.
pub fn conv_norm_relu(batch: usize, channels: usize, size: usize, outputs: usize) -> Graph {
    of_x(&[batch, channels, size, size], |x| batch_norm(&conv3(x, outputs, 5)?, 6)?.relu())
}

/// A residual block: `relu(norm(conv(relu(norm(conv(x))))) + x)`.
pub fn residual_block(channels: usize, size: usize) -> Graph {
    of_x(&[1, channels, size, size], |x| {
        let inner = batch_norm(&conv3(x, channels, 5)?, 6)?.relu()?;
        batch_norm(&conv3(&inner, channels, 15)?, 16)?.add(x)?.relu()
    })
}

/// `x` scaled, clipped and stored as bytes.
pub fn quantise(shape: &[usize]) -> Graph {
    of_x(shape, |x| x.mul_scalar(127.0)?.add_scalar(128.0)?.round()?.clip(0.0, 255.0)?.cast(DType::U8))
}

/// Rows of a table by an input of indices, plus one.
pub fn embedding(rows: usize, width: usize, indices: &[usize]) -> Graph {
    let graph = capture(|t| {
        let table = t.constant(weights(&[rows, width], 7))?;
        table.gather(&t.input("i", indices, DType::I32)?, 0)?.add_scalar(1.0)
    });
    graph.expect("records")
}

/// Causal self-attention of `[heads, tokens, width]`.
pub fn attention(heads: usize, tokens: usize, width: usize) -> Graph {
    of_x(&[heads, tokens, width], |x| x.attention(x, x, None, Attention { scale: None, causal: true }))
}
