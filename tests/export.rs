//! Exports: what is loaded gives the bits of what was compiled; files that are missing, damaged or edited are errors.

use std::path::{Path, PathBuf};

use sublane::capture::capture;
use sublane::compiler::{CompileOptions, Compiled, Mode, compile, export};
use sublane::device::DeviceOptions;
use sublane::graph::{Graph, TensorType};
use sublane::kernels_gen::Target;
use sublane::ops::custom::{CustomKernel, CustomOp, Launch, Workgroups};
use sublane::ops::prelude::*;
use sublane::{DType, Device, ErrorKind, HostTensor, Result, Session, files};

fn numbers(shape: &[usize]) -> HostTensor {
    let count: usize = shape.iter().product();
    HostTensor::new(shape, (0..count).map(|i| (i as f32 * 0.61).sin()).collect::<Vec<f32>>()).expect("a tensor")
}

const HALVE: &str = "@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> count: u32;
@compute @workgroup_size(64)
fn halve(@builtin(global_invocation_id) at: vec3<u32>) { if (at.x < count) { y[at.x] = x[at.x] * 0.5; } }";

fn halve(text: &str) -> CustomOp {
    let kernel = CustomKernel { name: "halve".into(), wgsl: text.into(), max_iterations: 0.into(), flops: 0.into() };
    let rule = |inputs: &[&TensorType]| {
        let count = inputs[0].num_elems() as u32;
        Ok(Launch { result: inputs[0].clone(), workgroups: Workgroups::Grid([count.div_ceil(64), 1, 1]), params: vec![count] })
    };
    CustomOp::new(kernel, rule).expect("an operation")
}

/// Products, a user's kernel, constants of several types, an input and a constant handed through.
fn model() -> Graph {
    let build = |t: &sublane::capture::Tracer| -> Result<_> {
        let x = t.input("x", [5, 16], DType::F32)?;
        let hidden = halve(HALVE).apply(&[&x.matmul(&t.constant(numbers(&[16, 24]))?)?.relu()?])?;
        let places = t.constant(HostTensor::new([6], vec![3i32, 0, 23, 7, 7, 1])?)?;
        let mask = t.constant(HostTensor::from_bools([5, 6], &(0..30).map(|i| i % 3 == 0).collect::<Vec<_>>())?)?;
        let taken = hidden.gather(&places, 1)?;
        let masked = mask.select(&taken, &taken.mul_scalar(-1.0)?)?;
        Ok([("soft", hidden.softmax(-1)?), ("masked", masked), ("x again", x), ("table", t.constant(numbers(&[3]))?)])
    };
    capture(build).expect("captured")
}

fn compiled(graph: &Graph, target: &Target, mode: Mode) -> Compiled {
    compile(graph, target, &CompileOptions { mode, ..CompileOptions::default() }).expect("compiles")
}

fn written(folder: &Path) -> Compiled {
    let target = Target::webgpu();
    let compiled = compiled(&model(), &target, Mode::Compiled);
    export::write(&compiled, &target, "model", folder, false).expect("written");
    compiled
}

