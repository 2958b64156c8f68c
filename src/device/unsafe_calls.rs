//! Every unsafe call of the crate.
#![allow(unsafe_code)]

/// A driver pipeline cache that starts from `data`, or empty where the driver does not take it.
///
/// `data` must be what [`wgpu::PipelineCache::get_data`] returned on an adapter of the same key; the caller checks a digest of the
/// file it was kept in.
pub(super) fn create_pipeline_cache(device: &wgpu::Device, data: Option<&[u8]>) -> wgpu::PipelineCache {
    let descriptor = wgpu::PipelineCacheDescriptor { label: Some("sublane"), data, fallback: true };
    // SAFETY: the data came from `get_data` on an adapter of the same key, and its digest was compared before this call. wgpu
    // compares its own header (vendor, device, driver, format version) and, with `fallback`, starts empty where that differs.
    unsafe { device.create_pipeline_cache(&descriptor) }
}
