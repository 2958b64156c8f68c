//! Recurrent layers over sequences of known length, unrolled: the input's part of all gates is one matrix product, each step one more.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, uniform};
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::Result;
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, TensorType, UnaryOp};
use crate::ops::activation::Activation;
use kernels_gen::DType;

/// What a cell remembers and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// `h = f(x W + h R + b)`.
    Rnn,
    /// Gates z (update), r (reset), h: `h = (1 - z) * g + z * h`, `g = tanh(x W + (r * h) R + b)`.
    Gru {
        /// Whether the reset gate multiplies `h R + b` instead of `h`.
        linear_before_reset: bool,
    },
    /// Gates i (input), o (output), f (forget), c: `c = f * c + i * g`, `h = o * tanh(c)`.
    Lstm {
        /// Whether the gates see the cell state through weights of their own, in order i, o, f.
        peepholes: bool,
    },
}

/// Functions of gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `max(x, 0)`.
    Relu,
}

/// Order in which a direction takes the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the first to the last.
    Forward,
    /// From the last to the first.
    Reverse,
}

/// Which value of the layer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecurrentResult {
    /// Hidden states of all steps: `[steps, directions, batch, hidden]`.
    Sequence,
    /// The last hidden state: `[directions, batch, hidden]`.
    Hidden,
    /// The last cell state of an LSTM: `[directions, batch, hidden]`.
    Cell,
}

/// ONNX RNN, GRU or LSTM, by gates in the order of ONNX. Operands: `x [steps, batch, inputs]`, `w [directions, gates * hidden, inputs]`, `r
/// [directions, gates * hidden, hidden]`, `b [directions, 2 * gates * hidden]` (of the input's part and of the state's), `h0 [directions,
/// batch, hidden]`; for an LSTM also `c0 [directions, batch, hidden]` and, with peepholes, `p [directions, 3 * hidden]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrent {
    /// The cell.
    pub cell: Cell,
    /// Directions, one or two.
    pub orders: Vec<Order>,
    /// Functions of each direction: of the gates, of the candidate and, for an LSTM, of the cell state.
    pub functions: Vec<Vec<Gate>>,
    /// Bound of what goes into the functions, both ways.
    pub clip: Option<f32>,
    /// Which value is wanted.
    pub result: RecurrentResult,
}

impl Cell {
    fn gates(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        }
    }

    /// Functions a direction has where none are given.
    pub fn functions(self) -> Vec<Gate> {
        match self {
            Cell::Rnn => vec![Gate::Tanh],
            Cell::Gru { .. } => vec![Gate::Sigmoid, Gate::Tanh],
            Cell::Lstm { .. } => vec![Gate::Sigmoid, Gate::Tanh, Gate::Tanh],
        }
    }
}

impl Gate {
    fn apply(self, b: &mut GraphBuilder, x: NodeId) -> Result<NodeId> {
        match self {
            Gate::Sigmoid => b.add(Op::composite(Activation::Sigmoid), &[x]),
            Gate::Tanh => b.unary(UnaryOp::Tanh, x),
            Gate::Relu => b.binary_scalar(BinaryOp::Max, x, 0.0),
        }
    }

    fn value(self, x: f64) -> f64 {
        match self {
            Gate::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Gate::Tanh => x.tanh(),
            Gate::Relu => super::elementwise::max(x, 0.0),
        }
    }
}

/// Sizes of a layer.
struct Sizes {
    steps: usize,
    batch: usize,
    hidden: usize,
}

/// Columns `from..from + size` of the last dimension.
fn columns(b: &mut GraphBuilder, x: NodeId, from: usize, size: usize) -> Result<NodeId> {
    let mut sizes = b.shape(x);
    let rank = sizes.len();
    let mut starts = vec![0; rank];
    (starts[rank - 1], sizes[rank - 1]) = (from, size);
    b.add(Prim::Slice { starts, steps: vec![1; rank], sizes }, &[x])
}

/// Row `i` of the first dimension, which vanishes.
fn row(b: &mut GraphBuilder, x: NodeId, i: usize) -> Result<NodeId> {
    let mut sizes = b.shape(x);
    let rank = sizes.len();
    let mut starts = vec![0; rank];
    (starts[0], sizes[0]) = (i, 1);
    let rest = sizes[1..].to_vec();
    let one = b.add(Prim::Slice { starts, steps: vec![1; rank], sizes }, &[x])?;
    b.reshape(one, &rest)
}

