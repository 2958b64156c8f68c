//! Activations: elementwise ones and those along an axis.

use super::RefTensor;
use super::call::{Call, FLOATS, NUMERIC};
use super::cases::{Cases, edges, plain, splat, uniform};
use super::elementwise::{max, min};
use super::shape::resolve_axis;
use super::stats::rows_along;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, ReduceOp, TensorType, UnaryOp};
use kernels_gen::DType;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

/// Elementwise activations, by their ONNX names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// `max(x, 0)`; NaN stays NaN. Any numeric type.
    Relu,
    /// `1 / (1 + e^-x)`, without overflow.
    Sigmoid,
    /// `x * Phi(x)` by the error function.
    Gelu,
    /// `x * Phi(x)` by the hyperbolic tangent.
    GeluTanh,
    /// `x`, below 0 `alpha * x`.
    LeakyRelu {
        /// Slope below 0.
        alpha: f32,
    },
    /// `max(0, min(1, alpha * x + beta))`.
    HardSigmoid {
        /// Slope.
        alpha: f32,
        /// Value at 0.
        beta: f32,
    },
    /// `x * HardSigmoid(x)` with slope 1/6 and value 1/2.
    HardSwish,
    /// `x * Sigmoid(x)`.
    Silu,
    /// `x`, below 0 `alpha * (e^x - 1)`.
    Elu {
        /// Factor below 0.
        alpha: f32,
    },
    /// `gamma * Elu(x)`.
    Selu {
        /// Factor below 0.
        alpha: f32,
        /// Factor of all.
        gamma: f32,
    },
    /// `ln(1 + e^x)`, without overflow.
    Softplus,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `x`, below 0 `alpha * (e^(x / alpha) - 1)`.
    Celu {
        /// Factor below 0, and of what is raised.
        alpha: f32,
    },
    /// `x * tanh(softplus(x))`.
    Mish,
    /// `x` above `alpha`, else 0; NaN gives 0.
    ThresholdedRelu {
        /// The threshold.
        alpha: f32,
    },
    /// `x - bias` above `lambda`, `x + bias` below `-lambda`, else 0; NaN gives 0.
    Shrink {
        /// Distance moved towards 0.
        bias: f32,
        /// The threshold.
        lambda: f32,
    },
    /// `min(max(x, low), high)`; NaN stays NaN. Any numeric type.
    Clip {
        /// Smallest result.
        low: f64,
        /// Largest result.
        high: f64,
    },
}

