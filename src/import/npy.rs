//! NumPy's array files (`.npy`).

use std::cmp::Ordering;
use std::path::Path;

use npyz::{NpyFile, NpyHeader, Order, TypeChar, WriterBuilder};

use crate::error::{Error, Result};
use crate::files;
use crate::tensor::{HostTensor, TensorData, num_elems, strides};

/// What is read, in messages.
const ALLOWED: &str =
    "float32, float16, int32, uint32, int8, uint8 and bool, and int64 whose values fit 32 bits; convert with `astype` in NumPy";

/// Reads a file, which may be compressed with gzip.
pub fn read(path: impl AsRef<Path>) -> Result<HostTensor> {
    parse(&files::read_maybe_gzip(&path)?).map_err(|e| e.context(format_args!("`{}`", path.as_ref().display())))
}

/// Reads the contents of a file: float32, float16, int32, uint32, int8, uint8, bool, and int64 (as i32, if every value fits).
pub fn parse(bytes: &[u8]) -> Result<HostTensor> {
    let broken = |e: std::io::Error| Error::malformed(format!("not a complete NPY file: {e}")).with_source(e);
    let mut elements = bytes;
    let header = NpyHeader::from_reader(&mut elements).map_err(broken)?;
    let npyz::DType::Plain(ty) = header.dtype() else {
        return Err(Error::unsupported(format!("NPY records cannot be read; allowed are {ALLOWED}")));
    };
    let foreign = || Error::unsupported(format!("NPY element type {ty} cannot be read; allowed are {ALLOWED}"));
    let size = ty.num_bytes().ok_or_else(foreign)?;
    let shape: Vec<usize> = header
        .shape()
        .iter()
        .map(|&d| usize::try_from(d))
        .collect::<Result<_, _>>()
        .map_err(|_| Error::limit(format!("shape {:?} cannot be addressed", header.shape())))?;
    let (count, order) = (num_elems(&shape)?, header.order());
    let is_read = matches!(
        (ty.type_char(), size),
        (TypeChar::Float, 2) | (TypeChar::Float | TypeChar::Uint, 4) | (TypeChar::Int, 1 | 4 | 8) | (TypeChar::Uint | TypeChar::Bool, 1)
    );
    if !is_read {
        return Err(foreign());
    }
    // The stated size is checked before anything is allocated for it.
    let fault = match count.checked_mul(size).map(|needed| elements.len().cmp(&needed)) {
        Some(Ordering::Equal) => None,
        Some(Ordering::Greater) => Some("longer"),
        Some(Ordering::Less) | None => Some("shorter"),
    };
    if let Some(fault) = fault {
        let found = elements.len();
        return Err(Error::malformed(format!("the NPY file states {ty} {shape:?} and is {fault} than that: {found} bytes of elements")));
    }
    let file = NpyFile::with_header(header, elements);
    let tensor = match (ty.type_char(), size) {
        (TypeChar::Float, 4) => HostTensor::new(shape, file.into_vec::<f32>().map_err(broken)?)?,
        (TypeChar::Float, 2) => HostTensor::new(shape, file.into_vec::<half::f16>().map_err(broken)?)?,
        (TypeChar::Int, 4) => HostTensor::new(shape, file.into_vec::<i32>().map_err(broken)?)?,
        (TypeChar::Int, 8) => HostTensor::new(shape, narrow(&file.into_vec::<i64>().map_err(broken)?)?)?,
        (TypeChar::Int, 1) => HostTensor::new(shape, file.into_vec::<i8>().map_err(broken)?)?,
        (TypeChar::Uint, 4) => HostTensor::new(shape, file.into_vec::<u32>().map_err(broken)?)?,
        (TypeChar::Uint, 1) => HostTensor::new(shape, file.into_vec::<u8>().map_err(broken)?)?,
        (TypeChar::Bool, 1) => HostTensor::from_bools(shape, &file.into_vec::<bool>().map_err(broken)?)?,
        _ => return Err(foreign()),
    };
    match order {
        Order::C => Ok(tensor),
        Order::Fortran => row_major(tensor),
    }
}

/// 64-bit integers as 32-bit ones, or an error that names the first that does not fit.
pub(crate) fn narrow(values: &[i64]) -> Result<Vec<i32>> {
    let fit = |&v: &i64| i32::try_from(v).map_err(|_| Error::unsupported(format!("the 64-bit integer {v} does not fit 32 bits")));
    values.iter().map(fit).collect()
}

