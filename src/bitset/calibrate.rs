//! Thresholds from images: what partial sums of outputs that end positive are, and what the taps of a kernel hold.

use rayon::prelude::*;

use crate::bitset::account::{ChannelTally, Tally};
use crate::bitset::encoding::Encoding;
use crate::bitset::layer::{Layer, Thresholds};
use crate::bitset::rule::Rule;
use crate::error::{Error, Result};

/// Prices that are tried for a budget.
const PRICES: usize = 24;

/// Times that all thresholds are chosen anew for a price.
const SWEEPS: usize = 3;

/// Partial sums of some outputs of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartialSums {
    /// By output, then by planes done: those after one plane come first; not those after the last.
    sums: Vec<Vec<i64>>,
    /// What the outputs end at.
    ends: Vec<i64>,
    /// Their channels.
    channels: Vec<u32>,
}

/// Sums of the activations under each tap, of their squares, and how many windows they are of; by group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TapStatistics {
    windows: u64,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

/// One activation under a tap; 0 in the padding.
fn activation(layer: &Layer, image: &[u8], group: usize, position: usize, tap: usize) -> i64 {
    layer.geometry.under(group, position, tap).map_or(0, |place| i64::from(image[place]))
}

/// Activations of an image, or an error where `activations` are not whole images.
fn image_len(layer: &Layer, activations: &[u8]) -> Result<usize> {
    let per_image = layer.geometry.channels * layer.geometry.size[0] * layer.geometry.size[1];
    if activations.is_empty() || !activations.len().is_multiple_of(per_image) {
        return Err(Error::invalid(format!(
            "calibration takes whole images of {per_image} activations, at least one; {} activations are given",
            activations.len()
        )));
    }
    Ok(per_image)
}

impl PartialSums {
    /// The partial sums of every `every`th output of `activations`, `[images, channels, height, width]`. `every` is best prime to the number of
    /// windows and of channels, so that all of them are met.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a layer that is not in order, and activations that are not whole images.
    pub fn sample(layer: &Layer, encoding: Encoding, activations: &[u8], residual: Option<&[i32]>, every: usize) -> Result<Self> {
        layer.check()?;
        let per_image = image_len(layer, activations)?;
        let (positions, outputs, taps) = (layer.geometry.positions(), layer.geometry.outputs, layer.geometry.taps());
        let count = activations.len() / per_image * positions * outputs;
        if residual.is_some_and(|residual| residual.len() != count) || every == 0 {
            return Err(Error::invalid(format!(
                "{count} outputs and as many residuals are sampled every 1 or more; given is every {every}"
            )));
        }
        let planes = encoding.planes(layer.bits);
        let one = |at: usize| {
            let (image, output, position) = (at / (outputs * positions), at / positions % outputs, at % positions);
            let group = output / (outputs / layer.geometry.groups);
            let image = &activations[image * per_image..][..per_image];
            let window: Vec<i64> = (0..taps).map(|tap| activation(layer, image, group, position, tap)).collect();
            let s1: i64 = window.iter().sum();
            let mean = (layer.mean_q16 * s1 + (1 << 15)) >> 16;
            let q = &layer.q[output * taps..][..taps];
            let kept: i64 = q.iter().zip(&window).filter(|(q, _)| **q != 0).map(|(_, a)| a).sum();
            let mut partial = layer.bias[output] + mean + residual.map_or(0, |residual| i64::from(residual[at])) + encoding.offset() * kept;
            let mut sums: Vec<i64> = (0..planes)
                .map(|plane| {
                    let digits = q.iter().zip(&window).map(|(&q, a)| i64::from(encoding.digit(q, layer.bits, plane)) * a);
                    partial += digits.sum::<i64>() * encoding.weight(layer.bits, plane);
                    partial
                })
                .collect();
            let end = sums.pop().unwrap_or(partial);
            (sums, end)
        };
        let sampled: Vec<usize> = (0..count).step_by(every).collect();
        let channels = sampled.iter().map(|at| (at / positions % outputs) as u32).collect();
        let (sums, ends) = sampled.into_par_iter().map(one).unzip();
        Ok(PartialSums { sums, ends, channels })
    }

