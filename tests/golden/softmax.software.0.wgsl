// Softmax
@group(0) @binding(0) var<storage, read> in0: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
var<workgroup> scratch_f32: array<f32, 256>;
var<private> non_finite_bits: u32 = 0x7f800000u;
fn f32_inf() -> f32 { return bitcast<f32>(non_finite_bits); }
fn f32_nan() -> f32 { return bitcast<f32>(non_finite_bits | 0x400000u); }
fn is_nan_1(x: f32) -> bool { return (bitcast<i32>(x) & i32(0x7fffffffi)) > i32(0x7f800000i); }
fn nan_max_1(a: f32, b: f32) -> f32 { return select(select(max(a, b), b, is_nan_1(b)), a, is_nan_1(a)); }
fn nan_min_1(a: f32, b: f32) -> f32 { return select(select(min(a, b), b, is_nan_1(b)), a, is_nan_1(a)); }

@compute @workgroup_size(256)
fn reduce_sub_exp_sum_div_f32_4cf5e32a(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) sub: u32, @builtin(num_subgroups) nsub: u32, @builtin(subgroup_invocation_id) sub_lane: u32, @builtin(subgroup_size) sub_size: u32) {
    let v0 = wid.x + wid.y * nwg.x;
    if v0 >= 40u { return; }
    let v1 = lid;
    var x0 = (-f32_inf());
    for (var v2 = 0u; v2 < 2u; v2++) {
        if ((v1 + v2 * 256u) < 257u) {
            let t0 = (v1 + v2 * 256u) % 257u;
            let t1 = in0[(v0 * 257u + t0)];
            x0 = nan_max_1(x0, t1);
        }
    }
    x0 = select(subgroupMax(x0), f32_nan(), subgroupAny(is_nan_1(x0)));
    if sub_lane == 0u { scratch_f32[sub] = x0; }
    workgroupBarrier();
    x0 = (-f32_inf());
    for (var other = sub_lane; other < nsub; other += sub_size) { x0 = nan_max_1(x0, scratch_f32[other]); }
    x0 = select(subgroupMax(x0), f32_nan(), subgroupAny(is_nan_1(x0)));
    workgroupBarrier();
    var x1 = 0.0f;
    for (var v3 = 0u; v3 < 2u; v3++) {
        if ((v1 + v3 * 256u) < 257u) {
            let t2 = (v1 + v3 * 256u) % 257u;
            let t3 = in0[(v0 * 257u + t2)];
            x1 = (x1 + exp((t3 - x0)));
        }
    }
    x1 = subgroupAdd(x1);
    if sub_lane == 0u { scratch_f32[sub] = x1; }
    workgroupBarrier();
    x1 = 0.0f;
    for (var other = sub_lane; other < nsub; other += sub_size) { x1 = (x1 + scratch_f32[other]); }
    x1 = subgroupAdd(x1);
    workgroupBarrier();
    for (var v4 = 0u; v4 < 2u; v4++) {
        if ((v1 + v4 * 256u) < 257u) {
            let t4 = (v1 + v4 * 256u) % 257u;
            let t5 = in0[(v0 * 257u + t4)];
            out[(v0 * 257u + t4)] = (exp((t5 - x0)) / x1);
        }
    }
}
