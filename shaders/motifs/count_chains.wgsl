// Counts the chains around what was found and adds up the counts. A chain takes one edge from each list of a gap, with increasing keys; a
// count is the product over the gaps.
//
// The lists of a gap are merged by increasing key, and an edge of list j adds the chains that end in list j - 1 to those that end in list
// j; of equal keys the later list comes first, so that no chain takes one key twice. Each invocation has an equal share of the placements. It
// stops after `max_steps` and goes on in the next dispatch, since drivers bound how long a loop runs.
//
// A merge of at most four lists (EIGHT: eight) lives in vectors, LONG: of any number in arrays.
#import tally
#import wide

struct Params {
  num_lanes: u32,
  per_lane: u32,
  // Neighbouring invocations that work for one replicate: their share is of what it has.
  team: u32,
  num_lists: u32,
  // Place in `pairs` of the lists' keys.
  list: u32,
  // Word of `found` at which the buckets begin.
  records: u32,
  // Whether this goes on with what the dispatch before it left.
  resume: u32,
  // Elements of lists and turns of the loop before it stops.
  max_steps: u32,
  // Bits: whether list i is the last of its gap; whether it is alone in its gap.
  gap_ends: u32,
  alone: u32,
}

@group(0) @binding(0) var<storage, read> drawn: array<u32>;
// As `look_up_lists` leaves it, the numbers of placements turned into prefix sums.
@group(0) @binding(1) var<storage, read> found: array<u32>;
@group(0) @binding(2) var<storage, read> pairs: array<u32>;
// For each invocation, word by word: sum (2), squares (4), valid (2), nonzero (2) so far; then, of unfinished work: next placement; first list of
// the gap and a mark if that is being merged; product (2); heads (32); ways (64).
@group(0) @binding(3) var<storage, read_write> state: array<u32>;
// Becomes 1 if an invocation is not done.
@group(0) @binding(4) var<storage, read_write> unfinished: array<u32>;
@group(0) @binding(5) var<uniform> params: Params;

const NEXT = 10u;
const GAP = 11u;
const PRODUCT = 12u;
const HEADS = 14u;
const WAYS = 46u;

const MERGING = 0x80000000u;
const NONE = 0xffffffffu;
// Elements a turn of the loop takes, and the iterations each counts for.
const TURN = 8u;
#ifdef LONG
const COST = 34u;
#else
const COST = 1u;
#endif

// Where the lists of the gap that begins with list `gap` end.
fn last_of_gap(gap: u32) -> u32 {
  return gap + countTrailingZeros(params.gap_ends >> gap);
}

// The key that ends the gap that begins with list `gap`.
fn end_of_gap(record: u32, gap: u32) -> u32 {
  let gaps_before = countOneBits(params.gap_ends & ((1u << gap) - 1u));
  return found[record + (params.num_lists + gaps_before) * params.per_lane * params.num_lanes];
}

fn add_to_state(lane: u32, tally: Tally) {
  var words: array<u32, 10>;
  for (var w = 0u; w < 10u; w += 1u) {
    words[w] = state[w * params.num_lanes + lane];
  }
  words = tally_words(tally_add(tally_of(words), tally));
  for (var w = 0u; w < 10u; w += 1u) {
    state[w * params.num_lanes + lane] = words[w];
  }
}

// Lists that are being merged: where each is, the key there, and the chains that end in what was passed of it. Fronts of lists that are not
// there are past every end.
#ifdef LONG
const MOST = 32u;

struct Merge {
  heads: array<u32, MOST>,
  fronts: array<u32, MOST>,
  low: array<u32, MOST>,
  high: array<u32, MOST>,
}

