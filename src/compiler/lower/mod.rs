//! Fusion groups to loop IR: one group becomes one kernel.
//!
//! The value of a node is a function of the coordinates of its elements. `Lowering::value` inlines a group's members into that
//! function: views change coordinates, elementwise operations combine values, and what the group does not hold is loaded. A
//! coordinate list is given for each of one or four lanes.

mod custom;
mod hero;
mod map;
mod reduce;
mod serial;

pub(super) use hero::holds_attention;

use std::collections::HashMap;

pub(super) use hero::Variants;

use crate::compiler::fuse::{Group, GroupKind};
use crate::compiler::tune::Tuning;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Graph, NodeId, Op, Prim, TensorType, UnaryOp};
use crate::ops;
use kernels_gen::emit::{self, Numerics};
use kernels_gen::heroes::tiles::Candidates;
use kernels_gen::index::{Index, flatten, unflatten};
use kernels_gen::ir::{BufferId, Builder, ExprId, Kernel, LocalId};
use kernels_gen::scalar::Literal;
use kernels_gen::{DType, KernelSource, ScalarType, Target};

/// Coordinates of one element per lane.
type Coords = Vec<Vec<Index>>;

/// A kernel with the nodes it binds.
#[derive(Debug, Clone)]
pub struct LoweredKernel {
    /// The kernel.
    pub source: KernelSource,
    /// The configuration of a hero.
    pub choice: Option<HeroChoice>,
    /// Printed loop IR, or the hero's problem and configuration.
    pub loops: String,
    /// Nodes it reads, in order of binding; the nodes it writes are bound last, in the order of [`Group::stored`].
    pub inputs: Vec<NodeId>,
    /// Workgroups in x, y, z.
    pub workgroups: [u32; 3],
    /// What can write over its inputs, where something can.
    pub overwriting: Option<Overwriting>,
    /// The words of the parameter block of a user's kernel, which runs as it was written; `None` for a generated kernel, whose numbers
    /// stand in its text.
    pub words: Option<Vec<u32>>,
}

/// The loop IR of a kernel whose results may take the place of inputs.
#[derive(Debug, Clone)]
pub struct Overwriting {
    kernel: Kernel,
    buffers: HashMap<NodeId, BufferId>,
    numerics: Numerics,
}

impl LoweredKernel {
    fn overwriting(&self, pairs: &[(NodeId, NodeId)]) -> Option<(Kernel, Numerics)> {
        let all = self.overwriting.as_ref()?;
        let buffers = |(input, stored): &(NodeId, NodeId)| Some((*all.buffers.get(input)?, *all.buffers.get(stored)?));
        Some((all.kernel.in_place(&pairs.iter().map(buffers).collect::<Option<Vec<_>>>()?)?, all.numerics))
    }

    /// Whether stored nodes can take the place of inputs; each pair is an input and the stored node.
    pub fn may_overwrite(&self, pairs: &[(NodeId, NodeId)]) -> bool {
        self.overwriting(pairs).is_some()
    }

    /// The kernel whose stored nodes take the place of inputs, which are not bound apart from them.
    pub fn over(&self, pairs: &[(NodeId, NodeId)]) -> Result<KernelSource> {
        let (kernel, numerics) = self.overwriting(pairs).ok_or_else(|| Error::internal("a kernel writes over an input that it reads"))?;
        Ok(emit::kernel(&kernel, numerics)?)
    }
}

/// The configuration that a hero's kernel has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeroChoice {
    /// What is tuned as one: the kernel's kind, the class of its problem and what is fused with it.
    pub key: String,
    /// Name of the configuration.
    pub config: String,
    /// Whether a measurement chose it; else the table did.
    pub tuned: bool,
}

