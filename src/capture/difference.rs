//! What tells a recorded run apart from those known before it.

use serde::Serialize;

use crate::capture::owner::Part;
use crate::capture::trace::{Kind, Recorded, TraceNode};
use crate::graph::{Op, TensorType, attributes};
use crate::ops;

/// Kinds of differences, by the first node that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Reason {
    /// There was nothing to compare with.
    First,
    /// Another element type.
    Dtype,
    /// Another number of dimensions.
    Rank,
    /// Another size of a dimension.
    Size,
    /// Other numbers in the attributes of an operation.
    Attribute,
    /// Another value of a constant of rank 0.
    Scalar,
    /// Other elements of a constant.
    Constant,
    /// Another operation, or other operands of it.
    Path,
    /// Other values are needed afterwards.
    Outputs,
    /// Other inputs were donated.
    Donation,
}

/// A difference.
#[derive(Debug, Clone)]
pub(super) struct Difference {
    pub reason: Reason,
    /// The first node that differs, and how.
    pub text: String,
    /// The known part it was compared with.
    pub nearest: Option<u32>,
}

impl Difference {
    /// How `recorded` differs from the known part that is nearest to it.
    pub fn of(recorded: &Recorded<'_>, nearest: Option<&Part>) -> Self {
        let Some(part) = nearest else {
            return Difference { reason: Reason::First, text: "the first run".into(), nearest: None };
        };
        let node = part.nodes.iter().zip(recorded.nodes).take_while(|(known, own)| known.accepts(own)).count();
        let (reason, text) = match (part.nodes.get(node), recorded.nodes.get(node)) {
            (Some(known), Some(own)) => compare(known, own),
            (Some(known), None) => (Reason::Path, format!("the function ended where it had gone on with {}", describe(known))),
            (None, Some(own)) => (Reason::Path, format!("the function went on with {} where it had ended", describe(own))),
            (None, None) if part.outputs != recorded.outputs => {
                let (was, is) = (part.outputs.len(), recorded.outputs.len());
                (Reason::Outputs, format!("{is} values are kept where {was} others were"))
            }
            (None, None) => (Reason::Donation, format!("inputs {:?} are donated where {:?} were", recorded.donated, part.donated)),
        };
        Difference { reason, text: format!("node {node}: {text}"), nearest: Some(part.id) }
    }

    /// Whether nothing but values of constants differs.
    pub fn only_constants(&self, recorded: &Recorded<'_>, part: &Part) -> bool {
        let alike = |(known, own): (&TraceNode, &TraceNode)| {
            let constants = matches!((&known.kind, &own.kind), (Kind::Constant(_), Kind::Constant(_))) && known.ty == own.ty;
            constants || known.accepts(own)
        };
        matches!(self.reason, Reason::Scalar | Reason::Constant)
            && part.outputs == recorded.outputs
            && part.donated == recorded.donated
            && part.nodes.len() == recorded.nodes.len()
            && part.nodes.iter().zip(recorded.nodes).all(alike)
    }
}

fn describe(node: &TraceNode) -> String {
    match &node.kind {
        Kind::Input(number) => format!("input {number} {}", node.ty),
        Kind::Varying => format!("a constant {}", node.ty),
        Kind::Constant(constant) => match constant.splat() {
            Some(value) => format!("the constant {value} {}", node.ty),
            None => format!("a constant {}", node.ty),
        },
        Kind::Op(op) => format!("{}{}", ops::name(op), attributes(op)),
    }
}

fn compare(known: &TraceNode, own: &TraceNode) -> (Reason, String) {
    let texts = || format!("{} was {}", describe(own), describe(known));
    let types = |what: &str| {
        let (reason, text) = compare_types(&known.ty, &own.ty)?;
        Some((reason, format!("{what}: {text}")))
    };
    match (&known.kind, &own.kind) {
        (Kind::Input(a), Kind::Input(b)) if a == b => types(&format!("input {b}")).unwrap_or((Reason::Path, texts())),
        (Kind::Constant(_) | Kind::Varying, Kind::Constant(_)) => types("a constant").unwrap_or_else(|| {
            let reason = if own.ty.rank() == 0 { Reason::Scalar } else { Reason::Constant };
            (reason, texts())
        }),
        (Kind::Op(a), Kind::Op(b)) if a == b && known.inputs != own.inputs => {
            let operands = |node: &TraceNode| node.inputs.iter().map(|i| format!("%{i}")).collect::<Vec<_>>().join(", ");
            (Reason::Path, format!("{} is applied to {}, it was to {}", describe(own), operands(own), operands(known)))
        }
        (Kind::Op(a), Kind::Op(b)) if same_but_for_sizes(a, b) && known.inputs == own.inputs => (Reason::Attribute, texts()),
        _ => (Reason::Path, texts()),
    }
}

fn compare_types(known: &TensorType, own: &TensorType) -> Option<(Reason, String)> {
    if known.dtype != own.dtype {
        return Some((Reason::Dtype, format!("{} was {}", own.dtype, known.dtype)));
    }
    if known.rank() != own.rank() {
        return Some((Reason::Rank, format!("{} dimensions were {}", own.rank(), known.rank())));
    }
    let at = known.shape.iter().zip(&own.shape).position(|(a, b)| a != b)?;
    Some((Reason::Size, format!("dimension {at} is {}, was {}", own.shape[at], known.shape[at])))
}

/// Whether two operations are of one kind and their attributes, printed, differ in numbers only.
pub(super) fn same_but_for_sizes(a: &Op, b: &Op) -> bool {
    let skeleton = |op: &Op| {
        let text = attributes(op);
        let mut skeleton = String::with_capacity(text.len());
        for c in text.chars() {
            let c = if c.is_ascii_digit() { '0' } else { c };
            if !(c == '0' && skeleton.ends_with('0')) {
                skeleton.push(c);
            }
        }
        skeleton
    };
    ops::name(a) == ops::name(b) && skeleton(a) == skeleton(b)
}
