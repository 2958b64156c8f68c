//! Products of packed operands on the adapter against f64: every scheme, awkward shapes, values that no code stands for.

mod device_common;

use device_common::open;
use kernels_gen::threefry::Key;
use rayon::prelude::*;
use sublane::capture::{Traced, capture};
use sublane::compiler::{CompileOptions, Port, compile};
use sublane::graph::Graph;
use sublane::ops::prelude::*;
use sublane::ops::quantised::{Dequantise, Packed};
use sublane::stats::relative_error;
use sublane::tensor::quantised::{QuantiseOptions, Quantised};
use sublane::tensor::scheme::{PRESETS, Scheme};
use sublane::{DType, Device, HostTensor, Session};

/// Sizes of which products are made.
const SIZES: [usize; 9] = [0, 1, 3, 16, 33, 64, 127, 257, 1000];

fn numbers(key: Key, count: usize) -> Vec<f32> {
    (0..count as u64).map(|n| 4.0 * key.uniform(n) - 2.0).collect()
}

fn quantised(scheme: &Scheme, values: &[f32], rows: usize, k: usize) -> Quantised {
    Quantised::new(values, rows, k, scheme, &QuantiseOptions { seed: 5, ..QuantiseOptions::default() }).expect("quantises")
}

/// The operands as inputs `a0`, `a1`..., and their values.
type Given = Vec<(String, HostTensor)>;

/// `left * right^T`, where an operand that is not quantised is f32.
fn product(left: Result<&Quantised, (&[f32], usize)>, right: Result<&Quantised, (&[f32], usize)>, k: usize) -> (Graph, Given) {
    let tensors = |operand: &Result<&Quantised, (&[f32], usize)>| match operand {
        Ok(matrix) => Packed::<Traced>::tensors(matrix).expect("fits"),
        Err((values, rows)) => vec![HostTensor::new([*rows, k], values.to_vec()).expect("fits")],
    };
    let named =
        |name: &str, tensors: Vec<HostTensor>| tensors.into_iter().enumerate().map(|(i, t)| (format!("{name}{i}"), t)).collect::<Given>();
    let (a, b) = (named("a", tensors(&left)), named("b", tensors(&right)));
    let graph = capture(|t| {
        let inputs = |given: &Given| {
            given.iter().map(|(name, x)| t.input(name.clone(), x.shape(), x.dtype())).collect::<sublane::Result<Vec<Traced>>>()
        };
        let packed = |matrix: &Quantised, inputs| Packed::new(*matrix.scheme(), matrix.rows(), matrix.k(), matrix.seed(), inputs);
        let (a, b) = (inputs(&a)?, inputs(&b)?);
        match (&left, &right) {
            (Ok(x), Ok(y)) => packed(y, b)?.matmul_packed(&packed(x, a)?),
            (Err(_), Ok(y)) => packed(y, b)?.matmul(&a[0]),
            (Ok(x), Err(_)) => packed(x, a)?.dequantise()?.matmul(&b[0].transpose(&[1, 0])?),
            (Err(_), Err(_)) => a[0].matmul(&b[0].transpose(&[1, 0])?),
        }
    });
    (graph.expect("records"), a.into_iter().chain(b).collect())
}

fn run(device: &Device, graph: &Graph, given: &Given) -> Vec<f64> {
    let compiled = compile(graph, &device.target(), &CompileOptions::default()).expect("compiles");
    let session = Session::load(device, &compiled).expect("loads");
    let inputs: Vec<(&str, &HostTensor)> = given.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    session.run(&inputs).expect("runs").single().expect("one").to_f64()
}

fn exact(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let element = |i: usize| (0..k).map(|p| f64::from(a[i / n * k + p]) * f64::from(b[i % n * k + p])).sum();
    (0..m * n).into_par_iter().map(element).collect()
}

