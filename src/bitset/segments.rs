//! What of a network runs in f32: the graphs before, between and after its integer layers.
//!
//! Values pass from one to the next by names: `activations.N` and `residual.N` are what integer layer N reads, `results.N` what it leaves, and
//! `value.N` is a value of the network that a later graph needs again.

use std::collections::BTreeSet;

use crate::bitset::layer::MAX_RESIDUAL;
use crate::bitset::network::Network;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Graph, GraphBuilder, NodeId, Op, Prim, TensorType, UnaryOp};
use kernels_gen::DType;

/// Where an integer layer stands in a network, and its units.
#[derive(Debug, Clone, PartialEq)]
pub struct Cut {
    /// Place in [`Network::layers`].
    pub layer: usize,
    /// What one unit of an activation is.
    pub activation_scale: f64,
    /// The largest activation in units.
    pub most: u32,
    /// What one unit of a result is.
    pub unit: f64,
    /// Whether results have two words.
    pub is_wide: bool,
}

/// Name of what integer layer `at` reads.
pub fn activations(at: usize) -> String {
    format!("activations.{at}")
}

/// Name of what is added to integer layer `at`.
pub fn residual(at: usize) -> String {
    format!("residual.{at}")
}

/// Name of what integer layer `at` leaves.
pub fn results(at: usize) -> String {
    format!("results.{at}")
}

/// The graphs before each of `cuts`, in their order, and the one after the last, which has the outputs of the network.
///
/// # Errors
///
/// [`ErrorKind::Internal`](crate::ErrorKind::Internal) where a layer needs the result of a later one.
pub fn segments(network: &Network, cuts: &[Cut]) -> Result<Vec<Graph>> {
    let graph = &network.graph;
    let needs_input = depends_on_input(graph);
    let layer = |cut: &Cut| &network.layers[cut.layer];
    let mut made_in: Vec<Option<usize>> = vec![None; graph.nodes().len()];
    let mut parts = Vec::new();
    for at in 0..=cuts.len() {
        let targets: Vec<NodeId> = match cuts.get(at) {
            Some(cut) => [layer(cut).input].into_iter().chain(layer(cut).residual).collect(),
            None => graph.outputs().iter().map(|(_, id)| *id).collect(),
        };
        let (mut made, mut taken, mut open) = (BTreeSet::new(), BTreeSet::new(), targets);
        while let Some(id) = open.pop() {
            if made.contains(&id) || taken.contains(&id) {
                continue;
            }
            match made_in[id.index()] {
                Some(before) if before < at && needs_input[id.index()] => {
                    taken.insert(id);
                    continue;
                }
                _ => made.insert(id),
            };
            match cuts.iter().position(|cut| layer(cut).result == id) {
                Some(before) if before >= at => {
                    return Err(Error::internal(format!("integer layer {at} needs the result of layer {before}")));
                }
                Some(_) => {}
                None => open.extend(&graph.node(id).inputs),
            }
        }
        made.iter().for_each(|id| made_in[id.index()] = made_in[id.index()].or(Some(at)));
        parts.push((made, taken));
    }
    let wanted: Vec<BTreeSet<NodeId>> = (0..parts.len())
        .map(|at| parts[at + 1..].iter().flat_map(|(_, taken)| taken).copied().filter(|id| made_in[id.index()] == Some(at)).collect())
        .collect();
    let built = parts.iter().zip(&wanted).enumerate().map(|(at, ((made, taken), wanted))| {
        let mut builder = GraphBuilder::new();
        builder.copy_origins(graph);
        let mut map: Vec<Option<NodeId>> = vec![None; graph.nodes().len()];
        for id in made.union(taken) {
            let node = graph.node(*id);
            builder.set_origin(Some(node.origin));
            let cut = cuts.iter().position(|cut| layer(cut).result == *id);
            map[id.index()] = Some(if taken.contains(id) {
                builder.input(value(*id), node.ty.clone())?
            } else if let Some(before) = cut {
                result_of(&mut builder, &results(before), &node.ty, &cuts[before])?
            } else {
                let inputs: Vec<NodeId> = node.inputs.iter().filter_map(|input| map[input.index()]).collect();
                builder.add(node.op.clone(), &inputs)?
            });
        }
        let new = |id: NodeId| map[id.index()].ok_or_else(|| Error::internal(format!("value {} is in no part of the network", id.0)));
        for id in wanted {
            builder.output(value(*id), new(*id)?)?;
        }
        match cuts.get(at) {
            Some(cut) => {
                let read = integers(&mut builder, new(layer(cut).input)?, cut.activation_scale, [0.0, f64::from(cut.most)], DType::U8)?;
                builder.output(activations(at), read)?;
                if let Some(id) = layer(cut).residual {
                    let most = MAX_RESIDUAL as f64;
                    let added = integers(&mut builder, new(id)?, cut.unit, [-most, most], DType::I32)?;
                    builder.output(residual(at), added)?;
                }
            }
            None => graph.outputs().iter().try_for_each(|(name, id)| builder.output(name.clone(), new(*id)?))?,
        }
        Ok(builder.finish())
    });
    built.collect()
}

