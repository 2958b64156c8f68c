//! Twin of `scan_sums.wgsl`.

use super::{set_wide, wide};
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "scan_sums", run };

/// Values that one invocation sums, as the shaders `scan_sums` and `scan_apply` have it.
pub(in crate::motifs) const CHUNK: usize = 16;

fn run(call: TwinCall<'_>) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([data, sums], params) = call.split()?;
    let [count, offset, stride] = params.map(|word| word as usize);
    for chunk in 0..count.div_ceil(CHUNK).min(covered) {
        let places = chunk * CHUNK..count.min((chunk + 1) * CHUNK);
        let sum = places.fold(0, |sum: u64, i| sum.wrapping_add(wide(data, offset + i * stride)));
        set_wide(sums, chunk, sum);
    }
    Ok(())
}
