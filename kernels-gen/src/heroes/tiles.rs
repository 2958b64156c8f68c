//! Tile tables of the heroes: data, by adapter class and shape.
//!
//! A table's first fitting row is what runs where nothing was measured. The tuner chooses among the candidates: the rows of the tables and
//! some more, a configuration being one row.

use super::Sharing;
use super::conv::{self, ConvConfig, ConvProblem};
use super::gemm::{self, GemmConfig, GemmProblem};
use crate::target::{AdapterClass, Target};

const fn row(tile_m: u32, tile_n: u32, tile_k: u32, workgroup: [u32; 2], sharing: Sharing) -> GemmConfig {
    GemmConfig { tile_m, tile_n, tile_k, workgroup, sharing }
}

/// Tiles for drivers on the processor with subgroups: loads are what costs, so eight lanes share rows and tiles are large.
const SOFTWARE_SHARED: &[GemmConfig] = &[
    row(96, 8, 4, [8, 1], Sharing::Subgroup),
    row(64, 8, 4, [8, 1], Sharing::Subgroup),
    row(32, 8, 4, [8, 1], Sharing::Subgroup),
    row(16, 8, 4, [8, 1], Sharing::Subgroup),
    row(8, 4, 4, [8, 1], Sharing::Subgroup),
];

/// Results a lane may hold in a product of fewer than `LARGE_FLOPS`: larger tiles take drivers on the processor seconds to compile.
const SMALL_TILE: u32 = 256;
/// Operations from which on a product is worth the largest tiles.
const LARGE_FLOPS: u64 = 1 << 29;

/// Tiles for drivers on the processor without subgroups.
const SOFTWARE: &[GemmConfig] =
    &[row(16, 16, 4, [16, 1], Sharing::Lane), row(8, 8, 4, [8, 1], Sharing::Lane), row(4, 4, 4, [8, 1], Sharing::Lane)];

/// Tiles for GPUs.
const GPU: &[GemmConfig] =
    &[row(8, 8, 4, [16, 16], Sharing::Lane), row(4, 4, 4, [16, 16], Sharing::Lane), row(2, 4, 4, [8, 8], Sharing::Lane)];

/// The rows of the table for a target, largest tiles first.
pub fn gemm_table(target: &Target) -> &'static [GemmConfig] {
    match (target.class, target.subgroups) {
        (AdapterClass::Software, true) => SOFTWARE_SHARED,
        (AdapterClass::Software, false) => SOFTWARE,
        _ => GPU,
    }
}

/// Which configurations a tuner tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Candidates {
    /// Those that may be fast on a target of this class and that drivers compile in a time the product is worth.
    Likely,
    /// All that are valid, those of other classes of adapters included, but for tiles that the problem fills to less than a quarter and
    /// texts that drivers compile for minutes.
    All,
}

/// More configurations for drivers on the processor.
const SOFTWARE_MORE: &[GemmConfig] = &[
    row(48, 8, 4, [8, 1], Sharing::Subgroup),
    row(24, 8, 4, [8, 1], Sharing::Subgroup),
    row(8, 8, 4, [8, 1], Sharing::Subgroup),
    row(32, 4, 4, [8, 1], Sharing::Subgroup),
    row(16, 4, 4, [8, 1], Sharing::Subgroup),
    row(64, 4, 4, [8, 1], Sharing::Subgroup),
    row(16, 16, 4, [8, 1], Sharing::Subgroup),
    row(32, 16, 4, [8, 1], Sharing::Subgroup),
    row(128, 8, 4, [8, 1], Sharing::Subgroup),
    row(64, 16, 4, [8, 1], Sharing::Subgroup),
    row(32, 8, 8, [8, 1], Sharing::Subgroup),
    row(8, 16, 4, [8, 1], Sharing::Lane),
    row(16, 8, 4, [8, 1], Sharing::Lane),
    row(8, 4, 4, [8, 1], Sharing::Lane),
    row(1, 16, 4, [8, 1], Sharing::Lane),
    row(4, 16, 4, [8, 1], Sharing::Lane),
];

/// More configurations for GPUs.
const GPU_MORE: &[GemmConfig] = &[
    row(4, 8, 4, [16, 16], Sharing::Lane),
    row(8, 4, 4, [16, 16], Sharing::Lane),
    row(8, 8, 4, [8, 8], Sharing::Lane),
    row(4, 8, 4, [8, 8], Sharing::Lane),
    row(4, 4, 4, [8, 8], Sharing::Lane),
    row(8, 8, 4, [16, 8], Sharing::Lane),
    row(8, 4, 8, [16, 16], Sharing::Lane),
    row(4, 4, 4, [32, 4], Sharing::Lane),
    row(8, 4, 4, [32, 2], Sharing::Lane),
    row(1, 4, 4, [64, 1], Sharing::Lane),
    row(1, 4, 8, [32, 2], Sharing::Lane),
    row(16, 4, 4, [16, 4], Sharing::Lane),
];

