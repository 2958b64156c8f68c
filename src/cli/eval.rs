//! `sublane eval`: accuracy of an image classifier.

use super::model::{self, Compilation, WeightedModel};
use super::options::Options;
use super::output::{self, Outcome};
use super::progress::Bars;
use clap::{Args, ValueEnum};
use sublane::Result;
use sublane::progress::{Cancel, Work};
use sublane::suite::eval::{DataSet, Preparation, evaluate};

/// A model, images, and how they are prepared.
#[derive(Debug, Args)]
pub(super) struct Command {
    #[command(flatten)]
    model: WeightedModel,
    /// Labelled images: a CIFAR-10 binary file, or a folder with one file each of IDX images and labels (t10k before train)
    #[arg(long, value_name = "cifar10:FILE|mnist-idx:DIR")]
    dataset: DataSet,
    /// Use the first N images only
    #[arg(long, value_name = "N", value_parser = model::batch, allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Images of a run, where the model leaves it open
    #[arg(long, value_name = "B", default_value = "64", value_parser = model::batch, allow_negative_numbers = true)]
    batch: usize,
    /// Divisor of the bytes [default: by data set]
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    scale: Option<f32>,
    /// Subtracted after that, one value or one a channel [default: by data set]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', allow_hyphen_values = true)]
    mean: Option<Vec<f32>>,
    /// Divisor after that, one value or one a channel [default: by data set]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', allow_hyphen_values = true)]
    std: Option<Vec<f32>>,
    /// Order of the channels
    #[arg(long, value_enum, default_value_t = Order::Rgb)]
    order: Order,
    #[command(flatten)]
    compilation: Compilation,
}

/// Values of `--order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    /// As in the file
    Rgb,
    /// Reversed
    Bgr,
}

impl Command {
    /// What is given, else what is usual for the data set.
    fn preparation(&self) -> Preparation {
        let usual = self.dataset.preparation();
        Preparation {
            scale: self.scale.unwrap_or(usual.scale),
            mean: self.mean.clone().unwrap_or(usual.mean),
            std: self.std.clone().unwrap_or(usual.std),
            reversed: self.order == Order::Bgr,
        }
    }
}

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let imported = command.model.import(command.batch, Default::default())?;
    let images = command.dataset.read()?;
    let device = super::device::open(options)?;
    let compilation = command.compilation.options();
    let bars = Bars::new(options);
    let work = Work::new(&bars, Cancel::new());
    let loader = super::device::loader(&device, options);
    let (session, loaded) = loader.load(&imported.graph, &compilation, &work)?;
    let compiled = session.compiled();
    let preparation = command.preparation();
    let found = evaluate(&session, &images, &preparation, command.limit, &work)?;

    let mut report = super::device::report("eval", &device, options);
    command.model.describe(&mut report);
    report.field("dataset", "data set", command.dataset.name(), "");
    report.field("limits", "limits", options.limits().name(), "");
    report.field("scale", "scale", as_written(preparation.scale), "");
    report.field("mean", "mean", preparation.mean.into_iter().map(as_written).collect::<Vec<_>>(), "");
    report.field("std", "std", preparation.std.into_iter().map(as_written).collect::<Vec<_>>(), "");
    report.field("order", "order", if preparation.reversed { "bgr" } else { "rgb" }, "");
    report.field("batch", "batch", compiled.inputs().first().and_then(|p| p.ty.shape.first().copied()), "");
    report.field("mode", "mode", compilation.mode.name(), "");
    report.field("kernels", "kernels", compiled.plan().num_dispatches(), "");
    super::device::loaded(&mut report, &loaded, options);
    report.field("correct", "correct", found.correct, "");
    report.field("total", "of", found.total(), "");
    report.field("top1", "top 1", found.top1(), "");
    report.field("images_per_s", "speed", found.images_per_s, "images/s");
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}

/// The number people write for it: 0.485, not the 0.48500001430511475 that is nearest in `f64`.
fn as_written(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}
