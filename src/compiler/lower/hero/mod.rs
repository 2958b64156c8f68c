//! Matrix products, attention and convolutions: holes of a skeleton, filled with the values of the group.
//!
//! What stands before the hero becomes its loads, what stands after it its stores.

mod attention_holes;
mod conv_holes;
mod gemm_holes;
mod signature;

use std::fmt::Display;

use crate::compiler::fuse::Group;
use crate::compiler::lower::{Chooser, Coords, HeroChoice, HeroValue, LoweredKernel, Lowering, bytes, flops, label, origins};
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, NodeId, Op, Prim};
use kernels_gen::emit::{self, Finish, Numerics};
use kernels_gen::heroes::Skeleton;
use kernels_gen::heroes::attention::{self, AttentionProblem};
use kernels_gen::heroes::conv::{self, ConvProblem};
use kernels_gen::heroes::gemm::{self, GemmProblem, Terms};
use kernels_gen::heroes::tiles::{self, Candidates};
use kernels_gen::index::{Index, Var, flatten, unflatten};
use kernels_gen::ir::{BufferId, Expr, ExprId, Function, Lanes, Stmt};
use kernels_gen::{DType, ScalarType, Target, WgslFeatures};

pub(super) use attention_holes::problem as attention_problem;

/// Whether one kernel of the target can compute an attention.
pub(in crate::compiler) fn holds_attention(graph: &Graph, node: &Node, target: &Target) -> bool {
    let Op::Prim(Prim::Attention { causal, .. }) = &node.op else { return false };
    attention_problem(graph, node, *causal)
        .is_ok_and(|problem| attention::check(&problem, &tiles::attention(target, &problem), target).is_ok())
}

/// What the tuner can choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::compiler) struct Variants {
    /// What is tuned as one.
    pub key: String,
    /// Names of the configurations, the table's choice first.
    pub configs: Vec<String>,
}

pub(super) fn lower(
    graph: &Graph,
    group: &Group,
    hero: NodeId,
    target: &Target,
    numerics: Numerics,
    chooser: Chooser<'_>,
) -> Result<LoweredKernel> {
    let (holes, problem) = problem(graph, group, hero)?;
    let key = problem.key(graph, group, numerics);
    match problem {
        Problem::Gemm(problem) => {
            let all = || tiles::gemm_candidates(target, &problem, Candidates::All);
            let (config, choice) = choose(chooser, key, tiles::gemm(target, &problem), all)?;
            let skeleton = gemm::skeleton(&problem, &config, target, "ENTRY")?;
            holes.finish(skeleton, format!("{problem:?}\n{config:?}"), choice, target, numerics)
        }
        Problem::Conv(problem) => {
            let all = || tiles::conv_candidates(target, &problem, Candidates::All);
            let (config, choice) = choose(chooser, key, tiles::conv(target, &problem), all)?;
            let skeleton = conv::skeleton(&problem, &config, target, "ENTRY")?;
            holes.finish(skeleton, format!("{problem:?}\n{config:?}"), choice, target, numerics)
        }
        Problem::Attention(problem) => {
            let all = || tiles::attention_candidates(target, &problem, Candidates::All);
            let (config, choice) = choose(chooser, key, tiles::attention(target, &problem), all)?;
            let skeleton = attention::skeleton(&problem, &config, target, "ENTRY")?;
            holes.finish(skeleton, format!("{problem:?}\n{config:?}"), choice, target, numerics)
        }
    }
}

pub(super) fn variants(
    graph: &Graph,
    group: &Group,
    hero: NodeId,
    target: &Target,
    numerics: Numerics,
    which: Candidates,
) -> Result<Variants> {
    let (_, problem) = problem(graph, group, hero)?;
    let key = problem.key(graph, group, numerics);
    let configs = match problem {
        Problem::Gemm(problem) => names(&tiles::gemm_candidates(target, &problem, which)),
        Problem::Conv(problem) => names(&tiles::conv_candidates(target, &problem, which)),
        Problem::Attention(problem) => names(&tiles::attention_candidates(target, &problem, which)),
    };
    Ok(Variants { key, configs })
}