/// Every scheme against f32 and itself, at shapes drawn from [`SIZES`].
#[test]
fn products_are_those_of_the_numbers_that_codes_stand_for() {
    let device = open();
    let names =
        PRESETS.iter().copied().chain(["int4-group32-f16", "fp8-channel-f16", "int8-channel-hadamard32", "mxfp4-hadamard64-roundup"]);
    for (at, name) in names.enumerate() {
        let scheme = Scheme::parse(name).expect(name);
        if scheme.format().is_none() {
            continue;
        }
        let key = Key::new(at as u64);
        for draw in 0..2 {
            let [m, n, k] = [0, 1, 2].map(|d| SIZES[key.stream(draw).below(d, SIZES.len() as u64) as usize]);
            let (x, y) = (numbers(key.stream(10), m * k), numbers(key.stream(11), n * k));
            let (a, b) = (quantised(&scheme.for_activations(), &x, m, k), quantised(&scheme, &y, n, k));
            let (a_numbers, b_numbers) = (a.dequantise(), b.dequantise());
            // Turned rows are summed as they stand, whole blocks of them.
            let terms = k.next_multiple_of(scheme.hadamard.unwrap_or(1)).max(1);
            let tolerance = 1e-6 * (terms as f64).sqrt();
            let weights = (product(Err((&x, m)), Ok(&b), k), &x, &b_numbers);
            // Two turned matrices are multiplied as they stand, with what fills up their rows.
            let (a_stored, b_stored) = match scheme.hadamard {
                Some(_) => (a.stored_values(), b.stored_values()),
                None => (a_numbers.clone(), b_numbers.clone()),
            };
            let both = (product(Ok(&a), Ok(&b), k), &a_stored, &b_stored);
            let activations = (draw == 0).then(|| (product(Ok(&a), Err((&y, n)), k), &a_numbers, &y));
            for (graph, left, right) in [weights, both].into_iter().chain(activations) {
                let got = run(&device, &graph.0, &graph.1);
                let width = right.len().checked_div(n).unwrap_or(k);
                let error = relative_error(&got, &exact(left, right, [m, n, width]));
                assert!(error <= tolerance, "{name}, {m} x {n} x {k}: {error:.2e}, {tolerance:.1e} allowed");
            }
        }
    }
}

/// Codes without scales are whole numbers, whose products are exact while f32 holds the sums, and longer ones in 32 bits.
#[test]
fn whole_numbers_are_multiplied_exactly() {
    let device = open();
    let scheme = Scheme::parse("int8").expect("a scheme");
    for [m, n, k] in [[1usize, 1, 1], [3, 257, 33], [64, 5, 1000], [1, 3, 1 << 16], [2, 1, (1 << 17) - 4]] {
        let whole =
            |stream: u64, count: usize| -> Vec<f32> { (0..count as u64).map(|i| Key::new(stream).below(i, 255) as f32 - 127.0).collect() };
        let (x, y) = (whole(1, m * k), whole(2, n * k));
        let (graph, given) = product(Ok(&quantised(&scheme, &x, m, k)), Ok(&quantised(&scheme, &y, n, k)), k);
        let expected: Vec<f64> = exact(&x, &y, [m, n, k]).into_iter().map(|v| f64::from(v as f32)).collect();
        assert_eq!(run(&device, &graph, &given), expected, "{m} x {n} x {k}");
    }
}

/// Sums of 2^16 terms, which a loop over words and one over numbers must both hold.
#[test]
fn long_sums_stay_within_the_bound_of_loops() {
    let device = open();
    let k = 1 << 16;
    for name in ["int4-group32", "int8-channel", "mxfp6-e3m2"] {
        let scheme = Scheme::parse(name).expect(name);
        let (x, y) = (numbers(Key::new(1), k), numbers(Key::new(2), 5 * k));
        let b = quantised(&scheme, &y, 5, k);
        let (graph, given) = product(Err((&x, 1)), Ok(&b), k);
        let error = relative_error(&run(&device, &graph, &given), &exact(&x, &b.dequantise(), [1, 5, k]));
        assert!(error <= 1e-6 * (k as f64).sqrt(), "{name}: {error:.2e}");
    }
}

/// Four bits and a scale for 32 take at most 0.16 of f32's bytes, by the kernel's account and by the buffers it binds.
#[test]
fn the_account_of_bytes_is_that_of_the_buffers() {
    let [n, k] = [4096usize, 4096];
    let scheme = Scheme::parse("int4-group32").expect("a scheme");
    let types = Dequantise { scheme, rows: n, k }.operands().expect("holds together");
    let graph = capture(|t| {
        let inputs = types.iter().enumerate().map(|(i, ty)| t.input(format!("w{i}"), ty.shape.clone(), ty.dtype));
        Packed::new(scheme, n, k, 0, inputs.collect::<sublane::Result<_>>()?)?.matmul(&t.input("x", [1, k], DType::F32)?)
    });
    let device = open();
    let compiled = compile(&graph.expect("records"), &device.target(), &CompileOptions::default()).expect("compiles");
    let session = Session::load(&device, &compiled).expect("loads");
    let said: u64 = compiled.kernels().iter().map(|kernel| kernel.bytes).sum();
    let ports = compiled.inputs().iter().chain(compiled.outputs());
    let buffer = |port: &Port| session.executor().slot_tensor(port.slot, port.ty.dtype, &port.ty.shape).expect("a slot").into_buffer();
    let bound: u64 = ports.map(|port| buffer(port).size()).sum();
    assert_eq!(compiled.plan().num_dispatches(), 1, "{}", compiled.fusion());
    assert_eq!(said, bound);
    let plain = 4 * (n * k + n + k) as u64;
    assert!(said as f64 <= 0.16 * plain as f64, "{said} of {plain}");
}

