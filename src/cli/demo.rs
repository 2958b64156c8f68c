//! `sublane demo`: kernels on the adapter, their answers compared with the processor's. Needs no data.

use super::options::Options;
use super::output::Outcome;
use sublane::Result;
use sublane::kernels_gen::threefry::Key;
use sublane::suite::{Check, twins};

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let device = super::device::open(options)?;
    let target = device.target();
    let key = Key::new(options.seed);
    let cases = [
        twins::threefry_fill("threefry_fill", &target, "1,000,001 random words", key.stream(0), 1_000_001, 0)?,
        twins::scale_add(&target, "y = 2.5 x + y, 1,000,003 elements", key.stream(1), 1_000_003)?,
    ];
    let checks = cases.map(|case| Check::of(&case.name, || case.compare(&device)));
    super::selftest::finish(super::device::report("demo", &device, options), &device, &checks, options)
}
