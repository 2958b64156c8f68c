//! Composites to primitives, and operations on f16 to operations on f32.

use super::rewrite;
use crate::error::{Error, Result};
use crate::graph::{Graph, Op};
use crate::ops::{self, Halves};

/// Composites may be built from composites; deeper than this, one is built from itself.
const MAX_DEPTH: usize = 32;

/// Replaces every composite by its decomposition, until only primitives are left, none of which computes in f16.
pub fn decompose(graph: &Graph) -> Result<Graph> {
    decompose_for(graph, Halves::Widened)
}

/// [`decompose`], with elementwise arithmetic on f16 as `arithmetic` says.
pub fn decompose_for(graph: &Graph, arithmetic: Halves) -> Result<Graph> {
    let mut graph = rewrite(graph, |builder, _, node, inputs| match &node.op {
        Op::Prim(_) => ops::expand(builder, &node.op, inputs, &node.ty, arithmetic),
        Op::Composite(_) => builder.add(node.op.clone(), inputs),
    })?;
    for _ in 0..MAX_DEPTH {
        let composite = |n: &crate::graph::Node| matches!(n.op, Op::Composite(_));
        if !graph.nodes().iter().any(composite) {
            return Ok(graph);
        }
        let decomposed = rewrite(&graph, |builder, _, node, inputs| ops::expand(builder, &node.op, inputs, &node.ty, arithmetic))?;
        graph = super::eliminate_dead_code(&decomposed)?;
    }
    Err(Error::internal(format!("composites still decompose into composites after {MAX_DEPTH} rounds")))
}
