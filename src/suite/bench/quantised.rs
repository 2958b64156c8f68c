//! Products of quantised operands: how fast they are, what they read, and how far they are from the product of the numbers themselves.

use rayon::prelude::*;
use std::fmt;
use std::str::FromStr;

use super::{Bench, Choice, Probe, Row, timing};
use crate::capture::{Traced, Tracer, capture};
use crate::device::Probes;
use crate::error::{Error, Result};
use crate::graph::{Graph, Op, Prim, TensorType};
use crate::ops::prelude::*;
use crate::ops::quantised::{Dequantise, Packed};
use crate::progress::Work;
use crate::session::{Loader, Session};
use crate::stats::relative_error;
use crate::tensor::quantised::{QuantiseOptions, Quantised};
use crate::tensor::scheme::{Element, Scheme};
use crate::tensor::{HostTensor, num_elems};
use kernels_gen::DType;
use kernels_gen::threefry::Key;

/// Numbers that operands are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Data {
    /// Normal, with variance 1.
    Random,
    /// Student's t with 3 degrees of freedom: a few numbers are ten times as large as most.
    HeavyTailed,
    /// Normal, one column of k in 64 fifty times as large: what activations of language models look like.
    Outliers,
}

impl Data {
    /// Every kind.
    pub const ALL: [Data; 3] = [Data::Random, Data::HeavyTailed, Data::Outliers];

    /// Name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Data::Random => "random",
            Data::HeavyTailed => "heavy-tailed",
            Data::Outliers => "outliers",
        }
    }

    /// `rows` rows of `k` numbers.
    pub(in crate::suite) fn numbers(self, key: Key, rows: usize, k: usize) -> Vec<f32> {
        // The sum of twelve uniform numbers is near enough to normal here.
        let normal = |n: u64| (0..12).map(|i| key.uniform(n * 12 + i)).sum::<f32>() - 6.0;
        let one = |n: usize| match self {
            Data::Random => normal(n as u64),
            Data::HeavyTailed => {
                let n = 4 * n as u64;
                let spread = (1..4).map(|i| normal(n + i).powi(2)).sum::<f32>() / 3.0;
                normal(n) / spread.sqrt().max(1e-3)
            }
            Data::Outliers if n % k.max(1) % 64 == 17 => 50.0 * normal(n as u64),
            Data::Outliers => normal(n as u64),
        };
        (0..rows * k).into_par_iter().map(one).collect()
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Data {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = Data::ALL.map(Data::name).join(", ");
        Data::ALL
            .into_iter()
            .find(|d| d.name() == name)
            .ok_or_else(|| Error::invalid(format!("no data is called `{name}`; there are {all}")))
    }
}

/// A product `a b^T` of `a [m, k]` and `b [n, k]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Product {
    /// Rows of the first operand.
    pub m: usize,
    /// Rows of the second, which are columns of the result.
    pub n: usize,
    /// Numbers of a row.
    pub k: usize,
    /// How the first operand is stored.
    pub a: Scheme,
    /// How the second is.
    pub b: Scheme,
    /// What both are made of.
    pub data: Data,
}

/// What was measured of a [`Product`].
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The product.
    pub product: Product,
    /// Median time of one run, in milliseconds.
    pub median_ms: f64,
    /// 10^9 operations a second, two a multiplication and addition.
    pub gflops: f64,
    /// Bytes that the kernels read and write, each tensor of a kernel once.
    pub bytes: u64,
    /// The least time that arithmetic and memory take at the rates of the probes, over the time it took.
    pub share: f64,
    /// `||C - C*|| / ||C*||` against the product of the numbers in f64, over as many rows as 2^27 terms make.
    pub rel_error: f64,
    /// The same against the product of the numbers that the codes stand for: what the kernel adds.
    pub kernel_error: f64,
    /// Kernel launches.
    pub kernels: usize,
}

/// Numbers of a matrix, at most: 1 GiB of f32.
const MAX_NUMBERS: usize = 1 << 28;

/// Multiplications of a reference, about.
const SAMPLED_TERMS: usize = 1 << 27;

