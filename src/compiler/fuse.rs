//! Fusion: which nodes become one kernel.
//!
//! Nodes are visited from the results back to the inputs. A node joins the group of its users, if they are all in one group and the
//! group can compute it where it needs it; otherwise its value is stored and it becomes the root of a group of its own. Views and values
//! that need no memory join every group that uses them. A refusal keeps its reason, for `explain`.

use std::collections::{BTreeMap, BTreeSet};

use crate::compiler::{GroupInfo, Mode, RefusalInfo, lower};
use crate::graph::{Graph, Node, NodeId, Op, Prim, UnaryOp};
use crate::ops;
use kernels_gen::emit::Numerics;
use kernels_gen::{DType, Target};

/// What a group's kernel is built around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    /// Elementwise operations and views.
    Map,
    /// Reductions over one set of rows.
    Reduce,
    /// A matrix product, an attention or a convolution, the node given.
    Hero(NodeId),
    /// An operation with a loop of its own (a scan, a sort, a search, sums of segments), the node given.
    Serial(NodeId),
    /// A user's kernel, the node given; it is a group of its own.
    Custom(NodeId),
}

/// Nodes that one kernel computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The node whose value is stored.
    pub root: NodeId,
    /// Further nodes whose values are stored: of as many elements in a group of kind `Map`, of as many or one a row in one of kind `Reduce`,
    /// none in others.
    pub also: BTreeSet<NodeId>,
    /// Kind.
    pub kind: GroupKind,
    /// All nodes computed, the root included.
    pub members: BTreeSet<NodeId>,
}

impl Group {
    /// Every node whose value is stored: the root, then the others.
    pub fn stored(&self) -> impl Iterator<Item = NodeId> + Clone + '_ {
        std::iter::once(self.root).chain(self.also.iter().copied())
    }

    /// Whether the kernel binds an operand that the group does not compute: generated kernels write out values that need no memory, a
    /// user's kernel reads every operand.
    pub(super) fn binds(&self, graph: &Graph, operand: NodeId) -> bool {
        matches!(self.kind, GroupKind::Custom(_)) || !is_free(graph.node(operand))
    }
}

/// Why a node did not join the group of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The node.
    pub node: NodeId,
    /// Root of the group it did not join; `None` where it has users in several groups.
    pub group: Option<NodeId>,
    /// Reason.
    pub reason: String,
}

/// The groups of a graph, in an order in which each finds its operands computed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FusionPlan {
    /// Groups.
    pub groups: Vec<Group>,
    /// Fusions that were not made.
    pub refusals: Vec<Refusal>,
}

/// The most nodes a group may hold: texts past this size compile slowly and gain nothing.
pub(super) const MAX_MEMBERS: usize = 256;

/// How often a hero may compute a cheap operand again before storing it is better.
const MAX_HERO_RECOMPUTE: u64 = 16;

/// Whether a node's value is in memory before the graph runs.
pub fn is_leaf(node: &Node) -> bool {
    matches!(&node.op, Op::Prim(Prim::Input { .. })) || matches!(&node.op, Op::Prim(Prim::Constant(c)) if c.splat().is_none())
}

/// Whether a node's value needs no memory at all.
pub(super) fn is_free(node: &Node) -> bool {
    match &node.op {
        Op::Prim(Prim::Constant(c)) => c.splat().is_some(),
        Op::Prim(Prim::Iota { .. }) => true,
        _ => false,
    }
}

/// Whether a node only renames the elements of its operand, or widens them as a load does.
fn is_view(graph: &Graph, id: NodeId) -> bool {
    let op = &graph.node(id).op;
    matches!(op, Op::Prim(Prim::Reshape(_) | Prim::Transpose(_) | Prim::Broadcast { .. } | Prim::Slice { .. } | Prim::Window { .. }))
        || graph.widens(id)
}

struct Fuser<'a> {
    graph: &'a Graph,
    target: &'a Target,
    mode: Mode,
    numerics: Numerics,
    groups: BTreeMap<NodeId, Group>,
    /// Roots of the groups that hold a user of the node.
    users: Vec<BTreeSet<NodeId>>,
    /// By group: nodes outside it that it loads.
    loads: BTreeMap<NodeId, BTreeSet<NodeId>>,
    refusals: Vec<Refusal>,
}

