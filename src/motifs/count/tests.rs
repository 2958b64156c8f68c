use super::*;
use crate::motifs::estimate::{Layout, replicates};
use kernels_gen::threefry::Key;

/// A random graph with ties, loops and duplicates.
pub(in crate::motifs) fn graph(seed: u64, vertices: u32, edges: u64, times: u64) -> TemporalGraph {
    let key = Key::new(seed);
    let word = |n: u64, below: u64| ((u64::from(key.word(n)) * below) >> 32) as u32;
    // Squares of uniform numbers: few vertices have many edges.
    let vertex = |n: u64| (word(n, u64::from(vertices)) * word(n + 1, u64::from(vertices))) / vertices;
    let edges = (0..edges).map(|i| (vertex(6 * i), vertex(6 * i + 2), i64::from(word(6 * i + 4, times))));
    TemporalGraph::from_edges(edges.collect(), vertices, 0).expect("builds")
}

pub(in crate::motifs) fn options(delta: i64, method: Method) -> CountOptions {
    CountOptions { method, ..CountOptions::new(delta) }
}

fn counted(graph: &TemporalGraph, motif: &str, options: &CountOptions) -> Counted {
    count(graph, &Motif::parse(motif).expect("a motif"), options, &Work::quiet()).expect("counts")
}

fn exact(graph: &TemporalGraph, motif: &str, delta: i64, ties: Ties) -> u64 {
    backtrack(graph, &Motif::parse(motif).expect("a motif"), delta, ties, &Work::quiet()).expect("counts").value
}

#[test]
fn auto_and_enumeration_are_exact_and_say_so() {
    let graph = graph(1, 12, 300, 200);
    for motif in ["M4-0", "M3-0", "E5", "E6", "E13", "G11", "0>1 1>0 0>1", "0>1 1>1 1>2", "0>1"] {
        for ties in [Ties::Order, Ties::Strict] {
            let expected = exact(&graph, motif, 30, ties);
            for method in [Method::Auto, Method::Enumerate] {
                let found = counted(&graph, motif, &CountOptions { ties, ..options(30, method) });
                assert_eq!((found.value, found.method), (Value::Exact(expected), How::Enumerate), "{motif}");
                assert_eq!((found.std_error, found.ci95), (Some(0.0), Some([expected as f64; 2])));
                assert_eq!(found.ended_by, (method == Method::Auto).then_some(EndedBy::Exact));
                assert_eq!(Some(found.samples), found.w_pruned);
                assert!(found.w >= found.w_pruned && found.nonzero <= found.valid && found.valid <= found.samples);
            }
        }
    }
    let by_exact = counted(&graph, "M4-0", &options(30, Method::Exact));
    assert_eq!((by_exact.value, by_exact.method), (Value::Exact(exact(&graph, "M4-0", 30, Ties::Order)), How::Backtrack));
    assert_eq!((by_exact.anchor, by_exact.w, by_exact.prune), (None, None, None));
}

#[test]
fn every_anchor_and_pruning_can_be_asked_for() {
    let graph = graph(2, 12, 200, 150);
    for motif in ["M4-0", "M3-1", "E5"] {
        let expected = exact(&graph, motif, 40, Ties::Order);
        let parsed = Motif::parse(motif).expect("named");
        for anchor in Anchor::all_paths(&parsed).into_iter().chain(Anchor::all_trees(&parsed, 6)) {
            for prune in [Prune::Off, Prune::Pairs, Prune::Rows] {
                let wanted = CountOptions { anchor: Some(anchor.clone()), prune: Some(prune), ..options(40, Method::Enumerate) };
                let found = count(&graph, &parsed, &wanted, &Work::quiet());
                if anchor.is_tree() && prune != Prune::Off {
                    assert_eq!(found.expect_err("no pruning of trees").kind(), ErrorKind::Unsupported);
                    continue;
                }
                let found = found.expect("counts");
                assert_eq!((found.value, found.anchor, found.prune), (Value::Exact(expected), Some(anchor.clone()), Some(prune)));
            }
        }
    }
}

