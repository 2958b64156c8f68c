//! Simulations by bit-planes as reports.

use super::{Column, Report, Table};
use crate::bitset::compare::Comparison;
use crate::bitset::figures::{
    Figures, PUBLISHED_COMPREEND, PUBLISHED_ENERGY_RATIO, PUBLISHED_OPS_SAVED, PUBLISHED_SNAPEA, PUBLISHED_SPEEDUP,
};
use crate::bitset::machine::{ArrayGeometry, Cost};
use crate::bitset::search::Found;
use crate::bitset::study::{Simulated, Study};
use crate::bitset::{Encoding, Rule, Tally};
use serde_json::Value;

/// Columns by layer; `accuracy` and what compares networks stand in the first row, which is the network.
const LAYERS: [Column; 22] = [
    Column::new("name", "layer"),
    Column::new("stopped", "can be stopped"),
    Column::new("macs", "products"),
    Column::new("taps", "taps"),
    Column::new("accuracy", "accuracy"),
    Column::new("accuracy_float", "in f32"),
    Column::new("ops_saved", "saved"),
    Column::new("ops_saved_network", "of the network"),
    Column::new("ceiling", "ceiling"),
    Column::new("killed", "killed"),
    Column::new("killed_mass", "killed mass"),
    Column::new("zero_fraction", "zeros"),
    Column::new("cycles", "cycles"),
    Column::new("cycles_baseline", "UNPU"),
    Column::new("speedup", "speed-up"),
    Column::new("speedup_ideal", "ideal"),
    Column::new("energy_pj", "pJ"),
    Column::new("energy_ratio", "energy ratio"),
    Column::new("energy_ratio_on_chip", "on chip"),
    Column::new("killed_outputs", "outputs killed"),
    Column::new("fixed_point_error", "rounding at most, units"),
    Column::new("packed_ms", "packed 8-bit product, ms"),
];

/// Columns by array.
const ARRAYS: [Column; 8] = [
    Column::new("geometry", "array"),
    Column::new("cycles", "cycles"),
    Column::new("cycles_baseline", "UNPU"),
    Column::new("speedup", "speed-up"),
    Column::new("speedup_ideal", "ideal"),
    Column::new("energy_pj", "pJ"),
    Column::new("energy_ratio", "energy ratio"),
    Column::new("energy_ratio_on_chip", "on chip"),
];

/// Columns of planes saved by layer, which pages draw.
const PLANES: [Column; 3] =
    [Column::new("row", "layer"), Column::new("planes_saved", "planes saved of an output"), Column::new("share", "share")];

/// Columns of a search.
const TRIALS: [Column; 8] = [
    Column::new("budget_least", "least budget"),
    Column::new("budget_most", "largest"),
    Column::new("raised", "layers raised"),
    Column::new("images", "images"),
    Column::new("accuracy", "accuracy"),
    Column::new("loss", "loss"),
    Column::new("ops_saved", "saved"),
    Column::new("kept", "kept"),
];

/// Columns of the layers of a search.
const BUDGETS: [Column; 5] = [
    Column::new("name", "layer"),
    Column::new("budget", "budget"),
    Column::new("killed_mass", "killed mass"),
    Column::new("ops_saved", "saved"),
    Column::new("thresholds", "thresholds by plane, medians of the channels"),
];

/// Columns of a comparison.
const COMPARED: [Column; 20] = [
    Column::new("rule", "rule"),
    Column::new("encoding", "code"),
    Column::new("like", "like"),
    Column::new("published", "published"),
    Column::new("accuracy", "accuracy"),
    Column::new("changed", "classes changed"),
    Column::new("ops_saved", "saved"),
    Column::new("ops_saved_network", "of the network"),
    Column::new("ceiling", "ceiling"),
    Column::new("killed", "killed"),
    Column::new("killed_mass", "killed mass"),
    Column::new("zero_fraction", "zeros"),
    Column::new("geometry", "array"),
    Column::new("cycles", "cycles"),
    Column::new("cycles_baseline", "UNPU"),
    Column::new("speedup", "speed-up"),
    Column::new("speedup_ideal", "ideal"),
    Column::new("energy_pj", "pJ"),
    Column::new("energy_ratio", "energy ratio"),
    Column::new("energy_ratio_on_chip", "on chip"),
];

