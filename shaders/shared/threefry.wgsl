// Threefry-2x32-20 and the drawing of random numbers from it. The convention, and the same in Rust: `kernels_gen::threefry`.

// Four rounds, then the key injection `step` of the schedule `inject`.
fn threefry_rounds(state: vec2<u32>, rotations: vec4<u32>, inject: vec2<u32>, step: u32) -> vec2<u32> {
  var x = state;
  x.x += x.y;
  x.y = ((x.y << rotations.x) | (x.y >> (32u - rotations.x))) ^ x.x;
  x.x += x.y;
  x.y = ((x.y << rotations.y) | (x.y >> (32u - rotations.y))) ^ x.x;
  x.x += x.y;
  x.y = ((x.y << rotations.z) | (x.y >> (32u - rotations.z))) ^ x.x;
  x.x += x.y;
  x.y = ((x.y << rotations.w) | (x.y >> (32u - rotations.w))) ^ x.x;
  return x + inject + vec2<u32>(0u, step);
}

// Encrypts `counter` under `key`: two random words.
fn threefry2x32(key: vec2<u32>, counter: vec2<u32>) -> vec2<u32> {
  let even = vec4<u32>(13u, 15u, 26u, 6u);
  let odd = vec4<u32>(17u, 29u, 16u, 24u);
  let parity = 0x1bd11bdau ^ key.x ^ key.y;
  var x = counter + key;
  x = threefry_rounds(x, even, vec2<u32>(key.y, parity), 1u);
  x = threefry_rounds(x, odd, vec2<u32>(parity, key.x), 2u);
  x = threefry_rounds(x, even, key, 3u);
  x = threefry_rounds(x, odd, vec2<u32>(key.y, parity), 4u);
  return threefry_rounds(x, even, vec2<u32>(parity, key.x), 5u);
}

// Key of stream `stream` (low, high word) of `key`.
fn threefry_stream(key: vec2<u32>, stream: vec2<u32>) -> vec2<u32> {
  return threefry2x32(key, stream);
}

// Word `n` of `key`.
fn threefry_word(key: vec2<u32>, n: u32) -> u32 {
  let block = threefry2x32(key, vec2<u32>(n >> 1u, 0u));
  return select(block.x, block.y, (n & 1u) == 1u);
}

// A float in [0, 1) from the top 24 bits of a random word.
fn threefry_uniform(word: u32) -> f32 {
  return f32(word >> 8u) * 0x1p-24f;
}
