//! Embeddings of the part of a motif that lies on few vertices around edges that are fixed: what makes pruning exact.
//!
//! With one edge fixed the part is what the motif has on that edge's two vertices; with two that share a vertex, on their three vertices.
//! Going outwards from the fixed edges every step takes the nearest edge that continues the part, so the span is the smallest there is:
//! where it is beyond delta, or an edge is missing, no match holds the fixed edges. The edges met on the way also bound where the other
//! placed edges can be.

use std::ops::Range;

use crate::motifs::Motif;
use crate::motifs::graph::Pairs;
use crate::motifs::paths::Keys;
use crate::motifs::paths::recipe::{DESTINATION, Recipe, SOURCE};

/// In which direction a step goes, and from where the first of its phase starts. `A` is the earlier fixed edge, `B` the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::motifs) enum Phase {
    /// From A to earlier edges.
    Before = 0,
    /// From A to later edges, all before B.
    Forward = 1,
    /// From B to earlier edges, all after A.
    Backward = 2,
    /// From B to later edges.
    After = 3,
}

/// Lists a step may take its edge from: both directions of the first fixed edge's pair, of the second's, and of the two vertices they do not
/// share (from the second's to the first's, and back).
pub(in crate::motifs) const NUM_SLOTS: usize = 6;

/// One edge of the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::motifs) struct Step {
    pub phase: Phase,
    /// Which list.
    pub slot: usize,
    /// The placed edges (bits) whose windows end at this edge, unless a later step of the phase ends them.
    pub bounds: u32,
}

/// Where the window of a placed edge lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::motifs) enum Gap {
    BeforeA = 0,
    Between = 1,
    AfterB = 2,
}

/// How to embed a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::motifs) struct Embedding {
    /// Steps, phase by phase.
    pub steps: Vec<Step>,
    /// Whether the first fixed edge is the later of the two.
    pub swapped: bool,
    /// Where each placed edge lies that is not fixed; what it says of the fixed ones means nothing.
    pub gaps: Vec<Gap>,
}

/// What an embedding found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::motifs) struct Embedded {
    /// Key of the part's first edge.
    pub start: u32,
    /// Key of its last edge.
    pub end: u32,
    /// Keys that enclose each placed edge in its gap; both ends are excluded. The outer end of an outer gap is not among them.
    pub inner: [[u32; 2]; 3],
}

impl Embedded {
    /// One fixed edge without a part.
    pub fn alone(key: u32) -> Self {
        Embedded { start: key, end: key, inner: [[key; 2]; 3] }
    }

    /// Whether the part spans at most delta.
    #[inline]
    pub fn is_within(&self, keys: &Keys<'_>) -> bool {
        self.start == self.end || self.end <= keys.last[self.start as usize]
    }
}

impl Embedding {
    /// The embedding with those placed edges fixed: one, or two that share a vertex of which the second is a child of the first. Without
    /// `motif` no other edge is asked for.
    pub fn new(recipe: &Recipe, fixed: &[usize], motif: Option<&Motif>) -> Self {
        let placed = |j: usize| recipe.placed[j];
        let positions: Vec<usize> = fixed.iter().map(|&j| placed(j).position).collect();
        let (a, b) = (positions.iter().copied().min().unwrap_or(0), positions.iter().copied().max().unwrap_or(0));
        let gap_of = |position: usize| match position {
            p if p < a => Gap::BeforeA,
            p if p > b => Gap::AfterB,
            _ => Gap::Between,
        };
        let gaps: Vec<Gap> = recipe.placed.iter().map(|p| gap_of(p.position)).collect();
        let mut steps = Vec::new();
        if let Some(motif) = motif {
            let edges = motif.edges();
            let first = edges[positions[0]];
            // The pairs of the slots, as motif vertices.
            let mut pairs = vec![first, [first[1], first[0]]];
            if let [_, second] = *fixed {
                let edge = edges[placed(second).position];
                let outer = edge[SOURCE + DESTINATION - placed(second).own_end];
                let far = first[SOURCE + DESTINATION - placed(second).at];
                pairs.extend([edge, [edge[1], edge[0]], [outer, far], [far, outer]]);
            }
            let mut add = |phase: Phase, position: usize| {
                let Some(slot) = pairs.iter().position(|&pair| pair == edges[position]) else { return };
                let bounds = |(j, p): (usize, &crate::motifs::paths::recipe::Placed)| {
                    let free = !fixed.contains(&j);
                    let inside = match phase {
                        Phase::Before => p.position < position,
                        Phase::Forward => p.position > position && gaps[j] == Gap::Between,
                        Phase::Backward => p.position < position && gaps[j] == Gap::Between,
                        Phase::After => p.position > position,
                    };
                    if free && inside { 1 << j } else { 0 }
                };
                let bounds = recipe.placed.iter().enumerate().map(bounds).sum();
                steps.push(Step { phase, slot, bounds });
            };
            let between = |p: &usize| *p > a && *p < b;
            (0..a).rev().for_each(|p| add(Phase::Before, p));
            (0..edges.len()).filter(between).for_each(|p| add(Phase::Forward, p));
            // Without a placed edge between them the way back finds nothing that the way there did not.
            if gaps.iter().enumerate().any(|(j, &gap)| gap == Gap::Between && !fixed.contains(&j)) {
                (0..edges.len()).rev().filter(between).for_each(|p| add(Phase::Backward, p));
            }
            (b + 1..edges.len()).for_each(|p| add(Phase::After, p));
        }
        Embedding { steps, swapped: positions[0] > a, gaps }
    }

