//! The rules of the house that the compiler does not check: layers, purity, parity of shaders and twins, the README's commands, leftovers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Layers, lowest first: modules, and the layers they may use besides their own. Names of layers are those of ARCHITECTURE.md.
const LAYERS: &[(&str, &[&str], &[&str])] = &[
    ("1", &["error", "tensor", "stats", "files", "progress", "shaders"], &[]),
    ("2", &["plan"], &["1"]),
    ("3a", &["device"], &["1", "2"]),
    ("3b", &["graph", "ops"], &["1"]),
    ("4", &["import", "autodiff"], &["1", "3b"]),
    ("5", &["compiler"], &["1", "2", "3b"]),
    ("6a", &["session"], &["1", "2", "3a", "3b", "4", "5"]),
    ("6b", &["capture"], &["1", "2", "3a", "3b", "4", "5", "6a"]),
    ("7", &["nn"], &["1", "2", "3a", "3b", "4", "5", "6a", "6b"]),
    ("8", &["precision"], &["1", "2", "3a", "3b", "4", "5", "6a", "6b", "7"]),
    ("8", &["motifs"], &["1", "2", "3a", "3b", "4", "5", "6a", "6b", "7"]),
    ("8", &["bitset"], &["1", "2", "3a", "3b", "4", "5", "6a", "6b", "7"]),
    ("9", &["suite", "report"], &["1", "2", "3a", "3b", "4", "5", "6a", "6b", "7", "8"]),
    ("10", &["cli", "main"], &["1", "2", "3a", "3b", "4", "5", "6a", "6b", "7", "8", "9"]),
];

/// Names that each module outside the list must not contain: what only the modules that are listed may know.
const RESERVED: &[(&str, &[&str])] =
    &[("wgpu::", &["device", "lib"]), ("clap", &["cli"]), ("indicatif", &["cli"]), ("comfy_table", &["report"])];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below `folder` with one of the endings, sorted; build outputs are left out.
fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if name != "target" && name != ".git" {
                open.extend(fs::read_dir(&path).expect("readable").map(|entry| entry.expect("readable").path()));
            }
        } else if endings.iter().any(|e| path.to_str().is_some_and(|p| p.ends_with(e))) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The text without `//` comments, so that prose may name anything.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default().to_string() + "\n").collect()
}

fn identifier(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// First identifiers of what follows `prefix` in `code`: `a` and `b` of `crate::{a::x, b}` as well as `c` of `crate::c::y`.
fn heads(code: &str, prefix: &str) -> Vec<String> {
    let mut heads = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            heads.push(identifier(rest).to_string());
            continue;
        };
        let (mut depth, mut fresh) = (0, true);
        for (i, c) in group.char_indices() {
            match c {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => fresh = true,
                c if fresh && (c.is_alphanumeric() || c == '_') => {
                    heads.push(identifier(&group[i..]).to_string());
                    fresh = false;
                }
                _ => {}
            }
        }
    }
    heads
}

/// Names that the crate's root re-exports, and the module each comes from.
fn reexports() -> BTreeMap<String, String> {
    let lib = code(&read(&root().join("src/lib.rs")));
    let mut names = BTreeMap::new();
    for line in lib.lines().filter_map(|l| l.trim().strip_prefix("pub use ")) {
        let module = identifier(line).to_string();
        for name in heads(&format!("use {line}"), &format!("{module}::")) {
            names.insert(name, module.clone());
        }
        names.insert(module.clone(), module);
    }
    names
}

/// Module that a file below `src` belongs to.
fn module(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src")).expect("below src");
    let first = inside.components().next().expect("not empty").as_os_str().to_str().expect("UTF-8");
    first.trim_end_matches(".rs").to_string()
}

/// What is wrong with the use of `name` in `module`, if anything.
fn layer_fault(module: &str, name: &str, reexports: &BTreeMap<String, String>) -> Option<String> {
    let row = |module: &str| LAYERS.iter().find(|(_, modules, _)| modules.contains(&module));
    let name = reexports.get(name).map_or(name, String::as_str);
    if ["kernels_gen", "wgpu"].contains(&name) {
        return None;
    }
    let (Some((_, own, below)), Some((layer, _, _))) = (row(module), row(name)) else {
        return Some(format!("`{module}` uses `{name}`; one of them is in no layer of the table"));
    };
    (!own.contains(&name) && !below.contains(layer)).then(|| format!("`{module}` uses `{name}`, which stands above or beside it"))
}

