//! Draws and counts on the device: draw, look up, prefix sum, chains, and a sum for each replicate.

use std::ops::Range;

use kernels_gen::{AdapterClass, DType};

use crate::device::{DeviceTensor, Executor};
use crate::error::Result;
use crate::motifs::gpu::graph::{upload, upload_pieces};
use crate::motifs::gpu::round::{Bound, Buffers, Inputs, Merge, Round, RoundKernels, TEAM, UnitRange, draw_paths, totals};
use crate::motifs::gpu::trees::{TreeTables, draw_trees};
use crate::motifs::gpu::{GpuGraph, GpuKeys};
use crate::motifs::paths::{Draws, Numbered, Paths, Recipe, SideEdges, Strata, Tally, Unit, first_path};
use crate::plan::{Command, ExecutionPlan, SlotId, SlotRole};
use crate::progress::Part;

/// Dispatches that chains are counted in at most before the host looks whether any is left.
const MAX_CHAIN_DISPATCHES: u64 = 4;

/// Numbered paths in device memory.
pub(in crate::motifs) struct GpuPaths {
    pub(super) graph: GpuGraph,
    pub(super) keys: GpuKeys,
    pub(super) recipe: Recipe,
    pub(super) total: u64,
    /// Most paths of a unit, or more.
    pub(super) most_paths: u64,
    pub(super) units: Vec<UnitChunk>,
    pub(super) edges: Edges,
}

/// What the edges around a centre are drawn from.
pub(super) enum Edges {
    /// The windows that units have in these lists, one for each side.
    Sides {
        lists: Vec<DeviceTensor>,
        /// Of rows: which side they hold.
        row_side: Option<usize>,
    },
    Tree(TreeTables),
}

/// Consecutive units in one binding.
pub(super) struct UnitChunk {
    /// The units, one more for the end of the last, and copies of the last of all up to the size of the other chunks.
    pub(super) table: DeviceTensor,
    pub(super) first_unit: u32,
    pub(super) num_units: u32,
    /// Its path numbers.
    pub(super) paths: Range<u64>,
}

impl UnitChunk {
    fn range(&self) -> UnitRange {
        UnitRange { num_units: self.num_units, first_unit: self.first_unit, paths: self.paths.clone() }
    }
}

/// Loaded plans of one size of rounds, and the places of what changes from round to round.
struct Rounds<'p> {
    shape: Round<'p>,
    /// Draws, looks up and counts.
    round: Executor,
    units: SlotId,
    draw: usize,
    lanes: [u32; 3],
    /// Counts on where a round may leave something, and its flag that there is more.
    rest: Option<(Executor, SlotId)>,
    /// Sums what the invocations counted.
    sum: Executor,
    totals: SlotId,
    /// Kernel of each command of a round.
    names: Vec<String>,
}

