//! A network with integer layers on a device: f32 between them, every tensor staying there.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::bitset::account::{ChannelTally, Tally};
use crate::bitset::encoding::Encoding;
use crate::bitset::gpu::{LayerKernels, LayerRun, LayerSlots, Prepared};
use crate::bitset::host::HostLayer;
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
    /// What rounding bias, mean and residual to integers changes of an output at most, in units of the layer.
    pub fixed_point_error: f64,
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
            let real: Vec<f64> = found.bias.iter().map(|&bias| f64::from(bias) / unit).collect();
            let bias = real.iter().map(|bias| bias.round() as i64).collect();
            let (weight_scale, mean_q16) = (grid.scale, grid.mean_q16());
            let of_bias = real.iter().map(|bias| (bias - bias.round()).abs()).fold(0.0, f64::max);
            let of_step = (grid.mean / grid.scale - mean_q16 as f64 / 65_536.0).abs();
            let of_mean = of_step * f64::from(MAX_ACTIVATION) * found.geometry.taps() as f64 + if mean_q16 == 0 { 0.0 } else { 0.5 };
            let fixed_point_error = of_bias + of_mean + if found.residual.is_some() { 0.5 } else { 0.0 };
            let layer = Layer { geometry: found.geometry, bits, q: grid.q, bias, mean_q16 };
            layer.check()?;
            Ok(IntegerLayer { at, layer, activation_scale, weight_scale, fixed_point_error })
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

/// What runs the integer layers. Both give the same integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The kernels, on the device.
    Gpu,
    /// All cores of the processor; what lies between the layers stays on the device.
    Cpu,
}

impl Engine {
    /// Name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Gpu => "gpu",
            Engine::Cpu => "cpu",
        }
    }
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

/// Hears what each integer layer reads: its place among them, its activations, and what is added to its sums.
pub type Observer<'a> = &'a mut dyn FnMut(usize, &[u8], Option<&[i32]>) -> Result<()>;

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
    /// What runs the integer layers.
    pub engine: Engine,
}

/// A network on a device.
pub struct Simulator {
    device: Device,
    network: Network,
    layers: Vec<IntegerLayer>,
    options: SimulatorOptions,
    segments: Vec<Session>,
    runs: Vec<LayerRunner>,
    /// What a batch of blank images gives.
    blank: OnceLock<BatchResult>,
}

enum LayerRunner {
    Device(Box<LayerOnDevice>),
    Host(Box<HostLayer>),
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

/// Counts of a layer, on the device until they are read.
enum Counts {
    Device(Vec<DeviceTensor>),
    Host(Vec<ChannelTally>, Vec<u64>),
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
        let runs = runners(device, network, layers, &options)?;
        let cut = |(integer, run): (&IntegerLayer, &LayerRunner)| Cut {
            layer: integer.at,
            activation_scale: integer.activation_scale,
            most: MAX_ACTIVATION,
            unit: integer.weight_scale * integer.activation_scale,
            is_wide: run.is_wide(),
        };
        let cuts: Vec<Cut> = layers.iter().zip(&runs).map(cut).collect();
        let part = work.part("layers", cuts.len() as u64 + 1);
        let mut sessions = Vec::with_capacity(cuts.len() + 1);
        for graph in segments(network, &cuts)? {
            sessions.push(loader.load(&graph, &CompileOptions::default(), &Work::quiet())?.0);
            part.advance(1)?;
        }
        let (network, layers) = (network.clone(), layers.to_vec());
        Ok(Simulator { device: device.clone(), network, layers, options, segments: sessions, runs, blank: OnceLock::new() })
    }

    /// The same network with another code, rule or engine.
    ///
    /// # Errors
    ///
    /// As [`Simulator::new`].
    pub fn with(&self, options: SimulatorOptions) -> Result<Self> {
        let runs = runners(&self.device, &self.network, &self.layers, &options)?;
        let (device, network, layers) = (self.device.clone(), self.network.clone(), self.layers.clone());
        Ok(Simulator { device, network, layers, options, segments: self.segments.clone(), runs, blank: OnceLock::new() })
    }

    /// How the network is simulated.
    pub fn options(&self) -> &SimulatorOptions {
        &self.options
    }

    /// The integer layers.
    pub fn layers(&self) -> &[IntegerLayer] {
        &self.layers
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
        self.run_observed(images, None)
    }

    /// Runs a batch of which only the first `count` images are meant; the others are blank, all 0, and their counts are taken off.
    ///
    /// # Errors
    ///
    /// As [`Simulator::run`].
    pub fn run_part(&self, images: &HostTensor, count: usize) -> Result<BatchResult> {
        let mut found = self.run(images)?;
        let batch = self.network.batch;
        if count < batch {
            if self.blank.get().is_none() {
                let blank = self.run(&HostTensor::zeros(images.dtype(), images.shape())?)?;
                // Of two results that are made at a time the first is kept; they are the same.
                let _ = self.blank.set(blank);
            }
            let missing = (batch - count) as u64;
            if let Some(blank) = self.blank.get() {
                let pairs = found.channels.iter_mut().flatten().zip(blank.channels.iter().flatten());
                pairs.for_each(|(channel, blank)| channel.take_off(blank, missing, batch as u64));
                let pairs = found.locks.iter_mut().flatten().zip(blank.locks.iter().flatten());
                pairs.for_each(|(lock, blank)| *lock -= blank / batch as u64 * missing);
            }
        }
        Ok(found)
    }

