//! `sublane bitset run`.

use super::super::options::Options;
use super::super::output::Outcome;
use super::super::progress::Bars;
use super::args::{self, Subject};
use clap::Args;
use std::path::PathBuf;
use sublane::Result;
use sublane::bitset::figures::figures;
use sublane::bitset::search::{SearchOptions, search};
use sublane::bitset::study::Wanted;
use sublane::bitset::{Encoding, Rule};
use sublane::progress::{Cancel, Work};
use sublane::report::BitsetRun;
use sublane::suite::bench::layers::packed;

/// A network, images, a rule and a code.
#[derive(Debug, Args)]
pub(in crate::cli) struct Command {
    #[command(flatten)]
    subject: Subject,
    /// How digits are written: pm1, twos, sign, inverted or csd
    #[arg(long, value_name = "CODE", default_value = "pm1")]
    encoding: Encoding,
    /// When outputs are stopped: none, r0, posfirst, r1:Z, r2:BUDGET or r3:Z
    #[arg(long, value_name = "RULE", default_value = "none")]
    rule: Rule,
    /// Search the budgets of r2 that lose at most this on the tuning split, such as 0 or 1%; the search begins with BUDGET
    #[arg(long, value_name = "LOSS", value_parser = args::loss, allow_hyphen_values = true)]
    max_loss: Option<f64>,
    /// Simulations of the tuning split at most, with --max-loss
    #[arg(long, value_name = "N", default_value_t = 18, allow_negative_numbers = true)]
    trials: usize,
    /// Array: group=N,engines=N,lanes=N,refill=CYCLES,decision=CYCLES; repeat for several, the first is that of the figures
    #[arg(long, value_name = "GEOMETRY")]
    geometry: Vec<String>,
    /// Also write the report as a web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let Command { subject, encoding, rule, max_loss, trials, geometry, html } = command;
    let (encoding, mut rule) = (*encoding, *rule);
    args::check_html(html.as_ref())?;
    args::pair(rule, encoding, subject.bits());
    if max_loss.is_some() {
        args::usage(args::needs_classes(subject.has_classes()));
        args::usage(args::searchable(rule));
    }
    let open = subject.open(options)?;
    let geometries = args::geometries(geometry, &open.constants);
    let bars = Bars::new(options);
    let work = Work::new(&bars, Cancel::new());
    let study = subject.study(&open, &work)?;
    let test = open.split.test.clone();
    let samples = if rule.is_calibrated() { Some(study.samples(&[encoding], &work)?) } else { None };
    let mut tuned = None;
    let thresholds = match (&samples, rule, max_loss) {
        (Some(samples), Rule::R2 { budget }, Some(max_loss)) => {
            let wanted = SearchOptions { max_loss: *max_loss, start: budget, trials: *trials };
            let found = search(&study, samples, encoding, wanted, &work)?;
            rule = Rule::R2 { budget: found.budgets.iter().copied().fold(0.0, f64::max) };
            let thresholds = found.thresholds.clone();
            tuned = Some((*max_loss, found));
            Some(thresholds)
        }
        (Some(samples), ..) => study.thresholds(samples, encoding, rule)?,
        (None, ..) => None,
    };
    let (float, float_seconds) = study.float_predictions(&test, &work)?;
    let lanes = args::lanes(&geometries);
    let plain = match rule {
        Rule::None => None,
        _ => {
            let wanted = Wanted { encoding, rule: Rule::None, thresholds: None, audit: false, lanes: Vec::new() };
            Some(study.simulate(wanted, &test, "without stops", &work)?)
        }
    };
    let wanted = Wanted { encoding, rule, thresholds, audit: true, lanes };
    let found = study.simulate(wanted, &test, "simulation", &work)?;
    let arrays =
        geometries.iter().map(|geometry| Ok((*geometry, figures(&study, &found, geometry, &open.constants)?))).collect::<Result<_>>()?;
    let layers: Vec<_> = study.layers().iter().map(|layer| &layer.layer).collect();
    let packed = packed(&open.loader, &layers, study.network().batch, options.seed, &work)?;
    let mut report = subject.report("bitset run", &open, options);
    report.bitset_run(&BitsetRun {
        correct_float: study.correct(test.start, &float),
        float_seconds,
        plain: plain.as_ref(),
        found: &found,
        arrays,
        fixed_point_errors: study.layers().iter().map(|layer| layer.fixed_point_error).collect(),
        packed,
        tuned: tuned.as_ref().map(|(max_loss, found)| (*max_loss, found)),
    });
    args::write(&report, html.as_ref(), options)?;
    Ok(Outcome::Passed)
}
