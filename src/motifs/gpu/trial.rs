//! Rounds of draws as plans of their own, in which kernels are compared with their twins.

use kernels_gen::Target;
use kernels_gen::threefry::Key;

use crate::error::{Error, Result};
use crate::motifs::gpu::graph::{bounds_pieces, max_search, pairs_parts, part_starts};
use crate::motifs::gpu::round::{Bound, Inputs, Merge, Round, RoundKernels, STATE_WORDS, TEAM, UnitRange, draw_paths, totals};
use crate::motifs::paths::{Draws, Keys, Paths, Prune, Strata, Unit, first_path, set_first};
use crate::motifs::{Anchor, Motif, TemporalGraph, Ties};
use crate::plan::{Command, ExecutionPlan, SlotId, SlotRole};

/// Draws from the paths of an anchor, and how they are cut into dispatches.
#[derive(Clone)]
pub(crate) struct Trial<'g> {
    pub graph: &'g TemporalGraph,
    pub motif: Motif,
    pub anchor: Anchor,
    pub delta: i64,
    pub ties: Ties,
    pub prune: Prune,
    /// Path numbers of a stratum.
    pub width: u64,
    pub key: Key,
    /// Strata drawn from before the first path and past the last.
    pub margin: u64,
    /// A path of number n gets the number `shift + stretch * n`. More than 1 is for rows of anchors with one side, whose paths are alike.
    pub shift: u64,
    pub stretch: u64,
    /// Bindings the units are cut into.
    pub num_chunks: usize,
    /// Whether numbers are taken for ones of 64 bits, and gaps for ones of more than eight lists, though they are not.
    pub wide: bool,
    pub long: bool,
    /// Replicates that draw together, each with a stream of the key. More than one take a multiple of eight invocations.
    pub num_replicates: u32,
    pub num_lanes: u32,
    pub per_lane: u32,
    /// Most rounds for each binding; strata past them are left out.
    pub max_rounds: u64,
    /// Steps of each dispatch that counts chains.
    pub steps: Vec<u32>,
    /// Replaces by random numbers what the first dispatch that counts has of chains it is not done with.
    pub ways: Option<Key>,
}

/// A trial as a plan.
pub(crate) struct TrialPlan {
    pub plan: ExecutionPlan,
    pub inputs: Vec<(SlotId, Vec<u32>)>,
    /// What the last round left before the last dispatch that counts: drawn, found, state, unfinished; then what is left at the end: state,
    /// unfinished, totals. Of the totals the first eight are of nothing, then comes one for each replicate.
    pub output: SlotId,
    /// Lists of each gap.
    pub gaps: Vec<usize>,
    pub num_rounds: usize,
}

impl<'g> Trial<'g> {
    /// Enumerates the paths of an anchor, both as text, in rounds of 64 invocations.
    pub fn new(graph: &'g TemporalGraph, motif: &str, anchor: &str, delta: i64) -> Result<Self> {
        let motif = Motif::parse(motif)?;
        let anchor = Anchor::parse(anchor, &motif)?;
        Ok(Trial {
            graph,
            motif,
            anchor,
            delta,
            ties: Ties::Order,
            prune: Prune::Off,
            width: 1,
            key: Key::new(0),
            margin: 0,
            shift: 0,
            stretch: 1,
            num_chunks: 1,
            wide: false,
            long: false,
            num_replicates: 1,
            num_lanes: 64,
            per_lane: 7,
            max_rounds: u64::MAX,
            steps: vec![60_000],
            ways: None,
        })
    }

    /// The strata of replicate `r`.
    fn strata(&self, r: u32) -> Strata {
        Strata { width: self.width, key: if self.num_replicates > 1 { self.key.stream(r.into()) } else { self.key } }
    }

    /// Units with the numbers that this trial gives their paths.
    fn table(&self, paths: &Paths<'_>) -> Result<Vec<Unit>> {
        let renumbered = |unit: &Unit| {
            let first = first_path(unit).checked_mul(self.stretch).and_then(|first| first.checked_add(self.shift));
            let mut unit = *unit;
            set_first(&mut unit, first.ok_or_else(|| Error::limit("shifted or stretched path numbers pass 64 bits; shift them by less"))?);
            Ok(unit)
        };
        paths.units.table.iter().map(renumbered).collect()
    }

