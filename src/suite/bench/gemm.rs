//! Matrix products, in turns with a hand-written kernel.

use std::sync::Arc;

use super::{Amount, Bench, Probe, Row, timing};
use crate::capture::capture;
use crate::compiler::Mode;
use crate::device::Executor;
use crate::error::Result;
use crate::ops::prelude::*;
use crate::plan::{ExecutionPlan, SlotRole};
use crate::session::Session;
use crate::shaders;
use kernels_gen::DType;

/// `m, n, k` of the products.
const SHAPES: [[usize; 3]; 5] = [[1024, 1024, 1024], [512, 512, 512], [257, 333, 1000], [8192, 32, 512], [2048, 2048, 2048]];
/// `m, n, k` of products with vectors, bound by the reading of the matrix.
const VECTORS: [[usize; 3]; 2] = [[4096, 1, 4096], [1, 4096, 4096]];
/// Multiplications past which a product is left out of quick measurements.
const QUICK_PRODUCTS: usize = 1 << 30;

pub(super) fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for shape in SHAPES {
        if !bench.choice.quick || shape.iter().product::<usize>() <= QUICK_PRODUCTS {
            rows.extend(measure(bench, shape)?);
        }
    }
    for shape in VECTORS {
        rows.push(vector(bench, shape)?);
    }
    Ok(rows)
}

/// A product with a vector, against the bandwidth of reading.
fn vector(bench: &Bench<'_>, [m, n, k]: [usize; 3]) -> Result<Row> {
    let graph = capture(|t| t.input("a", [m, k], DType::F32)?.matmul(&t.input("b", [k, n], DType::F32)?))?;
    let name = format!("f32 {m}x{n}x{k}");
    let session = bench.load(&graph, Mode::Compiled, bench.key(&name))?;
    let samples = timing::in_turns(&[session.executor()], bench.choice.quick, bench.part)?;
    let bytes = 4 * (m * k + k * n + m * n) as u64;
    bench.row(name, &session, samples.median_ms(0), Amount { count: bytes, probe: Probe::Read })
}

fn measure(bench: &Bench<'_>, shape: [usize; 3]) -> Result<Vec<Row>> {
    let [m, n, k] = shape;
    let graph = capture(|t| t.input("a", [m, k], DType::F32)?.matmul(&t.input("b", [k, n], DType::F32)?))?;
    let name = format!("f32 {m}x{n}x{k}");
    let session = bench.load(&graph, Mode::Compiled, bench.key(&name))?;
    let reference = reference(bench, &session, shape)?;
    let subjects: Vec<&Executor> = [session.executor()].into_iter().chain(&reference).collect();
    let samples = timing::in_turns(&subjects, bench.choice.quick, bench.part)?;
    let flops = 2 * (m * n * k) as u64;
    let mut row = bench.row(name.clone(), &session, samples.median_ms(0), Amount { count: flops, probe: Probe::Fma })?;
    if reference.is_none() {
        return Ok(vec![row]);
    }
    (row.ratio, row.against) = (Some(samples.ratio(0, 1)), Some("hand-written"));
    let ms = samples.median_ms(1);
    let gflops = flops as f64 / ms / 1e6;
    let hand_written = Row {
        name: format!("{name}, hand-written"),
        median_ms: Some(ms),
        gflops: Some(gflops),
        gbps: row.gbps.map(|rate| rate * row.median_ms.unwrap_or(ms) / ms),
        share: Some(gflops / bench.probes.fma_gflops),
        probe: row.probe,
        kernels: 1,
        submissions: 1,
        ..Row::default()
    };
    Ok(vec![row, hand_written])
}

/// The hand-written kernel on the session's operands; none for sizes its tiles do not divide.
fn reference(bench: &Bench<'_>, session: &Session, [m, n, k]: [usize; 3]) -> Result<Option<Executor>> {
    if m % 16 != 0 || n % 16 != 0 || k % 4 != 0 {
        return Ok(None);
    }
    let kernel = Arc::new(shaders::kernel("gemm_reference", &bench.device.target())?);
    let mut plan = ExecutionPlan::new();
    let slots = [("a", m * k), ("b", k * n), ("c", m * n)].map(|(name, elems)| plan.slot(name, 4 * elems as u64, SlotRole::State));
    let workgroups = [n.div_ceil(256) as u32, (m / 16) as u32, 1];
    plan.dispatch(&kernel, &slots, &[m as u32, n as u32, k as u32], workgroups);
    let executor = Executor::load(bench.device, &plan)?;
    for (slot, port) in slots.iter().zip(session.compiled().inputs()) {
        executor.write(*slot, &session.executor().read(port.slot)?)?;
    }
    Ok(Some(executor))
}
