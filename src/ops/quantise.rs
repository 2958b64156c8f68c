//! Quantisation on the device: scales of groups, zero points, and codes, as [`Quantised`](crate::tensor::quantised) defines them.
//!
//! Each part is an operation, so that it fuses with what is around it: scales are a reduction of rows, codes an elementwise operation and a sum of
//! shifted bits. Scales of e8m0 are those of the host to the bit. Others hang on the driver's division and on the order of sums (ternary and
//! binary take a mean), which may move a number beside the middle of two codes to the other one.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, Fill, InputSpec, floats, uniform};
use super::packing::{Pack, num_words};
use super::quantised::{Dequantise, Packed, turned};
use super::random::{RandomOps, random_key};
use super::shape::pad_with;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, ReduceOp, TensorType, UnaryOp};
use crate::tensor::quantised::{QuantiseOptions, Quantised};
use crate::tensor::scheme::{Granularity, ScaleFormat, Scheme, SchemeRounding, TILE, fraction, largest_exponent};
use kernels_gen::DType;
use kernels_gen::formats::{Format, Overflow, Rounding};

/// Which part of a quantised matrix an operation makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The scale of the tensor, F32 `[]`, from `(x)`.
    TensorScale,
    /// The scales of groups, as [`Dequantise`] takes them, from `(x, scale of the tensor if the scheme has one)`.
    Scales,
    /// The zero points of groups, from `(x, scales)`.
    ZeroPoints,
    /// The codes, from `(x, scales, zero points, scale of the tensor, noise)`, as far as the scheme has them. Noise, U32 of the shape of x, is what
    /// rounding by chance takes.
    Codes,
}

/// One part of the quantised matrix of `x`, F32 or F16 `[rows, k]`, by a scheme of codes without a Hadamard transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantise {
    /// Which part.
    pub part: Part,
    /// The scheme.
    pub scheme: Scheme,
}

/// What a scheme's groups are made of, for a matrix of some size.
struct Groups {
    scheme: Scheme,
    format: Format,
    rows: usize,
    k: usize,
}

impl Quantise {
    fn groups(&self, x: &TensorType) -> Result<Groups> {
        let format = self.scheme.format().filter(|_| self.scheme.hadamard.is_none());
        let format = format.ok_or_else(|| Error::invalid(format!("`{}` has no codes, or turns its rows before", self.scheme)))?;
        match x.shape[..] {
            [rows, k] => Ok(Groups { scheme: self.scheme, format, rows, k }),
            _ => Err(Error::internal("quantisation of what is no matrix")),
        }
    }

    /// Types of the operands after x.
    fn others(&self, groups: &Groups) -> Result<Vec<TensorType>> {
        let parts = Dequantise { scheme: self.scheme, rows: groups.rows, k: groups.k }.operands()?;
        let tensor_scale = self.scheme.has_tensor_scale().then(|| TensorType::new(DType::F32, []));
        Ok(match self.part {
            Part::TensorScale => Vec::new(),
            Part::Scales => tensor_scale.into_iter().collect(),
            Part::ZeroPoints => parts.get(1..2).unwrap_or_default().to_vec(),
            Part::Codes => {
                let noise = self.scheme.rounding == SchemeRounding::Stochastic;
                let noise = noise.then(|| TensorType::new(DType::U32, [groups.rows, groups.k]));
                parts[1..].iter().cloned().chain(noise).collect()
            }
        })
    }
}

impl Quantise {
    /// Type of the part, if the scheme has it.
    fn result(&self, groups: &Groups) -> Result<Option<TensorType>> {
        let parts = groups.reader().operands()?;
        Ok(match self.part {
            Part::TensorScale => self.scheme.has_tensor_scale().then(|| TensorType::new(DType::F32, [])),
            Part::Scales => parts.get(1).cloned(),
            Part::ZeroPoints => parts.get(2).filter(|_| self.scheme.scaling.is_some_and(|s| s.zero_point)).cloned(),
            Part::Codes => parts.first().cloned(),
        })
    }
}

