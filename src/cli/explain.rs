//! `sublane explain`: what the compiler makes of a model, and why.

use super::model::{self, Compilation, WeightedModel};
use super::options::Options;
use super::output::{self, Outcome};
use super::progress::Bars;
use clap::Args;
use std::path::{Path, PathBuf};
use sublane::compiler::tune::Measured;
use sublane::compiler::{CompileOptions, Compiled};
use sublane::kernels_gen::threefry::Key;
use sublane::progress::{Cancel, Work};
use sublane::report::{Column, Table};
use sublane::session::Session;
use sublane::suite::inputs::Inputs;
use sublane::{Error, HostTensor, Result, files};

/// A model and where to write the details.
#[derive(Debug, Args)]
pub(super) struct Command {
    #[command(flatten)]
    model: WeightedModel,
    /// Size of a first dimension that the model leaves open
    #[arg(long, value_name = "N", default_value = "1", value_parser = model::batch, allow_negative_numbers = true)]
    batch: usize,
    #[command(flatten)]
    compilation: Compilation,
    /// Also run the model once, on random inputs, and measure each kernel
    #[arg(long)]
    profile: bool,
    /// Folder to write the text of each stage and each kernel to: a new or an empty one
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    if let Some(folder) = &command.dump {
        prepare(folder)?;
    }
    let imported = command.model.import(command.batch, Default::default())?;
    let device = super::device::open(options)?;
    // The times of the stages are part of the answer, so the graph is compiled even if it is known.
    let wanted = CompileOptions { keep_stages: true, ..command.compilation.options() };
    let bars = Bars::new(options);
    let loader = super::device::loader(&device, options);
    let (compiled, loaded) = loader.compile(&imported.graph, &wanted, &Work::new(&bars, Cancel::new()))?;
    if let Some(folder) = &command.dump {
        dump(&compiled, folder)?;
    }
    let total = |of: fn(&sublane::compiler::KernelInfo) -> u64| compiled.kernels().iter().map(of).sum::<u64>();
    let mut report = super::device::report("explain", &device, options);
    command.model.describe(&mut report);
    report.field("opset", "operator set", imported.opset, "");
    report.field("mode", "mode", wanted.mode.name(), "");
    report.field("target", "target", device.target().name, "");
    report.field("nodes", "nodes of the model's graph", imported.graph.nodes().len(), "");
    report.field("num_kernels", "kernel launches", compiled.plan().num_dispatches(), "");
    report.field("num_sources", "different kernels", compiled.plan().kernels.len(), "");
    report.field("flops", "floating-point operations", total(|k| k.flops), "");
    report.field("bytes", "bytes read and written", total(|k| k.bytes), "");
    report.field("memory_bytes", "device memory", model::memory_bytes(&compiled), "bytes");
    super::device::loaded(&mut report, &loaded, options);
    let times = match command.profile {
        true => {
            let tensors = Inputs::read(&[])?.tensors(compiled.inputs(), Key::new(options.seed))?;
            let named: Vec<(&str, &HostTensor)> =
                compiled.inputs().iter().zip(&tensors).map(|(port, (_, tensor))| (port.name.as_str(), tensor)).collect();
            let session = Session::load(&device, &compiled)?;
            session.kernel_ms(&named)?
        }
        false => Vec::new(),
    };
    report.table(kernels(&compiled, &times));
    report.further_table("stages", "Stages", stages(&compiled));
    report.further_table("groups", "Groups", groups(&compiled));
    report.further_table("refusals", "Not fused", refusals(&compiled));
    if !loaded.measured.is_empty() {
        report.further_table("tuning", "Measured", measured(&loaded.measured));
    }
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}

