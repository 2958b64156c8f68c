//! Expressions, indices and memory accesses as WGSL text.

use std::collections::{BTreeSet, HashMap};

use crate::emit::helpers::Helper;
use crate::emit::{Numerics, formats, vector_buffers};
use crate::index::{Atom, Index};
use crate::ir::{BufferId, Code, Expr, ExprId, Lanes, LocalId, Stmt, ValueType};
use crate::scalar::{BinaryOp, Literal, UnaryOp};
use crate::{DType, ScalarType, WgslFeatures};

/// How deep a term may nest: naga's parser follows about a hundred operations.
const MAX_DEPTH: u32 = 24;

/// What has a name in one scope of the text.
#[derive(Default)]
struct Scope {
    exprs: HashMap<ExprId, String>,
    atoms: HashMap<Atom, String>,
}

/// The state of emission.
pub struct Emitter<'a> {
    pub code: &'a Code,
    pub out: String,
    pub helpers: BTreeSet<Helper>,
    /// Types of the scratch arrays in workgroup memory.
    pub scratch: BTreeSet<ScalarType>,
    pub vectors: BTreeSet<BufferId>,
    pub workgroup_size: u32,
    /// Whether the text uses subgroup operations.
    pub subgroups: bool,
    pub numerics: Numerics,
    scopes: Vec<Scope>,
    uses: Vec<u32>,
    /// Locals each expression reads, itself or through operands.
    reads: Vec<BTreeSet<LocalId>>,
    next_name: u32,
}

impl<'a> Emitter<'a> {
    pub fn new(code: &'a Code, numerics: Numerics, bodies: &[&Vec<Stmt>], results: &[ExprId]) -> Self {
        let mut uses = vec![0u32; code.exprs.len()];
        let mut roots: Vec<ExprId> = results.to_vec();
        bodies.iter().for_each(|body| stmt_operands(body, &mut |e| roots.push(e)));
        roots.iter().for_each(|e| uses[e.0 as usize] += 1);
        // Users come after operands, so one sweep from the end counts the uses by expressions that are themselves used.
        for i in (0..code.exprs.len()).rev() {
            if uses[i] > 0 {
                code.exprs[i].0.for_each_operand(&mut |e| uses[e.0 as usize] += 1);
            }
        }
        // What would nest deeper than parsers follow gets a name.
        let mut depth = vec![0u32; code.exprs.len()];
        for (i, (expr, _)) in code.exprs.iter().enumerate() {
            let mut below = 0;
            expr.for_each_operand(&mut |e| below = below.max(depth[e.0 as usize]));
            depth[i] = below + 1;
            if depth[i] > MAX_DEPTH && uses[i] > 0 {
                uses[i] = uses[i].max(2);
            }
            if uses[i] > 1 || matches!(expr, Expr::Load { .. }) {
                depth[i] = 0;
            }
        }
        let mut reads: Vec<BTreeSet<LocalId>> = Vec::with_capacity(code.exprs.len());
        for (expr, _) in &code.exprs {
            let mut set = BTreeSet::new();
            if let Expr::Local(local) = expr {
                set.insert(*local);
            }
            expr.for_each_operand(&mut |e| set.extend(reads[e.0 as usize].iter().copied()));
            reads.push(set);
        }
        Emitter {
            code,
            out: String::new(),
            helpers: BTreeSet::new(),
            scratch: BTreeSet::new(),
            vectors: vector_buffers(code, bodies),
            workgroup_size: 1,
            subgroups: false,
            numerics,
            scopes: vec![Scope::default()],
            uses,
            reads,
            next_name: 0,
        }
    }

    pub fn line(&mut self, text: &str) {
        for _ in 0..self.scopes.len() {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    pub fn enter(&mut self) {
        self.scopes.push(Scope::default());
    }

    pub fn leave(&mut self) {
        self.scopes.pop();
    }

    /// A local has changed: what was computed from it is stale.
    pub fn forget(&mut self, local: LocalId) {
        for scope in &mut self.scopes {
            scope.exprs.retain(|e, _| !self.reads[e.0 as usize].contains(&local));
        }
    }

    /// The same for every local the statements change.
    pub fn forget_assigned(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Loop { body, .. } | Stmt::If { body, .. } => self.forget_assigned(body),
                Stmt::Assign { local, .. } | Stmt::WorkgroupReduce { local, .. } => self.forget(*local),
                Stmt::Break { .. } | Stmt::Declare { .. } | Stmt::Store { .. } => {}
            }
        }
    }

