//! Copies from the device to the host, and the one future everything that waits for a device is made of.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};

use futures::channel::oneshot;

use crate::device::Device;
use crate::device::fault::Faults;
use crate::device::memory::{Buffer, rounded};
use crate::error::{Error, ErrorKind, Result};

/// Staging buffers kept for the next read-back, so that a loop of runs allocates nothing. It holds as many as the largest read-back took.
#[derive(Debug, Default)]
pub(super) struct StagingPool(Mutex<Free>);

#[derive(Debug, Default)]
struct Free {
    buffers: Vec<Buffer>,
    most: usize,
}

impl StagingPool {
    fn free(&self) -> MutexGuard<'_, Free> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, size: u64) -> Option<Buffer> {
        let buffers = &mut self.free().buffers;
        buffers.iter().position(|buffer| buffer.allocated_bytes() == size).map(|at| buffers.remove(at))
    }

    fn put(&self, buffer: Buffer) {
        let mut free = self.free();
        if free.buffers.len() >= free.most.max(1) {
            free.buffers.remove(0);
        }
        free.buffers.push(buffer);
    }
}

/// One buffer to be read: where its bytes are copied to, and how many count.
#[derive(Debug)]
struct Part {
    from: Arc<Buffer>,
    /// `None` where there are no bytes.
    to: Option<Buffer>,
    bytes: u64,
}

/// Read-backs that are recorded at the end of a submission.
#[derive(Debug)]
pub(super) struct ReadBack {
    device: Device,
    pool: Weak<StagingPool>,
    parts: Vec<Part>,
}

impl ReadBack {
    /// Prepares to read the front of buffers.
    pub(super) fn new(device: &Device, buffers: &[(Arc<Buffer>, u64)]) -> Result<Self> {
        ReadBack::pooled(device, &Arc::default(), buffers)
    }

    /// [`ReadBack::new`] with staging buffers from a pool, to which they go back.
    pub(super) fn pooled(device: &Device, pool: &Arc<StagingPool>, buffers: &[(Arc<Buffer>, u64)]) -> Result<Self> {
        let stage = |(from, bytes): &(Arc<Buffer>, u64)| {
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            let to = match *bytes {
                0 => None,
                bytes => match pool.take(rounded(bytes)) {
                    Some(buffer) => Some(buffer),
                    None => Some(device.buffer_with("read-back", bytes, usage)?),
                },
            };
            Ok(Part { from: from.clone(), to, bytes: *bytes })
        };
        let parts: Vec<Part> = buffers.iter().map(stage).collect::<Result<_>>()?;
        let most = &mut pool.free().most;
        *most = parts.len().max(*most);
        Ok(ReadBack { device: device.clone(), pool: Arc::downgrade(pool), parts })
    }

    /// Records the copies.
    pub(super) fn encode(&self, encoder: &mut wgpu::CommandEncoder) {
        for part in &self.parts {
            if let Some(to) = &part.to {
                encoder.copy_buffer_to_buffer(part.from.raw(), 0, to.raw(), 0, rounded(part.bytes));
            }
        }
    }

    /// Submits the copies alone.
    pub(super) fn submit(self) -> Result<Pending> {
        let index = self.device.scoped(ErrorKind::Internal, "reading from the device", |device| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("read-back") });
            self.encode(&mut encoder);
            self.device.submit(Some(encoder))
        })?;
        self.pending(index)
    }

    /// Starts to map what the submission `index` copies.
    pub(super) fn pending(self, index: wgpu::SubmissionIndex) -> Result<Pending> {
        let device = self.device.clone();
        let map = |part: Part| {
            let Some(buffer) = part.to else { return Mapping { buffer: None, bytes: 0, mapped: None } };
            let (sender, mapped) = oneshot::channel();
            buffer.raw().map_async(wgpu::MapMode::Read, .., move |result| {
                let _ = sender.send(result);
            });
            Mapping { buffer: Some(buffer), bytes: part.bytes, mapped: Some(mapped) }
        };
        let mappings =
            device.scoped(ErrorKind::Internal, "reading from the device", |_| self.parts.into_iter().map(map).collect::<Vec<_>>())?;
        Ok(Pending { device, pool: self.pool, mappings, index })
    }
}

#[derive(Debug)]
struct Mapping {
    buffer: Option<Buffer>,
    bytes: u64,
    mapped: Option<oneshot::Receiver<Result<(), wgpu::BufferAsyncError>>>,
}

