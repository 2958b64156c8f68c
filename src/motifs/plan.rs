//! The planner: which anchor to number, how far to prune, and whether to count every path or draw from them.
//!
//! A plan depends on graph, motif, options and seed alone, so that every shard of a run makes the same one: what a draw costs is modelled
//! ([`draw_cost`]) and not measured.

use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::motifs::count::{CountOptions, Method};
use crate::motifs::engine::OpenEngine;
use crate::motifs::estimate::{Layout, relative_deviation};
use crate::motifs::paths::{Numbered, Prune, Recipe, Tally};
use crate::motifs::{Anchor, Motif, TemporalGraph};
use crate::progress::Work;

/// Draws of the first pilot of an anchor, fewer where the pilots' share of the path budget is smaller than that for all anchors.
pub const PILOT_DRAWS: u64 = 100_000;
/// The fewest draws of a first pilot.
const FEWEST_PILOT_DRAWS: u64 = 1000;
/// Non-zero draws after which a pilot is trusted.
pub const PILOT_NONZERO: u64 = 500;
/// Anchors whose score is more times the best one's are dropped.
const DROP: f64 = 10.0;
/// Spanning trees that are looked at where a motif has no path for an anchor, and how many of these, of fewest paths, are piloted.
const MAX_TREES: usize = 200;
const MAX_PILOTED_TREES: usize = 24;
/// Anchors whose rows are made, where the choice of pruning is left to the planner.
const FINALISTS: usize = 3;
/// Work of a path beside the merging of its lists.
const PATH_WORK: u128 = 8;
/// Fewer paths are counted sooner than rows are made.
const FEW_PATHS: u64 = 1 << 20;

/// What the planner found of one anchor.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRow {
    /// The anchor.
    pub anchor: Anchor,
    /// Its paths without pruning; `None` where they were not numbered, or are past 2^64 - 1.
    pub w: Option<u64>,
    /// Its paths under two-node pruning.
    pub w_pairs: Option<u64>,
    /// Its paths under pruning by rows.
    pub w_rows: Option<u64>,
    /// Draws of its pilots.
    pub pilots: u64,
    /// Draws of its last pilots that had a match.
    pub nonzero: u64,
    /// Relative deviation of one draw; `None` without a pilot that saw a match.
    pub r1: Option<f64>,
    /// What a draw costs, in draws that fail the check.
    pub cost: Option<f64>,
    /// r1^2 times cost: what is to be small.
    pub score: Option<f64>,
    /// Why it was not taken.
    pub dropped: Option<String>,
    /// Whether it was taken.
    pub chosen: bool,
}

/// A table of anchors and what was decided.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanTable {
    /// One row for each anchor looked at.
    pub rows: Vec<PlanRow>,
    /// The anchor taken.
    pub anchor: Anchor,
    /// Pruning of its paths.
    pub prune: Prune,
    /// Whether every path is counted and the result so exact.
    pub enumerates: bool,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Time of planning, in seconds.
    pub seconds: f64,
}

/// A plan with the numbered paths of the anchor taken.
pub(in crate::motifs) struct Planned<'g> {
    pub table: PlanTable,
    pub paths: Box<dyn Numbered + 'g>,
}

/// What is planned for.
#[derive(Clone, Copy)]
pub(in crate::motifs) struct Task<'g, 'o> {
    pub graph: &'g TemporalGraph,
    pub engine: &'o OpenEngine<'g>,
    pub motif: &'o Motif,
    pub options: &'o CountOptions,
    pub work: &'o Work<'o>,
    /// Whether every anchor is numbered without pruning and piloted, though the choice does not need it.
    pub whole_table: bool,
}

/// An anchor in the running.
struct Candidate<'g> {
    row: PlanRow,
    /// Its place in the list of anchors, which decides its stream.
    index: u64,
    prune: Prune,
    paths: Option<Box<dyn Numbered + 'g>>,
    total: u64,
    pilot: Pilot,
}

/// The draws of an anchor under one numbering.
#[derive(Default)]
struct Pilot {
    tally: Tally,
    drawn: u64,
    rounds: u64,
    /// Whether every path was counted.
    complete: bool,
}

/// What one draw costs, in draws that fail the check: those that pass look up the lists of the motif's other edges and merge them.
fn draw_cost(lists: usize, pilot: &Pilot) -> f64 {
    let part = |n: u64| n as f64 / pilot.drawn.max(1) as f64;
    1.0 + lists as f64 * (part(pilot.tally.valid) + 2.0 * part(pilot.tally.nonzero))
}

