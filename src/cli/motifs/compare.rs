//! `sublane motifs compare`.

use super::super::options::Options;
use super::super::output::Outcome;
use super::super::progress::Bars;
use super::args::{self, GraphFile};
use super::wanted::{self, Drawing, Window};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use sublane::motifs::{CompareOptions, Compared, CountOptions, DEFAULT_BUDGET, Method, compare};
use sublane::progress::{Cancel, Work};
use sublane::{Result, files};

/// A graph, a motif, a span of time, and the effort of each method.
#[derive(Debug, Args)]
pub(in crate::cli) struct Command {
    #[command(flatten)]
    graph: GraphFile,
    #[command(flatten)]
    window: Window,
    #[command(flatten)]
    drawing: Drawing,
    /// Methods to leave out
    #[arg(long, value_name = "METHOD,...", value_delimiter = ',', value_parser = method())]
    skip: Vec<Compared>,
    /// Draws of sampling
    #[arg(long, value_name = "N", default_value = "1e6", value_parser = args::count, allow_negative_numbers = true)]
    samples: u64,
    /// Most paths that are enumerated [default: 1e8]
    #[arg(long, value_name = "N", value_parser = args::count, allow_negative_numbers = true)]
    budget: Option<u64>,
    /// Windows of PRESTO-A
    #[arg(long, value_name = "N", default_value = "1000", value_parser = args::count, allow_negative_numbers = true)]
    windows: u64,
    /// Share of first edges that edge sampling keeps
    #[arg(long, value_name = "P", default_value_t = 0.01, allow_negative_numbers = true)]
    probability: f64,
    /// Also write the report as a web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn method() -> impl TypedValueParser<Value = Compared> {
    PossibleValuesParser::new(Compared::ALL.map(Compared::name)).try_map(|name| {
        let known = Compared::ALL.into_iter().find(|method| method.name() == name);
        known.ok_or_else(|| format!("`{name}` is no method"))
    })
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let Command { graph: file, window, drawing, skip, samples, budget, windows, probability, html } = command;
    html.iter().try_for_each(files::check_writable)?;
    let (graph, found) = file.open(options)?;
    let chosen = drawing.engine(options)?;
    let count = drawing.options(&chosen, window, &graph, Method::Auto, options);
    let wanted = CompareOptions {
        methods: Compared::ALL.into_iter().filter(|method| !skip.contains(method)).collect(),
        samples: *samples,
        windows: *windows,
        probability: *probability,
        ..CompareOptions::new(CountOptions { budget: budget.unwrap_or(DEFAULT_BUDGET), ..count })
    };
    let bars = Bars::new(options);
    let comparison = compare(&graph, &drawing.motif, &wanted, &Work::new(&bars, Cancel::new())).map_err(args::usage)?;
    let mut report = chosen.report("motifs compare", options);
    report.field("graph", "graph", file.path.display().to_string(), "");
    report.field("edges", "edges", found.graph.edges, "");
    report.field("motif", "motif", drawing.motif.name(), "");
    report.field("motif_edges", "edges of the motif", drawing.motif.to_string(), "");
    report.motif_delta(wanted.count.delta, graph.decimals());
    report.field("delta_ticks", "delta", wanted.count.delta, "ticks");
    report.field("ties", "ties", wanted.count.ties.name(), "");
    report.field("engine", "engine", wanted.count.engine.name(), "");
    if let Some(note) = &chosen.note {
        report.field("engine_note", "engine, why", note.as_str(), "");
    }
    report.motif_comparison(&comparison);
    wanted::write(&report, html.as_ref(), options)?;
    Ok(if comparison.exact_agree { Outcome::Passed } else { Outcome::Failed })
}
