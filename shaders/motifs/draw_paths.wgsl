// Draws path numbers, one from each stratum, and places the anchor's edges: the centre, and up to two sides that touch it.
//
// A unit is a centre with a window for each side, or (ROWS) a centre with one side and a window for the other; path numbers run through
// the units in order. An invocation draws from strata in order, so that its numbers grow and it meets each unit once. What passes the
// check and may be part of a match goes into the invocation's bucket. The loop over draws stands inside the one over units: what belongs to a
// unit is not gone through again for each draw.
//
// ENUMERATE and WIDE: see `strata.wgsl`.
#import pairs
#import strata
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
  // Replicates, each of which draws from all the strata: 1, or up to 8.
  num_replicates: u32,
  // How many strata the members of a team draw from in turn: all of TEAM for one replicate, else 1, each member for a replicate of its own.
  turns: u32,
  // Keys of the replicates, two a vector.
  keys: array<vec4<u32>, 4>,
}

// Five a unit: number of its first path; (first entry, length) of both windows, or of a row (centre, side) and the other window; (first,
// end) of the part of each window that can hold a match.
@group(0) @binding(0) var<storage, read> units: array<Pair>;
// (source, destination) of each edge.
@group(0) @binding(1) var<storage, read> edges: array<Pair>;
// Edges the sides are drawn from: (edge, vertex at its other end), with a mark on edges that no match holds.
@group(0) @binding(2) var<storage, read> side1: array<Pair>;
@group(0) @binding(3) var<storage, read> side2: array<Pair>;
@group(0) @binding(4) var<storage, read> bounds: array<u32>;
// Key of each edge (STRICT); otherwise it is the edge's index.
@group(0) @binding(5) var<storage, read> keys: array<u32>;
// Two words for each invocation and two more: placements in its bucket, and 0. Then valid placements of each invocation. Then the buckets,
// word by word, slot by slot.
@group(0) @binding(6) var<storage, read_write> drawn: array<u32>;
@group(0) @binding(7) var<uniform> params: Params;

const UNIT_VECTORS = 5u;
const DEAD = 0x80000000u;
const NONE = 0xffffffffu;

fn key_of(edge: u32) -> u32 {
#ifdef STRICT
  return keys[edge];
#else
  return edge;
#endif
}

// Quotient and remainder by `length`, whose reciprocal is `inverse`.
fn digits(path: vec2<u32>, length: u32, inverse: f32) -> vec2<u32> {
#ifdef WIDE
  let division = wide_divrem(path, vec2<u32>(length, 0u));
  return vec2<u32>(division.quotient.x, division.remainder.x);
#else
  return short_divrem(path.x, length, inverse);
#endif
}

