//! `sublane quantize` from outside, and the commands that take its files: results, reports, bad input.

use rten_onnx::onnx::{
    DataType, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TypeProto, TypeProtoTensor,
    ValueInfoProto,
};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use sublane::HostTensor;
use sublane::import::npy;
use sublane::import::onnx::{self, ImportOptions};
use sublane::ops::reference_graph;
use sublane::precision::{self, Source};
use sublane::stats::relative_error;

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sublane")).args(args).current_dir(folder).env_remove("RUST_LOG").output().expect("starts")
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let output = run(folder, &[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
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

fn weights(name: &str, dims: &[i64], odd: f32) -> TensorProto {
    let count: i64 = dims.iter().product();
    let mut float_data: Vec<f32> = (0..count).map(|i| (i as f32 * 0.7 + dims[0] as f32).sin()).collect();
    float_data[1] *= odd;
    TensorProto { name: Some(name.into()), dims: dims.to_vec(), data_type: Some(DataType::FLOAT), float_data, ..Default::default() }
}

/// A convolution, a Gemm and a matrix product; the second weight of the Gemm is times `odd`.
fn model(odd: f32) -> Vec<u8> {
    let graph = GraphProto {
        node: vec![
            node("Conv", &["x", "a"], "c"),
            node("Relu", &["c"], "r"),
            node("Flatten", &["r"], "f"),
            node("Gemm", &["f", "b"], "g"),
            node("MatMul", &["g", "d"], "scores"),
        ],
        initializer: vec![weights("a", &[4, 1, 3, 3], 1.0), weights("b", &[64, 16], odd), weights("d", &[16, 10], 1.0)],
        input: vec![info("x", &[None, Some(1), Some(6), Some(6)])],
        output: vec![info("scores", &[None, Some(10)])],
        ..Default::default()
    };
    let opset_import = vec![OperatorSetIdProto { domain: None, version: Some(13) }];
    ModelProto { ir_version: Some(8), graph: Some(graph), opset_import, ..Default::default() }.write_buf().expect("encodes")
}

/// A folder with the model as `model.onnx`, and as `other.onnx` with another weight.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    for (file, odd) in [("model.onnx", 1.0), ("other.onnx", 1.5), ("nan.onnx", f32::NAN)] {
        std::fs::write(folder.path().join(file), model(odd)).expect("written");
    }
    folder
}

/// Scores of the model for the five images of `x.npy`.
fn scores(folder: &Path, args: &[&str]) -> Vec<f64> {
    let object = json(folder, &[&["run", "model.onnx", "--input", "x=x.npy", "--output", "out"], args].concat());
    assert_eq!(object["rows"][0]["nan"], 0, "{object}");
    npy::read(folder.join("out/scores.npy")).expect("written").to_f64()
}

