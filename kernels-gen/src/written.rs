//! Kernels that users write: what a [`KernelSource`] states is read off their text.

use crate::{Binding, BindingKind, Error, Formula, KernelSource, Result, WgslFeatures};
use naga::back::{PipelineConstants, pipeline_constants::process_overrides};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ShaderStage, StorageAccess};

/// What a text gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The kernel.
    pub source: KernelSource,
    /// Bytes that the text asks of each storage binding at the least: all of an array of a fixed size, one element of another.
    pub least_bytes: Vec<u64>,
}

/// The kernel of a text whose one entry point is `entry`. In group 0 it binds what it reads (`var<storage, read>`), then its one result
/// (`var<storage, read_write>`), then, if it has parameters, their block (`var<uniform>`). The entry point gets a name that a hash of the
/// text is part of, so that kernels of one name are told apart. `max_iterations` and `flops` are formulas of the words of the parameter
/// block; the bytes are not known from a text and are stated as 0.
///
/// # Errors
///
/// [`Error::Written`] says what of the text does not fit and what would.
pub fn from_text(entry: &str, wgsl: &str, max_iterations: Formula, flops: Formula) -> Result<Written> {
    let fail = |message: String| Error::Written { kernel: entry.into(), message };
    let module = naga::front::wgsl::parse_str(wgsl)
        .map_err(|e| fail(format!("its text is not WGSL:\n{}", e.emit_to_string_with_path(wgsl, entry))))?;
    let entries: Vec<&str> = module.entry_points.iter().map(|e| e.name.as_str()).collect();
    if entries != [entry] || module.entry_points[0].stage != ShaderStage::Compute {
        let message = format!(
            "the text has the entry points {entries:?}, it must have one, `@compute fn {entry}`; name the operation after the entry point"
        );
        return Err(fail(message));
    }
    let f16 = wgsl.lines().any(|line| line.trim_start().starts_with("enable f16"));
    let validate = |(subgroups, int64): (bool, bool)| {
        let mut capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
        capabilities.set(Capabilities::SHADER_FLOAT16, f16);
        capabilities.set(Capabilities::SHADER_INT64, int64);
        capabilities.set(Capabilities::SUBGROUP | Capabilities::SUBGROUP_BARRIER, subgroups);
        let valid = Validator::new(ValidationFlags::all(), capabilities).validate(&module);
        valid
            .map(|info| (info, WgslFeatures { f16, subgroups, int64 }))
            .map_err(|e| fail(format!("its text is not valid WGSL:\n{}", e.emit_to_string_with_path(wgsl, entry))))
    };
    // The fewest features it is valid with are those that it needs.
    let fewer = [(false, false), (true, false), (false, true)].into_iter().find_map(|features| validate(features).ok());
    let (info, features) = fewer.map_or_else(|| validate((true, true)), Ok)?;
    let (bindings, least_bytes, num_params) = bindings(&module).map_err(fail)?;
    for (what, formula) in [("iterations", &max_iterations), ("operations", &flops)] {
        if let Some(word) = largest_param(formula).filter(|word| *word >= num_params) {
            return Err(fail(format!(
                "the formula of its {what} takes word {word} of the parameter block, which has {num_params} words from 0 on"
            )));
        }
    }
    let (resolved, info) = process_overrides(&module, &info, Some((ShaderStage::Compute, entry)), &PipelineConstants::default())
        .map_err(|e| fail(format!("every `override` needs a value in the text: {e}")))?;
    let uses = info.get_entry_point(0);
    let workgroup = resolved.global_variables.iter().filter(|(handle, g)| g.space == AddressSpace::WorkGroup && !uses[*handle].is_empty());
    let workgroup_bytes = workgroup.map(|(_, g)| resolved.types[g.ty].inner.size(resolved.to_ctx())).sum();
    let hash = format!("{wgsl}\0{max_iterations:?}\0{flops:?}")
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
    let name = format!("{entry}_{hash:016x}");
    let wgsl = rename(wgsl, entry, &name).ok_or_else(|| fail(format!("the entry point is not found as `fn {entry}(`; write it so")))?;
    let source = KernelSource {
        name,
        wgsl,
        bindings,
        num_params,
        workgroup_size: resolved.entry_points[0].workgroup_size,
        overrides: Vec::new(),
        workgroup_bytes,
        features,
        flops,
        bytes: Formula::Const(0),
        max_iterations,
    };
    Ok(Written { source, least_bytes })
}

