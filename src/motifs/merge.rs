//! Putting the shards of a run together.

use crate::error::{Error, Result};
use crate::motifs::count::{Counted, How};
use crate::motifs::estimate::{NUM_REPLICATES, Replicate};

/// The result that the run without shards would have given, bit for bit; `seconds` add up. Each shard comes with the name it goes by in
/// errors, such as its file.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) naming the shards that are missing, given twice, no shards at all, or of
/// another run.
pub fn merge(shards: &[(String, Counted)]) -> Result<Counted> {
    let Some((first_name, first)) = shards.first() else {
        return Err(Error::invalid(
            "no shard is given; give the report of each shard, made with `sublane motifs count --shard i/n --json`",
        ));
    };
    let part = |name: &str, counted: &Counted| {
        let part = counted.part.clone();
        part.ok_or_else(|| Error::invalid(format!("`{name}` is no shard: it was counted without --shard, there is nothing to merge")))
    };
    let first_part = part(first_name, first)?;
    let of = first_part.shard.of;
    let mut names: Vec<Option<&str>> = vec![None; of as usize];
    let mut replicates: Vec<Replicate> = Vec::new();
    for (name, counted) in shards {
        let own = part(name, counted)?;
        let differs = [
            ("motif", counted.motif.edges() != first.motif.edges()),
            ("delta", (counted.delta, counted.decimals) != (first.delta, first.decimals)),
            ("ties", counted.ties != first.ties),
            ("method", counted.method != first.method),
            ("anchor", counted.anchor != first.anchor),
            ("prune", counted.prune != first.prune),
            ("w", counted.w != first.w),
            ("w_pruned", counted.w_pruned != first.w_pruned),
            // No random number is drawn where every path is counted.
            ("seed", counted.seed != first.seed && first.method == How::Sample),
            ("samples", own.samples != first_part.samples),
            ("number of shards", own.shard.of != of),
            ("graph", own.graph != first_part.graph),
        ];
        let differs: Vec<&str> = differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what).collect();
        if !differs.is_empty() {
            return Err(Error::invalid(format!(
                "`{name}` is of another run than `{first_name}`: they differ in {}; merge the shards of one run",
                differs.join(", ")
            )));
        }
        let expected = expected(&own.replicates, own.shard.index, of, first.method);
        if !expected {
            return Err(Error::invalid(format!("`{name}` does not hold the replicates of shard {}; make it again", own.shard)));
        }
        match names.get_mut(own.shard.index as usize - 1) {
            Some(Some(other)) => {
                return Err(Error::invalid(format!("shard {} is given twice, in `{other}` and `{name}`; give each shard once", own.shard)));
            }
            Some(free) => *free = Some(name),
            None => return Err(Error::invalid(format!("`{name}` says that it is shard {}, which cannot be", own.shard))),
        }
        replicates.extend(own.replicates);
    }
    let missing: Vec<String> = (1..=of).filter(|&i| names[i as usize - 1].is_none()).map(|i| format!("{i}/{of}")).collect();
    if !missing.is_empty() {
        return Err(Error::invalid(format!("shards {} are missing; give all {of} shards", missing.join(", "))));
    }
    replicates.sort_by_key(|r| r.index);
    let layouts = replicates.windows(2).all(|pair| (pair[0].width, pair[0].strata) == (pair[1].width, pair[1].strata));
    if first.method == How::Sample && !layouts {
        return Err(Error::invalid("the shards cut the paths into strata of different widths; merge the shards of one run"));
    }

    let mut merged = first.clone();
    merged.part = None;
    merged.warnings.clear();
    merged.notes.retain(|note| !note.starts_with("this is shard "));
    let total = first.w_pruned.unwrap_or(0);
    match first.method {
        How::Enumerate => {
            let all = replicates.iter().fold(None, |all: Option<Replicate>, r| Some(all.map_or(*r, |all| all.with(r))));
            let Some(all) = all.filter(|all| all.strata == total) else {
                return Err(Error::invalid(format!("the shards together do not hold all {total} paths; make them again")));
            };
            merged.set_enumerated(total, &all);
        }
        How::Sample => merged.set_sampled(total, &replicates),
        How::Backtrack | How::Grid => {
            return Err(Error::invalid(format!("`{first_name}` was counted by {}, which has no shards", first.method.name())));
        }
    }
    merged.seconds = shards.iter().map(|(_, c)| c.seconds).sum();
    merged.planning_seconds = shards.iter().map(|(_, c)| c.planning_seconds).sum();
    Ok(merged)
}

