//! Einstein sums: products of tensors summed over the labels that the result lacks.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, floats};
use super::tolerance::Tolerance;
use super::value::Value;
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, Composite, GraphBuilder, NodeId, Op, Prim, ReduceOp, TensorType};
use crate::tensor::strides;
use std::collections::BTreeMap;

/// A letter, or a dimension of an ellipsis by its distance from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

/// ONNX Einsum of f32: each operand's dimensions have labels, and those with one label run together. `...` stands for leading dimensions,
/// which broadcast; without `->` the result has the letters that occur once, in alphabetical order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Einsum {
    /// For example `bij,bjk->bik`.
    pub equation: String,
}

/// Labels of operands and result with their sizes.
struct Plan {
    operands: Vec<Vec<Label>>,
    result: Vec<Label>,
    sizes: BTreeMap<Label, usize>,
}

/// Labels of one term for a tensor with `rank` dimensions; `None` where they do not fit.
fn term(text: &str, rank: usize) -> Option<Vec<Label>> {
    let letters = text.chars().filter(|&c| c != '.').count();
    let open = rank.checked_sub(letters)?;
    let mut labels = Vec::new();
    let mut rest = text;
    let mut seen = false;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if seen {
                return None;
            }
            seen = true;
            labels.extend((0..open).rev().map(Label::Ellipsis));
            rest = after;
        } else if c.is_ascii_alphabetic() {
            labels.push(Label::Letter(c));
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    (labels.len() == rank).then_some(labels)
}

impl Einsum {
    fn plan(&self, shapes: &[&[usize]]) -> Option<Plan> {
        let text: String = self.equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (text.as_str(), None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != shapes.len() {
            return None;
        }
        let operands = terms.iter().zip(shapes).map(|(t, s)| term(t, s.len())).collect::<Option<Vec<_>>>()?;
        let mut sizes: BTreeMap<Label, usize> = BTreeMap::new();
        for (labels, shape) in operands.iter().zip(shapes) {
            for (&label, &size) in labels.iter().zip(*shape) {
                let known = sizes.entry(label).or_insert(size);
                match label {
                    _ if *known == size => {}
                    Label::Ellipsis(_) if *known == 1 => *known = size,
                    Label::Ellipsis(_) if size == 1 => {}
                    _ => return None,
                }
            }
        }
        let ellipsis: Vec<Label> = sizes.keys().rev().filter(|l| matches!(l, Label::Ellipsis(_))).copied().collect();
        let result = match right {
            Some(right) => {
                let letters = right.chars().filter(|&c| c != '.').count();
                let open = if right.contains("...") { ellipsis.len() } else { 0 };
                term(right, letters + open)?
            }
            None => {
                let once = |l: &&Label| operands.iter().flatten().filter(|o| o == l).count() == 1;
                let letters = sizes.keys().filter(|l| matches!(l, Label::Letter(_))).filter(once);
                ellipsis.iter().chain(letters).copied().collect()
            }
        };
        let sound = result.iter().enumerate().all(|(i, l)| sizes.contains_key(l) && !result[..i].contains(l));
        sound.then_some(Plan { operands, result, sizes })
    }
}

/// A tensor with the labels of its dimensions, no label twice.
#[derive(Clone)]
struct Labelled {
    id: NodeId,
    labels: Vec<Label>,
}

impl Labelled {
    /// Dimensions in the order of `labels`, all of which it has.
    fn ordered(&self, b: &mut GraphBuilder, labels: &[Label]) -> Result<NodeId> {
        let perm: Vec<usize> = labels.iter().filter_map(|l| self.labels.iter().position(|o| o == l)).collect();
        b.transpose(self.id, &perm)
    }

    /// Sums over the labels that are not kept.
    fn summed(self, b: &mut GraphBuilder, keep: impl Fn(&Label) -> bool) -> Result<Labelled> {
        let axes: Vec<usize> = (0..self.labels.len()).filter(|&d| !keep(&self.labels[d])).collect();
        if axes.is_empty() {
            return Ok(self);
        }
        let id = b.reduce(ReduceOp::Sum, self.id, &axes, false)?;
        Ok(Labelled { id, labels: self.labels.into_iter().filter(keep).collect() })
    }

