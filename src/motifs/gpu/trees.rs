//! Spanning trees on the device: subtrees are numbered from the outermost edges inwards, then trees are drawn from the centre outwards.

use std::sync::Arc;

use kernels_gen::{DType, Target};

use crate::device::{Device, DeviceTensor, Executor};
use crate::error::{Error, ErrorKind, Result};
use crate::motifs::gpu::draw::{Edges, UnitChunk};
use crate::motifs::gpu::graph::{check_binding, upload};
use crate::motifs::gpu::round::{RoundSize, TEAM};
use crate::motifs::gpu::{GpuGraph, GpuKeys, GpuPaths, ScanKernels, Values};
use crate::motifs::paths::{Draws, Keys, Paths, Prune, Recipe, Strata, too_many};
use crate::motifs::{Anchor, Motif, TemporalGraph, Ties};
use crate::plan::{Command, ExecutionPlan, SlotId, SlotRole, fold_workgroups};
use crate::shaders;

/// The lists that edges of trees are drawn from, in device memory.
#[derive(Debug, Clone)]
pub(in crate::motifs) struct GpuLists {
    words: DeviceTensor,
    shape: Shape,
}

/// Sizes of a graph, and with them the places of its parts in one list of pairs of words: its edges, the edges that leave and that enter each
/// vertex, and where the list of each vertex begins and ends.
#[derive(Debug, Clone, Copy)]
struct Shape {
    num_edges: u32,
    /// Edges that are no loops.
    num_entries: u32,
    num_vertices: u32,
    /// Most iterations of a search in one list.
    max_search: u32,
}

impl Shape {
    fn new(graph: &TemporalGraph) -> Self {
        let lists = [&graph.outgoing, &graph.incoming];
        let longest = lists.iter().flat_map(|list| list.offsets.windows(2)).map(|w| w[1] - w[0]).max().unwrap_or(0);
        Shape {
            num_edges: graph.edges.len() as u32,
            num_entries: graph.outgoing.entries.len() as u32,
            num_vertices: graph.num_vertices,
            // A search halves what is left until nothing is, and looks once more whether that is so.
            max_search: longest.checked_ilog2().map_or(1, |log| log + 2),
        }
    }

    /// Entries of all lists of edges that touch their vertex with that end.
    fn entries(&self, end: usize) -> u32 {
        self.num_edges + end as u32 * self.num_entries
    }

    /// Where these lists begin and end.
    fn lists(&self, end: usize) -> u32 {
        self.entries(2) + end as u32 * self.num_vertices
    }

    fn num_pairs(&self) -> u64 {
        u64::from(self.num_edges) + 2 * (u64::from(self.num_entries) + u64::from(self.num_vertices))
    }

    fn pairs(&self, graph: &TemporalGraph) -> Vec<[u32; 2]> {
        let mut pairs = graph.edges.clone();
        pairs.reserve_exact(self.num_pairs() as usize - pairs.len());
        let lists = [&graph.outgoing, &graph.incoming];
        lists.iter().for_each(|list| pairs.extend(&list.entries));
        for (end, list) in lists.iter().enumerate() {
            pairs.extend(list.offsets.windows(2).map(|w| [self.entries(end) + w[0], self.entries(end) + w[1]]));
        }
        pairs
    }
}

impl GpuLists {
    /// Copies the lists of `graph` to the device.
    ///
    /// # Errors
    ///
    /// As [`GpuGraph::upload`].
    pub fn upload(device: &Device, graph: &TemporalGraph) -> Result<Self> {
        let shape = Shape::new(graph);
        check_binding(device, WHAT_LISTS, 8 * shape.num_pairs())?;
        Ok(GpuLists { words: upload(device, WHAT_LISTS, &shape.pairs(graph))?, shape })
    }
}

const WHAT_LISTS: &str = "the list of edges with those of the vertices";

/// What trees are drawn from, in device memory.
pub(super) struct TreeTables {
    shape: Shape,
    lists: DeviceTensor,
    windows: DeviceTensor,
    sums: DeviceTensor,
}

impl TreeTables {
    /// Tensors in the order in which `draw_trees.wgsl` binds them.
    pub fn tensors(&self) -> [&DeviceTensor; 3] {
        [&self.lists, &self.windows, &self.sums]
    }

    /// Most loop iterations of one draw, as the table of kernels has them.
    pub fn per_draw(&self, recipe: &Recipe) -> u32 {
        150 + recipe.placed.len() as u32 * (self.shape.max_search + 12)
    }

    /// The parameters of `draw_trees.wgsl`; `round` gives those that all kernels that draw have, with its own among them.
    pub fn params(&self, recipe: &Recipe, num_keys: u32, round: impl FnOnce(&[u32]) -> Vec<u32>) -> Vec<u32> {
        draw_params(&self.shape, recipe, num_keys, round)
    }
}

