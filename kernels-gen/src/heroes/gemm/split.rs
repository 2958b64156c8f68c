//! Products whose contracted axis is split over the invocations of a workgroup: vectors, and a few rows or columns.
//!
//! Lanes along x hold columns, lanes along y a share of k each, in turns of one step, so that the lanes of a workgroup read what lies side by
//! side. Partial sums meet in workgroup memory. The longer side of C is the one spread over lanes: where C has fewer columns than rows, the
//! transposed product is computed.

use super::{GemmProblem, Generator, Sharing};
use crate::heroes::text::component;

/// Partial sums that one lane adds up: above it halves are added in turns.
const SERIAL: u32 = 8;

impl GemmProblem {
    /// The product of the transposed operands.
    pub(super) fn transposed(&self) -> GemmProblem {
        GemmProblem {
            m: self.n,
            n: self.m,
            a_vec: self.b_vec,
            b_vec: self.a_vec,
            store_vec: false,
            runs: [self.runs[1], self.runs[0]],
            ..self.clone()
        }
    }
}

impl Generator<'_> {
    /// Lanes that share k.
    pub(super) fn split(&self) -> u32 {
        if self.c.sharing == Sharing::Split { self.c.workgroup[1] } else { 1 }
    }

    /// The variable of partial sums, where there are any.
    pub(super) fn partial_sums(&mut self) {
        if self.split() > 1 {
            self.text.line(format!("var<workgroup> part: array<vec4<{}>, {}>;", self.p.terms.sum(), self.c.partial_sums()));
        }
    }

    /// Adds up the lanes' shares of k: whole steps of all lanes in a loop, then fours and ones.
    pub(super) fn accumulate_split(&mut self) {
        let (lanes, step, k) = (self.split(), self.step, self.p.k);
        let turn = step * lanes;
        let whole = k / turn * turn;
        if whole > 0 {
            self.text.line(format!("for (var k = lane.y * {step}u; k < {whole}u; k += {turn}u) {{"));
            self.multiply_step();
            self.text.line("}");
        }
        let fours = k / 4 * 4;
        for from in (whole..fours).step_by(4 * lanes as usize) {
            self.text.line(format!("if lane.y < {}u {{", ((fours - from) / 4).min(lanes)));
            self.multiply(&format!("{from}u + lane.y * 4u"), 4, None);
            self.text.line("}");
        }
        if fours < k {
            self.text.line("if lane.y == 0u {");
            self.multiply(&format!("{fours}u"), k - fours, None);
            self.text.line("}");
        }
    }

    /// Adds the partial sums of all lanes and writes the totals, each lane some of them.
    pub(super) fn store_split(&mut self) {
        let [x, y] = self.c.workgroup;
        let (vecs, lanes) = (self.vecs(), x * y);
        let held = self.c.tile_m * vecs;
        self.text.line(format!("let me = lane.y * {x}u + lane.x;"));
        for r in 0..self.c.tile_m {
            for q in 0..vecs {
                self.text.line(format!("part[{}u + me] = c{r}_{q};", (r * vecs + q) * lanes));
            }
        }
        self.text.line("workgroupBarrier();");
        let mut rest = y;
        while rest > SERIAL && rest.is_multiple_of(2) {
            rest /= 2;
            self.text.line(format!("if lane.y < {rest}u {{"));
            for e in 0..held {
                let at = e * lanes;
                self.text.line(format!("part[{at}u + me] += part[{}u + me];", at + rest * x));
            }
            self.text.line("}");
            self.text.line("workgroupBarrier();");
        }
        let totals = held * x;
        self.text.line(format!("for (var e = me; e < {totals}u; e += {lanes}u) {{"));
        self.text.line(format!("let place = e / {x}u * {lanes}u + e % {x}u;"));
        self.text.line("var sum = part[place];");
        for other in 1..rest {
            self.text.line(format!("sum += part[place + {}u];", other * x));
        }
        self.text.line(format!("let i = row + e / {}u;", vecs * x));
        self.text.line(format!("let j = tile_n * {}u + (e / {x}u % {vecs}u * {x}u + e % {x}u) * 4u;", self.block_n()));
        self.store_one("i", "j", "sum");
        self.text.line("}");
    }

    /// Writes four results of a row, as far as they lie inside C.
    pub(super) fn store_one(&mut self, row: &str, column: &str, value: &str) {
        let mut guards = Vec::new();
        if self.ragged_m() {
            guards.push(format!("{row} < {}u", self.p.m));
        }
        if self.p.store_vec && self.ragged_n() {
            guards.push(format!("{column} < {}u", self.p.n));
        }
        if !guards.is_empty() {
            self.text.line(format!("if {} {{", guards.join(" && ")));
        }
        if self.p.store_vec {
            self.text.line(format!("store(b, {row}, {column}, {value});"));
        } else {
            for e in 0..4 {
                let place = if self.transposed { format!("{column} + {e}u, {row}") } else { format!("{row}, {column} + {e}u") };
                let write = format!("store1(b, {place}, {value}.{});", component(e));
                if self.ragged_n() {
                    self.text.line(format!("if {column} + {e}u < {}u {{", self.p.n));
                    self.text.line(write);
                    self.text.line("}");
                } else {
                    self.text.line(write);
                }
            }
        }
        if !guards.is_empty() {
            self.text.line("}");
        }
    }
}
