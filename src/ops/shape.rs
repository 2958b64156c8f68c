//! Operations that move elements: views, pad, concatenation, and the counting tensor.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, edges, floats, plain};
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{GraphBuilder, NodeId, Prim, TensorType};
use crate::tensor::{HostTensor, num_elems};
use kernels_gen::DType;

pub(super) fn infer_iota(call: &Call, ty: &TensorType, axis: usize) -> Result<TensorType> {
    call.operands([])?;
    if axis >= ty.rank() {
        return Err(call.misfit(format_args!("axis {axis} of {ty}; it must be below the rank {}", ty.rank())));
    }
    call.dtype("the result", ty, &[DType::I32, DType::U32, DType::F32])?;
    Ok(ty.clone())
}

pub(super) fn infer_reshape(call: &Call, shape: &[usize]) -> Result<TensorType> {
    let [x] = call.operands(["x"])?;
    if num_elems(shape)? != x.num_elems() {
        return Err(call.misfit(format_args!("shape {shape:?} does not have its {} elements", x.num_elems())));
    }
    Ok(TensorType::new(x.dtype, shape))
}

pub(super) fn infer_transpose(call: &Call, perm: &[usize]) -> Result<TensorType> {
    let [x] = call.operands(["x"])?;
    let mut sorted = perm.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..x.rank()) {
        return Err(call.misfit(format_args!("{perm:?} is not a permutation of its {} dimensions", x.rank())));
    }
    Ok(TensorType::new(x.dtype, perm.iter().map(|&p| x.shape[p]).collect::<Vec<_>>()))
}

pub(super) fn infer_broadcast(call: &Call, shape: &[usize], dims: &[usize]) -> Result<TensorType> {
    let [x] = call.operands(["x"])?;
    let increasing = dims.windows(2).all(|d| d[0] < d[1]) && dims.iter().all(|&d| d < shape.len());
    if dims.len() != x.rank() || !increasing {
        return Err(call.misfit(format_args!("{dims:?} must give each of its dimensions an increasing place in {shape:?}")));
    }
    match dims.iter().zip(&x.shape).find(|(d, size)| **size != 1 && **size != shape[**d]) {
        Some((&d, size)) => Err(call.misfit(format_args!("size {size} cannot become size {} of {shape:?}; only 1 is repeated", shape[d]))),
        None => Ok(TensorType::new(x.dtype, shape)),
    }
}

pub(super) fn infer_slice(call: &Call, starts: &[usize], steps: &[isize], sizes: &[usize]) -> Result<TensorType> {
    let [x] = call.operands(["x"])?;
    if [starts.len(), steps.len(), sizes.len()] != [x.rank(); 3] {
        return Err(call.misfit(format_args!("starts {starts:?}, steps {steps:?} and sizes {sizes:?} must name each dimension")));
    }
    for (d, &dim) in x.shape.iter().enumerate() {
        let last = |size: usize| {
            let distance = isize::try_from(size - 1).ok()?.checked_mul(steps[d])?;
            isize::try_from(starts[d]).ok()?.checked_add(distance)
        };
        let inside = steps[d] != 0
            && (sizes[d] == 0 || starts[d] < dim && last(sizes[d]).is_some_and(|l| usize::try_from(l).is_ok_and(|l| l < dim)));
        if !inside {
            return Err(call.misfit(format_args!(
                "dimension {d} of size {dim} has no {} elements from {} in steps of {}; the step must not be 0",
                sizes[d], starts[d], steps[d]
            )));
        }
    }
    Ok(TensorType::new(x.dtype, sizes))
}

pub(super) fn infer_pad(call: &Call, low: &[usize], high: &[usize]) -> Result<TensorType> {
    let [x, value] = call.operands(["x", "value"])?;
    if value.rank() != 0 || value.dtype != x.dtype {
        return Err(call.misfit(format_args!("the value must be one {} of rank 0", x.dtype)));
    }
    if low.len() != x.rank() || high.len() != x.rank() {
        return Err(call.misfit(format_args!("low {low:?} and high {high:?} must name each dimension")));
    }
    let padded = x.shape.iter().zip(low.iter().zip(high)).map(|(d, (l, h))| d.checked_add(*l)?.checked_add(*h));
    let shape = padded.collect::<Option<Vec<_>>>().ok_or_else(|| call.too_large())?;
    Ok(TensorType::new(x.dtype, shape))
}

