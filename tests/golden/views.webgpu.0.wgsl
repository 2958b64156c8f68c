// Transpose
// Reshape
// Pad
// Slice
@group(0) @binding(0) var<storage, read> in0: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;

@compute @workgroup_size(64)
fn copy_f32_e5c4204c(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let v0 = (wid.x + wid.y * nwg.x) * 64u + lid;
    if v0 >= 57u { return; }
    let t0 = (v0 * 4u) / 25u;
    let t1 = (v0 * 4u + 1u) / 25u;
    let t2 = t1 % 9u;
    let t3 = (v0 * 4u + 2u) / 25u;
    let t4 = t3 % 9u;
    let t5 = (v0 * 4u + 3u) / 25u;
    let t6 = t5 % 9u;
    let t7 = (v0 * 4u) % 25u;
    let t8 = (v0 * 4u + 1u) % 25u;
    let t9 = (v0 * 4u + 2u) % 25u;
    let t10 = (v0 * 4u + 3u) % 25u;
    let t11 = (t7 + 1u) % 24u;
    let t12 = (t7 + 1u) / 24u;
    let t13 = (t0 + t12 + 7u) % 8u;
    let t14 = (t8 + 1u) % 24u;
    let t15 = (t8 + 1u) / 24u;
    let t16 = (t15 + t2 + 7u) % 8u;
    let t17 = (t9 + 1u) % 24u;
    let t18 = (t9 + 1u) / 24u;
    let t19 = (t18 + t4 + 7u) % 8u;
    let t20 = (t10 + 1u) % 24u;
    let t21 = (t10 + 1u) / 24u;
    let t22 = (t21 + t6 + 7u) % 8u;
    let t23 = vec4<f32>(in0[(t11 * 8u + t13)], in0[(t14 * 8u + t16)], in0[(t17 * 8u + t19)], in0[(t20 * 8u + t22)]);
    out[v0] = select(vec4<f32>(2.0f), t23, (vec4(((t0 + 4294967295u) < 8u), ((t2 + 4294967295u) < 8u), ((t4 + 4294967295u) < 8u), ((t6 + 4294967295u) < 8u)) & vec4(((t7 + 1u) < 24u), ((t8 + 1u) < 24u), ((t9 + 1u) < 24u), ((t10 + 1u) < 24u))));
}
