//! Cycles and energy of an array that works bit by bit, from counts of one simulation.
//!
//! The baseline is an array like UNPU's, weights bit-serial and activations bit-parallel, which runs all planes. Constants come from the published
//! figures that their table names; how they are put together is derived.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::bitset::account::Tally;
use crate::bitset::encoding::Encoding;
use crate::bitset::layer;
use crate::bitset::rule::Rule;
use crate::error::{Error, Result};
use crate::files;

/// The table of constants as it is shipped.
pub const TABLE: &str = include_str!("constants.txt");

/// Names of the constants, in the order of [`Constants::values`].
const NAMES: [&str; 13] = [
    "lanes",
    "engines",
    "clock_mhz",
    "utilisation",
    "unquantised_bits",
    "plane_op_pj",
    "accumulate_pj",
    "decision_pj",
    "weight_read_pj",
    "activation_read_pj",
    "output_write_pj",
    "dram_pj",
    "images_per_load",
];

/// Constants of the model; the table says what they are and where they come from.
#[derive(Debug, Clone, PartialEq)]
pub struct Constants {
    values: [f64; NAMES.len()],
}

impl Constants {
    /// Those that are shipped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the shipped table is broken.
    pub fn shipped() -> Result<Self> {
        let mut constants = Constants { values: [f64::NAN; NAMES.len()] };
        constants.replace(TABLE)?;
        match constants.values.iter().position(|value| value.is_nan()) {
            Some(at) => Err(Error::malformed(format!("the table of constants has no `{}`", NAMES[at]))),
            None => Ok(constants),
        }
    }

    /// The shipped constants, those replaced that a file names, a line `name value` each; `#` begins a comment.
    ///
    /// # Errors
    ///
    /// Those of reading, and [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) naming the line.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let text = String::from_utf8_lossy(&files::read(&path)?).into_owned();
        let mut constants = Constants::shipped()?;
        constants.replace(&text).map_err(|e| e.context(format_args!("`{}`", path.as_ref().display())))?;
        Ok(constants)
    }

    fn replace(&mut self, text: &str) -> Result<()> {
        for (line, content) in text.lines().enumerate() {
            let words: Vec<&str> = content.split('#').next().unwrap_or_default().split_whitespace().collect();
            let [name, value] = words[..] else {
                if words.is_empty() {
                    continue;
                }
                return Err(Error::malformed(format!("line {}: give `name value`, not `{}`", line + 1, content.trim())));
            };
            let at = NAMES.iter().position(|known| *known == name);
            let at =
                at.ok_or_else(|| Error::malformed(format!("line {}: `{name}` is no constant; there are {}", line + 1, NAMES.join(", "))))?;
            // Energies may be 0, what is divided by may not.
            let is_energy = name.ends_with("_pj");
            let number = value.parse::<f64>().ok().filter(|v| v.is_finite() && (*v > 0.0 || (is_energy && *v == 0.0)));
            self.values[at] = number.ok_or_else(|| Error::malformed(format!("line {}: `{value}` is no value of `{name}`", line + 1)))?;
        }
        Ok(())
    }

    /// Names and values.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, f64)> {
        NAMES.into_iter().zip(self.values)
    }

    fn get(&self, name: &str) -> f64 {
        self.values().find(|(known, _)| *known == name).map_or(f64::NAN, |(_, value)| value)
    }
}

/// An array: groups of output channels that share a window and run in lock-step, on engines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArrayGeometry {
    /// Output channels of a group.
    pub group: usize,
    /// One-bit products a cycle, all engines together.
    pub lanes: f64,
    /// Engines, each of which runs one group at a time.
    pub engines: f64,
    /// Cycles from one group to the next.
    pub refill: f64,
    /// Cycles of the decision after each plane.
    pub decision: f64,
}

impl ArrayGeometry {
    /// As many lanes as UNPU has, cut into narrow engines: groups of four channels on 384 engines of 36 lanes, so that a plane takes several cycles
    /// and its decision is a small part of them.
    pub fn narrow(constants: &Constants) -> Self {
        ArrayGeometry { group: 4, lanes: constants.get("lanes"), engines: 16.0 * constants.get("engines"), refill: 1.0, decision: 1.0 }
    }

