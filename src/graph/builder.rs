//! Construction of graphs: typed, hash-consed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Constant, Graph, Node, NodeId, Op, OriginId, Prim, ReduceOp, TensorType, UnaryOp};
use crate::ops;
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// Builds one [`Graph`].
#[derive(Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
    known: HashMap<(Op, Vec<NodeId>), NodeId>,
    /// Origin given to new nodes; `None`: each new node is an origin of its own.
    origin: Option<OriginId>,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Type of a node.
    pub fn ty(&self, id: NodeId) -> &TensorType {
        self.graph.ty(id)
    }

    /// Shape of a node.
    pub fn shape(&self, id: NodeId) -> Vec<usize> {
        self.graph.ty(id).shape.clone()
    }

    /// Makes a new origin called `name` and gives it to the nodes added from here on.
    pub fn begin_origin(&mut self, name: impl Into<String>) -> OriginId {
        self.graph.origins.push(name.into());
        let id = OriginId(self.graph.origins.len() as u32 - 1);
        self.origin = Some(id);
        id
    }

    /// Gives an existing origin to the nodes added from here on; `None`: each gets its own.
    pub fn set_origin(&mut self, origin: Option<OriginId>) {
        self.origin = origin;
    }

    /// Takes over the origins of another graph, so that a pass can keep its nodes' origins.
    pub fn copy_origins(&mut self, from: &Graph) {
        self.graph.origins = from.origins.clone();
    }

    /// Adds an operation, or finds the equal node that is there. The type is inferred; operands that do not fit are an error.
    pub fn add(&mut self, op: impl Into<Op>, inputs: &[NodeId]) -> Result<NodeId> {
        let op = op.into();
        if let Some(bad) = inputs.iter().find(|id| id.index() >= self.graph.nodes.len()) {
            return Err(Error::internal(format!("operand {} of a graph of {} nodes", bad.0, self.graph.nodes.len())));
        }
        let key = (op, inputs.to_vec());
        if let Some(&id) = self.known.get(&key) {
            return Ok(id);
        }
        let types: Vec<&TensorType> = inputs.iter().map(|&id| self.graph.ty(id)).collect();
        let ty = ops::infer(&key.0, &types)?;
        let origin = match self.origin {
            Some(origin) => origin,
            None => {
                self.graph.origins.push(ops::shown_name(&key.0).to_string());
                OriginId(self.graph.origins.len() as u32 - 1)
            }
        };
        let id = NodeId(self.graph.nodes.len() as u32);
        self.graph.nodes.push(Node { op: key.0.clone(), inputs: key.1.clone(), ty, origin });
        self.known.insert(key, id);
        Ok(id)
    }

    /// Names a node as a result.
    pub fn output(&mut self, name: impl Into<String>, id: NodeId) -> Result<()> {
        let name = name.into();
        if self.graph.outputs.iter().any(|(n, _)| *n == name) {
            return Err(Error::invalid(format!("two outputs are called `{name}`; give each its own name")));
        }
        self.graph.outputs.push((name, id));
        Ok(())
    }

    /// The finished graph.
    pub fn finish(self) -> Graph {
        self.graph
    }

    /// An input.
    pub fn input(&mut self, name: impl Into<String>, ty: TensorType) -> Result<NodeId> {
        let name = name.into();
        if self.graph.inputs().any(|(n, _)| n == name) {
            return Err(Error::invalid(format!("two inputs are called `{name}`; give each its own name")));
        }
        self.add(Prim::Input { name, ty }, &[])
    }

    /// A constant.
    pub fn constant(&mut self, tensor: impl Into<Arc<HostTensor>>) -> Result<NodeId> {
        self.add(Prim::Constant(Constant::new(tensor)), &[])
    }

    /// A constant of rank 0, converted to `dtype`.
    pub fn scalar(&mut self, dtype: DType, value: f64) -> Result<NodeId> {
        self.constant(HostTensor::from_f64(dtype, [], &[value])?)
    }

    /// A constant of `dtype` repeated to the shape of `like`.
    pub fn splat_like(&mut self, like: NodeId, dtype: DType, value: f64) -> Result<NodeId> {
        let scalar = self.scalar(dtype, value)?;
        let shape = self.shape(like);
        self.broadcast_to(scalar, &shape)
    }

    /// Elementwise operation of one operand.
    pub fn unary(&mut self, op: UnaryOp, x: NodeId) -> Result<NodeId> {
        self.add(Prim::Unary(op), &[x])
    }

    /// Elementwise operation of two operands, with NumPy broadcasting.
    pub fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> Result<NodeId> {
        let shape = ops::broadcast_shapes(&[&self.ty(a).shape, &self.ty(b).shape])?;
        let (a, b) = (self.broadcast_to(a, &shape)?, self.broadcast_to(b, &shape)?);
        self.add(Prim::Binary(op), &[a, b])
    }

    /// Binary operation with a constant of the operand's type on the right.
    pub fn binary_scalar(&mut self, op: BinaryOp, a: NodeId, b: f64) -> Result<NodeId> {
        let b = self.splat_like(a, self.ty(a).dtype, b)?;
        self.binary(op, a, b)
    }

    /// `condition ? on_true : on_false`, with NumPy broadcasting.
    pub fn select(&mut self, condition: NodeId, on_true: NodeId, on_false: NodeId) -> Result<NodeId> {
        let shapes = [condition, on_true, on_false].map(|id| self.shape(id));
        let shape = ops::broadcast_shapes(&[&shapes[0], &shapes[1], &shapes[2]])?;
        let c = self.broadcast_to(condition, &shape)?;
        let t = self.broadcast_to(on_true, &shape)?;
        let f = self.broadcast_to(on_false, &shape)?;
        self.add(Prim::Select, &[c, t, f])
    }

    /// Conversion; nothing where the type is there already.
    pub fn cast(&mut self, x: NodeId, dtype: DType) -> Result<NodeId> {
        if self.ty(x).dtype == dtype { Ok(x) } else { self.add(Prim::Cast(dtype), &[x]) }
    }

    /// Reshape; nothing where the shape is there already.
    pub fn reshape(&mut self, x: NodeId, shape: &[usize]) -> Result<NodeId> {
        if self.ty(x).shape == shape { Ok(x) } else { self.add(Prim::Reshape(shape.to_vec()), &[x]) }
    }

    /// Transpose; nothing for the identity.
    pub fn transpose(&mut self, x: NodeId, perm: &[usize]) -> Result<NodeId> {
        let identity = perm.len() == self.ty(x).rank() && perm.iter().enumerate().all(|(i, &p)| i == p);
        if identity { Ok(x) } else { self.add(Prim::Transpose(perm.to_vec()), &[x]) }
    }

    /// NumPy broadcasting to `shape`; nothing where the shape is there already.
    pub fn broadcast_to(&mut self, x: NodeId, shape: &[usize]) -> Result<NodeId> {
        let rank = self.ty(x).rank();
        if self.ty(x).shape == shape {
            return Ok(x);
        }
        if rank > shape.len() {
            return Err(Error::invalid(format!("cannot broadcast {} to {shape:?}: it has more dimensions", self.ty(x))));
        }
        let dims = (shape.len() - rank..shape.len()).collect();
        self.add(Prim::Broadcast { shape: shape.to_vec(), dims }, &[x])
    }

    /// Reduction over `axes` (any order); `keep` leaves them as dimensions of size 1.
    pub fn reduce(&mut self, op: ReduceOp, x: NodeId, axes: &[usize], keep: bool) -> Result<NodeId> {
        let mut axes = axes.to_vec();
        axes.sort_unstable();
        axes.dedup();
        let mut shape = self.shape(x);
        if let Some(&bad) = axes.iter().find(|&&a| a >= shape.len()) {
            return Err(Error::invalid(format!("axis {bad} of a tensor of rank {}", shape.len())));
        }
        let reduced = self.add(Prim::Reduce { op, axes: axes.clone() }, &[x])?;
        if !keep {
            return Ok(reduced);
        }
        axes.iter().for_each(|&a| shape[a] = 1);
        self.reshape(reduced, &shape)
    }
}
