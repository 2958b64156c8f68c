//! The IDX format of MNIST: a magic number with element type and rank, big-endian sizes, bytes.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::files;
use crate::import::ImageSet;
use crate::tensor::HostTensor;

/// The code of unsigned bytes, the one element type that is read.
const UNSIGNED_BYTES: u8 = 0x08;

/// Reads a file of unsigned bytes, which may be compressed with gzip.
pub fn read(path: impl AsRef<Path>) -> Result<HostTensor> {
    parse(&files::read_maybe_gzip(&path)?).map_err(|e| e.context(format_args!("`{}`", path.as_ref().display())))
}

/// Reads the contents of a file.
pub fn parse(bytes: &[u8]) -> Result<HostTensor> {
    let malformed = |message: String| Err(Error::malformed(message));
    let &[0, 0, code, rank, ref rest @ ..] = bytes else {
        return malformed("this is no IDX file: it does not begin with two zero bytes, a type and a rank".to_string());
    };
    if code != UNSIGNED_BYTES {
        return Err(Error::unsupported(format!("IDX element type {code:#04x}; only unsigned bytes ({UNSIGNED_BYTES:#04x}) are read")));
    }
    let header = rank as usize * 4;
    let Some((sizes, data)) = rest.split_at_checked(header) else {
        return malformed(format!("the IDX file ends inside its {rank} sizes"));
    };
    let shape: Vec<usize> = sizes.chunks_exact(4).map(|s| u32::from_be_bytes([s[0], s[1], s[2], s[3]]) as usize).collect();
    let expected = crate::tensor::num_elems(&shape)?;
    if data.len() != expected {
        return malformed(format!("the IDX file states {shape:?}, {expected} bytes, and holds {}", data.len()));
    }
    HostTensor::new(shape, data.to_vec())
}

/// Reads images and labels from a folder: in it, the one file each whose name contains `images-idx3-ubyte` and `labels-idx1-ubyte`. Where there
/// are files of a test (`t10k`) and a training part, the test part is taken.
pub fn read_folder(folder: impl AsRef<Path>) -> Result<ImageSet> {
    let folder = folder.as_ref();
    let images = read(find(folder, "images-idx3-ubyte")?)?;
    let labels = read(find(folder, "labels-idx1-ubyte")?)?;
    let (&[n, h, w], &[m]) = (images.shape(), labels.shape()) else {
        return Err(Error::malformed(format!(
            "`{}`: images must have three dimensions and labels one; they are {:?} and {:?}",
            folder.display(),
            images.shape(),
            labels.shape()
        )));
    };
    if n != m {
        return Err(Error::malformed(format!("`{}`: {n} images, but {m} labels", folder.display())));
    }
    let labels = labels.as_slice::<u8>()?.to_vec();
    Ok(ImageSet { images: images.reshape([n, 1, h, w])?, labels })
}

fn find(folder: &Path, part: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, "read the folder", e))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|e| Error::io(folder, "read the folder", e))?.file_name().to_string_lossy().into_owned();
        if name.contains(part) {
            names.push(name);
        }
    }
    let test: Vec<String> = names.iter().filter(|n| n.contains("t10k")).cloned().collect();
    let candidates = if test.is_empty() { names } else { test };
    match &candidates[..] {
        [one] => Ok(folder.join(one)),
        [] => Err(Error::invalid(format!("`{}` holds no file whose name contains `{part}`", folder.display()))),
        more => {
            let mut more = more.to_vec();
            more.sort();
            let list = more.join("`, `");
            Err(Error::invalid(format!("`{}` holds several files whose names contain `{part}`: `{list}`; leave one", folder.display())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(code: u8, sizes: &[u32], data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, code, sizes.len() as u8];
        sizes.iter().for_each(|s| bytes.extend(s.to_be_bytes()));
        bytes.extend(data);
        bytes
    }

    #[test]
    fn reads_bytes_and_refuses_what_does_not_fit() {
        let good = file(8, &[2, 3], &[1, 2, 3, 4, 5, 6]);
        assert_eq!(parse(&good).unwrap().shape(), [2, 3]);
        assert!(parse(&good[..good.len() - 1]).is_err());
        assert!(parse(&good[..6]).is_err());
        assert!(parse(&file(0x0d, &[1], &[0; 4])).unwrap_err().to_string().contains("unsigned bytes"));
        assert!(parse(&file(8, &[u32::MAX; 4], &[])).is_err());
        assert!(parse(b"\x1f\x8b").is_err());
    }

    #[test]
    fn takes_the_test_part_of_a_folder_and_refuses_doubt() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: Vec<u8>| std::fs::write(folder.path().join(name), bytes).unwrap();
        assert!(read_folder(folder.path()).unwrap_err().to_string().contains("images-idx3-ubyte"));
        write("t10k-images-idx3-ubyte", file(8, &[2, 1, 1], &[9, 8]));
        write("t10k-labels-idx1-ubyte", file(8, &[2], &[1, 2]));
        write("train-images-idx3-ubyte", file(8, &[1, 1, 1], &[7]));
        let set = read_folder(folder.path()).unwrap();
        assert_eq!((set.images.shape(), set.labels.as_slice()), (&[2usize, 1, 1, 1][..], &[1u8, 2][..]));
        write("t10k-images-idx3-ubyte.copy", file(8, &[2, 1, 1], &[9, 8]));
        assert!(read_folder(folder.path()).unwrap_err().to_string().contains("several files"));
    }
}
