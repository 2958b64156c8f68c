//! Real models through the reference interpreter. Needs the data folder, named by `SUBLANE_DATA`.

use std::path::{Path, PathBuf};

use sublane::import::{ImageSet, cifar, idx, onnx};
use sublane::ops::reference_graph;

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
