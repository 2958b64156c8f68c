//! `sublane demo`: kernels, small models, packed products, motif counts and a simulation by bit-planes on the adapter, their answers compared with
//! the processor's. Needs no data.

use super::options::Options;
use super::output::{self, Outcome};
use super::progress::Bars;
use sublane::Result;
use sublane::kernels_gen::threefry::Key;
use sublane::progress::{Cancel, Work};
use sublane::report::{Column, Table};
use sublane::suite::samples::{TOLERANCE, samples};
use sublane::suite::{Check, bitset, functions, motifs, quantised, twins};

/// Examples in a batch of the models.
const BATCH: usize = 4;

pub(super) fn run(options: &Options) -> Result<Outcome> {
    super::device::tables_only("demo", options);
    let device = super::device::open(options)?;
    let bars = Bars::new(options);
    let work = Work::new(&bars, Cancel::new());
    let (target, key) = (device.target(), Key::new(options.seed));
    let kernels = [
        twins::threefry_fill("threefry_fill", &target, "1,000,001 random words", key.stream(0), 1_000_001, 0)?,
        twins::scale_add(&target, "y = 2.5 x + y, 1,000,003 elements", key.stream(1), 1_000_003)?,
    ];
    let models = samples(key.stream(2), BATCH)?;
    let part = work.part("demonstration", (kernels.len() + models.len() + 1) as u64);
    let columns = [("name", "what"), ("result", "result"), ("kernels", "kernels"), ("ms", "ms"), ("error", "relative error")];
    let mut table = Table::new(&columns.map(|(key, title)| Column::new(key, title)));
    let mut failed = 0;
    for case in kernels {
        let check = Check::of(&case.name, || case.compare(&device));
        failed += usize::from(check.fault.is_some());
        let result = check.fault.unwrap_or_else(|| "agrees".into());
        table.row([check.name.into(), result.into(), case.plan.num_dispatches().into(), check.ms.into()]);
        part.advance(1)?;
    }
    let tried = models.iter().zip(3..).map(|(model, stream)| (model.name, model.try_on(&device, key.stream(stream))));
    let function = std::iter::once_with(|| ("a compiled function, four batch sizes", functions::trial(&device, key.stream(100))));
    for (name, trial) in tried.chain(function) {
        match trial {
            Ok(trial) => {
                let agrees = trial.error <= TOLERANCE;
                failed += usize::from(!agrees);
                let result = if agrees { "agrees".into() } else { format!("relative error above {TOLERANCE:.0e}") };
                table.row([name.into(), result.into(), trial.kernels.into(), trial.ms.into(), trial.error.into()]);
            }
            Err(error) => {
                device.check_alive()?;
                failed += 1;
                table.row([name.into(), error.to_string().into()]);
            }
        }
        part.advance(1)?;
    }
    drop(part);
    match quantised::trials(&device, options.seed) {
        Ok(trials) => {
            for trial in trials {
                failed += usize::from(!trial.agrees);
                let result = if trial.agrees { "agrees".into() } else { format!("relative error {:.0e}", trial.error) };
                let name = format!("{}: {:.3} of the bytes, {:.1} % off f32", trial.name, trial.share, 100.0 * trial.loss);
                table.row([name.into(), result.into(), trial.kernels.into(), trial.ms.into(), trial.error.into()]);
            }
        }
        Err(error) => {
            device.check_alive()?;
            failed += 1;
            table.row(["packed products".into(), error.to_string().into()]);
        }
    }
    match motifs::trials(&device, options.seed, &work) {
        Ok(trials) => {
            for trial in trials {
                failed += usize::from(!trial.agrees);
                let result = if trial.agrees { "agrees".into() } else { trial.found };
                table.row([trial.name.into(), result.into(), serde_json::Value::Null, trial.ms.into(), trial.error.into()]);
            }
        }
        Err(error) => {
            device.check_alive()?;
            failed += 1;
            table.row(["temporal motifs".into(), error.to_string().into()]);
        }
    }
    match bitset::trials(&device, options.seed, &work) {
        Ok(trials) => {
            for trial in trials {
                failed += usize::from(!trial.agrees);
                let result = if trial.agrees { "agrees" } else { "differs from the processor's" };
                table.row([format!("{}: {}", trial.name, trial.found).into(), result.into(), serde_json::Value::Null, trial.ms.into()]);
            }
        }
        Err(error) => {
            device.check_alive()?;
            failed += 1;
            table.row(["networks by bit-planes".into(), error.to_string().into()]);
        }
    }
    let passed = table.num_rows() - failed;
    let mut report = super::device::report("demo", &device, options);
    report.field("backend", "backend", device.info().backend.as_str(), "");
    report.field("limits", "limits", options.limits().name(), "");
    report.field("target", "target", target.name, "");
    report.field("passed", "agree with the reference", passed, "");
    report.field("failed", "do not", failed, "");
    report.table(table);
    output::report(&report, options)?;
    Ok(if failed == 0 { Outcome::Passed } else { Outcome::Failed })
}
