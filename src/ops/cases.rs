//! Test cases of every operation: the self-test, the device tests and the unit tests run the same list.

use super::tolerance::Tolerance;
use super::{RefTensor, name, reference_graph};
use crate::error::{Error, Result};
use crate::graph::{Graph, GraphBuilder, Op, Prim, ReduceOp, TensorType};
use crate::tensor::HostTensor;
use kernels_gen::DType;
use kernels_gen::formats::Format;
use kernels_gen::threefry::Key;
use std::collections::HashSet;

/// One operation with operands to try it on.
#[derive(Debug, Clone)]
pub struct OpCase {
    /// Unique name: the operation, its attributes and the operands.
    pub name: String,
    /// The operation.
    pub op: Op,
    /// Operands.
    pub inputs: Vec<InputSpec>,
    /// How close the result must come.
    pub tolerance: Tolerance,
}

/// One operand of a case.
#[derive(Debug, Clone)]
pub struct InputSpec {
    /// Type the operation sees.
    pub ty: TensorType,
    /// Where the elements come from.
    pub fill: Fill,
    /// How the operand is stored.
    pub layout: Layout,
}

/// Where the elements of an operand come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fill {
    /// Numbers drawn from `low..high`; whole ones for integers.
    Uniform {
        /// Smallest.
        low: f64,
        /// Upper end; integers reach it.
        high: f64,
    },
    /// Values at the edges of the type, so arranged that operands of one case meet in every pair: for floats NaN, infinities, zeros,
    /// subnormals and extremes, for integers the extremes and their neighbours.
    Specials,
    /// All elements equal.
    Splat(f64),
    /// Numbers of a format, the middles between them, and what lies right beside those.
    Around(Format),
}

/// How an operand is stored before views bring it to its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// As the operation sees it.
    Plain,
    /// With its dimensions in reverse order, transposed in the graph.
    Reversed,
    /// With size 1 in its first dimension, repeated in the graph.
    Repeated,
}

/// Values at the edges of a type.
fn specials(dtype: DType) -> Vec<f64> {
    match dtype {
        DType::F32 | DType::F16 => {
            let (tiny, huge) = match dtype {
                DType::F16 => (half::f16::from_bits(1).to_f64(), half::f16::MAX.to_f64()),
                _ => (f32::from_bits(1) as f64, f32::MAX as f64),
            };
            vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.5, tiny, -tiny, huge, -huge]
        }
        DType::Bool => vec![0.0, 1.0],
        _ => {
            let (low, high) = (super::reduce_identity(ReduceOp::Max, dtype), super::reduce_identity(ReduceOp::Min, dtype));
            let mut values = vec![low, low + 1.0, 0.0, 1.0, 2.0, 7.0, high - 1.0, high];
            values.extend((low < 0.0).then_some([-1.0, -7.0]).into_iter().flatten());
            values
        }
    }
}
/// A number of a format, or the middle between it and its neighbour, or a neighbour of that.
fn number_around(format: Format, i: usize) -> f64 {
    // Formats of many codes are walked through in strides that meet all exponents.
    let code = (i as u32 / 4).wrapping_mul(257) & (format.num_codes() - 1);
    let (value, next) = (format.decode(code), format.decode(code + 1));
    let middle = ((f64::from(value) + f64::from(next)) / 2.0) as f32;
    f64::from(match i % 4 {
        1 if middle.is_finite() => middle,
        2 if middle.is_finite() => middle.next_up(),
        3 if middle.is_finite() => middle.next_down(),
        _ => value,
    })
}

impl InputSpec {
    fn stored_shape(&self) -> Vec<usize> {
        let mut shape = self.ty.shape.clone();
        match self.layout {
            Layout::Plain => {}
            Layout::Reversed => shape.reverse(),
            Layout::Repeated => shape.iter_mut().take(1).for_each(|d| *d = 1),
        }
        shape
    }

    fn element(&self, key: Key, operand: u32, i: usize) -> f64 {
        match self.fill {
            Fill::Splat(value) => value,
            Fill::Around(format) => number_around(format, i),
            Fill::Specials => {
                let values = specials(self.ty.dtype);
                values[i / values.len().pow(operand) % values.len()]
            }
            Fill::Uniform { low, high } => {
                let unit = key.uniform(i as u64) as f64;
                match self.ty.dtype {
                    DType::F32 | DType::F16 => low + unit * (high - low),
                    DType::Bool => (unit < 0.5) as u8 as f64,
                    _ => low + (unit * (high - low + 1.0)).floor(),
                }
            }
        }
    }
}

