//! Layers of a network: which of them run in integers, which of those can be stopped, and why the others cannot.

use std::fmt;

use crate::bitset::layer::{Geometry, MAX_TAPS};
use crate::compiler::passes;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Graph, NodeId, Op, Prim, ReduceOp};
use kernels_gen::DType;

/// Why a layer is run in f32 and never stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The first layer is neither quantised nor stopped.
    First,
    /// Nor is the last one.
    Last,
    /// Its activations can be negative.
    SignedInput,
    /// No ReLU follows.
    NoRelu,
    /// Something else uses its sum, or what is added to it, before the ReLU.
    SharedSum,
    /// Its weights are computed, not constant.
    ComputedWeights,
    /// It is a product of several matrices, or an output has too many taps.
    Shape,
}

impl Reason {
    /// The reason in words, for reports.
    pub const fn text(self) -> &'static str {
        match self {
            Reason::First => "first layer",
            Reason::Last => "last layer",
            Reason::SignedInput => "signed activations",
            Reason::NoRelu => "no ReLU after it",
            Reason::SharedSum => "its sum is used before the ReLU",
            Reason::ComputedWeights => "computed weights",
            Reason::Shape => "shape",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A convolution or a fully connected layer of a network.
#[derive(Debug, Clone)]
pub struct FoundLayer {
    /// Name of the node of the model.
    pub name: String,
    /// Shape; of a fully connected layer, that of one row.
    pub geometry: Geometry,
    /// Weights, `[outputs, taps]`; none where they are computed.
    pub weights: Vec<f32>,
    /// What is added to the outputs of each channel.
    pub bias: Vec<f32>,
    /// The activations.
    pub input: NodeId,
    /// What is added to the outputs before the ReLU.
    pub residual: Option<NodeId>,
    /// The ReLU, whose value the integer layer replaces; of other layers the sum.
    pub result: NodeId,
    /// Why it cannot be stopped, if so.
    pub reason: Option<Reason>,
}

/// A network whose layers have been found, its batch normalisations folded into them.
#[derive(Debug, Clone)]
pub struct Network {
    /// The network in primitives.
    pub graph: Graph,
    /// Layers in the order in which they run.
    pub layers: Vec<FoundLayer>,
    /// Images of a run.
    pub batch: usize,
}

impl Network {
    /// Finds the layers of `graph`, which takes one batch of images.
    ///
    /// Batch normalisation becomes part of weights and bias; a kernel whose factor is negative is thereby negated.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a graph of several inputs, one without layers, and one of whose layers
    /// none can be stopped; the message says why of each.
    pub fn new(graph: &Graph) -> Result<Self> {
        let graph = passes::fold(&passes::decompose(graph)?)?;
        let graph = passes::fold(&passes::fold_scale(&graph)?)?;
        let batch = {
            let inputs: Vec<_> = graph.inputs().collect();
            let [(name, input)] = inputs.as_slice() else {
                return Err(Error::invalid(format!("the network takes {} tensors; give one that takes one batch of images", inputs.len())));
            };
            let ty = graph.ty(*input);
            match (ty.dtype, ty.shape.first()) {
                (DType::F32, Some(&batch)) if batch > 0 => batch,
                _ => return Err(Error::invalid(format!("input `{name}` is {ty}; give a network that takes a batch of images in f32"))),
            }
        };
        let mut finder = Finder::new(&graph);
        let mut layers: Vec<FoundLayer> = graph.iter().filter_map(|(id, _)| finder.layer(id, batch)).collect();
        let last = layers.len().saturating_sub(1);
        for (at, layer) in layers.iter_mut().enumerate() {
            layer.reason = match at {
                0 => Some(Reason::First),
                _ if at == last => Some(Reason::Last),
                _ => layer.reason,
            };
        }
        let network = Network { graph, layers, batch };
        if network.terminable().next().is_none() {
            let reasons: Vec<String> =
                network.layers.iter().map(|l| format!("`{}`: {}", l.name, l.reason.map_or("", Reason::text))).collect();
            let which = if reasons.is_empty() { "it has no convolution and no fully connected layer".into() } else { reasons.join("; ") };
            return Err(Error::invalid(format!("no layer of the network can be stopped early: {which}")));
        }
        Ok(network)
    }

    /// Layers that can be stopped.
    pub fn terminable(&self) -> impl Iterator<Item = &FoundLayer> {
        self.layers.iter().filter(|layer| layer.reason.is_none())
    }

    /// Products of all layers on one image.
    pub fn macs(&self) -> u64 {
        self.layers.iter().map(|layer| layer.geometry.macs()).sum()
    }
}

struct Finder<'a> {
    graph: &'a Graph,
    users: Vec<Vec<NodeId>>,
    is_output: Vec<bool>,
    not_negative: Vec<bool>,
}

impl<'a> Finder<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut users = vec![Vec::new(); graph.nodes().len()];
        for (id, node) in graph.iter() {
            node.inputs.iter().for_each(|input| users[input.index()].push(id));
        }
        let mut is_output = vec![false; graph.nodes().len()];
        graph.outputs().iter().for_each(|(_, id)| is_output[id.index()] = true);
        Finder { graph, users, is_output, not_negative: not_negative(graph) }
    }

    /// The layer that `id` is the sum of products of, if it is one.
    fn layer(&mut self, id: NodeId, batch: usize) -> Option<FoundLayer> {
        let node = self.graph.node(id);
        let Op::Prim(prim) = &node.op else { return None };
        let (x, w) = (*node.inputs.first()?, *node.inputs.get(1)?);
        let (of_x, of_w) = (&self.graph.ty(x).shape, &self.graph.ty(w).shape);
        let values = constant(self.graph, w);
        let mut reason = if values.is_none() { Some(Reason::ComputedWeights) } else { None };
        let (geometry, weights) = match prim {
            Prim::Conv { strides, pads_low, pads_high, dilations, groups } => {
                let geometry = Geometry {
                    channels: of_x[1],
                    size: [of_x[2], of_x[3]],
                    outputs: of_w[0],
                    kernel: [of_w[2], of_w[3]],
                    strides: *strides,
                    pads_low: *pads_low,
                    pads_high: *pads_high,
                    dilations: *dilations,
                    groups: *groups,
                };
                (geometry, values.unwrap_or_default())
            }
            Prim::Dot => {
                let (k, n) = (of_w[1], of_w[2]);
                if of_w[0] != 1 || of_x[1] != batch {
                    reason = reason.or(Some(Reason::Shape));
                }
                let columns = values.unwrap_or_default();
                let transposed = if columns.is_empty() { columns } else { (0..n * k).map(|at| columns[at % k * n + at / k]).collect() };
                (Geometry::full(k, n), transposed)
            }
            _ => return None,
        };
        if geometry.taps() > MAX_TAPS || geometry.positions() == 0 {
            reason = reason.or(Some(Reason::Shape));
        }
        if !self.not_negative[x.index()] {
            reason = reason.or(Some(Reason::SignedInput));
        }
        let mut layer = FoundLayer {
            name: self.graph.origins().get(node.origin.0 as usize).cloned().unwrap_or_default(),
            bias: vec![0.0; geometry.outputs],
            geometry,
            weights,
            input: x,
            residual: None,
            result: id,
            reason,
        };
        let found = self.follow(&mut layer);
        layer.reason = layer.reason.or(found);
        Some(layer)
    }

    /// Goes from the sum of products to the ReLU; says what is in the way.
    fn follow(&self, layer: &mut FoundLayer) -> Option<Reason> {
        loop {
            let at = layer.result;
            let &[next] = self.users[at.index()].as_slice() else {
                // Other functions may use what they are of several times.
                let leads_to_relu = self.users[at.index()].iter().any(|&user| {
                    let node = self.graph.node(user);
                    let relu = node.inputs.iter().any(|&input| splat(self.graph, input) == Some(0.0));
                    match node.op {
                        Op::Prim(Prim::Binary(BinaryOp::Max)) => relu,
                        Op::Prim(Prim::Binary(BinaryOp::Add)) => true,
                        _ => false,
                    }
                });
                return Some(if leads_to_relu { Reason::SharedSum } else { Reason::NoRelu });
            };
            if self.is_output[at.index()] {
                return Some(Reason::SharedSum);
            }
            let node = self.graph.node(next);
            let other = node.inputs.iter().copied().find(|input| *input != at);
            match (&node.op, other) {
                (Op::Prim(Prim::Reshape(shape)), None) => {
                    // The sums of a fully connected layer lose the dimension of 1 that products of matrices have.
                    if layer.geometry.positions() != 1 || shape.last() != Some(&layer.geometry.outputs) || shape.len() < 2 {
                        return Some(Reason::NoRelu);
                    }
                }
                (Op::Prim(Prim::Binary(op @ (BinaryOp::Add | BinaryOp::Sub))), Some(other)) => {
                    let is_left = node.inputs[0] == at;
                    match per_channel(self.graph, other, layer.geometry.outputs) {
                        Some(values) if is_left || *op == BinaryOp::Add => {
                            let sign = if *op == BinaryOp::Sub { -1.0 } else { 1.0 };
                            layer.bias.iter_mut().zip(values).for_each(|(bias, value)| *bias += sign * value);
                        }
                        None if *op == BinaryOp::Add && layer.residual.is_none() => layer.residual = Some(other),
                        _ => return Some(Reason::NoRelu),
                    }
                }
                (Op::Prim(Prim::Binary(BinaryOp::Max)), Some(other)) if splat(self.graph, other) == Some(0.0) => {
                    layer.result = next;
                    return None;
                }
                _ => return Some(Reason::NoRelu),
            }
            layer.result = next;
        }
    }
}

