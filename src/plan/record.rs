//! A plan as data that serde writes and reads: everything but the bytes of its constants, which have a place beside it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::plan::{Command, ExecutionPlan, KernelId, Slot, SlotId, SlotRange, SlotRole};
use kernels_gen::source::Formula;
use kernels_gen::{Binding, BindingKind, KernelSource, WgslFeatures};

/// An [`ExecutionPlan`] without the bytes of its constants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRecord {
    kernels: Vec<KernelRecord>,
    slots: Vec<SlotRecord>,
    commands: Vec<CommandRecord>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KernelRecord {
    name: String,
    wgsl: String,
    bindings: Vec<(String, KindRecord)>,
    num_params: usize,
    workgroup_size: [u32; 3],
    /// Bits of an f64 by name.
    overrides: Vec<(String, u64)>,
    workgroup_bytes: u32,
    f16: bool,
    subgroups: bool,
    int64: bool,
    flops: FormulaRecord,
    bytes: FormulaRecord,
    max_iterations: FormulaRecord,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindRecord {
    Read,
    ReadWrite,
    Params,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FormulaRecord {
    Const(u64),
    Param(usize),
    Add(Box<FormulaRecord>, Box<FormulaRecord>),
    Mul(Box<FormulaRecord>, Box<FormulaRecord>),
    DivCeil(Box<FormulaRecord>, Box<FormulaRecord>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlotRecord {
    name: String,
    bytes: u64,
    role: RoleRecord,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RoleRecord {
    Input,
    Donated,
    /// Place of its bytes among the constants.
    Constant(usize),
    Output,
    Temp,
    State,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum CommandRecord {
    Dispatch {
        kernel: u32,
        /// Slot, first byte, length.
        bindings: Vec<(u32, u64, Option<u64>)>,
        params: Vec<u32>,
        workgroups: [u32; 3],
    },
    Copy {
        from: u32,
        from_offset: u64,
        to: u32,
        to_offset: u64,
        bytes: u64,
    },
    Clear {
        slot: u32,
    },
}

impl PlanRecord {
    /// The record of a plan, and the bytes of its constants in the order that the record counts them.
    pub fn of(plan: &ExecutionPlan) -> (Self, Vec<Arc<Vec<u8>>>) {
        let mut constants = Vec::new();
        let slots = plan.slots.iter().map(|slot| {
            let role = match &slot.role {
                SlotRole::Input => RoleRecord::Input,
                SlotRole::Donated => RoleRecord::Donated,
                SlotRole::Constant(bytes) => {
                    constants.push(bytes.clone());
                    RoleRecord::Constant(constants.len() - 1)
                }
                SlotRole::Output => RoleRecord::Output,
                SlotRole::Temp => RoleRecord::Temp,
                SlotRole::State => RoleRecord::State,
            };
            SlotRecord { name: slot.name.clone(), bytes: slot.bytes, role }
        });
        let slots = slots.collect();
        let kernels = plan.kernels.iter().map(|kernel| KernelRecord::of(kernel)).collect();
        let commands = plan.commands.iter().map(CommandRecord::of).collect();
        (PlanRecord { kernels, slots, commands }, constants)
    }

    /// Takes the texts of the kernels out, with the kernels' names; [`PlanRecord::put_texts`] puts them back.
    pub fn take_texts(&mut self) -> Vec<(String, String)> {
        self.kernels.iter_mut().map(|kernel| (kernel.name.clone(), std::mem::take(&mut kernel.wgsl))).collect()
    }

    /// Puts the text of each kernel, which `text` gives by the kernel's name, in its place.
    pub fn put_texts(&mut self, mut text: impl FnMut(&str) -> Result<String>) -> Result<()> {
        for kernel in &mut self.kernels {
            kernel.wgsl = text(&kernel.name)?;
        }
        Ok(())
    }

    /// The plan of a record, its constants given.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) where a constant is missing, and for a plan that does not pass
    /// [`ExecutionPlan::verify`].
    pub fn into_plan(self, constants: &[Arc<Vec<u8>>]) -> Result<ExecutionPlan> {
        let slot = |record: SlotRecord| {
            let role = match record.role {
                RoleRecord::Input => SlotRole::Input,
                RoleRecord::Donated => SlotRole::Donated,
                RoleRecord::Constant(at) => {
                    let missing = || Error::malformed(format!("the plan has constant {at}, {} are given", constants.len()));
                    SlotRole::Constant(constants.get(at).ok_or_else(missing)?.clone())
                }
                RoleRecord::Output => SlotRole::Output,
                RoleRecord::Temp => SlotRole::Temp,
                RoleRecord::State => SlotRole::State,
            };
            Ok(Slot { name: record.name, bytes: record.bytes, role })
        };
        let plan = ExecutionPlan {
            kernels: self.kernels.into_iter().map(|kernel| Arc::new(kernel.into_source())).collect(),
            slots: self.slots.into_iter().map(slot).collect::<Result<_>>()?,
            commands: self.commands.into_iter().map(CommandRecord::into_command).collect(),
        };
        plan.verify().map_err(|error| Error::malformed(error.to_string()))?;
        Ok(plan)
    }
}

impl KernelRecord {
    fn of(kernel: &KernelSource) -> Self {
        let kind = |kind: BindingKind| match kind {
            BindingKind::Read => KindRecord::Read,
            BindingKind::ReadWrite => KindRecord::ReadWrite,
            BindingKind::Params => KindRecord::Params,
        };
        KernelRecord {
            name: kernel.name.clone(),
            wgsl: kernel.wgsl.clone(),
            bindings: kernel.bindings.iter().map(|b| (b.name.clone(), kind(b.kind))).collect(),
            num_params: kernel.num_params,
            workgroup_size: kernel.workgroup_size,
            overrides: kernel.overrides.clone(),
            workgroup_bytes: kernel.workgroup_bytes,
            f16: kernel.features.f16,
            subgroups: kernel.features.subgroups,
            int64: kernel.features.int64,
            flops: FormulaRecord::of(&kernel.flops),
            bytes: FormulaRecord::of(&kernel.bytes),
            max_iterations: FormulaRecord::of(&kernel.max_iterations),
        }
    }

    fn into_source(self) -> KernelSource {
        let kind = |kind: KindRecord| match kind {
            KindRecord::Read => BindingKind::Read,
            KindRecord::ReadWrite => BindingKind::ReadWrite,
            KindRecord::Params => BindingKind::Params,
        };
        KernelSource {
            name: self.name,
            wgsl: self.wgsl,
            bindings: self.bindings.into_iter().map(|(name, k)| Binding::new(name, kind(k))).collect(),
            num_params: self.num_params,
            workgroup_size: self.workgroup_size,
            overrides: self.overrides,
            workgroup_bytes: self.workgroup_bytes,
            features: WgslFeatures { f16: self.f16, subgroups: self.subgroups, int64: self.int64 },
            flops: self.flops.into_formula(),
            bytes: self.bytes.into_formula(),
            max_iterations: self.max_iterations.into_formula(),
        }
    }
}

impl FormulaRecord {
    fn of(formula: &Formula) -> Self {
        let of = |f: &Formula| Box::new(FormulaRecord::of(f));
        match formula {
            Formula::Const(value) => FormulaRecord::Const(*value),
            Formula::Param(at) => FormulaRecord::Param(*at),
            Formula::Add(a, b) => FormulaRecord::Add(of(a), of(b)),
            Formula::Mul(a, b) => FormulaRecord::Mul(of(a), of(b)),
            Formula::DivCeil(a, b) => FormulaRecord::DivCeil(of(a), of(b)),
        }
    }

    fn into_formula(self) -> Formula {
        let of = |f: Box<FormulaRecord>| Box::new(f.into_formula());
        match self {
            FormulaRecord::Const(value) => Formula::Const(value),
            FormulaRecord::Param(at) => Formula::Param(at),
            FormulaRecord::Add(a, b) => Formula::Add(of(a), of(b)),
            FormulaRecord::Mul(a, b) => Formula::Mul(of(a), of(b)),
            FormulaRecord::DivCeil(a, b) => Formula::DivCeil(of(a), of(b)),
        }
    }
}

impl CommandRecord {
    fn of(command: &Command) -> Self {
        match command {
            Command::Dispatch { kernel, bindings, params, workgroups } => CommandRecord::Dispatch {
                kernel: kernel.0,
                bindings: bindings.iter().map(|b| (b.slot.0, b.offset_bytes, b.len_bytes)).collect(),
                params: params.clone(),
                workgroups: *workgroups,
            },
            &Command::Copy { from, from_offset, to, to_offset, bytes } => {
                CommandRecord::Copy { from: from.0, from_offset, to: to.0, to_offset, bytes }
            }
            Command::Clear { slot } => CommandRecord::Clear { slot: slot.0 },
        }
    }

    fn into_command(self) -> Command {
        let range = |(slot, offset_bytes, len_bytes)| SlotRange { slot: SlotId(slot), offset_bytes, len_bytes };
        match self {
            CommandRecord::Dispatch { kernel, bindings, params, workgroups } => {
                Command::Dispatch { kernel: KernelId(kernel), bindings: bindings.into_iter().map(range).collect(), params, workgroups }
            }
            CommandRecord::Copy { from, from_offset, to, to_offset, bytes } => {
                Command::Copy { from: SlotId(from), from_offset, to: SlotId(to), to_offset, bytes }
            }
            CommandRecord::Clear { slot } => Command::Clear { slot: SlotId(slot) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_comes_back_as_it_was() {
        let formula = Formula::DivCeil(Box::new(Formula::Param(0) + Formula::Const(3)), Box::new(Formula::Param(1) * Formula::Const(2)));
        let kernel = Arc::new(KernelSource {
            name: "k".into(),
            wgsl: "fn k() {}\n\"quoted\"".into(),
            bindings: vec![Binding::new("x", BindingKind::Read), Binding::new("y", BindingKind::ReadWrite)],
            num_params: 0,
            workgroup_size: [8, 2, 1],
            overrides: vec![("size".into(), 8f64.to_bits())],
            workgroup_bytes: 64,
            features: WgslFeatures { f16: true, subgroups: false, int64: true },
            flops: formula.clone(),
            bytes: Formula::Const(u64::MAX),
            max_iterations: formula,
        });
        let mut plan = ExecutionPlan::new();
        let x = plan.slot("x", 16, SlotRole::Constant(Arc::new(vec![1, 2, 3])));
        let y = plan.slot("y", 16, SlotRole::Output);
        let z = plan.slot("z", 16, SlotRole::State);
        plan.dispatch(&kernel, &[x, y], &[], [3, 1, 1]);
        plan.commands.push(Command::Copy { from: y, from_offset: 0, to: z, to_offset: 4, bytes: 8 });
        plan.commands.push(Command::Clear { slot: y });
        let (record, constants) = PlanRecord::of(&plan);
        let text = serde_json::to_string(&record).expect("written");
        let read: PlanRecord = serde_json::from_str(&text).expect("read");
        assert_eq!(read.clone().into_plan(&constants).expect("sound"), plan);
        assert!(read.into_plan(&[]).expect_err("refused").to_string().contains("constant 0"));
        let broken = text.replace("\"slot\":1", "\"slot\":9");
        assert_ne!(broken, text);
        let broken: PlanRecord = serde_json::from_str(&broken).expect("read");
        assert!(broken.into_plan(&constants).is_err());
    }
}