    /// The trial as a plan for `target`.
    pub fn plan(&self, target: &Target) -> Result<TrialPlan> {
        let graph = self.graph;
        let keys = Keys::new(graph, self.delta, self.ties);
        let paths = Paths::new(graph, &keys, &self.motif, &self.anchor, self.prune, u64::MAX)?;
        let table = self.table(&paths)?;
        let recipe = &paths.recipe;
        let parts = pairs_parts(&graph.pairs, &keys);
        let round = Round {
            recipe,
            is_strict: keys.of_edge.is_some(),
            num_keys: keys.first.len() as u32,
            parts: part_starts(parts),
            max_search: max_search(&graph.pairs),
            num_lanes: self.num_lanes,
            per_lane: self.per_lane,
            replicates: if self.num_replicates > 1 { TEAM } else { 1 },
        };
        let most_paths = table.windows(2).map(|pair| first_path(&pair[1]) - first_path(&pair[0])).max().unwrap_or(0);
        let bound = if self.wide { Bound::Wide } else { Bound::of(self.width, most_paths) };
        let merge = if self.long { Merge::Long } else { Merge::of(recipe) };
        let kernels = RoundKernels::new(target, &round, (draw_paths(paths.units.row_side), bound), merge)?;

        let mut plan = ExecutionPlan::new();
        let mut inputs = Vec::new();
        let mut input = |plan: &mut ExecutionPlan, name: &str, words: &[u32]| {
            // A binding is never empty.
            let words = if words.is_empty() { vec![0] } else { words.to_vec() };
            let slot = plan.slot(name, 4 * words.len() as u64, SlotRole::Input);
            inputs.push((slot, words));
            slot
        };
        let edges = input(&mut plan, "edges", bytemuck::cast_slice(&graph.edges));
        let sides = [0, 1].map(|j| match paths.units.sides.get(j) {
            Some(side) => input(&mut plan, "side", bytemuck::cast_slice(&side.entries)),
            None => edges,
        });
        let slots = Inputs {
            draw: Vec::new(),
            edges,
            of_edge: input(&mut plan, "of_edge", bytemuck::cast_slice(&graph.pairs.of_edge)),
            bounds: input(&mut plan, "bounds", &bounds_pieces(&keys).concat()),
            keys: input(&mut plan, "keys", keys.of_edge.unwrap_or(&[])),
            pairs: input(&mut plan, "pairs", &parts.concat()),
        };
        // All lists of all invocations, word by word.
        let ways_words = 64 * u64::from(self.num_lanes);
        let ways = self.ways.map(|key| input(&mut plan, "ways", &(0..ways_words).map(|n| key.word(n)).collect::<Vec<u32>>()));
        let buffers = round.buffers(&mut plan);
        let totals = totals(&mut plan, 2 * TEAM as usize);
        let bytes = |plan: &ExecutionPlan, slot: SlotId| plan.slots[slot.0 as usize].bytes;
        let copied = [buffers.drawn, buffers.found, buffers.state, buffers.unfinished, buffers.state, buffers.unfinished, totals];
        let mut end = 0;
        let offsets = copied.map(|slot| {
            let start = end;
            end += bytes(&plan, slot);
            start
        });
        let output = plan.slot("out", end, SlotRole::Output);
        let copy = |plan: &mut ExecutionPlan, part: usize| {
            let (from, bytes) = (copied[part], bytes(plan, copied[part]));
            plan.commands.push(Command::Copy { from, from_offset: 0, to: output, to_offset: offsets[part], bytes });
        };

        let mut num_rounds = 0;
        let size = (table.len() - 1).div_ceil(self.num_chunks.max(1)).max(1);
        for first_unit in (0..table.len() - 1).step_by(size) {
            let last_unit = (first_unit + size).min(table.len() - 1);
            let of_chunk = &table[first_unit..=last_unit];
            let units = input(&mut plan, "units", of_chunk.as_flattened());
            let range = UnitRange {
                num_units: (last_unit - first_unit) as u32,
                first_unit: first_unit as u32,
                paths: first_path(&table[first_unit])..first_path(&table[last_unit]),
            };
            let begin = (range.paths.start / self.width).saturating_sub(self.margin);
            let end = range.paths.end.div_ceil(self.width) + self.margin;
            let draws: Vec<Draws> = (0..self.num_replicates).map(|r| Draws { strata: self.strata(r), range: begin..end }).collect();
            // One that is no whole team draws from some strata only.
            let per_round = round.strata().max(u64::from(TEAM * self.per_lane));
            for first in (begin..end).step_by(per_round as usize).take(self.max_rounds as usize) {
                let draw = vec![units, edges, sides[0], sides[1], slots.bounds, slots.keys];
                let params = round.path_params(paths.units.row_side, &range, &draws, (first, (end - first).min(per_round) as u32));
                kernels.find(&mut plan, &round, &Inputs { draw, ..slots.clone() }, &buffers, Some(params))?;
                plan.commands.push(Command::Clear { slot: buffers.unfinished });
                for (n, &max_steps) in self.steps.iter().enumerate() {
                    if n + 1 == self.steps.len() {
                        (0..4).for_each(|part| copy(&mut plan, part));
                        plan.commands.push(Command::Clear { slot: buffers.unfinished });
                    }
                    kernels.count(&mut plan, &round, slots.pairs, &buffers, (n > 0, max_steps))?;
                    if let Some(ways) = ways.filter(|_| n == 0) {
                        let to_offset = 4 * (STATE_WORDS * u64::from(self.num_lanes) - ways_words);
                        plan.commands.push(Command::Copy {
                            from: ways,
                            from_offset: 0,
                            to: buffers.state,
                            to_offset,
                            bytes: 4 * ways_words,
                        });
                    }
                }
                num_rounds += 1;
            }
        }
        (4..6).for_each(|part| copy(&mut plan, part));
        // Twice, since the first sum leaves nothing behind for the second.
        kernels.sum(&mut plan, &round, buffers.state, totals, TEAM);
        kernels.sum(&mut plan, &round, buffers.state, totals, 0);
        copy(&mut plan, 6);
        let gaps = recipe.gaps().map(|gap| gap.len()).collect();
        Ok(TrialPlan { plan, inputs, output, gaps, num_rounds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motifs::TWINS;
    use crate::motifs::paths::Tally;
    use crate::plan::host;

    fn random_graph(key: Key, vertices: u32, edges: u64, times: u64) -> TemporalGraph {
        let edges = (0..edges).map(|i| {
            let word = |n: u64, below: u64| ((u64::from(key.word(4 * i + n)) * below) >> 32) as u32;
            (word(0, vertices.into()), word(1, vertices.into()), i64::from(word(2, times)))
        });
        TemporalGraph::from_edges(edges.collect(), vertices, 0).expect("builds")
    }

    /// What the twins make of a trial: its totals.
    fn run(trial: &Trial<'_>) -> Vec<Tally> {
        let built = trial.plan(&Target::webgpu()).expect("plans");
        let mut slots = host::allocate(&built.plan);
        for (slot, words) in &built.inputs {
            slots[slot.0 as usize][..words.len()].copy_from_slice(words);
        }
        host::run(&built.plan, &mut slots, TWINS).expect("runs");
        let end = (built.plan.slots[built.output.0 as usize].bytes / 4) as usize;
        let totals = slots[built.output.0 as usize][end - 160..end].as_chunks().0;
        totals.iter().map(Tally::of_words).collect()
    }

    #[test]
    fn twins_of_a_round_sum_to_what_the_processor_does() {
        let (mut nonzero, mut num_trials) = (0, 0);
        for (n, motif) in Motif::all_named().iter().enumerate() {
            let key = Key::new(n as u64);
            let graph = random_graph(key.stream(0), motif.num_vertices() as u32 + 1, 60, 30);
            let anchors = Anchor::all_paths(motif);
            let chosen = anchors.iter().step_by(anchors.len().div_ceil(2).max(1));
            for (anchor, prune) in chosen.flat_map(|anchor| [Prune::Off, Prune::Pairs, Prune::Rows].map(|prune| (anchor, prune))) {
                // Half of the combinations each, the other half for the next motif.
                for (ties, width) in [(Ties::Order, 1 + 6 * (n as u64 % 2)), (Ties::Strict, 3 - 2 * (n as u64 % 2))] {
                    let base = Trial::new(&graph, "0>1", "0", [6, 12, 25][n % 3]).expect("an anchor");
                    let (steps, margin) = (vec![50, 7, 100_000], 2);
                    let trial = Trial { motif: motif.clone(), anchor: anchor.clone(), prune, ties, width, steps, margin, key, ..base };
                    let keys = Keys::new(&graph, trial.delta, ties);
                    let paths = Paths::new(&graph, &keys, motif, anchor, prune, u64::MAX).expect("numbers");
                    let trial = Trial { num_chunks: 2, num_replicates: [1, 5, 8][num_trials % 3], ..trial };
                    let all = paths.units.total().div_ceil(width);
                    let expected: Vec<Tally> = (0..trial.num_replicates).map(|r| paths.tally(&trial.strata(r), 0..all)).collect();
                    let sums = run(&trial);
                    num_trials += 1;
                    let what = format!("{} {anchor} {prune:?} {ties:?} width {width}", motif.name());
                    assert_eq!(sums[..8], [Tally::default(); 8], "{what}");
                    assert_eq!(sums[8..][..expected.len()], expected, "{what}");
                    assert_eq!(sums[8 + expected.len()..], vec![Tally::default(); 8 - expected.len()], "{what}");
                    nonzero += usize::from(expected[0].sum > 0);
                }
            }
        }
        assert!(nonzero > 100, "{nonzero}");
    }
}
