//! `sublane motifs grid`.

use super::super::options::Options;
use super::super::output::Outcome;
use super::super::progress::Bars;
use super::args::GraphFile;
use super::wanted::{self, Window};
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;
use sublane::motifs::exact::grid;
use sublane::progress::{Cancel, Work};
use sublane::report::Report;
use sublane::{Result, files};

/// A graph and a span of time.
#[derive(Debug, Args)]
pub(in crate::cli) struct Command {
    #[command(flatten)]
    graph: GraphFile,
    #[command(flatten)]
    window: Window,
    /// Also write the report as a web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let Command { graph: file, window, html } = command;
    html.iter().try_for_each(files::check_writable)?;
    let (graph, _) = file.open(options)?;
    let delta = window.ticks(&graph);
    let bars = Bars::new(options);
    let start = Instant::now();
    let counts = grid(&graph, delta, window.ties(), &Work::new(&bars, Cancel::new()))?;
    let seconds = start.elapsed().as_secs_f64();
    let mut report = Report::new("motifs grid", options.seed);
    report.field("graph", "graph", file.path.display().to_string(), "");
    report.motif_delta(delta, graph.decimals());
    report.field("delta_ticks", "delta", delta, "ticks");
    report.field("ties", "ties", window.ties().name(), "");
    report.field("method", "method", sublane::motifs::How::Grid.name(), "");
    report.field("seconds", "counting", seconds, "s");
    report.motif_grid(&counts);
    wanted::write(&report, html.as_ref(), options)?;
    Ok(Outcome::Passed)
}