    /// Parses `group=4,engines=384,lanes=13824,refill=1,decision=1`; what is left out is as in [`ArrayGeometry::narrow`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) naming the part.
    pub fn parse(text: &str, constants: &Constants) -> Result<Self> {
        let mut geometry = ArrayGeometry::narrow(constants);
        for part in text.split(',') {
            let usage = || {
                Error::invalid(format!(
                    "`{part}` is no part of a geometry; give group=N, lanes=N, engines=N (at least 1), refill=CYCLES or decision=CYCLES, with commas \
                     between"
                ))
            };
            let (name, value) = part.split_once('=').ok_or_else(usage)?;
            let least = if matches!(name, "refill" | "decision") { 0 } else { 1 };
            let value = u32::from_str(value).ok().filter(|&v| v >= least).ok_or_else(usage)?;
            match name {
                "group" => geometry.group = value as usize,
                "lanes" => geometry.lanes = f64::from(value),
                "engines" => geometry.engines = f64::from(value),
                "refill" => geometry.refill = f64::from(value),
                "decision" => geometry.decision = f64::from(value),
                _ => return Err(usage()),
            }
        }
        if geometry.engines > geometry.lanes {
            return Err(Error::invalid(format!("`{text}`: {} engines cannot share {} lanes", geometry.engines, geometry.lanes)));
        }
        Ok(geometry)
    }
}

impl fmt::Display for ArrayGeometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArrayGeometry { group, lanes, engines, refill, decision } = self;
        write!(f, "group={group},lanes={lanes},engines={engines},refill={refill},decision={decision}")
    }
}

/// Cycles and picojoules of an image.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// In groups of lanes.
    pub cycles: f64,
    /// Every output on its own, no decisions and no refill: what lock-step and decisions cost is the difference.
    pub cycles_ideal: f64,
    /// Of the baseline, which runs all planes.
    pub cycles_baseline: f64,
    /// Energy, weights from memory included.
    pub energy_pj: f64,
    /// Energy of the baseline.
    pub energy_baseline_pj: f64,
    /// The part of either that reads weights from memory, which stopping does not change.
    pub dram_pj: f64,
}

impl Cost {
    /// Adds that of another layer.
    pub fn add(&mut self, other: &Cost) {
        self.cycles += other.cycles;
        self.cycles_ideal += other.cycles_ideal;
        self.cycles_baseline += other.cycles_baseline;
        self.energy_pj += other.energy_pj;
        self.energy_baseline_pj += other.energy_baseline_pj;
        self.dram_pj += other.dram_pj;
    }

    /// Cycles of the baseline over those here.
    pub fn speedup(&self) -> f64 {
        self.cycles_baseline / self.cycles
    }

    /// [`Cost::speedup`] of ideal execution.
    pub fn speedup_ideal(&self) -> f64 {
        self.cycles_baseline / self.cycles_ideal
    }

    /// Energy of the baseline over that here.
    pub fn energy_ratio(&self) -> f64 {
        self.energy_baseline_pj / self.energy_pj
    }

    /// [`Cost::energy_ratio`] without reading weights from memory.
    pub fn energy_ratio_on_chip(&self) -> f64 {
        (self.energy_baseline_pj - self.dram_pj) / (self.energy_pj - self.dram_pj)
    }
}

/// What is counted of a layer over `images`.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    /// Shape.
    pub shape: &'a layer::Geometry,
    /// Bits of a weight.
    pub bits: u32,
    /// The code.
    pub encoding: Encoding,
    /// The rule.
    pub rule: Rule,
    /// Operations and steps.
    pub tally: &'a Tally,
    /// Steps of groups of [`ArrayGeometry::group`] channels together.
    pub lock_steps: u64,
    /// Part of the weights that is positive.
    pub positive: f64,
    /// Images.
    pub images: u64,
}

