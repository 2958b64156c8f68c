//! Keys: what the order of edges in a match is decided by, and how far delta reaches from each.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::motifs::graph::SENTINEL;
use crate::motifs::{TemporalGraph, Ties};

/// Keys of a graph's edges under one tie policy, and the windows of one delta. All comparisons of times become comparisons of keys.
pub(in crate::motifs) struct Keys<'g> {
    /// Key of each edge; `None` where it is the edge's index.
    pub of_edge: Option<&'g [u32]>,
    /// Pair lists of the graph with keys in place of indices.
    pub list: Cow<'g, [u32]>,
    /// By key: the smallest key whose time is at least this key's time minus delta.
    pub first: Vec<u32>,
    /// By key: the largest key whose time is at most this key's time plus delta.
    pub last: Vec<u32>,
}

impl<'g> Keys<'g> {
    /// Keys of `graph` for `delta` ticks, 0 or more.
    pub fn new(graph: &'g TemporalGraph, delta: i64, ties: Ties) -> Self {
        let times: Cow<'g, [i64]> = match ties {
            Ties::Order => Cow::Borrowed(&graph.times),
            Ties::Strict => {
                let mut distinct = graph.times.clone();
                distinct.dedup();
                Cow::Owned(distinct)
            }
        };
        let n = times.len();
        let (mut first, mut last) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let (mut low, mut high) = (0, 0);
        for &time in times.iter() {
            while times[low] < time.saturating_sub(delta) {
                low += 1;
            }
            while high < n && times[high] <= time.saturating_add(delta) {
                high += 1;
            }
            first.push(low as u32);
            last.push(high as u32 - 1);
        }
        let (of_edge, list) = match ties {
            Ties::Order => (None, Cow::Borrowed(graph.pairs.list.as_slice())),
            Ties::Strict => {
                let key = |&edge: &u32| if edge == SENTINEL { SENTINEL } else { graph.ranks[edge as usize] };
                (Some(graph.ranks.as_slice()), Cow::Owned(graph.pairs.list.iter().map(key).collect()))
            }
        };
        Keys { of_edge, list, first, last }
    }

    /// Key of an edge.
    #[inline]
    pub fn of(&self, edge: u32) -> u32 {
        self.of_edge.map_or(edge, |keys| keys[edge as usize])
    }
}

impl Keys<'_> {
    /// Most edges of one ordered pair within delta of each other.
    pub fn longest_window(&self, pairs: &crate::motifs::graph::Pairs) -> u32 {
        let of_pair = |pair: u32| {
            let list = &self.list[pairs.range(pair)];
            let (mut longest, mut end) = (0, 0);
            for (start, &key) in list.iter().enumerate() {
                // A window longer than the longest so far is all that matters.
                if list.len() - start <= longest {
                    break;
                }
                let last = self.last[key as usize];
                while end < list.len() && list[end] <= last {
                    end += 1;
                }
                longest = longest.max(end - start);
            }
            longest as u32
        };
        (0..pairs.len() as u32).into_par_iter().map(of_pair).max().unwrap_or(0)
    }
}
