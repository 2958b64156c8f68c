//! Schemes: how the elements of a tensor are stored, known by names such as `int4-group32` or `mxfp8-e4m3`.
//!
//! A scheme holds for a matrix whose rows go along K, the dimension that products sum over: weights `[N, K]`, activations `[M, K]`. Elements
//! that share a scale are a group: the whole tensor, a row, a block of a row, or a tile of 128 rows and 128 columns.
//!
//! # Names
//!
//! A preset ([`PRESETS`]), or an element format with what its scales are for: `-tensor`, `-channel` (a row), `-group16`, `32`, `64` or `128` (a
//! block of a row), `-tile` (128 x 128), or nothing, where codes are the numbers themselves. Behind either, in any order:
//!
//! | suffix | what |
//! |---|---|
//! | `-affine` | zero points beside the scales (integers) |
//! | `-f16`, `-e8m0`, `-e4m3` | what scales are stored in, instead of f32; e4m3 has a scale of the tensor above it |
//! | `-ceil`, `-even`, `-roundup` | the rule for scales of e8m0, instead of OCP's |
//! | `-stochastic`, `-truncate` | rounding by chance or towards zero, instead of to nearest |
//! | `-saturate`, `-unsaturated` | numbers past the largest one become that one, or what the format says |
//! | `-hadamard16`, `32`, `64`, `128` | blocks of a row are turned by a random Hadamard matrix first |

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use kernels_gen::formats::{Format, Overflow, Rounding};

/// Names of the schemes that are in use elsewhere, and of the plainest of the others.
pub const PRESETS: &[&str] = &[
    "f32",
    "f16",
    "bf16",
    "mxfp8-e4m3",
    "mxfp8-e5m2",
    "mxfp6-e2m3",
    "mxfp6-e3m2",
    "mxfp4",
    "mxint8",
    "nvfp4",
    "fp8-tile",
    "fp4-tile",
    "fp8-tensor",
    "int8-tensor",
    "int8-channel",
    "int8-channel-affine",
    "int4-group32",
    "int4-group64",
    "int4-group128",
    "int4-group32-affine",
    "int4-group64-affine",
    "int4-group128-affine",
    "int2-group32",
    "int2-group64",
    "int2-group32-affine",
    "int2-group64-affine",
    "nf4",
    "ternary-channel",
    "binary-channel",
];

/// Rows and columns of a tile.
pub const TILE: usize = 128;

/// What an element is stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// f32, as it is.
    F32,
    /// f16, converted as casts do: to nearest, past 65,504 infinity.
    F16,
    /// A code.
    Code(Format),
}

/// Which elements share a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// All.
    Tensor,
    /// Those of a row.
    Channel,
    /// So many neighbours of a row: 16, 32, 64 or 128. The last block of a row is filled up with zeros.
    Block(usize),
    /// 128 rows by 128 columns.
    Tile,
}

/// The rule for a scale of e8m0, by the largest magnitude of the block and the largest number of the element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScaleRule {
    /// The power of two of the magnitude by that of the largest number: OCP MX 1.0. Magnitudes past the largest number saturate.
    Floor,
    /// The same for the next power of two, unless the magnitude is one.
    Ceil,
    /// The same for the magnitude rounded to the element's mantissa.
    Even,
    /// The least power of two under which nothing saturates.
    RoundUp,
}

/// What scales are stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScaleFormat {
    /// f32.
    F32,
    /// f16, between 2^-24 and 65,504.
    F16,
    /// A power of two. Integers under it are fractions with one bit before the point: int8 counts in 2^-6.
    E8M0(ScaleRule),
    /// e4m3, between 2^-9 and 448, under a scale of the tensor in f32.
    E4M3,
}

/// Scales of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scaling {
    /// Which elements share one.
    pub granularity: Granularity,
    /// What they are stored in.
    pub format: ScaleFormat,
    /// Whether each has a zero point: a number is `(code - zero point) * scale`.
    pub zero_point: bool,
}

