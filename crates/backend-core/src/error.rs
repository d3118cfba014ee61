//! [`Error`]: one error type for every backend and wrapper.
//!
//! Callers match on [`ErrorKind`]; people read the message, which says what to do
//! next. The operation, the backend and the path are added once, by the first layer
//! that knows them. `Display` never repeats the source: print [`Error::chain`] for the full text.

mod common;
#[cfg(feature = "serde")]
mod serial;

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use crate::path::{PathError, Quoted, VPath};
use crate::text::{EditError, WindowError};

/// The result type of this workspace's fallible functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The category of an error, in terms a caller can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ErrorKind {
    /// Nothing exists at the path.
    NotFound,
    /// Something exists at the path and may not be replaced.
    AlreadyExists,
    /// A file was expected, and the path is a directory.
    IsADirectory,
    /// A directory was expected, as the path itself or as one of its parents.
    NotADirectory,
    /// The path contains a symbolic link and the call does not follow links
    /// ([`Links::Refuse`](crate::ops::Links::Refuse)).
    IsALink,
    /// The string is not a path.
    InvalidPath,
    /// An argument other than a path is invalid.
    InvalidInput,
    /// The backend, its confinement or a policy denies the operation.
    PermissionDenied,
    /// A policy denies the operation until it is approved.
    ApprovalRequired,
    /// A named limit is exceeded.
    TooLarge,
    /// The file is not text.
    NotText,
    /// The text that an edit replaces does not occur in the file.
    /// [`Error::edit_error`] has the nearest candidates.
    NoMatch,
    /// The text that an edit replaces occurs in the file more than once.
    /// [`Error::edit_error`] has the count and the lines.
    MultipleMatches,
    /// The file changed since the caller read it.
    Conflict,
    /// The backend does not support the operation.
    Unsupported,
    /// The time allowed for the operation ran out.
    Timeout,
    /// The operation was cancelled.
    Cancelled,
    /// The sandbox or service behind the backend is gone or out of reach.
    Unavailable,
    /// A service asks to be called less often.
    RateLimited,
    /// A service does not accept the credentials.
    Auth,
    /// The configuration is wrong.
    Config,
    /// A defect in this software, or a guarantee that the host did not keep.
    Internal,
}

/// The operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "each name is the method of `Backend` or `Sandbox` it stands for"
)]
pub enum Operation {
    Resolve,
    Stat,
    Ls,
    Read,
    ReadText,
    Write,
    Edit,
    CreateDir,
    Delete,
    Rename,
    Copy,
    Glob,
    Grep,
    Execute,
    Stream,
    Shell,
    Connect,
    Start,
    Stop,
    Watch,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "resolve",
            Self::Stat => "stat",
            Self::Ls => "ls",
            Self::Read | Self::ReadText => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::CreateDir => "create directory",
            Self::Delete => "delete",
            Self::Rename => "move",
            Self::Copy => "copy",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::Execute | Self::Stream => "execute",
            Self::Shell => "shell",
            Self::Connect => "connect",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Watch => "watch",
        })
    }
}

