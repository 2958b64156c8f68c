//! Element types of tensors and the scalar types kernels compute with.

use std::fmt;

/// Element type of a tensor, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16: two in a word; kernels widen it to `f32`, which is exact, and round to it, ties to even, where they store.
    F16,
    /// Signed 32-bit integer; arithmetic wraps.
    I32,
    /// Unsigned 32-bit integer; arithmetic wraps.
    U32,
    /// Signed 8-bit integer: storage only, kernels widen it to `i32`.
    I8,
    /// Unsigned 8-bit integer: storage only, kernels widen it to `u32`.
    U8,
    /// Truth value, one byte of 0 or 1 in memory.
    Bool,
}

impl DType {
    /// Every element type.
    pub const ALL: [DType; 7] = [DType::F32, DType::F16, DType::I32, DType::U32, DType::I8, DType::U8, DType::Bool];

    /// Bytes of one element in memory, on the host and on the device.
    pub const fn size_bytes(self) -> usize {
        match self {
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 => 2,
            DType::I8 | DType::U8 | DType::Bool => 1,
        }
    }

    /// Elements held by one 32-bit word of a buffer.
    pub const fn elems_per_word(self) -> usize {
        4 / self.size_bytes()
    }

    /// The type a kernel holds an element in once it is loaded.
    pub const fn scalar(self) -> ScalarType {
        match self {
            DType::F32 | DType::F16 => ScalarType::F32,
            DType::I32 | DType::I8 => ScalarType::I32,
            DType::U32 | DType::U8 => ScalarType::U32,
            DType::Bool => ScalarType::Bool,
        }
    }

    /// Whether the type is a floating-point one.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16)
    }

    /// Whether the type is an integer (truth values are not).
    pub const fn is_int(self) -> bool {
        matches!(self, DType::I32 | DType::U32 | DType::I8 | DType::U8)
    }

    /// Short name used in kernel names, printers and messages: `f32`, `f16`, `i32`, `bool`...
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Type of a scalar value inside a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScalarType {
    /// 32-bit float.
    F32,
    /// 16-bit float: for arithmetic that a user wants in it, on targets that have it.
    F16,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Truth value.
    Bool,
}

impl ScalarType {
    /// The type's WGSL name.
    pub const fn wgsl(self) -> &'static str {
        match self {
            ScalarType::F32 => "f32",
            ScalarType::F16 => "f16",
            ScalarType::I32 => "i32",
            ScalarType::U32 => "u32",
            ScalarType::Bool => "bool",
        }
    }
}
