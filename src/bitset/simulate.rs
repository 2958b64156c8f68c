//! A network with integer layers on a device: f32 between them, every tensor staying there.

use std::collections::HashMap;

use crate::bitset::account::{ChannelTally, Tally};
use crate::bitset::encoding::Encoding;
use crate::bitset::gpu::{LayerKernels, LayerRun, LayerSlots, Prepared};
use crate::bitset::layer::{Layer, MAX_ACTIVATION, Thresholds};
use crate::bitset::network::Network;
use crate::bitset::quantise::{MAX_ACTIVATION_BITS, OddGrid, activation_scale};
use crate::bitset::rule::Rule;
use crate::bitset::segments::{self, Cut, segments};
use crate::compiler::CompileOptions;
use crate::device::{Device, DeviceTensor, Executor};
use crate::error::{Error, Result};
use crate::graph::{Graph, GraphBuilder, ReduceOp};
use crate::plan::{ExecutionPlan, SlotId, SlotRole};
use crate::progress::Work;
use crate::session::{Loader, Session};
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// A layer of a network in integers.
#[derive(Debug, Clone, PartialEq)]
pub struct IntegerLayer {
    /// Place in [`Network::layers`].
    pub at: usize,
    /// The layer.
    pub layer: Layer,
    /// What one unit of an activation is.
    pub activation_scale: f64,
    /// What one unit of a weight is.
    pub weight_scale: f64,
}

/// The layers of `network` that can be stopped, in integers: weights of `bits` digits, activations of 8 bits, the largest of which `most` gives for
/// each of these layers.
///
/// # Errors
///
/// Those of [`OddGrid::fit`] and [`Layer::check`], naming the layer.
pub fn integer_layers(network: &Network, bits: u32, most: &[f64]) -> Result<Vec<IntegerLayer>> {
    let found = network.layers.iter().enumerate().filter(|(_, layer)| layer.reason.is_none());
    let layers = found.zip(most).map(|((at, found), &most)| {
        let made = || {
            let grid = OddGrid::fit(&found.weights, bits)?;
            let activation_scale = activation_scale(most, MAX_ACTIVATION_BITS)?;
            let unit = grid.scale * activation_scale;
            let bias = found.bias.iter().map(|&bias| (f64::from(bias) / unit).round() as i64).collect();
            let (weight_scale, mean_q16) = (grid.scale, grid.mean_q16());
            let layer = Layer { geometry: found.geometry, bits, q: grid.q, bias, mean_q16 };
            layer.check()?;
            Ok(IntegerLayer { at, layer, activation_scale, weight_scale })
        };
        made().map_err(|e: Error| e.context(format_args!("layer `{}`", found.name)))
    });
    layers.collect()
}

/// A graph with the outputs of the network and, as `most`, the largest activation of each layer that can be stopped.
///
/// # Errors
///
/// [`ErrorKind::Internal`](crate::ErrorKind::Internal) where the network is not what it was when it was read.
pub fn probe(network: &Network) -> Result<Graph> {
    let mut builder = GraphBuilder::new();
    builder.copy_origins(&network.graph);
    let mut map = Vec::with_capacity(network.graph.nodes().len());
    for (_, node) in network.graph.iter() {
        builder.set_origin(Some(node.origin));
        let inputs: Vec<_> = node.inputs.iter().map(|input| map[input.index()]).collect();
        map.push(builder.add(node.op.clone(), &inputs)?);
    }
    for (name, id) in network.graph.outputs() {
        builder.output(name.clone(), map[id.index()])?;
    }
    for (at, layer) in network.terminable().enumerate() {
        let x = map[layer.input.index()];
        let axes: Vec<usize> = (0..builder.shape(x).len()).collect();
        let most = builder.reduce(ReduceOp::Max, x, &axes, false)?;
        builder.output(format!("most.{at}"), most)?;
    }
    Ok(builder.finish())
}

/// What one batch gave.
#[derive(Debug, Clone)]
pub struct BatchResult {
    /// Outputs of the network, by name.
    pub outputs: Vec<(String, HostTensor)>,
    /// Counts of each channel of each integer layer.
    pub channels: Vec<Vec<ChannelTally>>,
    /// Steps of groups of lanes of each integer layer, by [`SimulatorOptions::lanes`].
    pub locks: Vec<Vec<u64>>,
}

