//! Graphs made of conversations: bursts of edges among few vertices, some of which are in many.

use std::ops::Range;

use kernels_gen::threefry::{Key, uniform};
use rayon::prelude::*;

use super::TemporalGraph;
use crate::error::{Error, Result};
use crate::progress::Work;

/// What [`TemporalGraph::generate`] makes. Shares and probabilities are in 0..=1.
///
/// Edges come in conversations of up to four vertices, each of which begins at any time and goes on with gaps of any magnitude. An edge is
/// a reply to the one before, a repetition of it, or goes on to another vertex, so that chains, cycles and long lists of edges of one pair
/// occur at every scale of time.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateOptions {
    /// Edges, at most 2^31.
    pub edges: u64,
    /// Vertices, at least 2; some may have no edge.
    pub vertices: u32,
    /// Last time that may occur, in ticks; the first is 0.
    pub span: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Activity of vertices: vertex number r begins conversations, and is sought for them, in proportion to (r + 1)^-`exponent`. 0 to 4.
    pub exponent: f64,
    /// Edges of a conversation, in the mean; 1 to 1000.
    pub burst: f64,
    /// Longest gap between edges of a conversation, in ticks; the logarithm of a gap is uniform.
    pub gap: u64,
    /// Probability that an edge goes back to where the one before came from.
    pub replies: f64,
    /// Probability that an edge goes where the one before went. At most 1 - `replies`.
    pub repeats: f64,
    /// Probability that a vertex speaks to one of its eight friends and not to anyone.
    pub friends: f64,
    /// Share of loops.
    pub loops: f64,
    /// Share of edges past the first of their conversation whose time is that of the one before.
    pub ties: f64,
    /// Share of edges past the first of their conversation that copy the one before, time included.
    pub duplicates: f64,
    /// Times are multiples of so many ticks.
    pub resolution: u64,
}

impl GenerateOptions {
    /// So many edges, on a vertex each 32 edges and over 200 days of seconds. The mean degree is the same at every size; with an `exponent`
    /// above 0 the largest grows.
    pub fn new(edges: u64) -> Self {
        GenerateOptions {
            edges,
            vertices: (edges / 32).clamp(16, 1 << 31) as u32,
            span: 17_280_000,
            seed: 0,
            exponent: 0.7,
            burst: 8.0,
            gap: 86_400,
            replies: 0.4,
            repeats: 0.1,
            friends: 0.8,
            loops: 0.01,
            ties: 0.05,
            duplicates: 0.01,
            resolution: 1,
        }
    }

    fn check(&self) -> Result<()> {
        let refuse = |what: &str, given: String, allowed: &str| {
            Err(Error::invalid(format!("{what} is {given} for a generated graph; {allowed} is allowed")))
        };
        if self.edges > 1 << 31 {
            return refuse("the number of edges", self.edges.to_string(), "at most 2^31");
        }
        if !(2..u32::MAX).contains(&self.vertices) {
            return refuse("the number of vertices", self.vertices.to_string(), "2 to 2^32 - 2");
        }
        if self.span > i64::MAX as u64 {
            return refuse("the span", self.span.to_string(), "at most 2^63 - 1 ticks");
        }
        if !(1..=self.span.max(1)).contains(&self.resolution) {
            return refuse("the resolution", self.resolution.to_string(), "1 tick to the span");
        }
        if !(0.0..=4.0).contains(&self.exponent) {
            return refuse("the exponent", self.exponent.to_string(), "0 to 4");
        }
        if !(1.0..=1000.0).contains(&self.burst) {
            return refuse("the mean of a conversation", self.burst.to_string(), "1 to 1000 edges");
        }
        for (what, share) in [
            ("the probability of replies", self.replies),
            ("the probability of repeats", self.repeats),
            ("the probability of friends", self.friends),
            ("the share of loops", self.loops),
            ("the share of ties", self.ties),
            ("the share of duplicates", self.duplicates),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return refuse(what, share.to_string(), "0 to 1");
            }
        }
        if self.replies + self.repeats > 1.0 {
            return refuse("the probability of replies and repeats together", (self.replies + self.repeats).to_string(), "at most 1");
        }
        Ok(())
    }
}

/// Number of friends of a vertex.
const FRIENDS: u32 = 8;
/// Most vertices of a conversation.
const GROUP: usize = 4;
/// Conversations of one step of work.
const STEP: usize = 1 << 14;

