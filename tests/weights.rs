//! What the rewrite computes is what the layers compute on the dequantised weights, by the reference.

use sublane::capture::capture;
use sublane::compiler::{CompileOptions, compile};
use sublane::graph::{Graph, Op, WeightLayout};
use sublane::kernels_gen::Target;
use sublane::ops::conv::Conv;
use sublane::ops::dot::Gemm;
use sublane::ops::prelude::*;
use sublane::ops::quantised::Packed;
use sublane::ops::reference_graph;
use sublane::precision::{Layer, Source, WeightOptions, apply, quantise, read, write};
use sublane::stats::relative_error;
use sublane::tensor::quantised::Calibration;
use sublane::tensor::scheme::Scheme;
use sublane::{DType, ErrorKind, HostTensor, f16};

/// Numbers without a pattern, of about unit size.
fn numbers(shape: &[usize], from: usize) -> HostTensor {
    let count: usize = shape.iter().product();
    let number = |i: usize| ((i + from) as f32 * 12.9898).sin() * 1.7;
    HostTensor::new(shape, (0..count).map(number).collect::<Vec<f32>>()).expect("fits")
}

/// Weights of the network: of a grouped convolution, a Gemm of each kind, and a product whose weights lie turned.
fn weights() -> [HostTensor; 4] {
    [numbers(&[6, 2, 3, 3], 1), numbers(&[40, 96], 2), numbers(&[40, 7], 3), numbers(&[5, 7], 4)]
}

/// A network with every kind of layer; `w` are its weights.
fn network(w: [HostTensor; 4]) -> Graph {
    capture(|t| {
        let [conv, first, second, last] = w;
        let x = t.input("x", [2, 4, 6, 6], DType::F32)?;
        let x = x.conv(&t.constant(conv)?, None, Conv { groups: 2, ..Conv::new(2) })?;
        let x = x.relu()?.reshape(&[2, 96])?;
        let gemm = |trans_b| Op::composite(Gemm { alpha: 0.5, beta: 1.0, trans_a: false, trans_b });
        let x = Value::apply(gemm(true), &[&x, &t.constant(first)?, &t.constant(numbers(&[40], 9))?])?;
        let x = Value::apply(gemm(false), &[&x, &t.constant(second)?])?;
        x.matmul(&t.constant(last)?.transpose(&[1, 0])?)
    })
    .expect("a network")
}

fn output(graph: &Graph) -> Vec<f64> {
    reference_graph(graph, &[("x", numbers(&[2, 4, 6, 6], 5))]).expect("runs")[0].1.data.clone()
}

/// The weights of a layer as the model holds them, by the definition of the scheme.
fn dequantised(layer: &Layer) -> HostTensor {
    let operands: Vec<HostTensor> = layer.operands.clone();
    let graph = capture(|t| {
        let operands = operands.into_iter().map(|x| t.constant(x)).collect::<sublane::Result<Vec<_>>>()?;
        Packed::new(layer.scheme, layer.rows, layer.k, layer.seed, operands)?.dequantise()
    });
    let values = reference_graph(&graph.expect("a matrix"), &[]).expect("runs")[0].1.data.clone();
    let at = |i: usize| match layer.layout {
        WeightLayout::Rows => values[i],
        WeightLayout::Columns => values[i % layer.rows * layer.k + i / layer.rows],
    };
    HostTensor::from_f64(DType::F32, layer.shape.clone(), &(0..values.len()).map(at).collect::<Vec<_>>()).expect("fits")
}

fn scheme(name: &str) -> Scheme {
    Scheme::parse(name).expect("a scheme")
}

