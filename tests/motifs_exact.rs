//! The exact counters of temporal motifs, enumeration among them, against the definition of a match, on thousands of small random
//! multigraphs.

use kernels_gen::threefry::Key;
use sublane::ErrorKind;
use sublane::motifs::{CountOptions, Method, Motif, Prune, TemporalGraph, Ties, Value, count, exact};
use sublane::progress::Work;

/// Matches by the definition: every increasing choice of edges, every condition looked at.
fn brute_force(graph: &TemporalGraph, motif: &Motif, delta: i64, ties: Ties) -> u64 {
    fn extend(graph: &TemporalGraph, motif: &Motif, delta: i64, ties: Ties, chosen: &mut Vec<usize>) -> u64 {
        if chosen.len() == motif.num_edges() {
            return u64::from(is_match(graph, motif, delta, ties, chosen));
        }
        let mut count = 0;
        for index in chosen.last().map_or(0, |last| last + 1)..graph.num_edges() {
            chosen.push(index);
            count += extend(graph, motif, delta, ties, chosen);
            chosen.pop();
        }
        count
    }
    extend(graph, motif, delta, ties, &mut Vec::new())
}

fn is_match(graph: &TemporalGraph, motif: &Motif, delta: i64, ties: Ties, chosen: &[usize]) -> bool {
    let times: Vec<i64> = chosen.iter().map(|&x| graph.times()[x]).collect();
    let increases = ties == Ties::Order || times.windows(2).all(|w| w[0] < w[1]);
    let within = i128::from(times[times.len() - 1]) - i128::from(times[0]) <= i128::from(delta);
    if !increases || !within {
        return false;
    }
    let mut images: Vec<Option<u32>> = vec![None; motif.num_vertices()];
    for (&x, edge) in chosen.iter().zip(motif.edges()) {
        for (&vertex, &image) in edge.iter().zip(&graph.edges()[x]) {
            match images[vertex as usize] {
                Some(known) if known != image => return false,
                _ => images[vertex as usize] = Some(image),
            }
        }
    }
    (0..images.len()).all(|i| images[i].is_some() && (0..i).all(|j| images[i] != images[j]))
}

/// Numbers below a bound, one after the other.
struct Draws(Key, u64);

impl Draws {
    fn below(&mut self, bound: u32) -> u32 {
        self.1 += 1;
        ((u64::from(self.0.word(self.1)) * u64::from(bound)) >> 32) as u32
    }
}

/// A graph of few vertices and fewer times than edges, so that loops, duplicates, parallel edges and ties abound.
fn random_graph(draws: &mut Draws) -> TemporalGraph {
    let vertices = 1 + draws.below(6);
    let edges = draws.below(17);
    let times = 1 + draws.below(20);
    let edge = |_| (draws.below(vertices), draws.below(vertices), i64::from(draws.below(times)) - 7);
    TemporalGraph::from_edges((0..edges).map(edge).collect(), vertices, 0).expect("in range")
}

/// A motif of up to 5 vertices and 6 edges; some have loops, some do not hang together.
fn random_motif(draws: &mut Draws) -> Motif {
    let vertices = 1 + u64::from(draws.below(5));
    let edges = 1 + draws.below(6);
    let loops = vertices == 1 || draws.below(4) == 0;
    let mut edge = || loop {
        let edge = [0; 2].map(|_: u64| u64::from(draws.below(vertices as u32)));
        if loops || edge[0] != edge[1] {
            return edge;
        }
    };
    let edges: Vec<[u64; 2]> = (0..edges).map(|_| edge()).collect();
    Motif::new("random", &edges).expect("few edges")
}

const GRAPHS: u64 = 6000;

/// The count by enumeration of the planner's anchor; `None` for a motif that has none.
fn enumerated(graph: &TemporalGraph, motif: &Motif, delta: i64, ties: Ties, prune: Option<Prune>) -> Option<u64> {
    let options = CountOptions { ties, method: Method::Enumerate, prune, ..CountOptions::new(delta) };
    match count(graph, motif, &options, &Work::quiet()) {
        Ok(counted) => match counted.value {
            Value::Exact(value) => Some(value),
            other => panic!("{other:?} is not exact"),
        },
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{motif}: {error}");
            None
        }
    }
}

