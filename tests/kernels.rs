//! Every kernel, hand-written and generated, for every preset, through tint where it is installed: a second opinion on the WGSL, and the
//! one tool that checks that barriers stand in uniform control flow. naga and its writers have their say in the unit tests.

use kernels_gen::{KernelSource, Target, catalogue};
use std::process::{Command, Stdio};
use sublane::shaders;

fn all(target: &Target) -> Vec<KernelSource> {
    let written = shaders::kernels().filter(|(shader, _)| shader.runs_on(target));
    let written = written.map(|(shader, flags)| shader.source(flags, target).expect("composes"));
    written.chain(catalogue::kernels(target).expect("generated").into_iter().map(|(_, kernel)| kernel)).collect()
}

#[test]
fn tint_takes_every_kernel() {
    if Command::new("tint").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        eprintln!("tint is not installed: only naga has checked the kernels");
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let (input, output) = (folder.path().join("kernel.wgsl"), folder.path().join("out.wgsl"));
    let tint = |text: &str| {
        std::fs::write(&input, text).expect("written");
        let run = Command::new("tint").args(["--format", "wgsl", "-o"]).arg(&output).arg(&input).output().expect("tint runs");
        (run.status.success(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    assert!(!tint("fn broken( {").0, "tint refuses what is no WGSL");
    let mut seen = std::collections::BTreeSet::new();
    for target in Target::presets() {
        // 64-bit integers are an extension of wgpu that tint does not know.
        for kernel in all(&target).into_iter().filter(|k| !k.features.int64) {
            if !seen.insert(kernel.wgsl.clone()) {
                continue;
            }
            let enable = if kernel.features.subgroups { "enable subgroups;\n" } else { "" };
            let (takes, message) = tint(&format!("{enable}{}", kernel.wgsl));
            assert!(takes, "tint refuses `{}` for target `{}`:\n{message}", kernel.name, target.name);
        }
    }
}
