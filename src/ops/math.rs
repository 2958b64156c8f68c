//! Elementary functions made of the primitive ones.

use super::RefTensor;
use super::call::{Call, FLOATS};
use super::cases::{Cases, edges, splat, uniform};
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, TensorType, UnaryOp};
use kernels_gen::DType;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2};

/// Elementary functions of f32, by their ONNX names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Math {
    /// Tangent.
    Tan,
    /// Arc sine; NaN outside -1 to 1.
    Asin,
    /// Arc cosine; NaN outside -1 to 1.
    Acos,
    /// Arc tangent.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Inverse of the hyperbolic sine.
    Asinh,
    /// Inverse of the hyperbolic cosine; NaN below 1.
    Acosh,
    /// Inverse of the hyperbolic tangent; NaN outside -1 to 1.
    Atanh,
    /// Whether the element is infinite (Bool).
    IsInf {
        /// Whether minus infinity counts.
        negative: bool,
        /// Whether plus infinity counts.
        positive: bool,
    },
}

impl Composite for Math {
    fn name(&self) -> &'static str {
        match self {
            Math::Tan => "Tan",
            Math::Asin => "Asin",
            Math::Acos => "Acos",
            Math::Atan => "Atan",
            Math::Sinh => "Sinh",
            Math::Cosh => "Cosh",
            Math::Asinh => "Asinh",
            Math::Acosh => "Acosh",
            Math::Atanh => "Atanh",
            Math::IsInf { .. } => "IsInf",
        }
    }

    fn attributes(&self) -> String {
        match self {
            Math::IsInf { negative, positive } => format!("negative={negative} positive={positive}"),
            _ => String::new(),
        }
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x] = call.operands(["x"])?;
        call.dtype("x", x, FLOATS)?;
        let dtype = if matches!(self, Math::IsInf { .. }) { DType::Bool } else { x.dtype };
        Ok(TensorType::new(dtype, x.shape.clone()))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        use BinaryOp::{Add, Div, Eq, Ge, Gt, Lt, Mul, Sub};
        let &[x] = inputs else { return Err(Error::internal("a function without one operand")) };
        match *self {
            Math::Tan => {
                let (sin, cos) = (b.unary(UnaryOp::Sin, x)?, b.unary(UnaryOp::Cos, x)?);
                b.binary(Div, sin, cos)
            }
            Math::Asin => arc_sine(b, x),
            Math::Acos => {
                let sine = arc_sine(b, x)?;
                let quarter = b.splat_like(x, DType::F32, FRAC_PI_2)?;
                b.binary(Sub, quarter, sine)
            }
            Math::Atan => arc_tangent(b, x),
            Math::Sinh => {
                let (up, down) = exponentials(b, x)?;
                let large = b.binary(Sub, up, down)?;
                // Near 0 the two halves cancel; the series does not.
                let square = b.binary(Mul, x, x)?;
                let series = polynomial(b, square, &[1.0 / 362_880.0, 1.0 / 5040.0, 1.0 / 120.0, 1.0 / 6.0, 1.0])?;
                let small = b.binary(Mul, series, x)?;
                let abs = b.unary(UnaryOp::Abs, x)?;
                let near = b.binary_scalar(Lt, abs, 1.0)?;
                b.select(near, small, large)
            }
            Math::Cosh => {
                let (up, down) = exponentials(b, x)?;
                b.binary(Add, up, down)
            }
            Math::Asinh => {
                // ln(a + sqrt(a^2 + 1)) = ln(1 + (a + a^2 / (1 + sqrt(a^2 + 1)))) for a = |x|.
                let a = b.unary(UnaryOp::Abs, x)?;
                let square = b.binary(Mul, a, a)?;
                let more = b.binary_scalar(Add, square, 1.0)?;
                let root = b.unary(UnaryOp::Sqrt, more)?;
                let root = b.binary_scalar(Add, root, 1.0)?;
                let part = b.binary(Div, square, root)?;
                let part = b.binary(Add, a, part)?;
                let near = b.binary_scalar(Add, part, 1.0)?;
                let near = b.unary(UnaryOp::Log, near)?;
                let log = log_of_double(b, a, near)?;
                let minus = b.unary(UnaryOp::Neg, log)?;
                let negative = b.binary_scalar(Lt, x, 0.0)?;
                b.select(negative, minus, log)
            }
            Math::Acosh => {
                let square = b.binary(Mul, x, x)?;
                let less = b.binary_scalar(Sub, square, 1.0)?;
                let root = b.unary(UnaryOp::Sqrt, less)?;
                let sum = b.binary(Add, x, root)?;
                let near = b.unary(UnaryOp::Log, sum)?;
                let result = log_of_double(b, x, near)?;
                let inside = b.binary_scalar(Ge, x, 1.0)?;
                or_nan(b, inside, result)
            }
            Math::Atanh => {
                let ones = b.splat_like(x, DType::F32, 1.0)?;
                let (above, below) = (b.binary(Add, ones, x)?, b.binary(Sub, ones, x)?);
                let ratio = b.binary(Div, above, below)?;
                let log = b.unary(UnaryOp::Log, ratio)?;
                let half = b.binary_scalar(Mul, log, 0.5)?;
                let abs = b.unary(UnaryOp::Abs, x)?;
                let sign = b.unary(UnaryOp::Sign, x)?;
                let infinity = b.binary_scalar(Mul, sign, f64::INFINITY)?;
                let edge = b.binary_scalar(Eq, abs, 1.0)?;
                let result = b.select(edge, infinity, half)?;
                let inside = b.binary_scalar(BinaryOp::Le, abs, 1.0)?;
                or_nan(b, inside, result)
            }
            Math::IsInf { negative, positive } => match (negative, positive) {
                (true, true) => {
                    let abs = b.unary(UnaryOp::Abs, x)?;
                    b.binary_scalar(Eq, abs, f64::INFINITY)
                }
                (true, false) => b.binary_scalar(Eq, x, f64::NEG_INFINITY),
                (false, true) => b.binary_scalar(Eq, x, f64::INFINITY),
                (false, false) => b.binary_scalar(Gt, x, f64::INFINITY),
            },
        }
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let dtype = if matches!(self, Math::IsInf { .. }) { DType::Bool } else { inputs[0].dtype };
        Ok(inputs[0].map(dtype, |x| match *self {
            Math::Tan => x.tan(),
            Math::Asin => x.asin(),
            Math::Acos => x.acos(),
            Math::Atan => x.atan(),
            Math::Sinh => x.sinh(),
            Math::Cosh => x.cosh(),
            Math::Asinh => x.asinh(),
            Math::Acosh => x.acosh(),
            Math::Atanh => x.atanh(),
            Math::IsInf { negative, positive } => f64::from(u8::from(negative && x == f64::NEG_INFINITY || positive && x == f64::INFINITY)),
        }))
    }
}

