//! `sublane bitset compare`.

use super::super::options::Options;
use super::super::output::Outcome;
use super::super::progress::Bars;
use super::args::{self, Subject};
use clap::Args;
use std::path::PathBuf;
use sublane::Result;
use sublane::bitset::compare::{CompareOptions, compare};
use sublane::bitset::{Encoding, Rule};
use sublane::progress::{Cancel, Work};

/// A network, images, rules, codes and arrays.
#[derive(Debug, Args)]
pub(in crate::cli) struct Command {
    #[command(flatten)]
    subject: Subject,
    /// Rules; those that do not go with a code are left out there
    #[arg(long, value_name = "RULE,...", value_delimiter = ',', default_value = "none,r0,posfirst,r1:1.5,r2:0.002,r3:1.5")]
    rules: Vec<Rule>,
    /// Codes
    #[arg(long, value_name = "CODE,...", value_delimiter = ',', default_value = "pm1,twos,sign,inverted,csd")]
    encodings: Vec<Encoding>,
    /// Choose the number of each predictive rule so that it kills this part of the mass of positive outputs on the tuning split
    #[arg(long, value_name = "PART", value_parser = args::loss, allow_hyphen_values = true)]
    killed_mass: Option<f64>,
    /// Array: group=N,engines=N,lanes=N,refill=CYCLES,decision=CYCLES; repeat for several
    #[arg(long, value_name = "GEOMETRY")]
    geometry: Vec<String>,
    /// Also write the report as a web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let Command { subject, rules, encodings, killed_mass, geometry, html } = command;
    args::check_html(html.as_ref())?;
    let open = subject.open(options)?;
    let geometries = args::geometries(geometry, &open.constants);
    let bars = Bars::new(options);
    let work = Work::new(&bars, Cancel::new());
    let study = subject.study(&open, &work)?;
    let wanted = CompareOptions {
        rules: rules.clone(),
        encodings: encodings.clone(),
        killed_mass: *killed_mass,
        geometries,
        constants: open.constants.clone(),
        lanes: Vec::new(),
    };
    let wanted = CompareOptions { lanes: args::lanes(&wanted.geometries), ..wanted };
    let found = args::usage_of(compare(&study, &wanted, &work))?;
    let mut report = subject.report("bitset compare", &open, options);
    report.bitset_compare(&found, *killed_mass);
    args::write(&report, html.as_ref(), options)?;
    Ok(if found.exact_agree { Outcome::Passed } else { Outcome::Failed })
}
