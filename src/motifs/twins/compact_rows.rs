//! Twin of `compact_rows.wgsl`.

use super::wide;
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "compact_rows", run };

fn run(call: TwinCall<'_>) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([rows, units], [count, base, size]) = call.split()?;
    let flag = |row: usize| wide(rows, 6 * row + 5) as u32;
    for row in (0..covered.min(count as usize)).filter(|&row| flag(row) != flag(row + 1)) {
        let at = base.wrapping_add(flag(row));
        if at < size {
            units[10 * at as usize..][..10].copy_from_slice(&rows[12 * row..][..10]);
        }
    }
    Ok(())
}
