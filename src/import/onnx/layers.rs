//! Layers with weights, pooling, normalisations and matrix products.

use super::node::{Call, Handler, Importer, Val, one};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, NodeId, Op, Prim, ReduceOp, UnaryOp};
use crate::ops::conv::Conv;
use crate::ops::conv_transpose::ConvTranspose;
use crate::ops::dot::{Gemm, MatMul};
use crate::ops::einsum::Einsum;
use crate::ops::norm::{BatchNorm, GroupNorm, LayerNorm};
use crate::ops::pool::{Pool, PoolKind};
use crate::ops::reduce::resolve_axes;
use crate::ops::shape::pad_with;
use crate::ops::stats::{Statistic, StatisticKind};
use crate::ops::window::Padding;

pub(super) fn handler(op: &str) -> Option<Handler> {
    Some(match op {
        "Conv" => conv,
        "ConvTranspose" => conv_transpose,
        "MaxPool" | "AveragePool" => pool,
        "GlobalAveragePool" | "GlobalMaxPool" => global_pool,
        "BatchNormalization" => batch_norm,
        "LayerNormalization" | "RMSNormalization" => layer_norm,
        "InstanceNormalization" | "GroupNormalization" => group_norm,
        "LRN" => local_response_norm,
        "MeanVarianceNormalization" => mean_variance_norm,
        "LpPool" | "GlobalLpPool" => lp_pool,
        "Gemm" => gemm,
        "MatMul" => matmul,
        "Einsum" => einsum,
        _ => return None,
    })
}

/// The padding of a convolution or pool of `spatial` dimensions.
fn padding(call: &Call, spatial: usize) -> Result<Padding> {
    match call.string("auto_pad") {
        "" | "NOTSET" => match call.sizes("pads")? {
            None => Ok(Padding::none(spatial)),
            Some(pads) if pads.len() == 2 * spatial => {
                Ok(Padding::Explicit { low: pads[..spatial].to_vec(), high: pads[spatial..].to_vec() })
            }
            Some(pads) => Err(Error::malformed(format!("pads {pads:?} for {spatial} spatial dimensions"))),
        },
        "VALID" => Ok(Padding::none(spatial)),
        "SAME_UPPER" => Ok(Padding::SameUpper),
        "SAME_LOWER" => Ok(Padding::SameLower),
        other => Err(Error::malformed(format!("auto_pad `{other}`; allowed are NOTSET, VALID, SAME_UPPER and SAME_LOWER"))),
    }
}

fn per_dimension(call: &Call, name: &str, spatial: usize) -> Result<Vec<usize>> {
    let values = call.sizes(name)?.unwrap_or_else(|| vec![1; spatial]);
    if values.len() != spatial {
        return Err(Error::malformed(format!("{name} {values:?} for {spatial} spatial dimensions")));
    }
    Ok(values)
}

/// The convolution that a node's attributes describe, for weights `w`.
pub(super) fn conv_of(im: &Importer, call: &Call, w: NodeId) -> Result<Conv> {
    let spatial = im.rank(w).saturating_sub(2);
    if let Some(sizes) = call.sizes("kernel_shape")?
        && im.builder.shape(w).get(2..) != Some(&sizes[..])
    {
        return Err(Error::malformed(format!("kernel_shape {sizes:?} and weights {}", im.builder.ty(w))));
    }
    Ok(Conv {
        strides: per_dimension(call, "strides", spatial)?,
        padding: padding(call, spatial)?,
        dilations: per_dimension(call, "dilations", spatial)?,
        groups: usize::try_from(call.int("group", 1)).map_err(|_| Error::malformed("group is negative"))?,
    })
}

fn conv(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, w) = (call.node(im, 0)?, call.node(im, 1)?);
    let conv = conv_of(im, call, w)?;
    let operands: Vec<NodeId> = [x, w].into_iter().chain(call.optional(im, 2)?).collect();
    one(im.builder.add(Op::composite(conv), &operands)?)
}

