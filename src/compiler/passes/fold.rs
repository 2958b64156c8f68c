//! Constant folding and simplifications that change no bit of a result.

use super::rewrite;
use crate::error::Result;
use crate::graph::{BinaryOp, Constant, Graph, GraphBuilder, Node, NodeId, Op, Prim, UnaryOp};
use crate::ops::{self, RefTensor};
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// Constants are not grown past this many elements by folding, unless an operand is as large.
const MAX_FOLDED_ELEMS: usize = 1 << 16;

/// Words and scales are taken apart and spread by folding up to this many elements; past it they stay packed in memory.
const MAX_UNPACKED_ELEMS: usize = 1 << 10;

/// Folds constants and simplifies, until nothing changes.
pub fn fold(graph: &Graph) -> Result<Graph> {
    let mut graph = graph.clone();
    loop {
        let before = graph.nodes().len();
        let mut changed = false;
        let folded = rewrite(&graph, |builder, _, node, inputs| {
            let id = one(builder, node, inputs)?;
            changed |= !(builder.graph().node(id).op == node.op && builder.graph().node(id).inputs == inputs);
            Ok(id)
        })?;
        graph = super::eliminate_dead_code(&folded)?;
        if !changed || graph.nodes().len() > before {
            return Ok(graph);
        }
    }
}

/// The constant a node is, if it is one.
pub(super) fn constant(builder: &GraphBuilder, id: NodeId) -> Option<&Constant> {
    match &builder.graph().node(id).op {
        Op::Prim(Prim::Constant(c)) => Some(c),
        _ => None,
    }
}

/// The one value all elements of a node have, seen through views.
pub(super) fn splat(builder: &GraphBuilder, id: NodeId) -> Option<f64> {
    let node = builder.graph().node(id);
    match &node.op {
        Op::Prim(Prim::Constant(c)) => c.splat(),
        Op::Prim(Prim::Broadcast { .. } | Prim::Reshape(_) | Prim::Transpose(_) | Prim::Slice { .. }) => splat(builder, node.inputs[0]),
        _ => None,
    }
}

fn one(builder: &mut GraphBuilder, node: &Node, inputs: &[NodeId]) -> Result<NodeId> {
    let Op::Prim(prim) = &node.op else {
        return builder.add(node.op.clone(), inputs);
    };
    // A tensor without elements is as good as any other, and a product or an attention over nothing is 0.
    let empty = node.ty.num_elems() == 0 && !inputs.is_empty();
    let nothing = match prim {
        Prim::Dot | Prim::DotI8 => builder.ty(inputs[0]).shape[2] == 0,
        Prim::Attention { .. } => builder.ty(inputs[1]).shape[1] == 0,
        _ => false,
    };
    if empty || nothing {
        let zero = builder.scalar(node.ty.dtype, 0.0)?;
        return builder.broadcast_to(zero, &node.ty.shape);
    }
    if let Some(id) = evaluate(builder, prim, node, inputs)? {
        return Ok(id);
    }
    if let Some(id) = simplify(builder, prim, node, inputs)? {
        return Ok(id);
    }
    builder.add(node.op.clone(), inputs)
}

/// Whether a node has each element of another several times side by side, as words are for their codes and scales for their groups.
fn repeats_each(builder: &GraphBuilder, id: NodeId) -> bool {
    let node = builder.graph().node(id);
    let Op::Prim(Prim::Broadcast { shape, dims }) = &node.op else { return false };
    let own = &builder.ty(node.inputs[0]).shape;
    let is_last_kept = dims.last().is_some_and(|&d| d + 1 == shape.len()) && own.last() == shape.last();
    node.ty.num_elems() > MAX_UNPACKED_ELEMS && !is_last_kept && !own.is_empty()
}

