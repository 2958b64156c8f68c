// Attention
@group(0) @binding(0) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
fn load_q1(b: u32, i: u32, k: u32) -> f32 {
        let v0 = b;
        let v1 = i;
        let v2 = k;
        let t0 = v2 / 4u;
        let t1 = v2 % 4u;
        let t2 = in0[(v0 * 32u + v1 * 2u + t0)][t1];
        return t2;
}
fn load_q(b: u32, i: u32, k: u32) -> vec4<f32> {
        let v3 = b;
        let v4 = i;
        let v5 = k / 4u;
        let t3 = in0[(v3 * 32u + v4 * 2u + v5)];
        return t3;
}
fn load_k1(b: u32, j: u32, k: u32) -> f32 {
        let v6 = b;
        let v7 = j;
        let v8 = k;
        let t4 = v8 / 4u;
        let t5 = v8 % 4u;
        let t6 = in0[(v6 * 32u + v7 * 2u + t4)][t5];
        return t6;
}
fn load_k(b: u32, j: u32, k: u32) -> vec4<f32> {
        let v9 = b;
        let v10 = j;
        let v11 = k / 4u;
        let t7 = in0[(v9 * 32u + v10 * 2u + v11)];
        return t7;
}
fn load_v1(b: u32, j: u32, c: u32) -> f32 {
        let v12 = b;
        let v13 = j;
        let v14 = c;
        let t8 = v14 / 4u;
        let t9 = v14 % 4u;
        let t10 = in0[(v12 * 32u + v13 * 2u + t8)][t9];
        return t10;
}
fn load_v(b: u32, j: u32, c: u32) -> vec4<f32> {
        let v15 = b;
        let v16 = j;
        let v17 = c / 4u;
        let t11 = in0[(v15 * 32u + v16 * 2u + v17)];
        return t11;
}
fn score1(b: u32, i: u32, j: u32, value: f32) -> f32 {
        let v18 = b;
        let v19 = i;
        let v20 = j;
        return (value * 0.35355338f);
}
fn score(b: u32, i: u32, j: u32, value: vec4<f32>) -> vec4<f32> {
        let v21 = b;
        let v22 = i;
        let v23 = j / 4u;
        return (value * vec4<f32>(0.35355338f));
}
fn store1(b: u32, i: u32, c: u32, value: f32) {
        let v24 = b;
        let v25 = i;
        let v26 = c;
        let t12 = v26 / 4u;
        let t13 = v26 % 4u;
        out[(v24 * 32u + v25 * 2u + t12)][t13] = value;
}
fn store(b: u32, i: u32, c: u32, value: vec4<f32>) {
        let v27 = b;
        let v28 = i;
        let v29 = c / 4u;
        out[(v27 * 32u + v28 * 2u + v29)] = value;
}

