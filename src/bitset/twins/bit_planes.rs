//! Twin of `bit_planes.wgsl`.

use super::{activation, limit_place, signed, steps_place};
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "bit_planes", run: |call| run(call, false) };
pub(super) const WIDE: Twin = Twin { name: "bit_planes_wide", run: |call| run(call, true) };

fn run(call: TwinCall<'_>, is_wide: bool) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([columns_of, weights, tables, limits, residual, results, steps], params) = call.split::<7, 12>()?;
    let [windows, positions, columns, count, outputs, outputs_of_group, fours_of_group, taps, passes, rows, with_residual, audit] =
        params.map(|word| word as usize);
    let (fours, chunks, words) = (count / columns, taps.div_ceil(32), if is_wide { 2 } else { 1 });
    // Sums are those of 64 bits, of which 32 are kept.
    let kept = |sum: i64| if is_wide { sum } else { i64::from(sum as i32) };
    let of_channel = |row: usize, channel: usize| signed(&tables[16 * passes + 2 * (row * 4 * fours + channel)..]);
    steps[..8 * count].fill(0);
    for index in 0..(8 * 4 * count).min(8 * 4 * covered) {
        let (window, channel) = (index % (8 * columns), index / (8 * columns));
        let (group, in_group) = (channel / 4 / fours_of_group, channel % (4 * fours_of_group));
        if window >= windows || in_group >= outputs_of_group {
            continue;
        }
        let output = group * outputs_of_group + in_group;
        let place = (window / positions * outputs + output) * positions + window % positions;
        let limit = |row: usize| {
            let at = limit_place(group * rows + row, columns, window, words);
            if is_wide { signed(&[limits[at], limits[at + 4]]) } else { i64::from(limits[at] as i32) }
        };
        let mut sum = of_channel(rows - 1, channel);
        if with_residual == 1 {
            sum = sum.wrapping_add(i64::from(residual[place] as i32));
        }
        let (mut made, mut is_alive) = (0, true);
        for plane in 0..4 * passes {
            let bit = |tap: usize| {
                let vec4 = ((channel / 4 * passes + plane / 4) * chunks + tap / 32) * 4 + channel % 4;
                weights[4 * vec4 + plane % 4] >> (31 - tap % 32) & 1
            };
            let counted = (0..taps).filter(|&tap| bit(tap) == 1).map(|tap| activation(columns_of, columns, [group, taps, tap], window));
            let counted: u32 = counted.sum();
            let [_, _, flags, row] = std::array::from_fn(|i| tables[4 * plane + i]);
            sum = kept(sum.wrapping_add(signed(&tables[4 * plane..]).wrapping_mul(i64::from(counted))));
            made += u32::from(flags & 1 != 0 && is_alive);
            if flags & 2 != 0 {
                let rest = sum.wrapping_sub(limit(row as usize)).wrapping_sub(of_channel(row as usize, channel));
                is_alive &= kept(rest) >= 0;
            }
        }
        let value = if is_alive || audit == 1 { kept(sum.wrapping_sub(limit(rows - 1))) } else { 0 };
        results[words * place] = value as u32;
        if is_wide {
            results[words * place + 1] = (value >> 32) as u32;
        }
        let (word, shift) = steps_place(columns, channel, window);
        steps[word] |= made << shift;
    }
    Ok(())
}
