// MatMul
// Add
// Relu
@group(0) @binding(0) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> in1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> in2: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
fn is_nan_1(x: f32) -> bool { return (bitcast<i32>(x) & i32(0x7fffffffi)) > i32(0x7f800000i); }
fn is_nan_4(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<i32>>(x) & vec4<i32>(0x7fffffffi)) > vec4<i32>(0x7f800000i); }
fn load_a1(b: u32, i: u32, k: u32) -> f32 {
        let v0 = b;
        let v1 = i;
        let v2 = k;
        let t0 = v2 / 4u;
        let t1 = v2 % 4u;
        let t2 = in0[(v1 * 12u + t0)][t1];
        return t2;
}
fn load_a(b: u32, i: u32, k: u32) -> vec4<f32> {
        let v3 = b;
        let v4 = i;
        let v5 = k / 4u;
        let t3 = in0[(v4 * 12u + v5)];
        return t3;
}
fn load_b1(b: u32, k: u32, j: u32) -> f32 {
        let v6 = b;
        let v7 = k;
        let v8 = j;
        let t4 = v8 / 4u;
        let t5 = v8 % 4u;
        let t6 = in1[(v7 * 8u + t4)][t5];
        return t6;
}
fn load_b(b: u32, k: u32, j: u32) -> vec4<f32> {
        let v9 = b;
        let v10 = k;
        let v11 = j / 4u;
        let t7 = in1[(v10 * 8u + v11)];
        return t7;
}
fn store1(b: u32, i: u32, j: u32, value: f32) {
        let v12 = b;
        let v13 = i;
        let v14 = j;
        let t8 = v14 / 4u;
        let t9 = v14 % 4u;
        let t10 = in2[t8][t9];
        out[(v13 * 8u + t8)][t9] = select(max((value + t10), 0.0f), (value + t10), is_nan_1((value + t10)));
}
fn store(b: u32, i: u32, j: u32, value: vec4<f32>) {
        let v15 = b;
        let v16 = i;
        let v17 = j / 4u;
        let t11 = in2[v17];
        out[(v16 * 8u + v17)] = select(max((value + t11), vec4<f32>(0.0f)), (value + t11), is_nan_4((value + t11)));
}

