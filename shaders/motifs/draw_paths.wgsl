// Draws path numbers, one from each stratum, and places the anchor's edges: the centre, and up to two sides that touch it.
//
// A unit is a centre with a window for each side, or (ROWS) a centre with one side and a window for the other; path numbers run through
// the units in order. An invocation draws from neighbouring strata, so that its numbers grow and it meets each unit once. What passes the
// check and may be part of a match goes into the invocation's bucket.
#import draw
#import wide

struct Params {
  // Invocations, and strata each of them draws from.
  num_lanes: u32,
  per_lane: u32,
  // First stratum and number of strata.
  first_low: u32,
  first_high: u32,
  num_strata: u32,
  // Path numbers of a stratum, and 2^64 modulo that.
  width_low: u32,
  width_high: u32,
  threshold_low: u32,
  threshold_high: u32,
  key_low: u32,
  key_high: u32,
  // The path numbers of `units`; others are left to other dispatches.
  begin_low: u32,
  begin_high: u32,
  end_low: u32,
  end_high: u32,
  num_units: u32,
  // Edge that is the centre of the first unit, where units are centres.
  first_centre: u32,
  num_sides: u32,
  // Which side a row holds, 1 or 2.
  row_side: u32,
  // Bit j: at which end of the centre side j touches it, 0 for its source.
  ends: u32,
  // What is left to check of the order. 0: nothing; 1: side 1 before side 2, 2: the reverse, both on one side of the centre; 3: from side 1
  // to side 2, with the centre between them, is within delta, 4: the reverse.
  order: u32,
  // Place in `bounds` of the largest key within delta after each key.
  last: u32,
}

// Five a unit: number of its first path; (first entry, length) of both windows, or of a row (centre, side) and the other window; (first,
// end) of the part of each window that can hold a match.
@group(0) @binding(0) var<storage, read> units: array<vec2<u32>>;
// (source, destination) of each edge.
@group(0) @binding(1) var<storage, read> edges: array<vec2<u32>>;
// Edges the sides are drawn from: (edge, vertex at its other end), with a mark on edges that no match holds.
@group(0) @binding(2) var<storage, read> side1: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> side2: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read> bounds: array<u32>;
// Key of each edge (STRICT); otherwise it is the edge's index.
@group(0) @binding(5) var<storage, read> keys: array<u32>;
// For each invocation: placements in its bucket; valid placements; then the buckets, word by word, slot by slot.
@group(0) @binding(6) var<storage, read_write> drawn: array<u32>;
@group(0) @binding(7) var<uniform> params: Params;

const GROUP = 64u;
const DEAD = 0x80000000u;

var<workgroup> bracket: array<u32, 2>;

fn key_of(edge: u32) -> u32 {
#ifdef STRICT
  return keys[edge];
#else
  return edge;
#endif
}

// The last unit from `from` on, before `end`, that begins at path `id` or before it; `from` does. At most 64 iterations.
fn unit_of(id: vec2<u32>, from_unit: u32, end: u32) -> u32 {
  var found = from_unit;
  var step = 1u;
  while (step < end - found && !wide_less(id, units[(found + step) * 5u])) {
    found += step;
    step *= 2u;
  }
  while (step > 0u) {
    if (step < end - found && !wide_less(id, units[(found + step) * 5u])) {
      found += step;
    }
    step /= 2u;
  }
  return found;
}

