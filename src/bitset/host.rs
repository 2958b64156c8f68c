//! A layer on the processor, with all its cores: the same binary planes, limits and integers as the kernels, by tables of sums.
//!
//! The sums of any of four neighbouring taps are made once for all output channels and planes; a plane then adds one entry for four taps. Software
//! adapters are many times slower than that, since they load what a lane reads word by word.

use rayon::prelude::*;

use crate::bitset::account::ChannelTally;
use crate::bitset::encoding::Encoding;
use crate::bitset::layer::{Geometry, Layer, Thresholds};
use crate::bitset::program::{Program, Row};
use crate::bitset::rule::{Rule, isqrt};
use crate::error::{Error, Result};

/// Windows that are computed together.
const TILE: usize = 32;

/// Fours of taps whose sums fit 16 bits: 256 taps of at most 255.
const FOURS: usize = 64;

/// One number for each window of a tile.
type Lanes<T> = [T; TILE];

/// Sums of any of four taps, for each window.
type Table = [Lanes<u16>; 16];

/// A layer with its code and rule, for the processor.
#[derive(Debug, Clone)]
pub struct HostLayer {
    layer: Layer,
    program: Program,
    /// `[outputs][planes][fours of taps]`: which of the four have a bit.
    nibbles: Vec<u8>,
    fours: usize,
}

/// What a batch gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostResult {
    /// As [`LayerSlots::results`](super::gpu::LayerSlots::results).
    pub results: Vec<i32>,
    /// Counts of each channel.
    pub channels: Vec<ChannelTally>,
    /// Steps of groups of lanes, for each number of lanes.
    pub locks: Vec<u64>,
}

/// A signed integer that sums are kept in.
trait Sum: Copy + Default + Send + Sync {
    fn of(value: i64) -> Self;
    fn wide(self) -> i64;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn shifted(self, by: u32) -> Self;
    /// All bits where it is negative, else none.
    fn sign(self) -> Self;
    fn without(self, mask: Self) -> Self;
}

macro_rules! sum {
    ($type:ty) => {
        impl Sum for $type {
            fn of(value: i64) -> Self {
                value as $type
            }
            fn wide(self) -> i64 {
                i64::from(self)
            }
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn shifted(self, by: u32) -> Self {
                self.wrapping_shl(by)
            }
            fn sign(self) -> Self {
                self >> (<$type>::BITS - 1)
            }
            fn without(self, mask: Self) -> Self {
                self & !mask
            }
        }
    };
}
sum!(i32);
sum!(i64);

/// What is run.
struct Batch<'a> {
    activations: &'a [u8],
    residual: Option<&'a [i32]>,
    windows: usize,
    audit: bool,
    lanes: &'a [usize],
}

/// What one tile of windows gave: values `[outputs][windows]`, counts, steps in lock-step.
struct Tile {
    first: usize,
    values: Vec<i64>,
    channels: Vec<ChannelTally>,
    locks: Vec<u64>,
}

/// What a thread keeps from tile to tile.
#[derive(Default)]
struct Scratch {
    columns: Vec<Lanes<u16>>,
    tables: Vec<Table>,
    made: Vec<Lanes<u8>>,
}

impl HostLayer {
    /// Prepares a layer.
    ///
    /// # Errors
    ///
    /// Those of [`Layer::check_rule`].
    pub fn new(layer: &Layer, encoding: Encoding, rule: Rule, thresholds: Option<&Thresholds>, with_residual: bool) -> Result<Self> {
        let program = Program::new(layer, encoding, rule, thresholds, with_residual)?;
        let taps = layer.geometry.taps();
        let fours = taps.div_ceil(4);
        let mut nibbles = vec![0; layer.geometry.outputs * program.planes.len() * fours];
        for (q, rows) in layer.q.chunks(taps).zip(nibbles.chunks_mut(program.planes.len() * fours)) {
            for (plane, row) in program.planes.iter().zip(rows.chunks_mut(fours)) {
                for (tap, _) in q.iter().enumerate().filter(|(_, q)| plane.has(**q, encoding, layer.bits)) {
                    row[tap / 4] |= 1 << (tap % 4);
                }
            }
        }
        Ok(HostLayer { layer: layer.clone(), program, nibbles, fours })
    }

    /// Whether results take 64 bits.
    pub fn is_wide(&self) -> bool {
        self.program.is_wide
    }

    /// Runs the layer on `activations`, `[batch, channels, height, width]`; `residual`, where there is one, is shaped as the output. With `audit`
    /// every output is run to its end, so that what was stopped wrongly is counted.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the numbers of activations and residuals do not fit, and for a number
    /// of lanes of 0.
    pub fn run(&self, activations: &[u8], residual: Option<&[i32]>, audit: bool, lanes: &[usize]) -> Result<HostResult> {
        let geometry = &self.layer.geometry;
        let image = geometry.channels * geometry.size[0] * geometry.size[1];
        let windows = activations.len() / image * geometry.positions();
        let fits = activations.len().is_multiple_of(image) && residual.is_none_or(|r| r.len() == windows * geometry.outputs);
        if !fits || lanes.contains(&0) {
            return Err(Error::invalid(format!(
                "an image has {image} activations and a group at least 1 lane; {} activations, {} residuals and groups of {lanes:?} are given",
                activations.len(),
                residual.map_or(0, <[i32]>::len)
            )));
        }
        let batch = Batch { activations, residual, windows, audit, lanes };
        let tiles = (0..windows.div_ceil(TILE)).into_par_iter().map_init(Scratch::default, |scratch, tile| {
            if self.program.is_wide {
                self.tile::<i64>(&batch, tile * TILE, scratch)
            } else {
                self.tile::<i32>(&batch, tile * TILE, scratch)
            }
        });
        let tiles: Vec<Tile> = tiles.collect();
        Ok(self.gathered(&tiles, windows, lanes.len()))
    }

