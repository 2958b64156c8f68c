//! Running sums, products and extremes along an axis.

use super::RefTensor;
use super::call::{Call, NUMERIC};
use super::cases::{Cases, edges, floats, plain, uniform};
use super::elementwise::{max, min, wrap};
use super::reduce::identity;
use super::shape::resolve_axis;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{Composite, GraphBuilder, NodeId, Op, Prim, ReduceOp, TensorType};
use kernels_gen::DType;

pub(super) fn infer_scan(call: &Call, axis: usize) -> Result<TensorType> {
    let [x] = call.operands(["x"])?;
    call.dtype("x", x, NUMERIC)?;
    if axis >= x.rank() {
        return Err(call.misfit(format_args!("axis {axis} must be below the rank {}", x.rank())));
    }
    Ok(x.clone())
}

/// Two elements combined.
pub(super) fn combine(op: ReduceOp, dtype: DType, a: f64, b: f64) -> f64 {
    let int = !dtype.is_float();
    match op {
        ReduceOp::Sum if int => wrap(dtype, a as i64 + b as i64),
        ReduceOp::Product if int => wrap(dtype, (a as i64).wrapping_mul(b as i64)),
        ReduceOp::Sum => a + b,
        ReduceOp::Product => a * b,
        ReduceOp::Max => max(a, b),
        ReduceOp::Min => min(a, b),
    }
}

pub(super) fn scan(op: ReduceOp, x: &RefTensor, axis: usize) -> RefTensor {
    let inner: usize = x.shape[axis + 1..].iter().product();
    let mut data = x.data.clone();
    for i in 0..data.len() {
        if !(i / inner).is_multiple_of(x.shape[axis]) {
            data[i] = combine(op, x.dtype, data[i - inner], data[i]);
        }
    }
    RefTensor { data, ..x.clone() }
}

/// Running combination along an axis: each element becomes that of all before it and, unless `exclusive`, itself. NaN stays once it is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cumulative {
    /// How elements are combined.
    pub op: ReduceOp,
    /// The axis.
    pub axis: usize,
    /// Whether an element itself does not count; the first becomes the identity.
    pub exclusive: bool,
    /// Whether it runs from the last element to the first.
    pub reverse: bool,
}

/// The dimension `axis` the other way round.
fn turned(b: &mut GraphBuilder, x: NodeId, axis: usize) -> Result<NodeId> {
    let sizes = b.shape(x);
    let (mut starts, mut steps) = (vec![0; sizes.len()], vec![1; sizes.len()]);
    (starts[axis], steps[axis]) = (sizes[axis].saturating_sub(1), -1);
    b.add(Prim::Slice { starts, steps, sizes }, &[x])
}

/// Every element of `x` moved one place up along `axis`; the first becomes `first`.
pub(crate) fn shifted(b: &mut GraphBuilder, x: NodeId, axis: usize, first: f64) -> Result<NodeId> {
    let sizes = b.shape(x);
    let mut low = vec![0; sizes.len()];
    low[axis] = 1;
    let padded = super::shape::pad_with(b, x, &low, &vec![0; sizes.len()], first)?;
    b.add(Prim::Slice { starts: vec![0; sizes.len()], steps: vec![1; sizes.len()], sizes }, &[padded])
}

