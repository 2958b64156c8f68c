// Finds the entries of a side around which the motif's edges on the same two vertices do not embed. Copies the side with these marked, or
// (`filter`) writes for each entry whether it is kept.
#import embed

struct Params {
  embedding: array<vec4<u32>, 4>,
  // Entries of the side; the word behind them, at which the offsets begin; and how many of those there are.
  count: u32,
  offsets: u32,
  num_offsets: u32,
  filter_only: u32,
  // See `embed.wgsl`.
  starts: u32,
  list: u32,
  last: u32,
  keys: u32,
}

// (edge, vertex at its other end) of each entry, then the first entry of each vertex.
@group(0) @binding(0) var<storage, read> side: array<u32>;
// Of each edge: its pair, and the opposite one.
@group(0) @binding(1) var<storage, read> of_edge: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> bounds: array<u32>;
@group(0) @binding(3) var<storage, read> pairs: array<u32>;
// The same as `side`, or of each entry 1 if it is kept or 0, in 64 bits.
@group(0) @binding(4) var<storage, read_write> marked: array<u32>;
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(64)
fn mark_sides(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = (wid.x + wid.y * grid.x) * 64u + local;
  if (params.filter_only == 0u && i < params.num_offsets) {
    marked[params.offsets + i] = side[params.offsets + i];
  }
  if (i >= params.count) {
    return;
  }
  let edge = side[2u * i];
  let pair = of_edge[edge];
  slots[0] = list_of(pair.x);
  slots[1] = list_of(pair.y);
  let key = key_of(edge);
  let found = embed(key, key).found;
  if (params.filter_only == 0u) {
    marked[2u * i] = select(edge | DEAD, edge, found);
    marked[2u * i + 1u] = side[2u * i + 1u];
  } else {
    marked[2u * i] = select(0u, 1u, found);
    marked[2u * i + 1u] = 0u;
  }
}
