//! From nothing to the first result: cold, with our own cache empty, and warm. Each first call is a process of its own, since a process keeps
//! drivers, probes and kernels.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Bench, Row};
use crate::capture::capture;
use crate::compiler::CompileOptions;
use crate::compiler::tune::Autotune;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::ops::prelude::*;
use crate::progress::Work;
use crate::session::{Loader, Session};
use crate::stats::median;
use crate::suite::inputs;
use crate::suite::networks::{encoder_layer, resnet20};
use crate::suite::profile::KernelTime;
use kernels_gen::DType;
use kernels_gen::threefry::Key;

type Build = fn(Key) -> Result<Graph>;

/// A step of a first call.
type StepMs = fn(&FirstCall) -> f64;

/// Names of the graphs whose first calls are measured, and the graphs.
const SUBJECTS: &[(&str, Build)] = &[
    ("f32 1024x1024x1024", |_| product(1024)),
    ("ResNet-20, batch 1", |key| resnet20(key, 1)),
    ("BERT-like encoder layer s128 d384", |key| encoder_layer(key, 128, 384, 12)),
];

/// What is there when a first call begins, and the folders that are emptied before it.
const STARTS: [(&str, &[&str]); 3] = [("cold", &["ours", "driver"]), ("our cache empty", &["ours"]), ("warm", &[])];

fn product(size: usize) -> Result<Graph> {
    capture(|t| t.input("a", [size, size], DType::F32)?.matmul(&t.input("b", [size, size], DType::F32)?))
}

/// How a first call is made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Again {
    /// Program and arguments: with `--autotune MODE` and the name of a subject after them it measures one first call and prints it as JSON.
    pub command: Vec<OsString>,
    /// Folder for caches; made, and removed at the end.
    pub scratch: PathBuf,
}

/// One first call, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FirstCall {
    /// Until the device was open.
    pub open_ms: f64,
    /// Until the graph was tuned and compiled, or found compiled.
    pub compile_ms: f64,
    /// Until pipelines and buffers were made.
    pub load_ms: f64,
    /// Until the first result was read.
    pub run_ms: f64,
    /// Kernels whose text was generated.
    pub generated: usize,
    /// Problems that were measured.
    pub measured: usize,
    /// Probes that ran.
    pub probes_run: u32,
    /// Dispatches.
    pub kernels: usize,
}

impl FirstCall {
    /// All of it.
    pub fn total_ms(&self) -> f64 {
        self.open_ms + self.compile_ms + self.load_ms + self.run_ms
    }
}

/// Measures the first call of the subject `name` with a loader that `open` makes. The graph itself is recorded before the clock starts.
pub fn first_call(name: &str, seed: u64, open: impl FnOnce() -> Result<Loader>) -> Result<FirstCall> {
    let names = || SUBJECTS.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let (_, build) = SUBJECTS
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| Error::invalid(format!("no first call of `{name}` is measured; there are {}", names())))?;
    let key = Key::new(seed);
    let graph = build(key)?;
    let mut last = Instant::now();
    let mut lap = || {
        let now = Instant::now();
        std::mem::replace(&mut last, now).elapsed().as_secs_f64() * 1e3
    };
    let loader = open()?;
    let open_ms = lap();
    let (compiled, report) = loader.compile(&graph, &CompileOptions::default(), &Work::quiet())?;
    let compile_ms = lap();
    let session = Session::load(loader.device(), &compiled)?;
    let tensors =
        compiled.inputs().iter().zip(0..).map(|(port, stream)| inputs::random(&port.ty, key.stream(stream))).collect::<Result<Vec<_>>>()?;
    let named: Vec<_> = compiled.inputs().iter().map(|port| port.name.as_str()).zip(&tensors).collect();
    let load_ms = lap();
    session.run(&named)?;
    Ok(FirstCall {
        open_ms,
        compile_ms,
        load_ms,
        run_ms: lap(),
        generated: report.generated,
        measured: report.measured.len(),
        probes_run: report.probes_run,
        kernels: compiled.plan().num_dispatches(),
    })
}

