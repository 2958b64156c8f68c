//! The tensor IR: an append-only list of nodes in static single assignment form.
//!
//! Operands have smaller ids than their users, equal nodes are one node (hash-consing at construction), and a graph never changes once
//! it is built: each pass makes a new one through a [`GraphBuilder`].

mod builder;
mod op;
mod print;
mod verify;

pub use builder::GraphBuilder;
pub use op::{BinaryOp, Composite, Constant, Factor, Op, Prim, ReduceOp, UnaryOp, WeightLayout};
pub(crate) use print::attributes;
pub use verify::{VerifyError, verify};

use kernels_gen::DType;
use std::fmt;

/// Index of a node in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The operation of the user's program (or the node of the imported model) that a node stems from: an index into [`Graph::origins`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OriginId(pub u32);

/// Element type and shape of a node's value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Sizes of the dimensions, outermost first.
    pub shape: Vec<usize>,
}

impl TensorType {
    /// A type.
    pub fn new(dtype: DType, shape: impl Into<Vec<usize>>) -> Self {
        TensorType { dtype, shape: shape.into() }
    }

    /// Number of elements.
    pub fn num_elems(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of the elements, packed.
    pub fn num_bytes(&self) -> u64 {
        (self.num_elems() * self.dtype.size_bytes()) as u64
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

/// One operation and its result.
#[derive(Debug, Clone)]
pub struct Node {
    /// What is computed.
    pub op: Op,
    /// Operands.
    pub inputs: Vec<NodeId>,
    /// Type of the result.
    pub ty: TensorType,
    /// Where the node comes from.
    pub origin: OriginId,
}

/// A whole computation.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    outputs: Vec<(String, NodeId)>,
    origins: Vec<String>,
}

impl Graph {
    /// All nodes, operands before users.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All nodes with their ids.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(i, n)| (NodeId(i as u32), n))
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Type of one node.
    pub fn ty(&self, id: NodeId) -> &TensorType {
        &self.nodes[id.index()].ty
    }

    /// Whether a node is a conversion of f16 to f32, which a kernel that loads its operand makes at no cost.
    pub fn widens(&self, id: NodeId) -> bool {
        let node = self.node(id);
        matches!(node.op, Op::Prim(Prim::Cast(DType::F32))) && self.ty(node.inputs[0]).dtype == DType::F16
    }

    /// Results, in order, with their names.
    pub fn outputs(&self) -> &[(String, NodeId)] {
        &self.outputs
    }

    /// Inputs by name, in order of their ids.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, NodeId)> {
        self.iter().filter_map(|(id, n)| match &n.op {
            Op::Prim(Prim::Input { name, .. }) => Some((name.as_str(), id)),
            _ => None,
        })
    }

    /// Names of the operations nodes stem from, by [`OriginId`].
    pub fn origins(&self) -> &[String] {
        &self.origins
    }

    /// How often each node is used as an operand or an output.
    pub fn use_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.nodes.len()];
        let operands = self.nodes.iter().flat_map(|n| n.inputs.iter());
        for id in operands.chain(self.outputs.iter().map(|(_, id)| id)) {
            counts[id.index()] += 1;
        }
        counts
    }
}