@compute @workgroup_size(8, 1, 1)
fn gemm_add_max_f32_3423f34b(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) num_wg: vec3<u32>,
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(local_invocation_id) lane: vec3<u32>,
) {
    let tile = wid.x + wid.y * num_wg.x;
    if tile >= 4u {
        return;
    }
    let tile_n = tile % 1u;
    let tile_m = tile / 1u % 4u;
    let b = tile / 4u;
    let row = tile_m * 16u;
    let col = tile_n * 32u + sub_lane * 4u;
    let row0 = row + (sub_lane + 0u) % 16u * 1u;
    let row1 = row + (sub_lane + 8u) % 16u * 1u;
    let col0 = col + 0u;
    var c0_0 = vec4<f32>();
    var c1_0 = vec4<f32>();
    var c2_0 = vec4<f32>();
    var c3_0 = vec4<f32>();
    var c4_0 = vec4<f32>();
    var c5_0 = vec4<f32>();
    var c6_0 = vec4<f32>();
    var c7_0 = vec4<f32>();
    var c8_0 = vec4<f32>();
    var c9_0 = vec4<f32>();
    var c10_0 = vec4<f32>();
    var c11_0 = vec4<f32>();
    var c12_0 = vec4<f32>();
    var c13_0 = vec4<f32>();
    var c14_0 = vec4<f32>();
    var c15_0 = vec4<f32>();
    for (var k = 0u; k < 48u; k += 4u) {
        {
            let k0 = k + 0u;
            let v0_0 = load_b(b, k0 + 0u, col0);
            let v1_0 = load_b(b, k0 + 1u, col0);
            let v2_0 = load_b(b, k0 + 2u, col0);
            let v3_0 = load_b(b, k0 + 3u, col0);
            let a0 = load_a(b, row0, k0);
            let s0 = subgroupBroadcast(a0, 0u);
            let s1 = subgroupBroadcast(a0, 1u);
            let s2 = subgroupBroadcast(a0, 2u);
            let s3 = subgroupBroadcast(a0, 3u);
            let s4 = subgroupBroadcast(a0, 4u);
            let s5 = subgroupBroadcast(a0, 5u);
            let s6 = subgroupBroadcast(a0, 6u);
            let s7 = subgroupBroadcast(a0, 7u);
            c0_0 = fma(vec4<f32>(s0.w), v3_0, fma(vec4<f32>(s0.z), v2_0, fma(vec4<f32>(s0.y), v1_0, fma(vec4<f32>(s0.x), v0_0, c0_0))));
            c1_0 = fma(vec4<f32>(s1.w), v3_0, fma(vec4<f32>(s1.z), v2_0, fma(vec4<f32>(s1.y), v1_0, fma(vec4<f32>(s1.x), v0_0, c1_0))));
            c2_0 = fma(vec4<f32>(s2.w), v3_0, fma(vec4<f32>(s2.z), v2_0, fma(vec4<f32>(s2.y), v1_0, fma(vec4<f32>(s2.x), v0_0, c2_0))));
            c3_0 = fma(vec4<f32>(s3.w), v3_0, fma(vec4<f32>(s3.z), v2_0, fma(vec4<f32>(s3.y), v1_0, fma(vec4<f32>(s3.x), v0_0, c3_0))));
            c4_0 = fma(vec4<f32>(s4.w), v3_0, fma(vec4<f32>(s4.z), v2_0, fma(vec4<f32>(s4.y), v1_0, fma(vec4<f32>(s4.x), v0_0, c4_0))));
            c5_0 = fma(vec4<f32>(s5.w), v3_0, fma(vec4<f32>(s5.z), v2_0, fma(vec4<f32>(s5.y), v1_0, fma(vec4<f32>(s5.x), v0_0, c5_0))));
            c6_0 = fma(vec4<f32>(s6.w), v3_0, fma(vec4<f32>(s6.z), v2_0, fma(vec4<f32>(s6.y), v1_0, fma(vec4<f32>(s6.x), v0_0, c6_0))));
            c7_0 = fma(vec4<f32>(s7.w), v3_0, fma(vec4<f32>(s7.z), v2_0, fma(vec4<f32>(s7.y), v1_0, fma(vec4<f32>(s7.x), v0_0, c7_0))));
            let a1 = load_a(b, row1, k0);
            let s8 = subgroupBroadcast(a1, 0u);
            let s9 = subgroupBroadcast(a1, 1u);
            let s10 = subgroupBroadcast(a1, 2u);
            let s11 = subgroupBroadcast(a1, 3u);
            let s12 = subgroupBroadcast(a1, 4u);
            let s13 = subgroupBroadcast(a1, 5u);
            let s14 = subgroupBroadcast(a1, 6u);
            let s15 = subgroupBroadcast(a1, 7u);
            c8_0 = fma(vec4<f32>(s8.w), v3_0, fma(vec4<f32>(s8.z), v2_0, fma(vec4<f32>(s8.y), v1_0, fma(vec4<f32>(s8.x), v0_0, c8_0))));
            c9_0 = fma(vec4<f32>(s9.w), v3_0, fma(vec4<f32>(s9.z), v2_0, fma(vec4<f32>(s9.y), v1_0, fma(vec4<f32>(s9.x), v0_0, c9_0))));
            c10_0 = fma(vec4<f32>(s10.w), v3_0, fma(vec4<f32>(s10.z), v2_0, fma(vec4<f32>(s10.y), v1_0, fma(vec4<f32>(s10.x), v0_0, c10_0))));
            c11_0 = fma(vec4<f32>(s11.w), v3_0, fma(vec4<f32>(s11.z), v2_0, fma(vec4<f32>(s11.y), v1_0, fma(vec4<f32>(s11.x), v0_0, c11_0))));
            c12_0 = fma(vec4<f32>(s12.w), v3_0, fma(vec4<f32>(s12.z), v2_0, fma(vec4<f32>(s12.y), v1_0, fma(vec4<f32>(s12.x), v0_0, c12_0))));
            c13_0 = fma(vec4<f32>(s13.w), v3_0, fma(vec4<f32>(s13.z), v2_0, fma(vec4<f32>(s13.y), v1_0, fma(vec4<f32>(s13.x), v0_0, c13_0))));
            c14_0 = fma(vec4<f32>(s14.w), v3_0, fma(vec4<f32>(s14.z), v2_0, fma(vec4<f32>(s14.y), v1_0, fma(vec4<f32>(s14.x), v0_0, c14_0))));
            c15_0 = fma(vec4<f32>(s15.w), v3_0, fma(vec4<f32>(s15.z), v2_0, fma(vec4<f32>(s15.y), v1_0, fma(vec4<f32>(s15.x), v0_0, c15_0))));
        }
    }
    {
        let j = col + 0u;
        store(b, row + 0u, j, c0_0);
        store(b, row + 1u, j, c1_0);
        store(b, row + 2u, j, c2_0);
        store(b, row + 3u, j, c3_0);
        store(b, row + 4u, j, c4_0);
        store(b, row + 5u, j, c5_0);
        store(b, row + 6u, j, c6_0);
        store(b, row + 7u, j, c7_0);
        store(b, row + 8u, j, c8_0);
        store(b, row + 9u, j, c9_0);
        store(b, row + 10u, j, c10_0);
        store(b, row + 11u, j, c11_0);
        store(b, row + 12u, j, c12_0);
        store(b, row + 13u, j, c13_0);
        store(b, row + 14u, j, c14_0);
        store(b, row + 15u, j, c15_0);
    }
}
