//! All methods on one graph and motif: what each finds, how far off it is, and how long it takes.

use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::motifs::baseline::{BaselineEstimate, EdgeSamplingOptions, PrestoOptions, edge_sampling, presto};
use crate::motifs::count::{CountOptions, How, Method, Value, count};
use crate::motifs::exact::{backtrack, grid};
use crate::motifs::{Motif, TemporalGraph};
use crate::progress::Work;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compared {
    /// Chronological backtracking: exact.
    Backtrack,
    /// Every path of the planner's anchor: exact.
    Enumerate,
    /// The linear-time programme: exact, for 36 motifs.
    Grid,
    /// Draws of paths.
    Sample,
    /// PRESTO-A.
    Presto,
    /// Edge sampling.
    EdgeSampling,
}

impl Compared {
    /// Every method, in the order in which they run.
    pub const ALL: [Compared; 6] =
        [Compared::Backtrack, Compared::Enumerate, Compared::Grid, Compared::Sample, Compared::Presto, Compared::EdgeSampling];

    /// Name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Compared::Backtrack => "backtrack",
            Compared::Enumerate => "enumerate",
            Compared::Grid => "grid",
            Compared::Sample => "sample",
            Compared::Presto => "presto",
            Compared::EdgeSampling => "edge-sampling",
        }
    }
}

/// What to compare and with what effort.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// Delta, ties, anchor, pruning, engine, seed and the path budget of enumeration; the method is not looked at.
    pub count: CountOptions,
    /// Methods that run.
    pub methods: Vec<Compared>,
    /// Draws of sampling.
    pub samples: u64,
    /// Windows of PRESTO-A.
    pub windows: u64,
    /// Share of first edges that edge sampling keeps.
    pub probability: f64,
}

impl CompareOptions {
    /// All methods with the efforts that are usual.
    pub fn new(count: CountOptions) -> Self {
        let (windows, probability) = (PrestoOptions::default().windows, EdgeSamplingOptions::default().probability);
        CompareOptions { count, methods: Compared::ALL.to_vec(), samples: 1_000_000, windows, probability }
    }
}

/// What one method found.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareRow {
    /// The method.
    pub method: Compared,
    /// The number of matches; `None` where the method does not apply.
    pub value: Option<Value>,
    /// Its standard error, as the method states it.
    pub std_error: Option<f64>,
    /// |value - exact| / exact; `None` where no exact method ran, or the exact count is 0 and the value is not.
    pub relative_error: Option<f64>,
    /// Paths, windows or first edges looked at.
    pub samples: Option<u64>,
    /// Of which with a match.
    pub nonzero: Option<u64>,
    /// Time in seconds, planning included.
    pub seconds: Option<f64>,
    /// Whether a sum was beyond its range.
    pub saturated: bool,
    /// Why the method does not apply, or what a reader should know.
    pub note: String,
}

/// What all methods found.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// One row for each method.
    pub rows: Vec<CompareRow>,
    /// The exact count, if an exact method ran.
    pub exact: Option<u64>,
    /// Whether all exact methods that ran agree.
    pub exact_agree: bool,
}

/// Counts with each method in turn. A method that does not apply has a row that says why.
///
/// # Errors
///
/// As [`count`]; [`ErrorKind::InvalidArgument`] for efforts out of range and where no method is given.
pub fn compare(graph: &TemporalGraph, motif: &Motif, options: &CompareOptions, work: &Work) -> Result<Comparison> {
    if options.methods.is_empty() {
        return Err(Error::invalid("no method is left to compare"));
    }
    if options.count.delta < 0 {
        return Err(Error::invalid(format!("delta is {}, it is a span of time of 0 or more", options.count.delta)));
    }
    if options.samples == 0 || options.windows < 2 || !(options.probability > 0.0 && options.probability <= 1.0) {
        return Err(Error::invalid(format!(
            "{} samples, {} windows and a probability of {} are asked for; at least 1 sample, 2 windows and a probability above 0 and at most 1 \
             are needed",
            options.samples, options.windows, options.probability
        )));
    }
    let mut rows = Vec::new();
    for &method in &options.methods {
        work.cancel().check()?;
        let mut row = CompareRow {
            method,
            value: None,
            std_error: None,
            relative_error: None,
            samples: None,
            nonzero: None,
            seconds: None,
            saturated: false,
            note: String::new(),
        };
        let start = Instant::now();
        match run(graph, motif, options, &mut row, work) {
            Ok(()) if row.value.is_some() => row.seconds = Some(start.elapsed().as_secs_f64()),
            Ok(()) => {}
            // What this motif, delta or graph is not made for.
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidArgument | ErrorKind::Limit) => {
                row.note = error.to_string();
            }
            Err(error) => return Err(error),
        }
        rows.push(row);
    }
    let exacts: Vec<u64> =
        rows.iter().filter_map(|row| if let Some(Value::Exact(value)) = row.value { Some(value) } else { None }).collect();
    let exact = exacts.first().copied();
    for row in &mut rows {
        let value = match row.value {
            Some(Value::Exact(value)) => value as f64,
            Some(Value::Estimate(value)) => value,
            _ => continue,
        };
        row.relative_error = exact.and_then(|exact| match exact {
            0 => (value == 0.0).then_some(0.0),
            exact => Some((value - exact as f64).abs() / exact as f64),
        });
    }
    Ok(Comparison { rows, exact, exact_agree: exacts.iter().all(|&value| Some(value) == exact) })
}

