//! The commands on temporal motifs from outside: results, JSON, files, bad input.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sublane"));
    command.arg("motifs").args(args).current_dir(folder).env_remove("RUST_LOG").output().expect("starts")
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let output = run(folder, &[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Exit code and standard error of a command that must not succeed and must not print results.
fn fails(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = run(folder, args);
    assert!(output.stdout.is_empty(), "{args:?} writes to standard output");
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}

fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

/// The fields of `object` that `expected` has.
fn assert_fields(object: &Value, expected: Value) {
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&object[key], value, "`{key}` of {object}");
    }
}

#[test]
fn the_list_has_every_named_motif() {
    let folder = folder_with(&[]);
    let object = json(folder.path(), &["list", "--seed", "4"]);
    let keys: Vec<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys, ["schema", "command", "adapter", "driver", "seed", "rows"]);
    assert_fields(&object, serde_json::json!({"schema": 1, "command": "motifs list", "adapter": null, "seed": 4}));
    let rows = object["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 8 + 13 + 36);
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_fields(row("M4-1"), serde_json::json!({"num_vertices": 4, "num_edges": 9, "edges": "0>1 1>2 2>3 3>2 2>1 1>0 0>1 1>2 2>3"}));
    assert_fields(row("G65"), serde_json::json!({"num_vertices": 3, "num_edges": 3, "edges": "0>1 0>1 1>2"}));
    let text = String::from_utf8(run(folder.path(), &["list"]).stdout).expect("UTF-8");
    assert!(text.lines().any(|line| line.contains("clique4") && line.contains("0>1 1>2 2>3 3>1 3>0 0>2")), "{text}");
}

#[test]
fn a_converted_graph_says_and_keeps_what_it_held() {
    let text = "# ratings\nfrom,to,rating,time\n7,8,1,20.5\n8,7,-1,10\n7,8,1,20.50\n9,9,5,30.25\n\n";
    let folder = folder_with(&[("ratings.csv", text)]);
    let holds = serde_json::json!({
        "edges": 4, "vertices": 3, "pairs": 3, "loops": 1, "duplicates": 1, "ties": 2, "distinct_times": 3, "decimals": 2,
        "first_ticks": 1000, "last_ticks": 3025, "span_ticks": 2025
    });
    let first = json(folder.path(), &["convert", "ratings.csv", "g.bin", "--columns", "src,dst,_,t"]);
    assert_fields(&first, holds.clone());
    let read = serde_json::json!({
        "command": "motifs convert", "form": "text", "columns": "src,dst,_,t", "lines": 7, "comments": 1, "blank": 1, "header": true,
        "output": "g.bin", "output_form": "binary"
    });
    assert_fields(&first, read);
    assert_eq!(first["output_bytes"], std::fs::metadata(folder.path().join("g.bin")).expect("written").len());
    assert!(["read_seconds", "build_seconds", "write_seconds"].iter().all(|key| first[key].is_number()), "{first}");

    let second = json(folder.path(), &["convert", "g.bin", "g.txt.gz", "--to", "text"]);
    assert_fields(&second, holds.clone());
    assert_fields(&second, serde_json::json!({"form": "binary", "lines": null, "header": null, "output_form": "text"}));
    let third = json(folder.path(), &["convert", "g.txt.gz", "again.txt", "--to", "text"]);
    assert_fields(&third, holds);
    let again = std::fs::read_to_string(folder.path().join("again.txt")).expect("written");
    assert_eq!(again, "0 1 10\n1 0 20.5\n1 0 20.5\n2 2 30.25\n");
}

#[test]
fn generated_graphs_are_those_of_the_seed() {
    let folder = folder_with(&[]);
    let make = |seed: &str, output: &str| {
        let args = ["generate", output, "--edges", "2e3", "--vertices", "50", "--span", "1w", "--loops", "0.1", "--seed", seed];
        let object = json(folder.path(), &args);
        assert_fields(&object, serde_json::json!({"command": "motifs generate", "edges": 2000, "vertices": 50, "decimals": 0}));
        assert!(object["last_ticks"].as_u64() <= Some(604_800) && object["loops"].as_u64() > Some(100), "{object}");
        std::fs::read(folder.path().join(output)).expect("written")
    };
    let first = make("1", "a.txt");
    assert_eq!(first.iter().filter(|&&b| b == b'\n').count(), 2000);
    assert_eq!(first, make("1", "b.txt"));
    assert_ne!(first, make("2", "c.txt"));
    let args = ["generate", "d.bin", "--to", "binary", "--edges", "100"];
    assert_eq!(json(folder.path(), &args)["output_form"], "binary");
    assert_fields(&json(folder.path(), &["convert", "d.bin", "e"]), serde_json::json!({"form": "binary", "edges": 100, "vertices": 16}));
}

#[test]
fn wrong_input_is_refused_and_leaves_no_file() {
    let graphs = [("four.txt", "1 2 3 4\n"), ("bad.txt", "1 2 3\n1 2 soon\n"), ("good.txt", "1 2 3\n")];
    let folder = folder_with(&graphs);
    for (args, part) in [
        (&["convert", "none.txt", "out"][..], "none.txt"),
        (&["convert", "four.txt", "out"], "--columns src,dst,_,t"),
        (&["convert", "bad.txt", "out"], "`bad.txt`: line 2, `1 2 soon`"),
        (&["convert", "good.txt", "out", "--columns", "src,dst,_,t"], "3 columns"),
        (&["convert", "good.txt", "no/such/folder/out"], "no/such/folder"),
        (&["convert", "good.txt", "./good.txt"], "write to another file"),
    ] {
        let (code, message) = fails(folder.path(), args);
        assert_eq!(code, Some(1), "{args:?}: {message}");
        assert!(message.contains("error: ") && message.contains(part), "{args:?}: `{part}` is not in: {message}");
    }
    for (args, part) in [
        (&["convert", "good.txt"][..], "OUT"),
        (&["convert", "good.txt", "out", "--columns", "src,dst"], "`t` is missing"),
        (&["generate", "out", "--vertices", "1"], "2 to 2^32 - 2"),
        (&["generate", "out", "--loops", "1.5"], "0 to 1"),
        (&["generate", "out", "--edges", "1e12"], "2^31"),
        (&["generate", "out", "--edges", "-5"], "from 0 to 2^64 - 1"),
        (&["generate", "out", "--seed", "-1"], "from 0 to 2^64 - 1"),
        (&["generate", "out", "--span", "-1d"], "negative"),
        (&["generate", "out", "--span", "1y"], "`y`"),
        (&["nonsense"], "nonsense"),
    ] {
        let (code, message) = fails(folder.path(), args);
        assert_eq!(code, Some(2), "{args:?}: {message}");
        assert!(message.contains(part), "{args:?}: `{part}` is not in: {message}");
    }
    assert!(!folder.path().join("out").exists());
}
