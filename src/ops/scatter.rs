//! Updates of elements by index. The order in which updates of one place are combined is fixed, so that results are the same each time:
//! indices are sorted (stably), and each place goes through its updates one after another.

use super::RefTensor;
use super::call::{Call, NUMERIC};
use super::cases::{Cases, edges, floats, plain, splat, uniform};
use super::indexing::{check_elements, coordinates, element_places, from_end, tuple_places};
use super::reduce::identity;
use super::scan::combine;
use super::shape::resolve_axis;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, ReduceOp, TensorType};
use crate::tensor::strides;
use kernels_gen::DType;

pub(super) fn infer_segment(call: &Call, block: usize) -> Result<TensorType> {
    let ([values, starts], partials) = call.operands_from(["values", "starts"], &["partials"])?;
    call.dtype("values", values, NUMERIC)?;
    call.dtype("starts", starts, &[DType::I32])?;
    let (&[m, inner], &[ends]) = (&values.shape[..], &starts.shape[..]) else {
        return Err(call.misfit("values must be [m, inner] and starts [n + 1]"));
    };
    let expected = if block == 0 { None } else { Some(TensorType::new(values.dtype, [m.div_ceil(block), inner])) };
    if ends == 0 || partials.first().copied() != expected.as_ref() {
        return Err(call.misfit("starts must have an element, and partials be [m / block, inner] where there are blocks"));
    }
    Ok(TensorType::new(values.dtype, [ends - 1, inner]))
}

pub(super) fn segment(op: ReduceOp, values: &RefTensor, starts: &RefTensor, ty: TensorType) -> RefTensor {
    let (m, inner) = (values.shape[0], values.shape[1]);
    let place = |v: f64| (v.max(0.0) as usize).min(m);
    let mut data = Vec::with_capacity(ty.num_elems());
    for ends in starts.data.windows(2) {
        let rows = place(ends[0])..place(ends[1]);
        let fold = |i| rows.clone().fold(identity(op, ty.dtype), |sum, j| combine(op, ty.dtype, sum, values.data[j * inner + i]));
        data.extend((0..inner).map(fold));
    }
    RefTensor { dtype: ty.dtype, shape: ty.shape, data }
}

/// What an update does to the element it meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// Takes its place; of several for one place the last in row-major order counts.
    Replace,
    /// Is combined with it, after those before it in row-major order.
    Combine(ReduceOp),
}

impl Update {
    fn text(self) -> &'static str {
        match self {
            Update::Replace => "",
            Update::Combine(op) => op.name(),
        }
    }

    fn check(self, call: &Call, data: &TensorType, updates: &TensorType) -> Result<()> {
        if self != Update::Replace {
            call.dtype("data", data, NUMERIC)?;
        }
        call.dtype("updates", updates, &[data.dtype])
    }

    fn apply(self, dtype: DType, old: f64, new: f64) -> f64 {
        match self {
            Update::Replace => new,
            Update::Combine(op) => combine(op, dtype, old, new),
        }
    }
}

/// `(data, indices, updates)`: `data` with its elements at the places of `updates` changed, the index in the place of the coordinate along
/// `axis`. An index below 0 counts from the end; one outside changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScatterElements {
    /// The axis.
    pub axis: usize,
    /// What an update does.
    pub update: Update,
}

impl Composite for ScatterElements {
    fn name(&self) -> &'static str {
        "ScatterElements"
    }

    fn attributes(&self) -> String {
        format!("axis={} {}", self.axis, self.update.text()).trim_end().to_string()
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [data, indices, updates] = call.operands(["data", "indices", "updates"])?;
        call.dtype("indices", indices, &[DType::I32])?;
        self.update.check(&call, data, updates)?;
        if indices.shape != updates.shape {
            return Err(call.misfit("indices and updates must have one shape"));
        }
        if indices.num_elems() > 0 {
            check_elements(&call, self.axis, data, indices)?;
        }
        Ok(data.clone())
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[data, indices, updates] = inputs else { return Err(Error::internal("ScatterElements without three operands")) };
        let shape = b.shape(data);
        let (count, n) = (b.ty(indices).num_elems(), b.ty(data).num_elems());
        if count == 0 || n == 0 {
            return Ok(data);
        }
        let index = from_end(b, indices, shape[self.axis])?;
        let place = element_places(b, index, self.axis, &shape)?;
        // An index outside along the axis would name an element of another row.
        let (low, high) = (b.binary_scalar(BinaryOp::Ge, index, 0.0)?, b.binary_scalar(BinaryOp::Lt, index, shape[self.axis] as f64)?);
        let inside = b.binary(BinaryOp::And, low, high)?;
        let nowhere = b.splat_like(place, DType::I32, -1.0)?;
        let place = b.select(inside, place, nowhere)?;
        let (rows, place, updates) = (b.reshape(data, &[n, 1])?, b.reshape(place, &[count])?, b.reshape(updates, &[count, 1])?);
        let result = scatter_rows(b, rows, place, updates, self.update)?;
        b.reshape(result, &shape)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let (data, indices, updates) = (inputs[0], inputs[1], inputs[2]);
        let own = strides(&data.shape);
        let mut result = data.data.clone();
        for (i, (&index, &update)) in indices.data.iter().zip(&updates.data).enumerate() {
            let size = data.shape[self.axis] as f64;
            let index = if index < 0.0 { index + size } else { index };
            if (0.0..size).contains(&index) {
                let mut coords = coordinates(i, &indices.shape);
                coords[self.axis] = index as usize;
                let at: usize = coords.iter().zip(&own).map(|(c, s)| c * s).sum();
                result[at] = self.update.apply(data.dtype, result[at], update);
            }
        }
        RefTensor::new(data.dtype, data.shape.clone(), result)
    }
}

