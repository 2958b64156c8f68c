//! The device as the tuner sees it.

use std::time::{Duration, Instant};

use crate::compiler::tune::{Loaded, Runner};
use crate::device::{Device, Executor};
use crate::error::Result;
use crate::plan::{ExecutionPlan, SlotId};

impl Runner for Device {
    fn load(&self, plan: &ExecutionPlan) -> Result<Box<dyn Loaded + '_>> {
        Ok(Box::new(Executor::load(self, plan)?))
    }
}

impl Loaded for Executor {
    fn write(&self, slot: SlotId, bytes: &[u8]) -> Result<()> {
        Executor::write(self, slot, bytes)
    }

    fn run(&self, output: SlotId) -> Result<Vec<u8>> {
        Ok(Executor::run(self, &[], &[output])?.pop().unwrap_or_default())
    }

    fn time(&self, runs: usize) -> Result<Duration> {
        self.device().wait_idle()?;
        let start = Instant::now();
        for _ in 0..runs {
            self.enqueue(&[])?;
        }
        self.device().wait_idle()?;
        Ok(start.elapsed() / runs.max(1) as u32)
    }
}
