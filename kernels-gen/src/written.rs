//! Kernels that users write: what a [`KernelSource`] states is read off their text.

use crate::{Binding, BindingKind, Error, Formula, KernelSource, Result, WgslFeatures};
use naga::back::{PipelineConstants, pipeline_constants::process_overrides};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ShaderStage, StorageAccess};

/// The kernel of a text whose one entry point is `entry`. In group 0 it binds what it reads (`var<storage, read>`), then its one result
/// (`var<storage, read_write>`), then, if it has parameters, their block (`var<uniform>`). The entry point gets a name that a hash of the
/// text is part of, so that kernels of one name are told apart. `max_iterations` and `flops` are formulas of the words of the parameter
/// block; the bytes are not known from a text and are stated as 0.
///
/// # Errors
///
/// [`Error::Written`] says what of the text does not fit and what would.
pub fn from_text(entry: &str, wgsl: &str, max_iterations: Formula, flops: Formula) -> Result<KernelSource> {
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
    let (bindings, num_params) = bindings(&module).map_err(fail)?;
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
    let wgsl = rename(wgsl, entry, &name)
        .ok_or_else(|| fail(format!("write the entry point as `fn {entry}(`, with blanks and nothing else between the words")))?;
    Ok(KernelSource {
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
    })
}

/// The bindings in order and the words of the parameter block.
fn bindings(module: &Module) -> Result<(Vec<Binding>, usize), String> {
    const RULE: &str = "a kernel binds, in group 0 from binding 0 on, what it reads (`var<storage, read>`), then its one result \
                        (`var<storage, read_write>`), then its parameters, if it has some (`var<uniform>`)";
    let mut found: Vec<(u32, Binding)> = Vec::new();
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
        if kind == BindingKind::Params {
            num_params = module.types[global.ty].inner.size(module.to_ctx()).div_ceil(4) as usize;
        }
        found.push((at.binding, Binding::new(name, kind)));
    }
    found.sort_by_key(|(at, _)| *at);
    if let Some((nth, (at, binding))) = found.iter().enumerate().find(|(nth, (at, _))| *nth != *at as usize) {
        return Err(format!("`{}` is binding {at}, binding {nth} was expected: {RULE}", binding.name));
    }
    let bindings: Vec<Binding> = found.into_iter().map(|(_, binding)| binding).collect();
    let after = bindings.iter().skip_while(|b| b.kind == BindingKind::Read).map(|b| b.kind).collect::<Vec<_>>();
    match after[..] {
        [BindingKind::ReadWrite] | [BindingKind::ReadWrite, BindingKind::Params] => Ok((bindings, num_params)),
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

/// The text with its function `from` called `to`; `None` where `fn from` does not stand in it.
fn rename(text: &str, from: &str, to: &str) -> Option<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut renamed = String::with_capacity(text.len() + to.len());
    let mut rest = text;
    let mut any = false;
    while let Some(at) = rest.find("fn") {
        let (before, found) = rest.split_at(at);
        let word = &found["fn".len()..];
        let name = word.trim_start();
        let own_word = !before.ends_with(is_name) && (!before.is_empty() || !renamed.ends_with(is_name)) && name.len() < word.len();
        renamed.push_str(before);
        renamed.push_str("fn");
        rest = word;
        if own_word && name.strip_prefix(from).is_some_and(|after| !after.starts_with(is_name)) {
            renamed.push_str(&word[..word.len() - name.len()]);
            renamed.push_str(to);
            rest = &name[from.len()..];
            any = true;
        }
    }
    renamed.push_str(rest);
    any.then_some(renamed)
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
        from_text("scale", text, Formula::Param(0), Formula::Const(1))
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
