//! `sublane bench`: measures the adapter, kernels and models.

use super::model;
use super::options::Options;
use super::output::{self, Outcome};
use super::progress::Bars;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory};
use std::ffi::OsString;
use std::path::PathBuf;
use sublane::progress::{Cancel, Work};
use sublane::suite::bench::{self, Again, CASES, Case, Choice};
use sublane::{Result, files};

/// Every benchmark at once.
const ALL: &str = "all";

/// What to measure, and how.
#[derive(Debug, Args)]
pub(super) struct Command {
    /// What to measure
    #[arg(value_name = "WHAT", default_value = ALL, value_parser = whats())]
    what: String,
    /// ONNX models to measure [default: generated ones]
    #[arg(value_name = "MODEL.onnx")]
    models: Vec<PathBuf>,
    /// Batch sizes of models that leave it open [default: 1]
    #[arg(long = "batch", value_name = "N", value_delimiter = ',', value_parser = model::batch, allow_negative_numbers = true)]
    batches: Vec<usize>,
    /// Temporal graph to count motifs in [default: a generated one]
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// Fewer rounds, and none of what takes seconds a run
    #[arg(long)]
    quick: bool,
    /// Also write the report as a web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn whats() -> PossibleValuesParser {
    let cases = CASES.iter().map(|case| PossibleValue::new(case.name).help(case.about));
    PossibleValuesParser::new(cases.chain([PossibleValue::new(ALL).help("everything")]))
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let Command { what, models, batches, graph, quick, html } = command;
    let cases: Vec<&Case> = CASES.iter().filter(|case| what == ALL || case.name == what).collect();
    let asks_for_models = !models.is_empty() || !batches.is_empty();
    if asks_for_models && cases.iter().all(|case| !case.takes_models) {
        let message = format!("`bench {what}` takes no models and no batch sizes; `bench model` and `bench {ALL}` do");
        super::Cli::command().error(ErrorKind::ArgumentConflict, message).exit();
    }
    if graph.is_some() && cases.iter().all(|case| !case.takes_graph) {
        let message = format!("`bench {what}` takes no graph; `bench motifs` and `bench {ALL}` do");
        super::Cli::command().error(ErrorKind::ArgumentConflict, message).exit();
    }
    html.iter().try_for_each(files::check_writable)?;
    models.iter().chain(graph).try_for_each(files::check_readable)?;
    let again = again(options);
    let choice =
        Choice { seed: options.seed, quick: *quick, models: models.clone(), batches: batches.clone(), graph: graph.clone(), again };
    let device = super::device::open(options)?;
    let bars = Bars::new(options);
    let findings = bench::run(&super::device::loader(&device, options), &cases, &choice, &Work::new(&bars, Cancel::new()))?;
    let mut report = super::device::report(&format!("bench {what}"), &device, options);
    report.field("autotune", "autotune", options.autotune.mode().name(), "");
    report.findings(&findings);
    if let Some(file) = html {
        files::write_atomic(file, report.to_html().as_bytes())?;
    }
    output::report(&report, options)?;
    Ok(if findings.faults.is_empty() { Outcome::Passed } else { Outcome::Failed })
}

/// This program again, on the same adapter, for one first call. `None` where the system does not say where the program lies.
fn again(options: &Options) -> Option<Again> {
    let program = std::env::current_exe().ok()?;
    let mut command: Vec<OsString> = vec![program.into(), "first-call".into(), "--seed".into(), options.seed.to_string().into()];
    command.extend(["--limits".into(), options.limits().name().into()]);
    options.adapter.iter().for_each(|adapter| command.extend(["--adapter".into(), adapter.into()]));
    options.memory_limit.iter().for_each(|bytes| command.extend(["--memory-limit".into(), bytes.to_string().into()]));
    let scratch = std::env::temp_dir().join(format!("sublane-first-calls-{}", std::process::id()));
    Some(Again { command, scratch })
}
