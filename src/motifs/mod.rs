//! Temporal motifs: exact counts, and estimates by sampling temporal paths (TEACUPS) on the GPU.
//!
//! A match of a motif maps its edges, in order, to edges of a [`TemporalGraph`] with increasing keys, its vertices injectively to vertices,
//! within a span of time. What a key is depends on [`Ties`].

mod anchor;
pub mod baseline;
mod compare;
mod count;
pub mod duration;
mod engine;
mod estimate;
pub mod exact;
pub mod gpu;
pub mod graph;
mod merge;
mod motif;
mod paths;
mod plan;
mod twins;

pub use anchor::{Anchor, MAX_ANCHOR_EDGES};
pub use compare::{CompareOptions, CompareRow, Compared, Comparison, compare};
pub use count::{
    CountOptions, Counted, DEFAULT_BUDGET, DEFAULT_MEMORY_BYTES, EndedBy, Fingerprint, How, Method, ShardPart, Value, count, plan,
};
pub use duration::{Delta, TimeUnit};
pub use engine::{Engine, phases};
pub use estimate::{FEW_NONZERO, NUM_REPLICATES, Replicate, Shard, Summary};
pub use graph::TemporalGraph;
pub use merge::merge;
pub use motif::{MAX_EDGES, Motif, Ties};
pub use paths::Prune;
pub use plan::{PILOT_DRAWS, PILOT_NONZERO, PlanRow, PlanTable};
pub use twins::TWINS;
