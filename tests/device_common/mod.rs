//! What the device tests share.
#![allow(dead_code)]

use std::sync::Arc;

use kernels_gen::{Binding, BindingKind, Formula, KernelSource, WgslFeatures};
use sublane::device::{Device, DeviceOptions};
use sublane::plan::{ExecutionPlan, SlotId, SlotRole, fold_workgroups};

/// The adapter under test; none fails the test.
pub fn open() -> Device {
    Device::open(&DeviceOptions::from_env()).expect("these tests need an adapter")
}

/// A kernel with the given text; bindings are `(name, written)`.
pub fn kernel(name: &str, wgsl: &str, bindings: &[(&str, bool)], num_params: usize, workgroup: u32) -> Arc<KernelSource> {
    let kind = |written| if written { BindingKind::ReadWrite } else { BindingKind::Read };
    let mut bindings: Vec<Binding> = bindings.iter().map(|&(name, written)| Binding::new(name, kind(written))).collect();
    if num_params > 0 {
        bindings.push(Binding::new("params", BindingKind::Params));
    }
    Arc::new(KernelSource {
        name: name.into(),
        wgsl: wgsl.into(),
        bindings,
        num_params,
        workgroup_size: [workgroup, 1, 1],
        overrides: Vec::new(),
        workgroup_bytes: 0,
        features: WgslFeatures::default(),
        flops: 0.into(),
        bytes: 0.into(),
        max_iterations: 0.into(),
    })
}

/// `y[i] = 3 * x[i] + add` over `n` words.
pub fn affine() -> Arc<KernelSource> {
    let wgsl = "
struct Params { n: u32, add: u32 }
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn affine(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) num: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = (wid.x + wid.y * num.x) * 64u + lane;
    if (i < params.n) {
        y[i] = 3u * x[i] + params.add;
    }
}
";
    kernel("affine", wgsl, &[("x", false), ("y", true)], 2, 64)
}

/// A plan with one dispatch of [`affine`] over `n` words.
pub fn affine_plan(n: u32, add: u32) -> (ExecutionPlan, SlotId, SlotId) {
    let mut plan = ExecutionPlan::new();
    let x = plan.slot("x", u64::from(n) * 4, SlotRole::Input);
    let y = plan.slot("y", u64::from(n) * 4, SlotRole::Output);
    let workgroups = fold_workgroups(u64::from(n).div_ceil(64), 65_535).expect("fits");
    plan.dispatch(&affine(), &[x, y], &[n, add], workgroups);
    (plan, x, y)
}

/// A kernel whose one invocation runs a loop in a loop, as often as its parameters say, and states it.
pub fn looping() -> Arc<KernelSource> {
    let wgsl = "
struct Params { outer: u32, inner: u32 }
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(1)
fn looping() {
    for (var i = 0u; i < params.outer; i += 1u) {
        y[0] += 1u;
        for (var j = 0u; j < params.inner; j += 1u) {
            y[1] += 1u;
        }
    }
}
";
    let mut source = (*kernel("looping", wgsl, &[("y", true)], 2, 1)).clone();
    source.max_iterations = Formula::Param(0) * (Formula::Param(1) + 2.into()) + 1.into();
    Arc::new(source)
}

pub fn bytes(words: &[u32]) -> &[u8] {
    bytemuck::cast_slice(words)
}

pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytemuck::pod_collect_to_vec(bytes)
}
