//! Files: whole reads, gzip recognised by its first bytes, writes that are complete or not there, and the cache folder.

use crate::error::{Error, Result};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// What the names of files begin with that are being written; one that stays was left by a program that was ended.
pub const UNFINISHED: &str = ".sublane-";

/// Writes `bytes` to `path`, or leaves what was there: the bytes go to a new file in the same folder, which then takes the name. A link
/// stays, and what it leads to is written. What is no ordinary file, such as a device or a pipe, is written into.
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let given = path.as_ref();
    let fail = |e: std::io::Error| Error::io(given, "write", e);
    let path = match destination(given)? {
        Destination::File(path) => path,
        Destination::Stream(mut stream) => return stream.write_all(bytes).and_then(|()| stream.flush()).map_err(fail),
    };
    let mut file = beside(&path)?;
    file.as_file_mut().write_all(bytes).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    file.persist(&path).map_err(|e| fail(e.error))?;
    Ok(())
}

/// Whether [`write_atomic`] can write to `path`, for those who would work long before they do.
pub fn check_writable(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    if path.is_dir() {
        return Err(Error::io(path, "write", std::io::ErrorKind::IsADirectory.into()));
    }
    match destination(path)? {
        Destination::File(path) => beside(&path).map(|_| ()),
        Destination::Stream(_) => Ok(()),
    }
}

/// Where bytes for a path go.
enum Destination {
    /// The path of an ordinary file, there or not; no link.
    File(PathBuf),
    /// What has no content to be replaced.
    Stream(std::fs::File),
}

fn destination(path: &Path) -> Result<Destination> {
    let fail = |e: std::io::Error| Error::io(path, "write", e);
    // Standard output may be an ordinary file that others write to as well.
    let is_special = path.starts_with("/dev") || path.starts_with("/proc");
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(Destination::File(path.into())),
        Ok(found) if !found.is_file() || is_special => {
            std::fs::OpenOptions::new().write(true).open(path).map(Destination::Stream).map_err(fail)
        }
        Ok(_) => std::fs::canonicalize(path).map(Destination::File).map_err(fail),
        Err(_) if path.is_symlink() => {
            // A link to a file that is not there yet.
            let target = std::fs::read_link(path).map_err(fail)?;
            Ok(Destination::File(path.parent().unwrap_or(Path::new("")).join(target)))
        }
        Err(_) => Ok(Destination::File(path.into())),
    }
}

/// A new file in the folder of `path`. Its own name, which means nothing to anybody, is kept out of the error.
fn beside(path: &Path) -> Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNFINISHED);
    #[cfg(unix)]
    {
        // A temporary file is private by default; this one becomes an ordinary file, which the user's mask decides on.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder).map_err(|e| Error::io(path, "write", e.kind().into()))
}

/// Opens a file that is read later, so that a wrong name is known before long work.
pub fn check_readable(path: impl AsRef<Path>) -> Result<()> {
    std::fs::File::open(&path).map(|_| ()).map_err(|e| Error::io(&path, "read", e))
}

/// All bytes of a file.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    std::fs::read(&path).map_err(|e| Error::io(&path, "read", e))
}

/// All bytes of a file, unpacked if its first bytes say gzip, whatever its name says. A broken or truncated archive is
/// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed).
pub fn read_maybe_gzip(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let raw = read(&path)?;
    if !raw.starts_with(&[0x1f, 0x8b]) {
        return Ok(raw);
    }
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(raw.as_slice()).read_to_end(&mut unpacked).map_err(|e| {
        let message = format!("`{}` is a broken or truncated gzip archive: {e}", path.as_ref().display());
        Error::malformed(message).with_source(e)
    })?;
    Ok(unpacked)
}

/// The folder in which Sublane keeps what it can make again, from the environment: `SUBLANE_CACHE`, or the user's cache folder.
/// `None` where the environment names none. For the edges of a program; everything else takes the folder as an argument.
pub fn cache_folder_from_env() -> Option<PathBuf> {
    cache_folder(|name| std::env::var_os(name))
}

