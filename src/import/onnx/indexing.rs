//! Operators on places of elements.

use super::node::{Call, Handler, Importer, Val, one};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, NodeId, Op, Prim, ReduceOp, TensorType};
use crate::ops::indexing::{ArgReduce, GatherElements, GatherNd, OneHot, Trilu};
use crate::ops::scan::Cumulative;
use crate::ops::scatter::{ScatterElements, ScatterNd, Update};
use crate::ops::shape::resolve_axis;
use crate::ops::sort::{Sort, Sorted};
use kernels_gen::DType;

pub(super) fn handler(op: &str) -> Option<Handler> {
    Some(match op {
        "ArgMax" | "ArgMin" => arg_reduce,
        "OneHot" => one_hot,
        "GatherElements" => gather_elements,
        "GatherND" => gather_nd,
        "Trilu" => trilu,
        "EyeLike" => eye_like,
        "ReverseSequence" => reverse_sequence,
        "Compress" => compress,
        "TopK" => top_k,
        "CumSum" => cumsum,
        "ScatterElements" | "Scatter" => scatter_elements,
        "ScatterND" => scatter_nd,
        "MaxUnpool" => max_unpool,
        _ => return None,
    })
}

fn arg_reduce(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let axis = im.axis(call.int("axis", 0), x)?;
    let (keep, last) = (call.flag("keepdims", true), call.flag("select_last_index", false));
    one(im.builder.add(Op::composite(ArgReduce { largest: call.op() == "ArgMax", axis, keep, last }), &[x])?)
}

fn one_hot(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (indices, depth, values) = (call.node(im, 0)?, call.node(im, 1)?, call.node(im, 2)?);
    let depth = im.number(depth, "depth")?;
    let axis = resolve_axis(call.int("axis", -1), im.rank(indices) + 1)?;
    let indices = im.builder.cast(indices, DType::I32)?;
    if depth < 0.0 {
        return Err(Error::malformed(format!("depth {depth} must not be negative")));
    }
    one(im.builder.add(Op::composite(OneHot { depth: depth as usize, axis }), &[indices, values])?)
}

fn gather_elements(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (data, indices) = (call.node(im, 0)?, call.node(im, 1)?);
    let axis = im.axis(call.int("axis", 0), data)?;
    one(im.builder.add(Op::composite(GatherElements { axis }), &[data, indices])?)
}

fn gather_nd(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (data, indices) = (call.node(im, 0)?, call.node(im, 1)?);
    let batch = usize::try_from(call.int("batch_dims", 0)).map_err(|_| Error::malformed("batch_dims is negative"))?;
    one(im.builder.add(Op::composite(GatherNd { batch }), &[data, indices])?)
}

/// Values and places of the first elements in order.
fn top_k(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let axis = im.axis(call.int("axis", -1), x)?;
    let k = match (call.value(1), call.optional_int("k")) {
        (Some(value), _) => im.ints(value, "k")?.first().copied(),
        (None, k) => k,
    };
    let k = k.and_then(|k| usize::try_from(k).ok()).ok_or_else(|| Error::malformed("it takes a k that is not negative"))?;
    let sort = |result| Op::composite(Sort { axis, descending: call.flag("largest", true), first: Some(k), result });
    let (values, places) = (im.builder.add(sort(Sorted::Values), &[x])?, im.builder.add(sort(Sorted::Places), &[x])?);
    Ok([values, places].map(Val::Node).to_vec())
}

fn cumsum(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, axis) = (call.node(im, 0)?, call.node(im, 1)?);
    let axis = im.number(axis, "axis")? as i64;
    let axis = im.axis(axis, x)?;
    let (exclusive, reverse) = (call.flag("exclusive", false), call.flag("reverse", false));
    one(im.builder.add(Op::composite(Cumulative { op: ReduceOp::Sum, axis, exclusive, reverse }), &[x])?)
}

fn update(call: &Call) -> Result<Update> {
    Ok(match call.string("reduction") {
        "" | "none" => Update::Replace,
        "add" => Update::Combine(ReduceOp::Sum),
        "mul" => Update::Combine(ReduceOp::Product),
        "max" => Update::Combine(ReduceOp::Max),
        "min" => Update::Combine(ReduceOp::Min),
        other => return Err(Error::malformed(format!("reduction `{other}`; allowed are none, add, mul, max and min"))),
    })
}

fn scatter_elements(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let operands = call.nodes(im)?;
    let axis = im.axis(call.int("axis", 0), call.node(im, 0)?)?;
    one(im.builder.add(Op::composite(ScatterElements { axis, update: update(call)? }), &operands)?)
}

fn scatter_nd(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let operands = call.nodes(im)?;
    one(im.builder.add(Op::composite(ScatterNd { update: update(call)? }), &operands)?)
}

