//! The autotuner: which configuration of a matrix product or a convolution is fastest on one adapter.
//!
//! Each distinct product of a graph, with all that is fused with it, becomes a plan of its own; a [`Runner`] runs it with each candidate
//! configuration. A candidate may win only after its results have passed against the reference. The table's choice is always among them and
//! keeps its place unless another is clearly faster.

mod choices;
pub mod file;
mod sampled;
mod trial;

pub use choices::{Choice, Tuning};

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::compiler::fuse::Group;
use crate::compiler::stages::Stages;
use crate::compiler::{CompileOptions, groups, known_as, lower};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::plan::{ExecutionPlan, SlotId};
use crate::progress::Work;
use crate::stats::median;
use kernels_gen::Target;
use kernels_gen::heroes::tiles::Candidates;
use trial::{Case, Trial};

/// Runs plans for the tuner.
pub trait Runner {
    /// Makes everything that runs of `plan` need.
    fn load(&self, plan: &ExecutionPlan) -> Result<Box<dyn Loaded + '_>>;
}

/// A plan that is ready to run.
pub trait Loaded {
    /// Overwrites what an input or an output holds.
    fn write(&self, slot: SlotId, bytes: &[u8]) -> Result<()>;

    /// Runs once and returns the bytes of a slot.
    fn run(&self, output: SlotId) -> Result<Vec<u8>>;

    /// Time of one of `runs` runs one after the other.
    fn time(&self, runs: usize) -> Result<Duration>;
}

/// When kernels are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Autotune {
    /// Never; what a tuning knows already is used.
    #[default]
    Off,
    /// Where no choice is known: the likely candidates, within a limit of time.
    On,
    /// Always, and all valid candidates, whatever it takes.
    Exhaustive,
}

impl Autotune {
    /// Name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Autotune::Off => "off",
            Autotune::On => "on",
            Autotune::Exhaustive => "exhaustive",
        }
    }

    fn candidates(self) -> Candidates {
        if self == Autotune::Exhaustive { Candidates::All } else { Candidates::Likely }
    }
}

/// A candidate that was not timed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Name of the configuration.
    pub config: String,
    /// Why.
    pub reason: String,
}

/// What was measured of one problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What is tuned as one.
    pub key: String,
    /// Where it occurs first in the user's program.
    pub origin: String,
    /// Number of candidates, the table's choice included.
    pub candidates: usize,
    /// The table's choice.
    pub table: String,
    /// What was chosen; `None` where the table's choice itself could not be checked, which then stays without being noted as measured.
    pub choice: Option<Choice>,
    /// Candidates that failed, gave wrong results or found no time.
    pub skipped: Vec<Skipped>,
}

/// A candidate wins only if it is faster than the table's choice by this factor: what is less is noise.
const WORTH: f64 = 1.03;
/// A candidate slower than the fastest by this factor in its first timing is not timed again.
const HOPELESS: f64 = 1.3;
/// Candidates that are timed to the end, besides the table's choice.
const FINALISTS: usize = 3;
/// Rounds of the last timing, all finalists in turns, and the least number where the limit of time is near.
const ROUNDS: usize = 7;
const MIN_ROUNDS: usize = 3;
/// Shortest sample, and the most runs of one.
const SAMPLE: Duration = Duration::from_millis(4);
const MAX_RUNS: u32 = 32;
/// Time of one problem after which [`Autotune::On`] tries no further candidate: this, or so many runs of the table's choice.
const LIMIT: Duration = Duration::from_millis(3500);
const LIMIT_RUNS: u32 = 40;
const MAX_LIMIT: Duration = Duration::from_secs(20);

/// Everything that tuning needs besides graphs.
#[derive(Clone, Copy)]
pub struct Tuner<'a> {
    /// What kernels are made for.
    pub target: &'a Target,
    /// How graphs are compiled; their tuning is not read.
    pub options: &'a CompileOptions,
    /// When to measure.
    pub autotune: Autotune,
    /// Seed of the inputs.
    pub seed: u64,
    /// Runs the candidates.
    pub runner: &'a dyn Runner,
    /// Whom to tell of progress.
    pub work: &'a Work<'a>,
}

