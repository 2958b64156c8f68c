// The most paths that a unit of a table has. An invocation looks at some neighbours, so that few of them meet at the result.
#import wide

struct Params {
  // Units, the one at the end left out.
  count: u32,
  // The word of `result`.
  word: u32,
}

const CHUNK = 64u;

// Five a unit; the first is the number of its first path.
@group(0) @binding(0) var<storage, read> units: array<vec2<u32>>;
// A word of it becomes the most paths, 2^32 - 1 for more, unless it is larger.
@group(0) @binding(1) var<storage, read_write> result: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn most_paths(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let first_unit = ((wid.x + wid.y * grid.x) * 64u + local) * CHUNK;
  if (first_unit >= params.count) {
    return;
  }
  let length = min(CHUNK, params.count - first_unit);
  var most = 0u;
  var first = units[5u * first_unit];
  for (var i = 1u; i <= length; i += 1u) {
    let next = units[5u * (first_unit + i)];
    let paths = wide_sub(next, first);
    most = max(most, select(0xffffffffu, paths.x, paths.y == 0u));
    first = next;
  }
  atomicMax(&result[params.word], most);
}
