//! Weight-only quantisation: products of a model on packed weights, which kernels unpack as they load them. All else stays f32.
//!
//! A layer is a `Conv`, `Gemm` or `MatMul` whose second operand is a constant of f32, as it is or seen through reshapes and transposes. Its weights become
//! a matrix with a row for each output: `[o, i / groups * kh * kw]` of a convolution, `[n, k]` of a matrix product. The operation stays and gets
//! [`Dequantise`](crate::ops::quantised::Dequantise) of that matrix, transposed or reshaped to what the weights were. Weights under a Hadamard
//! transform are turned back by a small product in each run.
//!
//! Layers are called by the nodes of the model they stem from; where several have one name, `#2`, `#3`... stand behind it.

use std::collections::{HashMap, HashSet};

use crate::capture::{Traced, capture};
use crate::compiler::passes::{eliminate_dead_code, rewrite};
use crate::error::{Error, Result};
use crate::graph::{Graph, GraphBuilder, NodeId, Op, Prim, TensorType, WeightLayout};
use crate::ops::prelude::*;
use crate::ops::quantised::{Dequantise, Packed};
use crate::ops::{self, RefTensor};
use crate::stats::relative_error;
use crate::tensor::quantised::{Calibration, QuantiseOptions, Quantised};
use crate::tensor::scheme::Scheme;
use crate::tensor::{HostTensor, can_be_counted, num_elems};
use kernels_gen::DType;
use kernels_gen::formats::Format;

/// What a quantisation depends on beside the model and the scheme.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WeightOptions {
    /// Seed of rounding by chance and of Hadamard transforms; each layer has its own stream of it.
    pub seed: u64,
    /// How the ranges of groups are found.
    pub calibration: Calibration,
    /// Names of layers that stay f32.
    pub skip: Vec<String>,
}

/// The packed weights of a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Name.
    pub name: String,
    /// Operation: `Conv`, `Gemm` or `MatMul`.
    pub op: String,
    /// Shape of the weights in the model.
    pub shape: Vec<usize>,
    /// How they lie there.
    pub layout: WeightLayout,
    /// How they are stored.
    pub scheme: Scheme,
    /// Rows of the stored matrix.
    pub rows: usize,
    /// Numbers of a row.
    pub k: usize,
    /// Seed of the Hadamard transform, if the scheme has one.
    pub seed: u64,
    /// The operands of [`Dequantise`].
    pub operands: Vec<HostTensor>,
}

/// How far the weights of a layer are from those of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// `||stored - given|| / ||given||`, 0 where both are all zeros and infinite where only the given ones are.
    pub rel_error: f64,
    /// `||given||`.
    pub norm: f64,
    /// Norm of what quantisation changed.
    pub distance: f64,
}

/// A model with packed weights.
#[derive(Debug, Clone)]
pub struct QuantisedModel {
    /// The model on packed weights, with the inputs and outputs that it had.
    pub graph: Graph,
    /// Its layers, in the order of the graph.
    pub layers: Vec<Layer>,
    /// The error of each.
    pub errors: Vec<Measured>,
    /// Layers that were left out.
    pub skipped: Vec<String>,
}

impl QuantisedModel {
    /// The relative error of all weights that were quantised, as one vector.
    pub fn rel_error(&self) -> f64 {
        let square = |sum: f64, x: f64| sum + x * x;
        // A layer that was exact adds nothing, also where it is all zeros.
        let off = self.errors.iter().map(|e| e.distance).fold(0.0, square).sqrt();
        let norm = self.errors.iter().map(|e| e.norm).fold(0.0, square).sqrt();
        if off == 0.0 { 0.0 } else { off / norm }
    }
}

/// A layer of a graph.
struct Site {
    name: String,
    op: &'static str,
    node: NodeId,
    layout: WeightLayout,
    weights: HostTensor,
}

