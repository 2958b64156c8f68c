//! Runs execution plans: everything is made at load, one submission a run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernels_gen::{BindingKind, DType, KernelSource};
use rayon::prelude::*;

use crate::device::Device;
use crate::device::memory::{Buffer, DeviceTensor, rounded};
use crate::device::pipeline::Pipeline;
use crate::device::readback::{Pending, ReadBack, StagingPool};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Command, ExecutionPlan, Slot, SlotId, SlotRange, SlotRole};

/// A plan loaded on a device: a cheap handle, usable from several threads. Each run is one submission that sees all earlier ones and
/// is not mixed with others.
#[derive(Debug, Clone)]
pub struct Executor {
    pub(super) loaded: Arc<Loaded>,
}

#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) device: Device,
    slots: Vec<SlotInfo>,
    state: Mutex<State>,
    staging: Arc<StagingPool>,
    /// The parameter blocks of all dispatches.
    params: Option<Buffer>,
}

#[derive(Debug)]
struct SlotInfo {
    name: String,
    bytes: u64,
    role: Role,
}

/// [`SlotRole`] without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Input,
    Donated,
    Constant,
    Output,
    Temp,
    State,
}

impl Role {
    /// Whether the caller fills it before each run.
    fn is_input(self) -> bool {
        matches!(self, Role::Input | Role::Donated)
    }
}

/// What changes when a tensor is bound.
#[derive(Debug)]
pub(super) struct State {
    buffers: Vec<SlotBuffer>,
    pub(super) steps: Vec<Step>,
    /// Runs that nobody has waited for, oldest first.
    in_flight: VecDeque<wgpu::SubmissionIndex>,
}

#[derive(Debug)]
struct SlotBuffer {
    buffer: Arc<Buffer>,
    /// Whether it belongs to a caller's tensor, which inputs must not be written to.
    bound: bool,
}

/// A command, ready to be recorded.
#[derive(Debug)]
pub(super) struct Step {
    /// Its place in the plan.
    pub(super) command: usize,
    pub(super) work: Work,
}

#[derive(Debug)]
pub(super) enum Work {
    Dispatch(Dispatch),
    Copy { from: SlotId, from_offset: u64, to: SlotId, to_offset: u64, bytes: u64 },
    Clear { slot: SlotId },
}

#[derive(Debug)]
pub(super) struct Dispatch {
    source: Arc<KernelSource>,
    pipeline: Arc<Pipeline>,
    bindings: Vec<SlotRange>,
    /// Where its parameters lie in the executor's parameter buffer.
    params_offset: u64,
    group: wgpu::BindGroup,
    workgroups: [u32; 3],
}

/// Runs that may wait on the device's queue before [`Executor::enqueue`] waits for one of them.
pub const MAX_IN_FLIGHT: usize = 64;

/// Distance of parameter blocks, the largest offset alignment an adapter may ask for.
const PARAMS_STRIDE: u64 = 256;