    /// Adds the outputs of another sample of the same layer.
    pub fn extend(&mut self, other: PartialSums) {
        self.sums.extend(other.sums);
        self.ends.extend(other.ends);
        self.channels.extend(other.channels);
    }

    /// Number of outputs.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Thresholds of R2 for each channel: those that save the most planes while they stop at most `budget` of the mass of outputs that end positive,
    /// all channels together.
    ///
    /// What a channel or a plane may kill is not shared out beforehand: a killed output costs its value times a price, the same for all channels, the
    /// thresholds of all planes are chosen in turn, each with the others as they are, and the price is bisected until the mass fits the budget.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a budget outside 0 to 1 and a sample without outputs.
    pub fn thresholds(&self, layer: &Layer, encoding: Encoding, budget: f64) -> Result<Thresholds> {
        if self.is_empty() || !(0.0..=1.0).contains(&budget) {
            return Err(Error::invalid(format!(
                "thresholds need outputs of calibration and a budget from 0 to 1; there are {} outputs and the budget is {budget}",
                self.len()
            )));
        }
        let asked = encoding.planes(layer.bits) as usize - 1;
        let mass = self.ends.iter().map(|&end| end.max(0) as f64).sum::<f64>();
        let allowed = budget * mass;
        let mut choices: Vec<Choice> = (0..layer.geometry.outputs).map(|_| Choice::new(asked)).collect();
        for ((sums, &end), &channel) in self.sums.iter().zip(&self.ends).zip(&self.channels) {
            choices[channel as usize].push(sums, end);
        }
        choices.par_iter_mut().for_each(Choice::sort);
        let mut improved = |price: f64| {
            choices.par_iter_mut().for_each(|choice| choice.improve(price));
            let outcomes = choices.iter().map(|choice| choice.outcome());
            let (made, killed) = outcomes.fold((0, 0.0), |(made, killed), (m, k)| (made + m, killed + k));
            let rows: Vec<Vec<i64>> = choices.iter().map(|choice| choice.row.clone()).collect();
            (made, killed, rows)
        };
        // No price is too high: nothing is killed.
        let (mut planes, _, mut best) = improved(f64::INFINITY);
        // Prices are planes for the whole mass.
        let (mut low, mut high) = (1e-9f64, 1e9f64);
        for _ in 0..PRICES {
            let price = (low * high).sqrt();
            let (made, killed, rows) = improved(price * self.len() as f64 / mass.max(1.0));
            if killed > allowed {
                low = price;
                continue;
            }
            high = price;
            if made < planes {
                (best, planes) = (rows, made);
            }
        }
        let asked = |threshold: i64| (threshold > i64::MIN).then_some(threshold);
        Ok(best.into_iter().map(|row| row.into_iter().map(asked).collect()).collect())
    }

    /// Counts of the sampled outputs with thresholds.
    pub fn tally(&self, layer: &Layer, encoding: Encoding, thresholds: &Thresholds) -> Tally {
        let all = encoding.planes(layer.bits);
        let mut channel = ChannelTally::default();
        for ((sums, &end), &of) in self.sums.iter().zip(&self.ends).zip(&self.channels) {
            let row = thresholds.get(of as usize).map(Vec::as_slice).unwrap_or_default();
            let is_below = |(sum, threshold): (&i64, &Option<i64>)| threshold.is_some_and(|threshold| *sum < threshold);
            let stopped = sums.iter().zip(row).position(is_below);
            channel.count(stopped.map_or(all, |plane| plane as u32 + 1), stopped.is_some(), end);
        }
        Tally::of(layer, encoding, Rule::R2 { budget: 0.0 }, &[channel])
    }
}

/// Thresholds of a channel that are being chosen.
struct Choice {
    /// Partial sums and outputs by plane, in order.
    order: Vec<Vec<(i64, u32)>>,
    ends: Vec<i64>,
    /// One for each plane; what lies below is stopped.
    row: Vec<i64>,
}

impl Choice {
    fn new(asked: usize) -> Self {
        Choice { order: vec![Vec::new(); asked], ends: Vec::new(), row: vec![i64::MIN; asked] }
    }

