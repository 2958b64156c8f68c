//! Readable text of loop IR, for dumps and goldens.

use std::fmt;

use crate::ir::{Code, Expr, ExprId, Grid, Kernel, Lanes, Stmt};

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vec4() {
            Some(base) => write!(f, "{base}; vec4"),
            None => {
                let lanes: Vec<String> = self.0.iter().map(ToString::to_string).collect();
                f.write_str(&lanes.join(" | "))
            }
        }
    }
}

fn expr(code: &Code, id: ExprId) -> String {
    let e = |id: &ExprId| format!("e{}", id.0);
    match &code.exprs[id.0 as usize].0 {
        Expr::Literal(literal) => format!("{literal:?}"),
        Expr::Index(lanes) => format!("index {lanes}"),
        Expr::InBounds { index, size } => format!("{index} in 0..{size}"),
        Expr::Load { buffer, index } => format!("{}[{index}]", code.buffers[buffer.0 as usize].name),
        Expr::Local(local) => format!("x{}", local.0),
        Expr::Argument(name, ..) => name.clone(),
        Expr::Unary(op, a) => format!("{} {}", op.name(), e(a)),
        Expr::Binary(op, a, b) => format!("{} {} {}", op.name(), e(a), e(b)),
        Expr::Select(c, t, x) => format!("select {} {} {}", e(c), e(t), e(x)),
        Expr::Cast(to, a) => format!("cast {} {}", to.wgsl(), e(a)),
        Expr::Narrow(to, a) => format!("narrow {to} {}", e(a)),
        Expr::Splat(a) => format!("splat {}", e(a)),
        Expr::Lane(a, l) => format!("{}.{l}", e(a)),
        Expr::Compose(parts) => format!("compose {} {} {} {}", e(&parts[0]), e(&parts[1]), e(&parts[2]), e(&parts[3])),
    }
}

fn stmts(f: &mut fmt::Formatter<'_>, code: &Code, body: &[Stmt], depth: usize) -> fmt::Result {
    let pad = "  ".repeat(depth);
    for stmt in body {
        match stmt {
            Stmt::Loop { var, body } => {
                writeln!(f, "{pad}loop v{} in 0..{}", var.id.0, var.extent)?;
                stmts(f, code, body, depth + 1)?;
            }
            Stmt::If { condition, body } => {
                writeln!(f, "{pad}if e{}", condition.0)?;
                stmts(f, code, body, depth + 1)?;
            }
            Stmt::Break { condition } => writeln!(f, "{pad}break if e{}", condition.0)?,
            Stmt::Declare { local, value } => writeln!(f, "{pad}var x{} = e{}", local.0, value.0)?,
            Stmt::Assign { local, value } => writeln!(f, "{pad}x{} = e{}", local.0, value.0)?,
            Stmt::Store { buffer, index, value } => {
                writeln!(f, "{pad}{}[{index}] = e{}", code.buffers[buffer.0 as usize].name, value.0)?;
            }
            Stmt::WorkgroupReduce { local, op } => writeln!(f, "{pad}x{} = workgroup {} x{}", local.0, op.name(), local.0)?,
        }
    }
    Ok(())
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {} workgroup {} ", self.label, self.workgroup_size)?;
        match &self.grid {
            Grid::Invocations { var } => writeln!(f, "invocation v{} in 0..{}", var.id.0, var.extent)?,
            Grid::Workgroups { group, lane } => {
                writeln!(f, "group v{} in 0..{} lane v{}", group.id.0, group.extent, lane.id.0)?;
            }
        }
        for buffer in &self.code.buffers {
            writeln!(f, "  buffer {}: {}{}", buffer.name, buffer.dtype, if buffer.written { " written" } else { "" })?;
        }
        for i in 0..self.code.exprs.len() {
            let (_, ty) = &self.code.exprs[i];
            writeln!(f, "  e{i}: {} = {}", ty.wgsl(), expr(&self.code, ExprId(i as u32)))?;
        }
        stmts(f, &self.code, &self.body, 1)
    }
}
