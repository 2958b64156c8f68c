//! What backtracking does at each edge of a motif, known before a graph is.

use crate::motifs::Motif;

/// The edges of a motif in the order in which they are placed, its vertices numbered in the order in which they are bound.
pub(in crate::motifs) struct Plan {
    pub levels: Vec<Level>,
    /// Level of the last edge that binds a vertex; those after it form the tail, all of whose edges lie on known pairs.
    pub last_binding: usize,
    /// Slots of the tail, each once.
    pub tail_slots: Vec<usize>,
    /// Of each edge of the tail, its place in `tail_slots`.
    pub tail: Vec<usize>,
    /// Of each of `tail_slots`, the edges of the tail on it, last first.
    pub tail_edges: Vec<Vec<usize>>,
}

/// One edge of the motif.
pub(in crate::motifs) struct Level {
    pub candidates: Candidates,
    /// Vertices bound before this edge: 0..`bound`.
    pub bound: usize,
    /// Slots whose two ends this edge is the first to have bound, among those that later edges use.
    pub slots: Vec<SlotPlan>,
}

/// Where the graph edges that may stand for a motif edge are listed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::motifs) enum Candidates {
    /// Both ends are bound: the list of a pair.
    Pair { slot: usize },
    /// The source is bound: edges out of `vertex`, from the position that `cursor` gives for the edge at `level`.
    Outgoing { vertex: usize, level: usize, cursor: Cursor },
    /// The destination is bound: edges into `vertex`.
    Incoming { vertex: usize, level: usize, cursor: Cursor },
    /// No end is bound: all edges but loops.
    Edges,
    /// A loop at a vertex that is not bound: all loops.
    Loops,
}

/// The end of a placed edge that the next edge leaves from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::motifs) enum Cursor {
    Source,
    Destination,
}

/// An ordered pair of motif vertices on which later edges lie.
pub(in crate::motifs) struct SlotPlan {
    pub slot: usize,
    pub pair: SlotPair,
    /// Number of later edges on it.
    pub uses: usize,
}

/// How the pair of a slot is found.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(in crate::motifs) enum SlotPair {
    /// It is that of the edge just placed.
    Same,
    /// It is the opposite of that.
    Opposite,
    /// By search, from these two bound vertices.
    Find(usize, usize),
}

impl Plan {
    pub fn new(motif: &Motif) -> Self {
        let mut order: Vec<u8> = Vec::new();
        let mut number = |vertex: u8| {
            order.iter().position(|&v| v == vertex).unwrap_or_else(|| {
                order.push(vertex);
                order.len() - 1
            })
        };
        let edges: Vec<[usize; 2]> = motif.edges().iter().map(|edge| edge.map(&mut number)).collect();
        // Vertices bound before each edge, and after the last.
        let mut bound = vec![0];
        for &[a, b] in &edges {
            bound.push(bound[bound.len() - 1].max(a + 1).max(b + 1));
        }
        let mut slots: Vec<[usize; 2]> = Vec::new();
        for (level, edge) in edges.iter().enumerate() {
            if edge.iter().all(|&v| v < bound[level]) && !slots.contains(edge) {
                slots.push(*edge);
            }
        }
        let slot_of = |edge: &[usize; 2]| slots.iter().position(|slot| slot == edge).unwrap_or(slots.len());

        let mut levels = Vec::with_capacity(edges.len());
        for (level, &[a, b]) in edges.iter().enumerate() {
            let known = |v: usize| v < bound[level];
            // The latest placed edge at a vertex, and which of its ends that is.
            let latest = |v: usize| {
                let at = (0..level).rev().find(|&i| edges[i].contains(&v)).unwrap_or(0);
                (at, if edges[at][0] == v { Cursor::Source } else { Cursor::Destination })
            };
            let candidates = match (known(a), known(b)) {
                (true, true) => Candidates::Pair { slot: slot_of(&[a, b]) },
                (true, false) => {
                    let (level, cursor) = latest(a);
                    Candidates::Outgoing { vertex: a, level, cursor }
                }
                (false, true) => {
                    let (level, cursor) = latest(b);
                    Candidates::Incoming { vertex: b, level, cursor }
                }
                (false, false) if a == b => Candidates::Loops,
                (false, false) => Candidates::Edges,
            };
            let mut found: Vec<SlotPlan> = Vec::new();
            for (slot, &[c, d]) in slots.iter().enumerate() {
                let (before, now) = (c.max(d) < bound[level], c.max(d) < bound[level + 1]);
                let uses = edges[level + 1..].iter().filter(|&&edge| edge == [c, d]).count();
                if now && !before && uses > 0 {
                    let pair = match [c, d] {
                        same if same == [a, b] => SlotPair::Same,
                        opposite if opposite == [b, a] => SlotPair::Opposite,
                        [c, d] => SlotPair::Find(c, d),
                    };
                    found.push(SlotPlan { slot, pair, uses });
                }
            }
            // What needs no search is looked at first.
            found.sort_by_key(|slot| matches!(slot.pair, SlotPair::Find(..)));
            levels.push(Level { candidates, bound: bound[level], slots: found });
        }
        let last_binding = (0..edges.len()).rev().find(|&i| bound[i] < bound[i + 1]).unwrap_or(0);
        let mut tail_slots = Vec::new();
        let mut tail = Vec::new();
        for edge in &edges[last_binding + 1..] {
            let slot = slot_of(edge);
            let place = tail_slots.iter().position(|&s| s == slot).unwrap_or_else(|| {
                tail_slots.push(slot);
                tail_slots.len() - 1
            });
            tail.push(place);
        }
        let tail_edges = (0..tail_slots.len()).map(|place| (0..tail.len()).rev().filter(|&j| tail[j] == place).collect()).collect();
        Plan { levels, last_binding, tail_slots, tail, tail_edges }
    }

    /// Whether a level takes its candidates from the edges at that end of a placed edge, in that direction.
    pub fn uses(&self, outgoing: bool, end: Cursor) -> bool {
        self.levels.iter().any(|level| match level.candidates {
            Candidates::Outgoing { cursor, .. } => outgoing && cursor == end,
            Candidates::Incoming { cursor, .. } => !outgoing && cursor == end,
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edge_knows_where_its_candidates_are() {
        let plan = Plan::new(&Motif::parse("0>1 1>2 3>1 3>0 1>0 1>0").expect("motif"));
        let candidates: Vec<Candidates> = plan.levels.iter().map(|level| level.candidates).collect();
        assert_eq!(candidates[0], Candidates::Edges);
        assert_eq!(candidates[1], Candidates::Outgoing { vertex: 1, level: 0, cursor: Cursor::Destination });
        assert_eq!(candidates[2], Candidates::Incoming { vertex: 1, level: 1, cursor: Cursor::Source });
        assert_eq!((plan.last_binding, &plan.tail[..], plan.tail_slots.len()), (2, &[0, 1, 1][..], 2));
        assert_eq!(plan.tail_edges, [vec![0], vec![2, 1]]);
        assert_eq!(plan.levels[0].slots[0].pair, SlotPair::Opposite);
        assert_eq!((plan.levels[0].slots[0].uses, plan.levels[2].slots[0].pair), (2, SlotPair::Find(3, 0)));
        assert_eq!(Plan::new(&Motif::parse("0>0 1>1 0>0").expect("motif")).levels[1].candidates, Candidates::Loops);
    }
}
