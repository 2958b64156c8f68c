//! What a compiled function recorded and compiled, and why.

use std::fmt;
use std::sync::atomic::Ordering;

use serde::Serialize;

use crate::capture::difference::Reason;
use crate::capture::owner::{Owner, Part};
use crate::compiler::Compiled;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::tensor::HostTensor;

/// Graphs of a compiled function, its graph breaks and what tells its parts apart. `Display` prints it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// Parts that were run, all together.
    pub num_runs: u64,
    /// Parts that were compiled, all together.
    pub num_compiled: usize,
    /// Why the function runs eagerly where it records something new, if it does.
    pub fallen_back: Option<String>,
    /// Graph breaks.
    pub breaks: Vec<BreakInfo>,
    /// Each compilation with what told it apart, in order.
    pub compilations: Vec<CompilationInfo>,
    /// Parts that are loaded.
    pub parts: Vec<PartInfo>,
    /// Kernels made since sizes differ, for one size each.
    pub num_fixed_kernels: usize,
    /// Kernels made that serve several sizes.
    pub num_shared_kernels: usize,
    /// Kernels that were lowered for a new size and found among those made.
    pub num_reused_kernels: usize,
}

/// A graph break.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct BreakInfo {
    /// What read a value on the host.
    pub reason: &'static str,
    /// File of the user's program.
    pub file: &'static str,
    /// Line in it.
    pub line: u32,
    /// How often it was met.
    pub times: u64,
}

/// A compilation.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CompilationInfo {
    /// The part.
    pub part: u32,
    /// The known part that was nearest.
    pub nearest: Option<u32>,
    /// Kind of the first difference from it.
    pub reason: Reason,
    /// The first difference.
    pub difference: String,
}

/// A part of the function: what it records from its start or a graph break to the next one or its end, compiled.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PartInfo {
    /// Number of the part.
    pub part: u32,
    /// Graph breaks before it in the call that recorded it.
    pub place: usize,
    /// How operations are grouped: `compiled` or `eager`.
    pub mode: &'static str,
    /// Nodes recorded.
    pub num_nodes: usize,
    /// Inputs with their types.
    pub inputs: Vec<String>,
    /// Results with their types.
    pub outputs: Vec<String>,
    /// Inputs that results may overwrite, by number.
    pub donated: Vec<u32>,
    /// Runs after the first.
    pub hits: u64,
    /// Time to compile and load it, in seconds.
    pub compile_seconds: f64,
    /// Dispatches, in order.
    pub kernels: Vec<KernelLine>,
    /// Fusions that were not made.
    pub refusals: Vec<RefusalLine>,
}

/// A dispatch.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct KernelLine {
    /// Name of the kernel.
    pub name: String,
    /// Type of its result.
    pub result: String,
    /// What it is built around: `map`, `reduce` or `hero`.
    pub kind: String,
    /// Nodes it computes.
    pub members: Vec<String>,
    /// Operations of the program it takes part in.
    pub origins: Vec<String>,
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Milliseconds of a run, if [`CompiledFn::explain_timed`](crate::capture::CompiledFn::explain_timed) measured it.
    pub ms: Option<f64>,
}

/// A fusion that was not made.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RefusalLine {
    /// The node.
    pub node: String,
    /// The group it did not join, by its stored node.
    pub group: Option<String>,
    /// Why not.
    pub reason: String,
}

impl Explanation {
    pub(super) fn of(owner: &Owner) -> Self {
        let known = owner.known();
        let of_break = |b: &crate::capture::owner::BreakCount| BreakInfo {
            reason: b.reason.what,
            file: b.reason.at.file(),
            line: b.reason.at.line(),
            times: b.times,
        };
        let of_compilation = |(part, difference): &(u32, crate::capture::difference::Difference)| CompilationInfo {
            part: *part,
            nearest: difference.nearest,
            reason: difference.reason,
            difference: difference.text.clone(),
        };
        let counts = owner.templates.counts();
        Explanation {
            num_fixed_kernels: counts.fixed,
            num_shared_kernels: counts.templates,
            num_reused_kernels: counts.reused,
            num_runs: known.runs,
            num_compiled: known.compiled.len(),
            fallen_back: known.fallen_back.clone(),
            breaks: known.breaks.iter().map(of_break).collect(),
            compilations: known.compiled.iter().map(of_compilation).collect(),
            parts: known.parts.iter().map(|part| PartInfo::of(part)).collect(),
        }
    }

