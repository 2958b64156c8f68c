//! Reductions that are more than one primitive: means, norms and logarithms of sums.

use super::RefTensor;
use super::call::{Call, FLOATS};
use super::cases::{Cases, splat, uniform};
use super::reduce::resolve_axes;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, ReduceOp, TensorType, UnaryOp};
use kernels_gen::DType;

/// What a statistic computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatisticKind {
    /// Mean; of no elements NaN.
    Mean,
    /// Sum of squares.
    SumSquare,
    /// Sum of absolute values.
    L1,
    /// Square root of the sum of squares.
    L2,
    /// Logarithm of the sum.
    LogSum,
    /// Logarithm of the sum of exponentials, without overflow.
    LogSumExp,
}

/// A statistic of f32 along axes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statistic {
    /// What is computed.
    pub kind: StatisticKind,
    /// Axes, increasing.
    pub axes: Vec<usize>,
    /// Whether the axes stay with size 1.
    pub keep: bool,
}

impl Composite for Statistic {
    fn name(&self) -> &'static str {
        match self.kind {
            StatisticKind::Mean => "ReduceMean",
            StatisticKind::SumSquare => "ReduceSumSquare",
            StatisticKind::L1 => "ReduceL1",
            StatisticKind::L2 => "ReduceL2",
            StatisticKind::LogSum => "ReduceLogSum",
            StatisticKind::LogSumExp => "ReduceLogSumExp",
        }
    }

    fn attributes(&self) -> String {
        format!("axes={:?}{}", self.axes, if self.keep { " keep" } else { "" })
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x] = call.operands(["x"])?;
        call.dtype("x", x, FLOATS)?;
        let mut ty = super::reduce::infer_reduce(&call, ReduceOp::Sum, &self.axes)?;
        if self.keep {
            ty.shape = x.shape.clone();
            self.axes.iter().for_each(|&a| ty.shape[a] = 1);
        }
        Ok(ty)
    }

    fn decompose(&self, builder: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x] = inputs else { return Err(Error::internal("a statistic without one operand")) };
        let shape = builder.shape(x);
        let sum = |builder: &mut GraphBuilder, x: NodeId| builder.reduce(ReduceOp::Sum, x, &self.axes, self.keep);
        match self.kind {
            StatisticKind::Mean => {
                let count: usize = self.axes.iter().map(|&a| shape[a]).product();
                let total = sum(builder, x)?;
                builder.binary_scalar(BinaryOp::Div, total, count as f64)
            }
            StatisticKind::SumSquare => {
                let square = builder.binary(BinaryOp::Mul, x, x)?;
                sum(builder, square)
            }
            StatisticKind::L1 => {
                let abs = builder.unary(UnaryOp::Abs, x)?;
                sum(builder, abs)
            }
            StatisticKind::L2 => {
                let square = builder.binary(BinaryOp::Mul, x, x)?;
                let total = sum(builder, square)?;
                builder.unary(UnaryOp::Sqrt, total)
            }
            StatisticKind::LogSum => {
                let total = sum(builder, x)?;
                builder.unary(UnaryOp::Log, total)
            }
            StatisticKind::LogSumExp => {
                let largest = builder.reduce(ReduceOp::Max, x, &self.axes, true)?;
                // An infinite maximum would turn `x - maximum` into NaN.
                let finite = finite_or_zero(builder, largest)?;
                let shifted = builder.binary(BinaryOp::Sub, x, finite)?;
                let exp = builder.unary(UnaryOp::Exp, shifted)?;
                let total = sum(builder, exp)?;
                let log = builder.unary(UnaryOp::Log, total)?;
                let shape = builder.shape(log);
                let back = builder.reshape(finite, &shape)?;
                builder.binary(BinaryOp::Add, log, back)
            }
        }
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let x = inputs[0];
        let ty = self.infer(&[&x.ty()])?;
        let rows = rows_along(x, &self.axes);
        let value = |row: &Vec<f64>| match self.kind {
            StatisticKind::Mean => row.iter().sum::<f64>() / row.len() as f64,
            StatisticKind::SumSquare => row.iter().map(|v| v * v).sum(),
            StatisticKind::L1 => row.iter().map(|v| v.abs()).sum(),
            StatisticKind::L2 => row.iter().map(|v| v * v).sum::<f64>().sqrt(),
            StatisticKind::LogSum => row.iter().sum::<f64>().ln(),
            StatisticKind::LogSumExp => log_sum_exp(row),
        };
        RefTensor::new(ty.dtype, ty.shape, rows.iter().map(value).collect())
    }
}

