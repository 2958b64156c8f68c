//! One call of an operation as its inference sees it: the head of every error message.

use crate::error::{Error, Result};
use crate::graph::TensorType;
use crate::tensor::{can_be_counted, num_elems};
use kernels_gen::DType;
use std::fmt::Display;

/// Element types with arithmetic.
pub(crate) const NUMERIC: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::U32, DType::I8, DType::U8];
/// Integer element types.
pub(crate) const INTEGERS: &[DType] = &[DType::I32, DType::U32, DType::I8, DType::U8];
/// Element types with a sign.
pub(crate) const SIGNED: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::I8];
/// Element types with bits: integers and truth values.
pub(crate) const BITS: &[DType] = &[DType::Bool, DType::I32, DType::U32, DType::I8, DType::U8];
/// Floating-point element types.
pub(crate) const FLOATS: &[DType] = &[DType::F32, DType::F16];

/// An operation's name with the types of its operands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    name: &'a str,
    inputs: &'a [&'a TensorType],
}

impl<'a> Call<'a> {
    pub(crate) fn new(name: &'a str, inputs: &'a [&'a TensorType]) -> Self {
        Call { name, inputs }
    }

    pub(crate) fn inputs(&self) -> &'a [&'a TensorType] {
        self.inputs
    }

    /// The operands, one for each role, or an error that lists the roles.
    pub(crate) fn operands<const N: usize>(&self, roles: [&str; N]) -> Result<[&'a TensorType; N]> {
        <[&TensorType; N]>::try_from(self.inputs)
            .map_err(|_| self.misfit(format_args!("it takes {N} operands ({}), {} are given", roles.join(", "), self.inputs.len())))
    }

    /// The required operands and, if they are given, the optional ones after them.
    pub(crate) fn operands_from<const N: usize>(
        &self,
        roles: [&str; N],
        optional: &[&str],
    ) -> Result<([&'a TensorType; N], &'a [&'a TensorType])> {
        let rest = self.inputs.get(N..).filter(|rest| rest.len() <= optional.len());
        match (<[&TensorType; N]>::try_from(self.inputs.get(..N).unwrap_or(&[])), rest) {
            (Ok(first), Some(rest)) => Ok((first, rest)),
            _ => Err(self.misfit(format_args!(
                "it takes the operands {} and optionally {}, {} are given",
                roles.join(", "),
                optional.join(", "),
                self.inputs.len()
            ))),
        }
    }

    /// An error that says what the operation allows.
    pub(crate) fn misfit(&self, allowed: impl Display) -> Error {
        let types = self.inputs.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(", ");
        Error::invalid(format!("{}({types}): {allowed}", self.name))
    }

    /// Checks an operand's element type.
    pub(crate) fn dtype(&self, role: &str, ty: &TensorType, allowed: &[DType]) -> Result<()> {
        if allowed.contains(&ty.dtype) {
            return Ok(());
        }
        let list = allowed.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ");
        Err(self.misfit(format_args!("{role} is {}, allowed are {list}; convert it with Cast", ty.dtype)))
    }

    /// Checks that some operands have one floating-point type.
    pub(crate) fn floats(&self, role: &str, types: &[&TensorType]) -> Result<()> {
        types.iter().try_for_each(|ty| self.dtype(role, ty, FLOATS))?;
        match types.windows(2).find(|pair| pair[0].dtype != pair[1].dtype) {
            None => Ok(()),
            Some(_) => Err(self.misfit(format_args!("{role} must have one floating-point type; convert with Cast"))),
        }
    }

    /// Checks that all operands have one element type and one shape.
    pub(crate) fn same_type(&self) -> Result<()> {
        match self.inputs.windows(2).find(|pair| pair[0] != pair[1]) {
            None => Ok(()),
            Some(_) => Err(self.misfit("its operands must have one element type and one shape; convert with Cast and Broadcast")),
        }
    }

    /// An error about a size past what can be addressed.
    pub(crate) fn too_large(&self) -> Error {
        Error::limit(self.misfit("the result has more elements than can be addressed").to_string())
    }

    /// Refuses what has more elements than kernels count.
    pub(crate) fn countable(&self, what: &str, shape: &[usize]) -> Result<()> {
        if can_be_counted(shape) {
            return Ok(());
        }
        let count = match num_elems(shape) {
            Ok(count) => format!("{count} elements"),
            Err(_) => "more elements than can be addressed".into(),
        };
        Err(Error::limit(self.misfit(format_args!("{what} {shape:?} has {count}: kernels count up to 2^31; split the tensor")).to_string()))
    }
}
