//! Kernels that measure an adapter: how long its loops may be, how fast it multiplies and adds, how fast it moves bytes.
//!
//! What a probe computes is stored under a condition that never holds and that no compiler can decide, so that the work cannot be
//! left out and no store is measured with it.

use std::collections::BTreeSet;

use crate::emit::{Helper, helpers};
use std::fmt::Write;

use crate::source::{Binding, BindingKind, Formula, KernelSource, WgslFeatures};

/// Invocations of a workgroup of every probe but [`loop_bound`].
pub const WORKGROUP_INVOCATIONS: u32 = 64;
/// Iterations [`loop_bound`] is asked for: more than drivers that end loops early run.
pub const LOOP_BOUND_ITERATIONS: u32 = 70_000;
/// `vec4`s one invocation of [`bandwidth`] with [`Traffic::Read`] reads.
pub const READ_VECS: u32 = 16;

const VEC_BYTES: u64 = 16;

/// Counts loop iterations into its only binding. Parameters: the number of iterations.
pub fn loop_bound() -> KernelSource {
    let wgsl = "\
struct Params { iterations: u32 }
@group(0) @binding(0) var<storage, read_write> count: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(1)
fn probe_loop_bound() {
    var seen = 0u;
    var hash = params.iterations;
    for (var i = 0u; i < params.iterations; i += 1u) {
        // The running hash keeps the loop from being replaced by its result.
        hash = hash * 1664525u + 1013904223u;
        seen += 1u;
    }
    count[0] = select(seen, 0u, hash == 1u);
}
";
    KernelSource {
        name: "probe_loop_bound".into(),
        wgsl: wgsl.into(),
        bindings: vec![Binding::new("count", BindingKind::ReadWrite), Binding::new("params", BindingKind::Params)],
        num_params: 1,
        workgroup_size: [1, 1, 1],
        overrides: Vec::new(),
        workgroup_bytes: 0,
        features: WgslFeatures::default(),
        flops: 0.into(),
        bytes: 4.into(),
        max_iterations: Formula::Param(0) + 1.into(),
    }
}

/// One way to keep an adapter busy with fused multiply-adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FmaVariant {
    /// Whether a chain is a `vec4<f32>` or an `f32`.
    pub vec4: bool,
    /// Chains that do not depend on each other.
    pub chains: u32,
    /// Copies of the loop body.
    pub unroll: u32,
}

impl FmaVariant {
    /// The sixteen variants an adapter's rate is the best of.
    pub fn all() -> Vec<FmaVariant> {
        let mut all = Vec::new();
        for vec4 in [false, true] {
            for chains in [2, 4, 8, 12] {
                all.extend([1, 8].map(|unroll| FmaVariant { vec4, chains, unroll }));
            }
        }
        all
    }

    /// Floating-point operations of one iteration of one invocation.
    pub fn flops_per_iteration(self) -> u64 {
        2 * u64::from(self.chains) * u64::from(self.unroll) * if self.vec4 { 4 } else { 1 }
    }

    /// The kernel. Parameters: iterations, workgroups, and the bits of the factor and of the summand of every multiply-add. Its one
    /// binding, of at least 4 bytes, is not written.
    pub fn kernel(self) -> KernelSource {
        let FmaVariant { vec4, chains, unroll } = self;
        let ty = if vec4 { "vec4<f32>" } else { "f32" };
        let rate = Rate {
            name: format!("probe_fma_{}_c{chains}_u{unroll}", if vec4 { "vec4" } else { "f32" }),
            params: "factor: f32, summand: f32",
            start: |c| format!("(seed + {c}.0)"),
            ty,
            element: "f32",
            step: |c| format!("fma({c}, m, s)"),
            total: if vec4 { "sum.x + sum.y + sum.z + sum.w" } else { "sum" },
            never: "-1.0",
            chains,
            unroll,
            ops_per_iteration: self.flops_per_iteration(),
        };
        rate.kernel()
    }
}

/// Dot products of four signed bytes with `chains` chains that do not depend on each other, unrolled eight times. Parameters and binding as
/// those of [`FmaVariant::kernel`], the factor being a word of four bytes and the summand an `i32`. Each dot product counts as eight operations.
pub fn packed_dot(chains: u32) -> KernelSource {
    let rate = Rate {
        name: format!("probe_dot4_i8_c{chains}"),
        params: "factor: u32, summand: i32",
        start: |c| format!("(seed + {c})"),
        ty: "i32",
        element: "i32",
        step: |c| format!("dot4I8Packed(bitcast<u32>({c}), m) + s"),
        total: "sum",
        never: "-2147483647",
        chains,
        unroll: DOT_UNROLL,
        ops_per_iteration: packed_dot_ops_per_iteration(chains),
    };
    rate.kernel()
}

const DOT_UNROLL: u32 = 8;

/// Operations of one iteration of one invocation of [`packed_dot`].
pub fn packed_dot_ops_per_iteration(chains: u32) -> u64 {
    8 * u64::from(chains) * u64::from(DOT_UNROLL)
}