/// [`cache_folder_from_env`] for an environment given as a function; a variable that is empty counts as unset.
pub fn cache_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("SUBLANE_CACHE").or_else(|| {
        let user = if cfg!(windows) {
            folder("LOCALAPPDATA")
        } else {
            folder("XDG_CACHE_HOME").or_else(|| {
                let below = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
                Some(folder("HOME")?.join(below))
            })
        };
        Some(user?.join("sublane"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use flate2::{Compression, write::GzEncoder};

    #[test]
    fn a_write_replaces_the_file_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("report.json");
        write_atomic(&path, b"old and longer").expect("written");
        write_atomic(&path, b"new").expect("written");
        assert_eq!(read(&path).expect("read"), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
        let error = write_atomic(folder.path().join("no/such/folder"), b"x").expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains("no/such/folder"), "{error}");
        check_writable(&path).expect("can be written");
        for bad in [folder.path().to_path_buf(), folder.path().join("no/such/folder"), path.join("below a file")] {
            let error = check_writable(&bad).expect_err("refused").to_string();
            assert!(error.contains(&bad.display().to_string()) && !error.contains(".sublane-"), "{error}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("folder").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_streams_are_written_into() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().expect("folder");
        let [target, link, hanging] = ["target", "link", "hanging"].map(|name| folder.path().join(name));
        write_atomic(&target, b"old").expect("written");
        std::os::unix::fs::symlink(&target, &link).expect("linked");
        std::os::unix::fs::symlink("not there yet", &hanging).expect("linked");
        write_atomic(&link, b"new").expect("written");
        write_atomic(&hanging, b"made").expect("written");
        assert!(link.is_symlink() && hanging.is_symlink());
        assert_eq!(read(&target).expect("read"), b"new");
        assert_eq!(read(folder.path().join("not there yet")).expect("read"), b"made");
        for device in ["/dev/null", "/dev/full"] {
            check_writable(device).expect("can be opened");
            assert_eq!(write_atomic(device, b"x").is_ok(), device == "/dev/null", "{device}");
            assert!(std::fs::metadata(device).expect("there").file_type().is_char_device(), "{device}");
        }
    }

    #[test]
    fn gzip_is_known_by_its_bytes_and_a_truncated_one_is_malformed() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("data.bin");
        let data: Vec<u8> = (0..10_000u32).map(|i| (i % 251) as u8).collect();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&data).expect("packed");
        let packed = encoder.finish().expect("packed");

        for (stored, what) in [(&packed, "packed"), (&data, "plain")] {
            write_atomic(&path, stored).expect("written");
            assert_eq!(read_maybe_gzip(&path).expect(what), data);
        }
        for len in [2, 9, 20, packed.len() / 2, packed.len() - 1] {
            write_atomic(&path, &packed[..len]).expect("written");
            let error = read_maybe_gzip(&path).expect_err("truncated");
            assert_eq!(error.kind(), ErrorKind::Malformed);
            assert!(error.to_string().contains("data.bin"), "{error}");
        }
        assert_eq!(read_maybe_gzip(folder.path().join("none")).expect_err("missing").kind(), ErrorKind::Io);
    }

    #[test]
    fn the_cache_folder_is_the_first_that_the_environment_names() {
        let with = |pairs: &'static [(&'static str, &'static str)]| {
            cache_folder(move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
        };
        assert_eq!(with(&[("SUBLANE_CACHE", "/a"), ("HOME", "/h")]), Some(PathBuf::from("/a")));
        assert_eq!(with(&[]), None);
        if cfg!(target_os = "linux") {
            assert_eq!(with(&[("SUBLANE_CACHE", ""), ("HOME", "/h")]), Some(PathBuf::from("/h/.cache/sublane")));
            assert_eq!(with(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), Some(PathBuf::from("/x/sublane")));
        }
    }
}