/// What `bitset run` found.
#[derive(Debug)]
pub struct BitsetRun<'a> {
    /// Images that are right in f32, where classes are known.
    pub correct_float: Option<usize>,
    /// Time in f32.
    pub float_seconds: f64,
    /// The same without stops.
    pub plain: Option<&'a Simulated>,
    /// The simulation.
    pub found: &'a Simulated,
    /// Its figures on each array; the first is that of the figures.
    pub arrays: Vec<(ArrayGeometry, Figures)>,
    /// What rounding changes at most of an output of each integer layer, in its units.
    pub fixed_point_errors: Vec<f64>,
    /// Milliseconds an image of each integer layer as a packed product of 8-bit integers, where it can be one.
    pub packed: Vec<Option<f64>>,
    /// The loss that was allowed and the search, where there was one.
    pub tuned: Option<(f64, &'a Found)>,
}

fn part(count: Option<usize>, images: usize) -> Value {
    count.map(|count| count as f64 / images.max(1) as f64).into()
}

/// `[ops_saved, ceiling, killed, killed_mass, zero_fraction]`.
fn counts(tally: &Tally) -> [Value; 5] {
    [tally.ops_saved().into(), tally.ceiling().into(), tally.killed().into(), tally.killed_mass().into(), tally.zero_fraction().into()]
}

/// Cycles, those of the baseline, their ratio, the ideal one, energy, its ratio, and that on chip.
fn costs(cost: &Cost) -> [Value; 7] {
    [
        cost.cycles.into(),
        cost.cycles_baseline.into(),
        cost.speedup().into(),
        cost.speedup_ideal().into(),
        cost.energy_pj.into(),
        cost.energy_ratio().into(),
        cost.energy_ratio_on_chip().into(),
    ]
}

impl Report {
    /// Adds a run: figures of the network, and tables of arrays, layers and planes.
    pub fn bitset_run(&mut self, run: &BitsetRun<'_>) {
        let BitsetRun { correct_float, float_seconds, plain, found, arrays, packed, tuned, .. } = run;
        let images = found.predictions.len();
        let Some((geometry, figures)) = arrays.first() else { return };
        let (total, cost) = (&figures.total, &figures.cost);
        self.field("encoding", "code", found.encoding.name(), "");
        self.field("rule", "rule", found.rule.to_string(), "");
        if let Some((max_loss, search)) = tuned {
            self.field("max_loss", "loss allowed on the tuning images", *max_loss, "");
            self.field("tune_accuracy", "accuracy there without stops", search.accuracy, "");
            self.field("tune_trials", "simulations there", search.trials.len(), "");
        }
        self.field("accuracy", "accuracy", part(found.correct, images), "");
        self.field("accuracy_float", "accuracy in f32", part(*correct_float, images), "");
        if let Some(plain) = plain {
            self.field("accuracy_unstopped", "accuracy without stops", part(plain.correct, images), "");
            let changed = plain.predictions.iter().zip(&found.predictions).filter(|(a, b)| a != b).count();
            self.field("changed", "images whose class is another one than without stops", changed, "");
        }
        self.field("ops_saved", "bit operations saved", total.ops_saved(), "of layers that can be stopped");
        self.field("ops_saved_network", "bit operations saved", figures.ops_saved_network, "of the network");
        self.field("published_ops_saved", "published (read)", PUBLISHED_OPS_SAVED, "at no loss, retrained");
        self.field("ceiling", "ceiling without retraining", total.ceiling(), "");
        self.field("ceiling_share", "part of the ceiling", share(total), "");
        self.field("killed", "positive outputs stopped", total.killed(), "");
        self.field("killed_outputs", "positive outputs stopped", total.all.killed, "outputs");
        self.field("killed_mass", "mass of positive outputs stopped", total.killed_mass(), "");
        self.field("zero_fraction", "outputs that end at 0", total.zero_fraction(), "");
        self.field("geometry", "array", geometry.to_string(), "");
        self.field("cycles", "cycles", cost.cycles, "an image");
        self.field("cycles_baseline", "cycles of UNPU (derived model)", cost.cycles_baseline, "an image");
        self.field("speedup", "speed-up over UNPU", cost.speedup(), "");
        self.field("speedup_ideal", "speed-up without groups and decisions", cost.speedup_ideal(), "");
        self.field("published_speedup", "published (read), no loss and 1 %", PUBLISHED_SPEEDUP.to_vec(), "");
        self.field("energy_pj", "energy (derived model, 45 nm)", cost.energy_pj, "pJ an image");
        self.field("energy_ratio", "energy of UNPU over it", cost.energy_ratio(), "");
        self.field("energy_ratio_on_chip", "the same without weights from memory", cost.energy_ratio_on_chip(), "");
        self.field("published_energy_ratio", "published (read), no loss and 1 %", PUBLISHED_ENERGY_RATIO.to_vec(), "");
        self.field("images_per_s", "simulation", images as f64 / found.seconds.max(1e-9), "images/s, every output to its end");
        self.field("float_images_per_s", "f32 on the adapter", images as f64 / float_seconds.max(1e-9), "images/s");
        let all: Option<f64> = packed.iter().copied().sum();
        let per_s = all.filter(|ms| *ms > 0.0).map(|ms| 1e3 / ms);
        self.field("packed_images_per_s", "the same layers as packed 8-bit products there", per_s, "images/s");
        self.layers(run, figures, part(*correct_float, images));
        let mut table = Table::new(&ARRAYS);
        for (geometry, figures) in arrays {
            table.push([vec![geometry.to_string().into()], costs(&figures.cost).to_vec()].concat());
        }
        self.further_table("geometries", "Arrays", table);
        let mut planes = Table::new(&PLANES);
        for layer in figures.layers.iter().filter_map(|layer| Some((&layer.name, layer.tally?))) {
            let (name, tally) = layer;
            let saved = tally.ops_saved().max(0.0);
            let all = tally.ops_all as f64 / tally.all.outputs.max(1) as f64;
            let taps = figures.layers.iter().find(|l| l.name == *name).map_or(1, |l| l.taps) as f64;
            planes.row([name.as_str().into(), (saved * all / taps).into(), saved.into()]);
        }
        self.further_table("planes", "Planes saved by layer", planes);
        if let Some((_, search)) = tuned {
            self.trials("trials", search);
        }
    }

