//! Kernels that serve several sizes.
//!
//! Sizes stay plain numbers in graphs and in lowering. Two kernels whose texts differ only in numbers inside expressions are one class: those
//! numbers become parameters, and the class has one text, its template. A kernel lowered at another size is compared with the template;
//! where it fits, its numbers are the parameters of the dispatch, and nothing is compiled. That is correct by construction: the template
//! with the parameters in place is the text that was lowered.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use kernels_gen::{Binding, BindingKind, Formula, KernelSource, Target, validate};

/// Words of the parameter block after the numbers: iteration bound, then low and high words of FLOPs and bytes.
const COST_WORDS: usize = 5;

/// Names that a template adds to a text all begin so.
const PREFIX: &str = "dyn_";

/// What stands for a number of an expression, and for the kernel's name, in a skeleton.
const HOLE: char = '\u{1}';
const NAME: char = '\u{2}';

/// The classes of kernels that one program has lowered. Shared by all sizes of the program.
#[derive(Debug, Default)]
pub struct Templates {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    classes: HashMap<Skeleton, Class>,
    counts: TemplateCounts,
}

/// How many kernels were made, and how often one that was there served another size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TemplateCounts {
    /// Kernels made for one size.
    pub fixed: usize,
    /// Kernels made for several sizes.
    pub templates: usize,
    /// Kernels that were lowered and found among those made.
    pub reused: usize,
}

/// What two kernels of one class have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Skeleton {
    text: String,
    label: String,
    /// Everything of the source but name, text and costs.
    rest: KernelSource,
}

#[derive(Debug)]
struct Class {
    /// The numbers of the first kernel of the class, as they are written.
    values: Vec<String>,
    /// Numbers that differed between two kernels, or are counts that some sizes round to the same number.
    open: Vec<bool>,
    /// The kernel for the first one's size, if it was made.
    fixed: Option<Arc<KernelSource>>,
    /// The kernel for several sizes, and which numbers are its parameters.
    template: Option<(Arc<KernelSource>, Vec<bool>)>,
}

/// A number inside an expression.
#[derive(Debug, Clone)]
struct Number {
    token: String,
    /// Its 32 bits.
    bits: u32,
    scalar: Scalar,
    /// Whether it stands in the entry point, where parameters are uniform values, and not in a function it calls.
    entry: bool,
    /// Whether it is a number of workgroups, invocations or iterations.
    count: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scalar {
    U32,
    I32,
    F32,
}

/// A kernel with the words of its parameter block.
pub(super) type Bound = (Arc<KernelSource>, Vec<u32>);

impl Templates {
    /// No classes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was made up to now.
    pub fn counts(&self) -> TemplateCounts {
        self.state().counts
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the kernel can be had without making one.
    pub(super) fn serves(&self, source: &KernelSource) -> bool {
        let Some((skeleton, numbers)) = scan(source) else { return false };
        self.state().classes.get(&skeleton).is_some_and(|class| class.serving(&numbers).is_some())
    }

    /// Learns how a kernel looks at another size.
    pub(super) fn learn(&self, source: &KernelSource) {
        let Some((skeleton, numbers)) = scan(source) else { return };
        let mut state = self.state();
        state.classes.entry(skeleton).or_insert_with(|| Class::new(&numbers)).widen(&numbers);
    }

    /// The kernel that computes what `source` does, with its parameters; made and checked if there is none.
    pub(super) fn bind(&self, source: &KernelSource, target: &Target) -> Result<Bound> {
        let fixed = |counts: &mut TemplateCounts| {
            validate::check(source, target)?;
            counts.fixed += 1;
            Ok::<_, Error>((Arc::new(source.clone()), Vec::new()))
        };
        let mut state = self.state();
        let State { classes, counts } = &mut *state;
        let Some((skeleton, numbers)) = scan(source) else { return fixed(counts) };
        let class = classes.entry(skeleton.clone()).or_insert_with(|| Class::new(&numbers));
        if let Some((made, open)) = class.serving(&numbers) {
            counts.reused += 1;
            let params = open.map_or_else(Vec::new, |open| params(source, &numbers, open));
            return Ok((made.clone(), params));
        }
        class.widen(&numbers);
        if !class.open.contains(&true) {
            let (made, none) = fixed(counts)?;
            class.fixed = Some(made.clone());
            return Ok((made, none));
        }
        let made = Arc::new(template(source, &skeleton, &numbers, &class.open));
        validate::check(&made, target)?;
        counts.templates += 1;
        class.template = Some((made.clone(), class.open.clone()));
        Ok((made, params(source, &numbers, &class.open)))
    }
}

impl Class {
    fn new(numbers: &[Number]) -> Self {
        let values = numbers.iter().map(|n| n.token.clone()).collect();
        Class { values, open: vec![false; numbers.len()], fixed: None, template: None }
    }

