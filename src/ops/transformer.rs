//! Parts of transformers that are more than one primitive: gated units and rotary positions.

use super::RefTensor;
use super::call::{Call, FLOATS};
use super::cases::{Cases, floats, splat, uniform};
use super::norm::aligned;
use super::tolerance::Tolerance;
use super::value::Value;
use super::{activation::Activation, broadcast_shapes};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, TensorType};
use kernels_gen::DType;

/// `(gate, up)`: `gate * sigmoid(gate) * up`, the gated unit of Llama's feed-forward layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwiGlu;

impl Composite for SwiGlu {
    fn name(&self) -> &'static str {
        "SwiGLU"
    }

    fn attributes(&self) -> String {
        String::new()
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [gate, _] = call.operands(["gate", "up"])?;
        call.dtype("gate", gate, FLOATS)?;
        call.same_type()?;
        Ok(gate.clone())
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[gate, up] = inputs else { return Err(Error::internal("SwiGLU without two operands")) };
        let open = b.add(Op::composite(Activation::Silu), &[gate])?;
        b.binary(BinaryOp::Mul, open, up)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let (gate, up) = (inputs[0], inputs[1]);
        let data = gate.data.iter().zip(&up.data).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
        RefTensor::new(gate.dtype, gate.shape.clone(), data)
    }
}

/// `(x [..., d], cos, sin)`: pairs of the first elements of each row turned by angles, whose cosines and sines broadcast to `[..., pairs]`.
/// What lies past the pairs stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RotaryEmbedding {
    /// Whether a pair is two neighbours; else it is one element of the first half and one of the second.
    pub interleaved: bool,
}

impl Composite for RotaryEmbedding {
    fn name(&self) -> &'static str {
        "RotaryEmbedding"
    }

    fn attributes(&self) -> String {
        if self.interleaved { "interleaved".to_string() } else { String::new() }
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x, cos, sin] = call.operands(["x", "cos", "sin"])?;
        call.floats("each operand", inputs)?;
        let fits = || {
            let (last, pairs) = (*x.shape.last()?, *cos.shape.last()?);
            let angles = [&x.shape[..x.rank() - 1], &[pairs]].concat();
            let broadcasts = broadcast_shapes(&[&angles, &cos.shape]).is_ok_and(|s| s == angles);
            (pairs.checked_mul(2)? <= last && broadcasts && cos == sin).then_some(())
        };
        match fits() {
            Some(()) => Ok(x.clone()),
            None => Err(call.misfit("cos and sin must have one shape that broadcasts to that of x with at most half its last dimension")),
        }
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x, cos, sin] = inputs else { return Err(Error::internal("RotaryEmbedding without three operands")) };
        let shape = b.shape(x);
        let rank = shape.len();
        let pairs = b.shape(cos).last().copied().unwrap_or(0);
        let part = |b: &mut GraphBuilder, from: usize, step: usize, size: usize| {
            let (mut starts, mut steps, mut sizes) = (vec![0; rank], vec![1; rank], shape.clone());
            (starts[rank - 1], steps[rank - 1], sizes[rank - 1]) = (if size == 0 { 0 } else { from }, step as isize, size);
            b.add(Prim::Slice { starts, steps, sizes }, &[x])
        };
        let (first, second) = if self.interleaved {
            (part(b, 0, 2, pairs)?, part(b, 1, 2, pairs)?)
        } else {
            (part(b, 0, 1, pairs)?, part(b, pairs, 1, pairs)?)
        };
        let mut turn = |a: NodeId, by_a: NodeId, op: BinaryOp, c: NodeId, by_c: NodeId| {
            let (a, c) = (b.binary(BinaryOp::Mul, a, by_a)?, b.binary(BinaryOp::Mul, c, by_c)?);
            b.binary(op, a, c)
        };
        let left = turn(first, cos, BinaryOp::Sub, second, sin)?;
        let right = turn(second, cos, BinaryOp::Add, first, sin)?;
        let rest = part(b, 2 * pairs, 1, shape[rank - 1] - 2 * pairs)?;
        let turned = if self.interleaved {
            let mut single = b.shape(left);
            single.push(1);
            let (left, right) = (b.reshape(left, &single)?, b.reshape(right, &single)?);
            let paired = b.add(Prim::Concat { axis: rank }, &[left, right])?;
            let mut flat = shape.clone();
            flat[rank - 1] = 2 * pairs;
            vec![b.reshape(paired, &flat)?]
        } else {
            vec![left, right]
        };
        let parts: Vec<NodeId> = turned.into_iter().chain((shape[rank - 1] > 2 * pairs).then_some(rest)).collect();
        b.add(Prim::Concat { axis: rank - 1 }, &parts)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let (x, cos, sin) = (inputs[0], inputs[1], inputs[2]);
        let (width, pairs) = (x.shape[x.shape.len() - 1], cos.shape[cos.shape.len() - 1]);
        let angles = [&x.shape[..x.shape.len() - 1], &[pairs]].concat();
        let mut data = x.data.clone();
        for i in 0..angles.iter().product() {
            let (row, pair) = (i / pairs, i % pairs);
            let (a, b) = if self.interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + pairs) };
            let (a, b) = (row * width + a, row * width + b);
            let (c, s) = (aligned(cos, &angles, i), aligned(sin, &angles, i));
            (data[a], data[b]) = (x.data[a] * c - x.data[b] * s, x.data[b] * c + x.data[a] * s);
        }
        RefTensor::new(x.dtype, x.shape.clone(), data)
    }
}

/// Parts of transformers.
pub trait TransformerOps: Value {
    /// `self * sigmoid(self) * up`.
    fn swiglu(&self, up: &Self) -> Result<Self> {
        Self::apply(Op::composite(SwiGlu), &[self, up])
    }

    /// Pairs of elements of the last dimension turned by the angles of `cos` and `sin`.
    fn rotary(&self, cos: &Self, sin: &Self, interleaved: bool) -> Result<Self> {
        Self::apply(Op::composite(RotaryEmbedding { interleaved }), &[self, cos, sin])
    }

    /// Rows of this table `[n, ...]` by their numbers (I32).
    fn embedding(&self, ids: &Self) -> Result<Self> {
        Self::apply(Prim::Gather { axis: 0 }.into(), &[self, ids])
    }
}

impl<V: Value> TransformerOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let close = Tolerance::Relative { relative: 2e-5, absolute: 2e-6 };
    for shape in [&[] as &[usize], &[0], &[257], &[3, 64]] {
        cases.add(Op::composite(SwiGlu), close, vec![uniform(DType::F32, shape, -6.0, 6.0), floats(shape)]);
    }
    for value in [500.0, -500.0, f64::NAN] {
        cases.add(Op::composite(SwiGlu), close, vec![splat(DType::F32, &[5], value), floats(&[5])]);
    }
    for interleaved in [false, true] {
        for (x, angles) in [
            (&[7usize, 8] as &[usize], &[7usize, 4] as &[usize]),
            (&[2, 3, 5, 16], &[5, 8]),
            (&[1, 3, 2, 11], &[1, 2, 3]),
            (&[2, 1], &[2, 0]),
            (&[0, 4], &[1, 2]),
        ] {
            let operands = vec![floats(x), uniform(DType::F32, angles, -1.0, 1.0), uniform(DType::F32, angles, -1.0, 1.0)];
            cases.add(Op::composite(RotaryEmbedding { interleaved }), close, operands);
        }
    }
}
