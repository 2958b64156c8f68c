//! The search behind backtracking: from one first edge, all matches that begin with it.

use super::plan::{Candidates, Cursor, Plan, SlotPair};
use super::{Windows, gallop};
use crate::error::Result;
use crate::motifs::graph::{Adjacency, NO_PAIR, TemporalGraph};
use crate::motifs::motif::MAX_EDGES;
use crate::motifs::{Motif, Ties};
use crate::progress::Cancel;

/// Takes matches as they are found.
pub(in crate::motifs) trait Sink {
    /// Whether `index` of [`Sink::add`] matters; where it does not, matches are counted in groups of any last edge.
    const BY_LAST: bool;
    /// `count` matches (`u64::MAX`: that many or more) whose last edge has the time of edge `index`.
    fn add(&mut self, index: u32, count: u64);
}

/// Counts matches; stays at `u64::MAX` once there.
impl Sink for u64 {
    const BY_LAST: bool = false;
    fn add(&mut self, _: u32, count: u64) {
        *self = self.saturating_add(count);
    }
}

/// The work was asked to stop.
pub(in crate::motifs) struct Stopped;

/// A motif and a graph with what the search reads beside them; made once, shared by all threads.
pub(in crate::motifs) struct Prepared<'a> {
    graph: &'a TemporalGraph,
    plan: Plan,
    pub windows: Windows,
    /// First position of a later edge in the list of edges out of, into an end (see [`Cursor`]) of each edge; empty if not used.
    outgoing: [Vec<u32>; 2],
    incoming: [Vec<u32>; 2],
    /// Indices of loops.
    loops: Vec<u32>,
    first_is_loop: bool,
}

impl<'a> Prepared<'a> {
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a negative delta.
    pub fn new(graph: &'a TemporalGraph, motif: &Motif, delta: i64, ties: Ties) -> Result<Self> {
        let windows = Windows::new(graph, delta, ties)?;
        let plan = Plan::new(motif);
        let cursors = |outgoing: bool, list: &Adjacency| {
            [Cursor::Source, Cursor::Destination].map(|end| match plan.uses(outgoing, end) {
                true => positions(graph, list, outgoing, end),
                false => Vec::new(),
            })
        };
        let (outgoing, incoming) = (cursors(true, &graph.outgoing), cursors(false, &graph.incoming));
        let loops = match plan.levels.iter().any(|level| matches!(level.candidates, Candidates::Edges | Candidates::Loops)) {
            true => (0..graph.num_edges() as u32).filter(|&e| graph.edges[e as usize][0] == graph.edges[e as usize][1]).collect(),
            false => Vec::new(),
        };
        let first_is_loop = motif.edges()[0][0] == motif.edges()[0][1];
        Ok(Prepared { graph, plan, windows, outgoing, incoming, loops, first_is_loop })
    }
}

/// Of each edge, the first position in the list of its `end` that holds a later edge.
fn positions(graph: &TemporalGraph, list: &Adjacency, outgoing: bool, end: Cursor) -> Vec<u32> {
    let mut next = list.offsets.clone();
    let place = |edge: &[u32; 2]| {
        if edge[0] != edge[1] {
            next[edge[usize::from(!outgoing)] as usize] += 1;
        }
        next[edge[usize::from(end == Cursor::Destination)] as usize]
    };
    graph.edges.iter().map(place).collect()
}

/// The state of one thread's search.
pub(in crate::motifs) struct Search<'a, S> {
    of: &'a Prepared<'a>,
    cancel: &'a Cancel,
    /// Where matches go.
    pub sink: S,
    steps: u64,
    /// Edges of a match have smaller indices.
    end: u32,
    /// Edge placed at each level.
    placed: [u32; MAX_EDGES],
    /// Graph vertex of each motif vertex.
    vertices: [u32; 2 * MAX_EDGES],
    /// Of each slot, the first position in the list of its pair after the edge that bound it, and the list's end.
    slots: [[u32; 2]; MAX_EDGES],
}

/// Steps between two looks at the token that cancels.
const STEPS_PER_CHECK: u64 = 1 << 14;
/// Windows shorter than this are read, not counted by searches.
const SHORT: usize = 96;

