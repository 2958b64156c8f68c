//! Twin of `scale_add.wgsl`.

use super::{Twin, TwinCall};
use crate::error::Result;

pub(super) const TWIN: Twin = Twin { name: "scale_add", run };

fn run(call: TwinCall<'_>) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([x, y], [count, scale]) = call.split()?;
    let scale = f32::from_bits(scale);
    for (x, y) in x.iter().zip(y).take(covered.min(count as usize)) {
        *y = (scale * f32::from_bits(*x) + f32::from_bits(*y)).to_bits();
    }
    Ok(())
}
