//! What a compiled function knows of its earlier runs: the parts it has compiled, and which to expect.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::capture::compiled_fn::{CaptureOptions, Sizes};
use crate::capture::difference::{Difference, Reason};
use crate::capture::sizes;
use crate::capture::tensor::Data;
use crate::capture::trace::{Break, Kind, Recorded, TraceNode};
use crate::compiler::{CompileOptions, Compiled, Mode, Templates, compile, compile_like, learn};
use crate::device::{Device, DeviceTensor};
use crate::error::{Error, Result};
use crate::graph::{Graph, GraphBuilder, NodeId};
use crate::plan::SlotId;
use crate::session::Session;
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// Most parts that are kept loaded; past it the one that was not used for longest goes.
const MAX_PARTS: usize = 64;

/// A recorded stretch of a function, compiled and loaded: from its start or a graph break to the next one or its end.
pub(super) struct Part {
    pub id: u32,
    pub nodes: Vec<TraceNode>,
    pub outputs: Vec<u32>,
    pub donated: Vec<u32>,
    /// Place among the parts of a call when it was recorded first.
    pub place: usize,
    pub difference: Difference,
    pub seconds: f64,
    pub hits: AtomicU64,
    session: Session,
    mode: Mode,
    /// Whether its kernels are those that sizes share.
    shared: bool,
    /// Slots of the inputs with their numbers.
    inputs: Vec<(SlotId, u32)>,
    /// Slots of the constants that vary, with their places among those.
    varying: Vec<(SlotId, u32)>,
    results: Vec<(SlotId, DType, Vec<usize>)>,
    last_use: AtomicU64,
}

impl Part {
    pub fn compiled(&self) -> &Compiled {
        self.session.compiled()
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Runs it on those inputs and values of the varying constants, without waiting; one value for each output.
    pub fn run(&self, leaves: &[Arc<Data>], varying: &[Arc<HostTensor>]) -> Result<Vec<Arc<Data>>> {
        let missing = || Error::internal("a part of a compiled function was run with too few inputs");
        let tensor = |(slot, number): &(SlotId, u32)| Ok((*slot, &leaves.get(*number as usize).ok_or_else(missing)?.tensor));
        let inputs: Vec<(SlotId, &DeviceTensor)> = self.inputs.iter().map(tensor).collect::<Result<_>>()?;
        let bytes = |(slot, place): &(SlotId, u32)| Ok((*slot, varying.get(*place as usize).ok_or_else(missing)?.bytes()));
        let data: Vec<(SlotId, &[u8])> = self.varying.iter().map(bytes).collect::<Result<_>>()?;
        let results: Vec<(SlotId, DType, &[usize])> = self.results.iter().map(|(s, d, shape)| (*s, *d, shape.as_slice())).collect();
        let tensors = self.session.executor().run_on(&inputs, &data, &results)?;
        // Results that lie in one slot are one tensor, so that who donates it knows of the others.
        let mut made: Vec<Arc<Data>> = Vec::with_capacity(tensors.len());
        for (i, tensor) in tensors.into_iter().enumerate() {
            let twin = results[..i].iter().position(|(slot, dtype, shape)| (*slot, *dtype, *shape) == results[i]);
            made.push(twin.map_or_else(|| Data::new(tensor, false), |twin| made[twin].clone()));
        }
        Ok(made)
    }

    fn stands_for(&self, recorded: &Recorded<'_>) -> bool {
        self.nodes.len() == recorded.nodes.len()
            && self.outputs == recorded.outputs
            && self.donated == recorded.donated
            && self.nodes.iter().zip(recorded.nodes).all(|(known, own)| known.accepts(own))
    }
}

/// A graph break that was met.
#[derive(Debug, Clone)]
pub(super) struct BreakCount {
    pub reason: Break,
    pub times: u64,
}

#[derive(Default)]
pub(super) struct Known {
    /// Parts that are loaded.
    pub parts: Vec<Arc<Part>>,
    /// The part run last at each place.
    expected: Vec<Arc<Part>>,
    pub breaks: Vec<BreakCount>,
    /// Parts that have been compiled, with what told each apart; also those that are gone.
    pub compiled: Vec<(u32, Difference)>,
    /// Recompilations that count against the limit, by place.
    recompiles: HashMap<usize, usize>,
    pub fallen_back: Option<String>,
    pub runs: u64,
    clock: u64,
}

/// A compiled function, or the eager tensors of a context, as its recordings see it.
pub(super) struct Owner {
    pub device: Device,
    pub options: CaptureOptions,
    /// Who runs what is past the limit of recompilations.
    eager: Option<Arc<Owner>>,
    /// Kernels that several sizes share.
    pub templates: Templates,
    known: Mutex<Known>,
}

impl Owner {
    pub fn eager(device: &Device) -> Arc<Self> {
        let compile = CompileOptions { mode: Mode::Eager, ..CompileOptions::default() };
        let options = CaptureOptions { compile, sizes: Sizes::Static, max_recompiles: usize::MAX, fullgraph: false };
        Arc::new(Owner { device: device.clone(), options, eager: None, templates: Templates::new(), known: Mutex::default() })
    }

