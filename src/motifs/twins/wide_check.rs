//! Twin of `wide_check.wgsl`.

use super::{set_wide, wide};
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};
use kernels_gen::threefry::Key;

pub(super) const TWIN: Twin = Twin { name: "wide_check", run };

fn run(call: TwinCall<'_>) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([pairs, out], [count, key_low, key_high]) = call.split()?;
    let key = Key::from_words([key_low, key_high]);
    for i in 0..covered.min(count as usize) {
        let (a, b) = (wide(pairs, 2 * i), wide(pairs, 2 * i + 1));
        let (product, divisor) = (u128::from(a) * u128::from(b), b.max(1));
        let results = [
            [a.wrapping_add(b), a.wrapping_sub(b)],
            [a.saturating_add(b), a.saturating_mul(b)],
            [product as u64, (product >> 64) as u64],
            [a.wrapping_mul(b), u64::from(a < b)],
            [a / divisor, a % divisor],
            [key.below(a & ((1 << 56) - 1), divisor), ((1u128 << 64) % u128::from(divisor)) as u64],
        ];
        for (k, result) in results.concat().into_iter().enumerate() {
            set_wide(out, 12 * i + k, result);
        }
    }
    Ok(())
}