/// How numbers between two codes are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemeRounding {
    /// By their value.
    Fixed(Rounding),
    /// By chance, from Threefry keyed on seed, tensor and element.
    Stochastic,
}

/// How the elements of a tensor are stored. Fields may be set freely; [`Scheme::check`] says what does not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scheme {
    /// What an element is stored as.
    pub element: Element,
    /// Scales; without them codes are the numbers.
    pub scaling: Option<Scaling>,
    /// How numbers between two codes are rounded.
    pub rounding: SchemeRounding,
    /// What numbers past the largest one become.
    pub overflow: Overflow,
    /// Neighbours of a row that are turned by a random Hadamard matrix first: 16, 32, 64 or 128.
    pub hadamard: Option<usize>,
}

const SIZES: [usize; 4] = [16, 32, 64, 128];

impl ScaleRule {
    /// Every rule.
    pub const ALL: [ScaleRule; 4] = [ScaleRule::Floor, ScaleRule::Ceil, ScaleRule::Even, ScaleRule::RoundUp];

    /// Name: `floor`, `ceil`, `even`, `roundup`.
    pub const fn name(self) -> &'static str {
        match self {
            ScaleRule::Floor => "floor",
            ScaleRule::Ceil => "ceil",
            ScaleRule::Even => "even",
            ScaleRule::RoundUp => "roundup",
        }
    }

    /// What is added to the bits of the largest magnitude, so that the sum's exponent is the magnitude's by this rule.
    pub fn addend(self, format: Format) -> u32 {
        match self {
            ScaleRule::Floor => 0,
            ScaleRule::Ceil => 0x7f_ffff,
            ScaleRule::Even => 1 << (22 - mantissa_bits(format)),
            // Carries where the mantissa is past that of the largest number.
            ScaleRule::RoundUp => 0x7f_ffff - (largest_fraction(format).to_bits() & 0x7f_ffff),
        }
    }

    /// The code of the scale for a block with this largest magnitude; 0 gives that of 1, NaN that of NaN.
    ///
    /// `(bits + addend) >> 23`, less the exponent of the element's largest number, between 0 and 254.
    pub fn code(self, format: Format, amax: f32) -> u32 {
        match amax {
            _ if amax.is_nan() => 255,
            0.0 => 127,
            _ => ((amax.to_bits() + self.addend(format)) >> 23).saturating_sub(largest_exponent(format)).min(254),
        }
    }
}

/// Bits of a mantissa behind the point.
fn mantissa_bits(format: Format) -> u32 {
    match format {
        Format::Bf16 => 7,
        Format::E4M3 | Format::E2M3 => 3,
        Format::E5M2 | Format::E3M2 => 2,
        Format::E2M1 => 1,
        Format::Int8 | Format::Int4 | Format::Int2 => format.bits() - 2,
        _ => 0,
    }
}

/// What a step of an integer counts under scales of e8m0; 1 for other formats.
pub fn fraction(format: Format) -> f32 {
    match format {
        Format::Int8 | Format::Int4 | Format::Int2 => 1.0 / f32::from(1u8 << mantissa_bits(format)),
        _ => 1.0,
    }
}

fn largest_fraction(format: Format) -> f32 {
    format.max_finite() * fraction(format)
}

/// Exponent of the largest number, integers as fractions: what a scale of e8m0 leaves to the element.
pub fn largest_exponent(format: Format) -> u32 {
    (largest_fraction(format).to_bits() >> 23).saturating_sub(127)
}

