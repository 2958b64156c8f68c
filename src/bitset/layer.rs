//! A layer in integers: its shape, its weights, what is added, and whether its sums fit.

use crate::bitset::encoding::{Encoding, largest};
use crate::bitset::quantise::check_bits;
use crate::bitset::rule::{Rule, z2};
use crate::error::{Error, Result};

/// The largest activation.
pub const MAX_ACTIVATION: u32 = 255;

/// Most taps of an output: the squares of their activations add up within 32 bits.
pub const MAX_TAPS: usize = 1 << 16;

/// No residual may be further from 0 than this, in units of the layer.
pub const MAX_RESIDUAL: u64 = 1 << 28;

/// Shape of a convolution on two spatial dimensions, or of a fully connected layer, which is one of 1 x 1 on 1 x 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Channels of the input.
    pub channels: usize,
    /// Height and width of the input.
    pub size: [usize; 2],
    /// Channels of the output.
    pub outputs: usize,
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Strides.
    pub strides: [usize; 2],
    /// Zeros before, along height and width.
    pub pads_low: [usize; 2],
    /// Zeros after.
    pub pads_high: [usize; 2],
    /// Dilations.
    pub dilations: [usize; 2],
    /// Groups.
    pub groups: usize,
}

impl Geometry {
    /// A fully connected layer.
    pub const fn full(inputs: usize, outputs: usize) -> Self {
        Geometry {
            channels: inputs,
            size: [1; 2],
            outputs,
            kernel: [1; 2],
            strides: [1; 2],
            pads_low: [0; 2],
            pads_high: [0; 2],
            dilations: [1; 2],
            groups: 1,
        }
    }

    /// Height and width of the output.
    pub fn out_size(&self) -> [usize; 2] {
        std::array::from_fn(|d| {
            let padded = self.size[d] + self.pads_low[d] + self.pads_high[d];
            let covered = self.dilations[d] * (self.kernel[d].max(1) - 1) + 1;
            padded.checked_sub(covered).map_or(0, |rest| rest / self.strides[d].max(1) + 1)
        })
    }

    /// Outputs of one channel.
    pub fn positions(&self) -> usize {
        self.out_size().iter().product()
    }

    /// Activations that an output is the weighted sum of, padding included.
    pub fn taps(&self) -> usize {
        self.channels / self.groups.max(1) * self.kernel[0] * self.kernel[1]
    }

    /// Products of one image.
    pub fn macs(&self) -> u64 {
        self.taps() as u64 * self.positions() as u64 * self.outputs as u64
    }

    /// Place of the activation in an image under tap `tap` of an output of `group` at position `position`; `None` in the padding.
    pub fn under(&self, group: usize, position: usize, tap: usize) -> Option<usize> {
        let width = self.out_size()[1];
        let out = [position / width, position % width];
        let area = self.kernel[0] * self.kernel[1];
        let at = [tap % area / self.kernel[1], tap % self.kernel[1]];
        let place =
            |d: usize| (out[d] * self.strides[d] + at[d] * self.dilations[d]).checked_sub(self.pads_low[d]).filter(|&p| p < self.size[d]);
        let channel = group * (self.channels / self.groups) + tap / area;
        Some((channel * self.size[0] + place(0)?) * self.size[1] + place(1)?)
    }

    fn check(&self) -> Result<()> {
        let zero = [self.channels, self.outputs, self.groups]
            .iter()
            .chain(&self.kernel)
            .chain(&self.strides)
            .chain(&self.dilations)
            .any(|&n| n == 0);
        if zero || !self.channels.is_multiple_of(self.groups) || !self.outputs.is_multiple_of(self.groups) {
            return Err(Error::invalid(format!(
                "{self:?}: sizes, strides and dilations must not be 0, and the groups must divide the channels of input and output"
            )));
        }
        if self.positions() == 0 {
            return Err(Error::invalid(format!("{self:?}: the kernel does not fit into the padded input, so there is no output")));
        }
        if self.taps() > MAX_TAPS {
            return Err(Error::limit(format!("an output has {} taps, at most {MAX_TAPS} are allowed; split the layer", self.taps())));
        }
        Ok(())
    }
}

