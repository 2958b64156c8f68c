//! A simulation with what it costs on an array: by layer and for the network.

use crate::bitset::account::Tally;
use crate::bitset::machine::{ArrayGeometry, Constants, Cost, Counted, full_cost, layer_cost};
use crate::bitset::network::Reason;
use crate::bitset::study::{Simulated, Study};
use crate::error::{Error, Result};

/// Part of the bit-level computations that the publication saves without loss \[read: Pan et al., ACM TECS 22(5s), 2023\].
pub const PUBLISHED_OPS_SAVED: f64 = 0.48;
/// Published speed-ups over UNPU without loss and at a loss of 1 % \[read\].
pub const PUBLISHED_SPEEDUP: [f64; 2] = [1.5, 1.6];
/// Published energy ratios over UNPU without loss and at a loss of 1 % \[read\].
pub const PUBLISHED_ENERGY_RATIO: [f64; 2] = [1.4, 1.4];
/// Published savings of SnaPEA, exact \[read\].
pub const PUBLISHED_SNAPEA: f64 = 0.28;
/// Published savings of ComPreEND, exact and predictive \[read\].
pub const PUBLISHED_COMPREEND: [f64; 2] = [0.205, 0.293];

/// Figures of one layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerFigures {
    /// Name of its node.
    pub name: String,
    /// Why it is never stopped, if so.
    pub reason: Option<Reason>,
    /// Products of an image.
    pub macs: u64,
    /// Taps of an output.
    pub taps: usize,
    /// Counts; none where it is never stopped.
    pub tally: Option<Tally>,
    /// Cost of an image.
    pub cost: Cost,
}

/// Figures of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// By layer, in the order in which they run.
    pub layers: Vec<LayerFigures>,
    /// Counts of the layers that can be stopped.
    pub total: Tally,
    /// Cost of an image, layers that are never stopped included.
    pub cost: Cost,
    /// Part of the operations saved, layers that are never stopped included.
    pub ops_saved_network: f64,
}

/// Puts a simulation on an array.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the simulation did not count the array's lock-step.
pub fn figures(study: &Study<'_>, found: &Simulated, geometry: &ArrayGeometry, constants: &Constants) -> Result<Figures> {
    let images = found.predictions.len() as u64;
    let mut figures = Figures { layers: Vec::new(), total: found.total(), cost: Cost::default(), ops_saved_network: 0.0 };
    let mut never_stopped = 0u128;
    let bits = study.layers().first().map_or(0, |layer| layer.layer.bits);
    for (at, layer) in study.network().layers.iter().enumerate() {
        let integer = study.layers().iter().position(|integer| integer.at == at);
        let (tally, cost) = match integer {
            Some(place) => {
                let (tally, integer) = (&found.tallies[place], &study.layers()[place].layer);
                let lock_steps = found.lock_steps(place, geometry.group);
                let lock_steps = lock_steps.ok_or_else(|| {
                    Error::invalid(format!("groups of {} channels were not counted; these were: {:?}", geometry.group, found.lanes))
                })?;
                let positive = integer.q.iter().filter(|q| **q > 0).count() as f64 / integer.q.len().max(1) as f64;
                let (shape, encoding, rule) = (&integer.geometry, found.encoding, found.rule);
                let counted = Counted { shape, bits, encoding, rule, tally, lock_steps, positive, images };
                (Some(*tally), layer_cost(&counted, geometry, constants))
            }
            None => {
                never_stopped += u128::from(layer.geometry.macs()) * u128::from(bits) * u128::from(images);
                (None, full_cost(&layer.geometry, geometry, constants))
            }
        };
        figures.cost.add(&cost);
        let (name, macs, taps) = (layer.name.clone(), layer.geometry.macs(), layer.geometry.taps());
        figures.layers.push(LayerFigures { name, reason: layer.reason, macs, taps, tally, cost });
    }
    let all = figures.total.ops_all as f64 + never_stopped as f64;
    figures.ops_saved_network = if all == 0.0 { 0.0 } else { (figures.total.ops_all as f64 - figures.total.ops as f64) / all };
    Ok(figures)
}