impl TemporalGraph {
    /// A graph that depends on `options` alone; see [`GenerateOptions`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for options out of range,
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    pub fn generate(options: &GenerateOptions, work: &Work) -> Result<Self> {
        options.check()?;
        let maker = Maker::new(options);
        let conversations = maker.lengths();
        let part = work.part("making edges", conversations.len() as u64);
        let steps: Vec<Vec<(u32, u32, i64)>> = conversations
            .par_chunks(STEP)
            .enumerate()
            .map(|(step, lengths)| {
                let mut edges = Vec::with_capacity(lengths.iter().map(|&n| n as usize).sum());
                for (at, &length) in lengths.iter().enumerate() {
                    maker.conversation((step * STEP + at) as u64, length, &mut edges);
                }
                part.advance(lengths.len() as u64).map(|()| edges)
            })
            .collect::<Result<_>>()?;
        TemporalGraph::from_edges(steps.concat(), options.vertices, 0)
    }
}

/// Words drawn one after the other.
struct Draws {
    key: Key,
    next: u64,
}

impl Draws {
    fn word(&mut self) -> u32 {
        self.next += 1;
        self.key.word(self.next - 1)
    }

    /// In [0, 1), with 53 random bits.
    fn uniform(&mut self) -> f64 {
        let (high, low) = (u64::from(self.word() >> 5), u64::from(self.word() >> 6));
        ((high << 26) | low) as f64 / (1u64 << 53) as f64
    }

    /// Whether something of that probability happens.
    fn happens(&mut self, probability: f64) -> bool {
        f64::from(uniform(self.word())) < probability
    }

    fn below(&mut self, end: u32) -> u32 {
        ((u64::from(self.word()) * u64::from(end)) >> 32) as u32
    }
}

struct Maker<'a> {
    options: &'a GenerateOptions,
    conversations: Key,
    lengths: Key,
    friends: Key,
    /// (n + 1)^(1 - exponent) - 1 and 1 / (1 - exponent), or the logarithm of n + 1 and 0 for the exponent 1.
    activity: (f64, f64),
    /// Logarithm of the longest gap.
    gap: f64,
}

impl<'a> Maker<'a> {
    fn new(options: &'a GenerateOptions) -> Self {
        let key = Key::new(options.seed).stream(0x6d6f_7469_6673);
        let (n, rest) = (f64::from(options.vertices) + 1.0, 1.0 - options.exponent);
        // `libm` gives the same bits on every machine.
        let activity = if rest.abs() < 1e-9 { (libm::log(n), 0.0) } else { (libm::pow(n, rest) - 1.0, 1.0 / rest) };
        let gap = libm::log(options.gap.clamp(1, options.span.max(1)) as f64);
        Maker { options, conversations: key.stream(0), lengths: key.stream(1), friends: key.stream(2), activity, gap }
    }

    /// Number of edges of each conversation: geometric, up to what is wanted in all.
    fn lengths(&self) -> Vec<u32> {
        let stay = 1.0 - 1.0 / self.options.burst;
        let (mut lengths, mut left) = (Vec::new(), self.options.edges);
        while left > 0 {
            // Never 0, so that the logarithm is finite.
            let x = (f64::from(self.lengths.word(lengths.len() as u64)) + 0.5) / (1u64 << 32) as f64;
            let more = if stay > 0.0 { libm::floor(libm::log(x) / libm::log(stay)) } else { 0.0 };
            let length = (1 + more as u64).min(left);
            lengths.push(length as u32);
            left -= length;
        }
        lengths
    }

    /// A vertex by its activity: the inverse of the integral of x^-exponent from 1 to n + 1.
    fn vertex(&self, x: f64) -> u32 {
        let (scale, power) = self.activity;
        let place = if power == 0.0 { libm::exp(x * scale) } else { libm::pow(1.0 + x * scale, power) };
        ((place - 1.0).max(0.0) as u32).min(self.options.vertices - 1)
    }

    /// Someone whom `vertex` speaks to, none of `group`.
    fn partner(&self, vertex: u32, group: &[u32], draws: &mut Draws) -> u32 {
        let x = if draws.happens(self.options.friends) {
            // Friends are few and the first of them are closer.
            let friend = draws.below(FRIENDS).min(draws.below(FRIENDS));
            Draws { key: self.friends.stream(u64::from(vertex)), next: 2 * u64::from(friend) }.uniform()
        } else {
            draws.uniform()
        };
        let mut partner = self.vertex(x);
        while group.contains(&partner) {
            partner = (partner + 1) % self.options.vertices;
        }
        partner
    }

