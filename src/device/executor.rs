//! Runs execution plans: everything is made at load, one submission a run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernels_gen::{DType, KernelSource};
use rayon::prelude::*;

use crate::device::Device;
use crate::device::commands::{
    Dispatch, Launch, Owner, Role, SlotBuffer, SlotInfo, State, Step, Work, allocate, check_dispatches, check_size, params_stride,
    upload_params,
};
use crate::device::interop::Recorder;
use crate::device::memory::{Buffer, DeviceTensor, rounded};
use crate::device::readback::{Pending, ReadBack, StagingPool};
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Command, ExecutionPlan, SlotId};

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

/// Runs that may wait on the device's queue before [`Executor::enqueue`] waits for one of them.
pub const MAX_IN_FLIGHT: usize = 64;

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
        let slots: Vec<SlotInfo> = plan.slots.iter().map(SlotInfo::new).collect();

        let mut state = State { buffers, steps: Vec::new(), in_flight: VecDeque::new() };
        let mut params_offset = 0;
        for (command, step) in plan.commands.iter().enumerate() {
            let work = match step {
                Command::Dispatch { kernel, bindings, workgroups, .. } => {
                    let source = &plan.kernels[kernel.0 as usize];
                    let launch = Launch {
                        source: source.clone(),
                        pipeline: pipelines[kernel.0 as usize].clone(),
                        bindings: bindings.clone(),
                        params_offset,
                    };
                    params_offset += params_stride(source);
                    let group = state.bind_group(device, &slots, params.as_ref(), &launch)?;
                    Work::Dispatch(Dispatch { launch, group, workgroups: *workgroups })
                }
                Command::Copy { bytes: 0, .. } => continue,
                &Command::Copy { from, from_offset, to, to_offset, bytes } => Work::Copy { from, from_offset, to, to_offset, bytes },
                &Command::Clear { slot } => Work::Clear { slot, bytes: rounded(plan.slots[slot.0 as usize].bytes) },
            };
            state.steps.push(Step { command, work });
        }
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

    /// Starts a run over tensors of the caller, of which nobody else's run sees a part: `inputs` are bound, `data` is written to other
    /// inputs, and the slots `outputs` are given as tensors of those types. A slot that is both an input and an output is the tensor that
    /// was bound. Blocks as [`Executor::enqueue`] does.
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
            self.check_binding(*slot, tensor)?;
        }
        let mut state = self.state();
        let mut changed = state.exchange(inputs, Owner::Bound);
        if let Err(error) = self.prepare_over(&mut state, data, &mut changed) {
            return Err(self.restore(&mut state, changed, error));
        }
        self.start(&mut state)?;
        let tensor = |(slot, dtype, shape): &(SlotId, DType, &[usize])| {
            self.slot(*slot)?;
            DeviceTensor::over(&self.loaded.device, state.buffers[slot.0 as usize].buffer.clone(), *dtype, shape)
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
        self.check_binding(slot, tensor)?;
        let mut state = self.state();
        let changed = state.exchange(&[(slot, tensor)], Owner::Bound);
        match self.rebind(&mut state, &changed) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.restore(&mut state, changed, error)),
        }
    }

    /// Checks that `tensor` may take the place of a slot's buffer.
    fn check_binding(&self, slot: SlotId, tensor: &DeviceTensor) -> Result<()> {
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

    /// Gives slots the buffers back that `changed` says they had, after `error`. Where that fails too, the device is gone, which is then
    /// the error.
    fn restore(&self, state: &mut State, changed: Vec<(SlotId, SlotBuffer)>, error: Error) -> Error {
        let now: Vec<(SlotId, SlotBuffer)> =
            changed.into_iter().rev().map(|(slot, was)| (slot, std::mem::replace(&mut state.buffers[slot.0 as usize], was))).collect();
        self.rebind(state, &now).err().unwrap_or(error)
    }

    /// Records a run that reads and writes `tensors`, each in the place of a slot's buffer. What is recorded counts for the device only
    /// once the encoder is submitted; recording the same tensors again creates nothing. An input or state without a tensor keeps its
    /// buffer; an output without one is written to a buffer of the executor.
    ///
    /// # Errors
    ///
    /// Those of [`Executor::bind`], and [`ErrorKind::InvalidArgument`] where one buffer stands for an output and another slot: a step
    /// could read what an earlier one has written over. Nothing is recorded then.
    pub fn record(&self, recorder: &mut Recorder<'_>, tensors: &[(SlotId, &DeviceTensor)]) -> Result<()> {
        self.loaded.device.check_alive()?;
        for (at, (slot, tensor)) in tensors.iter().enumerate() {
            self.check_binding(*slot, tensor)?;
            for (other, with) in &tensors[..at] {
                let (a, b) = (self.slot(*other)?, self.slot(*slot)?);
                if slot == other {
                    return Err(Error::invalid(format!("slot `{}` is given two tensors", a.name)));
                }
                let written = a.role != Role::Input || b.role != Role::Input;
                if written && tensor.buffer().raw() == with.buffer().raw() {
                    let (a, b) = (&a.name, &b.name);
                    return Err(Error::invalid(format!("`{a}` and `{b}` are one buffer, and one of them is written; give each its own")));
                }
            }
        }
        let mut state = self.state();
        let given: Vec<SlotId> = tensors.iter().map(|(slot, _)| *slot).collect();
        let mut changed = state.exchange(tensors, Owner::Recorded);
        if let Err(error) = self.renew_outputs(&mut state, &given, &mut changed) {
            return Err(self.restore(&mut state, changed, error));
        }
        self.loaded.device.scoped(ErrorKind::Internal, "recording a plan", |_| state.encode_all(recorder.encoder))
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
        let KernelSource { name, num_params, .. } = &*dispatch.launch.source;
        if params.len() != *num_params {
            return Err(Error::invalid(format!("kernel `{name}` takes {num_params} parameter words, {} are given", params.len())));
        }
        check_size(device, &dispatch.launch.source, params, workgroups)?;
        if !workgroups.contains(&0) {
            state.check_aliasing(&self.loaded.slots, &dispatch.launch)?;
        }
        if let Some(buffer) = self.loaded.params.as_ref().filter(|_| *num_params > 0) {
            device.write_at(buffer, dispatch.launch.params_offset, bytemuck::cast_slice(params))?;
        }
        if let Work::Dispatch(dispatch) = &mut state.steps[at].work {
            dispatch.workgroups = workgroups;
        }
        Ok(())
    }

    /// A handle on the front of what a slot holds, without a copy. The tensor of an output keeps its value: the next run writes to a new
    /// buffer as long as the handle lives. The tensor of a state shows what later runs write.
    pub fn slot_tensor(&self, slot: SlotId, dtype: DType, shape: &[usize]) -> Result<DeviceTensor> {
        let info = self.slot(slot)?;
        let buffer = self.state().buffers[slot.0 as usize].buffer.clone();
        let tensor = DeviceTensor::over(&self.loaded.device, buffer, dtype, shape)?;
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
        self.renew_outputs(state, &[], changed)?;
        self.write_slots(state, inputs, Role::is_input)
    }

    /// Gives outputs that a caller holds a buffer of their own, but for those in `except` and those that were bound. Binds what `changed`
    /// names too.
    fn renew_outputs(&self, state: &mut State, except: &[SlotId], changed: &mut Vec<(SlotId, SlotBuffer)>) -> Result<()> {
        for (i, info) in self.loaded.slots.iter().enumerate() {
            let (slot, place) = (SlotId(i as u32), &mut state.buffers[i]);
            let held = match place.owner {
                Owner::Executor => Arc::strong_count(&place.buffer) > 1,
                Owner::Recorded => true,
                Owner::Bound => false,
            };
            if info.role == Role::Output && held && !except.contains(&slot) {
                let buffer = self.loaded.device.buffer(&info.name, info.bytes)?;
                changed.push((slot, std::mem::replace(place, SlotBuffer { buffer, owner: Owner::Executor })));
            }
        }
        self.rebind(state, changed)
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
            if info.role.is_input() && state.buffers[place].owner != Owner::Executor {
                // The buffer is a caller's tensor: leave that as it is.
                let buffer = self.loaded.device.buffer(&info.name, info.bytes)?;
                let was = std::mem::replace(&mut state.buffers[place], SlotBuffer { buffer, owner: Owner::Executor });
                self.rebind(state, &[(*slot, was)])?;
            }
            self.loaded.device.write(&state.buffers[place].buffer, bytes)?;
        }
        Ok(())
    }

    /// Makes the bind groups anew that a slot is part of whose buffer is no longer the one that `changed` names: all of them, or none.
    fn rebind(&self, state: &mut State, changed: &[(SlotId, SlotBuffer)]) -> Result<()> {
        let other = |(slot, was): &&(SlotId, SlotBuffer)| was.buffer.raw() != state.buffers[slot.0 as usize].buffer.raw();
        let slots: Vec<SlotId> = changed.iter().filter(other).map(|(slot, _)| *slot).collect();
        if slots.is_empty() {
            return Ok(());
        }
        let mut groups = Vec::new();
        for (at, step) in state.steps.iter().enumerate() {
            if let Work::Dispatch(d) = &step.work
                && d.launch.bindings.iter().any(|range| slots.contains(&range.slot))
            {
                if step.work.launches() {
                    state.check_aliasing(&self.loaded.slots, &d.launch)?;
                }
                let Loaded { device, slots, params, .. } = &*self.loaded;
                groups.push((at, state.bind_group(device, slots, params.as_ref(), &d.launch)?));
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
            state.encode_all(&mut encoder);
            if let Some(read_back) = read_back {
                read_back.encode(&mut encoder);
            }
            self.loaded.device.submit(Some(encoder))
        })
    }
}
