// BatchNormalization
// Relu
@group(0) @binding(0) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> in1: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> in2: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;
fn is_nan_1(x: f32) -> bool { return (bitcast<i32>(x) & i32(0x7fffffffi)) > i32(0x7f800000i); }
fn is_nan_4(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<i32>>(x) & vec4<i32>(0x7fffffffi)) > vec4<i32>(0x7f800000i); }
fn load_x1(n: u32, c: u32, y: u32, x: u32) -> f32 {
        let v0 = n;
        let v1 = c;
        let v2 = y;
        let v3 = x;
        let t0 = v3 / 4u;
        let t1 = v3 % 4u;
        let t2 = in0[(v0 * 108u + v1 * 36u + v2 * 3u + t0)][t1];
        return t2;
}
fn load_x(n: u32, c: u32, y: u32, x: u32) -> vec4<f32> {
        let v4 = n;
        let v5 = c;
        let v6 = y;
        let v7 = x / 4u;
        let t3 = in0[(v4 * 108u + v5 * 36u + v6 * 3u + v7)];
        return t3;
}
fn load_w(g: u32, c: u32, tap: u32, oc: u32) -> vec4<f32> {
        let v8 = g;
        let v9 = c;
        let v10 = tap;
        let v11 = oc / 4u;
        let t4 = in1[(v9 * 36u + v10 * 4u + v11)];
        return t4;
}
fn store1(n: u32, oc: u32, y: u32, x: u32, value: f32) {
        let v12 = n;
        let v13 = oc;
        let v14 = y;
        let v15 = x;
        let t5 = in2[v13];
        let t6 = v15 / 4u;
        let t7 = v15 % 4u;
        out[(v12 * 576u + v13 * 36u + v14 * 3u + t6)][t7] = select(max((value + t5), 0.0f), (value + t5), is_nan_1((value + t5)));
}
fn store(n: u32, oc: u32, y: u32, x: u32, value: vec4<f32>) {
        let v16 = n;
        let v17 = oc;
        let v18 = y;
        let v19 = x / 4u;
        let t8 = in2[v17];
        out[(v16 * 576u + v17 * 36u + v18 * 3u + v19)] = select(max((value + vec4<f32>(t8)), vec4<f32>(0.0f)), (value + vec4<f32>(t8)), is_nan_4((value + vec4<f32>(t8))));
}