/// Who chooses the configurations of heroes.
#[derive(Debug, Clone, Copy)]
pub enum Chooser<'a> {
    /// The tables.
    Table,
    /// The tuning, and the tables where it has no choice that is valid.
    Tuning(&'a Tuning),
    /// The candidate of that name, and no other.
    Named(&'a str),
}

/// Lowers one group with the configurations of the tables. An error says why the group cannot be one kernel.
pub fn group(graph: &Graph, group: &Group, target: &Target, numerics: Numerics) -> Result<LoweredKernel> {
    group_as(graph, group, target, numerics, Chooser::Table)
}

/// [`group`] with the configurations of `chooser`.
pub fn group_as(graph: &Graph, group: &Group, target: &Target, numerics: Numerics, chooser: Chooser<'_>) -> Result<LoweredKernel> {
    match group.kind {
        GroupKind::Map => map::lower(graph, group, target, numerics),
        GroupKind::Reduce => reduce::lower(graph, group, target, numerics),
        GroupKind::Hero(hero) => hero::lower(graph, group, hero, target, numerics, chooser),
        GroupKind::Serial(node) => serial::lower(graph, group, node, target, numerics),
        GroupKind::Custom(node) => custom::lower(graph, node, target),
    }
}

/// What the tuner can choose from for a group; `None` for a group without a hero.
pub(super) fn variants(graph: &Graph, group: &Group, target: &Target, numerics: Numerics, which: Candidates) -> Result<Option<Variants>> {
    match group.kind {
        GroupKind::Hero(hero) => hero::variants(graph, group, hero, target, numerics, which).map(Some),
        GroupKind::Map | GroupKind::Reduce | GroupKind::Serial(_) | GroupKind::Custom(_) => Ok(None),
    }
}

/// What a hero's epilogue knows of the hero's value.
struct HeroValue {
    node: NodeId,
    /// Row-major position of the value, per lane.
    position: Vec<Index>,
    value: ExprId,
}

/// The state of lowering one group.
struct Lowering<'a> {
    graph: &'a Graph,
    group: &'a Group,
    builder: Builder,
    buffers: Vec<(NodeId, BufferId)>,
    memo: HashMap<(NodeId, Coords), ExprId>,
    /// Row-major position of the present row, per lane, and the finished reductions of that row.
    row: Vec<Index>,
    reduced: HashMap<NodeId, LocalId>,
    hero: Option<HeroValue>,
}

impl<'a> Lowering<'a> {
    fn new(graph: &'a Graph, group: &'a Group) -> Self {
        let (memo, reduced) = (HashMap::new(), HashMap::new());
        Lowering { graph, group, builder: Builder::new(), buffers: Vec::new(), memo, row: Vec::new(), reduced, hero: None }
    }

