//! Element formats: small codes that stand for numbers, on the host. `emit::formats` holds the same functions in WGSL, to the bit.
//!
//! A code lies in the low bits of a `u32`; what is above is not looked at. Everything works on the bits of an `f32`, and converts small
//! integers at most: nothing rounds or flushes as a driver likes. What is decided about overflow, NaN and ties is in
//! `docs/decisions/009-formats-round-and-overflow-by-one-rule.md`.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// What the codes of an element mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// The upper half of an `f32`.
    Bf16,
    /// 4 bits of exponent, 3 of mantissa, up to 448; no infinity, NaN in 0x7f and 0xff (OCP's e4m3fn).
    E4M3,
    /// 5 bits of exponent, 2 of mantissa, up to 57,344; infinities and NaN as in IEEE 754.
    E5M2,
    /// 2 bits of exponent, 3 of mantissa, up to 7.5; neither infinity nor NaN.
    E2M3,
    /// 3 bits of exponent, 2 of mantissa, up to 28; neither infinity nor NaN.
    E3M2,
    /// 2 bits of exponent, 1 of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6; neither infinity nor NaN.
    E2M1,
    /// `2^(code - 127)`, for scales; 255 is NaN. Zero and negative numbers have no code but that.
    E8M0,
    /// Two's complement, -127 to 127: -128 is read as such and never written.
    Int8,
    /// Two's complement, -7 to 7; -8 is read and never written.
    Int4,
    /// Two's complement, -1 to 1; -2 is read and never written.
    Int2,
    /// 0 to 255.
    Uint8,
    /// 0 to 15.
    Uint4,
    /// 0 to 3.
    Uint2,
    /// -1, 0 and 1 in two bits of two's complement.
    Ternary,
    /// -1 (code 0) and 1 (code 1).
    Binary,
    /// The 16 quantiles of the normal distribution between -1 and 1 of QLoRA (Dettmers et al. 2023).
    Nf4,
}

/// How a number between two codes is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rounding {
    /// To the nearer code; from the middle to the even one.
    NearestEven,
    /// To the code of smaller magnitude.
    TowardsZero,
}

/// What a number past the largest one becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Overflow {
    /// The largest finite number, infinities too.
    Saturate,
    /// What the format says: NaN for e4m3 and e8m0, infinity for e5m2 and bf16, the largest number for those that have neither. Rounding
    /// towards zero brings finite numbers to the largest one at most.
    Format,
}

/// How a format is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Sign, exponent, mantissa.
    Float(Float),
    /// Two's complement with values up to `max` on both sides.
    Signed { bits: u32, max: u32 },
    /// From 0 to all ones.
    Unsigned { max: u32 },
    /// Powers of two.
    E8M0,
    /// Two values.
    Binary,
    /// A table.
    Nf4,
}

/// A float of few bits. Codes of magnitudes are in order, as those of `f32` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Float {
    /// Bits of the mantissa.
    pub man: u32,
    /// What is added to exponents.
    pub bias: u32,
    /// The sign's place.
    pub sign: u32,
    /// Code of the largest finite number.
    pub max: u32,
    /// What is past it under [`Overflow::Format`].
    pub past: u32,
    /// Code of NaN, 0 where there is none.
    pub nan: u32,
}

impl Float {
    /// Biased exponent of an `f32` from which on numbers are normal.
    pub const fn normal_from(&self) -> u32 {
        128 - self.bias
    }
}

/// Values of [`Format::Nf4`].
#[allow(clippy::excessive_precision)] // As they are published.
pub(crate) const NF4: [f32; 16] = [
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
];

/// Bits that [`Format::Nf4`] keeps behind the point where it rounds by chance.
const NF4_POINT: u32 = 30;

const INFINITY: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fc0_0000;

impl Format {
    /// Every format.
    pub const ALL: [Format; 16] = [
        Format::Bf16,
        Format::E4M3,
        Format::E5M2,
        Format::E2M3,
        Format::E3M2,
        Format::E2M1,
        Format::E8M0,
        Format::Int8,
        Format::Int4,
        Format::Int2,
        Format::Uint8,
        Format::Uint4,
        Format::Uint2,
        Format::Ternary,
        Format::Binary,
        Format::Nf4,
    ];

