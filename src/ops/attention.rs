//! Scaled dot-product attention.

use super::RefTensor;
use super::broadcast_shapes;
use super::call::{Call, FLOATS};
use super::cases::{Cases, floats, splat, uniform};
use super::dot::MatMul;
use super::stats::finite_or_zero;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, ReduceOp, TensorType, UnaryOp};
use kernels_gen::DType;

/// `softmax(scale * q k^T + mask) v` of `(q [..., l, e], k [..., s, e], v [..., s, f], mask (optional))` with equal leading dimensions. The
/// mask broadcasts to `[..., l, s]`: Bool keeps where true, f32 is added. A row with everything masked is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention {
    /// Factor of the scores; `None` is `1 / sqrt(e)`.
    pub scale: Option<f32>,
    /// Whether row `i` sees columns `0..=i` only.
    pub causal: bool,
}

impl Attention {
    fn factor(&self, e: usize) -> f64 {
        self.scale.map_or_else(|| 1.0 / (e as f64).sqrt(), f64::from)
    }
}

impl Composite for Attention {
    fn name(&self) -> &'static str {
        "Attention"
    }

    fn attributes(&self) -> String {
        let scale = self.scale.map(|s| format!("scale={s:?}"));
        let causal = self.causal.then(|| "causal".to_string());
        scale.into_iter().chain(causal).collect::<Vec<_>>().join(" ")
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let ([q, k, v], mask) = call.operands_from(["q", "k", "v"], &["mask"])?;
        for ty in [q, k, v] {
            call.dtype("each of q, k and v", ty, FLOATS)?;
        }
        let ([batch_q @ .., l, e], [batch_k @ .., s, e_k], [batch_v @ .., s_v, f]) = (&q.shape[..], &k.shape[..], &v.shape[..]) else {
            return Err(call.misfit("q, k and v must have at least two dimensions"));
        };
        if batch_q != batch_k || batch_q != batch_v || e != e_k || s != s_v {
            return Err(call.misfit("they must be [..., l, e], [..., s, e] and [..., s, f] with equal leading dimensions"));
        }
        if let Some(mask) = mask.first() {
            call.dtype("the mask", mask, &[DType::Bool, DType::F32])?;
            let scores = [batch_q, &[*l, *s]].concat();
            if !broadcast_shapes(&[&mask.shape, &scores]).is_ok_and(|shape| shape == scores) {
                return Err(call.misfit(format_args!("the mask must broadcast to {scores:?}")));
            }
        }
        Ok(TensorType::new(q.dtype, [batch_q, &[*l, *f]].concat()))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[q, k, v, ref mask @ ..] = inputs else { return Err(Error::internal("Attention without three operands")) };
        let rank = b.ty(q).rank();
        let e = b.shape(q)[rank - 1];
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(rank - 1, rank - 2);
        let transposed = b.transpose(k, &perm)?;
        let products = b.add(Op::composite(MatMul), &[q, transposed])?;
        let mut scores = b.binary_scalar(BinaryOp::Mul, products, self.factor(e))?;
        let shape = b.shape(scores);
        let hidden = b.splat_like(scores, DType::F32, f64::NEG_INFINITY)?;
        if let Some(&mask) = mask.first() {
            scores = match b.ty(mask).dtype {
                DType::Bool => b.select(mask, scores, hidden)?,
                _ => b.binary(BinaryOp::Add, scores, mask)?,
            };
        }
        if self.causal {
            let square = TensorType::new(DType::I32, &shape[rank - 2..]);
            let row = b.add(Prim::Iota { ty: square.clone(), axis: 0 }, &[])?;
            let column = b.add(Prim::Iota { ty: square, axis: 1 }, &[])?;
            let seen = b.binary(BinaryOp::Le, column, row)?;
            scores = b.select(seen, scores, hidden)?;
        }
        let largest = b.reduce(ReduceOp::Max, scores, &[rank - 1], true)?;
        let largest = finite_or_zero(b, largest)?;
        let shifted = b.binary(BinaryOp::Sub, scores, largest)?;
        let exp = b.unary(UnaryOp::Exp, shifted)?;
        let sum = b.reduce(ReduceOp::Sum, exp, &[rank - 1], true)?;
        let empty = b.binary_scalar(BinaryOp::Eq, sum, 0.0)?;
        let one = b.splat_like(sum, DType::F32, 1.0)?;
        let sum = b.select(empty, one, sum)?;
        let weights = b.binary(BinaryOp::Div, exp, sum)?;
        b.add(Op::composite(MatMul), &[weights, v])
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let [q, k, v, mask @ ..] = inputs else { return Err(Error::internal("Attention without three operands")) };
        let types: Vec<TensorType> = inputs.iter().map(|t| t.ty()).collect();
        let ty = self.infer(&types.iter().collect::<Vec<_>>())?;
        let rank = q.shape.len();
        let (l, e) = (q.shape[rank - 2], q.shape[rank - 1]);
        let (s, f) = (v.shape[rank - 2], v.shape[rank - 1]);
        let scores = [&q.shape[..rank - 2], &[l, s]].concat();
        let mask = mask.first().map(|m| {
            let dims: Vec<usize> = (rank - m.shape.len()..rank).collect();
            (m.dtype, super::shape::broadcast(m, &scores, &dims))
        });
        let mut data = Vec::with_capacity(ty.num_elems());
        for row in 0..scores[..rank - 1].iter().product::<usize>() {
            let (batch, i) = (row / l, row % l);
            let score = |j: usize| {
                let dot: f64 = (0..e).map(|p| q.data[row * e + p] * k.data[(batch * s + j) * e + p]).sum();
                let scaled = dot * self.factor(e);
                let masked = match &mask {
                    Some((DType::Bool, m)) if m.data[row * s + j] == 0.0 => f64::NEG_INFINITY,
                    Some((DType::F32, m)) => scaled + m.data[row * s + j],
                    _ => scaled,
                };
                if self.causal && j > i { f64::NEG_INFINITY } else { masked }
            };
            let row_scores: Vec<f64> = (0..s).map(score).collect();
            if row_scores.iter().all(|&v| v == f64::NEG_INFINITY) {
                data.extend(std::iter::repeat_n(0.0, f));
                continue;
            }
            let norm = super::stats::log_sum_exp(&row_scores);
            data.extend((0..f).map(|c| (0..s).map(|j| (row_scores[j] - norm).exp() * v.data[(batch * s + j) * f + c]).sum::<f64>()));
        }
        RefTensor::new(ty.dtype, ty.shape, data)
    }
}

