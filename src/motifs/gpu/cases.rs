//! Numberings of small graphs as plans, to try the kernels against their twins.

use kernels_gen::Target;
use kernels_gen::threefry::Key;

use crate::error::Result;
use crate::motifs::gpu::graph::{adjacency_pieces, bounds_pieces, pairs_parts, part_starts};
use crate::motifs::gpu::number::{Centres, GraphSlots, Layout, NumberKernels, ROW_BYTES, RowRange, UNIT_BYTES};
use crate::motifs::paths::{Embedding, Keys, Prune, Recipe, SOURCE};
use crate::motifs::{Anchor, Motif, TemporalGraph, Ties};
use crate::plan::{Command, ExecutionPlan, SlotId, SlotRole};

/// A plan with the words of its inputs and the output that says all.
#[derive(Debug, Clone)]
pub struct NumberingCase {
    /// Kernels, and what is special about the case.
    pub name: String,
    /// The plan.
    pub plan: ExecutionPlan,
    /// Words of its inputs.
    pub inputs: Vec<(SlotId, Vec<u32>)>,
    /// Sides, tables of centres, rows and tables of rows, one after the other.
    pub output: SlotId,
}

/// What to number.
struct Spec {
    motif: &'static str,
    anchor: &'static str,
    prune: Prune,
    ties: Ties,
    delta: i64,
    graph: Graph,
}

/// Random graphs.
#[derive(Clone, Copy)]
struct Graph {
    vertices: u32,
    edges: u32,
    times: u32,
    /// All edges are at vertex 0, in one direction or the other.
    is_star: bool,
}

impl Graph {
    fn build(self, key: Key) -> Result<TemporalGraph> {
        let edges = (0..u64::from(self.edges)).map(|i| {
            let word = |n: u64, below: u32| ((u64::from(key.word(4 * i + n)) * u64::from(below)) >> 32) as u32;
            let (u, v) = (word(0, self.vertices), word(1, self.vertices));
            let (u, v) = if self.is_star && word(3, 2) == 0 { (0, v) } else { (u, if self.is_star { 0 } else { v }) };
            (u, v, i64::from(word(2, self.times)))
        });
        TemporalGraph::from_edges(edges.collect(), self.vertices, 0)
    }
}

/// Numberings for every kernel and permutation.
///
/// # Errors
///
/// [`ErrorKind::Shader`](crate::ErrorKind::Shader) where a kernel does not fit `target`.
pub fn numbering_cases(target: &Target, key: Key) -> Result<Vec<NumberingCase>> {
    let graph = |vertices, edges, times| Graph { vertices, edges, times, is_star: false };
    let (dense, ties, pair) = (graph(5, 150, 120), graph(6, 200, 25), graph(2, 90, 60));
    let star = Graph { is_star: true, ..graph(40, 300, 200) };
    let (loops, one, folded) = (graph(1, 20, 9), graph(3, 1, 1), graph(60, 2_500, 9_000));
    let mut cases = Vec::new();
    let mut stream = 0;
    let mut add = |what: &str, target: &Target, motif, anchor, delta, graph, prunes: &[Prune]| -> Result<()> {
        for &prune in prunes {
            for ties in [Ties::Order, Ties::Strict] {
                stream += 1;
                let spec = Spec { motif, anchor, prune, ties, delta, graph };
                cases.push(case(what, target, key.stream(stream), &spec)?);
            }
        }
        Ok(())
    };
    let all = [Prune::Off, Prune::Pairs, Prune::Rows];
    add("a dense graph", target, "M4-1", "4:0,8", 60, dense, &all)?;
    add("many ties", target, "M4-3", "3:0,5", 12, ties, &all)?;
    add("free pairs", target, "M4-4", "0:4,9", 80, dense, &[Prune::Rows])?;
    add("one side", target, "M3-0", "4:0", 60, ties, &all)?;
    add("no side", target, "0>1 0>1 1>0 0>1", "0", 20, pair, &all[..2])?;
    add("a star", target, "0>1 1>2 1>0 2>1", "0:1", 90, star, &all)?;
    add("nothing between", target, "M4-0", "1:0,2", 0, ties, &all)?;
    add("loops alone", target, "M4-1", "4:0,8", 9, loops, &all)?;
    add("one edge", target, "M4-0", "1:0,2", 9, one, &all)?;
    let narrow = Target { max_workgroups_per_dim: 8, ..target.clone() };
    add("folded dispatches", &narrow, "M4-1", "4:0,8", 1_500, folded, &[Prune::Off, Prune::Rows])?;
    Ok(cases)
}

