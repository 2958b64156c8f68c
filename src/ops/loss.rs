//! Losses of classifiers.

use super::RefTensor;
use super::call::{Call, FLOATS};
use super::cases::{Cases, floats, splat, uniform};
use super::stats::{log_sum_exp, rows_along};
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, ReduceOp, TensorType, UnaryOp};
use kernels_gen::DType;

/// How the losses of all labels become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossReduction {
    /// Each label keeps its loss.
    None,
    /// Their sum.
    Sum,
    /// Their sum divided by the sum of the weights of the labels that count; NaN where that is 0.
    Mean,
}

/// `(scores [n, c, ...], labels [n, ...] (I32), weights [c] (optional))`: minus the logarithm of each label's probability, times its
/// weight.
/// A label outside `0..c` that is not ignored has the loss NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossEntropy {
    /// Whether the scores are logarithms of probabilities already; else their softmax along dimension 1 is the probability.
    pub log_probabilities: bool,
    /// Label whose loss is 0 and whose weight does not count.
    pub ignore: Option<i32>,
    /// What is done with the losses.
    pub reduction: LossReduction,
}

impl Composite for CrossEntropy {
    fn name(&self) -> &'static str {
        if self.log_probabilities { "NegativeLogLikelihoodLoss" } else { "SoftmaxCrossEntropyLoss" }
    }

    fn attributes(&self) -> String {
        let ignore = self.ignore.map_or(String::new(), |i| format!("ignore={i} "));
        format!("{ignore}reduction={:?}", self.reduction)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let ([scores, labels], weights) = call.operands_from(["scores", "labels"], &["weights"])?;
        call.dtype("scores", scores, FLOATS)?;
        call.dtype("labels", labels, &[DType::I32])?;
        let mut expected = scores.shape.clone();
        if expected.len() < 2 || expected.remove(1) > i32::MAX as usize || expected != labels.shape {
            return Err(call.misfit("scores must be [n, c, ...] and labels [n, ...]"));
        }
        if let [weights] = weights {
            call.floats("each of scores and weights", &[scores, weights])?;
            if weights.shape != scores.shape[1..2] {
                return Err(call.misfit(format_args!("weights must be [{}]", scores.shape[1])));
            }
        }
        Ok(TensorType::new(scores.dtype, if self.reduction == LossReduction::None { labels.shape.clone() } else { Vec::new() }))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[scores, labels, ref weights @ ..] = inputs else { return Err(Error::internal("a loss without scores and labels")) };
        let shape = b.shape(scores);
        let classes = shape[1];
        let mut column = shape.clone();
        column[1] = 1;
        // The label's score is a sum along the row too, so that one kernel goes over the scores.
        let spread = b.reshape(labels, &column)?;
        let places = b.add(Prim::Iota { ty: TensorType::new(DType::I32, shape), axis: 1 }, &[])?;
        let hit = b.binary(BinaryOp::Eq, places, spread)?;
        let zero = b.scalar(DType::F32, 0.0)?;
        let masked = b.select(hit, scores, zero)?;
        let own = b.reduce(ReduceOp::Sum, masked, &[1], true)?;
        let loss = if self.log_probabilities {
            b.unary(UnaryOp::Neg, own)?
        } else {
            let largest = b.reduce(ReduceOp::Max, scores, &[1], true)?;
            let shifted = b.binary(BinaryOp::Sub, scores, largest)?;
            let exp = b.unary(UnaryOp::Exp, shifted)?;
            let sum = b.reduce(ReduceOp::Sum, exp, &[1], true)?;
            let log = b.unary(UnaryOp::Log, sum)?;
            let distance = b.binary(BinaryOp::Sub, largest, own)?;
            b.binary(BinaryOp::Add, distance, log)?
        };
        let loss = b.reshape(loss, &b.shape(labels))?;
        let low = b.binary_scalar(BinaryOp::Ge, labels, 0.0)?;
        let high = b.binary_scalar(BinaryOp::Lt, labels, classes as f64)?;
        let inside = b.binary(BinaryOp::And, low, high)?;
        let nan = b.splat_like(loss, DType::F32, f64::NAN)?;
        let mut loss = b.select(inside, loss, nan)?;
        let mut weight = match weights.first() {
            Some(&weights) if classes > 0 => b.add(Prim::Gather { axis: 0 }, &[weights, labels])?,
            _ => b.splat_like(loss, DType::F32, 1.0)?,
        };
        if !weights.is_empty() {
            loss = b.binary(BinaryOp::Mul, loss, weight)?;
        }
        if let Some(ignore) = self.ignore {
            let ignored = b.binary_scalar(BinaryOp::Eq, labels, f64::from(ignore))?;
            loss = b.select(ignored, zero, loss)?;
            // A comparison of its own: one that both kernels use would be stored for them.
            let counted = b.binary_scalar(BinaryOp::Ne, labels, f64::from(ignore))?;
            weight = b.select(counted, weight, zero)?;
        }
        if self.reduction == LossReduction::None {
            return Ok(loss);
        }
        let axes: Vec<usize> = (0..b.ty(labels).rank()).collect();
        let sum = b.reduce(ReduceOp::Sum, loss, &axes, false)?;
        if self.reduction == LossReduction::Sum {
            return Ok(sum);
        }
        let total = b.reduce(ReduceOp::Sum, weight, &axes, false)?;
        let mean = b.binary(BinaryOp::Div, sum, total)?;
        let nothing = b.binary_scalar(BinaryOp::Eq, total, 0.0)?;
        let nan = b.scalar(DType::F32, f64::NAN)?;
        b.select(nothing, nan, mean)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let (scores, labels) = (inputs[0], inputs[1]);
        let one = |(row, &label): (&Vec<f64>, &f64)| {
            if self.ignore.is_some_and(|i| label == f64::from(i)) {
                return (0.0, 0.0);
            }
            let Some(score) = (label >= 0.0).then(|| row.get(label as usize)).flatten() else { return (f64::NAN, 1.0) };
            let weight = inputs.get(2).map_or(1.0, |w| w.data[label as usize]);
            let log = if self.log_probabilities { *score } else { score - log_sum_exp(row) };
            (-log * weight, weight)
        };
        let losses: Vec<(f64, f64)> = rows_along(scores, &[1]).iter().zip(&labels.data).map(one).collect();
        let sum: f64 = losses.iter().map(|(loss, _)| loss).sum();
        let total: f64 = losses.iter().map(|(_, weight)| weight).sum();
        match self.reduction {
            LossReduction::None => RefTensor::new(scores.dtype, labels.shape.clone(), losses.iter().map(|(loss, _)| *loss).collect()),
            LossReduction::Sum => RefTensor::new(scores.dtype, [], vec![sum]),
            LossReduction::Mean => RefTensor::new(scores.dtype, [], vec![sum / total]),
        }
    }
}

