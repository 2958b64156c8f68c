//! `sublane bitset`: convolutional networks by bit-planes, with early termination.

mod args;
mod compare;
mod run;
mod tune;

use super::options::Options;
use super::output::Outcome;
use sublane::Result;

/// What to simulate.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Simulate a network with one rule and code: what is saved, what it costs in accuracy, cycles and energy
    Run(Box<run::Command>),
    /// Search thresholds that save the most within a loss of accuracy, on images of their own
    Tune(Box<tune::Command>),
    /// Simulate a network with all rules, codes and arrays, side by side
    Compare(Box<compare::Command>),
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    match command {
        Command::Run(command) => run::run(command, options),
        Command::Tune(command) => tune::run(command, options),
        Command::Compare(command) => compare::run(command, options),
    }
}
