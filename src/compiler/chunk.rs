//! Tensors past one binding: a group's kernel is made for some rows of the outermost axis, and several dispatches of it bind ranges.
//!
//! The outermost axis of a tensor is the first whose size is not 1: its rows lie one after another. Rows of the result determine rows of
//! what it is computed from, node by node; what has no such rows is bound whole in every dispatch, or is a reason to refuse.

use std::collections::{BTreeMap, BTreeSet};

use crate::compiler::fuse::{Group, GroupKind, is_free};
use crate::compiler::{binding_error, lower};
use crate::error::{Error, Result};
use crate::graph::{Graph, GraphBuilder, Node, NodeId, Op, Prim, TensorType};
use kernels_gen::Target;

/// What one dispatch of a group binds of its tensors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ranges {
    /// First byte and length, by node; nodes that are not named are bound whole.
    pub bytes: BTreeMap<NodeId, (u64, u64)>,
}

/// A group for some of its rows.
struct Rows {
    graph: Graph,
    group: Group,
    /// The nodes of the whole graph that the inputs of this one stand for.
    whole: BTreeMap<NodeId, NodeId>,
}

/// The first axis whose size is not 1.
fn outermost(shape: &[usize]) -> Option<usize> {
    shape.iter().position(|&size| size != 1)
}

/// Tensors that the group's kernel binds, its result included.
fn bound(graph: &Graph, group: &Group) -> BTreeSet<NodeId> {
    let operands = group.members.iter().flat_map(|m| &graph.node(*m).inputs).copied();
    operands.filter(|id| !group.members.contains(id) && group.binds(graph, *id)).chain(group.stored()).collect()
}

/// Lowers a group with `lower`, as one kernel or, where a tensor passes one binding of the target, as kernels for parts of its rows.
pub(super) fn in_parts(
    graph: &Graph,
    group: &Group,
    target: &Target,
    lower: impl Fn(&Graph, &Group) -> Result<lower::LoweredKernel>,
) -> Result<Vec<(lower::LoweredKernel, Ranges)>> {
    let bound = bound(graph, group);
    let past = |id: &&NodeId| graph.ty(**id).num_bytes() > target.max_binding_bytes;
    let Some(&largest) = bound.iter().filter(past).max_by_key(|id| graph.ty(**id).num_bytes()) else {
        return Ok(vec![(lower(graph, group)?, Ranges::default())]);
    };
    let refused = |why: String| binding_error(graph, largest, target, &why);
    let split = split(graph, group).map_err(&refused)?;
    if let Some(whole) = bound.iter().filter(past).find(|id| !split.contains(id)) {
        return Err(binding_error(graph, *whole, target, "every part of the result needs all of it"));
    }
    let rows = |id: NodeId| outermost(&graph.ty(id).shape).map_or(1, |axis| graph.ty(id).shape[axis] as u64);
    let total = rows(group.root);
    let taken: Vec<NodeId> = bound.iter().filter(|id| split.contains(id)).copied().collect();
    let step =
        step(total, &split, &rows, &taken, graph).ok_or_else(|| refused("its rows cannot be cut at multiples of 256 bytes".into()))?;
    // Rows of the result in one part: as many as one binding holds of each tensor.
    let fits =
        |id: &NodeId| (u128::from(target.max_binding_bytes) * u128::from(total) / u128::from(graph.ty(*id).num_bytes().max(1))) as u64;
    let most = taken.iter().map(fits).min().unwrap_or(total) / step * step;
    if most == 0 {
        return Err(refused(format!("{step} rows of its outermost axis, the fewest that begin at a multiple of 256 bytes, are too many")));
    }
    let mut made: Vec<(u64, lower::LoweredKernel)> = Vec::new();
    let mut parts = Vec::new();
    let mut first = 0;
    while first < total {
        let count = most.min(total - first);
        let kernel = match made.iter().find(|(n, _)| *n == count) {
            Some((_, kernel)) => kernel.clone(),
            None => {
                let kernel = lower_rows(graph, group, &split, (count, total), &lower)?;
                made.push((count, kernel.clone()));
                kernel
            }
        };
        let range = |id: &NodeId| {
            let bytes = u128::from(graph.ty(*id).num_bytes());
            let at = |row: u64| (bytes * u128::from(row) / u128::from(total)) as u64;
            (*id, (at(first), at(first + count) - at(first)))
        };
        parts.push((kernel, Ranges { bytes: taken.iter().map(range).collect() }));
        first += count;
    }
    Ok(parts)
}

