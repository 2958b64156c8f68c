//! Groups around an operation whose kernel has a loop of its own: scans, sorts, searches and sums of segments.
//!
//! One invocation goes through a row, a run or a segment. What stands before the operation is part of its loads, what stands after it of
//! its store.

use crate::compiler::fuse::Group;
use crate::compiler::lower::{HeroValue, LoweredKernel, Lowering, bytes, flops, label, origins};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Graph, NodeId, Op, Prim, ReduceOp, UnaryOp};
use crate::plan::fold_workgroups;
use kernels_gen::emit::{self, Numerics};
use kernels_gen::index::{Index, Var, flatten, unflatten};
use kernels_gen::ir::{BufferId, ExprId, Grid, Kernel, Lanes, LocalId, Stmt, ValueType};
use kernels_gen::scalar::Literal;
use kernels_gen::{ScalarType, Target};

/// Invocations of a workgroup.
const WORKGROUP: u32 = 64;

/// The result's buffer while statements are made: it is bound last, once all that is loaded is known.
const UNBOUND: BufferId = BufferId(u32::MAX);

pub(super) fn lower(graph: &Graph, group: &Group, node: NodeId, target: &Target, numerics: Numerics) -> Result<LoweredKernel> {
    let (root, own) = (graph.ty(group.root), graph.ty(node));
    if root.dtype.elems_per_word() > 1 {
        return Err(Error::unsupported("packed elements are stored by whole words, the results of a loop one by one"));
    }
    if root.num_elems() != own.num_elems() {
        return Err(Error::unsupported("what follows the loop changes the number of elements"));
    }
    let mut serial = Serial { lowering: Lowering::new(graph, group), node, body: Vec::new() };
    let Op::Prim(prim) = &graph.node(node).op else {
        return Err(Error::internal("a composite reached lowering"));
    };
    let var = match prim {
        Prim::Scan { op, axis } => serial.scan(*op, *axis)?,
        Prim::Argsort { run, descending } => serial.argsort(*run, *descending)?,
        Prim::MergeRuns { run, descending } => serial.merge(*run, *descending)?,
        Prim::SearchSorted => serial.search()?,
        Prim::Segment { op, block } => serial.segment(*op, *block)?,
        _ => return Err(Error::internal("an operation without a loop of its own")),
    };
    serial.finish(var, target, numerics)
}

struct Serial<'a> {
    lowering: Lowering<'a>,
    node: NodeId,
    body: Vec<Stmt>,
}