#[test]
fn the_rewrite_is_the_model_on_dequantised_weights() {
    let plain = network(weights());
    let exact = output(&plain);
    for (name, worst) in [
        ("int8-channel", 0.01),
        ("int8-channel-affine-f16", 0.01),
        ("int4-group32", 0.15),
        ("mxfp4", 0.2),
        ("nvfp4", 0.15),
        ("nf4", 0.15),
        ("fp8-tile", 0.04),
        ("mxfp6-e2m3", 0.06),
        ("bf16", 0.004),
        ("int4-group32-stochastic", 0.2),
        ("int8-channel-hadamard32", 0.02),
    ] {
        let model = quantise(&plain, &scheme(name), &WeightOptions::default()).expect("quantises");
        let found: Vec<_> = model.layers.iter().map(|l| (l.op.as_str(), l.rows, l.k)).collect();
        assert_eq!(found, [("Conv", 6, 18), ("Gemm", 40, 96), ("Gemm", 7, 40), ("MatMul", 5, 7)], "{name}");
        let [a, b, c, last] = [0, 1, 2, 3].map(|i| dequantised(&model.layers[i]));
        let turned: Vec<f32> = (0..35).map(|i| last.as_slice::<f32>().expect("f32")[i % 7 * 5 + i / 7]).collect();
        let expected = output(&network([a, b, c, HostTensor::new([5, 7], turned).expect("fits")]));
        let got = output(&model.graph);
        // Turning back rounds to f32 in the one and not in the other.
        let tolerance = if name.contains("hadamard") { 1e-6 } else { 1e-12 };
        assert!(relative_error(&got, &expected) <= tolerance, "{name}: {got:?} {expected:?}");
        // How far results are off depends on how the network cancels; that they are says that its own weights are gone.
        assert!(relative_error(&got, &exact) > 1e-4, "{name}");
        let of_weights = model.rel_error();
        assert!(of_weights > 0.0 && of_weights < worst, "{name}: {of_weights}");
        for (layer, error) in model.layers.iter().zip(&model.errors) {
            assert_eq!(layer.bytes(), layer.operands.iter().map(|t| t.bytes().len()).sum::<usize>());
            assert!(error.rel_error > 0.0 && error.norm > 0.0, "{name}: {}", layer.name);
        }
        assert_eq!(output(&apply(&plain, &model.layers).expect("fits")), got, "{name}");
    }
}

#[test]
fn layers_that_are_left_out_keep_their_weights() {
    let plain = network(weights());
    let names: Vec<String> =
        quantise(&plain, &scheme("nf4"), &WeightOptions::default()).expect("quantises").layers.into_iter().map(|l| l.name).collect();
    assert_eq!(names, ["Conv", "Gemm", "Gemm#2", "MatMul"]);
    let with = |skip: &[&str]| {
        let options = WeightOptions { skip: skip.iter().map(|s| s.to_string()).collect(), ..Default::default() };
        quantise(&plain, &scheme("int8-channel"), &options)
    };
    let model = with(&["Conv", "Gemm#2"]).expect("quantises");
    assert_eq!((model.layers.len(), &model.skipped[..]), (2, &["Conv".to_string(), "Gemm#2".into()][..]));
    for (skip, part) in [(&["Pool"][..], "`Pool`"), (&["Conv", "Gemm", "Gemm#2", "MatMul"], "every layer")] {
        let error = with(skip).expect_err("refused");
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(part), "{error}");
    }
}

#[test]
fn what_cannot_be_quantised_is_refused() {
    let refused = |graph: &Graph, name: &str, calibration: Calibration, part: &str| {
        let options = WeightOptions { calibration, ..Default::default() };
        let error = quantise(graph, &scheme(name), &options).expect_err("refused");
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(part), "{name}: {error}");
    };
    let plain = network(weights());
    let none = capture(|t| t.input("x", [3, 4], DType::F32)?.matmul(&t.input("w", [4, 2], DType::F32)?)).expect("a graph");
    refused(&none, "nf4", Calibration::Absmax, "nothing to quantise");
    let halves = HostTensor::new([4, 2], vec![f16::ONE; 8]).expect("fits");
    let halves = capture(|t| t.input("x", [3, 4], DType::F16)?.matmul(&t.constant(halves)?)).expect("a graph");
    refused(&halves, "nf4", Calibration::Absmax, "constants of f32");
    refused(&plain, "f32", Calibration::Absmax, "no codes");
    refused(&plain, "bf16", Calibration::Mse, "no scales");
    refused(&plain, "ternary-channel", Calibration::Percentile(99.0), "means");
    for bad in [f32::NAN, f32::INFINITY] {
        let mut all = weights();
        let mut values = all[1].as_slice::<f32>().expect("f32").to_vec();
        values[77] = bad;
        all[1] = HostTensor::new([40, 96], values).expect("fits");
        for name in ["int8-channel", "nf4", "mxfp8-e5m2", "int4-group32-hadamard32"] {
            refused(&network(all.clone()), name, Calibration::Absmax, "layer `Gemm`");
        }
    }
}

