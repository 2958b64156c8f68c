//! Matrix products and convolutions of 8-bit integers with zero points, exact in 32 bits: packed bytes, four to a word.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, InputSpec, plain, uniform};
use super::dot::{self, MatMulShapes, matmul_shapes};
use super::elementwise::wrap;
use super::packing::Pack;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, ReduceOp, TensorType};
use kernels_gen::DType;

/// Element types of the operands.
const BYTES: &[DType] = &[DType::I8, DType::U8];

/// ONNX MatMulInteger: the product of `a - a_zero` and `b - b_zero` by the rules of NumPy, in I32 (sums past its range wrap). Operands: `a
/// [.., m, k]`, `b [.., k, n]`, `a_zero` and `b_zero`, each I8 or U8; a zero point has the type of its operand, and broadcasts to it with one
/// value along k.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatMulInteger;

/// What is taken from a number to make it fit a signed byte.
fn offset(dtype: DType) -> f64 {
    if dtype == DType::U8 { 128.0 } else { 0.0 }
}

/// A number as a signed byte, in I32.
fn signed(b: &mut GraphBuilder, x: NodeId) -> Result<NodeId> {
    let offset = offset(b.ty(x).dtype);
    let x = b.cast(x, DType::I32)?;
    if offset == 0.0 { Ok(x) } else { b.binary_scalar(BinaryOp::Sub, x, offset) }
}

/// Signed bytes (I32) of the last axis as words.
fn packed(b: &mut GraphBuilder, x: NodeId) -> Result<NodeId> {
    let codes = b.binary_scalar(BinaryOp::And, x, 255.0)?;
    let codes = b.cast(codes, DType::U32)?;
    b.add(Op::composite(Pack { bits: 8 }), &[codes])
}

/// The product of signed bytes (I32) `[b, m, k]` and `[b, k, n]`.
fn product(b: &mut GraphBuilder, [left, right]: [NodeId; 2]) -> Result<NodeId> {
    let left = packed(b, left)?;
    let right = b.transpose(right, &[0, 2, 1])?;
    let right = packed(b, right)?;
    let right = b.transpose(right, &[0, 2, 1])?;
    b.add(Prim::DotI8, &[left, right])
}

/// Whether a node is zeros and known to be.
fn is_zero(b: &GraphBuilder, id: NodeId) -> bool {
    match &b.graph().node(id).op {
        Op::Prim(Prim::Constant(constant)) => constant.splat() == Some(0.0),
        _ => false,
    }
}

/// The operands of rank 2 at least, and the axis of the result that vanishes for each that is not.
fn as_matrices(a: &[usize], b: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let left = if a.len() == 1 { [&[1], a].concat() } else { a.to_vec() };
    let right = if b.len() == 1 { [b, &[1]].concat() } else { b.to_vec() };
    (left, right)
}

impl MatMulInteger {
    /// Shapes of the product; an error where operands or zero points do not fit.
    fn shapes(call: &Call) -> Result<MatMulShapes> {
        let [a, b, a_zero, b_zero] = call.operands(["a", "b", "a_zero", "b_zero"])?;
        for (role, ty) in [("a", a), ("b", b)] {
            call.dtype(role, ty, BYTES)?;
        }
        let shapes = matmul_shapes(&a.shape, &b.shape).ok_or_else(|| {
            call.misfit("its operands must be [..., m, k] and [..., k, n] (or [k]) with equal k and leading dimensions that broadcast")
        })?;
        for (zero, ty, along) in [(a_zero, a, a.rank().saturating_sub(1)), (b_zero, b, b.rank().saturating_sub(2))] {
            let own: Vec<usize> = ty.shape.iter().enumerate().map(|(d, &size)| if d == along { 1 } else { size }).collect();
            let fits = super::broadcast_shapes(&[&zero.shape, &own]).is_ok_and(|s| s == own) && zero.dtype == ty.dtype;
            if !fits {
                return Err(
                    call.misfit(format_args!("zero point {zero} must have the type of {ty} and broadcast to it with one value along k"))
                );
            }
        }
        Ok(shapes)
    }
}

