//! Operators that move elements, state shapes or make constants.

use super::node::{Call, Handler, Importer, Val, one};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, NodeId, Prim};
use crate::ops::broadcast_shapes;
use crate::ops::shape::{fill_shape, resolve_axis};
use crate::tensor::{HostTensor, num_elems};
use kernels_gen::DType;

/// Size up to which a dimension may be padded with its own elements: their places are a constant of the graph.
const MAX_REPEATED: usize = 1 << 24;

pub(super) fn handler(op: &str) -> Option<Handler> {
    Some(match op {
        "Constant" => constant,
        "ConstantOfShape" => constant_of_shape,
        "Shape" => shape,
        "Size" => size,
        "Range" => range,
        "Reshape" => reshape,
        "Flatten" => flatten,
        "Squeeze" => squeeze,
        "Unsqueeze" => unsqueeze,
        "Transpose" => transpose,
        "Expand" => expand,
        "Tile" => tile,
        "Concat" => concat,
        "Split" => split,
        "Slice" => slice,
        "Pad" => pad,
        "Gather" => gather,
        _ => return None,
    })
}

fn constant(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    if let Some(value) = call.tensor_value(im, "value")? {
        return Ok(vec![value]);
    }
    if let Some(value) = call.optional_float("value_float") {
        return one(im.builder.constant(HostTensor::scalar(value))?);
    }
    if let Some(values) = call.floats("value_floats") {
        return one(im.builder.constant(HostTensor::new([values.len()], values)?)?);
    }
    let (ints, shape) = match (call.optional_int("value_int"), call.ints("value_ints")) {
        (Some(value), _) => (vec![value], vec![]),
        (None, Some(values)) => (values.clone(), vec![values.len()]),
        (None, None) => {
            return Err(Error::unsupported("its value is neither a tensor nor numbers; strings and sparse tensors are not supported"));
        }
    };
    match crate::import::npy::narrow(&ints) {
        Ok(narrow) => one(im.builder.constant(HostTensor::new(shape, narrow)?)?),
        Err(_) => Ok(vec![Val::Wide(ints)]),
    }
}

fn constant_of_shape(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let value = call.value(0).ok_or_else(|| Error::malformed("operand 0 is missing"))?;
    let shape = sizes(&im.ints(value, "the shape")?)?;
    let fill = match call.tensor_value(im, "value")? {
        Some(value) => im.node(&value)?,
        None => im.builder.scalar(DType::F32, 0.0)?,
    };
    let scalar = im.builder.reshape(fill, &[])?;
    one(im.builder.broadcast_to(scalar, &shape)?)
}

fn sizes(values: &[i64]) -> Result<Vec<usize>> {
    let sizes = values.iter().map(|&v| usize::try_from(v)).collect::<Result<Vec<_>, _>>();
    let sizes = sizes.map_err(|_| Error::malformed(format!("sizes {values:?} must not be negative")))?;
    num_elems(&sizes)?;
    Ok(sizes)
}

fn int(value: usize) -> Result<i32> {
    i32::try_from(value).map_err(|_| Error::limit(format!("size {value} does not fit 32 bits")))
}

fn shape(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let shape = im.builder.shape(x);
    let rank = shape.len() as i64;
    let place = |at: i64| (if at < 0 { at + rank } else { at }).clamp(0, rank) as usize;
    let (start, end) = (place(call.int("start", 0)), place(call.int("end", rank)));
    let sizes = shape.get(start..end).unwrap_or_default().iter().map(|&d| int(d)).collect::<Result<_>>()?;
    one(im.int_vector(sizes)?)
}

fn size(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let count = int(im.builder.ty(x).num_elems())?;
    one(im.builder.constant(HostTensor::scalar(count))?)
}

/// `start + step * (0, 1, 2...)`, of as many elements as lie before the limit.
fn range(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let nodes = call.nodes(im)?;
    let &[start, limit, step] = &nodes[..] else { return Err(Error::malformed("it takes start, limit and delta")) };
    let dtype = im.builder.ty(start).dtype;
    let [first, last, by] = [(start, "start"), (limit, "limit"), (step, "delta")].map(|(id, role)| im.number(id, role));
    let (first, last, by) = (first?, last?, by?);
    let count = ((last - first) / by).ceil().max(0.0);
    if !count.is_finite() || count > i32::MAX as f64 {
        return Err(Error::invalid(format!("range from {first} to {last} in steps of {by}")));
    }
    let ty = crate::graph::TensorType::new(dtype, [count as usize]);
    let iota = im.builder.add(Prim::Iota { ty, axis: 0 }, &[])?;
    let scaled = im.builder.binary_scalar(BinaryOp::Mul, iota, by)?;
    one(im.builder.binary_scalar(BinaryOp::Add, scaled, first)?)
}