impl OpCase {
    /// The case as a graph: inputs `x0`, `x1`..., the views of their layouts, the operation, output `y`.
    pub fn graph(&self) -> Result<Graph> {
        let mut builder = GraphBuilder::new();
        let mut operands = Vec::with_capacity(self.inputs.len());
        for (i, input) in self.inputs.iter().enumerate() {
            let stored = builder.input(format!("x{i}"), TensorType::new(input.ty.dtype, input.stored_shape()))?;
            operands.push(match input.layout {
                Layout::Plain => stored,
                Layout::Reversed => builder.transpose(stored, &(0..input.ty.rank()).rev().collect::<Vec<_>>())?,
                Layout::Repeated => builder.broadcast_to(stored, &input.ty.shape)?,
            });
        }
        let y = builder.add(self.op.clone(), &operands)?;
        builder.output("y", y)?;
        Ok(builder.finish())
    }

    /// Values of the inputs, a function of the seed.
    pub fn inputs(&self, seed: u64) -> Result<Vec<(String, HostTensor)>> {
        let tensor = |(i, input): (usize, &InputSpec)| {
            let key = Key::new(seed).stream(i as u64);
            let shape = input.stored_shape();
            let values: Vec<f64> = (0..crate::tensor::num_elems(&shape)?).map(|e| input.element(key, i as u32, e)).collect();
            Ok((format!("x{i}"), HostTensor::from_f64(input.ty.dtype, shape, &values)?))
        };
        self.inputs.iter().enumerate().map(tensor).collect()
    }

    /// The expected result for the inputs of `seed`.
    pub fn expected(&self, seed: u64) -> Result<RefTensor> {
        let inputs = self.inputs(seed)?;
        let named: Vec<(&str, HostTensor)> = inputs.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
        let outputs = reference_graph(&self.graph()?, &named)?;
        outputs.into_iter().next().map(|(_, value)| value).ok_or_else(|| Error::internal("a case without a result"))
    }
}

/// A list of cases under construction.
#[derive(Debug, Default)]
pub(super) struct Cases {
    list: Vec<OpCase>,
}

impl Cases {
    /// Adds a case of operands as they are given.
    pub(super) fn add(&mut self, op: impl Into<Op>, tolerance: Tolerance, inputs: Vec<InputSpec>) {
        let op = op.into();
        let operand = |i: &InputSpec| {
            let fill = match i.fill {
                Fill::Uniform { .. } => String::new(),
                Fill::Specials => " specials".to_string(),
                Fill::Around(format) => format!(" around {format}"),
                Fill::Splat(value) => format!(" {value:?}"),
            };
            let layout = match i.layout {
                Layout::Plain => "",
                Layout::Reversed => " reversed",
                Layout::Repeated => " repeated",
            };
            format!("{}{fill}{layout}", i.ty)
        };
        let operands = inputs.iter().map(operand).collect::<Vec<_>>().join(", ");
        let result = match &op {
            Op::Prim(Prim::Iota { ty, .. }) => format!(" -> {ty}"),
            _ => String::new(),
        };
        let name = format!("{}{}({operands}){result}", name(&op), crate::graph::attributes(&op));
        self.list.push(OpCase { name, op, inputs, tolerance });
    }
}

/// An operand of numbers from `low..high`.
pub(super) fn uniform(dtype: DType, shape: &[usize], low: f64, high: f64) -> InputSpec {
    InputSpec { ty: TensorType::new(dtype, shape), fill: Fill::Uniform { low, high }, layout: Layout::Plain }
}

/// An f32 operand of numbers from -2 to 2.
pub(super) fn floats(shape: &[usize]) -> InputSpec {
    uniform(DType::F32, shape, -2.0, 2.0)
}

/// An f16 operand of numbers from -2 to 2.
pub(super) fn halves(shape: &[usize]) -> InputSpec {
    uniform(DType::F16, shape, -2.0, 2.0)
}

/// An operand of numbers that suit any element type's arithmetic.
pub(super) fn plain(dtype: DType, shape: &[usize]) -> InputSpec {
    match dtype {
        DType::F32 | DType::F16 => uniform(dtype, shape, -2.0, 2.0),
        DType::I32 | DType::I8 => uniform(dtype, shape, -100.0, 100.0),
        DType::U32 | DType::U8 => uniform(dtype, shape, 0.0, 200.0),
        DType::Bool => uniform(dtype, shape, 0.0, 1.0),
    }
}

/// An operand of the type's edge values.
pub(super) fn edges(dtype: DType, shape: &[usize]) -> InputSpec {
    InputSpec { ty: TensorType::new(dtype, shape), fill: Fill::Specials, layout: Layout::Plain }
}

