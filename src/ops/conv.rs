//! Convolutions.

use super::RefTensor;
use super::call::{Call, FLOATS};
use super::window;
use crate::error::Result;
use crate::graph::TensorType;
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
    call.dtype("x", x, FLOATS)?;
    call.dtype("weights", w, FLOATS)?;
    let (&[n, c, h, width], &[o, c_group, kh, kw]) = (&x.shape[..], &w.shape[..]) else {
        return Err(call.misfit("x must be [n, c, h, w] and the weights [o, c / groups, kh, kw]"));
    };
    let g = spec.groups;
    if g == 0 || c != c_group.saturating_mul(g) || o % g != 0 {
        return Err(call.misfit(format_args!(
            "with {g} groups, the {c} channels must be groups x {c_group}, and groups must divide the {o} output channels"
        )));
    }
    let mut spatial = [0; 2];
    for (d, (len, size)) in [(h, kh), (width, kw)].into_iter().enumerate() {
        let padding = window::Padding::Explicit { low: spec.low.to_vec(), high: spec.high.to_vec() };
        let windows = window::resolve(&padding, d, len, size, spec.strides[d], spec.dilations[d], false);
        spatial[d] = windows.map_err(|e| call.misfit(e))?.count;
    }
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
