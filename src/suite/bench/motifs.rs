//! Temporal motifs: draws a second, time to a count, and how the cost grows with the graph, on the adapter and by the twin.

use std::time::Instant;

use super::{Bench, Row};
use crate::error::Result;
use crate::motifs::graph::{GenerateOptions, ReadOptions};
use crate::motifs::{
    Anchor, CountOptions, Counted, DEFAULT_BUDGET, Delta, Engine, Method, Motif, Prune, TemporalGraph, TimeUnit, Value, count, phases,
};
use crate::progress::Work;
use crate::stats::median;
use crate::suite::profile::KernelTime;

/// The motif, the anchor of the method's authors, and delta.
const MOTIF: &str = "M4-1";
const ANCHOR: &str = "4:0,8";
const DELTA: &str = "4w";
/// What is drawn from each edge of the graphs whose cost is compared.
const DRAWS_PER_EDGE: u64 = 4;

pub(super) fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let motif = Motif::parse(MOTIF)?;
    let anchor = Anchor::parse(ANCHOR, &motif)?;
    let engines = [("gpu", Engine::Gpu(bench.device.clone())), ("twin", Engine::Cpu)];
    let mut rows = Vec::new();
    let graph = graph(bench, &mut rows)?;
    let delta = DELTA.parse::<Delta>()?.ticks(TimeUnit::S, graph.decimals());
    let options = |engine: &Engine| CountOptions { engine: engine.clone(), seed: bench.choice.seed, ..CountOptions::new(delta) };

    // Draws without pruning, in turns, as many as the default budget; a short round before fills caches.
    let samples = if bench.choice.quick { 1_000_000 } else { DEFAULT_BUDGET };
    let draw = |engine: &Engine, samples: u64| {
        let method = Method::Samples(samples);
        counted(bench, &graph, &motif, &CountOptions { method, anchor: Some(anchor.clone()), prune: Some(Prune::Off), ..options(engine) })
    };
    let mut seconds = [Vec::new(), Vec::new()];
    for (_, engine) in &engines {
        draw(engine, samples / 100)?;
    }
    for _ in 0..if bench.choice.quick { 1 } else { 3 } {
        for ((_, engine), seconds) in engines.iter().zip(&mut seconds) {
            seconds.push(draw(engine, samples)?.seconds);
        }
    }
    let ratios: Vec<f64> = seconds[0].iter().zip(&seconds[1]).map(|(gpu, twin)| twin / gpu).collect();
    for ((name, engine), seconds) in engines.iter().zip(&seconds) {
        let s = median(seconds);
        let parts = match engine {
            Engine::Gpu(device) => phases(device, &graph, &motif, &anchor, &options(engine), Prune::Off, samples)?,
            _ => Vec::new(),
        };
        let all: f64 = parts.iter().map(|(_, ms)| ms).sum();
        let part = |(name, ms): (String, f64)| KernelTime { name, calls: 1, ms, share: ms / all, origins: Vec::new() };
        rows.push(Row {
            name: format!("{MOTIF} {ANCHOR}, {DELTA}, {samples} draws, unpruned, {name}"),
            median_ms: Some(s * 1e3),
            samples_per_s: Some(samples as f64 / s),
            ratio: (*name == "gpu").then(|| median(&ratios)),
            against: (*name == "gpu").then_some("twin"),
            parts: parts.into_iter().map(part).collect(),
            ..Row::default()
        });
    }

    // A count, planning included: exact where that is within the budget, else to 1 %.
    for (name, engine) in &engines {
        let mut times = Vec::new();
        let mut how = String::new();
        for round in 0..if bench.choice.quick { 2 } else { 4 } {
            let start = Instant::now();
            let mut found = counted(bench, &graph, &motif, &options(engine))?;
            if !matches!(found.value, Value::Exact(_)) {
                found = counted(bench, &graph, &motif, &CountOptions { method: Method::Error(0.01), ..options(engine) })?;
            }
            if round > 0 {
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            how = if matches!(found.value, Value::Exact(_)) { "exact".into() } else { "to 1 %".into() };
        }
        rows.push(Row {
            name: format!("{MOTIF}, {DELTA}, pruned, {how}, planning included, {name}"),
            median_ms: Some(median(&times)),
            ..Row::default()
        });
    }
    rows.extend(scale(bench, &motif, &anchor, &engines)?);
    Ok(rows)
}