    fn push(&mut self, sums: &[i64], end: i64) {
        let at = self.ends.len() as u32;
        self.order.iter_mut().zip(sums).for_each(|(order, &sum)| order.push((sum, at)));
        self.ends.push(end);
    }

    fn sort(&mut self) {
        self.order.iter_mut().for_each(|order| order.sort_unstable());
    }

    /// The plane in which each output is stopped; the number of planes where it is not.
    fn stops(&self) -> Vec<u8> {
        let mut stops = vec![self.row.len() as u8; self.ends.len()];
        for (plane, (order, &threshold)) in self.order.iter().zip(&self.row).enumerate().rev() {
            let below = order.partition_point(|(sum, _)| *sum < threshold);
            order[..below].iter().for_each(|(_, at)| stops[*at as usize] = plane as u8);
        }
        stops
    }

    /// Planes that are made, and the mass that is killed.
    fn outcome(&self) -> (u64, f64) {
        let never = self.row.len() as u8;
        let of = |(made, killed): (u64, f64), (&stop, &end): (&u8, &i64)| {
            (made + u64::from(stop) + 1, killed + if stop < never { end.max(0) as f64 } else { 0.0 })
        };
        self.stops().iter().zip(&self.ends).fold((0, 0.0), of)
    }

    /// Chooses all thresholds anew, the last plane's first, so that planes saved less `price` times the mass killed is the most.
    fn improve(&mut self, price: f64) {
        let never = self.row.len() as u8;
        // What was chosen for another price would keep outputs stopped where they are.
        self.row.fill(i64::MIN);
        for _ in 0..SWEEPS {
            let first = self.stops();
            // The plane in which an output that reaches the one at hand is stopped after it.
            let mut later = vec![never; self.ends.len()];
            for plane in (0..self.row.len()).rev() {
                let order = &self.order[plane];
                let reached = order.iter().filter(|(_, at)| usize::from(first[*at as usize]) >= plane);
                let (mut gain, mut best, mut threshold) = (0.0, 0.0, i64::MIN);
                let mut before: Option<i64> = None;
                for &(sum, at) in reached {
                    if before.is_some_and(|before| before < sum) && gain > best {
                        (best, threshold) = (gain, sum);
                    }
                    let (after, end) = (later[at as usize], self.ends[at as usize]);
                    let lost = if after == never && end > 0 { price * end as f64 } else { 0.0 };
                    gain += f64::from(after) - plane as f64 - lost;
                    before = Some(sum);
                }
                if gain > best {
                    threshold = before.map_or(threshold, |before| before + 1);
                }
                self.row[plane] = threshold;
                let below = order.partition_point(|(sum, _)| *sum < threshold);
                order[..below].iter().for_each(|(_, at)| later[*at as usize] = plane as u8);
            }
        }
    }
}

impl TapStatistics {
    /// Adds the windows of `activations`, `[images, channels, height, width]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a layer that is not in order, and activations that are not whole images.
    pub fn add(&mut self, layer: &Layer, activations: &[u8]) -> Result<()> {
        layer.check()?;
        let per_image = image_len(layer, activations)?;
        let (positions, taps) = (layer.geometry.positions(), layer.geometry.taps());
        let count = layer.geometry.groups * taps;
        self.sums.resize(count, 0.0);
        self.squares.resize(count, 0.0);
        for image in activations.chunks(per_image) {
            for at in 0..count {
                let values = (0..positions).map(|position| activation(layer, image, at / taps, position, at % taps));
                let (sum, square) = values.fold((0, 0), |(sum, square), a| (sum + a, square + a * a));
                self.sums[at] += sum as f64;
                self.squares[at] += square as f64;
            }
            self.windows += positions as u64;
        }
        Ok(())
    }

