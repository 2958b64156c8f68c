//! Twin of `threefry_fill.wgsl`.

use super::{Twin, TwinCall};
use crate::error::Result;
use kernels_gen::threefry::{Key, uniform};

pub(super) const WORDS: Twin = Twin { name: "threefry_fill", run: |call| fill(call, |word| word) };
pub(super) const UNIFORM: Twin = Twin { name: "threefry_fill_uniform", run: |call| fill(call, |word| uniform(word).to_bits()) };

fn fill(call: TwinCall<'_>, value: fn(u32) -> u32) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([out], [count, key_low, key_high, first_low, first_high]) = call.split()?;
    let key = Key::from_words([key_low, key_high]);
    let mut index = u64::from(first_low) | u64::from(first_high) << 32;
    let len = out.len().min(count as usize);
    for pair in out[..len].chunks_mut(2).take(covered) {
        for (out, word) in pair.iter_mut().zip(key.block(index)) {
            *out = value(word);
        }
        index = index.wrapping_add(1);
    }
    Ok(())
}
