//! Codes of a few bits in 32-bit words.
//!
//! A row of codes fills whole words from the low bits up: code `i` of `b` bits, `b` a power of two, is bits `b * (i % p)..` of word `i / p`,
//! `p = 32 / b` being the codes of a word. Codes of six bits come in groups of sixteen, three words each: two words hold the low four bits of
//! eight codes each, the third the high two bits of all sixteen. So each code is found by shifts and masks of words that its neighbours share.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, uniform};
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, ReduceOp, TensorType};
use kernels_gen::DType;

/// Widths of codes, in bits.
pub const WIDTHS: [u32; 6] = [1, 2, 4, 6, 8, 16];

/// Words that hold a row of `codes` codes of `bits` bits.
pub const fn num_words(bits: u32, codes: usize) -> usize {
    match bits {
        6 => 3 * codes.div_ceil(16),
        _ => codes.div_ceil(32 / bits as usize),
    }
}

/// Codes that a row of `words` words can hold.
const fn capacity(bits: u32, words: usize) -> usize {
    match bits {
        6 => words / 3 * 16,
        _ => words * (32 / bits as usize),
    }
}

/// Codes (U32, below `2^bits`) of the last axis as words: `[.., codes] -> [.., words]`. Where the last word has room left it holds zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pack {
    /// Bits of a code, one of [`WIDTHS`].
    pub bits: u32,
}

/// Words (U32) of the last axis as codes: `[.., words] -> [.., codes]` (U32), the first `codes` of those they can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unpack {
    /// Bits of a code, one of [`WIDTHS`].
    pub bits: u32,
    /// Codes of a row.
    pub codes: usize,
}

fn check_width(call: &Call, bits: u32) -> Result<()> {
    match WIDTHS.contains(&bits) {
        true => Ok(()),
        false => Err(call.misfit(format_args!("codes of {bits} bits; allowed are {WIDTHS:?}"))),
    }
}

/// The operand's rows: its shape without the last axis, and that axis' size.
fn rows<'a>(call: &Call<'a>) -> Result<(&'a [usize], usize)> {
    let [x] = call.operands(["x"])?;
    call.dtype("x", x, &[DType::U32])?;
    match &x.shape[..] {
        [rows @ .., last] => Ok((rows, *last)),
        [] => Err(call.misfit("it must have at least one axis, whose elements are packed")),
    }
}

fn with_last(rows: &[usize], last: &[usize]) -> Vec<usize> {
    [rows, last].concat()
}

/// `x` with its last axis taken apart as `[.., n, each]`, and the amounts `0, bits, 2 * bits..` that shift the codes of the last axis apart.
fn apart(b: &mut GraphBuilder, x: NodeId, n: usize, each: usize, bits: u32, repeat: bool) -> Result<[NodeId; 2]> {
    let shape = b.shape(x);
    let rows = &shape[..shape.len() - 1];
    let whole = with_last(rows, &[n, each]);
    let x = b.reshape(x, &if repeat { with_last(rows, &[n, 1]) } else { whole.clone() })?;
    let x = b.broadcast_to(x, &whole)?;
    let places = b.add(Prim::Iota { ty: TensorType::new(DType::U32, [each]), axis: 0 }, &[])?;
    let amounts = b.binary_scalar(BinaryOp::Mul, places, f64::from(bits))?;
    Ok([x, b.broadcast_to(amounts, &whole)?])
}

/// Words of `n * each` codes, each shifted to its place.
fn gather_bits(b: &mut GraphBuilder, codes: NodeId, n: usize, each: usize, bits: u32) -> Result<NodeId> {
    let [codes, amounts] = apart(b, codes, n, each, bits, false)?;
    let placed = b.binary(BinaryOp::Shl, codes, amounts)?;
    // Each bit is set once, so that the sum is their union.
    b.reduce(ReduceOp::Sum, placed, &[b.shape(placed).len() - 1], false)
}

