//! `sublane devices`: the adapters of the machine, and what the chosen one has.

use super::options::Options;
use super::output::{self, Outcome};
use sublane::Result;
use sublane::device::adapters;
use sublane::report::{Column, Table};

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let device = super::device::open(options)?;
    let (info, limits) = (device.info(), &device.info().limits);
    let mut report = super::device::report("devices", &device, options);
    report.field("backend", "backend", info.backend.as_str(), "");
    report.field("class", "class", info.class, "");
    report.field("features", "features", info.features.clone(), "");
    report.field("clock", "clock", info.clock.name(), "");
    report.field("max_buffer_bytes", "largest buffer", limits.max_buffer_bytes, "bytes");
    report.field("max_binding_bytes", "largest binding", limits.max_binding_bytes, "bytes");
    report.field("max_storage_buffers", "storage buffers of a kernel", limits.max_storage_buffers, "");
    report.field("max_workgroup_invocations", "invocations of a workgroup", limits.max_workgroup_invocations, "");
    report.field("max_workgroup_bytes", "workgroup memory", limits.max_workgroup_bytes, "bytes");
    report.field("max_workgroups_per_dim", "workgroups in a dimension", limits.max_workgroups_per_dim, "");
    report.field("max_loop_iterations", "loop iterations of an invocation", limits.max_loop_iterations, "");
    report.field("memory_limit_bytes", "memory limit", limits.memory_limit_bytes, "");
    let mut table = Table::new(&[
        Column::new("index", "index"),
        Column::new("name", "adapter"),
        Column::new("class", "class"),
        Column::new("backend", "backend"),
        Column::new("driver", "driver"),
    ]);
    for (index, adapter) in adapters().into_iter().enumerate() {
        table.row([index.into(), adapter.name.into(), adapter.class.into(), adapter.backend.into(), adapter.driver.into()]);
    }
    report.table(table);
    output::report(&report, options)?;
    Ok(Outcome::Passed)
}
