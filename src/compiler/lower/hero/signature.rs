//! What is fused with a hero, as a digest: groups of one digest differ in sizes within a class and in the values of constants only.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::compiler::fuse::Group;
use crate::graph::{Graph, NodeId, Op, Prim, TensorType, attributes};
use crate::ops;
use kernels_gen::emit::Numerics;
use kernels_gen::heroes::size_class;
use sha2::{Digest, Sha256};

/// Twelve hexadecimal digits.
pub(super) fn of(graph: &Graph, group: &Group, numerics: Numerics) -> String {
    let digest = Sha256::digest(text(graph, group, numerics));
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// The group's nodes in order, with places instead of ids and classes instead of sizes.
fn text(graph: &Graph, group: &Group, numerics: Numerics) -> String {
    let mut places: HashMap<NodeId, usize> = HashMap::new();
    let mut text = format!("{numerics:?}\n");
    for &id in &group.members {
        let mut operands = Vec::new();
        for input in &graph.node(id).inputs {
            let place = match places.get(input) {
                Some(place) => *place,
                None => {
                    let place = places.len();
                    let _ = writeln!(text, "{place}: {} {}", class(graph.ty(*input)), outer(&graph.node(*input).op));
                    places.insert(*input, place);
                    place
                }
            };
            operands.push(place);
        }
        let node = graph.node(id);
        let place = places.len();
        places.insert(id, place);
        let _ = writeln!(text, "{place}: {} {}{}{operands:?}", class(&node.ty), ops::name(&node.op), unsized_attributes(&node.op));
    }
    text
}

fn class(ty: &TensorType) -> String {
    let sizes: Vec<String> = ty.shape.iter().map(|&d| u32::try_from(d).map_or_else(|_| d.to_string(), size_class)).collect();
    format!("{}[{}]", ty.dtype, sizes.join(","))
}

/// What a node outside the group is to it: a value written into the text, or a buffer.
fn outer(op: &Op) -> String {
    match op {
        Op::Prim(Prim::Constant(constant)) => constant.splat().map_or("loaded".into(), |value| format!("{value:?}")),
        Op::Prim(Prim::Iota { axis, .. }) => format!("iota {axis}"),
        _ => "loaded".into(),
    }
}

/// Attributes without sizes, which the type of the result stands for.
fn unsized_attributes(op: &Op) -> String {
    match op {
        Op::Prim(Prim::Reshape(_) | Prim::Pad { .. }) => String::new(),
        Op::Prim(Prim::Broadcast { dims, .. }) => format!("{dims:?}"),
        Op::Prim(Prim::Slice { steps, .. }) => format!("{steps:?}"),
        other => attributes(other),
    }
}