    /// Ticks from one edge to the next.
    fn gap(&self, draws: &mut Draws) -> u64 {
        libm::exp(draws.uniform() * self.gap) as u64
    }

    /// Adds the edges of conversation number `number`.
    fn conversation(&self, number: u64, length: u32, edges: &mut Vec<(u32, u32, i64)>) {
        let options = self.options;
        let mut draws = Draws { key: self.conversations.stream(number), next: 0 };
        let mut group = [0; GROUP];
        // Two vertices half of the time, else three or four.
        let size = match draws.below(10) {
            0..5 => 2,
            5..8 => 3,
            _ => GROUP,
        }
        .min(options.vertices as usize);
        group[0] = self.vertex(draws.uniform());
        for i in 1..size {
            group[i] = self.partner(group[i - 1], &group[..i], &mut draws);
        }

        let begin = edges.len();
        let mut time = 0u64;
        // Places in the group: where the edge before came from and went.
        let (mut from, mut to) = (size - 1, 0);
        for at in 0..length {
            if at > 0 && draws.happens(options.duplicates) {
                edges.extend_from_within(edges.len() - 1..);
                continue;
            }
            if at > 0 && !draws.happens(options.ties) {
                time = time.saturating_add(self.gap(&mut draws));
            }
            if draws.happens(options.loops) {
                edges.push((group[to], group[to], time as i64));
                continue;
            }
            let x = f64::from(uniform(draws.word()));
            (from, to) = match x {
                _ if at == 0 => (0, 1),
                x if x < options.replies => (to, from),
                x if x < options.replies + options.repeats => (from, to),
                // Mostly round the group, so that chains and cycles form; sometimes across it.
                _ => {
                    let skipped = if draws.happens(0.25) { draws.below(size as u32 - 1) as usize } else { 0 };
                    (to, (to + 1 + skipped) % size)
                }
            };
            edges.push((group[from], group[to], time as i64));
        }
        self.place(begin..edges.len(), time, edges, &mut draws);
    }

