//! `sublane motifs`: temporal motifs and temporal graphs.

mod args;
mod convert;
mod generate;
mod list;

use super::options::Options;
use super::output::Outcome;
use sublane::Result;

/// What to do with motifs and graphs.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the motifs that have names
    List,
    /// Check a graph, say what it holds, and write it in a form that is read fast
    Convert(convert::Command),
    /// Make a graph of bursty conversations from the seed
    Generate(Box<generate::Command>),
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    match command {
        Command::List => list::run(options),
        Command::Convert(command) => convert::run(command, options),
        Command::Generate(command) => generate::run(command, options),
    }
}
