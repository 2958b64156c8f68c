//! Recording: the operations of a run of a function, compared as they come with what earlier runs recorded.
//!
//! A [`Recording`] follows a known [`Part`] as long as each operation is the one that stands there; then nothing is stored but the number of
//! operations. Where the two differ it looks for another part that goes on as the function does, and else stores the nodes itself.

use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::ThreadId;

use crate::capture::owner::{Owner, Part};
use crate::capture::tensor::{Cell, Content, Data, NodeRef, Tensor, unusable};
use crate::error::{Error, Result};
use crate::graph::{Constant, Op, TensorType};
use crate::ops;
use crate::tensor::HostTensor;

/// Operations that eager tensors record before they are run, so that a program that reads nothing does not grow without end.
const MAX_EAGER_NODES: usize = 2048;

/// Why what is recorded is run, and where in the user's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Break {
    pub what: &'static str,
    pub at: &'static Location<'static>,
}

/// What a node of a trace is.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// A tensor from outside: the number of the input.
    Input(u32),
    /// A constant that stood here with several values, and is an input of the graph.
    Varying,
    /// A constant.
    Constant(Constant),
    /// An operation.
    Op(Op),
}

#[derive(Debug, Clone)]
pub(super) struct TraceNode {
    pub kind: Kind,
    pub inputs: Vec<u32>,
    pub ty: Arc<TensorType>,
}

impl TraceNode {
    fn leaf(kind: Kind, ty: Arc<TensorType>) -> Self {
        TraceNode { kind, inputs: Vec::new(), ty }
    }

    /// Whether a trace with this node stands for a run that recorded `other` in its place.
    pub fn accepts(&self, other: &TraceNode) -> bool {
        let same = match (&self.kind, &other.kind) {
            (Kind::Varying, Kind::Constant(_) | Kind::Varying) => true,
            (Kind::Constant(a), Kind::Constant(b)) => a == b,
            (Kind::Input(a), Kind::Input(b)) => a == b,
            (Kind::Op(a), Kind::Op(b)) => a == b && self.inputs == other.inputs,
            _ => false,
        };
        same && self.ty == other.ty
    }
}

/// Nodes of a run, what it leaves behind, and which inputs it may overwrite: what a part is known by.
pub(super) struct Recorded<'a> {
    pub nodes: &'a [TraceNode],
    /// Nodes whose value is needed afterwards, increasing.
    pub outputs: &'a [u32],
    /// Numbers of the inputs that were donated.
    pub donated: &'a [u32],
}

struct State {
    epoch: u64,
    /// Part of the call, counted from 0: each graph break begins a new one.
    part: usize,
    len: usize,
    /// The part that all nodes so far agree with; `None`: they are in `own`.
    followed: Option<Arc<Part>>,
    own: Vec<TraceNode>,
    /// Values of the constants that vary, in order, while a part is followed.
    varying: Vec<Arc<HostTensor>>,
    /// Input tensors by number, and the node each is.
    leaves: Vec<(Arc<Data>, u32)>,
    /// Nodes of the leaves by the address of their data, which `leaves` holds.
    known_leaves: HashMap<usize, u32>,
    /// Tensors whose value was a node when they were entered.
    cells: Vec<Weak<Cell>>,
    operands: Vec<u32>,
}

/// A run of a function that records, or what eager tensors have recorded.
pub(super) struct Recording {
    owner: Arc<Owner>,
    /// Where operations are recorded once this recording is closed; `None` for an eager one, which never is.
    fallback: Option<Arc<Recording>>,
    closed: AtomicBool,
    /// Of an eager recording: the calls that compiled functions of its context have open, with their threads.
    calls: Mutex<Vec<(ThreadId, Arc<Recording>)>>,
    state: Mutex<State>,
}

/// An open call; ends when it is dropped.
pub(super) struct Call {
    pub recording: Arc<Recording>,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.recording.closed.store(true, Ordering::Relaxed);
        if let Some(eager) = &self.recording.fallback {
            eager.calls().retain(|(_, call)| !Arc::ptr_eq(call, &self.recording));
        }
    }
}

