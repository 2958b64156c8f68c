//! Spans of time as people write them, and what they are in the ticks of a graph.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// What one unit of a file's times is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimeUnit {
    /// Seconds.
    #[default]
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

impl TimeUnit {
    /// Every unit.
    pub const ALL: [TimeUnit; 4] = [TimeUnit::S, TimeUnit::Ms, TimeUnit::Us, TimeUnit::Ns];

    /// Name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            TimeUnit::S => "s",
            TimeUnit::Ms => "ms",
            TimeUnit::Us => "us",
            TimeUnit::Ns => "ns",
        }
    }

    const fn nanoseconds(self) -> u64 {
        match self {
            TimeUnit::S => 1_000_000_000,
            TimeUnit::Ms => 1_000_000,
            TimeUnit::Us => 1_000,
            TimeUnit::Ns => 1,
        }
    }
}

impl FromStr for TimeUnit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = TimeUnit::ALL.into_iter().find(|unit| unit.name() == text);
        known.ok_or_else(|| Error::invalid(format!("`{text}` is no unit of time; the units are s, ms, us and ns")))
    }
}

/// Suffixes of a [`Delta`] and their nanoseconds.
const SUFFIXES: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];
/// Most decimals of a [`Delta`] and of the times of a graph: 10^18 is the largest power of ten in 64 bits.
pub const MAX_DECIMALS: u32 = 18;

/// A span of time: a number in the file's own unit (`90`, `0.5`), or one with a suffix `ns`, `us`, `ms`, `s`, `m` (minutes), `h`, `d` or
/// `w` (`60s`, `1.5h`, `4w`). Not negative.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Delta {
    text: String,
    whole: u64,
    /// Digits after the point, as a number below 10^`decimals`.
    part: u64,
    decimals: u32,
    /// Nanoseconds of the suffix, if there is one.
    suffix: Option<u64>,
}

impl Delta {
    /// Reads a span of time.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for what is none.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let refuse = |why: &str| {
            Error::invalid(format!(
                "`{text}` is no span of time: {why}; write a number in the file's unit, such as 90 or 0.5, or one with ns, us, ms, s, m, h, \
                 d or w after it, such as 60s, 5m or 1d"
            ))
        };
        if text.starts_with('-') {
            return Err(refuse("it is negative"));
        }
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = text.split_at(split);
        let suffix = match suffix.trim_start() {
            "" => None,
            suffix => match SUFFIXES.iter().find(|(name, _)| *name == suffix) {
                Some((_, nanoseconds)) => Some(*nanoseconds),
                None => return Err(refuse(&format!("`{suffix}` is no unit"))),
            },
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && part.is_empty() || part.contains('.') {
            return Err(refuse("it does not begin with a number"));
        }
        let part = part.trim_end_matches('0');
        if part.len() > MAX_DECIMALS as usize {
            return Err(refuse("it has more than 18 decimals"));
        }
        let digits = |digits: &str| if digits.is_empty() { Ok(0) } else { digits.parse().map_err(|_| refuse("it is past 2^64 - 1")) };
        Ok(Delta { text: text.into(), whole: digits(whole)?, part: digits(part)?, decimals: part.len() as u32, suffix })
    }

    /// A span of so many units of the file.
    pub fn units(units: u64) -> Self {
        Delta { text: units.to_string(), whole: units, part: 0, decimals: 0, suffix: None }
    }

    /// The span in ticks of a graph whose file counts time in `unit`, 10^`decimals` ticks each: rounded down, for differences of times are
    /// whole ticks and the same ones are within it, and at most `i64::MAX`.
    pub fn ticks(&self, unit: TimeUnit, decimals: u32) -> i64 {
        // The span is whole * suffix + part * suffix / scale nanoseconds; without a suffix, count both as one.
        let (suffix, unit) = self.suffix.map_or((1, 1), |suffix| (u128::from(suffix), u128::from(unit.nanoseconds())));
        let scale = 10u128.pow(self.decimals);
        let part = u128::from(self.part) * suffix;
        let whole = u128::from(self.whole) * suffix + part / scale;
        let (mut ticks, mut rest, divisor) = (whole / unit, whole % unit * scale + part % scale, unit * scale);
        const MOST: u128 = i64::MAX as u128;
        for _ in 0..decimals {
            rest *= 10;
            ticks = (ticks * 10 + rest / divisor).min(MOST + 1);
            rest %= divisor;
        }
        ticks.min(MOST) as i64
    }
}

