//! A compiled graph as a file: eight bytes that say what it is, the SHA-256 of the rest, the length of a JSON header, the header, and the
//! constants that the graph itself does not hold.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::compiler::cache::Entry;
use crate::compiler::cache::key::{Key, digest};
use crate::compiler::record::{CompiledRecord, PortRecord};
use crate::error::{Error, Result};
use crate::graph::{Graph, Op, Prim};
use kernels_gen::Target;

/// First bytes of a file; the last digit is the version of the layout.
const MAGIC: &[u8; 8] = b"SUBLGRF2";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    key: String,
    /// Target, and inputs and outputs, for people.
    target: String,
    tuned: bool,
    constants: Vec<ConstantRecord>,
    compiled: CompiledRecord,
}

/// Bytes of a constant: held after the header, or by the graph's constant of that digest.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ConstantRecord {
    Held(u64),
    OfGraph(String),
}

/// The bytes of a file.
///
/// # Errors
///
/// [`ErrorKind::Limit`](crate::ErrorKind::Limit) past `max_bytes`.
pub(super) fn write(entry: &Entry, key: &Key, target: &Target, max_bytes: u64) -> Result<Vec<u8>> {
    let (compiled, constants) = CompiledRecord::of(&entry.compiled);
    let mut held = Vec::new();
    let constants = constants.iter().map(|bytes| {
        let digest = digest(bytes);
        if key.constants.contains_key(&digest) {
            return ConstantRecord::OfGraph(digest);
        }
        held.push(bytes.clone());
        ConstantRecord::Held(bytes.len() as u64)
    });
    let constants = constants.collect();
    let header = Header { key: key.text.clone(), target: target.name.clone(), tuned: entry.tuned, constants, compiled };
    let header = serde_json::to_vec(&header).map_err(|error| Error::internal(error.to_string()))?;
    let total = (MAGIC.len() + 32 + 8 + header.len()) as u64 + held.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
    if total > max_bytes {
        return Err(Error::limit(format!("it takes {total} bytes, a file of the cache at most {max_bytes}")));
    }
    let mut body = Vec::with_capacity(total as usize);
    body.extend_from_slice(&(header.len() as u64).to_le_bytes());
    body.extend_from_slice(&header);
    held.iter().for_each(|bytes| body.extend_from_slice(bytes));
    Ok([&MAGIC[..], Sha256::digest(&body).as_slice(), &body].concat())
}

/// The header of a file and the bytes after it, once the digest has been checked.
fn open(file: &[u8]) -> Result<(Header, &[u8])> {
    let short = || Error::malformed("it is too short");
    let (magic, rest) = file.split_at_checked(MAGIC.len()).ok_or_else(short)?;
    if magic != MAGIC {
        return Err(Error::malformed("it does not begin as a compiled graph of this version"));
    }
    let (expected, body) = rest.split_at_checked(32).ok_or_else(short)?;
    if Sha256::digest(body).as_slice() != expected {
        return Err(Error::malformed("its bytes are not those that were written"));
    }
    let (length, rest) = body.split_first_chunk::<8>().ok_or_else(short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
    let (header, held) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = serde_json::from_slice(header).map_err(|error| Error::malformed(error.to_string()).with_source(error))?;
    Ok((header, held))
}

/// The entry of a file.
///
/// # Errors
///
/// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for anything but what was written under `key`.
pub(super) fn read(file: &[u8], graph: &Graph, key: &Key) -> Result<Entry> {
    let (header, mut held) = open(file)?;
    if header.key != key.text {
        return Err(Error::malformed("it holds another graph"));
    }
    let constant = |record: &ConstantRecord| match record {
        ConstantRecord::Held(length) => {
            let length = usize::try_from(*length).unwrap_or(usize::MAX);
            let (bytes, rest) = held.split_at_checked(length).ok_or_else(|| Error::malformed("a constant is cut off"))?;
            held = rest;
            Ok(Arc::new(bytes.to_vec()))
        }
        ConstantRecord::OfGraph(digest) => {
            let op = key.constants.get(digest).map(|id| &graph.node(*id).op);
            match op {
                Some(Op::Prim(Prim::Constant(constant))) => Ok(Arc::new(constant.tensor().bytes().to_vec())),
                _ => Err(Error::malformed("it refers to a constant that the graph does not hold")),
            }
        }
    };
    let constants = header.constants.iter().map(constant).collect::<Result<Vec<_>>>()?;
    Ok(Entry { compiled: header.compiled.into_compiled(&constants, "cache")?, tuned: header.tuned })
}

/// What the file `path` holds, in a line, for lists; `None` where it is no compiled graph or damaged.
pub fn describe(path: &Path) -> Option<String> {
    let file = std::fs::read(path).ok()?;
    let (header, _) = open(&file).ok()?;
    let names = |ports: &[PortRecord]| {
        let shown = ports.iter().take(2).map(|p| format!("{} {}{:?}", p.name, p.ty.dtype, p.ty.shape)).collect::<Vec<_>>().join(", ");
        if ports.len() > 2 { format!("{shown}, {} more", ports.len() - 2) } else { shown }
    };
    let (from, to) = (names(&header.compiled.inputs), names(&header.compiled.outputs));
    Some(format!("{from} -> {to}, {} kernels for {}", header.compiled.kernels.len(), header.target))
}
