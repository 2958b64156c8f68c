//! `sublane export`: a compiled model as files that run without the compiler.

use super::model::{self, Compilation, WeightedModel};
use super::options::Options;
use super::output::{self, Outcome};
use super::progress::Bars;
use clap::Args;
use std::path::PathBuf;
use sublane::Result;
use sublane::compiler::{self, export};
use sublane::kernels_gen::Target;
use sublane::progress::{Cancel, Work};
use sublane::report::{Column, Report, Table};

/// A model, what it is compiled for and where it goes.
#[derive(Debug, Args)]
pub(super) struct Command {
    #[command(flatten)]
    model: WeightedModel,
    /// What the kernels may use: that of this machine's adapter, or of a preset: native, webgpu, software or desktop
    #[arg(long, value_name = "TARGET", value_parser = target, default_value = "webgpu")]
    target: For,
    /// Folder to write to: new, empty, or of an earlier export, whose files are replaced where they are as it wrote them
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Write although other files lie in the folder; they stay, and one where a file of the export goes is refused all the same
    #[arg(long)]
    force: bool,
    /// Size of a first dimension that the model leaves open
    #[arg(long, value_name = "N", default_value = "1", value_parser = model::batch, allow_negative_numbers = true)]
    batch: usize,
    #[command(flatten)]
    compilation: Compilation,
}

#[derive(Debug, Clone)]
enum For {
    Native,
    Preset(Box<Target>),
}

fn target(name: &str) -> Result<For, String> {
    match name {
        "native" => Ok(For::Native),
        name => super::kernels::target(name).map(|target| For::Preset(target.into())).map_err(|presets| format!("{presets}, and native")),
    }
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    // What would be refused at the end is refused at once.
    export::check_folder(&command.output, command.force)?;
    let imported = command.model.import(command.batch, Default::default())?;
    let wanted = command.compilation.options();
    let (mut report, compiled, target) = match &command.target {
        For::Native => {
            let device = super::device::open(options)?;
            let bars = Bars::new(options);
            let loader = super::device::loader(&device, options);
            let (compiled, _) = loader.compile(&imported.graph, &wanted, &Work::new(&bars, Cancel::new()))?;
            (super::device::report("export", &device, options), compiled, device.target())
        }
        For::Preset(target) => {
            options.without_adapter(&format!("export --target {}", target.name));
            (Report::new("export", options.seed), compiler::compile(&imported.graph, target, &wanted)?, (**target).clone())
        }
    };
    let written = export::write(&compiled, &target, &command.model.file_name(), &command.output, command.force)?;
    command.model.describe(&mut report);
    report.field("opset", "operator set", imported.opset, "");
    report.field("mode", "mode", wanted.mode.name(), "");
    report.field("target", "target", target.name.as_str(), "");
    report.field("folder", "folder", command.output.display().to_string(), "");
    report.field("num_kernels", "kernel launches", compiled.plan().num_dispatches(), "");
    report.field("num_sources", "different kernels", compiled.plan().kernels.len(), "");
    report.field("constants", "constants", compiled.constants().len(), "");
    report.field("memory_bytes", "device memory", model::memory_bytes(&compiled), "bytes");
    report.field("bytes", "all files", written.iter().map(|file| file.bytes).sum::<u64>(), "bytes");
    let mut table = Table::new(&[Column::new("file", "file"), Column::new("bytes", "bytes")]);
    for file in &written {
        table.row([file.path.display().to_string().into(), file.bytes.into()]);
    }
    report.table(table);
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}
