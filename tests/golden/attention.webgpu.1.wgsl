// Attention
@group(0) @binding(0) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
var<private> non_finite_bits: u32 = 0x7f800000u;
fn f32_inf() -> f32 { return bitcast<f32>(non_finite_bits); }
fn f32_nan() -> f32 { return bitcast<f32>(non_finite_bits | 0x400000u); }
fn is_nan_1(x: f32) -> bool { return (bitcast<i32>(x) & i32(0x7fffffffi)) > i32(0x7f800000i); }
fn is_nan_4(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<i32>>(x) & vec4<i32>(0x7fffffffi)) > vec4<i32>(0x7f800000i); }
fn nan_max_1(a: f32, b: f32) -> f32 { return select(select(max(a, b), b, is_nan_1(b)), a, is_nan_1(a)); }
fn nan_min_1(a: f32, b: f32) -> f32 { return select(select(min(a, b), b, is_nan_1(b)), a, is_nan_1(a)); }
fn nan_max_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return select(select(max(a, b), b, is_nan_4(b)), a, is_nan_4(a)); }
fn nan_min_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return select(select(min(a, b), b, is_nan_4(b)), a, is_nan_4(a)); }

@compute @workgroup_size(64)
fn reduce_sub_exp_sum_div_f32_d570cb67(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let v0 = (wid.x + wid.y * nwg.x) * 64u + lid;
    if v0 >= 32u { return; }
    let t0 = vec4<f32>((-f32_inf()));
    var x0 = t0;
    for (var v1 = 0u; v1 < 4u; v1++) {
        let t1 = v0 % 16u;
        let t2 = vec4<i32>(i32(t1));
        let t3 = in0[(v0 * 4u + v1)];
        let t4 = vec4<f32>(0.35355338f);
        x0 = nan_max_4(x0, select(t0, (t3 * t4), (vec4<i32>(vec4((v1 * 4u), (v1 * 4u + 1u), (v1 * 4u + 2u), (v1 * 4u + 3u))) <= t2)));
    }
    var x1 = nan_max_1(nan_max_1(x0.x, x0.y), nan_max_1(x0.z, x0.w));
    var x2 = vec4<f32>(0.0f);
    for (var v2 = 0u; v2 < 4u; v2++) {
        let t5 = v0 % 16u;
        let t6 = vec4<i32>(i32(t5));
        let t7 = in0[(v0 * 4u + v2)];
        let t8 = vec4<f32>(0.35355338f);
        let t9 = vec4<f32>(select(x1, 0.0f, ((abs(x1) == f32_inf()) & !is_nan_1(abs(x1)))));
        x2 = (x2 + exp((select(t0, (t7 * t8), (vec4<i32>(vec4((v2 * 4u), (v2 * 4u + 1u), (v2 * 4u + 2u), (v2 * 4u + 3u))) <= t6)) - t9)));
    }
    var x3 = ((x2.x + x2.y) + (x2.z + x2.w));
    for (var v3 = 0u; v3 < 4u; v3++) {
        let t10 = v0 % 16u;
        let t11 = vec4<i32>(i32(t10));
        let t12 = in0[(v0 * 4u + v3)];
        let t13 = vec4<f32>(0.35355338f);
        let t14 = vec4<f32>(select(x1, 0.0f, ((abs(x1) == f32_inf()) & !is_nan_1(abs(x1)))));
        out[(v0 * 4u + v3)] = (exp((select(t0, (t12 * t13), (vec4<i32>(vec4((v3 * 4u), (v3 * 4u + 1u), (v3 * 4u + 2u), (v3 * 4u + 3u))) <= t11)) - t14)) / vec4<f32>(select(x3, 1.0f, ((x3 == 0.0f) & !is_nan_1(x3)))));
    }
}
