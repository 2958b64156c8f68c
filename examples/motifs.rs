//! Counts temporal motifs of a generated graph: exactly, and by sampling paths.

use sublane::motifs::graph::GenerateOptions;
use sublane::motifs::{CountOptions, Method, Motif, TemporalGraph, Value, count};
use sublane::progress::Work;

fn main() -> sublane::Result<()> {
    let work = Work::quiet();
    let graph = TemporalGraph::generate(&GenerateOptions { seed: 1, ..GenerateOptions::new(20_000) }, &work)?;
    let day = 86_400;
    for name in ["M4-0", "E5", "0>1 1>0 0>1"] {
        let motif = Motif::parse(name)?;
        let exactly = count(&graph, &motif, &CountOptions::new(day), &work)?;
        let drawn = count(&graph, &motif, &CountOptions { method: Method::Samples(100_000), ..CountOptions::new(day) }, &work)?;
        let (Value::Exact(matches), Value::Estimate(estimate)) = (exactly.value, drawn.value) else { continue };
        let error = drawn.std_error.unwrap_or_default();
        println!("{name}: {matches} matches by {}; {estimate:.0} +- {error:.0} from {} draws", exactly.method.name(), drawn.samples);
    }
    Ok(())
}
