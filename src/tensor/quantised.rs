//! Matrices of codes with scales, made on the host.
//!
//! # Layout
//!
//! Everything is words of 32 bits. Codes are `[rows, words_per_row]`; a row is filled up to whole blocks and whole words
//! ([`Scheme::padded_k`]) with the codes of 0 (binary has none and takes code 0, which is -1). The first code of a word lies in its lowest
//! bits:
//!
//! - codes of 1, 2, 4, 8, 16 or 32 bits: element `i` is in word `i * bits / 32`, at bit `i * bits % 32`;
//! - codes of 6 bits: 16 of them in three words. Element `j` of the sixteen has its lower four bits in word `j / 8` at bit `j % 8 * 4`, its upper
//!   two in the third word at bit `2 * j`. Every access is a shift and a mask.
//!
//! Scales are [`Scheme::scale_shape`], row-major, each row filled up to whole words: f32 one a word, f16 two, e8m0 and e4m3 four, the first in the
//! lowest bits. Zero points lie likewise, as codes of the elements' bits.
//!
//! # Numbers
//!
//! For each group, `amax` is the largest finite `|x|`. A NaN in a group whose codes have none makes the scale NaN, and so
//! every number of the group; infinities become what the scheme's overflow says. All of the following is in f32, each step rounded to nearest:
//!
//! | scale | value |
//! |---|---|
//! | f32 | `max(amax * (1 / max), 2^-126)`, where `1 / max` is the constant nearest to it, and 1 for `amax = 0` |
//! | f16 | the same between 2^-24 and 65,504, rounded to f16 |
//! | e8m0 | [`ScaleRule::code`](super::scheme::ScaleRule::code): bits alone |
//! | e4m3 | tensor scale `max(amax of the tensor * (1 / (448 max)), 2^-126)`; block scale `amax / (max * tensor scale)` between 2^-9 and 448, rounded to e4m3; where an amax is 0, 1 |
//! | ternary, binary | `amax` is the mean of the finite `|x|`, summed in f64; binary has no 0 and takes 2^-126 for a mean of 0 |
//! | affine | `lo` and `hi` are the least and largest finite number and 0; scale `max(hi * (1 / max) - lo * (1 / max), 2^-126)`, and 1 where both are 0; zero point `-lo / scale`, encoded |
//!
//! A number `x` becomes the code of `x / S`, with `S` the scale; of `x * 2^-e` exactly under e8m0; under e4m3 `S` is the product of both scales. Affine codes are
//! those of `round(x / S) + zero point`. By chance, word `row * k + column` of the stream `tensor` of the
//! seed decides (with `k` filled up to whole Hadamard blocks where there are any). The number of a code is
//! `code * S`, or `(code - zero point) * S`.
//!
//! A device that computes the same finds the same codes where its division is exact; where it may be off by 2.5 units, codes beside the middle of two
//! numbers may be the neighbour. Scales of e8m0 do not depend on that.

use std::fmt;
use std::str::FromStr;

use rayon::prelude::*;

use super::hadamard;
use super::num_elems;
use super::scheme::{Element, Granularity, ScaleFormat, Scheme, SchemeRounding, TILE, fraction};
use crate::error::{Error, Result};
use kernels_gen::formats::{Format, Overflow, Rounding};
use kernels_gen::threefry::Key;

/// How the range of a group is found.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Calibration {
    /// Its largest magnitude (or mean, for ternary and binary).
    #[default]
    Absmax,
    /// The share of it, among 13 from 0.4 to 1, that leaves the least sum of squared errors; for ternary and binary of the mean, from 0.4 to 2; for scales of
    /// e8m0, whose rule may leave the largest numbers out of range, from 0.4 to 2 too.
    Mse,
    /// The magnitude that this many percent of the group's are not above, from 0 to 100; not for ternary and binary.
    Percentile(f32),
}

impl fmt::Display for Calibration {
    /// The name, which `parse` reads: `absmax`, `mse`, `percentile:99.9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Calibration::Absmax => f.write_str("absmax"),
            Calibration::Mse => f.write_str("mse"),
            Calibration::Percentile(p) => write!(f, "percentile:{p}"),
        }
    }
}

impl FromStr for Calibration {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let percent = |text: &str| text.parse().ok().filter(|p| (0.0..=100.0).contains(p)).map(Calibration::Percentile);
        match name {
            "absmax" => Some(Calibration::Absmax),
            "mse" => Some(Calibration::Mse),
            _ => name.strip_prefix("percentile:").and_then(percent),
        }
        .ok_or_else(|| Error::invalid(format!("`{name}` is no calibration; give absmax, mse, or percentile:P with P from 0 to 100")))
    }
}