/// A kernel that repeats one operation on independent chains.
struct Rate {
    name: String,
    params: &'static str,
    /// First value of a chain, from its number.
    start: fn(u32) -> String,
    ty: &'static str,
    element: &'static str,
    /// The next value of a chain, from its name.
    step: fn(&str) -> String,
    total: &'static str,
    /// What the total never is.
    never: &'static str,
    chains: u32,
    unroll: u32,
    ops_per_iteration: u64,
}

impl Rate {
    fn kernel(self) -> KernelSource {
        let Rate { name, params, start, ty, element, step, total, never, chains, unroll, ops_per_iteration } = self;
        let mut declare = String::new();
        let mut body = String::new();
        for c in 0..chains {
            let _ = writeln!(declare, "    var a{c} = {ty}{};", start(c));
        }
        for _ in 0..unroll {
            for c in (0..chains).map(|c| format!("a{c}")) {
                let _ = writeln!(body, "        {c} = {};", step(&c));
            }
        }
        let sum = (0..chains).map(|c| format!("a{c}")).collect::<Vec<_>>().join(" + ");
        let wgsl = format!(
            "\
struct Params {{ iterations: u32, workgroups: u32, {params} }}
@group(0) @binding(0) var<storage, read_write> sink: array<{element}>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size({WORKGROUP_INVOCATIONS})
fn {name}(@builtin(global_invocation_id) gid: vec3<u32>) {{
    let seed = {element}(gid.x);
    let m = {factor}(params.factor);
    let s = {ty}(params.summand);
{declare}    for (var i = 0u; i < params.iterations; i += 1u) {{
{body}    }}
    let sum = {sum};
    let total = {total};
    if (total == {never}) {{
        sink[0] = total;
    }}
}}
",
            factor = if element == "i32" { "u32" } else { ty },
        );
        let invocations = Formula::Param(1) * u64::from(WORKGROUP_INVOCATIONS).into();
        KernelSource {
            name,
            wgsl,
            bindings: vec![Binding::new("sink", BindingKind::ReadWrite), Binding::new("params", BindingKind::Params)],
            num_params: 4,
            workgroup_size: [WORKGROUP_INVOCATIONS, 1, 1],
            overrides: Vec::new(),
            workgroup_bytes: 0,
            features: WgslFeatures::default(),
            flops: Formula::Param(0) * invocations * ops_per_iteration.into(),
            bytes: 0.into(),
            max_iterations: Formula::Param(0) + 1.into(),
        }
    }
}

/// How a bandwidth probe moves bytes; every buffer is an array of `vec4<f32>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// One buffer is read.
    Read,
    /// One buffer is written.
    Write,
    /// One buffer is read, one written.
    Copy,
    /// Two buffers are read, one written.
    TwoReadsOneWrite,
}

impl Traffic {
    /// Every kind.
    pub const ALL: [Traffic; 4] = [Traffic::Read, Traffic::Write, Traffic::Copy, Traffic::TwoReadsOneWrite];

    /// Name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Traffic::Read => "read",
            Traffic::Write => "write",
            Traffic::Copy => "copy",
            Traffic::TwoReadsOneWrite => "2r1w",
        }
    }

    /// Buffers that the kernel binds.
    pub const fn num_buffers(self) -> usize {
        match self {
            Traffic::Read | Traffic::Copy => 2,
            Traffic::Write => 1,
            Traffic::TwoReadsOneWrite => 3,
        }
    }

    /// Buffers whose bytes move.
    pub const fn num_moved(self) -> u64 {
        match self {
            Traffic::Read | Traffic::Write => 1,
            Traffic::Copy => 2,
            Traffic::TwoReadsOneWrite => 3,
        }
    }

    /// `vec4`s of each buffer that one invocation handles.
    pub const fn vecs_per_invocation(self) -> u32 {
        match self {
            Traffic::Read => READ_VECS,
            _ => 1,
        }
    }
}

