//! Matrix product `C[b, i, j] = sum over k of A[b, i, k] * B[b, k, j]`, accumulated in f32; or of words of four signed bytes each, whose
//! products are added up in i32 ([`Terms`]). For those read `u32` where the table below says that holes load `f32`, and `i32` where they store it.
//!
//! Holes (`u32` indices, always in range):
//!
//! | function | gives | needed |
//! |---|---|---|
//! | `load_a1(b, i, k) -> f32` | `A[b, i, k]` | always |
//! | `load_a(b, i, k) -> vec4<f32>` | `A[b, i, k..k+4]` for [`VecAxis::K`], `A[b, i..i+4, k]` for [`VecAxis::Free`] | unless `a_vec` is `None` |
//! | `load_b1(b, k, j) -> f32` | `B[b, k, j]` | always |
//! | `load_b(b, k, j) -> vec4<f32>` | `B[b, k..k+4, j]` for [`VecAxis::K`], `B[b, k, j..j+4]` for [`VecAxis::Free`] | unless `b_vec` is `None` |
//! | `load_a_run(b, i, k) -> array<vec4<f32>, 8>` | `A[b, i, k..k+32]` | if `runs[0]` |
//! | `load_b_run(b, k, j) -> array<vec4<f32>, 8>` | `B[b, k..k+32, j]` | if `runs[1]` |
//! | `store1(b, i, j, v: f32)` | writes the result `v` | unless all rows are stored by `store` |
//! | `store(b, i, j, v: vec4<f32>)` | writes the results `j..j+4` | if `store_vec` |
//!
//! Vector holes are called with the vectorised index a multiple of 4, those of runs with k a multiple of 32.

mod split;
mod staged;

use std::fmt;

use super::text::{Text, clamp, component};
use super::{SUBGROUP_LANES, Sharing, Skeleton, check_limits, fold, size_class};
use crate::error::{Error, Result};
use crate::target::Target;

/// Axis of an operand along which its vector hole reads four elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VecAxis {
    /// None: the operand is read element by element.
    None,
    /// The contracted axis.
    K,
    /// The operand's own axis: m of A, n of B.
    Free,
}

/// What is multiplied and added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Terms {
    /// Products of f32, in f32.
    F32,
    /// The four products of the signed bytes of two words, in i32.
    I8,
}

impl Terms {
    /// WGSL type of an operand's element.
    fn operand(self) -> &'static str {
        match self {
            Terms::F32 => "f32",
            Terms::I8 => "u32",
        }
    }

    /// WGSL type of a sum.
    fn sum(self) -> &'static str {
        match self {
            Terms::F32 => "f32",
            Terms::I8 => "i32",
        }
    }
}

/// Sizes of a matrix product and how its operands can be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GemmProblem {
    /// What is multiplied.
    pub terms: Terms,
    /// Number of products; operands with fewer matrices are broadcast by their holes.
    pub batch: u32,
    /// Rows of A and C.
    pub m: u32,
    /// Columns of B and C.
    pub n: u32,
    /// Contracted size, in words for [`Terms::I8`]; 0 gives zeros, which still pass through the epilogue.
    pub k: u32,
    /// Vector axis of A.
    pub a_vec: VecAxis,
    /// Vector axis of B.
    pub b_vec: VecAxis,
    /// Whether four results of a row can be written at once.
    pub store_vec: bool,
    /// Whether A and B, where their vector axis is k, can be read by [`RUN`] steps with fewer loads than by four: several of their elements
    /// share a word.
    pub runs: [bool; 2],
}

/// Steps of k that the hole of a run gives.
pub const RUN: u32 = 32;

/// Tile sizes of a matrix product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GemmConfig {
    /// Rows of C a lane holds; with [`Sharing::Subgroup`] a multiple of 8, with [`Sharing::Workgroup`] of 4. Of the shorter side of C with
    /// [`Sharing::Split`] and [`Sharing::Own`].
    pub tile_m: u32,
    /// Columns of C a lane holds, a multiple of 4. Of the longer side of C with [`Sharing::Split`] and [`Sharing::Own`].
    pub tile_n: u32,
    /// Steps of k unrolled, a multiple of 4; with [`Sharing::Workgroup`] those that workgroup memory holds.
    pub tile_k: u32,
    /// Lanes of a workgroup along n and m; along the longer side of C and k with [`Sharing::Split`]; `[8, 1]` with [`Sharing::Subgroup`],
    /// one dimension with [`Sharing::Own`].
    pub workgroup: [u32; 2],
    /// How lanes share operands.
    pub sharing: Sharing,
}