/// `result` where `inside` holds, else NaN: drivers do not agree on roots and logarithms of negative numbers.
fn or_nan(b: &mut GraphBuilder, inside: NodeId, result: NodeId) -> Result<NodeId> {
    let nan = b.splat_like(result, DType::F32, f64::NAN)?;
    b.select(inside, result, nan)
}

/// `c[0] * x^n + c[1] * x^(n-1) + ...`.
fn polynomial(b: &mut GraphBuilder, x: NodeId, coefficients: &[f64]) -> Result<NodeId> {
    let mut sum = b.splat_like(x, DType::F32, coefficients.first().copied().unwrap_or(0.0))?;
    for &c in coefficients.iter().skip(1) {
        sum = b.binary(BinaryOp::Mul, sum, x)?;
        sum = b.binary_scalar(BinaryOp::Add, sum, c)?;
    }
    Ok(sum)
}

/// `e^x / 2` and `e^-x / 2`, as `(e^(x/2) / 2) * e^(x/2)` so that nothing overflows before the result does.
fn exponentials(b: &mut GraphBuilder, x: NodeId) -> Result<(NodeId, NodeId)> {
    let half = b.binary_scalar(BinaryOp::Mul, x, 0.5)?;
    let minus = b.unary(UnaryOp::Neg, half)?;
    let mut one = |x: NodeId| {
        let root = b.unary(UnaryOp::Exp, x)?;
        let scaled = b.binary_scalar(BinaryOp::Mul, root, 0.5)?;
        b.binary(BinaryOp::Mul, scaled, root)
    };
    Ok((one(half)?, one(minus)?))
}

/// `near`, or for large `a`, whose square overflows, `ln(2 a)`.
fn log_of_double(b: &mut GraphBuilder, a: NodeId, near: NodeId) -> Result<NodeId> {
    let log = b.unary(UnaryOp::Log, a)?;
    let far = b.binary_scalar(BinaryOp::Add, log, LN_2)?;
    let large = b.binary_scalar(BinaryOp::Gt, a, 1e8)?;
    b.select(large, far, near)
}