fn names(folder: &Path) -> Vec<String> {
    let listed = std::fs::read_dir(folder).expect("listed");
    let mut names: Vec<String> = listed.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

#[test]
fn what_is_loaded_gives_the_bits_of_what_was_compiled() {
    let device = Device::open(&DeviceOptions::from_env()).expect("a device");
    let around = tempfile::tempdir().expect("a folder");
    for (name, target, mode) in
        [("native", device.target(), Mode::Compiled), ("webgpu", Target::webgpu(), Mode::Compiled), ("eager", device.target(), Mode::Eager)]
    {
        let folder = around.path().join("below").join(name);
        let compiled = compiled(&model(), &target, mode);
        let files = export::write(&compiled, &target, "a model", &folder, false).expect("written");
        assert_eq!(names(&folder), ["kernels", "plan.json", "weights.safetensors"]);
        assert_eq!(files.len(), 2 + compiled.plan().kernels.len());
        assert!(files.iter().all(|file| file.path.metadata().expect("there").len() == file.bytes));
        let read = export::read(&folder).expect("read");
        assert_eq!((read.source.as_str(), read.target.as_str()), ("a model", target.name.as_str()));
        assert_eq!(read.compiled.plan(), compiled.plan());
        assert_eq!(read.compiled.kernels(), compiled.kernels());

        let (direct, loaded) =
            (Session::load(&device, &compiled).expect("loads"), Session::load_exported(&device, &folder).expect("loads from files"));
        let x = numbers(&[5, 16]);
        assert_eq!(loaded.run(&[("x", &x)]).expect("runs"), direct.run(&[("x", &x)]).expect("runs"), "{name}");
    }
    assert_eq!(names(&around.path().join("below")), ["eager", "native", "webgpu"], "nothing else is left");
}

#[test]
fn weights_are_tensors_of_their_types_and_kernels_are_their_texts() {
    let around = tempfile::tempdir().expect("a folder");
    let folder = around.path().join("export");
    let compiled = written(&folder);
    let bytes = files::read(folder.join("weights.safetensors")).expect("read");
    let tensors = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    let elems = |t: &safetensors::tensor::TensorView<'_>| t.shape().iter().product::<usize>();
    let mut found: Vec<(String, usize)> = tensors.tensors().iter().map(|(_, t)| (format!("{:?}", t.dtype()), elems(t))).collect();
    found.sort();
    assert_eq!(found, [("BOOL", 30), ("F32", 3), ("F32", 16 * 24), ("I32", 6)].map(|(dtype, elems)| (dtype.to_string(), elems)));
    for kernel in &compiled.plan().kernels {
        assert_eq!(files::read(folder.join(format!("kernels/{}.wgsl", kernel.name))).expect("read"), kernel.wgsl.as_bytes());
    }
    let plan: serde_json::Value = serde_json::from_slice(&files::read(folder.join("plan.json")).expect("read")).expect("JSON");
    assert_eq!((plan["format"].as_str(), plan["schema"].as_u64()), (Some("sublane export"), Some(1)));
    assert!(plan["note"].as_str().is_some_and(|note| note.contains("Session::load_exported")));
    assert_eq!(plan["content"]["target"]["name"], "webgpu");
    assert_eq!(plan["content"]["compiled"]["inputs"][0]["name"], "x");
}

#[test]
fn files_that_are_missing_damaged_or_edited_are_errors() {
    let device = Device::noop().expect("a device");
    let around = tempfile::tempdir().expect("a folder");
    let folder = around.path().join("export");
    let kernel = written(&folder).plan().kernels[0].name.clone();
    Session::load_exported(&device, &folder).expect("whole");
    let kernel = PathBuf::from(format!("kernels/{kernel}.wgsl"));
    let refused = |kind: ErrorKind, part: &str| {
        let error = Session::load_exported(&device, &folder).expect_err("refused");
        let message = error.to_string();
        assert!(error.kind() == kind && message.contains(part) && message.contains("the export in `"), "{message}");
    };
    for file in [Path::new("plan.json"), Path::new("weights.safetensors"), &kernel] {
        let path = folder.join(file);
        let whole = files::read(&path).expect("read");
        std::fs::remove_file(&path).expect("removed");
        refused(ErrorKind::Io, file.to_str().expect("UTF-8"));
        // Cut at every part of the file, and one bit changed at many places.
        for at in (0..whole.len()).step_by(whole.len() / 40 + 1) {
            std::fs::write(&path, &whole[..at]).expect("written");
            refused(ErrorKind::Malformed, file.to_str().expect("UTF-8"));
            let mut changed = whole.clone();
            changed[at] ^= 1;
            std::fs::write(&path, &changed).expect("written");
            // A note is for people; elsewhere nothing may change.
            match Session::load_exported(&device, &folder) {
                Ok(_) => assert!(file == Path::new("plan.json") && at < 800, "{} at {at}", file.display()),
                Err(error) => assert!(matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Unsupported | ErrorKind::Io), "{error}"),
            }
        }
        std::fs::write(&path, &whole).expect("written");
    }
    let plan = folder.join("plan.json");
    let text = String::from_utf8(files::read(&plan).expect("read")).expect("UTF-8");
    for (from, to, kind, part) in [
        ("\"schema\": 1", "\"schema\": 9", ErrorKind::Unsupported, "it has schema 9"),
        ("sublane export", "sublane import", ErrorKind::Malformed, "no `sublane export`"),
        ("\"workgroups\": [", "\"workgroups\": [1,", ErrorKind::Malformed, "`plan.json`"),
        ("\"name\": \"x\"", "\"name\": \"z\"", ErrorKind::Malformed, "is not what was exported; export again"),
    ] {
        assert!(text.contains(from), "{from}");
        std::fs::write(&plan, text.replacen(from, to, 1)).expect("written");
        refused(kind, part);
    }
    // Blanks mean nothing.
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    std::fs::write(&plan, value.to_string()).expect("written");
    Session::load_exported(&device, &folder).expect("the same plan");
    let error = Session::load_exported(&device, around.path().join("none")).expect_err("refused");
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("plan.json"), "{error}");
}

