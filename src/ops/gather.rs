//! Gathering slices by index.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, plain, uniform};
use super::shape::resolve_axis;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::Result;
use crate::graph::{Prim, TensorType};
use kernels_gen::DType;

pub(super) fn infer_gather(call: &Call, axis: usize) -> Result<TensorType> {
    let [data, indices] = call.operands(["data", "indices"])?;
    call.dtype("indices", indices, &[DType::I32])?;
    if axis >= data.rank() {
        return Err(call.misfit(format_args!("axis {axis} must be below the rank {} of the data", data.rank())));
    }
    let mut shape = data.shape.clone();
    shape.splice(axis..axis + 1, indices.shape.iter().copied());
    if data.shape[axis] == 0 && indices.num_elems() > 0 {
        return Err(call.misfit(format_args!("axis {axis} of the data is empty: there is nothing to take")));
    }
    Ok(TensorType::new(data.dtype, shape))
}

pub(super) fn gather(data: &RefTensor, indices: &RefTensor, axis: usize, ty: TensorType) -> RefTensor {
    let size = data.shape[axis];
    let inner: usize = data.shape[axis + 1..].iter().product();
    let outer: usize = data.shape[..axis].iter().product();
    let mut out = Vec::with_capacity(ty.num_elems());
    for o in 0..outer {
        for &index in &indices.data {
            let at = (o * size + (index.max(0.0) as usize).min(size - 1)) * inner;
            out.extend_from_slice(&data.data[at..at + inner]);
        }
    }
    RefTensor { dtype: ty.dtype, shape: ty.shape, data: out }
}

/// Gathering.
pub trait GatherOps: Value {
    /// The slices of dimension `axis` (negative counts from the end) that `indices` (I32) name; an index outside is clamped.
    fn gather(&self, indices: &Self, axis: i64) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        Self::apply(Prim::Gather { axis }.into(), &[self, indices])
    }
}

impl<V: Value> GatherOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    for &dtype in &DType::ALL {
        for (data, indices, axis) in [
            (&[7usize] as &[usize], &[5usize] as &[usize], 0),
            (&[13, 5], &[2, 3], 0),
            (&[5, 13], &[4], 1),
            (&[3, 11, 5], &[], 1),
            (&[3, 11, 5], &[0], 1),
            (&[3, 1, 257], &[2], 1),
        ] {
            // Indices outside are clamped.
            let operands = vec![plain(dtype, data), uniform(DType::I32, indices, -2.0, 15.0)];
            cases.add(Prim::Gather { axis }, Tolerance::Bits, operands);
        }
    }
}
