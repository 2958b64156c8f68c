//! Arguments that the commands on graphs share, and what is said of a graph.

use super::super::options::Options;
use super::super::progress::Bars;
use clap::{Args, CommandFactory, ValueEnum};
use std::path::{Path, PathBuf};
use sublane::motifs::TemporalGraph;
use sublane::motifs::graph::{Columns, GraphSummary, ReadOptions, ReadSummary};
use sublane::progress::{Cancel, Work};
use sublane::report::Report;
use sublane::{Error, Result, files};

/// A graph and how it is read.
#[derive(Debug, Args)]
pub(super) struct GraphFile {
    /// Temporal graph: text with `src dst t` a line, parted by blanks or commas, or the form `motifs convert` writes; gzip or not
    #[arg(value_name = "GRAPH")]
    pub path: PathBuf,
    /// Columns of a text that are others than src,dst,t; `_` is not used, `...` at the end stands for any more
    #[arg(long, value_name = "src,dst,_,t", allow_hyphen_values = true)]
    pub columns: Option<Columns>,
}

impl GraphFile {
    /// Reads the graph.
    pub fn open(&self, options: &Options) -> Result<(TemporalGraph, ReadSummary)> {
        let bars = Bars::new(options);
        let columns = self.columns.clone();
        TemporalGraph::open(&self.path, &ReadOptions { columns }, &Work::new(&bars, Cancel::new()))
    }

    /// Says what was read.
    pub fn describe(&self, found: &ReadSummary, report: &mut Report) {
        let of_text = |count: u64| (!found.binary).then_some(count);
        report.field("graph", "graph", self.path.display().to_string(), "");
        report.field("form", "form", if found.binary { Form::Binary } else { Form::Text }.name(), "");
        report.field("columns", "columns", self.columns.as_ref().map(ToString::to_string), "");
        report.field("lines", "lines", of_text(found.lines), "");
        report.field("comments", "comments", of_text(found.comments), "");
        report.field("blank", "blank lines", of_text(found.blank), "");
        report.field("header", "header", (!found.binary).then_some(found.header), "");
    }
}

/// Says what a graph holds.
pub(super) fn describe(graph: &TemporalGraph, found: &GraphSummary, report: &mut Report) {
    report.field("edges", "edges", found.edges, "");
    report.field("vertices", "vertices", found.vertices, "");
    report.field("pairs", "ordered pairs with edges", found.pairs, "");
    report.field("loops", "loops", found.loops, "");
    report.field("duplicates", "copies of an earlier edge", found.duplicates, "");
    report.field("ties", "edges that share their time", found.ties, "");
    report.field("distinct_times", "different times", found.distinct_times, "");
    report.field("decimals", "decimals of times", graph.decimals(), "");
    report.field("first_ticks", "first time", found.times.map(|(first, _)| first), "ticks");
    report.field("last_ticks", "last time", found.times.map(|(_, last)| last), "ticks");
    report.field("span_ticks", "span", found.span(), "ticks");
}

/// Forms in which graphs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// All that is made of a graph, to be read fast
    Binary,
    /// `src dst t` a line in order of time, vertices numbered anew; gzip if the name ends with .gz
    Text,
}

impl Form {
    /// Name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Binary => "binary",
            Form::Text => "text",
        }
    }

    /// Writes `graph` to `path` in this form and says so.
    pub fn write(self, graph: &TemporalGraph, path: &Path, report: &mut Report) -> Result<()> {
        let start = std::time::Instant::now();
        match self {
            Form::Binary => graph.save(path)?,
            Form::Text => graph.save_text(path)?,
        }
        let seconds = start.elapsed().as_secs_f64();
        let bytes = std::fs::metadata(path).map_err(|e| Error::io(path, "read", e))?.len();
        report.field("output", "written to", path.display().to_string(), "");
        report.field("output_form", "written as", self.name(), "");
        report.field("output_bytes", "size", bytes, "bytes");
        report.field("write_seconds", "writing", seconds, "s");
        Ok(())
    }
}

/// Fails if `output` cannot be written or is `input`, before the work.
pub(super) fn check_output(output: &Path, input: Option<&Path>) -> Result<()> {
    let same = |a: &Path, b: &Path| a.canonicalize().ok().zip(b.canonicalize().ok()).is_some_and(|(a, b)| a == b);
    if input.is_some_and(|input| same(input, output)) {
        return Err(Error::invalid(format!("`{}` is the graph that is read; write to another file", output.display())));
    }
    files::check_writable(output)
}

/// A count, such as 100000 or 1e5.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let whole = || text.parse::<f64>().ok().filter(|x| (0.0..=1e15).contains(x) && x.fract() == 0.0).map(|x| x as u64);
    text.parse()
        .ok()
        .or_else(whole)
        .ok_or_else(|| "give a whole number from 0 to 2^64 - 1, written out, or up to 1e15 with an exponent, such as 1e5".into())
}

/// A whole number of at least 1.
pub(super) fn positive(text: &str) -> Result<u64, String> {
    count(text)
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| "give a whole number of at least 1, up to 2^64 - 1 written out, or up to 1e15 with an exponent, such as 1e5".into())
}

/// What a value that is not allowed ends: a wrong command line. Other errors pass.
pub(super) fn usage(error: sublane::Error) -> sublane::Error {
    match error.kind() {
        sublane::ErrorKind::InvalidArgument => super::super::Cli::command().error(clap::error::ErrorKind::ValueValidation, error).exit(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_numbers() {
        for (text, value) in [("0", 0), ("100000", 100_000), ("1e5", 100_000), ("2.5e3", 2500), ("18446744073709551615", u64::MAX)] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        for wrong in ["", "-1", "1.5", "1e-3", "1e30", "nan", "inf", "many"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }
}
