//! Compiled graphs as files that need no compiler: `plan.json`, the text of each kernel, the constants as safetensors.
//!
//! Every file's digest stands in the plan, and the plan's own in its head: what was damaged or edited is an error, and only what is as it
//! was written is replaced by the next export (`folder`).

mod folder;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::compiler::cache::digest;
use crate::compiler::record::CompiledRecord;
use crate::compiler::{Compiled, Port};
use crate::error::{Error, Result};
use crate::files;
pub use folder::check_folder;
use kernels_gen::{DType, KernelSource, Target};

/// Version of the layout of an export; one that this program does not know is refused.
pub const SCHEMA: u32 = 1;

/// Names inside the folder of an export.
const PLAN: &str = "plan.json";
const WEIGHTS: &str = "weights.safetensors";
const KERNELS: &str = "kernels";

const FORMAT: &str = "sublane export";
const NOTE: &str = "A compiled graph. Under content.compiled, plan holds kernels, slots (buffers) and commands over them; inputs, outputs \
                    and constants name slots with their types. The text of kernel NAME is kernels/NAME.wgsl with the entry point NAME; \
                    constants lie in weights.safetensors under the names of their slots. Sublane's Session::load_exported runs it. Edited \
                    files are refused: export again instead.";

/// What every version of a plan file begins with.
#[derive(Deserialize)]
struct Head {
    format: String,
    schema: u32,
    version: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    format: String,
    schema: u32,
    /// Version of the program that wrote it.
    version: String,
    /// For people.
    note: String,
    /// SHA-256 of `content`, written without blanks.
    digest: String,
    content: Content,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    /// What was compiled.
    source: String,
    target: TargetRecord,
    /// SHA-256 of the texts, by the kernel's name.
    kernels: BTreeMap<String, String>,
    /// SHA-256 of the file of constants.
    weights: String,
    compiled: CompiledRecord,
}

/// What the kernels may assume, for people.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetRecord {
    name: String,
    class: String,
    max_storage_buffers: u32,
    max_binding_bytes: u64,
    max_workgroup_invocations: u32,
    max_workgroup_bytes: u32,
    max_workgroups_per_dim: u32,
    max_loop_iterations: Option<u64>,
    f16: bool,
    subgroups: bool,
    int64: bool,
}

/// A compiled graph read from an export.
#[derive(Debug, Clone)]
pub struct Exported {
    /// The compiled graph.
    pub compiled: Compiled,
    /// What was compiled, as the export says.
    pub source: String,
    /// Name of the target it was compiled for.
    pub target: String,
}

/// A file of an export that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// Where it is.
    pub path: PathBuf,
    /// Size.
    pub bytes: u64,
}

/// Element types by their names in safetensors.
pub(crate) const DTYPES: [(DType, Dtype); DType::ALL.len()] = [
    (DType::F32, Dtype::F32),
    (DType::F16, Dtype::F16),
    (DType::I32, Dtype::I32),
    (DType::U32, Dtype::U32),
    (DType::I8, Dtype::I8),
    (DType::U8, Dtype::U8),
    (DType::Bool, Dtype::BOOL),
];

