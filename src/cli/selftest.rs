//! `sublane selftest`: every kernel against its reference on the chosen adapter.

use super::options::Options;
use super::output::{self, Outcome};
use super::progress::Bars;
use sublane::progress::{Cancel, Work};
use sublane::report::{Column, Report, Table};
use sublane::suite::{self, Check};
use sublane::{Result, device::Device};

pub(super) fn run(options: &Options) -> Result<Outcome> {
    super::device::tables_only("selftest", options);
    let device = super::device::open(options)?;
    let bars = Bars::new(options);
    let checks = suite::selftest(&device, options.seed, &Work::new(&bars, Cancel::new()))?;
    finish(super::device::report("selftest", &device, options), &device, &checks, options)
}

/// Reports `checks`, which ran on `device`.
pub(super) fn finish(mut report: Report, device: &Device, checks: &[Check], options: &Options) -> Result<Outcome> {
    let failed = checks.iter().filter(|c| c.fault.is_some()).count();
    report.field("backend", "backend", device.info().backend.as_str(), "");
    report.field("limits", "limits", options.limits().name(), "");
    report.field("target", "target", device.target().name, "");
    report.field("passed", "passed", checks.len() - failed, "");
    report.field("failed", "failed", failed, "");
    let mut table = Table::new(&[Column::new("name", "check"), Column::new("result", "result"), Column::new("ms", "ms")]);
    for check in checks {
        let result = check.fault.as_deref().unwrap_or("agrees");
        table.row([check.name.as_str().into(), result.into(), check.ms.into()]);
    }
    report.table(table);
    output::report(&report, options)?;
    Ok(if failed == 0 { Outcome::Passed } else { Outcome::Failed })
}