/// Values stacked along a new first dimension.
fn stack(b: &mut GraphBuilder, values: &[NodeId]) -> Result<NodeId> {
    let mut shape = b.shape(values[0]);
    shape.insert(0, 1);
    let rows = values.iter().map(|&v| b.reshape(v, &shape)).collect::<Result<Vec<_>>>()?;
    b.add(Prim::Concat { axis: 0 }, &rows)
}

/// `x [m, k]` times the transpose of `w [n, k]`.
fn times_transposed(b: &mut GraphBuilder, x: NodeId, w: NodeId) -> Result<NodeId> {
    let (m, n) = (b.shape(x)[0], b.shape(w)[0]);
    let left = [&[1], &b.shape(x)[..]].concat();
    let left = b.reshape(x, &left)?;
    let right = b.transpose(w, &[1, 0])?;
    let wide = [&[1], &b.shape(right)[..]].concat();
    let right = b.reshape(right, &wide)?;
    let product = b.add(Prim::Dot, &[left, right])?;
    b.reshape(product, &[m, n])
}

/// Operands of one direction.
struct Direction {
    /// The input's part of all gates and steps, biases included where they only add: `[steps, batch, gates * hidden]`.
    inputs: NodeId,
    recurrent: NodeId,
    /// Bias of the state's part, `[gates * hidden]`.
    bias: NodeId,
    peepholes: Option<NodeId>,
}

impl Recurrent {
    fn sizes(&self, x: &[usize], r: &[usize]) -> Sizes {
        Sizes { steps: x[0], batch: x[1], hidden: r[2] }
    }

    fn clipped(&self, b: &mut GraphBuilder, x: NodeId) -> Result<NodeId> {
        match self.clip {
            Some(c) => b.add(Op::composite(Activation::Clip { low: f64::from(-c), high: f64::from(c) }), &[x]),
            None => Ok(x),
        }
    }

    fn function(&self, b: &mut GraphBuilder, d: usize, which: usize, x: NodeId) -> Result<NodeId> {
        let x = self.clipped(b, x)?;
        self.functions[d][which].apply(b, x)
    }

    /// One step: the next hidden and cell states.
    fn step(&self, b: &mut GraphBuilder, d: usize, direction: &Direction, t: usize, h: NodeId, c: NodeId) -> Result<(NodeId, NodeId)> {
        use BinaryOp::{Add, Mul, Sub};
        let hidden = b.shape(h)[1];
        let own = row(b, direction.inputs, t)?;
        match self.cell {
            Cell::Rnn => {
                let state = times_transposed(b, h, direction.recurrent)?;
                let sum = b.binary(Add, state, own)?;
                Ok((self.function(b, d, 0, sum)?, c))
            }
            Cell::Gru { linear_before_reset } => {
                let gate_rows = |b: &mut GraphBuilder, from: usize, count: usize| {
                    let columns = b.shape(direction.recurrent)[1];
                    b.add(
                        Prim::Slice { starts: vec![from * hidden, 0], steps: vec![1, 1], sizes: vec![count * hidden, columns] },
                        &[direction.recurrent],
                    )
                };
                let gates = gate_rows(b, 0, 2)?;
                let state = times_transposed(b, h, gates)?;
                let inputs = columns(b, own, 0, 2 * hidden)?;
                let sum = b.binary(Add, state, inputs)?;
                let gates = self.function(b, d, 0, sum)?;
                let (z, r) = (columns(b, gates, 0, hidden)?, columns(b, gates, hidden, hidden)?);
                let candidate = gate_rows(b, 2, 1)?;
                let inputs = columns(b, own, 2 * hidden, hidden)?;
                let bias = columns(b, direction.bias, 2 * hidden, hidden)?;
                let state = if linear_before_reset {
                    let state = times_transposed(b, h, candidate)?;
                    let state = b.binary(Add, state, bias)?;
                    b.binary(Mul, state, r)?
                } else {
                    let reset = b.binary(Mul, r, h)?;
                    let state = times_transposed(b, reset, candidate)?;
                    b.binary(Add, state, bias)?
                };
                let sum = b.binary(Add, state, inputs)?;
                let g = self.function(b, d, 1, sum)?;
                let difference = b.binary(Sub, h, g)?;
                let kept = b.binary(Mul, z, difference)?;
                Ok((b.binary(Add, g, kept)?, c))
            }
            Cell::Lstm { .. } => {
                let state = times_transposed(b, h, direction.recurrent)?;
                let gates = b.binary(Add, state, own)?;
                let part = |b: &mut GraphBuilder, gate: usize, seen: NodeId, peephole: usize| {
                    let mut x = columns(b, gates, gate * hidden, hidden)?;
                    if let Some(p) = direction.peepholes {
                        let p = columns(b, p, peephole * hidden, hidden)?;
                        let p = b.binary(Mul, p, seen)?;
                        x = b.binary(Add, x, p)?;
                    }
                    self.function(b, d, 0, x)
                };
                let i = part(b, 0, c, 0)?;
                let f = part(b, 2, c, 2)?;
                let g = columns(b, gates, 3 * hidden, hidden)?;
                let g = self.function(b, d, 1, g)?;
                let (kept, new) = (b.binary(Mul, f, c)?, b.binary(Mul, i, g)?);
                let next = b.binary(Add, kept, new)?;
                let o = part(b, 1, next, 1)?;
                // The bound is one of the gates' inputs; the cell state goes into its function as it is.
                let seen = self.functions[d][2].apply(b, next)?;
                Ok((b.binary(Mul, o, seen)?, next))
            }
        }
    }

