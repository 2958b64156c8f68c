//! Pooling: reductions over sliding windows.

use super::RefTensor;
use super::call::{Call, FLOATS, NUMERIC};
use super::cases::{Cases, edges, floats, plain, splat};
use super::elementwise::max;
use super::reduce::identity;
use super::shape::pad_with;
use super::stats::{Statistic, StatisticKind};
use super::tolerance::Tolerance;
use super::value::Value;
use super::window::{self, Padding, Windows};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, ReduceOp, TensorType, UnaryOp};
use crate::tensor::HostTensor;
use kernels_gen::DType;

/// Windows of a plane up to which a mean may count other numbers of elements at the edges: the numbers are a constant of the graph.
const MAX_DIVISORS: usize = 1 << 24;

/// What a pool makes of the elements of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolKind {
    /// The largest; NaN wins.
    Max,
    /// The mean. Elements of the padding count as zeros if `count_padding`, else they do not count; the mean of none is 0.
    Average {
        /// Whether the padding counts.
        count_padding: bool,
    },
    /// The place (I32) in the whole operand of the largest, the first of equal ones; NaN wins. A window in the padding alone has one past
    /// the last.
    ArgMax {
        /// Whether places in a plane count along the first spatial dimension first.
        column_major: bool,
    },
}

/// ONNX MaxPool and AveragePool of `[n, c, ...]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// What is computed.
    pub kind: PoolKind,
    /// Window sizes, by spatial dimension.
    pub sizes: Vec<usize>,
    /// Strides.
    pub strides: Vec<usize>,
    /// Padding.
    pub padding: Padding,
    /// Dilations.
    pub dilations: Vec<usize>,
    /// Whether a last window that reaches past the padding counts.
    pub ceil_mode: bool,
}

impl Pool {
    /// A pool of windows of `sizes`, `strides` apart, without padding.
    pub fn new(kind: PoolKind, sizes: &[usize], strides: &[usize]) -> Self {
        Pool {
            kind,
            sizes: sizes.to_vec(),
            strides: strides.to_vec(),
            padding: Padding::none(sizes.len()),
            dilations: vec![1; sizes.len()],
            ceil_mode: false,
        }
    }

    fn windows(&self, shape: &[usize]) -> Result<Vec<Windows>> {
        let spatial = self.sizes.len();
        if spatial == 0 || shape.len() != spatial + 2 || self.strides.len() != spatial || self.dilations.len() != spatial {
            return Err(Error::invalid(format!(
                "x must be [n, c, ...] with one spatial dimension for each of the sizes {:?}, strides {:?} and dilations {:?}",
                self.sizes, self.strides, self.dilations
            )));
        }
        let dims = 0..spatial;
        dims.map(|d| window::resolve(&self.padding, d, shape[d + 2], self.sizes[d], self.strides[d], self.dilations[d], self.ceil_mode))
            .collect()
    }

    /// Whether every window along one dimension counts all its elements.
    fn counts_all(windows: &Windows, count_padding: bool) -> bool {
        windows.extra == 0 && (count_padding || windows.low + windows.high == 0)
    }

    /// Elements that count, for each window along one dimension.
    fn counts(&self, d: usize, len: usize, windows: &Windows, count_padding: bool) -> Vec<usize> {
        let (first, end) = if count_padding { (0, windows.low + len + windows.high) } else { (windows.low, windows.low + len) };
        // Of the elements `at`, `at + dilation`... those that lie before `place`.
        let before = |place: usize, at: usize| place.saturating_sub(at).div_ceil(self.dilations[d]).min(self.sizes[d]);
        let counted = |i: usize| before(end, i * self.strides[d]) - before(first, i * self.strides[d]);
        (0..windows.count).map(counted).collect()
    }

    /// What each sum is divided by: one number, or one for each place of the plane.
    fn divisors(&self, shape: &[usize], windows: &[Windows], count_padding: bool) -> Vec<f64> {
        if windows.iter().all(|w| Pool::counts_all(w, count_padding)) {
            return vec![self.sizes.iter().map(|&s| s as f64).product()];
        }
        let mut divisors = vec![1.0];
        for (d, w) in windows.iter().enumerate() {
            let counts = self.counts(d, shape[d + 2], w, count_padding);
            divisors = divisors.iter().flat_map(|&o| counts.iter().map(move |&c| o * c as f64)).collect();
        }
        // A window that lies in the padding altogether has the mean 0.
        divisors.iter_mut().for_each(|d| *d = d.max(1.0));
        divisors
    }
}

