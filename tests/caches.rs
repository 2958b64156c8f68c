//! What is remembered: warm starts, damaged files, and the commands that list and clear it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sublane::capture::capture;
use sublane::compiler::cache::Source;
use sublane::compiler::tune::{Autotune, Choice};
use sublane::compiler::{CompileOptions, Mode, Tuning};
use sublane::device::{Device, DeviceOptions};
use sublane::graph::Graph;
use sublane::ops::prelude::*;
use sublane::progress::Work;
use sublane::session::stored::{self, StoredKind};
use sublane::session::{LoadReport, Loader, LoaderOptions};
use sublane::{DType, HostTensor, Result, Session};

/// A product with weights, its bias folded, and a soft maximum.
fn model(scale: f32) -> Graph {
    capture(|t| {
        let weights = HostTensor::new([40, 24], (0..960).map(|i| (i as f32 * 0.37).sin() * scale).collect::<Vec<f32>>())?;
        t.input("x", [12, 40], DType::F32)?.matmul(&t.constant(weights)?)?.relu()?.softmax(-1)
    })
    .expect("captured")
}

fn open(folder: &Path) -> Device {
    let options = DeviceOptions { cache_dir: Some(folder.to_path_buf()), ..DeviceOptions::from_env() };
    Device::open(&options).expect("a device")
}

fn loader(device: &Device, folder: &Path, autotune: Autotune) -> Loader {
    Loader::new(device, LoaderOptions { cache_dir: Some(folder.to_path_buf()), program: "test".into(), autotune, seed: 1 })
}

fn load(loader: &Loader, graph: &Graph) -> (Session, LoadReport) {
    loader.load(graph, &CompileOptions::default(), &Work::quiet()).expect("loads")
}

fn run(session: &Session) -> HostTensor {
    let x = HostTensor::new([12, 40], (0..480).map(|i| (i as f32 * 0.11).cos()).collect::<Vec<f32>>()).expect("x");
    session.run(&[("x", &x)]).expect("runs").single().expect("one output")
}

fn graph_file(folder: &Path) -> PathBuf {
    let files = stored::list(folder).expect("listed");
    let mut graphs = files.into_iter().filter(|f| f.kind == StoredKind::Graph);
    let only = graphs.next().expect("a graph").path;
    assert!(graphs.next().is_none());
    only
}

#[test]
fn a_warm_start_generates_nothing_measures_nothing_and_probes_nothing() {
    let folder = tempfile::tempdir().expect("folder");
    let device = open(folder.path());
    let cold = loader(&device, folder.path(), Autotune::On);
    let (session, report) = load(&cold, &model(1.0));
    assert_eq!((report.source, report.measured.len()), (Source::Compiled, 1));
    assert!(report.generated >= 2 && report.tuned_kernels == 1 && report.notes.is_empty(), "{report:?}");
    let expected = run(&session);
    let counts = |report: &LoadReport| (report.generated, report.measured.len(), report.probes_run, report.tuned_kernels);
    let (session, report) = load(&cold, &model(1.0));
    assert_eq!((report.source, counts(&report)), (Source::Memory, (0, 0, report.probes_run, 1)));
    assert_eq!(run(&session), expected);
    // As another process would, with and without leave to measure.
    for autotune in [Autotune::On, Autotune::Off] {
        let device = open(folder.path());
        let warm = loader(&device, folder.path(), autotune);
        let (session, report) = load(&warm, &model(1.0));
        assert_eq!((report.source, counts(&report)), (Source::Disk, (0, 0, 0, 1)));
        assert_eq!(run(&session), expected);
        assert_eq!(session.compiled().plan(), load(&cold, &model(1.0)).0.compiled().plan());
        assert_eq!(session.compiled().kernels(), load(&cold, &model(1.0)).0.compiled().kernels());
    }
    // The weights are the graph's: they do not lie in the folder again unless a pass changed them.
    assert!(std::fs::metadata(graph_file(folder.path())).expect("there").len() < 200_000);
}