/// An operand of numbers that are hard to round to `format`.
pub(super) fn around(format: Format, shape: &[usize]) -> InputSpec {
    InputSpec { ty: TensorType::new(DType::F32, shape), fill: Fill::Around(format), layout: Layout::Plain }
}

/// An operand with all elements equal.
pub(super) fn splat(dtype: DType, shape: &[usize], value: f64) -> InputSpec {
    InputSpec { ty: TensorType::new(dtype, shape), fill: Fill::Splat(value), layout: Layout::Plain }
}

impl InputSpec {
    /// The same operand stored with its dimensions reversed.
    pub(super) fn reversed(self) -> Self {
        InputSpec { layout: Layout::Reversed, ..self }
    }

    /// The same operand repeated along its first dimension.
    pub(super) fn repeated(self) -> Self {
        InputSpec { layout: Layout::Repeated, ..self }
    }
}

/// Shapes every elementwise operation must take: rank 0, empty, 1, primes, past one workgroup, past vectors of four.
pub(super) const SHAPES: &[&[usize]] = &[&[], &[0], &[1], &[7], &[257], &[3, 0, 2], &[5, 64], &[2, 3, 1, 7]];

/// For each operation on f32 that has no case of f16 yet: its first case of more than a few elements with f16 in the place of f32.
fn half_cases(list: &[OpCase]) -> Vec<OpCase> {
    let has = |case: &OpCase, dtype: DType| case.inputs.iter().any(|i| i.ty.dtype == dtype);
    let mut known: HashSet<&str> = list.iter().filter(|case| has(case, DType::F16)).map(|case| name(&case.op)).collect();
    let sizes = |case: &OpCase| case.inputs.iter().map(|i| i.ty.num_elems()).collect::<Vec<_>>();
    let suits = |case: &OpCase| sizes(case).iter().all(|&n| n > 0) && sizes(case).iter().any(|&n| n > 16);
    let mut found = Vec::new();
    for case in list.iter().filter(|case| has(case, DType::F32) && suits(case)) {
        if known.insert(name(&case.op)) {
            let mut case = case.clone();
            case.inputs.iter_mut().filter(|i| i.ty.dtype == DType::F32).for_each(|i| i.ty.dtype = DType::F16);
            found.push(case);
        }
    }
    found
}