    fn name(&mut self, value: &str) -> String {
        let name = format!("t{}", self.next_name);
        self.next_name += 1;
        self.line(&format!("let {name} = {value};"));
        name
    }

    /// Text of an expression's value: a name, a literal or a term in parentheses.
    pub fn expr(&mut self, id: ExprId) -> String {
        if let Some(name) = self.scopes.iter().rev().find_map(|s| s.exprs.get(&id)) {
            return name.clone();
        }
        let (expr, ty) = &self.code.exprs[id.0 as usize];
        let text = self.expr_text(expr, *ty);
        let trivial = matches!(expr, Expr::Literal(_) | Expr::Local(_) | Expr::Argument(..));
        // Each load has a name, so that no load is repeated and the text stays readable.
        if trivial || (self.uses[id.0 as usize] < 2 && !matches!(expr, Expr::Load { .. })) {
            return text;
        }
        let name = self.name(&text);
        if let Some(scope) = self.scopes.last_mut() {
            scope.exprs.insert(id, name.clone());
        }
        name
    }

    fn expr_text(&mut self, expr: &Expr, ty: ValueType) -> String {
        match expr {
            Expr::Literal(literal) => self.literal(*literal),
            Expr::Index(lanes) => self.lanes(lanes, |e, i| e.index(i)),
            Expr::InBounds { index, size } => self.lanes(index, |e, i| {
                let i = e.index(i);
                format!("({i} < {size}u)")
            }),
            Expr::Load { buffer, index } => self.load(*buffer, index, ty),
            Expr::Local(local) => format!("x{}", local.0),
            Expr::Argument(name, ..) => name.clone(),
            Expr::Unary(op, a) => {
                let a = self.expr(*a);
                self.unary_text(*op, ty, &a)
            }
            Expr::Binary(op, a, b) => {
                let operand = self.code.exprs[a.0 as usize].1;
                let known = |e: &ExprId| match &self.code.exprs[e.0 as usize].0 {
                    Expr::Literal(l) => !l.is_nan(),
                    Expr::Splat(e) => matches!(&self.code.exprs[e.0 as usize].0, Expr::Literal(l) if !l.is_nan()),
                    _ => false,
                };
                let numbers = (known(a), known(b));
                let (a, b) = (self.expr(*a), self.expr(*b));
                self.binary_numbers(*op, operand, &a, &b, numbers)
            }
            Expr::Select(c, t, f) => {
                let (c, t, f) = (self.expr(*c), self.expr(*t), self.expr(*f));
                format!("select({f}, {t}, {c})")
            }
            Expr::Cast(to, a) => {
                let from = self.code.exprs[a.0 as usize].1;
                let a = self.expr(*a);
                self.cast(*to, from, &a)
            }
            Expr::Narrow(dtype, a) => {
                let a = self.expr(*a);
                let u = ValueType { scalar: ScalarType::U32, width: ty.width }.wgsl();
                let t = ty.wgsl();
                match dtype {
                    DType::I8 => format!("(({a} << {u}(24u)) >> {u}(24u))"),
                    DType::F16 => {
                        let w = ty.width;
                        self.helpers.extend([Helper::HalfValue(w), Helper::HalfCode(w), Helper::HalfRound(w)]);
                        format!("half_round_{w}({a})")
                    }
                    _ => format!("({a} & {t}(255))"),
                }
            }
            Expr::Splat(a) => {
                let a = self.expr(*a);
                format!("{}({a})", ty.wgsl())
            }
            Expr::Lane(a, l) => {
                let a = self.expr(*a);
                format!("{a}.{}", ["x", "y", "z", "w"][*l as usize])
            }
            Expr::Compose(parts) => {
                let parts: Vec<String> = parts.iter().map(|&p| self.expr(p)).collect();
                format!("{}({})", ty.wgsl(), parts.join(", "))
            }
        }
    }