    fn is_first(&self, numbers: &[Number]) -> bool {
        self.values.iter().zip(numbers).all(|(value, number)| *value == number.token)
    }

    /// Opens what differs from the first kernel. Once something does, counts are open too: they may be equal by rounding only.
    fn widen(&mut self, numbers: &[Number]) {
        for ((open, value), number) in self.open.iter_mut().zip(&self.values).zip(numbers) {
            *open |= *value != number.token;
        }
        if self.open.contains(&true) {
            self.open.iter_mut().zip(numbers).for_each(|(open, number)| *open |= number.count);
        }
    }

    /// The kernel that serves those numbers, with what its parameters are if it has some.
    fn serving(&self, numbers: &[Number]) -> Option<(&Arc<KernelSource>, Option<&[bool]>)> {
        if let Some((made, open)) = &self.template {
            let fits = open.iter().zip(&self.values).zip(numbers).all(|((open, value), number)| *open || *value == number.token);
            return fits.then_some((made, Some(open)));
        }
        // With something open, the next size is a template.
        self.fixed.as_ref().filter(|_| !self.open.contains(&true) && self.is_first(numbers)).map(|made| (made, None))
    }
}

/// Words of the parameter block: the open numbers, then the costs.
fn params(source: &KernelSource, numbers: &[Number], open: &[bool]) -> Vec<u32> {
    let mut words: Vec<u32> = open.iter().zip(numbers).filter(|(open, _)| **open).map(|(_, number)| number.bits).collect();
    let (iterations, flops, bytes) = (source.max_iterations.eval(&[]), source.flops.eval(&[]), source.bytes.eval(&[]));
    words.push(u32::try_from(iterations).unwrap_or(u32::MAX));
    words.extend([flops as u32, (flops >> 32) as u32, bytes as u32, (bytes >> 32) as u32]);
    words
}

/// The text with its open numbers read from a parameter block.
fn template(source: &KernelSource, skeleton: &Skeleton, numbers: &[Number], open: &[bool]) -> KernelSource {
    let opened: Vec<&Number> = numbers.iter().zip(open).filter(|(_, open)| **open).map(|(number, _)| number).collect();
    let mut lets = String::new();
    let mut globals = String::new();
    for (word, number) in opened.iter().enumerate() {
        let _ = match number.entry {
            true => writeln!(lets, "    let {PREFIX}{word} = {PREFIX}params.w{word};"),
            false => {
                let _ = writeln!(globals, "var<private> {PREFIX}{word}: u32;");
                writeln!(lets, "    {PREFIX}{word} = {PREFIX}params.w{word};")
            }
        };
    }
    let mut body = String::with_capacity(skeleton.text.len());
    let (mut at, mut word, mut opens_entry) = (0, 0, false);
    for c in skeleton.text.chars() {
        match c {
            HOLE => {
                let _ = match (open[at], numbers[at].scalar) {
                    (true, Scalar::U32) => write!(body, "{PREFIX}{word}"),
                    (true, Scalar::I32) => write!(body, "bitcast<i32>({PREFIX}{word})"),
                    (true, Scalar::F32) => write!(body, "bitcast<f32>({PREFIX}{word})"),
                    (false, _) => write!(body, "{}", numbers[at].token),
                };
                word += usize::from(open[at]);
                at += 1;
            }
            NAME => {
                opens_entry = true;
                body.push(NAME);
            }
            '{' if opens_entry => {
                opens_entry = false;
                let _ = write!(body, "{{\n{}", lets.trim_end());
            }
            c => body.push(c),
        }
    }
    let num_params = opened.len() + COST_WORDS;
    let words: Vec<String> = (0..num_params).map(|w| format!("w{w}: u32")).collect();
    let block = format!(
        "struct {PREFIX}block {{ {} }}\n@group(0) @binding({}) var<uniform> {PREFIX}params: {PREFIX}block;\n{globals}",
        words.join(", "),
        source.bindings.len()
    );
    // Directives stand before everything else.
    let directives: usize = body.split_inclusive('\n').take_while(|line| line.starts_with("enable ")).map(str::len).sum();
    body.insert_str(directives, &block);
    let hash = body.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    let name = format!("{}_{PREFIX}{hash:08x}", skeleton.label);
    let mut bindings = source.bindings.clone();
    bindings.push(Binding::new(format!("{PREFIX}params"), BindingKind::Params));
    let wide = |low: usize| Formula::Param(low) + Formula::Param(low + 1) * Formula::Const(1 << 32);
    KernelSource {
        wgsl: format!("// Several sizes of {}\n{}", skeleton.label, body.replace(NAME, &name)),
        name,
        bindings,
        num_params,
        max_iterations: Formula::Param(opened.len()),
        flops: wide(opened.len() + 1),
        bytes: wide(opened.len() + 3),
        ..source.clone()
    }
}

/// The skeleton of a kernel and its numbers, in order; none for a kernel that has parameters of its own or names that a template adds.
fn scan(source: &KernelSource) -> Option<(Skeleton, Vec<Number>)> {
    if source.num_params > 0 || source.wgsl.contains(PREFIX) {
        return None;
    }
    let label = source.name.rsplit_once('_').map_or(source.name.as_str(), |(label, _)| label).to_string();
    let mut scanner = Scanner { rest: &source.wgsl, name: &source.name, text: String::new(), numbers: Vec::new(), place: Place::default() };
    while scanner.step() {}
    let (text, numbers) = (scanner.text, scanner.numbers);
    let zero = Formula::Const(0);
    let rest = KernelSource {
        name: String::new(),
        wgsl: String::new(),
        flops: zero.clone(),
        bytes: zero.clone(),
        max_iterations: zero,
        ..source.clone()
    };
    Some((Skeleton { text, label, rest }, numbers))
}

/// Where in a text the scanner is.
#[derive(Default)]
struct Place {
    /// Braces that are open.
    depth: usize,
    /// Whether the function is the entry point, or the next brace opens one.
    function: Option<bool>,
    /// In a statement whose numbers decide types or are labels: what ends it.
    fixed: Option<&'static str>,
    /// In the head of a `for`, up to its block.
    head: bool,
    /// In a `let` whose value is a place in the grid of workgroups.
    grid: bool,
    /// Angle brackets open since `array`.
    array: usize,
    /// The token before.
    before: String,
}

struct Scanner<'a> {
    rest: &'a str,
    name: &'a str,
    text: String,
    numbers: Vec<Number>,
    place: Place,
}

impl Scanner<'_> {
    /// Takes the next token; false at the end.
    fn step(&mut self) -> bool {
        let Some(c) = self.rest.chars().next() else { return false };
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
            self.rest = &self.rest[end..];
            return true;
        }
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = if c.is_ascii_digit() {
            // A number with its fraction, exponent and suffix.
            let mut end = 0;
            let mut previous = ' ';
            for n in self.rest.chars() {
                let sign = (n == '+' || n == '-') && (previous == 'e' || previous == 'E') && !self.rest.starts_with("0x");
                if !(word(n) || n == '.' || sign) {
                    break;
                }
                end += n.len_utf8();
                previous = n;
            }
            end
        } else if word(c) {
            self.rest.find(|n| !word(n)).unwrap_or(self.rest.len())
        } else {
            c.len_utf8()
        };
        let (token, rest) = self.rest.split_at(len);
        self.rest = rest;
        if c.is_whitespace() {
            self.text.push(c);
            return true;
        }
        self.token(token);
        self.place.before = token.to_string();
        true
    }

    fn token(&mut self, token: &str) {
        let place = &mut self.place;
        match token {
            "fn" => place.function = Some(false),
            "const" | "override" => place.fixed = Some(";"),
            "case" => place.fixed = Some(":"),
            "for" => place.head = true,
            "array" => place.array = 0,
            "<" if place.before == "array" || place.array > 0 => place.array += 1,
            ">" if place.array > 0 => place.array -= 1,
            "{" => {
                place.depth += 1;
                place.head = false;
            }
            "}" => {
                place.depth = place.depth.saturating_sub(1);
                if place.depth == 0 {
                    place.function = None;
                }
            }
            ";" => place.grid = false,
            _ => {}
        }
        if place.fixed == Some(token) {
            place.fixed = None;
        }
        if token == self.name {
            if place.before == "fn" {
                place.function = Some(true);
            }
            self.text.push(NAME);
            return;
        }
        if place.before == "let" {
            // The heroes' names for the place of a tile.
            place.grid = token.starts_with("tile") || token == "b";
        }
        let inside = place.depth > 0 && place.function.is_some() && place.array == 0 && place.fixed.is_none();
        match number(token).filter(|_| inside) {
            Some((bits, scalar)) => {
                let text = self.text.trim_end();
                let guard = place.before == "=" && text.ends_with(">=") && !text.ends_with(">>=");
                let bound = place.head && place.before == "<";
                let part = place.grid && (place.before == "/" || place.before == "%");
                let entry = place.function == Some(true);
                let count = scalar == Scalar::U32 && entry && (guard || bound || part);
                self.numbers.push(Number { token: token.to_string(), bits, scalar, entry, count });
                self.text.push(HOLE);
            }
            None => self.text.push_str(token),
        }
    }
}