#[test]
fn imports_point_down() {
    let reexports = reexports();
    let mut faults = Vec::new();
    for path in files("src", &[".rs"]) {
        let (module, code) = (module(&path), code(&read(&path)));
        if module == "lib" {
            continue;
        }
        for name in heads(&code, "crate::").into_iter().chain(heads(&code, "sublane::")) {
            // A macro's `$crate::` and the binary's own `crate::cli` name the same modules.
            if let Some(fault) = layer_fault(&module, &name, &reexports) {
                faults.push(format!("{}: {fault}", shown(&path)));
            }
        }
        for (word, homes) in RESERVED {
            if !homes.contains(&module.as_str()) && !heads(&code, word).is_empty() {
                faults.push(format!("{}: only {homes:?} may name `{word}`", shown(&path)));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_layer_test_sees_what_it_is_for() {
    let reexports = reexports();
    assert_eq!(reexports["Error"], "error");
    assert_eq!(heads("use crate::{graph::{Op, Node}, ops};\ncrate::plan::x", "crate::"), ["graph", "ops", "plan"]);
    for (module, name) in
        [("error", "plan"), ("graph", "plan"), ("graph", "device"), ("motifs", "bitset"), ("compiler", "session"), ("plan", "nonsense")]
    {
        assert!(layer_fault(module, name, &reexports).is_some(), "`{module}` must not use `{name}`");
    }
    for (module, name) in [("plan", "Error"), ("graph", "ops"), ("session", "compiler"), ("cli", "suite"), ("device", "wgpu")] {
        assert_eq!(layer_fault(module, name, &reexports), None);
    }
}

#[test]
fn the_kernel_crate_is_pure() {
    let mut faults = Vec::new();
    for path in files("kernels-gen/src", &[".rs"]).into_iter().filter(|p| !shown(p).contains("/bin/")) {
        let code = code(&read(&path));
        for word in ["wgpu", "std::fs", "std::env", "std::io", "std::time", "std::net", "std::process"] {
            if code.contains(word) {
                faults.push(format!("{}: names `{word}`", shown(&path)));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_environment_is_read_in_from_env_only() {
    let mut faults = Vec::new();
    for path in files("src", &[".rs"]) {
        let text = read(&path);
        let tested = text.find("#[cfg(test)]").unwrap_or(text.len());
        let mut function = "";
        for line in text[..tested].lines() {
            if let Some((_, rest)) = line.split_once("fn ") {
                function = identifier(rest);
            }
            if code(line).contains("env::var") && !function.ends_with("from_env") {
                faults.push(format!("{}: `{function}` reads the environment", shown(&path)));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn shaders_table_and_twins_agree() {
    use sublane::shaders::{LIBRARIES, SHADERS, kernels};
    let stem = |path: &Path| path.file_stem().and_then(|s| s.to_str()).expect("UTF-8").to_string();
    let in_folder: Vec<PathBuf> = files("shaders", &[".wgsl"]);
    let stems: BTreeSet<String> = in_folder.iter().map(|p| stem(p)).collect();
    assert_eq!(stems.len(), in_folder.len(), "file stems of shaders are unique");
    let in_table: BTreeSet<String> =
        LIBRARIES.iter().map(|(s, _)| s.to_string()).chain(SHADERS.iter().map(|s| s.stem.to_string())).collect();
    assert_eq!(stems, in_table, "every file of shaders/ is in the table of src/shaders.rs and the other way round");

    let mut names = BTreeSet::new();
    for (shader, flags) in kernels() {
        assert!(names.insert(shader.name(flags)), "two kernels are named `{}`", shader.name(flags));
        assert_eq!(shader.text.matches(&format!("fn {}(", shader.stem)).count(), 1, "`{0}.wgsl` has one entry point `{0}`", shader.stem);
        let file = in_folder.iter().find(|p| stem(p) == shader.stem).expect("in the folder");
        let system = file.parent().and_then(|p| p.file_name()).and_then(|n| n.to_str()).expect("in a folder");
        let home = if system == "shared" { "shaders" } else { system };
        let twin = root().join(format!("src/{home}/twins/{}.rs", shader.stem));
        assert!(twin.exists(), "`{}` has no twin file {}", shader.stem, shown(&twin));
    }
    let twins: BTreeSet<String> = sublane::suite::twins::twins().iter().map(|t| t.name.to_string()).collect();
    assert_eq!(names, twins, "every hand-written kernel has a twin and the other way round");
}

#[test]
fn the_readme_begins_with_the_commands_that_ci_proves() {
    let readme = read(&root().join("README.md"));
    let blocks: Vec<&str> = readme.split("```sh\n").skip(1).filter_map(|b| b.split("\n```").next()).collect();
    assert_eq!(blocks[..2], ["scripts/setup.sh && cargo run --release -- demo", "scripts/setup.sh && cargo test --release --workspace"]);
    assert!(read(&root().join(".ci/run")).contains(blocks[1]), ".ci/run runs the second command of the README");
    for link in readme.split("](").skip(1).filter_map(|l| l.split(')').next()).filter(|l| !l.starts_with("http")) {
        assert!(root().join(link).exists(), "README links to `{link}`, which does not exist");
    }
}

#[test]
fn nothing_unfinished_is_left() {
    // Put together here, so that this file does not contain them.
    let words = [["TO", "DO"], ["FIX", "ME"], ["to", "do!("], ["unimple", "mented!("], ["db", "g!("], ["for ", "now"], ["place", "holder"]];
    let mut faults = Vec::new();
    for folder in
        ["src", "kernels-gen", "shaders", "tests", "benches", "examples", "scripts", "docs", "README.md", "ARCHITECTURE.md", "CHANGELOG.md"]
    {
        if !root().join(folder).exists() {
            continue;
        }
        for path in files(folder, &[".rs", ".wgsl", ".md", ".sh", ".toml"]) {
            let text = read(&path);
            for word in words.iter().map(|w| w.concat()) {
                if text.contains(&word) {
                    faults.push(format!("{}: contains `{word}`", shown(&path)));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn files_are_of_a_length_to_read() {
    const MOST_LINES: usize = 700;
    let all = ["src", "kernels-gen/src", "shaders", "tests"].map(|folder| files(folder, &[".rs", ".wgsl"])).concat();
    let long: Vec<String> = all
        .iter()
        .filter(|path| !shown(path).contains("golden"))
        .map(|path| (read(path).lines().count(), path))
        .filter(|(lines, _)| *lines > MOST_LINES)
        .map(|(lines, path)| format!("{}: {lines} lines, at most {MOST_LINES}; split it by meaning", shown(path)))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}