    /// A dimension for each label: of two with one label the diagonal, none for one of an ellipsis that is repeated.
    fn new(b: &mut GraphBuilder, id: NodeId, labels: &[Label], sizes: &BTreeMap<Label, usize>) -> Result<Labelled> {
        let shape = b.shape(id);
        let kept: Vec<usize> = (0..labels.len()).filter(|&d| shape[d] == sizes[&labels[d]]).collect();
        let id = b.reshape(id, &kept.iter().map(|&d| shape[d]).collect::<Vec<_>>())?;
        let mut result = Labelled { id, labels: kept.iter().map(|&d| labels[d]).collect() };
        while let Some((p, q)) = repeated(&result.labels) {
            let (shape, rank) = (b.shape(result.id), result.labels.len());
            let others: Vec<usize> = (0..rank).filter(|&d| d != p && d != q).collect();
            let perm = [&others[..], &[p, q]].concat();
            let moved = b.transpose(result.id, &perm)?;
            let n = shape[p];
            let mut flat: Vec<usize> = others.iter().map(|&d| shape[d]).collect();
            flat.push(n * n);
            let moved = b.reshape(moved, &flat)?;
            let (starts, mut steps) = (vec![0; flat.len()], vec![1; flat.len()]);
            (steps[rank - 2], flat[rank - 2]) = (n as isize + 1, n);
            let id = b.add(Prim::Slice { starts, steps, sizes: flat }, &[moved])?;
            let labels = others.iter().chain([&p]).map(|&d| result.labels[d]).collect();
            result = Labelled { id, labels };
        }
        Ok(result)
    }

    /// The product with another, summed over the labels both have and nobody else needs.
    fn times(self, b: &mut GraphBuilder, other: Labelled, needed: &[Label]) -> Result<Labelled> {
        let (left, right) = (self.labels.clone(), other.labels.clone());
        let a = self.summed(b, |l| right.contains(l) || needed.contains(l))?;
        let c = other.summed(b, |l| left.contains(l) || needed.contains(l))?;
        let both = |l: &&Label| c.labels.contains(l);
        let batch: Vec<Label> = a.labels.iter().filter(both).filter(|l| needed.contains(l)).copied().collect();
        let inner: Vec<Label> = a.labels.iter().filter(both).filter(|l| !needed.contains(l)).copied().collect();
        let rows: Vec<Label> = a.labels.iter().filter(|l| !c.labels.contains(l)).copied().collect();
        let columns: Vec<Label> = c.labels.iter().filter(|l| !a.labels.contains(l)).copied().collect();
        let size = |b: &GraphBuilder, x: &Labelled, labels: &[Label]| -> usize {
            let shape = b.shape(x.id);
            x.labels.iter().zip(shape).filter(|(l, _)| labels.contains(l)).map(|(_, s)| s).product()
        };
        let (n, m, k, w) = (size(b, &a, &batch), size(b, &a, &rows), size(b, &a, &inner), size(b, &c, &columns));
        let shapes = [(&a, &batch), (&a, &rows), (&c, &columns)];
        let mut shape = Vec::new();
        for (x, labels) in shapes {
            let own = b.shape(x.id);
            shape.extend(labels.iter().filter_map(|l| x.labels.iter().position(|o| o == l)).map(|d| own[d]));
        }
        let left = a.ordered(b, &[&batch[..], &rows, &inner].concat())?;
        let right = c.ordered(b, &[&batch[..], &inner, &columns].concat())?;
        let product = if inner.is_empty() {
            let (left, right) = (b.reshape(left, &[n, m, 1])?, b.reshape(right, &[n, 1, w])?);
            b.binary(BinaryOp::Mul, left, right)?
        } else {
            let (left, right) = (b.reshape(left, &[n, m, k])?, b.reshape(right, &[n, k, w])?);
            b.add(Prim::Dot, &[left, right])?
        };
        Ok(Labelled { id: b.reshape(product, &shape)?, labels: [batch, rows, columns].concat() })
    }
}

/// The first two dimensions with one label.
fn repeated(labels: &[Label]) -> Option<(usize, usize)> {
    (0..labels.len()).find_map(|q| labels[..q].iter().position(|l| *l == labels[q]).map(|p| (p, q)))
}

impl Composite for Einsum {
    fn name(&self) -> &'static str {
        "Einsum"
    }

    fn attributes(&self) -> String {
        self.equation.clone()
    }

    fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType> {
        let call = Call::new(self.name(), inputs);
        call.floats("each operand", inputs)?;
        let shapes: Vec<&[usize]> = inputs.iter().map(|t| &t.shape[..]).collect();
        match (self.plan(&shapes), inputs.first()) {
            (Some(plan), Some(first)) => Ok(TensorType::new(first.dtype, plan.result.iter().map(|l| plan.sizes[l]).collect::<Vec<_>>())),
            _ => Err(call.misfit(format_args!(
                "the equation `{}` must have a term of letters for each operand, one for each dimension, with one size for each letter",
                self.equation
            ))),
        }
    }

