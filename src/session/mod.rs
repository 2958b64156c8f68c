//! Compiled graphs on a device: loaded once, run often.

mod loader;
mod runner;
pub mod stored;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::compiler::{Compiled, Port, export};
use crate::device::{Device, DeviceTensor, Executor, Profile, Recorder};
use crate::error::{Error, Result};
use crate::plan::{Command, SlotId};
use crate::tensor::HostTensor;
pub use loader::{LoadReport, Loader, LoaderOptions};

/// A compiled graph on a device. A cheap handle; runs from several threads take turns.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    compiled: Compiled,
    executor: Executor,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session of {} kernels", self.inner.compiled.kernels().len())
    }
}

/// Named results, in the order of the graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs {
    tensors: Vec<(String, HostTensor)>,
}

impl Outputs {
    /// The result of that name.
    pub fn get(&self, name: &str) -> Result<&HostTensor> {
        let found = self.tensors.iter().find(|(n, _)| n == name).map(|(_, t)| t);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.tensors.iter().map(|(n, _)| n.as_str()).collect();
            Error::invalid(format!("no output is called `{name}`; there are {}", names.join(", ")))
        })
    }

    /// The only result, or an error that lists them.
    pub fn single(mut self) -> Result<HostTensor> {
        match (self.tensors.pop(), self.tensors.len()) {
            (Some((_, tensor)), 0) => Ok(tensor),
            (_, others) => Err(Error::invalid(format!("the graph has {} outputs; take one by its name", others + 1))),
        }
    }

    /// All results with their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &HostTensor)> {
        self.tensors.iter().map(|(n, t)| (n.as_str(), t))
    }
}

impl IntoIterator for Outputs {
    type Item = (String, HostTensor);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.tensors.into_iter()
    }
}

impl Session {
    /// Makes everything a run needs: buffers, pipelines, bind groups; constants are uploaded.
    pub fn load(device: &Device, compiled: &Compiled) -> Result<Self> {
        let executor = Executor::load(device, compiled.plan())?;
        Ok(Session { inner: Arc::new(Inner { compiled: compiled.clone(), executor }) })
    }

    /// Loads what [`compiler::export`](crate::compiler::export) or `sublane export` wrote to `folder`. Nothing is compiled but the kernels'
    /// texts, by the driver; results are those of the compiled graph that was exported.
    ///
    /// # Errors
    ///
    /// Those of [`export::read`] for files that are missing, damaged or edited; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported)
    /// where the device lacks what the kernels need; those of [`Executor::load`].
    pub fn load_exported(device: &Device, folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let exported = export::read(folder)?;
        let loaded = exported.check_target(&device.target(), &device.info().name).and_then(|()| Session::load(device, &exported.compiled));
        loaded.map_err(|error| error.context(format_args!("the export in `{}`", folder.display())))
    }

    /// The compiled graph.
    pub fn compiled(&self) -> &Compiled {
        &self.inner.compiled
    }

    /// The executor, for callers that keep tensors on the device.
    pub fn executor(&self) -> &Executor {
        &self.inner.executor
    }

    /// Runs the graph and waits. Inputs are given by name, each once, with the type the graph declares.
    pub fn run(&self, inputs: &[(&str, &HostTensor)]) -> Result<Outputs> {
        pollster::block_on(self.run_async(inputs))
    }

    /// Runs the graph; dropping the future is safe.
    pub async fn run_async(&self, inputs: &[(&str, &HostTensor)]) -> Result<Outputs> {
        let bytes = self.bind(inputs)?;
        let outputs = self.inner.compiled.outputs();
        let mut slots: Vec<SlotId> = Vec::with_capacity(outputs.len());
        for port in outputs {
            if !slots.contains(&port.slot) {
                slots.push(port.slot);
            }
        }
        let data = self.inner.executor.run_async(&bytes, &slots).await?;
        let read = |port: &Port| {
            let found = slots.iter().position(|s| *s == port.slot).and_then(|i| data.get(i));
            let bytes = found.ok_or_else(|| Error::internal(format!("output `{}` was not read back", port.name)))?;
            let tensor = HostTensor::from_bytes(port.ty.dtype, port.ty.shape.clone(), &bytes[..port.ty.num_bytes() as usize])?;
            Ok((port.name.clone(), tensor))
        };
        Ok(Outputs { tensors: outputs.iter().map(read).collect::<Result<_>>()? })
    }

    /// Runs the graph and measures each kernel; see [`Executor::profile`].
    pub fn profile(&self, inputs: &[(&str, &HostTensor)]) -> Result<Profile> {
        self.inner.executor.profile(&self.bind(inputs)?)
    }

