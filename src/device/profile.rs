//! Times of the commands of a plan.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use crate::device::commands::{State, Step};
use crate::device::executor::Executor;
use crate::device::readback::ReadBack;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::SlotId;

/// What a time was taken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Timestamps of the GPU, around each dispatch.
    Timestamps,
    /// The host's clock around a submission that is waited for; its cost is part of the time.
    Host,
}

impl Clock {
    /// Name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Timestamps => "timestamps",
            Clock::Host => "host",
        }
    }
}

/// Time of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CommandTime {
    /// Its place in the plan.
    pub command: usize,
    /// Nanoseconds.
    pub ns: u64,
}

/// Times of one run, in the order of the commands. Timestamps cover dispatches; the host's clock covers copies and clears too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// The clock.
    pub clock: Clock,
    /// The times; commands that launch nothing are left out.
    pub commands: Vec<CommandTime>,
}

/// Dispatches measured with one query set, which holds at most 4,096 queries.
const DISPATCHES_PER_SET: usize = wgpu::QUERY_SET_MAX_QUERIES as usize / 2;

impl Executor {
    /// Runs the plan once, as [`Executor::run`] does, and measures each command. Slower than a run: every dispatch is a pass of its own.
    pub fn profile(&self, inputs: &[(SlotId, &[u8])]) -> Result<Profile> {
        let clock = self.device().info().clock;
        let commands = self.with_inputs(&[], inputs, |state| match clock {
            Clock::Timestamps => self.with_timestamps(state),
            Clock::Host => self.with_host_clock(state),
        })?;
        Ok(Profile { clock, commands })
    }

    fn with_timestamps(&self, state: &State) -> Result<Vec<CommandTime>> {
        let device = self.device();
        let raw = &device.shared.device;
        let mut times = Vec::new();
        // Cut the steps where a query set is full.
        let steps: Vec<&Step> = state.steps.iter().filter(|step| step.work.launches()).collect();
        let mut rest: &[&Step] = &steps;
        while !rest.is_empty() {
            let dispatches = rest.iter().enumerate().filter(|(_, step)| step.work.is_dispatch());
            let end = dispatches.clone().nth(DISPATCHES_PER_SET).map_or(rest.len(), |(at, _)| at);
            let (steps, after) = rest.split_at(end);
            rest = after;
            let measured: Vec<usize> = steps.iter().filter(|s| s.work.is_dispatch()).map(|s| s.command).collect();
            let count = (measured.len() as u32 * 2).max(2);
            let bytes = u64::from(count) * u64::from(wgpu::QUERY_SIZE);
            let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
            let resolved = Arc::new(device.buffer_with("timestamps", bytes, usage)?);
            let read_back = ReadBack::new(device, &[(resolved.clone(), bytes)])?;
            let index = device.scoped(ErrorKind::Internal, "measuring a plan", |_| {
                let set =
                    raw.create_query_set(&wgpu::QuerySetDescriptor { label: Some("timestamps"), ty: wgpu::QueryType::Timestamp, count });
                let mut encoder = raw.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("profile") });
                let mut query = 0;
                for &step in steps {
                    let writes = step.work.is_dispatch().then(|| wgpu::ComputePassTimestampWrites {
                        query_set: &set,
                        beginning_of_pass_write_index: Some(query),
                        end_of_pass_write_index: Some(query + 1),
                    });
                    query += 2 * u32::from(writes.is_some());
                    state.encode(&mut encoder, std::slice::from_ref(step), writes);
                }
                if query > 0 {
                    encoder.resolve_query_set(&set, 0..query, resolved.raw(), 0);
                }
                read_back.encode(&mut encoder);
                device.submit(Some(encoder))
            })?;
            let ticks = read_back.pending(index)?.wait()?.pop().unwrap_or_default();
            let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&ticks);
            let period = f64::from(device.shared.queue.get_timestamp_period());
            for (command, pair) in measured.into_iter().zip(ticks.chunks_exact(2)) {
                times.push(CommandTime { command, ns: (pair[1].saturating_sub(pair[0]) as f64 * period) as u64 });
            }
        }
        Ok(times)
    }

    fn with_host_clock(&self, state: &State) -> Result<Vec<CommandTime>> {
        let device = self.device();
        device.wait_idle()?;
        let measure = |step: &Step| {
            let start = Instant::now();
            let index = device.scoped(ErrorKind::Internal, "measuring a plan", |raw| {
                let mut encoder = raw.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("profile") });
                state.encode(&mut encoder, std::slice::from_ref(step), None);
                device.submit(Some(encoder))
            })?;
            device.poll_until(index)?;
            let ns = u64::try_from(start.elapsed().as_nanos()).map_err(|_| Error::internal("a dispatch took centuries"))?;
            Ok(CommandTime { command: step.command, ns })
        };
        state.steps.iter().filter(|step| step.work.launches()).map(measure).collect()
    }
}
