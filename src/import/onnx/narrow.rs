//! Element types of ONNX that are none of ours: what their values are held in, exactly, and how many stay packed in memory.

use rten_onnx::onnx::{DataType, NodeProto};

use super::node::Importer;
use crate::error::{Error, Result};
use crate::graph::{NodeId, Op, UnaryOp};
use crate::ops::packing::{Unpack, num_words};
use crate::tensor::HostTensor;
use kernels_gen::DType;
use kernels_gen::formats::Format;

/// Tensors of more elements stay packed.
const MAX_SPREAD_ELEMS: usize = 1024;

/// An element type that is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Narrow {
    Int4,
    Uint4,
    Int16,
    Uint16,
    E4m3,
    E5m2,
}

impl Narrow {
    pub fn of(ty: DataType) -> Option<Self> {
        Some(match ty {
            DataType::INT4 => Narrow::Int4,
            DataType::UINT4 => Narrow::Uint4,
            DataType::INT16 => Narrow::Int16,
            DataType::UINT16 => Narrow::Uint16,
            DataType::FLOAT8E4M3FN => Narrow::E4m3,
            DataType::FLOAT8E5M2 => Narrow::E5m2,
            _ => return None,
        })
    }

    /// The type that holds its values.
    pub fn dtype(self) -> DType {
        match self {
            Narrow::Int4 => DType::I8,
            Narrow::Uint4 => DType::U8,
            Narrow::Int16 | Narrow::Uint16 => DType::I32,
            Narrow::E4m3 | Narrow::E5m2 => DType::F32,
        }
    }

    /// Bits of an element in a file.
    pub fn bits(self) -> u32 {
        match self {
            Narrow::Int4 | Narrow::Uint4 => 4,
            Narrow::Int16 | Narrow::Uint16 => 16,
            Narrow::E4m3 | Narrow::E5m2 => 8,
        }
    }

    /// The least and the largest of integers.
    pub fn range(self) -> Option<[f64; 2]> {
        match self {
            Narrow::Int4 => Some([-8.0, 7.0]),
            Narrow::Uint4 => Some([0.0, 15.0]),
            Narrow::Int16 => Some([-32_768.0, 32_767.0]),
            Narrow::Uint16 => Some([0.0, 65_535.0]),
            Narrow::E4m3 | Narrow::E5m2 => None,
        }
    }

    /// The format that decodes it; 16-bit integers have none.
    pub fn format(self) -> Option<Format> {
        match self {
            Narrow::Int4 => Some(Format::Int4),
            Narrow::Uint4 => Some(Format::Uint4),
            Narrow::E4m3 => Some(Format::E4M3),
            Narrow::E5m2 => Some(Format::E5M2),
            Narrow::Int16 | Narrow::Uint16 => None,
        }
    }

    fn value(self, code: u16) -> f64 {
        match (self, self.format()) {
            (_, Some(format)) => f64::from(format.decode(u32::from(code))),
            (Narrow::Int16, None) => f64::from(code as i16),
            (_, None) => f64::from(code),
        }
    }

    /// The codes of `count` elements from the bytes of a file, elements of four bits two in a byte, the low one first.
    pub fn codes(self, bytes: &[u8], count: usize) -> Vec<u16> {
        let code = |i: usize| match self.bits() {
            4 => u16::from(bytes[i / 2] >> (i % 2 * 4) & 15),
            8 => u16::from(bytes[i]),
            _ => u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]),
        };
        (0..count).map(code).collect()
    }

    /// Bytes of `count` elements in a file.
    pub fn stored_bytes(self, count: usize) -> Option<usize> {
        Some(count.checked_mul(self.bits() as usize)?.div_ceil(8))
    }
}

/// A tensor of such elements.
pub(super) struct NarrowTensor {
    pub ty: Narrow,
    pub shape: Vec<usize>,
    /// One code an element.
    pub codes: Vec<u16>,
}

impl NarrowTensor {
    /// Its values.
    pub fn spread(&self) -> Result<HostTensor> {
        let values: Vec<f64> = self.codes.iter().map(|&code| self.ty.value(code)).collect();
        HostTensor::from_f64(self.ty.dtype(), self.shape.clone(), &values)
    }

    /// Its values as a node: a constant, or packed words and what takes them apart.
    pub fn node(&self, im: &mut Importer) -> Result<NodeId> {
        let (Some(format), Some((&columns, rows))) = (self.ty.format(), self.shape.split_last()) else {
            return im.builder.constant(self.spread()?);
        };
        if self.codes.len() <= MAX_SPREAD_ELEMS {
            return im.builder.constant(self.spread()?);
        }
        let bits = self.ty.bits();
        let (words, per_word) = (num_words(bits, columns), (32 / bits) as usize);
        let word = |codes: &[u16]| codes.iter().rev().fold(0, |word, &code| word << bits | u32::from(code));
        let data: Vec<u32> = self.codes.chunks(columns).flat_map(|row| row.chunks(per_word).map(word)).collect();
        let data = im.builder.constant(HostTensor::new([rows, &[words]].concat(), data)?)?;
        let codes = im.builder.add(Op::composite(Unpack { bits, codes: columns }), &[data])?;
        let values = im.builder.unary(UnaryOp::Decode(format), codes)?;
        im.builder.cast(values, self.ty.dtype())
    }
}

/// Refuses a node that computes with elements of such types, and notes the type of what only moves them.
pub(super) fn check(im: &mut Importer, node: &NodeProto) -> Result<()> {
    let op = node.op_type.as_deref().unwrap_or_default();
    let moves = matches!(op, "Identity" | "Reshape" | "Transpose" | "Squeeze" | "Unsqueeze" | "Flatten");
    let takes = |i: usize| match op {
        "DequantizeLinear" => i == 0 || i == 2,
        "QuantizeLinear" => i == 2,
        "Cast" => i == 0,
        _ => moves && i == 0,
    };
    let narrow = |name: &String| im.narrow.get(name).copied();
    let misused = node.input.iter().enumerate().find_map(|(i, name)| narrow(name).filter(|_| !takes(i)).map(|ty| (name, ty)));
    if let Some((name, ty)) = misused {
        return Err(Error::unsupported(format!(
            "operand `{name}` of element type {ty:?}: values of it may be moved, cast and dequantised, no more; dequantise it first"
        )));
    }
    if let (true, Some(ty), Some(output)) = (moves, node.input.first().and_then(narrow), node.output.first()) {
        im.narrow.insert(output.clone(), ty);
    }
    Ok(())
}
