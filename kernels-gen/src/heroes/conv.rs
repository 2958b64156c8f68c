//! Direct convolution over NCHW, accumulated in f32; one-dimensional ones have a height of 1.
//!
//! A lane computes `tile_y` rows of 4 pixels for `tile_oc` output channels, so that a loaded input serves several outputs and taps.
//! Padding is the skeleton's affair.
//!
//! Holes (`u32` indices, always in range):
//!
//! | function | gives | needed |
//! |---|---|---|
//! | `load_x1(n, c, y, x) -> f32` | input pixel of channel `c` (of all groups) | always |
//! | `load_x(n, c, y, x) -> vec4<f32>` | pixels `x..x+4`, `x` a multiple of 4 | if `x_vec` |
//! | `load_w(g, c, tap, oc) -> vec4<f32>` | weights of output channels `oc..oc+4` of group `g`, input channel `c` of the group, `tap = ky * kernel_x + kx` | always |
//! | `store1(n, oc, y, x, v: f32)` | writes an output of channel `oc` (of all groups) | unless all rows are stored by `store` |
//! | `store(n, oc, y, x, v: vec4<f32>)` | writes outputs `x..x+4`, `x` a multiple of 4 | if `store_vec` |
//!
//! `load_w` is called with `oc` a multiple of 4 below the group's number of output channels; where that is no multiple of 4, what the
//! lanes past it hold is ignored. The layout made for it is `[group][input channel][tap][output channel, padded to a multiple of 4]`.

use std::collections::BTreeSet;
use std::fmt;

use super::text::{Text, component};
use super::{SUBGROUP_LANES, Sharing, Skeleton, check_limits, fold, size_class};
use crate::error::{Error, Result};
use crate::target::Target;

/// Sizes of a convolution; pairs are (y, x).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConvProblem {
    /// Images.
    pub batch: u32,
    /// Groups.
    pub groups: u32,
    /// Input channels of a group.
    pub in_channels: u32,
    /// Output channels of a group.
    pub out_channels: u32,
    /// Input size, at least 1 by 1.
    pub input: [u32; 2],
    /// Output size.
    pub output: [u32; 2],
    /// Kernel size.
    pub kernel: [u32; 2],
    /// Stride.
    pub stride: [u32; 2],
    /// Dilation.
    pub dilation: [u32; 2],
    /// Padding before the first pixel; what lies past the last is padding too.
    pub pad: [u32; 2],
    /// Whether four pixels of an input row can be read at once.
    pub x_vec: bool,
    /// Whether four pixels of an output row can be written at once.
    pub store_vec: bool,
}

/// Tile sizes of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvConfig {
    /// Output rows a lane computes; each has 4 pixels.
    pub tile_y: u32,
    /// Output channels a lane computes, a multiple of 4.
    pub tile_oc: u32,
    /// Input channels an iteration takes.
    pub tile_c: u32,
    /// Lanes of a workgroup; 8 with [`Sharing::Subgroup`].
    pub lanes: u32,
    /// Whether the lanes of a subgroup share the weights they load.
    pub sharing: Sharing,
}

/// Most taps of a kernel that are unrolled.
pub(super) const MAX_TAPS: u32 = 16;
/// Pixels of a row a lane computes.
const TILE_X: u32 = 4;

impl ConvProblem {
    /// Floating-point operations, two a multiplication and addition, padding included.
    pub fn flops(&self) -> u64 {
        let ConvProblem { batch, groups, in_channels, out_channels, output, kernel, .. } = self;
        [*groups, *in_channels, *out_channels, output[0], output[1], kernel[0], kernel[1]]
            .iter()
            .fold(2 * u64::from(*batch), |f, d| f.saturating_mul(u64::from(*d)))
    }

    /// What problems share whose fastest configuration is taken to be one.
    pub fn class(&self) -> String {
        let [batch, ic, oc] = [self.batch, self.in_channels, self.out_channels].map(size_class);
        let pair = |p: [u32; 2]| format!("{}x{}", p[0], p[1]);
        let image = |p: [u32; 2]| format!("{}x{}", size_class(p[0]), size_class(p[1]));
        let ConvProblem { groups, stride, dilation, pad, x_vec, store_vec, .. } = self;
        let width = |vec: &bool| if *vec { 4 } else { 1 };
        format!(
            "{batch}x{ic}x{} to {oc}x{} groups:{groups} kernel:{} stride:{} dilation:{} pad:{} x:{} store:{}",
            image(self.input),
            image(self.output),
            pair(self.kernel),
            pair(*stride),
            pair(*dilation),
            pair(*pad),
            width(x_vec),
            width(store_vec)
        )
    }

