//! Opening the device that the options ask for.

use super::options::{Limits, Options};
use std::path::PathBuf;
use sublane::device::{Device, DeviceOptions, LimitsMode};
use sublane::report::Report;
use sublane::session::{LoadReport, Loader, LoaderOptions};
use sublane::{Result, files};

/// Opens the device that `options` ask for.
pub(super) fn open(options: &Options) -> Result<Device> {
    let mut wanted = DeviceOptions::from_env();
    if options.adapter.is_some() {
        wanted.adapter.clone_from(&options.adapter);
    }
    wanted.limits = match options.limits() {
        Limits::Native => LimitsMode::Native,
        Limits::Webgpu => LimitsMode::Webgpu,
    };
    wanted.memory_limit_bytes = options.memory_limit;
    wanted.cache_dir = cache_folder();
    let device = Device::open(&wanted)?;
    log::info!("on {} ({}, {})", device.info().name, device.info().backend, device.info().driver);
    Ok(device)
}

/// A loader for `device` that remembers in the cache folder and measures as `options` say.
pub(super) fn loader(device: &Device, options: &Options) -> Loader {
    let remembered = LoaderOptions { cache_dir: cache_folder(), ..LoaderOptions::from_env() };
    Loader::new(device, LoaderOptions { autotune: options.autotune.mode(), seed: options.seed, ..remembered })
}

/// Says that `what` compiles with the tables, if `options` ask for measurements.
pub(super) fn tables_only(what: &str, options: &Options) {
    if options.autotune.mode() != Default::default() {
        log::warn!("`{what}` takes the kernels that the tables choose; --autotune changes nothing here");
    }
}

/// Adds what was remembered and measured to a report.
pub(super) fn loaded(report: &mut Report, loaded: &LoadReport, options: &Options) {
    report.field("autotune", "autotune", options.autotune.mode().name(), "");
    report.field("compiled_from", "compiled graph from", loaded.source.name(), "");
    report.field("generated", "kernels generated", loaded.generated, "");
    report.field("measured", "problems measured", loaded.measured.len(), "");
    report.field("tuned_kernels", "kernels with measured tiles", loaded.tuned_kernels, "");
    report.field("probes_run", "probes run", loaded.probes_run, "");
}

/// Whether `options` or the environment name an adapter.
pub(super) fn is_named(options: &Options) -> bool {
    options.adapter.is_some() || DeviceOptions::from_env().adapter.is_some()
}

/// The cache folder, made if it is not there. Without one everything works and is slower, so a folder that cannot be made is a warning.
pub(super) fn cache_folder() -> Option<PathBuf> {
    let folder = files::cache_folder_from_env()?;
    match std::fs::create_dir_all(&folder) {
        Ok(()) => Some(folder),
        Err(error) => {
            log::warn!("nothing is cached, for the folder `{}` cannot be made: {error}", folder.display());
            None
        }
    }
}

/// An empty report of `command` on `device`.
pub(super) fn report(command: &str, device: &Device, options: &Options) -> Report {
    Report::new(command, options.seed).on(&device.info().name, &device.info().driver)
}
