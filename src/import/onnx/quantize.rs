//! Conversions between floats and numbers of few bits, and window functions.

use super::narrow::Narrow;
use super::node::{Call, Handler, Importer, Val, one};
use super::tensor;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, NodeId, ReduceOp, UnaryOp};
use crate::tensor::HostTensor;
use kernels_gen::DType;
use kernels_gen::formats::{Overflow, Rounding};
use std::f64::consts::TAU;

pub(super) fn handler(op: &str) -> Option<Handler> {
    Some(match op {
        "QuantizeLinear" => quantize,
        "DequantizeLinear" => dequantize,
        "DynamicQuantizeLinear" => dynamic_quantize,
        "HannWindow" | "HammingWindow" | "BlackmanWindow" => window,
        _ => return None,
    })
}

/// Scales or zero points as `x` needs them: one, one for each element along the axis, or one for each block along it.
fn spread(im: &mut Importer, call: &Call, x: NodeId, parameter: NodeId) -> Result<NodeId> {
    let (shape, own) = (im.builder.shape(x), im.builder.shape(parameter));
    if own.iter().product::<usize>() == 1 {
        return im.builder.reshape(parameter, &[]);
    }
    let axis = im.axis(call.int("axis", 1), x)?;
    let misfit = || Error::malformed(format!("scales or zero points {own:?} for {shape:?} along axis {axis}"));
    if own.len() == 1 {
        let mut column = vec![1; shape.len()];
        column[axis] = own[0];
        return if own[0] == shape[axis] { im.builder.reshape(parameter, &column) } else { Err(misfit()) };
    }
    let block = usize::try_from(call.int("block_size", 0)).ok().filter(|&b| b > 0).ok_or_else(misfit)?;
    let blocks = (0..shape.len()).map(|d| if d == axis { shape[d].div_ceil(block) } else { shape[d] });
    if !own.iter().copied().eq(blocks) {
        return Err(misfit());
    }
    let (mut split, mut wide, mut flat) = (own.clone(), own.clone(), own.clone());
    split.insert(axis + 1, 1);
    wide.insert(axis + 1, block);
    flat[axis] *= block;
    let split = im.builder.reshape(parameter, &split)?;
    let wide = im.builder.broadcast_to(split, &wide)?;
    let flat = im.builder.reshape(wide, &flat)?;
    let (starts, steps) = (vec![0; shape.len()], vec![1; shape.len()]);
    im.builder.add(crate::graph::Prim::Slice { starts, steps, sizes: shape }, &[flat])
}

fn dequantize(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, scale) = (call.node(im, 0)?, call.node(im, 1)?);
    let scale = spread(im, call, x, scale)?;
    let exact = if im.builder.ty(x).dtype.is_float() { DType::F32 } else { DType::I32 };
    let mut value = im.builder.cast(x, exact)?;
    if let Some(zero) = call.optional(im, 2)? {
        let zero = spread(im, call, x, zero)?;
        let zero = im.builder.cast(zero, exact)?;
        value = im.builder.binary(BinaryOp::Sub, value, zero)?;
    }
    let (value, wide) = (im.builder.cast(value, DType::F32)?, im.builder.cast(scale, DType::F32)?);
    let result = im.builder.binary(BinaryOp::Mul, value, wide)?;
    one(im.builder.cast(result, im.builder.ty(scale).dtype)?)
}

/// `round(x / scale) + zero`, in f32.
fn steps(im: &mut Importer, x: NodeId, scale: NodeId, zero: Option<NodeId>) -> Result<NodeId> {
    let steps = im.builder.binary(BinaryOp::Div, x, scale)?;
    let value = im.builder.unary(UnaryOp::Round, steps)?;
    let Some(zero) = zero else { return Ok(value) };
    let zero = im.builder.cast(zero, DType::F32)?;
    im.builder.binary(BinaryOp::Add, value, zero)
}

/// `round(x / scale) + zero`, brought into the range of the result's type.
fn quantized(im: &mut Importer, x: NodeId, scale: NodeId, zero: Option<NodeId>, dtype: DType) -> Result<NodeId> {
    let value = steps(im, x, scale, zero)?;
    im.builder.cast(value, dtype)
}

