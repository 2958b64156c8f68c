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

@compute @workgroup_size(8, 1, 1)
fn attention_f32_a15851b4(
    @builtin(workgroup_id) wid: vec3<u32>,
    @builtin(num_workgroups) num_wg: vec3<u32>,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let tile = wid.x + wid.y * num_wg.x;
    if tile >= 4u {
        return;
    }
    let b = tile / 2u;
    let first_row = tile % 2u * 8u;
    let row = first_row;
    var infinity_bits = 0x7f800000u;
    let hidden = vec4<f32>(-bitcast<f32>(infinity_bits));
    let row0 = row + 0u;
    let row1 = row + 1u;
    let row2 = row + 2u;
    let row3 = row + 3u;
    let row4 = row + 4u;
    let row5 = row + 5u;
    let row6 = row + 6u;
    let row7 = row + 7u;
    let own_row0 = row + (lane + 0u) % 8u;
    let col0 = min(0u + lane * 4u, 4u);
    var top0 = -3.4028234e38;
    var sum0 = vec4<f32>();
    var o0_0 = vec4<f32>();
    var top1 = -3.4028234e38;
    var sum1 = vec4<f32>();
    var o1_0 = vec4<f32>();
    var top2 = -3.4028234e38;
    var sum2 = vec4<f32>();
    var o2_0 = vec4<f32>();
    var top3 = -3.4028234e38;
    var sum3 = vec4<f32>();
    var o3_0 = vec4<f32>();
    var top4 = -3.4028234e38;
    var sum4 = vec4<f32>();
    var o4_0 = vec4<f32>();
    var top5 = -3.4028234e38;
    var sum5 = vec4<f32>();
    var o5_0 = vec4<f32>();
    var top6 = -3.4028234e38;
    var sum6 = vec4<f32>();
    var o6_0 = vec4<f32>();
    var top7 = -3.4028234e38;
    var sum7 = vec4<f32>();
    var o7_0 = vec4<f32>();
    let end = min(first_row + 8u, 16u);
    for (var j0 = 0u; j0 < end; j0 += 64u) {
        let key0 = j0 + 0u + lane * 4u;
        let key0_0 = min(key0 + 0u, 15u);
        let key0_1 = min(key0 + 1u, 15u);
        let key0_2 = min(key0 + 2u, 15u);
        let key0_3 = min(key0 + 3u, 15u);
        let keys0 = min(key0, 12u);
        var s0_0 = vec4<f32>();
        var s1_0 = vec4<f32>();
        var s2_0 = vec4<f32>();
        var s3_0 = vec4<f32>();
        var s4_0 = vec4<f32>();
        var s5_0 = vec4<f32>();
        var s6_0 = vec4<f32>();
        var s7_0 = vec4<f32>();
        let key1 = j0 + 32u + lane * 4u;
        let key1_0 = min(key1 + 0u, 15u);
        let key1_1 = min(key1 + 1u, 15u);
        let key1_2 = min(key1 + 2u, 15u);
        let key1_3 = min(key1 + 3u, 15u);
        let keys1 = min(key1, 12u);
        var s0_1 = vec4<f32>();
        var s1_1 = vec4<f32>();
        var s2_1 = vec4<f32>();
        var s3_1 = vec4<f32>();
        var s4_1 = vec4<f32>();
        var s5_1 = vec4<f32>();
        var s6_1 = vec4<f32>();
        var s7_1 = vec4<f32>();
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
            let l1_0 = load_k(b, key1_0, k0);
            let l1_1 = load_k(b, key1_1, k0);
            let l1_2 = load_k(b, key1_2, k0);
            let l1_3 = load_k(b, key1_3, k0);
            let k1_0 = vec4<f32>(l1_0.x, l1_1.x, l1_2.x, l1_3.x);
            let k1_1 = vec4<f32>(l1_0.y, l1_1.y, l1_2.y, l1_3.y);
            let k1_2 = vec4<f32>(l1_0.z, l1_1.z, l1_2.z, l1_3.z);
            let k1_3 = vec4<f32>(l1_0.w, l1_1.w, l1_2.w, l1_3.w);
            let own0 = load_q(b, own_row0, k0);
            let q0 = subgroupBroadcast(own0, 0u);
            s0_0 = fma(vec4<f32>(q0.w), k0_3, fma(vec4<f32>(q0.z), k0_2, fma(vec4<f32>(q0.y), k0_1, fma(vec4<f32>(q0.x), k0_0, s0_0))));
            s0_1 = fma(vec4<f32>(q0.w), k1_3, fma(vec4<f32>(q0.z), k1_2, fma(vec4<f32>(q0.y), k1_1, fma(vec4<f32>(q0.x), k1_0, s0_1))));
            let q1 = subgroupBroadcast(own0, 1u);
            s1_0 = fma(vec4<f32>(q1.w), k0_3, fma(vec4<f32>(q1.z), k0_2, fma(vec4<f32>(q1.y), k0_1, fma(vec4<f32>(q1.x), k0_0, s1_0))));
            s1_1 = fma(vec4<f32>(q1.w), k1_3, fma(vec4<f32>(q1.z), k1_2, fma(vec4<f32>(q1.y), k1_1, fma(vec4<f32>(q1.x), k1_0, s1_1))));
            let q2 = subgroupBroadcast(own0, 2u);
            s2_0 = fma(vec4<f32>(q2.w), k0_3, fma(vec4<f32>(q2.z), k0_2, fma(vec4<f32>(q2.y), k0_1, fma(vec4<f32>(q2.x), k0_0, s2_0))));
            s2_1 = fma(vec4<f32>(q2.w), k1_3, fma(vec4<f32>(q2.z), k1_2, fma(vec4<f32>(q2.y), k1_1, fma(vec4<f32>(q2.x), k1_0, s2_1))));
            let q3 = subgroupBroadcast(own0, 3u);
            s3_0 = fma(vec4<f32>(q3.w), k0_3, fma(vec4<f32>(q3.z), k0_2, fma(vec4<f32>(q3.y), k0_1, fma(vec4<f32>(q3.x), k0_0, s3_0))));
            s3_1 = fma(vec4<f32>(q3.w), k1_3, fma(vec4<f32>(q3.z), k1_2, fma(vec4<f32>(q3.y), k1_1, fma(vec4<f32>(q3.x), k1_0, s3_1))));
            let q4 = subgroupBroadcast(own0, 4u);
            s4_0 = fma(vec4<f32>(q4.w), k0_3, fma(vec4<f32>(q4.z), k0_2, fma(vec4<f32>(q4.y), k0_1, fma(vec4<f32>(q4.x), k0_0, s4_0))));
            s4_1 = fma(vec4<f32>(q4.w), k1_3, fma(vec4<f32>(q4.z), k1_2, fma(vec4<f32>(q4.y), k1_1, fma(vec4<f32>(q4.x), k1_0, s4_1))));
            let q5 = subgroupBroadcast(own0, 5u);
            s5_0 = fma(vec4<f32>(q5.w), k0_3, fma(vec4<f32>(q5.z), k0_2, fma(vec4<f32>(q5.y), k0_1, fma(vec4<f32>(q5.x), k0_0, s5_0))));
            s5_1 = fma(vec4<f32>(q5.w), k1_3, fma(vec4<f32>(q5.z), k1_2, fma(vec4<f32>(q5.y), k1_1, fma(vec4<f32>(q5.x), k1_0, s5_1))));
            let q6 = subgroupBroadcast(own0, 6u);
            s6_0 = fma(vec4<f32>(q6.w), k0_3, fma(vec4<f32>(q6.z), k0_2, fma(vec4<f32>(q6.y), k0_1, fma(vec4<f32>(q6.x), k0_0, s6_0))));
            s6_1 = fma(vec4<f32>(q6.w), k1_3, fma(vec4<f32>(q6.z), k1_2, fma(vec4<f32>(q6.y), k1_1, fma(vec4<f32>(q6.x), k1_0, s6_1))));
            let q7 = subgroupBroadcast(own0, 7u);
            s7_0 = fma(vec4<f32>(q7.w), k0_3, fma(vec4<f32>(q7.z), k0_2, fma(vec4<f32>(q7.y), k0_1, fma(vec4<f32>(q7.x), k0_0, s7_0))));
            s7_1 = fma(vec4<f32>(q7.w), k1_3, fma(vec4<f32>(q7.z), k1_2, fma(vec4<f32>(q7.y), k1_1, fma(vec4<f32>(q7.x), k1_0, s7_1))));
        }
        s0_0 = score(b, row0, keys0, s0_0);
        s0_1 = score(b, row0, keys1, s0_1);
        s1_0 = score(b, row1, keys0, s1_0);
        s1_1 = score(b, row1, keys1, s1_1);
        s2_0 = score(b, row2, keys0, s2_0);
        s2_1 = score(b, row2, keys1, s2_1);
        s3_0 = score(b, row3, keys0, s3_0);
        s3_1 = score(b, row3, keys1, s3_1);
        s4_0 = score(b, row4, keys0, s4_0);
        s4_1 = score(b, row4, keys1, s4_1);
        s5_0 = score(b, row5, keys0, s5_0);
        s5_1 = score(b, row5, keys1, s5_1);
        s6_0 = score(b, row6, keys0, s6_0);
        s6_1 = score(b, row6, keys1, s6_1);
        s7_0 = score(b, row7, keys0, s7_0);
        s7_1 = score(b, row7, keys1, s7_1);
        if j0 + 64u > min(first_row + 1u, 16u) {
            let places0 = vec4<u32>(key0) + vec4<u32>(0u, 1u, 2u, 3u);
            s0_0 = select(hidden, s0_0, places0 < vec4<u32>(min(row + 1u, 16u)));
            s1_0 = select(hidden, s1_0, places0 < vec4<u32>(min(row + 2u, 16u)));
            s2_0 = select(hidden, s2_0, places0 < vec4<u32>(min(row + 3u, 16u)));
            s3_0 = select(hidden, s3_0, places0 < vec4<u32>(min(row + 4u, 16u)));
            s4_0 = select(hidden, s4_0, places0 < vec4<u32>(min(row + 5u, 16u)));
            s5_0 = select(hidden, s5_0, places0 < vec4<u32>(min(row + 6u, 16u)));
            s6_0 = select(hidden, s6_0, places0 < vec4<u32>(min(row + 7u, 16u)));
            s7_0 = select(hidden, s7_0, places0 < vec4<u32>(min(row + 8u, 16u)));
            let places1 = vec4<u32>(key1) + vec4<u32>(0u, 1u, 2u, 3u);
            s0_1 = select(hidden, s0_1, places1 < vec4<u32>(min(row + 1u, 16u)));
            s1_1 = select(hidden, s1_1, places1 < vec4<u32>(min(row + 2u, 16u)));
            s2_1 = select(hidden, s2_1, places1 < vec4<u32>(min(row + 3u, 16u)));
            s3_1 = select(hidden, s3_1, places1 < vec4<u32>(min(row + 4u, 16u)));
            s4_1 = select(hidden, s4_1, places1 < vec4<u32>(min(row + 5u, 16u)));
            s5_1 = select(hidden, s5_1, places1 < vec4<u32>(min(row + 6u, 16u)));
            s6_1 = select(hidden, s6_1, places1 < vec4<u32>(min(row + 7u, 16u)));
            s7_1 = select(hidden, s7_1, places1 < vec4<u32>(min(row + 8u, 16u)));
        }
        let four0 = max(s0_0, s0_1);
        var new0 = max(max(max(four0.x, four0.y), max(four0.z, four0.w)), top0);
        let four1 = max(s1_0, s1_1);
        var new1 = max(max(max(four1.x, four1.y), max(four1.z, four1.w)), top1);
        let four2 = max(s2_0, s2_1);
        var new2 = max(max(max(four2.x, four2.y), max(four2.z, four2.w)), top2);
        let four3 = max(s3_0, s3_1);
        var new3 = max(max(max(four3.x, four3.y), max(four3.z, four3.w)), top3);
        let four4 = max(s4_0, s4_1);
        var new4 = max(max(max(four4.x, four4.y), max(four4.z, four4.w)), top4);
        let four5 = max(s5_0, s5_1);
        var new5 = max(max(max(four5.x, four5.y), max(four5.z, four5.w)), top5);
        let four6 = max(s6_0, s6_1);
        var new6 = max(max(max(four6.x, four6.y), max(four6.z, four6.w)), top6);
        let four7 = max(s7_0, s7_1);
        var new7 = max(max(max(four7.x, four7.y), max(four7.z, four7.w)), top7);
        new0 = max(new0, subgroupShuffleXor(new0, 4u));
        new0 = max(new0, subgroupShuffleXor(new0, 2u));
        new0 = max(new0, subgroupShuffleXor(new0, 1u));
        new1 = max(new1, subgroupShuffleXor(new1, 4u));
        new1 = max(new1, subgroupShuffleXor(new1, 2u));
        new1 = max(new1, subgroupShuffleXor(new1, 1u));
        new2 = max(new2, subgroupShuffleXor(new2, 4u));
        new2 = max(new2, subgroupShuffleXor(new2, 2u));
        new2 = max(new2, subgroupShuffleXor(new2, 1u));
        new3 = max(new3, subgroupShuffleXor(new3, 4u));
        new3 = max(new3, subgroupShuffleXor(new3, 2u));
        new3 = max(new3, subgroupShuffleXor(new3, 1u));
        new4 = max(new4, subgroupShuffleXor(new4, 4u));
        new4 = max(new4, subgroupShuffleXor(new4, 2u));
        new4 = max(new4, subgroupShuffleXor(new4, 1u));
        new5 = max(new5, subgroupShuffleXor(new5, 4u));
        new5 = max(new5, subgroupShuffleXor(new5, 2u));
        new5 = max(new5, subgroupShuffleXor(new5, 1u));
        new6 = max(new6, subgroupShuffleXor(new6, 4u));
        new6 = max(new6, subgroupShuffleXor(new6, 2u));
        new6 = max(new6, subgroupShuffleXor(new6, 1u));
        new7 = max(new7, subgroupShuffleXor(new7, 4u));
        new7 = max(new7, subgroupShuffleXor(new7, 2u));
        new7 = max(new7, subgroupShuffleXor(new7, 1u));
        let keep0 = exp(top0 - new0);
        top0 = new0;
        sum0 *= keep0;
        o0_0 *= keep0;
        s0_0 = exp(s0_0 - vec4<f32>(top0));
        sum0 += s0_0;
        s0_1 = exp(s0_1 - vec4<f32>(top0));
        sum0 += s0_1;
        let keep1 = exp(top1 - new1);
        top1 = new1;
        sum1 *= keep1;
        o1_0 *= keep1;
        s1_0 = exp(s1_0 - vec4<f32>(top1));
        sum1 += s1_0;
        s1_1 = exp(s1_1 - vec4<f32>(top1));
        sum1 += s1_1;
        let keep2 = exp(top2 - new2);
        top2 = new2;
        sum2 *= keep2;
        o2_0 *= keep2;
        s2_0 = exp(s2_0 - vec4<f32>(top2));
        sum2 += s2_0;
        s2_1 = exp(s2_1 - vec4<f32>(top2));
        sum2 += s2_1;
        let keep3 = exp(top3 - new3);
        top3 = new3;
        sum3 *= keep3;
        o3_0 *= keep3;
        s3_0 = exp(s3_0 - vec4<f32>(top3));
        sum3 += s3_0;
        s3_1 = exp(s3_1 - vec4<f32>(top3));
        sum3 += s3_1;
        let keep4 = exp(top4 - new4);
        top4 = new4;
        sum4 *= keep4;
        o4_0 *= keep4;
        s4_0 = exp(s4_0 - vec4<f32>(top4));
        sum4 += s4_0;
        s4_1 = exp(s4_1 - vec4<f32>(top4));
        sum4 += s4_1;
        let keep5 = exp(top5 - new5);
        top5 = new5;
        sum5 *= keep5;
        o5_0 *= keep5;
        s5_0 = exp(s5_0 - vec4<f32>(top5));
        sum5 += s5_0;
        s5_1 = exp(s5_1 - vec4<f32>(top5));
        sum5 += s5_1;
        let keep6 = exp(top6 - new6);
        top6 = new6;
        sum6 *= keep6;
        o6_0 *= keep6;
        s6_0 = exp(s6_0 - vec4<f32>(top6));
        sum6 += s6_0;
        s6_1 = exp(s6_1 - vec4<f32>(top6));
        sum6 += s6_1;
        let keep7 = exp(top7 - new7);
        top7 = new7;
        sum7 *= keep7;
        o7_0 *= keep7;
        s7_0 = exp(s7_0 - vec4<f32>(top7));
        sum7 += s7_0;
        s7_1 = exp(s7_1 - vec4<f32>(top7));
        sum7 += s7_1;
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
                let w0 = subgroupShuffle(s0_0, from_lane);
                o0_0 = fma(vec4<f32>(w0.w), v3_0, fma(vec4<f32>(w0.z), v2_0, fma(vec4<f32>(w0.y), v1_0, fma(vec4<f32>(w0.x), v0_0, o0_0))));
                let w1 = subgroupShuffle(s1_0, from_lane);
                o1_0 = fma(vec4<f32>(w1.w), v3_0, fma(vec4<f32>(w1.z), v2_0, fma(vec4<f32>(w1.y), v1_0, fma(vec4<f32>(w1.x), v0_0, o1_0))));
                let w2 = subgroupShuffle(s2_0, from_lane);
                o2_0 = fma(vec4<f32>(w2.w), v3_0, fma(vec4<f32>(w2.z), v2_0, fma(vec4<f32>(w2.y), v1_0, fma(vec4<f32>(w2.x), v0_0, o2_0))));
                let w3 = subgroupShuffle(s3_0, from_lane);
                o3_0 = fma(vec4<f32>(w3.w), v3_0, fma(vec4<f32>(w3.z), v2_0, fma(vec4<f32>(w3.y), v1_0, fma(vec4<f32>(w3.x), v0_0, o3_0))));
                let w4 = subgroupShuffle(s4_0, from_lane);
                o4_0 = fma(vec4<f32>(w4.w), v3_0, fma(vec4<f32>(w4.z), v2_0, fma(vec4<f32>(w4.y), v1_0, fma(vec4<f32>(w4.x), v0_0, o4_0))));
                let w5 = subgroupShuffle(s5_0, from_lane);
                o5_0 = fma(vec4<f32>(w5.w), v3_0, fma(vec4<f32>(w5.z), v2_0, fma(vec4<f32>(w5.y), v1_0, fma(vec4<f32>(w5.x), v0_0, o5_0))));
                let w6 = subgroupShuffle(s6_0, from_lane);
                o6_0 = fma(vec4<f32>(w6.w), v3_0, fma(vec4<f32>(w6.z), v2_0, fma(vec4<f32>(w6.y), v1_0, fma(vec4<f32>(w6.x), v0_0, o6_0))));
                let w7 = subgroupShuffle(s7_0, from_lane);
                o7_0 = fma(vec4<f32>(w7.w), v3_0, fma(vec4<f32>(w7.z), v2_0, fma(vec4<f32>(w7.y), v1_0, fma(vec4<f32>(w7.x), v0_0, o7_0))));
            }
            {
                let from0 = min(j0 + 32u + from_lane * 4u, 15u);
                let v0_0 = load_v(b, from0, col0);
                let from1 = min(j0 + 33u + from_lane * 4u, 15u);
                let v1_0 = load_v(b, from1, col0);
                let from2 = min(j0 + 34u + from_lane * 4u, 15u);
                let v2_0 = load_v(b, from2, col0);
                let from3 = min(j0 + 35u + from_lane * 4u, 15u);
                let v3_0 = load_v(b, from3, col0);
                let w0 = subgroupShuffle(s0_1, from_lane);
                o0_0 = fma(vec4<f32>(w0.w), v3_0, fma(vec4<f32>(w0.z), v2_0, fma(vec4<f32>(w0.y), v1_0, fma(vec4<f32>(w0.x), v0_0, o0_0))));
                let w1 = subgroupShuffle(s1_1, from_lane);
                o1_0 = fma(vec4<f32>(w1.w), v3_0, fma(vec4<f32>(w1.z), v2_0, fma(vec4<f32>(w1.y), v1_0, fma(vec4<f32>(w1.x), v0_0, o1_0))));
                let w2 = subgroupShuffle(s2_1, from_lane);
                o2_0 = fma(vec4<f32>(w2.w), v3_0, fma(vec4<f32>(w2.z), v2_0, fma(vec4<f32>(w2.y), v1_0, fma(vec4<f32>(w2.x), v0_0, o2_0))));
                let w3 = subgroupShuffle(s3_1, from_lane);
                o3_0 = fma(vec4<f32>(w3.w), v3_0, fma(vec4<f32>(w3.z), v2_0, fma(vec4<f32>(w3.y), v1_0, fma(vec4<f32>(w3.x), v0_0, o3_0))));
                let w4 = subgroupShuffle(s4_1, from_lane);
                o4_0 = fma(vec4<f32>(w4.w), v3_0, fma(vec4<f32>(w4.z), v2_0, fma(vec4<f32>(w4.y), v1_0, fma(vec4<f32>(w4.x), v0_0, o4_0))));
                let w5 = subgroupShuffle(s5_1, from_lane);
                o5_0 = fma(vec4<f32>(w5.w), v3_0, fma(vec4<f32>(w5.z), v2_0, fma(vec4<f32>(w5.y), v1_0, fma(vec4<f32>(w5.x), v0_0, o5_0))));
                let w6 = subgroupShuffle(s6_1, from_lane);
                o6_0 = fma(vec4<f32>(w6.w), v3_0, fma(vec4<f32>(w6.z), v2_0, fma(vec4<f32>(w6.y), v1_0, fma(vec4<f32>(w6.x), v0_0, o6_0))));
                let w7 = subgroupShuffle(s7_1, from_lane);
                o7_0 = fma(vec4<f32>(w7.w), v3_0, fma(vec4<f32>(w7.z), v2_0, fma(vec4<f32>(w7.y), v1_0, fma(vec4<f32>(w7.x), v0_0, o7_0))));
            }
        }
    }
    var total0 = sum0.x + sum0.y + (sum0.z + sum0.w);
    var total1 = sum1.x + sum1.y + (sum1.z + sum1.w);
    var total2 = sum2.x + sum2.y + (sum2.z + sum2.w);
    var total3 = sum3.x + sum3.y + (sum3.z + sum3.w);
    var total4 = sum4.x + sum4.y + (sum4.z + sum4.w);
    var total5 = sum5.x + sum5.y + (sum5.z + sum5.w);
    var total6 = sum6.x + sum6.y + (sum6.z + sum6.w);
    var total7 = sum7.x + sum7.y + (sum7.z + sum7.w);
    total0 = total0 + subgroupShuffleXor(total0, 4u);
    total0 = total0 + subgroupShuffleXor(total0, 2u);
    total0 = total0 + subgroupShuffleXor(total0, 1u);
    total1 = total1 + subgroupShuffleXor(total1, 4u);
    total1 = total1 + subgroupShuffleXor(total1, 2u);
    total1 = total1 + subgroupShuffleXor(total1, 1u);
    total2 = total2 + subgroupShuffleXor(total2, 4u);
    total2 = total2 + subgroupShuffleXor(total2, 2u);
    total2 = total2 + subgroupShuffleXor(total2, 1u);
    total3 = total3 + subgroupShuffleXor(total3, 4u);
    total3 = total3 + subgroupShuffleXor(total3, 2u);
    total3 = total3 + subgroupShuffleXor(total3, 1u);
    total4 = total4 + subgroupShuffleXor(total4, 4u);
    total4 = total4 + subgroupShuffleXor(total4, 2u);
    total4 = total4 + subgroupShuffleXor(total4, 1u);
    total5 = total5 + subgroupShuffleXor(total5, 4u);
    total5 = total5 + subgroupShuffleXor(total5, 2u);
    total5 = total5 + subgroupShuffleXor(total5, 1u);
    total6 = total6 + subgroupShuffleXor(total6, 4u);
    total6 = total6 + subgroupShuffleXor(total6, 2u);
    total6 = total6 + subgroupShuffleXor(total6, 1u);
    total7 = total7 + subgroupShuffleXor(total7, 4u);
    total7 = total7 + subgroupShuffleXor(total7, 2u);
    total7 = total7 + subgroupShuffleXor(total7, 1u);
    {
        let scale = 1.0 / select(total0, 1.0, total0 == 0.0);
        {
            let c = 0u + lane * 4u;
            if c < 8u { store(b, row + 0u, c, o0_0 * scale); }
        }
    }
    {
        let scale = 1.0 / select(total1, 1.0, total1 == 0.0);
        {
            let c = 0u + lane * 4u;
            if c < 8u { store(b, row + 1u, c, o1_0 * scale); }
        }
    }
    {
        let scale = 1.0 / select(total2, 1.0, total2 == 0.0);
        {
            let c = 0u + lane * 4u;
            if c < 8u { store(b, row + 2u, c, o2_0 * scale); }
        }
    }
    {
        let scale = 1.0 / select(total3, 1.0, total3 == 0.0);
        {
            let c = 0u + lane * 4u;
            if c < 8u { store(b, row + 3u, c, o3_0 * scale); }
        }
    }
    {
        let scale = 1.0 / select(total4, 1.0, total4 == 0.0);
        {
            let c = 0u + lane * 4u;
            if c < 8u { store(b, row + 4u, c, o4_0 * scale); }
        }
    }
    {
        let scale = 1.0 / select(total5, 1.0, total5 == 0.0);
        {
            let c = 0u + lane * 4u;
            if c < 8u { store(b, row + 5u, c, o5_0 * scale); }
        }
    }
    {
        let scale = 1.0 / select(total6, 1.0, total6 == 0.0);
        {
            let c = 0u + lane * 4u;
            if c < 8u { store(b, row + 6u, c, o6_0 * scale); }
        }
    }
    {
        let scale = 1.0 / select(total7, 1.0, total7 == 0.0);
        {
            let c = 0u + lane * 4u;
            if c < 8u { store(b, row + 7u, c, o7_0 * scale); }
        }
    }
}
