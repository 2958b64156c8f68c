//! How close a computed tensor must come to its reference.

use super::RefTensor;
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// Allowed difference between a computed tensor and its reference. NaN meets NaN alone, and an infinity only itself. Where elements are
/// f16 and the tolerance is neither [`Tolerance::Bits`] nor [`Tolerance::Exact`], one more step of f16 is allowed: a value beside the
/// middle of two may be rounded to either.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tolerance {
    /// Equal, the sign of zero included: for what only moves elements.
    Bits,
    /// Equal as numbers.
    Exact,
    /// Each element within `absolute + relative * |expected|`.
    Relative {
        /// Factor of the expected magnitude.
        relative: f64,
        /// Distance that is always allowed.
        absolute: f64,
    },
    /// Each element within this factor of the largest finite expected magnitude: for sums of many terms that may cancel.
    Norm(f64),
}

/// The largest difference found by a comparison that passed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Difference {
    /// Largest `|got - expected|`.
    pub absolute: f64,
    /// That difference relative to the largest finite expected magnitude.
    pub relative: f64,
}

impl Tolerance {
    /// Compares `got` with `expected`, rounded to its element type; a difference past the tolerance is an error that names the worst element.
    pub fn check(&self, got: &HostTensor, expected: &RefTensor) -> Result<Difference> {
        let mismatch = |message: String| Err(Error::new(ErrorKind::Mismatch, message));
        if (got.dtype(), got.shape()) != (expected.dtype, &expected.shape[..]) {
            return mismatch(format!("got {}{:?}, expected {}", got.dtype(), got.shape(), expected.ty()));
        }
        let (got, rounded) = (got.to_f64(), expected.to_host()?.to_f64());
        let scale = rounded.iter().copied().filter(|v| v.is_finite()).fold(0.0, |a: f64, v| a.max(v.abs()));
        let mut worst: Option<(f64, usize)> = None;
        let mut faults = 0usize;
        let mut largest = 0.0f64;
        for (i, (&g, &want)) in got.iter().zip(&rounded).enumerate() {
            let step = if expected.dtype == DType::F16 { half_step(want) } else { 0.0 };
            let (excess, difference) = self.excess(g, want, expected.data[i], scale, step);
            if excess > 0.0 {
                faults += 1;
                if worst.is_none_or(|(e, _)| excess > e) {
                    worst = Some((excess, i));
                }
            } else {
                largest = largest.max(difference);
            }
        }
        match worst {
            None => Ok(Difference { absolute: largest, relative: if scale > 0.0 { largest / scale } else { largest } }),
            Some((_, i)) => mismatch(format!(
                "{faults} of {} elements differ past {self:?}; worst is element {i}: got {:?}, expected {:?}",
                got.len(),
                got[i],
                rounded[i]
            )),
        }
    }

    /// How far a pair lies past the tolerance (at most 0 if within) and how far it lies apart.
    fn excess(&self, got: f64, rounded: f64, exact: f64, scale: f64, step: f64) -> (f64, f64) {
        let same = got == rounded || got.is_nan() && rounded.is_nan();
        let signs = *self != Tolerance::Bits || got.is_nan() || got.is_sign_negative() == rounded.is_sign_negative();
        if same && signs {
            return (0.0, 0.0);
        }
        let difference = (got - if exact.is_finite() && rounded.is_finite() { exact } else { rounded }).abs();
        let allowed = match self {
            Tolerance::Bits | Tolerance::Exact => return (f64::INFINITY, difference),
            Tolerance::Relative { relative, absolute } => absolute + relative * rounded.abs() + step,
            Tolerance::Norm(factor) => factor * scale + step,
        };
        if !difference.is_finite() || !rounded.is_finite() {
            return (f64::INFINITY, difference);
        }
        (difference - allowed, difference)
    }
}

/// Distance of the f16 numbers around a value.
fn half_step(value: f64) -> f64 {
    (value.abs() * 2f64.powi(-10)).max(2f64.powi(-24))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tolerance: Tolerance, got: &[f32], expected: &[f64]) -> bool {
        let got = HostTensor::new([got.len()], got.to_vec()).unwrap();
        tolerance.check(&got, &RefTensor::new(DType::F32, [expected.len()], expected.to_vec()).unwrap()).is_ok()
    }

    #[test]
    fn tells_equal_from_different() {
        let relative = Tolerance::Relative { relative: 1e-6, absolute: 0.0 };
        assert!(check(relative, &[1.0, f32::NAN, f32::INFINITY], &[1.000_000_1, f64::NAN, f64::INFINITY]));
        assert!(check(relative, &[f32::INFINITY], &[1e300]), "past the type's range");
        assert!(!check(relative, &[1.0], &[1.00001]));
        for tolerance in [relative, Tolerance::Norm(1.0), Tolerance::Exact, Tolerance::Bits] {
            assert!(!check(tolerance, &[1.0, 5.0], &[1.0, f64::NAN]));
            assert!(!check(tolerance, &[1.0, f32::NAN], &[1.0, 1.0]));
            assert!(!check(tolerance, &[1.0, f32::INFINITY], &[1.0, f64::NEG_INFINITY]));
        }
        assert!(check(Tolerance::Exact, &[-0.0], &[0.0]));
        assert!(!check(Tolerance::Bits, &[-0.0], &[0.0]));
        assert!(check(Tolerance::Norm(1e-6), &[100.0, 1e-5], &[100.0, 0.0]));
        assert!(!check(Tolerance::Norm(1e-8), &[100.0, 1e-5], &[100.0, 0.0]));
        assert!(!check(Tolerance::Exact, &[1.0], &[1.0, 2.0]), "shapes differ");
    }
}
