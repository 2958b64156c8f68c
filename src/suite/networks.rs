//! Networks that people run, with random weights: what compilation is measured on.

use crate::capture::{Traced, capture};
use crate::error::Result;
use crate::graph::{Graph, Prim};
use crate::ops::attention::Attention;
use crate::ops::conv::Conv;
use crate::ops::prelude::*;
use crate::ops::recurrent::{Cell, Order, Recurrent, RecurrentResult};
use crate::ops::window::Padding;
use crate::suite::samples::Weights;
use kernels_gen::DType;
use kernels_gen::threefry::Key;

/// ResNet-20 for images of 3x32x32 and ten classes: 19 convolutions, short cuts that subsample and pad with zeros.
pub fn resnet20(key: Key, batch: usize) -> Result<Graph> {
    capture(|t| {
        let mut weights = Weights::new(t, key);
        let x = t.input("x", [batch, 3, 32, 32], DType::F32)?;
        let mut x = weights.conv_norm(&x, 16, 1)?.relu()?;
        for (stage, channels) in [16, 32, 64].into_iter().enumerate() {
            for block in 0..3 {
                let narrows = stage > 0 && block == 0;
                let inner = weights.conv_norm(&x, channels, if narrows { 2 } else { 1 })?.relu()?;
                let outer = weights.conv_norm(&inner, channels, 1)?;
                let short = if narrows { subsampled(&x, channels)? } else { x };
                x = outer.add(&short)?.relu()?;
            }
        }
        let features = x.global_average_pool()?.reshape(&[batch as isize, 64])?;
        weights.linear(&features, 10)
    })
}

/// Every second row and column, and channels of zeros around those there are.
fn subsampled(x: &Traced, channels: usize) -> Result<Traced> {
    let &[batch, had, height, width] = x.shape() else {
        return Err(crate::Error::internal("images have four dimensions"));
    };
    let sizes = vec![batch, had, height.div_ceil(2), width.div_ceil(2)];
    let halved = Traced::apply(Prim::Slice { starts: vec![0; 4], steps: vec![1, 1, 2, 2], sizes }.into(), &[x])?;
    let low = (channels - had) / 2;
    halved.pad(&[0, low, 0, 0], &[0, channels - had - low, 0, 0], 0.0)
}

/// SqueezeNet 1.1 for images of 3x224x224 and a thousand classes: 26 convolutions.
pub fn squeezenet(key: Key, batch: usize) -> Result<Graph> {
    capture(|t| {
        let mut weights = Weights::new(t, key);
        let x = t.input("x", [batch, 3, 224, 224], DType::F32)?;
        let mut x = conv(&mut weights, &x, 64, 3, [2, 0])?.max_pool(&[3, 3], &[2, 2])?;
        for (at, (squeezed, expanded)) in
            [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)].into_iter().enumerate()
        {
            let narrow = conv(&mut weights, &x, squeezed, 1, [1, 0])?;
            let wide = [conv(&mut weights, &narrow, expanded, 1, [1, 0])?, conv(&mut weights, &narrow, expanded, 3, [1, 1])?];
            x = Traced::concat(&[&wide[0], &wide[1]], 1)?;
            if at == 1 || at == 3 {
                x = x.max_pool(&[3, 3], &[2, 2])?;
            }
        }
        let x = conv(&mut weights, &x, 1000, 1, [1, 0])?.global_average_pool()?;
        x.reshape(&[batch as isize, 1000])
    })
}

/// A square convolution with bias and ReLU; `[stride, pad]`.
fn conv(weights: &mut Weights<'_>, x: &Traced, outputs: usize, size: usize, [stride, pad]: [usize; 2]) -> Result<Traced> {
    let inputs = x.shape()[1];
    let kernel = weights.next(&[outputs, inputs, size, size], size * size * inputs)?;
    let bias = weights.next(&[outputs], inputs)?;
    let how = Conv { strides: vec![stride; 2], padding: Padding::Explicit { low: vec![pad; 2], high: vec![pad; 2] }, ..Conv::new(2) };
    x.conv(&kernel, Some(&bias), how)?.relu()
}