impl Recording {
    /// The recording of eager tensors.
    pub fn eager(owner: Arc<Owner>) -> Arc<Self> {
        Recording::new(owner, None)
    }

    /// Opens a call on this thread; tensors that outlive it are eager ones of `context`.
    pub fn open(owner: Arc<Owner>, context: &Arc<Recording>) -> Call {
        let recording = Recording::new(owner, Some(context.clone()));
        context.calls().push((std::thread::current().id(), recording.clone()));
        Call { recording }
    }

    fn new(owner: Arc<Owner>, fallback: Option<Arc<Recording>>) -> Arc<Self> {
        let followed = owner.expected(0);
        let state = State {
            epoch: 0,
            part: 0,
            len: 0,
            followed,
            own: Vec::new(),
            varying: Vec::new(),
            leaves: Vec::new(),
            known_leaves: HashMap::new(),
            cells: Vec::new(),
            operands: Vec::new(),
        };
        Arc::new(Recording { owner, fallback, closed: AtomicBool::new(false), calls: Mutex::default(), state: Mutex::new(state) })
    }

    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Whether this is a call of a compiled function that has not returned.
    pub fn is_open_function(&self) -> bool {
        self.fallback.is_some() && !self.closed.load(Ordering::Relaxed)
    }

    /// Where operations go: this recording while its call is open, else the call that this thread has open in the context, if it has one.
    pub fn open_one(self: Arc<Self>) -> Arc<Self> {
        if self.is_open_function() {
            return self;
        }
        let eager = self.fallback.clone().unwrap_or(self);
        let own = std::thread::current().id();
        let call = eager.calls().iter().rev().find(|(thread, _)| *thread == own).map(|(_, call)| call.clone());
        call.unwrap_or(eager)
    }

    fn calls(&self) -> MutexGuard<'_, Vec<(ThreadId, Arc<Recording>)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an operation. `None` if an operand has been recorded elsewhere in the meantime.
    pub fn record(self: &Arc<Self>, op: &Op, inputs: &[&Tensor]) -> Result<Option<Tensor>> {
        let mut state = self.lock();
        let mut operands = std::mem::take(&mut state.operands);
        operands.clear();
        for input in inputs {
            match self.operand(&mut state, input.cell())? {
                Some(index) => operands.push(index),
                None => return Ok(None),
            }
        }
        let expected = state.followed.as_ref().and_then(|part| part.nodes.get(state.len));
        let same = expected.filter(|node| matches!(&node.kind, Kind::Op(known) if known == op) && node.inputs == operands);
        let ty = match same.map(|node| node.ty.clone()) {
            Some(ty) => {
                state.len += 1;
                ty
            }
            None => {
                let from = state.leave(&self.owner);
                let types: Vec<&TensorType> = operands.iter().map(|&i| &*state.own[i as usize].ty).collect();
                let ty = Arc::new(ops::infer(op, &types)?);
                state.push(TraceNode { kind: Kind::Op(op.clone()), inputs: operands.clone(), ty: ty.clone() }, from, &self.owner);
                ty
            }
        };
        state.operands = operands;
        let tensor = self.entered(&mut state, ty);
        let full = self.fallback.is_none() && state.len > MAX_EAGER_NODES;
        drop(state);
        if full {
            self.flush(Some(Break { what: "many operations", at: Location::caller() }), &[])?;
        }
        Ok(Some(tensor))
    }

    /// Records a constant.
    pub fn constant(self: &Arc<Self>, tensor: HostTensor) -> Result<Tensor> {
        let mut state = self.lock();
        let tensor = Arc::new(tensor);
        let fits = |node: &&TraceNode| {
            let typed = node.ty.dtype == tensor.dtype() && node.ty.shape == tensor.shape();
            typed
                && match &node.kind {
                    Kind::Varying => true,
                    Kind::Constant(known) => known.tensor().bytes() == tensor.bytes(),
                    _ => false,
                }
        };
        let expected = state.followed.as_ref().and_then(|part| part.nodes.get(state.len)).filter(fits);
        let ty = match expected.map(|node| (node.ty.clone(), matches!(node.kind, Kind::Varying))) {
            Some((ty, varying)) => {
                if varying {
                    state.varying.push(tensor);
                }
                state.len += 1;
                ty
            }
            None => {
                let from = state.leave(&self.owner);
                let constant = Constant::new(tensor);
                let ty = Arc::new(constant.ty());
                state.push(TraceNode::leaf(Kind::Constant(constant), ty.clone()), from, &self.owner);
                ty
            }
        };
        Ok(self.entered(&mut state, ty))
    }

