//! Numbers the paths of an anchor on the device; the tables stay there.

use kernels_gen::DType;

use crate::device::{Device, DeviceTensor, Executor};
use crate::error::{Error, Result};
use crate::motifs::gpu::draw::{Edges, UnitChunk};
use crate::motifs::gpu::number::{Centres, GraphSlots, Layout, NumberKernels, ROW_BYTES, RowRange, UNIT_BYTES, shift_params};
use crate::motifs::gpu::{GpuGraph, GpuKeys, GpuPaths, MAX_SCAN};
use crate::motifs::paths::{Embedding, Prune, Recipe, SOURCE, Unit, check_table, first_path, too_many};
use crate::motifs::{Anchor, Motif};
use crate::plan::{Command, ExecutionPlan, SlotId, SlotRole};

/// Most rows made before those kept are moved to the table: 48 MiB of them.
const MAX_ROWS: u64 = 1 << 20;
/// Fewest rows that are worth a dispatch, whatever the memory.
const MIN_ROWS: u64 = 1 << 10;

impl GpuPaths {
    /// Numbers the paths of `anchor`, a path, on the device: the same numbers as [`Units::new`](crate::motifs::paths::Units::new) gives.
    /// `max_bytes` bounds the table of units, `max_binding_bytes` each binding of one.
    ///
    /// # Errors
    ///
    /// As [`Units::new`](crate::motifs::paths::Units::new), with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for every tree;
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) where the edges of a side do not fit one binding;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) of the device.
    pub fn number(
        graph: &GpuGraph,
        keys: &GpuKeys,
        motif: &Motif,
        anchor: &Anchor,
        prune: Prune,
        max_bytes: u64,
        max_binding_bytes: u64,
    ) -> Result<Self> {
        let recipe = Recipe::new(motif, anchor);
        if recipe.is_tree {
            return Err(Error::unsupported("anchors that are trees are not numbered on the device; number them on the processor"));
        }
        let device = &graph.device;
        let max_binding_bytes = max_binding_bytes.min(device.info().limits.max_binding_bytes);
        let layout = layout_of(graph, keys);
        let kernels = NumberKernels::new(&device.target(), keys.is_strict)?;
        let numbering = Numbering { graph, keys, motif, recipe: &recipe, prune, kernels, layout, max_bytes, max_binding_bytes };
        let sides = (1..recipe.placed.len()).map(|j| numbering.side(j)).collect::<Result<Vec<_>>>()?;
        let NumberedUnits { chunks: units, most_paths, row_side } = numbering.units(&sides)?;
        let total = units.last().map_or(0, |chunk| chunk.paths.end);
        let edges = Edges::Sides { lists: sides, row_side };
        Ok(GpuPaths { graph: graph.clone(), keys: keys.clone(), recipe, total, most_paths, units, edges })
    }
}

fn layout_of(graph: &GpuGraph, keys: &GpuKeys) -> Layout {
    Layout {
        num_edges: graph.num_edges,
        num_entries: graph.num_entries,
        num_vertices: graph.num_vertices,
        parts: keys.parts,
        num_keys: keys.num_keys,
    }
}

/// What is numbered, and with what.
struct Numbering<'a> {
    graph: &'a GpuGraph,
    keys: &'a GpuKeys,
    motif: &'a Motif,
    recipe: &'a Recipe,
    prune: Prune,
    kernels: NumberKernels,
    layout: Layout,
    max_bytes: u64,
    max_binding_bytes: u64,
}

/// A plan that is being recorded, with the tensors of its inputs.
#[derive(Default)]
struct Recording {
    plan: ExecutionPlan,
    bound: Vec<(SlotId, DeviceTensor)>,
}

/// A loaded plan, and where its first dispatch and its workgroups are.
struct Loaded {
    executor: Executor,
    first: usize,
    workgroups: [u32; 3],
}

/// Units in device memory, table by table.
struct Tables {
    /// Each of `size` units and one more.
    tables: Vec<DeviceTensor>,
    size: u32,
    num_units: u64,
    /// The last unit of each: totals of what was numbered.
    ends: Vec<Unit>,
    /// Most paths of a unit, 2^32 - 1 for more.
    most_paths: u64,
}