@compute @workgroup_size(8, 1, 1)
fn conv_add_max_f32_c0f1e752(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) num_wg: vec3<u32>,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let block = wid.x + wid.y * num_wg.x;
    if block >= 5u {
        return;
    }
    let oc = block % 1u * 16u;
    let group = block / 1u % 1u;
    let place = block / 1u * 8u + lane;
    let tile = min(place, 35u);
    let ox = tile % 3u * 4u;
    let oy = tile / 3u % 6u * 2u;
    let n = tile / 18u;
    var c0_0 = vec4<f32>();
    var c0_1 = vec4<f32>();
    var c0_2 = vec4<f32>();
    var c0_3 = vec4<f32>();
    var c0_4 = vec4<f32>();
    var c0_5 = vec4<f32>();
    var c0_6 = vec4<f32>();
    var c0_7 = vec4<f32>();
    var c0_8 = vec4<f32>();
    var c0_9 = vec4<f32>();
    var c0_10 = vec4<f32>();
    var c0_11 = vec4<f32>();
    var c0_12 = vec4<f32>();
    var c0_13 = vec4<f32>();
    var c0_14 = vec4<f32>();
    var c0_15 = vec4<f32>();
    var c1_0 = vec4<f32>();
    var c1_1 = vec4<f32>();
    var c1_2 = vec4<f32>();
    var c1_3 = vec4<f32>();
    var c1_4 = vec4<f32>();
    var c1_5 = vec4<f32>();
    var c1_6 = vec4<f32>();
    var c1_7 = vec4<f32>();
    var c1_8 = vec4<f32>();
    var c1_9 = vec4<f32>();
    var c1_10 = vec4<f32>();
    var c1_11 = vec4<f32>();
    var c1_12 = vec4<f32>();
    var c1_13 = vec4<f32>();
    var c1_14 = vec4<f32>();
    var c1_15 = vec4<f32>();
    let ry0 = oy * 1u + 0u - 1u;
    let y0 = min(ry0, 11u);
    let ry1 = oy * 1u + 1u - 1u;
    let y1 = min(ry1, 11u);
    let ry2 = oy * 1u + 2u - 1u;
    let y2 = min(ry2, 11u);
    let ry3 = oy * 1u + 3u - 1u;
    let y3 = min(ry3, 11u);
    let rx0 = ox * 1u + 0u - 1u;
    let x0 = min(rx0, 11u);
    let rx1 = ox * 1u + 1u - 1u;
    let x1 = min(rx1, 11u);
    let rx2 = ox * 1u + 2u - 1u;
    let x2 = min(rx2, 11u);
    let rx3 = ox * 1u + 3u - 1u;
    let x3 = min(rx3, 11u);
    let rx4 = ox * 1u + 4u - 1u;
    let x4 = min(rx4, 11u);
    let rx5 = ox * 1u + 5u - 1u;
    let x5 = min(rx5, 11u);
    for (var ic = 0u; ic < 3u; ic += 1u) {
        let e0 = lane + 0u;
        let l0 = load_w(group, ic + e0 / 36u, e0 / 4u % 9u, oc + e0 % 4u * 4u);
        let e1 = lane + 8u;
        let l1 = load_w(group, ic + e1 / 36u, e1 / 4u % 9u, oc + e1 % 4u * 4u);
        let e2 = lane + 16u;
        let l2 = load_w(group, ic + e2 / 36u, e2 / 4u % 9u, oc + e2 % 4u * 4u);
        let e3 = lane + 24u;
        let l3 = load_w(group, ic + e3 / 36u, e3 / 4u % 9u, oc + e3 % 4u * 4u);
        let e4 = min(lane + 32u, 35u);
        let l4 = load_w(group, ic + e4 / 36u, e4 / 4u % 9u, oc + e4 % 4u * 4u);
        let w0 = subgroupBroadcast(l0, 0u);
        let w1 = subgroupBroadcast(l0, 1u);
        let w2 = subgroupBroadcast(l0, 2u);
        let w3 = subgroupBroadcast(l0, 3u);
        let w4 = subgroupBroadcast(l0, 4u);
        let w5 = subgroupBroadcast(l0, 5u);
        let w6 = subgroupBroadcast(l0, 6u);
        let w7 = subgroupBroadcast(l0, 7u);
        let w8 = subgroupBroadcast(l1, 0u);
        let w9 = subgroupBroadcast(l1, 1u);
        let w10 = subgroupBroadcast(l1, 2u);
        let w11 = subgroupBroadcast(l1, 3u);
        let w12 = subgroupBroadcast(l1, 4u);
        let w13 = subgroupBroadcast(l1, 5u);
        let w14 = subgroupBroadcast(l1, 6u);
        let w15 = subgroupBroadcast(l1, 7u);
        let w16 = subgroupBroadcast(l2, 0u);
        let w17 = subgroupBroadcast(l2, 1u);
        let w18 = subgroupBroadcast(l2, 2u);
        let w19 = subgroupBroadcast(l2, 3u);
        let w20 = subgroupBroadcast(l2, 4u);
        let w21 = subgroupBroadcast(l2, 5u);
        let w22 = subgroupBroadcast(l2, 6u);
        let w23 = subgroupBroadcast(l2, 7u);
        let w24 = subgroupBroadcast(l3, 0u);
        let w25 = subgroupBroadcast(l3, 1u);
        let w26 = subgroupBroadcast(l3, 2u);
        let w27 = subgroupBroadcast(l3, 3u);
        let w28 = subgroupBroadcast(l3, 4u);
        let w29 = subgroupBroadcast(l3, 5u);
        let w30 = subgroupBroadcast(l3, 6u);
        let w31 = subgroupBroadcast(l3, 7u);
        let w32 = subgroupBroadcast(l4, 0u);
        let w33 = subgroupBroadcast(l4, 1u);
        let w34 = subgroupBroadcast(l4, 2u);
        let w35 = subgroupBroadcast(l4, 3u);
        {
            let c = group * 3u + ic + 0u;
            let v0_0 = select(0.0, load_x1(n, c, y0, x0), ry0 < 12u && rx0 < 12u);
            let v0_1 = select(0.0, load_x1(n, c, y0, x1), ry0 < 12u && rx1 < 12u);
            let v0_2 = select(0.0, load_x1(n, c, y0, x2), ry0 < 12u && rx2 < 12u);
            let v0_3 = select(0.0, load_x1(n, c, y0, x3), ry0 < 12u && rx3 < 12u);
            let v0_4 = select(0.0, load_x1(n, c, y0, x4), ry0 < 12u && rx4 < 12u);
            let v0_5 = select(0.0, load_x1(n, c, y0, x5), ry0 < 12u && rx5 < 12u);
            let v1_0 = select(0.0, load_x1(n, c, y1, x0), ry1 < 12u && rx0 < 12u);
            let v1_1 = select(0.0, load_x1(n, c, y1, x1), ry1 < 12u && rx1 < 12u);
            let v1_2 = select(0.0, load_x1(n, c, y1, x2), ry1 < 12u && rx2 < 12u);
            let v1_3 = select(0.0, load_x1(n, c, y1, x3), ry1 < 12u && rx3 < 12u);
            let v1_4 = select(0.0, load_x1(n, c, y1, x4), ry1 < 12u && rx4 < 12u);
            let v1_5 = select(0.0, load_x1(n, c, y1, x5), ry1 < 12u && rx5 < 12u);
            let v2_0 = select(0.0, load_x1(n, c, y2, x0), ry2 < 12u && rx0 < 12u);
            let v2_1 = select(0.0, load_x1(n, c, y2, x1), ry2 < 12u && rx1 < 12u);
            let v2_2 = select(0.0, load_x1(n, c, y2, x2), ry2 < 12u && rx2 < 12u);
            let v2_3 = select(0.0, load_x1(n, c, y2, x3), ry2 < 12u && rx3 < 12u);
            let v2_4 = select(0.0, load_x1(n, c, y2, x4), ry2 < 12u && rx4 < 12u);
            let v2_5 = select(0.0, load_x1(n, c, y2, x5), ry2 < 12u && rx5 < 12u);
            let v3_0 = select(0.0, load_x1(n, c, y3, x0), ry3 < 12u && rx0 < 12u);
            let v3_1 = select(0.0, load_x1(n, c, y3, x1), ry3 < 12u && rx1 < 12u);
            let v3_2 = select(0.0, load_x1(n, c, y3, x2), ry3 < 12u && rx2 < 12u);
            let v3_3 = select(0.0, load_x1(n, c, y3, x3), ry3 < 12u && rx3 < 12u);
            let v3_4 = select(0.0, load_x1(n, c, y3, x4), ry3 < 12u && rx4 < 12u);
            let v3_5 = select(0.0, load_x1(n, c, y3, x5), ry3 < 12u && rx5 < 12u);
            let p0_0_0 = vec4<f32>(v0_0, v0_1, v0_2, v0_3);
            let p0_0_1 = vec4<f32>(v0_1, v0_2, v0_3, v0_4);
            let p0_0_2 = vec4<f32>(v0_2, v0_3, v0_4, v0_5);
            let p0_1_0 = vec4<f32>(v1_0, v1_1, v1_2, v1_3);
            let p0_1_1 = vec4<f32>(v1_1, v1_2, v1_3, v1_4);
            let p0_1_2 = vec4<f32>(v1_2, v1_3, v1_4, v1_5);
            let p0_2_0 = vec4<f32>(v2_0, v2_1, v2_2, v2_3);
            let p0_2_1 = vec4<f32>(v2_1, v2_2, v2_3, v2_4);
            let p0_2_2 = vec4<f32>(v2_2, v2_3, v2_4, v2_5);
            c0_0 = fma(vec4<f32>(w32.x), p0_2_2, fma(vec4<f32>(w28.x), p0_2_1, fma(vec4<f32>(w24.x), p0_2_0, fma(vec4<f32>(w20.x), p0_1_2, fma(vec4<f32>(w16.x), p0_1_1, fma(vec4<f32>(w12.x), p0_1_0, fma(vec4<f32>(w8.x), p0_0_2, fma(vec4<f32>(w4.x), p0_0_1, fma(vec4<f32>(w0.x), p0_0_0, c0_0)))))))));
            c0_1 = fma(vec4<f32>(w32.y), p0_2_2, fma(vec4<f32>(w28.y), p0_2_1, fma(vec4<f32>(w24.y), p0_2_0, fma(vec4<f32>(w20.y), p0_1_2, fma(vec4<f32>(w16.y), p0_1_1, fma(vec4<f32>(w12.y), p0_1_0, fma(vec4<f32>(w8.y), p0_0_2, fma(vec4<f32>(w4.y), p0_0_1, fma(vec4<f32>(w0.y), p0_0_0, c0_1)))))))));
            c0_2 = fma(vec4<f32>(w32.z), p0_2_2, fma(vec4<f32>(w28.z), p0_2_1, fma(vec4<f32>(w24.z), p0_2_0, fma(vec4<f32>(w20.z), p0_1_2, fma(vec4<f32>(w16.z), p0_1_1, fma(vec4<f32>(w12.z), p0_1_0, fma(vec4<f32>(w8.z), p0_0_2, fma(vec4<f32>(w4.z), p0_0_1, fma(vec4<f32>(w0.z), p0_0_0, c0_2)))))))));
            c0_3 = fma(vec4<f32>(w32.w), p0_2_2, fma(vec4<f32>(w28.w), p0_2_1, fma(vec4<f32>(w24.w), p0_2_0, fma(vec4<f32>(w20.w), p0_1_2, fma(vec4<f32>(w16.w), p0_1_1, fma(vec4<f32>(w12.w), p0_1_0, fma(vec4<f32>(w8.w), p0_0_2, fma(vec4<f32>(w4.w), p0_0_1, fma(vec4<f32>(w0.w), p0_0_0, c0_3)))))))));
            c0_4 = fma(vec4<f32>(w33.x), p0_2_2, fma(vec4<f32>(w29.x), p0_2_1, fma(vec4<f32>(w25.x), p0_2_0, fma(vec4<f32>(w21.x), p0_1_2, fma(vec4<f32>(w17.x), p0_1_1, fma(vec4<f32>(w13.x), p0_1_0, fma(vec4<f32>(w9.x), p0_0_2, fma(vec4<f32>(w5.x), p0_0_1, fma(vec4<f32>(w1.x), p0_0_0, c0_4)))))))));
            c0_5 = fma(vec4<f32>(w33.y), p0_2_2, fma(vec4<f32>(w29.y), p0_2_1, fma(vec4<f32>(w25.y), p0_2_0, fma(vec4<f32>(w21.y), p0_1_2, fma(vec4<f32>(w17.y), p0_1_1, fma(vec4<f32>(w13.y), p0_1_0, fma(vec4<f32>(w9.y), p0_0_2, fma(vec4<f32>(w5.y), p0_0_1, fma(vec4<f32>(w1.y), p0_0_0, c0_5)))))))));
            c0_6 = fma(vec4<f32>(w33.z), p0_2_2, fma(vec4<f32>(w29.z), p0_2_1, fma(vec4<f32>(w25.z), p0_2_0, fma(vec4<f32>(w21.z), p0_1_2, fma(vec4<f32>(w17.z), p0_1_1, fma(vec4<f32>(w13.z), p0_1_0, fma(vec4<f32>(w9.z), p0_0_2, fma(vec4<f32>(w5.z), p0_0_1, fma(vec4<f32>(w1.z), p0_0_0, c0_6)))))))));
            c0_7 = fma(vec4<f32>(w33.w), p0_2_2, fma(vec4<f32>(w29.w), p0_2_1, fma(vec4<f32>(w25.w), p0_2_0, fma(vec4<f32>(w21.w), p0_1_2, fma(vec4<f32>(w17.w), p0_1_1, fma(vec4<f32>(w13.w), p0_1_0, fma(vec4<f32>(w9.w), p0_0_2, fma(vec4<f32>(w5.w), p0_0_1, fma(vec4<f32>(w1.w), p0_0_0, c0_7)))))))));
            c0_8 = fma(vec4<f32>(w34.x), p0_2_2, fma(vec4<f32>(w30.x), p0_2_1, fma(vec4<f32>(w26.x), p0_2_0, fma(vec4<f32>(w22.x), p0_1_2, fma(vec4<f32>(w18.x), p0_1_1, fma(vec4<f32>(w14.x), p0_1_0, fma(vec4<f32>(w10.x), p0_0_2, fma(vec4<f32>(w6.x), p0_0_1, fma(vec4<f32>(w2.x), p0_0_0, c0_8)))))))));
            c0_9 = fma(vec4<f32>(w34.y), p0_2_2, fma(vec4<f32>(w30.y), p0_2_1, fma(vec4<f32>(w26.y), p0_2_0, fma(vec4<f32>(w22.y), p0_1_2, fma(vec4<f32>(w18.y), p0_1_1, fma(vec4<f32>(w14.y), p0_1_0, fma(vec4<f32>(w10.y), p0_0_2, fma(vec4<f32>(w6.y), p0_0_1, fma(vec4<f32>(w2.y), p0_0_0, c0_9)))))))));
            c0_10 = fma(vec4<f32>(w34.z), p0_2_2, fma(vec4<f32>(w30.z), p0_2_1, fma(vec4<f32>(w26.z), p0_2_0, fma(vec4<f32>(w22.z), p0_1_2, fma(vec4<f32>(w18.z), p0_1_1, fma(vec4<f32>(w14.z), p0_1_0, fma(vec4<f32>(w10.z), p0_0_2, fma(vec4<f32>(w6.z), p0_0_1, fma(vec4<f32>(w2.z), p0_0_0, c0_10)))))))));
            c0_11 = fma(vec4<f32>(w34.w), p0_2_2, fma(vec4<f32>(w30.w), p0_2_1, fma(vec4<f32>(w26.w), p0_2_0, fma(vec4<f32>(w22.w), p0_1_2, fma(vec4<f32>(w18.w), p0_1_1, fma(vec4<f32>(w14.w), p0_1_0, fma(vec4<f32>(w10.w), p0_0_2, fma(vec4<f32>(w6.w), p0_0_1, fma(vec4<f32>(w2.w), p0_0_0, c0_11)))))))));
            c0_12 = fma(vec4<f32>(w35.x), p0_2_2, fma(vec4<f32>(w31.x), p0_2_1, fma(vec4<f32>(w27.x), p0_2_0, fma(vec4<f32>(w23.x), p0_1_2, fma(vec4<f32>(w19.x), p0_1_1, fma(vec4<f32>(w15.x), p0_1_0, fma(vec4<f32>(w11.x), p0_0_2, fma(vec4<f32>(w7.x), p0_0_1, fma(vec4<f32>(w3.x), p0_0_0, c0_12)))))))));
            c0_13 = fma(vec4<f32>(w35.y), p0_2_2, fma(vec4<f32>(w31.y), p0_2_1, fma(vec4<f32>(w27.y), p0_2_0, fma(vec4<f32>(w23.y), p0_1_2, fma(vec4<f32>(w19.y), p0_1_1, fma(vec4<f32>(w15.y), p0_1_0, fma(vec4<f32>(w11.y), p0_0_2, fma(vec4<f32>(w7.y), p0_0_1, fma(vec4<f32>(w3.y), p0_0_0, c0_13)))))))));
            c0_14 = fma(vec4<f32>(w35.z), p0_2_2, fma(vec4<f32>(w31.z), p0_2_1, fma(vec4<f32>(w27.z), p0_2_0, fma(vec4<f32>(w23.z), p0_1_2, fma(vec4<f32>(w19.z), p0_1_1, fma(vec4<f32>(w15.z), p0_1_0, fma(vec4<f32>(w11.z), p0_0_2, fma(vec4<f32>(w7.z), p0_0_1, fma(vec4<f32>(w3.z), p0_0_0, c0_14)))))))));
            c0_15 = fma(vec4<f32>(w35.w), p0_2_2, fma(vec4<f32>(w31.w), p0_2_1, fma(vec4<f32>(w27.w), p0_2_0, fma(vec4<f32>(w23.w), p0_1_2, fma(vec4<f32>(w19.w), p0_1_1, fma(vec4<f32>(w15.w), p0_1_0, fma(vec4<f32>(w11.w), p0_0_2, fma(vec4<f32>(w7.w), p0_0_1, fma(vec4<f32>(w3.w), p0_0_0, c0_15)))))))));
            let p1_0_0 = vec4<f32>(v1_0, v1_1, v1_2, v1_3);
            let p1_0_1 = vec4<f32>(v1_1, v1_2, v1_3, v1_4);
            let p1_0_2 = vec4<f32>(v1_2, v1_3, v1_4, v1_5);
            let p1_1_0 = vec4<f32>(v2_0, v2_1, v2_2, v2_3);
            let p1_1_1 = vec4<f32>(v2_1, v2_2, v2_3, v2_4);
            let p1_1_2 = vec4<f32>(v2_2, v2_3, v2_4, v2_5);
            let p1_2_0 = vec4<f32>(v3_0, v3_1, v3_2, v3_3);
            let p1_2_1 = vec4<f32>(v3_1, v3_2, v3_3, v3_4);
            let p1_2_2 = vec4<f32>(v3_2, v3_3, v3_4, v3_5);
            c1_0 = fma(vec4<f32>(w32.x), p1_2_2, fma(vec4<f32>(w28.x), p1_2_1, fma(vec4<f32>(w24.x), p1_2_0, fma(vec4<f32>(w20.x), p1_1_2, fma(vec4<f32>(w16.x), p1_1_1, fma(vec4<f32>(w12.x), p1_1_0, fma(vec4<f32>(w8.x), p1_0_2, fma(vec4<f32>(w4.x), p1_0_1, fma(vec4<f32>(w0.x), p1_0_0, c1_0)))))))));
            c1_1 = fma(vec4<f32>(w32.y), p1_2_2, fma(vec4<f32>(w28.y), p1_2_1, fma(vec4<f32>(w24.y), p1_2_0, fma(vec4<f32>(w20.y), p1_1_2, fma(vec4<f32>(w16.y), p1_1_1, fma(vec4<f32>(w12.y), p1_1_0, fma(vec4<f32>(w8.y), p1_0_2, fma(vec4<f32>(w4.y), p1_0_1, fma(vec4<f32>(w0.y), p1_0_0, c1_1)))))))));
            c1_2 = fma(vec4<f32>(w32.z), p1_2_2, fma(vec4<f32>(w28.z), p1_2_1, fma(vec4<f32>(w24.z), p1_2_0, fma(vec4<f32>(w20.z), p1_1_2, fma(vec4<f32>(w16.z), p1_1_1, fma(vec4<f32>(w12.z), p1_1_0, fma(vec4<f32>(w8.z), p1_0_2, fma(vec4<f32>(w4.z), p1_0_1, fma(vec4<f32>(w0.z), p1_0_0, c1_2)))))))));
            c1_3 = fma(vec4<f32>(w32.w), p1_2_2, fma(vec4<f32>(w28.w), p1_2_1, fma(vec4<f32>(w24.w), p1_2_0, fma(vec4<f32>(w20.w), p1_1_2, fma(vec4<f32>(w16.w), p1_1_1, fma(vec4<f32>(w12.w), p1_1_0, fma(vec4<f32>(w8.w), p1_0_2, fma(vec4<f32>(w4.w), p1_0_1, fma(vec4<f32>(w0.w), p1_0_0, c1_3)))))))));
            c1_4 = fma(vec4<f32>(w33.x), p1_2_2, fma(vec4<f32>(w29.x), p1_2_1, fma(vec4<f32>(w25.x), p1_2_0, fma(vec4<f32>(w21.x), p1_1_2, fma(vec4<f32>(w17.x), p1_1_1, fma(vec4<f32>(w13.x), p1_1_0, fma(vec4<f32>(w9.x), p1_0_2, fma(vec4<f32>(w5.x), p1_0_1, fma(vec4<f32>(w1.x), p1_0_0, c1_4)))))))));
            c1_5 = fma(vec4<f32>(w33.y), p1_2_2, fma(vec4<f32>(w29.y), p1_2_1, fma(vec4<f32>(w25.y), p1_2_0, fma(vec4<f32>(w21.y), p1_1_2, fma(vec4<f32>(w17.y), p1_1_1, fma(vec4<f32>(w13.y), p1_1_0, fma(vec4<f32>(w9.y), p1_0_2, fma(vec4<f32>(w5.y), p1_0_1, fma(vec4<f32>(w1.y), p1_0_0, c1_5)))))))));
            c1_6 = fma(vec4<f32>(w33.z), p1_2_2, fma(vec4<f32>(w29.z), p1_2_1, fma(vec4<f32>(w25.z), p1_2_0, fma(vec4<f32>(w21.z), p1_1_2, fma(vec4<f32>(w17.z), p1_1_1, fma(vec4<f32>(w13.z), p1_1_0, fma(vec4<f32>(w9.z), p1_0_2, fma(vec4<f32>(w5.z), p1_0_1, fma(vec4<f32>(w1.z), p1_0_0, c1_6)))))))));
            c1_7 = fma(vec4<f32>(w33.w), p1_2_2, fma(vec4<f32>(w29.w), p1_2_1, fma(vec4<f32>(w25.w), p1_2_0, fma(vec4<f32>(w21.w), p1_1_2, fma(vec4<f32>(w17.w), p1_1_1, fma(vec4<f32>(w13.w), p1_1_0, fma(vec4<f32>(w9.w), p1_0_2, fma(vec4<f32>(w5.w), p1_0_1, fma(vec4<f32>(w1.w), p1_0_0, c1_7)))))))));
            c1_8 = fma(vec4<f32>(w34.x), p1_2_2, fma(vec4<f32>(w30.x), p1_2_1, fma(vec4<f32>(w26.x), p1_2_0, fma(vec4<f32>(w22.x), p1_1_2, fma(vec4<f32>(w18.x), p1_1_1, fma(vec4<f32>(w14.x), p1_1_0, fma(vec4<f32>(w10.x), p1_0_2, fma(vec4<f32>(w6.x), p1_0_1, fma(vec4<f32>(w2.x), p1_0_0, c1_8)))))))));
            c1_9 = fma(vec4<f32>(w34.y), p1_2_2, fma(vec4<f32>(w30.y), p1_2_1, fma(vec4<f32>(w26.y), p1_2_0, fma(vec4<f32>(w22.y), p1_1_2, fma(vec4<f32>(w18.y), p1_1_1, fma(vec4<f32>(w14.y), p1_1_0, fma(vec4<f32>(w10.y), p1_0_2, fma(vec4<f32>(w6.y), p1_0_1, fma(vec4<f32>(w2.y), p1_0_0, c1_9)))))))));
            c1_10 = fma(vec4<f32>(w34.z), p1_2_2, fma(vec4<f32>(w30.z), p1_2_1, fma(vec4<f32>(w26.z), p1_2_0, fma(vec4<f32>(w22.z), p1_1_2, fma(vec4<f32>(w18.z), p1_1_1, fma(vec4<f32>(w14.z), p1_1_0, fma(vec4<f32>(w10.z), p1_0_2, fma(vec4<f32>(w6.z), p1_0_1, fma(vec4<f32>(w2.z), p1_0_0, c1_10)))))))));
            c1_11 = fma(vec4<f32>(w34.w), p1_2_2, fma(vec4<f32>(w30.w), p1_2_1, fma(vec4<f32>(w26.w), p1_2_0, fma(vec4<f32>(w22.w), p1_1_2, fma(vec4<f32>(w18.w), p1_1_1, fma(vec4<f32>(w14.w), p1_1_0, fma(vec4<f32>(w10.w), p1_0_2, fma(vec4<f32>(w6.w), p1_0_1, fma(vec4<f32>(w2.w), p1_0_0, c1_11)))))))));
            c1_12 = fma(vec4<f32>(w35.x), p1_2_2, fma(vec4<f32>(w31.x), p1_2_1, fma(vec4<f32>(w27.x), p1_2_0, fma(vec4<f32>(w23.x), p1_1_2, fma(vec4<f32>(w19.x), p1_1_1, fma(vec4<f32>(w15.x), p1_1_0, fma(vec4<f32>(w11.x), p1_0_2, fma(vec4<f32>(w7.x), p1_0_1, fma(vec4<f32>(w3.x), p1_0_0, c1_12)))))))));
            c1_13 = fma(vec4<f32>(w35.y), p1_2_2, fma(vec4<f32>(w31.y), p1_2_1, fma(vec4<f32>(w27.y), p1_2_0, fma(vec4<f32>(w23.y), p1_1_2, fma(vec4<f32>(w19.y), p1_1_1, fma(vec4<f32>(w15.y), p1_1_0, fma(vec4<f32>(w11.y), p1_0_2, fma(vec4<f32>(w7.y), p1_0_1, fma(vec4<f32>(w3.y), p1_0_0, c1_13)))))))));
            c1_14 = fma(vec4<f32>(w35.z), p1_2_2, fma(vec4<f32>(w31.z), p1_2_1, fma(vec4<f32>(w27.z), p1_2_0, fma(vec4<f32>(w23.z), p1_1_2, fma(vec4<f32>(w19.z), p1_1_1, fma(vec4<f32>(w15.z), p1_1_0, fma(vec4<f32>(w11.z), p1_0_2, fma(vec4<f32>(w7.z), p1_0_1, fma(vec4<f32>(w3.z), p1_0_0, c1_14)))))))));
            c1_15 = fma(vec4<f32>(w35.w), p1_2_2, fma(vec4<f32>(w31.w), p1_2_1, fma(vec4<f32>(w27.w), p1_2_0, fma(vec4<f32>(w23.w), p1_1_2, fma(vec4<f32>(w19.w), p1_1_1, fma(vec4<f32>(w15.w), p1_1_0, fma(vec4<f32>(w11.w), p1_0_2, fma(vec4<f32>(w7.w), p1_0_1, fma(vec4<f32>(w3.w), p1_0_0, c1_15)))))))));
        }
    }
    if place < 36u {
        {
            let k = group * 16u + oc + 0u;
            store(n, k, oy + 0u, ox, c0_0);
            store(n, k, oy + 1u, ox, c1_0);
        }
        {
            let k = group * 16u + oc + 1u;
            store(n, k, oy + 0u, ox, c0_1);
            store(n, k, oy + 1u, ox, c1_1);
        }
        {
            let k = group * 16u + oc + 2u;
            store(n, k, oy + 0u, ox, c0_2);
            store(n, k, oy + 1u, ox, c1_2);
        }
        {
            let k = group * 16u + oc + 3u;
            store(n, k, oy + 0u, ox, c0_3);
            store(n, k, oy + 1u, ox, c1_3);
        }
        {
            let k = group * 16u + oc + 4u;
            store(n, k, oy + 0u, ox, c0_4);
            store(n, k, oy + 1u, ox, c1_4);
        }
        {
            let k = group * 16u + oc + 5u;
            store(n, k, oy + 0u, ox, c0_5);
            store(n, k, oy + 1u, ox, c1_5);
        }
        {
            let k = group * 16u + oc + 6u;
            store(n, k, oy + 0u, ox, c0_6);
            store(n, k, oy + 1u, ox, c1_6);
        }
        {
            let k = group * 16u + oc + 7u;
            store(n, k, oy + 0u, ox, c0_7);
            store(n, k, oy + 1u, ox, c1_7);
        }
        {
            let k = group * 16u + oc + 8u;
            store(n, k, oy + 0u, ox, c0_8);
            store(n, k, oy + 1u, ox, c1_8);
        }
        {
            let k = group * 16u + oc + 9u;
            store(n, k, oy + 0u, ox, c0_9);
            store(n, k, oy + 1u, ox, c1_9);
        }
        {
            let k = group * 16u + oc + 10u;
            store(n, k, oy + 0u, ox, c0_10);
            store(n, k, oy + 1u, ox, c1_10);
        }
        {
            let k = group * 16u + oc + 11u;
            store(n, k, oy + 0u, ox, c0_11);
            store(n, k, oy + 1u, ox, c1_11);
        }
        {
            let k = group * 16u + oc + 12u;
            store(n, k, oy + 0u, ox, c0_12);
            store(n, k, oy + 1u, ox, c1_12);
        }
        {
            let k = group * 16u + oc + 13u;
            store(n, k, oy + 0u, ox, c0_13);
            store(n, k, oy + 1u, ox, c1_13);
        }
        {
            let k = group * 16u + oc + 14u;
            store(n, k, oy + 0u, ox, c0_14);
            store(n, k, oy + 1u, ox, c1_14);
        }
        {
            let k = group * 16u + oc + 15u;
            store(n, k, oy + 0u, ox, c0_15);
            store(n, k, oy + 1u, ox, c1_15);
        }
    }
}
