//! ONNX tensors as host tensors.

use std::path::{Component, Path};

use rten_onnx::onnx::{DataLocation, DataType, TensorProto};

use super::narrow::{Narrow, NarrowTensor};
use crate::error::{Error, Result};
use crate::import::npy::narrow;
use crate::tensor::{HostTensor, num_elems};
use kernels_gen::DType;

/// A tensor of a model.
pub(super) enum Tensor {
    /// One of our element types.
    Host(HostTensor),
    /// Elements of a type that is none of ours.
    Narrow(NarrowTensor),
    /// 64-bit integers of which some do not fit 32 bits: good for parameters only.
    Wide(Vec<i64>),
}

/// The element type that holds values of an ONNX type.
pub(super) fn dtype(ty: DataType) -> Result<DType> {
    Ok(match ty {
        DataType::FLOAT => DType::F32,
        DataType::FLOAT16 => DType::F16,
        DataType::INT32 | DataType::INT64 => DType::I32,
        DataType::UINT32 => DType::U32,
        DataType::INT8 => DType::I8,
        DataType::UINT8 => DType::U8,
        DataType::BOOL => DType::Bool,
        other => match Narrow::of(other) {
            Some(narrow) => narrow.dtype(),
            None => {
                return Err(Error::unsupported(format!(
                    "element type {other}; supported are FLOAT, FLOAT16, INT32, INT64 (values that fit 32 bits), UINT32, INT8, UINT8, BOOL, \
                     and between QuantizeLinear and DequantizeLinear INT4, UINT4, INT16, UINT16, FLOAT8E4M3FN and FLOAT8E5M2"
                )));
            }
        },
    })
}

/// The element type of ONNX that an attribute names by its number.
pub(super) fn type_of(number: i64) -> Result<DataType> {
    i32::try_from(number).map(DataType).map_err(|_| Error::malformed(format!("element type {number}")))
}

/// The element type an attribute names by its number, which must be one of ours.
pub(super) fn dtype_of(number: i64) -> Result<DType> {
    let ty = type_of(number)?;
    if Narrow::of(ty).is_some() {
        return Err(Error::unsupported(format!("values made of element type {ty} but by QuantizeLinear")));
    }
    dtype(ty)
}

/// Reads a file that holds one tensor, as the ONNX test data are: its name and the tensor. 64-bit integers must fit 32 bits.
pub fn parse_tensor(bytes: &[u8]) -> Result<(String, HostTensor)> {
    let proto: TensorProto = super::proto::decode(bytes, "ONNX tensor")?;
    let name = proto.name.clone().unwrap_or_default();
    match read(&proto, None)? {
        Tensor::Host(tensor) => Ok((name, tensor)),
        Tensor::Narrow(tensor) => tensor.spread().map(|t| (name, t)),
        Tensor::Wide(values) => narrow(&values).and_then(|v| HostTensor::new([v.len()], v)).map(|t| (name, t)),
    }
}

