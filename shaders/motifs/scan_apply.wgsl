// Turns 64-bit values into their exclusive prefix sums, modulo 2^64, and writes their total behind the last one: the last step of a
// prefix sum. An invocation rewrites one chunk of neighbours, beginning with the sum of all chunks before it.
//
// 16 neighbours of 8 bytes are one cache line of a GPU, so that what a lane loads first serves its other loads; on software drivers plain
// loads are the fastest there are. Nothing is shared between lanes, so there is nothing to wait for.
#import wide

struct Params {
  // Values.
  count: u32,
  // Place of the first value in `data`, and the distance to the next one.
  offset: u32,
  stride: u32,
  // Word of `flags` that becomes 1 where a sum passes 2^64 - 1.
  flag: u32,
}

const CHUNK = 16u;

@group(0) @binding(0) var<storage, read_write> data: array<vec2<u32>>;
// Sum of all values before each chunk. That of the first one is 0 and not read.
@group(0) @binding(1) var<storage, read> before: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> flags: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(256)
fn scan_apply(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let chunk = (wid.x + wid.y * grid.x) * 256u + lane;
  let first = chunk * CHUNK;
  // Without values the first chunk still writes the total.
  if (first >= max(params.count, 1u)) {
    return;
  }
  var sum = vec2<u32>(0u, 0u);
  if (chunk > 0u) {
    sum = before[chunk];
  }
  let length = min(CHUNK, params.count - first);
  var at = params.offset + first * params.stride;
  var passed = false;
  for (var i = 0u; i < length; i += 1u) {
    let value = data[at];
    data[at] = sum;
    sum = wide_add(sum, value);
    passed = passed | wide_less(sum, value);
    at += params.stride;
  }
  if (first + length == params.count) {
    data[at] = sum;
  }
  if (passed) {
    atomicOr(&flags[params.flag], 1u);
  }
}
