// Writes the unit of each edge as a centre: the windows of its sides, the parts of them that can hold a match, and its number of paths, which
// a prefix sum then turns into the number of its first path.
#import embed
#import wide

struct Params {
  embedding: array<vec4<u32>, 4>,
  // Units to write; the edge of the first one, and how many edges there are. Units behind the last edge are 0.
  count: u32,
  first_edge: u32,
  num_edges: u32,
  // How many sides there are, and bit j: at which end of the centre side j touches it, 0 for its source.
  num_sides: u32,
  ends: u32,
  // Words at which the offsets of the sides begin.
  offsets1: u32,
  offsets2: u32,
  // UNPRUNED, PRUNED or ROWS.
  mode: u32,
  // See `embed.wgsl`.
  starts: u32,
  list: u32,
  last: u32,
  keys: u32,
}

// (source, destination) of each edge.
@group(0) @binding(0) var<storage, read> edges: array<vec2<u32>>;
// Of each edge: its pair, and the opposite one.
@group(0) @binding(1) var<storage, read> of_edge: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> bounds: array<u32>;
@group(0) @binding(3) var<storage, read> pairs: array<u32>;
// (edge, vertex at its other end) of each entry, with a mark on edges that no match holds, then the first entry of each vertex.
@group(0) @binding(4) var<storage, read> side1: array<u32>;
@group(0) @binding(5) var<storage, read> side2: array<u32>;
// Five a unit: number of paths; (first entry, length) of both windows; (first, end) of the part of each that can hold a match. Where rows are
// to be made (ROWS): number of rows if they hold side 1; both windows; number of rows if they hold side 2; (source, destination).
@group(0) @binding(6) var<storage, read_write> units: array<vec2<u32>>;
@group(0) @binding(7) var<uniform> params: Params;

// All paths; those of centres around which the motif's edges on the same two vertices embed, within the edges met; these, to make rows of.
const UNPRUNED = 0u;
const PRUNED = 1u;
const ROWS = 2u;

// The first entry of side 1 from `begin` on, before `end`, whose key is at least `key`; `end` if there is none. At most 32 iterations.
fn first_in_side1(begin: u32, end: u32, key: u32) -> u32 {
  var low = begin;
  var high = end;
  while (low < high) {
    let middle = low + (high - low) / 2u;
    if (key_of(side1[2u * middle] & ~DEAD) < key) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  return low;
}

fn first_in_side2(begin: u32, end: u32, key: u32) -> u32 {
  var low = begin;
  var high = end;
  while (low < high) {
    let middle = low + (high - low) / 2u;
    if (key_of(side2[2u * middle] & ~DEAD) < key) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  return low;
}

// First entry and length of the window of those keys at a vertex.
fn entries1(vertex: u32, keys: vec2<u32>) -> vec2<u32> {
  let end = side1[params.offsets1 + vertex + 1u];
  let first = first_in_side1(side1[params.offsets1 + vertex], end, keys.x);
  return vec2<u32>(first, first_in_side1(first, end, keys.y) - first);
}

fn entries2(vertex: u32, keys: vec2<u32>) -> vec2<u32> {
  let end = side2[params.offsets2 + vertex + 1u];
  let first = first_in_side2(side2[params.offsets2 + vertex], end, keys.x);
  return vec2<u32>(first, first_in_side2(first, end, keys.y) - first);
}

@compute @workgroup_size(64)
fn number_centres(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = (wid.x + wid.y * grid.x) * 64u + local;
  if (i >= params.count) {
    return;
  }
  var paths = vec2<u32>(0u, 0u);
  var window1 = vec2<u32>(0u, 0u);
  var window2 = vec2<u32>(0u, 0u);
  var live1 = vec2<u32>(0u, 0u);
  var live2 = vec2<u32>(0u, 0u);
  let edge = params.first_edge + i;
  var ends = vec2<u32>(0u, 0u);
  if (edge < params.num_edges) {
    ends = edges[edge];
  }
  // A loop is no centre.
  if (ends.x != ends.y) {
    let key = key_of(edge);
    let pair = of_edge[edge];
    slots[0] = list_of(pair.x);
    slots[1] = list_of(pair.y);
    let around = embed(key, key);
    var found = around;
    if (params.mode == UNPRUNED) {
      found = Embedded(true, key, key, vec3<u32>(key), vec3<u32>(key));
    }
    if (found.found) {
      // A side that there is not has one entry.
      window1 = vec2<u32>(0u, 1u);
      window2 = vec2<u32>(0u, 1u);
      live1 = vec2<u32>(0u, select(0u, 1u, around.found));
      live2 = live1;
      // Without steps, or where these have to be met anyway, all that is numbered is live.
      let apart = params.mode == UNPRUNED && (params.embedding[0].x & 63u) > 0u;
      if (params.num_sides > 0u) {
        let at = select(ends.x, ends.y, (params.ends & 2u) != 0u);
        window1 = entries1(at, window_of(found, 1u));
        var live = window1;
        if (apart) {
          live = vec2<u32>(0u, 0u);
          if (around.found) {
            live = entries1(at, window_of(around, 1u));
          }
        }
        live1 = vec2<u32>(live.x, live.x + live.y);
      }
      if (params.num_sides > 1u) {
        let at = select(ends.x, ends.y, (params.ends & 4u) != 0u);
        window2 = entries2(at, window_of(found, 2u));
        var live = window2;
        if (apart) {
          live = vec2<u32>(0u, 0u);
          if (around.found) {
            live = entries2(at, window_of(around, 2u));
          }
        }
        live2 = vec2<u32>(live.x, live.x + live.y);
      }
      paths = wide_mul_words(window1.y, window2.y);
    }
  }
  let unit = 5u * i;
  units[unit + 1u] = window1;
  units[unit + 2u] = window2;
  if (params.mode == ROWS) {
    let has_paths = (paths.x | paths.y) != 0u;
    units[unit] = vec2<u32>(select(0u, window1.y, has_paths), 0u);
    units[unit + 3u] = vec2<u32>(select(0u, window2.y, has_paths), 0u);
    units[unit + 4u] = ends;
  } else {
    units[unit] = paths;
    units[unit + 3u] = live1;
    units[unit + 4u] = live2;
  }
}
