//! Twins of `count_chains.wgsl`. Where an invocation stops is part of what it does, so they count its steps as it does.

use super::{place, shares, wide};
use crate::error::Result;
use crate::motifs::paths::{TALLY_WORDS, Tally};
use crate::shaders::twins::{Twin, TwinCall};
use std::ops::Range;

pub(super) const TWINS: &[Twin] = &[
    Twin { name: "count_chains", run: |call| run(call, 4, 1) },
    Twin { name: "count_chains_eight", run: |call| run(call, 8, 1) },
    Twin { name: "count_chains_long", run: |call| run(call, 32, 34) },
];

/// Places of the words of an invocation's state.
const NEXT: usize = 10;
const GAP: usize = 11;
const PRODUCT: usize = 12;
const HEADS: usize = 14;
const WAYS: usize = 46;

/// Marks a gap that is being merged.
const MERGING: u32 = 1 << 31;
/// Elements of a turn.
const TURN: usize = 8;

/// Lists of a gap that are being merged: where each is, and the chains that end in what was passed of it.
struct Merge {
    size: usize,
    heads: Vec<u32>,
    ways: Vec<u64>,
    /// The key that ends the gap.
    end: u32,
}

impl Merge {
    /// Takes the smallest key, of equal ones that of the last list, if it is in the gap; says whether it is.
    fn step(&mut self, keys: &[u32]) -> bool {
        let front = |&j: &usize| keys[self.heads[j] as usize];
        let Some(which) = (0..self.size).rev().min_by_key(front).filter(|j| front(j) < self.end) else { return false };
        let before = if which == 0 { 1 } else { self.ways[which - 1] };
        self.ways[which] = self.ways[which].saturating_add(before);
        self.heads[which] += 1;
        true
    }
}

/// `most` lists fit a merge, and an element of one counts as `cost` steps.
fn run(call: TwinCall<'_>, most: usize, cost: u32) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([drawn, found, pairs, state, unfinished], params) = call.split()?;
    let [_, _, _, _, _, _, resume, max_steps, gap_ends, alone] = params;
    let [num_lanes, per_lane, team, num_lists, list, records] = [0, 1, 2, 3, 4, 5].map(|word| params[word] as usize);
    let plane = per_lane * num_lanes;
    let keys = &pairs[list..];
    let first_of = |bucket: usize| found[2 * bucket];
    let gap_size = |gap: usize| (gap_ends >> gap).trailing_zeros() as usize + 1;
    let gap_end = |record: usize, gap: usize| {
        let gaps_before = (gap_ends & ((1 << gap) - 1)).count_ones() as usize;
        found[record + (num_lists + gaps_before) * plane]
    };

    for lane in 0..num_lanes.min(covered) {
        let Range { start: mut item, end } = shares(found, lane, team);
        let mut tally = Tally::default();
        if resume == 0 {
            tally.valid = drawn[2 * num_lanes + 2 + lane].into();
        } else {
            item = state[NEXT * num_lanes + lane];
            if item >= end {
                continue;
            }
        }
        let (mut bucket, _) = place(found, lane, team, item);
        let mut gap = 0;
        let mut product = 1u64;
        let mut merge = None;
        if resume != 0 {
            let word = |w: usize| state[w * num_lanes + lane];
            let pair = |w: usize| wide(&[word(w), word(w + 1)], 0);
            (gap, product) = ((word(GAP) & !MERGING) as usize, pair(PRODUCT));
            if word(GAP) & MERGING != 0 {
                let record = records + (item - first_of(bucket)) as usize * num_lanes + bucket;
                merge = Some(Merge {
                    size: gap_size(gap),
                    heads: (0..most).map(|j| word(HEADS + j)).collect(),
                    ways: (0..most).map(|j| pair(WAYS + 2 * j)).collect(),
                    end: gap_end(record, gap),
                });
            }
        }

        let mut steps = 0;
        while item < end && steps < max_steps {
            steps += 1;
            if merge.is_none() && gap < num_lists {
                let record = records + (item - first_of(bucket)) as usize * num_lanes + bucket;
                if alone >> gap & 1 == 1 {
                    product = product.saturating_mul(found[record + gap * plane].into());
                    gap += 1;
                } else {
                    let size = gap_size(gap);
                    let heads = (0..most).map(|j| if j < size { found[record + (gap + j) * plane] } else { 0 });
                    merge = Some(Merge { size, heads: heads.collect(), ways: vec![0; most], end: gap_end(record, gap) });
                    steps += most as u32 + 1;
                }
            }
            if let Some(lists) = &mut merge {
                let taken = (0..TURN).take_while(|_| lists.step(keys)).count();
                // One more is looked at where the lists end.
                steps += cost * (taken + 1).min(TURN) as u32;
                if taken < TURN {
                    product = product.saturating_mul(lists.ways[lists.size - 1]);
                    gap += lists.size;
                    merge = None;
                }
            }
            steps += 1;
            if merge.is_none() && (gap == num_lists || product == 0) {
                tally.add(product);
                (product, gap) = (1, 0);
                item += 1;
                if item < end && item == first_of(bucket + 1) {
                    // Past empty buckets, which begin where the next one does.
                    bucket += 1;
                    while first_of(bucket + 1) <= item {
                        bucket += 1;
                        steps += 1;
                    }
                }
            }
        }

        let mut set = |w: usize, word: u32| state[w * num_lanes + lane] = word;
        set(NEXT, item);
        if item < end {
            unfinished[0] = 1;
            set(GAP, gap as u32 | if merge.is_some() { MERGING } else { 0 });
            set(PRODUCT, product as u32);
            set(PRODUCT + 1, (product >> 32) as u32);
            for (j, (&head, &ways)) in merge.iter().flat_map(|merge| merge.heads.iter().zip(&merge.ways)).enumerate() {
                set(HEADS + j, head);
                set(WAYS + 2 * j, ways as u32);
                set(WAYS + 2 * j + 1, (ways >> 32) as u32);
            }
        }
        let counted = Tally::of_words(&std::array::from_fn(|w| state[w * num_lanes + lane])).merged(tally);
        for (w, word) in (0..TALLY_WORDS).zip(counted.words()) {
            state[w * num_lanes + lane] = word;
        }
    }
    Ok(())
}