fn measured(problems: &[Measured]) -> Table {
    let columns = [
        ("key", "problem"),
        ("origin", "first in"),
        ("candidates", "candidates"),
        ("table", "table"),
        ("config", "chosen"),
        ("ms", "ms"),
        ("table_ms", "ms of the table's"),
        ("skipped", "not timed"),
    ];
    let mut table = Table::new(&columns.map(|(key, title)| Column::new(key, title)));
    for problem in problems {
        let skipped: Vec<String> = problem.skipped.iter().map(|s| format!("{}: {}", s.config, s.reason)).collect();
        let choice = problem.choice.as_ref();
        let ms = |ns: u64| ns as f64 / 1e6;
        table.row([
            problem.key.as_str().into(),
            problem.origin.as_str().into(),
            problem.candidates.into(),
            problem.table.as_str().into(),
            choice.map(|c| c.config.as_str()).into(),
            choice.map(|c| ms(c.ns)).into(),
            choice.map(|c| ms(c.table_ns)).into(),
            skipped.into(),
        ]);
    }
    table
}

/// One row a dispatch, with `times` in milliseconds if they were measured.
fn kernels(compiled: &Compiled, times: &[f64]) -> Table {
    let columns = [
        ("kernel", "kernel"),
        ("type", "result"),
        ("flops", "FLOPs"),
        ("bytes", "bytes"),
        ("ms", "ms"),
        ("config", "tiles"),
        ("chosen_by", "chosen by"),
        ("origins", "origin nodes"),
    ];
    let mut table = Table::new(&columns.map(|(key, title)| Column::new(key, title)));
    for (at, kernel) in compiled.kernels().iter().enumerate() {
        let ms = times.get(at).copied();
        let (name, ty) = (kernel.name.as_str(), kernel.ty.to_string());
        let config = kernel.choice.as_ref().map(|c| c.config.as_str());
        let by = kernel.choice.as_ref().map(|c| if c.tuned { "measurement" } else { "table" });
        let (flops, bytes) = (kernel.flops.into(), kernel.bytes.into());
        table.row([name.into(), ty.into(), flops, bytes, ms.into(), config.into(), by.into(), kernel.origins.clone().into()]);
    }
    table
}

fn stages(compiled: &Compiled) -> Table {
    let mut table = Table::new(&[Column::new("name", "stage"), Column::new("ms", "ms")]);
    for stage in compiled.stages() {
        table.row([stage.name.into(), (stage.seconds * 1e3).into()]);
    }
    table
}

fn groups(compiled: &Compiled) -> Table {
    let columns = [("root", "stored"), ("kind", "kind"), ("type", "type"), ("members", "members")];
    let mut table = Table::new(&columns.map(|(key, title)| Column::new(key, title)));
    for group in compiled.groups() {
        table.row([group.root.as_str().into(), group.kind.as_str().into(), group.ty.to_string().into(), group.members.clone().into()]);
    }
    table
}

fn refusals(compiled: &Compiled) -> Table {
    let mut table = Table::new(&[Column::new("node", "node"), Column::new("group", "into"), Column::new("reason", "because")]);
    for refusal in compiled.refusals() {
        table.row([refusal.node.as_str().into(), refusal.group.clone().into(), refusal.reason.as_str().into()]);
    }
    table
}

/// Makes a folder that holds nothing else, so that no text of another run is taken for one of this.
fn prepare(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "make the folder", e))?;
    let mut held = std::fs::read_dir(folder).map_err(|e| Error::io(folder, "list the folder", e))?;
    match held.next() {
        None => Ok(()),
        Some(_) => Err(Error::invalid(format!("{} holds files already; name a new folder or an empty one", folder.display()))),
    }
}

/// Writes `NN_stage.txt` for each stage and `kernel.wgsl` for each kernel.
fn dump(compiled: &Compiled, folder: &Path) -> Result<()> {
    for (at, stage) in compiled.stages().iter().enumerate() {
        let text = stage.text.as_deref().unwrap_or_default();
        if !text.is_empty() {
            files::write_atomic(folder.join(format!("{at:02}_{}.txt", stage.name)), text.as_bytes())?;
        }
    }
    for kernel in &compiled.plan().kernels {
        files::write_atomic(folder.join(format!("{}.wgsl", kernel.name)), kernel.wgsl.as_bytes())?;
    }
    Ok(())
}
