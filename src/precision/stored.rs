//! Packed weights as a safetensors file.
//!
//! The tensors of a layer are `<layer>.codes` and, as far as its scheme has them, `.scales`, `.zero_points` and `.tensor_scale`: the operands of
//! [`Dequantise`](crate::ops::quantised::Dequantise), as they lie in memory. The key `sublane` of the metadata holds JSON: format and version, the
//! model's file name and SHA-256, the calibration, and of each layer its operation, scheme, rows, k, shape, layout and seed. It is one key, since the order of
//! several would change from run to run.

use std::collections::HashMap;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};

use super::weights::Layer;
use crate::compiler::cache::digest;
use crate::compiler::export::DTYPES;
use crate::error::{Error, Result};
use crate::files;
use crate::graph::WeightLayout;
use crate::tensor::HostTensor;
use crate::tensor::quantised::Calibration;
use crate::tensor::scheme::Scheme;

/// Version of the layout; one that this program does not know is refused.
const SCHEMA: u32 = 2;
const FORMAT: &str = "sublane weights";
const KEY: &str = "sublane";

/// A model's file, as weights made from it know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Name of the file.
    pub file: String,
    /// SHA-256 of what the file holds, unpacked where it is compressed. Weights that the model keeps in other files are no part of it.
    pub sha256: String,
}

impl Source {
    /// That of the model in a file.
    pub fn of(path: &Path) -> Result<Source> {
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Source { file, sha256: digest(&files::read_maybe_gzip(path)?) })
    }
}

/// What a file of packed weights holds.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredWeights {
    /// The model they were made from.
    pub model: Source,
    /// How ranges were found: the name of a [`Calibration`].
    pub calibration: String,
    /// The layers.
    pub layers: Vec<Layer>,
}

/// What the metadata of every version begin with.
#[derive(Deserialize)]
struct Head {
    format: String,
    schema: u32,
    version: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    schema: u32,
    /// Version of the program that wrote it.
    version: String,
    model: Source,
    calibration: String,
    layers: Vec<LayerRecord>,
    /// SHA-256 of this header with an empty digest, and of what the tensors of the layers hold, in order.
    digest: String,
}

impl Header {
    fn digest(&self, layers: &[Layer]) -> Result<String> {
        let text = serde_json::to_string(self).map_err(|error| Error::internal(error.to_string()))?;
        let tensors = layers.iter().flat_map(|layer| &layer.operands).map(HostTensor::bytes);
        Ok(digest(&std::iter::once(text.as_bytes()).chain(tensors).collect::<Vec<_>>().concat()))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerRecord {
    name: String,
    op: String,
    scheme: String,
    rows: usize,
    k: usize,
    shape: Vec<usize>,
    layout: Layout,
    seed: u64,
}

/// Names of [`WeightLayout`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Layout {
    Rows,
    Columns,
}

/// Writes layers that were made from `model` to a file, or leaves what was there. Equal arguments give equal bytes.
pub fn write(path: &Path, model: &Source, calibration: Calibration, layers: &[Layer]) -> Result<()> {
    let internal = |error: safetensors::SafeTensorError| Error::internal(format!("weights as safetensors: {error}")).with_source(error);
    let record = |layer: &Layer| LayerRecord {
        name: layer.name.clone(),
        op: layer.op.clone(),
        scheme: layer.scheme.to_string(),
        rows: layer.rows,
        k: layer.k,
        shape: layer.shape.clone(),
        layout: match layer.layout {
            WeightLayout::Rows => Layout::Rows,
            WeightLayout::Columns => Layout::Columns,
        },
        seed: layer.seed,
    };
    let mut header = Header {
        format: FORMAT.into(),
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").into(),
        model: model.clone(),
        calibration: calibration.to_string(),
        layers: layers.iter().map(record).collect(),
        digest: String::new(),
    };
    header.digest = header.digest(layers)?;
    let header = serde_json::to_string(&header).map_err(|error| Error::internal(error.to_string()))?;
    let mut tensors = Vec::new();
    for layer in layers {
        for (what, tensor) in layer.operand_names().into_iter().zip(&layer.operands) {
            let dtype = DTYPES.iter().find(|(dtype, _)| *dtype == tensor.dtype()).map(|(_, name)| *name);
            let dtype = dtype.ok_or_else(|| Error::internal(format!("{} has no name in safetensors", tensor.dtype())))?;
            let view = TensorView::new(dtype, tensor.shape().to_vec(), tensor.bytes()).map_err(internal)?;
            tensors.push((format!("{}.{what}", layer.name), view));
        }
    }
    let bytes = safetensors::serialize(tensors, Some(HashMap::from([(KEY.to_string(), header)]))).map_err(internal)?;
    files::write_atomic(path, &bytes)
}

/// Refuses to replace a file that holds anything but packed weights, a model above all.
pub fn check_replaceable(path: &Path) -> Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    let bytes = files::read(path)?;
    let ours =
        SafeTensors::read_metadata(&bytes).is_ok_and(|(_, found)| found.metadata().as_ref().is_some_and(|map| map.contains_key(KEY)));
    if ours || bytes.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!("`{}` is there and holds no packed weights, so it is not replaced; give another path", path.display())))
}