fn names<C: Display>(configs: &[C]) -> Vec<String> {
    configs.iter().map(ToString::to_string).collect()
}

/// What a hero computes.
enum Problem {
    Gemm(GemmProblem),
    Conv(ConvProblem),
    Attention(AttentionProblem),
}

impl Problem {
    /// What is tuned as one: the kind, the class of sizes, and a digest of what is fused with the hero.
    fn key(&self, graph: &Graph, group: &Group, numerics: Numerics) -> String {
        let class = match self {
            Problem::Gemm(problem) => problem.class(),
            Problem::Conv(problem) => problem.class(),
            Problem::Attention(problem) => problem.class(),
        };
        format!("{} {class} {}", label(graph, group), signature::of(graph, group, numerics))
    }
}

/// The holes of a group's hero and the problem they belong to.
fn problem<'a>(graph: &'a Graph, group: &'a Group, hero: NodeId) -> Result<(Holes<'a>, Problem)> {
    if graph.ty(group.root).num_elems() != graph.ty(hero).num_elems() {
        return Err(Error::unsupported("the epilogue changes the number of elements"));
    }
    let mut holes = Holes { lowering: Lowering::new(graph, group), hero, functions: Vec::new() };
    let problem = match &graph.node(hero).op {
        Op::Prim(Prim::Dot) => Problem::Gemm(holes.gemm(Terms::F32)?),
        Op::Prim(Prim::DotI8) => Problem::Gemm(holes.gemm(Terms::I8)?),
        Op::Prim(Prim::Attention { scale, causal }) => Problem::Attention(holes.attention(scale.get(), *causal)?),
        Op::Prim(Prim::Conv { strides, pads_low, dilations, groups, .. }) => {
            Problem::Conv(holes.conv(*strides, *pads_low, *dilations, *groups)?)
        }
        _ => return Err(Error::internal("a hero that is no matrix product, attention or convolution")),
    };
    Ok((holes, problem))
}

/// The configuration that `chooser` picks: `table`, or one of `all`.
fn choose<C: Display>(chooser: Chooser<'_>, key: String, table: C, all: impl FnOnce() -> Vec<C>) -> Result<(C, HeroChoice)> {
    let named = |name: &str| all().into_iter().find(|c| c.to_string() == name);
    let (config, tuned) = match chooser {
        Chooser::Table => (table, false),
        // A choice of another version may be none any more; what was measured then says nothing now.
        Chooser::Tuning(tuning) => match tuning.get(&key).and_then(|choice| named(&choice.config)) {
            Some(config) => (config, true),
            None => (table, false),
        },
        Chooser::Named(name) => match named(name) {
            Some(config) => (config, true),
            None => return Err(Error::internal(format!("`{name}` is no candidate for {key}"))),
        },
    };
    let choice = HeroChoice { key, config: config.to_string(), tuned };
    Ok((config, choice))
}

/// The result's buffer while holes are made: it is bound last, once all that is loaded is known.
const UNBOUND: BufferId = BufferId(u32::MAX);

/// A size as the skeletons count it.
fn size(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| Error::limit(format!("a dimension of size {n}: kernels count up to 2^32 - 1")))
}

/// One index parameter of a hole: its variable, and its value in each lane.
struct Param {
    name: &'static str,
    var: Var,
    scale: i64,
    lanes: Vec<Index>,
}

struct Holes<'a> {
    lowering: Lowering<'a>,
    hero: NodeId,
    functions: Vec<Function>,
}