    fn check(&self) -> Result<()> {
        let positive = self.groups > 0 && self.input.iter().chain(&self.kernel).chain(&self.stride).chain(&self.dilation).all(|d| *d > 0);
        let reach = |i: usize| {
            let last = u64::from(self.output[i].saturating_sub(1)) * u64::from(self.stride[i]);
            last + u64::from(self.kernel[i] - 1) * u64::from(self.dilation[i]) + u64::from(TILE_X * 8 * self.stride[i])
        };
        if positive && reach(0).max(reach(1)) < 1 << 30 && self.pad.iter().all(|p| *p < 1 << 30) {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "convolution {self:?}: groups, input, kernel, stride and dilation must be positive, and its window must end below 2^30"
        )))
    }
}

impl fmt::Display for ConvConfig {
    /// `2x16x1 on 8 subgroup`: rows, output and input channels, lanes and sharing; equal for equal configurations only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConvConfig { tile_y, tile_oc, tile_c, lanes, sharing } = self;
        write!(f, "{tile_y}x{tile_oc}x{tile_c} on {lanes} {sharing}")
    }
}

impl ConvConfig {
    fn check(&self) -> Result<()> {
        let accumulators = u64::from(self.tile_y) * u64::from(self.tile_oc) * u64::from(TILE_X);
        let shared = match self.sharing {
            Sharing::Lane => true,
            Sharing::Subgroup => self.lanes == SUBGROUP_LANES,
            Sharing::Split | Sharing::Workgroup | Sharing::Own => false,
        };
        let ok = self.tile_y > 0 && self.tile_y <= 8 && self.tile_oc > 0 && self.tile_oc.is_multiple_of(4) && self.tile_c > 0;
        if ok && shared && accumulators <= 1024 && self.tile_c <= 16 {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "convolution configuration {self:?}: tile_y is 1 to 8, tile_oc a multiple of 4, tile_c 1 to 16, a lane holds at most 1024 \
             results, and lanes share nothing, or weights in subgroups of 8"
        )))
    }
}

/// The entry point `entry` that computes `problem` with tiles `config`.
///
/// Fails where the problem or the configuration is malformed or past the target's limits, loop iterations included.
pub fn skeleton(problem: &ConvProblem, config: &ConvConfig, target: &Target, entry: &str) -> Result<Skeleton> {
    let Launch { iterations, blocks, workgroups } = launch(problem, config, target)?;
    Ok(Skeleton {
        wgsl: Generator::new(problem, config).entry(entry, blocks),
        workgroup_size: [config.lanes, 1, 1],
        workgroups,
        workgroup_bytes: 0,
        subgroups: config.sharing == Sharing::Subgroup,
        flops: problem.flops(),
        max_iterations: iterations,
    })
}

/// Whether [`skeleton`] makes a kernel of `config` for `problem`; its error says why not.
pub fn check(problem: &ConvProblem, config: &ConvConfig, target: &Target) -> Result<()> {
    launch(problem, config, target).map(|_| ())
}

/// Size of a dispatch.
struct Launch {
    iterations: u64,
    blocks: u64,
    workgroups: [u32; 3],
}

fn launch(problem: &ConvProblem, config: &ConvConfig, target: &Target) -> Result<Launch> {
    problem.check()?;
    config.check()?;
    check_limits(target, "convolution", [config.lanes, 1], 0, config.sharing == Sharing::Subgroup)?;
    let work = Generator::new(problem, config);
    let iterations = work.iterations();
    if let Some(bound) = target.max_loop_iterations.filter(|bound| iterations > *bound) {
        return Err(Error::Unsupported(format!(
            "convolution of {} input channels and a kernel of {:?} runs {iterations} loop iterations, target `{}` allows {bound}; split the \
             input channels",
            problem.in_channels, problem.kernel, target.name
        )));
    }
    let blocks = work.tiles().div_ceil(u64::from(config.lanes)) * u64::from(problem.groups) * u64::from(work.oc_tiles());
    let workgroups = fold(blocks, target, "convolution")?;
    if u32::try_from(work.tiles() + u64::from(config.lanes)).is_err() {
        return Err(Error::Unsupported(format!("convolution of {} pixel tiles is past 2^32; split the batch", work.tiles())));
    }
    Ok(Launch { iterations, blocks, workgroups })
}

struct Generator<'a> {
    p: &'a ConvProblem,
    c: &'a ConvConfig,
    /// Taps in y and x that are loops, not unrolled: their number, or 1.
    loop_y: u32,
    loop_x: u32,
    /// Results a lane holds along the channels.
    channels: u32,
    text: Text,
}

