//! Candidates on one problem: the same random inputs for each, and results that are checked.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::compiler::fuse::{Group, GroupKind};
use crate::compiler::lower::LoweredKernel;
use crate::compiler::tune::sampled::{self, Sampler};
use crate::compiler::tune::{Loaded, Runner};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Graph, NodeId, Op, Prim, TensorType};
use crate::ops::RefTensor;
use crate::plan::{ExecutionPlan, SlotId, SlotRole};
use crate::stats::relative_error;
use crate::tensor::HostTensor;
use kernels_gen::DType;
use kernels_gen::threefry::Key;

/// Relative error that results may have: of 32-bit floats, and of all other types, which are rounded.
const TOLERANCE: f64 = 1e-4;
const COARSE_TOLERANCE: f64 = 5e-3;
/// Difference that single elements of two candidates may have, as a part of the value and of the root mean square of all.
const ELEMENT_TOLERANCE: f64 = 1e-3;

/// A kernel that is loaded on the problem's inputs.
pub(super) struct Trial<'r> {
    loaded: Box<dyn Loaded + 'r>,
}

impl Trial<'_> {
    /// Time of one of `runs` runs.
    pub(super) fn time(&self, runs: u32) -> Result<Duration> {
        self.loaded.time(runs as usize)
    }
}

/// One problem: inputs, and the results that every candidate has to give.
pub(super) struct Case {
    /// Nodes that kernels may load, with their values.
    inputs: Vec<(NodeId, HostTensor)>,
    ty: TensorType,
    /// Places of samples in the result, and their reference values.
    samples: (Vec<usize>, Vec<f64>),
    /// All results of the table's choice, once they have passed.
    results: Vec<f64>,
}

