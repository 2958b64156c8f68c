//! Counting the matches of a motif: what a caller asks for, and what it gets.

use std::time::Instant;

use sha2::{Digest, Sha256};

use crate::error::{Error, ErrorKind, Result};
use crate::motifs::engine::Engine;
use crate::motifs::estimate::{FEW_NONZERO, Purpose, Replicate, Shard, Summary, enumerate, relative_deviation, sample};
use crate::motifs::exact::backtrack;
use crate::motifs::paths::{Keys, Numbered};
use crate::motifs::plan::{PILOT_NONZERO, PlanTable, Task, no_anchor};
use crate::motifs::{Anchor, Motif, Prune, TemporalGraph, Ties};
use crate::progress::Work;

/// How to count.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Method {
    /// Every path where the budget of paths allows it, which is exact; else as many draws as the budget has. Motifs that have no anchor are
    /// counted by backtracking.
    #[default]
    Auto,
    /// Backtracking on the processor: exact.
    Exact,
    /// Every path: exact.
    Enumerate,
    /// So many draws, rounded down so that all of the 32 replicates have as many, and at least one each.
    Samples(u64),
    /// Draws in rounds, until one standard error is at most this part of the estimate or the budget of paths is used.
    Error(f64),
}

/// How a result came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// Backtracking.
    Backtrack,
    /// Every path of an anchor.
    Enumerate,
    /// Draws.
    Sample,
    /// The linear-time programme for the 36 small motifs.
    Grid,
}

impl How {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            How::Backtrack => "backtrack",
            How::Enumerate => "enumerate",
            How::Sample => "sample",
            How::Grid => "grid",
        }
    }

    /// The way of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [How::Backtrack, How::Enumerate, How::Sample, How::Grid].into_iter().find(|how| how.name() == name)
    }
}

/// What to count and how.
#[derive(Debug, Clone)]
pub struct CountOptions {
    /// Longest time from the first to the last edge of a match, inclusive, in ticks of the graph; not negative.
    pub delta: i64,
    /// How edges of equal time follow each other.
    pub ties: Ties,
    /// How to count.
    pub method: Method,
    /// Paths that may be counted or drawn, 1 or more.
    pub budget: u64,
    /// The anchor; `None`: the planner's.
    pub anchor: Option<Anchor>,
    /// Pruning; `None`: the planner's.
    pub prune: Option<Prune>,
    /// What numbers paths and draws from them.
    pub engine: Engine,
    /// Seed of all draws.
    pub seed: u64,
    /// The part of the work to do; `None`: all of it.
    pub shard: Option<Shard>,
    /// Most bytes of a table of units.
    pub memory_limit_bytes: u64,
}

/// Paths counted or drawn where nothing else is asked for.
pub const DEFAULT_BUDGET: u64 = 100_000_000;
/// Bytes of a table of units where nothing else is asked for.
pub const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;

impl CountOptions {
    /// The defaults for that delta.
    pub fn new(delta: i64) -> Self {
        CountOptions {
            delta,
            ties: Ties::Order,
            method: Method::Auto,
            budget: DEFAULT_BUDGET,
            anchor: None,
            prune: None,
            engine: Engine::Cpu,
            seed: 0,
            shard: None,
            memory_limit_bytes: DEFAULT_MEMORY_BYTES,
        }
    }

    fn check(&self) -> Result<()> {
        if self.delta < 0 {
            return Err(Error::invalid(format!("delta is {}, it is a span of time of 0 or more", self.delta)));
        }
        if self.budget == 0 {
            return Err(Error::invalid("the path budget is 0, it is 1 or more; leave it out for 100000000"));
        }
        match self.method {
            Method::Samples(0) => return Err(Error::invalid("0 samples are asked for, at least 1 is needed")),
            Method::Error(error) if !(error > 0.0 && error <= 1.0) => {
                return Err(Error::invalid(format!(
                    "an error of {error} is asked for, it is above 0 and at most 1 (100%), such as 0.01 or 1%"
                )));
            }
            Method::Error(_) if self.shard.is_some() => {
                return Err(Error::unsupported(
                    "rounds towards an error need all replicates, so they cannot be split in shards; give --samples or --budget with --shard",
                ));
            }
            Method::Exact if self.shard.is_some() => {
                return Err(Error::unsupported(
                    "backtracking cannot be split in shards; give --enumerate, which is exact too, with --shard",
                ));
            }
            Method::Exact if self.anchor.is_some() || self.prune.is_some() => {
                return Err(Error::invalid(
                    "backtracking numbers no paths, so it takes no anchor and no pruning; --enumerate does, and is exact too",
                ));
            }
            _ => {}
        }
        match self.shard {
            Some(Shard { index, of }) => Shard::new(index, of).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// A number of matches, as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// Exactly.
    Exact(u64),
    /// From draws.
    Estimate(f64),
    /// Of one shard's part of the paths only.
    Part(u64),
}

/// What ended a count that had a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndedBy {
    /// The error asked for was reached.
    Goal,
    /// The budget of paths was used before.
    Budget,
    /// Every path was counted.
    Exact,
}

impl EndedBy {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            EndedBy::Goal => "goal",
            EndedBy::Budget => "budget",
            EndedBy::Exact => "exact",
        }
    }

    /// The end of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [EndedBy::Goal, EndedBy::Budget, EndedBy::Exact].into_iter().find(|end| end.name() == name)
    }
}

