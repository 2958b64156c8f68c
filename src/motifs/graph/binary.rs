//! The binary form of graphs: everything that is made of the edges, as it lies in memory.
//!
//! All numbers are little-endian. The header is magic (8 bytes), version, decimals, vertices and 0 (32 bits each), edges, entries of an
//! adjacency and pairs (64 bits each), and the CRC-32 of the arrays and of the header up to here (32 bits each). The arrays follow, in the
//! order of `arrays`.

use std::io::Read;
use std::path::Path;

use bytemuck::Pod;
use crc32fast::Hasher;
use rayon::prelude::*;

use super::{Adjacency, NO_PAIR, Pairs, SENTINEL, TemporalGraph, ranks};
use crate::error::{Error, Result};
use crate::files;
use crate::progress::{Part, Work};

/// First bytes of a file. The line ends in them break where a program takes the file for text.
pub(super) const MAGIC: [u8; 8] = *b"\x89SLTG\r\n\x1a";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 56;
/// Bytes that one thread checks at a time.
const BLOCK_BYTES: usize = 1 << 22;

/// Bytes of the arrays of a graph of so many vertices, edges, entries of an adjacency and pairs; `None` past 64 bits.
fn array_bytes([n, m, entries, pairs]: [u64; 4]) -> Option<u64> {
    // Edges, times and their pairs; offsets of both adjacencies and of the pairs; entries; destinations, starts and lists.
    let parts = [(m, 24), (n.checked_add(1)?, 12), (entries, 16), (pairs, 8), (1, 4), (m.checked_add(pairs)?, 4)];
    parts.iter().try_fold(0u64, |sum, &(count, bytes)| sum.checked_add(count.checked_mul(bytes)?))
}

impl TemporalGraph {
    /// Writes the graph to a file in the binary form, which [`TemporalGraph::open`] reads without making anything anew.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io).
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        files::write_atomic(path, &self.to_bytes())
    }

    /// The graph in the binary form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let counts = [u64::from(self.num_vertices), self.edges.len() as u64, self.outgoing.entries.len() as u64, self.pairs.len() as u64];
        let mut bytes = Vec::with_capacity(HEADER_BYTES + array_bytes(counts).unwrap_or(0) as usize);
        bytes.resize(HEADER_BYTES, 0);
        push(&mut bytes, self.edges.as_flattened(), u32::to_le);
        push(&mut bytes, &self.times, i64::to_le);
        for adjacency in [&self.outgoing, &self.incoming] {
            push(&mut bytes, &adjacency.offsets, u32::to_le);
            push(&mut bytes, adjacency.entries.as_flattened(), u32::to_le);
        }
        let Pairs { offsets, destinations, starts, list, of_edge } = &self.pairs;
        for words in [offsets, destinations, starts, list, of_edge.as_flattened()] {
            push(&mut bytes, words, u32::to_le);
        }
        let mut header = MAGIC.to_vec();
        for word in [VERSION, self.decimals, self.num_vertices, 0] {
            header.extend(word.to_le_bytes());
        }
        for count in &counts[1..] {
            header.extend(count.to_le_bytes());
        }
        header.extend(checksum(&bytes[HEADER_BYTES..]).finalize().to_le_bytes());
        header.extend(crc32fast::hash(&header).to_le_bytes());
        bytes[..HEADER_BYTES].copy_from_slice(&header);
        bytes
    }
}

fn push<T: Pod>(bytes: &mut Vec<u8>, values: &[T], to_little: impl Fn(T) -> T) {
    if cfg!(target_endian = "little") {
        bytes.extend_from_slice(bytemuck::cast_slice(values));
    } else {
        values.iter().for_each(|&value| bytes.extend_from_slice(bytemuck::bytes_of(&to_little(value))));
    }
}

/// CRC-32, by blocks in parallel.
fn checksum(bytes: &[u8]) -> Hasher {
    let block = |block: &[u8]| {
        let mut hasher = Hasher::new();
        hasher.update(block);
        hasher
    };
    // Order matters: each block is appended to what stands before it.
    bytes.par_chunks(BLOCK_BYTES).map(block).reduce(Hasher::new, |mut before, after| {
        before.combine(&after);
        before
    })
}

/// Reads arrays one after the other.
struct Source<'a, R> {
    reader: R,
    hasher: Hasher,
    part: Part<'a>,
}

