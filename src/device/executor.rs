//! Runs execution plans: everything is made at load, one submission a run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernels_gen::{DType, KernelSource};
use rayon::prelude::*;

use crate::device::Device;
use crate::device::commands::{
    Change, Dispatch, Launch, Owner, Role, SlotBuffer, SlotInfo, State, Step, Work, allocate, bind_group, check_aliasing, check_dispatches,
    check_size, params_stride, upload_params,
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

        let bound: Vec<&SlotBuffer> = buffers.iter().collect();
        let mut steps = Vec::new();
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
                    let group = bind_group(device, &slots, &bound, params.as_ref(), &launch)?;
                    Work::Dispatch(Dispatch { launch, group, workgroups: *workgroups })
                }
                Command::Copy { bytes: 0, .. } => continue,
                &Command::Copy { from, from_offset, to, to_offset, bytes } => Work::Copy { from, from_offset, to, to_offset, bytes },
                &Command::Clear { slot } => Work::Clear { slot, bytes: rounded(plan.slots[slot.0 as usize].bytes) },
            };
            steps.push(Step { command, work });
        }
        let state = State { buffers, steps, in_flight: VecDeque::new() };
        state.check_recording(device)?;
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
    /// [`ErrorKind::InvalidArgument`] for a slot that is no input or data of the wrong length, [`ErrorKind::OutOfMemory`] where new
    /// buffers of outputs or read-back buffers do not fit, [`ErrorKind::DeviceLost`]. Slots then have the buffers that they had.
    pub fn run(&self, inputs: &[(SlotId, &[u8])], outputs: &[SlotId]) -> Result<Vec<Vec<u8>>> {
        self.submit(inputs, outputs)?.wait()
    }

    /// [`Executor::run`] for any executor of futures. Dropping the future is safe: what was submitted runs to its end.
    pub async fn run_async(&self, inputs: &[(SlotId, &[u8])], outputs: &[SlotId]) -> Result<Vec<Vec<u8>>> {
        self.submit(inputs, outputs)?.await
    }

    /// Starts a run: one submission with the copies of `outputs` for the host.
    pub fn submit(&self, inputs: &[(SlotId, &[u8])], outputs: &[SlotId]) -> Result<Pending> {
        self.with_inputs(&[], inputs, |state| {
            let read_back = self.read_back(state, outputs)?;
            let index = self.encode_and_submit(state, Some(&read_back))?;
            read_back.pending(index)
        })
    }

    /// Starts a run whose results stay on the device. Blocks only while [`MAX_IN_FLIGHT`] runs before it are not done, so that the memory
    /// for commands and inputs stays bounded.
    pub fn enqueue(&self, inputs: &[(SlotId, &[u8])]) -> Result<()> {
        self.with_inputs(&[], inputs, |state| self.start(state))
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
        for (slot, ..) in outputs {
            self.slot(*slot)?;
        }
        self.with_inputs(inputs, data, |state| {
            let tensor = |(slot, dtype, shape): &(SlotId, DType, &[usize])| {
                DeviceTensor::over(&self.loaded.device, state.buffers[slot.0 as usize].buffer.clone(), *dtype, shape)
            };
            let tensors = outputs.iter().map(tensor).collect::<Result<Vec<_>>>()?;
            self.start(state)?;
            Ok(tensors)
        })
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
        self.exchange(&mut state, placed(&[(slot, tensor)], Owner::Bound), |_| Ok(()))
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
        let mut new = placed(tensors, Owner::Recorded);
        self.renew_outputs(&state, &mut new)?;
        self.exchange(&mut state, new, |state| {
            self.loaded.device.scoped(ErrorKind::Internal, "recording a plan", |_| state.encode_all(recorder.encoder))
        })
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
            check_aliasing(&self.loaded.slots, &state.with(&[]), &dispatch.launch)?;
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

    /// Overwrites what a slot holds, a state for instance. A tensor that a caller has of an input or an output keeps its value.
    pub fn write(&self, slot: SlotId, data: &[u8]) -> Result<()> {
        let data = [(slot, data)];
        self.check_data(&data, |role| matches!(role, Role::Input | Role::Donated | Role::State | Role::Output))?;
        let mut state = self.state();
        let mut new = Vec::new();
        self.renew(&state, &mut new, slot)?;
        self.exchange(&mut state, new, |state| self.write_slots(state, &data))
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

    /// Does `work` on the state from which a run starts: `bound` tensors stand in the places of inputs, `data` is written to others, and
    /// outputs that a caller holds have new buffers. After an error all slots have the buffers that they had.
    pub(super) fn with_inputs<T>(
        &self,
        bound: &[(SlotId, &DeviceTensor)],
        data: &[(SlotId, &[u8])],
        work: impl FnOnce(&mut State) -> Result<T>,
    ) -> Result<T> {
        self.loaded.device.check_alive()?;
        self.check_data(data, Role::is_input)?;
        let mut state = self.state();
        let mut new = placed(bound, Owner::Bound);
        self.renew_outputs(&state, &mut new)?;
        for (slot, _) in data {
            self.renew(&state, &mut new, *slot)?;
        }
        self.exchange(&mut state, new, |state| {
            self.write_slots(state, data)?;
            work(state)
        })
    }

    /// Adds to `new` a buffer for each output that needs one.
    fn renew_outputs(&self, state: &State, new: &mut Vec<(SlotId, SlotBuffer)>) -> Result<()> {
        let mut outputs = (0..).zip(&self.loaded.slots).filter(|(_, info)| info.role == Role::Output);
        outputs.try_for_each(|(slot, _)| self.renew(state, new, SlotId(slot)))
    }

    /// Adds to `new` a buffer for an input or output whose own, or the one that it has there, is a caller's and must keep its value. What
    /// was bound to an output is written.
    fn renew(&self, state: &State, new: &mut Vec<(SlotId, SlotBuffer)>, slot: SlotId) -> Result<()> {
        let info = self.slot(slot)?;
        let given = new.iter().rev().find(|(other, _)| *other == slot);
        let place = given.map_or(&state.buffers[slot.0 as usize], |(_, place)| place);
        let is_callers = match (info.role, place.owner) {
            (Role::Input | Role::Donated, owner) => owner != Owner::Executor,
            (Role::Output, Owner::Executor) => Arc::strong_count(&place.buffer) > 1,
            // One that is given now is what the recording writes.
            (Role::Output, Owner::Recorded) => given.is_none(),
            _ => false,
        };
        if is_callers {
            let buffer = self.loaded.device.buffer(&info.name, info.bytes)?;
            new.push((slot, SlotBuffer { buffer, owner: Owner::Executor }));
        }
        Ok(())
    }

    /// Puts `new` buffers in the places of those that slots have and does `work`. The bind groups are made before anything is changed,
    /// and after an error, also of `work`, everything is as it was: no bind group is ever over other buffers than its slots have.
    fn exchange<T>(&self, state: &mut State, new: Vec<(SlotId, SlotBuffer)>, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let groups = self.groups_over(state, &new)?;
        let mut change = Change { buffers: new, groups };
        state.swap(&mut change);
        let done = work(state);
        if done.is_err() {
            state.swap(&mut change);
        }
        done
    }

    /// Bind groups for the steps that use a slot whose buffer is another one among `new`.
    fn groups_over(&self, state: &State, new: &[(SlotId, SlotBuffer)]) -> Result<Vec<(usize, wgpu::BindGroup)>> {
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let Loaded { device, slots, params, .. } = &*self.loaded;
        let buffers = state.with(new);
        let other = |slot: &SlotId| buffers[slot.0 as usize].buffer.raw() != state.buffers[slot.0 as usize].buffer.raw();
        let changed: Vec<SlotId> = new.iter().map(|(slot, _)| *slot).filter(other).collect();
        let mut groups = Vec::new();
        for (at, step) in state.steps.iter().enumerate() {
            if let Work::Dispatch(d) = &step.work
                && d.launch.bindings.iter().any(|range| changed.contains(&range.slot))
            {
                if step.work.launches() {
                    check_aliasing(slots, &buffers, &d.launch)?;
                }
                groups.push((at, bind_group(device, slots, &buffers, params.as_ref(), &d.launch)?));
            }
        }
        Ok(groups)
    }

    fn check_data(&self, data: &[(SlotId, &[u8])], allowed: impl Fn(Role) -> bool) -> Result<()> {
        for (slot, bytes) in data {
            let info = self.slot(*slot)?;
            if !allowed(info.role) {
                return Err(Error::invalid(format!("slot `{}` is {:?} and cannot be written here", info.name, info.role)));
            }
            if bytes.len() as u64 != info.bytes {
                return Err(Error::invalid(format!("slot `{}` takes {} bytes, {} are given", info.name, info.bytes, bytes.len())));
            }
        }
        Ok(())
    }

    /// Writes data that was checked.
    fn write_slots(&self, state: &State, data: &[(SlotId, &[u8])]) -> Result<()> {
        let write = |(slot, bytes): &(SlotId, &[u8])| self.loaded.device.write(&state.buffers[slot.0 as usize].buffer, bytes);
        data.iter().try_for_each(write)
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

/// Tensors that were checked, for the places of slots' buffers.
fn placed(tensors: &[(SlotId, &DeviceTensor)], owner: Owner) -> Vec<(SlotId, SlotBuffer)> {
    tensors.iter().map(|(slot, tensor)| (*slot, SlotBuffer { buffer: tensor.buffer().clone(), owner })).collect()
}
