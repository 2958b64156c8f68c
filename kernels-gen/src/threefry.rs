//! Threefry-2x32-20, the counter-based random number generator of Salmon et al. ("Parallel random numbers: as easy as 1, 2, 3",
//! SC 2011), and the one convention by which Sublane draws from it.
//!
//! A random number is a pure function of (seed, stream, index):
//!
//! - the 64-bit seed, as (low, high) words, is the root [`Key`];
//! - `stream` encrypts the 64-bit stream number under that key and takes the result as a new key, so that streams nest;
//! - block `index` of a key encrypts the 64-bit index and gives two words; word `n` is half `n % 2` of block `n / 2`.
//!
//! A key is either split into streams or drawn from, never both. `shaders/shared/threefry.wgsl` is the same in WGSL, bit for bit.

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
}
