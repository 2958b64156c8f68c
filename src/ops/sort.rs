//! Sorting: stable, NaN as the largest, as in PyTorch.

use super::RefTensor;
use super::call::{Call, NUMERIC};
use super::cases::{Cases, edges, floats, plain, splat, uniform};
use super::indexing::GatherElements;
use super::shape::resolve_axis;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{Composite, GraphBuilder, NodeId, Op, Prim, TensorType};
use kernels_gen::DType;
use std::cmp::Ordering;

pub(super) fn infer_argsort(call: &Call, run: usize) -> Result<TensorType> {
    let [keys] = call.operands(["keys"])?;
    check_keys(call, keys, run)?;
    Ok(TensorType::new(DType::I32, keys.shape.clone()))
}

pub(super) fn infer_merge(call: &Call, run: usize) -> Result<TensorType> {
    let [keys, order] = call.operands(["keys", "order"])?;
    check_keys(call, keys, run)?;
    call.dtype("order", order, &[DType::I32])?;
    if order.shape != keys.shape {
        return Err(call.misfit("keys and order must have one shape"));
    }
    Ok(order.clone())
}

fn check_keys(call: &Call, keys: &TensorType, run: usize) -> Result<()> {
    call.dtype("keys", keys, NUMERIC)?;
    if keys.rank() != 2 || run == 0 {
        return Err(call.misfit("keys must be [rows, n], and runs have at least one element"));
    }
    Ok(())
}

/// Order of two keys: NaN equals itself and is above all.
fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn directed(descending: bool, a: f64, b: f64) -> Ordering {
    if descending { compare(b, a) } else { compare(a, b) }
}

pub(super) fn argsort(keys: &RefTensor, run: usize, descending: bool, ty: TensorType) -> RefTensor {
    let n = keys.shape[1];
    let mut data = Vec::with_capacity(ty.num_elems());
    for row in keys.data.chunks(n.max(1)) {
        let mut order: Vec<usize> = (0..n).collect();
        order.chunks_mut(run).for_each(|run| run.sort_by(|&a, &b| directed(descending, row[a], row[b])));
        data.extend(order.iter().map(|&i| i as f64));
    }
    RefTensor { dtype: ty.dtype, shape: ty.shape, data }
}

/// Pairs of runs merged: a stable sort of each pair as it stands does the same.
pub(super) fn merge(keys: &RefTensor, order: &RefTensor, run: usize, descending: bool, ty: TensorType) -> RefTensor {
    let n = keys.shape[1].max(1);
    let mut data = order.data.clone();
    for (row, order) in keys.data.chunks(n).zip(data.chunks_mut(n)) {
        let key = |i: f64| row[(i.max(0.0) as usize).min(n - 1)];
        order.chunks_mut(run.saturating_mul(2)).for_each(|pair| pair.sort_by(|&a, &b| directed(descending, key(a), key(b))));
    }
    RefTensor { dtype: ty.dtype, shape: ty.shape, data }
}

/// What of a sorted row is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sorted {
    /// The elements.
    Values,
    /// Their places before (I32).
    Places,
}

/// Elements along an axis, or their places, in order; equal elements keep theirs. NaN is above all: last, or first where `descending`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    /// The axis.
    pub axis: usize,
    /// Whether the largest come first.
    pub descending: bool,
    /// How many of the first are wanted; `None` for all.
    pub first: Option<usize>,
    /// What is wanted.
    pub result: Sorted,
}

impl Composite for Sort {
    fn name(&self) -> &'static str {
        match (self.first, self.result) {
            (Some(_), Sorted::Values) => "TopK",
            (Some(_), Sorted::Places) => "TopKIndices",
            (None, Sorted::Values) => "Sort",
            (None, Sorted::Places) => "ArgSort",
        }
    }

    fn attributes(&self) -> String {
        let first = self.first.map_or(String::new(), |k| format!(" k={k}"));
        format!("axis={}{}{first}", self.axis, if self.descending { " descending" } else { "" })
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x] = call.operands(["x"])?;
        call.dtype("x", x, NUMERIC)?;
        if self.axis >= x.rank() || self.first.is_some_and(|k| k > x.shape[self.axis]) {
            return Err(call.misfit(format_args!("axis {} must be below the rank {} and have the elements wanted", self.axis, x.rank())));
        }
        let mut shape = x.shape.clone();
        shape[self.axis] = self.first.unwrap_or(shape[self.axis]);
        Ok(TensorType::new(if self.result == Sorted::Values { x.dtype } else { DType::I32 }, shape))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x] = inputs else { return Err(Error::internal("a sort without one operand")) };
        let ty = self.infer(&[b.ty(x)])?;
        if ty.num_elems() == 0 {
            let zero = b.scalar(ty.dtype, 0.0)?;
            return b.broadcast_to(zero, &ty.shape);
        }
        let shape = b.shape(x);
        let (rank, n) = (shape.len(), shape[self.axis]);
        let perm: Vec<usize> = (0..rank).filter(|&d| d != self.axis).chain([self.axis]).collect();
        let mut back = vec![0; rank];
        perm.iter().enumerate().for_each(|(i, &p)| back[p] = i);
        let moved = b.transpose(x, &perm)?;
        let moved_shape = b.shape(moved);
        let keys = b.reshape(moved, &[shape.iter().product::<usize>() / n, n])?;
        let order = b.add(Prim::Argsort { run: n, descending: self.descending }, &[keys])?;
        let order = b.reshape(order, &moved_shape)?;
        let mut order = b.transpose(order, &back)?;
        if ty.shape != shape {
            order = b.add(Prim::Slice { starts: vec![0; rank], steps: vec![1; rank], sizes: ty.shape }, &[order])?;
        }
        match self.result {
            Sorted::Places => Ok(order),
            Sorted::Values => b.add(Op::composite(GatherElements { axis: self.axis }), &[x, order]),
        }
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let x = inputs[0];
        let ty = self.infer(&[&x.ty()])?;
        let (inner, n, k) = (x.shape[self.axis + 1..].iter().product::<usize>(), x.shape[self.axis], ty.shape[self.axis]);
        let mut data = vec![0.0; ty.num_elems()];
        for row in 0..x.data.len() / n.max(1) {
            let (outer, i) = (row / inner, row % inner);
            let at = |j: usize| x.data[(outer * n + j) * inner + i];
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&p, &q| directed(self.descending, at(p), at(q)));
            for (j, &place) in order.iter().take(k).enumerate() {
                data[(outer * k + j) * inner + i] = if self.result == Sorted::Values { at(place) } else { place as f64 };
            }
        }
        RefTensor::new(ty.dtype, ty.shape, data)
    }
}

