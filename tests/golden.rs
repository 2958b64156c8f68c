//! Printed graphs, fusion plans, generated WGSL and diagnostics, byte for byte as in `tests/golden`. Needs no adapter.
//!
//! `SUBLANE_BLESS=1 cargo test --release --test golden` writes the files anew; read the difference before it is committed.

mod graph_common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use graph_common::*;
use kernels_gen::{Target, validate};
use sublane::capture::capture;
use sublane::compiler::{CompileOptions, Compiled, Mode, compile};
use sublane::graph::{Graph, GraphBuilder, Prim, TensorType};
use sublane::ops::conv::Conv;
use sublane::ops::prelude::*;
use sublane::plan::Command;
use sublane::{DType, HostTensor, Result};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn cases() -> Vec<(&'static str, Graph)> {
    vec![
        ("chain", chain(&[1003])),
        ("softmax", softmax(&[40, 257])),
        ("softmax_outer", of_x(&[40, 64], |x| x.softmax(0))),
        ("layer_norm", layer_norm(&[512, 96])),
        ("rms_norm", rms_norm(&[3, 1000])),
        ("quantise", quantise(&[1003])),
        ("embedding", embedding(50, 12, &[3, 4])),
        ("views", of_x(&[4, 6, 8], |x| x.transpose(&[2, 0, 1])?.reshape(&[8, 24])?.pad(&[1, 0], &[0, 3], 2.0)?.slice(&[0, 1], &[9, 26]))),
        ("long_sum", of_x(&[1 << 20], |x| x.abs()?.sum(&[0], false))),
        ("gemm_bias_relu", linear_relu(64, 48, 32)),
        ("gemm_odd", matmul(&[3, 33, 7], &[7, 18])),
        ("conv_norm_relu", conv_norm_relu(2, 3, 12, 16)),
        ("attention", attention(2, 16, 8)),
    ]
}

/// The graph the kernels are made from, groups and refusals, and the dispatches.
fn plan_text(compiled: &Compiled) -> String {
    let stage = |name: &str| compiled.stages().iter().find(|s| s.name == name).and_then(|s| s.text.as_deref()).expect("kept");
    let mut text = format!("# graph\n{}\n# fusion\n{}\n# dispatches\n", stage("layout"), compiled.fusion());
    let plan = compiled.plan();
    for command in &plan.commands {
        match command {
            Command::Dispatch { kernel, bindings, workgroups, .. } => {
                let slots: Vec<&str> = bindings.iter().map(|b| plan.slots[b.slot.0 as usize].name.as_str()).collect();
                let name = &plan.kernels[kernel.0 as usize].name;
                writeln!(text, "{name} {workgroups:?} ({})", slots.join(", ")).expect("text");
            }
            other => writeln!(text, "{other:?}").expect("text"),
        }
    }
    text
}