/// What shards must agree on to be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Edges of the graph.
    pub num_edges: u64,
    /// Its vertices.
    pub num_vertices: u64,
    /// The first 64 bits of the SHA-256 of its edges and times, in hexadecimal.
    pub hash: String,
}

impl Fingerprint {
    /// The fingerprint of a graph.
    pub fn of(graph: &TemporalGraph) -> Self {
        let mut hash = Sha256::new();
        hash.update(u64::from(graph.decimals).to_le_bytes());
        for (edge, time) in graph.edges.iter().zip(&graph.times) {
            hash.update(edge[0].to_le_bytes());
            hash.update(edge[1].to_le_bytes());
            hash.update(time.to_le_bytes());
        }
        let hash = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Fingerprint { num_edges: graph.num_edges() as u64, num_vertices: graph.num_vertices() as u64, hash }
    }
}

/// A result and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The motif.
    pub motif: Motif,
    /// Delta, in ticks of the graph.
    pub delta: i64,
    /// 10^`decimals` ticks are one unit of the graph's file.
    pub decimals: u32,
    /// How edges of equal time follow each other.
    pub ties: Ties,
    /// How the result came about.
    pub method: How,
    /// The number of matches.
    pub value: Value,
    /// Its standard error: 0 where it is exact, `None` where nothing is known of it.
    pub std_error: Option<f64>,
    /// The interval that holds the number in 95 % of runs; both ends are the value where it is exact.
    pub ci95: Option<[f64; 2]>,
    /// Paths drawn or counted for this result, pilots and earlier rounds left out.
    pub samples: u64,
    /// Of which in order, within delta and on distinct vertices.
    pub valid: u64,
    /// Of which with a match.
    pub nonzero: u64,
    /// Paths of the anchor without pruning; `None` without an anchor and past 2^64 - 1.
    pub w: Option<u64>,
    /// Paths of the anchor with pruning.
    pub w_pruned: Option<u64>,
    /// The anchor.
    pub anchor: Option<Anchor>,
    /// Relative deviation of one independent draw.
    pub r1: Option<f64>,
    /// Time of counting or drawing, in seconds; planning is apart.
    pub seconds: f64,
    /// Time of planning and numbering, in seconds.
    pub planning_seconds: f64,
    /// Whether a sum was beyond its range: the number is larger than the value.
    pub saturated: bool,
    /// Name of the engine.
    pub engine: String,
    /// Pruning.
    pub prune: Option<Prune>,
    /// Seed of all draws.
    pub seed: u64,
    /// What ended the count, where it had a choice.
    pub ended_by: Option<EndedBy>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Reasons not to trust the result.
    pub warnings: Vec<String>,
    /// What a merge needs; of a shard only.
    pub part: Option<ShardPart>,
}

/// What a merge needs of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardPart {
    /// Which shard.
    pub shard: Shard,
    /// The graph.
    pub graph: Fingerprint,
    /// Samples asked for in all shards; 0 where paths are counted.
    pub samples: u64,
    /// The shard's sums.
    pub replicates: Vec<Replicate>,
}

impl Counted {
    /// Draws a second, or paths counted a second; `None` for backtracking.
    pub fn samples_per_s(&self) -> Option<f64> {
        (self.seconds > 0.0 && self.samples > 0).then(|| self.samples as f64 / self.seconds)
    }

    /// Sets what an exact value says of its error.
    fn exactly(&mut self, value: u64, saturated: bool) {
        (self.value, self.saturated) = (Value::Exact(value), saturated);
        (self.std_error, self.ci95) = (Some(0.0), Some([value as f64; 2]));
        if saturated {
            self.warnings.push("the number is past 2^64 - 1; what is printed is a lower bound".into());
        }
    }