    fn decompose(&self, b: &mut GraphBuilder, inputs: &[NodeId]) -> Result<NodeId> {
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|&i| b.shape(i)).collect();
        let plan = self.plan(&shapes.iter().map(|s| &s[..]).collect::<Vec<_>>());
        let Plan { operands, result, sizes } = plan.ok_or_else(|| Error::internal("an equation that does not fit"))?;
        let mut sum: Option<Labelled> = None;
        for (i, (&id, labels)) in inputs.iter().zip(&operands).enumerate() {
            let next = Labelled::new(b, id, labels, &sizes)?;
            let needed = [&result[..], &operands[i + 1..].concat()].concat();
            sum = Some(match sum {
                Some(sum) => sum.times(b, next, &needed)?,
                None => next,
            });
        }
        let sum = sum.ok_or_else(|| Error::internal("an equation without operands"))?.summed(b, |l| result.contains(l))?;
        // A dimension of an ellipsis that every operand repeats has vanished.
        let present: Vec<Label> = result.iter().filter(|l| sum.labels.contains(l)).copied().collect();
        let ordered = sum.ordered(b, &present)?;
        b.reshape(ordered, &result.iter().map(|l| sizes[l]).collect::<Vec<_>>())
    }

    fn reference(&self, inputs: &[&RefTensor]) -> Result<RefTensor> {
        let shapes: Vec<&[usize]> = inputs.iter().map(|t| &t.shape[..]).collect();
        let plan = self.plan(&shapes).ok_or_else(|| Error::internal("an equation that does not fit"))?;
        let labels: Vec<Label> = plan.sizes.keys().copied().collect();
        let extents: Vec<usize> = labels.iter().map(|l| plan.sizes[l]).collect();
        let shape: Vec<usize> = plan.result.iter().map(|l| plan.sizes[l]).collect();
        // How far an element moves for each label.
        let moves = |own: &[Label], shape: &[usize]| -> Vec<usize> {
            let step = strides(shape);
            let of = |l: &Label| (0..own.len()).filter(|&d| own[d] == *l && shape[d] > 1).map(|d| step[d]).sum();
            labels.iter().map(of).collect()
        };
        let operands: Vec<Vec<usize>> = plan.operands.iter().zip(&shapes).map(|(own, shape)| moves(own, shape)).collect();
        let target = moves(&plan.result, &shape);
        let mut data = vec![0.0; shape.iter().product()];
        for i in 0..extents.iter().product() {
            let coords = super::indexing::coordinates(i, &extents);
            let at = |moves: &[usize]| coords.iter().zip(moves).map(|(c, m)| c * m).sum::<usize>();
            data[at(&target)] += inputs.iter().zip(&operands).map(|(t, moves)| t.data[at(moves)]).product::<f64>();
        }
        RefTensor::new(inputs[0].dtype, shape, data)
    }
}

/// Einstein sums.
pub trait EinsumOps: Value {
    /// The sum `equation` of `self` and `others`.
    fn einsum(&self, equation: &str, others: &[&Self]) -> Result<Self> {
        let operands: Vec<&Self> = std::iter::once(self).chain(others.iter().copied()).collect();
        Self::apply(Op::composite(Einsum { equation: equation.to_string() }), &operands)
    }
}

impl<V: Value> EinsumOps for V {}

pub(super) fn cases(cases: &mut Cases) {
    for (equation, shapes) in [
        ("ij->ji", &[&[3usize, 5] as &[usize]] as &[&[usize]]),
        ("ij->i", &[&[3, 5]]),
        ("ij->", &[&[3, 5]]),
        ("ii->i", &[&[5, 5]]),
        ("...ii->...i", &[&[2, 3, 3]]),
        ("iji->j", &[&[3, 5, 3]]),
        ("i,i", &[&[257], &[257]]),
        ("i,j->ij", &[&[3], &[5]]),
        ("ij,jk", &[&[3, 5], &[5, 7]]),
        ("bij,bjk->bik", &[&[2, 3, 5], &[2, 5, 7]]),
        ("bhqd,bhkd->bhqk", &[&[2, 2, 3, 5], &[2, 2, 7, 5]]),
        ("bqhd,bkhd->bhqk", &[&[1, 3, 2, 5], &[1, 7, 2, 5]]),
        ("...ij,...jk->...ik", &[&[2, 1, 3, 5], &[4, 5, 7]]),
        ("ij,j->i", &[&[3, 5], &[5]]),
        ("ij,ij->ij", &[&[3, 5], &[3, 5]]),
        ("i,ij,j->", &[&[3], &[3, 5], &[5]]),
        ("ij,jk->ik", &[&[0, 5], &[5, 7]]),
        ("ij,jk->ik", &[&[3, 0], &[0, 7]]),
        (" b i , b j -> i j ", &[&[4, 3], &[4, 5]]),
    ] {
        let op = Op::composite(Einsum { equation: equation.to_string() });
        cases.add(op, Tolerance::Relative { relative: 2e-5, absolute: 2e-4 }, shapes.iter().map(|s| floats(s)).collect());
    }
}
