//! Operators on places of elements.

use super::node::{Call, Handler, Importer, Val, one};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, NodeId, Op, Prim, TensorType};
use crate::ops::indexing::{ArgReduce, GatherElements, GatherNd, OneHot, Trilu};
use crate::ops::shape::resolve_axis;
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
