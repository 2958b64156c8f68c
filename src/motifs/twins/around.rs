//! What the twins of the kernels that import `embed.wgsl` share: keys, lists and sides as their buffers hold them.

use std::borrow::Cow;
use std::ops::Range;

use crate::motifs::graph::NO_PAIR;
use crate::motifs::paths::{EMBEDDING_WORDS, Embedding, Keys, NUM_SLOTS, SideEdges};

/// What is embedded, and in which lists.
pub(super) struct Around<'a> {
    pub embedding: Embedding,
    pub keys: Keys<'a>,
    starts: &'a [u32],
}

impl<'a> Around<'a> {
    /// From the words of the embedding and (starts, list, last, keys), the first and the last parameters of the kernels.
    pub fn new(params: &[u32], lists: &[u32], bounds: &'a [u32], pairs: &'a [u32], is_strict: bool) -> Self {
        let [starts, list, last, keys] = [0, 1, 2, 3].map(|i| lists[i] as usize);
        let keys = Keys {
            of_edge: is_strict.then(|| &bounds[keys..]),
            list: Cow::Borrowed(&pairs[list..]),
            first: bounds[..last].to_vec(),
            last: bounds[last..2 * last].to_vec(),
        };
        Around { embedding: Embedding::of_words(&params[..EMBEDDING_WORDS]), keys, starts: &pairs[starts..] }
    }

    /// Where the list of a pair lies among the keys.
    pub fn list(&self, pair: u32) -> Range<usize> {
        match pair {
            NO_PAIR => 0..0,
            pair => self.starts[pair as usize] as usize..self.starts[pair as usize + 1] as usize - 1,
        }
    }

    /// The lists around one edge of that pair and opposite pair.
    pub fn slots(&self, [own, opposite]: [u32; 2]) -> [Range<usize>; NUM_SLOTS] {
        [self.list(own), self.list(opposite), 0..0, 0..0, 0..0, 0..0]
    }
}

/// A side whose offsets begin at word `offsets`.
pub(super) fn side(words: &[u32], offsets: u32) -> SideEdges<'_> {
    let (entries, offsets) = words.split_at(offsets as usize);
    SideEdges { offsets: Cow::Borrowed(offsets), entries: Cow::Borrowed(bytemuck::cast_slice(entries)) }
}

/// Pair `at` of a buffer of two words each.
pub(super) fn pair_of(words: &[u32], at: u32) -> [u32; 2] {
    [words[2 * at as usize], words[2 * at as usize + 1]]
}
