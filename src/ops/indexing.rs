//! Places of elements: the largest's place, truth at a place, elements taken by place, triangles.

use super::RefTensor;
use super::call::{Call, NUMERIC};
use super::cases::{Cases, edges, floats, plain, splat, uniform};
use super::shape::resolve_axis;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, ReduceOp, TensorType, UnaryOp};
use crate::tensor::strides;
use kernels_gen::DType;

/// Place (I32) of the largest or smallest element along an axis. NaN is both, as in PyTorch; of equal elements the first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgReduce {
    /// Whether the largest is meant, else the smallest.
    pub largest: bool,
    /// The axis; it has at least one element.
    pub axis: usize,
    /// Whether the axis stays with size 1.
    pub keep: bool,
    /// Whether the last of equal elements counts instead of the first.
    pub last: bool,
}

impl Composite for ArgReduce {
    fn name(&self) -> &'static str {
        if self.largest { "ArgMax" } else { "ArgMin" }
    }

    fn attributes(&self) -> String {
        let keep = if self.keep { " keep" } else { "" };
        format!("axis={}{keep}{}", self.axis, if self.last { " last" } else { "" })
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x] = call.operands(["x"])?;
        call.dtype("x", x, NUMERIC)?;
        if self.axis >= x.rank() || x.shape[self.axis] == 0 {
            return Err(call.misfit(format_args!("axis {} must be below the rank {} and have an element", self.axis, x.rank())));
        }
        let mut shape = x.shape.clone();
        if self.keep {
            shape[self.axis] = 1;
        } else {
            shape.remove(self.axis);
        }
        Ok(TensorType::new(DType::I32, shape))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x] = inputs else { return Err(Error::internal("ArgMax without one operand")) };
        let ty = b.ty(x).clone();
        let best = b.reduce(if self.largest { ReduceOp::Max } else { ReduceOp::Min }, x, &[self.axis], true)?;
        let mut hit = b.binary(BinaryOp::Eq, x, best)?;
        if ty.dtype.is_float() {
            // In a row with NaN the best is NaN, which nothing equals.
            let nan = b.unary(UnaryOp::IsNan, x)?;
            hit = b.binary(BinaryOp::Or, hit, nan)?;
        }
        let places = b.add(Prim::Iota { ty: TensorType::new(DType::I32, ty.shape.clone()), axis: self.axis }, &[])?;
        let (none, op) = if self.last { (-1.0, ReduceOp::Max) } else { (ty.shape[self.axis] as f64, ReduceOp::Min) };
        let none = b.splat_like(places, DType::I32, none)?;
        let found = b.select(hit, places, none)?;
        b.reduce(op, found, &[self.axis], self.keep)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let x = inputs[0];
        let ty = self.infer(&[&x.ty()])?;
        let better = |new: f64, old: f64| match (new.is_nan(), old.is_nan()) {
            (true, old) => !old,
            (false, true) => false,
            _ if self.largest => new > old,
            _ => new < old,
        };
        let place = |row: &Vec<f64>| {
            let mut best = 0;
            for (i, &value) in row.iter().enumerate() {
                let equal = value == row[best] || value.is_nan() && row[best].is_nan();
                if better(value, row[best]) || self.last && equal {
                    best = i;
                }
            }
            best as f64
        };
        RefTensor::new(ty.dtype, ty.shape, super::stats::rows_along(x, &[self.axis]).iter().map(place).collect())
    }
}

/// `(indices, values [2])`: a new dimension of `depth` elements at `axis` that holds `values[1]` at the index and `values[0]` elsewhere. An
/// index below 0 counts from the end; one outside holds `values[0]` everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneHot {
    /// Size of the new dimension.
    pub depth: usize,
    /// Its place in the result.
    pub axis: usize,
}