/// Which values are known not to be negative.
fn not_negative(graph: &Graph) -> Vec<bool> {
    let mut known: Vec<bool> = Vec::with_capacity(graph.nodes().len());
    for (_, node) in graph.iter() {
        let of = |at: usize| node.inputs.get(at).is_some_and(|input| known[input.index()]);
        let all = || (0..node.inputs.len()).all(of);
        let Op::Prim(prim) = &node.op else {
            known.push(false);
            continue;
        };
        known.push(match prim {
            Prim::Constant(constant) => constant.tensor().to_f64().iter().all(|value| *value >= 0.0),
            Prim::Binary(BinaryOp::Max) => of(0) || of(1),
            Prim::Binary(BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Div) => all(),
            Prim::Reshape(_) | Prim::Transpose(_) | Prim::Broadcast { .. } | Prim::Slice { .. } | Prim::Window { .. } => of(0),
            Prim::Concat { .. } => all(),
            // Padding of a largest value is the lowest number, and every window of a pool holds an element.
            Prim::Pad { .. } => of(0) && (of(1) || only_largest(graph, node.inputs[1])),
            Prim::Reduce { op: ReduceOp::Sum | ReduceOp::Max | ReduceOp::Product, .. } => of(0),
            _ => false,
        });
    }
    known
}

