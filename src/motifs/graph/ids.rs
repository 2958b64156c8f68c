//! Ids of vertices, numbered in order of first appearance.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// An id as it stands in the file. Two ids are the same vertex where their texts are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id<'a> {
    /// A decimal number below 2^64, without leading zeros.
    Number(u64),
    /// Anything else.
    Text(&'a [u8]),
}

/// Numbers for ids. Small numeric ids are looked up in a table, others in hash maps.
pub(super) struct Ids<'a> {
    /// Number plus one of each small id, 0 for one that is not there.
    table: Vec<u32>,
    /// Ids below are small: the table stays in proportion to the text.
    small: u64,
    numbers: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    texts: HashMap<&'a [u8], u32>,
    /// Ids by number.
    pub names: Vec<Id<'a>>,
}

impl<'a> Ids<'a> {
    /// No ids; for a text of `len_bytes`.
    pub fn new(len_bytes: usize) -> Self {
        Ids { table: Vec::new(), small: len_bytes as u64 / 4, numbers: HashMap::default(), texts: HashMap::new(), names: Vec::new() }
    }

    /// The number of `id`, a new one if it has none.
    #[inline]
    pub fn number(&mut self, id: Id<'a>) -> u32 {
        let next = self.names.len() as u32;
        let number = match id {
            Id::Number(id) if id < self.small => {
                let id = id as usize;
                if id >= self.table.len() {
                    self.table.resize((id + 1).next_power_of_two(), 0);
                }
                let place = &mut self.table[id];
                if *place == 0 {
                    *place = next + 1;
                }
                *place - 1
            }
            Id::Number(id) => *self.numbers.entry(id).or_insert(next),
            Id::Text(id) => *self.texts.entry(id).or_insert(next),
        };
        if number == next {
            self.names.push(id);
        }
        number
    }
}

/// Hashes one `u64`: the finaliser of SplitMix64.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let mut x = (self.0 ^ value).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = x ^ (x >> 31);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbered_as_they_appear() {
        let mut ids = Ids::new(400);
        let given = [Id::Number(99), Id::Number(u64::MAX), Id::Text(b"99"), Id::Number(0), Id::Text(b""), Id::Number(100)];
        for (number, id) in given.into_iter().enumerate() {
            assert_eq!(ids.number(id), number as u32);
        }
        for (number, id) in given.into_iter().enumerate() {
            assert_eq!(ids.number(id), number as u32);
        }
        assert_eq!(ids.names, given);
        assert_eq!(ids.table.len(), 128);
    }
}