    /// The node of an operand; a tensor from outside becomes an input at its first use.
    fn operand(self: &Arc<Self>, state: &mut State, cell: &Arc<Cell>) -> Result<Option<u32>> {
        match &*cell.content() {
            Content::Node(node) if Arc::ptr_eq(&node.recording, self) && node.epoch == state.epoch => Ok(Some(node.index)),
            Content::Node(_) => Ok(None),
            Content::Data(data) => Ok(Some(self.lift(state, data))),
            gone => Err(unusable(gone)),
        }
    }

    fn lift(&self, state: &mut State, data: &Arc<Data>) -> u32 {
        let address = Arc::as_ptr(data) as usize;
        if let Some(&index) = state.known_leaves.get(&address) {
            return index;
        }
        let (index, number) = (state.len as u32, state.leaves.len() as u32);
        state.leaves.push((data.clone(), index));
        state.known_leaves.insert(address, index);
        let expected = state.followed.as_ref().and_then(|part| part.nodes.get(state.len));
        if expected.is_some_and(|node| matches!(node.kind, Kind::Input(known) if known == number) && node.ty == data.ty) {
            state.len += 1;
        } else {
            let from = state.leave(&self.owner);
            state.push(TraceNode::leaf(Kind::Input(number), data.ty.clone()), from, &self.owner);
        }
        index
    }

    /// The tensor of the node recorded last.
    fn entered(self: &Arc<Self>, state: &mut State, ty: Arc<TensorType>) -> Tensor {
        let node = NodeRef { recording: self.clone(), epoch: state.epoch, index: state.len as u32 - 1, ty };
        let tensor = Tensor::of(Content::Node(node), self.clone());
        state.cells.push(Arc::downgrade(tensor.cell()));
        tensor
    }

    /// Enters a tensor that takes the value of a node.
    pub fn adopt(&self, node: &NodeRef, cell: &Arc<Cell>) {
        let mut state = self.lock();
        if state.epoch == node.epoch {
            state.cells.push(Arc::downgrade(cell));
        }
    }

    /// Runs what is recorded, as far as a tensor still needs it; `reason` is none at the end of a call. Of the donated tensors, those that
    /// nobody holds but the caller, who holds the data at the addresses `held`, may be overwritten, unless the call goes on.
    pub fn flush(self: &Arc<Self>, reason: Option<Break>, held: &[usize]) -> Result<()> {
        let mut state = self.lock();
        let state = &mut *state;
        let live = self.live(state);
        if live.is_empty() {
            state.begin(None, state.part);
            state.followed = self.owner.expected(state.part);
            return Ok(());
        }
        // What a call that failed left behind is computed like eager tensors: that breaks no graph any more.
        if let Some(reason) = reason.filter(|_| !self.closed.load(Ordering::Relaxed)) {
            self.owner.count_break(reason)?;
        }
        let mut outputs: Vec<u32> = live.iter().map(|(index, _)| *index).collect();
        outputs.sort_unstable();
        outputs.dedup();
        let mut donated = Vec::new();
        if reason.is_none() || self.fallback.is_none() {
            for (number, (data, _)) in state.leaves.iter().enumerate() {
                let own = held.iter().filter(|&&address| address == Arc::as_ptr(data) as usize).count();
                if data.donated && Arc::strong_count(data) == 1 + own {
                    donated.push(number as u32);
                }
            }
        }
        let result = self.run(state, &outputs, &donated);
        let lost: Option<Arc<str>> = result.as_ref().err().map(|error| error.to_string().into());
        for (_, cell) in &live {
            let mut content = cell.content();
            let Content::Node(node) = &*content else { continue };
            let value = result.as_ref().ok().and_then(|values| values.get(outputs.binary_search(&node.index).ok()?));
            *content = match (value, &lost) {
                (Some(data), _) => Content::Data(data.clone()),
                (None, Some(why)) => Content::Lost(why.clone(), node.ty.clone()),
                (None, None) => Content::Lost("the run gave no such value".into(), node.ty.clone()),
            };
        }
        let next = state.part + usize::from(self.fallback.is_some());
        state.begin(self.owner.expected(next), next);
        result.map(|_| ())
    }

