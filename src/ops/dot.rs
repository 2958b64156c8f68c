//! Matrix products.

use super::RefTensor;
use super::call::{Call, FLOATS};
use crate::error::Result;
use crate::graph::TensorType;
use rayon::prelude::*;

pub(super) fn infer_dot(call: &Call) -> Result<TensorType> {
    let [a, b] = call.operands(["a", "b"])?;
    call.dtype("a", a, FLOATS)?;
    call.dtype("b", b, FLOATS)?;
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