/// Messages of requests that are refused.
fn diagnostics() -> String {
    let f32s = |shape: &[usize]| TensorType::new(DType::F32, shape);
    let build = |f: &dyn Fn(&mut GraphBuilder) -> Result<()>| f(&mut GraphBuilder::new()).expect_err("refused").to_string();
    let binary =
        |a: TensorType, b: TensorType, f: fn(&sublane::capture::Traced, &sublane::capture::Traced) -> Result<sublane::capture::Traced>| {
            let graph = capture(|t| f(&t.input("a", a.shape, a.dtype)?, &t.input("b", b.shape, b.dtype)?));
            graph.expect_err("refused").to_string()
        };
    let unary = |a: TensorType, f: fn(&sublane::capture::Traced) -> Result<sublane::capture::Traced>| {
        capture(|t| f(&t.input("a", a.shape, a.dtype)?)).expect_err("refused").to_string()
    };
    let compiled = |graph: Graph, target: Target| compile(&graph, &target, &CompileOptions::default()).expect_err("refused").to_string();
    let messages = [
        ("shapes that do not broadcast", binary(f32s(&[4, 3]), f32s(&[4]), |a, b| a.add(b))),
        ("element types that differ", binary(f32s(&[4]), TensorType::new(DType::I32, [4]), |a, b| a.mul(b))),
        ("an inner size that differs", binary(f32s(&[4, 3]), f32s(&[4, 3]), |a, b| a.matmul(b))),
        ("channels that do not fit", binary(f32s(&[1, 3, 8, 8]), f32s(&[4, 2, 3, 3]), |a, b| a.conv(b, None, Conv::new(2)))),
        ("indices that are no integers", binary(f32s(&[4, 3]), f32s(&[2]), |a, b| a.gather(b, 0))),
        ("an axis there is not", unary(f32s(&[4, 3]), |a| a.softmax(2))),
        ("a shape of another size", unary(f32s(&[4, 3]), |a| a.reshape(&[5, -1]))),
        ("a permutation that is none", unary(f32s(&[4, 3]), |a| a.transpose(&[0, 0]))),
        ("a slice past the end", unary(f32s(&[4, 3]), |a| a.slice(&[0, 1], &[4, 5]))),
        ("a logarithm of integers", unary(TensorType::new(DType::I32, [3]), |a| a.log())),
        ("a window larger than the image", unary(f32s(&[1, 1, 4, 4]), |a| a.max_pool(&[5, 5], &[1, 1]))),
        ("values that differ in rank", binary(f32s(&[4, 3]), f32s(&[4]), |a, b| sublane::capture::Traced::concat(&[a, b], 0))),
        ("two inputs of one name", build(&|b| b.input("x", f32s(&[1])).and_then(|_| b.input("x", f32s(&[2]))).map(drop))),
        (
            "two outputs of one name",
            build(&|b| {
                let x = b.input("x", f32s(&[1]))?;
                b.output("y", x)?;
                b.output("y", x)
            }),
        ),
        ("a huge dimension", build(&|b| b.input("x", f32s(&[usize::MAX, 3])).map(drop))),
        (
            "a huge broadcast",
            build(&|b| {
                let x = b.input("x", f32s(&[1, 1]))?;
                b.add(Prim::Broadcast { shape: vec![1 << 40, 1 << 40], dims: vec![0, 1] }, &[x]).map(drop)
            }),
        ),
        ("a tensor past one binding", compiled(of_x(&[(32 << 20) + 1], |x| x.pad(&[1], &[0], 0.0)), Target::webgpu())),
        (
            "more elements than kernels count",
            build(&|b| {
                let x = b.input("x", f32s(&[46_341, 1]))?;
                b.broadcast_to(x, &[46_341, 46_341]).map(drop)
            }),
        ),
        ("a tensor of another size than its values", HostTensor::new([3], vec![1f32]).expect_err("refused").to_string()),
    ];
    messages.iter().map(|(what, message)| format!("{what}\n    {}\n", message.replace('\n', "\n    "))).collect()
}

#[test]
fn texts_are_as_they_were() {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    files.insert("diagnostics.txt".into(), diagnostics());
    for (name, graph) in cases() {
        files.insert(format!("{name}.txt"), graph.to_string());
        for target in [Target::webgpu(), Target::software()] {
            let options = CompileOptions { keep_stages: true, ..CompileOptions::default() };
            let compiled = compile(&graph, &target, &options).expect("compiles");
            files.insert(format!("{name}.{}.txt", target.name), plan_text(&compiled));
            for (i, kernel) in compiled.plan().kernels.iter().enumerate() {
                validate::validate(kernel, &target).expect("every writer takes it");
                files.insert(format!("{name}.{}.{i}.wgsl", target.name), kernel.wgsl.clone());
            }
        }
    }
    let folder = folder();
    let present = || -> Vec<String> {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().map(|e| e.expect("listed").file_name());
        entries.map(|name| name.into_string().expect("UTF-8")).collect()
    };
    if std::env::var_os("SUBLANE_BLESS").is_some_and(|v| v == "1") {
        std::fs::create_dir_all(&folder).expect("created");
        for old in present().into_iter().filter(|name| !files.contains_key(name)) {
            std::fs::remove_file(folder.join(old)).expect("removed");
        }
        files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).expect("written"));
        return;
    }
    let mut faults = Vec::new();
    for (name, text) in &files {
        match std::fs::read_to_string(folder.join(name)) {
            Err(error) => faults.push(format!("{name}: {error}")),
            Ok(golden) if golden != *text => {
                let line =
                    golden.lines().zip(text.lines()).position(|(a, b)| a != b).unwrap_or(golden.lines().count().min(text.lines().count()));
                let of = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_string();
                faults.push(format!("{name}, line {}:\n  was  {}\n  is   {}", line + 1, of(&golden), of(text)));
            }
            Ok(_) => {}
        }
    }
    faults.extend(present().into_iter().filter(|name| !files.contains_key(name)).map(|name| format!("{name}: no case makes it")));
    assert!(faults.is_empty(), "SUBLANE_BLESS=1 accepts these:\n{}", faults.join("\n"));
}

#[test]
fn compilation_is_a_function_of_its_arguments() {
    for (name, graph) in cases() {
        for mode in [Mode::Compiled, Mode::Eager] {
            let options = CompileOptions { mode, keep_stages: true, ..CompileOptions::default() };
            let [a, b] = [0, 1].map(|_| compile(&graph, &Target::webgpu(), &options).expect("compiles"));
            assert_eq!(a.plan(), b.plan(), "{name}");
            assert_eq!(plan_text(&a), plan_text(&b), "{name}");
        }
    }
}
