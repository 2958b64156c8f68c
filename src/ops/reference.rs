//! Values by definition, on the host, in f64: the oracle of every test.

use crate::error::{Error, Result};
use crate::graph::{Graph, Op, Prim, TensorType};
use crate::ops::{attention, conv, dot, elementwise, gather, infer, name, reduce, scan, scatter, shape, sort, window};
use crate::tensor::{HostTensor, num_elems};
use kernels_gen::DType;

/// A tensor of reference values. Each element type is exact in `f64`: integers hold whole numbers in the type's range, truth values 0 or
/// 1. Values of f32 are not rounded to the type, those of f16 are by the operation that computes them.
#[derive(Debug, Clone, PartialEq)]
pub struct RefTensor {
    /// Element type the values stand for.
    pub dtype: DType,
    /// Sizes of the dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Elements, row-major.
    pub data: Vec<f64>,
}

impl RefTensor {
    /// A tensor; the number of elements must be that of the shape.
    pub fn new(dtype: DType, shape: impl Into<Vec<usize>>, data: Vec<f64>) -> Result<Self> {
        let shape = shape.into();
        if num_elems(&shape)? != data.len() {
            return Err(Error::invalid(format!("shape {shape:?} does not have the {} elements that are given", data.len())));
        }
        Ok(RefTensor { dtype, shape, data })
    }

    /// The values of a host tensor.
    pub fn from_host(tensor: &HostTensor) -> Self {
        RefTensor { dtype: tensor.dtype(), shape: tensor.shape().to_vec(), data: tensor.to_f64() }
    }

    /// The values rounded to the element type.
    pub fn to_host(&self) -> Result<HostTensor> {
        HostTensor::from_f64(self.dtype, self.shape.clone(), &self.data)
    }

    /// Element type and shape.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype, self.shape.clone())
    }

    /// Each element through `f`, as `dtype`.
    pub(crate) fn map(&self, dtype: DType, f: impl Fn(f64) -> f64) -> RefTensor {
        RefTensor { dtype, shape: self.shape.clone(), data: self.data.iter().map(|&x| f(x)).collect() }
    }

    /// The elements `data[offset + sum(index * strides)]` for each index of `shape`.
    pub(crate) fn strided(&self, shape: &[usize], offset: usize, strides: &[isize]) -> RefTensor {
        let total = shape.iter().product();
        let mut data = Vec::with_capacity(total);
        let mut index = vec![0usize; shape.len()];
        let mut at = offset as isize;
        while data.len() < total {
            data.push(self.data[at as usize]);
            for d in (0..shape.len()).rev() {
                index[d] += 1;
                at += strides[d];
                if index[d] < shape[d] {
                    break;
                }
                at -= strides[d] * shape[d] as isize;
                index[d] = 0;
            }
        }
        RefTensor { dtype: self.dtype, shape: shape.to_vec(), data }
    }

    /// Row-major strides.
    pub(crate) fn strides(&self) -> Vec<isize> {
        crate::tensor::strides(&self.shape).into_iter().map(|s| s as isize).collect()
    }
}

/// The value of one operation; types are checked first.
pub fn reference(op: &Op, inputs: &[&RefTensor]) -> Result<RefTensor> {
    let types: Vec<TensorType> = inputs.iter().map(|t| t.ty()).collect();
    let ty = infer(op, &types.iter().collect::<Vec<_>>())?;
    // A user's kernel reads and writes f16 by itself.
    let own = matches!(op, Op::Prim(Prim::Custom(_)));
    if own || ty.dtype != DType::F16 && types.iter().all(|t| t.dtype != DType::F16) {
        return unrounded(op, inputs, ty);
    }
    // Operands are widened, and the result is rounded once.
    let wide = |dtype: DType| if dtype == DType::F16 { DType::F32 } else { dtype };
    let widened: Vec<RefTensor> = inputs.iter().map(|t| RefTensor { dtype: wide(t.dtype), ..(*t).clone() }).collect();
    let value = unrounded(op, &widened.iter().collect::<Vec<_>>(), TensorType::new(wide(ty.dtype), ty.shape))?;
    if ty.dtype != DType::F16 {
        return Ok(value);
    }
    Ok(value.map(DType::F16, |x| half::f16::from_f32(x as f32).to_f64()))
}

