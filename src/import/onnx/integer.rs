//! Products and convolutions of quantised operands: 8-bit integers with scales and zero points, and weights of a few bits.

use super::layers;
use super::node::{Call, Handler, Importer, Val, one};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, NodeId, Op, Prim, UnaryOp};
use crate::ops::conv::Conv;
use crate::ops::dot::MatMul;
use crate::ops::integer::MatMulInteger;
use crate::ops::packing::Unpack;
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// The domain of operators that onnxruntime adds.
pub(super) const MICROSOFT: &str = "com.microsoft";

/// Products of two 8-bit integers less their zero points that a sum in f32 holds exactly: 255 * 255 * 258 < 2^24.
const EXACT_TERMS: usize = 258;

pub(super) fn handler(op: &str) -> Option<Handler> {
    Some(match op {
        "MatMulInteger" => matmul_integer,
        "ConvInteger" => conv_integer,
        "QLinearMatMul" => qlinear_matmul,
        "QLinearConv" => qlinear_conv,
        _ => return None,
    })
}

/// Operators of [`MICROSOFT`].
pub(super) fn microsoft(op: &str) -> Option<Handler> {
    (op == "MatMulNBits").then_some(matmul_bits as Handler)
}

/// Zero point `i`, or zero of the type of `of`.
fn zero_point(im: &mut Importer, call: &Call, i: usize, of: NodeId) -> Result<NodeId> {
    match call.optional(im, i)? {
        Some(zero) => Ok(zero),
        None => im.builder.scalar(im.builder.ty(of).dtype, 0.0),
    }
}

/// A parameter of the rows of a matrix, a vector or one number, as a column; that of more dimensions as it is.
fn as_column(im: &mut Importer, parameter: NodeId) -> Result<NodeId> {
    let shape = im.builder.shape(parameter);
    match shape[..] {
        [] | [1] => im.builder.reshape(parameter, &[]),
        [rows] => im.builder.reshape(parameter, &[rows, 1]),
        _ => Ok(parameter),
    }
}

/// A parameter of the columns: a vector of one element is one number.
fn as_row(im: &mut Importer, parameter: NodeId) -> Result<NodeId> {
    if im.builder.ty(parameter).num_elems() == 1 { im.builder.reshape(parameter, &[]) } else { Ok(parameter) }
}

fn matmul_integer(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (a, b) = (call.node(im, 0)?, call.node(im, 1)?);
    let (a_zero, b_zero) = (zero_point(im, call, 2, a)?, zero_point(im, call, 3, b)?);
    let (a_zero, b_zero) = (as_column(im, a_zero)?, as_row(im, b_zero)?);
    one(im.builder.add(Op::composite(MatMulInteger), &[a, b, a_zero, b_zero])?)
}

/// `round(sum * factor) + zero` in the range of the zero point's type.
fn requantised(im: &mut Importer, sum: NodeId, factor: NodeId, zero: NodeId) -> Result<Vec<Val>> {
    let dtype = im.builder.ty(zero).dtype;
    if !matches!(dtype, DType::U8 | DType::I8) {
        return Err(Error::unsupported(format!("a result of {dtype}; supported are u8 and i8")));
    }
    let sum = im.builder.cast(sum, DType::F32)?;
    let value = im.builder.binary(BinaryOp::Mul, sum, factor)?;
    let value = im.builder.unary(UnaryOp::Round, value)?;
    let zero = im.builder.cast(zero, DType::F32)?;
    let value = im.builder.binary(BinaryOp::Add, value, zero)?;
    one(im.builder.cast(value, dtype)?)
}

/// `a_scale * b_scale / y_scale` in f32.
fn factor(im: &mut Importer, a_scale: NodeId, b_scale: NodeId, y_scale: NodeId) -> Result<NodeId> {
    let [a, b, y] = [a_scale, b_scale, y_scale].map(|scale| im.builder.cast(scale, DType::F32));
    let product = im.builder.binary(BinaryOp::Mul, a?, b?)?;
    im.builder.binary(BinaryOp::Div, product, y?)
}

fn qlinear_matmul(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero] = nodes(im, call)?;
    let (a_scale, a_zero) = (as_column(im, a_scale)?, as_column(im, a_zero)?);
    let (b_scale, b_zero) = (as_row(im, b_scale)?, as_row(im, b_zero)?);
    let (y_scale, y_zero) = (as_column(im, y_scale)?, as_column(im, y_zero)?);
    let sum = im.builder.add(Op::composite(MatMulInteger), &[a, b, a_zero, b_zero])?;
    let factor = factor(im, a_scale, b_scale, y_scale)?;
    requantised(im, sum, factor, y_zero)
}

fn nodes<const N: usize>(im: &Importer, call: &Call) -> Result<[NodeId; N]> {
    let all = (0..N).map(|i| call.node(im, i)).collect::<Result<Vec<_>>>()?;
    <[NodeId; N]>::try_from(all).map_err(|_| Error::internal("operands were counted"))
}

