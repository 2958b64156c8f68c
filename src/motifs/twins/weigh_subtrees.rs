//! Twin of `weigh_subtrees.wgsl`.

use super::{set_wide, wide};
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWINS: &[Twin] =
    &[Twin { name: "weigh_subtrees", run: |call| run(call, false) }, Twin { name: "weigh_subtrees_strict", run: |call| run(call, true) }];

fn run(call: TwinCall<'_>, is_strict: bool) -> Result<()> {
    let covered = call.num_invocations();
    let ([graph, bounds, keys, sums, windows, weights, flags], params) = call.split::<7, 32>()?;
    let [count, entries, num_children, last] = [0, 1, 2, 3].map(|at| params[at] as usize);
    let is_centre = params[1] == u32::MAX;
    let key_of = |edge: u32| if is_strict { keys[edge as usize] } else { edge };
    let pair = |at: usize| [graph[2 * at], graph[2 * at + 1]];
    for item in 0..count.min(covered as usize) {
        let edge = if is_centre { item as u32 } else { pair(entries + item)[0] };
        let ends = pair(edge as usize);
        if ends[0] == ends[1] {
            set_wide(weights, item, 0);
            continue;
        }
        let key = key_of(edge);
        let within = bounds[key as usize]..=bounds[last + key as usize];
        let mut product = 1u64;
        for child in params[8..].chunks_exact(4).take(num_children) {
            let [list, window, shift, kind] = [child[0], child[1], child[2], child[3]];
            let [begin, end] = pair((list + ends[(kind & 1) as usize]) as usize);
            let is_before = |entry: &u32| {
                let other = key_of(pair(*entry as usize)[0]);
                if kind & 2 > 0 { other <= key } else { other < *within.start() }
            };
            let is_inside = |entry: &u32| {
                let other = key_of(pair(*entry as usize)[0]);
                if kind & 2 > 0 { other <= *within.end() } else { other < key }
            };
            let start = (begin..end).find(|entry| !is_before(entry)).unwrap_or(end);
            let length = (start..end).take_while(is_inside).count() as u32;
            windows[2 * (window + edge) as usize..][..2].copy_from_slice(&[start, length]);
            let sum = |entry: u32| wide(sums, entry.wrapping_add(shift) as usize);
            let subtrees = if kind & 4 > 0 { sum(start + length) - sum(start) } else { u64::from(length) };
            let (next, passed) = product.overflowing_mul(subtrees);
            product = next;
            flags[0] |= u32::from(passed);
        }
        set_wide(weights, item, product);
        flags[1] |= u32::from(is_centre && product >= 1 << 30);
    }
    Ok(())
}
