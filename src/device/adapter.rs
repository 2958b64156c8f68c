//! Finding, ordering and describing adapters.

use std::sync::{Mutex, PoisonError};

use kernels_gen::AdapterClass;
use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};

/// What there is to know of an adapter before it is opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdapterInfo {
    /// Its name, as the driver gives it.
    pub name: String,
    /// Driver and version.
    pub driver: String,
    /// Graphics interface it is reached through: `vulkan`, `metal`, `dx12`, `gl`, or `noop` in tests.
    pub backend: String,
    /// `discrete`, `integrated`, `software` or `other`.
    pub class: &'static str,
}

/// An adapter of the machine.
pub(super) struct Candidate {
    pub(super) adapter: wgpu::Adapter,
    pub(super) info: AdapterInfo,
    pub(super) class: AdapterClass,
}

impl Candidate {
    fn new(adapter: wgpu::Adapter) -> Self {
        let (info, class) = describe(adapter.get_info());
        Candidate { adapter, info, class }
    }

    /// Place in the order of preference. GL comes after all others, so that the first of the list is the one that is opened by default.
    fn rank(&self) -> (bool, u8) {
        let kind = match self.class {
            AdapterClass::Discrete => 0,
            AdapterClass::Integrated => 1,
            AdapterClass::Other => 2,
            AdapterClass::Software => 3,
        };
        (self.info.backend == "gl", kind)
    }
}

/// What there is to know of an adapter, and its class.
pub(super) fn describe(raw: wgpu::AdapterInfo) -> (AdapterInfo, AdapterClass) {
    let class = match raw.device_type {
        wgpu::DeviceType::DiscreteGpu => AdapterClass::Discrete,
        wgpu::DeviceType::IntegratedGpu => AdapterClass::Integrated,
        wgpu::DeviceType::Cpu => AdapterClass::Software,
        wgpu::DeviceType::VirtualGpu | wgpu::DeviceType::Other => AdapterClass::Other,
    };
    let driver = format!("{} {}", raw.driver, raw.driver_info).trim().to_string();
    let info = AdapterInfo { name: raw.name, driver, backend: raw.backend.to_str().to_string(), class: class.name() };
    (info, class)
}

const FIRST: wgpu::Backends = wgpu::Backends::VULKAN.union(wgpu::Backends::METAL).union(wgpu::Backends::DX12);

/// The instance for `backends`, made at the first call and kept until the process ends. An instance that is dropped unloads its drivers,
/// and Mesa's leave behind handlers that run at exit, in code that is no longer there.
fn instance(backends: wgpu::Backends) -> wgpu::Instance {
    static KEPT: Mutex<Vec<(wgpu::Backends, wgpu::Instance)>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, instance)) = kept.iter().find(|(of, _)| *of == backends) {
        return instance.clone();
    }
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = backends;
    // No dispatch takes its size from a buffer, so the checks wgpu makes for those are left out.
    descriptor.flags = wgpu::InstanceFlags::empty();
    descriptor.backend_options.noop.enable = backends == wgpu::Backends::NOOP;
    let instance = wgpu::Instance::new(descriptor);
    kept.push((backends, instance.clone()));
    instance
}

async fn find(backends: wgpu::Backends) -> Vec<Candidate> {
    let adapters = instance(backends).enumerate_adapters(backends).await;
    let computes = |c: &Candidate| c.adapter.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS);
    let mut found: Vec<Candidate> = adapters.into_iter().map(Candidate::new).filter(computes).collect();
    found.sort_by_key(Candidate::rank);
    found
}

/// The adapter that `wanted` names (a place in [`adapters`] or a part of a name), or the first one.
pub(super) async fn choose(wanted: Option<&str>) -> Result<Candidate> {
    let mut found = match wanted {
        // GL costs a second start-up and is the last choice: look there only if nothing else is found.
        None => find(FIRST).await,
        Some(_) => find(FIRST | wgpu::Backends::GL).await,
    };
    if found.is_empty() && wanted.is_none() {
        found = find(wgpu::Backends::GL).await;
    }
    if found.is_empty() {
        return Err(none_found());
    }
    let Some(wanted) = wanted else { return Ok(found.swap_remove(0)) };
    let at = match wanted.trim().parse::<usize>() {
        Ok(index) => Some(index).filter(|&index| index < found.len()),
        Err(_) => found.iter().position(|c| c.info.name.to_lowercase().contains(&wanted.trim().to_lowercase())),
    };
    match at {
        Some(at) => Ok(found.swap_remove(at)),
        None => {
            let names: Vec<String> =
                found.iter().enumerate().map(|(i, c)| format!("  {i}: {} ({}, {})", c.info.name, c.info.backend, c.info.class)).collect();
            Err(Error::new(
                ErrorKind::NoAdapter,
                format!("no adapter is `{wanted}`; give an index or a part of the name of one of these:\n{}", names.join("\n")),
            ))
        }
    }
}

fn none_found() -> Error {
    let tried: Vec<&str> = wgpu::Backend::ALL
        .into_iter()
        .filter(|&b| (wgpu::Instance::enabled_backend_features() & (FIRST | wgpu::Backends::GL)).contains(b.into()))
        .map(|b| b.to_str())
        .collect();
    let message = format!(
        "no adapter that runs compute shaders was found (tried {}); install a GPU driver, or software Vulkan: the package is \
         `mesa-vulkan-drivers` on Debian and Ubuntu",
        tried.join(", ")
    );
    Error::new(ErrorKind::NoAdapter, message)
}

/// The adapters that run compute shaders, best first: discrete, integrated, virtual, software; those reached through GL last.
pub fn adapters() -> Vec<AdapterInfo> {
    pollster::block_on(find(FIRST | wgpu::Backends::GL)).into_iter().map(|c| c.info).collect()
}

/// The adapter of wgpu's `noop` backend, which keeps buffers and runs no kernel.
pub(super) async fn noop() -> Result<Candidate> {
    let found = instance(wgpu::Backends::NOOP).enumerate_adapters(wgpu::Backends::NOOP).await;
    found
        .into_iter()
        .next()
        .map(Candidate::new)
        .ok_or_else(|| Error::new(ErrorKind::NoAdapter, "wgpu was built without its `noop` backend"))
}
