//! Estimates from replicates, and sums over whole ranges of paths.
//!
//! A replicate cuts the path numbers into strata of equal width and draws one number uniformly in each; width times the sum of what is
//! counted around the paths drawn has the exact number of matches as its mean. The 32 replicates are independent, so their spread gives the
//! error. Only integers are kept of each, so that replicates from several machines add up to what one machine finds, bit for bit.

use std::ops::Range;

use kernels_gen::threefry::Key;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::error::{Error, Result};
use crate::motifs::paths::{Draws, Numbered, Strata, Tally};
use crate::progress::Work;

/// Number of independent replicates of an estimate.
pub const NUM_REPLICATES: u32 = 32;
/// Fewer non-zero samples than this say little about their spread.
pub const FEW_NONZERO: u64 = 100;

/// What draws are for. Each purpose has a stream of the seed of its own, so that no two share a random number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::motifs) enum Purpose {
    /// Replicates: stream 0, then the replicate.
    Estimate,
    /// Pilots: stream 1, then the stage of planning, the anchor's place in the list of anchors, and the round.
    Pilot { stage: u64, anchor: u64, round: u64 },
    /// Replicates of rounds towards an error: stream 2, then the round and the replicate.
    Round(u64),
}

impl Purpose {
    /// The key that is drawn from (a pilot), or whose streams are (the others).
    fn key(self, seed: u64) -> Key {
        let root = Key::new(seed);
        match self {
            Purpose::Estimate => root.stream(0),
            Purpose::Pilot { stage, anchor, round } => root.stream(1).stream(stage).stream(anchor).stream(round),
            Purpose::Round(round) => root.stream(2).stream(round),
        }
    }
}

/// Strata of a replicate: their width, and how many hold a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::motifs) struct Layout {
    pub width: u64,
    pub strata: u64,
}

impl Layout {
    /// At most `samples` strata, at least one, over `total` paths.
    pub fn new(total: u64, samples: u64) -> Self {
        let width = total.div_ceil(samples.max(1)).max(1);
        Layout { width, strata: total.div_ceil(width) }
    }

    /// Draws of a pilot.
    pub fn pilot(self, seed: u64, stage: u64, anchor: u64, round: u64) -> Draws {
        let key = Purpose::Pilot { stage, anchor, round }.key(seed);
        Draws { strata: Strata { width: self.width, key }, range: 0..self.strata }
    }
}

/// The sums of one replicate, or of a range of paths that were all counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replicate {
    /// Its number, from 0.
    pub index: u32,
    /// Path numbers in a stratum; 1 where every path was counted.
    pub width: u64,
    /// Number of strata, one draw each.
    pub strata: u64,
    /// Sum of what was counted around the paths drawn, at most 2^64 - 1.
    pub sum: u64,
    /// Sum of the squares, at most 2^128 - 1.
    pub squares: u128,
    /// Placements that are in order, within delta and on distinct vertices.
    pub valid: u64,
    /// Placements with a match.
    pub nonzero: u64,
    /// Whether a sum was beyond its range.
    pub saturated: bool,
}

impl Replicate {
    fn new(index: u32, layout: Layout, tally: Tally) -> Self {
        let Tally { sum, squares, valid, nonzero, saturated } = tally;
        Replicate { index, width: layout.width, strata: layout.strata, sum, squares, valid, nonzero, saturated }
    }

    /// The sums over both.
    pub(in crate::motifs) fn with(&self, other: &Replicate) -> Replicate {
        let layout = Layout { width: self.width, strata: self.strata + other.strata };
        Replicate::new(self.index, layout, self.tally().merged(other.tally()))
    }

    fn tally(&self) -> Tally {
        Tally { sum: self.sum, squares: self.squares, valid: self.valid, nonzero: self.nonzero, saturated: self.saturated }
    }
}

/// A part of the work: shard `index` of `of`, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shard {
    /// Which, from 1.
    pub index: u32,
    /// Of how many, at most [`NUM_REPLICATES`].
    pub of: u32,
}

impl Shard {
    /// Shard `index` of `of`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) unless 1 <= index <= of <= [`NUM_REPLICATES`].
    pub fn new(index: u32, of: u32) -> Result<Self> {
        if (1..=NUM_REPLICATES).contains(&of) && (1..=of).contains(&index) {
            return Ok(Shard { index, of });
        }
        Err(Error::invalid(format!(
            "`{index}/{of}` is no shard; a shard is i/n with n at most {NUM_REPLICATES} and i from 1 to n, such as 2/4"
        )))
    }

    /// The replicates it makes.
    fn replicates(self) -> impl Iterator<Item = u32> {
        (0..NUM_REPLICATES).filter(move |r| r % self.of == self.index - 1)
    }

    /// The path numbers it counts of `total`.
    fn paths(self, total: u64) -> Range<u64> {
        let cut = |i: u32| (u128::from(total) * u128::from(i) / u128::from(self.of)) as u64;
        cut(self.index - 1)..cut(self.index)
    }
}

