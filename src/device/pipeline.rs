//! Compute pipelines, made once for each kernel of a device, and their cache on disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kernels_gen::{BindingKind, KernelSource};
use sha2::{Digest, Sha256};

use crate::device::{Device, unsafe_calls};
use crate::error::{Error, ErrorKind, Result};
use crate::files;

/// A compiled kernel and the layout of its bind group.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) raw: wgpu::ComputePipeline,
    pub(super) layout: wgpu::BindGroupLayout,
}

/// The pipelines of a device.
#[derive(Debug, Default)]
pub(super) struct Pipelines {
    made: Mutex<HashMap<Arc<KernelSource>, Arc<Pipeline>>>,
    disk: Option<DiskCache>,
}

impl Pipelines {
    /// A store that keeps the driver's compiled code in `folder`, where the backend can.
    pub(super) fn open(device: &wgpu::Device, adapter: &wgpu::AdapterInfo, folder: Option<&Path>) -> Self {
        let usable = device.features().contains(wgpu::Features::PIPELINE_CACHE);
        let disk = folder.filter(|_| usable).and_then(|folder| DiskCache::open(device, adapter, folder));
        Pipelines { made: Mutex::default(), disk }
    }

    /// Writes what is new to disk.
    pub(super) fn save(&self) -> Result<()> {
        self.disk.as_ref().map_or(Ok(()), DiskCache::save)
    }
}

