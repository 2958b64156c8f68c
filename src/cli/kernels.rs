//! `sublane kernels`: lists, prints and checks kernels. Needs no adapter.

use super::options::Options;
use super::output::{self, Outcome};
use clap::{Args, Subcommand, ValueEnum};
use sublane::kernels_gen::{KernelSource, Target, catalogue, validate};
use sublane::report::{Column, Report, Table};
use sublane::{Error, Result, shaders};

/// What to do with the kernels.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List them
    List(ForTarget),
    /// Print the text of one
    Print {
        /// Its name in the list
        name: String,
        /// Language to print it in
        #[arg(long, value_enum, default_value_t = Language::Wgsl)]
        language: Language,
        #[command(flatten)]
        target: ForTarget,
    },
    /// Put each through the validator and the writers of every backend
    Check {
        /// Target to check for [default: every preset]
        #[arg(long, value_parser = target)]
        target: Option<Target>,
    },
}

/// The target kernels are made for.
#[derive(Debug, Args)]
pub(super) struct ForTarget {
    /// Preset to make kernels for: webgpu, software or desktop
    #[arg(long, value_parser = target, default_value = "webgpu")]
    target: Target,
}

/// Languages a kernel is printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Language {
    /// As written
    Wgsl,
    /// For Vulkan, one hexadecimal word a line
    Spirv,
    /// For Metal
    Msl,
    /// For DX12
    Hlsl,
    /// For OpenGL ES
    Glsl,
}

/// The preset of that name, or the names there are.
pub(super) fn target(name: &str) -> Result<Target, String> {
    Target::preset(name).ok_or_else(|| {
        let names: Vec<String> = Target::presets().into_iter().map(|t| t.name).collect();
        format!("the presets are {}", names.join(", "))
    })
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    options.without_adapter("kernels");
    match command {
        Command::List(on) => list(&on.target, options),
        Command::Print { name, language, target } => print(name, *language, &target.target),
        Command::Check { target } => check(target.as_ref(), options),
    }
}

/// Every kernel that runs on `target`, as (origin, name, source): the hand-written ones, then samples of the generated ones.
fn all(target: &Target) -> Result<Vec<(&'static str, String, Result<KernelSource>)>> {
    let written = shaders::kernels().filter(|(shader, _)| shader.runs_on(target));
    let written = written.map(|(shader, flags)| ("hand-written", shader.name(flags), shader.source(flags, target)));
    let generated = catalogue::kernels(target)?.into_iter().map(|(family, source)| (family, source.name.clone(), Ok(source)));
    Ok(written.chain(generated).collect())
}

fn list(target: &Target, options: &Options) -> Result<Outcome> {
    let mut table = Table::new(&[
        Column::new("name", "kernel"),
        Column::new("origin", "origin"),
        Column::new("workgroup_size", "workgroup"),
        Column::new("storage_buffers", "buffers"),
        Column::new("params", "params"),
        Column::new("workgroup_bytes", "workgroup bytes"),
    ]);
    for (origin, name, source) in all(target)? {
        let source = source?;
        let [x, y, z] = source.workgroup_size;
        let (size, buffers) = (format!("{x}x{y}x{z}"), source.num_storage());
        table.row([name.into(), origin.into(), size.into(), buffers.into(), source.num_params.into(), source.workgroup_bytes.into()]);
    }
    let mut report = Report::new("kernels list", options.seed);
    report.field("target", "target", target.name.as_str(), "");
    report.table(table);
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}

fn print(name: &str, language: Language, target: &Target) -> Result<Outcome> {
    let (mut kernels, known) = (all(target)?, |(_, known, _): &(_, String, _)| known == name);
    let Some(at) = kernels.iter().position(known) else {
        return Err(Error::invalid(format!("there is no kernel `{name}` for target `{}`; `sublane kernels list` shows all", target.name)));
    };
    let source = kernels.swap_remove(at).2?;
    let wanted = match language {
        Language::Wgsl => return output::write(&source.wgsl).map(|()| Outcome::Passed),
        Language::Spirv => validate::Language::Spirv,
        Language::Msl => validate::Language::Msl,
        Language::Hlsl => validate::Language::Hlsl,
        Language::Glsl => validate::Language::Glsl,
    };
    let possible = validate::Language::of_target(target);
    if !possible.contains(&wanted) {
        let names: Vec<&str> = possible.iter().map(|l| l.name()).collect();
        return Err(Error::unsupported(format!("target `{}` is written as {} only", target.name, names.join(", "))));
    }
    output::write(&validate::translate(&source, target, wanted)?)?;
    Ok(Outcome::Passed)
}

fn check(target: Option<&Target>, options: &Options) -> Result<Outcome> {
    let targets = target.map_or_else(|| Target::presets().to_vec(), |t| vec![t.clone()]);
    let mut table = Table::new(&[Column::new("name", "kernel"), Column::new("target", "target"), Column::new("result", "result")]);
    let (mut failed, mut passed) = (0u64, 0u64);
    for target in &targets {
        for (_, name, source) in all(target)? {
            let checked = source.and_then(|source| Ok(validate::validate(&source, target)?));
            match &checked {
                Ok(()) => passed += 1,
                Err(_) => failed += 1,
            }
            let result = checked.map_or_else(|e| e.to_string(), |()| "valid".into());
            table.row([name.into(), target.name.as_str().into(), result.into()]);
        }
    }
    let mut report = Report::new("kernels check", options.seed);
    report.field("passed", "passed", passed, "");
    report.field("failed", "failed", failed, "");
    report.table(table);
    output::report(&report, options)?;
    Ok(if failed == 0 { Outcome::Passed } else { Outcome::Failed })
}
