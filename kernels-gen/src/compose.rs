//! Composes the WGSL of a hand-written kernel from shader files.
//!
//! A line that starts with `#` is a directive; everything else is copied:
//!
//! - `#import STEM` puts the file `STEM.wgsl` here, once however often it is imported; files that import each other are an error;
//! - `#ifdef FLAG`, `#ifndef FLAG`, `#else`, `#endif` keep or drop lines by the flags of the permutation; they nest.
//!
//! `enable` lines of all files move to the top, where WGSL wants them. [`Composed`] remembers where each line comes from.

use crate::{Error, Result};
use std::collections::BTreeSet;

/// A composed text and the origin of its lines.
#[derive(Debug, Clone)]
pub struct Composed {
    /// WGSL text.
    pub wgsl: String,
    /// Stem of the file and line in it, from 1, for each line of the text.
    origins: Vec<(String, u32)>,
}

impl Composed {
    /// Stem of the file and line in it (from 1) that line `line` (from 1) of the text comes from.
    pub fn origin(&self, line: u32) -> Option<(&str, u32)> {
        let (stem, line) = self.origins.get((line as usize).checked_sub(1)?)?;
        Some((stem, *line))
    }

    /// The same error, with the places in the diagnostic of [`Error::Invalid`] given as files and the lines in them.
    pub fn locate(&self, mut error: Error) -> Error {
        if let Error::Invalid { kernel, message, .. } = &mut error {
            // naga writes `KERNEL:LINE:COLUMN`.
            let label = format!("{kernel}:");
            let mut parts = message.split(label.as_str());
            let mut located = parts.next().unwrap_or_default().to_string();
            for part in parts {
                let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
                match part[..digits].parse().ok().and_then(|line| self.origin(line)) {
                    Some((stem, line)) => located.push_str(&format!("{stem}.wgsl:{line}{}", &part[digits..])),
                    None => located.push_str(&format!("{label}{part}")),
                }
            }
            *message = located;
        }
        error
    }
}

/// Composes file `stem` out of `files`, a table of (stem, text), for the permutation in which exactly `flags` are defined.
pub fn compose(stem: &str, files: &[(&str, &str)], flags: &[&str]) -> Result<Composed> {
    let mut composer = Composer { files, flags, ..Composer::default() };
    composer.file(stem, stem, 0)?;
    if let Some(flag) = flags.iter().find(|f| !composer.tested.contains(**f)) {
        let known: Vec<&String> = composer.tested.iter().collect();
        return Err(fault(stem, 0, format!("no line tests the flag `{flag}` of the permutation; tested are {known:?}")));
    }
    let (mut wgsl, mut origins) = (String::new(), Vec::new());
    for (line, origin) in composer.enables.into_iter().chain(composer.lines) {
        wgsl.push_str(&line);
        wgsl.push('\n');
        origins.push(origin);
    }
    Ok(Composed { wgsl, origins })
}

type Line = (String, (String, u32));

#[derive(Default)]
struct Composer<'a> {
    files: &'a [(&'a str, &'a str)],
    flags: &'a [&'a str],
    enables: Vec<Line>,
    lines: Vec<Line>,
    /// Files that are in, and those that are being read, innermost last.
    done: BTreeSet<String>,
    open: Vec<String>,
    /// Flags that a line tests.
    tested: BTreeSet<String>,
}

/// An open `#ifdef`: the line it stands on, whether its lines are kept, and whether its `#else` has been seen.
struct Condition {
    line: u32,
    kept: bool,
    has_else: bool,
}

fn fault(shader: &str, line: u32, message: String) -> Error {
    Error::Compose { shader: shader.into(), line, message }
}

