//! Host tensors, shapes, and matrices of codes with scales.

pub mod hadamard;
pub mod quantised;
pub mod scheme;

use crate::error::{Error, Result};
use kernels_gen::DType;

/// Elements of a host tensor, row-major.
#[derive(Debug, Clone, PartialEq)]
pub enum TensorData {
    /// [`DType::F32`].
    F32(Vec<f32>),
    /// [`DType::F16`].
    F16(Vec<half::f16>),
    /// [`DType::I32`].
    I32(Vec<i32>),
    /// [`DType::U32`].
    U32(Vec<u32>),
    /// [`DType::I8`].
    I8(Vec<i8>),
    /// [`DType::U8`].
    U8(Vec<u8>),
    /// [`DType::Bool`], each byte 0 or 1.
    Bool(Vec<u8>),
}

/// A dense row-major tensor in host memory.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTensor {
    shape: Vec<usize>,
    data: TensorData,
}

/// Rust types that are the elements of a tensor.
pub trait Element: Copy + Send + Sync + 'static {
    /// The element type.
    const DTYPE: DType;
    /// Wraps elements.
    fn wrap(data: Vec<Self>) -> TensorData;
    /// The elements, if they are of this type.
    fn peel(data: &TensorData) -> Option<&[Self]>;
}

macro_rules! element {
    ($($t:ty, $v:ident;)*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$v;
            fn wrap(data: Vec<Self>) -> TensorData { TensorData::$v(data) }
            fn peel(data: &TensorData) -> Option<&[Self]> {
                match data { TensorData::$v(d) => Some(d), _ => None }
            }
        }
    )*};
}
element! { f32, F32; half::f16, F16; i32, I32; u32, U32; i8, I8; u8, U8; }

/// Number of elements of a shape, or an error where it passes `u64` or what the host can address.
pub fn num_elems(shape: &[usize]) -> Result<usize> {
    let product = shape.iter().try_fold(1usize, |a, &d| a.checked_mul(d));
    product
        .filter(|&n| n <= isize::MAX as usize)
        .ok_or_else(|| Error::limit(format!("shape {shape:?} has more elements than can be addressed")))
}

/// Most elements of a value of a graph: what kernels count.
pub const MAX_ELEMS: usize = 1 << 31;

/// Whether a shape has at most [`MAX_ELEMS`] elements.
pub(crate) fn can_be_counted(shape: &[usize]) -> bool {
    num_elems(shape).is_ok_and(|count| count <= MAX_ELEMS)
}

/// Row-major strides, in elements.
pub fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}

impl HostTensor {
    /// A tensor of `shape` with the given elements.
    pub fn new<T: Element>(shape: impl Into<Vec<usize>>, data: Vec<T>) -> Result<Self> {
        let shape = shape.into();
        let expected = num_elems(&shape)?;
        if expected != data.len() {
            return Err(Error::invalid(format!("shape {shape:?} has {expected} elements, {} are given", data.len())));
        }
        Ok(HostTensor { shape, data: T::wrap(data) })
    }

    /// A tensor of truth values.
    pub fn from_bools(shape: impl Into<Vec<usize>>, data: &[bool]) -> Result<Self> {
        let mut tensor = HostTensor::new(shape, data.iter().map(|&b| b as u8).collect::<Vec<u8>>())?;
        if let TensorData::U8(bytes) = tensor.data {
            tensor.data = TensorData::Bool(bytes);
        }
        Ok(tensor)
    }

    /// A tensor without dimensions.
    pub fn scalar<T: Element>(value: T) -> Self {
        HostTensor { shape: Vec::new(), data: T::wrap(vec![value]) }
    }

    /// A tensor from its bytes as they lie on the device: little-endian, elements packed without gaps.
    pub fn from_bytes(dtype: DType, shape: impl Into<Vec<usize>>, bytes: &[u8]) -> Result<Self> {
        let shape = shape.into();
        let expected = num_elems(&shape)? * dtype.size_bytes();
        if bytes.len() != expected {
            return Err(Error::invalid(format!("{dtype}{shape:?} has {expected} bytes, {} are given", bytes.len())));
        }
        let data = match dtype {
            DType::F32 => TensorData::F32(bytemuck::pod_collect_to_vec(bytes)),
            DType::F16 => TensorData::F16(bytemuck::pod_collect_to_vec(bytes)),
            DType::I32 => TensorData::I32(bytemuck::pod_collect_to_vec(bytes)),
            DType::U32 => TensorData::U32(bytemuck::pod_collect_to_vec(bytes)),
            DType::I8 => TensorData::I8(bytemuck::pod_collect_to_vec(bytes)),
            DType::U8 => TensorData::U8(bytes.to_vec()),
            DType::Bool => TensorData::Bool(bytes.iter().map(|&b| (b != 0) as u8).collect()),
        };
        Ok(HostTensor { shape, data })
    }

