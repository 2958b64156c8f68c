//! `sublane bench`: measures the adapter.

use super::options::Options;
use super::output::{self, Outcome};
use super::progress::Bars;
use clap::{Args, Subcommand};
use serde_json::Value;
use std::path::PathBuf;
use sublane::device::{BANDWIDTH_BYTES, Probes};
use sublane::progress::{Cancel, Work};
use sublane::report::{Column, Report, Table};
use sublane::{Result, files};

/// What to measure.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// The adapter itself: multiply-adds, bandwidths, cost of a dispatch and of a submission
    Device(Html),
}

/// Where a report is also written as a page.
#[derive(Debug, Args)]
pub(super) struct Html {
    /// Also write the report as one self-contained HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Html {
    /// Writes the page, if one is asked for.
    fn write(&self, report: &Report) -> Result<()> {
        self.html.as_ref().map_or(Ok(()), |path| files::write_atomic(path, report.to_html().as_bytes()))
    }
}

/// Columns of every benchmark. `share` is the part of what `probe` reached in the same run.
pub(super) const COLUMNS: [Column; 8] = [
    Column::new("name", "name"),
    Column::new("median_ms", "ms"),
    Column::new("gflops", "GFLOP/s"),
    Column::new("gbps", "GB/s"),
    Column::new("share", "share"),
    Column::new("probe", "of probe"),
    Column::new("kernels", "kernels"),
    Column::new("submissions", "submissions"),
];

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    match command {
        Command::Device(html) => device(html, options),
    }
}

fn device(html: &Html, options: &Options) -> Result<Outcome> {
    let device = super::device::open(options)?;
    let bars = Bars::new(options);
    let probes = Probes::run(&device, &Work::new(&bars, Cancel::new()))?;
    let mut report = super::device::report("bench device", &device, options);
    probed(&mut report, &probes);
    report.field("dispatch_us", "one more dispatch", probes.dispatch_us, "us");
    report.field("submission_us", "a submission", probes.submission_us, "us");
    let mut table = Table::new(&COLUMNS);
    for probe in &probes.fma {
        let share = probe.gflops / probes.fma_gflops;
        table.row([
            probe.name.as_str().into(),
            Value::Null,
            probe.gflops.into(),
            Value::Null,
            share.into(),
            "fma".into(),
            1.into(),
            1.into(),
        ]);
    }
    let traffic =
        [("read", probes.read_gbps, 1), ("write", probes.write_gbps, 1), ("copy", probes.copy_gbps, 2), ("2r1w", probes.r2w1_gbps, 3)];
    for (name, rates, buffers) in traffic {
        for (bytes, gbps) in BANDWIDTH_BYTES.into_iter().zip(rates) {
            let ms = (buffers * bytes) as f64 / gbps / 1e6;
            let name = format!("{name} {} MiB", bytes >> 20);
            table.row([name.into(), ms.into(), Value::Null, gbps.into(), Value::Null, Value::Null, 1.into(), 1.into()]);
        }
    }
    report.table(table);
    html.write(&report)?;
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}

/// What shares are taken of, the same in every benchmark: the best rate of multiply-adds, and bandwidths of buffers of 16 MiB.
fn probed(report: &mut Report, probes: &Probes) {
    report.field("clock", "clock", probes.clock.name(), "");
    report.field("probed_fma_gflops", "multiply-adds", probes.fma_gflops, "GFLOP/s");
    report.field("probed_read_gbps", "read", probes.read_gbps[0], "GB/s");
    report.field("probed_write_gbps", "write", probes.write_gbps[0], "GB/s");
    report.field("probed_copy_gbps", "copy", probes.copy_gbps[0], "GB/s");
    report.field("probed_2r1w_gbps", "two read, one written", probes.r2w1_gbps[0], "GB/s");
}
