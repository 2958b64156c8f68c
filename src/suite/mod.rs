//! Cases that prove an adapter (kernels against their twins, operations and models against their references), benchmarks, and what they
//! share. `selftest`, `demo`, `bench` and the device tests run the same ones.

use crate::device::Device;
use crate::error::Result;
use crate::progress::Work;
use std::time::Instant;

pub mod bench;
pub mod eval;
pub mod inputs;
pub mod ops;
pub mod profile;
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

/// Runs every case there is on `device`. Only a cancellation or a lost device ends it early.
pub fn selftest(device: &Device, seed: u64, work: &Work<'_>) -> Result<Vec<Check>> {
    let cases = twins::cases(&device.target(), seed)?;
    let part = work.part("selftest", cases.len() as u64);
    let mut checks = Vec::new();
    for case in cases {
        checks.push(Check::of(&case.name, || case.compare(device)));
        device.check_alive()?;
        part.advance(1)?;
    }
    Ok(checks)
}
