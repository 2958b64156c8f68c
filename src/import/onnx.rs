//! ONNX models as graphs.
//!
//! A model is imported whole or not at all: operators that are not supported are listed together before any work. 64-bit integers become 32-bit
//! ones where every value fits. Operator sets 7 to 23 are read; a newer one is read by the rules of 23, with a warning on the log. What a model computes from shapes alone is known here, so that shapes are numbers in the graph.

mod activation;
mod elementwise;
mod indexing;
mod integer;
mod layers;
mod loss;
mod movement;
mod narrow;
mod node;
mod proto;
mod quantize;
mod recurrent;
mod reduce;
mod sampling;
mod tensor;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use rten_onnx::onnx::{DataType, GraphProto, ModelProto, NodeProto, ValueInfoProto};

use crate::error::{Error, Result};
use crate::files;
use crate::graph::{Graph, TensorType};
use crate::tensor::{HostTensor, num_elems};
use kernels_gen::DType;
use node::{Call, Handler, Importer, Val};

pub use tensor::parse_tensor;

/// Oldest operator set that is read: before it, broadcasting had other rules.
const OLDEST_OPSET: i64 = 7;

/// Newest operator set whose operators are read by their rules. A newer one changes few operators, so that a model of it is read with a warning.
const NEWEST_OPSET: i64 = 23;

/// What a model leaves open.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportOptions {
    /// Size of a first dimension that the model leaves open.
    pub batch: Option<usize>,
    /// Sizes of the model's named dimensions.
    pub dims: HashMap<String, usize>,
    /// Shapes of inputs, by name; they must agree with the sizes the model states.
    pub shapes: HashMap<String, Vec<usize>>,
    /// Inputs whose values are fixed, by name: they become constants. Operands that shapes depend on (the axes of a reduction, the shape of a
    /// Reshape) must be known at import, and a model may leave them to its inputs.
    pub constants: HashMap<String, HostTensor>,
}

/// An imported model.
#[derive(Debug, Clone)]
pub struct Model {
    /// What it computes.
    pub graph: Graph,
    /// Inputs with their types, in the order of the model.
    pub inputs: Vec<(String, TensorType)>,
    /// Outputs with their types, in the order of the model.
    pub outputs: Vec<(String, TensorType)>,
    /// Version of the operator set it states.
    pub opset: i64,
}

/// Reads a model from a file, which may be compressed with gzip. Weights stored outside it are read from its folder.
pub fn read(path: impl AsRef<Path>, options: &ImportOptions) -> Result<Model> {
    let path = path.as_ref();
    let bytes = files::read_maybe_gzip(path)?;
    parse(&bytes, path.parent(), options).map_err(|e| e.context(format_args!("`{}`", path.display())))
}

