//! Anchors: the motif edges whose images are drawn; the others are counted around them.

use std::fmt;

use crate::error::{Error, Result};
use crate::motifs::Motif;

/// Most edges of an anchor: motifs with more vertices than one more are counted exactly only.
pub const MAX_ANCHOR_EDGES: usize = 7;

/// Motif edges that span all vertices of the motif without a cycle. They hold its first or its last edge, without which the counts before and
/// after them would be coupled by delta.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Anchor {
    /// Positions in the motif: the centre, then the others such that each touches one before it.
    edges: Vec<usize>,
    is_tree: bool,
}

impl Anchor {
    /// A path: the centre alone for two vertices, with one side for three, with a side at each end for four.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where those edges are no path that spans the motif, or hold neither
    /// its first nor its last edge.
    pub fn path(motif: &Motif, centre: usize, sides: &[usize]) -> Result<Self> {
        let mut sides = sides.to_vec();
        sides.sort_unstable();
        let anchor = Anchor { edges: [centre].into_iter().chain(sides).collect(), is_tree: false };
        let fail = |why: String| Err(anchor.refused(motif, &why));
        if let Err(why) = anchor.spans(motif) {
            return fail(why);
        }
        match anchor.edges.len() {
            1..=2 => {}
            3 => {
                let [u, v] = motif.edges()[centre];
                let at = |end: u8| anchor.edges[1..].iter().filter(|&&side| motif.edges()[side].contains(&end)).count();
                if (at(u), at(v)) != (1, 1) {
                    return fail("a path has one side at each end of its centre".into());
                }
            }
            n => return fail(format!("a path has at most three edges, {n} are given; a spanning tree is written `tree:E,E,...`")),
        }
        Ok(anchor)
    }

    /// A spanning tree; `edges` begin with its centre.
    ///
    /// # Errors
    ///
    /// As [`Anchor::path`].
    pub fn tree(motif: &Motif, edges: &[usize]) -> Result<Self> {
        let mut anchor = Anchor { edges: edges.to_vec(), is_tree: true };
        if let Err(why) = anchor.spans(motif) {
            return Err(anchor.refused(motif, &why));
        }
        // From the centre outwards, in the order of the motif where there is a choice.
        let (mut reached, mut rest) = (motif.edges()[edges[0]].to_vec(), edges[1..].to_vec());
        rest.sort_unstable();
        anchor.edges.truncate(1);
        while let Some(at) = rest.iter().position(|&e| motif.edges()[e].iter().any(|v| reached.contains(v))) {
            let edge = rest.remove(at);
            reached.extend(motif.edges()[edge]);
            anchor.edges.push(edge);
        }
        Ok(anchor)
    }

    /// An anchor from text: `C`, `C:S`, `C:S,S` or `tree:E,E,...`, positions of the motif's edges, centre first.
    ///
    /// # Errors
    ///
    /// As [`Anchor::path`], and for text of another form.
    pub fn parse(text: &str, motif: &Motif) -> Result<Self> {
        let form = || {
            let forms = "`C`, `C:S` or `C:S,S` with the positions of a centre and its sides in the motif, or `tree:E,E,...`, centre first";
            Error::invalid(format!("`{text}` is no anchor; an anchor is {forms}"))
        };
        let numbers = |list: &str| list.split(',').map(|n| n.trim().parse::<usize>().map_err(|_| form())).collect::<Result<Vec<_>>>();
        match text.trim().split_once(':') {
            Some(("tree", edges)) => Anchor::tree(motif, &numbers(edges)?),
            Some((centre, sides)) => Anchor::path(motif, centre.trim().parse().map_err(|_| form())?, &numbers(sides)?),
            None => Anchor::path(motif, text.trim().parse().map_err(|_| form())?, &[]),
        }
    }

    /// Every path that is an anchor of the motif, in order of centre and sides.
    pub fn all_paths(motif: &Motif) -> Vec<Self> {
        let l = motif.num_edges();
        let mut found = Vec::new();
        for centre in 0..l {
            let sides: Vec<Vec<usize>> = match motif.num_vertices() {
                2 => vec![Vec::new()],
                3 => (0..l).map(|s| vec![s]).collect(),
                4 => (0..l).flat_map(|s| (s + 1..l).map(move |t| vec![s, t])).collect(),
                _ => Vec::new(),
            };
            found.extend(sides.iter().filter_map(|sides| Anchor::path(motif, centre, sides).ok()));
        }
        found
    }