/// Rows by columns by terms past which a product is left out of quick measurements.
const QUICK_TERMS: usize = 1 << 26;

/// An operand as it is stored, and the numbers that it stands for.
pub(in crate::suite) struct Operand {
    scheme: Scheme,
    rows: usize,
    k: usize,
    pub(in crate::suite) tensors: Vec<HostTensor>,
    pub(in crate::suite) numbers: Vec<f32>,
    pub(in crate::suite) stored: Vec<f32>,
}

impl Operand {
    pub(in crate::suite) fn new(scheme: &Scheme, rows: usize, k: usize, numbers: Vec<f32>, seed: u64, tensor: u64) -> Result<Self> {
        if scheme.hadamard.is_some() && scheme.format().is_none() {
            return Err(Error::invalid(format!(
                "`{scheme}`: only operands of codes are turned; give a scheme with codes, or leave the transform out"
            )));
        }
        let (tensors, stored) = match scheme.element {
            Element::F32 => (vec![HostTensor::new([rows, k], numbers.clone())?], numbers.clone()),
            Element::F16 => {
                let codes: Vec<half::f16> = numbers.iter().map(|&x| half::f16::from_f32(x)).collect();
                let stored = codes.iter().map(|x| x.to_f32()).collect();
                (vec![HostTensor::new([rows, k], codes)?], stored)
            }
            Element::Code(_) => {
                let matrix = Quantised::new(&numbers, rows, k, scheme, &QuantiseOptions { seed, tensor, ..QuantiseOptions::default() })?;
                (Packed::<Traced>::tensors(&matrix)?, matrix.dequantise())
            }
        };
        Ok(Operand { scheme: *scheme, rows, k, tensors, numbers, stored })
    }

    /// The operand as inputs of a graph.
    fn inputs(&self, t: &Tracer, name: &str, seed: u64) -> Result<Input> {
        let types: Vec<TensorType> = match self.scheme.format() {
            Some(_) => Dequantise { scheme: self.scheme, rows: self.rows, k: self.k }.operands()?,
            None => self.tensors.iter().map(|x| TensorType::new(x.dtype(), x.shape())).collect(),
        };
        let inputs = types.iter().enumerate().map(|(i, ty)| t.input(format!("{name}{i}"), ty.shape.clone(), ty.dtype));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        match (self.scheme.format(), &inputs[..]) {
            (None, [x]) => Ok(Input::Plain(x.cast(DType::F32)?)),
            _ => Packed::new(self.scheme, self.rows, self.k, seed, inputs).map(Input::Packed),
        }
    }
}

enum Input {
    Plain(Traced),
    Packed(Packed<Traced>),
}

/// `a b^T` of inputs `a0`, `a1`... and `b0`...
pub(in crate::suite) fn graph(a: &Operand, b: &Operand, seed: u64) -> Result<Graph> {
    capture(|t| match (a.inputs(t, "a", seed)?, b.inputs(t, "b", seed)?) {
        (Input::Plain(a), Input::Plain(b)) => a.matmul(&b.transpose(&[1, 0])?),
        (Input::Plain(a), Input::Packed(b)) => b.matmul(&a),
        (Input::Packed(a), Input::Plain(b)) => a.dequantise()?.matmul(&b.transpose(&[1, 0])?),
        (Input::Packed(a), Input::Packed(b)) => b.matmul_packed(&a),
    })
}

/// Rows of a product to look at, about evenly spread.
fn sampled_rows(product: &Product) -> Vec<usize> {
    let most = (SAMPLED_TERMS / (product.n * product.k).max(1)).clamp(1, product.m.max(1));
    let rows = (0..most).map(|i| i * product.m / most);
    if product.m == 0 { Vec::new() } else { rows.collect() }
}

