//! Attention `O[b, i, c] = sum over j of P[b, i, j] * V[b, j, c]`, where row `i` of `P` is the softmax of the scores
//! `score(sum over k of Q[b, i, k] * K[b, j, k])`, computed in one pass over the keys and accumulated in f32.
//!
//! A team of eight lanes holds some rows of O. It goes through the keys block by block: scores of the block, the new largest score of
//! each row, what was summed so far brought to it, then the block's values added. No score reaches memory. Rows whose scores are all
//! -infinity are 0.
//!
//! Holes (`u32` indices, always in range):
//!
//! | function | gives | needed |
//! |---|---|---|
//! | `load_q1(b, i, k) -> f32` | `Q[b, i, k]` | always |
//! | `load_q(b, i, k) -> vec4<f32>` | `Q[b, i, k..k+4]` | if `q_vec` |
//! | `load_k1(b, j, k) -> f32` | `K[b, j, k]` | always |
//! | `load_k(b, j, k) -> vec4<f32>` | `K[b, j, k..k+4]` for [`VecAxis::K`], `K[b, j..j+4, k]` for [`VecAxis::Free`] | unless `k_vec` is `None` |
//! | `load_v1(b, j, c) -> f32` | `V[b, j, c]` | always |
//! | `load_v(b, j, c) -> vec4<f32>` | `V[b, j, c..c+4]` | if `v_vec` |
//! | `score1(b, i, j, value: f32) -> f32` | the score of a product: scaled, masked | always |
//! | `score(b, i, j, value: vec4<f32>) -> vec4<f32>` | the same for `j..j+4` | if `score_vec` |
//! | `store1(b, i, c, value: f32)` | writes the result | unless all rows are stored by `store` |
//! | `store(b, i, c, value: vec4<f32>)` | writes the results `c..c+4` | if `store_vec` |
//!
//! Vector holes are called with the vectorised index a multiple of 4.

use std::fmt;

use super::gemm::VecAxis;
use super::text::{Text, clamp, component};
use super::{SUBGROUP_LANES, Sharing, Skeleton, check_limits, fold, size_class};
use crate::error::{Error, Result};
use crate::target::Target;

/// Sizes of an attention and how its operands can be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttentionProblem {
    /// Number of heads, all examples together.
    pub batch: u32,
    /// Queries of a head: rows of Q and O.
    pub rows: u32,
    /// Keys of a head: rows of K and V.
    pub keys: u32,
    /// Width of Q and K.
    pub width: u32,
    /// Width of V and O.
    pub value_width: u32,
    /// Whether row `i` sees the keys `0..=i` only.
    pub causal: bool,
    /// Whether Q can be read four columns at a time.
    pub q_vec: bool,
    /// Vector axis of K: its width, or its rows.
    pub k_vec: VecAxis,
    /// Whether V can be read four columns at a time.
    pub v_vec: bool,
    /// Whether scores of four neighbouring keys can be had at once.
    pub score_vec: bool,
    /// Whether four results of a row can be written at once.
    pub store_vec: bool,
}

/// Tile sizes of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttentionConfig {
    /// Rows of O a team holds.
    pub tile_rows: u32,
    /// Keys of a block that a lane holds, in fours.
    pub key_vecs: u32,
    /// Teams of a workgroup; 1 with [`Sharing::Subgroup`].
    pub teams: u32,
    /// How the lanes of a team share what they hold: by subgroup operations, or, with [`Sharing::Lane`], through workgroup memory.
    pub sharing: Sharing,
}

/// Lanes of a team.
const LANES: u32 = SUBGROUP_LANES;

/// Widest values: wider ones need more registers than there are.
pub const MAX_VALUE_WIDTH: u32 = 256;

impl AttentionProblem {
    /// Scores that are computed: all, or, with `causal`, those on and below the diagonal.
    pub fn num_scores(&self) -> u64 {
        let (rows, keys) = (u64::from(self.rows), u64::from(self.keys));
        let seen = if self.causal {
            let sloped = rows.min(keys);
            sloped * (sloped + 1) / 2 + (rows - sloped) * keys
        } else {
            rows * keys
        };
        u64::from(self.batch).saturating_mul(seen)
    }

    /// Floating-point operations of the two products, two a multiplication and addition.
    pub fn flops(&self) -> u64 {
        self.num_scores().saturating_mul(2 * (u64::from(self.width) + u64::from(self.value_width)))
    }

