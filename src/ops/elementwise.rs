//! Operations that act element by element: unary, binary, select and cast.

use super::RefTensor;
use super::call::{BITS, Call, FLOATS, INTEGERS, NUMERIC, SIGNED};
use super::cases::{Cases, InputSpec, SHAPES, edges, floats, plain, splat, uniform};
use super::formats;
use super::shape::ShapeOps;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::Result;
use crate::graph::{BinaryOp, Op, Prim, TensorType, UnaryOp};
use kernels_gen::DType;

pub(super) fn infer_unary(call: &Call, op: UnaryOp) -> Result<TensorType> {
    use UnaryOp::*;
    let [x] = call.operands(["x"])?;
    let allowed = match op {
        Neg => SIGNED,
        Abs | Sign => NUMERIC,
        Exp | Log | Sqrt | Sin | Cos | Tanh | Erf | Floor | Ceil | Round | IsNan => FLOATS,
        Not => BITS,
        Decode(_) | Encode(..) | Bits | FromBits => return formats::infer_unary(call, op, x),
    };
    call.dtype("x", x, allowed)?;
    Ok(if op == IsNan { TensorType::new(DType::Bool, x.shape.clone()) } else { x.clone() })
}

pub(super) fn infer_binary(call: &Call, op: BinaryOp) -> Result<TensorType> {
    use BinaryOp::*;
    if matches!(op, EncodeStochastic(..)) {
        return formats::infer_stochastic(call);
    }
    let [a, _] = call.operands(["a", "b"])?;
    call.same_type()?;
    let allowed = match op {
        Add | Sub | Mul | Div | Rem | Max | Min | Lt | Le | Gt | Ge => NUMERIC,
        Pow => FLOATS,
        And | Or | Xor => BITS,
        Shl | Shr => INTEGERS,
        // Those by chance have inference of their own.
        Eq | Ne | EncodeStochastic(..) => &DType::ALL,
    };
    call.dtype("a", a, allowed)?;
    Ok(if op.is_comparison() { TensorType::new(DType::Bool, a.shape.clone()) } else { a.clone() })
}

pub(super) fn infer_select(call: &Call) -> Result<TensorType> {
    let [condition, on_true, on_false] = call.operands(["condition", "on_true", "on_false"])?;
    call.dtype("condition", condition, &[DType::Bool])?;
    if on_true != on_false || condition.shape != on_true.shape {
        return Err(call.misfit("both branches must have one element type, and all operands one shape; convert with Cast and Broadcast"));
    }
    Ok(on_true.clone())
}

/// An integer as `dtype` stores it: its low bits.
pub(crate) fn wrap(dtype: DType, value: i64) -> f64 {
    match dtype {
        DType::I32 => value as i32 as f64,
        DType::U32 => value as u32 as f64,
        DType::I8 => value as i8 as f64,
        DType::U8 => value as u8 as f64,
        DType::Bool => (value != 0) as u8 as f64,
        DType::F32 | DType::F16 => value as f64,
    }
}

pub(super) fn unary(op: UnaryOp, x: &RefTensor, result: DType) -> RefTensor {
    if x.dtype.is_float() {
        return x.map(result, |x| unary_float(op, x));
    }
    x.map(result, |value| {
        let int = value as i64;
        match op {
            UnaryOp::Neg => wrap(result, -int),
            UnaryOp::Abs => wrap(result, int.abs()),
            UnaryOp::Sign => int.signum() as f64,
            UnaryOp::Not if result == DType::Bool => 1.0 - value,
            UnaryOp::Not => wrap(result, !int),
            UnaryOp::Decode(_) | UnaryOp::FromBits => formats::unary_code(op, int as u32),
            // Inference lets only those above through for types that are not floats.
            _ => f64::NAN,
        }
    })
}

fn unary_float(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Sign if x > 0.0 => 1.0,
        UnaryOp::Sign if x < 0.0 => -1.0,
        UnaryOp::Sign => x,
        UnaryOp::Exp => x.exp(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Erf => libm::erf(x),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Round => x.round_ties_even(),
        UnaryOp::Not => (x == 0.0) as u8 as f64,
        UnaryOp::IsNan => x.is_nan() as u8 as f64,
        UnaryOp::Encode(..) | UnaryOp::Bits => formats::unary_float(op, x),
        // Inference keeps codes to integers.
        UnaryOp::Decode(_) | UnaryOp::FromBits => f64::NAN,
    }
}