fn quantize(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, scale) = (call.node(im, 0)?, call.node(im, 1)?);
    let zero = call.optional(im, 2)?;
    let named = call.optional_int("output_dtype").filter(|&ty| ty != 0).map(tensor::type_of).transpose()?;
    let narrow = match zero {
        Some(_) => call.narrow(im, 2),
        None => named.and_then(Narrow::of),
    };
    let dtype = match (zero, narrow, named) {
        (_, Some(narrow), _) => narrow.dtype(),
        (Some(zero), ..) => im.builder.ty(zero).dtype,
        (None, _, Some(ty)) => tensor::dtype(ty)?,
        (None, _, None) => DType::U8,
    };
    if narrow.is_none() && !matches!(dtype, DType::U8 | DType::I8) {
        return Err(Error::unsupported(format!(
            "a result of {dtype}; supported are UINT8, INT8, UINT4, INT4, UINT16, INT16, FLOAT8E4M3FN and FLOAT8E5M2"
        )));
    }
    let (x, scale) = (im.builder.cast(x, DType::F32)?, im.builder.cast(scale, DType::F32)?);
    let scale = spread(im, call, x, scale)?;
    let zero = zero.map(|zero| spread(im, call, x, zero)).transpose()?;
    let Some(narrow) = narrow else { return one(quantized(im, x, scale, zero, dtype)?) };
    call.makes_narrow(im, narrow);
    if let Some([low, high]) = narrow.range() {
        let value = steps(im, x, scale, zero)?;
        let value = im.builder.binary_scalar(BinaryOp::Max, value, low)?;
        let value = im.builder.binary_scalar(BinaryOp::Min, value, high)?;
        return one(im.builder.cast(value, dtype)?);
    }
    let format = narrow.format().ok_or_else(|| Error::internal("a float without a format"))?;
    let overflow = if call.flag("saturate", true) { Overflow::Saturate } else { Overflow::Format };
    let value = im.builder.binary(BinaryOp::Div, x, scale)?;
    let code = im.builder.unary(UnaryOp::Encode(format, Rounding::NearestEven, overflow), value)?;
    one(im.builder.unary(UnaryOp::Decode(format), code)?)
}

/// The range of all elements and 0 as 256 steps.
fn dynamic_quantize(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let axes: Vec<usize> = (0..im.rank(x)).collect();
    let (high, low) = (im.builder.reduce(ReduceOp::Max, x, &axes, false)?, im.builder.reduce(ReduceOp::Min, x, &axes, false)?);
    let (high, low) = (im.builder.binary_scalar(BinaryOp::Max, high, 0.0)?, im.builder.binary_scalar(BinaryOp::Min, low, 0.0)?);
    let range = im.builder.binary(BinaryOp::Sub, high, low)?;
    let scale = im.builder.binary_scalar(BinaryOp::Div, range, 255.0)?;
    let below = im.builder.unary(UnaryOp::Neg, low)?;
    let zero = im.builder.binary(BinaryOp::Div, below, scale)?;
    let zero = im.builder.unary(UnaryOp::Round, zero)?;
    let zero = im.builder.cast(zero, DType::U8)?;
    let y = quantized(im, x, scale, Some(zero), DType::U8)?;
    Ok([y, scale, zero].map(Val::Node).to_vec())
}

/// Sums of cosines over one period, whose last element is left out unless the window is symmetric.
fn window(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let size = call.node(im, 0)?;
    let size = im.number(size, "size")?;
    let dtype = tensor::dtype_of(call.int("output_datatype", 1))?;
    if !(0.0..=f64::from(1 << 24)).contains(&size) || dtype != DType::F32 {
        return Err(Error::unsupported(format!("a window of {size} elements of {dtype}; supported are up to 2^24 of f32")));
    }
    let terms: &[f64] = match call.op() {
        "HannWindow" => &[0.5, -0.5],
        "HammingWindow" => &[25.0 / 46.0, -21.0 / 46.0],
        _ => &[0.42, -0.5, 0.08],
    };
    let period = if call.flag("periodic", true) { size } else { size - 1.0 };
    let value = |i: usize| terms.iter().enumerate().map(|(k, t)| t * (TAU * (k * i) as f64 / period).cos()).sum();
    let values: Vec<f64> = (0..size as usize).map(value).collect();
    one(im.builder.constant(HostTensor::from_f64(dtype, [values.len()], &values)?)?)
}
