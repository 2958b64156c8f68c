//! `sublane bitset tune`.

use super::super::options::Options;
use super::super::output::Outcome;
use super::super::progress::Bars;
use super::args::{self, Subject};
use clap::Args;
use std::path::PathBuf;
use sublane::Result;
use sublane::bitset::search::{SearchOptions, search};
use sublane::bitset::study::Wanted;
use sublane::bitset::{Encoding, Rule};
use sublane::progress::{Cancel, Work};

/// A network, images, a code and what may be lost.
#[derive(Debug, Args)]
pub(in crate::cli) struct Command {
    #[command(flatten)]
    subject: Subject,
    /// How digits are written: pm1, twos, sign, inverted or csd
    #[arg(long, value_name = "CODE", default_value = "pm1")]
    encoding: Encoding,
    /// The most accuracy that may be lost on the tuning split, such as 0 or 1%
    #[arg(long, value_name = "LOSS", default_value = "0", value_parser = args::loss, allow_hyphen_values = true)]
    max_loss: f64,
    /// Part of the mass of positive outputs that the search begins with
    #[arg(long, value_name = "BUDGET", default_value_t = 0.004, allow_negative_numbers = true)]
    start: f64,
    /// Simulations of the tuning split at most
    #[arg(long, value_name = "N", default_value_t = 18, allow_negative_numbers = true)]
    trials: usize,
    /// Also write the report as a web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let Command { subject, encoding, max_loss, start, trials, html } = command;
    args::check_html(html.as_ref())?;
    args::usage(args::needs_classes(subject.has_classes()));
    let open = subject.open(options)?;
    let bars = Bars::new(options);
    let work = Work::new(&bars, Cancel::new());
    let study = subject.study(&open, &work)?;
    let samples = study.samples(&[*encoding], &work)?;
    let wanted = SearchOptions { max_loss: *max_loss, start: *start, trials: *trials };
    let found = search(&study, &samples, *encoding, wanted, &work)?;
    let rule = Rule::R2 { budget: found.budgets.iter().copied().fold(0.0, f64::max) };
    let simulate = |rule: Rule, thresholds, audit: bool, what: &str| {
        let wanted = Wanted { encoding: *encoding, rule, thresholds, audit, lanes: Vec::new() };
        study.simulate(wanted, &open.split.test, what, &work)
    };
    let plain = simulate(Rule::None, None, false, "without stops")?;
    let tested = simulate(rule, Some(found.thresholds.clone()), true, "with the thresholds")?;
    let mut report = subject.report("bitset tune", &open, options);
    report.bitset_tune(&study, *max_loss, &found, &plain, &tested);
    args::write(&report, html.as_ref(), options)?;
    Ok(Outcome::Passed)
}
