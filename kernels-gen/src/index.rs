//! Index algebra: integer expressions of loop variables, kept in a normal form that simplifies as it is built.
//!
//! An [`Index`] is a constant plus integer multiples of atoms. Atoms are loop variables, values read from a buffer, and floored
//! quotients and remainders by a constant. Views of tensors are functions on indices; because every operation here simplifies with
//! the ranges of the variables, a chain of reshapes, transposes and slices usually collapses to one linear form.
//!
//! Kernels compute indices in wrapping `u32`. An index may be negative in the algebra (before a padding test); such a value wraps,
//! fails the unsigned bound test, and is never used for an address that matters.

use std::fmt;

/// A loop variable or function parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);

/// A variable with the range of its values, `0..extent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var {
    /// Identity.
    pub id: VarId,
    /// One past the largest value.
    pub extent: i64,
}

/// What an [`Index`] is a sum of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A variable.
    Var(Var),
    /// The value of the kernel's expression of that number, known to lie in `0..extent`.
    Data {
        /// Number of the expression.
        expr: u32,
        /// One past the largest value.
        extent: i64,
    },
    /// Floored quotient by a positive constant.
    Div(Box<Index>, i64),
    /// Remainder of the floored quotient by a positive constant.
    Mod(Box<Index>, i64),
}

/// A constant plus integer multiples of atoms, sorted by atom, no coefficient 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Index {
    constant: i64,
    terms: Vec<(Atom, i64)>,
}

impl From<i64> for Index {
    fn from(constant: i64) -> Self {
        Index { constant, terms: Vec::new() }
    }
}

impl From<Var> for Index {
    fn from(var: Var) -> Self {
        // A variable of one value is that value.
        if var.extent <= 1 { Index::from(0) } else { Index::from(Atom::Var(var)) }
    }
}

impl From<Atom> for Index {
    fn from(atom: Atom) -> Self {
        Index { constant: 0, terms: vec![(atom, 1)] }
    }
}