    /// Milliseconds of each dispatch of a run, in the order of [`Compiled::kernels`]; see [`Executor::profile`]. The first run, in which drivers
    /// compile, is not the one that is measured.
    pub fn kernel_ms(&self, inputs: &[(&str, &HostTensor)]) -> Result<Vec<f64>> {
        let inputs = self.bind(inputs)?;
        self.inner.executor.profile(&inputs)?;
        let profile = self.inner.executor.profile(&inputs)?;
        let commands = self.inner.compiled.plan().commands.iter().enumerate();
        let dispatches = commands.filter(|(_, command)| matches!(command, Command::Dispatch { .. }));
        let ns = |at: usize| profile.commands.iter().find(|time| time.command == at).map_or(0, |time| time.ns);
        Ok(dispatches.map(|(at, _)| ns(at) as f64 / 1e6).collect())
    }

    /// Writes the inputs and records a run without reading anything back.
    pub fn enqueue(&self, inputs: &[(&str, &HostTensor)]) -> Result<()> {
        self.inner.executor.enqueue(&self.bind(inputs)?)
    }

    /// Records a run into a caller's command encoder: every input is read from the tensor of its name, and an output that is named in
    /// `outputs` is written to its tensor, all without a copy. The caller submits. Outputs that are not named are computed and dropped.
    /// An input that was donated is written over; a result that lies in its memory is given the same tensor.
    ///
    /// Recordings and runs of one session share its temporary memory, which is safe in whatever order they are submitted: a queue runs
    /// them one after another.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for names and types that do not fit, and as [`Executor::record`]
    /// says; nothing is recorded then.
    pub fn record(&self, recorder: &mut Recorder<'_>, inputs: &[(&str, &DeviceTensor)], outputs: &[(&str, &DeviceTensor)]) -> Result<()> {
        let mut tensors: Vec<(SlotId, &DeviceTensor)> = Vec::with_capacity(inputs.len() + outputs.len());
        let sides = [("input", self.inner.compiled.inputs(), inputs), ("output", self.inner.compiled.outputs(), outputs)];
        for (side, ports, given) in sides {
            for (at, (name, tensor)) in given.iter().enumerate() {
                let Some(port) = ports.iter().find(|p| p.name == *name) else {
                    return Err(Error::invalid(format!("no {side} is called `{name}`; the graph has {}", list(ports))));
                };
                if tensor.dtype() != port.ty.dtype || tensor.shape() != port.ty.shape {
                    return Err(Error::invalid(format!("{side} `{name}` is {}, {}{:?} is given", port.ty, tensor.dtype(), tensor.shape())));
                }
                if given[..at].iter().any(|(earlier, _)| earlier == name) {
                    return Err(Error::invalid(format!("{side} `{name}` is given twice")));
                }
                match tensors.iter().find(|(slot, _)| *slot == port.slot) {
                    Some((_, first)) if first.is_over(tensor) => {}
                    Some(_) => {
                        return Err(Error::invalid(format!(
                            "{side} `{name}` lies in the memory of another input or output that is given; give both the same tensor"
                        )));
                    }
                    None => tensors.push((port.slot, *tensor)),
                }
            }
        }
        let ports = self.inner.compiled.inputs();
        if let Some(missing) = ports.iter().find(|p| inputs.iter().all(|(name, _)| *name != p.name)) {
            return Err(Error::invalid(format!("input `{}` {} is missing; the graph takes {}", missing.name, missing.ty, list(ports))));
        }
        self.inner.executor.record(recorder, &tensors)
    }

    /// Checks names and types of `inputs` and pairs each with its slot.
    pub fn bind<'a>(&self, inputs: &[(&str, &'a HostTensor)]) -> Result<Vec<(SlotId, &'a [u8])>> {
        let ports = self.inner.compiled.inputs();
        let mut bound: Vec<(SlotId, &[u8])> = Vec::with_capacity(inputs.len());
        for (name, tensor) in inputs {
            let Some(port) = ports.iter().find(|p| p.name == *name) else {
                return Err(Error::invalid(format!("no input is called `{name}`; the graph takes {}", list(ports))));
            };
            if tensor.dtype() != port.ty.dtype || tensor.shape() != port.ty.shape {
                return Err(Error::invalid(format!("input `{name}` is {}, {}{:?} is given", port.ty, tensor.dtype(), tensor.shape())));
            }
            if bound.iter().any(|(slot, _)| *slot == port.slot) {
                return Err(Error::invalid(format!("input `{name}` is given twice")));
            }
            bound.push((port.slot, tensor.bytes()));
        }
        if let Some(missing) = ports.iter().find(|p| bound.iter().all(|(slot, _)| *slot != p.slot)) {
            return Err(Error::invalid(format!("input `{}` is missing; the graph takes {}", missing.name, list(ports))));
        }
        Ok(bound)
    }
}

/// Ports with their types, for messages.
fn list(ports: &[Port]) -> String {
    ports.iter().map(|p| format!("`{}` {}", p.name, p.ty)).collect::<Vec<_>>().join(", ")
}
