//! Elementwise groups over equally many elements, and reductions of equally many rows of one length, become one kernel with several results:
//! where they read the same tensors, which are read once; where one reads what the other stores at its own place, which is stored and not
//! read; and where both are so small that their launches are what they cost.

use std::collections::{BTreeMap, BTreeSet};

use crate::compiler::fuse::{FusionPlan, Group, GroupKind, MAX_MEMBERS, is_leaf};
use crate::compiler::lower;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId, Op, Prim};
use kernels_gen::Target;
use kernels_gen::emit::Numerics;

/// Groups of at most this many elements are joined though they share nothing: a launch costs more than they do.
const SMALL: usize = 1 << 14;

/// Earlier groups that one group is compared with, the latest ones first.
const MAX_CANDIDATES: usize = 16;

/// What a kernel goes over. Kernels that become one go over the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Domain {
    /// Elements.
    Map(usize),
    /// Rows and their length.
    Reduce(usize, usize),
}

impl Domain {
    fn num_elems(self) -> usize {
        match self {
            Domain::Map(elems) => elems,
            Domain::Reduce(rows, cols) => rows * cols,
        }
    }
}

struct Joiner<'a> {
    graph: &'a Graph,
    target: &'a Target,
    numerics: Numerics,
    /// Groups by the number they had at first; `None` where one was joined to another.
    groups: Vec<Option<Group>>,
    /// The group that stores a node.
    maker: BTreeMap<NodeId, usize>,
    /// By group: tensors it reads.
    loads: Vec<BTreeSet<NodeId>>,
    /// By tensor: groups that read it.
    readers: BTreeMap<NodeId, BTreeSet<usize>>,
}

/// Joins the groups of `plan` where that is legal and pays, and puts them in an order in which each finds its operands computed.
pub(super) fn join(graph: &Graph, plan: FusionPlan, target: &Target, numerics: Numerics) -> Result<FusionPlan> {
    let loads: Vec<BTreeSet<NodeId>> = plan.groups.iter().map(|group| loads(graph, group)).collect();
    let mut readers: BTreeMap<NodeId, BTreeSet<usize>> = BTreeMap::new();
    for (at, loads) in loads.iter().enumerate() {
        loads.iter().for_each(|id| {
            readers.entry(*id).or_default().insert(at);
        });
    }
    let maker = plan.groups.iter().enumerate().map(|(at, group)| (group.root, at)).collect();
    let groups = plan.groups.into_iter().map(Some).collect();
    let mut joiner = Joiner { graph, target, numerics, groups, maker, loads, readers };
    // Small groups of each domain, in order.
    let mut small: BTreeMap<Domain, Vec<usize>> = BTreeMap::new();
    for at in 0..joiner.groups.len() {
        let Some(domain) = joiner.domain(at) else { continue };
        for candidate in joiner.candidates(at, small.get(&domain).map_or(&[], Vec::as_slice)) {
            if joiner.may_join(candidate, at, domain) {
                joiner.join(candidate, at);
            }
        }
        if domain.num_elems() <= SMALL {
            small.entry(domain).or_default().push(at);
        }
    }
    Ok(FusionPlan { groups: joiner.in_order()?, refusals: plan.refusals })
}

/// Tensors that the group reads.
fn loads(graph: &Graph, group: &Group) -> BTreeSet<NodeId> {
    let operands = group.members.iter().flat_map(|m| &graph.node(*m).inputs).copied();
    operands.filter(|id| !group.members.contains(id) && group.binds(graph, *id)).collect()
}