impl std::str::FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split_once('/').and_then(|(i, n)| Some((i.trim().parse().ok()?, n.trim().parse().ok()?)));
        match numbers {
            Some((index, of)) => Shard::new(index, of),
            None => Err(Error::invalid(format!("`{text}` is no shard; a shard is i/n, such as 2/4"))),
        }
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// The draws of the replicates of one shard, or of all.
pub(in crate::motifs) fn replicates(
    seed: u64,
    purpose: Purpose,
    layout: Layout,
    shard: Option<Shard>,
) -> impl Iterator<Item = (u32, Draws)> {
    let key = purpose.key(seed);
    let strata = move |r: u32| Strata { width: layout.width, key: key.stream(r.into()) };
    shard.unwrap_or(Shard { index: 1, of: 1 }).replicates().map(move |r| (r, Draws { strata: strata(r), range: 0..layout.strata }))
}

/// Draws the replicates of an estimate with about `samples` draws in all, or those of one shard.
pub(in crate::motifs) fn sample(
    paths: &dyn Numbered,
    samples: u64,
    seed: u64,
    purpose: Purpose,
    shard: Option<Shard>,
    work: &Work,
) -> Result<Vec<Replicate>> {
    let layout = Layout::new(paths.total(), samples / u64::from(NUM_REPLICATES));
    let (indices, draws): (Vec<u32>, Vec<Draws>) = replicates(seed, purpose, layout, shard).unzip();
    let part = work.part("sampling", layout.strata.saturating_mul(indices.len() as u64));
    let tallies = paths.tallies(&draws, &part)?;
    Ok(indices.iter().zip(tallies).map(|(&index, tally)| Replicate::new(index, layout, tally)).collect())
}

/// Counts around every path, or every path of one shard.
pub(in crate::motifs) fn enumerate(paths: &dyn Numbered, shard: Option<Shard>, work: &Work) -> Result<Replicate> {
    let shard = shard.unwrap_or(Shard { index: 1, of: 1 });
    let range = shard.paths(paths.total());
    let layout = Layout { width: 1, strata: range.end - range.start };
    let part = work.part("counting", layout.strata);
    // No random number is used where strata are single paths.
    let draws = Draws { strata: Strata { width: 1, key: Key::new(0) }, range };
    let tallies = paths.tallies(&[draws], &part)?;
    Ok(Replicate::new(shard.index - 1, layout, tallies.into_iter().next().unwrap_or_default()))
}

/// What replicates say of the number of matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Mean of the replicates' estimates.
    pub estimate: f64,
    /// Its standard error; `None` from a single replicate, past the range of sums, and where no draw of many paths had a match: nothing is
    /// known of it then.
    pub std_error: Option<f64>,
    /// The interval of Student's t that holds the number in 95 % of runs, cut at 0.
    pub ci95: Option<[f64; 2]>,
    /// Paths drawn.
    pub samples: u64,
    /// Of which in order, within delta and on distinct vertices.
    pub valid: u64,
    /// Of which with a match.
    pub nonzero: u64,
    /// Relative deviation of one independent draw; `None` where no draw had a match.
    pub r1: Option<f64>,
    /// Whether a sum was beyond its range: the number is larger than the estimate says.
    pub saturated: bool,
}

impl Summary {
    /// The summary of replicates of one layout over `total` paths.
    pub fn new(total: u64, replicates: &[Replicate]) -> Self {
        let count = replicates.len();
        let sum: u128 = replicates.iter().map(|r| u128::from(r.sum)).sum();
        let width = replicates.first().map_or(1, |r| r.width);
        // Exact up to the division where 128 bits hold it.
        let scaled = match sum.checked_mul(width.into()) {
            Some(scaled) => scaled as f64,
            None => sum as f64 * width as f64,
        };
        let estimate = if count == 0 { 0.0 } else { scaled / count as f64 };
        let all = replicates.iter().fold(Tally::default(), |all, r| all.merged(r.tally()));
        // Without a match there is no spread to measure, unless every path was looked at.
        let is_known = !all.saturated && (all.nonzero > 0 || width == 1 || total == 0);
        let std_error = (count > 1 && is_known).then(|| {
            // Deviations from the mean, times the number of replicates: integers.
            let deviation = |r: &Replicate| (u128::from(r.sum) * count as u128).abs_diff(sum) as f64 / count as f64;
            let variance = replicates.iter().map(|r| deviation(r).powi(2)).sum::<f64>() / (count - 1) as f64;
            width as f64 * (variance / count as f64).sqrt()
        });
        let ci95 = std_error.map(|error| {
            let half = student_t(count - 1) * error;
            [(estimate - half).max(0.0), estimate + half]
        });
        let samples = replicates.iter().map(|r| r.strata).sum();
        // The strata of each replicate stand for all paths.
        let draws = total as f64 / width as f64 * count as f64;
        let r1 = relative_deviation(draws, sum as f64, all.squares).filter(|_| !all.saturated);
        Summary { estimate, std_error, ci95, samples, valid: all.valid, nonzero: all.nonzero, r1, saturated: all.saturated }
    }

    /// Standard error as a part of the estimate; `None` where that means nothing.
    pub fn relative_error(&self) -> Option<f64> {
        self.std_error.filter(|_| self.estimate > 0.0).map(|error| error / self.estimate)
    }
}