/// NumberedUnits units.
#[derive(Default)]
struct NumberedUnits {
    chunks: Vec<UnitChunk>,
    /// As [`Tables`] has it.
    most_paths: u64,
    /// Which side rows hold.
    row_side: Option<usize>,
}

impl Recording {
    /// A slot that `tensor` is bound to; a kernel may write it where `role` says so.
    fn bind(&mut self, name: &str, tensor: &DeviceTensor, role: SlotRole) -> SlotId {
        let slot = self.plan.slot(name, tensor.num_bytes(), role);
        self.bound.push((slot, tensor.clone()));
        slot
    }

    fn load(self, device: &Device) -> Result<Loaded> {
        let executor = Executor::load(device, &self.plan)?;
        for (slot, tensor) in &self.bound {
            executor.bind(*slot, tensor)?;
        }
        let dispatch = self.plan.commands.iter().enumerate().find_map(|(at, command)| match command {
            Command::Dispatch { workgroups, .. } => Some((at, *workgroups)),
            _ => None,
        });
        let (first, workgroups) = dispatch.unwrap_or((0, [0; 3]));
        Ok(Loaded { executor, first, workgroups })
    }
}

impl Loaded {
    /// Gives the first dispatch other parameters.
    fn set_params(&self, params: &[u32]) -> Result<()> {
        self.executor.set_dispatch(self.first, params, self.workgroups)
    }

    /// Runs the plan and gives the words of `output`.
    fn words(&self, output: SlotId) -> Result<Vec<u32>> {
        let bytes = self.executor.run(&[], &[output])?;
        Ok(bytes.first().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).unwrap_or_default())
    }
}

fn words(device: &Device, count: u64) -> Result<DeviceTensor> {
    DeviceTensor::zeros(device, DType::U32, &[count as usize])
}