impl Composite for MatMulInteger {
    fn name(&self) -> &'static str {
        "MatMulInteger"
    }

    fn attributes(&self) -> String {
        String::new()
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let shapes = Self::shapes(&Call::new(self.name(), inputs))?;
        Ok(TensorType::new(DType::I32, shapes.result))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[left, right, left_zero, right_zero] = inputs else { return Err(Error::internal("MatMulInteger without four operands")) };
        let (left_shape, right_shape) = as_matrices(&b.shape(left), &b.shape(right));
        let misfit = || Error::internal("MatMulInteger of operands that do not fit");
        let result = matmul_shapes(&b.shape(left), &b.shape(right)).ok_or_else(misfit)?.result;
        let shapes = matmul_shapes(&left_shape, &right_shape).ok_or_else(misfit)?;
        let (full, k) = (shapes.result.clone(), shapes.k);
        let [x, y] = [left, right].map(|x| signed(b, x));
        let (x, y) = (b.reshape(x?, &left_shape)?, b.reshape(y?, &right_shape)?);
        let mut sum = dot::batched(b, x, y, shapes, product)?;
        // (x - p)(y - q) = xy - p sum(y) - q sum(x) + k p q, with the zero points less what makes the operands signed.
        let mut zero = |zero: NodeId| -> Result<Option<NodeId>> {
            let vanishes = b.ty(zero).dtype == DType::I8 && is_zero(b, zero);
            if vanishes { Ok(None) } else { signed(b, zero).map(Some) }
        };
        let (p, q) = (zero(left_zero)?, zero(right_zero)?);
        let rank = |b: &GraphBuilder, id: NodeId| b.ty(id).rank();
        let mut less = |b: &mut GraphBuilder, zero: NodeId, of: NodeId, axis: usize| -> Result<()> {
            let along = b.reduce(ReduceOp::Sum, of, &[axis], true)?;
            let term = multiplied(b, along, zero, &full)?;
            sum = b.binary(BinaryOp::Sub, sum, term)?;
            Ok(())
        };
        let p = p.map(|p| column(b, p, &left_shape)).transpose()?;
        let q = q.map(|q| row(b, q, &right_shape)).transpose()?;
        if let Some(p) = p {
            let axis = rank(b, y) - 2;
            less(b, p, y, axis)?;
        }
        if let Some(q) = q {
            let axis = rank(b, x) - 1;
            less(b, q, x, axis)?;
        }
        if let (Some(p), Some(q)) = (p, q) {
            let both = multiplied(b, p, q, &full)?;
            let both = b.binary_scalar(BinaryOp::Mul, both, k as f64)?;
            sum = b.binary(BinaryOp::Add, sum, both)?;
        }
        b.reshape(sum, &result)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let types: Vec<TensorType> = inputs.iter().map(|t| t.ty()).collect();
        let ty = self.infer(&types.iter().collect::<Vec<_>>())?;
        let centred = |x: &RefTensor, zero: &RefTensor| {
            let rank = x.shape.len();
            let at = |i: usize| {
                let (mut rest, mut place, mut stride) = (i, 0, 1);
                for d in (0..rank).rev() {
                    let here = rest % x.shape[d];
                    rest /= x.shape[d];
                    if let Some(&size) = (d + zero.shape.len()).checked_sub(rank).and_then(|d| zero.shape.get(d)) {
                        place += if size == 1 { 0 } else { here * stride };
                        stride *= size;
                    }
                }
                zero.data[place]
            };
            let data = x.data.iter().enumerate().map(|(i, v)| v - at(i)).collect();
            RefTensor::new(DType::F32, x.shape.clone(), data)
        };
        let (a, b) = (centred(inputs[0], inputs[2])?, centred(inputs[1], inputs[3])?);
        let sum = dot::MatMul.reference(&[&a, &b])?;
        RefTensor::new(ty.dtype, ty.shape, sum.data.iter().map(|&v| wrap(DType::I32, v as i64)).collect())
    }
}

/// A zero point of the rows as it meets the result's: `[.., m or 1, 1]`.
fn column(b: &mut GraphBuilder, zero: NodeId, of: &[usize]) -> Result<NodeId> {
    let shape = b.shape(zero);
    let mut full = vec![1; of.len().saturating_sub(shape.len())];
    full.extend(&shape);
    b.reshape(zero, &full)
}

/// A zero point of the columns as it meets the result's: `[.., 1, n or 1]`.
fn row(b: &mut GraphBuilder, zero: NodeId, of: &[usize]) -> Result<NodeId> {
    // A vector on the right is a column, whose zero point is one number.
    if b.ty(zero).num_elems() == 1 { b.reshape(zero, &vec![1; of.len()]) } else { column(b, zero, of) }
}

/// The product of two tensors that broadcast to `shape`.
fn multiplied(b: &mut GraphBuilder, x: NodeId, y: NodeId, shape: &[usize]) -> Result<NodeId> {
    let (x, y) = (b.broadcast_to(x, shape)?, b.broadcast_to(y, shape)?);
    b.binary(BinaryOp::Mul, x, y)
}

/// Products of integers.
pub trait IntegerOps: Value {
    /// [`MatMulInteger`] of I8 or U8 tensors with zero points of their types.
    fn matmul_integer(&self, other: &Self, zero: &Self, other_zero: &Self) -> Result<Self> {
        Self::apply(Op::composite(MatMulInteger), &[self, other, zero, other_zero])
    }
}

impl<V: Value> IntegerOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let bytes = |dtype: DType, shape: &[usize]| match dtype {
        DType::I8 => uniform(dtype, shape, -128.0, 127.0),
        _ => uniform(dtype, shape, 0.0, 255.0),
    };
    let zero = |dtype: DType| InputSpec { ty: TensorType::new(dtype, []), ..plain(dtype, &[]) };
    for (a, b) in [(DType::I8, DType::I8), (DType::U8, DType::I8), (DType::U8, DType::U8)] {
        for (left, right) in [
            (&[1usize, 1usize] as &[usize], &[1usize, 1usize] as &[usize]),
            (&[7, 5], &[5, 3]),
            (&[33, 64], &[64, 17]),
            (&[2, 3, 9], &[9, 4]),
            (&[2, 3, 9], &[2, 9, 4]),
            (&[9], &[9]),
            (&[9], &[9, 3]),
            (&[3, 9], &[9]),
            (&[4, 0], &[0, 5]),
            (&[0, 3], &[3, 5]),
        ] {
            cases.add(Op::composite(MatMulInteger), Tolerance::Exact, vec![bytes(a, left), bytes(b, right), zero(a), zero(b)]);
        }
        let (rows, columns) = (bytes(a, &[6, 1]), bytes(b, &[1, 10]));
        cases.add(Op::composite(MatMulInteger), Tolerance::Exact, vec![bytes(a, &[6, 20]), bytes(b, &[20, 10]), rows, columns]);
    }
}
