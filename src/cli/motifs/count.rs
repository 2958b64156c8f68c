//! `sublane motifs count`.

use super::super::options::Options;
use super::super::output::Outcome;
use super::super::progress::Bars;
use super::args::{self, GraphFile};
use super::wanted::{self, Drawing, HowMany, Window};
use clap::Args;
use std::path::PathBuf;
use sublane::motifs::{CountOptions, Method, Shard, count};
use sublane::progress::{Cancel, Work};
use sublane::{Result, files};

/// A graph, a motif, a span of time and how to count.
#[derive(Debug, Args)]
pub(in crate::cli) struct Command {
    #[command(flatten)]
    graph: GraphFile,
    #[command(flatten)]
    window: Window,
    #[command(flatten)]
    drawing: Drawing,
    /// Count by backtracking on the processor: exact, for any motif
    #[arg(long, conflicts_with_all = ["enumerate", "samples", "error", "budget", "anchor", "shard"])]
    exact: bool,
    #[command(flatten)]
    how_many: HowMany,
    /// Do part i of n of the work; `motifs merge` puts the JSON of all parts together
    #[arg(long, value_name = "i/n", allow_hyphen_values = true, conflicts_with = "error")]
    shard: Option<Shard>,
    /// Also write the report as a web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let Command { graph: file, window, drawing, exact, how_many, shard, html } = command;
    html.iter().try_for_each(files::check_writable)?;
    let (graph, found) = file.open(options)?;
    let method = if *exact { Method::Exact } else { how_many.method() };
    let chosen = drawing.engine(options)?;
    let wanted = drawing.options(&chosen, window, &graph, method, options);
    let wanted = CountOptions { budget: how_many.budget(), shard: *shard, ..wanted };
    let bars = Bars::new(options);
    let mut counted = count(&graph, &drawing.motif, &wanted, &Work::new(&bars, Cancel::new())).map_err(args::usage)?;
    if counted.anchor.is_some() {
        counted.notes.extend(chosen.note.clone());
    }
    let mut report = chosen.report("motifs count", options);
    report.counted(&counted);
    report.field("graph", "graph", file.path.display().to_string(), "");
    report.field("read_seconds", "reading", found.read_seconds, "s");
    report.field("build_seconds", "building", found.build_seconds, "s");
    wanted::write(&report, html.as_ref(), options)?;
    Ok(Outcome::Passed)
}
