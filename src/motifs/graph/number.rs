//! Times as text, exactly.

use crate::motifs::duration::MAX_DECIMALS;

/// Why a text is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeFault {
    /// It is no decimal number.
    NotNumber,
    /// It passes 64 bits.
    TooLarge,
    /// It has more than [`MAX_DECIMALS`] decimals that are not zero.
    TooFine,
}

/// A decimal number as (mantissa, decimals): `-12.50` is (-125, 1), `1.5e3` is (1500, 0). Decimals are as few as can be.
pub(super) fn time(text: &[u8]) -> Result<(i64, u32), TimeFault> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if (1..=18).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit) {
        let value = digits.iter().fold(0i64, |value, d| value * 10 + i64::from(d - b'0'));
        return Ok((if negative { -value } else { value }, 0));
    }
    any(negative, digits)
}

/// [`time`] of any form.
#[cold]
fn any(negative: bool, text: &[u8]) -> Result<(i64, u32), TimeFault> {
    let mut mantissa = 0u128;
    let (mut digits, mut point, mut at) = (0, false, 0);
    // Digits after the point that are in the mantissa, and zeros after them that are not.
    let (mut decimals, mut zeros) = (0i64, 0u32);
    let mut fault = None;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'0' if point => {
                digits += 1;
                zeros += 1;
            }
            b'0'..=b'9' => {
                digits += 1;
                let power = 10u128.checked_pow(zeros + 1);
                let more = power.and_then(|p| mantissa.checked_mul(p)).and_then(|m| m.checked_add(u128::from(byte - b'0')));
                match more {
                    Some(more) => mantissa = more,
                    // The rest must be a number all the same for the fault to be this one.
                    None => fault = fault.or(Some(if point { TimeFault::TooFine } else { TimeFault::TooLarge })),
                }
                if point {
                    decimals += i64::from(zeros) + 1;
                    zeros = 0;
                }
            }
            b'.' if !point => point = true,
            b'e' | b'E' => break,
            _ => return Err(TimeFault::NotNumber),
        }
        at += 1;
    }
    let exponent = exponent(&text[at..]).filter(|_| digits > 0).ok_or(TimeFault::NotNumber)?;
    if let Some(fault) = fault {
        return Err(fault);
    }
    if mantissa == 0 {
        return Ok((0, 0));
    }
    decimals -= exponent;
    while decimals > 0 && mantissa.is_multiple_of(10) {
        mantissa /= 10;
        decimals -= 1;
    }
    if decimals > i64::from(MAX_DECIMALS) {
        return Err(TimeFault::TooFine);
    }
    if decimals < 0 {
        let power = u32::try_from(-decimals).ok().and_then(|d| 10u128.checked_pow(d));
        mantissa = power.and_then(|p| mantissa.checked_mul(p)).ok_or(TimeFault::TooLarge)?;
        decimals = 0;
    }
    let value = i128::try_from(mantissa).map_err(|_| TimeFault::TooLarge)?;
    let value = i64::try_from(if negative { -value } else { value }).map_err(|_| TimeFault::TooLarge)?;
    Ok((value, decimals as u32))
}

/// The number after an `e`, 0 for an empty text; saturates far beyond what matters.
fn exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [] => return Some(0),
        [_, b'-', rest @ ..] => (true, rest),
        [_, b'+', rest @ ..] | [_, rest @ ..] => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0i64, |value, d| (value * 10 + i64::from(d - b'0')).min(1 << 32));
    Some(if negative { -value } else { value })
}

/// A decimal number below 2^64 as it is written without leading zeros; `None` for any other text.
pub(super) fn id(text: &[u8]) -> Option<u64> {
    match text {
        [b'0'] => return Some(0),
        [b'1'..=b'9', ..] if text.len() <= 20 => {}
        _ => return None,
    }
    if text.len() < 20 {
        let mut value = 0u64;
        for byte in text {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + u64::from(digit);
        }
        return Some(value);
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        for (text, value) in [
            ("0", (0, 0)),
            ("-0.00", (0, 0)),
            ("+17", (17, 0)),
            ("-5", (-5, 0)),
            ("007", (7, 0)),
            ("1289241911.72836", (128_924_191_172_836, 5)),
            ("-12.50", (-125, 1)),
            ("5.", (5, 0)),
            (".5", (5, 1)),
            ("1.0000000000000000000000000000000000000000000000000000", (1, 0)),
            ("00000000000000000000000000000000000000000000000000001", (1, 0)),
            ("1e9", (1_000_000_000, 0)),
            ("1.5E+3", (1500, 0)),
            ("1500e-2", (15, 0)),
            ("1501e-2", (1501, 2)),
            ("0e99999999999999999999", (0, 0)),
            ("1.2e-17", (12, 18)),
            ("9223372036854775807", (i64::MAX, 0)),
            ("-9223372036854775808", (i64::MIN, 0)),
            ("-9.223372036854775808", (i64::MIN, 18)),
        ] {
            assert_eq!(time(text.as_bytes()), Ok(value), "{text}");
        }
        for (text, fault) in [
            ("", TimeFault::NotNumber),
            ("-", TimeFault::NotNumber),
            (".", TimeFault::NotNumber),
            ("e5", TimeFault::NotNumber),
            ("1e", TimeFault::NotNumber),
            ("1e+", TimeFault::NotNumber),
            ("1e5.5", TimeFault::NotNumber),
            ("1.2.3", TimeFault::NotNumber),
            ("--5", TimeFault::NotNumber),
            ("0x10", TimeFault::NotNumber),
            ("nan", TimeFault::NotNumber),
            ("99999999999999999999999999999999999999999999x", TimeFault::NotNumber),
            ("9223372036854775808", TimeFault::TooLarge),
            ("-9223372036854775809", TimeFault::TooLarge),
            ("99999999999999999999999999999999999999999999", TimeFault::TooLarge),
            ("1e19", TimeFault::TooLarge),
            ("1e99999999999999999999", TimeFault::TooLarge),
            ("1e-19", TimeFault::TooFine),
            ("1.0000000000000000000000000000000000000000000000000001", TimeFault::TooFine),
            ("9.2233720368547758090", TimeFault::TooLarge),
        ] {
            assert_eq!(time(text.as_bytes()), Err(fault), "{text}");
        }
    }

    #[test]
    fn only_numbers_as_usually_written_are_numeric_ids() {
        for number in [0, 7, 10, 9_999_999_999_999_999_999, u64::MAX] {
            assert_eq!(id(number.to_string().as_bytes()), Some(number));
        }
        for text in ["", "00", "07", "-1", "+1", "1.0", "1a", "18446744073709551616", "99999999999999999999", "100000000000000000000"] {
            assert_eq!(id(text.as_bytes()), None, "{text}");
        }
    }
}
