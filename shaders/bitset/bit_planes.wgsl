// A layer by bit-planes: every output is a sum over binary planes of the activations under the plane's bits, compared with what its rule says
// after each step, and stopped where it lies below.
//
// An invocation computes eight windows of four output channels, four binary planes in a round; it leaves after the round in which the last of its
// outputs ended. In the sums of a round two windows share a word, which 256 taps of at most 255 do not overflow; longer sums are moved to words of
// their own every 256 taps. With WIDE sums take 64 bits, and everything that is added up or compared has two words. Four taps are added before a sum
// is written: drivers without lanes of their own write sums under a mask.
#import wide

struct Params {
  // Windows of all images, and of one.
  windows: u32,
  positions: u32,
  // Eights of windows.
  columns: u32,
  // Eights of windows times fours of channels.
  count: u32,
  outputs: u32,
  outputs_of_group: u32,
  // Fours of channels of a group.
  fours_of_group: u32,
  taps: u32,
  rounds: u32,
  // Rows of `limits`: tests, and what makes the sum an output.
  rows: u32,
  with_residual: u32,
  // Every output is run to its end.
  audit: u32,
}

@group(0) @binding(0) var<storage, read> columns: array<vec4<u32>>;
// For each four of channels, round, and 32 taps: one vec4 for each channel, one word for each plane; the first tap is the highest bit.
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
// For each plane what a bit counts (two words), flags (1: a step ends, 2: a test) and the test's row. Then for each row but the last, and after
// those for the bias, two words for each channel, channels of a group filled up to fours.
@group(0) @binding(2) var<storage, read> tables: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> limits: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> residual: array<u32>;
@group(0) @binding(5) var<storage, read_write> results: array<u32>;
// Steps of each output, a byte, by channel (filled up) and window.
@group(0) @binding(6) var<storage, read_write> steps: array<vec2<u32>>;
@group(0) @binding(7) var<uniform> params: Params;

// Words of 32 taps between two moves to words of their own.
const WORDS_OF_CHUNK = 8u;

#ifdef WIDE
struct Sums {
  low: vec4<u32>,
  high: vec4<u32>,
}

fn zero() -> Sums {
  return Sums(vec4<u32>(0u), vec4<u32>(0u));
}

fn add(a: Sums, b: Sums) -> Sums {
  let low = a.low + b.low;
  return Sums(low, a.high + b.high + select(vec4<u32>(0u), vec4<u32>(1u), low < a.low));
}

fn subtract(a: Sums, b: Sums) -> Sums {
  return Sums(a.low - b.low, a.high - b.high - select(vec4<u32>(0u), vec4<u32>(1u), a.low < b.low));
}

fn all_of(value: vec2<u32>) -> Sums {
  return Sums(vec4<u32>(value.x), vec4<u32>(value.y));
}

// `coef` times counts below 2^31, modulo 2^64.
fn times(coef: vec2<u32>, count: vec4<u32>) -> Sums {
  var product = zero();
  for (var i = 0u; i < 4u; i += 1u) {
    let whole = wide_mul_words(coef.x, count[i]);
    product.low[i] = whole.x;
    product.high[i] = whole.y + coef.y * count[i];
  }
  return product;
}

fn is_negative(a: Sums) -> vec4<bool> {
  return a.high >= vec4<u32>(0x80000000u);
}

fn limit(row: u32, group: u32, column: u32, side: u32) -> Sums {
  let at = 4u * ((group * params.rows + row) * params.columns + column) + 2u * side;
  return Sums(limits[at], limits[at + 1u]);
}

fn value_at(a: Sums, i: u32) -> vec2<u32> {
  return vec2<u32>(a.low[i], a.high[i]);
}
#else
alias Sums = vec4<i32>;

fn zero() -> Sums {
  return vec4<i32>(0);
}

fn add(a: Sums, b: Sums) -> Sums {
  return a + b;
}

fn subtract(a: Sums, b: Sums) -> Sums {
  return a - b;
}

fn all_of(value: vec2<u32>) -> Sums {
  return vec4<i32>(bitcast<i32>(value.x));
}

fn times(coef: vec2<u32>, count: vec4<u32>) -> Sums {
  return bitcast<vec4<i32>>(coef.x * count);
}

fn is_negative(a: Sums) -> vec4<bool> {
  return a < vec4<i32>(0);
}

fn limit(row: u32, group: u32, column: u32, side: u32) -> Sums {
  return bitcast<vec4<i32>>(limits[2u * ((group * params.rows + row) * params.columns + column) + side]);
}

fn value_at(a: Sums, i: u32) -> vec2<u32> {
  return vec2<u32>(bitcast<u32>(a[i]), 0u);
}
#endif

