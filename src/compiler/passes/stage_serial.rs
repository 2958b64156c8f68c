//! Cuts scans, sorts and sums of segments so that no invocation loops for long.

use crate::error::Result;
use crate::graph::{GraphBuilder, NodeId, Prim, ReduceOp};
use crate::ops;
use crate::ops::scan::shifted;
use kernels_gen::{DType, Target};

/// Elements one invocation scans where rows are cut.
const PART: usize = 128;

/// Rows of a scan from which each is one invocation's work.
const MANY_ROWS: usize = 1024;

/// Elements of a run that are sorted by counting.
const RUN: usize = 64;

/// Values up to which the segments of a sum are gone through one by one.
const SEGMENT: usize = 1 << 12;

/// A type in which results are stored one by one.
fn wide(dtype: DType) -> DType {
    match dtype {
        DType::I8 => DType::I32,
        DType::U8 | DType::Bool => DType::U32,
        DType::F16 => DType::F32,
        DType::F32 | DType::I32 | DType::U32 => dtype,
    }
}

/// The scan of `x`: long rows as parts, each with the combination of those before it added.
pub(super) fn scan(builder: &mut GraphBuilder, op: ReduceOp, axis: usize, x: NodeId, target: &Target) -> Result<NodeId> {
    let ty = builder.ty(x).clone();
    if wide(ty.dtype) != ty.dtype {
        let widened = builder.cast(x, wide(ty.dtype))?;
        let result = scan(builder, op, axis, widened, target)?;
        return builder.cast(result, ty.dtype);
    }
    let (rows, n) = (ty.num_elems() / ty.shape[axis].max(1), ty.shape[axis]);
    let most = target.max_loop_iterations.map_or(1 << 15, |bound| (bound / 4) as usize).min(1 << 14);
    if n <= PART || (rows >= MANY_ROWS && n <= most) {
        return builder.add(Prim::Scan { op, axis }, &[x]);
    }
    let perm: Vec<usize> = (0..ty.rank()).filter(|&d| d != axis).chain([axis]).collect();
    let mut back = vec![0; perm.len()];
    perm.iter().enumerate().for_each(|(i, &p)| back[p] = i);
    let moved = builder.transpose(x, &perm)?;
    let shape = builder.shape(moved);
    let flat = builder.reshape(moved, &[rows, n])?;
    let identity = ops::reduce_identity(op, ty.dtype);
    let parts = n.div_ceil(PART);
    let padded = ops::shape::pad_with(builder, flat, &[0, 0], &[0, parts * PART - n], identity)?;
    let cut = builder.reshape(padded, &[rows, parts, PART])?;
    let totals = builder.reduce(op, cut, &[2], false)?;
    let before = shifted(builder, totals, 1, identity)?;
    let before = scan(builder, op, 1, before, target)?;
    let before = builder.reshape(before, &[rows, parts, 1])?;
    let own = builder.add(Prim::Scan { op, axis: 2 }, &[cut])?;
    let all = builder.binary(op.combine(ty.dtype.scalar()), before, own)?;
    let all = builder.reshape(all, &[rows, parts * PART])?;
    let all = if parts * PART == n {
        all
    } else {
        builder.add(Prim::Slice { starts: vec![0, 0], steps: vec![1, 1], sizes: vec![rows, n] }, &[all])?
    };
    let all = builder.reshape(all, &shape)?;
    builder.transpose(all, &back)
}

/// Runs sorted by counting, then merged in pairs.
pub(super) fn argsort(builder: &mut GraphBuilder, run: usize, descending: bool, keys: NodeId) -> Result<NodeId> {
    let n = builder.shape(keys)[1];
    let whole = run.min(n);
    if whole <= RUN {
        return builder.add(Prim::Argsort { run, descending }, &[keys]);
    }
    if whole < n {
        // Runs of the caller's own end where pairs of others would not: each run is a row of its own, the rest another.
        return by_runs(builder, run, descending, keys);
    }
    let mut order = builder.add(Prim::Argsort { run: RUN, descending }, &[keys])?;
    let mut sorted = RUN;
    while sorted < n {
        order = builder.add(Prim::MergeRuns { run: sorted, descending }, &[keys, order])?;
        sorted *= 2;
    }
    Ok(order)
}

fn by_runs(builder: &mut GraphBuilder, run: usize, descending: bool, keys: NodeId) -> Result<NodeId> {
    let (rows, n) = (builder.shape(keys)[0], builder.shape(keys)[1]);
    let mut parts = Vec::new();
    for start in (0..n).step_by(run) {
        let size = run.min(n - start);
        let part = Prim::Slice { starts: vec![0, start], steps: vec![1, 1], sizes: vec![rows, size] };
        let part = builder.add(part, &[keys])?;
        let order = argsort(builder, size, descending, part)?;
        parts.push(builder.binary_scalar(crate::graph::BinaryOp::Add, order, start as f64)?);
    }
    builder.add(Prim::Concat { axis: 1 }, &parts)
}

/// Segments of many values are gone through by blocks, whose combinations are made first.
pub(super) fn segment(builder: &mut GraphBuilder, op: ReduceOp, inputs: &[NodeId], target: &Target) -> Result<NodeId> {
    let (values, starts) = (inputs[0], inputs[1]);
    let ty = builder.ty(values).clone();
    if wide(ty.dtype) != ty.dtype {
        let widened = builder.cast(values, wide(ty.dtype))?;
        let result = segment(builder, op, &[widened, starts], target)?;
        return builder.cast(result, ty.dtype);
    }
    let (m, inner) = (ty.shape[0], ty.shape[1]);
    if m <= SEGMENT {
        return builder.add(Prim::Segment { op, block: 0 }, &[values, starts]);
    }
    // About as many blocks as values in one.
    let block = (m as f64).sqrt().ceil() as usize;
    let blocks = m.div_ceil(block);
    let padded = ops::shape::pad_with(builder, values, &[0, 0], &[blocks * block - m, 0], ops::reduce_identity(op, ty.dtype))?;
    let cut = builder.reshape(padded, &[blocks, block, inner])?;
    let partials = super::stage::reduce(builder, op, &[1], cut, target)?;
    builder.add(Prim::Segment { op, block }, &[values, starts, partials])
}