impl<'a, S: Sink> Search<'a, S> {
    pub fn new(of: &'a Prepared<'a>, cancel: &'a Cancel, sink: S) -> Self {
        Search { of, cancel, sink, steps: 0, end: 0, placed: [0; MAX_EDGES], vertices: [0; 2 * MAX_EDGES], slots: [[0; 2]; MAX_EDGES] }
    }

    /// Finds the matches whose first edge is `first` and whose edges have indices below `end`.
    pub fn from(&mut self, first: u32, end: u32) -> Result<(), Stopped> {
        let [u, v] = self.of.graph.edges[first as usize];
        if (u == v) != self.of.first_is_loop {
            return Ok(());
        }
        self.end = end.min(self.of.windows.last[first as usize] + 1);
        self.vertices[0] = u;
        if u != v {
            self.vertices[1] = v;
        }
        self.place(0, first)
    }

    fn step(&mut self, steps: u64) -> Result<(), Stopped> {
        let before = self.steps / STEPS_PER_CHECK;
        self.steps += steps;
        match self.steps / STEPS_PER_CHECK != before && self.cancel.is_cancelled() {
            true => Err(Stopped),
            false => Ok(()),
        }
    }

    /// Places edge `index` at `level`, its vertices being bound, and goes on.
    fn place(&mut self, level: usize, index: u32) -> Result<(), Stopped> {
        self.step(1)?;
        let of = self.of;
        self.placed[level] = index;
        let pairs = &of.graph.pairs;
        let start = of.windows.after(index);
        for slot in &of.plan.levels[level].slots {
            let pair = match slot.pair {
                SlotPair::Same => pairs.of_edge[index as usize][0],
                SlotPair::Opposite => pairs.of_edge[index as usize][1],
                SlotPair::Find(a, b) => pairs.find(self.vertices[a], self.vertices[b]),
            };
            if pair == NO_PAIR {
                return Ok(());
            }
            // Nothing can follow unless the pair has enough edges in the rest of the window.
            let range = pairs.range(pair);
            let at = gallop(range.start, range.end, |i| pairs.list[i] < start);
            if at + slot.uses > range.end || pairs.list[at + slot.uses - 1] >= self.end {
                return Ok(());
            }
            self.slots[slot.slot] = [at as u32, range.end as u32];
        }
        match level == of.plan.last_binding {
            true => self.tail(index, start),
            false => self.descend(level + 1, start),
        }
    }

