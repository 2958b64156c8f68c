//! Networks with integer layers on the adapter of the machine. Real ones need the data folder, named by `SUBLANE_DATA`.

use std::path::PathBuf;

use kernels_gen::threefry::Key;
use rayon::prelude::*;
use sublane::bitset::host::HostLayer;
use sublane::bitset::network::{Network, Reason};
use sublane::bitset::simulate::{Engine, IntegerLayer, Simulator, SimulatorOptions, integer_layers, probe};
use sublane::bitset::{Encoding, Geometry, Layer, Rule, Tally};
use sublane::capture::{Traced, Tracer, capture};
use sublane::compiler::CompileOptions;
use sublane::device::{Device, DeviceOptions};
use sublane::graph::Graph;
use sublane::import::onnx::{self, ImportOptions};
use sublane::import::{ImageSet, cifar};
use sublane::ops::conv::Conv;
use sublane::ops::prelude::*;
use sublane::ops::window::Padding;
use sublane::progress::Work;
use sublane::session::{Loader, LoaderOptions};
use sublane::stats::relative_error;
use sublane::suite::bench::layers::packed;
use sublane::suite::eval::Preparation;
use sublane::suite::networks::resnet20;
use sublane::{DType, HostTensor, Session};

struct Tried {
    device: Device,
    loader: Loader,
    network: Network,
    layers: Vec<IntegerLayer>,
}

impl Tried {
    /// A network calibrated on `images`, and what it makes of them in f32.
    fn new(network: Network, images: &HostTensor) -> (Self, Vec<f32>) {
        let device = Device::open(&DeviceOptions::from_env()).expect("these tests need an adapter");
        let loader = Loader::new(&device, LoaderOptions::from_env());
        let (session, _) = loader.load(&probe(&network).expect("is a graph"), &CompileOptions::default(), &Work::quiet()).expect("loads");
        let (most, scores) = float(&session, &network, images);
        let layers = integer_layers(&network, 8, &most).expect("quantises");
        (Tried { device, loader, network, layers }, scores)
    }

    fn simulator(&self, encoding: Encoding, rule: Rule) -> Simulator {
        let options = SimulatorOptions { encoding, rule, thresholds: None, audit: true, lanes: vec![1, 16], engine: Engine::Cpu };
        Simulator::new(&self.device, &self.loader, &self.network, &self.layers, options, &Work::quiet()).expect("loads")
    }
}

/// The largest activation of each layer, and the scores.
fn float(session: &Session, network: &Network, images: &HostTensor) -> (Vec<f64>, Vec<f32>) {
    let name = &session.compiled().inputs()[0].name;
    let outputs = session.run(&[(name, images)]).expect("runs");
    let count = network.terminable().count();
    let most = (0..count).map(|at| outputs.get(&format!("most.{at}")).expect("there").to_f64()[0]).collect();
    let scores = outputs.iter().next().expect("scores").1.as_slice::<f32>().expect("f32").to_vec();
    (most, scores)
}

/// Scores and counts of one batch.
fn scores(simulator: &Simulator, images: &HostTensor) -> (Vec<f32>, Tally) {
    let result = simulator.run(images).expect("runs");
    let mut tally = Tally::default();
    result.channels.iter().enumerate().for_each(|(layer, channels)| tally.add(&simulator.tally(layer, channels)));
    (result.outputs[0].1.as_slice::<f32>().expect("f32").to_vec(), tally)
}

fn relative(a: &[f32], b: &[f32]) -> f64 {
    let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    relative_error(&wide(a), &wide(b))
}