impl Scheme {
    /// The scheme of a name.
    pub fn parse(name: &str) -> Result<Scheme> {
        let unknown = |what: String| {
            Error::invalid(format!(
                "`{name}` names no scheme: {what}. Presets are {}; else a format ({}) with -tensor, -channel, -group16, -group32, -group64, \
                 -group128 or -tile, and behind either any of -affine, -f16, -e8m0, -e4m3, -ceil, -even, -roundup, -stochastic, -truncate, \
                 -saturate, -unsaturated, -hadamard16, -hadamard32, -hadamard64, -hadamard128",
                PRESETS.join(", "),
                formats().map(|(name, _)| name).collect::<Vec<_>>().join(", ")
            ))
        };
        let mut words = name.split('-');
        let first = words.next().unwrap_or_default();
        let mut rest: Vec<&str> = words.collect();
        let mut second = || if rest.is_empty() { "" } else { rest.remove(0) };
        let block = |size, format| Some(Scaling { granularity: Granularity::Block(size), format, zero_point: false });
        let mx = ScaleFormat::E8M0(ScaleRule::Floor);
        let (element, scaling) = match first {
            "f32" => (Element::F32, None),
            "f16" => (Element::F16, None),
            "mxfp8" | "mxfp6" => {
                let format = match (first, second()) {
                    ("mxfp8", "e4m3") => Format::E4M3,
                    ("mxfp8", "e5m2") => Format::E5M2,
                    ("mxfp6", "e2m3") => Format::E2M3,
                    ("mxfp6", "e3m2") => Format::E3M2,
                    _ => return Err(unknown(format!("`{first}` needs its format behind it"))),
                };
                (Element::Code(format), block(32, mx))
            }
            "mxfp4" => (Element::Code(Format::E2M1), block(32, mx)),
            "mxint8" => (Element::Code(Format::Int8), block(32, mx)),
            "nvfp4" => (Element::Code(Format::E2M1), block(16, ScaleFormat::E4M3)),
            _ => {
                let Some((_, format)) = formats().find(|(name, format)| *name == first || format.name() == first) else {
                    return Err(unknown(format!("there is no format `{first}`")));
                };
                (Element::Code(format), (format == Format::Nf4).then(|| block(64, ScaleFormat::F32)).flatten())
            }
        };
        let mut scheme = Scheme {
            element,
            scaling,
            rounding: SchemeRounding::Fixed(Rounding::NearestEven),
            overflow: default_overflow(element),
            hadamard: None,
        };
        let mut seen: Vec<&str> = Vec::new();
        for word in rest {
            let kind = scheme.suffix(word).ok_or_else(|| unknown(format!("`-{word}` is not known, or not for what stands before it")))?;
            if seen.contains(&kind) {
                return Err(unknown(format!("`-{word}` says a second time what {kind} is")));
            }
            seen.push(kind);
        }
        scheme.check()?;
        Ok(scheme)
    }