/// The graph with the weights of its layers stored as `scheme` says.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a scheme without codes, a calibration that the scheme has no use for, a
/// graph without layers, names to skip that no layer has or that leave none, and weights that are NaN or infinite.
pub fn quantise(graph: &Graph, scheme: &Scheme, options: &WeightOptions) -> Result<QuantisedModel> {
    check(scheme, options.calibration)?;
    let graph = eliminate_dead_code(graph)?;
    let sites = sites(&graph)?;
    let names = || sites.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join("`, `");
    if sites.is_empty() {
        return Err(Error::invalid(
            "the model has no Conv, Gemm or MatMul whose weights are constants of f32: there is nothing to quantise",
        ));
    }
    if let Some(unknown) = options.skip.iter().find(|skip| sites.iter().all(|site| site.name != **skip)) {
        return Err(Error::invalid(format!("no layer is called `{unknown}`, which is to be left out; the layers are `{}`", names())));
    }
    let (mut layers, mut errors, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for (at, site) in sites.iter().enumerate() {
        if options.skip.contains(&site.name) {
            skipped.push(site.name.clone());
            continue;
        }
        let (layer, error) = site.quantise(scheme, options, at as u64).map_err(|e| e.context(format_args!("layer `{}`", site.name)))?;
        layers.push(layer);
        errors.push(error);
    }
    if layers.is_empty() {
        return Err(Error::invalid(format!("every layer is left out (`{}`): there is nothing to quantise", names())));
    }
    let graph = replace(&graph, &sites, &layers)?;
    Ok(QuantisedModel { graph, layers, errors, skipped })
}

/// The graph with `layers`, from a quantisation of the same model, in place of its weights.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the graph has no such layer, or one with other weights.
pub fn apply(graph: &Graph, layers: &[Layer]) -> Result<Graph> {
    let graph = eliminate_dead_code(graph)?;
    let sites = sites(&graph)?;
    let mut seen = HashSet::new();
    for layer in layers {
        let fault = |what: String| Error::invalid(format!("weights of layer `{}`: {what}; quantise the model again", layer.name));
        layer.check()?;
        let site = sites.iter().find(|site| site.name == layer.name).ok_or_else(|| fault("the model has no such layer".into()))?;
        if (site.weights.shape(), site.layout, site.op) != (&layer.shape[..], layer.layout, &layer.op[..]) {
            let (shape, own) = (&layer.shape, site.weights.shape());
            return Err(fault(format!("they are {shape:?} of a {}, in the model they are {own:?} of a {}", layer.op, site.op)));
        }
        if !seen.insert(&layer.name) {
            return Err(fault("they are given twice".into()));
        }
    }
    replace(&graph, &sites, layers)
}

/// Refuses what has no meaning for weights.
fn check(scheme: &Scheme, calibration: Calibration) -> Result<()> {
    scheme.check()?;
    let Some(format) = scheme.format() else {
        return Err(Error::invalid(format!("`{scheme}` has no codes; name a scheme that has, such as int8-channel, int4-group32 or nf4")));
    };
    let fault = |why: &str| Err(Error::invalid(format!("calibration {calibration} of `{scheme}`: {why}")));
    match calibration {
        Calibration::Absmax => Ok(()),
        _ if scheme.scaling.is_none() => fault("the scheme has no scales; leave the calibration out"),
        Calibration::Percentile(_) if matches!(format, Format::Ternary | Format::Binary) => {
            fault("their scales are means of magnitudes; use absmax or mse")
        }
        _ => Ok(()),
    }
}

/// All layers, in the order of the graph.
fn sites(graph: &Graph) -> Result<Vec<Site>> {
    let mut sites = Vec::new();
    let mut taken: HashSet<String> = HashSet::new();
    for (id, node) in graph.iter() {
        let Op::Composite(composite) = &node.op else { continue };
        let (Some(layout), Some(&operand)) = (composite.weights(), node.inputs.get(1)) else { continue };
        let ty = graph.ty(operand);
        // A product by a vector, or by several matrices, is no layer.
        let fits = ty.dtype == DType::F32 && ty.num_elems() > 0 && (layout == WeightLayout::Rows || ty.rank() == 2);
        let Some(weights) = constant(graph, operand)?.filter(|_| fits) else { continue };
        let origin = graph.origins().get(node.origin.0 as usize).map_or("", String::as_str);
        let mut name = origin.to_string();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            name = format!("{origin}#{number}");
        }
        sites.push(Site { name, op: composite.name(), node: id, layout, weights });
    }
    Ok(sites)
}

/// The value of a constant, seen through reshapes and transposes.
fn constant(graph: &Graph, id: NodeId) -> Result<Option<HostTensor>> {
    let node = graph.node(id);
    match &node.op {
        Op::Prim(Prim::Constant(constant)) => Ok(Some(constant.tensor().as_ref().clone())),
        Op::Prim(Prim::Reshape(_) | Prim::Transpose(_)) => {
            let Some(below) = constant(graph, node.inputs[0])? else { return Ok(None) };
            ops::reference(&node.op, &[&RefTensor::from_host(&below)])?.to_host().map(Some)
        }
        _ => Ok(None),
    }
}

/// Rows and numbers of a row of the matrix that weights of this shape are stored as.
fn matrix_shape(shape: &[usize], layout: WeightLayout) -> Option<[usize; 2]> {
    match (layout, shape) {
        (WeightLayout::Rows, [rows, rest @ ..]) => Some([*rows, num_elems(rest).ok()?]),
        (WeightLayout::Columns, [k, rows]) => Some([*rows, *k]),
        _ => None,
    }
}

