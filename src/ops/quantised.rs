//! Quantised matrices in graphs: codes of a few bits and their scales as they lie in memory, dequantised where a kernel loads them.
//!
//! What lies where is [`Quantised`]'s layout. A product reads packed operands as they are: no kernel writes the numbers out before it, however
//! often it needs them.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, uniform};
use super::dot::DotOps;
use super::elementwise::ElementwiseOps;
use super::packing::{Unpack, num_words};
use super::shape::ShapeOps;
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, TensorType, UnaryOp};
use crate::tensor::quantised::Quantised;
use crate::tensor::scheme::{Element, Granularity, ScaleFormat, Scheme, TILE, fraction};
use crate::tensor::{HostTensor, hadamard};
use half::f16;
use kernels_gen::DType;
use kernels_gen::formats::Format;

/// Words along k past which a product of signed bytes might leave the range of 32 bits: 128 * 128 * 4 * 32,767 < 2^31.
const MAX_DOT_WORDS: usize = 32_767;

/// The numbers of a quantised matrix, F32 `[rows, columns]`, [`Dequantise::columns`] of each stored row: those of the matrix, or of the turned one
/// under a Hadamard transform. Operands, in this order, as far as the scheme has them:
///
/// | operand | type |
/// |---|---|
/// | codes | U32 `[rows, words]` |
/// | scales | F32 or F16 [`Scheme::scale_shape`]; for e8m0 and e4m3 U32 words, four codes each, of every row of scales |
/// | zero points | U32 words of codes, of every row of scales |
/// | scale of the tensor | F32 `[]` |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dequantise {
    /// The scheme, whose element is a code.
    pub scheme: Scheme,
    /// Rows.
    pub rows: usize,
    /// Numbers of a row.
    pub k: usize,
}

impl Dequantise {
    /// Numbers of a row of the result: k, filled up to whole Hadamard blocks.
    pub fn columns(&self) -> usize {
        self.k.next_multiple_of(self.scheme.hadamard.unwrap_or(1))
    }

    fn format(&self) -> Result<Format> {
        self.scheme.format().ok_or_else(|| Error::invalid(format!("`{}` has no codes: use a tensor of that type", self.scheme)))
    }

    /// Types of the operands.
    pub fn operands(&self) -> Result<Vec<TensorType>> {
        self.scheme.check()?;
        let format = self.format()?;
        let [rows, columns] = self.scheme.scale_shape(self.rows, self.k);
        let mut types = vec![TensorType::new(DType::U32, [self.rows, self.scheme.words_per_row(self.k)])];
        let Some(scaling) = self.scheme.scaling else { return Ok(types) };
        types.push(match scaling.format {
            ScaleFormat::F32 => TensorType::new(DType::F32, [rows, columns]),
            ScaleFormat::F16 => TensorType::new(DType::F16, [rows, columns]),
            ScaleFormat::E8M0(_) | ScaleFormat::E4M3 => TensorType::new(DType::U32, [rows, num_words(8, columns)]),
        });
        types.extend(scaling.zero_point.then(|| TensorType::new(DType::U32, [rows, num_words(format.bits(), columns)])));
        types.extend((scaling.format == ScaleFormat::E4M3).then(|| TensorType::new(DType::F32, [])));
        Ok(types)
    }

    /// A value of each group, `[rows, columns]` of groups, at each element: `[rows, padded k]`.
    pub(super) fn spread(&self, b: &mut GraphBuilder, of_groups: NodeId) -> Result<NodeId> {
        let (rows, padded) = (self.rows, self.scheme.padded_k(self.k));
        let full = [rows, padded];
        match self.scheme.scaling.map(|s| s.granularity) {
            None | Some(Granularity::Tensor | Granularity::Channel) => b.broadcast_to(of_groups, &full),
            Some(Granularity::Block(size)) => {
                let blocks = padded / size;
                let wide = b.reshape(of_groups, &[rows, blocks, 1])?;
                let wide = b.broadcast_to(wide, &[rows, blocks, size])?;
                b.reshape(wide, &full)
            }
            Some(Granularity::Tile) => {
                let (down, across) = (rows.div_ceil(TILE), padded / TILE);
                let wide = b.reshape(of_groups, &[down, 1, across, 1])?;
                let wide = b.broadcast_to(wide, &[down, TILE, across, TILE])?;
                let wide = b.reshape(wide, &[down * TILE, padded])?;
                first_of(b, wide, 0, rows)
            }
        }
    }