@compute @workgroup_size(64)
fn draw_paths(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let group = wid.x + wid.y * grid.x;
  let first = vec2<u32>(params.first_low, params.first_high);
  let width = vec2<u32>(params.width_low, params.width_high);
  let threshold = vec2<u32>(params.threshold_low, params.threshold_high);
  let key = vec2<u32>(params.key_low, params.key_high);
  let begin = vec2<u32>(params.begin_low, params.begin_high);
  let end = vec2<u32>(params.end_low, params.end_high);
  // The units of the first and of the last number of the workgroup, so that the invocations search between them.
  if (local < 2u) {
    let stratum = min((group + local) * GROUP * params.per_lane, params.num_strata);
    let id = wide_mul(wide_add(first, vec2<u32>(stratum, 0u)), width);
    // The last number may pass 64 bits.
    let passed = stratum > 0u && !wide_less(wide_mul(first, width), id) || !wide_less(id, end);
    bracket[local] = unit_of(id, 0u, params.num_units);
    if (passed) {
      bracket[local] = params.num_units - 1u;
    }
  }
  workgroupBarrier();
  let units_end = bracket[1] + 1u;
  let lane = group * GROUP + local;
  if (lane >= params.num_lanes) {
    return;
  }
  let skipped = lane * params.per_lane;
  let num_draws = min(params.per_lane, max(params.num_strata, skipped) - skipped);
  var index = wide_add(first, vec2<u32>(skipped, 0u));
  var base = wide_mul(index, width);

  // The unit, once it is loaded, and where the next one begins.
  var unit = bracket[0];
  var loaded = false;
  var next = vec2<u32>(0u, 0u);
  var unit_first = vec2<u32>(0u, 0u);
  var window1 = vec2<u32>(0u, 0u);
  var window2 = vec2<u32>(0u, 0u);
  var live1 = vec2<u32>(0u, 0u);
  var live2 = vec2<u32>(0u, 0u);
  var centre = 0u;
  // The ends of the centre that sides do not touch.
  var far1 = 0u;
  var far2 = 0u;
#ifdef ROWS
  // The row's side and its outer vertex.
  var row_edge = 0u;
  var row_outer = 0u;
#endif

  var num_kept = 0u;
  var num_valid = 0u;
  for (var i = 0u; i < num_draws; i += 1u) {
    var id = base;
    if (params.width_high > 0u || params.width_low > 1u) {
      id = wide_add(base, threefry_below(key, index, width, threshold));
    }
    let inside = !wide_less(id, base) && !wide_less(id, begin) && wide_less(id, end);
    base = wide_add(base, width);
    index = wide_add(index, vec2<u32>(1u, 0u));
    if (!inside) {
      continue;
    }
    if (!loaded || !wide_less(id, next)) {
      unit = unit_of(id, unit, units_end);
      loaded = true;
      unit_first = units[unit * 5u];
      next = units[unit * 5u + 5u];
      window1 = units[unit * 5u + 1u];
      window2 = units[unit * 5u + 2u];
#ifdef ROWS
      centre = window1.x;
      row_edge = window1.y;
      let row_ends = edges[row_edge];
#else
      centre = params.first_centre + unit;
      live1 = units[unit * 5u + 3u];
      live2 = units[unit * 5u + 4u];
#endif
      let ends = edges[centre];
      far1 = select(ends.y, ends.x, (params.ends & 2u) != 0u);
      far2 = select(ends.y, ends.x, (params.ends & 4u) != 0u);
#ifdef ROWS
      let row_touches = select(far1, far2, params.row_side == 1u);
      // Sides touch a centre of two sides at different ends; with one side the other end is the far one.
      let touched = select(row_touches, select(ends.x, ends.y, (params.ends & 2u) != 0u), params.num_sides == 1u);
      row_outer = row_ends.x ^ row_ends.y ^ touched;
#endif
    }
    let path = wide_sub(id, unit_first);
#ifdef ROWS
    var edge1 = row_edge;
    var edge2 = row_edge;
    var valid = true;
    if (params.num_sides == 2u) {
      if (params.row_side == 1u) {
        let entry = side2[window2.x + path.x];
        edge2 = entry.x;
        valid = entry.y != row_outer && entry.y != far2;
      } else {
        let entry = side1[window2.x + path.x];
        edge1 = entry.x;
        valid = entry.y != row_outer && entry.y != far1;
      }
    }
    if (!valid) {
      continue;
    }
    num_valid += 1u;
    edge1 &= ~DEAD;
    edge2 &= ~DEAD;
#else
    // Digits of the path's number: entries of the windows.
    var digit1 = 0u;
    var digit2 = 0u;
    if (path.y == 0u) {
      digit1 = path.x / window2.y;
      digit2 = path.x - digit1 * window2.y;
    } else {
      let digits = wide_divrem(path, vec2<u32>(window2.y, 0u));
      digit1 = digits.quotient.x;
      digit2 = digits.remainder.x;
    }
    let at1 = window1.x + digit1;
    let at2 = window2.x + digit2;
    var entry1 = vec2<u32>(0u, 0u);
    var entry2 = vec2<u32>(0u, 0u);
    var distinct = true;
    if (params.num_sides > 0u) {
      entry1 = side1[at1];
      distinct = entry1.y != far1;
    }
    if (params.num_sides > 1u) {
      entry2 = side2[at2];
      distinct = distinct && entry2.y != far2 && entry1.y != entry2.y;
    }
    let edge1 = entry1.x & ~DEAD;
    let edge2 = entry2.x & ~DEAD;
    if (!distinct) {
      continue;
    }
    if (params.order > 0u) {
      let earlier = key_of(select(edge1, edge2, (params.order & 1u) == 0u));
      let later = key_of(select(edge2, edge1, (params.order & 1u) == 0u));
      if (params.order < 3u) {
        if (earlier >= later) {
          continue;
        }
      } else if (later > bounds[params.last + earlier]) {
        continue;
      }
    }
    num_valid += 1u;
    let dead = ((entry1.x | entry2.x) & DEAD) != 0u || at1 < live1.x || at1 >= live1.y || at2 < live2.x || at2 >= live2.y;
    if (dead) {
      continue;
    }
#endif
    let slot = 2u * params.num_lanes + num_kept * params.num_lanes + lane;
    let plane = params.per_lane * params.num_lanes;
    drawn[slot] = centre;
    if (params.num_sides > 0u) {
      drawn[slot + plane] = edge1;
    }
    if (params.num_sides > 1u) {
      drawn[slot + 2u * plane] = edge2;
    }
    num_kept += 1u;
  }
  drawn[lane] = num_kept;
  drawn[params.num_lanes + lane] = num_valid;
}
