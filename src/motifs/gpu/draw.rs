//! Draws and counts on the device: draw, look up, prefix sum, chains, and a sum for each replicate.

use std::ops::Range;
use std::sync::Arc;

use kernels_gen::{AdapterClass, DType};

use crate::device::{DeviceTensor, Executor};
use crate::error::Result;
use crate::motifs::gpu::graph::upload;
use crate::motifs::gpu::trees::{TreeTables, draw_trees};
use crate::motifs::gpu::{GpuGraph, GpuKeys, ScanKernels, Values};
use crate::motifs::paths::{Draws, Numbered, Paths, Recipe, SideEdges, Strata, Tally, Unit, first_path};
use crate::plan::{Command, ExecutionPlan, SlotId, SlotRole, fold_workgroups};
use crate::progress::Part;
use crate::shaders;

/// Words of an invocation's state in `count_chains.wgsl`.
const STATE_WORDS: u64 = 110;
/// Words of a total in `sum_tallies.wgsl`.
const TOTAL_WORDS: usize = 10;
/// Replicates that draw together in `strata.wgsl`.
pub(super) const TEAM: u32 = 8;
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

/// Loaded plans of one size of rounds, and the places of what changes from round to round.
struct Rounds {
    num_lanes: u32,
    per_lane: u32,
    /// Replicates that draw together.
    replicates: u32,
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

impl Rounds {
    /// Strata of a round.
    fn strata(&self) -> u64 {
        u64::from(self.num_lanes / self.replicates) * u64::from(self.per_lane)
    }
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
            let mut records = table[first..=last].to_vec();
            records.resize(size + 1, table[table.len() - 1]);
            Ok(UnitChunk {
                table: upload(device, "the table of units", &records)?,
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
    fn rounds(&self, strata: u64, width: u64, num_totals: usize, together: bool) -> Result<Rounds> {
        let device = &self.graph.device;
        let target = device.target();
        let recipe = &self.recipe;
        let num_lists = recipe.lists.len() as u32;
        let bound = device.info().limits.max_loop_iterations.unwrap_or(1 << 24).saturating_sub(1024) as u32;
        // Software drivers run invocations one after the other in a few threads, GPUs many at once.
        let software = target.class == AdapterClass::Software;
        let (most_lanes, per_lane) = if software { (4_096, 128) } else { (65_536, 8) };
        let per_list = 3 * self.keys.max_search + 12;
        let per_draw = match &self.edges {
            Edges::Sides { .. } => 150,
            Edges::Tree(tree) => tree.per_draw(recipe),
        };
        let per_lane = (bound.saturating_sub(most_lanes as u32) / (per_draw + per_list * num_lists)).clamp(1, per_lane);
        let replicates = if together { TEAM } else { 1 };
        let num_draws = strata.saturating_mul(u64::from(replicates));
        let num_lanes = (num_draws.div_ceil(u64::from(per_lane)).next_multiple_of(64)).clamp(64, most_lanes) as u32;
        let team = num_lanes / replicates;

        let kernel = |name: &str| shaders::kernel(name, &target).map(Arc::new);
        let strict = if self.keys.is_strict { "_strict" } else { "" };
        let drawn_below = match width {
            _ if self.most_paths >= 1 << 30 || width >= 1 << 32 => "_wide",
            1 => "_enumerate",
            _ => "",
        };
        let draws = match &self.edges {
            Edges::Sides { row_side: None, .. } => "draw_paths",
            Edges::Sides { row_side: Some(_), .. } => "draw_paths_rows",
            Edges::Tree(_) => draw_trees(recipe),
        };
        let draw_kernel = kernel(&format!("{draws}{drawn_below}{strict}"))?;
        let look_up = kernel(&format!("look_up_lists{strict}"))?;
        let longest_gap = recipe.gaps().map(|gap| gap.len()).max().unwrap_or(0);
        // The kernel that counts, the lists it can merge, and the iterations it counts for an element; see the shader.
        let (chains, most, cost) = match longest_gap {
            0..=4 => ("count_chains", 4, 1),
            5..=8 => ("count_chains_eight", 8, 1),
            _ => ("count_chains_long", 32, 34),
        };
        let chains = kernel(chains)?;
        let sum = kernel("sum_tallies")?;

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

        let words = |n: u64| 4 * n * u64::from(num_lanes);
        let slots = u64::from(per_lane);
        let num_gaps = recipe.gaps().count() as u64;
        let drawn = plan.slot("drawn", 8 + words(3 + slots * recipe.placed.len() as u64), SlotRole::State);
        let records = 2 * (num_lanes + 1);
        let found_bytes = 4 * u64::from(records) + words(slots * (u64::from(num_lists) + num_gaps));
        let found = plan.slot("found", found_bytes, SlotRole::State);
        let flags = plan.slot("flags", 4, SlotRole::Temp);
        let state = plan.slot("state", words(STATE_WORDS), SlotRole::State);
        let unfinished = plan.slot("unfinished", 4, SlotRole::State);

        let lanes = fold_workgroups(u64::from(num_lanes / draw_kernel.workgroup_size[0]), target.max_workgroups_per_dim)?;
        let draw = plan.commands.len();
        draw_slots.push(drawn);
        plan.dispatch(&draw_kernel, &draw_slots, &vec![0; draw_kernel.num_params], [0; 3]);
        let scan = ScanKernels::new(&target)?;
        scan.record(&mut plan, Values { slot: drawn, offset: 0, stride: 1, count: num_lanes }, (flags, 0))?;
        let look_up_params = self.look_up_params(num_lanes, per_lane, team, records);
        plan.dispatch(&look_up, &[drawn, pairs, of_edge, edges, bounds, keys, found], &look_up_params, lanes);
        scan.record(&mut plan, Values { slot: found, offset: 0, stride: 1, count: num_lanes }, (flags, 0))?;

        // What the shader counts for a gap: beginning it, its elements and its turns, which take up to eight elements.
        let gap = |gap: Range<usize>| {
            let elements = gap.len() as u64 * u64::from(self.keys.longest) + 1;
            most + 1 + elements * cost + 2 * (elements / 8 + 2)
        };
        let work = u64::from(per_lane) * (2 + recipe.gaps().map(gap).sum::<u64>()) + u64::from(num_lanes);
        let max_steps = bound.saturating_sub(num_lanes).clamp(1024, 1 << 18);
        let needed = work.div_ceil(u64::from(max_steps));
        let chains_params = |resume: bool| self.chains_params(num_lanes, per_lane, team, records, resume, max_steps);
        for n in 0..needed.clamp(1, MAX_CHAIN_DISPATCHES) {
            plan.dispatch(&chains, &[drawn, found, pairs, state, unfinished], &chains_params(n > 0), lanes);
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
            let here = [drawn, found, pairs].map(|slot| (slot, shared(&mut more, slot, SlotRole::Input, &plan)));
            let state_here = shared(&mut more, state, SlotRole::State, &plan);
            let flag = more.slot("unfinished", 4, SlotRole::State);
            more.commands.push(Command::Clear { slot: flag });
            more.dispatch(&chains, &[here[0].1, here[1].1, here[2].1, state_here, flag], &chains_params(true), lanes);
            let executor = Executor::load(device, &more)?;
            for (from, to) in here.into_iter().chain([(state, state_here)]) {
                share(&executor, to, from)?;
            }
            rest = Some((executor, flag));
        }
        let mut sums = ExecutionPlan::new();
        let state_here = shared(&mut sums, state, SlotRole::State, &plan);
        let totals = sums.slot("totals", 4 * (TOTAL_WORDS * num_totals.max(1)) as u64, SlotRole::State);
        sums.dispatch(&sum, &[state_here, totals], &[num_lanes, team, 0], [1, 1, 1]);
        let sum = Executor::load(device, &sums)?;
        share(&sum, state_here, state)?;
        let name = |command: &Command| match command {
            Command::Dispatch { kernel, .. } => plan.kernels[kernel.0 as usize].name.clone(),
            _ => String::new(),
        };
        let names = plan.commands.iter().map(name).collect();
        Ok(Rounds { num_lanes, per_lane, replicates, round, units, draw, lanes, rest, sum, totals, names })
    }

    fn look_up_params(&self, num_lanes: u32, per_lane: u32, team: u32, records: u32) -> Vec<u32> {
        let recipe = &self.recipe;
        let [destinations, starts, list] = self.keys.parts;
        let num_gaps = recipe.gaps().count() as u32;
        let mut params = vec![num_lanes, per_lane, team, recipe.placed.len() as u32, recipe.lists.len() as u32, num_gaps];
        params.extend([recipe.first() as u32, recipe.last() as u32, destinations, starts, list, self.keys.num_keys, records]);
        params.push(self.keys.max_search);
        // The lists are vectors, which begin at a multiple of 16 bytes.
        params.resize(16, 0);
        params.extend(recipe.lookup.iter().map(|&i| list_word(recipe, i)));
        params.resize(16 + 32, 0);
        params
    }

    fn chains_params(&self, num_lanes: u32, per_lane: u32, team: u32, records: u32, resume: bool, max_steps: u32) -> Vec<u32> {
        let recipe = &self.recipe;
        let (mut ends, mut alone) = (0u32, 0u32);
        for gap in recipe.gaps() {
            ends |= 1 << (gap.end - 1);
            alone |= if gap.len() == 1 { 1 << gap.start } else { 0 };
        }
        let num_lists = recipe.lists.len() as u32;
        vec![num_lanes, per_lane, team, num_lists, self.keys.parts[2], records, u32::from(resume), max_steps, ends, alone]
    }

    fn draw_params(&self, rounds: &Rounds, chunk: &UnitChunk, draws: &[Draws], first: u64, num_strata: u32) -> Vec<u32> {
        let recipe = &self.recipe;
        let (num_lanes, per_lane, turns) = (rounds.num_lanes, rounds.per_lane, TEAM / rounds.replicates);
        let size = RoundSize { num_lanes, per_lane, turns, first, num_strata };
        let units = [chunk.num_units, chunk.first_unit];
        let row_side = match &self.edges {
            Edges::Sides { row_side, .. } => row_side.unwrap_or(0) as u32,
            Edges::Tree(tree) => return tree.params(recipe, self.keys.num_keys, |own| size.params(draws, &chunk.paths, units, own)),
        };
        let ends = recipe.placed.iter().enumerate().skip(1).map(|(j, placed)| (placed.at as u32) << j).sum();
        let order = match recipe.placed.as_slice() {
            [_, a, b] => 1 + u32::from(a.position > b.position) + if a.after == b.after { 0 } else { 2 },
            _ => 0,
        };
        size.params(draws, &chunk.paths, units, &[recipe.placed.len() as u32 - 1, row_side, ends, order, self.keys.num_keys])
    }
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

impl GpuPaths {
    /// Runs the rounds of `draws`, replicates over the same strata, whose strata meet the units of `chunk`.
    fn draw_chunk(&self, rounds: &Rounds, chunk: &UnitChunk, draws: &[Draws], part: &Part<'_>) -> Result<()> {
        rounds.round.bind(rounds.units, &chunk.table)?;
        let Draws { strata: Strata { width, .. }, range } = &draws[0];
        let begin = range.start.max(chunk.paths.start / width);
        let end = range.end.min(chunk.paths.end.div_ceil(*width));
        let per_round = rounds.strata();
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
        let per_round = rounds.strata();
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
        for (n, draws) in draws.chunks(rounds.replicates as usize).enumerate() {
            for chunk in self.units.iter().filter(|chunk| !chunk.paths.is_empty()) {
                self.draw_chunk(&rounds, chunk, draws, part)?;
            }
            let params = [rounds.num_lanes, rounds.num_lanes / rounds.replicates, n as u32 * rounds.replicates];
            rounds.sum.set_dispatch(0, &params, [draws.len() as u32, 1, 1])?;
            rounds.sum.enqueue(&[])?;
        }
        let bytes = rounds.sum.read(rounds.totals)?;
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes);
        Ok(words.chunks_exact(TOTAL_WORDS).take(draws.len()).map(tally_of).collect())
    }
}

/// A total as `sum_tallies.wgsl` writes it.
fn tally_of(words: &[u32]) -> Tally {
    let wide = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
    let sum = wide(0);
    Tally { sum, squares: u128::from(wide(2)) | u128::from(wide(4)) << 64, valid: wide(6), nonzero: wide(8), saturated: sum == u64::MAX }
}