impl<'a> Generator<'a> {
    fn new(p: &'a ConvProblem, c: &'a ConvConfig) -> Self {
        let [ky, kx] = p.kernel;
        let loop_y = if ky.saturating_mul(kx) > MAX_TAPS { ky } else { 1 };
        let loop_x = if kx > MAX_TAPS { kx } else { 1 };
        Generator { p, c, loop_y, loop_x, channels: c.tile_oc.min(p.out_channels), text: Text::default() }
    }

    /// Loop iterations of one invocation; a loop ends with one more check.
    fn iterations(&self) -> u64 {
        let run = |times: u32, inner: u64| if times > 1 { u64::from(times) * (inner + 1) + 1 } else { inner };
        let taps = run(self.loop_y, run(self.loop_x, 0));
        let whole = u64::from(self.p.in_channels / self.c.tile_c);
        let blocks = u64::from(self.p.in_channels.div_ceil(self.c.tile_c));
        whole + 1 + blocks * taps
    }

    /// Unrolled taps in y and x.
    fn taps(&self) -> [u32; 2] {
        [self.p.kernel[0] / self.loop_y, self.p.kernel[1] / self.loop_x]
    }

    fn grid(&self) -> [u32; 2] {
        [self.p.output[0].div_ceil(self.c.tile_y), self.p.output[1].div_ceil(TILE_X)]
    }

    /// Tiles of pixels in all images.
    fn tiles(&self) -> u64 {
        let [y, x] = self.grid();
        u64::from(self.p.batch) * u64::from(y) * u64::from(x)
    }

    fn oc_tiles(&self) -> u32 {
        self.p.out_channels.div_ceil(self.c.tile_oc)
    }

    /// Whether a tile of channels can reach past the group's.
    fn ragged_channels(&self) -> bool {
        self.oc_tiles() > 1 && !self.p.out_channels.is_multiple_of(self.c.tile_oc)
    }

    /// Vectors of weights of one tap.
    fn quads(&self) -> u32 {
        self.channels.div_ceil(4)
    }

    /// Offsets from the tile's first input pixel that the unrolled taps touch, on axis 0 (y) or 1 (x).
    fn window(&self, axis: usize) -> BTreeSet<u32> {
        let pixels = if axis == 0 { self.c.tile_y } else { TILE_X };
        (0..pixels).flat_map(|t| (0..self.taps()[axis]).map(move |k| (t, k))).map(|(t, k)| self.offset(axis, t, k)).collect()
    }

    fn offset(&self, axis: usize, pixel: u32, tap: u32) -> u32 {
        pixel * self.p.stride[axis] + tap * self.p.dilation[axis]
    }

    /// Whether a tap of an output that exists can fall outside the input.
    fn padded(&self, axis: usize) -> bool {
        let last = u64::from(self.p.output[axis].saturating_sub(1)) * u64::from(self.p.stride[axis])
            + u64::from(self.p.kernel[axis] - 1) * u64::from(self.p.dilation[axis]);
        self.p.pad[axis] > 0 || last >= u64::from(self.p.input[axis])
    }

    /// Whether rows of the input are read as whole vectors: pixels and inputs coincide.
    fn whole_vectors(&self) -> bool {
        self.p.x_vec
            && self.p.kernel[1] == 1
            && self.p.stride[1] == 1
            && self.p.pad[1] == 0
            && self.p.input[1].is_multiple_of(4)
            && self.p.output[1] == self.p.input[1]
    }

