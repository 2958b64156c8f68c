//! Sublane inside another program's GPU pipeline: the program opens the device, owns the buffers and records one submission, in which a
//! pass of its own prepares the input, a compiled graph takes it from there, and a copy of its own follows. Nothing visits the host in
//! between.

use sublane::capture::capture;
use sublane::compiler::{CompileOptions, compile};
use sublane::device::{DeviceOptions, DeviceTensor, Recorder};
use sublane::ops::prelude::*;
use sublane::{DType, Device, Error, HostTensor, Result, Session, wgpu};

const ROWS: usize = 64;
const COLUMNS: usize = 100;

/// The program's own kernel: a ramp into the buffer that the graph reads.
const RAMP: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64)
fn ramp(@builtin(global_invocation_id) at: vec3<u32>) {
    if (at.x < 6400u) { x[at.x] = f32(at.x % 100u) * 0.05; }
}";

fn main() -> Result<()> {
    // The program's device, opened with what Sublane can use. One that was opened with WebGPU's default limits works as well.
    let options = DeviceOptions::default();
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))
        .map_err(|error| Error::invalid(format!("no adapter: {error}")))?;
    let (device, queue) = pollster::block_on(adapter.request_device(&Device::descriptor(&adapter, &options)))
        .map_err(|error| Error::invalid(format!("{} does not open: {error}", adapter.get_info().name)))?;

    // Sublane on that device.
    let sublane = Device::from_wgpu(&device, &queue, &options)?;
    let graph = capture(|t| Ok([("y", t.input("x", [ROWS, COLUMNS], DType::F32)?.softmax(-1)?)]))?;
    let session = Session::load(&sublane, &compile(&graph, &sublane.target(), &CompileOptions::default())?)?;

    // The program's buffers, which become tensors without a copy.
    let bytes = (ROWS * COLUMNS * 4) as u64;
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let buffer = |usage| device.create_buffer(&wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false });
    let (input, output) = (buffer(usage), buffer(usage));
    let read_back = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let x = DeviceTensor::from_buffer(&sublane, &input, DType::F32, &[ROWS, COLUMNS])?;
    let y = DeviceTensor::from_buffer(&sublane, &output, DType::F32, &[ROWS, COLUMNS])?;

    // One encoder: the program's pass, the graph, the program's copy.
    let source = wgpu::ShaderSource::Wgsl(RAMP.into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("ramp"), source });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("ramp"),
        layout: None,
        module: &module,
        entry_point: Some("ramp"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: input.as_entire_binding() }],
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(100, 1, 1);
    }
    session.record(&mut Recorder::in_encoder(&mut encoder), &[("x", &x)], &[("y", &y)])?;
    encoder.copy_buffer_to_buffer(&output, 0, &read_back, 0, bytes);
    queue.submit([encoder.finish()]);

    // The program reads its buffer as it always did.
    read_back.map_async(wgpu::MapMode::Read, .., |_| {});
    device.poll(wgpu::PollType::wait_indefinitely()).map_err(|error| Error::invalid(format!("the device did not finish: {error}")))?;
    let mapped = read_back.get_mapped_range(..).map_err(|error| Error::invalid(format!("the copy was not mapped: {error}")))?;
    let recorded = HostTensor::from_bytes(DType::F32, [ROWS, COLUMNS], &mapped)?;
    drop(mapped);

    let ramp: Vec<f32> = (0..ROWS * COLUMNS).map(|i| (i % COLUMNS) as f32 * 0.05).collect();
    let run = session.run(&[("x", &HostTensor::new([ROWS, COLUMNS], ramp)?)])?.single()?;
    let difference = recorded.to_f64().iter().zip(run.to_f64()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("on {}: the recorded result differs from a run by {difference:.1e}", sublane.info().name);
    if difference > 1e-6 {
        return Err(Error::invalid("the recorded result is another one than a run's"));
    }
    Ok(())
}