impl Composite for OneHot {
    fn name(&self) -> &'static str {
        "OneHot"
    }

    fn attributes(&self) -> String {
        format!("depth={} axis={}", self.depth, self.axis)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [indices, values] = call.operands(["indices", "values"])?;
        call.dtype("indices", indices, &[DType::I32])?;
        if values.shape != [2] || self.axis > indices.rank() || self.depth > i32::MAX as usize {
            return Err(call.misfit(format_args!(
                "values must be [2], axis {} at most the rank {} of the indices, depth {} below 2^31",
                self.axis,
                indices.rank(),
                self.depth
            )));
        }
        let mut shape = indices.shape.clone();
        shape.insert(self.axis, self.depth);
        Ok(TensorType::new(values.dtype, shape))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[indices, values] = inputs else { return Err(Error::internal("OneHot without two operands")) };
        let mut shape = b.shape(indices);
        shape.insert(self.axis, 1);
        let indices = from_end(b, indices, self.depth)?;
        let indices = b.reshape(indices, &shape)?;
        shape[self.axis] = self.depth;
        let places = b.add(Prim::Iota { ty: TensorType::new(DType::I32, shape), axis: self.axis }, &[])?;
        let hit = b.binary(BinaryOp::Eq, places, indices)?;
        let mut pick = |i: usize| {
            let one = b.add(Prim::Slice { starts: vec![i], steps: vec![1], sizes: vec![1] }, &[values])?;
            b.reshape(one, &[])
        };
        let (off, on) = (pick(0)?, pick(1)?);
        b.select(hit, on, off)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let (indices, values) = (inputs[0], inputs[1]);
        let ty = self.infer(&[&indices.ty(), &values.ty()])?;
        let inner: usize = indices.shape[self.axis..].iter().product();
        let depth = self.depth as f64;
        let element = |i: usize| {
            let (place, at) = (i / inner % self.depth, i / inner / self.depth * inner + i % inner);
            let index = indices.data[at];
            values.data[usize::from(if index < 0.0 { index + depth } else { index } == place as f64)]
        };
        RefTensor::new(ty.dtype, ty.shape.clone(), (0..ty.num_elems()).map(element).collect())
    }
}

/// `(data, indices)`: the element of `data` at each place of `indices`, with the index in the place of the coordinate along `axis`. An
/// index below 0 counts from the end; one outside is clamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherElements {
    /// The axis.
    pub axis: usize,
}

impl Composite for GatherElements {
    fn name(&self) -> &'static str {
        "GatherElements"
    }

    fn attributes(&self) -> String {
        format!("axis={}", self.axis)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [data, indices] = call.operands(["data", "indices"])?;
        call.dtype("indices", indices, &[DType::I32])?;
        check_elements(&call, self.axis, data, indices)?;
        Ok(TensorType::new(data.dtype, indices.shape.clone()))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[data, indices] = inputs else { return Err(Error::internal("GatherElements without two operands")) };
        let shape = b.shape(data);
        let size = shape[self.axis];
        let index = from_end(b, indices, size)?;
        let index = b.binary_scalar(BinaryOp::Max, index, 0.0)?;
        let index = b.binary_scalar(BinaryOp::Min, index, size.saturating_sub(1) as f64)?;
        let place = element_places(b, index, self.axis, &shape)?;
        let flat = b.reshape(data, &[shape.iter().product()])?;
        b.add(Prim::Gather { axis: 0 }, &[flat, place])
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let (data, indices) = (inputs[0], inputs[1]);
        let size = data.shape[self.axis] as f64;
        let own = strides(&data.shape);
        let taken = (0..indices.data.len()).map(|i| {
            let mut coords = coordinates(i, &indices.shape);
            let index = indices.data[i];
            coords[self.axis] = if index < 0.0 { index + size } else { index }.clamp(0.0, size - 1.0) as usize;
            data.data[coords.iter().zip(&own).map(|(c, s)| c * s).sum::<usize>()]
        });
        RefTensor::new(data.dtype, indices.shape.clone(), taken.collect())
    }
}

/// Coordinates of the row-major element `i`.
pub(super) fn coordinates(i: usize, shape: &[usize]) -> Vec<usize> {
    let own = strides(shape);
    (0..shape.len()).map(|d| i / own[d] % shape[d]).collect()
}

/// Indices of elements have the data's rank and reach no farther than the data, but for the axis.
pub(super) fn check_elements(call: &Call, axis: usize, data: &TensorType, indices: &TensorType) -> Result<()> {
    let fits = axis < data.rank()
        && indices.rank() == data.rank()
        && (0..data.rank()).all(|d| d == axis || indices.shape[d] <= data.shape[d])
        && (data.shape[axis] > 0 || indices.num_elems() == 0);
    if fits {
        return Ok(());
    }
    Err(call.misfit(format_args!(
        "indices must have the rank of the data and reach no farther than it but along axis {axis}, which must be below the rank and have \
         an element"
    )))
}

