//! A layer, its code and its rule as what the kernels run: binary planes one after another, and what partial sums are compared with.
//!
//! A binary plane has one bit for each weight; the kernels add `coef` times the sum of the activations under its bits. Whatever all outputs of a
//! window share, the sum of its activations above all, is kept out of those sums and taken off what they are compared with.

use crate::bitset::encoding::Encoding;
use crate::bitset::layer::{Layer, MAX_RESIDUAL, Thresholds};
use crate::bitset::rule::{Rule, z2};
use crate::error::Result;

/// Sums stay below this where they are kept in 32 bits: a difference of what is compared then fits too.
const NARROW: u128 = 1 << 29;

/// What no partial sum is below, with sums of 32 and of 64 bits.
const NEVER: [i64; 2] = [-(1 << 30), -(1 << 62)];

/// Which weights a binary plane has a bit for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bits {
    /// Digits of this plane that are 1.
    Plus(u32),
    /// Digits of this plane that are -1.
    Minus(u32),
    /// Digits of this plane that are not 0.
    Any(u32),
    /// Positive weights.
    Positive,
    /// Pruned weights.
    Pruned,
    /// What takes the largest possible sum down in this plane: positive weights whose digit is 0, negative ones whose digit is -1.
    Lowering(u32),
}

/// One binary plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plane {
    bits: Bits,
    /// What a bit counts.
    pub coef: i64,
    /// Whether a step ends with it.
    pub is_step: bool,
    /// The row of [`Program::rows`] that partial sums are compared with after it.
    pub test: Option<usize>,
}

/// What partial sums of a window are compared with: `constant + per_sum * S1 - mean term - isqrt((z2 * S2 * variance) >> 8)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub constant: i64,
    pub per_sum: i64,
    pub variance: u32,
}

/// What the kernels run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Program {
    pub planes: Vec<Plane>,
    /// One for each test, and last what is taken off the sum of all planes to make it the output.
    pub rows: Vec<Row>,
    /// `[tests][outputs]`, added to the rows.
    pub thresholds: Vec<Vec<i64>>,
    /// Factor of the variance, 0 where no rule asks for it.
    pub z2: u32,
    /// Whether sums take 64 bits.
    pub is_wide: bool,
    /// Steps of an output that is not stopped.
    pub steps: u32,
}

