// The activations under each tap of each window, as columns: eight neighbouring windows are one vec4 of pairs of 16 bits, the earlier window
// in the low half. An invocation writes the column of one tap of one input channel for eight windows; those past the last one are 0.

struct Params {
  // Windows of all images.
  windows: u32,
  // Eights of windows.
  columns: u32,
  // Columns of all taps of all channels.
  count: u32,
  channels: u32,
  height: u32,
  width: u32,
  out_height: u32,
  out_width: u32,
  kernel_height: u32,
  kernel_width: u32,
  stride_y: u32,
  stride_x: u32,
  pad_y: u32,
  pad_x: u32,
  dilation_y: u32,
  dilation_x: u32,
}

// Bytes, four a word.
@group(0) @binding(0) var<storage, read> activations: array<u32>;
@group(0) @binding(1) var<storage, read_write> columns: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

fn activation(window: u32, channel: u32, ky: u32, kx: u32) -> u32 {
  if (window >= params.windows) {
    return 0u;
  }
  let ox = window % params.out_width;
  let row = window / params.out_width;
  let oy = row % params.out_height;
  let image = row / params.out_height;
  // In the padding before the image these pass below 0 and so above every size.
  let y = oy * params.stride_y + ky * params.dilation_y - params.pad_y;
  let x = ox * params.stride_x + kx * params.dilation_x - params.pad_x;
  if (y >= params.height || x >= params.width) {
    return 0u;
  }
  let at = ((image * params.channels + channel) * params.height + y) * params.width + x;
  return (activations[at >> 2u] >> (8u * (at & 3u))) & 0xffu;
}

@compute @workgroup_size(64)
fn window_columns(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let at = (wid.x + wid.y * grid.x) * 64u + lane;
  if (at >= params.count) {
    return;
  }
  let first = at % params.columns * 8u;
  let tap = at / params.columns;
  let kx = tap % params.kernel_width;
  let ky = tap / params.kernel_width % params.kernel_height;
  let channel = tap / (params.kernel_width * params.kernel_height);
  var pairs = vec4<u32>(0u);
  for (var i = 0u; i < 4u; i += 1u) {
    let low = activation(first + 2u * i, channel, ky, kx);
    pairs[i] = low | (activation(first + 2u * i + 1u, channel, ky, kx) << 16u);
  }
  columns[at] = pairs;
}
