// MatMul
@group(0) @binding(0) var<storage, read> in0: array<f32>;
@group(0) @binding(1) var<storage, read> in1: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
fn load_a1(b: u32, i: u32, k: u32) -> f32 {
        let v0 = b;
        let v1 = i;
        let v2 = k;
        let t0 = in0[(v1 * 7u + v2)];
        return t0;
}
fn load_b1(b: u32, k: u32, j: u32) -> f32 {
        let v9 = b;
        let v10 = k;
        let v11 = j;
        let t1 = in1[(v10 * 18u + v11)];
        return t1;
}
fn store1(b: u32, i: u32, j: u32, value: f32) {
        let v18 = b;
        let v19 = i;
        let v20 = j;
        out[(v19 * 18u + v20)] = value;
}

@compute @workgroup_size(8, 1, 1)
fn gemm_f32_b52478da(
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
    let row = tile_m * 32u;
    let col = tile_n * 32u + sub_lane * 4u;
    let row0 = min(row + (sub_lane + 0u) % 32u * 1u, 98u);
    let row1 = min(row + (sub_lane + 8u) % 32u * 1u, 98u);
    let row2 = min(row + (sub_lane + 16u) % 32u * 1u, 98u);
    let row3 = min(row + (sub_lane + 24u) % 32u * 1u, 98u);
    let col0_0 = min(col + 0u + 0u, 17u);
    let col0_1 = min(col + 0u + 1u, 17u);
    let col0_2 = min(col + 0u + 2u, 17u);
    let col0_3 = min(col + 0u + 3u, 17u);
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
    var c16_0 = vec4<f32>();
    var c17_0 = vec4<f32>();
    var c18_0 = vec4<f32>();
    var c19_0 = vec4<f32>();
    var c20_0 = vec4<f32>();
    var c21_0 = vec4<f32>();
    var c22_0 = vec4<f32>();
    var c23_0 = vec4<f32>();
    var c24_0 = vec4<f32>();
    var c25_0 = vec4<f32>();
    var c26_0 = vec4<f32>();
    var c27_0 = vec4<f32>();
    var c28_0 = vec4<f32>();
    var c29_0 = vec4<f32>();
    var c30_0 = vec4<f32>();
    var c31_0 = vec4<f32>();
    for (var k = 0u; k < 4u; k += 4u) {
        {
            let k0 = k + 0u;
            let v0_0 = vec4<f32>(load_b1(b, k0 + 0u, col0_0), load_b1(b, k0 + 0u, col0_1), load_b1(b, k0 + 0u, col0_2), load_b1(b, k0 + 0u, col0_3));
            let v1_0 = vec4<f32>(load_b1(b, k0 + 1u, col0_0), load_b1(b, k0 + 1u, col0_1), load_b1(b, k0 + 1u, col0_2), load_b1(b, k0 + 1u, col0_3));
            let v2_0 = vec4<f32>(load_b1(b, k0 + 2u, col0_0), load_b1(b, k0 + 2u, col0_1), load_b1(b, k0 + 2u, col0_2), load_b1(b, k0 + 2u, col0_3));
            let v3_0 = vec4<f32>(load_b1(b, k0 + 3u, col0_0), load_b1(b, k0 + 3u, col0_1), load_b1(b, k0 + 3u, col0_2), load_b1(b, k0 + 3u, col0_3));
            let a0_0 = load_a1(b, row0, k0 + 0u);
            let s0_0 = subgroupBroadcast(a0_0, 0u);
            let s1_0 = subgroupBroadcast(a0_0, 1u);
            let s2_0 = subgroupBroadcast(a0_0, 2u);
            let s3_0 = subgroupBroadcast(a0_0, 3u);
            let s4_0 = subgroupBroadcast(a0_0, 4u);
            let s5_0 = subgroupBroadcast(a0_0, 5u);
            let s6_0 = subgroupBroadcast(a0_0, 6u);
            let s7_0 = subgroupBroadcast(a0_0, 7u);
            let a0_1 = load_a1(b, row0, k0 + 1u);
            let s0_1 = subgroupBroadcast(a0_1, 0u);
            let s1_1 = subgroupBroadcast(a0_1, 1u);
            let s2_1 = subgroupBroadcast(a0_1, 2u);
            let s3_1 = subgroupBroadcast(a0_1, 3u);
            let s4_1 = subgroupBroadcast(a0_1, 4u);
            let s5_1 = subgroupBroadcast(a0_1, 5u);
            let s6_1 = subgroupBroadcast(a0_1, 6u);
            let s7_1 = subgroupBroadcast(a0_1, 7u);
            let a0_2 = load_a1(b, row0, k0 + 2u);
            let s0_2 = subgroupBroadcast(a0_2, 0u);
            let s1_2 = subgroupBroadcast(a0_2, 1u);
            let s2_2 = subgroupBroadcast(a0_2, 2u);
            let s3_2 = subgroupBroadcast(a0_2, 3u);
            let s4_2 = subgroupBroadcast(a0_2, 4u);
            let s5_2 = subgroupBroadcast(a0_2, 5u);
            let s6_2 = subgroupBroadcast(a0_2, 6u);
            let s7_2 = subgroupBroadcast(a0_2, 7u);
            let a0_3 = load_a1(b, row0, k0 + 3u);
            let s0_3 = subgroupBroadcast(a0_3, 0u);
            let s1_3 = subgroupBroadcast(a0_3, 1u);
            let s2_3 = subgroupBroadcast(a0_3, 2u);
            let s3_3 = subgroupBroadcast(a0_3, 3u);
            let s4_3 = subgroupBroadcast(a0_3, 4u);
            let s5_3 = subgroupBroadcast(a0_3, 5u);
            let s6_3 = subgroupBroadcast(a0_3, 6u);
            let s7_3 = subgroupBroadcast(a0_3, 7u);
            c0_0 = fma(vec4<f32>(s0_3), v3_0, fma(vec4<f32>(s0_2), v2_0, fma(vec4<f32>(s0_1), v1_0, fma(vec4<f32>(s0_0), v0_0, c0_0))));
            c1_0 = fma(vec4<f32>(s1_3), v3_0, fma(vec4<f32>(s1_2), v2_0, fma(vec4<f32>(s1_1), v1_0, fma(vec4<f32>(s1_0), v0_0, c1_0))));
            c2_0 = fma(vec4<f32>(s2_3), v3_0, fma(vec4<f32>(s2_2), v2_0, fma(vec4<f32>(s2_1), v1_0, fma(vec4<f32>(s2_0), v0_0, c2_0))));
            c3_0 = fma(vec4<f32>(s3_3), v3_0, fma(vec4<f32>(s3_2), v2_0, fma(vec4<f32>(s3_1), v1_0, fma(vec4<f32>(s3_0), v0_0, c3_0))));
            c4_0 = fma(vec4<f32>(s4_3), v3_0, fma(vec4<f32>(s4_2), v2_0, fma(vec4<f32>(s4_1), v1_0, fma(vec4<f32>(s4_0), v0_0, c4_0))));
            c5_0 = fma(vec4<f32>(s5_3), v3_0, fma(vec4<f32>(s5_2), v2_0, fma(vec4<f32>(s5_1), v1_0, fma(vec4<f32>(s5_0), v0_0, c5_0))));
            c6_0 = fma(vec4<f32>(s6_3), v3_0, fma(vec4<f32>(s6_2), v2_0, fma(vec4<f32>(s6_1), v1_0, fma(vec4<f32>(s6_0), v0_0, c6_0))));
            c7_0 = fma(vec4<f32>(s7_3), v3_0, fma(vec4<f32>(s7_2), v2_0, fma(vec4<f32>(s7_1), v1_0, fma(vec4<f32>(s7_0), v0_0, c7_0))));
            let a1_0 = load_a1(b, row1, k0 + 0u);
            let s8_0 = subgroupBroadcast(a1_0, 0u);
            let s9_0 = subgroupBroadcast(a1_0, 1u);
            let s10_0 = subgroupBroadcast(a1_0, 2u);
            let s11_0 = subgroupBroadcast(a1_0, 3u);
            let s12_0 = subgroupBroadcast(a1_0, 4u);
            let s13_0 = subgroupBroadcast(a1_0, 5u);
            let s14_0 = subgroupBroadcast(a1_0, 6u);
            let s15_0 = subgroupBroadcast(a1_0, 7u);
            let a1_1 = load_a1(b, row1, k0 + 1u);
            let s8_1 = subgroupBroadcast(a1_1, 0u);
            let s9_1 = subgroupBroadcast(a1_1, 1u);
            let s10_1 = subgroupBroadcast(a1_1, 2u);
            let s11_1 = subgroupBroadcast(a1_1, 3u);
            let s12_1 = subgroupBroadcast(a1_1, 4u);
            let s13_1 = subgroupBroadcast(a1_1, 5u);
            let s14_1 = subgroupBroadcast(a1_1, 6u);
            let s15_1 = subgroupBroadcast(a1_1, 7u);
            let a1_2 = load_a1(b, row1, k0 + 2u);
            let s8_2 = subgroupBroadcast(a1_2, 0u);
            let s9_2 = subgroupBroadcast(a1_2, 1u);
            let s10_2 = subgroupBroadcast(a1_2, 2u);
            let s11_2 = subgroupBroadcast(a1_2, 3u);
            let s12_2 = subgroupBroadcast(a1_2, 4u);
            let s13_2 = subgroupBroadcast(a1_2, 5u);
            let s14_2 = subgroupBroadcast(a1_2, 6u);
            let s15_2 = subgroupBroadcast(a1_2, 7u);
            let a1_3 = load_a1(b, row1, k0 + 3u);
            let s8_3 = subgroupBroadcast(a1_3, 0u);
            let s9_3 = subgroupBroadcast(a1_3, 1u);
            let s10_3 = subgroupBroadcast(a1_3, 2u);
            let s11_3 = subgroupBroadcast(a1_3, 3u);
            let s12_3 = subgroupBroadcast(a1_3, 4u);
            let s13_3 = subgroupBroadcast(a1_3, 5u);
            let s14_3 = subgroupBroadcast(a1_3, 6u);
            let s15_3 = subgroupBroadcast(a1_3, 7u);
            c8_0 = fma(vec4<f32>(s8_3), v3_0, fma(vec4<f32>(s8_2), v2_0, fma(vec4<f32>(s8_1), v1_0, fma(vec4<f32>(s8_0), v0_0, c8_0))));
            c9_0 = fma(vec4<f32>(s9_3), v3_0, fma(vec4<f32>(s9_2), v2_0, fma(vec4<f32>(s9_1), v1_0, fma(vec4<f32>(s9_0), v0_0, c9_0))));
            c10_0 = fma(vec4<f32>(s10_3), v3_0, fma(vec4<f32>(s10_2), v2_0, fma(vec4<f32>(s10_1), v1_0, fma(vec4<f32>(s10_0), v0_0, c10_0))));
            c11_0 = fma(vec4<f32>(s11_3), v3_0, fma(vec4<f32>(s11_2), v2_0, fma(vec4<f32>(s11_1), v1_0, fma(vec4<f32>(s11_0), v0_0, c11_0))));
            c12_0 = fma(vec4<f32>(s12_3), v3_0, fma(vec4<f32>(s12_2), v2_0, fma(vec4<f32>(s12_1), v1_0, fma(vec4<f32>(s12_0), v0_0, c12_0))));
            c13_0 = fma(vec4<f32>(s13_3), v3_0, fma(vec4<f32>(s13_2), v2_0, fma(vec4<f32>(s13_1), v1_0, fma(vec4<f32>(s13_0), v0_0, c13_0))));
            c14_0 = fma(vec4<f32>(s14_3), v3_0, fma(vec4<f32>(s14_2), v2_0, fma(vec4<f32>(s14_1), v1_0, fma(vec4<f32>(s14_0), v0_0, c14_0))));
            c15_0 = fma(vec4<f32>(s15_3), v3_0, fma(vec4<f32>(s15_2), v2_0, fma(vec4<f32>(s15_1), v1_0, fma(vec4<f32>(s15_0), v0_0, c15_0))));
            let a2_0 = load_a1(b, row2, k0 + 0u);
            let s16_0 = subgroupBroadcast(a2_0, 0u);
            let s17_0 = subgroupBroadcast(a2_0, 1u);
            let s18_0 = subgroupBroadcast(a2_0, 2u);
            let s19_0 = subgroupBroadcast(a2_0, 3u);
            let s20_0 = subgroupBroadcast(a2_0, 4u);
            let s21_0 = subgroupBroadcast(a2_0, 5u);
            let s22_0 = subgroupBroadcast(a2_0, 6u);
            let s23_0 = subgroupBroadcast(a2_0, 7u);
            let a2_1 = load_a1(b, row2, k0 + 1u);
            let s16_1 = subgroupBroadcast(a2_1, 0u);
            let s17_1 = subgroupBroadcast(a2_1, 1u);
            let s18_1 = subgroupBroadcast(a2_1, 2u);
            let s19_1 = subgroupBroadcast(a2_1, 3u);
            let s20_1 = subgroupBroadcast(a2_1, 4u);
            let s21_1 = subgroupBroadcast(a2_1, 5u);
            let s22_1 = subgroupBroadcast(a2_1, 6u);
            let s23_1 = subgroupBroadcast(a2_1, 7u);
            let a2_2 = load_a1(b, row2, k0 + 2u);
            let s16_2 = subgroupBroadcast(a2_2, 0u);
            let s17_2 = subgroupBroadcast(a2_2, 1u);
            let s18_2 = subgroupBroadcast(a2_2, 2u);
            let s19_2 = subgroupBroadcast(a2_2, 3u);
            let s20_2 = subgroupBroadcast(a2_2, 4u);
            let s21_2 = subgroupBroadcast(a2_2, 5u);
            let s22_2 = subgroupBroadcast(a2_2, 6u);
            let s23_2 = subgroupBroadcast(a2_2, 7u);
            let a2_3 = load_a1(b, row2, k0 + 3u);
            let s16_3 = subgroupBroadcast(a2_3, 0u);
            let s17_3 = subgroupBroadcast(a2_3, 1u);
            let s18_3 = subgroupBroadcast(a2_3, 2u);
            let s19_3 = subgroupBroadcast(a2_3, 3u);
            let s20_3 = subgroupBroadcast(a2_3, 4u);
            let s21_3 = subgroupBroadcast(a2_3, 5u);
            let s22_3 = subgroupBroadcast(a2_3, 6u);
            let s23_3 = subgroupBroadcast(a2_3, 7u);
            c16_0 = fma(vec4<f32>(s16_3), v3_0, fma(vec4<f32>(s16_2), v2_0, fma(vec4<f32>(s16_1), v1_0, fma(vec4<f32>(s16_0), v0_0, c16_0))));
            c17_0 = fma(vec4<f32>(s17_3), v3_0, fma(vec4<f32>(s17_2), v2_0, fma(vec4<f32>(s17_1), v1_0, fma(vec4<f32>(s17_0), v0_0, c17_0))));
            c18_0 = fma(vec4<f32>(s18_3), v3_0, fma(vec4<f32>(s18_2), v2_0, fma(vec4<f32>(s18_1), v1_0, fma(vec4<f32>(s18_0), v0_0, c18_0))));
            c19_0 = fma(vec4<f32>(s19_3), v3_0, fma(vec4<f32>(s19_2), v2_0, fma(vec4<f32>(s19_1), v1_0, fma(vec4<f32>(s19_0), v0_0, c19_0))));
            c20_0 = fma(vec4<f32>(s20_3), v3_0, fma(vec4<f32>(s20_2), v2_0, fma(vec4<f32>(s20_1), v1_0, fma(vec4<f32>(s20_0), v0_0, c20_0))));
            c21_0 = fma(vec4<f32>(s21_3), v3_0, fma(vec4<f32>(s21_2), v2_0, fma(vec4<f32>(s21_1), v1_0, fma(vec4<f32>(s21_0), v0_0, c21_0))));
            c22_0 = fma(vec4<f32>(s22_3), v3_0, fma(vec4<f32>(s22_2), v2_0, fma(vec4<f32>(s22_1), v1_0, fma(vec4<f32>(s22_0), v0_0, c22_0))));
            c23_0 = fma(vec4<f32>(s23_3), v3_0, fma(vec4<f32>(s23_2), v2_0, fma(vec4<f32>(s23_1), v1_0, fma(vec4<f32>(s23_0), v0_0, c23_0))));
            let a3_0 = load_a1(b, row3, k0 + 0u);
            let s24_0 = subgroupBroadcast(a3_0, 0u);
            let s25_0 = subgroupBroadcast(a3_0, 1u);
            let s26_0 = subgroupBroadcast(a3_0, 2u);
            let s27_0 = subgroupBroadcast(a3_0, 3u);
            let s28_0 = subgroupBroadcast(a3_0, 4u);
            let s29_0 = subgroupBroadcast(a3_0, 5u);
            let s30_0 = subgroupBroadcast(a3_0, 6u);
            let s31_0 = subgroupBroadcast(a3_0, 7u);
            let a3_1 = load_a1(b, row3, k0 + 1u);
            let s24_1 = subgroupBroadcast(a3_1, 0u);
            let s25_1 = subgroupBroadcast(a3_1, 1u);
            let s26_1 = subgroupBroadcast(a3_1, 2u);
            let s27_1 = subgroupBroadcast(a3_1, 3u);
            let s28_1 = subgroupBroadcast(a3_1, 4u);
            let s29_1 = subgroupBroadcast(a3_1, 5u);
            let s30_1 = subgroupBroadcast(a3_1, 6u);
            let s31_1 = subgroupBroadcast(a3_1, 7u);
            let a3_2 = load_a1(b, row3, k0 + 2u);
            let s24_2 = subgroupBroadcast(a3_2, 0u);
            let s25_2 = subgroupBroadcast(a3_2, 1u);
            let s26_2 = subgroupBroadcast(a3_2, 2u);
            let s27_2 = subgroupBroadcast(a3_2, 3u);
            let s28_2 = subgroupBroadcast(a3_2, 4u);
            let s29_2 = subgroupBroadcast(a3_2, 5u);
            let s30_2 = subgroupBroadcast(a3_2, 6u);
            let s31_2 = subgroupBroadcast(a3_2, 7u);
            let a3_3 = load_a1(b, row3, k0 + 3u);
            let s24_3 = subgroupBroadcast(a3_3, 0u);
            let s25_3 = subgroupBroadcast(a3_3, 1u);
            let s26_3 = subgroupBroadcast(a3_3, 2u);
            let s27_3 = subgroupBroadcast(a3_3, 3u);
            let s28_3 = subgroupBroadcast(a3_3, 4u);
            let s29_3 = subgroupBroadcast(a3_3, 5u);
            let s30_3 = subgroupBroadcast(a3_3, 6u);
            let s31_3 = subgroupBroadcast(a3_3, 7u);
            c24_0 = fma(vec4<f32>(s24_3), v3_0, fma(vec4<f32>(s24_2), v2_0, fma(vec4<f32>(s24_1), v1_0, fma(vec4<f32>(s24_0), v0_0, c24_0))));
            c25_0 = fma(vec4<f32>(s25_3), v3_0, fma(vec4<f32>(s25_2), v2_0, fma(vec4<f32>(s25_1), v1_0, fma(vec4<f32>(s25_0), v0_0, c25_0))));
            c26_0 = fma(vec4<f32>(s26_3), v3_0, fma(vec4<f32>(s26_2), v2_0, fma(vec4<f32>(s26_1), v1_0, fma(vec4<f32>(s26_0), v0_0, c26_0))));
            c27_0 = fma(vec4<f32>(s27_3), v3_0, fma(vec4<f32>(s27_2), v2_0, fma(vec4<f32>(s27_1), v1_0, fma(vec4<f32>(s27_0), v0_0, c27_0))));
            c28_0 = fma(vec4<f32>(s28_3), v3_0, fma(vec4<f32>(s28_2), v2_0, fma(vec4<f32>(s28_1), v1_0, fma(vec4<f32>(s28_0), v0_0, c28_0))));
            c29_0 = fma(vec4<f32>(s29_3), v3_0, fma(vec4<f32>(s29_2), v2_0, fma(vec4<f32>(s29_1), v1_0, fma(vec4<f32>(s29_0), v0_0, c29_0))));
            c30_0 = fma(vec4<f32>(s30_3), v3_0, fma(vec4<f32>(s30_2), v2_0, fma(vec4<f32>(s30_1), v1_0, fma(vec4<f32>(s30_0), v0_0, c30_0))));
            c31_0 = fma(vec4<f32>(s31_3), v3_0, fma(vec4<f32>(s31_2), v2_0, fma(vec4<f32>(s31_1), v1_0, fma(vec4<f32>(s31_0), v0_0, c31_0))));
        }
    }
    {
        let k0 = 4u;
        let v0_0 = vec4<f32>(load_b1(b, k0 + 0u, col0_0), load_b1(b, k0 + 0u, col0_1), load_b1(b, k0 + 0u, col0_2), load_b1(b, k0 + 0u, col0_3));
        let v1_0 = vec4<f32>(load_b1(b, k0 + 1u, col0_0), load_b1(b, k0 + 1u, col0_1), load_b1(b, k0 + 1u, col0_2), load_b1(b, k0 + 1u, col0_3));
        let v2_0 = vec4<f32>(load_b1(b, k0 + 2u, col0_0), load_b1(b, k0 + 2u, col0_1), load_b1(b, k0 + 2u, col0_2), load_b1(b, k0 + 2u, col0_3));
        let a0_0 = load_a1(b, row0, k0 + 0u);
        let s0_0 = subgroupBroadcast(a0_0, 0u);
        let s1_0 = subgroupBroadcast(a0_0, 1u);
        let s2_0 = subgroupBroadcast(a0_0, 2u);
        let s3_0 = subgroupBroadcast(a0_0, 3u);
        let s4_0 = subgroupBroadcast(a0_0, 4u);
        let s5_0 = subgroupBroadcast(a0_0, 5u);
        let s6_0 = subgroupBroadcast(a0_0, 6u);
        let s7_0 = subgroupBroadcast(a0_0, 7u);
        let a0_1 = load_a1(b, row0, k0 + 1u);
        let s0_1 = subgroupBroadcast(a0_1, 0u);
        let s1_1 = subgroupBroadcast(a0_1, 1u);
        let s2_1 = subgroupBroadcast(a0_1, 2u);
        let s3_1 = subgroupBroadcast(a0_1, 3u);
        let s4_1 = subgroupBroadcast(a0_1, 4u);
        let s5_1 = subgroupBroadcast(a0_1, 5u);
        let s6_1 = subgroupBroadcast(a0_1, 6u);
        let s7_1 = subgroupBroadcast(a0_1, 7u);
        let a0_2 = load_a1(b, row0, k0 + 2u);
        let s0_2 = subgroupBroadcast(a0_2, 0u);
        let s1_2 = subgroupBroadcast(a0_2, 1u);
        let s2_2 = subgroupBroadcast(a0_2, 2u);
        let s3_2 = subgroupBroadcast(a0_2, 3u);
        let s4_2 = subgroupBroadcast(a0_2, 4u);
        let s5_2 = subgroupBroadcast(a0_2, 5u);
        let s6_2 = subgroupBroadcast(a0_2, 6u);
        let s7_2 = subgroupBroadcast(a0_2, 7u);
        c0_0 = fma(vec4<f32>(s0_2), v2_0, fma(vec4<f32>(s0_1), v1_0, fma(vec4<f32>(s0_0), v0_0, c0_0)));
        c1_0 = fma(vec4<f32>(s1_2), v2_0, fma(vec4<f32>(s1_1), v1_0, fma(vec4<f32>(s1_0), v0_0, c1_0)));
        c2_0 = fma(vec4<f32>(s2_2), v2_0, fma(vec4<f32>(s2_1), v1_0, fma(vec4<f32>(s2_0), v0_0, c2_0)));
        c3_0 = fma(vec4<f32>(s3_2), v2_0, fma(vec4<f32>(s3_1), v1_0, fma(vec4<f32>(s3_0), v0_0, c3_0)));
        c4_0 = fma(vec4<f32>(s4_2), v2_0, fma(vec4<f32>(s4_1), v1_0, fma(vec4<f32>(s4_0), v0_0, c4_0)));
        c5_0 = fma(vec4<f32>(s5_2), v2_0, fma(vec4<f32>(s5_1), v1_0, fma(vec4<f32>(s5_0), v0_0, c5_0)));
        c6_0 = fma(vec4<f32>(s6_2), v2_0, fma(vec4<f32>(s6_1), v1_0, fma(vec4<f32>(s6_0), v0_0, c6_0)));
        c7_0 = fma(vec4<f32>(s7_2), v2_0, fma(vec4<f32>(s7_1), v1_0, fma(vec4<f32>(s7_0), v0_0, c7_0)));
        let a1_0 = load_a1(b, row1, k0 + 0u);
        let s8_0 = subgroupBroadcast(a1_0, 0u);
        let s9_0 = subgroupBroadcast(a1_0, 1u);
        let s10_0 = subgroupBroadcast(a1_0, 2u);
        let s11_0 = subgroupBroadcast(a1_0, 3u);
        let s12_0 = subgroupBroadcast(a1_0, 4u);
        let s13_0 = subgroupBroadcast(a1_0, 5u);
        let s14_0 = subgroupBroadcast(a1_0, 6u);
        let s15_0 = subgroupBroadcast(a1_0, 7u);
        let a1_1 = load_a1(b, row1, k0 + 1u);
        let s8_1 = subgroupBroadcast(a1_1, 0u);
        let s9_1 = subgroupBroadcast(a1_1, 1u);
        let s10_1 = subgroupBroadcast(a1_1, 2u);
        let s11_1 = subgroupBroadcast(a1_1, 3u);
        let s12_1 = subgroupBroadcast(a1_1, 4u);
        let s13_1 = subgroupBroadcast(a1_1, 5u);
        let s14_1 = subgroupBroadcast(a1_1, 6u);
        let s15_1 = subgroupBroadcast(a1_1, 7u);
        let a1_2 = load_a1(b, row1, k0 + 2u);
        let s8_2 = subgroupBroadcast(a1_2, 0u);
        let s9_2 = subgroupBroadcast(a1_2, 1u);
        let s10_2 = subgroupBroadcast(a1_2, 2u);
        let s11_2 = subgroupBroadcast(a1_2, 3u);
        let s12_2 = subgroupBroadcast(a1_2, 4u);
        let s13_2 = subgroupBroadcast(a1_2, 5u);
        let s14_2 = subgroupBroadcast(a1_2, 6u);
        let s15_2 = subgroupBroadcast(a1_2, 7u);
        c8_0 = fma(vec4<f32>(s8_2), v2_0, fma(vec4<f32>(s8_1), v1_0, fma(vec4<f32>(s8_0), v0_0, c8_0)));
        c9_0 = fma(vec4<f32>(s9_2), v2_0, fma(vec4<f32>(s9_1), v1_0, fma(vec4<f32>(s9_0), v0_0, c9_0)));
        c10_0 = fma(vec4<f32>(s10_2), v2_0, fma(vec4<f32>(s10_1), v1_0, fma(vec4<f32>(s10_0), v0_0, c10_0)));
        c11_0 = fma(vec4<f32>(s11_2), v2_0, fma(vec4<f32>(s11_1), v1_0, fma(vec4<f32>(s11_0), v0_0, c11_0)));
        c12_0 = fma(vec4<f32>(s12_2), v2_0, fma(vec4<f32>(s12_1), v1_0, fma(vec4<f32>(s12_0), v0_0, c12_0)));
        c13_0 = fma(vec4<f32>(s13_2), v2_0, fma(vec4<f32>(s13_1), v1_0, fma(vec4<f32>(s13_0), v0_0, c13_0)));
        c14_0 = fma(vec4<f32>(s14_2), v2_0, fma(vec4<f32>(s14_1), v1_0, fma(vec4<f32>(s14_0), v0_0, c14_0)));
        c15_0 = fma(vec4<f32>(s15_2), v2_0, fma(vec4<f32>(s15_1), v1_0, fma(vec4<f32>(s15_0), v0_0, c15_0)));
        let a2_0 = load_a1(b, row2, k0 + 0u);
        let s16_0 = subgroupBroadcast(a2_0, 0u);
        let s17_0 = subgroupBroadcast(a2_0, 1u);
        let s18_0 = subgroupBroadcast(a2_0, 2u);
        let s19_0 = subgroupBroadcast(a2_0, 3u);
        let s20_0 = subgroupBroadcast(a2_0, 4u);
        let s21_0 = subgroupBroadcast(a2_0, 5u);
        let s22_0 = subgroupBroadcast(a2_0, 6u);
        let s23_0 = subgroupBroadcast(a2_0, 7u);
        let a2_1 = load_a1(b, row2, k0 + 1u);
        let s16_1 = subgroupBroadcast(a2_1, 0u);
        let s17_1 = subgroupBroadcast(a2_1, 1u);
        let s18_1 = subgroupBroadcast(a2_1, 2u);
        let s19_1 = subgroupBroadcast(a2_1, 3u);
        let s20_1 = subgroupBroadcast(a2_1, 4u);
        let s21_1 = subgroupBroadcast(a2_1, 5u);
        let s22_1 = subgroupBroadcast(a2_1, 6u);
        let s23_1 = subgroupBroadcast(a2_1, 7u);
        let a2_2 = load_a1(b, row2, k0 + 2u);
        let s16_2 = subgroupBroadcast(a2_2, 0u);
        let s17_2 = subgroupBroadcast(a2_2, 1u);
        let s18_2 = subgroupBroadcast(a2_2, 2u);
        let s19_2 = subgroupBroadcast(a2_2, 3u);
        let s20_2 = subgroupBroadcast(a2_2, 4u);
        let s21_2 = subgroupBroadcast(a2_2, 5u);
        let s22_2 = subgroupBroadcast(a2_2, 6u);
        let s23_2 = subgroupBroadcast(a2_2, 7u);
        c16_0 = fma(vec4<f32>(s16_2), v2_0, fma(vec4<f32>(s16_1), v1_0, fma(vec4<f32>(s16_0), v0_0, c16_0)));
        c17_0 = fma(vec4<f32>(s17_2), v2_0, fma(vec4<f32>(s17_1), v1_0, fma(vec4<f32>(s17_0), v0_0, c17_0)));
        c18_0 = fma(vec4<f32>(s18_2), v2_0, fma(vec4<f32>(s18_1), v1_0, fma(vec4<f32>(s18_0), v0_0, c18_0)));
        c19_0 = fma(vec4<f32>(s19_2), v2_0, fma(vec4<f32>(s19_1), v1_0, fma(vec4<f32>(s19_0), v0_0, c19_0)));
        c20_0 = fma(vec4<f32>(s20_2), v2_0, fma(vec4<f32>(s20_1), v1_0, fma(vec4<f32>(s20_0), v0_0, c20_0)));
        c21_0 = fma(vec4<f32>(s21_2), v2_0, fma(vec4<f32>(s21_1), v1_0, fma(vec4<f32>(s21_0), v0_0, c21_0)));
        c22_0 = fma(vec4<f32>(s22_2), v2_0, fma(vec4<f32>(s22_1), v1_0, fma(vec4<f32>(s22_0), v0_0, c22_0)));
        c23_0 = fma(vec4<f32>(s23_2), v2_0, fma(vec4<f32>(s23_1), v1_0, fma(vec4<f32>(s23_0), v0_0, c23_0)));
        let a3_0 = load_a1(b, row3, k0 + 0u);
        let s24_0 = subgroupBroadcast(a3_0, 0u);
        let s25_0 = subgroupBroadcast(a3_0, 1u);
        let s26_0 = subgroupBroadcast(a3_0, 2u);
        let s27_0 = subgroupBroadcast(a3_0, 3u);
        let s28_0 = subgroupBroadcast(a3_0, 4u);
        let s29_0 = subgroupBroadcast(a3_0, 5u);
        let s30_0 = subgroupBroadcast(a3_0, 6u);
        let s31_0 = subgroupBroadcast(a3_0, 7u);
        let a3_1 = load_a1(b, row3, k0 + 1u);
        let s24_1 = subgroupBroadcast(a3_1, 0u);
        let s25_1 = subgroupBroadcast(a3_1, 1u);
        let s26_1 = subgroupBroadcast(a3_1, 2u);
        let s27_1 = subgroupBroadcast(a3_1, 3u);
        let s28_1 = subgroupBroadcast(a3_1, 4u);
        let s29_1 = subgroupBroadcast(a3_1, 5u);
        let s30_1 = subgroupBroadcast(a3_1, 6u);
        let s31_1 = subgroupBroadcast(a3_1, 7u);
        let a3_2 = load_a1(b, row3, k0 + 2u);
        let s24_2 = subgroupBroadcast(a3_2, 0u);
        let s25_2 = subgroupBroadcast(a3_2, 1u);
        let s26_2 = subgroupBroadcast(a3_2, 2u);
        let s27_2 = subgroupBroadcast(a3_2, 3u);
        let s28_2 = subgroupBroadcast(a3_2, 4u);
        let s29_2 = subgroupBroadcast(a3_2, 5u);
        let s30_2 = subgroupBroadcast(a3_2, 6u);
        let s31_2 = subgroupBroadcast(a3_2, 7u);
        c24_0 = fma(vec4<f32>(s24_2), v2_0, fma(vec4<f32>(s24_1), v1_0, fma(vec4<f32>(s24_0), v0_0, c24_0)));
        c25_0 = fma(vec4<f32>(s25_2), v2_0, fma(vec4<f32>(s25_1), v1_0, fma(vec4<f32>(s25_0), v0_0, c25_0)));
        c26_0 = fma(vec4<f32>(s26_2), v2_0, fma(vec4<f32>(s26_1), v1_0, fma(vec4<f32>(s26_0), v0_0, c26_0)));
        c27_0 = fma(vec4<f32>(s27_2), v2_0, fma(vec4<f32>(s27_1), v1_0, fma(vec4<f32>(s27_0), v0_0, c27_0)));
        c28_0 = fma(vec4<f32>(s28_2), v2_0, fma(vec4<f32>(s28_1), v1_0, fma(vec4<f32>(s28_0), v0_0, c28_0)));
        c29_0 = fma(vec4<f32>(s29_2), v2_0, fma(vec4<f32>(s29_1), v1_0, fma(vec4<f32>(s29_0), v0_0, c29_0)));
        c30_0 = fma(vec4<f32>(s30_2), v2_0, fma(vec4<f32>(s30_1), v1_0, fma(vec4<f32>(s30_0), v0_0, c30_0)));
        c31_0 = fma(vec4<f32>(s31_2), v2_0, fma(vec4<f32>(s31_1), v1_0, fma(vec4<f32>(s31_0), v0_0, c31_0)));
    }
    {
        let j = col + 0u;
        if row + 0u < 99u {
            if j + 0u < 18u {
                store1(b, row + 0u, j + 0u, c0_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 0u, j + 1u, c0_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 0u, j + 2u, c0_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 0u, j + 3u, c0_0.w);
            }
        }
        if row + 1u < 99u {
            if j + 0u < 18u {
                store1(b, row + 1u, j + 0u, c1_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 1u, j + 1u, c1_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 1u, j + 2u, c1_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 1u, j + 3u, c1_0.w);
            }
        }
        if row + 2u < 99u {
            if j + 0u < 18u {
                store1(b, row + 2u, j + 0u, c2_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 2u, j + 1u, c2_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 2u, j + 2u, c2_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 2u, j + 3u, c2_0.w);
            }
        }
        if row + 3u < 99u {
            if j + 0u < 18u {
                store1(b, row + 3u, j + 0u, c3_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 3u, j + 1u, c3_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 3u, j + 2u, c3_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 3u, j + 3u, c3_0.w);
            }
        }
        if row + 4u < 99u {
            if j + 0u < 18u {
                store1(b, row + 4u, j + 0u, c4_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 4u, j + 1u, c4_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 4u, j + 2u, c4_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 4u, j + 3u, c4_0.w);
            }
        }
        if row + 5u < 99u {
            if j + 0u < 18u {
                store1(b, row + 5u, j + 0u, c5_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 5u, j + 1u, c5_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 5u, j + 2u, c5_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 5u, j + 3u, c5_0.w);
            }
        }
        if row + 6u < 99u {
            if j + 0u < 18u {
                store1(b, row + 6u, j + 0u, c6_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 6u, j + 1u, c6_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 6u, j + 2u, c6_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 6u, j + 3u, c6_0.w);
            }
        }
        if row + 7u < 99u {
            if j + 0u < 18u {
                store1(b, row + 7u, j + 0u, c7_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 7u, j + 1u, c7_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 7u, j + 2u, c7_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 7u, j + 3u, c7_0.w);
            }
        }
        if row + 8u < 99u {
            if j + 0u < 18u {
                store1(b, row + 8u, j + 0u, c8_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 8u, j + 1u, c8_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 8u, j + 2u, c8_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 8u, j + 3u, c8_0.w);
            }
        }
        if row + 9u < 99u {
            if j + 0u < 18u {
                store1(b, row + 9u, j + 0u, c9_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 9u, j + 1u, c9_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 9u, j + 2u, c9_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 9u, j + 3u, c9_0.w);
            }
        }
        if row + 10u < 99u {
            if j + 0u < 18u {
                store1(b, row + 10u, j + 0u, c10_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 10u, j + 1u, c10_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 10u, j + 2u, c10_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 10u, j + 3u, c10_0.w);
            }
        }
        if row + 11u < 99u {
            if j + 0u < 18u {
                store1(b, row + 11u, j + 0u, c11_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 11u, j + 1u, c11_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 11u, j + 2u, c11_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 11u, j + 3u, c11_0.w);
            }
        }
        if row + 12u < 99u {
            if j + 0u < 18u {
                store1(b, row + 12u, j + 0u, c12_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 12u, j + 1u, c12_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 12u, j + 2u, c12_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 12u, j + 3u, c12_0.w);
            }
        }
        if row + 13u < 99u {
            if j + 0u < 18u {
                store1(b, row + 13u, j + 0u, c13_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 13u, j + 1u, c13_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 13u, j + 2u, c13_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 13u, j + 3u, c13_0.w);
            }
        }
        if row + 14u < 99u {
            if j + 0u < 18u {
                store1(b, row + 14u, j + 0u, c14_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 14u, j + 1u, c14_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 14u, j + 2u, c14_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 14u, j + 3u, c14_0.w);
            }
        }
        if row + 15u < 99u {
            if j + 0u < 18u {
                store1(b, row + 15u, j + 0u, c15_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 15u, j + 1u, c15_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 15u, j + 2u, c15_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 15u, j + 3u, c15_0.w);
            }
        }
        if row + 16u < 99u {
            if j + 0u < 18u {
                store1(b, row + 16u, j + 0u, c16_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 16u, j + 1u, c16_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 16u, j + 2u, c16_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 16u, j + 3u, c16_0.w);
            }
        }
        if row + 17u < 99u {
            if j + 0u < 18u {
                store1(b, row + 17u, j + 0u, c17_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 17u, j + 1u, c17_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 17u, j + 2u, c17_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 17u, j + 3u, c17_0.w);
            }
        }
        if row + 18u < 99u {
            if j + 0u < 18u {
                store1(b, row + 18u, j + 0u, c18_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 18u, j + 1u, c18_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 18u, j + 2u, c18_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 18u, j + 3u, c18_0.w);
            }
        }
        if row + 19u < 99u {
            if j + 0u < 18u {
                store1(b, row + 19u, j + 0u, c19_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 19u, j + 1u, c19_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 19u, j + 2u, c19_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 19u, j + 3u, c19_0.w);
            }
        }
        if row + 20u < 99u {
            if j + 0u < 18u {
                store1(b, row + 20u, j + 0u, c20_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 20u, j + 1u, c20_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 20u, j + 2u, c20_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 20u, j + 3u, c20_0.w);
            }
        }
        if row + 21u < 99u {
            if j + 0u < 18u {
                store1(b, row + 21u, j + 0u, c21_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 21u, j + 1u, c21_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 21u, j + 2u, c21_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 21u, j + 3u, c21_0.w);
            }
        }
        if row + 22u < 99u {
            if j + 0u < 18u {
                store1(b, row + 22u, j + 0u, c22_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 22u, j + 1u, c22_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 22u, j + 2u, c22_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 22u, j + 3u, c22_0.w);
            }
        }
        if row + 23u < 99u {
            if j + 0u < 18u {
                store1(b, row + 23u, j + 0u, c23_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 23u, j + 1u, c23_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 23u, j + 2u, c23_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 23u, j + 3u, c23_0.w);
            }
        }
        if row + 24u < 99u {
            if j + 0u < 18u {
                store1(b, row + 24u, j + 0u, c24_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 24u, j + 1u, c24_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 24u, j + 2u, c24_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 24u, j + 3u, c24_0.w);
            }
        }
        if row + 25u < 99u {
            if j + 0u < 18u {
                store1(b, row + 25u, j + 0u, c25_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 25u, j + 1u, c25_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 25u, j + 2u, c25_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 25u, j + 3u, c25_0.w);
            }
        }
        if row + 26u < 99u {
            if j + 0u < 18u {
                store1(b, row + 26u, j + 0u, c26_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 26u, j + 1u, c26_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 26u, j + 2u, c26_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 26u, j + 3u, c26_0.w);
            }
        }
        if row + 27u < 99u {
            if j + 0u < 18u {
                store1(b, row + 27u, j + 0u, c27_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 27u, j + 1u, c27_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 27u, j + 2u, c27_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 27u, j + 3u, c27_0.w);
            }
        }
        if row + 28u < 99u {
            if j + 0u < 18u {
                store1(b, row + 28u, j + 0u, c28_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 28u, j + 1u, c28_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 28u, j + 2u, c28_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 28u, j + 3u, c28_0.w);
            }
        }
        if row + 29u < 99u {
            if j + 0u < 18u {
                store1(b, row + 29u, j + 0u, c29_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 29u, j + 1u, c29_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 29u, j + 2u, c29_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 29u, j + 3u, c29_0.w);
            }
        }
        if row + 30u < 99u {
            if j + 0u < 18u {
                store1(b, row + 30u, j + 0u, c30_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 30u, j + 1u, c30_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 30u, j + 2u, c30_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 30u, j + 3u, c30_0.w);
            }
        }
        if row + 31u < 99u {
            if j + 0u < 18u {
                store1(b, row + 31u, j + 0u, c31_0.x);
            }
            if j + 1u < 18u {
                store1(b, row + 31u, j + 1u, c31_0.y);
            }
            if j + 2u < 18u {
                store1(b, row + 31u, j + 2u, c31_0.z);
            }
            if j + 3u < 18u {
                store1(b, row + 31u, j + 3u, c31_0.w);
            }
        }
    }
}
