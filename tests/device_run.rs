//! Plans on the adapter of the machine: results, sizes, bound tensors, threads, futures, times.

mod device_common;

use std::sync::Arc;

use device_common::*;
use futures::FutureExt;
use sublane::device::{Clock, Device, DeviceOptions, DeviceTensor, Executor, LimitsMode, MAX_IN_FLIGHT};
use sublane::plan::{Command, ExecutionPlan, SlotRange, SlotRole};
use sublane::{DType, ErrorKind, HostTensor};

fn expected(x: &[u32], add: u32) -> Vec<u32> {
    x.iter().map(|&v| v.wrapping_mul(3).wrapping_add(add)).collect()
}

fn numbers(n: u32) -> Vec<u32> {
    (0..n).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

#[test]
fn awkward_sizes_and_poisoned_outputs() {
    let device = open();
    for n in [0, 1, 3, 64, 257] {
        let (plan, x, y) = affine_plan(n, 7);
        let executor = Executor::load(&device, &plan).expect("loads");
        executor.write(y, bytes(&vec![0xdead_beef; n as usize])).expect("writes");
        let input = numbers(n);
        let out = executor.run(&[(x, bytes(&input))], &[y]).expect("runs");
        assert_eq!(words(&out[0]), expected(&input, 7), "{n} words");
    }
}

#[test]
fn more_than_65535_workgroups() {
    let device = open();
    let n = 65_535 * 64 + 65;
    let (plan, x, y) = affine_plan(n, 1);
    let input = numbers(n);
    let out = Executor::load(&device, &plan).expect("loads").run(&[(x, bytes(&input))], &[y]).expect("runs");
    assert_eq!(words(&out[0]), expected(&input, 1));
}

#[test]
fn webgpu_limits_and_native_limits_agree() {
    let options = DeviceOptions { limits: LimitsMode::Webgpu, ..DeviceOptions::from_env() };
    let device = Device::open(&options).expect("these tests need an adapter");
    assert_eq!(device.target().max_storage_buffers, 7);
    assert_eq!(device.target().max_binding_bytes, 128 << 20);
    assert!(!device.target().f16 && !device.target().subgroups);
    assert_eq!(device.info().features, [] as [&str; 0]);
    assert_eq!(device.info().clock, Clock::Host);
    let (plan, x, y) = affine_plan(257, 5);
    let input = numbers(257);
    let executor = Executor::load(&device, &plan).expect("loads");
    assert_eq!(words(&executor.run(&[(x, bytes(&input))], &[y]).expect("runs")[0]), expected(&input, 5));
    let profile = executor.profile(&[]).expect("runs");
    assert_eq!((profile.clock, profile.commands.len()), (Clock::Host, 1));
}

#[test]
fn optional_features_can_be_switched_off() {
    let options = DeviceOptions { timestamps: false, f16: false, subgroups: false, ..DeviceOptions::from_env() };
    let device = Device::open(&options).expect("these tests need an adapter");
    assert!(!device.target().f16 && !device.target().subgroups);
    assert_eq!(device.info().clock, Clock::Host);
    for feature in ["timestamps", "f16", "subgroups"] {
        assert!(!device.info().features.contains(&feature));
    }
}

#[test]
fn copies_clears_states_ranges_and_overrides() {
    let device = open();
    let mut plan = ExecutionPlan::new();
    let constant = plan.slot("constant", 1024, SlotRole::Constant(Arc::new(bytes(&numbers(200)).to_vec())));
    let state = plan.slot("state", 1024, SlotRole::State);
    let temp = plan.slot("temp", 1024, SlotRole::Temp);
    let wgsl = "
override scale: u32 = 1u;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn accumulate(@builtin(global_invocation_id) gid: vec3<u32>) {
    y[gid.x] += scale * x[gid.x] + arrayLength(&x);
}
";
    let mut source = (*kernel("accumulate", wgsl, &[("x", false), ("y", true)], 0, 64)).clone();
    source.overrides = vec![("scale".into(), 5f64.to_bits())];
    let id = plan.kernel(&Arc::new(source));
    plan.commands.push(Command::Clear { slot: temp });
    // 64 words of the constant from word 64 on, onto the same words of `temp`, then all of `temp` into `state`.
    let range = |slot| SlotRange { slot, offset_bytes: 256, len_bytes: Some(256) };
    let bindings = vec![range(constant), range(temp)];
    plan.commands.push(Command::Dispatch { kernel: id, bindings, params: vec![], workgroups: [1, 1, 1] });
    plan.commands.push(Command::Dispatch { kernel: id, bindings: vec![temp.into(), state.into()], params: vec![], workgroups: [0, 1, 1] });
    plan.commands.push(Command::Dispatch { kernel: id, bindings: vec![temp.into(), state.into()], params: vec![], workgroups: [4, 1, 1] });
    plan.commands.push(Command::Copy { from: constant, from_offset: 0, to: state, to_offset: 1020, bytes: 4 });
    let executor = Executor::load(&device, &plan).expect("loads");
    executor.run(&[], &[]).expect("runs");
    let second = words(&executor.run(&[], &[state]).expect("runs")[0]);

    let x = numbers(256);
    let temp_at = |i: usize| if (64..128).contains(&i) { 5u32.wrapping_mul(x[i]).wrapping_add(64) } else { 0 };
    for (i, &got) in second.iter().enumerate().take(255) {
        let once = 5u32.wrapping_mul(temp_at(i)).wrapping_add(256);
        assert_eq!(got, once.wrapping_mul(2), "word {i}");
    }
    assert_eq!(second[255], x[0]);
}

#[test]
fn dispatches_get_other_parameters_and_workgroups() {
    let device = open();
    let mut plan = ExecutionPlan::new();
    let x = plan.slot("x", 1024, SlotRole::Input);
    let [y, z] = ["y", "z"].map(|name| plan.slot(name, 1024, SlotRole::State));
    plan.commands.push(Command::Clear { slot: z });
    plan.dispatch(&affine(), &[x, y], &[256, 1], [4, 1, 1]);
    plan.dispatch(&affine(), &[x, z], &[256, 1], [0, 1, 1]);
    plan.dispatch(&looping(), &[z], &[0, 0], [0, 1, 1]);
    let executor = Executor::load(&device, &plan).expect("loads");
    let input = numbers(256);
    let run = || executor.run(&[(x, bytes(&input))], &[y, z]).expect("runs").iter().map(|out| words(out)).collect::<Vec<_>>();
    assert_eq!(run(), [expected(&input, 1), vec![0; 256]], "a zero launches nothing");

    // Runs that have started keep what they started with.
    let before = executor.submit(&[], &[y]).expect("starts");
    executor.set_dispatch(1, &[64, 5], [1, 1, 1]).expect("fits");
    executor.set_dispatch(2, &[256, 7], [2, 2, 1]).expect("fits");
    let first = [expected(&input[..64], 5), expected(&input[64..], 1)].concat();
    assert_eq!(run(), [first.clone(), expected(&input, 7)]);
    assert_eq!(words(&before.wait().expect("runs")[0]), expected(&input, 1));
    let commands = || executor.profile(&[]).expect("runs").commands.iter().map(|c| c.command).filter(|&c| c > 0).collect::<Vec<_>>();
    assert_eq!(commands(), [1, 2]);
    executor.set_dispatch(1, &[64, 9], [1, 0, 1]).expect("fits");
    assert_eq!(run()[0], first, "no work again");
    assert_eq!(commands(), [2]);

    let refused = |command, params: &[u32], workgroups| executor.set_dispatch(command, params, workgroups).expect_err("refused");
    for (command, params) in [(0, vec![256, 1]), (4, vec![256, 1]), (1, vec![256]), (1, vec![1; 3])] {
        assert_eq!(refused(command, &params, [1, 1, 1]).kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(refused(1, &[256, 1], [65_536, 1, 1]).kind(), ErrorKind::Limit);
    if device.info().limits.max_loop_iterations.is_some() {
        let error = refused(3, &[u32::MAX, 0], [1, 1, 1]);
        assert!(error.kind() == ErrorKind::Limit && error.to_string().contains("`looping` runs up to"), "{error}");
    }
    executor.set_dispatch(3, &[u32::MAX, 0], [1, 1, 0]).expect("runs no loop");
    // What was refused changed nothing.
    assert_eq!(run(), [first, expected(&input, 7)]);

    // One tensor may be input and output of a dispatch as long as that does nothing.
    let tensor = DeviceTensor::zeros(&device, DType::U32, &[256]).expect("fits");
    executor.bind(x, &tensor).expect("binds");
    executor.bind(y, &tensor).expect("the dispatch has no work");
    assert_eq!(refused(1, &[256, 1], [4, 1, 1]).kind(), ErrorKind::InvalidArgument);
}

#[test]
fn tensors_go_up_and_come_back() {
    let device = open();
    let before = device.used_bytes();
    for shape in [vec![], vec![0], vec![3, 0, 2], vec![5], vec![3, 7]] {
        let n: usize = shape.iter().product();
        let floats = HostTensor::new(shape.clone(), (0..n).map(|i| i as f32 - 1.5).collect::<Vec<_>>()).expect("fits");
        let small = HostTensor::new(shape.clone(), (0..n).map(|i| i as u8).collect::<Vec<_>>()).expect("fits");
        for host in [floats, small] {
            let tensor = DeviceTensor::upload(&device, &host).expect("uploads");
            assert_eq!(tensor.read().expect("reads"), host);
            assert_eq!(pollster::block_on(tensor.read_async()).expect("reads"), host);
            assert_eq!(tensor.buffer().allocated_bytes() % 16, 0);
        }
    }
    let zeros = DeviceTensor::zeros(&device, DType::I32, &[4]).expect("fits");
    assert_eq!(zeros.reshape(&[2, 2]).expect("fits").read().expect("reads"), HostTensor::zeros(DType::I32, [2, 2]).expect("fits"));
    assert_eq!(zeros.reshape(&[3]).expect_err("does not fit").kind(), ErrorKind::InvalidArgument);
    drop(zeros);
    assert_eq!(device.used_bytes(), before, "memory goes back to the budget");
}

#[test]
fn large_tensors_are_written_in_parts() {
    let device = open();
    let words: Vec<u32> = (0..(16 << 20) + 5).collect();
    let host = HostTensor::new([words.len()], words).expect("fits");
    let tensor = DeviceTensor::upload(&device, &host).expect("uploads");
    assert!(tensor.read().expect("reads") == host);
}

#[test]
fn bound_tensors_are_used_and_left_alone() {
    let device = open();
    let (plan, x, y) = affine_plan(100, 2);
    let executor = Executor::load(&device, &plan).expect("loads");
    let input = numbers(100);
    let tensor = DeviceTensor::upload(&device, &HostTensor::new([100], input.clone()).expect("fits")).expect("uploads");
    executor.bind(x, &tensor).expect("binds");
    executor.enqueue(&[]).expect("runs");
    let first = executor.slot_tensor(y, DType::U32, &[10, 10]).expect("fits");

    // An input from the host must not land in the caller's tensor, nor the next run in the result that is held.
    let other = vec![9; 100];
    let out = executor.run(&[(x, bytes(&other))], &[y]).expect("runs");
    assert_eq!(words(&out[0]), vec![29; 100]);
    assert_eq!(tensor.read().expect("reads").as_slice::<u32>().expect("u32"), input);
    assert_eq!(first.read().expect("reads").as_slice::<u32>().expect("u32"), expected(&input, 2));
    assert_eq!(words(&executor.read(y).expect("reads")), vec![29; 100]);

    // A chain without the host between: the result becomes the input.
    executor.bind(x, &first.reshape(&[100]).expect("fits")).expect("binds");
    executor.enqueue(&[]).expect("runs");
    assert_eq!(words(&executor.read(y).expect("reads")), expected(&expected(&input, 2), 2));

    let front = executor.slot_tensor(y, DType::U8, &[3]).expect("fits");
    assert_eq!(front.read().expect("reads").bytes(), &bytes(&expected(&expected(&input, 2), 2)[..1])[..3]);
    assert_eq!(executor.slot_tensor(y, DType::U32, &[101]).expect_err("too long").kind(), ErrorKind::InvalidArgument);

    let kind = |result: sublane::Result<()>| result.expect_err("refused").kind();
    assert_eq!(kind(executor.bind(y, &first)), ErrorKind::InvalidArgument, "input and output of one dispatch");
    let short = DeviceTensor::zeros(&device, DType::U32, &[64]).expect("fits");
    assert_eq!(kind(executor.bind(x, &short)), ErrorKind::InvalidArgument);
    let elsewhere = DeviceTensor::zeros(&open(), DType::U32, &[100]).expect("fits");
    assert_eq!(kind(executor.bind(x, &elsewhere)), ErrorKind::InvalidArgument);
    assert_eq!(kind(executor.enqueue(&[(y, bytes(&other))])), ErrorKind::InvalidArgument, "outputs are no inputs");
    assert_eq!(kind(executor.enqueue(&[(x, &[0; 12])])), ErrorKind::InvalidArgument);
    assert_eq!(words(&executor.run(&[(x, bytes(&other))], &[y]).expect("still runs")[0]), vec![29; 100]);
}

#[test]
fn steady_runs_allocate_nothing() {
    let device = open();
    let (plan, x, y) = affine_plan(1000, 2);
    let executor = Executor::load(&device, &plan).expect("loads");
    let input = numbers(1000);
    let mut used = Vec::new();
    for _ in 0..20 {
        executor.run(&[(x, bytes(&input))], &[y]).expect("runs");
        used.push(device.used_bytes());
    }
    assert_eq!(used[0], used[19]);
}

#[test]
fn runs_add_up_without_a_host_between_and_handles_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    fn moves<T: Send>(_: &T) {}
    crosses::<Device>();
    crosses::<Executor>();
    crosses::<DeviceTensor>();
    let device = open();
    let wgsl = "
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1)
fn count() { y[0] += 1u; }
";
    let mut plan = ExecutionPlan::new();
    let state = plan.slot("state", 4, SlotRole::State);
    for _ in 0..50 {
        plan.dispatch(&kernel("count", wgsl, &[("y", true)], 0, 1), &[state], &[], [1, 1, 1]);
    }
    let executor = Executor::load(&device, &plan).expect("loads");
    for _ in 0..2 * MAX_IN_FLIGHT {
        executor.enqueue(&[]).expect("runs");
    }
    let read = executor.read_async(state);
    moves(&read);
    moves(&executor.run_async(&[], &[]));
    assert_eq!(words(&pollster::block_on(read).expect("reads")), [100 * MAX_IN_FLIGHT as u32]);
    executor.write(state, bytes(&[7])).expect("writes");
    assert_eq!(words(&executor.run(&[], &[state]).expect("runs")[0]), [57]);
}

#[test]
fn futures_run_on_any_executor_and_may_be_dropped() {
    let device = open();
    let (plan, x, y) = affine_plan(1 << 16, 4);
    let executor = Executor::load(&device, &plan).expect("loads");
    let input = numbers(1 << 16);
    for round in 0..20 {
        let inputs = [(x, bytes(&input))];
        let outputs = [y];
        // Polled once: the work is submitted, then nobody waits for it.
        let started = executor.run_async(&inputs, &outputs).now_or_never();
        drop(started);
        drop(executor.submit(&inputs, &outputs).expect("starts"));
        let both = futures::executor::block_on(futures::future::join(
            executor.run_async(&inputs, &outputs),
            executor.run_async(&inputs, &outputs),
        ));
        for out in [both.0, both.1] {
            assert_eq!(words(&out.expect("runs")[0]), expected(&input, 4), "round {round}");
        }
    }
    let opened = futures::executor::block_on(Device::open_async(&DeviceOptions::from_env()));
    assert_eq!(opened.expect("these tests need an adapter").info(), device.info());
}

#[test]
fn runs_of_several_threads_do_not_mix() {
    let device = open();
    let (plan, x, y) = affine_plan(5000, 1);
    let executor = Executor::load(&device, &plan).expect("loads");
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let executor = executor.clone();
            scope.spawn(move || {
                for round in 0..100 {
                    let input = vec![thread * 1000 + round; 5000];
                    let inputs = [(x, bytes(&input))];
                    let out = match thread % 2 {
                        0 => executor.run(&inputs, &[y]),
                        _ => pollster::block_on(executor.run_async(&inputs, &[y])),
                    };
                    assert_eq!(words(&out.expect("runs")[0]), expected(&input, 1));
                }
            });
        }
    });
}