impl GemmProblem {
    /// Operations, two a multiplication and addition.
    pub fn flops(&self) -> u64 {
        let each = if self.terms == Terms::I8 { 8 } else { 2 };
        [self.m, self.n, self.k].iter().fold(each * u64::from(self.batch), |f, d| f.saturating_mul(u64::from(*d)))
    }

    /// What problems share whose fastest configuration is taken to be one.
    pub fn class(&self) -> String {
        let [batch, m, n, k] = [self.batch, self.m, self.n, self.k].map(size_class);
        let [a, b] = self.runs.map(|run| if run { " packed" } else { "" });
        let terms = if self.terms == Terms::I8 { "i8 " } else { "" };
        format!("{terms}{batch}x{m}x{n}x{k} a:{:?}{a} b:{:?}{b} store:{}", self.a_vec, self.b_vec, if self.store_vec { 4 } else { 1 })
    }

    /// The problem with vector axes kept only where sizes are whole vectors.
    fn normalised(&self) -> GemmProblem {
        let keep = |axis, free: u32| if axis == VecAxis::Free && !free.is_multiple_of(4) { VecAxis::None } else { axis };
        GemmProblem {
            a_vec: keep(self.a_vec, self.m),
            b_vec: keep(self.b_vec, self.n),
            store_vec: self.store_vec && self.n.is_multiple_of(4),
            runs: [self.runs[0] && self.a_vec == VecAxis::K, self.runs[1] && self.b_vec == VecAxis::K],
            ..self.clone()
        }
    }

    /// Whether an operand is read by runs, where the configuration takes whole ones.
    pub fn packed(&self) -> bool {
        self.runs.contains(&true)
    }
}

impl fmt::Display for GemmConfig {
    /// `64x8x4 on 8x1 subgroup`: the tile, lanes and sharing; equal for equal configurations only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GemmConfig { tile_m, tile_n, tile_k, workgroup: [x, y], sharing } = self;
        write!(f, "{tile_m}x{tile_n}x{tile_k} on {x}x{y} {sharing}")
    }
}

impl GemmConfig {
    /// Lanes whose results lie side by side, along n and m.
    fn lanes(&self) -> [u32; 2] {
        let [x, y] = self.workgroup;
        match self.sharing {
            Sharing::Lane | Sharing::Workgroup => [x, y],
            Sharing::Subgroup | Sharing::Split => [x, 1],
            Sharing::Own => [1, 1],
        }
    }

    /// Rows and columns of C a workgroup computes; a lane with [`Sharing::Own`].
    pub(super) fn block(&self, problem: &GemmProblem) -> [u32; 2] {
        let [x, y] = self.lanes();
        let [rows, cols] = [self.tile_m.saturating_mul(y), self.tile_n.saturating_mul(x)];
        if self.transposes(problem) { [cols, rows] } else { [rows, cols] }
    }

    /// Whether the transposed product is computed: where tiles lie along the longer side of C and that is the one of its rows.
    fn transposes(&self, problem: &GemmProblem) -> bool {
        matches!(self.sharing, Sharing::Split | Sharing::Own) && problem.n < problem.m
    }

    /// Tiles of one workgroup.
    pub(super) fn tiles_per_workgroup(&self) -> u32 {
        if self.sharing == Sharing::Own { self.workgroup[0].max(1) } else { 1 }
    }

    /// Lanes that take a part of k each.
    fn lanes_k(&self) -> u32 {
        if self.sharing == Sharing::Split { self.workgroup[1].max(1) } else { 1 }
    }

    /// Vectors of partial sums in workgroup memory.
    fn partial_sums(&self) -> u32 {
        let lanes = self.workgroup[0].saturating_mul(self.workgroup[1]);
        if self.lanes_k() > 1 { lanes.saturating_mul(self.tile_m).saturating_mul(self.tile_n / 4) } else { 0 }
    }

