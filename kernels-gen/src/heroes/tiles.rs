//! Tile tables of the heroes: data, by adapter class and shape.

use super::Sharing;
use super::conv::{ConvConfig, ConvProblem};
use super::gemm::{GemmConfig, GemmProblem};
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

/// Tiles for a product: the first row of the table that gives every processor core work and wastes little of its tiles, an eighth
/// where large ones are worth their compilation, else half.
pub fn gemm(target: &Target, problem: &GemmProblem) -> GemmConfig {
    let table = gemm_table(target);
    let wanted: u64 = if target.class == AdapterClass::Software { 4 } else { 64 };
    let fits = |c: &&GemmConfig| {
        let large = c.tile_m * c.tile_n > SMALL_TILE;
        let rows = if c.sharing == Sharing::Subgroup { c.tile_m } else { c.tile_m * c.workgroup[1] };
        let cols = c.tile_n * c.workgroup[0];
        let (tm, tn) = (u64::from(problem.m.div_ceil(rows)), u64::from(problem.n.div_ceil(cols)));
        let area = tm * u64::from(rows) * tn * u64::from(cols);
        let useful = u64::from(problem.m.max(1)) * u64::from(problem.n.max(1));
        let little_waste = if large { area - area / 8 <= useful } else { area < 2 * useful };
        u64::from(problem.batch) * tm * tn >= wanted && little_waste && (!large || problem.flops() >= LARGE_FLOPS)
    };
    *table.iter().find(fits).unwrap_or(&table[table.len() - 1])
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