    fn direction(&self, b: &mut GraphBuilder, inputs: &[NodeId], d: usize, sizes: &Sizes) -> Result<Direction> {
        let width = self.cell.gates() * sizes.hidden;
        let (w, recurrent, biases) = (row(b, inputs[1], d)?, row(b, inputs[2], d)?, row(b, inputs[3], d)?);
        let flat = [sizes.steps * sizes.batch, b.shape(inputs[0])[2]];
        let flat = b.reshape(inputs[0], &flat)?;
        let product = times_transposed(b, flat, w)?;
        let (bias_w, bias) = (columns(b, biases, 0, width)?, columns(b, biases, width, width)?);
        // A bias of the state's part adds where the input's does, but for the candidate of a GRU.
        let added = match self.cell {
            Cell::Gru { .. } => {
                let zero = b.scalar(DType::F32, 0.0)?;
                let gates = columns(b, bias, 0, 2 * sizes.hidden)?;
                b.add(Prim::Pad { low: vec![0], high: vec![sizes.hidden] }, &[gates, zero])?
            }
            Cell::Rnn | Cell::Lstm { .. } => bias,
        };
        let both = b.binary(BinaryOp::Add, bias_w, added)?;
        let sum = b.binary(BinaryOp::Add, product, both)?;
        let inputs_part = b.reshape(sum, &[sizes.steps, sizes.batch, width])?;
        let peepholes = match self.cell {
            Cell::Lstm { peepholes: true } => Some(row(b, inputs[6], d)?),
            _ => None,
        };
        Ok(Direction { inputs: inputs_part, recurrent, bias, peepholes })
    }
}

