//! A function compiled at each call: training of a line by hand-written gradient steps, in place, until the loss is small; the loss is read on
//! the host, which is a graph break. Then sizes change, and kernels do not.

use sublane::capture::{CaptureOptions, Context, Tensor, compile};
use sublane::device::DeviceOptions;
use sublane::ops::prelude::*;
use sublane::ops::random::random_key;
use sublane::{Device, Error, HostTensor, Result};

fn main() -> Result<()> {
    let context = Context::new(&Device::open(&DeviceOptions::from_env())?);
    let slope = context.tensor(&HostTensor::scalar(0f32))?;
    let offset = context.tensor(&HostTensor::scalar(0f32))?;

    // One step on fresh points of the line 3 x + 1; a key that changes from call to call is data, and compiles nothing anew.
    let step = compile(&context, CaptureOptions::default(), |args: &[Tensor]| {
        let x = args[0].random_uniform(&[256])?;
        let target = x.mul_scalar(3.0)?.add_scalar(1.0)?;
        let error = x.mul(&slope)?.add(&offset)?.sub(&target)?;
        let loss = error.mul(&error)?.mean(&[0], false)?;
        slope.sub_(&error.mul(&x)?.mean(&[0], false)?)?;
        offset.sub_(&error.mean(&[0], false)?)?;
        if loss.item()? < 1e-6 { Ok(vec![loss]) } else { Ok(Vec::new()) }
    });
    let mut steps = 0;
    while step.call(&[context.tensor(&random_key(0, steps)?)?])?.is_empty() {
        steps += 1;
        if steps == 1000 {
            return Err(Error::invalid("the line was not found in 1000 steps"));
        }
    }
    println!("{steps} steps: {:.3} x + {:.3}\n{}", slope.item()?, offset.item()?, step.explain());

    let norm = compile(&context, CaptureOptions::default(), |x: &[Tensor]| x[0].softmax(-1)?.add(&x[0]));
    for rows in [8, 12, 16, 200] {
        let x = context.tensor(&HostTensor::new([rows, 40], vec![0.5f32; rows * 40])?)?;
        norm.call(&[x])?;
        println!("{rows} rows: {} kernels on the device", context.device().num_pipelines());
    }
    Ok(())
}
