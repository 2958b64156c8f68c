//! The memory plan: kernels become dispatches, values become slots.
//!
//! A value lives from the dispatch that writes it to the last one that reads it; a slot whose value is dead is taken again by the next
//! value that fits, and an elementwise kernel writes over an operand that dies with it. In one dispatch a slot has one use. Kernels for
//! parts of a group bind ranges of slots, one after another.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::compiler::chunk::Ranges;
use crate::compiler::dynamic::Bound;
use crate::compiler::fuse::FusionPlan;
use crate::compiler::lower::LoweredKernel;
use crate::compiler::{KernelInfo, Port, lower};
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId, Op, Prim};
use crate::plan::{Command, ExecutionPlan, SlotId, SlotRange, SlotRole};
use kernels_gen::KernelSource;

pub(super) struct Planned {
    pub plan: ExecutionPlan,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub constants: Vec<Port>,
    pub kernels: Vec<KernelInfo>,
}

/// The kernels of a group, and the ranges that those of parts bind.
pub(super) type Parts = Vec<(LoweredKernel, Ranges)>;

/// Gives the kernel that computes what a lowered one does, with the words of its parameter block.
pub(super) type Bind<'a> = &'a mut dyn FnMut(&KernelSource) -> Result<Bound>;

/// Plans dispatches and slots. Results may take the slots of inputs that are called as `donate` says.
pub(super) fn plan(graph: &Graph, fusion: &FusionPlan, kernels: &[Parts], donate: &[String], bind: Bind<'_>) -> Result<Planned> {
    let mut last_use: HashMap<NodeId, usize> = HashMap::new();
    for (at, parts) in kernels.iter().enumerate() {
        parts.iter().flat_map(|(kernel, _)| &kernel.inputs).for_each(|id| {
            last_use.insert(*id, at);
        });
    }
    // An input that is also a result is copied at the end, and stays what it is.
    let kept = |id: NodeId| graph.outputs().iter().any(|(_, output)| *output == id);
    let donated: Vec<NodeId> =
        graph.inputs().filter(|(name, id)| donate.iter().any(|d| d == name) && !kept(*id)).map(|(_, id)| id).collect();
    let taken = taken_by_results(graph, fusion, kernels, &donated, &last_use);
    let mut plan = ExecutionPlan::new();
    let mut place: HashMap<NodeId, SlotId> = HashMap::new();
    let mut inputs = Vec::new();
    for (name, id) in graph.inputs() {
        let ty = graph.ty(id);
        let role = if donated.contains(&id) { SlotRole::Donated } else { SlotRole::Input };
        let slot = plan.slot(name, ty.num_bytes(), role);
        place.insert(id, slot);
        inputs.push(Port { name: name.to_string(), ty: ty.clone(), slot });
    }
    // A node named twice as an output has one slot.
    let mut outputs = Vec::new();
    let mut output_slots: BTreeMap<NodeId, SlotId> = BTreeMap::new();
    for (name, id) in graph.outputs() {
        let ty = graph.ty(*id);
        let slot = *output_slots.entry(*id).or_insert_with(|| match taken.get(id) {
            Some(input) => place[input],
            None => plan.slot(name, ty.num_bytes(), SlotRole::Output),
        });
        outputs.push(Port { name: name.clone(), ty: ty.clone(), slot });
    }
    let constant = |plan: &mut ExecutionPlan, id: NodeId| match &graph.node(id).op {
        Op::Prim(Prim::Constant(c)) => {
            let bytes = c.tensor().bytes().to_vec();
            Ok(plan.slot(format!("constant_{}", id.0), bytes.len() as u64, SlotRole::Constant(Arc::new(bytes))))
        }
        _ => Err(Error::internal(format!("%{} is read before it is written", id.0))),
    };

    let mut sources: HashMap<String, Arc<KernelSource>> = HashMap::new();
    let mut free: Vec<SlotId> = Vec::new();
    let mut infos = Vec::new();
    for (at, (group, parts)) in fusion.groups.iter().zip(kernels).enumerate() {
        let inputs: BTreeSet<NodeId> = parts.iter().flat_map(|(kernel, _)| &kernel.inputs).copied().collect();
        for id in parts.iter().flat_map(|(kernel, _)| &kernel.inputs) {
            if !place.contains_key(id) {
                let slot = constant(&mut plan, *id)?;
                place.insert(*id, slot);
            }
        }
        let dies = |plan: &ExecutionPlan, id: &NodeId| {
            let temp = matches!(plan.slots[place[id].0 as usize].role, SlotRole::Temp);
            let given = donated.contains(id) && !taken.values().any(|input| input == id);
            (temp || given) && last_use.get(id) == Some(&at)
        };
        // A result that no caller keeps takes the place of an input that nobody needs any more, if the kernel allows it and the place
        // holds it: padding makes a result larger than its operand. Kernels of parts never allow it.
        let holds =
            |plan: &ExecutionPlan, id: &NodeId, stored: NodeId| plan.slots[place[id].0 as usize].bytes >= graph.ty(stored).num_bytes();
        let mut over: Vec<(NodeId, NodeId)> = Vec::new();
        if let [(kernel, _)] = parts.as_slice() {
            for stored in group.stored() {
                let may_take = |id: &NodeId| match output_slots.contains_key(&stored) {
                    false => dies(&plan, id) && holds(&plan, id, stored),
                    true => taken.get(&stored) == Some(id) && last_use.get(id) == Some(&at),
                };
                let dying = kernel.inputs.iter().filter(|id| may_take(id) && over.iter().all(|(input, _)| input != *id));
                let mut with = dying.map(|id| over.iter().copied().chain([(*id, stored)]).collect::<Vec<_>>());
                let found = with.find(|pairs| kernel.may_overwrite(pairs));
                over = found.unwrap_or(over);
            }
        }
        let mut slots: Vec<(NodeId, SlotId)> = Vec::new();
        for stored in group.stored() {
            let slot = match over.iter().find(|(_, result)| *result == stored) {
                Some((input, _)) => place[input],
                None => match output_slots.get(&stored) {
                    Some(slot) => *slot,
                    None => take(&mut plan, &mut free, graph.ty(stored).num_bytes()),
                },
            };
            slots.push((stored, slot));
        }
        for id in &inputs {
            if dies(&plan, id) && slots.iter().all(|(_, slot)| place[id] != *slot) {
                free.push(place[id]);
            }
        }
        for (kernel, ranges) in parts {
            let (source, params) = match &kernel.words {
                Some(words) => (Arc::new(kernel.source.clone()), words.clone()),
                None if over.is_empty() => bind(&kernel.source)?,
                None => bind(&kernel.over(&over)?)?,
            };
            let source = sources.entry(source.name.clone()).or_insert(source).clone();
            let range = |id: &NodeId, slot: SlotId| match ranges.bytes.get(id) {
                Some(&(offset_bytes, len)) => SlotRange { slot, offset_bytes, len_bytes: Some(len) },
                // A user's kernel may ask how long an array is; the slot may be longer than the value.
                None if kernel.words.is_some() => SlotRange { slot, offset_bytes: 0, len_bytes: Some(graph.ty(*id).num_bytes()) },
                None => slot.into(),
            };
            let read = kernel.inputs.iter().filter(|id| over.iter().all(|(input, _)| input != *id)).map(|id| range(id, place[id]));
            let bindings: Vec<SlotRange> = read.chain(slots.iter().map(|(stored, slot)| range(stored, *slot))).collect();
            plan.dispatch_ranges(&source, bindings, &params, kernel.workgroups);
            infos.push(KernelInfo {
                name: source.name.clone(),
                origins: lower::origins(graph, group),
                ty: graph.ty(group.root).clone(),
                flops: kernel.source.flops.eval(kernel.words.as_deref().unwrap_or_default()),
                bytes: match kernel.words {
                    Some(_) => lower::bytes(graph, group, &kernel.inputs),
                    None => kernel.source.bytes.eval(&[]),
                },
                group: at,
                choice: kernel.choice.clone(),
            });
        }
        place.extend(slots);
    }
    // Results that no kernel makes: inputs and constants handed through.
    for (id, to) in &output_slots {
        if place.contains_key(id) && fusion.groups.iter().any(|g| g.stored().any(|stored| stored == *id)) {
            continue;
        }
        let from = match place.get(id) {
            Some(slot) => *slot,
            None => constant(&mut plan, *id)?,
        };
        place.insert(*id, from);
        let bytes = graph.ty(*id).num_bytes().next_multiple_of(4);
        if bytes > 0 {
            plan.commands.push(Command::Copy { from, from_offset: 0, to: *to, to_offset: 0, bytes });
        }
    }
    plan.verify()?;
    let held = place.iter().filter(|(_, slot)| matches!(plan.slots[slot.0 as usize].role, SlotRole::Constant(_)));
    let port =
        |(id, slot): (&NodeId, &SlotId)| Port { name: plan.slots[slot.0 as usize].name.clone(), ty: graph.ty(*id).clone(), slot: *slot };
    let mut constants: Vec<Port> = held.map(port).collect();
    constants.sort_by_key(|port| port.slot);
    Ok(Planned { plan, inputs, outputs, constants, kernels: infos })
}

