// Add
// Mul
// Sub
// Relu
@group(0) @binding(0) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> in1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>;
fn is_nan_4(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<i32>>(x) & vec4<i32>(0x7fffffffi)) > vec4<i32>(0x7f800000i); }

@compute @workgroup_size(64)
fn map_add_mul_sub_max_f32_4e4e6de5(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let v0 = (wid.x + wid.y * nwg.x) * 64u + lid;
    if v0 >= 251u { return; }
    let t0 = in0[v0];
    let t1 = in1[v0];
    out[v0] = ((select(max((((t0 + t1) * t0) - t1), vec4<f32>(0.0f)), (((t0 + t1) * t0) - t1), is_nan_4((((t0 + t1) * t0) - t1))) * vec4<f32>(0.5f)) + vec4<f32>(1.0f));
}
