// What the partial sums of each window are compared with: S1 and S2 are the sums of its activations and of their squares, and a row is
// `constant + per_sum * S1 - ((mean * S1 + 2^15) >> 16) - isqrt((z2 * S2 * variance) >> 8)`, all in 64 bits. An invocation computes all rows of
// eight windows of one group. A row is two vec4 for each eight, the windows with even numbers first; with WIDE each is one vec4 of low and one of
// high words.
#import wide

struct Params {
  taps: u32,
  // Eights of windows.
  columns: u32,
  // Eights of windows of all groups.
  count: u32,
  rows: u32,
  z2: u32,
  mean_low: u32,
  mean_high: u32,
}

@group(0) @binding(0) var<storage, read> columns: array<vec4<u32>>;
// Eight words each: constant, per_sum (64 bits), variance, and three that are not used.
@group(0) @binding(1) var<storage, read> rows: array<u32>;
@group(0) @binding(2) var<storage, read_write> limits: array<vec4<u32>>;
@group(0) @binding(3) var<uniform> params: Params;

// Rounds of `isqrt`: the root of a number below 2^56 has 28 bits.
const ROOT_BITS = 28u;

fn isqrt(x: vec2<u32>) -> u32 {
  var root = 0u;
  for (var bit = 1u << (ROOT_BITS - 1u); bit > 0u; bit >>= 1u) {
    let next = root | bit;
    if (!wide_less(x, wide_mul_words(next, next))) {
      root = next;
    }
  }
  return root;
}

fn limit(row: u32, s1: u32, s2: u32) -> vec2<u32> {
  let at = 8u * row;
  let s = vec2<u32>(s1, 0u);
  var sum = wide_add(vec2<u32>(rows[at], rows[at + 1u]), wide_mul(vec2<u32>(rows[at + 2u], rows[at + 3u]), s));
  let mean = wide_add(wide_mul(vec2<u32>(params.mean_low, params.mean_high), s), vec2<u32>(1u << 15u, 0u));
  sum = wide_sub(sum, vec2<u32>((mean.x >> 16u) | (mean.y << 16u), bitcast<u32>(bitcast<i32>(mean.y) >> 16u)));
  let variance = rows[at + 4u];
  if (variance > 0u && params.z2 > 0u) {
    let product = wide_mul(wide_mul_words(params.z2, s2), vec2<u32>(variance, 0u));
    sum = wide_sub(sum, vec2<u32>(isqrt(vec2<u32>((product.x >> 8u) | (product.y << 24u), product.y >> 8u)), 0u));
  }
  return sum;
}

// Windows of even numbers of the eight in two words, whose bytes 0, 2, 1 and 3 are windows 0, 1, 2 and 3.
fn even(words: vec2<u32>) -> vec4<u32> {
  return vec4<u32>(words.x, words.x >> 8u, words.y, words.y >> 8u) & vec4<u32>(0xffu);
}

fn odd(words: vec2<u32>) -> vec4<u32> {
  return vec4<u32>(words.x >> 16u, words.x >> 24u, words.y >> 16u, words.y >> 24u) & vec4<u32>(0xffu);
}

@compute @workgroup_size(64)
fn window_limits(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let at = (wid.x + wid.y * grid.x) * 64u + lane;
  if (at >= params.count) {
    return;
  }
  let column = at % params.columns;
  let group = at / params.columns;
  var s1 = array<vec4<u32>, 2>(vec4<u32>(0u), vec4<u32>(0u));
  var s2 = array<vec4<u32>, 2>(vec4<u32>(0u), vec4<u32>(0u));
  let pairs = (params.taps + 1u) / 2u;
  for (var pair = 0u; pair < pairs; pair += 1u) {
    let words = columns[(group * pairs + pair) * params.columns + column];
    let sides = array<vec4<u32>, 4>(even(words.xy), even(words.zw), odd(words.xy), odd(words.zw));
    s1[0] += sides[0] + sides[1];
    s1[1] += sides[2] + sides[3];
    s2[0] += sides[0] * sides[0] + sides[1] * sides[1];
    s2[1] += sides[2] * sides[2] + sides[3] * sides[3];
  }
  for (var row = 0u; row < params.rows; row += 1u) {
    for (var side = 0u; side < 2u; side += 1u) {
      var low = vec4<u32>(0u);
      var high = vec4<u32>(0u);
      for (var i = 0u; i < 4u; i += 1u) {
        let value = limit(row, s1[side][i], s2[side][i]);
        low[i] = value.x;
        high[i] = value.y;
      }
      let place = 2u * ((group * params.rows + row) * params.columns + column) + side;
#ifdef WIDE
      limits[2u * place] = low;
      limits[2u * place + 1u] = high;
#else
      limits[place] = low;
#endif
    }
  }
}
