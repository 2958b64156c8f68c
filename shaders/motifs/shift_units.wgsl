// Adds a number of paths to the first path of each unit of a table: those of the tables before it.
#import wide

struct Params {
  // Units, the one at the end included.
  count: u32,
  low: u32,
  high: u32,
}

// Five a unit; the first is the number of its first path.
@group(0) @binding(0) var<storage, read_write> units: array<vec2<u32>>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(256)
fn shift_units(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = (wid.x + wid.y * grid.x) * 256u + local;
  if (i < params.count) {
    units[5u * i] = wide_add(units[5u * i], vec2<u32>(params.low, params.high));
  }
}
