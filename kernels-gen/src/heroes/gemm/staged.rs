//! Products whose operands go through workgroup memory: the lanes of a workgroup copy a block of A and one of B there, wait for each other,
//! and multiply from there. Each element is read from its buffer once by the workgroup, not once by each lane.
//!
//! Both blocks are arrays of vec4. Where an operand's vectors run along k, that of step `k` and own index `o` lies at `k / 4 * block + o`;
//! where they run along its own axis, at `(k * block + o) / 4`. Columns of B with vectors along k are ordered so that lanes side by side read
//! what lies side by side. Past the end of k both operands are zero.

use super::{GemmConfig, GemmProblem, Generator, Sharing, Terms, VecAxis};
use crate::heroes::text::clamp;

impl GemmProblem {
    /// The problem as workgroup memory holds it: what is read element by element becomes vectors.
    pub(super) fn staged(&self) -> GemmProblem {
        let or = |axis, instead| if axis == VecAxis::None { instead } else { axis };
        GemmProblem { a_vec: or(self.a_vec, VecAxis::K), b_vec: or(self.b_vec, VecAxis::Free), ..self.clone() }
    }
}

impl GemmConfig {
    /// Vectors of A and of B in workgroup memory.
    pub(super) fn staged(&self) -> [u32; 2] {
        let ([x, y], quads) = (self.workgroup, self.tile_k / 4);
        let vectors = |tile: u32, lanes: u32| tile.saturating_mul(lanes).saturating_mul(quads);
        if self.sharing == Sharing::Workgroup { [vectors(self.tile_m, y), vectors(self.tile_n, x)] } else { [0, 0] }
    }
}

/// One operand's way to workgroup memory.
struct Staged {
    /// `a` or `b`.
    name: &'static str,
    /// Rows or columns of the block.
    block: u32,
    /// Rows or columns of the operand.
    size: u32,
    /// The block's first row or column.
    first: String,
    /// Whether some blocks reach past the operand.
    ragged: bool,
    /// Vector axis of the hole, and in workgroup memory.
    hole: VecAxis,
    axis: VecAxis,
}

