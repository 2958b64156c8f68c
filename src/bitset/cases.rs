//! Random layers as plans, to try the kernels against their twins and against the definition.

use kernels_gen::Target;
use kernels_gen::threefry::Key;

use crate::bitset::encoding::{Encoding, largest};
use crate::bitset::gpu::{LayerKernels, LayerRun, Prepared};
use crate::bitset::layer::{Geometry, Layer, Thresholds};
use crate::bitset::rule::Rule;
use crate::error::Result;
use crate::plan::{Command, ExecutionPlan, SlotId, SlotRole};

/// A plan of one layer, with the words of its inputs and the output that says all.
#[derive(Debug, Clone)]
pub struct LayerCase {
    /// Layer, code and rule.
    pub name: String,
    /// The plan.
    pub plan: ExecutionPlan,
    /// Words of its inputs.
    pub inputs: Vec<(SlotId, Vec<u32>)>,
    /// Results, counts and sums of lock-step, one after the other.
    pub output: SlotId,
}

/// A layer with random weights, the mean of which is not 0.
pub(super) fn random_layer(geometry: Geometry, bits: u32, key: Key) -> Layer {
    let most = largest(bits);
    let count = geometry.taps() * geometry.outputs;
    // Sums of two, so that small weights are more frequent, as in networks.
    let half = |n: u64| (key.word(n) % (most as u32 + 1)) as i32;
    let q = (0..count as u64).map(|n| (half(2 * n) + half(2 * n + 1) - most) | 1).map(|q| q.clamp(-most, most)).collect();
    let bias = (0..geometry.outputs as u64).map(|o| i64::from(key.stream(1).word(o) % 4_001) - 2_000).collect();
    Layer { geometry, bits, q, bias, mean_q16: i64::from(key.stream(2).word(0) % 200_000) - 100_000 }
}

/// Random activations, many of them 0.
pub(super) fn random_activations(geometry: &Geometry, batch: usize, key: Key) -> Vec<u8> {
    let count = batch * geometry.channels * geometry.size[0] * geometry.size[1];
    (0..count as u64).map(|n| key.word(n)).map(|word| if word % 5 < 2 { 0 } else { (word >> 24) as u8 }).collect()
}

/// Random thresholds about 0; one in eight planes is not asked.
pub(super) fn random_thresholds(layer: &Layer, encoding: Encoding, key: Key) -> Thresholds {
    let asked = encoding.planes(layer.bits) as u64 - 1;
    let spread = ((layer.geometry.taps() as i64 * 20) << layer.bits) >> 2;
    let one = |n: u64| (!key.word(2 * n).is_multiple_of(8)).then(|| ((i64::from(key.word(2 * n + 1)) * spread) >> 31) - 3 * spread / 2);
    (0..layer.geometry.outputs as u64).map(|output| (0..asked).map(|plane| one(output * asked + plane)).collect()).collect()
}

/// Shapes that reach every part of the kernels: padding, strides, dilations, groups, channels that do not fill fours, windows that do not fill
/// eights, and with the last more than 256 taps.
pub(super) const GEOMETRIES: [Geometry; 5] = [
    Geometry {
        channels: 3,
        size: [5, 6],
        outputs: 5,
        kernel: [3, 3],
        strides: [1, 1],
        pads_low: [1, 1],
        pads_high: [1, 1],
        dilations: [1, 1],
        groups: 1,
    },
    Geometry {
        channels: 4,
        size: [7, 9],
        outputs: 6,
        kernel: [3, 2],
        strides: [2, 3],
        pads_low: [2, 0],
        pads_high: [1, 2],
        dilations: [2, 3],
        groups: 2,
    },
    Geometry {
        channels: 3,
        size: [4, 4],
        outputs: 3,
        kernel: [2, 2],
        strides: [1, 2],
        pads_low: [0, 1],
        pads_high: [1, 0],
        dilations: [1, 1],
        groups: 3,
    },
    Geometry::full(37, 9),
    Geometry::full(1_100, 3),
];

/// All rules, with the numbers that the tests give them.
pub(super) const RULES: [Rule; 6] =
    [Rule::None, Rule::R0, Rule::PositiveFirst, Rule::R1 { z: 1.25 }, Rule::R2 { budget: 0.01 }, Rule::R3 { z: 1.0 }];

/// What is run in one case.
pub(super) struct Spec {
    pub geometry: Geometry,
    pub bits: u32,
    pub encoding: Encoding,
    pub rule: Rule,
    pub batch: usize,
    pub with_residual: bool,
    pub audit: bool,
    pub key: Key,
}

/// The layer of a case with its inputs.
pub(super) struct Inputs {
    pub layer: Layer,
    pub thresholds: Option<Thresholds>,
    pub activations: Vec<u8>,
    pub residual: Option<Vec<i32>>,
}

