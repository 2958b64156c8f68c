// For each placement that was drawn: where the list of each other motif edge begins within its gap. Placements with an empty list are
// dropped, the others go into the invocation's bucket of what was found.
//
// The loop takes one list of one placement a turn, so that neighbouring invocations wait for each other as little as can be.

struct Params {
  num_lanes: u32,
  per_lane: u32,
  // Placed edges a placement has, lists a motif has, and gaps that hold lists.
  num_placed: u32,
  num_lists: u32,
  num_gaps: u32,
  // The first and the last of the placed edges in time.
  first_placed: u32,
  last_placed: u32,
  // Places in `pairs`: destinations, where lists begin, the lists' keys. The first pair of each source is at 0.
  destinations: u32,
  starts: u32,
  list: u32,
  // Place in `bounds` of the largest key within delta after each key; the smallest before it is at 0.
  last: u32,
  // Word of `found` at which the buckets begin.
  records: u32,
  // The most iterations of a search in a list of a pair or of the pairs of a source; it bounds the loop, see the table of kernels.
  max_search: u32,
  // Lists in the order they are looked up, four a vector. From the low end: 3 bits which placed edge lies on the same vertices, 7 for none; 1
  // whether it points the other way; 3 and 1, 3 and 1 the ends as (placed edge, end); 3 and 3 the placed edges just before and after it
  // in time, 7 for none; 5 its place among the lists in time; 3 its gap; 1 whether it is alone in its gap.
  lists: array<vec4<u32>, 8>,
}

@group(0) @binding(0) var<storage, read> drawn: array<u32>;
@group(0) @binding(1) var<storage, read> pairs: array<u32>;
// Of each edge: its pair, and the opposite one.
@group(0) @binding(2) var<storage, read> of_edge: array<u32>;
@group(0) @binding(3) var<storage, read> edges: array<u32>;
@group(0) @binding(4) var<storage, read> bounds: array<u32>;
// Key of each edge (STRICT).
@group(0) @binding(5) var<storage, read> keys: array<u32>;
// Two words for each invocation and two more: how many are in its bucket, and 0. Then the buckets, word by word, slot by slot: where each
// list begins (or, of a list alone in its gap, how many of its edges are inside), then the key that ends each gap.
@group(0) @binding(6) var<storage, read_write> found: array<u32>;
@group(0) @binding(7) var<uniform> params: Params;

const NONE = 0xffffffffu;

fn placed(slot: u32, j: u32) -> u32 {
  return drawn[2u * params.num_lanes + j * params.per_lane * params.num_lanes + slot];
}

fn key_of(edge: u32) -> u32 {
#ifdef STRICT
  return keys[edge];
#else
  return edge;
#endif
}

// The first place from `low` on, before `high`, whose value is at least `value`; `high` if there is none.
fn lower_bound(begin: u32, end: u32, value: u32) -> u32 {
  var low = begin;
  var high = end;
  while (low < high) {
    let middle = low + (high - low) / 2u;
    if (pairs[middle] < value) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  return low;
}

@compute @workgroup_size(64)
fn look_up_lists(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let lane = (wid.x + wid.y * grid.x) * 64u + local;
  if (lane >= params.num_lanes) {
    return;
  }
  let num_drawn = drawn[lane];
  let plane = params.per_lane * params.num_lanes;
  var num_found = 0u;
  var next = 0u;
  // Without lists every placement is a match.
  if (params.num_lists == 0u) {
    num_found = num_drawn;
    next = num_drawn;
  }
  var step = 0u;
  while (next < num_drawn) {
    let list = params.lists[step >> 2u][step & 3u];
    let slot = next * params.num_lanes + lane;
    let on = list & 7u;
    var pair = NONE;
    if (on != 7u) {
      pair = of_edge[2u * placed(slot, on) + ((list >> 3u) & 1u)];
    } else {
      let from_vertex = edges[2u * placed(slot, (list >> 4u) & 7u) + ((list >> 7u) & 1u)];
      let to_vertex = edges[2u * placed(slot, (list >> 8u) & 7u) + ((list >> 11u) & 1u)];
      let end = params.destinations + pairs[from_vertex + 1u];
      let at = lower_bound(params.destinations + pairs[from_vertex], end, to_vertex);
      if (at < end && pairs[at] == to_vertex) {
        pair = at - params.destinations;
      }
    }
    var is_empty = true;
    if (pair != NONE) {
      let after = (list >> 12u) & 7u;
      let before = (list >> 15u) & 7u;
      var low = 0u;
      if (after != 7u) {
        low = key_of(placed(slot, after)) + 1u;
      } else {
        low = bounds[key_of(placed(slot, params.last_placed))];
      }
      var high = 0u;
      if (before != 7u) {
        high = key_of(placed(slot, before));
      } else {
        high = bounds[params.last + key_of(placed(slot, params.first_placed))] + 1u;
      }
      let begin = params.list + pairs[params.starts + pair];
      let end = params.list + pairs[params.starts + pair + 1u] - 1u;
      let at = lower_bound(begin, end, low);
      if (at < end && pairs[at] < high) {
        is_empty = false;
        var value = at - params.list;
        if (((list >> 26u) & 1u) == 1u) {
          value = lower_bound(at, end, high) - at;
        }
        let record = params.records + num_found * params.num_lanes + lane;
        found[record + ((list >> 18u) & 31u) * plane] = value;
        found[record + (params.num_lists + ((list >> 23u) & 7u)) * plane] = high;
      }
    }
    step += 1u;
    if (is_empty || step == params.num_lists) {
      num_found += select(1u, 0u, is_empty);
      next += 1u;
      step = 0u;
    }
  }
  found[2u * lane] = num_found;
  found[2u * lane + 1u] = 0u;
}