    pub fn literal(&mut self, literal: Literal) -> String {
        match literal {
            // The smallest i32 has no literal of its own.
            Literal::I32(i32::MIN) => "(-2147483647i - 1i)".to_string(),
            Literal::I32(v) if v < 0 => format!("({v}i)"),
            Literal::I32(v) => format!("{v}i"),
            Literal::U32(v) => format!("{v}u"),
            Literal::Bool(v) => v.to_string(),
            Literal::F32(bits) => {
                let v = f32::from_bits(bits);
                if !v.is_finite() {
                    // WGSL has no literal for these and refuses constant expressions that give them.
                    self.helpers.insert(Helper::NonFinite);
                    return match () {
                        () if v.is_nan() => "f32_nan()".to_string(),
                        () if v > 0.0 => "f32_inf()".to_string(),
                        () => "(-f32_inf())".to_string(),
                    };
                }
                if v.is_sign_negative() { format!("({v:?}f)") } else { format!("{v:?}f") }
            }
        }
    }

    /// One text for all lanes: the value itself, or a vector of the lanes' values.
    fn lanes(&mut self, lanes: &Lanes, mut one: impl FnMut(&mut Self, &Index) -> String) -> String {
        let parts: Vec<String> = lanes.0.iter().map(|i| one(self, i)).collect();
        match parts.as_slice() {
            [one] => one.clone(),
            many => format!("vec4({})", many.join(", ")),
        }
    }

    fn atom(&mut self, atom: &Atom) -> String {
        if let Some(name) = self.scopes.iter().rev().find_map(|s| s.atoms.get(atom)) {
            return name.clone();
        }
        let text = match atom {
            Atom::Var(v) => return format!("v{}", v.id.0),
            Atom::Data { expr, .. } => return self.expr(ExprId(*expr)),
            Atom::Div(x, d) => {
                let x = self.index(x);
                format!("{x} / {d}u")
            }
            Atom::Mod(x, d) => {
                let x = self.index(x);
                format!("{x} % {d}u")
            }
        };
        let name = self.name(&text);
        // A quotient of a value read from a local would go stale; indices of data are never kept.
        let mut of_data = false;
        if let Atom::Div(x, _) | Atom::Mod(x, _) = atom {
            x.for_each_data(&mut |_| of_data = true);
        }
        if !of_data && let Some(scope) = self.scopes.last_mut() {
            scope.atoms.insert(atom.clone(), name.clone());
        }
        name
    }

    /// An index as a wrapping `u32` term.
    pub fn index(&mut self, index: &Index) -> String {
        let mut terms = Vec::new();
        for (atom, c) in index.terms() {
            let atom = self.atom(atom);
            terms.push(match c {
                1 => atom,
                c => format!("{atom} * {}u", *c as u32),
            });
        }
        if index.constant() != 0 || terms.is_empty() {
            terms.push(format!("{}u", index.constant() as u32));
        }
        match terms.as_slice() {
            [one] if !one.contains(' ') => one.clone(),
            many => format!("({})", many.join(" + ")),
        }
    }

    /// Whether a buffer is declared as 64-bit words.
    pub fn is_wide(&self, buffer: BufferId) -> bool {
        let decl = &self.code.buffers[buffer.0 as usize];
        self.code.wide_loads && decl.dtype == DType::F32 && !decl.written && self.vectors.contains(&buffer)
    }

    /// Optional features the text uses.
    pub fn features(&self) -> WgslFeatures {
        let int64 = (0..self.code.buffers.len()).any(|i| self.is_wide(BufferId(i as u32)));
        let f16 = self.code.exprs.iter().any(|(_, ty)| ty.scalar == ScalarType::F16);
        WgslFeatures { int64, f16, subgroups: self.subgroups }
    }

    fn element(&mut self, buffer: BufferId, index: &Index) -> String {
        let name = self.code.buffers[buffer.0 as usize].name.clone();
        if self.is_wide(buffer) {
            let (word, half) = (self.index(&index.div(2)), self.index(&index.modulo(2)));
            format!("bitcast<f32>(u32({name}[({word}) / 2u][({word}) % 2u] >> (({half}) * 32u)))")
        } else if self.vectors.contains(&buffer) {
            let (word, lane) = (self.index(&index.div(4)), self.index(&index.modulo(4)));
            format!("{name}[{word}][{lane}]")
        } else {
            let index = self.index(index);
            format!("{name}[{index}]")
        }
    }