impl Holes<'_> {
    /// A parameter with values `0..extent`, the same in all `width` lanes.
    fn one(&mut self, name: &'static str, extent: u32, width: usize) -> Param {
        let var = self.lowering.builder.var(u64::from(extent));
        Param { name, var, scale: 1, lanes: vec![Index::from(var); width] }
    }

    /// A parameter that is a multiple of four and stands for four neighbouring values.
    fn four(&mut self, name: &'static str, extent: u32) -> Param {
        let var = self.lowering.builder.var(u64::from(extent.div_ceil(4)));
        let lanes = (0..4).map(|l| Index::from(var).mul(4).offset(l)).collect();
        Param { name, var, scale: 4, lanes }
    }

    fn function(&mut self, name: &str, params: &[Param], value: Option<&str>, body: Vec<Stmt>, results: Vec<ExprId>) {
        let mut list: Vec<String> = params.iter().map(|p| format!("{}: u32", p.name)).collect();
        list.extend(value.map(str::to_string));
        let of = |p: &Param| (p.var, if p.scale == 1 { p.name.to_string() } else { format!("{} / {}u", p.name, p.scale) });
        let vars = params.iter().map(of).collect();
        self.functions.push(Function { name: name.to_string(), params: list, vars, body, results });
    }

    /// A hole that loads operand `operand` of the hero; its coordinates are the parameters that `coords` picks.
    fn load(&mut self, name: &str, operand: usize, params: Vec<Param>, coords: impl Fn(&[&Index]) -> Vec<Index>) -> Result<ExprId> {
        let node = self.lowering.graph.node(self.hero).inputs[operand];
        let width = params.iter().map(|p| p.lanes.len()).max().unwrap_or(1);
        let lane = |l: usize| coords(&params.iter().map(|p| &p.lanes[l]).collect::<Vec<_>>());
        let places: Coords = (0..width).map(lane).collect();
        let value = self.lowering.value(node, &places)?;
        let value = self.lowering.builder.widen(value, width as u8);
        self.function(name, &params, None, Vec::new(), vec![value]);
        Ok(value)
    }

    /// A hole that loads the [`RUN`](gemm::RUN) elements of operand `operand` from parameter `along` on, where that takes fewer loads than four
    /// at a time; the parameter has `extent` values. Returns whether there is one.
    fn load_run(
        &mut self,
        name: &str,
        operand: usize,
        mut params: Vec<Param>,
        along: usize,
        extent: u32,
        coords: impl Fn(&[&Index]) -> Vec<Index>,
    ) -> Result<bool> {
        let run = i64::from(gemm::RUN);
        if extent < gemm::RUN {
            return Ok(false);
        }
        let node = self.lowering.graph.node(self.hero).inputs[operand];
        let var = self.lowering.builder.var(u64::from(extent / gemm::RUN));
        let mut values = Vec::new();
        for first in (0..run).step_by(4) {
            params[along].lanes = (first..first + 4).map(|l| Index::from(var).mul(run).offset(l)).collect();
            let lane = |l: usize| coords(&params.iter().map(|p| &p.lanes[l]).collect::<Vec<_>>());
            let places: Coords = (0..4).map(lane).collect();
            let value = self.lowering.value(node, &places)?;
            values.push(self.lowering.builder.widen(value, 4));
        }
        let alone = values.iter().map(|&value| self.loads(&[value]).map_or(0, |loads| loads.len())).sum();
        let fewer = self.loads(&values).is_some_and(|loads| (1..alone).contains(&loads.len()));
        if fewer {
            (params[along].var, params[along].scale) = (var, run);
            self.function(name, &params, None, Vec::new(), values);
        }
        Ok(fewer)
    }

    /// Takes back the hole made last.
    fn drop_last(&mut self) {
        self.functions.pop();
    }

    /// Whether all four-lane loads behind a value take neighbours at once; a word that four lanes share is one load too.
    fn is_vector(&self, value: ExprId) -> bool {
        self.loads(&[value]).is_some_and(|loads| !loads.is_empty())
    }

    /// Whether all loads behind a value of four lanes give one word to all of them, so that more lanes may share it.
    fn shares_words(&self, value: ExprId) -> bool {
        self.loads(&[value]).is_some_and(|loads| loads.iter().all(|width| *width == 1))
    }

    /// Widths of the different loads behind values, if each gives one word to all lanes or takes neighbours at once.
    fn loads(&self, values: &[ExprId]) -> Option<Vec<u8>> {
        let (mut open, mut seen, mut loads) = (values.to_vec(), std::collections::HashSet::new(), Vec::new());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let expr = self.lowering.builder.expr(id);
            match expr {
                Expr::Load { index, .. } if index.width() == 4 && index.vec4().is_none() => return None,
                Expr::Load { index, .. } => loads.push(index.width()),
                // Lanes that were loaded one by one.
                Expr::Compose(_) => return None,
                _ => {}
            }
            expr.for_each_operand(&mut |e| open.push(e));
        }
        Some(loads)
    }

    /// Whether the result is stored element by element: rows of whole words are not, where elements are packed, and need no hole for it.
    fn stores_elements(&self, row: u32) -> bool {
        self.lowering.ty(self.lowering.group.root).dtype.elems_per_word() == 1 || !row.is_multiple_of(4)
    }

    /// A hole that stores results; `place` gives their position in the hero's value.
    fn store(&mut self, name: &str, params: Vec<Param>, place: impl Fn(&[&Index]) -> Vec<Index>) -> Result<()> {
        let shape = &self.lowering.ty(self.hero).shape;
        let width = params.iter().map(|p| p.lanes.len()).max().unwrap_or(1);
        let lane = |l: usize| flatten(&place(&params.iter().map(|p| &p.lanes[l]).collect::<Vec<_>>()), shape);
        let position: Vec<Index> = (0..width).map(lane).collect();
        let scalar = match self.lowering.ty(self.hero).dtype {
            DType::I32 => ScalarType::I32,
            _ => ScalarType::F32,
        };
        let value = self.lowering.builder.argument("value", scalar, width as u8);
        self.lowering.hero = Some(HeroValue { node: self.hero, position: position.clone(), value });
        let root = self.lowering.group.root;
        let root_shape = &self.lowering.ty(root).shape;
        let coords = position.iter().map(|p| unflatten(p, root_shape)).collect();
        let result = self.lowering.value(root, &coords)?;
        let result = self.lowering.builder.widen(result, width as u8);
        let position = Lanes(position);
        if self.lowering.ty(root).dtype.elems_per_word() > 1 && position.vec4().is_none() {
            return Err(Error::unsupported("packed elements are stored by whole words, these rows one by one"));
        }
        let ty = if width == 4 { format!("value: vec4<{}>", scalar.wgsl()) } else { format!("value: {}", scalar.wgsl()) };
        let store = Stmt::Store { buffer: UNBOUND, index: position, value: result };
        self.function(name, &params, Some(&ty), vec![store], Vec::new());
        Ok(())
    }

    fn finish(
        mut self,
        skeleton: Skeleton,
        loops: String,
        choice: HeroChoice,
        target: &Target,
        numerics: Numerics,
    ) -> Result<LoweredKernel> {
        let output = self.lowering.output();
        for function in &mut self.functions {
            for stmt in &mut function.body {
                if let Stmt::Store { buffer, .. } = stmt {
                    *buffer = output;
                }
            }
        }
        let Lowering { graph, group, builder, buffers, .. } = self.lowering;
        let inputs: Vec<NodeId> = buffers.iter().map(|(id, _)| *id).collect();
        let functions = emit::functions(&builder.finish().on(target), &self.functions, numerics);
        let source = emit::finish(Finish {
            label: &label(graph, group),
            origins: &origins(graph, group),
            text: format!("{}{}\n{}", functions.bindings_text, functions.text, skeleton.wgsl),
            bindings: functions.bindings,
            workgroup_size: skeleton.workgroup_size,
            workgroup_bytes: skeleton.workgroup_bytes,
            features: WgslFeatures { subgroups: skeleton.subgroups, ..functions.features },
            flops: flops(graph, group),
            bytes: bytes(graph, group, &inputs),
            max_iterations: skeleton.max_iterations,
        });
        let by = if choice.tuned { "measurement" } else { "table" };
        let loops = format!("{loops}\nchosen by {by}: {}\n{}", choice.config, choice.key);
        Ok(LoweredKernel { overwriting: None, words: None, source, choice: Some(choice), loops, inputs, workgroups: skeleton.workgroups })
    }
}
