//! Operations on scalars: what one element of a tensor operation does. The tensor IR and the loop IR share them.

use crate::ScalarType;
use crate::formats::{Format, Overflow, Rounding};

/// Elementwise operations of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// `-x`; integers wrap.
    Neg,
    /// `|x|`; the smallest integer stays itself.
    Abs,
    /// -1, 0 or 1 (NaN stays NaN).
    Sign,
    /// `e^x`.
    Exp,
    /// Natural logarithm.
    Log,
    /// Square root.
    Sqrt,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Hyperbolic tangent.
    Tanh,
    /// Error function.
    Erf,
    /// Largest integer not above.
    Floor,
    /// Smallest integer not below.
    Ceil,
    /// Nearest integer, ties to even.
    Round,
    /// Logical not of a Bool, bitwise not of an integer.
    Not,
    /// Whether the element is NaN (Bool).
    IsNan,
    /// The number of a code: `u32` to `f32`, exact.
    Decode(Format),
    /// The code of a number: `f32` to `u32`.
    Encode(Format, Rounding, Overflow),
    /// The bits of a float: `f32` to `u32`; every NaN gives 0x7fc00000.
    Bits,
    /// The float of bits: `u32` to `f32`; what bits a NaN keeps is the driver's.
    FromBits,
}

/// Elementwise operations of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    /// Sum; integers wrap.
    Add,
    /// Difference; integers wrap.
    Sub,
    /// Product; integers wrap.
    Mul,
    /// Quotient; integers truncate, division by 0 gives the dividend, and the minimum by -1 gives the minimum (as WGSL).
    Div,
    /// Remainder with the sign of the dividend; by 0 it is 0 (integers) or NaN (floats).
    Rem,
    /// Power, as C's `pow` (floats).
    Pow,
    /// Larger operand; NaN if either is NaN.
    Max,
    /// Smaller operand; NaN if either is NaN.
    Min,
    /// Logical (Bool) or bitwise (integers) and.
    And,
    /// Logical or bitwise or.
    Or,
    /// Logical or bitwise exclusive or.
    Xor,
    /// Shift left; the amount is taken modulo 32.
    Shl,
    /// Shift right, arithmetic for signed integers; the amount is taken modulo 32.
    Shr,
    /// Equal. A comparison with NaN is false, but `Ne` is true.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// The code of a number (`f32`), rounded by a random word (`u32`): [`Format::encode_stochastic`].
    EncodeStochastic(Format, Overflow),
}

/// How a reduction combines elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReduceOp {
    /// Sum, from 0.
    Sum,
    /// Product, from 1.
    Product,
    /// Maximum, from -infinity (floats), the smallest value, or false; NaN wins.
    Max,
    /// Minimum, from infinity, the largest value, or true; NaN wins.
    Min,
}

impl BinaryOp {
    /// Whether the result is Bool whatever the operands are.
    pub fn is_comparison(self) -> bool {
        matches!(self, BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge)
    }

    /// Type of the result for a left operand of type `a`.
    pub fn result(self, a: ScalarType) -> ScalarType {
        match self {
            BinaryOp::EncodeStochastic(..) => ScalarType::U32,
            op if op.is_comparison() => ScalarType::Bool,
            _ => a,
        }
    }

    /// Type of the right operand for a left one of type `a`.
    pub fn right(self, a: ScalarType) -> ScalarType {
        if matches!(self, BinaryOp::EncodeStochastic(..)) { ScalarType::U32 } else { a }
    }
}

impl ReduceOp {
    /// The operation that combines two elements of type `ty`.
    pub fn combine(self, ty: ScalarType) -> BinaryOp {
        match (self, ty) {
            (ReduceOp::Max, ScalarType::Bool) => BinaryOp::Or,
            (ReduceOp::Min, ScalarType::Bool) => BinaryOp::And,
            (ReduceOp::Sum, _) => BinaryOp::Add,
            (ReduceOp::Product, _) => BinaryOp::Mul,
            (ReduceOp::Max, _) => BinaryOp::Max,
            (ReduceOp::Min, _) => BinaryOp::Min,
        }
    }

