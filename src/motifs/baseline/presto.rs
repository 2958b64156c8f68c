//! PRESTO-A: Sarpe and Vandin, "PRESTO: simple and scalable sampling techniques for the rigorous approximation of temporal motif counts"
//! (SDM 2021).

use std::time::Instant;

use kernels_gen::threefry::Key;
use rayon::prelude::*;

use super::{BaselineEstimate, uniform};
use crate::error::{Error, Result};
use crate::motifs::exact::{Prepared, Search, Sink};
use crate::motifs::graph::TemporalGraph;
use crate::motifs::{Motif, Ties};
use crate::progress::Work;

/// How [`presto`] samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrestoOptions {
    /// Number of windows, 2 or more: the budget of work.
    pub windows: u64,
    /// Length of a window in deltas, above 1.
    pub c: f64,
    /// What the windows are drawn from.
    pub seed: u64,
}

impl Default for PrestoOptions {
    fn default() -> Self {
        PrestoOptions { windows: 1000, c: 1.25, seed: 0 }
    }
}

/// Windows that are looked at between two sums.
const ROUND: u64 = 4096;

/// An estimate from windows [x, x + c delta], x uniform from c delta before the first edge to the last edge: each match in a window weighs
/// (span of the graph + c delta) / (c delta - its span), the inverse of the chance that a window holds it.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a delta of 0 or less, under which windows have no length, and for
/// options outside their ranges; [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when the work is cancelled.
pub fn presto(
    graph: &TemporalGraph,
    motif: &Motif,
    delta: i64,
    ties: Ties,
    options: &PrestoOptions,
    work: &Work,
) -> Result<BaselineEstimate> {
    let begin = Instant::now();
    let &PrestoOptions { windows, c, seed } = options;
    let prepared = Prepared::new(graph, motif, delta, ties)?;
    if delta == 0 {
        return Err(Error::invalid("delta is 0, and PRESTO-A's windows are c delta long; count exactly, or give a delta above 0"));
    }
    if windows < 2 {
        return Err(Error::invalid(format!("PRESTO-A is to look at {windows} windows, it needs 2 or more to know its error")));
    }
    if !(c > 1.0 && c.is_finite()) {
        return Err(Error::invalid(format!("PRESTO-A's windows are to be {c} deltas long, they must be longer than 1 delta")));
    }
    let key = Key::new(seed);
    let (times, length) = (graph.times(), c * delta as f64);
    let from_start = |time: i64| (i128::from(time) - i128::from(times[0])) as f64;
    let range = times.last().map_or(0.0, |&last| from_start(last)) + length;
    let part = work.part("windows", windows);
    let of_window = |at: u64| -> Result<Weights> {
        let x = uniform(key, at) * range - length;
        let begin = times.partition_point(|&time| from_start(time) < x) as u32;
        let end = times.partition_point(|&time| from_start(time) <= x + length) as u32;
        let sink = Weights { times, first: 0, range, length, sum: 0.0, saturated: false };
        let mut search = Search::new(&prepared, work.cancel(), sink);
        for first in begin..end {
            search.sink.first = times[first as usize];
            if search.from(first, end).is_err() {
                break;
            }
        }
        part.advance(1)?;
        Ok(search.sink)
    };
    // Sums are taken in the order of the windows, so that threads change no bit.
    let (mut mean, mut squares, mut nonzero, mut saturated) = (0.0, 0.0, 0, false);
    for from in (0..windows).step_by(ROUND as usize) {
        let round = (from..windows.min(from + ROUND)).into_par_iter().map(of_window).collect::<Result<Vec<_>>>()?;
        for (at, window) in (from..).zip(&round) {
            let apart = window.sum - mean;
            mean += apart / (at + 1) as f64;
            squares += apart * (window.sum - mean);
            nonzero += u64::from(window.sum > 0.0);
            saturated |= window.saturated;
        }
    }
    let n = windows as f64;
    let std_error = (squares / (n - 1.0) / n).sqrt();
    Ok(BaselineEstimate { estimate: mean, std_error, samples: windows, nonzero, saturated, seconds: begin.elapsed().as_secs_f64() })
}

/// Sum of the weights of the matches in a window.
struct Weights<'a> {
    times: &'a [i64],
    /// Time of the matches' first edge.
    first: i64,
    range: f64,
    length: f64,
    sum: f64,
    saturated: bool,
}

impl Sink for Weights<'_> {
    const BY_LAST: bool = true;

    fn add(&mut self, index: u32, count: u64) {
        let span = (i128::from(self.times[index as usize]) - i128::from(self.first)) as f64;
        self.sum += count as f64 * self.range / (self.length - span);
        self.saturated |= count == u64::MAX;
    }
}