/// Reads a model from the contents of its file; `folder` is where weights stored outside lie.
pub fn parse(bytes: &[u8], folder: Option<&Path>, options: &ImportOptions) -> Result<Model> {
    let model: ModelProto = proto::decode(bytes, "ONNX model")?;
    let graph = model.graph.as_ref().ok_or_else(|| Error::malformed("this is no ONNX model: it holds no graph"))?;
    check_support(graph)?;
    let opset = opset(&model)?;
    let mut importer = Importer::new(opset, folder);
    let mut inputs = Vec::new();
    for tensor in &graph.initializer {
        let name = tensor.name.clone().unwrap_or_default();
        let value = tensor::read(tensor, folder).map_err(|e| e.context(format_args!("initializer `{name}`")))?;
        importer.builder.begin_origin(&name);
        let value = importer.tensor(value)?;
        importer.define(&name, value)?;
        note_type(&mut importer, &name, tensor.data_type);
    }
    let constants: HashSet<&str> = graph.initializer.iter().filter_map(|t| t.name.as_deref()).collect();
    for info in &graph.input {
        let name = info.name.as_deref().unwrap_or_default();
        if constants.contains(name) {
            continue;
        }
        let ty = input_type(name, info, options)?;
        note_type(&mut importer, name, info.r#type.as_ref().and_then(|t| t.tensor_type.as_ref()).and_then(|t| t.elem_type));
        importer.builder.begin_origin(name);
        let id = match options.constants.get(name) {
            Some(tensor) if TensorType::new(tensor.dtype(), tensor.shape()) != ty => {
                return Err(Error::invalid(format!(
                    "input `{name}` is fixed as {}{:?}, the model takes {ty}",
                    tensor.dtype(),
                    tensor.shape()
                )));
            }
            Some(tensor) => importer.builder.constant(tensor.clone())?,
            None => {
                inputs.push((name.to_string(), ty.clone()));
                importer.builder.input(name, ty)?
            }
        };
        importer.define(name, Val::Node(id))?;
    }
    let named: Vec<&str> = graph.input.iter().filter_map(|i| i.name.as_deref()).filter(|n| !constants.contains(n)).collect();
    if let Some(unknown) = options.shapes.keys().chain(options.constants.keys()).find(|k| !named.contains(&k.as_str())) {
        return Err(Error::invalid(format!("the model has no input `{unknown}`; its inputs are `{}`", named.join("`, `"))));
    }
    let open = open_dims(graph);
    if let Some(unknown) = options.dims.keys().find(|k| !open.contains(k.as_str())) {
        let names = open.into_iter().collect::<Vec<_>>().join("`, `");
        let names = if names.is_empty() { "it names none".to_string() } else { format!("its inputs name `{names}`") };
        return Err(Error::invalid(format!("the model has no open dimension `{unknown}`; {names}")));
    }
    import_nodes(&mut importer, graph)?;
    let mut outputs = Vec::new();
    for info in &graph.output {
        let name = info.name.as_deref().unwrap_or_default();
        let value = importer.lookup(name).ok_or_else(|| Error::malformed(format!("no node produces the output `{name}`")))?;
        let id = importer.node(&value.clone()).map_err(|e| e.context(format_args!("output `{name}`")))?;
        check_output(info, importer.builder.ty(id)).map_err(|e| e.context(format_args!("output `{name}`")))?;
        importer.builder.output(name, id)?;
        outputs.push((name.to_string(), importer.builder.ty(id).clone()));
    }
    if outputs.is_empty() {
        return Err(Error::malformed("the model has no output"));
    }
    Ok(Model { graph: importer.builder.finish(), inputs, outputs, opset })
}

/// Names that the inputs give to dimensions without a size.
fn open_dims(graph: &GraphProto) -> BTreeSet<&str> {
    let shapes = graph.input.iter().filter_map(|i| i.r#type.as_ref()?.tensor_type.as_ref()?.shape.as_ref());
    let open = shapes.flat_map(|shape| &shape.dim).filter(|dim| dim.dim_value.is_none());
    open.filter_map(|dim| dim.dim_param.as_deref().filter(|name| !name.is_empty())).collect()
}

/// Names of a model's inputs, without those that have an initializer.
pub fn input_names(bytes: &[u8]) -> Result<Vec<String>> {
    let model: ModelProto = proto::decode(bytes, "ONNX model")?;
    let graph = model.graph.ok_or_else(|| Error::malformed("this is no ONNX model: it holds no graph"))?;
    let constants: HashSet<&str> = graph.initializer.iter().filter_map(|t| t.name.as_deref()).collect();
    Ok(graph.input.iter().filter_map(|i| i.name.clone()).filter(|n| !constants.contains(n.as_str())).collect())
}

fn opset(model: &ModelProto) -> Result<i64> {
    let own = model.opset_import.iter().find(|o| is_standard(o.domain.as_deref()));
    let own = own.ok_or_else(|| Error::malformed("the model states no operator set; it is incomplete, or older than operator sets"))?;
    let version = own.version.unwrap_or(1);
    if version < OLDEST_OPSET {
        return Err(Error::unsupported(format!(
            "the model states operator set {version}; {OLDEST_OPSET} and newer are read: convert it with onnx.version_converter"
        )));
    }
    if version > NEWEST_OPSET {
        log::warn!("the model states operator set {version}; {NEWEST_OPSET} is the newest whose rules are known, and it is read by those");
    }
    Ok(version)
}

fn is_standard(domain: Option<&str>) -> bool {
    matches!(domain.unwrap_or_default(), "" | "ai.onnx")
}

fn handler(node: &NodeProto) -> Option<Handler> {
    let op = node.op_type.as_deref().unwrap_or_default();
    match node.domain.as_deref() {
        domain if is_standard(domain) => {}
        Some(integer::MICROSOFT) => return integer::microsoft(op),
        _ => return None,
    }
    elementwise::handler(op)
        .or_else(|| activation::handler(op))
        .or_else(|| movement::handler(op))
        .or_else(|| reduce::handler(op))
        .or_else(|| layers::handler(op))
        .or_else(|| indexing::handler(op))
        .or_else(|| sampling::handler(op))
        .or_else(|| recurrent::handler(op))
        .or_else(|| loss::handler(op))
        .or_else(|| quantize::handler(op))
        .or_else(|| integer::handler(op))
}

/// Lists all operators no handler knows.
fn check_support(graph: &GraphProto) -> Result<()> {
    let unknown: BTreeSet<String> = graph
        .node
        .iter()
        .filter(|node| handler(node).is_none())
        .map(|node| match node.domain.as_deref().unwrap_or_default() {
            "" => node.op_type.clone().unwrap_or_default(),
            domain => format!("{domain}.{}", node.op_type.as_deref().unwrap_or_default()),
        })
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let list = unknown.into_iter().collect::<Vec<_>>().join(", ");
    Err(Error::unsupported(format!("the model uses operators that are not supported: {list}")))
}

/// Notes the element type of a value, where it is none of ours.
fn note_type(importer: &mut Importer, name: &str, ty: Option<DataType>) {
    if let Some(narrow) = ty.and_then(narrow::Narrow::of) {
        importer.narrow.insert(name.to_string(), narrow);
    }
}

/// Refuses an output whose stated type is not that of the value.
fn check_output(info: &ValueInfoProto, found: &TensorType) -> Result<()> {
    let Some(stated) = info.r#type.as_ref().and_then(|t| t.tensor_type.as_ref()) else { return Ok(()) };
    if let Some(elem) = stated.elem_type
        && !tensor::dtype(elem).is_ok_and(|dtype| dtype == found.dtype)
    {
        return Err(Error::malformed(format!("the model states element type {elem}, its nodes compute {found}")));
    }
    let Some(shape) = &stated.shape else { return Ok(()) };
    if shape.dim.len() != found.rank() {
        return Err(Error::malformed(format!("the model states {} dimensions, its nodes compute {found}", shape.dim.len())));
    }
    // A dimension without a value, or with a name, is open.
    let sizes = shape.dim.iter().zip(&found.shape).enumerate().filter_map(|(d, (dim, &size))| Some((d, dim.dim_value?, size)));
    match sizes.into_iter().find(|&(_, value, size)| usize::try_from(value) != Ok(size)) {
        Some((d, value, _)) => Err(Error::malformed(format!("the model states size {value} for dimension {d}, its nodes compute {found}"))),
        None => Ok(()),
    }
}

/// Type of a model's input, its open dimensions filled from the options.
fn input_type(name: &str, info: &ValueInfoProto, options: &ImportOptions) -> Result<TensorType> {
    let fail = |message: String| Error::invalid(format!("input `{name}`: {message}"));
    let Some(ty) = info.r#type.as_ref().and_then(|t| t.tensor_type.as_ref()) else {
        return Err(Error::unsupported(format!("input `{name}` is no tensor; sequences, maps and optional values are not supported")));
    };
    let elem = ty.elem_type.ok_or_else(|| Error::malformed(format!("input `{name}` has no element type")))?;
    let dtype = tensor::dtype(elem).map_err(|e| e.context(format_args!("input `{name}`")))?;
    let fixed = options.constants.get(name).map(|t| t.shape().to_vec());
    let given = fixed.as_ref().or_else(|| options.shapes.get(name));
    let Some(shape) = ty.shape.as_ref() else {
        let shape = given.ok_or_else(|| fail("the model states no shape; give one".to_string()))?;
        num_elems(shape)?;
        return Ok(TensorType::new(dtype, shape.clone()));
    };
    if given.is_some_and(|g| g.len() != shape.dim.len()) {
        return Err(fail(format!("shape {:?} is given, the model states {} dimensions", given.unwrap_or(&Vec::new()), shape.dim.len())));
    }
    let mut sizes = Vec::with_capacity(shape.dim.len());
    for (d, dim) in shape.dim.iter().enumerate() {
        let given = given.map(|g| g[d]);
        let size = match (dim.dim_value, dim.dim_param.as_deref().filter(|p| !p.is_empty())) {
            (Some(value), None) => {
                let size = usize::try_from(value);
                let size = size.map_err(|_| fail(format!("the model states size {value} for dimension {d}; sizes are not negative")))?;
                if given.is_some_and(|g| g != size) {
                    return Err(fail(format!("the model fixes dimension {d} at {size}, {} is given", given.unwrap_or(0))));
                }
                size
            }
            (_, param) => {
                let by_name = param.and_then(|p| options.dims.get(p).copied());
                let batch = if d == 0 { options.batch } else { None };
                given.or(by_name).or(batch).ok_or_else(|| {
                    let which = param.map_or_else(|| "open".to_string(), |p| format!("called `{p}`"));
                    fail(format!("dimension {d} is {which} and has no size; give the input's shape, the dimension's size or, for dimension 0, a batch size"))
                })?
            }
        };
        sizes.push(size);
    }
    num_elems(&sizes).map_err(|e| e.context(format_args!("input `{name}`")))?;
    Ok(TensorType::new(dtype, sizes))
}

/// Imports nodes as their operands become known; those left over wait for themselves or for nothing.
fn import_nodes(importer: &mut Importer, graph: &GraphProto) -> Result<()> {
    let mut waiting: Vec<usize> = (0..graph.node.len()).collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut left = Vec::new();
        for index in waiting {
            let node = &graph.node[index];
            if node.input.iter().all(|name| name.is_empty() || importer.lookup(name).is_some()) {
                import_node(importer, node, index)?;
            } else {
                left.push(index);
            }
        }
        waiting = left;
        if waiting.len() == before {
            return Err(unresolved(importer, graph, &waiting));
        }
    }
    Ok(())
}