impl Tuner<'_> {
    /// Measures the matrix products and convolutions of `graph` that `tuning` does not know ([`Autotune::On`]), or all of them
    /// ([`Autotune::Exhaustive`]), and puts the choices into it, one by one: what was measured before an error is there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DeviceLost`] and [`ErrorKind::Cancelled`]; those of [`compile`](crate::compiler::compile). Whatever else goes wrong
    /// with a candidate leaves it out.
    pub fn tune(&self, graph: &Graph, tuning: &mut Tuning) -> Result<Vec<Measured>> {
        if self.autotune == Autotune::Off {
            return Ok(Vec::new());
        }
        let Tuner { target, options, autotune, work, .. } = *self;
        let (graph, fusion) = groups(graph, target, options, &mut Stages::new(false))?;
        let mut open: Vec<(&Group, lower::Variants)> = Vec::new();
        let mut seen = HashSet::new();
        for group in &fusion.groups {
            let variants = lower::variants(&graph, group, target, options.numerics, autotune.candidates())?;
            let Some(variants) = variants.filter(|v| v.configs.len() > 1 && graph.ty(group.root).num_elems() > 0) else { continue };
            let known = autotune == Autotune::On && tuning.get(&variants.key).is_some_and(|choice| choice.is_among(&variants.configs));
            if !known && seen.insert(variants.key.clone()) {
                open.push((group, variants));
            }
        }
        let part = work.part("tuning", open.iter().map(|(_, v)| v.configs.len() as u64).sum());
        let mut found = Vec::new();
        for (group, variants) in open {
            let measured = self.measure(&graph, group, &variants, &|steps| part.advance(steps))?;
            log::info!("{}: {}", measured.key, measured.choice.as_ref().map_or("the table's choice stays", |c| c.config.as_str()));
            if let Some(choice) = &measured.choice {
                tuning.insert(measured.key.clone(), choice.clone());
            }
            found.push(measured);
        }
        Ok(found)
    }

    /// Measures one problem.
    fn measure(&self, graph: &Graph, group: &Group, variants: &lower::Variants, step: &dyn Fn(u64) -> Result<()>) -> Result<Measured> {
        let Tuner { target, options, autotune, seed, runner, .. } = *self;
        let start = Instant::now();
        let table = &variants.configs[0];
        let mut measured = Measured {
            key: variants.key.clone(),
            origin: known_as(graph, group.root),
            candidates: variants.configs.len(),
            table: table.clone(),
            choice: None,
            skipped: Vec::new(),
        };
        let lowered = |config: &str| lower::group_as(graph, group, target, options.numerics, lower::Chooser::Named(config));
        let first = lowered(table).and_then(|kernel| Case::new(graph, group, &kernel, seed, runner));
        let (case, first) = match first {
            Ok(first) => first,
            Err(error) if is_final(&error) => return Err(error),
            Err(error) => {
                measured.skipped.push(Skipped { config: table.clone(), reason: error.to_string() });
                step(variants.configs.len() as u64)?;
                return Ok(measured);
            }
        };
        step(1)?;
        let once = first.time(1)?;
        let runs = |once: Duration| (SAMPLE.as_nanos() / once.as_nanos().max(1) + 1).min(u128::from(MAX_RUNS)) as u32;
        let limit = (once * LIMIT_RUNS).clamp(LIMIT, MAX_LIMIT);
        let late = || autotune == Autotune::On && start.elapsed() > limit;
        let mut fastest = first.time(runs(once))?;
        let mut finalists: Vec<(&String, Duration, Trial<'_>)> = Vec::new();
        for config in &variants.configs[1..] {
            if late() {
                measured.skipped.push(Skipped { config: config.clone(), reason: "the limit of time was reached".into() });
                step(1)?;
                continue;
            }
            let timed = lowered(config).and_then(|kernel| case.check(&kernel, runner)).and_then(|trial| {
                let once = trial.time(1)?;
                let hopeless = once.as_secs_f64() > HOPELESS * HOPELESS * fastest.as_secs_f64() && once > SAMPLE;
                Ok((if hopeless { once } else { trial.time(runs(once))? }, trial))
            });
            match timed {
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => measured.skipped.push(Skipped { config: config.clone(), reason: error.to_string() }),
                Ok((time, trial)) => {
                    fastest = fastest.min(time);
                    if time.as_secs_f64() <= HOPELESS * fastest.as_secs_f64() {
                        finalists.push((config, time, trial));
                        finalists.sort_by_key(|(_, time, _)| *time);
                        finalists.truncate(FINALISTS);
                    }
                }
            }
            step(1)?;
        }
        finalists.retain(|(_, time, _)| time.as_secs_f64() <= HOPELESS * fastest.as_secs_f64());
        let mut rounds: Vec<Vec<f64>> = vec![Vec::new(); 1 + finalists.len()];
        for round in 0..ROUNDS {
            if round >= MIN_ROUNDS && late() {
                break;
            }
            let all = std::iter::once((&first, once)).chain(finalists.iter().map(|(_, time, trial)| (trial, *time)));
            for ((trial, time), samples) in all.zip(&mut rounds) {
                samples.push(trial.time(runs(time))?.as_secs_f64());
            }
            step(0)?;
        }
        measured.choice = Some(choose(table, &finalists.iter().map(|(config, _, _)| config.as_str()).collect::<Vec<_>>(), &rounds));
        Ok(measured)
    }
}