/// A stated size of the result, or `auto_pad`, says what is cut off; an odd element goes before, or with SAME_UPPER after. A size past what the
/// windows reach adds zeros.
fn conv_transpose(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, w) = (call.node(im, 0)?, call.node(im, 1)?);
    let (shape, weights) = (im.builder.shape(x), im.builder.shape(w));
    let spatial = weights.len().saturating_sub(2);
    if shape.len() != weights.len() || call.sizes("kernel_shape")?.is_some_and(|k| weights.get(2..) != Some(&k[..])) {
        return Err(Error::malformed(format!("x {shape:?}, weights {weights:?} and kernel_shape state other spatial dimensions")));
    }
    let added = |name: &str, count: usize| -> Result<Vec<usize>> {
        let values = call.sizes(name)?.unwrap_or_else(|| vec![0; count]);
        if values.len() == count {
            Ok(values)
        } else {
            Err(Error::malformed(format!("{name} {values:?} for {spatial} spatial dimensions")))
        }
    };
    let pads = added("pads", 2 * spatial)?;
    let mut conv = ConvTranspose {
        strides: per_dimension(call, "strides", spatial)?,
        low: pads[..spatial].to_vec(),
        high: pads[spatial..].to_vec(),
        output_padding: added("output_padding", spatial)?,
        dilations: per_dimension(call, "dilations", spatial)?,
        groups: usize::try_from(call.int("group", 1)).map_err(|_| Error::malformed("group is negative"))?,
    };
    let mode = call.string("auto_pad");
    let wanted = match (call.sizes("output_shape")?, mode) {
        (Some(sizes), _) => Some(sizes[sizes.len().saturating_sub(spatial)..].to_vec()),
        (None, "SAME_UPPER" | "SAME_LOWER") => Some((0..spatial).map(|d| shape[d + 2].saturating_mul(conv.strides[d])).collect()),
        (None, "" | "NOTSET" | "VALID") => None,
        (None, other) => return Err(Error::malformed(format!("auto_pad `{other}`; allowed are NOTSET, VALID, SAME_UPPER and SAME_LOWER"))),
    };
    if let Some(wanted) = wanted.filter(|w| w.len() == spatial) {
        for d in 0..spatial {
            let span = weights[d + 2].saturating_sub(1).saturating_mul(conv.dilations[d]).saturating_add(1);
            let steps = shape[d + 2].saturating_sub(1).saturating_mul(conv.strides[d]);
            let full = steps.saturating_add(span).saturating_add(conv.output_padding[d]);
            let cut = full.saturating_sub(wanted[d]);
            conv.output_padding[d] += wanted[d].saturating_sub(full);
            let (small, large) = (cut / 2, cut - cut / 2);
            (conv.low[d], conv.high[d]) = if mode == "SAME_UPPER" { (small, large) } else { (large, small) };
        }
    }
    let operands: Vec<NodeId> = [x, w].into_iter().chain(call.optional(im, 2)?).collect();
    one(im.builder.add(Op::composite(conv), &operands)?)
}

/// The windows of a pool.
fn window_pool(call: &Call, kind: PoolKind) -> Result<Pool> {
    let sizes = call.sizes("kernel_shape")?.ok_or_else(|| Error::malformed("it has no kernel_shape"))?;
    let spatial = sizes.len();
    Ok(Pool {
        kind,
        strides: per_dimension(call, "strides", spatial)?,
        padding: padding(call, spatial)?,
        dilations: per_dimension(call, "dilations", spatial)?,
        ceil_mode: call.flag("ceil_mode", false),
        sizes,
    })
}

/// The places of the largest elements are a second output of MaxPool, computed where the model uses them.
fn pool(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    if call.op() == "AveragePool" {
        let kind = PoolKind::Average { count_padding: call.flag("count_include_pad", false) };
        return one(im.builder.add(Op::composite(window_pool(call, kind)?), &[x])?);
    }
    let mut results = vec![Val::Node(im.builder.add(Op::composite(window_pool(call, PoolKind::Max)?), &[x])?)];
    if call.wants(1) {
        let kind = PoolKind::ArgMax { column_major: call.flag("storage_order", false) };
        results.push(Val::Node(im.builder.add(Op::composite(window_pool(call, kind)?), &[x])?));
    }
    Ok(results)
}

fn global_pool(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let axes: Vec<usize> = (2..im.rank(x)).collect();
    if call.op() == "GlobalMaxPool" {
        return one(im.builder.reduce(ReduceOp::Max, x, &axes, true)?);
    }
    one(im.builder.add(Op::composite(Statistic { kind: StatisticKind::Mean, axes, keep: true }), &[x])?)
}

