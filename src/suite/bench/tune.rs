//! Matrix products with measured configurations, in turns with those of the tables.
//!
//! What is measured here is forgotten afterwards: the tuning file is neither read nor written.

use std::time::Instant;

use super::{Amount, Bench, Probe, Row, timing};
use crate::capture::capture;
use crate::compiler::tune::{Autotune, Tuner};
use crate::compiler::{CompileOptions, Mode, Tuning};
use crate::error::Result;
use crate::ops::prelude::*;
use crate::progress::Work;
use kernels_gen::DType;

/// `m, n, k` of the products.
const SHAPES: [[usize; 3]; 6] =
    [[1024, 1024, 1024], [512, 512, 512], [257, 333, 1000], [4096, 64, 4096], [64, 4096, 1024], [2048, 2048, 2048]];
/// Multiplications past which a product is left out of quick measurements.
const QUICK_PRODUCTS: usize = 1 << 28;

pub(super) fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for shape in SHAPES {
        if !bench.choice.quick || shape.iter().product::<usize>() <= QUICK_PRODUCTS {
            rows.extend(measure(bench, shape)?);
        }
    }
    Ok(rows)
}

/// Rows of the tuned product, the product of the table, and the time that tuning took.
fn measure(bench: &Bench<'_>, [m, n, k]: [usize; 3]) -> Result<[Row; 3]> {
    let graph = capture(|t| t.input("a", [m, k], DType::F32)?.matmul(&t.input("b", [k, n], DType::F32)?))?;
    let name = format!("f32 {m}x{n}x{k}");
    let key = bench.key(&name);
    let options = CompileOptions { mode: Mode::Compiled, ..CompileOptions::default() };
    let mut tuning = Tuning::default();
    let start = Instant::now();
    let (target, work, seed) = (&bench.device.target(), &Work::quiet(), bench.choice.seed);
    let tuner = Tuner { target, options: &options, autotune: Autotune::On, seed, runner: bench.device, work };
    tuner.tune(&graph, &mut tuning)?;
    let tuning_ms = start.elapsed().as_secs_f64() * 1e3;
    bench.part.advance(0)?;
    let sessions = [bench.load_as(&graph, &CompileOptions { tuning, ..options.clone() }, key)?, bench.load_as(&graph, &options, key)?];
    let samples = timing::in_turns(&[sessions[0].executor(), sessions[1].executor()], bench.choice.quick, bench.part)?;
    let flops = 2 * (m * n * k) as u64;
    let row = |at: usize, by: &str| {
        let config = sessions[at].compiled().kernels().first().and_then(|k| k.choice.as_ref());
        let name = format!("{name}, {by} {}", config.map_or("none", |c| c.config.as_str()));
        bench.row(name, &sessions[at], samples.median_ms(at), Amount { count: flops, probe: Probe::Fma })
    };
    let tuned = Row { ratio: Some(samples.ratio(0, 1)), against: Some("table"), ..row(0, "tuned")? };
    let tuning = Row { name: format!("{name}, tuning"), median_ms: Some(tuning_ms), ..Row::default() };
    Ok([tuned, row(1, "table")?, tuning])
}