impl Groups {
    fn padded(&self) -> usize {
        self.scheme.padded_k(self.k)
    }

    fn shape(&self) -> [usize; 2] {
        self.scheme.scale_shape(self.rows, self.k)
    }

    /// `x`, of the shape of the matrix, combined over each group.
    fn combined(&self, b: &mut GraphBuilder, op: ReduceOp, x: NodeId) -> Result<NodeId> {
        let fill = |b: &mut GraphBuilder, x: NodeId, rows: usize, columns: usize| {
            let high = [rows - self.rows, columns - self.k];
            if high == [0, 0] { Ok(x) } else { pad_with(b, x, &[0, 0], &high, 0.0) }
        };
        let reduced = match self.scheme.scaling.map(|s| s.granularity) {
            None | Some(Granularity::Tensor) => b.reduce(op, x, &[0, 1], false)?,
            Some(Granularity::Channel) => b.reduce(op, x, &[1], false)?,
            Some(Granularity::Block(size)) => {
                let x = fill(b, x, self.rows, self.padded())?;
                let x = b.reshape(x, &[self.rows, self.padded() / size, size])?;
                b.reduce(op, x, &[2], false)?
            }
            Some(Granularity::Tile) => {
                let (down, across) = (self.rows.div_ceil(TILE), self.padded() / TILE);
                let x = fill(b, x, down * TILE, across * TILE)?;
                let x = b.reshape(x, &[down, TILE, across, TILE])?;
                b.reduce(op, x, &[1, 3], false)?
            }
        };
        b.reshape(reduced, &self.shape())
    }

    /// Numbers that ranges are taken of: 0 for what is not finite, but NaN where codes have none and the scale is to become it.
    fn counted(&self, b: &mut GraphBuilder, x: NodeId, magnitude: bool) -> Result<NodeId> {
        let size = b.unary(UnaryOp::Abs, x)?;
        let finite = b.binary_scalar(BinaryOp::Lt, size, f64::INFINITY)?;
        let value = if magnitude { size } else { x };
        let zero = b.splat_like(x, DType::F32, 0.0)?;
        let other = if self.format.has_nan() {
            zero
        } else {
            let nan = b.unary(UnaryOp::IsNan, x)?;
            b.select(nan, size, zero)?
        };
        b.select(finite, value, other)
    }

    /// Least and largest number of each group, the least being 0 but for zero points.
    fn range(&self, b: &mut GraphBuilder, x: NodeId) -> Result<[NodeId; 2]> {
        let affine = self.scheme.scaling.is_some_and(|s| s.zero_point);
        let counted = self.counted(b, x, !affine)?;
        if matches!(self.format, Format::Ternary | Format::Binary) {
            let size = b.unary(UnaryOp::Abs, x)?;
            let finite = b.binary_scalar(BinaryOp::Lt, size, f64::INFINITY)?;
            let ones = b.cast(finite, DType::F32)?;
            let (sum, count) = (self.combined(b, ReduceOp::Sum, counted)?, self.combined(b, ReduceOp::Sum, ones)?);
            let count = b.binary_scalar(BinaryOp::Max, count, 1.0)?;
            let mean = b.binary(BinaryOp::Div, sum, count)?;
            let least = if self.format == Format::Binary { f64::from(f32::MIN_POSITIVE) } else { 0.0 };
            let mean = b.binary_scalar(BinaryOp::Max, mean, least)?;
            return Ok([b.splat_like(mean, DType::F32, 0.0)?, mean]);
        }
        let high = self.combined(b, ReduceOp::Max, counted)?;
        // An empty group has no largest number.
        let high = b.binary_scalar(BinaryOp::Max, high, 0.0)?;
        if !affine {
            return Ok([b.splat_like(high, DType::F32, 0.0)?, high]);
        }
        let low = self.combined(b, ReduceOp::Min, counted)?;
        Ok([b.binary_scalar(BinaryOp::Min, low, 0.0)?, high])
    }

