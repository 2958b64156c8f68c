//! What the handlers of operators work with: the graph under construction, and one node's operands and attributes.

use std::collections::HashMap;
use std::path::Path;

use rten_onnx::onnx::{AttributeProto, NodeProto, TensorProto};

use super::narrow::Narrow;
use super::tensor::{self, Tensor};
use crate::error::{Error, Result};
use crate::graph::{GraphBuilder, NodeId, Op, Prim};
use crate::ops::shape::resolve_axis;
use crate::ops::{RefTensor, reference};
use crate::tensor::HostTensor;

/// Makes the results of one node.
pub(super) type Handler = fn(&mut Importer, &Call) -> Result<Vec<Val>>;

/// Elements up to which a value is computed at import when its operands are known: shapes and parameters, not weights.
const KNOWN_ELEMS: usize = 1024;

/// A value of the model.
#[derive(Debug, Clone)]
pub(super) enum Val {
    /// A node of the graph.
    Node(NodeId),
    /// 64-bit integers that do not fit 32 bits: good for parameters (the ends of a slice) only.
    Wide(Vec<i64>),
}

/// The import so far.
pub(super) struct Importer<'a> {
    pub builder: GraphBuilder,
    pub opset: i64,
    pub folder: Option<&'a Path>,
    values: HashMap<String, Val>,
    /// The types of values whose element type is none of ours.
    pub narrow: HashMap<String, Narrow>,
    /// For each node of the graph its value, if it is small and does not depend on an input.
    known: Vec<Option<RefTensor>>,
}

impl<'a> Importer<'a> {
    pub fn new(opset: i64, folder: Option<&'a Path>) -> Self {
        Importer { builder: GraphBuilder::new(), opset, folder, values: HashMap::new(), narrow: HashMap::new(), known: Vec::new() }
    }

    pub fn lookup(&self, name: &str) -> Option<&Val> {
        self.values.get(name)
    }

    /// Gives a value its name, which must be new.
    pub fn define(&mut self, name: &str, value: Val) -> Result<()> {
        if self.values.insert(name.to_string(), value).is_some() {
            return Err(Error::malformed(format!("two values are called `{name}`")));
        }
        Ok(())
    }

    /// A tensor as a value.
    pub fn tensor(&mut self, tensor: Tensor) -> Result<Val> {
        match tensor {
            Tensor::Host(tensor) => self.builder.constant(tensor).map(Val::Node),
            Tensor::Narrow(tensor) => tensor.node(self).map(Val::Node),
            Tensor::Wide(values) => Ok(Val::Wide(values)),
        }
    }

    /// Integers as a constant of one dimension.
    pub fn int_vector(&mut self, values: Vec<i32>) -> Result<NodeId> {
        self.builder.constant(HostTensor::new([values.len()], values)?)
    }

    /// The node of a value.
    pub fn node(&self, value: &Val) -> Result<NodeId> {
        match value {
            Val::Node(id) => Ok(*id),
            Val::Wide(_) => Err(Error::unsupported("64-bit integers that do not fit 32 bits, used as data")),
        }
    }

    /// Computes the small values among the new nodes that do not depend on inputs.
    pub fn evaluate_known(&mut self) -> Result<()> {
        let graph = self.builder.graph();
        for node in &graph.nodes()[self.known.len()..] {
            let operands: Option<Vec<&RefTensor>> = node.inputs.iter().map(|i| self.known[i.index()].as_ref()).collect();
            let value = match (&node.op, operands) {
                (Op::Prim(Prim::Input { .. }), _) | (_, None) => None,
                _ if node.ty.num_elems() > KNOWN_ELEMS => None,
                (op, Some(operands)) => Some(reference(op, &operands)?),
            };
            self.known.push(value);
        }
        Ok(())
    }

    /// The value of a node, if it is known at import.
    pub fn known(&mut self, id: NodeId) -> Result<Option<&RefTensor>> {
        self.evaluate_known()?;
        Ok(self.known.get(id.index()).and_then(Option::as_ref))
    }

    /// Integers that must be known at import.
    pub fn ints(&mut self, value: &Val, role: &str) -> Result<Vec<i64>> {
        match value {
            Val::Wide(values) => Ok(values.clone()),
            Val::Node(id) => {
                let id = *id;
                let known = self.known(id)?.filter(|t| t.dtype.is_int()).map(|t| t.data.iter().map(|&v| v as i64).collect());
                known.ok_or_else(|| {
                    let ty = self.builder.ty(id);
                    Error::unsupported(format!(
                        "{role} ({ty}) must be integers known at import; fix the values of the inputs they depend on"
                    ))
                })
            }
        }
    }

    /// A number that must be known at import.
    pub fn number(&mut self, id: NodeId, role: &str) -> Result<f64> {
        let known = self.known(id)?.filter(|t| t.data.len() == 1).map(|t| t.data[0]);
        known.ok_or_else(|| {
            Error::unsupported(format!("{role} must be one number known at import; fix the values of the inputs it depends on"))
        })
    }