/// The elements of a tensor message.
pub(super) fn read(proto: &TensorProto, folder: Option<&Path>) -> Result<Tensor> {
    let ty = proto.data_type.ok_or_else(|| Error::malformed("the tensor has no element type"))?;
    let dtype = dtype(ty)?;
    let sizes = proto.dims.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
    let shape = sizes.map_err(|_| Error::malformed(format!("sizes {:?} must not be negative", proto.dims)))?;
    let count = num_elems(&shape)?;
    let narrow_ty = Narrow::of(ty);
    let stored_bytes = match narrow_ty {
        Some(narrow) => narrow.stored_bytes(count),
        None => count.checked_mul(if ty == DataType::INT64 { 8 } else { dtype.size_bytes() }),
    };
    let expected = stored_bytes.ok_or_else(|| Error::limit(format!("{ty}{shape:?} cannot be addressed")))?;
    let raw = match (&proto.raw_data, proto.data_location) {
        (_, Some(DataLocation::EXTERNAL)) => Some(external(proto, folder, expected)?),
        (Some(raw), _) => Some(raw.borrow().clone()),
        (None, _) => None,
    };
    let wrong = |found: usize, unit: &str| Err(Error::malformed(format!("{ty}{shape:?} with {found} {unit}")));
    if let Some(raw) = raw {
        if raw.len() != expected {
            return wrong(raw.len(), "bytes");
        }
        if let Some(narrow) = narrow_ty {
            return Ok(Tensor::Narrow(NarrowTensor { ty: narrow, codes: narrow.codes(&raw, count), shape }));
        }
        if ty == DataType::INT64 {
            let values = raw.chunks_exact(8).map(|c| c.iter().rev().fold(0, |v, &b| v << 8 | b as u64) as i64).collect();
            return integers(shape, values);
        }
        return Ok(Tensor::Host(HostTensor::from_bytes(dtype, shape, &raw)?));
    }
    if let Some(narrow) = narrow_ty {
        // One byte in each value, or one integer of 16 bits.
        let each = narrow.bits().div_ceil(8) as usize;
        let bytes: Vec<u8> = proto.int32_data.iter().flat_map(|v| v.to_le_bytes().into_iter().take(each)).collect();
        if bytes.len() != expected {
            return wrong(proto.int32_data.len(), "values");
        }
        return Ok(Tensor::Narrow(NarrowTensor { ty: narrow, codes: narrow.codes(&bytes, count), shape }));
    }
    let found = match ty {
        DataType::FLOAT => proto.float_data.len(),
        DataType::INT64 => proto.int64_data.len(),
        // The message keeps these in a field the decoder does not read.
        DataType::UINT32 if count > 0 => return Err(Error::unsupported("UINT32 values outside raw_data; save the model with raw data")),
        _ => proto.int32_data.len(),
    };
    if found != count {
        return wrong(found, "values");
    }
    let narrow_values = || proto.int32_data.iter();
    Ok(Tensor::Host(match dtype {
        DType::F32 => HostTensor::new(shape, proto.float_data.clone())?,
        // The codes, one in each value.
        DType::F16 => HostTensor::new(shape, narrow_values().map(|&v| half::f16::from_bits(v as u16)).collect::<Vec<_>>())?,
        DType::I32 if ty == DataType::INT64 => return integers(shape, proto.int64_data.clone()),
        DType::I32 => HostTensor::new(shape, proto.int32_data.clone())?,
        DType::U32 => HostTensor::new(shape, Vec::<u32>::new())?,
        DType::I8 => HostTensor::new(shape, narrow_values().map(|&v| v as i8).collect::<Vec<_>>())?,
        DType::U8 => HostTensor::new(shape, narrow_values().map(|&v| v as u8).collect::<Vec<_>>())?,
        DType::Bool => HostTensor::from_bools(shape, &narrow_values().map(|&v| v != 0).collect::<Vec<_>>())?,
    }))
}

fn integers(shape: Vec<usize>, values: Vec<i64>) -> Result<Tensor> {
    match narrow(&values) {
        Ok(narrow) => Ok(Tensor::Host(HostTensor::new(shape, narrow)?)),
        Err(_) => Ok(Tensor::Wide(values)),
    }
}

/// The bytes of a tensor stored beside the model.
fn external(proto: &TensorProto, folder: Option<&Path>, expected: usize) -> Result<Vec<u8>> {
    let entry = |key: &str| proto.external_data.iter().find(|e| e.key.as_deref() == Some(key)).and_then(|e| e.value.as_deref());
    let location = entry("location").ok_or_else(|| Error::malformed("external data without a location"))?;
    let folder = folder.ok_or_else(|| Error::invalid("the model stores weights outside; read it from its file, not from memory"))?;
    let relative = Path::new(location);
    if !relative.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
        return Err(Error::malformed(format!("external data at `{location}`, which leaves the model's folder")));
    }
    let number = |key: &str, default: usize| match entry(key) {
        Some(text) => text.parse::<usize>().map_err(|_| Error::malformed(format!("external data with {key} `{text}`"))),
        None => Ok(default),
    };
    let (offset, length) = (number("offset", 0)?, number("length", expected)?);
    let path = folder.join(relative);
    let bytes = crate::files::read(&path)?;
    let range = offset.checked_add(length).and_then(|end| bytes.get(offset..end));
    range
        .map(<[u8]>::to_vec)
        .ok_or_else(|| Error::malformed(format!("`{}` has {} bytes, {length} from {offset} are needed", path.display(), bytes.len())))
}