// Two words of a channel from the tables behind the planes.
fn of_channel(row: u32, channel: u32) -> vec2<u32> {
  let fours = params.count / params.columns;
  let words = tables[4u * params.rounds + 2u * (row * fours + channel / 4u) + (channel & 3u) / 2u];
  return select(words.xy, words.zw, (channel & 1u) == 1u);
}

// Four windows in a word, as two words of two: windows that are neighbours share one.
fn unpacked(words: vec2<u32>) -> vec4<u32> {
  let low = words & vec2<u32>(0x00ff00ffu);
  let high = (words >> vec2<u32>(8u)) & vec2<u32>(0x00ff00ffu);
  return vec4<u32>(low.x, high.x, low.y, high.y);
}

// The sum of those of four taps whose bit is set; the first tap's is the highest.
fn under(t0: vec4<u32>, t1: vec4<u32>, t2: vec4<u32>, t3: vec4<u32>, bits: i32) -> vec4<u32> {
  // All bits are the highest one.
  let mask = bitcast<vec4<u32>>((vec4<i32>(bits) << vec4<u32>(0u, 1u, 2u, 3u)) >> vec4<u32>(31u));
  return (t0 & vec4<u32>(mask.x)) + (t1 & vec4<u32>(mask.y)) + (t2 & vec4<u32>(mask.z)) + (t3 & vec4<u32>(mask.w));
}