/// Every case of every operation. Names are unique.
pub fn cases() -> Vec<OpCase> {
    let mut cases = Cases::default();
    super::elementwise::cases(&mut cases);
    super::shape::cases(&mut cases);
    super::reduce::cases(&mut cases);
    super::gather::cases(&mut cases);
    super::window::cases(&mut cases);
    super::dot::cases(&mut cases);
    super::conv::cases(&mut cases);
    super::conv_transpose::cases(&mut cases);
    super::pool::cases(&mut cases);
    super::stats::cases(&mut cases);
    super::activation::cases(&mut cases);
    super::norm::cases(&mut cases);
    super::attention::cases(&mut cases);
    super::math::cases(&mut cases);
    super::indexing::cases(&mut cases);
    super::loss::cases(&mut cases);
    super::resize::cases(&mut cases);
    super::einsum::cases(&mut cases);
    super::scan::cases(&mut cases);
    super::sort::cases(&mut cases);
    super::scatter::cases(&mut cases);
    super::transformer::cases(&mut cases);
    super::recurrent::cases(&mut cases);
    super::random::cases(&mut cases);
    super::formats::cases(&mut cases);
    super::packing::cases(&mut cases);
    super::integer::cases(&mut cases);
    super::quantised::cases(&mut cases);
    super::quantise::cases(&mut cases);
    for case in half_cases(&cases.list) {
        cases.add(case.op, case.tolerance, case.inputs);
    }
    cases.list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{BinaryOp, UnaryOp};
    use crate::ops::reference;

    /// Builds the graph again with every composite replaced by its decomposition.
    fn decomposed(graph: &Graph) -> Graph {
        let mut builder = GraphBuilder::new();
        let mut ids = Vec::new();
        for node in graph.nodes() {
            let operands: Vec<_> = node.inputs.iter().map(|i: &crate::graph::NodeId| ids[i.index()]).collect();
            let id = crate::ops::expand(&mut builder, &node.op, &operands, &node.ty, Default::default()).unwrap();
            assert_eq!(*builder.ty(id), node.ty, "the decomposition of {} has another type", name(&node.op));
            ids.push(id);
        }
        for (name, id) in graph.outputs() {
            builder.output(name, ids[id.index()]).unwrap();
        }
        let result = builder.finish();
        if result.nodes().iter().any(|n| matches!(n.op, Op::Composite(_))) { decomposed(&result) } else { result }
    }

    #[test]
    fn names_are_unique_and_every_operation_has_cases() {
        let all = cases();
        let names: HashSet<&str> = all.iter().map(|c| c.name.as_str()).collect();
        for case in &all {
            assert!(all.iter().filter(|c| c.name == case.name).count() == 1, "{}", case.name);
        }
        assert_eq!(names.len(), all.len());
        let ops: HashSet<&str> = all.iter().map(|c| name(&c.op)).collect();
        assert!(ops.len() > 60, "{} operations have cases", ops.len());
        println!("{} cases of {} operations", all.len(), ops.len());
    }

    #[test]
    fn decompositions_have_the_value_of_the_definition() {
        let mut failures = Vec::new();
        for case in cases() {
            let graph = case.graph().unwrap_or_else(|e| panic!("{}: {e}", case.name));
            crate::graph::verify(&graph).unwrap();
            let expected = case.expected(1).unwrap_or_else(|e| panic!("{}: {e}", case.name));
            if !matches!(case.op, Op::Composite(_)) {
                continue;
            }
            let inputs = case.inputs(1).unwrap();
            let named: Vec<(&str, HostTensor)> = inputs.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
            let graph = decomposed(&graph);
            crate::graph::verify(&graph).unwrap();
            let (_, value) = reference_graph(&graph, &named).unwrap().remove(0);
            if let Err(e) = case.tolerance.check(&value.to_host().unwrap(), &expected) {
                failures.push(format!("{}: {e}", case.name));
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    #[test]
    fn references_know_the_special_values() {
        let f = |v: &[f64]| RefTensor::new(DType::F32, [v.len()], v.to_vec()).unwrap();
        let i = |v: &[f64]| RefTensor::new(DType::I32, [v.len()], v.to_vec()).unwrap();
        let binary = |op, a: &RefTensor, b: &RefTensor| reference(&Prim::Binary(op).into(), &[a, b]).unwrap().data;
        let nan = f64::NAN;
        assert!(binary(BinaryOp::Max, &f(&[nan, 1.0]), &f(&[1.0, nan])).iter().all(|v| v.is_nan()));
        assert_eq!(binary(BinaryOp::Ne, &f(&[nan, 1.0]), &f(&[nan, 1.0])), [1.0, 0.0]);
        assert_eq!(binary(BinaryOp::Eq, &f(&[nan, 1.0]), &f(&[nan, 1.0])), [0.0, 1.0]);
        assert_eq!(binary(BinaryOp::Ge, &f(&[nan, 1.0]), &f(&[0.0, nan])), [0.0, 0.0]);
        let min = i32::MIN as f64;
        assert_eq!(binary(BinaryOp::Div, &i(&[7.0, -7.0, min, 5.0]), &i(&[-2.0, 2.0, -1.0, 0.0])), [-3.0, -3.0, min, 5.0]);
        assert_eq!(binary(BinaryOp::Rem, &i(&[7.0, -7.0, min, 5.0]), &i(&[-2.0, 2.0, -1.0, 0.0])), [1.0, -1.0, 0.0, 0.0]);
        assert_eq!(binary(BinaryOp::Mul, &i(&[65536.0]), &i(&[65537.0])), [65536.0]);
        assert_eq!(binary(BinaryOp::Shr, &i(&[-8.0, -8.0]), &i(&[1.0, 33.0])), [-4.0, -4.0]);
        let cast = |x: &RefTensor, to| reference(&Prim::Cast(to).into(), &[x]).unwrap().data;
        assert_eq!(cast(&f(&[nan, 1e30, -1e30, -1.9]), DType::I32), [0.0, i32::MAX as f64, min, -1.0]);
        assert_eq!(cast(&f(&[nan, 0.0, -0.0, 0.5]), DType::Bool), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(cast(&i(&[-1.0, 300.0]), DType::U8), [255.0, 44.0]);
        assert_eq!(reference(&Prim::Unary(UnaryOp::Round).into(), &[&f(&[0.5, 1.5, -2.5])]).unwrap().data, [0.0, 2.0, -2.0]);
        let softmax = crate::ops::activation::Softmax { axis: 0, log: false };
        let masked = reference(&Op::composite(softmax), &[&f(&[f64::NEG_INFINITY; 3])]).unwrap();
        assert!(masked.data.iter().all(|v| v.is_nan()));
    }
}
