//! The [`Tensor`] that people compute with: data on a device, or a value recorded and not computed yet.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::capture::owner::Owner;
use crate::capture::trace::{Break, Recording};
use crate::device::{Device, DeviceTensor};
use crate::error::{Error, Result};
use crate::graph::{Op, TensorType};
use crate::ops::Value;
use crate::ops::prelude::*;
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// A device with what tensors outside compiled functions share: what they have recorded and not run, and the kernels for it. A cheap handle.
///
/// Such tensors are computed eagerly: one kernel for each operation, all that is recorded in one submission when a value is read.
#[derive(Clone)]
pub struct Context {
    device: Device,
    recording: Arc<Recording>,
}

impl Context {
    /// A context of its own on `device`.
    pub fn new(device: &Device) -> Self {
        Context { device: device.clone(), recording: Recording::eager(Owner::eager(device)) }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Copies a tensor to the device.
    pub fn tensor(&self, tensor: &HostTensor) -> Result<Tensor> {
        self.device_tensor(DeviceTensor::upload(&self.device, tensor)?)
    }

    /// A tensor over memory that lies on the device, without a copy.
    pub fn device_tensor(&self, tensor: DeviceTensor) -> Result<Tensor> {
        if tensor.device() != &self.device {
            return Err(Error::invalid("the tensor lies on another device than the context; open both on one device, or copy by the host"));
        }
        let data = Data::new(tensor, false);
        if data.tensor.is_shared() {
            data.shared.store(true, Ordering::Relaxed);
        }
        Ok(Tensor::of(Content::Data(data), self.recording.clone()))
    }

    /// Computes what is recorded, in one submission.
    #[track_caller]
    pub fn flush(&self) -> Result<()> {
        self.recording.flush(Some(Break { what: "flush", at: Location::caller() }), &[])
    }

    pub(super) fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }
}

impl From<&Device> for Context {
    fn from(device: &Device) -> Self {
        Context::new(device)
    }
}

impl From<&Context> for Context {
    fn from(context: &Context) -> Self {
        context.clone()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({:?})", self.device)
    }
}

/// Elements on the device that no one writes to.
#[derive(Debug)]
pub(super) struct Data {
    pub tensor: DeviceTensor,
    pub ty: Arc<TensorType>,
    /// Whether a result may take its memory.
    pub donated: bool,
    /// Whether the caller has or had further handles of its memory.
    shared: AtomicBool,
}

impl Data {
    pub fn new(tensor: DeviceTensor, donated: bool) -> Arc<Self> {
        let ty = Arc::new(TensorType::new(tensor.dtype(), tensor.shape()));
        Arc::new(Data { tensor, ty, donated, shared: AtomicBool::new(false) })
    }

    /// The same as data that no result may overwrite.
    pub fn kept(&self) -> Arc<Self> {
        let data = Data::new(self.tensor.clone(), false);
        data.shared.store(self.shared.load(Ordering::Relaxed), Ordering::Relaxed);
        data
    }
}

/// A recorded value: a node of a recording, valid as long as the recording is in that epoch.
#[derive(Clone)]
pub(super) struct NodeRef {
    pub recording: Arc<Recording>,
    pub epoch: u64,
    pub index: u32,
    pub ty: Arc<TensorType>,
}

/// What a tensor is at present.
#[derive(Clone)]
pub(super) enum Content {
    Data(Arc<Data>),
    Node(NodeRef),
    /// Given away by [`Tensor::donate`], or to a call, at that place.
    Donated(&'static Location<'static>, Arc<TensorType>),
    /// Not computed, since what it belongs to failed.
    Lost(Arc<str>, Arc<TensorType>),
}

/// What the clones of a tensor share.
pub(super) struct Cell {
    content: Mutex<Content>,
    /// Where operations on it are recorded, unless another operand decides.
    home: Arc<Recording>,
}

impl Content {
    pub fn ty(&self) -> &Arc<TensorType> {
        match self {
            Content::Data(data) => &data.ty,
            Content::Node(node) => &node.ty,
            Content::Donated(_, ty) | Content::Lost(_, ty) => ty,
        }
    }
}

impl Cell {
    pub fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn home(&self) -> &Arc<Recording> {
        &self.home
    }
}

/// A tensor. A handle: clones are one tensor, so that what [`Tensor::add_`] and its like do to one is seen in all. Results of operations,
/// views among them, are tensors of their own.
///
/// Inside a function of [`compile`](crate::capture::compile) operations are recorded. Outside they are recorded too, and run one by one
/// when a value is read (see [`Context`]). All operations of [`crate::ops::prelude`] are methods.
#[derive(Clone)]
pub struct Tensor {
    cell: Arc<Cell>,
}

impl Tensor {
    /// Copies a tensor to a device. Tensors that meet should share a [`Context`], and with it the kernels of what is done to them.
    pub fn new(context: impl Into<Context>, tensor: &HostTensor) -> Result<Self> {
        context.into().tensor(tensor)
    }

