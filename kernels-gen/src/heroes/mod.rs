//! Heroes: WGSL skeletons of the matrix product, the convolution and attention, with typed holes.
//!
//! A skeleton is the text of an entry point. It calls functions it does not define, its *holes*: how an operand's element is
//! read (a prologue may be fused into it) and how a result is written (the epilogue). The caller puts the holes, and the
//! bindings they use, before the skeleton and has a whole kernel. Holes get indices that are in range, always; what lies
//! outside is the skeleton's affair. Tile sizes are data ([`tiles`]), chosen by adapter class and shape.

use std::fmt;

use crate::error::{Error, Result};
use crate::source::{Binding, Formula, KernelSource, WgslFeatures};
use crate::target::Target;

pub mod attention;
pub mod conv;
pub mod gemm;
pub mod tiles;

#[cfg(test)]
mod tests;
mod text;

/// Lanes that share operands in the subgroup variants. Adapters whose subgroups may be smaller must not be given those.
pub const SUBGROUP_LANES: u32 = 8;

/// How the lanes of a workgroup share what they load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Not at all: each lane loads what it multiplies. Lanes that must exchange values do so through workgroup memory.
    Lane,
    /// Eight lanes of a subgroup load the operand they have in common once and broadcast it.
    Subgroup,
    /// Each lane takes a part of k; partial sums meet in workgroup memory. For products of few rows or columns; for nothing else.
    Split,
    /// The lanes of a workgroup copy blocks of both operands to workgroup memory and multiply from there. For products; for nothing else.
    Workgroup,
    /// Each lane has a tile of its own, anywhere: for batches of products that are smaller than what a workgroup computes; for nothing else.
    Own,
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sharing::Lane => "lane",
            Sharing::Subgroup => "subgroup",
            Sharing::Split => "split",
            Sharing::Workgroup => "workgroup",
            Sharing::Own => "own",
        })
    }
}

/// Class of a size: sizes of one class differ by less than an eighth and share their factors of two up to 64, so that what is fastest for
/// one is taken for all. Written as the largest size and the factor, `1024/64`; sizes up to 16 are classes of their own.
pub fn size_class(size: u32) -> String {
    if size <= 16 {
        return size.to_string();
    }
    let step = 1u64 << (size - 1).ilog2().saturating_sub(3);
    format!("{}/{}", u64::from(size).div_ceil(step) * step, 1u32 << size.trailing_zeros().min(6))
}

/// The entry point of a hero and what a dispatch of it costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skeleton {
    /// WGSL text: the entry point and module-scope variables; the holes must be defined before or after it.
    pub wgsl: String,
    /// Invocations of a workgroup.
    pub workgroup_size: [u32; 3],
    /// Workgroups of the dispatch, folded to the target's limit; x is 0 where there is nothing to write.
    pub workgroups: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Whether subgroup operations are used.
    pub subgroups: bool,
    /// Floating-point operations of the dispatch, two a multiplication and addition.
    pub flops: u64,
    /// Loop iterations of one invocation.
    pub max_iterations: u64,
}

impl Skeleton {
    /// The kernel `name` (the entry point the skeleton was made with): declarations and holes, then the skeleton. `bytes` is what
    /// one dispatch reads and writes.
    pub fn into_source(
        self,
        name: &str,
        holes: &str,
        bindings: Vec<Binding>,
        num_params: usize,
        bytes: impl Into<Formula>,
    ) -> KernelSource {
        KernelSource {
            name: name.into(),
            wgsl: format!("{holes}\n{}", self.wgsl),
            bindings,
            num_params,
            workgroup_size: self.workgroup_size,
            overrides: Vec::new(),
            workgroup_bytes: self.workgroup_bytes,
            features: WgslFeatures { subgroups: self.subgroups, ..WgslFeatures::default() },
            flops: self.flops.into(),
            bytes: bytes.into(),
            max_iterations: self.max_iterations.into(),
        }
    }
}

/// Folds a number of workgroups into x and y; the kernel's linear index is `wid.x + wid.y * num_workgroups.x`.
fn fold(total: u64, target: &Target, what: &str) -> Result<[u32; 3]> {
    let most = u64::from(target.max_workgroups_per_dim.max(1));
    let y = total.div_ceil(most).max(1);
    if y > most || u32::try_from(total).is_err() {
        return Err(Error::Unsupported(format!(
            "{what} needs {total} workgroups, a dispatch on target `{}` has at most {}; split the outermost axis over several dispatches",
            target.name,
            most.saturating_mul(most).min(u64::from(u32::MAX))
        )));
    }
    Ok([total.div_ceil(y) as u32, y as u32, 1])
}

/// Refuses configurations past the target's limits.
fn check_limits(target: &Target, what: &str, workgroup: [u32; 2], bytes: u32, subgroups: bool) -> Result<()> {
    let invocations = workgroup[0].saturating_mul(workgroup[1]);
    let fault = if invocations == 0 || invocations > target.max_workgroup_invocations {
        format!("{invocations} invocations a workgroup, allowed are 1 to {}", target.max_workgroup_invocations)
    } else if bytes > target.max_workgroup_bytes {
        format!("{bytes} bytes of workgroup memory, allowed are {}", target.max_workgroup_bytes)
    } else if subgroups && !target.subgroups {
        "subgroup operations, which the target lacks".to_string()
    } else {
        return Ok(());
    };
    Err(Error::Unsupported(format!("{what} configuration uses {fault}; choose one from the tile table of target `{}`", target.name)))
}
