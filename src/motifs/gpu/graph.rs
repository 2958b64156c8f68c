//! Graphs and keys in device memory.

use bytemuck::Pod;
use kernels_gen::DType;

use crate::device::{Device, DeviceTensor};
use crate::error::{Error, Result};
use crate::motifs::TemporalGraph;
use crate::motifs::graph::{Adjacency, Pairs};
use crate::motifs::paths::Keys;

/// What kernels need of a graph whatever the motif and delta.
#[derive(Debug, Clone)]
pub(in crate::motifs) struct GpuGraph {
    pub device: Device,
    /// (source, destination) of each edge.
    pub edges: DeviceTensor,
    /// (pair, opposite pair) of each edge.
    pub of_edge: DeviceTensor,
    /// Edges by source, and by destination, as [`adjacency_pieces`]; `None` where paths are numbered on the processor.
    pub adjacencies: Option<[DeviceTensor; 2]>,
    pub num_edges: u32,
    /// Entries of an adjacency: edges that are no loops.
    pub num_entries: u32,
    pub num_vertices: u32,
}

/// Keys of a graph for one tie policy and delta.
#[derive(Debug, Clone)]
pub(in crate::motifs) struct GpuKeys {
    /// As [`bounds_pieces`].
    pub bounds: DeviceTensor,
    /// Key of each edge; one word where it is the edge's index.
    pub of_edge: DeviceTensor,
    /// First pair of each source, destination of each pair, where each list begins, the lists' keys.
    pub pairs: DeviceTensor,
    /// Where in `pairs` the parts after the first begin.
    pub parts: [u32; 3],
    /// Number of keys, and where in `bounds` the second part begins.
    pub num_keys: u32,
    pub is_strict: bool,
    /// Most edges of one ordered pair within delta.
    pub longest: u32,
    /// Most iterations of a search in the list of a pair or among the pairs of a source.
    pub max_search: u32,
}

/// Entries, then the first entry of each vertex and the end.
pub(super) fn adjacency_pieces(adjacency: &Adjacency) -> [&[u32]; 2] {
    [bytemuck::cast_slice(&adjacency.entries), &adjacency.offsets]
}

/// The smallest key within delta before each key, then the largest after each, then the key of each edge where that is not its index.
pub(super) fn bounds_pieces<'k>(keys: &'k Keys<'_>) -> [&'k [u32]; 3] {
    [&keys.first, &keys.last, keys.of_edge.unwrap_or(&[])]
}

/// First pair of each source, destination of each pair, where each list begins, the lists' keys.
pub(super) fn pairs_parts<'k>(pairs: &'k Pairs, keys: &'k Keys<'_>) -> [&'k [u32]; 4] {
    [&pairs.offsets, &pairs.destinations, &pairs.starts, &keys.list]
}

/// Where the parts of [`pairs_parts`] after the first begin.
pub(super) fn part_starts(parts: [&[u32]; 4]) -> [u32; 3] {
    let [a, b, c, _] = parts.map(|part| part.len() as u32);
    [a, a + b, a + b + c]
}

/// Refuses what one binding of `device` does not hold.
pub(in crate::motifs) fn check_binding(device: &Device, what: &str, bytes: u64) -> Result<()> {
    let limit = device.info().limits.max_binding_bytes;
    if bytes <= limit {
        return Ok(());
    }
    let name = &device.info().name;
    Err(Error::limit(format!("{what} takes {bytes} bytes in one binding, {name} allows {limit}; take a smaller graph or --engine cpu")))
}

/// Most iterations of a search in the list of a pair or among the pairs of a source.
pub(super) fn max_search(pairs: &Pairs) -> u32 {
    let lengths = |starts: &[u32]| starts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
    // A search halves what is left until nothing is, and looks once more whether that is so.
    lengths(&pairs.offsets).max(lengths(&pairs.starts)).checked_ilog2().map_or(1, |log| log + 2)
}

/// Copies words to the device as one tensor that a kernel can bind; at least one element, since a binding is never empty.
pub(in crate::motifs) fn upload<T: Pod>(device: &Device, what: &str, words: &[T]) -> Result<DeviceTensor> {
    upload_pieces(device, what, &[bytemuck::cast_slice(words)])
}

/// [`upload`] of words piece after piece.
pub(in crate::motifs) fn upload_pieces(device: &Device, what: &str, pieces: &[&[u32]]) -> Result<DeviceTensor> {
    let total: usize = pieces.iter().map(|piece| piece.len()).sum();
    check_binding(device, what, 4 * total as u64)?;
    let pieces: Vec<&[u8]> = if total == 0 { vec![&[0; 4]] } else { pieces.iter().map(|piece| bytemuck::cast_slice(piece)).collect() };
    DeviceTensor::from_pieces(device, DType::U32, &[total.max(1)], &pieces)
}

impl GpuGraph {
    /// Copies `graph` to the device, with its adjacencies where paths are to be numbered there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) where a part does not fit one binding, with its size;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn upload(device: &Device, graph: &TemporalGraph, with_adjacencies: bool) -> Result<Self> {
        let edges = upload(device, "the list of edges", &graph.edges)?;
        let of_edge = upload(device, "the list of pairs of edges", &graph.pairs.of_edge)?;
        let by_vertex = |adjacency: &Adjacency| upload_pieces(device, "the list of edges by vertex", &adjacency_pieces(adjacency));
        let adjacencies = match with_adjacencies {
            true => Some([by_vertex(&graph.outgoing)?, by_vertex(&graph.incoming)?]),
            false => None,
        };
        Ok(GpuGraph {
            device: device.clone(),
            edges,
            of_edge,
            adjacencies,
            num_edges: graph.num_edges() as u32,
            num_entries: graph.outgoing.entries.len() as u32,
            num_vertices: graph.num_vertices,
        })
    }
}

impl GpuKeys {
    /// Copies `keys` of `graph` to the device; errors as [`GpuGraph::upload`].
    pub fn upload(device: &Device, graph: &TemporalGraph, keys: &Keys<'_>) -> Result<Self> {
        let pairs = &graph.pairs;
        let parts = pairs_parts(pairs, keys);
        let total: u64 = parts.iter().map(|part| part.len() as u64).sum();
        check_binding(device, "the list of pairs", 4 * total)?;
        Ok(GpuKeys {
            max_search: max_search(pairs),
            bounds: upload_pieces(device, "the windows of keys", &bounds_pieces(keys))?,
            of_edge: upload(device, "the keys of edges", keys.of_edge.unwrap_or(&[]))?,
            pairs: upload_pieces(device, "the pair lists", &parts)?,
            parts: part_starts(parts),
            num_keys: keys.first.len() as u32,
            is_strict: keys.of_edge.is_some(),
            longest: keys.longest_window(pairs),
        })
    }
}
