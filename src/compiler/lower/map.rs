//! Groups without a reduction: each invocation computes four neighbouring elements of the result.

use crate::compiler::fuse::Group;
use crate::compiler::lower::{LoweredKernel, Lowering, bytes, flops, label, origins};
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
    let ty = graph.ty(group.root);
    // The last vec4 may reach past the result: buffers are padded to 16 bytes, and what lies there is never read as a result.
    let var = lowering.builder.var(ty.num_elems().div_ceil(4) as u64);
    let base = Index::from(var).mul(4);
    let positions: Vec<Index> = (0..4).map(|lane| base.offset(lane)).collect();
    let coords = positions.iter().map(|p| unflatten(p, &ty.shape)).collect();
    let value = lowering.value(group.root, &coords)?;
    let value = lowering.builder.widen(value, 4);
    let output = lowering.output();
    let body = vec![Stmt::Store { buffer: output, index: Lanes(positions), value }];
    let inputs: Vec<_> = lowering.buffers.iter().map(|(id, _)| *id).collect();
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
    let mut in_place = Vec::new();
    for (id, buffer) in &lowering.buffers {
        if let Some(variant) = kernel.in_place(*buffer) {
            in_place.push((*id, emit::kernel(&variant, numerics)?));
        }
    }
    Ok(LoweredKernel {
        choice: None,
        in_place,
        source: emit::kernel(&kernel, numerics)?,
        loops: kernel.to_string(),
        inputs,
        workgroups: fold_workgroups(kernel.grid.num_workgroups(kernel.workgroup_size), target.max_workgroups_per_dim)?,
    })
}