fn unresolved(importer: &Importer, graph: &GraphProto, waiting: &[usize]) -> Error {
    let produced: HashSet<&String> = waiting.iter().flat_map(|&i| &graph.node[i].output).collect();
    for &index in waiting {
        let node = &graph.node[index];
        let missing = node.input.iter().find(|n| !n.is_empty() && importer.lookup(n).is_none() && !produced.contains(n));
        if let Some(missing) = missing {
            return Error::malformed(format!(
                "node `{}` uses `{missing}`, which no node, initializer or input provides",
                node_name(node, index)
            ));
        }
    }
    let names = waiting.iter().take(5).map(|&i| node_name(&graph.node[i], i)).collect::<Vec<_>>().join("`, `");
    Error::malformed(format!("the nodes form a cycle; among them are `{names}`"))
}

fn node_name(node: &NodeProto, index: usize) -> String {
    match node.name.as_deref().filter(|n| !n.is_empty()) {
        Some(name) => name.to_string(),
        None => format!("{}_{index}", node.op_type.as_deref().unwrap_or_default()),
    }
}

/// Operators that are imported as several operations, or mix f16 with f32: between conversions of their operands of f16 to f32 and back, so
/// that results are rounded once. The first result has the type of the first operand; of the others only those that stand for an operand of
/// f16 are rounded.
const IN_F32: [&str; 11] = [
    "BatchNormalization",
    "LayerNormalization",
    "RMSNormalization",
    "LRN",
    "MeanVarianceNormalization",
    "LpPool",
    "GlobalLpPool",
    "LpNormalization",
    "Mean",
    "Sum",
    "Pow",
];