/// A perceptron of the given widths with ReLU between its layers.
pub fn perceptron(key: Key, batch: usize, widths: &[usize]) -> Result<Graph> {
    capture(|t| {
        let mut weights = Weights::new(t, key);
        let mut x = t.input("x", [batch, widths.first().copied().unwrap_or(1)], DType::F32)?;
        for (layer, &width) in widths.iter().enumerate().skip(1) {
            x = weights.linear(&x, width)?;
            if layer + 1 < widths.len() {
                x = x.relu()?;
            }
        }
        Ok(x)
    })
}

/// A feed-forward layer of a transformer: `inner` values with GELU between two of `width`.
pub fn gelu_mlp(key: Key, batch: usize, width: usize, inner: usize) -> Result<Graph> {
    capture(|t| {
        let mut weights = Weights::new(t, key);
        let x = t.input("x", [batch, width], DType::F32)?;
        let hidden = weights.linear(&x, inner)?.gelu()?;
        weights.linear(&hidden, width)
    })
}

/// An encoder layer as in BERT: attention of every token to all, then a feed-forward layer of four times the width, each added and
/// normalised afterwards.
pub fn encoder_layer(key: Key, tokens: usize, width: usize, heads: usize) -> Result<Graph> {
    capture(|t| {
        let mut weights = Weights::new(t, key);
        let x = t.input("x", [tokens, width], DType::F32)?;
        let shape = [tokens, heads, width / heads.max(1)].map(|n| n as isize);
        let split = |weights: &mut Weights<'_>| weights.linear(&x, width)?.reshape(&shape)?.transpose(&[1, 0, 2]);
        let (q, k, v) = (split(&mut weights)?, split(&mut weights)?, split(&mut weights)?);
        let mixed = q.attention(&k, &v, None, Attention { scale: None, causal: false })?;
        let mixed = mixed.transpose(&[1, 0, 2])?.reshape(&[tokens as isize, width as isize])?;
        let norm = |weights: &mut Weights<'_>, x: &Traced| {
            let [scale, bias] = [weights.next(&[width], 4)?, weights.next(&[width], 4)?];
            x.layer_norm(&scale, Some(&bias), -1, 1e-12)
        };
        let added = x.add(&weights.linear(&mixed, width)?)?;
        let x = norm(&mut weights, &added)?;
        let hidden = weights.linear(&x, 4 * width)?.gelu()?;
        let added = x.add(&weights.linear(&hidden, width)?)?;
        norm(&mut weights, &added)
    })
}

/// An LSTM over one sequence of `steps`, as wide as its state; all hidden states.
pub fn lstm(key: Key, steps: usize, hidden: usize) -> Result<Graph> {
    capture(|t| {
        let mut weights = Weights::new(t, key);
        let x = t.input("x", [steps, 1, hidden], DType::F32)?;
        let w = weights.next(&[1, 4 * hidden, hidden], hidden)?;
        let r = weights.next(&[1, 4 * hidden, hidden], hidden)?;
        let b = weights.next(&[1, 8 * hidden], hidden)?;
        let [h, c] = ["h", "c"].map(|name| t.input(name, [1, 1, hidden], DType::F32));
        let cell = Cell::Lstm { peepholes: false };
        let layer = Recurrent {
            cell,
            orders: vec![Order::Forward],
            functions: vec![cell.functions()],
            clip: None,
            result: RecurrentResult::Sequence,
        };
        x.recurrent(layer, &[&w, &r, &b, &h?, &c?])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::passes;
    use crate::graph::Op;

    fn convolutions(graph: &Graph) -> usize {
        let graph = passes::decompose(graph).expect("decomposes");
        graph.nodes().iter().filter(|node| matches!(node.op, Op::Prim(Prim::Conv { .. }))).count()
    }

    #[test]
    fn networks_have_the_layers_of_their_names() {
        let key = Key::new(1);
        assert_eq!(convolutions(&resnet20(key, 2).expect("records")), 19);
        assert_eq!(convolutions(&squeezenet(key, 1).expect("records")), 26);
        let shape = |graph: Graph| graph.ty(graph.outputs()[0].1).shape.clone();
        assert_eq!(shape(perceptron(key, 5, &[784, 512, 512, 10]).expect("records")), [5, 10]);
        assert_eq!(shape(gelu_mlp(key, 3, 64, 256).expect("records")), [3, 64]);
        assert_eq!(shape(encoder_layer(key, 7, 48, 4).expect("records")), [7, 48]);
        assert_eq!(shape(lstm(key, 6, 16).expect("records")), [6, 1, 1, 16]);
    }
}
