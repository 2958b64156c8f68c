//! Opening the device that the options ask for.

use super::options::{Limits, Options};
use std::path::PathBuf;
use sublane::device::{Device, DeviceOptions, LimitsMode};
use sublane::report::Report;
use sublane::{Result, files};

/// Opens the device that `options` ask for.
pub(super) fn open(options: &Options) -> Result<Device> {
    let mut wanted = DeviceOptions::from_env();
    if options.adapter.is_some() {
        wanted.adapter.clone_from(&options.adapter);
    }
    wanted.limits = match options.limits {
        Limits::Native => LimitsMode::Native,
        Limits::Webgpu => LimitsMode::Webgpu,
    };
    wanted.memory_limit_bytes = options.memory_limit;
    wanted.cache_dir = cache_folder();
    let device = Device::open(&wanted)?;
    log::info!("on {} ({}, {})", device.info().name, device.info().backend, device.info().driver);
    Ok(device)
}

/// Whether `options` or the environment name an adapter.
pub(super) fn is_named(options: &Options) -> bool {
    options.adapter.is_some() || DeviceOptions::from_env().adapter.is_some()
}

/// The cache folder, made if it is not there. Without one everything works and is slower, so a folder that cannot be made is a warning.
fn cache_folder() -> Option<PathBuf> {
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
