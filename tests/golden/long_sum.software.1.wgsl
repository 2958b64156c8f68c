// ReduceSum
@group(0) @binding(0) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
var<workgroup> scratch_f32: array<f32, 64>;

@compute @workgroup_size(64)
fn reduce_sum_f32_22ae1337(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32, @builtin(subgroup_id) sub: u32, @builtin(num_subgroups) nsub: u32, @builtin(subgroup_invocation_id) sub_lane: u32, @builtin(subgroup_size) sub_size: u32) {
    let v0 = wid.x + wid.y * nwg.x;
    if v0 >= 1u { return; }
    let v1 = lid;
    var x0 = vec4<f32>(0.0f);
    for (var v2 = 0u; v2 < 1u; v2++) {
        let t0 = in0[v1];
        x0 = (x0 + t0);
    }
    var x1 = ((x0.x + x0.y) + (x0.z + x0.w));
    x1 = subgroupAdd(x1);
    if sub_lane == 0u { scratch_f32[sub] = x1; }
    workgroupBarrier();
    x1 = 0.0f;
    for (var other = sub_lane; other < nsub; other += sub_size) { x1 = (x1 + scratch_f32[other]); }
    x1 = subgroupAdd(x1);
    workgroupBarrier();
    if (v1 < 1u) {
        out[0u] = x1;
    }
}
