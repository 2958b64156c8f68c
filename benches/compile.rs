//! What the processor does before a graph runs: recording it, and compiling it. Needs no adapter.

use std::hint::black_box;

use criterion::Criterion;
use sublane::compiler::{CompileOptions, Mode, compile};
use sublane::kernels_gen::Target;
use sublane::kernels_gen::threefry::Key;
use sublane::ops::prelude::*;
use sublane::suite::samples::samples;
use sublane::{DType, capture};

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
    compilation(&mut criterion);
    criterion.final_summary();
}