impl Composite for Recurrent {
    fn name(&self) -> &'static str {
        match self.cell {
            Cell::Rnn => "RNN",
            Cell::Gru { .. } => "GRU",
            Cell::Lstm { .. } => "LSTM",
        }
    }

    fn attributes(&self) -> String {
        let Recurrent { cell, orders, functions, clip, result } = self;
        format!("{cell:?} {orders:?} {functions:?} clip={clip:?} -> {result:?}")
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        let (lstm, peepholes) = (matches!(self.cell, Cell::Lstm { .. }), matches!(self.cell, Cell::Lstm { peepholes: true }));
        let count = 5 + usize::from(lstm) + usize::from(peepholes);
        if inputs.len() != count {
            return Err(call.misfit(format_args!("it takes {count} operands, {} are given", inputs.len())));
        }
        call.floats("each operand", inputs)?;
        let directions = self.orders.len();
        let functions = self.cell.functions().len();
        let sound = (1..=2).contains(&directions)
            && self.functions.len() == directions
            && self.functions.iter().all(|f| f.len() == functions)
            && (lstm || self.result != RecurrentResult::Cell);
        let (&[steps, batch, features], &[_, _, hidden]) = (&inputs[0].shape[..], &inputs[2].shape[..]) else {
            return Err(call.misfit("x must be [steps, batch, inputs] and r [directions, gates * hidden, hidden]"));
        };
        let width = self.cell.gates().checked_mul(hidden).filter(|w| w.checked_mul(2).is_some()).ok_or_else(|| call.too_large())?;
        let state = [directions, batch, hidden];
        let expected: [&[usize]; 7] = [
            &[steps, batch, features],
            &[directions, width, features],
            &[directions, width, hidden],
            &[directions, 2 * width],
            &state,
            &state,
            &[directions, 3 * hidden],
        ];
        if !sound || steps == 0 || inputs.iter().zip(expected).any(|(ty, shape)| ty.shape != shape) {
            return Err(call.misfit(format_args!(
                "with {directions} directions (1 or 2, each with {functions} functions) and {} gates the operands must be x [steps, batch, \
                 inputs] with at least one step, w [directions, gates * hidden, inputs], r [directions, gates * hidden, hidden], b \
                 [directions, 2 * gates * hidden], states [directions, batch, hidden] and peepholes [directions, 3 * hidden]",
                self.cell.gates()
            )));
        }
        let shape = match self.result {
            RecurrentResult::Sequence => vec![steps, directions, batch, hidden],
            RecurrentResult::Hidden | RecurrentResult::Cell => state.to_vec(),
        };
        Ok(TensorType::new(inputs[0].dtype, shape))
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let sizes = self.sizes(&b.shape(inputs[0]), &b.shape(inputs[2]));
        let mut results = Vec::new();
        for (d, order) in self.orders.iter().enumerate() {
            let direction = self.direction(b, inputs, d, &sizes)?;
            let mut h = row(b, inputs[4], d)?;
            let mut c = if matches!(self.cell, Cell::Lstm { .. }) { row(b, inputs[5], d)? } else { h };
            let mut states = vec![h; sizes.steps];
            for step in 0..sizes.steps {
                let t = if *order == Order::Forward { step } else { sizes.steps - 1 - step };
                (h, c) = self.step(b, d, &direction, t, h, c)?;
                states[t] = h;
            }
            results.push(match self.result {
                RecurrentResult::Sequence => stack(b, &states)?,
                RecurrentResult::Hidden => h,
                RecurrentResult::Cell => c,
            });
        }
        let stacked = stack(b, &results)?;
        match self.result {
            RecurrentResult::Sequence => b.transpose(stacked, &[1, 0, 2, 3]),
            RecurrentResult::Hidden | RecurrentResult::Cell => Ok(stacked),
        }
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let ty = self.infer(&inputs.iter().map(|t| t.ty()).collect::<Vec<_>>().iter().collect::<Vec<_>>())?;
        let (x, w, r, bias) = (inputs[0], inputs[1], inputs[2], inputs[3]);
        let Sizes { steps, batch, hidden } = self.sizes(&x.shape, &r.shape);
        let (gates, features, directions) = (self.cell.gates(), x.shape[2], self.orders.len());
        let width = gates * hidden;
        let bounded = |v: f64| self.clip.map_or(v, |c| v.clamp(f64::from(-c), f64::from(c)));
        let mut data = vec![0.0; ty.num_elems()];
        for (d, order) in self.orders.iter().enumerate() {
            for n in 0..batch {
                let state = |t: &RefTensor| t.data[(d * batch + n) * hidden..][..hidden].to_vec();
                let mut h = state(inputs[4]);
                let mut c = inputs.get(5).map_or_else(Vec::new, |t| state(t));
                let f = |which: usize, v: f64| self.functions[d][which].value(bounded(v));
                for step in 0..steps {
                    let t = if *order == Order::Forward { step } else { steps - 1 - step };
                    // The input's and the state's part of gate `g` of unit `u`, with their biases.
                    let input = |g: usize, u: usize| {
                        let row = d * width + g * hidden + u;
                        let terms = (0..features).map(|k| x.data[(t * batch + n) * features + k] * w.data[row * features + k]);
                        terms.sum::<f64>() + bias.data[d * 2 * width + g * hidden + u]
                    };
                    let recur = |g: usize, u: usize, h: &[f64]| {
                        let row = d * width + g * hidden + u;
                        let terms = h.iter().enumerate().map(|(k, v)| v * r.data[row * hidden + k]);
                        terms.sum::<f64>() + bias.data[d * 2 * width + width + g * hidden + u]
                    };
                    let peephole = |i: usize, u: usize| inputs.get(6).map_or(0.0, |p| p.data[(d * 3 + i) * hidden + u]);
                    match self.cell {
                        Cell::Rnn => h = (0..hidden).map(|u| f(0, input(0, u) + recur(0, u, &h))).collect(),
                        Cell::Gru { linear_before_reset } => {
                            let gate = |g: usize| -> Vec<f64> { (0..hidden).map(|u| f(0, input(g, u) + recur(g, u, &h))).collect() };
                            let (update, reset) = (gate(0), gate(1));
                            let masked: Vec<f64> = h.iter().zip(&reset).map(|(h, r)| h * r).collect();
                            let candidate = |u: usize| {
                                let state = if linear_before_reset { reset[u] * recur(2, u, &h) } else { recur(2, u, &masked) };
                                f(1, input(2, u) + state)
                            };
                            h = (0..hidden).map(|u| (1.0 - update[u]) * candidate(u) + update[u] * h[u]).collect();
                        }
                        Cell::Lstm { .. } => {
                            let sum = |g: usize, u: usize| input(g, u) + recur(g, u, &h);
                            let next: Vec<f64> = (0..hidden)
                                .map(|u| {
                                    let i = f(0, sum(0, u) + peephole(0, u) * c[u]);
                                    let forget = f(0, sum(2, u) + peephole(2, u) * c[u]);
                                    forget * c[u] + i * f(1, sum(3, u))
                                })
                                .collect();
                            let out = |u: usize| f(0, sum(1, u) + peephole(1, u) * next[u]) * self.functions[d][2].value(next[u]);
                            h = (0..hidden).map(out).collect();
                            c = next;
                        }
                    }
                    if self.result == RecurrentResult::Sequence {
                        data[((t * directions + d) * batch + n) * hidden..][..hidden].copy_from_slice(&h);
                    }
                }
                let last = match self.result {
                    RecurrentResult::Sequence => continue,
                    RecurrentResult::Hidden => &h,
                    RecurrentResult::Cell => &c,
                };
                data[(d * batch + n) * hidden..][..hidden].copy_from_slice(last);
            }
        }
        RefTensor::new(ty.dtype, ty.shape, data)
    }
}

