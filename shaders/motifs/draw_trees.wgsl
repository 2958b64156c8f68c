// Draws tree numbers, one from each stratum, and places the anchor's edges from the centre outwards: each edge lies within delta of its
// parent, on its side of time.
//
// A unit is a centre. The number of a tree in its unit has a digit for each child of the centre, which says which of the child's subtrees it
// is; that number has in turn digits for the child's children. An edge without children is a subtree of its own, and its digit is its place in
// the window; of others the prefix sums of their subtrees along the list say which one holds a number.
//
// ENUMERATE and WIDE: see `strata.wgsl`. DEEP: an edge that does not touch the centre has children.
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
  // Tree numbers of a stratum, and 2^64 modulo that.
  width_low: u32,
  width_high: u32,
  threshold_low: u32,
  threshold_high: u32,
  // The tree numbers of `units`; others are left to other dispatches.
  begin_low: u32,
  begin_high: u32,
  end_low: u32,
  end_high: u32,
  num_units: u32,
  // Edge that is the centre of the first unit.
  first_centre: u32,
  // Edges of a tree, and how many of them are children of the centre.
  num_placed: u32,
  num_near: u32,
  // The placed edges but the centre as they are drawn, four bits each: the centre's children, then the others.
  order: u32,
  // Of each placed edge, four bits each: its parent, and its rank in time.
  parents: u32,
  ranks: u32,
  // Bit j: whether placed edge j has children.
  inner: u32,
  // Place in `bounds` of the largest key within delta after each key.
  last: u32,
  // Edges of the graph, loops included.
  num_edges: u32,
  // The most iterations of a search in a list; it bounds the loop, see the table of kernels.
  max_search: u32,
  // Replicates, each of which draws from all the strata, how many strata the members of a team draw from in turn, and the keys of the
  // replicates, as in `draw_paths.wgsl`.
  num_replicates: u32,
  turns: u32,
  keys: array<vec4<u32>, 4>,
  // Of each placed edge with children: what is added to the place of an entry in `graph` for that of its sum in `sums`.
  shifts: array<vec4<u32>, 2>,
}

// Number of the first tree of each unit.
@group(0) @binding(0) var<storage, read> units: array<Pair>;
// (source, destination) of each edge, then the lists of the vertices: (edge, vertex at its other end).
@group(0) @binding(1) var<storage, read> graph: array<Pair>;
// Window of each placed edge but the centre around each edge that is its parent: (place of the first entry in `graph`, length).
@group(0) @binding(2) var<storage, read> windows: array<Pair>;
// Prefix sums of the numbers of subtrees along the lists.
@group(0) @binding(3) var<storage, read> sums: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read> bounds: array<u32>;
// Key of each edge (STRICT); otherwise it is the edge's index.
@group(0) @binding(5) var<storage, read> keys: array<u32>;
// As `draw_paths` leaves it.
@group(0) @binding(6) var<storage, read_write> drawn: array<u32>;
@group(0) @binding(7) var<uniform> params: Params;

const UNIT_VECTORS = 1u;
const NONE = 0xffffffffu;
const RANKS = vec4<u32>(0u, 1u, 2u, 3u);

fn key_of(edge: u32) -> u32 {
#ifdef STRICT
  return keys[edge];
#else
  return edge;
#endif
}

// Eight words in vectors: software drivers keep vectors in registers, arrays in memory.
struct Eight {
  low: vec4<u32>,
  high: vec4<u32>,
}

fn eight_get(words: Eight, at: u32) -> u32 {
  return select(words.low[at & 3u], words.high[at & 3u], at >= 4u);
}

fn eight_with(words: Eight, at: u32, word: u32) -> Eight {
  let all = vec4<u32>(word);
  return Eight(select(words.low, all, RANKS == vec4<u32>(at)), select(words.high, all, RANKS + 4u == vec4<u32>(at)));
}

// Numbers of trees in a unit, and eight of them.
#ifdef WIDE
alias Number = vec2<u32>;

struct Numbers {
  low: Eight,
  high: Eight,
}

fn number_of(word: u32) -> Number {
  return vec2<u32>(word, 0u);
}

fn low_word(number: Number) -> u32 {
  return number.x;
}