// Takes the smallest key of all `size` lists, of equal ones that of the last list, if it is below `end`; says whether it is. At most 33
// iterations.
fn merge_step(merge: ptr<function, Merge>, size: u32, end: u32) -> bool {
  var least = (*merge).fronts[0];
  var which = 0u;
  for (var j = 1u; j < size; j += 1u) {
    if ((*merge).fronts[j] <= least) {
      least = (*merge).fronts[j];
      which = j;
    }
  }
  if (least >= end) {
    return false;
  }
  var before = vec2<u32>(1u, 0u);
  if (which > 0u) {
    before = vec2<u32>((*merge).low[which - 1u], (*merge).high[which - 1u]);
  }
  let sum = wide_add_saturating(vec2<u32>((*merge).low[which], (*merge).high[which]), before);
  (*merge).low[which] = sum.x;
  (*merge).high[which] = sum.y;
  let head = (*merge).heads[which] + 1u;
  (*merge).heads[which] = head;
  (*merge).fronts[which] = pairs[params.list + head];
  return true;
}

fn set_list(merge: ptr<function, Merge>, j: u32, head: u32, front: u32, ways: vec2<u32>) {
  (*merge).heads[j] = head;
  (*merge).fronts[j] = front;
  (*merge).low[j] = ways.x;
  (*merge).high[j] = ways.y;
}

fn head_of(merge: ptr<function, Merge>, j: u32) -> u32 {
  return (*merge).heads[j];
}

fn ways_of(merge: ptr<function, Merge>, j: u32) -> vec2<u32> {
  return vec2<u32>((*merge).low[j], (*merge).high[j]);
}
#else
struct Four {
  heads: vec4<u32>,
  fronts: vec4<u32>,
  low: vec4<u32>,
  high: vec4<u32>,
}

#ifdef EIGHT
const MOST = 8u;

struct Merge {
  first: Four,
  second: Four,
}
#else
const MOST = 4u;

struct Merge {
  first: Four,
}
#endif

// Only the last of those that hold.
fn last_of(some: vec4<bool>) -> vec4<bool> {
  return vec4<bool>(some.x && !(some.y || some.z || some.w), some.y && !(some.z || some.w), some.z && !some.w, some.w);
}

// Moves the list that is `taken` one on; `before` are the chains that end before the first list.
fn take(four: Four, taken: vec4<bool>, before: vec2<u32>) -> Four {
  let low_before = vec4<u32>(before.x, four.low.xyz);
  let low_sum = four.low + low_before;
  let carry = select(vec4<u32>(0u), vec4<u32>(1u), low_sum < low_before);
  let high_before = vec4<u32>(before.y, four.high.xyz);
  let high_sum = four.high + high_before;
  let high_carried = high_sum + carry;
  let passed = (high_sum < high_before) | (high_carried < carry);
  let most = vec4<u32>(NONE);
  let heads = four.heads + select(vec4<u32>(0u), vec4<u32>(1u), taken);
  return Four(
    heads,
    four.fronts,
    select(four.low, select(low_sum, most, passed), taken),
    select(four.high, select(high_carried, most, passed), taken),
  );
}

fn pick(values: vec4<u32>, taken: vec4<bool>) -> u32 {
  return select(select(select(values.x, values.y, taken.y), values.z, taken.z), values.w, taken.w);
}

// Takes the smallest key of all lists, of equal ones that of the last list, if it is below `end`; says whether it is.
fn merge_step(merge: ptr<function, Merge>, size: u32, end: u32) -> bool {
  let first = (*merge).first;
#ifdef EIGHT
  let second = (*merge).second;
  let four = min(first.fronts, second.fronts);
#else
  let four = first.fronts;
#endif
  let two = min(four.xy, four.zw);
  let least = min(two.x, two.y);
  if (least >= end) {
    return false;
  }
#ifdef EIGHT
  let taken2 = last_of(second.fronts == vec4<u32>(least));
  let is_second = any(taken2);
  let taken1 = last_of(first.fronts == vec4<u32>(least)) & vec4<bool>(!is_second);
  var next1 = take(first, taken1, vec2<u32>(1u, 0u));
  var next2 = take(second, taken2, vec2<u32>(first.low.w, first.high.w));
  let front = vec4<u32>(pairs[params.list + select(pick(next1.heads, taken1), pick(next2.heads, taken2), is_second)]);
  next1.fronts = select(first.fronts, front, taken1);
  next2.fronts = select(second.fronts, front, taken2);
  *merge = Merge(next1, next2);
#else
  let taken = last_of(first.fronts == vec4<u32>(least));
  var next = take(first, taken, vec2<u32>(1u, 0u));
  next.fronts = select(first.fronts, vec4<u32>(pairs[params.list + pick(next.heads, taken)]), taken);
  *merge = Merge(next);
#endif
  return true;
}