    pub fn function(device: &Device, options: CaptureOptions, eager: &Arc<Owner>) -> Arc<Self> {
        Arc::new(Owner {
            device: device.clone(),
            options,
            eager: Some(eager.clone()),
            templates: Templates::new(),
            known: Mutex::default(),
        })
    }

    pub fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn has_parts(&self) -> bool {
        !self.known().parts.is_empty()
    }

    /// The part that ran last at `place` of a call.
    pub fn expected(&self, place: usize) -> Option<Arc<Part>> {
        self.known().expected.get(place).cloned()
    }

    /// A part that begins with `nodes`.
    pub fn part_with_prefix(&self, nodes: &[TraceNode]) -> Option<Arc<Part>> {
        let begins = |part: &&Arc<Part>| part.nodes.len() >= nodes.len() && part.nodes.iter().zip(nodes).all(|(a, b)| a.accepts(b));
        self.known().parts.iter().rev().find(begins).cloned()
    }

    /// Counts a graph break, or refuses it.
    pub fn count_break(&self, reason: Break) -> Result<()> {
        if self.eager.is_none() {
            return Ok(());
        }
        if self.options.fullgraph {
            return Err(Error::invalid(format!(
                "{} at {} breaks the graph of a function compiled with `fullgraph`: return the value and read it after the call, or compile \
                 without `fullgraph`",
                reason.what, reason.at
            )));
        }
        let mut known = self.known();
        match known.breaks.iter_mut().find(|b| b.reason == reason) {
            Some(count) => count.times += 1,
            None => {
                log::debug!("graph break: {} at {}", reason.what, reason.at);
                known.breaks.push(BreakCount { reason, times: 1 });
            }
        }
        Ok(())
    }

    /// Notes that `part` runs at `place`.
    pub fn count_hit(&self, place: usize, part: &Arc<Part>) {
        let mut known = self.known();
        known.runs += 1;
        known.clock += 1;
        part.hits.fetch_add(1, Ordering::Relaxed);
        part.last_use.store(known.clock, Ordering::Relaxed);
        if !known.expected.get(place).is_some_and(|last| Arc::ptr_eq(last, part)) {
            known.expect(place, part);
        }
    }

