// Gather
// Add
@group(0) @binding(0) var<storage, read> in0: array<i32>;
@group(0) @binding(1) var<storage, read> in1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>;

@compute @workgroup_size(64)
fn map_gather_add_f32_6585d3a1(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let v0 = (wid.x + wid.y * nwg.x) * 64u + lid;
    if v0 >= 36u { return; }
    let t0 = v0 / 3u;
    let t1 = in0[t0];
    let t2 = u32(max(min(t1, 49i), 0i));
    let t3 = v0 % 3u;
    let t4 = in1[(t2 * 3u + t3)];
    out[v0] = (t4 + vec4<f32>(1.0f));
}