/// Runs the handler of an operator; those of [`IN_F32`] with operands of f16 as f32.
fn in_f32(
    importer: &mut Importer,
    op: &str,
    mut inputs: Vec<Option<Val>>,
    run: impl FnOnce(&mut Importer, Vec<Option<Val>>) -> Result<Vec<Val>>,
) -> Result<Vec<Val>> {
    let dtype = |importer: &Importer, value: Option<&Option<Val>>| match value {
        Some(Some(Val::Node(id))) => Some(importer.builder.ty(*id).dtype),
        _ => None,
    };
    let half = |importer: &Importer, value: Option<&Option<Val>>| dtype(importer, value) == Some(DType::F16);
    if !IN_F32.contains(&op) || !inputs.iter().any(|value| half(importer, Some(value))) {
        return run(importer, inputs);
    }
    // Of the further results only the running statistics of a batch are values of an operand.
    let (first, others) = (half(importer, inputs.first()), op == "BatchNormalization" && half(importer, inputs.get(3)));
    for value in inputs.iter_mut().flatten() {
        if let Val::Node(id) = value
            && importer.builder.ty(*id).dtype == DType::F16
        {
            *id = importer.builder.cast(*id, DType::F32)?;
        }
    }
    let mut results = run(importer, inputs)?;
    for (i, result) in results.iter_mut().enumerate() {
        if let Val::Node(id) = result
            && importer.builder.ty(*id).dtype == DType::F32
            && if i == 0 { first } else { others }
        {
            *id = importer.builder.cast(*id, DType::F16)?;
        }
    }
    Ok(results)
}

fn import_node(importer: &mut Importer, node: &NodeProto, index: usize) -> Result<()> {
    let name = node_name(node, index);
    let op = node.op_type.as_deref().unwrap_or_default();
    let handler = handler(node).ok_or_else(|| Error::internal(format!("no handler for {op}")))?;
    importer.builder.begin_origin(&name);
    narrow::check(importer, node).map_err(|e| e.context(format_args!("node `{name}` ({op})")))?;
    let inputs: Vec<Option<Val>> = node.input.iter().map(|n| importer.lookup(n).cloned()).collect();
    let results = in_f32(importer, op, inputs, |importer, inputs| handler(importer, &Call::new(node, inputs)));
    let results = results.map_err(|e| e.context(format_args!("node `{name}` ({op})")))?;
    importer.evaluate_known()?;
    if node.output.is_empty() {
        return Err(Error::malformed(format!("node `{name}` ({op}) has no output")));
    }
    let wanted = node.output.iter().rposition(|o| !o.is_empty()).map_or(0, |i| i + 1);
    if wanted > results.len() {
        return Err(Error::unsupported(format!("node `{name}` ({op}): of its outputs only the first {} are supported", results.len())));
    }
    for (output, value) in node.output.iter().zip(results).filter(|(o, _)| !o.is_empty()) {
        importer.define(output, value)?;
    }
    Ok(())
}