    /// The part that stands for what is recorded at `place`, compiled if there is none.
    pub fn part_for(self: &Arc<Self>, recorded: &Recorded<'_>, place: usize) -> Result<Arc<Part>> {
        let found = self.known().parts.iter().find(|part| part.stands_for(recorded)).cloned();
        if let Some(part) = found {
            self.count_hit(place, &part);
            return Ok(part);
        }
        let resized = if self.options.sizes == Sizes::Automatic { self.resized(recorded) } else { None };
        let nearest = resized.clone().or_else(|| self.nearest(recorded, place));
        let difference = Difference::of(recorded, nearest.as_deref());
        if let Some(eager) = self.over_limit(place, &difference, resized.is_some()) {
            return eager.part_for(recorded, 0);
        }
        // A constant that stood at its place with another value becomes an input, and what was compiled for one value goes.
        let replaced = nearest.filter(|part| difference.only_constants(recorded, part));
        let nodes: Vec<TraceNode> = match (&replaced, &resized) {
            (Some(part), _) => recorded.nodes.iter().zip(&part.nodes).map(|(own, known)| merged(own, known)).collect(),
            (None, Some(part)) => recorded.nodes.iter().zip(&part.nodes).map(|(own, known)| still_varying(own, known)).collect(),
            (None, None) => recorded.nodes.to_vec(),
        };
        let like = resized.or_else(|| replaced.clone().filter(|part| part.shared));
        let part = Arc::new(self.compile(nodes, recorded, (place, difference), like.as_deref())?);
        let mut known = self.known();
        if let Some(replaced) = replaced {
            known.drop_part(&replaced);
        }
        while known.parts.len() >= MAX_PARTS {
            let Some(oldest) = known.parts.iter().min_by_key(|part| part.last_use.load(Ordering::Relaxed)).cloned() else { break };
            known.drop_part(&oldest);
        }
        known.compiled.push((part.id, part.difference.clone()));
        known.parts.push(part.clone());
        known.runs += 1;
        known.clock += 1;
        part.last_use.store(known.clock, Ordering::Relaxed);
        known.expect(place, &part);
        Ok(part)
    }

    /// A known part that differs in sizes only: the one that was used last.
    fn resized(&self, recorded: &Recorded<'_>) -> Option<Arc<Part>> {
        let known = self.known();
        let alike = known.parts.iter().filter(|part| sizes::only_sizes(recorded, part));
        alike.max_by_key(|part| part.last_use.load(Ordering::Relaxed)).cloned()
    }

    /// The known part that agrees longest with what is recorded; of equals, one of the same place.
    fn nearest(&self, recorded: &Recorded<'_>, place: usize) -> Option<Arc<Part>> {
        let agree = |part: &Arc<Part>| part.nodes.iter().zip(recorded.nodes).take_while(|(known, own)| known.accepts(own)).count();
        let known = self.known();
        let same = |part: &&Arc<Part>| part.place == place;
        let here = known.parts.iter().filter(same).max_by_key(|part| (agree(part), part.last_use.load(Ordering::Relaxed)));
        here.or_else(|| known.parts.iter().max_by_key(|part| agree(part)).filter(|part| agree(part) > 0)).cloned()
    }

    /// Counts a recompilation; who runs the function from here on if there were too many. Sizes of inputs that change are none, unless each
    /// is to be compiled for itself; `resized` says that nothing else differs.
    fn over_limit(&self, place: usize, difference: &Difference, resized: bool) -> Option<Arc<Owner>> {
        let eager = self.eager.as_ref()?;
        let dynamic = (resized || difference.reason == Reason::Size) && self.options.sizes == Sizes::Automatic;
        if difference.reason == Reason::First || dynamic {
            return None;
        }
        let mut known = self.known();
        let count = known.recompiles.entry(place).or_default();
        if *count < self.options.max_recompiles {
            *count += 1;
            return None;
        }
        if known.fallen_back.is_none() {
            let message = format!(
                "the function was recompiled {} times, the limit; what is new runs eagerly from here on. The last reason: {}",
                self.options.max_recompiles, difference.text
            );
            log::warn!("{message}");
            known.fallen_back = Some(message);
        }
        Some(eager.clone())
    }

