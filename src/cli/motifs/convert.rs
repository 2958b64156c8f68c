//! `sublane motifs convert`.

use super::super::options::Options;
use super::super::output::{self, Outcome};
use super::args::{self, Form, GraphFile};
use clap::Args;
use std::path::PathBuf;
use sublane::Result;
use sublane::report::Report;

/// A graph and where it goes.
#[derive(Debug, Args)]
pub(in crate::cli) struct Command {
    #[command(flatten)]
    graph: GraphFile,
    /// File to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Form to write it in
    #[arg(long, value_enum, default_value_t = Form::Binary)]
    to: Form,
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    args::check_output(&command.output, Some(&command.graph.path))?;
    let (graph, found) = command.graph.open(options)?;
    let mut report = Report::new("motifs convert", options.seed);
    command.graph.describe(&found, &mut report);
    args::describe(&graph, &found.graph, &mut report);
    report.field("read_seconds", "reading", found.read_seconds, "s");
    report.field("build_seconds", "building", found.build_seconds, "s");
    command.to.write(&graph, &command.output, &mut report)?;
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}
