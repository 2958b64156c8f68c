//! Groups with reductions: rows of equal length, each reduced once or several times, then the result row by row.
//!
//! All reductions of a group run over the same rows and columns. Reductions that depend on others come later: each level is one loop
//! over the columns, in which the values before it are computed again from memory, and a last loop writes the result where it has the
//! columns too.

use std::collections::BTreeMap;

use crate::compiler::fuse::Group;
use crate::compiler::lower::{Coords, LoweredKernel, Lowering, bytes, flops, label, origins};
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId, Op, Prim, ReduceOp};
use crate::plan::fold_workgroups;
use kernels_gen::emit::{self, Numerics};
use kernels_gen::index::{Index, Var, unflatten};
use kernels_gen::ir::{BufferId, Code, ExprId, Grid, Kernel, Lanes, LocalId, Stmt, ValueType};
use kernels_gen::{AdapterClass, Target};

/// Which elements one invocation handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Schedule {
    /// A row per invocation, four columns at a time where `vec` says so.
    RowSerial { vec: bool },
    /// Four neighbouring rows per invocation: for reductions along an outer axis.
    RowsVec,
    /// A row per workgroup of `size` invocations.
    RowPerWorkgroup { size: u32, vec: bool },
    /// The same with a fixed number of vec4 for each invocation, `steps`, written out: what a loop would load and compute again for
    /// each reduction and for the result is computed once and kept.
    RowHeld { size: u32, steps: usize },
}

impl Schedule {
    /// Invocations that share a row, if several do.
    fn row_size(self) -> Option<u32> {
        match self {
            Schedule::RowSerial { .. } | Schedule::RowsVec => None,
            Schedule::RowPerWorkgroup { size, .. } | Schedule::RowHeld { size, .. } => Some(size),
        }
    }
}

/// A reduction of the group.
struct Reduction {
    node: NodeId,
    op: ReduceOp,
    axes: Vec<usize>,
}

/// Rows and columns of a group.
struct Domain {
    rows: usize,
    cols: usize,
    /// Whether a result has an element for each column; else all have one for each row.
    full: bool,
    /// Shape before the reduction and the axes that are reduced.
    shape: Vec<usize>,
    axes: Vec<usize>,
}

impl Domain {
    /// Coordinates in the shape before the reduction of the element at `row` and `col`.
    fn coords(shape: &[usize], axes: &[usize], row: &Index, col: &Index) -> Vec<Index> {
        let pick = |reduced: bool| -> Vec<usize> { (0..shape.len()).filter(|d| axes.contains(d) == reduced).map(|d| shape[d]).collect() };
        // The last step of a workgroup's lanes reaches past the row, where a test keeps them out; the remainder says so to the algebra.
        let inner = pick(true);
        let col = col.modulo(inner.iter().product::<usize>().max(1) as i64);
        let (mut rows, mut cols) = (unflatten(row, &pick(false)).into_iter(), unflatten(&col, &inner).into_iter());
        let zero = || Index::from(0);
        (0..shape.len()).map(|d| if axes.contains(&d) { cols.next() } else { rows.next() }.unwrap_or_else(zero)).collect()
    }
}

fn reductions(graph: &Graph, group: &Group) -> Vec<Reduction> {
    let of = |&node: &NodeId| match &graph.node(node).op {
        Op::Prim(Prim::Reduce { op, axes }) => Some(Reduction { node, op: *op, axes: axes.clone() }),
        _ => None,
    };
    group.members.iter().filter_map(of).collect()
}

fn domain(graph: &Graph, group: &Group, reductions: &[Reduction]) -> Result<Domain> {
    let Some(first) = reductions.first() else {
        return Err(Error::internal("a reduce group without a reduction"));
    };
    let size = |r: &Reduction| {
        let rows = graph.ty(r.node).num_elems();
        let shape = &graph.ty(graph.node(r.node).inputs[0]).shape;
        (rows, r.axes.iter().map(|&a| shape[a]).product::<usize>())
    };
    let (rows, cols) = size(first);
    if reductions.iter().any(|r| size(r) != (rows, cols)) {
        return Err(Error::unsupported("the reductions run over rows of different number or length"));
    }
    let full = |id: NodeId| graph.ty(id).num_elems() != rows;
    if group.stored().any(|id| full(id) && graph.ty(id).num_elems() != rows * cols) {
        return Err(Error::unsupported("the result has neither the rows' size nor the whole one"));
    }
    let full = group.stored().any(full);
    let shape = graph.ty(graph.node(first.node).inputs[0]).shape.clone();
    Ok(Domain { rows, cols, full, shape, axes: first.axes.clone() })
}

