//! The adapter itself: every probe as a row.

use super::{Bench, Row};
use crate::device::BANDWIDTH_BYTES;
use crate::error::Result;

pub(super) fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let probes = bench.probes;
    let mut rows: Vec<Row> = probes
        .fma
        .iter()
        .map(|probe| Row {
            name: probe.name.clone(),
            gflops: Some(probe.gflops),
            share: Some(probe.gflops / probes.fma_gflops),
            probe: Some("fma"),
            kernels: 1,
            submissions: 1,
            ..Row::default()
        })
        .collect();
    let traffic =
        [("read", probes.read_gbps, 1), ("write", probes.write_gbps, 1), ("copy", probes.copy_gbps, 2), ("2r1w", probes.r2w1_gbps, 3)];
    for (name, rates, buffers) in traffic {
        for (bytes, gbps) in BANDWIDTH_BYTES.into_iter().zip(rates) {
            rows.push(Row {
                name: format!("{name} {} MiB", bytes >> 20),
                median_ms: Some((buffers * bytes) as f64 / gbps / 1e6),
                gbps: Some(gbps),
                kernels: 1,
                submissions: 1,
                ..Row::default()
            });
        }
    }
    Ok(rows)
}
