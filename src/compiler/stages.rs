//! Runs the stages of a compilation: times each, verifies graphs after it, and keeps its printed form when asked.

use std::time::Instant;

use crate::compiler::StageInfo;
use crate::error::{Error, Result};
use crate::graph::{self, Graph};

pub(super) struct Stages {
    keep: bool,
    done: Vec<StageInfo>,
}

impl Stages {
    pub(super) fn new(keep: bool) -> Self {
        Stages { keep, done: Vec::new() }
    }

    /// Runs a stage whose result `print` shows.
    pub(super) fn run<T>(&mut self, name: &'static str, print: impl Fn(&T) -> String, stage: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let result = stage()?;
        let seconds = start.elapsed().as_secs_f64();
        log::debug!("{name}: {:.3} ms", seconds * 1e3);
        self.done.push(StageInfo { name, seconds, text: self.keep.then(|| print(&result)) });
        Ok(result)
    }

    /// Runs a stage that makes a graph, and verifies the graph.
    pub(super) fn graph(&mut self, name: &'static str, stage: impl FnOnce() -> Result<Graph>) -> Result<Graph> {
        let graph = self.run(name, Graph::to_string, stage)?;
        graph::verify(&graph).map_err(|faults| {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Error::internal(format!("stage `{name}` made a malformed graph:\n{}", faults.join("\n")))
        })?;
        Ok(graph)
    }

    pub(super) fn finish(self) -> Vec<StageInfo> {
        self.done
    }
}
