//! Matrix products.

use super::call::Call;
use super::cases::{Cases, floats, halves, uniform};
use super::elementwise::{ElementwiseOps, wrap};
use super::gather::GatherOps;
use super::tolerance::Tolerance;
use super::value::Value;
use super::{RefTensor, broadcast_shapes};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, TensorType, WeightLayout};
use crate::tensor::num_elems;
use kernels_gen::DType;
use rayon::prelude::*;

pub(super) fn infer_dot(call: &Call) -> Result<TensorType> {
    let [a, b] = call.operands(["a", "b"])?;
    call.floats("each operand", &[a, b])?;
    match (&a.shape[..], &b.shape[..]) {
        (&[batch, m, k], &[batch_b, k_b, n]) if batch == batch_b && k == k_b => Ok(TensorType::new(a.dtype, [batch, m, n])),
        _ => Err(call.misfit("its operands must be [b, m, k] and [b, k, n] with equal b and k")),
    }
}

pub(super) fn dot(a: &RefTensor, b: &RefTensor, ty: TensorType) -> RefTensor {
    let (m, k, n) = (a.shape[1], a.shape[2], b.shape[2]);
    let mut data = vec![0.0; ty.num_elems()];
    if !data.is_empty() {
        data.par_chunks_mut(n).enumerate().for_each(|(row, out)| {
            let batch = row / m;
            for (p, &x) in a.data[row * k..(row + 1) * k].iter().enumerate() {
                let line = &b.data[(batch * k + p) * n..][..n];
                out.iter_mut().zip(line).for_each(|(acc, &y)| *acc += x * y);
            }
        });
    }
    RefTensor { dtype: ty.dtype, shape: ty.shape, data }
}

pub(super) fn infer_dot_i8(call: &Call) -> Result<TensorType> {
    let [a, b] = call.operands(["a", "b"])?;
    call.dtype("a", a, &[DType::U32])?;
    call.dtype("b", b, &[DType::U32])?;
    match (&a.shape[..], &b.shape[..]) {
        (&[batch, m, k], &[batch_b, k_b, n]) if batch == batch_b && k == k_b => Ok(TensorType::new(DType::I32, [batch, m, n])),
        _ => Err(call.misfit("its operands must be words [b, m, k] and [b, k, n] with equal b and k")),
    }
}

/// The sum of the products of the signed bytes of two words.
pub(crate) fn dot_i8_words(x: f64, y: f64) -> f64 {
    let (x, y) = ((x as u32).to_le_bytes(), (y as u32).to_le_bytes());
    x.iter().zip(y).map(|(&x, y)| f64::from(x as i8) * f64::from(y as i8)).sum()
}

pub(super) fn dot_i8(a: &RefTensor, b: &RefTensor, ty: TensorType) -> RefTensor {
    let (m, k, n) = (a.shape[1], a.shape[2], b.shape[2]);
    let element = |i: usize| {
        let (batch, row, column) = (i / (m * n), i / n % m, i % n);
        let sum: f64 = (0..k).map(|p| dot_i8_words(a.data[(batch * m + row) * k + p], b.data[(batch * k + p) * n + column])).sum();
        wrap(DType::I32, sum as i64)
    };
    let data = (0..ty.num_elems()).into_par_iter().map(element).collect();
    RefTensor { dtype: ty.dtype, shape: ty.shape, data }
}

/// Matrix product by the rules of NumPy: leading dimensions broadcast, an operand of rank 1 is a row (left) or column (right) whose
/// dimension of size 1 vanishes from the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatMul;

/// The shapes of a NumPy matrix product.
pub(super) struct MatMulShapes {
    pub batch_a: Vec<usize>,
    pub batch_b: Vec<usize>,
    pub batch: Vec<usize>,
    pub m: usize,
    pub k: usize,
    pub n: usize,
    /// Shape of the result, without the dimensions that vanish.
    pub result: Vec<usize>,
}

pub(super) fn matmul_shapes(a: &[usize], b: &[usize]) -> Option<MatMulShapes> {
    let (batch_a, m, k) = match a {
        [] => return None,
        [k] => (&[][..], 1, *k),
        [batch @ .., m, k] => (batch, *m, *k),
    };
    let (batch_b, k_b, n) = match b {
        [] => return None,
        [k] => (&[][..], *k, 1),
        [batch @ .., k, n] => (batch, *k, *n),
    };
    let batch = broadcast_shapes(&[batch_a, batch_b]).ok().filter(|_| k == k_b)?;
    let mut result = batch.clone();
    result.extend((a.len() > 1).then_some(m));
    result.extend((b.len() > 1).then_some(n));
    Some(MatMulShapes { batch_a: batch_a.to_vec(), batch_b: batch_b.to_vec(), batch, m, k, n, result })
}

