//! Device memory: the budget, buffers, tensors.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kernels_gen::DType;

use crate::device::Device;
use crate::device::readback::{Pending, ReadBack};
use crate::error::{Error, ErrorKind, Result};
use crate::tensor::{HostTensor, num_elems};

/// Bytes of device memory in use, and how many may be.
#[derive(Debug)]
pub(super) struct Budget {
    used_bytes: AtomicU64,
    limit_bytes: Option<u64>,
}

impl Budget {
    pub(super) fn new(limit_bytes: Option<u64>) -> Self {
        Budget { used_bytes: AtomicU64::new(0), limit_bytes }
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn limit_bytes(&self) -> Option<u64> {
        self.limit_bytes
    }

    fn reserve(self: &Arc<Self>, label: &str, bytes: u64) -> Result<Reservation> {
        let limit = self.limit_bytes.unwrap_or(u64::MAX);
        let take = |used: u64| used.checked_add(bytes).filter(|&total| total <= limit);
        match self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(Reservation { budget: self.clone(), bytes }),
            Err(used) => Err(Error::new(
                ErrorKind::OutOfMemory,
                format!(
                    "`{label}` needs {bytes} bytes of device memory, {used} of {limit} are in use; drop tensors, take smaller sizes or \
                     raise the memory limit"
                ),
            )),
        }
    }
}

/// Bytes taken from a budget until it is dropped.
#[derive(Debug)]
struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A buffer on a device. Its size is rounded up to a multiple of 16 bytes, at least 16, so that kernels may read and write the last `vec4`
/// whole. One that Sublane made starts as zeros, and its memory goes back to the device's budget when the last handle is dropped.
#[derive(Debug)]
pub struct Buffer {
    raw: wgpu::Buffer,
    bytes: u64,
    /// `None` for a caller's own buffer, whose memory is not ours to count.
    _reservation: Option<Reservation>,
}

impl Buffer {
    /// Bytes that were asked for.
    pub fn num_bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that were allocated.
    pub fn allocated_bytes(&self) -> u64 {
        self.raw.size()
    }

    pub(super) fn of_caller(raw: wgpu::Buffer, bytes: u64) -> Self {
        Buffer { raw, bytes, _reservation: None }
    }

    pub(super) fn raw(&self) -> &wgpu::Buffer {
        &self.raw
    }
}

pub(super) const STORAGE: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

/// Bytes a buffer of `bytes` takes.
pub(super) fn rounded(bytes: u64) -> u64 {
    bytes.max(1).checked_next_multiple_of(16).unwrap_or(u64::MAX)
}

/// Bytes that may wait in staging memory for a submission; with more, they are submitted alone and waited for.
const MAX_STAGED_BYTES: usize = 16 << 20;

impl Device {
    /// A storage buffer of zeros.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`] past the adapter's largest buffer, [`ErrorKind::OutOfMemory`] past the memory limit or what the driver has.
    pub fn buffer(&self, label: &str, bytes: u64) -> Result<Arc<Buffer>> {
        self.buffer_with(label, bytes, STORAGE).map(Arc::new)
    }

    pub(super) fn buffer_with(&self, label: &str, bytes: u64, usage: wgpu::BufferUsages) -> Result<Buffer> {
        let (size, limit) = (rounded(bytes), self.shared.limits.max_buffer_size);
        if size > limit {
            return Err(Error::limit(format!(
                "`{label}` needs a buffer of {bytes} bytes, {} allows {limit}; split it or take smaller sizes",
                self.info().name
            )));
        }
        let reservation = self.shared.budget.reserve(label, size)?;
        let descriptor = wgpu::BufferDescriptor { label: Some(label), size, usage, mapped_at_creation: false };
        let raw = self
            .scoped(ErrorKind::Internal, &format!("allocating {size} bytes for `{label}`"), |device| device.create_buffer(&descriptor))?;
        Ok(Buffer { raw, bytes, _reservation: Some(reservation) })
    }

    /// Queues a write of `data` to the front of `buffer`; it lands before the next submission. `data` must fit.
    pub(super) fn write(&self, buffer: &Buffer, data: &[u8]) -> Result<()> {
        self.write_at(buffer, 0, data)
    }

    /// [`Device::write`] from byte `start` of the buffer on, a multiple of 4.
    pub(super) fn write_at(&self, buffer: &Buffer, start: u64, data: &[u8]) -> Result<()> {
        for (i, chunk) in data.chunks(MAX_STAGED_BYTES).enumerate() {
            let offset = start + (i * MAX_STAGED_BYTES) as u64;
            let whole = chunk.len() & !3;
            self.scoped(ErrorKind::Internal, "writing to the device", |_| {
                let queue = &self.shared.queue;
                queue.write_buffer(&buffer.raw, offset, &chunk[..whole]);
                if whole < chunk.len() {
                    let mut word = [0; 4];
                    word[..chunk.len() - whole].copy_from_slice(&chunk[whole..]);
                    queue.write_buffer(&buffer.raw, offset + whole as u64, &word);
                }
            })?;
            let staged = self.shared.staged_bytes.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
            if staged >= MAX_STAGED_BYTES {
                self.scoped(ErrorKind::Internal, "writing to the device", |_| self.submit(None))?;
                self.wait_idle()?;
            }
        }
        Ok(())
    }

