//! The holes of the convolution.

use super::{Holes, size};
use crate::error::{Error, Result};
use kernels_gen::heroes::conv::ConvProblem;
use kernels_gen::index::Index;

impl Holes<'_> {
    /// Makes all holes and states the problem they belong to.
    pub(super) fn conv(&mut self, stride: [usize; 2], pad: [usize; 2], dilation: [usize; 2], groups: usize) -> Result<ConvProblem> {
        let (x, w) = {
            let inputs = &self.lowering.graph.node(self.hero).inputs;
            (self.lowering.ty(inputs[0]), self.lowering.ty(inputs[1]))
        };
        let y = self.lowering.ty(self.hero);
        let pair = |a: usize, b: usize| Ok::<_, Error>([size(a)?, size(b)?]);
        let batch = size(x.shape[0])?;
        let [channels, outputs] = pair(x.shape[1], y.shape[1])?;
        let (input, output, kernel) = (pair(x.shape[2], x.shape[3])?, pair(y.shape[2], y.shape[3])?, pair(w.shape[2], w.shape[3])?);
        let groups = size(groups)?;
        let (in_channels, out_channels) = (size(w.shape[1])?, outputs / groups.max(1));
        let pick = |p: &[&Index]| p.iter().map(|i| (*i).clone()).collect::<Vec<_>>();

        let image =
            |this: &mut Self, width| vec![this.one("n", batch, width), this.one("c", channels, width), this.one("y", input[0], width)];
        let mut params = image(self, 1);
        params.push(self.one("x", input[1], 1));
        self.load("load_x1", 0, params, pick)?;
        let mut params = image(self, 4);
        params.push(self.four("x", input[1]));
        let value = self.load("load_x", 0, params, pick)?;
        let x_vec = self.is_vector(value);
        if !x_vec {
            self.drop_last();
        }
        let taps = kernel[0] * kernel[1];
        let params = vec![self.one("g", groups, 4), self.one("c", in_channels, 4), self.one("tap", taps, 4), self.four("oc", out_channels)];
        let kernel_x = i64::from(kernel[1].max(1));
        self.load("load_w", 1, params, |p| {
            vec![p[0].mul(i64::from(out_channels)).add(p[3]), p[1].clone(), p[2].div(kernel_x), p[2].modulo(kernel_x)]
        })?;
        let place =
            |this: &mut Self, width| vec![this.one("n", batch, width), this.one("oc", outputs, width), this.one("y", output[0], width)];
        if self.stores_elements(output[1]) {
            let mut params = place(self, 1);
            params.push(self.one("x", output[1], 1));
            self.store("store1", params, pick)?;
        }
        let store_vec = output[1].is_multiple_of(4);
        if store_vec {
            let mut params = place(self, 4);
            params.push(self.four("x", output[1]));
            self.store("store", params, pick)?;
        }
        let (stride, dilation, pad) = (pair(stride[0], stride[1])?, pair(dilation[0], dilation[1])?, pair(pad[0], pad[1])?);
        Ok(ConvProblem { batch, groups, in_channels, out_channels, input, output, kernel, stride, dilation, pad, x_vec, store_vec })
    }
}
