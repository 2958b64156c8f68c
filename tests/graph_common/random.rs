//! Random graphs, grown from numbers so that a property test can shrink them.
//!
//! Each value knows a bound of its magnitude and whether f32 holds it without rounding: operations that jump (comparisons, roundings,
//! conversions to integers) take only such values, so that a rounding error never becomes another result.

use sublane::capture::{Traced, Tracer, capture};
use sublane::graph::{Graph, Op, Prim, ReduceOp};
use sublane::ops::Tolerance;
use sublane::ops::activation::Activation;
use sublane::ops::conv::Conv;
use sublane::ops::prelude::*;
use sublane::ops::window::Padding;
use sublane::tensor::HostTensor;
use sublane::{DType, Result};

/// Elements of the largest value.
const MAX_ELEMS: usize = 3000;
/// Magnitude past which values are brought back.
const MAX_BOUND: f64 = 1e4;

/// A graph with inputs for it and the tolerance its results have.
pub struct Sample {
    pub graph: Graph,
    pub inputs: Vec<(String, HostTensor)>,
    pub tolerance: Tolerance,
}

/// The sample that `genes` stand for.
pub fn grow(genes: &[u32]) -> Sample {
    let mut inputs = Vec::new();
    let (mut largest, mut halves) = (0f64, false);
    let graph = capture(|t| {
        let mut growth = Growth { genes, at: 0, tracer: t, values: Vec::new(), inputs: Vec::new(), largest: 1.0, halves: false };
        growth.plant()?;
        while growth.at < genes.len() {
            growth.step()?;
        }
        // What came last depends on most of what came before.
        let late = growth.values.iter().rev().take(5).map(|v| v.v.clone());
        let outputs: Vec<Traced> = late.chain([growth.values[4 % growth.values.len()].v.clone()]).collect();
        inputs = growth.inputs;
        (largest, halves) = (growth.largest, growth.halves);
        Ok(outputs)
    });
    // A step of f16 is 1e-3 of a value, and a graph may take several.
    let tolerance = match halves {
        false => Tolerance::Relative { relative: 1e-3, absolute: 1e-4 * largest },
        true => Tolerance::Relative { relative: 1e-2, absolute: 5e-3 * largest },
    };
    Sample { graph: graph.expect("only legal operations are chosen"), inputs, tolerance }
}

/// The genes of a seed.
pub fn genes(seed: u64, count: usize) -> Vec<u32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    (0..count).map(|_| next()).collect()
}

#[derive(Clone)]
struct Val {
    v: Traced,
    /// Every element is a multiple of `2^-bits`, few enough that f32 holds it; `None`: elements are rounded. Integers are exact always.
    bits: Option<u32>,
    bound: f64,
}

struct Growth<'a> {
    genes: &'a [u32],
    at: usize,
    tracer: &'a Tracer,
    values: Vec<Val>,
    inputs: Vec<(String, HostTensor)>,
    largest: f64,
    /// Whether a value is f16.
    halves: bool,
}

fn elems(shape: &[usize]) -> usize {
    shape.iter().product()
}

fn broadcasts(a: &[usize], b: &[usize]) -> bool {
    sublane::ops::broadcast_shapes(&[a, b]).is_ok_and(|s| elems(&s) <= MAX_ELEMS)
}

