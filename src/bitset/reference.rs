//! A layer by definition, in 64-bit integers on the processor: the oracle of the kernels and their twins.

use rayon::prelude::*;

use crate::bitset::encoding::Encoding;
use crate::bitset::layer::{Layer, Thresholds};
use crate::bitset::rule::{Rule, window_bound};
use crate::error::{Error, Result};

/// What became of the outputs of a layer, `[images, outputs, height, width]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The value without a stop, before the ReLU.
    pub exact: Vec<i64>,
    /// Steps made: planes, and for [`Rule::PositiveFirst`] planes of positive weights and planes of negative ones.
    pub steps: Vec<u32>,
    /// Steps of an output that is not stopped.
    pub all_steps: u32,
}

impl Outcome {
    /// The result of output `at` before the ReLU: 0 where it was stopped.
    pub fn result(&self, at: usize) -> i64 {
        if self.is_stopped(at) { 0 } else { self.exact[at] }
    }

    /// Whether output `at` was stopped.
    pub fn is_stopped(&self, at: usize) -> bool {
        self.steps[at] < self.all_steps
    }
}

/// Runs `layer` on images of `activations`, `[images, channels, height, width]`; `residual`, where there is one, is shaped as the output.
///
/// # Errors
///
/// Those of [`Layer::check_rule`], and [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the number of activations or
/// residuals does not fit.
pub fn run(
    layer: &Layer,
    encoding: Encoding,
    rule: Rule,
    thresholds: Option<&Thresholds>,
    activations: &[u8],
    residual: Option<&[i32]>,
) -> Result<Outcome> {
    layer.check_rule(encoding, rule, thresholds)?;
    let geometry = &layer.geometry;
    let per_image = geometry.channels * geometry.size[0] * geometry.size[1];
    let (positions, outputs, taps) = (geometry.positions(), geometry.outputs, geometry.taps());
    let images = activations.len() / per_image;
    let results = images * outputs * positions;
    if !activations.len().is_multiple_of(per_image) || residual.is_some_and(|r| r.len() != results) {
        return Err(Error::invalid(format!(
            "an image has {per_image} activations; {} of them and {} residuals are given",
            activations.len(),
            residual.map_or(0, <[i32]>::len)
        )));
    }
    let planes = encoding.planes(layer.bits);
    let all_steps = if rule == Rule::PositiveFirst { 2 * planes } else { planes };
    let one = |at: usize| {
        let (image, output, position) = (at / (outputs * positions), at / positions % outputs, at % positions);
        let group = output / (outputs / geometry.groups);
        let image = &activations[image * per_image..][..per_image];
        let window: Vec<i64> =
            (0..taps).map(|tap| geometry.under(group, position, tap).map_or(0, |place| i64::from(image[place]))).collect();
        let s1: i64 = window.iter().sum();
        let s2: i64 = window.iter().map(|a| a * a).sum();
        let q = &layer.q[output * taps..][..taps];
        let mean = (layer.mean_q16 * s1 + (1 << 15)) >> 16;
        let start = layer.bias[output] + mean + residual.map_or(0, |residual| i64::from(residual[at]));
        let exact = start + q.iter().zip(&window).map(|(&q, a)| i64::from(q) * a).sum::<i64>();
        let plane = |plane: u32, of: &dyn Fn(i32) -> bool| -> i64 {
            let sum: i64 =
                q.iter().zip(&window).filter(|(q, _)| of(**q)).map(|(&q, a)| i64::from(encoding.digit(q, layer.bits, plane)) * a).sum();
            sum * encoding.weight(layer.bits, plane)
        };
        let positive: i64 = q.iter().zip(&window).filter(|(q, _)| **q > 0).map(|(_, a)| a).sum();
        let pruned: i64 = q.iter().zip(&window).filter(|(q, _)| **q == 0).map(|(_, a)| a).sum();
        let mut partial = start + encoding.offset() * (s1 - pruned);
        for step in 1..all_steps {
            if rule == Rule::PositiveFirst {
                let at = step - 1;
                partial += if at < planes { plane(at, &|q| q > 0) } else { plane(at - planes, &|q| q < 0) };
            } else {
                partial += plane(step - 1, &|_| true);
            }
            let stops = match rule {
                Rule::None => false,
                Rule::PositiveFirst => step >= planes && partial <= 0,
                Rule::R0 if encoding == Encoding::Sign => partial + encoding.remainder(planes - step)[1] * positive <= 0,
                Rule::R0 | Rule::R1 { .. } => {
                    window_bound(rule, encoding, layer.bits, step, s1 as u64, s2 as u64).is_some_and(|bound| partial < bound)
                }
                Rule::R2 { .. } | Rule::R3 { .. } => {
                    let threshold = thresholds.and_then(|rows| rows[output][step as usize - 1]);
                    threshold.is_some_and(|threshold| partial < threshold)
                }
            };
            if stops {
                return (exact, step);
            }
        }
        (exact, all_steps)
    };
    let (exact, steps) = (0..results).into_par_iter().map(one).unzip();
    Ok(Outcome { exact, steps, all_steps })
}