#[test]
fn profiles_name_each_command() {
    let device = open();
    let mut plan = ExecutionPlan::new();
    let n = 1 << 20;
    let a = plan.slot("a", n * 4, SlotRole::State);
    let b = plan.slot("b", n * 4, SlotRole::State);
    let params = [n as u32, 1];
    plan.dispatch(&affine(), &[a, b], &params, [n as u32 / 64, 1, 1]);
    plan.commands.push(Command::Copy { from: b, from_offset: 0, to: a, to_offset: 0, bytes: 4096 });
    plan.dispatch(&affine(), &[a, b], &params, [n as u32 / 64, 1, 1]);
    plan.dispatch(&affine(), &[a, b], &params, [0, 1, 1]);
    let executor = Executor::load(&device, &plan).expect("loads");
    let profile = executor.profile(&[]).expect("runs");
    let commands: Vec<usize> = profile.commands.iter().map(|c| c.command).collect();
    match profile.clock {
        Clock::Timestamps => assert_eq!(commands, [0, 2]),
        Clock::Host => assert_eq!(commands, [0, 1, 2]),
    }
    assert!(profile.commands.iter().all(|c| c.ns > 0), "{profile:?}");
    // The profiled run did the plan's work.
    assert_eq!(words(&executor.read(b).expect("reads"))[..1024], [4; 1024]);
}

#[test]
fn pipelines_are_kept_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = DeviceOptions { cache_dir: Some(folder.path().into()), ..DeviceOptions::from_env() };
    for round in 0..2 {
        let device = Device::open(&options).expect("these tests need an adapter");
        let (plan, x, y) = affine_plan(10, 1);
        let executor = Executor::load(&device, &plan).expect("loads");
        let input = numbers(10);
        assert_eq!(words(&executor.run(&[(x, bytes(&input))], &[y]).expect("runs")[0]), expected(&input, 1));
        let cached = device.info().features.contains(&"pipeline cache");
        drop((executor, device));
        let files: Vec<_> = std::fs::read_dir(folder.path()).expect("lists").map(|f| f.expect("lists").path()).collect();
        assert_eq!(files.len(), usize::from(cached), "round {round}");
        // What is damaged is not handed to the driver.
        for file in files {
            std::fs::write(file, [7; 100]).expect("writes");
        }
    }
}
