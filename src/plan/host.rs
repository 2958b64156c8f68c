//! Runs a plan on the CPU, each kernel replaced by its twin.

use crate::error::{Error, Result};
use crate::plan::{Command, ExecutionPlan, SlotRole};
pub use crate::shaders::twins::{Twin, TwinCall};

/// Runs `plan` on the CPU. `slots` holds the words of every slot (see [`allocate`]) and is updated in place.
pub fn run(plan: &ExecutionPlan, slots: &mut [Vec<u32>], twins: &[Twin]) -> Result<()> {
    plan.verify()?;
    for command in &plan.commands {
        match command {
            Command::Dispatch { kernel, bindings, params, workgroups } => {
                let source = &plan.kernels[kernel.0 as usize];
                let twin = twins
                    .iter()
                    .find(|t| t.name == source.name)
                    .ok_or_else(|| Error::internal(format!("kernel `{}` has no twin in the table", source.name)))?;
                // A slot may be bound twice for reading, so the twin works on copies; what it may write goes back.
                let mut copies: Vec<Vec<u32>> = bindings
                    .iter()
                    .map(|b| {
                        let words = &slots[b.slot.0 as usize];
                        let start = (b.offset_bytes / 4) as usize;
                        let end = b.len_bytes.map_or(words.len(), |len| start + (len / 4) as usize);
                        words[start..end].to_vec()
                    })
                    .collect();
                (twin.run)(TwinCall {
                    buffers: copies.iter_mut().map(|c| c.as_mut_slice()).collect(),
                    params,
                    workgroups: *workgroups,
                    workgroup_size: source.workgroup_size,
                })?;
                for ((copy, b), binding) in copies.iter().zip(bindings).zip(&source.bindings) {
                    if binding.kind == kernels_gen::BindingKind::ReadWrite {
                        let start = (b.offset_bytes / 4) as usize;
                        slots[b.slot.0 as usize][start..start + copy.len()].copy_from_slice(copy);
                    }
                }
            }
            Command::Copy { from, from_offset, to, to_offset, bytes } => {
                let (f, t, n) = ((from_offset / 4) as usize, (to_offset / 4) as usize, (bytes / 4) as usize);
                let source = slots[from.0 as usize][f..f + n].to_vec();
                slots[to.0 as usize][t..t + n].copy_from_slice(&source);
            }
            Command::Clear { slot } => slots[slot.0 as usize].fill(0),
        }
    }
    Ok(())
}

/// Words of every slot of `plan`: constants filled in, the rest zero.
pub fn allocate(plan: &ExecutionPlan) -> Vec<Vec<u32>> {
    let words = |s: &crate::plan::Slot| {
        let mut words = vec![0u32; (s.bytes.next_multiple_of(16) / 4) as usize];
        if let SlotRole::Constant(bytes) = &s.role {
            let n = bytes.len().min(words.len() * 4);
            bytemuck::cast_slice_mut::<u32, u8>(&mut words)[..n].copy_from_slice(&bytes[..n]);
        }
        words
    };
    plan.slots.iter().map(words).collect()
}
