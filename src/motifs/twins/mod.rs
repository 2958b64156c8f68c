//! CPU twins of the kernels in `shaders/motifs`: what one dispatch does to its buffers, written plainly.

use crate::shaders::twins::Twin;
use std::ops::Range;

mod around;
mod compact_rows;
mod compact_side;
mod count_chains;
mod draw_paths;
mod draw_trees;
mod look_up_lists;
mod mark_sides;
mod most_paths;
mod number_centres;
mod scan_apply;
mod scan_sums;
mod shift_units;
mod sum_tallies;
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
        sum_tallies::TWIN,
        weigh_rows::TWIN,
        weigh_rows::STRICT,
        wide_check::TWIN,
    ],
    count_chains::TWINS,
    draw_paths::TWINS,
    draw_trees::TWINS,
    look_up_lists::TWINS,
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

/// The placements that invocation `lane` works on: an equal share of those of its team. They are numbered through the buckets, before each
/// of which are so many as prefix sums of 64 bits say.
fn shares(before: &[u32], lane: usize, team: usize) -> Range<u32> {
    let first_lane = lane / team * team;
    let [first, end] = [first_lane, first_lane + team].map(|bucket| before[2 * bucket]);
    let share = (end - first).div_ceil(team as u32);
    let nth = (lane - first_lane) as u32;
    end.min(first + nth * share)..end.min(first + (nth + 1) * share)
}

/// The bucket of a placement of [`shares`], and the slot in it.
fn place(before: &[u32], lane: usize, team: usize, item: u32) -> (usize, usize) {
    let first_lane = lane / team * team;
    let bucket = first_lane + last(team, |nth| before[2 * (first_lane + nth)] <= item);
    (bucket, (item - before[2 * bucket]) as usize)
}

/// The last number below `count` that `holds` is true for; it is for all up to that one, 0 among them.
fn last(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