impl Executor {
    /// Checks `plan` against the device and makes everything a run needs: pipelines, buffers, parameters, bind groups. Constants are
    /// uploaded; all other slots are zero.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`] past a limit of the adapter (the message names what and by how much), [`ErrorKind::OutOfMemory`] past the
    /// memory limit, [`ErrorKind::Shader`] for a kernel that does not compile, [`ErrorKind::Internal`] for a malformed plan. Nothing is
    /// kept of a plan that does not load.
    pub fn load(device: &Device, plan: &ExecutionPlan) -> Result<Self> {
        plan.verify()?;
        check_dispatches(device, plan)?;
        let pipelines = plan.kernels.par_iter().map(|source| device.pipeline(source)).collect::<Result<Vec<_>>>()?;
        let buffers = plan.slots.iter().map(|slot| allocate(device, slot)).collect::<Result<Vec<_>>>()?;
        let params = upload_params(device, plan)?;

        let mut state = State { buffers, steps: Vec::new(), in_flight: VecDeque::new() };
        let mut params_offset = 0;
        for (command, step) in plan.commands.iter().enumerate() {
            let work = match step {
                Command::Dispatch { kernel, bindings, workgroups, .. } => {
                    let source = &plan.kernels[kernel.0 as usize];
                    let pipeline = &pipelines[kernel.0 as usize];
                    let at = params_offset;
                    params_offset += params_stride(source);
                    let group = state.bind_group(device, source, pipeline, bindings, params.as_ref(), at)?;
                    Work::Dispatch(Dispatch {
                        source: source.clone(),
                        pipeline: pipeline.clone(),
                        bindings: bindings.clone(),
                        params_offset: at,
                        group,
                        workgroups: *workgroups,
                    })
                }
                Command::Copy { bytes: 0, .. } => continue,
                &Command::Copy { from, from_offset, to, to_offset, bytes } => Work::Copy { from, from_offset, to, to_offset, bytes },
                &Command::Clear { slot } => Work::Clear { slot },
            };
            state.steps.push(Step { command, work });
        }
        let slots = plan.slots.iter().map(SlotInfo::new).collect();
        let loaded = Loaded { device: device.clone(), slots, state: Mutex::new(state), staging: Arc::default(), params };
        Ok(Executor { loaded: Arc::new(loaded) })
    }

    /// The device it is loaded on.
    pub fn device(&self) -> &Device {
        &self.loaded.device
    }

    /// Writes `inputs`, runs the plan and blocks for the bytes of `outputs`. An input that is not given keeps what it held.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for a slot that is no input or data of the wrong length, [`ErrorKind::OutOfMemory`] where read-back
    /// buffers do not fit, [`ErrorKind::DeviceLost`].
    pub fn run(&self, inputs: &[(SlotId, &[u8])], outputs: &[SlotId]) -> Result<Vec<Vec<u8>>> {
        self.submit(inputs, outputs)?.wait()
    }

    /// [`Executor::run`] for any executor of futures. Dropping the future is safe: what was submitted runs to its end.
    pub async fn run_async(&self, inputs: &[(SlotId, &[u8])], outputs: &[SlotId]) -> Result<Vec<Vec<u8>>> {
        self.submit(inputs, outputs)?.await
    }

    /// Starts a run: one submission with the copies of `outputs` for the host.
    pub fn submit(&self, inputs: &[(SlotId, &[u8])], outputs: &[SlotId]) -> Result<Pending> {
        let mut state = self.state();
        self.prepare(&mut state, inputs)?;
        let read_back = self.read_back(&state, outputs)?;
        let index = self.encode_and_submit(&state, Some(&read_back))?;
        read_back.pending(index)
    }

    /// Starts a run whose results stay on the device. Blocks only while [`MAX_IN_FLIGHT`] runs before it are not done, so that the memory
    /// for commands and inputs stays bounded.
    pub fn enqueue(&self, inputs: &[(SlotId, &[u8])]) -> Result<()> {
        let mut state = self.state();
        self.prepare(&mut state, inputs)?;
        self.start(&mut state)
    }