fn lower_rows(
    graph: &Graph,
    group: &Group,
    split: &BTreeSet<NodeId>,
    part: (u64, u64),
    lower: &impl Fn(&Graph, &Group) -> Result<lower::LoweredKernel>,
) -> Result<lower::LoweredKernel> {
    let rows = take_rows(graph, group, split, part)?;
    let mut kernel = lower(&rows.graph, &rows.group)?;
    for input in &mut kernel.inputs {
        *input = *rows.whole.get(input).ok_or_else(|| Error::internal("a part binds a tensor that its group does not"))?;
    }
    // Parts of one buffer are read and written in turn; none may write over another's operand.
    kernel.overwriting = None;
    Ok(kernel)
}

/// The fewest rows of the result that are whole rows of every node and begin at a multiple of 256 bytes in every tensor; `None` where the
/// rows of a tensor are no whole bytes or the number is past counting.
fn step(total: u64, split: &BTreeSet<NodeId>, rows: &impl Fn(NodeId) -> u64, taken: &[NodeId], graph: &Graph) -> Option<u64> {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let whole_rows = split.iter().map(|&id| total / gcd(total, rows(id)).max(1));
    let aligned = taken.iter().map(|&id| {
        let unit = total.checked_mul(256)?;
        Some(unit / gcd(unit, graph.ty(id).num_bytes()).max(1))
    });
    whole_rows.map(Some).chain(aligned).try_fold(1u64, |all, one| {
        let one = one?;
        (all / gcd(all, one).max(1)).checked_mul(one)
    })
}

/// The nodes of a group, and the tensors it binds, that have rows for the rows of the result. All others are needed whole.
fn split(graph: &Graph, group: &Group) -> std::result::Result<BTreeSet<NodeId>, String> {
    let mut split = BTreeSet::from([group.root]);
    let mut whole = BTreeSet::new();
    if outermost(&graph.ty(group.root).shape).is_none() {
        return Err("the result has one element".into());
    }
    for &id in group.members.iter().rev() {
        let node = graph.node(id);
        if !split.contains(&id) {
            whole.extend(&node.inputs);
            continue;
        }
        for (operand, &input) in node.inputs.iter().enumerate() {
            let splits = operand_splits(graph, id, operand).ok_or_else(|| {
                format!("{} of %{} does not keep the rows of its outermost axis together", crate::ops::name(&node.op), id.0)
            })?;
            if splits {
                split.insert(input)
            } else {
                whole.insert(input)
            };
        }
    }
    match split.intersection(&whole).find(|id| !is_free(graph.node(**id))) {
        Some(id) => Err(format!("%{} is needed both in parts and whole", id.0)),
        None => Ok(split),
    }
}

/// Whether rows of a node need rows of its operand alone; `Some(false)`: they need all of it. `None`: rows of the one are no rows of the
/// other.
fn operand_splits(graph: &Graph, id: NodeId, operand: usize) -> Option<bool> {
    let node = graph.node(id);
    let Op::Prim(prim) = &node.op else { return None };
    let axis = outermost(&node.ty.shape)?;
    let inner = &graph.ty(*node.inputs.get(operand)?).shape;
    let same = |at: usize| (outermost(inner) == Some(at)).then_some(true);
    match prim {
        Prim::Unary(_) | Prim::Binary(_) | Prim::Select | Prim::Cast(_) | Prim::Reshape(_) => Some(true),
        Prim::Transpose(perm) => same(perm[axis]),
        Prim::Broadcast { dims, .. } => match dims.iter().position(|&d| d == axis) {
            Some(d) if inner[d] != 1 => same(d),
            _ => Some(false),
        },
        Prim::Slice { starts, steps, sizes } => {
            if starts[axis] == 0 && steps[axis] == 1 && sizes[axis] == inner[axis] {
                same(axis)
            } else {
                None
            }
        }
        Prim::Pad { .. } if operand == 1 => Some(false),
        Prim::Pad { low, high } => {
            if low[axis] == 0 && high[axis] == 0 {
                same(axis)
            } else {
                None
            }
        }
        Prim::Window { sizes, .. } => {
            if axis + sizes.len() < inner.len() {
                same(axis)
            } else {
                None
            }
        }
        Prim::Concat { axis: along } => {
            if *along == axis {
                None
            } else {
                same(axis)
            }
        }
        Prim::Reduce { axes, .. } => same((0..inner.len()).filter(|d| !axes.contains(d)).nth(axis)?),
        Prim::Dot | Prim::DotI8 => match (axis, operand) {
            (0, _) => same(0),
            (1, 0) => same(1),
            (1, _) => Some(false),
            _ => None,
        },
        Prim::Attention { causal, .. } => match (axis, operand) {
            (0, _) => same(0),
            (1, 0 | 3) if !causal => same(1),
            (1, _) if !causal => Some(false),
            _ => None,
        },
        Prim::Conv { .. } => match (axis, operand) {
            (0, 0) => same(0),
            (0, _) => Some(false),
            _ => None,
        },
        // Their kernels run over all that they take.
        Prim::Scan { .. } | Prim::Argsort { .. } | Prim::MergeRuns { .. } | Prim::SearchSorted | Prim::Segment { .. } => None,
        // Nobody knows which rows a user's kernel reads.
        Prim::Custom(_) => None,
        Prim::Gather { axis: along } => {
            let places = graph.ty(node.inputs[1]).shape.len();
            match operand {
                0 if axis < *along => same(axis),
                0 if axis < along + places => Some(false),
                1 if axis < *along => Some(false),
                1 if axis < along + places => same(axis - along),
                _ => None,
            }
        }
        Prim::Input { .. } | Prim::Constant(_) | Prim::Iota { .. } => None,
    }
}

