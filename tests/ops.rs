//! Every operation on the adapter of the machine against its reference value, compiled and eager. `SUBLANE_CASE=Softmax` runs the cases
//! whose names contain that.

mod device_common;

use device_common::open;
use sublane::Device;
use sublane::compiler::Mode;
use sublane::device::{DeviceOptions, LimitsMode};
use sublane::ops::cases;
use sublane::suite::ops::compare;

fn run(mode: Mode, device: &Device, every: usize) {
    let filter = std::env::var("SUBLANE_CASE").unwrap_or_default();
    let cases: Vec<_> = cases().into_iter().filter(|c| c.name.contains(&filter)).step_by(every).collect();
    let mut faults = Vec::new();
    for case in &cases {
        match compare(case, device, mode, 7) {
            Ok(None) => {}
            Ok(Some(fault)) => faults.push(format!("{}: {fault}", case.name)),
            Err(error) => faults.push(format!("{}: error: {error}", case.name)),
        }
    }
    assert!(faults.is_empty(), "{} of {} cases fail:\n{}", faults.len(), cases.len(), faults.join("\n"));
}

#[test]
fn compiled() {
    run(Mode::Compiled, &open(), 1);
}

#[test]
fn eager() {
    run(Mode::Eager, &open(), 1);
}

/// The other limits change schedules and tiles, which few cases of each operation meet; the self-test's test runs all of them compiled.
#[test]
fn eager_at_the_limits_of_webgpu() {
    let options = DeviceOptions { limits: LimitsMode::Webgpu, ..DeviceOptions::from_env() };
    run(Mode::Eager, &Device::open(&options).expect("these tests need an adapter"), 3);
}