    fn scales(&self, b: &mut GraphBuilder, x: NodeId, tensor_scale: Option<NodeId>) -> Result<NodeId> {
        let missing = || Error::internal("scales of a scheme without them");
        let [low, high] = self.range(b, x)?;
        let max = f64::from(self.format.max_finite());
        let zero = b.binary_scalar(BinaryOp::Eq, high, 0.0)?;
        let codes = match self.scheme.scaling.map(|s| s.format).ok_or_else(missing)? {
            ScaleFormat::F32 | ScaleFormat::F16 => {
                let part = f64::from(1.0 / self.format.max_finite());
                let (up, down) = (b.binary_scalar(BinaryOp::Mul, high, part)?, b.binary_scalar(BinaryOp::Mul, low, part)?);
                let width = b.binary(BinaryOp::Sub, up, down)?;
                let scale = b.binary_scalar(BinaryOp::Max, width, f64::from(f32::MIN_POSITIVE))?;
                let none = b.binary_scalar(BinaryOp::Eq, low, 0.0)?;
                let none = b.binary(BinaryOp::And, none, zero)?;
                let one = b.splat_like(scale, DType::F32, 1.0)?;
                let scale = b.select(none, one, scale)?;
                if self.scheme.scale_bits() == 32 {
                    return Ok(scale);
                }
                let scale = b.binary_scalar(BinaryOp::Max, scale, 2f64.powi(-24))?;
                let scale = b.binary_scalar(BinaryOp::Min, scale, 65_504.0)?;
                return b.cast(scale, DType::F16);
            }
            ScaleFormat::E8M0(rule) => {
                let least = f64::from(largest_exponent(self.format));
                let bits = b.unary(UnaryOp::Bits, high)?;
                let raised = b.binary_scalar(BinaryOp::Add, bits, f64::from(rule.addend(self.format)))?;
                let exponent = b.binary_scalar(BinaryOp::Shr, raised, 23.0)?;
                let exponent = b.binary_scalar(BinaryOp::Max, exponent, least)?;
                let code = b.binary_scalar(BinaryOp::Sub, exponent, least)?;
                let code = b.binary_scalar(BinaryOp::Min, code, 254.0)?;
                let (one, nan) = (b.splat_like(code, DType::U32, 127.0)?, b.splat_like(code, DType::U32, 255.0)?);
                let code = b.select(zero, one, code)?;
                let poisoned = b.unary(UnaryOp::IsNan, high)?;
                b.select(poisoned, nan, code)?
            }
            ScaleFormat::E4M3 => {
                let largest = b.binary_scalar(BinaryOp::Mul, tensor_scale.ok_or_else(missing)?, max)?;
                let ratio = b.binary(BinaryOp::Div, high, largest)?;
                let ratio = b.binary_scalar(BinaryOp::Max, ratio, 2f64.powi(-9))?;
                let ratio = b.binary_scalar(BinaryOp::Min, ratio, 448.0)?;
                let one = b.splat_like(ratio, DType::F32, 1.0)?;
                let ratio = b.select(zero, one, ratio)?;
                b.unary(UnaryOp::Encode(Format::E4M3, Rounding::NearestEven, Overflow::Saturate), ratio)?
            }
        };
        b.add(Op::composite(Pack { bits: 8 }), &[codes])
    }

    fn tensor_scale(&self, b: &mut GraphBuilder, x: NodeId) -> Result<NodeId> {
        let size = b.unary(UnaryOp::Abs, x)?;
        let finite = b.binary_scalar(BinaryOp::Lt, size, f64::INFINITY)?;
        let zero = b.splat_like(size, DType::F32, 0.0)?;
        let counted = b.select(finite, size, zero)?;
        let high = b.reduce(ReduceOp::Max, counted, &[0, 1], false)?;
        let high = b.binary_scalar(BinaryOp::Max, high, 0.0)?;
        let scale = b.binary_scalar(BinaryOp::Mul, high, f64::from(1.0 / (448.0 * self.format.max_finite())))?;
        let scale = b.binary_scalar(BinaryOp::Max, scale, f64::from(f32::MIN_POSITIVE))?;
        let (none, one) = (b.binary_scalar(BinaryOp::Eq, high, 0.0)?, b.splat_like(scale, DType::F32, 1.0)?);
        b.select(none, one, scale)
    }