/// Attention.
pub trait AttentionOps: Value {
    /// Scaled dot-product attention of queries with `keys` and `values`.
    fn attention(&self, keys: &Self, values: &Self, mask: Option<&Self>, attention: Attention) -> Result<Self> {
        let operands: Vec<&Self> = [self, keys, values].into_iter().chain(mask).collect();
        Self::apply(Op::composite(attention), &operands)
    }
}

impl<V: Value> AttentionOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let close = Tolerance::Norm(5e-5);
    let qkv = |batch: &[usize], l: usize, s: usize, e: usize, f: usize| {
        [[l, e], [s, e], [s, f]].map(|matrix| floats(&[batch, &matrix].concat())).to_vec()
    };
    let attention = |scale, causal| Op::composite(Attention { scale, causal });
    cases.add(attention(None, false), close, qkv(&[], 5, 7, 4, 3));
    cases.add(attention(None, true), close, qkv(&[2, 3], 9, 9, 8, 8));
    cases.add(attention(Some(0.5), false), close, qkv(&[2], 1, 33, 16, 5));
    cases.add(attention(None, false), close, qkv(&[1], 3, 0, 4, 2));
    cases.add(attention(None, false), close, qkv(&[0], 3, 4, 4, 2));
    let masks = [
        uniform(DType::Bool, &[5, 7], 0.0, 1.0),
        uniform(DType::F32, &[1, 7], -2.0, 2.0),
        // Rows with everything masked are 0.
        splat(DType::Bool, &[5, 1], 0.0),
        splat(DType::F32, &[5, 7], f64::NEG_INFINITY),
    ];
    for mask in masks {
        let mut operands = qkv(&[2], 5, 7, 4, 3);
        operands.push(mask);
        cases.add(attention(None, false), close, operands);
    }
}