#[test]
fn a_plan_that_was_forged_is_refused_too() {
    use sha2::{Digest, Sha256};
    let device = Device::noop().expect("a device");
    let around = tempfile::tempdir().expect("a folder");
    let folder = around.path().join("export");
    written(&folder);
    let plan = folder.join("plan.json");
    let text = String::from_utf8(files::read(&plan).expect("read")).expect("UTF-8");
    let forge = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        change(&mut value["content"]);
        let digest: String = Sha256::digest(value["content"].to_string()).iter().map(|byte| format!("{byte:02x}")).collect();
        value["digest"] = digest.into();
        std::fs::write(&plan, value.to_string()).expect("written");
        Session::load_exported(&device, &folder).map(|_| ()).map_err(|error| error.to_string())
    };
    forge(&|_| ()).expect("the forger knows the form");
    let refused = |part: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let message = forge(change).expect_err("refused");
        assert!(message.contains(part), "{message}");
    };
    refused("is no name of a kernel", &|content| content["compiled"]["plan"]["kernels"][0]["name"] = "../../etc/passwd".into());
    refused("does not fit its slot", &|content| content["compiled"]["outputs"][0]["ty"]["shape"][0] = 1_000_000.into());
    refused("more bytes than can be addressed", &|content| content["compiled"]["inputs"][0]["ty"]["shape"][0] = u64::MAX.into());
    refused("has slot 4000000 of", &|content| content["compiled"]["inputs"][0]["slot"] = 4_000_000.into());
    refused("no element type", &|content| content["compiled"]["inputs"][0]["ty"]["dtype"] = "f128".into());
    refused("lacks `constant_99`", &|content| content["compiled"]["constants"][0]["name"] = "constant_99".into());
    refused("the plan has constant", &|content| content["compiled"]["constants"] = serde_json::json!([]));
    refused("describe", &|content| content["compiled"]["kernels"] = serde_json::json!([]));
}

#[test]
fn a_folder_with_other_files_is_left_alone_unless_it_is_forced() {
    let around = tempfile::tempdir().expect("a folder");
    let folder = around.path().join("export");
    std::fs::create_dir(&folder).expect("made");
    let target = Target::webgpu();
    let [first, second] = [Mode::Compiled, Mode::Eager].map(|mode| compiled(&model(), &target, mode));
    export::write(&first, &target, "first", &folder, false).expect("an empty folder is written to");
    export::write(&second, &target, "second", &folder, false).expect("an export is replaced");
    let read = export::read(&folder).expect("read");
    assert_eq!((read.source.as_str(), read.compiled.plan()), ("second", second.plan()));
    assert_eq!(names(&folder.join("kernels")).len(), second.plan().kernels.len(), "the first one's kernels are gone");

    std::fs::write(folder.join("notes.txt"), "mine").expect("written");
    let error = export::write(&first, &target, "first", &folder, false).expect_err("refused");
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("holds `notes.txt` beside"), "{error}");
    assert_eq!(export::read(&folder).expect("read").source, "second", "nothing was touched");
    export::write(&first, &target, "first", &folder, true).expect("forced");
    assert_eq!(export::read(&folder).expect("read").source, "first");
    assert_eq!(names(&folder), ["kernels", "notes.txt", "plan.json", "weights.safetensors"]);

    let other = around.path().join("other");
    std::fs::create_dir(&other).expect("made");
    std::fs::write(other.join("plan.json"), "{}").expect("written");
    let error = export::write(&first, &target, "first", &other, false).expect_err("refused");
    assert!(error.to_string().contains("is not empty and holds no export"), "{error}");
    let error = export::write(&first, &target, "first", &other.join("plan.json"), false).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(names(&other), ["plan.json"]);
}

#[test]
fn a_device_that_lacks_something_is_told_what() {
    let around = tempfile::tempdir().expect("a folder");
    let folder = around.path().join("export");
    let text = format!("enable f16;\n{}", HALVE.replace("* 0.5", "* f32(f16(0.5))"));
    let graph = capture(|t| halve(&text).apply(&[&t.input("x", [8], DType::F32)?])).expect("captured");
    let target = Target::desktop();
    export::write(&compiled(&graph, &target, Mode::Compiled), &target, "halves", &folder, false).expect("written");
    let error = Session::load_exported(&Device::noop().expect("a device"), &folder).expect_err("refused");
    let message = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{message}");
    for part in ["for target `desktop`", "lacks 16-bit floats (kernel `halve_", "export for `webgpu`"] {
        assert!(message.contains(part), "{message}");
    }
}
