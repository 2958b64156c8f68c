//! A compiled function on a device: sizes that change, a branch on a value that is read, and the reference of what it computed.

use std::time::Instant;

use crate::capture::{self, CaptureOptions, Context, Tensor, Traced, capture};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::graph::TensorType;
use crate::ops::prelude::*;
use crate::ops::reference_graph;
use crate::stats::{median, relative_error};
use crate::suite::inputs;
use crate::suite::samples::Trial;
use kernels_gen::DType;
use kernels_gen::threefry::Key;

const WIDTH: usize = 48;

/// Batches of the calls; all but the first are of one class of sizes.
const BATCHES: [usize; 4] = [5, 8, 12, 36];

fn layer<V: Value>(x: &V, weights: &V) -> Result<V> {
    x.matmul(weights)?.gelu()
}

/// Normalises the rows, in one of two ways.
fn end<V: Value>(x: &V, positive: bool) -> Result<V> {
    if positive { x.softmax(-1) } else { x.sub(&x.mean(&[1], true)?) }
}

/// Calls a compiled function at several sizes and compares each result with its reference. `kernels` are those of the loaded parts.
pub fn trial(device: &Device, key: Key) -> Result<Trial> {
    let random = |shape: &[usize], stream: u64| inputs::random(&TensorType::new(DType::F32, shape), key.stream(stream));
    let context = Context::new(device);
    let weights = random(&[WIDTH, WIDTH], 0)?;
    let on_device = context.tensor(&weights)?;
    let f = capture::compile(&context, CaptureOptions::default(), |x: &[Tensor]| {
        let y = layer(&x[0], &on_device)?;
        // The host reads a value here: the graph breaks, and goes on.
        let positive = y.mean(&[0, 1], false)?.item()? > 0.0;
        end(&y, positive)
    });
    let (mut times, mut error) = (Vec::new(), 0.0f64);
    for (&batch, stream) in BATCHES.iter().zip(1..) {
        let x = random(&[batch, WIDTH], stream)?;
        let given = context.tensor(&x)?;
        let first = f.call(std::slice::from_ref(&given))?;
        let start = Instant::now();
        let again = f.call(std::slice::from_ref(&given))?;
        let result = |all: &[Tensor]| all.first().ok_or_else(|| Error::internal("a compiled function without a result"))?.to_host();
        let got = result(&again)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        if result(&first)? != got {
            return Err(Error::internal("two calls with the same argument differ"));
        }
        let reference = |f: &dyn Fn(&Traced, &Traced) -> Result<Traced>| -> Result<Vec<f64>> {
            let graph = capture(|t| f(&t.input("x", x.shape(), DType::F32)?, &t.constant(weights.clone())?))?;
            let values = reference_graph(&graph, &[("x", x.clone())])?;
            Ok(values.into_iter().next().map(|(_, value)| value.data).unwrap_or_default())
        };
        let positive = reference(&|x, w| layer(x, w)?.mean(&[0, 1], false))?.first().is_some_and(|mean| *mean > 0.0);
        error = error.max(relative_error(&got.to_f64(), &reference(&|x, w| end(&layer(x, w)?, positive))?));
    }
    let kernels = f.explain().parts.iter().map(|part| part.kernels.len()).sum();
    Ok(Trial { kernels, ms: median(&times), error })
}