/// Elements put back at the places a MaxPool took them from, zeros elsewhere. Places count in the plane the pool would have come from without
/// `output_shape`, which adds rows and columns after it.
fn max_unpool(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, places) = (call.node(im, 0)?, call.node(im, 1)?);
    let shape = im.builder.shape(x);
    let spatial = shape.len().saturating_sub(2);
    let sizes = call.sizes("kernel_shape")?.filter(|s| s.len() == spatial && spatial > 0);
    let sizes = sizes.ok_or_else(|| Error::malformed("it takes [n, c, ...] and a kernel_shape"))?;
    let strides = call.sizes("strides")?.unwrap_or_else(|| vec![1; spatial]);
    let pads = call.sizes("pads")?.unwrap_or_else(|| vec![0; 2 * spatial]);
    if strides.len() != spatial || pads.len() != 2 * spatial {
        return Err(Error::malformed(format!("strides {strides:?} and pads {pads:?} for {spatial} spatial dimensions")));
    }
    let mut plane = shape[..2].to_vec();
    for d in 0..spatial {
        let reach = shape[d + 2].saturating_sub(1).checked_mul(strides[d]).and_then(|r| r.checked_add(sizes[d]));
        let size = reach.and_then(|r| r.checked_sub(pads[d])).and_then(|r| r.checked_sub(pads[spatial + d]));
        plane.push(size.ok_or_else(|| Error::malformed(format!("pads {pads:?} are wider than the plane")))?);
    }
    let count = crate::tensor::num_elems(&plane)?;
    let zero = im.builder.scalar(im.builder.ty(x).dtype, 0.0)?;
    let empty = im.builder.broadcast_to(zero, &[count])?;
    let number = shape.iter().product();
    let (flat, places) = (im.builder.reshape(x, &[number])?, im.builder.reshape(places, &[number])?);
    let put = Op::composite(ScatterElements { axis: 0, update: Update::Replace });
    let full = im.builder.add(put, &[empty, places, flat])?;
    let full = im.builder.reshape(full, &plane)?;
    let Some(wanted) = call.value(2) else { return one(full) };
    let wanted = im.ints(wanted, "output_shape")?;
    let more = |(size, wanted): (&usize, &i64)| usize::try_from(*wanted).ok()?.checked_sub(*size);
    let high = plane.iter().zip(&wanted).map(more).collect::<Option<Vec<_>>>().filter(|h| h.len() == shape.len());
    let high = high.ok_or_else(|| Error::malformed(format!("output_shape {wanted:?} does not hold {plane:?}")))?;
    one(crate::ops::shape::pad_with(&mut im.builder, full, &vec![0; shape.len()], &high, 0.0)?)
}

fn trilu(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let k = match call.value(1) {
        Some(value) => im.ints(value, "k")?.first().copied().ok_or_else(|| Error::malformed("k is empty"))?,
        None => 0,
    };
    // Past 32 bits every diagonal lies on one side.
    let k = k.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
    one(im.builder.add(Op::composite(Trilu { upper: call.flag("upper", true), k }), &[x])?)
}

fn eye_like(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let x = call.node(im, 0)?;
    let shape = im.builder.shape(x);
    if shape.len() != 2 {
        return Err(Error::malformed(format!("it takes a matrix, not {}", im.builder.ty(x))));
    }
    let dtype = match call.optional_int("dtype") {
        Some(ty) => super::tensor::dtype_of(ty)?,
        None => im.builder.ty(x).dtype,
    };
    let iota = |im: &mut Importer, axis| im.builder.add(Prim::Iota { ty: TensorType::new(DType::I32, shape.clone()), axis }, &[]);
    let (rows, columns) = (iota(im, 0)?, iota(im, 1)?);
    let diagonal = im.builder.binary(BinaryOp::Sub, columns, rows)?;
    let hit = im.builder.binary_scalar(BinaryOp::Eq, diagonal, call.int("k", 0) as f64)?;
    one(im.builder.cast(hit, dtype)?)
}

/// Element `t` of a sequence of length `n` becomes element `n - 1 - t`; those past the length stay.
fn reverse_sequence(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (x, lengths) = (call.node(im, 0)?, call.node(im, 1)?);
    let (batch, time) = (im.axis(call.int("batch_axis", 1), x)?, im.axis(call.int("time_axis", 0), x)?);
    let shape = im.builder.shape(x);
    let mut column = vec![1; shape.len()];
    column[batch] = shape[batch];
    let lengths = im.builder.cast(lengths, DType::I32)?;
    let lengths = im.builder.reshape(lengths, &column)?;
    let steps: NodeId = im.builder.add(Prim::Iota { ty: TensorType::new(DType::I32, shape), axis: time }, &[])?;
    let inside = im.builder.binary(BinaryOp::Lt, steps, lengths)?;
    let last = im.builder.binary_scalar(BinaryOp::Sub, lengths, 1.0)?;
    let turned = im.builder.binary(BinaryOp::Sub, last, steps)?;
    let places = im.builder.select(inside, turned, steps)?;
    one(im.builder.add(Op::composite(GatherElements { axis: time }), &[x, places])?)
}

/// The slices whose condition holds; how many they are must be known at import.
fn compress(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (mut x, condition) = (call.node(im, 0)?, call.node(im, 1)?);
    let axis = match call.optional_int("axis") {
        Some(axis) => im.axis(axis, x)?,
        None => {
            let count = im.builder.ty(x).num_elems();
            x = im.builder.reshape(x, &[count])?;
            0
        }
    };
    let known = im.known(condition)?.map(|t| t.data.clone());
    let known =
        known.ok_or_else(|| Error::unsupported("the condition must be known at import; fix the values of the inputs it depends on"))?;
    let places: Vec<i32> = known.iter().enumerate().filter(|(_, v)| **v != 0.0).map(|(i, _)| i as i32).collect();
    let size = im.builder.shape(x)[axis];
    if places.last().is_some_and(|&last| last as usize >= size) {
        return Err(Error::malformed(format!("the condition takes more than the {size} slices")));
    }
    let places = im.int_vector(places)?;
    one(im.builder.add(Prim::Gather { axis }, &[x, places])?)
}