/// Whether an error ends the tuning as a whole.
fn is_final(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::DeviceLost | ErrorKind::Cancelled)
}

/// The finalist that is fastest against the table's choice, by the median of the ratios of each round, or the table's choice if none is
/// clearly faster by that and by its own median. `rounds` begins with the table's.
fn choose(table: &str, finalists: &[&str], rounds: &[Vec<f64>]) -> Choice {
    let ns = |samples: &[f64]| (median(samples) * 1e9) as u64;
    let base = &rounds[0];
    let ratio = |samples: &[f64]| median(&base.iter().zip(samples).map(|(b, s)| b / s.max(1e-12)).collect::<Vec<_>>());
    let ratios = finalists.iter().zip(&rounds[1..]).map(|(config, samples)| (*config, ratio(samples), samples));
    let best = ratios.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, ratio, samples)| *ratio > WORTH && median(samples) < median(base));
    let (config, samples) = best.map_or((table, base), |(config, _, samples)| (config, samples));
    Choice { config: config.into(), ns: ns(samples), table_ns: ns(base) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tie_keeps_the_choice_of_the_table() {
        let config = |rounds: &[Vec<f64>]| choose("table", &["a", "b"], rounds).config;
        assert_eq!(config(&[vec![1.0, 1.0, 1.0], vec![0.98, 0.98, 0.98], vec![1.5, 1.5, 1.5]]), "table");
        assert_eq!(config(&[vec![1.0, 1.0, 1.0], vec![0.96, 0.9, 2.0], vec![0.9, 0.9, 0.9]]), "b");
        // One lucky round is not enough.
        assert_eq!(config(&[vec![1.0, 1.0, 9.0], vec![1.0, 1.0, 1.0], vec![1.0, 1.0, 1.0]]), "table");
        // A disturbance that meets a whole round decides nothing.
        assert_eq!(config(&[vec![1.0, 5.0, 1.0], vec![0.9, 4.5, 0.9], vec![1.0, 5.0, 1.0]]), "a");
        assert_eq!(choose("table", &[], &[vec![0.002]]), Choice { config: "table".into(), ns: 2_000_000, table_ns: 2_000_000 });
    }
}
