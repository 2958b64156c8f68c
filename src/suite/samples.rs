//! Small models with random weights, for demonstrations and benchmarks that need no data.

use std::time::Instant;

use crate::capture::{Traced, Tracer, capture};
use crate::compiler::{CompileOptions, compile};
use crate::device::Device;
use crate::error::Result;
use crate::graph::{Graph, TensorType};
use crate::ops::attention::Attention;
use crate::ops::conv::Conv;
use crate::ops::prelude::*;
use crate::ops::reference_graph;
use crate::ops::window::Padding;
use crate::session::Session;
use crate::stats::{median, relative_error};
use crate::suite::inputs;
use crate::tensor::HostTensor;
use kernels_gen::DType;
use kernels_gen::threefry::Key;

/// A model, its input called `x`.
pub struct Sample {
    /// What it is.
    pub name: &'static str,
    /// The graph.
    pub graph: Graph,
}

/// Every sample: a perceptron, a convolutional network and a block of attention, all for `batch` examples.
pub fn samples(key: Key, batch: usize) -> Result<Vec<Sample>> {
    Ok(vec![
        Sample { name: "MLP with softmax", graph: mlp(key.stream(0), batch)? },
        Sample { name: "small CNN", graph: cnn(key.stream(1), batch)? },
        Sample { name: "attention block", graph: attention_block(key.stream(2), batch)? },
    ])
}

/// How a sample ran on a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Kernel launches.
    pub kernels: usize,
    /// Time of a run after the first, the transfer of input and output included, in milliseconds.
    pub ms: f64,
    /// Distance from the reference in f64, relative in the Euclidean norm.
    pub error: f64,
}

/// Relative errors up to this are the rounding of f32.
pub const TOLERANCE: f64 = 1e-5;

impl Sample {
    /// Compiles the sample, runs it on random input and compares the result with the reference.
    pub fn try_on(&self, device: &Device, key: Key) -> Result<Trial> {
        let compiled = compile(&self.graph, &device.target(), &CompileOptions::default())?;
        let session = Session::load(device, &compiled)?;
        let mut given = Vec::new();
        for (port, stream) in compiled.inputs().iter().zip(0..) {
            given.push((port.name.as_str(), inputs::random(&port.ty, key.stream(stream))?));
        }
        let named: Vec<(&str, &HostTensor)> = given.iter().map(|(name, tensor)| (*name, tensor)).collect();
        let got = session.run(&named)?.single()?;
        let mut times = Vec::new();
        for _ in 0..5 {
            let start = Instant::now();
            session.run(&named)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let reference = reference_graph(&self.graph, &given)?;
        let expected = reference.first().map(|(_, value)| value.data.as_slice()).unwrap_or_default();
        let error = relative_error(&got.to_f64(), expected);
        Ok(Trial { kernels: compiled.plan().num_dispatches(), ms: median(&times), error })
    }
}

/// Random weights, one stream each, so scaled that values keep their magnitude through the layers.
pub(super) struct Weights<'a> {
    tracer: &'a Tracer,
    key: Key,
    used: u64,
}

impl<'a> Weights<'a> {
    pub(super) fn new(tracer: &'a Tracer, key: Key) -> Self {
        Weights { tracer, key, used: 0 }
    }

    /// Weights of `shape` with `fan_in` products in each sum.
    pub(super) fn next(&mut self, shape: &[usize], fan_in: usize) -> Result<Traced> {
        self.used += 1;
        let values = inputs::random(&TensorType::new(DType::F32, shape), self.key.stream(self.used))?;
        self.tracer.constant(values)?.mul_scalar((3.0 / fan_in as f64).sqrt())
    }

    pub(super) fn linear(&mut self, x: &Traced, outputs: usize) -> Result<Traced> {
        let inputs = x.shape().last().copied().unwrap_or(1);
        x.linear(&self.next(&[inputs, outputs], inputs)?, &self.next(&[outputs], inputs)?)
    }

    /// A 3x3 convolution with batch normalisation.
    pub(super) fn conv_norm(&mut self, x: &Traced, outputs: usize, stride: usize) -> Result<Traced> {
        let inputs = x.shape()[1];
        let weights = self.next(&[outputs, inputs, 3, 3], 9 * inputs)?;
        let conv = Conv { strides: vec![stride; 2], padding: Padding::Explicit { low: vec![1; 2], high: vec![1; 2] }, ..Conv::new(2) };
        let [bias, mean] = [self.next(&[outputs], 8)?, self.next(&[outputs], 8)?];
        let [scale, variance] = [self.next(&[outputs], 8)?.abs()?.add_scalar(0.5)?, self.next(&[outputs], 8)?.abs()?.add_scalar(0.5)?];
        x.conv(&weights, None, conv)?.batch_norm(&scale, &bias, &mean, &variance, 1e-5)
    }
}

/// Three layers of 784, 256, 128 and 10 values, then softmax.
pub fn mlp(key: Key, batch: usize) -> Result<Graph> {
    capture(|t| {
        let mut weights = Weights::new(t, key);
        let x = t.input("x", [batch, 784], DType::F32)?;
        let x = weights.linear(&x, 256)?.relu()?;
        let x = weights.linear(&x, 128)?.relu()?;
        weights.linear(&x, 10)?.softmax(-1)
    })
}

