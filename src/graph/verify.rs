//! Checks of a graph's invariants.

use std::collections::HashSet;

use crate::error::{Error, ErrorKind};
use crate::graph::{Graph, NodeId};
use crate::ops;

pub use kernels_gen::ir::VerifyError;

/// Collects every broken invariant: operands come before their users, types are those inference gives, origins and outputs exist, names of
/// inputs and outputs are unique.
pub fn verify(graph: &Graph) -> Result<(), Vec<VerifyError>> {
    let mut faults = Vec::new();
    for (id, node) in graph.iter() {
        let mut fault = |message: String| faults.push(VerifyError { at: format!("%{}", id.0), context: graph.node_text(id), message });
        if node.origin.0 as usize >= graph.origins().len() {
            fault(format!("origin {} of {} does not exist", node.origin.0, graph.origins().len()));
        }
        let late: Vec<NodeId> = node.inputs.iter().copied().filter(|&input| input >= id).collect();
        if !late.is_empty() {
            late.iter().for_each(|input| fault(format!("operand %{} does not come before it", input.0)));
            continue;
        }
        let types: Vec<_> = node.inputs.iter().map(|&i| graph.ty(i)).collect();
        match ops::infer(&node.op, &types) {
            Ok(ty) if ty == node.ty => {}
            Ok(ty) => fault(format!("its type is {ty}, the node says {}", node.ty)),
            Err(e) => fault(e.to_string()),
        }
    }
    let mut inputs = HashSet::new();
    for (name, id) in graph.inputs() {
        if !inputs.insert(name) {
            let message = format!("another input is called `{name}`");
            faults.push(VerifyError { at: format!("%{}", id.0), context: graph.node_text(id), message });
        }
    }
    let mut outputs = HashSet::new();
    for (name, id) in graph.outputs() {
        let mut fault = |message: String| {
            faults.push(VerifyError { at: format!("output {name}"), context: format!("output {name} = %{}", id.0), message });
        };
        if id.index() >= graph.nodes().len() {
            fault(format!("%{} does not exist", id.0));
        }
        if !outputs.insert(name) {
            fault("another output has this name".to_string());
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

impl From<Vec<VerifyError>> for Error {
    fn from(faults: Vec<VerifyError>) -> Self {
        let lines = faults.iter().map(|f| f.to_string()).collect::<Vec<_>>().join("\n  ");
        Error::new(ErrorKind::Internal, format!("the graph is not well formed:\n  {lines}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{BinaryOp, Node, Op, OriginId, Prim, TensorType};
    use kernels_gen::DType;

    #[test]
    fn collects_all_faults() {
        let ty = TensorType::new(DType::F32, [2]);
        let input = |name: &str| Node {
            op: Op::Prim(Prim::Input { name: name.into(), ty: ty.clone() }),
            inputs: vec![],
            ty: ty.clone(),
            origin: OriginId(0),
        };
        let add = |inputs: [u32; 2], shape: [usize; 1]| Node {
            op: Op::Prim(Prim::Binary(BinaryOp::Add)),
            inputs: inputs.map(NodeId).to_vec(),
            ty: TensorType::new(DType::F32, shape),
            origin: OriginId(0),
        };
        let graph = Graph {
            nodes: vec![input("x"), input("x"), add([0, 5], [2]), add([0, 1], [3])],
            outputs: vec![("y".into(), NodeId(9)), ("y".into(), NodeId(0))],
            origins: vec!["o".into()],
        };
        let faults = verify(&graph).unwrap_err();
        let at: Vec<&str> = faults.iter().map(|f| f.at.as_str()).collect();
        assert_eq!(at, ["%2", "%3", "%1", "output y", "output y"], "{faults:?}");
    }
}
