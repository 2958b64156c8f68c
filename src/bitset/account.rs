//! What stopping saved and what it cost, in counts of integers.

use crate::bitset::Encoding;
use crate::bitset::layer::Layer;
use crate::bitset::reference::Outcome;
use crate::bitset::rule::Rule;

/// Counts over the outputs of one channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelTally {
    /// Outputs.
    pub outputs: u64,
    /// Steps made, all outputs together.
    pub steps: u64,
    /// Outputs that were stopped.
    pub stopped: u64,
    /// Outputs that were stopped and would have ended positive.
    pub killed: u64,
    /// Outputs that end, without a stop, at 0 or below; where stopped ones are not run to their end, those count as such.
    pub zeros: u64,
    /// What the killed outputs would have been, together, in units of the layer.
    pub killed_mass: u64,
    /// What all outputs that end positive would have been, together.
    pub mass: u64,
}

impl ChannelTally {
    /// Counts one output: the steps it made, whether it was stopped, and its value.
    pub fn count(&mut self, steps: u32, is_stopped: bool, exact: i64) {
        let positive = exact.max(0) as u64;
        let killed = is_stopped && exact > 0;
        self.outputs += 1;
        self.steps += u64::from(steps);
        self.stopped += u64::from(is_stopped);
        self.killed += u64::from(killed);
        self.zeros += u64::from(exact <= 0);
        self.killed_mass += if killed { positive } else { 0 };
        self.mass += positive;
    }

    /// Adds the counts of other outputs of the channel.
    pub fn add(&mut self, other: &ChannelTally) {
        self.outputs += other.outputs;
        self.steps += other.steps;
        self.stopped += other.stopped;
        self.killed += other.killed;
        self.zeros += other.zeros;
        self.killed_mass += other.killed_mass;
        self.mass += other.mass;
    }

    /// Takes off the counts of `images` of the `batch` equal images that `other` is of.
    pub fn take_off(&mut self, other: &ChannelTally, images: u64, batch: u64) {
        let part = |count: u64| count / batch * images;
        self.outputs -= part(other.outputs);
        self.steps -= part(other.steps);
        self.stopped -= part(other.stopped);
        self.killed -= part(other.killed);
        self.zeros -= part(other.zeros);
        self.killed_mass -= part(other.killed_mass);
        self.mass -= part(other.mass);
    }
}

/// Counts over the outputs of a layer, in operations of one plane and one tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Counts of all channels together.
    pub all: ChannelTally,
    /// Operations that were made.
    pub ops: u64,
    /// Operations of all bits of all weights.
    pub ops_all: u64,
    /// The most operations that could be saved without harm, in units of 1/(bits * taps) outputs: see [`Tally::ceiling`].
    savable: u64,
}

impl Tally {
    /// Sums the counts of a layer's channels.
    pub fn of(layer: &Layer, encoding: Encoding, rule: Rule, channels: &[ChannelTally]) -> Self {
        let taps = layer.geometry.taps() as u64;
        let (bits, planes) = (u64::from(layer.bits), u64::from(encoding.planes(layer.bits)));
        let mut tally = Tally::default();
        for (channel, weights) in channels.iter().zip(layer.q.chunks(taps.max(1) as usize)) {
            let positive = weights.iter().filter(|q| **q > 0).count() as u64;
            tally.all.add(channel);
            tally.ops_all += bits * taps * channel.outputs;
            if rule == Rule::PositiveFirst {
                // Every output runs all planes of its positive weights.
                let first = planes * channel.outputs;
                tally.ops += first * positive + channel.steps.saturating_sub(first) * (taps - positive);
                tally.savable += channel.zeros * bits * (taps - positive);
            } else {
                tally.ops += channel.steps * taps;
                tally.savable += channel.zeros * (bits - 1) * taps;
            }
        }
        tally
    }

    /// Counts of a layer that was run on the processor.
    pub fn of_outcome(layer: &Layer, encoding: Encoding, rule: Rule, outcome: &Outcome) -> Self {
        let positions = layer.geometry.positions();
        let mut channels = vec![ChannelTally::default(); layer.geometry.outputs];
        for (at, (&exact, &steps)) in outcome.exact.iter().zip(&outcome.steps).enumerate() {
            channels[at / positions % layer.geometry.outputs].count(steps, outcome.is_stopped(at), exact);
        }
        Tally::of(layer, encoding, rule, &channels)
    }

    /// Adds the counts of another layer.
    pub fn add(&mut self, other: &Tally) {
        self.all.add(&other.all);
        self.ops += other.ops;
        self.ops_all += other.ops_all;
        self.savable += other.savable;
    }

    /// Part of the operations that was saved; less than 0 where a code has more planes than the weights have bits.
    pub fn ops_saved(&self) -> f64 {
        if self.ops_all == 0 {
            return 0.0;
        }
        // One division, so that what is exactly the ceiling is not rounded above it.
        (self.ops_all as f64 - self.ops as f64) / self.ops_all as f64
    }

    /// The most that a rule could save if it stopped all outputs that end at 0, and no others, after one plane; with
    /// [`Rule::PositiveFirst`], after the positive weights. Needs outputs that were run to their end.
    pub fn ceiling(&self) -> f64 {
        ratio(self.savable, self.ops_all)
    }

    /// Part of the outputs that end at 0 or below without a stop.
    pub fn zero_fraction(&self) -> f64 {
        ratio(self.all.zeros, self.all.outputs)
    }

    /// Part of the outputs ending positive that were stopped.
    pub fn killed(&self) -> f64 {
        ratio(self.all.killed, self.all.outputs - self.all.zeros)
    }

    /// Part of the mass of outputs ending positive that was stopped.
    pub fn killed_mass(&self) -> f64 {
        ratio(self.all.killed_mass, self.all.mass)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