    /// How scales and zero points are read.
    fn reader(&self) -> Dequantise {
        Dequantise { scheme: self.scheme, rows: self.rows, k: self.k }
    }

    fn zero_points(&self, b: &mut GraphBuilder, x: NodeId, scales: NodeId) -> Result<NodeId> {
        let [low, _] = self.range(b, x)?;
        let steps = self.reader().steps(b, &[x, scales])?;
        let below = b.unary(UnaryOp::Neg, low)?;
        let zero = b.binary(BinaryOp::Div, below, steps)?;
        let codes = b.unary(UnaryOp::Encode(self.format, Rounding::NearestEven, Overflow::Saturate), zero)?;
        b.add(Op::composite(Pack { bits: self.format.bits() }), &[codes])
    }

    fn codes(&self, b: &mut GraphBuilder, x: NodeId, others: &[NodeId]) -> Result<NodeId> {
        let (others, noise) = match (self.scheme.rounding, others) {
            (SchemeRounding::Stochastic, [rest @ .., noise]) => (rest, Some(*noise)),
            _ => (others, None),
        };
        let high = [0, self.padded() - self.k];
        let filled = |b: &mut GraphBuilder, x: NodeId| if high == [0, 0] { Ok(x) } else { pad_with(b, x, &[0, 0], &high, 0.0) };
        let mut value = filled(b, x)?;
        if let Some(scaling) = self.scheme.scaling {
            let reader = self.reader();
            let operands: Vec<NodeId> = [x].iter().chain(others).copied().collect();
            value = match scaling.format {
                // A product with a power of two, which is exact.
                ScaleFormat::E8M0(_) => {
                    let inverse = reader.inverse_steps(b, &operands)?;
                    let inverse = reader.spread(b, inverse)?;
                    let scaled = b.binary(BinaryOp::Mul, value, inverse)?;
                    b.binary_scalar(BinaryOp::Mul, scaled, 1.0 / f64::from(fraction(self.format)))?
                }
                _ => {
                    let steps = reader.steps(b, &operands)?;
                    let steps = reader.spread(b, steps)?;
                    b.binary(BinaryOp::Div, value, steps)?
                }
            };
            if scaling.zero_point {
                value = match self.scheme.rounding {
                    SchemeRounding::Fixed(Rounding::NearestEven) => b.unary(UnaryOp::Round, value)?,
                    SchemeRounding::Fixed(Rounding::TowardsZero) => {
                        let (up, down) = (b.unary(UnaryOp::Ceil, value)?, b.unary(UnaryOp::Floor, value)?);
                        let below = b.binary_scalar(BinaryOp::Lt, value, 0.0)?;
                        b.select(below, up, down)?
                    }
                    SchemeRounding::Stochastic => value,
                };
                let zero = reader.zero_points(b, &operands)?;
                let zero = reader.spread(b, zero)?;
                value = b.binary(BinaryOp::Add, value, zero)?;
            }
        }
        let codes = match (self.scheme.rounding, noise) {
            (SchemeRounding::Stochastic, Some(noise)) => {
                let noise = filled(b, noise)?;
                b.binary(BinaryOp::EncodeStochastic(self.format, self.scheme.overflow), value, noise)?
            }
            (SchemeRounding::Fixed(rounding), _) => b.unary(UnaryOp::Encode(self.format, rounding, self.scheme.overflow), value)?,
            (SchemeRounding::Stochastic, None) => return Err(Error::internal("rounding by chance without noise")),
        };
        b.add(Op::composite(Pack { bits: self.format.bits() }), &[codes])
    }
}

