//! `sublane motifs count`, `plan` and `merge` from outside: results, JSON, shards, bad input.

use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sublane"));
    command.arg("motifs").args(args).current_dir(folder).env_remove("RUST_LOG").output().expect("starts")
}

fn text(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn read(folder: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&text(folder, &[args, &["--json"]].concat())).expect("one JSON object")
}

/// Exit code and standard error of a command that must not succeed.
fn fails(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = run(folder, args);
    assert!(output.stdout.is_empty(), "{args:?} writes to standard output");
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}

/// A folder with a generated graph, `g.txt`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("folder");
    text(folder.path(), &["generate", "g.txt", "--edges", "4000", "--vertices", "60", "--span", "20d", "--seed", "1"]);
    folder
}

#[test]
fn every_way_of_counting_gives_one_number() {
    let folder = folder();
    let count = |args: &[&str]| read(folder.path(), &[&["count", "g.txt", "--engine", "cpu", "--delta", "1d"], args].concat());
    for (motif, ties) in [("M4-0", "order"), ("E1", "strict"), ("E5", "order"), ("0>1 1>0 0>1", "order")] {
        let exact = count(&["--motif", motif, "--ties", ties, "--exact"]);
        assert_eq!((&exact["method"], &exact["anchor"], &exact["ties"]), (&json!("backtrack"), &Value::Null, &json!(ties)));
        let expected = exact["estimate"].as_u64().expect("an integer");
        assert!(expected > 100, "{motif}: {expected}");
        for how in [&[][..], &["--enumerate"], &["--prune", "off", "--enumerate"], &["--budget", "1e9"]] {
            let found = count(&[&["--motif", motif, "--ties", ties], how].concat());
            assert_eq!((&found["estimate"], &found["method"]), (&exact["estimate"], &json!("enumerate")), "{motif} {how:?}");
            assert_eq!((&found["std_error"], &found["ci95"]), (&json!(0), &json!([expected, expected])));
        }
        let drawn = count(&["--motif", motif, "--ties", ties, "--samples", "200000", "--seed", "7"]);
        assert_eq!((&drawn["method"], &drawn["seed"]), (&json!("sample"), &json!(7)));
        let (estimate, error) = (drawn["estimate"].as_f64().expect("a number"), drawn["std_error"].as_f64().expect("a number"));
        assert!((estimate - expected as f64).abs() <= 5.0 * error, "{motif}: {estimate} +- {error}, {expected} exactly");
        assert!(drawn["w_pruned"].as_u64() <= drawn["w"].as_u64() && drawn["samples"].as_u64().is_some_and(|n| n > 0));
    }
}

#[test]
fn keys_begin_with_those_that_are_promised() {
    let folder = folder();
    let found = read(folder.path(), &["count", "g.txt", "--motif", "M4-0", "--delta", "90m", "--samples", "1e4"]);
    let keys: Vec<&str> = found.as_object().expect("an object").keys().map(String::as_str).take(24).collect();
    let promised = "schema command adapter driver seed motif delta ties method estimate std_error ci95 samples valid nonzero w w_pruned anchor \
                    r1 seconds samples_per_s saturated engine prune";
    assert_eq!(keys, promised.split_whitespace().collect::<Vec<_>>());
    assert_eq!((&found["command"], &found["motif"], &found["delta"]), (&json!("motifs count"), &json!("M4-0"), &json!(5400)));
    let shown = text(folder.path(), &["count", "g.txt", "--motif", "M4-0", "--delta", "90m", "--html", "page.html"]);
    assert!(shown.contains("matches, exactly") && shown.contains("M4-0"), "{shown}");
    assert!(std::fs::read_to_string(folder.path().join("page.html")).expect("written").contains("sublane motifs count"));
}

