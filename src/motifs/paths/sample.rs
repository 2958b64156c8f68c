//! Placements of an anchor: decoded from path numbers, checked, and the chains around them counted.

use std::ops::Range;

use kernels_gen::threefry::Key;
use rayon::prelude::*;

use crate::error::Result;
use crate::motifs::paths::recipe::Role;
use crate::motifs::paths::units::{DEAD, Prune, Units, first_path, unit};
use crate::motifs::paths::{Draws, Keys, Numbered, Recipe};
use crate::motifs::{Anchor, MAX_ANCHOR_EDGES, Motif, TemporalGraph};
use crate::progress::Part;

/// Placed edges by their place in the recipe.
pub(in crate::motifs) type Placement = [u32; MAX_ANCHOR_EDGES];

/// The numbered paths of an anchor in a graph.
pub(in crate::motifs) struct Paths<'g> {
    pub graph: &'g TemporalGraph,
    pub keys: &'g Keys<'g>,
    pub recipe: Recipe,
    pub units: Units<'g>,
}

/// Sums over samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::motifs) struct Tally {
    /// Sum of the counts, at most 2^64 - 1.
    pub sum: u64,
    /// Sum of their squares, at most 2^128 - 1.
    pub squares: u128,
    /// Placements that pass the check.
    pub valid: u64,
    /// Placements with a match.
    pub nonzero: u64,
    /// Whether the sum, and so perhaps a count, is beyond its range.
    pub saturated: bool,
}

/// Words of a tally in `tally.wgsl`.
pub(in crate::motifs) const TALLY_WORDS: usize = 10;

impl Tally {
    /// The tally of the words of `tally.wgsl`: sum (2), squares (4), valid (2), nonzero (2), each from its low word on.
    pub fn of_words(words: &[u32; TALLY_WORDS]) -> Self {
        let wide = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
        let sum = wide(0);
        let squares = u128::from(wide(2)) | u128::from(wide(4)) << 64;
        Tally { sum, squares, valid: wide(6), nonzero: wide(8), saturated: sum == u64::MAX }
    }

    /// The words of the tally.
    pub fn words(&self) -> [u32; TALLY_WORDS] {
        let numbers = [self.sum, self.squares as u64, (self.squares >> 64) as u64, self.valid, self.nonzero];
        std::array::from_fn(|w| (numbers[w / 2] >> (32 * (w % 2))) as u32)
    }

    /// Adds a valid placement with that count; one that is saturated is the largest there is.
    pub fn add(&mut self, count: u64) {
        self.nonzero += u64::from(count > 0);
        self.squares = self.squares.saturating_add(u128::from(count) * u128::from(count));
        self.sum = self.sum.saturating_add(count);
        self.saturated |= self.sum == u64::MAX;
    }

    /// The sums over both.
    #[must_use]
    pub fn merged(self, other: Tally) -> Tally {
        let sum = self.sum.saturating_add(other.sum);
        Tally {
            sum,
            squares: self.squares.saturating_add(other.squares),
            valid: self.valid + other.valid,
            nonzero: self.nonzero + other.nonzero,
            saturated: sum == u64::MAX,
        }
    }
}

/// Path numbers in strata of `width`, one drawn from each: number `i` is `i * width` and a draw below `width`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::motifs) struct Strata {
    pub width: u64,
    pub key: Key,
}

impl Strata {
    /// The path number drawn from stratum `i`; it may be past the last path, and past 64 bits.
    #[inline]
    pub fn draw(&self, i: u64) -> Option<u64> {
        let offset = if self.width == 1 { 0 } else { self.key.below(i, self.width) };
        i.checked_mul(self.width)?.checked_add(offset)
    }
}

impl<'g> Paths<'g> {
    /// Numbers the paths of `anchor`.
    ///
    /// # Errors
    ///
    /// As [`Units::new`].
    pub fn new(graph: &'g TemporalGraph, keys: &'g Keys<'g>, motif: &Motif, anchor: &Anchor, prune: Prune, max_bytes: u64) -> Result<Self> {
        let recipe = Recipe::new(motif, anchor);
        let units = Units::new(graph, keys, motif, &recipe, prune, max_bytes)?;
        Ok(Paths { graph, keys, recipe, units })
    }

    /// Placement of path `local` of a unit, and whether a match may hold it.
    #[inline]
    pub fn place(&self, unit: usize, local: u64) -> (Placement, bool) {
        if self.recipe.is_tree {
            return (self.units.place_tree(self.graph, self.keys, &self.recipe, unit as u32, local), true);
        }
        let record = &self.units.table[unit];
        let mut placement = Placement::default();
        let mut live = true;
        let mut set = |j: usize, digit: u64| {
            let [start, from, to] = [unit::WINDOWS + 2 * j - 2, unit::LIVE + 2 * j - 2, unit::LIVE + 2 * j - 1].map(|at| record[at]);
            let entry = start + digit as u32;
            let edge = self.units.sides[j - 1].entries[entry as usize][0];
            live &= (from..to).contains(&entry) && edge & DEAD == 0;
            edge & !DEAD
        };
        match self.units.row_side {
            Some(row) => {
                placement[0] = record[unit::ROW];
                placement[row] = record[unit::ROW + 1];
                if self.recipe.placed.len() == 3 {
                    let entry = u64::from(record[unit::WINDOWS + 2]) + local;
                    placement[3 - row] = self.units.sides[2 - row].entries[entry as usize][0];
                }
            }
            None => {
                placement[0] = unit as u32;
                let length = u64::from(record[unit::WINDOWS + 3]);
                if self.recipe.placed.len() > 1 {
                    placement[1] = set(1, local / length);
                }
                if self.recipe.placed.len() > 2 {
                    placement[2] = set(2, local % length);
                }
                live &= record[unit::LIVE + 1] > 0;
            }
        }
        (placement, live)
    }

