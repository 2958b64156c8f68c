//! Convolutions.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, floats, halves};
use super::tolerance::Tolerance;
use super::value::Value;
use super::window::{self, Padding};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, TensorType, WeightLayout};
use rayon::prelude::*;

/// Attributes of a convolution on two spatial dimensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConvSpec {
    strides: [usize; 2],
    low: [usize; 2],
    high: [usize; 2],
    dilations: [usize; 2],
    groups: usize,
}

impl ConvSpec {
    pub(crate) fn new(strides: &[usize; 2], low: &[usize; 2], high: &[usize; 2], dilations: &[usize; 2], groups: usize) -> Self {
        ConvSpec { strides: *strides, low: *low, high: *high, dilations: *dilations, groups }
    }
}

pub(super) fn infer_conv(call: &Call, spec: &ConvSpec) -> Result<TensorType> {
    let [x, w] = call.operands(["x", "weights"])?;
    call.floats("each operand", &[x, w])?;
    let (&[n, c, h, width], &[o, c_group, kh, kw]) = (&x.shape[..], &w.shape[..]) else {
        return Err(call.misfit("x must be [n, c, h, w] and the weights [o, c / groups, kh, kw]"));
    };
    let g = spec.groups;
    if g == 0 || c != c_group.saturating_mul(g) || o % g != 0 {
        return Err(call.misfit(format_args!(
            "with {g} groups, the {c} channels must be groups x {c_group}, and groups must divide the {o} output channels"
        )));
    }
    let (mut spatial, mut padded) = ([0; 2], [0; 2]);
    for (d, (len, size)) in [(h, kh), (width, kw)].into_iter().enumerate() {
        let padding = Padding::Explicit { low: spec.low.to_vec(), high: spec.high.to_vec() };
        let windows = window::resolve(&padding, d, len, size, spec.strides[d], spec.dilations[d], false);
        let windows = windows.map_err(|e| Error::new(e.kind(), call.misfit(e).to_string()))?;
        (spatial[d], padded[d]) = (windows.count, windows.padded(len));
    }
    call.countable("the padded x", &[n, c, padded[0], padded[1]])?;
    Ok(TensorType::new(x.dtype, [n, o, spatial[0], spatial[1]]))
}

pub(super) fn conv(x: &RefTensor, w: &RefTensor, spec: &ConvSpec, ty: TensorType) -> RefTensor {
    let (c, h, width) = (x.shape[1], x.shape[2], x.shape[3]);
    let (o, c_group, kh, kw) = (w.shape[0], w.shape[1], w.shape[2], w.shape[3]);
    let (oh, ow) = (ty.shape[2], ty.shape[3]);
    let mut data = vec![0.0; ty.num_elems()];
    // The element of the operand under a window's element, or `None` in the padding.
    let under = |d: usize, out: usize, k: usize, len: usize| {
        (out * spec.strides[d] + k * spec.dilations[d]).checked_sub(spec.low[d]).filter(|&at| at < len)
    };
    if !data.is_empty() {
        data.par_chunks_mut(oh * ow).enumerate().for_each(|(plane, out)| {
            let (batch, channel) = (plane / o, plane % o);
            let group = channel / (o / spec.groups);
            for ci in 0..c_group {
                let image = &x.data[(batch * c + group * c_group + ci) * h * width..][..h * width];
                for ky in 0..kh {
                    for kx in 0..kw {
                        let weight = w.data[((channel * c_group + ci) * kh + ky) * kw + kx];
                        for oy in 0..oh {
                            let Some(iy) = under(0, oy, ky, h) else { continue };
                            for ox in 0..ow {
                                if let Some(ix) = under(1, ox, kx, width) {
                                    out[oy * ow + ox] += weight * image[iy * width + ix];
                                }
                            }
                        }
                    }
                }
            }
        });
    }
    RefTensor { dtype: ty.dtype, shape: ty.shape, data }
}

/// ONNX convolution: `(x [n, c, ...], weights [o, c / groups, ...], bias [o] (optional))` on one or two spatial dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conv {
    /// Strides, by spatial dimension.
    pub strides: Vec<usize>,
    /// Padding with zeros.
    pub padding: Padding,
    /// Dilations, by spatial dimension.
    pub dilations: Vec<usize>,
    /// Number of groups.
    pub groups: usize,
}

/// A convolution brought to two spatial dimensions.
struct Planar {
    spec: ConvSpec,
    x: Vec<usize>,
    weights: Vec<usize>,
}