    /// Zero points in f32, one a group.
    pub(super) fn zero_points(&self, b: &mut GraphBuilder, operands: &[NodeId]) -> Result<NodeId> {
        let (format, columns) = (self.format()?, self.scheme.scale_shape(self.rows, self.k)[1]);
        let words = *operands.get(2).ok_or_else(|| Error::internal("Dequantise without its zero points"))?;
        let codes = b.add(Op::composite(Unpack { bits: format.bits(), codes: columns }), &[words])?;
        b.unary(UnaryOp::Decode(format), codes)
    }

    /// The inverses of scales of e8m0, one a group, the unit of fractions left out.
    pub(super) fn inverse_steps(&self, b: &mut GraphBuilder, operands: &[NodeId]) -> Result<NodeId> {
        let columns = self.scheme.scale_shape(self.rows, self.k)[1];
        let words = *operands.get(1).ok_or_else(|| Error::internal("a scheme without its scales"))?;
        let codes = b.add(Op::composite(Unpack { bits: 8, codes: columns }), &[words])?;
        // NaN, 255, stays so in the low byte.
        let most = b.splat_like(codes, DType::U32, 254.0)?;
        let inverse = b.binary(BinaryOp::Sub, most, codes)?;
        b.unary(UnaryOp::Decode(Format::E8M0), inverse)
    }

    /// Scales in f32, one a group, the scale of the tensor and the unit of fractions included.
    pub(super) fn steps(&self, b: &mut GraphBuilder, operands: &[NodeId]) -> Result<NodeId> {
        let missing = || Error::internal("Dequantise without its scales");
        let scales = *operands.get(1).ok_or_else(missing)?;
        let columns = self.scheme.scale_shape(self.rows, self.k)[1];
        match self.scheme.scaling.map(|s| s.format).ok_or_else(missing)? {
            ScaleFormat::F32 => Ok(scales),
            ScaleFormat::F16 => b.cast(scales, DType::F32),
            ScaleFormat::E8M0(_) => {
                let codes = b.add(Op::composite(Unpack { bits: 8, codes: columns }), &[scales])?;
                let value = b.unary(UnaryOp::Decode(Format::E8M0), codes)?;
                let unit = fraction(self.format()?);
                if unit == 1.0 { Ok(value) } else { b.binary_scalar(BinaryOp::Mul, value, f64::from(unit)) }
            }
            ScaleFormat::E4M3 => {
                let codes = b.add(Op::composite(Unpack { bits: 8, codes: columns }), &[scales])?;
                let value = b.unary(UnaryOp::Decode(Format::E4M3), codes)?;
                b.binary(BinaryOp::Mul, value, *operands.last().ok_or_else(missing)?)
            }
        }
    }
}

/// The first `size` elements along an axis.
fn first_of(b: &mut GraphBuilder, x: NodeId, axis: usize, size: usize) -> Result<NodeId> {
    let mut sizes = b.shape(x);
    if sizes[axis] == size {
        return Ok(x);
    }
    sizes[axis] = size;
    let (starts, steps) = (vec![0; sizes.len()], vec![1; sizes.len()]);
    b.add(Prim::Slice { starts, steps, sizes }, &[x])
}

impl Composite for Dequantise {
    fn name(&self) -> &'static str {
        "Dequantise"
    }

    fn attributes(&self) -> String {
        format!("{} rows={} k={}", self.scheme, self.rows, self.k)
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let wanted = self.operands()?;
        if !inputs.iter().copied().eq(&wanted) {
            let list = wanted.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(Call::new(self.name(), inputs).misfit(format_args!("{} takes {list}", self.attributes())));
        }
        Ok(TensorType::new(DType::F32, [self.rows, self.columns()]))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let (format, padded) = (self.format()?, self.scheme.padded_k(self.k));
        let codes = b.add(Op::composite(Unpack { bits: format.bits(), codes: padded }), &inputs[..1])?;
        let mut value = b.unary(UnaryOp::Decode(format), codes)?;
        if let Some(scaling) = self.scheme.scaling {
            if scaling.zero_point {
                let zero = self.zero_points(b, inputs)?;
                let zero = self.spread(b, zero)?;
                value = b.binary(BinaryOp::Sub, value, zero)?;
            }
            let steps = self.steps(b, inputs)?;
            let steps = self.spread(b, steps)?;
            value = b.binary(BinaryOp::Mul, value, steps)?;
        }
        first_of(b, value, 1, self.columns())
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let words = |t: &RefTensor| t.data.iter().map(|&v| v as u32).collect::<Vec<u32>>();
        let shape = self.scheme.scale_shape(self.rows, self.k);
        let per_row = self.scheme.scale_words_per_row(self.rows, self.k);
        let scaling = self.scheme.scaling;
        let scales = match (scaling.map(|s| s.format), inputs.get(1)) {
            (Some(ScaleFormat::F32), Some(scales)) => scales.data.iter().map(|&v| (v as f32).to_bits()).collect(),
            (Some(ScaleFormat::F16), Some(scales)) => {
                let mut words = vec![0u32; shape[0] * per_row];
                for (i, &v) in scales.data.iter().enumerate() {
                    let (row, column) = (i / shape[1], i % shape[1]);
                    words[row * per_row + column / 2] |= u32::from(f16::from_f64(v).to_bits()) << (column % 2 * 16);
                }
                words
            }
            (Some(_), Some(scales)) => words(scales),
            _ => Vec::new(),
        };
        let zero_points = match scaling {
            Some(s) if s.zero_point => inputs.get(2).map(|t| words(t)).unwrap_or_default(),
            _ => Vec::new(),
        };
        let tensor_scale = if self.scheme.has_tensor_scale() { inputs.last().map_or(1.0, |t| t.data[0] as f32) } else { 1.0 };
        let matrix = Quantised::from_parts(&self.scheme, self.rows, self.k, 0, words(inputs[0]), scales, zero_points, tensor_scale)?;
        let (padded, columns) = (self.scheme.padded_k(self.k), self.columns());
        let stored = matrix.stored_values();
        let data = stored.chunks_exact(padded.max(1)).flat_map(|row| row[..columns].iter().map(|&v| f64::from(v))).collect();
        RefTensor::new(DType::F32, [self.rows, columns], data)
    }
}

