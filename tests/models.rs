//! Real models, through the reference interpreter and on the adapter of the machine. Needs the data folder, named by `SUBLANE_DATA`.

use std::path::{Path, PathBuf};

use sublane::compiler::{CompileOptions, Mode, compile};
use sublane::device::DeviceOptions;
use sublane::import::{ImageSet, cifar, idx, onnx};
use sublane::ops::reference_graph;
use sublane::precision::{self, WeightOptions};
use sublane::progress::Work;
use sublane::stats::relative_error;
use sublane::suite::eval::{DataSet, Evaluation, evaluate};
use sublane::tensor::scheme::Scheme;
use sublane::{Device, HostTensor, Session};

fn data(name: &str) -> PathBuf {
    let folder = std::env::var_os("SUBLANE_DATA").expect("set SUBLANE_DATA to the absolute path of the data folder");
    Path::new(&folder).join(name)
}

/// Images of `set` among the first `count` whose largest output is their label.
fn correct(model: &str, set: &ImageSet, count: usize, scale: f32, mean: &[f32], std: &[f32]) -> usize {
    let options = onnx::ImportOptions { batch: Some(1), ..Default::default() };
    let model = onnx::read(data(model), &options).expect("the model imports");
    sublane::graph::verify(&model.graph).expect("the graph is well formed");
    let input = model.inputs[0].0.as_str();
    let is_right = |&i: &usize| {
        let image = set.batch(i..i + 1, scale, mean, std, false).expect("the image exists");
        let outputs = reference_graph(&model.graph, &[(input, image)]).expect("the reference runs");
        let scores = &outputs[0].1.data;
        let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).expect("there are scores");
        best == set.labels[i] as usize
    };
    (0..count).filter(is_right).count()
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn resnets_know_their_first_images() {
    let set = cifar::read(data("images/cifar10-test_batch.bin.gz")).expect("the images are there");
    assert_eq!(set.len(), 10_000);
    let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    assert!(correct("models/cifar10-resnet20.onnx", &set, 20, 255.0, &mean, &std) >= 18);
    assert!(correct("models/cifar10-resnet56.onnx", &set, 5, 255.0, &mean, &std) >= 4);
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn the_digit_network_knows_its_first_images() {
    let set = idx::read_folder(data("images")).expect("the images are there");
    assert!(correct("models/mnist-cnn.onnx", &set, 50, 1.0, &[0.0], &[1.0]) >= 48);
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn squeezenet_imports() {
    let options = onnx::ImportOptions { batch: Some(1), ..Default::default() };
    let model = onnx::read(data("models/imagenet-squeezenet10.onnx"), &options).expect("the model imports");
    sublane::graph::verify(&model.graph).expect("the graph is well formed");
    assert_eq!(model.inputs[0].1.shape, [1, 3, 227, 227]);
    assert!(model.outputs[0].1.num_elems() == 1000, "{:?}", model.outputs);
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn cut_models_are_errors() {
    let bytes = std::fs::read(data("models/mnist-cnn.onnx")).expect("the model is there");
    for end in (0..bytes.len() - 1).step_by(211) {
        assert!(onnx::parse(&bytes[..end], None, &onnx::ImportOptions::default()).is_err(), "cut at {end}");
    }
}

/// A model on the adapter of the machine.
fn load(model: &str, batch: usize, mode: Mode) -> Session {
    let device = Device::open(&DeviceOptions::from_env()).expect("these tests need an adapter");
    let options = onnx::ImportOptions { batch: Some(batch), ..Default::default() };
    let model = onnx::read(data(model), &options).expect("the model imports");
    let compiled = compile(&model.graph, &device.target(), &CompileOptions { mode, ..Default::default() }).expect("compiles");
    Session::load(&device, &compiled).expect("loads")
}

fn evaluated(session: &Session, set: &DataSet, limit: Option<usize>) -> Evaluation {
    let images = set.read().expect("the images are there");
    evaluate(session, &images, &set.preparation(), limit, &Work::quiet()).expect("runs")
}

/// Compiled, the model gets `expected` of the 10,000 images right, give or take two; eager, it differs on at most one of the first 1,000.
fn is_accurate(model: &str, set: &DataSet, batch: usize, expected: usize) {
    let compiled = evaluated(&load(model, batch, Mode::Compiled), set, None);
    assert_eq!(compiled.total(), 10_000);
    assert!(compiled.correct.abs_diff(expected) <= 2, "{model}: {} of 10,000 are right, {expected} should be", compiled.correct);
    let eager = evaluated(&load(model, batch, Mode::Eager), set, Some(1000));
    let different = eager.predictions.iter().zip(&compiled.predictions).filter(|(e, c)| e != c).count();
    assert!(different <= 1, "{model}: eager and compiled differ on {different} of the first 1,000 images");
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn resnet20_gets_right_what_it_should() {
    is_accurate("models/cifar10-resnet20.onnx", &DataSet::Cifar10(data("images/cifar10-test_batch.bin.gz")), 64, 9173);
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn resnet56_gets_right_what_it_should() {
    is_accurate("models/cifar10-resnet56.onnx", &DataSet::Cifar10(data("images/cifar10-test_batch.bin.gz")), 64, 9339);
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn the_digit_network_gets_right_what_it_should() {
    is_accurate("models/mnist-cnn.onnx", &DataSet::MnistIdx(data("images")), 64, 9891);
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn squeezenet_agrees_with_onnxruntime() {
    let golden = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/squeezenet.json")).expect("in the repository");
    let golden: serde_json::Value = serde_json::from_slice(&golden).expect("JSON");
    // The input that scripts/squeezenet-golden.py states.
    let value = |i: usize| 17.0 * (0.001 * i as f64).sin() + (i % 101) as f64 - 50.0;
    let image = HostTensor::new([1, 3, 227, 227], (0..3 * 227 * 227).map(|i| value(i) as f32).collect::<Vec<_>>()).expect("fits");
    for mode in [Mode::Compiled, Mode::Eager] {
        let session = load("models/imagenet-squeezenet10.onnx", 1, mode);
        let name = session.compiled().inputs()[0].name.clone();
        let scores = session.run(&[(&name, &image)]).expect("runs").single().expect("one output").to_f64();
        let expected: Vec<f64> = golden["scores"].as_array().expect("a list").iter().filter_map(serde_json::Value::as_f64).collect();
        let best = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        assert_eq!(golden["best"].as_u64(), best.map(|b| b as u64));
        let error = relative_error(&scores, &expected);
        assert!(error <= 1e-4, "{}: {error:.2e} relative to onnxruntime", mode.name());
    }
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn resnet20_on_eight_bits_loses_at_most_0_3_points() {
    let path = data("models/cifar10-resnet20.onnx");
    let options = onnx::ImportOptions { batch: Some(64), ..Default::default() };
    let model = onnx::read(path, &options).expect("the model imports");
    let scheme = Scheme::parse("int8-channel").expect("a scheme");
    let quantised = precision::quantise(&model.graph, &scheme, &WeightOptions::default()).expect("quantises");
    let device = Device::open(&DeviceOptions::from_env()).expect("these tests need an adapter");
    let compiled = compile(&quantised.graph, &device.target(), &CompileOptions::default()).expect("compiles");
    let session = Session::load(&device, &compiled).expect("loads");
    let found = evaluated(&session, &DataSet::Cifar10(data("images/cifar10-test_batch.bin.gz")), None);
    assert_eq!(found.total(), 10_000);
    // Of f32, 9,173.
    assert!(found.correct >= 9_143, "{} of 10,000 are right", found.correct);
}