/// The larger of two floats; NaN if either is.
pub(crate) fn max(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// The smaller of two floats; NaN if either is.
pub(crate) fn min(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

pub(super) fn binary(op: BinaryOp, a: &RefTensor, b: &RefTensor, result: DType) -> RefTensor {
    let float = a.dtype.is_float();
    let pairs = a.data.iter().zip(&b.data);
    let data = pairs.map(|(&x, &y)| if float { binary_float(op, x, y) } else { binary_int(op, x as i64, y as i64, result) }).collect();
    RefTensor { dtype: result, shape: a.shape.clone(), data }
}

fn compare<T: PartialOrd>(op: BinaryOp, a: T, b: T) -> f64 {
    let truth = match op {
        BinaryOp::Eq => a == b,
        BinaryOp::Ne => a != b,
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        _ => a >= b,
    };
    truth as u8 as f64
}

fn binary_float(op: BinaryOp, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Rem => a % b,
        BinaryOp::Pow => a.powf(b),
        BinaryOp::Max => max(a, b),
        BinaryOp::Min => min(a, b),
        BinaryOp::EncodeStochastic(format, overflow) => formats::stochastic(format, overflow, a, b),
        // Inference keeps bit operations away from floats.
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => f64::NAN,
        op => compare(op, a, b),
    }
}

fn binary_int(op: BinaryOp, a: i64, b: i64, result: DType) -> f64 {
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a.checked_div(b).unwrap_or(a),
        BinaryOp::Rem => a.checked_rem(b).unwrap_or(0),
        BinaryOp::Max => a.max(b),
        BinaryOp::Min => a.min(b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => a << (b & 31),
        BinaryOp::Shr => a >> (b & 31),
        // Inference keeps these to floats.
        BinaryOp::Pow | BinaryOp::EncodeStochastic(..) => 0,
        op => return compare(op, a, b),
    };
    wrap(result, value)
}

pub(super) fn select(condition: &RefTensor, on_true: &RefTensor, on_false: &RefTensor) -> RefTensor {
    let branches = on_true.data.iter().zip(&on_false.data);
    let data = condition.data.iter().zip(branches).map(|(&c, (&t, &f))| if c != 0.0 { t } else { f }).collect();
    RefTensor { data, ..on_true.clone() }
}

pub(super) fn cast(x: &RefTensor, dtype: DType) -> RefTensor {
    let from_float = x.dtype.is_float();
    x.map(dtype, |v| match dtype {
        DType::F32 | DType::F16 => v,
        DType::Bool => (v != 0.0) as u8 as f64,
        _ if !from_float => wrap(dtype, v as i64),
        // Rust's `as` truncates, saturates and turns NaN to 0.
        DType::I32 => v as i32 as f64,
        DType::U32 => v as u32 as f64,
        DType::I8 => v as i8 as f64,
        DType::U8 => v as u8 as f64,
    })
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $method:ident = $op:ident;)*) => {$(
        $(#[$doc])*
        fn $method(&self) -> Result<Self> {
            Self::apply(Prim::Unary(UnaryOp::$op).into(), &[self])
        }
    )*};
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $method:ident = $op:ident;)*) => {$(
        $(#[$doc])*
        fn $method(&self, other: &Self) -> Result<Self> {
            binary_value(BinaryOp::$op, self, other)
        }
    )*};
}

fn binary_value<V: Value>(op: BinaryOp, a: &V, b: &V) -> Result<V> {
    let (a_ty, b_ty) = (a.shared_ty(), b.shared_ty());
    if a_ty.shape == b_ty.shape {
        return V::apply(Prim::Binary(op).into(), &[a, b]);
    }
    let shape = super::broadcast_shapes(&[&a_ty.shape, &b_ty.shape])?;
    V::apply(Prim::Binary(op).into(), &[&a.broadcast_to(&shape)?, &b.broadcast_to(&shape)?])
}

/// Elementwise operations; those of two operands broadcast as NumPy does and need equal element types.
pub trait ElementwiseOps: Value {
    unary_methods! {
        /// `-x`.
        neg = Neg;
        /// `|x|`.
        abs = Abs;
        /// -1, 0 or 1.
        sign = Sign;
        /// `e^x`.
        exp = Exp;
        /// Natural logarithm.
        log = Log;
        /// Square root.
        sqrt = Sqrt;
        /// Sine.
        sin = Sin;
        /// Cosine.
        cos = Cos;
        /// Hyperbolic tangent.
        tanh = Tanh;
        /// Error function.
        erf = Erf;
        /// Largest integer not above.
        floor = Floor;
        /// Smallest integer not below.
        ceil = Ceil;
        /// Nearest integer, ties to even.
        round = Round;
        /// Logical not of truth values, bitwise not of integers.
        not = Not;
        /// Whether each element is NaN.
        is_nan = IsNan;
    }