    fn check(&self) -> Result<()> {
        let ok = self.tile_m > 0
            && self.tile_n > 0
            && self.tile_n.is_multiple_of(4)
            && self.tile_k > 0
            && self.tile_k.is_multiple_of(4)
            && u64::from(self.tile_m) * u64::from(self.tile_n) <= 1024
            && match self.sharing {
                Sharing::Lane | Sharing::Split => true,
                Sharing::Subgroup => self.workgroup == [SUBGROUP_LANES, 1] && self.tile_m.is_multiple_of(SUBGROUP_LANES),
                Sharing::Workgroup => self.tile_m.is_multiple_of(4),
                Sharing::Own => self.workgroup[1] == 1,
            };
        if ok {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "matrix product configuration {self:?}: tile_n and tile_k are multiples of 4, a lane holds 1 to 1024 results, subgroup \
             sharing takes workgroups of [8, 1] and a tile_m that is a multiple of 8, sharing by workgroups one that is a multiple of 4, and \
             lanes with tiles of their own stand in one dimension"
        )))
    }
}

/// The entry point `entry` that computes `problem` with tiles `config`.
///
/// Fails where the configuration is malformed or past the target's limits, and where the loop over k would pass the target's
/// bound on loop iterations: split k then.
pub fn skeleton(problem: &GemmProblem, config: &GemmConfig, target: &Target, entry: &str) -> Result<Skeleton> {
    let Launch { step, tiles, workgroups } = launch(problem, config, target)?;
    let transposed = config.transposes(problem);
    let problem = problem.normalised();
    let mut problem = if transposed { problem.transposed() } else { problem };
    // Four rows at once are read where tiles begin at whole vectors of them.
    if problem.a_vec == VecAxis::Free && !config.tile_m.is_multiple_of(4) && config.sharing != Sharing::Workgroup {
        problem.a_vec = VecAxis::None;
    }
    let holes = [problem.a_vec, problem.b_vec];
    if config.sharing == Sharing::Workgroup {
        problem = problem.staged();
    }
    let work = Generator { p: &problem, c: config, step, varying: target.varying_sizes, transposed, holes, text: Text::default() };
    let subgroups = config.sharing == Sharing::Subgroup;
    Ok(Skeleton {
        wgsl: work.entry(entry, tiles),
        workgroup_size: [config.workgroup[0], config.workgroup[1], 1],
        workgroups,
        workgroup_bytes: workgroup_bytes(&problem, config),
        subgroups,
        flops: problem.flops(),
        max_iterations: u64::from(problem.k / config.lanes_k() / step) + 1 + u64::from(config.tile_m * config.tile_n / 4),
    })
}

/// Whether [`skeleton`] makes a kernel of `config` for `problem`; its error says why not.
pub fn check(problem: &GemmProblem, config: &GemmConfig, target: &Target) -> Result<()> {
    launch(problem, config, target).map(|_| ())
}

fn workgroup_bytes(problem: &GemmProblem, config: &GemmConfig) -> u32 {
    let [a, b] = if problem.k > 0 { config.staged() } else { [0, 0] };
    config.partial_sums().saturating_add(a).saturating_add(b).saturating_mul(16)
}

/// Size of a dispatch.
struct Launch {
    step: u32,
    tiles: u64,
    workgroups: [u32; 3],
}

fn launch(problem: &GemmProblem, config: &GemmConfig, target: &Target) -> Result<Launch> {
    config.check()?;
    check_limits(target, "matrix product", config.workgroup, workgroup_bytes(problem, config), config.sharing == Sharing::Subgroup)?;
    let step = unrolled_step(problem.k / config.lanes_k(), config.tile_k, target)?;
    let [rows, cols] = config.block(problem);
    let tiles = [problem.m.div_ceil(rows), problem.n.div_ceil(cols)];
    let tiles = tiles.iter().fold(u64::from(problem.batch), |all, n| all.saturating_mul(u64::from(*n)));
    if config.sharing == Sharing::Own && tiles > 1 << 31 {
        return Err(Error::Unsupported(format!(
            "matrix product of {tiles} tiles: lanes count theirs up to 2^31; choose another configuration"
        )));
    }
    let workgroups = tiles.div_ceil(u64::from(config.tiles_per_workgroup()));
    Ok(Launch { step, tiles, workgroups: fold(workgroups, target, "matrix product")? })
}