/// The configurations for `problem` that [`gemm::check`] lets pass, the table's choice first, then those nearest to it in the size of their
/// tiles. Likely ones waste less than half of what they compute and are not past what a small product is worth compiling.
pub fn gemm_candidates(target: &Target, problem: &GemmProblem, which: Candidates) -> Vec<GemmConfig> {
    let table = gemm(target, problem);
    let software = target.class == AdapterClass::Software;
    let lists = [SOFTWARE_SHARED, SOFTWARE, SOFTWARE_MORE, GPU, GPU_MORE];
    let likely = if software { &lists[..3] } else { &lists[3..] };
    let lists = if which == Candidates::All { &lists[..] } else { likely };
    let fits = |c: &GemmConfig| {
        let [rows, cols] = c.block();
        let area = u64::from(problem.m.div_ceil(rows)) * u64::from(rows) * u64::from(problem.n.div_ceil(cols)) * u64::from(cols);
        let useful = u64::from(problem.m.max(1)) * u64::from(problem.n.max(1));
        let worth = !software || c.tile_m * c.tile_n <= SMALL_TILE || problem.flops() >= LARGE_FLOPS;
        match which {
            Candidates::Likely => worth && area <= 2 * useful,
            Candidates::All => area <= 4 * useful,
        }
    };
    let mut found: Vec<GemmConfig> = Vec::new();
    for config in lists.iter().copied().flatten() {
        if *config != table && fits(config) && gemm::check(problem, config, target).is_ok() && !found.contains(config) {
            found.push(*config);
        }
    }
    let distance = |c: &GemmConfig| (c.tile_m * c.tile_n).max(1).ilog2().abs_diff((table.tile_m * table.tile_n).ilog2());
    found.sort_by_key(|c| (c.sharing != table.sharing, distance(c)));
    found.insert(0, table);
    found
}

/// Tiles for a product: the first row of the table that gives every processor core work and wastes little of its tiles, an eighth
/// where large ones are worth their compilation, else half.
pub fn gemm(target: &Target, problem: &GemmProblem) -> GemmConfig {
    let problem = &nominal(target, problem);
    let table = gemm_table(target);
    let wanted: u64 = if target.class == AdapterClass::Software { 4 } else { 64 };
    let fits = |c: &&GemmConfig| {
        let large = c.tile_m * c.tile_n > SMALL_TILE;
        let [rows, cols] = c.block();
        let (tm, tn) = (u64::from(problem.m.div_ceil(rows)), u64::from(problem.n.div_ceil(cols)));
        let area = tm * u64::from(rows) * tn * u64::from(cols);
        let useful = u64::from(problem.m.max(1)) * u64::from(problem.n.max(1));
        let little_waste = if large { area - area / 8 <= useful } else { area < 2 * useful };
        u64::from(problem.batch) * tm * tn >= wanted && little_waste && (!large || problem.flops() >= LARGE_FLOPS)
    };
    *table.iter().find(fits).unwrap_or(&table[table.len() - 1])
}

/// The problem that tiles are chosen for: where sizes vary, those of a class are to have the same, so that rows and columns count as the next
/// power of four.
fn nominal(target: &Target, problem: &GemmProblem) -> GemmProblem {
    let class = |size: u32| {
        let bits = size.max(1).next_power_of_two().trailing_zeros();
        1u32.checked_shl(bits.next_multiple_of(2)).unwrap_or(size)
    };
    match target.varying_sizes {
        true => GemmProblem { m: class(problem.m), n: class(problem.n), ..problem.clone() },
        false => problem.clone(),
    }
}

const fn conv_row(tile_y: u32, tile_oc: u32, tile_c: u32, lanes: u32, sharing: Sharing) -> ConvConfig {
    ConvConfig { tile_y, tile_oc, tile_c, lanes, sharing }
}

/// Convolutions on drivers on the processor with subgroups, largest tiles first.
const CONV_SOFTWARE_SHARED: &[ConvConfig] =
    &[conv_row(2, 16, 1, 8, Sharing::Subgroup), conv_row(1, 16, 1, 8, Sharing::Subgroup), conv_row(1, 4, 1, 8, Sharing::Subgroup)];

/// Convolutions on drivers on the processor without subgroups.
const CONV_SOFTWARE: &[ConvConfig] =
    &[conv_row(2, 16, 1, 8, Sharing::Lane), conv_row(1, 16, 1, 8, Sharing::Lane), conv_row(1, 4, 1, 8, Sharing::Lane)];

/// Convolutions on GPUs.
const CONV_GPU: &[ConvConfig] =
    &[conv_row(2, 8, 1, 64, Sharing::Lane), conv_row(1, 8, 1, 64, Sharing::Lane), conv_row(1, 4, 1, 64, Sharing::Lane)];

/// The rows of the table of convolutions for a target, largest tiles first.
pub fn conv_table(target: &Target) -> &'static [ConvConfig] {
    match (target.class, target.subgroups) {
        (AdapterClass::Software, true) => CONV_SOFTWARE_SHARED,
        (AdapterClass::Software, false) => CONV_SOFTWARE,
        _ => CONV_GPU,
    }
}

