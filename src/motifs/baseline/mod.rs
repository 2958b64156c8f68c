//! Baseline estimators from the literature, to compare with: PRESTO-A samples windows of time, edge sampling samples first edges. Both are
//! unbiased, and both are a function of their seed alone, whatever the number of threads.

mod edge_sampling;
mod presto;

pub use edge_sampling::{EdgeSamplingOptions, edge_sampling};
pub use presto::{PrestoOptions, presto};

use kernels_gen::threefry::Key;

/// What a baseline says of a number of matches.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BaselineEstimate {
    /// The estimate.
    pub estimate: f64,
    /// Its standard error, as estimated from the same samples.
    pub std_error: f64,
    /// Windows, or first edges, that were looked at.
    pub samples: u64,
    /// Those of them that held a match.
    pub nonzero: u64,
    /// Whether a count that went into it reached 2^64 - 1, so that it is too low.
    pub saturated: bool,
    /// Seconds it took.
    pub seconds: f64,
}

/// Draw `index` of a key as a float in [0, 1): a multiple of 2^-53.
fn uniform(key: Key, index: u64) -> f64 {
    let [low, high] = key.block(index);
    let bits = u64::from(high) << 32 | u64::from(low);
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::error::Result;
    use crate::motifs::exact::backtrack;
    use crate::motifs::{Motif, TemporalGraph, Ties};
    use crate::progress::{Cancel, Work};

    const DELTA: i64 = 40;

    /// Bursts with ties, loops and duplicates, negative times among them.
    fn bursts() -> TemporalGraph {
        let key = Key::new(11);
        let draw = |n: u64, bound: u32| key.word(n) % bound;
        let edge = |i: u64| (draw(4 * i, 5), draw(4 * i + 1, 5), i64::from(200 * draw(4 * i + 2, 8) + draw(4 * i + 3, 60)) - 500);
        TemporalGraph::from_edges((0..400).map(edge).collect(), 5, 0).expect("builds")
    }

    /// Checks that estimates by many seeds scatter around the exact count, as far as they say they do.
    fn check(what: &str, exact: u64, estimate: impl Fn(u64) -> Result<BaselineEstimate>) {
        let seeds = 400;
        let estimates: Vec<BaselineEstimate> = (0..seeds).map(|seed| estimate(seed).expect("estimates")).collect();
        let mean = estimates.iter().map(|e| e.estimate).sum::<f64>() / seeds as f64;
        let variance = estimates.iter().map(|e| (e.estimate - mean).powi(2)).sum::<f64>() / (seeds - 1) as f64;
        let error = (variance / seeds as f64).sqrt();
        assert!(variance > 0.0 && (mean - exact as f64).abs() <= 4.0 * error, "{what}: {mean} +- {error}, exact {exact}");
        let stated = estimates.iter().map(|e| e.std_error.powi(2)).sum::<f64>() / seeds as f64;
        assert!((0.7..1.4).contains(&(stated / variance)), "{what}: {stated} stated, {variance} seen");
        assert_eq!((estimates[3].estimate, estimates[3].nonzero), estimate(3).map(|e| (e.estimate, e.nonzero)).expect("estimates"));
    }

    #[test]
    fn estimates_are_unbiased_and_know_their_error() {
        let graph = bursts();
        for text in ["0>1", "0>1 1>2", "0>1 1>0 0>1", "0>1 1>2 2>0 0>1", "0>0 0>1", "0>1 2>3"] {
            for ties in [Ties::Order, Ties::Strict] {
                let motif = Motif::parse(text).expect("motif");
                let exact = backtrack(&graph, &motif, DELTA, ties, &Work::quiet()).expect("counts").value;
                assert!(exact > 30, "{text}: {exact}");
                check(&format!("PRESTO-A, {text}, {ties:?}"), exact, |seed| {
                    presto(&graph, &motif, DELTA, ties, &PrestoOptions { windows: 40, seed, ..Default::default() }, &Work::quiet())
                });
                check(&format!("edge sampling, {text}, {ties:?}"), exact, |seed| {
                    edge_sampling(&graph, &motif, DELTA, ties, &EdgeSamplingOptions { probability: 0.3, seed }, &Work::quiet())
                });
            }
        }
    }

    #[test]
    fn all_edges_sampled_are_the_exact_count() {
        let (graph, motif) = (bursts(), Motif::parse("0>1 1>2 2>0").expect("motif"));
        let exact = backtrack(&graph, &motif, DELTA, Ties::Order, &Work::quiet()).expect("counts").value;
        let options = EdgeSamplingOptions { probability: 1.0, seed: 0 };
        let all = edge_sampling(&graph, &motif, DELTA, Ties::Order, &options, &Work::quiet()).expect("estimates");
        assert_eq!((all.estimate, all.std_error, all.samples), (exact as f64, 0.0, 400));
    }

    #[test]
    fn graphs_without_matches_and_wrong_options() {
        let motif = Motif::parse("0>1 1>2").expect("motif");
        let work = Work::quiet();
        for edges in [vec![], vec![(0, 1, 5)], vec![(1, 1, 5), (1, 1, 6)]] {
            let graph = TemporalGraph::from_edges(edges, 2, 0).expect("builds");
            let windows = presto(&graph, &motif, 9, Ties::Order, &PrestoOptions::default(), &work).expect("estimates");
            assert_eq!((windows.estimate, windows.std_error, windows.nonzero), (0.0, 0.0, 0));
            let edges = edge_sampling(&graph, &motif, 9, Ties::Order, &EdgeSamplingOptions::default(), &work).expect("estimates");
            assert_eq!((edges.estimate, edges.std_error, edges.nonzero), (0.0, 0.0, 0));
        }
        let graph = bursts();
        let windows = |delta, windows, c| presto(&graph, &motif, delta, Ties::Order, &PrestoOptions { windows, c, seed: 1 }, &work);
        for refused in [windows(-1, 9, 1.25), windows(0, 9, 1.25), windows(5, 1, 1.25), windows(5, 9, 1.0), windows(5, 9, f64::NAN)] {
            assert_eq!(refused.expect_err("refused").kind(), ErrorKind::InvalidArgument);
        }
        assert!(windows(i64::MAX, 9, 1.25).expect("a span past the graph's").estimate > 0.0);
        for probability in [0.0, -0.5, 1.5, f64::NAN] {
            let refused = edge_sampling(&graph, &motif, 5, Ties::Order, &EdgeSamplingOptions { probability, seed: 1 }, &work);
            assert_eq!(refused.expect_err("refused").kind(), ErrorKind::InvalidArgument);
        }
        let work = Work::new(&(), Cancel::new());
        work.cancel().cancel();
        let stopped = presto(&graph, &motif, 5, Ties::Order, &PrestoOptions::default(), &work);
        assert_eq!(stopped.expect_err("cancelled").kind(), ErrorKind::Cancelled);
        let stopped = edge_sampling(&graph, &motif, 5, Ties::Order, &EdgeSamplingOptions::default(), &work);
        assert_eq!(stopped.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    }
}
