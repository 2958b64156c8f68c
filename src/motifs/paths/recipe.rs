//! What an anchor means for a motif: how its edges are placed one after the other, and which lists of edges are counted around them.

use crate::motifs::{Anchor, Motif};

/// An end of a directed edge.
pub(in crate::motifs) const SOURCE: usize = 0;
/// The other end.
pub(in crate::motifs) const DESTINATION: usize = 1;

/// An end of a placed edge: (which placed edge, [`SOURCE`] or [`DESTINATION`]).
pub(in crate::motifs) type Role = (usize, usize);

/// An anchor edge, placed next to its parent. The first of a recipe is the centre, which has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::motifs) struct Placed {
    /// Position in the motif.
    pub position: usize,
    /// The edge it touches that is placed before it; 0 for the centre.
    pub parent: usize,
    /// The end of the parent that it touches.
    pub at: usize,
    /// Which of its own ends is there.
    pub own_end: usize,
    /// Whether it comes after its parent in time.
    pub after: bool,
}

/// A motif edge that is not placed: one of the lists that chains run through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::motifs) struct List {
    /// Its ends, as ends of placed edges.
    pub ends: [Role; 2],
    /// The placed edge on the same two vertices, and whether that one points the other way.
    pub on: Option<(usize, bool)>,
    /// The placed edge just before it in the motif; `None`: it comes before all of them.
    pub after: Option<usize>,
    /// The placed edge just after it; `None`: it comes after all of them.
    pub before: Option<usize>,
}

/// How to draw around an anchor and what to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::motifs) struct Recipe {
    /// Placed edges, centre first.
    pub placed: Vec<Placed>,
    /// Placed edges in the order of the motif.
    pub order: Vec<usize>,
    /// Lists in the order of the motif; those of one gap are neighbours.
    pub lists: Vec<List>,
    /// Places in `lists` in the order in which they are looked up: those most likely empty first.
    pub lookup: Vec<usize>,
    /// Where each vertex of the motif is.
    pub roles: Vec<Role>,
    /// Whether windows lie around the parent of each edge (a tree) and not all around the centre.
    pub is_tree: bool,
}

impl Recipe {
    /// The recipe of a motif's anchor.
    pub fn new(motif: &Motif, anchor: &Anchor) -> Self {
        let edges = motif.edges();
        let mut roles: Vec<Option<Role>> = vec![None; motif.num_vertices()];
        let mut placed: Vec<Placed> = Vec::new();
        for (j, &position) in anchor.edges().iter().enumerate() {
            let ends = edges[position].map(usize::from);
            let own_end = if j > 0 && roles[ends[DESTINATION]].is_some() { DESTINATION } else { SOURCE };
            let (parent, at) = roles[ends[own_end]].unwrap_or((0, SOURCE));
            placed.push(Placed { position, parent, at, own_end, after: position > placed.get(parent).map_or(position, |p| p.position) });
            for (end, &vertex) in ends.iter().enumerate() {
                roles[vertex].get_or_insert((j, end));
            }
        }
        let roles: Vec<Role> = roles.into_iter().map(|role| role.unwrap_or((0, SOURCE))).collect();
        let mut order: Vec<usize> = (0..placed.len()).collect();
        order.sort_unstable_by_key(|&j| placed[j].position);

        let list = |position: usize| {
            let [a, b] = edges[position];
            let same = |j: &usize| edges[placed[*j].position] == [a, b] || edges[placed[*j].position] == [b, a];
            List {
                ends: [roles[a as usize], roles[b as usize]],
                on: (0..placed.len()).find(same).map(|j| (j, edges[placed[j].position] != [a, b])),
                after: order.iter().copied().rfind(|&j| placed[j].position < position),
                before: order.iter().copied().find(|&j| placed[j].position > position),
            }
        };
        let lists: Vec<List> = (0..edges.len()).filter(|p| placed.iter().all(|e| e.position != *p)).map(list).collect();
        // An edge on a pair that no placed edge is on is the rarest. A placed edge that may be part of a match has the other edges of its pair
        // near it, so a list in a gap beside it is seldom empty.
        let mut lookup: Vec<usize> = (0..lists.len()).collect();
        lookup.sort_by_key(|&i| match lists[i].on {
            None => 0,
            Some((j, _)) if lists[i].after != Some(j) && lists[i].before != Some(j) => 1,
            Some((j, _)) => 2 + u32::from(j == 0),
        });
        Recipe { placed, order, lists, lookup, roles, is_tree: anchor.is_tree() }
    }

    /// The first of the placed edges in time.
    pub fn first(&self) -> usize {
        self.order[0]
    }

    /// The last of the placed edges in time.
    pub fn last(&self) -> usize {
        self.order[self.order.len() - 1]
    }

    /// Placed edges whose parent is placed edge `j`.
    pub fn children(&self, j: usize) -> impl Iterator<Item = usize> + '_ {
        (1..self.placed.len()).filter(move |&c| self.placed[c].parent == j)
    }

    /// Lists of each gap, as ranges of `lists`.
    pub fn gaps(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut start = 0;
        self.lists.chunk_by(|a, b| a.after == b.after).map(move |gap| {
            start += gap.len();
            start - gap.len()..start
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipe_of_the_authors_anchor() {
        let motif = Motif::parse("M4-1").expect("named");
        let recipe = Recipe::new(&motif, &Anchor::parse("4:0,8", &motif).expect("path"));
        let side = |position, at, own_end, after| Placed { position, parent: 0, at, own_end, after };
        assert_eq!(recipe.placed, [side(4, 0, 0, false), side(0, 1, 1, false), side(8, 0, 0, true)]);
        assert_eq!(recipe.order, [1, 0, 2]);
        assert_eq!(recipe.gaps().collect::<Vec<_>>(), [0..3, 3..6]);
        let on: Vec<_> = recipe.lists.iter().map(|l| l.on).collect();
        assert_eq!(on, [Some((0, true)), Some((2, false)), Some((2, true)), Some((1, true)), Some((1, false)), Some((0, true))]);
        assert!(recipe.lists.iter().all(|l| l.after.is_some() && l.before.is_some()));
    }
}