/// A parameter of output channels as it meets the weights or, with `rank` dimensions and the channels second, the result.
fn per_channel(im: &mut Importer, parameter: NodeId, rank: usize, axis: usize) -> Result<NodeId> {
    let elems = im.builder.ty(parameter).num_elems();
    let mut shape = vec![1; rank];
    if elems == 1 {
        return im.builder.reshape(parameter, &[]);
    }
    shape[axis] = elems;
    im.builder.reshape(parameter, &shape)
}

/// `x - zero` in f32, exactly.
fn centred(im: &mut Importer, x: NodeId, zero: NodeId) -> Result<NodeId> {
    let (x, zero) = (im.builder.cast(x, DType::F32)?, im.builder.cast(zero, DType::F32)?);
    im.builder.binary(BinaryOp::Sub, x, zero)
}

/// `size` elements of axis `axis` from `start`.
fn slice(im: &mut Importer, x: NodeId, axis: usize, start: usize, size: usize) -> Result<NodeId> {
    let mut sizes = im.builder.shape(x);
    let (mut starts, steps) = (vec![0; sizes.len()], vec![1; sizes.len()]);
    (starts[axis], sizes[axis]) = (start, size);
    im.builder.add(Prim::Slice { starts, steps, sizes }, &[x])
}

/// The convolution of integers in f32 as I32: by parts of the channels, so that every sum is exact.
fn exact_conv(im: &mut Importer, conv: &Conv, x: NodeId, w: NodeId) -> Result<NodeId> {
    let (x_shape, w_shape) = (im.builder.shape(x), im.builder.shape(w));
    let taps: usize = w_shape.iter().skip(2).product();
    let (&[channels, ref spatial @ ..], groups) = (x_shape.get(1..).unwrap_or(&[]), conv.groups) else {
        return Err(Error::malformed(format!("a convolution of {x_shape:?}")));
    };
    let each = w_shape.get(1).copied().unwrap_or(0);
    if taps * each <= EXACT_TERMS || groups == 0 || channels != each * groups {
        let sum = im.builder.add(Op::composite(conv.clone()), &[x, w])?;
        return im.builder.cast(sum, DType::I32);
    }
    if taps > EXACT_TERMS {
        return Err(Error::unsupported(format!("a convolution of integers with {taps} taps; at most {EXACT_TERMS} are supported")));
    }
    let grouped = im.builder.reshape(x, &[&[x_shape[0], groups, each], spatial].concat())?;
    let mut sum: Option<NodeId> = None;
    for start in (0..each).step_by(EXACT_TERMS / taps) {
        let size = (EXACT_TERMS / taps).min(each - start);
        let part = slice(im, grouped, 2, start, size)?;
        let part = im.builder.reshape(part, &[&[x_shape[0], groups * size], spatial].concat())?;
        let weights = slice(im, w, 1, start, size)?;
        let part = im.builder.add(Op::composite(conv.clone()), &[part, weights])?;
        let part = im.builder.cast(part, DType::I32)?;
        sum = Some(match sum {
            Some(sum) => im.builder.binary(BinaryOp::Add, sum, part)?,
            None => part,
        });
    }
    sum.ok_or_else(|| Error::internal("a convolution without channels"))
}

fn conv_integer(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, w) = (call.node(im, 0)?, call.node(im, 1)?);
    let (x_zero, w_zero) = (zero_point(im, call, 2, x)?, zero_point(im, call, 3, w)?);
    one(integer_sum(im, call, [x, x_zero, w, w_zero])?)
}

fn integer_sum(im: &mut Importer, call: &Call, [x, x_zero, w, w_zero]: [NodeId; 4]) -> Result<NodeId> {
    let conv = layers::conv_of(im, call, w)?;
    let rank = im.rank(w);
    let x_zero = per_channel(im, x_zero, rank, 0)?;
    let w_zero = per_channel(im, w_zero, rank, 0)?;
    let (x, w) = (centred(im, x, x_zero)?, centred(im, w, w_zero)?);
    exact_conv(im, &conv, x, w)
}

fn qlinear_conv(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let [x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero] = nodes(im, call)?;
    let mut sum = integer_sum(im, call, [x, x_zero, w, w_zero])?;
    let rank = im.rank(sum);
    if let Some(bias) = call.optional(im, 8)? {
        let bias = per_channel(im, bias, rank, 1)?;
        sum = im.builder.binary(BinaryOp::Add, sum, bias)?;
    }
    let w_scale = per_channel(im, w_scale, rank, 1)?;
    let (x_scale, y_scale) = (as_row(im, x_scale)?, as_row(im, y_scale)?);
    let y_zero = as_row(im, y_zero)?;
    let factor = factor(im, x_scale, w_scale, y_scale)?;
    requantised(im, sum, factor, y_zero)
}

