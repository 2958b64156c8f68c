//! Everything in Sublane that becomes WGSL text.
//!
//! The crate is pure: each function depends on its arguments alone. It knows no GPU, no file, no environment variable and no clock,
//! and its output is byte-identical across runs and machines. What it returns is a [`KernelSource`]: text, bindings, workgroup
//! size and cost formulas. Every one that leaves the crate has passed [`validate::validate`] for its [`Target`].

pub mod catalogue;
pub mod compose;
pub mod dtype;
pub mod emit;
pub mod error;
pub mod formats;
pub mod heroes;
pub mod index;
pub mod ir;
pub mod probes;
pub mod scalar;
pub mod source;
pub mod target;
pub mod threefry;
pub mod validate;
pub mod written;

pub use dtype::{DType, ScalarType};
pub use error::{Error, Result};
pub use source::{Binding, BindingKind, Formula, KernelSource, WgslFeatures};
pub use target::{AdapterClass, Target};
