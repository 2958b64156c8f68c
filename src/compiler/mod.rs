//! The graph compiler: a graph becomes kernels and a plan that runs them. It touches no GPU.

pub mod cache;
mod chunk;
mod dynamic;
pub mod export;
pub mod fuse;
pub mod lower;
pub mod passes;
mod record;
mod siblings;
mod slots;
mod stages;
pub mod tune;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId, TensorType};
use crate::ops::Halves;
use crate::plan::{ExecutionPlan, SlotId};
pub use dynamic::{TemplateCounts, Templates};
use kernels_gen::emit::Numerics;
use kernels_gen::{Target, validate};
pub use lower::HeroChoice;
use stages::Stages;
pub use tune::Tuning;

/// How operations are grouped into kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Operations are fused wherever that is legal and pays.
    #[default]
    Compiled,
    /// One kernel for each operation of the user's program: the baseline fusion is compared with.
    Eager,
}

impl Mode {
    /// Name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Compiled => "compiled",
            Mode::Eager => "eager",
        }
    }
}

/// A stage that makes programs faster and that a compilation can do without: leaving stages out one by one tells which of them breaks one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OptionalStage {
    /// Constants are computed, and what changes no bit is simplified.
    Fold,
    /// Batch normalisation becomes part of the weights before it.
    FoldScale,
    /// Products of one left operand with several constants become one.
    MergeProducts,
    /// Constants lie in memory as their kernels read them.
    Layout,
    /// Elementwise kernels over equally many elements, and reductions of equally many rows, become one with several results.
    Siblings,
}

impl OptionalStage {
    /// All of them, in the order in which they run.
    pub const ALL: [OptionalStage; 5] =
        [OptionalStage::Fold, OptionalStage::FoldScale, OptionalStage::MergeProducts, OptionalStage::Layout, OptionalStage::Siblings];

    /// Name on the command line and in [`Compiled::stages`].
    pub const fn name(self) -> &'static str {
        match self {
            OptionalStage::Fold => "fold",
            OptionalStage::FoldScale => "fold_scale",
            OptionalStage::MergeProducts => "merge_products",
            OptionalStage::Layout => "layout",
            OptionalStage::Siblings => "siblings",
        }
    }
}

/// Choices of one compilation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// How operations are grouped.
    pub mode: Mode,
    /// Whether NaN is kept where drivers lose it.
    pub numerics: Numerics,
    /// Elementwise arithmetic on f16 in f16, as the target's driver rounds, in the place of f32 with one rounding an operation. Sums, products,
    /// comparisons and composites stay f32. Compiling for a target without f16 is an error then.
    pub f16_arithmetic: bool,
    /// Keep the printed form of every stage in [`Compiled::stages`].
    pub keep_stages: bool,
    /// Measured choices; the tables choose where it has none.
    pub tuning: Tuning,
    /// Inputs, by name, whose memory results may take: a result of the same size may lie in the slot of such an input.
    pub donate: Vec<String>,
    /// Stages to leave out.
    pub without: BTreeSet<OptionalStage>,
}

/// An input or output of a compiled graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: TensorType,
    /// Slot of the plan.
    pub slot: SlotId,
}

/// What one dispatch of a compiled graph computes.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelInfo {
    /// Name of the kernel.
    pub name: String,
    /// Operations of the user's program it takes part in.
    pub origins: Vec<String>,
    /// Type of its result.
    pub ty: TensorType,
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes read and written, each tensor once.
    pub bytes: u64,
    /// Its group's place in [`Compiled::groups`]; kernels of parts share one.
    pub group: usize,
    /// The configuration, if it is built around a matrix product or a convolution.
    pub choice: Option<HeroChoice>,
}

/// Nodes that one kernel computes, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupInfo {
    /// What the kernel is built around: `map`, `reduce`, `hero`, `serial` or `custom`.
    pub kind: String,
    /// The nodes whose values are stored, as `%id, %id`.
    pub root: String,
    /// The type of the first.
    pub ty: TensorType,
    /// All nodes computed, as `%id:Op`.
    pub members: Vec<String>,
}

/// A fusion that was not made, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalInfo {
    /// The node, as `%id:Op`.
    pub node: String,
    /// The stored node of the group it did not join, as `%id`, if there is one such group.
    pub group: Option<String>,
    /// Why not.
    pub reason: String,
}

/// One stage of a compilation.
#[derive(Debug, Clone, PartialEq)]
pub struct StageInfo {
    /// Name.
    pub name: &'static str,
    /// Time it took, in seconds.
    pub seconds: f64,
    /// Its result, printed, if it was asked for.
    pub text: Option<String>,
}

/// A compiled graph: a plan and its ports. A cheap handle.
#[derive(Debug, Clone)]
pub struct Compiled {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    plan: ExecutionPlan,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    constants: Vec<Port>,
    kernels: Vec<KernelInfo>,
    stages: Vec<StageInfo>,
    groups: Vec<GroupInfo>,
    refusals: Vec<RefusalInfo>,
    fusion: String,
}

