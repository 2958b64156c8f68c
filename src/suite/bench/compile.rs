//! What fusion gains: networks and operations compiled and eager in turns, and the geometric mean of the gains.
//!
//! Both modes have the same heroes, tiles, resident weights and buffers, and one submission a run; they differ in what is one kernel.

use super::model::product_flops;
use super::ops::chain;
use super::{Amount, Bench, Probe, Row, timing};
use crate::capture::capture;
use crate::compiler::Mode;
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::prelude::*;
use crate::suite::networks::{encoder_layer, gelu_mlp, lstm, perceptron, resnet20, squeezenet};
use crate::suite::samples::{LlamaSizes, llama_block};
use kernels_gen::DType;
use kernels_gen::threefry::Key;

type Build = fn(Key) -> Result<Graph>;

/// Name, batch, graph, and whether quick measurements leave it out.
const CELLS: &[(&str, usize, Build, bool)] = &[
    ("ResNet-20", 1, |key| resnet20(key, 1), false),
    ("ResNet-20", 64, |key| resnet20(key, 64), true),
    ("SqueezeNet", 1, |key| squeezenet(key, 1), true),
    ("MLP 784-512-512-10", 128, |key| perceptron(key, 128, &[784, 512, 512, 10]), false),
    ("BERT-like encoder layer s128 d384", 1, |key| encoder_layer(key, 128, 384, 12), false),
    ("Llama block d576 prefill 128", 1, |key| llama_block(key, LlamaSizes::SMOLLM2_135M, 128), false),
    ("Llama block d576 decode 1", 1, |key| llama_block(key, LlamaSizes::SMOLLM2_135M, 1), false),
    ("GELU-MLP 1024x4096", 128, |key| gelu_mlp(key, 128, 1024, 4096), true),
    ("softmax + layer norm 4096x1024", 4096, |_| softmax_layer_norm(), false),
    ("LSTM s128 hidden 128", 1, |key| lstm(key, 128, 128), true),
    ("six-op chain 4M", 1, |_| capture(chain), false),
];

fn softmax_layer_norm() -> Result<Graph> {
    capture(|t| {
        let [scale, bias] = ["scale", "bias"].map(|name| t.input(name, [1024], DType::F32));
        t.input("x", [4096, 1024], DType::F32)?.softmax(1)?.layer_norm(&scale?, Some(&bias?), 1, 1e-5)
    })
}

pub(super) fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &(name, batch, build, _) in CELLS.iter().filter(|(.., slow)| !(*slow && bench.choice.quick)) {
        rows.extend(measure(bench, name, batch, &build(bench.key(name))?)?);
    }
    Ok(rows)
}

fn measure(bench: &Bench<'_>, name: &str, batch: usize, graph: &Graph) -> Result<[Row; 2]> {
    let modes = [Mode::Compiled, Mode::Eager];
    let [compiled, eager] = modes.map(|mode| bench.load(graph, mode, bench.key(name)));
    let sessions = [compiled?, eager?];
    let samples = timing::in_turns(&[sessions[0].executor(), sessions[1].executor()], bench.choice.quick, bench.part)?;
    let flops = product_flops(graph)?;
    let row = |at: usize| -> Result<Row> {
        let bytes = sessions[at].compiled().kernels().iter().map(|k| k.bytes).sum();
        let work = match flops {
            0 => Amount { count: bytes, probe: Probe::Copy },
            count => Amount { count, probe: Probe::Fma },
        };
        let row = bench.row(format!("{name}, batch {batch}, {}", modes[at].name()), &sessions[at], samples.median_ms(at), work)?;
        Ok(Row { mode: Some(modes[at].name()), batch: Some(batch), bytes: Some(bytes), ..row })
    };
    Ok([Row { ratio: Some(samples.ratio(0, 1)), against: Some("eager"), ..row(0)? }, row(1)?])
}

/// Geometric mean of the gains of compiled rows over eager ones.
pub(super) fn geomean(rows: &[Row]) -> Option<f64> {
    let logs: Vec<f64> = rows.iter().filter(|row| row.against == Some("eager")).filter_map(|row| row.ratio).map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_of_the_compiled_rows() {
        let row = |ratio: f64, against| Row { ratio: Some(ratio), against: Some(against), ..Row::default() };
        let mean = geomean(&[row(2.0, "eager"), row(100.0, "table"), row(8.0, "eager")]).expect("rows");
        assert!((mean - 4.0).abs() < 1e-12, "{mean}");
        assert_eq!(geomean(&[]), None);
    }

    #[test]
    fn every_cell_can_be_recorded() {
        for (name, _, build, _) in CELLS {
            build(Key::new(1)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
