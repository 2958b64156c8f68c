//! Operations against their reference values: each case compiled, run on a device and compared.

use std::collections::BTreeMap;

use crate::compiler::{CompileOptions, Mode, compile};
use crate::device::Device;
use crate::error::Result;
use crate::graph::Graph;
use crate::ops::{OpCase, Tolerance, cases, name, reference_graph};
use crate::progress::Work;
use crate::session::Session;
use crate::suite::Check;
use crate::tensor::HostTensor;
use kernels_gen::emit::Numerics;

/// Compiles `graph` in `mode`, runs it on `device` and compares every output with its reference; says what is wrong, if something is.
pub fn compare_graph(
    graph: &Graph,
    inputs: &[(String, HostTensor)],
    tolerance: Tolerance,
    device: &Device,
    mode: Mode,
) -> Result<Option<String>> {
    compare_graph_as(graph, inputs, tolerance, device, &CompileOptions { mode, numerics: Numerics::Strict, ..CompileOptions::default() })
}

/// [`compare_graph`] with every choice of the compiler.
pub fn compare_graph_as(
    graph: &Graph,
    inputs: &[(String, HostTensor)],
    tolerance: Tolerance,
    device: &Device,
    options: &CompileOptions,
) -> Result<Option<String>> {
    let compiled = compile(graph, &device.target(), options)?;
    let session = Session::load(device, &compiled)?;
    // What a kernel fails to write must not look right by chance.
    for port in compiled.outputs() {
        let poison = vec![0xff; compiled.plan().slots[port.slot.0 as usize].bytes as usize];
        session.executor().write(port.slot, &poison)?;
    }
    let given: Vec<(&str, &HostTensor)> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let got = session.run(&given)?;
    let named: Vec<(&str, HostTensor)> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    for (name, expected) in reference_graph(graph, &named)? {
        if let Err(fault) = tolerance.check(got.get(&name)?, &expected) {
            return Ok(Some(format!("output `{name}`: {fault}")));
        }
    }
    Ok(None)
}

/// [`compare_graph`] on one case, with inputs of `seed`.
pub fn compare(case: &OpCase, device: &Device, mode: Mode, seed: u64) -> Result<Option<String>> {
    compare_graph(&case.graph()?, &case.inputs(seed)?, case.tolerance, device, mode)
}

/// Compares every case of every operation, all element types and shape classes: one check an operation, which names the cases that fail.
/// Only a cancellation or a lost device ends it early.
pub fn checks(device: &Device, mode: Mode, seed: u64, work: &Work<'_>) -> Result<Vec<Check>> {
    let all = cases();
    let part = work.part("operations", all.len() as u64);
    let mut families: BTreeMap<&'static str, Vec<OpCase>> = BTreeMap::new();
    for case in all {
        families.entry(name(&case.op)).or_default().push(case);
    }
    let mut checks = Vec::with_capacity(families.len());
    for (op, family) in families {
        let mut check = Check { name: format!("{op}, {} cases", family.len()), fault: None, ms: 0.0 };
        let mut faults = Vec::new();
        for case in &family {
            let one = Check::of(case.name.as_str(), || compare(case, device, mode, seed));
            check.ms += one.ms;
            faults.extend(one.fault.map(|fault| format!("{}: {fault}", case.name)));
            device.check_alive()?;
            part.advance(1)?;
        }
        check.fault = (!faults.is_empty()).then(|| faults.join("\n"));
        checks.push(check);
    }
    Ok(checks)
}
