//! Transposed convolutions: convolutions of a plane with zeros between its elements.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, floats};
use super::conv::Conv;
use super::indexing::coordinates;
use super::shape::pad_with;
use super::tolerance::Tolerance;
use super::value::Value;
use super::window::Padding;
use crate::error::{Error, Result};
use crate::graph::{Composite, GraphBuilder, NodeId, Op, Prim, TensorType};
use crate::tensor::strides;

/// ONNX ConvTranspose: `(x [n, c, ...], weights [c, o / groups, ...], bias [o] (optional))` on one or two spatial dimensions. Each element adds its
/// window to the result, which has `stride * (size - 1) + dilation * (window - 1) + 1 + output_padding - low - high` elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvTranspose {
    /// Distance of the windows in the result.
    pub strides: Vec<usize>,
    /// Elements cut off before.
    pub low: Vec<usize>,
    /// Elements cut off after.
    pub high: Vec<usize>,
    /// Elements added after.
    pub output_padding: Vec<usize>,
    /// Distance of the elements of a window.
    pub dilations: Vec<usize>,
    /// Number of groups.
    pub groups: usize,
}

impl ConvTranspose {
    /// Size of the result along spatial dimension `d`; `None` where nothing is left.
    fn size(&self, d: usize, len: usize, window: usize) -> Option<usize> {
        let span = window.checked_sub(1)?.checked_mul(self.dilations[d])?.checked_add(1)?;
        let reach = len.checked_sub(1)?.checked_mul(self.strides[d])?.checked_add(span)?.checked_add(self.output_padding[d])?;
        reach.checked_sub(self.low[d])?.checked_sub(self.high[d])
    }
}

impl Composite for ConvTranspose {
    fn name(&self) -> &'static str {
        "ConvTranspose"
    }

    fn attributes(&self) -> String {
        let ConvTranspose { strides, low, high, output_padding, dilations, groups } = self;
        format!("strides={strides:?} cut={low:?}+{high:?} output_padding={output_padding:?} dilations={dilations:?} groups={groups}")
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let ([x, w], bias) = call.operands_from(["x", "weights"], &["bias"])?;
        call.floats("each operand", inputs)?;
        let spatial = x.rank().saturating_sub(2);
        let lists = [&self.strides, &self.low, &self.high, &self.output_padding, &self.dilations];
        let positive = self.strides.iter().chain(&self.dilations).all(|&v| v > 0);
        if !(1..=2).contains(&spatial) || w.rank() != x.rank() || lists.iter().any(|l| l.len() != spatial) || !positive {
            return Err(Error::unsupported(call.misfit("all must state the same one or two spatial dimensions").to_string()));
        }
        if self.groups == 0 || x.shape[1] != w.shape[0] || !x.shape[1].is_multiple_of(self.groups) {
            return Err(call.misfit(format_args!("weights must be [c, o / groups, ...], and {} groups must divide c", self.groups)));
        }
        let channels = w.shape[1].checked_mul(self.groups).ok_or_else(|| call.too_large())?;
        if bias.iter().any(|b| b.shape != [channels]) {
            return Err(call.misfit(format_args!("the bias must be [{channels}]")));
        }
        let mut shape = vec![x.shape[0], channels];
        for d in 0..spatial {
            shape.push(self.size(d, x.shape[d + 2], w.shape[d + 2]).ok_or_else(|| {
                call.misfit(format_args!(
                    "spatial dimension {d} must have an element, and more than the {} + {} cut off",
                    self.low[d], self.high[d]
                ))
            })?);
        }
        Ok(TensorType::new(x.dtype, shape))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x, w, ref bias @ ..] = inputs else { return Err(Error::internal("ConvTranspose without weights")) };
        let (shape, weights) = (b.shape(x), b.shape(w));
        let (rank, spatial) = (shape.len(), shape.len() - 2);
        // Zeros between the elements: each gets a dimension of its own, which is padded.
        let mut spread = x;
        for d in 0..spatial {
            let (mut size, stride) = (b.shape(spread), self.strides[d]);
            size.insert(d + 3, 1);
            let split = b.reshape(spread, &size)?;
            let mut high = vec![0; size.len()];
            high[d + 3] = stride - 1;
            let padded = pad_with(b, split, &vec![0; size.len()], &high, 0.0)?;
            size.remove(d + 3);
            size[d + 2] *= stride;
            let flat = b.reshape(padded, &size)?;
            size[d + 2] -= stride - 1;
            spread = b.add(Prim::Slice { starts: vec![0; rank], steps: vec![1; rank], sizes: size }, &[flat])?;
        }
        // A window reaches past both ends by what is not cut off; what is cut off beyond that goes now.
        let (mut low, mut high, mut starts, mut sizes) = (vec![0; spatial], vec![0; spatial], vec![0; rank], b.shape(spread));
        for d in 0..spatial {
            let reach = (weights[d + 2] - 1) * self.dilations[d];
            low[d] = reach.saturating_sub(self.low[d]);
            high[d] = (reach + self.output_padding[d]).saturating_sub(self.high[d]);
            starts[d + 2] = self.low[d].saturating_sub(reach);
            sizes[d + 2] -= starts[d + 2] + self.high[d].saturating_sub(reach + self.output_padding[d]);
        }
        if sizes != b.shape(spread) {
            spread = b.add(Prim::Slice { starts, steps: vec![1; rank], sizes }, &[spread])?;
        }
        // Weights [g * c', o', ...] as [g * o', c', ...], turned round.
        let (c, o) = (weights[0] / self.groups, weights[1]);
        let split = [&[self.groups, c, o], &weights[2..]].concat();
        let perm: Vec<usize> = [0, 2, 1].into_iter().chain(3..split.len()).collect();
        let grouped = b.reshape(w, &split)?;
        let grouped = b.transpose(grouped, &perm)?;
        let flat = [&[self.groups * o, c], &weights[2..]].concat();
        let grouped = b.reshape(grouped, &flat)?;
        let (mut starts, mut steps) = (vec![0; rank], vec![1; rank]);
        (2..rank).for_each(|d| (starts[d], steps[d]) = (flat[d] - 1, -1));
        let turned = b.add(Prim::Slice { starts, steps, sizes: flat }, &[grouped])?;
        let padding = Padding::Explicit { low, high };
        let conv = Conv { strides: vec![1; spatial], padding, dilations: self.dilations.clone(), groups: self.groups };
        let operands: Vec<NodeId> = [spread, turned].into_iter().chain(bias.iter().copied()).collect();
        b.add(Op::composite(conv), &operands)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let (x, w, bias) = (inputs[0], inputs[1], inputs.get(2));
        let ty = self.infer(&inputs.iter().map(|t| t.ty()).collect::<Vec<_>>().iter().collect::<Vec<_>>())?;
        let (spatial, out) = (x.shape.len() - 2, strides(&ty.shape));
        let (c, o) = (x.shape[1] / self.groups, w.shape[1]);
        let plane: usize = ty.shape[2..].iter().product();
        let mut data: Vec<f64> = (0..ty.num_elems()).map(|i| bias.map_or(0.0, |b| b.data[i / plane % ty.shape[1]])).collect();
        let window: usize = w.shape[2..].iter().product();
        for (i, value) in x.data.iter().enumerate() {
            let at = coordinates(i, &x.shape);
            for k in 0..o * window {
                let tap = coordinates(k, &w.shape[1..]);
                let place = (0..spatial).map(|d| (at[d + 2] * self.strides[d] + tap[d + 1] * self.dilations[d]).checked_sub(self.low[d]));
                let place: Option<Vec<usize>> = place.collect();
                let Some(place) = place.filter(|p| p.iter().zip(&ty.shape[2..]).all(|(p, size)| p < size)) else { continue };
                let channel = at[1] / c * o + tap[0];
                let target = at[0] * out[0] + channel * out[1] + place.iter().zip(&out[2..]).map(|(p, s)| p * s).sum::<usize>();
                data[target] += value * w.data[at[1] * o * window + k];
            }
        }
        RefTensor::new(ty.dtype, ty.shape, data)
    }
}