impl Composite for Activation {
    fn name(&self) -> &'static str {
        match self {
            Activation::Relu => "Relu",
            Activation::Sigmoid => "Sigmoid",
            Activation::Gelu | Activation::GeluTanh => "Gelu",
            Activation::LeakyRelu { .. } => "LeakyRelu",
            Activation::HardSigmoid { .. } => "HardSigmoid",
            Activation::HardSwish => "HardSwish",
            Activation::Silu => "Silu",
            Activation::Elu { .. } => "Elu",
            Activation::Selu { .. } => "Selu",
            Activation::Softplus => "Softplus",
            Activation::Softsign => "Softsign",
            Activation::Celu { .. } => "Celu",
            Activation::Mish => "Mish",
            Activation::ThresholdedRelu { .. } => "ThresholdedRelu",
            Activation::Shrink { .. } => "Shrink",
            Activation::Clip { .. } => "Clip",
        }
    }

    fn attributes(&self) -> String {
        match self {
            Activation::GeluTanh => "tanh".to_string(),
            Activation::LeakyRelu { alpha }
            | Activation::Elu { alpha }
            | Activation::Celu { alpha }
            | Activation::ThresholdedRelu { alpha } => format!("alpha={alpha:?}"),
            Activation::Shrink { bias, lambda } => format!("bias={bias:?} lambda={lambda:?}"),
            Activation::HardSigmoid { alpha, beta } => format!("alpha={alpha:?} beta={beta:?}"),
            Activation::Selu { alpha, gamma } => format!("alpha={alpha:?} gamma={gamma:?}"),
            Activation::Clip { low, high } => format!("low={low:?} high={high:?}"),
            _ => String::new(),
        }
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x] = call.operands(["x"])?;
        let any = matches!(self, Activation::Relu | Activation::Clip { .. });
        call.dtype("x", x, if any { NUMERIC } else { FLOATS })?;
        Ok(x.clone())
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        use BinaryOp::{Add, Div, Lt, Max, Min, Mul};
        let &[x] = inputs else { return Err(Error::internal("an activation without one operand")) };
        let below_zero = |b: &mut GraphBuilder, then: NodeId| {
            let negative = b.binary_scalar(Lt, x, 0.0)?;
            b.select(negative, then, x)
        };
        match *self {
            Activation::Relu => b.binary_scalar(Max, x, 0.0),
            Activation::Sigmoid => sigmoid(b, x),
            Activation::Silu => {
                let s = sigmoid(b, x)?;
                b.binary(Mul, x, s)
            }
            Activation::Gelu => {
                let scaled = b.binary_scalar(Mul, x, FRAC_1_SQRT_2)?;
                let erf = b.unary(UnaryOp::Erf, scaled)?;
                gate(b, x, erf)
            }
            Activation::GeluTanh => {
                let square = b.binary(Mul, x, x)?;
                let factor = b.binary_scalar(Mul, square, GELU_CUBIC)?;
                let factor = b.binary_scalar(Add, factor, 1.0)?;
                let inner = b.binary(Mul, x, factor)?;
                let inner = b.binary_scalar(Mul, inner, FRAC_2_PI.sqrt())?;
                let tanh = b.unary(UnaryOp::Tanh, inner)?;
                gate(b, x, tanh)
            }
            Activation::LeakyRelu { alpha } => {
                let scaled = b.binary_scalar(Mul, x, alpha as f64)?;
                below_zero(b, scaled)
            }
            Activation::HardSigmoid { alpha, beta } => hard_sigmoid(b, x, alpha as f64, beta as f64),
            Activation::HardSwish => {
                let gate = hard_sigmoid(b, x, 1.0 / 6.0, 0.5)?;
                b.binary(Mul, x, gate)
            }
            Activation::Elu { alpha } => {
                let low = elu_below(b, x, alpha as f64)?;
                below_zero(b, low)
            }
            Activation::Selu { alpha, gamma } => {
                let low = elu_below(b, x, alpha as f64)?;
                let elu = below_zero(b, low)?;
                b.binary_scalar(Mul, elu, gamma as f64)
            }
            Activation::Softplus => softplus(b, x),
            Activation::Celu { alpha } => {
                let scaled = b.binary_scalar(Mul, x, 1.0 / alpha as f64)?;
                let low = elu_below(b, scaled, alpha as f64)?;
                below_zero(b, low)
            }
            Activation::Mish => {
                let soft = softplus(b, x)?;
                let tanh = b.unary(UnaryOp::Tanh, soft)?;
                b.binary(Mul, x, tanh)
            }
            Activation::ThresholdedRelu { alpha } => {
                let above = b.binary_scalar(BinaryOp::Gt, x, alpha as f64)?;
                let zero = b.splat_like(x, DType::F32, 0.0)?;
                b.select(above, x, zero)
            }
            Activation::Shrink { bias, lambda } => {
                let (above, below) = (b.binary_scalar(BinaryOp::Gt, x, lambda as f64)?, b.binary_scalar(Lt, x, -lambda as f64)?);
                let (less, more) = (b.binary_scalar(BinaryOp::Sub, x, bias as f64)?, b.binary_scalar(Add, x, bias as f64)?);
                let zero = b.splat_like(x, DType::F32, 0.0)?;
                let low = b.select(below, more, zero)?;
                b.select(above, less, low)
            }
            Activation::Softsign => {
                let abs = b.unary(UnaryOp::Abs, x)?;
                let denominator = b.binary_scalar(Add, abs, 1.0)?;
                b.binary(Div, x, denominator)
            }
            Activation::Clip { low, high } => {
                let dtype = b.ty(x).dtype;
                let mut result = x;
                if low > super::reduce_identity(ReduceOp::Max, dtype) {
                    result = b.binary_scalar(Max, result, low)?;
                }
                if high < super::reduce_identity(ReduceOp::Min, dtype) {
                    result = b.binary_scalar(Min, result, high)?;
                }
                Ok(result)
            }
        }
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let x = inputs[0];
        let elu = |x: f64, alpha: f32| if x < 0.0 { alpha as f64 * x.exp_m1() } else { x };
        let clip = |x: f64, low: f64, high: f64| min(max(x, low), high);
        let f = |x: f64| match *self {
            Activation::Relu => max(x, 0.0),
            Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Activation::Gelu => 0.5 * x * libm::erfc(-x * FRAC_1_SQRT_2),
            Activation::GeluTanh => 0.5 * x * (1.0 + (FRAC_2_PI.sqrt() * (x + GELU_CUBIC * x.powi(3))).tanh()),
            Activation::LeakyRelu { alpha } => {
                if x < 0.0 {
                    alpha as f64 * x
                } else {
                    x
                }
            }
            Activation::HardSigmoid { alpha, beta } => clip(alpha as f64 * x + beta as f64, 0.0, 1.0),
            Activation::HardSwish => x * clip(x / 6.0 + 0.5, 0.0, 1.0),
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::Elu { alpha } => elu(x, alpha),
            Activation::Selu { alpha, gamma } => gamma as f64 * elu(x, alpha),
            Activation::Softplus => softplus_value(x),
            Activation::Celu { alpha } if x < 0.0 => alpha as f64 * (x / alpha as f64).exp_m1(),
            Activation::Celu { .. } => x,
            Activation::Mish => x * softplus_value(x).tanh(),
            Activation::ThresholdedRelu { alpha } if x > alpha as f64 => x,
            Activation::ThresholdedRelu { .. } => 0.0,
            Activation::Shrink { bias, lambda } if x > lambda as f64 => x - bias as f64,
            Activation::Shrink { bias, lambda } if x < -lambda as f64 => x + bias as f64,
            Activation::Shrink { .. } => 0.0,
            Activation::Softsign => x / (1.0 + x.abs()),
            Activation::Clip { low, high } => clip(x, low, high),
        };
        Ok(x.map(x.dtype, f))
    }
}