/// A NumPy matrix product of operands of some `shapes` by a `product` of operands `[b, m, k]` and `[b, k, n]`.
pub(super) fn batched(
    builder: &mut GraphBuilder,
    a: NodeId,
    b: NodeId,
    shapes: MatMulShapes,
    product: impl FnOnce(&mut GraphBuilder, [NodeId; 2]) -> Result<NodeId>,
) -> Result<NodeId> {
    let MatMulShapes { batch_a, batch_b, batch, m, k, n, result } = shapes;
    let operands = if batch_b.iter().all(|&d| d == 1) {
        // One right-hand matrix for all: the rows of all left-hand matrices are one tall matrix.
        let rows = num_elems(&batch_a)? * m;
        [builder.reshape(a, &[1, rows, k])?, builder.reshape(b, &[1, k, n])?]
    } else {
        let total = num_elems(&batch)?;
        let mut flat = |x: NodeId, own: &[usize], rows: usize, columns: usize| {
            let matrices = builder.reshape(x, &[own, &[rows, columns]].concat())?;
            let repeated = builder.broadcast_to(matrices, &[&batch[..], &[rows, columns]].concat())?;
            builder.reshape(repeated, &[total, rows, columns])
        };
        [flat(a, &batch_a, m, k)?, flat(b, &batch_b, k, n)?]
    };
    let product = product(builder, operands)?;
    builder.reshape(product, &result)
}

impl Composite for MatMul {
    fn name(&self) -> &'static str {
        "MatMul"
    }

    fn attributes(&self) -> String {
        String::new()
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [a, b] = call.operands(["a", "b"])?;
        call.floats("each operand", inputs)?;
        let shapes = matmul_shapes(&a.shape, &b.shape).ok_or_else(|| {
            call.misfit("its operands must be [..., m, k] and [..., k, n] (or [k]) with equal k and leading dimensions that broadcast")
        })?;
        Ok(TensorType::new(a.dtype, shapes.result))
    }

    fn decompose(&self, builder: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[a, b] = inputs else { return Err(Error::internal("MatMul without two operands")) };
        let (shape_a, shape_b) = (builder.shape(a), builder.shape(b));
        let shapes = matmul_shapes(&shape_a, &shape_b).ok_or_else(|| Error::internal("MatMul of operands that do not fit"))?;
        batched(builder, a, b, shapes, |builder, operands| builder.add(Prim::Dot, &operands))
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let (a, b) = (inputs[0], inputs[1]);
        let ty = self.infer(&[&a.ty(), &b.ty()])?;
        let shapes = matmul_shapes(&a.shape, &b.shape).ok_or_else(|| Error::internal("MatMul of operands that do not fit"))?;
        let MatMulShapes { batch_a, batch_b, batch, m, k, n, .. } = shapes;
        // Which matrix of an operand meets matrix `index` of the result.
        let matrix = |own: &[usize], index: usize| {
            let (mut rest, mut at, mut stride) = (index, 0, 1);
            for d in (0..batch.len()).rev() {
                let here = rest % batch[d];
                rest /= batch[d];
                if let Some(&size) = (d + own.len()).checked_sub(batch.len()).and_then(|i| own.get(i)) {
                    at += if size == 1 { 0 } else { here * stride };
                    stride *= size;
                }
            }
            at
        };
        let element = |i: usize| {
            let (index, row, column) = (i / (m * n), i / n % m, i % n);
            let (ma, mb) = (matrix(&batch_a, index), matrix(&batch_b, index));
            (0..k).map(|p| a.data[(ma * m + row) * k + p] * b.data[(mb * k + p) * n + column]).sum()
        };
        let data = (0..ty.num_elems()).into_par_iter().map(element).collect();
        RefTensor::new(ty.dtype, ty.shape, data)
    }

    fn weights(&self) -> Option<WeightLayout> {
        Some(WeightLayout::Columns)
    }
}

/// `alpha * A' * B' + beta * C` of matrices, where `A'` and `B'` may be transposed and `C` (optional) broadcasts to the product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gemm {
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of the third operand.
    pub beta: f32,
    /// Whether the first operand is `[k, m]`.
    pub trans_a: bool,
    /// Whether the second operand is `[n, k]`.
    pub trans_b: bool,
}