/// How a network is simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatorOptions {
    /// How digits are written.
    pub encoding: Encoding,
    /// When outputs are stopped.
    pub rule: Rule,
    /// For each integer layer, where the rule takes them.
    pub thresholds: Option<Vec<Thresholds>>,
    /// Whether outputs are run to their end, so that wrong stops are counted.
    pub audit: bool,
    /// Numbers of output channels in lock-step.
    pub lanes: Vec<usize>,
}

/// A network on a device.
pub struct Simulator {
    device: Device,
    layers: Vec<IntegerLayer>,
    options: SimulatorOptions,
    segments: Vec<Session>,
    runs: Vec<LayerOnDevice>,
}

struct LayerOnDevice {
    prepared: Prepared,
    executor: Executor,
    activations: SlotId,
    residual: Option<SlotId>,
    slots: LayerSlots,
    /// Words of the slots in [`LayerSlots::tallies`] and [`LayerSlots::locks`].
    words: Vec<usize>,
}

impl Simulator {
    /// Makes everything that a run needs.
    ///
    /// # Errors
    ///
    /// Those of [`Prepared::new`], [`LayerKernels::record`] and [`Loader::load`].
    pub fn new(
        device: &Device,
        loader: &Loader,
        network: &Network,
        layers: &[IntegerLayer],
        options: SimulatorOptions,
        work: &Work<'_>,
    ) -> Result<Self> {
        let kernels = LayerKernels::new(&device.target())?;
        let part = work.part("layers", 2 * layers.len() as u64 + 1);
        let mut runs = Vec::with_capacity(layers.len());
        for (at, integer) in layers.iter().enumerate() {
            let found = &network.layers[integer.at];
            let thresholds = options.thresholds.as_ref().map(|all| &all[at]);
            let on_device = LayerOnDevice::new(device, &kernels, network.batch, integer, &options, thresholds, found.residual.is_some());
            runs.push(on_device.map_err(|e| e.context(format_args!("layer `{}`", found.name)))?);
            part.advance(1)?;
        }
        let cut = |(integer, run): (&IntegerLayer, &LayerOnDevice)| Cut {
            layer: integer.at,
            activation_scale: integer.activation_scale,
            most: MAX_ACTIVATION,
            unit: integer.weight_scale * integer.activation_scale,
            is_wide: run.prepared.is_wide(),
        };
        let cuts: Vec<Cut> = layers.iter().zip(&runs).map(cut).collect();
        let mut sessions = Vec::with_capacity(cuts.len() + 1);
        for graph in segments(network, &cuts)? {
            sessions.push(loader.load(&graph, &CompileOptions::default(), work)?.0);
            part.advance(1)?;
        }
        Ok(Simulator { device: device.clone(), layers: layers.to_vec(), options, segments: sessions, runs })
    }

    /// Counts of a layer's channels as counts of the layer.
    pub fn tally(&self, layer: usize, channels: &[ChannelTally]) -> Tally {
        Tally::of(&self.layers[layer].layer, self.options.encoding, self.options.rule, channels)
    }

