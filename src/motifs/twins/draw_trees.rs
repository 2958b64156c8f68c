//! Twin of `draw_trees.wgsl`.

use kernels_gen::threefry::Key;

use super::{set_wide, wide};
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

/// Neighbouring invocations that draw from neighbouring strata, or from the same ones for different replicates.
const TEAM: u64 = 8;

/// Places of parameters.
const NUM_PLACED: usize = 15;
const ORDER: usize = 17;
const PARENTS: usize = 18;
const RANKS: usize = 19;
const INNER: usize = 20;
const LAST: usize = 21;
const NUM_EDGES: usize = 22;
const KEYS: usize = 28;
const SHIFTS: usize = 44;

/// Twins of all permutations: how far numbers reach makes no difference here.
pub(super) const TWINS: &[Twin] = &[
    Twin { name: "draw_trees", run: in_order },
    Twin { name: "draw_trees_enumerate", run: in_order },
    Twin { name: "draw_trees_wide", run: in_order },
    Twin { name: "draw_trees_deep", run: in_order },
    Twin { name: "draw_trees_deep_enumerate", run: in_order },
    Twin { name: "draw_trees_deep_wide", run: in_order },
    Twin { name: "draw_trees_strict", run: strict },
    Twin { name: "draw_trees_enumerate_strict", run: strict },
    Twin { name: "draw_trees_wide_strict", run: strict },
    Twin { name: "draw_trees_deep_strict", run: strict },
    Twin { name: "draw_trees_deep_enumerate_strict", run: strict },
    Twin { name: "draw_trees_deep_wide_strict", run: strict },
];

fn in_order(call: TwinCall<'_>) -> Result<()> {
    run(call, false)
}

fn strict(call: TwinCall<'_>) -> Result<()> {
    run(call, true)
}

/// What a dispatch draws from.
struct Tables<'a> {
    graph: &'a [u32],
    windows: &'a [u32],
    sums: &'a [u32],
    bounds: &'a [u32],
    keys: Option<&'a [u32]>,
    params: [u32; 52],
}

/// Tree `local` of a centre: the placed edges and the vertices they add, the centre's two first.
struct Tree {
    placed: Vec<usize>,
    vertices: Vec<u32>,
}

impl Tables<'_> {
    fn four_bits(&self, param: usize, at: usize) -> usize {
        (self.params[param] >> (4 * at)) as usize & 15
    }

    fn num_placed(&self) -> usize {
        self.params[NUM_PLACED] as usize
    }

    /// First entry and number of entries of the window of placed edge `j`, the prefix sums from its first entry's on, and how many subtrees it has.
    fn window(&self, j: usize, parent: usize) -> (usize, usize, impl Fn(usize) -> u64, u64) {
        let at = (j - 1) * self.params[NUM_EDGES] as usize + parent;
        let [start, length] = [self.windows[2 * at], self.windows[2 * at + 1]].map(|word| word as usize);
        let is_inner = self.params[INNER] >> j & 1 == 1;
        let place = (start as u32).wrapping_add(self.params[SHIFTS + j]) as usize;
        let sums = self.sums;
        let sum = move |n: usize| if is_inner { wide(sums, place + n) - wide(sums, place) } else { n as u64 };
        (start, length, sum, sum(length))
    }

    fn place(&self, centre: usize, local: u64) -> Tree {
        let ends = [self.graph[2 * centre], self.graph[2 * centre + 1]];
        let mut tree = Tree { placed: vec![centre; self.num_placed()], vertices: ends.to_vec() };
        let mut left = vec![local; self.num_placed()];
        for j in (0..self.num_placed() - 1).map(|n| self.four_bits(ORDER, n)) {
            let parent = self.four_bits(PARENTS, j);
            let (start, length, sum, size) = self.window(j, tree.placed[parent]);
            let number = left[parent] % size;
            left[parent] /= size;
            let entry = (1..length).find(|&n| sum(n) > number).unwrap_or(length) - 1;
            left[j] = number - sum(entry);
            tree.placed[j] = self.graph[2 * (start + entry)] as usize;
            tree.vertices.push(self.graph[2 * (start + entry) + 1]);
        }
        tree
    }

    fn is_valid(&self, tree: &Tree) -> bool {
        let mut times = vec![0u32; self.num_placed()];
        for (j, &edge) in tree.placed.iter().enumerate() {
            times[self.four_bits(RANKS, j)] = self.keys.map_or(edge as u32, |keys| keys[edge]);
        }
        let mut vertices = tree.vertices.clone();
        vertices.sort_unstable();
        vertices.dedup();
        let span = self.bounds[self.params[LAST] as usize + times[0] as usize];
        times.is_sorted_by(|a, b| a < b) && times[times.len() - 1] <= span && vertices.len() == tree.vertices.len()
    }
}

fn run(call: TwinCall<'_>, is_strict: bool) -> Result<()> {
    let covered = call.num_invocations();
    let ([units, graph, windows, sums, bounds, keys, drawn], params) = call.split()?;
    let tables = Tables { graph, windows, sums, bounds, keys: is_strict.then_some(keys), params };
    let number = |at: usize| u64::from(params[at]) | u64::from(params[at + 1]) << 32;
    let [lanes, per_lane, num_strata] = [0, 1, 4].map(|at| u64::from(params[at]));
    let (first, width, begin, end) = (number(2), number(5), number(9), number(11));
    let [num_replicates, turns] = [24, 25].map(|at| u64::from(params[at]));
    for lane in 0..lanes.min(covered) {
        let (team, member) = (lane / TEAM, lane % TEAM);
        let takes_turns = turns == TEAM;
        let (replicate, turn) = if takes_turns { (0, member) } else { (member, 0) };
        let bucket = if takes_turns { lane } else { member * (lanes / TEAM) + team };
        let words = [0, 1].map(|word| params[KEYS + 2 * replicate as usize + word]);
        let key = Key::from_words(words);
        let num_draws = if replicate < num_replicates { per_lane } else { 0 };
        let mut kept = 0;
        let strata = (0..num_draws).map(|n| (team * per_lane + n) * turns + turn);
        for i in strata.take_while(|&i| i < num_strata) {
            let offset = if width == 1 { 0 } else { key.below(first + i, width) };
            let Some(id) = (first + i).checked_mul(width).and_then(|base| base.checked_add(offset)).filter(|&id| id < end) else { break };
            let unit = (0..params[13] as usize).take_while(|&unit| wide(units, unit) <= id).last().unwrap_or(0);
            if id < begin {
                continue;
            }
            let tree = tables.place(params[14] as usize + unit, id - wide(units, unit));
            if tables.is_valid(&tree) {
                for (j, &edge) in tree.placed.iter().enumerate() {
                    let word = 3 * lanes + 2 + (j as u64 * per_lane + kept) * lanes + bucket;
                    drawn[word as usize] = edge as u32;
                }
                kept += 1;
            }
        }
        set_wide(drawn, bucket as usize, kept);
        drawn[(2 * lanes + 2 + bucket) as usize] = kept as u32;
    }
    Ok(())
}