/// Level of each reduction: one more than the highest of those it depends on inside the group.
fn levels(graph: &Graph, group: &Group) -> BTreeMap<NodeId, usize> {
    let mut level: BTreeMap<NodeId, usize> = BTreeMap::new();
    for &id in &group.members {
        let node = graph.node(id);
        let below = node.inputs.iter().filter_map(|i| level.get(i)).copied().max().unwrap_or(0);
        let own = matches!(node.op, Op::Prim(Prim::Reduce { .. }));
        level.insert(id, below + usize::from(own));
    }
    level.retain(|id, _| matches!(graph.node(*id).op, Op::Prim(Prim::Reduce { .. })));
    level
}

fn schedule(domain: &Domain, target: &Target, phases: usize) -> Schedule {
    let vec = domain.cols.is_multiple_of(4);
    let innermost = domain.shape.iter().rposition(|&s| s != 1);
    let outer_axis = innermost.is_some_and(|d| !domain.axes.contains(&d));
    // What one invocation may loop over when it takes a whole row, with a margin for the loops' heads.
    let bound = target.max_loop_iterations.map_or(u64::MAX, |n| n - n / 8);
    let serial = |width: usize| (phases as u64).saturating_mul(domain.cols.div_ceil(width) as u64) <= bound;
    let enough_rows = match target.class {
        AdapterClass::Software => 128,
        _ => 4096,
    };
    if outer_axis && domain.rows.is_multiple_of(4) && serial(1) {
        return Schedule::RowsVec;
    }
    if let Some(held) = held(domain, target)
        && phases > 1
        && !outer_axis
    {
        return held;
    }
    let short = domain.cols <= 64;
    let long_serial = target.class == AdapterClass::Software || outer_axis;
    let rows = target.varying_sizes || domain.rows >= enough_rows;
    if serial(if vec { 4 } else { 1 }) && (short || (long_serial && rows)) {
        return Schedule::RowSerial { vec };
    }
    let width = if vec { 4 } else { 1 };
    let size = match target.varying_sizes {
        true => 128,
        false => (domain.cols / width).next_power_of_two().clamp(32, 256) as u32,
    };
    Schedule::RowPerWorkgroup { size: size.min(target.max_workgroup_invocations), vec }
}

/// The schedule that keeps a row, where its length divides evenly among invocations that can hold their parts.
fn held(domain: &Domain, target: &Target) -> Option<Schedule> {
    let vecs = domain.cols / 4;
    // Software drivers run a workgroup of eight in step, so that combining its sums is cheap; GPUs want whole subgroups.
    let (size, most) = match target.class {
        AdapterClass::Software => (8, 32),
        _ => (vecs.next_power_of_two().clamp(32, 256).min(target.max_workgroup_invocations as usize), 8),
    };
    let steps = vecs / size;
    let even = domain.cols.is_multiple_of(4 * size) && domain.cols >= 256 && steps <= most;
    (even && !target.varying_sizes).then_some(Schedule::RowHeld { size: size as u32, steps })
}

pub(super) fn lower(graph: &Graph, group: &Group, target: &Target, numerics: Numerics) -> Result<LoweredKernel> {
    let reductions = reductions(graph, group);
    let domain = domain(graph, group, &reductions)?;
    let levels = levels(graph, group);
    let num_levels = levels.values().copied().max().unwrap_or(0);
    let chosen = schedule(&domain, target, num_levels + usize::from(domain.full));
    let made = with_schedule(graph, group, target, numerics, (&reductions, &domain, &levels), chosen);
    match made {
        // Four rows at once are four positions whose coordinates the algebra must find equal; a single row's are simpler.
        Err(_) if chosen == Schedule::RowsVec => {
            let one = Schedule::RowSerial { vec: false };
            with_schedule(graph, group, target, numerics, (&reductions, &domain, &levels), one)
        }
        made => made,
    }
}

