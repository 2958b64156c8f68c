//! CPU twins of the kernels in `shaders/bitset`: what one dispatch does to its buffers, written plainly.

use crate::shaders::twins::Twin;

mod bit_planes;
mod lock_steps;
mod tally_steps;
mod window_columns;
mod window_limits;

/// Twins of the kernels in `shaders/bitset`.
pub const TWINS: &[Twin] = &[
    bit_planes::TWIN,
    bit_planes::WIDE,
    lock_steps::TWIN,
    tally_steps::TWIN,
    tally_steps::WIDE,
    window_columns::TWIN,
    window_limits::TWIN,
    window_limits::WIDE,
];

/// The signed number in two words.
fn signed(words: &[u32]) -> i64 {
    (u64::from(words[0]) | u64::from(words[1]) << 32) as i64
}

/// Byte of each of four neighbouring windows in a word of the columns.
const BYTES: [usize; 4] = [0, 2, 1, 3];

/// The activation under a tap of a window, from the columns of `columns` eights of windows; `[group, taps, tap]`.
fn activation(columns_of: &[u32], columns: usize, [group, taps, tap]: [usize; 3], window: usize) -> u32 {
    let pair = group * taps.div_ceil(2) + tap / 2;
    let word = columns_of[4 * (pair * columns + window / 8) + tap % 2 * 2 + window % 8 / 4];
    word >> (8 * BYTES[window % 4]) & 0xff
}

/// Place of the first word of what belongs to a row and a window in the limits, with one word or two for each.
fn limit_place(row: usize, columns: usize, window: usize, words: usize) -> usize {
    let vec4 = (2 * (row * columns + window / 8) + window % 2) * words;
    4 * vec4 + window % 8 / 2
}

/// Byte of an output's steps.
fn steps_place(columns: usize, filled_channel: usize, window: usize) -> (usize, u32) {
    ((filled_channel * columns + window / 8) * 2 + window / 4 % 2, 8 * (window as u32 % 4))
}
