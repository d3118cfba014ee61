//! The result of a case, and macros that check it.

use std::fmt;
use std::panic::Location;

/// The result of a case.
pub type CaseResult = Result<(), Failure>;

/// A violated rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    message: String,
    at: &'static Location<'static>,
}

impl Failure {
    /// Creates a failure, with the caller's source location.
    #[track_caller]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: Location::caller(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}:{})",
            self.message,
            self.at.file(),
            self.at.line()
        )
    }
}

impl std::error::Error for Failure {}

impl From<backend_core::Error> for Failure {
    #[track_caller]
    fn from(error: backend_core::Error) -> Self {
        Self::new(format!("unexpected error: {}", error.chain()))
    }
}

impl From<backend_core::PathError> for Failure {
    #[track_caller]
    fn from(error: backend_core::PathError) -> Self {
        Self::new(format!("unexpected error: {error}"))
    }
}

/// A [`CaseResult`]: a failure unless the condition holds.
#[macro_export]
macro_rules! check {
    ($condition:expr $(,)?) => {
        $crate::check!($condition, "{}", stringify!($condition))
    };
    ($condition:expr, $($message:tt)+) => {
        if $condition {
            Ok(())
        } else {
            Err($crate::Failure::new(format!($($message)+)))
        }
    };
}

/// A [`CaseResult`]: a failure unless both sides are equal.
#[macro_export]
macro_rules! check_eq {
    ($left:expr, $right:expr $(,)?) => {
        match (&$left, &$right) {
            (left, right) => $crate::check!(
                *left == *right,
                "{} is {left:?}, expected {right:?}",
                stringify!($left)
            ),
        }
    };
}
