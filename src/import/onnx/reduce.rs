//! Reductions.

use super::node::{Call, Handler, Importer, Val, one};
use crate::error::Result;
use crate::graph::{BinaryOp, Op, ReduceOp, UnaryOp};
use crate::ops::reduce::resolve_axes;
use crate::ops::stats::{Statistic, StatisticKind};
use kernels_gen::DType;

pub(super) fn handler(op: &str) -> Option<Handler> {
    Some(match op {
        "ReduceSum" | "ReduceProd" | "ReduceMax" | "ReduceMin" | "ReduceMean" | "ReduceSumSquare" | "ReduceL1" | "ReduceL2"
        | "ReduceLogSum" | "ReduceLogSumExp" => reduce,
        _ => return None,
    })
}

/// Axes are an attribute in old operator sets and an operand in new ones; none means all, or, with `noop_with_empty_axes`, nothing.
fn reduce(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let keep = call.flag("keepdims", true);
    let given = call.ints_of(im, "axes", 1)?.unwrap_or_default();
    let rank = im.rank(x);
    let no_op = given.is_empty() && call.flag("noop_with_empty_axes", false);
    let axes = if no_op { Vec::new() } else { resolve_axes(&given, rank)? };
    let prim = match call.op() {
        "ReduceSum" => Some(ReduceOp::Sum),
        "ReduceProd" => Some(ReduceOp::Product),
        "ReduceMax" => Some(ReduceOp::Max),
        "ReduceMin" => Some(ReduceOp::Min),
        _ => None,
    };
    if let Some(op) = prim {
        return one(if axes.is_empty() { x } else { im.builder.reduce(op, x, &axes, keep)? });
    }
    let kind = match call.op() {
        "ReduceMean" => StatisticKind::Mean,
        "ReduceSumSquare" => StatisticKind::SumSquare,
        "ReduceL1" => StatisticKind::L1,
        "ReduceL2" => StatisticKind::L2,
        "ReduceLogSum" => StatisticKind::LogSum,
        _ => StatisticKind::LogSumExp,
    };
    let dtype = im.builder.ty(x).dtype;
    if dtype.is_float() {
        return one(im.builder.add(Op::composite(Statistic { kind, axes, keep }), &[x])?);
    }
    // Statistics are of floats; sums of integers stay integers.
    match kind {
        StatisticKind::SumSquare => {
            let square = im.builder.binary(BinaryOp::Mul, x, x)?;
            one(im.builder.reduce(ReduceOp::Sum, square, &axes, keep)?)
        }
        StatisticKind::L1 => {
            let abs = im.builder.unary(UnaryOp::Abs, x)?;
            one(im.builder.reduce(ReduceOp::Sum, abs, &axes, keep)?)
        }
        StatisticKind::Mean => {
            let count: usize = axes.iter().map(|&a| im.builder.shape(x)[a]).product();
            let sum = im.builder.reduce(ReduceOp::Sum, x, &axes, keep)?;
            one(im.builder.binary_scalar(BinaryOp::Div, sum, count as f64)?)
        }
        _ => {
            let float = im.builder.cast(x, DType::F32)?;
            let result = im.builder.add(Op::composite(Statistic { kind, axes, keep }), &[float])?;
            one(im.builder.cast(result, dtype)?)
        }
    }
}
