//! Summaries of measurements and the error between results.

/// Arithmetic mean; NaN for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The value below which `percent` (0 to 100) of the values lie, linear between neighbours; NaN for no values or a NaN among them.
pub fn percentile(values: &[f64], percent: f64) -> f64 {
    if values.is_empty() || values.iter().any(|v| v.is_nan()) {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = percent.clamp(0.0, 100.0) / 100.0 * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    if low == high { low } else { low + (high - low) * at.fract() }
}

/// The middle value, or the mean of the two middle ones; NaN for no values.
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50.0)
}

/// `||out - reference|| / ||reference||` in Euclidean norms, summed in f64.
///
/// Infinite, so that it passes no tolerance, where the lengths differ, where a value of either is NaN or infinite, or where the
/// reference is all zeros and `out` is not.
pub fn relative_error(out: &[f64], reference: &[f64]) -> f64 {
    if out.len() != reference.len() {
        return f64::INFINITY;
    }
    let square = |sum: f64, x: f64| sum + x * x;
    let error = out.iter().zip(reference).map(|(o, r)| o - r).fold(0.0, square).sqrt();
    let norm = reference.iter().copied().fold(0.0, square).sqrt();
    let relative = if error == 0.0 && norm.is_finite() { 0.0 } else { error / norm };
    if relative.is_finite() && norm.is_finite() { relative } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate_between_neighbours() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(percentile(&[0.0, 10.0], 95.0), 9.5);
        assert_eq!(percentile(&[f64::INFINITY, 1.0, f64::INFINITY], 100.0), f64::INFINITY);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert!(median(&[]).is_nan() && mean(&[]).is_nan() && median(&[1.0, f64::NAN]).is_nan());
    }

    #[test]
    fn nothing_that_is_no_number_passes_as_a_small_error() {
        assert_eq!(relative_error(&[3.0, 5.0], &[3.0, 4.0]), 0.2);
        assert_eq!(relative_error(&[], &[]), 0.0);
        assert_eq!(relative_error(&[0.0], &[0.0]), 0.0);
        for (out, reference) in [
            (vec![f64::NAN], vec![f64::NAN]),
            (vec![f64::NAN, 1.0], vec![1.0, 1.0]),
            (vec![f64::INFINITY], vec![f64::INFINITY]),
            (vec![1.0], vec![f64::INFINITY]),
            (vec![1e-30], vec![0.0]),
            (vec![1.0], vec![1.0, 2.0]),
        ] {
            assert_eq!(relative_error(&out, &reference), f64::INFINITY, "{out:?} {reference:?}");
        }
    }
}
