//! The verifier of loop IR: collects every fault of a kernel.

use std::collections::HashSet;
use std::fmt;

use crate::index::{Index, VarId};
use crate::ir::{Code, Expr, ExprId, Grid, Kernel, Lanes, LocalId, Stmt, breaks};
use crate::scalar::{BinaryOp, UnaryOp};
use crate::{DType, Error, Result, ScalarType};

/// One broken invariant of a kernel, or of a graph of the crates above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyError {
    /// Where: an expression or the path of a statement.
    pub at: String,
    /// What stands there.
    pub context: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (in `{}`)", self.at, self.message, self.context)
    }
}

impl std::error::Error for VerifyError {}

struct Verifier<'a> {
    code: &'a Code,
    faults: Vec<VerifyError>,
    vars: Vec<VarId>,
    locals: Vec<LocalId>,
    /// Loops around the statement looked at.
    loops: usize,
}

impl Verifier<'_> {
    fn fault(&mut self, at: &str, context: impl fmt::Debug, message: impl Into<String>) {
        self.faults.push(VerifyError { at: at.to_string(), context: format!("{context:?}"), message: message.into() });
    }

    /// Operands precede their users and have the types the operation takes.
    fn exprs(&mut self) {
        for (i, (expr, ty)) in self.code.exprs.iter().enumerate() {
            let at = format!("e{i}");
            let mut late = Vec::new();
            expr.for_each_operand(&mut |e| {
                if e.0 as usize >= i {
                    late.push(e.0);
                }
            });
            if !late.is_empty() {
                self.fault(&at, expr, format!("uses the later expressions {late:?}"));
                continue;
            }
            let of = |e: &ExprId| self.code.exprs[e.0 as usize].1;
            let problem = match expr {
                Expr::Unary(op, a) if op.result(of(a).scalar) != ty.scalar || of(a).width != ty.width => {
                    Some("has a type that is not its own")
                }
                Expr::Unary(UnaryOp::Decode(_) | UnaryOp::FromBits, a) if of(a).scalar != ScalarType::U32 => Some("reads what is no code"),
                Expr::Unary(UnaryOp::Encode(..) | UnaryOp::Bits, a) if of(a).scalar != ScalarType::F32 => Some("encodes what is no float"),
                Expr::Binary(BinaryOp::EncodeStochastic(..), a, _) if of(a).scalar != ScalarType::F32 => Some("encodes what is no float"),
                Expr::Binary(op, a, b) => {
                    let (a, b) = (of(a), of(b));
                    let types = op.right(a.scalar) == b.scalar && op.result(a.scalar) == ty.scalar;
                    (!types || a.width != b.width || a.width != ty.width).then_some("mixes types")
                }
                Expr::Select(c, t, f) if of(c).scalar != ScalarType::Bool || of(t) != of(f) || of(t) != *ty || of(c).width != ty.width => {
                    Some("mixes types")
                }
                Expr::Load { buffer, .. } if buffer.0 as usize >= self.code.buffers.len() => Some("loads from an unknown buffer"),
                Expr::Local(local) if local.0 as usize >= self.code.locals.len() => Some("reads an unknown local"),
                Expr::Splat(a) if of(a).width != 1 => Some("repeats a value of four lanes"),
                Expr::Lane(a, l) if of(a).width != 4 || *l > 3 => Some("takes a lane that is not there"),
                Expr::Compose(parts) if parts.iter().any(|p| of(p).width != 1 || of(p).scalar != ty.scalar) => Some("mixes types"),
                Expr::Narrow(DType::F16, a) if of(a).scalar != ScalarType::F32 => Some("rounds a value that is no float"),
                Expr::Narrow(DType::I8 | DType::U8, a) if !matches!(of(a).scalar, ScalarType::I32 | ScalarType::U32) => {
                    Some("narrows a value that is no integer")
                }
                _ if !matches!(ty.width, 1 | 4) => Some("has neither one lane nor four"),
                _ => None,
            };
            if let Some(problem) = problem {
                self.fault(&at, expr, problem);
            }
        }
    }

    fn index(&mut self, at: &str, index: &Index) {
        let mut unknown = Vec::new();
        index.for_each_var(&mut |v| {
            if !self.vars.contains(&v.id) {
                unknown.push(v.id.0);
            }
        });
        if !unknown.is_empty() {
            self.fault(at, index, format!("variables {unknown:?} are not in scope"));
        }
    }

    fn lanes(&mut self, at: &str, lanes: &Lanes) {
        lanes.0.iter().for_each(|i| self.index(at, i));
    }

    /// Everything a used expression needs is in scope.
    fn value(&mut self, at: &str, id: ExprId) {
        let (mut seen, mut open) = (HashSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let Some((expr, _)) = self.code.exprs.get(id.0 as usize) else {
                self.fault(at, id, "unknown expression");
                continue;
            };
            match expr {
                Expr::Index(lanes) | Expr::InBounds { index: lanes, .. } | Expr::Load { index: lanes, .. } => self.lanes(at, lanes),
                Expr::Local(local) if !self.locals.contains(local) => self.fault(at, expr, "the local is not declared yet"),
                _ => {}
            }
            expr.for_each_operand(&mut |e| open.push(e));
        }
    }

    fn body(&mut self, path: &str, body: &[Stmt], barriers: bool) {
        let (vars, locals) = (self.vars.len(), self.locals.len());
        for (i, stmt) in body.iter().enumerate() {
            let at = format!("{path}.{i}");
            match stmt {
                Stmt::Loop { var, body } => {
                    self.vars.push(var.id);
                    self.loops += 1;
                    self.body(&at, body, barriers && !breaks(body));
                    self.loops -= 1;
                    self.vars.pop();
                }
                Stmt::If { condition, body } => {
                    self.value(&at, *condition);
                    self.body(&at, body, false);
                }
                Stmt::Break { condition } => {
                    self.value(&at, *condition);
                    if self.loops == 0 {
                        self.fault(&at, stmt, "there is no loop to end");
                    }
                }
                Stmt::Declare { local, value } | Stmt::Assign { local, value } => {
                    self.value(&at, *value);
                    let declared = self.locals.contains(local);
                    if matches!(stmt, Stmt::Declare { .. }) == declared {
                        self.fault(&at, stmt, "a local is declared once, before it is assigned");
                    }
                    self.locals.push(*local);
                    let types = (self.code.locals.get(local.0 as usize), self.code.exprs.get(value.0 as usize).map(|e| &e.1));
                    if types.0 != types.1 {
                        self.fault(&at, stmt, "the value's type is not the local's");
                    }
                }
                Stmt::Store { buffer, index, value } => {
                    self.lanes(&at, index);
                    self.value(&at, *value);
                    let ty = self.code.exprs.get(value.0 as usize).map(|e| e.1);
                    match (self.code.buffers.get(buffer.0 as usize), ty) {
                        (Some(b), Some(ty)) => {
                            if !b.written {
                                self.fault(&at, stmt, "the buffer is read-only");
                            }
                            if ty.scalar != b.dtype.scalar() || ty.width != index.width() {
                                self.fault(&at, stmt, "the value's type is not the buffer's");
                            }
                            if b.dtype.elems_per_word() > 1 && index.vec4().is_none() {
                                self.fault(&at, stmt, "packed elements are stored by whole words");
                            }
                        }
                        _ => self.fault(&at, stmt, "unknown buffer or expression"),
                    }
                }
                Stmt::WorkgroupReduce { local, .. } => {
                    if !barriers {
                        self.fault(&at, stmt, "a barrier in non-uniform control flow");
                    }
                    if !self.locals.contains(local) || self.code.locals.get(local.0 as usize).is_none_or(|t| t.width != 1) {
                        self.fault(&at, stmt, "a workgroup reduces a declared local of one lane");
                    }
                }
            }
        }
        self.vars.truncate(vars);
        self.locals.truncate(locals);
    }
}

