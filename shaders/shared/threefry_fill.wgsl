// Fills a buffer with random words of one key, or (UNIFORM) with floats in [0, 1). One invocation draws one block, which is two words.
#import threefry

struct Params {
  // Words to write.
  count: u32,
  // The key's words.
  key_low: u32,
  key_high: u32,
  // Index of the block that gives the first two words.
  first_low: u32,
  first_high: u32,
}

#ifdef UNIFORM
@group(0) @binding(0) var<storage, read_write> out: array<f32>;
#else
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
#endif
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(256)
fn threefry_fill(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let pair = (wid.x + wid.y * grid.x) * 256u + lane;
  // Half the count rounded up, so that no index wraps.
  if (pair >= (params.count >> 1u) + (params.count & 1u)) {
    return;
  }
  let low = params.first_low + pair;
  let carry = select(0u, 1u, low < pair);
  let words = threefry2x32(vec2<u32>(params.key_low, params.key_high), vec2<u32>(low, params.first_high + carry));
#ifdef UNIFORM
  let values = vec2<f32>(threefry_uniform(words.x), threefry_uniform(words.y));
#else
  let values = words;
#endif
  out[2u * pair] = values.x;
  if (2u * pair + 1u < params.count) {
    out[2u * pair + 1u] = values.y;
  }
}