impl GpuPaths {
    /// Copies numbered paths to the device; no binding is larger than `max_binding_bytes`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) where the list of a side's edges does not fit one binding;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn upload(graph: &GpuGraph, keys: &GpuKeys, paths: &Paths<'_>, max_binding_bytes: u64) -> Result<Self> {
        let device = &graph.device;
        let side = |side: &SideEdges<'_>| upload(device, "the list of a side's edges", &side.entries);
        let lists = paths.units.sides.iter().map(side).collect::<Result<_>>()?;
        let table = &paths.units.table;
        let most = (max_binding_bytes.min(device.info().limits.max_binding_bytes) / size_of::<Unit>() as u64).saturating_sub(1).max(1);
        let size = (table.len() - 1).min(most as usize).max(1);
        let chunk = |first: usize| {
            let last = (first + size).min(table.len() - 1);
            let rest = vec![table[table.len() - 1]; size - (last - first)];
            Ok(UnitChunk {
                table: upload_pieces(device, "the table of units", &[table[first..=last].as_flattened(), rest.as_flattened()])?,
                first_unit: first as u32,
                num_units: (last - first) as u32,
                paths: first_path(&table[first])..first_path(&table[last]),
            })
        };
        Ok(GpuPaths {
            graph: graph.clone(),
            keys: keys.clone(),
            recipe: paths.recipe.clone(),
            total: paths.units.total(),
            most_paths: table.windows(2).map(|pair| first_path(&pair[1]) - first_path(&pair[0])).max().unwrap_or(0),
            units: (0..table.len() - 1).step_by(size).map(chunk).collect::<Result<_>>()?,
            edges: Edges::Sides { lists, row_side: paths.units.row_side },
        })
    }

    /// Loads the plans for rounds of at most `strata` strata of at most `width` numbers, and `num_totals` sums; `together`: of TEAM replicates at
    /// once.
    fn rounds(&self, strata: u64, width: u64, num_totals: usize, together: bool) -> Result<Rounds<'_>> {
        let device = &self.graph.device;
        let target = device.target();
        let recipe = &self.recipe;
        let num_lists = recipe.lists.len() as u32;
        let bound = device.info().limits.max_loop_iterations.unwrap_or(1 << 24).saturating_sub(1024) as u32;
        // Software drivers run invocations one after the other in a few threads, GPUs many at once.
        let software = target.class == AdapterClass::Software;
        let (most_lanes, per_lane) = if software { (4_096, 128) } else { (65_536, 8) };
        // Kernels walk over the buckets of all lanes, which their bound of iterations has to hold.
        let most_lanes = u64::from(bound / 4 / 64 * 64).clamp(64, most_lanes);
        let per_list = 3 * self.keys.max_search + 12;
        let per_draw = match &self.edges {
            Edges::Sides { .. } => 150,
            Edges::Tree(tree) => tree.per_draw(recipe),
        };
        let per_lane = (bound.saturating_sub(most_lanes as u32) / (per_draw + per_list * num_lists)).clamp(1, per_lane);
        let replicates = if together { TEAM } else { 1 };
        let num_draws = strata.saturating_mul(u64::from(replicates));
        let num_lanes = (num_draws.div_ceil(u64::from(per_lane)).next_multiple_of(64)).clamp(64, most_lanes) as u32;
        let &GpuKeys { is_strict, num_keys, parts, max_search, .. } = &self.keys;
        let shape = Round { recipe, is_strict, num_keys, parts, max_search, num_lanes, per_lane, replicates };
        let draws = match &self.edges {
            Edges::Sides { row_side, .. } => draw_paths(*row_side),
            Edges::Tree(_) => draw_trees(recipe),
        };
        let merge = Merge::of(recipe);
        let kernels = RoundKernels::new(&target, &shape, (draws, Bound::of(width, self.most_paths)), merge)?;
        let lanes = kernels.grid(&shape)?;

        let mut plan = ExecutionPlan::new();
        let mut inputs = Vec::new();
        let mut input = |plan: &mut ExecutionPlan, name: &str, tensor: &DeviceTensor| {
            let slot = plan.slot(name, tensor.num_bytes(), SlotRole::Input);
            inputs.push((slot, tensor.clone()));
            slot
        };
        let units = input(&mut plan, "units", &self.units[0].table);
        let edges = input(&mut plan, "edges", &self.graph.edges);
        let of_edge = input(&mut plan, "of_edge", &self.graph.of_edge);
        let bounds = input(&mut plan, "bounds", &self.keys.bounds);
        let keys = input(&mut plan, "keys", &self.keys.of_edge);
        let pairs = input(&mut plan, "pairs", &self.keys.pairs);
        let mut draw_slots = vec![units];
        match &self.edges {
            Edges::Sides { lists, .. } => {
                let sides: Vec<SlotId> = lists.iter().map(|side| input(&mut plan, "side", side)).collect();
                let side = |j: usize| sides.get(j).or(sides.first()).copied().unwrap_or(edges);
                draw_slots.extend([edges, side(0), side(1)]);
            }
            Edges::Tree(tree) => draw_slots.extend(tree.tensors().map(|tensor| input(&mut plan, "tree", tensor))),
        }
        draw_slots.extend([bounds, keys]);

        let buffers = shape.buffers(&mut plan);
        let slots = Inputs { draw: draw_slots, edges, of_edge, bounds, keys, pairs };
        let draw = kernels.find(&mut plan, &shape, &slots, &buffers, None)?;

        // What the shader counts for a gap: beginning it, its elements and its turns, which take up to eight elements.
        let gap = |gap: Range<usize>| {
            let elements = gap.len() as u64 * u64::from(self.keys.longest) + 1;
            merge.most() + 1 + elements * merge.cost() + 2 * (elements / 8 + 2)
        };
        let work = u64::from(per_lane) * (2 + recipe.gaps().map(gap).sum::<u64>()) + u64::from(num_lanes);
        let max_steps = bound.saturating_sub(num_lanes).clamp(1024, 1 << 18);
        let needed = work.div_ceil(u64::from(max_steps));
        for n in 0..needed.clamp(1, MAX_CHAIN_DISPATCHES) {
            kernels.count(&mut plan, &shape, pairs, &buffers, (n > 0, max_steps))?;
        }
        let round = Executor::load(device, &plan)?;
        for (slot, tensor) in inputs {
            round.bind(slot, &tensor)?;
        }
        // The other plans work on the buffers of the first.
        let share = |executor: &Executor, to: SlotId, from: SlotId| {
            let elems = (plan.slots[from.0 as usize].bytes / 4) as usize;
            executor.bind(to, &round.slot_tensor(from, DType::U32, &[elems])?)
        };
        let shared = |plan: &mut ExecutionPlan, from: SlotId, role: SlotRole, of: &ExecutionPlan| {
            let slot = &of.slots[from.0 as usize];
            plan.slot(slot.name.clone(), slot.bytes, role)
        };
        let mut rest = None;
        if needed > MAX_CHAIN_DISPATCHES {
            let mut more = ExecutionPlan::new();
            let from = [buffers.drawn, buffers.found, pairs, buffers.state];
            let [drawn, found, pairs] = [from[0], from[1], from[2]].map(|slot| shared(&mut more, slot, SlotRole::Input, &plan));
            let state = shared(&mut more, buffers.state, SlotRole::State, &plan);
            let unfinished = more.slot("unfinished", 4, SlotRole::State);
            more.commands.push(Command::Clear { slot: unfinished });
            kernels.count(&mut more, &shape, pairs, &Buffers { drawn, found, state, unfinished, ..buffers }, (true, max_steps))?;
            let executor = Executor::load(device, &more)?;
            for (from, to) in from.into_iter().zip([drawn, found, pairs, state]) {
                share(&executor, to, from)?;
            }
            rest = Some((executor, unfinished));
        }
        let mut sums = ExecutionPlan::new();
        let state = shared(&mut sums, buffers.state, SlotRole::State, &plan);
        let totals = totals(&mut sums, num_totals);
        kernels.sum(&mut sums, &shape, state, totals, 0);
        let sum = Executor::load(device, &sums)?;
        share(&sum, state, buffers.state)?;
        let name = |command: &Command| match command {
            Command::Dispatch { kernel, .. } => plan.kernels[kernel.0 as usize].name.clone(),
            _ => String::new(),
        };
        let names = plan.commands.iter().map(name).collect();
        Ok(Rounds { shape, round, units, draw, lanes, rest, sum, totals, names })
    }

    fn draw_params(&self, rounds: &Rounds<'_>, chunk: &UnitChunk, draws: &[Draws], first: u64, num_strata: u32) -> Vec<u32> {
        let shape = &rounds.shape;
        match &self.edges {
            Edges::Sides { row_side, .. } => shape.path_params(*row_side, &chunk.range(), draws, (first, num_strata)),
            Edges::Tree(tree) => tree.params(&self.recipe, self.keys.num_keys, |own| {
                shape.size(first, num_strata).params(draws, &chunk.paths, [chunk.num_units, chunk.first_unit], own)
            }),
        }
    }
}