/// The `each` codes of each of `n` words, one after another.
fn spread_bits(b: &mut GraphBuilder, words: NodeId, n: usize, each: usize, bits: u32) -> Result<NodeId> {
    let [words, amounts] = apart(b, words, n, each, bits, true)?;
    let codes = b.binary(BinaryOp::Shr, words, amounts)?;
    let codes = b.binary_scalar(BinaryOp::And, codes, f64::from((1u32 << bits) - 1))?;
    let shape = b.shape(codes);
    b.reshape(codes, &with_last(&shape[..shape.len() - 2], &[n * each]))
}

/// `sizes` elements of the last axis from `start`.
fn part(b: &mut GraphBuilder, x: NodeId, start: usize, size: usize) -> Result<NodeId> {
    let mut sizes = b.shape(x);
    if sizes.last() == Some(&size) {
        return Ok(x);
    }
    let (mut starts, steps) = (vec![0; sizes.len()], vec![1; sizes.len()]);
    if let (Some(first), Some(last)) = (starts.last_mut(), sizes.last_mut()) {
        (*first, *last) = (start, size);
    }
    b.add(Prim::Slice { starts, steps, sizes }, &[x])
}

impl Composite for Pack {
    fn name(&self) -> &'static str {
        "Pack"
    }

    fn attributes(&self) -> String {
        format!("bits={}", self.bits)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        check_width(&call, self.bits)?;
        let (rows, codes) = rows(&call)?;
        Ok(TensorType::new(DType::U32, with_last(rows, &[num_words(self.bits, codes)])))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x] = inputs else { return Err(Error::internal("Pack without its operand")) };
        let shape = b.shape(x);
        let Some((&codes, rows)) = shape.split_last() else { return Err(Error::internal("Pack of a scalar")) };
        let words = num_words(self.bits, codes);
        let mut high = vec![0; shape.len()];
        high[rows.len()] = capacity(self.bits, words) - codes;
        let zero = b.scalar(DType::U32, 0.0)?;
        let x = if high[rows.len()] > 0 { b.add(Prim::Pad { low: vec![0; shape.len()], high }, &[x, zero])? } else { x };
        if self.bits != 6 {
            return gather_bits(b, x, words, 32 / self.bits as usize, self.bits);
        }
        let groups = words / 3;
        let (low, high) = (b.binary_scalar(BinaryOp::And, x, 15.0)?, b.binary_scalar(BinaryOp::Shr, x, 4.0)?);
        let (low, high) = (gather_bits(b, low, 2 * groups, 8, 4)?, gather_bits(b, high, groups, 16, 2)?);
        let (low, high) = (b.reshape(low, &with_last(rows, &[groups, 2]))?, b.reshape(high, &with_last(rows, &[groups, 1]))?);
        let all = b.add(Prim::Concat { axis: rows.len() + 1 }, &[low, high])?;
        b.reshape(all, &with_last(rows, &[words]))
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let ty = self.infer(&[&inputs[0].ty()])?;
        let codes = inputs[0].shape.last().copied().unwrap_or(0);
        let words = ty.shape.last().copied().unwrap_or(0);
        let rows = inputs[0].data.len().checked_div(codes).unwrap_or(0);
        let mut data = vec![0u32; rows * words];
        for (i, &code) in inputs[0].data.iter().enumerate() {
            let (row, i) = (&mut data[i / codes * words..], i % codes);
            let code = code as u32;
            match self.bits {
                6 => {
                    row[i / 16 * 3 + i % 16 / 8] |= (code & 15) << (i % 8 * 4);
                    row[i / 16 * 3 + 2] |= (code >> 4) << (i % 16 * 2);
                }
                bits => {
                    let each = 32 / bits as usize;
                    row[i / each] |= code << (i % each * bits as usize);
                }
            }
        }
        RefTensor::new(ty.dtype, ty.shape, data.into_iter().map(f64::from).collect())
    }
}

