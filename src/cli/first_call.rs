//! `sublane first-call`: one first call, for `sublane bench start`, which runs it in a process of its own.

use super::options::Options;
use super::output::{self, Outcome};
use clap::Args;
use sublane::suite::bench;
use sublane::{Error, Result};

/// What is called.
#[derive(Debug, Args)]
pub(super) struct Command {
    /// Name of the graph
    subject: String,
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let call = bench::first_call(&command.subject, options.seed, || {
        let device = super::device::open(options)?;
        Ok(super::device::loader(&device, options))
    })?;
    let text = serde_json::to_string(&call).map_err(|e| Error::internal("a first call does not become JSON").with_source(e))?;
    output::write(&format!("{text}\n"))?;
    Ok(Outcome::Passed)
}