/// The arc tangent: arguments above `tan(pi / 8)` are turned by an eighth, those above `tan(3 pi / 8)` by a quarter of the circle, and what
/// is left is small enough for a polynomial.
fn arc_tangent(b: &mut GraphBuilder, x: NodeId) -> Result<NodeId> {
    use BinaryOp::{Add, Div, Gt, Lt, Mul};
    let a = b.unary(UnaryOp::Abs, x)?;
    let far = b.binary_scalar(Gt, a, 2.414_213_562_373_095)?;
    let middle = b.binary_scalar(Gt, a, 0.414_213_562_373_095_03)?;
    let minus_one = b.splat_like(x, DType::F32, -1.0)?;
    let one = b.splat_like(x, DType::F32, 1.0)?;
    let (less, more) = (b.binary_scalar(Add, a, -1.0)?, b.binary_scalar(Add, a, 1.0)?);
    let numerator = b.select(middle, less, a)?;
    let numerator = b.select(far, minus_one, numerator)?;
    let denominator = b.select(middle, more, one)?;
    let denominator = b.select(far, a, denominator)?;
    let t = b.binary(Div, numerator, denominator)?;
    let square = b.binary(Mul, t, t)?;
    // The odd series of the arc tangent, its last terms fitted to |t| up to tan(pi / 8).
    let series = polynomial(b, square, &[0.080_537_444_9, -0.138_776_856, 0.199_777_106, -0.333_329_491])?;
    let series = b.binary(Mul, series, square)?;
    let series = b.binary(Mul, series, t)?;
    let rest = b.binary(Add, series, t)?;
    let zero = b.splat_like(x, DType::F32, 0.0)?;
    let eighth = b.splat_like(x, DType::F32, FRAC_PI_4)?;
    let quarter = b.splat_like(x, DType::F32, FRAC_PI_2)?;
    let turned = b.select(middle, eighth, zero)?;
    let turned = b.select(far, quarter, turned)?;
    let angle = b.binary(Add, turned, rest)?;
    let minus = b.unary(UnaryOp::Neg, angle)?;
    let negative = b.binary_scalar(Lt, x, 0.0)?;
    b.select(negative, minus, angle)
}

/// `asin(x) = 2 atan(x / (1 + sqrt(1 - x^2)))`.
fn arc_sine(b: &mut GraphBuilder, x: NodeId) -> Result<NodeId> {
    use BinaryOp::{Add, Div, Le, Mul, Sub};
    let ones = b.splat_like(x, DType::F32, 1.0)?;
    let (less, more) = (b.binary(Sub, ones, x)?, b.binary(Add, ones, x)?);
    let product = b.binary(Mul, less, more)?;
    let root = b.unary(UnaryOp::Sqrt, product)?;
    let root = b.binary(Add, root, ones)?;
    let ratio = b.binary(Div, x, root)?;
    let half = arc_tangent(b, ratio)?;
    let angle = b.binary_scalar(Mul, half, 2.0)?;
    let abs = b.unary(UnaryOp::Abs, x)?;
    let inside = b.binary_scalar(Le, abs, 1.0)?;
    or_nan(b, inside, angle)
}

/// Elementary functions.
pub trait MathOps: Value {
    /// An elementary function.
    fn math(&self, function: Math) -> Result<Self> {
        Self::apply(Op::composite(function), &[self])
    }

    /// Whether each element is infinite.
    fn is_inf(&self) -> Result<Self> {
        self.math(Math::IsInf { negative: true, positive: true })
    }
}

impl<V: Value> MathOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let close = Tolerance::Relative { relative: 2e-5, absolute: 2e-6 };
    for (function, low, high, tolerance) in [
        // Drivers compute sine and cosine to an absolute error only.
        (Math::Tan, -1.2, 1.2, Tolerance::Relative { relative: 2e-3, absolute: 1e-3 }),
        (Math::Asin, -1.0, 1.0, close),
        (Math::Acos, -1.0, 1.0, close),
        (Math::Atan, -9.0, 9.0, close),
        (Math::Sinh, -5.0, 5.0, close),
        (Math::Cosh, -5.0, 5.0, close),
        (Math::Asinh, -9.0, 9.0, close),
        (Math::Acosh, 1.0, 9.0, Tolerance::Relative { relative: 2e-5, absolute: 1e-3 }),
        (Math::Atanh, -0.95, 0.95, close),
    ] {
        for shape in [&[] as &[usize], &[0], &[257], &[3, 5]] {
            cases.add(Op::composite(function), tolerance, vec![uniform(DType::F32, shape, low, high)]);
        }
    }
    // Ends of the domains, and nothing that overflows on the way to a finite value.
    for (function, values) in [
        (Math::Asin, &[1.0, -1.0, 1.5, f64::NAN] as &[f64]),
        (Math::Acos, &[1.0, -1.0, -1.5, f64::NAN]),
        (Math::Atan, &[1e30, -1e30, 1e-20, f64::NAN]),
        (Math::Sinh, &[89.0, -89.0, 1e-5]),
        (Math::Cosh, &[89.0, -89.0]),
        (Math::Asinh, &[1e30, -1e30, 1e-5]),
        (Math::Acosh, &[1e30, 0.5]),
        (Math::Atanh, &[1.5, -1.5, f64::NAN]),
    ] {
        for &value in values {
            cases.add(Op::composite(function), close, vec![splat(DType::F32, &[5], value)]);
        }
    }
    for (negative, positive) in [(true, true), (true, false), (false, true), (false, false)] {
        cases.add(Op::composite(Math::IsInf { negative, positive }), Tolerance::Exact, vec![edges(DType::F32, &[23])]);
    }
}
