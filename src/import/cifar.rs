//! The CIFAR-10 binary format: records of one label byte and 3 x 32 x 32 image bytes.

use std::path::Path;

use crate::error::{Error, Result};
use crate::files;
use crate::import::ImageSet;
use crate::tensor::HostTensor;

const SHAPE: [usize; 3] = [3, 32, 32];
const IMAGE_BYTES: usize = 3 * 32 * 32;
const CLASSES: u8 = 10;

/// Reads a file, which may be compressed with gzip.
pub fn read(path: impl AsRef<Path>) -> Result<ImageSet> {
    parse(&files::read_maybe_gzip(&path)?).map_err(|e| e.context(format_args!("`{}`", path.as_ref().display())))
}

/// Reads the contents of a file.
pub fn parse(bytes: &[u8]) -> Result<ImageSet> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(IMAGE_BYTES + 1) {
        return Err(Error::malformed(format!(
            "a CIFAR-10 file is records of {} bytes (label, 3 x 32 x 32 image); this one has {} bytes",
            IMAGE_BYTES + 1,
            bytes.len()
        )));
    }
    let records = bytes.chunks_exact(IMAGE_BYTES + 1);
    let labels: Vec<u8> = records.clone().map(|r| r[0]).collect();
    if let Some(i) = labels.iter().position(|&l| l >= CLASSES) {
        return Err(Error::malformed(format!("record {i} has label {}; a CIFAR-10 file has labels below {CLASSES}", labels[i])));
    }
    let data: Vec<u8> = records.flat_map(|r| r[1..].iter().copied()).collect();
    let [c, h, w] = SHAPE;
    Ok(ImageSet { images: HostTensor::new([labels.len(), c, h, w], data)?, labels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_records_and_refuses_others() {
        let mut bytes = vec![7u8; 2 * (IMAGE_BYTES + 1)];
        bytes[0] = 3;
        let set = parse(&bytes).unwrap();
        assert_eq!((set.len(), set.labels.as_slice(), set.image_shape()), (2, &[3u8, 7][..], SHAPE));
        assert!(parse(&bytes[1..]).is_err());
        assert!(parse(&[]).is_err());
        bytes[0] = 10;
        assert!(parse(&bytes).unwrap_err().to_string().contains("label 10"));
    }
}