/// Row-major places in a tensor of `shape` of the elements whose coordinate along `axis` is `index` and whose others are those of `index`.
pub(super) fn element_places(b: &mut GraphBuilder, index: NodeId, axis: usize, shape: &[usize]) -> Result<NodeId> {
    let own = strides(shape);
    let ty = TensorType::new(DType::I32, b.shape(index));
    let mut place = b.binary_scalar(BinaryOp::Mul, index, own[axis] as f64)?;
    for d in (0..shape.len()).filter(|&d| d != axis && ty.shape[d] > 1) {
        let along = b.add(Prim::Iota { ty: ty.clone(), axis: d }, &[])?;
        let along = b.binary_scalar(BinaryOp::Mul, along, own[d] as f64)?;
        place = b.binary(BinaryOp::Add, place, along)?;
    }
    Ok(place)
}

/// Indices (I32) into `size` elements, those below 0 counted from the end.
pub(crate) fn from_end(b: &mut GraphBuilder, indices: NodeId, size: usize) -> Result<NodeId> {
    let moved = b.binary_scalar(BinaryOp::Add, indices, size as f64)?;
    let negative = b.binary_scalar(BinaryOp::Lt, indices, 0.0)?;
    b.select(negative, moved, indices)
}

/// `(data, indices [..., k])`: each row of `k` indices names the coordinates in `k` dimensions of `data` after the first `batch`, which
/// data and indices share; what they name takes the row's place. An index below 0 counts from the end; one outside is clamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherNd {
    /// Leading dimensions that data and indices share.
    pub batch: usize,
}

impl Composite for GatherNd {
    fn name(&self) -> &'static str {
        "GatherND"
    }

    fn attributes(&self) -> String {
        format!("batch={}", self.batch)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [data, indices] = call.operands(["data", "indices"])?;
        call.dtype("indices", indices, &[DType::I32])?;
        let named = indices.shape.last().map(|&k| self.batch + k);
        let Some(named) = named.filter(|&n| {
            n <= data.rank() && n > self.batch && self.batch < indices.rank() && data.shape[..self.batch] == indices.shape[..self.batch]
        }) else {
            return Err(call.misfit(format_args!(
                "the last dimension of the indices must name 1 to {} dimensions of the data after {} that both share",
                data.rank().saturating_sub(self.batch),
                self.batch
            )));
        };
        if data.shape[self.batch..named].contains(&0) && indices.num_elems() > 0 {
            return Err(call.misfit("a dimension of the data that indices name is empty: there is nothing to take"));
        }
        let lead = &indices.shape[..indices.rank() - 1];
        Ok(TensorType::new(data.dtype, [lead, &data.shape[named..]].concat()))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[data, indices] = inputs else { return Err(Error::internal("GatherND without two operands")) };
        let shape = b.shape(data);
        let k = b.shape(indices).last().copied().unwrap_or(0);
        let outer = &shape[..self.batch + k];
        let place = tuple_places(b, indices, self.batch, outer, true)?;
        let flat = [&[outer.iter().product()], &shape[self.batch + k..]].concat();
        let flat = b.reshape(data, &flat)?;
        b.add(Prim::Gather { axis: 0 }, &[flat, place])
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let (data, indices) = (inputs[0], inputs[1]);
        let ty = self.infer(&[&data.ty(), &indices.ty()])?;
        let (lead, k) = (&indices.shape[..indices.shape.len() - 1], indices.shape[indices.shape.len() - 1]);
        let inner: usize = data.shape[self.batch + k..].iter().product();
        let mut taken = Vec::with_capacity(ty.num_elems());
        for row in 0..lead.iter().product() {
            let mut at = coordinates(row, lead)[..self.batch].iter().zip(&data.shape).fold(0, |at, (c, size)| at * size + c);
            for j in 0..k {
                let (index, size) = (indices.data[row * k + j], data.shape[self.batch + j]);
                let index = if index < 0.0 { index + size as f64 } else { index }.clamp(0.0, size as f64 - 1.0);
                at = at * size + index as usize;
            }
            taken.extend_from_slice(&data.data[at * inner..(at + 1) * inner]);
        }
        RefTensor::new(ty.dtype, ty.shape, taken)
    }
}

