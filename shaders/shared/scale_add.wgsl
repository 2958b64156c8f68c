// y = scale * x + y, one element an invocation.

struct Params {
  // Elements.
  count: u32,
  scale: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(256)
fn scale_add(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let i = (wid.x + wid.y * grid.x) * 256u + lane;
  if (i < params.count) {
    y[i] = params.scale * x[i] + y[i];
  }
}