impl Numbering<'_> {
    fn device(&self) -> &Device {
        &self.graph.device
    }

    fn slots(&self, recording: &mut Recording) -> GraphSlots {
        GraphSlots {
            edges: recording.bind("edges", &self.graph.edges, SlotRole::Input),
            of_edge: recording.bind("of_edge", &self.graph.of_edge, SlotRole::Input),
            bounds: recording.bind("bounds", &self.keys.bounds, SlotRole::Input),
            pairs: recording.bind("pairs", &self.keys.pairs, SlotRole::Input),
            layout: self.layout,
        }
    }

    /// Numbers the paths over those sides.
    fn units(&self, sides: &[DeviceTensor]) -> Result<NumberedUnits> {
        let num_edges = u64::from(self.graph.num_edges);
        check_table(num_edges, self.max_bytes)?;
        let of_rows = self.prune == Prune::Rows && !sides.is_empty();
        if num_edges == 0 {
            return Ok(NumberedUnits { row_side: of_rows.then_some(1), ..NumberedUnits::default() });
        }
        let mode = match self.prune {
            Prune::Off => Centres::Unpruned,
            _ if of_rows => Centres::ForRows,
            _ => Centres::Pruned,
        };
        let centres = self.centres(sides, mode)?;
        if !of_rows {
            return Ok(NumberedUnits { most_paths: centres.most_paths, chunks: self.chunks(centres)?, row_side: None });
        }
        // Rows are made of the side that has fewer edges in all.
        let rows = |side: usize| centres.ends.iter().map(|end| num_rows(end, side)).sum::<u64>();
        let side = (1..=sides.len()).min_by_key(|&side| rows(side)).unwrap_or(1);
        check_table(rows(side), self.max_bytes)?;
        let mut numbered = NumberedUnits { row_side: Some(side), ..NumberedUnits::default() };
        let num_rows = rows(side);
        if num_rows > 0
            && let Some(tables) = self.rows(sides, centres, side, num_rows)?
        {
            numbered.most_paths = tables.most_paths;
            numbered.chunks = self.chunks(tables)?;
        }
        Ok(numbered)
    }

    /// The edges that placed edge `j` is drawn from.
    fn side(&self, j: usize) -> Result<DeviceTensor> {
        let Some([outgoing, incoming]) = &self.graph.adjacencies else {
            return Err(Error::internal("paths are numbered on a device that has no adjacencies"));
        };
        let all = if self.recipe.placed[j].own_end == SOURCE { outgoing } else { incoming };
        let embedding = Embedding::new(self.recipe, &[j], Some(self.motif));
        if embedding.steps.is_empty() {
            return Ok(all.clone());
        }
        let mut recording = Recording::default();
        let graph = self.slots(&mut recording);
        let side = recording.bind("side", all, SlotRole::Input);
        let result = recording.plan.slot("side.pruned", all.num_bytes(), SlotRole::Output);
        let flags = recording.plan.slot("flags", 4, SlotRole::Temp);
        self.kernels.side(&mut recording.plan, &graph, &embedding, self.prune, [side, result, flags])?;
        let loaded = recording.load(self.device())?;
        loaded.executor.enqueue(&[])?;
        loaded.executor.slot_tensor(result, DType::U32, &[all.num_elems()])
    }

    /// Most units of one table, its last one left out.
    fn max_units(&self) -> u64 {
        (self.max_binding_bytes / UNIT_BYTES).saturating_sub(1).clamp(1, u64::from(MAX_SCAN))
    }

    fn table(&self, size: u32) -> Result<DeviceTensor> {
        words(self.device(), (u64::from(size) + 1) * (UNIT_BYTES / 4))
    }

    /// Units of all edges as centres.
    fn centres(&self, sides: &[DeviceTensor], mode: Centres) -> Result<Tables> {
        let num_edges = self.graph.num_edges;
        let size = u64::from(num_edges).min(self.max_units()) as u32;
        let firsts = || (0..num_edges).step_by(size as usize);
        let tables = firsts().map(|_| self.table(size)).collect::<Result<Vec<_>>>()?;
        let around = Embedding::new(self.recipe, &[0], Some(self.motif));
        let params = |first| NumberKernels::centres_params(&self.layout, self.recipe, &around, mode, first, size);

        let mut recording = Recording::default();
        let graph = self.slots(&mut recording);
        let [side1, side2] = [0, 1].map(|i| match sides.get(i) {
            Some(side) => recording.bind("side", side, SlotRole::Input),
            None => graph.edges,
        });
        let table = recording.bind("units", &tables[0], SlotRole::State);
        let flags = recording.plan.slot("flags", 8, SlotRole::State);
        self.kernels.centres(&mut recording.plan, &graph, &params(0), [side1, side2], [table, flags])?;
        let end = copy_end(&mut recording.plan, [table, flags], size);
        let loaded = recording.load(self.device())?;
        let (mut ends, mut most_paths) = (Vec::new(), 0);
        for (first, tensor) in firsts().zip(&tables) {
            loaded.executor.bind(table, tensor)?;
            loaded.set_params(&params(first))?;
            let (unit, most) = end_of(&loaded.words(end)?)?;
            ends.push(unit);
            most_paths = u64::from(most);
        }
        Ok(Tables { tables, size, num_units: u64::from(num_edges), ends, most_paths })
    }

    /// Units of the `num_rows` rows of `centres`, of which those are left out that no match holds; `None` where none is left.
    fn rows(&self, sides: &[DeviceTensor], centres: Tables, side: usize, num_rows_of_all: u64) -> Result<Option<Tables>> {
        let mut size = num_rows_of_all.min(self.max_units()) as u32;
        let room = {
            let most = centres.ends.iter().map(|end| num_rows(end, side)).max().unwrap_or(0);
            let in_binding = (self.max_binding_bytes / ROW_BYTES).saturating_sub(1).max(1);
            most.min(MAX_ROWS).min((self.max_bytes / ROW_BYTES / 4).max(MIN_ROWS)).min(in_binding) as u32
        };
        let embedding = Embedding::new(self.recipe, &[0, side], Some(self.motif));
        let params = |at: usize, first: u64| {
            let first_edge = at as u32 * centres.size;
            let range = RowRange { side, num_centres: centres.size, first_edge, first, count: room };
            NumberKernels::rows_params(&self.layout, self.recipe, &embedding, range)
        };
        let row_words = (u64::from(room) + 1) * (ROW_BYTES / 4);
        let row_tensor = words(self.device(), row_words)?;

        let mut weigh = Recording::default();
        let graph = self.slots(&mut weigh);
        let table = weigh.bind("centres", &centres.tables[0], SlotRole::Input);
        let of_side = weigh.bind("side", &sides[side - 1], SlotRole::Input);
        let other = weigh.bind("other", &sides[(2 - side).min(sides.len() - 1)], SlotRole::Input);
        let rows = weigh.bind("rows", &row_tensor, SlotRole::State);
        let flags = weigh.plan.slot("flags", 4, SlotRole::Temp);
        self.kernels.rows(&mut weigh.plan, &graph, &params(0, 0), [table, of_side, other], [rows, flags])?;
        let kept = weigh.plan.slot("kept", 8, SlotRole::Output);
        weigh.plan.commands.push(Command::Copy { from: rows, from_offset: 4 * row_words - 8, to: kept, to_offset: 0, bytes: 8 });
        let weigh = weigh.load(self.device())?;

        let mut tables = vec![self.table(size)?];
        let mut compact = Recording::default();
        let rows = compact.bind("rows", &row_tensor, SlotRole::Input);
        let units = compact.bind("units", &tables[0], SlotRole::State);
        self.kernels.compact_rows(&mut compact.plan, [rows, units], [room, 0, size])?;
        let compact = compact.load(self.device())?;

        let mut num_units = 0u64;
        for (at, end) in centres.ends.iter().enumerate() {
            weigh.executor.bind(table, &centres.tables[at])?;
            for first in (0..num_rows(end, side)).step_by(room as usize) {
                weigh.set_params(&params(at, first))?;
                let kept = weigh.words(kept)?;
                let end = num_units + u64::from(kept[0]);
                // They may end one table and begin others.
                while num_units < end {
                    let which = num_units / u64::from(size);
                    if which as usize == tables.len() {
                        tables.push(self.table(size)?);
                    }
                    let base = (end - u64::from(kept[0])).wrapping_sub(which * u64::from(size));
                    compact.executor.bind(units, &tables[which as usize])?;
                    compact.set_params(&[room, base as u32, size])?;
                    compact.executor.enqueue(&[])?;
                    num_units = end.min((which + 1) * u64::from(size));
                }
            }
        }
        drop((centres, weigh, compact, row_tensor));
        if num_units == 0 {
            return Ok(None);
        }
        // The table was made for all rows; give back what the ones left out would have taken.
        if tables.len() == 1 && num_units < u64::from(size) {
            size = num_units as u32;
            tables[0] = self.front(&tables[0], (num_units + 1) * UNIT_BYTES)?;
        }
        let mut sums = Recording::default();
        let table = sums.bind("units", &tables[0], SlotRole::State);
        let flags = sums.plan.slot("flags", 8, SlotRole::State);
        self.kernels.sums(&mut sums.plan, [table, flags], size)?;
        let end = copy_end(&mut sums.plan, [table, flags], size);
        let sums = sums.load(self.device())?;
        let (mut ends, mut most_paths) = (Vec::new(), 0);
        for tensor in &tables {
            sums.executor.bind(table, tensor)?;
            let (unit, most) = end_of(&sums.words(end)?)?;
            ends.push(unit);
            most_paths = u64::from(most);
        }
        Ok(Some(Tables { tables, size, num_units, ends, most_paths }))
    }

    /// A copy of the first bytes of a tensor.
    fn front(&self, tensor: &DeviceTensor, bytes: u64) -> Result<DeviceTensor> {
        let mut copy = Recording::default();
        let from = copy.bind("units", tensor, SlotRole::Input);
        let to = copy.plan.slot("units.kept", bytes, SlotRole::Output);
        copy.plan.commands.push(Command::Copy { from, from_offset: 0, to, to_offset: 0, bytes });
        let copy = copy.load(self.device())?;
        copy.executor.enqueue(&[])?;
        copy.executor.slot_tensor(to, DType::U32, &[(bytes / 4) as usize])
    }

    /// The tables with path numbers that run through all of them.
    fn chunks(&self, tables: Tables) -> Result<Vec<UnitChunk>> {
        let Tables { tables, size, num_units, ends, .. } = tables;
        let mut shift: Option<(Loaded, SlotId)> = None;
        let mut chunks = Vec::new();
        let (mut first, mut first_unit) = (0u64, 0);
        for (table, end) in tables.into_iter().zip(&ends) {
            if first > 0 {
                let (shift, slot) = match &mut shift {
                    Some(shift) => shift,
                    None => {
                        let mut recording = Recording::default();
                        let slot = recording.bind("units", &table, SlotRole::State);
                        self.kernels.shift(&mut recording.plan, slot, size + 1, first)?;
                        shift.insert((recording.load(self.device())?, slot))
                    }
                };
                shift.executor.bind(*slot, &table)?;
                shift.set_params(&shift_params(size + 1, first))?;
                shift.executor.enqueue(&[])?;
            }
            let last = first.checked_add(first_path(end)).ok_or_else(too_many)?;
            let here = (num_units - first_unit).min(u64::from(size));
            chunks.push(UnitChunk { table, first_unit: first_unit as u32, num_units: here as u32, paths: first..last });
            first = last;
            first_unit += here;
        }
        Ok(chunks)
    }
}