/// A size of 0 takes that of the operand, unless `allowzero`; -1 takes what is left.
fn reshape(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let mut wanted = call.ints_of(im, "shape", 1)?.ok_or_else(|| Error::malformed("it has no shape"))?;
    let ty = im.builder.ty(x).clone();
    if !call.flag("allowzero", false) {
        for (d, size) in wanted.iter_mut().enumerate().filter(|(_, size)| **size == 0) {
            *size = *ty.shape.get(d).ok_or_else(|| Error::malformed(format!("size {d} is 0, and {ty} has no dimension {d}")))? as i64;
        }
    }
    let wanted: Vec<isize> = wanted.iter().map(|&d| d as isize).collect();
    let shape = fill_shape(&ty, &wanted)?;
    one(im.builder.reshape(x, &shape)?)
}

fn flatten(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let shape = im.builder.shape(x);
    // The axis may be one past the last.
    let axis = resolve_axis(call.int("axis", 1), shape.len() + 1 - (call.int("axis", 1) < 0) as usize)?;
    let flat = [shape[..axis].iter().product(), shape[axis..].iter().product()];
    one(im.builder.reshape(x, &flat)?)
}

fn squeeze(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let shape = im.builder.shape(x);
    let axes = match call.ints_of(im, "axes", 1)? {
        Some(axes) => axes.iter().map(|&a| im.axis(a, x)).collect::<Result<Vec<_>>>()?,
        None => (0..shape.len()).filter(|&d| shape[d] == 1).collect(),
    };
    if let Some(&bad) = axes.iter().find(|&&a| shape[a] != 1) {
        return Err(Error::malformed(format!("dimension {bad} of {shape:?} has a size other than 1")));
    }
    let kept: Vec<usize> = (0..shape.len()).filter(|d| !axes.contains(d)).map(|d| shape[d]).collect();
    one(im.builder.reshape(x, &kept)?)
}

fn unsqueeze(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    // Parameters keep their values whatever their shape.
    if let Some(value @ Val::Wide(_)) = call.value(0) {
        return Ok(vec![value.clone()]);
    }
    let x = call.node(im, 0)?;
    let given = call.ints_of(im, "axes", 1)?.ok_or_else(|| Error::malformed("it has no axes"))?;
    let rank = im.rank(x) + given.len();
    let mut axes = given.iter().map(|&a| resolve_axis(a, rank)).collect::<Result<Vec<_>>>()?;
    axes.sort_unstable();
    if axes.windows(2).any(|a| a[0] == a[1]) {
        return Err(Error::malformed(format!("axes {given:?} name a dimension twice")));
    }
    let mut shape = im.builder.shape(x);
    axes.iter().for_each(|&a| shape.insert(a, 1));
    one(im.builder.reshape(x, &shape)?)
}

fn transpose(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let perm = call.sizes("perm")?.unwrap_or_else(|| (0..im.rank(x)).rev().collect());
    one(im.builder.transpose(x, &perm)?)
}

fn expand(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let value = call.value(1).ok_or_else(|| Error::malformed("it has no shape"))?;
    let wanted = sizes(&im.ints(value, "the shape")?)?;
    let shape = broadcast_shapes(&[&im.builder.shape(x), &wanted])?;
    one(im.builder.broadcast_to(x, &shape)?)
}

/// Each dimension `d` becomes `(repeat, d)` by broadcasting, and both become one.
fn tile(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let value = call.value(1).ok_or_else(|| Error::malformed("it has no repeats"))?;
    let repeats = sizes(&im.ints(value, "the repeats")?)?;
    let shape = im.builder.shape(x);
    if repeats.len() != shape.len() {
        return Err(Error::malformed(format!("repeats {repeats:?} for {shape:?}")));
    }
    let single: Vec<usize> = shape.iter().flat_map(|&d| [1, d]).collect();
    let paired: Vec<usize> = shape.iter().zip(&repeats).flat_map(|(&d, &r)| [r, d]).collect();
    let joined = shape.iter().zip(&repeats).map(|(&d, &r)| d.checked_mul(r)).collect::<Option<Vec<_>>>();
    let joined = joined.ok_or_else(|| Error::limit(format!("{shape:?} repeated {repeats:?} times cannot be addressed")))?;
    let spread = im.builder.reshape(x, &single)?;
    let repeated = im.builder.broadcast_to(spread, &paired)?;
    one(im.builder.reshape(repeated, &joined)?)
}

