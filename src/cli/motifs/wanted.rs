//! Arguments of the commands that count.

use super::super::options::Options;
use super::super::{device, output};
use super::args;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, ValueEnum};
use std::path::{Path, PathBuf};
use sublane::device::adapters;
use sublane::motifs::{Anchor, CountOptions, DEFAULT_MEMORY_BYTES, Delta, Engine, Method, Motif, Prune, TemporalGraph, Ties, TimeUnit};
use sublane::report::Report;
use sublane::{Result, files};

/// Delta and how times are compared.
#[derive(Debug, Args)]
pub(super) struct Window {
    /// Longest time from the first to the last edge of a match: a number in the file's unit, or with a suffix, such as 60s, 5m, 1h, 1d, 1w
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub delta: Delta,
    /// What a unit of the file's times is, for suffixes of delta: s, ms, us or ns
    #[arg(long, value_name = "UNIT", default_value = "s")]
    pub time_unit: TimeUnit,
    /// Edges of equal time: in the order of the file, or never one after the other
    #[arg(long, value_enum, default_value_t = TiesName::Order)]
    ties: TiesName,
}

impl Window {
    /// Delta in ticks of a graph.
    pub fn ticks(&self, graph: &TemporalGraph) -> i64 {
        let ticks = self.delta.ticks(self.time_unit, graph.decimals());
        // A span that is cut off there holds all edges of a graph but of one that is longer.
        let times = graph.times();
        let span = times.last().zip(times.first()).map_or(0, |(last, first)| i128::from(*last) - i128::from(*first));
        if ticks == i64::MAX && span > i128::from(i64::MAX) {
            let message = format!(
                "--delta {} is past the most, 2^63 - 1 ticks of {} decimals, and the times of the graph span more; cut the graph by time",
                self.delta,
                graph.decimals()
            );
            super::super::Cli::command().error(ErrorKind::ValueValidation, message).exit();
        }
        ticks
    }

    /// The policy of ties.
    pub fn ties(&self) -> Ties {
        match self.ties {
            TiesName::Order => Ties::Order,
            TiesName::Strict => Ties::Strict,
        }
    }
}

/// Values of `--ties`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TiesName {
    /// In the order of the file
    Order,
    /// Times of a match must increase
    Strict,
}

/// Which paths are drawn or counted, and by what.
#[derive(Debug, Args)]
pub(super) struct Drawing {
    /// Motif: a name of `sublane motifs list`, edges such as "0>1 1>2 2>0", or a file with `src dst` a line
    #[arg(long, value_name = "M", value_parser = motif, allow_hyphen_values = true)]
    pub motif: Motif,
    /// Motif edges whose images are drawn: C, C:S, C:S,S or tree:E,E,..., centre first [default: the planner's]
    #[arg(long, value_name = "C:S,S", allow_hyphen_values = true)]
    anchor: Option<String>,
    /// Paths left out before they are numbered, of those that no match holds
    #[arg(long, value_enum, default_value_t = PruneName::Auto)]
    prune: PruneName,
    /// What draws and counts
    #[arg(long, value_enum, default_value_t = EngineName::Auto)]
    engine: EngineName,
}

/// Values of `--prune`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PruneName {
    /// As far as the memory limit allows
    Auto,
    /// None
    Off,
    /// By what the motif has on the vertices of one edge
    Pairs,
    /// By what it has on the vertices of two edges
    Rows,
}

/// Values of `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    /// The GPU, or the processor where there is only a software adapter, which it is faster than
    Auto,
    /// The adapter, whatever it is
    Gpu,
    /// All cores of the processor
    Cpu,
}

/// An engine, and why it was taken where that was left open.
pub(super) struct Chosen {
    pub engine: Engine,
    pub note: Option<String>,
}

impl Chosen {
    /// An empty report of `command` by this engine.
    pub fn report(&self, command: &str, options: &Options) -> Report {
        match &self.engine {
            Engine::Gpu(device) => device::report(command, device, options),
            _ => Report::new(command, options.seed),
        }
    }
}