pub(super) fn infer_concat(call: &Call, axis: usize) -> Result<TensorType> {
    let [first, rest @ ..] = call.inputs() else {
        return Err(call.misfit("it takes at least one operand"));
    };
    if axis >= first.rank() {
        return Err(call.misfit(format_args!("axis {axis} must be below the rank {}", first.rank())));
    }
    let mut shape = first.shape.clone();
    for other in rest {
        let fits = other.dtype == first.dtype
            && other.rank() == first.rank()
            && (0..first.rank()).all(|d| d == axis || other.shape[d] == first.shape[d]);
        if !fits {
            return Err(call.misfit(format_args!("operands must have one element type and differ in size along axis {axis} only")));
        }
        shape[axis] = shape[axis].checked_add(other.shape[axis]).ok_or_else(|| call.too_large())?;
    }
    Ok(TensorType::new(first.dtype, shape))
}

pub(super) fn iota(ty: TensorType, axis: usize) -> RefTensor {
    let inner: usize = ty.shape[axis + 1..].iter().product();
    let size = ty.shape[axis];
    let data = (0..ty.num_elems()).map(|i| (i / inner % size) as f64).collect();
    RefTensor { dtype: ty.dtype, shape: ty.shape, data }
}

pub(super) fn transpose(x: &RefTensor, perm: &[usize]) -> RefTensor {
    let strides = x.strides();
    let shape: Vec<usize> = perm.iter().map(|&p| x.shape[p]).collect();
    x.strided(&shape, 0, &perm.iter().map(|&p| strides[p]).collect::<Vec<_>>())
}

pub(super) fn broadcast(x: &RefTensor, shape: &[usize], dims: &[usize]) -> RefTensor {
    let mut strides = vec![0; shape.len()];
    for (i, stride) in x.strides().into_iter().enumerate() {
        strides[dims[i]] = if x.shape[i] == 1 { 0 } else { stride };
    }
    x.strided(shape, 0, &strides)
}

pub(super) fn slice(x: &RefTensor, starts: &[usize], steps: &[isize], sizes: &[usize]) -> RefTensor {
    let strides = x.strides();
    let offset = starts.iter().zip(&strides).map(|(&s, &stride)| s * stride as usize).sum();
    x.strided(sizes, offset, &steps.iter().zip(&strides).map(|(a, b)| a * b).collect::<Vec<_>>())
}

pub(super) fn pad(x: &RefTensor, value: &RefTensor, low: &[usize], ty: TensorType) -> RefTensor {
    let mut data = vec![value.data[0]; ty.num_elems()];
    let strides = crate::tensor::strides(&ty.shape);
    for (i, &v) in x.data.iter().enumerate() {
        let mut rest = i;
        let mut at = 0;
        for d in (0..x.shape.len()).rev() {
            at += (rest % x.shape[d] + low[d]) * strides[d];
            rest /= x.shape[d];
        }
        data[at] = v;
    }
    RefTensor { dtype: ty.dtype, shape: ty.shape, data }
}

pub(super) fn concat(inputs: &[&RefTensor], axis: usize, ty: TensorType) -> RefTensor {
    let outer: usize = ty.shape[..axis].iter().product();
    let mut data = Vec::with_capacity(ty.num_elems());
    for o in 0..outer {
        for x in inputs {
            let chunk: usize = x.shape[axis..].iter().product();
            data.extend_from_slice(&x.data[o * chunk..(o + 1) * chunk]);
        }
    }
    RefTensor { dtype: ty.dtype, shape: ty.shape, data }
}

