//! Random numbers from explicit keys: Threefry, by the one convention of [`kernels_gen::threefry`].
//!
//! A key is a tensor `u32[2]`, so that a graph takes another key at each run. Every number is a function of its key and its place, and can be
//! drawn again on the processor.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, uniform};
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, TensorType, UnaryOp};
use crate::tensor::HostTensor;
use kernels_gen::DType;
use kernels_gen::threefry::Key;
use std::f64::consts::TAU;

/// What is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Random {
    /// Floats in `[0, 1)`: element `n` is word `n` of the key.
    Uniform {
        /// Shape of the result.
        shape: Vec<usize>,
    },
    /// Floats of the normal distribution with mean 0 and variance 1: element `n` is made from block `n` of the key, as
    /// `sqrt(-2 ln(1 - u)) * cos(2 pi (v - 1/2))` of its two words as uniform floats `u` and `v`.
    Normal {
        /// Shape of the result.
        shape: Vec<usize>,
    },
    /// Words (u32), all equally likely: element `n` is word `n` of the key.
    Words {
        /// Shape of the result.
        shape: Vec<usize>,
    },
    /// `(key, stream)`: the key of that stream, both `u32[2]` with the low word first.
    Stream,
}

impl Composite for Random {
    fn name(&self) -> &'static str {
        match self {
            Random::Uniform { .. } => "RandomUniform",
            Random::Normal { .. } => "RandomNormal",
            Random::Words { .. } => "RandomWords",
            Random::Stream => "RandomStream",
        }
    }

    fn attributes(&self) -> String {
        match self {
            Random::Uniform { shape } | Random::Normal { shape } | Random::Words { shape } => format!("shape={shape:?}"),
            Random::Stream => String::new(),
        }
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let words = |role: &str, ty: &TensorType| {
            call.dtype(role, ty, &[DType::U32])?;
            if ty.shape == [2] { Ok(()) } else { Err(call.misfit(format_args!("{role} is two words, u32[2]"))) }
        };
        match self {
            Random::Uniform { shape } | Random::Normal { shape } | Random::Words { shape } => {
                let [key] = call.operands(["key"])?;
                words("key", key)?;
                let dtype = if matches!(self, Random::Words { .. }) { DType::U32 } else { DType::F32 };
                Ok(TensorType::new(dtype, shape.clone()))
            }
            Random::Stream => {
                let [key, stream] = call.operands(["key", "stream"])?;
                words("key", key)?;
                words("stream", stream)?;
                Ok(key.clone())
            }
        }
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[key, ref rest @ ..] = inputs else { return Err(Error::internal("random numbers without a key")) };
        match self {
            Random::Stream => {
                let &[stream] = rest else { return Err(Error::internal("a stream without its number")) };
                let counter = [word(b, stream, 0)?, word(b, stream, 1)?];
                let [low, high] = threefry(b, key, counter)?;
                let (low, high) = (b.reshape(low, &[1])?, b.reshape(high, &[1])?);
                b.add(Prim::Concat { axis: 0 }, &[low, high])
            }
            Random::Uniform { shape } | Random::Words { shape } => {
                let n = index(b, shape)?;
                let block = b.binary_scalar(BinaryOp::Shr, n, 1.0)?;
                let zero = b.splat_like(n, DType::U32, 0.0)?;
                let [low, high] = threefry(b, key, [block, zero])?;
                let half = b.binary_scalar(BinaryOp::And, n, 1.0)?;
                let second = b.binary(BinaryOp::Ne, half, zero)?;
                let word = b.select(second, high, low)?;
                let drawn = if matches!(self, Random::Words { .. }) { word } else { unit(b, word)? };
                b.reshape(drawn, shape)
            }
            Random::Normal { shape } => {
                let n = index(b, shape)?;
                let zero = b.splat_like(n, DType::U32, 0.0)?;
                let [low, high] = threefry(b, key, [n, zero])?;
                let (u, v) = (unit(b, low)?, unit(b, high)?);
                let u = b.unary(UnaryOp::Neg, u)?;
                let u = b.binary_scalar(BinaryOp::Add, u, 1.0)?;
                let log = b.unary(UnaryOp::Log, u)?;
                let square = b.binary_scalar(BinaryOp::Mul, log, -2.0)?;
                let radius = b.unary(UnaryOp::Sqrt, square)?;
                let turn = b.binary_scalar(BinaryOp::Sub, v, 0.5)?;
                let angle = b.binary_scalar(BinaryOp::Mul, turn, TAU)?;
                let cos = b.unary(UnaryOp::Cos, angle)?;
                let normal = b.binary(BinaryOp::Mul, radius, cos)?;
                b.reshape(normal, shape)
            }
        }
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let words = |tensor: &RefTensor| match tensor.data[..] {
            [low, high] => Ok([low as u32, high as u32]),
            _ => Err(Error::internal("a key of other than two words")),
        };
        let [key, rest @ ..] = inputs else { return Err(Error::internal("random numbers without a key")) };
        let key = Key::from_words(words(key)?);
        let unit = |word: u32| f64::from(kernels_gen::threefry::uniform(word));
        match self {
            Random::Stream => {
                let [stream] = rest else { return Err(Error::internal("a stream without its number")) };
                let [low, high] = words(stream)?;
                let drawn = key.stream(u64::from(low) | u64::from(high) << 32).words();
                RefTensor::new(DType::U32, [2], drawn.map(f64::from).to_vec())
            }
            Random::Uniform { shape } => {
                let count = shape.iter().product::<usize>() as u64;
                RefTensor::new(DType::F32, shape.clone(), (0..count).map(|n| unit(key.word(n))).collect())
            }
            Random::Words { shape } => {
                let count = shape.iter().product::<usize>() as u64;
                RefTensor::new(DType::U32, shape.clone(), (0..count).map(|n| f64::from(key.word(n))).collect())
            }
            Random::Normal { shape } => {
                let count = shape.iter().product::<usize>() as u64;
                let normal = |n| {
                    let [u, v] = key.block(n).map(unit);
                    (-2.0 * (1.0 - u).ln()).sqrt() * (TAU * (v - 0.5)).cos()
                };
                RefTensor::new(DType::F32, shape.clone(), (0..count).map(normal).collect())
            }
        }
    }
}