/// Name of a value that later graphs need again.
fn value(id: NodeId) -> String {
    format!("value.{}", id.0)
}

/// `x` in units of `scale`, rounded and kept in `range`.
fn integers(builder: &mut GraphBuilder, x: NodeId, scale: f64, [least, most]: [f64; 2], dtype: DType) -> Result<NodeId> {
    let scaled = builder.binary_scalar(BinaryOp::Mul, x, 1.0 / scale)?;
    let whole = builder.unary(UnaryOp::Round, scaled)?;
    let above = builder.binary_scalar(BinaryOp::Max, whole, least)?;
    let kept = builder.binary_scalar(BinaryOp::Min, above, most)?;
    builder.cast(kept, dtype)
}

/// What an integer layer left, as a value of the network after its ReLU.
fn result_of(builder: &mut GraphBuilder, name: &str, ty: &TensorType, cut: &Cut) -> Result<NodeId> {
    let sum = if cut.is_wide {
        let words = builder.input(name, TensorType::new(DType::I32, [&ty.shape[..], &[2]].concat()))?;
        let rank = ty.shape.len();
        let mut word = |at: usize| -> Result<NodeId> {
            let starts = [vec![0; rank], vec![at]].concat();
            let slice = builder.add(Prim::Slice { starts, steps: vec![1; rank + 1], sizes: [&ty.shape[..], &[1]].concat() }, &[words])?;
            let flat = builder.reshape(slice, &ty.shape)?;
            builder.cast(flat, DType::F32)
        };
        let (low, high) = (word(0)?, word(1)?);
        // The low word has no sign.
        let zero = builder.splat_like(low, DType::F32, 0.0)?;
        let is_negative = builder.binary(BinaryOp::Lt, low, zero)?;
        let lifted = builder.binary_scalar(BinaryOp::Add, low, 4_294_967_296.0)?;
        let low = builder.select(is_negative, lifted, low)?;
        let high = builder.binary_scalar(BinaryOp::Mul, high, 4_294_967_296.0)?;
        builder.binary(BinaryOp::Add, high, low)?
    } else {
        let sum = builder.input(name, TensorType::new(DType::I32, ty.shape.clone()))?;
        builder.cast(sum, DType::F32)?
    };
    let scaled = builder.binary_scalar(BinaryOp::Mul, sum, cut.unit)?;
    builder.binary_scalar(BinaryOp::Max, scaled, 0.0)
}

fn depends_on_input(graph: &Graph) -> Vec<bool> {
    let mut depends: Vec<bool> = Vec::with_capacity(graph.nodes().len());
    for (_, node) in graph.iter() {
        let own = matches!(node.op, Op::Prim(Prim::Input { .. }));
        depends.push(own || node.inputs.iter().any(|input| depends[input.index()]));
    }
    depends
}
