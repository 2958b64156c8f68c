//! Recurrent layers.

use super::node::{Call, Handler, Importer, Val};
use crate::error::{Error, Result};
use crate::graph::{NodeId, Op};
use crate::ops::recurrent::{Cell, Gate, Order, Recurrent, RecurrentResult};

pub(super) fn handler(op: &str) -> Option<Handler> {
    matches!(op, "RNN" | "GRU" | "LSTM").then_some(recurrent)
}

fn recurrent(im: &mut Importer, call: &Call) -> Result<Vec<Val>> {
    let lstm = call.op() == "LSTM";
    let cell = match call.op() {
        "RNN" => Cell::Rnn,
        "GRU" => Cell::Gru { linear_before_reset: call.flag("linear_before_reset", false) },
        _ => Cell::Lstm { peepholes: call.value(7).is_some() },
    };
    let orders = match call.string("direction") {
        "" | "forward" => vec![Order::Forward],
        "reverse" => vec![Order::Reverse],
        "bidirectional" => vec![Order::Forward, Order::Reverse],
        other => return Err(Error::malformed(format!("direction `{other}`; allowed are forward, reverse and bidirectional"))),
    };
    if call.flag("input_forget", false) {
        return Err(Error::unsupported("input_forget; gates of their own are supported"));
    }
    let functions = functions(call, cell, orders.len())?;
    let batch_first = call.flag("layout", false);
    let (mut x, w, r) = (call.node(im, 0)?, call.node(im, 1)?, call.node(im, 2)?);
    let (found_x, found_r) = (im.builder.shape(x), im.builder.shape(r));
    let ([_, _, _], &[_, width, hidden]) = (&found_x[..], &found_r[..]) else {
        return Err(Error::malformed(format!("x {} and r {} must have three dimensions", im.builder.ty(x), im.builder.ty(r))));
    };
    if batch_first {
        x = im.builder.transpose(x, &[1, 0, 2])?;
    }
    let (steps, batch) = (im.builder.shape(x)[0], im.builder.shape(x)[1]);
    if let Some(lengths) = call.value(4) {
        let lengths = im.ints(lengths, "sequence_lens")?;
        if lengths.iter().any(|&l| l != steps as i64) {
            return Err(Error::unsupported(format!(
                "sequence_lens {lengths:?}; sequences shorter than the {steps} steps are not supported"
            )));
        }
    }
    let dtype = im.builder.ty(x).dtype;
    let zeros = |im: &mut Importer, shape: &[usize]| {
        let zero = im.builder.scalar(dtype, 0.0)?;
        im.builder.broadcast_to(zero, shape)
    };
    let state = [orders.len(), batch, hidden];
    let initial = |im: &mut Importer, i: usize| match call.optional(im, i)? {
        Some(id) if batch_first => im.builder.transpose(id, &[1, 0, 2]),
        Some(id) => Ok(id),
        None => zeros(im, &state),
    };
    let (h0, c0) = (initial(im, 5)?, if lstm { Some(initial(im, 6)?) } else { None });
    let bias = match call.optional(im, 3)? {
        Some(bias) => bias,
        None => zeros(im, &[orders.len(), 2 * width])?,
    };
    let mut operands: Vec<NodeId> = vec![x, w, r, bias, h0];
    operands.extend(c0);
    operands.extend(if lstm { call.optional(im, 7)? } else { None });
    let layer =
        |result| Recurrent { cell, orders: orders.clone(), functions: functions.clone(), clip: call.optional_float("clip"), result };
    let mut results = Vec::new();
    for (i, result) in [RecurrentResult::Sequence, RecurrentResult::Hidden, RecurrentResult::Cell].into_iter().enumerate() {
        if i == 2 && !lstm {
            break;
        }
        // What the model does not use is not computed; the next value keeps its place.
        let id = if call.wants(i) { im.builder.add(Op::composite(layer(result)), &operands)? } else { x };
        let perm: &[usize] = if i == 0 { &[2, 0, 1, 3] } else { &[1, 0, 2] };
        results.push(Val::Node(if call.wants(i) && batch_first { im.builder.transpose(id, perm)? } else { id }));
    }
    Ok(results)
}

/// The functions of each direction, by default those of the cell.
fn functions(call: &Call, cell: Cell, directions: usize) -> Result<Vec<Vec<Gate>>> {
    let own = cell.functions();
    let Some(names) = call.strings("activations").filter(|n| !n.is_empty()) else { return Ok(vec![own; directions]) };
    let gate = |name: &String| match name.to_ascii_lowercase().as_str() {
        "sigmoid" => Ok(Gate::Sigmoid),
        "tanh" => Ok(Gate::Tanh),
        "relu" => Ok(Gate::Relu),
        _ => Err(Error::unsupported(format!("activation `{name}`; supported are Sigmoid, Tanh and Relu"))),
    };
    let gates = names.iter().map(gate).collect::<Result<Vec<_>>>()?;
    if gates.len() != directions * own.len() {
        return Err(Error::malformed(format!("activations {names:?} for {directions} directions with {} each", own.len())));
    }
    Ok(gates.chunks(own.len()).map(<[Gate]>::to_vec).collect())
}