/// A failed operation. One pointer wide.
///
/// ```
/// use backend_core::{Error, ErrorKind, Operation, VPath};
///
/// let error = Error::not_found().at(Operation::Read, &VPath::parse("/notes.md")?);
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert!(error.to_string().starts_with("read '/notes.md': no such file or directory"));
/// # Ok::<(), backend_core::PathError>(())
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    operation: Option<Operation>,
    backend: Option<Cow<'static, str>>,
    path: Option<VPath>,
    message: Cow<'static, str>,
    edit: Option<EditError>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error of `kind`. The message is a lowercase fragment without a
    /// final dot that says what is wrong and, if there is one, the next step.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            operation: None,
            backend: None,
            path: None,
            message: message.into(),
            edit: None,
            source: None,
        }))
    }

    /// Creates an error for an invalid argument.
    pub fn invalid_input(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// Creates an error for an operation that the backend does not support.
    pub fn unsupported(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Creates an error for an exceeded limit.
    pub fn too_large(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::TooLarge, message)
    }

    /// Creates an error for a sandbox that is gone or out of reach.
    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// Creates an error for a defect.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Sets the operation and the path, unless they are set already.
    #[must_use]
    pub fn at(mut self, operation: Operation, path: &VPath) -> Self {
        self.0.operation.get_or_insert(operation);
        self.0.path.get_or_insert_with(|| path.clone());
        self
    }

    /// Sets the operation, unless it is set already.
    #[must_use]
    pub fn during(mut self, operation: Operation) -> Self {
        self.0.operation.get_or_insert(operation);
        self
    }

    /// Reports this error as part of a larger operation: replaces the operation and the path.
    #[must_use]
    pub fn as_part_of(mut self, operation: Operation, path: &VPath) -> Self {
        self.0.operation = Some(operation);
        self.0.path = Some(path.clone());
        self
    }

    /// Returns a function for `map_err` that adds the backend, the operation and the path.
    ///
    /// ```
    /// # use backend_core::{Error, Operation, Result, VPath};
    /// fn read(path: &VPath) -> Result<Vec<u8>> {
    ///     let found: Result<Vec<u8>> = Err(Error::not_found());
    ///     found.map_err(Error::context("memory", Operation::Read, path))
    /// }
    /// let error = read(&VPath::root()).unwrap_err();
    /// assert!(error.to_string().starts_with("memory: read '/': "));
    /// ```
    pub fn context(
        backend: impl Into<Cow<'static, str>>,
        operation: Operation,
        path: &VPath,
    ) -> impl FnOnce(Self) -> Self {
        move |error| error.at(operation, path).on(backend)
    }

    /// Sets the backend, unless it is set already.
    #[must_use]
    pub fn on(mut self, backend: impl Into<Cow<'static, str>>) -> Self {
        self.0.backend.get_or_insert_with(|| backend.into());
        self
    }

    /// Passes on the error of an inner backend: `backend` is reported as the one
    /// that failed, at `path` as its callers know it.
    #[must_use]
    pub fn relayed(mut self, backend: impl Into<Cow<'static, str>>, path: &VPath) -> Self {
        self.0.backend = Some(backend.into());
        self.0.path = Some(path.clone());
        self
    }

    /// Prefixes the message with the part of the backend it is about.
    #[must_use]
    pub fn about(mut self, part: impl fmt::Display) -> Self {
        self.0.message = Cow::Owned(format!("{part}: {}", self.0.message));
        self
    }

    /// Sets the cause of this error. It is shown by [`chain`](Self::chain), not by
    /// `Display`.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Turns a `NotFound` error into `None`.
    ///
    /// # Errors
    ///
    /// Every error except `NotFound`.
    pub fn none_if_missing<T>(result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the category of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the operation that failed.
    pub fn operation(&self) -> Option<Operation> {
        self.0.operation
    }

    /// Returns the name of the backend that failed.
    pub fn backend(&self) -> Option<&str> {
        self.0.backend.as_deref()
    }

    /// Returns the path at which the operation failed.
    pub fn path(&self) -> Option<&VPath> {
        self.0.path.as_ref()
    }

    /// Returns the message alone, without operation, path and backend.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the details of a failed edit: which of the edits failed, and where
    /// its text occurs or what comes near it.
    ///
    /// ```
    /// use backend_core::text::{Edit, EditError, apply};
    /// use backend_core::{Error, ErrorKind};
    ///
    /// let error = Error::from(apply("a\nb\na\n", &[Edit::new("a", "c")]).unwrap_err());
    /// assert_eq!(error.kind(), ErrorKind::MultipleMatches);
    /// let Some(EditError::MultipleMatches { count, lines, .. }) = error.edit_error() else {
    ///     unreachable!();
    /// };
    /// assert_eq!((*count, lines.as_slice()), (2, [1, 3].as_slice()));
    /// ```
    pub fn edit_error(&self) -> Option<&EditError> {
        self.0.edit.as_ref()
    }

    /// Whether nothing exists at the path.
    pub fn is_not_found(&self) -> bool {
        self.0.kind == ErrorKind::NotFound
    }

    /// Whether the same call may succeed later, unchanged.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Unavailable | ErrorKind::RateLimited | ErrorKind::Timeout
        )
    }

    /// Displays this error followed by its sources, each once.
    pub fn chain(&self) -> ErrorChain<'_> {
        ErrorChain(self)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(backend) = &self.0.backend {
            write!(f, "{backend}: ")?;
        }
        match (self.0.operation, &self.0.path) {
            (Some(operation), Some(path)) => {
                write!(f, "{operation} {}: ", Quoted::new(path.as_str()))?;
            }
            (Some(operation), None) => write!(f, "{operation}: ")?,
            (None, Some(path)) => write!(f, "{}: ", Quoted::new(path.as_str()))?,
            (None, None) => {}
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("operation", &self.0.operation)
            .field("backend", &self.0.backend)
            .field("path", &self.0.path)
            .field("message", &self.0.message)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// The display adapter returned by [`Error::chain`].
#[derive(Debug)]
pub struct ErrorChain<'a>(&'a Error);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.0.to_string();
        let mut source = self.0.source();
        while let Some(error) = source {
            let said = error.to_string();
            // A message often ends with that of its source.
            if !text.ends_with(&said) {
                text.push_str(": ");
                text.push_str(&said);
            }
            source = error.source();
        }
        f.write_str(&text)
    }
}

