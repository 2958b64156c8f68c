//! The integer layers of a network as packed products of 8-bit integers: what a device takes for them when it does not go bit by bit.

use std::collections::HashMap;

use super::timing;
use crate::bitset::encoding::largest;
use crate::bitset::{Geometry, Layer};
use crate::capture::{Traced, capture};
use crate::compiler::CompileOptions;
use crate::error::{Error, Result};
use crate::graph::{Op, Prim};
use crate::ops::Value;
use crate::progress::Work;
use crate::session::Loader;
use crate::tensor::HostTensor;
use kernels_gen::DType;
use kernels_gen::threefry::Key;

/// Rows of a product, about: enough to fill a device, few enough to be measured soon.
const ROWS: usize = 4096;

/// Rows of a product that are compared with sums on the processor.
const COMPARED: usize = 8;

/// Milliseconds an image of the product of each layer with its windows, signed bytes packed four a word, on the loader's device. The windows lie
/// there as rows already, which the simulation makes for itself. `None` for a layer whose weights a signed byte does not hold: one of more than
/// 8 bits, and one with pruned weights, since `Q = 2 w + 1` is never 0.
///
/// Products are compared with sums on the processor before they are timed. Layers of one shape are measured once.
///
/// # Errors
///
/// Those of loading and running, and [`ErrorKind::Internal`](crate::ErrorKind::Internal) where a product is wrong.
pub fn packed(loader: &Loader, layers: &[&Layer], batch: usize, seed: u64, work: &Work<'_>) -> Result<Vec<Option<f64>>> {
    let part = work.part("packed products", layers.len() as u64);
    let mut known: HashMap<Geometry, f64> = HashMap::new();
    let mut found = Vec::with_capacity(layers.len());
    for layer in layers {
        part.advance(1)?;
        if layer.is_pruned() || largest(layer.bits) > 255 {
            found.push(None);
            continue;
        }
        let ms = match known.get(&layer.geometry) {
            Some(&ms) => ms,
            None => one(loader, layer, batch, seed, &part)?,
        };
        known.insert(layer.geometry, ms);
        found.push(Some(ms));
    }
    Ok(found)
}

fn one(loader: &Loader, layer: &Layer, batch: usize, seed: u64, part: &crate::progress::Part<'_>) -> Result<f64> {
    let Geometry { outputs, groups, .. } = layer.geometry;
    let (positions, taps, columns) = (layer.geometry.positions(), layer.geometry.taps(), outputs / groups);
    let images = (ROWS / positions.max(1)).clamp(1, batch.max(1));
    let (rows, words) = (images * positions, taps.div_ceil(4));
    let key = Key::new(seed).stream(23);
    // A window's activation less 128, and the w of a weight.
    let left = |group: usize, row: usize, tap: usize| (key.word(((group * rows + row) * taps + tap) as u64) >> 24) as u8 as i8;
    let right = |group: usize, tap: usize, column: usize| ((layer.q[(group * columns + column) * taps + tap] - 1) / 2) as i8;
    let byte = |tap: usize, of: &dyn Fn(usize) -> i8| if tap < taps { u32::from(of(tap) as u8) } else { 0 };
    let word = |at: usize, of: &dyn Fn(usize) -> i8| (0..4).map(|i| byte(4 * at + i, of) << (8 * i)).sum::<u32>();
    let mut a = Vec::with_capacity(groups * rows * words);
    let mut b = Vec::with_capacity(groups * words * columns);
    for group in 0..groups {
        for row in 0..rows {
            a.extend((0..words).map(|at| word(at, &|tap| left(group, row, tap))));
        }
        for at in 0..words {
            b.extend((0..columns).map(|column| word(at, &|tap| right(group, tap, column))));
        }
    }
    let b = HostTensor::new([groups, words, columns], b)?;
    let graph = capture(|t| {
        let a = t.input("windows", [groups, rows, words], DType::U32)?;
        let b = t.constant(b.clone())?;
        Traced::apply(Op::from(Prim::DotI8), &[&a, &b])
    })?;
    let (session, _) = loader.load(&graph, &CompileOptions::default(), &Work::quiet())?;
    let outputs = session.run(&[("windows", &HostTensor::new([groups, rows, words], a)?)])?;
    let (_, sums) = outputs.iter().next().ok_or_else(|| Error::internal("a product without a result"))?;
    let sums = sums.as_slice::<i32>()?;
    for at in (0..groups * rows).step_by((groups * rows).div_ceil(COMPARED).max(1)) {
        for column in 0..columns {
            let (group, row) = (at / rows, at % rows);
            let sum: i64 = (0..taps).map(|tap| i64::from(left(group, row, tap)) * i64::from(right(group, tap, column))).sum();
            let got = i64::from(sums[at * columns + column]);
            if got != sum {
                return Err(Error::internal(format!("a packed product is {got} where {sum} is right")));
            }
        }
    }
    let samples = timing::in_turns(&[session.executor()], true, part)?;
    Ok(samples.median_ms(0) / images as f64)
}