/// More convolutions on drivers on the processor.
const CONV_SOFTWARE_MORE: &[ConvConfig] = &[
    conv_row(1, 8, 1, 8, Sharing::Subgroup),
    conv_row(2, 8, 1, 8, Sharing::Subgroup),
    conv_row(4, 8, 1, 8, Sharing::Subgroup),
    conv_row(1, 32, 1, 8, Sharing::Subgroup),
    conv_row(2, 32, 1, 8, Sharing::Subgroup),
    conv_row(4, 16, 1, 8, Sharing::Subgroup),
    conv_row(1, 8, 1, 8, Sharing::Lane),
    conv_row(2, 8, 1, 8, Sharing::Lane),
    conv_row(1, 32, 1, 8, Sharing::Lane),
];

/// More convolutions on GPUs.
const CONV_GPU_MORE: &[ConvConfig] = &[
    conv_row(4, 8, 1, 64, Sharing::Lane),
    conv_row(2, 4, 1, 64, Sharing::Lane),
    conv_row(1, 16, 1, 64, Sharing::Lane),
    conv_row(2, 16, 1, 64, Sharing::Lane),
    conv_row(2, 8, 1, 128, Sharing::Lane),
    conv_row(2, 8, 1, 32, Sharing::Lane),
    conv_row(1, 8, 1, 32, Sharing::Lane),
];

/// Vector multiplications in the text of a likely configuration, and of any, at most: longer ones take drivers on the processor seconds to
/// compile, and minutes.
const SMALL_TEXT: u32 = 400;
const LARGE_TEXT: u32 = 1024;

/// The configurations for `problem` that [`conv::check`] lets pass, as [`gemm_candidates`] says. Each row takes one, two or four input
/// channels at a time.
pub fn conv_candidates(target: &Target, problem: &ConvProblem, which: Candidates) -> Vec<ConvConfig> {
    let table = conv(target, problem);
    let lists = [CONV_SOFTWARE_SHARED, CONV_SOFTWARE, CONV_SOFTWARE_MORE, CONV_GPU, CONV_GPU_MORE];
    let likely = if target.class == AdapterClass::Software { &lists[..3] } else { &lists[3..] };
    let lists = if which == Candidates::All { &lists[..] } else { likely };
    let taps = problem.kernel[0].saturating_mul(problem.kernel[1]);
    let channels = problem.out_channels.next_multiple_of(4).max(4);
    let fits = |c: &ConvConfig| {
        let small = c.tile_y.saturating_sub(1) < problem.output[0].max(1) && c.tile_oc <= channels;
        let text = [c.tile_oc, c.tile_c, taps.min(conv::MAX_TAPS)].iter().fold(c.tile_y, |all, n| all.saturating_mul(*n));
        small && text <= if which == Candidates::All { LARGE_TEXT } else { SMALL_TEXT }
    };
    let mut found = Vec::new();
    for config in lists.iter().copied().flatten().flat_map(|row| [1, 2, 4].map(|tile_c| ConvConfig { tile_c, ..*row })) {
        let valid = config.tile_c <= problem.in_channels.max(1) && conv::check(problem, &config, target).is_ok();
        if config != table && fits(&config) && valid && !found.contains(&config) {
            found.push(config);
        }
    }
    let held = |c: &ConvConfig| (c.tile_y * c.tile_oc).max(1).ilog2();
    found.sort_by_key(|c| (c.sharing != table.sharing, held(c).abs_diff(held(&table)), c.tile_c.abs_diff(table.tile_c)));
    found.insert(0, table);
    found
}

/// Tiles for a convolution: the first row of the table that gives every processor core work and wastes less than half its tile.
/// Kernels of few taps take several input channels at a time.
pub fn conv(target: &Target, problem: &ConvProblem) -> ConvConfig {
    let table = conv_table(target);
    let wanted: u64 = if target.class == AdapterClass::Software { 4 } else { 64 };
    let [height, width] = problem.output;
    let fits = |c: &&ConvConfig| {
        let (ty, tx, to) = (height.div_ceil(c.tile_y), width.div_ceil(4), problem.out_channels.div_ceil(c.tile_oc));
        let blocks = (u64::from(problem.batch) * u64::from(ty) * u64::from(tx)).div_ceil(u64::from(c.lanes));
        let held = u64::from(ty * c.tile_y) * u64::from(to * c.tile_oc.min(problem.out_channels.next_multiple_of(4)));
        blocks * u64::from(problem.groups) * u64::from(to) >= wanted
            && held < 2 * u64::from(height.max(1)) * u64::from(problem.out_channels.next_multiple_of(4).max(4))
    };
    let row = *table.iter().find(fits).unwrap_or(&table[table.len() - 1]);
    let taps = problem.kernel[0].saturating_mul(problem.kernel[1]);
    ConvConfig { tile_c: (4 / taps.max(1)).clamp(1, problem.in_channels.max(1)), ..row }
}