/// Row-major places in dimensions `outer` of what each row of `indices` names after `batch` shared dimensions. Indices outside are clamped,
/// or, without `clamp`, make the place -1.
pub(super) fn tuple_places(b: &mut GraphBuilder, indices: NodeId, batch: usize, outer: &[usize], clamp: bool) -> Result<NodeId> {
    let shape = b.shape(indices);
    let rank = shape.len();
    let lead = &shape[..rank - 1];
    let own = strides(outer);
    let zero = b.scalar(DType::I32, 0.0)?;
    let mut place = b.broadcast_to(zero, lead)?;
    let mut outside: Option<NodeId> = None;
    for d in 0..outer.len() {
        let index = if d < batch {
            b.add(Prim::Iota { ty: TensorType::new(DType::I32, lead), axis: d }, &[])?
        } else {
            let (mut starts, mut sizes) = (vec![0; rank], shape.clone());
            (starts[rank - 1], sizes[rank - 1]) = (d - batch, 1);
            let one = b.add(Prim::Slice { starts, steps: vec![1; rank], sizes }, &[indices])?;
            let one = b.reshape(one, lead)?;
            let one = from_end(b, one, outer[d])?;
            let low = b.binary_scalar(BinaryOp::Max, one, 0.0)?;
            let inside = b.binary_scalar(BinaryOp::Min, low, outer[d].saturating_sub(1) as f64)?;
            let moved = b.binary(BinaryOp::Ne, inside, one)?;
            outside = Some(match outside {
                Some(before) => b.binary(BinaryOp::Or, before, moved)?,
                None => moved,
            });
            inside
        };
        let scaled = b.binary_scalar(BinaryOp::Mul, index, own[d] as f64)?;
        place = b.binary(BinaryOp::Add, place, scaled)?;
    }
    match outside {
        Some(outside) if !clamp => {
            let nowhere = b.splat_like(place, DType::I32, -1.0)?;
            b.select(outside, nowhere, place)
        }
        _ => Ok(place),
    }
}

/// The triangle of matrices (the last two dimensions) from diagonal `k` up, or down; zeros elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trilu {
    /// Whether the part above the diagonal stays, else the part below.
    pub upper: bool,
    /// The diagonal, which stays: 0 is the main one, positive ones lie above.
    pub k: i32,
}

impl Composite for Trilu {
    fn name(&self) -> &'static str {
        "Trilu"
    }

    fn attributes(&self) -> String {
        format!("{} k={}", if self.upper { "upper" } else { "lower" }, self.k)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x] = call.operands(["x"])?;
        if x.rank() < 2 {
            return Err(call.misfit("x must have at least two dimensions"));
        }
        Ok(x.clone())
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x] = inputs else { return Err(Error::internal("Trilu without one operand")) };
        let ty = b.ty(x).clone();
        let plane = TensorType::new(DType::I32, &ty.shape[ty.rank() - 2..]);
        let row = b.add(Prim::Iota { ty: plane.clone(), axis: 0 }, &[])?;
        let column = b.add(Prim::Iota { ty: plane, axis: 1 }, &[])?;
        let diagonal = b.binary(BinaryOp::Sub, column, row)?;
        let stays = b.binary_scalar(if self.upper { BinaryOp::Ge } else { BinaryOp::Le }, diagonal, f64::from(self.k))?;
        let zero = b.scalar(ty.dtype, 0.0)?;
        b.select(stays, x, zero)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let x = inputs[0];
        let (rows, columns) = (x.shape[x.shape.len() - 2], x.shape[x.shape.len() - 1]);
        let element = |(i, &v): (usize, &f64)| {
            let diagonal = (i % columns) as i64 - (i / columns % rows) as i64;
            let stays = if self.upper { diagonal >= i64::from(self.k) } else { diagonal <= i64::from(self.k) };
            if stays { v } else { 0.0 }
        };
        RefTensor::new(x.dtype, x.shape.clone(), x.data.iter().enumerate().map(element).collect())
    }
}

/// Operations on places.
pub trait IndexingOps: Value {
    /// Place of the largest element along `axis` (negative counts from the end); the first of equal ones, NaN before all.
    fn argmax(&self, axis: i64, keep: bool) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        Self::apply(Op::composite(ArgReduce { largest: true, axis, keep, last: false }), &[self])
    }

    /// Place of the smallest element along `axis`; the first of equal ones, NaN before all.
    fn argmin(&self, axis: i64, keep: bool) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        Self::apply(Op::composite(ArgReduce { largest: false, axis, keep, last: false }), &[self])
    }

    /// A new last dimension of `depth` elements: 1 at the index, 0 elsewhere, as `dtype`.
    fn one_hot(&self, depth: usize, dtype: DType) -> Result<Self> {
        let values = self.constant(crate::tensor::HostTensor::from_f64(dtype, [2], &[0.0, 1.0])?)?;
        Self::apply(Op::composite(OneHot { depth, axis: self.ty().rank() }), &[self, &values])
    }

    /// Elements by their index along `axis`, one for each of `indices`.
    fn gather_elements(&self, indices: &Self, axis: i64) -> Result<Self> {
        let axis = resolve_axis(axis, self.ty().rank())?;
        Self::apply(Op::composite(GatherElements { axis }), &[self, indices])
    }

    /// What each row of the last dimension of `indices` names.
    fn gather_nd(&self, indices: &Self, batch: usize) -> Result<Self> {
        Self::apply(Op::composite(GatherNd { batch }), &[self, indices])
    }

    /// The triangle of matrices from diagonal `k` up (`upper`) or down.
    fn trilu(&self, upper: bool, k: i32) -> Result<Self> {
        Self::apply(Op::composite(Trilu { upper, k }), &[self])
    }
}

