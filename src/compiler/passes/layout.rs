//! Chooses how constants lie in memory.

use super::rewrite;
use crate::error::Result;
use crate::graph::{Constant, Graph, Op, Prim};
use crate::ops::{self, RefTensor};
use kernels_gen::DType;

/// Stores constant weights of convolutions with their output channels innermost, so that a kernel reads four of them at once. To the
/// graph they look as before, through a transpose that becomes part of the load; nothing may fold it away after this pass.
pub fn layout(graph: &Graph) -> Result<Graph> {
    rewrite(graph, |builder, _, node, inputs| {
        let Op::Prim(Prim::Conv { groups, .. }) = &node.op else {
            return builder.add(node.op.clone(), inputs);
        };
        let widened = builder.graph().widens(inputs[1]);
        let held = if widened { builder.graph().node(inputs[1]).inputs[0] } else { inputs[1] };
        let weights = match &builder.graph().node(held).op {
            Op::Prim(Prim::Constant(weights)) => weights.tensor().clone(),
            _ => return builder.add(node.op.clone(), inputs),
        };
        if !(weights.shape()[0] / groups).is_multiple_of(4) {
            return builder.add(node.op.clone(), inputs);
        }
        let inward = Op::from(Prim::Transpose(vec![1, 2, 3, 0]));
        let stored = ops::reference(&inward, &[&RefTensor::from_host(&weights)])?.to_host()?;
        let stored = builder.add(Prim::Constant(Constant::new(stored)), &[])?;
        let stored = if widened { builder.cast(stored, DType::F32)? } else { stored };
        let weights = builder.transpose(stored, &[3, 0, 1, 2])?;
        builder.add(node.op.clone(), &[inputs[0], weights])
    })
}
