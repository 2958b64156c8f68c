//! Normalisations.

use super::RefTensor;
use super::broadcast_shapes;
use super::call::Call;
use super::cases::{Cases, floats, splat, uniform};
use super::shape::resolve_axis;
use super::stats::{Statistic, StatisticKind};
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, TensorType, UnaryOp};
use kernels_gen::DType;

/// Normalisation over the dimensions from `axis` on: `(x, scale, bias (optional)) -> (x - mean) / sqrt(variance + epsilon) * scale + bias`,
/// or, with `root_mean_square`, `x / sqrt(mean(x^2) + epsilon) * scale + bias`. Scale and bias broadcast to `x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerNorm {
    /// First dimension that is normalised over.
    pub axis: usize,
    /// Added to the variance.
    pub epsilon: f32,
    /// Whether the mean is left in place.
    pub root_mean_square: bool,
}

impl Composite for LayerNorm {
    fn name(&self) -> &'static str {
        if self.root_mean_square { "RMSNormalization" } else { "LayerNormalization" }
    }

    fn attributes(&self) -> String {
        format!("axis={} epsilon={:?}", self.axis, self.epsilon)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let ([x, _], _) = call.operands_from(["x", "scale"], &["bias"])?;
        if self.axis >= x.rank() {
            return Err(call.misfit(format_args!("axis {} must be below the rank {}", self.axis, x.rank())));
        }
        call.floats("each operand", inputs)?;
        for ty in inputs {
            if !broadcast_shapes(&[&x.shape, &ty.shape]).is_ok_and(|s| s == x.shape) {
                return Err(call.misfit("scale and bias must broadcast to x"));
            }
        }
        Ok(x.clone())
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x, scale, ref bias @ ..] = inputs else { return Err(Error::internal("a normalisation without scale")) };
        let axes: Vec<usize> = (self.axis..b.ty(x).rank()).collect();
        let mean = Statistic { kind: StatisticKind::Mean, axes, keep: true };
        let centred = if self.root_mean_square {
            x
        } else {
            let centre = b.add(Op::composite(mean.clone()), &[x])?;
            b.binary(BinaryOp::Sub, x, centre)?
        };
        let square = b.binary(BinaryOp::Mul, centred, centred)?;
        let variance = b.add(Op::composite(mean), &[square])?;
        let shifted = b.binary_scalar(BinaryOp::Add, variance, self.epsilon as f64)?;
        let deviation = b.unary(UnaryOp::Sqrt, shifted)?;
        let normal = b.binary(BinaryOp::Div, centred, deviation)?;
        let scaled = b.binary(BinaryOp::Mul, normal, scale)?;
        match bias.first() {
            Some(&bias) => b.binary(BinaryOp::Add, scaled, bias),
            None => Ok(scaled),
        }
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let x = inputs[0];
        let width: usize = x.shape[self.axis..].iter().product();
        let mut data = Vec::with_capacity(x.data.len());
        if width > 0 {
            for row in x.data.chunks_exact(width) {
                let mean = if self.root_mean_square { 0.0 } else { row.iter().sum::<f64>() / width as f64 };
                let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / width as f64;
                data.extend(row.iter().map(|v| (v - mean) / (variance + self.epsilon as f64).sqrt()));
            }
        }
        for (i, value) in data.iter_mut().enumerate() {
            *value *= aligned(inputs[1], &x.shape, i);
            if let Some(bias) = inputs.get(2) {
                *value += aligned(bias, &x.shape, i);
            }
        }
        RefTensor::new(x.dtype, x.shape.clone(), data)
    }
}

/// The element of `t`, broadcast to `shape`, at the row-major index `i`.
pub(super) fn aligned(t: &RefTensor, shape: &[usize], i: usize) -> f64 {
    let (mut rest, mut at, mut stride) = (i, 0, 1);
    for d in (0..shape.len()).rev() {
        let here = rest % shape[d];
        rest /= shape[d];
        if let Some(&size) = (d + t.shape.len()).checked_sub(shape.len()).and_then(|own| t.shape.get(own)) {
            at += if size == 1 { 0 } else { here * stride };
            stride *= size;
        }
    }
    t.data[at]
}

/// Batch normalisation with known statistics: `(x [n, c, ...], scale, bias, mean, variance [c])`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchNorm {
    /// Added to the variance.
    pub epsilon: f32,
}