impl<V: Value> IndexingOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    for (largest, last) in [(true, false), (false, false), (true, true), (false, true)] {
        let arg = |axis, keep| Op::composite(ArgReduce { largest, axis, keep, last });
        for (shape, axis, keep) in [
            (&[7usize] as &[usize], 0, false),
            (&[1], 0, true),
            (&[5, 257], 1, false),
            (&[257, 5], 0, true),
            (&[3, 5, 7], 1, false),
            (&[0, 3], 1, true),
        ] {
            cases.add(arg(axis, keep), Tolerance::Exact, vec![floats(shape)]);
        }
        cases.add(arg(0, false), Tolerance::Exact, vec![floats(&[70_001])]);
        // Ties, NaN in every place, infinities, integers.
        cases.add(arg(1, false), Tolerance::Exact, vec![uniform(DType::I32, &[5, 129], 0.0, 3.0)]);
        cases.add(arg(1, false), Tolerance::Exact, vec![splat(DType::F32, &[3, 65], f64::NEG_INFINITY)]);
        cases.add(arg(1, false), Tolerance::Exact, vec![edges(DType::F32, &[11, 10])]);
        cases.add(arg(1, false), Tolerance::Exact, vec![edges(DType::F32, &[22, 3])]);
        for dtype in [DType::U8, DType::I8, DType::U32] {
            cases.add(arg(1, true), Tolerance::Exact, vec![edges(dtype, &[7, 11])]);
        }
    }
    for (indices, depth, axis) in [(&[] as &[usize], 3, 0), (&[7], 5, 1), (&[7], 5, 0), (&[3, 5], 257, 1), (&[0], 4, 1), (&[5], 1, 1)] {
        let one_hot = Op::composite(OneHot { depth, axis });
        cases.add(one_hot.clone(), Tolerance::Exact, vec![uniform(DType::I32, indices, -8.0, 8.0), floats(&[2])]);
        cases.add(one_hot, Tolerance::Exact, vec![uniform(DType::I32, indices, -8.0, 8.0), plain(DType::I8, &[2])]);
    }
    for &dtype in &DType::ALL {
        for (data, indices, axis) in [
            (&[7usize] as &[usize], &[11usize] as &[usize], 0),
            (&[5, 7], &[5, 3], 1),
            (&[257, 3], &[4, 3], 0),
            (&[2, 3, 5], &[1, 9, 4], 1),
            (&[3, 4], &[0, 4], 0),
        ] {
            let operands = vec![plain(dtype, data), uniform(DType::I32, indices, -9.0, 9.0)];
            cases.add(Op::composite(GatherElements { axis }), Tolerance::Bits, operands);
        }
        for (data, indices, batch) in [
            (&[5usize, 7] as &[usize], &[3usize, 2] as &[usize], 0),
            (&[5, 7], &[1], 0),
            (&[2, 5, 7], &[2, 3, 1], 1),
            (&[2, 3, 5, 7], &[2, 3, 4, 2], 2),
            (&[5, 257], &[2, 3, 1], 0),
            (&[4, 3], &[0, 2], 0),
        ] {
            let operands = vec![plain(dtype, data), uniform(DType::I32, indices, -6.0, 6.0)];
            cases.add(Op::composite(GatherNd { batch }), Tolerance::Bits, operands);
        }
        for (upper, k) in [(true, 0), (false, 0), (true, 2), (false, -2), (true, i32::MIN), (false, i32::MIN)] {
            cases.add(Op::composite(Trilu { upper, k }), Tolerance::Bits, vec![plain(dtype, &[2, 5, 7])]);
        }
        cases.add(Op::composite(Trilu { upper: true, k: 1 }), Tolerance::Bits, vec![plain(dtype, &[0, 3])]);
    }
    cases.add(Op::composite(Trilu { upper: true, k: 0 }), Tolerance::Bits, vec![edges(DType::F32, &[11, 11])]);
}
