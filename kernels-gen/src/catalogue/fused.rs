//! Samples of kernels from loop IR: what the graph compiler makes of pointwise chains and of rows that are reduced.

use crate::emit::{self, Numerics};
use crate::index::Index;
use crate::ir::{Builder, Grid, Kernel, Lanes, Stmt, ValueType};
use crate::scalar::{BinaryOp, ReduceOp, UnaryOp};
use crate::{DType, KernelSource, Result, Target};

/// Elements of a pointwise sample: no multiple of four.
const ELEMS: u64 = 1003;
/// Rows and columns of a reduction.
const ROWS: u64 = 300;
const COLUMNS: u64 = 1000;

/// Four neighbouring positions from `4 * var` on.
fn four(base: Index) -> Vec<Index> {
    (0..4).map(|lane| base.offset(lane)).collect()
}

/// `max(x + y, x)` of every element type, and the functions that have forms of their own.
pub(super) fn pointwise(target: &Target) -> Result<Vec<KernelSource>> {
    let mut all = Vec::new();
    for dtype in DType::ALL {
        for numerics in [Numerics::Strict, Numerics::Fast] {
            if dtype.is_float() || numerics == Numerics::Strict {
                all.push(binary(target, dtype, numerics)?);
            }
        }
    }
    for op in [UnaryOp::Exp, UnaryOp::Log, UnaryOp::Sin, UnaryOp::Tanh, UnaryOp::Erf, UnaryOp::Round, UnaryOp::Sign] {
        all.push(unary(target, op)?);
    }
    Ok(all)
}

fn binary(target: &Target, dtype: DType, numerics: Numerics) -> Result<KernelSource> {
    let mut b = Builder::new();
    let var = b.var(ELEMS.div_ceil(4));
    let places = four(Index::from(var).mul(4));
    let [x, y] = ["x", "y"].map(|name| b.buffer(name, dtype, false));
    let (x, y) = (b.load(x, places.clone()), b.load(y, places.clone()));
    let value = if dtype == DType::Bool {
        let both = b.binary(BinaryOp::Xor, x, y);
        b.binary(BinaryOp::Or, both, x)
    } else {
        let sum = b.binary(BinaryOp::Add, x, y);
        let sum = b.narrow(dtype, sum);
        b.binary(BinaryOp::Max, sum, x)
    };
    let out = b.buffer("out", dtype, true);
    let body = vec![Stmt::Store { buffer: out, index: Lanes(places), value }];
    let strict = if numerics == Numerics::Strict { "strict" } else { "fast" };
    finish(target, format!("sample_map_{}_{strict}", dtype.name()), b, Grid::Invocations { var }, body, numerics)
}

fn unary(target: &Target, op: UnaryOp) -> Result<KernelSource> {
    let mut b = Builder::new();
    let var = b.var(ELEMS.div_ceil(4));
    let places = four(Index::from(var).mul(4));
    let x = b.buffer("x", DType::F32, false);
    let x = b.load(x, places.clone());
    let value = b.unary(op, x);
    let out = b.buffer("out", DType::F32, true);
    let body = vec![Stmt::Store { buffer: out, index: Lanes(places), value }];
    finish(target, format!("sample_map_{}", op.name()), b, Grid::Invocations { var }, body, Numerics::Strict)
}

/// Every reduction with a row for each workgroup, and one with a row for each invocation.
pub(super) fn reductions(target: &Target) -> Result<Vec<KernelSource>> {
    let mut all = Vec::new();
    for op in [ReduceOp::Sum, ReduceOp::Product, ReduceOp::Max, ReduceOp::Min] {
        for dtype in [DType::F32, DType::I32, DType::U32] {
            all.push(rows(target, op, dtype, true)?);
        }
    }
    all.push(rows(target, ReduceOp::Sum, DType::F32, false)?);
    Ok(all)
}

fn rows(target: &Target, op: ReduceOp, dtype: DType, by_workgroup: bool) -> Result<KernelSource> {
    let mut b = Builder::new();
    let (row, lane) = (b.var(ROWS), b.var(64));
    let steps = COLUMNS / 4;
    let step = b.var(if by_workgroup { steps.div_ceil(64) } else { steps });
    let column = if by_workgroup { Index::from(step).mul(64).add(&Index::from(lane)) } else { Index::from(step) };
    let x = b.buffer("x", dtype, false);
    let x = b.load(x, four(Index::from(row).mul(COLUMNS as i64).add(&column.mul(4))));
    let combine = op.combine(dtype.scalar());
    let wide = b.local(ValueType { scalar: dtype.scalar(), width: 4 });
    let identity = b.literal(op.identity(dtype.scalar()));
    let identity = b.widen(identity, 4);
    let present = b.get(wide);
    let combined = b.binary(combine, present, x);
    let inside = b.in_bounds(vec![column], steps as i64);
    let mut looped = vec![Stmt::Assign { local: wide, value: combined }];
    if b.known_bool(inside).is_none() {
        looped = vec![Stmt::If { condition: inside, body: looped }];
    }
    let lanes = [0, 1, 2, 3].map(|l| b.lane(present, l));
    let (low, high) = (b.binary(combine, lanes[0], lanes[1]), b.binary(combine, lanes[2], lanes[3]));
    let value = b.binary(combine, low, high);
    let local = b.local(ValueType { scalar: dtype.scalar(), width: 1 });
    let mut body = vec![Stmt::Declare { local: wide, value: identity }, Stmt::Loop { var: step, body: looped }];
    body.push(Stmt::Declare { local, value });
    let result = b.get(local);
    let out = b.buffer("out", dtype, true);
    let store = Stmt::Store { buffer: out, index: Lanes(vec![Index::from(row)]), value: result };
    let name = format!("sample_reduce_{}_{}_{}", op.name(), dtype.name(), if by_workgroup { "workgroup" } else { "invocation" });
    if !by_workgroup {
        body.push(store);
        return finish(target, name, b, Grid::Invocations { var: row }, body, Numerics::Strict);
    }
    body.push(Stmt::WorkgroupReduce { local, op });
    let condition = b.in_bounds(vec![Index::from(lane)], 1);
    body.push(Stmt::If { condition, body: vec![store] });
    finish(target, name, b, Grid::Workgroups { group: row, lane }, body, Numerics::Strict)
}

fn finish(target: &Target, label: String, builder: Builder, grid: Grid, body: Vec<Stmt>, numerics: Numerics) -> Result<KernelSource> {
    let code = builder.finish().on(target);
    let kernel = Kernel { label, origins: vec!["sample".into()], grid, workgroup_size: 64, code, body, flops: 0, bytes: 0 };
    emit::kernel(&kernel, numerics)
}