    /// Spanning trees that are anchors of the motif, each with each of its edges as the centre, at most `limit` of them.
    pub fn all_trees(motif: &Motif, limit: usize) -> Vec<Self> {
        let (l, wanted) = (motif.num_edges(), motif.num_vertices().saturating_sub(1));
        let mut found = Vec::new();
        if !(1..=MAX_ANCHOR_EDGES).contains(&wanted) || wanted > l {
            return found;
        }
        // Combinations of edges in lexicographic order.
        let mut chosen: Vec<usize> = (0..wanted).collect();
        loop {
            if Anchor::tree(motif, &chosen).is_ok() {
                for centre in 0..wanted {
                    let mut edges = chosen.clone();
                    edges.swap(0, centre);
                    found.extend(Anchor::tree(motif, &edges).ok());
                }
                if found.len() >= limit {
                    found.truncate(limit);
                    return found;
                }
            }
            let Some(at) = (0..wanted).rev().find(|&i| chosen[i] < l - wanted + i) else { return found };
            chosen[at] += 1;
            for i in at + 1..wanted {
                chosen[i] = chosen[i - 1] + 1;
            }
        }
    }

    /// Positions of its edges in the motif, the centre first.
    pub fn edges(&self) -> &[usize] {
        &self.edges
    }

    /// Whether it is drawn as a tree: with windows around each edge's parent instead of around the centre.
    pub fn is_tree(&self) -> bool {
        self.is_tree
    }

    fn refused(&self, motif: &Motif, why: &str) -> Error {
        Error::invalid(format!(
            "`{self}` is no anchor of motif `{}` ({motif}): {why}; `sublane motifs plan` lists those that are",
            motif.name()
        ))
    }

    /// Says why the edges do not span the motif as a tree that holds its first or last edge, if they do not.
    fn spans(&self, motif: &Motif) -> std::result::Result<(), String> {
        let l = motif.num_edges();
        if let Some(wrong) = self.edges.iter().find(|&&e| e >= l) {
            return Err(format!("there is no edge {wrong}, the edges are 0 to {}", l - 1));
        }
        let mut reached = vec![false; motif.num_vertices()];
        let mut rest = self.edges.clone();
        if let Some(&[u, v]) = self.edges.first().and_then(|&centre| motif.edges().get(centre)) {
            reached[u as usize] = true;
            if u == v {
                return Err("a loop cannot be part of it".into());
            }
        }
        while let Some(at) = rest.iter().position(|&e| motif.edges()[e].iter().any(|&v| reached[v as usize])) {
            let [u, v] = motif.edges()[rest.swap_remove(at)].map(usize::from);
            if reached[u] && reached[v] {
                return Err("its edges close a cycle".into());
            }
            (reached[u], reached[v]) = (true, true);
        }
        if !rest.is_empty() || reached.contains(&false) {
            return Err(format!("its edges do not connect all {} vertices", motif.num_vertices()));
        }
        if self.edges.len() > MAX_ANCHOR_EDGES {
            return Err(format!(
                "it has {} edges, at most {MAX_ANCHOR_EDGES} can be drawn; count this motif with --exact",
                self.edges.len()
            ));
        }
        if !self.edges.contains(&0) && !self.edges.contains(&(l - 1)) {
            return Err("it holds neither the first nor the last edge of the motif".into());
        }
        Ok(())
    }
}

/// The form that [`Anchor::parse`] reads.
impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |edges: &[usize]| edges.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        match (self.is_tree, self.edges.split_first()) {
            (false, Some((centre, []))) => write!(f, "{centre}"),
            (false, Some((centre, sides))) => write!(f, "{centre}:{}", list(sides)),
            _ => write!(f, "tree:{}", list(&self.edges)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_read_and_what_is_none_is_refused_with_the_reason() {
        let m41 = Motif::parse("M4-1").expect("named");
        assert_eq!(Anchor::parse("4:8,0", &m41).expect("path").to_string(), "4:0,8");
        for (text, why) in [
            ("4:1,0", "cycle"),
            ("4:0", "do not connect"),
            ("9:0,8", "no edge 9"),
            ("1:5,2", "neither the first"),
            ("0:1,2", "one side at each end"),
            ("4:0,6,8", "cycle"),
            ("x", "no anchor"),
            ("", "no anchor"),
        ] {
            let error = Anchor::parse(text, &m41).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let star = Motif::parse("0>1 0>2 0>3").expect("edges");
        assert!(Anchor::all_paths(&star).is_empty());
        let trees: Vec<String> = Anchor::all_trees(&star, 10).iter().map(Anchor::to_string).collect();
        assert_eq!(trees, ["tree:0,1,2", "tree:1,0,2", "tree:2,0,1"]);
        assert_eq!(Anchor::parse("tree:3,0,1,2", &Motif::parse("E5").expect("named")).expect("tree").to_string(), "tree:3,2,1,0");
    }

    #[test]
    fn every_listed_anchor_is_read_back() {
        for motif in Motif::all_named() {
            let all = Anchor::all_paths(&motif);
            assert!(all.is_empty() == (motif.num_vertices() > 4), "{}", motif.name());
            for anchor in all.iter().chain(&Anchor::all_trees(&motif, 1000)) {
                assert_eq!(&Anchor::parse(&anchor.to_string(), &motif).expect("listed"), anchor);
            }
        }
    }
}