#[test]
fn finite_weights_stay_finite_or_are_refused() {
    let mut all = weights();
    let mut values = all[1].as_slice::<f32>().expect("f32").to_vec();
    values[5] = 3.4e38;
    values[6] = -3.4e38;
    all[1] = HostTensor::new([40, 96], values).expect("fits");
    for name in ["bf16", "mxfp4-ceil", "int4-group32-hadamard32"] {
        let error = quantise(&network(all.clone()), &scheme(name), &WeightOptions::default()).map(|_| ()).expect_err(name).to_string();
        assert!(error.contains("3.4e38") && error.contains(name) && error.contains("another scheme"), "{error}");
    }
    let zeros = HostTensor::zeros(DType::F32, [40, 96]).expect("fits");
    let [conv, _, third, last] = weights();
    let model = quantise(&network([conv, zeros, third, last]), &scheme("binary-channel"), &WeightOptions::default()).expect("quantises");
    assert!(model.errors[1].rel_error.is_infinite() && model.rel_error().is_finite(), "{}", model.rel_error());
}

/// The floor rule of MX leaves the largest numbers of some groups out of range: there a larger scale is better, elsewhere a smaller one.
#[test]
fn the_least_error_is_sought_on_both_sides_of_the_rule() {
    let error = |plain: &Graph, name: &str, calibration| {
        quantise(plain, &scheme(name), &WeightOptions { calibration, ..Default::default() }).expect(name).rel_error()
    };
    let plain = network(weights());
    for name in ["int4-group32", "nvfp4"] {
        let [absmax, mse, cut] = [Calibration::Absmax, Calibration::Mse, Calibration::Percentile(50.0)].map(|c| error(&plain, name, c));
        assert!(mse < absmax && absmax < cut, "{name}: {mse}, {absmax}, {cut}");
    }
    let [conv, _, third, last] = weights();
    let high = network([conv, HostTensor::new([40, 96], vec![0.99f32; 40 * 96]).expect("fits"), third, last]);
    let (absmax, mse) = (error(&high, "mxfp4", Calibration::Absmax), error(&high, "mxfp4", Calibration::Mse));
    assert!(absmax > 0.2 && mse < 0.05, "{absmax}, {mse}");
}

#[test]
fn odd_weights_are_stored() {
    let zeros = HostTensor::zeros(DType::F32, [40, 96]).expect("fits");
    let tiny = HostTensor::new([40, 7], vec![1e-41f32; 280]).expect("fits");
    let [conv, _, _, last] = weights();
    for name in ["int8-channel", "int4-group128", "nvfp4", "mxfp4", "nf4", "ternary-channel"] {
        let plain = network([conv.clone(), zeros.clone(), tiny.clone(), last.clone()]);
        let model = quantise(&plain, &scheme(name), &WeightOptions::default()).expect("quantises");
        assert_eq!(model.errors[1].rel_error, 0.0, "{name}");
        assert!(output(&model.graph).iter().all(|v| v.is_finite()), "{name}");
    }
    let one = capture(|t| t.input("x", [3, 1], DType::F32)?.matmul(&t.constant(HostTensor::new([1, 1], vec![0.5f32])?)?)).expect("a graph");
    let model = quantise(&one, &scheme("int4-group64"), &WeightOptions::default()).expect("quantises");
    assert!(model.rel_error() < 1e-6 && (model.layers[0].rows, model.layers[0].k) == (1, 1));
}

