//! Activations.

use super::node::{Call, Handler, Importer, Val, one};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, NodeId, Op, Prim, ReduceOp, TensorType};
use crate::ops::activation::{Activation, Softmax};
use crate::ops::indexing::ArgReduce;
use crate::ops::reduce_identity;
use kernels_gen::DType;

pub(super) fn handler(op: &str) -> Option<Handler> {
    Some(match op {
        "Relu" | "Sigmoid" | "LeakyRelu" | "HardSigmoid" | "HardSwish" | "Elu" | "Selu" | "Softplus" | "Softsign" | "Gelu" | "Celu"
        | "Mish" | "ThresholdedRelu" | "Shrink" => activation,
        "Hardmax" => hardmax,
        "Clip" => clip,
        "PRelu" => prelu,
        "Softmax" | "LogSoftmax" => softmax,
        _ => return None,
    })
}

fn activation(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let activation = match call.op() {
        "Relu" => Activation::Relu,
        "Sigmoid" => Activation::Sigmoid,
        "LeakyRelu" => Activation::LeakyRelu { alpha: call.float("alpha", 0.01) },
        "HardSigmoid" => Activation::HardSigmoid { alpha: call.float("alpha", 0.2), beta: call.float("beta", 0.5) },
        "HardSwish" => Activation::HardSwish,
        "Elu" => Activation::Elu { alpha: call.float("alpha", 1.0) },
        "Selu" => Activation::Selu { alpha: call.float("alpha", 1.673_263_2), gamma: call.float("gamma", 1.050_701) },
        "Softplus" => Activation::Softplus,
        "Softsign" => Activation::Softsign,
        "Celu" => Activation::Celu { alpha: call.float("alpha", 1.0) },
        "Mish" => Activation::Mish,
        "ThresholdedRelu" => Activation::ThresholdedRelu { alpha: call.float("alpha", 1.0) },
        "Shrink" => Activation::Shrink { bias: call.float("bias", 0.0), lambda: call.float("lambd", 0.5) },
        _ => match call.string("approximate") {
            "" | "none" => Activation::Gelu,
            "tanh" => Activation::GeluTanh,
            other => return Err(Error::unsupported(format!("approximate `{other}`; allowed are none and tanh"))),
        },
    };
    let x = call.node(im, 0)?;
    one(im.builder.add(Op::composite(activation), &[x])?)
}

/// Bounds are attributes before operator set 11, operands since.
fn clip(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let dtype = im.builder.ty(x).dtype;
    let (mut low, mut high) = (reduce_identity(ReduceOp::Max, dtype), reduce_identity(ReduceOp::Min, dtype));
    if im.opset < 11 {
        low = call.optional_float("min").map_or(low, f64::from);
        high = call.optional_float("max").map_or(high, f64::from);
        return one(im.builder.add(Op::composite(Activation::Clip { low, high }), &[x])?);
    }
    let (min, max) = (call.optional(im, 1)?, call.optional(im, 2)?);
    let mut bound = |id: Option<NodeId>, open: f64| match id {
        None => Ok(Some(open)),
        Some(id) => im.known(id).map(|t| t.filter(|t| t.data.len() == 1).map(|t| t.data[0])),
    };
    if let (Some(low), Some(high)) = (bound(min, low)?, bound(max, high)?) {
        return one(im.builder.add(Op::composite(Activation::Clip { low, high }), &[x])?);
    }
    let mut result = x;
    if let Some(min) = min {
        result = im.builder.binary(BinaryOp::Max, result, min)?;
    }
    if let Some(max) = max {
        result = im.builder.binary(BinaryOp::Min, result, max)?;
    }
    one(result)
}

fn prelu(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, slope) = (call.node(im, 0)?, call.node(im, 1)?);
    let scaled = im.builder.binary(BinaryOp::Mul, x, slope)?;
    let negative = im.builder.binary_scalar(BinaryOp::Lt, x, 0.0)?;
    one(im.builder.select(negative, scaled, x)?)
}

/// 1 at the first largest element along the axis, 0 elsewhere. Before operator set 13 the dimensions from the axis on are one.
fn hardmax(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let ty = im.builder.ty(x).clone();
    let mut axis = im.axis(call.int("axis", if im.opset < 13 { 1 } else { -1 }), x)?;
    let mut rows = x;
    if im.opset < 13 {
        rows = im.builder.reshape(x, &[ty.shape[..axis].iter().product(), ty.shape[axis..].iter().product()])?;
        axis = 1;
    }
    let best = im.builder.add(Op::composite(ArgReduce { largest: true, axis, keep: true, last: false }), &[rows])?;
    let shape = im.builder.shape(rows);
    let places = im.builder.add(Prim::Iota { ty: TensorType::new(DType::I32, shape), axis }, &[])?;
    let hit = im.builder.binary(BinaryOp::Eq, places, best)?;
    let result = im.builder.cast(hit, ty.dtype)?;
    one(im.builder.reshape(result, &ty.shape)?)
}

/// Before operator set 13 the dimensions from the axis on are one.
fn softmax(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let log = call.op() == "LogSoftmax";
    let axis = im.axis(call.int("axis", if im.opset < 13 { 1 } else { -1 }), x)?;
    if im.opset >= 13 || axis + 1 == im.rank(x) {
        return one(im.builder.add(Op::composite(Softmax { axis, log }), &[x])?);
    }
    let shape = im.builder.shape(x);
    let flat = [shape[..axis].iter().product(), shape[axis..].iter().product()];
    let rows = im.builder.reshape(x, &flat)?;
    let result = im.builder.add(Op::composite(Softmax { axis: 1, log }), &[rows])?;
    one(im.builder.reshape(result, &shape)?)
}
