// Path numbers: what each stratum is drawn, by which invocation, and which unit holds a number. For kernels with workgroups of GROUP
// invocations whose `params` name the strata, the replicates and the numbers of the units, and that bind `units`, UNIT_VECTORS pairs each, of
// which the first is the number of the unit's first path.
//
// A stratum has less than 2^32 numbers and a unit less than 2^30; ENUMERATE: a stratum has one number; WIDE: neither is bounded.
#import draw
#import pairs
#import wide

const GROUP = 64u;
// Neighbouring invocations that draw from neighbouring strata, or from the same ones for different replicates, so that they meet each unit
// together.
const TEAM = 8u;
// The units of the first and of the last number of the workgroup, so that the invocations search between them.
var<workgroup> bracket: array<u32, 2>;

// The last unit from `from` on, before `end`, that begins at path `id` or before it; `from` does. At most 64 iterations.
fn unit_of(id: vec2<u32>, from_unit: u32, end: u32) -> u32 {
  var found = from_unit;
  var step = 1u;
  while (step < end - found && !wide_less(id, words(units[(found + step) * UNIT_VECTORS]))) {
    found += step;
    step *= 2u;
  }
  while (step > 0u) {
    if (step < end - found && !wide_less(id, words(units[(found + step) * UNIT_VECTORS]))) {
      found += step;
    }
    step /= 2u;
  }
  return found;
}

// What stratum `index`, which begins at number `base`, is drawn; past all numbers if it passes 64 bits.
fn draw(key: vec2<u32>, index: vec2<u32>, base: vec2<u32>) -> vec2<u32> {
#ifdef ENUMERATE
  return base;
#else
#ifdef WIDE
  let width = vec2<u32>(params.width_low, params.width_high);
  let threshold = vec2<u32>(params.threshold_low, params.threshold_high);
  let id = wide_add(base, threefry_below(key, index, width, threshold));
#else
  let id = wide_add(base, vec2<u32>(threefry_below_word(key, index, params.width_low, params.threshold_low), 0u));
#endif
  return select(id, WIDE_MAX, wide_less(id, base));
#endif
}

fn find_bracket(group: u32, local: u32) {
  if (local < 2u) {
    let first = vec2<u32>(params.first_low, params.first_high);
    let width = vec2<u32>(params.width_low, params.width_high);
    let stratum = min((group + local) * (GROUP / TEAM) * params.turns * params.per_lane, params.num_strata);
    let id = wide_mul(wide_add(first, vec2<u32>(stratum, 0u)), width);
    // The last number may pass 64 bits.
    let passed = stratum > 0u && !wide_less(wide_mul(first, width), id);
    bracket[local] = unit_of(id, 0u, params.num_units);
    if (passed || !wide_less(id, vec2<u32>(params.end_low, params.end_high))) {
      bracket[local] = params.num_units - 1u;
    }
  }
}

// What an invocation draws: the key of its replicate; the first of its strata, counted from the round's first, and how many; its place among
// the buckets, in which those of a replicate are neighbours.
struct Share {
  key: vec2<u32>,
  first: u32,
  num_draws: u32,
  number: u32,
}

fn share_of(lane: u32) -> Share {
  let team = lane / TEAM;
  let member = lane % TEAM;
  let takes_turns = params.turns == TEAM;
  let replicate = select(member, 0u, takes_turns);
  let keys = params.keys[replicate / 2u];
  let first = team * params.turns * params.per_lane + select(0u, member, takes_turns);
  var num_draws = min(params.per_lane, (max(params.num_strata + params.turns - 1u, first) - first) / params.turns);
  if (replicate >= params.num_replicates) {
    num_draws = 0u;
  }
  let number = select(member * (params.num_lanes / TEAM) + team, lane, takes_turns);
  return Share(select(keys.xy, keys.zw, replicate % 2u == 1u), first, num_draws, number);
}

// Quotient and remainder by `length`, whose reciprocal is `inverse`; both numbers are below 2^30, so that the first quotient is at most
// 2^9 from the right one, the second at most 1, and no remainder passes 2^31.
fn short_divrem(number: u32, length: u32, inverse: f32) -> vec2<u32> {
  var quotient = u32(f32(number) * inverse);
  var rest = i32(number - quotient * length);
  let more = i32(floor(f32(rest) * inverse));
  quotient += u32(more);
  rest -= more * i32(length);
  if (rest < 0) {
    quotient -= 1u;
    rest += i32(length);
  }
  if (rest >= i32(length)) {
    quotient += 1u;
    rest -= i32(length);
  }
  return vec2<u32>(quotient, u32(rest));
}