    /// Moves a conversation that begins at 0 and lasts `length` ticks to its time.
    fn place(&self, range: Range<usize>, length: u64, edges: &mut [(u32, u32, i64)], draws: &mut Draws) {
        let (span, resolution) = (self.options.span, self.options.resolution);
        let lasts = length.min(span);
        let begin = (draws.uniform() * (span - lasts + 1) as f64) as u64;
        for (_, _, time) in &mut edges[range] {
            // What is longer than the span is shrunk to it.
            let after = if length > span { (*time as u64 as u128 * u128::from(span) / u128::from(length)) as u64 } else { *time as u64 };
            let at = (begin.min(span - lasts) + after).min(span);
            *time = (at - at % resolution) as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motifs::exact::backtrack;
    use crate::motifs::{Motif, Ties};

    fn generate(options: &GenerateOptions) -> TemporalGraph {
        TemporalGraph::generate(options, &Work::quiet()).expect("makes")
    }

    #[test]
    fn a_graph_is_a_function_of_its_options() {
        let options = GenerateOptions::new(40_000);
        let graph = generate(&options);
        assert_eq!(graph, generate(&options));
        assert_ne!(graph.edges, generate(&GenerateOptions { seed: 1, ..options.clone() }).edges);
        // The first edges of the conversations are drawn with `libm` and integers alone, so that they are these everywhere.
        let first: Vec<_> = (0..3).map(|i| (graph.edges[i], graph.times[i])).collect();
        assert_eq!(first, [([8, 987], 900), ([987, 8], 905), ([8, 987], 1055)]);
    }

    #[test]
    fn graphs_have_what_their_options_ask_for() {
        let right = GenerateOptions::new(50_000);
        // One edge in eight begins a conversation.
        let is_share = |value: u64, share: f64| (value as f64 / 50_000.0 - share).abs() < 0.01;
        let found = generate(&GenerateOptions { loops: 0.2, duplicates: 0.1, ties: 0.0, ..right.clone() }).summary();
        assert!(is_share(found.loops, 0.2) && is_share(found.duplicates, 0.875 * 0.1), "{found:?}");
        let found = generate(&GenerateOptions { loops: 0.0, duplicates: 0.0, ties: 0.3, ..right.clone() }).summary();
        assert!(found.loops == 0 && is_share(found.edges - found.distinct_times, 0.875 * 0.3), "{found:?}");

        let (options, graph) = (&right, generate(&right));
        let found = graph.summary();
        assert_eq!((found.edges, found.vertices), (50_000, 50_000 / 32));
        let (first, last) = found.times.expect("there are edges");
        assert!(first >= 0 && last as u64 <= options.span && found.span() > options.span * 9 / 10, "{found:?}");
        // The busiest vertex has far more than its share, and pairs meet again.
        let mut degrees = vec![0u32; options.vertices as usize];
        graph.edges.iter().for_each(|[u, _]| degrees[*u as usize] += 1);
        assert!(degrees.iter().max() > Some(&(20 * 32)), "{:?}", degrees.iter().max());
        assert!(found.pairs * 3 < found.edges, "{found:?}");
        // Gaps between edges of a vertex are bursty: (deviation - mean) / (deviation + mean) is 0 where edges come at random, 1 at most.
        let times: Vec<f64> = (0..50_000).filter(|&i| graph.edges[i][0] == 5).map(|i| graph.times[i] as f64).collect();
        let gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((deviation - mean) / (deviation + mean) > 0.2, "{mean} {deviation} {}", gaps.len());

        let coarse = generate(&GenerateOptions { resolution: 3600, ..right });
        assert!(coarse.times.iter().all(|t| t % 3600 == 0));
    }

    #[test]
    fn long_motifs_occur() {
        let graph = generate(&GenerateOptions::new(20_000));
        for name in ["M3-0", "M4-0", "M4-1", "M4-2", "clique4", "E13"] {
            let motif = Motif::parse(name).expect("a motif");
            let count = backtrack(&graph, &motif, 86_400 * 7, Ties::Order, &Work::quiet()).expect("counts");
            assert!(count.value > 0, "{name}");
        }
    }

    #[test]
    fn edges_of_sizes_are_made() {
        for (edges, vertices, span, exponent, burst) in [
            (0, 2, 0, 0.0, 1.0),
            (1, 2, 0, 1.0, 1.0),
            (1000, 2, 5, 4.0, 1000.0),
            (777, 3, i64::MAX as u64, 1.0, 8.0),
            (50, u32::MAX - 1, 1, 2.5, 3.0),
        ] {
            let options = GenerateOptions { vertices, span, exponent, burst, gap: u64::MAX, ..GenerateOptions::new(edges) };
            if vertices < 100 {
                let graph = generate(&options);
                assert_eq!(graph.num_edges() as u64, edges);
                assert!(graph.times.iter().all(|&t| (0..=span as i64).contains(&t)));
            } else {
                // Without the graph, whose offsets need memory in proportion to the vertices.
                let mut made = Vec::new();
                Maker::new(&options).conversation(0, edges as u32, &mut made);
                assert!(made.len() as u64 == edges && made.iter().all(|(u, v, _)| *u < vertices && *v < vertices));
            }
        }
    }

    #[test]
    fn wrong_options_are_refused() {
        let right = GenerateOptions::new(10);
        for (options, part) in [
            (GenerateOptions { edges: 1 << 32, ..right.clone() }, "edges"),
            (GenerateOptions { vertices: 1, ..right.clone() }, "vertices"),
            (GenerateOptions { span: u64::MAX, ..right.clone() }, "span"),
            (GenerateOptions { resolution: 0, ..right.clone() }, "resolution"),
            (GenerateOptions { exponent: f64::NAN, ..right.clone() }, "exponent"),
            (GenerateOptions { burst: 0.5, ..right.clone() }, "conversation"),
            (GenerateOptions { loops: 1.5, ..right.clone() }, "loops"),
            (GenerateOptions { ties: -0.1, ..right.clone() }, "ties"),
            (GenerateOptions { replies: 0.6, repeats: 0.6, ..right.clone() }, "together"),
        ] {
            let error = TemporalGraph::generate(&options, &Work::quiet()).expect_err(part).to_string();
            assert!(error.contains(part) && error.contains("allowed"), "{error}");
        }
    }
}
