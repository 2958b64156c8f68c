//! Every operation on a real adapter against its reference value.

use sublane::Device;
use sublane::compiler::Mode;
use sublane::device::DeviceOptions;
use sublane::ops::cases;
use sublane::suite::ops::compare;

fn run(mode: Mode, device: &Device) {
    let filter = std::env::var("SUBLANE_CASE").unwrap_or_default();
    let cases: Vec<_> = cases().into_iter().filter(|c| c.name.contains(&filter)).collect();
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
    let device = Device::open(&DeviceOptions::from_env()).expect("an adapter");
    run(Mode::Compiled, &device);
}