    fn load(&mut self, buffer: BufferId, lanes: &Lanes, ty: ValueType) -> String {
        let decl = &self.code.buffers[buffer.0 as usize];
        let (name, dtype) = (decl.name.clone(), decl.dtype);
        if dtype.elems_per_word() == 1 {
            if let Some(word) = lanes.vec4() {
                let word = self.index(&word);
                if self.is_wide(buffer) {
                    self.helpers.insert(Helper::Unpack);
                    return format!("unpack_4({name}[{word}])");
                }
                return format!("{name}[{word}]");
            }
            let parts: Vec<String> = lanes.0.iter().map(|i| self.element(buffer, i)).collect();
            return match parts.as_slice() {
                [one] => one.clone(),
                many => format!("{}({})", ty.wgsl(), many.join(", ")),
            };
        }
        if dtype == DType::F16 {
            return self.load_halves(buffer, lanes);
        }
        if let Some(word) = lanes.vec4() {
            let word = self.index(&word);
            return match dtype {
                DType::I8 => {
                    format!("((vec4<i32>(bitcast<i32>({name}[{word}])) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u))")
                }
                DType::U8 => format!("((vec4<u32>({name}[{word}]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u))"),
                _ => format!("(((vec4<u32>({name}[{word}]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u)) != vec4<u32>(0u))"),
            };
        }
        let one = |e: &mut Self, i: &Index| {
            let (word, lane) = (e.index(&i.div(4)), e.index(&i.modulo(4)));
            match dtype {
                DType::I8 => format!("((bitcast<i32>({name}[{word}]) << (24u - 8u * {lane})) >> 24u)"),
                DType::U8 => format!("(({name}[{word}] >> (8u * {lane})) & 255u)"),
                _ => format!("((({name}[{word}] >> (8u * {lane})) & 255u) != 0u)"),
            }
        };
        self.lanes(lanes, one)
    }

    /// Values of f16 elements: four neighbours lie in two words, which are one element of a buffer that is read so.
    fn load_halves(&mut self, buffer: BufferId, lanes: &Lanes) -> String {
        let name = self.code.buffers[buffer.0 as usize].name.clone();
        if let Some(place) = lanes.vec4() {
            self.helpers.insert(Helper::HalfValue(4));
            let place = self.index(&place);
            return format!("half_value_4(({name}[{place}].xxyy >> vec4<u32>(0u, 16u, 0u, 16u)) & vec4<u32>(0xffffu))");
        }
        let code = |e: &mut Self, i: &Index| {
            let half = e.index(&i.modulo(2));
            if e.vectors.contains(&buffer) {
                let (place, word) = (e.index(&i.div(4)), e.index(&i.div(2).modulo(2)));
                format!("((({name}[{place}])[{word}] >> (16u * {half})) & 0xffffu)")
            } else {
                let word = e.index(&i.div(2));
                format!("(({name}[{word}] >> (16u * {half})) & 0xffffu)")
            }
        };
        self.helpers.insert(Helper::HalfValue(lanes.width()));
        let codes = self.lanes(lanes, code);
        format!("half_value_{}({codes})", lanes.width())
    }

    /// The f16 codes of four values, in two words.
    fn pack_halves(&mut self, value: &str) -> String {
        self.helpers.insert(Helper::HalfCode(4));
        let codes = self.name(&format!("half_code_4({value})"));
        format!("({codes}.xz | ({codes}.yw << vec2<u32>(16u)))")
    }

    pub fn store(&mut self, buffer: BufferId, lanes: &Lanes, value: ExprId) {
        let decl = &self.code.buffers[buffer.0 as usize];
        let (buffer_name, dtype) = (decl.name.clone(), decl.dtype);
        // What is stored as f16 is rounded by that.
        let value = match &self.code.exprs[value.0 as usize].0 {
            Expr::Narrow(DType::F16, exact) if dtype == DType::F16 => *exact,
            _ => value,
        };
        let value = self.expr(value);
        if let Some(word) = lanes.vec4() {
            let word = self.index(&word);
            let packed = match dtype {
                DType::F32 | DType::I32 | DType::U32 => value,
                DType::F16 => self.pack_halves(&value),
                DType::I8 => self.pack(&format!("bitcast<vec4<u32>>({value})")),
                DType::U8 => self.pack(&value),
                DType::Bool => self.pack(&format!("select(vec4<u32>(0u), vec4<u32>(1u), {value})")),
            };
            self.line(&format!("{buffer_name}[{word}] = {packed};"));
            return;
        }
        let value = if lanes.0.len() > 1 { self.name(&value) } else { value };
        for (l, index) in lanes.0.iter().enumerate() {
            let element = self.element(buffer, index);
            let part = if lanes.0.len() > 1 { format!("{value}[{l}]") } else { value.clone() };
            self.line(&format!("{element} = {part};"));
        }
    }