impl FromStr for Delta {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Delta::parse(text)
    }
}

/// The span as it was written.
impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A time of 10^`decimals` ticks a unit as a decimal number of units, exactly: `ticks_text(-1250, 2)` is `-12.5`.
pub fn ticks_text(ticks: i64, decimals: u32) -> String {
    let digits = format!("{:0width$}", ticks.unsigned_abs(), width = decimals as usize + 1);
    let (whole, part) = digits.split_at(digits.len() - decimals as usize);
    let (sign, part) = (if ticks < 0 { "-" } else { "" }, part.trim_end_matches('0'));
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(text: &str, unit: TimeUnit, decimals: u32) -> i64 {
        Delta::parse(text).expect("a span").ticks(unit, decimals)
    }

    #[test]
    fn suffixes_are_converted_and_bare_numbers_are_not() {
        use TimeUnit::*;
        for (text, s, ms) in [
            ("90", 90, 90),
            ("0", 0, 0),
            ("60s", 60, 60_000),
            ("5m", 300, 300_000),
            ("1h", 3600, 3_600_000),
            ("1d", 86_400, 86_400_000),
            ("4 w", 2_419_200, 2_419_200_000),
            ("1.5h", 5400, 5_400_000),
            (".5m", 30, 30_000),
            ("2.", 2, 2),
            // Rounded down: no difference of whole seconds lies between.
            ("1999ms", 1, 1999),
            ("1ns", 0, 0),
            ("1.9", 1, 1),
            ("0.999999999999999999s", 0, 999),
        ] {
            assert_eq!((ticks(text, S, 0), ticks(text, Ms, 0)), (s, ms), "{text}");
        }
        assert_eq!(ticks("1w", Ns, 0), 604_800_000_000_000);
        assert_eq!(ticks("7us", Us, 0), 7);
        // Bitcoin's times have five decimals.
        assert_eq!(ticks("1d", S, 5), 8_640_000_000);
        assert_eq!(ticks("0.5", S, 5), 50_000);
        assert_eq!(ticks("0.1234567", S, 5), 12_345);
        assert_eq!(ticks("1ms", S, 5), 100);
        assert_eq!(ticks("0.123456789012345678", Ns, 18), 123_456_789_012_345_678);
    }

    #[test]
    fn what_passes_64_bits_saturates() {
        assert_eq!(ticks("9223372036854775807", TimeUnit::S, 0), i64::MAX);
        assert_eq!(ticks("9223372036854775806", TimeUnit::S, 0), i64::MAX - 1);
        assert_eq!(ticks("18446744073709551615w", TimeUnit::Ns, 18), i64::MAX);
        assert_eq!(ticks("18446744073709551615ns", TimeUnit::S, 0), 18_446_744_073);
        assert_eq!(ticks("10", TimeUnit::S, 18), i64::MAX);
        assert_eq!(ticks("9.223372036854775806", TimeUnit::S, 18), i64::MAX - 1);
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for (bad, why) in [
            ("", "number"),
            ("-1", "negative"),
            ("-1d", "negative"),
            ("d", "number"),
            ("1y", "`y`"),
            ("1 day", "`day`"),
            ("1.2.3", "number"),
            (".", "number"),
            ("1e9", "`e9`"),
            ("nan", "`nan`"),
            ("0.1234567890123456789", "18 decimals"),
            ("18446744073709551616", "2^64"),
        ] {
            let error = Delta::parse(bad).expect_err(bad).to_string();
            assert!(error.contains(why) && error.contains("60s"), "{bad}: {error}");
        }
        assert_eq!(Delta::parse(" 1d ").expect("a span").to_string(), "1d");
        assert_eq!("us".parse::<TimeUnit>().expect("a unit"), TimeUnit::Us);
        assert!("min".parse::<TimeUnit>().expect_err("none").to_string().contains("s, ms, us and ns"));
    }

    #[test]
    fn ticks_are_written_as_decimals() {
        for (ticks, decimals, text) in [
            (0, 0, "0"),
            (0, 5, "0"),
            (-1250, 2, "-12.5"),
            (5, 3, "0.005"),
            (-5, 1, "-0.5"),
            (100, 2, "1"),
            (i64::MIN, 0, "-9223372036854775808"),
        ] {
            assert_eq!(ticks_text(ticks, decimals), text);
        }
        assert_eq!(ticks_text(i64::MIN, 18), "-9.223372036854775808");
    }
}
