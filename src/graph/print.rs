//! Stable, readable text of a graph.

use std::fmt;

use crate::graph::{BinaryOp, Constant, Graph, NodeId, Op, Prim, UnaryOp};
use crate::ops;

/// Elements of a constant that are printed.
const SHOWN_ELEMS: usize = 4;

impl fmt::Display for Graph {
    /// One line a node (`%3: f32[2, 5] = Add(%1, %2)  // origin`), then the outputs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, node) in self.iter() {
            write!(f, "{}", self.node_text(id))?;
            match self.origins().get(node.origin.0 as usize) {
                Some(origin) => writeln!(f, "  // {origin}")?,
                None => writeln!(f)?,
            }
        }
        for (name, id) in self.outputs() {
            writeln!(f, "output {name} = %{}", id.0)?;
        }
        Ok(())
    }
}

impl Graph {
    /// One node as text, without its origin: `%3: f32[2, 5] = Add(%1, %2)`.
    pub fn node_text(&self, id: NodeId) -> String {
        let node = self.node(id);
        let operands = node.inputs.iter().map(|i| format!("%{}", i.0)).collect::<Vec<_>>().join(", ");
        format!("%{}: {} = {}{}({operands})", id.0, node.ty, ops::name(&node.op), attributes(&node.op))
    }
}

/// The attributes of an operation in brackets, or nothing where it has none.
pub(crate) fn attributes(op: &Op) -> String {
    let text = match op {
        Op::Composite(composite) => composite.attributes(),
        Op::Prim(prim) => match prim {
            Prim::Input { name, .. } => name.clone(),
            Prim::Constant(constant) => summary(constant),
            Prim::Iota { axis, .. } | Prim::Concat { axis } | Prim::Gather { axis } | Prim::Scan { axis, .. } => format!("axis={axis}"),
            Prim::Argsort { run, descending } | Prim::MergeRuns { run, descending } => {
                format!("run={run}{}", if *descending { " descending" } else { "" })
            }
            Prim::Segment { block, .. } => format!("block={block}"),
            Prim::Unary(UnaryOp::Decode(format)) => format.to_string(),
            Prim::Unary(UnaryOp::Encode(format, rounding, overflow)) => format!("{format} {} {}", rounding.name(), overflow.name()),
            Prim::Binary(BinaryOp::EncodeStochastic(format, overflow)) => format!("{format} {}", overflow.name()),
            Prim::Unary(_) | Prim::Binary(_) | Prim::Select | Prim::Dot | Prim::DotI8 | Prim::SearchSorted => String::new(),
            Prim::Attention { scale, causal } => format!("scale={:?} causal={causal}", scale.get()),
            Prim::Custom(call) => call.summary(),
            Prim::Cast(dtype) => dtype.to_string(),
            Prim::Reshape(shape) => format!("shape={shape:?}"),
            Prim::Transpose(perm) => format!("perm={perm:?}"),
            Prim::Broadcast { dims, .. } => format!("dims={dims:?}"),
            Prim::Slice { starts, steps, sizes } => format!("starts={starts:?} steps={steps:?} sizes={sizes:?}"),
            Prim::Pad { low, high } => format!("low={low:?} high={high:?}"),
            Prim::Window { sizes, strides, dilations } => format!("sizes={sizes:?} strides={strides:?} dilations={dilations:?}"),
            Prim::Reduce { axes, .. } => format!("axes={axes:?}"),
            Prim::Conv { strides, pads_low, pads_high, dilations, groups } => {
                format!("strides={strides:?} pads={pads_low:?}+{pads_high:?} dilations={dilations:?} groups={groups}")
            }
        },
    };
    if text.is_empty() { text } else { format!("[{text}]") }
}

fn summary(constant: &Constant) -> String {
    if let Some(value) = constant.splat() {
        return format!("{value:?}");
    }
    let values = constant.tensor().to_f64();
    let shown = values.iter().take(SHOWN_ELEMS).map(|v| format!("{v:?}")).collect::<Vec<_>>().join(", ");
    if values.len() > SHOWN_ELEMS { format!("{shown}, ... {} more", values.len() - SHOWN_ELEMS) } else { shown }
}

#[cfg(test)]
mod tests {
    use crate::graph::{BinaryOp, GraphBuilder, TensorType};
    use kernels_gen::DType;

    #[test]
    fn prints_nodes_origins_and_outputs() {
        let mut b = GraphBuilder::new();
        b.begin_origin("block/add");
        let x = b.input("x", TensorType::new(DType::F32, [2, 3])).unwrap();
        let y = b.binary_scalar(BinaryOp::Add, x, 1.5).unwrap();
        b.output("y", y).unwrap();
        let expected = "\
%0: f32[2, 3] = Input[x]()  // block/add
%1: f32[] = Constant[1.5]()  // block/add
%2: f32[2, 3] = Broadcast[dims=[]](%1)  // block/add
%3: f32[2, 3] = Add(%0, %2)  // block/add
output y = %3
";
        assert_eq!(b.finish().to_string(), expected);
    }
}
