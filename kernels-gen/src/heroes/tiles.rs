//! Tile tables of the heroes: data, by adapter class and shape.
//!
//! A table's first fitting row is what runs where nothing was measured. The tuner chooses among the candidates: the rows of the tables and
//! some more, a configuration being one row.

use super::Sharing;
use super::attention::{self, AttentionConfig, AttentionProblem};
use super::conv::{self, ConvConfig, ConvProblem};
use super::gemm::{self, GemmConfig, GemmProblem, RUN, VecAxis};
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

/// The same for products of few columns, though more than the tables of few have: of such a tile more is filled.
const SOFTWARE_SHARED_NARROW: &[GemmConfig] = &[row(32, 4, 4, [8, 1], Sharing::Subgroup), row(16, 4, 4, [8, 1], Sharing::Subgroup)];

/// Results a lane may hold in a product of fewer than `LARGE_FLOPS`: larger tiles take drivers on the processor seconds to compile.
const SMALL_TILE: u32 = 256;
/// Operations from which on a product is worth larger tiles.
const LARGE_FLOPS: u64 = 1 << 29;
/// The same of the largest tiles, which take such a driver three seconds: a first product of 1024 rows, columns and terms is over sooner with
/// smaller ones, which are a tenth slower from then on.
const LARGEST: (u32, u64) = (512, 1 << 33);

/// Whether a product of so many operations is worth what a driver takes to compile a tile.
fn worth_compiling(config: &GemmConfig, flops: u64) -> bool {
    let results = config.tile_m * config.tile_n;
    (results <= SMALL_TILE || flops >= LARGE_FLOPS) && (results <= LARGEST.0 || flops >= LARGEST.1)
}

/// Tiles for drivers on the processor without subgroups.
const SOFTWARE: &[GemmConfig] =
    &[row(16, 16, 4, [16, 1], Sharing::Lane), row(8, 8, 4, [8, 1], Sharing::Lane), row(4, 4, 4, [8, 1], Sharing::Lane)];

/// Tiles for GPUs: blocks in workgroup memory, at most 16 KiB for two workgroups at once, where k is long enough to fill them.
const GPU: &[GemmConfig] = &[
    row(8, 8, 8, [16, 16], Sharing::Workgroup),
    row(4, 4, 16, [16, 16], Sharing::Workgroup),
    row(4, 4, 16, [8, 8], Sharing::Workgroup),
    row(4, 4, 16, [16, 4], Sharing::Workgroup),
    row(4, 4, 16, [4, 16], Sharing::Workgroup),
    row(8, 8, 4, [16, 16], Sharing::Lane),
    row(4, 4, 4, [16, 16], Sharing::Lane),
    row(2, 4, 4, [8, 8], Sharing::Lane),
];

/// Longest of the shorter side of a product that takes the tables of few rows or columns.
const FEW: u32 = 8;

/// Few rows or columns, on drivers on the processor: eight lanes side by side along the long side, and along k only where there is no more.
const SOFTWARE_FEW: &[GemmConfig] = &[
    row(1, 16, 4, [8, 1], Sharing::Split),
    row(1, 4, 4, [8, 8], Sharing::Split),
    row(1, 4, 4, [1, 8], Sharing::Split),
    row(2, 16, 4, [8, 1], Sharing::Split),
    row(2, 4, 4, [8, 8], Sharing::Split),
    row(2, 4, 4, [1, 8], Sharing::Split),
    row(4, 16, 4, [8, 1], Sharing::Split),
    row(4, 4, 4, [8, 8], Sharing::Split),
    row(4, 4, 4, [1, 8], Sharing::Split),
    row(8, 8, 4, [8, 1], Sharing::Split),
    row(8, 4, 4, [8, 8], Sharing::Split),
    row(8, 4, 4, [1, 8], Sharing::Split),
];

