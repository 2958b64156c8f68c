//! Prefix sums of 64-bit values.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::motifs::twins::CHUNK;
use crate::plan::{ExecutionPlan, SlotId, SlotRole, fold_workgroups};
use crate::shaders;
use kernels_gen::{KernelSource, Target};

/// Most values of one prefix sum.
pub const MAX_SCAN: u32 = 1 << 27;

/// The kernels of prefix sums, for one target.
#[derive(Debug, Clone)]
pub struct ScanKernels {
    sums: Arc<KernelSource>,
    apply: Arc<KernelSource>,
    max_workgroups_per_dim: u32,
}

/// 64-bit values in a slot, as (low, high) words. Places and distances are counted in values, from the front of the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Values {
    /// The slot.
    pub slot: SlotId,
    /// Place of the first value.
    pub offset: u32,
    /// Distance from one value to the next, at least 1.
    pub stride: u32,
    /// Number of values.
    pub count: u32,
}

impl ScanKernels {
    /// Composes and checks the kernels for `target`.
    pub fn new(target: &Target) -> Result<Self> {
        let kernel = |name| shaders::kernel(name, target).map(Arc::new);
        let (sums, apply) = (kernel("scan_sums")?, kernel("scan_apply")?);
        Ok(ScanKernels { sums, apply, max_workgroups_per_dim: target.max_workgroups_per_dim })
    }

    /// Records the exclusive prefix sum of `values` in place: value i becomes the sum of the values before it, and their total is written
    /// behind the last one, at place `offset + count * stride`. Sums are modulo 2^64; word `flag` of slot `flags` becomes 1 where one
    /// passes 2^64 - 1 and stays as it was otherwise. Adds temporary slots of about a fifteenth of the values' bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) past [`MAX_SCAN`] values; [`ErrorKind::Internal`](crate::ErrorKind::Internal) where
    /// the values and their total, or the flag, do not lie in their slots.
    pub fn record(&self, plan: &mut ExecutionPlan, values: Values, (flags, flag): (SlotId, u32)) -> Result<()> {
        if values.count > MAX_SCAN {
            return Err(Error::limit(format!("a prefix sum of {} values, at most {MAX_SCAN} are allowed; split them", values.count)));
        }
        let bytes = |slot: SlotId| plan.slots.get(slot.0 as usize).map_or(0, |slot| slot.bytes);
        let end = u64::from(values.offset) + u64::from(values.count) * u64::from(values.stride) + 1;
        let lies = end <= u64::from(u32::MAX) && 8 * end <= bytes(values.slot) && 4 * (u64::from(flag) + 1) <= bytes(flags);
        if values.stride == 0 || values.slot == flags || !lies {
            let (has, flag_has) = (bytes(values.slot), bytes(flags));
            return Err(Error::internal(format!(
                "prefix sum of {values:?} and their total in a slot of {has} bytes, flag {flag} in slot {} of {flag_has} bytes",
                flags.0
            )));
        }
        self.level(plan, values, (flags, flag))
    }

    /// Scans `values`, and for that first the sums of their chunks.
    fn level(&self, plan: &mut ExecutionPlan, values: Values, (flags, flag): (SlotId, u32)) -> Result<()> {
        let Values { slot, offset, stride, count } = values;
        let chunks = count.div_ceil(CHUNK as u32).max(1);
        // With the total, which nobody reads.
        let before = plan.slot("scan.before", 8 * (u64::from(chunks) + 1), SlotRole::Temp);
        if chunks > 1 {
            plan.dispatch(&self.sums, &[slot, before], &[count, offset, stride], self.grid(&self.sums, chunks)?);
            self.level(plan, Values { slot: before, offset: 0, stride: 1, count: chunks }, (flags, flag))?;
        }
        plan.dispatch(&self.apply, &[slot, before, flags], &[count, offset, stride, flag], self.grid(&self.apply, chunks)?);
        Ok(())
    }

