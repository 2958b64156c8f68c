//! `sublane gemm` from outside: one product, a sweep, its page, bad input.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sublane"));
    command.arg("gemm").args(args).current_dir(folder).env_remove("RUST_LOG").output().expect("starts")
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let output = run(folder, &[args, &["--quick", "--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn a_product_has_time_bytes_and_errors() {
    let folder = tempfile::tempdir().expect("folder");
    let object = json(folder.path(), &["--m", "3", "--n", "20", "--k", "70"]);
    let row = &object["rows"][0];
    assert_eq!((&object["command"], object["rows"].as_array().map(Vec::len)), (&"gemm".into(), Some(1)), "{object}");
    assert_eq!((&row["scheme_a"], &row["scheme_b"], &row["data"]), (&"f32".into(), &"int4-group32".into(), &"random".into()));
    assert_eq!([&row["m"], &row["n"], &row["k"], &row["kernels"]], [3, 20, 70, 1].map(Value::from).each_ref());
    // 20 rows of 96 codes in 12 words and 3 scales, 3 x 70 numbers, 3 x 20 results.
    assert_eq!(row["bytes"], 4 * (20 * 12 + 20 * 3 + 3 * 70 + 3 * 20));
    let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
    assert!(number("median_ms") > 0.0 && number("gflops") > 0.0 && number("share") > 0.0, "{row}");
    assert!((0.01..0.3).contains(&number("rel_error")) && number("kernel_error") < 1e-5, "{row}");
    assert!(object["probed_dot4_gops"].as_f64().is_some_and(|rate| rate > 0.0), "{object}");
}

#[test]
fn a_sweep_is_a_table_of_all_and_a_page_with_plots() {
    let folder = tempfile::tempdir().expect("folder");
    let args = [
        "sweep",
        "--m",
        "1,5",
        "--n",
        "12",
        "--k",
        "40",
        "--a",
        "f32,int8-channel",
        "--b",
        "f32,int8-channel,nvfp4",
        "--html",
        "page.html",
    ];
    let object = json(folder.path(), &args);
    let rows = object["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3 * 2 * 2 * 3, "three kinds of data, two heights, two and three schemes");
    let error = |row: &Value, key: &str| row[key].as_f64().unwrap_or(f64::NAN);
    assert!(rows.iter().all(|row| error(row, "kernel_error") < 1e-5), "{object}");
    let plain = |row: &&Value| row["scheme_a"] == "f32" && row["scheme_b"] == "f32";
    assert!(rows.iter().filter(plain).all(|row| error(row, "rel_error") < 1e-6), "{object}");
    let page = std::fs::read_to_string(folder.path().join("page.html")).expect("written");
    // Two plots, and in each a point for every product.
    assert_eq!(page.matches("<circle").count(), 2 * rows.len());
    assert!(page.contains("Error against bytes") && page.contains("Time against size") && page.contains("f32 x nvfp4, outliers"));
}

#[test]
fn sizes_may_be_zero() {
    let folder = tempfile::tempdir().expect("folder");
    for sizes in [["0", "3", "5"], ["3", "0", "5"], ["3", "5", "0"]] {
        let object = json(folder.path(), &["--m", sizes[0], "--n", sizes[1], "--k", sizes[2]]);
        assert_eq!(object["rows"][0]["kernel_error"], 0.0, "{object}");
    }
}

#[test]
fn bad_input_exits_1_and_says_what_to_do() {
    let folder = tempfile::tempdir().expect("folder");
    for (args, part) in [
        (&["--b", "f32,nf4"][..], "gemm sweep"),
        (&["--html", "none/page.html"], "none/page.html"),
        (&["--memory-limit", "1K", "--quick"], "memory"),
        (&["--m", "18446744073709551615", "--quick"], "give smaller sizes"),
        (&["--n", "1000000000", "--quick"], "give smaller sizes"),
        (&["--b", "f32-hadamard32", "--quick"], "scheme with codes"),
    ] {
        let output = run(folder.path(), args);
        let message = String::from_utf8_lossy(&output.stderr).to_string() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code() == Some(1) && message.contains(part), "{args:?}: {message}");
    }
}