    fn pack(&mut self, value: &str) -> String {
        let bytes = self.name(&format!("({value} & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u)"));
        format!("({bytes}.x | {bytes}.y | {bytes}.z | {bytes}.w)")
    }

    pub fn nan_test(&mut self, width: u8, x: &str) -> String {
        self.helpers.insert(Helper::IsNan(width));
        format!("is_nan_{width}({x})")
    }

    fn unary_text(&mut self, op: UnaryOp, ty: ValueType, a: &str) -> String {
        let float = ty.scalar == ScalarType::F32;
        let w = ty.width;
        match op {
            UnaryOp::Neg if ty.scalar == ScalarType::U32 => format!("({}(0) - {a})", ty.wgsl()),
            UnaryOp::Neg => format!("(-{a})"),
            UnaryOp::Abs => format!("abs({a})"),
            UnaryOp::Sign if float => {
                let nan = self.nan_test(w, a);
                format!("select(sign({a}), {a}, {nan})")
            }
            UnaryOp::Sign if ty.scalar == ScalarType::U32 => format!("min({a}, {}(1u))", ty.wgsl()),
            UnaryOp::Sign => format!("sign({a})"),
            UnaryOp::Exp => format!("exp({a})"),
            UnaryOp::Log => format!("log({a})"),
            UnaryOp::Sqrt => format!("sqrt({a})"),
            UnaryOp::Sin => format!("sin({a})"),
            UnaryOp::Cos => format!("cos({a})"),
            UnaryOp::Tanh => {
                self.helpers.extend([Helper::IsNan(w), Helper::Tanh(w)]);
                format!("tanh_{w}({a})")
            }
            UnaryOp::Erf => {
                self.helpers.extend([Helper::IsNan(w), Helper::Erf(w)]);
                format!("erf_{w}({a})")
            }
            UnaryOp::Floor => format!("floor({a})"),
            UnaryOp::Ceil => format!("ceil({a})"),
            UnaryOp::Round => format!("round({a})"),
            UnaryOp::Not if ty.scalar == ScalarType::Bool => format!("(!{a})"),
            UnaryOp::Not => format!("(~{a})"),
            // The operand of a non-float is never NaN, but the result is Bool all the same.
            UnaryOp::IsNan => self.nan_test(w, a),
            UnaryOp::Decode(format) => {
                self.helpers.insert(Helper::Decode(format, w));
                format!("{}({a})", formats::decode_name(format, w))
            }
            UnaryOp::Encode(format, rounding, overflow) => {
                self.helpers.insert(Helper::Encode(format, rounding, overflow, w));
                format!("{}({a})", formats::encode_name(format, Some(rounding), overflow, w))
            }
            UnaryOp::Bits => {
                let nan = self.nan_test(w, a);
                format!("select(bitcast<{0}>({a}), {0}(0x7fc00000u), {nan})", ty.wgsl())
            }
            UnaryOp::FromBits => format!("bitcast<{}>({a})", ty.wgsl()),
        }
    }

    /// A binary operation on values of type `ty`.
    pub fn binary_text(&mut self, op: BinaryOp, ty: ValueType, a: &str, b: &str) -> String {
        self.binary_numbers(op, ty, a, b, (false, false))
    }