impl Composite for Quantise {
    fn name(&self) -> &'static str {
        match self.part {
            Part::TensorScale => "QuantiseTensorScale",
            Part::Scales => "QuantiseScales",
            Part::ZeroPoints => "QuantiseZeroPoints",
            Part::Codes => "QuantiseCodes",
        }
    }

    fn attributes(&self) -> String {
        self.scheme.to_string()
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let (x, rest) = inputs
            .split_first()
            .filter(|(x, _)| x.dtype.is_float() && x.rank() == 2)
            .ok_or_else(|| call.misfit("its first operand must be f32 or f16 [rows, k]"))?;
        let groups = self.groups(x)?;
        let others = self.others(&groups)?;
        if !rest.iter().copied().eq(&others) {
            let list = others.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(call.misfit(format_args!("after x it takes, for `{}`: {list}", self.scheme)));
        }
        self.result(&groups)?.ok_or_else(|| call.misfit(format_args!("`{}` has no such part", self.scheme)))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x, ref others @ ..] = inputs else { return Err(Error::internal("quantisation of nothing")) };
        let groups = self.groups(&b.ty(x).clone())?;
        match self.part {
            Part::TensorScale => groups.tensor_scale(b, x),
            Part::Scales => groups.scales(b, x, others.first().copied()),
            Part::ZeroPoints => groups.zero_points(b, x, *others.first().ok_or_else(|| Error::internal("zero points without scales"))?),
            Part::Codes => groups.codes(b, x, others),
        }
    }

    /// Codes for scales that are given: the numbers of [`Quantised`] from the other parts.
    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let groups = self.groups(&inputs[0].ty())?;
        let ty = self.result(&groups)?.ok_or_else(|| Error::internal("a part that the scheme has not"))?;
        let x: Vec<f32> = inputs[0].data.iter().map(|&v| v as f32).collect();
        let whole = |index: usize| -> Result<RefTensor> {
            let nearest = Scheme { rounding: SchemeRounding::Fixed(Rounding::NearestEven), ..self.scheme };
            let matrix = Quantised::new(&x, groups.rows, groups.k, &nearest, &QuantiseOptions::default())?;
            let tensors = Packed::<NoValue>::tensors(&matrix)?;
            let tensor = tensors.get(index).ok_or_else(|| Error::internal("a part that the scheme has not"))?;
            Ok(RefTensor::from_host(tensor))
        };
        match self.part {
            Part::TensorScale => whole(groups.reader().operands()?.len() - 1),
            Part::Scales => whole(1),
            Part::ZeroPoints => whole(2),
            Part::Codes => groups.reference_codes(&x, &inputs[1..], ty),
        }
    }
}