/// Factor of the cubic term in the tanh form of GELU.
const GELU_CUBIC: f64 = 0.044715;

/// `x / 2 * (1 + y)`.
fn gate(b: &mut GraphBuilder, x: NodeId, y: NodeId) -> Result<NodeId> {
    let half = b.binary_scalar(BinaryOp::Mul, x, 0.5)?;
    let one_more = b.binary_scalar(BinaryOp::Add, y, 1.0)?;
    b.binary(BinaryOp::Mul, half, one_more)
}

/// `e^-|x|`, which never overflows.
fn exp_of_minus_abs(b: &mut GraphBuilder, x: NodeId) -> Result<NodeId> {
    let abs = b.unary(UnaryOp::Abs, x)?;
    let minus = b.unary(UnaryOp::Neg, abs)?;
    b.unary(UnaryOp::Exp, minus)
}

/// With `e = e^-|x|`: `1 / (1 + e)` above 0, `e / (1 + e)` below.
fn sigmoid(b: &mut GraphBuilder, x: NodeId) -> Result<NodeId> {
    let decayed = exp_of_minus_abs(b, x)?;
    let one = b.splat_like(x, b.ty(x).dtype, 1.0)?;
    let positive = b.binary_scalar(BinaryOp::Ge, x, 0.0)?;
    let numerator = b.select(positive, one, decayed)?;
    let denominator = b.binary(BinaryOp::Add, decayed, one)?;
    b.binary(BinaryOp::Div, numerator, denominator)
}

/// `max(x, 0) + ln(1 + e^-|x|)`.
fn softplus(b: &mut GraphBuilder, x: NodeId) -> Result<NodeId> {
    let decayed = exp_of_minus_abs(b, x)?;
    let one_more = b.binary_scalar(BinaryOp::Add, decayed, 1.0)?;
    let log = b.unary(UnaryOp::Log, one_more)?;
    let positive = b.binary_scalar(BinaryOp::Max, x, 0.0)?;
    b.binary(BinaryOp::Add, positive, log)
}