    pub(super) fn of(content: Content, home: Arc<Recording>) -> Self {
        Tensor { cell: Arc::new(Cell { content: Mutex::new(content), home }) }
    }

    pub(super) fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }

    /// Sizes of the dimensions.
    pub fn shape(&self) -> Vec<usize> {
        self.ty().shape
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.ty().dtype
    }

    /// The elements, on the host. Inside a compiled function this is a graph break: what is recorded runs, and recording goes on after it.
    ///
    /// # Errors
    ///
    /// Faults of the run; inside a function compiled with `fullgraph` an error that names the line.
    #[track_caller]
    pub fn to_host(&self) -> Result<HostTensor> {
        self.data(Break { what: "to_host", at: Location::caller() })?.tensor.read()
    }

    /// The only element, as a number; see [`Tensor::to_host`].
    #[track_caller]
    pub fn item(&self) -> Result<f64> {
        let ty = self.ty();
        if ty.num_elems() != 1 {
            return Err(Error::invalid(format!(
                "item() reads a tensor of one element, this is {ty}; reduce or slice it, or use to_host()"
            )));
        }
        let host = self.data(Break { what: "item", at: Location::caller() })?.tensor.read()?;
        host.to_f64().first().copied().ok_or_else(|| Error::internal("a tensor of one element was read as none"))
    }

    /// The elements, on the device, without a copy. They are for reading: other tensors may share the memory. Inside a compiled function
    /// this is a graph break.
    #[track_caller]
    pub fn to_device(&self) -> Result<DeviceTensor> {
        let data = self.data(Break { what: "to_device", at: Location::caller() })?;
        data.shared.store(true, Ordering::Relaxed);
        Ok(data.tensor.clone())
    }

    /// The data, after what leads to it has run.
    pub(super) fn data(&self, reason: Break) -> Result<Arc<Data>> {
        loop {
            let recording = match &*self.cell.content() {
                Content::Data(data) => return Ok(data.clone()),
                Content::Node(node) => node.recording.clone(),
                gone => return Err(unusable(gone)),
            };
            recording.flush(Some(reason), &[])?;
        }
    }

    /// Gives the tensor away: the next call that takes the returned handle may write a result over its memory. This handle and its clones
    /// are an error from here on. Memory that others share is left as it is: that of a result that a function returned twice, and that of a
    /// [`DeviceTensor`] the caller has or had another handle of.
    #[track_caller]
    pub fn donate(&self) -> Result<Tensor> {
        let at = Location::caller();
        let data = self.data(Break { what: "donate", at })?;
        *self.cell.content() = Content::Donated(at, data.ty.clone());
        let alone = Arc::strong_count(&data) == 1 && !data.shared.load(Ordering::Relaxed);
        Ok(Tensor::of(Content::Data(Data::new(data.tensor.clone(), alone)), self.cell.home.clone()))
    }

    /// Takes the value of `value`, which has the same type.
    fn assign(&self, what: &str, value: &Tensor) -> Result<()> {
        let (own, new) = (self.ty(), value.ty());
        let before = self.cell.content().clone();
        if !matches!(before, Content::Data(_) | Content::Node(_)) {
            return Err(unusable(&before));
        }
        if own != new {
            return Err(Error::invalid(format!("{what} keeps the tensor's type {own}, the value is {new}; cast, broadcast or reduce it")));
        }
        let content = value.cell.content().clone();
        if let Content::Node(node) = &content {
            node.recording.adopt(node, &self.cell);
        }
        *self.cell.content() = content;
        Ok(())
    }

    /// Adds `other`, broadcast to this tensor's shape, in place.
    pub fn add_(&self, other: &Tensor) -> Result<()> {
        self.assign("add_", &self.add(other)?)
    }

    /// Subtracts `other` in place.
    pub fn sub_(&self, other: &Tensor) -> Result<()> {
        self.assign("sub_", &self.sub(other)?)
    }

    /// Multiplies by `other` in place.
    pub fn mul_(&self, other: &Tensor) -> Result<()> {
        self.assign("mul_", &self.mul(other)?)
    }

    /// Divides by `other` in place.
    pub fn div_(&self, other: &Tensor) -> Result<()> {
        self.assign("div_", &self.div(other)?)
    }

    /// Takes the elements of `other`, broadcast to this tensor's shape.
    pub fn copy_(&self, other: &Tensor) -> Result<()> {
        self.assign("copy_", &other.broadcast_to(&self.ty().shape)?)
    }

    /// Sets all elements to `value`.
    pub fn fill_(&self, value: f64) -> Result<()> {
        self.assign("fill_", &self.full_like(value)?)
    }

    /// Writes `value` over the elements from `starts[d]` on in each dimension: `x[starts.., ..] = value`.
    pub fn slice_assign_(&self, starts: &[usize], value: &Tensor) -> Result<()> {
        let (own, new) = (self.ty(), value.ty());
        let ends = starts.iter().zip(&new.shape).map(|(s, n)| s + n);
        let high: Vec<usize> = own.shape.iter().zip(ends.clone()).map(|(size, end)| size.saturating_sub(end)).collect();
        let fits = starts.len() == own.rank() && new.rank() == own.rank() && own.shape.iter().zip(ends).all(|(size, end)| end <= *size);
        if !fits || own.dtype != new.dtype {
            return Err(Error::invalid(format!(
                "slice_assign_ of {new} at {starts:?} into {own}: it must lie inside and have its element type"
            )));
        }
        let inside = self.constant(HostTensor::from_bools([], &[true])?)?.broadcast_to(&new.shape)?.pad(starts, &high, 0.0)?;
        let moved = value.pad(starts, &high, 0.0)?;
        self.assign("slice_assign_", &inside.select(&moved, self)?)
    }

    /// The recording that an operation on `operands` goes to: that of a compiled function, if one of them is in it. Also whether all operands
    /// are recorded there, or are data.
    fn meeting(operands: &[&Tensor]) -> Result<(Arc<Recording>, bool)> {
        let mut chosen: Option<Arc<Recording>> = None;
        let mut settled = true;
        for operand in operands {
            let content = operand.cell.content();
            let candidate = match &*content {
                Content::Data(_) => &operand.cell.home,
                Content::Node(node) => &node.recording,
                gone => return Err(unusable(gone)),
            };
            if let Some(old) = &chosen {
                if Arc::ptr_eq(old, candidate) {
                    continue;
                }
                settled = false;
                if old.is_open_function() || !candidate.is_open_function() {
                    continue;
                }
            }
            chosen = Some(candidate.clone());
        }
        let chosen = chosen.ok_or_else(|| Error::invalid("an operation is applied to no tensor; use a method of one"))?;
        if chosen.is_open_function() {
            return Ok((chosen, settled));
        }
        // Another recording than that of the operands may be the open one.
        Ok((chosen.open_one(), false))
    }

    /// Computes what the operands have recorded elsewhere than in `recording`.
    fn settle(operands: &[&Tensor], recording: &Arc<Recording>) -> Result<()> {
        for operand in operands {
            let other = match &*operand.cell.content() {
                Content::Node(node) if !Arc::ptr_eq(&node.recording, recording) => node.recording.clone(),
                _ => continue,
            };
            other.flush(Some(Break { what: "use in another recording", at: Location::caller() }), &[])?;
        }
        Ok(())
    }
}

