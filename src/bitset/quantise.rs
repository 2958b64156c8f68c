//! Numbers to integers: weights to the odd grid, activations to unsigned bytes.

use crate::bitset::encoding::{BITS, largest};
use crate::error::{Error, Result};

/// Most bits of an activation.
pub const MAX_ACTIVATION_BITS: u32 = 8;

/// Rounds of the alternation between integers and scale; the error falls in each until nothing changes.
const MAX_ROUNDS: usize = 20;

/// Scales that the alternation starts from, the first fifth of which is left out.
const STARTS: usize = 40;

/// Weights on the odd grid: `w ~ scale * q + mean`, every `q` odd and at most `2^bits - 1` in magnitude. The grid has no zero, so that weights that
/// are 0, pruned ones, are kept beside it: their `q` is 0, and where there are some the mean is 0.
#[derive(Debug, Clone, PartialEq)]
pub struct OddGrid {
    /// Digits of a weight.
    pub bits: u32,
    /// The step's half, positive.
    pub scale: f64,
    /// What is added to every weight.
    pub mean: f64,
    /// One integer for each weight.
    pub q: Vec<i32>,
}

impl OddGrid {
    /// Fits a grid to `weights`: the mean is theirs, the scale has the least sum of squared errors that alternating between the nearest integers
    /// and the best scale finds, from several starts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for bits outside 2 to 16, no weights, and weights that are no numbers.
    pub fn fit(weights: &[f32], bits: u32) -> Result<Self> {
        check_bits(bits)?;
        if weights.is_empty() {
            return Err(Error::invalid("a layer without weights cannot be quantised"));
        }
        if let Some(at) = weights.iter().position(|w| !w.is_finite()) {
            return Err(Error::invalid(format!("weight {at} is {}; only finite weights can be quantised", weights[at])));
        }
        let is_pruned = weights.contains(&0.0);
        let mean = if is_pruned { 0.0 } else { weights.iter().map(|&w| f64::from(w)).sum::<f64>() / weights.len() as f64 };
        let kept = weights.iter().filter(|w| **w != 0.0 || !is_pruned);
        let centred: Vec<f64> = kept.map(|&w| f64::from(w) - mean).collect();
        let most = centred.iter().fold(0f64, |most, w| most.max(w.abs()));
        if most == 0.0 {
            // All weights are the mean; with the smallest scale the integers add next to nothing.
            let q = if is_pruned { 0 } else { 1 };
            return Ok(OddGrid { bits, scale: f64::from(f32::MIN_POSITIVE), mean, q: vec![q; weights.len()] });
        }
        // Few digits want the largest weights cut off, many do not; the alternation stays near its start.
        let starts = (STARTS / 5..=STARTS).map(|part| part as f64 / STARTS as f64 * most / f64::from(largest(bits)));
        let fitted = starts.map(|start| fit_scale(&centred, bits, start));
        let error = |scale: f64| centred.iter().map(|w| (w - scale * f64::from(nearest(w / scale, bits))).powi(2)).sum::<f64>();
        let best = fitted.map(|scale| (error(scale), scale)).min_by(|a, b| a.0.total_cmp(&b.0));
        let scale = best.map_or(most, |(_, scale)| scale);
        let integer = |&w: &f32| if is_pruned && w == 0.0 { 0 } else { nearest((f64::from(w) - mean) / scale, bits) };
        let q = weights.iter().map(integer).collect();
        Ok(OddGrid { bits, scale, mean, q })
    }

    /// Weight `at`, as the grid has it.
    pub fn weight(&self, at: usize) -> f64 {
        self.scale * f64::from(self.q[at]) + self.mean
    }

    /// `mean / scale` in 16 binary places, as a layer adds it.
    pub fn mean_q16(&self) -> i64 {
        (self.mean / self.scale * 65_536.0).round() as i64
    }
}

fn fit_scale(centred: &[f64], bits: u32, start: f64) -> f64 {
    let mut scale = start;
    for _ in 0..MAX_ROUNDS {
        let (mut product, mut square) = (0.0, 0.0);
        for w in centred {
            let q = f64::from(nearest(w / scale, bits));
            product += w * q;
            square += q * q;
        }
        let next = product / square;
        // Each odd integer has a sign, so the product of weights and integers is positive where a weight is not 0.
        if !next.is_finite() || next <= 0.0 || (next - scale).abs() <= 1e-12 * scale {
            return scale;
        }
        scale = next;
    }
    scale
}

/// The odd integer of `bits` digits that is nearest to `x`; of two that are equally near the larger one.
pub fn nearest(x: f64, bits: u32) -> i32 {
    let most = f64::from(largest(bits));
    (2.0 * (x / 2.0).floor() + 1.0).clamp(-most, most) as i32
}