    /// Runs one batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for another shape than the network takes, and those of
    /// [`Executor::run_on`].
    pub fn run(&self, images: &HostTensor) -> Result<BatchResult> {
        let mut tensors: HashMap<String, DeviceTensor> = HashMap::new();
        let mut counted: Vec<Vec<DeviceTensor>> = Vec::with_capacity(self.runs.len());
        let mut outputs = Vec::new();
        for (at, session) in self.segments.iter().enumerate() {
            let compiled = session.compiled();
            for port in compiled.inputs().iter().filter(|_| at == 0) {
                if images.dtype() != port.ty.dtype || images.shape() != port.ty.shape {
                    return Err(Error::invalid(format!("the network takes {}, {}{:?} is given", port.ty, images.dtype(), images.shape())));
                }
                tensors.insert(port.name.clone(), DeviceTensor::upload(&self.device, images)?);
            }
            let inputs = compiled.inputs().iter().map(|port| {
                let tensor = tensors.get(&port.name).ok_or_else(|| Error::internal(format!("`{}` was not computed before", port.name)))?;
                Ok((port.slot, tensor))
            });
            let inputs: Vec<(SlotId, &DeviceTensor)> = inputs.collect::<Result<_>>()?;
            let wanted: Vec<(SlotId, DType, &[usize])> =
                compiled.outputs().iter().map(|port| (port.slot, port.ty.dtype, port.ty.shape.as_slice())).collect();
            let made = session.executor().run_on(&inputs, &[], &wanted)?;
            let names = compiled.outputs().iter().map(|port| port.name.clone());
            let Some(run) = self.runs.get(at) else {
                outputs = names.zip(made).map(|(name, tensor)| Ok((name, tensor.read()?))).collect::<Result<Vec<_>>>()?;
                break;
            };
            tensors.extend(names.zip(made));
            let take = |name: String| tensors.get(&name).ok_or_else(|| Error::internal(format!("`{name}` was not computed")));
            let mut inputs = vec![(run.activations, take(segments::activations(at))?)];
            if let Some(slot) = run.residual {
                inputs.push((slot, take(segments::residual(at))?));
            }
            let shape = run.results_shape(&self.segments[at + 1..], at)?;
            let mut wanted: Vec<(SlotId, DType, &[usize])> = vec![(run.slots.results, DType::I32, &shape)];
            let counts = [run.slots.tallies].into_iter().chain(run.slots.locks.iter().copied());
            wanted.extend(counts.zip(&run.words).map(|(slot, words)| (slot, DType::U32, std::slice::from_ref(words))));
            let mut made = run.executor.run_on(&inputs, &[], &wanted)?;
            let counts = made.split_off(1);
            tensors.extend(made.into_iter().map(|tensor| (segments::results(at), tensor)));
            counted.push(counts);
        }
        let batch = images.shape().first().copied().unwrap_or(0);
        let (mut channels, mut locks) = (Vec::with_capacity(self.runs.len()), Vec::with_capacity(self.runs.len()));
        for (run, counts) in self.runs.iter().zip(counted) {
            let words = counts.iter().map(|tensor| Ok(tensor.read()?.as_slice::<u32>()?.to_vec())).collect::<Result<Vec<_>>>()?;
            channels.push(words.first().map(|words| run.prepared.tallies(batch, words)).unwrap_or_default());
            locks.push(words[1..].iter().map(|words| Prepared::lock_steps(words)).collect());
        }
        Ok(BatchResult { outputs, channels, locks })
    }
}

impl LayerOnDevice {
    fn new(
        device: &Device,
        kernels: &LayerKernels,
        batch: usize,
        integer: &IntegerLayer,
        options: &SimulatorOptions,
        thresholds: Option<&Thresholds>,
        with_residual: bool,
    ) -> Result<Self> {
        let layer = &integer.layer;
        let prepared = Prepared::new(layer, options.encoding, options.rule, thresholds, with_residual)?;
        let geometry = &layer.geometry;
        let mut plan = ExecutionPlan::new();
        let image = geometry.channels * geometry.size[0] * geometry.size[1];
        let activations = plan.slot("activations", (batch * image) as u64, SlotRole::Input);
        let outputs = batch * geometry.outputs * geometry.positions();
        let residual = with_residual.then(|| plan.slot("residual", 4 * outputs as u64, SlotRole::Input));
        let run = LayerRun { batch, activations, residual, audit: options.audit, lanes: &options.lanes };
        let slots = kernels.record(&mut plan, &prepared, &run)?;
        let counts = [slots.tallies].into_iter().chain(slots.locks.iter().copied());
        let words = counts.map(|slot| (plan.slots[slot.0 as usize].bytes / 4) as usize).collect();
        Ok(LayerOnDevice { executor: Executor::load(device, &plan)?, prepared, activations, residual, slots, words })
    }

    /// The shape that later graphs take the results in.
    fn results_shape(&self, later: &[Session], at: usize) -> Result<Vec<usize>> {
        let name = segments::results(at);
        let port = later.iter().find_map(|session| session.compiled().inputs().iter().find(|port| port.name == name));
        port.map(|port| port.ty.shape.clone()).ok_or_else(|| Error::internal(format!("nothing reads `{name}`")))
    }
}
