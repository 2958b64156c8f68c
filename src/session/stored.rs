//! What lies in a cache folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::compiler::{cache, tune};
use crate::device::PROBES_FOLDER;
use crate::error::{Error, Result};
use crate::files;

/// Kind of a file in the cache folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredKind {
    /// Measured choices of an adapter and driver.
    Tuning,
    /// A compiled graph.
    Graph,
    /// Pipelines compiled by a driver.
    Pipelines,
    /// What probes showed of an adapter and driver.
    Probes,
}

impl StoredKind {
    /// All kinds.
    pub const ALL: [StoredKind; 4] = [StoredKind::Tuning, StoredKind::Graph, StoredKind::Pipelines, StoredKind::Probes];

    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            StoredKind::Tuning => "tuning",
            StoredKind::Graph => "graph",
            StoredKind::Pipelines => "pipelines",
            StoredKind::Probes => "probes",
        }
    }

    /// Folder inside the cache folder, and the endings of its files.
    fn place(self) -> (&'static str, &'static [&'static str]) {
        match self {
            StoredKind::Tuning => (tune::file::FOLDER, &["json", "set_aside"]),
            StoredKind::Graph => (cache::FOLDER, &[cache::EXTENSION]),
            StoredKind::Pipelines => ("", &["bin"]),
            StoredKind::Probes => (PROBES_FOLDER, &["json"]),
        }
    }
}

/// A file of the cache folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Kind.
    pub kind: StoredKind,
    /// Where it is.
    pub path: PathBuf,
    /// What it holds, in a line; `None` where that cannot be told.
    pub about: Option<String>,
    /// The adapter it belongs to, if it says so.
    pub adapter: Option<String>,
    /// Size.
    pub bytes: u64,
    /// Time since it was written or used, if the file system says.
    pub age: Option<Duration>,
}

/// The files of the cache folder, by kind, then by name, with those whose writing was not finished. A folder that is not there holds
/// nothing; files of others are left out.
pub fn list(cache_folder: &Path) -> Result<Vec<Stored>> {
    let mut found = Vec::new();
    for kind in StoredKind::ALL {
        let (below, endings) = kind.place();
        let folder = cache_folder.join(below);
        let listed = match std::fs::read_dir(&folder) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io(&folder, "list", error)),
        };
        let mut paths =
            listed.map(|file| file.map(|f| f.path())).collect::<Result<Vec<_>, _>>().map_err(|e| Error::io(&folder, "list", e))?;
        let is_own = |path: &PathBuf| path.extension().and_then(|e| e.to_str()).is_some_and(|e| endings.contains(&e));
        paths.retain(|path| path.is_file() && (is_own(path) || is_unfinished(path)));
        paths.sort();
        for path in paths {
            // A file that another process removes meanwhile is none.
            let Ok(data) = path.metadata() else { continue };
            let (about, adapter) = describe(kind, &path);
            let age = data.modified().ok().and_then(|time| time.elapsed().ok());
            found.push(Stored { kind, path, about, adapter, bytes: data.len(), age });
        }
    }
    Ok(found)
}

fn is_unfinished(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(files::UNFINISHED))
}

fn describe(kind: StoredKind, path: &Path) -> (Option<String>, Option<String>) {
    match kind {
        _ if is_unfinished(path) => (Some("not finished".into()), None),
        StoredKind::Tuning => match tune::file::describe(path) {
            Some((adapter, count)) => (Some(format!("{count} choices")), Some(adapter)),
            None => (None, None),
        },
        StoredKind::Graph => (cache::describe(path), None),
        StoredKind::Pipelines => (path.file_stem().map(|stem| stem.to_string_lossy().into_owned()), None),
        StoredKind::Probes => {
            let text = std::fs::read(path).ok();
            let value: Option<serde_json::Value> = text.and_then(|text| serde_json::from_slice(&text).ok());
            let adapter = value.as_ref().and_then(|v| v["adapter"].as_str()).map(str::to_string);
            (adapter.as_ref().map(|_| "loop bound".to_string()), adapter)
        }
    }
}

/// Removes the files of those kinds and returns what was removed.
pub fn clear(cache_folder: &Path, kinds: &[StoredKind]) -> Result<Vec<Stored>> {
    let chosen: Vec<Stored> = list(cache_folder)?.into_iter().filter(|stored| kinds.contains(&stored.kind)).collect();
    for stored in &chosen {
        match std::fs::remove_file(&stored.path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(&stored.path, "remove", error)),
        }
    }
    Ok(chosen)
}
