//! Precision: models whose weights are stored in fewer bits.

mod stored;
mod weights;

pub use stored::{Source, StoredWeights, check_replaceable, read, write};
pub use weights::{Layer, Measured, QuantisedModel, WeightOptions, apply, quantise};
