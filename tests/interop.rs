//! Pipelines of other people: a caller's device, buffers and encoder.

use std::sync::OnceLock;

use sublane::capture::capture;
use sublane::compiler::{CompileOptions, compile};
use sublane::device::{DeviceOptions, DeviceTensor, Recorder};
use sublane::graph::Graph;
use sublane::ops::prelude::*;
use sublane::wgpu;
use sublane::{DType, Device, ErrorKind, HostTensor, Session};

/// An adapter that the caller found. Instances stay until the process ends, as the drivers of Mesa need it.
fn adapter(backends: wgpu::Backends) -> wgpu::Adapter {
    static INSTANCES: OnceLock<[wgpu::Instance; 2]> = OnceLock::new();
    let instances = INSTANCES.get_or_init(|| {
        [wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12, wgpu::Backends::NOOP].map(|backends| {
            let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
            descriptor.backends = backends;
            descriptor.backend_options.noop.enable = backends == wgpu::Backends::NOOP;
            wgpu::Instance::new(descriptor)
        })
    });
    let instance = &instances[usize::from(backends == wgpu::Backends::NOOP)];
    pollster::block_on(instance.enumerate_adapters(backends)).into_iter().next().expect("these tests need an adapter")
}

fn open(adapter: &wgpu::Adapter, limits: wgpu::Limits) -> (wgpu::Device, wgpu::Queue) {
    let descriptor = wgpu::DeviceDescriptor { required_limits: limits, ..Default::default() };
    pollster::block_on(adapter.request_device(&descriptor)).expect("opens")
}

/// A caller's device with what Sublane can use, and Sublane on it.
fn theirs() -> (wgpu::Device, wgpu::Queue, Device) {
    let adapter = adapter(wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12);
    let options = DeviceOptions::default();
    let (device, queue) = pollster::block_on(adapter.request_device(&Device::descriptor(&adapter, &options))).expect("opens");
    let ours = Device::from_wgpu(&device, &queue, &options).expect("a device to work on");
    (device, queue, ours)
}

/// A product, a bias and a soft maximum: several kernels with a temporary between them.
fn model() -> Graph {
    capture(|t| {
        let weights = HostTensor::new([24, 10], (0..240).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<f32>>())?;
        let product = t.input("x", [6, 24], DType::F32)?.matmul(&t.constant(weights)?)?;
        Ok([("sum", product.add(&t.input("bias", [10], DType::F32)?)?), ("soft", product.softmax(-1)?)])
    })
    .expect("captured")
}

fn session(device: &Device) -> Session {
    Session::load(device, &compile(&model(), &device.target(), &CompileOptions::default()).expect("compiles")).expect("loads")
}

fn x(phase: f32) -> HostTensor {
    HostTensor::new([6, 24], (0..144).map(|i| (i as f32 * 0.11 + phase).cos()).collect::<Vec<f32>>()).expect("x")
}

fn bias() -> HostTensor {
    HostTensor::new([10], (0..10).map(|i| i as f32).collect::<Vec<f32>>()).expect("bias")
}

const TENSOR: wgpu::BufferUsages = wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

fn buffer(device: &wgpu::Device, size: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor { label: Some("theirs"), size, usage, mapped_at_creation: false })
}

#[test]
fn a_session_is_recorded_into_a_callers_encoder_between_the_callers_buffers() {
    let (device, queue, ours) = theirs();
    let session = session(&ours);
    let expected = |x: &HostTensor| session.run(&[("x", x), ("bias", &bias())]).expect("runs");
    let [first, second] = [x(0.0), x(1.0)];
    let (want_first, want_second) = (expected(&first), expected(&second));

    // The input's buffer is larger than the tensor, and is filled by the caller's own copy in the same submission.
    let (upload, at) = (buffer(&device, 1024, TENSOR), buffer(&device, 4096, TENSOR));
    let sum = DeviceTensor::from_buffer(&ours, &buffer(&device, 240, TENSOR), DType::F32, &[6, 10]).expect("a tensor");
    let soft = DeviceTensor::from_buffer(&ours, &buffer(&device, 512, TENSOR), DType::F32, &[6, 10]).expect("a tensor");
    let bias = DeviceTensor::upload(&ours, &bias()).expect("uploaded");
    let input = DeviceTensor::from_buffer(&ours, &at, DType::F32, &[6, 24]).expect("a tensor");
    let used = ours.used_bytes();
    for (value, want) in [(&first, &want_first), (&second, &want_second), (&first, &want_first)] {
        queue.write_buffer(&upload, 0, value.bytes());
        let mut encoder = device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(&upload, 0, &at, 0, 576);
        let mut recorder = Recorder::in_encoder(&mut encoder);
        session.record(&mut recorder, &[("x", &input), ("bias", &bias)], &[("sum", &sum), ("soft", &soft)]).expect("recorded");
        queue.submit([encoder.finish()]);
        assert_eq!(&sum.read().expect("read"), want.get("sum").expect("sum"));
        assert_eq!(&soft.read().expect("read"), want.get("soft").expect("soft"));
        assert!(ours.used_bytes() <= used, "recording allocates nothing");
    }
    // What a recording was given is the caller's again: a run writes elsewhere.
    let kept = sum.read().expect("read");
    assert_eq!(expected(&second), want_second);
    assert_eq!(sum.read().expect("read"), kept);
    assert_eq!(input.read().expect("read"), first);
}