fn concat(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let nodes = call.nodes(im)?;
    let first = nodes.first().ok_or_else(|| Error::malformed("it takes at least one operand"))?;
    let axis = im.axis(call.optional_int("axis").ok_or_else(|| Error::malformed("it has no axis"))?, *first)?;
    one(im.builder.add(Prim::Concat { axis }, &nodes)?)
}

fn split(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let axis = im.axis(call.int("axis", 0), x)?;
    let shape = im.builder.shape(x);
    let parts = match call.ints_of(im, "split", 1)? {
        Some(parts) => sizes(&parts)?,
        None => {
            let outputs = call.num_outputs();
            let count = call.int("num_outputs", outputs as i64);
            let count = usize::try_from(count).ok().filter(|&n| (1..=outputs).contains(&n));
            let count = count.ok_or_else(|| {
                Error::malformed(format!("num_outputs is {}, the node has {outputs} outputs", call.int("num_outputs", 0)))
            })?;
            let each = shape[axis].div_ceil(count);
            (0..count).map(|i| each.min(shape[axis].saturating_sub(i * each))).collect()
        }
    };
    if parts.iter().try_fold(0usize, |sum, &p| sum.checked_add(p)) != Some(shape[axis]) {
        return Err(Error::malformed(format!("parts {parts:?} of a dimension of size {}", shape[axis])));
    }
    let mut results = Vec::with_capacity(parts.len());
    let mut start = 0;
    for part in parts {
        let (mut starts, mut sizes) = (vec![0; shape.len()], shape.clone());
        (starts[axis], sizes[axis]) = (start, part);
        start += part;
        let steps = vec![1; shape.len()];
        results.push(Val::Node(im.builder.add(Prim::Slice { starts, steps, sizes }, &[x])?));
    }
    Ok(results)
}

/// Starts and ends are attributes before operator set 10, operands since.
fn slice(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let shape = im.builder.shape(x);
    let starts = call.ints_of(im, "starts", 1)?.ok_or_else(|| Error::malformed("it has no starts"))?;
    let ends = call.ints_of(im, "ends", 2)?.ok_or_else(|| Error::malformed("it has no ends"))?;
    let axes = call.ints_of(im, "axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = call.ints_of(im, "steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err(Error::malformed(format!("starts {starts:?}, ends {ends:?}, axes {axes:?} and steps {steps:?} differ in number")));
    }
    let (mut first, mut by, mut sizes) = (vec![0; shape.len()], vec![1isize; shape.len()], shape.clone());
    for i in 0..starts.len() {
        let axis = im.axis(axes[i], x)?;
        (first[axis], by[axis], sizes[axis]) = slice_axis(shape[axis], starts[i], ends[i], steps[i])?;
    }
    one(im.builder.add(Prim::Slice { starts: first, steps: by, sizes }, &[x])?)
}

/// First element, step and number of the elements `start..end` in steps of `step`, as Python takes them.
fn slice_axis(len: usize, start: i64, end: i64, step: i64) -> Result<(usize, isize, usize)> {
    if step == 0 || step == i64::MIN {
        return Err(Error::malformed(format!("a slice in steps of {step}")));
    }
    let len = len as i64;
    let place = |at: i64, low: i64, high: i64| (if at < 0 { at.saturating_add(len) } else { at }).clamp(low, high);
    let count = if step > 0 {
        let (start, end) = (place(start, 0, len), place(end, 0, len));
        (end - start).max(0) as u64
    } else {
        let (start, end) = (place(start, -1, len - 1), place(end, -1, len - 1));
        (start - end).max(0) as u64
    };
    let count = count.div_ceil(step.unsigned_abs()) as usize;
    let first = if step > 0 { place(start, 0, len) } else { place(start, -1, len - 1) };
    // An empty slice begins nowhere, and one element needs no step.
    let (first, step) = (if count == 0 { 0 } else { first as usize }, if count <= 1 { 1 } else { step as isize });
    Ok((first, step, count))
}

