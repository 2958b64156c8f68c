//! Users' own kernels as operations.
//!
//! ```
//! use sublane::capture::capture;
//! use sublane::graph::TensorType;
//! use sublane::ops::custom::{CustomKernel, CustomOp, Launch, Workgroups};
//! use sublane::{DType, Error};
//!
//! # fn main() -> sublane::Result<()> {
//! let kernel = CustomKernel {
//!     name: "halve".into(),
//!     wgsl: "@group(0) @binding(0) var<storage, read> x: array<f32>;
//!         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
//!         @group(0) @binding(2) var<uniform> count: u32;
//!         @compute @workgroup_size(64)
//!         fn halve(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>,
//!                  @builtin(local_invocation_index) lane: u32) {
//!             let i = (wid.x + wid.y * grid.x) * 64u + lane;
//!             if (i < count) { y[i] = x[i] * 0.5; }
//!         }"
//!     .into(),
//!     max_iterations: 0.into(),
//!     flops: 0.into(),
//! };
//! let halve = CustomOp::new(kernel, |inputs: &[&TensorType]| {
//!     if inputs[0].dtype != DType::F32 {
//!         return Err(Error::invalid(format!("f32 is halved, {} is given", inputs[0])));
//!     }
//!     let count = inputs[0].num_elems() as u32;
//!     Ok(Launch { result: inputs[0].clone(), workgroups: Workgroups::Linear(count.div_ceil(64).into()), params: vec![count] })
//! })?;
//! let graph = capture(|t| halve.apply(&[&t.input("x", [1000], DType::F32)?]))?;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::call::Call;
use super::reference::RefTensor;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{Op, Prim, TensorType};
use kernels_gen::{BindingKind, Formula, KernelSource, written};

/// A kernel as its author writes it.
///
/// In group 0, from binding 0 on, stand the operands (`var<storage, read>`, in their order), the one result (`var<storage, read_write>`)
/// and, if there are parameters, their block (`var<uniform>`, 32-bit words). Tensors are dense and row-major; F32, I32 and U32 take a word
/// an element, F16 two bytes, I8, U8 and Bool one, packed into words from the lowest byte on. Buffers are padded to 16 bytes, and
/// `arrayLength` counts the padding: pass numbers of elements as parameters. An array of a fixed size must not be longer than its tensor.
/// The result is not zero before; workgroup memory neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomKernel {
    /// Name of the operation and of the text's one entry point.
    pub name: String,
    /// WGSL.
    pub wgsl: String,
    /// The most loop iterations that one invocation runs, counted as [`KernelSource::max_iterations`] says, as a formula of the words
    /// of the parameter block; 0 for a kernel without loops. Software drivers end loops past a bound silently: a dispatch that states
    /// more than the adapter's probed bound is refused, one that states too little gives wrong numbers there.
    pub max_iterations: Formula,
    /// Floating-point operations of a dispatch, for reports; 0 where they do not matter.
    pub flops: Formula,
}

/// How many workgroups run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Workgroups {
    /// That many, in one row or, past what a dimension takes, in several: the kernel finds its number as
    /// `workgroup_id.x + workgroup_id.y * num_workgroups.x` and leaves if that is past its count.
    Linear(u64),
    /// That many in x, y and z.
    Grid([u32; 3]),
}

/// What a kernel does for operands of given types.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Launch {
    /// Type of the result.
    pub result: TensorType,
    /// Workgroups, at least one; none are run for a result without elements.
    pub workgroups: Workgroups,
    /// Words of the parameter block, as many as the text's has; an f32 is given by its bits.
    pub params: Vec<u32>,
}

type Rule = dyn Fn(&[&TensorType]) -> Result<Launch> + Send + Sync;
type Reference = dyn Fn(&[&RefTensor]) -> Result<RefTensor> + Send + Sync;

/// A user's kernel as an operation: a cheap handle. It applies to every [`Value`], so graphs of [`capture`](crate::capture::capture()) and
/// tensors of [`compile`](crate::capture::compile()) get it alike. Fusion stops at it: its operands are read from memory, its result is
/// stored.
#[derive(Clone)]
pub struct CustomOp {
    name: Arc<str>,
    source: Arc<KernelSource>,
    /// Bytes that the text asks of each operand and of the result.
    least_bytes: Arc<[u64]>,
    rule: Arc<Rule>,
    reference: Option<Arc<Reference>>,
}

impl CustomOp {
    /// An operation of `kernel`. `rule` gives the result's type, the workgroups and the parameters for operands of given types, of which
    /// there are as many as the text reads; its errors go to whoever applies the operation. It must depend on the types alone, or on what
    /// goes into the parameters.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Shader`](crate::ErrorKind::Shader) for a text that is not WGSL or binds otherwise than [`CustomKernel`] says. Whether
    /// a target has what the text needs is checked when a graph is compiled.
    pub fn new(kernel: CustomKernel, rule: impl Fn(&[&TensorType]) -> Result<Launch> + Send + Sync + 'static) -> Result<Self> {
        let CustomKernel { name, wgsl, max_iterations, flops } = kernel;
        let written::Written { source, least_bytes } = written::from_text(&name, &wgsl, max_iterations, flops)?;
        let (source, least_bytes) = (Arc::new(source), least_bytes.into());
        Ok(CustomOp { name: name.into(), source, least_bytes, rule: Arc::new(rule), reference: None })
    }