/// Writes `compiled`, which was compiled for `target` from what `source` names, to `folder`: all of it or nothing. An earlier export is
/// replaced. Of two exports to one folder at a time one fails.
///
/// # Errors
///
/// Those of [`check_folder`], and [`ErrorKind::Io`](crate::ErrorKind::Io).
pub fn write(compiled: &Compiled, target: &Target, source: &str, folder: &Path, force: bool) -> Result<Vec<WrittenFile>> {
    let (mut record, constants) = CompiledRecord::of(compiled);
    let weights = weights(compiled, &constants)?;
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (name, text) in record.plan.take_texts() {
        if texts.get(&name).is_some_and(|known| *known != text) {
            return Err(Error::internal(format!("two kernels are called `{name}`")));
        }
        texts.insert(name, text);
    }
    let content = Content {
        source: source.into(),
        target: TargetRecord::of(target),
        kernels: texts.iter().map(|(name, text)| (name.clone(), digest(text.as_bytes()))).collect(),
        weights: digest(&weights),
        compiled: record,
    };
    let internal = |error: serde_json::Error| Error::internal(error.to_string());
    let digest = digest(&serde_json::to_vec(&content).map_err(internal)?);
    let (format, version, note) = (FORMAT.into(), env!("CARGO_PKG_VERSION").into(), NOTE.into());
    let plan = serde_json::to_vec_pretty(&PlanFile { format, schema: SCHEMA, version, note, digest, content }).map_err(internal)?;

    let mut files = vec![(PathBuf::from(PLAN), plan), (PathBuf::from(WEIGHTS), weights)];
    files.extend(texts.into_iter().map(|(name, text)| (kernel_path(&name), text.into_bytes())));
    folder::put(folder, &files, force)?;
    Ok(files.into_iter().map(|(name, bytes)| WrittenFile { path: folder.join(name), bytes: bytes.len() as u64 }).collect())
}

/// Where the text of a kernel lies in the folder.
fn kernel_path(name: &str) -> PathBuf {
    Path::new(KERNELS).join(format!("{name}.wgsl"))
}

/// The file of constants.
fn weights(compiled: &Compiled, constants: &[Arc<Vec<u8>>]) -> Result<Vec<u8>> {
    if constants.len() != compiled.constants().len() {
        return Err(Error::internal(format!("{} of {} constants have types", compiled.constants().len(), constants.len())));
    }
    let tensors = compiled.constants().iter().zip(constants).map(|(port, bytes)| Ok((port.name.clone(), view(port, bytes)?)));
    safetensors::serialize(tensors.collect::<Result<Vec<_>>>()?, None).map_err(safetensors_error)
}

fn safetensors_error(error: safetensors::SafeTensorError) -> Error {
    Error::internal(format!("constants as safetensors: {error}")).with_source(error)
}

/// A constant as safetensors shows it.
fn view<'a>(port: &Port, bytes: &'a [u8]) -> Result<TensorView<'a>> {
    let dtype = DTYPES.iter().find(|(dtype, _)| *dtype == port.ty.dtype).map(|(_, name)| *name);
    let dtype = dtype.ok_or_else(|| Error::internal(format!("{} has no name in safetensors", port.ty.dtype)))?;
    // What pads the slot is no part of the tensor.
    let data = bytes.get(..port.ty.num_bytes() as usize).ok_or_else(|| Error::internal("a constant is shorter than its type"))?;
    TensorView::new(dtype, port.ty.shape.clone(), data).map_err(safetensors_error)
}

/// Reads the export in `folder`.
///
/// # Errors
///
/// [`ErrorKind::Io`](crate::ErrorKind::Io) for files that are missing, [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a
/// layout of another version, [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for anything else that is not as it was written.
pub fn read(folder: &Path) -> Result<Exported> {
    read_files(folder).map_err(|error| error.context(format_args!("the export in `{}`", folder.display())))
}

/// The content of a plan file that is as it was written.
fn read_plan(bytes: &[u8]) -> Result<Content> {
    let unreadable = |error: serde_json::Error| Error::malformed(format!("`{PLAN}` is no plan of an export: {error}")).with_source(error);
    let head: Head = serde_json::from_slice(bytes).map_err(unreadable)?;
    if head.format != FORMAT {
        return Err(Error::malformed(format!("`{PLAN}` says it is a `{}`, no `{FORMAT}`", head.format)));
    }
    if head.schema != SCHEMA {
        return Err(Error::unsupported(format!(
            "it has schema {}, written by version {}; this program reads schema {SCHEMA}: export again",
            head.schema, head.version
        )));
    }
    let file: PlanFile = serde_json::from_slice(bytes).map_err(unreadable)?;
    let content = serde_json::to_vec(&file.content).map_err(|error| Error::internal(error.to_string()))?;
    if digest(&content) != file.digest {
        return Err(changed(PLAN));
    }
    Ok(file.content)
}