    /// Starts a run over tensors of the caller, of which nobody else's run sees a part: `inputs` are bound, `data` is written to other inputs,
    /// and the slots `outputs` are given as tensors of those types. A slot that is both an input and an output is the tensor that was bound.
    /// Blocks as [`Executor::enqueue`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Executor::bind`] and [`Executor::enqueue`]; the bindings then stay as they were.
    pub fn run_on(
        &self,
        inputs: &[(SlotId, &DeviceTensor)],
        data: &[(SlotId, &[u8])],
        outputs: &[(SlotId, DType, &[usize])],
    ) -> Result<Vec<DeviceTensor>> {
        for (slot, tensor) in inputs {
            self.check_bind(*slot, tensor)?;
        }
        let mut state = self.state();
        let mut previous: Vec<(SlotId, SlotBuffer)> = Vec::new();
        for (slot, tensor) in inputs {
            let place = &mut state.buffers[slot.0 as usize];
            if !Arc::ptr_eq(&place.buffer, tensor.buffer()) {
                previous.push((*slot, std::mem::replace(place, SlotBuffer { buffer: tensor.buffer().clone(), bound: true })));
            }
            place.bound = true;
        }
        if let Err(error) = self.prepare_over(&mut state, data, &mut previous) {
            let slots: Vec<SlotId> = previous.iter().map(|(slot, _)| *slot).collect();
            for (slot, buffer) in previous.into_iter().rev() {
                state.buffers[slot.0 as usize] = buffer;
            }
            // Where that fails too, the device is gone, which the error says.
            return Err(self.rebind(&mut state, &slots).err().unwrap_or(error));
        }
        self.start(&mut state)?;
        let tensor = |(slot, dtype, shape): &(SlotId, DType, &[usize])| {
            self.slot(*slot)?;
            DeviceTensor::from_buffer(&self.loaded.device, state.buffers[slot.0 as usize].buffer.clone(), *dtype, shape)
        };
        outputs.iter().map(tensor).collect()
    }

    /// Submits a run and waits while too many are not done.
    fn start(&self, state: &mut State) -> Result<()> {
        let index = self.encode_and_submit(state, None)?;
        state.in_flight.push_back(index);
        if state.in_flight.len() > MAX_IN_FLIGHT
            && let Some(oldest) = state.in_flight.pop_front()
        {
            self.loaded.device.poll_until(oldest)?;
        }
        Ok(())
    }

    /// Puts `tensor` in the place of a slot's buffer, without a copy: an input is read from it, an output or a state written to it.
    /// Binding the tensor that is bound costs nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for a temporary or constant slot, a tensor of another size or device, and a tensor that one
    /// dispatch would then both read and write.
    pub fn bind(&self, slot: SlotId, tensor: &DeviceTensor) -> Result<()> {
        self.check_bind(slot, tensor)?;
        let mut state = self.state();
        let previous = std::mem::replace(&mut state.buffers[slot.0 as usize], SlotBuffer { buffer: tensor.buffer().clone(), bound: true });
        if Arc::ptr_eq(&previous.buffer, tensor.buffer()) {
            return Ok(());
        }
        let rebuilt = self.rebind(&mut state, &[slot]);
        if rebuilt.is_err() {
            state.buffers[slot.0 as usize] = previous;
        }
        rebuilt
    }

    /// Whether `tensor` can stand in the place of a slot's buffer.
    fn check_bind(&self, slot: SlotId, tensor: &DeviceTensor) -> Result<()> {
        let info = self.slot(slot)?;
        if matches!(info.role, Role::Temp | Role::Constant) {
            return Err(Error::invalid(format!(
                "slot `{}` is {:?}; tensors can be bound to inputs, outputs and states",
                info.name, info.role
            )));
        }
        if !Arc::ptr_eq(&tensor.device().shared, &self.loaded.device.shared) {
            return Err(Error::invalid(format!("the tensor for slot `{}` lies on another device", info.name)));
        }
        if rounded(tensor.num_bytes()) != rounded(info.bytes) || tensor.buffer().allocated_bytes() < rounded(info.bytes) {
            let (dtype, shape) = (tensor.dtype(), tensor.shape());
            return Err(Error::invalid(format!("slot `{}` has {} bytes, {dtype}{shape:?} is given", info.name, info.bytes)));
        }
        Ok(())
    }

