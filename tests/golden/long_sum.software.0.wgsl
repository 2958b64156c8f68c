// Abs
// ReduceSum
@group(0) @binding(0) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn reduce_abs_sum_f32_03e45702(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let v0 = (wid.x + wid.y * nwg.x) * 64u + lid;
    if v0 >= 256u { return; }
    var x0 = vec4<f32>(0.0f);
    for (var v1 = 0u; v1 < 1024u; v1++) {
        let t0 = in0[(v0 * 1024u + v1)];
        x0 = (x0 + abs(t0));
    }
    var x1 = ((x0.x + x0.y) + (x0.z + x0.w));
    out[v0] = x1;
}
