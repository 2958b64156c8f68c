//! Construction of loop IR: typed and hash-consed expressions, fresh variables and locals.

use std::collections::HashMap;

use crate::index::{Atom, Index, Var, VarId};
use crate::ir::{Buffer, BufferId, Code, Expr, ExprId, Lanes, LocalId, ValueType};
use crate::scalar::{BinaryOp, Literal, UnaryOp};
use crate::{DType, ScalarType};

/// Builds the [`Code`] of a kernel. Operands of different width are brought to the wider one.
#[derive(Debug, Default)]
pub struct Builder {
    code: Code,
    known: HashMap<Expr, ExprId>,
    /// Whether every value an expression can have is one of f16.
    halves: Vec<bool>,
    num_vars: u32,
}

impl Builder {
    /// A builder of an empty kernel.
    pub fn new() -> Self {
        Self::default()
    }

    /// The finished code.
    pub fn finish(self) -> Code {
        self.code
    }

    /// Adds a buffer; its number is its binding.
    pub fn buffer(&mut self, name: impl Into<String>, dtype: DType, written: bool) -> BufferId {
        self.code.buffers.push(Buffer { name: name.into(), dtype, written });
        BufferId(self.code.buffers.len() as u32 - 1)
    }

    /// A fresh variable with values `0..extent`.
    pub fn var(&mut self, extent: u64) -> Var {
        self.num_vars += 1;
        Var { id: VarId(self.num_vars - 1), extent: extent.min(i64::MAX as u64) as i64 }
    }

    /// A fresh local.
    pub fn local(&mut self, ty: ValueType) -> LocalId {
        self.code.locals.push(ty);
        LocalId(self.code.locals.len() as u32 - 1)
    }

    /// Type of an expression.
    pub fn ty(&self, id: ExprId) -> ValueType {
        self.code.exprs[id.0 as usize].1
    }

