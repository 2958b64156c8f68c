//! `sublane quantize`: the weights of a model in fewer bits, as a file.

use super::model::ModelFile;
use super::options::Options;
use super::output::{self, Outcome};
use clap::Args;
use std::path::PathBuf;
use sublane::precision::{self, QuantisedModel, Source, WeightOptions};
use sublane::report::{Column, Report, Table};
use sublane::tensor::quantised::Calibration;
use sublane::tensor::scheme::Scheme;
use sublane::{Result, files};

/// A model and how its weights are stored.
#[derive(Debug, Args)]
pub(super) struct Command {
    #[command(flatten)]
    model: ModelFile,
    /// How weights are stored, such as int8-channel, int4-group32 or nf4
    #[arg(long, value_name = "SCHEME")]
    scheme: Scheme,
    /// How the range of a group is found: absmax, mse, or percentile:P
    #[arg(long, value_name = "HOW", default_value_t = Calibration::Absmax)]
    calibrate: Calibration,
    /// Layer to leave as it is; repeat for several
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,
    /// File to write to
    #[arg(short, long, value_name = "FILE.safetensors")]
    output: PathBuf,
}

const COLUMNS: [Column; 7] = [
    Column::new("layer", "layer"),
    Column::new("op", "operation"),
    Column::new("shape", "weights"),
    Column::new("scheme", "scheme"),
    Column::new("bytes", "bytes"),
    Column::new("bytes_f32", "bytes of f32"),
    Column::new("rel_error", "error"),
];

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    options.without_adapter("quantize");
    // What would be refused at the end is refused at once.
    files::check_writable(&command.output)?;
    precision::check_replaceable(&command.output)?;
    let imported = command.model.import(1, Default::default())?;
    let source = Source::of(&command.model.path)?;
    let wanted = WeightOptions { seed: options.seed, calibration: command.calibrate, skip: command.skip.clone() };
    let model = precision::quantise(&imported.graph, &command.scheme, &wanted)?;
    precision::write(&command.output, &source, command.calibrate, &model.layers)?;

    let mut report = Report::new("quantize", options.seed);
    report.field("model", "model", command.model.path.display().to_string(), "");
    report.field("model_sha256", "SHA-256 of the model", source.sha256, "");
    report.field("scheme", "scheme", command.scheme.to_string(), "");
    report.field("calibration", "calibration", command.calibrate.to_string(), "");
    report.field("output", "written to", command.output.display().to_string(), "");
    describe(&mut report, &model);
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}

fn describe(report: &mut Report, model: &QuantisedModel) {
    let total = |of: fn(&precision::Layer) -> usize| model.layers.iter().map(of).sum::<usize>();
    let (bytes, bytes_f32) = (total(precision::Layer::bytes), total(precision::Layer::bytes_f32));
    report.field("layers", "layers", model.layers.len(), "");
    if !model.skipped.is_empty() {
        report.field("skipped", "left as they are", model.skipped.clone(), "");
    }
    report.field("bytes", "weights", bytes, "bytes");
    report.field("bytes_f32", "weights as f32", bytes_f32, "bytes");
    report.field("share", "share of f32", bytes as f64 / bytes_f32 as f64, "");
    report.field("rel_error", "error of all weights", model.rel_error(), "");
    let mut table = Table::new(&COLUMNS);
    for (layer, error) in model.layers.iter().zip(&model.errors) {
        table.row([
            layer.name.as_str().into(),
            layer.op.as_str().into(),
            format!("{:?}", layer.shape).into(),
            layer.scheme.to_string().into(),
            layer.bytes().into(),
            layer.bytes_f32().into(),
            error.rel_error.into(),
        ]);
    }
    report.table(table);
}