    /// The same operation with its value by definition, from operands of types that the rule has accepted. Tests compare with it; without
    /// one, asking for the reference value of a graph with the operation is an error.
    pub fn with_reference(mut self, reference: impl Fn(&[&RefTensor]) -> Result<RefTensor> + Send + Sync + 'static) -> Self {
        self.reference = Some(Arc::new(reference));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel, whose entry point has a name of its own.
    pub fn source(&self) -> &KernelSource {
        &self.source
    }

    /// Applies the operation.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for another number of operands than the text reads or of parameter
    /// words than it has, for a tensor shorter than the array that the text says it is, for no workgroups where the result has elements,
    /// and what the rule says.
    pub fn apply<V: Value>(&self, operands: &[&V]) -> Result<V> {
        let types: Vec<TensorType> = operands.iter().map(|operand| operand.ty()).collect();
        let call = self.call(&types.iter().collect::<Vec<_>>())?;
        V::apply(Op::Prim(Prim::Custom(Arc::new(call))), operands)
    }

    /// The operation on operands of those types.
    pub(crate) fn call(&self, types: &[&TensorType]) -> Result<CustomCall> {
        let reads: Vec<&str> = self.source.bindings.iter().filter(|b| b.kind == BindingKind::Read).map(|b| b.name.as_str()).collect();
        if types.len() != reads.len() || types.is_empty() {
            let given = types.iter().map(|ty| ty.to_string()).collect::<Vec<_>>().join(", ");
            let message =
                format!("`{}` reads {} operands ({}), given are {}: {given}", self.name, reads.len(), reads.join(", "), types.len());
            let without = if reads.is_empty() { "; an operation needs an operand, bind one" } else { "" };
            return Err(Error::invalid(message + without));
        }
        let launch = (self.rule)(types).map_err(|error| error.context(&self.name))?;
        let (given, words) = (launch.params.len(), self.source.num_params);
        if given != words {
            return Err(Error::invalid(format!(
                "the rule of `{}` gives {given} parameter words, the text's parameter block has {words}; give as many",
                self.name
            )));
        }
        if launch.result.num_elems() > 0 {
            self.check_launch(types, &launch)?;
        }
        Ok(CustomCall { op: self.clone(), inputs: types.iter().map(|ty| (*ty).clone()).collect(), launch })
    }

    /// Whether a launch that gives elements fits the text.
    fn check_launch(&self, types: &[&TensorType], launch: &Launch) -> Result<()> {
        let name = &self.name;
        let none = match launch.workgroups {
            Workgroups::Linear(count) => count == 0,
            Workgroups::Grid(grid) => grid.contains(&0),
        };
        if none {
            let (given, result) = (launch.workgroups, &launch.result);
            return Err(Error::invalid(format!(
                "the rule of `{name}` gives {given:?}, so that nothing would write its result {result}; give a workgroup at the least"
            )));
        }
        for ((ty, least), binding) in types.iter().copied().chain([&launch.result]).zip(&*self.least_bytes).zip(&self.source.bindings) {
            let padded = ty.num_bytes().max(1).next_multiple_of(16);
            if *least > padded {
                return Err(Error::invalid(format!(
                    "the text of `{name}` declares `{}` with at least {least} bytes, {ty} has {padded} with its padding; declare an array \
                     without a size, or give a larger tensor",
                    binding.name
                )));
            }
        }
        Ok(())
    }
}

/// Operations of one text are equal, whatever their rules: what those gave is part of each call.
impl PartialEq for CustomOp {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.source, &other.source) || self.source == other.source
    }
}

impl Eq for CustomOp {}

impl fmt::Debug for CustomOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomOp").field("name", &self.name).field("source", &self.source).finish_non_exhaustive()
    }
}

/// A [`CustomOp`] on operands of certain types: data only, so that equal calls are one node, and a call with other parameters another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomCall {
    op: CustomOp,
    inputs: Vec<TensorType>,
    launch: Launch,
}

impl Hash for CustomCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.op.source.name, &self.inputs, &self.launch).hash(state);
    }
}

impl CustomCall {
    /// The operation.
    pub fn op(&self) -> &CustomOp {
        &self.op
    }

    /// What it does.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    /// The kernel's name and the parameters, for printed graphs.
    pub(crate) fn summary(&self) -> String {
        format!("{} {:?} params={:?}", self.op.source.name, self.launch.workgroups, self.launch.params)
    }

    pub(super) fn reference(&self, inputs: &[&RefTensor], ty: TensorType) -> Result<RefTensor> {
        let name = self.op.name();
        let Some(reference) = &self.op.reference else {
            return Err(Error::unsupported(format!("`{name}` has no reference value; give it one with `CustomOp::with_reference`")));
        };
        let value = reference(inputs).map_err(|error| error.context(name))?;
        if value.ty() != ty || value.data.len() != ty.num_elems() {
            let (given, elems) = (value.ty(), value.data.len());
            return Err(Error::invalid(format!("the reference of `{name}` gives {given} with {elems} elements, its rule says {ty}")));
        }
        Ok(value)
    }
}

pub(super) fn infer_custom(call: &Call, custom: &CustomCall) -> Result<TensorType> {
    let given = call.inputs();
    if given.iter().copied().eq(&custom.inputs) {
        return Ok(custom.launch.result.clone());
    }
    let list = |types: &mut dyn Iterator<Item = &TensorType>| types.map(|ty| ty.to_string()).collect::<Vec<_>>().join(", ");
    let (made, given) = (list(&mut custom.inputs.iter()), list(&mut given.iter().copied()));
    Err(Error::invalid(format!("a call of `{}` for {made} is given {given}; apply the operation anew", custom.op.name())))
}