#[test]
fn outputs_that_are_not_named_are_dropped_and_two_recordings_share_an_encoder() {
    let (device, queue, ours) = theirs();
    let session = session(&ours);
    let bias = DeviceTensor::upload(&ours, &bias()).expect("uploaded");
    let mut encoder = device.create_command_encoder(&Default::default());
    let pairs = [x(0.5), x(2.5)].map(|value| {
        let input = DeviceTensor::upload(&ours, &value).expect("uploaded");
        let soft = DeviceTensor::zeros(&ours, DType::F32, &[6, 10]).expect("zeros");
        let mut recorder = Recorder::in_encoder(&mut encoder);
        session.record(&mut recorder, &[("bias", &bias), ("x", &input)], &[("soft", &soft)]).expect("recorded");
        (value, soft)
    });
    queue.submit([encoder.finish()]);
    for (value, soft) in pairs {
        let want = session.run(&[("x", &value), ("bias", &self::bias())]).expect("runs");
        assert_eq!(&soft.read().expect("read"), want.get("soft").expect("soft"));
        // The caller reads it with wgpu alone.
        let raw: wgpu::Buffer = soft.into_buffer();
        assert!(raw.size() >= 240 && raw.usage().contains(TENSOR));
    }
}

/// A pass of the caller's own: doubles every element of a buffer in place.
fn doubling(device: &wgpu::Device, buffer: &wgpu::Buffer) -> (wgpu::ComputePipeline, wgpu::BindGroup) {
    let text = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(64)
        fn main(@builtin(global_invocation_id) at: vec3<u32>) { if (at.x < arrayLength(&x)) { x[at.x] *= 2.0; } }";
    let source = wgpu::ShaderSource::Wgsl(text.into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: Default::default(),
        cache: None,
    });
    let layout = pipeline.get_bind_group_layout(0);
    let entries = [wgpu::BindGroupEntry { binding: 0, resource: buffer.as_entire_binding() }];
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &entries });
    (pipeline, group)
}

#[test]
fn a_session_stands_between_passes_of_the_caller_in_one_encoder() {
    let (device, queue, ours) = theirs();
    let session = session(&ours);
    let value = x(0.25);
    let twice = HostTensor::new([6, 24], value.as_slice::<f32>().expect("f32").iter().map(|v| v * 2.0).collect::<Vec<f32>>()).expect("x");
    let want = session.run(&[("x", &twice), ("bias", &bias())]).expect("runs");
    let (input, output) = (buffer(&device, 576, TENSOR), buffer(&device, 240, TENSOR));
    queue.write_buffer(&input, 0, value.bytes());
    let tensors = [(&input, vec![6, 24]), (&output, vec![6, 10])]
        .map(|(raw, shape)| DeviceTensor::from_buffer(&ours, raw, DType::F32, &shape).expect("a tensor"));
    let bias = DeviceTensor::upload(&ours, &bias()).expect("uploaded");
    let (before, after) = (doubling(&device, &input), doubling(&device, &output));
    let mut encoder = device.create_command_encoder(&Default::default());
    let double = |encoder: &mut wgpu::CommandEncoder, (pipeline, group): &(wgpu::ComputePipeline, wgpu::BindGroup)| {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, group, &[]);
        pass.dispatch_workgroups(3, 1, 1);
    };
    double(&mut encoder, &before);
    let mut recorder = Recorder::in_encoder(&mut encoder);
    session.record(&mut recorder, &[("x", &tensors[0]), ("bias", &bias)], &[("sum", &tensors[1])]).expect("recorded");
    double(&mut encoder, &after);
    queue.submit([encoder.finish()]);
    let want: Vec<f32> = want.get("sum").expect("sum").as_slice::<f32>().expect("f32").iter().map(|v| v * 2.0).collect();
    assert_eq!(tensors[1].read().expect("read").as_slice::<f32>().expect("f32"), want);
}