#[test]
fn backtracking_and_enumeration_count_what_the_definition_counts() {
    let (mut nonzero, mut disconnected, mut loops, mut anchored) = (0, 0, 0, 0);
    for seed in 0..GRAPHS {
        let mut draws = Draws(Key::new(seed), 0);
        let graph = random_graph(&mut draws);
        let delta = i64::from(draws.below(24));
        // A motif at random seldom fits; one taken from the graph's own edges does.
        let motif = match seed % 2 {
            0 => random_motif(&mut draws),
            _ => motif_of(&graph, &mut draws),
        };
        for ties in [Ties::Order, Ties::Strict] {
            let expected = brute_force(&graph, &motif, delta, ties);
            let counted = exact::backtrack(&graph, &motif, delta, ties, &Work::quiet()).expect("counts");
            let what = format!("seed {seed}: {motif} within {delta}, {ties:?}, {:?} at {:?}", graph.edges(), graph.times());
            assert_eq!((counted.value, counted.saturated), (expected, false), "{what}");
            // Trees are not pruned.
            let prune = [None, Some(Prune::Off), Some(Prune::Pairs), Some(Prune::Rows)][(seed / 2 % 4) as usize];
            if let Some(value) = enumerated(&graph, &motif, delta, ties, prune) {
                assert_eq!(value, expected, "{what}, {prune:?}");
                anchored += u64::from(expected > 0);
            }
            nonzero += u64::from(expected > 0);
            disconnected += u64::from(expected > 0 && !motif.is_connected());
            loops += u64::from(expected > 0 && motif.edges().iter().any(|[a, b]| a == b));
        }
    }
    // The cases must be worth their time.
    assert!(nonzero > GRAPHS / 2 && disconnected > 100 && loops > 100, "{nonzero} {disconnected} {loops}");
    assert!(anchored > GRAPHS / 4, "{anchored}");
}

/// A motif that some of the graph's edges form, whatever their times.
fn motif_of(graph: &TemporalGraph, draws: &mut Draws) -> Motif {
    if graph.num_edges() == 0 {
        return random_motif(draws);
    }
    let wanted = 1 + draws.below(6) as usize;
    let mut edges: Vec<[u64; 2]> = Vec::new();
    let mut at = draws.below(graph.num_edges() as u32) as usize;
    while edges.len() < wanted && at < graph.num_edges() {
        edges.push(graph.edges()[at].map(u64::from));
        at += 1 + draws.below(2) as usize;
    }
    Motif::new("found", &edges).expect("few edges")
}

#[test]
fn the_programme_for_small_motifs_counts_what_the_definition_counts() {
    let mut nonzero = [[0; 6]; 6];
    for seed in 0..GRAPHS {
        let mut draws = Draws(Key::new(seed).stream(1), 0);
        let graph = random_graph(&mut draws);
        let delta = i64::from(draws.below(24));
        for ties in [Ties::Order, Ties::Strict] {
            let counted = exact::grid(&graph, delta, ties, &Work::quiet()).expect("counts");
            for (row, column) in (0..36).map(|at| (at / 6, at % 6)) {
                let motif = Motif::grid(row + 1, column + 1);
                let expected = brute_force(&graph, &motif, delta, ties);
                let what = format!("seed {seed}: {} within {delta}, {ties:?}, {:?} at {:?}", motif.name(), graph.edges(), graph.times());
                assert_eq!((counted[row][column].value, counted[row][column].saturated), (expected, false), "{what}");
                if seed % 36 == 6 * row as u64 + column as u64 {
                    assert_eq!(enumerated(&graph, &motif, delta, ties, None), Some(expected), "{what}, enumerated");
                }
                nonzero[row][column] += u64::from(expected > 0);
            }
        }
    }
    assert!(nonzero.as_flattened().iter().all(|&cases| cases > 1000), "{nonzero:?}");
}
