//! Units: runs of consecutive path numbers that share their centre, or their centre and one side.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::motifs::graph::Adjacency;
use crate::motifs::paths::centres::{centres, embeds, partition_near};
use crate::motifs::paths::embed::{Embedding, both_ways};
use crate::motifs::paths::recipe::{DESTINATION, Placed, SOURCE};
use crate::motifs::paths::{Keys, Recipe};
use crate::motifs::{Motif, TemporalGraph};

/// Which paths are left out before they are numbered: ones that no match holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prune {
    /// None: the number of paths is the one of the method's authors.
    Off,
    /// Edges around which the motif's edges on the same two vertices do not embed.
    Pairs,
    /// That, and pairs of a centre and a side around which the motif's edges on their three vertices do not embed.
    Rows,
}

impl Prune {
    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Prune::Off => "off",
            Prune::Pairs => "pairs",
            Prune::Rows => "rows",
        }
    }
}

/// A unit, in the words that kernels take.
pub(in crate::motifs) type Unit = [u32; 10];

/// Places of the words of a [`Unit`].
pub(in crate::motifs) mod unit {
    /// Number of the first path, low and high word.
    pub const FIRST: usize = 0;
    /// First entry and number of entries of the window of placed edge 1, then of placed edge 2; of a row both are its other side's.
    pub const WINDOWS: usize = 2;
    /// The part of each window outside of which no match is: first entry and the one behind the last.
    pub const LIVE: usize = 6;
    /// Of a row: its centre and its side, in place of the first window.
    pub const ROW: usize = 2;
}

/// Marks an entry of a side around which the motif's edges on the same two vertices do not embed.
pub(in crate::motifs) const DEAD: u32 = 1 << 31;

/// Edges that a side is drawn from, by the vertex at which it touches the centre.
#[derive(Clone)]
pub(in crate::motifs) struct SideEdges<'g> {
    pub offsets: Cow<'g, [u32]>,
    /// (edge, vertex at its other end); edges that no match holds may have the bit [`DEAD`].
    pub entries: Cow<'g, [[u32; 2]]>,
}

impl<'g> SideEdges<'g> {
    /// All edges that leave (or enter) a vertex.
    pub fn all(graph: &'g TemporalGraph, placed: &Placed) -> Self {
        let Adjacency { offsets, entries } = if placed.own_end == SOURCE { &graph.outgoing } else { &graph.incoming };
        SideEdges { offsets: Cow::Borrowed(offsets), entries: Cow::Borrowed(entries) }
    }

    /// All of them, those marked that `keep` does not hold for.
    fn marked(&self, keep: impl Fn(u32) -> bool + Sync) -> Self {
        let mark = |&[edge, other]: &[u32; 2]| [if keep(edge) { edge } else { edge | DEAD }, other];
        SideEdges { offsets: self.offsets.clone(), entries: self.entries.par_iter().map(mark).collect() }
    }

    /// Those that `keep` holds for.
    fn filtered(&self, keep: impl Fn(u32) -> bool + Sync) -> SideEdges<'static> {
        let kept: Vec<bool> = self.entries.par_iter().map(|&[edge, _]| keep(edge)).collect();
        let mut before = vec![0u32; kept.len() + 1];
        for (i, &kept) in kept.iter().enumerate() {
            before[i + 1] = before[i] + u32::from(kept);
        }
        let entries = self.entries.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(entry, _)| *entry);
        SideEdges { offsets: self.offsets.iter().map(|&at| before[at as usize]).collect(), entries: entries.collect() }
    }

    /// First entry and length of the window of those keys at a vertex.
    pub fn window(&self, keys: &Keys<'_>, vertex: u32, window: Range<u32>) -> [u32; 2] {
        self.window_near(keys, vertex, window, self.offsets[vertex as usize])
    }

    /// The same, searched for from an entry of the vertex, or the one behind its last, on: the nearer the sooner.
    pub fn window_near(&self, keys: &Keys<'_>, vertex: u32, window: Range<u32>, near: u32) -> [u32; 2] {
        let range = self.offsets[vertex as usize] as usize..self.offsets[vertex as usize + 1] as usize;
        let entries = &self.entries[range.clone()];
        let below = |key: u32| partition_near(entries, near as usize - range.start, |&[edge, _]| keys.of(edge & !DEAD) < key);
        let (low, high) = (below(window.start), below(window.end));
        [(range.start + low) as u32, high.saturating_sub(low) as u32]
    }
}