    /// The same, told which operands are certainly not NaN.
    fn binary_numbers(&mut self, op: BinaryOp, ty: ValueType, a: &str, b: &str, numbers: (bool, bool)) -> String {
        let float = ty.scalar == ScalarType::F32;
        let bool_ = ty.scalar == ScalarType::Bool;
        let strict = float && self.numerics == Numerics::Strict;
        let w = ty.width;
        let infix = |s: &str| format!("({a} {s} {b})");
        match op {
            BinaryOp::Add => infix("+"),
            BinaryOp::Sub => infix("-"),
            BinaryOp::Mul if bool_ => infix("&"),
            BinaryOp::Mul => infix("*"),
            BinaryOp::Div => infix("/"),
            BinaryOp::Rem if float => {
                self.helpers.insert(Helper::Rem(w));
                format!("rem_{w}({a}, {b})")
            }
            BinaryOp::Rem => infix("%"),
            BinaryOp::Pow => {
                self.helpers.extend([Helper::IsNan(w), Helper::NonFinite, Helper::Pow(w)]);
                format!("pow_{w}({a}, {b})")
            }
            BinaryOp::Max | BinaryOp::Min => {
                let plain = format!("{}({a}, {b})", op.name());
                match (strict, numbers) {
                    (false, _) | (true, (true, true)) => plain,
                    (true, (false, true)) => {
                        let nan = self.nan_test(w, a);
                        format!("select({plain}, {a}, {nan})")
                    }
                    (true, (true, false)) => {
                        let nan = self.nan_test(w, b);
                        format!("select({plain}, {b}, {nan})")
                    }
                    (true, (false, false)) => {
                        self.helpers.extend([Helper::IsNan(w), Helper::NanMaxMin(w)]);
                        format!("nan_{}_{w}({a}, {b})", op.name())
                    }
                }
            }
            BinaryOp::And => infix("&"),
            BinaryOp::Or => infix("|"),
            BinaryOp::Xor if bool_ => infix("!="),
            BinaryOp::Xor => infix("^"),
            BinaryOp::Shl | BinaryOp::Shr => {
                let u = ValueType { scalar: ScalarType::U32, width: w }.wgsl();
                let sign = if op == BinaryOp::Shl { "<<" } else { ">>" };
                format!("({a} {sign} ({u}({b}) & {u}(31u)))")
            }
            BinaryOp::EncodeStochastic(format, overflow) => {
                self.helpers.insert(Helper::EncodeStochastic(format, overflow, w));
                format!("{}({a}, {b})", formats::encode_name(format, None, overflow, w))
            }
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                let sign = match op {
                    BinaryOp::Eq => "==",
                    BinaryOp::Ne => "!=",
                    BinaryOp::Lt => "<",
                    BinaryOp::Le => "<=",
                    BinaryOp::Gt => ">",
                    _ => ">=",
                };
                let mut text = infix(sign);
                if strict {
                    for (value, number) in [(a, numbers.0), (b, numbers.1)] {
                        if !number {
                            let nan = self.nan_test(w, value);
                            text = if op == BinaryOp::Ne { format!("({text} | {nan})") } else { format!("({text} & !{nan})") };
                        }
                    }
                }
                text
            }
        }
    }

    fn cast(&mut self, to: ScalarType, from: ValueType, a: &str) -> String {
        let w = from.width;
        let t = ValueType { scalar: to, width: w }.wgsl();
        match (from.scalar, to) {
            (ScalarType::F32, ScalarType::I32) => {
                self.helpers.extend([Helper::IsNan(w), Helper::FloatToInt(w)]);
                format!("f32_to_i32_{w}({a})")
            }
            (ScalarType::F32, ScalarType::U32) => {
                self.helpers.extend([Helper::IsNan(w), Helper::FloatToUint(w)]);
                format!("f32_to_u32_{w}({a})")
            }
            (ScalarType::F32, ScalarType::Bool) => {
                let nan = self.nan_test(w, a);
                let zero = ValueType { scalar: ScalarType::F32, width: w }.wgsl();
                format!("(({a} != {zero}(0.0)) | {nan})")
            }
            _ => format!("{t}({a})"),
        }
    }
}

fn stmt_operands(body: &[Stmt], f: &mut impl FnMut(ExprId)) {
    for stmt in body {
        match stmt {
            Stmt::Loop { body, .. } => stmt_operands(body, f),
            Stmt::If { condition, body } => {
                f(*condition);
                stmt_operands(body, f);
            }
            Stmt::Break { condition } => f(*condition),
            Stmt::Declare { value, .. } | Stmt::Assign { value, .. } => f(*value),
            Stmt::Store { index, value, .. } => {
                f(*value);
                index.0.iter().for_each(|i| i.for_each_data(&mut |e| f(ExprId(e))));
            }
            Stmt::WorkgroupReduce { .. } => {}
        }
    }
}
