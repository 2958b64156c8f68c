//! Losses.

use super::node::{Call, Handler, Importer, Val};
use crate::error::{Error, Result};
use crate::graph::{NodeId, Op};
use crate::ops::activation::Softmax;
use crate::ops::loss::{CrossEntropy, LossReduction};
use kernels_gen::DType;

pub(super) fn handler(op: &str) -> Option<Handler> {
    matches!(op, "NegativeLogLikelihoodLoss" | "SoftmaxCrossEntropyLoss").then_some(loss)
}

/// The logarithms of the probabilities are a second output of the softmax's loss, computed where the model uses them.
fn loss(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let (scores, labels) = (call.node(im, 0)?, call.node(im, 1)?);
    let reduction = match call.string("reduction") {
        "none" => LossReduction::None,
        "sum" => LossReduction::Sum,
        "" | "mean" => LossReduction::Mean,
        other => return Err(Error::malformed(format!("reduction `{other}`; allowed are none, sum and mean"))),
    };
    let ignore = call.optional_int("ignore_index").map(i32::try_from).transpose();
    let ignore = ignore.map_err(|_| Error::unsupported("an ignore_index that does not fit 32 bits"))?;
    let log_probabilities = call.op() == "NegativeLogLikelihoodLoss";
    let labels = im.builder.cast(labels, DType::I32)?;
    let operands: Vec<NodeId> = [scores, labels].into_iter().chain(call.optional(im, 2)?).collect();
    let mut results = vec![Val::Node(im.builder.add(Op::composite(CrossEntropy { log_probabilities, ignore, reduction }), &operands)?)];
    if call.wants(1) && !log_probabilities {
        results.push(Val::Node(im.builder.add(Op::composite(Softmax { axis: 1, log: true }), &[scores])?));
    }
    Ok(results)
}
