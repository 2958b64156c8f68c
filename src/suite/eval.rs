//! Accuracy of an image classifier on labelled images.

use std::path::PathBuf;
use std::time::Instant;

use crate::compiler::Port;
use crate::error::{Error, Result};
use crate::import::{ImageSet, cifar, idx};
use crate::progress::Work;
use crate::session::Session;
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// How bytes of an image become what a model takes: `(byte / scale - mean) / std`.
#[derive(Debug, Clone, PartialEq)]
pub struct Preparation {
    /// Divisor of the bytes.
    pub scale: f32,
    /// Subtracted after that: one value, or one for each channel in the order the model sees.
    pub mean: Vec<f32>,
    /// Divisor after that: one value, or one for each channel.
    pub std: Vec<f32>,
    /// Whether the channels go in the opposite order (BGR).
    pub reversed: bool,
}

impl Preparation {
    /// Usual for CIFAR-10: bytes to 0..1, then mean and deviation of ImageNet.
    pub fn cifar10() -> Self {
        Preparation { scale: 255.0, mean: vec![0.485, 0.456, 0.406], std: vec![0.229, 0.224, 0.225], reversed: false }
    }

    /// Usual for MNIST: the bytes as they are.
    pub fn mnist() -> Self {
        Preparation { scale: 1.0, mean: vec![0.0], std: vec![1.0], reversed: false }
    }
}

/// Labelled images in files: `cifar10:FILE` or `mnist-idx:DIR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataSet {
    /// A file of CIFAR-10 in its binary form.
    Cifar10(PathBuf),
    /// A folder that holds one file of images and one of labels as IDX.
    MnistIdx(PathBuf),
}

impl std::str::FromStr for DataSet {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':').filter(|(_, path)| !path.is_empty()) {
            Some(("cifar10", path)) => Ok(DataSet::Cifar10(path.into())),
            Some(("mnist-idx", path)) => Ok(DataSet::MnistIdx(path.into())),
            _ => Err(Error::invalid("give cifar10:FILE or mnist-idx:DIR")),
        }
    }
}

impl DataSet {
    /// Name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            DataSet::Cifar10(_) => "cifar10",
            DataSet::MnistIdx(_) => "mnist-idx",
        }
    }

    /// Reads the images; files may be compressed with gzip.
    pub fn read(&self) -> Result<ImageSet> {
        match self {
            DataSet::Cifar10(file) => cifar::read(file),
            DataSet::MnistIdx(folder) => idx::read_folder(folder),
        }
    }

    /// How its images are usually prepared.
    pub fn preparation(&self) -> Preparation {
        match self {
            DataSet::Cifar10(_) => Preparation::cifar10(),
            DataSet::MnistIdx(_) => Preparation::mnist(),
        }
    }
}

/// What an evaluation found.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The class with the highest score for each image, in order.
    pub predictions: Vec<usize>,
    /// Images whose prediction is their label.
    pub correct: usize,
    /// Images a second, from prepared images to predictions, all included.
    pub images_per_s: f64,
}

impl Evaluation {
    /// Number of images.
    pub fn total(&self) -> usize {
        self.predictions.len()
    }

    /// Part that is correct.
    pub fn top1(&self) -> f64 {
        self.correct as f64 / self.total().max(1) as f64
    }
}

/// Classifies the first `limit` images (`None`: all) with a session whose graph takes one batch of images and returns one batch of scores.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where graph, images and preparation do not fit each other, with both
/// shapes; [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
pub fn evaluate(
    session: &Session,
    images: &ImageSet,
    preparation: &Preparation,
    limit: Option<usize>,
    work: &Work<'_>,
) -> Result<Evaluation> {
    let (input, output, classes) = ports(session, images)?;
    let batch = input.ty.shape[0];
    let total = images.len().min(limit.unwrap_or(usize::MAX));
    if let Some(label) = images.labels[..total].iter().find(|l| usize::from(**l) >= classes) {
        return Err(Error::invalid(format!(
            "an image has the label {label}, the model tells {classes} classes apart; is it the right data set?"
        )));
    }
    let part = work.part("images", total as u64);
    let mut predictions = Vec::with_capacity(total);
    let start = Instant::now();
    while predictions.len() < total {
        let (first, end) = (predictions.len(), total.min(predictions.len() + batch));
        let prepared = images.batch(first..end, preparation.scale, &preparation.mean, &preparation.std, preparation.reversed)?;
        let prepared = fill_up(prepared, &input.ty.shape)?;
        let outputs = session.run(&[(&input.name, &prepared)])?;
        let scores = outputs.get(&output.name)?.as_slice::<f32>()?;
        predictions.extend(scores.chunks_exact(classes).take(end - first).map(best));
        part.advance((end - first) as u64)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let correct = predictions.iter().zip(&images.labels).filter(|(p, l)| **p == usize::from(**l)).count();
    Ok(Evaluation { correct, images_per_s: total as f64 / seconds.max(1e-9), predictions })
}

/// The one input and the one output, and the number of classes.
fn ports<'a>(session: &'a Session, images: &ImageSet) -> Result<(&'a Port, &'a Port, usize)> {
    let compiled = session.compiled();
    let ([input], [output]) = (compiled.inputs(), compiled.outputs()) else {
        let (inputs, outputs) = (compiled.inputs().len(), compiled.outputs().len());
        return Err(Error::invalid(format!(
            "a classifier takes one tensor and returns one; this model takes {inputs} and returns {outputs}"
        )));
    };
    let [channels, height, width] = images.image_shape();
    let takes = input.ty.dtype == DType::F32 && input.ty.shape.len() == 4 && input.ty.shape[0] > 0;
    if !takes || input.ty.shape[1..] != [channels, height, width] {
        return Err(Error::invalid(format!(
            "the images are f32[batch, {channels}, {height}, {width}], the model's input `{}` is {}; choose the data set it was trained for",
            input.name, input.ty
        )));
    }
    let (batch, scores) = (input.ty.shape[0], output.ty.num_elems());
    let classes = scores / batch;
    if output.ty.dtype != DType::F32 || output.ty.shape.first() != Some(&batch) || classes < 2 {
        return Err(Error::invalid(format!(
            "the output `{}` is {}; a classifier of {batch} images returns f32[{batch}, classes]",
            output.name, output.ty
        )));
    }
    Ok((input, output, classes))
}

/// The last batch may have too few images; zeros make it whole.
fn fill_up(images: HostTensor, shape: &[usize]) -> Result<HostTensor> {
    if images.shape() == shape {
        return Ok(images);
    }
    let mut values = images.as_slice::<f32>()?.to_vec();
    values.resize(crate::tensor::num_elems(shape)?, 0.0);
    HostTensor::new(shape, values)
}

/// Index of the highest score, the first of equals; a NaN is never the highest.
fn best(scores: &[f32]) -> usize {
    let mut best = 0;
    for (i, score) in scores.iter().enumerate() {
        if *score > scores[best] || scores[best].is_nan() {
            best = i;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_score_wins_and_nan_never_does() {
        assert_eq!(best(&[1.0, 3.0, 3.0]), 1);
        assert_eq!(best(&[f32::NAN, -1.0, f32::NAN]), 1);
        assert_eq!(best(&[-2.0, f32::NEG_INFINITY]), 0);
    }

    #[test]
    fn a_short_batch_is_filled_with_zeros() {
        let image = HostTensor::new([1, 1, 1, 2], vec![1f32, 2.0]).expect("fits");
        let full = fill_up(image, &[3, 1, 1, 2]).expect("filled");
        assert_eq!(full.as_slice::<f32>().expect("f32"), [1.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
