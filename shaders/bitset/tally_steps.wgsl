// Counts over the outputs of each channel: steps, and how many were stopped, were stopped though they end positive (killed), and end at 0 or
// below; the sums of what killed and of what all positive outputs end at. Where outputs were run to their end (`audit`), the results of those that
// were stopped become 0 here. An invocation counts some eights of windows of one channel.
#import wide

struct Params {
  windows: u32,
  positions: u32,
  columns: u32,
  // Eights of windows of an invocation, and invocations of a channel.
  share: u32,
  shares: u32,
  outputs: u32,
  outputs_of_group: u32,
  fours_of_group: u32,
  // Steps of an output that is not stopped.
  all_steps: u32,
}

@group(0) @binding(0) var<storage, read> steps: array<u32>;
@group(0) @binding(1) var<storage, read_write> results: array<u32>;
// Eight words for each channel and share: the four counts, and both sums as two words.
@group(0) @binding(2) var<storage, read_write> tallies: array<vec4<u32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(64)
fn tally_steps(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = (wid.x + wid.y * grid.x) * 64u + lane;
  if (index >= params.outputs * params.shares) {
    return;
  }
  let output = index / params.shares;
  let filled = output / params.outputs_of_group * params.fours_of_group * 4u + output % params.outputs_of_group;
  let first = index % params.shares * params.share * 8u;
  let end = min(params.windows, first + params.share * 8u);
  var counts = vec4<u32>(0u);
  var killed = vec2<u32>(0u);
  var mass = vec2<u32>(0u);
  for (var window = first; window < end; window += 1u) {
    let made = (steps[(filled * params.columns + window / 8u) * 2u + window / 4u % 2u] >> (8u * (window % 4u))) & 0xffu;
    let place = (window / params.positions * params.outputs + output) * params.positions + window % params.positions;
#ifdef WIDE
    let value = vec2<u32>(results[2u * place], results[2u * place + 1u]);
    let is_positive = value.y < 0x80000000u && (value.x | value.y) != 0u;
#else
    let value = vec2<u32>(results[place], 0u);
    let is_positive = value.x < 0x80000000u && value.x != 0u;
#endif
    counts.x += made;
    if (is_positive) {
      mass = wide_add(mass, value);
    } else {
      counts.w += 1u;
    }
    if (made < params.all_steps) {
      counts.y += 1u;
      if (is_positive) {
        counts.z += 1u;
        killed = wide_add(killed, value);
      }
#ifdef WIDE
      results[2u * place] = 0u;
      results[2u * place + 1u] = 0u;
#else
      results[place] = 0u;
#endif
    }
  }
  tallies[2u * index] = counts;
  tallies[2u * index + 1u] = vec4<u32>(killed, mass);
}