impl Pool {
    /// All windows of `x` with `around` in the padding: `[n, c, counts..., sizes...]`.
    fn view(&self, builder: &mut GraphBuilder, x: NodeId, windows: &[Windows], around: f64) -> Result<NodeId> {
        let low: Vec<usize> = [0, 0].into_iter().chain(windows.iter().map(|w| w.low)).collect();
        let high: Vec<usize> = [0, 0].into_iter().chain(windows.iter().map(|w| w.high + w.extra)).collect();
        let padded = pad_with(builder, x, &low, &high, around)?;
        let view = Prim::Window { sizes: self.sizes.clone(), strides: self.strides.clone(), dilations: self.dilations.clone() };
        let view = builder.add(view, &[padded])?;
        // In ceil mode a last window that covers padding only is not counted; the view has it.
        let counts: Vec<usize> = windows.iter().map(|w| w.count).collect();
        let found = builder.shape(view);
        if found[2..2 + windows.len()] == counts[..] {
            return Ok(view);
        }
        let sizes = [&found[..2], &counts, &self.sizes].concat();
        let rank = sizes.len();
        builder.add(Prim::Slice { starts: vec![0; rank], steps: vec![1; rank], sizes }, &[view])
    }
}

/// The place of each element of `[n, c, ...]` in the whole; with `column_major` places in a plane count along its first dimension first.
fn places(builder: &mut GraphBuilder, shape: &[usize], column_major: bool) -> Result<NodeId> {
    let ty = TensorType::new(DType::I32, shape);
    let total: usize = shape.iter().product();
    if !column_major {
        let flat = builder.add(Prim::Iota { ty: TensorType::new(DType::I32, [total]), axis: 0 }, &[])?;
        return builder.reshape(flat, shape);
    }
    let plane: usize = shape[2..].iter().product();
    let mut weights = vec![shape[1] * plane, plane];
    weights.extend((2..shape.len()).map(|d| shape[2..d].iter().product::<usize>()));
    let zero = builder.scalar(DType::I32, 0.0)?;
    let mut sum = builder.broadcast_to(zero, shape)?;
    for (axis, &weight) in weights.iter().enumerate() {
        let along = builder.add(Prim::Iota { ty: ty.clone(), axis }, &[])?;
        let along = builder.binary_scalar(BinaryOp::Mul, along, weight as f64)?;
        sum = builder.binary(BinaryOp::Add, sum, along)?;
    }
    Ok(sum)
}

