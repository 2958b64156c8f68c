//! Reference values of single elements of a group's result, in f64: what a product of any size can be checked with.

use std::collections::HashMap;

use crate::compiler::fuse::Group;
use crate::error::{Error, Result};
use crate::graph::{Factor, Graph, Node, NodeId, Op, Prim};
use crate::ops::{self, RefTensor, reference};
use crate::tensor::strides;
use kernels_gen::threefry::Key;

/// Multiplications of all samples together, about.
const MULTIPLICATIONS: usize = 1 << 20;
/// Fewest and most samples.
const SAMPLES: [usize; 2] = [24, 4096];

/// Row-major positions in the group's result: all of a small one, else the first, the last and some at random.
pub(super) fn positions(graph: &Graph, group: &Group, hero: NodeId, key: Key) -> Vec<usize> {
    let total = graph.ty(group.root).num_elems();
    let node = graph.node(hero);
    let depth: usize = match node.op {
        Op::Prim(Prim::Dot | Prim::DotI8) => graph.ty(node.inputs[0]).shape[2],
        // The scores of a row, and the values they weigh.
        Op::Prim(Prim::Attention { .. }) => graph.ty(node.inputs[1]).shape[1] * (graph.ty(node.inputs[0]).shape[2] + 1),
        _ => graph.ty(node.inputs[1]).shape.iter().skip(1).product(),
    };
    let count = (MULTIPLICATIONS / depth.max(1)).clamp(SAMPLES[0], SAMPLES[1]);
    if total <= count {
        return (0..total).collect();
    }
    let drawn = (0..count as u64 - 2).map(|i| key.below(i, total as u64) as usize);
    [0, total - 1].into_iter().chain(drawn).collect()
}

