// Embeddings of the part of a motif around one or two fixed edges; what that is for, and the same in Rust: `src/motifs/paths/embed.rs`.
//
// The kernel has the bindings `bounds`, of each key the smallest key within delta before it, then (from `last`) the largest after it, then
// (STRICT, from `keys`) the key of each edge; and `pairs`, the words of the pair lists. Its parameters have the words `starts` and `list`, the
// places in `pairs` where lists begin and of the lists' keys; `last`; `keys`; and `embedding`. The latter has 6 bits the number of steps, 1
// whether the first fixed edge is the later one, 2 for each placed edge its gap, 6 whether each slot is used; then a byte each step: 2 bits
// the phase, 3 the slot, 3 the placed edges it bounds.

const NO_PAIR = 0xffffffffu;

// Marks an entry of a side that no match holds.
const DEAD = 0x80000000u;

// Gaps, and phases; odd phases go to later edges.
const BEFORE_A = 0u;
const BETWEEN = 1u;
const AFTER_B = 2u;
const BEFORE = 0u;
const FORWARD = 1u;
const AFTER = 3u;

struct Embedded {
  found: bool,
  // Keys of the first and the last edge.
  start: u32,
  end: u32,
  // Keys that enclose each placed edge, both excluded.
  low: vec3<u32>,
  high: vec3<u32>,
}

// The list of each slot: where it begins and ends in `pairs`.
var<private> slots: array<vec2<u32>, 6>;

fn key_of(edge: u32) -> u32 {
#ifdef STRICT
  return bounds[params.keys + edge];
#else
  return edge;
#endif
}

// The list of a pair; an empty one for none.
fn list_of(pair: u32) -> vec2<u32> {
  if (pair == NO_PAIR) {
    return vec2<u32>(0u, 0u);
  }
  // The sentinel is left out.
  return vec2<u32>(params.list + pairs[params.starts + pair], params.list + pairs[params.starts + pair + 1u] - 1u);
}

fn uses_slot(slot: u32) -> bool {
  return ((params.embedding[0].x >> (13u + slot)) & 1u) == 1u;
}

// The first place from `begin` on, before `end`, whose word is at least `value`; `end` if there is none. At most 32 iterations.
fn first_in_pairs(begin: u32, end: u32, value: u32) -> u32 {
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

// Embeds the part around fixed edges of those keys, with the lists of `slots`. At most 60 steps with a search each.
fn embed(first: u32, second: u32) -> Embedded {
  let header = params.embedding[0].x;
  let num_steps = header & 63u;
  let swapped = ((header >> 6u) & 1u) == 1u;
  let gaps = (vec3<u32>(header) >> vec3<u32>(7u, 9u, 11u)) & vec3<u32>(3u);
  let a = select(first, second, swapped);
  let b = select(second, first, swapped);
  let low = select(vec3<u32>(a), vec3<u32>(b), gaps == vec3<u32>(AFTER_B));
  let high = select(vec3<u32>(b), vec3<u32>(a), gaps == vec3<u32>(BEFORE_A));
  var result = Embedded(true, a, b, low, high);
  var phase = BEFORE;
  var key = a;
  var word = 0u;
  for (var i = 0u; i < num_steps && result.found; i += 1u) {
    if ((i & 3u) == 0u) {
      let at = (i >> 2u) + 1u;
      word = params.embedding[at >> 2u][at & 3u];
    }
    let step = word & 255u;
    word >>= 8u;
    if ((step & 3u) != phase) {
      phase = step & 3u;
      key = select(b, a, phase <= FORWARD);
    }
    let up = phase & 1u;
    let list = slots[(step >> 2u) & 7u];
    let at = first_in_pairs(list.x, list.y, key + up);
    if (at == select(list.x, list.y, up == 1u)) {
      result.found = false;
    } else {
      key = pairs[at + up - 1u];
      result.start = select(result.start, key, phase == BEFORE);
      result.end = select(result.end, key, phase == AFTER);
      result.found = phase != FORWARD || key < b;
      let bounded = ((vec3<u32>(step) >> vec3<u32>(5u, 6u, 7u)) & vec3<u32>(1u)) == vec3<u32>(1u);
      result.low = select(result.low, vec3<u32>(key), bounded & vec3<bool>(up == 1u));
      result.high = select(result.high, vec3<u32>(key), bounded & vec3<bool>(up == 0u));
    }
  }
  result.found = result.found && result.end <= bounds[params.last + result.start];
  return result;
}

// The window of placed edge `j`: its first key, and the one behind its last.
fn window_of(found: Embedded, j: u32) -> vec2<u32> {
  let gap = (params.embedding[0].x >> (7u + 2u * j)) & 3u;
  if (gap == BEFORE_A) {
    return vec2<u32>(bounds[found.end], found.high[j]);
  }
  if (gap == BETWEEN) {
    return vec2<u32>(found.low[j] + 1u, found.high[j]);
  }
  return vec2<u32>(found.low[j] + 1u, bounds[params.last + found.start] + 1u);
}