/// Few rows or columns on GPUs, where the long operand lies along its long side: lanes read 128 bytes of it side by side.
const GPU_FEW: &[GemmConfig] = &[
    row(1, 4, 4, [8, 32], Sharing::Split),
    row(2, 4, 4, [8, 32], Sharing::Split),
    row(4, 4, 4, [8, 32], Sharing::Split),
    row(8, 4, 4, [8, 16], Sharing::Split),
];

/// The same where it lies along k: lanes read more, along k.
const GPU_FEW_ALONG_K: &[GemmConfig] = &[
    row(1, 4, 4, [1, 64], Sharing::Split),
    row(2, 4, 4, [1, 64], Sharing::Split),
    row(4, 4, 4, [1, 64], Sharing::Split),
    row(8, 4, 4, [1, 64], Sharing::Split),
];

/// The same where an operand's elements share words: whole runs of them in one step.
const SOFTWARE_FEW_PACKED: &[GemmConfig] = &[
    row(1, 8, RUN, [8, 1], Sharing::Split),
    row(1, 4, RUN, [8, 1], Sharing::Split),
    row(1, 4, RUN, [1, 8], Sharing::Split),
    row(2, 4, RUN, [8, 1], Sharing::Split),
    row(2, 4, RUN, [1, 8], Sharing::Split),
    row(4, 4, RUN, [8, 1], Sharing::Split),
    row(4, 4, RUN, [1, 8], Sharing::Split),
    row(8, 4, RUN, [8, 1], Sharing::Split),
    row(8, 4, RUN, [1, 8], Sharing::Split),
];
const GPU_FEW_PACKED: &[GemmConfig] = &[
    row(1, 4, RUN, [1, 64], Sharing::Split),
    row(2, 4, RUN, [1, 64], Sharing::Split),
    row(4, 4, RUN, [1, 64], Sharing::Split),
    row(8, 4, RUN, [1, 64], Sharing::Split),
];

/// More of these, tried by the tuner.
const SOFTWARE_FEW_PACKED_MORE: &[GemmConfig] =
    &[row(1, 8, RUN, [1, 8], Sharing::Split), row(1, 16, RUN, [8, 1], Sharing::Split), row(2, 8, RUN, [8, 1], Sharing::Split)];
const GPU_FEW_PACKED_MORE: &[GemmConfig] = &[
    row(1, 4, RUN, [4, 16], Sharing::Split),
    row(1, 4, RUN, [1, 32], Sharing::Split),
    row(1, 4, RUN, [1, 128], Sharing::Split),
    row(1, 8, RUN, [1, 64], Sharing::Split),
];

/// More rows for few rows or columns, tried by the tuner.
const SOFTWARE_FEW_MORE: &[GemmConfig] = &[
    row(1, 32, 4, [8, 1], Sharing::Split),
    row(1, 8, 8, [8, 1], Sharing::Split),
    row(2, 8, 4, [8, 1], Sharing::Split),
    row(4, 8, 4, [8, 1], Sharing::Split),
    row(8, 16, 4, [8, 1], Sharing::Split),
    row(16, 8, 4, [8, 1], Sharing::Split),
    row(32, 4, 4, [8, 1], Sharing::Split),
    row(1, 8, 4, [1, 8], Sharing::Split),
];
const GPU_FEW_MORE: &[GemmConfig] = &[
    row(1, 4, 4, [32, 8], Sharing::Split),
    row(1, 4, 4, [16, 16], Sharing::Split),
    row(1, 4, 8, [8, 16], Sharing::Split),
    row(1, 4, 4, [1, 256], Sharing::Split),
    row(1, 8, 4, [1, 32], Sharing::Split),
    row(1, 4, 8, [1, 32], Sharing::Split),
    row(16, 4, 4, [8, 8], Sharing::Split),
];

/// Longest side of a product that lanes may compute alone, and a fourth of its longest k.
const TINY: u32 = 16;

