//! Matrix products and convolutions.
use crate::compiler::fuse::Group;
use crate::compiler::lower::LoweredKernel;
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId};
use kernels_gen::Target;
use kernels_gen::emit::Numerics;

pub(super) fn lower(_: &Graph, _: &Group, _: NodeId, _: &Target, _: Numerics) -> Result<LoweredKernel> {
    Err(Error::unsupported("no heroes"))
}
