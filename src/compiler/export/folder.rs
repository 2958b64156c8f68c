//! Where an export goes: what lies there, what of it may be replaced, and the replacement.
//!
//! Only files that an export wrote, as its plan's digests tell, are ever moved or removed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{KERNELS, PLAN, WEIGHTS, digest, kernel_path, read_plan};
use crate::error::{Error, Result};
use crate::files;

/// What the names of folders begin with in which an export is prepared, beside its destination. One that is there otherwise is left of an
/// export that was interrupted: it holds nothing but [`NEW`] and [`OLD`].
const WORK: &str = ".sublane-export-";
/// Inside it, what takes its place in the destination.
const NEW: &str = "new";
/// Inside it, what made room.
const OLD: &str = "old";

/// Whether an export can be written to `folder`: it is not there, is empty or holds an earlier export and nothing else. With `force` other
/// files may lie there, and stay; one where a file of the export goes is refused all the same, and so is one of an earlier export that was
/// changed. What an interrupted export left is no obstacle.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) with what lies in the way, [`ErrorKind::Io`](crate::ErrorKind::Io).
pub fn check_folder(folder: &Path, force: bool) -> Result<()> {
    Found::in_folder(folder)?.check(folder, [], force)
}

/// What lies in a folder; paths are those inside it.
#[derive(Debug, Default)]
struct Found {
    /// Files that are as an export wrote them.
    own: BTreeSet<PathBuf>,
    /// Everything else.
    others: BTreeSet<PathBuf>,
    /// Folders of exports that were interrupted.
    leftovers: Vec<PathBuf>,
}

impl Found {
    fn in_folder(folder: &Path) -> Result<Self> {
        let Some(names) = list(folder)? else { return Ok(Found::default()) };
        let mut found = Found::default();
        for name in names {
            let path = folder.join(&name);
            if name.to_str().is_some_and(|name| name.starts_with(WORK)) && is_folder(&path) && is_work(&path)? {
                found.leftovers.push(name);
            } else if name == Path::new(KERNELS) && is_folder(&path) {
                found.others.extend(list(&path)?.unwrap_or_default().into_iter().map(|file| name.join(file)));
            } else {
                found.others.insert(name);
            }
        }
        // An export that was interrupted while it replaced another one: the folder holds parts of both.
        let work = found.leftovers.iter().flat_map(|name| [folder.join(name).join(OLD), folder.join(name).join(NEW)]);
        let mut written: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
        for plan in work.chain([folder.to_path_buf()]).map(|place| place.join(PLAN)).filter(|plan| is_file(plan)) {
            let bytes = files::read(&plan)?;
            let Ok(content) = read_plan(&bytes) else { continue };
            let kernels = content.kernels.into_iter().map(|(name, digest)| (kernel_path(&name), digest));
            for (path, digest) in kernels.chain([(WEIGHTS.into(), content.weights), (PLAN.into(), digest(&bytes))]) {
                written.entry(path).or_default().insert(digest);
            }
        }
        for path in std::mem::take(&mut found.others) {
            let at = folder.join(&path);
            let is_own = match written.get(&path).filter(|_| is_file(&at)) {
                Some(digests) => digests.contains(&digest(&files::read(&at)?)),
                None => false,
            };
            if is_own {
                found.own.insert(path)
            } else {
                found.others.insert(path)
            };
        }
        Ok(found)
    }

    /// Checks that nothing of others lies where the export and its `kernels` go, and without `force` that nothing of others is there.
    fn check<'a>(&self, folder: &Path, kernels: impl IntoIterator<Item = &'a Path>, force: bool) -> Result<()> {
        let here = folder.display();
        let names = [PLAN, WEIGHTS, KERNELS].map(Path::new);
        if let Some(path) = names.into_iter().chain(kernels).find(|path| self.others.contains(*path)) {
            let path = path.display();
            return Err(Error::invalid(format!(
                "`{path}` in `{here}` is not as an export wrote it and is not replaced; move it away or give another folder"
            )));
        }
        match self.others.first() {
            Some(other) if !force => {
                let other = other.display();
                let holds = match self.own.is_empty() {
                    true => format!("is not empty and holds no export, but `{other}`"),
                    false => format!("holds `{other}` beside an earlier export"),
                };
                Err(Error::invalid(format!("`{here}` {holds}; give another folder, or write beside what is there (`--force`)")))
            }
            _ => Ok(()),
        }
    }
}