/// NaN, infinity, subnormals, zeros and one element alone: what the host says the matrix holds is what products take.
#[test]
fn odd_values_are_those_of_the_host() {
    let device = open();
    let nan = f32::NAN;
    for name in ["int4-group32", "nf4", "mxfp4", "nvfp4", "mxfp8-e4m3", "int8-channel", "fp8-tensor", "int4-group32-affine"] {
        let scheme = Scheme::parse(name).expect(name);
        let mut values = numbers(Key::new(3), 6 * 64);
        values[..64].fill(0.0);
        values[64..128].iter_mut().for_each(|v| *v *= 1e-40);
        values[130] = nan;
        values[200] = f32::INFINITY;
        values[256..320].iter_mut().for_each(|v| *v *= 2f32.powi(-20));
        let matrix = quantised(&scheme, &values, 6, 64);
        let expected = matrix.dequantise();
        let (graph, given) = product(Ok(&matrix), Err((&identity(64), 64)), 64);
        let got = run(&device, &graph, &given);
        for (i, (got, want)) in got.iter().zip(&expected).enumerate() {
            // A row with NaN or infinity is NaN in its product with the identity.
            let row = &expected[i / 64 * 64..][..64];
            if row.iter().all(|v| v.is_finite()) {
                assert!((got - f64::from(*want)).abs() <= 1e-6 * f64::from(want.abs()) + 1e-37, "{name}, element {i}: {got} for {want}");
            } else {
                assert!(got.is_nan() || want.is_infinite(), "{name}, element {i}: {got} for {want}");
            }
        }
    }
    let one = quantised(&Scheme::parse("int4-group32").expect("a scheme"), &[-3.5], 1, 1);
    let (graph, given) = product(Ok(&one), Err((&[2.0], 1)), 1);
    assert_eq!(run(&device, &graph, &given), [-7.0]);
}

/// What the device quantises is what the host does: to the bit where no division decides, else but for a few numbers beside the middle of two.
#[test]
fn the_device_quantises_as_the_host_does() {
    let device = open();
    let names = PRESETS.iter().copied().chain(["int4-group32-f16", "int8-channel-stochastic", "mxfp4-stochastic", "mxfp4-truncate-ceil"]);
    for (at, name) in names.chain(["mxint8-even-hadamard32", "int4-group32-affine-truncate"]).enumerate() {
        let scheme = Scheme::parse(name).expect(name);
        if scheme.format().is_none() {
            continue;
        }
        let (rows, k) = [(5, 257), (131, 33), (1, 1), (3, 128)][at % 4];
        let mut values = numbers(Key::new(at as u64), rows * k);
        values.iter_mut().take(40).for_each(|v| *v = 0.0);
        let host = Quantised::new(&values, rows, k, &scheme, &QuantiseOptions { seed: 5, tensor: 2, ..QuantiseOptions::default() });
        let expected: Vec<f64> = host.expect("quantises").dequantise().into_iter().map(f64::from).collect();
        let graph = capture(|t| t.input("x", [rows, k], DType::F32)?.fake_quantise(&scheme, 5, 2)).expect("records");
        let got = run(&device, &graph, &vec![("x".into(), HostTensor::new([rows, k], values).expect("fits"))]);
        let far = got.iter().zip(&expected).filter(|(g, e)| (*g - *e).abs() > 1e-5 * e.abs() + 1e-6).count();
        let exact = scheme.to_string().starts_with("mx") && scheme.hadamard.is_none();
        let allowed = if exact { 0 } else { 1 + rows * k / 100 };
        assert!(far <= allowed, "{name}, {rows} x {k}: {far} numbers differ");
        assert!(relative_error(&got, &expected) < 0.05, "{name}: {:.2e}", relative_error(&got, &expected));
    }
}

fn identity(n: usize) -> Vec<f32> {
    (0..n * n).map(|i| f32::from(u8::from(i / n == i % n))).collect()
}

#[test]
fn operands_that_do_not_fit_are_told() {
    let scheme = Scheme::parse("int4-group32").expect("a scheme");
    let message = |of: &dyn Fn(&sublane::capture::Tracer) -> sublane::Result<Traced>| capture(of).expect_err("does not fit").to_string();
    let words = |t: &sublane::capture::Tracer, words: usize| t.input("w", [5, words], DType::U32);
    let short = message(&|t| Packed::new(scheme, 5, 64, 0, vec![words(t, 7)?, t.input("s", [5, 2], DType::F32)?])?.stored());
    assert!(short.contains("u32[5, 8]") && short.contains("f32[5, 2]") && short.contains("int4-group32"), "{short}");
    let narrow = message(&|t| {
        let packed = Packed::new(scheme, 5, 64, 0, vec![words(t, 8)?, t.input("s", [5, 2], DType::F32)?])?;
        packed.matmul(&t.input("x", [3, 63], DType::F32)?)
    });
    assert!(narrow.contains("f32[3, 63]") && narrow.contains("64"), "{narrow}");
}