    /// Embeds the part around fixed edges of the keys `first` and `second` (twice the same for one edge), with the lists of the slots as
    /// ranges of `keys.list`. `None`: no match holds them.
    pub fn embed(&self, keys: &Keys<'_>, slots: &[Range<usize>; NUM_SLOTS], first: u32, second: u32) -> Option<Embedded> {
        self.nearest(&keys.list, slots, first, second).filter(|found| found.is_within(keys))
    }

    /// The same without a look at the span.
    #[inline]
    pub fn nearest(&self, list_of_keys: &[u32], slots: &[Range<usize>; NUM_SLOTS], first: u32, second: u32) -> Option<Embedded> {
        let (a, b) = if self.swapped { (second, first) } else { (first, second) };
        let mut inner = [[a, b]; 3];
        for (inner, gap) in inner.iter_mut().zip(&self.gaps) {
            *inner = match gap {
                Gap::BeforeA => [a, a],
                Gap::Between => [a, b],
                Gap::AfterB => [b, b],
            };
        }
        let (mut start, mut end) = (a, b);
        let mut phase = Phase::Before;
        let mut key = a;
        for step in &self.steps {
            if step.phase != phase {
                phase = step.phase;
                key = if phase <= Phase::Forward { a } else { b };
            }
            let range = slots[step.slot].clone();
            let list = &list_of_keys[range];
            let up = matches!(phase, Phase::Forward | Phase::After);
            key = match up {
                true => *list.get(list.partition_point(|&k| k <= key))?,
                false => *list.get(list.partition_point(|&k| k < key).checked_sub(1)?)?,
            };
            match phase {
                Phase::Before => start = key,
                Phase::Forward if key >= b => return None,
                Phase::After => end = key,
                _ => {}
            }
            for (j, inner) in inner.iter_mut().enumerate().filter(|(j, _)| step.bounds >> j & 1 == 1) {
                debug_assert!(j < self.gaps.len());
                inner[usize::from(!up)] = key;
            }
        }
        Some(Embedded { start, end, inner })
    }

    /// The window of a placed edge, as a half-open range of keys.
    pub fn window(&self, keys: &Keys<'_>, found: &Embedded, j: usize) -> Range<u32> {
        let [low, high] = found.inner[j];
        match self.gaps[j] {
            Gap::BeforeA => keys.first[found.end as usize]..high,
            Gap::Between => low + 1..high,
            Gap::AfterB => low + 1..keys.last[found.start as usize] + 1,
        }
    }
}

/// Words of an embedding in the parameters of kernels.
pub(in crate::motifs) const EMBEDDING_WORDS: usize = 16;

impl Embedding {
    /// The embedding as `embed.wgsl` takes it. Word 0, from the low end: 6 bits the number of steps; 1 whether it is swapped; 2 for each of
    /// three placed edges, its gap; 6 whether each slot is used. Then four steps a word, in bytes: 2 bits the phase, 3 the slot, 3 the
    /// bounds. At most 60 steps: a motif has 32 edges, and those between two fixed ones are met twice.
    pub fn words(&self) -> [u32; EMBEDDING_WORDS] {
        let mut words = [0; EMBEDDING_WORDS];
        words[0] = self.steps.len() as u32 | u32::from(self.swapped) << 6;
        for (j, &gap) in self.gaps.iter().enumerate() {
            words[0] |= (gap as u32) << (7 + 2 * j);
        }
        for (at, step) in (4..).zip(&self.steps) {
            words[0] |= 1 << (13 + step.slot);
            words[at / 4] |= (step.phase as u32 | (step.slot as u32) << 2 | step.bounds << 5) << (8 * (at % 4));
        }
        words
    }

    /// The embedding of [`Embedding::words`], with three gaps.
    pub fn of_words(words: &[u32]) -> Self {
        let field = |at: usize, bits: u32| words[0] >> at & ((1 << bits) - 1);
        let gap = |j: usize| match field(7 + 2 * j, 2) {
            0 => Gap::BeforeA,
            1 => Gap::Between,
            _ => Gap::AfterB,
        };
        let step = |at: usize| {
            let byte = words[at / 4] >> (8 * (at % 4)) & 255;
            let phase = [Phase::Before, Phase::Forward, Phase::Backward, Phase::After][byte as usize & 3];
            Step { phase, slot: (byte >> 2 & 7) as usize, bounds: byte >> 5 }
        };
        let num_steps = field(0, 6) as usize;
        Embedding { steps: (4..4 + num_steps).map(step).collect(), swapped: field(6, 1) == 1, gaps: (0..3).map(gap).collect() }
    }

    /// Whether a step takes its edge from that slot.
    pub fn uses(&self, slot: usize) -> bool {
        self.steps.iter().any(|step| step.slot == slot)
    }
}

/// Lists of a pair and its opposite.
pub(in crate::motifs) fn both_ways(pairs: &Pairs, edge: u32) -> [Range<usize>; 2] {
    pairs.of_edge[edge as usize].map(|pair| pairs.range(pair))
}
