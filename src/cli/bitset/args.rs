//! Arguments that the simulations share.

use super::super::device;
use super::super::model::{self, ModelFile};
use super::super::options::Options;
use super::super::output;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, ValueEnum};
use std::path::{Path, PathBuf};
use sublane::bitset::machine::{ArrayGeometry, Constants};
use sublane::bitset::simulate::Engine;
use sublane::bitset::split::{Images, Split, shown};
use sublane::bitset::study::Study;
use sublane::progress::Work;
use sublane::report::Report;
use sublane::session::Loader;
use sublane::suite::bitset::{Opened, Source};
use sublane::{Device, Error, Result, files};

/// A network, images, and what is used for what.
#[derive(Debug, Args)]
pub(super) struct Subject {
    #[command(flatten)]
    model: ModelFile,
    /// Images: a CIFAR-10 binary file, a folder with IDX images and labels, or random ones, which have no classes
    #[arg(long, value_name = "cifar10:FILE|mnist-idx:DIR|random[:N]")]
    dataset: Source,
    /// Which images are used for what, first and last of each [default: the first tenth, the next two and the other seven]
    #[arg(long, value_name = "calibrate:A-B,tune:C-D,test:E-F")]
    split: Option<String>,
    /// Use the first N images of the test split only
    #[arg(long, value_name = "N", value_parser = model::batch, allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Bits of a weight, 2 to 16
    #[arg(long, value_name = "B", default_value_t = 8, allow_negative_numbers = true)]
    bits: u32,
    /// Images of a run
    #[arg(long, value_name = "N", default_value = "100", value_parser = model::batch, allow_negative_numbers = true)]
    batch: usize,
    /// What runs the integer layers; both give the same integers
    #[arg(long, value_enum, default_value_t = EngineName::Auto)]
    engine: EngineName,
    /// Constants of the cycle and energy model that replace those shipped, a line `name value` each
    #[arg(long, value_name = "FILE")]
    constants: Option<PathBuf>,
}

/// Values of `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineName {
    /// The adapter, or the processor where there is only a software adapter, which it is faster than
    Auto,
    /// The adapter, whatever it is
    Gpu,
    /// All cores of the processor
    Cpu,
}

/// What the arguments name, opened.
pub(super) struct Open {
    pub device: Device,
    pub loader: Loader,
    graph: sublane::graph::Graph,
    images: Opened,
    pub split: Split,
    pub engine: Engine,
    pub constants: Constants,
}

/// Ends the program where an argument is wrong.
pub(super) fn usage<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => super::super::Cli::command().error(ErrorKind::ValueValidation, error).exit(),
    }
}

impl Subject {
    /// Opens everything; wrong arguments end the program.
    pub fn open(&self, options: &Options) -> Result<Open> {
        let split = self.split.as_ref().map(|text| usage(Split::parse(text)));
        usage(sublane::bitset::quantise::check_bits(self.bits));
        let constants = match &self.constants {
            Some(path) => Constants::read(path)?,
            None => Constants::shipped()?,
        };
        let batch = match self.dataset {
            Source::Random(count) => self.batch.min(count),
            Source::Files(_) => self.batch,
        };
        let imported = self.model.import(batch, Default::default())?;
        let images = self.dataset.open(&imported.graph, options.seed)?;
        let split = split.unwrap_or_else(|| Split::usual(images.count()));
        usage(split.check(images.count()));
        let split = split.limited(self.limit);
        let device = device::open(options)?;
        let loader = device::loader(&device, options);
        let engine = match self.engine {
            EngineName::Gpu => Engine::Gpu,
            EngineName::Cpu => Engine::Cpu,
            EngineName::Auto if device.info().class == "software" => Engine::Cpu,
            EngineName::Auto => Engine::Gpu,
        };
        Ok(Open { device, loader, graph: imported.graph, images, split, engine, constants })
    }

