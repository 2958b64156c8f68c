//! Twin of `most_paths.wgsl`.

use super::wide;
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "most_paths", run };

/// Units that one invocation looks at.
pub(in crate::motifs) const CHUNK: u32 = 64;

fn run(call: TwinCall<'_>) -> Result<()> {
    let covered = call.num_invocations() * u64::from(CHUNK);
    let ([units, result], [count, word]) = call.split()?;
    let paths = |unit: usize| wide(units, 5 * (unit + 1)).wrapping_sub(wide(units, 5 * unit));
    let most = (0..u64::from(count).min(covered)).map(|unit| paths(unit as usize)).max().unwrap_or(0);
    let place = &mut result[word as usize];
    *place = (*place).max(u32::try_from(most).unwrap_or(u32::MAX));
    Ok(())
}