fn changed(file: &str) -> Error {
    Error::malformed(format!("`{file}` is not what was exported; export again to a new folder"))
}

fn read_files(folder: &Path) -> Result<Exported> {
    let Content { source, target, kernels, weights, compiled: mut record } = read_plan(&files::read(folder.join(PLAN))?)?;
    record.plan.put_texts(|name| {
        // The name becomes a path.
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return Err(Error::malformed(format!("`{name}` is no name of a kernel")));
        }
        let path = kernel_path(name);
        let text = files::read(folder.join(&path))?;
        if kernels.get(name) != Some(&digest(&text)) {
            return Err(changed(&path.display().to_string()));
        }
        String::from_utf8(text).map_err(|_| changed(&path.display().to_string()))
    })?;
    let bytes = files::read(folder.join(WEIGHTS))?;
    if digest(&bytes) != weights {
        return Err(changed(WEIGHTS));
    }
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| Error::malformed(format!("`{WEIGHTS}`: {error}")).with_source(error))?;
    let constant = |name: &str| match tensors.tensor(name) {
        Ok(tensor) => Ok(Arc::new(tensor.data().to_vec())),
        Err(error) => Err(Error::malformed(format!("`{WEIGHTS}` lacks `{name}`")).with_source(error)),
    };
    let constants = record.constants.iter().map(|port| constant(&port.name)).collect::<Result<Vec<_>>>()?;
    Ok(Exported { compiled: record.into_compiled(&constants, "export")?, source, target: target.name })
}

impl Exported {
    /// Checks that what `target` describes, which is called `device`, has what the kernels need.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) with a list of what is lacking.
    pub fn check_target(&self, target: &Target, device: &str) -> Result<()> {
        let mut lacking: Vec<String> = Vec::new();
        for kernel in &self.compiled.plan().kernels {
            let needs = needs(kernel, target).into_iter().filter(|need| !need.1).map(|need| need.0);
            lacking.extend(needs.map(|need| format!("{need} (kernel `{}`)", kernel.name)));
        }
        if lacking.is_empty() {
            return Ok(());
        }
        let more = lacking.len().saturating_sub(4);
        lacking.truncate(4);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Err(Error::unsupported(format!(
            "the export is for target `{}`, and {device} lacks {}{more}; export for `webgpu`, or on this machine for `native`",
            self.target,
            lacking.join(", ")
        )))
    }
}

/// What a kernel needs, and whether a target has it.
fn needs(kernel: &KernelSource, target: &Target) -> [(String, bool); 6] {
    let features = kernel.features;
    let invocations = kernel.workgroup_size.iter().fold(1u64, |a, &b| a.saturating_mul(b.into()));
    [
        ("16-bit floats".into(), !features.f16 || target.f16),
        ("subgroup operations".into(), !features.subgroups || target.subgroups),
        ("64-bit integers".into(), !features.int64 || target.int64),
        (format!("{} storage buffers in a kernel", kernel.num_storage()), kernel.num_storage() <= target.max_storage_buffers as usize),
        (format!("{invocations} invocations in a workgroup"), invocations <= target.max_workgroup_invocations.into()),
        (format!("{} bytes of workgroup memory", kernel.workgroup_bytes), kernel.workgroup_bytes <= target.max_workgroup_bytes),
    ]
}

impl TargetRecord {
    fn of(target: &Target) -> Self {
        TargetRecord {
            name: target.name.clone(),
            class: target.class.name().into(),
            max_storage_buffers: target.max_storage_buffers,
            max_binding_bytes: target.max_binding_bytes,
            max_workgroup_invocations: target.max_workgroup_invocations,
            max_workgroup_bytes: target.max_workgroup_bytes,
            max_workgroups_per_dim: target.max_workgroups_per_dim,
            max_loop_iterations: target.max_loop_iterations,
            f16: target.f16,
            subgroups: target.subgroups,
            int64: target.int64,
        }
    }
}