    pub fn rank(&self, id: NodeId) -> usize {
        self.builder.ty(id).rank()
    }

    /// An axis counted from either end.
    pub fn axis(&self, axis: i64, id: NodeId) -> Result<usize> {
        resolve_axis(axis, self.rank(id))
    }
}

/// One node: its operands and attributes.
pub(super) struct Call<'a> {
    proto: &'a NodeProto,
    inputs: Vec<Option<Val>>,
}

impl<'a> Call<'a> {
    pub fn new(proto: &'a NodeProto, inputs: Vec<Option<Val>>) -> Self {
        Call { proto, inputs }
    }

    /// Name of the operator.
    pub fn op(&self) -> &'a str {
        self.proto.op_type.as_deref().unwrap_or_default()
    }

    /// Whether the model uses output `i`.
    pub fn wants(&self, i: usize) -> bool {
        self.proto.output.get(i).is_some_and(|name| !name.is_empty())
    }

    pub fn num_outputs(&self) -> usize {
        self.proto.output.len()
    }

    /// The element type of operand `i`, where it is none of ours.
    pub fn narrow(&self, importer: &Importer, i: usize) -> Option<Narrow> {
        importer.narrow.get(self.proto.input.get(i)?).copied()
    }

    /// Notes the element type of the first result, which is none of ours.
    pub fn makes_narrow(&self, importer: &mut Importer, ty: Narrow) {
        if let Some(name) = self.proto.output.first() {
            importer.narrow.insert(name.clone(), ty);
        }
    }

    /// Operand `i`, if it is given.
    pub fn value(&self, i: usize) -> Option<&Val> {
        self.inputs.get(i).and_then(Option::as_ref)
    }

    /// Operand `i` as a node, if it is given.
    pub fn optional(&self, importer: &Importer, i: usize) -> Result<Option<NodeId>> {
        self.value(i).map(|v| importer.node(v)).transpose()
    }

    /// Operand `i` as a node.
    pub fn node(&self, importer: &Importer, i: usize) -> Result<NodeId> {
        self.optional(importer, i)?.ok_or_else(|| Error::malformed(format!("operand {i} is missing")))
    }

    /// All operands as nodes, none left out.
    pub fn nodes(&self, importer: &Importer) -> Result<Vec<NodeId>> {
        (0..self.inputs.len()).map(|i| self.node(importer, i)).collect()
    }

    fn attribute(&self, name: &str) -> Option<&'a AttributeProto> {
        self.proto.attribute.iter().find(|a| a.name.as_deref() == Some(name))
    }

    pub fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).and_then(|a| a.i).unwrap_or(default)
    }

    pub fn optional_int(&self, name: &str) -> Option<i64> {
        self.attribute(name).and_then(|a| a.i)
    }

    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.int(name, default as i64) != 0
    }

    pub fn float(&self, name: &str, default: f32) -> f32 {
        self.optional_float(name).unwrap_or(default)
    }

    pub fn optional_float(&self, name: &str) -> Option<f32> {
        self.attribute(name).and_then(|a| a.f)
    }

    pub fn floats(&self, name: &str) -> Option<Vec<f32>> {
        self.attribute(name).map(|a| a.floats.clone())
    }

    pub fn string(&self, name: &str) -> &'a str {
        self.attribute(name).and_then(|a| a.s.as_deref()).unwrap_or_default()
    }

    /// Texts; none where the attribute is left out.
    pub fn strings(&self, name: &str) -> Option<&'a [String]> {
        self.attribute(name).map(|a| a.strings.as_slice())
    }

    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        self.attribute(name).map(|a| a.ints.clone())
    }

    /// Integers that are sizes: not negative.
    pub fn sizes(&self, name: &str) -> Result<Option<Vec<usize>>> {
        let Some(ints) = self.ints(name) else { return Ok(None) };
        let sizes = ints.iter().map(|&v| usize::try_from(v)).collect::<Result<Vec<_>, _>>();
        sizes.map(Some).map_err(|_| Error::unsupported(format!("{name} {ints:?}; they must not be negative")))
    }

    pub fn tensor(&self, name: &str) -> Option<&'a TensorProto> {
        self.attribute(name).and_then(|a| a.t.as_ref())
    }

    /// Integers given as an attribute in old operator sets and as operand `i` in new ones.
    pub fn ints_of(&self, importer: &mut Importer, name: &str, i: usize) -> Result<Option<Vec<i64>>> {
        match self.value(i) {
            Some(value) => importer.ints(value, name).map(Some),
            None => Ok(self.ints(name)),
        }
    }

    /// A tensor attribute as a value.
    pub fn tensor_value(&self, importer: &mut Importer, name: &str) -> Result<Option<Val>> {
        let Some(proto) = self.tensor(name) else { return Ok(None) };
        let tensor = tensor::read(proto, importer.folder)?;
        importer.tensor(tensor).map(Some)
    }
}

/// One result that is a node.
pub(super) fn one(id: NodeId) -> Result<Vec<Val>> {
    Ok(vec![Val::Node(id)])
}