/// The scratch folder, removed when it is dropped.
struct Scratch<'a>(&'a Path);

impl Scratch<'_> {
    fn empty(&self, folder: &str) -> Result<()> {
        let folder = self.0.join(folder);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, "empty the folder", e))?;
        }
        std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, "make the folder", e))
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(self.0) {
            log::warn!("the folder `{}` stays: {error}", self.0.display());
        }
    }
}

pub(super) fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let Some(again) = &bench.choice.again else {
        return Err(Error::invalid("first calls are measured in processes of their own; give `Choice::again`, the program that makes one"));
    };
    let scratch = Scratch(&again.scratch);
    let mut rows = Vec::new();
    for (at, (name, _)) in SUBJECTS.iter().enumerate() {
        // Tuning is measured once: on one product.
        for autotune in [Autotune::Off, Autotune::On].iter().take(if at == 0 { 2 } else { 1 }) {
            rows.extend(measure(bench, again, &scratch, name, *autotune)?);
        }
    }
    Ok(rows)
}

/// A row for each way to start; medians of three.
fn measure(bench: &Bench<'_>, again: &Again, scratch: &Scratch<'_>, name: &str, autotune: Autotune) -> Result<Vec<Row>> {
    let mut calls: [Vec<FirstCall>; STARTS.len()] = Default::default();
    for _ in 0..if bench.choice.quick { 1 } else { 3 } {
        for ((_, emptied), calls) in STARTS.iter().zip(&mut calls) {
            emptied.iter().try_for_each(|folder| scratch.empty(folder))?;
            calls.push(spawn(again, name, autotune)?);
            bench.part.advance(0)?;
        }
    }
    let by = if autotune == Autotune::Off { "tables" } else { "tuned" };
    let row = |((start, _), calls): (&(&str, &[&str]), &Vec<FirstCall>)| {
        let of = |ms: StepMs| median(&calls.iter().map(ms).collect::<Vec<f64>>());
        let total = of(FirstCall::total_ms);
        let steps: [(&str, StepMs); 4] =
            [("open", |c| c.open_ms), ("compile", |c| c.compile_ms), ("load", |c| c.load_ms), ("first run", |c| c.run_ms)];
        let part =
            |(step, ms): (&str, StepMs)| KernelTime { name: step.into(), calls: 1, ms: of(ms), share: of(ms) / total, origins: Vec::new() };
        // What differs between repetitions is shown at its worst.
        let most = |count: fn(&FirstCall) -> usize| calls.iter().map(count).max();
        Row {
            name: format!("{name}, {by}, {start}"),
            median_ms: Some(total),
            kernels: most(|c| c.kernels).unwrap_or(0),
            submissions: 1,
            generated: most(|c| c.generated),
            measured: most(|c| c.measured),
            probes_run: most(|c| c.probes_run as usize),
            parts: steps.into_iter().map(part).collect(),
            ..Row::default()
        }
    };
    Ok(STARTS.iter().zip(&calls).map(row).collect())
}

/// One first call in a process of its own. Mesa and NVIDIA keep compiled kernels where these variables say.
fn spawn(again: &Again, name: &str, autotune: Autotune) -> Result<FirstCall> {
    let (program, arguments) = again.command.split_first().ok_or_else(|| Error::invalid("`Choice::again` names no program"))?;
    let (ours, driver) = (again.scratch.join("ours"), again.scratch.join("driver"));
    let mut command = Command::new(program);
    command.args(arguments).args(["--autotune", autotune.name(), name]);
    command.env("SUBLANE_CACHE", ours).env("MESA_SHADER_CACHE_DIR", &driver).env("__GL_SHADER_DISK_CACHE_PATH", driver);
    let output = command.output().map_err(|e| Error::io(Path::new(program), "start the program", e))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::internal(format!("the first call of `{name}` failed with {}: {}", output.status, said.trim())));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| Error::internal("a first call printed something else").with_source(e))
}
