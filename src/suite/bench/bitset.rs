//! Networks by bit-planes: images a second of the integer layers of ResNet-20, by the kernels and by the processor, in turns.
//!
//! `scripts/bitset-numpy.py` measures the same layers with NumPy and prints both.

use std::time::Instant;

use super::{Bench, Row};
use crate::bitset::gpu::{LayerKernels, LayerRun, Prepared};
use crate::bitset::host::HostLayer;
use crate::bitset::quantise::nearest;
use crate::bitset::{Encoding, Geometry, Layer, Rule};
use crate::device::Executor;
use crate::error::Result;
use crate::plan::{ExecutionPlan, SlotId, SlotRole};
use crate::stats::median;
use kernels_gen::threefry::Key;

/// Bits of a weight.
const BITS: u32 = 8;

/// Channels and size of the input, channels of the output, and stride of the 18 layers between the first and the last.
const LAYERS: [([usize; 4], usize); 5] =
    [([16, 32, 16, 1], 6), ([16, 32, 32, 2], 1), ([32, 16, 32, 1], 5), ([32, 16, 64, 2], 1), ([64, 8, 64, 1], 5)];

/// A layer, loaded.
struct Measured {
    executor: Executor,
    input: SlotId,
    host: HostLayer,
    activations: Vec<u8>,
    count: usize,
}

pub(super) fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let (batch, rounds) = if bench.choice.quick { (4, 2) } else { (16, 5) };
    let key = bench.key("bitset");
    let kernels = LayerKernels::new(&bench.device.target())?;
    let mut rows = Vec::new();
    for (rule, encoding) in [(Rule::R0, Encoding::Pm1), (Rule::None, Encoding::Twos)] {
        let mut layers = Vec::new();
        for (kind, stream) in LAYERS.into_iter().zip(0..) {
            layers.push(layer(bench, &kernels, kind, batch, (rule, encoding), key.stream(stream))?);
        }
        // Nothing is read back, so the device must be waited for.
        let on_device = |layer: &Measured| -> Result<()> {
            layer.executor.run(&[(layer.input, &layer.activations)], &[])?;
            layer.executor.device().wait_idle()
        };
        let by_host = |layer: &Measured| layer.host.run(&layer.activations, None, false, &[]).map(drop);
        let mut seconds = [Vec::new(), Vec::new()];
        for round in 0..=rounds {
            for (which, seconds) in seconds.iter_mut().enumerate() {
                let mut all = 0.0;
                for layer in &layers {
                    let start = Instant::now();
                    if which == 0 {
                        on_device(layer)?
                    } else {
                        by_host(layer)?
                    }
                    all += start.elapsed().as_secs_f64() * layer.count as f64;
                }
                // The first round compiles.
                if round > 0 {
                    seconds.push(all);
                }
            }
        }
        let ratios: Vec<f64> = seconds[0].iter().zip(&seconds[1]).map(|(gpu, cpu)| gpu / cpu).collect();
        for (which, name) in ["gpu", "cpu"].into_iter().enumerate() {
            let s = median(&seconds[which]);
            let ratio = median(&ratios);
            rows.push(Row {
                name: format!("18 integer layers of ResNet-20, {BITS} bits, {rule} with {encoding}, {name}"),
                median_ms: Some(s * 1e3),
                images_per_s: Some(batch as f64 / s),
                batch: Some(batch),
                ratio: Some(if which == 0 { 1.0 / ratio } else { ratio }),
                against: Some(if which == 0 { "cpu" } else { "gpu" }),
                ..Row::default()
            });
        }
    }
    Ok(rows)
}

/// A layer that stands `count` times in the network, for both.
fn layer(
    bench: &Bench<'_>,
    kernels: &LayerKernels,
    ([channels, size, outputs, stride], count): ([usize; 4], usize),
    batch: usize,
    (rule, encoding): (Rule, Encoding),
    key: Key,
) -> Result<Measured> {
    let geometry = Geometry {
        channels,
        size: [size; 2],
        outputs,
        kernel: [3; 2],
        strides: [stride; 2],
        pads_low: [1; 2],
        pads_high: [1; 2],
        dilations: [1; 2],
        groups: 1,
    };
    // Sums of four, so that small weights are more frequent, as in networks.
    let spread = |n: u64| (0..4).map(|i| f64::from(key.uniform(4 * n + i)) - 0.5).sum::<f64>() * 160.0;
    let q = (0..(geometry.taps() * outputs) as u64).map(|n| nearest(spread(n), BITS)).collect();
    let layer = Layer { geometry, bits: BITS, q, bias: vec![0; outputs], mean_q16: 0 };
    let prepared = Prepared::new(&layer, encoding, rule, None, false)?;
    let mut plan = ExecutionPlan::new();
    let bytes = batch * channels * size * size;
    let input = plan.slot("activations", bytes as u64, SlotRole::Input);
    kernels.record(&mut plan, &prepared, &LayerRun { batch, activations: input, residual: None, audit: false, lanes: &[] })?;
    // Half of what follows a ReLU is 0.
    let activation = |n: u64| key.stream(1).word(n);
    let activations = (0..bytes as u64).map(activation).map(|word| if word % 2 == 0 { 0 } else { (word >> 24) as u8 }).collect();
    let host = HostLayer::new(&layer, encoding, rule, None, false)?;
    Ok(Measured { executor: Executor::load(bench.device, &plan)?, input, host, activations, count })
}
