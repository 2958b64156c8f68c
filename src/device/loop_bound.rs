//! After how many loop iterations an adapter ends loops.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kernels_gen::probes;

use crate::device::{Device, Executor};
use crate::error::{Error, Result};
use crate::plan::{ExecutionPlan, SlotRole};

/// What each adapter and driver showed in this process. The answer depends on the key alone, so that sharing it changes no result.
static SEEN: Mutex<Option<HashMap<String, Option<u64>>>> = Mutex::new(None);

/// Runs a loop that is longer than the bound some software drivers have and sees how far it came. `None`: it came to its end.
pub(super) async fn probe(device: &Device) -> Result<Option<u64>> {
    let info = device.info();
    let key = format!("{}\n{}\n{}", info.name, info.driver, info.backend);
    let seen = || SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&bound) = seen().as_ref().and_then(|seen| seen.get(&key)) {
        return Ok(bound);
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
    Ok(bound)
}
