//! What a graph holds, in numbers.

use rayon::prelude::*;

use super::TemporalGraph;

/// Counts of a graph; see [`TemporalGraph::summary`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphSummary {
    /// Edges, loops and duplicates included.
    pub edges: u64,
    /// Vertices.
    pub vertices: u64,
    /// Edges from a vertex to itself.
    pub loops: u64,
    /// Edges that agree with an earlier one in source, destination and time.
    pub duplicates: u64,
    /// Edges whose time is that of another edge too.
    pub ties: u64,
    /// Different times.
    pub distinct_times: u64,
    /// Ordered pairs of vertices that have edges.
    pub pairs: u64,
    /// First and last time in ticks; `None` without edges.
    pub times: Option<(i64, i64)>,
}

impl GraphSummary {
    /// Ticks from the first time to the last, 0 without edges. 64 bits hold it only without a sign.
    pub fn span(&self) -> u64 {
        self.times.map_or(0, |(first, last)| last.abs_diff(first))
    }
}

impl TemporalGraph {
    /// Counts what the graph holds.
    pub fn summary(&self) -> GraphSummary {
        let repeats =
            |pair: u32| self.pairs.edges(pair).windows(2).filter(|w| self.ranks[w[0] as usize] == self.ranks[w[1] as usize]).count();
        let alone = |rank: &[u32]| if let [_] = rank { 0 } else { rank.len() };
        GraphSummary {
            edges: self.edges.len() as u64,
            vertices: self.num_vertices.into(),
            loops: self.edges.par_iter().filter(|[u, v]| u == v).count() as u64,
            duplicates: (0..self.pairs.len() as u32).into_par_iter().map(repeats).sum::<usize>() as u64,
            ties: self.ranks.chunk_by(|a, b| a == b).map(alone).sum::<usize>() as u64,
            distinct_times: self.ranks.last().map_or(0, |&last| u64::from(last) + 1),
            pairs: self.pairs.len() as u64,
            times: self.times.first().copied().zip(self.times.last().copied()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_duplicates_and_ties_are_counted() {
        let edges = vec![(0, 1, 5), (0, 1, 5), (0, 1, 5), (1, 1, 5), (1, 0, 7), (0, 1, 8), (2, 2, 9), (2, 2, 9)];
        let summary = TemporalGraph::from_edges(edges, 4, 0).expect("builds").summary();
        assert_eq!((summary.edges, summary.vertices, summary.loops, summary.duplicates), (8, 4, 3, 3));
        assert_eq!((summary.ties, summary.distinct_times, summary.pairs, summary.times), (6, 4, 4, Some((5, 9))));
        assert_eq!(summary.span(), 4);
        let wide = TemporalGraph::from_edges(vec![(0, 1, i64::MIN), (0, 1, i64::MAX)], 2, 0).expect("builds").summary();
        assert_eq!(wide.span(), u64::MAX);
        let empty = TemporalGraph::from_edges(Vec::new(), 0, 0).expect("builds").summary();
        assert_eq!((empty.ties, empty.distinct_times, empty.times, empty.span()), (0, 0, None, 0));
    }
}