    binary_methods! {
        /// Sum.
        add = Add;
        /// Difference.
        sub = Sub;
        /// Product, element by element.
        mul = Mul;
        /// Quotient.
        div = Div;
        /// Remainder with the sign of the dividend.
        rem = Rem;
        /// Power of floats.
        pow = Pow;
        /// Larger element; NaN if either is NaN.
        maximum = Max;
        /// Smaller element; NaN if either is NaN.
        minimum = Min;
        /// Logical or bitwise and.
        and = And;
        /// Logical or bitwise or.
        or = Or;
        /// Logical or bitwise exclusive or.
        xor = Xor;
        /// Shift left.
        shl = Shl;
        /// Shift right.
        shr = Shr;
        /// Whether elements are equal.
        equal = Eq;
        /// Whether elements differ.
        not_equal = Ne;
        /// Whether elements are less.
        less = Lt;
        /// Whether elements are less or equal.
        less_equal = Le;
        /// Whether elements are greater.
        greater = Gt;
        /// Whether elements are greater or equal.
        greater_equal = Ge;
    }

    /// Sum with a number.
    fn add_scalar(&self, value: f64) -> Result<Self> {
        binary_value(BinaryOp::Add, self, &self.scalar(self.ty().dtype, value)?)
    }

    /// Product with a number.
    fn mul_scalar(&self, value: f64) -> Result<Self> {
        binary_value(BinaryOp::Mul, self, &self.scalar(self.ty().dtype, value)?)
    }

    /// `self ? on_true : on_false`, broadcasting all three.
    fn select(&self, on_true: &Self, on_false: &Self) -> Result<Self> {
        let shape = super::broadcast_shapes(&[&self.ty().shape, &on_true.ty().shape, &on_false.ty().shape])?;
        let (c, t, f) = (self.broadcast_to(&shape)?, on_true.broadcast_to(&shape)?, on_false.broadcast_to(&shape)?);
        Self::apply(Prim::Select.into(), &[&c, &t, &f])
    }

    /// Conversion to another element type.
    fn cast(&self, dtype: DType) -> Result<Self> {
        if self.ty().dtype == dtype { Ok(self.clone()) } else { Self::apply(Op::Prim(Prim::Cast(dtype)), &[self]) }
    }
}

impl<V: Value> ElementwiseOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let relative = |relative| Tolerance::Relative { relative, absolute: 1e-37 };
    let absolute = |absolute| Tolerance::Relative { relative: 2e-6, absolute };
    use UnaryOp::*;
    for (op, low, high, tolerance) in [
        (Neg, -2.0, 2.0, Tolerance::Exact),
        (Abs, -2.0, 2.0, Tolerance::Exact),
        (Sign, -2.0, 2.0, Tolerance::Exact),
        (Exp, -20.0, 20.0, relative(2e-5)),
        (Log, 1e-3, 1e3, absolute(1e-6)),
        (Sqrt, 0.0, 1e4, relative(1e-6)),
        (Sin, -3.1, 3.1, absolute(5e-4)),
        (Cos, -3.1, 3.1, absolute(5e-4)),
        (Tanh, -12.0, 12.0, absolute(2e-5)),
        (Erf, -4.0, 4.0, absolute(2e-6)),
        (Floor, -9.0, 9.0, Tolerance::Exact),
        (Ceil, -9.0, 9.0, Tolerance::Exact),
        (Round, -9.0, 9.0, Tolerance::Exact),
    ] {
        for shape in SHAPES {
            cases.add(Prim::Unary(op), tolerance, vec![uniform(DType::F32, shape, low, high)]);
        }
        cases.add(Prim::Unary(op), tolerance, vec![uniform(DType::F32, &[5, 31], low, high).reversed()]);
        for shape in [&[] as &[usize], &[1], &[0], &[7, 37]] {
            cases.add(Prim::Unary(op), tolerance, vec![uniform(DType::F16, shape, low, high)]);
        }
    }
    // No form may overflow on the way to a finite value.
    for (op, value, tolerance) in [
        (Exp, 1000.0, Tolerance::Exact),
        (Exp, -1000.0, Tolerance::Exact),
        (Tanh, 1000.0, absolute(0.0)),
        (Tanh, -1000.0, absolute(0.0)),
        (Erf, 1000.0, absolute(0.0)),
        (Erf, -1000.0, absolute(0.0)),
    ] {
        cases.add(Prim::Unary(op), tolerance, vec![splat(DType::F32, &[5], value)]);
    }
    for dtype in [DType::I32, DType::I8] {
        cases.add(Prim::Unary(Neg), Tolerance::Exact, vec![edges(dtype, &[23])]);
    }
    for &dtype in INTEGERS {
        for op in [Abs, Sign, Not] {
            cases.add(Prim::Unary(op), Tolerance::Exact, vec![edges(dtype, &[23])]);
        }
    }
    cases.add(Prim::Unary(Not), Tolerance::Exact, vec![plain(DType::Bool, &[257])]);
    for dtype in [DType::F32, DType::F16] {
        cases.add(Prim::Unary(IsNan), Tolerance::Exact, vec![edges(dtype, &[23])]);
        for op in [Neg, Abs] {
            cases.add(Prim::Unary(op), Tolerance::Bits, vec![edges(dtype, &[23])]);
        }
    }
    binary_cases(cases);
    for &dtype in &DType::ALL {
        for shape in [&[] as &[usize], &[0], &[257], &[3, 5]] {
            let operands = vec![plain(DType::Bool, shape), plain(dtype, shape), plain(dtype, shape)];
            cases.add(Prim::Select, Tolerance::Bits, operands);
        }
        for &to in &DType::ALL {
            cases.add(Prim::Cast(to), Tolerance::Relative { relative: 1e-7, absolute: 0.0 }, vec![plain(dtype, &[257])]);
            if dtype.is_float() || to == DType::Bool || to.is_int() {
                cases.add(Prim::Cast(to), Tolerance::Exact, vec![edges(dtype, &[23])]);
            }
        }
    }
    let specials = vec![plain(DType::Bool, &[242]), edges(DType::F32, &[242]), edges(DType::F32, &[242])];
    cases.add(Prim::Select, Tolerance::Bits, specials);
}