fn sum_at(place: u32) -> Number {
  return sums[place];
}

fn minus(a: Number, b: Number) -> Number {
  return wide_sub(a, b);
}

fn is_less(a: Number, b: Number) -> bool {
  return wide_less(a, b);
}

fn numbers_get(numbers: Numbers, at: u32) -> Number {
  return vec2<u32>(eight_get(numbers.low, at), eight_get(numbers.high, at));
}

fn numbers_with(numbers: Numbers, at: u32, number: Number) -> Numbers {
  return Numbers(eight_with(numbers.low, at, number.x), eight_with(numbers.high, at, number.y));
}

fn divrem(number: Number, size: Number) -> Digit {
  let division = wide_divrem(number, size);
  return Digit(division.quotient, division.remainder);
}
#else
// Below 2^30, so that the low words of the prefix sums are enough for their differences.
alias Number = u32;
alias Numbers = Eight;

fn number_of(word: u32) -> Number {
  return word;
}

fn low_word(number: Number) -> u32 {
  return number;
}

fn sum_at(place: u32) -> Number {
  return sums[place].x;
}

fn minus(a: Number, b: Number) -> Number {
  return a - b;
}

fn is_less(a: Number, b: Number) -> bool {
  return a < b;
}

fn numbers_get(numbers: Numbers, at: u32) -> Number {
  return eight_get(numbers, at);
}

fn numbers_with(numbers: Numbers, at: u32, number: Number) -> Numbers {
  return eight_with(numbers, at, number);
}

fn divrem(number: Number, size: Number) -> Digit {
  let division = short_divrem(number, size, 1.0 / f32(size));
  return Digit(division.x, division.y);
}
#endif

// What is left of a number after a digit is taken from it, and the digit.
struct Digit {
  quotient: Number,
  remainder: Number,
}

// The entry of a window that holds subtree `number`, and the number of that one among those of the entry.
struct Found {
  entry: u32,
  number: Number,
}

// `shift` leads from entries to their sums; `before` is the sum before the window.
fn find(start: u32, length: u32, shift: u32, before: Number, number: Number) -> Found {
  var low = start;
  var high = start + length - 1u;
  var passed = number_of(0u);
  while (low < high) {
    let middle = low + (high - low) / 2u;
    let sum = minus(sum_at(middle + 1u + shift), before);
    if (is_less(number, sum)) {
      high = middle;
    } else {
      low = middle + 1u;
      passed = sum;
    }
  }
  return Found(low, minus(number, passed));
}

// A tree that is being drawn: the placed edges; by rank in time their keys; the vertices, the newest first.
struct Tree {
  placed: Eight,
  times: Eight,
  vertices: Eight,
  is_distinct: bool,
}

// Places edge `j` at `entry`. The vertex at its other end is the one it adds to the tree.
fn place(tree: ptr<function, Tree>, j: u32, rank: u32, entry: vec2<u32>) {
  (*tree).placed = eight_with((*tree).placed, j, entry.x);
  (*tree).times = eight_with((*tree).times, rank, key_of(entry.x));
  let seen = (*tree).vertices;
  let vertex = vec4<u32>(entry.y);
  (*tree).is_distinct = (*tree).is_distinct && !any((seen.low == vertex) | (seen.high == vertex));
  (*tree).vertices = Eight(vec4<u32>(entry.y, seen.low.xyz), vec4<u32>(seen.low.w, seen.high.xyz));
}

fn four_bits(word: u32, at: u32) -> u32 {
  return (word >> (4u * at)) & 15u;
}

