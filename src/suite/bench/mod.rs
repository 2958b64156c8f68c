//! Benchmarks: a case is one file here and one line in [`CASES`].
//!
//! Speeds are compared with what the probes reach in the same run, and with each other in turns, so that whatever else the machine does
//! meets all alike. Nothing here decides a test.

mod bitset;
mod compile;
mod device;
mod gemm;
pub mod layers;
mod model;
mod motifs;
mod ops;
pub mod quantised;
mod start;
mod timing;
mod tune;

use std::path::PathBuf;

use crate::compiler::{self, CompileOptions, Mode};
use crate::device::{Device, Probes};
use crate::error::Result;
use crate::graph::Graph;
use crate::progress::{Part, Work};
use crate::session::{Loader, Session};
use crate::suite::inputs;
use crate::suite::profile::{KernelTime, kernel_times};
use kernels_gen::threefry::Key;
pub use start::{Again, FirstCall, first_call};

/// One measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// What ran.
    pub name: String,
    /// Median time of one run, in milliseconds.
    pub median_ms: Option<f64>,
    /// 10^9 floating-point operations a second.
    pub gflops: Option<f64>,
    /// 10^9 bytes a second, each tensor of a kernel counted once.
    pub gbps: Option<f64>,
    /// Part of what `probe` reached in the same run.
    pub share: Option<f64>,
    /// What `share` is taken of: `fma`, `read`, `write`, `copy` or `2r1w`.
    pub probe: Option<&'static str>,
    /// Kernel launches of one run.
    pub kernels: usize,
    /// Submissions of one run.
    pub submissions: usize,
    /// Time of the row named in `against` divided by the time of this one, measured in turns: above 1 this one is faster.
    pub ratio: Option<f64>,
    /// What `ratio` compares with.
    pub against: Option<&'static str>,
    /// How operations were grouped, `compiled` or `eager`, where the two are compared.
    pub mode: Option<&'static str>,
    /// Examples of one run, where the row is about a batch.
    pub batch: Option<usize>,
    /// Bytes that the kernels of one run read and write, each tensor of a kernel counted once.
    pub bytes: Option<u64>,
    /// Kernels whose text was generated for it, for first calls.
    pub generated: Option<usize>,
    /// Problems that were measured for it.
    pub measured: Option<usize>,
    /// Probes that ran for it.
    pub probes_run: Option<usize>,
    /// Images a second, for models of images.
    pub images_per_s: Option<f64>,
    /// Paths drawn a second, for motifs.
    pub samples_per_s: Option<f64>,
    /// Slope of the logarithm of a cost over the logarithm of a size: 1 where it is linear.
    pub slope: Option<f64>,
    /// Where the time goes, measured in a run of its own.
    pub parts: Vec<KernelTime>,
}

/// What a benchmark runs with.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The device.
    pub device: &'a Device,
    /// What knows measured choices, and measures more if it is to.
    pub loader: &'a Loader,
    /// What it reaches.
    pub probes: &'a Probes,
    /// What to measure.
    pub choice: &'a Choice,
    /// Whom to tell of progress.
    pub part: &'a Part<'a>,
}

/// What to measure, and how long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Seed of random inputs and weights.
    pub seed: u64,
    /// Fewer rounds, and none of what takes seconds a run.
    pub quick: bool,
    /// ONNX files of the case `model`; without any it runs models of its own.
    pub models: Vec<PathBuf>,
    /// Batch sizes of the models; without any 1.
    pub batches: Vec<usize>,
    /// How first calls are made, in processes of their own, for the case `start`.
    pub again: Option<Again>,
    /// Temporal graph of the case `motifs`; without one it generates its own.
    pub graph: Option<PathBuf>,
}