/// Whether a padding value is what largest values ignore.
fn only_largest(graph: &Graph, value: NodeId) -> bool {
    splat(graph, value) == Some(f64::NEG_INFINITY)
}

/// The elements of a constant.
fn constant(graph: &Graph, id: NodeId) -> Option<Vec<f32>> {
    let node = graph.node(id);
    match &node.op {
        Op::Prim(Prim::Constant(constant)) => constant.tensor().as_slice::<f32>().ok().map(<[f32]>::to_vec),
        Op::Prim(Prim::Reshape(_)) => constant(graph, node.inputs[0]),
        Op::Prim(Prim::Transpose(perm)) => {
            let values = constant(graph, node.inputs[0])?;
            let strides = crate::tensor::strides(&graph.ty(node.inputs[0]).shape);
            let shape = &node.ty.shape;
            let place = |mut at: usize| {
                let mut place = 0;
                for d in (0..shape.len()).rev() {
                    place += at % shape[d] * strides[perm[d]];
                    at /= shape[d];
                }
                place
            };
            Some((0..values.len()).map(|at| values[place(at)]).collect())
        }
        _ => None,
    }
}

/// The one value of a node, seen through views.
fn splat(graph: &Graph, id: NodeId) -> Option<f64> {
    let node = graph.node(id);
    match &node.op {
        Op::Prim(Prim::Constant(constant)) => constant.splat(),
        Op::Prim(Prim::Broadcast { .. } | Prim::Reshape(_)) => splat(graph, node.inputs[0]),
        _ => None,
    }
}

/// The values of a constant that varies along dimension 1 only.
fn per_channel(graph: &Graph, id: NodeId, channels: usize) -> Option<Vec<f32>> {
    if let Some(value) = splat(graph, id) {
        return Some(vec![value as f32; channels]);
    }
    let node = graph.node(id);
    let (base, dims): (NodeId, Vec<usize>) = match &node.op {
        Op::Prim(Prim::Broadcast { dims, .. }) => (node.inputs[0], dims.clone()),
        Op::Prim(Prim::Constant(_)) => (id, (0..node.ty.rank()).collect()),
        _ => return None,
    };
    let fits = graph.ty(base).shape.iter().zip(&dims).all(|(&size, &dim)| size == 1 || dim == 1);
    constant(graph, base).filter(|values| fits && values.len() == channels)
}