/// A residual network of five convolutions on images of 3x32x32, with ten classes.
pub fn cnn(key: Key, batch: usize) -> Result<Graph> {
    capture(|t| {
        let mut weights = Weights::new(t, key);
        let x = t.input("x", [batch, 3, 32, 32], DType::F32)?;
        let stem = weights.conv_norm(&x, 16, 1)?.relu()?;
        let inner = weights.conv_norm(&stem, 16, 1)?.relu()?;
        let x = weights.conv_norm(&inner, 16, 1)?.add(&stem)?.relu()?;
        let x = weights.conv_norm(&x, 32, 2)?.relu()?.max_pool(&[2, 2], &[2, 2])?;
        let x = weights.conv_norm(&x, 32, 1)?.relu()?;
        let features = x.global_average_pool()?.reshape(&[batch as isize, 32])?;
        weights.linear(&features, 10)?.softmax(-1)
    })
}

/// One transformer block: 64 tokens of 128 values, four heads, a feed-forward layer of 256.
pub fn attention_block(key: Key, batch: usize) -> Result<Graph> {
    const TOKENS: usize = 64;
    const WIDTH: usize = 128;
    const HEADS: usize = 4;
    capture(|t| {
        let mut weights = Weights::new(t, key);
        let x = t.input("x", [batch, TOKENS, WIDTH], DType::F32)?;
        let norm = |weights: &mut Weights<'_>, x: &Traced| {
            let [scale, bias] = [weights.next(&[WIDTH], 4)?, weights.next(&[WIDTH], 4)?];
            x.layer_norm(&scale, Some(&bias), -1, 1e-5)
        };
        let normed = norm(&mut weights, &x)?;
        let mut heads = || {
            let shape = [batch, TOKENS, HEADS, WIDTH / HEADS].map(|n| n as isize);
            weights.linear(&normed, WIDTH)?.reshape(&shape)?.transpose(&[0, 2, 1, 3])
        };
        let (q, k, v) = (heads()?, heads()?, heads()?);
        let mixed = q.attention(&k, &v, None, Attention { scale: None, causal: true })?;
        let mixed = mixed.transpose(&[0, 2, 1, 3])?.reshape(&[batch, TOKENS, WIDTH].map(|n| n as isize))?;
        let x = x.add(&weights.linear(&mixed, WIDTH)?)?;
        let normed = norm(&mut weights, &x)?;
        let hidden = weights.linear(&normed, 256)?.gelu()?;
        x.add(&weights.linear(&hidden, WIDTH)?)
    })
}

/// Sizes of a block of a Llama-style decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LlamaSizes {
    /// Width of the stream between blocks.
    pub width: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values, a divisor of `heads`.
    pub key_heads: usize,
    /// Width of the feed-forward layer.
    pub hidden: usize,
}

impl LlamaSizes {
    /// Those of SmolLM2-135M.
    pub const SMOLLM2_135M: LlamaSizes = LlamaSizes { width: 576, heads: 9, key_heads: 3, hidden: 1536 };
}

/// One block of a Llama-style decoder on `tokens` tokens: normalisation, attention with rotary positions and shared heads of keys, and a
/// gated feed-forward layer, each added to the stream.
pub fn llama_block(key: Key, sizes: LlamaSizes, tokens: usize) -> Result<Graph> {
    let LlamaSizes { width, heads, key_heads, hidden } = sizes;
    let head = width / heads.max(1);
    capture(|t| {
        let mut weights = Weights::new(t, key);
        let x = t.input("x", [tokens, width], DType::F32)?;
        let angles: Vec<f64> =
            (0..tokens * (head / 2)).map(|i| (i / (head / 2)) as f64 / 1e4f64.powf((i % (head / 2)) as f64 * 2.0 / head as f64)).collect();
        let table = |f: fn(f64) -> f64| {
            let values: Vec<f32> = angles.iter().map(|&a| f(a) as f32).collect();
            t.constant(HostTensor::new([tokens, head / 2], values)?)
        };
        let (cos, sin) = (table(f64::cos)?, table(f64::sin)?);
        let normed = x.rms_norm(&weights.next(&[width], 1)?, -1, 1e-5)?;
        let mut project = |x: &Traced, outputs: usize| {
            let inputs = x.shape().last().copied().unwrap_or(1);
            x.matmul(&weights.next(&[inputs, outputs], inputs)?)
        };
        let split = |x: Traced, heads: usize| x.reshape(&[tokens, heads, head].map(|n| n as isize))?.transpose(&[1, 0, 2]);
        let q = split(project(&normed, width)?, heads)?.rotary(&cos, &sin, false)?;
        let k = split(project(&normed, key_heads * head)?, key_heads)?.rotary(&cos, &sin, false)?;
        let v = split(project(&normed, key_heads * head)?, key_heads)?;
        let mixed = q.attention(&k, &v, None, Attention { scale: None, causal: true })?;
        let mixed = mixed.transpose(&[1, 0, 2])?.reshape(&[tokens as isize, width as isize])?;
        let x = x.add(&project(&mixed, width)?)?;
        let scale = x.constant(inputs::random(&TensorType::new(DType::F32, [width]), key.stream(99))?)?;
        let normed = x.rms_norm(&scale, -1, 1e-5)?;
        let gated = project(&normed, hidden)?.swiglu(&project(&normed, hidden)?)?;
        x.add(&project(&gated, width)?)
    })
}
