//! Matrix products of one left operand with several constant ones become one product, of which each takes its columns.

use std::collections::BTreeMap;

use super::rewrite;
use crate::error::{Error, Result};
use crate::graph::{Constant, Graph, NodeId, Op, Prim};
use crate::tensor::HostTensor;
use kernels_gen::Target;

/// Constants that together take more bytes than this stay apart: their products fill an adapter each by itself.
const MAX_BYTES: u64 = 64 << 20;

/// Columns of a product in the one it becomes a part of.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The first of the products that are merged.
    leader: NodeId,
    first_column: usize,
}

/// Merges products whose results nothing but views and whole kernels take: an epilogue would have no kernel to end any more.
pub fn merge_products(graph: &Graph, target: &Target) -> Result<Graph> {
    let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); graph.nodes().len()];
    for (id, node) in graph.iter() {
        node.inputs.iter().for_each(|i| users[i.index()].push(id));
    }
    let mut by_left: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for (id, node) in graph.iter() {
        if matches!(node.op, Op::Prim(Prim::Dot)) && mergeable(graph, &users, id) {
            by_left.entry(node.inputs[0]).or_default().push(id);
        }
    }
    let bytes = |dots: &[NodeId]| dots.iter().map(|d| graph.ty(graph.node(*d).inputs[1]).num_bytes()).sum::<u64>();
    by_left.retain(|_, dots| dots.len() > 1 && bytes(dots) <= MAX_BYTES.min(target.max_binding_bytes));
    let mut parts: BTreeMap<NodeId, Part> = BTreeMap::new();
    for dots in by_left.values() {
        let mut first_column = 0;
        for &dot in dots {
            parts.insert(dot, Part { leader: dots[0], first_column });
            first_column += graph.ty(dot).shape[2];
        }
    }
    if parts.is_empty() {
        return Ok(graph.clone());
    }
    let mut whole: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    let merged = rewrite(graph, |builder, id, node, inputs| {
        let Some(part) = parts.get(&id) else { return builder.add(node.op.clone(), inputs) };
        let product = match whole.get(&part.leader) {
            Some(product) => *product,
            None => {
                let dots = by_left.get(&node.inputs[0]).map(Vec::as_slice).unwrap_or_default();
                let weights = side_by_side(graph, dots)?;
                let weights = builder.add(Prim::Constant(Constant::new(weights)), &[])?;
                let product = builder.add(Prim::Dot, &[inputs[0], weights])?;
                whole.insert(part.leader, product);
                product
            }
        };
        let starts = vec![0, 0, part.first_column];
        builder.add(Prim::Slice { starts, steps: vec![1; 3], sizes: node.ty.shape.clone() }, &[product])
    })?;
    super::eliminate_dead_code(&merged)
}

/// The constant right operand of a product.
fn weights(graph: &Graph, dot: NodeId) -> Option<&HostTensor> {
    match &graph.node(graph.node(dot).inputs[1]).op {
        Op::Prim(Prim::Constant(weights)) if weights.splat().is_none() => Some(weights.tensor()),
        _ => None,
    }
}

/// Whether a product of one matrix with a constant, of whole vectors of columns, can be read as a part of a larger one at no cost.
fn mergeable(graph: &Graph, users: &[Vec<NodeId>], dot: NodeId) -> bool {
    let [batch, _, columns] = graph.ty(dot).shape[..] else { return false };
    let own = users[graph.node(dot).inputs[1].index()].len() == 1;
    batch == 1 && columns % 4 == 0 && columns > 0 && own && weights(graph, dot).is_some() && !ends_in_epilogue(graph, users, dot)
}

/// Whether the kernel of a value ends with what uses it: it is a result, or an elementwise operation alone takes it as it lies.
fn ends_in_epilogue(graph: &Graph, users: &[Vec<NodeId>], id: NodeId) -> bool {
    if graph.outputs().iter().any(|(_, output)| *output == id) {
        return true;
    }
    let views = |u: &NodeId| matches!(graph.node(*u).op, Op::Prim(Prim::Reshape(_) | Prim::Transpose(_) | Prim::Slice { .. }));
    if users[id.index()].iter().filter(|u| views(u)).any(|u| graph.outputs().iter().any(|(_, output)| output == u)) {
        return true;
    }
    match users[id.index()][..] {
        [only] => match graph.node(only).op {
            Op::Prim(Prim::Reshape(_)) => ends_in_epilogue(graph, users, only),
            Op::Prim(Prim::Unary(_) | Prim::Binary(_) | Prim::Select | Prim::Cast(_)) => true,
            _ => false,
        },
        _ => false,
    }
}

/// The right operands of products, column beside column.
fn side_by_side(graph: &Graph, dots: &[NodeId]) -> Result<HostTensor> {
    let missing = || Error::internal("a product that is merged has no constant");
    let parts = dots.iter().map(|&d| weights(graph, d).ok_or_else(missing)?.as_slice::<f32>()).collect::<Result<Vec<_>>>()?;
    let columns: Vec<usize> = dots.iter().map(|d| graph.ty(*d).shape[2]).collect();
    let rows = graph.ty(graph.node(dots[0]).inputs[1]).shape[1];
    let mut values = Vec::with_capacity(rows * columns.iter().sum::<usize>());
    for row in 0..rows {
        parts.iter().zip(&columns).for_each(|(part, &n)| values.extend_from_slice(&part[row * n..(row + 1) * n]));
    }
    HostTensor::new([1, rows, columns.iter().sum()], values)
}
