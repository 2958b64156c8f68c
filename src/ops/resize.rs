//! Resampling along axes.

use super::RefTensor;
use super::call::{Call, FLOATS};
use super::cases::{Cases, edges, floats, plain};
use super::indexing::coordinates;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, ReduceOp, TensorType};
use crate::tensor::{HostTensor, MAX_ELEMS};
use kernels_gen::DType;

/// Elements of one axis' table of places and weights, which is a constant of the graph.
const MAX_TABLE: usize = 1 << 24;

/// Taps up to which each is an element of its own in the kernel; more are a reduction.
const MAX_WRITTEN_TAPS: usize = 4;

/// Which elements a result is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Interpolation {
    /// The nearest element; any element type.
    Nearest(Nearest),
    /// The two around it, weighted linearly.
    Linear,
    /// The four around it, weighted by a cubic.
    Cubic {
        /// Coefficient of the cubic, usually -0.75 or -0.5.
        a: f32,
    },
}

/// Which element is the nearest to a place between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nearest {
    /// The nearer, the lower in the middle.
    RoundPreferFloor,
    /// The nearer, the upper in the middle.
    RoundPreferCeil,
    /// The lower.
    Floor,
    /// The upper.
    Ceil,
}

/// Where element `i` of the result lies in the operand, by the names of ONNX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coordinates {
    /// `(i + 0.5) / scale - 0.5`.
    HalfPixel,
    /// The same, centred where `scale` times the size is no whole number.
    HalfPixelSymmetric,
    /// As `HalfPixel`, but a result of one element lies at -0.5 (as PyTorch).
    PytorchHalfPixel,
    /// The first and the last elements of both lie on each other.
    AlignCorners,
    /// `i / scale`.
    Asymmetric,
    /// `start` to `end` of the axis as fractions of it; results outside the operand take the extrapolation value.
    TfCropAndResize,
}

/// Resampling along one axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResizeAxis {
    /// The axis.
    pub axis: usize,
    /// Elements of the result.
    pub size: usize,
    /// Elements of the result for one of the operand.
    pub scale: f64,
    /// Part of the operand taken by [`Coordinates::TfCropAndResize`], as fractions.
    pub region: (f32, f32),
}

/// ONNX Resize: each axis is resampled by itself. Elements past the ends are those at the ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Resize {
    /// Axes, each once.
    pub axes: Vec<ResizeAxis>,
    /// Which elements a result is made of.
    pub interpolation: Interpolation,
    /// Where results lie.
    pub coordinates: Coordinates,
    /// Whether a smaller result is made of all elements it covers (not for `Nearest`).
    pub antialias: bool,
    /// Whether elements past the ends get no weight instead of standing for those at the ends.
    pub exclude_outside: bool,
    /// Value of results that lie outside by [`Coordinates::TfCropAndResize`].
    pub extrapolation: f32,
}

/// What one element of the result along an axis is made of.
struct Taps {
    /// Places in the operand with their weights.
    taps: Vec<(usize, f64)>,
    /// Whether it lies outside.
    outside: bool,
}

impl Resize {
    /// The place in the operand of element `i` of the result.
    fn place(&self, axis: &ResizeAxis, len: usize, i: usize) -> f64 {
        let (i, len, scale) = (i as f64, len as f64, axis.scale);
        let wide = scale * len;
        match self.coordinates {
            Coordinates::HalfPixel => (i + 0.5) / scale - 0.5,
            Coordinates::HalfPixelSymmetric => {
                let centre = len / 2.0;
                centre * (1.0 - axis.size as f64 / wide) + (i + 0.5) / scale - 0.5
            }
            Coordinates::PytorchHalfPixel if axis.size == 1 => -0.5,
            Coordinates::PytorchHalfPixel => (i + 0.5) / scale - 0.5,
            Coordinates::AlignCorners if axis.size == 1 => 0.0,
            Coordinates::AlignCorners => i * (len - 1.0) / (wide - 1.0),
            Coordinates::Asymmetric => i / scale,
            Coordinates::TfCropAndResize => {
                let (start, end) = (f64::from(axis.region.0), f64::from(axis.region.1));
                let inner = if axis.size == 1 { 0.5 * (end - start) * (len - 1.0) } else { i * (end - start) * (len - 1.0) / (wide - 1.0) };
                inner + start * (len - 1.0)
            }
        }
    }

