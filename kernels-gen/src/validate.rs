//! Proof that a kernel is what its [`KernelSource`] says and that every backend of its target takes it.
//!
//! [`check`] is fast enough to run on each kernel as it is made: it parses the text, validates it with the capabilities the kernel
//! declares (which must be among the target's), and compares the module with the declaration. [`validate`] then also runs naga's
//! writers of all backends the target can run on.

use crate::{BindingKind, Error, KernelSource, Result, Target};
use naga::back::{PipelineConstants, glsl, hlsl, msl, pipeline_constants::process_overrides, spv};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ShaderStage, StorageAccess};
use std::borrow::Cow;

/// Largest z of a workgroup that WebGPU guarantees; no backend offers more.
const MAX_WORKGROUP_Z: u32 = 64;

/// A shader language that naga writes for one backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// Vulkan.
    Spirv,
    /// Metal.
    Msl,
    /// DX12.
    Hlsl,
    /// OpenGL ES.
    Glsl,
}

impl Language {
    /// Name used in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Language::Spirv => "SPIR-V",
            Language::Msl => "MSL",
            Language::Hlsl => "HLSL",
            Language::Glsl => "GLSL",
        }
    }

    /// Languages a kernel of `target` must be writable in. OpenGL only counts for the preset `webgpu`: it has no optional features.
    pub fn of_target(target: &Target) -> &'static [Language] {
        const ALL: [Language; 4] = [Language::Spirv, Language::Msl, Language::Hlsl, Language::Glsl];
        if target.name == "webgpu" { &ALL } else { &ALL[..3] }
    }
}

/// Checks that the text of `source` is valid WGSL for `target` and that bindings, workgroup size, workgroup memory and parameter
/// words are as declared and within the target's limits. All faults of the declaration are listed in one error.
pub fn check(source: &KernelSource, target: &Target) -> Result<()> {
    resolve(source, target, |_, _| Ok(()))
}

/// [`check`], then naga's writers of every backend `target` can run on.
pub fn validate(source: &KernelSource, target: &Target) -> Result<()> {
    resolve(source, target, |module, info| {
        for &language in Language::of_target(target) {
            write(language, module, info, source)
                .map_err(|e| invalid(source, target, format!("naga cannot write it as {}: {e}", language.name())))?;
        }
        Ok(())
    })
}

/// The text of `source` in `language` as naga writes it for `target`; SPIR-V as one hexadecimal word a line.
pub fn translate(source: &KernelSource, target: &Target, language: Language) -> Result<String> {
    let mut text = String::new();
    resolve(source, target, |module, info| {
        text = write(language, module, info, source)
            .map_err(|e| invalid(source, target, format!("naga cannot write it as {}: {e}", language.name())))?;
        Ok(())
    })?;
    Ok(text)
}

fn invalid(source: &KernelSource, target: &Target, message: String) -> Error {
    Error::Invalid { kernel: source.name.clone(), target: target.name.clone(), message }
}

/// Parses, validates and compares `source` with its module, then hands the module, overrides resolved, to `then`.
fn resolve(source: &KernelSource, target: &Target, then: impl FnOnce(&Module, &ModuleInfo) -> Result<()>) -> Result<()> {
    let fail = |message: String| invalid(source, target, message);
    let capabilities = capabilities(source, target).map_err(fail)?;
    let module = naga::front::wgsl::parse_str(&source.wgsl).map_err(|e| fail(e.emit_to_string_with_path(&source.wgsl, &source.name)))?;
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .validate(&module)
        .map_err(|e| fail(e.emit_to_string_with_path(&source.wgsl, &source.name)))?;
    let mut faults = interface_faults(source, target, &module);
    if !module.entry_points.iter().any(|e| e.name == source.name && e.stage == ShaderStage::Compute) {
        return Err(fail(faults.join("\n")));
    }
    let constants: PipelineConstants = source.override_values().map(|(name, value)| (name.to_string(), value)).collect();
    let (module, info): (Cow<'_, Module>, Cow<'_, ModuleInfo>) =
        process_overrides(&module, &info, Some((ShaderStage::Compute, &source.name)), &constants)
            .map_err(|e| fail(format!("its override values do not fit its text: {e}")))?;
    faults.extend(workgroup_faults(source, target, &module, &info));
    if !faults.is_empty() {
        return Err(fail(faults.join("\n")));
    }
    then(&module, &info)
}