/// Partitions `graph` into groups for `target`.
pub fn fuse(graph: &Graph, target: &Target, mode: Mode, numerics: Numerics) -> FusionPlan {
    let users = vec![BTreeSet::new(); graph.nodes().len()];
    let mut fuser = Fuser { graph, target, mode, numerics, groups: BTreeMap::new(), users, loads: BTreeMap::new(), refusals: Vec::new() };
    let outputs: BTreeSet<NodeId> = graph.outputs().iter().map(|(_, id)| *id).collect();
    for (id, node) in graph.iter().rev() {
        if outputs.contains(&id) {
            // A result that is an input or a constant is copied by a kernel of its own, made with the outputs' slots.
            if !is_leaf(node) {
                fuser.store(id);
            }
            continue;
        }
        if is_leaf(node) || fuser.users[id.index()].is_empty() {
            continue;
        }
        fuser.place(id, node);
    }
    fuser.refusals.reverse();
    FusionPlan { groups: fuser.groups.into_values().collect(), refusals: fuser.refusals }
}

impl Fuser<'_> {
    fn kind(&self, id: NodeId) -> GroupKind {
        match &self.graph.node(id).op {
            Op::Prim(Prim::Reduce { .. }) => GroupKind::Reduce,
            Op::Prim(Prim::Dot | Prim::DotI8 | Prim::Attention { .. } | Prim::Conv { .. }) => GroupKind::Hero(id),
            Op::Prim(Prim::Scan { .. } | Prim::Argsort { .. } | Prim::MergeRuns { .. } | Prim::SearchSorted | Prim::Segment { .. }) => {
                GroupKind::Serial(id)
            }
            Op::Prim(Prim::Custom(_)) => GroupKind::Custom(id),
            _ => GroupKind::Map,
        }
    }

    /// Makes the node the root of a group of its own.
    fn store(&mut self, id: NodeId) {
        self.groups.insert(id, Group { root: id, also: BTreeSet::new(), kind: self.kind(id), members: BTreeSet::from([id]) });
        self.loads.insert(id, BTreeSet::new());
        self.reach(id, id);
    }

    /// Notes that the group of `root` needs the operands of its member `id`.
    fn reach(&mut self, root: NodeId, id: NodeId) {
        let inputs = &self.graph.node(id).inputs;
        let stored: Vec<NodeId> = inputs.iter().copied().filter(|&input| !self.needs_no_memory(input)).collect();
        if let Some(loads) = self.loads.get_mut(&root) {
            loads.remove(&id);
            loads.extend(stored);
            inputs.iter().for_each(|input| {
                self.users[input.index()].insert(root);
            });
        }
    }

    fn join(&mut self, root: NodeId, id: NodeId) {
        let kind = self.kind(id);
        if let Some(group) = self.groups.get_mut(&root) {
            group.members.insert(id);
            if kind != GroupKind::Map {
                group.kind = kind;
            }
        }
        self.reach(root, id);
    }

    fn place(&mut self, id: NodeId, node: &Node) {
        let users: Vec<NodeId> = self.users[id.index()].iter().copied().collect();
        let custom = |root: &&NodeId| self.groups.get(root).is_some_and(|group| matches!(group.kind, GroupKind::Custom(_)));
        if let Some(&root) = users.iter().find(custom) {
            self.refusals.push(Refusal { node: id, group: Some(root), reason: "a user's kernel reads its operands from memory".into() });
            // What costs nothing is written out in the other groups all the same.
            let others = users.iter().filter(|root| !custom(root) && (is_view(self.graph, id) || self.needs_no_memory(id)));
            let joined: Vec<NodeId> = others.copied().filter(|root| self.may_join(*root, id, node, true).is_ok()).collect();
            if !is_free(node) {
                joined.into_iter().for_each(|root| self.join(root, id));
            }
            self.store(id);
            return;
        }
        if is_free(node) {
            // Its value is written out where it is used; membership names it in `explain`.
            return;
        }
        let several = users.len() > 1;
        let mut reason = None;
        for &root in &users {
            if let Err(why) = self.may_join(root, id, node, several) {
                reason = Some((root, why));
                break;
            }
        }
        match reason {
            None => users.iter().for_each(|&root| self.join(root, id)),
            Some((root, reason)) => {
                self.refusals.push(Refusal { node: id, group: Some(root), reason });
                self.store(id);
            }
        }
    }

    /// Whether a node may be computed inside a group; the reason if not.
    fn may_join(&self, root: NodeId, id: NodeId, node: &Node, several: bool) -> Result<(), String> {
        let Some(group) = self.groups.get(&root) else {
            return Err("the group of its user is unknown".into());
        };
        let view = is_view(self.graph, id);
        if self.needs_no_memory(id) {
            return Ok(());
        }
        if several && !view && !self.unpacks(id) {
            return Err("several kernels use it; stored once, it is computed once".into());
        }
        if self.mode == Mode::Eager && !view && node.origin != self.graph.node(root).origin {
            return Err("eager mode runs each operation by itself".into());
        }
        if group.members.len() >= MAX_MEMBERS {
            return Err(format!("the group holds {MAX_MEMBERS} nodes already"));
        }
        if let Some(loads) = self.loads.get(&root) {
            let more = node.inputs.iter().filter(|i| !self.needs_no_memory(**i) && !loads.contains(i)).count();
            let present = loads.len() - usize::from(loads.contains(&id));
            let (needed, limit) = (present + more + 1, self.target.max_storage_buffers as usize);
            if more > 1 && needed > limit {
                return Err(format!("the kernel would bind {needed} buffers, the target has {limit}"));
            }
        }
        match (group.kind, self.kind(id)) {
            (GroupKind::Hero(hero), GroupKind::Map) => self.may_feed_hero(group, hero, id, node),
            (GroupKind::Reduce, GroupKind::Map) => self.may_feed_reduce(group, id, node),
            (GroupKind::Map, GroupKind::Map) => Ok(()),
            (GroupKind::Hero(_), GroupKind::Hero(_)) => Err("a kernel is built around one matrix product, convolution or attention".into()),
            (GroupKind::Hero(_), GroupKind::Reduce) => {
                Err("a reduction cannot run inside a matrix product, convolution or attention".into())
            }
            (GroupKind::Reduce, GroupKind::Hero(_)) => {
                Err("a reduction needs the whole result of a matrix product, convolution or attention".into())
            }
            (GroupKind::Serial(serial), GroupKind::Map) => self.may_feed_serial(group, serial, id),
            (GroupKind::Custom(_), _) => Err("a user's kernel reads its operands from memory".into()),
            (_, GroupKind::Custom(_)) => Err("a user's kernel stores its result".into()),
            (GroupKind::Serial(_), _) => Err("a kernel has one operation with a loop of its own".into()),
            (GroupKind::Reduce | GroupKind::Hero(_), GroupKind::Serial(_)) => Err("it runs in a loop of its own".into()),
            (GroupKind::Map, GroupKind::Reduce | GroupKind::Hero(_) | GroupKind::Serial(_)) | (GroupKind::Reduce, GroupKind::Reduce) => {
                self.try_lower(group, id)
            }
        }
    }

    /// Lowers the group with the node in it: what cannot be lowered is refused.
    fn try_lower(&self, group: &Group, id: NodeId) -> Result<(), String> {
        let mut tried = group.clone();
        tried.members.insert(id);
        if self.kind(id) != GroupKind::Map {
            tried.kind = self.kind(id);
        }
        lower::group(self.graph, &tried, self.target, self.numerics).map(|_| ()).map_err(|e| e.to_string())
    }

    /// Whether a value of each row of a reduction of more than `domain` elements is what the node starts from: that kernel can end with it.
    fn ends_larger_reduction(&self, id: NodeId, domain: usize) -> bool {
        let rows = self.graph.ty(id).num_elems();
        let (mut open, mut seen) = (vec![id], BTreeSet::new());
        while let Some(next) = open.pop() {
            let node = self.graph.node(next);
            if node.ty.num_elems() != rows || seen.len() > MAX_MEMBERS || !seen.insert(next) {
                continue;
            }
            match self.kind(next) {
                GroupKind::Reduce if self.graph.ty(node.inputs[0]).num_elems() > domain => return true,
                GroupKind::Map => open.extend(&node.inputs),
                _ => {}
            }
        }
        false
    }

    /// Whether a node rounds to f16 what a hero whose rows are whole words, and elementwise operations after it, compute.
    fn narrows_hero(&self, id: NodeId) -> bool {
        if !matches!(self.graph.node(id).op, Op::Prim(Prim::Cast(DType::F16))) {
            return false;
        }
        let elems = self.graph.ty(id).num_elems();
        let (mut open, mut seen) = (vec![id], BTreeSet::new());
        while let Some(next) = open.pop() {
            let node = self.graph.node(next);
            if node.ty.num_elems() != elems || seen.len() > MAX_MEMBERS || !seen.insert(next) {
                continue;
            }
            match self.kind(next) {
                GroupKind::Hero(_) if node.ty.shape.last().is_some_and(|row| row.is_multiple_of(4)) => return true,
                GroupKind::Map => open.extend(&node.inputs),
                _ => {}
            }
        }
        false
    }

    /// A node that stands before a reduction is computed for each element and each loop over the columns.
    fn may_feed_reduce(&self, group: &Group, id: NodeId, node: &Node) -> Result<(), String> {
        let reductions = group.members.iter().filter(|m| matches!(self.kind(**m), GroupKind::Reduce));
        let largest = reductions.map(|m| self.graph.ty(self.graph.node(*m).inputs[0]).num_elems()).max().unwrap_or(0);
        if !is_view(self.graph, id) && self.ends_larger_reduction(id, largest) {
            return Err("it ends the kernel of its operand instead".into());
        }
        if self.narrows_hero(id) {
            return Err("it ends the kernel of its operand instead, which stores half the bytes so".into());
        }
        if is_view(self.graph, id) || !is_heavy(self.graph, node) {
            return Ok(());
        }
        let domain = group
            .members
            .iter()
            .filter(|m| matches!(self.kind(**m), GroupKind::Reduce))
            .map(|m| self.graph.ty(self.graph.node(*m).inputs[0]).num_elems());
        let domain = domain.max().unwrap_or(0);
        let rows = group.members.iter().find(|m| matches!(self.kind(**m), GroupKind::Reduce)).map_or(0, |m| self.graph.ty(*m).num_elems());
        let elems = self.graph.ty(id).num_elems().max(1);
        // A value of each row is computed once a row.
        if elems == rows || domain / elems < 4 {
            return Ok(());
        }
        Err(format!("each of its {elems} elements would be computed {} times", domain / elems))
    }

    /// Operands of a hero are loaded several times each; a node on the way to one is computed as often.
    fn may_feed_hero(&self, group: &Group, hero: NodeId, id: NodeId, node: &Node) -> Result<(), String> {
        if !self.feeds(group, &self.graph.node(hero).inputs, id) {
            return Ok(());
        }
        if is_view(self.graph, id) {
            return Ok(());
        }
        let simple = matches!(
            node.op,
            Op::Prim(Prim::Pad { .. } | Prim::Gather { .. } | Prim::Cast(_) | Prim::Select | Prim::Unary(_) | Prim::Binary(_))
        );
        if !simple || is_heavy(self.graph, node) {
            return Err("it costs too much to be computed at each load of the matrix product, convolution or attention".into());
        }
        let loads = self.hero_loads_per_element(group, hero, id);
        // What is packed in memory is read so by products, however often. Convolutions have few weights, each for many pixels: theirs are written out
        // once.
        let is_conv = matches!(self.graph.node(hero).op, Op::Prim(Prim::Conv { .. }));
        if self.unpacks(id) && (!is_conv || loads <= MAX_HERO_RECOMPUTE) {
            return Ok(());
        }
        // A value that another kernel computes anyway takes this operation as its epilogue.
        let upstream = |i: &NodeId| {
            let base = self.base(*i);
            !is_leaf(self.graph.node(base)) && !is_free(self.graph.node(base))
        };
        if node.inputs.iter().any(upstream) {
            return Err("it ends the kernel of its operand instead".into());
        }
        if loads > MAX_HERO_RECOMPUTE {
            return Err(format!("the matrix product, convolution or attention would compute it {loads} times"));
        }
        Ok(())
    }

    /// A scan or a sum of segments takes each element once, a sort or a search several times.
    fn may_feed_serial(&self, group: &Group, serial: NodeId, id: NodeId) -> Result<(), String> {
        let once = matches!(self.graph.node(serial).op, Op::Prim(Prim::Scan { .. } | Prim::Segment { .. }));
        if once || is_view(self.graph, id) || !self.feeds(group, &self.graph.node(serial).inputs, id) {
            return Ok(());
        }
        Err("a sort or a search would compute it at each comparison".into())
    }

    /// Whether a value is taken out of words (U32) that hold several elements each, what it is computed from having at most half its bytes; or is
    /// computed from nothing in memory.
    fn unpacks(&self, id: NodeId) -> bool {
        let (mut open, mut seen, mut bytes, mut words) = (vec![id], BTreeSet::new(), 0u64, false);
        while let Some(next) = open.pop() {
            let node = self.graph.node(next);
            if seen.len() > MAX_MEMBERS || !seen.insert(next) || is_free(node) {
                continue;
            }
            if is_leaf(node) || self.kind(next) != GroupKind::Map {
                bytes = bytes.saturating_add(node.ty.num_bytes());
                words |= node.ty.dtype == DType::U32;
            } else {
                open.extend(&node.inputs);
            }
        }
        (words || bytes == 0) && bytes.saturating_mul(2) <= self.graph.ty(id).num_bytes()
    }

    /// Whether a node is a view of a value that is written out wherever it is used.
    fn needs_no_memory(&self, id: NodeId) -> bool {
        is_free(self.graph.node(self.base(id)))
    }

    /// The node a chain of views starts from.
    fn base(&self, id: NodeId) -> NodeId {
        let node = self.graph.node(id);
        if is_view(self.graph, id) { self.base(node.inputs[0]) } else { id }
    }

    /// Whether a node is used on the way to one of a hero's operands rather than after it.
    fn feeds(&self, group: &Group, operands: &[NodeId], id: NodeId) -> bool {
        let mut open = operands.to_vec();
        while let Some(next) = open.pop() {
            if next == id {
                return true;
            }
            if group.members.contains(&next) {
                open.extend(&self.graph.node(next).inputs);
            }
        }
        false
    }

    /// How often a hero loads an element of its operand, an estimate with the smallest tile.
    fn hero_loads_per_element(&self, group: &Group, hero: NodeId, id: NodeId) -> u64 {
        let node = self.graph.node(hero);
        let elems = (self.graph.ty(id).num_elems() as u64).max(1);
        let multiplications = match &node.op {
            Op::Prim(Prim::Attention { .. }) => {
                let scores = node.ty.num_elems() as u64 / (node.ty.shape[2].max(1) as u64) * self.graph.ty(node.inputs[1]).shape[1] as u64;
                // A mask is loaded once a score.
                if self.feeds(group, &node.inputs[3..], id) {
                    return scores / elems;
                }
                scores * node.ty.shape[2] as u64
            }
            Op::Prim(Prim::Dot | Prim::DotI8) => node.ty.num_elems() as u64 * self.graph.ty(node.inputs[0]).shape[2] as u64,
            _ => node.ty.num_elems() as u64 * self.graph.ty(node.inputs[1]).shape[1..].iter().product::<usize>() as u64,
        };
        multiplications / 8 / elems
    }
}