    /// Gives dispatch `command` of the plan (its place in [`ExecutionPlan::commands`]) other parameter words and another number of
    /// workgroups, for the runs that start after this call; a zero in `workgroups` makes it launch nothing. Costs one write of the words.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for a command that is no dispatch, another number of words than its kernel takes, and work for a
    /// dispatch that would both read and write one bound tensor; [`ErrorKind::Limit`] past a limit of the adapter, as
    /// [`Executor::load`] says; [`ErrorKind::DeviceLost`]. The dispatch then stays as it was.
    pub fn set_dispatch(&self, command: usize, params: &[u32], workgroups: [u32; 3]) -> Result<()> {
        let device = &self.loaded.device;
        device.check_alive()?;
        let mut state = self.state();
        let at = state.steps.binary_search_by_key(&command, |step| step.command).ok();
        let Some((at, Work::Dispatch(dispatch))) = at.map(|at| (at, &state.steps[at].work)) else {
            return Err(Error::invalid(format!("command {command} of the plan is no dispatch, which alone has parameters and workgroups")));
        };
        let KernelSource { name, num_params, .. } = &*dispatch.source;
        if params.len() != *num_params {
            return Err(Error::invalid(format!("kernel `{name}` takes {num_params} parameter words, {} are given", params.len())));
        }
        check_size(device, &dispatch.source, params, workgroups)?;
        if !workgroups.contains(&0) {
            state.check_aliasing(&self.loaded.slots, dispatch)?;
        }
        if let Some(buffer) = self.loaded.params.as_ref().filter(|_| *num_params > 0) {
            device.write_at(buffer, dispatch.params_offset, bytemuck::cast_slice(params))?;
        }
        if let Work::Dispatch(dispatch) = &mut state.steps[at].work {
            dispatch.workgroups = workgroups;
        }
        Ok(())
    }

    /// A handle on the front of what a slot holds, without a copy. The tensor of an output keeps its value: the next run writes to a new buffer as
    /// long as the handle lives. The tensor of a state shows what later runs write.
    pub fn slot_tensor(&self, slot: SlotId, dtype: DType, shape: &[usize]) -> Result<DeviceTensor> {
        let info = self.slot(slot)?;
        let buffer = self.state().buffers[slot.0 as usize].buffer.clone();
        let tensor = DeviceTensor::from_buffer(&self.loaded.device, buffer, dtype, shape)?;
        if tensor.num_bytes() > info.bytes {
            return Err(Error::invalid(format!("slot `{}` has {} bytes, {dtype}{shape:?} is asked for", info.name, info.bytes)));
        }
        Ok(tensor)
    }

    /// Overwrites what a slot holds, a state for instance.
    pub fn write(&self, slot: SlotId, data: &[u8]) -> Result<()> {
        self.write_slots(&mut self.state(), &[(slot, data)], |role| {
            matches!(role, Role::Input | Role::Donated | Role::State | Role::Output)
        })
    }

    /// The bytes of a slot, blocking for the runs before.
    pub fn read(&self, slot: SlotId) -> Result<Vec<u8>> {
        self.start_read(slot)?.wait().map(|mut parts| parts.pop().unwrap_or_default())
    }

    /// [`Executor::read`] for any executor of futures.
    pub async fn read_async(&self, slot: SlotId) -> Result<Vec<u8>> {
        self.start_read(slot)?.await.map(|mut parts| parts.pop().unwrap_or_default())
    }

    fn start_read(&self, slot: SlotId) -> Result<Pending> {
        let state = self.state();
        self.read_back(&state, &[slot])?.submit()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.loaded.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, slot: SlotId) -> Result<&SlotInfo> {
        let slots = &self.loaded.slots;
        slots.get(slot.0 as usize).ok_or_else(|| Error::invalid(format!("slot {} of {}", slot.0, slots.len())))
    }

    fn read_back(&self, state: &State, slots: &[SlotId]) -> Result<ReadBack> {
        let part = |&slot: &SlotId| Ok((state.buffers[slot.0 as usize].buffer.clone(), self.slot(slot)?.bytes));
        for &slot in slots {
            self.slot(slot)?;
        }
        let parts = slots.iter().map(part).collect::<Result<Vec<_>>>()?;
        ReadBack::pooled(&self.loaded.device, &self.loaded.staging, &parts)
    }

    /// Writes inputs, and gives outputs that a caller still holds a buffer of their own.
    pub(super) fn prepare(&self, state: &mut State, inputs: &[(SlotId, &[u8])]) -> Result<()> {
        self.prepare_over(state, inputs, &mut Vec::new())
    }

