//! Sizes that differ from call to call: when two recorded runs are one program at two sizes, and what it records at others.

use std::sync::Arc;

use crate::capture::difference::same_but_for_sizes;
use crate::capture::owner::Part;
use crate::capture::trace::{Kind, Recorded, TraceNode};
use crate::graph::{Constant, Op, Prim, TensorType, attributes};
use crate::ops;
use crate::tensor::HostTensor;

/// Elements of a constant that is made up for a size that is tried out.
const MAX_PROBE_ELEMS: usize = 1 << 20;

/// Whether `recorded` is what `part` recorded at other sizes. A size that is 0 or 1 in one of the two is a program of its own.
pub(super) fn only_sizes(recorded: &Recorded<'_>, part: &Part) -> bool {
    let same_type = |a: &TensorType, b: &TensorType| a.dtype == b.dtype && a.rank() == b.rank();
    let alike = |(known, own): (&TraceNode, &TraceNode)| {
        let input_sizes = || known.ty.shape.iter().zip(&own.ty.shape).all(|(a, b)| a == b || (*a > 1 && *b > 1));
        same_type(&known.ty, &own.ty)
            && known.inputs == own.inputs
            && match (&known.kind, &own.kind) {
                (Kind::Input(a), Kind::Input(b)) => a == b && input_sizes(),
                (Kind::Constant(_) | Kind::Varying, Kind::Constant(_)) => true,
                (Kind::Op(a), Kind::Op(b)) => same_but_for_sizes(a, b),
                _ => false,
            }
    };
    part.nodes.iter().zip(recorded.nodes).any(|(known, own)| matches!(own.kind, Kind::Input(_)) && known.ty != own.ty)
        && part.outputs == recorded.outputs
        && part.donated == recorded.donated
        && part.nodes.len() == recorded.nodes.len()
        && part.nodes.iter().zip(recorded.nodes).all(alike)
}

/// What a program that recorded `first` and `second` would record at further sizes of the second's kind: those that are as far from it, and
/// four times as far, as it is from the first, on the side where sizes grow.
pub(super) fn further(first: &[TraceNode], second: &[TraceNode]) -> Vec<Vec<TraceNode>> {
    let mut differences = first.iter().zip(second).flat_map(|(a, b)| a.ty.shape.iter().zip(&b.ty.shape));
    let grows = differences.clone().find(|(a, b)| a != b).is_none_or(|(a, b)| b > a);
    let by_four = differences.all(|(a, b)| a.abs_diff(*b).is_multiple_of(4));
    let steps: &[i64] = match (by_four, grows) {
        (true, true) => &[1, 4],
        (true, false) => &[-1, -4],
        (false, true) => &[4],
        (false, false) => &[-4],
    };
    steps.iter().filter_map(|&step| moved(first, second, step)).collect()
}

/// The nodes of `second`, each number `step` times as far from it as it is from `first`. None where that is no program.
fn moved(first: &[TraceNode], second: &[TraceNode], step: i64) -> Option<Vec<TraceNode>> {
    let mut nodes: Vec<TraceNode> = Vec::with_capacity(second.len());
    for (a, b) in first.iter().zip(second) {
        let (kind, ty) = match (&a.kind, &b.kind) {
            (_, Kind::Op(op)) => {
                let Kind::Op(from) = &a.kind else { return None };
                let types: Vec<&TensorType> = b.inputs.iter().map(|&i| &*nodes[i as usize].ty).collect();
                let op = match (from, op) {
                    // A user's kernel says itself what it does at other sizes.
                    (Op::Prim(Prim::Custom(from)), Op::Prim(Prim::Custom(call))) if from.op() == call.op() => {
                        Op::Prim(Prim::Custom(Arc::new(call.op().call(&types).ok()?)))
                    }
                    _ => moved_op(from, op, step)?,
                };
                let ty = ops::infer(&op, &types).ok()?;
                (Kind::Op(op), Arc::new(ty))
            }
            (_, Kind::Constant(constant)) if a.ty == b.ty => (Kind::Constant(constant.clone()), b.ty.clone()),
            (_, Kind::Constant(constant)) => {
                let ty = moved_type(&a.ty, &b.ty, step)?;
                let count = crate::tensor::num_elems(&ty.shape).ok().filter(|count| *count <= MAX_PROBE_ELEMS)?;
                let values: Vec<f64> = match constant.splat() {
                    Some(value) => vec![value; count],
                    None => (0..count).map(|i| (i % 2) as f64).collect(),
                };
                let tensor = HostTensor::from_f64(ty.dtype, ty.shape.clone(), &values).ok()?;
                (Kind::Constant(Constant::new(tensor)), Arc::new(ty))
            }
            (_, kind) => (kind.clone(), Arc::new(moved_type(&a.ty, &b.ty, step)?)),
        };
        nodes.push(TraceNode { kind, inputs: b.inputs.clone(), ty });
    }
    Some(nodes)
}

fn moved_type(a: &TensorType, b: &TensorType, step: i64) -> Option<TensorType> {
    Some(TensorType::new(b.dtype, moved_sizes(&a.shape, &b.shape, step)?))
}

fn moved_sizes(a: &[usize], b: &[usize], step: i64) -> Option<Vec<usize>> {
    let size = |(&a, &b): (&usize, &usize)| {
        let (a, b) = (i64::try_from(a).ok()?, i64::try_from(b).ok()?);
        usize::try_from(b.checked_add(b.checked_sub(a)?.checked_mul(step)?)?).ok()
    };
    if a.len() != b.len() { None } else { a.iter().zip(b).map(size).collect() }
}

fn moved_op(a: &Op, b: &Op, step: i64) -> Option<Op> {
    let sizes = |a: &[usize], b: &[usize]| moved_sizes(a, b, step);
    let (Op::Prim(from), Op::Prim(to)) = (a, b) else {
        return (ops::name(a) == ops::name(b) && attributes(a) == attributes(b)).then(|| b.clone());
    };
    Some(Op::Prim(match (from, to) {
        (a, b) if a == b => b.clone(),
        (Prim::Reshape(a), Prim::Reshape(b)) => Prim::Reshape(sizes(a, b)?),
        (Prim::Broadcast { shape: a, dims: d }, Prim::Broadcast { shape: b, dims }) if d == dims => {
            Prim::Broadcast { shape: sizes(a, b)?, dims: dims.clone() }
        }
        (Prim::Slice { starts: a, sizes: n, steps: s }, Prim::Slice { starts: b, sizes: m, steps }) if s == steps => {
            Prim::Slice { starts: sizes(a, b)?, steps: steps.clone(), sizes: sizes(n, m)? }
        }
        (Prim::Pad { low: a, high: c }, Prim::Pad { low: b, high: d }) => Prim::Pad { low: sizes(a, b)?, high: sizes(c, d)? },
        (Prim::Iota { ty: a, axis: x }, Prim::Iota { ty: b, axis }) if x == axis => Prim::Iota { ty: moved_type(a, b, step)?, axis: *axis },
        _ => return None,
    }))
}
