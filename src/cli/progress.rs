//! Progress bars on standard error; none where it is no terminal.

use super::options::Options;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::{Mutex, PoisonError};
use sublane::progress::Progress;

/// One bar at a time, for the part that is going on.
pub(super) struct Bars {
    quiet: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Bars {
    /// Bars as the options ask for.
    pub(super) fn new(options: &Options) -> Self {
        Bars { quiet: options.quiet, bar: Mutex::default() }
    }

    fn with(&self, change: impl FnOnce(&mut Option<ProgressBar>)) {
        change(&mut self.bar.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Progress for Bars {
    fn begin(&self, what: &str, total: u64) {
        let target = if self.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        // A part whose steps nobody can count has no bar.
        let template = if total == 0 { "{msg} {spinner} {elapsed}" } else { "{msg} [{bar:30}] {pos}/{len} {eta}" };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(total), target).with_style(style).with_message(what.to_string());
        self.with(|current| *current = Some(bar));
    }

    fn advance(&self, steps: u64) {
        self.with(|current| {
            current.iter().for_each(|bar| {
                bar.inc(steps);
                bar.tick();
            });
        });
    }

    fn end(&self) {
        self.with(|current| current.take().iter().for_each(ProgressBar::finish_and_clear));
    }
}