/// Whether those are the replicates of a shard.
fn expected(replicates: &[Replicate], index: u32, of: u32, method: How) -> bool {
    let indices = replicates.iter().map(|r| r.index);
    match method {
        How::Enumerate => indices.eq([index - 1]),
        _ => indices.eq((0..NUM_REPLICATES).filter(|r| r % of == index - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::motifs::count::tests::{graph, options};
    use crate::motifs::{Method, Motif, Shard, count};
    use crate::progress::Work;

    fn shards(method: Method, of: u32) -> (Counted, Vec<(String, Counted)>) {
        let (graph, motif) = (graph(5, 40, 600, 400), Motif::parse("M4-0").expect("named"));
        let mut options = options(150, method);
        let whole = count(&graph, &motif, &options, &Work::quiet()).expect("counts");
        let shard = |index: u32| {
            options.shard = Some(Shard::new(index, of).expect("legal"));
            (format!("{index}.json"), count(&graph, &motif, &options, &Work::quiet()).expect("counts"))
        };
        (whole, (1..=of).map(shard).collect())
    }

    #[test]
    fn shards_together_are_the_run_without_shards() {
        for method in [Method::Samples(3200), Method::Enumerate, Method::Auto] {
            for of in [1, 3, 32] {
                let (mut whole, mut shards) = shards(method, of);
                assert!(whole.nonzero > 0);
                shards.reverse();
                let merged = merge(&shards).expect("merges");
                (whole.seconds, whole.planning_seconds) = (merged.seconds, merged.planning_seconds);
                assert_eq!(merged, whole, "{method:?} {of}");
            }
        }
    }

    #[test]
    fn what_is_no_set_of_shards_is_refused_by_name() {
        let (whole, good) = shards(Method::Samples(640), 4);
        let refused = |shards: Vec<(String, Counted)>| merge(&shards).expect_err("refused").to_string();
        assert!(refused(Vec::new()).contains("no shard is given"));
        assert!(refused(vec![("w.json".into(), whole)]).contains("`w.json` is no shard"));
        assert!(refused(vec![good[0].clone(), good[2].clone()]).contains("shards 2/4, 4/4 are missing"));
        let mut twice = good.clone();
        twice[1] = ("again.json".into(), good[0].1.clone());
        let error = refused(twice);
        assert!(error.contains("shard 1/4 is given twice, in `1.json` and `again.json`"), "{error}");
        let with = |change: &dyn Fn(&mut Counted)| {
            let mut changed = good.clone();
            change(&mut changed[2].1);
            refused(changed)
        };
        type Change = fn(&mut Counted);
        let changes: [(&str, Change); 6] = [
            ("seed", |c| c.seed += 1),
            ("delta", |c| c.delta += 1),
            ("graph", |c| c.part.as_mut().expect("shard").graph.hash.push('0')),
            ("samples", |c| c.part.as_mut().expect("shard").samples += 1),
            ("motif", |c| c.motif = Motif::parse("M4-1").expect("named")),
            ("anchor", |c| c.anchor = None),
        ];
        for (what, change) in changes {
            let error = with(&change);
            assert!(error.contains(&format!("`3.json` is of another run than `1.json`: they differ in {what}")), "{error}");
        }
        assert!(with(&|c| c.part.as_mut().expect("shard").replicates[0].index = 9).contains("`3.json` does not hold"));
        assert!(with(&|c| c.part.as_mut().expect("shard").replicates[0].width += 1).contains("different widths"));
        let (_, mut counted) = shards(Method::Enumerate, 2);
        counted[0].1.part.as_mut().expect("shard").replicates[0].strata -= 1;
        assert!(refused(counted).contains("do not hold all"));
    }
}
