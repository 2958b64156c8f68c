//! Twin of `scan_apply.wgsl`.

use super::{CHUNK, set_wide, wide};
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "scan_apply", run };

fn run(call: TwinCall<'_>) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([data, before, flags], params) = call.split()?;
    let [count, offset, stride, flag] = params.map(|word| word as usize);
    for chunk in 0..count.div_ceil(CHUNK).max(1).min(covered) {
        let mut sum = if chunk == 0 { 0 } else { wide(before, chunk) };
        let end = count.min((chunk + 1) * CHUNK);
        for at in (chunk * CHUNK..end).map(|i| offset + i * stride) {
            let (next, passed) = sum.overflowing_add(wide(data, at));
            set_wide(data, at, sum);
            sum = next;
            flags[flag] |= u32::from(passed);
        }
        if end == count {
            set_wide(data, offset + count * stride, sum);
        }
    }
    Ok(())
}