    /// Sets the result from the sums of all paths of `total`.
    pub(in crate::motifs) fn set_enumerated(&mut self, total: u64, sums: &Replicate) {
        self.method = How::Enumerate;
        (self.samples, self.valid, self.nonzero) = (sums.strata, sums.valid, sums.nonzero);
        // Of a sum that is too small nothing follows.
        self.r1 = if sums.saturated { None } else { relative_deviation(total as f64, sums.sum as f64, sums.squares) };
        self.exactly(sums.sum, sums.saturated);
    }

    /// Sets the result from replicates.
    pub(in crate::motifs) fn set_sampled(&mut self, total: u64, replicates: &[Replicate]) {
        let summary = Summary::new(total, replicates);
        self.method = How::Sample;
        self.value = Value::Estimate(summary.estimate);
        (self.std_error, self.ci95, self.r1) = (summary.std_error, summary.ci95, summary.r1);
        (self.samples, self.valid, self.nonzero, self.saturated) = (summary.samples, summary.valid, summary.nonzero, summary.saturated);
        if summary.nonzero < FEW_NONZERO && total > 0 {
            self.warnings.push(format!(
                "only {} of the samples had a match; under {FEW_NONZERO} the standard error and the interval mean little: draw more, prune \
                 more or count with --enumerate or --exact",
                summary.nonzero
            ));
        }
        if summary.saturated {
            self.warnings.push("a sum was past 2^64 - 1; the estimate is too small and its error unknown".into());
        }
    }
}

/// Counts the matches of `motif` in `graph`.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`] for options out of range; [`ErrorKind::Unsupported`] where draws or paths are asked for of a motif that has
/// no anchor, and for what cannot be split in shards; [`ErrorKind::OutOfMemory`] before the work starts where a table would be larger than
/// the limit; [`ErrorKind::Cancelled`].
pub fn count(graph: &TemporalGraph, motif: &Motif, options: &CountOptions, work: &Work) -> Result<Counted> {
    options.check()?;
    let mut counted = Counted {
        motif: motif.clone(),
        delta: options.delta,
        decimals: graph.decimals,
        ties: options.ties,
        method: How::Backtrack,
        value: Value::Exact(0),
        std_error: None,
        ci95: None,
        samples: 0,
        valid: 0,
        nonzero: 0,
        w: None,
        w_pruned: None,
        anchor: None,
        r1: None,
        seconds: 0.0,
        planning_seconds: 0.0,
        saturated: false,
        engine: options.engine.name().into(),
        prune: None,
        seed: options.seed,
        ended_by: None,
        notes: Vec::new(),
        warnings: Vec::new(),
        part: None,
    };
    let start = Instant::now();
    let has_anchor = !Anchor::all_paths(motif).is_empty() || !Anchor::all_trees(motif, 1).is_empty();
    if options.method == Method::Exact || !has_anchor {
        if options.method != Method::Exact {
            if options.method != Method::Auto || options.anchor.is_some() || options.prune.is_some() {
                return Err(Error::unsupported(no_anchor(motif)));
            }
            if options.shard.is_some() {
                return Err(Error::unsupported(format!("{}, without --shard", no_anchor(motif))));
            }
            counted.notes.push(format!("counted by backtracking, for {}", no_anchor(motif)));
        }
        if matches!(options.engine, Engine::Gpu(_)) {
            counted.notes.push("backtracking runs on the processor, whatever the engine".into());
        }
        let count = backtrack(graph, motif, options.delta, options.ties, work)?;
        counted.engine = Engine::Cpu.name().into();
        counted.exactly(count.value, count.saturated);
        counted.seconds = start.elapsed().as_secs_f64();
        return Ok(counted);
    }
    let keys = Keys::new(graph, options.delta, options.ties);
    let engine = options.engine.open(graph, &keys)?;
    let planned = Task { graph, engine: &engine, motif, options, work, whole_table: false }.plan()?;
    let PlanTable { rows, anchor, prune, enumerates, notes, .. } = planned.table;
    let (paths, total) = (&*planned.paths, planned.paths.total());
    counted.w = rows.iter().find(|row| row.chosen).and_then(|row| row.w);
    counted.w_pruned = Some(total);
    (counted.anchor, counted.prune) = (Some(anchor), Some(prune));
    counted.notes.extend(notes);
    counted.planning_seconds = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let mut asked = 0;
    let mut replicates = Vec::new();
    match options.method {
        Method::Error(error) => rounds(&mut counted, paths, error, options, work)?,
        _ if enumerates => {
            let sums = enumerate(paths, options.shard, work)?;
            counted.set_enumerated(total, &sums);
            if options.shard.is_some() {
                (counted.value, counted.std_error, counted.ci95, counted.r1) = (Value::Part(sums.sum), None, None, None);
            }
            replicates.push(sums);
            counted.ended_by = (options.method == Method::Auto).then_some(EndedBy::Exact);
        }
        method => {
            asked = if let Method::Samples(samples) = method { samples } else { options.budget };
            replicates = sample(paths, asked, options.seed, Purpose::Estimate, options.shard, work)?;
            counted.set_sampled(total, &replicates);
            if method == Method::Auto {
                counted.ended_by = Some(EndedBy::Budget);
                counted
                    .notes
                    .push(format!("the anchor has {total} paths, more than the budget of {}, so they were sampled", options.budget));
            }
        }
    }
    counted.seconds = start.elapsed().as_secs_f64();
    counted.part = options.shard.map(|shard| ShardPart { shard, graph: Fingerprint::of(graph), samples: asked, replicates });
    if let Some(part) = &counted.part {
        counted.notes.push(format!("this is shard {} alone; `sublane motifs merge` puts all shards together", part.shard));
    }
    Ok(counted)
}