#[test]
fn buffers_may_change_their_parts_from_one_recording_to_the_next() {
    let (device, queue, ours) = theirs();
    let graph = capture(|t| t.input("x", [6, 24], DType::F32)?.softmax(-1)).expect("captured");
    let session = Session::load(&ours, &compile(&graph, &ours.target(), &CompileOptions::default()).expect("compiles")).expect("loads");
    let (a, b) =
        (DeviceTensor::upload(&ours, &x(0.0)).expect("uploaded"), DeviceTensor::zeros(&ours, DType::F32, &[6, 24]).expect("zeros"));
    let name = session.compiled().outputs()[0].name.clone();
    let mut encoder = device.create_command_encoder(&Default::default());
    for (from, to) in [(&a, &b), (&b, &a), (&a, &b)] {
        session.record(&mut Recorder::in_encoder(&mut encoder), &[("x", from)], &[(&name, to)]).expect("recorded");
    }
    queue.submit([encoder.finish()]);
    let mut want = x(0.0);
    for _ in 0..3 {
        want = session.run(&[("x", &want)]).expect("runs").single().expect("one");
    }
    assert_eq!(b.read().expect("read"), want);
    // What is refused leaves the session as it was.
    let error =
        session.record(&mut Recorder::in_encoder(&mut device.create_command_encoder(&Default::default())), &[("x", &a)], &[(&name, &a)]);
    assert!(error.expect_err("refused").to_string().contains("are one buffer"));
    assert_eq!(session.run(&[("x", &x(0.0))]).expect("runs").single().expect("one").shape(), [6, 24]);
    assert_eq!(b.read().expect("read"), want);
}