impl Generator<'_> {
    /// The blocks in workgroup memory, where there are any.
    pub(super) fn staging(&mut self) {
        let [a, b] = self.c.staged();
        if a > 0 && self.p.k > 0 {
            let ty = self.p.terms.operand();
            self.text.line(format!("var<workgroup> staged_a: array<vec4<{ty}>, {a}>;"));
            self.text.line(format!("var<workgroup> staged_b: array<vec4<{ty}>, {b}>;"));
        }
    }

    /// The lane's rows and columns in the blocks.
    pub(super) fn staged_indices(&mut self) {
        let (tile_m, x) = (self.c.tile_m, self.c.workgroup[0]);
        self.text.line(format!("let me = lane.y * {x}u + lane.x;"));
        let width = if self.p.a_vec == VecAxis::Free { 4 } else { 1 };
        for r in 0..tile_m / width {
            self.text.line(format!("let row{r} = lane.y * {}u + {r}u;", tile_m / width));
        }
        for q in 0..self.vecs() {
            if self.p.b_vec == VecAxis::Free {
                self.text.line(format!("let col{q} = lane.x + {}u;", q * x));
            } else {
                for e in 0..4 {
                    self.text.line(format!("let col{q}_{e} = lane.x + {}u;", (q * 4 + e) * x));
                }
            }
        }
    }

    /// The element of workgroup memory that holds `operand` at an own index and a step of the block.
    pub(super) fn staged_operand(&self, operand: &str, own: &str, k: &str) -> String {
        let (axis, block) = if operand.starts_with('a') { (self.p.a_vec, self.block_m()) } else { (self.p.b_vec, self.block_n()) };
        match axis {
            VecAxis::Free => format!("staged_{operand}[({k}) * {}u + {own}]", block / 4),
            _ => format!("staged_{operand}[({k}) / 4u * {block}u + {own}]"),
        }
    }

    /// Adds up all of k, block by block.
    pub(super) fn accumulate_staged(&mut self) {
        let (block, step, k) = (self.c.tile_k, self.step, self.p.k);
        let whole = k / step * step;
        if whole > 0 {
            self.text.line(format!("for (var k = 0u; k < {whole}u; k += {step}u) {{"));
            for part in 0..step / block {
                self.stage(&format!("k + {}u", part * block), block);
            }
            self.text.line("}");
        }
        for from in (whole..k).step_by(block as usize) {
            self.stage(&format!("{from}u"), (k - from).min(block));
        }
    }

    /// Copies `steps` values of k from `from` on and multiplies them. All lanes come here together: barriers stand in uniform control flow.
    fn stage(&mut self, from: &str, steps: u32) {
        self.text.line("{");
        self.text.line(format!("let start = {from};"));
        let [a_hole, b_hole] = self.holes;
        let a = Staged {
            name: "a",
            block: self.block_m(),
            size: self.p.m,
            first: format!("tile_m * {}u", self.block_m()),
            ragged: self.ragged_m(),
            hole: a_hole,
            axis: self.p.a_vec,
        };
        let b = Staged {
            name: "b",
            block: self.block_n(),
            size: self.p.n,
            first: format!("tile_n * {}u", self.block_n()),
            ragged: self.ragged_n(),
            hole: b_hole,
            axis: self.p.b_vec,
        };
        self.copy(&a, steps);
        self.copy(&b, steps);
        self.text.line("workgroupBarrier();");
        for quad in 0..steps.div_ceil(4) {
            self.multiply(&format!("{}u", quad * 4), 4, None);
        }
        self.text.line("workgroupBarrier();");
        self.text.line("}");
    }

    /// Copies an operand's block, each lane some of its vectors.
    fn copy(&mut self, operand: &Staged, steps: u32) {
        let (lanes, quads) = (self.c.workgroup[0] * self.c.workgroup[1], self.c.tile_k / 4);
        let total = operand.block * quads;
        for start in (0..total).step_by(lanes as usize) {
            let all = start + lanes <= total;
            self.text.line(if all { "{".to_string() } else { format!("if me < {}u {{", total - start) });
            self.text.line(format!("let at = me + {start}u;"));
            if operand.axis == VecAxis::Free {
                self.copy_own(operand, steps);
            } else {
                self.copy_along_k(operand, steps);
            }
            self.text.line("}");
        }
    }

    /// Copies the vector `at` of a block whose vectors run along the operand's own axis.
    fn copy_own(&mut self, operand: &Staged, steps: u32) {
        let (name, quads) = (operand.name, operand.block / 4);
        self.text.line(format!("let step = at / {quads}u;"));
        let own = format!("{} + at % {quads}u * 4u", operand.first);
        let value = if operand.hole == VecAxis::Free {
            self.hole(name, &clamp(own, operand.size.saturating_sub(4), operand.ragged), "start + step")
        } else {
            let of = |e: u32| {
                let own = clamp(format!("{own} + {e}u"), operand.size.saturating_sub(1), operand.ragged);
                self.hole(&format!("{name}1"), &own, "start + step")
            };
            format!("vec4<{}>({}, {}, {}, {})", self.p.terms.operand(), of(0), of(1), of(2), of(3))
        };
        self.put(name, "at", &[((steps < self.c.tile_k).then(|| format!("step < {steps}u")), value)]);
    }

    /// Copies the vector `at` of a block whose vectors run along k: neighbouring lanes read neighbouring steps.
    fn copy_along_k(&mut self, operand: &Staged, steps: u32) {
        let (name, quads, x) = (operand.name, self.c.tile_k / 4, self.c.workgroup[0]);
        self.text.line(format!("let own = at / {quads}u;"));
        self.text.line(format!("let quad = at % {quads}u;"));
        let own = clamp(format!("{} + own", operand.first), operand.size.saturating_sub(1), operand.ragged);
        let single = |e: u32| self.hole(&format!("{name}1"), &own, &format!("start + quad * 4u + {e}u"));
        let zero = if self.p.terms == Terms::I8 { "0u" } else { "0.0" };
        let part = |count: u32| {
            let values: Vec<String> = (0..4).map(|e| if e < count { single(e) } else { zero.to_string() }).collect();
            format!("vec4<{}>({})", self.p.terms.operand(), values.join(", "))
        };
        let four = if operand.hole == VecAxis::K { self.hole(name, &own, "start + quad * 4u") } else { part(4) };
        let place = match name {
            "a" => format!("quad * {}u + own", operand.block),
            _ => format!("quad * {}u + (own / {}u * 4u + own % 4u) * {x}u + own / 4u % {x}u", operand.block, 4 * x),
        };
        let (full, rest) = (steps / 4, steps % 4);
        let mut values = Vec::new();
        if full > 0 {
            values.push(((full < quads).then(|| format!("quad < {full}u")), four));
        }
        if rest > 0 {
            values.push((Some(format!("quad == {full}u")), part(rest)));
        }
        self.put(name, &place, &values);
    }

    /// Writes to workgroup memory the value whose test holds, or has none, else zero.
    fn put(&mut self, name: &str, place: &str, values: &[(Option<String>, String)]) {
        if let [(None, value)] = values {
            self.text.line(format!("staged_{name}[{place}] = {value};"));
            return;
        }
        self.text.line(format!("var value = vec4<{}>();", self.p.terms.operand()));
        for (test, value) in values {
            self.text.line(format!("if {} {{", test.as_deref().unwrap_or("true")));
            self.text.line(format!("value = {value};"));
            self.text.line("}");
        }
        self.text.line(format!("staged_{name}[{place}] = value;"));
    }
}