fn with_schedule(
    graph: &Graph,
    group: &Group,
    target: &Target,
    numerics: Numerics,
    (reductions, domain, levels): (&[Reduction], &Domain, &BTreeMap<NodeId, usize>),
    schedule: Schedule,
) -> Result<LoweredKernel> {
    let num_levels = levels.values().copied().max().unwrap_or(0);
    let mut lowering = Lowering::new(graph, group);
    let (grid, workgroup_size, lane) = match schedule {
        Schedule::RowSerial { .. } => {
            let var = lowering.builder.var(domain.rows as u64);
            lowering.row = vec![Index::from(var)];
            (Grid::Invocations { var }, 64, None)
        }
        Schedule::RowsVec => {
            let var = lowering.builder.var(domain.rows as u64 / 4);
            lowering.row = (0..4).map(|l| Index::from(var).mul(4).offset(l)).collect();
            (Grid::Invocations { var }, 64, None)
        }
        Schedule::RowPerWorkgroup { size, .. } | Schedule::RowHeld { size, .. } => {
            let (group, lane) = (lowering.builder.var(domain.rows as u64), lowering.builder.var(u64::from(size)));
            lowering.row = vec![Index::from(group)];
            (Grid::Workgroups { group, lane }, size, Some(lane))
        }
    };
    let mut body = Vec::new();
    for level in 1..=num_levels {
        let present: Vec<&Reduction> = reductions.iter().filter(|r| levels.get(&r.node) == Some(&level)).collect();
        lowering.level(&present, domain, schedule, lane, &mut body)?;
    }
    lowering.result(domain, schedule, lane, &mut body)?;

    let inputs: Vec<_> = lowering.buffers.iter().map(|(id, _)| *id).collect();
    let kernel = Kernel {
        label: label(graph, group),
        origins: origins(graph, group),
        grid,
        workgroup_size,
        code: lowering.builder.finish().on(target),
        body,
        flops: flops(graph, group),
        bytes: bytes(graph, group, &inputs),
    };
    if !stores_words(&kernel.code, &kernel.body) {
        return Err(Error::unsupported("packed elements are stored by whole words, this reduction's results one by one"));
    }
    Ok(LoweredKernel {
        words: None,
        choice: None,
        overwriting: None,
        source: emit::kernel(&kernel, numerics)?,
        loops: kernel.to_string(),
        inputs,
        workgroups: fold_workgroups(kernel.grid.num_workgroups(kernel.workgroup_size), target.max_workgroups_per_dim)?,
    })
}

/// Whether all stores of packed elements are of four neighbours, which are whole words.
fn stores_words(code: &Code, body: &[Stmt]) -> bool {
    body.iter().all(|stmt| match stmt {
        Stmt::Loop { body, .. } | Stmt::If { body, .. } => stores_words(code, body),
        Stmt::Store { buffer, index, .. } => code.buffers[buffer.0 as usize].dtype.elems_per_word() == 1 || index.vec4().is_some(),
        _ => true,
    })
}

/// How an invocation goes through the columns of its rows: by a loop, or written out.
struct Columns {
    /// The loop's variable, if there is a loop.
    var: Option<Var>,
    /// Columns of one iteration; without a loop, of each step.
    steps: Vec<Vec<Index>>,
    /// The test that they exist.
    inside: Option<ExprId>,
}

impl Columns {
    /// Elements of one step.
    fn width(&self) -> u8 {
        self.steps.first().map_or(1, |cols| cols.len() as u8)
    }

    /// The statements of all steps, in their loop and behind their test.
    fn run(&self, steps: Vec<Stmt>, body: &mut Vec<Stmt>) {
        let steps = match self.inside {
            Some(condition) => vec![Stmt::If { condition, body: steps }],
            None => steps,
        };
        match self.var {
            Some(var) => body.push(Stmt::Loop { var, body: steps }),
            None => body.extend(steps),
        }
    }
}