/// Why a tensor cannot be used.
pub(super) fn unusable(content: &Content) -> Error {
    match content {
        Content::Donated(at, _) => {
            Error::invalid(format!("the tensor was donated at {at} and may be overwritten; use the result instead, or do not donate it"))
        }
        Content::Lost(why, _) => Error::invalid(format!("the tensor has no value, since computing it failed: {why}")),
        Content::Data(_) | Content::Node(_) => Error::internal("a usable tensor was refused"),
    }
}

impl Value for Tensor {
    fn apply(op: Op, inputs: &[&Self]) -> Result<Self> {
        let (recording, mut settled) = Tensor::meeting(inputs)?;
        loop {
            if !settled {
                Tensor::settle(inputs, &recording)?;
            }
            settled = false;
            if let Some(tensor) = recording.record(&op, inputs)? {
                return Ok(tensor);
            }
        }
    }

    fn ty(&self) -> TensorType {
        (**self.cell.content().ty()).clone()
    }

    fn shared_ty(&self) -> Arc<TensorType> {
        self.cell.content().ty().clone()
    }

    fn constant(&self, tensor: HostTensor) -> Result<Self> {
        Tensor::meeting(&[self])?.0.constant(tensor)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.cell.content() {
            Content::Data(data) => write!(f, "Tensor({})", data.ty),
            Content::Node(node) => write!(f, "Tensor({}, recorded)", node.ty),
            Content::Donated(at, ty) => write!(f, "Tensor({ty}, donated at {at})"),
            Content::Lost(why, _) => write!(f, "Tensor(lost: {why})"),
        }
    }
}

/// What a function that is compiled may return: a tensor, or a tuple, an array or a `Vec` of them.
pub trait IntoTensors {
    /// The tensors, in order.
    fn into_tensors(self) -> Vec<Tensor>;
}

impl IntoTensors for Tensor {
    fn into_tensors(self) -> Vec<Tensor> {
        vec![self]
    }
}

impl IntoTensors for Vec<Tensor> {
    fn into_tensors(self) -> Vec<Tensor> {
        self
    }
}

impl<const N: usize> IntoTensors for [Tensor; N] {
    fn into_tensors(self) -> Vec<Tensor> {
        self.into()
    }
}

impl IntoTensors for () {
    fn into_tensors(self) -> Vec<Tensor> {
        Vec::new()
    }
}

impl IntoTensors for (Tensor, Tensor) {
    fn into_tensors(self) -> Vec<Tensor> {
        vec![self.0, self.1]
    }
}

impl IntoTensors for (Tensor, Tensor, Tensor) {
    fn into_tensors(self) -> Vec<Tensor> {
        vec![self.0, self.1, self.2]
    }
}
