//! [`MountError`]: the reason why mounts cannot be used.

use backend_core::{PathError, Quoted, VPath};

use crate::parse;

/// The reason why mounts cannot be used. Meant for the author of the configuration, so it
/// names host paths.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The text cannot be parsed.
    #[error("the {format} cannot be read at line {line}, column {column}: {message}")]
    #[non_exhaustive]
    Syntax {
        /// `TOML` or `JSON`.
        format: &'static str,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The error at that position.
        message: String,
    },
    /// None, or more than one, of the forms is used.
    #[error("{0}; write exactly one of 'mounts', 'root' and 'paths'")]
    Form(String),
    /// There is no mount.
    #[error("there is no mount; write at least one")]
    Empty,
    /// The text is not a valid mount point.
    #[error("the mount point {typed} cannot be used: {problem}")]
    #[non_exhaustive]
    Point {
        /// The text as written.
        typed: Quoted,
        /// The problem, and what to write instead.
        problem: String,
    },
    /// A host path is empty.
    #[error("the mount '{0}' has an empty host path; write '.' for the base directory")]
    EmptyHost(VPath),
    /// Two mounts have the same mount point.
    #[error(
        "two mounts have the mount point '{point}', for {first} and for {second}; give one of them another mount point"
    )]
    #[non_exhaustive]
    Duplicate {
        /// The mount point.
        point: VPath,
        /// The first mount's host path.
        first: Quoted,
        /// The second mount's host path.
        second: Quoted,
    },
    /// Two mounts share host files, so a file could be reached under the rules of either.
    #[error(
        "the host paths of two mounts overlap: '{first}' maps to {first_host} and '{second}' maps to {second_host}; give each mount its own directory"
    )]
    #[non_exhaustive]
    Overlap {
        /// The first mount point.
        first: VPath,
        /// The first mount's host path.
        first_host: Quoted,
        /// The second mount point.
        second: VPath,
        /// The second mount's host path.
        second_host: Quoted,
    },
}

/// Parses a mount point.
pub(crate) fn point(typed: &str) -> Result<VPath, MountError> {
    let failed = |problem| MountError::Point {
        typed: Quoted::new(typed),
        problem,
    };
    match parse::point(typed) {
        Some(point) => point.map_err(|error: PathError| failed(error.to_string())),
        None => {
            let slash = Quoted::new(&format!("/{}", typed.trim()));
            Err(failed(format!("it does not begin with '/'; write {slash}")))
        }
    }
}