    /// Name, which [`Format::from_str`] reads: `e4m3`, `int8`...
    pub const fn name(self) -> &'static str {
        self.names()[0]
    }

    /// The format's name, that of reading its codes and that of writing them.
    pub(crate) const fn names(self) -> [&'static str; 4] {
        macro_rules! names {
            ($($format:ident = $name:literal;)*) => {
                match self { $(Format::$format => [$name, concat!("decode_", $name), concat!("encode_", $name), concat!("dither_", $name)],)* }
            };
        }
        names! {
            Bf16 = "bf16"; E4M3 = "e4m3"; E5M2 = "e5m2"; E2M3 = "e2m3"; E3M2 = "e3m2"; E2M1 = "e2m1"; E8M0 = "e8m0"; Int8 = "int8";
            Int4 = "int4"; Int2 = "int2"; Uint8 = "uint8"; Uint4 = "uint4"; Uint2 = "uint2"; Ternary = "ternary"; Binary = "binary"; Nf4 = "nf4";
        }
    }

    /// Bits of a code.
    pub const fn bits(self) -> u32 {
        match self {
            Format::Bf16 => 16,
            Format::E4M3 | Format::E5M2 | Format::E8M0 | Format::Int8 | Format::Uint8 => 8,
            Format::E2M3 | Format::E3M2 => 6,
            Format::E2M1 | Format::Int4 | Format::Uint4 | Format::Nf4 => 4,
            Format::Int2 | Format::Uint2 | Format::Ternary => 2,
            Format::Binary => 1,
        }
    }

    /// Number of codes.
    pub const fn num_codes(self) -> u32 {
        1 << self.bits()
    }

    /// The largest finite number that is written.
    pub fn max_finite(self) -> f32 {
        match self.class() {
            Class::Float(float) => self.decode(float.max),
            Class::Signed { max, .. } | Class::Unsigned { max } => max as f32,
            Class::E8M0 => self.decode(254),
            Class::Binary | Class::Nf4 => 1.0,
        }
    }

    /// Whether some code is NaN.
    pub fn has_nan(self) -> bool {
        match self.class() {
            Class::Float(float) => float.nan > 0,
            Class::E8M0 => true,
            _ => false,
        }
    }

    /// Whether the codes are integers, so that products of two are exact in integer arithmetic.
    pub fn is_int(self) -> bool {
        matches!(self.class(), Class::Signed { .. } | Class::Unsigned { .. })
    }

    pub(crate) const fn class(self) -> Class {
        match self {
            Format::Bf16 => Class::Float(Float { man: 7, bias: 127, sign: 15, max: 0x7f7f, past: 0x7f80, nan: 0x7fc0 }),
            Format::E4M3 => Class::Float(Float { man: 3, bias: 7, sign: 7, max: 0x7e, past: 0x7f, nan: 0x7f }),
            Format::E5M2 => Class::Float(Float { man: 2, bias: 15, sign: 7, max: 0x7b, past: 0x7c, nan: 0x7e }),
            Format::E2M3 => Class::Float(Float { man: 3, bias: 1, sign: 5, max: 0x1f, past: 0x1f, nan: 0 }),
            Format::E3M2 => Class::Float(Float { man: 2, bias: 3, sign: 5, max: 0x1f, past: 0x1f, nan: 0 }),
            Format::E2M1 => Class::Float(Float { man: 1, bias: 1, sign: 3, max: 7, past: 7, nan: 0 }),
            Format::E8M0 => Class::E8M0,
            Format::Int8 => Class::Signed { bits: 8, max: 127 },
            Format::Int4 => Class::Signed { bits: 4, max: 7 },
            Format::Int2 | Format::Ternary => Class::Signed { bits: 2, max: 1 },
            Format::Uint8 => Class::Unsigned { max: 255 },
            Format::Uint4 => Class::Unsigned { max: 15 },
            Format::Uint2 => Class::Unsigned { max: 3 },
            Format::Binary => Class::Binary,
            Format::Nf4 => Class::Nf4,
        }
    }

    /// The number of a code, which is exact. NaN is the quiet one with the code's sign.
    pub fn decode(self, code: u32) -> f32 {
        let code = code & (self.num_codes() - 1);
        match self.class() {
            Class::Float(float) => {
                let size = code & ((1 << float.sign) - 1);
                let normal = (size << (23 - float.man)) + ((127 - float.bias) << 23);
                let magnitude = match size {
                    _ if float.nan > 0 && size == float.past && size != float.nan => INFINITY,
                    _ if float.nan > 0 && size >= float.past => NAN,
                    // Those of bf16 are those of f32.
                    _ if self == Format::Bf16 => size << 16,
                    // A whole number of the smallest ones.
                    _ if size < 1 << float.man && size > 0 => (size as f32).to_bits() - ((float.bias + float.man - 1) << 23),
                    0 => 0,
                    _ => normal,
                };
                f32::from_bits(magnitude | (code >> float.sign) << 31)
            }
            Class::Signed { bits, .. } => ((code << (32 - bits)) as i32 >> (32 - bits)) as f32,
            Class::Unsigned { .. } => code as f32,
            Class::E8M0 => f32::from_bits(if code == 255 { NAN } else { (code << 23).max(0x40_0000) }),
            Class::Binary => f32::from_bits(0xbf80_0000 ^ (code << 31)),
            Class::Nf4 => NF4[code as usize],
        }
    }

    /// The code of a number. NaN becomes NaN with its sign where the format has one, else 0 (integers and floats), the code of 0 (nf4) or
    /// that of 1 (binary). Zero keeps its sign where codes have one.
    pub fn encode(self, x: f32, rounding: Rounding, overflow: Overflow) -> u32 {
        self.code(x, Mode::Fixed(rounding), overflow)
    }

    /// The code of a number rounded by chance: away from zero with probability the part that is dropped, so that the mean is the number. `noise` is
    /// one random word; the choice is `noise < dropped * 2^32`, the product rounded down.
    ///
    /// Numbers of e8m0 are rounded to the larger power of two; of binary, `x` between -1 and 1 becomes 1 with probability `(1 + x) / 2`; of
    /// nf4, the larger neighbour has its share of the distance. The last two take `x` to a whole number of 2^-30 first.
    pub fn encode_stochastic(self, x: f32, noise: u32, overflow: Overflow) -> u32 {
        self.code(x, Mode::Chance(noise), overflow)
    }

    fn code(self, x: f32, mode: Mode, overflow: Overflow) -> u32 {
        let bits = x.to_bits();
        let size = bits & 0x7fff_ffff;
        let (negative, nan) = (bits >> 31 == 1, size > INFINITY);
        match self.class() {
            Class::Float(float) => {
                if nan {
                    return if float.nan == 0 { 0 } else { float.nan | bits >> 31 << float.sign };
                }
                let code = match self {
                    Format::Bf16 => mode.round(size, 16),
                    _ => {
                        let (exponent, from) = (size >> 23, float.normal_from());
                        let shift = 23 - float.man + (from - exponent.min(from));
                        ((exponent.max(from) - from) << float.man) + mode.round(mantissa(size), shift)
                    }
                };
                let limit = match overflow {
                    Overflow::Saturate => float.max,
                    Overflow::Format if mode == Mode::Fixed(Rounding::TowardsZero) && size < INFINITY => float.max,
                    Overflow::Format => float.past,
                };
                code.min(limit) | bits >> 31 << float.sign
            }
            Class::Signed { bits: width, max } => {
                let size = if nan { 0 } else { whole(size, mode).min(max) };
                if negative { size.wrapping_neg() & ((1 << width) - 1) } else { size }
            }
            Class::Unsigned { max } => {
                if nan || negative {
                    0
                } else {
                    whole(size, mode).min(max)
                }
            }
            Class::E8M0 => {
                // Zero, negative numbers and NaN.
                if bits.wrapping_sub(1) >= INFINITY {
                    return 255;
                }
                let subnormal = size < 0x80_0000;
                let code = match mode {
                    Mode::Fixed(Rounding::TowardsZero) => size >> 23,
                    // From the middle upwards, and below 2^-126 whatever is not 2^-127 itself or less: as ml_dtypes does.
                    Mode::Fixed(Rounding::NearestEven) if size == 0x40_0000 => 0,
                    Mode::Fixed(Rounding::NearestEven) => (size + 0x40_0000) >> 23,
                    Mode::Chance(noise) => {
                        let part = if subnormal { size.saturating_sub(0x40_0000) << 10 } else { size << 9 };
                        (size >> 23) + u32::from(noise < part)
                    }
                };
                code.min(if overflow == Overflow::Saturate { 254 } else { 255 })
            }
            Class::Binary => match mode {
                _ if nan => 1,
                Mode::Fixed(_) => u32::from(bits <= 0x8000_0000),
                // Half the noise against the distance from -1, of which 2 are 2^31.
                Mode::Chance(noise) => u32::from(noise >> 1 < (fixed(bits) + (1 << NF4_POINT)) as u32),
            },
            Class::Nf4 => {
                if nan {
                    return 7;
                }
                match mode {
                    Mode::Fixed(rounding) => {
                        let key = ordered(bits);
                        nf4_thresholds(rounding).iter().filter(|&&t| key >= t).count() as u32
                    }
                    Mode::Chance(noise) => {
                        let (x, values) = (fixed(bits), nf4_fixed());
                        let below = values[1..15].iter().filter(|&&v| x >= v).count();
                        let gap = (values[below + 1] - values[below]) as u32;
                        let up = ((u64::from(noise) * u64::from(gap)) >> 32) < (x - values[below]) as u64;
                        below as u32 + u32::from(up)
                    }
                }
            }
        }
    }
}

