//! [`KernelSource`]: the one artefact through which WGSL reaches a device.

/// A non-negative number that depends on the words of a kernel's parameter block.
///
/// Costs and iteration bounds are stated this way, so that a dispatch can be checked before it runs. Arithmetic saturates.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Formula {
    /// A constant.
    Const(u64),
    /// The parameter word of that index, read as `u32`.
    Param(usize),
    /// Sum.
    Add(Box<Formula>, Box<Formula>),
    /// Product.
    Mul(Box<Formula>, Box<Formula>),
    /// Quotient rounded up; a divisor of 0 counts as 1.
    DivCeil(Box<Formula>, Box<Formula>),
}

impl Formula {
    /// Value for the given parameter words; a word that is missing counts as 0.
    pub fn eval(&self, params: &[u32]) -> u64 {
        match self {
            Formula::Const(c) => *c,
            Formula::Param(i) => params.get(*i).copied().map_or(0, u64::from),
            Formula::Add(a, b) => a.eval(params).saturating_add(b.eval(params)),
            Formula::Mul(a, b) => a.eval(params).saturating_mul(b.eval(params)),
            Formula::DivCeil(a, b) => a.eval(params).div_ceil(b.eval(params).max(1)),
        }
    }
}

impl From<u64> for Formula {
    fn from(value: u64) -> Self {
        Formula::Const(value)
    }
}

impl std::ops::Add for Formula {
    type Output = Formula;
    fn add(self, other: Formula) -> Formula {
        Formula::Add(Box::new(self), Box::new(other))
    }
}

impl std::ops::Mul for Formula {
    type Output = Formula;
    fn mul(self, other: Formula) -> Formula {
        Formula::Mul(Box::new(self), Box::new(other))
    }
}

/// How a kernel uses one binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BindingKind {
    /// `var<storage, read>`.
    Read,
    /// `var<storage, read_write>`.
    ReadWrite,
    /// `var<uniform>`: the parameter block, a struct of 32-bit words. At most one, and it stands last.
    Params,
}

/// One binding of group 0; its index is its place in [`KernelSource::bindings`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Binding {
    /// Name of the variable in the text.
    pub name: String,
    /// Use.
    pub kind: BindingKind,
}

impl Binding {
    /// A binding of that name and use.
    pub fn new(name: impl Into<String>, kind: BindingKind) -> Self {
        Binding { name: name.into(), kind }
    }
}

/// Optional WGSL features a kernel needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WgslFeatures {
    /// `f16`.
    pub f16: bool,
    /// Subgroup operations.
    pub subgroups: bool,
    /// 64-bit integers (a wgpu extension, not WebGPU).
    pub int64: bool,
}

/// A complete compute kernel: text and everything a device or a report needs to know of it.
///
/// `name` is at once the file stem, the entry point, the pipeline label and the key in reports.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelSource {
    /// Name and entry point.
    pub name: String,
    /// WGSL text.
    pub wgsl: String,
    /// Bindings of group 0, in order of their index.
    pub bindings: Vec<Binding>,
    /// Number of 32-bit words in the parameter block, 0 without one.
    pub num_params: usize,
    /// Invocations of a workgroup in x, y, z, overrides resolved.
    pub workgroup_size: [u32; 3],
    /// Values of the text's `override` declarations, as (name, bits of an f64).
    pub overrides: Vec<(String, u64)>,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Optional features the text uses.
    pub features: WgslFeatures,
    /// Floating-point operations of one dispatch.
    pub flops: Formula,
    /// Bytes one dispatch reads and writes, each tensor counted once.
    pub bytes: Formula,
    /// The most loop iterations one invocation runs, all loops together, where each run of a loop counts one more than its iterations:
    /// drivers that end loops early also count the check a loop ends with. An inner loop of `m` in an outer one of `n` iterations makes
    /// `n * (m + 1 + 1) + 1`.
    pub max_iterations: Formula,
}

impl KernelSource {
    /// Number of storage bindings.
    pub fn num_storage(&self) -> usize {
        self.bindings.iter().filter(|b| b.kind != BindingKind::Params).count()
    }

    /// Override values as wgpu and naga take them.
    pub fn override_values(&self) -> impl Iterator<Item = (&str, f64)> {
        self.overrides.iter().map(|(name, bits)| (name.as_str(), f64::from_bits(*bits)))
    }
}