/// Pads are `before` and `after` of each axis; negative ones cut. Modes other than `constant` repeat elements by index.
fn pad(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let shape = im.builder.shape(x);
    let pads = call.ints_of(im, "pads", 1)?.ok_or_else(|| Error::malformed("it has no pads"))?;
    let axes = match call.value(3) {
        Some(value) => im.ints(value, "axes")?.iter().map(|&a| im.axis(a, x)).collect::<Result<Vec<_>>>()?,
        None => (0..shape.len()).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(Error::malformed(format!("pads {pads:?} for {} axes", axes.len())));
    }
    let (mut low, mut high) = (vec![0i64; shape.len()], vec![0i64; shape.len()]);
    for (i, &axis) in axes.iter().enumerate() {
        (low[axis], high[axis]) = (pads[i], pads[axes.len() + i]);
    }
    let (starts, sizes): (Vec<usize>, Vec<usize>) = (0..shape.len())
        .map(|d| {
            let start = cut(low[d]).min(shape[d]);
            (start, shape[d].saturating_sub(start).saturating_sub(cut(high[d])))
        })
        .unzip();
    let kept = if sizes == shape { x } else { im.builder.add(Prim::Slice { starts, steps: vec![1; shape.len()], sizes }, &[x])? };
    let (low, high): (Vec<usize>, Vec<usize>) = low.iter().zip(&high).map(|(&l, &h)| (l.max(0) as usize, h.max(0) as usize)).unzip();
    let mode = call.string("mode");
    if matches!(mode, "" | "constant") {
        let dtype = im.builder.ty(kept).dtype;
        let value = match call.optional(im, 2)? {
            Some(value) => im.builder.reshape(value, &[])?,
            None => im.builder.scalar(dtype, call.float("value", 0.0) as f64)?,
        };
        return one(im.builder.add(Prim::Pad { low, high }, &[kept, value])?);
    }
    let mut result = kept;
    for (axis, (&low, &high)) in low.iter().zip(&high).enumerate().filter(|(_, (l, h))| (**l, **h) != (0, 0)) {
        let indices = repeated(mode, im.builder.shape(kept)[axis], low, high)?;
        let indices = im.int_vector(indices)?;
        result = im.builder.add(Prim::Gather { axis }, &[result, indices])?;
    }
    one(result)
}

/// Elements a negative pad cuts off.
fn cut(pad: i64) -> usize {
    usize::try_from(pad.saturating_neg()).unwrap_or(0)
}

/// Which of `len` elements stands in each place of the padded dimension.
fn repeated(mode: &str, len: usize, low: usize, high: usize) -> Result<Vec<i32>> {
    let total = len.checked_add(low).and_then(|t| t.checked_add(high)).filter(|&t| len > 0 && t <= MAX_REPEATED);
    let total = total.ok_or_else(|| {
        Error::limit(format!(
            "mode `{mode}` cannot pad a dimension of size {len} by {low} and {high}: it takes sizes from 1, padded up to {MAX_REPEATED}"
        ))
    })?;
    let (len, low) = (len as i64, low as i64);
    let period = (2 * (len - 1)).max(1);
    let index = |place: i64| match mode {
        "edge" => Ok(place.clamp(0, len - 1)),
        "wrap" => Ok(place.rem_euclid(len)),
        "reflect" => Ok(place.rem_euclid(period).min(period - place.rem_euclid(period)).min(len - 1)),
        other => Err(Error::malformed(format!("mode `{other}`; allowed are constant, edge, reflect and wrap"))),
    };
    (0..total as i64).map(|i| index(i - low).map(|v| v as i32)).collect()
}

/// A negative index counts from the end.
fn gather(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (data, indices) = (call.node(im, 0)?, call.node(im, 1)?);
    let axis = im.axis(call.int("axis", 0), data)?;
    let size = im.builder.shape(data)[axis] as f64;
    let indices: NodeId = im.builder.cast(indices, DType::I32)?;
    let known = im.known(indices)?.map(|t| (t.shape.clone(), t.data.clone()));
    let indices = match known {
        Some((shape, values)) => {
            if let Some(bad) = values.iter().find(|&&v| v < -size || v >= size) {
                return Err(Error::malformed(format!("index {bad} into a dimension of size {size}")));
            }
            let values: Vec<f64> = values.iter().map(|&v| if v < 0.0 { v + size } else { v }).collect();
            im.builder.constant(HostTensor::from_f64(DType::I32, shape, &values)?)?
        }
        None => {
            let from_end = im.builder.binary_scalar(BinaryOp::Add, indices, size)?;
            let negative = im.builder.binary_scalar(BinaryOp::Lt, indices, 0.0)?;
            im.builder.select(negative, from_end, indices)?
        }
    };
    one(im.builder.add(Prim::Gather { axis }, &[data, indices])?)
}
