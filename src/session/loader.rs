//! Graphs to sessions, with everything that is remembered: measured choices and compiled graphs.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use crate::compiler::cache::{Entry, GraphCache, Key, Source};
use crate::compiler::tune::file::TuningFile;
use crate::compiler::tune::{Autotune, Measured, Tuner};
use crate::compiler::{CompileOptions, Compiled, Tuning, compile};
use crate::device::Device;
use crate::error::Result;
use crate::files;
use crate::graph::Graph;
use crate::progress::Work;
use crate::session::Session;

/// How a [`Loader`] remembers and measures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoaderOptions {
    /// Cache folder; `None` keeps everything in memory.
    pub cache_dir: Option<PathBuf>,
    /// What stands for the compiler's code in the keys of compiled graphs, besides the version of this crate.
    pub program: String,
    /// When to measure.
    pub autotune: Autotune,
    /// Seed of the inputs that candidates are measured with.
    pub seed: u64,
}

impl LoaderOptions {
    /// The cache folder that the environment names, and the size and time of the running program, so that a program that was built anew
    /// finds no graph that another compiler made.
    pub fn from_env() -> Self {
        let program = std::env::current_exe().and_then(|path| path.metadata()).ok().and_then(|data| {
            let built = data.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some(format!("{} {}", data.len(), built.as_nanos()))
        });
        let cache_dir = files::cache_folder_from_env();
        match program {
            Some(program) => LoaderOptions { cache_dir, program, ..LoaderOptions::default() },
            // Without a time of the program nothing tells its builds apart: nothing is kept from one to the next.
            None => LoaderOptions::default(),
        }
    }
}

/// What happened on the way from a graph to a compiled one.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadReport {
    /// Where the compiled graph came from.
    pub source: Source,
    /// Kernels whose text was generated for the result; those of candidates are not counted.
    pub generated: usize,
    /// Problems that were measured.
    pub measured: Vec<Measured>,
    /// Kernels whose configuration was chosen by a measurement, now or before.
    pub tuned_kernels: usize,
    /// Probes that ran when the device was opened.
    pub probes_run: u32,
    /// What was set aside or could not be kept, and why.
    pub notes: Vec<String>,
}

/// Compiles graphs for a device, or finds them compiled. May be shared by threads.
#[derive(Debug)]
pub struct Loader {
    device: Device,
    options: LoaderOptions,
    cache: GraphCache,
    file: Option<TuningFile>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tuning: Tuning,
    notes: Vec<String>,
}

impl Loader {
    /// A loader for `device`; reads its tuning file. A file that is broken or of another machine is set aside, which the first report says.
    pub fn new(device: &Device, options: LoaderOptions) -> Self {
        let info = device.info();
        let file = options.cache_dir.as_ref().map(|folder| TuningFile::new(folder, &info.name, &info.driver, &device.target()));
        let (tuning, warning) = file.as_ref().map(TuningFile::read_or_set_aside).unwrap_or_default();
        let notes: Vec<String> = warning.into_iter().collect();
        notes.iter().for_each(|note| log::warn!("{note}"));
        let cache = GraphCache::new(options.cache_dir.as_deref());
        Loader { device: device.clone(), options, cache, file, state: Mutex::new(State { tuning, notes }) }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The choices that are known.
    pub fn tuning(&self) -> Tuning {
        self.state().tuning.clone()
    }

    /// The cache folder.
    pub fn cache_folder(&self) -> Option<&Path> {
        self.options.cache_dir.as_deref()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compiles `graph` with the choices that are known, or finds it compiled; measures first where [`LoaderOptions::autotune`] says so.
    /// `options.tuning` is replaced. With [`CompileOptions::keep_stages`] it always compiles.
    ///
    /// # Errors
    ///
    /// Those of [`compile`] and [`Tuner::tune`]. What the caches meet is a note.
    pub fn compile(&self, graph: &Graph, options: &CompileOptions, work: &Work<'_>) -> Result<(Compiled, LoadReport)> {
        let target = self.device.target();
        let key = Key::new(graph, &target, options, &self.options.program);
        let mut notes = std::mem::take(&mut self.state().notes);
        let autotune = self.options.autotune;
        if !options.keep_stages && autotune != Autotune::Exhaustive {
            let (found, note) = self.cache.get(graph, &key, &self.tuning());
            note.iter().for_each(|note| log::warn!("{note}"));
            notes.extend(note);
            if let Some((entry, source)) = found.filter(|(entry, _)| entry.tuned || autotune == Autotune::Off) {
                let report = self.report(&entry.compiled, source, Vec::new(), notes);
                return Ok((entry.compiled, report));
            }
        }
        let (tuning, measured) = self.tune(graph, options, work)?;
        let compiled = compile(graph, &target, &CompileOptions { tuning, ..options.clone() })?;
        let tuned = autotune != Autotune::Off;
        let note = self.cache.put(&key, &Entry { compiled: compiled.clone(), tuned }, &target);
        note.iter().for_each(|note| log::warn!("{note}"));
        notes.extend(note);
        let report = self.report(&compiled, Source::Compiled, measured, notes);
        Ok((compiled, report))
    }

    /// [`Loader::compile`], loaded on the device.
    pub fn load(&self, graph: &Graph, options: &CompileOptions, work: &Work<'_>) -> Result<(Session, LoadReport)> {
        let (compiled, report) = self.compile(graph, options, work)?;
        Ok((Session::load(&self.device, &compiled)?, report))
    }

    /// The choices that are known, once those of `graph` were measured as [`LoaderOptions::autotune`] says. What is measured is kept, also
    /// where an error ends the measuring.
    pub fn tune(&self, graph: &Graph, options: &CompileOptions, work: &Work<'_>) -> Result<(Tuning, Vec<Measured>)> {
        let LoaderOptions { autotune, seed, .. } = self.options;
        let mut tuning = self.tuning();
        if autotune == Autotune::Off {
            return Ok((tuning, Vec::new()));
        }
        let before = tuning.clone();
        let target = &self.device.target();
        let measured = Tuner { target, options, autotune, seed, runner: &self.device, work }.tune(graph, &mut tuning);
        let fresh: Tuning = tuning.iter().filter(|(k, c)| before.get(k) != Some(c)).map(|(k, c)| (k.to_string(), c.clone())).collect();
        let tuning = {
            let mut state = self.state();
            fresh.iter().for_each(|(key, choice)| state.tuning.insert(key, choice.clone()));
            state.tuning.clone()
        };
        if let Some(file) = self.file.as_ref().filter(|_| !fresh.is_empty())
            && let Err(error) = file.write(&fresh)
        {
            let note = format!("the measured choices are not kept: {error}");
            log::warn!("{note}");
            self.state().notes.push(note);
        }
        Ok((tuning, measured?))
    }

    fn report(&self, compiled: &Compiled, source: Source, measured: Vec<Measured>, notes: Vec<String>) -> LoadReport {
        let tuned = |k: &&crate::compiler::KernelInfo| k.choice.as_ref().is_some_and(|c| c.tuned);
        LoadReport {
            source,
            generated: if source == Source::Compiled { compiled.plan().kernels.len() } else { 0 },
            measured,
            tuned_kernels: compiled.kernels().iter().filter(tuned).count(),
            probes_run: self.device.probes_run(),
            notes,
        }
    }
}