/// `(data, indices [..., k], updates)`: `data` with what each row of `k` indices names in its first dimensions changed by the row's update.
/// An index below 0 counts from the end; a row with one outside changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScatterNd {
    /// What an update does.
    pub update: Update,
}

impl Composite for ScatterNd {
    fn name(&self) -> &'static str {
        "ScatterND"
    }

    fn attributes(&self) -> String {
        self.update.text().to_string()
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [data, indices, updates] = call.operands(["data", "indices", "updates"])?;
        call.dtype("indices", indices, &[DType::I32])?;
        self.update.check(&call, data, updates)?;
        let k = indices.shape.last().copied().filter(|&k| k > 0 && k <= data.rank());
        let Some(k) = k else {
            return Err(
                call.misfit(format_args!("the last dimension of the indices must name 1 to {} dimensions of the data", data.rank()))
            );
        };
        let expected = [&indices.shape[..indices.rank() - 1], &data.shape[k..]].concat();
        if updates.shape != expected {
            return Err(call.misfit(format_args!("updates must be {expected:?}")));
        }
        Ok(data.clone())
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[data, indices, updates] = inputs else { return Err(Error::internal("ScatterND without three operands")) };
        let (shape, index_shape) = (b.shape(data), b.shape(indices));
        let k = index_shape[index_shape.len() - 1];
        let count: usize = index_shape[..index_shape.len() - 1].iter().product();
        let (n, inner): (usize, usize) = (shape[..k].iter().product(), shape[k..].iter().product());
        if count == 0 || n * inner == 0 {
            return Ok(data);
        }
        let place = tuple_places(b, indices, 0, &shape[..k], false)?;
        let (rows, place, updates) = (b.reshape(data, &[n, inner])?, b.reshape(place, &[count])?, b.reshape(updates, &[count, inner])?);
        let result = scatter_rows(b, rows, place, updates, self.update)?;
        b.reshape(result, &shape)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let (data, indices, updates) = (inputs[0], inputs[1], inputs[2]);
        let k = indices.shape[indices.shape.len() - 1];
        let inner: usize = data.shape[k..].iter().product();
        let mut result = data.data.clone();
        for (row, tuple) in indices.data.chunks(k).enumerate() {
            let place = tuple.iter().zip(&data.shape).try_fold(0usize, |at, (&index, &size)| {
                let index = if index < 0.0 { index + size as f64 } else { index };
                (0.0..size as f64).contains(&index).then_some(at * size + index as usize)
            });
            for i in 0..if place.is_some() { inner } else { 0 } {
                let at = place.unwrap_or(0) * inner + i;
                result[at] = self.update.apply(data.dtype, result[at], updates.data[row * inner + i]);
            }
        }
        RefTensor::new(data.dtype, data.shape.clone(), result)
    }
}

/// `data [n, inner]` with row `places[j]` changed by row `j` of `updates [m, inner]`, in the order of `j`; places outside `0..n` change
/// nothing.
fn scatter_rows(b: &mut GraphBuilder, data: NodeId, places: NodeId, updates: NodeId, update: Update) -> Result<NodeId> {
    let (n, m) = (b.shape(data)[0], b.shape(updates)[0]);
    // Places that change nothing are sorted behind all others.
    let negative = b.binary_scalar(BinaryOp::Lt, places, 0.0)?;
    let behind = b.splat_like(places, DType::I32, n as f64)?;
    let keys = b.select(negative, behind, places)?;
    let rows = b.reshape(keys, &[1, m])?;
    let order = b.add(Prim::Argsort { run: m, descending: false }, &[rows])?;
    let order = b.reshape(order, &[m])?;
    let sorted = b.add(Prim::Gather { axis: 0 }, &[keys, order])?;
    let queries = b.add(Prim::Iota { ty: TensorType::new(DType::I32, [n + 1]), axis: 0 }, &[])?;
    let starts = b.add(Prim::SearchSorted, &[sorted, queries])?;
    let mut part = |from: usize| b.add(Prim::Slice { starts: vec![from], steps: vec![1], sizes: vec![n] }, &[starts]);
    let (first, end) = (part(0)?, part(1)?);
    let touched = b.binary(BinaryOp::Lt, first, end)?;
    let touched = b.reshape(touched, &[n, 1])?;
    let changed = match update {
        Update::Replace => {
            let last = b.binary_scalar(BinaryOp::Sub, end, 1.0)?;
            let row = b.add(Prim::Gather { axis: 0 }, &[order, last])?;
            b.add(Prim::Gather { axis: 0 }, &[updates, row])?
        }
        Update::Combine(op) => {
            let values = b.add(Prim::Gather { axis: 0 }, &[updates, order])?;
            let folded = b.add(Prim::Segment { op, block: 0 }, &[values, starts])?;
            b.binary(op.combine(b.ty(data).dtype.scalar()), data, folded)?
        }
    };
    b.select(touched, changed, data)
}