/// Draws of the first round.
const FIRST_ROUND: u64 = 1 << 17;

/// Rounds of draws, each at least twice the one before, of which the last is the result: the size of a round is set from the rounds before
/// it alone, so that the last is a sample of a size that does not depend on what it found.
fn rounds(counted: &mut Counted, paths: &dyn Numbered, error: f64, options: &CountOptions, work: &Work) -> Result<()> {
    let total = paths.total();
    let (mut left, mut size) = (options.budget, FIRST_ROUND.min(options.budget));
    let mut all: Vec<Replicate> = Vec::new();
    let mut sizes = Vec::new();
    for round in 0.. {
        if size >= total && total <= left {
            counted.set_enumerated(total, &enumerate(paths, None, work)?);
            counted.ended_by = Some(EndedBy::Exact);
            break;
        }
        let replicates = sample(paths, size, options.seed, Purpose::Round(round), None, work)?;
        counted.warnings.clear();
        counted.set_sampled(total, &replicates);
        sizes.push(counted.samples);
        left = left.saturating_sub(counted.samples);
        let summary = Summary::new(total, &replicates);
        if summary.nonzero >= PILOT_NONZERO && summary.relative_error().is_some_and(|e| e <= error) && !summary.saturated {
            counted.ended_by = Some(EndedBy::Goal);
            break;
        }
        all.extend(replicates);
        // A quarter more than the draws so far say is needed, so that few rounds miss by chance.
        let needed = needed(total, &all, error).map_or(0, |draws| (1.25 * draws).min(u64::MAX as f64) as u64);
        let next = needed.max(size.saturating_mul(2)).min(left);
        if next <= size {
            counted.ended_by = Some(EndedBy::Budget);
            counted.warnings.push(format!(
                "the budget of {} paths ended before the error of {}% was reached",
                options.budget,
                error * 100.0
            ));
            break;
        }
        size = next;
    }
    if counted.method == How::Sample {
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        counted.notes.push(format!("rounds of {} draws, of which the last is the result", sizes.join(", ")));
    }
    Ok(())
}

/// Draws that the rounds so far say are needed; `None` while too few had a match.
fn needed(total: u64, rounds: &[Replicate], error: f64) -> Option<f64> {
    let (mut draws, mut sum, mut squares, mut nonzero) = (0.0, 0.0, 0u128, 0);
    for r in rounds {
        draws += total as f64 / r.width as f64;
        sum += r.sum as f64;
        squares = squares.saturating_add(r.squares);
        nonzero += r.nonzero;
    }
    let r1 = relative_deviation(draws, sum, squares).filter(|_| nonzero >= PILOT_NONZERO)?;
    Some((r1 / error).powi(2))
}

/// The planner's table for `sublane motifs plan`: every anchor with its paths and a pilot.
///
/// # Errors
///
/// As [`count`]; [`ErrorKind::Unsupported`] for a motif that has no anchor.
pub fn plan(graph: &TemporalGraph, motif: &Motif, options: &CountOptions, work: &Work) -> Result<PlanTable> {
    options.check()?;
    if options.method == Method::Exact {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            "backtracking has no plan; plan for --enumerate, --samples, --budget or --error",
        ));
    }
    let keys = Keys::new(graph, options.delta, options.ties);
    let engine = options.engine.open(graph, &keys)?;
    Ok(Task { graph, engine: &engine, motif, options, work, whole_table: true }.plan()?.table)
}

#[cfg(test)]
pub(in crate::motifs) mod tests;
