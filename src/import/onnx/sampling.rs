//! Operators that bring planes to other sizes.

use super::node::{Call, Handler, Importer, Val, one};
use crate::error::{Error, Result};
use crate::graph::{NodeId, Op, Prim};
use crate::ops::resize::{Coordinates, Interpolation, Nearest, Resize, ResizeAxis};
use crate::ops::shape::pad_with;
use crate::tensor::MAX_ELEMS;

pub(super) fn handler(op: &str) -> Option<Handler> {
    Some(match op {
        "Resize" => resize,
        "Upsample" => upsample,
        "DepthToSpace" => depth_to_space,
        "SpaceToDepth" => space_to_depth,
        "CenterCropPad" => center_crop_pad,
        _ => return None,
    })
}

/// Numbers of an operand that must be known at import; none where it is left out or empty.
fn floats(im: &mut Importer, call: &Call, i: usize, role: &str) -> Result<Option<Vec<f64>>> {
    let Some(id) = call.optional(im, i)? else { return Ok(None) };
    let known = im.known(id)?.map(|t| t.data.clone());
    let known = known.ok_or_else(|| {
        Error::unsupported(format!("{role} must be numbers known at import; fix the values of the inputs they depend on"))
    })?;
    Ok((!known.is_empty()).then_some(known))
}

/// The size of an axis of `len` elements scaled by `scale`.
fn scaled(len: usize, scale: f64, round: bool) -> Result<usize> {
    let exact = len as f64 * scale;
    let size = if round { (exact + 0.5).floor() } else { exact.floor() };
    if (0.0..=MAX_ELEMS as f64).contains(&size) && scale > 0.0 {
        return Ok(size as usize);
    }
    Err(Error::invalid(format!("a dimension of size {len} scaled by {scale}: scales are positive, and results have at most 2^31 elements")))
}

fn interpolation(call: &Call, mode: &str) -> Result<Interpolation> {
    Ok(match mode {
        "" | "nearest" => Interpolation::Nearest(match call.string("nearest_mode") {
            "" | "round_prefer_floor" => Nearest::RoundPreferFloor,
            "round_prefer_ceil" => Nearest::RoundPreferCeil,
            "floor" => Nearest::Floor,
            "ceil" => Nearest::Ceil,
            other => return Err(Error::malformed(format!("nearest_mode `{other}`"))),
        }),
        "linear" | "bilinear" | "trilinear" => Interpolation::Linear,
        "cubic" => Interpolation::Cubic { a: call.float("cubic_coeff_a", -0.75) },
        other => return Err(Error::malformed(format!("mode `{other}`; allowed are nearest, linear and cubic"))),
    })
}

/// In operator set 10 the operands are x and scales, and coordinates are not moved; since 11 they are x, region, scales and sizes.
fn resize(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    if im.opset < 11 {
        return scale_by(im, call, x);
    }
    let shape = im.builder.shape(x);
    let axes = match call.ints("axes") {
        Some(axes) => axes.iter().map(|&a| im.axis(a, x)).collect::<Result<Vec<_>>>()?,
        None => (0..shape.len()).collect(),
    };
    let coordinates = match call.string("coordinate_transformation_mode") {
        "" | "half_pixel" => Coordinates::HalfPixel,
        "half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
        "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
        "align_corners" => Coordinates::AlignCorners,
        "asymmetric" => Coordinates::Asymmetric,
        "tf_crop_and_resize" => Coordinates::TfCropAndResize,
        other => return Err(Error::unsupported(format!("coordinate_transformation_mode `{other}`"))),
    };
    let region = match coordinates {
        Coordinates::TfCropAndResize => {
            Some(floats(im, call, 1, "the region")?.ok_or_else(|| Error::malformed("tf_crop_and_resize without a region"))?)
        }
        _ => None,
    };
    let (scales, sizes) = (floats(im, call, 2, "the scales")?, call.value(3).map(|v| im.ints(v, "the sizes")).transpose()?);
    let sizes = sizes.filter(|s| !s.is_empty());
    let count = axes.len();
    if region.as_ref().is_some_and(|r| r.len() != 2 * count)
        || scales.as_ref().is_some_and(|s| s.len() != count)
        || sizes.as_ref().is_some_and(|s| s.len() != count)
    {
        return Err(Error::malformed(format!("scales, sizes and twice the region must have {count} numbers, one for each axis")));
    }
    let mut targets = Vec::with_capacity(count);
    match (scales, sizes) {
        (Some(scales), None) => {
            for (&axis, &scale) in axes.iter().zip(&scales) {
                targets.push((scaled(shape[axis], scale, false)?, scale));
            }
        }
        (None, Some(sizes)) => {
            let ratio = |(&axis, &size): (&usize, &i64)| size as f64 / shape[axis].max(1) as f64;
            let ratios: Vec<f64> = axes.iter().zip(&sizes).map(ratio).collect();
            let common = match call.string("keep_aspect_ratio_policy") {
                "" | "stretch" => None,
                "not_larger" => Some(ratios.iter().copied().fold(f64::INFINITY, f64::min)),
                "not_smaller" => Some(ratios.iter().copied().fold(0.0, f64::max)),
                other => return Err(Error::malformed(format!("keep_aspect_ratio_policy `{other}`"))),
            };
            for (i, &axis) in axes.iter().enumerate() {
                targets.push(match common {
                    Some(scale) => (scaled(shape[axis], scale, true)?, scale),
                    None => (usize::try_from(sizes[i]).map_err(|_| Error::malformed(format!("size {} is negative", sizes[i])))?, ratios[i]),
                });
            }
        }
        _ => return Err(Error::malformed("it takes either scales or sizes")),
    }
    let list = axes.iter().zip(&targets).enumerate().map(|(i, (&axis, &(size, scale)))| {
        let region = region.as_ref().map_or((0.0, 1.0), |r| (r[i] as f32, r[count + i] as f32));
        ResizeAxis { axis, size, scale, region }
    });
    // An axis that stays as it is needs no table, whatever lies where.
    let stays = |a: &ResizeAxis| a.scale == 1.0 && a.size == shape[a.axis] && a.region == (0.0, 1.0);
    let resize = Resize {
        antialias: call.flag("antialias", false),
        exclude_outside: call.flag("exclude_outside", false),
        extrapolation: call.float("extrapolation_value", 0.0),
        ..Resize::new(list.filter(|a| !stays(a)).collect(), interpolation(call, call.string("mode"))?, coordinates)
    };
    one(im.builder.add(Op::composite(resize), &[x])?)
}

