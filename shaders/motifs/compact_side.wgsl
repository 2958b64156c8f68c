// Moves the entries of a side that are kept to its front, and counts the offsets of vertices anew.

struct Params {
  // Entries of the side; the word behind them, at which the offsets begin; and how many of those there are.
  count: u32,
  offsets: u32,
  num_offsets: u32,
}

// (edge, vertex at its other end) of each entry, then the first entry of each vertex.
@group(0) @binding(0) var<storage, read> side: array<u32>;
// 64 bits an entry, and their total: how many before it are kept.
@group(0) @binding(1) var<storage, read> kept: array<vec2<u32>>;
// The same as `side`.
@group(0) @binding(2) var<storage, read_write> compacted: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(256)
fn compact_side(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = (wid.x + wid.y * grid.x) * 256u + local;
  if (i < params.num_offsets) {
    compacted[params.offsets + i] = kept[side[params.offsets + i]].x;
  }
  if (i < params.count) {
    let at = kept[i].x;
    if (kept[i + 1u].x != at) {
      compacted[2u * at] = side[2u * i];
      compacted[2u * at + 1u] = side[2u * i + 1u];
    }
  }
}
