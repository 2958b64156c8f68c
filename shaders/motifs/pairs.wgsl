// Two words that are loaded together. Drivers that fetch lane by lane (INT64) load one number of 64 bits twice as fast as its two words.
#ifdef INT64
alias Pair = u64;

fn words(pair: u64) -> vec2<u32> {
  return vec2<u32>(u32(pair & 0xfffffffflu), u32(pair >> 32u));
}
#else
alias Pair = vec2<u32>;

fn words(pair: vec2<u32>) -> vec2<u32> {
  return pair;
}
#endif