    fn gathered(&self, tiles: &[Tile], windows: usize, num_locks: usize) -> HostResult {
        let (outputs, positions) = (self.layer.geometry.outputs, self.layer.geometry.positions());
        let words = if self.program.is_wide { 2 } else { 1 };
        let mut found = HostResult {
            results: vec![0; words * windows * outputs],
            channels: vec![ChannelTally::default(); outputs],
            locks: vec![0; num_locks],
        };
        for tile in tiles {
            let count = TILE.min(windows - tile.first);
            for (output, values) in tile.values.chunks(count).enumerate() {
                for (window, &value) in (tile.first..).zip(values) {
                    let place = words * ((window / positions * outputs + output) * positions + window % positions);
                    found.results[place] = value as i32;
                    if words == 2 {
                        found.results[place + 1] = (value >> 32) as i32;
                    }
                }
            }
            found.channels.iter_mut().zip(&tile.channels).for_each(|(sum, channel)| sum.add(channel));
            found.locks.iter_mut().zip(&tile.locks).for_each(|(sum, lock)| *sum += lock);
        }
        found
    }

    fn tile<S: Sum>(&self, batch: &Batch<'_>, first: usize, scratch: &mut Scratch) -> Tile {
        let geometry = &self.layer.geometry;
        let (outputs, positions) = (geometry.outputs, geometry.positions());
        let count = TILE.min(batch.windows - first);
        let of_group = outputs / geometry.groups;
        let mut tile = Tile {
            first,
            values: Vec::with_capacity(outputs * count),
            channels: Vec::with_capacity(outputs),
            locks: vec![0; batch.lanes.len()],
        };
        scratch.columns.resize(4 * self.fours, [0; TILE]);
        scratch.tables.resize(self.fours, [[0; TILE]; 16]);
        scratch.made.resize(of_group, [0; TILE]);
        for group in 0..geometry.groups {
            columns(geometry, group, batch.activations, first, count, &mut scratch.columns);
            scratch.tables.iter_mut().zip(scratch.columns.chunks(4)).for_each(|(table, taps)| fill(table, taps));
            let limits = self.limits::<S>(&scratch.columns);
            for channel in 0..of_group {
                let output = group * of_group + channel;
                let mut start = [S::of(self.layer.bias[output]); TILE];
                if let Some(residual) = batch.residual {
                    for (window, start) in (first..first + count).zip(&mut start) {
                        let place = (window / positions * outputs + output) * positions + window % positions;
                        *start = start.plus(S::of(i64::from(residual[place])));
                    }
                }
                let run = self.channel(output, start, count, batch.audit, &scratch.tables, &limits);
                let mut tally = ChannelTally::default();
                for lane in 0..count {
                    let made = run.made[lane].wide() as u32;
                    let is_stopped = made < self.program.steps;
                    let value = if batch.audit || !is_stopped { run.value[lane].wide() } else { 0 };
                    tally.count(made, is_stopped, value);
                    tile.values.push(if is_stopped { 0 } else { value });
                    scratch.made[channel][lane] = made as u8;
                }
                tile.channels.push(tally);
            }
            for (sum, &lanes) in tile.locks.iter_mut().zip(batch.lanes) {
                for channels in scratch.made.chunks(lanes) {
                    let most = |lane: usize| channels.iter().map(|made| u64::from(made[lane])).max().unwrap_or(0);
                    *sum += (0..count).map(most).sum::<u64>();
                }
            }
        }
        tile
    }

    /// What partial sums of each window are compared with, by row.
    fn limits<S: Sum>(&self, columns: &[Lanes<u16>]) -> Vec<Lanes<S>> {
        let (mut s1, mut s2) = ([0u32; TILE], [0u32; TILE]);
        for column in columns {
            for lane in 0..TILE {
                s1[lane] += u32::from(column[lane]);
                s2[lane] += u32::from(column[lane]) * u32::from(column[lane]);
            }
        }
        let of = |row: &Row| {
            std::array::from_fn(|lane| {
                let (s1, s2) = (i64::from(s1[lane]), u64::from(s2[lane]));
                let variance = u64::from(self.program.z2).wrapping_mul(s2).wrapping_mul(u64::from(row.variance)) >> 8;
                let deviation = if variance == 0 { 0 } else { isqrt(variance) as i64 };
                let mean = (self.layer.mean_q16.wrapping_mul(s1).wrapping_add(1 << 15)) >> 16;
                S::of(row.constant.wrapping_add(row.per_sum.wrapping_mul(s1)).wrapping_sub(mean).wrapping_sub(deviation))
            })
        };
        self.program.rows.iter().map(of).collect()
    }