    /// Compiles and loads a part; `like` is one that differs in sizes, whose kernels are shared where they fit.
    fn compile(
        &self,
        nodes: Vec<TraceNode>,
        recorded: &Recorded<'_>,
        (place, difference): (usize, Difference),
        like: Option<&Part>,
    ) -> Result<Part> {
        let start = Instant::now();
        let graph = graph(&nodes, recorded.outputs)?;
        let donate = recorded.donated.iter().map(|number| format!("in{number}")).collect();
        let options = CompileOptions { donate, ..self.options.compile.clone() };
        let target = self.device.target();
        let compiled = match like {
            None => compile(&graph, &target, &options)?,
            Some(like) => {
                let of = |nodes: &[TraceNode]| self::graph(nodes, recorded.outputs);
                if !like.shared {
                    learn(&of(&like.nodes)?, &target, &options, &self.templates)?;
                }
                let probes = || sizes::further(&like.nodes, &nodes).iter().filter_map(|nodes| of(nodes).ok()).collect();
                compile_like(&graph, &target, &options, &self.templates, probes)?
            }
        };
        let session = Session::load(&self.device, &compiled)?;
        let slots = |prefix: &str| -> Vec<(SlotId, u32)> {
            let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
            compiled.inputs().iter().filter_map(|port| Some((port.slot, number(&port.name)?))).collect()
        };
        let results = compiled.outputs().iter().map(|port| (port.slot, port.ty.dtype, port.ty.shape.clone())).collect();
        let seconds = start.elapsed().as_secs_f64();
        let id = self.known().compiled.len() as u32;
        log::debug!("part {id} of a function compiled in {:.1} ms: {}", seconds * 1e3, difference.text);
        Ok(Part {
            id,
            nodes,
            outputs: recorded.outputs.to_vec(),
            donated: recorded.donated.to_vec(),
            place,
            difference,
            seconds,
            hits: AtomicU64::new(0),
            mode: options.mode,
            shared: like.is_some(),
            inputs: slots("in"),
            varying: slots("value"),
            session,
            results,
            last_use: AtomicU64::new(0),
        })
    }
}

impl Known {
    fn expect(&mut self, place: usize, part: &Arc<Part>) {
        // Parts of a place are expected only after those before it.
        match self.expected.len() {
            len if len > place => self.expected[place] = part.clone(),
            len if len == place => self.expected.push(part.clone()),
            _ => {}
        }
    }

    fn drop_part(&mut self, part: &Arc<Part>) {
        self.parts.retain(|other| !Arc::ptr_eq(other, part));
        // Who follows a part that is gone would bring it back: the places from the first such one on are found anew.
        if let Some(at) = self.expected.iter().position(|other| Arc::ptr_eq(other, part)) {
            self.expected.truncate(at);
        }
    }
}

/// The node that stands for both a recorded one and one that differs from it at most in the value of a constant.
fn merged(own: &TraceNode, known: &TraceNode) -> TraceNode {
    let kind = if known.accepts(own) { known.kind.clone() } else { Kind::Varying };
    TraceNode { kind, ..own.clone() }
}

/// The node of another size, whose constant is an input where it was one before.
fn still_varying(own: &TraceNode, known: &TraceNode) -> TraceNode {
    let kind = if matches!(known.kind, Kind::Varying) { Kind::Varying } else { own.kind.clone() };
    TraceNode { kind, ..own.clone() }
}

/// The nodes as a graph: inputs are called `in0`, `in1`..., constants that vary `value0`..., results `out0`...
fn graph(nodes: &[TraceNode], outputs: &[u32]) -> Result<Graph> {
    let mut builder = GraphBuilder::new();
    let mut ids: Vec<NodeId> = Vec::with_capacity(nodes.len());
    let mut varying = 0;
    for node in nodes {
        let operands: Vec<NodeId> = node.inputs.iter().map(|&i| ids[i as usize]).collect();
        ids.push(match &node.kind {
            Kind::Input(number) => builder.input(format!("in{number}"), (*node.ty).clone())?,
            Kind::Varying => {
                varying += 1;
                builder.input(format!("value{}", varying - 1), (*node.ty).clone())?
            }
            Kind::Constant(constant) => builder.constant(constant.tensor().clone())?,
            Kind::Op(op) => builder.add(op.clone(), &operands)?,
        });
    }
    for (i, &output) in outputs.iter().enumerate() {
        builder.output(format!("out{i}"), ids[output as usize])?;
    }
    Ok(builder.finish())
}