/// The kernel that draws trees, but for how far numbers reach and the tie policy.
pub(super) fn draw_trees(recipe: &Recipe) -> &'static str {
    let is_deep = (1..recipe.placed.len()).any(|j| recipe.placed[j].parent > 0 && has_children(recipe, j));
    if is_deep { "draw_trees_deep" } else { "draw_trees" }
}

fn has_children(recipe: &Recipe, j: usize) -> bool {
    recipe.children(j).next().is_some()
}

/// Placed edges but the centre that have children.
fn inner(recipe: &Recipe) -> impl DoubleEndedIterator<Item = usize> + '_ {
    (1..recipe.placed.len()).filter(|&j| has_children(recipe, j))
}

/// Place in the prefix sums of those of placed edge `j`; of the last one, of their end.
fn sums_of(shape: &Shape, recipe: &Recipe, j: usize) -> u64 {
    inner(recipe).filter(|&i| i < j).count() as u64 * (u64::from(shape.num_entries) + 1)
}

/// What is added to the place of an entry in the lists for that of its prefix sum, modulo 2^32; 0 for an edge without children.
fn shift_of(shape: &Shape, recipe: &Recipe, j: usize) -> u32 {
    match has_children(recipe, j) && j > 0 {
        true => (sums_of(shape, recipe, j) as u32).wrapping_sub(shape.entries(recipe.placed[j].own_end)),
        false => 0,
    }
}

fn draw_params(shape: &Shape, recipe: &Recipe, num_keys: u32, round: impl FnOnce(&[u32]) -> Vec<u32>) -> Vec<u32> {
    let placed = &recipe.placed;
    let four_bits = |words: &mut dyn Iterator<Item = usize>| words.enumerate().map(|(at, word)| (word as u32) << (4 * at)).sum::<u32>();
    let near = || (1..placed.len()).filter(|&j| placed[j].parent == 0);
    let far = (1..placed.len()).filter(|&j| placed[j].parent > 0);
    let order = four_bits(&mut near().chain(far));
    let parents = four_bits(&mut placed.iter().map(|placed| placed.parent));
    let ranks = four_bits(&mut placed.iter().map(|p| placed.iter().filter(|other| other.position < p.position).count()));
    let inner = inner(recipe).map(|j| 1 << j).sum();
    let (num_placed, num_near) = (placed.len() as u32, near().count() as u32);
    let own = [num_placed, num_near, order, parents, ranks, inner, num_keys, shape.num_edges, shape.max_search];
    let mut params = round(&own);
    params.extend((0..8).map(|j| if j < placed.len() { shift_of(shape, recipe, j) } else { 0 }));
    params
}

/// Parameters of `weigh_subtrees.wgsl` for placed edge `j`.
fn weigh_params(shape: &Shape, recipe: &Recipe, j: usize, num_keys: u32) -> Vec<u32> {
    let (count, entries) = match j {
        0 => (shape.num_edges, u32::MAX),
        j => (shape.num_entries, shape.entries(recipe.placed[j].own_end)),
    };
    let mut params = vec![count, entries, recipe.children(j).count() as u32, num_keys, shape.max_search, 0, 0, 0];
    for child in recipe.children(j) {
        let placed = recipe.placed[child];
        let kind = placed.at as u32 | u32::from(placed.after) << 1 | u32::from(has_children(recipe, child)) << 2;
        let windows = (child as u32 - 1) * shape.num_edges;
        params.extend([shape.lists(placed.own_end), windows, shift_of(shape, recipe, child), kind]);
    }
    params.resize(8 + 4 * 6, 0);
    params
}

/// Slots of a plan that numbers trees.
struct Slots {
    lists: SlotId,
    bounds: SlotId,
    keys: SlotId,
    windows: SlotId,
    sums: SlotId,
    /// Number of the first tree of each centre, and their total.
    units: SlotId,
    /// Whether a number passes 64 bits, and whether a centre has 2^30 trees or more.
    flags: SlotId,
}

/// Bytes of the windows, the prefix sums and the units.
fn table_bytes(shape: &Shape, recipe: &Recipe) -> [u64; 3] {
    let num_children = recipe.placed.len() as u64 - 1;
    let windows = num_children * u64::from(shape.num_edges);
    let sums = sums_of(shape, recipe, recipe.placed.len());
    [windows.max(1), sums.max(1), u64::from(shape.num_edges) + 1].map(|pairs| 8 * pairs)
}