impl Atom {
    /// Smallest and largest value.
    fn range(&self) -> (i64, i64) {
        match self {
            Atom::Var(v) => (0, (v.extent - 1).max(0)),
            Atom::Data { extent, .. } => (0, (extent - 1).max(0)),
            Atom::Div(x, d) => {
                let (lo, hi) = x.range();
                (lo.div_euclid(*d), hi.div_euclid(*d))
            }
            Atom::Mod(_, d) => (0, d - 1),
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

impl Index {
    /// The constant part.
    pub fn constant(&self) -> i64 {
        self.constant
    }

    /// The multiples of atoms.
    pub fn terms(&self) -> &[(Atom, i64)] {
        &self.terms
    }

    /// The value, if it depends on nothing.
    pub fn as_const(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// Smallest and largest value the ranges of the variables allow.
    pub fn range(&self) -> (i64, i64) {
        self.terms.iter().fold((self.constant, self.constant), |(lo, hi), (atom, c)| {
            let (a, b) = atom.range();
            let (x, y) = (a.saturating_mul(*c), b.saturating_mul(*c));
            (lo.saturating_add(x.min(y)), hi.saturating_add(x.max(y)))
        })
    }

    /// Whether every value is a multiple of `d`.
    pub fn is_multiple_of(&self, d: i64) -> bool {
        self.constant % d == 0 && self.terms.iter().all(|(_, c)| c % d == 0)
    }

    /// Whether the value depends on the variable.
    pub fn uses(&self, var: VarId) -> bool {
        self.terms.iter().any(|(atom, _)| match atom {
            Atom::Var(v) => v.id == var,
            Atom::Data { .. } => false,
            Atom::Div(x, _) | Atom::Mod(x, _) => x.uses(var),
        })
    }

    /// Calls `f` with every expression number the value depends on.
    pub fn for_each_data(&self, f: &mut impl FnMut(u32)) {
        for (atom, _) in &self.terms {
            match atom {
                Atom::Var(_) => {}
                Atom::Data { expr, .. } => f(*expr),
                Atom::Div(x, _) | Atom::Mod(x, _) => x.for_each_data(f),
            }
        }
    }

    /// Calls `f` with every variable the value depends on.
    pub fn for_each_var(&self, f: &mut impl FnMut(Var)) {
        for (atom, _) in &self.terms {
            match atom {
                Atom::Var(v) => f(*v),
                Atom::Data { .. } => {}
                Atom::Div(x, _) | Atom::Mod(x, _) => x.for_each_var(f),
            }
        }
    }

    fn add_term(&mut self, atom: Atom, c: i64) {
        match self.terms.binary_search_by(|(a, _)| a.cmp(&atom)) {
            Ok(i) => {
                self.terms[i].1 += c;
                if self.terms[i].1 == 0 {
                    self.terms.remove(i);
                }
            }
            Err(i) if c != 0 => self.terms.insert(i, (atom, c)),
            Err(_) => {}
        }
    }

    /// Puts quotients and remainders of one value together where they belong to one division.
    fn recombine(mut self) -> Index {
        'again: loop {
            for i in 0..self.terms.len() {
                let (Atom::Mod(x, d), c) = &self.terms[i] else { continue };
                let (x, d, c) = (x.clone(), *d, *c);
                // c*(x mod d) + c*d*(x div d) = c*x
                let quotient = x.div(d);
                let whole = quotient.terms.as_slice();
                if let [(atom @ Atom::Div(..), 1)] = whole
                    && quotient.constant == 0
                    && let Some((_, q)) = self.terms.iter().find(|(a, _)| a == atom)
                    && *q == c * d
                {
                    let atom = atom.clone();
                    self.terms.remove(i);
                    self.add_term(atom, -c * d);
                    self = self.plain_add(&x.mul(c));
                    continue 'again;
                }
                // c*(x mod d) + c*d*((x div d) mod e) = c*(x mod d*e)
                let outer = self.terms.iter().find_map(|(a, q)| match a {
                    Atom::Mod(y, e) if *q == c * d && **y == quotient => Some((a.clone(), *e)),
                    _ => None,
                });
                if let Some((atom, e)) = outer {
                    self.terms.remove(i);
                    self.add_term(atom, -c * d);
                    self = self.plain_add(&x.modulo(d * e).mul(c));
                    continue 'again;
                }
            }
            return self;
        }
    }

    fn plain_add(&self, other: &Index) -> Index {
        let mut sum = self.clone();
        sum.constant += other.constant;
        other.terms.iter().for_each(|(atom, c)| sum.add_term(atom.clone(), *c));
        sum
    }

    /// Sum.
    #[allow(clippy::should_implement_trait)]
    pub fn add(&self, other: &Index) -> Index {
        self.plain_add(other).recombine()
    }

    /// Sum with a constant.
    pub fn offset(&self, c: i64) -> Index {
        Index { constant: self.constant + c, terms: self.terms.clone() }
    }

    /// Product with a constant.
    #[allow(clippy::should_implement_trait)]
    pub fn mul(&self, c: i64) -> Index {
        if c == 0 {
            return Index::from(0);
        }
        Index { constant: self.constant * c, terms: self.terms.iter().map(|(a, k)| (a.clone(), k * c)).collect() }
    }

    /// Writes the index as `g * high + low` with `0 <= low < g` for a divisor `g > 1` of `d`, if there is one.
    fn split(&self, d: i64) -> Option<(Index, Index, i64)> {
        let divisors = self.terms.iter().map(|(_, c)| gcd(d, *c)).filter(|&g| g > 1);
        let mut divisors: Vec<i64> = divisors.collect();
        divisors.sort_unstable();
        divisors.dedup();
        divisors.into_iter().rev().find_map(|g| {
            let part = |keep: bool| self.terms.iter().filter(move |(_, c)| (c % g == 0) == keep).cloned();
            let low = Index { constant: self.constant.rem_euclid(g), terms: part(false).collect() };
            let (lo, hi) = low.range();
            let high = Index { constant: self.constant.div_euclid(g), terms: part(true).map(|(a, c)| (a, c / g)).collect() };
            (lo >= 0 && hi < g).then_some((high, low, g))
        })
    }

    /// Floored quotient by `d > 0`.
    #[allow(clippy::should_implement_trait)]
    pub fn div(&self, d: i64) -> Index {
        if d == 1 {
            return self.clone();
        }
        // What is a multiple of d comes out of the quotient.
        let mut out = Index::from(self.constant.div_euclid(d));
        let mut rest = Index::from(self.constant.rem_euclid(d));
        for (atom, c) in &self.terms {
            let target = if c % d == 0 { &mut out } else { &mut rest };
            target.terms.push((atom.clone(), if c % d == 0 { c / d } else { *c }));
        }
        let (lo, hi) = rest.range();
        if lo.div_euclid(d) == hi.div_euclid(d) {
            return out.offset(lo.div_euclid(d));
        }
        // (g*a + low) / (g*b) = a / b for 0 <= low < g
        if let Some((high, _, g)) = rest.split(d) {
            return out.plain_add(&high.div(d / g));
        }
        // (x / a) / b = x / (a*b)
        if let [(Atom::Div(x, a), 1)] = rest.terms.as_slice()
            && rest.constant == 0
        {
            return out.plain_add(&x.div(a * d));
        }
        // (x mod (d*e)) / d = (x / d) mod e
        if let [(Atom::Mod(x, a), 1)] = rest.terms.as_slice()
            && rest.constant == 0
            && a % d == 0
        {
            return out.plain_add(&x.div(d).modulo(a / d));
        }
        // Kernels divide unsigned numbers: the dividend is shifted until no value of the variables makes it negative.
        let shift = if lo < 0 { -lo.div_euclid(d) } else { 0 };
        out.offset(-shift).plain_add(&Index::from(Atom::Div(Box::new(rest.offset(shift * d)), d)))
    }

    /// Remainder of the floored quotient by `d > 0`.
    pub fn modulo(&self, d: i64) -> Index {
        if d == 1 {
            return Index::from(0);
        }
        let mut rest = Index::from(self.constant.rem_euclid(d));
        for (atom, c) in &self.terms {
            if c % d != 0 {
                // (x mod (d*e)) mod d = x mod d, also under a coefficient
                match atom {
                    Atom::Mod(x, a) if a % d == 0 => rest = rest.plain_add(&x.mul(*c)),
                    _ => rest.add_term(atom.clone(), *c),
                }
            }
        }
        rest.terms.retain(|(_, c)| c % d != 0);
        rest.constant = rest.constant.rem_euclid(d);
        let (lo, hi) = rest.range();
        if lo.div_euclid(d) == hi.div_euclid(d) {
            return rest.offset(-lo.div_euclid(d) * d);
        }
        // (g*a + low) mod (g*b) = g * (a mod b) + low for 0 <= low < g
        if let Some((high, low, g)) = rest.split(d) {
            return high.modulo(d / g).mul(g).plain_add(&low);
        }
        // Coefficients stay as they are, so that the quotient of the same dividend is recognised beside this remainder.
        let lo = rest.range().0;
        let shift = if lo < 0 { -lo.div_euclid(d) * d } else { 0 };
        Index::from(Atom::Mod(Box::new(rest.offset(shift)), d))
    }

    /// The index with `var` replaced.
    pub fn substitute(&self, var: VarId, by: &Index) -> Index {
        let mut out = Index::from(self.constant);
        for (atom, c) in &self.terms {
            let value = match atom {
                Atom::Var(v) if v.id == var => by.clone(),
                Atom::Var(_) | Atom::Data { .. } => Index::from(atom.clone()),
                Atom::Div(x, d) => x.substitute(var, by).div(*d),
                Atom::Mod(x, d) => x.substitute(var, by).modulo(*d),
            };
            out = out.plain_add(&value.mul(*c));
        }
        out.recombine()
    }

    /// Value under an assignment of variables and data; the meaning that every simplification keeps.
    pub fn eval(&self, var: &impl Fn(VarId) -> i64, data: &impl Fn(u32) -> i64) -> i64 {
        self.terms.iter().fold(self.constant, |sum, (atom, c)| {
            let value = match atom {
                Atom::Var(v) => var(v.id),
                Atom::Data { expr, .. } => data(*expr),
                Atom::Div(x, d) => x.eval(var, data).div_euclid(*d),
                Atom::Mod(x, d) => x.eval(var, data).rem_euclid(*d),
            };
            sum + c * value
        })
    }
}

/// Row-major position of `coords` in a tensor of `shape`.
pub fn flatten(coords: &[Index], shape: &[usize]) -> Index {
    let mut flat = Index::from(0);
    let mut stride = 1i64;
    for (c, &size) in coords.iter().zip(shape).rev() {
        flat = flat.plain_add(&c.mul(stride));
        stride = stride.saturating_mul(size as i64);
    }
    flat.recombine()
}

/// Coordinates of the row-major position `flat` in a tensor of `shape`.
pub fn unflatten(flat: &Index, shape: &[usize]) -> Vec<Index> {
    let mut coords = vec![Index::from(0); shape.len()];
    let mut stride = 1i64;
    // The outermost quotient needs no remainder: the position lies in the tensor. Lanes past its end, in the last vec4 of an odd size,
    // get coordinates past it too, and the values they compute are never read.
    let outermost = shape.iter().position(|&size| size > 1);
    for (i, &size) in shape.iter().enumerate().rev() {
        let size = size as i64;
        if size > 1 {
            let quotient = flat.div(stride);
            coords[i] = if outermost == Some(i) { quotient } else { quotient.modulo(size) };
        }
        stride = stride.saturating_mul(size.max(1));
    }
    coords
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (atom, c) in &self.terms {
            if !first {
                f.write_str(" + ")?;
            }
            first = false;
            match atom {
                Atom::Var(v) => write!(f, "v{}", v.id.0)?,
                Atom::Data { expr, .. } => write!(f, "e{expr}")?,
                Atom::Div(x, d) => write!(f, "({x})/{d}")?,
                Atom::Mod(x, d) => write!(f, "({x})%{d}")?,
            }
            if *c != 1 {
                write!(f, "*{c}")?;
            }
        }
        if first || self.constant != 0 {
            if !first {
                f.write_str(" + ")?;
            }
            write!(f, "{}", self.constant)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn var(id: u32, extent: i64) -> Var {
        Var { id: VarId(id), extent }
    }

    #[test]
    fn unflatten_then_flatten_is_the_identity() {
        for shape in [vec![2, 3, 4], vec![7, 1, 5, 2], vec![4], vec![1, 1], vec![3, 257]] {
            let n: usize = shape.iter().product();
            let f = Index::from(var(0, n as i64));
            assert_eq!(flatten(&unflatten(&f, &shape), &shape), f, "{shape:?}");
        }
    }

    #[test]
    fn reshape_there_and_back_collapses() {
        let v = [Index::from(var(0, 6)), Index::from(var(1, 4))];
        let inner = unflatten(&flatten(&v, &[6, 4]), &[2, 3, 4]);
        let back = unflatten(&flatten(&inner, &[2, 3, 4]), &[6, 4]);
        assert_eq!(back, v);
    }

    #[test]
    fn lanes_of_an_aligned_quotient_are_equal() {
        let w = Index::from(var(0, 64)).mul(4);
        let lanes: Vec<Index> = (0..4).map(|l| w.offset(l).div(8)).collect();
        assert!(lanes.iter().all(|l| *l == lanes[0]));
        let lanes: Vec<Index> = (0..4).map(|l| w.offset(l).modulo(16)).collect();
        assert_eq!(lanes[3], lanes[0].offset(3));
    }

    /// Every operation keeps the value, on random expressions over all values of two variables.
    #[test]
    fn simplification_keeps_the_value() {
        let mut state = 0x9e37_79b9_u32;
        let mut next = |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % n
        };
        for _ in 0..3000 {
            let (a, b) = (var(0, 1 + next(13) as i64), var(1, 1 + next(13) as i64));
            let mut index = Index::from(a);
            let mut steps: Vec<(u32, i64)> = Vec::new();
            for _ in 0..next(8) {
                let step = (next(5), 1 + next(12) as i64);
                steps.push(step);
                index = match step.0 {
                    0 => index.mul(step.1),
                    1 => index.div(step.1),
                    2 => index.modulo(step.1),
                    3 => index.add(&Index::from(b).mul(step.1)),
                    _ => index.offset(step.1 - 4),
                };
            }
            for x in 0..a.extent {
                for y in 0..b.extent {
                    let expected = steps.iter().fold(x, |v, &(op, c)| match op {
                        0 => v * c,
                        1 => v.div_euclid(c),
                        2 => v.rem_euclid(c),
                        3 => v + y * c,
                        _ => v + c - 4,
                    });
                    let got = index.eval(&|v| if v.0 == 0 { x } else { y }, &|_| 0);
                    assert_eq!(got, expected, "{index} for {steps:?} at {x}, {y}");
                    let (lo, hi) = index.range();
                    assert!(lo <= got && got <= hi, "{index} leaves its range");
                }
            }
        }
    }
}