impl Compiled {
    /// The plan.
    pub fn plan(&self) -> &ExecutionPlan {
        &self.inner.plan
    }

    /// Inputs, in the order of the graph.
    pub fn inputs(&self) -> &[Port] {
        &self.inner.inputs
    }

    /// Outputs, in the order of the graph.
    pub fn outputs(&self) -> &[Port] {
        &self.inner.outputs
    }

    /// Constants that the plan uploads, in the order of their slots.
    pub fn constants(&self) -> &[Port] {
        &self.inner.constants
    }

    /// One entry for each dispatch, in order.
    pub fn kernels(&self) -> &[KernelInfo] {
        &self.inner.kernels
    }

    /// Stages of the compilation, in order.
    pub fn stages(&self) -> &[StageInfo] {
        &self.inner.stages
    }

    /// Groups of fused nodes, one for each kernel, in order.
    pub fn groups(&self) -> &[GroupInfo] {
        &self.inner.groups
    }

    /// Fusions that were not made.
    pub fn refusals(&self) -> &[RefusalInfo] {
        &self.inner.refusals
    }

    /// Groups and refused fusions with their reasons, as text.
    pub fn fusion(&self) -> &str {
        &self.inner.fusion
    }
}

/// Compiles `graph` for `target`.
pub fn compile(graph: &Graph, target: &Target, options: &CompileOptions) -> Result<Compiled> {
    let mut stages = Stages::new(options.keep_stages);
    let (graph, fusion, lowered) = lower_graph(&mut stages, graph, target, options)?;
    stages.run(
        "check",
        |()| String::new(),
        || {
            let mut seen = std::collections::HashSet::new();
            let fresh = lowered.iter().flatten().map(|(k, _)| k).filter(|k| seen.insert(k.source.name.clone()));
            fresh.map(|k| Ok(validate::check(&k.source, target)?)).collect::<Result<Vec<()>>>().map(|_| ())
        },
    )?;
    plan(stages, &graph, fusion, &lowered, options, &mut |source| Ok((Arc::new(source.clone()), Vec::new())))
}

/// Compiles `graph` with kernels that other sizes of the same program share: what fits a kernel of `templates` makes no new one. Where one has
/// to be made, `probes` are the program at sizes like this one, from which the kernel learns what differs.
pub fn compile_like(
    graph: &Graph,
    target: &Target,
    options: &CompileOptions,
    templates: &Templates,
    probes: impl FnOnce() -> Vec<Graph>,
) -> Result<Compiled> {
    let target = &Target { varying_sizes: true, ..target.clone() };
    let mut stages = Stages::new(options.keep_stages);
    let (graph, fusion, lowered) = lower_graph(&mut stages, graph, target, options)?;
    // What users wrote stays as it is.
    for (kernel, _) in lowered.iter().flatten().filter(|(kernel, _)| kernel.words.is_some()) {
        validate::check(&kernel.source, target)?;
    }
    if !lowered.iter().flatten().all(|(kernel, _)| kernel.words.is_some() || templates.serves(&kernel.source)) {
        for probe in probes() {
            if let Err(error) = learn(&probe, target, options, templates) {
                log::debug!("a size that was tried out does not compile: {error}");
            }
        }
    }
    plan(stages, &graph, fusion, &lowered, options, &mut |source| templates.bind(source, target))
}

/// Shows `templates` what kernels `graph` is lowered to, so that those of another size know what differs.
pub fn learn(graph: &Graph, target: &Target, options: &CompileOptions, templates: &Templates) -> Result<()> {
    let target = &Target { varying_sizes: true, ..target.clone() };
    let (graph, fusion, lowered) = lower_graph(&mut Stages::new(false), graph, target, options)?;
    lowered.iter().flatten().filter(|(kernel, _)| kernel.words.is_none()).for_each(|(kernel, _)| templates.learn(&kernel.source));
    // Which kernels write over an operand is seen when slots are planned.
    slots::plan(&graph, &fusion, &lowered, &options.donate, &mut |source| {
        templates.learn(source);
        Ok((Arc::new(source.clone()), Vec::new()))
    })?;
    Ok(())
}

/// The stages up to the kernels' texts.
fn lower_graph(
    stages: &mut Stages,
    graph: &Graph,
    target: &Target,
    options: &CompileOptions,
) -> Result<(Graph, fuse::FusionPlan, Vec<slots::Parts>)> {
    let (graph, fusion) = groups(graph, target, options, stages)?;
    let lowered = stages.run(
        "lower",
        |k: &Vec<Vec<_>>| print_loops(k),
        || fusion.groups.iter().map(|g| lower_group(&graph, g, target, options)).collect::<Result<Vec<_>>>(),
    )?;
    Ok((graph, fusion, lowered))
}