impl Spec {
    pub fn inputs(&self) -> Inputs {
        let Spec { geometry, bits, encoding, key, .. } = self;
        let mut layer = random_layer(*geometry, *bits, key.stream(1));
        if key.stream(5).word(0) % 3 == 0 {
            // A third of the layers is pruned, by a fifth of their weights.
            layer.mean_q16 = 0;
            layer.q.iter_mut().step_by(5).for_each(|q| *q = 0);
        }
        let thresholds = self.rule.is_calibrated().then(|| random_thresholds(&layer, *encoding, key.stream(2)));
        let outputs = self.batch * geometry.outputs * geometry.positions();
        let spread = 1 + geometry.taps() as u32 * 32;
        let residual = |n: u64| (key.stream(3).word(n) % (2 * spread)) as i32 - spread as i32;
        Inputs {
            thresholds,
            activations: random_activations(geometry, self.batch, key.stream(4)),
            residual: self.with_residual.then(|| (0..outputs as u64).map(residual).collect()),
            layer,
        }
    }

    /// The plan, and its inputs' words.
    pub fn case(&self, kernels: &LayerKernels) -> Result<(LayerCase, Prepared)> {
        let Inputs { layer, thresholds, activations, residual } = self.inputs();
        let prepared = Prepared::new(&layer, self.encoding, self.rule, thresholds.as_ref(), self.with_residual)?;
        let mut plan = ExecutionPlan::new();
        let mut inputs = Vec::new();
        let mut input = |name: &str, words: Vec<u32>| {
            let slot = plan.slot(name, 4 * words.len() as u64, SlotRole::Input);
            inputs.push((slot, words));
            slot
        };
        let mut bytes = activations;
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let activations = input("activations", bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect());
        let residual = residual.map(|values| input("residual", values.into_iter().map(|value| value as u32).collect()));
        let run = LayerRun { batch: self.batch, activations, residual, audit: self.audit, lanes: &[1, 3, 64] };
        let slots = kernels.record(&mut plan, &prepared, &run)?;
        let parts: Vec<SlotId> = [slots.results, slots.tallies].into_iter().chain(slots.locks).collect();
        let sizes = parts.iter().map(|part| plan.slots[part.0 as usize].bytes);
        let output = plan.slot("out", sizes.sum(), SlotRole::Output);
        let mut to_offset = 0;
        for from in parts {
            let bytes = plan.slots[from.0 as usize].bytes;
            plan.commands.push(Command::Copy { from, from_offset: 0, to: output, to_offset, bytes });
            to_offset += bytes;
        }
        let Spec { geometry, bits, encoding, rule, batch, .. } = self;
        let name = format!(
            "bitset, {batch} x {}x{}x{} to {}, {} groups, {bits} bits {encoding} {rule}{}{}",
            geometry.channels,
            geometry.size[0],
            geometry.size[1],
            geometry.outputs,
            geometry.groups,
            if self.with_residual { ", residual" } else { "" },
            if self.audit { ", to the end" } else { "" }
        );
        Ok((LayerCase { name, plan, inputs, output }, prepared))
    }
}

/// Layers for every kernel, code and rule.
///
/// # Errors
///
/// [`ErrorKind::Shader`](crate::ErrorKind::Shader) where a kernel does not fit `target`.
pub fn layer_cases(target: &Target, key: Key) -> Result<Vec<LayerCase>> {
    let kernels = LayerKernels::new(target)?;
    let mut cases = Vec::new();
    let mut stream = 0;
    for rule in RULES {
        for &encoding in rule.encodings() {
            stream += 1;
            let geometry = GEOMETRIES[stream as usize % GEOMETRIES.len()];
            let (with_residual, audit) = (stream % 2 == 0, stream % 3 == 0);
            cases.push(
                Spec { geometry, bits: 8, encoding, rule, batch: 3, with_residual, audit, key: key.stream(stream) }.case(&kernels)?.0,
            );
        }
    }
    // Sums past 32 bits.
    for (encoding, rule, with_residual) in
        [(Encoding::Pm1, Rule::R0, true), (Encoding::Csd, Rule::R2 { budget: 0.0 }, false), (Encoding::Sign, Rule::PositiveFirst, false)]
    {
        stream += 1;
        let spec =
            Spec { geometry: GEOMETRIES[4], bits: 16, encoding, rule, batch: 9, with_residual, audit: true, key: key.stream(stream) };
        cases.push(spec.case(&kernels)?.0);
    }
    let narrow = LayerKernels::new(&Target { max_workgroups_per_dim: 9, ..target.clone() })?;
    let spec = Spec {
        geometry: GEOMETRIES[0],
        bits: 4,
        encoding: Encoding::Pm1,
        rule: Rule::R0,
        batch: 40,
        with_residual: false,
        audit: false,
        key: key.stream(stream + 1),
    };
    let (case, _) = spec.case(&narrow)?;
    cases.push(LayerCase { name: format!("{}, in folded dispatches", case.name), ..case });
    Ok(cases)
}
