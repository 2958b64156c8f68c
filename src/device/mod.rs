//! The device layer: adapters, memory, pipelines and the executor of plans. The only module that names wgpu.
//!
//! A [`Device`] is opened on the best adapter or the one that is asked for. [`Executor`] loads an
//! [`ExecutionPlan`](crate::plan::ExecutionPlan) on it and runs it, one submission a run. Whatever goes wrong, a lost device
//! included, is an error value and leaves everything else usable.

mod adapter;
mod commands;
mod executor;
mod fault;
mod interop;
mod loop_bound;
mod memory;
mod pipeline;
mod probes;
mod profile;
mod readback;
mod unsafe_calls;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use kernels_gen::heroes::SUBGROUP_LANES;
use kernels_gen::{AdapterClass, Target};
use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};

pub use adapter::{AdapterInfo, adapters};
pub use executor::{Executor, MAX_IN_FLIGHT};
pub use interop::Recorder;
pub use memory::{Buffer, DeviceTensor};
pub use probes::{BANDWIDTH_BYTES, FmaProbe, Probes};
pub use profile::{Clock, CommandTime, Profile};
pub use readback::Pending;

/// Which limits a device is opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitsMode {
    /// What the adapter has.
    #[default]
    Native,
    /// WebGPU's defaults and no optional feature: what every adapter has.
    Webgpu,
}

/// How to open a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Place in [`adapters`] or part of a name; `None` for the best one.
    pub adapter: Option<String>,
    /// Limits.
    pub limits: LimitsMode,
    /// Most bytes of device memory to use; `None` for no limit of ours.
    pub memory_limit_bytes: Option<u64>,
    /// Measure with GPU timestamps where the adapter has them.
    pub timestamps: bool,
    /// Use `f16` where the adapter has it.
    pub f16: bool,
    /// Use subgroup operations where the adapter has them.
    pub subgroups: bool,
    /// Folder that compiled pipelines and what probes show are kept in; `None` keeps nothing.
    pub cache_dir: Option<PathBuf>,
}

impl Default for DeviceOptions {
    fn default() -> Self {
        DeviceOptions {
            adapter: None,
            limits: LimitsMode::Native,
            memory_limit_bytes: None,
            timestamps: true,
            f16: true,
            subgroups: true,
            cache_dir: None,
        }
    }
}

impl DeviceOptions {
    /// The defaults, with the adapter that the variable `SUBLANE_ADAPTER` names.
    pub fn from_env() -> Self {
        let adapter = std::env::var("SUBLANE_ADAPTER").ok().filter(|name| !name.trim().is_empty());
        DeviceOptions { adapter, ..DeviceOptions::default() }
    }
}

/// Limits of an open device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceLimits {
    /// Bytes of one buffer.
    pub max_buffer_bytes: u64,
    /// Bytes of one storage binding.
    pub max_binding_bytes: u64,
    /// Storage buffers one kernel may bind.
    pub max_storage_buffers: u32,
    /// Invocations of one workgroup.
    pub max_workgroup_invocations: u32,
    /// Bytes of workgroup memory.
    pub max_workgroup_bytes: u32,
    /// Workgroups in one dimension of a dispatch.
    pub max_workgroups_per_dim: u32,
    /// Loop iterations one invocation can run, as probed, counted as [`KernelSource::max_iterations`](kernels_gen::KernelSource) says;
    /// `None`: no bound was met.
    pub max_loop_iterations: Option<u64>,
    /// Bytes of device memory that may be used; `None`: no limit was given.
    pub memory_limit_bytes: Option<u64>,
}

/// What an open device is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceInfo {
    /// Name of the adapter.
    pub name: String,
    /// Driver and version.
    pub driver: String,
    /// Graphics interface: `vulkan`, `metal`, `dx12`, `gl` or `noop`.
    pub backend: String,
    /// `discrete`, `integrated`, `software` or `other`.
    pub class: &'static str,
    /// Which limits it was opened with.
    pub limits_mode: LimitsMode,
    /// The limits.
    pub limits: DeviceLimits,
    /// Optional features in use.
    pub features: Vec<&'static str>,
    /// Clock that kernels are measured with.
    pub clock: Clock,
}

/// An open device: a cheap handle; the device is closed with the last one.
#[derive(Clone)]
pub struct Device {
    shared: Arc<Shared>,
}

struct Shared {
    device: wgpu::Device,
    queue: wgpu::Queue,
    limits: wgpu::Limits,
    /// Optional features in use.
    features: wgpu::Features,
    info: DeviceInfo,
    target: Target,
    faults: Arc<fault::Faults>,
    budget: Arc<memory::Budget>,
    pipelines: pipeline::Pipelines,
    poller: readback::Poller,
    /// Bytes written since the last submission.
    staged_bytes: AtomicUsize,
    probes_run: u32,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.faults.check().is_ok()
            && let Err(error) = self.pipelines.save()
        {
            log::warn!("{error}");
        }
    }
}

