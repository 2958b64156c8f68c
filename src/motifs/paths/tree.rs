//! Numbering of spanning trees: each edge but the centre lies within delta of its parent, on its side of time, and keeps prefix sums of
//! the numbers of its subtrees along the lists it is drawn from.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::Result;
use crate::motifs::TemporalGraph;
use crate::motifs::paths::recipe::Placed;
use crate::motifs::paths::sample::Placement;
use crate::motifs::paths::units::{SideEdges, Unit, Units, check_table, number, set_first, too_many};
use crate::motifs::paths::{Keys, Recipe};

/// The lists of a tree's edges and the numbers of their subtrees.
pub(in crate::motifs) struct Subtrees<'g> {
    /// For each placed edge but the centre: the edges it is drawn from.
    pub sides: Vec<SideEdges<'g>>,
    /// As [`Units::sums`]: a leaf is its own only subtree.
    pub sums: Vec<Option<Vec<u64>>>,
}

impl<'g> Subtrees<'g> {
    /// Window of keys in which a child of `placed` lies around its parent's key.
    pub fn window(keys: &Keys<'_>, placed: &Placed, key: u32) -> Range<u32> {
        match placed.after {
            true => key + 1..keys.last[key as usize] + 1,
            false => keys.first[key as usize]..key,
        }
    }

    /// Entries that placed edge `j` is drawn from, its parent being `edge`, and how many subtrees they have.
    fn entries(&self, graph: &TemporalGraph, keys: &Keys<'_>, placed: &Placed, j: usize, edge: u32) -> (Range<usize>, u64) {
        let vertex = graph.edges[edge as usize][placed.at];
        let [start, len] = self.sides[j - 1].window(keys, vertex, Subtrees::window(keys, placed, keys.of(edge))).map(|n| n as usize);
        let subtrees = match self.sums.get(j - 1).and_then(Option::as_ref) {
            Some(sums) => sums[start + len] - sums[start],
            None => len as u64,
        };
        (start..start + len, subtrees)
    }

    /// Number of subtrees below `edge` as placed edge `j`; `None` past 64 bits.
    fn below(&self, graph: &TemporalGraph, keys: &Keys<'_>, recipe: &Recipe, j: usize, edge: u32) -> Option<u64> {
        let children = recipe.children(j);
        children.map(|c| self.entries(graph, keys, &recipe.placed[c], c, edge).1).try_fold(1u64, u64::checked_mul)
    }
}

impl<'g> Units<'g> {
    /// Numbers the trees of an anchor that is a tree; as [`Units::new`].
    pub fn of_tree(graph: &'g TemporalGraph, keys: &Keys<'_>, recipe: &Recipe, max_bytes: u64) -> Result<Self> {
        let inner = (1..recipe.placed.len()).filter(|&j| recipe.children(j).next().is_some()).count();
        check_table(graph.num_edges() as u64 * (1 + inner as u64), max_bytes)?;
        let sides = recipe.placed[1..].iter().map(|placed| SideEdges::all(graph, placed)).collect();
        let mut trees = Subtrees { sides, sums: vec![None; recipe.placed.len() - 1] };
        // Children are placed after their parents.
        for j in (1..recipe.placed.len()).rev().filter(|&j| recipe.children(j).next().is_some()) {
            let entries = &trees.sides[j - 1].entries;
            let subtrees: Option<Vec<u64>> = entries.par_iter().map(|&[edge, _]| trees.below(graph, keys, recipe, j, edge)).collect();
            let mut sums = Vec::with_capacity(entries.len() + 1);
            let mut sum = 0u64;
            sums.push(0);
            for subtrees in subtrees.ok_or_else(too_many)? {
                sum = sum.checked_add(subtrees).ok_or_else(too_many)?;
                sums.push(sum);
            }
            trees.sums[j - 1] = Some(sums);
        }
        let centre = |edge: u32| -> Option<Unit> {
            let [u, v] = graph.edges[edge as usize];
            let trees = if u == v { 0 } else { trees.below(graph, keys, recipe, 0, edge)? };
            let mut unit = Unit::default();
            set_first(&mut unit, trees);
            Some(unit)
        };
        let table: Option<Vec<Unit>> = (0..graph.num_edges() as u32).into_par_iter().map(centre).collect();
        let mut table = table.ok_or_else(too_many)?;
        number(&mut table)?;
        Ok(Units { table, row_side: None, sides: trees.sides, sums: trees.sums })
    }

    /// Placement of tree `local` of centre `centre`.
    pub fn place_tree(&self, graph: &TemporalGraph, keys: &Keys<'_>, recipe: &Recipe, centre: u32, local: u64) -> Placement {
        let mut placement = Placement::default();
        // What is left of the number of the subtree below each placed edge: its children are digits of it.
        let mut left = [0u64; crate::motifs::MAX_ANCHOR_EDGES];
        (placement[0], left[0]) = (centre, local);
        for (j, placed) in recipe.placed.iter().enumerate().skip(1) {
            let vertex = graph.edges[placement[placed.parent] as usize][placed.at];
            let key = keys.of(placement[placed.parent]);
            let side = &self.sides[j - 1];
            let [start, len] = side.window(keys, vertex, Subtrees::window(keys, placed, key)).map(|n| n as usize);
            let number = &mut left[placed.parent];
            let entry = match &self.sums[j - 1] {
                None => {
                    let digit = *number % len as u64;
                    *number /= len as u64;
                    start + digit as usize
                }
                Some(sums) => {
                    let subtrees = sums[start + len] - sums[start];
                    let digit = *number % subtrees;
                    *number /= subtrees;
                    let entry = start + sums[start + 1..start + len].partition_point(|&sum| sum - sums[start] <= digit);
                    left[j] = digit - (sums[entry] - sums[start]);
                    entry
                }
            };
            placement[j] = side.entries[entry][0];
        }
        placement
    }
}
