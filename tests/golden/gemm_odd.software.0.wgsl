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
fn gemm_f32_57d963ef(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) num_wg: vec3<u32>,
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(local_invocation_id) lane: vec3<u32>,
) {
    let tile = wid.x + wid.y * num_wg.x;
    if tile >= 13u {
        return;
    }
    let tile_n = tile % 1u;
    let tile_m = tile / 1u % 13u;
    let b = tile / 13u;
    let row = tile_m * 8u;
    let col = tile_n * 32u + sub_lane * 4u;
    let row0 = min(row + (sub_lane + 0u) % 8u * 1u, 98u);
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
    }
}
