//! The one error type of this crate.

/// What went wrong while a kernel was generated, composed or validated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// WGSL did not parse or did not validate for its target.
    #[error("kernel `{kernel}` is not valid WGSL for target `{target}`: {message}")]
    Invalid {
        /// Name of the kernel.
        kernel: String,
        /// Name of the target it was checked for.
        target: String,
        /// naga's diagnostic, with the line it points at.
        message: String,
    },
    /// A shader file asks for something the composer cannot give.
    #[error("shader `{shader}`, line {line}: {message}")]
    Compose {
        /// Stem of the shader file.
        shader: String,
        /// Line in that file, from 1.
        line: u32,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// A kernel that a user wrote is not what an operation can run.
    #[error("kernel `{kernel}`: {message}")]
    Written {
        /// Name of the kernel.
        kernel: String,
        /// What does not fit and what would.
        message: String,
    },
    /// A request that no kernel of the target can serve.
    #[error("{0}")]
    Unsupported(String),
    /// The loop IR is malformed: a fault of the code that built it, never of a user's input.
    #[error("malformed loop IR of kernel `{kernel}`:\n{faults}")]
    Verify {
        /// Name of the kernel.
        kernel: String,
        /// All faults found, one a line.
        faults: String,
    },
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