impl Conv {
    /// A convolution with stride and dilation 1, no padding and one group, of `spatial` dimensions.
    pub fn new(spatial: usize) -> Self {
        Conv { strides: vec![1; spatial], padding: Padding::none(spatial), dilations: vec![1; spatial], groups: 1 }
    }

    /// One spatial dimension becomes the second of two, the first having size 1.
    fn planar(&self, x: &[usize], weights: &[usize]) -> Result<Planar> {
        let spatial = x.len().saturating_sub(2);
        let fits = (1..=2).contains(&spatial) && [weights.len() - 2, self.strides.len(), self.dilations.len()] == [spatial; 3];
        if !fits {
            return Err(Error::unsupported(format!(
                "convolution of {x:?} with weights {weights:?}, strides {:?} and dilations {:?}: all must state the same one or two spatial \
                 dimensions",
                self.strides, self.dilations
            )));
        }
        let mut spec = ConvSpec { strides: [1; 2], low: [0; 2], high: [0; 2], dilations: [1; 2], groups: self.groups };
        let first = 2 - spatial;
        for d in 0..spatial {
            let windows = window::resolve(&self.padding, d, x[d + 2], weights[d + 2], self.strides[d], self.dilations[d], false)?;
            spec.strides[first + d] = self.strides[d];
            spec.dilations[first + d] = self.dilations[d];
            (spec.low[first + d], spec.high[first + d]) = (windows.low, windows.high);
        }
        let lift = |shape: &[usize]| {
            let mut lifted = shape.to_vec();
            lifted.splice(2..2, std::iter::repeat_n(1, first));
            lifted
        };
        Ok(Planar { spec, x: lift(x), weights: lift(weights) })
    }
}

impl Composite for Conv {
    fn name(&self) -> &'static str {
        "Conv"
    }

    fn attributes(&self) -> String {
        format!("strides={:?} padding={:?} dilations={:?} groups={}", self.strides, self.padding, self.dilations, self.groups)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let ([x, w], bias) = call.operands_from(["x", "weights"], &["bias"])?;
        if w.rank() < 3 || x.rank() != w.rank() {
            return Err(call.misfit("x must be [n, c, ...] and the weights [o, c / groups, ...] with as many spatial dimensions"));
        }
        let planar = self.planar(&x.shape, &w.shape).map_err(|e| Error::new(e.kind(), call.misfit(e).to_string()))?;
        let (x2, w2) = (TensorType::new(x.dtype, planar.x), TensorType::new(w.dtype, planar.weights));
        let mut result = infer_conv(&Call::new(self.name(), &[&x2, &w2]), &planar.spec)?;
        if bias.iter().any(|b| b.dtype != x.dtype || b.shape != [w.shape[0]]) {
            return Err(call.misfit(format_args!("the bias must be {}[{}]", x.dtype, w.shape[0])));
        }
        if x.rank() == 3 {
            result.shape.remove(2);
        }
        Ok(result)
    }

    fn decompose(&self, builder: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x, w, ref bias @ ..] = inputs else { return Err(Error::internal("Conv without weights")) };
        let planar = self.planar(&builder.shape(x), &builder.shape(w))?;
        let rank = builder.ty(x).rank();
        let (x, w) = (builder.reshape(x, &planar.x)?, builder.reshape(w, &planar.weights)?);
        let ConvSpec { strides, low, high, dilations, groups } = planar.spec;
        let mut result = builder.add(Prim::Conv { strides, pads_low: low, pads_high: high, dilations, groups }, &[x, w])?;
        let mut shape = builder.shape(result);
        if let Some(&bias) = bias.first() {
            let column = builder.reshape(bias, &[shape[1], 1, 1])?;
            result = builder.binary(BinaryOp::Add, result, column)?;
        }
        if rank == 3 {
            shape.remove(2);
        }
        builder.reshape(result, &shape)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let types: Vec<TensorType> = inputs.iter().map(|t| t.ty()).collect();
        let ty = self.infer(&types.iter().collect::<Vec<_>>())?;
        let planar = self.planar(&inputs[0].shape, &inputs[1].shape)?;
        let x = RefTensor { shape: planar.x, ..inputs[0].clone() };
        let w = RefTensor { shape: planar.weights, ..inputs[1].clone() };
        let call_ty = infer_conv(&Call::new(self.name(), &[&x.ty(), &w.ty()]), &planar.spec)?;
        let mut result = conv(&x, &w, &planar.spec, call_ty);
        let plane: usize = result.shape[2..].iter().product();
        if let Some(bias) = inputs.get(2) {
            let channels = bias.data.len();
            result.data.iter_mut().enumerate().for_each(|(i, v)| *v += bias.data[i / plane % channels]);
        }
        Ok(RefTensor { shape: ty.shape, ..result })
    }

    fn weights(&self) -> Option<WeightLayout> {
        Some(WeightLayout::Rows)
    }
}

