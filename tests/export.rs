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

/// Every file below a folder, with what it holds.
fn contents(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for name in names(folder) {
        let path = folder.join(name);
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => drop(found.insert(path.clone(), files::read(&path).expect("read"))),
        }
    }
    found
}

/// Two graphs whose exports differ in all files, and the target they are for.
fn two() -> ([Compiled; 2], Target) {
    let target = Target::webgpu();
    (([Mode::Compiled, Mode::Eager].map(|mode| compiled(&model(), &target, mode))), target)
}

#[test]
fn a_folder_with_other_files_is_left_alone_unless_it_is_forced() {
    let around = tempfile::tempdir().expect("a folder");
    let folder = around.path().join("export");
    std::fs::create_dir(&folder).expect("made");
    let ([first, second], target) = two();
    export::write(&first, &target, "first", &folder, false).expect("an empty folder is written to");
    export::write(&second, &target, "second", &folder, false).expect("an export is replaced");
    let read = export::read(&folder).expect("read");
    assert_eq!((read.source.as_str(), read.compiled.plan()), ("second", second.plan()));
    assert_eq!(names(&folder.join("kernels")).len(), second.plan().kernels.len(), "the first one's kernels are gone");

    let others = ["notes.txt", "kernels/mine.cu", "kernels/below/mine.wgsl"];
    std::fs::create_dir(folder.join("kernels/below")).expect("made");
    for (at, other) in others.iter().enumerate() {
        std::fs::write(folder.join(other), "mine").expect("written");
        let before = contents(&folder);
        let error = export::write(&first, &target, "first", &folder, false).expect_err("refused");
        let name = other.trim_end_matches("/mine.wgsl");
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("beside an earlier export"), "{error}");
        assert!(at > 0 || error.to_string().contains("`kernels/below`"), "{error}");
        export::check_folder(&folder, false).expect_err("refused at once");
        assert_eq!(contents(&folder), before, "nothing was touched for {name}");
    }
    for (compiled, source) in [(&first, "first"), (&second, "second")] {
        export::write(compiled, &target, source, &folder, true).expect("forced");
        assert_eq!(export::read(&folder).expect("read").source, source);
        assert!(others.iter().all(|other| files::read(folder.join(other)).expect("kept") == b"mine"));
        let count = compiled.plan().kernels.iter().filter(|k| folder.join(format!("kernels/{}.wgsl", k.name)).is_file()).count();
        assert_eq!((names(&folder).len(), names(&folder.join("kernels")).len()), (4, count + 2), "and nothing else");
    }
}

#[test]
fn what_no_export_wrote_is_never_replaced() {
    let ([first, second], target) = two();
    let kernel = |compiled: &Compiled| format!("kernels/{}.wgsl", compiled.plan().kernels[0].name);
    let around = tempfile::tempdir().expect("a folder");
    let refused = |folder: &Path, force: bool, part: &str| {
        let before = contents(folder);
        let error = export::write(&second, &target, "second", folder, force).expect_err("refused");
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(part), "{error}");
        assert_eq!(contents(folder), before, "nothing was touched");
    };
    // Files of the user under the names of an export.
    for (at, name) in ["plan.json", "weights.safetensors", "kernels", &kernel(&second)].into_iter().enumerate() {
        let folder = around.path().join(at.to_string());
        std::fs::create_dir_all(folder.join(name).parent().expect("a folder")).expect("made");
        std::fs::write(folder.join(name), "{}").expect("written");
        for force in [false, true] {
            refused(&folder, force, &format!("`{name}` in `{}` is not as an export wrote it", folder.display()));
        }
    }
    // Files of an export that were changed, one that another export does not write among them.
    for (at, name) in ["plan.json", "weights.safetensors", &kernel(&first)].into_iter().enumerate() {
        let folder = around.path().join(format!("changed {at}"));
        export::write(&first, &target, "first", &folder, false).expect("written");
        let mut bytes = files::read(folder.join(name)).expect("read");
        let last = bytes.len() - 9;
        bytes[last] ^= 1;
        std::fs::write(folder.join(name), &bytes).expect("written");
        refused(&folder, false, &format!("`{name}`"));
        if at < 2 {
            refused(&folder, true, &format!("`{name}`"));
        } else {
            export::write(&second, &target, "second", &folder, true).expect("it is in nobody's way");
            assert_eq!(files::read(folder.join(name)).expect("kept"), bytes);
        }
    }
    let error = export::write(&first, &target, "first", &around.path().join("0/plan.json"), false).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    #[cfg(unix)]
    {
        // A link may lead to what others use.
        let (folder, elsewhere) = (around.path().join("link"), around.path().join("elsewhere"));
        export::write(&first, &target, "first", &folder, false).expect("written");
        std::fs::rename(folder.join("kernels"), &elsewhere).expect("moved");
        std::os::unix::fs::symlink(&elsewhere, folder.join("kernels")).expect("linked");
        for force in [false, true] {
            refused(&folder, force, "`kernels`");
        }
    }
}