/// A plan that is being recorded, with what its output is made of.
struct Trial {
    plan: ExecutionPlan,
    inputs: Vec<(SlotId, Vec<u32>)>,
    parts: Vec<(SlotId, u64)>,
}

impl Trial {
    fn input(&mut self, name: &str, words: Vec<u32>) -> SlotId {
        let slot = self.plan.slot(name, 4 * words.len() as u64, SlotRole::Input);
        self.inputs.push((slot, words));
        slot
    }

    /// A slot of zeros that becomes a part of the output.
    fn part(&mut self, name: &str, bytes: u64) -> SlotId {
        let slot = self.plan.slot(name, bytes, SlotRole::State);
        self.plan.commands.push(Command::Clear { slot });
        self.parts.push((slot, bytes));
        slot
    }

    fn case(mut self, name: String) -> NumberingCase {
        let output = self.plan.slot("out", self.parts.iter().map(|part| part.1).sum(), SlotRole::Output);
        let mut to_offset = 0;
        for &(from, bytes) in &self.parts {
            self.plan.commands.push(Command::Copy { from, from_offset: 0, to: output, to_offset, bytes });
            to_offset += bytes;
        }
        NumberingCase { name, plan: self.plan, inputs: self.inputs, output }
    }
}

/// Sides; two tables of centres, of which the second has units without an edge; and for rows, for each side they may hold, those of both
/// tables, of which the first and the last few of the second do not get into its table, whose numbers are shifted.
fn case(what: &str, target: &Target, key: Key, spec: &Spec) -> Result<NumberingCase> {
    let Spec { prune, ties, .. } = *spec;
    let graph = spec.graph.build(key)?;
    let keys = Keys::new(&graph, spec.delta, ties);
    let motif = Motif::parse(spec.motif)?;
    let recipe = Recipe::new(&motif, &Anchor::parse(spec.anchor, &motif)?);
    let parts = pairs_parts(&graph.pairs, &keys);
    let layout = Layout {
        num_edges: graph.num_edges() as u32,
        num_entries: graph.outgoing.entries.len() as u32,
        num_vertices: graph.num_vertices,
        parts: part_starts(parts),
        num_keys: keys.first.len() as u32,
    };
    let kernels = NumberKernels::new(target, ties == Ties::Strict)?;
    let mut trial = Trial { plan: ExecutionPlan::new(), inputs: Vec::new(), parts: Vec::new() };
    let slots = GraphSlots {
        edges: trial.input("edges", graph.edges.concat()),
        of_edge: trial.input("of_edge", graph.pairs.of_edge.concat()),
        bounds: trial.input("bounds", bounds_pieces(&keys).concat()),
        pairs: trial.input("pairs", parts.concat()),
        layout,
    };
    let by_vertex = [&graph.outgoing, &graph.incoming].map(|adjacency| adjacency_pieces(adjacency).concat());
    let [outgoing, incoming] = by_vertex.map(|words| trial.input("by_vertex", words));
    let flags = trial.part("flags", 8);
    let mut sides = Vec::new();
    for (j, placed) in recipe.placed.iter().enumerate().skip(1) {
        let all = if placed.own_end == SOURCE { outgoing } else { incoming };
        let embedding = Embedding::new(&recipe, &[j], Some(&motif));
        let side = trial.part("side", layout.side_bytes());
        kernels.side(&mut trial.plan, &slots, &embedding, prune, [all, side, flags])?;
        sides.push(side);
    }
    let mode = match prune {
        Prune::Off => Centres::Unpruned,
        Prune::Rows if !sides.is_empty() => Centres::ForRows,
        _ => Centres::Pruned,
    };
    let around = Embedding::new(&recipe, &[0], Some(&motif));
    let size = layout.num_edges / 2 + 2;
    for first_edge in [0, size] {
        let table = trial.part("centres", (u64::from(size) + 1) * UNIT_BYTES);
        let params = NumberKernels::centres_params(&layout, &recipe, &around, mode, first_edge, size);
        let [side1, side2] = [0, 1].map(|i| sides.get(i).copied().unwrap_or(slots.edges));
        kernels.centres(&mut trial.plan, &slots, &params, [side1, side2], [table, flags])?;
        for side in 1..=if mode == Centres::ForRows { sides.len() } else { 0 } {
            let (first, count) = if first_edge == 0 { (0, 700) } else { (3, 150) };
            let range = RowRange { side, num_centres: size, first_edge, first, count };
            let embedding = Embedding::new(&recipe, &[0, side], Some(&motif));
            let params = NumberKernels::rows_params(&layout, &recipe, &embedding, range);
            let rows = trial.part("rows", (u64::from(count) + 1) * ROW_BYTES);
            let other = sides[(2 - side).min(sides.len() - 1)];
            kernels.rows(&mut trial.plan, &slots, &params, [table, sides[side - 1], other], [rows, flags])?;
            let (base, units) = if first_edge == 0 { (0, count) } else { (u32::MAX - 1, 10) };
            let kept = trial.part("units", (u64::from(units) + 1) * UNIT_BYTES);
            kernels.compact_rows(&mut trial.plan, [rows, kept], [count, base, units])?;
            kernels.sums(&mut trial.plan, [kept, flags], units)?;
            kernels.shift(&mut trial.plan, kept, units, u64::from(base) << 3)?;
        }
    }
    let order = if ties == Ties::Strict { ", strict" } else { "" };
    Ok(trial.case(format!("numbering, {} {} prune {}{order}, {what}", spec.motif, spec.anchor, prune.name())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motifs::TWINS;
    use crate::plan::host;

    /// Words of every slot after the twins ran.
    fn run(case: &NumberingCase) -> Vec<Vec<u32>> {
        let mut slots = host::allocate(&case.plan);
        for (slot, words) in &case.inputs {
            slots[slot.0 as usize][..words.len()].copy_from_slice(words);
        }
        host::run(&case.plan, &mut slots, TWINS).expect("runs");
        slots
    }

    #[test]
    fn the_cases_reach_what_they_are_for() {
        let cases = numbering_cases(&Target::webgpu(), Key::new(1)).expect("cases");
        let named = |what: &'static str| cases.iter().filter(move |case| case.name.contains(what));
        let (mut kept, mut left_out) = (0, 0);
        for case in named("M4-1 4:0,8 prune rows").filter(|case| !case.name.contains("loops")) {
            let slots = run(case);
            let rows = case.plan.slots.iter().zip(&slots).filter(|(slot, _)| slot.name == "rows");
            for (_, words) in rows {
                let total = words[words.len() - 2 - words.len() % 12..][0];
                let count = words.len() as u32 / 12 - 1;
                kept += total;
                left_out += count - total;
            }
        }
        assert!(kept > 20 && left_out > 20, "{kept} rows are kept, {left_out} are left out");
        let dead = |case: &NumberingCase| {
            let slots = run(case);
            let sides = case.plan.slots.iter().zip(&slots).filter(|(slot, _)| slot.name == "side");
            sides.flat_map(|(_, words)| words).filter(|&&word| word & crate::motifs::paths::DEAD != 0).count()
        };
        assert!(named("M4-1 4:0,8 prune off").all(|case| dead(case) > 0 || case.name.contains("loops")));
        let folds = |case: &NumberingCase| {
            case.plan.commands.iter().any(|c| matches!(c, Command::Dispatch { workgroups: [_, y, _], .. } if *y > 1))
        };
        assert!(named("folded").all(folds));
    }
}