impl Groups {
    /// Codes element by element, from scales and zero points that [`Dequantise`] reads out: its numbers for codes of 1, and of the zero points.
    fn reference_codes(&self, x: &[f32], others: &[&RefTensor], ty: TensorType) -> Result<RefTensor> {
        let [_, columns] = self.shape();
        let step = |at: usize| -> f64 {
            let code = |words: &RefTensor| {
                (words.data[at / columns * num_words(8, columns) + at % columns / 4] as u32) >> (at % columns % 4 * 8) & 255
            };
            match (self.scheme.scaling.map(|s| s.format), others.first()) {
                (Some(ScaleFormat::F32 | ScaleFormat::F16), Some(scales)) => scales.data[at],
                (Some(ScaleFormat::E8M0(_)), Some(scales)) => {
                    f64::from(Format::E8M0.decode(code(scales))) * f64::from(fraction(self.format))
                }
                (Some(ScaleFormat::E4M3), Some(scales)) => {
                    let tensor_scale = others.iter().find(|t| t.shape.is_empty()).map_or(1.0, |t| t.data[0] as f32);
                    f64::from(Format::E4M3.decode(code(scales)) * tensor_scale)
                }
                _ => 1.0,
            }
        };
        let bits = self.format.bits();
        let affine = self.scheme.scaling.is_some_and(|s| s.zero_point);
        let zero = |at: usize| match others.get(1).filter(|_| affine) {
            Some(words) => {
                let each = 32 / bits as usize;
                let word = words.data[at / columns * num_words(bits, columns) + at % columns / each] as u32;
                (word >> (at % columns % each * bits as usize) & ((1 << bits) - 1)) as f32
            }
            None => 0.0,
        };
        let noise = others.last().filter(|_| self.scheme.rounding == SchemeRounding::Stochastic);
        let padded = self.padded();
        let code = |i: usize| -> u32 {
            let (row, column) = (i / padded, i % padded);
            let x = if column < self.k { x[row * self.k + column] } else { 0.0 };
            let scaled = match self.scheme.scaling {
                None => x,
                Some(scaling) => {
                    let at = match scaling.granularity {
                        Granularity::Tensor => 0,
                        Granularity::Channel => row,
                        Granularity::Block(size) => row * columns + column / size,
                        Granularity::Tile => row / TILE * columns + column / TILE,
                    };
                    let scaled = match scaling.format {
                        ScaleFormat::E8M0(_) => (f64::from(x) / step(at)) as f32,
                        _ => x / step(at) as f32,
                    };
                    match (scaling.zero_point, self.scheme.rounding) {
                        (false, _) => scaled,
                        (true, SchemeRounding::Fixed(Rounding::NearestEven)) => scaled.round_ties_even() + zero(at),
                        (true, SchemeRounding::Fixed(Rounding::TowardsZero)) => scaled.trunc() + zero(at),
                        (true, SchemeRounding::Stochastic) => scaled + zero(at),
                    }
                }
            };
            match (self.scheme.rounding, noise) {
                (SchemeRounding::Fixed(rounding), _) => self.format.encode(scaled, rounding, self.scheme.overflow),
                (SchemeRounding::Stochastic, noise) => {
                    let word = noise.filter(|_| column < self.k).map_or(0, |noise| noise.data[row * self.k + column] as u32);
                    self.format.encode_stochastic(scaled, word, self.scheme.overflow)
                }
            }
        };
        let codes = (0..self.rows * padded).map(|i| f64::from(code(i))).collect();
        let packed = Pack { bits }.reference(&[&RefTensor::new(DType::U32, [self.rows, padded], codes)?])?;
        RefTensor::new(ty.dtype, ty.shape, packed.data)
    }
}

/// For the functions of [`Packed`] that take no value.
#[derive(Debug, Clone)]
struct NoValue;

impl Value for NoValue {
    fn apply(_: Op, _: &[&Self]) -> Result<Self> {
        Err(Error::internal("an operation on no value"))
    }

    fn ty(&self) -> TensorType {
        TensorType::new(DType::F32, [0])
    }

    fn constant(&self, _: crate::tensor::HostTensor) -> Result<Self> {
        Err(Error::internal("a constant beside no value"))
    }
}

/// Quantisation of values.
pub trait QuantiseOps: Value {
    /// The matrix, F32 `[rows, k]`, quantised by a scheme of codes; `seed` is that of a Hadamard transform and of rounding by chance, which draws word
    /// `row * k + column` of its stream `tensor`.
    fn quantise(&self, scheme: &Scheme, seed: u64, tensor: u64) -> Result<Packed<Self>> {
        let ty = self.ty();
        let [rows, k] = ty.shape[..] else {
            return Err(Error::invalid(format!("quantisation of {ty}: it must be f32 [rows, k]; reshape it")));
        };
        let x = match scheme.hadamard {
            None => self.clone(),
            Some(block) => turned(self, block, seed)?,
        };
        let plain = Scheme { hadamard: None, ..*scheme };
        let part = |part: Part, operands: &[&Self]| Self::apply(Op::composite(Quantise { part, scheme: plain }), operands);
        let tensor_scale = if plain.has_tensor_scale() { Some(part(Part::TensorScale, &[&x])?) } else { None };
        let mut others = Vec::new();
        if let Some(scaling) = plain.scaling {
            let operands: Vec<&Self> = [&x].into_iter().chain(&tensor_scale).collect();
            others.push(part(Part::Scales, &operands)?);
            if scaling.zero_point {
                others.push(part(Part::ZeroPoints, &[&x, &others[0]])?);
            }
            others.extend(tensor_scale);
        }
        let noise = match plain.rounding {
            SchemeRounding::Stochastic => Some(x.constant(random_key(seed, tensor)?)?.random_words(&x.ty().shape)?),
            SchemeRounding::Fixed(_) => None,
        };
        let operands: Vec<&Self> = [&x].into_iter().chain(&others).chain(&noise).collect();
        let codes = part(Part::Codes, &operands)?;
        others.insert(0, codes);
        Packed::new(*scheme, rows, k, seed, others)
    }

