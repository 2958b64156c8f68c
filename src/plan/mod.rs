//! The execution plan: commands over slots, pure data.
//!
//! Compiled graphs and the hand-written systems both end in an [`ExecutionPlan`]; `device::Executor` runs it on a GPU and
//! [`host`] runs it on the CPU from a table of twins. A slot is a whole buffer; in one dispatch a slot has one use.

use std::sync::Arc;

use crate::error::{Error, Result};
use kernels_gen::{BindingKind, KernelSource};

pub mod host;
pub mod record;

/// Index of a slot in [`ExecutionPlan::slots`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub u32);

/// Index of a kernel in [`ExecutionPlan::kernels`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub u32);

/// Where the contents of a slot come from and go to.
#[derive(Debug, Clone, PartialEq)]
pub enum SlotRole {
    /// Filled by the caller before each run.
    Input,
    /// Filled by the caller before each run, which may write over it.
    Donated,
    /// Uploaded once, when the plan is loaded; may be shorter than the slot, the rest is zero.
    Constant(Arc<Vec<u8>>),
    /// Written by the run and read back, or kept, by the caller.
    Output,
    /// Lives during a run only.
    Temp,
    /// Keeps its contents from one run to the next; zero when the plan is loaded.
    State,
}

/// One buffer of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    /// Name for labels, reports and messages; inputs and outputs are found by it.
    pub name: String,
    /// Bytes that matter. Executors round the buffer up to a multiple of 16.
    pub bytes: u64,
    /// Role.
    pub role: SlotRole,
}

/// One storage binding of a dispatch: a slot, or a range of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRange {
    /// The slot.
    pub slot: SlotId,
    /// First byte; a multiple of 256.
    pub offset_bytes: u64,
    /// Length; `None` for the rest of the slot.
    pub len_bytes: Option<u64>,
}

impl From<SlotId> for SlotRange {
    fn from(slot: SlotId) -> Self {
        SlotRange { slot, offset_bytes: 0, len_bytes: None }
    }
}

/// One step of a plan; steps run in order, each sees all the writes before it.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Run a kernel.
    Dispatch {
        /// The kernel.
        kernel: KernelId,
        /// Its storage bindings, in order (the parameter block is not among them).
        bindings: Vec<SlotRange>,
        /// Words of its parameter block.
        params: Vec<u32>,
        /// Workgroups in x, y, z; a zero launches nothing.
        workgroups: [u32; 3],
    },
    /// Copy bytes between two different slots; offsets and length are multiples of 4.
    Copy {
        /// Source.
        from: SlotId,
        /// First byte in the source.
        from_offset: u64,
        /// Destination.
        to: SlotId,
        /// First byte in the destination.
        to_offset: u64,
        /// Length.
        bytes: u64,
    },
    /// Fill a whole slot with zeros.
    Clear {
        /// The slot.
        slot: SlotId,
    },
}

/// Folds `n` workgroups into two dimensions of at most `max_per_dim`. A kernel finds its place as `wid.x + wid.y * num_workgroups.x` and
/// leaves if that is past its count. None for `n` = 0: a zero launches nothing.
///
/// # Errors
///
/// [`ErrorKind::Limit`](crate::error::ErrorKind::Limit) where two dimensions do not hold them.
pub fn fold_workgroups(n: u64, max_per_dim: u32) -> Result<[u32; 3]> {
    let max = u64::from(max_per_dim.max(1));
    let y = n.div_ceil(max).max(1);
    if y > max {
        return Err(Error::limit(format!("{n} workgroups do not fit two dimensions of {max}; split the work into several dispatches")));
    }
    // Rows of equal length leave fewer than `y` workgroups without work.
    Ok([n.div_ceil(y) as u32, y as u32, 1])
}

/// Kernels, slots and the commands over them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExecutionPlan {
    /// Kernels, each once.
    pub kernels: Vec<Arc<KernelSource>>,
    /// Slots.
    pub slots: Vec<Slot>,
    /// Commands, in order.
    pub commands: Vec<Command>,
}

impl ExecutionPlan {
    /// An empty plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a slot.
    pub fn slot(&mut self, name: impl Into<String>, bytes: u64, role: SlotRole) -> SlotId {
        self.slots.push(Slot { name: name.into(), bytes, role });
        SlotId(self.slots.len() as u32 - 1)
    }

    /// Adds a kernel, or finds the equal one that is there.
    pub fn kernel(&mut self, source: &Arc<KernelSource>) -> KernelId {
        let found = self.kernels.iter().position(|k| Arc::ptr_eq(k, source) || k == source);
        let index = found.unwrap_or_else(|| {
            self.kernels.push(source.clone());
            self.kernels.len() - 1
        });
        KernelId(index as u32)
    }

    /// Records a dispatch of `source`.
    pub fn dispatch(&mut self, source: &Arc<KernelSource>, slots: &[SlotId], params: &[u32], workgroups: [u32; 3]) {
        let kernel = self.kernel(source);
        let bindings = slots.iter().map(|&s| s.into()).collect();
        self.commands.push(Command::Dispatch { kernel, bindings, params: params.to_vec(), workgroups });
    }

