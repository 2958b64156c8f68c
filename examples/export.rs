//! Compiled ahead of time: a graph is compiled for WebGPU's limits without an adapter, written to a folder, and run from there by code that
//! knows neither the graph nor the compiler. `sublane export MODEL.onnx -o DIR` does the first half for a model.

use sublane::capture::capture;
use sublane::compiler::{CompileOptions, compile, export};
use sublane::device::DeviceOptions;
use sublane::kernels_gen::Target;
use sublane::ops::prelude::*;
use sublane::{DType, Device, Error, HostTensor, Result, Session};

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("sublane_export_{}", std::process::id()));

    // On the machine that builds.
    let weights = HostTensor::new([32, 10], (0..320).map(|i| (i as f32 * 0.3).sin()).collect::<Vec<f32>>())?;
    let graph = capture(|t| t.input("x", [4, 32], DType::F32)?.matmul(&t.constant(weights)?)?.softmax(-1))?;
    let target = Target::webgpu();
    let compiled = compile(&graph, &target, &CompileOptions::default())?;
    for file in export::write(&compiled, &target, "example", &folder, false)? {
        println!("{:>8} bytes  {}", file.bytes, file.path.display());
    }

    // On the machine that runs.
    let device = Device::open(&DeviceOptions::from_env())?;
    let session = Session::load_exported(&device, &folder)?;
    let x = HostTensor::new([4, 32], (0..128).map(|i| (i as f32 * 1.7).cos()).collect::<Vec<f32>>())?;
    let y = session.run(&[("x", &x)])?.single()?;

    let same = Session::load(&device, &compiled)?.run(&[("x", &x)])?.single()? == y;
    std::fs::remove_dir_all(&folder).map_err(|error| Error::invalid(format!("`{}` was not removed: {error}", folder.display())))?;
    println!("{:?} on {}, the bits of the graph that was exported: {same}", y.shape(), device.info().name);
    if same { Ok(()) } else { Err(Error::invalid("the export gives another result")) }
}