/// What the kernel declares it needs, as naga counts it, or why the target cannot give it.
fn capabilities(source: &KernelSource, target: &Target) -> Result<Capabilities, String> {
    let features = source.features;
    let wants = |wanted: bool, has: bool, name: &str| match wanted && !has {
        true => Err(format!("it needs {name}, which the target does not have")),
        false => Ok(()),
    };
    wants(features.f16, target.f16, "16-bit floats")?;
    wants(features.subgroups, target.subgroups, "subgroup operations")?;
    wants(features.int64, target.int64, "64-bit integers")?;
    let enabled = source.wgsl.lines().any(|line| line.trim_start().starts_with("enable f16"));
    if enabled != features.f16 {
        let (has, not) = if enabled { ("says `enable f16;`", "does not") } else { ("lacks `enable f16;`", "does") };
        return Err(format!("its text {has}, its declaration {not} list 16-bit floats"));
    }
    // Packing two halves into a word is part of WebGPU itself.
    let mut capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    capabilities.set(Capabilities::SHADER_FLOAT16, features.f16);
    capabilities.set(Capabilities::SHADER_INT64, features.int64);
    capabilities.set(Capabilities::SUBGROUP | Capabilities::SUBGROUP_BARRIER, features.subgroups);
    Ok(capabilities)
}

/// Differences between the declared interface and the module's.
fn interface_faults(source: &KernelSource, target: &Target, module: &Module) -> Vec<String> {
    let mut faults = Vec::new();
    let entries: Vec<&str> = module.entry_points.iter().map(|e| e.name.as_str()).collect();
    if entries != [source.name.as_str()] {
        faults.push(format!("its one entry point must be `{}`, the text has {entries:?}", source.name));
    }
    if source.num_storage() > target.max_storage_buffers as usize {
        faults.push(format!("it binds {} storage buffers, the target takes {}", source.num_storage(), target.max_storage_buffers));
    }
    let params: Vec<usize> = (0..source.bindings.len()).filter(|&i| source.bindings[i].kind == BindingKind::Params).collect();
    let last = source.bindings.len().saturating_sub(1);
    if params.iter().any(|&i| i != last) || params.is_empty() != (source.num_params == 0) {
        faults.push(format!("a kernel with {} parameter words has its parameter block at {params:?} of its bindings", source.num_params));
    }
    let mut found = vec![false; source.bindings.len()];
    for (_, global) in module.global_variables.iter() {
        let Some(at) = &global.binding else { continue };
        let name = global.name.as_deref().unwrap_or("(unnamed)");
        let Some(declared) = source.bindings.get(at.binding as usize).filter(|_| at.group == 0) else {
            faults.push(format!("`{name}` at group {} binding {} is not declared", at.group, at.binding));
            continue;
        };
        found[at.binding as usize] = true;
        let kind = match global.space {
            AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => Some(BindingKind::ReadWrite),
            AddressSpace::Storage { .. } => Some(BindingKind::Read),
            AddressSpace::Uniform => Some(BindingKind::Params),
            _ => None,
        };
        if kind != Some(declared.kind) || name != declared.name {
            let declared = format!("`{}` {:?}", declared.name, declared.kind);
            faults.push(format!("binding {} is declared as {declared}, the text has `{name}` {kind:?}", at.binding));
        }
        if kind == Some(BindingKind::Params) {
            let words = module.types[global.ty].inner.size(module.to_ctx()).div_ceil(4) as usize;
            if words != source.num_params && words != source.num_params.next_multiple_of(4) {
                faults.push(format!("`{name}` has {words} words, {} are declared", source.num_params));
            }
        }
    }
    for (binding, _) in source.bindings.iter().zip(&found).filter(|(_, found)| !**found) {
        faults.push(format!("binding `{}` is declared, the text has none of that index", binding.name));
    }
    faults
}

