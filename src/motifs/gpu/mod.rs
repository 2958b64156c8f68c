//! The GPU's part: graphs and numberings in device memory, and recorders that append dispatches of hand-written kernels to plans.

mod cases;
mod draw;
mod graph;
mod number;
mod round;
mod scan;
mod trees;
pub(crate) mod trial;
mod units;

pub use cases::{NumberingCase, numbering_cases};
pub(in crate::motifs) use draw::GpuPaths;
pub(in crate::motifs) use graph::{GpuGraph, GpuKeys};
pub use scan::{MAX_SCAN, ScanKernels, Values};
pub(in crate::motifs) use trees::GpuLists;
pub(crate) use trees::{TreeDraws, TreeRound, tree_round};
