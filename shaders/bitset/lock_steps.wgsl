// Steps of an array whose lanes run in lock-step: neighbouring output channels of one window share a group of lanes, which takes as many steps as
// the output among them that takes the most. An invocation sums those of one group of lanes over some eights of windows.

struct Params {
  windows: u32,
  columns: u32,
  share: u32,
  shares: u32,
  outputs_of_group: u32,
  fours_of_group: u32,
  // Channels that share a group of lanes, and such groups in a group of the convolution and in all.
  lanes: u32,
  lanes_of_group: u32,
  count: u32,
}

@group(0) @binding(0) var<storage, read> steps: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(64)
fn lock_steps(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = (wid.x + wid.y * grid.x) * 64u + lane;
  if (index >= params.count) {
    return;
  }
  let row = index / params.shares;
  let first = row % params.lanes_of_group * params.lanes;
  let end = min(params.outputs_of_group, first + params.lanes);
  let base = row / params.lanes_of_group * params.fours_of_group * 4u;
  // Words of four windows.
  let first_word = index % params.shares * params.share * 2u;
  let end_word = min(params.columns * 2u, first_word + params.share * 2u);
  var sum = 0u;
  for (var word = first_word; word < end_word; word += 1u) {
    var most = vec4<u32>(0u);
    for (var channel = first; channel < end; channel += 1u) {
      let made = steps[(base + channel) * params.columns * 2u + word];
      most = max(most, (vec4<u32>(made) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu));
    }
    // Windows past the last one have made none.
    sum += most.x + most.y + most.z + most.w;
  }
  sums[index] = sum;
}