/// A benchmark.
pub struct Case {
    /// Name on the command line.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// Whether it measures models that are given.
    pub takes_models: bool,
    /// Whether it measures a graph that is given.
    pub takes_graph: bool,
    /// Measures it.
    pub run: fn(&Bench<'_>) -> Result<Vec<Row>>,
}

/// Every benchmark there is.
pub const CASES: &[Case] = &[
    Case {
        name: "device",
        about: "the adapter itself: multiply-adds, bandwidths, launches",
        takes_models: false,
        takes_graph: false,
        run: device::run,
    },
    Case {
        name: "gemm",
        about: "matrix products, in turns with a hand-written kernel",
        takes_models: false,
        takes_graph: false,
        run: gemm::run,
    },
    Case {
        name: "quantised",
        about: "products of packed operands, in turns with those of f32",
        takes_models: false,
        takes_graph: false,
        run: quantised::run,
    },
    Case {
        name: "tune",
        about: "matrix products with measured configurations, in turns with those of the tables",
        takes_models: false,
        takes_graph: false,
        run: tune::run,
    },
    Case {
        name: "ops",
        about: "operations bound by memory, against its bandwidth",
        takes_models: false,
        takes_graph: false,
        run: ops::run,
    },
    Case { name: "model", about: "whole models, compiled and eager in turns", takes_models: true, takes_graph: false, run: model::run },
    Case {
        name: "compile",
        about: "what fusion gains: networks and operations, compiled and eager in turns",
        takes_models: false,
        takes_graph: false,
        run: compile::run,
    },
    Case {
        name: "start",
        about: "first calls: cold, with our cache empty, and warm",
        takes_models: false,
        takes_graph: false,
        run: start::run,
    },
    Case {
        name: "motifs",
        about: "temporal motifs: draws a second, time to a count, growth with the graph",
        takes_models: false,
        takes_graph: true,
        run: motifs::run,
    },
    Case {
        name: "bitset",
        about: "networks by bit-planes: images a second on the adapter and on the processor",
        takes_models: false,
        takes_graph: false,
        run: bitset::run,
    },
];

/// What benchmarks found.
#[derive(Debug, Clone)]
pub struct Findings {
    /// What the device reaches.
    pub probes: Probes,
    /// The measurements.
    pub rows: Vec<Row>,
    /// Geometric mean of the gains of compilation over eager mode in the case `compile`.
    pub inference_geomean: Option<f64>,
    /// Cases that could not run, and why.
    pub faults: Vec<String>,
}

/// Probes the loader's device, then runs the cases one after the other. A case that cannot run becomes a fault and takes no other along; only a
/// lost device and a cancellation end the work.
pub fn run(loader: &Loader, cases: &[&Case], choice: &Choice, work: &Work<'_>) -> Result<Findings> {
    let device = loader.device();
    let probes = Probes::run(device, work)?;
    let mut findings = Findings { probes, rows: Vec::new(), inference_geomean: None, faults: Vec::new() };
    for case in cases {
        let part = work.part(case.about, 0);
        match (case.run)(&Bench { device, loader, probes: &findings.probes, choice, part: &part }) {
            Ok(rows) => {
                if case.name == "compile" {
                    findings.inference_geomean = compile::geomean(&rows);
                }
                findings.rows.extend(rows);
            }
            Err(error) => {
                work.cancel().check()?;
                device.check_alive()?;
                findings.faults.push(format!("{}: {error}", case.name));
            }
        }
    }
    Ok(findings)
}

impl Bench<'_> {
    /// Random streams of the case `name`.
    fn key(&self, name: &str) -> Key {
        name.bytes().fold(Key::new(self.choice.seed), |key, byte| key.stream(u64::from(byte)))
    }

    /// Compiles and loads `graph` with the choices that are known, with random inputs that stay on the device.
    fn load(&self, graph: &Graph, mode: Mode, key: Key) -> Result<Session> {
        let options = CompileOptions { mode, ..CompileOptions::default() };
        let (tuning, _) = self.loader.tune(graph, &options, &Work::quiet())?;
        self.load_as(graph, &CompileOptions { tuning, ..options }, key)
    }

    /// [`Bench::load`] with the choices of `options`.
    fn load_as(&self, graph: &Graph, options: &CompileOptions, key: Key) -> Result<Session> {
        let compiled = compiler::compile(graph, &self.device.target(), options)?;
        let session = Session::load(self.device, &compiled)?;
        for (port, stream) in compiled.inputs().iter().zip(0..) {
            session.executor().write(port.slot, inputs::random(&port.ty, key.stream(stream))?.bytes())?;
        }
        Ok(session)
    }

    /// A row of a session that takes `ms`, as a share of a rate that its floating-point operations or its bytes are compared with.
    fn row(&self, name: String, session: &Session, ms: f64, work: Amount) -> Result<Row> {
        let compiled = session.compiled();
        let rate = work.count as f64 / ms / 1e6;
        let bytes: u64 = compiled.kernels().iter().map(|k| k.bytes).sum();
        Ok(Row {
            name,
            median_ms: Some(ms),
            gflops: (work.probe == Probe::Fma).then_some(rate),
            gbps: Some(bytes as f64 / ms / 1e6),
            share: Some(rate / work.probe.rate(self.probes)),
            probe: Some(work.probe.name()),
            kernels: compiled.plan().num_dispatches(),
            submissions: 1,
            parts: kernel_times(compiled, &session.executor().profile(&[])?),
            ..Row::default()
        })
    }
}

/// What a run does, in floating-point operations or bytes, and the probe that its rate is compared with.
#[derive(Debug, Clone, Copy)]
struct Amount {
    count: u64,
    probe: Probe,
}

/// Rates that shares are taken of; bandwidths are those of buffers of 16 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    Fma,
    Read,
    Copy,
    TwoReadOneWrite,
}

impl Probe {
    fn name(self) -> &'static str {
        match self {
            Probe::Fma => "fma",
            Probe::Read => "read",
            Probe::Copy => "copy",
            Probe::TwoReadOneWrite => "2r1w",
        }
    }

    fn rate(self, probes: &Probes) -> f64 {
        match self {
            Probe::Fma => probes.fma_gflops,
            Probe::Read => probes.read_gbps[0],
            Probe::Copy => probes.copy_gbps[0],
            Probe::TwoReadOneWrite => probes.r2w1_gbps[0],
        }
    }
}
