//! The cases of `sublane selftest` on the adapter of the machine, at its own limits and at WebGPU's. Needs an adapter.

use sublane::device::{Device, DeviceOptions, LimitsMode};
use sublane::progress::Work;
use sublane::suite;

fn run(limits: LimitsMode) {
    let device = Device::open(&DeviceOptions { limits, ..DeviceOptions::from_env() }).expect("these tests need an adapter");
    let checks = suite::selftest(&device, 1, &Work::quiet()).expect("the device stays");
    let faults: Vec<String> = checks.iter().filter_map(|c| Some(format!("{}: {}", c.name, c.fault.as_ref()?))).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(!checks.is_empty());
}

#[test]
fn at_the_limits_of_the_adapter() {
    run(LimitsMode::Native);
}

#[test]
fn at_the_limits_of_webgpu() {
    run(LimitsMode::Webgpu);
}