/// `ln(1 + e^x)` by its definition; past 30 the 1 is lost.
fn softplus_value(x: f64) -> f64 {
    if x > 30.0 { x } else { x.exp().ln_1p() }
}

fn hard_sigmoid(b: &mut GraphBuilder, x: NodeId, alpha: f64, beta: f64) -> Result<NodeId> {
    let line = b.binary_scalar(BinaryOp::Mul, x, alpha)?;
    let line = b.binary_scalar(BinaryOp::Add, line, beta)?;
    let above = b.binary_scalar(BinaryOp::Max, line, 0.0)?;
    b.binary_scalar(BinaryOp::Min, above, 1.0)
}

/// `alpha * (e^min(x, 0) - 1)`.
fn elu_below(b: &mut GraphBuilder, x: NodeId, alpha: f64) -> Result<NodeId> {
    let low = b.binary_scalar(BinaryOp::Min, x, 0.0)?;
    let exp = b.unary(UnaryOp::Exp, low)?;
    let minus_one = b.binary_scalar(BinaryOp::Sub, exp, 1.0)?;
    b.binary_scalar(BinaryOp::Mul, minus_one, alpha)
}

/// Exponentials that sum to 1 along an axis, or their logarithms. A row of -infinity is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Softmax {
    /// The axis.
    pub axis: usize,
    /// Whether the logarithm is taken.
    pub log: bool,
}

impl Composite for Softmax {
    fn name(&self) -> &'static str {
        if self.log { "LogSoftmax" } else { "Softmax" }
    }

    fn attributes(&self) -> String {
        format!("axis={}", self.axis)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x] = call.operands(["x"])?;
        call.dtype("x", x, FLOATS)?;
        if self.axis >= x.rank() {
            return Err(call.misfit(format_args!("axis {} must be below the rank {}", self.axis, x.rank())));
        }
        Ok(x.clone())
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x] = inputs else { return Err(Error::internal("a softmax without one operand")) };
        let largest = b.reduce(ReduceOp::Max, x, &[self.axis], true)?;
        let shifted = b.binary(BinaryOp::Sub, x, largest)?;
        let exp = b.unary(UnaryOp::Exp, shifted)?;
        let sum = b.reduce(ReduceOp::Sum, exp, &[self.axis], true)?;
        if self.log {
            let log = b.unary(UnaryOp::Log, sum)?;
            return b.binary(BinaryOp::Sub, shifted, log);
        }
        b.binary(BinaryOp::Div, exp, sum)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let x = inputs[0];
        let inner: usize = x.shape[self.axis + 1..].iter().product();
        let size = x.shape[self.axis];
        let rows = rows_along(x, &[self.axis]);
        // A shift does not change the value, and keeps f64 from overflowing; the largest element of a row with NaN does not matter.
        let tops: Vec<f64> = rows.iter().map(|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max)).collect();
        let sums: Vec<f64> = rows.iter().zip(&tops).map(|(row, top)| row.iter().map(|v| (v - top).exp()).sum()).collect();
        let element = |(i, v): (usize, &f64)| {
            let row = i / (inner * size) * inner + i % inner;
            if self.log { v - tops[row] - sums[row].ln() } else { (v - tops[row]).exp() / sums[row] }
        };
        RefTensor::new(x.dtype, x.shape.clone(), x.data.iter().enumerate().map(element).collect())
    }
}

/// Activations.
pub trait ActivationOps: Value {
    /// An elementwise activation.
    fn activation(&self, activation: Activation) -> Result<Self> {
        Self::apply(Op::composite(activation), &[self])
    }

    /// `max(x, 0)`.
    fn relu(&self) -> Result<Self> {
        self.activation(Activation::Relu)
    }

    /// `1 / (1 + e^-x)`.
    fn sigmoid(&self) -> Result<Self> {
        self.activation(Activation::Sigmoid)
    }

