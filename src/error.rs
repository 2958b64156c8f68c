//! The one error that crosses the crate's border.

use std::error::Error as StdError;
use std::fmt;

/// What kind of thing went wrong; callers match on it, people read the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value, shape, dtype, name or option that the call does not take.
    InvalidArgument,
    /// Well formed, but outside what Sublane supports.
    Unsupported,
    /// A file that is not what it should be.
    Malformed,
    /// Reading or writing a file failed.
    Io,
    /// No adapter can be used.
    NoAdapter,
    /// An allocation past the memory limit, or refused by the driver.
    OutOfMemory,
    /// A request past a limit of the adapter.
    Limit,
    /// A shader or pipeline the driver or the validator rejects.
    Shader,
    /// The device is gone.
    DeviceLost,
    /// The caller cancelled the work.
    Cancelled,
    /// A check that compares results failed.
    Mismatch,
    /// A fault of Sublane itself.
    Internal,
}

/// An error with its kind, a message that says what was given, what is allowed and what to do, and its cause if another error caused it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind` with `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), source: None }
    }

    /// The same error with its cause attached.
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same error with `context: ` before its message.
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.message = format!("{context}: {}", self.message);
        self
    }

    /// Kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// [`ErrorKind::InvalidArgument`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::InvalidArgument, message)
    }

    /// [`ErrorKind::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Unsupported, message)
    }

    /// [`ErrorKind::Malformed`].
    pub fn malformed(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Malformed, message)
    }

    /// [`ErrorKind::Limit`].
    pub fn limit(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Limit, message)
    }

    /// [`ErrorKind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(ErrorKind::Internal, message)
    }

    /// [`ErrorKind::Io`] about `path`.
    pub fn io(path: impl AsRef<std::path::Path>, what: &str, source: std::io::Error) -> Self {
        Error::new(ErrorKind::Io, format!("cannot {what} `{}`: {source}", path.as_ref().display())).with_source(source)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|s| &**s as _)
    }
}

impl From<kernels_gen::Error> for Error {
    fn from(e: kernels_gen::Error) -> Self {
        let kind = match &e {
            kernels_gen::Error::Invalid { .. } | kernels_gen::Error::Compose { .. } | kernels_gen::Error::Written { .. } => {
                ErrorKind::Shader
            }
            kernels_gen::Error::Unsupported(_) => ErrorKind::Unsupported,
            _ => ErrorKind::Internal,
        };
        Error::new(kind, e.to_string()).with_source(e)
    }
}
