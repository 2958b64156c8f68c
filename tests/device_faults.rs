//! What goes wrong on a device is an error value of the right kind, and the device stays usable.

mod device_common;

use std::sync::Arc;

use device_common::*;
use sublane::device::{Device, DeviceOptions, DeviceTensor, Executor, adapters};
use sublane::plan::{Command, ExecutionPlan, SlotRole};
use sublane::{DType, Error, ErrorKind};

fn works(device: &Device) {
    let (plan, x, y) = affine_plan(33, 1);
    let out = Executor::load(device, &plan).expect("loads").run(&[(x, bytes(&[2; 33]))], &[y]).expect("runs");
    if device.info().backend != "noop" {
        assert_eq!(words(&out[0]), vec![7; 33]);
    }
}

fn refused(device: &Device, plan: &ExecutionPlan) -> Error {
    let used = device.used_bytes();
    let error = Executor::load(device, plan).expect_err("refused");
    assert_eq!(device.used_bytes(), used, "nothing is kept of what did not load");
    works(device);
    error
}

fn says(error: &Error, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "`{word}` is not in: {error}");
    }
}

#[test]
fn unknown_adapters_are_named_with_those_there_are() {
    let names = adapters();
    assert!(!names.is_empty(), "these tests need an adapter");
    for wanted in ["no such adapter", "99"] {
        let options = DeviceOptions { adapter: Some(wanted.into()), ..DeviceOptions::default() };
        says(&Device::open(&options).expect_err("refused"), ErrorKind::NoAdapter, &[wanted, &names[0].name]);
    }
    let options = DeviceOptions { adapter: Some("0".into()), ..DeviceOptions::default() };
    assert_eq!(Device::open(&options).expect("opens").info().name, names[0].name);
    let options = DeviceOptions { adapter: Some(names[0].name[..4].to_uppercase()), ..DeviceOptions::default() };
    assert_eq!(Device::open(&options).expect("opens").info().name, names[0].name);
}

/// Set for the test's own child process, whose drivers are hidden.
const WITHOUT_DRIVERS: &str = "SUBLANE_TEST_WITHOUT_DRIVERS";

#[test]
fn without_an_adapter_the_error_says_what_to_install() {
    if std::env::var_os(WITHOUT_DRIVERS).is_some() {
        let error = Device::open(&DeviceOptions::default()).expect_err("no driver is visible");
        says(&error, ErrorKind::NoAdapter, &["vulkan", "gl", "mesa-vulkan-drivers"]);
        assert!(adapters().is_empty());
        return;
    }
    if cfg!(not(target_os = "linux")) {
        return;
    }
    let nowhere = "/nonexistent";
    let child = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "without_an_adapter_the_error_says_what_to_install"])
        .env(WITHOUT_DRIVERS, "1")
        .envs([("VK_ICD_FILENAMES", nowhere), ("VK_DRIVER_FILES", nowhere), ("__EGL_VENDOR_LIBRARY_DIRS", nowhere)])
        .output()
        .expect("starts");
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"));
}

#[test]
fn bad_wgsl_names_the_kernel_and_the_place() {
    let device = open();
    let cases = [
        ("broken", "@compute @workgroup_size(1) fn broken() { let x = ; }"),
        ("mistyped", "@compute @workgroup_size(1) fn mistyped() { let x: u32 = 1.5; }"),
        ("missing", "@compute @workgroup_size(1) fn another_name() {}"),
        (
            "unlike",
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>; @group(0) @binding(3) var<storage, read_write> z: array<u32>;
             @compute @workgroup_size(1) fn unlike() { y[0] = z[0]; }",
        ),
    ];
    for (name, wgsl) in cases {
        let mut plan = ExecutionPlan::new();
        let y = plan.slot("y", 4, SlotRole::Output);
        plan.dispatch(&kernel(name, wgsl, &[("y", true)], 0, 1), &[y], &[], [1, 1, 1]);
        says(&refused(&device, &plan), ErrorKind::Shader, &[name]);
    }
}

#[test]
fn memory_past_the_limit_is_refused_with_sizes() {
    let options = DeviceOptions { memory_limit_bytes: Some(1 << 20), ..DeviceOptions::from_env() };
    let device = Device::open(&options).expect("these tests need an adapter");
    let (plan, ..) = affine_plan(200_000, 1);
    says(&refused(&device, &plan), ErrorKind::OutOfMemory, &["800000", "1048576", "`y`"]);
    let held = DeviceTensor::zeros(&device, DType::U8, &[1 << 20]).expect("just fits");
    let error = DeviceTensor::zeros(&device, DType::U8, &[1]).expect_err("refused");
    says(&error, ErrorKind::OutOfMemory, &["1048576"]);
    drop(held);
    works(&device);
}