    fn entry(mut self, entry: &str, blocks: u64) -> String {
        let lanes = self.c.lanes;
        self.text.line(format!("@compute @workgroup_size({lanes}, 1, 1)"));
        self.text.line(format!("fn {entry}("));
        self.text.line("    @builtin(workgroup_id) wid: vec3<u32>,");
        self.text.line("    @builtin(num_workgroups) num_wg: vec3<u32>,");
        let lane = if self.c.sharing == Sharing::Subgroup {
            self.text.line("    @builtin(subgroup_invocation_id) lane: u32,");
            "lane"
        } else {
            self.text.line("    @builtin(local_invocation_id) local: vec3<u32>,");
            "local.x"
        };
        self.text.line(") {");
        self.text.line("let block = wid.x + wid.y * num_wg.x;");
        self.text.line(format!("if block >= {blocks}u {{"));
        self.text.line("return;");
        self.text.line("}");
        let (oc_tiles, groups) = (self.oc_tiles().max(1), self.p.groups);
        self.text.line(format!("let oc = block % {oc_tiles}u * {}u;", self.c.tile_oc));
        self.text.line(format!("let group = block / {oc_tiles}u % {groups}u;"));
        self.text.line(format!("let place = block / {}u * {lanes}u + {lane};", u64::from(oc_tiles) * u64::from(groups)));
        // Lanes past the last tile compute it again and write nothing.
        let tiles = self.tiles();
        self.text.line(format!("let tile = min(place, {}u);", tiles.saturating_sub(1)));
        let [gy, gx] = self.grid().map(|g| g.max(1));
        self.text.line(format!("let ox = tile % {gx}u * {TILE_X}u;"));
        self.text.line(format!("let oy = tile / {gx}u % {gy}u * {}u;", self.c.tile_y));
        self.text.line(format!("let n = tile / {}u;", u64::from(gx) * u64::from(gy)));
        for t in 0..self.c.tile_y {
            for o in 0..self.channels {
                self.text.line(format!("var c{t}_{o} = vec4<f32>();"));
            }
        }
        if self.loop_y == 1 {
            self.coordinates(0);
        }
        if self.loop_x == 1 {
            self.coordinates(1);
        }
        let step = self.c.tile_c;
        let whole = self.p.in_channels / step * step;
        if whole > 0 {
            self.text.line(format!("for (var ic = 0u; ic < {whole}u; ic += {step}u) {{"));
            self.taps_of(step);
            self.text.line("}");
        }
        if whole < self.p.in_channels {
            self.text.line("{");
            self.text.line(format!("let ic = {whole}u;"));
            self.taps_of(self.p.in_channels - whole);
            self.text.line("}");
        }
        self.store();
        self.text.line("}");
        self.text.finish()
    }

    /// Input coordinates of the window on one axis, held inside the input, and whether they were inside.
    fn coordinates(&mut self, axis: usize) {
        let (name, origin, looped) = if axis == 0 { ("y", "oy", self.loop_y > 1) } else { ("x", "ox", self.loop_x > 1) };
        let (pad, last) = (self.p.pad[axis], self.p.input[axis] - 1);
        let tap = if looped { format!(" + k{name} * {}u", self.p.dilation[axis]) } else { String::new() };
        for at in self.window(axis) {
            // Unsigned wrap-around puts what lies before the first pixel past the last.
            self.text.line(format!("let r{name}{at} = {origin} * {}u + {at}u{tap} - {pad}u;", self.p.stride[axis]));
            self.text.line(format!("let {name}{at} = min(r{name}{at}, {last}u);"));
        }
    }

    /// The loops over taps that are not unrolled, around the products of `channels` input channels from `ic`.
    fn taps_of(&mut self, channels: u32) {
        let [ky, kx] = self.p.kernel;
        if self.loop_y > 1 {
            self.text.line(format!("for (var ky = 0u; ky < {ky}u; ky++) {{"));
            self.coordinates(0);
        }
        if self.loop_x > 1 {
            self.text.line(format!("for (var kx = 0u; kx < {kx}u; kx++) {{"));
            self.coordinates(1);
        }
        self.multiply(channels);
        for looped in [self.loop_x, self.loop_y] {
            if looped > 1 {
                self.text.line("}");
            }
        }
    }

    /// Loads the window of each channel and multiplies it with the weights.
    fn multiply(&mut self, channels: u32) {
        self.weights(channels);
        let [taps_y, taps_x] = self.taps();
        let quads = self.quads();
        for u in 0..channels {
            self.text.line("{");
            self.text.line(format!("let c = group * {}u + ic + {u}u;", self.p.in_channels));
            self.inputs();
            for t in 0..self.c.tile_y {
                for (ky, kx) in (0..taps_y).flat_map(|y| (0..taps_x).map(move |x| (y, x))) {
                    let y = self.offset(0, t, ky);
                    let value = if self.whole_vectors() {
                        format!("v{y}")
                    } else {
                        let at = |pixel| format!("v{y}_{}", self.offset(1, pixel, kx));
                        format!("vec4<f32>({}, {}, {}, {})", at(0), at(1), at(2), at(3))
                    };
                    self.text.line(format!("let p{t}_{ky}_{kx} = {value};"));
                }
                for o in 0..self.channels {
                    let mut sum = format!("c{t}_{o}");
                    for (ky, kx) in (0..taps_y).flat_map(|y| (0..taps_x).map(move |x| (y, x))) {
                        let w = (u * taps_y * taps_x + ky * taps_x + kx) * quads + o / 4;
                        sum = format!("fma(vec4<f32>(w{w}.{}), p{t}_{ky}_{kx}, {sum})", component(o));
                    }
                    self.text.line(format!("c{t}_{o} = {sum};"));
                }
            }
            self.text.line("}");
        }
    }

