//! Codes of element formats ([`kernels_gen::formats`]): read, written, written by chance; and the bits of floats.
//!
//! All of them are exact: the reference calls the functions that the kernels hold in WGSL, and results are compared to the bit.

use super::call::{Call, FLOATS};
use super::cases::{Cases, around, edges, uniform};
use super::shape::ShapeOps;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::Result;
use crate::graph::{BinaryOp, Prim, TensorType, UnaryOp};
use kernels_gen::DType;
use kernels_gen::formats::{Format, Overflow, Rounding};

pub(super) fn infer_unary(call: &Call, op: UnaryOp, x: &TensorType) -> Result<TensorType> {
    let (allowed, result): (&[DType], _) = match op {
        UnaryOp::Decode(_) | UnaryOp::FromBits => (&[DType::U32], DType::F32),
        _ => (FLOATS, DType::U32),
    };
    call.dtype("x", x, allowed)?;
    Ok(TensorType::new(result, x.shape.clone()))
}

pub(super) fn infer_stochastic(call: &Call) -> Result<TensorType> {
    let [x, noise] = call.operands(["x", "noise"])?;
    call.dtype("x", x, FLOATS)?;
    call.dtype("noise", noise, &[DType::U32])?;
    if x.shape != noise.shape {
        return Err(call.misfit("its operands must have one shape: a word of noise for each element"));
    }
    Ok(TensorType::new(DType::U32, x.shape.clone()))
}

/// What the operation makes of codes or bits.
pub(super) fn unary_code(op: UnaryOp, code: u32) -> f64 {
    match op {
        UnaryOp::Decode(format) => f64::from(format.decode(code)),
        _ => f64::from(f32::from_bits(code)),
    }
}

/// The code that the operation makes of a float.
pub(super) fn unary_float(op: UnaryOp, x: f64) -> f64 {
    let x = x as f32;
    f64::from(match op {
        UnaryOp::Encode(format, rounding, overflow) => format.encode(x, rounding, overflow),
        _ if x.is_nan() => 0x7fc0_0000,
        _ => x.to_bits(),
    })
}

pub(super) fn stochastic(format: Format, overflow: Overflow, x: f64, noise: f64) -> f64 {
    f64::from(format.encode_stochastic(x as f32, noise as u32, overflow))
}

/// Codes of element formats, one in each `u32`, and bits of floats.
pub trait FormatOps: Value {
    /// The numbers of codes (`u32`, bits above a code are not looked at).
    fn decode(&self, format: Format) -> Result<Self> {
        Self::apply(Prim::Unary(UnaryOp::Decode(format)).into(), &[self])
    }

    /// The codes of numbers.
    fn encode(&self, format: Format, rounding: Rounding, overflow: Overflow) -> Result<Self> {
        Self::apply(Prim::Unary(UnaryOp::Encode(format, rounding, overflow)).into(), &[self])
    }

    /// The codes of numbers, each rounded by chance with its word of `noise` (`u32`, broadcast to the numbers' shape).
    fn encode_stochastic(&self, noise: &Self, format: Format, overflow: Overflow) -> Result<Self> {
        let noise = noise.broadcast_to(&self.shared_ty().shape)?;
        Self::apply(Prim::Binary(BinaryOp::EncodeStochastic(format, overflow)).into(), &[self, &noise])
    }

    /// The bits of floats as `f32` (in `u32`); every NaN gives 0x7fc00000.
    fn to_bits(&self) -> Result<Self> {
        Self::apply(Prim::Unary(UnaryOp::Bits).into(), &[self])
    }

    /// The floats of bits (`u32` to `f32`).
    fn bits_to_f32(&self) -> Result<Self> {
        Self::apply(Prim::Unary(UnaryOp::FromBits).into(), &[self])
    }
}

impl<V: Value> FormatOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let words = |shape: &[usize]| uniform(DType::U32, shape, 0.0, f64::from(u32::MAX));
    for format in Format::ALL {
        let elems = 4 * format.num_codes().clamp(4, 1024) as usize + 3;
        // Bits above the codes are not looked at.
        cases.add(Prim::Unary(UnaryOp::Decode(format)), Tolerance::Bits, vec![words(&[elems])]);
        let own_rule = format.has_nan();
        for overflow in [Overflow::Saturate, Overflow::Format].into_iter().take(if own_rule { 2 } else { 1 }) {
            for rounding in [Rounding::NearestEven, Rounding::TowardsZero] {
                let op = Prim::Unary(UnaryOp::Encode(format, rounding, overflow));
                cases.add(op.clone(), Tolerance::Bits, vec![around(format, &[elems])]);
                cases.add(op, Tolerance::Bits, vec![edges(DType::F32, &[22])]);
            }
            let op = Prim::Binary(BinaryOp::EncodeStochastic(format, overflow));
            cases.add(op.clone(), Tolerance::Bits, vec![around(format, &[elems]), words(&[elems])]);
            cases.add(op, Tolerance::Bits, vec![edges(DType::F32, &[88]), edges(DType::U32, &[88])]);
        }
    }
    for shape in [&[] as &[usize], &[0], &[1], &[3, 5, 7]] {
        let encode = Prim::Unary(UnaryOp::Encode(Format::E4M3, Rounding::NearestEven, Overflow::Saturate));
        cases.add(encode, Tolerance::Bits, vec![around(Format::E4M3, shape).reversed()]);
        cases.add(Prim::Unary(UnaryOp::Decode(Format::E2M1)), Tolerance::Bits, vec![words(shape).reversed()]);
        cases.add(Prim::Unary(UnaryOp::Bits), Tolerance::Bits, vec![uniform(DType::F32, shape, -2.0, 2.0)]);
        cases.add(Prim::Unary(UnaryOp::FromBits), Tolerance::Bits, vec![words(shape)]);
    }
    cases.add(Prim::Unary(UnaryOp::Bits), Tolerance::Bits, vec![edges(DType::F32, &[23])]);
    cases.add(Prim::Unary(UnaryOp::FromBits), Tolerance::Bits, vec![words(&[515])]);
    let half = |op: UnaryOp| (Prim::Unary(op), Tolerance::Bits, vec![edges(DType::F16, &[23])]);
    let (op, tolerance, operands) = half(UnaryOp::Encode(Format::E5M2, Rounding::NearestEven, Overflow::Format));
    cases.add(op, tolerance, operands);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::GraphBuilder;

    #[test]
    fn codes_are_words_and_noise_is_a_word_for_each_element() {
        let mut b = GraphBuilder::new();
        let ids = [DType::F32, DType::U32, DType::I32].map(|t| b.input(t.name(), TensorType::new(t, [3])).unwrap());
        let encode = UnaryOp::Encode(Format::E4M3, Rounding::NearestEven, Overflow::Saturate);
        for (op, given, wanted) in [
            (UnaryOp::Decode(Format::Int4), ids[0], "u32"),
            (UnaryOp::FromBits, ids[2], "u32"),
            (UnaryOp::Bits, ids[1], "f32, f16"),
            (encode, ids[1], "f32, f16"),
        ] {
            let error = b.unary(op, given).unwrap_err().to_string();
            assert!(error.contains(&format!("allowed are {wanted}")), "{error}");
        }
        let op = Prim::Binary(BinaryOp::EncodeStochastic(Format::E4M3, Overflow::Saturate));
        assert!(b.add(op.clone(), &[ids[0], ids[0]]).unwrap_err().to_string().contains("noise is f32"));
        let short = b.input("short", TensorType::new(DType::U32, [2])).unwrap();
        assert!(b.add(op, &[ids[0], short]).unwrap_err().to_string().contains("a word of noise"));
    }
}
