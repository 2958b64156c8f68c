//! Tile tables of the heroes: data, by adapter class and shape.

use super::Sharing;
use super::gemm::{GemmConfig, GemmProblem};
use crate::target::{AdapterClass, Target};

const fn row(tile_m: u32, tile_n: u32, tile_k: u32, workgroup: [u32; 2], sharing: Sharing) -> GemmConfig {
    GemmConfig { tile_m, tile_n, tile_k, workgroup, sharing }
}

/// Tiles for drivers on the processor with subgroups: loads are what costs, so eight lanes share rows and tiles are large.
const SOFTWARE_SHARED: &[GemmConfig] =
    &[row(32, 8, 4, [8, 1], Sharing::Subgroup), row(16, 8, 4, [8, 1], Sharing::Subgroup), row(8, 4, 4, [8, 1], Sharing::Subgroup)];

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

/// Tiles for a product: the first row of the table that gives every processor core work and wastes less than half its tile.
pub fn gemm(target: &Target, problem: &GemmProblem) -> GemmConfig {
    let table = gemm_table(target);
    let wanted: u64 = if target.class == AdapterClass::Software { 4 } else { 64 };
    let fits = |c: &&GemmConfig| {
        let rows = if c.sharing == Sharing::Subgroup { c.tile_m } else { c.tile_m * c.workgroup[1] };
        let cols = c.tile_n * c.workgroup[0];
        let (tm, tn) = (problem.m.div_ceil(rows), problem.n.div_ceil(cols));
        let area = u64::from(tm * rows) * u64::from(tn * cols);
        u64::from(problem.batch) * u64::from(tm) * u64::from(tn) >= wanted
            && area < 2 * u64::from(problem.m.max(1)) * u64::from(problem.n.max(1))
    };
    *table.iter().find(fits).unwrap_or(&table[table.len() - 1])
}