/// 0, 1, 2... for all elements of a shape.
fn index(b: &mut GraphBuilder, shape: &[usize]) -> Result<NodeId> {
    let count = crate::tensor::num_elems(shape)?;
    b.add(Prim::Iota { ty: TensorType::new(DType::U32, [count]), axis: 0 }, &[])
}

/// A word of a pair, without dimensions.
fn word(b: &mut GraphBuilder, pair: NodeId, at: usize) -> Result<NodeId> {
    let one = b.add(Prim::Slice { starts: vec![at], steps: vec![1], sizes: vec![1] }, &[pair])?;
    b.reshape(one, &[])
}

/// Words as floats in `[0, 1)`.
fn unit(b: &mut GraphBuilder, word: NodeId) -> Result<NodeId> {
    let top = b.binary_scalar(BinaryOp::Shr, word, 8.0)?;
    let float = b.cast(top, DType::F32)?;
    b.binary_scalar(BinaryOp::Mul, float, 1.0 / 16_777_216.0)
}

/// The two words that Threefry-2x32-20 makes of each counter under a key.
fn threefry(b: &mut GraphBuilder, key: NodeId, counter: [NodeId; 2]) -> Result<[NodeId; 2]> {
    const ROTATIONS: [u32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];
    let (first, second) = (word(b, key, 0)?, word(b, key, 1)?);
    let third = b.binary(BinaryOp::Xor, first, second)?;
    let parity = b.scalar(DType::U32, f64::from(0x1bd1_1bda_u32))?;
    let third = b.binary(BinaryOp::Xor, third, parity)?;
    let schedule = [first, second, third];
    let mut x = b.binary(BinaryOp::Add, counter[0], schedule[0])?;
    let mut y = b.binary(BinaryOp::Add, counter[1], schedule[1])?;
    for round in 0..20 {
        x = b.binary(BinaryOp::Add, x, y)?;
        let turn = ROTATIONS[round % 8];
        let left = b.binary_scalar(BinaryOp::Shl, y, f64::from(turn))?;
        let right = b.binary_scalar(BinaryOp::Shr, y, f64::from(32 - turn))?;
        let turned = b.binary(BinaryOp::Or, left, right)?;
        y = b.binary(BinaryOp::Xor, turned, x)?;
        if round % 4 == 3 {
            let step = round / 4 + 1;
            x = b.binary(BinaryOp::Add, x, schedule[step % 3])?;
            y = b.binary(BinaryOp::Add, y, schedule[(step + 1) % 3])?;
            y = b.binary_scalar(BinaryOp::Add, y, step as f64)?;
        }
    }
    Ok([x, y])
}

