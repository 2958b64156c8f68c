//! Every kernel the compiler makes of the operations' cases, for each preset, through naga and its writers of every backend; a sample
//! through tint, where it is installed. Needs no adapter.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;

use kernels_gen::{KernelSource, Target, validate};
use rayon::prelude::*;
use sublane::compiler::{CompileOptions, Mode, compile};
use sublane::ops::cases;

/// The kernels of all cases, eager and compiled, each once.
fn kernels(target: &Target) -> Vec<Arc<KernelSource>> {
    let one = |case: &sublane::ops::OpCase| -> Vec<Arc<KernelSource>> {
        let graph = case.graph().expect("builds");
        let of = |mode| {
            let options = CompileOptions { mode, ..CompileOptions::default() };
            compile(&graph, target, &options)
                .unwrap_or_else(|e| panic!("{} for target {}: {e}", case.name, target.name))
                .plan()
                .kernels
                .clone()
        };
        [of(Mode::Compiled), of(Mode::Eager)].concat()
    };
    let all: Vec<Arc<KernelSource>> = cases().par_iter().flat_map_iter(one).collect();
    let mut names: BTreeMap<String, Arc<KernelSource>> = BTreeMap::new();
    for kernel in all {
        let known = names.entry(kernel.name.clone()).or_insert_with(|| kernel.clone());
        assert_eq!(body(&known.wgsl), body(&kernel.wgsl), "two kernels are named `{}`", kernel.name);
    }
    names.into_values().collect()
}

/// The text without the origins at its top.
fn body(wgsl: &str) -> &str {
    let mut rest = wgsl;
    while let Some((line, after)) = rest.split_once('\n') {
        if !line.starts_with("//") {
            break;
        }
        rest = after;
    }
    rest
}

fn valid_for(target: &Target) -> Vec<Arc<KernelSource>> {
    let kernels = kernels(target);
    assert!(kernels.len() > 500, "{} kernels", kernels.len());
    let faults: Vec<String> = kernels.par_iter().filter_map(|k| validate::validate(k, target).err().map(|e| e.to_string())).collect();
    assert!(faults.is_empty(), "{} of {} kernels are not valid:\n{}", faults.len(), kernels.len(), faults.join("\n"));
    kernels
}

#[test]
fn every_kernel_for_webgpu_is_valid() {
    let kernels = valid_for(&Target::webgpu());
    if Command::new("tint").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        eprintln!("tint is not installed: only naga has checked the kernels");
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    for kernel in kernels.iter().step_by(12) {
        let input = folder.path().join("kernel.wgsl");
        std::fs::write(&input, &kernel.wgsl).expect("written");
        let run = Command::new("tint").args(["--format", "wgsl", "-o"]).arg(folder.path().join("out.wgsl")).arg(&input).output();
        let run = run.expect("tint runs");
        assert!(run.status.success(), "tint refuses `{}`:\n{}\n{}", kernel.name, String::from_utf8_lossy(&run.stderr), kernel.wgsl);
    }
}

#[test]
fn every_kernel_for_software_is_valid() {
    valid_for(&Target::software());
}

#[test]
fn every_kernel_for_software_with_64_bit_integers_is_valid() {
    let kernels = valid_for(&Target { int64: true, ..Target::software() });
    assert!(kernels.iter().any(|k| k.features.int64), "none reads 64 bits at once");
}

#[test]
fn every_kernel_for_desktop_is_valid() {
    valid_for(&Target::desktop());
}