/// Whether an operation costs much more than a load. Picking whole matrices does not: one index serves all of a matrix.
fn is_heavy(graph: &Graph, node: &Node) -> bool {
    matches!(
        &node.op,
        Op::Prim(
            Prim::Unary(UnaryOp::Exp | UnaryOp::Log | UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Tanh | UnaryOp::Erf)
                | Prim::Binary(kernels_gen::scalar::BinaryOp::Pow)
                | Prim::Concat { .. }
        )
    ) || matches!(node.op, Op::Prim(Prim::Gather { axis }) if axis > 0 || graph.ty(node.inputs[0]).rank() < 3)
}

impl FusionPlan {
    /// The groups for people.
    pub fn group_infos(&self, graph: &Graph) -> Vec<GroupInfo> {
        let info = |group: &Group| GroupInfo {
            kind: match group.kind {
                GroupKind::Map => "map",
                GroupKind::Reduce => "reduce",
                GroupKind::Hero(_) => "hero",
                GroupKind::Serial(_) => "serial",
                GroupKind::Custom(_) => "custom",
            }
            .to_string(),
            root: group.stored().map(|id| format!("%{}", id.0)).collect::<Vec<_>>().join(", "),
            ty: graph.ty(group.root).clone(),
            members: group.members.iter().map(|m| named(graph, *m)).collect(),
        };
        self.groups.iter().map(info).collect()
    }

    /// The refused fusions for people.
    pub fn refusal_infos(&self, graph: &Graph) -> Vec<RefusalInfo> {
        let info = |refusal: &Refusal| RefusalInfo {
            node: named(graph, refusal.node),
            group: refusal.group.map(|g| format!("%{}", g.0)),
            reason: refusal.reason.clone(),
        };
        self.refusals.iter().map(info).collect()
    }

    /// Readable text, for dumps and goldens.
    pub fn print(&self, graph: &Graph) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        for GroupInfo { kind, root, ty, members } in self.group_infos(graph) {
            let _ = writeln!(text, "{kind} -> {root}: {ty} {{{}}}", members.join(" "));
        }
        for RefusalInfo { node, group, reason } in self.refusal_infos(graph) {
            let group = group.map_or(String::new(), |g| format!(" into {g}"));
            let _ = writeln!(text, "not fused: {node}{group}: {reason}");
        }
        text
    }
}

fn named(graph: &Graph, id: NodeId) -> String {
    format!("%{}:{}", id.0, ops::name(&graph.node(id).op))
}
