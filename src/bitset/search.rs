//! The search for thresholds of R2: a budget of killed mass for all layers, bisected by accuracy on images of its own, then raised layer by layer.

use crate::bitset::account::Tally;
use crate::bitset::encoding::Encoding;
use crate::bitset::layer::Thresholds;
use crate::bitset::rule::Rule;
use crate::bitset::study::{Samples, Study, Wanted};
use crate::error::{Error, Result};
use crate::progress::Work;

/// Parts of the tuning split that a trial simulates one after the other.
const PARTS: usize = 5;

/// Part of the images that a trial can be hoped to gain on.
const LIKELY_GAIN: f64 = 0.004;

/// What is searched for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchOptions {
    /// The most accuracy that may be lost on the tuning split against the same network without stops, 0 to 1.
    pub max_loss: f64,
    /// Budget that the bisection begins with.
    pub start: f64,
    /// Simulations of the tuning split at most: two thirds bisect, the others refine.
    pub trials: usize,
}

impl Default for SearchOptions {
    fn default() -> Self {
        SearchOptions { max_loss: 0.0, start: 0.004, trials: 18 }
    }
}

/// One simulation of the tuning split.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The least and the largest budget of a layer.
    pub budgets: [f64; 2],
    /// Layers whose budget was raised above that of the others, in this trial or before.
    pub raised: usize,
    /// Images of the tuning split that were simulated: fewer than all where the loss was past hope.
    pub images: usize,
    /// Accuracy on them.
    pub accuracy: f64,
    /// Accuracy lost there.
    pub loss: f64,
    /// Operations saved there.
    pub ops_saved: f64,
    /// Whether the loss is allowed.
    pub is_kept: bool,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Budget of each integer layer.
    pub budgets: Vec<f64>,
    /// Thresholds that follow from them.
    pub thresholds: Vec<Thresholds>,
    /// The simulations, in order.
    pub trials: Vec<Trial>,
    /// Accuracy on the tuning split without stops.
    pub accuracy: f64,
}

struct Searcher<'a> {
    study: &'a Study<'a>,
    samples: &'a Samples,
    encoding: Encoding,
    options: SearchOptions,
    /// Classes without stops.
    plain: Vec<usize>,
    trials: Vec<Trial>,
}

/// Searches thresholds that lose at most `options.max_loss` on the tuning split.
///
/// # Errors
///
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a tuning split without images or without classes, and those of
/// [`Study::simulate`].
pub fn search(study: &Study<'_>, samples: &Samples, encoding: Encoding, options: SearchOptions, work: &Work<'_>) -> Result<Found> {
    let tune = &study.split().tune;
    if tune.is_empty() {
        return Err(Error::invalid("the search needs images of its own; give the split a range `tune`"));
    }
    let is_part = |value: f64| (0.0..=1.0).contains(&value);
    if !is_part(options.max_loss) || !is_part(options.start) || options.start == 0.0 {
        return Err(Error::invalid(format!(
            "a loss from 0 to 1 and a first budget above 0, at most 1, are allowed; given are {} and {}",
            options.max_loss, options.start
        )));
    }
    let plain = Wanted { encoding, rule: Rule::None, thresholds: None, audit: false, lanes: Vec::new() };
    let plain = study.simulate(plain, tune, "tuning, without stops", work)?;
    let base = plain.correct.ok_or_else(|| Error::invalid("the search needs the classes of its images; these images have none"))?;
    let mut searcher = Searcher { study, samples, encoding, options, plain: plain.predictions, trials: Vec::new() };
    let budgets = searcher.bisect(work)?;
    let budgets = searcher.refine(budgets, work)?;
    let thresholds = study.budgets(samples, encoding, &budgets)?;
    Ok(Found { budgets, thresholds, trials: searcher.trials, accuracy: base as f64 / tune.len() as f64 })
}

