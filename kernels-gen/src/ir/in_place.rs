//! Kernels that write over one of their inputs.

use crate::index::Atom;
use crate::ir::{BufferId, Expr, ExprId, Kernel, Lanes, Stmt};

impl Kernel {
    /// The same kernel with results in the place of inputs: each pair is an input and the output that takes its place, bound once for reading
    /// and writing. `None` where an invocation reads another element of the input than the one it writes, where the two differ in element
    /// type, or where something is read after a store.
    pub fn in_place(&self, pairs: &[(BufferId, BufferId)]) -> Option<Kernel> {
        // Values of several results are computed before the first is stored.
        let first_store = self.body.iter().position(|s| matches!(s, Stmt::Store { .. }))?;
        let (before, stores) = self.body.split_at(first_store);
        let kept =
            |s: &Stmt| matches!(s, Stmt::Store { index, value, .. } if !reads_data(index) && (stores.len() == 1 || self.is_local(*value)));
        if !before.iter().all(|s| matches!(s, Stmt::Declare { .. })) || !stores.iter().all(kept) {
            return None;
        }
        for (at, &(input, output)) in pairs.iter().enumerate() {
            let (from, to) = (self.code.buffers.get(input.0 as usize)?, self.code.buffers.get(output.0 as usize)?);
            if from.dtype != to.dtype || from.written || pairs[..at].iter().any(|(i, o)| *i == input || *o == output) {
                return None;
            }
            let written = stores.iter().find_map(|s| match s {
                Stmt::Store { buffer, index, .. } if *buffer == output => Some(index),
                _ => None,
            })?;
            let own = |(expr, _): &(Expr, _)| !matches!(expr, Expr::Load { buffer, index } if *buffer == input && index != written);
            if !self.code.exprs.iter().all(own) {
                return None;
            }
        }
        // The inputs' bindings go; those after them move down.
        let place = |b: BufferId| {
            let b = pairs.iter().find(|(input, _)| *input == b).map_or(b, |(_, output)| *output);
            BufferId(b.0 - pairs.iter().filter(|(input, _)| *input < b).count() as u32)
        };
        let mut kernel = self.clone();
        let mut at = 0;
        kernel.code.buffers.retain(|_| {
            at += 1;
            pairs.iter().all(|(input, _)| input.0 != at - 1)
        });
        for (expr, _) in &mut kernel.code.exprs {
            if let Expr::Load { buffer, .. } = expr {
                *buffer = place(*buffer);
            }
        }
        for stmt in &mut kernel.body {
            if let Stmt::Store { buffer, .. } = stmt {
                *buffer = place(*buffer);
            }
        }
        Some(kernel)
    }

    fn is_local(&self, value: ExprId) -> bool {
        matches!(self.code.exprs.get(value.0 as usize), Some((Expr::Local(_), _)))
    }
}

/// Whether an index depends on values read from buffers.
fn reads_data(lanes: &Lanes) -> bool {
    lanes.0.iter().any(|i| i.terms().iter().any(|(atom, _)| matches!(atom, Atom::Data { .. })))
}
