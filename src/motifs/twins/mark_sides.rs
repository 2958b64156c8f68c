//! Twin of `mark_sides.wgsl`.

use super::around::{Around, pair_of};
use crate::error::Result;
use crate::motifs::paths::DEAD;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "mark_sides", run: |call| run(call, false) };
pub(super) const STRICT: Twin = Twin { name: "mark_sides_strict", run: |call| run(call, true) };

fn run(call: TwinCall<'_>, is_strict: bool) -> Result<()> {
    let covered = call.num_invocations() as u32;
    let ([side, of_edge, bounds, pairs, marked], params) = call.split::<5, 24>()?;
    let [count, offsets, num_offsets, filter_only] = [16, 17, 18, 19].map(|i| params[i]);
    let around = Around::new(&params, &params[20..], bounds, pairs, is_strict);
    for i in 0..count.min(covered) {
        let [edge, other] = pair_of(side, i);
        let key = around.keys.of(edge);
        let found = around.embedding.embed(&around.keys, &around.slots(pair_of(of_edge, edge)), key, key).is_some();
        let words = match filter_only {
            0 => [if found { edge } else { edge | DEAD }, other],
            _ => [u32::from(found), 0],
        };
        marked[2 * i as usize..][..2].copy_from_slice(&words);
    }
    if filter_only == 0 {
        let range = offsets as usize..(offsets + num_offsets.min(covered)) as usize;
        marked[range.clone()].copy_from_slice(&side[range]);
    }
    Ok(())
}
