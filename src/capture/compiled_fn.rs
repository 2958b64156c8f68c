//! `compile(f)`: a Rust function whose operations are compiled at first use and found again by what it records.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use crate::capture::explain::Explanation;
use crate::capture::owner::Owner;
use crate::capture::tensor::{Content, Context, Data, IntoTensors, Tensor};
use crate::capture::trace::{Break, Recording};
use crate::compiler::CompileOptions;
use crate::error::Result;

/// What becomes of a size that differs from call to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sizes {
    /// From its second value on it is a parameter of the kernels, which are shared by all sizes they fit. 0 and 1 have kernels of their own.
    #[default]
    Automatic,
    /// Each size is compiled for itself, and counts as a recompilation.
    Static,
}

/// Choices of [`compile`].
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureOptions {
    /// How each part is compiled.
    pub compile: CompileOptions,
    /// Make a graph break an error that names its line.
    pub fullgraph: bool,
    /// What becomes of sizes.
    pub sizes: Sizes,
    /// Recompilations of one part of the function after which what is new runs eagerly.
    pub max_recompiles: usize,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        CaptureOptions { compile: CompileOptions::default(), fullgraph: false, sizes: Sizes::Automatic, max_recompiles: 8 }
    }
}

/// A function that [`compile`] returned. Several threads may call it at a time if the function itself allows that.
pub struct CompiledFn<F> {
    function: F,
    owner: Arc<Owner>,
    context: Context,
}

/// Compiles `f`, a function of tensors, for a device or a [`Context`].
///
/// `f` runs at each call, on tensors that record what is done to them. What it records is looked up among what earlier calls recorded: if it
/// is there, the kernels run; else it is compiled. So whatever `f` depends on may change from call to call, and is never out of date:
///
/// - an argument, or a tensor that `f` holds, is an input;
/// - a constant made from a Rust value is compiled in, and becomes an input when its value changes;
/// - a branch or a loop that goes another way is compiled once for each way;
/// - a host read ([`Tensor::to_host`], [`Tensor::item`]) runs what is recorded, returns the data and goes on: a graph break.
///
/// ```no_run
/// use sublane::capture::{CaptureOptions, Tensor, compile};
/// use sublane::ops::prelude::*;
/// # fn f(device: sublane::Device, x: Tensor, w: Tensor) -> sublane::Result<()> {
/// let f = compile(&device, CaptureOptions::default(), move |args: &[Tensor]| args[0].matmul(&w)?.relu());
/// let y = f.call(&[x])?;
/// println!("{:?}\n{}", y[0].to_host()?, f.explain());
/// # Ok(())
/// # }
/// ```
pub fn compile<F, O>(context: impl Into<Context>, options: CaptureOptions, f: F) -> CompiledFn<F>
where
    F: Fn(&[Tensor]) -> Result<O>,
    O: IntoTensors,
{
    let context = context.into();
    let owner = Owner::function(context.device(), options, context.recording().owner());
    CompiledFn { function: f, owner, context }
}

