// Random numbers below a bound; the same in Rust: `kernels_gen::threefry::Key::below`.
#import threefry
#import wide

// Number `index`, below 2^56, of `key`: each number below `bound`, which is at least 1, is equally likely. `threshold` is 2^64 modulo
// `bound`, which the host knows. Attempt n takes the 64 bits of block index + n * 2^56; their product with the bound has the number in its
// high half, unless its low half is below the threshold (Lemire, "Fast random integer generation in an interval", 2019). An attempt fails
// less often than every second time; the last one counts in any case. The most iterations: 64.
fn threefry_below(key: vec2<u32>, index: vec2<u32>, bound: vec2<u32>, threshold: vec2<u32>) -> vec2<u32> {
  var drawn = vec2<u32>(0u, 0u);
  for (var attempt = 0u; attempt < 64u; attempt += 1u) {
    let product = wide_product(threefry2x32(key, vec2<u32>(index.x, index.y | (attempt << 24u))), bound);
    drawn = product.high;
    if (!wide_less(product.low, threshold)) {
      break;
    }
  }
  return drawn;
}

// `threefry_below` for bounds of one word.
fn threefry_below_word(key: vec2<u32>, index: vec2<u32>, bound: u32, threshold: u32) -> u32 {
  var drawn = 0u;
  for (var attempt = 0u; attempt < 64u; attempt += 1u) {
    let block = threefry2x32(key, vec2<u32>(index.x, index.y | (attempt << 24u)));
    // The product's low half is (low.x, high.x).
    let low = wide_mul_words(block.x, bound);
    let high = wide_add(wide_mul_words(block.y, bound), vec2<u32>(low.y, 0u));
    drawn = high.y;
    if (high.x > 0u || low.x >= threshold) {
      break;
    }
  }
  return drawn;
}