#[test]
fn buffers_and_bindings_past_the_limits_are_refused() {
    let device = open();
    let limits = device.info().limits.clone();
    let error = device.buffer("huge", limits.max_buffer_bytes.saturating_add(1)).expect_err("refused");
    says(&error, ErrorKind::Limit, &["huge", &limits.max_buffer_bytes.to_string()]);
    says(&device.buffer("endless", u64::MAX).expect_err("refused"), ErrorKind::Limit, &["endless"]);

    let device = Device::noop().expect("opens");
    let mut plan = ExecutionPlan::new();
    let x = plan.slot("long", (128 << 20) + 4, SlotRole::Input);
    let y = plan.slot("y", 4, SlotRole::Output);
    plan.dispatch(&affine(), &[x, y], &[1, 1], [1, 1, 1]);
    says(&refused(&device, &plan), ErrorKind::Limit, &["`long`", "134217744", "134217728"]);
}

#[test]
fn kernels_past_the_limits_are_refused() {
    let device = Device::noop().expect("opens");
    let load = |change: &dyn Fn(&mut kernels_gen::KernelSource), workgroups| {
        let mut source = (*affine()).clone();
        change(&mut source);
        let mut plan = ExecutionPlan::new();
        let x = plan.slot("x", 64, SlotRole::Input);
        let y = plan.slot("y", 64, SlotRole::Output);
        plan.dispatch(&Arc::new(source), &[x, y], &[1, 1], workgroups);
        refused(&device, &plan)
    };
    says(&load(&|_| {}, [65_536, 1, 1]), ErrorKind::Limit, &["65536", "65535"]);
    says(&load(&|s| s.workgroup_size = [512, 1, 1], [1, 1, 1]), ErrorKind::Limit, &["512", "256"]);
    says(&load(&|s| s.workgroup_bytes = 16_385, [1, 1, 1]), ErrorKind::Limit, &["16385", "16384"]);
    says(&load(&|s| s.features.f16 = true, [1, 1, 1]), ErrorKind::Unsupported, &["f16"]);

    let mut plan = ExecutionPlan::new();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let slots: Vec<_> = names.iter().map(|n| plan.slot(*n, 16, SlotRole::State)).collect();
    let bindings: Vec<(&str, bool)> = names.iter().map(|&n| (n, true)).collect();
    plan.dispatch(&kernel("wide", "", &bindings, 0, 1), &slots, &[], [1, 1, 1]);
    says(&refused(&device, &plan), ErrorKind::Limit, &["`wide`", "8 storage buffers", "limit 7"]);
}

#[test]
fn loops_past_the_bound_are_refused_and_loops_at_it_are_right() {
    for device in [open(), Device::noop().expect("opens")] {
        let plan = |outer: u32, inner: u32| {
            let mut plan = ExecutionPlan::new();
            let y = plan.slot("y", 8, SlotRole::Output);
            plan.dispatch(&looping(), &[y], &[outer, inner], [1, 1, 1]);
            (plan, y)
        };
        let Some(bound) = device.info().limits.max_loop_iterations else { continue };
        assert_eq!(device.target().max_loop_iterations, Some(bound));
        let bound = bound as u32;
        for inner in [0, 1, 2, 254, 1000, bound - 3] {
            let outer = (bound - 1) / (inner + 2);
            let over = (outer + 1) * (inner + 2) + 1;
            let error = refused(&device, &plan(outer + 1, inner).0);
            says(&error, ErrorKind::Limit, &["`looping`", &over.to_string(), &bound.to_string()]);
            let (at, y) = plan(outer, inner);
            let out = Executor::load(&device, &at).expect("loads").run(&[], &[y]).expect("runs");
            if device.info().backend != "noop" {
                assert_eq!(words(&out[0]), [outer, outer * inner]);
            }
        }
    }
}

