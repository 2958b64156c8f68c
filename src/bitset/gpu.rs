//! A layer on the GPU: what its kernels read, and the dispatches that run it over a batch.

use std::sync::Arc;

use kernels_gen::{KernelSource, Target};

use crate::bitset::account::ChannelTally;
use crate::bitset::encoding::Encoding;
use crate::bitset::layer::{Layer, Thresholds};
use crate::bitset::program::Program;
use crate::bitset::rule::Rule;
use crate::error::{Error, Result};
use crate::plan::{ExecutionPlan, SlotId, SlotRole, fold_workgroups};
use crate::shaders;

/// Eights of windows that one invocation counts over.
const SHARE: usize = 64;

/// The most rounds an invocation of `lock_steps` makes.
const MAX_LOCK_ROUNDS: usize = 1 << 14;

/// The kernels of layers, for one target.
#[derive(Debug, Clone)]
pub struct LayerKernels {
    columns: Arc<KernelSource>,
    /// With sums of 32 and of 64 bits.
    limits: [Arc<KernelSource>; 2],
    planes: [Arc<KernelSource>; 2],
    tally: [Arc<KernelSource>; 2],
    lock: Arc<KernelSource>,
    target: Target,
}

/// A layer with its code and rule, as the kernels read it.
#[derive(Debug, Clone)]
pub struct Prepared {
    layer: Layer,
    program: Program,
    weights: Arc<Vec<u8>>,
    tables: Arc<Vec<u8>>,
    rows: Arc<Vec<u8>>,
}

/// How a layer is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerRun<'a> {
    /// Images.
    pub batch: usize,
    /// Bytes, `[batch, channels, height, width]`.
    pub activations: SlotId,
    /// Signed words, shaped as the output, no further from 0 than [`MAX_RESIDUAL`](super::layer::MAX_RESIDUAL).
    pub residual: Option<SlotId>,
    /// Whether every output is run to its end, so that what was stopped wrongly is counted.
    pub audit: bool,
    /// Numbers of neighbouring output channels whose lock-step is wanted.
    pub lanes: &'a [usize],
}

/// Where the results of a layer lie.
#[derive(Debug, Clone)]
pub struct LayerSlots {
    /// Signed words before the ReLU, stopped ones 0, `[batch, outputs, height, width]`; where [`Prepared::is_wide`], of two words each, the low
    /// one first.
    pub results: SlotId,
    /// See [`Prepared::tallies`].
    pub tallies: SlotId,
    /// See [`Prepared::lock_steps`], for each of [`LayerRun::lanes`].
    pub locks: Vec<SlotId>,
}

impl Prepared {
    /// Prepares a layer.
    ///
    /// # Errors
    ///
    /// Those of [`Layer::check_rule`].
    pub fn new(layer: &Layer, encoding: Encoding, rule: Rule, thresholds: Option<&Thresholds>, with_residual: bool) -> Result<Self> {
        let program = Program::new(layer, encoding, rule, thresholds, with_residual)?;
        let fours = Fours::of(layer);
        let (taps, passes) = (layer.geometry.taps(), program.planes.len().div_ceil(4));
        let chunks = taps.div_ceil(32);
        let mut weights = vec![0u32; fours.count * passes * chunks * 16];
        for (output, q) in layer.q.chunks(taps).enumerate() {
            let channel = fours.filled(output);
            for (at, plane) in program.planes.iter().enumerate() {
                for (tap, _) in q.iter().enumerate().filter(|(_, q)| plane.has(**q, encoding, layer.bits)) {
                    let vec4 = ((channel / 4 * passes + at / 4) * chunks + tap / 32) * 4 + channel % 4;
                    weights[4 * vec4 + at % 4] |= 1 << (31 - tap % 32);
                }
            }
        }
        let two = |number: i64| [number as u32, (number >> 32) as u32];
        let mut tables = Vec::new();
        for at in 0..4 * passes {
            let Some(plane) = program.planes.get(at) else {
                tables.extend([0; 4]);
                continue;
            };
            let flags = u32::from(plane.is_step) | if plane.test.is_some() { 2 } else { 0 };
            tables.extend(two(plane.coef));
            tables.extend([flags, plane.test.unwrap_or(0) as u32]);
        }
        for row in program.thresholds.iter().chain([&layer.bias]) {
            let mut filled = vec![0i64; 4 * fours.count];
            row.iter().enumerate().for_each(|(output, &value)| filled[fours.filled(output)] = value);
            tables.extend(filled.into_iter().flat_map(two));
        }
        let rows: Vec<u32> = program
            .rows
            .iter()
            .flat_map(|row| {
                let ([a, b], [c, d]) = (two(row.constant), two(row.per_sum));
                [a, b, c, d, row.variance, 0, 0, 0]
            })
            .collect();
        let bytes = |words: Vec<u32>| Arc::new(bytemuck::cast_slice(&words).to_vec());
        Ok(Prepared { layer: layer.clone(), weights: bytes(weights), tables: bytes(tables), rows: bytes(rows), program })
    }

