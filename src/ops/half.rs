//! Operations on f16: stored in 16 bits, computed in f32.
//!
//! An operation of a user's program with operands of f16 widens them (which is exact), computes in f32, sums and intermediate values of
//! composites included, and rounds its result once, to nearest, ties to even; past 65,504 that is infinity, and NaN stays NaN. That holds
//! in every mode and however operations are fused, so that fusion changes no result by more than it does in f32. What only moves elements
//! keeps them as they are.
//!
//! On request ([`Halves::Native`]), elementwise arithmetic that the program names is left in f16, for targets that have it. Comparisons, minima,
//! maxima, sums, products and composites are still computed in f32.

use super::name;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, TensorType, UnaryOp};
use kernels_gen::DType;
use std::sync::Arc;

/// What elementwise arithmetic on f16 is computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Halves {
    /// f32, with one rounding an operation.
    #[default]
    Widened,
    /// f16, as the driver rounds: for operations that every target with f16 has.
    Native,
}

/// Adds `op`, whose result has type `ty`, to a graph: as it is where no operand is f16 or elements only move, else between conversions.
/// A composite is replaced by its decomposition.
pub(crate) fn expand(builder: &mut GraphBuilder, op: &Op, inputs: &[NodeId], ty: &TensorType, arithmetic: Halves) -> Result<NodeId> {
    let halves = inputs.iter().any(|&id| builder.ty(id).dtype == DType::F16);
    let widened = match op {
        _ if !halves => false,
        Op::Prim(prim) if arithmetic == Halves::Native && is_native(prim) => false,
        Op::Prim(prim) => !moves(prim),
        Op::Composite(composite) => !only_moves(builder, composite, inputs),
    };
    let mut operands = inputs.to_vec();
    if widened {
        for operand in &mut operands {
            if builder.ty(*operand).dtype == DType::F16 {
                *operand = builder.cast(*operand, DType::F32)?;
            }
        }
    }
    let id = match op {
        Op::Composite(composite) => composite.decompose(builder, &operands)?,
        Op::Prim(_) => builder.add(op.clone(), &operands)?,
    };
    let id = if widened { builder.cast(id, ty.dtype)? } else { id };
    if builder.ty(id) != ty {
        return Err(Error::internal(format!("{} infers {ty}, its decomposition gives {}", name(op), builder.ty(id))));
    }
    Ok(id)
}

/// Whether WGSL has an elementwise operation in f16 whose result needs no promise on NaN.
fn is_native(prim: &Prim) -> bool {
    use UnaryOp::{Abs, Ceil, Cos, Exp, Floor, Log, Neg, Sin, Sqrt};
    matches!(
        prim,
        Prim::Unary(Neg | Abs | Exp | Log | Sqrt | Sin | Cos | Floor | Ceil)
            | Prim::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div)
    )
}

/// Whether a primitive takes elements of f16 without computing with them: it moves, converts or orders them.
fn moves(prim: &Prim) -> bool {
    match prim {
        Prim::Input { .. }
        | Prim::Constant(_)
        | Prim::Iota { .. }
        | Prim::Select
        | Prim::Cast(_)
        | Prim::Reshape(_)
        | Prim::Transpose(_)
        | Prim::Broadcast { .. }
        | Prim::Slice { .. }
        | Prim::Pad { .. }
        | Prim::Window { .. }
        | Prim::Concat { .. }
        | Prim::Gather { .. }
        | Prim::Argsort { .. }
        | Prim::MergeRuns { .. }
        | Prim::SearchSorted
        | Prim::Custom(_) => true,
        Prim::Unary(_)
        | Prim::Binary(_)
        | Prim::Reduce { .. }
        | Prim::Dot
        | Prim::DotI8
        | Prim::Attention { .. }
        | Prim::Conv { .. }
        | Prim::Scan { .. }
        | Prim::Segment { .. } => false,
    }
}

/// Whether a composite is nothing but moves, found by decomposing it apart.
fn only_moves(builder: &GraphBuilder, composite: &Arc<dyn Composite>, inputs: &[NodeId]) -> bool {
    let mut apart = GraphBuilder::new();
    let stand_in = |apart: &mut GraphBuilder, (i, id): (usize, &NodeId)| apart.input(format!("x{i}"), builder.ty(*id).clone());
    let Ok(operands) = inputs.iter().enumerate().map(|operand| stand_in(&mut apart, operand)).collect::<Result<Vec<_>>>() else {
        return false;
    };
    // A decomposition that wants f32 beside f16 is no move.
    if composite.decompose(&mut apart, &operands).is_err() {
        return false;
    }
    let graph = apart.graph();
    graph.nodes().iter().all(|node| {
        let halves = node.inputs.iter().any(|&id| graph.ty(id).dtype == DType::F16);
        match &node.op {
            _ if !halves => true,
            Op::Prim(prim) => moves(prim),
            Op::Composite(inner) => only_moves(&apart, inner, &node.inputs),
        }
    })
}