/// Rows that hold side 1 or 2, by the unit at the end of a table of centres.
fn num_rows(end: &Unit, side: usize) -> u64 {
    let at = if side == 1 { 0 } else { 6 };
    u64::from(end[at]) | u64::from(end[at + 1]) << 32
}

/// Records a copy of the last unit of a table, and of the flag and the most paths behind it, to an output.
fn copy_end(plan: &mut ExecutionPlan, [table, flags]: [SlotId; 2], size: u32) -> SlotId {
    let end = plan.slot("end", UNIT_BYTES + 8, SlotRole::Output);
    let from_offset = u64::from(size) * UNIT_BYTES;
    plan.commands.push(Command::Copy { from: table, from_offset, to: end, to_offset: 0, bytes: UNIT_BYTES });
    plan.commands.push(Command::Copy { from: flags, from_offset: 0, to: end, to_offset: UNIT_BYTES, bytes: 8 });
    end
}

/// The unit that was copied and the most paths, unless the flag says that the numbers pass 64 bits.
fn end_of(words: &[u32]) -> Result<(Unit, u32)> {
    match words {
        [unit @ .., 0, most] => match unit.try_into() {
            Ok(unit) => Ok((unit, *most)),
            Err(_) => Err(Error::internal(format!("the end of a table of units has {} words", unit.len()))),
        },
        _ => Err(too_many()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::device::DeviceOptions;
    use crate::motifs::paths::{Keys, Units};
    use crate::motifs::{TemporalGraph, Ties};
    use kernels_gen::threefry::Key;

    fn random_graph(key: Key, vertices: u32, edges: u64, times: u32) -> TemporalGraph {
        let edges = (0..edges).map(|i| {
            let word = |n: u64, below: u32| ((u64::from(key.word(4 * i + n)) * u64::from(below)) >> 32) as u32;
            (word(0, vertices), word(1, vertices), i64::from(word(2, times)))
        });
        TemporalGraph::from_edges(edges.collect(), vertices, 0).expect("builds")
    }

    fn words_of(tensor: &DeviceTensor) -> Vec<u32> {
        bytemuck::pod_collect_to_vec(tensor.read().expect("reads").bytes())
    }

    /// Compares sides, table, totals and ends of what the device and the processor number.
    fn compare(paths: &GpuPaths, units: &Units<'_>, max_units: usize, what: &str) {
        let Edges::Sides { lists, row_side } = &paths.edges else { panic!("{what}: a path has sides") };
        assert_eq!((paths.total, *row_side), (units.total(), units.row_side), "{what}");
        let most = units.table.windows(2).map(|pair| first_path(&pair[1]) - first_path(&pair[0])).max();
        assert_eq!(paths.most_paths, most.unwrap_or(0), "{what}");
        for (side, expected) in lists.iter().zip(&units.sides) {
            let words = words_of(side);
            let entries = expected.entries.len();
            assert_eq!(words[..2 * entries], expected.entries.concat(), "{what}");
            assert_eq!(words[words.len() - expected.offsets.len()..], expected.offsets[..], "{what}");
        }
        assert_eq!(lists.len(), units.sides.len());
        let num_units = units.table.len() - 1;
        let size = num_units.min(max_units).max(1);
        assert_eq!(paths.units.len(), num_units.div_ceil(size), "{what}");
        for (chunk, first) in paths.units.iter().zip((0..num_units).step_by(size)) {
            let last = (first + size).min(num_units);
            assert_eq!((chunk.first_unit as usize, chunk.num_units as usize), (first, last - first), "{what}");
            assert_eq!(chunk.paths, first_path(&units.table[first])..first_path(&units.table[last]), "{what}");
            let words = words_of(&chunk.table);
            assert_eq!(words.len(), 10 * (size + 1), "{what}");
            assert_eq!(words[..10 * (last - first)], units.table[first..last].concat(), "{what}, units from {first}");
            // The unit at the end, and copies of it.
            let end = first_path(&units.table[last]);
            for unit in words[10 * (last - first)..].chunks(10) {
                assert_eq!(unit, [&[end as u32, (end >> 32) as u32][..], &[0; 8]].concat(), "{what}");
            }
        }
    }

    #[test]
    fn tables_are_those_of_the_processor() {
        let device = Device::open(&DeviceOptions::default()).expect("an adapter");
        let (mut rows, mut cut, mut refusals) = (0, 0, 0);
        for (n, motif) in Motif::all_named().iter().enumerate() {
            let key = Key::new(77).stream(n as u64);
            let vertices = motif.num_vertices() as u32 + (n as u32 % 3);
            let graph = random_graph(key, vertices, 120 + 10 * (n as u64 % 5), 150);
            let on_device = GpuGraph::upload(&device, &graph, true).expect("fits");
            let anchors = Anchor::all_paths(motif);
            for ties in [Ties::Order, Ties::Strict] {
                let keys = Keys::new(&graph, [20, 45, 80][n % 3], ties);
                let keys_on_device = GpuKeys::upload(&device, &graph, &keys).expect("fits");
                // A few anchors of each motif, one of each of the 36 small ones.
                let few = if motif.name().starts_with('G') { 1 } else { 3 };
                let step = anchors.len().div_ceil(few).max(1);
                for anchor in anchors.iter().skip(n % step).step_by(step) {
                    for prune in [Prune::Off, Prune::Pairs, Prune::Rows] {
                        let recipe = Recipe::new(motif, anchor);
                        let units = Units::new(&graph, &keys, motif, &recipe, prune, u64::MAX).expect("fits");
                        // Now and then in tables of 7 units, made from up to 5 rows at a time.
                        let max_units = if (n + rows) % 4 == 1 { 7 } else { usize::MAX };
                        let max_binding = if max_units == 7 { 8 * UNIT_BYTES } else { u64::MAX };
                        let number =
                            |max_bytes| GpuPaths::number(&on_device, &keys_on_device, motif, anchor, prune, max_bytes, max_binding);
                        let paths = number(u64::MAX).expect("fits");
                        let what = format!("{} {anchor} {prune:?} {ties:?} at most {max_units}", motif.name());
                        compare(&paths, &units, max_units, &what);
                        rows += usize::from(units.row_side.is_some() && units.total() > 0);
                        cut += usize::from(paths.units.len() > 1);
                        if n < 3 {
                            let refused = |error: Option<Error>| error.map(|e| (e.kind(), e.to_string()));
                            let of_processor = Units::new(&graph, &keys, motif, &recipe, prune, 121 * UNIT_BYTES - 1);
                            let error = refused(number(121 * UNIT_BYTES - 1).err());
                            assert_eq!(error, refused(of_processor.err()), "{what}");
                            refusals += usize::from(error.is_some());
                        }
                    }
                }
            }
        }
        assert!(rows > 30 && cut > 30 && refusals > 3, "{rows} of rows, {cut} cut, {refusals} refused");
    }

    #[test]
    fn graphs_without_paths_and_trees() {
        let device = Device::open(&DeviceOptions::default()).expect("an adapter");
        let motif = Motif::parse("M4-1").expect("named");
        let anchor = Anchor::parse("4:0,8", &motif).expect("path");
        for edges in [vec![], vec![(0, 0, 1)], vec![(0, 1, 1), (1, 1, 1)]] {
            let graph = TemporalGraph::from_edges(edges, 2, 0).expect("builds");
            let keys = Keys::new(&graph, 5, Ties::Order);
            let on_device = GpuGraph::upload(&device, &graph, true).expect("fits");
            let keys_on_device = GpuKeys::upload(&device, &graph, &keys).expect("fits");
            for prune in [Prune::Off, Prune::Pairs, Prune::Rows] {
                let units = Units::new(&graph, &keys, &motif, &Recipe::new(&motif, &anchor), prune, u64::MAX).expect("fits");
                let paths = GpuPaths::number(&on_device, &keys_on_device, &motif, &anchor, prune, u64::MAX, u64::MAX).expect("fits");
                compare(&paths, &units, usize::MAX, &format!("{} edges, {prune:?}", graph.num_edges()));
            }
            let star = Motif::parse("0>1 0>2 0>3").expect("edges");
            let tree = Anchor::all_trees(&star, 1).pop().expect("a tree");
            let refused = GpuPaths::number(&on_device, &keys_on_device, &star, &tree, Prune::Off, u64::MAX, u64::MAX);
            assert_eq!(refused.err().map(|e| e.kind()), Some(ErrorKind::Unsupported));
        }
    }

    #[test]
    fn path_numbers_past_64_bits_are_refused() {
        let device = Device::open(&DeviceOptions::default()).expect("an adapter");
        let motif = Motif::parse("M4-1").expect("named");
        let recipe = Recipe::new(&motif, &Anchor::parse("4:0,8", &motif).expect("path"));
        let graph = random_graph(Key::new(1), 4, 30, 9);
        let keys = Keys::new(&graph, 5, Ties::Order);
        let on_device = GpuGraph::upload(&device, &graph, true).expect("fits");
        let keys_on_device = GpuKeys::upload(&device, &graph, &keys).expect("fits");
        let numbering = Numbering {
            graph: &on_device,
            keys: &keys_on_device,
            motif: &motif,
            recipe: &recipe,
            prune: Prune::Off,
            kernels: NumberKernels::new(&device.target(), false).expect("valid"),
            layout: layout_of(&on_device, &keys_on_device),
            max_bytes: u64::MAX,
            max_binding_bytes: u64::MAX,
        };
        // Three tables of two units, of which the last is not full.
        let chunks = |totals: [u64; 3]| {
            let tables = totals.iter().map(|_| numbering.table(2)).collect::<Result<_>>().expect("fits");
            let ends = totals.map(|total| [total as u32, (total >> 32) as u32, 0, 0, 0, 0, 0, 0, 0, 0]).to_vec();
            numbering.chunks(Tables { tables, size: 2, num_units: 5, ends, most_paths: 0 })
        };
        let most = u64::MAX - (1 << 40);
        let chunks_of_most = chunks([most, 1 << 39, 1 << 39]).expect("just fits");
        assert_eq!(chunks_of_most[2].paths, most + (1 << 39)..u64::MAX);
        assert_eq!((chunks_of_most[2].first_unit, chunks_of_most[2].num_units), (4, 1));
        let first = most + (1 << 39);
        assert_eq!(words_of(&chunks_of_most[2].table)[20..22], [first as u32, (first >> 32) as u32]);
        let limit = |error: Option<Error>| error.map(|e| (e.kind(), e.to_string()));
        let too_many = Some((ErrorKind::Limit, too_many().to_string()));
        assert_eq!(limit(chunks([most, 1 << 39, 1 << 40]).err()), too_many);
        assert_eq!(limit(end_of(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]).err()), too_many);
    }
}
