//! One round of draws: the parameters of its kernels and their order in a plan.

use std::ops::Range;
use std::sync::Arc;

use kernels_gen::{KernelSource, Target};

use crate::error::Result;
use crate::motifs::gpu::{ScanKernels, Values};
use crate::motifs::paths::{Draws, Recipe, TALLY_WORDS};
use crate::plan::{ExecutionPlan, SlotId, SlotRole, fold_workgroups};
use crate::shaders;

/// Words of an invocation's state in `count_chains.wgsl`.
pub(super) const STATE_WORDS: u64 = 110;
/// Neighbouring invocations that draw from neighbouring strata, or each for a replicate of its own, in `strata.wgsl`.
pub(super) const TEAM: u32 = 8;

/// What a round is made for, and its size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round<'p> {
    pub recipe: &'p Recipe,
    pub is_strict: bool,
    pub num_keys: u32,
    /// Where in the pair lists the parts after the first begin.
    pub parts: [u32; 3],
    /// Most iterations of a search in the list of a pair or among the pairs of a source.
    pub max_search: u32,
    /// Invocations, and strata each draws from.
    pub num_lanes: u32,
    pub per_lane: u32,
    /// Replicates that draw together: 1, or [`TEAM`], which then divides the invocations.
    pub replicates: u32,
}

/// How numbers of paths are bounded, which decides how `draw_paths.wgsl` computes with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// A stratum has one.
    One,
    /// A stratum has less than 2^32 and a unit less than 2^30.
    Word,
    /// None.
    Wide,
}

impl Bound {
    /// The bound of strata of `width` numbers, from units of at most `most_paths`.
    pub fn of(width: u64, most_paths: u64) -> Self {
        match width {
            _ if most_paths >= 1 << 30 || width >= 1 << 32 => Bound::Wide,
            1 => Bound::One,
            _ => Bound::Word,
        }
    }
}

/// How lists are merged, which decides how many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Merge {
    /// In vectors of four.
    Four,
    Eight,
    /// In arrays.
    Long,
}

impl Merge {
    /// The fastest that holds the lists of each gap.
    pub fn of(recipe: &Recipe) -> Self {
        match recipe.gaps().map(|gap| gap.len()).max().unwrap_or(0) {
            0..=4 => Merge::Four,
            5..=8 => Merge::Eight,
            _ => Merge::Long,
        }
    }

    /// The most lists.
    pub fn most(self) -> u64 {
        match self {
            Merge::Four => 4,
            Merge::Eight => 8,
            Merge::Long => 32,
        }
    }

    /// The steps `count_chains.wgsl` counts for an element of a list.
    pub fn cost(self) -> u64 {
        if self == Merge::Long { 34 } else { 1 }
    }
}

/// Consecutive units in one binding: how many, the edge that is the centre of the first one, and their path numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnitRange {
    pub num_units: u32,
    pub first_unit: u32,
    pub paths: Range<u64>,
}

/// What a round reads.
#[derive(Debug, Clone)]
pub(super) struct Inputs {
    /// What the kernel that draws reads.
    pub draw: Vec<SlotId>,
    pub edges: SlotId,
    pub of_edge: SlotId,
    pub bounds: SlotId,
    pub keys: SlotId,
    pub pairs: SlotId,
}

/// Size of a round of `draw_paths.wgsl` or `draw_trees.wgsl`, and its first stratum.
pub(super) struct RoundSize {
    pub num_lanes: u32,
    pub per_lane: u32,
    /// Strata that the members of a team draw from in turn; 1 where each draws for a replicate of its own.
    pub turns: u32,
    pub first: u64,
    pub num_strata: u32,
}

impl RoundSize {
    /// Parameters of the kernel for these replicates and the path numbers of these units (how many, the first of them); `own` are those that
    /// other kernels do not have.
    pub fn params(&self, draws: &[Draws], paths: &Range<u64>, units: [u32; 2], own: &[u32]) -> Vec<u32> {
        let words = |n: u64| [n as u32, (n >> 32) as u32];
        let width = draws[0].strata.width;
        let numbers = [words(width), words(width.wrapping_neg() % width), words(paths.start), words(paths.end)].concat();
        let replicates = [draws.len() as u32, self.turns];
        let round = [self.num_lanes, self.per_lane];
        let mut params = [&round[..], &words(self.first), &[self.num_strata], &numbers, &units, own, &replicates].concat();
        // The keys are vectors, which begin at a multiple of 16 bytes.
        params.resize(params.len().next_multiple_of(4), 0);
        let end = params.len() + 2 * TEAM as usize;
        params.extend(draws.iter().flat_map(|draws| draws.strata.key.words()));
        params.resize(end, 0);
        params
    }
}

/// What the kernels of a round leave to each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffers {
    pub drawn: SlotId,
    pub found: SlotId,
    pub flags: SlotId,
    pub state: SlotId,
    pub unfinished: SlotId,
}