    /// [`Explanation::of`] with the time of each kernel.
    pub(super) fn timed(owner: &Owner, device: &Device) -> Result<Self> {
        let mut explanation = Explanation::of(owner);
        let parts: Vec<(u32, Compiled)> = owner.known().parts.iter().map(|part| (part.id, part.compiled().clone())).collect();
        for info in &mut explanation.parts {
            // Another thread may have dropped the part meanwhile.
            let Some((_, compiled)) = parts.iter().find(|(id, _)| *id == info.part) else { continue };
            let zeros = |port: &crate::compiler::Port| HostTensor::zeros(port.ty.dtype, port.ty.shape.clone());
            let tensors: Vec<HostTensor> = compiled.inputs().iter().map(zeros).collect::<Result<_>>()?;
            let inputs: Vec<(&str, &HostTensor)> = compiled.inputs().iter().map(|port| port.name.as_str()).zip(&tensors).collect();
            let times = Session::load(device, compiled)?.kernel_ms(&inputs)?;
            info.kernels.iter_mut().zip(times).for_each(|(kernel, ms)| kernel.ms = Some(ms));
        }
        Ok(explanation)
    }

    /// The same as JSON.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|error| Error::internal("an explanation does not become JSON").with_source(error))
    }
}

impl PartInfo {
    fn of(part: &Part) -> Self {
        let compiled = part.compiled();
        let ports = |ports: &[crate::compiler::Port]| ports.iter().map(|p| format!("{}: {}", p.name, p.ty)).collect();
        PartInfo {
            part: part.id,
            place: part.place,
            mode: part.mode().name(),
            num_nodes: part.nodes.len(),
            inputs: ports(compiled.inputs()),
            outputs: ports(compiled.outputs()),
            donated: part.donated.clone(),
            hits: part.hits.load(Ordering::Relaxed),
            compile_seconds: part.seconds,
            kernels: kernels(compiled),
            refusals: compiled
                .refusals()
                .iter()
                .map(|r| RefusalLine { node: r.node.clone(), group: r.group.clone(), reason: r.reason.clone() })
                .collect(),
        }
    }
}

fn kernels(compiled: &Compiled) -> Vec<KernelLine> {
    let line = |kernel: &crate::compiler::KernelInfo| KernelLine {
        name: kernel.name.clone(),
        result: kernel.ty.to_string(),
        kind: compiled.groups().get(kernel.group).map_or_else(String::new, |group| group.kind.clone()),
        members: compiled.groups().get(kernel.group).map_or_else(Vec::new, |group| group.members.clone()),
        origins: kernel.origins.clone(),
        flops: kernel.flops,
        bytes: kernel.bytes,
        ms: None,
    };
    compiled.kernels().iter().map(line).collect()
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} parts compiled, {} runs, {} graph breaks", self.num_compiled, self.num_runs, self.breaks.len())?;
        let (fixed, shared, reused) = (self.num_fixed_kernels, self.num_shared_kernels, self.num_reused_kernels);
        if fixed + shared + reused > 0 {
            writeln!(
                f,
                "sizes differ: {shared} kernels made for several, {fixed} for one, {reused} times one that was there served another"
            )?;
        }
        if let Some(why) = &self.fallen_back {
            writeln!(f, "runs eagerly: {why}")?;
        }
        for b in &self.breaks {
            writeln!(f, "break: {} at {}:{}, {} times", b.reason, b.file, b.line, b.times)?;
        }
        for c in &self.compilations {
            match c.nearest {
                Some(nearest) => writeln!(f, "part {} differs from part {nearest}: {}", c.part, c.difference)?,
                None => writeln!(f, "part {}: {}", c.part, c.difference)?,
            }
        }
        for part in &self.parts {
            writeln!(f)?;
            write!(
                f,
                "part {} ({}, {} nodes, {} breaks before it, {} further runs, ",
                part.part, part.mode, part.num_nodes, part.place, part.hits
            )?;
            writeln!(f, "compiled in {:.1} ms): {} -> {}", part.compile_seconds * 1e3, part.inputs.join(", "), part.outputs.join(", "))?;
            for k in &part.kernels {
                let ms = k.ms.map_or_else(String::new, |ms| format!("{ms:.3} ms, "));
                writeln!(f, "  {} {} ({}): {} FLOPs, {} bytes, {ms}{}", k.name, k.result, k.kind, k.flops, k.bytes, k.members.join(" "))?;
            }
            for r in &part.refusals {
                match &r.group {
                    Some(group) => writeln!(f, "  {} is not part of the group of {group}: {}", r.node, r.reason)?,
                    None => writeln!(f, "  {} is fused with nothing: {}", r.node, r.reason)?,
                }
            }
        }
        Ok(())
    }
}