impl Composite for Unpack {
    fn name(&self) -> &'static str {
        "Unpack"
    }

    fn attributes(&self) -> String {
        format!("bits={} codes={}", self.bits, self.codes)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        check_width(&call, self.bits)?;
        let (rows, words) = rows(&call)?;
        if words != num_words(self.bits, self.codes) {
            return Err(call.misfit(format_args!(
                "{} codes of {} bits fill {} words a row",
                self.codes,
                self.bits,
                num_words(self.bits, self.codes)
            )));
        }
        Ok(TensorType::new(DType::U32, with_last(rows, &[self.codes])))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x] = inputs else { return Err(Error::internal("Unpack without its operand")) };
        let shape = b.shape(x);
        let Some((&words, rows)) = shape.split_last() else { return Err(Error::internal("Unpack of a scalar")) };
        let codes = if self.bits == 6 {
            let groups = words / 3;
            let x = b.reshape(x, &with_last(rows, &[groups, 3]))?;
            let (low, high) = (part(b, x, 0, 2)?, part(b, x, 2, 1)?);
            let (low, high) = (b.reshape(low, &with_last(rows, &[2 * groups]))?, b.reshape(high, &with_last(rows, &[groups]))?);
            let (low, high) = (spread_bits(b, low, 2 * groups, 8, 4)?, spread_bits(b, high, groups, 16, 2)?);
            let high = b.binary_scalar(BinaryOp::Shl, high, 4.0)?;
            b.binary(BinaryOp::Or, low, high)?
        } else {
            spread_bits(b, x, words, 32 / self.bits as usize, self.bits)?
        };
        part(b, codes, 0, self.codes)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let ty = self.infer(&[&inputs[0].ty()])?;
        let words = inputs[0].shape.last().copied().unwrap_or(0);
        let code = |i: usize| {
            let (row, i) = (&inputs[0].data[i / self.codes * words..], i % self.codes);
            match self.bits {
                6 => {
                    let low = (row[i / 16 * 3 + i % 16 / 8] as u32) >> (i % 8 * 4) & 15;
                    low | ((row[i / 16 * 3 + 2] as u32) >> (i % 16 * 2) & 3) << 4
                }
                bits => {
                    let each = 32 / bits as usize;
                    (row[i / each] as u32) >> (i % each * bits as usize) & ((1u32 << bits) - 1)
                }
            }
        };
        let data = (0..ty.num_elems()).map(|i| f64::from(code(i))).collect();
        RefTensor::new(ty.dtype, ty.shape, data)
    }
}

/// Codes of a few bits, packed and taken apart.
pub trait PackingOps: Value {
    /// Codes below `2^bits` (U32, last axis) as words; `bits` is one of [`WIDTHS`].
    fn pack(&self, bits: u32) -> Result<Self> {
        Self::apply(Op::composite(Pack { bits }), &[self])
    }

    /// The `codes` codes of each row of words.
    fn unpack(&self, bits: u32, codes: usize) -> Result<Self> {
        Self::apply(Op::composite(Unpack { bits, codes }), &[self])
    }
}

impl<V: Value> PackingOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let limit = |bits: u32| f64::from(u32::MAX >> (32 - bits));
    for bits in WIDTHS {
        for shape in [&[1usize] as &[usize], &[7], &[257], &[3, 64], &[5, 33], &[2, 0], &[0, 3]] {
            cases.add(Op::composite(Pack { bits }), Tolerance::Exact, vec![uniform(DType::U32, shape, 0.0, limit(bits))]);
            let (codes, rows) = (shape[shape.len() - 1], &shape[..shape.len() - 1]);
            let words = uniform(DType::U32, &with_last(rows, &[num_words(bits, codes)]), 0.0, limit(32));
            cases.add(Op::composite(Unpack { bits, codes }), Tolerance::Exact, vec![words]);
        }
    }
}
