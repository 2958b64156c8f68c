//! Composites to primitives.

use super::rewrite;
use crate::error::{Error, Result};
use crate::graph::{Graph, Op};

/// Composites may be built from composites; deeper than this, one is built from itself.
const MAX_DEPTH: usize = 32;

/// Replaces every composite by its decomposition, until only primitives are left.
pub fn decompose(graph: &Graph) -> Result<Graph> {
    let mut graph = rewrite(graph, |builder, _, node, inputs| builder.add(node.op.clone(), inputs))?;
    for _ in 0..MAX_DEPTH {
        let composite = |n: &crate::graph::Node| matches!(n.op, Op::Composite(_));
        if !graph.nodes().iter().any(composite) {
            return Ok(graph);
        }
        let decomposed = rewrite(&graph, |builder, _, node, inputs| match &node.op {
            Op::Composite(op) => {
                let id = op.decompose(builder, inputs)?;
                if *builder.ty(id) != node.ty {
                    let (got, name) = (builder.ty(id), op.name());
                    return Err(Error::internal(format!("{name} infers {}, its decomposition gives {got}", node.ty)));
                }
                Ok(id)
            }
            Op::Prim(_) => builder.add(node.op.clone(), inputs),
        })?;
        graph = super::eliminate_dead_code(&decomposed)?;
    }
    Err(Error::internal(format!("composites still decompose into composites after {MAX_DEPTH} rounds")))
}