/// Records the numbering of the trees of a recipe, with lists, bounds and keys of those numbers of bytes.
fn record(plan: &mut ExecutionPlan, target: &Target, shape: &Shape, recipe: &Recipe, keys: (u32, bool), bytes: [u64; 3]) -> Result<Slots> {
    let (num_keys, is_strict) = keys;
    let weigh = Arc::new(shaders::kernel(if is_strict { "weigh_subtrees_strict" } else { "weigh_subtrees" }, target)?);
    let scan = ScanKernels::new(target)?;
    let [lists, bounds, keys] =
        [("lists", bytes[0]), ("bounds", bytes[1]), ("keys", bytes[2])].map(|(name, bytes)| plan.slot(name, bytes, SlotRole::Input));
    let tables = table_bytes(shape, recipe);
    let [windows, sums, units] =
        [("windows", tables[0]), ("sums", tables[1]), ("units", tables[2])].map(|(name, bytes)| plan.slot(name, bytes, SlotRole::State));
    let flags = plan.slot("flags", 8, SlotRole::State);
    let slots = Slots { lists, bounds, keys, windows, sums, units, flags };
    plan.commands.push(Command::Clear { slot: flags });
    // Children are placed after their parents. The numbers of each lie where those of the centres come to lie in the end.
    for j in inner(recipe).rev().chain([0]) {
        let params = weigh_params(shape, recipe, j, num_keys);
        let count = params[0];
        let groups = count.div_ceil(weigh.workgroup_size[0]);
        let grid = fold_workgroups(u64::from(groups), target.max_workgroups_per_dim)?;
        plan.dispatch(&weigh, &[lists, bounds, keys, sums, windows, units, flags], &params, grid);
        scan.record(plan, Values { slot: units, offset: 0, stride: 1, count }, (flags, 0))?;
        if j > 0 {
            let to_offset = 8 * sums_of(shape, recipe, j);
            plan.commands.push(Command::Copy { from: units, from_offset: 0, to: sums, to_offset, bytes: 8 * (u64::from(count) + 1) });
        }
    }
    Ok(slots)
}

impl GpuPaths {
    /// Numbers the trees of a recipe on the device; its tables take at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for more than 2^64 - 1 trees, and where a table does not fit one binding, with its
    /// size; [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn number_tree(graph: &GpuGraph, lists: &GpuLists, keys: &GpuKeys, recipe: &Recipe, max_bytes: u64) -> Result<Self> {
        let (device, shape) = (&graph.device, &lists.shape);
        let tables = table_bytes(shape, recipe);
        for (what, bytes) in ["the table of windows", "the table of prefix sums", "the table of centres"].into_iter().zip(tables) {
            check_binding(device, what, bytes)?;
        }
        let bytes: u64 = tables.iter().sum();
        if bytes > max_bytes {
            let why = "take a smaller graph or raise the memory limit";
            return Err(Error::new(
                ErrorKind::OutOfMemory,
                format!("the tables of a tree take {bytes} bytes, {max_bytes} may be used; {why}"),
            ));
        }
        let inputs = [&lists.words, &keys.bounds, &keys.of_edge];
        let mut plan = ExecutionPlan::new();
        let bytes = inputs.map(DeviceTensor::num_bytes);
        let slots = record(&mut plan, &device.target(), shape, recipe, (keys.num_keys, keys.is_strict), bytes)?;
        let totals = plan.slot("totals", 16, SlotRole::Output);
        for (from, from_offset, to_offset) in [(slots.flags, 0, 0), (slots.units, 8 * u64::from(shape.num_edges), 8)] {
            plan.commands.push(Command::Copy { from, from_offset, to: totals, to_offset, bytes: 8 });
        }
        let executor = Executor::load(device, &plan)?;
        for (slot, tensor) in [slots.lists, slots.bounds, slots.keys].into_iter().zip(inputs) {
            executor.bind(slot, tensor)?;
        }
        let read = executor.run(&[], &[totals])?;
        let words: Vec<u32> = read.first().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).unwrap_or_default();
        let &[passed, is_wide, low, high] = words.as_slice() else {
            return Err(Error::internal(format!("the numbering of trees returned {} words, 4 are right", words.len())));
        };
        if passed > 0 {
            return Err(too_many());
        }
        let total = u64::from(low) | u64::from(high) << 32;
        let tensor = |slot: SlotId, bytes: u64| executor.slot_tensor(slot, DType::U32, &[(bytes / 4) as usize]);
        let [windows, sums, units] = tables;
        Ok(GpuPaths {
            graph: graph.clone(),
            keys: keys.clone(),
            recipe: recipe.clone(),
            total,
            most_paths: if is_wide > 0 { u64::MAX } else { (1 << 30) - 1 },
            units: vec![UnitChunk { table: tensor(slots.units, units)?, first_unit: 0, num_units: shape.num_edges, paths: 0..total }],
            edges: Edges::Tree(TreeTables {
                shape: *shape,
                lists: lists.words.clone(),
                windows: tensor(slots.windows, windows)?,
                sums: tensor(slots.sums, sums)?,
            }),
        })
    }
}

