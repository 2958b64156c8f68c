//! The holes of attention.

use super::{Holes, Param, size};
use crate::error::{Error, Result};
use crate::graph::{Graph, Node};
use kernels_gen::heroes::attention::AttentionProblem;
use kernels_gen::heroes::gemm::VecAxis;
use kernels_gen::index::Index;
use kernels_gen::scalar::{BinaryOp, Literal};
use kernels_gen::{DType, ScalarType};

/// The sizes of an attention, without what its holes allow.
pub(in crate::compiler::lower) fn problem(graph: &Graph, node: &Node, causal: bool) -> Result<AttentionProblem> {
    let [q, k, v] = [0, 1, 2].map(|i| &graph.ty(node.inputs[i]).shape);
    Ok(AttentionProblem {
        batch: size(q[0])?,
        rows: size(q[1])?,
        keys: size(k[1])?,
        width: size(q[2])?,
        value_width: size(v[2])?,
        causal,
        q_vec: false,
        k_vec: VecAxis::None,
        v_vec: false,
        score_vec: false,
        store_vec: false,
    })
}

impl Holes<'_> {
    /// Makes all holes and states the problem they belong to.
    pub(super) fn attention(&mut self, scale: f32, causal: bool) -> Result<AttentionProblem> {
        let node = self.lowering.graph.node(self.hero);
        let mut problem = problem(self.lowering.graph, node, causal)?;
        let AttentionProblem { batch, rows, keys, width, value_width, .. } = problem;
        let pick = |p: &[&Index]| p.iter().map(|i| (*i).clone()).collect::<Vec<_>>();
        problem.q_vec = self.rows_hole(("load_q1", "load_q"), 0, (batch, ("i", rows), ("k", width)))?;
        problem.k_vec = match self.rows_hole(("load_k1", "load_k"), 1, (batch, ("j", keys), ("k", width)))? {
            true => VecAxis::K,
            false => {
                let params = vec![self.one("b", batch, 4), self.four("j", keys), self.one("k", width, 4)];
                let value = self.load("load_k", 1, params, pick)?;
                if self.is_vector(value) && keys.is_multiple_of(4) {
                    VecAxis::Free
                } else {
                    self.drop_last();
                    VecAxis::None
                }
            }
        };
        problem.v_vec = self.rows_hole(("load_v1", "load_v"), 2, (batch, ("j", keys), ("c", value_width)))?;

        let params = vec![self.one("b", batch, 1), self.one("i", rows, 1), self.one("j", keys, 1)];
        self.score("score1", scale, params)?;
        // Four scores past the last key would read a mask past its row.
        problem.score_vec = node.inputs.len() < 4 || keys.is_multiple_of(4);
        if problem.score_vec {
            let params = vec![self.one("b", batch, 4), self.one("i", rows, 4), self.four("j", keys)];
            self.score("score", scale, params)?;
        }

        if self.stores_elements(value_width) {
            let params = vec![self.one("b", batch, 1), self.one("i", rows, 1), self.one("c", value_width, 1)];
            self.store("store1", params, pick)?;
        }
        problem.store_vec = value_width.is_multiple_of(4);
        if problem.store_vec {
            let params = vec![self.one("b", batch, 4), self.one("i", rows, 4), self.four("c", value_width)];
            self.store("store", params, pick)?;
        }
        Ok(problem)
    }

    /// The holes of an operand of rows, element by element and, where that loads neighbours at once, four columns at a time; whether it
    /// does.
    fn rows_hole(
        &mut self,
        (one, four): (&str, &str),
        operand: usize,
        (batch, row, column): (u32, (&'static str, u32), (&'static str, u32)),
    ) -> Result<bool> {
        let pick = |p: &[&Index]| p.iter().map(|i| (*i).clone()).collect::<Vec<_>>();
        let params = vec![self.one("b", batch, 1), self.one(row.0, row.1, 1), self.one(column.0, column.1, 1)];
        self.load(one, operand, params, pick)?;
        let params = vec![self.one("b", batch, 4), self.one(row.0, row.1, 4), self.four(column.0, column.1)];
        let value = self.load(four, operand, params, pick)?;
        let vector = self.is_vector(value) && column.1.is_multiple_of(4);
        if !vector {
            self.drop_last();
        }
        Ok(vector)
    }

    /// The hole that makes scores of products: scaled, and masked by the fourth operand.
    fn score(&mut self, name: &str, scale: f32, params: Vec<Param>) -> Result<()> {
        let lowering = &mut self.lowering;
        let lanes = params.iter().map(|p| p.lanes.len()).max().unwrap_or(1);
        let value = lowering.builder.argument("value", ScalarType::F32, lanes as u8);
        let factor = lowering.builder.literal(Literal::from_f64(ScalarType::F32, f64::from(scale)));
        let mut score = lowering.builder.binary(BinaryOp::Mul, value, factor);
        if let Some(&mask) = lowering.graph.node(self.hero).inputs.get(3) {
            let places = (0..lanes).map(|l| params.iter().map(|p| p.lanes[l].clone()).collect()).collect();
            let mask_value = lowering.value(mask, &places)?;
            score = match lowering.ty(mask).dtype {
                DType::Bool => {
                    let hidden = lowering.builder.literal(Literal::from_f64(ScalarType::F32, f64::NEG_INFINITY));
                    lowering.builder.select(mask_value, score, hidden)
                }
                DType::F32 => lowering.builder.binary(BinaryOp::Add, score, mask_value),
                other => return Err(Error::internal(format!("a mask of {other}"))),
            };
        }
        let score = lowering.builder.widen(score, lanes as u8);
        let ty = if lanes == 4 { "value: vec4<f32>" } else { "value: f32" };
        self.function(name, &params, Some(ty), Vec::new(), vec![score]);
        Ok(())
    }
}