/// The stage `plan`, with the kernels and parameters that `bind` gives, and the result.
fn plan(
    mut stages: Stages,
    graph: &Graph,
    fusion: fuse::FusionPlan,
    lowered: &[slots::Parts],
    options: &CompileOptions,
    bind: slots::Bind<'_>,
) -> Result<Compiled> {
    let planned = stages.run(
        "plan",
        |p: &slots::Planned| format!("{:#?}", p.plan.commands),
        || slots::plan(graph, &fusion, lowered, &options.donate, bind),
    )?;
    let (groups, refusals, fusion) = (fusion.group_infos(graph), fusion.refusal_infos(graph), fusion.print(graph));
    let slots::Planned { plan, inputs, outputs, constants, kernels } = planned;
    let stages = stages.finish();
    Ok(Compiled { inner: Arc::new(Inner { plan, inputs, outputs, constants, kernels, stages, groups, refusals, fusion }) })
}

/// What the options want elementwise arithmetic on f16 to be computed in, if the target can.
fn arithmetic(target: &Target, options: &CompileOptions) -> Result<Halves> {
    match (options.f16_arithmetic, target.f16) {
        (false, _) => Ok(Halves::Widened),
        (true, true) => Ok(Halves::Native),
        (true, false) => Err(Error::unsupported(format!(
            "arithmetic in f16: target `{}` has no 16-bit floats in shaders; without `f16_arithmetic` tensors of f16 are computed in f32",
            target.name
        ))),
    }
}

/// The stages before lowering: the groups that become kernels, and the graph they are groups of.
fn groups(graph: &Graph, target: &Target, options: &CompileOptions, stages: &mut Stages) -> Result<(Graph, fuse::FusionPlan)> {
    use OptionalStage::{Fold, FoldScale, Layout, MergeProducts, Siblings};
    // Eager mode runs what the user wrote, one kernel for each operation; stages that look past one are not for it.
    let across = options.mode == Mode::Compiled;
    let with = |stage: OptionalStage| !options.without.contains(&stage);
    let fold = |graph: Graph| if with(Fold) { passes::fold(&graph) } else { Ok(graph) };
    let mut graph = stages.graph("capture", || Ok(graph.clone()))?;
    graph = stages.graph("decompose", || passes::decompose_for(&graph, arithmetic(target, options)?))?;
    graph = stages.graph("fold", || fold(graph))?;
    if across && with(FoldScale) {
        graph = stages.graph("fold_scale", || fold(passes::fold_scale(&graph)?))?;
    }
    if across && with(MergeProducts) {
        graph = stages.graph("merge_products", || passes::merge_products(&graph, target))?;
    }
    graph = stages.graph("stage", || fold(passes::stage(&graph, target)?))?;
    if with(Layout) {
        graph = stages.graph("layout", || passes::layout(&graph))?;
    }
    let print = |f: &fuse::FusionPlan| f.print(&graph);
    let mut fusion = stages.run("fuse", print, || Ok(fuse::fuse(&graph, target, options.mode, options.numerics)))?;
    if across && with(Siblings) {
        fusion = stages.run("siblings", print, || siblings::join(&graph, fusion, target, options.numerics))?;
    }
    Ok((graph, fusion))
}

/// Lowers one group of the plan to its kernels: one, or several where a tensor passes one binding. An error names the group.
fn lower_group(
    graph: &Graph,
    group: &fuse::Group,
    target: &Target,
    options: &CompileOptions,
) -> Result<Vec<(lower::LoweredKernel, chunk::Ranges)>> {
    let one = |graph: &Graph, group: &fuse::Group| {
        lower::group_as(graph, group, target, options.numerics, lower::Chooser::Tuning(&options.tuning))
            .map_err(|e| e.context(format_args!("the kernel of {}", known_as(graph, group.root))))
    };
    chunk::in_parts(graph, group, target, one)
}

fn print_loops(kernels: &[Vec<(lower::LoweredKernel, chunk::Ranges)>]) -> String {
    kernels.iter().flatten().map(|(k, _)| format!("{}\n{}\n", k.loops, k.source.wgsl)).collect()
}

/// What people know a node by: what it stems from, which is a node of their model, and what it is.
fn known_as(graph: &Graph, id: NodeId) -> String {
    let node = graph.node(id);
    let origin = graph.origins().get(node.origin.0 as usize).map_or("", String::as_str);
    format!("`{origin}` (%{}, {})", id.0, crate::ops::name(&node.op))
}

/// The refusal of a tensor past one binding that cannot be bound in parts, and why.
fn binding_error(graph: &Graph, id: NodeId, target: &Target, why: &str) -> Error {
    let ty = graph.ty(id);
    Error::limit(format!(
        "{}: a tensor {ty} takes {} bytes, one binding of target `{}` holds {}, and it cannot be bound in parts: {why}; split it, for \
         example along its first dimension",
        known_as(graph, id),
        ty.num_bytes(),
        target.name,
        target.max_binding_bytes
    ))
}