impl Drawing {
    /// The engine that was asked for.
    pub fn engine(&self, options: &Options) -> Result<Chosen> {
        let cpu = |note: String| Ok(Chosen { engine: Engine::Cpu, note: Some(note) });
        let gpu = || Ok(Chosen { engine: Engine::Gpu(device::open(options)?), note: None });
        match self.engine {
            EngineName::Cpu => {
                options.without_adapter("--engine cpu");
                Ok(Chosen { engine: Engine::Cpu, note: None })
            }
            EngineName::Gpu => gpu(),
            // An adapter that was named is wanted.
            EngineName::Auto if device::is_named(options) => gpu(),
            EngineName::Auto => match adapters().first() {
                None => cpu("no adapter was found, so the processor draws and counts".into()),
                Some(best) if best.class == "software" => {
                    cpu(format!("{} is a software adapter, which the processor is faster than; --engine gpu uses it", best.name))
                }
                Some(_) => gpu(),
            },
        }
    }

    /// Options of a count; an anchor that the motif does not have is a wrong command line.
    pub fn options(&self, chosen: &Chosen, window: &Window, graph: &TemporalGraph, method: Method, options: &Options) -> CountOptions {
        let anchor = self.anchor.as_ref().map(|text| match Anchor::parse(text, &self.motif) {
            Ok(anchor) => anchor,
            Err(error) => super::super::Cli::command().error(ErrorKind::ValueValidation, error).exit(),
        });
        CountOptions {
            ties: window.ties(),
            method,
            anchor,
            prune: match self.prune {
                PruneName::Auto => None,
                PruneName::Off => Some(Prune::Off),
                PruneName::Pairs => Some(Prune::Pairs),
                PruneName::Rows => Some(Prune::Rows),
            },
            engine: chosen.engine.clone(),
            seed: options.seed,
            memory_limit_bytes: options.memory_limit.unwrap_or(DEFAULT_MEMORY_BYTES),
            ..CountOptions::new(window.ticks(graph))
        }
    }
}

/// How many paths are drawn or counted.
#[derive(Debug, Args)]
pub(super) struct HowMany {
    /// Count every path of the anchor: exact
    #[arg(long, conflicts_with_all = ["samples", "error", "budget"])]
    enumerate: bool,
    /// Draw N paths
    #[arg(long, value_name = "N", value_parser = args::positive, allow_negative_numbers = true, conflicts_with_all = ["error", "budget"])]
    samples: Option<u64>,
    /// Draw until one standard error is this part of the estimate, such as 1% or 0.01, or the budget is used
    #[arg(long, value_name = "E", value_parser = error, allow_hyphen_values = true)]
    error: Option<f64>,
    /// Count every path if there are at most N, else draw N [default: 1e8]
    #[arg(long, value_name = "N", value_parser = args::positive, allow_negative_numbers = true)]
    budget: Option<u64>,
}

impl HowMany {
    /// The method, exactness by backtracking aside.
    pub fn method(&self) -> Method {
        match (self.enumerate, self.samples, self.error) {
            (true, ..) => Method::Enumerate,
            (_, Some(samples), _) => Method::Samples(samples),
            (_, _, Some(error)) => Method::Error(error),
            _ => Method::Auto,
        }
    }

    /// The path budget.
    pub fn budget(&self) -> u64 {
        self.budget.unwrap_or(sublane::motifs::DEFAULT_BUDGET)
    }
}

/// A motif by name, as text, or from a file.
fn motif(text: &str) -> Result<Motif, String> {
    match Motif::parse(text) {
        Ok(motif) => Ok(motif),
        Err(error) if !Path::new(text).is_file() => Err(format!("{error}; nor is there a file of that name")),
        Err(_) => {
            let lines = std::fs::read_to_string(text).map_err(|error| format!("cannot read `{text}`: {error}"))?;
            Motif::from_lines(text, &lines).map_err(|error| error.to_string())
        }
    }
}

/// A relative error, such as 1% or 0.01.
fn error(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let error = number.trim().parse::<f64>().map(|error| error / scale);
    error.ok().filter(|error| *error > 0.0 && *error <= 1.0).ok_or_else(|| "give a part above 0 and at most 1, such as 1% or 0.01".into())
}

/// Writes a report, and its web page if one is asked for.
pub(super) fn write(report: &Report, html: Option<&PathBuf>, options: &Options) -> Result<()> {
    if let Some(file) = html {
        files::write_atomic(file, report.to_html().as_bytes())?;
    }
    output::report(report, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_parts_or_percent() {
        assert_eq!([error("1%"), error("0.01"), error("100%")], [Ok(0.01), Ok(0.01), Ok(1.0)]);
        for wrong in ["", "%", "0", "-1%", "101%", "nan", "x"] {
            assert!(error(wrong).is_err(), "{wrong}");
        }
    }
}