    fn vertex(&self, placement: &Placement, (j, end): Role) -> u32 {
        self.graph.edges[placement[j] as usize][end]
    }

    /// Whether a placement keeps order, span and distinct vertices.
    #[inline]
    pub fn is_valid(&self, placement: &Placement) -> bool {
        let recipe = &self.recipe;
        let key = |j: usize| self.keys.of(placement[j]);
        let increasing = recipe.order.windows(2).all(|w| key(w[0]) < key(w[1]));
        let within = key(recipe.last()) <= self.keys.last[key(recipe.first()) as usize];
        let distinct = || {
            let roles = &recipe.roles;
            (1..roles.len()).all(|i| (0..i).all(|j| self.vertex(placement, roles[i]) != self.vertex(placement, roles[j])))
        };
        increasing && within && distinct()
    }

    /// The keys that the lists of a gap are confined to: at least the first, below the second.
    fn gap(&self, placement: &Placement, list: usize) -> Range<u32> {
        let (keys, list) = (self.keys, self.recipe.lists[list]);
        let key = |j: usize| keys.of(placement[j]);
        let low = list.after.map_or_else(|| keys.first[key(self.recipe.last()) as usize], |j| key(j) + 1);
        let high = list.before.map_or_else(|| keys.last[key(self.recipe.first()) as usize] + 1, key);
        low..high
    }

    /// Number of ways to place the motif's other edges around a valid placement, at most 2^64 - 1.
    pub fn count(&self, placement: &Placement) -> u64 {
        let pairs = &self.graph.pairs;
        let list_of_keys: &[u32] = &self.keys.list;
        let mut starts = [0u32; crate::motifs::MAX_EDGES];
        for &i in &self.recipe.lookup {
            let list = self.recipe.lists[i];
            let pair = match list.on {
                Some((j, opposite)) => pairs.of_edge[placement[j] as usize][usize::from(opposite)],
                None => pairs.find(self.vertex(placement, list.ends[0]), self.vertex(placement, list.ends[1])),
            };
            let (range, gap) = (pairs.range(pair), self.gap(placement, i));
            let start = range.start + list_of_keys[range.clone()].partition_point(|&key| key < gap.start);
            if start == range.end || list_of_keys[start] >= gap.end {
                return 0;
            }
            starts[i] = start as u32;
        }
        let mut product = 1u64;
        for lists in self.recipe.gaps() {
            let high = self.gap(placement, lists.start).end;
            product = product.saturating_mul(chains(list_of_keys, &mut starts[lists], high));
        }
        product
    }

    /// Draws from strata `range` and sums what is counted.
    pub fn tally(&self, strata: &Strata, range: Range<u64>) -> Tally {
        let mut tally = Tally::default();
        let (total, mut unit) = (self.total(), None);
        for i in range {
            let Some(id) = strata.draw(i).filter(|&id| id < total) else { break };
            let mut at = unit.unwrap_or_else(|| self.units.find(id));
            // Numbers grow with the stratum, so the unit is at most a few further.
            while first_path(&self.units.table[at + 1]) <= id {
                at += 1;
            }
            unit = Some(at);
            let (placement, live) = self.place(at, id - first_path(&self.units.table[at]));
            if self.is_valid(&placement) {
                tally.valid += 1;
                if live {
                    tally.add(self.count(&placement));
                }
            }
        }
        tally
    }
}

impl Numbered for Paths<'_> {
    fn total(&self) -> u64 {
        self.units.total()
    }

    fn tallies(&self, draws: &[Draws], part: &Part<'_>) -> Result<Vec<Tally>> {
        let longest = draws.iter().map(|d| d.range.end - d.range.start).max().unwrap_or(0);
        let chunk = (longest >> 16).clamp(1 << 10, 1 << 14);
        // Replicates take turns chunk by chunk, so that what one has brought into the caches serves the others too.
        let chunks: Vec<(usize, Range<u64>)> = (0..longest.div_ceil(chunk))
            .flat_map(|turn| draws.iter().enumerate().map(move |(n, d)| (n, d.range.start.saturating_add(turn * chunk), d.range.end)))
            .filter(|(_, at, end)| at < end)
            .map(|(n, at, end)| (n, at..end.min(at.saturating_add(chunk))))
            .collect();
        let sums: Vec<(usize, Tally)> = chunks
            .into_par_iter()
            .map(|(n, range)| {
                part.advance(range.end - range.start)?;
                Ok((n, self.tally(&draws[n].strata, range)))
            })
            .collect::<Result<_>>()?;
        let mut tallies = vec![Tally::default(); draws.len()];
        for (n, tally) in sums {
            tallies[n] = tallies[n].merged(tally);
        }
        Ok(tallies)
    }
}

/// Number, at most 2^64 - 1, of strictly increasing chains that take one key below `high` from each list in turn. `heads` are where the lists begin in `keys`;
/// they are moved. Each list ends with a sentinel no key is above.
///
/// The lists are merged by increasing key; of equal keys the one of the later list comes first, so that no chain takes the same key twice.
fn chains(keys: &[u32], heads: &mut [u32], high: u32) -> u64 {
    let mut ways = [0u64; crate::motifs::MAX_EDGES];
    loop {
        let (mut least, mut which) = (u32::MAX, 0);
        for (j, &head) in heads.iter().enumerate() {
            let key = keys[head as usize];
            if key <= least {
                (least, which) = (key, j);
            }
        }
        if least >= high {
            return ways[heads.len() - 1];
        }
        let before = if which == 0 { 1 } else { ways[which - 1] };
        ways[which] = ways[which].saturating_add(before);
        heads[which] += 1;
    }
}
