//! A network, images and their split: calibration, thresholds, and simulations of a range of images.
//!
//! Fine-tuning with termination in the forward pass belongs between [`Study::new`] and the simulations: it changes the weights that
//! [`integer_layers`] takes, and nothing after it.

use std::ops::Range;
use std::time::Instant;

use rayon::prelude::*;

use crate::bitset::account::{ChannelTally, Tally};
use crate::bitset::calibrate::{PartialSums, TapStatistics};
use crate::bitset::encoding::Encoding;
use crate::bitset::layer::Thresholds;
use crate::bitset::network::Network;
use crate::bitset::rule::Rule;
use crate::bitset::simulate::{Engine, IntegerLayer, Simulator, SimulatorOptions, integer_layers, probe};
use crate::bitset::split::{Images, Split};
use crate::compiler::CompileOptions;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::progress::Work;
use crate::session::{Loader, Session};
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// Outputs of a layer whose partial sums are kept.
const SAMPLES: usize = 100_000;

/// Images whose activations the statistics of taps are of.
const STATISTICS: usize = 50;

/// A network in f32 and in integers, with images.
pub struct Study<'a> {
    network: Network,
    images: &'a dyn Images,
    split: Split,
    engine: Engine,
    float: Session,
    plain: Simulator,
}

/// What calibration knows of each integer layer.
#[derive(Debug, Clone)]
pub struct Samples {
    /// Codes that partial sums were made of.
    pub encodings: Vec<Encoding>,
    /// Partial sums, `[encodings][layers]`.
    sums: Vec<Vec<PartialSums>>,
    statistics: Vec<TapStatistics>,
}

/// What of a simulation is wanted.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// How digits are written.
    pub encoding: Encoding,
    /// When outputs are stopped.
    pub rule: Rule,
    /// For rules that take them.
    pub thresholds: Option<Vec<Thresholds>>,
    /// Whether what was stopped wrongly is counted.
    pub audit: bool,
    /// Numbers of output channels in lock-step.
    pub lanes: Vec<usize>,
}

/// What a simulation gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// How digits are written.
    pub encoding: Encoding,
    /// When outputs are stopped.
    pub rule: Rule,
    /// The images.
    pub range: Range<usize>,
    /// The class of the highest score of each.
    pub predictions: Vec<usize>,
    /// How many of them are right, where that is known.
    pub correct: Option<usize>,
    /// Counts of each integer layer.
    pub tallies: Vec<Tally>,
    /// Steps in lock-step of each integer layer, by number of lanes.
    pub locks: Vec<Vec<u64>>,
    /// The numbers of lanes.
    pub lanes: Vec<usize>,
    /// Time of all, in seconds.
    pub seconds: f64,
}

impl Simulated {
    /// Part of the images that is right.
    pub fn accuracy(&self) -> Option<f64> {
        self.correct.map(|correct| correct as f64 / self.predictions.len().max(1) as f64)
    }

    /// Counts of all integer layers together.
    pub fn total(&self) -> Tally {
        let mut sum = Tally::default();
        self.tallies.iter().for_each(|tally| sum.add(tally));
        sum
    }

    /// Steps of layer `at` in lock-step of `lanes`, where that was counted.
    pub fn lock_steps(&self, at: usize, lanes: usize) -> Option<u64> {
        let which = self.lanes.iter().position(|&known| known == lanes)?;
        self.locks.get(at)?.get(which).copied()
    }
}