/// A numbering of the paths of an anchor.
pub(in crate::motifs) struct Units<'g> {
    /// Units in order of their path numbers, and a last one that begins where the paths end.
    pub table: Vec<Unit>,
    /// For units of a centre and a side: which placed edge the side is.
    pub row_side: Option<usize>,
    /// Edges that the sides are drawn from, placed edge 1 first.
    pub sides: Vec<SideEdges<'g>>,
    /// Of a tree, for the same: prefix sums of subtrees along these, `None` for a leaf.
    pub sums: Vec<Option<Vec<u64>>>,
}

impl<'g> Units<'g> {
    /// Number of paths.
    pub fn total(&self) -> u64 {
        self.table.last().map_or(0, first_path)
    }

    /// The unit that holds path `id`, which is below [`Units::total`].
    pub fn find(&self, id: u64) -> usize {
        self.table.partition_point(|unit| first_path(unit) <= id) - 1
    }

    /// Numbers the paths of an anchor. `max_bytes` bounds the table of units.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for more than 2^64 - 1 paths; [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory)
    /// where the table would be larger; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a tree that is to be pruned.
    pub fn new(graph: &'g TemporalGraph, keys: &Keys<'_>, motif: &Motif, recipe: &Recipe, prune: Prune, max_bytes: u64) -> Result<Self> {
        if recipe.is_tree {
            return match prune {
                Prune::Off => Units::of_tree(graph, keys, recipe, max_bytes),
                _ => Err(Error::unsupported("pruning is made for anchors that are paths; draw a tree with `--prune off` or `auto`")),
            };
        }
        let side = |j: usize| {
            let embedding = Embedding::new(recipe, &[j], Some(motif));
            let all = SideEdges::all(graph, &recipe.placed[j]);
            if embedding.steps.is_empty() {
                return all;
            }
            let embeds = embeds(graph, keys, &embedding);
            match prune {
                Prune::Off => all.marked(|edge| embeds[edge as usize]),
                Prune::Pairs | Prune::Rows => all.filtered(|edge| embeds[edge as usize]),
            }
        };
        let sides: Vec<SideEdges<'g>> = (1..recipe.placed.len()).map(side).collect();
        check_table(graph.num_edges() as u64, max_bytes)?;
        let mut table = centres(graph, keys, motif, recipe, &sides, prune);
        let mut row_side = None;
        if prune == Prune::Rows && !sides.is_empty() {
            // Rows are made of the side that has fewer edges in all.
            let rows = |i: usize| {
                table.iter().filter(|unit| first_path(unit) > 0).map(|unit| u64::from(unit[unit::WINDOWS + 1 + 2 * i])).sum::<u64>()
            };
            let side = (0..sides.len()).min_by_key(|&i| rows(i)).unwrap_or(0);
            check_table(rows(side), max_bytes)?;
            table = rows_of(graph, keys, motif, recipe, &sides, &table, side);
            row_side = Some(side + 1);
        }
        number(&mut table)?;
        Ok(Units { table, row_side, sides, sums: Vec::new() })
    }
}