#[test]
fn a_model_runs_on_the_weights_that_were_written() {
    let folder = folder();
    let folder = folder.path();
    let images = HostTensor::new([5, 1, 6, 6], (0..180).map(|i| (i as f32 * 1.3).sin()).collect::<Vec<f32>>()).expect("fits");
    npy::write(folder.join("x.npy"), &images).expect("written");
    let exact = scores(folder, &[]);
    let options = ImportOptions { batch: Some(5), ..Default::default() };
    let plain = onnx::read(folder.join("model.onnx"), &options).expect("the model imports");
    for (scheme, worst, codes) in
        [("int8-channel", 0.03, 4 * 12 + 16 * 64 + 10 * 16), ("int4-group32", 0.4, 4 * 16 + 16 * 32 + 10 * 16), ("nvfp4", 0.5, 0)]
    {
        let object = json(folder, &["quantize", "model.onnx", "--scheme", scheme, "--output", "w.safetensors"]);
        let row = |at: usize, key: &str| object["rows"][at][key].clone();
        assert_eq!((&object["command"], &object["scheme"], &object["layers"]), (&"quantize".into(), &scheme.into(), &3.into()));
        assert_eq!([row(0, "layer"), row(1, "layer"), row(2, "layer")], ["the_Conv", "the_Gemm", "the_MatMul"].map(Value::from));
        assert_eq!((row(1, "op"), row(1, "shape"), row(1, "scheme")), ("Gemm".into(), "[64, 16]".into(), scheme.into()));
        assert_eq!(object["bytes_f32"], 4 * (36 + 1024 + 160));
        // Codes, and scales of four bytes: one a row, or one for 32.
        let scales = if scheme == "int8-channel" { 4 + 16 + 10 } else { 4 + 32 + 10 };
        if codes > 0 {
            assert_eq!(object["bytes"], codes + 4 * scales, "{object}");
        }
        let error = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        assert!(error(&object["rel_error"]) > 0.0 && error(&object["rel_error"]) < worst, "{object}");
        assert!((0..3).all(|at| error(&row(at, "rel_error")) < worst), "{object}");
        let source = Source::of(&folder.join("model.onnx")).expect("there");
        let stored = precision::read(&folder.join("w.safetensors"), &source).expect("reads");
        let graph = precision::apply(&plain.graph, &stored.layers).expect("fits");
        let reference = reference_graph(&graph, &[("x", images.clone())]).expect("runs")[0].1.data.clone();
        assert!(relative_error(&reference, &exact) > 1e-4, "{scheme}");
        for mode in ["compiled", "eager"] {
            let error = relative_error(&scores(folder, &["--weights", "w.safetensors", "--mode", mode]), &reference);
            assert!(error < 1e-5, "{scheme}, {mode}: {error}");
        }
        let explained = json(folder, &["explain", "model.onnx", "--weights", "w.safetensors"]);
        assert_eq!(explained["weights"], "w.safetensors");
    }
    let skipped = ["--skip", "the_Conv", "--skip", "the_Gemm"];
    let args = ["quantize", "model.onnx", "--scheme", "nf4", "--calibrate", "mse", "--output", "w.safetensors"];
    let object = json(folder, &[&args[..], &skipped].concat());
    assert_eq!((&object["layers"], &object["calibration"], &object["skipped"][1]), (&1.into(), &"mse".into(), &"the_Gemm".into()));
    let text = String::from_utf8(run(folder, &args).stdout).expect("UTF-8");
    assert!(["the_MatMul", "SHA-256", "bytes of f32"].iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn bad_input_exits_1_and_says_what_to_do() {
    let folder = folder();
    let folder = folder.path();
    json(folder, &["quantize", "model.onnx", "--scheme", "nf4", "--output", "w.safetensors"]);
    let bytes = std::fs::read(folder.join("w.safetensors")).expect("written");
    std::fs::write(folder.join("cut.safetensors"), &bytes[..bytes.len() - 7]).expect("written");
    std::fs::create_dir(folder.join("taken")).expect("made");
    let quantize = |model: &'static str, more: &[&'static str], output: &'static str| {
        [&["quantize", model, "--scheme", "int8-channel", "--output", output], more].concat()
    };
    for (args, parts) in [
        (vec!["run", "other.onnx", "--weights", "w.safetensors"], &["w.safetensors", "SHA-256", "`model.onnx`", "`other.onnx`"][..]),
        (vec!["explain", "model.onnx", "--weights", "cut.safetensors"], &["cut.safetensors", "quantize"]),
        (vec!["run", "model.onnx", "--weights", "model.onnx"], &["model.onnx", "safetensors"]),
        (vec!["run", "model.onnx", "--weights", "none.safetensors"], &["none.safetensors"]),
        (quantize("model.onnx", &[], "taken"), &["`taken`"]),
        (quantize("model.onnx", &[], "none/w.safetensors"), &["none/w.safetensors"]),
        (quantize("none.onnx", &[], "x.safetensors"), &["none.onnx"]),
        (quantize("model.onnx", &[], "model.onnx"), &["`model.onnx`", "not replaced"]),
        (quantize("nan.onnx", &[], "x.safetensors"), &["`the_Gemm`", "NaN", "--skip"]),
        (quantize("model.onnx", &["--skip", "Pool"], "x.safetensors"), &["`Pool`", "`the_Conv`"]),
        (vec!["quantize", "model.onnx", "--scheme", "f16", "--output", "x.safetensors"], &["no codes", "int8-channel"]),
    ] {
        let output = run(folder, &args);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.stdout.is_empty() && output.status.code() == Some(1), "{args:?}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{args:?}: {message}");
    }
    assert!(!folder.join("x.safetensors").exists());
    json(folder, &quantize("model.onnx", &[], "w.safetensors"));
    json(folder, &quantize("nan.onnx", &["--skip", "the_Gemm"], "x.safetensors"));
}
