//! Twins of `look_up_lists.wgsl`.

use super::{place, shares};
use crate::error::Result;
use crate::motifs::graph::NO_PAIR;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWINS: &[Twin] =
    &[Twin { name: "look_up_lists", run: |call| run(call, false) }, Twin { name: "look_up_lists_strict", run: |call| run(call, true) }];

/// Word of the parameters at which the lists begin: vectors begin at a multiple of 16 bytes.
const LISTS: usize = 16;

fn run(call: TwinCall<'_>, strict: bool) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([drawn, pairs, of_edge, edges, bounds, keys, found], params): (_, [u32; 48]) = call.split()?;
    let at = |word: usize| params[word] as usize;
    let [num_lanes, per_lane, team, num_lists] = [0, 1, 2, 4].map(at);
    let [first_placed, last_placed] = [6, 7].map(at);
    let [destinations, starts, list, last, records] = [8, 9, 10, 11, 12].map(at);
    let plane = per_lane * num_lanes;

    for lane in 0..num_lanes.min(covered) {
        let mut num_found = 0;
        for item in shares(drawn, lane, team) {
            let (bucket, slot) = place(drawn, lane, team, item);
            let placed = |j: usize| drawn[3 * num_lanes + 2 + j * plane + slot * num_lanes + bucket] as usize;
            let key = |j: usize| if strict { keys[placed(j)] } else { placed(j) as u32 };
            // Whether the list of that word has an edge in its gap; it is written down where the next placement that is kept goes.
            let look_up = |word: u32, found: &mut [u32]| {
                let field = |at: u32, bits: u32| (word >> at & ((1 << bits) - 1)) as usize;
                let pair = match field(0, 3) {
                    7 => {
                        let [from, to] = [4, 8].map(|at| edges[2 * placed(field(at, 3)) + field(at + 3, 1)]);
                        let of_source = pairs[from as usize] as usize..pairs[from as usize + 1] as usize;
                        pairs[destinations..][of_source.clone()].binary_search(&to).map_or(NO_PAIR, |nth| (of_source.start + nth) as u32)
                    }
                    on => of_edge[2 * placed(on) + field(3, 1)],
                };
                if pair == NO_PAIR {
                    return false;
                }
                let low = match field(12, 3) {
                    7 => bounds[key(last_placed) as usize],
                    after => key(after) + 1,
                };
                let high = match field(15, 3) {
                    7 => bounds[last + key(first_placed) as usize] + 1,
                    before => key(before),
                };
                let [begin, end] = [0, 1].map(|next| pairs[starts + pair as usize + next] as usize);
                let edges_of_pair = &pairs[list..][begin..end - 1];
                let [from, to] = [low, high].map(|key| edges_of_pair.partition_point(|&k| k < key));
                if from >= to {
                    return false;
                }
                let record = records + num_found * num_lanes + lane;
                let is_alone = field(26, 1) == 1;
                found[record + field(18, 5) * plane] = if is_alone { to - from } else { begin + from } as u32;
                found[record + (num_lists + field(23, 3)) * plane] = high;
                true
            };
            if params[LISTS..][..num_lists].iter().all(|&word| look_up(word, found)) {
                num_found += 1;
            }
        }
        found[2 * lane..2 * lane + 2].copy_from_slice(&[num_found as u32, 0]);
    }
    Ok(())
}