fn set_list(merge: ptr<function, Merge>, j: u32, head: u32, front: u32, ways: vec2<u32>) {
  let here = vec4<u32>(j & 3u) == vec4<u32>(0u, 1u, 2u, 3u);
#ifdef EIGHT
  let old = (*merge).second;
  let new2 = Four(
    select(old.heads, vec4<u32>(head), here),
    select(old.fronts, vec4<u32>(front), here),
    select(old.low, vec4<u32>(ways.x), here),
    select(old.high, vec4<u32>(ways.y), here),
  );
  if (j >= 4u) {
    (*merge).second = new2;
    return;
  }
#endif
  let four = (*merge).first;
  (*merge).first = Four(
    select(four.heads, vec4<u32>(head), here),
    select(four.fronts, vec4<u32>(front), here),
    select(four.low, vec4<u32>(ways.x), here),
    select(four.high, vec4<u32>(ways.y), here),
  );
}

fn four_of(merge: ptr<function, Merge>, j: u32) -> Four {
#ifdef EIGHT
  if (j >= 4u) {
    return (*merge).second;
  }
#endif
  return (*merge).first;
}

fn head_of(merge: ptr<function, Merge>, j: u32) -> u32 {
  return pick(four_of(merge, j).heads, vec4<u32>(j & 3u) == vec4<u32>(0u, 1u, 2u, 3u));
}

fn ways_of(merge: ptr<function, Merge>, j: u32) -> vec2<u32> {
  let here = vec4<u32>(j & 3u) == vec4<u32>(0u, 1u, 2u, 3u);
  let four = four_of(merge, j);
  return vec2<u32>(pick(four.low, here), pick(four.high, here));
}
#endif