/// The bindings in order, the least bytes of those in storage, and the words of the parameter block.
fn bindings(module: &Module) -> Result<(Vec<Binding>, Vec<u64>, usize), String> {
    const RULE: &str = "a kernel binds, in group 0 from binding 0 on, what it reads (`var<storage, read>`), then its one result \
                        (`var<storage, read_write>`), then its parameters, if it has some (`var<uniform>`)";
    let mut found: Vec<(u32, Binding, u64)> = Vec::new();
    let mut num_params = 0;
    for (_, global) in module.global_variables.iter() {
        let Some(at) = &global.binding else { continue };
        let name = global.name.clone().unwrap_or_default();
        let kind = match global.space {
            AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => BindingKind::ReadWrite,
            AddressSpace::Storage { .. } => BindingKind::Read,
            AddressSpace::Uniform => BindingKind::Params,
            _ => return Err(format!("`{name}` is no buffer: {RULE}")),
        };
        if at.group != 0 {
            return Err(format!("`{name}` is in group {}: {RULE}", at.group));
        }
        let bytes = module.types[global.ty].inner.size(module.to_ctx());
        if kind == BindingKind::Params {
            num_params = bytes.div_ceil(4) as usize;
        }
        found.push((at.binding, Binding::new(name, kind), bytes.into()));
    }
    found.sort_by_key(|(at, ..)| *at);
    if let Some((nth, (at, binding, _))) = found.iter().enumerate().find(|(nth, (at, ..))| *nth != *at as usize) {
        return Err(format!("`{}` is binding {at}, binding {nth} was expected: {RULE}", binding.name));
    }
    let least_bytes = found.iter().filter(|(_, binding, _)| binding.kind != BindingKind::Params).map(|(.., bytes)| *bytes).collect();
    let bindings: Vec<Binding> = found.into_iter().map(|(_, binding, _)| binding).collect();
    let after = bindings.iter().skip_while(|b| b.kind == BindingKind::Read).map(|b| b.kind).collect::<Vec<_>>();
    match after[..] {
        [BindingKind::ReadWrite] | [BindingKind::ReadWrite, BindingKind::Params] => Ok((bindings, least_bytes, num_params)),
        _ => {
            let given = bindings.iter().map(|b| format!("`{}` {:?}", b.name, b.kind)).collect::<Vec<_>>().join(", ");
            Err(format!("the text binds {given}: {RULE}"))
        }
    }
}

fn largest_param(formula: &Formula) -> Option<usize> {
    match formula {
        Formula::Const(_) => None,
        Formula::Param(word) => Some(*word),
        Formula::Add(a, b) | Formula::Mul(a, b) | Formula::DivCeil(a, b) => largest_param(a).max(largest_param(b)),
    }
}

/// The text with its function `from` called `to`; `None` where no `fn from` stands in it. Comments are blanks.
fn rename(text: &str, from: &str, to: &str) -> Option<String> {
    let mut renamed = String::with_capacity(text.len() + to.len());
    let mut rest = text;
    let (mut after_fn, mut any) = (false, false);
    while let Some(first) = rest.chars().next() {
        let ends = |c: fn(char) -> bool| rest.find(c).unwrap_or(rest.len());
        let (len, is_blank) = match rest {
            _ if rest.starts_with("//") => (ends(ends_line), true),
            _ if rest.starts_with("/*") => (block_comment(rest), true),
            _ if is_name(first) => (ends(|c| !is_name(c)), false),
            _ => (first.len_utf8(), is_blank(first)),
        };
        let (token, after) = rest.split_at(len);
        let found = after_fn && token == from;
        renamed.push_str(if found { to } else { token });
        any |= found;
        after_fn = token == "fn" || (after_fn && is_blank);
        rest = after;
    }
    any.then_some(renamed)
}

/// Blanks of WGSL.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{200e}' | '\u{200f}') || ends_line(c)
}

fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether `c` is part of names; outside of comments nothing but names and blanks is past ASCII.
fn is_name(c: char) -> bool {
    c == '_' || if c.is_ascii() { c.is_ascii_alphanumeric() } else { !is_blank(c) }
}

/// Length of the block comment, which may hold others, that `text` begins with.
fn block_comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    loop {
        match text.as_bytes().get(at..at + 2) {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            Some(_) => {
                at += 1;
                continue;
            }
            None => return text.len(),
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Target, validate};

    const TEXT: &str = "struct Params { n: u32, factor: f32, }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
var<workgroup> tile: array<f32, 64>;
// A comment on fn scale and its_fn scaled.
fn scaled(v: f32) -> f32 { return v * params.factor; }
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) at: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    tile[lane] = x[min(at.x, params.n - 1u)];
    if (at.x < params.n) { y[at.x] = scaled(tile[lane]); }
}";

    fn read(text: &str) -> Result<KernelSource> {
        from_text("scale", text, Formula::Param(0), Formula::Const(1)).map(|written| written.source)
    }

    #[test]
    fn a_source_is_read_off_a_text_and_is_valid_for_every_target() {
        let source = read(TEXT).expect("a kernel");
        assert!(source.name.starts_with("scale_") && source.wgsl.contains(&format!("fn {}(", source.name)), "{}", source.wgsl);
        assert!(source.wgsl.contains("fn scaled(v"));
        assert_eq!((source.num_params, source.num_storage(), source.workgroup_bytes, source.workgroup_size), (2, 2, 256, [64, 1, 1]));
        for target in Target::presets() {
            validate::validate(&source, &target).expect("valid");
        }
        assert_ne!(read(&TEXT.replace("* params", "+ params")).expect("a kernel").name, source.name);
    }

    #[test]
    fn the_entry_point_is_found_between_comments() {
        for (from, to) in [
            ("fn scale(", "// fn scale(\nfn scale("),
            ("fn scale(", "fn /* x */ scale /* fn scale( */ ("),
            ("fn scale(", "/* fn scale( /* fn scale( */ */ fn// fn scale\n\tscale("),
            ("fn scale(", "fn\u{200e}scale("),
            ("return v *", "let scale = v; return scale *"),
        ] {
            let source = read(&TEXT.replace(from, to)).expect("a kernel");
            let entries = naga::front::wgsl::parse_str(&source.wgsl).expect("WGSL").entry_points;
            assert_eq!(entries[0].name, source.name, "{}", source.wgsl);
            assert_eq!(source.wgsl.matches(&source.name).count(), 1, "{}", source.wgsl);
            assert_eq!(source.wgsl.replace(&source.name, "scale"), TEXT.replace(from, to));
        }
    }

    #[test]
    fn least_bytes_are_those_of_the_types() {
        let least = |from: &str, to: &str| {
            from_text("scale", &TEXT.replace(from, to), Formula::Param(0), Formula::Const(1)).expect("a kernel").least_bytes
        };
        assert_eq!(least("", ""), [4, 4]);
        assert_eq!(least("x: array<f32>", "x: array<f32, 100>"), [400, 4]);
        assert_eq!(least("y: array<f32>", "y: array<f32, 7>"), [4, 28]);
    }

    #[test]
    fn what_does_not_fit_says_what_would() {
        let refused = |text: String, part: &str| {
            let message = read(&text).expect_err("refused").to_string();
            assert!(message.contains(part), "{message}");
        };
        refused(TEXT.replace("f32>;", "f33>;"), "is not WGSL");
        refused(TEXT.replace("fn scale(", "fn other("), "entry points [\"other\"]");
        refused(TEXT.replace("read_write", "read"), "is not valid WGSL");
        refused(TEXT.replace("binding(1)", "binding(4)"), "`params` is binding 2, binding 1 was expected");
        refused(TEXT.replace("group(0) @binding(0)", "group(1) @binding(0)"), "`x` is in group 1");
        refused(TEXT.replace("storage, read>", "storage, read_write>"), "`x` ReadWrite, `y` ReadWrite, `params` Params");
        let message = from_text("scale", TEXT, Formula::Param(2), Formula::Const(0)).expect_err("refused").to_string();
        assert!(message.contains("takes word 2 of the parameter block, which has 2 words"), "{message}");
    }
}
