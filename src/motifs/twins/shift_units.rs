//! Twin of `shift_units.wgsl`.

use super::{set_wide, wide};
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "shift_units", run };

fn run(call: TwinCall<'_>) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([units], [count, low, high]) = call.split()?;
    for unit in 0..covered.min(count as usize) {
        let first = wide(units, 5 * unit).wrapping_add(u64::from(low) | u64::from(high) << 32);
        set_wide(units, 5 * unit, first);
    }
    Ok(())
}
