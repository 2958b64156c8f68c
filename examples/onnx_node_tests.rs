//! Runs ONNX's backend node tests: `onnx_node_tests FOLDER`, the folder `onnx/backend/test/data/node` of the `onnx` package.
//!
//! Each test is a model with inputs and expected outputs. It is skipped, with the reason, where it uses an operator or an element type that
//! Sublane does not import. The last line is `N passed, N failed, N skipped`; the exit status is 1 if a test failed.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sublane::import::onnx::{self, ImportOptions};
use sublane::ops::{RefTensor, Tolerance, reference_graph};
use sublane::{DType, ErrorKind, HostTensor, Result};

/// The relative bound of ONNX's own runner; its absolute one, 1e-7, is below the rounding of f32 sums.
const TOLERANCE: Tolerance = Tolerance::Relative { relative: 1e-3, absolute: 1e-5 };

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: onnx_node_tests FOLDER (onnx/backend/test/data/node of the package onnx)");
        return ExitCode::from(2);
    };
    match run_all(&folder) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(folder: &Path) -> Result<usize> {
    let entries = std::fs::read_dir(folder).map_err(|e| sublane::Error::io(folder, "read the folder", e))?;
    let mut tests: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.join("model.onnx").is_file()).collect();
    tests.sort();
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for test in tests {
        let name = test.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match run_one(&test) {
            Ok(()) => passed += 1,
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                skipped += 1;
                println!("skip {name}: {e}");
            }
            Err(e) => {
                failed += 1;
                println!("FAIL {name}: {e}");
                if let Some(source) = e.source() {
                    println!("     {source}");
                }
            }
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    Ok(failed)
}

fn run_one(test: &Path) -> Result<()> {
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
    let outputs = reference_graph(&model.graph, &named)?;
    for ((name, value), expected) in outputs.iter().zip(&expected) {
        TOLERANCE.check(&value.to_host()?, &RefTensor::from_host(expected)).map_err(|e| e.context(format_args!("output `{name}`")))?;
    }
    Ok(())
}
