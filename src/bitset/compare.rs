//! All rules, codes and arrays on one network, side by side.

use crate::bitset::account::Tally;
use crate::bitset::encoding::Encoding;
use crate::bitset::figures::figures;
use crate::bitset::layer::Thresholds;
use crate::bitset::machine::{ArrayGeometry, Constants, Cost};
use crate::bitset::rule::Rule;
use crate::bitset::study::{Samples, Simulated, Study, Wanted};
use crate::error::{Error, Result};
use crate::progress::Work;

/// Images of the tuning split that numbers of rules are chosen on.
const MASS_IMAGES: usize = 200;

/// Simulations that choose one.
const MASS_TRIALS: usize = 8;

/// What is compared.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// Rules.
    pub rules: Vec<Rule>,
    /// Codes; pairs that do not go together are left out.
    pub encodings: Vec<Encoding>,
    /// Part of the mass of positive outputs that each predictive rule is made to kill on the tuning split, in place of its own number.
    pub killed_mass: Option<f64>,
    /// Arrays.
    pub geometries: Vec<ArrayGeometry>,
    /// Of the arrays.
    pub constants: Constants,
    /// Numbers of lanes that the arrays need.
    pub lanes: Vec<usize>,
}

/// One rule and code.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The simulation.
    pub found: Simulated,
    /// Its counts together.
    pub total: Tally,
    /// Part of the operations of the whole network that is saved.
    pub ops_saved_network: f64,
    /// Images whose class is another one than without stops.
    pub changed: usize,
    /// Cost on each array.
    pub arrays: Vec<(ArrayGeometry, Cost)>,
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Rules and codes.
    pub rows: Vec<Compared>,
    /// Images that are right in f32, where classes are known.
    pub correct_float: Option<usize>,
    /// Images.
    pub images: usize,
    /// Whether every exact rule gave what no rule gives, and saved no more than can be saved.
    pub exact_agree: bool,
}

/// Compares rules and codes on the test split.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where no pair is valid, and for a killed mass without a tuning split; those of
/// [`Study::simulate`].
pub fn compare(study: &Study<'_>, options: &CompareOptions, work: &Work<'_>) -> Result<Comparison> {
    let bits = study.layers().first().map_or(0, |layer| layer.layer.bits);
    let pairs: Vec<(Rule, Encoding)> = options
        .rules
        .iter()
        .flat_map(|&rule| options.encodings.iter().map(move |&encoding| (rule, encoding)))
        .filter(|(rule, encoding)| rule.check(*encoding, bits).is_ok())
        .collect();
    if pairs.is_empty() {
        return Err(Error::invalid(format!("no rule goes with a code; the pairs are: {}", crate::bitset::rule::pairs())));
    }
    let tune = &study.split().tune;
    if options.killed_mass.is_some() && tune.is_empty() {
        return Err(Error::invalid("rules are made to kill a part of the mass on the split `tune`; give it images"));
    }
    let test = study.split().test.clone();
    let (float, _) = study.float_predictions(&test, work)?;
    let calibrated: Vec<Encoding> =
        options.encodings.iter().copied().filter(|e| pairs.iter().any(|(rule, of)| rule.is_calibrated() && of == e)).collect();
    let samples = if calibrated.is_empty() { None } else { Some(study.samples(&calibrated, work)?) };
    let wanted = Wanted { encoding: Encoding::Pm1, rule: Rule::None, thresholds: None, audit: false, lanes: Vec::new() };
    let plain = study.simulate(wanted, &test, "without stops", work)?;
    let mut comparison =
        Comparison { rows: Vec::new(), correct_float: study.correct(test.start, &float), images: test.len(), exact_agree: true };
    for (rule, encoding) in pairs {
        let rule = match options.killed_mass {
            Some(mass) if !rule.is_exact() => of_mass(study, samples.as_ref(), rule, encoding, mass, work)?,
            _ => rule,
        };
        let thresholds = thresholds(study, samples.as_ref(), rule, encoding)?;
        let wanted = Wanted { encoding, rule, thresholds, audit: true, lanes: options.lanes.clone() };
        let found = study.simulate(wanted, &test, &format!("{rule} with {encoding}"), work)?;
        let total = found.total();
        let changed = found.predictions.iter().zip(&plain.predictions).filter(|(a, b)| a != b).count();
        if rule.is_exact() && (changed > 0 || total.all.killed > 0 || total.ops_saved() > total.ceiling()) {
            comparison.exact_agree = false;
        }
        let mut ops_saved_network = 0.0;
        let arrays = options.geometries.iter().map(|geometry| {
            let figures = figures(study, &found, geometry, &options.constants)?;
            ops_saved_network = figures.ops_saved_network;
            Ok((*geometry, figures.cost))
        });
        let arrays = arrays.collect::<Result<_>>()?;
        comparison.rows.push(Compared { found, total, ops_saved_network, changed, arrays });
    }
    Ok(comparison)
}

fn thresholds(study: &Study<'_>, samples: Option<&Samples>, rule: Rule, encoding: Encoding) -> Result<Option<Vec<Thresholds>>> {
    match samples {
        Some(samples) if rule.is_calibrated() => study.thresholds(samples, encoding, rule),
        _ => Ok(None),
    }
}

/// The rule with the number that kills about `mass` of the mass of positive outputs on some images of the tuning split.
fn of_mass(study: &Study<'_>, samples: Option<&Samples>, rule: Rule, encoding: Encoding, mass: f64, work: &Work<'_>) -> Result<Rule> {
    let tune = &study.split().tune;
    let range = tune.start..tune.end.min(tune.start + MASS_IMAGES);
    let with = |number: f64| match rule {
        Rule::R1 { .. } => Rule::R1 { z: number },
        Rule::R2 { .. } => Rule::R2 { budget: number },
        Rule::R3 { .. } => Rule::R3 { z: number },
        exact => exact,
    };
    // Larger budgets kill more, more standard deviations less.
    let is_budget = matches!(rule, Rule::R2 { .. });
    let (mut gentle, mut harsh) = if is_budget { (mass / 50.0, 1f64.min(20.0 * mass)) } else { (12.0, 0.0) };
    for trial in 0..MASS_TRIALS {
        let number = if is_budget { (gentle * harsh).sqrt() } else { (gentle + harsh) / 2.0 };
        let rule = with(number);
        let wanted = Wanted { encoding, rule, thresholds: thresholds(study, samples, rule, encoding)?, audit: true, lanes: Vec::new() };
        let found = study.simulate(wanted, &range, &format!("{} with {encoding}, number {}", rule.name(), trial + 1), work)?;
        if found.total().killed_mass() > mass { harsh = number } else { gentle = number }
    }
    Ok(with(if is_budget { (gentle * harsh).sqrt() } else { (gentle + harsh) / 2.0 }))
}