    /// The numbers of the quantised matrix, F32 `[rows, k]`: what a scheme leaves of them.
    fn fake_quantise(&self, scheme: &Scheme, seed: u64, tensor: u64) -> Result<Self> {
        self.quantise(scheme, seed, tensor)?.dequantise()
    }
}

impl<V: Value> QuantiseOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    // Those whose codes hang on no division.
    for (name, rows, k) in [
        ("mxfp4", 3, 130),
        ("mxfp8-e4m3-ceil", 5, 33),
        ("mxint8-even", 2, 64),
        ("mxfp6-e3m2-roundup", 7, 257),
        ("int8", 3, 5),
        ("bf16", 4, 7),
    ] {
        let Ok(scheme) = Scheme::parse(name) else { continue };
        let quantise = |part| Op::composite(Quantise { part, scheme });
        let spec = |ty: TensorType| match ty.dtype {
            DType::U32 => uniform(ty.dtype, &ty.shape, 0.0, f64::from(u32::MAX)),
            _ => uniform(ty.dtype, &ty.shape, 0.5, 2.0),
        };
        if scheme.scaling.is_some() {
            cases.add(quantise(Part::Scales), Tolerance::Exact, vec![floats(&[rows, k])]);
        }
        let Ok(operands) = (Dequantise { scheme, rows, k }).operands() else { continue };
        let others = operands.into_iter().skip(1).map(|ty| match ty.dtype {
            // Codes of powers of two near 1.
            DType::U32 => uniform(ty.dtype, &ty.shape, f64::from(0x7f7f_7f7fu32), f64::from(0x7f7f_7f7fu32)),
            _ => spec(ty),
        });
        cases.add(quantise(Part::Codes), Tolerance::Exact, [floats(&[rows, k])].into_iter().chain(others).collect());
    }
    if let Ok(scheme) = Scheme::parse("nvfp4") {
        cases.add(
            Op::composite(Quantise { part: Part::TensorScale, scheme }),
            Tolerance::Relative { relative: 1e-6, absolute: 0.0 },
            vec![floats(&[5, 33])],
        );
    }
    for name in ["int8-channel", "int4-group32-f16", "int4-group64-affine", "fp8-tile", "fp8-tensor"] {
        let Ok(scheme) = Scheme::parse(name) else { continue };
        let tolerance = Tolerance::Relative { relative: 1e-3, absolute: 0.0 };
        cases.add(Op::composite(Quantise { part: Part::Scales, scheme }), tolerance, vec![floats(&[7, 257])]);
    }
    // Powers of two over powers of two: no division rounds.
    for (name, scales) in [("int4-group64-affine", DType::F32), ("int4-group64-affine-f16", DType::F16)] {
        let Ok(scheme) = Scheme::parse(name) else { continue };
        let ones = |dtype: DType, shape: &[usize]| InputSpec { ty: TensorType::new(dtype, shape), fill: Fill::Splat(1.0), ..floats(shape) };
        let operands = vec![ones(DType::F32, &[3, 64]), ones(scales, &[3, 1])];
        cases.add(Op::composite(Quantise { part: Part::ZeroPoints, scheme }), Tolerance::Exact, operands);
    }
}