/// Steps of k in one iteration: the configuration's, doubled until the loop keeps within the target's bound.
fn unrolled_step(k: u32, tile_k: u32, target: &Target) -> Result<u32> {
    const MAX_STEP: u32 = 64;
    let bound = target.max_loop_iterations.unwrap_or(u64::MAX);
    let mut step = tile_k;
    while u64::from(k / step) >= bound {
        step *= 2;
        if step > MAX_STEP {
            return Err(Error::Unsupported(format!(
                "matrix product with k = {k} needs more than the {bound} loop iterations that target `{}` allows; split k into parts of at \
                 most {}",
                target.name,
                bound.saturating_mul(u64::from(MAX_STEP / 2))
            )));
        }
    }
    Ok(step)
}

struct Generator<'a> {
    /// The problem, or the transposed one.
    p: &'a GemmProblem,
    c: &'a GemmConfig,
    /// Steps of k an iteration takes.
    step: u32,
    /// Whether tails are tested for in any case.
    varying: bool,
    /// Whether the holes' operands are exchanged.
    transposed: bool,
    /// Vector axes of the holes of A and B. Those of the problem are those of what is multiplied, which may lie in workgroup memory.
    holes: [VecAxis; 2],
    text: Text,
}

impl Generator<'_> {
    /// Rows of C a workgroup computes.
    fn block_m(&self) -> u32 {
        self.c.tile_m * self.c.lanes()[1]
    }

    fn block_n(&self) -> u32 {
        self.c.tile_n * self.c.lanes()[0]
    }

    fn tiles_m(&self) -> u32 {
        self.p.m.div_ceil(self.block_m())
    }

    fn tiles_n(&self) -> u32 {
        self.p.n.div_ceil(self.block_n())
    }

    fn vecs(&self) -> u32 {
        self.c.tile_n / 4
    }

    fn ragged_m(&self) -> bool {
        self.varying || !self.p.m.is_multiple_of(self.block_m())
    }

    fn ragged_n(&self) -> bool {
        self.varying || !self.p.n.is_multiple_of(self.block_n())
    }

    fn entry(mut self, entry: &str, tiles: u64) -> String {
        let [x, y] = self.c.workgroup;
        if self.p.terms == Terms::I8 {
            self.text.line("fn dot_4(a: u32, b: vec4<u32>, c: vec4<i32>) -> vec4<i32> {");
            let dots: Vec<String> = ["x", "y", "z", "w"].iter().map(|c| format!("dot4I8Packed(a, b.{c})")).collect();
            self.text.line(format!("return c + vec4<i32>({});", dots.join(", ")));
            self.text.line("}");
        }
        self.partial_sums();
        self.staging();
        self.text.line(format!("@compute @workgroup_size({x}, {y}, 1)"));
        self.text.line(format!("fn {entry}("));
        self.text.line("    @builtin(workgroup_id) wid: vec3<u32>,");
        self.text.line("    @builtin(num_workgroups) num_wg: vec3<u32>,");
        if self.c.sharing == Sharing::Subgroup {
            self.text.line("    @builtin(subgroup_invocation_id) sub_lane: u32,");
        }
        self.text.line("    @builtin(local_invocation_id) lane: vec3<u32>,");
        self.text.line(") {");
        self.text.line(match self.c.sharing {
            Sharing::Own => format!("let tile = (wid.x + wid.y * num_wg.x) * {x}u + lane.x;"),
            _ => "let tile = wid.x + wid.y * num_wg.x;".to_string(),
        });
        self.text.line(format!("if tile >= {tiles}u {{"));
        self.text.line("return;");
        self.text.line("}");
        self.origin();
        if self.c.sharing == Sharing::Workgroup {
            self.staged_indices();
        } else {
            self.operand_indices();
        }
        for r in 0..self.c.tile_m {
            for q in 0..self.vecs() {
                self.text.line(format!("var c{r}_{q} = vec4<{}>();", self.p.terms.sum()));
            }
        }
        if self.split() > 1 {
            self.accumulate_split();
            self.store_split();
        } else {
            match self.c.sharing {
                Sharing::Workgroup => self.accumulate_staged(),
                _ => self.accumulate(),
            }
            self.store();
        }
        self.text.line("}");
        self.text.finish()
    }

    /// Adds up all of k.
    fn accumulate(&mut self) {
        let step = self.step;
        let whole = self.p.k / step * step;
        if whole > 0 {
            self.text.line(format!("for (var k = 0u; k < {whole}u; k += {step}u) {{"));
            self.multiply_step();
            self.text.line("}");
        }
        let mut at = whole;
        while at < self.p.k {
            let steps = (self.p.k - at).min(4);
            self.multiply(&format!("{at}u"), steps, None);
            at += steps;
        }
    }

    /// Whether A and B are read by runs in the loop over k: where its steps are whole ones.
    fn reads_runs(&self) -> [bool; 2] {
        let whole = self.step.is_multiple_of(RUN) && self.c.sharing != Sharing::Workgroup;
        [self.p.runs[0] && whole && self.c.sharing != Sharing::Subgroup, self.p.runs[1] && whole]
    }

    /// Multiplies the whole step from `k`.
    fn multiply_step(&mut self) {
        let runs = self.reads_runs();
        for part in 0..self.step / 4 {
            let (at, place) = (format!("k + {}u", part * 4), part % (RUN / 4));
            if !runs.contains(&true) {
                self.multiply(&at, 4, None);
                continue;
            }
            if place == 0 {
                self.text.line("{");
                self.load_runs(&at, runs);
            }
            self.multiply(&at, 4, Some(place));
            if place == RUN / 4 - 1 {
                self.text.line("}");
            }
        }
    }

    /// Loads a run of each of the lane's rows and columns.
    fn load_runs(&mut self, k: &str, [a, b]: [bool; 2]) {
        for r in (0..self.c.tile_m).filter(|_| a) {
            let load = self.hole("a_run", &format!("row{r}"), k);
            self.text.line(format!("let ra{r} = {load};"));
        }
        for q in (0..self.vecs()).filter(|_| b) {
            for e in 0..4 {
                let load = self.hole("b_run", &format!("col{q}_{e}"), k);
                self.text.line(format!("let rb{q}_{e} = {load};"));
            }
        }
    }

    /// A call of the hole that loads `operand`, `a` or `b` with a suffix, at an own index and a k.
    fn operand(&self, operand: &str, own: &str, k: &str) -> String {
        match self.c.sharing {
            Sharing::Workgroup => self.staged_operand(operand, own, k),
            _ => self.hole(operand, own, k),
        }
    }

    fn hole(&self, operand: &str, own: &str, k: &str) -> String {
        let (name, suffix) = operand.split_at(1);
        // The hole of B takes k first.
        match (name == "a", self.transposed) {
            (true, false) => format!("load_a{suffix}(b, {own}, {k})"),
            (true, true) | (false, false) => format!("load_b{suffix}(b, {k}, {own})"),
            (false, true) => format!("load_a{suffix}(b, {own}, {k})"),
        }
    }

    /// First row and column of the lane, and the matrix of the batch.
    fn origin(&mut self) {
        let (tm, tn) = (self.tiles_m().max(1), self.tiles_n().max(1));
        self.text.line(format!("let tile_n = tile % {tn}u;"));
        self.text.line(format!("let tile_m = tile / {tn}u % {tm}u;"));
        self.text.line(format!("let b = tile / {}u;", u64::from(tn) * u64::from(tm)));
        let row = match self.c.lanes()[1] {
            1 => format!("let row = tile_m * {}u;", self.block_m()),
            _ => format!("let row = tile_m * {}u + lane.y * {}u;", self.block_m(), self.c.tile_m),
        };
        self.text.line(row);
        let col = match self.c.sharing {
            Sharing::Subgroup => " + sub_lane * 4u",
            Sharing::Own => "",
            _ => " + lane.x * 4u",
        };
        self.text.line(format!("let col = tile_n * {}u{col};", self.block_n()));
    }

    /// Column of the lane's q-th vector: lanes stand side by side, so that a workgroup reads consecutive addresses.
    fn col(&self, q: u32) -> String {
        format!("col + {}u", q * self.c.lanes()[0] * 4)
    }

    /// Loop-invariant row and column indices, held inside the operands.
    fn operand_indices(&mut self) {
        let (m, n) = (self.p.m, self.p.n);
        let (rows_vec, cols_vec) = (self.p.a_vec == VecAxis::Free, self.p.b_vec == VecAxis::Free);
        let ragged = self.ragged_m();
        let width = if rows_vec { 4 } else { 1 };
        match self.c.sharing {
            Sharing::Subgroup => {
                let loads = (self.c.tile_m / width).div_ceil(SUBGROUP_LANES);
                for g in 0..loads {
                    // With fewer vectors of rows than lanes, the lanes wrap around.
                    let at = format!("(sub_lane + {}u) % {}u * {width}u", g * SUBGROUP_LANES, self.c.tile_m / width);
                    self.text.line(format!("let row{g} = {};", clamp(format!("row + {at}"), m.saturating_sub(width), ragged)));
                }
            }
            _ => {
                for r in 0..self.c.tile_m.div_ceil(width) {
                    let at = format!("row + {}u", r * width);
                    let past = ragged || !self.c.tile_m.is_multiple_of(width);
                    self.text.line(format!("let row{r} = {};", clamp(at, m.saturating_sub(width), past)));
                }
            }
        }
        let ragged = self.ragged_n();
        for q in 0..self.vecs() {
            if cols_vec {
                self.text.line(format!("let col{q} = {};", clamp(self.col(q), n.saturating_sub(4), ragged)));
            } else {
                for e in 0..4 {
                    self.text.line(format!("let col{q}_{e} = {};", clamp(format!("{} + {e}u", self.col(q)), n.saturating_sub(1), ragged)));
                }
            }
        }
    }

    /// Loads and multiplies `steps` (at most 4) values of k from `k`, in a block of its own; `run` is their place in the runs that are loaded.
    fn multiply(&mut self, k: &str, steps: u32, run: Option<u32>) {
        self.text.line("{");
        self.text.line(format!("let k0 = {k};"));
        let [a_run, b_run] = self.reads_runs().map(|reads| run.filter(|_| reads));
        let b = self.load_b(steps, b_run);
        // Rows are multiplied as soon as they are there, so that arithmetic runs beside the loads of the next ones.
        let width = if self.p.a_vec == VecAxis::Free { 4 } else { 1 };
        let lanes = if self.c.sharing == Sharing::Subgroup { SUBGROUP_LANES } else { 1 };
        for g in 0..self.c.tile_m.div_ceil(width * lanes) {
            let rows = g * width * lanes..self.c.tile_m.min((g + 1) * width * lanes);
            let a = if self.c.sharing == Sharing::Subgroup {
                self.load_a_subgroup(g, rows.clone(), steps)
            } else {
                self.load_a_lane(g, steps, a_run)
            };
            for r in rows {
                for q in 0..self.vecs() {
                    let mut sum = format!("c{r}_{q}");
                    for step in 0..steps {
                        let (a, b) = (a(r, step), b(step, q));
                        sum = match self.p.terms {
                            Terms::F32 => format!("fma(vec4<f32>({a}), {b}, {sum})"),
                            Terms::I8 => format!("dot_4({a}, {b}, {sum})"),
                        };
                    }
                    self.text.line(format!("c{r}_{q} = {sum};"));
                }
            }
        }
        self.text.line("}");
    }

    /// Loads the lane's g-th row of A, or four rows; the result names the element of (row, step).
    fn load_a_lane(&mut self, g: u32, steps: u32, run: Option<u32>) -> Box<dyn Fn(u32, u32) -> String> {
        match self.p.a_vec {
            VecAxis::Free => {
                for s in 0..steps {
                    let load = self.operand("a", &format!("row{g}"), &format!("k0 + {s}u"));
                    self.text.line(format!("let a{g}_{s} = {load};"));
                }
                Box::new(move |r, s| format!("a{g}_{s}.{}", component(r)))
            }
            VecAxis::K if steps == 4 => {
                let load = match run {
                    Some(place) => format!("ra{g}[{place}u]"),
                    None => self.operand("a", &format!("row{g}"), "k0"),
                };
                self.text.line(format!("let a{g} = {load};"));
                Box::new(|r, s| format!("a{r}.{}", component(s)))
            }
            _ => {
                for s in 0..steps {
                    let load = self.operand("a1", &format!("row{g}"), &format!("k0 + {s}u"));
                    self.text.line(format!("let a{g}_{s} = {load};"));
                }
                Box::new(|r, s| format!("a{r}_{s}"))
            }
        }
    }

    /// Loads the g-th part of the rows all lanes share, each lane a share of it, and broadcasts them.
    fn load_a_subgroup(&mut self, g: u32, rows: std::ops::Range<u32>, steps: u32) -> Box<dyn Fn(u32, u32) -> String> {
        match self.p.a_vec {
            VecAxis::Free => {
                for s in 0..steps {
                    let load = self.operand("a", &format!("row{g}"), &format!("k0 + {s}u"));
                    self.text.line(format!("let a{g}_{s} = {load};"));
                    for quad in rows.start / 4..rows.end / 4 {
                        self.text.line(format!("let s{quad}_{s} = subgroupBroadcast(a{g}_{s}, {}u);", quad % SUBGROUP_LANES));
                    }
                }
                Box::new(|r, s| format!("s{}_{s}.{}", r / 4, component(r)))
            }
            VecAxis::K if steps == 4 => {
                let load = self.operand("a", &format!("row{g}"), "k0");
                self.text.line(format!("let a{g} = {load};"));
                for r in rows {
                    self.text.line(format!("let s{r} = subgroupBroadcast(a{g}, {}u);", r % SUBGROUP_LANES));
                }
                Box::new(|r, s| format!("s{r}.{}", component(s)))
            }
            _ => {
                for s in 0..steps {
                    let load = self.operand("a1", &format!("row{g}"), &format!("k0 + {s}u"));
                    self.text.line(format!("let a{g}_{s} = {load};"));
                    for r in rows.clone() {
                        self.text.line(format!("let s{r}_{s} = subgroupBroadcast(a{g}_{s}, {}u);", r % SUBGROUP_LANES));
                    }
                }
                Box::new(|r, s| format!("s{r}_{s}"))
            }
        }
    }

    /// Loads the lane's columns of B; the result names the vector of (step, q).
    fn load_b(&mut self, steps: u32, run: Option<u32>) -> Box<dyn Fn(u32, u32) -> String> {
        for q in 0..self.vecs() {
            if self.p.b_vec == VecAxis::K && steps == 4 {
                for e in 0..4 {
                    let load = match run {
                        Some(place) => format!("rb{q}_{e}[{place}u]"),
                        None => self.operand("b", &format!("col{q}_{e}"), "k0"),
                    };
                    self.text.line(format!("let b{q}_{e} = {load};"));
                }
                for s in 0..steps {
                    let of = |e| format!("b{q}_{e}.{}", component(s));
                    self.text.line(format!("let v{s}_{q} = vec4<{}>({}, {}, {}, {});", self.p.terms.operand(), of(0), of(1), of(2), of(3)));
                }
            } else {
                for s in 0..steps {
                    let value = if self.p.b_vec == VecAxis::Free {
                        self.operand("b", &format!("col{q}"), &format!("k0 + {s}u"))
                    } else {
                        let of = |e| self.operand("b1", &format!("col{q}_{e}"), &format!("k0 + {s}u"));
                        format!("vec4<{}>({}, {}, {}, {})", self.p.terms.operand(), of(0), of(1), of(2), of(3))
                    };
                    self.text.line(format!("let v{s}_{q} = {value};"));
                }
            }
        }
        Box::new(|s, q| format!("v{s}_{q}"))
    }

    /// Writes what lies inside C.
    fn store(&mut self) {
        for q in 0..self.vecs() {
            self.text.line("{");
            self.text.line(format!("let j = {};", self.col(q)));
            for r in 0..self.c.tile_m {
                self.store_one(&format!("row + {r}u"), "j", &format!("c{r}_{q}"));
            }
            self.text.line("}");
        }
    }
}
