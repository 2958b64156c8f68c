//! Twin of `window_columns.wgsl`.

use super::BYTES;
use crate::bitset::layer::Geometry;
use crate::error::Result;
use crate::shaders::twins::{Twin, TwinCall};

pub(super) const TWIN: Twin = Twin { name: "window_columns", run };

fn run(call: TwinCall<'_>) -> Result<()> {
    let covered = call.num_invocations() as usize;
    let ([activations, columns_of], params) = call.split::<2, 17>()?;
    let [windows, columns, count, channels, height, width, out_height, out_width] = std::array::from_fn(|i| params[i] as usize);
    let [kernel_height, kernel_width, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x] =
        std::array::from_fn(|i| params[8 + i] as usize);
    let geometry = Geometry {
        channels,
        size: [height, width],
        outputs: 1,
        kernel: [kernel_height, kernel_width],
        strides: [stride_y, stride_x],
        pads_low: [pad_y, pad_x],
        // As many zeros after as the outputs ask for.
        pads_high: std::array::from_fn(|d| {
            let reach = [
                (out_height - 1) * stride_y + dilation_y * (kernel_height - 1),
                (out_width - 1) * stride_x + dilation_x * (kernel_width - 1),
            ];
            (reach[d] + 1).saturating_sub([height + pad_y, width + pad_x][d])
        }),
        dilations: [dilation_y, dilation_x],
        groups: 1,
    };
    let positions = out_height * out_width;
    let activation = |window: usize, tap: usize| {
        let place = geometry.under(0, window % positions, tap).filter(|_| window < windows);
        place.map_or(0, |place| {
            let at = window / positions * channels * height * width + place;
            activations[at / 4] >> (8 * (at % 4)) & 0xff
        })
    };
    let taps = params[16] as usize;
    let pairs = taps.div_ceil(2);
    for at in 0..count.min(covered) {
        let (pair, first) = (at / columns, at % columns * 8);
        for word in 0..4 {
            let of_group = pair % pairs * 2 + word / 2;
            let byte = |i: usize| activation(first + word % 2 * 4 + i, pair / pairs * taps + of_group) << (8 * BYTES[i]);
            columns_of[4 * at + word] = if of_group < taps { (0..4).map(byte).sum() } else { 0 };
        }
    }
    Ok(())
}
