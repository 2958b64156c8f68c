//! Loop IR to WGSL.
//!
//! An expression used more than once becomes a `let` in the innermost scope that needs it first; the others stand where they are used.

mod formats;
pub(crate) mod helpers;
mod value;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::ir::{BufferId, Code, Expr, Function, Grid, Kernel, LocalId, Stmt, ValueType, num_iterations};
use crate::scalar::ReduceOp;
use crate::source::{Binding, BindingKind};
use crate::{Formula, KernelSource, Result, ScalarType, WgslFeatures};

pub use helpers::Helper;
use value::Emitter;

/// Whether kernels keep the promises on NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Numerics {
    /// Comparisons, min and max follow IEEE 754 and PyTorch, by tests on the bits.
    #[default]
    Strict,
    /// No tests: a NaN may vanish in comparisons, min and max.
    Fast,
}

/// Emits a kernel. Its name is its label and a hash of its text.
pub fn kernel(kernel: &Kernel, numerics: Numerics) -> Result<KernelSource> {
    kernel.verify()?;
    let size = kernel.workgroup_size;
    let mut emitter = Emitter::new(&kernel.code, numerics, &[&kernel.body], &[]);
    emitter.workgroup_size = size;
    let group = "wid.x + wid.y * nwg.x";
    match &kernel.grid {
        Grid::Invocations { var } => {
            emitter.line(&format!("let v{} = ({group}) * {size}u + lid;", var.id.0));
            emitter.line(&format!("if v{} >= {}u {{ return; }}", var.id.0, var.extent));
        }
        Grid::Workgroups { group: g, lane } => {
            emitter.line(&format!("let v{} = {group};", g.id.0));
            emitter.line(&format!("if v{} >= {}u {{ return; }}", g.id.0, g.extent));
            emitter.line(&format!("let v{} = lid;", lane.id.0));
        }
    }
    emitter.body(&kernel.body);
    let body = std::mem::take(&mut emitter.out);

    let mut text = String::new();
    let mut workgroup_bytes = 0;
    for scalar in &emitter.scratch {
        let _ = writeln!(text, "var<workgroup> scratch_{}: array<{}, {size}>;", scalar.wgsl(), scalar.wgsl());
        workgroup_bytes += 4 * size;
    }
    let helpers = helpers::text(&emitter.helpers);
    let bindings = bindings(&kernel.code, &emitter);
    let subgroups = match emitter.subgroups {
        true => {
            ", @builtin(subgroup_id) sub: u32, @builtin(num_subgroups) nsub: u32, @builtin(subgroup_invocation_id) sub_lane: u32, \
             @builtin(subgroup_size) sub_size: u32"
        }
        false => "",
    };
    let signature = format!(
        "@compute @workgroup_size({size})\nfn ENTRY(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>, \
         @builtin(local_invocation_index) lid: u32{subgroups}) {{\n"
    );
    let text = format!("{}{text}{helpers}\n{signature}{body}}}\n", bindings.1);
    Ok(finish(Finish {
        label: &kernel.label,
        origins: &kernel.origins,
        text,
        bindings: bindings.0,
        workgroup_size: [size, 1, 1],
        workgroup_bytes,
        features: emitter.features(),
        flops: kernel.flops,
        bytes: kernel.bytes,
        max_iterations: num_iterations(&kernel.body),
    }))
}

/// What [`finish`] needs to close a kernel's text.
pub struct Finish<'a> {
    /// First part of the name.
    pub label: &'a str,
    /// Operations of the user's program.
    pub origins: &'a [String],
    /// WGSL whose entry point is called `ENTRY`.
    pub text: String,
    /// Bindings, in order.
    pub bindings: Vec<Binding>,
    /// Invocations of a workgroup.
    pub workgroup_size: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// Optional features the text uses.
    pub features: WgslFeatures,
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Loop iterations of one invocation.
    pub max_iterations: u64,
}

/// Names a kernel after its label and the hash of its text, and puts its origins at the top.
pub fn finish(parts: Finish<'_>) -> KernelSource {
    // FNV-1a, 32 bits: a name, not a checksum; the device's caches key on the whole source.
    let hash = parts.text.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    let name = format!("{}_{hash:08x}", parts.label);
    let mut header = String::new();
    for origin in parts.origins {
        // Names come from other people's files: whatever might end the comment's line is left out.
        let printable: String = origin.chars().map(|c| if c.is_alphanumeric() || c.is_ascii_graphic() { c } else { ' ' }).collect();
        let _ = writeln!(header, "// {printable}");
    }
    KernelSource {
        wgsl: format!("{header}{}", parts.text.replace("fn ENTRY(", &format!("fn {name}("))),
        name,
        bindings: parts.bindings,
        num_params: 0,
        workgroup_size: parts.workgroup_size,
        overrides: Vec::new(),
        workgroup_bytes: parts.workgroup_bytes,
        features: parts.features,
        flops: Formula::Const(parts.flops),
        bytes: Formula::Const(parts.bytes),
        max_iterations: Formula::Const(parts.max_iterations),
    }
}