/// A plan that numbers trees and draws one round of them, and the words of its inputs: what kernels and their twins are compared on.
pub(crate) struct TreeRound {
    pub plan: ExecutionPlan,
    pub inputs: Vec<(SlotId, Vec<u32>)>,
    /// All that the kernels leave: windows, prefix sums, first numbers of the centres, flags, draws.
    pub output: SlotId,
    /// Trees that passed the check, as the processor counts them.
    pub num_valid: u64,
}

/// What a [`TreeRound`] draws.
pub(crate) struct TreeDraws<'m> {
    pub motif: &'m Motif,
    pub anchor: &'m Anchor,
    pub delta: i64,
    pub ties: Ties,
    pub key: kernels_gen::threefry::Key,
    /// Invocations, and strata each draws from.
    pub lanes: [u32; 2],
    /// At most 8.
    pub num_replicates: u32,
    /// Whether by the kernel for numbers of any size.
    pub is_wide: bool,
}

/// A round over all trees of an anchor in `graph`.
pub(crate) fn tree_round(target: &Target, graph: &TemporalGraph, wanted: &TreeDraws<'_>) -> Result<TreeRound> {
    let &TreeDraws { motif, anchor, delta, ties, key, lanes, num_replicates, is_wide } = wanted;
    let keys = Keys::new(graph, delta, ties);
    let paths = Paths::new(graph, &keys, motif, anchor, Prune::Off, u64::MAX)?;
    let (recipe, total) = (&paths.recipe, paths.units.total());
    let [num_lanes, per_lane] = lanes.map(u64::from);
    // Where there are several, each replicate has one invocation of each team.
    let turns = if num_replicates > 1 { 1 } else { TEAM };
    let width = total.div_ceil(num_lanes / u64::from(TEAM / turns) * per_lane).max(1);
    let draws: Vec<Draws> = (0..u64::from(num_replicates))
        .map(|r| Draws { strata: Strata { width, key: key.stream(r) }, range: 0..total.div_ceil(width) })
        .collect();
    let num_valid = draws.iter().map(|draws| paths.tally(&draws.strata, draws.range.clone()).valid).sum();

    let shape = Shape::new(graph);
    let (num_keys, is_strict) = (keys.first.len() as u32, keys.of_edge.is_some());
    let words = [
        shape.pairs(graph).concat(),
        [keys.first.as_slice(), keys.last.as_slice()].concat(),
        keys.of_edge.map_or(vec![0], |keys| keys.to_vec()),
    ];
    let mut plan = ExecutionPlan::new();
    let bytes = [0, 1, 2].map(|i| 4 * words[i].len().max(1) as u64);
    let slots = record(&mut plan, target, &shape, recipe, (num_keys, is_strict), bytes)?;

    let drawn_below = match width {
        _ if is_wide => "_wide",
        1 => "_enumerate",
        _ => "",
    };
    let strict = if is_strict { "_strict" } else { "" };
    let draw = Arc::new(shaders::kernel(&format!("{}{drawn_below}{strict}", draw_trees(recipe)), target)?);
    let drawn_bytes = 4 * (num_lanes * (3 + per_lane * recipe.placed.len() as u64) + 2);
    let drawn = plan.slot("drawn", drawn_bytes, SlotRole::State);
    let size = RoundSize { num_lanes: lanes[0], per_lane: lanes[1], turns, first: 0, num_strata: total.div_ceil(width) as u32 };
    let params = draw_params(&shape, recipe, num_keys, |own| size.params(&draws, &(0..total), [shape.num_edges, 0], own));
    let grid = fold_workgroups(num_lanes.div_ceil(u64::from(draw.workgroup_size[0])), target.max_workgroups_per_dim)?;
    let read = [slots.units, slots.lists, slots.windows, slots.sums, slots.bounds, slots.keys, drawn];
    plan.dispatch(&draw, &read, &params, grid);

    let tables = table_bytes(&shape, recipe);
    let parts = [(slots.windows, tables[0]), (slots.sums, tables[1]), (slots.units, tables[2]), (slots.flags, 8), (drawn, drawn_bytes)];
    let output = plan.slot("out", parts.iter().map(|(_, bytes)| bytes).sum(), SlotRole::Output);
    let mut to_offset = 0;
    for (from, bytes) in parts {
        plan.commands.push(Command::Copy { from, from_offset: 0, to: output, to_offset, bytes });
        to_offset += bytes;
    }
    let inputs = [slots.lists, slots.bounds, slots.keys].into_iter().zip(words).collect();
    Ok(TreeRound { plan, inputs, output, num_valid })
}

#[cfg(test)]
mod tests;