impl Composite for Cumulative {
    fn name(&self) -> &'static str {
        match self.op {
            ReduceOp::Sum => "CumSum",
            ReduceOp::Product => "CumProd",
            ReduceOp::Max => "CumMax",
            ReduceOp::Min => "CumMin",
        }
    }

    fn attributes(&self) -> String {
        let (exclusive, reverse) = (if self.exclusive { " exclusive" } else { "" }, if self.reverse { " reverse" } else { "" });
        format!("axis={}{exclusive}{reverse}", self.axis)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        infer_scan(&Call::new(self.name(), inputs), self.axis)
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x] = inputs else { return Err(Error::internal("a scan without one operand")) };
        let ty = b.ty(x).clone();
        if ty.num_elems() == 0 {
            return Ok(x);
        }
        let mut result = if self.reverse { turned(b, x, self.axis)? } else { x };
        if self.exclusive {
            result = shifted(b, result, self.axis, identity(self.op, ty.dtype))?;
        }
        result = b.add(Prim::Scan { op: self.op, axis: self.axis }, &[result])?;
        if self.reverse { turned(b, result, self.axis) } else { Ok(result) }
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let x = inputs[0];
        let (inner, size) = (x.shape[self.axis + 1..].iter().product::<usize>(), x.shape[self.axis]);
        let mut data = vec![0.0; x.data.len()];
        for row in 0..x.data.len() / size.max(1) {
            let first = row / inner * inner * size + row % inner;
            let mut sum = identity(self.op, x.dtype);
            for step in 0..size {
                let at = first + if self.reverse { size - 1 - step } else { step } * inner;
                let next = combine(self.op, x.dtype, sum, x.data[at]);
                data[at] = if self.exclusive { sum } else { next };
                sum = next;
            }
        }
        RefTensor::new(x.dtype, x.shape.clone(), data)
    }
}

/// Running combinations.
pub trait ScanOps: Value {
    /// Running combination along `axis`; negative counts from the end.
    fn cumulative(&self, op: ReduceOp, axis: i64, exclusive: bool, reverse: bool) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        Self::apply(Op::composite(Cumulative { op, axis, exclusive, reverse }), &[self])
    }

    /// Running sum along `axis`.
    fn cumsum(&self, axis: i64) -> Result<Self> {
        self.cumulative(ReduceOp::Sum, axis, false, false)
    }
}

impl<V: Value> ScanOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    use ReduceOp::*;
    // Lengths around the parts long rows are cut into, and past what one invocation may loop over.
    let shapes: &[(&[usize], usize)] = &[
        (&[7], 0),
        (&[1], 0),
        (&[0], 0),
        (&[5, 257], 1),
        (&[257, 5], 0),
        (&[3, 5, 7], 1),
        (&[3, 0], 0),
        (&[2, 129], 1),
        (&[70_001], 0),
        (&[2, 65_537], 1),
    ];
    for op in [Sum, Product, Max, Min] {
        let operand = |shape: &[usize]| match op {
            Product => uniform(DType::F32, shape, 0.99, 1.01),
            _ => floats(shape),
        };
        let tolerance = match op {
            Sum => Tolerance::Relative { relative: 1e-5, absolute: 5e-3 },
            Product => Tolerance::Relative { relative: 2e-2, absolute: 1e-30 },
            Max | Min => Tolerance::Exact,
        };
        for &(shape, axis) in shapes {
            // The product of many numbers around 1 leaves the range of f32, and one extreme is as good as the other.
            let long = shape.iter().any(|&s| s > 1000);
            if long && matches!(op, Product | Min) {
                continue;
            }
            cases.add(Prim::Scan { op, axis }, tolerance, vec![operand(shape)]);
            if long && op != Sum {
                continue;
            }
            for (exclusive, reverse) in [(true, false), (false, true), (true, true)] {
                cases.add(Op::composite(Cumulative { op, axis, exclusive, reverse }), tolerance, vec![operand(shape)]);
            }
        }
        cases.add(Prim::Scan { op, axis: 1 }, tolerance, vec![operand(&[31, 9]).reversed()]);
        for &dtype in NUMERIC.iter().filter(|d| d.is_int()) {
            for &(shape, axis) in &[shapes[3], shapes[4], shapes[7]] {
                cases.add(Prim::Scan { op, axis }, Tolerance::Exact, vec![plain(dtype, shape)]);
            }
        }
    }
    for op in [Max, Min] {
        cases.add(Prim::Scan { op, axis: 1 }, Tolerance::Exact, vec![edges(DType::F32, &[11, 10])]);
        cases.add(Prim::Scan { op, axis: 0 }, Tolerance::Exact, vec![edges(DType::F32, &[22, 3])]);
    }
    cases.add(Prim::Scan { op: Sum, axis: 0 }, Tolerance::Exact, vec![uniform(DType::I32, &[200_003], -9.0, 9.0)]);
    cases.add(Prim::Scan { op: Sum, axis: 0 }, Tolerance::Exact, vec![super::cases::splat(DType::F32, &[513], f64::NAN)]);
}