/// What a quantisation depends on beside numbers and scheme.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QuantiseOptions {
    /// Seed of rounding by chance, and of the signs of a Hadamard transform.
    pub seed: u64,
    /// The tensor's number, so that tensors of one seed are rounded independently.
    pub tensor: u64,
    /// How the range of a group is found.
    pub calibration: Calibration,
}

/// Numbers that no code stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Oddities {
    /// NaN in the input.
    pub num_nan: usize,
    /// Infinities in the input.
    pub num_infinite: usize,
    /// Scales that are NaN, and with them all numbers of their groups.
    pub num_nan_scales: usize,
}

/// A matrix of codes with scales: see the module for what lies where.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantised {
    scheme: Scheme,
    rows: usize,
    k: usize,
    seed: u64,
    codes: Vec<u32>,
    scales: Vec<u32>,
    zero_points: Vec<u32>,
    tensor_scale: f32,
    oddities: Oddities,
}

/// Scale and zero point of a group.
#[derive(Clone, Copy)]
struct Group {
    /// The scale as it is stored: the bits of an f32, of an f16, or a code.
    stored: u32,
    /// What a step of a code counts.
    value: f64,
    zero_point: u32,
}

impl Quantised {
    /// Quantises `rows` rows of `k` numbers, row-major.
    ///
    /// Fails where the numbers are not `rows * k`, where the scheme does not hold together, where the percentile is no number from 0 to 100.
    /// NaN and infinities do not fail: [`Quantised::oddities`] counts them.
    pub fn new(values: &[f32], rows: usize, k: usize, scheme: &Scheme, options: &QuantiseOptions) -> Result<Quantised> {
        scheme.check()?;
        if num_elems(&[rows, k])? != values.len() {
            return Err(Error::invalid(format!("{rows} rows of {k} are {} numbers, {} are given", rows.saturating_mul(k), values.len())));
        }
        if let Calibration::Percentile(p) = options.calibration
            && !(0.0..=100.0).contains(&p)
        {
            return Err(Error::invalid(format!("a percentile is from 0 to 100, {p} is given")));
        }
        let turned = match scheme.hadamard {
            None => None,
            Some(block) => Some(turn(values, rows, k, block, options.seed)?),
        };
        let (values, inner) = match &turned {
            None => (values, k),
            Some(turned) => (&turned[..], k.next_multiple_of(scheme.hadamard.unwrap_or(1))),
        };
        let matrix = Matrix { values, rows, k: inner };
        let tensor_scale = tensor_scale(scheme, &matrix);
        let shape = scheme.scale_shape(rows, k);
        let num_groups = shape[0] * shape[1];
        let group = |at: usize| Group::of(scheme, options.calibration, tensor_scale, &matrix.group(scheme, at / shape[1], at % shape[1]));
        let groups: Vec<Group> = (0..num_groups).into_par_iter().map(group).collect();

        let encoder = Encoder { scheme, noise: Key::new(options.seed).stream(options.tensor) };
        let (padded, words) = (scheme.padded_k(k), scheme.words_per_row(k));
        let mut codes = vec![0u32; rows * words];
        codes.par_chunks_mut(words.max(1)).enumerate().for_each(|(row, out)| {
            let of = |column: usize| {
                let group = group_at(scheme, shape, row, column).map(|at| groups[at]);
                match column < inner {
                    true => encoder.code(matrix.values[row * inner + column], group, (row * inner + column) as u64),
                    false => encoder.padding(group),
                }
            };
            let row_codes: Vec<u32> = (0..padded).map(of).collect();
            pack(&row_codes, scheme.bits(), out);
        });
        let rows_of = |bits: u32, value: &dyn Fn(&Group) -> u32| -> Vec<u32> {
            let words = (shape[1] * bits as usize).div_ceil(32);
            let mut packed = vec![0u32; shape[0] * words];
            for (out, row) in packed.chunks_exact_mut(words.max(1)).zip(groups.chunks_exact(shape[1].max(1))) {
                pack(&row.iter().map(value).collect::<Vec<u32>>(), bits, out);
            }
            packed
        };
        let scales = rows_of(scheme.scale_bits(), &|g| g.stored);
        let affine = scheme.scaling.is_some_and(|s| s.zero_point);
        let zero_points = if affine { rows_of(scheme.bits(), &|g| g.zero_point) } else { Vec::new() };
        let oddities = Oddities {
            num_nan: values.iter().filter(|v| v.is_nan()).count(),
            num_infinite: values.iter().filter(|v| v.is_infinite()).count(),
            num_nan_scales: groups.iter().filter(|g| g.value.is_nan()).count(),
        };
        Ok(Quantised { scheme: *scheme, rows, k, seed: options.seed, codes, scales, zero_points, tensor_scale, oddities })
    }