#[test]
fn a_lost_device_is_an_error_and_a_new_one_works() {
    let device = open();
    let (plan, x, y) = affine_plan(1 << 20, 1);
    let executor = Executor::load(&device, &plan).expect("loads");
    let input = vec![1; 1 << 20];
    let tensor = DeviceTensor::zeros(&device, DType::F32, &[8]).expect("fits");
    let pending = executor.submit(&[(x, bytes(&input))], &[y]).expect("starts");
    device.destroy();
    let lost = |result: Result<(), Error>| says(&result.expect_err("lost"), ErrorKind::DeviceLost, &["destroyed"]);
    lost(pending.wait().map(drop));
    lost(executor.run(&[(x, bytes(&input))], &[y]).map(drop));
    lost(pollster::block_on(executor.run_async(&[], &[y])).map(drop));
    lost(executor.enqueue(&[]));
    lost(executor.profile(&[]).map(drop));
    lost(tensor.read().map(drop));
    lost(device.buffer("more", 16).map(drop));
    lost(Executor::load(&device, &plan).map(drop));
    lost(device.check_alive());
    works(&open());
}

#[test]
fn malformed_plans_are_refused() {
    let device = open();
    let (mut plan, x, y) = affine_plan(4, 1);
    plan.dispatch(&affine(), &[x], &[1, 1], [1, 1, 1]);
    plan.dispatch(&affine(), &[y, y], &[1, 1], [1, 1, 1]);
    plan.commands.push(Command::Clear { slot: x });
    plan.commands.push(Command::Copy { from: y, from_offset: 0, to: x, to_offset: 0, bytes: 4 });
    let faults = ["command 1", "command 2", "command 3: clears", "command 4: copies"];
    says(&refused(&device, &plan), ErrorKind::Internal, &faults);
}

#[test]
fn the_noop_device_loads_and_runs_plans() {
    let device = Device::noop().expect("opens");
    assert_eq!(device.info().backend, "noop");
    assert_eq!(device.target().max_storage_buffers, 7);
    for n in [0, 1, 257, 65_535 * 64 + 65] {
        let (plan, x, y) = affine_plan(n, 1);
        let executor = Executor::load(&device, &plan).expect("loads");
        let input = vec![1; n as usize];
        let out = executor.run(&[(x, bytes(&input))], &[y, x]).expect("runs");
        // It runs no kernel, but copies as any device does.
        assert_eq!(words(&out[1]), input);
        assert_eq!(out[0].len(), n as usize * 4);
        executor.profile(&[]).expect("runs");
        pollster::block_on(executor.run_async(&[], &[y])).expect("runs");
    }
}

#[test]
fn a_graph_past_the_memory_limit_is_refused_before_it_is_copied() {
    use sublane::motifs::graph::GenerateOptions;
    use sublane::motifs::{CountOptions, Engine, Motif, TemporalGraph, count};
    use sublane::progress::Work;

    let options = DeviceOptions { memory_limit_bytes: Some(48 << 20), ..DeviceOptions::from_env() };
    let device = Device::open(&options).expect("these tests need an adapter");
    let graph = |edges| TemporalGraph::generate(&GenerateOptions::new(edges), &Work::quiet()).expect("generates");
    let motif = Motif::parse("M3-0").expect("named");
    let counted =
        |graph: &TemporalGraph, engine: Engine| count(graph, &motif, &CountOptions { engine, ..CountOptions::new(86_400) }, &Work::quiet());
    let error = counted(&graph(200_000), Engine::Gpu(device.clone())).expect_err("too large");
    says(&error, ErrorKind::OutOfMemory, &["200000 edges", "memory limit of 50331648", "--engine cpu"]);
    assert_eq!(device.used_bytes(), 0);
    let small = graph(2_000);
    let [on_device, on_host] = [Engine::Gpu(device), Engine::Cpu].map(|engine| counted(&small, engine).expect("counts").value);
    assert_eq!(on_device, on_host);
}

/// `a` of 100 words and `b` of 10,000 from an input of 10,000: where memory is short, there is room for the one and not for the other.
fn two_outputs() -> (ExecutionPlan, [sublane::plan::SlotId; 3]) {
    let mut plan = ExecutionPlan::new();
    let x = plan.slot("x", 40_000, SlotRole::Input);
    let a = plan.slot("a", 400, SlotRole::Output);
    let b = plan.slot("b", 40_000, SlotRole::Output);
    plan.dispatch(&affine(), &[x, a], &[100, 1], [2, 1, 1]);
    plan.dispatch(&affine(), &[x, b], &[10_000, 2], [157, 1, 1]);
    (plan, [x, a, b])
}

