//! Cuts operations that need several passes over memory into several nodes, before fusion sees them.

use super::{rewrite, stage_serial};
use crate::compiler::lower;
use crate::error::Result;
use crate::graph::{Graph, GraphBuilder, NodeId, Op, Prim, ReduceOp};
use crate::ops;
use kernels_gen::heroes::gemm::{GemmProblem, Terms, VecAxis};
use kernels_gen::heroes::tiles;
use kernels_gen::{DType, Target};

/// Columns each part of a split reduction has.
const PART: usize = 4096;

/// A reduction with fewer rows than this leaves most of an adapter idle.
const FEW_ROWS: usize = 256;

/// Cuts reductions of few long rows, products of few results and a long k, scans, sorts and sums of segments, takes reductions of packed
/// elements through 32 bits, cuts concatenations of more values than a kernel may bind, and attention that one kernel cannot hold into
/// scores, softmax and result.
pub fn stage(graph: &Graph, target: &Target) -> Result<Graph> {
    let staged = rewrite(graph, |builder, _, node, inputs| match &node.op {
        Op::Prim(Prim::Reduce { op, axes }) => reduce(builder, *op, axes, inputs[0], target),
        Op::Prim(Prim::Dot) => product(builder, inputs[0], inputs[1], target),
        Op::Prim(Prim::Concat { axis }) => concat(builder, *axis, inputs, target),
        Op::Prim(Prim::Scan { op, axis }) => stage_serial::scan(builder, *op, *axis, inputs[0], target),
        Op::Prim(Prim::Argsort { run, descending }) => stage_serial::argsort(builder, *run, *descending, inputs[0]),
        Op::Prim(Prim::Segment { op, block: 0 }) => stage_serial::segment(builder, *op, inputs, target),
        Op::Prim(Prim::Attention { scale, causal }) if !lower::holds_attention(graph, node, target) => {
            ops::attention_in_parts(builder, inputs, *scale, *causal)
        }
        _ => builder.add(node.op.clone(), inputs),
    })?;
    super::eliminate_dead_code(&staged)
}

/// A matrix product; where its results are too few to keep the target's cores busy, k is cut into parts, whose products are added up.
fn product(builder: &mut GraphBuilder, a: NodeId, b: NodeId, target: &Target) -> Result<NodeId> {
    let (a_shape, b_shape) = (builder.ty(a).shape.clone(), builder.ty(b).shape.clone());
    let (&[batch, m, k], &[_, _, n]) = (a_shape.as_slice(), b_shape.as_slice()) else { return builder.add(Prim::Dot, &[a, b]) };
    let parts = match [batch, m, n, k].map(u32::try_from) {
        [Ok(batch), Ok(m), Ok(n), Ok(k)] => {
            // How operands lie is decided later; it hardly changes how many workgroups there are.
            let problem = GemmProblem {
                terms: Terms::F32,
                batch,
                m,
                n,
                k,
                a_vec: VecAxis::K,
                b_vec: VecAxis::Free,
                store_vec: true,
                runs: [false; 2],
            };
            tiles::parts_of_k(target, &problem) as usize
        }
        _ => 1,
    };
    if parts == 1 {
        return builder.add(Prim::Dot, &[a, b]);
    }
    let cut = builder.reshape(a, &[batch, m, parts, k / parts])?;
    let moved = builder.transpose(cut, &[0, 2, 1, 3])?;
    let a = builder.reshape(moved, &[batch * parts, m, k / parts])?;
    let b = builder.reshape(b, &[batch * parts, k / parts, n])?;
    let partial = builder.add(Prim::Dot, &[a, b])?;
    let partial = builder.reshape(partial, &[batch, parts, m, n])?;
    builder.add(Prim::Reduce { op: ReduceOp::Sum, axes: vec![1] }, &[partial])
}

/// A concatenation whose kernel binds the operands and the result; of more operands, neighbours are concatenated first.
fn concat(builder: &mut GraphBuilder, axis: usize, inputs: &[NodeId], target: &Target) -> Result<NodeId> {
    let most = (target.max_storage_buffers as usize).saturating_sub(1).max(2);
    if inputs.len() <= most {
        return builder.add(Prim::Concat { axis }, inputs);
    }
    let parts = inputs.chunks(most).map(|part| match part {
        [one] => Ok(*one),
        part => builder.add(Prim::Concat { axis }, part),
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    concat(builder, axis, &parts, target)
}

pub(super) fn reduce(builder: &mut GraphBuilder, op: ReduceOp, axes: &[usize], x: NodeId, target: &Target) -> Result<NodeId> {
    let ty = builder.ty(x).clone();
    let cols: usize = axes.iter().map(|&a| ty.shape[a]).product();
    if cols == 0 {
        let kept: Vec<usize> = (0..ty.rank()).filter(|d| !axes.contains(d)).map(|d| ty.shape[d]).collect();
        let identity = builder.scalar(ty.dtype, ops::reduce_identity(op, ty.dtype))?;
        return builder.broadcast_to(identity, &kept);
    }
    let wide = match ty.dtype {
        DType::I8 => DType::I32,
        DType::U8 | DType::Bool => DType::U32,
        DType::F16 => DType::F32,
        DType::F32 | DType::I32 | DType::U32 => ty.dtype,
    };
    if wide != ty.dtype {
        let widened = builder.cast(x, wide)?;
        let reduced = reduce(builder, op, axes, widened, target)?;
        return builder.cast(reduced, ty.dtype);
    }
    let rows = ty.num_elems() / cols;
    // A workgroup of 256 takes a row in steps of 256 columns; rows too long even for that are cut whatever their number.
    let too_long = target.max_loop_iterations.is_some_and(|bound| cols as u64 / 256 > bound / 4);
    if cols <= 4 * PART || (rows >= FEW_ROWS && !too_long) {
        return builder.add(Prim::Reduce { op, axes: axes.to_vec() }, &[x]);
    }
    // Rows to the front, columns to the back, the columns as parts of equal length.
    let kept: Vec<usize> = (0..ty.rank()).filter(|d| !axes.contains(d)).collect();
    let shape: Vec<usize> = kept.iter().map(|&d| ty.shape[d]).collect();
    let perm: Vec<usize> = kept.iter().chain(axes).copied().collect();
    let moved = builder.transpose(x, &perm)?;
    let flat = builder.reshape(moved, &[rows, cols])?;
    let parts = cols.div_ceil(PART);
    let missing = parts * PART - cols;
    let flat = if missing == 0 {
        flat
    } else {
        let identity = builder.scalar(ty.dtype, ops::reduce_identity(op, ty.dtype))?;
        builder.add(Prim::Pad { low: vec![0, 0], high: vec![0, missing] }, &[flat, identity])?
    };
    let cut = builder.reshape(flat, &[rows, parts, PART])?;
    let partial = builder.add(Prim::Reduce { op, axes: vec![2] }, &[cut])?;
    let whole = reduce(builder, op, &[1], partial, target)?;
    builder.reshape(whole, &shape)
}