/// Updates by index.
pub trait ScatterOps: Value {
    /// Elements by their index along `axis` changed, one for each of `updates`.
    fn scatter_elements(&self, indices: &Self, updates: &Self, axis: i64, update: Update) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        Self::apply(Op::composite(ScatterElements { axis, update }), &[self, indices, updates])
    }

    /// What each row of the last dimension of `indices` names changed by the row's update.
    fn scatter_nd(&self, indices: &Self, updates: &Self, update: Update) -> Result<Self> {
        Self::apply(Op::composite(ScatterNd { update }), &[self, indices, updates])
    }
}

impl<V: Value> ScatterOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let sums = Tolerance::Relative { relative: 1e-5, absolute: 2e-3 };
    let combining = [ReduceOp::Sum, ReduceOp::Product, ReduceOp::Max, ReduceOp::Min].map(Update::Combine);
    for update in [Update::Replace].into_iter().chain(combining) {
        let (tolerance, low, high) = match update {
            Update::Replace => (Tolerance::Bits, -2.0, 2.0),
            Update::Combine(ReduceOp::Product) => (Tolerance::Relative { relative: 1e-4, absolute: 1e-30 }, 0.9, 1.1),
            Update::Combine(ReduceOp::Sum) => (sums, -2.0, 2.0),
            Update::Combine(_) => (Tolerance::Exact, -2.0, 2.0),
        };
        let number = |shape: &[usize]| uniform(DType::F32, shape, low, high);
        // Duplicates, indices from the end and outside.
        for (data, indices, axis) in
            [(&[7usize] as &[usize], &[11usize] as &[usize], 0), (&[5, 7], &[3, 9], 1), (&[257, 3], &[130, 2], 0), (&[3, 4], &[0, 4], 0)]
        {
            let operands = vec![number(data), uniform(DType::I32, indices, -9.0, 9.0), number(indices)];
            cases.add(Op::composite(ScatterElements { axis, update }), tolerance, operands);
        }
        for (data, indices, rows) in [
            (&[5usize, 7] as &[usize], &[3usize, 2] as &[usize], &[3usize] as &[usize]),
            (&[5, 7], &[9, 1], &[9, 7]),
            (&[6, 2, 3], &[2, 3, 2], &[2, 3, 3]),
            (&[4, 3], &[0, 1], &[0, 3]),
        ] {
            let operands = vec![number(data), uniform(DType::I32, indices, -7.0, 7.0), number(rows)];
            cases.add(Op::composite(ScatterNd { update }), tolerance, operands);
        }
        // An embedding's gradient: many rows for few places, and all for one.
        let many = vec![splat(DType::F32, &[50, 3], 0.5), uniform(DType::I32, &[1003, 1], 0.0, 49.0), number(&[1003, 3])];
        cases.add(Op::composite(ScatterNd { update }), tolerance, many);
        if update != Update::Combine(ReduceOp::Product) {
            let long_sums = if tolerance == sums { Tolerance::Norm(1e-4) } else { tolerance };
            let long = vec![splat(DType::F32, &[2], 0.5), splat(DType::I32, &[70_001], 1.0), number(&[70_001])];
            cases.add(Op::composite(ScatterElements { axis: 0, update }), long_sums, long);
        }
    }
    for &dtype in &DType::ALL {
        let replace = Op::composite(ScatterElements { axis: 1, update: Update::Replace });
        let operands = vec![plain(dtype, &[3, 8]), uniform(DType::I32, &[3, 4], 0.0, 7.0), plain(dtype, &[3, 4])];
        cases.add(replace, Tolerance::Bits, operands);
    }
    for &dtype in NUMERIC.iter().filter(|d| d.is_int()) {
        let add = Op::composite(ScatterElements { axis: 0, update: Update::Combine(ReduceOp::Sum) });
        let operands = vec![plain(dtype, &[7]), uniform(DType::I32, &[40], 0.0, 6.0), plain(dtype, &[40])];
        cases.add(add, Tolerance::Exact, operands);
    }
    let special = vec![edges(DType::F32, &[11]), uniform(DType::I32, &[33], 0.0, 10.0), edges(DType::F32, &[33])];
    cases.add(Op::composite(ScatterElements { axis: 0, update: Update::Combine(ReduceOp::Max) }), Tolerance::Exact, special);
    cases.add(Prim::Segment { op: ReduceOp::Sum, block: 0 }, sums, vec![floats(&[9, 5]), splat(DType::I32, &[1], 0.0)]);
}
