//! Products of packed operands on a device, compared with those of the numbers that the codes stand for.

use std::time::Instant;

use crate::compiler::{CompileOptions, compile};
use crate::device::Device;
use crate::error::Result;
use crate::progress::Work;
use crate::session::Session;
use crate::stats::relative_error;
use crate::suite::Check;
use crate::suite::bench::quantised::{Data, Operand, graph, rows_of};
use crate::tensor::HostTensor;
use crate::tensor::scheme::{Element, PRESETS, Scheme};
use kernels_gen::threefry::Key;

/// A product on a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Schemes of the operands.
    pub name: String,
    /// Distance from the product of the numbers that the codes stand for, relative in the Euclidean norm.
    pub error: f64,
    /// Whether that is rounding of f32: below `1e-6 sqrt(k)`.
    pub agrees: bool,
    /// Distance from the product of the numbers that were quantised.
    pub loss: f64,
    /// Bytes of the second operand over those in f32.
    pub share: f64,
    /// Kernel launches.
    pub kernels: usize,
    /// Time of a run after the first, the transfer of input and output included, in milliseconds.
    pub ms: f64,
}

/// Multiplies `m` rows in scheme `a` with `n` rows in scheme `b`, all of `k` random numbers.
pub fn trial(device: &Device, [m, n, k]: [usize; 3], a: &Scheme, b: &Scheme, seed: u64) -> Result<Trial> {
    let key = Key::new(seed);
    let operand = |scheme: &Scheme, rows: usize, stream: u64| {
        Operand::new(scheme, rows, k, Data::Random.numbers(key.stream(stream), rows, k), seed, stream)
    };
    let (left, right) = (operand(&a.for_activations(), m, 0)?, operand(b, n, 1)?);
    let compiled = compile(&graph(&left, &right, seed)?, &device.target(), &CompileOptions::default())?;
    let session = Session::load(device, &compiled)?;
    let named = |name: &str, operand: &Operand| {
        operand.tensors.iter().enumerate().map(|(i, x)| (format!("{name}{i}"), x.clone())).collect::<Vec<(String, HostTensor)>>()
    };
    let given = [named("a", &left), named("b", &right)].concat();
    let given: Vec<(&str, &HostTensor)> = given.iter().map(|(name, x)| (name.as_str(), x)).collect();
    session.run(&given)?;
    let start = Instant::now();
    let got = session.run(&given)?.single()?.to_f64();
    let ms = start.elapsed().as_secs_f64() * 1e3;
    let rows: Vec<usize> = (0..m).collect();
    let error = relative_error(&got, &rows_of(&left.stored, &right.stored, [n, k], &rows));
    let bytes: usize = right.tensors.iter().map(|x| x.bytes().len()).sum();
    Ok(Trial {
        name: format!("{a} x {b}, {m}x{n}x{k}"),
        error,
        agrees: error <= 1e-6 * (k as f64).sqrt(),
        loss: relative_error(&got, &rows_of(&left.numbers, &right.numbers, [n, k], &rows)),
        share: bytes as f64 / (4 * n * k) as f64,
        kernels: compiled.plan().num_dispatches(),
        ms,
    })
}

/// A few products: packed weights with f32, and both operands packed.
pub fn trials(device: &Device, seed: u64) -> Result<Vec<Trial>> {
    let pairs = [("f32", "int8-channel"), ("f32", "int4-group32"), ("f32", "mxfp4"), ("nvfp4", "nvfp4"), ("int8-channel", "int8-channel")];
    let trial = |(a, b)| trial(device, [16, 256, 512], &Scheme::parse(a)?, &Scheme::parse(b)?, seed);
    pairs.into_iter().map(trial).collect()
}

/// Every preset as second operand and as both, one check each; at shapes of one row and of many, no multiples of a tile.
pub fn checks(device: &Device, seed: u64, work: &Work<'_>) -> Result<Vec<Check>> {
    let part = work.part("packed products", PRESETS.len() as u64);
    let f32 = Scheme::of(Element::F32);
    let mut checks = Vec::with_capacity(PRESETS.len());
    for name in PRESETS {
        checks.push(Check::of(format!("products of {name}"), || {
            let scheme = Scheme::parse(name)?;
            for (shape, left) in [([1, 67, 257], &f32), ([33, 65, 130], &f32), ([17, 34, 257], &scheme)] {
                let found = trial(device, shape, left, &scheme, seed)?;
                if !found.agrees {
                    return Ok(Some(format!("{}: relative error {:.1e}", found.name, found.error)));
                }
            }
            Ok(None)
        }));
        device.check_alive()?;
        part.advance(1)?;
    }
    Ok(checks)
}
