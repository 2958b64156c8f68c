//! Motifs and their names.

use std::fmt;

use crate::error::{Error, Result};

/// How edges of equal time follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ties {
    /// In the order of the graph's edges: a key is an edge's index.
    #[default]
    Order,
    /// Not at all, times must increase: a key is the dense rank of an edge's time.
    Strict,
}

impl Ties {
    /// Name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Ties::Order => "order",
            Ties::Strict => "strict",
        }
    }
}

/// A motif: directed edges in temporal order on vertices 0, 1, 2, ... that all occur.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Motif {
    name: String,
    edges: Vec<[u8; 2]>,
    num_vertices: usize,
}

/// Most edges of a motif.
pub const MAX_EDGES: usize = 32;

/// Motifs with names of their own, as text in the form [`Motif::parse`] reads. Everest's set counts vertices from 1.
const NAMED: &[(&str, &str)] = &[
    ("M3-0", "0>1 1>2 2>0 0>1 1>2 2>0 0>1 1>2 2>0"),
    ("M3-1", "0>1 1>2 2>0 0>1 1>2 2>0 0>2 2>1 1>0"),
    ("M4-0", "0>1 1>2 2>3 3>0"),
    ("M4-1", "0>1 1>2 2>3 3>2 2>1 1>0 0>1 1>2 2>3"),
    ("M4-2", "0>1 1>2 2>3 3>0 0>1 1>2 2>3 3>0"),
    ("M4-3", "0>1 1>2 2>3 3>1 1>2 2>3 3>1"),
    ("M4-4", "0>2 2>3 3>0 0>1 1>2 2>0 0>1 1>2 2>3 3>0"),
    ("clique4", "0>1 1>2 2>3 3>1 3>0 0>2"),
    ("E1", "1>2 2>3 3>4"),
    ("E2", "2>3 1>2 3>4"),
    ("E3", "1>2 2>3 3>4 4>2"),
    ("E4", "1>2 2>3 3>4 4>1"),
    ("E5", "1>2 2>3 3>4 4>5"),
    ("E6", "1>2 3>2 3>4 5>4"),
    ("E7", "1>2 1>3 4>2 4>3"),
    ("E8", "1>3 2>3 3>4 4>5"),
    ("E9", "1>2 2>3 3>4 3>1"),
    ("E10", "1>2 2>3 3>1 1>4 4>3"),
    ("E11", "1>2 2>3 3>4 4>5 5>1"),
    ("E12", "1>2 2>3 3>4 4>5 5>2"),
    ("E13", "1>2 2>3 3>4 4>2 2>5"),
];

/// Second edges of the rows and third edges of the columns of the 36 two- and three-vertex motifs of three edges.
const GRID_ROWS: [[u8; 2]; 6] = [[2, 1], [1, 2], [2, 0], [0, 2], [1, 0], [0, 1]];
const GRID_COLUMNS: [[u8; 2]; 6] = [[0, 1], [1, 0], [0, 2], [2, 0], [1, 2], [2, 1]];

impl Motif {
    /// A motif of those edges; vertices are numbered anew by first appearance.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for no edge and for more than [`MAX_EDGES`].
    pub fn new(name: impl Into<String>, edges: &[[u64; 2]]) -> Result<Self> {
        let name = name.into();
        if edges.is_empty() || edges.len() > MAX_EDGES {
            return Err(Error::invalid(format!("motif `{name}` has {} edges, 1 to {MAX_EDGES} are allowed", edges.len())));
        }
        let mut seen: Vec<u64> = Vec::new();
        let mut place = |vertex: u64| {
            let at = seen.iter().position(|&v| v == vertex).unwrap_or_else(|| {
                seen.push(vertex);
                seen.len() - 1
            });
            at as u8
        };
        let edges = edges.iter().map(|edge| edge.map(&mut place)).collect();
        Ok(Motif { name, edges, num_vertices: seen.len() })
    }