@compute @workgroup_size(64)
fn draw_trees(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
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
  // What belongs to the whole dispatch stays in registers.
  let num_placed = params.num_placed;
  let num_near = params.num_near;
  let num_edges = params.num_edges;
  let order = params.order;
  let parents = params.parents;
  let ranks = params.ranks;
  let inner = params.inner;
  let shifts = Eight(params.shifts[0], params.shifts[1]);
  let is_last_low = RANKS + 1u >= vec4<u32>(num_placed);
  let is_last_high = RANKS + 5u >= vec4<u32>(num_placed);
  var num_kept = 0u;
  var unit = bracket[0];
  var i = 0u;
  while (i < num_draws && wide_less(id, end)) {
    unit = unit_of(id, unit, units_end);
    let unit_first = words(units[unit]);
    let next = words(units[unit + 1u]);
    let centre = params.first_centre + unit;
    let ends = words(graph[centre]);
    let times = eight_with(Eight(vec4<u32>(NONE), vec4<u32>(NONE)), four_bits(ranks, 0u), key_of(centre));
    // The windows of the centre's children: first entries, lengths, numbers of subtrees, sums before them.
    var starts = Eight();
    var lengths = Eight();
    var sizes = Numbers();
    var befores = Numbers();
    for (var n = 0u; n < num_near; n += 1u) {
      let j = four_bits(order, n);
      let window = words(windows[(j - 1u) * num_edges + centre]);
      starts = eight_with(starts, n, window.x);
      lengths = eight_with(lengths, n, window.y);
      var size = number_of(window.y);
      if (((inner >> j) & 1u) == 1u) {
        let sum = window.x + eight_get(shifts, j);
        let before = sum_at(sum);
        size = minus(sum_at(sum + window.y), before);
        befores = numbers_with(befores, n, before);
      }
      sizes = numbers_with(sizes, n, size);
    }
    while (i < num_draws && wide_less(id, next)) {
      let local_number = wide_sub(id, unit_first);
#ifdef WIDE
      var left = local_number;
#else
      var left = local_number.x;
#endif
      var tree = Tree(Eight(), times, Eight(vec4<u32>(ends, NONE, NONE), vec4<u32>(NONE)), true);
      tree.placed.low.x = centre;
      // What is left of the numbers of the subtrees below each placed edge.
      var lefts = Numbers();
      for (var n = 0u; n < num_near; n += 1u) {
        let j = four_bits(order, n);
        let start = eight_get(starts, n);
        let digit = divrem(left, numbers_get(sizes, n));
        left = digit.quotient;
        var entry = start + low_word(digit.remainder);
        if (((inner >> j) & 1u) == 1u) {
          let found = find(start, eight_get(lengths, n), eight_get(shifts, j), numbers_get(befores, n), digit.remainder);
          entry = found.entry;
          lefts = numbers_with(lefts, j, found.number);
        }
        place(&tree, j, four_bits(ranks, j), words(graph[entry]));
      }
      for (var n = num_near; n + 1u < num_placed; n += 1u) {
        let j = four_bits(order, n);
        let parent = four_bits(parents, j);
        let window = words(windows[(j - 1u) * num_edges + eight_get(tree.placed, parent)]);
        var size = number_of(window.y);
#ifdef DEEP
        let is_inner = ((inner >> j) & 1u) == 1u;
        var before = number_of(0u);
        if (is_inner) {
          let sum = window.x + eight_get(shifts, j);
          before = sum_at(sum);
          size = minus(sum_at(sum + window.y), before);
        }
#endif
        let digit = divrem(numbers_get(lefts, parent), size);
        lefts = numbers_with(lefts, parent, digit.quotient);
        var entry = window.x + low_word(digit.remainder);
#ifdef DEEP
        if (is_inner) {
          let found = find(window.x, window.y, eight_get(shifts, j), before, digit.remainder);
          entry = found.entry;
          lefts = numbers_with(lefts, j, found.number);
        }
#endif
        place(&tree, j, four_bits(ranks, j), words(graph[entry]));
      }
      let low = tree.times.low;
      let high = tree.times.high;
      let increases_low = (low < vec4<u32>(low.yzw, high.x)) | is_last_low;
      let increases_high = (high < vec4<u32>(high.yzw, NONE)) | is_last_high;
      let is_within = eight_get(tree.times, num_placed - 1u) <= bounds[params.last + low.x];
      // Numbers before the bound units are left to another dispatch.
      let valid = !wide_less(id, begin) && tree.is_distinct && is_within && all(increases_low & increases_high);
      if (valid) {
        let slot = bucket + num_kept * params.num_lanes;
        for (var j = 0u; j < num_placed; j += 1u) {
          drawn[slot + j * plane] = eight_get(tree.placed, j);
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
  drawn[2u * params.num_lanes + 2u + number] = num_kept;
}
