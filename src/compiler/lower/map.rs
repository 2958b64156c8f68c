//! Groups without a reduction: each invocation computes four neighbouring elements of the result, or of each result.

use std::collections::HashMap;

use crate::compiler::fuse::Group;
use crate::compiler::lower::{LoweredKernel, Lowering, Overwriting, bytes, flops, label, origins};
use crate::error::Result;
use crate::graph::Graph;
use crate::plan::fold_workgroups;
use kernels_gen::Target;
use kernels_gen::emit::{self, Numerics};
use kernels_gen::index::{Index, unflatten};
use kernels_gen::ir::{Grid, Kernel, Lanes, Stmt};

/// Invocations of a workgroup.
const WORKGROUP: u32 = 64;

pub(super) fn lower(graph: &Graph, group: &Group, target: &Target, numerics: Numerics) -> Result<LoweredKernel> {
    let mut lowering = Lowering::new(graph, group);
    // The last vec4 may reach past the result: buffers are padded to 16 bytes, and what lies there is never read as a result.
    let var = lowering.builder.var(graph.ty(group.root).num_elems().div_ceil(4) as u64);
    let base = Index::from(var).mul(4);
    let positions: Vec<Index> = (0..4).map(|lane| base.offset(lane)).collect();
    let mut values = Vec::new();
    for id in group.stored() {
        let coords = positions.iter().map(|p| unflatten(p, &graph.ty(id).shape)).collect();
        let value = lowering.value(id, &coords)?;
        values.push((id, lowering.builder.widen(value, 4)));
    }
    // Several results are kept until all are known, so that any of them may be written over an operand.
    let mut body = Vec::new();
    if values.len() > 1 {
        for (_, value) in &mut values {
            let local = lowering.builder.local(lowering.builder.ty(*value));
            body.push(Stmt::Declare { local, value: *value });
            *value = lowering.builder.get(local);
        }
    }
    let inputs: Vec<_> = lowering.buffers.iter().map(|(id, _)| *id).collect();
    let mut buffers: HashMap<_, _> = lowering.buffers.iter().copied().collect();
    for (nth, (id, value)) in values.into_iter().enumerate() {
        let buffer = lowering.output_of(id, nth);
        buffers.insert(id, buffer);
        body.push(Stmt::Store { buffer, index: Lanes(positions.clone()), value });
    }
    let kernel = Kernel {
        label: label(graph, group),
        origins: origins(graph, group),
        grid: Grid::Invocations { var },
        workgroup_size: WORKGROUP,
        code: std::mem::take(&mut lowering.builder).finish().on(target),
        body,
        flops: flops(graph, group),
        bytes: bytes(graph, group, &inputs),
    };
    Ok(LoweredKernel {
        words: None,
        choice: None,
        source: emit::kernel(&kernel, numerics)?,
        loops: kernel.to_string(),
        inputs,
        workgroups: fold_workgroups(kernel.grid.num_workgroups(kernel.workgroup_size), target.max_workgroups_per_dim)?,
        overwriting: Some(Overwriting { kernel, buffers, numerics }),
    })
}