@compute @workgroup_size(64)
fn bit_planes(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = (wid.x + wid.y * grid.x) * 64u + lane;
  if (index >= params.count) {
    return;
  }
  let column = index % params.columns;
  let four = index / params.columns;
  let group = four / params.fours_of_group;
  // The first channel of the four within its group, and how many of the four there are.
  let first = four % params.fours_of_group * 4u;
  let present = min(4u, params.outputs_of_group - first);
  let first_output = group * params.outputs_of_group + first;
  let words = (params.taps + 31u) / 32u;
  let pairs = (params.taps + 1u) / 2u;

  // By channel and, second, by side: windows with even and with odd numbers.
  var sums: array<Sums, 8>;
  var made: array<vec4<u32>, 8>;
  var alive: array<vec4<u32>, 8>;
  for (var i = 0u; i < 8u; i += 1u) {
    let channel = i >> 1u;
    var start = all_of(of_channel(params.rows - 1u, 4u * four + channel));
    var there = vec4<u32>(0u);
    for (var k = 0u; k < 4u; k += 1u) {
      let window = column * 8u + 2u * k + (i & 1u);
      if (window < params.windows && channel < present) {
        there[k] = 1u;
        if (params.with_residual == 1u) {
          let place = (window / params.positions * params.outputs + first_output + channel) * params.positions + window % params.positions;
          let value = residual[place];
          var one = zero();
#ifdef WIDE
          one.low[k] = value;
          one.high[k] = bitcast<u32>(bitcast<i32>(value) >> 31u);
#else
          one[k] = bitcast<i32>(value);
#endif
          start = add(start, one);
        }
      }
    }
    sums[i] = start;
    made[i] = vec4<u32>(0u);
    alive[i] = there;
  }

  for (var round = 0u; round < params.rounds; round += 1u) {
    // By plane and channel.
    var even: array<vec4<u32>, 16>;
    var odd: array<vec4<u32>, 16>;
    for (var i = 0u; i < 16u; i += 1u) {
      even[i] = vec4<u32>(0u);
      odd[i] = vec4<u32>(0u);
    }
    for (var chunk = 0u; chunk < words; chunk += WORDS_OF_CHUNK) {
      var a00 = vec4<u32>(0u);
      var a01 = vec4<u32>(0u);
      var a02 = vec4<u32>(0u);
      var a03 = vec4<u32>(0u);
      var a10 = vec4<u32>(0u);
      var a11 = vec4<u32>(0u);
      var a12 = vec4<u32>(0u);
      var a13 = vec4<u32>(0u);
      var a20 = vec4<u32>(0u);
      var a21 = vec4<u32>(0u);
      var a22 = vec4<u32>(0u);
      var a23 = vec4<u32>(0u);
      var a30 = vec4<u32>(0u);
      var a31 = vec4<u32>(0u);
      var a32 = vec4<u32>(0u);
      var a33 = vec4<u32>(0u);
      let end = min(words, chunk + WORDS_OF_CHUNK);
      for (var word = chunk; word < end; word += 1u) {
        let at = 4u * ((four * params.rounds + round) * words + word);
        var w0 = bitcast<vec4<i32>>(weights[at]);
        var w1 = bitcast<vec4<i32>>(weights[at + 1u]);
        var w2 = bitcast<vec4<i32>>(weights[at + 2u]);
        var w3 = bitcast<vec4<i32>>(weights[at + 3u]);
        let end_pair = min(pairs, 16u * word + 16u);
        var place = (group * pairs + 16u * word) * params.columns + column;
        for (var pair = 16u * word; pair < end_pair; pair += 2u) {
          // The second pair may lie past the last one of the group: its weights have no bits.
          let first_pair = columns[place];
          let second_pair = columns[place + params.columns];
          place += 2u * params.columns;
          let t0 = unpacked(first_pair.xy);
          let t1 = unpacked(first_pair.zw);
          let t2 = unpacked(second_pair.xy);
          let t3 = unpacked(second_pair.zw);
          a00 += under(t0, t1, t2, t3, w0.x);
          a10 += under(t0, t1, t2, t3, w0.y);
          a20 += under(t0, t1, t2, t3, w0.z);
          a30 += under(t0, t1, t2, t3, w0.w);
          w0 <<= vec4<u32>(4u);
          a01 += under(t0, t1, t2, t3, w1.x);
          a11 += under(t0, t1, t2, t3, w1.y);
          a21 += under(t0, t1, t2, t3, w1.z);
          a31 += under(t0, t1, t2, t3, w1.w);
          w1 <<= vec4<u32>(4u);
          a02 += under(t0, t1, t2, t3, w2.x);
          a12 += under(t0, t1, t2, t3, w2.y);
          a22 += under(t0, t1, t2, t3, w2.z);
          a32 += under(t0, t1, t2, t3, w2.w);
          w2 <<= vec4<u32>(4u);
          a03 += under(t0, t1, t2, t3, w3.x);
          a13 += under(t0, t1, t2, t3, w3.y);
          a23 += under(t0, t1, t2, t3, w3.z);
          a33 += under(t0, t1, t2, t3, w3.w);
          w3 <<= vec4<u32>(4u);
        }
      }
      let moved = array<vec4<u32>, 16>(a00, a01, a02, a03, a10, a11, a12, a13, a20, a21, a22, a23, a30, a31, a32, a33);
      for (var i = 0u; i < 16u; i += 1u) {
        even[i] += moved[i] & vec4<u32>(0xffffu);
        odd[i] += moved[i] >> vec4<u32>(16u);
      }
    }

    for (var p = 0u; p < 4u; p += 1u) {
      let plane = tables[4u * round + p];
      for (var channel = 0u; channel < 4u; channel += 1u) {
        sums[2u * channel] = add(sums[2u * channel], times(plane.xy, even[4u * p + channel]));
        sums[2u * channel + 1u] = add(sums[2u * channel + 1u], times(plane.xy, odd[4u * p + channel]));
      }
      if ((plane.z & 1u) != 0u) {
        for (var i = 0u; i < 8u; i += 1u) {
          made[i] += alive[i];
        }
      }
      if ((plane.z & 2u) != 0u) {
        let even_limit = limit(plane.w, group, column, 0u);
        let odd_limit = limit(plane.w, group, column, 1u);
        let at = 4u * params.rounds + 2u * (plane.w * (params.count / params.columns) + four);
        let thresholds = array<vec4<u32>, 2>(tables[at], tables[at + 1u]);
        for (var channel = 0u; channel < 4u; channel += 1u) {
          let words = thresholds[channel / 2u];
          let threshold = all_of(select(words.xy, words.zw, (channel & 1u) == 1u));
          let even_rest = subtract(subtract(sums[2u * channel], even_limit), threshold);
          alive[2u * channel] = select(alive[2u * channel], vec4<u32>(0u), is_negative(even_rest));
          let odd_rest = subtract(subtract(sums[2u * channel + 1u], odd_limit), threshold);
          alive[2u * channel + 1u] = select(alive[2u * channel + 1u], vec4<u32>(0u), is_negative(odd_rest));
        }
      }
    }
    var any = vec4<u32>(0u);
    for (var i = 0u; i < 8u; i += 1u) {
      any |= alive[i];
    }
    if (params.audit == 0u && all(any == vec4<u32>(0u))) {
      break;
    }
  }

  for (var i = 0u; i < 8u; i += 1u) {
    let channel = i >> 1u;
    let value = subtract(sums[i], limit(params.rows - 1u, group, column, i & 1u));
    for (var k = 0u; k < 4u; k += 1u) {
      let window = column * 8u + 2u * k + (i & 1u);
      if (window < params.windows && channel < present) {
        let place = (window / params.positions * params.outputs + first_output + channel) * params.positions + window % params.positions;
        var result = vec2<u32>(0u);
        if (params.audit == 1u || alive[i][k] == 1u) {
          result = value_at(value, k);
        }
#ifdef WIDE
        results[2u * place] = result.x;
        results[2u * place + 1u] = result.y;
#else
        results[place] = result.x;
#endif
      }
    }
  }
  for (var channel = 0u; channel < 4u; channel += 1u) {
    let pairs = made[2u * channel] | (made[2u * channel + 1u] << vec4<u32>(8u));
    steps[(4u * four + channel) * params.columns + column] = vec2<u32>(pairs.x | (pairs.y << 16u), pairs.z | (pairs.w << 16u));
  }
}