#[test]
fn a_residual_network_in_integers_is_near_the_one_in_floats_and_exact_rules_change_no_bit() {
    let key = Key::new(3);
    let network = Network::new(&resnet20(key, 2).expect("records")).expect("has layers");
    // Nineteen convolutions and the classifier; the first and the last stay in f32.
    assert_eq!((network.layers.len(), network.terminable().count()), (20, 18));
    assert_eq!(network.terminable().filter(|layer| layer.residual.is_some()).count(), 9);
    let values: Vec<f32> = (0..2 * 3 * 32 * 32).map(|n| key.stream(9).uniform(n) - 0.5).collect();
    let images = HostTensor::new([2, 3, 32, 32], values).expect("fits");
    let (tried, in_floats) = Tried::new(network, &images);
    let (plain, tally) = scores(&tried.simulator(Encoding::Pm1, Rule::None), &images);
    assert!(relative(&plain, &in_floats) < 0.05, "{}", relative(&plain, &in_floats));
    assert!(tally.ops_saved() == 0.0 && tally.ceiling() > 0.2, "{}", tally.ceiling());
    for (encoding, rule) in [(Encoding::Pm1, Rule::R0), (Encoding::Inverted, Rule::R0), (Encoding::Sign, Rule::PositiveFirst)] {
        let (exact, tally) = scores(&tried.simulator(encoding, rule), &images);
        assert_eq!(exact, plain, "{encoding} {rule}");
        assert!(tally.all.killed == 0 && tally.ops_saved() > 0.02 && tally.ops_saved() <= tally.ceiling(), "{}", tally.ops_saved());
    }
    let (_, tally) = scores(&tried.simulator(Encoding::Pm1, Rule::R1 { z: 1.0 }), &images);
    assert!(tally.all.killed > 0 && tally.killed_mass() < tally.killed());
}

/// A network of convolutions of eight channels.
fn network(record: impl FnOnce(&Tracer, Traced) -> sublane::Result<Traced>) -> Graph {
    capture(|t| {
        let x = t.input("x", [3, 8, 9, 9], DType::F32)?;
        let last = record(t, x)?.reshape(&[3, 8 * 81])?;
        last.matmul(&random(t, 99, &[8 * 81, 10])?)
    })
    .expect("records")
}

fn random(t: &Tracer, stream: u64, shape: &[usize]) -> sublane::Result<Traced> {
    let key = Key::new(11).stream(stream);
    t.constant(HostTensor::new(shape, (0..shape.iter().product::<usize>() as u64).map(|n| key.uniform(n) - 0.5).collect::<Vec<f32>>())?)
}

/// A convolution of 3 x 3 from eight channels to eight.
fn conv(t: &Tracer, stream: u64, x: &Traced, groups: usize, dilation: usize) -> sublane::Result<Traced> {
    let padding = Padding::Explicit { low: vec![dilation; 2], high: vec![dilation; 2] };
    let conv = Conv { padding, dilations: vec![dilation; 2], groups, ..Conv::new(2) };
    x.conv(&random(t, stream, &[8, 8 / groups, 3, 3])?, Some(&random(t, stream + 50, &[8])?), conv)
}

#[test]
fn layers_that_cannot_be_stopped_are_named_with_the_reason() {
    let graph = network(|t, x| {
        let x = conv(t, 0, &x, 1, 1)?.relu()?;
        let signed = conv(t, 1, &x, 1, 1)?.tanh()?;
        let x = conv(t, 2, &signed, 1, 1)?.relu()?;
        let grouped = conv(t, 3, &x, 2, 2)?.relu()?;
        let depthwise = conv(t, 4, &grouped, 8, 1)?.relu()?;
        let shared = conv(t, 5, &depthwise, 1, 1)?;
        shared.relu()?.add(&shared)
    });
    let found = Network::new(&graph).expect("two layers can be stopped");
    let reasons: Vec<Option<Reason>> = found.layers.iter().map(|layer| layer.reason).collect();
    let [first, last] = [Some(Reason::First), Some(Reason::Last)];
    assert_eq!(reasons, [first, Some(Reason::NoRelu), Some(Reason::SignedInput), None, None, Some(Reason::SharedSum), last]);
    assert_eq!((found.layers[3].geometry.groups, found.layers[4].geometry.groups), (2, 8));

    let refused = |graph: &Graph| Network::new(graph).expect_err("no layer can be stopped").to_string();
    let error = refused(&network(|t, x| conv(t, 1, &conv(t, 0, &x, 1, 1)?.tanh()?, 1, 1)?.sigmoid()));
    assert!(error.contains("no ReLU after it") || error.contains("signed activations"), "{error}");
    let error = refused(&network(|t, x| conv(t, 1, &conv(t, 0, &x, 1, 1)?.tanh()?, 1, 1)?.relu()));
    assert!(error.contains("signed activations"), "{error}");
    let error = refused(&network(|t, x| conv(t, 1, &conv(t, 0, &x, 1, 1)?.relu()?, 1, 1)?.sigmoid()));
    assert!(error.contains("no ReLU after it"), "{error}");
    let none = capture(|t| t.input("x", [3, 8], DType::F32)?.relu()).expect("records");
    assert!(refused(&none).contains("no convolution"));
}