    /// A motif by its name, or from text like `0>1 1>2 2>0`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for what is neither.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Some(named) = Motif::named(text) {
            return Ok(named);
        }
        if !text.contains('>') {
            return Err(Error::invalid(format!(
                "`{text}` names no motif; the names are M3-0, M3-1, M4-0 to M4-4, clique4, E1 to E13 and G11 to G66, and any other motif is \
                 written as its edges in temporal order, like `0>1 1>2 2>0`"
            )));
        }
        let vertex = |word: &str, edge: &str| {
            let known = word.trim().parse::<u64>();
            known.map_err(|_| Error::invalid(format!("`{edge}` is no edge of a motif; an edge is two numbers like `0>1`")))
        };
        let edge = |edge: &str| match edge.split_once('>') {
            Some((from, to)) => Ok([vertex(from, edge)?, vertex(to, edge)?]),
            None => Err(Error::invalid(format!("`{edge}` is no edge of a motif; an edge is two numbers like `0>1`"))),
        };
        let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
        let edges = words.map(edge).collect::<Result<Vec<_>>>()?;
        Motif::new(text, &edges)
    }

    /// A motif from the text of a file with one `src dst` a line; empty lines and those that begin with `#` or `%` are left out.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) with the line that is no edge.
    pub fn from_lines(name: impl Into<String>, text: &str) -> Result<Self> {
        let name = name.into();
        let mut edges = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '%']) {
                continue;
            }
            let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || c == ',' || c == '>').filter(|w| !w.is_empty()).collect();
            let numbers: Option<Vec<u64>> = words.iter().map(|w| w.parse().ok()).collect();
            let Some([from, to]) = numbers.as_deref() else {
                return Err(Error::malformed(format!("motif `{name}`, line {}: `{line}` is no edge; an edge is `src dst`", at + 1)));
            };
            edges.push([*from, *to]);
        }
        Motif::new(name, &edges)
    }

    fn named(name: &str) -> Option<Self> {
        let known = |n: &str| n.eq_ignore_ascii_case(name);
        if let Some((name, edges)) = NAMED.iter().find(|(n, _)| known(n)) {
            return Motif::parse(edges).ok().map(|motif| motif.renamed(*name));
        }
        (1..=6)
            .flat_map(|row| (1..=6).map(move |column| (row, column)))
            .find(|(row, column)| known(&format!("G{row}{column}")))
            .map(|(r, c)| Motif::grid(r, c))
    }

    /// The motif of that row and column, 1 to 6 each, of the 36 two- and three-vertex motifs of three edges (Paranjape, Benson and
    /// Leskovec, WSDM 2017): the first edge is 0>1.
    pub fn grid(row: usize, column: usize) -> Self {
        let edges = [[0, 1], GRID_ROWS[(row - 1) % 6], GRID_COLUMNS[(column - 1) % 6]];
        let num_vertices = 2 + usize::from(edges.iter().flatten().any(|&v| v == 2));
        Motif { name: format!("G{row}{column}"), edges: edges.to_vec(), num_vertices }
    }

    /// Every motif that has a name.
    pub fn all_named() -> Vec<Self> {
        let named = NAMED.iter().filter_map(|(name, _)| Motif::named(name));
        named.chain((1..=6).flat_map(|row| (1..=6).map(move |column| Motif::grid(row, column)))).collect()
    }

    /// The same motif under another name.
    #[must_use]
    pub fn renamed(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Its name, or its edges as they were written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Edges as (from, to), in temporal order.
    pub fn edges(&self) -> &[[u8; 2]] {
        &self.edges
    }

    /// Number of edges.
    pub fn num_edges(&self) -> usize {
        self.edges.len()
    }

    /// Number of vertices.
    pub fn num_vertices(&self) -> usize {
        self.num_vertices
    }

    /// Whether its vertices hang together, directions aside.
    pub fn is_connected(&self) -> bool {
        let mut reached = 1u64;
        for _ in 0..self.num_vertices {
            for &[a, b] in &self.edges {
                if reached & (1 << a | 1 << b) != 0 {
                    reached |= 1 << a | 1 << b;
                }
            }
        }
        reached.count_ones() as usize == self.num_vertices
    }
}

/// The edges, as [`Motif::parse`] reads them.
impl fmt::Display for Motif {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, [a, b]) in self.edges.iter().enumerate() {
            write!(f, "{}{a}>{b}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_edges_are_read() {
        assert_eq!(Motif::all_named().len(), NAMED.len() + 36);
        assert_eq!(Motif::parse("e6").expect("named").to_string(), "0>1 2>1 2>3 4>3");
        assert_eq!(Motif::parse(" 7>9,9>7 ").expect("edges").to_string(), "0>1 1>0");
        assert_eq!(Motif::parse("G42").expect("named").to_string(), "0>1 0>2 1>0");
        assert_eq!(Motif::from_lines("file", "# a cycle\n3 4\n4>3\n").expect("edges").to_string(), "0>1 1>0");
        for bad in ["M4-9", "", "0>", "0>1 1-2", ">"] {
            assert!(Motif::parse(bad).is_err(), "{bad}");
        }
        assert!(Motif::from_lines("file", "1 2\n3\n").expect_err("short").to_string().contains("line 2"));
        assert!(Motif::from_lines("file", "").is_err());
        assert!(!Motif::parse("0>1 2>3").expect("edges").is_connected());
        assert!(Motif::parse("0>1 2>3 3>0").expect("edges").is_connected());
    }
}