/// Convolutions.
pub trait ConvOps: Value {
    /// Convolution with `weights [o, c / groups, ...]` and, if given, a bias for each output channel.
    fn conv(&self, weights: &Self, bias: Option<&Self>, conv: Conv) -> Result<Self> {
        let operands: Vec<&Self> = [self, weights].into_iter().chain(bias).collect();
        Self::apply(Op::composite(conv), &operands)
    }
}

impl<V: Value> ConvOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let norm = Tolerance::Norm(1e-5);
    let prim = |strides, pads_low, pads_high, dilations, groups| Prim::Conv { strides, pads_low, pads_high, dilations, groups };
    let mut both = |op: Prim, x: [usize; 4], w: [usize; 4]| cases.add(op, norm, vec![floats(&x), floats(&w)]);
    both(prim([1, 1], [0, 0], [0, 0], [1, 1], 1), [1, 1, 3, 3], [1, 1, 3, 3]);
    both(prim([1, 1], [1, 1], [1, 1], [1, 1], 1), [2, 3, 8, 8], [16, 3, 3, 3]);
    both(prim([2, 2], [1, 1], [1, 1], [1, 1], 1), [2, 16, 9, 9], [32, 16, 3, 3]);
    both(prim([2, 1], [0, 2], [1, 0], [1, 2], 1), [1, 2, 9, 11], [5, 2, 2, 3]);
    both(prim([1, 1], [1, 1], [1, 1], [1, 1], 4), [2, 8, 7, 7], [12, 2, 3, 3]);
    both(prim([1, 1], [1, 1], [1, 1], [1, 1], 6), [1, 6, 7, 7], [6, 1, 3, 3]);
    both(prim([1, 1], [0, 0], [0, 0], [1, 1], 1), [1, 3, 5, 5], [2, 3, 1, 1]);
    both(prim([3, 3], [0, 0], [0, 0], [1, 1], 1), [1, 3, 10, 10], [2, 3, 1, 1]);
    for channels in [104, 208] {
        both(prim([1, 1], [0, 0], [0, 0], [1, 1], 1), [1, channels, 6, 7], [channels, channels, 1, 1]);
    }
    both(prim([1, 1], [0, 0], [0, 0], [1, 1], 1), [0, 3, 5, 5], [2, 3, 3, 3]);
    both(prim([1, 1], [0, 0], [0, 0], [1, 1], 1), [1, 0, 5, 5], [2, 0, 3, 3]);
    cases.add(prim([1, 1], [1, 1], [1, 1], [1, 1], 1), norm, vec![floats(&[2, 3, 8, 9]).reversed(), floats(&[5, 3, 3, 3]).reversed()]);
    for (x, w) in [([2usize, 3usize, 8usize, 8usize], [16usize, 3usize, 3usize, 3usize]), ([1, 4, 7, 9], [5, 4, 3, 3])] {
        cases.add(prim([1, 1], [1, 1], [1, 1], [1, 1], 1), norm, vec![halves(&x), halves(&w)]);
    }
    let with = |cases: &mut Cases, conv: Conv, shapes: &[&[usize]]| {
        cases.add(Op::composite(conv), norm, shapes.iter().map(|s| floats(s)).collect());
    };
    with(cases, Conv::new(2), &[&[2, 3, 6, 6], &[4, 3, 3, 3], &[4]]);
    with(cases, Conv::new(1), &[&[2, 3, 11], &[4, 3, 3]]);
    let strided = Conv { strides: vec![2], padding: Padding::symmetric(&[2]), dilations: vec![2], groups: 1 };
    with(cases, strided, &[&[2, 3, 11], &[4, 3, 3], &[4]]);
    for padding in [Padding::SameUpper, Padding::SameLower] {
        with(cases, Conv { strides: vec![2, 2], padding, ..Conv::new(2) }, &[&[1, 3, 7, 8], &[4, 3, 4, 3]]);
    }
}
