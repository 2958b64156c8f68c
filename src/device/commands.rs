//! The commands of a loaded plan over its buffers, ready to be recorded.

use std::collections::VecDeque;
use std::sync::Arc;

use kernels_gen::{BindingKind, KernelSource};

use crate::device::Device;
use crate::device::memory::{Buffer, rounded};
use crate::device::pipeline::Pipeline;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{Command, ExecutionPlan, Slot, SlotId, SlotRange, SlotRole};

/// A slot of the plan without its buffer.
#[derive(Debug)]
pub(super) struct SlotInfo {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) role: Role,
}

/// [`SlotRole`] without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Input,
    Donated,
    Constant,
    Output,
    Temp,
    State,
}

impl Role {
    /// Whether the caller fills it before each run.
    pub(super) fn is_input(self) -> bool {
        matches!(self, Role::Input | Role::Donated)
    }
}

/// What changes when a tensor is bound.
#[derive(Debug)]
pub(super) struct State {
    pub(super) buffers: Vec<SlotBuffer>,
    pub(super) steps: Vec<Step>,
    /// Runs that nobody has waited for, oldest first.
    pub(super) in_flight: VecDeque<wgpu::SubmissionIndex>,
}

#[derive(Debug)]
pub(super) struct SlotBuffer {
    pub(super) buffer: Arc<Buffer>,
    pub(super) owner: Owner,
}

/// Whose buffer a slot has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The executor's.
    Executor,
    /// A caller's tensor, bound until another one is; inputs must not be written to it.
    Bound,
    /// A caller's tensor, for what was recorded only: the next run takes another buffer for an output.
    Recorded,
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
    Clear { slot: SlotId, bytes: u64 },
}

#[derive(Debug)]
pub(super) struct Dispatch {
    pub(super) launch: Launch,
    pub(super) group: wgpu::BindGroup,
    pub(super) workgroups: [u32; 3],
}

/// What the bind group of a dispatch is made from.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) source: Arc<KernelSource>,
    pub(super) pipeline: Arc<Pipeline>,
    pub(super) bindings: Vec<SlotRange>,
    /// Where its parameters lie in the executor's parameter buffer.
    pub(super) params_offset: u64,
}

/// Distance of parameter blocks, the largest offset alignment an adapter may ask for.
const PARAMS_STRIDE: u64 = 256;

impl State {
    /// The buffers that the slots have, or get where they are among `new`, the last of them where a slot stands there twice.
    pub(super) fn with<'a>(&'a self, new: &'a [(SlotId, SlotBuffer)]) -> Vec<&'a SlotBuffer> {
        let mut buffers: Vec<&SlotBuffer> = self.buffers.iter().collect();
        for (slot, buffer) in new {
            buffers[slot.0 as usize] = buffer;
        }
        buffers
    }

    /// Puts what `change` holds in its place and gives `change` what was there, so that a second call takes the first one back.
    pub(super) fn swap(&mut self, change: &mut Change) {
        for (slot, buffer) in &mut change.buffers {
            std::mem::swap(&mut self.buffers[slot.0 as usize], buffer);
        }
        // A slot that stands there twice is taken back in the other order.
        change.buffers.reverse();
        for (at, group) in &mut change.groups {
            if let Work::Dispatch(dispatch) = &mut self.steps[*at].work {
                std::mem::swap(&mut dispatch.group, group);
            }
        }
    }

    /// Records a run that nobody submits. What wgpu would refuse at a run, a buffer shorter than the array of a text for instance, is
    /// refused so at load, while a caller's encoder that it is recorded into would say nothing before it is finished.
    pub(super) fn check_recording(&self, device: &Device) -> Result<()> {
        let record = |what: &str, steps: &[Step]| {
            device.scoped(ErrorKind::Internal, what, |raw| {
                let mut encoder = raw.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("plan") });
                self.encode_steps(&mut encoder, steps);
                encoder.finish()
            })
        };
        let Err(error) = record("recording the plan", &self.steps) else { return Ok(()) };
        // wgpu does not say at which dispatch.
        for step in &self.steps {
            if let Work::Dispatch(dispatch) = &step.work {
                record(&format!("recording kernel `{}`", dispatch.launch.source.name), std::slice::from_ref(step))?;
            }
        }
        Err(error)
    }

    /// Records a whole run.
    pub(super) fn encode_all(&self, encoder: &mut wgpu::CommandEncoder) {
        self.encode_steps(encoder, &self.steps);
    }

    fn encode_steps(&self, encoder: &mut wgpu::CommandEncoder, steps: &[Step]) {
        for chunk in steps.chunk_by(|a, b| a.work.is_dispatch() && b.work.is_dispatch()) {
            self.encode(encoder, chunk, None);
        }
    }

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
                    if current.is_none_or(|p| !Arc::ptr_eq(p, &d.launch.pipeline)) {
                        pass.set_pipeline(&d.launch.pipeline.raw);
                        current = Some(&d.launch.pipeline);
                    }
                    pass.set_bind_group(0, &d.group, &[]);
                    let [x, y, z] = d.workgroups;
                    pass.dispatch_workgroups(x, y, z);
                }
                &Work::Copy { from, from_offset, to, to_offset, bytes } => {
                    encoder.copy_buffer_to_buffer(raw(from), from_offset, raw(to), to_offset, bytes);
                }
                // A caller's buffer may be larger than the slot.
                &Work::Clear { slot, bytes } => encoder.clear_buffer(raw(slot), 0, Some(bytes)),
            }
        }
    }
}

