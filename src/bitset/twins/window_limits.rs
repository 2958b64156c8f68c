//! Twin of `window_limits.wgsl`.

use super::{activation, limit_place, signed};
use crate::bitset::rule::isqrt;
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "window_limits", run: |call| run(call, false) };
pub(super) const WIDE: Twin = Twin { name: "window_limits_wide", run: |call| run(call, true) };

fn run(call: TwinCall<'_>, is_wide: bool) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([columns_of, table, limits], params) = call.split::<3, 7>()?;
    let [taps, columns, count, rows] = std::array::from_fn(|i| params[i] as usize);
    let (z2, mean) = (u64::from(params[4]), signed(&params[5..7]));
    let words = if is_wide { 2 } else { 1 };
    for at in 0..count.min(covered) {
        let (column, group) = (at % columns, at / columns);
        for window in 8 * column..8 * column + 8 {
            let values = (0..taps).map(|tap| u64::from(activation(columns_of, columns, [group, taps, tap], window)));
            let (s1, s2) = values.fold((0, 0), |(s1, s2), a| (s1 + a, s2 + a * a));
            let s1 = s1 as i64;
            for row in 0..rows {
                let numbers = &table[8 * row..8 * row + 8];
                let deviation = isqrt(z2.wrapping_mul(s2).wrapping_mul(u64::from(numbers[4])) >> 8) as i64;
                let mean = (mean.wrapping_mul(s1).wrapping_add(1 << 15)) >> 16;
                let limit = signed(numbers).wrapping_add(signed(&numbers[2..]).wrapping_mul(s1)).wrapping_sub(mean).wrapping_sub(deviation);
                let place = limit_place(group * rows + row, columns, window, words);
                limits[place] = limit as u32;
                if is_wide {
                    limits[place + 4] = (limit >> 32) as u32;
                }
            }
        }
    }
    Ok(())
}