impl Composite for Pool {
    fn name(&self) -> &'static str {
        match self.kind {
            PoolKind::Max => "MaxPool",
            PoolKind::ArgMax { .. } => "MaxPoolIndices",
            PoolKind::Average { .. } => "AveragePool",
        }
    }

    fn attributes(&self) -> String {
        let Pool { kind, sizes, strides, padding, dilations, ceil_mode } = self;
        let counted = match kind {
            PoolKind::Average { count_padding: true } => " count_padding",
            PoolKind::ArgMax { column_major: true } => " column_major",
            _ => "",
        };
        let ceil = if *ceil_mode { " ceil" } else { "" };
        format!("sizes={sizes:?} strides={strides:?} padding={padding:?} dilations={dilations:?}{counted}{ceil}")
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x] = call.operands(["x"])?;
        call.dtype("x", x, if matches!(self.kind, PoolKind::Average { .. }) { FLOATS } else { NUMERIC })?;
        let windows = self.windows(&x.shape).map_err(|e| Error::new(e.kind(), call.misfit(e).to_string()))?;
        let (mut shape, mut padded) = (x.shape.clone(), x.shape.clone());
        shape.iter_mut().skip(2).zip(&windows).for_each(|(size, w)| *size = w.count);
        padded.iter_mut().skip(2).zip(&windows).for_each(|(size, w)| *size = w.padded(*size));
        call.countable("the padded x", &padded)?;
        call.countable("the view of all windows", &[&shape[..], &self.sizes].concat())?;
        if let PoolKind::Average { count_padding } = self.kind
            && !windows.iter().all(|w| Pool::counts_all(w, count_padding))
            && shape[2..].iter().product::<usize>() > MAX_DIVISORS
        {
            return Err(Error::limit(
                call.misfit(format_args!("means over padding have at most {MAX_DIVISORS} windows a plane, here {:?}", &shape[2..]))
                    .to_string(),
            ));
        }
        let dtype = if matches!(self.kind, PoolKind::ArgMax { .. }) { DType::I32 } else { x.dtype };
        Ok(TensorType::new(dtype, shape))
    }

    fn decompose(&self, builder: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x] = inputs else { return Err(Error::internal("a pool without one operand")) };
        let shape = builder.shape(x);
        let windows = self.windows(&shape)?;
        let spatial = windows.len();
        let op = if matches!(self.kind, PoolKind::Average { .. }) { ReduceOp::Sum } else { ReduceOp::Max };
        let view = self.view(builder, x, &windows, identity(op, builder.ty(x).dtype))?;
        let counts: Vec<usize> = windows.iter().map(|w| w.count).collect();
        let axes: Vec<usize> = (2 + spatial..2 + 2 * spatial).collect();
        if let PoolKind::ArgMax { column_major } = self.kind {
            let best = builder.reduce(op, view, &axes, true)?;
            let mut hit = builder.binary(BinaryOp::Eq, view, best)?;
            if builder.ty(x).dtype.is_float() {
                let nan = builder.unary(UnaryOp::IsNan, view)?;
                hit = builder.binary(BinaryOp::Or, hit, nan)?;
            }
            let total: usize = shape.iter().product();
            let places = places(builder, &shape, column_major)?;
            let places = self.view(builder, places, &windows, total as f64)?;
            let none = builder.splat_like(places, DType::I32, total as f64)?;
            let found = builder.select(hit, places, none)?;
            return builder.reduce(ReduceOp::Min, found, &axes, false);
        }
        let reduced = builder.reduce(op, view, &axes, false)?;
        let PoolKind::Average { count_padding } = self.kind else { return Ok(reduced) };
        let divisors = self.divisors(&shape, &windows, count_padding);
        match divisors.first() {
            Some(&first) if divisors.iter().all(|&d| d == first) => builder.binary_scalar(BinaryOp::Div, reduced, first),
            _ => {
                let divisors = HostTensor::from_f64(builder.ty(x).dtype, counts, &divisors)?;
                let divisors = builder.constant(divisors)?;
                builder.binary(BinaryOp::Div, reduced, divisors)
            }
        }
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let x = inputs[0];
        let ty = self.infer(&[&x.ty()])?;
        let windows = self.windows(&x.shape)?;
        let (spatial, plane) = (windows.len(), x.shape[2..].iter().product::<usize>());
        let outputs: usize = ty.shape[2..].iter().product();
        let window_elems: usize = self.sizes.iter().product();
        let element = |i: usize| {
            let (mut largest, mut place, mut sum, mut counted) = (identity(ReduceOp::Max, x.dtype), None, 0.0, 0usize);
            for k in 0..window_elems {
                // The window element's place in the plane, `None` in the padding; and whether it lies in the padding asked for.
                let (mut out_rest, mut k_rest, mut stride) = (i % outputs, k, 1);
                let (mut at, mut in_padding) = (Some(0), true);
                for d in (0..spatial).rev() {
                    let (out, tap) = (out_rest % windows[d].count, k_rest % self.sizes[d]);
                    (out_rest, k_rest) = (out_rest / windows[d].count, k_rest / self.sizes[d]);
                    let padded = out * self.strides[d] + tap * self.dilations[d];
                    let len = x.shape[d + 2];
                    in_padding &= padded < windows[d].low + len + windows[d].high;
                    let own = padded.checked_sub(windows[d].low).filter(|&p| p < len);
                    at = at.zip(own).map(|(a, p)| a + p * stride);
                    stride *= len;
                }
                if let Some(at) = at {
                    let value = x.data[i / outputs * plane + at];
                    if place.is_none() || value > largest || value.is_nan() && !largest.is_nan() {
                        place = Some(at);
                    }
                    largest = max(largest, value);
                    sum += value;
                }
                counted += match self.kind {
                    PoolKind::Average { count_padding: true } => in_padding as usize,
                    _ => at.is_some() as usize,
                };
            }
            match self.kind {
                PoolKind::Max => largest,
                PoolKind::Average { .. } => sum / counted.max(1) as f64,
                PoolKind::ArgMax { column_major } => place.map_or(x.data.len(), |at| {
                    let spatial = &x.shape[2..];
                    let own = crate::tensor::strides(spatial);
                    let turned = (0..spatial.len()).map(|d| at / own[d] % spatial[d] * spatial[..d].iter().product::<usize>()).sum();
                    i / outputs * plane + if column_major { turned } else { at }
                }) as f64,
            }
        };
        let data = (0..ty.num_elems()).map(element).collect();
        RefTensor::new(ty.dtype, ty.shape, data)
    }
}

