//! Reductions.

use super::RefTensor;
use super::call::{Call, NUMERIC};
use super::elementwise::{max, min, wrap};
use super::shape::{self, ShapeOps, resolve_axis};
use super::value::Value;
use crate::error::Result;
use crate::graph::{Prim, ReduceOp, TensorType};
use kernels_gen::DType;

pub(super) fn infer_reduce(call: &Call, op: ReduceOp, axes: &[usize]) -> Result<TensorType> {
    let [x] = call.operands(["x"])?;
    match op {
        ReduceOp::Sum | ReduceOp::Product => call.dtype("x", x, NUMERIC)?,
        ReduceOp::Max | ReduceOp::Min => {}
    }
    if !axes.windows(2).all(|a| a[0] < a[1]) || axes.iter().any(|&a| a >= x.rank()) {
        return Err(call.misfit(format_args!("axes {axes:?} must increase and be below the rank {}", x.rank())));
    }
    let kept = x.shape.iter().enumerate().filter(|(d, _)| !axes.contains(d)).map(|(_, &size)| size);
    Ok(TensorType::new(x.dtype, kept.collect::<Vec<_>>()))
}

/// The value a reduction of no elements has.
pub fn identity(op: ReduceOp, dtype: DType) -> f64 {
    match (op, dtype) {
        (ReduceOp::Sum, _) => 0.0,
        (ReduceOp::Product, _) => 1.0,
        (ReduceOp::Max, DType::F32) => f64::NEG_INFINITY,
        (ReduceOp::Max, DType::I32) => i32::MIN as f64,
        (ReduceOp::Max, DType::I8) => i8::MIN as f64,
        (ReduceOp::Max, DType::U32 | DType::U8 | DType::Bool) => 0.0,
        (ReduceOp::Min, DType::F32) => f64::INFINITY,
        (ReduceOp::Min, DType::I32) => i32::MAX as f64,
        (ReduceOp::Min, DType::U32) => u32::MAX as f64,
        (ReduceOp::Min, DType::I8) => i8::MAX as f64,
        (ReduceOp::Min, DType::U8) => u8::MAX as f64,
        (ReduceOp::Min, DType::Bool) => 1.0,
    }
}

pub(super) fn reduce(op: ReduceOp, x: &RefTensor, axes: &[usize]) -> RefTensor {
    let kept = (0..x.shape.len()).filter(|d| !axes.contains(d));
    let perm: Vec<usize> = kept.chain(axes.iter().copied()).collect();
    let rows = shape::transpose(x, &perm);
    let shape = rows.shape[..x.shape.len() - axes.len()].to_vec();
    let width: usize = rows.shape[shape.len()..].iter().product();
    let int = !x.dtype.is_float();
    let combine = |a: f64, b: f64| match op {
        ReduceOp::Sum if int => wrap(x.dtype, a as i64 + b as i64),
        ReduceOp::Product if int => wrap(x.dtype, (a as i64).wrapping_mul(b as i64)),
        ReduceOp::Sum => a + b,
        ReduceOp::Product => a * b,
        ReduceOp::Max => max(a, b),
        ReduceOp::Min => min(a, b),
    };
    let start = identity(op, x.dtype);
    let data = (0..shape.iter().product::<usize>())
        .map(|row| rows.data[row * width..(row + 1) * width].iter().fold(start, |a, &b| combine(a, b)))
        .collect();
    RefTensor { dtype: x.dtype, shape, data }
}

/// Reductions along axes; negative axes count from the end, an empty list means all.
pub trait ReduceOps: Value {
    /// Reduction; `keep` leaves the axes as dimensions of size 1.
    fn reduce(&self, op: ReduceOp, axes: &[i64], keep: bool) -> Result<Self> {
        let ty = self.ty();
        let axes = resolve_axes(axes, ty.rank())?;
        let reduced = Self::apply(Prim::Reduce { op, axes: axes.clone() }.into(), &[self])?;
        if !keep {
            return Ok(reduced);
        }
        let sizes = ty.shape.iter().enumerate().map(|(d, &size)| if axes.contains(&d) { 1 } else { size as isize });
        reduced.reshape(&sizes.collect::<Vec<_>>())
    }

    /// Sum.
    fn sum(&self, axes: &[i64], keep: bool) -> Result<Self> {
        self.reduce(ReduceOp::Sum, axes, keep)
    }

    /// Product.
    fn product(&self, axes: &[i64], keep: bool) -> Result<Self> {
        self.reduce(ReduceOp::Product, axes, keep)
    }

    /// Largest element; NaN wins.
    fn max(&self, axes: &[i64], keep: bool) -> Result<Self> {
        self.reduce(ReduceOp::Max, axes, keep)
    }

    /// Smallest element; NaN wins.
    fn min(&self, axes: &[i64], keep: bool) -> Result<Self> {
        self.reduce(ReduceOp::Min, axes, keep)
    }
}

impl<V: Value> ReduceOps for V {}

/// Axes from the front, sorted and unique; all of them for an empty list.
pub(crate) fn resolve_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    if axes.is_empty() {
        return Ok((0..rank).collect());
    }
    let mut resolved = axes.iter().map(|&a| resolve_axis(a, rank)).collect::<Result<Vec<_>>>()?;
    resolved.sort_unstable();
    resolved.dedup();
    Ok(resolved)
}