/// Transposed convolutions.
pub trait ConvTransposeOps: Value {
    /// Transposed convolution with these weights and bias.
    fn conv_transpose(&self, weights: &Self, bias: Option<&Self>, conv: ConvTranspose) -> Result<Self> {
        let operands: Vec<&Self> = [self, weights].into_iter().chain(bias).collect();
        Self::apply(Op::composite(conv), &operands)
    }
}

impl<V: Value> ConvTransposeOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let plain = |spatial: usize, stride: usize| ConvTranspose {
        strides: vec![stride; spatial],
        low: vec![0; spatial],
        high: vec![0; spatial],
        output_padding: vec![0; spatial],
        dilations: vec![1; spatial],
        groups: 1,
    };
    let mut add = |conv: ConvTranspose, x: &[usize], w: &[usize], bias: bool| {
        let mut operands = vec![floats(x), floats(w)];
        operands.extend(bias.then(|| floats(&[w[1] * conv.groups])));
        cases.add(Op::composite(conv), Tolerance::Relative { relative: 1e-4, absolute: 1e-4 }, operands);
    };
    add(plain(2, 1), &[1, 3, 5, 7], &[3, 2, 3, 3], true);
    add(plain(2, 2), &[2, 3, 5, 4], &[3, 5, 2, 2], false);
    add(plain(1, 3), &[2, 3, 7], &[3, 4, 2], true);
    add(ConvTranspose { low: vec![1, 0], high: vec![2, 1], ..plain(2, 2) }, &[1, 2, 5, 4], &[2, 3, 3, 4], true);
    add(ConvTranspose { output_padding: vec![1, 0], dilations: vec![2, 1], ..plain(2, 2) }, &[1, 2, 4, 4], &[2, 2, 3, 3], false);
    add(ConvTranspose { groups: 2, ..plain(2, 2) }, &[1, 4, 3, 3], &[4, 3, 3, 3], true);
    add(ConvTranspose { low: vec![3], high: vec![3], ..plain(1, 1) }, &[1, 2, 17], &[2, 2, 2], false);
    add(plain(2, 2), &[0, 2, 3, 3], &[2, 2, 2, 2], true);
}