    /// A matrix from what [`Quantised::codes`] and the others gave, for readers of files. Lengths are checked; of rows whose padding was written over, nothing is
    /// noticed.
    #[allow(clippy::too_many_arguments)] // One for each part that a file holds.
    pub fn from_parts(
        scheme: &Scheme,
        rows: usize,
        k: usize,
        seed: u64,
        codes: Vec<u32>,
        scales: Vec<u32>,
        zero_points: Vec<u32>,
        tensor_scale: f32,
    ) -> Result<Quantised> {
        scheme.check()?;
        num_elems(&[rows, scheme.padded_k(k)])?;
        let num_scale_rows = scheme.scale_shape(rows, k)[0];
        for (what, given, wanted) in [
            ("codes", codes.len(), rows * scheme.words_per_row(k)),
            ("scales", scales.len(), num_scale_rows * scheme.scale_words_per_row(rows, k)),
            ("zero points", zero_points.len(), num_scale_rows * scheme.zero_words_per_row(rows, k)),
        ] {
            if given != wanted {
                return Err(Error::invalid(format!("{what} of {rows} rows of {k} in `{scheme}` are {wanted} words, {given} are given")));
            }
        }
        let oddities = Oddities::default();
        let mut matrix = Quantised { scheme: *scheme, rows, k, seed, codes, scales, zero_points, tensor_scale, oddities };
        let [scale_rows, scale_columns] = scheme.scale_shape(rows, k);
        let all = (0..scale_rows).flat_map(|r| (0..scale_columns).map(move |c| (r, c)));
        matrix.oddities.num_nan_scales = all.filter(|&(r, c)| matrix.scale(r, c).is_nan()).count();
        Ok(matrix)
    }

    /// The scheme.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers of a row.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Seed of the Hadamard transform, if there is one.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Words of codes, `[rows, words_per_row]`.
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// Words of scales, `[scale rows, scale_words_per_row]`.
    pub fn scales(&self) -> &[u32] {
        &self.scales
    }

    /// Words of zero points, `[scale rows, zero_words_per_row]`; none where the scheme has none.
    pub fn zero_points(&self) -> &[u32] {
        &self.zero_points
    }

    /// The scale of the tensor above the others; 1 where the scheme has none.
    pub fn tensor_scale(&self) -> f32 {
        self.tensor_scale
    }

    /// What codes could not stand for. Of a matrix from parts, only the scales are known.
    pub fn oddities(&self) -> Oddities {
        self.oddities
    }

    /// Bytes of codes, scales, zero points and the tensor's scale.
    pub fn bytes(&self) -> usize {
        4 * (self.codes.len() + self.scales.len() + self.zero_points.len() + usize::from(self.scheme.has_tensor_scale()))
    }

    /// The code of an element of a stored row, `column` below [`Scheme::padded_k`].
    pub fn code(&self, row: usize, column: usize) -> u32 {
        let words = self.scheme.words_per_row(self.k);
        unpack(&self.codes[row * words..(row + 1) * words], self.scheme.bits(), column)
    }

    /// What a step of a code counts in a group, the tensor's scale and the unit of integers under e8m0 included.
    pub fn scale(&self, row: usize, column: usize) -> f32 {
        self.step(row, column) as f32
    }

    /// The zero point of a group, 0 where the scheme has none.
    pub fn zero_point(&self, row: usize, column: usize) -> u32 {
        let words = self.scheme.zero_words_per_row(self.rows, self.k);
        if words == 0 { 0 } else { unpack(&self.zero_points[row * words..(row + 1) * words], self.scheme.bits(), column) }
    }

    fn step(&self, row: usize, column: usize) -> f64 {
        let words = self.scheme.scale_words_per_row(self.rows, self.k);
        let stored = unpack(&self.scales[row * words..(row + 1) * words], self.scheme.scale_bits(), column);
        step(&self.scheme, stored, self.tensor_scale)
    }