/// Adds a pad with a constant; nothing where no element is added.
pub(crate) fn pad_with(builder: &mut GraphBuilder, x: NodeId, low: &[usize], high: &[usize], value: f64) -> Result<NodeId> {
    if low.iter().chain(high).all(|&p| p == 0) {
        return Ok(x);
    }
    let value = builder.scalar(builder.ty(x).dtype, value)?;
    builder.add(Prim::Pad { low: low.to_vec(), high: high.to_vec() }, &[x, value])
}

/// A dimension counted from the front, or, where negative, from the end.
pub fn resolve_axis(axis: i64, rank: usize) -> Result<usize> {
    let resolved = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(resolved)
        .ok()
        .filter(|&a| a < rank)
        .ok_or_else(|| Error::invalid(format!("axis {axis} of a tensor of rank {rank}; allowed are {}..{rank}", -(rank as i64))))
}

/// Operations that move elements.
pub trait ShapeOps: Value {
    /// The same elements, row-major, under another shape. One size may be -1: it is what the others leave.
    fn reshape(&self, shape: &[isize]) -> Result<Self> {
        let ty = self.ty();
        let shape = fill_shape(&ty, shape)?;
        if shape == ty.shape { Ok(self.clone()) } else { Self::apply(Prim::Reshape(shape).into(), &[self]) }
    }

    /// Dimension `i` of the result is dimension `perm[i]`.
    fn transpose(&self, perm: &[usize]) -> Result<Self> {
        Self::apply(Prim::Transpose(perm.to_vec()).into(), &[self])
    }

    /// NumPy broadcasting to `shape`.
    fn broadcast_to(&self, shape: &[usize]) -> Result<Self> {
        let ty = self.shared_ty();
        if ty.shape == shape {
            return Ok(self.clone());
        }
        if ty.rank() > shape.len() {
            return Err(Error::invalid(format!("cannot broadcast {ty} to {shape:?}: it has more dimensions")));
        }
        let dims = (shape.len() - ty.rank()..shape.len()).collect();
        Self::apply(Prim::Broadcast { shape: shape.to_vec(), dims }.into(), &[self])
    }

    /// Elements `starts[d] .. ends[d]` of each dimension.
    fn slice(&self, starts: &[usize], ends: &[usize]) -> Result<Self> {
        let sizes = starts.iter().zip(ends).map(|(s, e)| e.saturating_sub(*s)).collect::<Vec<_>>();
        Self::apply(Prim::Slice { starts: starts.to_vec(), steps: vec![1; starts.len()], sizes }.into(), &[self])
    }

    /// `low[d]` elements before and `high[d]` after along each dimension, all equal to `value`.
    fn pad(&self, low: &[usize], high: &[usize], value: f64) -> Result<Self> {
        let value = self.scalar(self.ty().dtype, value)?;
        Self::apply(Prim::Pad { low: low.to_vec(), high: high.to_vec() }.into(), &[self, &value])
    }

    /// Values one after another along `axis`; negative counts from the end.
    fn concat(values: &[&Self], axis: i64) -> Result<Self> {
        let rank = values.first().map(|v| v.ty().rank()).unwrap_or(0);
        Self::apply(Prim::Concat { axis: resolve_axis(axis, rank)? }.into(), values)
    }

    /// A constant of this value's computation with the same shape, all elements `value`.
    fn full_like(&self, value: f64) -> Result<Self> {
        let ty = self.ty();
        self.constant(HostTensor::from_f64(ty.dtype, [], &[value])?)?.broadcast_to(&ty.shape)
    }
}

impl<V: Value> ShapeOps for V {}

/// A shape with its -1, if there is one, replaced by the size the others leave.
pub(crate) fn fill_shape(ty: &TensorType, shape: &[isize]) -> Result<Vec<usize>> {
    let bad = |why: &str| Error::invalid(format!("cannot reshape {ty} to {shape:?}: {why}"));
    let known: Vec<usize> = shape
        .iter()
        .filter(|&&d| d != -1)
        .map(|&d| usize::try_from(d))
        .collect::<Result<_, _>>()
        .map_err(|_| bad("sizes are 0 or more, or -1 for one that follows from the others"))?;
    let product = num_elems(&known)?;
    let free = match shape.len() - known.len() {
        0 => 1,
        1 if product != 0 && ty.num_elems().is_multiple_of(product) => ty.num_elems() / product,
        1 => return Err(bad("no size fits in place of -1")),
        _ => return Err(bad("at most one size may be -1")),
    };
    Ok(shape.iter().map(|&d| usize::try_from(d).unwrap_or(free)).collect())
}