impl Composite for BatchNorm {
    fn name(&self) -> &'static str {
        "BatchNormalization"
    }

    fn attributes(&self) -> String {
        format!("epsilon={:?}", self.epsilon)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x, parameters @ ..] = call.operands(["x", "scale", "bias", "mean", "variance"])?;
        call.floats("each operand", inputs)?;
        if x.rank() < 2 || parameters.iter().any(|p| p.shape != [x.shape[1]]) {
            return Err(call.misfit("x must be [n, c, ...] and the other operands [c]"));
        }
        Ok(x.clone())
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x, scale, bias, mean, variance] = inputs else { return Err(Error::internal("BatchNormalization without five operands")) };
        // The factor and the summand of each channel are small, and constant where the parameters are: `x` meets two operations.
        let shifted = b.binary_scalar(BinaryOp::Add, variance, self.epsilon as f64)?;
        let deviation = b.unary(UnaryOp::Sqrt, shifted)?;
        let factor = b.binary(BinaryOp::Div, scale, deviation)?;
        let moved = b.binary(BinaryOp::Mul, mean, factor)?;
        let summand = b.binary(BinaryOp::Sub, bias, moved)?;
        let mut column = vec![1; b.ty(x).rank() - 1];
        column[0] = b.shape(x)[1];
        let (factor, summand) = (b.reshape(factor, &column)?, b.reshape(summand, &column)?);
        let scaled = b.binary(BinaryOp::Mul, x, factor)?;
        b.binary(BinaryOp::Add, scaled, summand)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let [x, scale, bias, mean, variance] = inputs else { return Err(Error::internal("BatchNormalization without five operands")) };
        let (channels, plane) = (x.shape[1], x.shape[2..].iter().product::<usize>());
        let element = |(i, v): (usize, &f64)| {
            let c = i / plane % channels;
            (v - mean.data[c]) / (variance.data[c] + self.epsilon as f64).sqrt() * scale.data[c] + bias.data[c]
        };
        RefTensor::new(x.dtype, x.shape.clone(), x.data.iter().enumerate().map(element).collect())
    }
}

/// Normalisation of `x [n, c, ...]` over groups of channels and all that follows: `(x, scale [c], bias [c])`. With one group for each
/// channel it is instance normalisation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupNorm {
    /// Number of groups; it divides the channels.
    pub groups: usize,
    /// Added to the variance.
    pub epsilon: f32,
}

impl Composite for GroupNorm {
    fn name(&self) -> &'static str {
        "GroupNormalization"
    }

    fn attributes(&self) -> String {
        format!("groups={} epsilon={:?}", self.groups, self.epsilon)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x, parameters @ ..] = call.operands(["x", "scale", "bias"])?;
        call.floats("each operand", inputs)?;
        let divides = x.rank() >= 2 && self.groups > 0 && x.shape[1].is_multiple_of(self.groups);
        if !divides || parameters.iter().any(|p| p.shape != [x.shape[1]]) {
            return Err(call.misfit(format_args!("x must be [n, c, ...], scale and bias [c], and {} groups must divide c", self.groups)));
        }
        Ok(x.clone())
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x, scale, bias] = inputs else { return Err(Error::internal("GroupNormalization without three operands")) };
        let shape = b.shape(x);
        let width = shape[1..].iter().product::<usize>() / self.groups;
        let rows = b.reshape(x, &[shape[0], self.groups, width])?;
        let mean = Op::composite(Statistic { kind: StatisticKind::Mean, axes: vec![2], keep: true });
        let centre = b.add(mean.clone(), &[rows])?;
        let centred = b.binary(BinaryOp::Sub, rows, centre)?;
        let square = b.binary(BinaryOp::Mul, centred, centred)?;
        let variance = b.add(mean, &[square])?;
        let shifted = b.binary_scalar(BinaryOp::Add, variance, self.epsilon as f64)?;
        let deviation = b.unary(UnaryOp::Sqrt, shifted)?;
        let normal = b.binary(BinaryOp::Div, centred, deviation)?;
        let normal = b.reshape(normal, &shape)?;
        let mut column = vec![1; shape.len() - 1];
        column[0] = shape[1];
        let (scale, bias) = (b.reshape(scale, &column)?, b.reshape(bias, &column)?);
        let scaled = b.binary(BinaryOp::Mul, normal, scale)?;
        b.binary(BinaryOp::Add, scaled, bias)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let [x, scale, bias] = inputs else { return Err(Error::internal("GroupNormalization without three operands")) };
        let (channels, plane) = (x.shape[1], x.shape[2..].iter().product::<usize>());
        let width = channels * plane / self.groups;
        let mut data = Vec::with_capacity(x.data.len());
        for (row, values) in x.data.chunks(width.max(1)).enumerate() {
            let mean = values.iter().sum::<f64>() / width as f64;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / width as f64;
            for (i, v) in values.iter().enumerate() {
                let c = (row * width + i) / plane % channels;
                data.push((v - mean) / (variance + self.epsilon as f64).sqrt() * scale.data[c] + bias.data[c]);
            }
        }
        RefTensor::new(x.dtype, x.shape.clone(), data)
    }
}