    fn grid(&self, kernel: &KernelSource, invocations: u32) -> Result<[u32; 3]> {
        fold_workgroups(u64::from(invocations.div_ceil(kernel.workgroup_size[0])), self.max_workgroups_per_dim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::motifs::TWINS;
    use crate::plan::host;
    use kernels_gen::threefry::Key;

    /// A plan with `count` values in a slot of `room` values, and the slots of values and flags.
    fn plan(target: &Target, room: u64, [offset, stride, count]: [u32; 3]) -> (ExecutionPlan, Values, SlotId, Result<()>) {
        let mut plan = ExecutionPlan::new();
        let slot = plan.slot("values", 8 * room, SlotRole::State);
        let flags = plan.slot("flags", 8, SlotRole::State);
        let values = Values { slot, offset, stride, count };
        let recorded = ScanKernels::new(target).expect("valid").record(&mut plan, values, (flags, 1));
        (plan, values, flags, recorded)
    }

    #[test]
    fn prefix_sums_are_what_their_name_says() {
        let narrow = Target { max_workgroups_per_dim: 3, ..Target::webgpu() };
        for (at, n) in [0u32, 1, 2, 15, 16, 17, 63, 64, 65, 255, 256, 257, 4_095, 4_097, 30_000].into_iter().enumerate() {
            for (stride, offset, shift) in [(1, 0, 30), (3, 7, 30), (1, 2, 1)] {
                let room = offset + n * stride + 2;
                let (plan, values, flags, recorded) = plan(&narrow, u64::from(room), [offset, stride, n]);
                recorded.expect("fits");
                let key = Key::new(at as u64);
                let wide = |i: u32| u64::from(key.word(2 * u64::from(i))) << 32 | u64::from(key.word(2 * u64::from(i) + 1));
                let mut expected: Vec<u64> = (0..room).map(|i| wide(i) >> shift).collect();
                let mut slots = host::allocate(&plan);
                let words: Vec<u32> = expected.iter().flat_map(|&v| [v as u32, (v >> 32) as u32]).collect();
                slots[values.slot.0 as usize][..words.len()].copy_from_slice(&words);
                host::run(&plan, &mut slots, TWINS).expect("runs");

                let mut sum = 0u128;
                for i in 0..n {
                    let place = &mut expected[(offset + i * stride) as usize];
                    let value = std::mem::replace(place, sum as u64);
                    sum += u128::from(value);
                }
                expected[(offset + n * stride) as usize] = sum as u64;
                let words: Vec<u32> = expected.iter().flat_map(|&v| [v as u32, (v >> 32) as u32]).collect();
                assert_eq!(slots[values.slot.0 as usize][..words.len()], words, "{n} values, stride {stride}");
                assert_eq!(slots[flags.0 as usize][..2], [0, u32::from(sum > u128::from(u64::MAX))], "{n} values");
            }
        }
    }

    #[test]
    fn values_that_do_not_lie_in_their_slot_are_refused() {
        let kind = |room, shape| plan(&Target::webgpu(), room, shape).3.expect_err("refused").kind();
        assert_eq!(kind(10, [0, 1, 10]), ErrorKind::Internal, "no room for the total");
        assert_eq!(kind(31, [1, 3, 10]), ErrorKind::Internal);
        assert_eq!(kind(10, [0, 0, 5]), ErrorKind::Internal);
        assert_eq!(kind(1 << 40, [u32::MAX, 1, 0]), ErrorKind::Internal);
        assert_eq!(kind(1 << 40, [0, 1, MAX_SCAN + 1]), ErrorKind::Limit);
        plan(&Target::webgpu(), 32, [1, 3, 10]).3.expect("fits");
        let (most, _, _, recorded) = plan(&Target::webgpu(), 1 << 28, [0, 1, MAX_SCAN]);
        recorded.expect("fits");
        assert_eq!(most.num_dispatches(), 13);
    }
}