/// What decides between two codes.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Fixed(Rounding),
    Chance(u32),
}

impl Mode {
    /// `whole`, of 31 bits at most, without its last `shift` bits, 1 or more, rounded.
    fn round(self, whole: u32, shift: u32) -> u32 {
        let kept = if shift < 32 { whole >> shift } else { 0 };
        // The dropped part, in units of 2^-32.
        let part = match shift {
            1..=32 => ((u64::from(whole) << (32 - shift)) & 0xffff_ffff) as u32,
            33..=63 => whole >> (shift - 32),
            _ => 0,
        };
        let up = match self {
            // Past 32 bits the part is below a half in any case.
            Mode::Fixed(Rounding::NearestEven) => part > 1 << 31 || part == 1 << 31 && kept & 1 == 1,
            Mode::Fixed(Rounding::TowardsZero) => false,
            Mode::Chance(noise) => noise < part,
        };
        kept + u32::from(up)
    }
}

/// The mantissa with the leading bit of normal numbers; subnormal ones are too small to matter where this is used.
fn mantissa(size: u32) -> u32 {
    size & 0x7f_ffff | 0x80_0000
}

/// A magnitude as a whole number; past 2^14 it is only known to be large.
fn whole(size: u32, mode: Mode) -> u32 {
    mode.round(mantissa(size), 150 - (size >> 23).min(141))
}

