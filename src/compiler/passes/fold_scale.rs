//! Batch normalisation into the weights of the convolution before it.
//!
//! `(conv(x, w) + c) * s` with constants per output channel becomes `conv(x, w * s) + c * s`. Results differ by rounding alone.

use super::fold::{constant, splat};
use super::rewrite;
use crate::error::Result;
use crate::graph::{BinaryOp, Graph, GraphBuilder, NodeId, Op, Prim};
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// Folds scales of convolutions with constant weights into the weights.
pub fn fold_scale(graph: &Graph) -> Result<Graph> {
    let uses = graph.use_counts();
    // Nodes of the new graph whose value nothing else will need, as the old graph's use counts tell.
    let mut once: Vec<bool> = Vec::new();
    let folded = rewrite(graph, |builder, id, node, inputs| {
        let new = match &node.op {
            Op::Prim(Prim::Binary(BinaryOp::Mul)) => {
                let scaled = match scale(builder, inputs[0], inputs[1], &once)? {
                    None => scale(builder, inputs[1], inputs[0], &once)?,
                    some => some,
                };
                match scaled {
                    Some(id) => id,
                    None => builder.add(node.op.clone(), inputs)?,
                }
            }
            _ => builder.add(node.op.clone(), inputs)?,
        };
        once.resize(builder.graph().nodes().len(), false);
        once[new.index()] = uses[id.index()] == 1;
        Ok(new)
    })?;
    super::eliminate_dead_code(&folded)
}

/// The values of a constant that varies along dimension 1 of a rank-4 shape only.
fn per_channel(builder: &GraphBuilder, id: NodeId) -> Option<Vec<f32>> {
    let node = builder.graph().node(id);
    let channels = *node.ty.shape.get(1)?;
    if let Some(value) = splat(builder, id) {
        return Some(vec![value as f32; channels]);
    }
    let (base, dims): (NodeId, Vec<usize>) = match &node.op {
        Op::Prim(Prim::Broadcast { dims, .. }) => (node.inputs[0], dims.clone()),
        Op::Prim(Prim::Constant(_)) => (id, (0..node.ty.rank()).collect()),
        _ => return None,
    };
    let tensor = constant(builder, base)?.tensor();
    let fits = tensor.shape().iter().zip(&dims).all(|(&size, &dim)| size == 1 || dim == 1);
    let values = tensor.as_slice::<f32>().ok()?;
    (fits && values.len() == channels).then(|| values.to_vec())
}

fn scale(builder: &mut GraphBuilder, x: NodeId, s: NodeId, once: &[bool]) -> Result<Option<NodeId>> {
    let node = builder.graph().node(x).clone();
    let single = |id: NodeId| once.get(id.index()).copied().unwrap_or(false);
    if node.ty.dtype != DType::F32 || node.ty.rank() != 4 || !single(x) {
        return Ok(None);
    }
    let Some(scales) = per_channel(builder, s) else { return Ok(None) };
    match &node.op {
        Op::Prim(Prim::Conv { .. }) => {
            let Some(weights) = constant(builder, node.inputs[1]).map(|c| c.tensor().clone()) else { return Ok(None) };
            let values = weights.as_slice::<f32>()?;
            let per_output = values.len() / scales.len().max(1);
            let scaled: Vec<f32> = values.chunks(per_output.max(1)).zip(&scales).flat_map(|(w, s)| w.iter().map(move |w| w * s)).collect();
            let weights = builder.constant(HostTensor::new(weights.shape(), scaled)?)?;
            builder.add(node.op, &[node.inputs[0], weights]).map(Some)
        }
        Op::Prim(Prim::Binary(op @ (BinaryOp::Add | BinaryOp::Sub))) => {
            // The sum is scaled part by part, if that lets the convolution below take the scale.
            let (a, b) = (node.inputs[0], node.inputs[1]);
            let Some(shift) = per_channel(builder, b) else { return Ok(None) };
            let Some(a) = scale(builder, a, s, once)? else { return Ok(None) };
            let shifted: Vec<f32> = shift.iter().zip(&scales).map(|(c, s)| c * s).collect();
            let shift = builder.constant(HostTensor::new([shifted.len(), 1, 1], shifted)?)?;
            let shape = node.ty.shape;
            let shift = builder.broadcast_to(shift, &shape)?;
            builder.add(Prim::Binary(*op), &[a, shift]).map(Some)
        }
        _ => Ok(None),
    }
}