#[test]
fn estimates_are_unbiased_and_their_errors_true() {
    let graph = graph(3, 30, 1500, 1000);
    for (motif, delta, prune, samples) in [
        ("M4-0", 80, Prune::Off, 20_000),
        ("M4-2", 250, Prune::Off, 200_000),
        ("E3", 80, Prune::Rows, 6_400),
        ("E6", 20, Prune::Off, 20_000),
    ] {
        let expected = exact(&graph, motif, delta, Ties::Order) as f64;
        let (mut errors, mut covered, mut variance) = (0.0, 0, 0.0);
        let parsed = Motif::parse(motif).expect("named");
        // The first anchor that is one: no pilots.
        let anchor = Anchor::all_paths(&parsed).into_iter().chain(Anchor::all_trees(&parsed, 1)).next();
        const SEEDS: u64 = 64;
        for seed in 0..SEEDS {
            let wanted = CountOptions { seed, prune: Some(prune), anchor: anchor.clone(), ..options(delta, Method::Samples(samples)) };
            let found = counted(&graph, motif, &wanted);
            let Value::Estimate(estimate) = found.value else { panic!("{motif} was counted") };
            assert!(found.nonzero >= 100, "{motif}: {}", found.nonzero);
            let drawn = found.samples;
            assert!(
                drawn <= samples && drawn >= samples / 2 - 32 && Some(drawn / 32) < found.w_pruned,
                "{motif}: {drawn} of {:?}",
                found.w_pruned
            );
            let error = found.std_error.expect("32 replicates");
            let [low, high] = found.ci95.expect("32 replicates");
            errors += estimate - expected;
            variance += error * error;
            covered += u32::from(low <= expected && expected <= high);
        }
        let off = errors / variance.sqrt();
        assert!(off.abs() < 4.0, "{motif}: {off} standard errors");
        // 95 % of 64 are 60.8, with a deviation of 1.74.
        assert!(covered >= 54, "{motif}: {covered} of {SEEDS}");
    }
}

#[test]
fn what_was_drawn_is_what_is_said() {
    let graph = graph(4, 30, 1500, 1000);
    let anchor = Some(Anchor::parse("1:0,2", &Motif::parse("M4-0").expect("named")).expect("legal"));
    let with = |samples| counted(&graph, "M4-0", &CountOptions { anchor: anchor.clone(), ..options(80, Method::Samples(samples)) });
    let few = with(5);
    assert_eq!((few.samples, few.method), (32, How::Sample));
    assert!(few.warnings.iter().any(|w| w.contains("under 100")), "{:?}", few.warnings);
    // As many strata as paths: every replicate counts all.
    let all = with(u64::MAX);
    let expected = exact(&graph, "M4-0", 80, Ties::Order) as f64;
    assert_eq!((all.value, all.std_error, Some(all.samples)), (Value::Estimate(expected), Some(0.0), all.w_pruned.map(|w| 32 * w)));
}

#[test]
fn a_budget_too_small_is_sampled_and_a_fixed_seed_repeats() {
    let graph = graph(3, 30, 1500, 1000);
    let wanted = CountOptions { budget: 3200, prune: Some(Prune::Off), ..options(80, Method::Auto) };
    let mut first = counted(&graph, "M4-0", &wanted);
    assert_eq!((first.method, first.ended_by), (How::Sample, Some(EndedBy::Budget)));
    assert!(first.samples <= 3200 && first.w.is_some_and(|w| w > 3200));
    let second = counted(&graph, "M4-0", &wanted);
    (first.seconds, first.planning_seconds) = (second.seconds, second.planning_seconds);
    assert_eq!(first, second);
    let other = counted(&graph, "M4-0", &CountOptions { seed: 1, ..wanted });
    assert_ne!(first.value, other.value);
}

