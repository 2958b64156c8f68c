//! What a compiled graph is known by.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::compiler::CompileOptions;
use crate::graph::{Graph, NodeId, Op, Prim};
use kernels_gen::Target;

/// A digest of everything a compilation depends on but the tuning, whose choices an entry names itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The digest, 64 hexadecimal digits.
    pub text: String,
    /// Constants of the graph by the digest of their bytes: files refer to them instead of holding them again.
    pub(super) constants: HashMap<String, NodeId>,
}

impl Key {
    /// The key of `graph`, compiled for `target` with `options`. `program` stands for the code of the compiler: this crate's version is
    /// part of the key, and a program under development says more.
    pub fn new(graph: &Graph, target: &Target, options: &CompileOptions, program: &str) -> Self {
        let CompileOptions { mode, numerics, f16_arithmetic, keep_stages: _, tuning: _, donate, without } = options;
        let mut constants = HashMap::new();
        let mut hash = Sha256::new();
        let mut add = |part: &str| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        add(env!("CARGO_PKG_VERSION"));
        add(program);
        add(&format!("{target:?} {mode:?} {numerics:?} {f16_arithmetic} {donate:?} {without:?}"));
        for (id, node) in graph.iter() {
            match &node.op {
                Op::Prim(Prim::Constant(constant)) => {
                    let digest = digest(constant.tensor().bytes());
                    add(&digest);
                    constants.insert(digest, id);
                }
                Op::Prim(prim) => add(&format!("{prim:?}")),
                // Two composites of one name and equal attributes are equal.
                Op::Composite(composite) => add(&format!("composite {} {}", composite.name(), composite.attributes())),
            }
            add(&format!("{:?} {} {}", node.inputs, node.ty, node.origin.0));
        }
        graph.outputs().iter().for_each(|(name, id)| add(&format!("{} {name}", id.0)));
        graph.origins().iter().for_each(|origin| add(origin));
        Key { text: hex(&hash.finalize()), constants }
    }
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
