//! Scaled dot-product attention.

use super::RefTensor;
use super::broadcast_shapes;
use super::call::Call;
use super::cases::{Cases, floats, halves, splat, uniform};
use super::stats::finite_or_zero;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, Factor, GraphBuilder, NodeId, Op, Prim, ReduceOp, TensorType, UnaryOp};
use crate::tensor::num_elems;
use kernels_gen::DType;

/// `softmax(scale * q k^T + mask) v` of `(q [..., l, e], k [..., s, e], v [..., s, f], mask (optional))`. Leading dimensions are equal, but
/// for the last of them, the heads: queries may have a multiple of the heads of keys and values, and neighbouring heads of queries share
/// one. The mask broadcasts to `[..., l, s]`: Bool keeps where true, f32 is added. A row with everything masked is 0.
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

/// How many neighbouring heads of queries share one of keys; `None` where the leading dimensions do not fit.
fn heads_per_key(batch_q: &[usize], batch_k: &[usize]) -> Option<usize> {
    match (batch_q, batch_k) {
        (q, k) if q == k => Some(1),
        ([outer_q @ .., heads_q], [outer_k @ .., heads_k]) if outer_q == outer_k && *heads_k > 0 && heads_q % heads_k == 0 => {
            Some(heads_q / heads_k)
        }
        _ => None,
    }
}

/// The value by definition. `q` is `[..., l, e]`, and `per_key` of its matrices share one of `k` and `v`; the mask has a value for each
/// score.
fn attend(
    [q, k, v]: [&RefTensor; 3],
    mask: Option<&RefTensor>,
    (scale, causal, per_key): (f64, bool, usize),
    ty: TensorType,
) -> Result<RefTensor> {
    let rank = q.shape.len();
    let (l, e) = (q.shape[rank - 2], q.shape[rank - 1]);
    let (s, f) = (v.shape[v.shape.len() - 2], v.shape[v.shape.len() - 1]);
    let mut data = Vec::with_capacity(ty.num_elems());
    for row in 0..q.shape[..rank - 1].iter().product::<usize>() {
        let (matrix, i) = (row / l / per_key, row % l);
        let score = |j: usize| {
            let dot: f64 = (0..e).map(|p| q.data[row * e + p] * k.data[(matrix * s + j) * e + p]).sum();
            let scaled = dot * scale;
            let masked = match mask {
                Some(m) if m.dtype == DType::Bool && m.data[row * s + j] == 0.0 => f64::NEG_INFINITY,
                Some(m) if m.dtype == DType::F32 => scaled + m.data[row * s + j],
                _ => scaled,
            };
            if causal && j > i { f64::NEG_INFINITY } else { masked }
        };
        let row_scores: Vec<f64> = (0..s).map(score).collect();
        if row_scores.iter().all(|&v| v == f64::NEG_INFINITY) {
            data.extend(std::iter::repeat_n(0.0, f));
            continue;
        }
        let norm = super::stats::log_sum_exp(&row_scores);
        data.extend((0..f).map(|c| (0..s).map(|j| (row_scores[j] - norm).exp() * v.data[(matrix * s + j) * f + c]).sum::<f64>()));
    }
    RefTensor::new(ty.dtype, ty.shape, data)
}

/// Type of the primitive's result.
pub(super) fn infer_attention(call: &Call) -> Result<TensorType> {
    let ([q, k, v], mask) = call.operands_from(["q", "k", "v"], &["mask"])?;
    call.floats("each of q, k and v", &[q, k, v])?;
    let (&[b, l, e], &[b_k, s, e_k], &[b_v, s_v, f]) = (&q.shape[..], &k.shape[..], &v.shape[..]) else {
        return Err(call.misfit("q, k and v must have three dimensions"));
    };
    if b != b_k || b != b_v || e != e_k || s != s_v {
        return Err(call.misfit("they must be [b, l, e], [b, s, e] and [b, s, f]"));
    }
    if let Some(mask) = mask.first() {
        call.dtype("the mask", mask, &[DType::Bool, q.dtype])?;
        if mask.shape != [b, l, s] {
            return Err(call.misfit(format_args!("the mask must be {:?}", [b, l, s])));
        }
    }
    Ok(TensorType::new(q.dtype, [b, l, f]))
}

