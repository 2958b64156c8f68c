//! Whole models: compiled and eager in turns.

use super::{Amount, Bench, Probe, Row, timing};
use crate::compiler::{Mode, passes};
use crate::error::Result;
use crate::graph::{Graph, Op, Prim};
use crate::import::onnx::{self, ImportOptions};
use crate::suite::samples;

/// Batch of the generated models.
const SAMPLE_BATCH: usize = 8;

pub(super) fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if bench.choice.models.is_empty() {
        for sample in samples::samples(bench.key("model"), SAMPLE_BATCH)? {
            rows.extend(measure(bench, &format!("{}, batch {SAMPLE_BATCH}", sample.name), &sample.graph)?);
        }
        return Ok(rows);
    }
    let batches = if bench.choice.batches.is_empty() { &[1] } else { &bench.choice.batches[..] };
    for path in &bench.choice.models {
        let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
        let mut known = Vec::new();
        for &batch in batches {
            let model = onnx::read(path, &ImportOptions { batch: Some(batch), ..ImportOptions::default() })?;
            // A model may fix its batch, whatever is asked for.
            let batch = model.inputs.first().and_then(|(_, ty)| ty.shape.first()).copied().unwrap_or(1);
            if !known.contains(&batch) {
                known.push(batch);
                rows.extend(measure(bench, &format!("{stem}, batch {batch}"), &model.graph)?);
            }
        }
    }
    Ok(rows)
}

fn measure(bench: &Bench<'_>, name: &str, graph: &Graph) -> Result<[Row; 2]> {
    let key = bench.key(name);
    let [compiled, eager] = [Mode::Compiled, Mode::Eager].map(|mode| bench.load(graph, mode, key));
    let sessions = [compiled?, eager?];
    let samples = timing::in_turns(&[sessions[0].executor(), sessions[1].executor()], bench.choice.quick, bench.part)?;
    let work = Amount { count: product_flops(graph)?, probe: Probe::Fma };
    let images = graph.inputs().find_map(|(_, id)| match graph.ty(id).shape[..] {
        [batch, _, _, _] => Some(batch),
        _ => None,
    });
    let row = |at: usize, mode: Mode| -> Result<Row> {
        let ms = samples.median_ms(at);
        let row = bench.row(format!("{name}, {}", mode.name()), &sessions[at], ms, work)?;
        Ok(Row { images_per_s: images.map(|n| n as f64 / ms * 1e3), ..row })
    };
    let compiled = Row { ratio: Some(samples.ratio(0, 1)), against: Some("eager"), ..row(0, Mode::Compiled)? };
    Ok([compiled, row(1, Mode::Eager)?])
}

/// Floating-point operations of the matrix products, convolutions and attentions of a graph: the work that is the same however it is compiled.
pub(super) fn product_flops(graph: &Graph) -> Result<u64> {
    let graph = passes::decompose(graph)?;
    let products = graph.nodes().iter().map(|node| {
        let sums = match &node.op {
            Op::Prim(Prim::Dot) => graph.ty(node.inputs[0]).shape.get(2).copied().unwrap_or(1),
            // Both products, over every score, those that a causal kernel leaves out too.
            Op::Prim(Prim::Attention { .. }) => {
                let [q, k, v] = [0, 1, 2].map(|i| &graph.ty(node.inputs[i]).shape);
                return 2 * (q[0] * q[1] * k[1] * (q[2] + v[2])) as u64;
            }
            Op::Prim(Prim::Conv { .. }) => graph.ty(node.inputs[1]).shape[1..].iter().product(),
            _ => 0,
        };
        2 * node.ty.num_elems() as u64 * sums as u64
    });
    Ok(products.sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels_gen::threefry::Key;

    #[test]
    fn products_are_counted_once_for_each_multiplication_and_sum() {
        let mlp = samples::mlp(Key::new(1), 4).expect("built");
        assert_eq!(product_flops(&mlp).expect("decomposes"), 2 * 4 * (784 * 256 + 256 * 128 + 128 * 10));
        let cnn = samples::cnn(Key::new(1), 1).expect("built");
        let convs = 32 * 32 * 16 * 9 * (3 + 16 + 16) + 16 * 16 * 32 * 9 * 16 + 8 * 8 * 32 * 9 * 32;
        assert_eq!(product_flops(&cnn).expect("decomposes"), 2 * (convs + 32 * 10));
    }
}
