//! After how many loop iterations an adapter ends loops.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kernels_gen::probes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::device::{Device, DeviceInfo, Executor};
use crate::error::{Error, Result};
use crate::files;
use crate::plan::{ExecutionPlan, SlotRole};

/// What each adapter and driver showed in this process. The answer depends on the key alone, so that sharing it changes no result.
static SEEN: Mutex<Option<HashMap<String, Option<u64>>>> = Mutex::new(None);

/// What a probe showed, as a file of the cache folder.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    schema: u32,
    adapter: String,
    driver: String,
    backend: String,
    max_loop_iterations: Option<u64>,
}

/// Version of the file's layout.
const SCHEMA: u32 = 1;

impl Record {
    fn new(info: &DeviceInfo, max_loop_iterations: Option<u64>) -> Self {
        let DeviceInfo { name, driver, backend, .. } = info;
        Record { schema: SCHEMA, adapter: name.clone(), driver: driver.clone(), backend: backend.clone(), max_loop_iterations }
    }

    fn path(&self, cache_folder: &Path) -> PathBuf {
        let digest = Sha256::digest(format!("{}\n{}\n{}", self.adapter, self.driver, self.backend));
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        cache_folder.join(super::PROBES_FOLDER).join(format!("{name}.json"))
    }
}

/// What an earlier process found on the same adapter and driver. What cannot be read, or is not ours, is as good as nothing.
fn remembered(cache_folder: &Path, info: &DeviceInfo) -> Option<Option<u64>> {
    let path = Record::new(info, None).path(cache_folder);
    let found: Record = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let bound = found.max_loop_iterations;
    (found == Record::new(info, bound) && bound.is_none_or(|n| (1..u64::from(probes::LOOP_BOUND_ITERATIONS)).contains(&n))).then_some(bound)
}

fn remember(cache_folder: &Path, info: &DeviceInfo, bound: Option<u64>) -> Result<()> {
    let record = Record::new(info, bound);
    let path = record.path(cache_folder);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, "create", error))?;
    }
    let text = serde_json::to_vec_pretty(&record).map_err(|error| Error::internal(error.to_string()))?;
    files::write_atomic(path, &text)
}

/// Runs a loop that is longer than the bound some software drivers have and sees how far it came; `None`: it came to its end. Also says
/// whether the probe ran: it does not where this process or a file of the cache folder knows the answer.
pub(super) async fn probe(device: &Device, cache_folder: Option<&Path>) -> Result<(Option<u64>, bool)> {
    let info = device.info();
    let key = format!("{}\n{}\n{}", info.name, info.driver, info.backend);
    let seen = || SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&bound) = seen().as_ref().and_then(|seen| seen.get(&key)) {
        return Ok((bound, false));
    }
    if let Some(bound) = cache_folder.and_then(|folder| remembered(folder, info)) {
        seen().get_or_insert_default().insert(key, bound);
        return Ok((bound, false));
    }
    let mut plan = ExecutionPlan::new();
    let count = plan.slot("count", 4, SlotRole::Output);
    plan.dispatch(&Arc::new(probes::loop_bound()), &[count], &[probes::LOOP_BOUND_ITERATIONS], [1, 1, 1]);
    let outputs = Executor::load(device, &plan)?.run_async(&[], &[count]).await?;
    let word = outputs.first().and_then(|bytes| bytes.as_slice().try_into().ok()).map(u32::from_le_bytes);
    let reached = word.ok_or_else(|| Error::internal("the loop-bound probe returned no count"))?;
    let bound = (reached < probes::LOOP_BOUND_ITERATIONS).then_some(u64::from(reached));
    if bound == Some(0) {
        return Err(Error::unsupported(format!("{} runs no loop: its probe kernel returned 0 iterations", info.name)));
    }
    seen().get_or_insert_default().insert(key, bound);
    if let Some(folder) = cache_folder
        && let Err(error) = remember(folder, info, bound)
    {
        log::warn!("the loop bound is probed again next time: {error}");
    }
    Ok((bound, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_remembered_by_adapter_and_driver_and_nothing_else_is_taken_for_one() {
        let folder = tempfile::tempdir().expect("folder");
        let device = Device::noop().expect("a device");
        let info = device.info();
        assert_eq!(remembered(folder.path(), info), None);
        for bound in [Some(65_535), None] {
            remember(folder.path(), info, bound).expect("written");
            assert_eq!(remembered(folder.path(), info), Some(bound));
        }
        let other = DeviceInfo { driver: "another".into(), ..info.clone() };
        assert_eq!(remembered(folder.path(), &other), None);
        let path = Record::new(info, None).path(folder.path());
        let text = std::fs::read_to_string(&path).expect("read");
        for wrong in [text.replace("null", "0"), text.replace("\"schema\": 1", "\"schema\": 2"), text[..20].to_string()] {
            assert_ne!(wrong, text);
            std::fs::write(&path, wrong).expect("written");
            assert_eq!(remembered(folder.path(), info), None);
        }
    }
}
