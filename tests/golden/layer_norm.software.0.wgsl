// LayerNormalization
@group(0) @binding(0) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> in1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> in2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;

@compute @workgroup_size(64)
fn reduce_sub_mul_add_sqrt_f32_fc0f312a(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let v0 = (wid.x + wid.y * nwg.x) * 64u + lid;
    if v0 >= 512u { return; }
    let t0 = vec4<f32>(0.0f);
    var x0 = t0;
    for (var v1 = 0u; v1 < 24u; v1++) {
        let t1 = in0[(v0 * 24u + v1)];
        x0 = (x0 + t1);
    }
    var x1 = ((x0.x + x0.y) + (x0.z + x0.w));
    var x2 = t0;
    for (var v2 = 0u; v2 < 24u; v2++) {
        let t2 = in0[(v0 * 24u + v2)];
        let t3 = vec4<f32>((x1 / 96.0f));
        let t4 = (t2 - t3);
        x2 = (x2 + (t4 * t4));
    }
    var x3 = ((x2.x + x2.y) + (x2.z + x2.w));
    for (var v3 = 0u; v3 < 24u; v3++) {
        let t5 = in0[(v0 * 24u + v3)];
        let t6 = vec4<f32>((x1 / 96.0f));
        let t7 = in1[v3];
        let t8 = in2[v3];
        out[(v0 * 24u + v3)] = ((((t5 - t6) / vec4<f32>(sqrt(((x3 / 96.0f) + 1e-5f)))) * t7) + t8);
    }
}