/// A number in units of 2^-30, between -1 and 1, what is less dropped.
fn fixed(bits: u32) -> i32 {
    let (size, exponent) = (bits & 0x7fff_ffff, bits >> 23 & 255);
    let magnitude = if exponent >= 127 { 1 << 30 } else { (mantissa(size) << 6) >> (126 - exponent).min(31) };
    if bits >> 31 == 1 { -(magnitude as i32) } else { magnitude as i32 }
}

/// Bits of a float as an integer of the same order.
pub(crate) fn ordered(bits: u32) -> i32 {
    let bits = bits as i32;
    bits ^ ((bits >> 31) & 0x7fff_ffff)
}

/// The values of nf4 in units of 2^-30, which they are whole numbers of.
pub(crate) fn nf4_fixed() -> [i32; 16] {
    NF4.map(|v| fixed(v.to_bits()))
}

/// For each code of nf4 but the first: the least number, as [`ordered`] bits, that is not rounded to a code before it.
pub(crate) fn nf4_thresholds(rounding: Rounding) -> [i32; 15] {
    std::array::from_fn(|i| {
        let (low, high) = (NF4[i], NF4[i + 1]);
        match rounding {
            Rounding::TowardsZero if high > 0.0 => ordered(high.to_bits()),
            Rounding::TowardsZero => ordered(low.to_bits()) + 1,
            Rounding::NearestEven => {
                // The sum of two f32 near each other is exact in f64.
                let middle = (f64::from(low) + f64::from(high)) / 2.0;
                let near = middle as f32;
                let up = match f64::from(near).partial_cmp(&middle) {
                    Some(std::cmp::Ordering::Less) => 1,
                    Some(std::cmp::Ordering::Equal) if (i + 1) % 2 == 1 => 1,
                    _ => 0,
                };
                ordered(near.to_bits()) + up
            }
        }
    })
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Format::ALL.into_iter().find(|f| f.name() == name).ok_or_else(|| {
            Error::Unsupported(format!("`{name}` is no element format; those are {}", Format::ALL.map(Format::name).join(", ")))
        })
    }
}

impl Rounding {
    /// Name: `nearest` or `zero`.
    pub const fn name(self) -> &'static str {
        match self {
            Rounding::NearestEven => "nearest",
            Rounding::TowardsZero => "zero",
        }
    }
}

impl Overflow {
    /// Name: `saturate` or `format`.
    pub const fn name(self) -> &'static str {
        match self {
            Overflow::Saturate => "saturate",
            Overflow::Format => "format",
        }
    }
}

#[cfg(test)]
#[path = "formats_tests.rs"]
mod tests;
