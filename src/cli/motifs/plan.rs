//! `sublane motifs plan`.

use super::super::options::Options;
use super::super::output::Outcome;
use super::super::progress::Bars;
use super::args::GraphFile;
use super::wanted::{self, Drawing, HowMany, Window};
use clap::Args;
use std::path::PathBuf;
use sublane::motifs::{CountOptions, plan};
use sublane::progress::{Cancel, Work};
use sublane::{Result, files};

/// What `motifs count` would be given.
#[derive(Debug, Args)]
pub(in crate::cli) struct Command {
    #[command(flatten)]
    graph: GraphFile,
    #[command(flatten)]
    window: Window,
    #[command(flatten)]
    drawing: Drawing,
    #[command(flatten)]
    how_many: HowMany,
    /// Also write the report as a web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let Command { graph: file, window, drawing, how_many, html } = command;
    html.iter().try_for_each(files::check_writable)?;
    let (graph, _) = file.open(options)?;
    let chosen = drawing.engine(options)?;
    let wanted = drawing.options(&chosen, window, &graph, how_many.method(), options);
    let wanted = CountOptions { budget: how_many.budget(), ..wanted };
    let bars = Bars::new(options);
    let mut table = plan(&graph, &drawing.motif, &wanted, &Work::new(&bars, Cancel::new()))?;
    table.notes.extend(chosen.note.clone());
    let mut report = chosen.report("motifs plan", options);
    report.field("motif", "motif", drawing.motif.name(), "");
    report.field("motif_edges", "edges of the motif", drawing.motif.to_string(), "");
    report.motif_delta(wanted.delta, graph.decimals());
    report.field("delta_ticks", "delta", wanted.delta, "ticks");
    report.field("ties", "ties", wanted.ties.name(), "");
    report.field("engine", "engine", wanted.engine.name(), "");
    report.motif_plan(&table);
    wanted::write(&report, html.as_ref(), options)?;
    Ok(Outcome::Passed)
}
