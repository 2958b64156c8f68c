//! When an output is stopped: rules, which codes they go with, and what a partial sum is compared with.
//!
//! Sources: the bound, the static thresholds and ComPreEND's and SnaPEA's orders are published; the statistical and the weight-aware rule are
//! derived.

use std::fmt;
use std::str::FromStr;

use super::encoding::Encoding;
use crate::error::{Error, Result};

/// Weights of more digits than this have no variance that 64 bits hold for R1.
pub const R1_BITS: u32 = 10;

/// When an output, which ends in a ReLU, is stopped and taken to be 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// Never.
    None,
    /// When the most that is left cannot make it positive. Exact.
    R0,
    /// Positive weights go first; when the partial sum is not positive while negative ones are subtracted. Exact.
    PositiveFirst,
    /// When it lies `z` standard deviations of what is left below zero, activations and digits being independent.
    R1 {
        /// Standard deviations.
        z: f64,
    },
    /// When it lies below a threshold of its kernel and plane, the largest that stops at most `budget` of the mass of positive outputs.
    R2 {
        /// Part of the mass of positive outputs that may be stopped, 0 to 1.
        budget: f64,
    },
    /// When it lies `z` standard deviations of what is left of its kernel below zero, with the activations' statistics.
    R3 {
        /// Standard deviations.
        z: f64,
    },
}

impl Rule {
    /// Whether no result differs from that of [`Rule::None`].
    pub const fn is_exact(self) -> bool {
        matches!(self, Rule::None | Rule::R0 | Rule::PositiveFirst)
    }

    /// Whether it needs statistics or thresholds from images.
    pub const fn is_calibrated(self) -> bool {
        matches!(self, Rule::R2 { .. } | Rule::R3 { .. })
    }

    /// Name without its number.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::None => "none",
            Rule::R0 => "r0",
            Rule::PositiveFirst => "posfirst",
            Rule::R1 { .. } => "r1",
            Rule::R2 { .. } => "r2",
            Rule::R3 { .. } => "r3",
        }
    }

    /// Codes that the rule goes with.
    pub fn encodings(self) -> &'static [Encoding] {
        match self {
            Rule::None | Rule::R0 | Rule::R2 { .. } | Rule::R3 { .. } => &Encoding::ALL,
            Rule::PositiveFirst => &[Encoding::Sign],
            Rule::R1 { .. } => &[Encoding::Pm1, Encoding::Twos, Encoding::Inverted],
        }
    }

    /// Whether the rule goes with a code of `bits` digits; the error lists what does.
    pub fn check(self, encoding: Encoding, bits: u32) -> Result<()> {
        if !self.encodings().contains(&encoding) {
            let names: Vec<&str> = self.encodings().iter().map(|encoding| encoding.name()).collect();
            return Err(Error::invalid(format!(
                "rule `{self}` does not go with encoding `{encoding}`; it goes with {}; the pairs are: {}",
                names.join(", "),
                pairs()
            )));
        }
        if matches!(self, Rule::R1 { .. }) && bits > R1_BITS {
            return Err(Error::invalid(format!("rule `{self}` goes with weights of at most {R1_BITS} bits, {bits} are given")));
        }
        Ok(())
    }
}

/// Valid pairs of rules and codes, for errors and help.
pub fn pairs() -> String {
    let rules = [Rule::None, Rule::R0, Rule::PositiveFirst, Rule::R1 { z: 1.0 }, Rule::R2 { budget: 0.0 }, Rule::R3 { z: 1.0 }];
    let of = |rule: &Rule| {
        let names: Vec<&str> = rule.encodings().iter().map(|encoding| encoding.name()).collect();
        format!("{} with {}", rule.name(), names.join("|"))
    };
    rules.iter().map(of).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::R1 { z } | Rule::R3 { z } => write!(f, "{}:{z}", self.name()),
            Rule::R2 { budget } => write!(f, "{}:{budget}", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

impl FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let usage = || Error::invalid(format!("`{text}` is no rule; give none, r0, posfirst, r1:Z, r2:BUDGET or r3:Z"));
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let number = |what: &str, most: f64| -> Result<f64> {
            let value = number.and_then(|number| number.parse::<f64>().ok()).filter(|value| (0.0..=most).contains(value));
            value.ok_or_else(|| Error::invalid(format!("rule `{text}` needs {what} from 0 to {most}, as in `{name}:1`")))
        };
        match (name, text.contains(':')) {
            ("none", false) => Ok(Rule::None),
            ("r0", false) => Ok(Rule::R0),
            ("posfirst", false) => Ok(Rule::PositiveFirst),
            ("r1", _) => Ok(Rule::R1 { z: number("a number of standard deviations", 100.0)? }),
            ("r2", _) => Ok(Rule::R2 { budget: number("a part of the mass", 1.0)? }),
            ("r3", _) => Ok(Rule::R3 { z: number("a number of standard deviations", 100.0)? }),
            _ => Err(usage()),
        }
    }
}