impl Searcher<'_> {
    /// Simulates budgets; says whether the loss is allowed.
    fn is_allowed(&mut self, budgets: &[f64], raised: usize, work: &Work<'_>) -> Result<bool> {
        let (study, tune) = (self.study, &self.study.split().tune);
        let thresholds = study.budgets(self.samples, self.encoding, budgets)?;
        let [least, most] = budgets.iter().fold([1.0f64, 0.0f64], |[least, most], &b| [least.min(b), most.max(b)]);
        let rule = Rule::R2 { budget: most };
        let wanted = Wanted { encoding: self.encoding, rule, thresholds: Some(thresholds), audit: false, lanes: Vec::new() };
        let what = format!("tuning, trial {} of at most {}", self.trials.len() + 1, self.options.trials);
        // Whole images, so that no rounding decides.
        let allowed = (self.options.max_loss * tune.len() as f64 + 1e-9).floor() as i64;
        let (mut seen, mut lost, mut correct, mut total) = (0, 0i64, 0, Tally::default());
        for part in tune.clone().step_by(tune.len().div_ceil(PARTS)) {
            let range = part..tune.end.min(part + tune.len().div_ceil(PARTS));
            let found = study.simulate(wanted.clone(), &range, &what, work)?;
            let predictions = &self.plain[part - tune.start..][..range.len()];
            let before = study.correct(part, predictions).unwrap_or(0);
            correct += found.correct.unwrap_or(0);
            lost += before as i64 - found.correct.unwrap_or(0) as i64;
            seen += range.len();
            total.add(&found.total());
            // What is left would have to gain what it does not.
            if lost - allowed > 1 + ((tune.len() - seen) as f64 * LIKELY_GAIN) as i64 {
                break;
            }
        }
        let of = |count: f64| count / seen.max(1) as f64;
        let (accuracy, loss, ops_saved, is_kept) = (of(correct as f64), of(lost as f64), total.ops_saved(), lost <= allowed);
        self.trials.push(Trial { budgets: [least, most], raised, images: seen, accuracy, loss, ops_saved, is_kept });
        Ok(is_kept)
    }

    /// The same budget for all layers, between one that is allowed and one that is not.
    fn bisect(&mut self, work: &Work<'_>) -> Result<Vec<f64>> {
        let layers = self.study.layers().len();
        let (mut allowed, mut refused): (f64, f64) = (0.0, f64::INFINITY);
        let mut budget = self.options.start;
        while self.trials.len() < (2 * self.options.trials).div_ceil(3) {
            if self.is_allowed(&vec![budget; layers], 0, work)? {
                allowed = budget
            } else {
                refused = budget
            }
            budget = match (allowed > 0.0, refused.is_finite()) {
                (true, true) => (allowed * refused).sqrt(),
                (true, false) => (4.0 * allowed).min(1.0),
                (false, _) => refused / 4.0,
            };
            let is_near = refused / allowed < 1.15;
            if is_near || allowed >= 1.0 || (allowed == 0.0 && budget < 1e-7) {
                break;
            }
        }
        Ok(vec![allowed; layers])
    }

    /// Raises the budgets of layers, those first that save the most operations for the mass they kill, as many at a time as the loss allows.
    fn refine(&mut self, mut budgets: Vec<f64>, work: &Work<'_>) -> Result<Vec<f64>> {
        let raised = |budget: f64| (2.0 * budget).clamp(1e-6, 1.0);
        let mut gains = Vec::with_capacity(budgets.len());
        for (at, (sums, layer)) in self.samples.of(self.encoding)?.iter().zip(self.study.layers()).enumerate() {
            let tally = |budget: f64| -> Result<Tally> {
                let thresholds = sums.thresholds(&layer.layer, self.encoding, budget)?;
                Ok(sums.tally(&layer.layer, self.encoding, &thresholds))
            };
            let (before, after) = (tally(budgets[at])?, tally(raised(budgets[at]))?);
            let saved = (after.ops_saved() - before.ops_saved()) * layer.layer.geometry.macs() as f64;
            gains.push((saved / (after.killed_mass() - before.killed_mass()).max(1e-9), at));
        }
        gains.sort_by(|a, b| b.0.total_cmp(&a.0));
        let order: Vec<usize> = gains.into_iter().map(|(_, at)| at).collect();
        let mut open: Vec<&[usize]> = vec![&order];
        let mut count = 0;
        while let Some(layers) = open.pop() {
            if self.trials.len() >= self.options.trials {
                break;
            }
            let mut tried = budgets.clone();
            layers.iter().for_each(|&at| tried[at] = raised(tried[at]));
            if self.is_allowed(&tried, count + layers.len(), work)? {
                budgets = tried;
                count += layers.len();
            } else if layers.len() > 1 {
                let (first, second) = layers.split_at(layers.len().div_ceil(2));
                open.extend([second, first]);
            }
        }
        Ok(budgets)
    }
}