    /// Vectors of weights `w0`, `w1`... in the order (channel, tap, output channel).
    fn weights(&mut self, channels: u32) {
        let [taps_y, taps_x] = self.taps();
        let (taps, quads) = (taps_y * taps_x, self.quads());
        let count = channels * taps * quads;
        let mut first_tap = String::new();
        if self.loop_y > 1 {
            first_tap.push_str(&format!(" + ky * {}u", self.p.kernel[1]));
        }
        if self.loop_x > 1 {
            first_tap.push_str(" + kx");
        }
        let last = self.p.out_channels.saturating_sub(1) / 4 * 4;
        let ragged = self.ragged_channels();
        let oc = |quad: String| {
            let at = format!("oc + {quad} * 4u");
            if ragged { format!("min({at}, {last}u)") } else { at }
        };
        if self.c.sharing == Sharing::Subgroup {
            for g in 0..count.div_ceil(SUBGROUP_LANES) {
                let at = format!("lane + {}u", g * SUBGROUP_LANES);
                let past = (g + 1) * SUBGROUP_LANES > count;
                let at = if past { format!("min({at}, {}u)", count - 1) } else { at };
                let call = format!(
                    "load_w(group, ic + e{g} / {}u, e{g} / {quads}u % {taps}u{first_tap}, {})",
                    taps * quads,
                    oc(format!("e{g} % {quads}u"))
                );
                self.text.line(format!("let e{g} = {at};"));
                self.text.line(format!("let l{g} = {call};"));
            }
            for w in 0..count {
                self.text.line(format!("let w{w} = subgroupBroadcast(l{}, {}u);", w / SUBGROUP_LANES, w % SUBGROUP_LANES));
            }
        } else {
            for w in 0..count {
                let (u, tap, quad) = (w / (taps * quads), w / quads % taps, w % quads);
                let call = format!("load_w(group, ic + {u}u, {tap}u{first_tap}, {})", oc(format!("{quad}u")));
                self.text.line(format!("let w{w} = {call};"));
            }
        }
    }

    /// The window of channel `c`, zero where it is padding.
    fn inputs(&mut self) {
        let (pad_y, pad_x) = (self.padded(0), self.padded(1));
        let [height, width] = self.p.input;
        for y in self.window(0) {
            if self.whole_vectors() {
                let load = format!("load_x(n, c, y{y}, ox)");
                let value = if pad_y { format!("select(vec4<f32>(), {load}, ry{y} < {height}u)") } else { load };
                self.text.line(format!("let v{y} = {value};"));
                continue;
            }
            for x in self.window(1) {
                let load = format!("load_x1(n, c, y{y}, x{x})");
                let inside = match (pad_y, pad_x) {
                    (false, false) => None,
                    (true, false) => Some(format!("ry{y} < {height}u")),
                    (false, true) => Some(format!("rx{x} < {width}u")),
                    (true, true) => Some(format!("ry{y} < {height}u && rx{x} < {width}u")),
                };
                let value = inside.map_or(load.clone(), |inside| format!("select(0.0, {load}, {inside})"));
                self.text.line(format!("let v{y}_{x} = {value};"));
            }
        }
    }

    /// Writes what lies inside the output.
    fn store(&mut self) {
        let [height, width] = self.p.output;
        let store_vec = self.p.store_vec && width.is_multiple_of(4);
        let ragged = self.ragged_channels();
        self.text.line(format!("if place < {}u {{", self.tiles()));
        for o in 0..self.channels {
            if ragged {
                self.text.line(format!("if oc + {o}u < {}u {{", self.p.out_channels));
            }
            self.text.line("{");
            self.text.line(format!("let k = group * {}u + oc + {o}u;", self.p.out_channels));
            for t in 0..self.c.tile_y {
                let guard = !height.is_multiple_of(self.c.tile_y);
                if guard {
                    self.text.line(format!("if oy + {t}u < {height}u {{"));
                }
                if store_vec {
                    self.text.line(format!("store(n, k, oy + {t}u, ox, c{t}_{o});"));
                } else {
                    for e in 0..TILE_X {
                        let write = format!("store1(n, k, oy + {t}u, ox + {e}u, c{t}_{o}.{});", component(e));
                        if e > 0 && !width.is_multiple_of(4) {
                            self.text.line(format!("if ox + {e}u < {width}u {{"));
                            self.text.line(write);
                            self.text.line("}");
                        } else {
                            self.text.line(write);
                        }
                    }
                }
                if guard {
                    self.text.line("}");
                }
            }
            self.text.line("}");
            if ragged {
                self.text.line("}");
            }
        }
        self.text.line("}");
    }
}