impl Composer<'_> {
    /// Appends file `stem`, which line `at` of `from` asks for.
    fn file(&mut self, stem: &str, from: &str, at: u32) -> Result<()> {
        if self.open.iter().any(|open| open == stem) {
            return Err(fault(from, at, format!("`{}` import each other; move what they share to a third file", self.open.join("`, `"))));
        }
        if self.done.contains(stem) {
            return Ok(());
        }
        let Some((_, text)) = self.files.iter().find(|(name, _)| *name == stem) else {
            let known: Vec<&str> = self.files.iter().map(|(name, _)| *name).collect();
            return Err(fault(from, at, format!("there is no shader file `{stem}`; there are {known:?}")));
        };
        self.open.push(stem.to_string());
        let mut conditions: Vec<Condition> = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let fault = |message: String| fault(stem, number, message);
            let kept = conditions.iter().all(|c| c.kept);
            let Some(directive) = line.trim_start().strip_prefix('#') else {
                if kept {
                    self.copy(line, stem, number);
                }
                continue;
            };
            let words: Vec<&str> = directive.split_whitespace().collect();
            match words[..] {
                ["import", name] => {
                    if kept {
                        self.file(name, stem, number)?;
                    }
                }
                ["ifdef", flag] | ["ifndef", flag] => {
                    self.tested.insert(flag.to_string());
                    let defined = self.flags.contains(&flag);
                    conditions.push(Condition { line: number, kept: defined == (words[0] == "ifdef"), has_else: false });
                }
                ["else"] => match conditions.last_mut() {
                    Some(c) if !c.has_else => (c.kept, c.has_else) = (!c.kept, true),
                    _ => return Err(fault("`#else` without an open `#ifdef` or `#ifndef`".into())),
                },
                ["endif"] => {
                    conditions.pop().ok_or_else(|| fault("`#endif` without an open `#ifdef` or `#ifndef`".into()))?;
                }
                _ => {
                    let allowed = "`#import STEM`, `#ifdef FLAG`, `#ifndef FLAG`, `#else` and `#endif`";
                    return Err(fault(format!("`{}` is no directive; there are {allowed}", line.trim())));
                }
            }
        }
        if let Some(c) = conditions.last() {
            return Err(fault(stem, c.line, "this condition has no `#endif`".into()));
        }
        self.open.pop();
        self.done.insert(stem.to_string());
        Ok(())
    }

    fn copy(&mut self, line: &str, stem: &str, number: u32) {
        let enable = line.trim_start().starts_with("enable ");
        let lines = if enable { &mut self.enables } else { &mut self.lines };
        if !enable || lines.iter().all(|(other, _)| other != line) {
            lines.push((line.to_string(), (stem.to_string(), number)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        ("main", "#import lib\n#import other\nfn main() {\n#ifdef FAST\n  fast();\n#else\n  slow();\n#endif\n}"),
        ("lib", "enable f16;\nfn lib() {}"),
        ("other", "#import lib\nenable f16;\n#ifndef FAST\n#ifdef FAST\nnever\n#endif\nfn other() {}\n#endif"),
        ("ring", "#import chain"),
        ("chain", "\n#import ring"),
        ("open", "a\n#ifdef X"),
        ("stray", "#endif"),
        ("double", "#ifdef X\n#else\n#else\n#endif"),
        ("word", "a\n  #define X"),
        ("lost", "#import nowhere"),
    ];

    fn message(stem: &str, flags: &[&str]) -> String {
        compose(stem, FILES, flags).expect_err("must be refused").to_string()
    }

    #[test]
    fn imports_once_hoists_enables_and_keeps_the_permutation() {
        let slow = compose("main", FILES, &[]).expect("composes");
        assert_eq!(slow.wgsl, "enable f16;\nfn lib() {}\nfn other() {}\nfn main() {\n  slow();\n}\n");
        let fast = compose("main", FILES, &["FAST"]).expect("composes");
        assert_eq!(fast.wgsl, "enable f16;\nfn lib() {}\nfn main() {\n  fast();\n}\n");
        assert_eq!(fast.origin(1), Some(("lib", 1)));
        assert_eq!(fast.origin(4), Some(("main", 5)));
        assert_eq!((fast.origin(0), fast.origin(6)), (None, None));
    }

    #[test]
    fn places_in_messages_name_the_file() {
        let composed = compose("main", FILES, &[]).expect("composes");
        let message = "error at main:5:3, not main:77:1 nor main: x".to_string();
        let error = composed.locate(Error::Invalid { kernel: "main".into(), target: "webgpu".into(), message });
        assert!(error.to_string().ends_with("error at main.wgsl:7:3, not main:77:1 nor main: x"), "{error}");
    }

    #[test]
    fn faults_name_file_line_and_what_is_allowed() {
        assert_eq!(message("ring", &[]), "shader `chain`, line 2: `ring`, `chain` import each other; move what they share to a third file");
        assert_eq!(message("open", &[]), "shader `open`, line 2: this condition has no `#endif`");
        assert!(message("stray", &[]).starts_with("shader `stray`, line 1: `#endif` without"));
        assert!(message("double", &[]).starts_with("shader `double`, line 3: `#else` without"));
        assert!(message("word", &[]).starts_with("shader `word`, line 2: `#define X` is no directive; there are `#import STEM`"));
        assert!(message("lost", &[]).starts_with("shader `lost`, line 1: there is no shader file `nowhere`; there are [\"main\""));
        assert!(message("main", &["FSAT"]).contains("no line tests the flag `FSAT` of the permutation; tested are [\"FAST\"]"));
    }
}