    /// Weights of the elements from `1 - n / 2` to `n / 2` around the element before the place, which lies `ratio` (above 0, up to 1) after
    /// it.
    fn weights(&self, ratio: f64, scale: f64) -> Vec<f64> {
        let shrink = if self.antialias { scale.min(1.0) } else { 1.0 };
        let reach = |radius: f64| (-radius / shrink).floor() as i64 + 1;
        let table = |start: i64, f: &dyn Fn(f64) -> f64| {
            let raw: Vec<f64> = (start..2 - start).map(|i| f(((i as f64 - ratio) * shrink).abs())).collect();
            let sum: f64 = raw.iter().sum();
            raw.iter().map(|w| w / sum).collect()
        };
        match self.interpolation {
            Interpolation::Nearest(nearest) => {
                let upper = match nearest {
                    _ if ratio == 1.0 => true,
                    Nearest::RoundPreferFloor => ratio > 0.5,
                    Nearest::RoundPreferCeil => ratio >= 0.5,
                    Nearest::Floor => false,
                    Nearest::Ceil => true,
                };
                vec![f64::from(u8::from(!upper)), f64::from(u8::from(upper))]
            }
            Interpolation::Linear => table(reach(1.0), &|x| (1.0 - x).clamp(0.0, 1.0)),
            Interpolation::Cubic { a } => {
                let a = f64::from(a);
                let cubic = |x: f64| match x {
                    x if x <= 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
                    x if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
                    _ => 0.0,
                };
                table(reach(2.0), &cubic)
            }
        }
    }

    /// What each element of the result along an axis of `len` elements is made of.
    fn table(&self, axis: &ResizeAxis, len: usize) -> Vec<Taps> {
        let one = |i: usize| {
            let place = self.place(axis, len, i);
            let before = place.ceil() - 1.0;
            let mut weights = self.weights(place - before, axis.scale);
            let first = before as i64 + 1 - weights.len() as i64 / 2;
            let inside = |at: i64| (0..len as i64).contains(&at);
            if self.exclude_outside {
                let places = (first..).zip(weights.iter_mut());
                places.filter(|(at, _)| !inside(*at)).for_each(|(_, w)| *w = 0.0);
                let sum: f64 = weights.iter().sum();
                weights.iter_mut().for_each(|w| *w /= sum);
            }
            let taps = (first..).zip(weights).filter(|(_, w)| *w != 0.0).map(|(at, w)| (at.clamp(0, len as i64 - 1) as usize, w)).collect();
            let outside = self.coordinates == Coordinates::TfCropAndResize && !(0.0..=len as f64 - 1.0).contains(&place);
            Taps { taps, outside }
        };
        (0..axis.size).map(one).collect()
    }

    fn resample(&self, b: &mut GraphBuilder, x: NodeId, axis: &ResizeAxis, table: &[Taps]) -> Result<NodeId> {
        let shape = b.shape(x);
        let (d, len, size) = (axis.axis, shape[axis.axis], axis.size);
        let single = table.iter().all(|t| t.taps.len() == 1 && t.taps[0].1 == 1.0);
        if single {
            let places: Vec<usize> = table.iter().map(|t| t.taps[0].0).collect();
            if places.iter().copied().eq(0..len) {
                return Ok(x);
            }
            // Each element several times is a view.
            if len > 0 && size.is_multiple_of(len) && places.iter().enumerate().all(|(i, &p)| p == i / (size / len)) {
                let (mut split, mut wide, mut out) = (shape.clone(), shape.clone(), shape);
                split.insert(d + 1, 1);
                wide.insert(d + 1, size / len);
                out[d] = size;
                let spread = b.reshape(x, &split)?;
                let wide = b.broadcast_to(spread, &wide)?;
                return b.reshape(wide, &out);
            }
            let places = b.constant(HostTensor::new([size], places.iter().map(|&p| p as i32).collect::<Vec<_>>())?)?;
            return b.add(Prim::Gather { axis: d }, &[x, places]);
        }
        let taps = table.iter().map(|t| t.taps.len()).max().unwrap_or(0);
        // Elements with fewer taps repeat their last one with weight 0.
        let tap = |i: usize, t: usize| {
            let own = &table[i].taps;
            own.get(t).copied().or_else(|| own.last().map(|l| (l.0, 0.0))).unwrap_or((0, 0.0))
        };
        // One table of places and one of weights for all taps: each is a buffer of the kernel.
        let pairs = || (0..size).flat_map(|i| (0..taps).map(move |t| tap(i, t)));
        let places = b.constant(HostTensor::new([size, taps], pairs().map(|p| p.0 as i32).collect::<Vec<_>>())?)?;
        let mut column = vec![1; shape.len() + 1];
        (column[d], column[d + 1]) = (size, taps);
        let weights = b.constant(HostTensor::from_f64(DType::F32, column, &pairs().map(|p| p.1).collect::<Vec<_>>())?)?;
        let taken = b.add(Prim::Gather { axis: d }, &[x, places])?;
        let weighted = b.binary(BinaryOp::Mul, taken, weights)?;
        if taps <= MAX_WRITTEN_TAPS {
            let (mut sizes, mut result) = (b.shape(weighted), shape);
            (sizes[d + 1], result[d]) = (1, size);
            let mut sum: Option<NodeId> = None;
            for t in 0..taps {
                let mut starts = vec![0; sizes.len()];
                starts[d + 1] = t;
                let part = b.add(Prim::Slice { starts, steps: vec![1; sizes.len()], sizes: sizes.clone() }, &[weighted])?;
                let part = b.reshape(part, &result)?;
                sum = Some(match sum {
                    Some(sum) => b.binary(BinaryOp::Add, sum, part)?,
                    None => part,
                });
            }
            return sum.ok_or_else(|| Error::internal("a resampled axis without taps"));
        }
        b.reduce(ReduceOp::Sum, weighted, &[d + 1], false)
    }
}