    fn layers(&mut self, run: &BitsetRun<'_>, figures: &Figures, accuracy_float: Value) {
        let BitsetRun { found, fixed_point_errors, packed, .. } = run;
        let mut table = Table::new(&LAYERS);
        let mut row = |name: &str,
                       stopped: &str,
                       macs: u64,
                       taps: Value,
                       accuracy: [Value; 2],
                       tally: Option<&Tally>,
                       network: Value,
                       cost: &Cost,
                       [error, packed]: [Option<f64>; 2]| {
            let [saved, ceiling, killed, mass, zeros] = tally.map_or_else(Default::default, counts);
            let killed_outputs = tally.map(|tally| tally.all.killed).into();
            let [of, in_f32] = accuracy;
            let first = vec![name.into(), stopped.into(), macs.into(), taps, of, in_f32, saved, network, ceiling, killed, mass, zeros];
            table.push([first, costs(cost).to_vec(), vec![killed_outputs, error.into(), packed.into()]].concat());
        };
        let macs = figures.layers.iter().map(|layer| layer.macs).sum();
        let accuracy = [found.accuracy().into(), accuracy_float];
        let rounding = fixed_point_errors.iter().copied().reduce(f64::max);
        let ms: Option<f64> = packed.iter().copied().sum();
        row(
            "network",
            "",
            macs,
            Value::Null,
            accuracy,
            Some(&figures.total),
            figures.ops_saved_network.into(),
            &figures.cost,
            [rounding, ms],
        );
        // What a layer saves of the operations of the network: its own part of them.
        let saved = |tally: &Tally| tally.ops_all as f64 - tally.ops as f64;
        let all = saved(&figures.total) / figures.ops_saved_network;
        let mut integer = fixed_point_errors.iter().zip(packed);
        for layer in &figures.layers {
            let stopped = layer.reason.map_or("yes", |reason| reason.text());
            let network = layer.tally.as_ref().map(|tally| if all.is_finite() { saved(tally) / all } else { 0.0 }).into();
            let of = layer.tally.as_ref().and_then(|_| integer.next()).map_or([None; 2], |(&error, &ms)| [Some(error), ms]);
            row(&layer.name, stopped, layer.macs, layer.taps.into(), Default::default(), layer.tally.as_ref(), network, &layer.cost, of);
        }
        self.table(table);
    }

    fn trials(&mut self, key: &'static str, found: &Found) {
        let mut table = Table::new(&TRIALS);
        for trial in &found.trials {
            let [least, most] = trial.budgets;
            let (accuracy, loss, saved) = (trial.accuracy.into(), trial.loss.into(), trial.ops_saved.into());
            table.row([least.into(), most.into(), trial.raised.into(), trial.images.into(), accuracy, loss, saved, trial.is_kept.into()]);
        }
        self.further_table(key, if key == "rows" { "" } else { "Simulations of the tuning images" }, table);
    }

