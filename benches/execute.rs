//! What the processor does while a compiled graph runs: encoding a dispatch, and a call around it. On the null device, which runs nothing, so
//! that only the host's part is measured, and on the adapter, if there is one.

use std::hint::black_box;

use criterion::Criterion;
use sublane::capture::capture;
use sublane::compiler::{CompileOptions, Mode, compile};
use sublane::device::DeviceOptions;
use sublane::ops::prelude::*;
use sublane::session::Session;
use sublane::{DType, Device, HostTensor, Result};

/// Dispatches of the long graph.
const DISPATCHES: usize = 1000;

/// A chain of `dispatches` kernels.
fn session(device: &Device, dispatches: usize) -> Result<Session> {
    let graph = capture(|t| {
        let x = t.input("x", [64], DType::F32)?;
        (0..dispatches).try_fold(x.clone(), |y, _| y.add(&x))
    })?;
    let options = CompileOptions { mode: Mode::Eager, ..CompileOptions::default() };
    Session::load(device, &compile(&graph, &device.target(), &options)?)
}

fn measure(c: &mut Criterion, device: &Device, name: &str) -> Result<()> {
    let x = HostTensor::zeros(DType::F32, [64])?;
    for dispatches in [1, DISPATCHES] {
        let session = session(device, dispatches)?;
        session.run(&[("x", &x)])?;
        c.bench_function(&format!("{name}: encode and submit {dispatches} dispatches, and wait"), |b| {
            b.iter(|| black_box(session.enqueue(&[("x", &x)]).and_then(|()| device.wait_idle())));
        });
        c.bench_function(&format!("{name}: call of {dispatches} dispatches, result read"), |b| {
            b.iter(|| black_box(session.run(&[("x", &x)])));
        });
    }
    Ok(())
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let devices = [("null device", Device::noop()), ("adapter", Device::open(&DeviceOptions::from_env()))];
    for (name, device) in devices {
        if let Err(error) = device.and_then(|device| measure(&mut criterion, &device, name)) {
            eprintln!("{name}: {error}");
        }
    }
    criterion.final_summary();
}
