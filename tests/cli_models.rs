//! The commands on models from outside, with models and images made here: results, JSON, files, bad input.

use rten_onnx::onnx::{
    DataType, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, TypeProtoTensor,
    ValueInfoProto,
};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use sublane::HostTensor;
use sublane::import::npy;

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sublane")).args(args).current_dir(folder).env_remove("RUST_LOG").output().expect("starts")
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let output = run(folder, &[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Exit code and standard error of a command that must not succeed and must not print results.
fn fails(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = run(folder, args);
    assert!(output.stdout.is_empty(), "{args:?} writes to standard output");
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}

fn info(name: &str, dims: &[Option<i64>]) -> ValueInfoProto {
    let dim = |size: &Option<i64>| Dimension { dim_value: *size, dim_param: size.is_none().then(|| "N".into()) };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor_type = Some(TypeProtoTensor { elem_type: Some(DataType::FLOAT), shape });
    ValueInfoProto { name: Some(name.into()), r#type: Some(TypeProto { tensor_type, sequence: None }) }
}

fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    let input = inputs.iter().map(|s| s.to_string()).collect();
    NodeProto { op_type: Some(op.into()), name: Some(format!("the_{op}")), input, output: vec![output.into()], ..Default::default() }
}

/// A classifier of images of 2x2 into two classes: the scores are the first two pixels, negative ones cut off.
fn classifier() -> Vec<u8> {
    let weights = TensorProto {
        name: Some("w".into()),
        dims: vec![4, 2],
        data_type: Some(DataType::FLOAT),
        float_data: vec![1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        ..Default::default()
    };
    let nodes = vec![node("Flatten", &["x"], "flat"), node("MatMul", &["flat", "w"], "raw"), node("Relu", &["raw"], "scores")];
    let graph = GraphProto {
        node: nodes,
        initializer: vec![weights],
        input: vec![info("x", &[None, Some(1), Some(2), Some(2)])],
        output: vec![info("scores", &[None, Some(2)])],
        ..Default::default()
    };
    let opset_import = vec![OperatorSetIdProto { domain: None, version: Some(13) }];
    ModelProto { ir_version: Some(8), graph: Some(graph), opset_import, ..Default::default() }.write_buf().expect("encodes")
}

/// A folder with the classifier as `model.onnx`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join("model.onnx"), classifier()).expect("written");
    folder
}

/// Five images of which the classifier gets four right.
fn images(folder: &Path) {
    let head = |sizes: &[u32]| [vec![0, 0, 8, sizes.len() as u8], sizes.iter().flat_map(|s| s.to_be_bytes()).collect()].concat();
    let pixels = [[9, 1, 0, 0], [1, 9, 0, 0], [200, 100, 7, 7], [0, 255, 0, 0], [5, 4, 3, 2]].concat();
    std::fs::write(folder.join("t10k-images-idx3-ubyte"), [head(&[5, 2, 2]), pixels].concat()).expect("written");
    std::fs::write(folder.join("t10k-labels-idx1-ubyte"), [head(&[5]), vec![0, 1, 0, 1, 1]].concat()).expect("written");
}

#[test]
fn run_takes_arrays_and_writes_arrays() {
    let folder = folder();
    let folder = folder.path();
    let x = HostTensor::new([3, 1, 2, 2], vec![1f32, -2.0, 0.0, 0.0, 3.0, 4.0, 9.0, 9.0, -5.0, 0.5, 1.0, 1.0]).expect("fits");
    npy::write(folder.join("x.npy"), &x).expect("written");
    for mode in ["compiled", "eager"] {
        let args = ["run", "model.onnx", "--input", "x=x.npy", "--output", "out", "--runs", "3", "--profile", "--mode", mode];
        let object = json(folder, &args);
        let scores = npy::read(folder.join("out/scores.npy")).expect("written");
        assert_eq!((scores.shape(), scores.as_slice::<f32>().expect("f32")), (&[3, 2][..], &[1.0, 0.0, 3.0, 4.0, 0.0, 0.5][..]));
        assert_eq!((&object["command"], &object["mode"]), (&"run".into(), &mode.into()));
        assert!(object["median_ms"].is_f64() && object["first_ms"].is_f64());
        assert_eq!((&object["rows"][0]["name"], &object["rows"][0]["max"]), (&"scores".into(), &4.0.into()));
        assert_eq!((&object["inputs"][0]["source"], &object["inputs"][0]["type"]), (&"x.npy".into(), &"f32[3, 1, 2, 2]".into()));
        let times = object["kernel_times"].as_array().expect("a table");
        let calls: u64 = times.iter().filter_map(|t| t["calls"].as_u64()).sum();
        assert_eq!(object["kernels"].as_u64(), Some(calls));
        assert!((times.iter().filter_map(|t| t["share"].as_f64()).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(times.iter().any(|t| t["origins"].as_array().is_some_and(|o| o.contains(&"the_MatMul".into()))), "{times:?}");
    }
    let object = json(folder, &["run", "model.onnx", "--input", "x=zeros", "--batch", "2"]);
    assert_eq!((&object["rows"][0]["type"], &object["rows"][0]["max"]), (&"f32[2, 2]".into(), &0.0.into()));
    assert!(object["median_ms"].is_null());
    let of_seed = |seed: &str| json(folder, &["run", "model.onnx", "--seed", seed])["rows"].clone();
    assert_eq!(of_seed("1"), of_seed("1"));
    assert_ne!(of_seed("1"), of_seed("2"));
}

#[test]
fn run_writes_every_output_to_a_file_of_its_own() {
    let folder = tempfile::tempdir().expect("folder");
    let folder = folder.path();
    let graph = GraphProto {
        node: vec![node("Relu", &["x"], "a/b"), node("Neg", &["x"], "a_b")],
        input: vec![info("x", &[Some(2)])],
        output: vec![info("a/b", &[Some(2)]), info("a_b", &[Some(2)])],
        ..Default::default()
    };
    let opset_import = vec![OperatorSetIdProto { domain: None, version: Some(13) }];
    let model = ModelProto { ir_version: Some(8), graph: Some(graph), opset_import, ..Default::default() }.write_buf().expect("encodes");
    std::fs::write(folder.join("two.onnx"), model).expect("written");
    npy::write(folder.join("x.npy"), &HostTensor::new([2], vec![-1f32, 2.0]).expect("fits")).expect("written");
    let object = json(folder, &["run", "two.onnx", "--input", "x=x.npy", "--output", "out"]);
    for (at, expected) in [[0.0, 2.0], [1.0, -2.0]].iter().enumerate() {
        let file = object["rows"][at]["file"].as_str().expect("a file");
        assert_eq!(npy::read(folder.join(file)).expect("written").as_slice::<f32>().expect("f32"), expected, "{file}");
    }
}

#[test]
fn bad_input_exits_1_and_says_what_to_do() {
    let folder = folder();
    let folder = folder.path();
    let bytes = classifier();
    std::fs::write(folder.join("cut.onnx"), &bytes[..bytes.len() - 3]).expect("written");
    npy::write(folder.join("ints.npy"), &HostTensor::new([1, 1, 2, 2], vec![1i32; 4]).expect("fits")).expect("written");
    npy::write(folder.join("wide.npy"), &HostTensor::new([1, 1, 2, 3], vec![1f32; 6]).expect("fits")).expect("written");
    std::fs::create_dir_all(folder.join("taken/scores.npy")).expect("made");
    for (args, parts) in [
        (&["run", "none.onnx"][..], &["none.onnx"][..]),
        (&["run", "cut.onnx"], &["cut.onnx"]),
        (&["run", "model.onnx", "--input", "y=zeros"], &["`y`", "inputs are `x`"]),
        (&["run", "model.onnx", "--input", "x=none.npy"], &["none.npy"]),
        (&["run", "model.onnx", "--input", "x=ints.npy"], &["i32[1, 1, 2, 2]", "f32[1, 1, 2, 2]"]),
        (&["run", "model.onnx", "--input", "x=wide.npy"], &["dimension 3", "2"]),
        (&["run", "model.onnx", "--input", "x=zeros", "--input", "x=random"], &["twice"]),
        (&["run", "model.onnx", "--memory-limit", "16"], &["memory"]),
        (&["explain", "none.onnx"], &["none.onnx"]),
        (&["run", "model.onnx", "--output", "model.onnx/out"], &["`model.onnx/out`"]),
        (&["run", "model.onnx", "--output", "taken"], &["`taken/scores.npy`"]),
        (&["bench", "all", "--html", "none/page.html"], &["`none/page.html`"]),
        (&["bench", "all", "--html", "taken"], &["`taken`"]),
        (&["bench", "model", "none.onnx"], &["none.onnx"]),
        (&["run", "model.onnx", "--dim", "M=3"], &["`M`", "`N`"]),
        (&["eval", "model.onnx", "--dataset", "cifar10:none.bin"], &["none.bin"]),
        (&["eval", "model.onnx", "--dataset", "mnist-idx:."], &["images-idx3-ubyte"]),
    ] {
        let (code, message) = fails(folder, args);
        assert_eq!(code, Some(1), "{args:?}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)) && !message.contains(".sublane-"), "{args:?}: {message}");
    }
    for args in [
        &["run"][..],
        &["run", "model.onnx", "--input", "x"],
        &["run", "model.onnx", "--runs", "0"],
        &["run", "model.onnx", "--mode", "fast"],
        &["run", "model.onnx", "--dim", "N=many"],
        &["eval", "model.onnx"],
        &["eval", "model.onnx", "--dataset", "imagenet:x"],
        &["bench", "model", "--batch", "0"],
        &["bench", "nothing"],
        &["bench", "gemm", "model.onnx"],
    ] {
        assert_eq!(fails(folder, args).0, Some(2), "{args:?}");
    }
}

#[test]
fn eval_counts_what_is_right_and_says_how_it_prepared() {
    let folder = folder();
    let folder = folder.path();
    images(folder);
    for mode in ["compiled", "eager"] {
        let object = json(folder, &["eval", "model.onnx", "--dataset", "mnist-idx:.", "--batch", "2", "--mode", mode]);
        assert_eq!((&object["correct"], &object["total"], &object["top1"]), (&4.into(), &5.into(), &0.8.into()));
        assert_eq!((&object["scale"], &object["batch"], &object["mode"]), (&1.0.into(), &2.into(), &mode.into()));
        assert_eq!(object["limits"], "native");
        assert!(object["images_per_s"].as_f64().is_some_and(|x| x > 0.0));
    }
    // A mean above every pixel turns all scores to 0, of which the first wins.
    let args = ["eval", "model.onnx", "--dataset", "mnist-idx:.", "--mean", "300", "--limit", "4", "--order", "bgr"];
    let object = json(folder, &args);
    assert_eq!((&object["correct"], &object["total"], &object["batch"]), (&2.into(), &4.into(), &64.into()));
    let (code, message) = fails(folder, &["eval", "model.onnx", "--dataset", "mnist-idx:.", "--std", "1,2,3"]);
    assert!(code == Some(1) && message.contains("std"), "{message}");
    for (option, value) in
        [("--mean", "nan"), ("--mean", "-inf"), ("--mean", "inf"), ("--scale", "-1"), ("--scale", "0"), ("--std", "-1"), ("--std", "-nan")]
    {
        let (code, message) = fails(folder, &["eval", "model.onnx", "--dataset", "mnist-idx:.", option, value]);
        assert!(code == Some(1) && message.contains(&option[2..]) && message.contains("finite"), "{option} {value}: {message}");
    }
    std::fs::copy(folder.join("t10k-labels-idx1-ubyte"), folder.join("t10k-labels-idx1-ubyte.old")).expect("copied");
    let (code, message) = fails(folder, &["eval", "model.onnx", "--dataset", "mnist-idx:."]);
    assert!(code == Some(1) && message.contains("t10k-labels-idx1-ubyte.old"), "{message}");
}

#[test]
fn explain_shows_stages_groups_and_kernels_and_dumps_them() {
    let folder = folder();
    let folder = folder.path();
    let object = json(folder, &["explain", "model.onnx", "--dump", "texts"]);
    assert_eq!(object["num_kernels"], 1, "{object}");
    assert_eq!(object["rows"][0]["origins"].as_array().map(|o| o.contains(&"the_Relu".into())), Some(true));
    assert_eq!(object["groups"][0]["kind"], "hero");
    let stages: Vec<&str> = object["stages"].as_array().expect("a table").iter().filter_map(|s| s["name"].as_str()).collect();
    assert!(stages.contains(&"decompose") && stages.contains(&"fuse"), "{stages:?}");
    let names: Vec<String> =
        std::fs::read_dir(folder.join("texts")).expect("made").map(|e| e.expect("entry").file_name().to_string_lossy().into()).collect();
    let kernel = format!("{}.wgsl", object["rows"][0]["kernel"].as_str().expect("a name"));
    assert!(names.contains(&kernel) && names.iter().any(|n| n.ends_with("_decompose.txt")), "{names:?}");
    let (code, message) = fails(folder, &["explain", "model.onnx", "--dump", "texts"]);
    assert!(code == Some(1) && message.contains("texts"), "{message}");
    let eager = json(folder, &["explain", "model.onnx", "--mode", "eager"]);
    assert_eq!(eager["num_kernels"], 2);
    let reasons = eager["refusals"].as_array().expect("a table");
    assert!(reasons.iter().any(|r| r["reason"].as_str().is_some_and(|r| r.contains("eager"))), "{reasons:?}");
}

#[test]
fn export_writes_what_a_session_runs_without_the_compiler() {
    let folder = folder();
    let folder = folder.path();
    for target in ["webgpu", "native"] {
        let object = json(folder, &["export", "model.onnx", "--target", target, "-o", "out", "--batch", "3"]);
        assert!(target == "native" || object["target"] == target, "{object}");
        assert_eq!((&object["num_kernels"], &object["constants"]), (&1.into(), &1.into()), "{object}");
        let rows = object["rows"].as_array().expect("rows");
        assert!(rows.iter().all(|row| folder.join(row["file"].as_str().expect("a path")).is_file()), "{rows:?}");
        let device = sublane::Device::open(&sublane::device::DeviceOptions::from_env()).expect("a device");
        let session = sublane::Session::load_exported(&device, folder.join("out")).expect("loads");
        let x = HostTensor::new([3, 1, 2, 2], (0..12).map(|i| i as f32 - 4.0).collect::<Vec<f32>>()).expect("x");
        let scores = session.run(&[("x", &x)]).expect("runs").single().expect("one");
        assert_eq!(scores.to_f64(), [0.0, 0.0, 0.0, 1.0, 4.0, 5.0]);
    }
    std::fs::write(folder.join("out/mine"), "").expect("written");
    let (code, message) = fails(folder, &["export", "model.onnx", "-o", "out"]);
    assert!(code == Some(1) && message.contains("holds `mine` beside an earlier export") && message.contains("--force"), "{message}");
    json(folder, &["export", "model.onnx", "-o", "out", "--force"]);
    assert!(folder.join("out/mine").is_file());

    // A user's files stay, with `--force` too.
    std::fs::create_dir_all(folder.join("mine/kernels")).expect("made");
    for (name, force) in [("kernels/mine.cu", false), ("weights.safetensors", true), ("plan.json", true)] {
        let path = folder.join("mine").join(name);
        std::fs::write(&path, "mine").expect("written");
        let (code, message) = fails(folder, &[&["export", "model.onnx", "-o", "mine"][..], &["--force"][..usize::from(force)]].concat());
        assert!(code == Some(1) && message.contains(&format!("`{name}`")), "{message}");
        assert_eq!(std::fs::read(&path).expect("kept"), b"mine");
        assert_eq!(std::fs::read(folder.join("mine/kernels/mine.cu")).expect("kept"), b"mine");
        if force {
            std::fs::remove_file(&path).expect("removed");
        }
    }
    json(folder, &["export", "model.onnx", "-o", "mine", "--force"]);
    assert_eq!(std::fs::read(folder.join("mine/kernels/mine.cu")).expect("kept"), b"mine");
}

#[cfg(unix)]
#[test]
fn an_export_that_is_killed_leaves_nothing_that_stops_the_next() {
    let folder = folder();
    let folder = folder.path();
    let export = ["export", "model.onnx", "-o", "out"];
    for ms in [0, 2, 5, 10, 15, 20, 25, 30, 40, 60] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sublane")).args(export).current_dir(folder).stdout(Stdio::null()).spawn();
        let child = child.as_mut().expect("starts");
        std::thread::sleep(std::time::Duration::from_millis(ms));
        child.kill().expect("killed");
        child.wait().expect("ended");
    }
    json(folder, &export);
    let names = |folder: &Path| {
        let listed = std::fs::read_dir(folder).expect("listed");
        let mut names: Vec<String> = listed.map(|entry| entry.expect("entry").file_name().to_string_lossy().into()).collect();
        names.sort();
        names
    };
    assert_eq!(names(folder), ["model.onnx", "out"]);
    assert_eq!(names(&folder.join("out")), ["kernels", "plan.json", "weights.safetensors"]);
}

#[test]
fn options_of_an_adapter_that_is_not_used_are_told() {
    let folder = folder();
    let folder = folder.path();
    let adapter = ["--adapter", "nosuch", "--limits", "native", "--memory-limit", "10", "--autotune", "on"];
    for (what, args) in [
        ("export --target webgpu", &["export", "model.onnx", "-o", "out"][..]),
        ("kernels", &["kernels", "list"]),
        ("motifs list", &["motifs", "list"]),
    ] {
        let output = run(folder, &[args, &adapter].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{message}");
        let told = "uses no adapter: --adapter, --limits, --autotune, --memory-limit has no effect here";
        assert!(message.contains(&format!("`{what}` {told}")), "{message}");
        let output = run(folder, args);
        assert!(output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("uses no adapter"));
    }
}

#[test]
fn a_size_that_is_given_twice_is_refused() {
    let folder = folder();
    for command in [&["run"][..], &["explain"], &["export", "-o", "out"]] {
        let args = [command, &["model.onnx", "--dim", "N=3", "--dim", "N=3"]].concat();
        let (code, message) = fails(folder.path(), &args);
        assert!(code == Some(1) && message.contains("the size of `N` is given twice (`--dim`)"), "{message}");
    }
}

#[test]
fn bench_model_has_the_keys_of_every_benchmark_and_writes_a_page() {
    let folder = folder();
    let folder = folder.path();
    let object = json(folder, &["bench", "model", "model.onnx", "--batch", "1,3", "--quick", "--html", "page.html"]);
    for key in ["clock", "probed_fma_gflops", "probed_read_gbps", "probed_write_gbps", "probed_copy_gbps", "probed_2r1w_gbps"] {
        assert!(!object[key].is_null(), "{key}");
    }
    let rows = object["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|r| r["name"].as_str()).collect();
    assert_eq!(names, ["model, batch 1, compiled", "model, batch 1, eager", "model, batch 3, compiled", "model, batch 3, eager"]);
    let keys: Vec<&str> = rows[0].as_object().expect("a row").keys().map(String::as_str).collect();
    assert_eq!(keys[..8], ["name", "median_ms", "gflops", "gbps", "share", "probe", "kernels", "submissions"]);
    assert_eq!((&rows[0]["kernels"], &rows[1]["kernels"], &rows[0]["submissions"]), (&1.into(), &2.into(), &1.into()));
    assert!(rows[0]["ratio"].is_f64() && rows[1]["ratio"].is_null() && rows[0]["images_per_s"].is_f64());
    let page = std::fs::read_to_string(folder.join("page.html")).expect("written");
    assert!(page.contains("model, batch 1, compiled") && page.contains("<svg"));
}
