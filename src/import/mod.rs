//! Readers of files other programs write: ONNX models, NPY arrays, and the CIFAR-10 and IDX data sets.

pub mod cifar;
pub mod idx;
pub mod npy;
pub mod onnx;

use crate::error::{Error, Result};
use crate::tensor::HostTensor;

/// Labelled images.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageSet {
    /// Bytes `[n, channels, height, width]`, as they are in the file.
    pub images: HostTensor,
    /// The class of each image.
    pub labels: Vec<u8>,
}

impl ImageSet {
    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Channels, height and width of an image.
    pub fn image_shape(&self) -> [usize; 3] {
        let shape = self.images.shape();
        [shape[1], shape[2], shape[3]]
    }

    /// Images `range` as f32 `[range.len(), channels, height, width]`: each byte divided by `scale`, less its channel's `mean`, divided by its
    /// channel's `std`. `reversed` gives the channels in the opposite order, after which mean and deviation apply.
    pub fn batch(&self, range: std::ops::Range<usize>, scale: f32, mean: &[f32], std: &[f32], reversed: bool) -> Result<HostTensor> {
        let [channels, height, width] = self.image_shape();
        if range.start > range.end || range.end > self.len() {
            return Err(Error::invalid(format!("images {range:?} of {}", self.len())));
        }
        let per_channel = |values: &[f32], c: usize| if values.len() == 1 { values[0] } else { values[c] };
        for (what, values) in [("mean", mean), ("std", std)] {
            if values.len() != 1 && values.len() != channels {
                return Err(Error::invalid(format!("{} values of {what} for {channels} channels; give 1 or {channels}", values.len())));
            }
        }
        for (what, values) in [("scale", &[scale][..]), ("std", std)] {
            if let Some(bad) = values.iter().find(|&&v| v <= 0.0 || !v.is_finite()) {
                return Err(Error::invalid(format!("{what} must be positive and finite, it is {bad}")));
            }
        }
        if let Some(bad) = mean.iter().find(|v| !v.is_finite()) {
            return Err(Error::invalid(format!("mean must be finite, it is {bad}")));
        }
        let bytes: &[u8] = self.images.as_slice()?;
        let plane = height * width;
        let mut data = Vec::with_capacity(range.len() * channels * plane);
        for image in range.clone() {
            for c in 0..channels {
                let source = if reversed { channels - 1 - c } else { c };
                let (mean, std) = (per_channel(mean, c), per_channel(std, c));
                let at = (image * channels + source) * plane;
                data.extend(bytes[at..at + plane].iter().map(|&b| (b as f32 / scale - mean) / std));
            }
        }
        HostTensor::new([range.len(), channels, height, width], data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_normalised_and_may_reverse_channels() {
        let images = HostTensor::new([2, 2, 1, 1], vec![10u8, 20, 30, 40]).unwrap();
        let set = ImageSet { images, labels: vec![0, 1] };
        let batch = set.batch(1..2, 10.0, &[1.0, 2.0], &[0.5], false).unwrap();
        assert_eq!(batch.as_slice::<f32>().unwrap(), [4.0, 4.0]);
        let batch = set.batch(1..2, 10.0, &[1.0, 2.0], &[0.5], true).unwrap();
        assert_eq!(batch.as_slice::<f32>().unwrap(), [6.0, 2.0]);
        assert!(set.batch(1..3, 1.0, &[0.0], &[1.0], false).is_err());
        assert!(set.batch(0..1, 1.0, &[0.0; 3], &[1.0], false).is_err());
        for bad in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(set.batch(0..1, 1.0, &[0.0], &[1.0, bad], false).unwrap_err().to_string().contains("std"));
            assert!(set.batch(0..1, bad, &[0.0], &[1.0], false).unwrap_err().to_string().contains("scale"));
        }
        for bad in [f32::NAN, f32::NEG_INFINITY] {
            assert!(set.batch(0..1, 1.0, &[0.0, bad], &[1.0], false).unwrap_err().to_string().contains("mean"));
        }
    }
}