/// The tensors that a recording of the model takes, each in a buffer of the caller.
fn lent(device: &wgpu::Device, ours: &Device) -> [(&'static str, wgpu::Buffer, DeviceTensor); 4] {
    [("x", vec![6, 24]), ("bias", vec![10]), ("sum", vec![6, 10]), ("soft", vec![6, 10])].map(|(name, shape): (_, Vec<usize>)| {
        let raw = buffer(device, 1024, TENSOR);
        let tensor = DeviceTensor::from_buffer(ours, &raw, DType::F32, &shape).expect("a tensor");
        (name, raw, tensor)
    })
}

#[test]
fn a_session_runs_though_the_buffers_that_were_lent_are_gone() {
    let (device, queue, ours) = theirs();
    let want = session(&ours).run(&[("x", &x(1.0)), ("bias", &bias())]).expect("runs");
    for gone in [&["x"][..], &["bias"], &["x", "sum"], &["bias", "soft"], &["sum", "soft"], &["x", "bias", "sum", "soft"]] {
        let session = session(&ours);
        let lent = lent(&device, &ours);
        let [x_lent, bias_lent, sum, soft] = &lent;
        queue.write_buffer(&x_lent.1, 0, x(0.0).bytes());
        let mut encoder = device.create_command_encoder(&Default::default());
        let inputs = [("x", &x_lent.2), ("bias", &bias_lent.2)];
        session.record(&mut Recorder::in_encoder(&mut encoder), &inputs, &[("sum", &sum.2), ("soft", &soft.2)]).expect("recorded");
        queue.submit([encoder.finish()]);
        let kept: Vec<_> = lent.iter().filter(|(name, ..)| !gone.contains(name)).map(|(_, _, t)| (t, t.read().expect("read"))).collect();
        lent.iter().filter(|(name, ..)| gone.contains(name)).for_each(|(_, raw, _)| raw.destroy());
        for _ in 0..2 {
            assert_eq!(session.run(&[("x", &x(1.0)), ("bias", &bias())]).expect("runs"), want, "without {gone:?}");
        }
        for (tensor, value) in kept {
            assert_eq!(tensor.read().expect("read"), value, "what is the caller's stays, without {gone:?}");
        }
    }
}

#[test]
fn a_run_that_fails_after_a_recording_changes_nothing() {
    let adapter = adapter(wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12);
    let options = DeviceOptions { memory_limit_bytes: Some(100_000), ..DeviceOptions::default() };
    let (device, queue) = pollster::block_on(adapter.request_device(&Device::descriptor(&adapter, &options))).expect("opens");
    let ours = Device::from_wgpu(&device, &queue, &options).expect("a device to work on");
    let (session, plain) = (session(&ours), session(&ours));
    let lent = lent(&device, &ours);
    let [x_lent, bias_lent, sum, soft] = &lent;
    queue.write_buffer(&x_lent.1, 0, x(0.0).bytes());
    let mut encoder = device.create_command_encoder(&Default::default());
    let inputs = [("x", &x_lent.2), ("bias", &bias_lent.2)];
    session.record(&mut Recorder::in_encoder(&mut encoder), &inputs, &[("sum", &sum.2), ("soft", &soft.2)]).expect("recorded");
    queue.submit([encoder.finish()]);
    let kept = lent.each_ref().map(|(_, _, tensor)| tensor.read().expect("read"));
    // Room for one of the outputs, for both, for an input too.
    for room in [256, 512, 1152] {
        let free = 100_000 - ours.used_bytes() - room;
        let filler = DeviceTensor::zeros(&ours, DType::U8, &[free as usize / 16 * 16]).expect("fits");
        let error = session.run(&[("x", &x(1.0)), ("bias", &bias())]).expect_err("no memory");
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        drop(filler);
    }
    let want = plain.run(&[("x", &x(1.0)), ("bias", &bias())]).expect("runs");
    for _ in 0..2 {
        assert_eq!(session.run(&[("x", &x(1.0)), ("bias", &bias())]).expect("runs"), want);
    }
    assert_eq!(lent.each_ref().map(|(_, _, tensor)| tensor.read().expect("read")), kept, "the caller's tensors are left alone");
}

#[test]
fn a_donated_input_is_written_over_and_both_recordings_of_an_encoder_stay_right() {
    let (device, queue, ours) = theirs();
    let graph = capture(|t| {
        let (x, w) = (t.input("x", [6, 24], DType::F32)?, t.input("w", [24, 24], DType::F32)?);
        // Products before and after, so that x is not needed when the result is written.
        Ok([("y", x.matmul(&w)?.softmax(-1)?.matmul(&w)?)])
    });
    let graph = graph.expect("captured");
    let options = CompileOptions { donate: vec!["x".into()], ..CompileOptions::default() };
    let compiled = compile(&graph, &ours.target(), &options).expect("compiles");
    assert_eq!(compiled.inputs()[0].slot, compiled.outputs()[0].slot, "the result takes the memory of x");
    let session = Session::load(&ours, &compiled).expect("loads");
    let plain = Session::load(&ours, &compile(&graph, &ours.target(), &CompileOptions::default()).expect("compiles")).expect("loads");
    let weights = HostTensor::new([24, 24], (0..576).map(|i| (i as f32 * 0.7).sin()).collect::<Vec<f32>>()).expect("w");
    let w = DeviceTensor::upload(&ours, &weights).expect("uploaded");
    let given = [x(0.1), x(0.2)].map(|value| (DeviceTensor::upload(&ours, &value).expect("uploaded"), value));
    let mut encoder = device.create_command_encoder(&Default::default());
    let mut recorder = Recorder::in_encoder(&mut encoder);
    session.record(&mut recorder, &[("x", &given[0].0), ("w", &w)], &[]).expect("recorded");
    session.record(&mut recorder, &[("x", &given[1].0), ("w", &w)], &[("y", &given[1].0)]).expect("recorded");
    let elsewhere =
        session.record(&mut recorder, &[("x", &given[0].0), ("w", &w)], &[("y", &given[1].0)]).expect_err("refused").to_string();
    assert!(elsewhere.contains("output `y` lies in the memory of another"), "{elsewhere}");
    queue.submit([encoder.finish()]);
    for (tensor, value) in &given {
        let want = plain.run(&[("x", value), ("w", &weights)]).expect("runs").single().expect("one");
        assert_eq!(tensor.read().expect("read"), want);
    }
}

#[test]
fn a_callers_device_with_default_limits_and_no_features_runs_sessions() {
    let adapter = adapter(wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12);
    let (device, queue) = open(&adapter, wgpu::Limits::defaults());
    // The options ask for everything; what the device was not opened with is left alone.
    let ours = Device::from_wgpu(&device, &queue, &DeviceOptions::default()).expect("a device");
    let (target, info) = (ours.target(), ours.info());
    assert!(!target.f16 && !target.subgroups && !target.int64 && info.features.is_empty(), "{info:?}");
    assert_eq!(target.max_binding_bytes, 128 << 20);
    assert!(target.max_storage_buffers <= 8 && target.max_workgroup_invocations == 256 && target.max_workgroup_bytes == 16 << 10);
    assert_eq!(ours.wgpu_device(), &device);
    assert_eq!(ours.wgpu_queue(), &queue);
    let outputs = session(&ours).run(&[("x", &x(0.75)), ("bias", &bias())]).expect("runs");
    let reference = sublane::ops::reference_graph(&model(), &[("x", x(0.75)), ("bias", bias())]).expect("reference");
    for ((name, got), (_, want)) in outputs.iter().zip(&reference) {
        let got = got.to_f64();
        let far = got.iter().zip(&want.data).any(|(a, b)| (a - b).abs() > 1e-4 * (1.0 + b.abs()));
        assert!(!far, "{name}: {got:?} against {:?}", want.data);
    }
}

#[test]
fn what_does_not_fit_is_an_error_that_says_so() {
    let (device, _, ours) = theirs();
    let tensor = |size, usage, shape: &[usize]| {
        let error = DeviceTensor::from_buffer(&ours, &buffer(&device, size, usage), DType::F32, shape).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        error.to_string()
    };
    let usage = tensor(64, wgpu::BufferUsages::STORAGE, &[4]);
    assert!(usage.contains("lacks the usage COPY_SRC | COPY_DST"), "{usage}");
    let size = tensor(20, TENSOR, &[5]);
    assert!(size.contains("takes a buffer of 32 bytes") && size.contains("has 20"), "{size}");
    let other = theirs().0;
    let foreign = DeviceTensor::from_buffer(&ours, &buffer(&other, 64, TENSOR), DType::F32, &[4]).expect_err("refused");
    assert_eq!(foreign.kind(), ErrorKind::InvalidArgument, "{foreign}");

    let session = session(&ours);
    let make = |shape: &[usize]| DeviceTensor::zeros(&ours, DType::F32, shape).expect("zeros");
    let (x, bias, sum) = (make(&[6, 24]), make(&[10]), make(&[6, 10]));
    let mut encoder = device.create_command_encoder(&Default::default());
    let mut recorder = Recorder::in_encoder(&mut encoder);
    let mut record = |inputs: &[(&str, &DeviceTensor)], outputs: &[(&str, &DeviceTensor)]| {
        session.record(&mut recorder, inputs, outputs).expect_err("refused").to_string()
    };
    let all = [("x", &x), ("bias", &bias)];
    let message = record(&all[..1], &[]);
    assert!(message.contains("input `bias` f32[10] is missing"), "{message}");
    let message = record(&all, &[("y", &sum)]);
    assert!(message.contains("no output is called `y`") && message.contains("`sum` f32[6, 10]"), "{message}");
    let message = record(&all, &[("sum", &x)]);
    assert!(message.contains("output `sum` is f32[6, 10], f32[6, 24] is given"), "{message}");
    let message = record(&[("x", &x), ("x", &x), ("bias", &bias)], &[]);
    assert!(message.contains("input `x` is given twice"), "{message}");
    // Two tensors over one buffer of the caller are one place in memory.
    let raw = buffer(&device, 1024, TENSOR);
    let over = |shape: &[usize]| DeviceTensor::from_buffer(&ours, &raw, DType::F32, shape).expect("a tensor");
    let message = record(&[("x", &over(&[6, 24])), ("bias", &bias)], &[("sum", &over(&[6, 10]))]);
    assert!(message.contains("are one buffer"), "{message}");
    let elsewhere = Device::open(&DeviceOptions::from_env()).expect("opens");
    let strange = DeviceTensor::zeros(&elsewhere, DType::F32, &[10]).expect("zeros");
    let message = record(&[("x", &x), ("bias", &strange)], &[]);
    assert!(message.contains("another device"), "{message}");
}

#[test]
fn a_device_below_the_default_limits_is_refused_with_what_is_missing() {
    let adapter = adapter(wgpu::Backends::NOOP);
    let limits = wgpu::Limits { max_storage_buffers_per_shader_stage: 4, max_compute_workgroup_size_x: 64, ..wgpu::Limits::defaults() };
    let (device, queue) = open(&adapter, limits);
    let error = Device::from_wgpu(&device, &queue, &DeviceOptions::default()).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Limit);
    let message = error.to_string();
    for part in ["max_storage_buffers_per_shader_stage is 4, needed is 8", "max_compute_workgroup_size_x is 64, needed is 256"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(!message.contains("max_buffer_size"), "{message}");

    let (device, queue) = open(&adapter, wgpu::Limits::defaults());
    let ours = Device::from_wgpu(&device, &queue, &DeviceOptions::default()).expect("a device");
    assert_eq!(ours.info().features, [] as [&str; 0], "features that it was not opened with are left alone");
    ours.report_lost("the window was closed");
    let error = ours.buffer("b", 16).expect_err("refused");
    assert!(error.kind() == ErrorKind::DeviceLost && error.to_string().contains("the window was closed"), "{error}");
}