impl Composite for Gemm {
    fn name(&self) -> &'static str {
        "Gemm"
    }

    fn attributes(&self) -> String {
        format!("alpha={:?} beta={:?} trans_a={} trans_b={}", self.alpha, self.beta, self.trans_a, self.trans_b)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let ([a, b], c) = call.operands_from(["a", "b"], &["c"])?;
        call.floats("each operand", inputs)?;
        let (&[a0, a1], &[b0, b1]) = (&a.shape[..], &b.shape[..]) else {
            return Err(call.misfit("a and b must be matrices"));
        };
        let (m, k) = if self.trans_a { (a1, a0) } else { (a0, a1) };
        let (k_b, n) = if self.trans_b { (b1, b0) } else { (b0, b1) };
        if k != k_b {
            return Err(call.misfit(format_args!("with {} the inner sizes {k} and {k_b} must be equal", self.attributes())));
        }
        match c.first() {
            Some(c) if broadcast_shapes(&[&c.shape, &[m, n]]).is_ok_and(|s| s == [m, n]) => {}
            Some(_) => return Err(call.misfit(format_args!("c must broadcast to [{m}, {n}]"))),
            None => {}
        }
        Ok(TensorType::new(a.dtype, [m, n]))
    }

    fn decompose(&self, builder: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[a, b, ref c @ ..] = inputs else { return Err(Error::internal("Gemm without two operands")) };
        let mut batched = |x: NodeId, transposed: bool| {
            let x = if transposed { builder.transpose(x, &[1, 0])? } else { x };
            let shape = [&[1], &builder.shape(x)[..]].concat();
            builder.reshape(x, &shape)
        };
        let (a, b) = (batched(a, self.trans_a)?, batched(b, self.trans_b)?);
        let product = builder.add(Prim::Dot, &[a, b])?;
        let shape = builder.shape(product)[1..].to_vec();
        let mut result = builder.reshape(product, &shape)?;
        if self.alpha != 1.0 {
            result = builder.binary_scalar(BinaryOp::Mul, result, self.alpha as f64)?;
        }
        let Some(&c) = c.first().filter(|_| self.beta != 0.0) else { return Ok(result) };
        let c = if self.beta == 1.0 { c } else { builder.binary_scalar(BinaryOp::Mul, c, self.beta as f64)? };
        builder.binary(BinaryOp::Add, result, c)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let types: Vec<TensorType> = inputs.iter().map(|t| t.ty()).collect();
        let ty = self.infer(&types.iter().collect::<Vec<_>>())?;
        let (a, b) = (inputs[0], inputs[1]);
        let (m, n) = (ty.shape[0], ty.shape[1]);
        let k = a.shape[if self.trans_a { 0 } else { 1 }];
        let at = |t: &RefTensor, transposed: bool, row: usize, column: usize| {
            if transposed { t.data[column * t.shape[1] + row] } else { t.data[row * t.shape[1] + column] }
        };
        let element = |i: usize| {
            let (row, column) = (i / n, i % n);
            let sum: f64 = (0..k).map(|p| at(a, self.trans_a, row, p) * at(b, self.trans_b, p, column)).sum();
            let added = inputs.get(2).filter(|_| self.beta != 0.0).map(|c| {
                let columns = c.shape.last().copied().unwrap_or(1);
                let rows = if c.shape.len() > 1 { c.shape[0] } else { 1 };
                let (row, column) = (if rows == 1 { 0 } else { row }, if columns == 1 { 0 } else { column });
                self.beta as f64 * c.data[row * columns + column]
            });
            self.alpha as f64 * sum + added.unwrap_or(0.0)
        };
        RefTensor::new(ty.dtype, ty.shape, (0..m * n).into_par_iter().map(element).collect())
    }

    fn weights(&self) -> Option<WeightLayout> {
        Some(if self.trans_b { WeightLayout::Rows } else { WeightLayout::Columns })
    }
}

/// Matrix products.
pub trait DotOps: Value {
    /// Matrix product by the rules of NumPy.
    fn matmul(&self, other: &Self) -> Result<Self> {
        Self::apply(Op::composite(MatMul), &[self, other])
    }

    /// `self[b] * matrices[groups[b]]` of self `[blocks, m, k]`, matrices `[count, k, n]` and groups I32 `[blocks]`: blocks of rows, each with a matrix
    /// that an index names, as mixtures of experts need them. Gives `[blocks, m, n]`; indices are clamped to those of matrices.
    fn matmul_grouped(&self, matrices: &Self, groups: &Self) -> Result<Self> {
        let types = [self.ty(), matrices.ty(), groups.ty()];
        let fits = types[0].rank() == 3 && types[1].rank() == 3 && types[2].shape[..] == types[0].shape[..1];
        if !fits {
            let [x, matrices, groups] = types;
            return Err(Error::invalid(format!(
                "a grouped product of {x}, {matrices} and groups {groups}: it takes [blocks, m, k], [count, k, n] and i32 [blocks]"
            )));
        }
        self.matmul(&matrices.gather(groups, 0)?)
    }