impl Lowering<'_> {
    fn columns(&mut self, domain: &Domain, schedule: Schedule, lane: Option<Var>) -> Columns {
        let lanes = |base: Index, vec: bool| -> Vec<Index> { (0..if vec { 4 } else { 1 }).map(|l| base.offset(l)).collect() };
        let own = lane.map_or(Index::from(0), Index::from);
        match schedule {
            Schedule::RowSerial { vec } => {
                let width = if vec { 4 } else { 1 };
                let var = self.builder.var((domain.cols / width) as u64);
                Columns { var: Some(var), steps: vec![lanes(Index::from(var).mul(width as i64), vec)], inside: None }
            }
            Schedule::RowsVec => {
                let var = self.builder.var(domain.cols as u64);
                Columns { var: Some(var), steps: vec![vec![Index::from(var); 4]], inside: None }
            }
            Schedule::RowPerWorkgroup { size, vec } => {
                let width = if vec { 4 } else { 1 };
                let steps = domain.cols.div_ceil(width);
                let var = self.builder.var(steps.div_ceil(size as usize) as u64);
                let step = Index::from(var).mul(i64::from(size)).add(&own);
                let inside = self.builder.in_bounds(vec![step.clone()], steps as i64);
                let inside = self.builder.known_bool(inside).is_none().then_some(inside);
                Columns { var: Some(var), steps: vec![lanes(step.mul(width as i64), vec)], inside }
            }
            Schedule::RowHeld { size, steps } => {
                let step = |j: usize| lanes(own.offset(j as i64 * i64::from(size)).mul(4), true);
                Columns { var: None, steps: (0..steps).map(step).collect(), inside: None }
            }
        }
    }

    fn coords(&self, shape: &[usize], axes: &[usize], cols: &[Index]) -> Coords {
        let row = self.row_lanes(cols.len());
        row.iter().zip(cols).map(|(r, c)| Domain::coords(shape, axes, r, c)).collect()
    }

    /// One loop over the columns that computes all reductions of a level.
    fn level(
        &mut self,
        present: &[&Reduction],
        domain: &Domain,
        schedule: Schedule,
        lane: Option<Var>,
        body: &mut Vec<Stmt>,
    ) -> Result<()> {
        let columns = self.columns(domain, schedule, lane);
        let width = columns.width();
        let mut sums: Vec<LocalId> = Vec::new();
        for r in present {
            let scalar = self.ty(r.node).dtype.scalar();
            let sum = self.builder.local(ValueType { scalar, width });
            let identity = self.builder.literal(r.op.identity(scalar));
            let identity = self.builder.widen(identity, width);
            body.push(Stmt::Declare { local: sum, value: identity });
            sums.push(sum);
        }
        let mut inner = Vec::new();
        for cols in &columns.steps {
            for (r, &sum) in present.iter().zip(&sums) {
                let input = self.graph.node(r.node).inputs[0];
                let ty = self.ty(input);
                let coords = self.coords(&ty.shape, &r.axes, cols);
                let value = self.value(input, &coords)?;
                let value = self.builder.widen(value, width);
                let present = self.builder.get(sum);
                let combined = self.builder.binary(r.op.combine(ty.dtype.scalar()), present, value);
                inner.push(Stmt::Assign { local: sum, value: combined });
            }
        }
        columns.run(inner, body);
        for (r, sum) in present.iter().zip(sums) {
            let scalar = self.ty(self.graph.node(r.node).inputs[0]).dtype.scalar();
            let combine = r.op.combine(scalar);
            let mut local = sum;
            if width == 4 && schedule != Schedule::RowsVec {
                let value = self.builder.get(sum);
                let lanes: Vec<ExprId> = (0..4).map(|l| self.builder.lane(value, l)).collect();
                let (a, b) = (self.builder.binary(combine, lanes[0], lanes[1]), self.builder.binary(combine, lanes[2], lanes[3]));
                let value = self.builder.binary(combine, a, b);
                local = self.builder.local(ValueType { scalar, width: 1 });
                body.push(Stmt::Declare { local, value });
            }
            if schedule.row_size().is_some() {
                body.push(Stmt::WorkgroupReduce { local, op: r.op });
            }
            self.reduced.insert(r.node, local);
        }
        Ok(())
    }

    /// Writes the results: in one more loop over the columns, or once a row.
    fn result(&mut self, domain: &Domain, schedule: Schedule, lane: Option<Var>, body: &mut Vec<Stmt>) -> Result<()> {
        let (of_columns, of_rows): (Vec<NodeId>, Vec<NodeId>) = self.group.stored().partition(|id| self.ty(*id).num_elems() != domain.rows);
        let row = self.row.clone();
        let mut row_values = Vec::new();
        for &id in &of_rows {
            let coords: Coords = row.iter().map(|r| unflatten(r, &self.ty(id).shape)).collect();
            let value = self.value(id, &coords)?;
            row_values.push((id, self.builder.widen(value, row.len() as u8)));
        }
        let columns = domain.full.then(|| self.columns(domain, schedule, lane));
        let mut column_values = Vec::new();
        for cols in columns.iter().flat_map(|columns| &columns.steps) {
            let places = self.coords(&domain.shape, &domain.axes, cols);
            let flat: Vec<Index> = places.iter().map(|c| kernels_gen::index::flatten(c, &domain.shape)).collect();
            for &id in &of_columns {
                let coords: Coords = flat.iter().map(|f| unflatten(f, &self.ty(id).shape)).collect();
                let value = self.value(id, &coords)?;
                column_values.push((id, flat.clone(), self.builder.widen(value, cols.len() as u8)));
            }
        }
        // Results are bound last, once all loads are known.
        let buffers: BTreeMap<NodeId, BufferId> = self.group.stored().enumerate().map(|(nth, id)| (id, self.output_of(id, nth))).collect();
        let stores = row_values.into_iter().map(|(id, value)| Stmt::Store { buffer: buffers[&id], index: Lanes(row.clone()), value });
        let stores: Vec<Stmt> = stores.collect();
        match lane {
            Some(lane) if !stores.is_empty() => {
                let condition = self.builder.in_bounds(vec![Index::from(lane)], 1);
                body.push(Stmt::If { condition, body: stores });
            }
            _ => body.extend(stores),
        }
        if let Some(columns) = columns {
            let store = |(id, flat, value)| Stmt::Store { buffer: buffers[&id], index: Lanes(flat), value };
            columns.run(column_values.into_iter().map(store).collect(), body);
        }
        Ok(())
    }
}
