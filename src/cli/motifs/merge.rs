//! `sublane motifs merge`.

use super::super::options::Options;
use super::super::output::Outcome;
use super::wanted;
use clap::Args;
use std::path::PathBuf;
use sublane::motifs::merge;
use sublane::report::{Report, counted_from_json};
use sublane::{Error, Result, files};

/// Reports of shards.
#[derive(Debug, Args)]
pub(in crate::cli) struct Command {
    /// What `motifs count --shard i/n --json` printed, one file a shard
    #[arg(value_name = "FILE", required = true)]
    shards: Vec<PathBuf>,
    /// Also write the report as a web page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    command.html.iter().try_for_each(files::check_writable)?;
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, "read", error))?;
        counted_from_json(&name, &text).map(|counted| (name, counted))
    };
    let shards = command.shards.iter().map(read).collect::<Result<Vec<_>>>()?;
    let merged = merge(&shards)?;
    // The seed is that of the shards.
    let mut report = Report::new("motifs merge", merged.seed);
    report.counted(&merged);
    wanted::write(&report, command.html.as_ref(), options)?;
    Ok(Outcome::Passed)
}