    /// [`Executor::prepare`] after the buffers of some slots, which `changed` names with what they were, have been replaced.
    fn prepare_over(&self, state: &mut State, inputs: &[(SlotId, &[u8])], changed: &mut Vec<(SlotId, SlotBuffer)>) -> Result<()> {
        self.loaded.device.check_alive()?;
        for (i, info) in self.loaded.slots.iter().enumerate() {
            let place = &mut state.buffers[i];
            if info.role == Role::Output && !place.bound && Arc::strong_count(&place.buffer) > 1 {
                let buffer = self.loaded.device.buffer(&info.name, info.bytes)?;
                changed.push((SlotId(i as u32), std::mem::replace(place, SlotBuffer { buffer, bound: false })));
            }
        }
        let slots: Vec<SlotId> = changed.iter().map(|(slot, _)| *slot).collect();
        self.rebind(state, &slots)?;
        self.write_slots(state, inputs, Role::is_input)
    }

    fn write_slots(&self, state: &mut State, data: &[(SlotId, &[u8])], allowed: impl Fn(Role) -> bool) -> Result<()> {
        for (slot, bytes) in data {
            let info = self.slot(*slot)?;
            if !allowed(info.role) {
                return Err(Error::invalid(format!("slot `{}` is {:?} and cannot be written here", info.name, info.role)));
            }
            if bytes.len() as u64 != info.bytes {
                return Err(Error::invalid(format!("slot `{}` takes {} bytes, {} are given", info.name, info.bytes, bytes.len())));
            }
        }
        for (slot, bytes) in data {
            let info = self.slot(*slot)?;
            let place = slot.0 as usize;
            if info.role.is_input() && state.buffers[place].bound {
                // The buffer is a caller's tensor: leave that as it is.
                state.buffers[place] = SlotBuffer { buffer: self.loaded.device.buffer(&info.name, info.bytes)?, bound: false };
                self.rebind(state, &[*slot])?;
            }
            self.loaded.device.write(&state.buffers[place].buffer, bytes)?;
        }
        Ok(())
    }

    /// Makes the bind groups anew that one of `slots` is part of.
    fn rebind(&self, state: &mut State, slots: &[SlotId]) -> Result<()> {
        if slots.is_empty() {
            return Ok(());
        }
        let mut groups = Vec::new();
        for (at, step) in state.steps.iter().enumerate() {
            if let Work::Dispatch(d) = &step.work
                && d.bindings.iter().any(|range| slots.contains(&range.slot))
            {
                if step.work.launches() {
                    state.check_aliasing(&self.loaded.slots, d)?;
                }
                let params = self.loaded.params.as_ref();
                groups.push((at, state.bind_group(&self.loaded.device, &d.source, &d.pipeline, &d.bindings, params, d.params_offset)?));
            }
        }
        for (at, new) in groups {
            if let Work::Dispatch(d) = &mut state.steps[at].work {
                d.group = new;
            }
        }
        Ok(())
    }

    fn encode_and_submit(&self, state: &State, read_back: Option<&ReadBack>) -> Result<wgpu::SubmissionIndex> {
        self.loaded.device.scoped(ErrorKind::Internal, "running a plan", |device| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("plan") });
            for chunk in state.steps.chunk_by(|a, b| a.work.is_dispatch() && b.work.is_dispatch()) {
                state.encode(&mut encoder, chunk, None);
            }
            if let Some(read_back) = read_back {
                read_back.encode(&mut encoder);
            }
            self.loaded.device.submit(Some(encoder))
        })
    }
}