pub(super) fn cases(cases: &mut Cases) {
    let bits = Tolerance::Bits;
    for &dtype in &DType::ALL {
        let add = |cases: &mut Cases, prim: Prim, inputs: &[&[usize]]| {
            cases.add(prim, bits, inputs.iter().map(|s| plain(dtype, s)).collect());
        };
        add(cases, Prim::Reshape(vec![6, 35]), &[&[2, 3, 5, 7]]);
        add(cases, Prim::Reshape(vec![]), &[&[1, 1]]);
        add(cases, Prim::Reshape(vec![0, 3]), &[&[5, 0]]);
        add(cases, Prim::Transpose(vec![1, 0]), &[&[17, 33]]);
        add(cases, Prim::Transpose(vec![2, 0, 3, 1]), &[&[2, 3, 5, 7]]);
        add(cases, Prim::Transpose(vec![1, 0]), &[&[0, 3]]);
        add(cases, Prim::Transpose(vec![]), &[&[]]);
        add(cases, Prim::Broadcast { shape: vec![3, 5, 7], dims: vec![0, 2] }, &[&[3, 7]]);
        add(cases, Prim::Broadcast { shape: vec![3, 5, 7], dims: vec![0, 1, 2] }, &[&[1, 5, 1]]);
        add(cases, Prim::Broadcast { shape: vec![257], dims: vec![] }, &[&[]]);
        add(cases, Prim::Broadcast { shape: vec![0, 4], dims: vec![1] }, &[&[4]]);
        let slice = |starts: &[usize], steps: &[isize], sizes: &[usize]| Prim::Slice {
            starts: starts.to_vec(),
            steps: steps.to_vec(),
            sizes: sizes.to_vec(),
        };
        add(cases, slice(&[1, 2], &[1, 3], &[3, 11]), &[&[5, 35]]);
        add(cases, slice(&[4, 34], &[-1, -2], &[5, 18]), &[&[5, 35]]);
        add(cases, slice(&[0, 0], &[1, 1], &[0, 35]), &[&[5, 35]]);
        add(cases, Prim::Pad { low: vec![1, 0, 3], high: vec![0, 2, 1] }, &[&[2, 3, 5], &[]]);
        add(cases, Prim::Pad { low: vec![2], high: vec![3] }, &[&[0], &[]]);
        add(cases, Prim::Pad { low: vec![0], high: vec![0] }, &[&[7], &[]]);
        add(cases, Prim::Concat { axis: 0 }, &[&[3, 5], &[1, 5], &[0, 5], &[4, 5]]);
        add(cases, Prim::Concat { axis: 1 }, &[&[3, 5], &[3, 2]]);
        add(cases, Prim::Concat { axis: 0 }, &[&[7]]);
    }
    cases.add(Prim::Transpose(vec![1, 0]), bits, vec![edges(DType::F32, &[11, 11])]);
    cases.add(Prim::Reshape(vec![35, 6]), bits, vec![floats(&[6, 5, 7]).reversed()]);
    let operands = (0..9).map(|i| floats(&[2, i + 1])).collect();
    cases.add(Prim::Concat { axis: 1 }, bits, operands);
    for dtype in [DType::I32, DType::U32, DType::F32] {
        for (shape, axis) in [(&[257usize] as &[usize], 0), (&[3, 5, 7], 1), (&[3, 0], 0), (&[1], 0)] {
            cases.add(Prim::Iota { ty: TensorType::new(dtype, shape), axis }, Tolerance::Exact, vec![]);
        }
    }
}
