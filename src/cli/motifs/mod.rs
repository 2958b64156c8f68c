//! `sublane motifs`: temporal motifs and temporal graphs.

mod args;
mod compare;
mod convert;
mod count;
mod generate;
mod grid;
mod list;
mod merge;
mod plan;
mod wanted;

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
    /// Count the matches of a motif, exactly or by sampling paths
    Count(Box<count::Command>),
    /// Show the anchors of a motif, their pilots, and what `count` would do
    Plan(Box<plan::Command>),
    /// Put the shards of a count together
    Merge(merge::Command),
    /// Count all 36 motifs of three edges on two or three vertices, exactly
    Grid(grid::Command),
    /// Run all methods on one graph and motif, and compare what they find and how long they take
    Compare(Box<compare::Command>),
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let without_adapter = match command {
        Command::List => Some("motifs list"),
        Command::Convert(_) => Some("motifs convert"),
        Command::Generate(_) => Some("motifs generate"),
        Command::Merge(_) => Some("motifs merge"),
        Command::Grid(_) => Some("motifs grid"),
        // Their engine decides.
        Command::Count(_) | Command::Plan(_) | Command::Compare(_) => None,
    };
    without_adapter.iter().for_each(|name| options.without_adapter(name));
    match command {
        Command::List => list::run(options),
        Command::Convert(command) => convert::run(command, options),
        Command::Generate(command) => generate::run(command, options),
        Command::Count(command) => count::run(command, options),
        Command::Plan(command) => plan::run(command, options),
        Command::Merge(command) => merge::run(command, options),
        Command::Grid(command) => grid::run(command, options),
        Command::Compare(command) => compare::run(command, options),
    }
}
