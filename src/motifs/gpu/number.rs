//! Records the kernels that number paths: sides without edges that no match holds, units of centres, units of rows.

use std::sync::Arc;

use kernels_gen::{KernelSource, Target};

use crate::error::Result;
use crate::motifs::gpu::{ScanKernels, Values};
use crate::motifs::paths::{Embedding, Prune, Recipe, Unit};
use crate::motifs::twins::MOST_PATHS_CHUNK;
use crate::plan::{ExecutionPlan, SlotId, SlotRole, fold_workgroups};
use crate::shaders;

/// Bytes of a unit in device memory.
pub(super) const UNIT_BYTES: u64 = size_of::<Unit>() as u64;
/// Bytes of a row of `weigh_rows.wgsl`: a unit and 64 bits that say whether it is kept.
pub(super) const ROW_BYTES: u64 = UNIT_BYTES + 8;

/// Where a graph's parts lie in its buffers, in words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub num_edges: u32,
    /// Edges that are no loops.
    pub num_entries: u32,
    pub num_vertices: u32,
    /// Where in the pair lists the parts after the first begin.
    pub parts: [u32; 3],
    pub num_keys: u32,
}

/// A graph and its keys as slots of a plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct GraphSlots {
    pub edges: SlotId,
    pub of_edge: SlotId,
    pub bounds: SlotId,
    pub pairs: SlotId,
    pub layout: Layout,
}

/// What centres are numbered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Centres {
    /// All their paths.
    Unpruned = 0,
    /// Paths that the motif's edges on the centre's two vertices leave.
    Pruned = 1,
    /// Rows are to be made of them: numbers of rows in place of numbers of paths.
    ForRows = 2,
}

/// The rows that a dispatch makes.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRange {
    /// Which side the rows hold, 1 or 2.
    pub side: usize,
    /// Centres in the table, and the edge of the first one.
    pub num_centres: u32,
    pub first_edge: u32,
    /// The first row and how many.
    pub first: u64,
    pub count: u32,
}

impl Layout {
    /// The word of a side at which the first entries of vertices begin.
    fn offsets(&self) -> u32 {
        2 * self.num_entries
    }

    /// Bytes of a side.
    pub fn side_bytes(&self) -> u64 {
        4 * (2 * u64::from(self.num_entries) + u64::from(self.num_vertices) + 1)
    }

    /// What kernels that embed need to know.
    fn lists(&self) -> [u32; 4] {
        let [_, starts, list] = self.parts;
        [starts, list, self.num_keys, 2 * self.num_keys]
    }
}

/// The kernels of numberings, for one target and one policy of ties.
#[derive(Debug, Clone)]
pub(super) struct NumberKernels {
    mark: Arc<KernelSource>,
    compact_side: Arc<KernelSource>,
    centres: Arc<KernelSource>,
    weigh: Arc<KernelSource>,
    compact_rows: Arc<KernelSource>,
    most: Arc<KernelSource>,
    shift: Arc<KernelSource>,
    scan: ScanKernels,
    max_workgroups_per_dim: u32,
}

impl NumberKernels {
    /// Composes and checks the kernels for `target`.
    pub fn new(target: &Target, is_strict: bool) -> Result<Self> {
        let strict = if is_strict { "_strict" } else { "" };
        let kernel = |name: &str| shaders::kernel(name, target).map(Arc::new);
        Ok(NumberKernels {
            mark: kernel(&format!("mark_sides{strict}"))?,
            compact_side: kernel("compact_side")?,
            centres: kernel(&format!("number_centres{strict}"))?,
            weigh: kernel(&format!("weigh_rows{strict}"))?,
            compact_rows: kernel("compact_rows")?,
            most: kernel("most_paths")?,
            shift: kernel("shift_units")?,
            scan: ScanKernels::new(target)?,
            max_workgroups_per_dim: target.max_workgroups_per_dim,
        })
    }

    fn grid(&self, kernel: &KernelSource, invocations: u32) -> Result<[u32; 3]> {
        fold_workgroups(u64::from(invocations.div_ceil(kernel.workgroup_size[0])), self.max_workgroups_per_dim)
    }

    /// Records what `prune` makes of the edges of a side around which `embedding` decides: they are marked in `result`, or left out of it.
    /// Both slots have [`Layout::side_bytes`]. `flags` has a word for prefix sums.
    pub fn side(
        &self,
        plan: &mut ExecutionPlan,
        graph: &GraphSlots,
        embedding: &Embedding,
        prune: Prune,
        [side, result, flags]: [SlotId; 3],
    ) -> Result<()> {
        let layout = &graph.layout;
        let num_offsets = layout.num_vertices + 1;
        let filter = prune != Prune::Off;
        let marked = match filter {
            true => plan.slot("kept", 8 * (u64::from(layout.num_entries) + 1), SlotRole::Temp),
            false => result,
        };
        let mut params = embedding.words().to_vec();
        params.extend([layout.num_entries, layout.offsets(), num_offsets, u32::from(filter)]);
        params.extend(layout.lists());
        let grid = self.grid(&self.mark, layout.num_entries.max(num_offsets))?;
        plan.dispatch(&self.mark, &[side, graph.of_edge, graph.bounds, graph.pairs, marked], &params, grid);
        if filter {
            self.scan.record(plan, Values { slot: marked, offset: 0, stride: 1, count: layout.num_entries }, (flags, 0))?;
            let params = [layout.num_entries, layout.offsets(), num_offsets];
            let grid = self.grid(&self.compact_side, layout.num_entries.max(num_offsets))?;
            plan.dispatch(&self.compact_side, &[side, marked, result], &params, grid);
        }
        Ok(())
    }