    fn channel<S: Sum>(
        &self,
        output: usize,
        start: Lanes<S>,
        count: usize,
        audit: bool,
        tables: &[Table],
        limits: &[Lanes<S>],
    ) -> Channel<S> {
        let planes = &self.program.planes;
        let all = S::of(-1);
        let (mut sums, mut made) = (start, [S::default(); TILE]);
        let mut alive: Lanes<S> = std::array::from_fn(|lane| if lane < count { all } else { S::default() });
        let rows = &self.nibbles[output * planes.len() * self.fours..][..planes.len() * self.fours];
        for (plane, nibbles) in planes.iter().zip(rows.chunks(self.fours)) {
            let under = under(tables, nibbles);
            let (coef, magnitude) = (plane.coef, plane.coef.unsigned_abs());
            if magnitude.is_power_of_two() {
                let by = magnitude.trailing_zeros();
                if coef > 0 {
                    (0..TILE).for_each(|lane| sums[lane] = sums[lane].plus(S::of(i64::from(under[lane])).shifted(by)));
                } else {
                    (0..TILE).for_each(|lane| sums[lane] = sums[lane].minus(S::of(i64::from(under[lane])).shifted(by)));
                }
            } else {
                let coef = S::of(coef);
                (0..TILE).for_each(|lane| sums[lane] = sums[lane].plus(S::of(i64::from(under[lane])).times(coef)));
            }
            if plane.is_step {
                (0..TILE).for_each(|lane| made[lane] = made[lane].minus(alive[lane]));
            }
            if let Some(row) = plane.test {
                let (limit, threshold) = (&limits[row], S::of(self.program.thresholds[row][output]));
                (0..TILE).for_each(|lane| alive[lane] = alive[lane].without(sums[lane].minus(limit[lane]).minus(threshold).sign()));
                if !audit && alive.iter().all(|alive| alive.wide() == 0) {
                    break;
                }
            }
        }
        let end = limits.last().copied().unwrap_or_default();
        Channel { value: std::array::from_fn(|lane| sums[lane].minus(end[lane])), made }
    }
}

/// What became of the outputs of one channel.
struct Channel<S> {
    value: Lanes<S>,
    made: Lanes<S>,
}

/// The sums of the activations under the bits of one plane.
fn under(tables: &[Table], nibbles: &[u8]) -> Lanes<u32> {
    let mut sums = [0u32; TILE];
    for (tables, nibbles) in tables.chunks(FOURS).zip(nibbles.chunks(FOURS)) {
        let mut part = [0u16; TILE];
        for (table, &nibble) in tables.iter().zip(nibbles) {
            let entry = &table[usize::from(nibble & 15)];
            (0..TILE).for_each(|lane| part[lane] = part[lane].wrapping_add(entry[lane]));
        }
        (0..TILE).for_each(|lane| sums[lane] += u32::from(part[lane]));
    }
    sums
}

/// The sums of any of four taps.
fn fill(table: &mut Table, taps: &[Lanes<u16>]) {
    for entry in 1..16usize {
        let (before, tap) = (table[entry & (entry - 1)], &taps[entry.trailing_zeros() as usize]);
        (0..TILE).for_each(|lane| table[entry][lane] = before[lane] + tap[lane]);
    }
}

/// The activations under each tap of `group` for `count` windows from `first` on; taps past the last are 0.
fn columns(geometry: &Geometry, group: usize, activations: &[u8], first: usize, count: usize, columns: &mut [Lanes<u16>]) {
    let [height, width] = geometry.size;
    let [out_height, out_width] = geometry.out_size();
    let (area, of_group) = (geometry.kernel[0] * geometry.kernel[1], geometry.channels / geometry.groups);
    for (tap, column) in columns.iter_mut().enumerate() {
        *column = [0; TILE];
        if tap >= geometry.taps() {
            continue;
        }
        let channel = group * of_group + tap / area;
        let at = [tap % area / geometry.kernel[1], tap % geometry.kernel[1]];
        let mut lane = 0;
        // Windows of one row of the output at a time.
        while lane < count {
            let (row, ox) = ((first + lane) / out_width, (first + lane) % out_width);
            let end = count.min(lane + out_width - ox);
            let (image, oy) = (row / out_height, row % out_height);
            let y = (oy * geometry.strides[0] + at[0] * geometry.dilations[0]).checked_sub(geometry.pads_low[0]);
            if let Some(y) = y.filter(|&y| y < height) {
                let line = &activations[((image * geometry.channels + channel) * height + y) * width..][..width];
                for (lane, ox) in (lane..end).zip(ox..) {
                    let x = (ox * geometry.strides[1] + at[1] * geometry.dilations[1]).wrapping_sub(geometry.pads_low[1]);
                    column[lane] = line.get(x).map_or(0, |&a| u16::from(a));
                }
            }
            lane = end;
        }
    }
}
