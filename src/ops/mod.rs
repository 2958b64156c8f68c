//! Operations: type inference, decomposition, reference values and test cases, one file an op family.
//!
//! A family's file holds, from top to bottom: the types its operations take and give, their values by definition, its composites, and an
//! extension trait over [`Value`], so that values of a graph builder and captured tensors get the operation alike.

pub mod activation;
pub mod attention;
mod call;
mod cases;
pub mod conv;
pub mod conv_transpose;
pub mod custom;
pub mod dot;
pub mod einsum;
pub mod elementwise;
pub mod formats;
pub mod gather;
mod half;
pub mod indexing;
pub mod integer;
pub mod loss;
pub mod math;
pub mod norm;
pub mod packing;
pub mod pool;
pub mod quantise;
pub mod quantised;
pub mod random;
pub mod recurrent;
pub mod reduce;
mod reference;
pub mod resize;
pub mod scan;
pub mod scatter;
pub mod shape;
pub mod sort;
pub mod stats;
mod tolerance;
pub mod transformer;
mod value;
pub mod window;

pub(crate) use attention::in_parts as attention_in_parts;
pub use cases::{Fill, InputSpec, Layout, OpCase, cases};
pub use half::Halves;
pub(crate) use half::expand;
pub use reduce::identity as reduce_identity;
pub use reference::{RefTensor, reference, reference_graph};
pub use tolerance::{Difference, Tolerance};
pub use value::Value;

use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Op, Prim, ReduceOp, TensorType, UnaryOp};
use call::Call;

/// Everything that makes operations methods of a [`Value`].
pub mod prelude {
    pub use super::Value;
    pub use super::activation::ActivationOps;
    pub use super::attention::AttentionOps;
    pub use super::conv::ConvOps;
    pub use super::conv_transpose::ConvTransposeOps;
    pub use super::dot::DotOps;
    pub use super::einsum::EinsumOps;
    pub use super::elementwise::ElementwiseOps;
    pub use super::formats::FormatOps;
    pub use super::gather::GatherOps;
    pub use super::indexing::IndexingOps;
    pub use super::integer::IntegerOps;
    pub use super::loss::LossOps;
    pub use super::math::MathOps;
    pub use super::norm::NormOps;
    pub use super::packing::PackingOps;
    pub use super::pool::PoolOps;
    pub use super::quantise::QuantiseOps;
    pub use super::random::RandomOps;
    pub use super::recurrent::RecurrentOps;
    pub use super::reduce::ReduceOps;
    pub use super::resize::ResizeOps;
    pub use super::scan::ScanOps;
    pub use super::scatter::ScatterOps;
    pub use super::shape::ShapeOps;
    pub use super::sort::SortOps;
    pub use super::stats::StatisticOps;
    pub use super::transformer::TransformerOps;
}

/// Name of an operation: the primitive's, or the ONNX name of a composite.
pub fn name(op: &Op) -> &'static str {
    match op {
        Op::Composite(composite) => composite.name(),
        Op::Prim(prim) => match prim {
            Prim::Input { .. } => "Input",
            Prim::Constant(_) => "Constant",
            Prim::Iota { .. } => "Iota",
            Prim::Unary(op) => unary_name(*op),
            Prim::Binary(op) => binary_name(*op),
            Prim::Select => "Select",
            Prim::Cast(_) => "Cast",
            Prim::Reshape(_) => "Reshape",
            Prim::Transpose(_) => "Transpose",
            Prim::Broadcast { .. } => "Broadcast",
            Prim::Slice { .. } => "Slice",
            Prim::Pad { .. } => "Pad",
            Prim::Window { .. } => "Window",
            Prim::Concat { .. } => "Concat",
            Prim::Reduce { op: ReduceOp::Sum, .. } => "ReduceSum",
            Prim::Reduce { op: ReduceOp::Product, .. } => "ReduceProduct",
            Prim::Reduce { op: ReduceOp::Max, .. } => "ReduceMax",
            Prim::Reduce { op: ReduceOp::Min, .. } => "ReduceMin",
            Prim::Dot => "Dot",
            Prim::DotI8 => "DotI8",
            Prim::Attention { .. } => "Attention",
            Prim::Conv { .. } => "Conv",
            Prim::Custom(_) => "Custom",
            Prim::Gather { .. } => "Gather",
            Prim::Scan { op: ReduceOp::Sum, .. } => "ScanSum",
            Prim::Scan { op: ReduceOp::Product, .. } => "ScanProduct",
            Prim::Scan { op: ReduceOp::Max, .. } => "ScanMax",
            Prim::Scan { op: ReduceOp::Min, .. } => "ScanMin",
            Prim::Argsort { .. } => "Argsort",
            Prim::MergeRuns { .. } => "MergeRuns",
            Prim::SearchSorted => "SearchSorted",
            Prim::Segment { op: ReduceOp::Sum, .. } => "SegmentSum",
            Prim::Segment { op: ReduceOp::Product, .. } => "SegmentProduct",
            Prim::Segment { op: ReduceOp::Max, .. } => "SegmentMax",
            Prim::Segment { op: ReduceOp::Min, .. } => "SegmentMin",
        },
    }
}

/// What people know an operation by: the name that a user gave a kernel of their own, else [`name`].
pub fn shown_name(op: &Op) -> &str {
    match op {
        Op::Prim(Prim::Custom(custom)) => custom.op().name(),
        _ => name(op),
    }
}

