//! Images for simulations by bit-planes, and a small network simulated on a device and on the processor.

use std::ops::Range;
use std::str::FromStr;
use std::time::Instant;

use crate::bitset::simulate::Engine;
use crate::bitset::split::{Images, Split};
use crate::bitset::study::{Study, Wanted};
use crate::bitset::{Encoding, Rule};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::graph::{Graph, TensorType};
use crate::import::ImageSet;
use crate::progress::Work;
use crate::session::{Loader, LoaderOptions};
use crate::suite::eval::{DataSet, Preparation};
use crate::suite::{inputs, samples};
use crate::tensor::HostTensor;
use kernels_gen::DType;
use kernels_gen::threefry::Key;

/// Where images come from: `cifar10:FILE`, `mnist-idx:DIR`, or `random[:N]`, which have no classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Labelled images in files.
    Files(DataSet),
    /// So many random images.
    Random(usize),
}

/// Random images where none are asked for.
const RANDOM: usize = 8;

impl FromStr for Source {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let usage = || Error::invalid("give cifar10:FILE, mnist-idx:DIR or random[:N], N being at least 2");
        match text.strip_prefix("random") {
            Some("") => Ok(Source::Random(RANDOM)),
            Some(rest) => {
                let count = rest.strip_prefix(':').and_then(|n| n.parse().ok()).filter(|n| *n >= 2);
                count.map(Source::Random).ok_or_else(usage)
            }
            None => text.parse().map(Source::Files).map_err(|_| usage()),
        }
    }
}

impl Source {
    /// Name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Source::Files(set) => set.name(),
            Source::Random(_) => "random",
        }
    }

    /// Reads or makes the images for the one input of `graph`.
    ///
    /// # Errors
    ///
    /// Those of reading, and [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where images do not fit the graph.
    pub fn open(&self, graph: &Graph, seed: u64) -> Result<Opened> {
        let inputs: Vec<_> = graph.inputs().collect();
        let [(name, input)] = inputs.as_slice() else {
            return Err(Error::invalid(format!("the network takes {} tensors; give one that takes one batch of images", inputs.len())));
        };
        let ty = graph.ty(*input);
        let shape = ty.shape.get(1..).unwrap_or_default().to_vec();
        match self {
            Source::Random(count) => Ok(Opened::Random { count: *count, shape, key: Key::new(seed) }),
            Source::Files(set) => {
                let images = set.read()?;
                if images.image_shape() != shape.as_slice() {
                    return Err(Error::invalid(format!(
                        "the images are {:?}, the model's input `{name}` is {ty}; choose the data set it was trained for",
                        images.image_shape()
                    )));
                }
                Ok(Opened::Labelled { images, preparation: set.preparation() })
            }
        }
    }
}

/// Images that are there.
#[derive(Debug, Clone, PartialEq)]
pub enum Opened {
    /// With their classes.
    Labelled {
        /// The images.
        images: ImageSet,
        /// How bytes become what the network takes.
        preparation: Preparation,
    },
    /// Random numbers.
    Random {
        /// Number of images.
        count: usize,
        /// Shape of an image.
        shape: Vec<usize>,
        /// Of the numbers.
        key: Key,
    },
}

impl Images for Opened {
    fn count(&self) -> usize {
        match self {
            Opened::Labelled { images, .. } => images.len(),
            Opened::Random { count, .. } => *count,
        }
    }

    fn batch(&self, range: Range<usize>, batch: usize) -> Result<HostTensor> {
        match self {
            Opened::Labelled { images, preparation } => {
                let Preparation { scale, mean, std, reversed } = preparation;
                let found = images.batch(range, *scale, mean, std, *reversed)?;
                let shape = [&[batch], &found.shape()[1..]].concat();
                let mut values = found.as_slice::<f32>()?.to_vec();
                values.resize(crate::tensor::num_elems(&shape)?, 0.0);
                HostTensor::new(shape, values)
            }
            Opened::Random { shape, key, .. } => {
                let ty = TensorType::new(DType::F32, shape.clone());
                let mut values = Vec::new();
                for image in range {
                    values.extend_from_slice(inputs::random(&ty, key.stream(image as u64))?.as_slice::<f32>()?);
                }
                let shape = [&[batch], shape.as_slice()].concat();
                values.resize(crate::tensor::num_elems(&shape)?, 0.0);
                HostTensor::new(shape, values)
            }
        }
    }

    fn label(&self, at: usize) -> Option<usize> {
        match self {
            Opened::Labelled { images, .. } => images.labels.get(at).map(|label| usize::from(*label)),
            Opened::Random { .. } => None,
        }
    }
}

/// A simulation on a device beside the same on the processor.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Network, rule and code.
    pub name: String,
    /// What was saved, in words.
    pub found: String,
    /// Whether device and processor agree in every count and class, and exact rules with no rule.
    pub agrees: bool,
    /// Time of the device, in milliseconds.
    pub ms: f64,
}

/// Simulates a small network with random weights on random images, by several rules, on `device` and on the processor.
pub fn trials(device: &Device, seed: u64, work: &Work<'_>) -> Result<Vec<Trial>> {
    const BATCH: usize = 4;
    let loader = Loader::new(device, LoaderOptions { cache_dir: None, ..LoaderOptions::default() });
    let graph = samples::cnn(Key::new(seed).stream(7), BATCH)?;
    let images = Source::Random(2 * BATCH).open(&graph, seed)?;
    let split = Split { calibrate: 0..BATCH, tune: BATCH..BATCH, test: BATCH..2 * BATCH };
    let studies = [Engine::Gpu, Engine::Cpu].map(|engine| Study::new(&loader, &graph, &images, split.clone(), 8, engine, work));
    let [gpu, cpu] = studies;
    let (gpu, cpu) = (gpu?, cpu?);
    let rules = [
        (Rule::None, Encoding::Pm1),
        (Rule::R0, Encoding::Inverted),
        (Rule::PositiveFirst, Encoding::Sign),
        (Rule::R1 { z: 1.5 }, Encoding::Pm1),
    ];
    let mut plain: Option<Vec<usize>> = None;
    let mut trials = Vec::new();
    for (rule, encoding) in rules {
        let run = |study: &Study<'_>| {
            let wanted = Wanted { encoding, rule, thresholds: None, audit: true, lanes: vec![1, 4] };
            study.simulate(wanted, &split.test, "simulation", work)
        };
        let start = Instant::now();
        let on_device = run(&gpu)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let by_host = run(&cpu)?;
        let same = on_device.tallies == by_host.tallies && on_device.locks == by_host.locks && on_device.predictions == by_host.predictions;
        let plain = plain.get_or_insert_with(|| on_device.predictions.clone());
        let total = on_device.total();
        trials.push(Trial {
            name: format!("small CNN by bit-planes, {rule} with {encoding}"),
            found: format!("{:.1} % of the operations saved, {:.1} % at most", 100.0 * total.ops_saved(), 100.0 * total.ceiling()),
            agrees: same && (!rule.is_exact() || *plain == on_device.predictions && total.all.killed == 0),
            ms,
        });
    }
    Ok(trials)
}
