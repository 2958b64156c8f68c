use super::*;
use crate::{Binding, Formula, WgslFeatures};

const TEXT: &str = "
struct Params { count: u32, scale: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
override width: u32 = 4u;
var<workgroup> tile: array<f32, 16u * width>;
@compute @workgroup_size(width, 2)
fn scale(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
  let i = (wid.x + wid.y * n.x) * 2u * width + lid;
  tile[lid] = x[i];
  workgroupBarrier();
  if (i < params.count) { y[i] = params.scale * tile[lid]; }
}
";

fn source() -> KernelSource {
    KernelSource {
        name: "scale".into(),
        wgsl: TEXT.into(),
        bindings: vec![
            Binding::new("x", BindingKind::Read),
            Binding::new("y", BindingKind::ReadWrite),
            Binding::new("params", BindingKind::Params),
        ],
        num_params: 2,
        workgroup_size: [32, 2, 1],
        overrides: vec![("width".into(), 32f64.to_bits())],
        workgroup_bytes: 16 * 32 * 4,
        features: WgslFeatures::default(),
        flops: Formula::Const(0),
        bytes: Formula::Const(0),
        max_iterations: Formula::Const(0),
    }
}

/// The message with which a changed kernel is refused.
fn refusal(target: &Target, change: impl FnOnce(&mut KernelSource)) -> String {
    let mut source = source();
    change(&mut source);
    check(&source, target).expect_err("must be refused").to_string()
}

#[test]
fn a_sound_kernel_passes_every_writer_of_every_preset() {
    for target in Target::presets() {
        validate(&source(), &target).expect("valid");
        for &language in Language::of_target(&target) {
            let text = translate(&source(), &target, language).expect("written");
            assert!(!text.is_empty(), "{} is empty", language.name());
        }
    }
    assert!(translate(&source(), &Target::webgpu(), Language::Msl).expect("written").contains("kernel void scale"));
}

#[test]
fn syntax_and_type_errors_show_the_line() {
    let webgpu = Target::webgpu();
    let message = refusal(&webgpu, |s| s.wgsl = TEXT.replace("let i =", "lte i ="));
    assert!(message.contains("scale:10:7") && message.contains("lte i ="), "{message}");
    let message = refusal(&webgpu, |s| s.wgsl = TEXT.replace("params.scale * tile", "params.count * tile"));
    assert!(message.contains("scale:13:") && message.contains("params.count * tile"), "{message}");
}

#[test]
fn the_declaration_must_match_the_text() {
    let webgpu = Target::webgpu();
    let refused = |part: &str, change: fn(&mut KernelSource)| {
        let message = refusal(&webgpu, change);
        assert!(message.contains(part), "`{part}` is not in: {message}");
    };
    refused("its one entry point must be `other`, the text has [\"scale\"]", |s| s.name = "other".into());
    refused("workgroup size is declared as [32, 1, 1], the text has [32, 2, 1]", |s| s.workgroup_size = [32, 1, 1]);
    refused("0 bytes of workgroup memory are declared, the text uses 2048", |s| s.workgroup_bytes = 0);
    refused("binding 0 is declared as `x` ReadWrite", |s| s.bindings[0].kind = BindingKind::ReadWrite);
    refused("binding 1 is declared as `z` ReadWrite", |s| s.bindings[1].name = "z".into());
    refused("`params` has 2 words, 3 are declared", |s| s.num_params = 3);
    refused("0 parameter words has its parameter block at [2]", |s| s.num_params = 0);
    refused("parameter block at [1]", |s| s.bindings.swap(1, 2));
    refused("`params` at group 0 binding 2 is not declared", |s| s.bindings.truncate(2));
    refused("binding `params` is declared, the text has none of that index", |s| {
        s.bindings.insert(2, Binding::new("more", BindingKind::Read))
    });
    refused("override values do not fit", |s| s.overrides = vec![("height".into(), 0)]);
}

#[test]
fn limits_and_features_are_the_targets() {
    let message = refusal(&Target::webgpu(), |s| {
        s.overrides[0].1 = 512f64.to_bits();
        s.workgroup_size = [512, 2, 1];
        s.workgroup_bytes = 16 * 512 * 4;
    });
    assert!(message.contains("past the 256 invocations") && message.contains("32768 bytes of workgroup memory"), "{message}");
    let few = Target { max_storage_buffers: 1, ..Target::webgpu() };
    assert!(refusal(&few, |_| ()).contains("binds 2 storage buffers, the target takes 1"));

    let desktop = Target::desktop();
    let subgroup = TEXT.replace("params.scale * tile[lid]", "subgroupAdd(tile[lid])");
    assert!(refusal(&desktop, |s| s.wgsl = subgroup.clone()).contains("subgroupAdd"), "an undeclared feature is refused");
    let declared = |s: &mut KernelSource| (s.wgsl, s.features.subgroups) = (subgroup.clone(), true);
    assert!(refusal(&Target::webgpu(), declared).contains("needs subgroup operations"));
    let mut with_subgroups = source();
    declared(&mut with_subgroups);
    validate(&with_subgroups, &desktop).expect("desktop has subgroups");

    let half = format!("enable f16;\n{}", TEXT.replace("params.scale *", "params.scale * f32(f16(2)) *"));
    assert!(refusal(&desktop, |s| s.wgsl = half.clone()).contains("says `enable f16;`, its declaration does not"));
    assert!(refusal(&desktop, |s| s.features.f16 = true).contains("lacks `enable f16;`"));
    let mut with_half = source();
    (with_half.wgsl, with_half.features.f16) = (half, true);
    validate(&with_half, &desktop).expect("desktop has f16");
}
