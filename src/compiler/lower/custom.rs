//! Groups of one node that a user's kernel computes: the kernel stays as it was written.

use crate::compiler::lower::LoweredKernel;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId, Op, Prim};
use crate::ops::custom::Workgroups;
use crate::plan::fold_workgroups;
use kernels_gen::Target;

pub(super) fn lower(graph: &Graph, id: NodeId, target: &Target) -> Result<LoweredKernel> {
    let node = graph.node(id);
    let Op::Prim(Prim::Custom(call)) = &node.op else {
        return Err(Error::internal("a group around a user's kernel has none"));
    };
    let (source, launch, most) = (call.op().source(), call.launch(), target.max_workgroups_per_dim);
    let workgroups = match launch.workgroups {
        _ if node.ty.num_elems() == 0 => [0, 1, 1],
        Workgroups::Linear(count) => fold_workgroups(count, most)?,
        Workgroups::Grid(grid) if grid.iter().all(|&n| n <= most) => grid,
        Workgroups::Grid(grid) => {
            return Err(Error::limit(format!(
                "kernel `{}` is to run on {grid:?} workgroups, target `{}` takes {most} in a dimension; give `Workgroups::Linear`",
                call.op().name(),
                target.name
            )));
        }
    };
    Ok(LoweredKernel {
        source: source.clone(),
        choice: None,
        loops: format!("a user's kernel, {}", call.summary()),
        inputs: node.inputs.clone(),
        workgroups,
        overwriting: None,
        words: Some(launch.params.clone()),
    })
}