    /// Finds and calibrates the layers.
    pub fn study<'a>(&self, open: &'a Open, work: &Work<'_>) -> Result<Study<'a>> {
        Study::new(&open.loader, &open.graph, &open.images, open.split.clone(), self.bits, open.engine, work)
    }

    /// An empty report of `command` that names all of this.
    pub fn report(&self, command: &str, open: &Open, options: &Options) -> Report {
        let mut report = device::report(command, &open.device, options);
        report.field("model", "model", self.model.path.display().to_string(), "");
        report.field("dataset", "data set", self.dataset.name(), "");
        report.field("images_calibrate", "images for calibration", shown(&open.split.calibrate), "");
        report.field("images_tune", "images for tuning", shown(&open.split.tune), "");
        report.field("images_test", "images for the figures", shown(&open.split.test), "");
        report.field("bits", "bits of a weight", self.bits, "");
        report.field("engine", "engine", open.engine.name(), "");
        report
    }
}

/// The arrays of `--geometry`, or the usual ones: narrow and wide engines, with and without cycles for decisions.
pub(super) fn geometries(texts: &[String], constants: &Constants) -> Vec<ArrayGeometry> {
    const USUAL: [&str; 6] = [
        "group=4,engines=384",
        "group=1,engines=1536",
        "group=16,engines=96",
        "group=16,engines=24",
        "group=4,engines=384,decision=0,refill=0",
        "group=64,engines=24",
    ];
    let parse = |text: &str| usage(ArrayGeometry::parse(text, constants));
    if texts.is_empty() { USUAL.map(parse).to_vec() } else { texts.iter().map(|text| parse(text)).collect() }
}

/// The numbers of lanes that arrays need counted.
pub(super) fn lanes(geometries: &[ArrayGeometry]) -> Vec<usize> {
    let mut lanes: Vec<usize> = geometries.iter().map(|geometry| geometry.group).collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

/// A loss of accuracy: `0`, `0.01` or `1%`.
pub(super) fn loss(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let value = number.trim().parse::<f64>().ok().map(|value| value / unit).filter(|value| (0.0..=1.0).contains(value));
    value.ok_or_else(|| "give a loss from 0 to 100%, such as 0, 0.01 or 1%".into())
}

/// Whether the report can be written, before any work.
pub(super) fn check_html(html: Option<&PathBuf>) -> Result<()> {
    html.into_iter().try_for_each(files::check_writable)
}

/// Writes the report to standard output, and as a web page where that is wanted.
pub(super) fn write(report: &Report, html: Option<&PathBuf>, options: &Options) -> Result<()> {
    if let Some(path) = html {
        files::write_atomic(path as &Path, report.to_html().as_bytes())?;
    }
    output::report(report, options)
}

/// A rule and a code that go together; others end the program.
pub(super) fn pair(rule: sublane::bitset::Rule, encoding: sublane::bitset::Encoding, bits: u32) {
    usage(rule.check(encoding, bits));
}

/// An error of what was asked for ends the program; others are given back.
pub(super) fn usage_of<T>(result: Result<T>) -> Result<T> {
    match result {
        Err(error) if error.kind() == sublane::ErrorKind::InvalidArgument => Ok(usage(Err(error))),
        other => other,
    }
}

/// Whether a rule has budgets to search.
pub(super) fn searchable(rule: sublane::bitset::Rule) -> Result<()> {
    match rule {
        sublane::bitset::Rule::R2 { .. } => Ok(()),
        _ => Err(Error::invalid(format!("--max-loss searches the budgets of rule r2, not of `{rule}`; give --rule r2:0.004 for instance"))),
    }
}

/// An error of a search without classes or images as one of the command line.
pub(super) fn needs_classes(images: bool) -> Result<()> {
    if images { Ok(()) } else { Err(Error::invalid("--max-loss needs images with classes; random ones have none")) }
}

impl Subject {
    /// Bits of a weight.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Whether the images have classes.
    pub fn has_classes(&self) -> bool {
        matches!(self.dataset, Source::Files(_))
    }
}
