//! Sublane: a GPU compute engine on wgpu compute shaders.

pub mod bitset;
pub mod capture;
pub mod compiler;
pub mod device;
pub mod error;
pub mod files;
pub mod graph;
pub mod import;
pub mod motifs;
pub mod ops;
pub mod plan;
pub mod precision;
pub mod progress;
#[cfg(feature = "cli")]
pub mod report;
pub mod session;
pub mod shaders;
pub mod stats;
pub mod suite;
pub mod tensor;

pub use compiler::Compiled;
pub use device::Device;
pub use error::{Error, ErrorKind, Result};
pub use half::f16;
pub use kernels_gen::{self, DType};
pub use session::Session;
pub use tensor::HostTensor;
pub use wgpu;

/// Compiles and runs the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
