//! Runs ONNX's backend node tests: `onnx_node_tests FOLDER [--reference] [--table FILE]`, FOLDER being `onnx/backend/test/data/node` of the
//! package `onnx`. `scripts/onnx-node-tests.sh` fetches it and calls this.
//!
//! Each test is a model with inputs and expected outputs. It is compiled and run on the adapter, or, with `--reference`, interpreted on the
//! host. A test is skipped, with the reason, where it uses an operator, an attribute or an element type that is not imported. `--table` writes
//! all results as Markdown. The last line is `N passed, N failed, N skipped`; the exit status is 1 if a test fails that is
//! not known to fail.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sublane::compiler::{CompileOptions, compile};
use sublane::device::DeviceOptions;
use sublane::import::onnx::{self, ImportOptions, Model};
use sublane::ops::{RefTensor, Tolerance, reference_graph};
use sublane::{DType, Device, Error, ErrorKind, HostTensor, Result, Session};

/// The relative bound of ONNX's own runner; its absolute one, 1e-7, is below the rounding of f32 sums.
const TOLERANCE: Tolerance = Tolerance::Relative { relative: 1e-3, absolute: 1e-5 };

/// Tests whose expectation Sublane does not share, with the reason. They count as failed, but do not fail the run.
const KNOWN: [(&str, &str); 5] = [
    (
        "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True",
        "its expected values divide by elements past the padding that only ceil_mode adds; PyTorch and onnxruntime, like Sublane, do not count them",
    ),
    ("test_qlinearmatmul_2D_int8_float16", WRAPS),
    ("test_qlinearmatmul_2D_int8_float32", WRAPS),
    ("test_qlinearmatmul_3D_int8_float16", WRAPS),
    ("test_qlinearmatmul_3D_int8_float32", WRAPS),
];

const WRAPS: &str =
    "its expected values wrap around past -128 and 127 (20 for -236); QuantizeLinear's definition saturates, as Sublane does";

struct Options {
    folder: PathBuf,
    /// `None`: the interpreter on the host.
    device: Option<Device>,
    table: Option<PathBuf>,
}

fn main() -> ExitCode {
    match options().and_then(|options| run_all(&options)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options> {
    let mut arguments = std::env::args_os().skip(1);
    let (mut folder, mut table, mut reference) = (None, None, false);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--reference") => reference = true,
            Some("--table") => table = arguments.next().map(PathBuf::from),
            _ => folder = Some(PathBuf::from(argument)),
        }
    }
    let folder = folder.ok_or_else(|| Error::invalid("usage: onnx_node_tests FOLDER [--reference] [--table FILE]"))?;
    let device = if reference { None } else { Some(Device::open(&DeviceOptions::from_env())?) };
    Ok(Options { folder, device, table })
}

/// Runs all tests; the number of failures that are not known.
fn run_all(options: &Options) -> Result<usize> {
    let entries = std::fs::read_dir(&options.folder).map_err(|e| Error::io(&options.folder, "read the folder", e))?;
    let mut tests: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.join("model.onnx").is_file()).collect();
    tests.sort();
    let (mut passed, mut failed, mut skipped, mut unexpected) = (0, 0, 0, 0);
    let mut rows = String::new();
    for test in tests {
        let name = test.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (result, reason) = match run_one(&test, options.device.as_ref()) {
            Ok(()) => {
                passed += 1;
                ("passed", String::new())
            }
            Err(e) => {
                // Where the test data lie does not belong into a report.
                let reason = e.to_string().replace(&format!("`{}`: ", test.join("model.onnx").display()), "");
                let known = KNOWN.iter().find(|(test, _)| *test == name);
                if e.kind() == ErrorKind::Unsupported {
                    skipped += 1;
                    ("skipped", reason)
                } else if let Some((_, known)) = known {
                    failed += 1;
                    ("failed", known.to_string())
                } else {
                    failed += 1;
                    unexpected += 1;
                    ("FAILED", reason)
                }
            }
        };
        if result != "passed" {
            println!("{result} {name}: {reason}");
        }
        let _ = writeln!(rows, "| {name} | {result} | {} |", reason.replace('|', "\\|").replace('\n', " "));
    }
    let line = format!("{passed} passed, {failed} failed, {skipped} skipped");
    if let Some(table) = &options.table {
        let adapter =
            options.device.as_ref().map_or_else(|| "interpreted on the host".to_string(), |d| format!("compiled, on {}", d.info().name));
        let text = format!(
            "# ONNX node tests\n\nThe backend node tests of `onnx` 1.17.0, {adapter}: {line}.\n\n| test | result | reason |\n|---|---|---|\n{rows}"
        );
        sublane::files::write_atomic(table, text.as_bytes())?;
    }
    println!("{line}");
    Ok(unexpected)
}

/// The outputs of a model, compiled and run on the device or interpreted.
fn outputs(model: &Model, inputs: &[(&str, HostTensor)], device: Option<&Device>) -> Result<Vec<(String, HostTensor)>> {
    let Some(device) = device else {
        let values = reference_graph(&model.graph, inputs)?;
        return values.into_iter().map(|(name, value)| Ok((name, value.to_host()?))).collect();
    };
    let compiled = compile(&model.graph, &device.target(), &CompileOptions::default())?;
    let named: Vec<(&str, &HostTensor)> = inputs.iter().map(|(n, t)| (*n, t)).collect();
    Ok(Session::load(device, &compiled)?.run(&named)?.into_iter().collect())
}

fn run_one(test: &Path, device: Option<&Device>) -> Result<()> {
    let data = test.join("test_data_set_0");
    let load = |kind: &str, i: usize| {
        let path = data.join(format!("{kind}_{i}.pb"));
        path.is_file().then(|| onnx::parse_tensor(&sublane::files::read(&path)?).map(|(_, tensor)| tensor)).transpose()
    };
    let tensors = |kind: &str| (0..).map_while(|i| load(kind, i).transpose()).collect::<Result<Vec<HostTensor>>>();
    let model_file = test.join("model.onnx");
    let mut options = ImportOptions { batch: Some(1), ..Default::default() };
    let mut model = onnx::read(&model_file, &options);
    let (inputs, expected) = match (&model, tensors("input"), tensors("output")) {
        // An operator that is not supported says more than the types of its operands.
        (Err(e), ..) if e.kind() == ErrorKind::Unsupported && !e.to_string().contains("known at import") => return model.map(|_| ()),
        (_, inputs, expected) => (inputs?, expected?),
    };
    let names = onnx::input_names(&sublane::files::read(&model_file)?)?;
    let named: Vec<(String, HostTensor)> = names.into_iter().zip(inputs).collect();
    // Operands that shapes depend on: integers and numbers of few dimensions first, then all.
    for fixed in [|t: &HostTensor| t.shape().len() < 2 && t.dtype() != DType::F32, |_: &HostTensor| true] {
        if model.as_ref().is_err_and(|e| e.kind() == ErrorKind::Unsupported) {
            options.constants = named.iter().filter(|(_, t)| fixed(t)).cloned().collect();
            model = onnx::read(&model_file, &options);
        }
    }
    let model = model?;
    let open = |name: &str| model.inputs.iter().any(|(n, _)| n == name);
    let named: Vec<(&str, HostTensor)> = named.iter().filter(|(n, _)| open(n)).map(|(n, t)| (n.as_str(), t.clone())).collect();
    for ((name, value), expected) in outputs(&model, &named, device)?.iter().zip(&expected) {
        TOLERANCE.check(value, &RefTensor::from_host(expected)).map_err(|e| e.context(format_args!("output `{name}`")))?;
    }
    Ok(())
}