/// In training mode (operator set 14) the statistics are those of the batch, and the running ones are further outputs.
fn batch_norm(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    if call.int("spatial", 1) != 1 {
        return Err(Error::unsupported("spatial = 0; statistics must be one for each channel"));
    }
    let training = call.flag("training_mode", false);
    if !training && call.wants(1) {
        return Err(Error::unsupported(
            "further outputs without training_mode, as before operator set 14; only inference is supported there",
        ));
    }
    let op = Op::composite(BatchNorm { epsilon: call.float("epsilon", 1e-5) });
    let operands = call.nodes(im)?;
    let &[x, scale, bias, running_mean, running_variance] = &operands[..] else {
        return Err(Error::malformed("it takes x, scale, bias, mean and variance"));
    };
    if !training {
        return one(im.builder.add(op, &operands)?);
    }
    let axes: Vec<usize> = (0..im.rank(x)).filter(|&d| d != 1).collect();
    let statistic = Op::composite(Statistic { kind: StatisticKind::Mean, axes, keep: true });
    let mean = im.builder.add(statistic.clone(), &[x])?;
    let centred = im.builder.binary(BinaryOp::Sub, x, mean)?;
    let square = im.builder.binary(BinaryOp::Mul, centred, centred)?;
    let variance = im.builder.add(statistic, &[square])?;
    let channels = im.builder.shape(scale);
    let (mean, variance) = (im.builder.reshape(mean, &channels)?, im.builder.reshape(variance, &channels)?);
    let y = im.builder.add(op, &[x, scale, bias, mean, variance])?;
    let momentum = call.float("momentum", 0.9) as f64;
    let mut updated = |running: NodeId, batch: NodeId| {
        let kept = im.builder.binary_scalar(BinaryOp::Mul, running, momentum)?;
        let added = im.builder.binary_scalar(BinaryOp::Mul, batch, 1.0 - momentum)?;
        im.builder.binary(BinaryOp::Add, kept, added)
    };
    let (mean, variance) = (updated(running_mean, mean)?, updated(running_variance, variance)?);
    Ok([y, mean, variance].map(Val::Node).to_vec())
}

/// The mean and the inverse deviation are further outputs, computed only where the model uses them.
fn layer_norm(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let operands = call.nodes(im)?;
    let x = call.node(im, 0)?;
    let axis = im.axis(call.int("axis", -1), x)?;
    let epsilon = call.float("epsilon", 1e-5);
    let root_mean_square = call.op() == "RMSNormalization";
    let y = im.builder.add(Op::composite(LayerNorm { axis, epsilon, root_mean_square }), &operands)?;
    if root_mean_square || !(call.wants(1) || call.wants(2)) {
        return one(y);
    }
    let statistic = Op::composite(Statistic { kind: StatisticKind::Mean, axes: (axis..im.rank(x)).collect(), keep: true });
    let mean = im.builder.add(statistic.clone(), &[x])?;
    let centred = im.builder.binary(BinaryOp::Sub, x, mean)?;
    let square = im.builder.binary(BinaryOp::Mul, centred, centred)?;
    let variance = im.builder.add(statistic, &[square])?;
    let shifted = im.builder.binary_scalar(BinaryOp::Add, variance, epsilon as f64)?;
    let deviation = im.builder.unary(UnaryOp::Sqrt, shifted)?;
    let ones = im.builder.splat_like(deviation, im.builder.ty(deviation).dtype, 1.0)?;
    let inverse = im.builder.binary(BinaryOp::Div, ones, deviation)?;
    Ok(vec![Val::Node(y), Val::Node(mean), Val::Node(inverse)])
}

/// Scale and bias are one for each channel; GroupNormalization before operator set 21 has one for each group.
fn group_norm(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, mut scale, mut bias) = (call.node(im, 0)?, call.node(im, 1)?, call.node(im, 2)?);
    let channels = im.builder.shape(x).get(1).copied().unwrap_or(0);
    let groups = match call.op() {
        "InstanceNormalization" => channels,
        _ => usize::try_from(call.int("num_groups", 0)).map_err(|_| Error::malformed("num_groups is negative"))?,
    };
    if call.op() == "GroupNormalization" && im.opset < 21 && groups > 0 && channels.is_multiple_of(groups) {
        let mut spread = |id: NodeId| {
            let column = im.builder.reshape(id, &[groups, 1])?;
            let wide = im.builder.broadcast_to(column, &[groups, channels / groups])?;
            im.builder.reshape(wide, &[channels])
        };
        (scale, bias) = (spread(scale)?, spread(bias)?);
    }
    let norm = GroupNorm { groups, epsilon: call.float("epsilon", 1e-5) };
    one(im.builder.add(Op::composite(norm), &[x, scale, bias])?)
}

