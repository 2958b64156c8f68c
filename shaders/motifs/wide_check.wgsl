// Every function of the libraries `wide` and `draw` on pairs of numbers, for comparison with the arithmetic of the processor.
#import draw

struct Params {
  // Pairs.
  count: u32,
  // The key's words.
  key_low: u32,
  key_high: u32,
}

// A pair each: (a, b).
@group(0) @binding(0) var<storage, read> pairs: array<vec4<u32>>;
// Six results of two numbers for each pair.
@group(0) @binding(1) var<storage, read_write> out: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn wide_check(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = (wid.x + wid.y * grid.x) * 64u + lane;
  if (i >= params.count) {
    return;
  }
  let a = pairs[i].xy;
  let b = pairs[i].zw;
  let product = wide_product(a, b);
  out[6u * i] = vec4<u32>(wide_add(a, b), wide_sub(a, b));
  out[6u * i + 1u] = vec4<u32>(wide_add_saturating(a, b), wide_mul_saturating(a, b));
  out[6u * i + 2u] = vec4<u32>(product.low, product.high);
  out[6u * i + 3u] = vec4<u32>(wide_mul(a, b), select(0u, 1u, wide_less(a, b)), 0u);
  // A divisor or bound of 0 is taken as 1.
  let divisor = select(b, vec2<u32>(1u, 0u), all(b == vec2<u32>(0u, 0u)));
  let divided = wide_divrem(a, divisor);
  out[6u * i + 4u] = vec4<u32>(divided.quotient, divided.remainder);
  let threshold = wide_divrem(wide_sub(vec2<u32>(0u, 0u), divisor), divisor).remainder;
  let key = vec2<u32>(params.key_low, params.key_high);
  out[6u * i + 5u] = vec4<u32>(threefry_below(key, vec2<u32>(a.x, a.y & 0xffffffu), divisor, threshold), threshold);
}