/// The group for `count` of the `total` rows of its result, over inputs of as many rows.
fn take_rows(graph: &Graph, group: &Group, split: &BTreeSet<NodeId>, (count, total): (u64, u64)) -> Result<Rows> {
    let mut builder = GraphBuilder::new();
    builder.copy_origins(graph);
    let mut new: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    let (mut whole, mut repeated) = (BTreeMap::new(), Vec::new());
    let operands = group.members.iter().flat_map(|m| &graph.node(*m).inputs).copied();
    let nodes: BTreeSet<NodeId> = operands.chain(group.members.iter().copied()).collect();
    for &id in &nodes {
        let node = graph.node(id);
        builder.set_origin(Some(node.origin));
        let mut shape = node.ty.shape.clone();
        if split.contains(&id)
            && let Some(axis) = outermost(&shape)
        {
            shape[axis] = (shape[axis] as u64 * count / total) as usize;
        }
        let ty = TensorType::new(node.ty.dtype, shape);
        let made = if !group.members.contains(&id) && !is_free(node) {
            builder.input(format!("in{}", id.0), ty)?
        } else {
            let inputs: Vec<NodeId> = node.inputs.iter().filter_map(|i| new.get(i)).copied().collect();
            resized(&mut builder, node, ty, &inputs)?
        };
        if !group.members.contains(&id) {
            whole.insert(made, id);
            // A repeated value is written out, not loaded.
            repeated.extend(matches!(builder.graph().node(made).op, Op::Prim(Prim::Broadcast { .. })).then_some(made));
        }
        new.insert(id, made);
    }
    let place = |id: NodeId| new.get(&id).copied().ok_or_else(|| Error::internal("a member without a place in its part"));
    let kind = match group.kind {
        GroupKind::Hero(hero) => GroupKind::Hero(place(hero)?),
        kind => kind,
    };
    let members = group.members.iter().map(|&m| place(m)).chain(repeated.into_iter().map(Ok)).collect::<Result<_>>()?;
    let also = group.also.iter().map(|&id| place(id)).collect::<Result<_>>()?;
    let group = Group { root: place(group.root)?, also, kind, members };
    Ok(Rows { graph: builder.finish(), group, whole })
}

/// A node with the type it has in a part.
fn resized(builder: &mut GraphBuilder, node: &Node, ty: TensorType, inputs: &[NodeId]) -> Result<NodeId> {
    let Op::Prim(prim) = &node.op else { return Err(Error::internal("a composite reached the memory plan")) };
    let prim = match prim {
        Prim::Reshape(_) => Prim::Reshape(ty.shape),
        Prim::Broadcast { dims, .. } => Prim::Broadcast { shape: ty.shape, dims: dims.clone() },
        Prim::Slice { starts, steps, .. } => Prim::Slice { starts: starts.clone(), steps: steps.clone(), sizes: ty.shape },
        Prim::Iota { axis, .. } if outermost(&node.ty.shape) == Some(*axis) && ty != node.ty => {
            return Err(Error::unsupported("a count along the axis that is cut"));
        }
        Prim::Iota { axis, .. } => Prim::Iota { ty, axis: *axis },
        Prim::Constant(constant) if ty != node.ty => {
            let value = constant.splat().ok_or_else(|| Error::internal("a constant that is no single value is bound"))?;
            let scalar = builder.scalar(ty.dtype, value)?;
            return builder.broadcast_to(scalar, &ty.shape);
        }
        other => other.clone(),
    };
    builder.add(prim, inputs)
}
