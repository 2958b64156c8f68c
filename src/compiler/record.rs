//! A compiled graph as data that serde writes and reads, for the cache and for exports: everything but the bytes of its constants, which
//! have a place beside it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::compiler::{Compiled, GroupInfo, HeroChoice, Inner, KernelInfo, Port, RefusalInfo, StageInfo};
use crate::error::{Error, Result};
use crate::graph::TensorType;
use crate::plan::record::PlanRecord;
use crate::plan::{Slot, SlotId};
use kernels_gen::DType;

/// A [`Compiled`] without the bytes of its constants and without its stages.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompiledRecord {
    pub(super) plan: PlanRecord,
    pub(super) inputs: Vec<PortRecord>,
    pub(super) outputs: Vec<PortRecord>,
    /// In the order in which the plan counts its constants.
    pub(super) constants: Vec<PortRecord>,
    pub(super) kernels: Vec<InfoRecord>,
    groups: Vec<GroupRecord>,
    refusals: Vec<RefusalRecord>,
    fusion: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypeRecord {
    pub(super) dtype: String,
    pub(super) shape: Vec<usize>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PortRecord {
    pub(super) name: String,
    pub(super) ty: TypeRecord,
    slot: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InfoRecord {
    name: String,
    origins: Vec<String>,
    ty: TypeRecord,
    flops: u64,
    bytes: u64,
    group: usize,
    choice: Option<ChoiceRecord>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChoiceRecord {
    key: String,
    config: String,
    tuned: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupRecord {
    kind: String,
    root: String,
    ty: TypeRecord,
    members: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefusalRecord {
    node: String,
    group: Option<String>,
    reason: String,
}

impl TypeRecord {
    fn of(ty: &TensorType) -> Self {
        TypeRecord { dtype: ty.dtype.name().into(), shape: ty.shape.clone() }
    }

    fn into_type(self) -> Result<TensorType> {
        let dtype = DType::ALL.into_iter().find(|d| d.name() == self.dtype);
        let dtype = dtype.ok_or_else(|| Error::malformed(format!("`{}` is no element type", self.dtype)))?;
        if self.shape.iter().try_fold(dtype.size_bytes(), |bytes, size| bytes.checked_mul(*size)).is_none() {
            return Err(Error::malformed(format!("{dtype}{:?} has more bytes than can be addressed", self.shape)));
        }
        Ok(TensorType::new(dtype, self.shape))
    }
}

impl PortRecord {
    fn of(port: &Port) -> Self {
        PortRecord { name: port.name.clone(), ty: TypeRecord::of(&port.ty), slot: port.slot.0 }
    }

    /// The port of a plan with those slots, whose bytes its type must not pass.
    fn into_port(self, slots: &[Slot]) -> Result<Port> {
        let ty = self.ty.into_type()?;
        let Some(slot) = slots.get(self.slot as usize) else {
            return Err(Error::malformed(format!("`{}` has slot {} of {}", self.name, self.slot, slots.len())));
        };
        if ty.num_bytes() > slot.bytes {
            return Err(Error::malformed(format!("`{}` {ty} does not fit its slot of {} bytes", self.name, slot.bytes)));
        }
        Ok(Port { name: self.name, ty, slot: SlotId(self.slot) })
    }
}

impl CompiledRecord {
    /// The record of a compiled graph, and the bytes of its constants in the order that the record counts them.
    pub(super) fn of(compiled: &Compiled) -> (Self, Vec<Arc<Vec<u8>>>) {
        let (plan, constants) = PlanRecord::of(compiled.plan());
        let choice = |c: &HeroChoice| ChoiceRecord { key: c.key.clone(), config: c.config.clone(), tuned: c.tuned };
        let info = |kernel: &KernelInfo| InfoRecord {
            name: kernel.name.clone(),
            origins: kernel.origins.clone(),
            ty: TypeRecord::of(&kernel.ty),
            flops: kernel.flops,
            bytes: kernel.bytes,
            group: kernel.group,
            choice: kernel.choice.as_ref().map(choice),
        };
        let group = |group: &GroupInfo| GroupRecord {
            kind: group.kind.clone(),
            root: group.root.clone(),
            ty: TypeRecord::of(&group.ty),
            members: group.members.clone(),
        };
        let refusal = |r: &RefusalInfo| RefusalRecord { node: r.node.clone(), group: r.group.clone(), reason: r.reason.clone() };
        let ports = |ports: &[Port]| ports.iter().map(PortRecord::of).collect();
        let record = CompiledRecord {
            plan,
            inputs: ports(compiled.inputs()),
            outputs: ports(compiled.outputs()),
            constants: ports(compiled.constants()),
            kernels: compiled.kernels().iter().map(info).collect(),
            groups: compiled.groups().iter().map(group).collect(),
            refusals: compiled.refusals().iter().map(refusal).collect(),
            fusion: compiled.fusion().to_string(),
        };
        (record, constants)
    }

    /// The compiled graph of a record, its constants given; `stage` names where it comes from.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for what no compiled graph is.
    pub(super) fn into_compiled(self, constants: &[Arc<Vec<u8>>], stage: &'static str) -> Result<Compiled> {
        let plan = self.plan.into_plan(constants)?;
        let ports = |records: Vec<PortRecord>| records.into_iter().map(|record| record.into_port(&plan.slots)).collect::<Result<Vec<_>>>();
        let (inputs, outputs, constants) = (ports(self.inputs)?, ports(self.outputs)?, ports(self.constants)?);
        let info = |record: InfoRecord| {
            let choice = record.choice.map(|c| HeroChoice { key: c.key, config: c.config, tuned: c.tuned });
            let InfoRecord { name, origins, ty, flops, bytes, group, .. } = record;
            Ok(KernelInfo { name, origins, ty: ty.into_type()?, flops, bytes, group, choice })
        };
        let group = |GroupRecord { kind, root, ty, members }| Ok(GroupInfo { kind, root, ty: TypeRecord::into_type(ty)?, members });
        let kernels = self.kernels.into_iter().map(info).collect::<Result<Vec<_>>>()?;
        let groups = self.groups.into_iter().map(group).collect::<Result<Vec<_>>>()?;
        let (dispatches, described) = (plan.num_dispatches(), kernels.len());
        if dispatches != described || kernels.iter().any(|kernel| kernel.group >= groups.len()) {
            return Err(Error::malformed(format!("{described} kernels in {} groups describe {dispatches} dispatches", groups.len())));
        }
        let refusals = self.refusals.into_iter().map(|r| RefusalInfo { node: r.node, group: r.group, reason: r.reason }).collect();
        let stages = vec![StageInfo { name: stage, seconds: 0.0, text: None }];
        let inner = Inner { plan, inputs, outputs, constants, kernels, stages, groups, refusals, fusion: self.fusion };
        Ok(Compiled { inner: Arc::new(inner) })
    }
}