/// Converts to the nearest [`std::io::Error`] kind, with this error as its source.
///
/// There is no conversion back: a backend knows better than an `io::Error` what its
/// callers can do.
impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match error.kind() {
            ErrorKind::NotFound => Io::NotFound,
            ErrorKind::AlreadyExists => Io::AlreadyExists,
            ErrorKind::IsADirectory => Io::IsADirectory,
            ErrorKind::NotADirectory => Io::NotADirectory,
            ErrorKind::InvalidPath
            | ErrorKind::InvalidInput
            | ErrorKind::NoMatch
            | ErrorKind::MultipleMatches => Io::InvalidInput,
            ErrorKind::PermissionDenied | ErrorKind::ApprovalRequired => Io::PermissionDenied,
            ErrorKind::TooLarge => Io::FileTooLarge,
            ErrorKind::NotText => Io::InvalidData,
            ErrorKind::Unsupported => Io::Unsupported,
            ErrorKind::Timeout => Io::TimedOut,
            _ => Io::Other,
        };
        Self::new(kind, error)
    }
}

impl From<PathError> for Error {
    fn from(error: PathError) -> Self {
        Self::new(ErrorKind::InvalidPath, error.to_string())
    }
}

impl From<EditError> for Error {
    fn from(error: EditError) -> Self {
        let kind = match error {
            EditError::NoMatch { .. } => ErrorKind::NoMatch,
            EditError::MultipleMatches { .. } => ErrorKind::MultipleMatches,
            EditError::TooLarge { .. } => ErrorKind::TooLarge,
            EditError::NoEdits | EditError::EmptyOld { .. } | EditError::NoChange { .. } => {
                ErrorKind::InvalidInput
            }
        };
        let mut own = Self::new(kind, error.to_string());
        own.0.edit = Some(error);
        own
    }
}

impl From<WindowError> for Error {
    fn from(error: WindowError) -> Self {
        let kind = match error {
            WindowError::NotText => ErrorKind::NotText,
            _ => ErrorKind::InvalidInput,
        };
        Self::new(kind, error.to_string())
    }
}

#[cfg(test)]
mod tests;