    /// Records the units of `count` centres from edge `first_edge` on, in a table of one more: their numbers of paths, or of rows, are
    /// prefix sums, with the total in the unit behind the last. Edges past the last one have no paths. `flags` is as
    /// [`NumberKernels::sums`] has it.
    pub fn centres(
        &self,
        plan: &mut ExecutionPlan,
        graph: &GraphSlots,
        params: &[u32],
        [side1, side2]: [SlotId; 2],
        [table, flags]: [SlotId; 2],
    ) -> Result<()> {
        let (count, mode) = (params[CENTRES_COUNT], params[CENTRES_MODE]);
        let bindings = [graph.edges, graph.of_edge, graph.bounds, graph.pairs, side1, side2, table];
        plan.dispatch(&self.centres, &bindings, params, self.grid(&self.centres, count)?);
        self.sums(plan, [table, flags], count)?;
        if mode == Centres::ForRows as u32 {
            self.scan.record(plan, Values { slot: table, offset: 3, stride: 5, count }, (flags, 0))?;
        }
        Ok(())
    }

    /// Parameters of [`NumberKernels::centres`], and of its first dispatch. `around` embeds around the centre.
    pub fn centres_params(layout: &Layout, recipe: &Recipe, around: &Embedding, centres: Centres, first_edge: u32, count: u32) -> Vec<u32> {
        let ends: u32 = recipe.placed.iter().enumerate().skip(1).map(|(j, placed)| (placed.at as u32) << j).sum();
        let num_sides = recipe.placed.len() as u32 - 1;
        let offsets = layout.offsets();
        let mut params = around.words().to_vec();
        params.extend([count, first_edge, layout.num_edges, num_sides, ends, offsets, offsets, centres as u32]);
        params.extend(layout.lists());
        params
    }

    /// Records the rows of [`NumberKernels::rows_params`] and whether each is kept: [`ROW_BYTES`] a row and one more, the flags turned into
    /// prefix sums with their total.
    pub fn rows(
        &self,
        plan: &mut ExecutionPlan,
        graph: &GraphSlots,
        params: &[u32],
        [centres, side, other]: [SlotId; 3],
        [rows, flags]: [SlotId; 2],
    ) -> Result<()> {
        let count = params[ROWS_COUNT];
        let bindings = [centres, graph.of_edge, graph.bounds, graph.pairs, side, other, rows];
        plan.dispatch(&self.weigh, &bindings, params, self.grid(&self.weigh, count)?);
        self.scan.record(plan, Values { slot: rows, offset: 5, stride: 6, count }, (flags, 0))
    }

    /// Parameters of [`NumberKernels::rows`], and of its first dispatch. `embedding` embeds around the centre and the side.
    pub fn rows_params(layout: &Layout, recipe: &Recipe, embedding: &Embedding, range: RowRange) -> Vec<u32> {
        let RowRange { side, num_centres, first_edge, first, count } = range;
        let other = if recipe.placed.len() == 3 { 3 - side } else { 0 };
        let end = |j: usize| recipe.placed[j].at as u32;
        let mut params = embedding.words().to_vec();
        params.extend([first as u32, (first >> 32) as u32, count, num_centres, first_edge, side as u32, end(side)]);
        params.extend([other as u32, if other > 0 { end(other) } else { 0 }, layout.offsets(), layout.parts[0]]);
        params.extend(layout.lists());
        params
    }

    /// Records that the kept ones of `count` rows go into a table of `size` units; the first one's place there is `base`, modulo 2^32.
    pub fn compact_rows(&self, plan: &mut ExecutionPlan, [rows, table]: [SlotId; 2], [count, base, size]: [u32; 3]) -> Result<()> {
        plan.dispatch(&self.compact_rows, &[rows, table], &[count, base, size], self.grid(&self.compact_rows, count)?);
        Ok(())
    }

    /// Records the prefix sums of the numbers of paths of a table of `count` units and one more. Word 0 of `flags` becomes 1 where they pass
    /// 64 bits; word 1 the most of one unit, 2^32 - 1 for more, unless it was larger.
    pub fn sums(&self, plan: &mut ExecutionPlan, [table, flags]: [SlotId; 2], count: u32) -> Result<()> {
        self.scan.record(plan, Values { slot: table, offset: 0, stride: 5, count }, (flags, 0))?;
        let grid = self.grid(&self.most, count.div_ceil(MOST_PATHS_CHUNK))?;
        plan.dispatch(&self.most, &[table, flags], &[count, 1], grid);
        Ok(())
    }

    /// Records that `count` units of a table begin `paths` paths later.
    pub fn shift(&self, plan: &mut ExecutionPlan, table: SlotId, count: u32, paths: u64) -> Result<()> {
        let params = shift_params(count, paths);
        plan.dispatch(&self.shift, &[table], &params, self.grid(&self.shift, count)?);
        Ok(())
    }
}

/// Words of the parameters of `number_centres` and `weigh_rows`.
const CENTRES_COUNT: usize = 16;
const CENTRES_MODE: usize = 23;
const ROWS_COUNT: usize = 18;

pub(super) fn shift_params(count: u32, paths: u64) -> [u32; 3] {
    [count, paths as u32, (paths >> 32) as u32]
}