/// A quantised matrix `[rows, k]` of a graph or of captured tensors.
#[derive(Debug, Clone)]
pub struct Packed<V> {
    dequantise: Dequantise,
    seed: u64,
    operands: Vec<V>,
}

impl<V: Value> Packed<V> {
    /// The operands of [`Dequantise`] as tensors.
    pub fn tensors(matrix: &Quantised) -> Result<Vec<HostTensor>> {
        let scheme = *matrix.scheme();
        let dequantise = Dequantise { scheme, rows: matrix.rows(), k: matrix.k() };
        let [rows, columns] = scheme.scale_shape(matrix.rows(), matrix.k());
        let types = dequantise.operands()?;
        let mut tensors = vec![HostTensor::new(types[0].shape.clone(), matrix.codes().to_vec())?];
        if let Some(scaling) = scheme.scaling {
            let halves = |i: usize| {
                let (row, column) = (i / columns, i % columns);
                let word = matrix.scales()[row * scheme.scale_words_per_row(matrix.rows(), matrix.k()) + column / 2];
                f16::from_bits((word >> (column % 2 * 16)) as u16)
            };
            tensors.push(match scaling.format {
                ScaleFormat::F32 => {
                    HostTensor::new([rows, columns], matrix.scales().iter().map(|&bits| f32::from_bits(bits)).collect::<Vec<_>>())?
                }
                ScaleFormat::F16 => HostTensor::new([rows, columns], (0..rows * columns).map(halves).collect::<Vec<_>>())?,
                ScaleFormat::E8M0(_) | ScaleFormat::E4M3 => HostTensor::new(types[1].shape.clone(), matrix.scales().to_vec())?,
            });
            if scaling.zero_point {
                tensors.push(HostTensor::new(types[2].shape.clone(), matrix.zero_points().to_vec())?);
            }
            if scheme.has_tensor_scale() {
                tensors.push(HostTensor::new([], vec![matrix.tensor_scale()])?);
            }
        }
        Ok(tensors)
    }

    /// A matrix made on the host, as constants beside `like`.
    pub fn constant(like: &V, matrix: &Quantised) -> Result<Self> {
        let operands = Self::tensors(matrix)?.into_iter().map(|tensor| like.constant(tensor)).collect::<Result<Vec<_>>>()?;
        Self::new(*matrix.scheme(), matrix.rows(), matrix.k(), matrix.seed(), operands)
    }

    /// A matrix of `rows` rows of `k` numbers from the operands of [`Dequantise`]; `seed` is that of the Hadamard transform.
    pub fn new(scheme: Scheme, rows: usize, k: usize, seed: u64, operands: Vec<V>) -> Result<Self> {
        let dequantise = Dequantise { scheme, rows, k };
        let types: Vec<TensorType> = operands.iter().map(Value::ty).collect();
        dequantise.infer(&types.iter().collect::<Vec<_>>())?;
        Ok(Packed { dequantise, seed, operands })
    }

    /// The scheme.
    pub fn scheme(&self) -> &Scheme {
        &self.dequantise.scheme
    }