/// Pooling of `[n, c, ...]`.
pub trait PoolOps: Value {
    /// Pooling over sliding windows.
    fn pool(&self, pool: Pool) -> Result<Self> {
        Self::apply(Op::composite(pool), &[self])
    }

    /// The largest of each window; no padding.
    fn max_pool(&self, sizes: &[usize], strides: &[usize]) -> Result<Self> {
        self.pool(Pool::new(PoolKind::Max, sizes, strides))
    }

    /// The mean of each window; no padding.
    fn average_pool(&self, sizes: &[usize], strides: &[usize]) -> Result<Self> {
        self.pool(Pool::new(PoolKind::Average { count_padding: false }, sizes, strides))
    }

    /// The mean over all spatial dimensions, which stay with size 1.
    fn global_average_pool(&self) -> Result<Self> {
        let axes = (2..self.ty().rank()).collect();
        Self::apply(Op::composite(Statistic { kind: StatisticKind::Mean, axes, keep: true }), &[self])
    }
}

impl<V: Value> PoolOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let averages = [true, false].map(|count_padding| PoolKind::Average { count_padding });
    let places = [false, true].map(|column_major| PoolKind::ArgMax { column_major });
    for kind in [PoolKind::Max, averages[0], averages[1], places[0], places[1]] {
        let tolerance = if averages.contains(&kind) { Tolerance::Relative { relative: 1e-5, absolute: 1e-6 } } else { Tolerance::Exact };
        let mut add = |pool: Pool, shape: &[usize]| cases.add(Op::composite(pool), tolerance, vec![floats(shape)]);
        add(Pool::new(kind, &[2, 2], &[2, 2]), &[2, 3, 8, 8]);
        add(Pool::new(kind, &[3, 2], &[2, 1]), &[1, 2, 9, 7]);
        add(Pool::new(kind, &[2, 2], &[2, 2]), &[0, 3, 8, 8]);
        let padded = Pool { padding: Padding::symmetric(&[1, 1]), ..Pool::new(kind, &[3, 3], &[2, 2]) };
        add(padded.clone(), &[1, 2, 7, 8]);
        add(Pool { ceil_mode: true, ..padded.clone() }, &[1, 2, 7, 8]);
        add(Pool { ceil_mode: true, ..Pool::new(kind, &[3, 3], &[2, 2]) }, &[1, 2, 4, 6]);
        add(Pool { ceil_mode: true, padding: Padding::symmetric(&[1]), ..Pool::new(kind, &[1], &[2]) }, &[1, 1, 2]);
        add(Pool { padding: Padding::SameUpper, ..padded.clone() }, &[1, 2, 8, 8]);
        add(Pool { padding: Padding::SameLower, ..padded }, &[1, 2, 8, 8]);
        add(Pool { dilations: vec![2, 3], ..Pool::new(kind, &[2, 2], &[1, 1]) }, &[1, 2, 7, 8]);
        add(Pool::new(kind, &[3], &[2]), &[2, 3, 257]);
        add(Pool::new(kind, &[2, 2, 2], &[2, 2, 2]), &[1, 2, 4, 4, 4]);
    }
    let max = Op::composite(Pool { padding: Padding::symmetric(&[1, 1]), ..Pool::new(PoolKind::Max, &[3, 3], &[2, 2]) });
    for dtype in [DType::U8, DType::I8, DType::I32] {
        cases.add(max.clone(), Tolerance::Exact, vec![plain(dtype, &[1, 2, 7, 8])]);
    }
    cases.add(max, Tolerance::Exact, vec![edges(DType::F32, &[1, 1, 11, 11])]);
    let place = Op::composite(Pool { padding: Padding::symmetric(&[1, 1]), ..Pool::new(places[0], &[3, 3], &[2, 2]) });
    cases.add(place.clone(), Tolerance::Exact, vec![edges(DType::F32, &[1, 1, 11, 11])]);
    cases.add(place.clone(), Tolerance::Exact, vec![splat(DType::F32, &[1, 2, 5, 5], f64::NEG_INFINITY)]);
    for dtype in [DType::U8, DType::I8, DType::I32] {
        cases.add(place.clone(), Tolerance::Exact, vec![plain(dtype, &[1, 2, 7, 8])]);
    }
}