    /// Tensors that are nodes of this recording, with the node.
    fn live(self: &Arc<Self>, state: &State) -> Vec<(u32, Arc<Cell>)> {
        let mut live = Vec::new();
        for cell in state.cells.iter().filter_map(Weak::upgrade) {
            let index = match &*cell.content() {
                Content::Node(node) if Arc::ptr_eq(&node.recording, self) && node.epoch == state.epoch => node.index,
                _ => continue,
            };
            live.push((index, cell));
        }
        live
    }

    /// Runs the part of the owner that stands for what is recorded, and gives the outputs.
    fn run(&self, state: &mut State, outputs: &[u32], donated: &[u32]) -> Result<Vec<Arc<Data>>> {
        let leaves = |state: &State| state.leaves.iter().map(|(data, _)| data.clone()).collect::<Vec<_>>();
        if let Some(part) = &state.followed
            && part.nodes.len() == state.len
            && part.outputs == outputs
            && part.donated == donated
        {
            self.owner.count_hit(state.part, part);
            return part.run(&leaves(state), &state.varying);
        }
        state.leave(&self.owner);
        let recorded = Recorded { nodes: &state.own, outputs, donated };
        let part = self.owner.part_for(&recorded, state.part)?;
        let varying = varying(&part.nodes, &state.own)?;
        part.run(&leaves(state), &varying)
    }
}

/// Values of the constants that vary in `known` as `own` has them.
fn varying(known: &[TraceNode], own: &[TraceNode]) -> Result<Vec<Arc<HostTensor>>> {
    let varies = known.iter().zip(own).filter(|(node, _)| matches!(node.kind, Kind::Varying));
    let value = |(_, own): (&TraceNode, &TraceNode)| match &own.kind {
        Kind::Constant(constant) => Ok(constant.tensor().clone()),
        _ => Err(Error::internal("a constant that varies has no value")),
    };
    varies.map(value).collect()
}

impl State {
    /// Ends following a part: its nodes so far become own ones. Whether there was one to leave, or nothing recorded yet.
    fn leave(&mut self, owner: &Owner) -> bool {
        let Some(part) = self.followed.take() else { return self.len == 0 && owner.has_parts() };
        let mut values = std::mem::take(&mut self.varying).into_iter();
        for node in &part.nodes[..self.len] {
            let mut node = node.clone();
            if matches!(node.kind, Kind::Varying)
                && let Some(value) = values.next()
            {
                node.kind = Kind::Constant(Constant::new(value));
            }
            self.own.push(node);
        }
        true
    }

    /// Adds an own node, and follows the part that has recorded the same so far, if there may be one.
    fn push(&mut self, node: TraceNode, search: bool, owner: &Owner) {
        self.own.push(node);
        self.len += 1;
        if search
            && let Some(part) = owner.part_with_prefix(&self.own)
            && let Ok(values) = varying(&part.nodes[..self.len], &self.own)
        {
            self.varying = values;
            self.own.clear();
            self.followed = Some(part);
        }
    }

    /// Forgets what is recorded; the next nodes are expected to be those of `followed`.
    fn begin(&mut self, followed: Option<Arc<Part>>, part: usize) {
        self.epoch += 1;
        self.part = part;
        self.len = 0;
        self.followed = followed;
        self.own.clear();
        self.varying.clear();
        self.leaves.clear();
        self.known_leaves.clear();
        self.cells.clear();
    }
}