/// The integer square root.
pub fn isqrt(x: u64) -> u64 {
    x.isqrt()
}

/// `round(256 z^2)`, what R1 multiplies the variance with.
pub fn z2(z: f64) -> u64 {
    (256.0 * z * z).round() as u64
}

/// What the partial sum of an output of the window is compared with after `done` planes, for rules that all outputs of a window share: it is
/// stopped where it lies below. `s1` and `s2` are the sums of the window's activations and of their squares. `None` for other rules, for
/// [`Encoding::Sign`], whose remainder depends on the weights' signs, and after the last plane.
pub fn window_bound(rule: Rule, encoding: Encoding, bits: u32, done: u32, s1: u64, s2: u64) -> Option<i64> {
    let rest = encoding.planes(bits).checked_sub(done).filter(|rest| *rest > 0)?;
    let s1 = s1 as i64;
    match rule {
        // P + most <= 0.
        Rule::R0 if encoding != Encoding::Sign => Some(1 - encoding.remainder(rest)[1] * s1),
        Rule::R1 { z } => {
            let [least, most] = encoding.remainder(rest);
            let mean = (least + most) / 2 * s1;
            let variance = u128::from(z2(z)) * u128::from(s2) * ((1u128 << (2 * rest)) - 1) / 3;
            let deviation = isqrt(u64::try_from(variance >> 8).unwrap_or(u64::MAX)) as i64;
            Some(-mean - deviation)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_written_and_wrong_ones_named() {
        for text in ["none", "r0", "posfirst", "r1:1.5", "r2:0.002", "r3:2"] {
            assert_eq!(text.parse::<Rule>().expect("a rule").to_string(), text);
        }
        for text in ["", "r4", "r1", "r1:x", "r1:-1", "r2:2", "r0:1", "none:0", "r3:nan", "r1:inf"] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }

    #[test]
    fn pairs_that_do_not_go_together_are_refused() {
        for (rule, encoding, bits) in
            [(Rule::PositiveFirst, Encoding::Pm1, 8), (Rule::R1 { z: 1.0 }, Encoding::Csd, 8), (Rule::R1 { z: 1.0 }, Encoding::Pm1, 11)]
        {
            let error = rule.check(encoding, bits).expect_err("refused").to_string();
            assert!(error.contains(rule.name()), "{error}");
        }
        assert!(Rule::R0.check(Encoding::Csd, 16).is_ok());
    }

    #[test]
    fn a_bound_leaves_nothing_that_could_be_positive() {
        let (bits, s1, s2) = (4, 10, 40);
        // After one plane of four pm1 digits 7 S1 are left.
        assert_eq!(window_bound(Rule::R0, Encoding::Pm1, bits, 1, s1, s2), Some(1 - 70));
        assert_eq!(window_bound(Rule::R0, Encoding::Inverted, bits, 1, s1, s2), Some(1));
        assert_eq!(window_bound(Rule::R0, Encoding::Pm1, bits, 4, s1, s2), None);
        // z = 1: 256 * 40 * 63 / 3 / 256 = 840, whose root is 28.
        assert_eq!(window_bound(Rule::R1 { z: 1.0 }, Encoding::Pm1, bits, 1, s1, s2), Some(-28));
        assert_eq!(window_bound(Rule::R1 { z: 1.0 }, Encoding::Twos, bits, 1, s1, s2), Some(-70 - 28));
    }
}
