//! Every operation on the adapter of the machine against its reference value, compiled and eager. `SUBLANE_CASE=Softmax` runs the cases
//! whose names contain that.

mod device_common;

use device_common::open;
use kernels_gen::threefry::Key;
use sublane::capture::capture;
use sublane::compiler::{CompileOptions, Mode, compile};
use sublane::device::{DeviceOptions, LimitsMode};
use sublane::graph::ReduceOp;
use sublane::ops::cases;
use sublane::ops::prelude::*;
use sublane::ops::scatter::Update;
use sublane::suite::ops::compare;
use sublane::{DType, Device, HostTensor, Session};

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

/// The order in which updates of one place are added is fixed.
#[test]
fn scattered_sums_are_the_same_bits_each_time() {
    let (device, m) = (open(), 20_011);
    let graph = capture(|t| {
        let (table, ids) = (t.input("table", [50, 8], DType::F32)?, t.input("ids", [m, 1], DType::I32)?);
        table.scatter_nd(&ids, &t.input("rows", [m, 8], DType::F32)?, Update::Combine(ReduceOp::Sum))
    });
    let (key, table) = (Key::new(11), HostTensor::zeros(DType::F32, [50, 8]).expect("a table"));
    // Half of the rows are for one place, some for none.
    let ids: Vec<i32> = (0..m).map(|i| if i % 2 == 0 { 7 } else { (key.uniform(i as u64) * 60.0) as i32 - 5 }).collect();
    let rows: Vec<f32> = (0..8 * m).map(|i| key.uniform((m + i) as u64) - 0.5).collect();
    let (ids, rows) = (HostTensor::new([m, 1], ids).expect("ids"), HostTensor::new([m, 8], rows).expect("rows"));
    let compiled = compile(&graph.expect("captured"), &device.target(), &CompileOptions::default()).expect("compiles");
    let session = Session::load(&device, &compiled).expect("loads");
    let run = || {
        let outputs = session.run(&[("table", &table), ("ids", &ids), ("rows", &rows)]).expect("runs");
        outputs.into_iter().next().expect("a result").1
    };
    let first = run();
    assert!((0..3).all(|_| run().bytes() == first.bytes()));
    assert!(first.to_f64().iter().any(|v| *v != 0.0));
}