fn upsample(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    scale_by(im, call, x)
}

/// Upsample, and Resize before operator set 11: places are divided by the scale, and the lower element is the nearest.
fn scale_by(im: &mut Importer, call: &Call, x: NodeId) -> Result<Vec<Val>> {
    let shape = im.builder.shape(x);
    let scales = match call.floats("scales") {
        Some(scales) => scales.iter().map(|&s| f64::from(s)).collect(),
        None => floats(im, call, 1, "the scales")?.ok_or_else(|| Error::malformed("it has no scales"))?,
    };
    if scales.len() != shape.len() {
        return Err(Error::malformed(format!("scales {scales:?} for {} dimensions", shape.len())));
    }
    let mut axes = Vec::new();
    for (axis, &scale) in scales.iter().enumerate().filter(|(_, s)| **s != 1.0) {
        axes.push(ResizeAxis { axis, size: scaled(shape[axis], scale, false)?, scale, region: (0.0, 1.0) });
    }
    let interpolation = match interpolation(call, call.string("mode"))? {
        Interpolation::Nearest(_) => Interpolation::Nearest(Nearest::Floor),
        other => other,
    };
    one(im.builder.add(Op::composite(Resize::new(axes, interpolation, Coordinates::Asymmetric)), &[x])?)
}

/// `[n, c, h, w]` and the block size.
fn blocks(im: &Importer, call: &Call) -> Result<(NodeId, [usize; 4], usize)> {
    let x = call.node(im, 0)?;
    let block = usize::try_from(call.int("blocksize", 0)).ok().filter(|&b| b > 0 && b < 1 << 15);
    let block = block.ok_or_else(|| Error::malformed("blocksize must be positive and below 2^15"))?;
    let shape = <[usize; 4]>::try_from(im.builder.shape(x)).map_err(|_| Error::malformed("it takes [n, c, h, w]"))?;
    Ok((x, shape, block))
}

fn depth_to_space(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, [n, c, h, w], b) = blocks(im, call)?;
    if !c.is_multiple_of(b * b) {
        return Err(Error::malformed(format!("{c} channels are no multiple of {b} times {b}")));
    }
    let rest = c / (b * b);
    let (split, perm) = match call.string("mode") {
        "" | "DCR" => ([n, b, b, rest, h, w], [0, 3, 4, 1, 5, 2]),
        "CRD" => ([n, rest, b, b, h, w], [0, 1, 4, 2, 5, 3]),
        other => return Err(Error::malformed(format!("mode `{other}`; allowed are DCR and CRD"))),
    };
    let x = im.builder.reshape(x, &split)?;
    let x = im.builder.transpose(x, &perm)?;
    one(im.builder.reshape(x, &[n, rest, h * b, w * b])?)
}

fn space_to_depth(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, [n, c, h, w], b) = blocks(im, call)?;
    if !h.is_multiple_of(b) || !w.is_multiple_of(b) {
        return Err(Error::malformed(format!("a plane of {h} by {w} has no whole blocks of {b} by {b}")));
    }
    let x = im.builder.reshape(x, &[n, c, h / b, b, w / b, b])?;
    let x = im.builder.transpose(x, &[0, 3, 5, 1, 2, 4])?;
    one(im.builder.reshape(x, &[n, c * b * b, h / b, w / b])?)
}

/// The middle of each axis, or the axis in the middle of zeros; an odd element lies after.
fn center_crop_pad(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let shape = im.builder.shape(x);
    let wanted = call.ints_of(im, "shape", 1)?.ok_or_else(|| Error::malformed("it has no shape"))?;
    let axes = match call.ints("axes") {
        Some(axes) => axes.iter().map(|&a| im.axis(a, x)).collect::<Result<Vec<_>>>()?,
        None => (0..shape.len()).collect(),
    };
    if axes.len() != wanted.len() {
        return Err(Error::malformed(format!("sizes {wanted:?} for {} axes", axes.len())));
    }
    let rank = shape.len();
    let (mut starts, mut sizes, mut low, mut high) = (vec![0; rank], shape.clone(), vec![0; rank], vec![0; rank]);
    for (&axis, &size) in axes.iter().zip(&wanted) {
        let size = usize::try_from(size).map_err(|_| Error::malformed(format!("size {size} is negative")))?;
        if size < shape[axis] {
            (starts[axis], sizes[axis]) = (if size == 0 { 0 } else { (shape[axis] - size) / 2 }, size);
        } else {
            low[axis] = (size - shape[axis]) / 2;
            high[axis] = size - shape[axis] - low[axis];
        }
    }
    let middle = if sizes == shape { x } else { im.builder.add(Prim::Slice { starts, steps: vec![1; rank], sizes }, &[x])? };
    one(pad_with(&mut im.builder, middle, &low, &high, 0.0)?)
}