impl Growth<'_> {
    fn next(&mut self) -> u32 {
        self.at += 1;
        self.genes.get(self.at - 1).copied().unwrap_or(0)
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n.max(1)
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    /// A tensor of small numbers, halves among the floats.
    fn numbers(&mut self, dtype: DType, shape: &[usize]) -> HostTensor {
        let mut state = u64::from(self.next()) | 1;
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let n = (state >> 40) as i64;
            match dtype {
                DType::F32 | DType::F16 => (n % 9 - 4) as f64 / 2.0,
                DType::Bool => (n % 2) as f64,
                DType::I32 | DType::I8 => (n % 201 - 100) as f64,
                DType::U32 | DType::U8 => (n % 200) as f64,
            }
        };
        let values: Vec<f64> = (0..elems(shape)).map(|_| number()).collect();
        HostTensor::from_f64(dtype, shape, &values).expect("fits")
    }

    fn shape(&mut self) -> Vec<usize> {
        const SIZES: [usize; 10] = [1, 2, 3, 4, 5, 7, 8, 16, 33, 64];
        let mut shape: Vec<usize> = (0..self.below(5)).map(|_| SIZES[self.below(SIZES.len())]).collect();
        while elems(&shape) > MAX_ELEMS / 2 {
            shape.pop();
        }
        shape
    }

    fn plant(&mut self) -> Result<()> {
        const DTYPES: [DType; 6] = [DType::I32, DType::U8, DType::I8, DType::U32, DType::Bool, DType::F16];
        let others = [DTYPES[self.below(6)], DTYPES[self.below(6)]];
        for dtype in [DType::F32, DType::F32, others[0], others[1]] {
            let shape = self.shape();
            let name = format!("x{}", self.inputs.len());
            let v = self.tracer.input(&name, shape.clone(), dtype)?;
            let tensor = self.numbers(dtype, &shape);
            self.inputs.push((name, tensor));
            self.values.push(Val { v, bits: Some(1), bound: 2.0 });
        }
        Ok(())
    }

    fn keep(&mut self, v: Traced, bits: Option<u32>, bound: f64) -> Result<()> {
        let half = v.dtype() == DType::F16;
        self.halves |= half;
        let bits = bits.filter(|&b| bound * f64::from(b).exp2() <= f64::from(1 << if half { 11 } else { 22 }));
        self.largest = self.largest.max(bound);
        let (v, bits, bound) = match v.dtype() {
            DType::F32 | DType::F16 if bound > MAX_BOUND => (v.tanh()?, None, 1.0),
            DType::F32 | DType::F16 => (v, bits, bound),
            _ => (v, Some(0), bound),
        };
        self.values.push(Val { v, bits, bound });
        Ok(())
    }

    /// A value, more often a late one.
    fn any(&mut self) -> Val {
        let n = self.values.len();
        let i = self.below(2 * n);
        self.values[if i < n { i } else { n - 1 - (i - n) / 6 }].clone()
    }

    fn float(&mut self) -> Val {
        let floats: Vec<Val> = self.values.iter().filter(|v| v.v.dtype().is_float()).cloned().collect();
        let n = floats.len();
        let i = self.below(2 * n);
        floats[if i < n { i } else { n - 1 - (i - n) / 6 }].clone()
    }

    /// Another value that broadcasts with `x`, or a constant.
    fn partner(&mut self, x: &Val) -> Result<Val> {
        let fits = |v: &&Val| v.v.dtype() == x.v.dtype() && broadcasts(v.v.shape(), x.v.shape());
        let fitting: Vec<Val> = self.values.iter().filter(fits).cloned().collect();
        if !fitting.is_empty() && self.below(3) > 0 {
            return Ok(fitting[self.below(fitting.len())].clone());
        }
        let mut shape = x.v.shape().to_vec();
        for size in &mut shape {
            if self.flip() {
                *size = 1;
            }
        }
        let shape = shape[self.below(shape.len() + 1)..].to_vec();
        let tensor = self.numbers(x.v.dtype(), &shape);
        Ok(Val { v: self.tracer.constant(tensor)?, bits: Some(1), bound: 2.0 })
    }

    fn step(&mut self) -> Result<()> {
        match self.below(16) {
            0 => self.unary(),
            1 | 2 => self.smooth(),
            3 | 4 => self.binary(),
            5 => self.integer(),
            6 => self.choose(),
            7..=9 => self.view(),
            10 | 11 => self.reduce(),
            12 => self.product(),
            13 => self.convert(),
            14 => self.normalise(),
            _ => self.window(),
        }
    }

    fn unary(&mut self) -> Result<()> {
        let x = self.float();
        let exact = x.bits.is_some();
        let (v, bits, bound) = match self.below(7) {
            0 => (x.v.neg()?, x.bits, x.bound),
            1 => (x.v.abs()?, x.bits, x.bound),
            2 => (x.v.relu()?, x.bits, x.bound),
            3 if exact => (x.v.sign()?, Some(0), 1.0),
            4 if exact => (x.v.floor()?, Some(0), x.bound + 1.0),
            5 if exact => (x.v.round()?, Some(0), x.bound + 1.0),
            _ => (x.v.clip(-1.0, 2.0)?, x.bits, 2.0),
        };
        self.keep(v, bits, bound)
    }

    fn smooth(&mut self) -> Result<()> {
        let x = self.float();
        let above = |x: &Val| x.v.abs()?.add_scalar(1.0);
        let (v, bound) = match self.below(9) {
            0 => (x.v.tanh()?, 1.0),
            1 => (x.v.sigmoid()?, 1.0),
            2 => (x.v.abs()?.neg()?.exp()?, 1.0),
            3 => (above(&x)?.sqrt()?, (x.bound + 1.0).sqrt()),
            4 => (above(&x)?.log()?, x.bound.ln_1p()),
            5 => (x.v.gelu()?, x.bound),
            6 => (x.v.silu()?, x.bound),
            7 => (x.v.erf()?, 1.0),
            _ => (x.v.activation(Activation::Softplus)?, x.bound + 1.0),
        };
        self.keep(v, None, bound)
    }

    fn binary(&mut self) -> Result<()> {
        let x = self.float();
        let y = self.partner(&x)?;
        let both = x.bits.zip(y.bits);
        let wider = both.map(|(a, b)| a.max(b));
        let (v, bits, bound) = match self.below(7) {
            0 | 1 => (x.v.add(&y.v)?, wider, x.bound + y.bound),
            2 => (x.v.sub(&y.v)?, wider, x.bound + y.bound),
            3 => (x.v.mul(&y.v)?, both.map(|(a, b)| a + b), x.bound * y.bound),
            4 => (x.v.maximum(&y.v)?, wider, x.bound.max(y.bound)),
            5 => (x.v.minimum(&y.v)?, wider, x.bound.max(y.bound)),
            _ => (x.v.div(&y.v.abs()?.add_scalar(1.0)?)?, None, x.bound),
        };
        self.keep(v, bits, bound)
    }

    fn integer(&mut self) -> Result<()> {
        let x = self.any();
        let dtype = x.v.dtype();
        let y = self.partner(&x)?;
        let v = match (dtype, self.below(10)) {
            (DType::F32 | DType::F16, _) => return Ok(()),
            (DType::Bool, 0..=2) => x.v.and(&y.v)?,
            (DType::Bool, 3..=5) => x.v.xor(&y.v)?,
            (DType::Bool, _) => x.v.not()?,
            (_, 0) => x.v.add(&y.v)?,
            (_, 1) => x.v.sub(&y.v)?,
            (_, 2) => x.v.mul(&y.v)?,
            (_, 3) => x.v.div(&y.v)?,
            (_, 4) => x.v.rem(&y.v)?,
            (_, 5) => x.v.maximum(&y.v)?,
            (_, 6) => x.v.minimum(&y.v)?,
            (_, 7) => x.v.xor(&y.v)?,
            (_, 8) => x.v.not()?,
            (_, _) => x.v.abs()?,
        };
        self.keep(v, Some(0), 1.0)
    }

    /// A comparison or a choice.
    fn choose(&mut self) -> Result<()> {
        let x = self.any();
        let y = self.partner(&x)?;
        if x.bits.is_some() && y.bits.is_some() && x.v.dtype() != DType::Bool && self.flip() {
            let v = match self.below(4) {
                0 => x.v.less(&y.v)?,
                1 => x.v.greater_equal(&y.v)?,
                2 => x.v.equal(&y.v)?,
                _ => x.v.not_equal(&y.v)?,
            };
            return self.keep(v, Some(0), 1.0);
        }
        let fits = |v: &&Val| v.v.dtype() == DType::Bool && broadcasts(v.v.shape(), x.v.shape()) && broadcasts(v.v.shape(), y.v.shape());
        let known = self.values.iter().filter(fits).map(|v| v.v.clone()).next_back();
        let condition = match known {
            Some(v) if sublane::ops::broadcast_shapes(&[v.shape(), x.v.shape(), y.v.shape()]).is_ok_and(|s| elems(&s) <= MAX_ELEMS) => v,
            _ => {
                let tensor = self.numbers(DType::Bool, x.v.shape());
                self.tracer.constant(tensor)?
            }
        };
        let bits = x.bits.zip(y.bits).map(|(a, b)| a.max(b));
        self.keep(condition.select(&x.v, &y.v)?, bits, x.bound.max(y.bound))
    }

    fn permutation(&mut self, rank: usize) -> Vec<usize> {
        let mut perm: Vec<usize> = (0..rank).collect();
        for i in (1..rank).rev() {
            perm.swap(i, self.below(i + 1));
        }
        perm
    }

    fn view(&mut self) -> Result<()> {
        let x = self.any();
        let shape = x.v.shape().to_vec();
        let rank = shape.len();
        let v = match self.below(9) {
            0 => x.v.reshape(&[-1])?,
            1 | 2 => {
                let perm = self.permutation(rank);
                x.v.transpose(&perm)?
            }
            3 => {
                // One dimension is split, or a dimension of size 1 is put in.
                let d = self.below(rank + 1);
                let mut sizes: Vec<isize> = shape.iter().map(|&s| s as isize).collect();
                match shape.get(d) {
                    Some(size) if size % 2 == 0 => {
                        sizes[d] /= 2;
                        sizes.insert(d + self.below(2), 2);
                    }
                    _ => sizes.insert(d, 1),
                }
                if sizes.len() > 5 { x.v } else { x.v.reshape(&sizes)? }
            }
            4 => {
                // Two dimensions become one.
                if rank < 2 {
                    return Ok(());
                }
                let d = self.below(rank - 1);
                let mut sizes: Vec<isize> = shape.iter().map(|&s| s as isize).collect();
                sizes[d] *= sizes.remove(d + 1);
                x.v.reshape(&sizes)?
            }
            5 => {
                let (mut starts, mut steps, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
                for &size in &shape {
                    let step = [1isize, 1, 2, -1, -2, 3][self.below(6)];
                    let start = self.below(size);
                    let room = if step > 0 { size - 1 - start } else { start } / step.unsigned_abs() + 1;
                    starts.push(start);
                    steps.push(step);
                    sizes.push(room - self.below(room));
                }
                Traced::apply(Prim::Slice { starts, steps, sizes }.into(), &[&x.v])?
            }
            6 => {
                let low: Vec<usize> = shape.iter().map(|_| self.below(3)).collect();
                let high: Vec<usize> = shape.iter().map(|_| self.below(3)).collect();
                let padded: usize = shape.iter().zip(low.iter().zip(&high)).map(|(s, (l, h))| s + l + h).product();
                if padded > MAX_ELEMS {
                    return Ok(());
                }
                let value = if self.flip() { 1.0 } else { 0.0 };
                let v = x.v.pad(&low, &high, value)?;
                return self.keep(v, x.bits, x.bound.max(1.0));
            }
            7 => {
                if rank == 0 || 2 * elems(&shape) > MAX_ELEMS {
                    return Ok(());
                }
                let axis = self.below(rank);
                let fits = |v: &&Val| {
                    let other = v.v.shape();
                    v.v.dtype() == x.v.dtype() && other.len() == rank && (0..rank).all(|d| d == axis || other[d] == shape[d])
                };
                let fitting: Vec<Val> = self.values.iter().filter(fits).cloned().collect();
                let y = fitting[self.below(fitting.len())].clone();
                let total = elems(&shape) * 2 + elems(y.v.shape());
                if total > MAX_ELEMS {
                    return Ok(());
                }
                let v = Traced::concat(&[&x.v, &y.v, &x.v], axis as i64)?;
                let bits = x.bits.zip(y.bits).map(|(a, b)| a.max(b));
                return self.keep(v, bits, x.bound.max(y.bound));
            }
            _ => {
                let mut to = shape.clone();
                for size in &mut to {
                    if *size == 1 {
                        *size = 1 + self.below(4);
                    }
                }
                if self.flip() && rank < 4 {
                    to.insert(0, 1 + self.below(3));
                }
                if elems(&to) > MAX_ELEMS {
                    return Ok(());
                }
                x.v.broadcast_to(&to)?
            }
        };
        self.keep(v, x.bits, x.bound)
    }

    fn reduce(&mut self) -> Result<()> {
        let x = self.any();
        let rank = x.v.shape().len();
        let mut axes: Vec<i64> = (0..rank as i64).filter(|_| self.flip()).collect();
        if axes.is_empty() && rank > 0 {
            axes.push(self.below(rank) as i64);
        }
        let keep = self.flip();
        let count: usize = axes.iter().map(|&a| x.v.shape()[a as usize]).product();
        let float = x.v.dtype().is_float();
        let (v, bits, bound) = match self.below(5) {
            0 => (x.v.max(&axes, keep)?, x.bits, x.bound),
            1 => (x.v.min(&axes, keep)?, x.bits, x.bound),
            2 if float => (x.v.mean(&axes, keep)?, None, x.bound),
            _ if x.v.dtype() == DType::Bool => (x.v.reduce(ReduceOp::Max, &axes, keep)?, Some(0), 1.0),
            3 if !float => (x.v.product(&axes, keep)?, Some(0), 1.0),
            _ => (x.v.sum(&axes, keep)?, x.bits, x.bound * count as f64),
        };
        self.keep(v, bits, bound)
    }

    /// A matrix product or a gather.
    fn product(&mut self) -> Result<()> {
        if self.below(3) == 0 {
            let x = self.any();
            let rank = x.v.shape().len();
            if rank == 0 {
                return Ok(());
            }
            let axis = self.below(rank);
            let size = x.v.shape()[axis];
            let shape: &[usize] = [&[][..], &[3], &[2, 2], &[1]][self.below(4)];
            if elems(x.v.shape()) * elems(shape) > MAX_ELEMS {
                return Ok(());
            }
            let indices: Vec<f64> = (0..elems(shape)).map(|_| self.below(size) as f64).collect();
            let indices = self.tracer.constant(HostTensor::from_f64(DType::I32, shape, &indices)?)?;
            return self.keep(x.v.gather(&indices, axis as i64)?, x.bits, x.bound);
        }
        let x = self.float();
        let shape = x.v.shape().to_vec();
        let (Some(&k), rank) = (shape.last(), shape.len()) else { return Ok(()) };
        let y = if self.flip() && rank >= 2 && elems(&shape) / k * shape[rank - 2] <= MAX_ELEMS {
            let mut perm: Vec<usize> = (0..rank).collect();
            perm.swap(rank - 1, rank - 2);
            Val { v: x.v.transpose(&perm)?, ..x.clone() }
        } else {
            let n = 1 + self.below(9);
            if elems(&shape) / k * n > MAX_ELEMS {
                return Ok(());
            }
            let tensor = self.numbers(x.v.dtype(), &[k, n]);
            Val { v: self.tracer.constant(tensor)?, bits: Some(1), bound: 2.0 }
        };
        let bits = x.bits.zip(y.bits).map(|(a, b)| a + b);
        self.keep(x.v.matmul(&y.v)?, bits, x.bound * y.bound * k as f64)
    }

    fn convert(&mut self) -> Result<()> {
        let x = self.any();
        let to = [DType::F32, DType::I32, DType::U8, DType::I8, DType::U32, DType::Bool, DType::F16][self.below(7)];
        match (x.v.dtype(), to) {
            (from, to) if from == to => Ok(()),
            (DType::F32 | DType::F16, DType::F32 | DType::F16) => self.keep(x.v.cast(to)?, x.bits, x.bound),
            (DType::F32 | DType::F16, _) if x.bits.is_none() => Ok(()),
            (DType::I32 | DType::U32, DType::F32 | DType::F16) => {
                let small = x.v.rem(&x.v.full_like(100.0)?)?;
                self.keep(small.cast(to)?, Some(0), 100.0)
            }
            (_, DType::F32 | DType::F16) => self.keep(x.v.cast(to)?, Some(0), 256.0),
            _ => self.keep(x.v.cast(to)?, Some(0), 1.0),
        }
    }

    fn normalise(&mut self) -> Result<()> {
        let x = self.float();
        let rank = x.v.shape().len();
        if rank == 0 {
            return Ok(());
        }
        let axis = self.below(rank);
        let size = x.v.shape()[axis];
        match self.below(4) {
            0 | 1 => self.keep(x.v.softmax(axis as i64)?, None, 1.0),
            2 => self.keep(x.v.log_softmax(axis as i64)?, None, 2.0 * x.bound + (size as f64).ln()),
            // Small differences are blown up; only of exact values are they the same everywhere.
            _ if x.bits.is_none() || x.bound > 64.0 => Ok(()),
            _ => {
                let last = x.v.shape()[rank - 1];
                let tensor = self.numbers(x.v.dtype(), &[last]);
                let scale = self.tracer.constant(tensor)?;
                let v = if self.flip() { x.v.layer_norm(&scale, None, -1, 1e-2)? } else { x.v.rms_norm(&scale, -1, 1e-2)? };
                self.keep(v, None, 2.0 * (last as f64).sqrt().max(10.0))
            }
        }
    }

    /// A convolution or a pool of a value brought to four dimensions.
    fn window(&mut self) -> Result<()> {
        let x = self.float();
        let shape = x.v.shape().to_vec();
        if shape.is_empty() {
            return Ok(());
        }
        let mut planar = shape.clone();
        while planar.len() < 4 {
            planar.insert(0, 1);
        }
        while planar.len() > 4 {
            let first = planar.remove(0);
            planar[0] *= first;
        }
        let image = x.v.reshape(&planar.iter().map(|&s| s as isize).collect::<Vec<_>>())?;
        let kernel = [1 + self.below(planar[2].min(3)), 1 + self.below(planar[3].min(3))];
        if self.below(3) == 0 {
            let strides = [1 + self.below(2), 1 + self.below(2)];
            return self.keep(image.max_pool(&kernel, &strides)?, x.bits, x.bound);
        }
        let groups = if planar[1].is_multiple_of(2) && self.flip() { 2 } else { 1 };
        let outputs = groups * (1 + self.below(5));
        let pads = [self.below(2), self.below(2)];
        if planar[0] * outputs * (planar[2] + 2) * (planar[3] + 2) > MAX_ELEMS {
            return Ok(());
        }
        let tensor = self.numbers(x.v.dtype(), &[outputs, planar[1] / groups, kernel[0], kernel[1]]);
        let weights = self.tracer.constant(tensor)?;
        let strides = vec![1 + self.below(2), 1 + self.below(2)];
        let conv = Conv { strides, padding: Padding::symmetric(&pads), groups, ..Conv::new(2) };
        let terms = planar[1] / groups * kernel[0] * kernel[1];
        self.keep(image.conv(&weights, None, conv)?, x.bits.map(|b| b + 1), x.bound * 2.0 * terms as f64)
    }
}

/// Whether any node of a graph is no primitive.
pub fn has_composites(graph: &Graph) -> bool {
    graph.nodes().iter().any(|n| matches!(n.op, Op::Composite(_)))
}
