//! Passes over the tensor IR: each takes a graph and makes a new one.

mod decompose;
mod fold;
mod fold_scale;
mod layout;
mod merge;
mod stage;
mod stage_serial;

pub use decompose::{decompose, decompose_for};
pub use fold::fold;
pub use fold_scale::fold_scale;
pub use layout::layout;
pub use merge::merge_products;
pub use stage::stage;

use crate::error::Result;
use crate::graph::{Graph, GraphBuilder, Node, NodeId, Op, Prim};

/// Rebuilds `graph` node by node, dropping what no output needs; inputs stay, so that the interface does. `f` gets the builder, the
/// node and its operands in the new graph, and gives the node that takes its place.
pub(crate) fn rewrite(graph: &Graph, mut f: impl FnMut(&mut GraphBuilder, NodeId, &Node, &[NodeId]) -> Result<NodeId>) -> Result<Graph> {
    let mut live = vec![false; graph.nodes().len()];
    graph.outputs().iter().for_each(|(_, id)| live[id.index()] = true);
    for (id, node) in graph.iter().rev() {
        if matches!(node.op, Op::Prim(Prim::Input { .. })) {
            live[id.index()] = true;
        }
        if live[id.index()] {
            node.inputs.iter().for_each(|i| live[i.index()] = true);
        }
    }
    let mut builder = GraphBuilder::new();
    builder.copy_origins(graph);
    let mut map: Vec<Option<NodeId>> = vec![None; graph.nodes().len()];
    for (id, node) in graph.iter().filter(|(id, _)| live[id.index()]) {
        builder.set_origin(Some(node.origin));
        // Operands are live and come first, so each has its place already.
        let inputs: Vec<NodeId> = node.inputs.iter().filter_map(|i| map[i.index()]).collect();
        map[id.index()] = Some(f(&mut builder, id, node, &inputs)?);
    }
    for (name, id) in graph.outputs() {
        if let Some(new) = map[id.index()] {
            builder.output(name, new)?;
        }
    }
    Ok(builder.finish())
}

/// Drops what no output needs.
pub fn eliminate_dead_code(graph: &Graph) -> Result<Graph> {
    rewrite(graph, |builder, _, node, inputs| builder.add(node.op.clone(), inputs))
}
