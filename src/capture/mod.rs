//! Recording Rust functions: [`capture()`] runs one once and returns its graph; [`compile()`] compiles what it does at each call.
//!
//! ```
//! use sublane::capture::capture;
//! use sublane::ops::prelude::*;
//! use sublane::{DType, HostTensor};
//!
//! # fn main() -> sublane::Result<()> {
//! let weights = HostTensor::zeros(DType::F32, [256, 10])?;
//! let graph = capture(|t| t.input("x", [128, 256], DType::F32)?.matmul(&t.constant(weights)?)?.relu())?;
//! assert_eq!(graph.outputs().len(), 1);
//! # Ok(())
//! # }
//! ```

mod compiled_fn;
mod difference;
mod explain;
mod owner;
mod sizes;
mod tensor;
mod trace;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

pub use compiled_fn::{CaptureOptions, CompiledFn, Sizes, compile};
pub use difference::Reason;
pub use explain::{BreakInfo, CompilationInfo, Explanation, KernelLine, PartInfo, RefusalLine};
pub use tensor::{Context, IntoTensors, Tensor};

use crate::error::{Error, Result};
use crate::graph::{Graph, GraphBuilder, NodeId, Op, TensorType};
use crate::ops::Value;
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// The graph under construction; `None` once the capture is over.
type Recording = Rc<RefCell<Option<GraphBuilder>>>;

/// Runs `f` once and returns what it recorded. Its result names the graph's outputs (see [`Outputs`]); an error inside is the result.
pub fn capture<O: Outputs>(f: impl FnOnce(&Tracer) -> Result<O>) -> Result<Graph> {
    let tracer = Tracer { recording: Rc::new(RefCell::new(Some(GraphBuilder::new()))) };
    let outputs = f(&tracer).map(Outputs::named);
    let mut builder = tracer.recording.take().ok_or_else(over)?;
    for (name, value) in outputs? {
        if !Rc::ptr_eq(&value.recording, &tracer.recording) {
            return Err(Error::invalid(format!("output `{name}` belongs to another capture")));
        }
        builder.output(name, value.id)?;
    }
    if builder.graph().outputs().is_empty() {
        return Err(Error::invalid("the captured function returns no value; return those that are results"));
    }
    Ok(builder.finish())
}

fn over() -> Error {
    Error::invalid("the capture this value belongs to is over; use values only inside the captured function")
}

/// Where the values of one capture begin.
#[derive(Debug)]
pub struct Tracer {
    recording: Recording,
}

impl Tracer {
    /// A value given at each run, under `name`.
    pub fn input(&self, name: impl Into<String>, shape: impl Into<Vec<usize>>, dtype: DType) -> Result<Traced> {
        record(&self.recording, |builder| builder.input(name, TensorType::new(dtype, shape)))
    }

    /// A value known now.
    pub fn constant(&self, tensor: HostTensor) -> Result<Traced> {
        record(&self.recording, |builder| builder.constant(tensor))
    }

    /// Gives all that `f` records one origin called `name`, as reports and generated kernels show it.
    pub fn scope<T>(&self, name: impl Into<String>, f: impl FnOnce() -> Result<T>) -> Result<T> {
        let set = |origin: Option<String>| match (self.recording.borrow_mut().as_mut(), origin) {
            (Some(builder), Some(name)) => {
                builder.begin_origin(name);
                Ok(())
            }
            (Some(builder), None) => {
                builder.set_origin(None);
                Ok(())
            }
            (None, _) => Err(over()),
        };
        set(Some(name.into()))?;
        let result = f();
        set(None)?;
        result
    }
}

fn record(recording: &Recording, add: impl FnOnce(&mut GraphBuilder) -> Result<NodeId>) -> Result<Traced> {
    let mut guard = recording.borrow_mut();
    let builder = guard.as_mut().ok_or_else(over)?;
    let id = add(builder)?;
    Ok(Traced { id, ty: builder.ty(id).clone(), recording: recording.clone() })
}

/// A value inside a captured function.
#[derive(Clone)]
pub struct Traced {
    recording: Recording,
    id: NodeId,
    ty: TensorType,
}

impl Traced {
    /// Sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.ty.shape
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}: {}", self.id.0, self.ty)
    }
}

impl Value for Traced {
    fn apply(op: Op, inputs: &[&Self]) -> Result<Self> {
        let [first, rest @ ..] = inputs else {
            return Err(Error::invalid(format!("{} is applied to no value", crate::ops::name(&op))));
        };
        if rest.iter().any(|v| !Rc::ptr_eq(&v.recording, &first.recording)) {
            return Err(Error::invalid(format!("the operands of {} belong to different captures", crate::ops::name(&op))));
        }
        let ids: Vec<NodeId> = inputs.iter().map(|v| v.id).collect();
        record(&first.recording, |builder| builder.add(op, &ids))
    }

    fn ty(&self) -> TensorType {
        self.ty.clone()
    }

