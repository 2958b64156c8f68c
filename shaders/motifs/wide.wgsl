// Unsigned 64-bit integers, which WebGPU does not have, as (low, high) words.

// The largest number, at which saturating arithmetic stays.
const WIDE_MAX = vec2<u32>(0xffffffffu, 0xffffffffu);

// The low and the high 64 bits of a product of two 64-bit numbers.
struct WideProduct {
  low: vec2<u32>,
  high: vec2<u32>,
}

struct WideQuotient {
  quotient: vec2<u32>,
  remainder: vec2<u32>,
}

fn wide_less(a: vec2<u32>, b: vec2<u32>) -> bool {
  return select(a.y < b.y, a.x < b.x, a.y == b.y);
}

// Modulo 2^64.
fn wide_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < b.x));
}

// Modulo 2^64.
fn wide_sub(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn wide_add_saturating(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let sum = wide_add(a, b);
  return select(sum, WIDE_MAX, wide_less(sum, b));
}

// The whole product of two words, by halves of words: WGSL has no product that keeps the high word.
fn wide_mul_words(a: u32, b: u32) -> vec2<u32> {
  let a0 = a & 0xffffu;
  let a1 = a >> 16u;
  let b0 = b & 0xffffu;
  let b1 = b >> 16u;
  // Neither sum passes 2^32: (2^16 - 1)^2 + 2^16 - 1 = (2^16 - 1) * 2^16.
  let middle = a1 * b0 + ((a0 * b0) >> 16u);
  let other = a0 * b1 + (middle & 0xffffu);
  return vec2<u32>(a * b, a1 * b1 + (middle >> 16u) + (other >> 16u));
}

// Modulo 2^64.
fn wide_mul(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = wide_mul_words(a.x, b.x);
  return vec2<u32>(low.x, low.y + a.x * b.y + a.y * b.x);
}

// All 128 bits.
fn wide_product(a: vec2<u32>, b: vec2<u32>) -> WideProduct {
  let low = wide_mul_words(a.x, b.x);
  // Neither sum passes 2^64: (2^32 - 1)^2 + 2^32 - 1 = (2^32 - 1) * 2^32.
  let middle = wide_add(wide_mul_words(a.y, b.x), vec2<u32>(low.y, 0u));
  let other = wide_add(wide_mul_words(a.x, b.y), vec2<u32>(middle.x, 0u));
  let high = wide_add(wide_mul_words(a.y, b.y), vec2<u32>(middle.y, 0u));
  return WideProduct(vec2<u32>(low.x, other.x), wide_add(high, vec2<u32>(other.y, 0u)));
}

fn wide_mul_saturating(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let product = wide_product(a, b);
  return select(product.low, WIDE_MAX, any(product.high != vec2<u32>(0u, 0u)));
}

// Near `a`: relative error at most 2^-22, since a conversion and the sum each err by at most 2^-23.
fn wide_to_float(a: vec2<u32>) -> f32 {
  return f32(a.y) * 0x1p32f + f32(a.x);
}

// `a` divided by `b`, which is not 0. Exact. One division of words where both are below 2^32; else digits of about 18 bits, each estimated
// in floats from below. The most iterations: 8.
fn wide_divrem(a: vec2<u32>, b: vec2<u32>) -> WideQuotient {
  if ((a.y | b.y) == 0u) {
    let quotient = a.x / b.x;
    return WideQuotient(vec2<u32>(quotient, 0u), vec2<u32>(a.x - quotient * b.x, 0u));
  }
  // The two conversions err by 2^-22 each, division by 2.5 and the product by 1 unit of 2^-23, together by less than 2^-20; so an
  // estimate is never above the quotient, and what is left of the quotient is below 2^-18 of it, or 1. A quotient of 64 bits takes 6 steps.
  let scale = (1.0 - 0x1p-19f) / wide_to_float(b);
  var quotient = vec2<u32>(0u, 0u);
  var remainder = a;
  for (var step = 0u; step < 8u; step += 1u) {
    if (wide_less(remainder, b)) {
      break;
    }
    let estimate = max(floor(wide_to_float(remainder) * scale), 1.0);
    // Exact: a power of two, and the difference of a float and its own leading digits.
    let high = floor(estimate * 0x1p-32f);
    let digit = vec2<u32>(u32(estimate - high * 0x1p32f), u32(high));
    quotient = wide_add(quotient, digit);
    remainder = wide_sub(remainder, wide_mul(digit, b));
  }
  return WideQuotient(quotient, remainder);
}
