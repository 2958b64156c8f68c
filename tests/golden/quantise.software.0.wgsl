// Mul
// Add
// Round
// Clip
// Cast
@group(0) @binding(0) var<storage, read> in0: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
fn is_nan_4(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<i32>>(x) & vec4<i32>(0x7fffffffi)) > vec4<i32>(0x7f800000i); }
fn f32_to_i32_4(x: vec4<f32>) -> vec4<i32> {
    let inside = vec4<i32>(clamp(x, vec4<f32>(-2147483648.0), vec4<f32>(2147483520.0)));
    let high = select(inside, vec4<i32>(2147483647), x >= vec4<f32>(2147483648.0));
    return select(high, vec4<i32>(0), is_nan_4(x));
}

@compute @workgroup_size(64)
fn map_round_max_min_cast_u8_2bfc7b2f(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, @builtin(local_invocation_index) lid: u32) {
    let v0 = (wid.x + wid.y * nwg.x) * 64u + lid;
    if v0 >= 251u { return; }
    let t0 = in0[v0];
    let t1 = (vec4<u32>(min(max(f32_to_i32_4(select(min(select(max(round(((t0 * vec4<f32>(127.0f)) + vec4<f32>(128.0f))), vec4<f32>(0.0f)), round(((t0 * vec4<f32>(127.0f)) + vec4<f32>(128.0f))), is_nan_4(round(((t0 * vec4<f32>(127.0f)) + vec4<f32>(128.0f))))), vec4<f32>(255.0f)), select(max(round(((t0 * vec4<f32>(127.0f)) + vec4<f32>(128.0f))), vec4<f32>(0.0f)), round(((t0 * vec4<f32>(127.0f)) + vec4<f32>(128.0f))), is_nan_4(round(((t0 * vec4<f32>(127.0f)) + vec4<f32>(128.0f))))), is_nan_4(select(max(round(((t0 * vec4<f32>(127.0f)) + vec4<f32>(128.0f))), vec4<f32>(0.0f)), round(((t0 * vec4<f32>(127.0f)) + vec4<f32>(128.0f))), is_nan_4(round(((t0 * vec4<f32>(127.0f)) + vec4<f32>(128.0f)))))))), vec4<i32>(0i)), vec4<i32>(255i))) & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
    out[v0] = (t1.x | t1.y | t1.z | t1.w);
}