/// `x / (bias + alpha / size * sum of squares of size neighbouring channels) ^ beta`.
fn local_response_norm(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let rank = im.rank(x);
    let size = usize::try_from(call.int("size", 0)).ok().filter(|&s| s > 0 && s < 1 << 16 && rank >= 2);
    let size = size.ok_or_else(|| Error::malformed("it takes [n, c, ...] and a positive size below 2^16"))?;
    let (alpha, beta, bias) = (call.float("alpha", 1e-4), call.float("beta", 0.75), call.float("bias", 1.0));
    let last: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).collect();
    let back: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    let square = im.builder.binary(BinaryOp::Mul, x, x)?;
    let square = im.builder.transpose(square, &last)?;
    let (mut low, mut high) = (vec![0; rank], vec![0; rank]);
    (low[rank - 1], high[rank - 1]) = ((size - 1) / 2, size - 1 - (size - 1) / 2);
    let padded = pad_with(&mut im.builder, square, &low, &high, 0.0)?;
    let view = im.builder.add(Prim::Window { sizes: vec![size], strides: vec![1], dilations: vec![1] }, &[padded])?;
    let sum = im.builder.reduce(ReduceOp::Sum, view, &[rank], false)?;
    let sum = im.builder.transpose(sum, &back)?;
    let scaled = im.builder.binary_scalar(BinaryOp::Mul, sum, f64::from(alpha) / size as f64)?;
    let shifted = im.builder.binary_scalar(BinaryOp::Add, scaled, f64::from(bias))?;
    let divisor = im.builder.binary_scalar(BinaryOp::Pow, shifted, f64::from(beta))?;
    one(im.builder.binary(BinaryOp::Div, x, divisor)?)
}

/// `(x - mean) / (deviation + 1e-9)`.
fn mean_variance_norm(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let axes = resolve_axes(&call.ints("axes").unwrap_or_else(|| vec![0, 2, 3]), im.rank(x))?;
    let statistic = Op::composite(Statistic { kind: StatisticKind::Mean, axes, keep: true });
    let mean = im.builder.add(statistic.clone(), &[x])?;
    let centred = im.builder.binary(BinaryOp::Sub, x, mean)?;
    let square = im.builder.binary(BinaryOp::Mul, centred, centred)?;
    let variance = im.builder.add(statistic, &[square])?;
    let deviation = im.builder.unary(UnaryOp::Sqrt, variance)?;
    let divisor = im.builder.binary_scalar(BinaryOp::Add, deviation, 1e-9)?;
    one(im.builder.binary(BinaryOp::Div, centred, divisor)?)
}

/// `(sum of |x|^p) ^ (1 / p)` over windows, from their means with the padding counted; over the whole plane from its sum.
fn lp_pool(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let p = call.int("p", 2) as f64;
    let abs = im.builder.unary(UnaryOp::Abs, x)?;
    let raised = if p == 2.0 { im.builder.binary(BinaryOp::Mul, abs, abs)? } else { im.builder.binary_scalar(BinaryOp::Pow, abs, p)? };
    let sum = if call.op() == "GlobalLpPool" {
        let axes: Vec<usize> = (2..im.rank(x)).collect();
        im.builder.reduce(ReduceOp::Sum, raised, &axes, true)?
    } else {
        if call.flag("ceil_mode", false) {
            return Err(Error::unsupported("ceil_mode; windows that lie in the padded operand are supported"));
        }
        let pool = window_pool(call, PoolKind::Average { count_padding: true })?;
        let count: f64 = pool.sizes.iter().map(|&s| s as f64).product();
        let mean = im.builder.add(Op::composite(pool), &[raised])?;
        im.builder.binary_scalar(BinaryOp::Mul, mean, count)?
    };
    one(if p == 2.0 { im.builder.unary(UnaryOp::Sqrt, sum)? } else { im.builder.binary_scalar(BinaryOp::Pow, sum, 1.0 / p)? })
}

fn gemm(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let operands: Vec<NodeId> = [call.node(im, 0)?, call.node(im, 1)?].into_iter().chain(call.optional(im, 2)?).collect();
    let gemm = Gemm {
        alpha: call.float("alpha", 1.0),
        beta: call.float("beta", 1.0),
        trans_a: call.flag("transA", false),
        trans_b: call.flag("transB", false),
    };
    one(im.builder.add(Op::composite(gemm), &operands)?)
}

fn matmul(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let operands = call.nodes(im)?;
    one(im.builder.add(Op::composite(MatMul), &operands)?)
}

fn einsum(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let operands = call.nodes(im)?;
    one(im.builder.add(Op::composite(Einsum { equation: call.string("equation").to_string() }), &operands)?)
}
