//! Kernels that write over one of their inputs.

use crate::index::Atom;
use crate::ir::{BufferId, Expr, Kernel, Lanes, Stmt};

impl Kernel {
    /// The same kernel with its result in the place of `input`, bound once for reading and writing; `None` where an invocation reads
    /// another element of the input than the one it writes, or where the two differ in element type. The kernel must store once.
    pub fn in_place(&self, input: BufferId) -> Option<Kernel> {
        let [Stmt::Store { buffer: output, index, value }] = self.body.as_slice() else { return None };
        let (from, to) = (self.code.buffers.get(input.0 as usize)?, self.code.buffers.get(output.0 as usize)?);
        if from.dtype != to.dtype || from.written {
            return None;
        }
        let own = |(expr, _): &(Expr, _)| !matches!(expr, Expr::Load { buffer, index: read } if *buffer == input && read != index);
        if !self.code.exprs.iter().all(own) || reads_data(index) {
            return None;
        }
        // The input's binding goes; those after it move down.
        let place = |b: BufferId| {
            let b = if b == input { *output } else { b };
            if b > input { BufferId(b.0 - 1) } else { b }
        };
        let mut kernel = self.clone();
        kernel.code.buffers.remove(input.0 as usize);
        for (expr, _) in &mut kernel.code.exprs {
            if let Expr::Load { buffer, .. } = expr {
                *buffer = place(*buffer);
            }
        }
        kernel.body = vec![Stmt::Store { buffer: place(*output), index: index.clone(), value: *value }];
        Some(kernel)
    }
}

/// Whether an index depends on values read from buffers.
fn reads_data(lanes: &Lanes) -> bool {
    lanes.0.iter().any(|i| i.terms().iter().any(|(atom, _)| matches!(atom, Atom::Data { .. })))
}