impl<'g, 'o> Task<'g, 'o> {
    /// The numbered paths of an anchor.
    pub fn number(&self, anchor: &Anchor, prune: Prune) -> Result<Box<dyn Numbered + 'g>> {
        self.work.cancel().check()?;
        self.engine.number(self.motif, anchor, prune, self.options.memory_limit_bytes)
    }

    /// Number of paths without pruning; `None` past 2^64 - 1.
    pub fn unpruned(&self, anchor: &Anchor) -> Result<Option<u64>> {
        match self.number(anchor, Prune::Off) {
            Ok(paths) => Ok(Some(paths.total())),
            Err(error) if error.kind() == ErrorKind::Limit => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Paths that may be drawn.
    fn path_budget(&self) -> u64 {
        match self.options.method {
            Method::Samples(samples) => samples,
            _ => self.options.budget,
        }
    }

    /// Draws of the first pilot of each of so many anchors.
    fn first_pilot(&self, anchors: usize) -> u64 {
        (self.path_budget() / 10 / anchors.max(1) as u64).clamp(FEWEST_PILOT_DRAWS, PILOT_DRAWS)
    }

    fn lists(&self, anchor: &Anchor) -> usize {
        self.motif.num_edges() - anchor.edges().len()
    }

    /// Pruning that is tried on every anchor.
    fn first_prune(&self, anchor: &Anchor) -> Prune {
        match self.options.prune {
            Some(prune) => prune,
            None if anchor.is_tree() => Prune::Off,
            None => Prune::Pairs,
        }
    }

    /// Whether rows may be made of an anchor.
    fn may_have_rows(&self, anchor: &Anchor) -> bool {
        self.options.prune.is_none() && !anchor.is_tree() && anchor.edges().len() > 1
    }

    /// Makes the plan.
    pub fn plan(&self) -> Result<Planned<'g>> {
        let start = Instant::now();
        let mut notes = Vec::new();
        let mut candidates = self.candidates(&mut notes)?;
        let chosen = match (self.options.method, self.options.anchor.is_some()) {
            (Method::Samples(_) | Method::Error(_), true) => {
                self.make_rows(&mut candidates, &[0])?;
                0
            }
            (Method::Samples(_) | Method::Error(_), false) => self.choose_to_sample(&mut candidates, &mut notes)?,
            (method, fixed) => {
                let best = self.choose_to_enumerate(&mut candidates)?;
                let fits = method == Method::Enumerate || candidates[best].total <= self.options.budget;
                if fits || fixed { best } else { self.choose_to_sample(&mut candidates, &mut notes)? }
            }
        };
        let budget = self.options.budget;
        let enumerates = match self.options.method {
            Method::Enumerate => true,
            Method::Auto => candidates[chosen].total <= budget,
            _ => false,
        };
        if self.whole_table {
            self.complete(&mut candidates)?;
        }
        let taken = &mut candidates[chosen];
        taken.row.chosen = true;
        taken.row.dropped = None;
        let (anchor, prune) = (taken.row.anchor.clone(), taken.prune);
        notes.extend(self.engine.note(&anchor));
        let paths = match taken.paths.take() {
            Some(paths) => paths,
            None => self.number(&anchor, prune)?,
        };
        if candidates[chosen].row.w.is_none() {
            candidates[chosen].row.w = self.unpruned(&anchor)?;
        }
        if candidates[chosen].row.w.is_none() {
            notes.push("the paths of the anchor without pruning are past 2^64 - 1".into());
        }
        let rows = candidates.into_iter().map(|c| c.row).collect();
        let table = PlanTable { rows, anchor, prune, enumerates, notes, seconds: start.elapsed().as_secs_f64() };
        Ok(Planned { table, paths })
    }

    /// The anchors in the running, numbered once each.
    fn candidates(&self, notes: &mut Vec<String>) -> Result<Vec<Candidate<'g>>> {
        let anchors = match &self.options.anchor {
            Some(anchor) => vec![Anchor::parse(&anchor.to_string(), self.motif)?],
            None => {
                let paths = Anchor::all_paths(self.motif);
                if paths.is_empty() { Anchor::all_trees(self.motif, MAX_TREES) } else { paths }
            }
        };
        let part = self.work.part("numbering paths", anchors.len() as u64);
        // Tables of all anchors are kept where they fit together.
        let keep = (anchors.len() as u64).saturating_mul(32 * self.graph.num_edges() as u64) <= self.options.memory_limit_bytes;
        let mut candidates = Vec::new();
        let (mut refusals, mut first_refusal) = (Vec::new(), None);
        for (index, anchor) in anchors.into_iter().enumerate() {
            let prune = self.first_prune(&anchor);
            match self.number(&anchor, prune) {
                Ok(paths) => {
                    let total = paths.total();
                    let row = PlanRow {
                        anchor,
                        w: None,
                        w_pairs: None,
                        w_rows: None,
                        pilots: 0,
                        nonzero: 0,
                        r1: None,
                        cost: None,
                        score: None,
                        dropped: None,
                        chosen: false,
                    };
                    let pilot = Pilot::default();
                    let mut candidate = Candidate { row, index: index as u64, prune, paths: keep.then_some(paths), total, pilot };
                    candidate.numbered(prune, total);
                    candidates.push(candidate);
                }
                Err(error) if matches!(error.kind(), ErrorKind::Limit | ErrorKind::OutOfMemory) => {
                    refusals.push(anchor.to_string());
                    first_refusal.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
            part.advance(1)?;
        }
        if let Some(error) = first_refusal {
            if candidates.is_empty() {
                return Err(error);
            }
            notes.push(format!("not looked at: anchors {}, for {error}", refusals.join(" ")));
        }
        if candidates.first().is_some_and(|c| c.row.anchor.is_tree()) && candidates.len() > MAX_PILOTED_TREES {
            candidates.sort_by_key(|c| c.total);
            candidates.truncate(MAX_PILOTED_TREES);
        }
        if candidates.is_empty() {
            return Err(Error::unsupported(no_anchor(self.motif)));
        }
        Ok(candidates)
    }

    /// Makes rows of those anchors where they fit and leave fewer paths.
    fn make_rows(&self, candidates: &mut [Candidate<'g>], which: &[usize]) -> Result<()> {
        for &i in which {
            let candidate = &mut candidates[i];
            if candidate.prune == Prune::Rows || candidate.row.w_rows.is_some() || !self.may_have_rows(&candidate.row.anchor) {
                continue;
            }
            match self.number(&candidate.row.anchor, Prune::Rows) {
                Ok(paths) => {
                    candidate.numbered(Prune::Rows, paths.total());
                    candidate.pilot = Pilot::default();
                    candidate.paths = Some(paths);
                }
                // Two-node pruning stays.
                Err(error) if error.kind() == ErrorKind::OutOfMemory => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What counting all paths of a candidate takes, in no particular unit; one within the budget comes before one past it. The lists of a gap
    /// are merged, which costs an edge of each as much as there are lists.
    fn work_of(&self, candidate: &Candidate<'_>) -> (bool, u128) {
        let merges: usize = Recipe::new(self.motif, &candidate.row.anchor).gaps().map(|gap| gap.len() * gap.len()).sum();
        (candidate.total > self.options.budget, u128::from(candidate.total) * (PATH_WORK + merges as u128))
    }

    /// The anchor of least work, rows made of those of least.
    fn choose_to_enumerate(&self, candidates: &mut [Candidate<'g>]) -> Result<usize> {
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_by_key(|&i| self.work_of(&candidates[i]));
        if candidates[order[0]].total > FEW_PATHS {
            self.make_rows(candidates, &order[..order.len().min(FINALISTS)])?;
        }
        order.sort_by_key(|&i| self.work_of(&candidates[i]));
        for &i in &order[1..] {
            candidates[i].row.dropped = Some("more work".into());
        }
        Ok(order[0])
    }

    /// The anchor whose draws deviate least for what they cost, by pilots: of all anchors, then of the best with rows.
    fn choose_to_sample(&self, candidates: &mut [Candidate<'g>], notes: &mut Vec<String>) -> Result<usize> {
        candidates.iter_mut().for_each(|c| c.row.dropped = None);
        let mut running: Vec<usize> = (0..candidates.len()).collect();
        let mut left = self.path_budget() / 10;
        self.pilots(candidates, &mut running, 0, &mut left)?;
        let last = running.split_off(running.len().min(FINALISTS));
        for i in last {
            candidates[i].row.dropped = Some("others deviate less for their cost".into());
        }
        let rows: Vec<usize> = running.iter().copied().filter(|&i| self.may_have_rows(&candidates[i].row.anchor)).collect();
        if !rows.is_empty() {
            self.make_rows(candidates, &rows)?;
            self.pilots(candidates, &mut running, 1, &mut left)?;
        }
        for &i in &running[1..] {
            candidates[i].row.dropped = Some("others deviate less for their cost".into());
        }
        if running.iter().all(|&i| candidates[i].pilot.tally.nonzero == 0) {
            notes.push("the pilots saw no match, so the anchor of fewest paths was taken".into());
            let fewest = (0..candidates.len()).min_by_key(|&i| candidates[i].total).unwrap_or(running[0]);
            candidates[running[0]].row.dropped = Some("more paths".into());
            return Ok(fewest);
        }
        Ok(running[0])
    }

    /// Pilots the anchors of `running`, drops the worst and doubles the draws of the rest until all can be trusted or `left` draws are
    /// used. `running` is then in order of score, best first.
    fn pilots(&self, candidates: &mut [Candidate<'g>], running: &mut Vec<usize>, stage: u64, left: &mut u64) -> Result<()> {
        let part = self.work.part("pilots", 0);
        let first_pilot = self.first_pilot(candidates.len());
        loop {
            for &i in running.iter() {
                let candidate = &mut candidates[i];
                let more = candidate.pilot.drawn.max(first_pilot);
                let first = candidate.pilot.rounds == 0;
                if candidate.pilot.complete || !first && (candidate.pilot.tally.nonzero >= PILOT_NONZERO || more > *left) {
                    continue;
                }
                *left = left.saturating_sub(more);
                self.pilot(candidate, stage, more, &part)?;
            }
            let score = |i: usize| candidates[i].row.score.unwrap_or(f64::INFINITY);
            running.sort_by(|&a, &b| score(a).total_cmp(&score(b)).then(candidates[a].total.cmp(&candidates[b].total)));
            let best = score(running[0]);
            let kept = running.iter().take_while(|&&i| score(i) <= DROP * best).count().max(1);
            for i in running.split_off(kept) {
                candidates[i].row.dropped = Some(format!("over {DROP} times the best r1^2 x cost"));
            }
            let open = |&i: &usize| {
                let pilot = &candidates[i].pilot;
                !pilot.complete && pilot.tally.nonzero < PILOT_NONZERO && pilot.drawn.max(first_pilot) <= *left
            };
            if !running.iter().any(open) {
                return Ok(());
            }
        }
    }

    /// Fills what is not known of the anchors: paths without pruning, and one pilot each.
    fn complete(&self, candidates: &mut [Candidate<'g>]) -> Result<()> {
        let part = self.work.part("pilots", 0);
        let first_pilot = self.first_pilot(candidates.len());
        for candidate in candidates {
            if candidate.row.w.is_none() {
                candidate.row.w = self.unpruned(&candidate.row.anchor)?;
            }
            if candidate.pilot.rounds == 0 {
                self.pilot(candidate, 0, first_pilot, &part)?;
            }
        }
        Ok(())
    }

    /// `draws` more draws of an anchor.
    fn pilot(&self, candidate: &mut Candidate<'g>, stage: u64, draws: u64, part: &crate::progress::Part<'_>) -> Result<()> {
        let numbered;
        let paths = match &candidate.paths {
            Some(paths) => paths,
            None => {
                numbered = self.number(&candidate.row.anchor, candidate.prune)?;
                &numbered
            }
        };
        let layout = Layout::new(candidate.total, draws);
        let pilot = &mut candidate.pilot;
        let tallies = paths.tallies(&[layout.pilot(self.options.seed, stage, candidate.index, pilot.rounds)], part)?;
        let tally = tallies.into_iter().next().unwrap_or_default();
        pilot.complete = layout.width == 1;
        // What counted every path needs no other draws beside it.
        if pilot.complete {
            (pilot.tally, pilot.drawn) = (tally, layout.strata);
        } else {
            (pilot.tally, pilot.drawn) = (pilot.tally.merged(tally), pilot.drawn + layout.strata);
        }
        pilot.rounds += 1;
        let Pilot { tally, drawn, .. } = *pilot;
        let row = &mut candidate.row;
        row.pilots += layout.strata;
        row.nonzero = tally.nonzero;
        row.r1 = relative_deviation(drawn as f64, tally.sum as f64, tally.squares);
        let cost = draw_cost(self.lists(&row.anchor), pilot);
        row.cost = Some(cost);
        // Without a match the deviation is at least that of a single one among the draws.
        let squared = row.r1.map_or(drawn as f64, |r1| r1 * r1);
        row.score = Some(squared * cost);
        Ok(())
    }
}

impl Candidate<'_> {
    fn numbered(&mut self, prune: Prune, total: u64) {
        (self.prune, self.total) = (prune, total);
        let of = match prune {
            Prune::Off => &mut self.row.w,
            Prune::Pairs => &mut self.row.w_pairs,
            Prune::Rows => &mut self.row.w_rows,
        };
        *of = Some(total);
    }
}

/// Says why a motif has no anchor.
pub(in crate::motifs) fn no_anchor(motif: &Motif) -> String {
    let is_loop = |at: usize| motif.edges()[at][0] == motif.edges()[at][1];
    let why = if !motif.is_connected() {
        "it is not connected".to_string()
    } else if motif.num_vertices() > crate::motifs::MAX_ANCHOR_EDGES + 1 {
        format!("it has {} vertices, at most {} can be drawn", motif.num_vertices(), crate::motifs::MAX_ANCHOR_EDGES + 1)
    } else if is_loop(0) && is_loop(motif.num_edges() - 1) {
        "its first and its last edge are loops".to_string()
    } else {
        "it has no spanning tree with its first or last edge".to_string()
    };
    format!("motif `{}` ({motif}) cannot be sampled or enumerated, for {why}; count it with --exact", motif.name())
}
