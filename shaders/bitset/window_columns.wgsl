// The activations under the taps of windows, as columns: two neighbouring taps of eight neighbouring windows are one vec4, two words for each tap,
// four windows in each: bytes 0, 2, 1 and 3 are windows 0, 1, 2 and 3, so that neighbours become one word of two by a mask. An invocation writes one
// vec4; windows past the last one, and a tap past the last one of its group, are 0.

struct Params {
  // Windows of all images.
  windows: u32,
  // Eights of windows.
  columns: u32,
  // Columns of all pairs of taps of all groups.
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
  // Taps of a group.
  taps: u32,
}

// Bytes, four a word.
@group(0) @binding(0) var<storage, read> activations: array<u32>;
@group(0) @binding(1) var<storage, read_write> columns: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> params: Params;

// The activations of four windows under a tap, the first window's in the lowest byte.
fn four(first: u32, channel: u32, ky: u32, kx: u32) -> u32 {
  let is_row = params.stride_x == 1u && (params.out_width & 3u) == 0u;
  var bytes = 0u;
  if (is_row) {
    // Neighbours in a row of the image: two words hold them.
    let row = first / params.out_width;
    let y = row % params.out_height * params.stride_y + ky * params.dilation_y - params.pad_y;
    if (first >= params.windows || y >= params.height) {
      return 0u;
    }
    let x = i32(first % params.out_width + kx * params.dilation_x) - i32(params.pad_x);
    let start = i32(((row / params.out_height * params.channels + channel) * params.height + y) * params.width) + x;
    let shift = 8u * (bitcast<u32>(start) & 3u);
    bytes = activations[start >> 2u] >> shift;
    if (shift > 0u) {
      bytes |= activations[(start >> 2u) + 1] << (32u - shift);
    }
    for (var i = 0; i < 4; i += 1) {
      let outside = x + i < 0 || x + i >= i32(params.width);
      bytes &= ~select(0u, 0xffu << u32(8 * i), outside);
    }
    return bytes;
  }
  for (var i = 0u; i < 4u; i += 1u) {
    let window = first + i;
    let ox = window % params.out_width;
    let row = window / params.out_width;
    // In the padding before the image these pass below 0 and so above every size.
    let y = row % params.out_height * params.stride_y + ky * params.dilation_y - params.pad_y;
    let x = ox * params.stride_x + kx * params.dilation_x - params.pad_x;
    if (window < params.windows && y < params.height && x < params.width) {
      let at = ((row / params.out_height * params.channels + channel) * params.height + y) * params.width + x;
      bytes |= ((activations[at >> 2u] >> (8u * (at & 3u))) & 0xffu) << (8u * i);
    }
  }
  return bytes;
}

@compute @workgroup_size(64)
fn window_columns(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) grid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let at = (wid.x + wid.y * grid.x) * 64u + lane;
  if (at >= params.count) {
    return;
  }
  let first = at % params.columns * 8u;
  let pairs = (params.taps + 1u) / 2u;
  let pair = at / params.columns;
  var words = vec4<u32>(0u);
  for (var i = 0u; i < 4u; i += 1u) {
    let of_group = pair % pairs * 2u + i / 2u;
    if (of_group < params.taps) {
      let tap = pair / pairs * params.taps + of_group;
      let kx = tap % params.kernel_width;
      let ky = tap / params.kernel_width % params.kernel_height;
      let bytes = four(first + 4u * (i & 1u), tap / (params.kernel_width * params.kernel_height), ky, kx);
      words[i] = (bytes & 0xff0000ffu) | ((bytes & 0xff00u) << 8u) | ((bytes & 0xff0000u) >> 8u);
    }
  }
  columns[at] = words;
}