/// The bits of a decimal number with a suffix.
fn number(token: &str) -> Option<(u32, Scalar)> {
    if token.starts_with("0x") || !token.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Some(digits) = token.strip_suffix('u') {
        return Some((digits.parse().ok()?, Scalar::U32));
    }
    if let Some(digits) = token.strip_suffix('i') {
        return Some((digits.parse::<i32>().ok()? as u32, Scalar::I32));
    }
    let value: f32 = token.strip_suffix('f')?.parse().ok()?;
    value.is_finite().then(|| (value.to_bits(), Scalar::F32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::{CompileOptions, Compiled, compile, compile_like, learn};
    use crate::graph::{BinaryOp, Graph, GraphBuilder, ReduceOp, TensorType, UnaryOp};
    use crate::plan::Command;
    use kernels_gen::DType;

    /// Rows of `n` elements, each divided by its sum, then a product with a matrix.
    fn graph(rows: usize, n: usize) -> Graph {
        let mut b = GraphBuilder::new();
        let x = b.input("x", TensorType::new(DType::F32, [rows, n])).expect("an input");
        let e = b.unary(UnaryOp::Exp, x).expect("exp");
        let sum = b.reduce(ReduceOp::Sum, e, &[1], true).expect("sum");
        let y = b.binary(BinaryOp::Div, e, sum).expect("div");
        b.output("y", y).expect("an output");
        b.finish()
    }

    fn like(templates: &Templates, rows: usize, n: usize) -> Compiled {
        compile_like(&graph(rows, n), &Target::webgpu(), &CompileOptions::default(), templates, Vec::new).expect("compiles")
    }

    /// The kernel's text with its parameters in their places.
    fn filled(compiled: &Compiled) -> Vec<String> {
        let mut texts = Vec::new();
        for command in &compiled.plan().commands {
            let Command::Dispatch { kernel, params, .. } = command else { continue };
            let source = &compiled.plan().kernels[kernel.0 as usize];
            let mut text = source.wgsl.replace(&source.name, "NAME");
            for (word, value) in params.iter().enumerate().rev() {
                text = text.replace(&format!("bitcast<f32>({PREFIX}{word})"), &format!("{}f", f32::from_bits(*value)));
                text = text.replace(&format!("{PREFIX}{word} ="), "SET");
                text = text.replace(&format!("{PREFIX}{word}"), &format!("{value}u"));
            }
            let own =
                |line: &&str| !line.starts_with("//") && !line.contains("dyn_") && !line.contains("SET") && !line.contains("var<private> ");
            texts.push(text.lines().filter(own).collect::<Vec<_>>().join("\n"));
        }
        texts
    }

    #[test]
    fn the_third_size_of_a_class_makes_nothing_and_is_the_text_that_was_lowered() {
        let templates = Templates::new();
        learn(&graph(12, 30), &Target::webgpu(), &CompileOptions::default(), &templates).expect("lowers");
        let second = like(&templates, 17, 30);
        let made = templates.counts();
        assert_eq!((made.fixed, made.templates), (0, 1), "{made:?}");
        let third = like(&templates, 4000, 30);
        let counts = templates.counts();
        assert_eq!((counts.fixed, counts.templates, counts.reused), (0, 1, 1));
        assert_eq!(second.plan().kernels, third.plan().kernels);
        assert_ne!(second.plan().commands, third.plan().commands, "workgroups and parameters are those of each size");
        for rows in [17, 4000] {
            let target = Target { varying_sizes: true, ..Target::webgpu() };
            let plain = compile(&graph(rows, 30), &target, &CompileOptions::default()).expect("compiles");
            let expected = filled(&plain);
            assert_eq!(filled(&like(&templates, rows, 30)), expected);
        }
        // Costs are those of the size.
        let plain = compile(&graph(4000, 30), &Target::webgpu(), &CompileOptions::default()).expect("compiles");
        assert_eq!((third.kernels()[0].flops, third.kernels()[0].bytes), (plain.kernels()[0].flops, plain.kernels()[0].bytes));
    }

    #[test]
    fn another_class_is_another_kernel() {
        let templates = Templates::new();
        like(&templates, 12, 30);
        // Rows whose length divides by 4 are read four elements at a time.
        like(&templates, 12, 32);
        assert_eq!(templates.counts(), TemplateCounts { fixed: 2, templates: 0, reused: 0 });
        like(&templates, 12, 30);
        assert_eq!(templates.counts(), TemplateCounts { fixed: 2, templates: 0, reused: 1 });
    }

    #[test]
    fn numbers_that_shape_types_are_no_parameters() {
        let text = "var<workgroup> a: array<f32, 12>;\n@compute @workgroup_size(64)\nfn k(x: u32) { const M = 3u; \
                    var b: array<u32, 4u>; switch x { case 7u: { b[1u] = 0x10u; } default: {} } for (var i = 0u; i < 9u; i += 1u) { \
                    let tile_m = x / 2u; if x >= 5u { return; } f(2.5f, 3i); } }\n";
        let source = KernelSource { wgsl: text.into(), name: "k".into(), ..template_source() };
        let (skeleton, numbers) = scan(&source).expect("has no parameters");
        let tokens: Vec<(&str, bool)> = numbers.iter().map(|n| (n.token.as_str(), n.count)).collect();
        let expected =
            [("1u", false), ("0u", false), ("9u", true), ("1u", false), ("2u", true), ("5u", true), ("2.5f", false), ("3i", false)];
        assert_eq!(tokens, expected);
        for kept in ["array<f32, 12>", "array<u32, 4u>", "M = 3u", "case 7u", "0x10u"] {
            assert!(skeleton.text.contains(kept), "{}", skeleton.text);
        }
    }

    fn template_source() -> KernelSource {
        let zero = Formula::Const(0);
        KernelSource {
            name: String::new(),
            wgsl: String::new(),
            bindings: Vec::new(),
            num_params: 0,
            workgroup_size: [64, 1, 1],
            overrides: Vec::new(),
            workgroup_bytes: 0,
            features: Default::default(),
            flops: zero.clone(),
            bytes: zero.clone(),
            max_iterations: zero,
        }
    }
}
