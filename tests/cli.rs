//! The binary from outside: exit codes, help, JSON, bad input, closed pipes.

use serde_json::Value;
use std::io::Read;
use std::process::{Command, Output, Stdio};

fn sublane(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sublane"));
    command.args(args).env_remove("RUST_LOG");
    command
}

fn run(args: &[&str]) -> Output {
    sublane(args).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// The one JSON object that a command prints.
fn json(args: &[&str]) -> Value {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", text(&output.stdout)))
}

/// Keys of an object, in order.
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn help_lists_every_command_and_each_has_help() {
    let help = text(&run(&["--help"]).stdout);
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("README");
    for command in ["devices", "demo", "selftest", "export", "quantize", "gemm", "bench", "cache", "kernels", "motifs"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is not in:\n{help}");
        assert!(readme.contains(&format!("`sublane {command}")), "{command} is not in the README");
        let output = run(&[command, "--help"]);
        assert!(output.status.success() && text(&output.stdout).contains("--adapter"), "{command} --help");
    }
    assert!(text(&run(&["--version"]).stdout).starts_with("sublane 0."));
}

#[test]
fn a_wrong_command_line_exits_2_and_says_why() {
    for (args, part) in [
        (&[][..], "Usage"),
        (&["nonsense"], "nonsense"),
        (&["kernels", "print"], "NAME"),
        (&["kernels", "list", "--target", "toaster"], "webgpu, software, desktop"),
        (&["demo", "--limits", "none"], "native"),
        (&["demo", "--autotune", "sometimes"], "exhaustive"),
        (&["export", "model.onnx"], "--output"),
        (&["export", "-o", "folder"], "MODEL.onnx"),
        (&["export", "model.onnx", "-o", "folder", "--target", "toaster"], "webgpu, software, desktop, and native"),
        (&["quantize", "model.onnx", "--scheme", "int5-group32", "-o", "w"], "int4-group32"),
        (&["quantize", "model.onnx", "--scheme", "nf4", "--calibrate", "percentile:101", "-o", "w"], "from 0 to 100"),
        (&["quantize", "model.onnx", "--scheme", "nf4"], "--output"),
        (&["gemm", "--b", "int5-group32"], "int4-group32"),
        (&["gemm", "--b", "mxfp4-ceil-even"], "second time"),
        (&["gemm", "--data", "wide"], "heavy-tailed"),
        (&["gemm", "--m", "-1"], "at least 0"),
        (&["gemm", "swoop"], "sweep"),
        (&["cache"], "clear"),
        (&["cache", "clear", "--everything"], "--everything"),
        (&["demo", "--memory-limit", "much"], "K, M, G or T"),
        (&["demo", "--seed", "1.5"], "--seed"),
        (&["demo", "-v", "-q"], "quiet"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?} writes to standard output");
        let message = text(&output.stderr);
        assert!(message.contains(part), "{args:?}: `{part}` is not in: {message}");
    }
}

#[test]
fn work_that_fails_exits_1_and_says_what_to_do() {
    for (args, part) in [
        (&["kernels", "print", "nothing"][..], "sublane kernels list"),
        (&["export", "no_such_model.onnx", "-o", "no_such_folder"], "no_such_model.onnx"),
        (&["export", "no_such_model.onnx", "-o", "src"], "is not empty and holds no export"),
        (&["export", "no_such_model.onnx", "-o", "Cargo.toml"], "Cargo.toml"),
        (&["kernels", "print", "scale_add", "--target", "desktop", "--language", "glsl"], "SPIR-V, MSL, HLSL only"),
        (&["devices", "--adapter", "no such adapter"], "no such adapter"),
        (&["devices", "--adapter", "99"], "99"),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?} writes to standard output");
        let message = text(&output.stderr);
        assert!(message.contains("error: ") && message.contains(part), "{args:?}: `{part}` is not in: {message}");
    }
    let output = run(&["demo", "--memory-limit", "1M"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("raise the memory limit"), "{}", text(&output.stdout));
}

#[test]
fn no_adapter_is_an_error_that_names_what_to_install() {
    let output = sublane(&["devices"]).env("VK_DRIVER_FILES", "/nonexistent.json").env("VK_ICD_FILENAMES", "/nonexistent.json").output();
    let output = output.expect("starts");
    // Where OpenGL finds an adapter that Vulkan's drivers hide, there is one.
    if output.status.success() {
        assert!(text(&output.stdout).contains("gl"), "{}", text(&output.stdout));
    } else {
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("mesa-vulkan-drivers"), "{}", text(&output.stderr));
    }
}

#[test]
fn json_begins_with_the_head_everywhere() {
    for args in
        [&["devices", "--json"][..], &["demo", "--json", "--seed", "5"], &["kernels", "list", "--json"], &["kernels", "check", "--json"]]
    {
        let object = json(args);
        assert_eq!(keys(&object)[..5], ["schema", "command", "adapter", "driver", "seed"], "{args:?}");
        assert_eq!(object["schema"], 1);
        assert!(object["command"].as_str().is_some_and(|c| args.join(" ").starts_with(c)), "{args:?}: {}", object["command"]);
        assert_eq!(object["adapter"].is_string(), args[0] != "kernels", "{args:?}");
        assert!(object["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{args:?}");
    }
    assert_eq!(json(&["demo", "--json", "--seed", "18446744073709551615"])["seed"], u64::MAX);
}

#[test]
fn the_demonstration_agrees_at_any_seed_and_at_the_limits_of_webgpu() {
    for args in [&["demo", "--json", "--seed", "3"][..], &["demo", "--json", "--limits", "webgpu"]] {
        let object = json(args);
        assert_eq!((&object["failed"], &object["passed"]), (&0.into(), &object["rows"].as_array().expect("rows").len().into()));
        assert_eq!(object["limits"], if args.contains(&"webgpu") { "webgpu" } else { "native" });
        assert!(object["target"].is_string());
    }
}

#[test]
fn kernels_are_printed_in_every_language() {
    for (language, part) in
        [("wgsl", "fn scale_add("), ("spirv", "07230203"), ("msl", "kernel void scale_add"), ("hlsl", "numthreads"), ("glsl", "#version")]
    {
        let output = run(&["kernels", "print", "scale_add", "--language", language]);
        assert!(output.status.success() && text(&output.stdout).contains(part), "{language}");
    }
}

#[test]
fn every_kernel_is_valid() {
    let object = json(&["kernels", "check", "--json"]);
    assert_eq!(object["failed"], 0);
    let rows = object["rows"].as_array().expect("rows");
    assert_eq!(object["passed"].as_u64(), Some(rows.len() as u64));
    assert!(rows.iter().all(|row| row["result"] == "valid"));
}

#[test]
fn nobody_needs_to_read_standard_error() {
    let (reader, closed) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut sinks = vec![Stdio::from(closed)];
    if let Ok(full) = std::fs::File::options().write(true).open("/dev/full") {
        sinks.push(full.into());
    }
    for sink in sinks {
        let status = sublane(&["run", "none.onnx"]).stdout(Stdio::null()).stderr(sink).status().expect("starts");
        assert_eq!(status.code(), Some(1));
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = sublane(&["kernels", "list", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    let mut message = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut message).expect("UTF-8");
    assert_eq!(child.wait().expect("ends").code(), Some(0), "{message}");
    assert_eq!(message, "");
}
