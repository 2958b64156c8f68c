//! Twin of `tally_steps.wgsl`.

use super::{signed, steps_place};
use crate::bitset::account::ChannelTally;
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "tally_steps", run: |call| run(call, false) };
pub(super) const WIDE: Twin = Twin { name: "tally_steps_wide", run: |call| run(call, true) };

fn run(call: TwinCall<'_>, is_wide: bool) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([steps, results, tallies], params) = call.split::<3, 9>()?;
    let [windows, positions, columns, share, shares, outputs, outputs_of_group, fours_of_group, all_steps] =
        params.map(|word| word as usize);
    for index in 0..(outputs * shares).min(covered) {
        let (output, first) = (index / shares, index % shares * share * 8);
        let filled = output / outputs_of_group * fours_of_group * 4 + output % outputs_of_group;
        let mut tally = ChannelTally::default();
        for window in first..windows.min(first + share * 8) {
            let (word, shift) = steps_place(columns, filled, window);
            let made = steps[word] >> shift & 0xff;
            let place = (window / positions * outputs + output) * positions + window % positions;
            let value = if is_wide { signed(&results[2 * place..]) } else { i64::from(results[place] as i32) };
            let is_stopped = (made as usize) < all_steps;
            tally.count(made, is_stopped, value);
            if is_stopped {
                let words = if is_wide { 2 * place..2 * place + 2 } else { place..place + 1 };
                results[words].fill(0);
            }
        }
        let ChannelTally { steps, stopped, killed, zeros, killed_mass, mass, .. } = tally;
        let [killed_low, mass_low] = [killed_mass, mass].map(|sum| [sum as u32, (sum >> 32) as u32]);
        let words = [[steps as u32, stopped as u32, killed as u32, zeros as u32].as_slice(), &killed_low, &mass_low].concat();
        tallies[8 * index..8 * index + 8].copy_from_slice(&words);
    }
    Ok(())
}
