//! A user's own kernel as an operation: a median of three rows, which no operation of Sublane computes, between a matrix product and a sum.
//! The kernel is checked when the operation is made, fused with nothing, and compared with its value by definition.

use sublane::capture::capture;
use sublane::compiler::{CompileOptions, compile};
use sublane::device::DeviceOptions;
use sublane::graph::TensorType;
use sublane::ops::custom::{CustomKernel, CustomOp, Launch, Workgroups};
use sublane::ops::prelude::*;
use sublane::ops::{RefTensor, Tolerance, reference_graph};
use sublane::{DType, Device, Error, HostTensor, Result, Session};

const MEDIAN: &str = "
struct Params { rows: u32, columns: u32, }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn median(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = (wid.x + wid.y * grid.x) * 64u + lane;
    if (i >= params.rows * params.columns) { return; }
    let row = i / params.columns;
    let above = x[i - select(0u, params.columns, row > 0u)];
    let below = x[i + select(0u, params.columns, row + 1u < params.rows)];
    y[i] = max(min(above, x[i]), min(max(above, x[i]), below));
}";

/// The median of each element and its neighbours above and below; the edges are repeated.
fn median() -> Result<CustomOp> {
    let kernel = CustomKernel { name: "median".into(), wgsl: MEDIAN.into(), max_iterations: 0.into(), flops: 0.into() };
    let op = CustomOp::new(kernel, |inputs: &[&TensorType]| {
        let [x] = inputs else { return Err(Error::internal("the text reads one operand")) };
        let (DType::F32, [rows, columns]) = (x.dtype, &x.shape[..]) else {
            return Err(Error::invalid(format!("the median is that of f32[rows, columns], {x} is given")));
        };
        let workgroups = Workgroups::Linear(x.num_elems().div_ceil(64) as u64);
        Ok(Launch { result: (*x).clone(), workgroups, params: vec![*rows as u32, *columns as u32] })
    })?;
    Ok(op.with_reference(|inputs: &[&RefTensor]| {
        let (x, columns) = (inputs[0], inputs[0].shape[1]);
        let value = |i: usize| {
            let (above, below) = (if i < columns { i } else { i - columns }, if i + columns < x.data.len() { i + columns } else { i });
            let mut three = [x.data[above], x.data[i], x.data[below]];
            three.sort_by(f64::total_cmp);
            three[1]
        };
        RefTensor::new(DType::F32, x.shape.clone(), (0..x.data.len()).map(value).collect())
    }))
}

fn main() -> Result<()> {
    let median = median()?;
    let weights = HostTensor::new([32, 48], (0..32 * 48).map(|i| (i as f32 * 0.3).sin()).collect::<Vec<f32>>())?;
    let graph = capture(|t| {
        let x = t.input("x", [100, 32], DType::F32)?;
        median.apply(&[&x.matmul(&t.constant(weights)?)?])?.add_scalar(1.0)?.mean(&[0], false)
    })?;

    let device = Device::open(&DeviceOptions::from_env())?;
    let compiled = compile(&graph, &device.target(), &CompileOptions::default())?;
    let session = Session::load(&device, &compiled)?;
    let x = HostTensor::new([100, 32], (0..3200).map(|i| (i as f32 * 1.7).cos()).collect::<Vec<f32>>())?;
    let y = session.run(&[("x", &x)])?.single()?;

    let expected = reference_graph(&graph, &[("x", x)])?.remove(0).1;
    let difference = Tolerance::Norm(1e-4).check(&y, &expected)?;
    println!("the largest difference from the reference is {:.1e}; the kernels:", difference.absolute);
    compiled.kernels().iter().for_each(|kernel| println!("  {} of {}", kernel.name, kernel.origins.join(", ")));
    Ok(())
}