/// Values of a group's nodes at row-major positions, from the values of what it loads.
pub(super) struct Sampler<'a> {
    graph: &'a Graph,
    loaded: &'a HashMap<NodeId, RefTensor>,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(graph: &'a Graph, loaded: &'a HashMap<NodeId, RefTensor>) -> Self {
        Sampler { graph, loaded }
    }

    /// The values of `id` at `at`.
    pub(super) fn values(&self, id: NodeId, at: &[usize]) -> Result<Vec<f64>> {
        if let Some(tensor) = self.loaded.get(&id) {
            return Ok(at.iter().map(|&i| tensor.data[i]).collect());
        }
        let node = self.graph.node(id);
        let Op::Prim(prim) = &node.op else {
            return Err(Error::internal(format!("composite {} reached the tuner", ops::name(&node.op))));
        };
        let shape = &node.ty.shape;
        let inner = |operand: usize| &self.graph.ty(node.inputs[operand]).shape;
        let coords = |position: usize| coordinates(position, shape);
        // The same elements at other places.
        let moved = |to: &dyn Fn(&[usize]) -> usize| {
            let at: Vec<usize> = at.iter().map(|&i| to(&coords(i))).collect();
            self.values(node.inputs[0], &at)
        };
        match prim {
            Prim::Constant(constant) => {
                let tensor = RefTensor::from_host(constant.tensor());
                Ok(at.iter().map(|&i| tensor.data[i]).collect())
            }
            Prim::Iota { axis, .. } => Ok(at.iter().map(|&i| coords(i)[*axis] as f64).collect()),
            Prim::Unary(_) | Prim::Binary(_) | Prim::Select | Prim::Cast(_) => {
                let operand = |&input: &NodeId| RefTensor::new(self.graph.ty(input).dtype, [at.len()], self.values(input, at)?);
                let operands = node.inputs.iter().map(operand).collect::<Result<Vec<_>>>()?;
                Ok(reference(&node.op, &operands.iter().collect::<Vec<_>>())?.data)
            }
            Prim::Reshape(_) => self.values(node.inputs[0], at),
            Prim::Transpose(perm) => {
                let steps = strides(inner(0));
                moved(&|c| perm.iter().zip(c).map(|(&p, &i)| i * steps[p]).sum())
            }
            Prim::Broadcast { dims, .. } => {
                let (sizes, steps) = (inner(0), strides(inner(0)));
                moved(&|c| (0..sizes.len()).map(|d| if sizes[d] == 1 { 0 } else { c[dims[d]] * steps[d] }).sum())
            }
            Prim::Slice { starts, steps, .. } => {
                let scale = strides(inner(0));
                moved(&|c| (0..c.len()).map(|d| (starts[d] as isize + c[d] as isize * steps[d]) as usize * scale[d]).sum())
            }
            Prim::Pad { low, .. } => {
                let (sizes, steps) = (inner(0), strides(inner(0)));
                let within = |c: &[usize]| {
                    (0..c.len()).try_fold(0, |sum, d| {
                        let i = c[d].checked_sub(low[d]).filter(|i| *i < sizes[d])?;
                        Some(sum + i * steps[d])
                    })
                };
                let places: Vec<Option<usize>> = at.iter().map(|&i| within(&coords(i))).collect();
                let around = self.values(node.inputs[1], &[0])?;
                let mut inside = self.values(node.inputs[0], &places.iter().copied().flatten().collect::<Vec<_>>())?.into_iter();
                Ok(places.iter().map(|place| if place.is_some() { inside.next() } else { None }.unwrap_or(around[0])).collect())
            }
            Prim::Dot => self.dot(node.inputs[0], node.inputs[1], at, |x, y| x * y),
            Prim::DotI8 => self.dot(node.inputs[0], node.inputs[1], at, ops::dot::dot_i8_words),
            Prim::Attention { scale, causal } => self.attention(node, *scale, *causal, at),
            Prim::Conv { strides, pads_low, dilations, groups, .. } => {
                let spec = Conv { strides: *strides, pads: *pads_low, dilations: *dilations, groups: *groups };
                self.conv(node.inputs[0], node.inputs[1], shape, &spec, at)
            }
            _ => Err(Error::unsupported(format!("{} has no reference for single elements", ops::name(&node.op)))),
        }
    }

    fn dot(&self, a: NodeId, b: NodeId, at: &[usize], term: fn(f64, f64) -> f64) -> Result<Vec<f64>> {
        let (left, right) = (&self.graph.ty(a).shape, &self.graph.ty(b).shape);
        let (m, k, n) = (left[1], left[2], right[2]);
        let each = |of: &dyn Fn(usize, usize, usize, usize) -> usize| -> Vec<usize> {
            at.iter().flat_map(|&p| (0..k).map(move |s| (p / (m * n), p / n % m, p % n, s))).map(|(b, i, j, s)| of(b, i, j, s)).collect()
        };
        let left = self.values(a, &each(&|b, i, _, s| (b * m + i) * k + s))?;
        let right = self.values(b, &each(&|b, _, j, s| (b * k + s) * n + j))?;
        Ok((0..at.len()).map(|p| (p * k..(p + 1) * k).map(|i| term(left[i], right[i])).sum()).collect())
    }

    /// One row of scores for each position.
    fn attention(&self, node: &Node, scale: Factor, causal: bool, at: &[usize]) -> Result<Vec<f64>> {
        let [q, k, v] = [0, 1, 2].map(|i| node.inputs[i]);
        let (rows, keys, width) = (self.graph.ty(q).shape[1], self.graph.ty(k).shape[1], self.graph.ty(k).shape[2]);
        let columns = self.graph.ty(v).shape[2];
        let operand = |id: NodeId, shape: [usize; 3], of: &dyn Fn(usize) -> usize| {
            let places: Vec<usize> = (0..shape.iter().product()).map(of).collect();
            RefTensor::new(self.graph.ty(id).dtype, shape, self.values(id, &places)?)
        };
        // What a causal row does not see is left out, and the row attends to all of the rest.
        let row = Op::from(Prim::Attention { scale, causal: false });
        let one = |&position: &usize| -> Result<f64> {
            let (b, i, c) = (position / (rows * columns), position / columns % rows, position % columns);
            let seen = if causal { keys.min(i + 1) } else { keys };
            let mut operands = vec![
                operand(q, [1, 1, width], &|p| (b * rows + i) * width + p)?,
                operand(k, [1, seen, width], &|p| b * keys * width + p)?,
                operand(v, [1, seen, 1], &|p| (b * keys + p) * columns + c)?,
            ];
            if let Some(&mask) = node.inputs.get(3) {
                operands.push(operand(mask, [1, 1, seen], &|p| (b * rows + i) * keys + p)?);
            }
            let value = reference(&row, &operands.iter().collect::<Vec<_>>())?;
            value.data.first().copied().ok_or_else(|| Error::internal("an attention without rows"))
        };
        at.iter().map(one).collect()
    }

    fn conv(&self, x: NodeId, w: NodeId, out: &[usize], spec: &Conv, at: &[usize]) -> Result<Vec<f64>> {
        let (input, weights) = (&self.graph.ty(x).shape, &self.graph.ty(w).shape);
        let (per_group, taps) = (out[1] / spec.groups.max(1), [weights[2], weights[3]]);
        let (mut left, mut right, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for &position in at {
            let c = coordinates(position, out);
            let first = c[1] / per_group.max(1) * weights[1];
            for channel in 0..weights[1] {
                for (ky, kx) in (0..taps[0]).flat_map(|y| (0..taps[1]).map(move |x| (y, x))) {
                    let along = |axis: usize, o: usize, k: usize| {
                        let i = (o * spec.strides[axis] + k * spec.dilations[axis]).checked_sub(spec.pads[axis])?;
                        (i < input[2 + axis]).then_some(i)
                    };
                    if let (Some(y), Some(x)) = (along(0, c[2], ky), along(1, c[3], kx)) {
                        left.push(((c[0] * input[1] + first + channel) * input[2] + y) * input[3] + x);
                        right.push(((c[1] * weights[1] + channel) * taps[0] + ky) * taps[1] + kx);
                    }
                }
            }
            ends.push(left.len());
        }
        let (left, right) = (self.values(x, &left)?, self.values(w, &right)?);
        let begins = std::iter::once(0).chain(ends.iter().copied());
        Ok(begins.zip(&ends).map(|(begin, &end)| (begin..end).map(|i| left[i] * right[i]).sum()).collect())
    }
}

struct Conv {
    strides: [usize; 2],
    pads: [usize; 2],
    dilations: [usize; 2],
    groups: usize,
}

/// Coordinates of a row-major position.
fn coordinates(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut coords = vec![0; shape.len()];
    for (c, &size) in coords.iter_mut().zip(shape).rev() {
        *c = position % size.max(1);
        position /= size.max(1);
    }
    coords
}
