//! Twin of `sum_tallies.wgsl`.

use crate::error::Result;
use crate::motifs::paths::{TALLY_WORDS, Tally};
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "sum_tallies", run };

fn run(call: TwinCall<'_>) -> Result<()> {
    let replicates = call.workgroups[0] as usize;
    let ([state, totals], params) = call.split()?;
    let [num_lanes, team, total] = params.map(|word| word as usize);
    for replicate in 0..replicates {
        // Sums that stay at their largest number do not depend on the order of what is added.
        let mut sum = Tally::default();
        for lane in replicate * team..(replicate + 1) * team {
            sum = sum.merged(Tally::of_words(&std::array::from_fn(|w| std::mem::take(&mut state[w * num_lanes + lane]))));
        }
        totals[(total + replicate) * TALLY_WORDS..][..TALLY_WORDS].copy_from_slice(&sum.words());
    }
    Ok(())
}