    /// The value that combines with any element to that element; f16 is reduced as f32.
    pub fn identity(self, ty: ScalarType) -> Literal {
        use ScalarType as S;
        match (self, ty) {
            (ReduceOp::Sum, S::F32 | S::F16) => Literal::f32(0.0),
            (ReduceOp::Product, S::F32 | S::F16) => Literal::f32(1.0),
            (ReduceOp::Max, S::F32 | S::F16) => Literal::f32(f32::NEG_INFINITY),
            (ReduceOp::Min, S::F32 | S::F16) => Literal::f32(f32::INFINITY),
            (ReduceOp::Sum, S::I32) => Literal::I32(0),
            (ReduceOp::Product, S::I32) => Literal::I32(1),
            (ReduceOp::Max, S::I32) => Literal::I32(i32::MIN),
            (ReduceOp::Min, S::I32) => Literal::I32(i32::MAX),
            (ReduceOp::Sum | ReduceOp::Max, S::U32) => Literal::U32(0),
            (ReduceOp::Product, S::U32) => Literal::U32(1),
            (ReduceOp::Min, S::U32) => Literal::U32(u32::MAX),
            (ReduceOp::Sum | ReduceOp::Max, S::Bool) => Literal::Bool(false),
            (ReduceOp::Product | ReduceOp::Min, S::Bool) => Literal::Bool(true),
        }
    }

    /// Short name, used in kernel names and printers.
    pub fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Product => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
        }
    }
}

impl UnaryOp {
    /// Type of the result for an operand of type `x`.
    pub fn result(self, x: ScalarType) -> ScalarType {
        match self {
            UnaryOp::IsNan => ScalarType::Bool,
            UnaryOp::Encode(..) | UnaryOp::Bits => ScalarType::U32,
            UnaryOp::Decode(_) | UnaryOp::FromBits => ScalarType::F32,
            _ => x,
        }
    }

    /// Short name, used in kernel names and printers.
    pub fn name(self) -> &'static str {
        match self {
            UnaryOp::Neg => "neg",
            UnaryOp::Abs => "abs",
            UnaryOp::Sign => "sign",
            UnaryOp::Exp => "exp",
            UnaryOp::Log => "log",
            UnaryOp::Sqrt => "sqrt",
            UnaryOp::Sin => "sin",
            UnaryOp::Cos => "cos",
            UnaryOp::Tanh => "tanh",
            UnaryOp::Erf => "erf",
            UnaryOp::Floor => "floor",
            UnaryOp::Ceil => "ceil",
            UnaryOp::Round => "round",
            UnaryOp::Not => "not",
            UnaryOp::IsNan => "isnan",
            UnaryOp::Decode(format) => format.names()[1],
            UnaryOp::Encode(format, ..) => format.names()[2],
            UnaryOp::Bits => "bits",
            UnaryOp::FromBits => "frombits",
        }
    }
}

impl BinaryOp {
    /// Short name, used in kernel names and printers.
    pub fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::Div => "div",
            BinaryOp::Rem => "rem",
            BinaryOp::Pow => "pow",
            BinaryOp::Max => "max",
            BinaryOp::Min => "min",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
            BinaryOp::Xor => "xor",
            BinaryOp::Shl => "shl",
            BinaryOp::Shr => "shr",
            BinaryOp::Eq => "eq",
            BinaryOp::Ne => "ne",
            BinaryOp::Lt => "lt",
            BinaryOp::Le => "le",
            BinaryOp::Gt => "gt",
            BinaryOp::Ge => "ge",
            BinaryOp::EncodeStochastic(format, _) => format.names()[3],
        }
    }
}

/// A constant scalar; floats by their bits, so that NaN and -0 are values like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Literal {
    /// Bits of an `f32`.
    F32(u32),
    /// `i32`.
    I32(i32),
    /// `u32`.
    U32(u32),
    /// `bool`.
    Bool(bool),
}

impl Literal {
    /// A float.
    pub fn f32(value: f32) -> Self {
        Literal::F32(value.to_bits())
    }

    /// The value a scalar of type `ty` takes from an `f64` (integers truncate and saturate); that of f16 is a literal of f32, to be converted.
    pub fn from_f64(ty: ScalarType, value: f64) -> Self {
        match ty {
            ScalarType::F32 | ScalarType::F16 => Literal::f32(value as f32),
            ScalarType::I32 => Literal::I32(value as i32),
            ScalarType::U32 => Literal::U32(value as u32),
            ScalarType::Bool => Literal::Bool(value != 0.0),
        }
    }

    /// Type.
    pub fn ty(self) -> ScalarType {
        match self {
            Literal::F32(_) => ScalarType::F32,
            Literal::I32(_) => ScalarType::I32,
            Literal::U32(_) => ScalarType::U32,
            Literal::Bool(_) => ScalarType::Bool,
        }
    }

    /// Whether the value is a NaN.
    pub fn is_nan(self) -> bool {
        matches!(self, Literal::F32(bits) if f32::from_bits(bits).is_nan())
    }
}
