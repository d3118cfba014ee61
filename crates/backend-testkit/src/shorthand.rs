//! Short names for common steps of tests.

use std::fmt;

use backend_core::{ErrorKind, Result, VPath};

/// Returns a path.
///
/// # Panics
///
/// If the text is not a valid path.
#[track_caller]
#[expect(clippy::expect_used, reason = "a test with an invalid path is wrong")]
pub fn path(text: &str) -> VPath {
    VPath::parse(text).expect("a valid path")
}

/// Returns the kind of error that a call failed with.
///
/// # Panics
///
/// If it succeeded.
#[track_caller]
#[expect(clippy::unwrap_used, reason = "a call that should fail has succeeded")]
pub fn kind<T: fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}