/// Recurrent layers.
pub trait RecurrentOps: Value {
    /// A layer over `self` (`[steps, batch, inputs]`); `operands` are those of [`Recurrent`] after `x`.
    fn recurrent(&self, layer: Recurrent, operands: &[&Self]) -> Result<Self> {
        let operands: Vec<&Self> = std::iter::once(self).chain(operands.iter().copied()).collect();
        Self::apply(Op::composite(layer), &operands)
    }
}

impl<V: Value> RecurrentOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    let close = Tolerance::Relative { relative: 1e-4, absolute: 2e-5 };
    let cells = [
        Cell::Rnn,
        Cell::Gru { linear_before_reset: false },
        Cell::Gru { linear_before_reset: true },
        Cell::Lstm { peepholes: false },
        Cell::Lstm { peepholes: true },
    ];
    let (forward, reverse) = (Order::Forward, Order::Reverse);
    for cell in cells {
        let mut results = vec![RecurrentResult::Sequence, RecurrentResult::Hidden];
        results.extend(matches!(cell, Cell::Lstm { .. }).then_some(RecurrentResult::Cell));
        for result in results {
            for (orders, steps, batch, features, hidden, clip) in [
                (vec![forward], 1, 1, 1, 1, None),
                (vec![forward], 5, 3, 7, 5, None),
                (vec![reverse], 3, 2, 4, 8, Some(0.4)),
                (vec![forward, reverse], 3, 1, 5, 3, None),
            ] {
                let directions = orders.len();
                let functions = vec![cell.functions(); directions];
                let width = cell.gates() * hidden;
                let small = |shape: &[usize]| uniform(DType::F32, shape, -1.0, 1.0);
                let mut operands = vec![
                    small(&[steps, batch, features]),
                    small(&[directions, width, features]),
                    small(&[directions, width, hidden]),
                    small(&[directions, 2 * width]),
                    small(&[directions, batch, hidden]),
                ];
                if let Cell::Lstm { peepholes } = cell {
                    operands.push(small(&[directions, batch, hidden]));
                    operands.extend(peepholes.then(|| small(&[directions, 3 * hidden])));
                }
                cases.add(Op::composite(Recurrent { cell, orders, functions, clip, result }), close, operands);
            }
        }
    }
    let relu = Recurrent {
        cell: Cell::Rnn,
        orders: vec![forward],
        functions: vec![vec![Gate::Relu]],
        clip: None,
        result: RecurrentResult::Sequence,
    };
    let small = |shape: &[usize]| uniform(DType::F32, shape, -1.0, 1.0);
    let operands = vec![small(&[3, 2, 5]), small(&[1, 4, 5]), small(&[1, 4, 4]), small(&[1, 8]), small(&[1, 2, 4])];
    cases.add(Op::composite(relu), close, operands);
}