    /// `self * weights + bias` of matrices; the bias broadcasts.
    fn linear(&self, weights: &Self, bias: &Self) -> Result<Self> {
        self.matmul(weights)?.add(bias)
    }
}

impl<V: Value> DotOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let norm = Tolerance::Norm(1e-5);
    for &(b, m, k, n) in &[
        (1usize, 1usize, 1usize, 1usize),
        (1, 7, 5, 3),
        (2, 16, 16, 16),
        (1, 257, 33, 65),
        (1, 64, 257, 64),
        (1, 1, 300, 40),
        (1, 40, 300, 1),
        (1, 4, 0, 5),
        (1, 0, 4, 5),
        (0, 3, 4, 5),
        (1, 501, 12, 19),
        (3, 17, 130, 33),
    ] {
        cases.add(Prim::Dot, norm, vec![floats(&[b, m, k]), floats(&[b, k, n])]);
    }
    cases.add(Prim::Dot, norm, vec![floats(&[2, 33, 20]).reversed(), floats(&[2, 20, 35])]);
    cases.add(Prim::Dot, norm, vec![floats(&[2, 33, 20]), floats(&[2, 20, 35]).reversed()]);
    cases.add(Prim::Dot, norm, vec![floats(&[3, 17, 20]).repeated(), floats(&[3, 20, 18]).repeated()]);
    for &(b, m, k, n) in &[(1usize, 7usize, 5usize, 3usize), (1, 33, 20, 36), (2, 17, 33, 18), (1, 1, 70, 40), (1, 4, 0, 5)] {
        cases.add(Prim::Dot, norm, vec![halves(&[b, m, k]), halves(&[b, k, n])]);
    }
    cases.add(Prim::Dot, norm, vec![halves(&[2, 33, 20]).reversed(), halves(&[2, 20, 36]).reversed()]);
    let words = |shape: &[usize]| uniform(DType::U32, shape, 0.0, f64::from(u32::MAX));
    for &(b, m, k, n) in &[
        (1usize, 1usize, 1usize, 1usize),
        (2, 7, 5, 3),
        (1, 65, 33, 36),
        (1, 1, 70, 40),
        (1, 40, 65, 1),
        (1, 4, 0, 5),
        (0, 3, 4, 5),
        (1, 96, 16, 64),
    ] {
        cases.add(Prim::DotI8, Tolerance::Exact, vec![words(&[b, m, k]), words(&[b, k, n])]);
        cases.add(Prim::DotI8, Tolerance::Exact, vec![words(&[b, m, k]), words(&[b, k, n]).reversed()]);
    }
    for (a, b) in [
        (&[5usize] as &[usize], &[5usize] as &[usize]),
        (&[5], &[5, 7]),
        (&[3, 5], &[5]),
        (&[2, 3, 5], &[5, 7]),
        (&[2, 1, 3, 5], &[4, 5, 7]),
        (&[2, 3, 5], &[2, 5]),
        (&[5], &[2, 5, 3]),
        (&[3, 4], &[2, 4, 5]),
        (&[1, 3, 4], &[2, 4, 5]),
        (&[2, 0, 4], &[4, 5]),
        (&[0, 3, 4], &[4, 5]),
        (&[2, 3, 0], &[2, 0, 4]),
    ] {
        let b = if b == [2, 5] && a.len() == 3 { &[2, 5, 2] } else { b };
        cases.add(Op::composite(MatMul), norm, vec![floats(a), floats(b)]);
    }
    let gemm = |trans_a, trans_b, alpha, beta| Op::composite(Gemm { alpha, beta, trans_a, trans_b });
    cases.add(gemm(false, false, 1.0, 1.0), norm, vec![floats(&[7, 5]), floats(&[5, 9]), floats(&[9])]);
    cases.add(gemm(false, true, 1.0, 1.0), norm, vec![floats(&[17, 33]), floats(&[10, 33]), floats(&[10])]);
    cases.add(gemm(false, true, 1.0, 1.0), norm, vec![halves(&[17, 32]), halves(&[12, 32]), halves(&[12])]);
    cases.add(gemm(true, false, 0.5, 2.0), norm, vec![floats(&[5, 7]), floats(&[5, 9]), floats(&[7, 1])]);
    cases.add(gemm(true, true, 0.25, 0.0), norm, vec![floats(&[5, 7]), floats(&[9, 5]), floats(&[])]);
    cases.add(gemm(false, false, 1.0, 1.0), norm, vec![floats(&[7, 5]), floats(&[5, 9])]);
}
