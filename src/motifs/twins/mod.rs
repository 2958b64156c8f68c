//! CPU twins of the kernels in `shaders/motifs`: what one dispatch does to its buffers, written plainly.

use crate::shaders::twins::Twin;

mod scan_apply;
mod scan_sums;
mod wide_check;

pub(super) use scan_sums::CHUNK;

/// Twins of the kernels in `shaders/motifs`.
pub const TWINS: &[Twin] = &[scan_apply::TWIN, scan_sums::TWIN, wide_check::TWIN];

/// The 64-bit number at place `at` of a buffer of them.
fn wide(words: &[u32], at: usize) -> u64 {
    u64::from(words[2 * at]) | u64::from(words[2 * at + 1]) << 32
}

fn set_wide(words: &mut [u32], at: usize, value: u64) {
    words[2 * at..2 * at + 2].copy_from_slice(&[value as u32, (value >> 32) as u32]);
}