/// Text of the functions that fill the holes of a hero, with the helpers and bindings they use.
pub struct Functions {
    /// Optional features the text uses.
    pub features: WgslFeatures,
    /// Declarations of the bindings.
    pub bindings_text: String,
    /// Helpers and functions.
    pub text: String,
    /// Bindings, in order.
    pub bindings: Vec<Binding>,
}

/// Emits functions over one code.
pub fn functions(code: &Code, functions: &[Function], numerics: Numerics) -> Functions {
    let bodies: Vec<&Vec<Stmt>> = functions.iter().map(|f| &f.body).collect();
    let results: Vec<_> = functions.iter().flat_map(|f| &f.results).copied().collect();
    let mut emitter = Emitter::new(code, numerics, &bodies, &results);
    let mut text = String::new();
    for function in functions {
        let ty = function.results.first().map(|r| code.exprs[r.0 as usize].1.wgsl());
        let array = ty.as_ref().map(|ty| format!("array<{ty}, {}>", function.results.len()));
        let returned = if function.results.len() > 1 { array.clone() } else { ty };
        let result = returned.map_or(String::new(), |ty| format!(" -> {ty}"));
        let _ = writeln!(text, "fn {}({}){result} {{", function.name, function.params.join(", "));
        emitter.enter();
        for (var, value) in &function.vars {
            emitter.line(&format!("let v{} = {value};", var.id.0));
        }
        emitter.body(&function.body);
        let values: Vec<String> = function.results.iter().map(|r| emitter.expr(*r)).collect();
        match (&values[..], array) {
            ([], _) | (_, None) => {}
            ([value], _) => emitter.line(&format!("return {value};")),
            (_, Some(array)) => emitter.line(&format!("return {array}({});", values.join(", "))),
        }
        emitter.leave();
        text.push_str(&std::mem::take(&mut emitter.out));
        text.push_str("}\n");
    }
    let (list, bindings_text) = bindings(code, &emitter);
    Functions { features: emitter.features(), bindings_text, text: format!("{}{text}", helpers::text(&emitter.helpers)), bindings: list }
}

/// Bindings of a code's buffers and their declarations, which begin the text.
fn bindings(code: &Code, emitter: &Emitter<'_>) -> (Vec<Binding>, String) {
    let mut text = String::from(if emitter.features().f16 { "enable f16;\n" } else { "" });
    let mut list = Vec::new();
    for (i, buffer) in code.buffers.iter().enumerate() {
        let element = match buffer.dtype.elems_per_word() {
            1 if emitter.is_wide(BufferId(i as u32)) => "vec2<u64>".to_string(),
            1 if emitter.vectors.contains(&BufferId(i as u32)) => format!("vec4<{}>", buffer.dtype.scalar().wgsl()),
            1 => buffer.dtype.scalar().wgsl().to_string(),
            2 if emitter.vectors.contains(&BufferId(i as u32)) => "vec2<u32>".to_string(),
            _ => "u32".to_string(),
        };
        let (access, kind) = if buffer.written { ("read_write", BindingKind::ReadWrite) } else { ("read", BindingKind::Read) };
        let _ = writeln!(text, "@group(0) @binding({i}) var<storage, {access}> {}: array<{element}>;", buffer.name);
        list.push(Binding::new(buffer.name.clone(), kind));
    }
    (list, text)
}

/// Buffers that some access takes four neighbouring elements of.
fn vector_buffers(code: &Code, bodies: &[&Vec<Stmt>]) -> BTreeSet<BufferId> {
    fn stores(body: &[Stmt], found: &mut BTreeSet<BufferId>) {
        for stmt in body {
            match stmt {
                Stmt::Loop { body, .. } | Stmt::If { body, .. } => stores(body, found),
                Stmt::Store { buffer, index, .. } if index.vec4().is_some() => {
                    found.insert(*buffer);
                }
                _ => {}
            }
        }
    }
    let mut found = BTreeSet::new();
    for (expr, _) in &code.exprs {
        if let Expr::Load { buffer, index } = expr
            && index.vec4().is_some()
        {
            found.insert(*buffer);
        }
    }
    bodies.iter().for_each(|body| stores(body, &mut found));
    found
}