impl GpuPaths {
    /// Runs the rounds of `draws`, replicates over the same strata, whose strata meet the units of `chunk`.
    fn draw_chunk(&self, rounds: &Rounds<'_>, chunk: &UnitChunk, draws: &[Draws], part: &Part<'_>) -> Result<()> {
        rounds.round.bind(rounds.units, &chunk.table)?;
        let Draws { strata: Strata { width, .. }, range } = &draws[0];
        let begin = range.start.max(chunk.paths.start / width);
        let end = range.end.min(chunk.paths.end.div_ceil(*width));
        let per_round = rounds.shape.strata();
        let mut first = begin;
        while first < end {
            let num_strata = (end - first).min(per_round);
            let params = self.draw_params(rounds, chunk, draws, first, num_strata as u32);
            rounds.round.set_dispatch(rounds.draw, &params, rounds.lanes)?;
            rounds.round.enqueue(&[])?;
            if let Some((rest, flag)) = &rounds.rest {
                loop {
                    rest.enqueue(&[])?;
                    if rest.read(*flag)?.iter().all(|&byte| byte == 0) {
                        break;
                    }
                    part.advance(0)?;
                }
            }
            part.advance(num_strata * draws.len() as u64)?;
            first += num_strata;
        }
        Ok(())
    }
}