/// Writes the files of an export, given with their paths inside `folder`, in the place of an earlier one: all of them or none. They are
/// written to a folder of their own first.
pub(super) fn put(folder: &Path, written: &[(PathBuf, Vec<u8>)], force: bool) -> Result<()> {
    let found = Found::in_folder(folder)?;
    found.check(folder, written.iter().map(|(path, _)| path.as_path()), force)?;
    let fail = |error: std::io::Error| Error::io(folder, "write", error.kind().into());
    let is_new = !folder.exists();
    std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, "make the folder", error))?;
    let put = || -> Result<()> {
        let work = tempfile::Builder::new().prefix(WORK).tempdir_in(folder).map_err(fail)?;
        let (new, old) = (work.path().join(NEW), work.path().join(OLD));
        for made in [&new.join(KERNELS), &old.join(KERNELS)] {
            std::fs::create_dir_all(made).map_err(fail)?;
        }
        for (path, bytes) in written {
            files::write_atomic(new.join(path), bytes)?;
        }
        let has_kernels = folder.join(KERNELS).is_dir();
        std::fs::create_dir_all(folder.join(KERNELS)).map_err(fail)?;
        let (error, is_back) = match replace(folder, &found.own, written, &new, &old) {
            Ok(()) => return Ok(()),
            Err(failed) => failed,
        };
        if !has_kernels {
            let _ = std::fs::remove_dir(folder.join(KERNELS));
        }
        if !is_back {
            // It has the only copy of what is missing, and the next export knows it.
            let _ = work.keep();
        }
        Err(fail(error))
    };
    let done = put();
    if done.is_err() && is_new {
        // Only an empty folder is removed.
        let _ = std::fs::remove_dir(folder);
    }
    done?;
    for leftover in &found.leftovers {
        let leftover = folder.join(leftover);
        if let Err(error) = std::fs::remove_dir_all(&leftover) {
            log::warn!("`{}`, which an interrupted export left, cannot be removed: {error}", leftover.display());
        }
    }
    Ok(())
}

/// Moves the files `own` from `folder` to `old` and those `written` from `new` into `folder`. The plan goes first and comes last: a folder
/// without one is no export. After an error files are moved back; whether all of them are is given with the error.
fn replace(
    folder: &Path,
    own: &BTreeSet<PathBuf>,
    written: &[(PathBuf, Vec<u8>)],
    new: &Path,
    old: &Path,
) -> std::result::Result<(), (std::io::Error, bool)> {
    let is_plan = |path: &&Path| *path == Path::new(PLAN);
    let (plan, rest): (Vec<&Path>, Vec<&Path>) = own.iter().map(PathBuf::as_path).partition(is_plan);
    let out = plan.into_iter().chain(rest).map(|path| (folder.join(path), old.join(path)));
    let (plan, rest): (Vec<&Path>, Vec<&Path>) = written.iter().map(|(path, _)| path.as_path()).partition(is_plan);
    let into = rest.into_iter().chain(plan).map(|path| (new.join(path), folder.join(path)));
    let mut moved: Vec<(PathBuf, PathBuf)> = Vec::new();
    for (from, to) in out.chain(into) {
        // What came meanwhile is not ours.
        let there = to.symlink_metadata().is_ok().then(|| ErrorKind::AlreadyExists.into());
        if let Err(error) = there.map_or_else(|| std::fs::rename(&from, &to), Err) {
            let mut is_back = true;
            for (from, to) in moved.into_iter().rev() {
                if let Err(error) = std::fs::rename(&to, &from) {
                    log::warn!("`{}` is not back in its place: {error}", from.display());
                    is_back = false;
                }
            }
            return Err((error, is_back));
        }
        moved.push((from, to));
    }
    Ok(())
}

/// The names in a folder; `None` where there is none.
fn list(folder: &Path) -> Result<Option<Vec<PathBuf>>> {
    let fail = |error| Error::io(folder, "list", error);
    match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        listed => {
            let names = listed.map_err(fail)?.map(|entry| entry.map(|entry| entry.file_name().into()));
            names.collect::<std::io::Result<_>>().map(Some).map_err(fail)
        }
    }
}

/// Whether a folder that is named as such holds what is prepared there and nothing else.
fn is_work(path: &Path) -> Result<bool> {
    let known = |name: &PathBuf| [NEW, OLD].iter().any(|known| name == Path::new(known)) && is_folder(&path.join(name));
    Ok(list(path)?.unwrap_or_default().iter().all(known))
}

/// No link to one.
fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file())
}

/// No link to one.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}
