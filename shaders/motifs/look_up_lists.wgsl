// For each placement that was drawn: where the list of each other motif edge begins within its gap. Placements with an empty list are
// dropped, the others go into the invocation's bucket of what was found.
//
// Each invocation has an equal share of the placements, and its loop takes one list of one of them a turn, so that neighbouring invocations
// wait for each other as little as can be.

struct Params {
  num_lanes: u32,
  per_lane: u32,
  // Neighbouring invocations that work for one replicate: their share is of what it has.
  team: u32,
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

// As drawn, the numbers of placements turned into prefix sums.
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
// An anchor has at most as many edges.
const MOST_PLACED = 7u;

fn key_of(edge: u32) -> u32 {
#ifdef STRICT
  return keys[edge];
#else
  return edge;
#endif
}

struct Place {
  at: u32,
  // The value there.
  value: u32,
}

// The first place from `begin` on, before `end`, whose value is at least `least`; `end` if there is none, with the largest value.
fn lower_bound(begin: u32, end: u32, least: u32) -> Place {
  var low = begin;
  var found = Place(end, NONE);
  while (low < found.at) {
    let middle = low + (found.at - low) / 2u;
    let value = pairs[middle];
    if (value < least) {
      low = middle + 1u;
    } else {
      found = Place(middle, value);
    }
  }
  return found;
}

@compute @workgroup_size(64)
fn look_up_lists(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let lane = (wid.x + wid.y * grid.x) * 64u + local;
  if (lane >= params.num_lanes) {
    return;
  }
  let lanes = params.num_lanes;
  let plane = params.per_lane * lanes;
  let first_lane = lane / params.team * params.team;
  let first_item = drawn[2u * first_lane];
  let total = drawn[2u * (first_lane + params.team)] - first_item;
  let share = (total + params.team - 1u) / params.team;
  let end_item = first_item + min(total, (lane - first_lane + 1u) * share);
  var item = first_item + min(total, (lane - first_lane) * share);
  var num_found = 0u;
  // Without lists every placement is a match.
  if (params.num_lists == 0u) {
    num_found = end_item - item;
    item = end_item;
  }
  // The bucket that holds the placement.
  var bucket = first_lane;
  if (item < end_item) {
    var above = first_lane + params.team;
    while (above - bucket > 1u) {
      let middle = bucket + (above - bucket) / 2u;
      if (drawn[2u * middle] <= item) {
        bucket = middle;
      } else {
        above = middle;
      }
    }
  }
  var bucket_begin = drawn[2u * bucket];
  var bucket_end = drawn[2u * bucket + 2u];
  var placed: array<u32, MOST_PLACED>;
  var is_new = true;
  var step = 0u;
  while (item < end_item) {
    if (is_new) {
      // Empty buckets have the same sum before them as the next one.
      while (bucket_end <= item) {
        bucket += 1u;
        bucket_begin = bucket_end;
        bucket_end = drawn[2u * bucket + 2u];
      }
      let slot = 3u * lanes + 2u + (item - bucket_begin) * lanes + bucket;
      for (var j = 0u; j < params.num_placed; j += 1u) {
        placed[j] = drawn[slot + j * plane];
      }
      is_new = false;
    }
    let list = params.lists[step >> 2u][step & 3u];
    let on = list & 7u;
    var pair = NONE;
    if (on != 7u) {
      pair = of_edge[2u * placed[on] + ((list >> 3u) & 1u)];
    } else {
      let from_vertex = edges[2u * placed[(list >> 4u) & 7u] + ((list >> 7u) & 1u)];
      let to_vertex = edges[2u * placed[(list >> 8u) & 7u] + ((list >> 11u) & 1u)];
      let begin = params.destinations + pairs[from_vertex];
      let place = lower_bound(begin, params.destinations + pairs[from_vertex + 1u], to_vertex);
      if (place.value == to_vertex) {
        pair = place.at - params.destinations;
      }
    }
    var is_empty = true;
    if (pair != NONE) {
      let after = (list >> 12u) & 7u;
      let before = (list >> 15u) & 7u;
      var low = 0u;
      if (after != 7u) {
        low = key_of(placed[after]) + 1u;
      } else {
        low = bounds[key_of(placed[params.last_placed])];
      }
      var high = 0u;
      if (before != 7u) {
        high = key_of(placed[before]);
      } else {
        high = bounds[params.last + key_of(placed[params.first_placed])] + 1u;
      }
      let end = params.list + pairs[params.starts + pair + 1u] - 1u;
      let place = lower_bound(params.list + pairs[params.starts + pair], end, low);
      if (place.value < high) {
        is_empty = false;
        var value = place.at - params.list;
        if (((list >> 26u) & 1u) == 1u) {
          value = lower_bound(place.at, end, high).at - place.at;
        }
        let record = params.records + num_found * lanes + lane;
        found[record + ((list >> 18u) & 31u) * plane] = value;
        found[record + (params.num_lists + ((list >> 23u) & 7u)) * plane] = high;
      }
    }
    step += 1u;
    if (is_empty || step == params.num_lists) {
      num_found += select(1u, 0u, is_empty);
      item += 1u;
      step = 0u;
      is_new = true;
    }
  }
  found[2u * lane] = num_found;
  found[2u * lane + 1u] = 0u;
}