/// The bytes of a constant of U8.
fn constant_bytes(im: &Importer, id: NodeId, role: &str) -> Result<Vec<u8>> {
    match &im.builder.graph().node(id).op {
        Op::Prim(Prim::Constant(constant)) if constant.tensor().dtype() == DType::U8 => Ok(constant.tensor().bytes().to_vec()),
        _ => Err(Error::unsupported(format!("{role} ({}) must be a constant of u8", im.builder.ty(id)))),
    }
}

/// Rows of packed codes, each padded to whole words, as codes in f32 `[rows, codes]`.
fn unpacked(im: &mut Importer, bytes: &[u8], rows: usize, bits: u32, codes: usize) -> Result<NodeId> {
    let row = bytes.len().checked_div(rows).unwrap_or(0);
    let words = crate::ops::packing::num_words(bits, codes);
    let word = |i: usize| {
        let (row_at, at) = (i / words * row, i % words * 4);
        let byte = |b: usize| if at + b < row { u32::from(bytes[row_at + at + b]) } else { 0 };
        byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24
    };
    let data: Vec<u32> = (0..rows * words).map(word).collect();
    let data = im.builder.constant(HostTensor::new([rows, words], data)?)?;
    let codes = im.builder.add(Op::composite(Unpack { bits, codes }), &[data])?;
    im.builder.cast(codes, DType::F32)
}

/// Weights of 2, 4 or 8 bits in blocks along k, each with a scale and a zero point, in rows of columns of the product: `y = a * b^T`.
fn matmul_bits(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let attribute = |name: &str| {
        let value = call.optional_int(name).and_then(|v| usize::try_from(v).ok()).filter(|&v| v > 0);
        value.ok_or_else(|| Error::malformed(format!("attribute {name} must be a positive integer")))
    };
    let (k, n, block) = (attribute("K")?, attribute("N")?, attribute("block_size")?);
    let bits = u32::try_from(call.int("bits", 4)).ok().filter(|b| [2, 4, 8].contains(b));
    let bits = bits.ok_or_else(|| Error::unsupported(format!("weights of {} bits; supported are 2, 4 and 8", call.int("bits", 4))))?;
    if block < 16 || !block.is_power_of_two() {
        return Err(Error::malformed(format!("block_size {block} must be a power of two, at least 16")));
    }
    if call.optional(im, 4)?.is_some() {
        return Err(Error::unsupported("weights whose groups are given by g_idx"));
    }
    let (a, scales) = (call.node(im, 0)?, call.node(im, 2)?);
    let blocks = k.div_ceil(block);
    let weights = call.node(im, 1)?;
    let bytes = constant_bytes(im, weights, "the weights")?;
    let expected = n * blocks * block * bits as usize / 8;
    if bytes.len() != expected || im.builder.ty(scales).num_elems() != n * blocks {
        let (weights, scales) = (im.builder.ty(weights), im.builder.ty(scales));
        return Err(Error::malformed(format!(
            "weights {weights} and scales {scales} for N = {n}, K = {k}: {expected} bytes and {} scales are needed",
            n * blocks
        )));
    }
    let codes = unpacked(im, &bytes, n, bits, blocks * block)?;
    let codes = im.builder.reshape(codes, &[n, blocks, block])?;
    let zero = match call.optional(im, 3)? {
        None => im.builder.scalar(DType::F32, f64::from(1u32 << (bits - 1)))?,
        Some(zero) if im.builder.ty(zero).dtype == DType::U8 => {
            let bytes = constant_bytes(im, zero, "the zero points")?;
            if bytes.len() != n * (blocks * bits as usize).div_ceil(8) {
                return Err(Error::malformed(format!("zero points {} for {n} rows of {blocks} blocks", im.builder.ty(zero))));
            }
            let zero = unpacked(im, &bytes, n, bits, blocks)?;
            im.builder.reshape(zero, &[n, blocks, 1])?
        }
        Some(zero) => {
            let zero = im.builder.cast(zero, DType::F32)?;
            im.builder.reshape(zero, &[n, blocks, 1])?
        }
    };
    let scales = im.builder.cast(scales, DType::F32)?;
    let scales = im.builder.reshape(scales, &[n, blocks, 1])?;
    let value = im.builder.binary(BinaryOp::Sub, codes, zero)?;
    let value = im.builder.binary(BinaryOp::Mul, value, scales)?;
    let value = im.builder.reshape(value, &[n, blocks * block])?;
    let value = slice(im, value, 1, 0, k)?;
    let value = im.builder.transpose(value, &[1, 0])?;
    let (dtype, wide) = (im.builder.ty(a).dtype, im.builder.cast(a, DType::F32)?);
    let mut y = im.builder.add(Op::composite(MatMul), &[wide, value])?;
    if let Some(bias) = call.optional(im, 5)? {
        let bias = im.builder.cast(bias, DType::F32)?;
        y = im.builder.binary(BinaryOp::Add, y, bias)?;
    }
    one(im.builder.cast(y, dtype)?)
}
