//! Pipelines of other people: a caller's device, buffers and command encoders.

use std::sync::Arc;

use crate::device::memory::{Buffer, DeviceTensor, STORAGE, num_bytes, rounded};
use crate::device::{Device, DeviceOptions, adapter, fault, loop_bound, wanted_features};
use crate::error::{Error, ErrorKind, Result};
use kernels_gen::DType;

impl Device {
    /// Works on a device and queue of the caller. `options` say what of them is used: `adapter` is not looked at, features that the device
    /// was not opened with are left alone, `memory_limit_bytes` counts what Sublane allocates. [`Device::descriptor`] says what to open
    /// a device with.
    ///
    /// No callback of the device is replaced. When it is lost, say so with [`Device::report_lost`]; until then its faults are
    /// [`ErrorKind::Internal`]. The loop bound of the adapter is probed, with one submission, where it is not known.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`] where the device is below WebGPU's default limits for compute, with a list of those; the errors of the probe.
    pub fn from_wgpu(device: &wgpu::Device, queue: &wgpu::Queue, options: &DeviceOptions) -> Result<Self> {
        pollster::block_on(Device::from_wgpu_async(device, queue, options))
    }

    /// [`Device::from_wgpu`] for any executor.
    pub async fn from_wgpu_async(device: &wgpu::Device, queue: &wgpu::Queue, options: &DeviceOptions) -> Result<Self> {
        let (info, class) = adapter::describe(device.adapter_info());
        check_limits(&info.name, &device.limits())?;
        let features = wanted_features(options) & device.features();
        let faults = fault::Faults::of_caller();
        let noop = info.backend == "noop";
        let device = Device::assemble((device.clone(), queue.clone()), info, class, features, faults, options, None)?;
        if noop {
            // It runs no kernel, a probe's neither.
            return Ok(device);
        }
        let (bound, ran) = loop_bound::probe(&device, options.cache_dir.as_deref()).await?;
        device.with_loop_bound(bound, ran)
    }

    /// The device of wgpu, for buffers, encoders and pipelines of the caller's own.
    pub fn wgpu_device(&self) -> &wgpu::Device {
        &self.shared.device
    }

    /// The queue of wgpu. What is submitted to it runs in turn with the work of sessions.
    pub fn wgpu_queue(&self) -> &wgpu::Queue {
        &self.shared.queue
    }

    /// Says that the device is lost, for callers of [`Device::from_wgpu`]: what is asked of it from then on is [`ErrorKind::DeviceLost`].
    pub fn report_lost(&self, reason: &str) {
        self.shared.faults.set_lost(reason);
    }
}