impl GpuPaths {
    /// Times of the kernels, in milliseconds, of rounds that begin at equal distances in `draws`, and the strata these drew from.
    pub fn phases(&self, draws: &[Draws], num_rounds: u64) -> Result<(Vec<(String, f64)>, u64)> {
        let Draws { strata, range } = &draws[0];
        let length = range.end - range.start;
        let rounds = self.rounds(length, draws[0].strata.width, 1, draws.len() > 1)?;
        let per_round = rounds.shape.strata();
        let mut times: Vec<(String, f64)> = Vec::new();
        let mut num_strata = 0;
        for round in 0..num_rounds {
            let first = range.start + length / num_rounds * round;
            let chunk = self.units.iter().find(|chunk| chunk.paths.end > first.saturating_mul(strata.width));
            let Some(chunk) = chunk else { break };
            rounds.round.bind(rounds.units, &chunk.table)?;
            let strata = per_round.min(range.end - first);
            num_strata += strata * draws.len() as u64;
            let params = self.draw_params(&rounds, chunk, draws, first, strata as u32);
            rounds.round.set_dispatch(rounds.draw, &params, rounds.lanes)?;
            for time in rounds.round.profile(&[])?.commands {
                let name = rounds.names.get(time.command).cloned().unwrap_or_default();
                let ms = time.ns as f64 * 1e-6;
                match times.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, sum)) => *sum += ms,
                    None => times.push((name, ms)),
                }
            }
        }
        Ok((times, num_strata))
    }
}

impl Numbered for GpuPaths {
    fn total(&self) -> u64 {
        self.total
    }

    fn tallies(&self, draws: &[Draws], part: &Part<'_>) -> Result<Vec<Tally>> {
        let longest = draws.iter().map(|d| d.range.end - d.range.start).max().unwrap_or(0);
        if longest == 0 || self.total == 0 {
            return Ok(vec![Tally::default(); draws.len()]);
        }
        let width = draws.iter().map(|d| d.strata.width).max().unwrap_or(1);
        // Replicates over the same strata draw together, so that they meet each unit together.
        let alike = |d: &Draws| d.range == draws[0].range && d.strata.width == width;
        let together = draws.len() > 1 && draws.iter().all(alike);
        let rounds = self.rounds(longest, width, draws.len(), together)?;
        for (n, draws) in draws.chunks(rounds.shape.replicates as usize).enumerate() {
            for chunk in self.units.iter().filter(|chunk| !chunk.paths.is_empty()) {
                self.draw_chunk(&rounds, chunk, draws, part)?;
            }
            let total = n as u32 * rounds.shape.replicates;
            rounds.sum.set_dispatch(0, &rounds.shape.sum_params(total), [draws.len() as u32, 1, 1])?;
            rounds.sum.enqueue(&[])?;
        }
        let bytes = rounds.sum.read(rounds.totals)?;
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes);
        Ok(words.as_chunks().0.iter().take(draws.len()).map(Tally::of_words).collect())
    }
}

#[cfg(test)]
mod device_tests;