/// A node of constants, computed now.
fn evaluate(builder: &mut GraphBuilder, prim: &Prim, node: &Node, inputs: &[NodeId]) -> Result<Option<NodeId>> {
    let elementwise = matches!(prim, Prim::Unary(_) | Prim::Binary(_) | Prim::Select | Prim::Cast(_));
    if elementwise && let Some(values) = inputs.iter().map(|&i| splat(builder, i)).collect::<Option<Vec<f64>>>() {
        let scalar = |(i, v): (&NodeId, &f64)| RefTensor::new(builder.ty(*i).dtype, [], vec![*v]);
        let operands = inputs.iter().zip(&values).map(scalar).collect::<Result<Vec<_>>>()?;
        let value = ops::reference(&node.op, &operands.iter().collect::<Vec<_>>())?;
        let id = builder.constant(value.to_host()?)?;
        return Ok(Some(builder.broadcast_to(id, &node.ty.shape)?));
    }
    // Constants of f16 and codes stay so in memory.
    let halves = matches!(prim, Prim::Cast(DType::F32)) && builder.ty(inputs[0]).dtype == DType::F16;
    if halves || matches!(prim, Prim::Unary(UnaryOp::Decode(_))) {
        return Ok(None);
    }
    if matches!(prim, Prim::Binary(BinaryOp::Shr) | Prim::Reshape(_)) && repeats_each(builder, inputs[0]) {
        return Ok(None);
    }
    let views = matches!(prim, Prim::Reshape(_) | Prim::Transpose(_) | Prim::Slice { .. } | Prim::Concat { .. } | Prim::Pad { .. });
    if !(elementwise || views || matches!(prim, Prim::Reduce { .. } | Prim::Gather { .. })) || inputs.is_empty() {
        return Ok(None);
    }
    let value = |&id: &NodeId| -> Option<Result<RefTensor>> {
        let of = |id| constant(builder, id).map(|c| RefTensor::from_host(c.tensor()));
        let node = builder.graph().node(id);
        match &node.op {
            Op::Prim(Prim::Broadcast { .. }) => of(node.inputs[0]).map(|x| ops::reference(&node.op, &[&x])),
            _ => of(id).map(Ok),
        }
    };
    let largest = inputs.iter().map(|&i| builder.ty(i).num_elems()).max().unwrap_or(0);
    if node.ty.num_elems() > MAX_FOLDED_ELEMS.max(largest) || largest > 1 << 24 {
        return Ok(None);
    }
    // A broadcast constant that nothing else combines stays a view.
    if inputs.iter().all(|&i| constant(builder, i).is_none()) && largest > MAX_FOLDED_ELEMS {
        return Ok(None);
    }
    let Some(operands) = inputs.iter().map(value).collect::<Option<Result<Vec<_>>>>() else {
        return Ok(None);
    };
    let value: HostTensor = ops::reference(&node.op, &operands?.iter().collect::<Vec<_>>())?.to_host()?;
    Ok(Some(builder.constant(value)?))
}