/// Differences between the declared workgroup and the module's, whose overrides are resolved.
fn workgroup_faults(source: &KernelSource, target: &Target, module: &Module, info: &ModuleInfo) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(index) = module.entry_points.iter().position(|e| e.name == source.name) else { return faults };
    let size = module.entry_points[index].workgroup_size;
    if size != source.workgroup_size {
        faults.push(format!("its workgroup size is declared as {:?}, the text has {size:?}", source.workgroup_size));
    }
    let invocations: u64 = size.iter().map(|&n| u64::from(n)).product();
    if invocations > u64::from(target.max_workgroup_invocations) || size[2] > MAX_WORKGROUP_Z {
        let most = target.max_workgroup_invocations;
        faults.push(format!("a workgroup of {size:?} is past the {most} invocations, {MAX_WORKGROUP_Z} in z, that the target takes"));
    }
    let uses = info.get_entry_point(index);
    let sizes = module.global_variables.iter().filter_map(|(handle, global)| match global.space {
        AddressSpace::WorkGroup if !uses[handle].is_empty() => Some(u64::from(module.types[global.ty].inner.size(module.to_ctx()))),
        _ => None,
    });
    let (bytes, rounded) = sizes.fold((0, 0), |(sum, rounded), size| (sum + size, rounded + size.next_multiple_of(16)));
    if bytes != u64::from(source.workgroup_bytes) {
        faults.push(format!("{} bytes of workgroup memory are declared, the text uses {bytes}", source.workgroup_bytes));
    }
    if rounded > u64::from(target.max_workgroup_bytes) {
        faults.push(format!("it uses {rounded} bytes of workgroup memory, the target has {}", target.max_workgroup_bytes));
    }
    faults
}

fn write(language: Language, module: &Module, info: &ModuleInfo, source: &KernelSource) -> Result<String, Box<dyn std::error::Error>> {
    let entry = (ShaderStage::Compute, source.name.clone());
    Ok(match language {
        Language::Spirv => {
            // Subgroup operations came with SPIR-V 1.3; a driver that has them takes it.
            let lang_version = if source.features.subgroups { (1, 3) } else { (1, 0) };
            let options = spv::Options { lang_version, ..spv::Options::default() };
            let pipeline = spv::PipelineOptions { shader_stage: entry.0, entry_point: entry.1 };
            let words = spv::write_vec(module, info, &options, Some(&pipeline))?;
            words.iter().map(|word| format!("{word:08x}\n")).collect()
        }
        Language::Msl => {
            let options = msl::Options { lang_version: (2, 4), ..msl::Options::default() };
            let pipeline = msl::PipelineOptions { entry_point: Some(entry), ..msl::PipelineOptions::default() };
            let (text, translation) = msl::write_string(module, info, &options, &pipeline)?;
            translation.entry_point_names.into_iter().collect::<Result<Vec<_>, _>>()?;
            text
        }
        Language::Hlsl => {
            // `num_workgroups` has no counterpart in HLSL and comes from a constant buffer, as in wgpu.
            let special = hlsl::BindTarget { space: 0, register: 100, ..hlsl::BindTarget::default() };
            let options = hlsl::Options {
                shader_model: hlsl::ShaderModel::V6_2,
                special_constants_binding: Some(special),
                ..hlsl::Options::default()
            };
            let pipeline = hlsl::PipelineOptions { entry_point: Some(entry) };
            let mut text = String::new();
            let reflection = hlsl::Writer::new(&mut text, &options, &pipeline).write(module, info, None)?;
            reflection.entry_point_names.into_iter().collect::<Result<Vec<_>, _>>()?;
            text
        }
        Language::Glsl => {
            let options = glsl::Options::default();
            let pipeline = glsl::PipelineOptions { shader_stage: entry.0, entry_point: entry.1, multiview: None };
            let mut text = String::new();
            let policies = naga::proc::BoundsCheckPolicies::default();
            glsl::Writer::new(&mut text, module, info, &options, &pipeline, policies)?.write()?;
            text
        }
    })
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