@compute @workgroup_size(64)
fn count_chains(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let lane = (wid.x + wid.y * grid.x) * 64u + local;
  if (lane >= params.num_lanes) {
    return;
  }
  let lanes = params.num_lanes;
  let plane = params.per_lane * lanes;
  let first_lane = lane / params.team * params.team;
  let first_item = found[2u * first_lane];
  let total = found[2u * (first_lane + params.team)] - first_item;
  let share = (total + params.team - 1u) / params.team;
  let end = first_item + min(total, (lane - first_lane + 1u) * share);
  var item = first_item + min(total, (lane - first_lane) * share);
  var merge = Merge();
  var product = vec2<u32>(1u, 0u);
  // First list of the gap that is next or, if one is, being merged; and how many lists are merged.
  var gap = 0u;
  var size = 0u;
  var merging = false;
  var high = 0u;

  var tally = Tally();
  if (params.resume == 0u) {
    tally.valid.x = drawn[2u * lanes + 2u + lane];
  } else {
    item = state[NEXT * lanes + lane];
  }
  if (item >= end) {
    if (params.resume == 0u) {
      add_to_state(lane, tally);
      state[NEXT * lanes + lane] = item;
    }
    return;
  }
  // The bucket that holds the placement, and the slot in it.
  var low_bucket = first_lane;
  var high_bucket = first_lane + params.team;
  while (high_bucket - low_bucket > 1u) {
    let middle = low_bucket + (high_bucket - low_bucket) / 2u;
    if (found[2u * middle] <= item) {
      low_bucket = middle;
    } else {
      high_bucket = middle;
    }
  }
  var bucket = low_bucket;
  var slot = item - found[2u * bucket];
  var bucket_size = found[2u * bucket + 2u] - found[2u * bucket];
  if (params.resume != 0u) {
    let mark = state[GAP * lanes + lane];
    gap = mark & ~MERGING;
    merging = (mark & MERGING) != 0u;
    product = vec2<u32>(state[PRODUCT * lanes + lane], state[(PRODUCT + 1u) * lanes + lane]);
    if (merging) {
      size = last_of_gap(gap) + 1u - gap;
      high = end_of_gap(params.records + slot * lanes + bucket, gap);
      for (var j = 0u; j < MOST; j += 1u) {
        let head = state[(HEADS + j) * lanes + lane];
        let ways = vec2<u32>(state[(WAYS + 2u * j) * lanes + lane], state[(WAYS + 2u * j + 1u) * lanes + lane]);
        set_list(&merge, j, head, select(NONE, pairs[params.list + head], j < size), ways);
      }
    }
  }

  var steps = 0u;
  while (item < end && steps < params.max_steps) {
    steps += 1u;
    if (!merging && gap < params.num_lists) {
      // Begin a gap.
      let record = params.records + slot * lanes + bucket;
      if (((params.alone >> gap) & 1u) == 1u) {
        product = wide_mul_saturating(product, vec2<u32>(found[record + gap * plane], 0u));
        gap += 1u;
      } else {
        size = last_of_gap(gap) + 1u - gap;
        high = end_of_gap(record, gap);
        for (var j = 0u; j < MOST; j += 1u) {
          let is_there = j < size;
          let head = select(0u, found[record + min(gap + j, params.num_lists - 1u) * plane], is_there);
          set_list(&merge, j, head, select(NONE, pairs[params.list + head], is_there), vec2<u32>(0u, 0u));
        }
        steps += MOST + 1u;
        merging = true;
      }
    }
    // A few elements a turn, so that beginning and ending, which all wait for, weigh less.
    var goes_on = merging;
    for (var n = 0u; n < TURN && goes_on; n += 1u) {
      goes_on = merge_step(&merge, size, high);
      steps += COST;
    }
    steps += 1u;
    if (merging && !goes_on) {
      product = wide_mul_saturating(product, ways_of(&merge, size - 1u));
      gap += size;
      merging = false;
    }
    let is_zero = (product.x | product.y) == 0u;
    if (!merging && (gap == params.num_lists || is_zero)) {
      // The placement is done.
      tally.sum = wide_add_saturating(tally.sum, product);
      tally.squares = squares_add(tally.squares, wide_product(product, product));
      tally.nonzero.x += select(1u, 0u, is_zero);
      product = vec2<u32>(1u, 0u);
      gap = 0u;
      item += 1u;
      slot += 1u;
      if (slot == bucket_size && item < end) {
        slot = 0u;
        // Empty buckets have the same sum before them as the next one.
        bucket += 1u;
        while (found[2u * bucket + 2u] <= item) {
          bucket += 1u;
          steps += 1u;
        }
        bucket_size = found[2u * bucket + 2u] - found[2u * bucket];
      }
    }
  }

  add_to_state(lane, tally);
  state[NEXT * lanes + lane] = item;
  if (item < end) {
    unfinished[0] = 1u;
    state[GAP * lanes + lane] = gap | select(0u, MERGING, merging);
    state[PRODUCT * lanes + lane] = product.x;
    state[(PRODUCT + 1u) * lanes + lane] = product.y;
    if (merging) {
      for (var j = 0u; j < MOST; j += 1u) {
        let ways = ways_of(&merge, j);
        state[(HEADS + j) * lanes + lane] = head_of(&merge, j);
        state[(WAYS + 2u * j) * lanes + lane] = ways.x;
        state[(WAYS + 2u * j + 1u) * lanes + lane] = ways.y;
      }
    }
  }
}
