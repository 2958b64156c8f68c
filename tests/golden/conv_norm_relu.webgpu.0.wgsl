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

@compute @workgroup_size(64, 1, 1)
fn conv_add_max_f32_5c35f520(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) num_wg: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let block = wid.x + wid.y * num_wg.x;
    if block >= 8u {
        return;
    }
    let oc = block % 4u * 4u;
    let group = block / 4u % 1u;
    let place = block / 4u * 64u + local.x;
    let tile = min(place, 71u);
    let ox = tile % 3u * 4u;
    let oy = tile / 3u % 12u * 1u;
    let n = tile / 36u;
    var c0_0 = vec4<f32>();
    var c0_1 = vec4<f32>();
    var c0_2 = vec4<f32>();
    var c0_3 = vec4<f32>();
    let ry0 = oy * 1u + 0u - 1u;
    let y0 = min(ry0, 11u);
    let ry1 = oy * 1u + 1u - 1u;
    let y1 = min(ry1, 11u);
    let ry2 = oy * 1u + 2u - 1u;
    let y2 = min(ry2, 11u);
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
        let w0 = load_w(group, ic + 0u, 0u, oc + 0u * 4u);
        let w1 = load_w(group, ic + 0u, 1u, oc + 0u * 4u);
        let w2 = load_w(group, ic + 0u, 2u, oc + 0u * 4u);
        let w3 = load_w(group, ic + 0u, 3u, oc + 0u * 4u);
        let w4 = load_w(group, ic + 0u, 4u, oc + 0u * 4u);
        let w5 = load_w(group, ic + 0u, 5u, oc + 0u * 4u);
        let w6 = load_w(group, ic + 0u, 6u, oc + 0u * 4u);
        let w7 = load_w(group, ic + 0u, 7u, oc + 0u * 4u);
        let w8 = load_w(group, ic + 0u, 8u, oc + 0u * 4u);
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
            let p0_0_0 = vec4<f32>(v0_0, v0_1, v0_2, v0_3);
            let p0_0_1 = vec4<f32>(v0_1, v0_2, v0_3, v0_4);
            let p0_0_2 = vec4<f32>(v0_2, v0_3, v0_4, v0_5);
            let p0_1_0 = vec4<f32>(v1_0, v1_1, v1_2, v1_3);
            let p0_1_1 = vec4<f32>(v1_1, v1_2, v1_3, v1_4);
            let p0_1_2 = vec4<f32>(v1_2, v1_3, v1_4, v1_5);
            let p0_2_0 = vec4<f32>(v2_0, v2_1, v2_2, v2_3);
            let p0_2_1 = vec4<f32>(v2_1, v2_2, v2_3, v2_4);
            let p0_2_2 = vec4<f32>(v2_2, v2_3, v2_4, v2_5);
            c0_0 = fma(vec4<f32>(w8.x), p0_2_2, fma(vec4<f32>(w7.x), p0_2_1, fma(vec4<f32>(w6.x), p0_2_0, fma(vec4<f32>(w5.x), p0_1_2, fma(vec4<f32>(w4.x), p0_1_1, fma(vec4<f32>(w3.x), p0_1_0, fma(vec4<f32>(w2.x), p0_0_2, fma(vec4<f32>(w1.x), p0_0_1, fma(vec4<f32>(w0.x), p0_0_0, c0_0)))))))));
            c0_1 = fma(vec4<f32>(w8.y), p0_2_2, fma(vec4<f32>(w7.y), p0_2_1, fma(vec4<f32>(w6.y), p0_2_0, fma(vec4<f32>(w5.y), p0_1_2, fma(vec4<f32>(w4.y), p0_1_1, fma(vec4<f32>(w3.y), p0_1_0, fma(vec4<f32>(w2.y), p0_0_2, fma(vec4<f32>(w1.y), p0_0_1, fma(vec4<f32>(w0.y), p0_0_0, c0_1)))))))));
            c0_2 = fma(vec4<f32>(w8.z), p0_2_2, fma(vec4<f32>(w7.z), p0_2_1, fma(vec4<f32>(w6.z), p0_2_0, fma(vec4<f32>(w5.z), p0_1_2, fma(vec4<f32>(w4.z), p0_1_1, fma(vec4<f32>(w3.z), p0_1_0, fma(vec4<f32>(w2.z), p0_0_2, fma(vec4<f32>(w1.z), p0_0_1, fma(vec4<f32>(w0.z), p0_0_0, c0_2)))))))));
            c0_3 = fma(vec4<f32>(w8.w), p0_2_2, fma(vec4<f32>(w7.w), p0_2_1, fma(vec4<f32>(w6.w), p0_2_0, fma(vec4<f32>(w5.w), p0_1_2, fma(vec4<f32>(w4.w), p0_1_1, fma(vec4<f32>(w3.w), p0_1_0, fma(vec4<f32>(w2.w), p0_0_2, fma(vec4<f32>(w1.w), p0_0_1, fma(vec4<f32>(w0.w), p0_0_0, c0_3)))))))));
        }
    }
    if place < 72u {
        {
            let k = group * 16u + oc + 0u;
            store(n, k, oy + 0u, ox, c0_0);
        }
        {
            let k = group * 16u + oc + 1u;
            store(n, k, oy + 0u, ox, c0_1);
        }
        {
            let k = group * 16u + oc + 2u;
            store(n, k, oy + 0u, ox, c0_2);
        }
        {
            let k = group * 16u + oc + 3u;
            store(n, k, oy + 0u, ox, c0_3);
        }
    }
}