impl<'a> Study<'a> {
    /// Finds the layers of `graph`, takes the scales of activations from the calibration split, and puts weights on the odd grid of `bits` digits.
    ///
    /// # Errors
    ///
    /// Those of [`Network::new`], [`Split::check`] and [`integer_layers`], and of loading and running.
    pub fn new(
        loader: &Loader,
        graph: &Graph,
        images: &'a dyn Images,
        split: Split,
        bits: u32,
        engine: Engine,
        work: &Work<'_>,
    ) -> Result<Self> {
        crate::bitset::quantise::check_bits(bits)?;
        split.check(images.count())?;
        let network = Network::new(graph)?;
        let (float, _) = loader.load(&probe(&network)?, &CompileOptions::default(), &Work::quiet())?;
        let mut most = vec![0f64; network.terminable().count()];
        each_batch(images, &split.calibrate, network.batch, "calibration", work, |batch, _| {
            let outputs = float.run(&[(&float.compiled().inputs()[0].name, batch)])?;
            for (at, most) in most.iter_mut().enumerate() {
                *most = most.max(outputs.get(&format!("most.{at}"))?.to_f64().first().copied().unwrap_or(0.0));
            }
            Ok(())
        })?;
        let layers = integer_layers(&network, bits, &most)?;
        let options =
            SimulatorOptions { encoding: Encoding::Pm1, rule: Rule::None, thresholds: None, audit: false, lanes: Vec::new(), engine };
        let plain = Simulator::new(loader.device(), loader, &network, &layers, options, work)?;
        Ok(Study { network, images, split, engine, float, plain })
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The integer layers.
    pub fn layers(&self) -> &[IntegerLayer] {
        self.plain.layers()
    }

    /// Which images are used for what.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// What runs the integer layers.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Classes that the network in f32 gives the images `range`, and seconds for it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the network gives no scores, and those of running.
    pub fn float_predictions(&self, range: &Range<usize>, work: &Work<'_>) -> Result<(Vec<usize>, f64)> {
        let mut predictions = Vec::with_capacity(range.len());
        let start = Instant::now();
        let name = &self.float.compiled().inputs()[0].name;
        let (scores, _) = &self.network.graph.outputs()[0];
        each_batch(self.images, range, self.network.batch, "in f32", work, |batch, count| {
            let outputs = self.float.run(&[(name, batch)])?;
            predictions.extend(best(outputs.get(scores)?, self.network.batch, count)?);
            Ok(())
        })?;
        Ok((predictions, start.elapsed().as_secs_f64()))
    }

    /// How many predictions for the images from `first` on are right; `None` where classes are not known.
    pub fn correct(&self, first: usize, predictions: &[usize]) -> Option<usize> {
        let mut correct = 0;
        for (at, prediction) in (first..).zip(predictions) {
            correct += usize::from(self.images.label(at)? == *prediction);
        }
        Some(correct)
    }

    /// Partial sums in each of `encodings`, and statistics of taps, on the calibration split.
    ///
    /// # Errors
    ///
    /// Those of running and of [`PartialSums::sample`].
    pub fn samples(&self, encodings: &[Encoding], work: &Work<'_>) -> Result<Samples> {
        let layers = self.layers();
        let mut samples = Samples {
            encodings: encodings.to_vec(),
            sums: vec![vec![PartialSums::default(); layers.len()]; encodings.len()],
            statistics: vec![TapStatistics::default(); layers.len()],
        };
        let total = self.split.calibrate.len();
        let mut seen = 0;
        each_batch(self.images, &self.split.calibrate, self.network.batch, "partial sums", work, |batch, count| {
            let mut observe = |at: usize, activations: &[u8], residual: Option<&[i32]>| {
                let layer = &layers[at].layer;
                let geometry = &layer.geometry;
                let image = geometry.channels * geometry.size[0] * geometry.size[1];
                let outputs = geometry.outputs * geometry.positions();
                let every = step((total * outputs).div_ceil(SAMPLES), outputs);
                let activations = &activations[..count * image];
                let residual = residual.map(|residual| &residual[..count * outputs]);
                for (&encoding, sums) in encodings.iter().zip(&mut samples.sums) {
                    sums[at].extend(PartialSums::sample(layer, encoding, activations, residual, every)?);
                }
                let rest = STATISTICS.saturating_sub(seen).min(count);
                if rest > 0 {
                    samples.statistics[at].add(layer, &activations[..rest * image])?;
                }
                Ok(())
            };
            self.plain.run_observed(batch, Some(&mut observe))?;
            seen += count;
            Ok(())
        })?;
        Ok(samples)
    }

    /// Thresholds of all layers, `None` for rules that take none; R2 with a budget for each layer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the samples are not of the code.
    pub fn thresholds(&self, samples: &Samples, encoding: Encoding, rule: Rule) -> Result<Option<Vec<Thresholds>>> {
        let layers = self.layers().iter().zip(&samples.statistics);
        match rule {
            Rule::R2 { budget } => self.budgets(samples, encoding, &vec![budget; layers.len()]).map(Some),
            Rule::R3 { z } => layers.map(|(layer, found)| found.thresholds(&layer.layer, encoding, z)).collect::<Result<_>>().map(Some),
            _ => Ok(None),
        }
    }

    /// Thresholds of R2 with a budget for each layer.
    ///
    /// # Errors
    ///
    /// As [`Study::thresholds`].
    pub fn budgets(&self, samples: &Samples, encoding: Encoding, budgets: &[f64]) -> Result<Vec<Thresholds>> {
        let sums = samples.of(encoding)?.par_iter().zip(self.layers()).zip(budgets);
        sums.map(|((sums, layer), &budget)| sums.thresholds(&layer.layer, encoding, budget)).collect()
    }

    /// Simulates the images `range`.
    ///
    /// # Errors
    ///
    /// Those of [`Simulator::with`] and [`Simulator::run_part`].
    pub fn simulate(&self, wanted: Wanted, range: &Range<usize>, what: &str, work: &Work<'_>) -> Result<Simulated> {
        let Wanted { encoding, rule, thresholds, audit, lanes } = wanted;
        let options = SimulatorOptions { encoding, rule, thresholds, audit, lanes: lanes.clone(), engine: self.engine };
        let simulator = self.plain.with(options)?;
        let count = self.layers().len();
        let mut channels: Vec<Vec<ChannelTally>> =
            self.layers().iter().map(|layer| vec![ChannelTally::default(); layer.layer.geometry.outputs]).collect();
        let mut locks = vec![vec![0u64; lanes.len()]; count];
        let mut predictions = Vec::with_capacity(range.len());
        let start = Instant::now();
        each_batch(self.images, range, self.network.batch, what, work, |batch, count| {
            let found = simulator.run_part(batch, count)?;
            let pairs = channels.iter_mut().flatten().zip(found.channels.iter().flatten());
            pairs.for_each(|(sum, channel)| sum.add(channel));
            locks.iter_mut().flatten().zip(found.locks.iter().flatten()).for_each(|(sum, lock)| *sum += lock);
            let (_, scores) = found.outputs.first().ok_or_else(|| Error::invalid("the network has no output"))?;
            predictions.extend(best(scores, self.network.batch, count)?);
            Ok(())
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let tallies = channels.iter().enumerate().map(|(at, channels)| simulator.tally(at, channels)).collect();
        let correct = self.correct(range.start, &predictions);
        Ok(Simulated { encoding, rule, range: range.clone(), predictions, correct, tallies, locks, lanes, seconds })
    }
}

impl Samples {
    /// Partial sums of each layer in a code.
    pub(super) fn of(&self, encoding: Encoding) -> Result<&[PartialSums]> {
        let at = self.encodings.iter().position(|known| *known == encoding);
        let at = at.ok_or_else(|| Error::invalid(format!("no partial sums were taken in encoding `{encoding}`")))?;
        Ok(&self.sums[at])
    }
}

/// The least step of at least `least` that is prime to `count`, so that a sample meets all of it.
fn step(least: usize, count: usize) -> usize {
    let gcd = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (least.max(1)..).find(|&step| gcd(step, count) == 1).unwrap_or(1)
}

fn each_batch(
    images: &dyn Images,
    range: &Range<usize>,
    batch: usize,
    what: &str,
    work: &Work<'_>,
    mut run: impl FnMut(&HostTensor, usize) -> Result<()>,
) -> Result<()> {
    let part = work.part(what, range.len() as u64);
    for first in range.clone().step_by(batch) {
        let end = range.end.min(first + batch);
        run(&images.batch(first..end, batch)?, end - first)?;
        part.advance((end - first) as u64)?;
    }
    Ok(())
}

/// The class of the highest score of each of the first `count` of `batch` rows, the first of equals; a NaN is never the highest.
fn best(scores: &HostTensor, batch: usize, count: usize) -> Result<Vec<usize>> {
    let classes = scores.num_elems() / batch.max(1);
    if scores.dtype() != DType::F32 || scores.shape().first() != Some(&batch) || classes < 2 {
        return Err(Error::invalid(format!(
            "the network gives {}{:?}; a classifier of {batch} images gives f32 scores of at least 2 classes",
            scores.dtype(),
            scores.shape()
        )));
    }
    let rows = scores.as_slice::<f32>()?.chunks_exact(classes).take(count);
    let of_row = |row: &[f32]| {
        let better = |best: usize, at: usize| if row[at] > row[best] || row[best].is_nan() { at } else { best };
        (0..classes).fold(0, better)
    };
    Ok(rows.map(of_row).collect())
}