var<workgroup> row_part: array<f32, 32>;
var<workgroup> weights: array<vec4<f32>, 32>;
@compute @workgroup_size(8, 4, 1)
fn attention_f32_e7ae73a4(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) num_wg: vec3<u32>,
    @builtin(local_invocation_id) place: vec3<u32>,
) {
    let tile = wid.x + wid.y * num_wg.x;
    if tile >= 8u {
        return;
    }
    let b = tile / 4u;
    let first_row = tile % 4u * 4u;
    let lane = place.x;
    let part = place.y * 1u;
    let row = first_row + part;
    var infinity_bits = 0x7f800000u;
    let hidden = vec4<f32>(-bitcast<f32>(infinity_bits));
    let row0 = row + 0u;
    let col0 = min(0u + lane * 4u, 4u);
    var top0 = -3.4028234e38;
    var sum0 = vec4<f32>();
    var o0_0 = vec4<f32>();
    let end = min(first_row + 4u, 16u);
    for (var j0 = 0u; j0 < end; j0 += 32u) {
        let key0 = j0 + 0u + lane * 4u;
        let key0_0 = min(key0 + 0u, 15u);
        let key0_1 = min(key0 + 1u, 15u);
        let key0_2 = min(key0 + 2u, 15u);
        let key0_3 = min(key0 + 3u, 15u);
        let keys0 = min(key0, 12u);
        var s0_0 = vec4<f32>();
        for (var k = 0u; k < 8u; k += 4u) {
            let k0 = k;
            let l0_0 = load_k(b, key0_0, k0);
            let l0_1 = load_k(b, key0_1, k0);
            let l0_2 = load_k(b, key0_2, k0);
            let l0_3 = load_k(b, key0_3, k0);
            let k0_0 = vec4<f32>(l0_0.x, l0_1.x, l0_2.x, l0_3.x);
            let k0_1 = vec4<f32>(l0_0.y, l0_1.y, l0_2.y, l0_3.y);
            let k0_2 = vec4<f32>(l0_0.z, l0_1.z, l0_2.z, l0_3.z);
            let k0_3 = vec4<f32>(l0_0.w, l0_1.w, l0_2.w, l0_3.w);
            let q0 = load_q(b, row0, k0);
            s0_0 = fma(vec4<f32>(q0.w), k0_3, fma(vec4<f32>(q0.z), k0_2, fma(vec4<f32>(q0.y), k0_1, fma(vec4<f32>(q0.x), k0_0, s0_0))));
        }
        s0_0 = score(b, row0, keys0, s0_0);
        if j0 + 32u > min(first_row + 1u, 16u) {
            let places0 = vec4<u32>(key0) + vec4<u32>(0u, 1u, 2u, 3u);
            s0_0 = select(hidden, s0_0, places0 < vec4<u32>(min(row + 1u, 16u)));
        }
        let four0 = s0_0;
        var new0 = max(max(max(four0.x, four0.y), max(four0.z, four0.w)), top0);
        row_part[(part + 0u) * 8u + lane] = new0;
        workgroupBarrier();
        new0 = max(max(max(row_part[(part + 0u) * 8u + 0u], row_part[(part + 0u) * 8u + 1u]), max(row_part[(part + 0u) * 8u + 2u], row_part[(part + 0u) * 8u + 3u])), max(max(row_part[(part + 0u) * 8u + 4u], row_part[(part + 0u) * 8u + 5u]), max(row_part[(part + 0u) * 8u + 6u], row_part[(part + 0u) * 8u + 7u])));
        let keep0 = exp(top0 - new0);
        top0 = new0;
        sum0 *= keep0;
        o0_0 *= keep0;
        s0_0 = exp(s0_0 - vec4<f32>(top0));
        sum0 += s0_0;
        weights[(part + 0u) * 8u + 0u + lane] = s0_0;
        workgroupBarrier();
        for (var from_lane = 0u; from_lane < 8u; from_lane++) {
            {
                let from0 = min(j0 + 0u + from_lane * 4u, 15u);
                let v0_0 = load_v(b, from0, col0);
                let from1 = min(j0 + 1u + from_lane * 4u, 15u);
                let v1_0 = load_v(b, from1, col0);
                let from2 = min(j0 + 2u + from_lane * 4u, 15u);
                let v2_0 = load_v(b, from2, col0);
                let from3 = min(j0 + 3u + from_lane * 4u, 15u);
                let v3_0 = load_v(b, from3, col0);
                let w0 = weights[(part + 0u) * 8u + 0u + from_lane];
                o0_0 = fma(vec4<f32>(w0.w), v3_0, fma(vec4<f32>(w0.z), v2_0, fma(vec4<f32>(w0.y), v1_0, fma(vec4<f32>(w0.x), v0_0, o0_0))));
            }
        }
    }
    var total0 = sum0.x + sum0.y + (sum0.z + sum0.w);
    row_part[(part + 0u) * 8u + lane] = total0;
    workgroupBarrier();
    total0 = row_part[(part + 0u) * 8u + 0u] + row_part[(part + 0u) * 8u + 1u] + row_part[(part + 0u) * 8u + 2u] + row_part[(part + 0u) * 8u + 3u] + row_part[(part + 0u) * 8u + 4u] + row_part[(part + 0u) * 8u + 5u] + row_part[(part + 0u) * 8u + 6u] + row_part[(part + 0u) * 8u + 7u];
    {
        let scale = 1.0 / select(total0, 1.0, total0 == 0.0);
        {
            let c = 0u + lane * 4u;
            if c < 8u { store(b, row + 0u, c, o0_0 * scale); }
        }
    }
}