    fn ty(&self, id: NodeId) -> &'a TensorType {
        self.graph.ty(id)
    }

    /// The buffer a node is loaded from.
    fn buffer(&mut self, id: NodeId) -> BufferId {
        if let Some((_, buffer)) = self.buffers.iter().find(|(n, _)| *n == id) {
            return *buffer;
        }
        let buffer = self.builder.buffer(format!("in{}", self.buffers.len()), self.ty(id).dtype, false);
        self.buffers.push((id, buffer));
        buffer
    }

    /// The buffer the group's root is written to; to be made after all loads, so that it is bound last.
    fn output(&mut self) -> BufferId {
        self.output_of(self.group.root, 0)
    }

    /// The buffer the `nth` stored node of the group is written to.
    fn output_of(&mut self, id: NodeId, nth: usize) -> BufferId {
        let name = if nth == 0 { "out".to_string() } else { format!("out{nth}") };
        self.builder.buffer(name, self.ty(id).dtype, true)
    }

    /// Value of `id` at the coordinates of each lane.
    fn value(&mut self, id: NodeId, coords: &Coords) -> Result<ExprId> {
        let key = (id, coords.clone());
        if let Some(&known) = self.memo.get(&key) {
            return Ok(known);
        }
        let value = self.compute(id, coords)?;
        self.memo.insert(key, value);
        Ok(value)
    }

    fn flat(&self, id: NodeId, coords: &Coords) -> Vec<Index> {
        coords.iter().map(|c| flatten(c, &self.ty(id).shape)).collect()
    }

    fn literal(&mut self, dtype: DType, value: f64) -> ExprId {
        self.builder.literal(Literal::from_f64(dtype.scalar(), value))
    }

    fn compute(&mut self, id: NodeId, coords: &Coords) -> Result<ExprId> {
        let node = self.graph.node(id);
        let Op::Prim(prim) = &node.op else {
            return Err(Error::internal(format!("composite {} reached lowering", ops::name(&node.op))));
        };
        // Values that need no memory are written out wherever they are used.
        match prim {
            Prim::Constant(constant) if let Some(value) = constant.splat() => return Ok(self.literal(node.ty.dtype, value)),
            Prim::Iota { axis, .. } => {
                let index = self.builder.index(coords.iter().map(|c| c[*axis].clone()).collect());
                return Ok(self.builder.cast(node.ty.dtype.scalar(), index));
            }
            _ => {}
        }
        if self.hero.as_ref().is_some_and(|h| h.node == id) {
            return self.hero_value(id, coords);
        }
        if !self.group.members.contains(&id) {
            let (flat, buffer) = (self.flat(id, coords), self.buffer(id));
            return Ok(self.builder.load(buffer, flat));
        }
        let at = |this: &mut Self, operand: usize, coords: &Coords| this.value(node.inputs[operand], coords);
        let shape_of = |operand: usize| &self.graph.ty(node.inputs[operand]).shape;
        match prim {
            Prim::Input { .. } | Prim::Constant(_) | Prim::Iota { .. } => {
                Err(Error::internal(format!("{} is a member of a group", ops::name(&node.op))))
            }
            Prim::Unary(op) => {
                let x = at(self, 0, coords)?;
                if *op == UnaryOp::IsNan && !self.ty(node.inputs[0]).dtype.is_float() {
                    return Ok(self.builder.literal(Literal::Bool(false)));
                }
                if self.computes_in_f16(id) {
                    let x = self.builder.cast(ScalarType::F16, x);
                    let value = self.builder.unary(*op, x);
                    return Ok(self.builder.cast(ScalarType::F32, value));
                }
                let value = self.builder.unary(*op, x);
                Ok(self.builder.narrow(node.ty.dtype, value))
            }
            Prim::Binary(op) => {
                let (a, b) = (at(self, 0, coords)?, at(self, 1, coords)?);
                if self.builder.ty(a).scalar == ScalarType::Bool && !matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor) {
                    return self.binary_bool(*op, a, b);
                }
                if self.computes_in_f16(id) {
                    let (a, b) = (self.builder.cast(ScalarType::F16, a), self.builder.cast(ScalarType::F16, b));
                    let value = self.builder.binary(*op, a, b);
                    return Ok(self.builder.cast(ScalarType::F32, value));
                }
                let value = self.builder.binary(*op, a, b);
                Ok(self.builder.narrow(node.ty.dtype, value))
            }
            Prim::Select => {
                let (c, t, f) = (at(self, 0, coords)?, at(self, 1, coords)?, at(self, 2, coords)?);
                Ok(self.builder.select(c, t, f))
            }
            Prim::Cast(to) => {
                let (from, x) = (self.ty(node.inputs[0]).dtype, at(self, 0, coords)?);
                Ok(self.cast(from, *to, x))
            }
            Prim::Reshape(_) => {
                let inner = coords.iter().map(|c| unflatten(&flatten(c, &node.ty.shape), shape_of(0))).collect();
                at(self, 0, &inner)
            }
            Prim::Transpose(perm) => {
                let inner = |c: &Vec<Index>| {
                    let mut inner = c.clone();
                    perm.iter().enumerate().for_each(|(i, &p)| inner[p] = c[i].clone());
                    inner
                };
                at(self, 0, &coords.iter().map(inner).collect())
            }
            Prim::Broadcast { dims, .. } => {
                let sizes = shape_of(0);
                let inner = |c: &Vec<Index>| {
                    let of = |(i, &size): (usize, &usize)| if size == 1 { Index::from(0) } else { c[dims[i]].clone() };
                    sizes.iter().enumerate().map(of).collect()
                };
                at(self, 0, &coords.iter().map(inner).collect())
            }
            Prim::Slice { starts, steps, .. } => {
                let inner = |c: &Vec<Index>| {
                    let of = |(d, i): (usize, &Index)| i.mul(steps[d] as i64).offset(starts[d] as i64);
                    c.iter().enumerate().map(of).collect()
                };
                at(self, 0, &coords.iter().map(inner).collect())
            }
            Prim::Window { strides, dilations, sizes } => {
                let spatial = sizes.len();
                let outer = node.ty.shape.len() - 2 * spatial;
                let inner = |c: &Vec<Index>| {
                    let mut inner = c[..outer].to_vec();
                    for s in 0..spatial {
                        let (o, k) = (&c[outer + s], &c[outer + spatial + s]);
                        inner.push(o.mul(strides[s] as i64).add(&k.mul(dilations[s] as i64)));
                    }
                    inner
                };
                at(self, 0, &coords.iter().map(inner).collect())
            }
            Prim::Pad { low, .. } => {
                let sizes = shape_of(0);
                let inner: Coords = coords.iter().map(|c| c.iter().zip(low).map(|(i, &l)| i.offset(-(l as i64))).collect()).collect();
                let mut inside = self.builder.literal(Literal::Bool(true));
                for (d, &size) in sizes.iter().enumerate() {
                    let test = self.builder.in_bounds(inner.iter().map(|c| c[d].clone()).collect(), size as i64);
                    inside = self.builder.binary(BinaryOp::And, inside, test);
                }
                let around = at(self, 1, &vec![Vec::new(); coords.len()])?;
                if self.builder.known_bool(inside) == Some(false) {
                    return Ok(around);
                }
                let value = at(self, 0, &inner)?;
                Ok(self.builder.select(inside, value, around))
            }
            Prim::Concat { axis } => self.concat(&node.inputs, *axis, coords),
            Prim::Gather { axis } => {
                let (data, indices) = (shape_of(0), shape_of(1));
                let index_coords = coords.iter().map(|c| c[*axis..axis + indices.len()].to_vec()).collect();
                let index = at(self, 1, &index_coords)?;
                let size = data[*axis] as i64;
                if size == 0 {
                    return Err(Error::unsupported(format!("Gather from axis {axis} of size 0")));
                }
                let last = self.builder.literal(Literal::I32((size - 1).min(i64::from(i32::MAX)) as i32));
                let zero = self.builder.literal(Literal::I32(0));
                let index = self.builder.binary(BinaryOp::Min, index, last);
                let index = self.builder.binary(BinaryOp::Max, index, zero);
                let lanes = self.builder.data_index(index, size, coords.len() as u8);
                let inner = coords.iter().zip(lanes).map(|(c, i)| {
                    let mut inner = c[..*axis].to_vec();
                    inner.push(i);
                    inner.extend_from_slice(&c[axis + indices.len()..]);
                    inner
                });
                at(self, 0, &inner.collect())
            }
            Prim::Reduce { .. } => {
                let Some(&local) = self.reduced.get(&id) else {
                    return Err(Error::unsupported("a reduction is used before its loop"));
                };
                // The row's own coordinates are taken as they are: the algebra does not find every position again from its coordinates.
                let rows = self.row_lanes(coords.len());
                let own = rows.iter().zip(coords).all(|(row, c)| unflatten(row, &node.ty.shape) == *c);
                if !own && self.flat(id, coords) != rows {
                    return Err(Error::unsupported("a reduction is used at another row than its own"));
                }
                Ok(self.builder.get(local))
            }
            Prim::Dot
            | Prim::DotI8
            | Prim::Attention { .. }
            | Prim::Conv { .. }
            | Prim::Scan { .. }
            | Prim::Argsort { .. }
            | Prim::MergeRuns { .. }
            | Prim::SearchSorted
            | Prim::Custom(_)
            | Prim::Segment { .. } => Err(Error::unsupported(format!("{} has no value before its kernel ends", ops::name(&node.op)))),
        }
    }

    /// Whether an elementwise operation is one that `decompose` left to f16: its value is f16, which the kernel holds as f32 between
    /// operations that have no f16.
    fn computes_in_f16(&self, id: NodeId) -> bool {
        self.ty(id).dtype == DType::F16
    }

    /// Arithmetic and order of truth values, which WGSL lacks: through `u32`.
    fn binary_bool(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> Result<ExprId> {
        let (a, b) = (self.builder.cast(ScalarType::U32, a), self.builder.cast(ScalarType::U32, b));
        let value = self.builder.binary(op, a, b);
        Ok(self.builder.cast(ScalarType::Bool, value))
    }

    /// The row's position, for as many lanes as asked: rows are either all one or one per lane.
    fn row_lanes(&self, lanes: usize) -> Vec<Index> {
        if self.row.len() == lanes { self.row.clone() } else { vec![self.row[0].clone(); lanes] }
    }

    fn hero_value(&mut self, id: NodeId, coords: &Coords) -> Result<ExprId> {
        let flat = self.flat(id, coords);
        match &self.hero {
            Some(hero) if hero.position == flat => Ok(hero.value),
            Some(hero) if hero.position.len() == 4 && flat.len() == 1 => {
                let lane = hero.position.iter().position(|p| *p == flat[0]);
                let value = hero.value;
                let lane = lane.ok_or_else(|| Error::unsupported("the epilogue moves elements"))?;
                Ok(self.builder.lane(value, lane as u8))
            }
            _ => Err(Error::unsupported("the epilogue uses the result at another place than its own")),
        }
    }

    fn cast(&mut self, from: DType, to: DType, x: ExprId) -> ExprId {
        match (from, to) {
            (DType::F32 | DType::F16, DType::I8 | DType::U8) => {
                let (low, high) = if to == DType::I8 { (-128, 127) } else { (0, 255) };
                let x = self.builder.cast(ScalarType::I32, x);
                let (low, high) = (self.builder.literal(Literal::I32(low)), self.builder.literal(Literal::I32(high)));
                let x = self.builder.binary(BinaryOp::Max, x, low);
                let x = self.builder.binary(BinaryOp::Min, x, high);
                self.builder.cast(to.scalar(), x)
            }
            _ => {
                let x = self.builder.cast(to.scalar(), x);
                self.builder.narrow(to, x)
            }
        }
    }

    fn concat(&mut self, inputs: &[NodeId], axis: usize, coords: &Coords) -> Result<ExprId> {
        let mut offset = 0i64;
        let mut parts = Vec::new();
        for &input in inputs {
            let size = self.ty(input).shape[axis] as i64;
            let inner: Coords = coords
                .iter()
                .map(|c| {
                    let mut inner = c.clone();
                    inner[axis] = c[axis].offset(-offset);
                    inner
                })
                .collect();
            offset += size;
            if size > 0 {
                let inside = self.builder.in_bounds(inner.iter().map(|c| c[axis].clone()).collect(), size);
                parts.push((inside, self.value(input, &inner)?));
            }
        }
        let Some((_, mut value)) = parts.pop() else {
            return Err(Error::internal("an empty concatenation reached lowering"));
        };
        while let Some((inside, part)) = parts.pop() {
            value = self.builder.select(inside, part, value);
        }
        Ok(value)
    }
}