/// The same value with less work.
fn simplify(builder: &mut GraphBuilder, prim: &Prim, node: &Node, inputs: &[NodeId]) -> Result<Option<NodeId>> {
    let ty = &node.ty;
    let below = |builder: &GraphBuilder, id: NodeId| builder.graph().node(id).clone();
    // A view of a widened value is the widened view, which may be one of a constant.
    if matches!(prim, Prim::Reshape(_) | Prim::Transpose(_) | Prim::Broadcast { .. } | Prim::Slice { .. })
        && builder.graph().widens(inputs[0])
    {
        let narrow = below(builder, inputs[0]).inputs[0];
        let view = builder.add(prim.clone(), &[narrow])?;
        return builder.cast(view, DType::F32).map(Some);
    }
    match prim {
        Prim::Binary(op) => {
            let (a, b) = (inputs[0], inputs[1]);
            let (left, right) = (splat(builder, a), splat(builder, b));
            let int = ty.dtype.is_int();
            Ok(match (op, left, right) {
                (BinaryOp::Add, _, Some(0.0)) if int => Some(a),
                (BinaryOp::Add, Some(0.0), _) if int => Some(b),
                // x - 0 is x for every float; x - -0 is not for -0.
                (BinaryOp::Sub, _, Some(v)) if v == 0.0 && v.is_sign_positive() => Some(a),
                (BinaryOp::Mul | BinaryOp::Div, _, Some(1.0)) => Some(a),
                (BinaryOp::Mul, Some(1.0), _) => Some(b),
                (BinaryOp::Pow, _, Some(1.0)) => Some(a),
                (BinaryOp::Pow, _, Some(2.0)) => Some(builder.binary(BinaryOp::Mul, a, a)?),
                (BinaryOp::Pow, _, Some(3.0)) => {
                    let square = builder.binary(BinaryOp::Mul, a, a)?;
                    Some(builder.binary(BinaryOp::Mul, square, a)?)
                }
                _ => None,
            })
        }
        Prim::Cast(DType::F16) if builder.graph().widens(inputs[0]) => Ok(Some(below(builder, inputs[0]).inputs[0])),
        Prim::Cast(to) => Ok((builder.ty(inputs[0]).dtype == *to).then_some(inputs[0])),
        Prim::Reshape(shape) => {
            if builder.ty(inputs[0]).shape == *shape {
                return Ok(Some(inputs[0]));
            }
            let operand = below(builder, inputs[0]);
            match operand.op {
                Op::Prim(Prim::Reshape(_)) => builder.reshape(operand.inputs[0], shape).map(Some),
                _ => Ok(None),
            }
        }
        Prim::Transpose(perm) => {
            if perm.iter().enumerate().all(|(i, &p)| i == p) {
                return Ok(Some(inputs[0]));
            }
            let operand = below(builder, inputs[0]);
            match &operand.op {
                Op::Prim(Prim::Transpose(inner)) => {
                    let composed: Vec<usize> = perm.iter().map(|&p| inner[p]).collect();
                    builder.transpose(operand.inputs[0], &composed).map(Some)
                }
                _ => Ok(None),
            }
        }
        Prim::Broadcast { shape, dims } => {
            let operand = below(builder, inputs[0]);
            if operand.ty.shape == *shape {
                return Ok(Some(inputs[0]));
            }
            match &operand.op {
                Op::Prim(Prim::Broadcast { dims: inner, .. }) => {
                    let dims = inner.iter().map(|&d| dims[d]).collect();
                    builder.add(Prim::Broadcast { shape: shape.clone(), dims }, &operand.inputs).map(Some)
                }
                _ => Ok(None),
            }
        }
        Prim::Slice { starts, steps, sizes } => {
            let whole = *sizes == builder.ty(inputs[0]).shape && steps.iter().all(|&s| s == 1) && starts.iter().all(|&s| s == 0);
            Ok(whole.then_some(inputs[0]))
        }
        Prim::Pad { low, high } => {
            let nothing = low.iter().chain(high).all(|&p| p == 0);
            Ok(nothing.then_some(inputs[0]))
        }
        Prim::Select => Ok(splat(builder, inputs[0]).map(|c| if c != 0.0 { inputs[1] } else { inputs[2] })),
        Prim::Conv { strides, pads_low, pads_high, dilations, groups } => {
            // Zeros around the image are the convolution's own padding.
            let operand = below(builder, inputs[0]);
            let Op::Prim(Prim::Pad { low, high }) = &operand.op else { return Ok(None) };
            let zeros = splat(builder, operand.inputs[1]) == Some(0.0) && low[..2] == [0, 0] && high[..2] == [0, 0];
            if !zeros {
                return Ok(None);
            }
            let op = Prim::Conv {
                strides: *strides,
                pads_low: [pads_low[0] + low[2], pads_low[1] + low[3]],
                pads_high: [pads_high[0] + high[2], pads_high[1] + high[3]],
                dilations: *dilations,
                groups: *groups,
            };
            builder.add(op, &[operand.inputs[0], inputs[1]]).map(Some)
        }
        Prim::Reduce { axes, .. } => {
            // Axes of size 1 vanish without work.
            let shape = &builder.ty(inputs[0]).shape;
            if axes.iter().any(|&a| shape[a] != 1) { Ok(None) } else { builder.reshape(inputs[0], &ty.shape).map(Some) }
        }
        Prim::Input { .. }
        | Prim::Constant(_)
        | Prim::Iota { .. }
        | Prim::Unary(_)
        | Prim::Window { .. }
        | Prim::Concat { .. }
        | Prim::Dot
        | Prim::DotI8
        | Prim::Scan { .. }
        | Prim::Argsort { .. }
        | Prim::MergeRuns { .. }
        | Prim::SearchSorted
        | Prim::Segment { .. }
        | Prim::Attention { .. }
        | Prim::Custom(_)
        | Prim::Gather { .. } => Ok(None),
    }
}
