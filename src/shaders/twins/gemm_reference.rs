//! Twin of `gemm_reference.wgsl`.

use super::{Twin, TwinCall};
use crate::error::Result;

pub(super) const TWIN: Twin = Twin { name: "gemm_reference", run };

fn run(call: TwinCall<'_>) -> Result<()> {
    let [columns, rows, _] = call.workgroups.map(|w| w as usize);
    let ([a, b, c], [m, n, k]) = call.split()?;
    let [m, n, k] = [m, n, k].map(|d| d as usize);
    for i in 0..m.min(rows.saturating_mul(16)) {
        for j in 0..n.min(columns.saturating_mul(256)) {
            let product = |k_: usize| f32::from_bits(a[i * k + k_]) * f32::from_bits(b[k_ * n + j]);
            c[i * n + j] = (0..k).map(product).sum::<f32>().to_bits();
        }
    }
    Ok(())
}