/// Reads packed weights that were made from `model`.
///
/// # Errors
///
/// [`ErrorKind::Io`](crate::ErrorKind::Io), [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for weights of another model,
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a layout of another version, and
/// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for anything else that is not as it was written.
pub fn read(path: &Path, model: &Source) -> Result<StoredWeights> {
    let bytes = files::read(path)?;
    parse(&bytes, model).map_err(|error| error.context(format_args!("the weights in `{}`", path.display())))
}

fn parse(bytes: &[u8], model: &Source) -> Result<StoredWeights> {
    let again = "write it again with `sublane quantize`";
    let unreadable = |error: safetensors::SafeTensorError| {
        Error::malformed(format!("this is no whole safetensors file ({error}); {again}")).with_source(error)
    };
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(unreadable)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(unreadable)?;
    let text = metadata.metadata().as_ref().and_then(|map| map.get(KEY));
    let text = text.ok_or_else(|| Error::malformed(format!("its metadata have no `{KEY}`, so it holds no packed weights; {again}")))?;
    let broken = |error: serde_json::Error| Error::malformed(format!("its metadata are damaged ({error}); {again}")).with_source(error);
    let head: Head = serde_json::from_str(text).map_err(broken)?;
    if head.format != FORMAT {
        return Err(Error::malformed(format!("its metadata say it is a `{}`, no `{FORMAT}`; {again}", head.format)));
    }
    if head.schema != SCHEMA {
        return Err(Error::unsupported(format!(
            "it has schema {}, written by version {}; this program reads schema {SCHEMA}: {again}",
            head.schema, head.version
        )));
    }
    let mut header: Header = serde_json::from_str(text).map_err(broken)?;
    if header.model.sha256 != model.sha256 {
        return Err(Error::invalid(format!(
            "they were made from `{}` with SHA-256 {}, and `{}` has {}: give that model, or quantise this one",
            header.model.file, header.model.sha256, model.file, model.sha256
        )));
    }
    let layers = header.layers.iter().map(|record| layer(record, &tensors)).collect::<Result<Vec<_>>>();
    let layers = layers.map_err(|error| error.context(format_args!("{again}")))?;
    let known: usize = layers.iter().map(|layer| layer.operands.len()).sum();
    if known != tensors.len() {
        return Err(Error::malformed(format!("it holds {} tensors, its layers have {known}; {again}", tensors.len())));
    }
    let stated = std::mem::take(&mut header.digest);
    let found = header.digest(&layers)?;
    if found != stated {
        return Err(Error::malformed(format!("its layers were changed: their SHA-256 is {found}, {stated} is stated; {again}")));
    }
    Ok(StoredWeights { model: header.model, calibration: header.calibration, layers })
}

fn layer(record: &LayerRecord, tensors: &SafeTensors) -> Result<Layer> {
    let &LayerRecord { ref name, ref op, ref scheme, rows, k, ref shape, ref layout, seed } = record;
    let (name, op, shape) = (name.clone(), op.clone(), shape.clone());
    let scheme = Scheme::parse(scheme).map_err(|error| error.context(format_args!("layer `{name}`")))?;
    let layout = match layout {
        Layout::Rows => WeightLayout::Rows,
        Layout::Columns => WeightLayout::Columns,
    };
    let mut layer = Layer { name, op, shape, layout, scheme, rows, k, seed, operands: Vec::new() };
    for (what, ty) in layer.operand_names().into_iter().zip(layer.operand_types()?) {
        let name = format!("{}.{what}", layer.name);
        let tensor = tensors.tensor(&name).map_err(|error| Error::malformed(format!("it lacks `{name}`")).with_source(error))?;
        let found = DTYPES.iter().find(|(_, dtype)| *dtype == tensor.dtype()).map(|(dtype, _)| *dtype);
        if found != Some(ty.dtype) || tensor.shape() != ty.shape {
            let (given, dtype) = (tensor.shape(), tensor.dtype());
            return Err(Error::malformed(format!("`{name}` is {dtype:?}{given:?}, {rows} rows of {k} in `{scheme}` have {ty}")));
        }
        layer.operands.push(HostTensor::from_bytes(ty.dtype, ty.shape, tensor.data())?);
    }
    Ok(layer)
}
