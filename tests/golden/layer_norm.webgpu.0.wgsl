// LayerNormalization
@group(0) @binding(0) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> in1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> in2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
var<workgroup> scratch_f32: array<f32, 32>;

@compute @workgroup_size(32)
fn reduce_sub_mul_add_sqrt_f32_d9854800(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let v0 = wid.x + wid.y * nwg.x;
    if v0 >= 512u { return; }
    let v1 = lid;
    let t0 = vec4<f32>(0.0f);
    var x0 = t0;
    for (var v2 = 0u; v2 < 1u; v2++) {
        let t1 = (v1 < 24u);
        if t1 {
            let t2 = v1 % 24u;
            let t3 = in0[(v0 * 24u + t2)];
            x0 = (x0 + t3);
        }
    }
    var x1 = ((x0.x + x0.y) + (x0.z + x0.w));
    scratch_f32[lid] = x1;
    workgroupBarrier();
    for (var step = 16u; step > 0u; step >>= 1u) {
        if lid < step { scratch_f32[lid] = (scratch_f32[lid] + scratch_f32[lid + step]); }
        workgroupBarrier();
    }
    x1 = scratch_f32[0];
    workgroupBarrier();
    var x2 = t0;
    for (var v3 = 0u; v3 < 1u; v3++) {
        let t4 = (v1 < 24u);
        if t4 {
            let t5 = v1 % 24u;
            let t6 = in0[(v0 * 24u + t5)];
            let t7 = (t6 - vec4<f32>((x1 / 96.0f)));
            x2 = (x2 + (t7 * t7));
        }
    }
    var x3 = ((x2.x + x2.y) + (x2.z + x2.w));
    scratch_f32[lid] = x3;
    workgroupBarrier();
    for (var step = 16u; step > 0u; step >>= 1u) {
        if lid < step { scratch_f32[lid] = (scratch_f32[lid] + scratch_f32[lid + step]); }
        workgroupBarrier();
    }
    x3 = scratch_f32[0];
    workgroupBarrier();
    for (var v4 = 0u; v4 < 1u; v4++) {
        let t8 = (v1 < 24u);
        if t8 {
            let t9 = v1 % 24u;
            let t10 = in0[(v0 * 24u + t9)];
            let t11 = (t10 - vec4<f32>((x1 / 96.0f)));
            let t12 = in1[t9];
            let t13 = in2[t9];
            out[(v0 * 24u + t9)] = (((t11 / vec4<f32>(sqrt(((x3 / 96.0f) + 1e-5f)))) * t12) + t13);
        }
    }
}
