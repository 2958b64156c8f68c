// Makes a row of each edge in the windows of one side of the centres, and finds which rows a match may hold: around the two edges the motif's
// edges on their three vertices must embed, and the window of the other side, within the edges met, must have an entry.
//
// Rows are numbered through the centres in order; a dispatch makes some of them.
#import embed
#import wide

struct Params {
  embedding: array<vec4<u32>, 4>,
  // The first row, and how many to make; of those behind the last there is only the flag.
  first_low: u32,
  first_high: u32,
  count: u32,
  // Centres, and the edge of the first one.
  num_centres: u32,
  first_edge: u32,
  // Which side the rows hold, 1 or 2, and at which end of the centre it touches it, 0 for its source.
  side: u32,
  side_end: u32,
  // The other side, 0 for none, the end it touches, and the word at which its offsets begin.
  other: u32,
  other_end: u32,
  offsets: u32,
  // Place in `pairs` of the destinations; the first pair of each source is at 0. Then see `embed.wgsl`.
  destinations: u32,
  starts: u32,
  list: u32,
  last: u32,
  keys: u32,
}

// As `number_centres` leaves them with ROWS, the numbers of rows turned into prefix sums.
@group(0) @binding(0) var<storage, read> centres: array<vec2<u32>>;
// Of each edge: its pair, and the opposite one.
@group(0) @binding(1) var<storage, read> of_edge: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> bounds: array<u32>;
@group(0) @binding(3) var<storage, read> pairs: array<u32>;
// (edge, vertex at its other end) of each entry, then the first entry of each vertex.
@group(0) @binding(4) var<storage, read> row_side: array<vec2<u32>>;
@group(0) @binding(5) var<storage, read> other_side: array<u32>;
// Six a row: number of paths; (centre, side); (first entry, length) of the other window; (0, 1); (first, end) of that window; (1 if it is kept, 0).
@group(0) @binding(6) var<storage, read_write> rows: array<vec2<u32>>;
@group(0) @binding(7) var<uniform> params: Params;

// The first entry of the other side from `begin` on, before `end`, whose key is at least `key`; `end` if there is none. At most 32 iterations.
fn first_in_other(begin: u32, end: u32, key: u32) -> u32 {
  var low = begin;
  var high = end;
  while (low < high) {
    let middle = low + (high - low) / 2u;
    if (key_of(other_side[2u * middle]) < key) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  return low;
}

// The list of a pair of vertices. At most 32 iterations.
fn list_between(from_vertex: u32, to_vertex: u32) -> vec2<u32> {
  let end = params.destinations + pairs[from_vertex + 1u];
  let at = first_in_pairs(params.destinations + pairs[from_vertex], end, to_vertex);
  if (at < end && pairs[at] == to_vertex) {
    return list_of(at - params.destinations);
  }
  return vec2<u32>(0u, 0u);
}

@compute @workgroup_size(64)
fn weigh_rows(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = (wid.x + wid.y * grid.x) * 64u + local;
  if (i >= params.count) {
    return;
  }
  rows[6u * i + 5u] = vec2<u32>(0u, 0u);
  // Word pair of a centre that has its number of rows.
  let numbers = select(3u, 0u, params.side == 1u);
  let row = wide_add(vec2<u32>(params.first_low, params.first_high), vec2<u32>(i, 0u));
  if (!wide_less(row, centres[5u * params.num_centres + numbers])) {
    return;
  }
  // The last centre whose rows begin at this one or before; those that have none begin with the next one's.
  var low = 0u;
  var high = params.num_centres;
  while (high - low > 1u) {
    let middle = low + (high - low) / 2u;
    if (wide_less(row, centres[5u * middle + numbers])) {
      high = middle;
    } else {
      low = middle;
    }
  }
  let at = row.x - centres[5u * low + numbers].x;
  let entry = row_side[centres[5u * low + params.side].x + at];
  let ends = centres[5u * low + 4u];
  let far = select(ends.y, ends.x, params.side_end == 1u);
  if (entry.y == far) {
    return;
  }
  let centre = params.first_edge + low;
  let of_centre = of_edge[centre];
  let of_side = of_edge[entry.x];
  slots[0] = list_of(of_centre.x);
  slots[1] = list_of(of_centre.y);
  slots[2] = list_of(of_side.x);
  slots[3] = list_of(of_side.y);
  if (uses_slot(4u)) {
    slots[4] = list_between(entry.y, far);
  }
  if (uses_slot(5u)) {
    slots[5] = list_between(far, entry.y);
  }
  let found = embed(key_of(centre), key_of(entry.x));
  if (!found.found) {
    return;
  }
  var window = vec2<u32>(0u, 1u);
  if (params.other > 0u) {
    let vertex = select(ends.x, ends.y, params.other_end == 1u);
    let keys = window_of(found, params.other);
    let end = other_side[params.offsets + vertex + 1u];
    let first = first_in_other(other_side[params.offsets + vertex], end, keys.x);
    window = vec2<u32>(first, first_in_other(first, end, keys.y) - first);
  }
  if (window.y == 0u) {
    return;
  }
  rows[6u * i] = vec2<u32>(window.y, 0u);
  rows[6u * i + 1u] = vec2<u32>(centre, entry.x);
  rows[6u * i + 2u] = window;
  rows[6u * i + 3u] = vec2<u32>(0u, 1u);
  rows[6u * i + 4u] = vec2<u32>(window.x, window.x + window.y);
  rows[6u * i + 5u] = vec2<u32>(1u, 0u);
}