impl Round<'_> {
    /// Strata of a round.
    pub fn strata(&self) -> u64 {
        u64::from(self.num_lanes / self.replicates) * u64::from(self.per_lane)
    }

    /// Invocations that work for one replicate.
    fn team(&self) -> u32 {
        self.num_lanes / self.replicates
    }

    /// Word of what was found at which its buckets begin.
    fn records(&self) -> u32 {
        2 * (self.num_lanes + 1)
    }

    /// Adds the slots of [`Buffers`], all but the scan's flags kept from run to run.
    pub fn buffers(&self, plan: &mut ExecutionPlan) -> Buffers {
        let words = |n: u64| 4 * n * u64::from(self.num_lanes);
        let slots = u64::from(self.per_lane);
        let found_words = slots * (self.recipe.lists.len() + self.recipe.gaps().count()) as u64;
        let mut state = |name: &str, bytes: u64| plan.slot(name, bytes, SlotRole::State);
        Buffers {
            drawn: state("drawn", 8 + words(3 + slots * self.recipe.placed.len() as u64)),
            found: state("found", 4 * u64::from(self.records()) + words(found_words)),
            state: state("state", words(STATE_WORDS)),
            unfinished: state("unfinished", 4),
            flags: plan.slot("flags", 4, SlotRole::Temp),
        }
    }

    /// The size of the round from stratum `first` on.
    pub fn size(&self, first: u64, num_strata: u32) -> RoundSize {
        RoundSize { num_lanes: self.num_lanes, per_lane: self.per_lane, turns: TEAM / self.replicates, first, num_strata }
    }

    /// Parameters of `draw_paths.wgsl` for the draws of replicates, over the same strata, from `num_strata` of these from number `first` on,
    /// as far as they meet `units`.
    pub fn path_params(&self, row_side: Option<usize>, units: &UnitRange, draws: &[Draws], (first, num_strata): (u64, u32)) -> Vec<u32> {
        let recipe = self.recipe;
        let ends = recipe.placed.iter().enumerate().skip(1).map(|(j, placed)| (placed.at as u32) << j).sum();
        let order = match recipe.placed.as_slice() {
            [_, a, b] => 1 + u32::from(a.position > b.position) + if a.after == b.after { 0 } else { 2 },
            _ => 0,
        };
        let own = [recipe.placed.len() as u32 - 1, row_side.unwrap_or(0) as u32, ends, order, self.num_keys];
        self.size(first, num_strata).params(draws, &units.paths, [units.num_units, units.first_unit], &own)
    }

    fn look_up_params(&self) -> Vec<u32> {
        let recipe = self.recipe;
        let [destinations, starts, list] = self.parts;
        let num_gaps = recipe.gaps().count() as u32;
        let mut params = vec![self.num_lanes, self.per_lane, self.team(), recipe.placed.len() as u32, recipe.lists.len() as u32, num_gaps];
        params.extend([recipe.first() as u32, recipe.last() as u32, destinations, starts, list, self.num_keys, self.records()]);
        params.push(self.max_search);
        // The lists are vectors, which begin at a multiple of 16 bytes.
        params.resize(16, 0);
        params.extend(recipe.lookup.iter().map(|&i| list_word(recipe, i)));
        params.resize(16 + 32, 0);
        params
    }

    fn chains_params(&self, resume: bool, max_steps: u32) -> Vec<u32> {
        let recipe = self.recipe;
        let (mut ends, mut alone) = (0u32, 0u32);
        for gap in recipe.gaps() {
            ends |= 1 << (gap.end - 1);
            alone |= if gap.len() == 1 { 1 << gap.start } else { 0 };
        }
        let num_lists = recipe.lists.len() as u32;
        let mut params = vec![self.num_lanes, self.per_lane, self.team(), num_lists, self.parts[2], self.records()];
        params.extend([u32::from(resume), max_steps, ends, alone]);
        params
    }

    /// Parameters of the sums of replicates, the first of which is total number `total`.
    pub fn sum_params(&self, total: u32) -> [u32; 3] {
        [self.num_lanes, self.team(), total]
    }
}

/// A list as a word of the parameters of `look_up_lists.wgsl`.
fn list_word(recipe: &Recipe, i: usize) -> u32 {
    let list = recipe.lists[i];
    let (on, opposite) = list.on.unwrap_or((7, false));
    let [(ja, ea), (jb, eb)] = list.ends;
    let (after, before) = (list.after.unwrap_or(7), list.before.unwrap_or(7));
    let (number, gap) = recipe.gaps().enumerate().find(|(_, gap)| gap.contains(&i)).unwrap_or((0, 0..0));
    let fields =
        [(on, 0), (usize::from(opposite), 3), (ja, 4), (ea, 7), (jb, 8), (eb, 11), (after, 12), (before, 15), (i, 18), (number, 23)];
    fields.iter().map(|&(value, at)| (value as u32) << at).sum::<u32>() | u32::from(gap.len() == 1) << 26
}

