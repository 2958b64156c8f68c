//! Twin of `lock_steps.wgsl`.

use super::steps_place;
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "lock_steps", run };

fn run(call: TwinCall<'_>) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([steps, sums], params) = call.split::<2, 9>()?;
    let [windows, columns, share, shares, outputs_of_group, fours_of_group, lanes, lanes_of_group, count] =
        params.map(|word| word as usize);
    for (index, sum) in sums.iter_mut().enumerate().take(count.min(covered)) {
        let (row, from) = (index / shares, index % shares * share * 8);
        let first = row % lanes_of_group * lanes;
        let base = row / lanes_of_group * fours_of_group * 4;
        let most = |window: usize| {
            let made = (first..outputs_of_group.min(first + lanes)).map(|channel| {
                let (word, shift) = steps_place(columns, base + channel, window);
                steps[word] >> shift & 0xff
            });
            made.max().unwrap_or(0)
        };
        *sum = (from..windows.min(from + share * 8)).map(most).sum();
    }
    Ok(())
}