impl<R: Read> Source<'_, R> {
    fn array<T: Pod>(&mut self, count: u64, from_little: impl Fn(T) -> T) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); count as usize];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        for block in bytes.chunks_mut(8 * BLOCK_BYTES) {
            self.reader.read_exact(block).map_err(truncated)?;
            self.hasher.combine(&checksum(block));
            self.part.advance(block.len() as u64)?;
        }
        if cfg!(target_endian = "big") {
            values.iter_mut().for_each(|value| *value = from_little(*value));
        }
        Ok(values)
    }

    fn words(&mut self, count: u64) -> Result<Vec<u32>> {
        self.array(count, u32::from_le)
    }

    fn couples(&mut self, count: u64) -> Result<Vec<[u32; 2]>> {
        self.array(count, |[a, b]: [u32; 2]| [u32::from_le(a), u32::from_le(b)])
    }
}

fn truncated(e: std::io::Error) -> Error {
    match e.kind() {
        std::io::ErrorKind::UnexpectedEof => damaged("it is shorter than its header says"),
        kind => Error::new(crate::ErrorKind::Io, format!("reading failed: {kind}")).with_source(e),
    }
}

fn damaged(why: &str) -> Error {
    Error::malformed(format!("the binary graph is damaged: {why}; convert the original again"))
}

/// Reads a graph of `len_bytes` in the binary form. What it returns is safe to index as its parts promise, whatever the file says.
pub(super) fn read(mut reader: impl Read, len_bytes: u64, work: &Work) -> Result<TemporalGraph> {
    let mut header = [0; HEADER_BYTES];
    reader.read_exact(&mut header).map_err(truncated)?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let count = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    if word(8) != VERSION && header.starts_with(&MAGIC) {
        let version = word(8);
        return Err(Error::unsupported(format!(
            "the binary graph has version {version}, this program reads version {VERSION}; convert the original again"
        )));
    }
    if !header.starts_with(&MAGIC) || word(52) != crc32fast::hash(&header[..52]) || word(20) != 0 {
        return Err(damaged("the checksum of its header is wrong"));
    }
    let (decimals, num_vertices) = (word(12), word(16));
    let [n, m, entries, num_pairs] = [u64::from(num_vertices), count(24), count(32), count(40)];
    let sizes = array_bytes([n, m, entries, num_pairs]).and_then(|bytes| bytes.checked_add(HEADER_BYTES as u64));
    if sizes != Some(len_bytes) {
        return Err(damaged(&format!("it has {len_bytes} bytes and its header says otherwise")));
    }
    if m > 1 << 31 || entries > m || num_pairs > m || decimals > crate::motifs::duration::MAX_DECIMALS {
        return Err(damaged("its header asks for what no graph has"));
    }

    let part = work.part("reading the graph", len_bytes - HEADER_BYTES as u64);
    let mut source = Source { reader, hasher: Hasher::new(), part };
    let edges = source.couples(m)?;
    let times = source.array(m, i64::from_le)?;
    let outgoing = Adjacency { offsets: source.words(n + 1)?, entries: source.couples(entries)? };
    let incoming = Adjacency { offsets: source.words(n + 1)?, entries: source.couples(entries)? };
    let pairs = Pairs {
        offsets: source.words(n + 1)?,
        destinations: source.words(num_pairs)?,
        starts: source.words(num_pairs + 1)?,
        list: source.words(m + num_pairs)?,
        of_edge: source.couples(m)?,
    };
    if source.hasher.finalize() != word(48) {
        return Err(damaged("its checksum is wrong"));
    }
    let graph = TemporalGraph { num_vertices, ranks: ranks(&times), edges, times, decimals, outgoing, incoming, pairs };
    match graph.fault() {
        Some(fault) => Err(damaged(fault)),
        None => Ok(graph),
    }
}