/// The kernels of rounds, for one target.
#[derive(Debug, Clone)]
pub(super) struct RoundKernels {
    draw: Arc<KernelSource>,
    look_up: Arc<KernelSource>,
    scan: ScanKernels,
    chains: Arc<KernelSource>,
    sum: Arc<KernelSource>,
    max_workgroups_per_dim: u32,
}

impl RoundKernels {
    /// Composes and checks the kernels of `round`; `draws` is the stem of the one that draws.
    pub fn new(target: &Target, round: &Round<'_>, (draws, bound): (&str, Bound), merge: Merge) -> Result<Self> {
        let kernel = |name: &str| shaders::kernel(name, target).map(Arc::new);
        let strict = if round.is_strict { "_strict" } else { "" };
        let bound = match bound {
            Bound::One => "_enumerate",
            Bound::Word => "",
            Bound::Wide => "_wide",
        };
        Ok(RoundKernels {
            draw: kernel(&format!("{draws}{bound}{strict}"))?,
            look_up: kernel(&format!("look_up_lists{strict}"))?,
            scan: ScanKernels::new(target)?,
            chains: kernel(match merge {
                Merge::Four => "count_chains",
                Merge::Eight => "count_chains_eight",
                Merge::Long => "count_chains_long",
            })?,
            sum: kernel("sum_tallies")?,
            max_workgroups_per_dim: target.max_workgroups_per_dim,
        })
    }

    /// Workgroups of the dispatches of `round`.
    pub fn grid(&self, round: &Round<'_>) -> Result<[u32; 3]> {
        fold_workgroups(u64::from(round.num_lanes.div_ceil(self.draw.workgroup_size[0])), self.max_workgroups_per_dim)
    }

    /// Records the round up to what was found; returns the place of the draw among the commands. Without `draw_params` the draw launches
    /// nothing until they are set.
    pub fn find(
        &self,
        plan: &mut ExecutionPlan,
        round: &Round<'_>,
        inputs: &Inputs,
        buffers: &Buffers,
        draw_params: Option<Vec<u32>>,
    ) -> Result<usize> {
        let grid = self.grid(round)?;
        let &Inputs { ref draw, edges, of_edge, bounds, keys, pairs } = inputs;
        let draw_slots = [draw.as_slice(), &[buffers.drawn]].concat();
        let &Buffers { drawn, found, flags, .. } = buffers;
        let draw = plan.commands.len();
        let draw_grid = if draw_params.is_some() { grid } else { [0; 3] };
        let draw_params = draw_params.unwrap_or_else(|| vec![0; self.draw.num_params]);
        plan.dispatch(&self.draw, &draw_slots, &draw_params, draw_grid);
        let scan = |plan: &mut ExecutionPlan, slot: SlotId| {
            self.scan.record(plan, Values { slot, offset: 0, stride: 1, count: round.num_lanes }, (flags, 0))
        };
        scan(plan, drawn)?;
        plan.dispatch(&self.look_up, &[drawn, pairs, of_edge, edges, bounds, keys, found], &round.look_up_params(), grid);
        scan(plan, found)?;
        Ok(draw)
    }

    /// Records a dispatch that counts what was found, or (`resume`) goes on with it, and stops after `max_steps`.
    pub fn count(
        &self,
        plan: &mut ExecutionPlan,
        round: &Round<'_>,
        pairs: SlotId,
        buffers: &Buffers,
        (resume, max_steps): (bool, u32),
    ) -> Result<()> {
        let slots = [buffers.drawn, buffers.found, pairs, buffers.state, buffers.unfinished];
        plan.dispatch(&self.chains, &slots, &round.chains_params(resume, max_steps), self.grid(round)?);
        Ok(())
    }

    /// Records the sums of what was counted, for each replicate one, into totals from number `total` on.
    pub fn sum(&self, plan: &mut ExecutionPlan, round: &Round<'_>, state: SlotId, totals: SlotId, total: u32) {
        plan.dispatch(&self.sum, &[state, totals], &round.sum_params(total), [round.replicates, 1, 1]);
    }
}

/// Adds a slot for `count` totals.
pub(super) fn totals(plan: &mut ExecutionPlan, count: usize) -> SlotId {
    plan.slot("totals", 4 * (TALLY_WORDS * count.max(1)) as u64, SlotRole::State)
}

/// Stem and flags of the kernel that draws from centres, or from rows that hold a side.
pub(super) fn draw_paths(row_side: Option<usize>) -> &'static str {
    if row_side.is_some() { "draw_paths_rows" } else { "draw_paths" }
}