/// Handles of one open device are equal.
impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Device {}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({}, {})", self.info().name, self.info().backend)
    }
}

/// Folder inside the cache folder of what probes showed.
pub const PROBES_FOLDER: &str = "probes";

/// The optional features Sublane can use, by the name they are reported under.
const FEATURES: [(&str, wgpu::Features); 5] = [
    ("timestamps", wgpu::Features::TIMESTAMP_QUERY),
    ("f16", wgpu::Features::SHADER_F16),
    ("subgroups", wgpu::Features::SUBGROUP),
    ("int64", wgpu::Features::SHADER_INT64),
    ("pipeline cache", wgpu::Features::PIPELINE_CACHE),
];

/// The optional features that `options` allow.
fn wanted_features(options: &DeviceOptions) -> wgpu::Features {
    let mut features = wgpu::Features::empty();
    for (name, feature) in FEATURES {
        let wanted = match name {
            "timestamps" => options.timestamps,
            "f16" => options.f16,
            "subgroups" => options.subgroups,
            "pipeline cache" => options.cache_dir.is_some(),
            _ => true,
        };
        if options.limits == LimitsMode::Native && wanted {
            features |= feature;
        }
    }
    features
}

impl Device {
    /// Opens a device.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoAdapter`] where there is none, or none of the given name; [`ErrorKind::Limit`] where the adapter is below WebGPU's
    /// defaults and those were asked for.
    pub fn open(options: &DeviceOptions) -> Result<Self> {
        pollster::block_on(Device::open_async(options))
    }

    /// [`Device::open`] for any executor.
    pub async fn open_async(options: &DeviceOptions) -> Result<Self> {
        let candidate = adapter::choose(options.adapter.as_deref()).await?;
        let device = Device::create(candidate, options, None).await?;
        let (bound, ran) = loop_bound::probe(&device, options.cache_dir.as_deref()).await?;
        device.with_loop_bound(bound, ran)
    }

    /// A device at WebGPU's default limits that keeps buffers, checks every call and runs no kernel: for tests.
    pub fn noop() -> Result<Self> {
        Device::noop_with(&DeviceOptions::default())
    }

    /// [`Device::noop`] with a memory limit; the other options are ignored.
    pub fn noop_with(options: &DeviceOptions) -> Result<Self> {
        let options =
            DeviceOptions { limits: LimitsMode::Webgpu, memory_limit_bytes: options.memory_limit_bytes, ..DeviceOptions::default() };
        pollster::block_on(async { Device::create(adapter::noop().await?, &options, Target::webgpu().max_loop_iterations).await })
    }

    async fn create(candidate: adapter::Candidate, options: &DeviceOptions, loop_bound: Option<u64>) -> Result<Self> {
        let adapter::Candidate { adapter, info, class } = candidate;
        let opened = adapter.request_device(&Device::descriptor(&adapter, options)).await;
        let (device, queue) = opened.map_err(|error| {
            let message = format!("{} does not open with {:?} limits: {error}; choose another adapter", info.name, options.limits);
            Error::new(ErrorKind::Limit, message).with_source(error)
        })?;
        let features = device.features();
        let faults = fault::Faults::watch(&device);
        Device::assemble((device, queue), info, class, features, faults, options, loop_bound)
    }