#[test]
fn files_hold_what_was_written_and_nothing_else_is_read() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("w.safetensors");
    let model = Source { file: "m.onnx".into(), sha256: "ab".repeat(32) };
    let plain = network(weights());
    for name in ["int8-channel-affine-f16", "nvfp4", "mxfp6-e3m2", "int4-group32-hadamard64", "fp8"] {
        let options = WeightOptions { seed: 7, ..Default::default() };
        let quantised = quantise(&plain, &scheme(name), &options).expect("quantises");
        write(&path, &model, Calibration::Absmax, &quantised.layers).expect("written");
        let bytes = std::fs::read(&path).expect("there");
        let stored = read(&path, &model).expect("reads");
        assert_eq!((&stored.layers, &stored.model, &stored.calibration[..]), (&quantised.layers, &model, "absmax"), "{name}");
        write(&path, &model, Calibration::Absmax, &stored.layers).expect("written");
        assert!(std::fs::read(&path).expect("there") == bytes, "{name}: equal layers give equal bytes");
    }
    let bytes = std::fs::read(&path).expect("there");
    let other = Source { file: "n.onnx".into(), sha256: "cd".repeat(32) };
    let error = read(&path, &other).expect_err("another model");
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("m.onnx"), "{error}");
    // Another text of the same length in the header.
    let edited = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap_or_else(|| panic!("no {from}"));
        let mut edited = bytes.clone();
        edited[at..at + to.len()].copy_from_slice(to.as_bytes());
        edited
    };
    let cuts = [0, 5, 100, bytes.len() / 2, bytes.len() - 1].map(|end| (bytes[..end].to_vec(), "quantize"));
    let mut last_byte = bytes.clone();
    last_byte.last_mut().map(|b| *b ^= 1).expect("not empty");
    let edits = [
        (edited("Gemm#2.codes", "Gemm#3.codes"), "lacks `Gemm#2.codes`"),
        (edited(r#"\"scheme\":\"fp8\""#, r#"\"scheme\":\"fp9\""#), "`fp9`"),
        (edited(r#"\"k\":96"#, r#"\"k\":95"#), "not 40 rows of 95"),
        (edited(r#"\"shape\":[40,96]"#, r#"\"shape\":[96,40]"#), "not 40 rows of 96"),
        (edited(r#"\"schema\":2"#, r#"\"schema\":9"#), "schema 9"),
        (edited("absmax", "minmax"), "were changed"),
        (last_byte, "were changed"),
        (edited("sublane weights", "sublane beights"), "beights"),
        (edited(r#"\"op\""#, r#"\"xp\""#), "damaged"),
    ];
    for (content, part) in cuts.into_iter().chain(edits) {
        std::fs::write(&path, content).expect("written");
        let error = read(&path, &model).expect_err(part).to_string();
        assert!(error.contains(part) && error.contains("w.safetensors") && error.contains("again"), "{part}: {error}");
    }
    std::fs::write(&path, edited(r#"\"layout\":\"rows\""#, r#"\"layout\":\"tows\""#)).expect("written");
    assert!(read(&path, &model).is_err());
}

#[test]
fn compiled_models_hold_packed_weights() {
    let [conv, product] = [numbers(&[64, 32, 3, 3], 1), numbers(&[64 * 16, 48], 2)];
    let plain = capture(|t| {
        let x = t.input("x", [1, 32, 6, 6], DType::F32)?.conv(&t.constant(conv)?, None, Conv::new(2))?;
        x.relu()?.reshape(&[1, 64 * 16])?.matmul(&t.constant(product)?)
    })
    .expect("a network");
    for name in ["int8-channel", "int4-group32", "int4-group32-affine", "nvfp4", "mxfp6-e2m3", "nf4", "fp4-tile"] {
        let model = quantise(&plain, &scheme(name), &WeightOptions::default()).expect("quantises");
        let compiled = compile(&model.graph, &Target::webgpu(), &CompileOptions::default()).expect("compiles");
        let held: u64 = compiled.constants().iter().map(|port| port.ty.num_bytes()).sum();
        let packed: usize = model.layers.iter().map(Layer::bytes).sum();
        // Constants of up to a thousand elements are taken apart.
        assert!(held <= packed as u64 + 8192, "{name}: {held} bytes of constants for {packed} of weights");
    }
}