    /// What problems share whose fastest configuration is taken to be one.
    pub fn class(&self) -> String {
        let AttentionProblem { batch, rows, keys, width, value_width, causal, q_vec, k_vec, v_vec, score_vec, store_vec } = self;
        let [batch, rows, keys, width, values] = [*batch, *rows, *keys, *width, *value_width].map(size_class);
        let seen = if *causal { "causal" } else { "all" };
        let vectors = [*q_vec, *v_vec, *score_vec, *store_vec].map(|v| if v { '4' } else { '1' });
        format!("{batch}x{rows}x{keys}x{width}x{values} {seen} k:{k_vec:?} {}", vectors.iter().collect::<String>())
    }

    /// The problem with vector reads kept only where sizes are whole vectors.
    fn normalised(&self) -> AttentionProblem {
        let whole = |n: u32| n.is_multiple_of(4) && n > 0;
        AttentionProblem {
            k_vec: if self.k_vec == VecAxis::Free && !whole(self.keys) { VecAxis::None } else { self.k_vec },
            v_vec: self.v_vec && whole(self.value_width),
            store_vec: self.store_vec && whole(self.value_width),
            ..self.clone()
        }
    }
}

impl fmt::Display for AttentionConfig {
    /// `32x1 in 1 subgroup`: the tile, teams and sharing; equal for equal configurations only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AttentionConfig { tile_rows, key_vecs, teams, sharing } = self;
        write!(f, "{tile_rows}x{key_vecs} in {teams} {sharing}")
    }
}

impl AttentionConfig {
    /// Rows of O a workgroup computes.
    pub(super) fn block_rows(&self) -> u32 {
        self.tile_rows.saturating_mul(self.teams)
    }

    /// Keys of a block.
    fn block_keys(&self) -> u32 {
        4 * LANES * self.key_vecs
    }

    /// Bytes through which the lanes of a workgroup exchange maxima and sums and, where there are keys, weights.
    fn workgroup_bytes(&self, keys: u32) -> u32 {
        let weights = if keys > 0 { self.block_keys() } else { 0 };
        match self.sharing {
            Sharing::Lane => 4 * self.teams * self.tile_rows * (LANES + weights),
            Sharing::Subgroup | Sharing::Split | Sharing::Workgroup | Sharing::Own => 0,
        }
    }

    fn check(&self, problem: &AttentionProblem) -> Result<()> {
        let held = self.tile_rows.saturating_mul(4 * (self.key_vecs + problem.value_width.div_ceil(4 * LANES)));
        let teams = match self.sharing {
            Sharing::Lane => (1..=32).contains(&self.teams),
            Sharing::Subgroup => self.teams == 1,
            Sharing::Split | Sharing::Workgroup | Sharing::Own => false,
        };
        if self.tile_rows == 0 || self.key_vecs == 0 || held > 1024 || !teams {
            return Err(Error::Unsupported(format!(
                "attention configuration {self:?} for values of width {}: a lane holds 1 to 1024 scores and results, here {held}, and \
                 subgroup sharing takes one team, sharing by lanes 1 to 32; there is no other",
                problem.value_width
            )));
        }
        Ok(())
    }
}

/// Loop iterations of one invocation.
fn max_iterations(problem: &AttentionProblem, config: &AttentionConfig) -> u64 {
    let blocks = u64::from(problem.keys.div_ceil(config.block_keys()));
    blocks * (u64::from(problem.width / 4) + u64::from(LANES) + 3) + 1
}

/// Whether [`skeleton`] makes a kernel of `problem` with tiles `config`.
///
/// Fails where values are wider than [`MAX_VALUE_WIDTH`], where the configuration is malformed or past the target's limits, and where
/// the loops over the keys would pass the target's bound on loop iterations: compute the scores in a kernel of their own then.
pub fn check(problem: &AttentionProblem, config: &AttentionConfig, target: &Target) -> Result<()> {
    if problem.value_width > MAX_VALUE_WIDTH {
        return Err(Error::Unsupported(format!(
            "attention with values of width {}: one kernel holds up to {MAX_VALUE_WIDTH}; compute scores, softmax and result separately",
            problem.value_width
        )));
    }
    config.check(problem)?;
    let bytes = config.workgroup_bytes(problem.keys);
    check_limits(target, "attention", [LANES, config.teams], bytes, config.sharing == Sharing::Subgroup)?;
    let iterations = max_iterations(problem, config);
    if target.max_loop_iterations.is_some_and(|bound| iterations > bound) {
        return Err(Error::Unsupported(format!(
            "attention over {} keys of width {} takes {iterations} loop iterations, target `{}` allows {}; compute scores, softmax and \
             result separately",
            problem.keys,
            problem.width,
            target.name,
            target.max_loop_iterations.unwrap_or(u64::MAX)
        )));
    }
    fold(num_tiles(problem, config), target, "attention").map(|_| ())
}