/// Work that was submitted, and the bytes it will bring back: wait for it, or await it on any executor. Dropping it is safe; the work
/// runs to its end and its bytes are thrown away.
#[derive(Debug)]
#[must_use = "the bytes are lost unless they are waited for"]
pub struct Pending {
    device: Device,
    pool: Weak<StagingPool>,
    mappings: Vec<Mapping>,
    index: wgpu::SubmissionIndex,
}

impl Pending {
    /// Blocks until the work is done and returns the bytes of each output.
    pub fn wait(self) -> Result<Vec<Vec<u8>>> {
        self.device.poll_until(self.index.clone())?;
        pollster::block_on(self.collect())
    }

    async fn finish(self) -> Result<Vec<Vec<u8>>> {
        self.device.poll_in_background(self.index.clone()).await?;
        self.collect().await
    }

    /// The bytes, once the work is done. Another thread that polls may have taken the callbacks of this one's buffers and be about to call them, so
    /// they are waited for.
    async fn collect(self) -> Result<Vec<Vec<u8>>> {
        let failed = |why: String| match self.device.check_alive() {
            Ok(()) => Error::internal(format!("reading from the device failed: {why}")),
            Err(lost) => lost,
        };
        let mut outputs = Vec::with_capacity(self.mappings.len());
        for mapping in self.mappings {
            let (Some(buffer), Some(mapped)) = (mapping.buffer, mapping.mapped) else {
                outputs.push(Vec::new());
                continue;
            };
            match mapped.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(failed(error.to_string())),
                Err(oneshot::Canceled) => return Err(failed("the copy did not finish".into())),
            }
            let view = buffer.raw().get_mapped_range(..).map_err(|error| failed(error.to_string()))?;
            outputs.push(view[..mapping.bytes as usize].to_vec());
            drop(view);
            buffer.raw().unmap();
            if let Some(pool) = self.pool.upgrade() {
                pool.put(buffer);
            }
        }
        Ok(outputs)
    }
}

impl IntoFuture for Pending {
    type Output = Result<Vec<Vec<u8>>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.finish())
    }
}

/// A submission some future waits for.
type Wait = (wgpu::SubmissionIndex, oneshot::Sender<Result<()>>);

/// The thread that polls a device for futures: started with the first of them, ended with the device.
#[derive(Debug, Default)]
pub(super) struct Poller(Mutex<Option<mpsc::Sender<Wait>>>);

impl Poller {
    fn send(&self, device: &wgpu::Device, faults: &Arc<Faults>, wait: Wait) -> Result<()> {
        let mut sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wait = wait;
        if let Some(running) = &*sender {
            match running.send(wait) {
                Ok(()) => return Ok(()),
                Err(mpsc::SendError(unsent)) => wait = unsent,
            }
        }
        let (to_thread, waits) = mpsc::channel::<Wait>();
        let (device, faults) = (device.clone(), faults.clone());
        let serve = move || {
            for (index, done) in waits {
                let _ = done.send(faults.poll(&device, wgpu::PollType::Wait { submission_index: Some(index), timeout: None }));
            }
        };
        let spawned = std::thread::Builder::new().name("sublane-poll".into()).spawn(serve);
        spawned
            .map_err(|error| Error::internal(format!("cannot start the thread that waits for the device: {error}")).with_source(error))?;
        let _ = to_thread.send(wait);
        *sender = Some(to_thread);
        Ok(())
    }
}

impl Device {
    /// Blocks until the submission `index` is done and its callbacks were called.
    pub(super) fn poll_until(&self, index: wgpu::SubmissionIndex) -> Result<()> {
        self.shared.faults.poll(&self.shared.device, wgpu::PollType::Wait { submission_index: Some(index), timeout: None })
    }

    /// Blocks until all submitted work is done.
    pub fn wait_idle(&self) -> Result<()> {
        self.shared.faults.poll(&self.shared.device, wgpu::PollType::wait_indefinitely())
    }

    pub(super) async fn poll_in_background(&self, index: wgpu::SubmissionIndex) -> Result<()> {
        let (sender, done) = oneshot::channel();
        self.shared.poller.send(&self.shared.device, &self.shared.faults, (index, sender))?;
        done.await.unwrap_or_else(|_| Err(Error::internal("the thread that waits for the device ended early")))
    }
}