    /// The layer.
    pub fn layer(&self) -> &Layer {
        &self.layer
    }

    /// Whether results take 64 bits.
    pub fn is_wide(&self) -> bool {
        self.program.is_wide
    }

    /// Steps of an output that is not stopped.
    pub fn all_steps(&self) -> u32 {
        self.program.steps
    }

    /// Images whose columns and results fit one binding of `target`.
    pub fn max_batch(&self, target: &Target) -> usize {
        let geometry = &self.layer.geometry;
        let (windows, words) = (geometry.positions(), if self.is_wide() { 2 } else { 1 });
        let per_window = [
            2 * geometry.taps().div_ceil(2) * geometry.groups,
            4 * words * geometry.outputs,
            4 * words * self.program.rows.len() * geometry.groups,
            4 * Fours::of(&self.layer).count,
        ];
        let most = per_window.into_iter().max().unwrap_or(1).max(1);
        // Eights of windows are filled up.
        let windows_held = (target.max_binding_bytes as usize / most).saturating_sub(8);
        let images = geometry.channels * geometry.size[0] * geometry.size[1];
        (windows_held / windows.max(1)).min(target.max_binding_bytes as usize / images.max(1))
    }

    /// Counts of each channel, from the words of [`LayerSlots::tallies`] of a batch.
    pub fn tallies(&self, batch: usize, words: &[u32]) -> Vec<ChannelTally> {
        let shares = self.shares(batch);
        let windows = (batch * self.layer.geometry.positions()) as u64;
        let channel = |rows: &[u32]| {
            let mut sum = ChannelTally::default();
            for row in rows.chunks_exact(8) {
                let wide = |at: usize| u64::from(row[at]) | u64::from(row[at + 1]) << 32;
                let [steps, stopped, killed, zeros] = std::array::from_fn(|i| u64::from(row[i]));
                sum.add(&ChannelTally { outputs: 0, steps, stopped, killed, zeros, killed_mass: wide(4), mass: wide(6) });
            }
            ChannelTally { outputs: windows, ..sum }
        };
        words.chunks(8 * shares.max(1)).take(self.layer.geometry.outputs).map(channel).collect()
    }

    /// Steps of all groups of lanes together, from the words of a slot of [`LayerSlots::locks`].
    pub fn lock_steps(words: &[u32]) -> u64 {
        words.iter().map(|&word| u64::from(word)).sum()
    }

    fn columns(&self, batch: usize) -> usize {
        (batch * self.layer.geometry.positions()).div_ceil(8)
    }

    fn shares(&self, batch: usize) -> usize {
        self.columns(batch).div_ceil(SHARE)
    }
}

/// Output channels of each group, filled up to fours.
struct Fours {
    of_group: usize,
    outputs_of_group: usize,
    count: usize,
}

impl Fours {
    fn of(layer: &Layer) -> Self {
        let outputs_of_group = layer.geometry.outputs / layer.geometry.groups;
        let of_group = outputs_of_group.div_ceil(4);
        Fours { of_group, outputs_of_group, count: of_group * layer.geometry.groups }
    }

    fn filled(&self, output: usize) -> usize {
        output / self.outputs_of_group * self.of_group * 4 + output % self.outputs_of_group
    }
}

impl LayerKernels {
    /// Composes and checks the kernels for `target`.
    pub fn new(target: &Target) -> Result<Self> {
        let kernel = |name: &str| shaders::kernel(name, target).map(Arc::new);
        let both = |name: &str| Ok::<_, Error>([kernel(name)?, kernel(&format!("{name}_wide"))?]);
        Ok(LayerKernels {
            columns: kernel("window_columns")?,
            limits: both("window_limits")?,
            planes: both("bit_planes")?,
            tally: both("tally_steps")?,
            lock: kernel("lock_steps")?,
            target: target.clone(),
        })
    }

