// Sums over samples; the same in Rust: `motifs::paths::Tally`.
#import wide

struct Tally {
  // Of the counts, at most 2^64 - 1.
  sum: vec2<u32>,
  // Of their squares, at most 2^128 - 1.
  squares: WideProduct,
  valid: vec2<u32>,
  nonzero: vec2<u32>,
}

// The sum of two 128-bit numbers, at most 2^128 - 1.
fn squares_add(a: WideProduct, b: WideProduct) -> WideProduct {
  var sum = WideProduct(wide_add(a.low, b.low), wide_add(a.high, b.high));
  let carry = vec2<u32>(select(0u, 1u, wide_less(sum.low, b.low)), 0u);
  let passed = wide_less(sum.high, b.high);
  sum.high = wide_add(sum.high, carry);
  if (passed || wide_less(sum.high, carry)) {
    sum = WideProduct(WIDE_MAX, WIDE_MAX);
  }
  return sum;
}

fn tally_add(a: Tally, b: Tally) -> Tally {
  return Tally(
    wide_add_saturating(a.sum, b.sum),
    squares_add(a.squares, b.squares),
    wide_add(a.valid, b.valid),
    wide_add(a.nonzero, b.nonzero),
  );
}

fn tally_of(words: array<u32, 10>) -> Tally {
  return Tally(
    vec2<u32>(words[0], words[1]),
    WideProduct(vec2<u32>(words[2], words[3]), vec2<u32>(words[4], words[5])),
    vec2<u32>(words[6], words[7]),
    vec2<u32>(words[8], words[9]),
  );
}

fn tally_words(tally: Tally) -> array<u32, 10> {
  return array<u32, 10>(
    tally.sum.x,
    tally.sum.y,
    tally.squares.low.x,
    tally.squares.low.y,
    tally.squares.high.x,
    tally.squares.high.y,
    tally.valid.x,
    tally.valid.y,
    tally.nonzero.x,
    tally.nonzero.y,
  );
}
