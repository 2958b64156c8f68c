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

@compute @workgroup_size(8, 8, 1)
fn gemm_f32_5b5a39a7(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) num_wg: vec3<u32>,
    @builtin(local_invocation_id) lane: vec3<u32>,
) {
    let tile = wid.x + wid.y * num_wg.x;
    if tile >= 7u {
        return;
    }
    let tile_n = tile % 1u;
    let tile_m = tile / 1u % 7u;
    let b = tile / 7u;
    let row = tile_m * 16u + lane.y * 2u;
    let col = tile_n * 32u + lane.x * 4u;
    let row0 = min(row + 0u, 98u);
    let row1 = min(row + 1u, 98u);
    let col0_0 = min(col + 0u + 0u, 17u);
    let col0_1 = min(col + 0u + 1u, 17u);
    let col0_2 = min(col + 0u + 2u, 17u);
    let col0_3 = min(col + 0u + 3u, 17u);
    var c0_0 = vec4<f32>();
    var c1_0 = vec4<f32>();
    for (var k = 0u; k < 4u; k += 4u) {
        {
            let k0 = k + 0u;
            let v0_0 = vec4<f32>(load_b1(b, k0 + 0u, col0_0), load_b1(b, k0 + 0u, col0_1), load_b1(b, k0 + 0u, col0_2), load_b1(b, k0 + 0u, col0_3));
            let v1_0 = vec4<f32>(load_b1(b, k0 + 1u, col0_0), load_b1(b, k0 + 1u, col0_1), load_b1(b, k0 + 1u, col0_2), load_b1(b, k0 + 1u, col0_3));
            let v2_0 = vec4<f32>(load_b1(b, k0 + 2u, col0_0), load_b1(b, k0 + 2u, col0_1), load_b1(b, k0 + 2u, col0_2), load_b1(b, k0 + 2u, col0_3));
            let v3_0 = vec4<f32>(load_b1(b, k0 + 3u, col0_0), load_b1(b, k0 + 3u, col0_1), load_b1(b, k0 + 3u, col0_2), load_b1(b, k0 + 3u, col0_3));
            let a0_0 = load_a1(b, row0, k0 + 0u);
            let a0_1 = load_a1(b, row0, k0 + 1u);
            let a0_2 = load_a1(b, row0, k0 + 2u);
            let a0_3 = load_a1(b, row0, k0 + 3u);
            c0_0 = fma(vec4<f32>(a0_3), v3_0, fma(vec4<f32>(a0_2), v2_0, fma(vec4<f32>(a0_1), v1_0, fma(vec4<f32>(a0_0), v0_0, c0_0))));
            let a1_0 = load_a1(b, row1, k0 + 0u);
            let a1_1 = load_a1(b, row1, k0 + 1u);
            let a1_2 = load_a1(b, row1, k0 + 2u);
            let a1_3 = load_a1(b, row1, k0 + 3u);
            c1_0 = fma(vec4<f32>(a1_3), v3_0, fma(vec4<f32>(a1_2), v2_0, fma(vec4<f32>(a1_1), v1_0, fma(vec4<f32>(a1_0), v0_0, c1_0))));
        }
    }
    {
        let k0 = 4u;
        let v0_0 = vec4<f32>(load_b1(b, k0 + 0u, col0_0), load_b1(b, k0 + 0u, col0_1), load_b1(b, k0 + 0u, col0_2), load_b1(b, k0 + 0u, col0_3));
        let v1_0 = vec4<f32>(load_b1(b, k0 + 1u, col0_0), load_b1(b, k0 + 1u, col0_1), load_b1(b, k0 + 1u, col0_2), load_b1(b, k0 + 1u, col0_3));
        let v2_0 = vec4<f32>(load_b1(b, k0 + 2u, col0_0), load_b1(b, k0 + 2u, col0_1), load_b1(b, k0 + 2u, col0_2), load_b1(b, k0 + 2u, col0_3));
        let a0_0 = load_a1(b, row0, k0 + 0u);
        let a0_1 = load_a1(b, row0, k0 + 1u);
        let a0_2 = load_a1(b, row0, k0 + 2u);
        c0_0 = fma(vec4<f32>(a0_2), v2_0, fma(vec4<f32>(a0_1), v1_0, fma(vec4<f32>(a0_0), v0_0, c0_0)));
        let a1_0 = load_a1(b, row1, k0 + 0u);
        let a1_1 = load_a1(b, row1, k0 + 1u);
        let a1_2 = load_a1(b, row1, k0 + 2u);
        c1_0 = fma(vec4<f32>(a1_2), v2_0, fma(vec4<f32>(a1_1), v1_0, fma(vec4<f32>(a1_0), v0_0, c1_0)));
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
    }
}