@compute @workgroup_size(64)
fn draw_paths(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let group = wid.x + wid.y * grid.x;
  let first = vec2<u32>(params.first_low, params.first_high);
  let width = vec2<u32>(params.width_low, params.width_high);
  let begin = vec2<u32>(params.begin_low, params.begin_high);
  let end = vec2<u32>(params.end_low, params.end_high);
  find_bracket(group, local);
  workgroupBarrier();
  let units_end = bracket[1] + 1u;
  let lane = group * GROUP + local;
  if (lane >= params.num_lanes) {
    return;
  }
  let share = share_of(lane);
  let num_draws = share.num_draws;
  let key = share.key;
  let number = share.number;
  let stride = wide_mul(width, vec2<u32>(params.turns, 0u));
  var index = wide_add(first, vec2<u32>(share.first, 0u));
  var base = wide_mul(index, width);
  var id = draw(key, index, base);
  let plane = params.per_lane * params.num_lanes;
  let bucket = 3u * params.num_lanes + 2u + number;
  var num_kept = 0u;
  var num_valid = 0u;
  var unit = bracket[0];
  var i = 0u;
  while (i < num_draws && wide_less(id, end)) {
    unit = unit_of(id, unit, units_end);
    let unit_first = words(units[unit * UNIT_VECTORS]);
    let next = words(units[(unit + 1u) * UNIT_VECTORS]);
    let window1 = words(units[unit * UNIT_VECTORS + 1u]);
    let window2 = words(units[unit * UNIT_VECTORS + 2u]);
#ifdef ROWS
    let centre = window1.x;
#else
    let centre = params.first_centre + unit;
    let live1 = words(units[unit * UNIT_VECTORS + 3u]);
    let live2 = words(units[unit * UNIT_VECTORS + 4u]);
    let inverse = 1.0 / f32(window2.y);
    // The entry of side 1, which neighbouring numbers share, and the largest key within delta after it.
    var at1 = NONE;
    var entry1 = vec2<u32>(0u, 0u);
    var reach1 = 0u;
#endif
    // The ends of the centre that sides do not touch.
    let ends = words(edges[centre]);
    let far1 = select(ends.y, ends.x, (params.ends & 2u) != 0u);
    let far2 = select(ends.y, ends.x, (params.ends & 4u) != 0u);
#ifdef ROWS
    // The outer vertex of the row's side: the end that does not touch the centre.
    let row_edge = window1.y;
    let row_ends = words(edges[row_edge]);
    let touched = select(ends.x, ends.y, (params.ends & (1u << params.row_side)) != 0u);
    let row_outer = row_ends.x ^ row_ends.y ^ touched;
#endif
    while (i < num_draws && wide_less(id, next)) {
      let path = wide_sub(id, unit_first);
      // Numbers before the bound units are left to another dispatch.
      var valid = !wide_less(id, begin);
      var live = true;
#ifdef ROWS
      var edge1 = row_edge;
      var edge2 = row_edge;
      if (params.num_sides == 2u) {
        var entry = vec2<u32>(0u, 0u);
        if (params.row_side == 1u) {
          entry = words(side2[window2.x + path.x]);
          edge2 = entry.x;
        } else {
          entry = words(side1[window2.x + path.x]);
          edge1 = entry.x;
        }
        valid = valid && entry.y != row_outer && entry.y != select(far1, far2, params.row_side == 1u);
      }
#else
      // Digits of the path's number: entries of the windows.
      let at = vec2<u32>(window1.x, window2.x) + digits(path, window2.y, inverse);
      var entry2 = vec2<u32>(0u, 0u);
      if (params.num_sides > 0u) {
        if (at.x != at1) {
          at1 = at.x;
          entry1 = words(side1[at1]);
          if (params.order == 3u) {
            reach1 = bounds[params.last + key_of(entry1.x & ~DEAD)];
          }
        }
        valid = valid && entry1.y != far1;
      }
      if (params.num_sides > 1u) {
        entry2 = words(side2[at.y]);
        valid = valid && entry2.y != far2 && entry1.y != entry2.y;
      }
      live = ((entry1.x | entry2.x) & DEAD) == 0u && at.x >= live1.x && at.x < live1.y && at.y >= live2.x && at.y < live2.y;
      let edge1 = entry1.x & ~DEAD;
      let edge2 = entry2.x & ~DEAD;
      let key1 = key_of(edge1);
      let key2 = key_of(edge2);
      if (params.order == 1u) {
        valid = valid && key1 < key2;
      } else if (params.order == 2u) {
        valid = valid && key2 < key1;
      } else if (params.order == 3u) {
        valid = valid && key2 <= reach1;
      } else if (params.order == 4u) {
        valid = valid && key1 <= bounds[params.last + key2];
      }
#endif
      num_valid += select(0u, 1u, valid);
      if (valid && live) {
        let slot = bucket + num_kept * params.num_lanes;
        drawn[slot] = centre;
        if (params.num_sides > 0u) {
          drawn[slot + plane] = edge1;
        }
        if (params.num_sides > 1u) {
          drawn[slot + 2u * plane] = edge2;
        }
        num_kept += 1u;
      }
      i += 1u;
      base = wide_add(base, stride);
      index = wide_add(index, vec2<u32>(params.turns, 0u));
      id = draw(key, index, base);
    }
  }
  drawn[2u * number] = num_kept;
  drawn[2u * number + 1u] = 0u;
  drawn[2u * params.num_lanes + 2u + number] = num_valid;
}