    /// Places the edges from `level` on, one of which binds a vertex; the first has an index of `start` or more.
    fn descend(&mut self, level: usize, start: u32) -> Result<(), Stopped> {
        let of = self.of;
        let graph = of.graph;
        let bound = of.plan.levels[level].bound;
        let counted = !S::BY_LAST && level + 1 == of.plan.levels.len();
        match of.plan.levels[level].candidates {
            Candidates::Pair { slot } => {
                let [from, end] = self.slots[slot].map(|at| at as usize);
                let mut at = gallop(from, end, |i| graph.pairs.list[i] < start);
                // The list's sentinel ends the loop.
                while graph.pairs.list[at] < self.end {
                    self.place(level, graph.pairs.list[at])?;
                    at += 1;
                }
            }
            Candidates::Outgoing { vertex, level: at, cursor } => {
                let from = of.outgoing[cursor as usize][self.placed[at] as usize];
                self.neighbours(level, start, self.vertices[vertex], &graph.outgoing, from, counted)?;
            }
            Candidates::Incoming { vertex, level: at, cursor } => {
                let from = of.incoming[cursor as usize][self.placed[at] as usize];
                self.neighbours(level, start, self.vertices[vertex], &graph.incoming, from, counted)?;
            }
            Candidates::Edges if counted && self.end.saturating_sub(start) as usize > SHORT => {
                let count = self.edges_apart(bound, start);
                self.sink.add(start, count);
                self.step(1)?;
            }
            Candidates::Edges => {
                for index in start..self.end {
                    let [u, v] = graph.edges[index as usize];
                    if u == v || self.vertices[..bound].contains(&u) || self.vertices[..bound].contains(&v) {
                        self.step(1)?;
                        continue;
                    }
                    self.vertices[bound] = u;
                    self.vertices[bound + 1] = v;
                    self.place(level, index)?;
                }
            }
            Candidates::Loops => {
                for at in of.loops.partition_point(|&e| e < start)..of.loops.len() {
                    let index = of.loops[at];
                    if index >= self.end {
                        break;
                    }
                    let vertex = graph.edges[index as usize][0];
                    match self.vertices[..bound].contains(&vertex) {
                        true => self.step(1)?,
                        false => {
                            self.vertices[bound] = vertex;
                            self.place(level, index)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Candidates of `level` at the bound `vertex`, in `list` from position `from` on.
    fn neighbours(&mut self, level: usize, start: u32, vertex: u32, list: &Adjacency, from: u32, counted: bool) -> Result<(), Stopped> {
        let end_of_list = list.offsets[vertex as usize + 1] as usize;
        let bound = self.of.plan.levels[level].bound;
        let from = gallop(from as usize, end_of_list, |i| list.entries[i][0] < start);
        if counted {
            self.step(1)?;
            let end = gallop(from, end_of_list, |i| list.entries[i][0] < self.end);
            let window = &list.entries[from..end];
            let mut count = window.len();
            for &other in &self.vertices[..bound] {
                if other == vertex || window.is_empty() {
                    continue;
                }
                count -= match window.len() < SHORT {
                    true => window.iter().filter(|entry| entry[1] == other).count(),
                    false if std::ptr::eq(list, &self.of.graph.outgoing) => self.pair_edges(vertex, other, start),
                    false => self.pair_edges(other, vertex, start),
                };
            }
            if count > 0 {
                self.sink.add(start, count as u64);
            }
            return Ok(());
        }
        for &[index, other] in &list.entries[from..end_of_list] {
            if index >= self.end {
                break;
            }
            match self.vertices[..bound].contains(&other) {
                true => self.step(1)?,
                false => {
                    self.vertices[bound] = other;
                    self.place(level, index)?;
                }
            }
        }
        Ok(())
    }

    /// Number of edges between two vertices in the rest of the window.
    fn pair_edges(&self, source: u32, destination: u32, start: u32) -> usize {
        let pairs = &self.of.graph.pairs;
        let list = pairs.edges(pairs.find(source, destination));
        list.partition_point(|&e| e < self.end) - list.partition_point(|&e| e < start)
    }

    /// Number of edges, loops aside, in the rest of the window neither of whose ends is bound.
    fn edges_apart(&self, bound: usize, start: u32) -> u64 {
        let of = self.of;
        let within = |list: &[u32]| list.partition_point(|&e| e < self.end) - list.partition_point(|&e| e < start);
        let at = |list: &Adjacency, vertex: u32| {
            let entries = &list.entries[list.range(vertex)];
            entries.partition_point(|e| e[0] < self.end) - entries.partition_point(|e| e[0] < start)
        };
        let all = (self.end - start) as usize - within(&of.loops);
        let (mut touching, mut inside) = (0, 0);
        for &u in &self.vertices[..bound] {
            touching += at(&of.graph.outgoing, u) + at(&of.graph.incoming, u);
            inside += self.vertices[..bound].iter().filter(|&&v| v != u).map(|&v| self.pair_edges(u, v, start)).sum::<usize>();
        }
        (all + inside - touching) as u64
    }

    /// Counts the ways to place the edges after the last that binds a vertex: chains of increasing keys, one edge from each list.
    fn tail(&mut self, last: u32, start: u32) -> Result<(), Stopped> {
        let of = self.of;
        let list = &of.graph.pairs.list;
        let tail = &of.plan.tail;
        let num_slots = of.plan.tail_slots.len();
        if tail.is_empty() {
            self.sink.add(last, 1);
            return Ok(());
        }
        // Where the lists begin and end; the sentinel at the end is past every window.
        let mut heads = [0usize; MAX_EDGES];
        let mut ends = [0usize; MAX_EDGES];
        for (place, &slot) in of.plan.tail_slots.iter().enumerate() {
            let [from, end] = self.slots[slot].map(|at| at as usize);
            heads[place] = gallop(from, end, |i| list[i] < start);
            ends[place] = end;
        }
        if let (1, false) = (tail.len(), S::BY_LAST) {
            let count = gallop(heads[0], ends[0], |i| list[i] < self.end) - heads[0];
            if count > 0 {
                self.sink.add(start, count as u64);
            }
            return Ok(());
        }
        // The earliest chain: without it there is none.
        let (mut key, mut at) = (start, heads);
        for &place in tail {
            at[place] = gallop(at[place], ends[place], |i| list[i] < key);
            let index = list[at[place]];
            if index >= self.end {
                return Ok(());
            }
            key = of.windows.after(index);
        }
        // Lists are merged by key; `chains[j]` is the number of chains of the first j edges.
        let mut chains = [0u64; MAX_EDGES + 1];
        chains[0] = 1;
        let last_place = tail[tail.len() - 1];
        let mut total = 0u64;
        while list[heads[last_place]] < self.end {
            let (mut first, mut index) = (0, list[heads[0]]);
            for (place, &head) in heads.iter().enumerate().take(num_slots).skip(1) {
                if list[head] < index {
                    (first, index) = (place, list[head]);
                }
            }
            // The last edges first, so that an edge does not follow itself.
            let mut added = 0;
            if of.windows.is_strict() {
                // All edges of one key, of whatever list, follow what was before that key.
                let next = of.windows.after(index);
                let mut sizes = [0u64; MAX_EDGES];
                for (size, head) in sizes.iter_mut().zip(&mut heads).take(num_slots) {
                    let from = *head;
                    while list[*head] < next {
                        *head += 1;
                    }
                    *size = (*head - from) as u64;
                }
                self.step(sizes.iter().sum())?;
                for (j, &place) in tail.iter().enumerate().rev() {
                    let more = chains[j].saturating_mul(sizes[place]);
                    chains[j + 1] = chains[j + 1].saturating_add(more);
                    added = if j + 1 == tail.len() { more } else { added };
                }
            } else {
                heads[first] += 1;
                self.step(1)?;
                for &j in &of.plan.tail_edges[first] {
                    chains[j + 1] = chains[j + 1].saturating_add(chains[j]);
                    added = if j + 1 == tail.len() { chains[j] } else { added };
                }
            }
            if S::BY_LAST && added > 0 {
                self.sink.add(index, added);
            }
            total = total.saturating_add(added);
        }
        if !S::BY_LAST && total > 0 {
            self.sink.add(start, total);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels_gen::threefry::Key;

    /// Takes each match by itself.
    #[derive(Default)]
    struct ByLast(u64);

    impl Sink for ByLast {
        const BY_LAST: bool = true;
        fn add(&mut self, _: u32, count: u64) {
            self.0 += count;
        }
    }

    #[test]
    fn last_edges_are_counted_as_they_are_walked_through() {
        // Few vertices and long windows: what short windows do by reading is done by searches here.
        let key = Key::new(5);
        let draw = |n: u64, bound: u32| key.word(n) % bound;
        let edges = (0..1500).map(|i| (draw(3 * i, 9), draw(3 * i + 1, 9), i64::from(draw(3 * i + 2, 900)))).collect();
        let graph = TemporalGraph::from_edges(edges, 9, 0).expect("builds");
        let cancel = Cancel::new();
        for text in ["0>1 1>2", "0>1 2>1", "0>1 1>0 0>2", "0>1 2>3", "0>0 1>2", "0>1 2>2", "0>0 1>0", "0>1 0>1 1>0"] {
            for ties in [Ties::Order, Ties::Strict] {
                let motif = Motif::parse(text).expect("motif");
                let prepared = Prepared::new(&graph, &motif, 300, ties).expect("prepares");
                let mut counted = Search::new(&prepared, &cancel, 0u64);
                let mut walked = Search::new(&prepared, &cancel, ByLast::default());
                for first in 0..graph.num_edges() as u32 {
                    assert!(counted.from(first, 1400).is_ok() && walked.from(first, 1400).is_ok());
                }
                assert!(counted.sink > 1000);
                assert_eq!(counted.sink, walked.sink.0, "{text} {ties:?}");
            }
        }
    }
}
