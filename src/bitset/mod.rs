//! BitSET: inference of convolutional networks by bit-planes, with outputs stopped as soon as they are known, or predicted, to end negative
//! before a ReLU.
//!
//! The odd grid, the static thresholds and the figures of the publication (Pan, Yu, Lukefahr, Das, Mahlke: BitSET: Bit-Serial Early Termination
//! for Computation Reduction in Convolutional Neural Networks, ACM TECS 22(5s), 2023) are read; the rules R1 and R3, the fixed point of the bias
//! and what holds of remainders are derived. It is a simulator of an accelerator, and no faster way to run a network.

pub mod account;
pub mod calibrate;
mod cases;
pub mod compare;
pub mod encoding;
pub mod figures;
pub mod gpu;
pub mod host;
pub mod layer;
pub mod machine;
pub mod network;
mod program;
pub mod quantise;
pub mod reference;
pub mod rule;
pub mod search;
pub mod segments;
pub mod simulate;
pub mod split;
pub mod study;
#[cfg(test)]
mod tests;
mod twins;

pub use account::{ChannelTally, Tally};
pub use cases::{LayerCase, layer_cases};
pub use encoding::Encoding;
pub use layer::{Geometry, Layer, Thresholds};
pub use rule::Rule;
pub use twins::TWINS;