/// A layer in integers. In units of weight scale times activation scale an output is
/// `sum of q * a + (mean_q16 * (sum of a) + 2^15 >> 16) + bias + residual`.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Shape.
    pub geometry: Geometry,
    /// Digits of a weight.
    pub bits: u32,
    /// Weights on the odd grid, `[outputs, channels / groups, kernel height, kernel width]`; pruned ones are 0.
    pub q: Vec<i32>,
    /// What is added to the outputs of each channel.
    pub bias: Vec<i64>,
    /// What is added to every weight, in 16 binary places of the grid's unit.
    pub mean_q16: i64,
}

/// Thresholds of R2 and R3: `[outputs][planes done]`, of which the first is for one plane; a partial sum below it stops the output. `None`: that
/// plane is not asked.
pub type Thresholds = Vec<Vec<Option<i64>>>;

impl Layer {
    /// Checks what the rest relies on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for shapes that do not fit, bits out of range, and weights off the grid;
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) past 65,536 taps and for a mean or a bias that 64-bit sums do not hold.
    pub fn check(&self) -> Result<()> {
        check_bits(self.bits)?;
        self.geometry.check()?;
        let (weights, outputs) = (self.geometry.taps() * self.geometry.outputs, self.geometry.outputs);
        if self.q.len() != weights || self.bias.len() != outputs {
            return Err(Error::invalid(format!(
                "the layer has {weights} weights and {outputs} output channels; {} weights and {} biases are given",
                self.q.len(),
                self.bias.len()
            )));
        }
        if let Some(q) = self.q.iter().find(|q| (**q % 2 == 0 && **q != 0) || q.unsigned_abs() > largest(self.bits) as u32) {
            return Err(Error::invalid(format!("weight {q} is not on the odd grid of {} bits", self.bits)));
        }
        if self.is_pruned() && self.mean_q16 != 0 {
            return Err(Error::invalid("a layer with pruned weights has the mean 0, which is not added to them"));
        }
        if self.mean_q16.unsigned_abs() > u64::from(u32::MAX >> 1) {
            return Err(Error::limit(format!(
                "the mean of the weights is {:.0} steps of their grid, at most 32,767 are allowed",
                self.mean_q16 as f64 / 65_536.0
            )));
        }
        if let Some(bias) = self.bias.iter().find(|bias| bias.unsigned_abs() >= 1 << 60) {
            return Err(Error::limit(format!("a bias is {bias} units, fewer than 2^60 are allowed")));
        }
        Ok(())
    }

    /// Whether some weights are 0, off the odd grid.
    pub fn is_pruned(&self) -> bool {
        self.q.contains(&0)
    }

    /// Checks the layer with a rule: the pair is valid, thresholds are there where the rule needs them, and R1's product of 64 bits holds.
    ///
    /// # Errors
    ///
    /// As [`Layer::check`], and [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) naming what does not go together.
    pub fn check_rule(&self, encoding: Encoding, rule: Rule, thresholds: Option<&Thresholds>) -> Result<()> {
        self.check()?;
        rule.check(encoding, self.bits)?;
        let planes = encoding.planes(self.bits) as usize;
        match (rule.is_calibrated(), thresholds) {
            (false, None) => {}
            (true, Some(rows)) => {
                if rows.len() != self.geometry.outputs || rows.iter().any(|row| row.len() != planes - 1) {
                    return Err(Error::invalid(format!(
                        "rule `{rule}` takes thresholds for {} output channels and {} planes each; other numbers are given",
                        self.geometry.outputs,
                        planes - 1
                    )));
                }
            }
            (true, None) => return Err(Error::invalid(format!("rule `{rule}` needs thresholds from calibration; none are given"))),
            (false, Some(_)) => return Err(Error::invalid(format!("rule `{rule}` takes no thresholds, some are given"))),
        }
        if let Rule::R1 { z } = rule {
            let squares = self.geometry.taps() as u128 * u128::from(MAX_ACTIVATION * MAX_ACTIVATION);
            let most = u128::from(z2(z)) * squares * ((1u128 << (2 * (self.bits - 1))) - 1) / 3;
            if most > u128::from(u64::MAX) {
                return Err(Error::limit(format!(
                    "rule `{rule}` with {} taps and {} bits passes 64 bits; give fewer standard deviations or fewer bits",
                    self.geometry.taps(),
                    self.bits
                )));
            }
        }
        Ok(())
    }

    /// No output or partial sum is further from 0 than this, if no residual is further than `residual`.
    pub fn most(&self, residual: u64) -> u128 {
        let activations = self.geometry.taps() as u128 * u128::from(MAX_ACTIVATION);
        let mean = ((activations * u128::from(self.mean_q16.unsigned_abs())) >> 16) + 1;
        let bias = self.bias.iter().map(|bias| bias.unsigned_abs()).max().unwrap_or(0);
        // Signed digits reach a third above the grid's largest.
        (activations << (self.bits + 1)) + mean + u128::from(bias) + u128::from(residual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::bitset::cases::random_layer as random;
    use kernels_gen::threefry::Key;

    #[test]
    fn windows_are_those_of_convolutions() {
        let geometry = Geometry {
            channels: 4,
            size: [5, 6],
            outputs: 2,
            kernel: [3, 2],
            strides: [2, 1],
            pads_low: [1, 0],
            pads_high: [1, 1],
            dilations: [1, 2],
            groups: 2,
        };
        assert_eq!((geometry.out_size(), geometry.taps(), geometry.macs()), ([3, 5], 12, 360));
        // Output (1, 2), group 1, channel 1 of it, kernel (2, 1): row 2 - 1 + 2, column 2 + 2.
        assert_eq!(geometry.under(1, 7, 6 + 5), Some((3 * 5 + 3) * 6 + 4));
        assert_eq!(geometry.under(0, 0, 0), None, "above the image");
        assert_eq!(geometry.under(0, 4, 5), None, "right of the image");
        assert_eq!(Geometry::full(9, 3).taps(), 9);
    }

    #[test]
    fn wrong_layers_are_refused() {
        let geometry = Geometry::full(9, 3);
        let good = random(geometry, 4, Key::new(1));
        good.check().expect("is right");
        let refused = |layer: Layer, part: &str| {
            let error = layer.check().expect_err(part);
            assert!(error.to_string().contains(part), "{error}");
            error.kind()
        };
        refused(Layer { bits: 1, ..good.clone() }, "2 to 16");
        refused(Layer { bits: 17, ..good.clone() }, "2 to 16");
        refused(Layer { q: vec![2; 27], ..good.clone() }, "odd grid");
        refused(Layer { q: vec![17; 27], ..good.clone() }, "odd grid");
        refused(Layer { bias: vec![0; 2], ..good.clone() }, "2 biases");
        refused(Layer { geometry: Geometry { groups: 2, ..geometry }, ..good.clone() }, "divide");
        refused(Layer { geometry: Geometry { kernel: [2, 1], ..geometry }, ..good.clone() }, "no output");
        let mut pruned = Layer { mean_q16: 0, ..good.clone() };
        pruned.q[5] = 0;
        pruned.check().expect("is right");
        refused(Layer { mean_q16: 1, ..pruned }, "pruned");
        let mean = Layer { mean_q16: 1 << 31, ..good.clone() };
        assert_eq!(refused(mean, "mean of the weights"), ErrorKind::Limit);
        let many = Layer { geometry: Geometry::full(MAX_TAPS + 1, 1), q: vec![1; MAX_TAPS + 1], bias: vec![0], ..good.clone() };
        assert_eq!(refused(many, "taps"), ErrorKind::Limit);

        let rule = |rule, encoding, thresholds: Option<&Thresholds>| good.check_rule(encoding, rule, thresholds).map_err(|e| e.to_string());
        let right: Thresholds = vec![vec![Some(-5); 3]; 3];
        let r2 = Rule::R2 { budget: 0.1 };
        rule(r2, Encoding::Pm1, Some(&right)).expect("is right");
        assert!(rule(r2, Encoding::Csd, Some(&right)).expect_err("one plane more").contains("4 planes"));
        assert!(rule(r2, Encoding::Pm1, None).expect_err("missing").contains("needs thresholds"));
        assert!(rule(Rule::R0, Encoding::Pm1, Some(&right)).expect_err("too much").contains("takes no"));
        assert!(rule(Rule::PositiveFirst, Encoding::Twos, None).expect_err("no pair").contains("sign"));
        let wide = random(Geometry::full(4_096, 1), 10, Key::new(2));
        let error = wide.check_rule(Encoding::Pm1, Rule::R1 { z: 100.0 }, None).expect_err("past 64 bits");
        assert_eq!(error.kind(), ErrorKind::Limit);
    }
}