    /// The numbers of the codes as they stand, `[rows, padded_k]`: what products take. Under a Hadamard transform, those of the turned matrix.
    pub fn stored_values(&self) -> Vec<f32> {
        let (padded, shape) = (self.scheme.padded_k(self.k), self.scheme.scale_shape(self.rows, self.k));
        let mut values = vec![0.0; self.rows * padded];
        values.par_chunks_mut(padded.max(1)).enumerate().for_each(|(row, out)| {
            for (column, value) in out.iter_mut().enumerate() {
                let code = self.code(row, column);
                *value = match (self.scheme.element, group_at(&self.scheme, shape, row, column)) {
                    (Element::F32, _) => f32::from_bits(code),
                    (Element::F16, _) => half::f16::from_bits(code as u16).to_f32(),
                    (Element::Code(format), None) => format.decode(code),
                    (Element::Code(format), Some(at)) => {
                        let (r, c) = (at / shape[1], at % shape[1]);
                        let number = format.decode(code) - self.zero_point(r, c) as f32;
                        // One rounding, as of a product in f32.
                        (f64::from(number) * self.step(r, c)) as f32
                    }
                };
            }
        });
        values
    }

    /// The numbers that the matrix stands for, `[rows, k]`; a Hadamard transform is undone.
    pub fn dequantise(&self) -> Vec<f32> {
        let (stored, padded) = (self.stored_values(), self.scheme.padded_k(self.k));
        let cut = |width: usize| -> Vec<f32> { stored.chunks_exact(padded.max(1)).flat_map(|row| row[..width].iter().copied()).collect() };
        let Some(block) = self.scheme.hadamard else { return cut(self.k) };
        let inner = self.k.next_multiple_of(block);
        let mut turned = cut(inner);
        turned.par_chunks_mut(inner.max(1)).for_each(|row| {
            // Rows are whole blocks.
            let _ = hadamard::inverse(row, inner, block, self.seed);
        });
        turned.chunks_exact(inner.max(1)).flat_map(|row| row[..self.k].iter().copied()).collect()
    }
}

/// Rows filled up to whole blocks with zeros, and turned.
fn turn(values: &[f32], rows: usize, k: usize, block: usize, seed: u64) -> Result<Vec<f32>> {
    let inner = k.next_multiple_of(block);
    let mut turned = vec![0.0; num_elems(&[rows, inner])?];
    for (out, row) in turned.chunks_exact_mut(inner.max(1)).zip(values.chunks_exact(k.max(1))) {
        out[..k].copy_from_slice(row);
    }
    hadamard::transform(&mut turned, inner, block, seed)?;
    Ok(turned)
}

/// The group of an element.
fn group_at(scheme: &Scheme, shape: [usize; 2], row: usize, column: usize) -> Option<usize> {
    let (r, c) = match scheme.scaling?.granularity {
        Granularity::Tensor => (0, 0),
        Granularity::Channel => (row, 0),
        Granularity::Block(size) => (row, column / size),
        Granularity::Tile => (row / TILE, column / TILE),
    };
    Some(r * shape[1] + c)
}

struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    k: usize,
}

impl Matrix<'_> {
    /// The numbers of a group.
    fn group(&self, scheme: &Scheme, row: usize, column: usize) -> Vec<f32> {
        let (rows, columns) = match scheme.scaling.map(|s| s.granularity) {
            None | Some(Granularity::Tensor) => (0..self.rows, 0..self.k),
            Some(Granularity::Channel) => (row..row + 1, 0..self.k),
            Some(Granularity::Block(size)) => (row..row + 1, column * size..(column + 1) * size),
            Some(Granularity::Tile) => (row * TILE..(row + 1) * TILE, column * TILE..(column + 1) * TILE),
        };
        let (start, end) = (columns.start.min(self.k), columns.end.min(self.k));
        let part = |r: usize| &self.values[r * self.k + start..r * self.k + end];
        (rows.start..rows.end.min(self.rows)).flat_map(|r| part(r).iter().copied()).collect()
    }
}

/// The scale of the tensor above those of its blocks; 1 where there is none.
fn tensor_scale(scheme: &Scheme, matrix: &Matrix) -> f32 {
    let (Some(format), true) = (scheme.format(), scheme.has_tensor_scale()) else { return 1.0 };
    let amax = amax(matrix.values);
    if amax == 0.0 { 1.0 } else { (amax * (1.0 / (448.0 * format.max_finite()))).max(f32::MIN_POSITIVE) }
}

