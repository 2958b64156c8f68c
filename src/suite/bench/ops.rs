//! Operations bound by memory, against the bandwidth of what they read and write.

use super::{Amount, Bench, Probe, Row, timing};
use crate::capture::{Traced, Tracer, capture};
use crate::compiler::Mode;
use crate::error::Result;
use crate::ops::prelude::*;
use kernels_gen::DType;

/// Elements of the pointwise operands: buffers of the 16 MiB that the probes use.
const ELEMS: usize = 4 << 20;
/// Shape of what is reduced along its rows, 16 MiB too.
const ROWS: [usize; 2] = [4096, 1024];

type Build = fn(&Tracer) -> Result<Traced>;

/// Name, graph, and the probe with the same traffic.
const OPS: &[(&str, Build, Probe)] = &[
    ("add 4M", add, Probe::TwoReadOneWrite),
    ("chain of six 4M", chain, Probe::TwoReadOneWrite),
    ("row sum 4096x1024", |t| rows(t)?.sum(&[1], false), Probe::Read),
    ("softmax 4096x1024", |t| rows(t)?.softmax(1), Probe::Copy),
    ("layer norm 4096x1024", layer_norm, Probe::Copy),
];

fn pair(t: &Tracer) -> Result<(Traced, Traced)> {
    Ok((t.input("x", [ELEMS], DType::F32)?, t.input("y", [ELEMS], DType::F32)?))
}

fn rows(t: &Tracer) -> Result<Traced> {
    t.input("x", ROWS, DType::F32)
}

fn add(t: &Tracer) -> Result<Traced> {
    let (x, y) = pair(t)?;
    x.add(&y)
}

/// `relu((x + y) * x - y) * 0.5 + 1`.
pub(super) fn chain(t: &Tracer) -> Result<Traced> {
    let (x, y) = pair(t)?;
    x.add(&y)?.mul(&x)?.sub(&y)?.relu()?.mul_scalar(0.5)?.add_scalar(1.0)
}

fn layer_norm(t: &Tracer) -> Result<Traced> {
    let [scale, bias] = ["scale", "bias"].map(|name| t.input(name, [ROWS[1]], DType::F32));
    rows(t)?.layer_norm(&scale?, Some(&bias?), 1, 1e-5)
}

pub(super) fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &(name, build, probe) in OPS {
        let session = bench.load(&capture(build)?, Mode::Compiled, bench.key(name))?;
        let samples = timing::in_turns(&[session.executor()], bench.choice.quick, bench.part)?;
        let bytes = session.compiled().kernels().iter().map(|k| k.bytes).sum();
        rows.push(bench.row(name.into(), &session, samples.median_ms(0), Amount { count: bytes, probe })?);
    }
    Ok(rows)
}