    /// Runs one batch and tells `observer` what each integer layer reads.
    ///
    /// # Errors
    ///
    /// As [`Simulator::run`], and those of `observer`.
    pub fn run_observed(&self, images: &HostTensor, mut observer: Option<Observer<'_>>) -> Result<BatchResult> {
        let mut tensors: HashMap<String, DeviceTensor> = HashMap::new();
        let mut counted: Vec<Counts> = Vec::with_capacity(self.runs.len());
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
            let activations = take(segments::activations(at))?;
            let with_residual = self.network.layers[self.layers[at].at].residual.is_some();
            let residual = if with_residual { Some(take(segments::residual(at))?) } else { None };
            let shape = self.results_shape(at)?;
            let is_read = observer.is_some() || matches!(run, LayerRunner::Host(_));
            let read = if is_read { Some((activations.read()?, residual.map(DeviceTensor::read).transpose()?)) } else { None };
            let words = match &read {
                Some((activations, residual)) => {
                    Some((activations.as_slice::<u8>()?, residual.as_ref().map(HostTensor::as_slice::<i32>).transpose()?))
                }
                None => None,
            };
            if let (Some(observer), Some((activations, residual))) = (observer.as_mut(), words) {
                observer(at, activations, residual)?;
            }
            let (results, counts) = match (run, words) {
                (LayerRunner::Host(layer), Some((activations, residual))) => {
                    let found = layer.run(activations, residual, self.options.audit, &self.options.lanes)?;
                    let results = DeviceTensor::upload(&self.device, &HostTensor::new(shape.as_slice(), found.results)?)?;
                    (results, Counts::Host(found.channels, found.locks))
                }
                (LayerRunner::Device(run), _) => run.run(activations, residual, &shape)?,
                (LayerRunner::Host(_), None) => return Err(Error::internal("a layer on the processor was not given what it reads")),
            };
            tensors.insert(segments::results(at), results);
            counted.push(counts);
        }
        let batch = self.network.batch;
        let (mut channels, mut locks) = (Vec::with_capacity(self.runs.len()), Vec::with_capacity(self.runs.len()));
        for (run, counts) in self.runs.iter().zip(counted) {
            match (run, counts) {
                (LayerRunner::Device(run), Counts::Device(counts)) => {
                    let words = counts.iter().map(|tensor| Ok(tensor.read()?.as_slice::<u32>()?.to_vec())).collect::<Result<Vec<_>>>()?;
                    channels.push(words.first().map(|words| run.prepared.tallies(batch, words)).unwrap_or_default());
                    locks.push(words.iter().skip(1).map(|words| Prepared::lock_steps(words)).collect());
                }
                (_, Counts::Host(of_channels, of_locks)) => {
                    channels.push(of_channels);
                    locks.push(of_locks);
                }
                (LayerRunner::Host(_), Counts::Device(_)) => return Err(Error::internal("counts of a layer are where it did not run")),
            }
        }
        Ok(BatchResult { outputs, channels, locks })
    }

    /// The shape that later graphs take the results of a layer in.
    fn results_shape(&self, at: usize) -> Result<Vec<usize>> {
        let name = segments::results(at);
        let later = self.segments[at + 1..].iter();
        let port = later.flat_map(|session| session.compiled().inputs()).find(|port| port.name == name);
        port.map(|port| port.ty.shape.clone()).ok_or_else(|| Error::internal(format!("nothing reads `{name}`")))
    }
}

fn runners(device: &Device, network: &Network, layers: &[IntegerLayer], options: &SimulatorOptions) -> Result<Vec<LayerRunner>> {
    let kernels = match options.engine {
        Engine::Gpu => Some(LayerKernels::new(&device.target())?),
        Engine::Cpu => None,
    };
    let runner = |(at, integer): (usize, &IntegerLayer)| {
        let found = &network.layers[integer.at];
        let (thresholds, with_residual) = (options.thresholds.as_ref().and_then(|all| all.get(at)), found.residual.is_some());
        let made = match &kernels {
            Some(kernels) => LayerOnDevice::new(device, kernels, network.batch, integer, options, thresholds, with_residual)
                .map(|layer| LayerRunner::Device(Box::new(layer))),
            None => HostLayer::new(&integer.layer, options.encoding, options.rule, thresholds, with_residual)
                .map(|layer| LayerRunner::Host(Box::new(layer))),
        };
        made.map_err(|e| e.context(format_args!("layer `{}`", found.name)))
    };
    layers.iter().enumerate().map(runner).collect()
}

impl LayerRunner {
    fn is_wide(&self) -> bool {
        match self {
            LayerRunner::Device(layer) => layer.prepared.is_wide(),
            LayerRunner::Host(layer) => layer.is_wide(),
        }
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

    /// The results in `shape`, and the counts.
    fn run(&self, activations: &DeviceTensor, residual: Option<&DeviceTensor>, shape: &[usize]) -> Result<(DeviceTensor, Counts)> {
        let inputs: Vec<_> = [(self.activations, activations)].into_iter().chain(self.residual.zip(residual)).collect();
        let mut wanted: Vec<(SlotId, DType, &[usize])> = vec![(self.slots.results, DType::I32, shape)];
        let counts = [self.slots.tallies].into_iter().chain(self.slots.locks.iter().copied());
        wanted.extend(counts.zip(&self.words).map(|(slot, words)| (slot, DType::U32, std::slice::from_ref(words))));
        let mut made = self.executor.run_on(&inputs, &[], &wanted)?;
        let counts = made.split_off(1);
        made.pop().map(|results| (results, Counts::Device(counts))).ok_or_else(|| Error::internal("a layer left no results"))
    }
}