fn unary_name(op: UnaryOp) -> &'static str {
    match op {
        UnaryOp::Neg => "Neg",
        UnaryOp::Abs => "Abs",
        UnaryOp::Sign => "Sign",
        UnaryOp::Exp => "Exp",
        UnaryOp::Log => "Log",
        UnaryOp::Sqrt => "Sqrt",
        UnaryOp::Sin => "Sin",
        UnaryOp::Cos => "Cos",
        UnaryOp::Tanh => "Tanh",
        UnaryOp::Erf => "Erf",
        UnaryOp::Floor => "Floor",
        UnaryOp::Ceil => "Ceil",
        UnaryOp::Round => "Round",
        UnaryOp::Not => "Not",
        UnaryOp::IsNan => "IsNan",
        UnaryOp::Decode(_) => "Decode",
        UnaryOp::Encode(..) => "Encode",
        UnaryOp::Bits => "Bits",
        UnaryOp::FromBits => "FromBits",
    }
}

fn binary_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "Add",
        BinaryOp::Sub => "Sub",
        BinaryOp::Mul => "Mul",
        BinaryOp::Div => "Div",
        BinaryOp::Rem => "Rem",
        BinaryOp::Pow => "Pow",
        BinaryOp::Max => "Max",
        BinaryOp::Min => "Min",
        BinaryOp::And => "And",
        BinaryOp::Or => "Or",
        BinaryOp::Xor => "Xor",
        BinaryOp::Shl => "Shl",
        BinaryOp::Shr => "Shr",
        BinaryOp::Eq => "Eq",
        BinaryOp::Ne => "Ne",
        BinaryOp::Lt => "Lt",
        BinaryOp::Le => "Le",
        BinaryOp::Gt => "Gt",
        BinaryOp::Ge => "Ge",
        BinaryOp::EncodeStochastic(..) => "EncodeStochastic",
    }
}

/// Type of an operation's result, or an error that names the operation, the given types and what is allowed. A result of more than
/// [`MAX_ELEMS`](crate::tensor::MAX_ELEMS) elements is an error, so that nothing is allocated for it.
pub fn infer(op: &Op, inputs: &[&TensorType]) -> Result<TensorType> {
    let call = Call::new(name(op), inputs);
    let ty = match op {
        Op::Composite(composite) => composite.infer(inputs),
        Op::Prim(prim) => infer_prim(prim, &call),
    }?;
    call.countable("the result", &ty.shape)?;
    Ok(ty)
}

fn infer_prim(prim: &Prim, call: &Call) -> Result<TensorType> {
    match prim {
        Prim::Input { ty, .. } => call.operands([]).map(|_| ty.clone()),
        Prim::Constant(constant) => call.operands([]).map(|_| constant.ty()),
        Prim::Iota { ty, axis } => shape::infer_iota(call, ty, *axis),
        Prim::Unary(op) => elementwise::infer_unary(call, *op),
        Prim::Binary(op) => elementwise::infer_binary(call, *op),
        Prim::Select => elementwise::infer_select(call),
        Prim::Cast(dtype) => call.operands(["x"]).map(|[x]| TensorType::new(*dtype, x.shape.clone())),
        Prim::Reshape(shape) => shape::infer_reshape(call, shape),
        Prim::Transpose(perm) => shape::infer_transpose(call, perm),
        Prim::Broadcast { shape, dims } => shape::infer_broadcast(call, shape, dims),
        Prim::Slice { starts, steps, sizes } => shape::infer_slice(call, starts, steps, sizes),
        Prim::Pad { low, high } => shape::infer_pad(call, low, high),
        Prim::Window { sizes, strides, dilations } => window::infer_window(call, sizes, strides, dilations),
        Prim::Concat { axis } => shape::infer_concat(call, *axis),
        Prim::Reduce { op, axes } => reduce::infer_reduce(call, *op, axes),
        Prim::Dot => dot::infer_dot(call),
        Prim::DotI8 => dot::infer_dot_i8(call),
        Prim::Attention { .. } => attention::infer_attention(call),
        Prim::Conv { strides, pads_low, pads_high, dilations, groups } => {
            conv::infer_conv(call, &conv::ConvSpec::new(strides, pads_low, pads_high, dilations, *groups))
        }
        Prim::Custom(custom) => custom::infer_custom(call, custom),
        Prim::Gather { axis } => gather::infer_gather(call, *axis),
        Prim::Scan { axis, .. } => scan::infer_scan(call, *axis),
        Prim::Argsort { run, .. } => sort::infer_argsort(call, *run),
        Prim::MergeRuns { run, .. } => sort::infer_merge(call, *run),
        Prim::SearchSorted => sort::infer_search(call),
        Prim::Segment { block, .. } => scatter::infer_segment(call, *block),
    }
}

/// NumPy broadcasting: shapes are aligned at their ends, and in each dimension the sizes are equal or 1.
pub fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Vec<usize>> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut result = vec![1; rank];
    for shape in shapes {
        for (out, &size) in result[rank - shape.len()..].iter_mut().zip(*shape) {
            if *out == 1 {
                *out = size;
            } else if size != 1 && size != *out {
                let list = shapes.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(" and ");
                return Err(Error::invalid(format!(
                    "shapes {list} do not broadcast: aligned at their ends, sizes must be equal or 1 ({size} meets {out})"
                )));
            }
        }
    }
    Ok(result)
}
