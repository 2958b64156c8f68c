//! What a kernel may assume of the adapter it is made for.

/// Kind of adapter; the tile tables of the heroes are keyed on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AdapterClass {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the processor's memory.
    Integrated,
    /// A driver that runs kernels on the processor (lavapipe, SwiftShader).
    Software,
    /// Anything else: a virtual GPU or one of unknown kind.
    Other,
}

impl AdapterClass {
    /// Name used in tables and reports.
    pub const fn name(self) -> &'static str {
        match self {
            AdapterClass::Discrete => "discrete",
            AdapterClass::Integrated => "integrated",
            AdapterClass::Software => "software",
            AdapterClass::Other => "other",
        }
    }
}

/// Limits and features that generated kernels keep to. A device makes its own from what the adapter has and its probes show;
/// the presets stand for whole classes of machines and are what the tests validate for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Name of the preset, or of the adapter class for a device's own target.
    pub name: String,
    /// Kind of adapter.
    pub class: AdapterClass,
    /// Storage buffers one kernel may bind (WebGPU guarantees 8, of which wgpu keeps one on Metal).
    pub max_storage_buffers: u32,
    /// Bytes of one storage binding.
    pub max_binding_bytes: u64,
    /// Invocations of one workgroup.
    pub max_workgroup_invocations: u32,
    /// Bytes of workgroup memory.
    pub max_workgroup_bytes: u32,
    /// Workgroups in one dimension of a dispatch.
    pub max_workgroups_per_dim: u32,
    /// Loop iterations one invocation may run before the driver ends its loops, counted as [`KernelSource::max_iterations`] says; `None`:
    /// no bound is known.
    ///
    /// [`KernelSource::max_iterations`]: crate::KernelSource::max_iterations
    pub max_loop_iterations: Option<u64>,
    /// 16-bit floats in WGSL.
    pub f16: bool,
    /// Subgroup operations.
    pub subgroups: bool,
    /// 64-bit integers in WGSL.
    pub int64: bool,
    /// Kernels are to serve several sizes: tails are tested for whether or not a size has some, and nothing is written out for one length.
    pub varying_sizes: bool,
}

impl Target {
    /// WebGPU's default limits and no optional feature: what every adapter can run.
    pub fn webgpu() -> Self {
        Target {
            name: "webgpu".into(),
            class: AdapterClass::Other,
            max_storage_buffers: 7,
            max_binding_bytes: 128 << 20,
            max_workgroup_invocations: 256,
            max_workgroup_bytes: 16 << 10,
            max_workgroups_per_dim: 65_535,
            max_loop_iterations: Some(65_535),
            f16: false,
            subgroups: false,
            int64: false,
            varying_sizes: false,
        }
    }

    /// A Vulkan driver that runs on the processor.
    pub fn software() -> Self {
        Target {
            name: "software".into(),
            class: AdapterClass::Software,
            max_storage_buffers: 16,
            max_workgroup_invocations: 1024,
            max_workgroup_bytes: 32 << 10,
            f16: true,
            subgroups: true,
            ..Target::webgpu()
        }
    }

    /// A discrete GPU of the last ten years.
    pub fn desktop() -> Self {
        Target {
            name: "desktop".into(),
            class: AdapterClass::Discrete,
            max_storage_buffers: 16,
            max_binding_bytes: 2 << 30,
            max_workgroup_invocations: 1024,
            max_workgroup_bytes: 32 << 10,
            max_loop_iterations: None,
            f16: true,
            subgroups: true,
            ..Target::webgpu()
        }
    }

    /// Whether reading 64-bit words pays: drivers on the processor fetch element by element, at the same cost for any width.
    pub fn wide_loads(&self) -> bool {
        self.int64 && self.class == AdapterClass::Software
    }

    /// The presets, in the order they are listed to users.
    pub fn presets() -> [Target; 3] {
        [Target::webgpu(), Target::software(), Target::desktop()]
    }

    /// The preset of that name.
    pub fn preset(name: &str) -> Option<Target> {
        Target::presets().into_iter().find(|t| t.name == name)
    }
}