fn unrounded(op: &Op, inputs: &[&RefTensor], ty: TensorType) -> Result<RefTensor> {
    let prim = match op {
        Op::Composite(composite) => return composite.reference(inputs),
        Op::Prim(prim) => prim,
    };
    Ok(match prim {
        Prim::Input { name, .. } => return Err(Error::internal(format!("input `{name}` has no value by itself"))),
        Prim::Constant(constant) => RefTensor::from_host(constant.tensor()),
        Prim::Iota { axis, .. } => shape::iota(ty, *axis),
        Prim::Unary(op) => elementwise::unary(*op, inputs[0], ty.dtype),
        Prim::Binary(op) => elementwise::binary(*op, inputs[0], inputs[1], ty.dtype),
        Prim::Select => elementwise::select(inputs[0], inputs[1], inputs[2]),
        Prim::Cast(dtype) => elementwise::cast(inputs[0], *dtype),
        Prim::Reshape(shape) => RefTensor { shape: shape.clone(), ..inputs[0].clone() },
        Prim::Transpose(perm) => shape::transpose(inputs[0], perm),
        Prim::Broadcast { shape, dims } => shape::broadcast(inputs[0], shape, dims),
        Prim::Slice { starts, steps, sizes } => shape::slice(inputs[0], starts, steps, sizes),
        Prim::Pad { low, .. } => shape::pad(inputs[0], inputs[1], low, ty),
        Prim::Window { sizes, strides, dilations } => window::window(inputs[0], &ty.shape, sizes.len(), strides, dilations),
        Prim::Concat { axis } => shape::concat(inputs, *axis, ty),
        Prim::Reduce { op, axes } => reduce::reduce(*op, inputs[0], axes),
        Prim::Dot => dot::dot(inputs[0], inputs[1], ty),
        Prim::DotI8 => dot::dot_i8(inputs[0], inputs[1], ty),
        Prim::Attention { scale, causal } => attention::attention(inputs, *scale, *causal, ty)?,
        Prim::Conv { strides, pads_low, pads_high, dilations, groups } => {
            conv::conv(inputs[0], inputs[1], &conv::ConvSpec::new(strides, pads_low, pads_high, dilations, *groups), ty)
        }
        Prim::Custom(custom) => custom.reference(inputs, ty)?,
        Prim::Gather { axis } => gather::gather(inputs[0], inputs[1], *axis, ty),
        Prim::Scan { op, axis } => scan::scan(*op, inputs[0], *axis),
        Prim::Argsort { run, descending } => sort::argsort(inputs[0], *run, *descending, ty),
        Prim::MergeRuns { run, descending } => sort::merge(inputs[0], inputs[1], *run, *descending, ty),
        Prim::SearchSorted => sort::search(inputs[0], inputs[1]),
        Prim::Segment { op, .. } => scatter::segment(*op, inputs[0], inputs[1], ty),
    })
}

/// The values of a graph's outputs. Each input must be given once, with the type the graph states.
pub fn reference_graph(graph: &Graph, inputs: &[(&str, HostTensor)]) -> Result<Vec<(String, RefTensor)>> {
    if let Some((unknown, _)) = inputs.iter().find(|(name, _)| graph.inputs().all(|(n, _)| n != *name)) {
        let known = graph.inputs().map(|(n, _)| n).collect::<Vec<_>>().join("`, `");
        return Err(Error::invalid(format!("the graph has no input `{unknown}`; its inputs are `{known}`")));
    }
    let mut remaining = graph.use_counts();
    let mut values: Vec<Option<RefTensor>> = Vec::with_capacity(graph.nodes().len());
    for (id, node) in graph.iter() {
        if remaining[id.index()] == 0 {
            values.push(None);
            continue;
        }
        let value = match &node.op {
            Op::Prim(Prim::Input { name, ty }) => bind_input(inputs, name, ty)?,
            op => {
                let operands: Option<Vec<&RefTensor>> = node.inputs.iter().map(|i| values[i.index()].as_ref()).collect();
                let operands = operands.ok_or_else(|| Error::internal(format!("an operand of %{} has no value", id.0)))?;
                reference(op, &operands).map_err(|e| e.context(format_args!("%{} ({})", id.0, name(op))))?
            }
        };
        values.push(Some(value));
        for operand in &node.inputs {
            remaining[operand.index()] -= 1;
            if remaining[operand.index()] == 0 {
                values[operand.index()] = None;
            }
        }
    }
    let outputs = graph.outputs().iter().map(|(name, id)| {
        let value = values[id.index()].clone();
        value.map(|v| (name.clone(), v)).ok_or_else(|| Error::internal(format!("output `{name}` has no value")))
    });
    outputs.collect()
}

fn bind_input(inputs: &[(&str, HostTensor)], name: &str, ty: &TensorType) -> Result<RefTensor> {
    let given: Vec<&HostTensor> = inputs.iter().filter(|(n, _)| *n == name).map(|(_, t)| t).collect();
    let [tensor] = given[..] else {
        return Err(Error::invalid(format!("input `{name}` ({ty}) must be given once, it is given {} times", given.len())));
    };
    let value = RefTensor::from_host(tensor);
    if value.ty() != *ty {
        return Err(Error::invalid(format!("input `{name}` is {}, the graph takes {ty}", value.ty())));
    }
    Ok(value)
}