impl Device {
    /// Kernels that have been compiled on this device.
    pub fn num_pipelines(&self) -> usize {
        self.shared.pipelines.made.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The pipeline of `source`, made at first use.
    pub(super) fn pipeline(&self, source: &Arc<KernelSource>) -> Result<Arc<Pipeline>> {
        let made = || self.shared.pipelines.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = made().get(source) {
            return Ok(found.clone());
        }
        self.check_kernel(source)?;
        // The lock is not held here: several threads may compile at a time, and of two equal results the first is kept.
        let pipeline = self.compile(source)?;
        Ok(made().entry(source.clone()).or_insert_with(|| Arc::new(pipeline)).clone())
    }

    fn compile(&self, source: &KernelSource) -> Result<Pipeline> {
        let name = source.name.as_str();
        let uniform = wgpu::BufferSize::new((source.num_params as u64 * 4).next_multiple_of(16));
        let entries: Vec<wgpu::BindGroupLayoutEntry> = (0..)
            .zip(&source.bindings)
            .map(|(binding, b)| {
                let (ty, min_binding_size) = match b.kind {
                    BindingKind::Read => (wgpu::BufferBindingType::Storage { read_only: true }, None),
                    BindingKind::ReadWrite => (wgpu::BufferBindingType::Storage { read_only: false }, None),
                    BindingKind::Params => (wgpu::BufferBindingType::Uniform, uniform),
                };
                wgpu::BindGroupLayoutEntry {
                    binding,
                    visibility: wgpu::ShaderStages::COMPUTE,
                    ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size },
                    count: None,
                }
            })
            .collect();
        let constants: Vec<(&str, f64)> = source.override_values().collect();
        let what = format!("kernel `{name}` is refused by {}", self.info().name);
        self.scoped(ErrorKind::Shader, &what, |device| {
            let wgsl = wgpu::ShaderSource::Wgsl(source.wgsl.as_str().into());
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some(name), source: wgsl });
            let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some(name), entries: &entries });
            let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some(name),
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
            let raw = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(name),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some(name),
                // Kernels write workgroup memory before they read it; zeroing it costs seconds of compile time on DX12.
                compilation_options: wgpu::PipelineCompilationOptions { constants: &constants, zero_initialize_workgroup_memory: false },
                cache: self.shared.pipelines.disk.as_ref().map(|disk| &disk.raw),
            });
            if let Some(disk) = &self.shared.pipelines.disk {
                disk.changed.store(true, Ordering::Relaxed);
            }
            Pipeline { raw, layout }
        })
    }

    /// What a kernel asks of the adapter, against what there is.
    fn check_kernel(&self, source: &KernelSource) -> Result<()> {
        let (name, limits, adapter) = (&source.name, &self.shared.limits, &self.info().name);
        let mut over = Vec::new();
        let mut check = |what: &str, given: u64, limit: u64| {
            if given > limit {
                over.push(format!("{given} {what} (limit {limit})"));
            }
        };
        check("storage buffers", source.num_storage() as u64, self.info().limits.max_storage_buffers.into());
        check("bytes of parameters", source.num_params as u64 * 4, limits.max_uniform_buffer_binding_size);
        check("bytes of workgroup memory", source.workgroup_bytes.into(), limits.max_compute_workgroup_storage_size.into());
        let [x, y, z] = source.workgroup_size;
        let invocations = [x, y, z].iter().fold(1u64, |a, &b| a.saturating_mul(b.into()));
        check("invocations a workgroup", invocations, limits.max_compute_invocations_per_workgroup.into());
        check("invocations in x", x.into(), limits.max_compute_workgroup_size_x.into());
        check("invocations in y", y.into(), limits.max_compute_workgroup_size_y.into());
        check("invocations in z", z.into(), limits.max_compute_workgroup_size_z.into());
        if !over.is_empty() {
            let message =
                format!("kernel `{name}` uses {}, past what {adapter} allows; make it for this adapter's target", over.join(", "));
            return Err(Error::limit(message));
        }
        let features = self.shared.features;
        let missing: Vec<&str> = [
            ("f16", source.features.f16, wgpu::Features::SHADER_F16),
            ("subgroups", source.features.subgroups, wgpu::Features::SUBGROUP),
            ("64-bit integers", source.features.int64, wgpu::Features::SHADER_INT64),
        ]
        .into_iter()
        .filter_map(|(what, used, feature)| (used && !features.contains(feature)).then_some(what))
        .collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(Error::unsupported(format!("kernel `{name}` uses {missing}, which {adapter} lacks or which was switched off")));
        }
        let misplaced = source.bindings.iter().rev().skip(1).any(|b| b.kind == BindingKind::Params);
        let has_params = source.bindings.last().is_some_and(|b| b.kind == BindingKind::Params);
        if misplaced || has_params != (source.num_params > 0) {
            return Err(Error::internal(format!("kernel `{name}`: the parameter block stands last, once, if there are parameters")));
        }
        Ok(())
    }

    /// Writes the driver's compiled pipelines to the cache folder. Also done when the last handle of a device is dropped.
    pub fn save_pipelines(&self) -> Result<()> {
        self.shared.pipelines.save()
    }
}

/// A driver pipeline cache kept in one file: the SHA-256 of its data, then the data.
#[derive(Debug)]
struct DiskCache {
    raw: wgpu::PipelineCache,
    path: PathBuf,
    changed: AtomicBool,
}

impl DiskCache {
    fn open(device: &wgpu::Device, adapter: &wgpu::AdapterInfo, folder: &Path) -> Option<Self> {
        let key = wgpu::util::pipeline_cache_key(adapter)?;
        let driver = Sha256::digest(format!("{}\n{}\n{}", adapter.name, adapter.driver, adapter.driver_info));
        let driver: String = driver.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        let path = folder.join(format!("{key}_{driver}.bin"));
        let data = std::fs::read(&path).ok().and_then(|file| {
            let (digest, data) = file.split_at_checked(32)?;
            (Sha256::digest(data).as_slice() == digest).then(|| data.to_vec())
        });
        let raw = unsafe_calls::create_pipeline_cache(device, data.as_deref());
        Some(DiskCache { raw, path, changed: AtomicBool::new(false) })
    }

    fn save(&self) -> Result<()> {
        if !self.changed.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let Some(data) = self.raw.get_data() else { return Ok(()) };
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| Error::io(folder, "create", error))?;
        }
        files::write_atomic(&self.path, &[Sha256::digest(&data).as_slice(), &data].concat())
    }
}