/// Rows of `a b^T` in f64.
pub(in crate::suite) fn rows_of(a: &[f32], b: &[f32], [n, k]: [usize; 2], rows: &[usize]) -> Vec<f64> {
    let element = |i: usize| {
        let (a, b) = (&a[rows[i / n] * k..][..k], &b[i % n * k..][..k]);
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    (0..rows.len() * n).into_par_iter().map(element).collect()
}

fn measure(bench: &Bench<'_>, product: &Product) -> Result<Measured> {
    let Product { m, n, k, a, b, data } = *product;
    for (what, sizes) in [("A", [m, k]), ("B", [n, k]), ("the result", [m, n])] {
        if num_elems(&sizes).unwrap_or(usize::MAX) > MAX_NUMBERS {
            return Err(Error::limit(format!(
                "{what} of {} by {} numbers; at most {MAX_NUMBERS} are measured: give smaller sizes",
                sizes[0], sizes[1]
            )));
        }
    }
    let seed = bench.choice.seed;
    let key = bench.key(data.name());
    let (left, right) = (a.for_activations(), b);
    let left = Operand::new(&left, m, k, data.numbers(key.stream(0), m, k), seed, 0)?;
    let right = Operand::new(&right, n, k, data.numbers(key.stream(1), n, k), seed, 1)?;
    let graph = graph(&left, &right, seed)?;
    let session = bench.load(&graph, crate::compiler::Mode::Compiled, key)?;
    let compiled = session.compiled();
    for port in compiled.inputs() {
        let (operand, index) = if port.name.starts_with('a') { (&left, &port.name[1..]) } else { (&right, &port.name[1..]) };
        let tensor = index.parse::<usize>().ok().and_then(|i| operand.tensors.get(i));
        let tensor = tensor.ok_or_else(|| Error::internal(format!("an input called `{}`", port.name)))?;
        session.executor().write(port.slot, tensor.bytes())?;
    }
    let samples = timing::in_turns(&[session.executor()], bench.choice.quick, bench.part)?;
    let got = result(&session, [m, n])?;
    let rows = sampled_rows(product);
    let got: Vec<f64> = rows.iter().flat_map(|r| got[r * n..(r + 1) * n].iter().map(|&v| f64::from(v))).collect();
    let median_ms = samples.median_ms(0);
    let bytes: u64 = compiled.kernels().iter().map(|kernel| kernel.bytes).sum();
    let ops = 2 * (m * n * k) as u64;
    let rate = if integer(&graph) { bench.probes.dot4_gops } else { bench.probes.fma_gflops };
    let floor_ms = (ops as f64 / rate).max(bytes as f64 / bench.probes.read_gbps[0]) / 1e6;
    Ok(Measured {
        product: *product,
        median_ms,
        gflops: ops as f64 / median_ms / 1e6,
        bytes,
        share: floor_ms / median_ms,
        rel_error: relative_error(&got, &rows_of(&left.numbers, &right.numbers, [n, k], &rows)),
        kernel_error: relative_error(&got, &rows_of(&left.stored, &right.stored, [n, k], &rows)),
        kernels: compiled.plan().num_dispatches(),
    })
}

/// Whether the product is one of signed bytes.
fn integer(graph: &Graph) -> bool {
    graph.nodes().iter().any(|node| matches!(node.op, Op::Prim(Prim::DotI8)))
}

fn result(session: &Session, shape: [usize; 2]) -> Result<Vec<f32>> {
    let output = session.compiled().outputs().first().ok_or_else(|| Error::internal("a product without a result"))?;
    let bytes = session.executor().read(output.slot)?;
    let tensor = HostTensor::from_bytes(DType::F32, shape, &bytes[..4 * shape[0] * shape[1]])?;
    tensor.as_slice::<f32>().map(<[f32]>::to_vec)
}

/// What was found of products, and those that could not be measured, with the reason.
#[derive(Debug, Clone)]
pub struct Products {
    /// What the device reaches.
    pub probes: Probes,
    /// The measurements.
    pub measured: Vec<Measured>,
    /// Products that could not be measured, and why.
    pub faults: Vec<String>,
}

/// Measures products on the loader's device.
pub fn products(loader: &Loader, products: &[Product], choice: &Choice, work: &Work<'_>) -> Result<Products> {
    let device = loader.device();
    let probes = Probes::run(device, work)?;
    let part = work.part("products", products.len() as u64);
    let (mut measured, mut faults) = (Vec::new(), Vec::new());
    for product in products {
        match measure(&Bench { device, loader, probes: &probes, choice, part: &part }, product) {
            Ok(found) => measured.push(found),
            Err(error) => {
                work.cancel().check()?;
                device.check_alive()?;
                faults.push(format!("{} x {}, {}: {error}", product.a, product.b, product.data));
            }
        }
        part.advance(1)?;
    }
    Ok(Products { probes, measured, faults })
}

/// Schemes of the benchmark's second operand, with those of its first and what it is compared with.
const COMPARED: [([usize; 3], &str, &str); 5] = [
    ([1, 4096, 4096], "f32", "int4-group32"),
    ([1, 4096, 4096], "f32", "int8-channel"),
    ([1, 4096, 4096], "f32", "mxfp4"),
    ([1024, 1024, 1024], "int8-channel", "int8-channel"),
    ([1024, 1024, 1024], "f32", "int4-group32"),
];

/// Packed products in turns with those of f32.
pub(super) fn run(bench: &Bench<'_>) -> Result<Vec<Row>> {
    let plain = Scheme::of(Element::F32);
    let mut rows = Vec::new();
    for ([m, n, k], a, b) in COMPARED.into_iter().filter(|(s, ..)| !bench.choice.quick || s.iter().product::<usize>() <= QUICK_TERMS) {
        let key = bench.key(b);
        let sessions = [(Scheme::parse(a)?, Scheme::parse(b)?), (plain, plain)].map(|(a, b)| -> Result<Session> {
            let zeros = |rows: usize| vec![1.0f32; rows * k];
            let (left, right) = (Operand::new(&a, m, k, zeros(m), 0, 0)?, Operand::new(&b, n, k, zeros(n), 0, 1)?);
            bench.load(&graph(&left, &right, 0)?, crate::compiler::Mode::Compiled, key)
        });
        let [packed, unpacked] = sessions;
        let (packed, unpacked) = (packed?, unpacked?);
        let samples = timing::in_turns(&[packed.executor(), unpacked.executor()], bench.choice.quick, bench.part)?;
        let bytes = |session: &Session| session.compiled().kernels().iter().map(|k| k.bytes).sum::<u64>();
        let row = |at: usize, name: String, session: &Session| {
            let (count, probe) = if m == 1 { (bytes(session), Probe::Read) } else { (2 * (m * n * k) as u64, Probe::Fma) };
            let row = bench.row(name, session, samples.median_ms(at), super::Amount { count, probe })?;
            Ok::<Row, Error>(Row { bytes: Some(bytes(session)), ..row })
        };
        let shape = format!("{m}x{n}x{k}");
        rows.push(Row { ratio: Some(samples.ratio(0, 1)), against: Some("f32"), ..row(0, format!("{a} x {b}, {shape}"), &packed)? });
        rows.push(row(1, format!("f32 x f32 beside {b}, {shape}"), &unpacked)?);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_as_they_say() {
        let of = |data: Data| data.numbers(Key::new(1), 64, 256);
        let largest = |x: &[f32]| x.iter().fold(0.0f32, |a, v| a.max(v.abs()));
        assert!(largest(&of(Data::Random)) < 6.0 && largest(&of(Data::Outliers)) > 60.0 && largest(&of(Data::HeavyTailed)) > 8.0);
        let random = of(Data::Random);
        let variance = random.iter().map(|v| v * v).sum::<f32>() / random.len() as f32;
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
        assert!(of(Data::Outliers).iter().enumerate().all(|(i, v)| i % 64 == 17 || v.abs() < 6.1));
        assert!("wide".parse::<Data>().unwrap_err().to_string().contains("heavy-tailed"));
    }

    #[test]
    fn sampled_rows_are_rows() {
        let scheme = Scheme::of(Element::F32);
        let rows = |m, n, k| sampled_rows(&Product { m, n, k, a: scheme, b: scheme, data: Data::Random });
        assert_eq!(rows(3, 4, 5), [0, 1, 2]);
        assert!(rows(0, 4, 5).is_empty());
        let some = rows(100_000, 4096, 4096);
        assert!(some.len() == 8 && some.iter().all(|&r| r < 100_000), "{some:?}");
        assert_eq!(rows(2, 0, 0), [0, 1]);
    }
}