/// sqrt(N sum X^2 / (sum X)^2 - 1) of N draws; `None` without a match.
pub(in crate::motifs) fn relative_deviation(draws: f64, sum: f64, squares: u128) -> Option<f64> {
    (sum > 0.0).then(|| (draws * squares as f64 / (sum * sum) - 1.0).max(0.0).sqrt())
}

/// The 97.5 % quantile of Student's t.
fn student_t(degrees: usize) -> f64 {
    // A distribution with at least one degree of freedom exists.
    StudentsT::new(0.0, 1.0, degrees.max(1) as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replicate(index: u32, sum: u64, squares: u128) -> Replicate {
        Replicate { index, width: 10, strata: 5, sum, squares, valid: 3, nonzero: 2, saturated: false }
    }

    #[test]
    fn quantiles_of_students_t_are_those_of_tables() {
        for (degrees, expected) in [(1, 12.7062), (7, 2.3646), (31, 2.0395)] {
            assert!((student_t(degrees) - expected).abs() < 1e-4, "{degrees}: {}", student_t(degrees));
        }
    }

    #[test]
    fn a_summary_is_the_mean_with_the_spread_of_the_replicates() {
        let summary = Summary::new(50, &[replicate(0, 1, 1), replicate(1, 3, 5), replicate(2, 2, 2), replicate(3, 2, 4)]);
        assert_eq!((summary.estimate, summary.samples, summary.valid, summary.nonzero), (20.0, 20, 12, 8));
        let error = (200.0f64 / 3.0 / 4.0).sqrt();
        assert!((summary.std_error.expect("four") - error).abs() < 1e-12);
        let [low, high] = summary.ci95.expect("four");
        assert!((high - 20.0 - 3.182_446 * error).abs() < 1e-4 && (low + high - 40.0).abs() < 1e-9);
        // 20 draws, sum 8, squares 12.
        assert!((summary.r1.expect("matches") - (20.0 * 12.0 / 64.0 - 1.0f64).sqrt()).abs() < 1e-12);
        assert!((summary.relative_error().expect("positive") - error / 20.0).abs() < 1e-12);
    }

    #[test]
    fn an_interval_ends_at_zero_and_one_replicate_has_none() {
        let summary = Summary::new(50, &[replicate(0, 0, 0), replicate(1, 2, 4)]);
        assert_eq!(summary.ci95.expect("two")[0], 0.0);
        let single = Summary::new(50, &[replicate(0, 2, 4)]);
        assert_eq!((single.estimate, single.std_error, single.ci95), (20.0, None, None));
        let empty = [0, 1].map(|index| Replicate { nonzero: 0, ..replicate(index, 0, 0) });
        let nothing = Summary::new(50, &empty);
        assert_eq!((nothing.estimate, nothing.std_error, nothing.ci95, nothing.r1), (0.0, None, None, None));
        let none = Summary::new(0, &empty);
        assert_eq!((none.estimate, none.std_error, none.ci95), (0.0, Some(0.0), Some([0.0, 0.0])));
    }

    #[test]
    fn sums_past_128_bits_are_still_summed() {
        let huge = Replicate { width: u64::MAX, sum: u64::MAX, squares: u128::MAX, saturated: true, ..replicate(0, 0, 0) };
        let summary = Summary::new(u64::MAX, &[huge; 3]);
        assert!((summary.estimate / 2f64.powi(128) - 1.0).abs() < 1e-12 && summary.saturated);
        assert_eq!((summary.std_error, summary.ci95, summary.r1), (None, None, None));
    }

    #[test]
    fn strata_cover_all_paths_and_there_is_at_least_one() {
        for (total, samples, width, strata) in
            [(100, 10, 10, 10), (101, 10, 11, 10), (100, 60, 2, 50), (5, 100, 1, 5), (7, 0, 7, 1), (0, 9, 1, 0)]
        {
            assert_eq!(Layout::new(total, samples), Layout { width, strata }, "{total} {samples}");
        }
        assert_eq!(Layout::new(u64::MAX, 2), Layout { width: 1 << 63, strata: 2 });
    }

    #[test]
    fn shards_split_replicates_and_paths_without_gaps() {
        for of in 1..=NUM_REPLICATES {
            let shards: Vec<Shard> = (1..=of).map(|i| Shard::new(i, of).expect("legal")).collect();
            let mut all: Vec<u32> = shards.iter().flat_map(|s| s.replicates()).collect();
            all.sort_unstable();
            assert_eq!(all, (0..NUM_REPLICATES).collect::<Vec<_>>());
            for total in [0, 5, 1000, u64::MAX] {
                let ends = shards.iter().fold(0, |at, shard| {
                    assert_eq!(shard.paths(total).start, at);
                    shard.paths(total).end
                });
                assert_eq!(ends, total);
            }
        }
        for wrong in ["0/4", "5/4", "1/33", "1", "a/b", "1/0", "-1/3"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
        assert_eq!("2/4".parse::<Shard>().expect("legal").to_string(), "2/4");
    }
}