/// Batches of products so small that a workgroup's tile would be mostly empty: each lane has a tile of its own.
const SOFTWARE_TINY: &[GemmConfig] = &[
    row(8, 8, 4, [8, 1], Sharing::Own),
    row(4, 8, 4, [8, 1], Sharing::Own),
    row(4, 4, 4, [8, 1], Sharing::Own),
    row(1, 4, 4, [8, 1], Sharing::Own),
];
const GPU_TINY: &[GemmConfig] =
    &[row(4, 4, 4, [64, 1], Sharing::Own), row(2, 4, 4, [64, 1], Sharing::Own), row(1, 4, 4, [64, 1], Sharing::Own)];

/// The rows for few rows or columns.
fn gemm_few_tables(target: &Target) -> &'static [&'static [GemmConfig]] {
    if target.class == AdapterClass::Software { &[SOFTWARE_FEW] } else { &[GPU_FEW, GPU_FEW_ALONG_K] }
}

/// The rows for few rows or columns of an operand whose elements share words.
fn gemm_few_packed(target: &Target) -> &'static [GemmConfig] {
    if target.class == AdapterClass::Software { SOFTWARE_FEW_PACKED } else { GPU_FEW_PACKED }
}

/// The table for few rows or columns, where the product has so few.
fn gemm_few(target: &Target, problem: &GemmProblem) -> Option<&'static [GemmConfig]> {
    let (few, axis) = if problem.n < problem.m { (problem.n, problem.a_vec) } else { (problem.m, problem.b_vec) };
    if problem.packed() && few <= FEW {
        return Some(gemm_few_packed(target));
    }
    let tables = gemm_few_tables(target);
    let which = if axis == VecAxis::K { tables.last() } else { tables.first() };
    which.filter(|_| few <= FEW).copied()
}

/// The rows for batches of tiny products.
fn gemm_tiny_table(target: &Target) -> &'static [GemmConfig] {
    if target.class == AdapterClass::Software { SOFTWARE_TINY } else { GPU_TINY }
}

/// All rows that a product of some shape may get on a target without a measurement.
pub fn gemm_rows(target: &Target) -> Vec<GemmConfig> {
    let narrow = if target.class == AdapterClass::Software && target.subgroups { SOFTWARE_SHARED_NARROW } else { &[] };
    [gemm_table(target), narrow, &gemm_few_tables(target).concat(), gemm_few_packed(target), gemm_tiny_table(target)].concat()
}

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
    row(8, 8, 16, [16, 16], Sharing::Workgroup),
    row(8, 8, 16, [8, 8], Sharing::Workgroup),
    row(8, 4, 16, [16, 16], Sharing::Workgroup),
    row(4, 8, 16, [16, 8], Sharing::Workgroup),
    row(4, 4, 32, [16, 16], Sharing::Workgroup),
    row(8, 4, 16, [8, 8], Sharing::Workgroup),
];

