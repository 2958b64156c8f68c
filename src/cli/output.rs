//! What commands write to standard output.

use super::options::Options;
use std::io::{ErrorKind, Write};
use sublane::report::Report;
use sublane::{Error, Result};

/// How a command that did not break ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Everything held.
    Passed,
    /// Something that the command checks does not hold; it has said what.
    Failed,
}

/// Writes `text` to standard output.
pub(super) fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| Error::io("standard output", "write to", e))
}

/// Writes what went wrong to standard error. Where nobody can read that, the exit code still says it.
pub(super) fn complain(error: &Error) {
    let _ = writeln!(std::io::stderr().lock(), "error: {error}");
}

/// Writes a report as the options ask for.
pub(super) fn report(report: &Report, options: &Options) -> Result<()> {
    if options.json { write(&format!("{}\n", report.to_json())) } else { write(&report.to_text()) }
}

/// Whether standard output was closed by its reader, who has read enough.
pub(super) fn is_closed_pipe(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}