    /// `x * Phi(x)` by the error function.
    fn gelu(&self) -> Result<Self> {
        self.activation(Activation::Gelu)
    }

    /// `x * sigmoid(x)`.
    fn silu(&self) -> Result<Self> {
        self.activation(Activation::Silu)
    }

    /// `min(max(x, low), high)`.
    fn clip(&self, low: f64, high: f64) -> Result<Self> {
        self.activation(Activation::Clip { low, high })
    }

    /// Exponentials that sum to 1 along `axis`; negative counts from the end.
    fn softmax(&self, axis: i64) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        Self::apply(Op::composite(Softmax { axis, log: false }), &[self])
    }

    /// Logarithm of the softmax along `axis`.
    fn log_softmax(&self, axis: i64) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        Self::apply(Op::composite(Softmax { axis, log: true }), &[self])
    }
}

impl<V: Value> ActivationOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    use Activation::*;
    let close = Tolerance::Relative { relative: 2e-5, absolute: 2e-6 };
    let exact = Tolerance::Exact;
    for (activation, tolerance) in [
        (Relu, exact),
        (Sigmoid, close),
        (Gelu, close),
        (GeluTanh, close),
        (LeakyRelu { alpha: 0.01 }, close),
        (HardSigmoid { alpha: 0.2, beta: 0.5 }, close),
        (HardSwish, close),
        (Silu, close),
        (Elu { alpha: 1.5 }, close),
        (Selu { alpha: 1.673_263_2, gamma: 1.050_701 }, close),
        (Softplus, close),
        (Softsign, close),
        (Celu { alpha: 0.7 }, close),
        (Mish, close),
        (ThresholdedRelu { alpha: 0.5 }, exact),
        (Shrink { bias: 0.25, lambda: 0.5 }, close),
        (Clip { low: -0.5, high: 0.75 }, exact),
    ] {
        for shape in [&[] as &[usize], &[0], &[257], &[3, 5]] {
            cases.add(Op::composite(activation), tolerance, vec![uniform(DType::F32, shape, -4.0, 4.0)]);
        }
        // Nothing overflows on the way to a finite value.
        for value in [500.0, -500.0, f64::NAN] {
            cases.add(Op::composite(activation), tolerance, vec![splat(DType::F32, &[5], value)]);
        }
    }
    for activation in [Relu, Clip { low: 0.0, high: 6.0 }, Clip { low: f64::NEG_INFINITY, high: 1.0 }] {
        cases.add(Op::composite(activation), exact, vec![edges(DType::F32, &[23])]);
    }
    for &dtype in NUMERIC.iter().filter(|d| d.is_int()) {
        cases.add(Op::composite(Relu), exact, vec![edges(dtype, &[23])]);
        cases.add(Op::composite(Clip { low: 1.0, high: 5.0 }), exact, vec![plain(dtype, &[257])]);
    }
    for log in [false, true] {
        let softmax = |axis| Op::composite(Softmax { axis, log });
        let tolerance = Tolerance::Relative { relative: 5e-5, absolute: if log { 1e-5 } else { 1e-7 } };
        for (shape, axis) in
            [(&[7usize] as &[usize], 0), (&[5, 257], 1), (&[257, 5], 0), (&[3, 5, 7], 1), (&[3, 1], 1), (&[0, 5], 1), (&[3, 0], 1)]
        {
            cases.add(softmax(axis), tolerance, vec![uniform(DType::F32, shape, -8.0, 8.0)]);
        }
        cases.add(softmax(1), tolerance, vec![uniform(DType::F32, &[9, 31], -8.0, 8.0).reversed()]);
        for (shape, axis) in [(&[9usize, 31] as &[usize], 1), (&[5, 256], 1), (&[6, 8], 0)] {
            cases.add(softmax(axis), tolerance, vec![uniform(DType::F16, shape, -8.0, 8.0)]);
        }
        for value in [1000.0, -1000.0, f64::NEG_INFINITY, f64::NAN] {
            cases.add(softmax(1), tolerance, vec![splat(DType::F32, &[2, 5], value)]);
        }
    }
}