#[test]
fn motifs_come_from_files_and_times_have_units() {
    let folder = tempfile::tempdir().expect("folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("cycle", "# there and back\n5 6\n6 5\n");
    write("g.csv", "a,b,9,0\nb,a,9,5000\nb,a,9,5001\n");
    let count = |args: &[&str]| read(folder.path(), &[&["count", "g.csv", "--columns", "src,dst,_,t", "--motif", "cycle"], args].concat());
    for (delta, unit, expected) in [("5s", "ms", 1), ("5000", "s", 1), ("5001ms", "ms", 2), ("1h", "s", 0), ("2h", "s", 2), ("0", "s", 0)] {
        let found = count(&["--delta", delta, "--time-unit", unit]);
        assert_eq!(found["estimate"], expected, "{delta} {unit}: {found}");
    }
    assert_eq!(count(&["--delta", "1h"])["motif_edges"], "0>1 1>0");
}

#[test]
fn shards_merge_to_the_whole() {
    let folder = folder();
    let base = ["count", "g.txt", "--motif", "M4-0", "--delta", "12h", "--seed", "3"];
    for how in [&["--samples", "30000"][..], &["--enumerate"]] {
        let whole = read(folder.path(), &[&base, how].concat());
        let mut files = vec!["merge"];
        for (shard, file) in [("3/3", "3.json"), ("1/3", "1.json"), ("2/3", "2.json")] {
            let part = text(folder.path(), &[&base, how, &["--shard", shard, "--json"]].concat());
            std::fs::write(folder.path().join(file), part).expect("written");
            files.push(file);
        }
        let merged = read(folder.path(), &files);
        for key in
            "motif delta ties method estimate std_error ci95 samples valid nonzero w w_pruned anchor r1 saturated prune seed".split(' ')
        {
            assert_eq!(merged[key], whole[key], "{key}");
        }
        let (code, message) = fails(folder.path(), &["merge", "1.json", "3.json"]);
        assert_eq!(code, Some(1));
        assert!(message.contains("shards 2/3 are missing"), "{message}");
        let (_, message) = fails(folder.path(), &["merge", "1.json", "2.json", "2.json"]);
        assert!(message.contains("2/3 is given twice, in `2.json` and `2.json`"), "{message}");
    }
    std::fs::write(folder.path().join("whole.json"), text(folder.path(), &[&base[..], &["--json"]].concat())).expect("written");
    let (_, message) = fails(folder.path(), &["merge", "whole.json"]);
    assert!(message.contains("`whole.json` is no shard"), "{message}");
    let (_, message) = fails(folder.path(), &["merge", "g.txt"]);
    assert!(message.contains("`g.txt` is no report"), "{message}");
}

#[test]
fn errors_and_budgets_say_what_ended_them() {
    let folder = folder();
    let count =
        |args: &[&str]| read(folder.path(), &[&["count", "g.txt", "--motif", "M4-0", "--delta", "5d", "--prune", "off"], args].concat());
    let reached = count(&["--error", "10%"]);
    assert_eq!((&reached["method"], &reached["ended_by"]), (&json!("sample"), &json!("goal")));
    let part = |found: &Value| found["std_error"].as_f64().expect("a number") / found["estimate"].as_f64().expect("a number");
    assert!(part(&reached) <= 0.1 && reached["nonzero"].as_u64() >= Some(500));
    let ended = count(&["--error", "0.01%", "--budget", "30000"]);
    assert_eq!((&ended["method"], &ended["ended_by"]), (&json!("sample"), &json!("budget")));
    assert!(ended["samples"].as_u64() <= Some(30_000) && part(&ended) > 0.0001);
    let sampled = count(&["--budget", "20000"]);
    assert_eq!((&sampled["method"], &sampled["ended_by"]), (&json!("sample"), &json!("budget")));
    assert!(sampled["notes"].to_string().contains("more than the budget of 20000"), "{sampled}");
}

#[test]
fn a_plan_lists_all_anchors_and_count_takes_the_one_it_takes() {
    let folder = folder();
    let base = ["g.txt", "--motif", "M4-0", "--delta", "2d", "--samples", "50000"];
    let plan = read(folder.path(), &[&["plan"][..], &base].concat());
    let rows = plan["rows"].as_array().expect("rows");
    let anchors: Vec<&str> = rows.iter().filter_map(|row| row["anchor"].as_str()).collect();
    assert_eq!(anchors, ["0:1,3", "1:0,2", "2:1,3", "3:0,2"]);
    assert!(rows.iter().all(|row| row["w"].is_u64() && row["pilots"].as_u64() > Some(0)));
    let count = read(folder.path(), &[&["count"][..], &base].concat());
    assert_eq!((&count["anchor"], &count["prune"]), (&plan["anchor"], &plan["prune"]));
    // A motif that needs a tree.
    let plan = read(folder.path(), &["plan", "g.txt", "--motif", "E6", "--delta", "1h"]);
    assert!(plan["rows"].as_array().expect("rows").iter().all(|row| row["anchor"].as_str().is_some_and(|a| a.starts_with("tree:"))));
}

#[test]
fn the_grid_holds_what_counting_each_gives() {
    let folder = folder();
    let grid = read(folder.path(), &["grid", "g.txt", "--delta", "6h", "--ties", "strict"]);
    let rows = grid["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), &grid["method"]), (6, &json!("grid")));
    let sum: u64 = rows.iter().flat_map(|row| (1..=6).map(move |j| row[j.to_string()].as_u64().expect("an integer"))).sum();
    assert_eq!(grid["sum"], sum);
    for (motif, row, column) in [("G11", 0, "1"), ("G42", 3, "2"), ("G65", 5, "5")] {
        let one = read(folder.path(), &["count", "g.txt", "--motif", motif, "--delta", "6h", "--ties", "strict"]);
        assert_eq!(rows[row][column], one["estimate"], "{motif}");
    }
}

#[test]
fn a_comparison_has_every_method() {
    let folder = folder();
    let args = ["compare", "g.txt", "--motif", "G42", "--delta", "6h", "--samples", "1e5", "--probability", "0.2", "--html", "page.html"];
    let found = read(folder.path(), &args);
    let rows = found["rows"].as_array().expect("rows");
    let methods: Vec<&str> = rows.iter().filter_map(|row| row["method"].as_str()).collect();
    assert_eq!(methods, ["backtrack", "enumerate", "grid", "sample", "presto", "edge-sampling"]);
    assert_eq!(found["exact_agree"], true);
    assert!(rows.iter().all(|row| row["seconds"].is_number() && row["relative_error"].as_f64().is_some_and(|e| e < 0.5)), "{found}");
    assert!(rows[..3].iter().all(|row| row["estimate"] == found["exact"]));
    assert!(std::fs::read_to_string(folder.path().join("page.html")).expect("written").contains("edge-sampling"));
    let some = read(folder.path(), &["compare", "g.txt", "--motif", "M4-0", "--delta", "6h", "--skip", "backtrack,presto"]);
    let rows = some["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4);
    assert!(rows[1]["note"].as_str().is_some_and(|note| note.contains("none of the 36")));
    let (code, message) = fails(folder.path(), &["compare", "g.txt", "--motif", "M4-0", "--delta", "6h", "--skip", "guessing"]);
    assert_eq!(code, Some(2));
    assert!(message.contains("edge-sampling"), "{message}");
    let (code, message) = fails(folder.path(), &["compare", "g.txt", "--motif", "M4-0", "--delta", "6h", "--probability", "2"]);
    assert_eq!(code, Some(2));
    assert!(message.contains("at most 1"), "{message}");
}

#[test]
fn wrong_input_is_refused() {
    let folder = folder();
    let base = ["count", "g.txt", "--delta", "1d"];
    for (args, code, part) in [
        (&["--motif", "M9"][..], 2, "nor is there a file"),
        (&["--motif", "M4-0", "--anchor", "1:2"], 2, "no anchor of motif"),
        (&["--motif", "M4-0", "--anchor", "centre"], 2, "`C:S,S`"),
        (&["--motif", "M4-0", "--exact", "--samples", "3"], 2, "cannot be used with"),
        (&["--motif", "M4-0", "--exact", "--shard", "1/2"], 2, "cannot be used with"),
        (&["--motif", "M4-0", "--enumerate", "--budget", "3"], 2, "cannot be used with"),
        (&["--motif", "M4-0", "--samples", "-3"], 2, "at least 1"),
        (&["--motif", "M4-0", "--samples", "1.5"], 2, "whole number"),
        (&["--motif", "M4-0", "--error", "0"], 2, "above 0"),
        (&["--motif", "M4-0", "--error", "200%"], 2, "above 0"),
        (&["--motif", "M4-0", "--shard", "3/2"], 2, "no shard"),
        (&["--motif", "M4-0", "--shard", "1/99"], 2, "at most 32"),
        (&["--motif", "M4-0", "--prune", "some"], 2, "pairs"),
        (&["--motif", "M4-0", "--time-unit", "h"], 2, "unit"),
        (&[], 2, "--motif"),
        (&["--motif", "M4-0", "--samples", "0"], 2, "at least 1"),
        (&["--motif", "M4-0", "--budget", "0"], 2, "at least 1"),
        (&["--motif", "M4-0", "--error", "1%", "--shard", "1/2"], 2, "cannot be used with"),
        (&["--motif", "M4-0", "--memory-limit", "1K"], 1, "may be used"),
        (&["--motif", "0>1 2>3", "--samples", "10"], 1, "not connected"),
        (&["--motif", "0>0 0>1 1>1", "--enumerate"], 1, "loops"),
        (&["--motif", "E6", "--prune", "rows"], 1, "pruning is made for anchors that are paths"),
        (&["--motif", "M4-0", "--html", "no/such/page.html"], 1, "no/such"),
    ] {
        let (found, message) = fails(folder.path(), &[&base, args].concat());
        assert_eq!(found, Some(code), "{args:?}: {message}");
        assert!(message.contains("error: ") && message.contains(part), "{args:?}: `{part}` is not in: {message}");
    }
    let (code, message) = fails(folder.path(), &["count", "g.txt", "--motif", "M4-0", "--delta", "-1d"]);
    assert_eq!(code, Some(2));
    assert!(message.contains("negative"), "{message}");
    let (code, message) = fails(folder.path(), &["count", "none.txt", "--motif", "M4-0", "--delta", "1d"]);
    assert_eq!(code, Some(1));
    assert!(message.contains("none.txt"), "{message}");
    let whole = "0 1 -9223372036854775808\n1 0 0\n0 1 9223372036854775807\n";
    std::fs::write(folder.path().join("whole.txt"), whole).expect("written");
    let (code, message) = fails(folder.path(), &["count", "whole.txt", "--motif", "G51", "--delta", "18446744073709551615"]);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("2^63 - 1 ticks"), "{message}");
    let auto = read(folder.path(), &["count", "g.txt", "--motif", "0>1 2>3", "--delta", "60"]);
    assert_eq!(auto["method"], "backtrack");
    assert!(auto["notes"].to_string().contains("not connected"), "{auto}");
}
