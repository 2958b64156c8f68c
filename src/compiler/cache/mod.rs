//! Compiled graphs, kept in memory and on disk: a graph that was compiled before, for the same target and options and with the same
//! choices, needs no compilation.

mod entry;
mod key;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::compiler::{Compiled, Tuning};
use crate::error::{Error, Result};
use crate::files;
use crate::graph::Graph;
use kernels_gen::Target;

pub use entry::describe;
pub use key::Key;
pub(crate) use key::digest;

/// Folder of compiled graphs inside the cache folder.
pub const FOLDER: &str = "graphs";
/// Ending of their files.
pub const EXTENSION: &str = "graph";

/// Compiled graphs kept in memory.
const MAX_IN_MEMORY: usize = 64;
/// Most bytes of one file, and of all.
const MAX_FILE_BYTES: u64 = 512 << 20;
const MAX_FOLDER_BYTES: u64 = 2 << 30;

/// Where a compiled graph came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It was compiled now.
    Compiled,
    /// From memory.
    Memory,
    /// From disk.
    Disk,
}

impl Source {
    /// Name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Compiled => "compiled",
            Source::Memory => "memory",
            Source::Disk => "disk",
        }
    }
}

/// A compiled graph of the cache.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The compiled graph.
    pub compiled: Compiled,
    /// Whether the tuner has gone over the graph, so that a hero without a measured choice is one that cannot be measured.
    pub tuned: bool,
}

impl Entry {
    /// Whether a compilation with `tuning` would make the same choices.
    fn agrees_with(&self, tuning: &Tuning) -> bool {
        self.compiled.kernels().iter().filter_map(|kernel| kernel.choice.as_ref()).all(|made| match tuning.get(&made.key) {
            Some(choice) => made.tuned && choice.config == made.config,
            None => !made.tuned,
        })
    }
}

/// The cache. Several threads may use it.
#[derive(Debug)]
pub struct GraphCache {
    folder: Option<PathBuf>,
    memory: Mutex<VecDeque<(String, Entry)>>,
}

impl GraphCache {
    /// A cache in the cache folder, or in memory alone.
    pub fn new(cache_folder: Option<&Path>) -> Self {
        GraphCache { folder: cache_folder.map(|folder| folder.join(FOLDER)), memory: Mutex::default() }
    }

    /// The compiled graph of `key`, if a compilation with `tuning` would give it. A file that is damaged is as good as none, with a note.
    pub fn get(&self, graph: &Graph, key: &Key, tuning: &Tuning) -> (Option<(Entry, Source)>, Option<String>) {
        let held = {
            let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
            let at = memory.iter().position(|(known, entry)| *known == key.text && entry.agrees_with(tuning));
            at.and_then(|at| memory.remove(at)).map(|found| {
                memory.push_back(found.clone());
                found.1
            })
        };
        if let Some(entry) = held {
            return (Some((entry, Source::Memory)), None);
        }
        let Some(path) = self.path(key) else { return (None, None) };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return (None, None),
            Err(error) => return (None, Some(format!("a compiled graph was not used: {}", Error::io(&path, "read", error)))),
        };
        match entry::read(&bytes, graph, key) {
            Ok(entry) if entry.agrees_with(tuning) => {
                // The time of a file is that of its last use: the longest unused goes first.
                let touched = std::fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
                if let Err(error) = touched {
                    log::debug!("`{}`: {error}", path.display());
                }
                self.hold(key, entry.clone());
                (Some((entry, Source::Disk)), None)
            }
            Ok(_) => (None, None),
            Err(error) => (None, Some(format!("`{}` is damaged and was not used: {error}", path.display()))),
        }
    }

    /// Keeps a compiled graph. Its stages are not kept. A note says why it is not on disk where it could be.
    pub fn put(&self, key: &Key, entry: &Entry, target: &Target) -> Option<String> {
        self.hold(key, entry.clone());
        let path = self.path(key)?;
        let stored = entry::write(entry, key, target, MAX_FILE_BYTES).and_then(|bytes| {
            let folder = path.parent().ok_or_else(|| Error::internal("a file without a folder"))?;
            std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, "create", error))?;
            make_room(folder, bytes.len() as u64)?;
            files::write_atomic(&path, &bytes)
        });
        stored.err().map(|error| format!("the compiled graph was not kept on disk: {error}"))
    }

    fn hold(&self, key: &Key, entry: Entry) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.retain(|(known, _)| *known != key.text);
        memory.push_back((key.text.clone(), entry));
        while memory.len() > MAX_IN_MEMORY {
            memory.pop_front();
        }
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{}.{EXTENSION}", key.text)))
    }
}

/// Removes the files that were not used for the longest time, until `bytes` more fit the folder.
fn make_room(folder: &Path, bytes: u64) -> Result<()> {
    let listed = std::fs::read_dir(folder).map_err(|error| Error::io(folder, "list", error))?;
    let mut present: Vec<(SystemTime, u64, PathBuf)> = listed
        .filter_map(|file| {
            let file = file.ok()?;
            let data = file.metadata().ok()?;
            Some((data.modified().ok()?, data.len(), file.path()))
        })
        .filter(|(_, _, path)| path.extension().is_some_and(|e| e == EXTENSION))
        .collect();
    present.sort();
    let mut total: u64 = present.iter().map(|(_, len, _)| len).sum::<u64>() + bytes;
    for (_, len, path) in present {
        if total <= MAX_FOLDER_BYTES {
            break;
        }
        std::fs::remove_file(&path).map_err(|error| Error::io(&path, "remove", error))?;
        total -= len;
    }
    Ok(())
}