    /// The slot of that name whose role is [`SlotRole::Input`], [`SlotRole::Donated`], [`SlotRole::Output`] or [`SlotRole::State`].
    pub fn find(&self, name: &str) -> Option<SlotId> {
        let outer = |s: &Slot| matches!(s.role, SlotRole::Input | SlotRole::Donated | SlotRole::Output | SlotRole::State);
        self.slots.iter().position(|s| outer(s) && s.name == name).map(|i| SlotId(i as u32))
    }

    /// Number of kernel launches of one run.
    pub fn num_dispatches(&self) -> usize {
        self.commands.iter().filter(|c| matches!(c, Command::Dispatch { .. })).count()
    }

    /// Bytes of all slots together, each rounded up as an executor does.
    pub fn total_bytes(&self) -> u64 {
        self.slots.iter().map(|s| s.bytes.next_multiple_of(16)).sum()
    }

    fn is_read_only(&self, slot: SlotId) -> bool {
        self.slots.get(slot.0 as usize).is_some_and(|s| matches!(s.role, SlotRole::Constant(_) | SlotRole::Input))
    }

    /// Checks what every executor relies on; all faults are listed in one error.
    pub fn verify(&self) -> Result<()> {
        let mut faults = Vec::new();
        for (at, command) in self.commands.iter().enumerate() {
            let mut fault = |message: String| faults.push(format!("command {at}: {message}"));
            match command {
                Command::Dispatch { kernel, bindings, params, .. } => {
                    let Some(source) = self.kernels.get(kernel.0 as usize) else {
                        fault(format!("kernel {} of {}", kernel.0, self.kernels.len()));
                        continue;
                    };
                    if bindings.len() != source.num_storage() {
                        fault(format!("`{}` takes {} storage bindings, {} are given", source.name, source.num_storage(), bindings.len()));
                    }
                    if params.len() != source.num_params {
                        fault(format!("`{}` takes {} parameter words, {} are given", source.name, source.num_params, params.len()));
                    }
                    for (i, range) in bindings.iter().enumerate() {
                        let Some(slot) = self.slots.get(range.slot.0 as usize) else {
                            fault(format!("slot {} of {}", range.slot.0, self.slots.len()));
                            continue;
                        };
                        let end = range.len_bytes.map_or(range.offset_bytes, |len| range.offset_bytes.saturating_add(len));
                        if range.offset_bytes % 256 != 0 || end > slot.bytes.next_multiple_of(16) {
                            fault(format!("range {range:?} does not fit slot `{}` of {} bytes", slot.name, slot.bytes));
                        }
                        let written = |i: usize| source.bindings.get(i).is_some_and(|b| b.kind == BindingKind::ReadWrite);
                        let twice =
                            bindings.iter().enumerate().any(|(j, other)| j != i && other.slot == range.slot && (written(i) || written(j)));
                        if twice {
                            fault(format!("`{}` binds slot `{}` twice, once for writing", source.name, slot.name));
                        }
                        if written(i) && self.is_read_only(range.slot) {
                            fault(format!("`{}` writes the read-only slot `{}`", source.name, slot.name));
                        }
                    }
                }
                Command::Copy { from, from_offset, to, to_offset, bytes } => {
                    let fits = |slot: &SlotId, offset: u64| {
                        self.slots.get(slot.0 as usize).is_some_and(|s| offset.saturating_add(*bytes) <= s.bytes.next_multiple_of(16))
                    };
                    if from == to || !fits(from, *from_offset) || !fits(to, *to_offset) || (from_offset | to_offset | bytes) % 4 != 0 {
                        fault(format!("bad copy {command:?}"));
                    }
                    if self.is_read_only(*to) {
                        fault(format!("copies to the read-only slot `{}`", self.slots[to.0 as usize].name));
                    }
                }
                Command::Clear { slot } => {
                    if slot.0 as usize >= self.slots.len() {
                        fault(format!("slot {} of {}", slot.0, self.slots.len()));
                    }
                    if self.is_read_only(*slot) {
                        fault(format!("clears the read-only slot `{}`", self.slots[slot.0 as usize].name));
                    }
                }
            }
        }
        if faults.is_empty() {
            return Ok(());
        }
        Err(Error::internal(format!("malformed execution plan:\n{}", faults.join("\n"))))
    }
}

#[cfg(test)]
mod tests {
    use super::fold_workgroups;

    #[test]
    fn folds_cover_the_count_within_the_limit() {
        assert_eq!(fold_workgroups(0, 65_535).expect("fits"), [0, 1, 1]);
        assert_eq!(fold_workgroups(65_535, 65_535).expect("fits"), [65_535, 1, 1]);
        assert_eq!(fold_workgroups(65_536, 65_535).expect("fits"), [32_768, 2, 1]);
        for n in [1, 7, 8, 9, 50, 63, 64] {
            let [x, y, z] = fold_workgroups(n, 8).expect("fits").map(u64::from);
            assert!(x <= 8 && y <= 8 && z == 1 && x * y >= n && x * y - n < y, "{n}: {x} x {y}");
        }
        assert!(fold_workgroups(65, 8).is_err());
        assert!(fold_workgroups(u64::MAX, u32::MAX).is_err());
    }
}
