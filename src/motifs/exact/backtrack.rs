//! Chronological backtracking, after Mackey, Porterfield, Fitzhenry, Choudhury and Chin, "A chronological edge-driven approach to temporal
//! subgraph isomorphism" (IEEE Big Data 2018): motif edges are placed in the order of time, each on a later graph edge that fits.
//!
//! Two things are counted and not walked through: the last edge, and, once all vertices are bound, the chains of what is left.

use rayon::prelude::*;

use super::{Count, Prepared, Search};
use crate::error::Result;
use crate::motifs::graph::TemporalGraph;
use crate::motifs::{Motif, Ties};
use crate::progress::Work;

/// First edges that a thread takes at a time, where there are enough of them.
const BLOCK: usize = 256;

/// The exact number of matches of `motif`, any motif, within `delta` ticks; all threads of rayon's pool take part.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a negative delta;
/// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when the work is cancelled.
pub fn backtrack(graph: &TemporalGraph, motif: &Motif, delta: i64, ties: Ties, work: &Work) -> Result<Count> {
    let prepared = Prepared::new(graph, motif, delta, ties)?;
    let num_edges = graph.num_edges();
    let part = work.part("backtracking", num_edges as u64);
    let block = (num_edges / (64 * rayon::current_num_threads())).clamp(1, BLOCK);
    let of_block = |at: usize| -> Result<u64> {
        let range = at * block..((at + 1) * block).min(num_edges);
        let steps = range.len() as u64;
        let mut search = Search::new(&prepared, work.cancel(), 0u64);
        for first in range {
            if search.from(first as u32, num_edges as u32).is_err() {
                break;
            }
        }
        part.advance(steps)?;
        Ok(search.sink)
    };
    let total = (0..num_edges.div_ceil(block)).into_par_iter().map(of_block).try_reduce(|| 0, |a, b| Ok(u64::saturating_add(a, b)))?;
    Ok(Count::saturating(total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::progress::Cancel;
    use std::time::{Duration, Instant};

    fn count(edges: Vec<(u32, u32, i64)>, vertices: u32, motif: &str, delta: i64, ties: Ties) -> Count {
        let graph = TemporalGraph::from_edges(edges, vertices, 0).expect("builds");
        backtrack(&graph, &Motif::parse(motif).expect("motif"), delta, ties, &Work::quiet()).expect("counts")
    }

    #[test]
    fn small_graphs_and_spans_at_the_edges() {
        for ties in [Ties::Order, Ties::Strict] {
            assert_eq!(count(vec![], 0, "0>1", 5, ties).value, 0);
            assert_eq!(count(vec![(0, 0, 1)], 1, "0>1", 5, ties).value, 0);
            assert_eq!(count(vec![(0, 0, 1), (0, 0, 2), (0, 0, 9)], 1, "0>0 0>0", i64::MAX, ties).value, 3);
            assert_eq!(count(vec![(0, 1, 1)], 2, "0>1", 0, ties).value, 1);
            assert_eq!(count(vec![(0, 1, 1)], 2, "0>1 1>0", 0, ties).value, 0);
            assert_eq!(count(vec![(0, 1, i64::MIN), (1, 2, i64::MAX)], 3, "0>1 1>2", i64::MAX, ties).value, 0);
            assert_eq!(count(vec![(0, 1, -3), (1, 2, 4)], 3, "0>1 1>2", 7, ties).value, 1);
            assert_eq!(count(vec![(0, 1, -3), (1, 2, 4)], 3, "0>1 1>2", 6, ties).value, 0);
        }
        // Three edges at one time: delta 0 leaves pairs by order, none by strictly increasing times.
        let tied = vec![(0, 1, 7), (0, 1, 7), (1, 2, 7)];
        assert_eq!(count(tied.clone(), 3, "0>1 1>2", 0, Ties::Order).value, 2);
        assert_eq!(count(tied, 3, "0>1 1>2", 0, Ties::Strict).value, 0);
    }

    #[test]
    fn a_star_with_a_million_leaves_is_counted_in_its_edges() {
        let leaves = 1_000_000;
        let star = (1..=leaves).map(|v| (0, v, i64::from(v))).collect();
        let graph = TemporalGraph::from_edges(star, leaves + 1, 0).expect("builds");
        let motif = Motif::parse("0>1 0>2").expect("motif");
        let count = |delta| backtrack(&graph, &motif, delta, Ties::Strict, &Work::quiet()).expect("counts").value;
        let n = u64::from(leaves);
        assert_eq!(count(i64::MAX), n * (n - 1) / 2);
        assert_eq!(count(10), 10 * n - 55);
    }

    #[test]
    fn counts_past_64_bits_say_so() {
        let parallel = |n: i64| (0..n).map(|t| (0, 1, t)).collect::<Vec<_>>();
        let repeated = |times: usize| vec!["0>1"; times].join(" ");
        // C(67, 32) is below 2^64, C(68, 32) above it.
        let below = count(parallel(67), 2, &repeated(32), i64::MAX, Ties::Order);
        assert_eq!(below, Count { value: 13_413_576_695_470_557_606, saturated: false });
        for ties in [Ties::Order, Ties::Strict] {
            let above = count(parallel(68), 2, &repeated(32), i64::MAX, ties);
            assert_eq!(above, Count { value: u64::MAX, saturated: true });
        }
        // Each first edge counts less than 2^64, their sum more: C(1500, 7) is 3.3e18.
        assert!(!count(parallel(1501), 2, &repeated(8), 0, Ties::Order).saturated);
        assert_eq!(count(parallel(5000), 2, &repeated(8), 1500, Ties::Order), Count { value: u64::MAX, saturated: true });
    }

    #[test]
    fn cancelling_stops_the_search_inside_a_first_edge() {
        // Some 10^15 pairs of edges apart before the last edge: hours, if it went on.
        let graph = TemporalGraph::from_edges((0..100_000).map(|i| (2 * i, 2 * i + 1, 0)).collect(), 200_000, 0).expect("builds");
        let cancel = Cancel::new();
        let work = Work::new(&(), cancel.clone());
        let motif = Motif::parse("0>1 2>3 4>5 6>7").expect("motif");
        std::thread::scope(|scope| {
            let counting = scope.spawn(|| backtrack(&graph, &motif, 0, Ties::Order, &work));
            std::thread::sleep(Duration::from_millis(100));
            let asked = Instant::now();
            cancel.cancel();
            let result = counting.join().expect("no panic");
            assert_eq!(result.expect_err("cancelled").kind(), ErrorKind::Cancelled);
            assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        });
    }
}