    /// The device that Sublane would ask `adapter` for: its limits and the optional features it can use. A caller adds what else it needs
    /// and opens it for [`Device::from_wgpu`].
    pub fn descriptor(adapter: &wgpu::Adapter, options: &DeviceOptions) -> wgpu::DeviceDescriptor<'static> {
        let native = options.limits == LimitsMode::Native;
        wgpu::DeviceDescriptor {
            label: Some("sublane"),
            required_features: wanted_features(options) & adapter.features(),
            required_limits: if native { adapter.limits() } else { wgpu::Limits::defaults() },
            ..Default::default()
        }
    }

    /// Everything there is around a device of wgpu; `features` are those that are used.
    fn assemble(
        (device, queue): (wgpu::Device, wgpu::Queue),
        info: AdapterInfo,
        class: AdapterClass,
        features: wgpu::Features,
        faults: Arc<fault::Faults>,
        options: &DeviceOptions,
        loop_bound: Option<u64>,
    ) -> Result<Self> {
        let (native, raw_info) = (options.limits == LimitsMode::Native, device.adapter_info());
        let limits = if native { device.limits() } else { wgpu::Limits::defaults() };
        // wgpu keeps one of Metal's buffer slots for the sizes of the others; WebGPU's defaults have to work there too.
        let kept = (!native || info.backend == "metal") as u32;
        let device_limits = DeviceLimits {
            max_buffer_bytes: limits.max_buffer_size,
            max_binding_bytes: limits.max_storage_buffer_binding_size,
            max_storage_buffers: limits.max_storage_buffers_per_shader_stage.saturating_sub(kept),
            max_workgroup_invocations: limits.max_compute_invocations_per_workgroup,
            max_workgroup_bytes: limits.max_compute_workgroup_storage_size,
            max_workgroups_per_dim: limits.max_compute_workgroups_per_dimension,
            max_loop_iterations: loop_bound,
            memory_limit_bytes: options.memory_limit_bytes,
        };
        let has = |feature| features.contains(feature);
        let clock = if has(wgpu::Features::TIMESTAMP_QUERY) { Clock::Timestamps } else { Clock::Host };
        let target = target(class, options.limits, &device_limits, features, &raw_info);
        let info = DeviceInfo {
            name: info.name,
            driver: info.driver,
            backend: info.backend,
            class: info.class,
            limits_mode: options.limits,
            limits: device_limits,
            features: FEATURES.iter().filter(|(_, feature)| has(*feature)).map(|(name, _)| *name).collect(),
            clock,
        };
        let pipelines = pipeline::Pipelines::open(&device, &raw_info, options.cache_dir.as_deref());
        let budget = Arc::new(memory::Budget::new(options.memory_limit_bytes));
        let poller = readback::Poller::default();
        let staged_bytes = AtomicUsize::new(0);
        let shared =
            Shared { device, queue, limits, features, info, target, faults, budget, pipelines, poller, staged_bytes, probes_run: 0 };
        Ok(Device { shared: Arc::new(shared) })
    }

    /// The device with its probed loop bound. Nobody else may hold it yet.
    fn with_loop_bound(mut self, bound: Option<u64>, probed: bool) -> Result<Self> {
        let shared = Arc::get_mut(&mut self.shared).ok_or_else(|| Error::internal("the loop-bound probe kept the device"))?;
        shared.info.limits.max_loop_iterations = bound;
        shared.target.max_loop_iterations = bound;
        shared.probes_run = u32::from(probed);
        Ok(self)
    }

    /// What the device is.
    pub fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    /// Probes that ran to open the device: 0 where this process or the cache folder knew what they show.
    pub fn probes_run(&self) -> u32 {
        self.shared.probes_run
    }

    /// What kernels for this device may use.
    pub fn target(&self) -> Target {
        self.shared.target.clone()
    }

    /// Bytes of device memory in use, buffers of the caller and of executors together.
    pub fn used_bytes(&self) -> u64 {
        self.shared.budget.used_bytes()
    }

    /// Most bytes of device memory that may be in use, if a limit was given.
    pub fn memory_limit_bytes(&self) -> Option<u64> {
        self.shared.budget.limit_bytes()
    }

    /// [`ErrorKind::DeviceLost`] with the reason, if the device is lost.
    pub fn check_alive(&self) -> Result<()> {
        self.shared.faults.check()
    }

    /// Closes the device for all its handles, at once (a caller's device of [`Device::from_wgpu`] too); whatever uses it afterwards gets
    /// [`ErrorKind::DeviceLost`].
    pub fn destroy(&self) {
        self.shared.faults.set_lost("it was destroyed");
        self.shared.device.destroy();
    }

    fn scoped<T>(&self, kind: ErrorKind, what: &str, f: impl FnOnce(&wgpu::Device) -> T) -> Result<T> {
        self.shared.faults.scoped(&self.shared.device, kind, what, || f(&self.shared.device))
    }
}

/// Most storage buffers that generated kernels use, however many the adapter has: as many as the presets have.
const MAX_STORAGE_BUFFERS: u32 = 16;
/// Most bytes generated kernels reach through one binding: byte offsets stay exact in 32 bits.
const MAX_BINDING_BYTES: u64 = 2 << 30;

fn target(class: AdapterClass, mode: LimitsMode, limits: &DeviceLimits, features: wgpu::Features, adapter: &wgpu::AdapterInfo) -> Target {
    Target {
        name: if mode == LimitsMode::Webgpu { "webgpu".into() } else { class.name().into() },
        class,
        max_storage_buffers: limits.max_storage_buffers.min(MAX_STORAGE_BUFFERS),
        max_binding_bytes: limits.max_binding_bytes.min(limits.max_buffer_bytes).min(MAX_BINDING_BYTES),
        max_workgroup_invocations: limits.max_workgroup_invocations.min(1024),
        max_workgroup_bytes: limits.max_workgroup_bytes.min(32 << 10),
        max_workgroups_per_dim: limits.max_workgroups_per_dim.min(65_535),
        max_loop_iterations: limits.max_loop_iterations,
        f16: features.contains(wgpu::Features::SHADER_F16),
        // Kernels share operands among this many lanes; smaller subgroups would share too little and give wrong results.
        subgroups: features.contains(wgpu::Features::SUBGROUP) && adapter.subgroup_min_size >= SUBGROUP_LANES,
        int64: features.contains(wgpu::Features::SHADER_INT64),
        varying_sizes: false,
    }
}