pub(super) fn infer_search(call: &Call) -> Result<TensorType> {
    let [sorted, queries] = call.operands(["sorted", "queries"])?;
    call.dtype("sorted", sorted, &[DType::I32])?;
    call.dtype("queries", queries, &[DType::I32])?;
    if sorted.rank() != 1 {
        return Err(call.misfit("the sorted numbers must be [n]"));
    }
    Ok(TensorType::new(DType::I32, queries.shape.clone()))
}

pub(super) fn search(sorted: &RefTensor, queries: &RefTensor) -> RefTensor {
    queries.map(DType::I32, |q| sorted.data.partition_point(|&v| v < q) as f64)
}

/// Sorting.
pub trait SortOps: Value {
    /// Elements along `axis` (negative counts from the end) in order; equal ones keep theirs, NaN is above all.
    fn sort(&self, axis: i64, descending: bool) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        Self::apply(Op::composite(Sort { axis, descending, first: None, result: Sorted::Values }), &[self])
    }

    /// Places (I32) of the elements along `axis` in order.
    fn argsort(&self, axis: i64, descending: bool) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        Self::apply(Op::composite(Sort { axis, descending, first: None, result: Sorted::Places }), &[self])
    }

    /// The `k` largest elements along `axis`, largest first, and their places (I32).
    fn top_k(&self, k: usize, axis: i64) -> Result<(Self, Self)> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        let of = |result| Self::apply(Op::composite(Sort { axis, descending: true, first: Some(k), result }), &[self]);
        Ok((of(Sorted::Values)?, of(Sorted::Places)?))
    }
}

impl<V: Value> SortOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    for descending in [false, true] {
        let argsort = |run| Prim::Argsort { run, descending };
        // Around the runs sorted at first, primes, and past what one invocation may loop over.
        for shape in [[1usize, 1], [3, 0], [5, 2], [3, 63], [2, 64], [3, 65], [5, 257], [1, 1000], [2, 4099]] {
            cases.add(argsort(shape[1].max(1)), Tolerance::Exact, vec![floats(&shape)]);
            // Many equal keys.
            if shape[0] > 1 {
                cases.add(argsort(shape[1].max(1)), Tolerance::Exact, vec![uniform(DType::I32, &shape, -3.0, 3.0)]);
            }
        }
        cases.add(argsort(70_001), Tolerance::Exact, vec![uniform(DType::I32, &[1, 70_001], 0.0, 50_000.0)]);
        cases.add(argsort(5), Tolerance::Exact, vec![floats(&[3, 17])]);
        cases.add(argsort(70), Tolerance::Exact, vec![floats(&[2, 150])]);
        cases.add(argsort(257), Tolerance::Exact, vec![edges(DType::F32, &[3, 257])]);
        cases.add(argsort(130), Tolerance::Exact, vec![splat(DType::F32, &[2, 130], f64::NAN)]);
        cases.add(argsort(129), Tolerance::Exact, vec![floats(&[5, 129]).reversed()]);
        for dtype in [DType::U32, DType::I8, DType::U8] {
            cases.add(argsort(97), Tolerance::Exact, vec![edges(dtype, &[2, 97])]);
        }
        for result in [Sorted::Values, Sorted::Places] {
            let sort = |axis, first| Op::composite(Sort { axis, descending, first, result });
            cases.add(sort(0, None), Tolerance::Exact, vec![floats(&[257])]);
            cases.add(sort(1, None), Tolerance::Exact, vec![floats(&[3, 7, 5])]);
            cases.add(sort(0, None), Tolerance::Exact, vec![edges(DType::F32, &[121, 2])]);
            cases.add(sort(1, Some(3)), Tolerance::Exact, vec![floats(&[4, 257])]);
            cases.add(sort(0, Some(0)), Tolerance::Exact, vec![floats(&[7])]);
            cases.add(sort(0, Some(1)), Tolerance::Exact, vec![edges(DType::F32, &[11, 3])]);
            cases.add(sort(1, Some(5)), Tolerance::Exact, vec![plain(DType::I8, &[3, 130])]);
        }
    }
    // Runs of equal keys are sorted; others come about in sorts of long rows.
    cases.add(Prim::MergeRuns { run: 3, descending: false }, Tolerance::Exact, vec![floats(&[2, 10]), splat(DType::I32, &[2, 10], 4.0)]);
    for (sorted, queries) in [(&[0usize] as &[usize], &[5usize] as &[usize]), (&[1], &[3, 5]), (&[257], &[]), (&[70_001], &[9])] {
        // Equal numbers are sorted.
        let operands = vec![splat(DType::I32, sorted, 2.0), uniform(DType::I32, queries, 0.0, 4.0)];
        cases.add(Prim::SearchSorted, Tolerance::Exact, operands);
    }
}