#[test]
fn another_graph_option_or_program_compiles_anew() {
    let folder = tempfile::tempdir().expect("folder");
    let device = open(folder.path());
    let first = loader(&device, folder.path(), Autotune::Off);
    assert_eq!(load(&first, &model(1.0)).1.source, Source::Compiled);
    assert_eq!(load(&first, &model(2.0)).1.source, Source::Compiled);
    assert_eq!(load(&first, &model(2.0)).1.source, Source::Memory);
    let eager = CompileOptions { mode: Mode::Eager, ..CompileOptions::default() };
    assert_eq!(first.compile(&model(1.0), &eager, &Work::quiet()).expect("compiles").1.source, Source::Compiled);
    let options = LoaderOptions { cache_dir: Some(folder.path().into()), program: "built anew".into(), ..LoaderOptions::default() };
    assert_eq!(load(&Loader::new(&device, options), &model(1.0)).1.source, Source::Compiled);
}

#[test]
fn a_new_choice_is_taken_though_the_graph_is_known() {
    let folder = tempfile::tempdir().expect("folder");
    let device = open(folder.path());
    let (session, _) = load(&loader(&device, folder.path(), Autotune::Off), &model(1.0));
    let hero = session.compiled().kernels().iter().find_map(|k| k.choice.clone()).expect("a hero");
    // Leave to measure means that the graph is gone over once more, though it is known.
    let (_, report) = load(&loader(&device, folder.path(), Autotune::On), &model(1.0));
    assert_eq!((report.source, report.measured.len(), report.tuned_kernels), (Source::Compiled, 1, 1));
    let (_, report) = load(&loader(&device, folder.path(), Autotune::Off), &model(1.0));
    assert_eq!((report.source, report.tuned_kernels), (Source::Disk, 1));
    let (_, report) = load(&loader(&device, folder.path(), Autotune::Exhaustive), &model(1.0));
    assert_eq!((report.source, report.measured.len()), (Source::Compiled, 1));
    let file = sublane::compiler::tune::file::TuningFile::new(folder.path(), &device.info().name, &device.info().driver, &device.target());
    let other = if hero.config.starts_with("8x4x4") { "16x4x4 on 8x1 subgroup" } else { "8x4x4 on 8x1 subgroup" };
    let choices: Tuning = [(hero.key, Choice { config: other.into(), ns: 1, table_ns: 2 })].into_iter().collect();
    file.write(&choices).expect("written");
    let (session, _) = load(&loader(&device, folder.path(), Autotune::Off), &model(1.0));
    let choice = session.compiled().kernels().iter().find_map(|k| k.choice.clone()).expect("a hero");
    assert!(!choice.tuned || choice.config == other, "{choice:?}");
}

#[test]
fn a_damaged_file_is_as_good_as_none_and_says_so() {
    let folder = tempfile::tempdir().expect("folder");
    let device = open(folder.path());
    let (session, _) = load(&loader(&device, folder.path(), Autotune::Off), &model(1.0));
    let expected = run(&session);
    let path = graph_file(folder.path());
    let good = std::fs::read(&path).expect("read");
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let mut older = good.clone();
    older[7] = b'0';
    for wrong in [Vec::new(), good[..20].to_vec(), good[..good.len() - 1].to_vec(), flipped, older, [&good[..], b"x"].concat()] {
        std::fs::write(&path, &wrong).expect("written");
        let (session, report) = load(&loader(&device, folder.path(), Autotune::Off), &model(1.0));
        assert_eq!(report.source, Source::Compiled);
        assert!(report.notes.iter().any(|note| note.contains("is damaged and was not used")), "{:?}", report.notes);
        assert_eq!(run(&session), expected);
        assert_eq!(std::fs::read(&path).expect("read").len(), good.len(), "it is written anew");
    }
    // The file of another graph under this name.
    load(&loader(&device, folder.path(), Autotune::Off), &model(2.0));
    let files = stored::list(folder.path()).expect("listed");
    let other = files.iter().find(|f| f.kind == StoredKind::Graph && f.path != path).expect("another");
    std::fs::copy(&other.path, &path).expect("copied");
    let (session, report) = load(&loader(&device, folder.path(), Autotune::Off), &model(1.0));
    assert!(report.source == Source::Compiled && report.notes[0].contains("another graph"), "{:?}", report.notes);
    assert_eq!(run(&session), expected);
}