/// The primitive's value by definition.
pub(super) fn attention(inputs: &[&RefTensor], scale: Factor, causal: bool, ty: TensorType) -> Result<RefTensor> {
    let [q, k, v, mask @ ..] = inputs else { return Err(Error::internal("Attention without three operands")) };
    attend([q, k, v], mask.first().copied(), (f64::from(scale.get()), causal, 1), ty)
}

/// The primitive in three kernels, scores and weights in memory: for what its kernel cannot hold.
pub(crate) fn in_parts(b: &mut GraphBuilder, inputs: &[NodeId], scale: Factor, causal: bool) -> Result<NodeId> {
    let &[q, k, v, ref mask @ ..] = inputs else { return Err(Error::internal("Attention without three operands")) };
    let transposed = b.transpose(k, &[0, 2, 1])?;
    let products = b.add(Prim::Dot, &[q, transposed])?;
    let mut scores = b.binary_scalar(BinaryOp::Mul, products, f64::from(scale.get()))?;
    let shape = b.shape(scores);
    let hidden = b.splat_like(scores, DType::F32, f64::NEG_INFINITY)?;
    if let Some(&mask) = mask.first() {
        scores = match b.ty(mask).dtype {
            DType::Bool => b.select(mask, scores, hidden)?,
            _ => b.binary(BinaryOp::Add, scores, mask)?,
        };
    }
    if causal {
        let square = TensorType::new(DType::I32, &shape[1..]);
        let row = b.add(Prim::Iota { ty: square.clone(), axis: 0 }, &[])?;
        let column = b.add(Prim::Iota { ty: square, axis: 1 }, &[])?;
        let seen = b.binary(BinaryOp::Le, column, row)?;
        let seen = b.broadcast_to(seen, &shape)?;
        scores = b.select(seen, scores, hidden)?;
    }
    let largest = b.reduce(ReduceOp::Max, scores, &[2], true)?;
    let largest = finite_or_zero(b, largest)?;
    let shifted = b.binary(BinaryOp::Sub, scores, largest)?;
    let exp = b.unary(UnaryOp::Exp, shifted)?;
    let sum = b.reduce(ReduceOp::Sum, exp, &[2], true)?;
    let empty = b.binary_scalar(BinaryOp::Eq, sum, 0.0)?;
    let one = b.splat_like(sum, DType::F32, 1.0)?;
    let sum = b.select(empty, one, sum)?;
    let weights = b.binary(BinaryOp::Div, exp, sum)?;
    b.add(Prim::Dot, &[weights, v])
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
        call.floats("each of q, k and v", &[q, k, v])?;
        let ([batch_q @ .., l, e], [batch_k @ .., s, e_k], [batch_v @ .., s_v, f]) = (&q.shape[..], &k.shape[..], &v.shape[..]) else {
            return Err(call.misfit("q, k and v must have at least two dimensions"));
        };
        if heads_per_key(batch_q, batch_k).is_none() || batch_k != batch_v || e != e_k || s != s_v {
            return Err(call.misfit(
                "they must be [..., l, e], [..., s, e] and [..., s, f] with equal leading dimensions, of which the last of q may be a \
                 multiple of that of k and v",
            ));
        }
        if let Some(mask) = mask.first() {
            call.dtype("the mask", mask, &[DType::Bool, q.dtype])?;
            let scores = [batch_q, &[*l, *s]].concat();
            if !broadcast_shapes(&[&mask.shape, &scores]).is_ok_and(|shape| shape == scores) {
                return Err(call.misfit(format_args!("the mask must broadcast to {scores:?}")));
            }
        }
        Ok(TensorType::new(q.dtype, [batch_q, &[*l, *f]].concat()))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[q, k, v, ref mask @ ..] = inputs else { return Err(Error::internal("Attention without three operands")) };
        let (shape_q, shape_k, shape_v) = (b.shape(q), b.shape(k), b.shape(v));
        let (batch, matrix) = shape_q.split_at(shape_q.len() - 2);
        let (l, e, s, f) = (matrix[0], matrix[1], shape_k[shape_k.len() - 2], shape_v[shape_v.len() - 1]);
        let total = num_elems(batch)?;
        let per_key = heads_per_key(batch, &shape_k[..shape_k.len() - 2]).unwrap_or(1);
        let flat_q = b.reshape(q, &[total, l, e])?;
        // Heads of keys and values are repeated for the queries that share them: a view, so that no copy is made.
        let mut shared = |x: NodeId, width: usize| {
            if per_key == 1 {
                return b.reshape(x, &[total, s, width]);
            }
            let own = b.reshape(x, &[total / per_key, 1, s, width])?;
            let repeated = b.broadcast_to(own, &[total / per_key, per_key, s, width])?;
            b.reshape(repeated, &[total, s, width])
        };
        let (k, v) = (shared(k, e)?, shared(v, f)?);
        let mut operands = vec![flat_q, k, v];
        if let Some(&mask) = mask.first() {
            let repeated = b.broadcast_to(mask, &[batch, &[l, s]].concat())?;
            operands.push(b.reshape(repeated, &[total, l, s])?);
        }
        let scale = Factor::new(self.factor(e) as f32);
        let result = b.add(Prim::Attention { scale, causal: self.causal }, &operands)?;
        b.reshape(result, &[batch, &[l, f]].concat())
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let [q, k, v, mask @ ..] = inputs else { return Err(Error::internal("Attention without three operands")) };
        let types: Vec<TensorType> = inputs.iter().map(|t| t.ty()).collect();
        let ty = self.infer(&types.iter().collect::<Vec<_>>())?;
        let rank = q.shape.len();
        let scores = [&q.shape[..rank - 1], &[k.shape[rank - 2]]].concat();
        let mask = mask.first().map(|m| {
            let dims: Vec<usize> = (rank - m.shape.len()..rank).collect();
            super::shape::broadcast(m, &scores, &dims)
        });
        let per_key = heads_per_key(&q.shape[..rank - 2], &k.shape[..rank - 2]).unwrap_or(1);
        attend([q, k, v], mask.as_ref(), (self.factor(q.shape[rank - 1]), self.causal, per_key), ty)
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
    cases.add(attention(None, true), close, qkv(&[3], 70, 70, 64, 64));
    cases.add(attention(None, false), close, qkv(&[], 37, 100, 128, 128));
    cases.add(attention(None, true), close, qkv(&[2], 5, 40, 30, 33));
    cases.add(attention(None, true), close, qkv(&[2], 40, 5, 8, 1));
    // Three heads of queries share one of keys and values.
    let grouped = |q: &[usize], k: &[usize]| vec![floats(q), floats(k), floats(k)];
    cases.add(attention(None, true), close, grouped(&[2, 6, 19, 16], &[2, 2, 19, 16]));
    cases.add(attention(None, false), close, grouped(&[4, 1, 8], &[1, 65, 8]));
    let (q, k, v) = (|| floats(&[2, 20, 12]), || floats(&[2, 24, 12]), || floats(&[2, 24, 8]));
    let prim = |causal| Prim::Attention { scale: Factor::new(0.3), causal };
    cases.add(prim(false), close, vec![q().reversed(), k(), v()]);
    cases.add(prim(true), close, vec![q(), k().reversed(), v()]);
    cases.add(prim(false), close, vec![q(), k().repeated(), v().reversed(), uniform(DType::Bool, &[2, 20, 24], 0.0, 1.0)]);
    cases.add(prim(true), close, vec![q(), k(), v().repeated(), uniform(DType::F32, &[2, 20, 24], -2.0, 2.0).reversed()]);
    let half = |shape: [usize; 3]| halves(&shape);
    cases.add(prim(true), close, vec![half([2, 20, 12]), half([2, 24, 12]).reversed(), half([2, 24, 8]), half([2, 20, 24])]);
    cases.add(attention(None, true), close, vec![half([2, 9, 8]), half([2, 9, 8]), half([2, 9, 7])]);
    // Wider than one kernel holds.
    cases.add(prim(false), close, vec![floats(&[1, 9, 12]), floats(&[1, 10, 12]), floats(&[1, 10, 300])]);
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