/// The key of stream `stream` of `seed`, as the operations take it.
pub fn random_key(seed: u64, stream: u64) -> Result<HostTensor> {
    HostTensor::new([2], Key::new(seed).stream(stream).words().to_vec())
}

/// Random numbers; the value is the key, `u32[2]`. A key is drawn from, or split into streams, never both.
pub trait RandomOps: Value {
    /// Floats in `[0, 1)`.
    fn random_uniform(&self, shape: &[usize]) -> Result<Self> {
        Self::apply(Op::composite(Random::Uniform { shape: shape.to_vec() }), &[self])
    }

    /// Floats of the normal distribution with mean 0 and variance 1.
    fn random_normal(&self, shape: &[usize]) -> Result<Self> {
        Self::apply(Op::composite(Random::Normal { shape: shape.to_vec() }), &[self])
    }

    /// Words (u32), all equally likely: what [`FormatOps::encode_stochastic`](super::formats::FormatOps::encode_stochastic) rounds by.
    fn random_words(&self, shape: &[usize]) -> Result<Self> {
        Self::apply(Op::composite(Random::Words { shape: shape.to_vec() }), &[self])
    }

    /// The key of a stream of this key.
    fn random_stream(&self, stream: u64) -> Result<Self> {
        let words = HostTensor::new([2], vec![stream as u32, (stream >> 32) as u32])?;
        Self::apply(Op::composite(Random::Stream), &[self, &self.constant(words)?])
    }
}

impl<V: Value> RandomOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let key = || uniform(DType::U32, &[2], 0.0, f64::from(u32::MAX));
    for shape in [&[] as &[usize], &[0], &[257], &[3, 5, 7]] {
        cases.add(Op::composite(Random::Uniform { shape: shape.to_vec() }), Tolerance::Exact, vec![key()]);
        cases.add(Op::composite(Random::Words { shape: shape.to_vec() }), Tolerance::Exact, vec![key()]);
        // Drivers may miss a cosine by 2^-11.
        let near = Tolerance::Relative { relative: 1e-4, absolute: 4e-3 };
        cases.add(Op::composite(Random::Normal { shape: shape.to_vec() }), near, vec![key()]);
    }
    cases.add(Op::composite(Random::Stream), Tolerance::Exact, vec![key(), key()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::reference_graph;

    #[test]
    fn the_cipher_is_the_one_of_the_convention() {
        for (seed, stream) in [(0, 0), (7, 3), (u64::MAX, 1 << 40)] {
            let mut b = GraphBuilder::new();
            let key = b.constant(random_key(seed, stream).unwrap()).unwrap();
            let n = index(&mut b, &[9]).unwrap();
            let zero = b.splat_like(n, DType::U32, 0.0).unwrap();
            let [low, high] = threefry(&mut b, key, [n, zero]).unwrap();
            b.output("low", low).unwrap();
            b.output("high", high).unwrap();
            let drawn = reference_graph(&b.finish(), &[]).unwrap();
            let key = Key::new(seed).stream(stream);
            for n in 0..9 {
                let words = [0, 1].map(|half: usize| drawn[half].1.data[n] as u32);
                assert_eq!(words, key.block(n as u64));
            }
        }
    }

    #[test]
    fn keys_are_two_words() {
        let ty = TensorType::new(DType::U32, [3]);
        let error = Random::Uniform { shape: vec![4] }.infer(&[&ty]).unwrap_err().to_string();
        assert!(error.contains("u32[2]"), "{error}");
    }
}