    fn constant(&self, tensor: HostTensor) -> Result<Self> {
        record(&self.recording, |builder| builder.constant(tensor))
    }
}

/// What a captured function may return: a value (called `y`), a tuple, array or `Vec` of values (called `y0`, `y1`...), or an array or `Vec` of
/// names with values.
pub trait Outputs {
    /// The values with their names.
    fn named(self) -> Vec<(String, Traced)>;
}

fn numbered(values: impl IntoIterator<Item = Traced>) -> Vec<(String, Traced)> {
    values.into_iter().enumerate().map(|(i, v)| (format!("y{i}"), v)).collect()
}

impl Outputs for Traced {
    fn named(self) -> Vec<(String, Traced)> {
        vec![("y".to_string(), self)]
    }
}

impl Outputs for (Traced, Traced) {
    fn named(self) -> Vec<(String, Traced)> {
        numbered([self.0, self.1])
    }
}

impl Outputs for (Traced, Traced, Traced) {
    fn named(self) -> Vec<(String, Traced)> {
        numbered([self.0, self.1, self.2])
    }
}

impl Outputs for Vec<Traced> {
    fn named(self) -> Vec<(String, Traced)> {
        numbered(self)
    }
}

impl<const N: usize> Outputs for [Traced; N] {
    fn named(self) -> Vec<(String, Traced)> {
        numbered(self)
    }
}

impl<S: Into<String>> Outputs for Vec<(S, Traced)> {
    fn named(self) -> Vec<(String, Traced)> {
        self.into_iter().map(|(name, v)| (name.into(), v)).collect()
    }
}

impl<S: Into<String>, const N: usize> Outputs for [(S, Traced); N] {
    fn named(self) -> Vec<(String, Traced)> {
        self.into_iter().map(|(name, v)| (name.into(), v)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::prelude::*;
    use crate::ops::reference_graph;

    fn names(graph: &Graph) -> Vec<&str> {
        graph.outputs().iter().map(|(n, _)| n.as_str()).collect()
    }

    #[test]
    fn records_what_the_function_computes() {
        let graph = capture(|t| {
            let x = t.input("x", [2, 3], DType::F32)?;
            let w = t.constant(HostTensor::new([3, 2], vec![1f32, 0.0, 0.0, 1.0, 1.0, 1.0])?)?;
            t.scope("head", || x.matmul(&w)?.add_scalar(-4.0)?.relu())
        })
        .unwrap();
        crate::graph::verify(&graph).unwrap();
        let x = HostTensor::new([2, 3], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let y = reference_graph(&graph, &[("x", x)]).unwrap();
        assert_eq!((y[0].0.as_str(), &y[0].1.data[..]), ("y", &[0.0, 1.0, 6.0, 7.0][..]));
        assert!(graph.origins().contains(&"head".to_string()));
    }

    #[test]
    fn equal_values_are_one_node() {
        let graph = capture(|t| {
            let x = t.input("x", [4], DType::F32)?;
            Ok((x.exp()?, x.exp()?))
        })
        .unwrap();
        assert_eq!(graph.nodes().len(), 2);
        assert_eq!(names(&graph), ["y0", "y1"]);
    }

    #[test]
    fn outputs_can_be_named() {
        let graph = capture(|t| {
            let x = t.input("x", [4], DType::F32)?;
            Ok([("e", x.exp()?), ("l", x.log()?)])
        });
        assert_eq!(names(&graph.unwrap()), ["e", "l"]);
        let twice = capture(|t| {
            let x = t.input("x", [4], DType::F32)?;
            Ok(vec![("e", x.exp()?), ("e", x.log()?)])
        });
        assert!(twice.unwrap_err().to_string().contains("`e`"));
    }

    #[test]
    fn faults_inside_are_the_result() {
        let message = |r: Result<Graph>| r.unwrap_err().to_string();
        let shapes = capture(|t| t.input("x", [4], DType::F32)?.add(&t.input("y", [3], DType::F32)?));
        assert!(message(shapes).contains("do not broadcast"));
        let types = capture(|t| t.input("x", [4], DType::F32)?.add(&t.input("y", [4], DType::I32)?));
        assert!(message(types).contains("Add(f32[4], i32[4])"));
        let again = capture(|t| t.input("x", [4], DType::F32)?.add(&t.input("x", [4, 4], DType::F32)?));
        assert!(message(again).contains("two inputs are called `x`"));
        assert!(message(capture(|_| Ok(Vec::<Traced>::new()))).contains("no value"));
    }

    #[test]
    fn values_stay_inside_their_capture() {
        let mut kept = None;
        capture(|t| {
            let x = t.input("x", [4], DType::F32)?;
            kept = Some(x.clone());
            Ok(x)
        })
        .unwrap();
        let kept = kept.unwrap();
        assert!(kept.exp().unwrap_err().to_string().contains("is over"));
        let other = capture(|t| t.input("x", [4], DType::F32)?.add(&kept));
        assert!(other.unwrap_err().to_string().contains("different captures"));
    }
}