    /// Rows and numbers of a row.
    pub fn shape(&self) -> [usize; 2] {
        [self.dequantise.rows, self.dequantise.k]
    }

    /// The numbers as they stand: F32 `[rows, k]`, or the turned matrix, filled up to whole blocks, under a Hadamard transform.
    pub fn stored(&self) -> Result<V> {
        V::apply(Op::composite(self.dequantise), &self.operands.iter().collect::<Vec<_>>())
    }

    /// The numbers that the matrix stands for, F32 `[rows, k]`.
    pub fn dequantise(&self) -> Result<V> {
        let stored = self.stored()?;
        let Some(block) = self.dequantise.scheme.hadamard else { return Ok(stored) };
        let [rows, k] = self.shape();
        let columns = self.dequantise.columns();
        // The matrix is symmetric: turning back is turning, with the signs after it.
        let blocks = stored.reshape(&[(rows * columns / block) as isize, block as isize])?;
        let turned = blocks.matmul(&sylvester(&stored, block)?)?.reshape(&[rows as isize, columns as isize])?;
        turned.mul(&signs(&stored, self.seed, columns)?)?.slice(&[0, 0], &[rows, k])
    }

    /// `x * self^T` for x `[.., k]`: the product with the numbers of the matrix, F32 `[.., rows]`.
    pub fn matmul(&self, x: &V) -> Result<V> {
        self.left(x)?.matmul(&self.stored()?.transpose(&[1, 0])?)
    }

    /// `x * self` for x `[.., rows]`: the product that sums over the rows of the matrix, F32 `[.., k]`.
    pub fn matmul_transposed(&self, x: &V) -> Result<V> {
        x.matmul(&self.dequantise()?)
    }

    /// `x[b] * matrix[b]^T` of x `[count, m, k]`, where the rows of `self` are those of `count` matrices, one after the other: F32
    /// `[count, m, rows / count]`.
    pub fn matmul_batched(&self, x: &V, count: usize) -> Result<V> {
        self.left(x)?.matmul(&self.columns_of(count)?)
    }

    /// `x[b] * matrix[groups[b]]^T` of x `[blocks, m, k]` and `groups` I32 `[blocks]`, where the rows of `self` are those of `count` matrices, one after
    /// the other: F32 `[blocks, m, rows / count]`. Indices are clamped to those of matrices.
    pub fn matmul_grouped(&self, x: &V, groups: &V, count: usize) -> Result<V> {
        self.left(x)?.matmul_grouped(&self.columns_of(count)?, groups)
    }

    /// The rows as `count` transposed matrices.
    fn columns_of(&self, count: usize) -> Result<V> {
        let (rows, columns) = (self.dequantise.rows, self.dequantise.columns());
        if count == 0 || !rows.is_multiple_of(count) {
            return Err(Error::invalid(format!(
                "{rows} rows in `{}` as {count} matrices: their number must divide the rows",
                self.scheme()
            )));
        }
        self.stored()?.reshape(&[count as isize, (rows / count) as isize, columns as isize])?.transpose(&[0, 2, 1])
    }

    /// A left operand, its rows turned as those of the matrix are.
    fn left(&self, x: &V) -> Result<V> {
        let (ty, [_, k]) = (x.ty(), self.shape());
        if ty.dtype != DType::F32 || ty.shape.last() != Some(&k) {
            return Err(Error::invalid(format!(
                "a product of {ty} with rows of {k} numbers in `{}`: x must be f32 [.., {k}]",
                self.scheme()
            )));
        }
        match self.dequantise.scheme.hadamard {
            None => Ok(x.clone()),
            Some(block) => turned(x, block, self.seed),
        }
    }

    /// `other * self^T` for two quantised matrices of rows of one length: F32 `[other rows, rows]`. Signed bytes with one scale a row, or one in all,
    /// are multiplied as such and added up exactly in 32 bits. Matrices that were turned alike are multiplied as they stand, what fills up their rows
    /// included.
    pub fn matmul_packed(&self, other: &Packed<V>) -> Result<V> {
        let ([rows, k], [other_rows, other_k]) = (self.shape(), other.shape());
        if k != other_k {
            return Err(Error::invalid(format!(
                "a product of matrices with rows of {other_k} and of {k} numbers: they must have one length"
            )));
        }
        let turns = |packed: &Packed<V>| packed.scheme().hadamard.map(|block| (block, packed.seed));
        let bytes = self.is_bytes() && other.is_bytes() && turns(self) == turns(other);
        if bytes && self.scheme().words_per_row(k).max(other.scheme().words_per_row(k)) <= MAX_DOT_WORDS {
            return self.dot_bytes(other, [other_rows, rows]);
        }
        if turns(self) == turns(other) {
            return other.stored()?.matmul(&self.stored()?.transpose(&[1, 0])?);
        }
        self.matmul(&other.dequantise()?)
    }

