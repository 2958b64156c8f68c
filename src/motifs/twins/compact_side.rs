//! Twin of `compact_side.wgsl`.

use super::wide;
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "compact_side", run };

fn run(call: TwinCall<'_>) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([side, kept, compacted], params) = call.split()?;
    let [count, offsets, num_offsets] = params.map(|word| word as usize);
    for i in (0..count.min(covered)).filter(|&i| wide(kept, i) != wide(kept, i + 1)) {
        compacted[2 * wide(kept, i) as usize..][..2].copy_from_slice(&side[2 * i..][..2]);
    }
    for i in (0..num_offsets.min(covered)).map(|i| offsets + i) {
        compacted[i] = wide(kept, side[i] as usize) as u32;
    }
    Ok(())
}
