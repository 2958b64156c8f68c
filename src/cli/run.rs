//! `sublane run`: runs a model on inputs from files or at random.

use super::model::{self, Compilation, WeightedModel};
use super::options::Options;
use super::output::{self, Outcome};
use super::progress::Bars;
use clap::Args;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Instant;
use sublane::graph::TensorType;
use sublane::import::npy;
use sublane::kernels_gen::threefry::Key;
use sublane::progress::{Cancel, Work};
use sublane::report::{Column, Table};
use sublane::session::{Outputs, Session};
use sublane::stats::median;
use sublane::suite::inputs::{Inputs, NamedSource};
use sublane::suite::profile::kernel_times;
use sublane::{Error, HostTensor, Result, files};

/// A model, its inputs, and what to do with the outputs.
#[derive(Debug, Args)]
pub(super) struct Command {
    #[command(flatten)]
    model: WeightedModel,
    /// Where an input comes from; repeat for several [default: random, of the seed]
    #[arg(long = "input", value_name = "NAME=FILE.npy|random|zeros")]
    inputs: Vec<NamedSource>,
    /// Folder to write each output to, as NAME.npy; made if it is not there
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Number of runs; the first, in which drivers compile, is left out of the median
    #[arg(long, value_name = "N", default_value = "1", value_parser = model::batch, allow_negative_numbers = true)]
    runs: usize,
    /// Size of a first dimension that the model leaves open and no file states
    #[arg(long, value_name = "N", default_value = "1", value_parser = model::batch, allow_negative_numbers = true)]
    batch: usize,
    #[command(flatten)]
    compilation: Compilation,
    /// Measure each kernel
    #[arg(long)]
    profile: bool,
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let given = Inputs::read(&command.inputs)?;
    let imported = command.model.import(command.batch, given.shapes())?;
    if let Some(folder) = &command.output {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "make the folder", e))?;
    }
    let device = super::device::open(options)?;
    let start = Instant::now();
    let compilation = command.compilation.options();
    let bars = Bars::new(options);
    let work = Work::new(&bars, Cancel::new());
    let loader = super::device::loader(&device, options);
    let (compiled, loaded) = loader.compile(&imported.graph, &compilation, &work)?;
    let compile_ms = ms_since(start);
    let tensors = given.tensors(compiled.inputs(), Key::new(options.seed))?;
    let session = Session::load(&device, &compiled)?;
    let named: Vec<(&str, &HostTensor)> = compiled.inputs().iter().zip(&tensors).map(|(p, (_, t))| (p.name.as_str(), t)).collect();

    let files = match &command.output {
        Some(folder) => {
            let files = file_names(compiled.outputs().iter().map(|p| p.name.as_str()));
            let files: Vec<PathBuf> = files.iter().map(|file| folder.join(file)).collect();
            files.iter().try_for_each(files::check_writable)?;
            files
        }
        None => Vec::new(),
    };

    let part = work.part("runs", command.runs as u64);
    let timed = || -> Result<(Outputs, f64)> {
        let start = Instant::now();
        let outputs = session.run(&named)?;
        part.advance(1)?;
        Ok((outputs, ms_since(start)))
    };
    let (outputs, first_ms) = timed()?;
    let times = (1..command.runs).map(|_| Ok(timed()?.1)).collect::<Result<Vec<f64>>>()?;
    drop(part);

    let mut report = super::device::report("run", &device, options);
    command.model.describe(&mut report);
    report.field("opset", "operator set", imported.opset, "");
    report.field("mode", "mode", compilation.mode.name(), "");
    report.field("kernels", "kernels", compiled.plan().num_dispatches(), "");
    report.field("memory_bytes", "device memory", model::memory_bytes(&compiled), "bytes");
    report.field("compile_ms", "compilation", compile_ms, "ms");
    super::device::loaded(&mut report, &loaded, options);
    report.field("first_ms", "first run", first_ms, "ms");
    report.field("median_ms", "median of the other runs", (!times.is_empty()).then(|| median(&times)), "ms");
    report.table(outputs_table(&outputs, &files));
    let mut inputs = Table::new(&[Column::new("name", "input"), Column::new("type", "type"), Column::new("source", "from")]);
    for (port, (source, _)) in compiled.inputs().iter().zip(&tensors) {
        inputs.row([port.name.as_str().into(), port.ty.to_string().into(), source.name().into()]);
    }
    report.further_table("inputs", "Inputs", inputs);
    if command.profile {
        let profile = session.profile(&named)?;
        report.field("clock", "clock of the profile", profile.clock.name(), "");
        report.further_table("kernel_times", "Profile", model::kernel_times(&kernel_times(&compiled, &profile)));
    }
    for ((_, tensor), file) in outputs.iter().zip(&files) {
        npy::write(file, tensor)?;
    }
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}

fn ms_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// Outputs with what tells them apart at a glance, and the files they are written to, if they are.
fn outputs_table(outputs: &Outputs, files: &[PathBuf]) -> Table {
    let columns =
        [("name", "output"), ("type", "type"), ("min", "min"), ("max", "max"), ("mean", "mean"), ("nan", "NaN"), ("file", "file")];
    let mut table = Table::new(&columns.map(|(key, title)| Column::new(key, title)));
    for (at, (name, tensor)) in outputs.iter().enumerate() {
        let values = tensor.to_f64();
        let numbers: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
        let fold = |f: fn(f64, f64) -> f64| numbers.iter().copied().reduce(f);
        let mean = fold(|a, b| a + b).map(|sum| sum / numbers.len() as f64);
        let nan = values.len() - numbers.len();
        let file = files.get(at).map(|file| file.display().to_string());
        let ty = TensorType::new(tensor.dtype(), tensor.shape()).to_string();
        table.row([name.into(), ty.into(), fold(f64::min).into(), fold(f64::max).into(), mean.into(), nan.into(), file.into()]);
    }
    table
}

/// Bytes of a file's name that come from the output's: file systems take 255.
const MAX_STEM_BYTES: usize = 200;

/// Files of outputs: what is not a letter, digit, point, hyphen or underscore becomes an underscore, so that no name leaves the folder.
/// Names that would be one then, also where case does not count, get a number.
fn file_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let mut taken = HashSet::new();
    names
        .map(|name| {
            let mut stem: String = name.chars().map(plain).collect();
            while stem.len() > MAX_STEM_BYTES {
                stem.pop();
            }
            let (mut file, mut number) = (format!("{stem}.npy"), 1);
            while !taken.insert(file.to_lowercase()) {
                number += 1;
                file = format!("{stem}_{number}.npy");
            }
            file
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_outputs_stay_in_the_folder_and_apart() {
        let names = ["logits", "/model/out:0", "../x", "a/b", "a_b", "A:B", "a_b_2"];
        let files = ["logits.npy", "_model_out_0.npy", ".._x.npy", "a_b.npy", "a_b_2.npy", "A_B_3.npy", "a_b_2_2.npy"];
        assert_eq!(file_names(names.into_iter()), files);
        let long = ["é".repeat(500), "é".repeat(501)];
        let files = file_names(long.iter().map(String::as_str));
        assert!(files[0] != files[1] && files.iter().all(|f| f.len() < 255), "{files:?}");
    }
}
