//! Temporal motifs of a generated graph, counted on a device and by backtracking.

use std::time::Instant;

use crate::device::Device;
use crate::error::Result;
use crate::motifs::graph::GenerateOptions;
use crate::motifs::{CountOptions, Engine, Method, Motif, TemporalGraph, Value, count};
use crate::progress::Work;

/// Edges of the generated graph.
const EDGES: u64 = 20_000;
/// A day, in the graph's ticks.
const DELTA: i64 = 86_400;
/// Standard errors that an estimate may be off.
const MOST_ERRORS: f64 = 5.0;

/// A count on a device beside the exact number.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Motif and method.
    pub name: String,
    /// What the device found, in words.
    pub found: String,
    /// Whether that agrees with the exact number: the same, or an estimate within five standard errors.
    pub agrees: bool,
    /// The relative error.
    pub error: f64,
    /// Time on the device, planning included, in milliseconds.
    pub ms: f64,
}

/// Counts motifs of a generated graph: by enumeration, and one by sampling.
pub fn trials(device: &Device, seed: u64, work: &Work<'_>) -> Result<Vec<Trial>> {
    let graph = TemporalGraph::generate(&GenerateOptions { seed, ..GenerateOptions::new(EDGES) }, work)?;
    let methods = [("M4-1", Method::Enumerate), ("E5", Method::Enumerate), ("M4-0", Method::Samples(200_000))];
    let trial = |(name, method): (&str, Method)| {
        let motif = Motif::parse(name)?;
        let options = CountOptions { method, seed, engine: Engine::Gpu(device.clone()), ..CountOptions::new(DELTA) };
        let start = Instant::now();
        let counted = count(&graph, &motif, &options, work)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let exact = count(&graph, &motif, &CountOptions { method: Method::Exact, engine: Engine::Cpu, ..options }, work)?;
        let exact = if let Value::Exact(n) = exact.value { n as f64 } else { f64::NAN };
        let (value, within, what) = match counted.value {
            Value::Exact(n) | Value::Part(n) => (n as f64, 0.0, "enumerated"),
            Value::Estimate(n) => (n, MOST_ERRORS * counted.std_error.unwrap_or(0.0), "sampled"),
        };
        Ok(Trial {
            name: format!("{name} in a day, {EDGES} edges, {what}"),
            found: format!("{value:.0} of {exact:.0} matches"),
            agrees: (value - exact).abs() <= within,
            error: if value == exact { 0.0 } else { (value - exact).abs() / exact },
            ms,
        })
    };
    methods.into_iter().map(trial).collect()
}