fn amax(values: &[f32]) -> f32 {
    values.iter().map(|v| v.abs()).filter(|v| v.is_finite()).fold(0.0, f32::max)
}

/// What a step of a code counts under a stored scale.
fn step(scheme: &Scheme, stored: u32, tensor_scale: f32) -> f64 {
    match (scheme.scaling.map(|s| s.format), scheme.format()) {
        (None, _) | (_, None) => 1.0,
        (Some(ScaleFormat::F32), _) => f64::from(f32::from_bits(stored)),
        (Some(ScaleFormat::F16), _) => half::f16::from_bits(stored as u16).to_f64(),
        (Some(ScaleFormat::E8M0(_)), Some(format)) => f64::from(Format::E8M0.decode(stored)) * f64::from(fraction(format)),
        (Some(ScaleFormat::E4M3), _) => f64::from(Format::E4M3.decode(stored) * tensor_scale),
    }
}

impl Group {
    /// The group's scale by the rules of the module.
    fn of(scheme: &Scheme, calibration: Calibration, tensor_scale: f32, values: &[f32]) -> Group {
        let (Some(scaling), Some(format)) = (scheme.scaling, scheme.format()) else {
            return Group { stored: 0, value: 1.0, zero_point: 0 };
        };
        let poisoned = !format.has_nan() && values.iter().any(|v| v.is_nan());
        let finite: Vec<f32> = values.iter().copied().filter(|v| v.is_finite()).collect();
        let mean = matches!(format, Format::Ternary | Format::Binary);
        let [mut lo, mut hi] = match (calibration, scaling.zero_point) {
            _ if mean => {
                let sum: f64 = finite.iter().map(|v| f64::from(v.abs())).sum();
                [0.0, if finite.is_empty() { 0.0 } else { (sum / finite.len() as f64) as f32 }]
            }
            (Calibration::Percentile(p), true) => [percentile(&finite, 100.0 - p).min(0.0), percentile(&finite, p).max(0.0)],
            (Calibration::Percentile(p), false) => [0.0, percentile(&finite.iter().map(|v| v.abs()).collect::<Vec<_>>(), p)],
            (_, true) => [finite.iter().copied().fold(0.0, f32::min), finite.iter().copied().fold(0.0, f32::max)],
            (_, false) => [0.0, amax(&finite)],
        };
        if poisoned {
            (lo, hi) = (0.0, f32::NAN);
        }
        let for_range = |share: f32| Group::for_range(scheme, format, tensor_scale, lo * share, hi * share);
        if calibration != Calibration::Mse || poisoned {
            return for_range(1.0);
        }
        // Rounded to nearest whatever the scheme's rounding is: what is compared are ranges.
        let nearest = Scheme { rounding: SchemeRounding::Fixed(Rounding::NearestEven), ..*scheme };
        let encoder = Encoder { scheme: &nearest, noise: Key::new(0) };
        let error = |group: &Group| -> f64 {
            let off = |x: f32| {
                let number = format.decode(encoder.code(x, Some(*group), 0)) - group.zero_point as f32;
                (f64::from(number) * group.value - f64::from(x)).powi(2)
            };
            finite.iter().map(|&x| off(x)).sum()
        };
        // The whole range first, so that it stays where nothing is better.
        let both = mean || matches!(scheme.scaling.map(|s| s.format), Some(ScaleFormat::E8M0(_)));
        let last = if both { 32 } else { 12 };
        let shares = (0..=last).map(|i| if both { 0.4 + 0.05 * i as f32 } else { 1.0 - 0.05 * i as f32 });
        let mut best = for_range(1.0);
        let mut least = error(&best);
        for share in shares {
            let group = for_range(share);
            let found = error(&group);
            if found < least {
                (best, least) = (group, found);
            }
        }
        best
    }