fn binary_cases(cases: &mut Cases) {
    use BinaryOp::*;
    let float = Tolerance::Relative { relative: 1e-6, absolute: 1e-6 };
    for op in [Add, Sub, Mul, Div, Rem, Max, Min, Lt, Le, Gt, Ge, Eq, Ne] {
        let exact = matches!(op, Max | Min) || op.is_comparison();
        let tolerance = if exact { Tolerance::Exact } else { float };
        // A divisor stays away from 0, where the rounding of the quotient would be the difference.
        let right = |shape: &[usize]| if matches!(op, Div | Rem) { uniform(DType::F32, shape, 0.5, 3.0) } else { floats(shape) };
        for shape in SHAPES {
            cases.add(Prim::Binary(op), tolerance, vec![floats(shape), right(shape)]);
        }
        cases.add(Prim::Binary(op), tolerance, vec![floats(&[6, 35]).repeated(), right(&[6, 35]).reversed()]);
        for &dtype in INTEGERS {
            cases.add(Prim::Binary(op), Tolerance::Exact, vec![edges(dtype, &[101]), edges(dtype, &[101])]);
            cases.add(Prim::Binary(op), Tolerance::Exact, vec![plain(dtype, &[3, 35]), plain(dtype, &[3, 35])]);
        }
        if exact {
            for dtype in [DType::F32, DType::F16] {
                cases.add(Prim::Binary(op), Tolerance::Exact, vec![edges(dtype, &[121]), edges(dtype, &[121])]);
            }
        }
        let half = |spec: InputSpec| InputSpec { ty: TensorType::new(DType::F16, spec.ty.shape), ..spec };
        for shape in [&[1usize] as &[usize], &[5, 13]] {
            cases.add(Prim::Binary(op), tolerance, vec![half(floats(shape)).repeated(), half(right(shape)).reversed()]);
        }
    }
    for shape in [&[] as &[usize], &[0], &[257]] {
        let operands = vec![uniform(DType::F32, shape, 0.1, 4.0), uniform(DType::F32, shape, -3.0, 3.0)];
        cases.add(Prim::Binary(Pow), Tolerance::Relative { relative: 1e-4, absolute: 0.0 }, operands);
    }
    // Whole powers of negative numbers, and the powers with names.
    for exponent in [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0] {
        let low = if exponent == 0.5 { 0.0 } else { -3.0 };
        let operands = vec![uniform(DType::F32, &[33], low, 3.0), splat(DType::F32, &[33], exponent)];
        cases.add(Prim::Binary(Pow), Tolerance::Relative { relative: 1e-4, absolute: 0.0 }, operands);
    }
    for op in [And, Or, Xor] {
        for &dtype in BITS {
            cases.add(Prim::Binary(op), Tolerance::Exact, vec![edges(dtype, &[101]), edges(dtype, &[101])]);
        }
    }
    for op in [Shl, Shr] {
        for &dtype in INTEGERS {
            cases.add(Prim::Binary(op), Tolerance::Exact, vec![edges(dtype, &[101]), uniform(dtype, &[101], 0.0, 40.0)]);
        }
    }
    for op in [Eq, Ne] {
        cases.add(Prim::Binary(op), Tolerance::Exact, vec![plain(DType::Bool, &[33]), plain(DType::Bool, &[33])]);
    }
}