#[test]
fn what_fails_for_want_of_memory_leaves_the_executor_as_it_was() {
    let options = DeviceOptions { memory_limit_bytes: Some(400_000), ..DeviceOptions::from_env() };
    let device = Device::open(&options).expect("these tests need an adapter");
    let (plan, [x, a, b]) = two_outputs();
    let input = |value: u32| vec![value; 10_000];
    let right = |executor: &Executor, value: u32| {
        let out = executor.run(&[(x, bytes(&input(value)))], &[a, b]).expect("runs");
        assert_eq!((words(&out[0]), words(&out[1])), (vec![3 * value + 1; 100], vec![3 * value + 2; 10_000]));
    };
    let given = DeviceTensor::zeros(&device, DType::U32, &[10_000]).expect("fits");
    type Way = fn(&Executor, &DeviceTensor, [sublane::plan::SlotId; 3], &[u8]) -> Result<(), Error>;
    let ways: [(&str, Way); 6] = [
        ("run", |e, _, [x, a, b], data| e.run(&[(x, data)], &[a, b]).map(drop)),
        ("submit", |e, _, [x, ..], data| e.submit(&[(x, data)], &[]).map(drop)),
        ("enqueue", |e, _, [x, ..], data| e.enqueue(&[(x, data)])),
        ("profile", |e, _, [x, ..], data| e.profile(&[(x, data)]).map(drop)),
        ("run_on", |e, given, [x, ..], _| e.run_on(&[(x, given)], &[], &[]).map(drop)),
        ("write", |e, _, [_, _, b], data| e.write(b, data)),
    ];
    for (name, way) in ways {
        let executor = Executor::load(&device, &plan).expect("loads");
        right(&executor, 2);
        let held = [(a, 100), (b, 10_000)].map(|(slot, n)| executor.slot_tensor(slot, DType::U32, &[n]).expect("a tensor"));
        let free = 400_000 - device.used_bytes() - 2_000;
        let filler = DeviceTensor::zeros(&device, DType::U8, &[free as usize / 16 * 16]).expect("fits");
        let used = device.used_bytes();
        for _ in 0..2 {
            let error = way(&executor, &given, [x, a, b], bytes(&input(5))).expect_err("no memory");
            says(&error, ErrorKind::OutOfMemory, &["`b`"]);
            assert_eq!(device.used_bytes(), used, "{name}");
        }
        drop(filler);
        assert_eq!(words(&executor.read(a).expect("read")), vec![7; 100], "{name}: what the last run gave is still there");
        drop(held);
        right(&executor, 4);
        right(&executor, 5);
    }
}

#[test]
fn a_tensor_of_an_output_keeps_its_value_when_the_slot_is_written() {
    let device = open();
    let (plan, x, y) = affine_plan(33, 1);
    let executor = Executor::load(&device, &plan).expect("loads");
    executor.run(&[(x, bytes(&[2; 33]))], &[]).expect("runs");
    let held = executor.slot_tensor(y, DType::U32, &[33]).expect("a tensor");
    executor.write(y, bytes(&[9; 33])).expect("written");
    assert_eq!(words(&executor.read(y).expect("read")), vec![9; 33]);
    assert_eq!(held.read().expect("read").as_slice::<u32>().expect("u32"), vec![7; 33]);
}

#[test]
fn a_buffer_shorter_than_the_array_of_a_text_is_refused_at_load() {
    let device = open();
    let wgsl = "@group(0) @binding(0) var<storage, read_write> y: array<u32, 1000>;
        @compute @workgroup_size(1) fn long_array() { y[0] = 1u; }";
    let mut plan = ExecutionPlan::new();
    let y = plan.slot("y", 64, SlotRole::Output);
    plan.dispatch(&kernel("long_array", wgsl, &[("y", true)], 0, 1), &[y], &[], [1, 1, 1]);
    says(&refused(&device, &plan), ErrorKind::Internal, &["long_array", "4000"]);
}

#[test]
fn a_fault_of_the_callers_own_is_told_once_and_as_such() {
    use sublane::wgpu::{BufferDescriptor, BufferUsages};
    let device = open();
    let wrong =
        BufferDescriptor { label: None, size: 16, usage: BufferUsages::MAP_READ | BufferUsages::MAP_WRITE, mapped_at_creation: false };
    let _ = device.wgpu_device().create_buffer(&wrong);
    let error = device.buffer("ours", 16).expect_err("told");
    says(&error, ErrorKind::Internal, &["before allocating 16 bytes for `ours`, something else than Sublane used the device wrongly"]);
    works(&device);
}