/// Refuses a device below WebGPU's defaults in anything that kernels or plans rely on.
fn check_limits(name: &str, limits: &wgpu::Limits) -> Result<()> {
    let least = wgpu::Limits::defaults();
    let rows = |of: &wgpu::Limits| {
        [
            ("max_storage_buffers_per_shader_stage", u64::from(of.max_storage_buffers_per_shader_stage)),
            ("max_storage_buffer_binding_size", of.max_storage_buffer_binding_size),
            ("max_uniform_buffer_binding_size", of.max_uniform_buffer_binding_size),
            ("max_buffer_size", of.max_buffer_size),
            ("max_compute_workgroup_storage_size", of.max_compute_workgroup_storage_size.into()),
            ("max_compute_invocations_per_workgroup", of.max_compute_invocations_per_workgroup.into()),
            ("max_compute_workgroup_size_x", of.max_compute_workgroup_size_x.into()),
            ("max_compute_workgroup_size_y", of.max_compute_workgroup_size_y.into()),
            ("max_compute_workgroup_size_z", of.max_compute_workgroup_size_z.into()),
            ("max_compute_workgroups_per_dimension", of.max_compute_workgroups_per_dimension.into()),
        ]
    };
    let given = rows(limits).into_iter().zip(rows(&least));
    let below = given.filter(|((_, given), (_, least))| given < least);
    let mut missing: Vec<String> = below.map(|((limit, given), (_, least))| format!("{limit} is {given}, needed is {least}")).collect();
    // Offsets of bindings are multiples of 256.
    for (limit, given) in [
        ("min_storage_buffer_offset_alignment", limits.min_storage_buffer_offset_alignment),
        ("min_uniform_buffer_offset_alignment", limits.min_uniform_buffer_offset_alignment),
    ] {
        if given > 256 {
            missing.push(format!("{limit} is {given}, needed is at most 256"));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join("; ");
    Err(Error::limit(format!(
        "the device on {name} was opened with less than WebGPU's default limits: {missing}; open it with `Device::descriptor`"
    )))
}

impl DeviceTensor {
    /// A tensor in a caller's buffer, from its first byte on, without a copy. Kernels see what is written to the buffer and the other way
    /// round: what writes to this tensor, an operation in place or one that it was donated to, changes every other tensor over the buffer,
    /// also the one that [`DeviceTensor::into_buffer`] took it from. It does not count against the memory limit.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`] for a buffer that lacks a usage (`STORAGE | COPY_SRC | COPY_DST`), is smaller than the elements
    /// rounded up to a multiple of 16 bytes (kernels take four elements at a time), or belongs to another device.
    pub fn from_buffer(device: &Device, buffer: &wgpu::Buffer, dtype: DType, shape: &[usize]) -> Result<Self> {
        let bytes = num_bytes(dtype, shape)?;
        let missing = STORAGE - buffer.usage();
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter_names().map(|(name, _)| name).collect();
            return Err(Error::invalid(format!(
                "the buffer for {dtype}{shape:?} lacks the usage {}; make it with STORAGE | COPY_SRC | COPY_DST",
                names.join(" | ")
            )));
        }
        let (least, given) = (rounded(bytes), buffer.size());
        if given < least {
            return Err(Error::invalid(format!(
                "{dtype}{shape:?} takes a buffer of {least} bytes, a multiple of 16; the buffer has {given}, make it larger"
            )));
        }
        // wgpu tells a buffer of another device only when it is bound.
        device.scoped(ErrorKind::InvalidArgument, &format!("the buffer for {dtype}{shape:?} cannot be bound"), |raw| {
            let ty = wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only: false },
                has_dynamic_offset: false,
                min_binding_size: None,
            };
            let entry = wgpu::BindGroupLayoutEntry { binding: 0, visibility: wgpu::ShaderStages::COMPUTE, ty, count: None };
            let layout = raw.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &[entry] });
            let range = wgpu::BufferBinding { buffer, offset: 0, size: wgpu::BufferSize::new(16) };
            let entry = wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(range) };
            raw.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &[entry] })
        })?;
        DeviceTensor::over(device, Arc::new(Buffer::of_caller(buffer.clone(), bytes)), dtype, shape)
    }

    /// The buffer the tensor lies in, from its first byte on, without a copy; it may be larger. Other handles of the tensor, those of an
    /// eager tensor too, stay and see what is written to the buffer: copy it first where they must not. When the last handle of the tensor
    /// is gone, its memory no longer counts against the memory limit, though wgpu keeps it as long as the caller does.
    pub fn into_buffer(self) -> wgpu::Buffer {
        self.buffer().raw().clone()
    }
}

/// Where a session's work is recorded: a caller's command encoder. The caller finishes and submits it, to the queue of the device that the
/// session is loaded on, and may record work of its own before and after.
#[derive(Debug)]
pub struct Recorder<'a> {
    pub(super) encoder: &'a mut wgpu::CommandEncoder,
}

impl<'a> Recorder<'a> {
    /// Records into `encoder`, which must be of the session's device: wgpu says at `finish` if it is not. No pass may be open in it.
    pub fn in_encoder(encoder: &'a mut wgpu::CommandEncoder) -> Self {
        Recorder { encoder }
    }
}
