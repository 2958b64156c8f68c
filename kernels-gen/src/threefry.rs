//! Threefry-2x32-20, the counter-based random number generator of Salmon et al. ("Parallel random numbers: as easy as 1, 2, 3",
//! SC 2011), and the one convention by which Sublane draws from it.
//!
//! A random number is a pure function of (seed, stream, index):
//!
//! - the 64-bit seed, as (low, high) words, is the root [`Key`];
//! - `stream` encrypts the 64-bit stream number under that key and takes the result as a new key, so that streams nest;
//! - block `index` of a key encrypts the 64-bit index and gives two words; word `n` is half `n % 2` of block `n / 2`.
//!
//! - number `i` below a bound ([`Key::below`]) takes block `i`, and where that is refused blocks `i + 2^56`, `i + 2 * 2^56` and so on.
//!
//! A key is either split into streams or drawn from, never both. `shaders/shared/threefry.wgsl` and, for numbers below a bound,
//! `shaders/motifs/draw.wgsl` are the same in WGSL, bit for bit.

/// Blocks that one number below a bound looks at before it takes what it has.
const ATTEMPTS: u64 = 64;

/// Words of one encryption: 20 rounds of Threefry-2x32.
pub fn threefry2x32(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [u32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];
    let schedule = [key[0], key[1], 0x1bd1_1bda ^ key[0] ^ key[1]];
    let [mut a, mut b] = [counter[0].wrapping_add(schedule[0]), counter[1].wrapping_add(schedule[1])];
    for round in 0..20 {
        a = a.wrapping_add(b);
        b = b.rotate_left(ROTATIONS[round % 8]) ^ a;
        if round % 4 == 3 {
            let step = round / 4 + 1;
            a = a.wrapping_add(schedule[step % 3]);
            b = b.wrapping_add(schedule[(step + 1) % 3]).wrapping_add(step as u32);
        }
    }
    [a, b]
}

/// A source of random words: a seed, or a stream of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u32; 2]);

impl Key {
    /// The root key of `seed`.
    pub fn new(seed: u64) -> Self {
        Key([seed as u32, (seed >> 32) as u32])
    }

    /// The key of those words (see [`Key::words`]).
    pub fn from_words(words: [u32; 2]) -> Self {
        Key(words)
    }

    /// The key of stream number `stream` of this key.
    #[must_use]
    pub fn stream(self, stream: u64) -> Self {
        Key(self.block(stream))
    }

    /// The two words of block `index`.
    pub fn block(self, index: u64) -> [u32; 2] {
        threefry2x32(self.0, [index as u32, (index >> 32) as u32])
    }

    /// Word `n`.
    pub fn word(self, n: u64) -> u32 {
        self.block(n / 2)[(n % 2) as usize]
    }

    /// Word `n` as a float in [0, 1).
    pub fn uniform(self, n: u64) -> f32 {
        uniform(self.word(n))
    }

    /// Number `index`, below 2^56, of this key: each number below `bound`, which is at least 1, is equally likely.
    ///
    /// The 64 bits of a block times the bound have the number in their high half, unless the low half is below 2^64 modulo the bound: then
    /// the next block has its turn (Lemire, "Fast random integer generation in an interval", 2019). That happens less often than every
    /// second time; the block of the 64th attempt counts in any case.
    pub fn below(self, index: u64, bound: u64) -> u64 {
        let mut drawn = 0;
        for attempt in 0..ATTEMPTS {
            let [low, high] = self.block(index | attempt << 56);
            let product = u128::from(u64::from(low) | u64::from(high) << 32) * u128::from(bound);
            drawn = (product >> 64) as u64;
            let rest = product as u64;
            // What is not below the bound is not below the remainder either: most draws need no division.
            if rest >= bound || rest >= bound.wrapping_neg() % bound {
                break;
            }
        }
        drawn
    }

    /// The key's two words, as kernels take them in their parameters.
    pub fn words(self) -> [u32; 2] {
        self.0
    }
}

