//! Codes of weights: the same odd integers `Q`, written as digits that are processed from the most significant plane on.
//!
//! The odd grid `w ~ s Q + mu`, `Q` odd, is the publication's (Pan et al., ACM TECS 22(5s), 2023); that all codes can write the same integers
//! is derived: `Q = 2 w + 1` turns them into the integers `w` of two's complement.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Fewest and most digits of a weight.
pub const BITS: [u32; 2] = [2, 16];

/// How the digits of a weight are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Encoding {
    /// Each digit is 1 or -1: the odd grid as it is. What is left after some planes has the mean zero.
    Pm1,
    /// Two's complement of `w`: digits 0 and 1, the first one of negative weight.
    Twos,
    /// The magnitude of `Q` with digits 0 and 1, and a sign for all of them.
    Sign,
    /// Two's complement of `-w - 1`, whose digits are subtracted: after the first plane a partial sum never grows (ComPreEND).
    Inverted,
    /// Canonical signed digits of `Q`: -1, 0 and 1, no two neighbours other than 0. One plane more.
    Csd,
}

impl Encoding {
    /// All of them.
    pub const ALL: [Encoding; 5] = [Encoding::Pm1, Encoding::Twos, Encoding::Sign, Encoding::Inverted, Encoding::Csd];

    /// Name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Pm1 => "pm1",
            Encoding::Twos => "twos",
            Encoding::Sign => "sign",
            Encoding::Inverted => "inverted",
            Encoding::Csd => "csd",
        }
    }

    /// Planes of a weight of `bits` digits on the odd grid.
    pub const fn planes(self, bits: u32) -> u32 {
        match self {
            Encoding::Csd => bits + 1,
            _ => bits,
        }
    }

    /// The digit of `q` in `plane`, 0 being the most significant: -1, 0 or 1. It counts [`Encoding::weight`]. A pruned weight, 0, is on no odd
    /// grid and has no digit in any plane.
    pub fn digit(self, q: i32, bits: u32, plane: u32) -> i32 {
        if q == 0 {
            return 0;
        }
        let at = self.planes(bits) - 1 - plane;
        let w = (q - 1) >> 1;
        let bit = |x: i32| x >> at & 1;
        match self {
            // The stored bit is that of two's complement with the first one inverted.
            Encoding::Pm1 => 2 * bit(w + (1 << (bits - 1))) - 1,
            Encoding::Twos => {
                if plane == 0 {
                    -bit(w)
                } else {
                    bit(w)
                }
            }
            Encoding::Sign => q.signum() * bit(q.abs()),
            Encoding::Inverted => {
                if plane == 0 {
                    bit(-w - 1)
                } else {
                    -bit(-w - 1)
                }
            }
            Encoding::Csd => {
                // The digits of 3 q and q differ where a signed digit stands.
                let (q, triple) = (i64::from(q), 3 * i64::from(q));
                ((triple >> (at + 1) & 1) - (q >> (at + 1) & 1)) as i32
            }
        }
    }

    /// What a digit of `plane` counts, in units of `Q`.
    pub const fn weight(self, bits: u32, plane: u32) -> i64 {
        let at = self.planes(bits) - 1 - plane;
        match self {
            // Digits of w, and Q = 2 w + 1.
            Encoding::Twos | Encoding::Inverted => 2 << at,
            Encoding::Pm1 | Encoding::Sign | Encoding::Csd => 1 << at,
        }
    }

    /// What `Q` is besides its digits: the sum of the digits' weights and this.
    pub const fn offset(self) -> i64 {
        match self {
            Encoding::Twos => 1,
            // -w - 1 is written, so w is what is subtracted from -1, and Q = 2 w + 1 = -1 less the rest.
            Encoding::Inverted => -1,
            Encoding::Pm1 | Encoding::Sign | Encoding::Csd => 0,
        }
    }

    /// The least and the most that `rest` planes at the low end can add to a weight, in units of `Q`; for [`Encoding::Sign`] that of a positive
    /// weight, which for a negative one changes its sign.
    pub const fn remainder(self, rest: u32) -> [i64; 2] {
        let all = (1i64 << rest) - 1;
        match self {
            Encoding::Pm1 => [-all, all],
            Encoding::Twos => [0, 2 * all],
            Encoding::Sign => [0, all],
            Encoding::Inverted => [-2 * all, 0],
            Encoding::Csd => {
                let most = (2i64 << rest) / 3;
                [-most, most]
            }
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Encoding::ALL.into_iter().find(|encoding| encoding.name() == text);
        found.ok_or_else(|| {
            let names: Vec<&str> = Encoding::ALL.iter().map(|encoding| encoding.name()).collect();
            Error::invalid(format!("`{text}` is no encoding; there are {}", names.join(", ")))
        })
    }
}

/// The largest magnitude on the odd grid of `bits` digits.
pub const fn largest(bits: u32) -> i32 {
    (1 << bits) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odd(bits: u32) -> impl Iterator<Item = i32> {
        (-largest(bits)..=largest(bits)).step_by(2)
    }

    #[test]
    fn every_code_writes_every_weight() {
        for bits in [2, 3, 5, 8, 11] {
            for encoding in Encoding::ALL {
                for q in odd(bits) {
                    let digits: Vec<i32> = (0..encoding.planes(bits)).map(|plane| encoding.digit(q, bits, plane)).collect();
                    let sum: i64 = digits.iter().zip(0..).map(|(d, plane)| i64::from(*d) * encoding.weight(bits, plane)).sum();
                    assert_eq!(sum + encoding.offset(), i64::from(q), "{encoding} {bits} {q} {digits:?}");
                    match encoding {
                        Encoding::Pm1 => assert!(digits.iter().all(|d| d.abs() == 1)),
                        Encoding::Csd => assert!(digits.windows(2).all(|d| d[0] == 0 || d[1] == 0), "{q} {digits:?}"),
                        _ => {}
                    }
                }
            }
        }
    }

    #[test]
    fn remainders_are_bounded_and_the_bounds_are_met() {
        let bits = 6;
        for encoding in Encoding::ALL {
            let planes = encoding.planes(bits);
            for done in 1..=planes {
                let rest = planes - done;
                let left = |q: i32| {
                    (done..planes).map(|plane| i64::from(encoding.digit(q, bits, plane)) * encoding.weight(bits, plane)).sum::<i64>()
                };
                let positive = odd(bits).filter(|q| encoding != Encoding::Sign || *q > 0).map(left);
                let (low, high) = positive.fold((0, 0), |(low, high), x| (low.min(x), high.max(x)));
                let [least, most] = encoding.remainder(rest);
                assert!(least <= low && high <= most, "{encoding} {done}: {low} {high} in {least} {most}");
                // Digits of odd numbers: the last one is never 0 in the codes of Q itself.
                if rest > 0 {
                    assert!(high == most || encoding == Encoding::Csd, "{encoding} {done}: {high} of {most}");
                }
            }
        }
    }
}