/// Workgroups of a dispatch.
fn num_tiles(problem: &AttentionProblem, config: &AttentionConfig) -> u64 {
    if problem.value_width == 0 { 0 } else { u64::from(problem.batch) * u64::from(problem.rows.div_ceil(config.block_rows())) }
}

/// The entry point `entry` that computes `problem` with tiles `config`; fails as [`check`] says.
pub fn skeleton(problem: &AttentionProblem, config: &AttentionConfig, target: &Target, entry: &str) -> Result<Skeleton> {
    check(problem, config, target)?;
    let problem = problem.normalised();
    let work = Generator { p: &problem, c: config, text: Text::default() };
    let tiles = num_tiles(&problem, config);
    Ok(Skeleton {
        wgsl: work.entry(entry, tiles),
        workgroup_size: [LANES, config.teams, 1],
        workgroups: fold(tiles, target, "attention")?,
        workgroup_bytes: config.workgroup_bytes(problem.keys),
        subgroups: config.sharing == Sharing::Subgroup,
        flops: problem.flops(),
        max_iterations: max_iterations(&problem, config),
    })
}

struct Generator<'a> {
    p: &'a AttentionProblem,
    c: &'a AttentionConfig,
    text: Text,
}

impl Generator<'_> {
    fn block_rows(&self) -> u32 {
        self.c.block_rows()
    }

    /// Tiles of one head.
    fn tiles(&self) -> u32 {
        self.p.rows.div_ceil(self.block_rows())
    }

    fn ragged_rows(&self) -> bool {
        !self.p.rows.is_multiple_of(self.block_rows())
    }

    fn ragged_keys(&self) -> bool {
        !self.p.keys.is_multiple_of(self.c.block_keys())
    }

    fn ragged_values(&self) -> bool {
        !self.p.value_width.is_multiple_of(4 * LANES)
    }

    /// Vectors of O a lane holds of a row.
    fn value_vecs(&self) -> u32 {
        self.p.value_width.div_ceil(4 * LANES)
    }

    fn subgroup(&self) -> bool {
        self.c.sharing == Sharing::Subgroup
    }

    fn line(&mut self, line: impl AsRef<str>) {
        self.text.line(line);
    }

    fn entry(mut self, entry: &str, tiles: u64) -> String {
        let (rows, teams) = (self.c.tile_rows, self.c.teams);
        if !self.subgroup() {
            let of = rows * teams;
            self.line(format!("var<workgroup> row_part: array<f32, {}>;", of * LANES));
            if self.p.keys > 0 {
                self.line(format!("var<workgroup> weights: array<vec4<f32>, {}>;", of * self.c.block_keys() / 4));
            }
        }
        self.line(format!("@compute @workgroup_size({LANES}, {teams}, 1)"));
        self.line(format!("fn {entry}("));
        self.line("    @builtin(workgroup_id) wid: vec3<u32>,");
        self.line("    @builtin(num_workgroups) num_wg: vec3<u32>,");
        if self.subgroup() {
            self.line("    @builtin(subgroup_invocation_id) lane: u32,");
        } else {
            self.line("    @builtin(local_invocation_id) place: vec3<u32>,");
        }
        self.line(") {");
        self.line("let tile = wid.x + wid.y * num_wg.x;");
        self.line(format!("if tile >= {tiles}u {{"));
        self.line("return;");
        self.line("}");
        let per_head = self.tiles().max(1);
        self.line(format!("let b = tile / {per_head}u;"));
        self.line(format!("let first_row = tile % {per_head}u * {}u;", self.block_rows()));
        if self.subgroup() {
            self.line("let row = first_row;");
        } else {
            self.line("let lane = place.x;");
            self.line(format!("let part = place.y * {rows}u;"));
            self.line("let row = first_row + part;");
        }
        // As a constant, the validator would refuse it.
        self.line("var infinity_bits = 0x7f800000u;");
        self.line("let hidden = vec4<f32>(-bitcast<f32>(infinity_bits));");
        let (last_row, ragged) = (self.p.rows.saturating_sub(1), self.ragged_rows());
        for r in 0..rows {
            self.line(format!("let row{r} = {};", clamp(format!("row + {r}u"), last_row, ragged)));
        }
        if self.subgroup() {
            for g in 0..rows.div_ceil(LANES) {
                let at = format!("row + (lane + {}u) % {rows}u", g * LANES);
                self.line(format!("let own_row{g} = {};", clamp(at, last_row, ragged)));
            }
        }
        self.value_columns();
        for r in 0..rows {
            // Below every score that is not -infinity, so that differences from it are never infinity minus infinity.
            self.line(format!("var top{r} = -3.4028234e38;"));
            self.line(format!("var sum{r} = vec4<f32>();"));
            for u in 0..self.value_vecs() {
                self.line(format!("var o{r}_{u} = vec4<f32>();"));
            }
        }
        let keys = self.p.keys;
        let end = if self.p.causal { format!("min(first_row + {}u, {keys}u)", self.block_rows()) } else { format!("{keys}u") };
        self.line(format!("let end = {end};"));
        if keys > 0 {
            self.line(format!("for (var j0 = 0u; j0 < end; j0 += {}u) {{", self.c.block_keys()));
            self.scores();
            self.hide();
            self.weights();
            self.add_values();
            self.line("}");
        }
        self.store();
        self.line("}");
        self.text.finish()
    }

    /// Column of the lane's u-th vector of O.
    fn value_column(&self, u: u32) -> String {
        format!("{}u + lane * 4u", u * 4 * LANES)
    }

    fn value_columns(&mut self) {
        let (width, ragged) = (self.p.value_width, self.ragged_values());
        for u in 0..self.value_vecs() {
            if self.p.v_vec {
                self.line(format!("let col{u} = {};", clamp(self.value_column(u), width.saturating_sub(4), ragged)));
            } else {
                for e in 0..4 {
                    let at = clamp(format!("{} + {e}u", self.value_column(u)), width.saturating_sub(1), ragged);
                    self.line(format!("let col{u}_{e} = {at};"));
                }
            }
        }
    }

    /// First key of the lane's q-th four.
    fn key(&self, q: u32) -> String {
        format!("j0 + {}u + lane * 4u", q * 4 * LANES)
    }

    /// Products of the team's queries with the block's keys, and the scores they become.
    fn scores(&mut self) {
        let (keys, ragged) = (self.p.keys, self.ragged_keys());
        for q in 0..self.c.key_vecs {
            self.line(format!("let key{q} = {};", self.key(q)));
            for e in 0..4 {
                self.line(format!("let key{q}_{e} = {};", clamp(format!("key{q} + {e}u"), keys - 1, ragged)));
            }
            if keys >= 4 {
                self.line(format!("let keys{q} = {};", clamp(format!("key{q}"), keys - 4, ragged)));
            }
            for r in 0..self.c.tile_rows {
                self.line(format!("var s{r}_{q} = vec4<f32>();"));
            }
        }
        let whole = self.p.width / 4 * 4;
        if whole > 0 {
            self.line(format!("for (var k = 0u; k < {whole}u; k += 4u) {{"));
            self.multiply("k", 4);
            self.line("}");
        }
        if whole < self.p.width {
            self.line("{");
            self.multiply(&format!("{whole}u"), self.p.width - whole);
            self.line("}");
        }
        for r in 0..self.c.tile_rows {
            for q in 0..self.c.key_vecs {
                let value = if self.p.score_vec {
                    let at = if keys >= 4 { format!("keys{q}") } else { "0u".to_string() };
                    format!("score(b, row{r}, {at}, s{r}_{q})")
                } else {
                    let of = |e: u32| format!("score1(b, row{r}, key{q}_{e}, s{r}_{q}.{})", component(e));
                    format!("vec4<f32>({}, {}, {}, {})", of(0), of(1), of(2), of(3))
                };
                self.line(format!("s{r}_{q} = {value};"));
            }
        }
    }

    /// Adds `steps` products from `k` on to the scores.
    fn multiply(&mut self, k: &str, steps: u32) {
        self.line(format!("let k0 = {k};"));
        for q in 0..self.c.key_vecs {
            if self.p.k_vec == VecAxis::K && steps == 4 {
                for e in 0..4 {
                    self.line(format!("let l{q}_{e} = load_k(b, key{q}_{e}, k0);"));
                }
                for s in 0..4 {
                    let of = |e| format!("l{q}_{e}.{}", component(s));
                    self.line(format!("let k{q}_{s} = vec4<f32>({}, {}, {}, {});", of(0), of(1), of(2), of(3)));
                }
                continue;
            }
            for s in 0..steps {
                let value = if self.p.k_vec == VecAxis::Free {
                    format!("load_k(b, keys{q}, k0 + {s}u)")
                } else {
                    let of = |e| format!("load_k1(b, key{q}_{e}, k0 + {s}u)");
                    format!("vec4<f32>({}, {}, {}, {})", of(0), of(1), of(2), of(3))
                };
                self.line(format!("let k{q}_{s} = {value};"));
            }
        }
        let rows = self.c.tile_rows;
        for r in 0..rows {
            if self.subgroup() {
                if r % LANES == 0 {
                    self.load_queries(&format!("own{}", r / LANES), &format!("own_row{}", r / LANES), steps);
                }
                // Each lane holds one row in eight; all get it from there.
                let (g, from) = (r / LANES, r % LANES % rows);
                if self.p.q_vec && steps == 4 {
                    self.line(format!("let q{r} = subgroupBroadcast(own{g}, {from}u);"));
                } else {
                    for s in 0..steps {
                        self.line(format!("let q{r}_{s} = subgroupBroadcast(own{g}_{s}, {from}u);"));
                    }
                }
            } else {
                self.load_queries(&format!("q{r}"), &format!("row{r}"), steps);
            }
            for q in 0..self.c.key_vecs {
                let mut sum = format!("s{r}_{q}");
                for s in 0..steps {
                    let factor = if self.p.q_vec && steps == 4 { format!("q{r}.{}", component(s)) } else { format!("q{r}_{s}") };
                    sum = format!("fma(vec4<f32>({factor}), k{q}_{s}, {sum})");
                }
                self.line(format!("s{r}_{q} = {sum};"));
            }
        }
    }

    fn load_queries(&mut self, name: &str, row: &str, steps: u32) {
        if self.p.q_vec && steps == 4 {
            self.line(format!("let {name} = load_q(b, {row}, k0);"));
        } else {
            for s in 0..steps {
                self.line(format!("let {name}_{s} = load_q1(b, {row}, k0 + {s}u);"));
            }
        }
    }

    /// Scores of keys that a row does not see become -infinity, in the blocks that have such keys.
    fn hide(&mut self) {
        if !self.p.causal && !self.ragged_keys() {
            return;
        }
        let all_see = if self.p.causal { format!("min(first_row + 1u, {}u)", self.p.keys) } else { format!("{}u", self.p.keys) };
        self.line(format!("if j0 + {}u > {all_see} {{", self.c.block_keys()));
        for q in 0..self.c.key_vecs {
            self.line(format!("let places{q} = vec4<u32>(key{q}) + vec4<u32>(0u, 1u, 2u, 3u);"));
            for r in 0..self.c.tile_rows {
                let limit = if self.p.causal { format!("min(row + {}u, {}u)", r + 1, self.p.keys) } else { format!("{}u", self.p.keys) };
                self.line(format!("s{r}_{q} = select(hidden, s{r}_{q}, places{q} < vec4<u32>({limit}));"));
            }
        }
        self.line("}");
    }

    /// Brings what was summed so far to each row's new largest score, and turns scores into weights.
    fn weights(&mut self) {
        let vecs = self.c.key_vecs;
        for r in 0..self.c.tile_rows {
            let mut four = format!("s{r}_0");
            for q in 1..vecs {
                four = format!("max({four}, s{r}_{q})");
            }
            self.line(format!("let four{r} = {four};"));
            self.line(format!("var new{r} = max(max(max(four{r}.x, four{r}.y), max(four{r}.z, four{r}.w)), top{r});"));
        }
        self.over_team("new", "max");
        for r in 0..self.c.tile_rows {
            self.line(format!("let keep{r} = exp(top{r} - new{r});"));
            self.line(format!("top{r} = new{r};"));
            self.line(format!("sum{r} *= keep{r};"));
            for u in 0..self.value_vecs() {
                self.line(format!("o{r}_{u} *= keep{r};"));
            }
            for q in 0..vecs {
                self.line(format!("s{r}_{q} = exp(s{r}_{q} - vec4<f32>(top{r}));"));
                self.line(format!("sum{r} += s{r}_{q};"));
            }
        }
        if !self.subgroup() {
            for r in 0..self.c.tile_rows {
                for q in 0..vecs {
                    let at = format!("(part + {r}u) * {}u + {}u + lane", vecs * LANES, q * LANES);
                    self.line(format!("weights[{at}] = s{r}_{q};"));
                }
            }
            self.line("workgroupBarrier();");
        }
    }

    /// Combines the variables `<name><row>` over the lanes of the team.
    fn over_team(&mut self, name: &str, combine: &str) {
        let of = |a: String, b: String| if combine == "max" { format!("max({a}, {b})") } else { format!("{a} + {b}") };
        let rows = self.c.tile_rows;
        if self.subgroup() {
            for r in 0..rows {
                for step in [4, 2, 1] {
                    let other = format!("subgroupShuffleXor({name}{r}, {step}u)");
                    self.line(format!("{name}{r} = {};", of(format!("{name}{r}"), other)));
                }
            }
            return;
        }
        for r in 0..rows {
            self.line(format!("row_part[(part + {r}u) * {LANES}u + lane] = {name}{r};"));
        }
        self.line("workgroupBarrier();");
        for r in 0..rows {
            let at = |l: u32| format!("row_part[(part + {r}u) * {LANES}u + {l}u]");
            let pair = |l: u32| of(at(l), at(l + 1));
            self.line(format!("{name}{r} = {};", of(of(pair(0), pair(2)), of(pair(4), pair(6)))));
        }
    }

    /// Adds the block's values, weighted.
    fn add_values(&mut self) {
        let (vecs, last, ragged) = (self.c.key_vecs, self.p.keys - 1, self.ragged_keys());
        self.line(format!("for (var from_lane = 0u; from_lane < {LANES}u; from_lane++) {{"));
        for q in 0..vecs {
            self.line("{");
            for e in 0..4 {
                let at = format!("j0 + {}u + from_lane * 4u", q * 4 * LANES + e);
                self.line(format!("let from{e} = {};", clamp(at, last, ragged)));
                for u in 0..self.value_vecs() {
                    let value = if self.p.v_vec {
                        format!("load_v(b, from{e}, col{u})")
                    } else {
                        let of = |c: u32| format!("load_v1(b, from{e}, col{u}_{c})");
                        format!("vec4<f32>({}, {}, {}, {})", of(0), of(1), of(2), of(3))
                    };
                    self.line(format!("let v{e}_{u} = {value};"));
                }
            }
            for r in 0..self.c.tile_rows {
                let weight = if self.subgroup() {
                    format!("subgroupShuffle(s{r}_{q}, from_lane)")
                } else {
                    format!("weights[(part + {r}u) * {}u + {}u + from_lane]", vecs * LANES, q * LANES)
                };
                self.line(format!("let w{r} = {weight};"));
                for u in 0..self.value_vecs() {
                    let mut sum = format!("o{r}_{u}");
                    for e in 0..4 {
                        sum = format!("fma(vec4<f32>(w{r}.{}), v{e}_{u}, {sum})", component(e));
                    }
                    self.line(format!("o{r}_{u} = {sum};"));
                }
            }
            self.line("}");
        }
        self.line("}");
    }

    /// Divides by the sums of the weights and writes what lies inside O.
    fn store(&mut self) {
        for r in 0..self.c.tile_rows {
            self.line(format!("var total{r} = sum{r}.x + sum{r}.y + (sum{r}.z + sum{r}.w);"));
        }
        self.over_team("total", "add");
        for r in 0..self.c.tile_rows {
            if self.ragged_rows() {
                self.line(format!("if row + {r}u < {}u {{", self.p.rows));
            } else {
                self.line("{");
            }
            // A sum of 0 is a row that saw no key; what was added up for it is 0.
            self.line(format!("let scale = 1.0 / select(total{r}, 1.0, total{r} == 0.0);"));
            for u in 0..self.value_vecs() {
                let column = self.value_column(u);
                self.line("{");
                self.line(format!("let c = {column};"));
                if self.p.store_vec {
                    let write = format!("store(b, row + {r}u, c, o{r}_{u} * scale);");
                    let line = if self.ragged_values() { format!("if c < {}u {{ {write} }}", self.p.value_width) } else { write };
                    self.line(line);
                } else {
                    for e in 0..4 {
                        let write = format!("store1(b, row + {r}u, c + {e}u, o{r}_{u}.{} * scale);", component(e));
                        let guard = format!("if c + {e}u < {}u {{ {write} }}", self.p.value_width);
                        self.line(if self.ragged_values() { guard } else { write });
                    }
                }
                self.line("}");
            }
            self.line("}");
        }
    }
}
