//! Short names for common steps of tests.

use std::fmt;

use backend_core::{Error, ErrorKind, Result, VPath};

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

/// Checks that a call failed with this kind of error, and returns the error.
///
/// # Panics
///
/// If it succeeded or failed with another kind.
#[track_caller]
#[expect(clippy::unwrap_used, reason = "a call that should fail has succeeded")]
pub fn fails<T: fmt::Debug>(kind: ErrorKind, result: Result<T>) -> Error {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    error
}