impl Site {
    fn quantise(&self, scheme: &Scheme, options: &WeightOptions, number: u64) -> Result<(Layer, Measured)> {
        let shape = self.weights.shape().to_vec();
        let [rows, k] = matrix_shape(&shape, self.layout).ok_or_else(|| Error::internal(format!("weights of shape {shape:?}")))?;
        let given = self.weights.as_slice::<f32>()?;
        let values: Vec<f32> = match self.layout {
            WeightLayout::Rows => given.to_vec(),
            WeightLayout::Columns => (0..rows * k).map(|i| given[i % k * rows + i / k]).collect(),
        };
        let of_layer = QuantiseOptions { seed: options.seed, tensor: number, calibration: options.calibration };
        if values.iter().any(|v| !v.is_finite()) {
            return Err(Error::invalid(
                "its weights hold NaN or infinities, which no code stands for: repair the model, or leave the layer out (--skip)",
            ));
        }
        let matrix = Quantised::new(&values, rows, k, scheme, &of_layer)?;
        let stored = matrix.dequantise();
        if matrix.oddities().num_infinite > 0 || stored.iter().any(|v| !v.is_finite()) {
            let most = values.iter().fold(0.0f32, |most, v| most.max(v.abs()));
            return Err(Error::invalid(format!(
                "its weights, up to {most:e}, are past what `{scheme}` holds: give another scheme, or leave the layer out (--skip)"
            )));
        }
        let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<f64>>();
        let (given, stored) = (wide(&values), wide(&stored));
        let rel_error = relative_error(&stored, &given);
        let norm = given.iter().map(|v| v * v).sum::<f64>().sqrt();
        let distance = given.iter().zip(&stored).map(|(g, s)| (g - s).powi(2)).sum::<f64>().sqrt();
        let operands = Packed::<Traced>::tensors(&matrix)?;
        let (name, op) = (self.name.clone(), self.op.to_string());
        let layer = Layer { name, op, shape, layout: self.layout, scheme: *scheme, rows, k, seed: options.seed, operands };
        Ok((layer, Measured { rel_error, norm, distance }))
    }
}

impl Layer {
    /// Names of the operands, in their order.
    pub fn operand_names(&self) -> Vec<&'static str> {
        let scaling = self.scheme.scaling;
        let present = [
            ("codes", true),
            ("scales", scaling.is_some()),
            ("zero_points", scaling.is_some_and(|s| s.zero_point)),
            ("tensor_scale", self.scheme.has_tensor_scale()),
        ];
        present.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
    }

    /// Types of the operands. Fails where scheme, shape and matrix do not go together.
    pub fn operand_types(&self) -> Result<Vec<TensorType>> {
        let fault = |what: &str| Err(Error::malformed(format!("layer `{}`: {what}", self.name)));
        if self.rows == 0
            || self.k == 0
            || !can_be_counted(&self.shape)
            || matrix_shape(&self.shape, self.layout) != Some([self.rows, self.k])
        {
            return fault(&format!("weights {:?} are not {} rows of {}", self.shape, self.rows, self.k));
        }
        if self.scheme.format().is_none() {
            return fault(&format!("`{}` has no codes", self.scheme));
        }
        Dequantise { scheme: self.scheme, rows: self.rows, k: self.k }.operands()
    }

    /// Bytes of codes, scales, zero points and the tensor's scale.
    pub fn bytes(&self) -> usize {
        self.operands.iter().map(|tensor| tensor.bytes().len()).sum()
    }

    /// Bytes that the weights take as f32.
    pub fn bytes_f32(&self) -> usize {
        4 * self.rows * self.k
    }

    fn check(&self) -> Result<()> {
        let wanted = self.operand_types()?;
        let given: Vec<TensorType> = self.operands.iter().map(|t| TensorType::new(t.dtype(), t.shape())).collect();
        if given == wanted {
            return Ok(());
        }
        let list = |types: &[TensorType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Err(Error::malformed(format!("layer `{}` in `{}` takes {}, {} are given", self.name, self.scheme, list(&wanted), list(&given))))
    }

    /// The weights as an expression of the packed ones.
    fn weights(&self, builder: &mut GraphBuilder) -> Result<NodeId> {
        let graph = capture(|t| {
            let operands = self.operands.iter().map(|tensor| t.constant(tensor.clone())).collect::<Result<Vec<_>>>()?;
            let numbers = Packed::new(self.scheme, self.rows, self.k, self.seed, operands)?.dequantise()?;
            match self.layout {
                WeightLayout::Rows => numbers.reshape(&self.shape.iter().map(|&d| d as isize).collect::<Vec<_>>()),
                WeightLayout::Columns => numbers.transpose(&[1, 0]),
            }
        })?;
        let mut map: Vec<NodeId> = Vec::with_capacity(graph.nodes().len());
        for node in graph.nodes() {
            let inputs: Vec<NodeId> = node.inputs.iter().map(|i| map[i.index()]).collect();
            map.push(builder.add(node.op.clone(), &inputs)?);
        }
        let result = graph.outputs().first().map(|(_, id)| map[id.index()]);
        result.ok_or_else(|| Error::internal("packed weights without a value"))
    }
}

/// The graph with `layers` in place of the weights of their sites.
fn replace(graph: &Graph, sites: &[Site], layers: &[Layer]) -> Result<Graph> {
    let by_name: HashMap<&str, &Layer> = layers.iter().map(|layer| (layer.name.as_str(), layer)).collect();
    let by_node: HashMap<NodeId, &Layer> = sites.iter().filter_map(|site| Some((site.node, *by_name.get(site.name.as_str())?))).collect();
    let replaced = rewrite(graph, |builder, id, node, inputs| {
        let mut inputs = inputs.to_vec();
        if let (Some(layer), Some(operand)) = (by_node.get(&id), inputs.get_mut(1)) {
            *operand = layer.weights(builder)?;
        }
        builder.add(node.op.clone(), &inputs)
    })?;
    eliminate_dead_code(&replaced)
}
