//! Findings of benchmarks as a report.

use super::{Column, Report, Table};
use crate::device::Probes;
use crate::suite::bench::Findings;
use serde_json::Value;

/// Gain of compilation over eager mode in inference: Ansel et al., "PyTorch 2", ASPLOS 2024.
const PUBLISHED_GEOMEAN: f64 = 2.27;

/// Columns of every benchmark. `share` is the part of what `probe` reached in the same run.
const COLUMNS: [Column; 19] = [
    Column::new("name", "name"),
    Column::new("median_ms", "ms"),
    Column::new("gflops", "GFLOP/s"),
    Column::new("gbps", "GB/s"),
    Column::new("share", "share"),
    Column::new("probe", "of probe"),
    Column::new("kernels", "kernels"),
    Column::new("submissions", "submissions"),
    Column::new("ratio", "times as fast"),
    Column::new("against", "as"),
    Column::new("mode", "mode"),
    Column::new("batch", "batch"),
    Column::new("bytes", "bytes"),
    Column::new("generated", "generated"),
    Column::new("measured", "measured"),
    Column::new("probes_run", "probes"),
    Column::new("images_per_s", "images/s"),
    Column::new("samples_per_s", "samples/s"),
    Column::new("slope", "slope"),
];

/// Columns of the times of kernels; `share` is the part of the row's kernels together.
const PARTS: [Column; 6] = [
    Column::new("row", "row"),
    Column::new("kernel", "kernel"),
    Column::new("calls", "calls"),
    Column::new("ms", "ms"),
    Column::new("share", "share"),
    Column::new("origins", "origins"),
];

impl Report {
    /// Adds what the device reaches, the same in every benchmark: the best rate of multiply-adds, and bandwidths of buffers of 16 MiB.
    pub fn probes(&mut self, probes: &Probes) {
        self.field("clock", "clock of the probes", probes.clock.name(), "");
        self.field("rows_clock", "clock of the rows", "host", "");
        self.field("probed_fma_gflops", "multiply-adds", probes.fma_gflops, "GFLOP/s");
        self.field("probed_dot4_gops", "dot products of four bytes", probes.dot4_gops, "10^9 operations a second");
        self.field("probed_read_gbps", "read", probes.read_gbps[0], "GB/s");
        self.field("probed_write_gbps", "write", probes.write_gbps[0], "GB/s");
        self.field("probed_copy_gbps", "copy", probes.copy_gbps[0], "GB/s");
        self.field("probed_2r1w_gbps", "two read, one written", probes.r2w1_gbps[0], "GB/s");
        self.field("dispatch_us", "one more dispatch", probes.dispatch_us, "us");
        self.field("submission_us", "a submission", probes.submission_us, "us");
    }

    /// Adds the findings of benchmarks: probes, rows, and times of kernels as `kernel_times`.
    pub fn findings(&mut self, findings: &Findings) {
        self.probes(&findings.probes);
        if let Some(mean) = findings.inference_geomean {
            self.field("inference_geomean", "compiled against eager", mean, "times as fast, geometric mean");
            self.field("published_geomean", "published for TorchInductor", PUBLISHED_GEOMEAN, "on 180 models and a GPU");
        }
        if !findings.faults.is_empty() {
            self.field("faults", "could not run", findings.faults.clone(), "");
        }
        let (mut rows, mut parts) = (Table::new(&COLUMNS), Table::new(&PARTS));
        for row in &findings.rows {
            rows.row([
                row.name.as_str().into(),
                row.median_ms.into(),
                row.gflops.into(),
                row.gbps.into(),
                row.share.into(),
                row.probe.into(),
                row.kernels.into(),
                row.submissions.into(),
                row.ratio.into(),
                row.against.into(),
                row.mode.into(),
                row.batch.into(),
                row.bytes.into(),
                row.generated.into(),
                row.measured.into(),
                row.probes_run.into(),
                row.images_per_s.into(),
                row.samples_per_s.into(),
                row.slope.into(),
            ]);
            for part in &row.parts {
                let origins: Vec<Value> = part.origins.iter().map(|o| o.as_str().into()).collect();
                let (name, kernel) = (row.name.as_str(), part.name.as_str());
                parts.row([name.into(), kernel.into(), part.calls.into(), part.ms.into(), part.share.into(), origins.into()]);
            }
        }
        self.table(rows);
        if parts.num_rows() > 0 {
            self.further_table("kernel_times", "Kernels", parts);
        }
    }
}
