//! Recorders of the GPU's part: each appends dispatches of hand-written kernels to an execution plan.

mod scan;

pub use scan::{MAX_SCAN, ScanKernels, Values};