    /// The expression.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.code.exprs[id.0 as usize].0
    }

    fn add(&mut self, expr: Expr, scalar: ScalarType, width: u8) -> ExprId {
        if let Some(&id) = self.known.get(&expr) {
            return id;
        }
        let id = ExprId(self.code.exprs.len() as u32);
        self.halves.push(self.is_half(&expr));
        self.code.exprs.push((expr.clone(), ValueType { scalar, width }));
        self.known.insert(expr, id);
        id
    }

    /// Whether rounding to f16 leaves a float as it is: it was loaded from f16 or rounded, and since then moved, compared, negated or
    /// brought to a whole number at most.
    fn is_half(&self, expr: &Expr) -> bool {
        let half = |id: &ExprId| self.halves.get(id.0 as usize).copied().unwrap_or(false);
        match expr {
            Expr::Literal(Literal::F32(bits)) => {
                let value = f32::from_bits(*bits);
                value.is_nan() || half::f16::from_f32(value).to_f32() == value
            }
            Expr::Load { buffer, .. } => self.code.buffers.get(buffer.0 as usize).is_some_and(|b| b.dtype == DType::F16),
            Expr::Narrow(dtype, _) => *dtype == DType::F16,
            Expr::Unary(UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round, a) => half(a),
            Expr::Binary(BinaryOp::Max | BinaryOp::Min, a, b) | Expr::Select(_, a, b) => half(a) && half(b),
            Expr::Splat(a) | Expr::Lane(a, _) => half(a),
            Expr::Compose(parts) => parts.iter().all(half),
            Expr::Cast(ScalarType::F32, a) => matches!(self.ty(*a).scalar, ScalarType::Bool | ScalarType::F16),
            _ => false,
        }
    }

    /// A constant.
    pub fn literal(&mut self, value: Literal) -> ExprId {
        self.add(Expr::Literal(value), value.ty(), 1)
    }

    fn lanes(lanes: Vec<Index>) -> Lanes {
        let lanes = Lanes(lanes);
        match lanes.uniform() {
            Some(one) => Lanes(vec![one.clone()]),
            None => lanes,
        }
    }

    /// An index as a `u32`; one lane where all agree.
    pub fn index(&mut self, lanes: Vec<Index>) -> ExprId {
        let lanes = Self::lanes(lanes);
        if let [one] = lanes.0.as_slice()
            && let Some(c) = one.as_const()
        {
            return self.literal(Literal::U32(c as u32));
        }
        let width = lanes.width();
        self.add(Expr::Index(lanes), ScalarType::U32, width)
    }

    /// Whether an index lies in `0..size`; constant where the ranges of the variables decide it.
    pub fn in_bounds(&mut self, lanes: Vec<Index>, size: i64) -> ExprId {
        let inside = |i: &Index| i.range().0 >= 0 && i.range().1 < size;
        let outside = |i: &Index| i.range().1 < 0 || i.range().0 >= size;
        if lanes.iter().all(inside) {
            return self.literal(Literal::Bool(true));
        }
        if lanes.iter().all(outside) {
            return self.literal(Literal::Bool(false));
        }
        let index = Self::lanes(lanes);
        let width = index.width();
        self.add(Expr::InBounds { index, size }, ScalarType::Bool, width)
    }

    /// An element of a buffer; one lane where all lanes name the same element.
    pub fn load(&mut self, buffer: BufferId, lanes: Vec<Index>) -> ExprId {
        // A place before the first element is behind a test that fails; as a constant, the validator would refuse it.
        let held = |i: Index| if i.as_const().is_some_and(|c| c < 0) { Index::from(0) } else { i };
        let index = Self::lanes(lanes.into_iter().map(held).collect());
        let (scalar, width) = (self.code.buffers[buffer.0 as usize].dtype.scalar(), index.width());
        self.add(Expr::Load { buffer, index }, scalar, width)
    }

    /// The present value of a local.
    pub fn get(&mut self, local: LocalId) -> ExprId {
        let ty = self.code.locals[local.0 as usize];
        self.add(Expr::Local(local), ty.scalar, ty.width)
    }

    /// An argument of the function being built.
    pub fn argument(&mut self, name: &str, scalar: ScalarType, width: u8) -> ExprId {
        self.add(Expr::Argument(name.to_string(), scalar, width), scalar, width)
    }

    /// Brings a value to `width` lanes.
    pub fn widen(&mut self, x: ExprId, width: u8) -> ExprId {
        let ty = self.ty(x);
        if ty.width == width { x } else { self.add(Expr::Splat(x), ty.scalar, width) }
    }

    /// Elementwise operation.
    pub fn unary(&mut self, op: UnaryOp, x: ExprId) -> ExprId {
        let ty = self.ty(x);
        self.add(Expr::Unary(op, x), op.result(ty.scalar), ty.width)
    }

    /// Elementwise operation.
    pub fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let width = self.ty(a).width.max(self.ty(b).width);
        let scalar = op.result(self.ty(a).scalar);
        // A test that is known drops out: most of a padded or concatenated tensor's tests are.
        if let (BinaryOp::And, Some(known)) = (op, self.known_bool(a)) {
            return if known { b } else { a };
        }
        if let (BinaryOp::And, Some(known)) = (op, self.known_bool(b)) {
            return if known { a } else { b };
        }
        let (a, b) = (self.widen(a, width), self.widen(b, width));
        self.add(Expr::Binary(op, a, b), scalar, width)
    }

    /// The value of a condition, where it is a constant.
    pub fn known_bool(&self, x: ExprId) -> Option<bool> {
        match self.expr(x) {
            Expr::Literal(Literal::Bool(b)) => Some(*b),
            Expr::Splat(x) => self.known_bool(*x),
            _ => None,
        }
    }

    /// `condition ? on_true : on_false`.
    pub fn select(&mut self, condition: ExprId, on_true: ExprId, on_false: ExprId) -> ExprId {
        match self.known_bool(condition) {
            Some(true) => return on_true,
            Some(false) => return on_false,
            None => {}
        }
        let width = [condition, on_true, on_false].iter().map(|&e| self.ty(e).width).max().unwrap_or(1);
        let scalar = self.ty(on_true).scalar;
        let (c, t, f) = (self.widen(condition, width), self.widen(on_true, width), self.widen(on_false, width));
        self.add(Expr::Select(c, t, f), scalar, width)
    }

    /// Conversion; nothing where the type is there already, or was before a conversion from f16 to f32.
    pub fn cast(&mut self, to: ScalarType, x: ExprId) -> ExprId {
        let ty = self.ty(x);
        match self.expr(x) {
            _ if ty.scalar == to => x,
            Expr::Cast(ScalarType::F32, half) if to == ScalarType::F16 && self.ty(*half).scalar == to => *half,
            _ => self.add(Expr::Cast(to, x), to, ty.width),
        }
    }

    /// Wraps to an 8-bit type or rounds to f16; nothing for the others.
    pub fn narrow(&mut self, dtype: DType, x: ExprId) -> ExprId {
        match dtype {
            DType::I8 | DType::U8 => {
                let ty = self.ty(x);
                self.add(Expr::Narrow(dtype, x), ty.scalar, ty.width)
            }
            DType::F16 if self.halves.get(x.0 as usize) == Some(&true) => x,
            DType::F16 => {
                let ty = self.ty(x);
                self.add(Expr::Narrow(dtype, x), ty.scalar, ty.width)
            }
            DType::F32 | DType::I32 | DType::U32 | DType::Bool => x,
        }
    }

    /// One lane.
    pub fn lane(&mut self, x: ExprId, lane: u8) -> ExprId {
        let ty = self.ty(x);
        match self.expr(x) {
            _ if ty.width == 1 => x,
            Expr::Splat(x) => *x,
            Expr::Compose(parts) => parts[lane as usize],
            _ => self.add(Expr::Lane(x, lane), ty.scalar, 1),
        }
    }

    /// Four values of one lane as one of four.
    pub fn compose(&mut self, parts: [ExprId; 4]) -> ExprId {
        let scalar = self.ty(parts[0]).scalar;
        self.add(Expr::Compose(parts), scalar, 4)
    }

    /// The lanes of an integer value known to lie in `0..extent`, as indices.
    pub fn data_index(&mut self, x: ExprId, extent: i64, width: u8) -> Vec<Index> {
        let x = self.cast(ScalarType::U32, x);
        (0..width)
            .map(|l| {
                let lane = self.lane(x, l);
                match self.expr(lane) {
                    Expr::Literal(Literal::U32(c)) => Index::from(i64::from(*c)),
                    Expr::Index(lanes) => lanes.0[0].clone(),
                    _ => Index::from(Atom::Data { expr: lane.0, extent }),
                }
            })
            .collect()
    }
}
