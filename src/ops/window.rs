//! Sliding windows: the arithmetic that convolution, pooling and the window view share.

use super::RefTensor;
use super::call::Call;
use super::cases::{Cases, plain};
use super::tolerance::Tolerance;
use crate::error::{Error, Result};
use crate::graph::{Prim, TensorType};
use crate::tensor::MAX_ELEMS;
use kernels_gen::DType;

/// How far windows may reach over the edges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Elements before and after, by spatial dimension.
    Explicit {
        /// Before.
        low: Vec<usize>,
        /// After.
        high: Vec<usize>,
    },
    /// As many windows as `ceil(size / stride)`; an odd element goes after.
    SameUpper,
    /// As `SameUpper`, but an odd element goes before.
    SameLower,
}

impl Padding {
    /// No padding of `rank` spatial dimensions.
    pub fn none(rank: usize) -> Self {
        Padding::Explicit { low: vec![0; rank], high: vec![0; rank] }
    }

    /// The same padding before and after.
    pub fn symmetric(sizes: &[usize]) -> Self {
        Padding::Explicit { low: sizes.to_vec(), high: sizes.to_vec() }
    }
}

/// Windows along one dimension, resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Elements before.
    pub low: usize,
    /// Elements after, as asked for.
    pub high: usize,
    /// Elements after that the last window needs beyond `high`.
    pub extra: usize,
    /// Number of windows.
    pub count: usize,
}

impl Windows {
    /// Size of a dimension of `len` elements with all its padding.
    pub fn padded(&self, len: usize) -> usize {
        self.low + len + self.high + self.extra
    }
}

/// Elements a window of `size` spans, or `None` past what can be addressed.
pub(crate) fn span(size: usize, dilation: usize) -> Option<usize> {
    size.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)
}

/// Number of windows that fit into `len` elements, or `None` if none does.
pub(crate) fn count(len: usize, size: usize, stride: usize, dilation: usize) -> Option<usize> {
    Some(len.checked_sub(span(size, dilation)?)? / stride + 1)
}

/// The windows along spatial dimension `axis` of `len` elements.
pub(crate) fn resolve(
    padding: &Padding,
    axis: usize,
    len: usize,
    size: usize,
    stride: usize,
    dilation: usize,
    ceil: bool,
) -> Result<Windows> {
    let misfit = || {
        Error::invalid(format!(
            "windows of size {size}, stride {stride} and dilation {dilation} do not fit spatial dimension {axis} of size {len} with {padding:?}: \
             sizes, strides and dilations are at least 1, and the padded dimension holds a window"
        ))
    };
    if size == 0 || stride == 0 || dilation == 0 {
        return Err(misfit());
    }
    let span = span(size, dilation).ok_or_else(misfit)?;
    let same = |upper: bool| {
        let count = len.div_ceil(stride);
        let reach = count.checked_sub(1)?.checked_mul(stride)?.checked_add(span)?;
        let total = reach.saturating_sub(len);
        let small = total / 2;
        Some(if upper { (small, total - small) } else { (total - small, small) })
    };
    let (low, high) = match padding {
        Padding::Explicit { low, high } => (*low.get(axis).ok_or_else(misfit)?, *high.get(axis).ok_or_else(misfit)?),
        Padding::SameUpper => same(true).ok_or_else(misfit)?,
        Padding::SameLower => same(false).ok_or_else(misfit)?,
    };
    let padded = len.checked_add(low).and_then(|l| l.checked_add(high)).filter(|&p| p <= MAX_ELEMS).ok_or_else(|| {
        Error::limit(format!("spatial dimension {axis} of size {len} with padding {low} and {high}: kernels count up to 2^31 elements"))
    })?;
    let free = padded.checked_sub(span).ok_or_else(misfit)?;
    let mut count = if ceil { free.div_ceil(stride) } else { free / stride } + 1;
    // A window that would begin after the operand and its front padding covers no element.
    if ceil && count > 1 && (count - 1) * stride >= len + low {
        count -= 1;
    }
    let extra = ((count - 1) * stride + span).saturating_sub(padded);
    Ok(Windows { low, high, extra, count })
}

pub(super) fn infer_window(call: &Call, sizes: &[usize], strides: &[usize], dilations: &[usize]) -> Result<TensorType> {
    let [x] = call.operands(["x"])?;
    let spatial = sizes.len();
    if spatial > x.rank() || strides.len() != spatial || dilations.len() != spatial {
        return Err(call.misfit(format_args!(
            "sizes {sizes:?}, strides {strides:?} and dilations {dilations:?} must name the same number of its last dimensions"
        )));
    }
    let mut shape = x.shape.clone();
    let first = x.rank() - spatial;
    for d in 0..spatial {
        let windows =
            (sizes[d] > 0 && strides[d] > 0 && dilations[d] > 0).then(|| count(shape[first + d], sizes[d], strides[d], dilations[d]));
        shape[first + d] = windows.flatten().ok_or_else(|| {
            call.misfit(format_args!(
                "no window of size {}, stride {} and dilation {} fits its dimension {}; all three are at least 1",
                sizes[d],
                strides[d],
                dilations[d],
                first + d
            ))
        })?;
    }
    shape.extend_from_slice(sizes);
    Ok(TensorType::new(x.dtype, shape))
}

pub(super) fn window(x: &RefTensor, shape: &[usize], spatial: usize, strides: &[usize], dilations: &[usize]) -> RefTensor {
    let own = x.strides();
    let (outer, inner) = own.split_at(own.len() - spatial);
    let mut all = outer.to_vec();
    all.extend(inner.iter().zip(strides).map(|(a, &b)| a * b as isize));
    all.extend(inner.iter().zip(dilations).map(|(a, &b)| a * b as isize));
    x.strided(shape, 0, &all)
}

pub(super) fn cases(cases: &mut Cases) {
    for &dtype in &DType::ALL {
        for (shape, sizes, strides, dilations) in [
            (&[7usize] as &[usize], &[3usize] as &[usize], &[1usize] as &[usize], &[1usize] as &[usize]),
            (&[2, 9], &[3], &[2], &[2]),
            (&[2, 3, 8, 9], &[2, 3], &[1, 2], &[2, 1]),
            (&[0, 5], &[2], &[1], &[1]),
            (&[2, 5], &[5], &[1], &[1]),
        ] {
            let window = Prim::Window { sizes: sizes.to_vec(), strides: strides.to_vec(), dilations: dilations.to_vec() };
            cases.add(window, Tolerance::Bits, vec![plain(dtype, shape)]);
        }
    }
}
