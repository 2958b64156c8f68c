//! Arithmetic, comparisons, logic and conversions.

use rten_onnx::onnx::DataType;

use super::node::{Call, Handler, Importer, Val, one};
use super::tensor;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, NodeId, Op, UnaryOp};
use crate::ops::math::Math;
use kernels_gen::DType;

pub(super) fn handler(op: &str) -> Option<Handler> {
    Some(match op {
        "Neg" | "Abs" | "Sign" | "Exp" | "Log" | "Sqrt" | "Sin" | "Cos" | "Tanh" | "Erf" | "Floor" | "Ceil" | "Round" | "Not"
        | "BitwiseNot" | "IsNaN" => unary,
        "Add" | "Sub" | "Mul" | "Div" | "And" | "Or" | "Xor" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" | "Equal" | "Greater" | "Less"
        | "GreaterOrEqual" | "LessOrEqual" => binary,
        "Min" | "Max" | "Sum" | "Mean" => variadic,
        "Pow" => pow,
        "Mod" => modulo,
        "BitShift" => bit_shift,
        "Tan" | "Asin" | "Acos" | "Atan" | "Sinh" | "Cosh" | "Asinh" | "Acosh" | "Atanh" | "IsInf" => math,
        "Reciprocal" => reciprocal,
        "Where" => select,
        "Cast" => cast,
        "CastLike" => cast_like,
        "Identity" | "Dropout" => identity,
        _ => return None,
    })
}

fn unary(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let op = match call.op() {
        "Neg" => UnaryOp::Neg,
        "Abs" => UnaryOp::Abs,
        "Sign" => UnaryOp::Sign,
        "Exp" => UnaryOp::Exp,
        "Log" => UnaryOp::Log,
        "Sqrt" => UnaryOp::Sqrt,
        "Sin" => UnaryOp::Sin,
        "Cos" => UnaryOp::Cos,
        "Tanh" => UnaryOp::Tanh,
        "Erf" => UnaryOp::Erf,
        "Floor" => UnaryOp::Floor,
        "Ceil" => UnaryOp::Ceil,
        "Round" => UnaryOp::Round,
        "IsNaN" => UnaryOp::IsNan,
        _ => UnaryOp::Not,
    };
    let x = call.node(im, 0)?;
    one(im.builder.unary(op, x)?)
}

fn binary(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let op = match call.op() {
        "Add" => BinaryOp::Add,
        "Sub" => BinaryOp::Sub,
        "Mul" => BinaryOp::Mul,
        "Div" => BinaryOp::Div,
        "And" | "BitwiseAnd" => BinaryOp::And,
        "Or" | "BitwiseOr" => BinaryOp::Or,
        "Xor" | "BitwiseXor" => BinaryOp::Xor,
        "Equal" => BinaryOp::Eq,
        "Greater" => BinaryOp::Gt,
        "Less" => BinaryOp::Lt,
        "GreaterOrEqual" => BinaryOp::Ge,
        _ => BinaryOp::Le,
    };
    let (a, b) = (call.node(im, 0)?, call.node(im, 1)?);
    one(im.builder.binary(op, a, b)?)
}

fn variadic(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let op = match call.op() {
        "Min" => BinaryOp::Min,
        "Max" => BinaryOp::Max,
        _ => BinaryOp::Add,
    };
    let nodes = call.nodes(im)?;
    let (first, rest) = nodes.split_first().ok_or_else(|| Error::malformed("it takes at least one operand"))?;
    let mut result = *first;
    for &other in rest {
        result = im.builder.binary(op, result, other)?;
    }
    if call.op() == "Mean" && nodes.len() > 1 {
        result = im.builder.binary_scalar(BinaryOp::Div, result, nodes.len() as f64)?;
    }
    one(result)
}

/// Whole small exponents that are known are products; the rest is `pow` in f32, rounded for integers.
fn pow(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (base, exponent) = (call.node(im, 0)?, call.node(im, 1)?);
    let dtype = im.builder.ty(base).dtype;
    let exponents = im.known(exponent)?.filter(|t| t.data.len() == 1).map(|t| (t.data[0], t.shape.clone()));
    if let Some((power, shape)) = exponents.filter(|(p, _)| [0.5, 1.0, 2.0, 3.0].contains(p)) {
        let wide = crate::ops::broadcast_shapes(&[&im.builder.shape(base), &shape])?;
        let x = im.builder.broadcast_to(base, &wide)?;
        if power == 0.5 && dtype == DType::F32 {
            return one(im.builder.unary(UnaryOp::Sqrt, x)?);
        }
        if power.fract() == 0.0 {
            let mut result = x;
            for _ in 1..power as usize {
                result = im.builder.binary(BinaryOp::Mul, result, x)?;
            }
            return one(result);
        }
    }
    let (a, b) = (im.builder.cast(base, DType::F32)?, im.builder.cast(exponent, DType::F32)?);
    let mut result = im.builder.binary(BinaryOp::Pow, a, b)?;
    if dtype.is_int() {
        result = im.builder.unary(UnaryOp::Round, result)?;
    }
    one(im.builder.cast(result, dtype)?)
}