/// The rows of every centre of `centres` with each edge in its window of side `side`.
fn rows_of(
    graph: &TemporalGraph,
    keys: &Keys<'_>,
    motif: &Motif,
    recipe: &Recipe,
    sides: &[SideEdges<'_>],
    centres: &[Unit],
    side: usize,
) -> Vec<Unit> {
    let j = side + 1;
    let other = (sides.len() == 2).then_some(2 - side);
    let placed = recipe.placed[j];
    let embedding = Embedding::new(recipe, &[0, j], Some(motif));
    let pairs = &graph.pairs;
    let row = |centre: u32, near: u32, entry: usize| -> Option<Unit> {
        let ends = graph.edges[centre as usize];
        let [edge, outer] = sides[side].entries[entry];
        let far = ends[SOURCE + DESTINATION - placed.at];
        if outer == far {
            return None;
        }
        let ([a, b], [c, d]) = (both_ways(pairs, centre), both_ways(pairs, edge));
        let free = |from: u32, to: u32, slot: usize| match embedding.uses(slot) {
            true => pairs.range(pairs.find(from, to)),
            false => 0..0,
        };
        let slots = [a, b, c, d, free(outer, far, 4), free(far, outer, 5)];
        let found = embedding.embed(keys, &slots, keys.of(centre), keys.of(edge))?;
        let mut window = [0, 1];
        if let Some(other) = other {
            let at = ends[recipe.placed[other].at];
            window = sides[other - 1].window_near(keys, at, embedding.window(keys, &found, other), near);
        }
        let [start, len] = window;
        (len > 0).then_some([len, 0, centre, edge, start, len, 0, 1, start, start + len])
    };
    let of_centre = |centre: usize| {
        let unit = centres[centre];
        let [start, len] = [0, 1].map(|i| unit[unit::WINDOWS + 2 * side + i]);
        let window = if first_path(&unit) > 0 { start..start + len } else { 0..0 };
        // The window of the other side is a part of the centre's.
        let near = unit[unit::WINDOWS + 2 * (1 - side)];
        window.filter_map(move |entry| row(centre as u32, near, entry as usize))
    };
    let mut table: Vec<Unit> = (0..centres.len()).into_par_iter().flat_map_iter(of_centre).collect();
    table.shrink_to_fit();
    table
}

/// The first path of a unit, or how many it has before the units are numbered.
pub(in crate::motifs) fn first_path(unit: &Unit) -> u64 {
    u64::from(unit[unit::FIRST]) | u64::from(unit[unit::FIRST + 1]) << 32
}

pub(in crate::motifs) fn set_first(unit: &mut Unit, path: u64) {
    (unit[unit::FIRST], unit[unit::FIRST + 1]) = (path as u32, (path >> 32) as u32);
}

/// Replaces the numbers of paths by the numbers of the first paths, and adds the unit at the end.
pub(in crate::motifs) fn number(table: &mut Vec<Unit>) -> Result<()> {
    table.push(Unit::default());
    // Sums of blocks, then within each from what is before it.
    let block = table.len().div_ceil(8 * rayon::current_num_threads()).max(1);
    let sum = |units: &[Unit]| units.iter().try_fold(0u64, |sum, unit| sum.checked_add(first_path(unit)));
    let sums: Option<Vec<u64>> = table.par_chunks(block).map(sum).collect();
    let mut before = 0u64;
    let mut starts = Vec::new();
    for sum in sums.ok_or_else(too_many)? {
        starts.push(before);
        before = before.checked_add(sum).ok_or_else(too_many)?;
    }
    table.par_chunks_mut(block).zip(starts).for_each(|(units, mut first)| {
        for unit in units {
            let paths = first_path(unit);
            set_first(unit, first);
            first += paths;
        }
    });
    Ok(())
}

/// The error for path numbers past 64 bits.
pub(in crate::motifs) fn too_many() -> Error {
    Error::limit("the anchor has more than 2^64 - 1 paths within delta; take a smaller delta, another anchor, pruning or --exact")
}

/// Refuses a table of units past `max_bytes`.
pub(in crate::motifs) fn check_table(units: u64, max_bytes: u64) -> Result<()> {
    let bytes = (units + 1).saturating_mul(size_of::<Unit>() as u64);
    if bytes <= max_bytes {
        return Ok(());
    }
    Err(Error::new(
        crate::ErrorKind::OutOfMemory,
        format!(
            "the table of {units} units takes {bytes} bytes, {max_bytes} may be used; raise the memory limit to that or count with --exact"
        ),
    ))
}