    /// Applies one suffix; says what kind it is of, or nothing where it has no meaning.
    fn suffix(&mut self, word: &str) -> Option<&'static str> {
        let size = |prefix: &str| word.strip_prefix(prefix).and_then(|n| SIZES.into_iter().find(|s| s.to_string() == n));
        let granularity = match word {
            "tensor" => Some(Granularity::Tensor),
            "channel" => Some(Granularity::Channel),
            "tile" => Some(Granularity::Tile),
            _ => size("group").map(Granularity::Block),
        };
        if let Some(granularity) = granularity {
            let Element::Code(format) = self.element else { return None };
            match &mut self.scaling {
                None => self.scaling = Some(Scaling { granularity, format: ScaleFormat::F32, zero_point: false }),
                // Presets have theirs; that of nf4 may be another.
                Some(scaling) if format == Format::Nf4 => scaling.granularity = granularity,
                Some(_) => return None,
            }
            return Some("the group");
        }
        if let Some(size) = size("hadamard") {
            self.hadamard = Some(size);
            return Some("the transform");
        }
        match word {
            "stochastic" => self.rounding = SchemeRounding::Stochastic,
            "truncate" => self.rounding = SchemeRounding::Fixed(Rounding::TowardsZero),
            "saturate" => self.overflow = Overflow::Saturate,
            "unsaturated" => self.overflow = Overflow::Format,
            _ => {
                let scaling = self.scaling.as_mut()?;
                let rule = ScaleRule::ALL.into_iter().find(|rule| rule.name() == word);
                match (word, rule, &mut scaling.format) {
                    (_, Some(rule), ScaleFormat::E8M0(present)) => *present = rule,
                    (_, Some(_), _) => return None,
                    ("f16", ..) => scaling.format = ScaleFormat::F16,
                    ("e8m0", ..) => scaling.format = ScaleFormat::E8M0(ScaleRule::Floor),
                    ("e4m3", ..) => scaling.format = ScaleFormat::E4M3,
                    ("affine", ..) => {
                        let Element::Code(format) = self.element else { return None };
                        self.element = Element::Code(unsigned(format)?);
                        scaling.zero_point = true;
                    }
                    _ => return None,
                }
                return Some(match word {
                    "affine" => "the zero point",
                    _ if rule.is_some() => "the rule",
                    _ => "the scale",
                });
            }
        }
        Some(if matches!(word, "stochastic" | "truncate") { "the rounding" } else { "the overflow" })
    }

    /// Checks that the parts go together.
    pub fn check(&self) -> Result<()> {
        let fault = |what: &str| Err(Error::invalid(format!("the scheme `{self}` does not hold together: {what}")));
        let Element::Code(format) = self.element else {
            let plain = Scheme { hadamard: None, ..*self } == Scheme::of(self.element);
            return if plain && sound(self.hadamard) { Ok(()) } else { fault("f32 and f16 have neither scales nor rules of their own") };
        };
        if !sound(self.hadamard) {
            return fault("a Hadamard block has 16, 32, 64 or 128 elements");
        }
        let unsigned = matches!(format, Format::Uint8 | Format::Uint4 | Format::Uint2);
        let Some(scaling) = self.scaling else {
            return match format {
                Format::E8M0 => fault("e8m0 holds scales, no elements"),
                Format::Nf4 => fault("nf4 needs scales"),
                _ if unsigned => fault("uint8, uint4 and uint2 need scales and zero points"),
                _ => Ok(()),
            };
        };
        match (scaling.granularity, scaling.format) {
            (Granularity::Block(size), _) if !SIZES.contains(&size) => return fault("a block has 16, 32, 64 or 128 elements"),
            _ if matches!(format, Format::Bf16 | Format::E8M0) => return fault("bf16 and e8m0 take no scales"),
            _ if scaling.zero_point != unsigned => return fault("zero points belong to uint8, uint4 and uint2, and these to them"),
            (_, ScaleFormat::E8M0(_) | ScaleFormat::E4M3) if scaling.zero_point => return fault("zero points need scales of f32 or f16"),
            (Granularity::Tensor, ScaleFormat::E4M3) => {
                return fault("scales of e4m3 stand under one of the tensor: give them smaller groups");
            }
            _ => {}
        }
        Ok(())
    }

    /// The scheme of an element without scales.
    pub fn of(element: Element) -> Scheme {
        let rounding = SchemeRounding::Fixed(Rounding::NearestEven);
        Scheme { element, scaling: None, rounding, overflow: default_overflow(element), hadamard: None }
    }

    /// The scheme for the other operand of a product whose weights have this one: tiles become blocks of 128 elements of a row.
    #[must_use]
    pub fn for_activations(&self) -> Scheme {
        let mut scheme = *self;
        if let Some(scaling) = &mut scheme.scaling
            && scaling.granularity == Granularity::Tile
        {
            scaling.granularity = Granularity::Block(TILE);
        }
        scheme
    }

    /// Bits of an element.
    pub fn bits(&self) -> u32 {
        match self.element {
            Element::F32 => 32,
            Element::F16 => 16,
            Element::Code(format) => format.bits(),
        }
    }

    /// The format of codes; f32 and f16 have none.
    pub fn format(&self) -> Option<Format> {
        match self.element {
            Element::Code(format) => Some(format),
            _ => None,
        }
    }

    /// Elements that whole words hold: 32 divided by the bits of one, or 16 in three words where those are 6.
    pub fn pack_elems(&self) -> usize {
        if self.bits() == 6 { 16 } else { 32 / self.bits() as usize }
    }

    /// Columns that share a scale, if not all of a row do.
    pub fn block(&self) -> Option<usize> {
        match self.scaling?.granularity {
            Granularity::Block(size) => Some(size),
            Granularity::Tile => Some(TILE),
            Granularity::Tensor | Granularity::Channel => None,
        }
    }

    /// Elements of a stored row of `k` numbers: filled up to whole blocks, whole words and whole Hadamard blocks.
    pub fn padded_k(&self, k: usize) -> usize {
        // All of them are powers of two.
        k.next_multiple_of(self.pack_elems().max(self.block().unwrap_or(1)).max(self.hadamard.unwrap_or(1)))
    }

    /// Words of codes of a stored row.
    pub fn words_per_row(&self, k: usize) -> usize {
        self.padded_k(k) * self.bits() as usize / 32
    }

    /// Rows and columns of the scales of a matrix; `[0, 0]` where there are none.
    pub fn scale_shape(&self, rows: usize, k: usize) -> [usize; 2] {
        match self.scaling.map(|s| s.granularity) {
            None => [0, 0],
            Some(Granularity::Tensor) => [1, 1],
            Some(Granularity::Channel) => [rows, 1],
            Some(Granularity::Block(size)) => [rows, self.padded_k(k) / size],
            Some(Granularity::Tile) => [rows.div_ceil(TILE), self.padded_k(k) / TILE],
        }
    }

    /// Bits of a stored scale, 0 where there are none.
    pub fn scale_bits(&self) -> u32 {
        match self.scaling.map(|s| s.format) {
            None => 0,
            Some(ScaleFormat::F32) => 32,
            Some(ScaleFormat::F16) => 16,
            Some(ScaleFormat::E8M0(_) | ScaleFormat::E4M3) => 8,
        }
    }

    /// Words of a row of scales.
    pub fn scale_words_per_row(&self, rows: usize, k: usize) -> usize {
        (self.scale_shape(rows, k)[1] * self.scale_bits() as usize).div_ceil(32)
    }

    /// Words of a row of zero points, which are stored as elements are.
    pub fn zero_words_per_row(&self, rows: usize, k: usize) -> usize {
        match self.scaling {
            Some(Scaling { zero_point: true, .. }) => (self.scale_shape(rows, k)[1] * self.bits() as usize).div_ceil(32),
            _ => 0,
        }
    }

    /// Whether there is a scale of the tensor above the others.
    pub fn has_tensor_scale(&self) -> bool {
        self.scaling.is_some_and(|s| s.format == ScaleFormat::E4M3)
    }

    /// Bytes of a stored matrix: codes, scales, zero points and the tensor's scale.
    pub fn bytes(&self, rows: usize, k: usize) -> usize {
        let scales = self.scale_words_per_row(rows, k) + self.zero_words_per_row(rows, k);
        let words = rows * self.words_per_row(k) + self.scale_shape(rows, k)[0] * scales;
        4 * (words + usize::from(self.has_tensor_scale()))
    }
}