/// The configurations for `problem` that [`gemm::check`] lets pass, the table's choice first, then those nearest to it in the size of their
/// tiles. Likely ones waste less than half of what they compute and are not past what a small product is worth compiling.
pub fn gemm_candidates(target: &Target, problem: &GemmProblem, which: Candidates) -> Vec<GemmConfig> {
    let table = gemm(target, problem);
    let software = target.class == AdapterClass::Software;
    let packed_on_processor = if problem.packed() { [SOFTWARE_FEW_PACKED, SOFTWARE_FEW_PACKED_MORE] } else { [&[][..]; 2] };
    let packed_on_gpus = if problem.packed() { [GPU_FEW_PACKED, GPU_FEW_PACKED_MORE] } else { [&[][..]; 2] };
    let on_processor = [SOFTWARE_TINY, SOFTWARE_FEW, SOFTWARE_FEW_MORE, SOFTWARE_SHARED, SOFTWARE, SOFTWARE_MORE];
    let on_gpus = [GPU_TINY, GPU_FEW, GPU_FEW_ALONG_K, GPU_FEW_MORE, GPU, GPU_MORE];
    let on_processor = [&packed_on_processor[..], &on_processor].concat();
    let on_gpus = [&packed_on_gpus[..], &on_gpus].concat();
    let lists = [&on_processor[..], &on_gpus].concat();
    let likely = if software { &lists[..on_processor.len()] } else { &lists[on_processor.len()..] };
    let lists = if which == Candidates::All { &lists[..] } else { likely };
    let fits = |c: &GemmConfig| {
        let [rows, cols] = c.block(problem);
        let area = u64::from(problem.m.div_ceil(rows)) * u64::from(rows) * u64::from(problem.n.div_ceil(cols)) * u64::from(cols);
        let useful = u64::from(problem.m.max(1)) * u64::from(problem.n.max(1));
        let worth = !software || c.tile_m * c.tile_n <= SMALL_TILE || problem.flops() >= LARGE_FLOPS;
        let shape = match c.sharing {
            Sharing::Split => problem.m.min(problem.n) <= 4 * FEW,
            Sharing::Own => problem.m.max(problem.n) <= 2 * TINY,
            Sharing::Workgroup => fills_k(problem, c),
            Sharing::Lane | Sharing::Subgroup => true,
        };
        match which {
            Candidates::Likely => worth && shape && area <= 2 * useful,
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
    if let Some(row) = tiny_row(target, problem) {
        return row;
    }
    if let Some(row) = gemm_few(target, problem).and_then(|table| few_row(target, problem, table)) {
        return row;
    }
    if let Some(row) = narrow_row(target, problem) {
        return row;
    }
    let table = gemm_table(target);
    let wanted = wanted_workgroups(target);
    let fits = |c: &&GemmConfig| {
        if c.sharing == Sharing::Workgroup && !(fills_k(problem, c) && gemm::check(problem, c, target).is_ok()) {
            return false;
        }
        let large = c.tile_m * c.tile_n > SMALL_TILE;
        let [rows, cols] = c.block(problem);
        let (tm, tn) = (u64::from(problem.m.div_ceil(rows)), u64::from(problem.n.div_ceil(cols)));
        let area = tm * u64::from(rows) * tn * u64::from(cols);
        let useful = u64::from(problem.m.max(1)) * u64::from(problem.n.max(1));
        let little_waste = if large { area - area / 8 <= useful } else { area < 2 * useful };
        u64::from(problem.batch) * tm * tn >= wanted && little_waste && worth_compiling(c, problem.flops())
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

/// The first row for few columns that gives every core work, where a driver on the processor has subgroups and columns are few.
fn narrow_row(target: &Target, problem: &GemmProblem) -> Option<GemmConfig> {
    if target.class != AdapterClass::Software || !target.subgroups {
        return None;
    }
    let fits = |c: &&GemmConfig| {
        let [rows, cols] = c.block(problem);
        let tiles = u64::from(problem.m.div_ceil(rows));
        let enough = u64::from(problem.batch) * tiles >= wanted_workgroups(target);
        problem.n <= cols && enough && tiles * u64::from(rows) < 2 * u64::from(problem.m)
    };
    SOFTWARE_SHARED_NARROW.iter().find(fits).copied()
}

/// Workgroups that give every core of the target work.
fn wanted_workgroups(target: &Target) -> u64 {
    if target.class == AdapterClass::Software { 4 } else { 64 }
}

/// Whether k fills the blocks in workgroup memory a few times, so that their last one matters little.
fn fills_k(problem: &GemmProblem, config: &GemmConfig) -> bool {
    problem.k >= 2 * config.tile_k
}

/// The first row with tiles of one lane's own that are filled to more than half and give every core work; none for larger products.
fn tiny_row(target: &Target, problem: &GemmProblem) -> Option<GemmConfig> {
    // Which side is the longer one changes the text, so that sizes that vary would share no kernel.
    if target.varying_sizes || problem.m.max(problem.n) > TINY || problem.k > 4 * TINY {
        return None;
    }
    let (few, long) = (problem.m.min(problem.n).max(1), problem.m.max(problem.n).max(1));
    let useful = u64::from(few) * u64::from(long);
    let fits = |c: &&GemmConfig| {
        let tiles = u64::from(few.div_ceil(c.tile_m)) * u64::from(long.div_ceil(c.tile_n));
        let area = tiles * u64::from(c.tile_m) * u64::from(c.tile_n);
        let enough = u64::from(problem.batch) * tiles >= wanted_workgroups(target) * u64::from(c.tiles_per_workgroup());
        enough && area < 2 * useful && gemm::check(problem, c, target).is_ok()
    };
    gemm_tiny_table(target).iter().find(fits).copied()
}

/// Into how many parts of equal length, a multiple of 4, k is to be cut so that a product too small for the target's cores becomes a batch of
/// products, to be added up: 1 where it is not. No part is so short that it is not worth
/// its share of one more dispatch.
pub fn parts_of_k(target: &Target, problem: &GemmProblem) -> u32 {
    /// Steps of the shortest part.
    const SHORTEST: u32 = 512;
    // Multiplications from which on a part is worth its share.
    let worth: u64 = if target.class == AdapterClass::Software { 1 << 18 } else { 1 << 20 };
    let config = gemm(target, problem);
    let [rows, cols] = config.block(problem);
    let tiles = u64::from(problem.m.div_ceil(rows)) * u64::from(problem.n.div_ceil(cols));
    let workgroups = (u64::from(problem.batch) * tiles).div_ceil(u64::from(config.tiles_per_workgroup()));
    if target.varying_sizes || workgroups == 0 {
        return 1;
    }
    let most = (wanted_workgroups(target) / workgroups).min(problem.flops() / 2 / worth).min(u64::from(problem.k / SHORTEST));
    let even = |parts: &u32| problem.k.is_multiple_of(4 * parts);
    (2..=most as u32).rev().find(even).unwrap_or(1)
}

/// The first row that holds the short side in one tile, is filled to more than half and gives every processor core work, else the last with
/// tiles as small. None where a tile is filled to less than half and k is too short to pay for it.
fn few_row(target: &Target, problem: &GemmProblem, table: &[GemmConfig]) -> Option<GemmConfig> {
    const LONG_K: u32 = 256;
    let (few, long) = (problem.m.min(problem.n), problem.m.max(problem.n));
    let tiles = |c: &GemmConfig| u64::from(long.div_ceil(c.tile_n * c.workgroup[0]));
    let filled = |c: &GemmConfig| tiles(c) * u64::from(c.tile_n * c.workgroup[0]) < 2 * u64::from(long);
    let valid = |c: &&GemmConfig| few <= c.tile_m && (filled(c) || problem.k >= LONG_K) && gemm::check(problem, c, target).is_ok();
    let smallest = table.iter().filter(valid).map(|c| c.tile_m).min()?;
    let mut rows = table.iter().filter(|c| valid(c) && c.tile_m == smallest);
    let enough = |c: &&GemmConfig| filled(c) && u64::from(problem.batch) * tiles(c) >= wanted_workgroups(target);
    rows.clone().find(enough).or_else(|| rows.next_back()).copied()
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
    let wanted = wanted_workgroups(target);
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

const fn attention_row(tile_rows: u32, key_vecs: u32, teams: u32, sharing: Sharing) -> AttentionConfig {
    AttentionConfig { tile_rows, key_vecs, teams, sharing }
}

/// Attention on drivers on the processor with subgroups, largest tiles first.
const ATTENTION_SOFTWARE_SHARED: &[AttentionConfig] = &[
    attention_row(32, 1, 1, Sharing::Subgroup),
    attention_row(16, 1, 1, Sharing::Subgroup),
    attention_row(8, 2, 1, Sharing::Subgroup),
    attention_row(4, 2, 1, Sharing::Subgroup),
    attention_row(1, 2, 1, Sharing::Subgroup),
];

/// Attention everywhere else.
const ATTENTION: &[AttentionConfig] =
    &[attention_row(4, 2, 8, Sharing::Lane), attention_row(2, 1, 8, Sharing::Lane), attention_row(1, 1, 4, Sharing::Lane)];

/// The rows of the table of attention for a target, largest tiles first.
pub fn attention_table(target: &Target) -> &'static [AttentionConfig] {
    if target.class == AdapterClass::Software && target.subgroups { ATTENTION_SOFTWARE_SHARED } else { ATTENTION }
}

/// More configurations for drivers on the processor.
const ATTENTION_SOFTWARE_MORE: &[AttentionConfig] = &[
    attention_row(24, 1, 1, Sharing::Subgroup),
    attention_row(32, 2, 1, Sharing::Subgroup),
    attention_row(16, 2, 1, Sharing::Subgroup),
    attention_row(48, 1, 1, Sharing::Subgroup),
    attention_row(8, 1, 1, Sharing::Subgroup),
    attention_row(8, 1, 1, Sharing::Lane),
];

/// More configurations for GPUs.
const ATTENTION_MORE: &[AttentionConfig] = &[
    attention_row(8, 1, 4, Sharing::Lane),
    attention_row(4, 1, 8, Sharing::Lane),
    attention_row(4, 1, 16, Sharing::Lane),
    attention_row(2, 2, 16, Sharing::Lane),
    attention_row(2, 1, 16, Sharing::Lane),
    attention_row(1, 1, 16, Sharing::Lane),
];

/// The configurations for `problem` that [`attention::check`] lets pass, as [`gemm_candidates`] says.
pub fn attention_candidates(target: &Target, problem: &AttentionProblem, which: Candidates) -> Vec<AttentionConfig> {
    let table = attention(target, problem);
    let software = target.class == AdapterClass::Software;
    let lists = [ATTENTION_SOFTWARE_SHARED, ATTENTION_SOFTWARE_MORE, ATTENTION, ATTENTION_MORE];
    let likely = if software { &lists[..2] } else { &lists[2..] };
    let lists = if which == Candidates::All { &lists[..] } else { likely };
    let fits = |c: &AttentionConfig| {
        let rows = u64::from(problem.rows.div_ceil(c.block_rows())) * u64::from(c.block_rows());
        let useful = u64::from(problem.rows.max(1));
        let worth = c.tile_rows <= SMALL_ATTENTION_ROWS || problem.flops() >= LARGE_ATTENTION_FLOPS;
        match which {
            Candidates::Likely => worth && rows <= 2 * useful,
            Candidates::All => rows <= 4 * useful,
        }
    };
    let mut found: Vec<AttentionConfig> = Vec::new();
    for config in lists.iter().copied().flatten() {
        if *config != table && fits(config) && attention::check(problem, config, target).is_ok() && !found.contains(config) {
            found.push(*config);
        }
    }
    let distance = |c: &AttentionConfig| c.tile_rows.max(1).ilog2().abs_diff(table.tile_rows.ilog2());
    found.sort_by_key(|c| (c.sharing != table.sharing, distance(c)));
    found.insert(0, table);
    found
}

/// Rows a lane may hold in an attention of fewer than `LARGE_ATTENTION_FLOPS`, since larger tiles take longer to compile.
const SMALL_ATTENTION_ROWS: u32 = 16;
/// Operations from which on an attention is worth the largest tiles.
const LARGE_ATTENTION_FLOPS: u64 = 1 << 26;

/// Tiles for an attention: the first row of the table that gives every processor core work and wastes less than half its tile, the
/// largest only where they are worth their compilation.
pub fn attention(target: &Target, problem: &AttentionProblem) -> AttentionConfig {
    let table = attention_table(target);
    let wanted = wanted_workgroups(target);
    let fits = |c: &&AttentionConfig| {
        let rows = c.block_rows();
        let tiles = u64::from(problem.rows.div_ceil(rows));
        let worth = c.tile_rows <= SMALL_ATTENTION_ROWS || problem.flops() >= LARGE_ATTENTION_FLOPS;
        worth && u64::from(problem.batch) * tiles >= wanted && tiles * u64::from(rows) < 2 * u64::from(problem.rows.max(1))
    };
    *table.iter().find(fits).unwrap_or(&table[table.len() - 1])
}
