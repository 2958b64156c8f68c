//! Twin of `number_centres.wgsl`.

use super::around::{Around, pair_of, side};
use crate::error::Result;
use crate::motifs::paths::{Embedded, Embedding, Unit, unit};
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "number_centres", run: |call| run(call, false) };
pub(super) const STRICT: Twin = Twin { name: "number_centres_strict", run: |call| run(call, true) };

fn run(call: TwinCall<'_>, is_strict: bool) -> Result<()> {
    let covered = call.num_invocations() as u32;
    let ([edges, of_edge, bounds, pairs, side1, side2, units], params) = call.split::<7, 28>()?;
    let [count, first_edge, num_edges, num_sides, ends_of_sides, offsets1, offsets2, mode] = std::array::from_fn(|i| params[16 + i]);
    let around = Around::new(&params, &params[24..], bounds, pairs, is_strict);
    let keys = &around.keys;
    let no_part = Embedding { steps: Vec::new(), ..around.embedding.clone() };
    let sides: Vec<_> = [(&*side1, offsets1), (&*side2, offsets2)]
        .into_iter()
        .take(num_sides as usize)
        .map(|(words, offsets)| side(words, offsets))
        .collect();
    let centre = |edge: u32| -> Unit {
        let ends = if edge < num_edges { pair_of(edges, edge) } else { [0, 0] };
        // A loop is no centre.
        let embed = |embedding: &Embedding| match ends[0] == ends[1] {
            true => None,
            false => embedding.embed(keys, &around.slots(pair_of(of_edge, edge)), keys.of(edge), keys.of(edge)),
        };
        let live = embed(&around.embedding);
        let numbered = if mode == 0 { embed(&no_part) } else { live };
        let mut unit = [0, 0, 0, 1, 0, 1, 0, 0, 0, 0];
        if let Some(found) = &numbered {
            for (i, side) in sides.iter().enumerate() {
                let at = ends[(ends_of_sides >> (i + 1) & 1) as usize];
                let window = |found: &Embedded| side.window(keys, at, around.embedding.window(keys, found, i + 1));
                unit[unit::WINDOWS + 2 * i..][..2].copy_from_slice(&window(found));
                if let Some([start, len]) = live.as_ref().map(window) {
                    unit[unit::LIVE + 2 * i..][..2].copy_from_slice(&[start, start + len]);
                }
            }
            (sides.len()..2).for_each(|i| unit[unit::LIVE + 2 * i + 1] = u32::from(live.is_some()));
            let paths = u64::from(unit[unit::WINDOWS + 1]) * u64::from(unit[unit::WINDOWS + 3]);
            unit[..2].copy_from_slice(&[paths as u32, (paths >> 32) as u32]);
        } else {
            unit = Unit::default();
        }
        if mode == 2 {
            let [rows1, rows2] = [1, 3].map(|i| if unit[0] | unit[1] > 0 { unit[unit::WINDOWS + i] } else { 0 });
            unit[..2].copy_from_slice(&[rows1, 0]);
            unit[unit::LIVE..].copy_from_slice(&[rows2, 0, ends[0], ends[1]]);
        }
        unit
    };
    for i in 0..count.min(covered) {
        units[10 * i as usize..][..10].copy_from_slice(&centre(first_edge + i));
    }
    Ok(())
}