impl Kernel {
    /// Checks the kernel; the error lists all faults.
    pub fn verify(&self) -> Result<()> {
        let (vars, barriers) = match &self.grid {
            Grid::Invocations { var } => (vec![var.id], false),
            Grid::Workgroups { group, lane } => (vec![group.id, lane.id], true),
        };
        let mut verifier = Verifier { code: &self.code, faults: Vec::new(), vars, locals: Vec::new(), loops: 0 };
        verifier.exprs();
        if verifier.faults.is_empty() {
            verifier.body("body", &self.body, barriers);
        }
        if verifier.faults.is_empty() {
            return Ok(());
        }
        let faults: Vec<String> = verifier.faults.iter().map(ToString::to_string).collect();
        Err(Error::Verify { kernel: self.label.clone(), faults: faults.join("\n") })
    }
}

#[cfg(test)]
mod tests {
    use crate::DType;
    use crate::emit::{Numerics, kernel};
    use crate::index::Index;
    use crate::ir::{Builder, Grid, Kernel, Lanes, Stmt, ValueType};
    use crate::scalar::{BinaryOp, Literal, ReduceOp};

    /// A sum of the numbers 0, 1, 2... until it reaches 10, in a loop or without one, with a barrier in the loop or without.
    fn sum(in_loop: bool, barrier: bool) -> Kernel {
        let mut b = Builder::new();
        let (group, lane, step) = (b.var(4), b.var(64), b.var(100));
        let out = b.buffer("out", DType::U32, true);
        let zero = b.literal(Literal::U32(0));
        let local = b.local(ValueType { scalar: crate::ScalarType::U32, width: 1 });
        let (present, number, ten) = (b.get(local), b.index(vec![Index::from(step)]), b.literal(Literal::U32(10)));
        let condition = b.binary(BinaryOp::Ge, present, ten);
        let value = b.binary(BinaryOp::Add, present, number);
        let mut inner = vec![Stmt::Break { condition }, Stmt::Assign { local, value }];
        inner.extend(barrier.then_some(Stmt::WorkgroupReduce { local, op: ReduceOp::Sum }));
        let mut body = vec![Stmt::Declare { local, value: zero }];
        body.push(if in_loop { Stmt::Loop { var: step, body: inner } } else { Stmt::Break { condition } });
        body.push(Stmt::Store { buffer: out, index: Lanes(vec![Index::from(group).mul(64).add(&Index::from(lane))]), value: present });
        let grid = Grid::Workgroups { group, lane };
        Kernel { label: "sum".into(), origins: Vec::new(), grid, workgroup_size: 64, code: b.finish(), body, flops: 0, bytes: 0 }
    }

    #[test]
    fn a_loop_may_end_early_where_no_barrier_waits() {
        let source = kernel(&sum(true, false), Numerics::Strict).expect("a sound kernel");
        assert!(source.wgsl.contains("{ break; }"), "{}", source.wgsl);
        assert!(sum(false, false).verify().expect_err("no loop").to_string().contains("no loop to end"));
        assert!(sum(true, true).verify().expect_err("a barrier").to_string().contains("barrier in non-uniform"));
    }
}
