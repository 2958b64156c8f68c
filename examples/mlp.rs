//! A network of two layers: captured from Rust, compiled, run on the adapter and compared with the reference interpreter.

use sublane::capture::capture;
use sublane::compiler::{CompileOptions, compile};
use sublane::device::DeviceOptions;
use sublane::kernels_gen::threefry::Key;
use sublane::ops::prelude::*;
use sublane::ops::{Tolerance, reference_graph};
use sublane::{DType, Device, HostTensor, Result, Session};

/// Numbers from -1 to 1.
fn random(shape: &[usize], stream: u64) -> Result<HostTensor> {
    let key = Key::new(0).stream(stream);
    let count: usize = shape.iter().product();
    HostTensor::new(shape, (0..count as u64).map(|i| key.uniform(i) * 2.0 - 1.0).collect::<Vec<f32>>())
}

fn main() -> Result<()> {
    let (w1, b1) = (random(&[64, 128], 1)?, random(&[128], 2)?);
    let (w2, b2) = (random(&[128, 10], 3)?, random(&[10], 4)?);
    let graph = capture(|t| {
        let x = t.input("x", [32, 64], DType::F32)?;
        let hidden = t.scope("hidden", || x.linear(&t.constant(w1)?, &t.constant(b1)?)?.gelu())?;
        t.scope("head", || hidden.linear(&t.constant(w2)?, &t.constant(b2)?)?.softmax(-1))
    })?;

    let device = Device::open(&DeviceOptions::from_env())?;
    let compiled = compile(&graph, &device.target(), &CompileOptions::default())?;
    let session = Session::load(&device, &compiled)?;
    let x = random(&[32, 64], 5)?;
    let y = session.run(&[("x", &x)])?.single()?;

    let expected = reference_graph(&graph, &[("x", x)])?.remove(0).1;
    let difference = Tolerance::Norm(1e-4).check(&y, &expected)?;
    println!(
        "{} kernels for {} nodes; the largest difference from the reference is {:.1e}",
        compiled.kernels().len(),
        graph.nodes().len(),
        difference.absolute
    );
    Ok(())
}
