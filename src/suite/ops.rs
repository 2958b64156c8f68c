//! Operations against their reference values: each case compiled, run on a device and compared.

use crate::compiler::{CompileOptions, Mode, compile};
use crate::device::Device;
use crate::error::Result;
use crate::ops::OpCase;
use crate::session::Session;
use kernels_gen::emit::Numerics;

/// Compiles `case` in `mode`, runs it on `device` with inputs of `seed` and compares; says what is wrong, if something is.
pub fn compare(case: &OpCase, device: &Device, mode: Mode, seed: u64) -> Result<Option<String>> {
    let options = CompileOptions { mode, numerics: Numerics::Strict, keep_stages: false };
    let compiled = compile(&case.graph()?, &device.target(), &options)?;
    let session = Session::load(device, &compiled)?;
    // What a kernel fails to write must not look right by chance.
    for port in compiled.outputs() {
        let poison = vec![0xff; compiled.plan().slots[port.slot.0 as usize].bytes as usize];
        session.executor().write(port.slot, &poison)?;
    }
    let inputs = case.inputs(seed)?;
    let named: Vec<_> = inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let got = session.run(&named)?.single()?;
    Ok(case.tolerance.check(&got, &case.expected(seed)?).err().map(|error| error.to_string()))
}
