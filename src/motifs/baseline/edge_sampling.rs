//! Edge sampling in its form by first edges: Wang, Wang, Jiang, Li and Tan, "Efficient sampling algorithms for approximate temporal motif
//! counting" (CIKM 2020).

use std::time::Instant;

use kernels_gen::threefry::Key;
use rayon::prelude::*;

use super::{BaselineEstimate, uniform};
use crate::error::{Error, Result};
use crate::motifs::exact::{Prepared, Search};
use crate::motifs::graph::TemporalGraph;
use crate::motifs::{Motif, Ties};
use crate::progress::Work;

/// How [`edge_sampling`] samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EdgeSamplingOptions {
    /// Chance of each edge to be kept, above 0 and at most 1: the budget of work is this share of the exact count's.
    pub probability: f64,
    /// What the edges are drawn from.
    pub seed: u64,
}

impl Default for EdgeSamplingOptions {
    fn default() -> Self {
        EdgeSamplingOptions { probability: 0.01, seed: 0 }
    }
}

/// Edges that are looked at together; sums are taken block by block, so that threads change no bit.
const BLOCK: usize = 256;

/// An estimate from edges kept with a chance each: the matches that begin with them, over that chance.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a negative delta and a probability outside its range;
/// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when the work is cancelled.
pub fn edge_sampling(
    graph: &TemporalGraph,
    motif: &Motif,
    delta: i64,
    ties: Ties,
    options: &EdgeSamplingOptions,
    work: &Work,
) -> Result<BaselineEstimate> {
    let begin = Instant::now();
    let &EdgeSamplingOptions { probability, seed } = options;
    if !(probability > 0.0 && probability <= 1.0) {
        return Err(Error::invalid(format!("edges are to be kept with probability {probability}, it must be above 0 and at most 1")));
    }
    let prepared = Prepared::new(graph, motif, delta, ties)?;
    let key = Key::new(seed);
    let num_edges = graph.num_edges();
    let part = work.part("sampling first edges", num_edges as u64);
    let of_block = |at: usize| -> Result<Sums> {
        let range = at * BLOCK..((at + 1) * BLOCK).min(num_edges);
        let steps = range.len() as u64;
        let mut sums = Sums::default();
        let mut search = Search::new(&prepared, work.cancel(), 0u64);
        for first in range.filter(|&first| uniform(key, first as u64) < probability) {
            search.sink = 0;
            if search.from(first as u32, num_edges as u32).is_err() {
                break;
            }
            sums.add(search.sink);
        }
        part.advance(steps)?;
        Ok(sums)
    };
    let blocks = (0..num_edges.div_ceil(BLOCK)).into_par_iter().map(of_block).collect::<Result<Vec<_>>>()?;
    let mut total = Sums::default();
    for block in &blocks {
        total.matches += block.matches;
        total.squares += block.squares;
        total.samples += block.samples;
        total.nonzero += block.nonzero;
        total.saturated |= block.saturated;
    }
    Ok(BaselineEstimate {
        estimate: total.matches as f64 / probability,
        std_error: (total.squares * (1.0 - probability)).sqrt() / probability,
        samples: total.samples,
        nonzero: total.nonzero,
        saturated: total.saturated,
        seconds: begin.elapsed().as_secs_f64(),
    })
}

/// Sums over the edges that were kept.
#[derive(Default)]
struct Sums {
    matches: u128,
    squares: f64,
    samples: u64,
    nonzero: u64,
    saturated: bool,
}

impl Sums {
    fn add(&mut self, count: u64) {
        self.matches += u128::from(count);
        self.squares += (count as f64).powi(2);
        self.samples += 1;
        self.nonzero += u64::from(count > 0);
        self.saturated |= count == u64::MAX;
    }
}