    /// Adds a search: what it found on the test images, its simulations, and budget and thresholds of each layer.
    pub fn bitset_tune(&mut self, study: &Study<'_>, max_loss: f64, found: &Found, plain: &Simulated, tested: &Simulated) {
        let (images, total) = (tested.predictions.len(), tested.total());
        self.field("encoding", "code", tested.encoding.name(), "");
        self.field("max_loss", "loss allowed on the tuning images", max_loss, "");
        self.field("tune_accuracy", "accuracy there without stops", found.accuracy, "");
        self.field("accuracy", "accuracy", part(tested.correct, images), "");
        self.field("accuracy_unstopped", "accuracy without stops", part(plain.correct, images), "");
        self.field("ops_saved", "bit operations saved", total.ops_saved(), "of layers that can be stopped");
        self.field("ceiling", "ceiling without retraining", total.ceiling(), "");
        self.field("ceiling_share", "part of the ceiling", share(&total), "");
        self.field("killed", "positive outputs stopped", total.killed(), "");
        self.field("killed_mass", "mass of positive outputs stopped", total.killed_mass(), "");
        self.trials("rows", found);
        let mut table = Table::new(&BUDGETS);
        let layers = study.layers().iter().zip(&found.budgets).zip(&found.thresholds).zip(&tested.tallies);
        for (((layer, &budget), thresholds), tally) in layers {
            let name = study.network().layers[layer.at].name.as_str();
            // One for each plane: the median of the channels.
            let asked = thresholds.first().map_or(0, Vec::len);
            let thresholds: Vec<Value> = (0..asked).map(|plane| middle(thresholds, plane).into()).collect();
            table.row([name.into(), budget.into(), tally.killed_mass().into(), tally.ops_saved().into(), thresholds.into()]);
        }
        self.further_table("layers", "Layers", table);
    }

    /// Adds a comparison.
    pub fn bitset_compare(&mut self, found: &Comparison, killed_mass: Option<f64>) {
        self.field("accuracy_float", "accuracy in f32", part(found.correct_float, found.images), "");
        self.field("killed_mass_wanted", "mass that predictive rules kill on tuning images", killed_mass, "");
        self.field("exact_agree", "exact rules change nothing", found.exact_agree, "");
        self.field("published_ops_saved", "published for BitSET (read)", PUBLISHED_OPS_SAVED, "at no loss, retrained");
        let mut table = Table::new(&COMPARED);
        for row in &found.rows {
            let (like, published) = like(row.found.rule, row.found.encoding);
            let [saved, ceiling, killed, mass, zeros] = counts(&row.total);
            for (geometry, cost) in &row.arrays {
                let first = vec![
                    row.found.rule.to_string().into(),
                    row.found.encoding.name().into(),
                    like.into(),
                    published.into(),
                    row.found.accuracy().into(),
                    row.changed.into(),
                    saved.clone(),
                    row.ops_saved_network.into(),
                    ceiling.clone(),
                    killed.clone(),
                    mass.clone(),
                    zeros.clone(),
                    geometry.to_string().into(),
                ];
                table.push([first, costs(cost).to_vec()].concat());
            }
        }
        self.table(table);
    }
}

/// The median of the channels' thresholds after a plane; none where most channels are not asked.
fn middle(thresholds: &[Vec<Option<i64>>], plane: usize) -> Option<i64> {
    let mut row: Vec<Option<i64>> = thresholds.iter().map(|row| row.get(plane).copied().flatten()).collect();
    row.sort_unstable();
    row.get(row.len() / 2).copied().flatten()
}

/// The part of the ceiling that is saved.
fn share(tally: &Tally) -> Value {
    if tally.ceiling() == 0.0 { Value::Null } else { (tally.ops_saved() / tally.ceiling()).into() }
}

/// The published method that a pair is like, and what it saved there.
fn like(rule: Rule, encoding: Encoding) -> (Option<&'static str>, Option<f64>) {
    let [exact, predictive] = PUBLISHED_COMPREEND;
    match (rule, encoding) {
        (Rule::None, Encoding::Twos) => (Some("UNPU"), Some(0.0)),
        (Rule::PositiveFirst, _) => (Some("SnaPEA, exact"), Some(PUBLISHED_SNAPEA)),
        (Rule::R0, Encoding::Inverted) => (Some("ComPreEND, exact"), Some(exact)),
        (Rule::R2 { .. }, Encoding::Inverted) => (Some("ComPreEND, predictive"), Some(predictive)),
        (Rule::R2 { .. }, Encoding::Pm1) => (Some("BitSET"), Some(PUBLISHED_OPS_SAVED)),
        _ => (None, None),
    }
}
