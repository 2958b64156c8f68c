//! CPU twins of the kernels in `shaders/motifs`: what one dispatch does to its buffers, written plainly.

use crate::shaders::twins::Twin;

mod around;
mod compact_rows;
mod compact_side;
mod draw_trees;
mod mark_sides;
mod most_paths;
mod number_centres;
mod scan_apply;
mod scan_sums;
mod shift_units;
mod weigh_rows;
mod weigh_subtrees;
mod wide_check;

pub(super) use most_paths::CHUNK as MOST_PATHS_CHUNK;
pub(super) use scan_sums::CHUNK;

/// Twins of the kernels in `shaders/motifs`.
pub const TWINS: &[Twin] = &joined::<{ num_twins(TABLES) }>(TABLES);

const TABLES: &[&[Twin]] = &[
    &[
        compact_rows::TWIN,
        compact_side::TWIN,
        mark_sides::TWIN,
        mark_sides::STRICT,
        most_paths::TWIN,
        number_centres::TWIN,
        number_centres::STRICT,
        scan_apply::TWIN,
        scan_sums::TWIN,
        shift_units::TWIN,
        weigh_rows::TWIN,
        weigh_rows::STRICT,
        wide_check::TWIN,
    ],
    draw_trees::TWINS,
    weigh_subtrees::TWINS,
];

const fn num_twins(tables: &[&[Twin]]) -> usize {
    let (mut num, mut table) = (0, 0);
    while table < tables.len() {
        num += tables[table].len();
        table += 1;
    }
    num
}

const fn joined<const N: usize>(tables: &[&[Twin]]) -> [Twin; N] {
    let mut twins = [wide_check::TWIN; N];
    let (mut at, mut table) = (0, 0);
    while table < tables.len() {
        let mut i = 0;
        while i < tables[table].len() {
            twins[at] = tables[table][i];
            (at, i) = (at + 1, i + 1);
        }
        table += 1;
    }
    twins
}

/// The 64-bit number at place `at` of a buffer of them.
fn wide(words: &[u32], at: usize) -> u64 {
    u64::from(words[2 * at]) | u64::from(words[2 * at + 1]) << 32
}

fn set_wide(words: &mut [u32], at: usize, value: u64) {
    words[2 * at..2 * at + 2].copy_from_slice(&[value as u32, (value >> 32) as u32]);
}
