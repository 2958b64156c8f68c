//! Cases that prove an adapter (kernels against their twins, operations and models against their references), benchmarks, and what they
//! share. `selftest`, `demo`, `bench` and the device tests run the same ones.

use crate::compiler::Mode;
use crate::device::{Device, Probes};
use crate::error::Result;
use crate::progress::Work;
use std::time::Instant;

pub mod bench;
pub mod bitset;
pub mod eval;
pub mod functions;
pub mod inputs;
pub mod motifs;
pub mod networks;
pub mod ops;
pub mod profile;
pub mod quantised;
pub mod samples;
pub mod twins;

/// The result of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// Why it does not hold, or `None` if it does.
    pub fault: Option<String>,
    /// Time it took on the host, all included, in milliseconds.
    pub ms: f64,
}

impl Check {
    /// Runs `case`, which returns what does not hold. A case that cannot run has failed.
    pub fn of(name: impl Into<String>, case: impl FnOnce() -> Result<Option<String>>) -> Self {
        let start = Instant::now();
        let fault = case().unwrap_or_else(|error| Some(error.to_string()));
        Check { name: name.into(), fault, ms: start.elapsed().as_secs_f64() * 1e3 }
    }
}

/// Runs every case there is on `device`: hand-written kernels against their twins, operations of all element types and shape classes
/// against their references, products of packed operands, and the probes. Only a cancellation or a lost device ends it early.
pub fn selftest(device: &Device, seed: u64, work: &Work<'_>) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    {
        let cases = twins::cases(&device.target(), seed)?;
        let part = work.part("kernels", cases.len() as u64);
        for case in cases {
            checks.push(Check::of(&case.name, || case.compare(device)));
            device.check_alive()?;
            part.advance(1)?;
        }
    }
    checks.extend(ops::checks(device, Mode::Compiled, seed, work)?);
    checks.extend(quantised::checks(device, seed, work)?);
    checks.push(Check::of("a compiled function, four sizes", || {
        let error = functions::trial(device, kernels_gen::threefry::Key::new(seed))?.error;
        Ok((error.is_nan() || error > samples::TOLERANCE).then(|| format!("relative error {error:.1e}")))
    }));
    device.check_alive()?;
    checks.push(Check::of("probes of arithmetic, memory and dispatch", || probes(device, work)));
    device.check_alive()?;
    work.cancel().check()?;
    Ok(checks)
}

/// Says which probe gives what no adapter can have.
fn probes(device: &Device, work: &Work<'_>) -> Result<Option<String>> {
    let probes = Probes::run(device, work)?;
    let rates = [("read", probes.read_gbps), ("write", probes.write_gbps), ("copy", probes.copy_gbps), ("2r1w", probes.r2w1_gbps)];
    let rates = rates.into_iter().flat_map(|(name, rates)| rates.map(|rate| (name.to_string(), rate)));
    let fma = probes.fma.iter().map(|probe| (probe.name.to_string(), probe.gflops));
    let wrong = |(name, rate): (String, f64)| (!(rate.is_finite() && rate > 0.0)).then(|| format!("`{name}` measures {rate}"));
    let wrong: Vec<String> = rates.chain(fma).filter_map(wrong).collect();
    Ok((!wrong.is_empty()).then(|| wrong.join(", ")))
}
