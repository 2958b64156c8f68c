//! `sublane gemm`: products of quantised operands, one or a table of them.

use super::options::Options;
use super::output::{self, Outcome};
use super::progress::Bars;
use clap::Args;
use std::path::PathBuf;
use sublane::progress::{Cancel, Work};
use sublane::suite::bench::Choice;
use sublane::suite::bench::quantised::{self, Data, Product};
use sublane::tensor::scheme::Scheme;
use sublane::{Result, files};

/// The products to measure.
#[derive(Debug, Args)]
pub(super) struct Command {
    /// `sweep`: a table of schemes and data instead of one product
    #[arg(value_name = "sweep", value_parser = ["sweep"])]
    what: Option<String>,
    /// Rows of A
    #[arg(long, value_name = "M", value_delimiter = ',', default_value = "1", value_parser = size, allow_negative_numbers = true)]
    m: Vec<usize>,
    /// Columns of the result
    #[arg(long, value_name = "N", default_value = "1024", value_parser = size, allow_negative_numbers = true)]
    n: usize,
    /// Terms of each sum
    #[arg(long, value_name = "K", default_value = "1024", value_parser = size, allow_negative_numbers = true)]
    k: usize,
    /// How A is stored; several for a sweep
    #[arg(long, value_name = "SCHEME", value_delimiter = ',', default_value = "f32")]
    a: Vec<Scheme>,
    /// How B is stored; several for a sweep [default: int4-group32; of a sweep, a selection]
    #[arg(long, value_name = "SCHEME", value_delimiter = ',')]
    b: Vec<Scheme>,
    /// What operands are made of: random, heavy-tailed, outliers [default: random; of a sweep, all]
    #[arg(long, value_name = "DATA", value_delimiter = ',')]
    data: Vec<Data>,
    /// Fewer rounds
    #[arg(long)]
    quick: bool,
    /// Also write the report as a web page, with plots of error against bytes and of time against size
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn size(text: &str) -> std::result::Result<usize, String> {
    text.parse().map_err(|_| "give a whole number, at least 0".into())
}

/// Schemes of B in a sweep that names none.
const SWEPT: [&str; 14] = [
    "f32",
    "f16",
    "bf16",
    "int8-channel",
    "mxint8",
    "mxfp8-e4m3",
    "mxfp6-e2m3",
    "mxfp4",
    "nvfp4",
    "nf4",
    "int4-group32",
    "int4-group128",
    "int4-group32-affine",
    "int2-group32",
];

pub(super) fn run(command: &Command, options: &Options) -> Result<Outcome> {
    let sweep = command.what.is_some();
    let or = |given: &[Scheme], one: &str, many: &[&str]| -> Result<Vec<Scheme>> {
        match given {
            [] if sweep => many.iter().map(|name| Scheme::parse(name)).collect(),
            [] => Ok(vec![Scheme::parse(one)?]),
            given => Ok(given.to_vec()),
        }
    };
    let (a, b) = (&command.a, or(&command.b, "int4-group32", &SWEPT)?);
    let data = match &command.data[..] {
        [] if sweep => Data::ALL.to_vec(),
        [] => vec![Data::Random],
        given => given.to_vec(),
    };
    let mut products = Vec::new();
    for &data in &data {
        for &m in &command.m {
            for a in a {
                products.extend(b.iter().map(|b| Product { m, n: command.n, k: command.k, a: *a, b: *b, data }));
            }
        }
    }
    if !sweep && products.len() > 1 {
        return Err(sublane::Error::invalid(format!(
            "{} products are asked for: `sublane gemm sweep` measures several, `sublane gemm` one",
            products.len()
        )));
    }
    command.html.iter().try_for_each(files::check_writable)?;
    let device = super::device::open(options)?;
    let bars = Bars::new(options);
    let choice = Choice { seed: options.seed, quick: command.quick, ..Choice::default() };
    let loader = super::device::loader(&device, options);
    let found = quantised::products(&loader, &products, &choice, &Work::new(&bars, Cancel::new()))?;
    let mut report = super::device::report(if sweep { "gemm sweep" } else { "gemm" }, &device, options);
    report.field("autotune", "autotune", options.autotune.mode().name(), "");
    report.products(&found);
    if let Some(file) = &command.html {
        files::write_atomic(file, report.to_html().as_bytes())?;
    }
    output::report(&report, options)?;
    Ok(if found.faults.is_empty() { Outcome::Passed } else { Outcome::Failed })
}