/// Results that take the slot of a donated input: written over it by the kernel that reads it last, or after that kernel.
fn taken_by_results(
    graph: &Graph,
    fusion: &FusionPlan,
    kernels: &[Parts],
    donated: &[NodeId],
    last_use: &HashMap<NodeId, usize>,
) -> HashMap<NodeId, NodeId> {
    let mut taken: HashMap<NodeId, NodeId> = HashMap::new();
    for &input in donated {
        let Some(&last) = last_use.get(&input) else { continue };
        let after = fusion.groups.iter().zip(kernels).enumerate().skip(last);
        let mut stored = after.flat_map(|(at, (group, parts))| group.stored().map(move |id| (at, parts, id)));
        let found = stored.find(|(at, parts, id)| {
            let fits = graph.ty(*id).num_bytes() == graph.ty(input).num_bytes() && !taken.contains_key(id);
            let over = *at > last || matches!(parts.as_slice(), [(kernel, _)] if kernel.may_overwrite(&[(input, *id)]));
            fits && over && graph.outputs().iter().any(|(_, output)| output == id)
        });
        if let Some((_, _, id)) = found {
            taken.insert(id, input);
        }
    }
    taken
}

/// The smallest free slot that fits, or a new one.
fn take(plan: &mut ExecutionPlan, free: &mut Vec<SlotId>, bytes: u64) -> SlotId {
    let fits = free.iter().enumerate().filter(|(_, s)| plan.slots[s.0 as usize].bytes >= bytes);
    match fits.min_by_key(|(_, s)| plan.slots[s.0 as usize].bytes).map(|(i, _)| i) {
        Some(i) => free.swap_remove(i),
        None => plan.slot(format!("temp_{}", plan.slots.len()), bytes, SlotRole::Temp),
    }
}