#[test]
fn a_broken_tuning_file_is_set_aside_with_a_note() {
    let folder = tempfile::tempdir().expect("folder");
    let device = open(folder.path());
    load(&loader(&device, folder.path(), Autotune::On), &model(1.0));
    let files = stored::list(folder.path()).expect("listed");
    let file = files.iter().find(|f| f.kind == StoredKind::Tuning).expect("choices");
    assert_eq!(file.adapter.as_deref(), Some(device.info().name.as_str()));
    std::fs::write(&file.path, "{").expect("written");
    let (_, report) = load(&loader(&device, folder.path(), Autotune::Off), &model(1.0));
    assert!(report.notes[0].contains("set_aside") && report.tuned_kernels == 0, "{report:?}");
}

#[test]
fn a_loader_without_a_folder_keeps_to_memory() -> Result<()> {
    let device = Device::open(&DeviceOptions::from_env())?;
    let loader = Loader::new(&device, LoaderOptions::default());
    let sources = [0, 1].map(|_| load(&loader, &model(1.0)).1.source);
    assert_eq!(sources, [Source::Compiled, Source::Memory]);
    Ok(())
}

fn sublane(folder: &Path, args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sublane"));
    let output = command.args(args).arg("--json").env("SUBLANE_CACHE", folder).env_remove("RUST_LOG").output().expect("starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_commands_list_and_clear() {
    let folder = tempfile::tempdir().expect("folder");
    let absent = folder.path().join("not/there");
    assert_eq!(sublane(&absent, &["cache", "list"])["files"], 0);
    assert_eq!(sublane(&absent, &["cache", "clear"])["files"], 0);
    let device = open(folder.path());
    load(&loader(&device, folder.path(), Autotune::On), &model(1.0));
    // A process of its own probes, or finds what another one showed; it leaves the result in the folder.
    sublane(folder.path(), &["devices"]);
    std::fs::write(folder.path().join("somebody's.txt"), "not ours").expect("written");
    let listed = sublane(folder.path(), &["cache", "list"]);
    let rows = listed["rows"].as_array().expect("rows");
    let of = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).collect::<Vec<_>>();
    assert!(of("tuning").len() == 1 && of("graph").len() == 1 && of("probes").len() == 1, "{listed}");
    assert_eq!(of("tuning")[0]["about"], "1 choices");
    assert!(of("graph")[0]["about"].as_str().is_some_and(|about| about.contains("x f32[12, 40]")), "{listed}");
    assert!(rows.iter().all(|row| row["bytes"].as_u64() > Some(0) && row["age_s"].is_u64()), "{listed}");
    assert_eq!(sublane(folder.path(), &["cache", "clear", "--graphs"])["files"], 1);
    let left = sublane(folder.path(), &["cache", "list"]);
    assert_eq!(left["files"].as_u64(), Some(rows.len() as u64 - 1));
    sublane(folder.path(), &["cache", "clear"]);
    assert_eq!(sublane(folder.path(), &["cache", "list"])["files"], 0);
    assert!(folder.path().join("somebody's.txt").exists());
    // What a program that was ended did not finish.
    std::fs::write(folder.path().join("graphs/.sublane-Ab3dE6"), "half").expect("written");
    let listed = sublane(folder.path(), &["cache", "list"]);
    assert_eq!((&listed["files"], &listed["rows"][0]["about"]), (&1.into(), &"not finished".into()));
    assert_eq!(sublane(folder.path(), &["cache", "clear", "--graphs"])["files"], 1);
    assert_eq!(sublane(folder.path(), &["cache", "list"])["files"], 0);
}