impl Program {
    pub fn new(layer: &Layer, encoding: Encoding, rule: Rule, thresholds: Option<&Thresholds>, with_residual: bool) -> Result<Self> {
        layer.check_rule(encoding, rule, thresholds)?;
        let bits = layer.bits;
        let planes = encoding.planes(bits);
        let mut program = Program { planes: Vec::new(), rows: Vec::new(), thresholds: Vec::new(), z2: 0, is_wide: false, steps: planes };
        program.is_wide = layer.most(if with_residual { MAX_RESIDUAL } else { 0 }) >= NARROW;
        // The sum of activations times this is what the planes so far leave out.
        let mut left_out = encoding.offset();
        let is_pruned = layer.is_pruned();
        if is_pruned && left_out != 0 {
            // It is no part of pruned weights.
            program.planes.push(Plane { bits: Bits::Pruned, coef: -left_out, is_step: false, test: None });
        }
        match (rule, encoding) {
            (Rule::PositiveFirst, _) => {
                program.steps = 2 * planes;
                for plane in 0..2 * planes {
                    let (digit, weight) = (plane % planes, encoding.weight(bits, plane % planes));
                    let (bits, coef) = if plane < planes { (Bits::Plus(digit), weight) } else { (Bits::Minus(digit), -weight) };
                    let asked = (planes - 1..2 * planes - 1).contains(&plane);
                    program.step(bits, coef, asked.then_some(Row { constant: 1, per_sum: 0, variance: 0 }));
                }
            }
            (Rule::R0, Encoding::Sign) => {
                // The largest possible sum instead of the sum so far; at the end they agree.
                program.planes.push(Plane { bits: Bits::Positive, coef: (1 << bits) - 1, is_step: false, test: None });
                for plane in 0..planes {
                    let row = Row { constant: 1, per_sum: 0, variance: 0 };
                    program.step(Bits::Lowering(plane), -encoding.weight(bits, plane), (plane + 1 < planes).then_some(row));
                }
            }
            _ => {
                for plane in 0..planes {
                    let weight = encoding.weight(bits, plane);
                    let row = |left_out: i64| row(rule, encoding, planes - plane - 1, left_out);
                    match encoding {
                        Encoding::Pm1 if !is_pruned => {
                            left_out -= weight;
                            program.step(Bits::Plus(plane), 2 * weight, row(left_out));
                        }
                        Encoding::Twos | Encoding::Inverted => {
                            let is_negative = (encoding == Encoding::Twos) == (plane == 0);
                            program.step(Bits::Any(plane), if is_negative { -weight } else { weight }, row(left_out));
                        }
                        // Pruned weights have no digit of 1 or -1, so that not all windows share what is left out.
                        Encoding::Pm1 | Encoding::Sign | Encoding::Csd => {
                            program.planes.push(Plane { bits: Bits::Plus(plane), coef: weight, is_step: false, test: None });
                            program.step(Bits::Minus(plane), -weight, row(left_out));
                        }
                    }
                }
            }
        }
        if let Rule::R1 { z } = rule {
            // At most 2,560,000, as rules are read.
            program.z2 = z2(z) as u32;
        }
        let never = NEVER[usize::from(program.is_wide)];
        let num_tests = program.rows.len();
        let of_tests = (0..num_tests).map(|test| {
            let of = |row: &Vec<Option<i64>>| row[test].map_or(never, |threshold| threshold.clamp(never, -never));
            thresholds.map_or_else(|| vec![0; layer.geometry.outputs], |rows| rows.iter().map(of).collect())
        });
        program.thresholds = of_tests.collect();
        program.rows.push(Row { constant: 0, per_sum: -left_out, variance: 0 });
        Ok(program)
    }

    fn step(&mut self, bits: Bits, coef: i64, row: Option<Row>) {
        let test = row.map(|row| {
            self.rows.push(row);
            self.rows.len() - 1
        });
        self.planes.push(Plane { bits, coef, is_step: true, test });
    }
}

/// What an output is compared with while `rest` planes are left, for rules that ask after every plane.
fn row(rule: Rule, encoding: Encoding, rest: u32, left_out: i64) -> Option<Row> {
    if rest == 0 {
        return None;
    }
    let [least, most] = encoding.remainder(rest);
    match rule {
        Rule::None | Rule::PositiveFirst => None,
        Rule::R0 => Some(Row { constant: 1, per_sum: -most - left_out, variance: 0 }),
        Rule::R1 { .. } => {
            let variance = ((1u64 << (2 * rest)) - 1) / 3;
            Some(Row { constant: 0, per_sum: -(least + most) / 2 - left_out, variance: variance as u32 })
        }
        Rule::R2 { .. } | Rule::R3 { .. } => Some(Row { constant: 0, per_sum: -left_out, variance: 0 }),
    }
}

impl Plane {
    /// Whether weight `q` has a bit.
    pub fn has(&self, q: i32, encoding: Encoding, bits: u32) -> bool {
        let digit = |plane| encoding.digit(q, bits, plane);
        match self.bits {
            Bits::Plus(plane) => digit(plane) > 0,
            Bits::Minus(plane) => digit(plane) < 0,
            Bits::Any(plane) => digit(plane) != 0,
            Bits::Positive => q > 0,
            Bits::Pruned => q == 0,
            Bits::Lowering(plane) => {
                if q > 0 {
                    digit(plane) == 0
                } else {
                    digit(plane) < 0
                }
            }
        }
    }
}
