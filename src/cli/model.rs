//! What the commands on ONNX models share.

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use sublane::compiler::{CompileOptions, Compiled, Mode, OptionalStage};
use sublane::import::onnx::{self, ImportOptions};
use sublane::precision::{self, Source};
use sublane::report::{Column, Report, Table};
use sublane::suite::profile::KernelTime;
use sublane::{Error, Result};

/// A model, and packed weights that take the place of its own.
#[derive(Debug, Args)]
pub(super) struct WeightedModel {
    #[command(flatten)]
    file: ModelFile,
    /// Packed weights of this model, from `sublane quantize`
    #[arg(long, value_name = "FILE.safetensors")]
    weights: Option<PathBuf>,
}

/// A model and the sizes it leaves open.
#[derive(Debug, Args)]
pub(super) struct ModelFile {
    /// ONNX model, may be compressed with gzip
    #[arg(value_name = "MODEL.onnx")]
    pub path: PathBuf,
    /// Size of a named dimension that the model leaves open; repeat for several
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = dim)]
    dims: Vec<(String, usize)>,
}

/// How a model is compiled.
#[derive(Debug, Args)]
pub(super) struct Compilation {
    /// How operations are grouped into kernels
    #[arg(long, value_enum, default_value_t = ModeName::Compiled)]
    pub mode: ModeName,
    /// Compute elementwise arithmetic of float16 models in 16 bits, which is less exact; the adapter must have it
    #[arg(long)]
    f16_arithmetic: bool,
    /// Stages of the compiler to leave out, to find the one that breaks a model
    #[arg(long, value_name = "STAGE", value_delimiter = ',', value_parser = stages())]
    without: Vec<String>,
}

fn stages() -> PossibleValuesParser {
    PossibleValuesParser::new(OptionalStage::ALL.map(OptionalStage::name))
}

impl Compilation {
    /// The compiler's options.
    pub(super) fn options(&self) -> CompileOptions {
        let without = OptionalStage::ALL.into_iter().filter(|stage| self.without.iter().any(|name| name == stage.name())).collect();
        CompileOptions { mode: self.mode.mode(), f16_arithmetic: self.f16_arithmetic, without, ..CompileOptions::default() }
    }
}

/// Values of `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ModeName {
    /// Operations are fused into few kernels
    Compiled,
    /// One kernel for each operation of the model
    Eager,
}

impl ModeName {
    /// The mode.
    pub(super) fn mode(self) -> Mode {
        match self {
            ModeName::Compiled => Mode::Compiled,
            ModeName::Eager => Mode::Eager,
        }
    }
}

impl WeightedModel {
    /// [`ModelFile::import`], on the packed weights if they are given.
    pub(super) fn import(&self, batch: usize, shapes: HashMap<String, Vec<usize>>) -> Result<onnx::Model> {
        let mut model = self.file.import(batch, shapes)?;
        if let Some(path) = &self.weights {
            let stored = precision::read(path, &Source::of(&self.file.path)?)?;
            let graph = precision::apply(&model.graph, &stored.layers);
            model.graph = graph.map_err(|error| error.context(format_args!("`{}`", path.display())))?;
        }
        Ok(model)
    }

    /// Name of the model's file.
    pub(super) fn file_name(&self) -> String {
        self.file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Says in a report which model it is.
    pub(super) fn describe(&self, report: &mut Report) {
        report.field("model", "model", self.file.path.display().to_string(), "");
        if let Some(path) = &self.weights {
            report.field("weights", "weights", path.display().to_string(), "");
        }
    }
}

impl ModelFile {
    /// Imports the model, its open first dimension being `batch`; `shapes` are those of inputs that are known.
    pub(super) fn import(&self, batch: usize, shapes: HashMap<String, Vec<usize>>) -> Result<onnx::Model> {
        for (at, (name, _)) in self.dims.iter().enumerate() {
            if self.dims[..at].iter().any(|(earlier, _)| earlier == name) {
                return Err(Error::invalid(format!("the size of `{name}` is given twice (`--dim`); give each once")));
            }
        }
        onnx::read(
            &self.path,
            &ImportOptions { batch: Some(batch), dims: self.dims.iter().cloned().collect(), shapes, ..ImportOptions::default() },
        )
    }
}

fn dim(text: &str) -> Result<(String, usize), String> {
    let size = |size: &str| size.parse().map_err(|_| format!("`{size}` is no size; give a whole number"));
    match text.rsplit_once('=').filter(|(name, _)| !name.is_empty()) {
        Some((name, number)) => Ok((name.into(), size(number)?)),
        None => Err("give NAME=SIZE".into()),
    }
}

/// A batch size: at least 1.
pub(super) fn batch(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "give a whole number, at least 1".into())
}

/// Times of kernels as a table.
pub(super) fn kernel_times(times: &[KernelTime]) -> Table {
    let mut table = Table::new(&[
        Column::new("kernel", "kernel"),
        Column::new("calls", "calls"),
        Column::new("ms", "ms"),
        Column::new("share", "share"),
        Column::new("origins", "origin nodes"),
    ]);
    for time in times {
        let origins: Vec<Value> = time.origins.iter().map(|o| o.as_str().into()).collect();
        table.row([time.name.as_str().into(), time.calls.into(), time.ms.into(), time.share.into(), origins.into()]);
    }
    table
}

/// Bytes of the device memory that a compiled graph takes.
pub(super) fn memory_bytes(compiled: &Compiled) -> u64 {
    compiled.plan().total_bytes()
}