/// The graph that was given, or a generated one, with a row for reading and one for building.
fn graph(bench: &Bench<'_>, rows: &mut Vec<Row>) -> Result<TemporalGraph> {
    let mut row = |name: String, seconds: f64| rows.push(Row { name, median_ms: Some(seconds * 1e3), ..Row::default() });
    match &bench.choice.graph {
        Some(path) => {
            let (graph, found) = TemporalGraph::open(path, &ReadOptions::default(), &Work::quiet())?;
            let stem = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
            row(format!("reading {stem}"), found.read_seconds);
            row(format!("building {stem}"), found.build_seconds);
            Ok(graph)
        }
        None => generated(bench, GenerateOptions::new(if bench.choice.quick { 20_000 } else { 60_000 }), &mut row),
    }
}

fn generated(bench: &Bench<'_>, options: GenerateOptions, row: &mut impl FnMut(String, f64)) -> Result<TemporalGraph> {
    let start = Instant::now();
    let graph = TemporalGraph::generate(&GenerateOptions { seed: bench.choice.seed, ..options }, &Work::quiet())?;
    row(format!("generating and building {} edges", graph.num_edges()), start.elapsed().as_secs_f64());
    bench.part.advance(0)?;
    Ok(graph)
}

fn counted(bench: &Bench<'_>, graph: &TemporalGraph, motif: &Motif, options: &CountOptions) -> Result<Counted> {
    bench.part.advance(0)?;
    count(graph, motif, options, &Work::quiet())
}

/// Cost of numbering and a fixed number of draws an edge, over sizes of generated graphs, and the slope of its logarithm. All vertices are
/// alike, so that an edge has the same number of paths at every size: where activity follows a power law the busiest vertices of a larger
/// graph are busier, and the work itself grows faster than the edges.
fn scale(bench: &Bench<'_>, motif: &Motif, anchor: &Anchor, engines: &[(&str, Engine)]) -> Result<Vec<Row>> {
    let sizes: &[u64] = if bench.choice.quick { &[10_000, 100_000] } else { &[100_000, 1_000_000, 10_000_000] };
    let delta = DELTA.parse::<Delta>()?.ticks(TimeUnit::S, 0);
    let mut rows = Vec::new();
    let mut points = vec![Vec::new(); engines.len()];
    for &edges in sizes {
        let mut row = |name: String, seconds: f64| rows.push(Row { name, median_ms: Some(seconds * 1e3), ..Row::default() });
        let graph = generated(bench, GenerateOptions { exponent: 0.0, ..GenerateOptions::new(edges) }, &mut row)?;
        for ((name, engine), points) in engines.iter().zip(&mut points) {
            let options = CountOptions {
                engine: engine.clone(),
                seed: bench.choice.seed,
                method: Method::Samples(DRAWS_PER_EDGE * edges),
                anchor: Some(anchor.clone()),
                prune: Some(Prune::Off),
                memory_limit_bytes: u64::MAX,
                ..CountOptions::new(delta)
            };
            // Once for the caches, where that is quick.
            if edges == sizes[0] {
                counted(bench, &graph, motif, &options)?;
            }
            let found = counted(bench, &graph, motif, &options)?;
            let s = found.planning_seconds + found.seconds;
            points.push(((edges as f64).ln(), s.ln()));
            rows.push(Row {
                name: format!("{edges} edges, numbering and {DRAWS_PER_EDGE} draws an edge, {name}"),
                median_ms: Some(s * 1e3),
                samples_per_s: found.samples_per_s(),
                ..Row::default()
            });
        }
    }
    for ((name, _), points) in engines.iter().zip(&points) {
        rows.push(Row { name: format!("slope of cost, log to log, {name}"), slope: Some(slope(points)), ..Row::default() });
    }
    Ok(rows)
}

/// Slope of the line of least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |f: fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |f: fn(f64, f64) -> f64| points.iter().map(|p| f(p.0 - x, p.1 - y)).sum::<f64>();
    sum(|x, y| x * y) / sum(|x, _| x * x)
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn the_slope_of_points_on_a_line_is_the_lines() {
        assert!((slope(&[(0.0, 1.0), (1.0, 3.0), (4.0, 9.0)]) - 2.0).abs() < 1e-12);
    }
}
