//! The simulations by bit-planes from outside: bad input, and on real models what is reported. Those need the data folder, named by `SUBLANE_DATA`.

use serde_json::Value;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sublane")).arg("bitset").args(args).env_remove("RUST_LOG").output().expect("starts")
}

fn json(args: &[&str]) -> Value {
    let output = run(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Exit code and standard error of a command that must not succeed and must not print results.
fn fails(args: &[&str]) -> (Option<i32>, String) {
    let output = run(args);
    assert!(output.stdout.is_empty(), "{args:?} writes to standard output");
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}

#[test]
fn a_wrong_command_line_exits_2_and_says_what_is_allowed() {
    let with = |args: &[&'static str]| [&["run", "no.onnx", "--dataset", "random:4"], args].concat();
    for (args, part) in [
        (vec![], "compare"),
        (vec!["run", "no.onnx"], "--dataset"),
        (vec!["run", "no.onnx", "--dataset", "random:1"], "at least 2"),
        (vec!["run", "no.onnx", "--dataset", "imagenet:x"], "mnist-idx:DIR"),
        (with(&["--rule", "r4"]), "posfirst, r1:Z"),
        (with(&["--rule", "r2"]), "from 0 to 1"),
        (with(&["--encoding", "gray"]), "pm1, twos, sign, inverted, csd"),
        (with(&["--rule", "posfirst"]), "posfirst with sign"),
        (with(&["--rule", "r1:1", "--encoding", "csd"]), "r1 with pm1|twos|inverted"),
        (with(&["--rule", "r1:1", "--bits", "12"]), "at most 10 bits"),
        (with(&["--bits", "1"]), "2 to 16"),
        (with(&["--bits", "17"]), "2 to 16"),
        (with(&["--batch", "0"]), "at least 1"),
        (with(&["--max-loss", "2"]), "0 to 100%"),
        (with(&["--rule", "r2:0.1", "--max-loss", "0"]), "random ones have none"),
        (with(&["--split", "test:1-2"]), "calibrate:FIRST-LAST"),
        (with(&["--engine", "fpga"]), "auto"),
    ] {
        let (code, message) = fails(&args);
        assert!(code == Some(2) && message.contains(part), "{args:?}: {code:?}, `{part}` is not in: {message}");
    }
    let (code, message) = fails(&with(&[]));
    assert!(code == Some(1) && message.contains("no.onnx"), "{message}");
}

fn data(name: &str) -> String {
    let folder = std::env::var("SUBLANE_DATA").expect("set SUBLANE_DATA to the absolute path of the data folder");
    format!("{folder}/{name}")
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn a_run_reports_network_and_layers() {
    let (model, images) = (data("models/mnist-cnn.onnx"), format!("mnist-idx:{}", data("images")));
    let subject = [model.as_str(), "--dataset", &images, "--split", "calibrate:0-99,tune:100-299,test:300-799"];
    let report =
        json(&[&["run"], &subject[..], &["--rule", "r2:0.002", "--geometry", "group=4", "--geometry", "group=2,refill=0"]].concat());
    let keys = [
        "accuracy",
        "accuracy_float",
        "ops_saved",
        "ops_saved_network",
        "ceiling",
        "killed",
        "killed_mass",
        "zero_fraction",
        "cycles",
        "cycles_baseline",
        "speedup",
        "energy_pj",
        "energy_ratio",
    ];
    let rows = report["rows"].as_array().expect("rows");
    for object in [&report, &rows[0]] {
        keys.iter().for_each(|key| assert!(object[*key].is_number(), "`{key}` of {object}"));
    }
    let stopped: Vec<&Value> = rows.iter().filter(|row| row["stopped"] == "yes").collect();
    assert!(!stopped.is_empty() && stopped.iter().all(|row| keys[2..].iter().all(|key| row[*key].is_number())), "{rows:?}");
    assert!(rows.iter().any(|row| row["stopped"] == "first layer") && rows.iter().any(|row| row["stopped"] == "last layer"));
    let number = |key: &str| report[key].as_f64().expect("a number");
    assert!(number("accuracy") > 0.97 && number("ops_saved") > 0.1 && number("ops_saved") < number("ceiling"), "{report}");
    assert!((number("accuracy") - number("accuracy_float")).abs() < 0.01);
    assert!((number("speedup") - number("cycles_baseline") / number("cycles")).abs() < 1e-9);
    assert_eq!(report["geometries"].as_array().expect("arrays").len(), 2);
    // Beside it the same layers as packed products, and what rounding changes.
    assert!(number("packed_images_per_s") > 0.0);
    let is_near =
        |row: &&Value| row["packed_ms"].as_f64().is_some_and(|ms| ms > 0.0) && row["fixed_point_error"].as_f64().is_some_and(|e| e < 1.5);
    assert!(stopped.iter().all(is_near), "{rows:?}");

    let page = std::env::temp_dir().join(format!("sublane-bitset-{}.html", std::process::id()));
    let limited = [&["run"], &subject[..], &["--rule", "r0", "--limit", "100", "--html", page.to_str().expect("UTF-8")]].concat();
    assert!(run(&limited).status.success());
    let html = std::fs::read_to_string(&page).expect("is written");
    std::fs::remove_file(&page).expect("is there");
    let bars = html.split("Planes saved by layer").nth(1).expect("a heading").split("</svg>").next().expect("a drawing");
    assert!(stopped.iter().all(|row| bars.contains(row["name"].as_str().expect("a name"))), "{bars}");
    assert_eq!(bars.matches("class=\"bar\"").count(), stopped.len());

    let tuned = json(&[&["tune"], &subject[..], &["--max-loss", "1%", "--trials", "6"]].concat());
    let trials = tuned["rows"].as_array().expect("trials");
    assert!((1..=6).contains(&trials.len()) && trials.iter().any(|trial| trial["kept"] == true), "{tuned}");
    assert!(tuned["layers"].as_array().expect("layers").iter().all(|layer| layer["thresholds"].as_array().is_some_and(|t| t.len() == 7)));

    let compared = json(&[&["compare"], &subject[..], &["--limit", "100", "--geometry", "group=4"]].concat());
    assert_eq!(compared["exact_agree"], true);
    // Five codes without a rule, with r0, r2 and r3; one of posfirst and three of r1.
    assert_eq!(compared["rows"].as_array().expect("rows").len(), 24);
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn images_are_used_once_and_splits_have_some() {
    let (model, images) = (data("models/mnist-cnn.onnx"), format!("mnist-idx:{}", data("images")));
    for (split, part) in [
        ("calibrate:0-99,test:99-200", "overlap"),
        ("calibrate:0-99,tune:50-60,test:100-200", "overlap"),
        ("calibrate:0-99,test:9000-10000", "there are 10000"),
    ] {
        let (code, message) = fails(&["run", &model, "--dataset", &images, "--split", split]);
        assert!(code == Some(2) && message.contains(part), "{split}: {message}");
    }
    let cifar = format!("cifar10:{}", data("images/cifar10-test_batch.bin.gz"));
    let (_, message) = fails(&["run", &model, "--dataset", &cifar]);
    assert!(message.contains("choose the data set"), "{message}");
    // Random images have no classes, and no accuracy.
    let report = json(&["run", &model, "--dataset", "random:4", "--rule", "r0", "--encoding", "twos"]);
    assert!(report["accuracy"].is_null() && report["killed"] == 0.0 && report["changed"] == 0, "{report}");
}

/// What weights on the odd grid and activations of 8 bits lose on the 9,000 images that scales were not taken from; in points.
fn lost_in_integers(model: &str, images: &str) -> f64 {
    let report = json(&["run", &data(model), "--dataset", images, "--split", "calibrate:0-999,test:1000-9999", "--geometry", "group=1"]);
    let number = |key: &str| report[key].as_f64().expect("a number");
    100.0 * (number("accuracy_float") - number("accuracy"))
}

#[test]
#[ignore = "needs SUBLANE_DATA"]
fn integers_lose_at_most_three_tenths_of_a_point() {
    let cifar = format!("cifar10:{}", data("images/cifar10-test_batch.bin.gz"));
    let lost = lost_in_integers("models/mnist-cnn.onnx", &format!("mnist-idx:{}", data("images")));
    assert!(lost <= 0.3, "{lost} points of the MNIST CNN");
    let lost = lost_in_integers("models/cifar10-resnet20.onnx", &cifar);
    assert!(lost <= 0.3, "{lost} points of ResNet-20");
}
