//! What the processor does before a graph runs: recording it, and compiling it. Needs no adapter.

use std::hint::black_box;

use criterion::Criterion;
use sublane::compiler::{CompileOptions, Mode, compile};
use sublane::kernels_gen::Target;
use sublane::kernels_gen::threefry::Key;
use sublane::ops::prelude::*;
use sublane::suite::samples::samples;
use sublane::{DType, Device, HostTensor, Result, capture};

/// Operations recorded in one capture.
const NODES: usize = 1000;

fn record(c: &mut Criterion) {
    let chain = || {
        capture::capture(|t| {
            let x = t.input("x", [64, 64], DType::F32)?;
            let mut y = x.clone();
            for _ in 0..NODES {
                y = y.add(&x)?;
            }
            Ok(y)
        })
    };
    c.bench_function(&format!("capture {NODES} operations"), |b| b.iter(|| black_box(chain())));
}

/// A call of a compiled function that has been called before: what `f` records is looked up and run, on a device that runs nothing. Shapes
/// are unlike those above where an operand is broadcast, which records one operation more.
fn record_again(c: &mut Criterion) -> Result<()> {
    let context = capture::Context::new(&Device::noop()?);
    let x = context.tensor(&HostTensor::zeros(DType::F32, [64, 64])?)?;
    for (name, scalars) in [("operations", false), ("operations with a number each", true)] {
        let f = capture::compile(&context, capture::CaptureOptions::default(), |x: &[capture::Tensor]| {
            let mut y = x[0].clone();
            for _ in 0..NODES / if scalars { 3 } else { 1 } {
                y = if scalars { y.add_scalar(1.0)? } else { y.add(&x[0])? };
            }
            Ok(y)
        });
        f.call(std::slice::from_ref(&x))?;
        c.bench_function(&format!("call a function of {NODES} recorded {name}"), |b| {
            b.iter(|| black_box(f.call(std::slice::from_ref(&x))));
        });
    }
    Ok(())
}

fn compilation(c: &mut Criterion) {
    let target = Target::webgpu();
    for sample in samples(Key::new(0), 1).unwrap_or_default() {
        for mode in [Mode::Compiled, Mode::Eager] {
            let options = CompileOptions { mode, ..CompileOptions::default() };
            let name = format!("compile {}, {}", sample.name, mode.name());
            c.bench_function(&name, |b| b.iter(|| black_box(compile(&sample.graph, &target, &options))));
        }
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    record(&mut criterion);
    if let Err(error) = record_again(&mut criterion) {
        eprintln!("calls of compiled functions: {error}");
    }
    compilation(&mut criterion);
    criterion.final_summary();
}