#[test]
fn an_error_is_reached_or_the_budget_ends_it() {
    let graph = graph(6, 40, 20_000, 20_000);
    let motif = "M4-0";
    let base = CountOptions { prune: Some(Prune::Off), ..options(400, Method::Error(0.05)) };
    let expected = exact(&graph, motif, 400, Ties::Order) as f64;
    let found = counted(&graph, motif, &base);
    assert_eq!((found.method, found.ended_by), (How::Sample, Some(EndedBy::Goal)), "{found:?}");
    let Value::Estimate(estimate) = found.value else { panic!("sampled") };
    let error = found.std_error.expect("32 replicates");
    assert!(error <= 0.05 * estimate && found.nonzero >= 500 && (estimate - expected).abs() < 5.0 * error);
    // What the rounds before had drawn is not part of the result.
    assert!(found.notes.iter().any(|n| n.contains(&format!("{} draws", found.samples)) || n.contains(&found.samples.to_string())));
    let ended = counted(&graph, motif, &CountOptions { budget: 20_000, method: Method::Error(0.0001), ..base.clone() });
    assert_eq!((ended.method, ended.ended_by), (How::Sample, Some(EndedBy::Budget)));
    assert!(ended.warnings.iter().any(|w| w.contains("before the error of 0.01%")), "{:?}", ended.warnings);
    let exactly = counted(&graph, motif, &CountOptions { method: Method::Error(1e-9), budget: u64::MAX, prune: None, ..base });
    assert_eq!((exactly.value, exactly.ended_by), (Value::Exact(expected as u64), Some(EndedBy::Exact)));
}

#[test]
fn the_plan_is_the_same_each_time_and_takes_the_best() {
    let graph = graph(7, 30, 3000, 2000);
    let motif = Motif::parse("M4-2").expect("named");
    let wanted = CountOptions { seed: 3, ..options(100, Method::Samples(100_000)) };
    let mut table = plan(&graph, &motif, &wanted, &Work::quiet()).expect("plans");
    let again = plan(&graph, &motif, &wanted, &Work::quiet()).expect("plans");
    table.seconds = again.seconds;
    assert_eq!(table, again);
    assert_eq!(table.rows.len(), Anchor::all_paths(&motif).len());
    assert!(table.rows.iter().all(|row| row.w.is_some() && row.w_pairs <= row.w && row.pilots > 0));
    let chosen: Vec<_> = table.rows.iter().filter(|row| row.chosen).collect();
    assert_eq!(chosen.len(), 1);
    assert_eq!((&chosen[0].anchor, chosen[0].w_rows.is_some()), (&table.anchor, true));
    assert!(table.rows.iter().all(|row| row.chosen != row.dropped.is_some()));
    // The count takes the anchor of the plan.
    assert_eq!(count(&graph, &motif, &wanted, &Work::quiet()).expect("counts").anchor.as_ref(), Some(&table.anchor));
}

#[test]
fn pilots_that_see_nothing_say_so() {
    // No cycle: every edge goes to a larger vertex.
    let edges = (0..4000u32).map(|i| (i % 40, i % 40 + 1 + i / 40 % 5, i64::from(i / 4))).collect();
    let graph = TemporalGraph::from_edges(edges, 50, 0).expect("builds");
    let found = counted(&graph, "M4-0", &CountOptions { prune: Some(Prune::Off), ..options(400, Method::Samples(1000)) });
    assert_eq!((found.value, found.nonzero, found.r1), (Value::Estimate(0.0), 0, None));
    assert!(found.notes.iter().any(|n| n.contains("saw no match")), "{:?}", found.notes);
}

#[test]
fn motifs_without_an_anchor_are_counted_exactly_or_refused() {
    let graph = graph(8, 8, 60, 40);
    for (motif, why) in [("0>1 2>3", "not connected"), ("0>0 0>1 1>1", "loops"), ("0>1 1>2 2>3 3>4 4>5 5>6 6>7 7>8", "9 vertices")] {
        let found = counted(&graph, motif, &options(10, Method::Auto));
        assert_eq!((found.value, found.method), (Value::Exact(exact(&graph, motif, 10, Ties::Order)), How::Backtrack));
        assert!(found.notes.iter().any(|n| n.contains(why)), "{:?}", found.notes);
        for method in [Method::Samples(10), Method::Enumerate, Method::Error(0.1)] {
            let error = count(&graph, &Motif::parse(motif).expect("edges"), &options(10, method), &Work::quiet()).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(why) && error.to_string().contains("--exact"), "{error}");
        }
    }
}