/// A float in [0, 1) from the top 24 bits of a random word; every value is a multiple of 2^-24, so it is exact.
pub fn uniform(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_random123() {
        assert_eq!(threefry2x32([0, 0], [0, 0]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry2x32([u32::MAX; 2], [u32::MAX; 2]), [0x1cb9_96fc, 0xbb00_2be7]);
        assert_eq!(threefry2x32([0x1319_8a2e, 0x0370_7344], [0x243f_6a88, 0x85a3_08d3]), [0xc492_3a9c, 0x483d_f7a0]);
    }

    #[test]
    fn words_are_halves_of_blocks_and_streams_are_blocks_as_keys() {
        let key = Key::new(0x0123_4567_89ab_cdef);
        assert_eq!(key.words(), [0x89ab_cdef, 0x0123_4567]);
        let index = 5 + (7u64 << 32);
        assert_eq!(key.block(index), threefry2x32([0x89ab_cdef, 0x0123_4567], [5, 7]));
        assert_eq!([key.word(2 * index), key.word(2 * index + 1)], key.block(index));
        assert_eq!(key.stream(index).words(), key.block(index));
    }

    #[test]
    fn uniform_covers_the_unit_interval_without_its_end() {
        assert_eq!(uniform(0), 0.0);
        assert_eq!(uniform(0xff), 0.0);
        assert_eq!(uniform(1 << 31), 0.5);
        assert_eq!(uniform(u32::MAX), 1.0 - 1.0 / 16_777_216.0);
        let mean = (0..4096).map(|n| f64::from(Key::new(7).uniform(n))).sum::<f64>() / 4096.0;
        assert!((mean - 0.5).abs() < 0.02, "mean {mean}");
    }

    #[test]
    fn numbers_below_a_bound_are_equally_likely() {
        // 99.9 % of chi-square statistics of so many degrees of freedom are below.
        let critical = [(1, 10.83), (2, 13.82), (4, 18.47), (6, 22.46), (9, 27.88)];
        for (degrees, critical) in critical {
            let (cells, draws) = (degrees + 1, 60_000u64);
            // Small numbers, and the remainders of large ones: of those, draws that refuse nothing favour 0.
            for bound in [cells, cells << 60] {
                let mut counts = vec![0u64; cells as usize];
                for n in 0..draws {
                    let drawn = Key::new(3).stream(bound).below(n, bound);
                    assert!(drawn < bound);
                    counts[(drawn % cells) as usize] += 1;
                }
                let mean = draws as f64 / cells as f64;
                let chi_square: f64 = counts.iter().map(|&c| (c as f64 - mean).powi(2) / mean).sum();
                assert!(chi_square < critical, "below {bound}: {counts:?}, {chi_square}");
            }
        }
    }

    #[test]
    fn refused_blocks_are_followed_by_the_next_attempt() {
        let key = Key::new(5);
        let wide = |block: [u32; 2]| u64::from(block[0]) | u64::from(block[1]) << 32;
        assert_eq!([key.below(8, 0), key.below(8, 1)], [0, 0]);
        assert_eq!(key.below(9, 1 << 32), wide(key.block(9)) >> 32, "a power of two refuses nothing");
        // 2^63 + 1 refuses a block with probability one half.
        let bound = (1u64 << 63) + 1;
        let product = |n: u64| u128::from(wide(key.block(n))) * u128::from(bound);
        let accepted = |n: u64| product(n) as u64 >= (1 << 63) - 1;
        let mut attempts = [0; 3];
        for n in 0..1000 {
            let attempt = (0..64).find(|a| accepted(n | a << 56)).expect("one in 2^64 has none");
            assert_eq!(key.below(n, bound), (product(n | attempt << 56) >> 64) as u64);
            attempts[attempt.min(2) as usize] += 1;
        }
        assert!(attempts.iter().all(|&n| n > 150), "{attempts:?}");
    }
}