impl State {
    /// Records dispatches as one pass, or one other step.
    pub(super) fn encode(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        steps: &[Step],
        timestamp_writes: Option<wgpu::ComputePassTimestampWrites<'_>>,
    ) {
        let raw = |slot: SlotId| self.buffers[slot.0 as usize].buffer.raw();
        let mut pass = None;
        let mut timestamp_writes = timestamp_writes;
        let mut current: Option<&Arc<Pipeline>> = None;
        for step in steps.iter().filter(|step| step.work.launches()) {
            match &step.work {
                Work::Dispatch(d) => {
                    let pass = pass.get_or_insert_with(|| {
                        let timestamp_writes = timestamp_writes.take();
                        encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes }).forget_lifetime()
                    });
                    if current.is_none_or(|p| !Arc::ptr_eq(p, &d.pipeline)) {
                        pass.set_pipeline(&d.pipeline.raw);
                        current = Some(&d.pipeline);
                    }
                    pass.set_bind_group(0, &d.group, &[]);
                    let [x, y, z] = d.workgroups;
                    pass.dispatch_workgroups(x, y, z);
                }
                &Work::Copy { from, from_offset, to, to_offset, bytes } => {
                    encoder.copy_buffer_to_buffer(raw(from), from_offset, raw(to), to_offset, bytes);
                }
                &Work::Clear { slot } => encoder.clear_buffer(raw(slot), 0, None),
            }
        }
    }

    fn bind_group(
        &self,
        device: &Device,
        source: &KernelSource,
        pipeline: &Pipeline,
        bindings: &[SlotRange],
        params: Option<&Buffer>,
        params_offset: u64,
    ) -> Result<wgpu::BindGroup> {
        let mut entries: Vec<wgpu::BindGroupEntry<'_>> = Vec::with_capacity(source.bindings.len());
        for (binding, range) in (0..).zip(bindings) {
            let buffer = self.buffers[range.slot.0 as usize].buffer.raw();
            let rest = buffer.size().saturating_sub(range.offset_bytes);
            let size = range.len_bytes.map_or(rest, |len| rounded(len).min(rest));
            let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer,
                offset: range.offset_bytes,
                size: wgpu::BufferSize::new(size),
            });
            entries.push(wgpu::BindGroupEntry { binding, resource });
        }
        if let Some(params) = params.filter(|_| source.num_params > 0) {
            let size = wgpu::BufferSize::new((source.num_params as u64 * 4).next_multiple_of(16));
            let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer: params.raw(), offset: params_offset, size });
            entries.push(wgpu::BindGroupEntry { binding: bindings.len() as u32, resource });
        }
        let descriptor = wgpu::BindGroupDescriptor { label: Some(&source.name), layout: &pipeline.layout, entries: &entries };
        device
            .scoped(ErrorKind::Internal, &format!("binding the buffers of kernel `{}`", source.name), |d| d.create_bind_group(&descriptor))
    }

    /// One dispatch may not read and write one buffer under two slots; tensors bound by a caller can bring that about.
    fn check_aliasing(&self, slots: &[SlotInfo], dispatch: &Dispatch) -> Result<()> {
        let buffer = |range: &SlotRange| &self.buffers[range.slot.0 as usize].buffer;
        for (i, a) in dispatch.bindings.iter().enumerate() {
            let written = dispatch.source.bindings.get(i).is_some_and(|b| b.kind == BindingKind::ReadWrite);
            for b in dispatch.bindings.iter().filter(|b| written && b.slot != a.slot) {
                if Arc::ptr_eq(buffer(a), buffer(b)) {
                    let (a, b) = (&slots[a.slot.0 as usize].name, &slots[b.slot.0 as usize].name);
                    let kernel = &dispatch.source.name;
                    return Err(Error::invalid(format!(
                        "kernel `{kernel}` writes `{a}` and uses `{b}`: they cannot be one tensor, copy it"
                    )));
                }
            }
        }
        Ok(())
    }
}

impl Work {
    pub(super) fn is_dispatch(&self) -> bool {
        matches!(self, Work::Dispatch(_))
    }

    /// Whether it gives the device anything to do.
    pub(super) fn launches(&self) -> bool {
        !matches!(self, Work::Dispatch(dispatch) if dispatch.workgroups.contains(&0))
    }
}