/// Normalisations.
pub trait NormOps: Value {
    /// Layer normalisation over the dimensions from `axis` (negative counts from the end) on.
    fn layer_norm(&self, scale: &Self, bias: Option<&Self>, axis: i64, epsilon: f32) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        let operands: Vec<&Self> = [self, scale].into_iter().chain(bias).collect();
        Self::apply(Op::composite(LayerNorm { axis, epsilon, root_mean_square: false }), &operands)
    }

    /// Root-mean-square normalisation over the dimensions from `axis` on.
    fn rms_norm(&self, scale: &Self, axis: i64, epsilon: f32) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        Self::apply(Op::composite(LayerNorm { axis, epsilon, root_mean_square: true }), &[self, scale])
    }

    /// Normalisation of `[n, c, ...]` over each of `groups` groups of channels.
    fn group_norm(&self, scale: &Self, bias: &Self, groups: usize, epsilon: f32) -> Result<Self> {
        Self::apply(Op::composite(GroupNorm { groups, epsilon }), &[self, scale, bias])
    }

    /// Normalisation of `[n, c, ...]` over each channel of each element of the batch.
    fn instance_norm(&self, scale: &Self, bias: &Self, epsilon: f32) -> Result<Self> {
        let groups = self.ty().shape.get(1).copied().unwrap_or(0);
        self.group_norm(scale, bias, groups, epsilon)
    }

    /// Batch normalisation of `[n, c, ...]` with known statistics `[c]`.
    fn batch_norm(&self, scale: &Self, bias: &Self, mean: &Self, variance: &Self, epsilon: f32) -> Result<Self> {
        Self::apply(Op::composite(BatchNorm { epsilon }), &[self, scale, bias, mean, variance])
    }
}

impl<V: Value> NormOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let close = Tolerance::Relative { relative: 1e-4, absolute: 2e-5 };
    for root_mean_square in [false, true] {
        let norm = |axis| Op::composite(LayerNorm { axis, epsilon: 1e-5, root_mean_square });
        cases.add(norm(1), close, vec![floats(&[5, 257]), floats(&[257]), floats(&[257])]);
        cases.add(norm(2), close, vec![floats(&[2, 3, 64]), floats(&[64])]);
        cases.add(norm(1), close, vec![floats(&[2, 3, 5]), floats(&[3, 5]), floats(&[3, 1])]);
        cases.add(norm(0), close, vec![floats(&[3, 5]), floats(&[3, 5])]);
        cases.add(norm(1), close, vec![floats(&[0, 5]), floats(&[5])]);
        cases.add(norm(1), close, vec![splat(DType::F32, &[2, 65], 3.0), floats(&[65])]);
        // The mean is far larger than the deviation.
        let far = Tolerance::Relative { relative: 2e-2, absolute: 2e-2 };
        cases.add(norm(1), far, vec![uniform(DType::F32, &[3, 129], 99.0, 101.0), splat(DType::F32, &[129], 1.0)]);
    }
    for shape in [&[2usize, 3] as &[usize], &[2, 3, 7], &[2, 5, 4, 6], &[0, 3, 4, 4]] {
        let c = shape[1];
        let variance = uniform(DType::F32, &[c], 0.1, 2.0);
        let operands = vec![floats(shape), floats(&[c]), floats(&[c]), floats(&[c]), variance];
        cases.add(Op::composite(BatchNorm { epsilon: 1e-5 }), close, operands);
    }
    for (shape, groups) in
        [(&[2usize, 6] as &[usize], 3), (&[2, 6, 7], 2), (&[1, 5, 4, 6], 5), (&[3, 4, 257], 1), (&[0, 4, 3], 2), (&[2, 3, 65], 3)]
    {
        let operands = vec![floats(shape), floats(&shape[1..2]), floats(&shape[1..2])];
        cases.add(Op::composite(GroupNorm { groups, epsilon: 1e-5 }), close, operands);
    }
}