/// Activations and scores of both engines for a network, which must agree with each other and be near those in floats.
fn both_engines(graph: &Graph) -> Tried {
    let key = Key::new(12);
    let images = HostTensor::new([3, 8, 9, 9], (0..3 * 8 * 81).map(|n| key.uniform(n) - 0.3).collect::<Vec<f32>>()).expect("fits");
    let (tried, in_floats) = Tried::new(Network::new(graph).expect("has layers"), &images);
    let plain = tried.simulator(Encoding::Pm1, Rule::None);
    let (expected, _) = scores(&plain, &images);
    assert!(relative(&expected, &in_floats) < 0.02, "{}", relative(&expected, &in_floats));
    for (encoding, rule) in [(Encoding::Pm1, Rule::R0), (Encoding::Twos, Rule::R0), (Encoding::Sign, Rule::PositiveFirst)] {
        for engine in [Engine::Cpu, Engine::Gpu] {
            let options = SimulatorOptions { encoding, rule, engine, ..plain.options().clone() };
            let (exact, tally) = scores(&plain.with(options).expect("loads"), &images);
            assert!(exact == expected && tally.all.killed == 0 && tally.ops_saved() <= tally.ceiling(), "{encoding} {rule} {engine:?}");
        }
    }
    tried
}

#[test]
fn grouped_dilated_and_pruned_layers_run_in_integers() {
    both_engines(&network(|t, x| {
        let x = conv(t, 0, &x, 1, 1)?.relu()?;
        let x = conv(t, 3, &x, 2, 2)?.relu()?;
        conv(t, 4, &x, 8, 1)?.relu()
    }));
    let pruned = both_engines(&network(|t, x| {
        let x = conv(t, 0, &x, 1, 1)?.relu()?;
        // Three weights of four are 0.
        let weights = random(t, 1, &[8, 8, 3, 3])?.add_scalar(-0.25)?.relu()?;
        let padding = Padding::Explicit { low: vec![1; 2], high: vec![1; 2] };
        x.conv(&weights, Some(&random(t, 51, &[8])?), Conv { padding, ..Conv::new(2) })?.add_scalar(-0.5)?.relu()
    }));
    let layer = &pruned.layers[0].layer;
    assert!(layer.is_pruned() && layer.mean_q16 == 0 && layer.q.iter().filter(|q| **q == 0).count() > 300, "{:?}", layer.q);
}

#[test]
fn negative_factors_of_normalisation_negate_kernels() {
    let tried = both_engines(&network(|t, x| {
        let x = conv(t, 0, &x, 1, 1)?.relu()?;
        let constant = |value: f32| t.constant(HostTensor::new([8], vec![value; 8])?);
        let scale = t.constant(HostTensor::new([8], (0..8).map(|c| if c % 2 == 0 { -2.0 } else { 2.0 }).collect::<Vec<f32>>())?)?;
        conv(t, 1, &x, 1, 1)?.batch_norm(&scale, &constant(0.25)?, &constant(0.5)?, &constant(1.0)?, 0.0)?.relu()
    }));
    let (found, key) = (&tried.network.layers[1], Key::new(11).stream(1));
    for (at, &weight) in found.weights.iter().enumerate() {
        let factor = if at / 72 % 2 == 0 { -2.0 } else { 2.0 };
        assert!((weight - factor * (key.uniform(at as u64) - 0.5)).abs() < 1e-6, "{at}");
    }
    // Rounding of bias, mean and residual is known: below one unit where nothing is added.
    assert!(tried.layers.iter().all(|layer| layer.fixed_point_error > 0.0 && layer.fixed_point_error < 1.2));
}

