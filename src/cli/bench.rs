//! `sublane bench`: measures the adapter, kernels and models.

use super::model;
use super::options::Options;
use super::output::{self, Outcome};
use super::progress::Bars;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use sublane::progress::{Cancel, Work};
use sublane::suite::bench::{self, CASES, Case, Choice};
use sublane::{Result, files};

/// What to measure.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// The adapter itself: multiply-adds, bandwidths, cost of a dispatch and of a submission
    Device(Common),
    /// Matrix products, in turns with a hand-written kernel
    Gemm(Common),
    /// Operations bound by memory, against the bandwidth of what they read and write
    Ops(Common),
    /// Whole models, compiled and eager in turns
    Model(Models),
    /// Everything
    All(Models),
}

/// Options of every benchmark.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// Fewer rounds, and none of what takes seconds a run
    #[arg(long)]
    quick: bool,
    /// Also write the report as a web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Models to measure.
#[derive(Debug, Args)]
pub(super) struct Models {
    /// ONNX models [default: generated ones]
    #[arg(value_name = "MODEL.onnx")]
    models: Vec<PathBuf>,
    /// Batch sizes of models that leave it open [default: 1]
    #[arg(long = "batch", value_name = "N", value_delimiter = ',', value_parser = model::batch)]
    batches: Vec<usize>,
    #[command(flatten)]
    common: Common,
}

impl Command {
    /// Name of the case, or `all`; and the options.
    fn parts(&self) -> (&'static str, &Common, Option<&Models>) {
        match self {
            Command::Device(common) => ("device", common, None),
            Command::Gemm(common) => ("gemm", common, None),
            Command::Ops(common) => ("ops", common, None),
            Command::Model(models) => ("model", &models.common, Some(models)),
            Command::All(models) => ("all", &models.common, Some(models)),
        }
    }
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let (name, common, models) = command.parts();
    let cases: Vec<&Case> = CASES.iter().filter(|case| name == "all" || case.name == name).collect();
    let choice = Choice {
        seed: options.seed,
        quick: common.quick,
        models: models.map(|m| m.models.clone()).unwrap_or_default(),
        batches: models.map(|m| m.batches.clone()).unwrap_or_default(),
    };
    let device = super::device::open(options)?;
    let bars = Bars::new(options);
    let findings = bench::run(&device, &cases, &choice, &Work::new(&bars, Cancel::new()))?;
    let mut report = super::device::report(&format!("bench {name}"), &device, options);
    report.findings(&findings);
    if let Some(file) = &common.html {
        files::write_atomic(file, report.to_html().as_bytes())?;
    }
    output::report(&report, options)?;
    Ok(if findings.faults.is_empty() { Outcome::Passed } else { Outcome::Failed })
}
