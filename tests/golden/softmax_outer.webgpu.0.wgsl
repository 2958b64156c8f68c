// Softmax
@group(0) @binding(0) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
var<private> non_finite_bits: u32 = 0x7f800000u;
fn f32_inf() -> f32 { return bitcast<f32>(non_finite_bits); }
fn f32_nan() -> f32 { return bitcast<f32>(non_finite_bits | 0x400000u); }
fn is_nan_4(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<i32>>(x) & vec4<i32>(0x7fffffffi)) > vec4<i32>(0x7f800000i); }
fn nan_max_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return select(select(max(a, b), b, is_nan_4(b)), a, is_nan_4(a)); }
fn nan_min_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return select(select(min(a, b), b, is_nan_4(b)), a, is_nan_4(a)); }

@compute @workgroup_size(64)
fn reduce_sub_exp_sum_div_f32_1f7a6bf3(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let v0 = (wid.x + wid.y * nwg.x) * 64u + lid;
    if v0 >= 16u { return; }
    var x0 = vec4<f32>((-f32_inf()));
    for (var v1 = 0u; v1 < 40u; v1++) {
        let t0 = in0[(v0 + v1 * 16u)];
        x0 = nan_max_4(x0, t0);
    }
    var x1 = vec4<f32>(0.0f);
    for (var v2 = 0u; v2 < 40u; v2++) {
        let t1 = in0[(v0 + v2 * 16u)];
        x1 = (x1 + exp((t1 - x0)));
    }
    for (var v3 = 0u; v3 < 40u; v3++) {
        let t2 = in0[(v0 + v3 * 16u)];
        out[(v0 + v3 * 16u)] = (exp((t2 - x0)) / x1);
    }
}
