//! Twin of `weigh_rows.wgsl`.

use super::around::{Around, pair_of, side};
use super::wide;
use crate::error::Result;
use crate::motifs::graph::NO_PAIR;
use crate::motifs::paths::Unit;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "weigh_rows", run: |call| run(call, false) };
pub(super) const STRICT: Twin = Twin { name: "weigh_rows_strict", run: |call| run(call, true) };

fn run(call: TwinCall<'_>, is_strict: bool) -> Result<()> {
    let covered = call.num_invocations() as u32;
    let ([centres, of_edge, bounds, pairs, row_side, other_side, rows], params) = call.split::<7, 31>()?;
    let [first_low, first_high, count, num_centres, first_edge, side_of_rows, side_end] = std::array::from_fn(|i| params[16 + i]);
    let [other, other_end, offsets, destinations] = std::array::from_fn(|i| params[23 + i]);
    let around = Around::new(&params, &params[27..], bounds, pairs, is_strict);
    let keys = &around.keys;
    let numbers = if side_of_rows == 1 { 0 } else { 3 };
    let rows_before = |centre: u32| wide(centres, 5 * centre as usize + numbers);
    let find = |from: u32, to: u32| {
        let range = pairs[from as usize] as usize..pairs[from as usize + 1] as usize;
        let found = pairs[destinations as usize..][range.clone()].binary_search(&to);
        found.map_or(NO_PAIR, |at| (range.start + at) as u32)
    };
    let weighed = |row: u64| -> Option<Unit> {
        let at = (0..num_centres).rfind(|&centre| rows_before(centre) <= row).unwrap_or(0);
        let record = &centres[10 * at as usize..][..10];
        let ends = [record[8], record[9]];
        let entry = record[2 * side_of_rows as usize] + (row - rows_before(at)) as u32;
        let [edge, outer] = pair_of(row_side, entry);
        let (centre, far) = (first_edge + at, ends[1 - side_end as usize]);
        if outer == far {
            return None;
        }
        let mut slots = around.slots(pair_of(of_edge, centre));
        [slots[2], slots[3]] = pair_of(of_edge, edge).map(|pair| around.list(pair));
        let free = |slot: usize, from: u32, to: u32| around.list(if around.embedding.uses(slot) { find(from, to) } else { NO_PAIR });
        [slots[4], slots[5]] = [free(4, outer, far), free(5, far, outer)];
        let found = around.embedding.embed(keys, &slots, keys.of(centre), keys.of(edge))?;
        let mut window = [0, 1];
        if other > 0 {
            let range = around.embedding.window(keys, &found, other as usize);
            window = side(other_side, offsets).window(keys, ends[other_end as usize], range);
        }
        let [start, len] = window;
        (len > 0).then_some([len, 0, centre, edge, start, len, 0, 1, start, start + len])
    };
    let first = u64::from(first_low) | u64::from(first_high) << 32;
    for i in 0..count.min(covered) {
        let row = first + u64::from(i);
        let unit = if row < rows_before(num_centres) { weighed(row) } else { None };
        let record = &mut rows[12 * i as usize..][..12];
        if let Some(unit) = unit {
            record[..10].copy_from_slice(&unit);
        }
        record[10..].copy_from_slice(&[u32::from(unit.is_some()), 0]);
    }
    Ok(())
}