impl Joiner<'_> {
    fn group(&self, at: usize) -> Option<&Group> {
        self.groups.get(at).and_then(Option::as_ref)
    }

    /// What a group goes over; `None` where it joins no other.
    fn domain(&self, at: usize) -> Option<Domain> {
        let group = self.group(at)?;
        let ty = |id: NodeId| self.graph.ty(id);
        match group.kind {
            GroupKind::Map => Some(Domain::Map(ty(group.root).num_elems())),
            GroupKind::Reduce => group.members.iter().find_map(|id| match &self.graph.node(*id).op {
                Op::Prim(Prim::Reduce { axes, .. }) => {
                    let shape = &ty(self.graph.node(*id).inputs[0]).shape;
                    Some(Domain::Reduce(ty(*id).num_elems(), axes.iter().map(|axis| shape[*axis]).product()))
                }
                _ => None,
            }),
            GroupKind::Hero(_) | GroupKind::Serial(_) | GroupKind::Custom(_) => None,
        }
    }

    /// Earlier groups that it may pay to join: the makers and the other readers of what a group reads, and `small` ones.
    fn candidates(&self, at: usize, small: &[usize]) -> Vec<usize> {
        let makers = self.loads[at].iter().filter_map(|id| self.maker.get(id)).copied();
        let readers =
            self.loads[at].iter().filter_map(|id| self.readers.get(id)).flat_map(|all| all.range(..at).rev().take(MAX_CANDIDATES));
        let found: BTreeSet<usize> = makers.chain(readers.copied()).chain(small.iter().rev().take(MAX_CANDIDATES).copied()).collect();
        found.into_iter().rev().filter(|other| *other != at && self.domain(*other) == self.domain(at)).take(MAX_CANDIDATES).collect()
    }

    fn may_join(&self, from: usize, into: usize, domain: Domain) -> bool {
        let (Some(a), Some(b)) = (self.group(from), self.group(into)) else { return false };
        let members: BTreeSet<NodeId> = a.members.union(&b.members).copied().collect();
        let joined = Group { root: b.root, also: a.stored().chain(b.also.iter().copied()).collect(), kind: b.kind, members };
        if joined.members.len() > MAX_MEMBERS {
            return false;
        }
        let bound: BTreeSet<NodeId> = loads(self.graph, &joined).into_iter().chain(joined.stored()).collect();
        if bound.len() > self.target.max_storage_buffers as usize {
            return false;
        }
        // Tensors past one binding are bound in parts, kernel by kernel.
        if bound.iter().any(|id| self.graph.ty(*id).num_bytes() > self.target.max_binding_bytes) {
            return false;
        }
        if self.reaches(from, into) {
            return false;
        }
        match domain {
            Domain::Map(_) => self.reads_at_own_place(b, a),
            // Most of what the rows are made of must be shared, for the kernel that reads them keeps more in registers.
            Domain::Reduce(..) => {
                let shared = self.loads[from].intersection(&self.loads[into]).copied();
                let handed = self.loads[into].iter().copied().filter(|id| a.stored().any(|stored| stored == *id));
                let elems: usize = shared.chain(handed).map(|id| self.graph.ty(id).num_elems()).sum();
                let pays = domain.num_elems() <= SMALL || elems >= domain.num_elems() / 2;
                pays && lower::group(self.graph, &joined, self.target, self.numerics).is_ok()
            }
        }
    }

    /// Whether all that `group` reads of what `other` stores lies where the invocation itself computes it.
    fn reads_at_own_place(&self, group: &Group, other: &Group) -> bool {
        let stored: BTreeSet<NodeId> = other.stored().collect();
        let (mut open, mut seen) = (Vec::from_iter(group.stored()), BTreeSet::new());
        // Nodes whose elements are computed where those of the results are.
        while let Some(id) = open.pop() {
            if !seen.insert(id) || !group.members.contains(&id) {
                continue;
            }
            let node = self.graph.node(id);
            if matches!(&node.op, Op::Prim(Prim::Unary(_) | Prim::Binary(_) | Prim::Select | Prim::Cast(_) | Prim::Reshape(_))) {
                open.extend(&node.inputs);
            }
        }
        let moved = |id: &NodeId| {
            let node = self.graph.node(*id);
            let own = matches!(&node.op, Op::Prim(Prim::Unary(_) | Prim::Binary(_) | Prim::Select | Prim::Cast(_) | Prim::Reshape(_)));
            !(own && seen.contains(id)) && node.inputs.iter().any(|input| stored.contains(input))
        };
        !group.members.iter().any(moved)
    }

    /// Whether `into` needs a result of `from` that comes to it through another group.
    fn reaches(&self, from: usize, into: usize) -> bool {
        let makers = |at: usize| self.loads[at].iter().filter_map(|id| self.maker.get(id)).copied();
        let mut open: Vec<usize> = makers(into).filter(|at| *at != from).collect();
        // And the other way round: what was joined to `into` may be read before `from`.
        let mut back: Vec<usize> = makers(from).collect();
        let mut seen = BTreeSet::new();
        while let Some(at) = open.pop() {
            if at == from {
                return true;
            }
            if seen.insert(at) {
                open.extend(makers(at));
            }
        }
        seen.clear();
        while let Some(at) = back.pop() {
            if at == into {
                return true;
            }
            if seen.insert(at) {
                back.extend(makers(at));
            }
        }
        false
    }

    fn join(&mut self, from: usize, into: usize) {
        let Some(mut group) = self.groups[from].take() else { return };
        let Some(target) = self.groups[into].as_mut() else { return };
        for id in group.stored() {
            self.maker.insert(id, into);
        }
        target.also.insert(group.root);
        target.also.append(&mut group.also);
        target.members.append(&mut group.members);
        let read = std::mem::take(&mut self.loads[from]);
        for id in &read {
            self.readers.entry(*id).or_default().remove(&from);
        }
        for id in self.loads[into].iter() {
            self.readers.entry(*id).or_default().remove(&into);
        }
        self.loads[into] = loads(self.graph, target);
        for id in self.loads[into].iter() {
            self.readers.entry(*id).or_default().insert(into);
        }
        // What nobody else reads is not stored any more.
        let result = |id: &NodeId| self.graph.outputs().iter().any(|(_, output)| output == id);
        target.also.retain(|id| result(id) || self.readers.get(id).is_some_and(|all| !all.is_empty()));
    }

    /// The groups, each after the makers of what it reads, the earliest first where there is a choice.
    fn in_order(mut self) -> Result<Vec<Group>> {
        let mut waits: Vec<usize> = vec![0; self.groups.len()];
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); self.groups.len()];
        let mut ready = BTreeSet::new();
        for at in (0..self.groups.len()).filter(|at| self.groups[*at].is_some()) {
            let makers: BTreeSet<usize> =
                self.loads[at].iter().filter(|id| !is_leaf(self.graph.node(**id))).filter_map(|id| self.maker.get(id)).copied().collect();
            waits[at] = makers.len();
            makers.iter().for_each(|maker| after[*maker].push(at));
            if makers.is_empty() {
                ready.insert(at);
            }
        }
        let mut ordered = Vec::with_capacity(self.groups.len());
        while let Some(at) = ready.pop_first() {
            ordered.extend(self.groups[at].take());
            for &user in &after[at] {
                waits[user] -= 1;
                if waits[user] == 0 {
                    ready.insert(user);
                }
            }
        }
        match self.groups.iter().flatten().count() {
            0 => Ok(ordered),
            left => Err(Error::internal(format!("{left} groups wait for each other"))),
        }
    }
}
