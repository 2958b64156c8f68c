//! Progress of long work and its cancellation.
//!
//! A call that may take over a second takes a [`Work`]: it says how far it is, and asks between steps whether to go on.

use crate::error::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Hears how far long work is.
pub trait Progress: Send + Sync {
    /// A part begins that has `total` steps, 0 where they cannot be counted.
    fn begin(&self, what: &str, total: u64);
    /// `steps` more steps of the part are done.
    fn advance(&self, steps: u64);
    /// The part is over.
    fn end(&self);
}

/// Hears nothing.
impl Progress for () {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn end(&self) {}
}

/// A token that any thread may use to stop the work it was handed to. Clones are the same token.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A token that nobody has used.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// [`ErrorKind::Cancelled`] if the work was asked to stop.
    pub fn check(&self) -> Result<()> {
        match self.is_cancelled() {
            true => Err(Error::new(ErrorKind::Cancelled, "the work was cancelled; what was written before stays")),
            false => Ok(()),
        }
    }
}

/// Whom long work tells of its progress, and who may stop it.
#[derive(Clone)]
pub struct Work<'a> {
    progress: &'a dyn Progress,
    cancel: Cancel,
}

impl<'a> Work<'a> {
    /// Work that tells `progress` and heeds `cancel`.
    pub fn new(progress: &'a dyn Progress, cancel: Cancel) -> Self {
        Work { progress, cancel }
    }

    /// Work that nobody watches and nobody stops.
    pub fn quiet() -> Work<'static> {
        Work { progress: &(), cancel: Cancel::new() }
    }

    /// The token that stops the work.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Begins a part of `total` steps, which ends when the returned guard is dropped.
    pub fn part(&self, what: &str, total: u64) -> Part<'_> {
        self.progress.begin(what, total);
        Part { work: self }
    }
}

/// A part of some [`Work`] that is going on.
pub struct Part<'a> {
    work: &'a Work<'a>,
}

impl Part<'_> {
    /// Counts `steps` as done, then fails with [`ErrorKind::Cancelled`] if the work was asked to stop.
    pub fn advance(&self, steps: u64) -> Result<()> {
        self.work.progress.advance(steps);
        self.work.cancel.check()
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.work.progress.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl Log {
        fn push(&self, line: String) {
            self.0.lock().expect("no other panic").push(line);
        }
    }

    impl Progress for Log {
        fn begin(&self, what: &str, total: u64) {
            self.push(format!("{what} of {total}"));
        }
        fn advance(&self, steps: u64) {
            self.push(format!("+{steps}"));
        }
        fn end(&self) {
            self.push("end".into());
        }
    }

    #[test]
    fn a_cancelled_part_stops_at_its_next_step_and_still_ends() {
        let log = Log::default();
        let work = Work::new(&log, Cancel::new());
        let run = || -> Result<()> {
            let part = work.part("tiles", 3);
            for step in 0..3 {
                if step == 1 {
                    work.cancel().clone().cancel();
                }
                part.advance(1)?;
            }
            Ok(())
        };
        assert_eq!(run().expect_err("cancelled").kind(), ErrorKind::Cancelled);
        assert_eq!(*log.0.lock().expect("no other panic"), ["tiles of 3", "+1", "+1", "end"]);
    }
}