impl TemporalGraph {
    /// What would make later code index out of range, search in what is not sorted, or not end.
    fn fault(&self) -> Option<&'static str> {
        let (n, m, num_pairs) = (self.num_vertices, self.edges.len() as u32, self.pairs.len() as u32);
        let offsets = |offsets: &[u32], end: usize| {
            offsets.first() == Some(&0) && offsets.last().map(|&last| last as usize) == Some(end) && offsets.is_sorted()
        };
        if !self.edges.par_iter().all(|[u, v]| *u < n && *v < n) {
            return Some("an edge names a vertex that is not there");
        }
        if !self.times.is_sorted() {
            return Some("its times are not in order");
        }
        for adjacency in [&self.outgoing, &self.incoming] {
            if !offsets(&adjacency.offsets, adjacency.entries.len()) {
                return Some("offsets of an adjacency are wrong");
            }
            let right = |vertex: u32| {
                let list = &adjacency.entries[adjacency.range(vertex)];
                list.iter().all(|[index, other]| *index < m && *other < n) && list.is_sorted_by(|a, b| a[0] < b[0])
            };
            if !(0..n).into_par_iter().all(right) {
                return Some("entries of an adjacency are wrong");
            }
        }
        let Pairs { offsets: of_sources, destinations, starts, list, of_edge } = &self.pairs;
        if !offsets(of_sources, destinations.len()) || !offsets(starts, list.len()) {
            return Some("offsets of pairs are wrong");
        }
        let right = |vertex: u32| {
            let destinations = &destinations[self.pairs.of_source(vertex)];
            destinations.last().is_none_or(|&last| last < n) && destinations.is_sorted_by(|a, b| a < b)
        };
        if !(0..n).into_par_iter().all(right) {
            return Some("destinations of pairs are wrong");
        }
        let right = |pair: u32| match list[starts[pair as usize] as usize..starts[pair as usize + 1] as usize].split_last() {
            Some((&SENTINEL, [indices @ .., last])) => *last < m && indices.iter().chain([last]).is_sorted_by(|a, b| a < b),
            _ => false,
        };
        if !(0..num_pairs).into_par_iter().all(right) {
            return Some("the list of a pair is wrong");
        }
        let known = |[own, opposite]: &[u32; 2]| *own < num_pairs && (*opposite < num_pairs || *opposite == NO_PAIR);
        if !of_edge.par_iter().all(known) {
            return Some("an edge names a pair that is not there");
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use kernels_gen::threefry::Key;

    fn random(seed: u64, num_vertices: u32, num_edges: u64) -> TemporalGraph {
        let key = Key::new(seed);
        let below = |n: u64, end: u32| key.word(n) % end;
        let edge = |i: u64| (below(3 * i, num_vertices), below(3 * i + 1, num_vertices), i64::from(below(3 * i + 2, 9)) - 4);
        TemporalGraph::from_edges((0..num_edges).map(edge).collect(), num_vertices, 3).expect("builds")
    }

    fn load(bytes: &[u8]) -> Result<TemporalGraph> {
        read(bytes, bytes.len() as u64, &Work::quiet())
    }

    /// The bytes with right checksums.
    fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
        let crc = crc32fast::hash(&bytes[HEADER_BYTES..]);
        bytes[48..52].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..52]);
        bytes[52..56].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        for graph in [random(1, 7, 60), random(2, 1, 5), random(3, 300_000, 300_000), random(4, 5, 0)] {
            assert_eq!(load(&graph.to_bytes()).expect("reads"), graph);
        }
        let many = random(3, 300_000, 300_000).to_bytes();
        assert!(many.len() > 2 * BLOCK_BYTES);
        assert_eq!(checksum(&many).finalize(), crc32fast::hash(&many));
        let empty = TemporalGraph::from_edges(Vec::new(), 0, 0).expect("builds");
        assert_eq!(load(&empty.to_bytes()).expect("reads"), empty);
    }

    #[test]
    fn truncated_and_damaged_files_are_malformed() {
        let bytes = random(1, 7, 60).to_bytes();
        for len in (0..HEADER_BYTES).chain([HEADER_BYTES, 100, bytes.len() - 1]) {
            assert_eq!(load(&bytes[..len]).expect_err("truncated").kind(), ErrorKind::Malformed, "{len}");
        }
        assert_eq!(load(&[&bytes[..], b"x"].concat()).expect_err("longer").kind(), ErrorKind::Malformed);
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 0x10;
            let error = load(&broken).expect_err("damaged");
            let expected = if (8..12).contains(&at) { ErrorKind::Unsupported } else { ErrorKind::Malformed };
            assert_eq!(error.kind(), expected, "byte {at}: {error}");
        }
    }

    #[test]
    fn whatever_passes_the_checksums_is_safe_to_use() {
        let graph = random(1, 7, 40);
        let bytes = graph.to_bytes();
        let (mut refused, mut read) = (0, 0);
        for at in (8..bytes.len()).step_by(4).filter(|at| !(48..56).contains(at)) {
            let was = u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
            for value in [0, 1, 6, 7, 39, 40, was.wrapping_add(1), was.wrapping_sub(1), 1 << 31, u32::MAX] {
                let mut hostile = bytes.clone();
                hostile[at..at + 4].copy_from_slice(&value.to_le_bytes());
                let Ok(found) = load(&signed(hostile)) else {
                    refused += 1;
                    continue;
                };
                read += 1;
                // Panics where an index is out of range.
                found.summary();
                for (edge, [u, v]) in found.edges.iter().enumerate() {
                    let [own, opposite] = found.pairs.of_edge[edge];
                    for pair in [own, opposite, found.pairs.find(*u, *v)] {
                        assert!(found.pairs.edges(pair).iter().all(|&edge| found.times.get(edge as usize).is_some()));
                    }
                    for adjacency in [&found.outgoing, &found.incoming] {
                        assert!(adjacency.entries[adjacency.range(*u)].iter().all(|[edge, _]| found.edges.get(*edge as usize).is_some()));
                    }
                }
            }
        }
        assert!(refused > 1000 && read > 100, "{refused} {read}");
    }
}
