//! Choices on disk: one JSON file for each adapter, driver and target.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::compiler::tune::{Choice, Tuning};
use crate::error::{Error, Result};
use crate::files;
use kernels_gen::Target;

/// Version of the file's layout.
const SCHEMA: u32 = 1;

/// Folder of tuning files inside the cache folder.
pub const FOLDER: &str = "tuning";

/// Where the choices of one adapter, driver and target are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuningFile {
    path: PathBuf,
    machine: Machine,
}

/// What choices belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Machine {
    adapter: String,
    driver: String,
    target: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    schema: u32,
    machine: Machine,
    choices: BTreeMap<String, Choice>,
}

impl TuningFile {
    /// The file of an adapter with its driver and of kernels for `target`, in the cache folder.
    pub fn new(cache_folder: &Path, adapter: &str, driver: &str, target: &Target) -> Self {
        let machine = Machine { adapter: adapter.into(), driver: driver.into(), target: format!("{target:?}") };
        let digest = Sha256::digest(format!("{}\n{}\n{}", machine.adapter, machine.driver, machine.target));
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        TuningFile { path: cache_folder.join(FOLDER).join(format!("{name}.json")), machine }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its choices; none where there is no file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for a file that is broken, of another layout or of another machine;
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn read(&self) -> Result<Tuning> {
        let shown = self.path.display();
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Tuning::default()),
            Err(error) => return Err(Error::io(&self.path, "read", error)),
        };
        let advice = "delete it with `sublane cache clear --tuning`, or measure anew with `--autotune exhaustive`";
        let contents: Contents = serde_json::from_slice(&bytes)
            .map_err(|error| Error::malformed(format!("`{shown}` is no tuning file: {error}; {advice}")).with_source(error))?;
        if contents.schema != SCHEMA {
            let schema = contents.schema;
            return Err(Error::malformed(format!("`{shown}` has layout {schema}, this version reads layout {SCHEMA}; {advice}")));
        }
        if contents.machine != self.machine {
            let Machine { adapter, driver, .. } = &contents.machine;
            return Err(Error::malformed(format!("`{shown}` was measured on {adapter} ({driver}) or for another target; {advice}")));
        }
        Ok(contents.choices.into_iter().collect())
    }

    /// [`TuningFile::read`], but a file that is no tuning file of this machine is renamed to `*.set_aside`, and the message says so.
    pub fn read_or_set_aside(&self) -> (Tuning, Option<String>) {
        match self.read() {
            Ok(tuning) => (tuning, None),
            Err(error) => {
                let aside = self.path.with_extension("set_aside");
                let done = match std::fs::rename(&self.path, &aside) {
                    Ok(()) => format!("it was renamed to `{}`", aside.display()),
                    Err(why) => format!("it could not be renamed: {why}"),
                };
                (Tuning::default(), Some(format!("{error}; no choice of it is used, and {done}")))
            }
        }
    }

    /// Writes `tuning` and what else the file holds: choices that another process wrote meanwhile stay, `tuning` has the last word.
    pub fn write(&self, tuning: &Tuning) -> Result<()> {
        let mut choices: BTreeMap<String, Choice> = self.read().into_iter().flat_map(|known| owned(&known)).collect();
        choices.extend(owned(tuning));
        let contents = Contents { schema: SCHEMA, machine: self.machine.clone(), choices };
        let text = serde_json::to_string_pretty(&contents).map_err(|error| Error::internal(error.to_string()))?;
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, "create", error))?;
        }
        files::write_atomic(&self.path, text.as_bytes())
    }
}

fn owned(tuning: &Tuning) -> Vec<(String, Choice)> {
    tuning.iter().map(|(key, choice)| (key.to_string(), choice.clone())).collect()
}

/// Adapter and number of choices of the tuning file `path`, for lists; `None` where it is none.
pub fn describe(path: &Path) -> Option<(String, usize)> {
    let contents: Contents = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    Some((contents.machine.adapter, contents.choices.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn choice(config: &str) -> Choice {
        Choice { config: config.into(), ns: 5, table_ns: 9 }
    }

    #[test]
    fn choices_come_back_and_those_of_others_stay() {
        let folder = tempfile::tempdir().expect("folder");
        let file = TuningFile::new(folder.path(), "gpu", "driver 1", &Target::software());
        assert!(file.read().expect("none yet").is_empty());
        let first: Tuning = [("a".to_string(), choice("one")), ("b".to_string(), choice("two"))].into_iter().collect();
        file.write(&first).expect("written");
        assert_eq!(file.read().expect("read"), first);
        file.write(&[("b".to_string(), choice("three"))].into_iter().collect()).expect("written");
        let both = file.read().expect("read");
        assert_eq!((both.get("a"), both.get("b")), (Some(&choice("one")), Some(&choice("three"))));
        assert_eq!(describe(file.path()), Some(("gpu".into(), 2)));
        for other in [
            TuningFile::new(folder.path(), "gpu", "driver 2", &Target::software()),
            TuningFile::new(folder.path(), "another", "driver 1", &Target::software()),
            TuningFile::new(folder.path(), "gpu", "driver 1", &Target::webgpu()),
        ] {
            assert!(other.read().expect("none").is_empty(), "{other:?}");
        }
    }

    #[test]
    fn a_broken_or_foreign_file_is_an_error_and_is_set_aside() {
        let folder = tempfile::tempdir().expect("folder");
        let file = TuningFile::new(folder.path(), "gpu", "driver", &Target::software());
        file.write(&[("a".to_string(), choice("one"))].into_iter().collect()).expect("written");
        let good = std::fs::read_to_string(file.path()).expect("read");
        let broken = [
            (good[..good.len() / 2].to_string(), "is no tuning file"),
            (good.replace("\"ns\"", "\"nanoseconds\""), "is no tuning file"),
            (good.replace("\"schema\": 1", "\"schema\": 2"), "layout 2"),
            (good.replace("\"gpu\"", "\"another\""), "was measured on another"),
        ];
        for (text, part) in broken {
            std::fs::write(file.path(), &text).expect("written");
            let error = file.read().expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Malformed);
            assert!(error.to_string().contains(part) && error.to_string().contains("cache clear --tuning"), "{error}");
            let (tuning, warning) = file.read_or_set_aside();
            assert!(tuning.is_empty() && warning.is_some_and(|w| w.contains("set_aside")));
            assert!(!file.path().exists() && file.path().with_extension("set_aside").exists());
            assert_eq!(file.read_or_set_aside(), (Tuning::default(), None));
        }
    }
}