#[cfg(test)]
mod tests {
    use crate::compiler::{CompileOptions, Mode, compile};
    use crate::graph::{BinaryOp, GraphBuilder, Prim, TensorType, UnaryOp};
    use crate::plan::SlotRole;
    use kernels_gen::{DType, Target};

    fn temps(reused: bool) -> usize {
        let mut b = GraphBuilder::new();
        let x = b.input("x", TensorType::new(DType::F32, [5, 7])).expect("an input");
        let first = b.unary(UnaryOp::Neg, x).expect("neg");
        let second = b.unary(UnaryOp::Abs, first).expect("abs");
        let third = if reused { b.binary(BinaryOp::Add, second, first) } else { b.unary(UnaryOp::Exp, second) };
        b.output("y", third.expect("third")).expect("an output");
        let options = CompileOptions { mode: Mode::Eager, ..CompileOptions::default() };
        let compiled = compile(&b.finish(), &Target::webgpu(), &options).expect("compiles");
        compiled.plan().verify().expect("a sound plan");
        compiled.plan().slots.iter().filter(|s| s.role == SlotRole::Temp).count()
    }

    #[test]
    fn an_operand_that_dies_is_written_over_and_one_that_lives_is_not() {
        assert_eq!(temps(false), 1);
        assert_eq!(temps(true), 2);
    }

    #[test]
    fn a_result_larger_than_its_operand_has_a_place_of_its_own() {
        let mut b = GraphBuilder::new();
        let x = b.input("x", TensorType::new(DType::F32, [5, 7])).expect("an input");
        let x = b.unary(UnaryOp::Neg, x).expect("neg");
        // The rows added after the last leave all others where they are.
        let value = b.scalar(DType::F32, 1.0).expect("a constant");
        let padded = b.add(Prim::Pad { low: vec![0, 0], high: vec![9, 0] }, &[x, value]).expect("pad");
        let y = b.unary(UnaryOp::Exp, padded).expect("exp");
        b.output("y", y).expect("an output");
        let options = CompileOptions { mode: Mode::Eager, ..CompileOptions::default() };
        let compiled = compile(&b.finish(), &Target::webgpu(), &options).expect("compiles");
        let temps: Vec<u64> = compiled.plan().slots.iter().filter(|s| s.role == SlotRole::Temp).map(|s| s.bytes).collect();
        assert_eq!(temps, [5 * 7 * 4, 14 * 7 * 4]);
    }
}
