// Sums of chunks of 64-bit values, modulo 2^64: the first step of a prefix sum. An invocation sums one chunk of neighbours, see
// `scan_apply.wgsl`.
#import wide

struct Params {
  // Values.
  count: u32,
  // Place of the first value in `data`, and the distance to the next one.
  offset: u32,
  stride: u32,
}

const CHUNK = 16u;

@group(0) @binding(0) var<storage, read> data: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> sums: array<vec2<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(256)
fn scan_sums(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let chunk = (wid.x + wid.y * grid.x) * 256u + lane;
  let first = chunk * CHUNK;
  if (first >= params.count) {
    return;
  }
  let length = min(CHUNK, params.count - first);
  var at = params.offset + first * params.stride;
  var sum = vec2<u32>(0u, 0u);
  for (var i = 0u; i < length; i += 1u) {
    sum = wide_add(sum, data[at]);
    at += params.stride;
  }
  sums[chunk] = sum;
}
