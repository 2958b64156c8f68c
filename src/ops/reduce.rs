//! Reductions.

use super::RefTensor;
use super::call::{Call, NUMERIC};
use super::cases::{Cases, edges, floats, plain, splat, uniform};
use super::elementwise::{max, min, wrap};
use super::shape::{self, ShapeOps, resolve_axis};
use super::tolerance::Tolerance;
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
        (ReduceOp::Max, DType::F32 | DType::F16) => f64::NEG_INFINITY,
        (ReduceOp::Max, DType::I32) => i32::MIN as f64,
        (ReduceOp::Max, DType::I8) => i8::MIN as f64,
        (ReduceOp::Max, DType::U32 | DType::U8 | DType::Bool) => 0.0,
        (ReduceOp::Min, DType::F32 | DType::F16) => f64::INFINITY,
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

pub(super) fn cases(cases: &mut Cases) {
    use ReduceOp::*;
    let shapes: &[(&[usize], &[usize])] = &[
        (&[7], &[0]),
        (&[], &[]),
        (&[0], &[0]),
        (&[3, 0], &[1]),
        (&[0, 3], &[1]),
        (&[5, 257], &[1]),
        (&[257, 5], &[0]),
        (&[3, 5, 7], &[0, 2]),
        (&[3, 5, 7], &[1]),
        (&[2, 3, 5, 7], &[0, 1, 2, 3]),
        (&[4, 1, 3], &[1]),
        (&[2, 4099], &[1]),
    ];
    for op in [Sum, Product, Max, Min] {
        for &(shape, axes) in shapes {
            let prim = Prim::Reduce { op, axes: axes.to_vec() };
            let (tolerance, operand) = match op {
                Sum => (Tolerance::Relative { relative: 1e-5, absolute: 2e-3 }, floats(shape)),
                Product => (Tolerance::Relative { relative: 5e-4, absolute: 1e-37 }, uniform(DType::F32, shape, 0.95, 1.05)),
                Max | Min => (Tolerance::Exact, floats(shape)),
            };
            cases.add(prim, tolerance, vec![operand]);
        }
        cases.add(
            Prim::Reduce { op, axes: vec![1] },
            if matches!(op, Max | Min) { Tolerance::Exact } else { Tolerance::Norm(1e-4) },
            vec![uniform(DType::F32, &[6, 35], 0.9, 1.1).reversed()],
        );
        for &(shape, axes) in shapes[2..8].iter().chain(&[(&[6, 64][..], &[1][..]), (&[9, 64], &[0])]) {
            // Products of numbers this near to 1 stay within f16.
            let operand = uniform(DType::F16, shape, 0.95, 1.05);
            cases.add(Prim::Reduce { op, axes: axes.to_vec() }, Tolerance::Relative { relative: 1e-4, absolute: 0.0 }, vec![operand]);
        }
        for &dtype in NUMERIC.iter().filter(|d| d.is_int()) {
            for &(shape, axes) in &shapes[2..8] {
                cases.add(Prim::Reduce { op, axes: axes.to_vec() }, Tolerance::Exact, vec![plain(dtype, shape)]);
            }
        }
    }
    for op in [Max, Min] {
        for &(shape, axes) in &shapes[2..8] {
            cases.add(Prim::Reduce { op, axes: axes.to_vec() }, Tolerance::Exact, vec![plain(DType::Bool, shape)]);
        }
        // NaN in every place of a row, and rows of infinities.
        cases.add(Prim::Reduce { op, axes: vec![1] }, Tolerance::Exact, vec![edges(DType::F32, &[11, 10])]);
        cases.add(Prim::Reduce { op, axes: vec![1] }, Tolerance::Exact, vec![edges(DType::F32, &[22, 3])]);
        cases.add(Prim::Reduce { op, axes: vec![1] }, Tolerance::Exact, vec![splat(DType::F32, &[3, 65], f64::NEG_INFINITY)]);
    }
}