impl Composite for Resize {
    fn name(&self) -> &'static str {
        "Resize"
    }

    fn attributes(&self) -> String {
        let axis = |a: &ResizeAxis| format!("{}:{}x{:?}@{:?}", a.axis, a.size, a.scale, a.region);
        let axes = self.axes.iter().map(axis).collect::<Vec<_>>().join(",");
        let antialias = if self.antialias { " antialias" } else { "" };
        let exclude = if self.exclude_outside { " exclude_outside" } else { "" };
        format!("{axes} {:?} {:?}{antialias}{exclude} extrapolation={:?}", self.interpolation, self.coordinates, self.extrapolation)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let [x] = call.operands(["x"])?;
        if !matches!(self.interpolation, Interpolation::Nearest(_)) {
            call.dtype("x", x, FLOATS)?;
        }
        let mut shape = x.shape.clone();
        for (n, a) in self.axes.iter().enumerate() {
            let (start, end) = a.region;
            let once = self.axes[..n].iter().all(|b| b.axis != a.axis);
            let sound = a.scale.is_finite() && a.scale > 0.0 && start.is_finite() && end.is_finite();
            if a.axis >= x.rank() || !once || !sound || (x.shape[a.axis] == 0 && a.size > 0) {
                return Err(call.misfit(format_args!(
                    "axis {} by {:?} to {} elements: axes are below the rank, each is given once, has an element, and is scaled by a \
                     positive number",
                    a.axis, a.scale, a.size
                )));
            }
            // The widest table: all elements of the operand for each of the result.
            let wide = if self.antialias && a.scale < 1.0 { (4.0 / a.scale).ceil() + 4.0 } else { 4.0 };
            if a.size as f64 * wide > MAX_TABLE as f64 || x.shape[a.axis] > MAX_ELEMS {
                return Err(Error::limit(
                    call.misfit(format_args!("axis {} to {} elements: tables have at most {MAX_TABLE} entries", a.axis, a.size))
                        .to_string(),
                ));
            }
            shape[a.axis] = a.size;
        }
        Ok(TensorType::new(x.dtype, shape))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let &[x] = inputs else { return Err(Error::internal("Resize without one operand")) };
        let shape = b.shape(x);
        let tables: Vec<Vec<Taps>> = self.axes.iter().map(|a| self.table(a, shape[a.axis])).collect();
        let mut result = x;
        for (axis, table) in self.axes.iter().zip(&tables) {
            result = self.resample(b, result, axis, table)?;
        }
        for (axis, table) in self.axes.iter().zip(&tables) {
            if table.iter().any(|t| t.outside) {
                let mut column = vec![1; shape.len()];
                column[axis.axis] = axis.size;
                let outside: Vec<f64> = table.iter().map(|t| f64::from(u8::from(t.outside))).collect();
                let outside = b.constant(HostTensor::from_f64(DType::Bool, column, &outside)?)?;
                let value = b.scalar(b.ty(x).dtype, f64::from(self.extrapolation))?;
                result = b.select(outside, value, result)?;
            }
        }
        Ok(result)
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let x = inputs[0];
        let ty = self.infer(&[&x.ty()])?;
        let own = crate::tensor::strides(&x.shape);
        let tables: Vec<Vec<Taps>> = self.axes.iter().map(|a| self.table(a, x.shape[a.axis])).collect();
        let element = |i: usize| {
            let mut coords = coordinates(i, &ty.shape);
            let rows: Vec<&Taps> = self.axes.iter().zip(&tables).map(|(a, table)| &table[coords[a.axis]]).collect();
            if rows.iter().any(|r| r.outside) {
                return f64::from(self.extrapolation);
            }
            // All combinations of the taps of all axes.
            let mut sum = 0.0;
            for n in 0..rows.iter().map(|r| r.taps.len()).product() {
                let (mut rest, mut weight) = (n, 1.0);
                for (a, row) in self.axes.iter().zip(&rows) {
                    let (at, w) = row.taps[rest % row.taps.len()];
                    rest /= row.taps.len();
                    coords[a.axis] = at;
                    weight *= w;
                }
                let value = x.data[coords.iter().zip(&own).map(|(c, s)| c * s).sum::<usize>()];
                if matches!(self.interpolation, Interpolation::Nearest(_)) {
                    return value;
                }
                sum += weight * value;
            }
            sum
        };
        RefTensor::new(ty.dtype, ty.shape.clone(), (0..ty.num_elems()).map(element).collect())
    }
}

