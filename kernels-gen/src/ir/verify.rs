//! The verifier of loop IR: collects every fault of a kernel.

use std::collections::HashSet;
use std::fmt;

use crate::index::{Index, VarId};
use crate::ir::{Code, Expr, ExprId, Grid, Kernel, Lanes, LocalId, Stmt};
use crate::scalar::UnaryOp;
use crate::{Error, Result, ScalarType};

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
                Expr::Unary(op, a) if *op != UnaryOp::IsNan && of(a) != *ty => Some("changes the type of its operand"),
                Expr::Binary(op, a, b) if of(a) != of(b) || (!op.is_comparison() && of(a) != *ty) => Some("mixes types"),
                Expr::Select(c, t, f) if of(c).scalar != ScalarType::Bool || of(t) != of(f) || of(t) != *ty || of(c).width != ty.width => {
                    Some("mixes types")
                }
                Expr::Load { buffer, .. } if buffer.0 as usize >= self.code.buffers.len() => Some("loads from an unknown buffer"),
                Expr::Local(local) if local.0 as usize >= self.code.locals.len() => Some("reads an unknown local"),
                Expr::Splat(a) if of(a).width != 1 => Some("repeats a value of four lanes"),
                Expr::Lane(a, l) if of(a).width != 4 || *l > 3 => Some("takes a lane that is not there"),
                Expr::Compose(parts) if parts.iter().any(|p| of(p).width != 1 || of(p).scalar != ty.scalar) => Some("mixes types"),
                Expr::Narrow(_, a) if !matches!(of(a).scalar, ScalarType::I32 | ScalarType::U32) => {
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
                    self.body(&at, body, barriers);
                    self.vars.pop();
                }
                Stmt::If { condition, body } => {
                    self.value(&at, *condition);
                    self.body(&at, body, false);
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
        let mut verifier = Verifier { code: &self.code, faults: Vec::new(), vars, locals: Vec::new() };
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
