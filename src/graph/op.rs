//! Operations: a closed set of primitives, and composites that decompose into them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::error::Result;
use crate::graph::{GraphBuilder, NodeId, TensorType};
use crate::ops::RefTensor;
use crate::ops::custom::CustomCall;
use crate::tensor::HostTensor;
use kernels_gen::DType;
pub use kernels_gen::scalar::{BinaryOp, ReduceOp, UnaryOp};

/// An operation of the tensor IR.
#[derive(Debug, Clone)]
pub enum Op {
    /// One of the primitives.
    Prim(Prim),
    /// Anything else; the pass `decompose` replaces it.
    Composite(Arc<dyn Composite>),
}

/// How the weights of a product lie: its second operand, if that is a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WeightLayout {
    /// `[rows, ..]`: all dimensions past the first are summed over.
    Rows,
    /// `[k, columns]`: the first dimension is summed over.
    Columns,
}

/// An operation defined by its decomposition.
pub trait Composite: fmt::Debug + Send + Sync {
    /// ONNX name of the operation.
    fn name(&self) -> &'static str;

    /// Attributes, printed; two composites are equal when name and attributes are, so everything that the decomposition depends on is part of it.
    fn attributes(&self) -> String;

    /// Type of the result, or an error that says which operand does not fit and what would.
    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType>;

    /// Builds the same value from primitives and other composites.
    fn decompose(&self, builder: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId>;

    /// The value by definition, in f64, written without the decomposition: the oracle of the tests.
    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor>;

    /// How the second operand lies where the operation is a product whose weights it may be; `None` for all others.
    fn weights(&self) -> Option<WeightLayout> {
        None
    }
}

/// The primitives. Every stage after `decompose` matches them exhaustively.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Prim {
    /// A value given at each run.
    Input {
        /// Name the caller binds it by.
        name: String,
        /// Type.
        ty: TensorType,
    },
    /// A value known when the graph is built.
    Constant(Constant),
    /// Counts 0, 1, 2... along one axis; the type is I32, U32 or F32.
    Iota {
        /// Type of the result.
        ty: TensorType,
        /// Axis along which the value grows.
        axis: usize,
    },
    /// One operand, element by element.
    Unary(UnaryOp),
    /// Two operands of one type, element by element. Comparisons give Bool.
    Binary(BinaryOp),
    /// `(condition, on_true, on_false)`, element by element; all three have one shape.
    Select,
    /// Conversion to another element type: float to integer truncates and saturates (NaN to 0), integer to integer wraps, anything to
    /// Bool is `!= 0` (NaN to true).
    Cast(DType),
    /// View: the same elements in row-major order under another shape.
    Reshape(Vec<usize>),
    /// View: dimension `i` of the result is dimension `perm[i]` of the operand.
    Transpose(Vec<usize>),
    /// View: dimension `i` of the operand becomes dimension `dims[i]` of the result (`dims` increases) and is repeated where its size is 1.
    Broadcast {
        /// Shape of the result.
        shape: Vec<usize>,
        /// Where each dimension of the operand goes.
        dims: Vec<usize>,
    },
    /// View: element `i` along dimension `d` of the result is element `starts[d] + i * steps[d]` of the operand. Steps may be negative.
    Slice {
        /// First element taken, by dimension.
        starts: Vec<usize>,
        /// Distance of the elements taken, by dimension; never 0.
        steps: Vec<isize>,
        /// Shape of the result.
        sizes: Vec<usize>,
    },
    /// `(operand, value)`: the operand with the scalar `value` (rank 0) around it.
    Pad {
        /// Elements added before, by dimension.
        low: Vec<usize>,
        /// Elements added after, by dimension.
        high: Vec<usize>,
    },
    /// View: sliding windows over the last dimensions. The operand's last `sizes.len()` dimensions `(h, w)` become `(oh, ow)` and `sizes`
    /// are appended: `out[.., oy, ox, ky, kx] = in[.., oy * strides[0] + ky * dilations[0], ox * strides[1] + kx * dilations[1]]`.
    /// `oh = (h - dilation * (size - 1) - 1) / stride + 1`.
    Window {
        /// Window sizes.
        sizes: Vec<usize>,
        /// Distance of neighbouring windows.
        strides: Vec<usize>,
        /// Distance of neighbouring elements of a window.
        dilations: Vec<usize>,
    },
    /// Operands of one type one after another along `axis`.
    Concat {
        /// The axis.
        axis: usize,
    },
    /// Combines all elements along `axes` (sorted, unique), which vanish. An empty reduction gives the identity.
    Reduce {
        /// How to combine.
        op: ReduceOp,
        /// Axes that vanish.
        axes: Vec<usize>,
    },
    /// Batched matrix product of f32: `[b, m, k] x [b, k, n] -> [b, m, n]`.
    Dot,
    /// Batched matrix product of signed bytes, four of which lie in a word (U32), the first in its low bits, along the contracted axis:
    /// `[b, m, words] x [b, words, n] -> [b, m, n]` (I32), exact while `|sum| < 2^31`; past that it wraps.
    DotI8,
    /// Attention of f32: `(q [b, l, e], k [b, s, e], v [b, s, f], mask [b, l, s] (optional)) -> [b, l, f]`, the softmax of
    /// `scale * q k^T + mask` times `v`. A mask of Bool keeps where true, of f32 is added. A row with everything masked is 0.
    Attention {
        /// Factor of the scores.
        scale: Factor,
        /// Whether row `i` sees columns `0..=i` only.
        causal: bool,
    },
    /// Convolution of f32, as ONNX Conv on two spatial dimensions, without bias: `(x [n, c, h, w], weights [o, c / groups, kh, kw]) ->
    /// [n, o, oh, ow]`.
    Conv {
        /// Strides along h and w.
        strides: [usize; 2],
        /// Zeros before, along h and w.
        pads_low: [usize; 2],
        /// Zeros after, along h and w.
        pads_high: [usize; 2],
        /// Dilations along h and w.
        dilations: [usize; 2],
        /// Number of groups.
        groups: usize,
    },
    /// Running combination along an axis: each element becomes that of all up to itself.
    Scan {
        /// How elements are combined.
        op: ReduceOp,
        /// The axis.
        axis: usize,
    },
    /// `keys [rows, n]`: for each run of `run` neighbours (the last of a row may be shorter) the places (I32) of its elements in order, as places in
    /// the row. Equal keys keep their order; NaN is above all.
    Argsort {
        /// Length of a run.
        run: usize,
        /// Whether the largest come first.
        descending: bool,
    },
    /// `(keys [rows, n], order [rows, n])`: an order whose runs of `run` neighbours are sorted by their keys, with neighbouring runs merged in
    /// pairs.
    MergeRuns {
        /// Length of a run.
        run: usize,
        /// Whether the largest come first.
        descending: bool,
    },
    /// `(sorted [n], queries)` (I32): how many of the sorted numbers are less than each query (I32).
    SearchSorted,
    /// `(values [m, inner], starts [n + 1], partials (with blocks))`: row `r` combines the rows of `values` from `starts[r]` (I32) up to
    /// `starts[r + 1]`, one after another; none give the identity.
    Segment {
        /// How rows are combined.
        op: ReduceOp,
        /// Rows that one row of `partials` combines; 0 where there are none.
        block: usize,
    },
    /// A kernel that a user wrote, on operands of the types it was made for.
    Custom(Arc<CustomCall>),
    /// `(data, indices)`: `indices` (I32) replace dimension `axis` of `data`. An index outside `0..size` is clamped.
    Gather {
        /// The axis of `data`.
        axis: usize,
    },
}