/// Buffers of slots, and the bind groups over them of the steps at those places, before or after they are exchanged.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) buffers: Vec<(SlotId, SlotBuffer)>,
    pub(super) groups: Vec<(usize, wgpu::BindGroup)>,
}

/// The bind group of a dispatch over `buffers`, one for each slot.
pub(super) fn bind_group(
    device: &Device,
    slots: &[SlotInfo],
    buffers: &[&SlotBuffer],
    params: Option<&Buffer>,
    launch: &Launch,
) -> Result<wgpu::BindGroup> {
    let Launch { source, pipeline, bindings, params_offset } = launch;
    let mut entries: Vec<wgpu::BindGroupEntry<'_>> = Vec::with_capacity(source.bindings.len());
    for (binding, range) in (0..).zip(bindings) {
        let buffer = buffers[range.slot.0 as usize].buffer.raw();
        // A caller's buffer may be larger than the slot, and than a binding may be.
        let rest = rounded(slots[range.slot.0 as usize].bytes).saturating_sub(range.offset_bytes);
        let size = range.len_bytes.map_or(rest, |len| rounded(len).min(rest));
        let resource =
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset: range.offset_bytes, size: wgpu::BufferSize::new(size) });
        entries.push(wgpu::BindGroupEntry { binding, resource });
    }
    if let Some(params) = params.filter(|_| source.num_params > 0) {
        let size = wgpu::BufferSize::new((source.num_params as u64 * 4).next_multiple_of(16));
        let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer: params.raw(), offset: *params_offset, size });
        entries.push(wgpu::BindGroupEntry { binding: bindings.len() as u32, resource });
    }
    let descriptor = wgpu::BindGroupDescriptor { label: Some(&source.name), layout: &pipeline.layout, entries: &entries };
    device.scoped(ErrorKind::Internal, &format!("binding the buffers of kernel `{}`", source.name), |d| d.create_bind_group(&descriptor))
}

/// One dispatch may not read and write one buffer under two slots; tensors bound by a caller can bring that about.
pub(super) fn check_aliasing(slots: &[SlotInfo], buffers: &[&SlotBuffer], launch: &Launch) -> Result<()> {
    let buffer = |range: &SlotRange| buffers[range.slot.0 as usize].buffer.raw();
    for (i, a) in launch.bindings.iter().enumerate() {
        let written = launch.source.bindings.get(i).is_some_and(|b| b.kind == BindingKind::ReadWrite);
        for b in launch.bindings.iter().filter(|b| written && b.slot != a.slot) {
            if buffer(a) == buffer(b) {
                let (a, b) = (&slots[a.slot.0 as usize].name, &slots[b.slot.0 as usize].name);
                let kernel = &launch.source.name;
                return Err(Error::invalid(format!("kernel `{kernel}` writes `{a}` and uses `{b}`: they cannot be one tensor, copy it")));
            }
        }
    }
    Ok(())
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
    pub(super) fn new(slot: &Slot) -> Self {
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

pub(super) fn allocate(device: &Device, slot: &Slot) -> Result<SlotBuffer> {
    let buffer = device.buffer(&slot.name, slot.bytes)?;
    if let SlotRole::Constant(data) = &slot.role {
        if data.len() as u64 > slot.bytes {
            let (name, given, room) = (&slot.name, data.len(), slot.bytes);
            return Err(Error::internal(format!("constant `{name}` of {given} bytes does not fit its slot of {room}")));
        }
        device.write(&buffer, data)?;
    }
    Ok(SlotBuffer { buffer, owner: Owner::Executor })
}

pub(super) fn params_stride(source: &KernelSource) -> u64 {
    (source.num_params as u64 * 4).next_multiple_of(PARAMS_STRIDE)
}

/// The parameter blocks of all dispatches, in one buffer.
pub(super) fn upload_params(device: &Device, plan: &ExecutionPlan) -> Result<Option<Buffer>> {
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
pub(super) fn check_dispatches(device: &Device, plan: &ExecutionPlan) -> Result<()> {
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
pub(super) fn check_size(device: &Device, source: &KernelSource, params: &[u32], workgroups: [u32; 3]) -> Result<()> {
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