/// `ln(sum(exp(row)))` by its definition: for a row without infinities shifted by the maximum so that f64 does not overflow.
pub(super) fn log_sum_exp(row: &[f64]) -> f64 {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        return row.iter().map(|v| v.exp()).sum::<f64>().ln();
    }
    row.iter().map(|v| (v - largest).exp()).sum::<f64>().ln() + largest
}

/// The elements along `axes` for each index of the other axes.
pub(super) fn rows_along(x: &RefTensor, axes: &[usize]) -> Vec<Vec<f64>> {
    let strides = crate::tensor::strides(&x.shape);
    let kept: Vec<usize> = (0..x.shape.len()).filter(|d| !axes.contains(d)).collect();
    let count: usize = kept.iter().map(|&d| x.shape[d]).product();
    let mut rows = vec![Vec::new(); count];
    for (i, &value) in x.data.iter().enumerate() {
        let row = kept.iter().fold(0, |row, &d| row * x.shape[d] + i / strides[d] % x.shape[d]);
        rows[row].push(value);
    }
    rows
}

/// `x`, but 0 where it is infinite; NaN stays.
pub(super) fn finite_or_zero(builder: &mut GraphBuilder, x: NodeId) -> Result<NodeId> {
    let dtype = builder.ty(x).dtype;
    let abs = builder.unary(UnaryOp::Abs, x)?;
    let infinity = builder.scalar(dtype, f64::INFINITY)?;
    let infinite = builder.binary(BinaryOp::Eq, abs, infinity)?;
    let zero = builder.scalar(dtype, 0.0)?;
    builder.select(infinite, zero, x)
}

/// Statistics along axes; negative axes count from the end, an empty list means all.
pub trait StatisticOps: Value {
    /// A statistic; `keep` leaves the axes as dimensions of size 1.
    fn statistic(&self, kind: StatisticKind, axes: &[i64], keep: bool) -> Result<Self> {
        let axes = resolve_axes(axes, self.ty().rank())?;
        Self::apply(Op::composite(Statistic { kind, axes, keep }), &[self])
    }

    /// Mean.
    fn mean(&self, axes: &[i64], keep: bool) -> Result<Self> {
        self.statistic(StatisticKind::Mean, axes, keep)
    }

    /// Logarithm of the sum of exponentials, without overflow.
    fn log_sum_exp(&self, axes: &[i64], keep: bool) -> Result<Self> {
        self.statistic(StatisticKind::LogSumExp, axes, keep)
    }
}

impl<V: Value> StatisticOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    use StatisticKind::*;
    for kind in [Mean, SumSquare, L1, L2, LogSum, LogSumExp] {
        let (low, high) = if kind == LogSum { (0.1, 2.0) } else { (-2.0, 2.0) };
        let tolerance = Tolerance::Relative { relative: 2e-5, absolute: 1e-4 };
        for (shape, axes, keep) in [
            (&[7usize] as &[usize], &[0usize] as &[usize], true),
            (&[5, 257], &[1], false),
            (&[3, 5, 7], &[0, 2], true),
            (&[3, 5, 7], &[1], false),
            (&[2, 3, 4, 5], &[2, 3], true),
            (&[0, 3], &[1], true),
        ] {
            let op = Op::composite(Statistic { kind, axes: axes.to_vec(), keep });
            cases.add(op, tolerance, vec![uniform(DType::F32, shape, low, high)]);
        }
    }
    let log_sum_exp = Op::composite(Statistic { kind: LogSumExp, axes: vec![0], keep: false });
    for value in [500.0, -500.0, f64::NEG_INFINITY, f64::INFINITY] {
        cases.add(log_sum_exp.clone(), Tolerance::Relative { relative: 1e-5, absolute: 0.0 }, vec![splat(DType::F32, &[5], value)]);
    }
}