#[test]
fn what_an_interrupted_export_left_is_no_obstacle_and_goes() {
    let ([first, second], target) = two();
    let around = tempfile::tempdir().expect("a folder");
    let whole = around.path().join("whole");
    export::write(&second, &target, "second", &whole, false).expect("written");
    let new: Vec<PathBuf> = contents(&whole).into_keys().map(|path| path.strip_prefix(&whole).expect("inside").into()).collect();
    // The files of an export are moved one after another, the plan first and last; it may end before any of them.
    let count = first.plan().kernels.len() + new.len() + 2;
    for steps in 0..=count {
        let folder = around.path().join(format!("after {steps}"));
        export::write(&first, &target, "first", &folder, false).expect("written");
        let work = folder.join(".sublane-export-Ab3dE6");
        for made in ["new/kernels", "old/kernels"] {
            std::fs::create_dir_all(work.join(made)).expect("made");
        }
        for path in &new {
            std::fs::copy(whole.join(path), work.join("new").join(path)).expect("copied");
        }
        let plan_first = |path: &PathBuf| (path != Path::new("plan.json"), path.clone());
        let mut old: Vec<PathBuf> = contents(&folder).into_keys().map(|path| path.strip_prefix(&folder).expect("inside").into()).collect();
        old.retain(|path| !path.starts_with(work.file_name().expect("a name")));
        old.sort_by_key(plan_first);
        let mut new = new.clone();
        new.sort_by_key(plan_first);
        new.rotate_left(1);
        let out = old.iter().map(|path| (folder.join(path), work.join("old").join(path)));
        let into = new.iter().map(|path| (work.join("new").join(path), folder.join(path)));
        out.chain(into).take(steps).for_each(|(from, to)| std::fs::rename(from, to).expect("moved"));
        export::check_folder(&folder, false).expect("no obstacle");
        export::write(&second, &target, "again", &folder, false).expect("written");
        assert_eq!(names(&folder), ["kernels", "plan.json", "weights.safetensors"], "after {steps}");
        assert_eq!(export::read(&folder).expect("whole").source, "again");
        assert_eq!(names(&folder.join("kernels")), names(&whole.join("kernels")));
    }
    // A new folder in which nothing else was made yet; and one of such a name that is somebody's.
    let folder = around.path().join("begun");
    std::fs::create_dir_all(folder.join(".sublane-export-Ab3dE6/new/kernels")).expect("made");
    std::fs::create_dir_all(folder.join(".sublane-export-Zy9xW8")).expect("made");
    export::write(&first, &target, "first", &folder, false).expect("written");
    assert_eq!(names(&folder), ["kernels", "plan.json", "weights.safetensors"]);
    let mine = folder.join(".sublane-export-mine/notes");
    std::fs::create_dir_all(&mine).expect("made");
    let error = export::write(&first, &target, "first", &folder, false).expect_err("refused").to_string();
    assert!(error.contains("`.sublane-export-mine` beside an earlier export"), "{error}");
    export::write(&first, &target, "first", &folder, true).expect("forced");
    assert!(mine.is_dir());
}

#[cfg(unix)]
#[test]
fn an_export_that_cannot_be_written_leaves_what_was_there() {
    use std::os::unix::fs::PermissionsExt;
    let ([first, second], target) = two();
    let around = tempfile::tempdir().expect("a folder");
    let folder = around.path().join("export");
    export::write(&first, &target, "first", &folder, false).expect("written");
    let before = contents(&folder);
    let set = |mode| std::fs::set_permissions(folder.join("kernels"), std::fs::Permissions::from_mode(mode)).expect("set");
    set(0o555);
    // The superuser may write everywhere.
    let is_free = std::fs::write(folder.join("kernels/x"), "").is_ok();
    if is_free {
        std::fs::remove_file(folder.join("kernels/x")).expect("removed");
        set(0o755);
        return;
    }
    let error = export::write(&second, &target, "second", &folder, false).expect_err("refused");
    set(0o755);
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert_eq!(contents(&folder), before);
    assert_eq!(names(&folder), ["kernels", "plan.json", "weights.safetensors"]);
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