impl Case {
    /// Draws inputs, and checks the table's choice on them, which `kernel` is.
    pub(super) fn new<'r>(
        graph: &Graph,
        group: &Group,
        kernel: &LoweredKernel,
        seed: u64,
        runner: &'r dyn Runner,
    ) -> Result<(Case, Trial<'r>)> {
        let GroupKind::Hero(hero) = group.kind else {
            return Err(Error::internal("a group without a hero is tuned"));
        };
        let key = Key::new(seed);
        let positions = sampled::positions(graph, group, hero, key.stream(0));
        // Values of both signs show most; roots and logarithms want positive ones.
        for low in [-1.0, 0.25] {
            let draw = |(&id, stream): (&NodeId, u64)| Ok((id, value(graph, id, low, key.stream(stream))?));
            let inputs: Vec<(NodeId, HostTensor)> = kernel.inputs.iter().zip(1..).map(draw).collect::<Result<_>>()?;
            let values: HashMap<NodeId, RefTensor> = inputs.iter().map(|(id, tensor)| (*id, RefTensor::from_host(tensor))).collect();
            let reference = Sampler::new(graph, &values).values(group.root, &positions)?;
            drop(values);
            if reference.iter().any(|value| !value.is_finite()) {
                continue;
            }
            let mut case = Case { inputs, ty: graph.ty(group.root).clone(), samples: (positions, reference), results: Vec::new() };
            let (trial, results) = case.run(kernel, runner)?;
            case.check_samples(&results)?;
            case.results = results;
            return Ok((case, trial));
        }
        Err(Error::unsupported("its reference value on random inputs is no number"))
    }

    /// Loads a candidate and checks its results.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Mismatch`] for wrong results, and whatever running it meets.
    pub(super) fn check<'r>(&self, kernel: &LoweredKernel, runner: &'r dyn Runner) -> Result<Trial<'r>> {
        let (trial, results) = self.run(kernel, runner)?;
        self.check_samples(&results)?;
        let error = relative_error(&results, &self.results);
        let wrong = |message: String| Err(Error::new(ErrorKind::Mismatch, message));
        if error > self.tolerance() {
            return wrong(format!("its results differ from the table's choice by {error:.1e}"));
        }
        if self.ty.dtype.is_float() {
            let rms = (self.results.iter().map(|x| x * x).sum::<f64>() / self.results.len().max(1) as f64).sqrt();
            let off = |(a, b): (&f64, &f64)| (a - b).abs() > ELEMENT_TOLERANCE * (rms + b.abs());
            if let Some(at) = results.iter().zip(&self.results).position(off) {
                return wrong(format!("element {at} is {}, {} with the table's choice", results[at], self.results[at]));
            }
        }
        Ok(trial)
    }

    /// Loads a kernel over a result that is no number anywhere, and runs it once.
    fn run<'r>(&self, kernel: &LoweredKernel, runner: &'r dyn Runner) -> Result<(Trial<'r>, Vec<f64>)> {
        let mut plan = ExecutionPlan::new();
        let mut slots: Vec<SlotId> = Vec::new();
        let mut writes = Vec::new();
        for id in &kernel.inputs {
            let found = self.inputs.iter().find(|(known, _)| known == id);
            let (_, tensor) = found.ok_or_else(|| Error::internal(format!("a candidate loads %{}, the table's choice does not", id.0)))?;
            let slot = plan.slot(format!("in{}", slots.len()), tensor.bytes().len() as u64, SlotRole::Input);
            slots.push(slot);
            writes.push((slot, tensor));
        }
        let output = plan.slot("out", self.ty.num_bytes(), SlotRole::Output);
        slots.push(output);
        plan.dispatch(&Arc::new(kernel.source.clone()), &slots, &[], kernel.workgroups);
        let loaded = runner.load(&plan)?;
        for (slot, tensor) in writes {
            loaded.write(slot, tensor.bytes())?;
        }
        // All bits set are NaN in every format of floats, and no result of an integer kernel by chance.
        loaded.write(output, &vec![0xff; self.ty.num_bytes() as usize])?;
        let bytes = loaded.run(output)?;
        let bytes = bytes.get(..self.ty.num_bytes() as usize).ok_or_else(|| Error::internal("a result is shorter than its type"))?;
        let results = HostTensor::from_bytes(self.ty.dtype, self.ty.shape.clone(), bytes)?.to_f64();
        Ok((Trial { loaded }, results))
    }

    fn tolerance(&self) -> f64 {
        if self.ty.dtype == DType::F32 { TOLERANCE } else { COARSE_TOLERANCE }
    }

    fn check_samples(&self, results: &[f64]) -> Result<()> {
        let (positions, reference) = &self.samples;
        let sampled: Vec<f64> = positions.iter().map(|&at| results[at]).collect();
        let error = relative_error(&sampled, reference);
        if error > self.tolerance() {
            let message = format!("its results differ from the reference by {error:.1e}, {:.0e} is allowed", self.tolerance());
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        Ok(())
    }
}

/// What a constant holds, or random values: floats in `low..1`, others 0 or 1, which are indices into whatever has two elements.
fn value(graph: &Graph, id: NodeId, low: f64, key: Key) -> Result<HostTensor> {
    let node = graph.node(id);
    if let Op::Prim(Prim::Constant(constant)) = &node.op {
        return Ok((**constant.tensor()).clone());
    }
    let TensorType { dtype, shape } = &node.ty;
    let unit = (0..node.ty.num_elems() as u64 / 2 + 1).flat_map(|block| key.block(block)).map(kernels_gen::threefry::uniform);
    let unit = unit.take(node.ty.num_elems());
    if *dtype == DType::F32 {
        return HostTensor::new(shape.clone(), unit.map(|u| low as f32 + (1.0 - low as f32) * u).collect::<Vec<f32>>());
    }
    let of = |u: f32| if dtype.is_float() { low + (1.0 - low) * f64::from(u) } else { f64::from(u.round()) };
    HostTensor::from_f64(*dtype, shape.clone(), &unit.map(of).collect::<Vec<_>>())
}