/// `fmod` has the sign of the dividend; otherwise integers take the sign of the divisor.
fn modulo(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (a, b) = (call.node(im, 0)?, call.node(im, 1)?);
    let dtype = im.builder.ty(a).dtype;
    let remainder = im.builder.binary(BinaryOp::Rem, a, b)?;
    if call.flag("fmod", false) || matches!(dtype, DType::U32 | DType::U8) {
        return one(remainder);
    }
    let moved = im.builder.binary(BinaryOp::Add, remainder, b)?;
    let negative = im.builder.binary_scalar(BinaryOp::Lt, remainder, 0.0)?;
    let other = im.builder.binary_scalar(BinaryOp::Lt, b, 0.0)?;
    let differs = im.builder.binary(BinaryOp::Xor, negative, other)?;
    let nonzero = im.builder.binary_scalar(BinaryOp::Ne, remainder, 0.0)?;
    let adjust = im.builder.binary(BinaryOp::And, differs, nonzero)?;
    one(im.builder.select(adjust, moved, remainder)?)
}

fn bit_shift(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let op = match call.string("direction") {
        "LEFT" => BinaryOp::Shl,
        "RIGHT" => BinaryOp::Shr,
        other => return Err(Error::malformed(format!("direction `{other}`; allowed are LEFT and RIGHT"))),
    };
    let (a, b) = (call.node(im, 0)?, call.node(im, 1)?);
    one(im.builder.binary(op, a, b)?)
}

fn math(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let function = match call.op() {
        "Tan" => Math::Tan,
        "Asin" => Math::Asin,
        "Acos" => Math::Acos,
        "Atan" => Math::Atan,
        "Sinh" => Math::Sinh,
        "Cosh" => Math::Cosh,
        "Asinh" => Math::Asinh,
        "Acosh" => Math::Acosh,
        "Atanh" => Math::Atanh,
        _ => Math::IsInf { negative: call.flag("detect_negative", true), positive: call.flag("detect_positive", true) },
    };
    let x = call.node(im, 0)?;
    one(im.builder.add(Op::composite(function), &[x])?)
}

fn reciprocal(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let dtype = im.builder.ty(x).dtype;
    let ones = im.builder.splat_like(x, dtype, 1.0)?;
    one(im.builder.binary(BinaryOp::Div, ones, x)?)
}

fn select(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let [condition, on_true, on_false] = [0, 1, 2].map(|i| call.node(im, i));
    one(im.builder.select(condition?, on_true?, on_false?)?)
}

fn cast(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let to = call.optional_int("to").ok_or_else(|| Error::malformed("it has no attribute `to`"))?;
    let dtype = tensor::dtype_of(to)?;
    // Integers that do not fit stay parameters when they are only called 64-bit again.
    if let (Some(value @ Val::Wide(_)), true) = (call.value(0), to == i64::from(DataType::INT64.0)) {
        return Ok(vec![value.clone()]);
    }
    let x = call.node(im, 0)?;
    one(im.builder.cast(x, dtype)?)
}

fn cast_like(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, like) = (call.node(im, 0)?, call.node(im, 1)?);
    let dtype = im.builder.ty(like).dtype;
    one(im.builder.cast(x, dtype)?)
}

/// The operand itself; the mask of a Dropout at inference keeps everything.
fn identity(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let value = call.value(0).cloned().ok_or_else(|| Error::malformed("operand 0 is missing"))?;
    if call.op() == "Identity" {
        return Ok(vec![value]);
    }
    if let Some(training) = call.optional(im, 2)?
        && im.number(training, "training_mode")? != 0.0
    {
        return Err(Error::unsupported("training_mode; only inference is supported"));
    }
    let x: NodeId = im.node(&value)?;
    let mask = im.builder.splat_like(x, DType::Bool, 1.0)?;
    Ok(vec![value, Val::Node(mask)])
}
