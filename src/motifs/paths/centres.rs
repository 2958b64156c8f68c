//! Centres with the windows of their sides. What is searched for lies near what was searched for before: edges are taken pair by pair and
//! vertex by vertex, so that large graphs cost an edge about what small ones do.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use crate::motifs::graph::Adjacency;
use crate::motifs::paths::Keys;
use crate::motifs::paths::embed::{Embedded, Embedding, Phase};
use crate::motifs::paths::recipe::{Recipe, SOURCE};
use crate::motifs::paths::units::{DEAD, Prune, SideEdges, Unit, first_path, set_first, unit};
use crate::motifs::{Motif, TemporalGraph};

/// Pairs of vertices whose edges are looked at together.
const PAIRS: usize = 64;

/// A half-open range of keys in one word.
fn packed(range: Range<u32>) -> u64 {
    u64::from(range.start) << 32 | u64::from(range.end)
}

/// In place of a range where there is none.
const NO_RANGE: u64 = u64::MAX;

fn unpacked(range: u64) -> Option<Range<u32>> {
    (range != NO_RANGE).then_some((range >> 32) as u32..range as u32)
}

/// A unit for each edge, with the number of its paths in place of that of the first.
pub(super) fn centres(
    graph: &TemporalGraph,
    keys: &Keys<'_>,
    motif: &Motif,
    recipe: &Recipe,
    sides: &[SideEdges<'_>],
    prune: Prune,
) -> Vec<Unit> {
    let around = Embedding::new(recipe, &[0], Some(motif));
    let is_live = each_edge(graph, || AtomicBool::new(false));
    // The part of each window that may hold a match.
    let live_ranges: Vec<Vec<AtomicU64>> = sides.iter().map(|_| each_edge(graph, || AtomicU64::new(NO_RANGE))).collect();
    for_each_part(graph, keys, &around, |edge, part| {
        is_live[edge].store(true, Relaxed);
        for (i, ranges) in live_ranges.iter().enumerate() {
            ranges[edge].store(packed(around.window(keys, part, i + 1)), Relaxed);
        }
    });
    let without_sides = |(&[a, b], live): (&[u32; 2], &AtomicBool)| match (a != b, prune, live.load(Relaxed)) {
        (true, Prune::Off, live) | (true, _, live @ true) => [1, 0, 0, 1, 0, 1, 0, u32::from(live), 0, u32::from(live)],
        _ => Unit::default(),
    };
    // With room for the unit at the end.
    let mut table: Vec<Unit> = Vec::with_capacity(graph.num_edges() + 1);
    graph.edges.par_iter().zip(&is_live).map(without_sides).collect_into_vec(&mut table);
    let no_part = Embedding::new(recipe, &[0], None);
    for (i, (side, live_ranges)) in sides.iter().zip(&live_ranges).enumerate() {
        let ranges = |edge: u32| -> [Option<Range<u32>>; 2] {
            let live = unpacked(live_ranges[edge as usize].load(Relaxed));
            let all = || Some(no_part.window(keys, &Embedded::alone(keys.of(edge)), i + 1));
            [if prune == Prune::Off { all() } else { live.clone() }, live]
        };
        let placed = recipe.placed[i + 1];
        let adjacency = if placed.at == SOURCE { &graph.outgoing } else { &graph.incoming };
        let at = |vertex| windows_at(adjacency, side, keys, vertex, &ranges);
        let found: Vec<_> = (0..graph.num_vertices).into_par_iter().flat_map_iter(at).collect();
        let places = places(graph, adjacency, placed.at);
        table.par_iter_mut().zip(&places).filter(|(unit, _)| first_path(unit) > 0).for_each(|(unit, &place)| {
            let [[start, len], [live_start, live_len]] = found[place as usize];
            unit[unit::WINDOWS + 2 * i..][..2].copy_from_slice(&[start, len]);
            unit[unit::LIVE + 2 * i..][..2].copy_from_slice(&[live_start, live_start + live_len]);
        });
    }
    table.par_iter_mut().filter(|unit| first_path(unit) > 0).for_each(|unit| {
        let paths = u64::from(unit[unit::WINDOWS + 1]) * u64::from(unit[unit::WINDOWS + 3]);
        set_first(unit, paths);
    });
    table
}

fn each_edge<T>(graph: &TemporalGraph, value: impl Fn() -> T) -> Vec<T> {
    (0..graph.num_edges()).map(|_| value()).collect()
}

/// The windows in `side` of the `ranges` of each edge that a vertex lists.
fn windows_at(
    adjacency: &Adjacency,
    side: &SideEdges<'_>,
    keys: &Keys<'_>,
    vertex: u32,
    ranges: impl Fn(u32) -> [Option<Range<u32>>; 2],
) -> impl Iterator<Item = [[u32; 2]; 2]> {
    let edges = &adjacency.entries[adjacency.range(vertex)];
    // All of them before the first search: loads from all over the graph that do not wait for each other.
    let ranges: Vec<_> = edges.iter().map(|&[edge, _]| ranges(edge)).collect();
    let (mut near, end) = (side.offsets[vertex as usize], side.offsets[vertex as usize + 1]);
    edges.iter().zip(ranges).map(move |(&[edge, _], ranges)| {
        while near < end && side.entries[near as usize][0] & !DEAD < edge {
            near += 1;
        }
        ranges.map(|range| range.map_or([0; 2], |range| side.window_near(keys, vertex, range, near)))
    })
}

/// Of each edge, its place among the entries of an adjacency, which lists it by its end `at`; that of a loop means nothing.
fn places(graph: &TemporalGraph, adjacency: &Adjacency, at: usize) -> Vec<u32> {
    let mut next = adjacency.offsets.clone();
    let place = |&ends: &[u32; 2]| {
        let next = &mut next[ends[at] as usize];
        let place = *next;
        *next += u32::from(ends[0] != ends[1]);
        place
    };
    graph.edges.iter().map(place).collect()
}

/// Of each edge: whether the embedding is found around it.
pub(super) fn embeds(graph: &TemporalGraph, keys: &Keys<'_>, embedding: &Embedding) -> Vec<bool> {
    let found = each_edge(graph, || AtomicBool::new(false));
    for_each_part(graph, keys, embedding, |edge, _| found[edge].store(true, Relaxed));
    found.into_iter().map(AtomicBool::into_inner).collect()
}

/// Tells what the embedding finds around edges, of those where it is found.
fn for_each_part(graph: &TemporalGraph, keys: &Keys<'_>, embedding: &Embedding, found: impl Fn(usize, &Embedded) + Sync) {
    let pairs = &graph.pairs;
    // Edges of the pair that an embedding has, the fixed one included.
    let needed = 1 + embedding.steps.iter().filter(|step| step.slot == 0 && step.phase != Phase::Backward).count();
    // Each step for all pairs before the next: loads from all over the graph then do not wait for each other.
    let of_pairs = |first: usize| {
        let own = (first..pairs.len().min(first + PAIRS)).map(|pair| pairs.range(pair as u32)).filter(|own| own.len() >= needed);
        let own: Vec<_> = own.collect();
        let opposite: Vec<_> = own.iter().map(|own| pairs.of_edge[pairs.list[own.start] as usize][1]).collect();
        let opposite: Vec<_> = opposite.into_iter().map(|pair| pairs.range(pair)).collect();
        let mut parts = Vec::new();
        for (own, opposite) in own.into_iter().zip(opposite) {
            let slots = [own.clone(), opposite, 0..0, 0..0, 0..0, 0..0];
            let part = |(&edge, &key)| Some((edge, embedding.nearest(&keys.list, &slots, key, key)?));
            parts.extend(pairs.list[own.clone()].iter().zip(&keys.list[own]).filter_map(part));
        }
        for (edge, part) in parts.iter().filter(|(_, part)| part.is_within(keys)) {
            found(*edge as usize, part);
        }
    };
    (0..pairs.len()).into_par_iter().step_by(PAIRS).for_each(of_pairs);
}

/// The number of leading elements that are `below`, searched for from place `near` on in steps that double.
pub(super) fn partition_near<T>(list: &[T], near: usize, below: impl Fn(&T) -> bool) -> usize {
    let near = near.min(list.len());
    let (mut low, mut high, mut step) = (near, near, 1);
    if list.get(near).is_some_and(&below) {
        // Everything before `low` is below.
        while high < list.len() && below(&list[high]) {
            low = high + 1;
            high = low.saturating_add(step);
            step *= 2;
        }
        high = high.min(list.len());
    } else {
        // Nothing from `high` on is below.
        while low > 0 && !below(&list[low - 1]) {
            high = low - 1;
            low = high.saturating_sub(step);
            step *= 2;
        }
    }
    low + list[low..high].partition_point(below)
}

#[cfg(test)]
mod tests {
    use super::partition_near;

    #[test]
    fn a_search_from_anywhere_finds_the_same() {
        for len in 0..40 {
            let list: Vec<usize> = (0..len).collect();
            for wanted in 0..=len {
                for near in 0..=len + 2 {
                    assert_eq!(partition_near(&list, near, |&x| x < wanted), wanted, "{len} {near}");
                }
            }
        }
    }
}
