//! Exact counters on the processor: backtracking for any motif, and a programme for the 36 small ones whose time does not grow with their
//! matches.

mod backtrack;
mod grid;
mod plan;
mod search;

pub use backtrack::backtrack;
pub use grid::grid;

pub(in crate::motifs) use search::{Prepared, Search, Sink};

use super::Ties;
use super::graph::TemporalGraph;
use crate::error::{Error, Result};

/// A number of matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Count {
    /// The number, or 2^64 - 1 where it is that or more.
    pub value: u64,
    /// Whether the number has reached 2^64 - 1, so that it may be larger than `value`.
    pub saturated: bool,
}

impl Count {
    /// A count from a sum that stays at `u64::MAX` once there.
    pub(in crate::motifs) fn saturating(value: u64) -> Self {
        Count { value, saturated: value == u64::MAX }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.value, if self.saturated { " or more" } else { "" })
    }
}

/// What follows from the times, delta and the policy of ties, as indices of edges.
#[derive(Debug)]
pub(in crate::motifs) struct Windows {
    /// Largest index whose time is at most delta after each edge's.
    pub last: Vec<u32>,
    /// First index of a larger key than each edge's; empty where that is the next index.
    after: Vec<u32>,
}

impl Windows {
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a negative delta.
    pub fn new(graph: &TemporalGraph, delta: i64, ties: Ties) -> Result<Self> {
        if delta < 0 {
            return Err(Error::invalid(format!("delta is {delta}, it is a span of time of 0 or more")));
        }
        let times = graph.times();
        let mut last = Vec::with_capacity(times.len());
        let mut end = 0;
        for &time in times {
            let limit = time.saturating_add(delta);
            while end < times.len() && times[end] <= limit {
                end += 1;
            }
            last.push(end as u32 - 1);
        }
        let mut after = Vec::new();
        if ties == Ties::Strict {
            after.resize(times.len(), times.len() as u32);
            for i in (1..times.len()).rev() {
                after[i - 1] = if times[i - 1] == times[i] { after[i] } else { i as u32 };
            }
        }
        Ok(Windows { last, after })
    }

    /// First index whose key is larger than that of edge `index`.
    pub fn after(&self, index: u32) -> u32 {
        match self.after.is_empty() {
            true => index + 1,
            false => self.after[index as usize],
        }
    }

    /// Whether a key may be shared by several edges.
    pub fn is_strict(&self) -> bool {
        !self.after.is_empty()
    }
}

/// First position of `from..end` at which `below` fails, `below` being true, then false; near `from` it is found in few steps.
pub(in crate::motifs) fn gallop(from: usize, end: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut step) = (from, 1);
    loop {
        let probe = low + step - 1;
        if probe >= end {
            break;
        }
        if !below(probe) {
            return bisect(low, probe, below);
        }
        low = probe + 1;
        step *= 2;
    }
    bisect(low, end.max(from), below)
}

fn bisect(mut low: usize, mut high: usize, below: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_inclusive_saturate_and_follow_ties() {
        let edges = [i64::MIN, -5, 0, 0, 5, i64::MAX - 1].map(|t| (0, 1, t)).to_vec();
        let graph = TemporalGraph::from_edges(edges, 2, 0).expect("builds");
        let order = Windows::new(&graph, 5, Ties::Order).expect("windows");
        assert_eq!(order.last, [0, 3, 4, 4, 4, 5]);
        assert_eq!(order.after(2), 3);
        let strict = Windows::new(&graph, 0, Ties::Strict).expect("windows");
        assert_eq!(strict.last, [0, 1, 3, 3, 4, 5]);
        assert_eq!([0, 2, 3, 5].map(|i| strict.after(i)), [1, 4, 4, 6]);
        assert!(Windows::new(&graph, -1, Ties::Order).expect_err("negative").to_string().contains("-1"));
    }

    #[test]
    fn galloping_finds_every_position() {
        let list: Vec<u32> = (0..40).map(|i| i * 3).collect();
        for from in 0..=list.len() {
            for bound in 0..125 {
                let expected = (from..list.len()).find(|&i| list[i] >= bound).unwrap_or(list.len());
                assert_eq!(gallop(from, list.len(), |i| list[i] < bound), expected);
            }
        }
    }
}
