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

@compute @workgroup_size(8, 8, 1)
fn gemm_add_max_f32_7e53ca4f(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) num_wg: vec3<u32>,
    @builtin(local_invocation_id) lane: vec3<u32>,
) {
    let tile = wid.x + wid.y * num_wg.x;
    if tile >= 4u {
        return;
    }
    let tile_n = tile % 1u;
    let tile_m = tile / 1u % 4u;
    let b = tile / 4u;
    let row = tile_m * 16u + lane.y * 2u;
    let col = tile_n * 32u + lane.x * 4u;
    let row0 = row + 0u;
    let row1 = row + 1u;
    let col0 = col + 0u;
    var c0_0 = vec4<f32>();
    var c1_0 = vec4<f32>();
    for (var k = 0u; k < 48u; k += 4u) {
        {
            let k0 = k + 0u;
            let v0_0 = load_b(b, k0 + 0u, col0);
            let v1_0 = load_b(b, k0 + 1u, col0);
            let v2_0 = load_b(b, k0 + 2u, col0);
            let v3_0 = load_b(b, k0 + 3u, col0);
            let a0 = load_a(b, row0, k0);
            c0_0 = fma(vec4<f32>(a0.w), v3_0, fma(vec4<f32>(a0.z), v2_0, fma(vec4<f32>(a0.y), v1_0, fma(vec4<f32>(a0.x), v0_0, c0_0))));
            let a1 = load_a(b, row1, k0);
            c1_0 = fma(vec4<f32>(a1.w), v3_0, fma(vec4<f32>(a1.z), v2_0, fma(vec4<f32>(a1.y), v1_0, fma(vec4<f32>(a1.x), v0_0, c1_0))));
        }
    }
    {
        let j = col + 0u;
        store(b, row + 0u, j, c0_0);
        store(b, row + 1u, j, c1_0);
    }
}
