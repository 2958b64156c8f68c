//! Times of runs, taken in turns.

use std::time::Instant;

use crate::device::Executor;
use crate::error::Result;
use crate::progress::Part;
use crate::stats::median;

/// Shortest sample: below it the clock and the submission would be measured.
const SAMPLE_MS: f64 = 20.0;
/// Most runs of a sample; fewer than an executor queues, so that none waits for another sample's.
const MAX_RUNS: usize = 32;
/// What each subject may take in all, in milliseconds; the fewest rounds are run even if they take longer.
const LONG_MS: f64 = 4000.0;
/// The same for quick measurements.
const QUICK_MS: f64 = 500.0;
/// Fewest and most rounds.
const ROUNDS: [usize; 2] = [3, 25];

/// Samples of several subjects, in milliseconds a run: `samples[subject][round]`.
pub(super) struct Samples(Vec<Vec<f64>>);

impl Samples {
    /// Median time of a subject.
    pub(super) fn median_ms(&self, subject: usize) -> f64 {
        median(&self.0[subject])
    }

    /// How many times as fast as `other` a subject is: the median of the ratios of each round.
    pub(super) fn ratio(&self, subject: usize, other: usize) -> f64 {
        let ratios: Vec<f64> = self.0[other].iter().zip(&self.0[subject]).map(|(o, s)| o / s).collect();
        median(&ratios)
    }
}

/// Runs each executor in turns, A B A B. The inputs lie on the device already and nothing is read back: a sample is some submissions of
/// the whole plan and the wait for the last.
pub(super) fn in_turns(subjects: &[&Executor], quick: bool, part: &Part<'_>) -> Result<Samples> {
    let mut runs = Vec::with_capacity(subjects.len());
    let mut longest = 0.0f64;
    for executor in subjects {
        // The first dispatch compiles, the second finds caches filled.
        sample(executor, 1)?;
        let once = sample(executor, 1)?;
        let count = ((SAMPLE_MS / once).ceil() as usize).clamp(1, MAX_RUNS);
        longest = longest.max(once * count as f64);
        runs.push(count);
        part.advance(0)?;
    }
    let budget = if quick { QUICK_MS } else { LONG_MS };
    let rounds = ((budget / longest) as usize).clamp(ROUNDS[0], ROUNDS[1]);
    let mut samples = vec![Vec::with_capacity(rounds); subjects.len()];
    for _ in 0..rounds {
        for ((executor, &runs), samples) in subjects.iter().zip(&runs).zip(&mut samples) {
            samples.push(sample(executor, runs)? / runs as f64);
            part.advance(0)?;
        }
    }
    Ok(Samples(samples))
}

/// Milliseconds of `runs` runs.
fn sample(executor: &Executor, runs: usize) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..runs {
        executor.enqueue(&[])?;
    }
    executor.device().wait_idle()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn a_ratio_above_one_is_faster() {
        let samples = Samples(vec![vec![1.0, 2.0, 50.0], vec![2.0, 4.0, 100.0]]);
        assert_eq!((samples.ratio(0, 1), samples.ratio(1, 0), samples.median_ms(1)), (2.0, 0.5, 4.0));
    }
}