fn run(graph: &TemporalGraph, motif: &Motif, options: &CompareOptions, row: &mut CompareRow, work: &Work) -> Result<()> {
    let CountOptions { delta, ties, seed, .. } = options.count;
    match row.method {
        Compared::Backtrack => {
            let found = backtrack(graph, motif, delta, ties, work)?;
            (row.value, row.std_error, row.saturated) = (Some(Value::Exact(found.value)), Some(0.0), found.saturated);
        }
        Compared::Grid => match place(motif) {
            Some([i, j]) => {
                let found = grid(graph, delta, ties, work)?[i][j];
                (row.value, row.std_error, row.saturated) = (Some(Value::Exact(found.value)), Some(0.0), found.saturated);
                row.note = "all 36 motifs at once".into();
            }
            None => row.note = "it is none of the 36 motifs G11 to G66".into(),
        },
        Compared::Enumerate | Compared::Sample => {
            let method = if row.method == Compared::Sample { Method::Samples(options.samples) } else { Method::Auto };
            let found = count(graph, motif, &CountOptions { method, shard: None, ..options.count.clone() }, work)?;
            if row.method == Compared::Enumerate && found.method != How::Enumerate {
                row.note = found.notes.join("; ");
                return Ok(());
            }
            (row.value, row.std_error, row.saturated) = (Some(found.value), found.std_error, found.saturated);
            (row.samples, row.nonzero) = (Some(found.samples), Some(found.nonzero));
            let anchor = found.anchor.map(|anchor| format!("anchor {anchor}"));
            row.note = anchor.into_iter().chain(found.notes).chain(found.warnings).collect::<Vec<_>>().join("; ");
        }
        Compared::Presto => {
            let wanted = PrestoOptions { windows: options.windows, seed, ..PrestoOptions::default() };
            row.estimated(presto(graph, motif, delta, ties, &wanted, work)?);
        }
        Compared::EdgeSampling => {
            let wanted = EdgeSamplingOptions { probability: options.probability, seed };
            row.estimated(edge_sampling(graph, motif, delta, ties, &wanted, work)?);
        }
    }
    Ok(())
}

impl CompareRow {
    fn estimated(&mut self, found: BaselineEstimate) {
        (self.value, self.std_error, self.saturated) = (Some(Value::Estimate(found.estimate)), Some(found.std_error), found.saturated);
        (self.samples, self.nonzero) = (Some(found.samples), Some(found.nonzero));
    }
}

/// Row and column, from 0, of a motif among the 36.
fn place(motif: &Motif) -> Option<[usize; 2]> {
    (0..36).map(|at| [at / 6, at % 6]).find(|[i, j]| Motif::grid(i + 1, j + 1).edges() == motif.edges())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motifs::count::tests::graph;

    fn compared(motif: &str, change: impl Fn(&mut CompareOptions)) -> Result<Comparison> {
        let graph = graph(11, 30, 1500, 1000);
        let mut options = CompareOptions::new(CountOptions::new(60));
        options.probability = 0.3;
        change(&mut options);
        compare(&graph, &Motif::parse(motif).expect("a motif"), &options, &Work::quiet())
    }

    #[test]
    fn all_methods_that_apply_agree_or_estimate() {
        for (motif, none) in
            [("G42", vec![]), ("M4-0", vec![Compared::Grid]), ("0>1 2>3", vec![Compared::Enumerate, Compared::Grid, Compared::Sample])]
        {
            let found = compared(motif, |_| {}).expect("compares");
            assert!(found.exact_agree && found.exact.is_some_and(|n| n > 50), "{motif}: {found:?}");
            for row in &found.rows {
                assert_eq!(row.value.is_none(), none.contains(&row.method), "{motif}: {row:?}");
                assert!(row.value.is_some() || !row.note.is_empty());
                let Some(error) = row.relative_error else { continue };
                match row.value {
                    Some(Value::Estimate(_)) => {
                        let stated = row.std_error.expect("stated") / found.exact.expect("counted") as f64;
                        assert!(error <= 6.0 * stated, "{motif}: {row:?}");
                    }
                    _ => assert_eq!(error, 0.0),
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        assert!(compared("M4-0", |o| o.methods.clear()).is_err());
        assert!(compared("M4-0", |o| o.samples = 0).is_err());
        assert!(compared("M4-0", |o| o.windows = 1).is_err());
        assert!(compared("M4-0", |o| o.probability = 1.5).is_err());
        assert!(compared("M4-0", |o| o.count.delta = -1).is_err());
        let over = compared("M4-0", |o| (o.count.budget, o.methods) = (100, vec![Compared::Enumerate])).expect("compares");
        assert!(over.exact.is_none() && over.rows[0].note.contains("budget of 100"), "{over:?}");
    }
}