/// What a group's kernel is called: its kind, up to four of its operations, and the element type of its result.
fn label(graph: &Graph, group: &Group) -> String {
    let mut names: Vec<&str> = Vec::new();
    for &id in &group.members {
        let name = match &graph.node(id).op {
            Op::Prim(Prim::Unary(op)) => op.name(),
            Op::Prim(Prim::Binary(op)) => op.name(),
            Op::Prim(Prim::Reduce { op, .. }) => op.name(),
            Op::Prim(Prim::Select) => "select",
            Op::Prim(Prim::Cast(_)) => "cast",
            Op::Prim(Prim::Gather { .. }) => "gather",
            Op::Prim(Prim::Concat { .. }) => "concat",
            Op::Prim(Prim::Scan { op, .. } | Prim::Segment { op, .. }) => op.name(),
            _ => continue,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let kind = match group.kind {
        GroupKind::Map if names.is_empty() => "copy",
        GroupKind::Map => "map",
        GroupKind::Reduce => "reduce",
        GroupKind::Hero(hero) => match graph.node(hero).op {
            Op::Prim(Prim::Conv { .. }) => "conv",
            Op::Prim(Prim::Attention { .. }) => "attention",
            _ => "gemm",
        },
        GroupKind::Serial(node) => match graph.node(node).op {
            Op::Prim(Prim::Scan { .. }) => "scan",
            Op::Prim(Prim::Segment { .. }) => "segment",
            Op::Prim(Prim::SearchSorted) => "search",
            Op::Prim(Prim::MergeRuns { .. }) => "merge",
            _ => "sort",
        },
        GroupKind::Custom(_) => "custom",
    };
    let shown = &names[names.len().saturating_sub(4)..];
    let parts: Vec<&str> = std::iter::once(kind).chain(shown.iter().copied()).chain([graph.ty(group.root).dtype.name()]).collect();
    parts.join("_")
}

/// Names of the operations of the user's program in a group.
pub(super) fn origins(graph: &Graph, group: &Group) -> Vec<String> {
    // A repeated constant is one node wherever it is used, and would name the first operation that used it in every kernel.
    let repeats = |id: &NodeId| matches!(graph.node(*id).op, Op::Prim(Prim::Broadcast { .. }));
    let own = group.members.iter().filter(|id| !repeats(id) || group.stored().any(|stored| stored == **id));
    let mut names: Vec<String> = Vec::new();
    for &id in own {
        let name = &graph.origins()[graph.node(id).origin.0 as usize];
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Floating-point operations of a group's elementwise operations and reductions; integer work and comparisons count alike.
fn flops(graph: &Graph, group: &Group) -> u64 {
    let one = |&id: &NodeId| {
        let node = graph.node(id);
        match &node.op {
            Op::Prim(Prim::Unary(_) | Prim::Binary(_) | Prim::Select) => node.ty.num_elems() as u64,
            Op::Prim(Prim::Reduce { .. } | Prim::Scan { .. } | Prim::Segment { .. }) => graph.ty(node.inputs[0]).num_elems() as u64,
            Op::Prim(Prim::DotI8) => 8 * (node.ty.num_elems() * graph.ty(node.inputs[0]).shape[2]) as u64,
            Op::Prim(Prim::Dot) => 2 * (node.ty.num_elems() * graph.ty(node.inputs[0]).shape[2]) as u64,
            Op::Prim(Prim::Attention { causal, .. }) => hero::attention_problem(graph, node, *causal).map_or(0, |p| p.flops()),
            Op::Prim(Prim::Conv { .. }) => {
                let weights = &graph.ty(node.inputs[1]).shape;
                2 * (node.ty.num_elems() * weights[1..].iter().product::<usize>()) as u64
            }
            _ => 0,
        }
    };
    group.members.iter().map(one).sum()
}

/// Bytes of the tensors a group reads and writes, each once.
pub(super) fn bytes(graph: &Graph, group: &Group, inputs: &[NodeId]) -> u64 {
    inputs.iter().copied().chain(group.stored()).map(|id| graph.ty(id).num_bytes()).sum()
}