/// Losses.
pub trait LossOps: Value {
    /// Cross entropy of logits `[n, c, ...]` and labels `[n, ...]`; labels equal to `ignore` do not count.
    fn cross_entropy(&self, labels: &Self, ignore: Option<i32>, reduction: LossReduction) -> Result<Self> {
        Self::apply(Op::composite(CrossEntropy { log_probabilities: false, ignore, reduction }), &[self, labels])
    }
}

impl<V: Value> LossOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let close = Tolerance::Relative { relative: 5e-5, absolute: 1e-5 };
    for log_probabilities in [false, true] {
        for reduction in [LossReduction::None, LossReduction::Sum, LossReduction::Mean] {
            let loss = |ignore| Op::composite(CrossEntropy { log_probabilities, ignore, reduction });
            for (scores, labels) in
                [(&[5usize, 257] as &[usize], &[5usize] as &[usize]), (&[3, 1], &[3]), (&[2, 7, 3, 5], &[2, 3, 5]), (&[257, 10], &[257])]
            {
                let high = scores[1] as f64 - 1.0;
                let operands = vec![uniform(DType::F32, scores, -8.0, 8.0), uniform(DType::I32, labels, 0.0, high)];
                if reduction != LossReduction::Sum {
                    cases.add(loss(None), close, operands.clone());
                    cases.add(loss(Some(0)), close, operands.clone());
                }
                let weighted = operands.into_iter().chain([uniform(DType::F32, &scores[1..2], 0.1, 2.0)]).collect();
                cases.add(loss(Some(-100)), close, weighted);
            }
            // Labels that no class has are ignored by their number, or give NaN.
            let ignored = |value| vec![floats(&[3, 5]), splat(DType::I32, &[3], value)];
            cases.add(loss(Some(-1)), close, ignored(-1.0));
            cases.add(loss(None), close, ignored(5.0));
            let loud = vec![splat(DType::F32, &[2, 5], 1000.0), uniform(DType::I32, &[2], 0.0, 4.0)];
            cases.add(loss(None), close, loud);
        }
    }
}