    /// Submits commands, and with them all writes that wait.
    pub(super) fn submit(&self, encoder: Option<wgpu::CommandEncoder>) -> wgpu::SubmissionIndex {
        self.shared.staged_bytes.store(0, Ordering::Relaxed);
        self.shared.queue.submit(encoder.map(wgpu::CommandEncoder::finish))
    }
}

/// A dense row-major tensor in device memory: a cheap handle, whose memory is freed with the last one.
#[derive(Debug, Clone)]
pub struct DeviceTensor {
    device: Device,
    buffer: Arc<Buffer>,
    dtype: DType,
    shape: Arc<[usize]>,
}

impl DeviceTensor {
    /// Whether something else refers to the tensor's memory: another handle, or what uses it.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.buffer) > 1
    }

    /// A tensor of zeros.
    pub fn zeros(device: &Device, dtype: DType, shape: &[usize]) -> Result<Self> {
        let bytes = num_bytes(dtype, shape)?;
        let buffer = device.buffer("tensor", bytes)?;
        Ok(DeviceTensor { device: device.clone(), buffer, dtype, shape: shape.into() })
    }

    /// Copies a tensor from the host.
    pub fn upload(device: &Device, tensor: &HostTensor) -> Result<Self> {
        let uploaded = DeviceTensor::zeros(device, tensor.dtype(), tensor.shape())?;
        device.write(&uploaded.buffer, tensor.bytes())?;
        Ok(uploaded)
    }

    /// Copies elements from the host, piece after piece; the pieces have a multiple of four bytes and together fill the shape.
    pub(crate) fn from_pieces(device: &Device, dtype: DType, shape: &[usize], pieces: &[&[u8]]) -> Result<Self> {
        let tensor = DeviceTensor::zeros(device, dtype, shape)?;
        let given: usize = pieces.iter().map(|piece| piece.len()).sum();
        if given as u64 != tensor.num_bytes() || pieces.iter().any(|piece| piece.len() % 4 != 0) {
            return Err(Error::internal(format!("pieces of {given} bytes for {dtype}{shape:?}")));
        }
        let mut start = 0;
        for piece in pieces {
            device.write_at(&tensor.buffer, start, piece)?;
            start += piece.len() as u64;
        }
        Ok(tensor)
    }

    /// A tensor over a buffer that is at least as large.
    pub(super) fn over(device: &Device, buffer: Arc<Buffer>, dtype: DType, shape: &[usize]) -> Result<Self> {
        let bytes = num_bytes(dtype, shape)?;
        if bytes > buffer.allocated_bytes() {
            return Err(Error::invalid(format!("{dtype}{shape:?} has {bytes} bytes, the buffer has {}", buffer.allocated_bytes())));
        }
        Ok(DeviceTensor { device: device.clone(), buffer, dtype, shape: shape.into() })
    }

    /// The same memory under another shape of the same size.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        if num_elems(shape)? != self.num_elems() {
            return Err(Error::invalid(format!("cannot reshape {:?} to {shape:?}", self.shape)));
        }
        Ok(DeviceTensor { shape: shape.into(), ..self.clone() })
    }

    /// Copies the tensor to the host and waits for it.
    pub fn read(&self) -> Result<HostTensor> {
        self.host(self.start_read()?.wait()?)
    }

    /// [`DeviceTensor::read`] for any executor; dropping the future is safe.
    pub async fn read_async(&self) -> Result<HostTensor> {
        self.host(self.start_read()?.await?)
    }

    fn start_read(&self) -> Result<Pending> {
        ReadBack::new(&self.device, &[(self.buffer.clone(), self.num_bytes())])?.submit()
    }

    fn host(&self, mut parts: Vec<Vec<u8>>) -> Result<HostTensor> {
        HostTensor::from_bytes(self.dtype, self.shape.to_vec(), &parts.pop().unwrap_or_default())
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn num_elems(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of the elements.
    pub fn num_bytes(&self) -> u64 {
        (self.num_elems() * self.dtype.size_bytes()) as u64
    }

    /// Whether both lie in the same memory.
    pub fn is_over(&self, other: &DeviceTensor) -> bool {
        self.buffer.raw() == other.buffer.raw()
    }

    /// The buffer it lies in.
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }

    /// The device it lies on.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

pub(super) fn num_bytes(dtype: DType, shape: &[usize]) -> Result<u64> {
    let bytes = (num_elems(shape)? as u64).checked_mul(dtype.size_bytes() as u64).filter(|&bytes| bytes <= isize::MAX as u64);
    bytes.ok_or_else(|| Error::limit(format!("{dtype}{shape:?} has more bytes than can be addressed")))
}
