//! What the methods of the op families stand on.

use crate::error::Result;
use crate::graph::{Op, TensorType};
use crate::tensor::HostTensor;
use kernels_gen::DType;
use std::sync::Arc;

/// A value operations apply to: a node of a graph under construction, or a captured tensor. A handle, cheap to clone.
pub trait Value: Clone {
    /// Applies an operation; operands that do not fit are an error.
    fn apply(op: Op, inputs: &[&Self]) -> Result<Self>;

    /// Element type and shape.
    fn ty(&self) -> TensorType;

    /// [`Value::ty`] without a copy where the value has one to share.
    fn shared_ty(&self) -> Arc<TensorType> {
        Arc::new(self.ty())
    }

    /// A constant in the same computation as this value.
    fn constant(&self, tensor: HostTensor) -> Result<Self>;

    /// A constant of rank 0 in the same computation, converted to `dtype`.
    fn scalar(&self, dtype: DType, value: f64) -> Result<Self> {
        self.constant(HostTensor::from_f64(dtype, [], &[value])?)
    }
}