impl<F> CompiledFn<F> {
    /// Runs the function. What it does in place to an argument, the caller sees; a donated argument is used up.
    ///
    /// # Errors
    ///
    /// Those of the function, those of compiling and running what it records, and for `fullgraph` a graph break.
    #[track_caller]
    pub fn call<O>(&self, args: &[Tensor]) -> Result<Vec<Tensor>>
    where
        F: Fn(&[Tensor]) -> Result<O>,
        O: IntoTensors,
    {
        let at = Location::caller();
        let inside = |arg: &Tensor| matches!(&*arg.cell().content(), Content::Node(node) if node.recording.is_open_function());
        if args.iter().any(|arg| inside(arg) || arg.cell().home().is_open_function()) {
            // Called by a function that records: its operations are part of that one.
            return Ok((self.function)(args)?.into_tensors());
        }
        let call = Recording::open(self.owner.clone(), self.context.recording());
        let recording = &call.recording;
        let arguments = Arguments::enter(args, recording, at)?;
        let results = (self.function)(&arguments.inner);
        let mut used_up = false;
        let finished = results.and_then(|results| {
            let results = results.into_tensors();
            let (held, changed) = arguments.leave();
            used_up = true;
            recording.flush(None, &held)?;
            for (caller, inner) in changed {
                let content = inner.cell().content().clone();
                *caller.cell().content() = content;
            }
            // An argument that is handed through is a result like others, one however often it is returned.
            let mut handed: Vec<(Arc<Data>, Arc<Data>)> = Vec::new();
            let mut outer = |tensor: &Tensor| {
                let data = tensor.data(Break { what: "call", at })?;
                let known = handed.iter().find(|(given, _)| Arc::ptr_eq(given, &data)).map(|(_, own)| own.clone());
                let data = match known {
                    Some(own) => own,
                    None if data.donated => {
                        let own = data.kept();
                        handed.push((data, own.clone()));
                        own
                    }
                    None => data,
                };
                Ok(Tensor::of(Content::Data(data), self.context.recording().clone()))
            };
            results.iter().map(&mut outer).collect::<Result<Vec<Tensor>>>()
        });
        drop(call);
        if used_up {
            for arg in args {
                let mut content = arg.cell().content();
                if let Content::Data(data) = &*content
                    && data.donated
                {
                    let ty = data.ty.clone();
                    *content = Content::Donated(at, ty);
                }
            }
        }
        finished
    }

    /// What was recorded and compiled up to now, and why.
    pub fn explain(&self) -> Explanation {
        Explanation::of(&self.owner)
    }

    /// [`CompiledFn::explain`] with the time of each kernel, measured on a copy of each part whose inputs are zeros.
    pub fn explain_timed(&self) -> Result<Explanation> {
        Explanation::timed(&self.owner, self.context.device())
    }

    /// The context that results belong to.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

impl<F> fmt::Debug for CompiledFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CompiledFn of {} parts", self.owner.known().parts.len())
    }
}

/// The arguments of a call as the function sees them: tensors of the recording, one for each tensor of the caller.
struct Arguments {
    inner: Vec<Tensor>,
    /// The caller's tensors, each once, with its data and the tensor that stands for it.
    outer: Vec<(Tensor, Arc<Data>, Tensor)>,
}

impl Arguments {
    fn enter(args: &[Tensor], recording: &Arc<Recording>, at: &'static Location<'static>) -> Result<Self> {
        let mut outer: Vec<(Tensor, Arc<Data>, Tensor)> = Vec::with_capacity(args.len());
        let mut inner = Vec::with_capacity(args.len());
        for arg in args {
            let known = outer.iter().find(|(caller, _, _)| Arc::ptr_eq(caller.cell(), arg.cell())).map(|(_, _, own)| own.clone());
            inner.push(match known {
                Some(own) => own,
                None => {
                    let data = arg.data(Break { what: "call", at })?;
                    let own = Tensor::of(Content::Data(data.clone()), recording.clone());
                    outer.push((arg.clone(), data, own.clone()));
                    own
                }
            });
        }
        Ok(Arguments { inner, outer })
    }

    /// Lets go of what the function did not change. The addresses of the donated data that the caller holds, and the tensors that were
    /// changed in place.
    fn leave(self) -> (Vec<usize>, Vec<(Tensor, Tensor)>) {
        let Arguments { inner, outer } = self;
        drop(inner);
        let (mut held, mut changed) = (Vec::new(), Vec::new());
        for (caller, data, own) in outer {
            let same = matches!(&*own.cell().content(), Content::Data(now) if Arc::ptr_eq(now, &data));
            if !same {
                changed.push((caller.clone(), own));
            }
            if data.donated {
                held.push(Arc::as_ptr(&data) as usize);
            }
        }
        (held, changed)
    }
}