/// The kernel that moves bytes in that way. Bindings: what is read, then what is written ([`Traffic::Read`]: a sink of at least 16 bytes
/// that is not written). Parameters: `vec4`s of each buffer. With `wide` it reads 64-bit words, as generated kernels do on targets with
/// [`Target::wide_loads`](crate::Target::wide_loads).
pub fn bandwidth(traffic: Traffic, wide: bool) -> KernelSource {
    let load = |buffer: &str, at: &str| if wide { format!("unpack_4({buffer}[{at}])") } else { format!("{buffer}[{at}]") };
    let (inputs, output, body): (&[&str], &str, String) = match traffic {
        Traffic::Read => {
            // Neighbours read neighbours: the invocations of a workgroup step through one contiguous piece.
            let mut body = format!("    let first = group * {}u + lane;\n    var sum = vec4<f32>();\n", WORKGROUP_INVOCATIONS * READ_VECS);
            for k in 0..READ_VECS {
                let at = format!("min(first + {}u, params.vecs - 1u)", k * WORKGROUP_INVOCATIONS);
                let _ = writeln!(body, "    sum += {};", load("a", &at));
            }
            body.push_str("    if (sum.x + sum.y + sum.z + sum.w == -1.0) {\n        sink[0] = sum;\n    }\n");
            (&["a"], "sink", body)
        }
        Traffic::Write => (&[], "y", guarded("y[i] = vec4<f32>(f32(i));")),
        Traffic::Copy => (&["a"], "y", guarded(&format!("y[i] = {};", load("a", "i")))),
        Traffic::TwoReadsOneWrite => (&["a", "b"], "y", guarded(&format!("y[i] = {} + {};", load("a", "i"), load("b", "i")))),
    };
    let name = format!("probe_{}{}", traffic.name(), if wide { "_wide" } else { "" });
    let mut declarations = if wide && !inputs.is_empty() { helpers::text(&BTreeSet::from([Helper::Unpack])) } else { String::new() };
    let element = if wide { "vec2<u64>" } else { "vec4<f32>" };
    let mut bindings = Vec::new();
    for (i, input) in inputs.iter().enumerate() {
        let _ = writeln!(declarations, "@group(0) @binding({i}) var<storage, read> {input}: array<{element}>;");
        bindings.push(Binding::new(*input, BindingKind::Read));
    }
    let n = inputs.len();
    let _ = writeln!(declarations, "@group(0) @binding({n}) var<storage, read_write> {output}: array<vec4<f32>>;");
    let _ = writeln!(declarations, "@group(0) @binding({}) var<uniform> params: Params;", n + 1);
    bindings.extend([Binding::new(output, BindingKind::ReadWrite), Binding::new("params", BindingKind::Params)]);
    let wgsl = format!(
        "\
struct Params {{ vecs: u32 }}
{declarations}
@compute @workgroup_size({WORKGROUP_INVOCATIONS})
fn {name}(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) num: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {{
    let group = wid.x + wid.y * num.x;
{body}}}
"
    );
    KernelSource {
        name,
        wgsl,
        bindings,
        num_params: 1,
        workgroup_size: [WORKGROUP_INVOCATIONS, 1, 1],
        overrides: Vec::new(),
        workgroup_bytes: 0,
        features: WgslFeatures { int64: wide && !inputs.is_empty(), ..WgslFeatures::default() },
        flops: 0.into(),
        bytes: Formula::Param(0) * (VEC_BYTES * traffic.num_moved()).into(),
        max_iterations: 0.into(),
    }
}

fn guarded(statement: &str) -> String {
    format!("    let i = group * {WORKGROUP_INVOCATIONS}u + lane;\n    if (i < params.vecs) {{\n        {statement}\n    }}\n")
}

/// The smallest kernel there is, for the cost of a dispatch: adds 1 to the first word of its binding.
pub fn tiny() -> KernelSource {
    let wgsl = "\
@group(0) @binding(0) var<storage, read_write> count: array<u32>;

@compute @workgroup_size(1)
fn probe_tiny() {
    count[0] += 1u;
}
";
    KernelSource {
        name: "probe_tiny".into(),
        wgsl: wgsl.into(),
        bindings: vec![Binding::new("count", BindingKind::ReadWrite)],
        num_params: 0,
        workgroup_size: [1, 1, 1],
        overrides: Vec::new(),
        workgroup_bytes: 0,
        features: WgslFeatures::default(),
        flops: 0.into(),
        bytes: 8.into(),
        max_iterations: 0.into(),
    }
}

/// Every probe kernel.
pub fn all() -> Vec<KernelSource> {
    let mut all = vec![loop_bound(), tiny()];
    all.extend(FmaVariant::all().into_iter().map(FmaVariant::kernel));
    all.push(packed_dot(4));
    all.extend(Traffic::ALL.map(|traffic| bandwidth(traffic, false)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_variants_with_names_of_their_own() {
        let names: std::collections::HashSet<String> = all().into_iter().map(|k| k.name).collect();
        assert_eq!(FmaVariant::all().len(), 16);
        assert_eq!(names.len(), 2 + 16 + 1 + 4);
    }

    #[test]
    fn costs_are_those_of_the_text() {
        let variant = FmaVariant { vec4: true, chains: 12, unroll: 8 };
        let kernel = variant.kernel();
        assert_eq!(kernel.wgsl.matches("fma(").count(), 96);
        assert_eq!(kernel.flops.eval(&[10, 3, 0, 0]), 10 * 3 * 64 * 96 * 4 * 2);
        assert_eq!(bandwidth(Traffic::TwoReadsOneWrite, false).bytes.eval(&[5]), 5 * 16 * 3);
    }

    #[test]
    fn wide_reads_are_valid_where_there_are_64_bit_integers() {
        let target = crate::Target { int64: true, ..crate::Target::software() };
        for traffic in Traffic::ALL {
            crate::validate::check(&bandwidth(traffic, true), &target).expect("valid");
        }
    }

    #[test]
    fn every_probe_is_valid_wgsl() {
        for kernel in all() {
            let module = naga::front::wgsl::parse_str(&kernel.wgsl).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
            assert_eq!(module.entry_points[0].name, kernel.name);
            let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty());
            validator.validate(&module).unwrap_or_else(|e| panic!("{}: {e:?}", kernel.name));
        }
    }
}