/// Whether weights may have so many digits.
pub fn check_bits(bits: u32) -> Result<()> {
    let [fewest, most] = BITS;
    if (fewest..=most).contains(&bits) {
        return Ok(());
    }
    Err(Error::invalid(format!("weights of {bits} bits; {fewest} to {most} bits are allowed")))
}

/// The scale of activations of `bits` bits whose largest value is `most`: `a ~ scale * q`, `q` from 0 to `2^bits - 1`.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for bits outside 1 to 8 and a largest value that is negative or no number.
pub fn activation_scale(most: f64, bits: u32) -> Result<f64> {
    if !(1..=MAX_ACTIVATION_BITS).contains(&bits) {
        return Err(Error::invalid(format!("activations of {bits} bits; 1 to {MAX_ACTIVATION_BITS} bits are allowed")));
    }
    if !most.is_finite() || most < 0.0 {
        return Err(Error::invalid(format!("the largest activation is {most}; it must be a number of at least 0")));
    }
    // Activations that are all 0 stay so with any scale.
    Ok(if most == 0.0 { 1.0 } else { most / f64::from((1u32 << bits) - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels_gen::threefry::Key;

    fn weights(count: u64) -> Vec<f32> {
        let key = Key::new(3);
        (0..count).map(|n| (0..4).map(|i| key.uniform(4 * n + i) - 0.5).sum::<f32>() * 0.1 + 0.003).collect()
    }

    #[test]
    fn integers_are_odd_and_within_the_grid_and_more_bits_err_less() {
        let weights = weights(2_000);
        let mut before = f64::INFINITY;
        for bits in [2, 3, 4, 6, 8, 12, 16] {
            let grid = OddGrid::fit(&weights, bits).expect("fits");
            assert!(grid.q.iter().all(|q| q % 2 != 0 && q.abs() <= largest(bits)), "{bits}");
            let error = |grid: &OddGrid| weights.iter().enumerate().map(|(i, w)| (grid.weight(i) - f64::from(*w)).powi(2)).sum::<f64>();
            assert!(error(&grid) < before / 2.0, "{bits}");
            before = error(&grid);
            // No other scale nearby does better.
            for factor in [0.9, 0.97, 1.03, 1.1] {
                let scale = grid.scale * factor;
                let q = weights.iter().map(|w| nearest((f64::from(*w) - grid.mean) / scale, bits)).collect();
                assert!(error(&OddGrid { scale, q, ..grid.clone() }) >= before * 0.97, "{bits}: {factor}");
            }
        }
    }

    #[test]
    fn one_digit_of_two_values_is_met_exactly() {
        let grid = OddGrid::fit(&[0.5, -0.1, 0.5, -0.1], 2).expect("fits");
        assert!((grid.mean - 0.2).abs() < 1e-7 && (0..4).all(|i| (grid.weight(i) - [0.5, -0.1][i % 2]).abs() < 1e-6), "{grid:?}");
        let same = OddGrid::fit(&[0.25; 3], 8).expect("fits");
        assert!((same.weight(1) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn pruned_weights_stay_zero() {
        let mut weights = weights(500);
        weights.iter_mut().step_by(3).for_each(|w| *w = 0.0);
        let grid = OddGrid::fit(&weights, 8).expect("fits");
        assert_eq!((grid.mean, grid.mean_q16()), (0.0, 0));
        for (at, &w) in weights.iter().enumerate() {
            assert!(if w == 0.0 { grid.q[at] == 0 } else { grid.q[at] % 2 != 0 }, "{at}: {w} is {}", grid.q[at]);
            assert!((grid.weight(at) - f64::from(w)).abs() <= 1.001 * grid.scale || w == 0.0);
        }
        assert_eq!(OddGrid::fit(&[0.0; 4], 8).expect("fits").q, [0; 4]);
    }

    #[test]
    fn nearest_is_nearest() {
        assert_eq!([0.0, 0.9, 1.9, 2.0, 2.1, -0.1, -1.9, -2.1, 99.0, -99.0].map(|x| nearest(x, 3)), [1, 1, 1, 3, 3, -1, -1, -3, 7, -7]);
    }

    #[test]
    fn wrong_input_is_named() {
        for (error, part) in [
            (OddGrid::fit(&[1.0], 1), "2 to 16"),
            (OddGrid::fit(&[1.0], 17), "17 bits"),
            (OddGrid::fit(&[], 8), "without weights"),
            (OddGrid::fit(&[1.0, f32::NAN], 8), "weight 1 is NaN"),
        ] {
            assert!(error.expect_err("refused").to_string().contains(part));
        }
        assert!(activation_scale(1.0, 9).is_err() && activation_scale(1.0, 0).is_err() && activation_scale(f64::NAN, 8).is_err());
        assert_eq!(activation_scale(51.0, 8).expect("fits"), 0.2);
    }
}