impl Emitter<'_> {
    fn body(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Loop { var, body } => {
                    self.forget_assigned(body);
                    let v = format!("v{}", var.id.0);
                    self.line(&format!("for (var {v} = 0u; {v} < {}u; {v}++) {{", var.extent));
                    self.enter();
                    self.body(body);
                    self.leave();
                    self.line("}");
                }
                Stmt::If { condition, body } => {
                    let condition = self.expr(*condition);
                    self.line(&format!("if {condition} {{"));
                    self.enter();
                    self.body(body);
                    self.leave();
                    self.line("}");
                    self.forget_assigned(body);
                }
                Stmt::Break { condition } => {
                    let condition = self.expr(*condition);
                    self.line(&format!("if {condition} {{ break; }}"));
                }
                Stmt::Declare { local, value } => {
                    let value = self.expr(*value);
                    self.line(&format!("var x{} = {value};", local.0));
                }
                Stmt::Assign { local, value } => {
                    let value = self.expr(*value);
                    self.line(&format!("x{} = {value};", local.0));
                    self.forget(*local);
                }
                Stmt::Store { buffer, index, value } => self.store(*buffer, index, *value),
                Stmt::WorkgroupReduce { local, op } => self.workgroup_reduce(*local, *op),
            }
        }
    }

    fn workgroup_reduce(&mut self, local: LocalId, op: ReduceOp) {
        let ty = self.code.locals[local.0 as usize];
        self.scratch.insert(ty.scalar);
        let scratch = format!("scratch_{}", ty.scalar.wgsl());
        if self.code.subgroups && ty.scalar != ScalarType::Bool {
            self.reduce_by_subgroups(local, op, &scratch);
            self.forget(local);
            return;
        }
        let combined = self.binary_text(op.combine(ty.scalar), ty, &format!("{scratch}[lid]"), &format!("{scratch}[lid + step]"));
        self.line(&format!("{scratch}[lid] = x{};", local.0));
        self.line("workgroupBarrier();");
        self.line(&format!("for (var step = {}u; step > 0u; step >>= 1u) {{", self.workgroup_size / 2));
        self.enter();
        self.line(&format!("if lid < step {{ {scratch}[lid] = {combined}; }}"));
        self.line("workgroupBarrier();");
        self.leave();
        self.line("}");
        self.line(&format!("x{} = {scratch}[0];", local.0));
        self.line("workgroupBarrier();");
        self.forget(local);
    }

    /// Combines the lanes of each subgroup, then, in every subgroup alike, what all of them came to. Subgroups may be of any size.
    fn reduce_by_subgroups(&mut self, local: LocalId, op: ReduceOp, scratch: &str) {
        self.subgroups = true;
        let ty = self.code.locals[local.0 as usize];
        let x = format!("x{}", local.0);
        self.combine_subgroup(op, ty, &x);
        self.line(&format!("if sub_lane == 0u {{ {scratch}[sub] = {x}; }}"));
        self.line("workgroupBarrier();");
        let identity = self.literal(op.identity(ty.scalar));
        self.line(&format!("{x} = {identity};"));
        let combined = self.binary_text(op.combine(ty.scalar), ty, &x, &format!("{scratch}[other]"));
        self.line(&format!("for (var other = sub_lane; other < nsub; other += sub_size) {{ {x} = {combined}; }}"));
        self.combine_subgroup(op, ty, &x);
        self.line("workgroupBarrier();");
    }

    /// `x` of all lanes of the subgroup combined. Drivers drop NaN from maxima and minima as they like: it is looked for by its bits.
    fn combine_subgroup(&mut self, op: ReduceOp, ty: ValueType, x: &str) {
        let function = match op {
            ReduceOp::Sum => "subgroupAdd",
            ReduceOp::Product => "subgroupMul",
            ReduceOp::Max => "subgroupMax",
            ReduceOp::Min => "subgroupMin",
        };
        let strict = ty.scalar == ScalarType::F32 && self.numerics == Numerics::Strict;
        if strict && matches!(op, ReduceOp::Max | ReduceOp::Min) {
            let nan = self.nan_test(1, x);
            self.helpers.insert(Helper::NonFinite);
            self.line(&format!("{x} = select({function}({x}), f32_nan(), subgroupAny({nan}));"));
        } else {
            self.line(&format!("{x} = {function}({x});"));
        }
    }
}
