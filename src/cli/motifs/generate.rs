//! `sublane motifs generate`.

use super::super::options::Options;
use super::super::output::{self, Outcome};
use super::super::progress::Bars;
use super::args::{self, Form};
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;
use sublane::motifs::graph::GenerateOptions;
use sublane::motifs::{Delta, TemporalGraph, TimeUnit};
use sublane::progress::{Cancel, Work};
use sublane::report::Report;
use sublane::{Error, Result};

/// What the graph is like and where it goes. Times are seconds.
#[derive(Debug, Args)]
pub(in crate::cli) struct Command {
    /// File to write
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Form to write it in
    #[arg(long, value_enum, default_value_t = Form::Text)]
    to: Form,
    /// Edges
    #[arg(long, value_name = "N", default_value = "1e5", value_parser = args::count, allow_negative_numbers = true)]
    edges: u64,
    /// Vertices, some of which may have no edge [default: a vertex each 32 edges, at least 16]
    #[arg(long, value_name = "N", value_parser = args::count, allow_negative_numbers = true)]
    vertices: Option<u64>,
    /// Time from 0 to the last that may occur
    #[arg(long, value_name = "TIME", default_value = "200d", allow_hyphen_values = true)]
    span: Delta,
    /// Times are multiples of this
    #[arg(long, value_name = "TIME", default_value = "1s", allow_hyphen_values = true)]
    resolution: Delta,
    /// Power law of the activity of vertices: 0 for all alike, up to 4
    #[arg(long, value_name = "X", default_value_t = 0.7, allow_negative_numbers = true)]
    exponent: f64,
    /// Edges of a conversation, in the mean
    #[arg(long, value_name = "X", default_value_t = 8.0, allow_negative_numbers = true)]
    burst: f64,
    /// Longest gap between edges of a conversation
    #[arg(long, value_name = "TIME", default_value = "1d", allow_hyphen_values = true)]
    gap: Delta,
    /// Probability that an edge answers the one before
    #[arg(long, value_name = "P", default_value_t = 0.4, allow_negative_numbers = true)]
    replies: f64,
    /// Probability that an edge goes where the one before went
    #[arg(long, value_name = "P", default_value_t = 0.1, allow_negative_numbers = true)]
    repeats: f64,
    /// Probability that a vertex speaks to one of its eight friends
    #[arg(long, value_name = "P", default_value_t = 0.8, allow_negative_numbers = true)]
    friends: f64,
    /// Share of edges from a vertex to itself
    #[arg(long, value_name = "P", default_value_t = 0.01, allow_negative_numbers = true)]
    loops: f64,
    /// Share of edges within conversations that have the time of the one before
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true)]
    ties: f64,
    /// Share of edges within conversations that copy the one before, time included
    #[arg(long, value_name = "P", default_value_t = 0.01, allow_negative_numbers = true)]
    duplicates: f64,
}

impl Command {
    fn options(&self, seed: u64) -> Result<GenerateOptions> {
        let ticks = |span: &Delta| span.ticks(TimeUnit::S, 0) as u64;
        let usual = GenerateOptions::new(self.edges);
        let vertices = match self.vertices {
            Some(n) => u32::try_from(n).map_err(|_| Error::invalid(format!("{n} vertices are asked for, 2^32 - 2 are the most")))?,
            None => usual.vertices,
        };
        Ok(GenerateOptions {
            vertices,
            span: ticks(&self.span),
            seed,
            exponent: self.exponent,
            burst: self.burst,
            gap: ticks(&self.gap),
            replies: self.replies,
            repeats: self.repeats,
            friends: self.friends,
            loops: self.loops,
            ties: self.ties,
            duplicates: self.duplicates,
            resolution: ticks(&self.resolution),
            ..usual
        })
    }
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    args::check_output(&command.output, None)?;
    let wanted = command.options(options.seed).map_err(args::usage)?;
    let start = Instant::now();
    let bars = Bars::new(options);
    let graph = TemporalGraph::generate(&wanted, &Work::new(&bars, Cancel::new())).map_err(args::usage)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut report = Report::new("motifs generate", options.seed);
    args::describe(&graph, &graph.summary(), &mut report);
    report.field("seconds", "making", seconds, "s");
    command.to.write(&graph, &command.output, &mut report)?;
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}