    /// Records a layer. Its constants become slots of the plan, as does what it needs on the way.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) where the batch does not fit, naming the largest that does;
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a batch or a number of lanes of 0.
    pub fn record(&self, plan: &mut ExecutionPlan, prepared: &Prepared, run: &LayerRun<'_>) -> Result<LayerSlots> {
        let Prepared { layer, program, .. } = prepared;
        let geometry = &layer.geometry;
        let most = prepared.max_batch(&self.target);
        if run.batch == 0 || run.lanes.contains(&0) {
            return Err(Error::invalid("a batch has at least 1 image, and a group of lanes at least 1 lane"));
        }
        if run.batch > most {
            return Err(Error::limit(format!("a batch of {} images does not fit; this layer allows at most {most} here", run.batch)));
        }
        let fours = Fours::of(layer);
        let (taps, positions, outputs) = (geometry.taps(), geometry.positions(), geometry.outputs);
        let (windows, columns, shares) = (run.batch * positions, prepared.columns(run.batch), prepared.shares(run.batch));
        let (rows, passes, wide) = (program.rows.len(), program.planes.len().div_ceil(4), usize::from(program.is_wide));
        // Of two taps and eight windows each.
        let num_columns = taps.div_ceil(2) * geometry.groups * columns;
        let mut constant = |name: &str, bytes: &Arc<Vec<u8>>| plan.slot(name, bytes.len() as u64, SlotRole::Constant(bytes.clone()));
        let weights = constant("bitset.weights", &prepared.weights);
        let tables = constant("bitset.tables", &prepared.tables);
        let table_of_rows = constant("bitset.rows", &prepared.rows);
        let mut temp = |name: &str, bytes: usize, role: SlotRole| plan.slot(name, bytes as u64, role);
        let columns_of = temp("bitset.columns", 16 * num_columns, SlotRole::Temp);
        let limits = temp("bitset.limits", 32 * (wide + 1) * geometry.groups * rows * columns, SlotRole::Temp);
        let steps = temp("bitset.steps", 32 * fours.count * columns, SlotRole::Temp);
        let results = temp("bitset.results", 4 * (wide + 1) * windows * outputs, SlotRole::Output);
        let tallies = temp("bitset.tallies", 32 * outputs * shares, SlotRole::Output);
        let residual = run.residual.unwrap_or(table_of_rows);
        let words = |numbers: &[usize]| numbers.iter().map(|&n| n as u32).collect::<Vec<u32>>();

        let [stride_y, stride_x] = geometry.strides;
        let mut params = words(&[windows, columns, num_columns, geometry.channels]);
        params.extend(words(&[geometry.size, geometry.out_size(), geometry.kernel, [stride_y, stride_x], geometry.pads_low].concat()));
        params.extend(words(&geometry.dilations));
        params.extend(words(&[taps]));
        plan.dispatch(&self.columns, &[run.activations, columns_of], &params, self.grid(&self.columns, num_columns)?);

        let count = columns * geometry.groups;
        let mean = [layer.mean_q16 as u32, (layer.mean_q16 >> 32) as u32];
        let params = [words(&[taps, columns, count, rows]), vec![program.z2, mean[0], mean[1]]].concat();
        let kernel = &self.limits[wide];
        plan.dispatch(kernel, &[columns_of, table_of_rows, limits], &params, self.grid(kernel, count)?);

        let count = columns * fours.count;
        let flags = [usize::from(run.residual.is_some()), usize::from(run.audit)];
        let shape = [windows, positions, columns, count, outputs, fours.outputs_of_group, fours.of_group, taps, passes, rows];
        let kernel = &self.planes[wide];
        let slots = [columns_of, weights, tables, limits, residual, results, steps];
        plan.dispatch(kernel, &slots, &words(&[&shape[..], &flags].concat()), self.grid(kernel, count)?);

        let shape = [windows, positions, columns, SHARE, shares, outputs, fours.outputs_of_group, fours.of_group, program.steps as usize];
        let kernel = &self.tally[wide];
        plan.dispatch(kernel, &[steps, results, tallies], &words(&shape), self.grid(kernel, outputs * shares)?);

        let mut locks = Vec::with_capacity(run.lanes.len());
        for &lanes in run.lanes {
            let lanes = lanes.min(fours.outputs_of_group);
            let share = (MAX_LOCK_ROUNDS / (2 * (lanes + 1))).clamp(1, SHARE);
            let (shares, of_group) = (columns.div_ceil(share), fours.outputs_of_group.div_ceil(lanes));
            let count = geometry.groups * of_group * shares;
            let sums = plan.slot("bitset.lock_steps", 4 * count as u64, SlotRole::Output);
            let shape = [windows, columns, share, shares, fours.outputs_of_group, fours.of_group, lanes, of_group, count];
            plan.dispatch(&self.lock, &[steps, sums], &words(&shape), self.grid(&self.lock, count)?);
            locks.push(sums);
        }
        Ok(LayerSlots { results, tallies, locks })
    }

    fn grid(&self, kernel: &KernelSource, invocations: usize) -> Result<[u32; 3]> {
        fold_workgroups((invocations as u64).div_ceil(u64::from(kernel.workgroup_size[0])), self.target.max_workgroups_per_dim)
    }
}