impl Serial<'_> {
    fn shape(&self, operand: usize) -> Vec<usize> {
        self.lowering.ty(self.lowering.graph.node(self.node).inputs[operand]).shape.clone()
    }

    /// Value of an operand at coordinates.
    fn operand(&mut self, operand: usize, coords: Vec<Index>) -> Result<ExprId> {
        let id = self.lowering.graph.node(self.node).inputs[operand];
        self.lowering.value(id, &vec![coords])
    }

    fn int(&mut self, value: i64) -> ExprId {
        self.lowering.builder.literal(Literal::I32(value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32))
    }

    fn number(&mut self, index: &Index) -> ExprId {
        let index = self.lowering.builder.index(vec![index.clone()]);
        self.lowering.builder.cast(ScalarType::I32, index)
    }

    /// An integer as an index; it is brought into `0..extent` first.
    fn place(&mut self, value: ExprId, extent: usize) -> Index {
        let (zero, last) = (self.int(0), self.int(extent as i64 - 1));
        let value = self.binary(BinaryOp::Min, value, last);
        let value = self.binary(BinaryOp::Max, value, zero);
        self.inside(value, extent)
    }

    /// An integer that lies in `0..extent` as an index.
    fn inside(&mut self, value: ExprId, extent: usize) -> Index {
        self.lowering.builder.data_index(value, extent as i64, 1).swap_remove(0)
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        self.lowering.builder.binary(op, a, b)
    }

    fn not(&mut self, x: ExprId) -> ExprId {
        self.lowering.builder.unary(UnaryOp::Not, x)
    }

    fn declare(&mut self, value: ExprId, body: &mut Vec<Stmt>) -> LocalId {
        let ty = ValueType { scalar: self.lowering.builder.ty(value).scalar, width: 1 };
        let local = self.lowering.builder.local(ty);
        body.push(Stmt::Declare { local, value });
        local
    }

    fn get(&mut self, local: LocalId) -> ExprId {
        self.lowering.builder.get(local)
    }

    /// Whether key `a` stands strictly before key `b`: NaN is above all.
    fn before(&mut self, descending: bool, a: ExprId, b: ExprId) -> ExprId {
        let (low, high) = if descending { (b, a) } else { (a, b) };
        let less = self.binary(BinaryOp::Lt, low, high);
        if self.lowering.builder.ty(a).scalar != ScalarType::F32 {
            return less;
        }
        let (low, high) = (self.lowering.builder.unary(UnaryOp::IsNan, low), self.lowering.builder.unary(UnaryOp::IsNan, high));
        let number = self.not(low);
        let above = self.binary(BinaryOp::And, high, number);
        self.binary(BinaryOp::Or, less, above)
    }

    /// The statement that stores `value`, the operation's at row-major `position`, with what follows it.
    fn store(&mut self, position: Index, value: ExprId) -> Result<Stmt> {
        let root = self.lowering.group.root;
        let value = if root == self.node {
            value
        } else {
            let coords = unflatten(&position, &self.lowering.ty(root).shape);
            self.lowering.hero = Some(HeroValue { node: self.node, position: vec![position.clone()], value });
            self.lowering.value(root, &vec![coords])?
        };
        Ok(Stmt::Store { buffer: UNBOUND, index: Lanes(vec![position]), value })
    }

    /// One row after another along the axis, each by one invocation.
    fn scan(&mut self, op: ReduceOp, axis: usize) -> Result<Var> {
        let shape = self.shape(0);
        let others: Vec<usize> = (0..shape.len()).filter(|&d| d != axis).map(|d| shape[d]).collect();
        let row = self.lowering.builder.var(others.iter().product::<usize>() as u64);
        let step = self.lowering.builder.var(shape[axis] as u64);
        let mut coords = unflatten(&Index::from(row), &others);
        coords.insert(axis, Index::from(step));
        let scalar = self.lowering.ty(self.node).dtype.scalar();
        let identity = self.lowering.builder.literal(op.identity(scalar));
        let mut body = Vec::new();
        let sum = self.declare(identity, &mut body);
        let value = self.operand(0, coords.clone())?;
        let present = self.get(sum);
        let combined = self.binary(op.combine(scalar), present, value);
        let store = self.store(flatten(&coords, &shape), present)?;
        body.push(Stmt::Loop { var: step, body: vec![Stmt::Assign { local: sum, value: combined }, store] });
        self.body = body;
        Ok(row)
    }

    /// Each element counts those of its run that stand before it: that is its place.
    fn argsort(&mut self, run: usize, descending: bool) -> Result<Var> {
        let [rows, n] = self.matrix(0)?;
        let run = run.min(n);
        let var = self.lowering.builder.var((rows * n) as u64);
        let (row, own) = (Index::from(var).div(n as i64), Index::from(var).modulo(n as i64));
        let first = own.div(run as i64).mul(run as i64);
        let key = self.operand(0, vec![row.clone(), own.clone()])?;
        let mut body = Vec::new();
        let key = self.declare(key, &mut body);
        let zero = self.int(0);
        let rank = self.declare(zero, &mut body);
        let step = self.lowering.builder.var(run as u64);
        let other = first.add(&Index::from(step));
        let mut inner = Vec::new();
        if !n.is_multiple_of(run) {
            let exists = self.lowering.builder.in_bounds(vec![other.clone()], n as i64);
            let condition = self.not(exists);
            inner.push(Stmt::Break { condition });
        }
        // What lies past the row is behind the test above; the remainder says so to the algebra.
        let (mine, theirs) = (self.get(key), self.operand(0, vec![row.clone(), other.modulo(n as i64)])?);
        let less = self.before(descending, theirs, mine);
        let more = self.before(descending, mine, theirs);
        let not_more = self.not(more);
        let (at, own_at) = (self.number(&other), self.number(&own));
        let earlier = self.binary(BinaryOp::Lt, at, own_at);
        let counts = self.lowering.builder.select(earlier, not_more, less);
        let one = self.lowering.builder.cast(ScalarType::I32, counts);
        let present = self.get(rank);
        let sum = self.binary(BinaryOp::Add, present, one);
        inner.push(Stmt::Assign { local: rank, value: sum });
        body.push(Stmt::Loop { var: step, body: inner });
        let rank = self.get(rank);
        let rank = self.inside(rank, run);
        let position = row.mul(n as i64).add(&first).add(&rank);
        if self.lowering.group.root != self.node {
            return Err(Error::unsupported("a sort stores each result at the place it finds"));
        }
        let store = self.store(position, own_at)?;
        body.push(store);
        self.body = body;
        Ok(var)
    }

    fn matrix(&self, operand: usize) -> Result<[usize; 2]> {
        <[usize; 2]>::try_from(self.shape(operand)).map_err(|_| Error::internal("an operand of a sort that is no matrix"))
    }

    /// The number at place `at` (I32) of the row's order, and its key.
    fn entry(&mut self, row: &Index, at: ExprId, n: usize) -> Result<(ExprId, ExprId)> {
        let at = self.place(at, n);
        let entry = self.operand(1, vec![row.clone(), at])?;
        let place = self.place(entry, n);
        let key = self.operand(0, vec![row.clone(), place])?;
        Ok((entry, key))
    }

    /// Each place of a pair of runs finds by bisection how many elements of the first run stand before it.
    fn merge(&mut self, run: usize, descending: bool) -> Result<Var> {
        let [rows, n] = self.matrix(0)?;
        let var = self.lowering.builder.var((rows * n) as u64);
        let (row, own) = (Index::from(var).div(n as i64), Index::from(var).modulo(n as i64));
        let pair = 2 * run as i64;
        let first = own.div(pair).mul(pair);
        let (base, place) = (self.number(&first), self.number(&own.modulo(pair)));
        let (zero, one, run_length, total) = (self.int(0), self.int(1), self.int(run as i64), self.int(n as i64));
        let rest = self.binary(BinaryOp::Sub, total, base);
        let len_a = self.binary(BinaryOp::Min, rest, run_length);
        let len_b = self.binary(BinaryOp::Sub, rest, len_a);
        let len_b = self.binary(BinaryOp::Min, len_b, run_length);
        let start_b = self.binary(BinaryOp::Add, base, len_a);
        let mut body = Vec::new();
        let low = self.binary(BinaryOp::Sub, place, len_b);
        let low = self.binary(BinaryOp::Max, low, zero);
        let high = self.binary(BinaryOp::Min, place, len_a);
        let (low, high) = (self.declare(low, &mut body), self.declare(high, &mut body));
        let (lo, hi) = (self.get(low), self.get(high));
        let mut inner = Vec::new();
        let condition = self.binary(BinaryOp::Ge, lo, hi);
        inner.push(Stmt::Break { condition });
        let sum = self.binary(BinaryOp::Add, lo, hi);
        let mid = self.binary(BinaryOp::Shr, sum, one);
        let at_a = self.binary(BinaryOp::Add, base, mid);
        let at_b = self.binary(BinaryOp::Sub, place, mid);
        let at_b = self.binary(BinaryOp::Sub, at_b, one);
        let at_b = self.binary(BinaryOp::Add, start_b, at_b);
        let ((_, key_a), (_, key_b)) = (self.entry(&row, at_a, n)?, self.entry(&row, at_b, n)?);
        let b_first = self.before(descending, key_b, key_a);
        let after = self.binary(BinaryOp::Add, mid, one);
        // Both ends are computed before either changes.
        let next_low = self.lowering.builder.select(b_first, lo, after);
        let next_high = self.lowering.builder.select(b_first, mid, hi);
        let next_low = self.declare(next_low, &mut inner);
        inner.push(Stmt::Assign { local: high, value: next_high });
        let next_low = self.get(next_low);
        inner.push(Stmt::Assign { local: low, value: next_low });
        let steps = self.lowering.builder.var(bisections(run));
        body.push(Stmt::Loop { var: steps, body: inner });
        let a = self.get(low);
        let b = self.binary(BinaryOp::Sub, place, a);
        let (at_a, at_b) = (self.binary(BinaryOp::Add, base, a), self.binary(BinaryOp::Add, start_b, b));
        let ((entry_a, key_a), (entry_b, key_b)) = (self.entry(&row, at_a, n)?, self.entry(&row, at_b, n)?);
        let (has_a, has_b) = (self.binary(BinaryOp::Lt, a, len_a), self.binary(BinaryOp::Lt, b, len_b));
        let b_first = self.before(descending, key_b, key_a);
        let take_b = self.binary(BinaryOp::And, has_b, b_first);
        let none = self.not(has_a);
        let take_b = self.binary(BinaryOp::Or, none, take_b);
        let value = self.lowering.builder.select(take_b, entry_b, entry_a);
        let store = self.store(Index::from(var), value)?;
        body.push(store);
        self.body = body;
        Ok(var)
    }

    /// Each query finds by bisection how many sorted numbers are less.
    fn search(&mut self) -> Result<Var> {
        let queries = self.shape(1);
        let m = self.shape(0)[0];
        let var = self.lowering.builder.var(queries.iter().product::<usize>() as u64);
        let query = self.operand(1, unflatten(&Index::from(var), &queries))?;
        let mut body = Vec::new();
        let query = self.declare(query, &mut body);
        let (zero, one, end) = (self.int(0), self.int(1), self.int(m as i64));
        let (low, high) = (self.declare(zero, &mut body), self.declare(end, &mut body));
        let (lo, hi) = (self.get(low), self.get(high));
        if m > 0 {
            let mut inner = Vec::new();
            let condition = self.binary(BinaryOp::Ge, lo, hi);
            inner.push(Stmt::Break { condition });
            let half = self.binary(BinaryOp::Sub, hi, lo);
            let half = self.binary(BinaryOp::Shr, half, one);
            let mid = self.binary(BinaryOp::Add, lo, half);
            let at = self.place(mid, m);
            let number = self.operand(0, vec![at])?;
            let query = self.get(query);
            let less = self.binary(BinaryOp::Lt, number, query);
            let after = self.binary(BinaryOp::Add, mid, one);
            let next_low = self.lowering.builder.select(less, after, lo);
            let next_high = self.lowering.builder.select(less, hi, mid);
            let next_low = self.declare(next_low, &mut inner);
            inner.push(Stmt::Assign { local: high, value: next_high });
            let next_low = self.get(next_low);
            inner.push(Stmt::Assign { local: low, value: next_low });
            let steps = self.lowering.builder.var(bisections(m));
            body.push(Stmt::Loop { var: steps, body: inner });
        }
        let store = self.store(Index::from(var), lo)?;
        body.push(store);
        self.body = body;
        Ok(var)
    }

    /// Each result goes through its segment: to the first whole block one by one, then by blocks, then one by one.
    fn segment(&mut self, op: ReduceOp, block: usize) -> Result<Var> {
        let [m, inner] = self.matrix(0)?;
        let n = self.shape(1)[0] - 1;
        let var = self.lowering.builder.var((n * inner) as u64);
        let (row, column) = (Index::from(var).div(inner as i64), Index::from(var).modulo(inner as i64));
        let scalar = self.lowering.ty(self.node).dtype.scalar();
        let (zero, one, count, size) = (self.int(0), self.int(1), self.int(m as i64), self.int(block as i64));
        let mut body = Vec::new();
        let mut bound = |this: &mut Self, at: Index| -> Result<LocalId> {
            let value = this.operand(1, vec![at])?;
            let value = this.binary(BinaryOp::Min, value, count);
            let value = this.binary(BinaryOp::Max, value, zero);
            Ok(this.declare(value, &mut body))
        };
        let (at, end) = (bound(self, row.clone())?, bound(self, row.offset(1))?);
        let identity = self.lowering.builder.literal(op.identity(scalar));
        let sum = self.declare(identity, &mut body);
        let (j, last, present) = (self.get(at), self.get(end), self.get(sum));
        let combine = op.combine(scalar);
        if m > 0 {
            let over = self.binary(BinaryOp::Ge, j, last);
            let value = {
                let place = self.place(j, m);
                self.operand(0, vec![place, column.clone()])?
            };
            let next_sum = self.binary(combine, present, value);
            let next = self.binary(BinaryOp::Add, j, one);
            let step = vec![Stmt::Assign { local: sum, value: next_sum }, Stmt::Assign { local: at, value: next }];
            let one_by_one = |this: &mut Self, steps: usize, condition: ExprId| {
                let var = this.lowering.builder.var(steps as u64);
                Stmt::Loop { var, body: [vec![Stmt::Break { condition }], step.clone()].concat() }
            };
            if block == 0 {
                body.push(one_by_one(self, m, over));
            } else {
                let part = self.binary(BinaryOp::Rem, j, size);
                let aligned = self.binary(BinaryOp::Eq, part, zero);
                let stop = self.binary(BinaryOp::Or, over, aligned);
                body.push(one_by_one(self, block, stop));
                let whole = self.binary(BinaryOp::Add, j, size);
                let condition = self.binary(BinaryOp::Gt, whole, last);
                let number = self.binary(BinaryOp::Div, j, size);
                let number = self.place(number, m.div_ceil(block));
                let partial = self.operand(2, vec![number, column])?;
                let next_sum = self.binary(combine, present, partial);
                let by_blocks =
                    vec![Stmt::Break { condition }, Stmt::Assign { local: sum, value: next_sum }, Stmt::Assign { local: at, value: whole }];
                let blocks = self.lowering.builder.var(m.div_ceil(block) as u64);
                body.push(Stmt::Loop { var: blocks, body: by_blocks });
                body.push(one_by_one(self, block, over));
            }
        }
        let store = self.store(Index::from(var), present)?;
        body.push(store);
        self.body = body;
        Ok(var)
    }

    fn finish(mut self, var: Var, target: &Target, numerics: Numerics) -> Result<LoweredKernel> {
        let output = self.lowering.output();
        bind(&mut self.body, output);
        let Lowering { graph, group, builder, buffers, .. } = self.lowering;
        let inputs: Vec<NodeId> = buffers.iter().map(|(id, _)| *id).collect();
        let kernel = Kernel {
            label: label(graph, group),
            origins: origins(graph, group),
            grid: Grid::Invocations { var },
            workgroup_size: WORKGROUP,
            code: builder.finish().on(target),
            body: self.body,
            flops: flops(graph, group),
            bytes: bytes(graph, group, &inputs),
        };
        Ok(LoweredKernel {
            words: None,
            choice: None,
            overwriting: None,
            source: emit::kernel(&kernel, numerics)?,
            loops: kernel.to_string(),
            inputs,
            workgroups: fold_workgroups(kernel.grid.num_workgroups(WORKGROUP), target.max_workgroups_per_dim)?,
        })
    }
}

/// Steps after which halving `0..=n` has one number left, and the one that finds so.
fn bisections(n: usize) -> u64 {
    u64::from(usize::BITS - n.leading_zeros()) + 1
}

/// Gives all stores their buffer.
fn bind(body: &mut [Stmt], output: BufferId) {
    for stmt in body {
        match stmt {
            Stmt::Store { buffer, .. } => *buffer = output,
            Stmt::Loop { body, .. } | Stmt::If { body, .. } => bind(body, output),
            _ => {}
        }
    }
}
