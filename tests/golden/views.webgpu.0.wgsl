// Transpose
// Reshape
// Pad
// Slice
@group(0) @binding(0) var<storage, read> in0: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;

@compute @workgroup_size(64)
fn copy_f32_83b9777a(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let v0 = (wid.x + wid.y * nwg.x) * 64u + lid;
    if v0 >= 57u { return; }
    let t0 = (v0 * 4u) / 25u;
    let t1 = (v0 * 4u + 1u) / 25u;
    let t2 = (v0 * 4u + 2u) / 25u;
    let t3 = (v0 * 4u + 3u) / 25u;
    let t4 = (v0 * 4u) % 25u;
    let t5 = (v0 * 4u + 1u) % 25u;
    let t6 = (v0 * 4u + 2u) % 25u;
    let t7 = (v0 * 4u + 3u) % 25u;
    let t8 = (t4 + 1u) / 24u;
    let t9 = (t4 + 1u) % 24u;
    let t10 = (t5 + 1u) / 24u;
    let t11 = (t5 + 1u) % 24u;
    let t12 = (t6 + 1u) / 24u;
    let t13 = (t6 + 1u) % 24u;
    let t14 = (t7 + 1u) / 24u;
    let t15 = (t7 + 1u) % 24u;
    let t16 = vec4<f32>(in0[(t0 + t8 + t9 * 8u + 4294967295u)], in0[(t1 + t10 + t11 * 8u + 4294967295u)], in0[(t12 + t2 + t13 * 8u + 4294967295u)], in0[(t14 + t3 + t15 * 8u + 4294967295u)]);
    out[v0] = select(vec4<f32>(2.0f), t16, (vec4(((t0 + 4294967295u) < 8u), ((t1 + 4294967295u) < 8u), ((t2 + 4294967295u) < 8u), ((t3 + 4294967295u) < 8u)) & vec4(((t4 + 1u) < 24u), ((t5 + 1u) < 24u), ((t6 + 1u) < 24u), ((t7 + 1u) < 24u))));
}