#[test]
fn layers_are_packed_products_where_bytes_hold_their_weights() {
    let geometry = Geometry {
        channels: 6,
        size: [7, 5],
        outputs: 4,
        kernel: [3, 3],
        strides: [1; 2],
        pads_low: [1; 2],
        pads_high: [1; 2],
        dilations: [1; 2],
        groups: 1,
    };
    let key = Key::new(13);
    let layer = |geometry: Geometry, bits: u32| {
        let q =
            (0..(geometry.taps() * geometry.outputs) as u64).map(|n| (key.word(n) % (1 << bits)) as i32 * 2 + 1 - (1 << bits)).collect();
        Layer { geometry, bits, q, bias: vec![0; geometry.outputs], mean_q16: 0 }
    };
    let mut pruned = layer(geometry, 8);
    pruned.q[3] = 0;
    let layers =
        [layer(geometry, 8), layer(Geometry { groups: 2, ..geometry }, 8), layer(Geometry::full(37, 3), 4), layer(geometry, 9), pruned];
    let device = Device::open(&DeviceOptions::from_env()).expect("these tests need an adapter");
    let loader = Loader::new(&device, LoaderOptions::from_env());
    let found = packed(&loader, &layers.iter().collect::<Vec<_>>(), 2, 1, &Work::quiet()).expect("measures");
    assert!(found[..3].iter().all(|ms| ms.is_some_and(|ms| ms > 0.0)) && found[3..] == [None, None], "{found:?}");
}

fn data(name: &str) -> PathBuf {
    let folder = std::env::var_os("SUBLANE_DATA").expect("set SUBLANE_DATA to the absolute path of the data folder");
    PathBuf::from(folder).join(name)
}

/// The sums of a layer without planes: the integers that every exact rule must give after the ReLU.
fn sums(layer: &Layer, activations: &[u8], residual: Option<&[i32]>) -> Vec<i64> {
    let geometry = &layer.geometry;
    let image = geometry.channels * geometry.size[0] * geometry.size[1];
    let (outputs, positions, taps) = (geometry.outputs, geometry.positions(), geometry.taps());
    let one = |at: usize| {
        let (n, output, position) = (at / (outputs * positions), at / positions % outputs, at % positions);
        let group = output / (outputs / geometry.groups);
        let (mut sum, mut all) = (layer.bias[output] + residual.map_or(0, |residual| i64::from(residual[at])), 0);
        for (tap, &q) in layer.q[output * taps..][..taps].iter().enumerate() {
            let a = geometry.under(group, position, tap).map_or(0, |place| i64::from(activations[n * image + place]));
            sum += i64::from(q) * a;
            all += a;
        }
        sum + ((layer.mean_q16 * all + (1 << 15)) >> 16)
    };
    (0..activations.len() / image * outputs * positions).into_par_iter().map(one).collect()
}