/// The tensor of elements that lie with the first dimension fastest.
fn row_major(tensor: HostTensor) -> Result<HostTensor> {
    let shape = tensor.shape().to_vec();
    let reversed: Vec<usize> = shape.iter().rev().copied().collect();
    let source_strides: Vec<usize> = strides(&reversed).into_iter().rev().collect();
    let own = strides(&shape);
    let size = tensor.dtype().size_bytes();
    let mut bytes = Vec::with_capacity(tensor.bytes().len());
    for i in 0..tensor.num_elems() {
        let at: usize = (0..shape.len()).map(|d| i / own[d] % shape[d] * source_strides[d]).sum();
        bytes.extend_from_slice(&tensor.bytes()[at * size..(at + 1) * size]);
    }
    HostTensor::from_bytes(tensor.dtype(), shape, &bytes)
}

/// The tensor as the contents of an NPY file.
pub fn to_bytes(tensor: &HostTensor) -> Result<Vec<u8>> {
    fn encode<T: npyz::AutoSerialize + Copy>(shape: &[usize], data: impl IntoIterator<Item = T>) -> std::io::Result<Vec<u8>> {
        let shape: Vec<u64> = shape.iter().map(|&d| d as u64).collect();
        let mut bytes = Vec::new();
        let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(&mut bytes).begin_nd()?;
        writer.extend(data)?;
        writer.finish()?;
        Ok(bytes)
    }
    let shape = tensor.shape();
    let bytes = match tensor.data() {
        TensorData::F32(d) => encode(shape, d.iter().copied()),
        TensorData::F16(d) => encode(shape, d.iter().copied()),
        TensorData::I32(d) => encode(shape, d.iter().copied()),
        TensorData::U32(d) => encode(shape, d.iter().copied()),
        TensorData::I8(d) => encode(shape, d.iter().copied()),
        TensorData::U8(d) => encode(shape, d.iter().copied()),
        TensorData::Bool(d) => encode(shape, d.iter().map(|&b| b != 0)),
    };
    bytes.map_err(|e| Error::internal(format!("cannot encode an NPY file: {e}")).with_source(e))
}

/// Writes the tensor as an NPY file, whole or not at all.
pub fn write(path: impl AsRef<Path>, tensor: &HostTensor) -> Result<()> {
    files::write_atomic(path, &to_bytes(tensor)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels_gen::DType;

    fn encode<T: npyz::AutoSerialize>(shape: &[u64], order: Order, data: Vec<T>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let options = npyz::WriteOptions::new().default_dtype().shape(shape).order(order);
        let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
        writer.extend(data).unwrap();
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        for dtype in DType::ALL {
            for shape in [vec![], vec![0, 3], vec![2, 3]] {
                let count = shape.iter().product();
                let values: Vec<f64> = (0..count).map(|i| (i % 2) as f64).collect();
                let tensor = HostTensor::from_f64(dtype, shape, &values).unwrap();
                assert_eq!(parse(&to_bytes(&tensor).unwrap()).unwrap(), tensor);
            }
        }
    }

    #[test]
    fn fortran_order_becomes_row_major() {
        let bytes = encode(&[2, 3], Order::Fortran, vec![1i32, 4, 2, 5, 3, 6]);
        assert_eq!(parse(&bytes).unwrap().as_slice::<i32>().unwrap(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn wide_integers_are_checked() {
        let tensor = parse(&encode(&[2], Order::C, vec![-5i64, 7])).unwrap();
        assert_eq!(tensor.as_slice::<i32>().unwrap(), [-5, 7]);
        assert!(parse(&encode(&[1], Order::C, vec![1i64 << 40])).unwrap_err().to_string().contains("1099511627776"));
    }

    #[test]
    fn other_files_are_errors() {
        let good = encode(&[4], Order::C, vec![1f32; 4]);
        for end in [0, 5, 9, 40, good.len() - 1] {
            assert!(parse(&good[..end]).is_err(), "cut at {end}");
        }
        assert!(parse(&encode(&[1], Order::C, vec![1f64])).unwrap_err().to_string().contains("float32"));
        let longer = parse(&[&good[..], &[0]].concat()).unwrap_err().to_string();
        assert!(longer.contains("longer") && longer.contains("17 bytes"), "{longer}");
        // What cannot be read is said before what is missing.
        let text = String::from_utf8_lossy(&good[10..good.len() - 16]).replace("<f4'", "|O' ");
        let object = parse(&[&good[..10], text.as_bytes(), &[0; 2]].concat()).unwrap_err().to_string();
        assert!(object.contains("float32") && !object.contains("shorter"), "{object}");
        let double = encode(&[9], Order::C, vec![1f64; 9]);
        assert!(parse(&double[..double.len() - 1]).unwrap_err().to_string().contains("float32"));
        let at = good.windows(2).position(|w| w == b"(4").unwrap();
        let mut huge = good.clone();
        huge[at..at + 16].copy_from_slice(b"(9999999999,), }");
        assert!(parse(&huge).unwrap_err().to_string().contains("shorter"));
    }
}
