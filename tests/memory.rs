//! Memory over many calls. In a process of its own: what other tests take at the same time would count as growth.

mod device_common;
mod graph_common;

use device_common::open;
use graph_common::*;
use sublane::capture::{self, CaptureOptions, Context, Tensor};
use sublane::compiler::{CompileOptions, compile};
use sublane::ops::prelude::*;
use sublane::session::Session;

/// Resident memory of this process, in bytes, where the system says it.
fn resident_bytes() -> Option<u64> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// Neither the device's memory nor the process's grows over many calls: of a session, of a compiled function, read back and not.
#[test]
fn memory_is_steady_over_ten_thousand_calls() {
    let device = open();
    let graph = of_x(&[40, 12], |x| x.softmax(-1)?.matmul(&x.transpose(&[1, 0])?)?.relu());
    let x = random_inputs(&graph, 1).remove(0).1;
    let session = Session::load(&device, &compile(&graph, &device.target(), &CompileOptions::default()).expect("compiles")).expect("loads");
    let context = Context::new(&device);
    let f = capture::compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].softmax(-1)?.add_scalar(1.0));
    let tensor = context.tensor(&x).expect("uploads");
    let calls = |count: usize| {
        for _ in 0..count {
            session.run(&[("x", &x)]).expect("runs");
            session.enqueue(&[("x", &x)]).expect("runs");
            f.call(std::slice::from_ref(&tensor)).expect("runs")[0].to_host().expect("reads");
        }
    };
    calls(500);
    let (used, resident) = (device.used_bytes(), resident_bytes());
    calls(3_200);
    assert_eq!(device.used_bytes(), used);
    if let (Some(before), Some(after)) = (resident, resident_bytes()) {
        let grown = after.saturating_sub(before);
        assert!(grown < 1 << 20, "{grown} bytes more after 9,600 calls: {} a call", grown / 9_600);
    }
}
