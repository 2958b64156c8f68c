//! The holes of the matrix product.

use super::{Holes, size};
use crate::error::Result;
use kernels_gen::heroes::gemm::{GemmProblem, Terms, VecAxis};
use kernels_gen::index::Index;

impl Holes<'_> {
    /// Makes all holes and states the problem they belong to.
    pub(super) fn gemm(&mut self, terms: Terms) -> Result<GemmProblem> {
        let (a, b) = {
            let inputs = &self.lowering.graph.node(self.hero).inputs;
            (self.lowering.ty(inputs[0]), self.lowering.ty(inputs[1]))
        };
        let (batch, m, k, n) = (size(a.shape[0])?, size(a.shape[1])?, size(a.shape[2])?, size(b.shape[2])?);
        let pick = |p: &[&Index]| p.iter().map(|i| (*i).clone()).collect::<Vec<_>>();

        let params = vec![self.one("b", batch, 1), self.one("i", m, 1), self.one("k", k, 1)];
        self.load("load_a1", 0, params, pick)?;
        let params = vec![self.one("b", batch, 4), self.one("i", m, 4), self.four("k", k)];
        let mut a_vec = VecAxis::K;
        let value = self.load("load_a", 0, params, pick)?;
        let a_shared = self.shares_words(value);
        if !self.is_vector(value) {
            self.drop_last();
            let params = vec![self.one("b", batch, 4), self.four("i", m), self.one("k", k, 4)];
            let value = self.load("load_a", 0, params, pick)?;
            a_vec = VecAxis::Free;
            if !self.is_vector(value) {
                self.drop_last();
                a_vec = VecAxis::None;
            }
        }
        let params = vec![self.one("b", batch, 1), self.one("k", k, 1), self.one("j", n, 1)];
        self.load("load_b1", 1, params, pick)?;
        let params = vec![self.one("b", batch, 4), self.one("k", k, 4), self.four("j", n)];
        let (mut b_vec, mut b_shared) = (VecAxis::Free, false);
        let value = self.load("load_b", 1, params, pick)?;
        if !self.is_vector(value) {
            self.drop_last();
            let params = vec![self.one("b", batch, 4), self.four("k", k), self.one("j", n, 4)];
            let value = self.load("load_b", 1, params, pick)?;
            b_vec = VecAxis::K;
            b_shared = self.shares_words(value);
            if !self.is_vector(value) {
                self.drop_last();
                b_vec = VecAxis::None;
            }
        }
        let mut runs = [false; 2];
        if terms == Terms::F32 && a_vec == VecAxis::K && a_shared {
            let params = vec![self.one("b", batch, 4), self.one("i", m, 4), self.one("k", k, 4)];
            runs[0] = self.load_run("load_a_run", 0, params, 2, k, pick)?;
        }
        if terms == Terms::F32 && b_vec == VecAxis::K && b_shared {
            let params = vec![self.one("b", batch, 4), self.one("k", k, 4), self.one("j", n, 4)];
            runs[1] = self.load_run("load_b_run", 1, params, 1, k, pick)?;
        }
        if self.stores_elements(n) {
            let params = vec![self.one("b", batch, 1), self.one("i", m, 1), self.one("j", n, 1)];
            self.store("store1", params, pick)?;
        }
        let store_vec = n.is_multiple_of(4);
        if store_vec {
            let params = vec![self.one("b", batch, 4), self.one("i", m, 4), self.four("j", n)];
            self.store("store", params, pick)?;
        }
        Ok(GemmProblem { terms, batch, m, n, k, a_vec, b_vec, store_vec, runs })
    }
}
