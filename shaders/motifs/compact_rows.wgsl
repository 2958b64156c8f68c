// Moves the rows that are kept to their places in a table of units.

struct Params {
  // Rows, those left out included.
  count: u32,
  // Place in the table of the first one that is kept, modulo 2^32, and how many units the table takes. Others are left to other tables.
  base: u32,
  size: u32,
}

// As `weigh_rows` leaves them, the flags turned into prefix sums.
@group(0) @binding(0) var<storage, read> rows: array<vec2<u32>>;
// Five a unit.
@group(0) @binding(1) var<storage, read_write> units: array<vec2<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(256)
fn compact_rows(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) local: u32) {
  let i = (wid.x + wid.y * grid.x) * 256u + local;
  if (i >= params.count) {
    return;
  }
  let kept = rows[6u * i + 5u].x;
  let at = params.base + kept;
  if (rows[6u * i + 11u].x == kept || at >= params.size) {
    return;
  }
  for (var k = 0u; k < 5u; k += 1u) {
    units[5u * at + k] = rows[6u * i + k];
  }
}