/// Resampling.
pub trait ResizeOps: Value {
    /// Resampling as ONNX Resize.
    fn resize(&self, resize: Resize) -> Result<Self> {
        Self::apply(Op::composite(resize), &[self])
    }

    /// The spatial dimensions of `[n, c, ...]` brought to `sizes`, pixels at half places.
    fn interpolate(&self, sizes: &[usize], interpolation: Interpolation) -> Result<Self> {
        let shape = self.ty().shape;
        let spatial = shape
            .get(2..)
            .filter(|s| s.len() == sizes.len())
            .ok_or_else(|| Error::invalid(format!("sizes {sizes:?} for {}: one for each dimension after the first two", self.ty())))?;
        let axis = |(d, (&len, &size)): (usize, (&usize, &usize))| ResizeAxis {
            axis: d + 2,
            size,
            scale: size as f64 / len.max(1) as f64,
            region: (0.0, 1.0),
        };
        self.resize(Resize::new(spatial.iter().zip(sizes).enumerate().map(axis).collect(), interpolation, Coordinates::HalfPixel))
    }
}

impl<V: Value> ResizeOps for V {}

impl Resize {
    /// Resampling without antialiasing, elements past the ends standing for those at the ends.
    pub fn new(axes: Vec<ResizeAxis>, interpolation: Interpolation, coordinates: Coordinates) -> Self {
        Resize { axes, interpolation, coordinates, antialias: false, exclude_outside: false, extrapolation: 0.0 }
    }
}

pub(super) fn cases(cases: &mut Cases) {
    use Coordinates::*;
    let close = Tolerance::Relative { relative: 1e-5, absolute: 1e-5 };
    let axis = |axis, len: usize, size| ResizeAxis { axis, size, scale: size as f64 / len as f64, region: (0.1, 0.8) };
    let modes = [
        Interpolation::Nearest(Nearest::RoundPreferFloor),
        Interpolation::Nearest(Nearest::RoundPreferCeil),
        Interpolation::Nearest(Nearest::Floor),
        Interpolation::Nearest(Nearest::Ceil),
        Interpolation::Linear,
        Interpolation::Cubic { a: -0.75 },
    ];
    for coordinates in [HalfPixel, HalfPixelSymmetric, PytorchHalfPixel, AlignCorners, Asymmetric, TfCropAndResize] {
        for interpolation in modes {
            let shapes = [([1usize, 2, 5, 8], [9usize, 3]), ([2, 3, 5, 7], [10, 14]), ([1, 1, 1, 1], [3, 1]), ([0, 2, 4, 4], [8, 3])];
            // Every kind of places meets every kind of weights once; the other shapes meet the usual places.
            for (shape, sizes) in &shapes[..if coordinates == HalfPixel { 4 } else { 1 }] {
                let axes = vec![axis(2, shape[2], sizes[0]), axis(3, shape[3], sizes[1])];
                let resize = Resize { extrapolation: 7.5, ..Resize::new(axes, interpolation, coordinates) };
                cases.add(Op::composite(resize.clone()), close, vec![floats(shape)]);
                if !matches!(interpolation, Interpolation::Nearest(_)) && coordinates != TfCropAndResize {
                    let excluding = Resize { exclude_outside: true, ..resize.clone() };
                    cases.add(Op::composite(excluding), close, vec![floats(shape)]);
                    let smooth = Resize { antialias: true, ..resize };
                    cases.add(Op::composite(smooth), close, vec![floats(shape)]);
                }
            }
        }
    }
    let upscale = Op::composite(Resize::new(vec![axis(0, 11, 33)], modes[0], HalfPixel));
    cases.add(upscale, Tolerance::Bits, vec![edges(DType::F32, &[11])]);
    for dtype in [DType::U8, DType::I32, DType::Bool] {
        let axes = vec![axis(1, 5, 15), axis(2, 7, 3)];
        cases.add(Op::composite(Resize::new(axes, modes[2], Asymmetric)), Tolerance::Bits, vec![plain(dtype, &[2, 5, 7])]);
    }
}