/// Cost of an integer layer.
pub fn layer_cost(counted: &Counted<'_>, geometry: &ArrayGeometry, constants: &Constants) -> Cost {
    let &Counted { shape, bits, encoding, rule, tally, lock_steps, positive, images } = counted;
    let get = |name: &str| constants.get(name);
    let (images, taps) = (images.max(1) as f64, shape.taps() as f64);
    let of_group = shape.outputs / shape.groups;
    let group = geometry.group.min(of_group);
    let groups = (shape.positions() * shape.groups * of_group.div_ceil(group)) as f64;
    let (planes, steps) = (f64::from(encoding.planes(bits)), lock_steps as f64 / images);
    let width = (geometry.lanes / geometry.engines).max(1.0);
    let decision = if rule == Rule::None { 0.0 } else { geometry.decision };
    // Cycles of one plane over some taps of all channels of a group.
    let plane = |taps: f64| (group as f64 * taps / width).ceil() + decision;
    // Weights of one plane that a group reads, in units of 64 bits; signed digits have two bits.
    let digit_bits = if encoding == Encoding::Csd { 2.0 } else { 1.0 };
    let read = |taps: f64| group as f64 * taps * digit_bits / 64.0;
    let (of_cycles, of_reads) = if rule == Rule::PositiveFirst {
        let first = groups * planes;
        let rest = (steps - first).max(0.0);
        let (up, down) = ((taps * positive).round(), taps - (taps * positive).round());
        (first * plane(up) + rest * plane(down), first * read(up) + rest * read(down))
    } else {
        (steps * plane(taps), steps * read(taps))
    };
    // Signs are read once for each output.
    let signs = if encoding == Encoding::Sign { groups * read(taps) } else { 0.0 };
    let outputs = tally.all.outputs as f64 / images;
    let own_steps = tally.all.steps as f64 / images;
    let lanes = geometry.lanes * get("utilisation");
    let macs = shape.macs() as f64;
    let shared = groups * taps * 8.0 / 64.0 * get("activation_read_pj") + outputs * 8.0 / 64.0 * get("output_write_pj");
    let weights = shape.outputs as f64 * taps * f64::from(bits) / 32.0;
    let dram = weights * get("dram_pj") / get("images_per_load");
    let asked = if rule == Rule::None { 0.0 } else { own_steps };
    Cost {
        cycles: (of_cycles + groups * geometry.refill) / geometry.engines / get("utilisation"),
        cycles_ideal: tally.ops as f64 / images / lanes,
        cycles_baseline: (macs * f64::from(bits) / get("lanes")).ceil() / get("utilisation"),
        energy_pj: tally.ops as f64 / images * get("plane_op_pj")
            + own_steps * get("accumulate_pj")
            + asked * get("decision_pj")
            + (of_reads + signs) * get("weight_read_pj")
            + shared
            + dram,
        energy_baseline_pj: baseline_pj(macs, outputs, f64::from(bits), constants) + shared + dram,
        dram_pj: dram,
    }
}

/// Cost of a layer that is run in full, by the array as by the baseline.
pub fn full_cost(shape: &layer::Geometry, geometry: &ArrayGeometry, constants: &Constants) -> Cost {
    let get = |name: &str| constants.get(name);
    let (taps, bits, macs) = (shape.taps() as f64, get("unquantised_bits"), shape.macs() as f64);
    let of_group = shape.outputs / shape.groups.max(1);
    let groups = (shape.positions() * shape.groups * of_group.div_ceil(geometry.group.min(of_group).max(1))) as f64;
    let outputs = (shape.positions() * shape.outputs) as f64;
    let cycles = (macs * bits / get("lanes")).ceil() / get("utilisation");
    let shared = groups * taps * 8.0 / 64.0 * get("activation_read_pj") + outputs * 8.0 / 64.0 * get("output_write_pj");
    let dram = shape.outputs as f64 * taps * bits / 32.0 * get("dram_pj") / get("images_per_load");
    let energy = baseline_pj(macs, outputs, bits, constants) + shared + dram;
    Cost { cycles, cycles_ideal: cycles, cycles_baseline: cycles, energy_pj: energy, energy_baseline_pj: energy, dram_pj: dram }
}