    /// Thresholds of R3: `z` standard deviations below what the digits that are left add on average, each tap having its own mean and variance.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where no windows were added.
    pub fn thresholds(&self, layer: &Layer, encoding: Encoding, z: f64) -> Result<Thresholds> {
        if self.windows == 0 {
            return Err(Error::invalid("thresholds need windows of calibration; there are none"));
        }
        let (taps, planes, windows) = (layer.geometry.taps(), encoding.planes(layer.bits), self.windows as f64);
        let of_group = layer.geometry.outputs / layer.geometry.groups;
        let row = |(output, q): (usize, &[i32])| {
            let first = output / of_group * taps;
            let threshold = |done: u32| {
                let (mut mean, mut variance) = (0.0, 0.0);
                for (tap, &q) in q.iter().enumerate() {
                    let left =
                        (done..planes).map(|plane| i64::from(encoding.digit(q, layer.bits, plane)) * encoding.weight(layer.bits, plane));
                    let left = left.sum::<i64>() as f64;
                    let of_tap = self.sums[first + tap] / windows;
                    mean += left * of_tap;
                    variance += left * left * (self.squares[first + tap] / windows - of_tap * of_tap).max(0.0);
                }
                Some((-mean - z * variance.sqrt()).round() as i64)
            };
            (1..planes).map(threshold).collect()
        };
        Ok(layer.q.chunks(taps).enumerate().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitset::cases::{GEOMETRIES, random_activations, random_layer};
    use crate::bitset::reference;
    use kernels_gen::threefry::Key;

    #[test]
    fn a_budget_is_kept_and_a_larger_one_saves_more() {
        let layer = random_layer(GEOMETRIES[0], 8, Key::new(1));
        let activations = random_activations(&layer.geometry, 40, Key::new(2));
        for encoding in Encoding::ALL {
            let sample = PartialSums::sample(&layer, encoding, &activations, None, 1).expect("samples");
            let mut before = -1.0;
            for budget in [0.0, 0.002, 0.02, 0.2] {
                let thresholds = sample.thresholds(&layer, encoding, budget).expect("finds");
                let rule = Rule::R2 { budget };
                let outcome = reference::run(&layer, encoding, rule, Some(&thresholds), &activations, None).expect("runs");
                let tally = Tally::of_outcome(&layer, encoding, rule, &outcome);
                assert!(tally.killed_mass() <= budget && tally.ops_saved() >= before - 0.002, "{encoding} {budget}: {tally:?}");
                before = tally.ops_saved();
            }
            assert!(before > 0.1, "{encoding}: {before}");
        }
    }

    #[test]
    fn weights_that_are_known_stop_more_than_weights_that_are_not() {
        let layer = random_layer(GEOMETRIES[3], 8, Key::new(3));
        let activations = random_activations(&layer.geometry, 400, Key::new(4));
        let mut statistics = TapStatistics::default();
        statistics.add(&layer, &activations).expect("whole images");
        let tally = |rule, thresholds: Option<&Thresholds>| {
            let outcome = reference::run(&layer, Encoding::Pm1, rule, thresholds, &activations, None).expect("runs");
            Tally::of_outcome(&layer, Encoding::Pm1, rule, &outcome)
        };
        let aware = statistics.thresholds(&layer, Encoding::Pm1, 2.0).expect("finds");
        let (known, blind) = (tally(Rule::R3 { z: 2.0 }, Some(&aware)), tally(Rule::R1 { z: 2.0 }, None));
        assert!(known.ops_saved() > blind.ops_saved(), "{} and {}", known.ops_saved(), blind.ops_saved());
        assert!(known.killed() < 0.1, "{}", known.killed());
    }

    #[test]
    fn calibration_without_images_is_refused() {
        let layer = random_layer(GEOMETRIES[3], 8, Key::new(5));
        assert!(PartialSums::sample(&layer, Encoding::Pm1, &[], None, 1).is_err());
        assert!(PartialSums::sample(&layer, Encoding::Pm1, &[0; 38], None, 1).is_err());
        assert!(PartialSums::sample(&layer, Encoding::Pm1, &[0; 37], None, 0).is_err());
        assert!(PartialSums::default().thresholds(&layer, Encoding::Pm1, 0.1).is_err());
        assert!(TapStatistics::default().thresholds(&layer, Encoding::Pm1, 1.0).is_err());
        assert!(TapStatistics::default().add(&layer, &[]).is_err());
    }
}