fn sound(hadamard: Option<usize>) -> bool {
    hadamard.is_none_or(|size| SIZES.contains(&size))
}

/// bf16 keeps infinities; what is smaller saturates.
fn default_overflow(element: Element) -> Overflow {
    if element == Element::Code(Format::Bf16) { Overflow::Format } else { Overflow::Saturate }
}

/// The formats that schemes are made of, by the names in schemes' names.
fn formats() -> impl Iterator<Item = (&'static str, Format)> {
    let all = Format::ALL.into_iter().filter(|f| !matches!(f, Format::E8M0 | Format::Uint8 | Format::Uint4 | Format::Uint2));
    all.map(|f| (short_name(f), f))
}

fn short_name(format: Format) -> &'static str {
    match format {
        Format::E4M3 => "fp8",
        Format::E2M1 => "fp4",
        Format::Uint8 => "int8",
        Format::Uint4 => "int4",
        Format::Uint2 => "int2",
        format => format.name(),
    }
}

fn unsigned(format: Format) -> Option<Format> {
    match format {
        Format::Int8 => Some(Format::Uint8),
        Format::Int4 => Some(Format::Uint4),
        Format::Int2 => Some(Format::Uint2),
        _ => None,
    }
}

impl fmt::Display for Scheme {
    /// The name, which [`Scheme::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = match self.element {
            Element::F32 => return write!(f, "f32{}", suffixes(self)),
            Element::F16 => return write!(f, "f16{}", suffixes(self)),
            Element::Code(format) => format,
        };
        let Some(scaling) = self.scaling else {
            return write!(f, "{}{}", short_name(format), suffixes(self));
        };
        let mx = match (scaling.granularity, format) {
            (Granularity::Block(32), Format::E4M3) => Some("mxfp8-e4m3"),
            (Granularity::Block(32), Format::E5M2) => Some("mxfp8-e5m2"),
            (Granularity::Block(32), Format::E2M3) => Some("mxfp6-e2m3"),
            (Granularity::Block(32), Format::E3M2) => Some("mxfp6-e3m2"),
            (Granularity::Block(32), Format::E2M1) => Some("mxfp4"),
            (Granularity::Block(32), Format::Int8) => Some("mxint8"),
            _ => None,
        };
        let scale = match (scaling.format, mx) {
            (ScaleFormat::E8M0(rule), Some(preset)) => {
                f.write_str(preset)?;
                if rule != ScaleRule::Floor {
                    write!(f, "-{}", rule.name())?;
                }
                return f.write_str(&suffixes(self));
            }
            (ScaleFormat::E4M3, _) if (format, scaling.granularity) == (Format::E2M1, Granularity::Block(16)) => {
                return write!(f, "nvfp4{}", suffixes(self));
            }
            (ScaleFormat::F32, _) => String::new(),
            (ScaleFormat::F16, _) => "-f16".into(),
            (ScaleFormat::E4M3, _) => "-e4m3".into(),
            (ScaleFormat::E8M0(ScaleRule::Floor), _) => "-e8m0".into(),
            (ScaleFormat::E8M0(rule), _) => format!("-e8m0-{}", rule.name()),
        };
        f.write_str(short_name(format))?;
        match scaling.granularity {
            Granularity::Tensor => f.write_str("-tensor")?,
            Granularity::Channel => f.write_str("-channel")?,
            Granularity::Block(64) if format == Format::Nf4 => {}
            Granularity::Block(size) => write!(f, "-group{size}")?,
            Granularity::Tile => f.write_str("-tile")?,
        }
        write!(f, "{}{scale}{}", if scaling.zero_point { "-affine" } else { "" }, suffixes(self))
    }
}

/// Suffixes for rounding, overflow and transform, where they are not what they are by default.
fn suffixes(scheme: &Scheme) -> String {
    let mut text = String::new();
    match scheme.rounding {
        SchemeRounding::Fixed(Rounding::NearestEven) => {}
        SchemeRounding::Fixed(Rounding::TowardsZero) => text.push_str("-truncate"),
        SchemeRounding::Stochastic => text.push_str("-stochastic"),
    }
    if scheme.overflow != default_overflow(scheme.element) {
        text.push_str(if scheme.overflow == Overflow::Saturate { "-saturate" } else { "-unsaturated" });
    }
    if let Some(size) = scheme.hadamard {
        text.push_str(&format!("-hadamard{size}"));
    }
    text
}

impl FromStr for Scheme {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Scheme::parse(name)
    }
}