    /// A tensor of zeros.
    pub fn zeros(dtype: DType, shape: impl Into<Vec<usize>>) -> Result<Self> {
        let shape = shape.into();
        let bytes = num_elems(&shape)? * dtype.size_bytes();
        HostTensor::from_bytes(dtype, shape, &vec![0; bytes])
    }

    /// The bytes as they lie on the device.
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            TensorData::F32(d) => bytemuck::cast_slice(d),
            TensorData::F16(d) => bytemuck::cast_slice(d),
            TensorData::I32(d) => bytemuck::cast_slice(d),
            TensorData::U32(d) => bytemuck::cast_slice(d),
            TensorData::I8(d) => bytemuck::cast_slice(d),
            TensorData::U8(d) | TensorData::Bool(d) => d,
        }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        match &self.data {
            TensorData::F32(_) => DType::F32,
            TensorData::F16(_) => DType::F16,
            TensorData::I32(_) => DType::I32,
            TensorData::U32(_) => DType::U32,
            TensorData::I8(_) => DType::I8,
            TensorData::U8(_) => DType::U8,
            TensorData::Bool(_) => DType::Bool,
        }
    }

    /// Sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn num_elems(&self) -> usize {
        self.shape.iter().product()
    }

    /// Elements.
    pub fn data(&self) -> &TensorData {
        &self.data
    }

    /// Elements as `T`, or an error that names both types.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        T::peel(&self.data).ok_or_else(|| Error::invalid(format!("the tensor holds {}, not {}", self.dtype(), T::DTYPE)))
    }

    /// Elements converted to `f64` (truth values to 0 and 1), for references and comparisons.
    pub fn to_f64(&self) -> Vec<f64> {
        match &self.data {
            TensorData::F32(d) => d.iter().map(|&x| x as f64).collect(),
            TensorData::F16(d) => d.iter().map(|x| x.to_f64()).collect(),
            TensorData::I32(d) => d.iter().map(|&x| x as f64).collect(),
            TensorData::U32(d) => d.iter().map(|&x| x as f64).collect(),
            TensorData::I8(d) => d.iter().map(|&x| x as f64).collect(),
            TensorData::U8(d) | TensorData::Bool(d) => d.iter().map(|&x| x as f64).collect(),
        }
    }

    /// A tensor of `dtype` from `f64` values, rounded (floats; to f16 through f32) or truncated and wrapped (integers) as a store on the device would.
    pub fn from_f64(dtype: DType, shape: impl Into<Vec<usize>>, values: &[f64]) -> Result<Self> {
        let ints = || values.iter().map(|&v| v as i64);
        match dtype {
            DType::F32 => HostTensor::new(shape, values.iter().map(|&v| v as f32).collect::<Vec<_>>()),
            DType::F16 => HostTensor::new(shape, values.iter().map(|&v| half::f16::from_f32(v as f32)).collect::<Vec<_>>()),
            DType::I32 => HostTensor::new(shape, ints().map(|v| v as i32).collect::<Vec<_>>()),
            DType::U32 => HostTensor::new(shape, ints().map(|v| v as u32).collect::<Vec<_>>()),
            DType::I8 => HostTensor::new(shape, ints().map(|v| v as i8).collect::<Vec<_>>()),
            DType::U8 => HostTensor::new(shape, ints().map(|v| v as u8).collect::<Vec<_>>()),
            DType::Bool => HostTensor::from_bools(shape, &values.iter().map(|&v| v != 0.0).collect::<Vec<_>>()),
        }
    }

    /// The same elements under another shape of the same size.
    pub fn reshape(mut self, shape: impl Into<Vec<usize>>) -> Result<Self> {
        let shape = shape.into();
        if num_elems(&shape)? != self.num_elems() {
            return Err(Error::invalid(format!("cannot reshape {:?} to {shape:?}", self.shape)));
        }
        self.shape = shape;
        Ok(self)
    }
}