/// Products, sums and weights of all planes, in picojoules.
fn baseline_pj(macs: f64, outputs: f64, bits: f64, constants: &Constants) -> f64 {
    let get = |name: &str| constants.get(name);
    macs * bits * get("plane_op_pj") + outputs * bits * get("accumulate_pj") + macs * bits / 64.0 * get("weight_read_pj")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitset::ChannelTally;
    use crate::bitset::cases::random_layer;
    use kernels_gen::threefry::Key;

    #[test]
    fn constants_are_read_and_replaced_and_wrong_ones_named() {
        let mut constants = Constants::shipped().expect("complete");
        assert_eq!(constants.get("lanes"), 13_824.0);
        constants.replace("# mine\nlanes 100 # fewer\n\ndram_pj 0\n").expect("is right");
        assert_eq!((constants.get("lanes"), constants.get("dram_pj"), constants.get("engines")), (100.0, 0.0, 24.0));
        for (text, part) in
            [("lane 3", "line 1: `lane`"), ("\nlanes", "line 2"), ("lanes 0", "`0`"), ("lanes nan", "nan"), ("lanes 1 2", "give")]
        {
            let error = constants.replace(text).expect_err("refused").to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn geometries_are_read_and_written() {
        let constants = Constants::shipped().expect("complete");
        let geometry = ArrayGeometry::parse("group=8,engines=192,refill=0", &constants).expect("is right");
        assert_eq!(geometry.to_string(), "group=8,lanes=13824,engines=192,refill=0,decision=1");
        assert_eq!(ArrayGeometry::parse(&geometry.to_string(), &constants).expect("reads"), geometry);
        for text in ["", "group", "group=0", "groups=1", "group=1.5", "lanes=3,engines=4", "refill=-1"] {
            assert!(ArrayGeometry::parse(text, &constants).is_err(), "{text}");
        }
    }

    #[test]
    fn a_layer_that_runs_all_planes_costs_what_the_baseline_does_and_one_that_stops_less() {
        let constants = Constants::shipped().expect("complete");
        let shape = crate::bitset::Geometry {
            channels: 16,
            size: [8, 8],
            outputs: 16,
            kernel: [3, 3],
            strides: [1, 1],
            pads_low: [1, 1],
            pads_high: [1, 1],
            dilations: [1, 1],
            groups: 1,
        };
        let layer = random_layer(shape, 8, Key::new(1));
        let cost = |rule: Rule, steps: u64| {
            let channel = ChannelTally { outputs: 64, steps: 64 * steps, ..ChannelTally::default() };
            let tally = Tally::of(&layer, Encoding::Pm1, rule, &vec![channel; 16]);
            let counted = Counted {
                shape: &shape,
                bits: 8,
                encoding: Encoding::Pm1,
                rule,
                tally: &tally,
                lock_steps: 64 * 4 * steps,
                positive: 0.5,
                images: 1,
            };
            layer_cost(&counted, &ArrayGeometry { refill: 0.0, ..ArrayGeometry::narrow(&constants) }, &constants)
        };
        let full = cost(Rule::None, 8);
        // 64 windows x 16 channels x 144 taps x 8 planes, 13,824 a cycle: 85.3 cycles, of which the baseline starts an 86th.
        assert!((full.cycles - full.cycles_ideal).abs() < 1e-9 && full.cycles_baseline == 86.0, "{full:?}");
        assert!((full.energy_ratio() - 1.0).abs() < 1e-12, "{full:?}");
        // Half of the planes, with a decision after each: 17 cycles instead of 16.
        let half = cost(Rule::R0, 4);
        assert!((half.speedup_ideal() - 2.0 * 86.0 * 3.0 / 256.0).abs() < 1e-9, "{half:?}");
        assert!((half.cycles / half.cycles_ideal - 17.0 / 16.0).abs() < 1e-9, "{half:?}");
        assert!(half.energy_ratio() > 1.0 && half.energy_ratio() < 2.0 && half.energy_ratio_on_chip() > half.energy_ratio());
    }
}
