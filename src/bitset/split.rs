//! Images, and which of them are used for what.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::tensor::HostTensor;

/// Images as a network takes them.
pub trait Images: Sync {
    /// Number of images.
    fn count(&self) -> usize;

    /// Images `range` in f32, filled up with blank ones to `batch`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for images that there are not.
    fn batch(&self, range: Range<usize>, batch: usize) -> Result<HostTensor>;

    /// The class of an image, where it is known.
    fn label(&self, at: usize) -> Option<usize>;
}

/// Disjoint ranges of images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// For scales of activations, partial sums and statistics.
    pub calibrate: Range<usize>,
    /// For the choice of thresholds by accuracy; may be empty where nothing is chosen.
    pub tune: Range<usize>,
    /// For the figures that are reported, and nothing else.
    pub test: Range<usize>,
}

impl Split {
    /// The first tenth, the next two and the other seven of `count` images.
    pub fn usual(count: usize) -> Self {
        let first = count.div_ceil(10);
        let second = (first + count / 5).min(count);
        Split { calibrate: 0..first, tune: first..second, test: second..count }
    }

    /// Parses `calibrate:0-999,tune:1000-2999,test:3000-9999`, first and last image of each; `tune` may be left out.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for text that is no split; [`Split::check`] says what of its ranges is
    /// wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let usage = || Error::invalid(format!("`{text}` is no split; give calibrate:FIRST-LAST,tune:FIRST-LAST,test:FIRST-LAST"));
        let mut ranges: [Option<Range<usize>>; 3] = [None, None, None];
        for part in text.split(',') {
            let (name, range) = part.split_once(':').ok_or_else(usage)?;
            let at = ["calibrate", "tune", "test"].iter().position(|known| *known == name).ok_or_else(usage)?;
            let (first, last) = range.split_once('-').ok_or_else(usage)?;
            let (first, last): (usize, usize) = (first.parse().map_err(|_| usage())?, last.parse().map_err(|_| usage())?);
            if first > last || ranges[at].is_some() {
                return Err(usage());
            }
            ranges[at] = Some(first..last.saturating_add(1));
        }
        let [calibrate, tune, test] = ranges;
        let (calibrate, test) = (calibrate.ok_or_else(usage)?, test.ok_or_else(usage)?);
        Ok(Split { tune: tune.unwrap_or(calibrate.end..calibrate.end), calibrate, test })
    }

    /// Keeps the first `limit` images of the test split.
    pub fn limited(mut self, limit: Option<usize>) -> Self {
        self.test.end = self.test.end.min(self.test.start.saturating_add(limit.unwrap_or(usize::MAX)));
        self
    }

    /// Whether the ranges are disjoint, there, and not empty.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) naming the ranges.
    pub fn check(&self, count: usize) -> Result<()> {
        let ranges = [("calibrate", &self.calibrate), ("tune", &self.tune), ("test", &self.test)];
        for (at, (name, range)) in ranges.into_iter().enumerate() {
            if range.end > count {
                return Err(Error::invalid(format!("split {name}:{} needs {} images, there are {count}", shown(range), range.end)));
            }
            if range.is_empty() && name != "tune" {
                return Err(Error::invalid(format!("the split `{name}` has no image; give it at least 1 of the {count}")));
            }
            for (other, second) in &ranges[at + 1..] {
                if range.start.max(second.start) < range.end.min(second.end) {
                    return Err(Error::invalid(format!(
                        "splits {name}:{} and {other}:{} overlap; what is measured must not have been used before",
                        shown(range),
                        shown(second)
                    )));
                }
            }
        }
        Ok(())
    }
}

/// First and last of a range, as people write it.
pub fn shown(range: &Range<usize>) -> String {
    if range.is_empty() { "none".into() } else { format!("{}-{}", range.start, range.end - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_read_and_wrong_ones_named() {
        let usual = Split::usual(10_000);
        assert_eq!(Split::parse("calibrate:0-999,tune:1000-2999,test:3000-9999").expect("is right"), usual);
        usual.check(10_000).expect("disjoint");
        for count in [2, 3, 10, 17] {
            Split::usual(count).check(count).expect("disjoint");
        }
        for text in ["", "test:0-3", "calibrate:0-1,test:3-2", "calibrate:0-1,test:2", "calibrate:0-1,test:2-3,test:4-5", "a:0-1"] {
            assert!(Split::parse(text).is_err(), "{text}");
        }
        let fault = |text: &str, count: usize| Split::parse(text).expect("is one").check(count).expect_err("refused").to_string();
        assert!(fault("calibrate:0-9,test:9-12", 20).contains("overlap"));
        assert!(fault("calibrate:0-9,tune:5-6,test:10-12", 20).contains("tune:5-6"));
        assert!(fault("calibrate:0-9,test:10-20", 20).contains("there are 20"));
        assert!(Split { calibrate: 0..0, tune: 0..0, test: 0..1 }.check(1).expect_err("empty").to_string().contains("calibrate"));
        assert_eq!(usual.limited(Some(5)).test, 3_000..3_005);
    }
}
