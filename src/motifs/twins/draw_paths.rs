//! Twins of `draw_paths.wgsl`. How far numbers reach makes no difference here.

use super::{last, wide};
use crate::error::Result;
use crate::motifs::paths::DEAD;
use crate::shaders::twins::{Twin, TwinCall};
use kernels_gen::threefry::Key;

/// Twins of all permutations.
pub(super) const TWINS: &[Twin] = &[
    Twin { name: "draw_paths", run: centres },
    Twin { name: "draw_paths_enumerate", run: centres },
    Twin { name: "draw_paths_wide", run: centres },
    Twin { name: "draw_paths_strict", run: centres_strict },
    Twin { name: "draw_paths_enumerate_strict", run: centres_strict },
    Twin { name: "draw_paths_wide_strict", run: centres_strict },
    Twin { name: "draw_paths_rows", run: rows },
    Twin { name: "draw_paths_rows_enumerate", run: rows },
    Twin { name: "draw_paths_rows_wide", run: rows },
    Twin { name: "draw_paths_rows_strict", run: rows_strict },
    Twin { name: "draw_paths_rows_enumerate_strict", run: rows_strict },
    Twin { name: "draw_paths_rows_wide_strict", run: rows_strict },
];

fn centres(call: TwinCall<'_>) -> Result<()> {
    run(call, false, false)
}

fn centres_strict(call: TwinCall<'_>) -> Result<()> {
    run(call, false, true)
}

fn rows(call: TwinCall<'_>) -> Result<()> {
    run(call, true, false)
}

fn rows_strict(call: TwinCall<'_>) -> Result<()> {
    run(call, true, true)
}

/// Words of a unit.
const UNIT: usize = 10;
/// Neighbouring invocations that draw together.
const TEAM: usize = 8;
/// Word of the parameters at which the keys of replicates begin.
const KEYS: usize = 24;

/// Placed edges, centre first, and what is known of them.
struct Placed {
    edges: [u32; 3],
    valid: bool,
    /// Whether a match may hold them.
    live: bool,
}

/// Units are rows (`of_rows`) or centres; keys are given (`strict`) or the indices of edges.
fn run(call: TwinCall<'_>, of_rows: bool, strict: bool) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([units, edges, side1, side2, bounds, keys, drawn], params): (_, [u32; 40]) = call.split()?;
    let [num_lanes, per_lane, num_strata, num_units] = [0, 1, 4, 13].map(|word| params[word] as usize);
    let [first, width, begin, end] = [2, 5, 9, 11].map(|word| u64::from(params[word]) | u64::from(params[word + 1]) << 32);
    let [first_centre, num_sides, row_side, ends_of, order, after] = [14, 15, 16, 17, 18, 19].map(|word| params[word]);
    let [num_replicates, turns] = [20, 21].map(|word| params[word] as usize);

    let ends = |edge: u32| [edges[2 * edge as usize], edges[2 * edge as usize + 1]];
    // The vertex of the centre that side j touches, and the other one.
    let at = |centre: u32, j: u32| ends(centre)[(ends_of >> j & 1) as usize];
    let far = |centre: u32, j: u32| ends(centre)[(ends_of >> j & 1 ^ 1) as usize];
    let entry = |j: u32, at: u32| {
        let side = if j == 1 { &side1 } else { &side2 };
        [side[2 * at as usize], side[2 * at as usize + 1]]
    };
    let key_of = |edge: u32| if strict { keys[edge as usize] } else { edge };

    // Path `path` of the row of those words.
    let of_row = |unit: &[u32], path: u64| {
        let [centre, edge, start] = [unit[2], unit[3], unit[4]];
        let mut placed = Placed { edges: [centre, edge, edge], valid: true, live: true };
        if num_sides == 2 {
            let other = 3 - row_side;
            let [other_edge, outer] = entry(other, start + path as u32);
            placed.edges[other as usize] = other_edge;
            let row_outer = ends(edge)[0] ^ ends(edge)[1] ^ at(centre, row_side);
            placed.valid = outer != row_outer && outer != far(centre, other);
        }
        placed
    };
    // Path `path` of a centre.
    let of_centre = |centre: u32, unit: &[u32], path: u64| {
        let length = u64::from(unit[5]);
        let digits = [path / length, path % length];
        let mut placed = Placed { edges: [centre; 3], valid: true, live: true };
        let mut outer = [u32::MAX; 2];
        for j in 0..2 {
            let place = unit[2 + 2 * j].wrapping_add(digits[j] as u32);
            placed.live &= (unit[6 + 2 * j]..unit[7 + 2 * j]).contains(&place);
            let side = j as u32 + 1;
            if side <= num_sides {
                let [edge, vertex] = entry(side, place);
                placed.live &= edge & DEAD == 0;
                placed.edges[j + 1] = edge & !DEAD;
                placed.valid &= vertex != far(centre, side) && !outer.contains(&vertex);
                outer[j] = vertex;
            }
        }
        let [_, a, b] = placed.edges.map(key_of);
        let (earlier, later) = if order % 2 == 1 { (a, b) } else { (b, a) };
        placed.valid &= match order {
            0 => true,
            1 | 2 => earlier < later,
            _ => later <= bounds[(after + earlier) as usize],
        };
        placed
    };

    for lane in 0..num_lanes.min(covered) {
        // The members of a team draw from strata in turn, or each for a replicate of its own; the buckets of a replicate are neighbours.
        let (team, member) = (lane / TEAM, lane % TEAM);
        let (replicate, first_turn, bucket) = match turns {
            TEAM => (0, member, lane),
            _ => (member, 0, member * (num_lanes / TEAM) + team),
        };
        let strata = (0..per_lane).map(|i| (team * per_lane + i) * turns + first_turn);
        let key = Key::from_words([0, 1].map(|word| params[KEYS + 2 * replicate + word]));
        let (mut num_kept, mut num_valid) = (0, 0);
        for stratum in strata.filter(|&stratum| stratum < num_strata && replicate < num_replicates) {
            let index = first + stratum as u64;
            let id = index.checked_mul(width).and_then(|base| base.checked_add(key.below(index, width)));
            let Some(id) = id.filter(|id| (begin..end).contains(id)) else { continue };
            let first_path = |unit: usize| wide(units, unit * UNIT / 2);
            // Units without paths begin where the next one does.
            let unit = last(num_units, |unit| first_path(unit) <= id);
            let (words, path) = (&units[unit * UNIT..][..UNIT], id - first_path(unit));
            let placed = if of_rows { of_row(words, path) } else { of_centre(first_centre + unit as u32, words, path) };
            num_valid += u32::from(placed.valid);
            if placed.valid && placed.live {
                for (j, &edge) in placed.edges[..=num_sides as usize].iter().enumerate() {
                    drawn[3 * num_lanes + 2 + (j * per_lane + num_kept) * num_lanes + bucket] = edge;
                }
                num_kept += 1;
            }
        }
        drawn[2 * bucket..2 * bucket + 2].copy_from_slice(&[num_kept as u32, 0]);
        drawn[2 * num_lanes + 2 + bucket] = num_valid;
    }
    Ok(())
}
