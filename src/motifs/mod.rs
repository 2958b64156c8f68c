//! Temporal motifs: exact counts, and estimates by sampling temporal paths (TEACUPS) on the GPU.
//!
//! A match of a motif maps its edges, in order, to edges of a [`TemporalGraph`] with increasing keys, its vertices injectively to vertices,
//! within a span of time. What a key is depends on [`Ties`].

mod anchor;
pub mod baseline;
pub mod duration;
pub mod exact;
pub mod gpu;
pub mod graph;
mod motif;
mod paths;
mod twins;

pub use anchor::{Anchor, MAX_ANCHOR_EDGES};
pub use duration::{Delta, TimeUnit};
pub use graph::TemporalGraph;
pub use motif::{MAX_EDGES, Motif, Ties};
pub use twins::TWINS;
