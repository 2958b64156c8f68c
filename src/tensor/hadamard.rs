//! Random Hadamard transforms: what is large in one element is shared by a block, so that codes of few values lose less.
//!
//! Each block of a row is multiplied by `H D / sqrt(n)`, where `D` holds random signs and `H` is the Hadamard matrix of Sylvester. It is
//! orthogonal: products of two matrices that are both transformed along K are those of the matrices themselves.

use crate::error::{Error, Result};
use kernels_gen::threefry::Key;

/// The stream of a seed that signs are drawn from; rounding takes the streams of tensors' numbers.
const SIGNS: u64 = u64::MAX;

/// The sign of each of `k` columns, a function of the seed alone: both operands of a product have the same.
pub fn signs(seed: u64, k: usize) -> Vec<f32> {
    let key = Key::new(seed).stream(SIGNS);
    (0..k as u64).map(|n| if key.word(n) >> 31 == 0 { 1.0 } else { -1.0 }).collect()
}

/// Transforms rows of `k` numbers in place, by blocks of `block`, which divides `k` and is a power of two.
pub fn transform(values: &mut [f32], k: usize, block: usize, seed: u64) -> Result<()> {
    let signs = signs_for(values, k, block, seed)?;
    for row in values.chunks_exact_mut(k.max(1)) {
        row.iter_mut().zip(&signs).for_each(|(v, s)| *v *= s);
        row.chunks_exact_mut(block).for_each(butterflies);
    }
    Ok(())
}

/// Undoes [`transform`].
pub fn inverse(values: &mut [f32], k: usize, block: usize, seed: u64) -> Result<()> {
    let signs = signs_for(values, k, block, seed)?;
    for row in values.chunks_exact_mut(k.max(1)) {
        row.chunks_exact_mut(block).for_each(butterflies);
        row.iter_mut().zip(&signs).for_each(|(v, s)| *v *= s);
    }
    Ok(())
}

fn signs_for(values: &[f32], k: usize, block: usize, seed: u64) -> Result<Vec<f32>> {
    if !block.is_power_of_two() || !k.is_multiple_of(block) || (k > 0 && !values.len().is_multiple_of(k)) {
        return Err(Error::invalid(format!(
            "a Hadamard transform by blocks of {block} of {} numbers in rows of {k}: the block is a power of two that divides the row, and rows are whole",
            values.len()
        )));
    }
    Ok(signs(seed, k))
}

/// The matrix by sums and differences of elements 1, 2, 4... apart, then the factor, which makes it its own inverse.
fn butterflies(block: &mut [f32]) {
    let n = block.len();
    let mut step = 1;
    while step < n {
        for pair in block.chunks_exact_mut(2 * step) {
            let (low, high) = pair.split_at_mut(step);
            low.iter_mut().zip(high).for_each(|(a, b)| (*a, *b) = (*a + *b, *a - *b));
        }
        step *= 2;
    }
    let factor = 1.0 / (n as f32).sqrt();
    block.iter_mut().for_each(|v| *v *= factor);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_orthogonal_and_its_inverse_undoes_it() {
        let key = Key::new(1);
        for block in [16, 32, 64, 128] {
            let k = 3 * block;
            let of = |stream: u64| -> Vec<f32> { (0..2 * k as u64).map(|n| key.stream(stream).uniform(n) - 0.5).collect() };
            let (x, y) = (of(0), of(1));
            let (mut tx, mut ty) = (x.clone(), y.clone());
            transform(&mut tx, k, block, 7).unwrap();
            transform(&mut ty, k, block, 7).unwrap();
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            assert!((dot(&x, &y) - dot(&tx, &ty)).abs() < 1e-4);
            assert!((dot(&x, &x) - dot(&tx, &tx)).abs() < 1e-4);
            inverse(&mut tx, k, block, 7).unwrap();
            assert!(x.iter().zip(&tx).all(|(a, b)| (a - b).abs() < 1e-6));
        }
    }

    #[test]
    fn one_large_element_is_shared() {
        let mut x = vec![0.0; 64];
        x[5] = 8.0;
        transform(&mut x, 64, 64, 3).unwrap();
        assert!(x.iter().all(|v| v.abs() == 1.0), "{x:?}");
    }

    #[test]
    fn misfits_are_told() {
        for (len, k, block) in [(30, 30, 16), (32, 32, 24), (40, 32, 32)] {
            assert!(transform(&mut vec![0.0; len], k, block, 0).is_err(), "{len} {k} {block}");
        }
        transform(&mut [], 0, 16, 0).unwrap();
    }
}
