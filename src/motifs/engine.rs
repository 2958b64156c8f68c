//! What numbers paths and draws from them.

use std::sync::OnceLock;

use kernels_gen::AdapterClass;

use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::motifs::estimate::NUM_REPLICATES;
use crate::motifs::gpu::{GpuGraph, GpuKeys, GpuLists, GpuPaths};
use crate::motifs::paths::{Draws, Keys, Numbered, Paths, Recipe, Strata};
use crate::motifs::{Anchor, CountOptions, Motif, Prune, TemporalGraph};
use kernels_gen::threefry::Key;

/// What numbers paths and draws from them. All engines give the same sums, bit for bit.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Engine {
    /// The cores of the processor.
    #[default]
    Cpu,
    /// A device.
    Gpu(Device),
}

impl Engine {
    /// Name on the command line and in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Engine::Cpu => "cpu",
            Engine::Gpu(_) => "gpu",
        }
    }

    /// Makes ready to number paths of `graph` under `keys`.
    ///
    /// # Errors
    ///
    /// Of a device: [`ErrorKind::Limit`](crate::ErrorKind::Limit) where a part of the graph does not fit one binding, with its size;
    /// [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory); [`ErrorKind::DeviceLost`](crate::ErrorKind::DeviceLost).
    pub(in crate::motifs) fn open<'g>(&self, graph: &'g TemporalGraph, keys: &'g Keys<'g>) -> Result<OpenEngine<'g>> {
        let gpu = match self {
            Engine::Cpu => None,
            Engine::Gpu(device) => {
                check_memory(device, graph, keys)?;
                Some(OnDevice::upload(device, graph, keys)?)
            }
        };
        Ok(OpenEngine { graph, keys, gpu })
    }
}

/// About what the buffers of a round of draws take at most.
const ROUND_BYTES: u64 = 32 << 20;

/// Refuses a graph that the device's memory limit has no room for, before anything is copied.
fn check_memory(device: &Device, graph: &TemporalGraph, keys: &Keys<'_>) -> Result<()> {
    let Some(limit) = device.memory_limit_bytes() else { return Ok(()) };
    let (edges, vertices) = (graph.edges.len() as u64, u64::from(graph.num_vertices));
    let (pairs, num_keys) = (graph.pairs.len() as u64, keys.first.len() as u64);
    // Edges, their pairs, both adjacencies, windows of keys, keys of edges, pair lists, the edges of two sides, units.
    let words = 2 * edges + 2 * edges + (4 * edges + 2 * vertices) + 2 * num_keys + 2 * edges + (vertices + 2 * pairs + edges + pairs);
    let bytes = 4 * (words + 4 * edges + 10 * (edges + 1)) + ROUND_BYTES;
    let free = limit.saturating_sub(device.used_bytes());
    if bytes <= free {
        return Ok(());
    }
    let message = format!(
        "a graph of {edges} edges takes about {bytes} bytes on the device, {free} of the memory limit of {limit} are free; raise the limit to \
         that, take a smaller graph or --engine cpu"
    );
    Err(Error::new(ErrorKind::OutOfMemory, message))
}

/// An engine with a graph.
pub(in crate::motifs) struct OpenEngine<'g> {
    graph: &'g TemporalGraph,
    keys: &'g Keys<'g>,
    gpu: Option<OnDevice>,
}

/// A graph in device memory.
struct OnDevice {
    graph: GpuGraph,
    keys: GpuKeys,
    /// Made for the first tree.
    lists: OnceLock<GpuLists>,
}

impl OnDevice {
    fn upload(device: &Device, graph: &TemporalGraph, keys: &Keys<'_>) -> Result<Self> {
        let numbers = device.target().class != AdapterClass::Software;
        Ok(OnDevice {
            graph: GpuGraph::upload(device, graph, numbers)?,
            keys: GpuKeys::upload(device, graph, keys)?,
            lists: OnceLock::new(),
        })
    }

    fn is_software(&self) -> bool {
        self.graph.device.target().class == AdapterClass::Software
    }

    fn lists(&self, graph: &TemporalGraph) -> Result<&GpuLists> {
        if let Some(lists) = self.lists.get() {
            return Ok(lists);
        }
        let lists = GpuLists::upload(&self.graph.device, graph)?;
        Ok(self.lists.get_or_init(|| lists))
    }

    /// Numbers the paths of an anchor in the graph; its tables take at most `max_bytes`.
    fn number(
        &self,
        graph: &TemporalGraph,
        keys: &Keys<'_>,
        motif: &Motif,
        anchor: &Anchor,
        prune: Prune,
        max_bytes: u64,
    ) -> Result<GpuPaths> {
        let (on_device, on_device_keys) = (&self.graph, &self.keys);
        if anchor.is_tree() && prune == Prune::Off {
            return GpuPaths::number_tree(on_device, self.lists(graph)?, on_device_keys, &Recipe::new(motif, anchor), max_bytes);
        }
        // A software driver runs kernels on the same cores, where searches that branch apart take several times as long as on the processor
        // itself.
        if self.is_software() {
            let paths = Paths::new(graph, keys, motif, anchor, prune, max_bytes)?;
            return GpuPaths::upload(on_device, on_device_keys, &paths, u64::MAX);
        }
        GpuPaths::number(on_device, on_device_keys, motif, anchor, prune, max_bytes, u64::MAX)
    }
}

impl<'g> OpenEngine<'g> {
    /// What a reader should know of how the paths of an anchor are numbered.
    pub fn note(&self, anchor: &Anchor) -> Option<String> {
        let on_processor = !anchor.is_tree() && self.gpu.as_ref().is_some_and(OnDevice::is_software);
        on_processor.then(|| "the adapter is software, so the processor numbered the paths and the adapter drew and counted".into())
    }

    /// Numbers the paths of an anchor; the table of units takes at most `max_bytes`.
    pub fn number(&self, motif: &Motif, anchor: &Anchor, prune: Prune, max_bytes: u64) -> Result<Box<dyn Numbered + 'g>> {
        Ok(match &self.gpu {
            None => Box::new(Paths::new(self.graph, self.keys, motif, anchor, prune, max_bytes)?),
            Some(gpu) => Box::new(gpu.number(self.graph, self.keys, motif, anchor, prune, max_bytes)?),
        })
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Times, in milliseconds, of the kernels of ten rounds of draws spread over the paths of an anchor, on a device. `samples` are the draws of
/// the run they stand for; delta, ties and seed are those of `options`.
///
/// # Errors
///
/// As [`count`](crate::motifs::count()).
pub fn phases(
    device: &Device,
    graph: &TemporalGraph,
    motif: &Motif,
    anchor: &Anchor,
    options: &CountOptions,
    prune: Prune,
    samples: u64,
) -> Result<Vec<(String, f64)>> {
    let keys = Keys::new(graph, options.delta, options.ties);
    let gpu = OnDevice::upload(device, graph, &keys)?;
    let numbered = gpu.number(graph, &keys, motif, anchor, prune, options.memory_limit_bytes)?;
    let total = numbered.total();
    let width = total.div_ceil((samples / u64::from(NUM_REPLICATES)).max(1)).max(1);
    let draws: Vec<Draws> = (0..8)
        .map(|r| Draws { strata: Strata { width, key: Key::new(options.seed).stream(r) }, range: 0..total.div_ceil(width) })
        .collect();
    let (times, _) = numbered.phases(&draws, 10)?;
    Ok(times)
}