    /// Whether the matrix is signed bytes with at most one scale a row.
    fn is_bytes(&self) -> bool {
        let scheme = self.scheme();
        let plain = scheme.scaling.is_none_or(|s| {
            matches!(s.granularity, Granularity::Tensor | Granularity::Channel) && matches!(s.format, ScaleFormat::F32 | ScaleFormat::F16)
        });
        scheme.element == Element::Code(Format::Int8) && plain
    }

    fn dot_bytes(&self, other: &Packed<V>, [m, n]: [usize; 2]) -> Result<V> {
        let words = |packed: &Packed<V>, rows: usize, words: usize| -> Result<V> {
            let codes = &packed.operands[0];
            // Rows that are filled up for a Hadamard transform may be longer than the other's.
            codes.slice(&[0, 0], &[rows, words])?.reshape(&[1, rows as isize, words as isize])
        };
        let shared = self.scheme().words_per_row(self.dequantise.k).min(other.scheme().words_per_row(self.dequantise.k));
        let (a, b) = (words(other, m, shared)?, words(self, n, shared)?.transpose(&[0, 2, 1])?);
        let sum = V::apply(Op::from(Prim::DotI8), &[&a, &b])?.cast(DType::F32)?.reshape(&[m as isize, n as isize])?;
        let sum = match other.operands.get(1) {
            Some(scales) => sum.mul(&scales.cast(DType::F32)?)?,
            None => sum,
        };
        match self.operands.get(1) {
            Some(scales) => sum.mul(&scales.cast(DType::F32)?.transpose(&[1, 0])?),
            None => Ok(sum),
        }
    }
}

/// The matrix of a Hadamard transform of blocks of `n`, its factor included.
fn sylvester<V: Value>(like: &V, n: usize) -> Result<V> {
    let factor = 1.0 / (n as f32).sqrt();
    let element = |i: usize| if ((i / n) & (i % n)).count_ones().is_multiple_of(2) { factor } else { -factor };
    like.constant(HostTensor::new([n, n], (0..n * n).map(element).collect::<Vec<f32>>())?)
}

fn signs<V: Value>(like: &V, seed: u64, columns: usize) -> Result<V> {
    like.constant(HostTensor::new([columns], hadamard::signs(seed, columns))?)
}

/// Rows of `x` filled up to whole blocks with zeros and turned as [`hadamard::transform`] does.
pub(super) fn turned<V: Value>(x: &V, block: usize, seed: u64) -> Result<V> {
    let shape = x.ty().shape;
    let Some((&k, rows)) = shape.split_last() else { return Err(Error::invalid("a Hadamard transform of a scalar")) };
    let columns = k.next_multiple_of(block);
    let (low, mut high) = (vec![0; shape.len()], vec![0; shape.len()]);
    high[rows.len()] = columns - k;
    let x = if columns > k { x.pad(&low, &high, 0.0)? } else { x.clone() };
    let x = x.mul(&signs(&x, seed, columns)?)?;
    let sizes = |last: &[usize]| rows.iter().chain(last).map(|&d| d as isize).collect::<Vec<_>>();
    x.reshape(&sizes(&[columns / block, block]))?.matmul(&sylvester(&x, block)?)?.reshape(&sizes(&[columns]))
}

pub(super) fn cases(cases: &mut Cases) {
    let spec = |ty: TensorType| match ty.dtype {
        DType::U32 => uniform(ty.dtype, &ty.shape, 0.0, f64::from(u32::MAX)),
        _ => uniform(ty.dtype, &ty.shape, 0.01, 2.0),
    };
    let names = crate::tensor::scheme::PRESETS.iter().chain(&["int4-group32-f16", "fp8-channel-f16", "int8-channel-hadamard32"]);
    let schemes = names.filter_map(|name| Scheme::parse(name).ok()).filter(|s| s.format().is_some());
    for (at, scheme) in schemes.enumerate() {
        for (rows, k) in [[(3, 130), (1, 1)], [(130, 33), (2, 0)], [(7, 257), (0, 5)]][at % 3] {
            let op = Dequantise { scheme, rows, k };
            let Ok(operands) = op.operands() else { continue };
            // Codes of scales may be huge powers of two, and not a number.
            let tolerance = Tolerance::Relative { relative: 1e-6, absolute: 1e-37 };
            cases.add(Op::composite(op), tolerance, operands.into_iter().map(spec).collect());
        }
    }
}