impl SlotInfo {
    fn new(slot: &Slot) -> Self {
        let role = match slot.role {
            SlotRole::Input => Role::Input,
            SlotRole::Donated => Role::Donated,
            SlotRole::Constant(_) => Role::Constant,
            SlotRole::Output => Role::Output,
            SlotRole::Temp => Role::Temp,
            SlotRole::State => Role::State,
        };
        SlotInfo { name: slot.name.clone(), bytes: slot.bytes, role }
    }
}

fn allocate(device: &Device, slot: &Slot) -> Result<SlotBuffer> {
    let buffer = device.buffer(&slot.name, slot.bytes)?;
    if let SlotRole::Constant(data) = &slot.role {
        if data.len() as u64 > slot.bytes {
            let (name, given, room) = (&slot.name, data.len(), slot.bytes);
            return Err(Error::internal(format!("constant `{name}` of {given} bytes does not fit its slot of {room}")));
        }
        device.write(&buffer, data)?;
    }
    Ok(SlotBuffer { buffer, bound: false })
}

fn params_stride(source: &KernelSource) -> u64 {
    (source.num_params as u64 * 4).next_multiple_of(PARAMS_STRIDE)
}

/// The parameter blocks of all dispatches, in one buffer.
fn upload_params(device: &Device, plan: &ExecutionPlan) -> Result<Option<Buffer>> {
    let mut bytes: Vec<u8> = Vec::new();
    for command in &plan.commands {
        if let Command::Dispatch { kernel, params, .. } = command {
            let end = bytes.len() + params_stride(&plan.kernels[kernel.0 as usize]) as usize;
            bytes.extend_from_slice(bytemuck::cast_slice(params));
            bytes.resize(end, 0);
        }
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
    let buffer = device.buffer_with("parameters", bytes.len() as u64, usage)?;
    device.write(&buffer, &bytes)?;
    Ok(Some(buffer))
}

/// Checks the size of every dispatch and of what it binds.
fn check_dispatches(device: &Device, plan: &ExecutionPlan) -> Result<()> {
    let (limits, adapter) = (&device.info().limits, &device.info().name);
    for command in &plan.commands {
        let Command::Dispatch { kernel, bindings, params, workgroups } = command else { continue };
        let source = &plan.kernels[kernel.0 as usize];
        check_size(device, source, params, *workgroups)?;
        for range in bindings {
            let slot = &plan.slots[range.slot.0 as usize];
            let bytes = range.len_bytes.map_or(rounded(slot.bytes).saturating_sub(range.offset_bytes), rounded);
            let allowed = limits.max_binding_bytes;
            if bytes == 0 || bytes > allowed {
                let (name, slot) = (&source.name, &slot.name);
                let message = format!("kernel `{name}` binds {bytes} bytes of `{slot}`, {adapter} allows 1 to {allowed}; bind it in parts");
                return Err(Error::limit(message));
            }
        }
    }
    Ok(())
}

/// Checks the workgroups of a dispatch and the loop iterations of an invocation.
fn check_size(device: &Device, source: &KernelSource, params: &[u32], workgroups: [u32; 3]) -> Result<()> {
    let (limits, adapter, name) = (&device.info().limits, &device.info().name, &source.name);
    let per_dim = limits.max_workgroups_per_dim;
    if let Some(n) = workgroups.iter().find(|&&n| n > per_dim) {
        let message = format!("kernel `{name}` needs {n} workgroups in one dimension, {adapter} allows {per_dim}; fold them into two");
        return Err(Error::limit(message));
    }
    let iterations = source.max_iterations.eval(params);
    if let Some(bound) = limits.max_loop_iterations.filter(|&bound| iterations > bound && !workgroups.contains(&0)) {
        return Err(Error::limit(format!(
            "kernel `{name}` runs up to {iterations} loop iterations in one invocation, {adapter} ends loops after {bound}; split the \
             work over more invocations or dispatches"
        )));
    }
    Ok(())
}
