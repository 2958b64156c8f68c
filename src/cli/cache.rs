//! `sublane cache`: what is remembered from one run to the next.

use super::options::Options;
use super::output::{self, Outcome};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use sublane::report::{Column, Report, Table};
use sublane::session::stored::{self, Stored, StoredKind};
use sublane::{Error, Result, files};

/// What to do with the cache folder.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List what is there: measured choices, compiled graphs, pipelines of drivers, results of probes
    List,
    /// Remove what is there, all kinds or those that are named
    Clear(Clear),
}

/// What to remove.
#[derive(Debug, Args)]
pub(super) struct Clear {
    /// Measured choices
    #[arg(long)]
    tuning: bool,
    /// Compiled graphs
    #[arg(long)]
    graphs: bool,
    /// Pipelines compiled by drivers
    #[arg(long)]
    pipelines: bool,
    /// What probes showed
    #[arg(long)]
    probes: bool,
}

impl Clear {
    fn kinds(&self) -> Vec<StoredKind> {
        let chosen = [
            (self.tuning, StoredKind::Tuning),
            (self.graphs, StoredKind::Graph),
            (self.pipelines, StoredKind::Pipelines),
            (self.probes, StoredKind::Probes),
        ];
        let all = chosen.iter().all(|(wanted, _)| !wanted);
        chosen.into_iter().filter(|(wanted, _)| all || *wanted).map(|(_, kind)| kind).collect()
    }
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let folder: PathBuf = files::cache_folder_from_env()
        .ok_or_else(|| Error::invalid("the environment names no cache folder, so nothing is kept; set SUBLANE_CACHE to one"))?;
    let (name, label, files) = match command {
        Command::List => ("cache list", "files", stored::list(&folder)?),
        Command::Clear(clear) => ("cache clear", "files removed", stored::clear(&folder, &clear.kinds())?),
    };
    options.without_adapter(name);
    let mut report = Report::new(name, options.seed);
    report.field("folder", "folder", folder.display().to_string(), "");
    report.field("files", label, files.len(), "");
    report.field("bytes", "size", files.iter().map(|file| file.bytes).sum::<u64>(), "bytes");
    report.table(table(&files));
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}

fn table(files: &[Stored]) -> Table {
    let columns =
        [("kind", "kind"), ("about", "what"), ("adapter", "adapter"), ("bytes", "bytes"), ("age_s", "age in s"), ("file", "file")];
    let mut table = Table::new(&columns.map(|(key, title)| Column::new(key, title)));
    for file in files {
        let age = file.age.map(|age| age.as_secs());
        let (kind, path) = (file.kind.name(), file.path.display().to_string());
        let [about, adapter] = [&file.about, &file.adapter].map(|text| text.as_deref().into());
        table.row([kind.into(), about, adapter, file.bytes.into(), age.into(), path.into()]);
    }
    table
}