/// A factor of an operation, compared by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Factor(u32);

impl Factor {
    /// Wraps a factor.
    pub fn new(value: f32) -> Self {
        Factor(value.to_bits())
    }

    /// The factor.
    pub fn get(self) -> f32 {
        f32::from_bits(self.0)
    }
}

/// A tensor held by a graph: shared, and compared by its contents.
#[derive(Debug, Clone)]
pub struct Constant {
    tensor: Arc<HostTensor>,
    hash: u64,
}

impl Constant {
    /// Wraps a tensor.
    pub fn new(tensor: impl Into<Arc<HostTensor>>) -> Self {
        let tensor = tensor.into();
        let mut hasher = std::hash::DefaultHasher::new();
        (tensor.dtype(), tensor.shape(), tensor.bytes()).hash(&mut hasher);
        Constant { tensor, hash: hasher.finish() }
    }

    /// The tensor.
    pub fn tensor(&self) -> &Arc<HostTensor> {
        &self.tensor
    }

    /// Type of the tensor.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.tensor.dtype(), self.tensor.shape())
    }

    /// The one value all elements have, if they do (compared by their bits).
    pub fn splat(&self) -> Option<f64> {
        let bytes = self.tensor.bytes();
        let size = self.tensor.dtype().size_bytes();
        let first = bytes.get(..size)?;
        let all = bytes.chunks_exact(size).all(|c| c == first);
        if !all {
            return None;
        }
        HostTensor::from_bytes(self.tensor.dtype(), [1], first).ok().map(|t| t.to_f64()[0])
    }
}

impl PartialEq for Constant {
    fn eq(&self, other: &Self) -> bool {
        // By bytes: NaN equals itself here, and -0 differs from 0.
        Arc::ptr_eq(&self.tensor, &other.tensor)
            || (self.hash == other.hash && self.ty() == other.ty() && self.tensor.bytes() == other.tensor.bytes())
    }
}

impl Eq for Constant {}

impl Hash for Constant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Op::Prim(a), Op::Prim(b)) => a == b,
            (Op::Composite(a), Op::Composite(b)) => a.name() == b.name() && a.attributes() == b.attributes(),
            _ => false,
        }
    }
}

impl Eq for Op {}

impl Hash for Op {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Op::Prim(prim) => (0, prim).hash(state),
            Op::Composite(c) => (1, c.name(), c.attributes()).hash(state),
        }
    }
}

impl From<Prim> for Op {
    fn from(prim: Prim) -> Self {
        Op::Prim(prim)
    }
}

impl Op {
    /// A composite.
    pub fn composite(op: impl Composite + 'static) -> Self {
        Op::Composite(Arc::new(op))
    }
}