/// Every exact rule on every layer of a model, given the same activations, against sums without planes.
fn exact_rules_are_the_integers(model: &str, limits: (f32, f32)) {
    let options = ImportOptions { batch: Some(1), ..ImportOptions::default() };
    let model = onnx::read(data(model), &options).expect("imports");
    let network = Network::new(&model.graph).expect("has layers");
    let (_, input) = network.graph.inputs().next().expect("an input");
    let shape = network.graph.ty(input).shape.clone();
    let key = Key::new(5);
    let (low, high) = limits;
    let values: Vec<f32> = (0..shape.iter().product::<usize>() as u64).map(|n| low + (high - low) * key.uniform(n)).collect();
    let images = HostTensor::new(shape, values).expect("fits");
    let (tried, _) = Tried::new(network, &images);
    let pairs = [
        (Encoding::Pm1, Rule::None),
        (Encoding::Pm1, Rule::R0),
        (Encoding::Twos, Rule::R0),
        (Encoding::Sign, Rule::R0),
        (Encoding::Inverted, Rule::R0),
        (Encoding::Csd, Rule::R0),
        (Encoding::Sign, Rule::PositiveFirst),
    ];
    let simulator = tried.simulator(Encoding::Pm1, Rule::None);
    let mut seen = 0;
    let mut observe = |at: usize, activations: &[u8], residual: Option<&[i32]>| {
        let layer = &tried.layers[at].layer;
        let expected: Vec<i64> = sums(layer, activations, residual).into_iter().map(|sum| sum.max(0)).collect();
        for (encoding, rule) in pairs {
            let host = HostLayer::new(layer, encoding, rule, None, residual.is_some())?;
            assert!(!host.is_wide());
            let found = host.run(activations, residual, true, &[])?;
            let results: Vec<i64> = found.results.iter().map(|&result| i64::from(result.max(0))).collect();
            assert!(results == expected, "layer {at}, {rule} with {encoding}");
            let tally = Tally::of(layer, encoding, rule, &found.channels);
            assert!(tally.all.killed == 0 && tally.ops_saved() <= tally.ceiling(), "layer {at}, {rule} with {encoding}");
        }
        seen += 1;
        Ok(())
    };
    let by_host = simulator.run_observed(&images, Some(&mut observe)).expect("runs");
    assert_eq!(seen, tried.layers.len());
    // The kernels give the same, stop for stop.
    let wanted = SimulatorOptions { rule: Rule::R0, ..simulator.options().clone() };
    let by_host_r0 = simulator.with(wanted.clone()).expect("loads").run(&images).expect("runs");
    let on_device = simulator.with(SimulatorOptions { engine: Engine::Gpu, ..wanted }).expect("loads").run(&images).expect("runs");
    assert_eq!((&on_device.channels, &on_device.locks), (&by_host_r0.channels, &by_host_r0.locks));
    assert_eq!(on_device.outputs[0].1, by_host.outputs[0].1);
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn exact_rules_are_the_integers_on_resnets() {
    exact_rules_are_the_integers("models/cifar10-resnet20.onnx", (-2.0, 2.0));
    exact_rules_are_the_integers("models/cifar10-resnet56.onnx", (-2.0, 2.0));
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn exact_rules_are_the_integers_on_the_others() {
    exact_rules_are_the_integers("models/mnist-cnn.onnx", (0.0, 255.0));
    exact_rules_are_the_integers("models/imagenet-squeezenet10.onnx", (-2.0, 2.0));
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn resnet20_keeps_its_accuracy_in_integers() {
    const BATCH: usize = 100;
    let images = cifar::read(data("images/cifar10-test_batch.bin.gz")).expect("reads");
    let options = ImportOptions { batch: Some(BATCH), ..ImportOptions::default() };
    let model = onnx::read(data("models/cifar10-resnet20.onnx"), &options).expect("imports");
    let network = Network::new(&model.graph).expect("has layers");
    let prepared = |images: &ImageSet, first: usize| {
        let Preparation { scale, mean, std, reversed } = Preparation::cifar10();
        images.batch(first..first + BATCH, scale, &mean, &std, reversed).expect("fits")
    };
    let (tried, _) = Tried::new(network, &prepared(&images, 0));
    let rules = [(Encoding::Pm1, Rule::None), (Encoding::Pm1, Rule::R0)];
    let simulators = rules.map(|(encoding, rule)| tried.simulator(encoding, rule));
    let mut correct = [0; 2];
    let mut tallies = [Tally::default(); 2];
    let start = std::time::Instant::now();
    for first in (1_000..1_200).step_by(BATCH) {
        let batch = prepared(&images, first);
        for (at, simulator) in simulators.iter().enumerate() {
            let (scores, tally) = scores(simulator, &batch);
            tallies[at].add(&tally);
            let best = |row: &[f32]| row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(class, _)| class);
            let labels = &images.labels[first..first + BATCH];
            correct[at] += scores.chunks(10).zip(labels).filter(|(row, label)| best(row) == usize::from(**label)).count();
        }
    }
    eprintln!("{correct:?} of 200, {:.1?}", start.elapsed());
    tallies.iter().for_each(|t| eprintln!("saved {:.4}, ceiling {:.4}, zeros {:.4}", t.ops_saved(), t.ceiling(), t.zero_fraction()));
    assert_eq!(correct[0], correct[1]);
    assert!(correct[0] >= 178, "{correct:?} of 200");
    assert!(tallies[1].ops_saved() > 0.1 && tallies[1].ops_saved() < tallies[1].ceiling());
}