    /// The scale, and zero point, of the range from `lo` (0 but for affine schemes) to `hi`.
    fn for_range(scheme: &Scheme, format: Format, tensor_scale: f32, lo: f32, hi: f32) -> Group {
        let hi = if format == Format::Binary && hi == 0.0 { f32::MIN_POSITIVE } else { hi };
        let max = format.max_finite();
        let part = 1.0 / max;
        let plain = match hi * part - lo * part {
            0.0 if hi == 0.0 && lo == 0.0 => 1.0,
            scale if scale.is_nan() => f32::NAN,
            scale => scale.max(f32::MIN_POSITIVE),
        };
        let stored = match scheme.scaling.map(|s| s.format) {
            None => 0,
            Some(ScaleFormat::F32) => plain.to_bits(),
            Some(ScaleFormat::F16) => {
                let inside = if plain.is_nan() { plain } else { plain.clamp(2f32.powi(-24), 65_504.0) };
                u32::from(half::f16::from_f32(inside).to_bits())
            }
            Some(ScaleFormat::E8M0(rule)) => rule.code(format, hi),
            Some(ScaleFormat::E4M3) => {
                let ratio = match hi {
                    0.0 => 1.0,
                    _ if hi.is_nan() => hi,
                    _ => (hi / (max * tensor_scale)).clamp(2f32.powi(-9), 448.0),
                };
                Format::E4M3.encode(ratio, Rounding::NearestEven, Overflow::Saturate)
            }
        };
        let value = step(scheme, stored, tensor_scale);
        let affine = scheme.scaling.is_some_and(|s| s.zero_point);
        let zero_point = if affine { format.encode(-lo / value as f32, Rounding::NearestEven, Overflow::Saturate) } else { 0 };
        Group { stored, value, zero_point }
    }
}

/// The number that `percent` of the values are not above, by rank; 0 of none.
fn percentile(values: &[f32], percent: f32) -> f32 {
    let mut sorted = values.to_vec();
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let rank = (f64::from(percent) / 100.0 * sorted.len() as f64).ceil() as usize;
    *sorted.select_nth_unstable_by(rank.saturating_sub(1).min(last), f32::total_cmp).1
}

struct Encoder<'a> {
    scheme: &'a Scheme,
    noise: Key,
}

impl Encoder<'_> {
    /// The code of a number; `n` is its place in the tensor.
    fn code(&self, x: f32, group: Option<Group>, n: u64) -> u32 {
        let format = match self.scheme.element {
            Element::F32 => return x.to_bits(),
            Element::F16 => return u32::from(half::f16::from_f32(x).to_bits()),
            Element::Code(format) => format,
        };
        let Some(group) = group else { return self.encode(format, x, n) };
        let scaled = match self.scheme.scaling.map(|s| s.format) {
            // A power of two: exact.
            Some(ScaleFormat::E8M0(_)) => (f64::from(x) / group.value) as f32,
            _ => x / group.value as f32,
        };
        let affine = self.scheme.scaling.is_some_and(|s| s.zero_point);
        let moved = match (affine, self.scheme.rounding) {
            (false, _) => scaled,
            (true, SchemeRounding::Fixed(Rounding::NearestEven)) => scaled.round_ties_even() + group.zero_point as f32,
            (true, SchemeRounding::Fixed(Rounding::TowardsZero)) => scaled.trunc() + group.zero_point as f32,
            (true, SchemeRounding::Stochastic) => scaled + group.zero_point as f32,
        };
        self.encode(format, moved, n)
    }

    fn encode(&self, format: Format, x: f32, n: u64) -> u32 {
        match self.scheme.rounding {
            SchemeRounding::Fixed(rounding) => format.encode(x, rounding, self.scheme.overflow),
            SchemeRounding::Stochastic => format.encode_stochastic(x, self.noise.word(n), self.scheme.overflow),
        }
    }

    /// The code of 0, as far as there is one.
    fn padding(&self, group: Option<Group>) -> u32 {
        match self.scheme.format() {
            Some(Format::Nf4) => 7,
            _ => group.map_or(0, |g| g.zero_point),
        }
    }
}

/// Codes in words, as the module says.
fn pack(codes: &[u32], bits: u32, words: &mut [u32]) {
    if bits == 6 {
        for (j, &code) in codes.iter().enumerate() {
            let (at, j) = (j / 16 * 3, j % 16);
            words[at + j / 8] |= (code & 15) << (j % 8 * 4);
            words[at + 2] |= (code >> 4) << (2 * j);
        }
        return;
    }
    for (j, &code) in codes.iter().enumerate() {
        let bit = j * bits as usize;
        words[bit / 32] |= code << (bit % 32);
    }
}

fn unpack(words: &[u32], bits: u32, j: usize) -> u32 {
    if bits == 6 {
        let (at, j) = (j / 16 * 3, j % 16);
        return words[at + j / 8] >> (j % 8 * 4) & 15 | (words[at + 2] >> (2 * j) & 3) << 4;
    }
    let bit = j * bits as usize;
    let code = words[bit / 32] >> (bit % 32);
    if bits == 32 { code } else { code & ((1 << bits) - 1) }
}

#[cfg(test)]
#[path = "quantised_tests.rs"]
mod tests;