#[test]
fn wrong_options_are_refused_with_the_reason() {
    let graph = graph(9, 8, 60, 40);
    let motif = Motif::parse("M4-0").expect("named");
    let base = options(10, Method::Auto);
    let foreign = Anchor::parse("4:0,8", &Motif::parse("M4-1").expect("named")).expect("legal");
    let shard = Some(Shard { index: 1, of: 2 });
    for (wanted, why) in [
        (CountOptions { delta: -1, ..base.clone() }, "delta is -1"),
        (CountOptions { budget: 0, ..base.clone() }, "path budget is 0"),
        (CountOptions { method: Method::Samples(0), ..base.clone() }, "0 samples"),
        (CountOptions { method: Method::Error(0.0), ..base.clone() }, "error of 0"),
        (CountOptions { method: Method::Error(1.5), ..base.clone() }, "error of 1.5"),
        (CountOptions { method: Method::Error(f64::NAN), ..base.clone() }, "error of NaN"),
        (CountOptions { method: Method::Error(0.1), shard, ..base.clone() }, "cannot be split"),
        (CountOptions { method: Method::Exact, shard, ..base.clone() }, "cannot be split"),
        (CountOptions { method: Method::Exact, prune: Some(Prune::Off), ..base.clone() }, "numbers no paths"),
        (CountOptions { shard: Some(Shard { index: 3, of: 2 }), ..base.clone() }, "no shard"),
        (CountOptions { anchor: Some(foreign), ..base.clone() }, "no anchor of motif"),
        (CountOptions { memory_limit_bytes: 1000, ..base.clone() }, "1000 may be used"),
    ] {
        let error = count(&graph, &motif, &wanted, &Work::quiet()).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(plan(&graph, &motif, &options(10, Method::Exact), &Work::quiet()).is_err());
}

#[test]
fn cancelled_work_stops() {
    let graph = graph(9, 8, 60, 40);
    let work = Work::quiet();
    work.cancel().cancel();
    for method in [Method::Auto, Method::Samples(100), Method::Error(0.1)] {
        let error = count(&graph, &Motif::parse("M4-0").expect("named"), &options(10, method), &work).expect_err("cancelled");
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
}

#[test]
fn graphs_of_nothing_have_no_match() {
    let none = TemporalGraph::from_edges(Vec::new(), 0, 0).expect("builds");
    let loops = TemporalGraph::from_edges(vec![(0, 0, 1), (0, 0, 2)], 1, 0).expect("builds");
    let one = TemporalGraph::from_edges(vec![(0, 1, 1)], 2, 0).expect("builds");
    for graph in [&none, &loops, &one] {
        for method in [Method::Auto, Method::Exact, Method::Enumerate, Method::Samples(100), Method::Error(0.1)] {
            let found = counted(graph, "M4-0", &options(0, method));
            assert!(matches!(found.value, Value::Exact(0) | Value::Estimate(0.0)), "{found:?}");
            assert_eq!((found.std_error, found.ci95), (Some(0.0), Some([0.0; 2])));
        }
    }
    assert_eq!(counted(&one, "0>1", &options(0, Method::Auto)).value, Value::Exact(1));
}

#[test]
fn a_count_past_64_bits_is_said_to_be() {
    // 40 edges each way between two vertices, taken 20 of them at a time, in many ways.
    let edges = (0..4000).map(|i| (0, 1, i)).collect();
    let graph = TemporalGraph::from_edges(edges, 2, 0).expect("builds");
    let motif = ["0>1"; 12].join(" ");
    let found = counted(&graph, &motif, &options(5000, Method::Auto));
    assert_eq!((found.value, found.saturated), (Value::Exact(u64::MAX), true));
    assert!(!found.warnings.is_empty());
}

#[test]
fn draws_from_paths_are_uniform() {
    // Path numbers drawn by the strata of all replicates, over many seeds: chi-square with 99 degrees.
    let (total, bins) = (1000u64, 100usize);
    for samples in [7 * 32, 32, 300 * 32] {
        let mut seen = vec![0u64; bins];
        let mut drawn = 0;
        let layout = Layout::new(total, samples / 32);
        for seed in 0..400 {
            for draws in replicates(seed, Purpose::Estimate, layout, None).map(|(_, draws)| draws) {
                for id in draws.range.filter_map(|i| draws.strata.draw(i)).filter(|&id| id < total) {
                    seen[(id * bins as u64 / total) as usize] += 1;
                    drawn += 1;
                }
            }
        }
        let expected = drawn as f64 / bins as f64;
        let chi: f64 = seen.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
        // The 99.99 % quantile is 161; strata make it smaller, never larger.
        assert!(chi < 161.0, "{samples}: {chi}");
    }
}
