//! A case of the suite, its result, and its requirements.

use std::fmt;
use std::panic::Location;

use backend_core::VPath;
use futures::future::BoxFuture;

use crate::env::Env;

/// A requirement that not every backend or fixture meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Need {
    /// The backend is writable.
    Write,
    /// The backend reports modification times.
    Times,
    /// The fixture can set modification times.
    SetTime,
    /// The fixture can create symbolic links.
    Links,
    /// The fixture can create FIFOs.
    Fifo,
    /// The fixture can create names that are not UTF-8.
    RawName,
    /// The fixture can set permission bits.
    Modes,
    /// There is a directory outside the backend that a link can point to.
    Outside,
    /// The fixture has a second, read-only backend on the same files.
    ReadOnly,
    /// The backend runs commands.
    Commands,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "a backend that can be written to",
            Self::Times => "times of last change",
            Self::SetTime => "a fixture that sets times of last change",
            Self::Links => "symbolic links",
            Self::Fifo => "FIFOs",
            Self::RawName => "names that are not UTF-8",
            Self::Modes => "permission bits",
            Self::Outside => "a place outside the backend",
            Self::ReadOnly => "a read-only backend on the same place",
            Self::Commands => "commands",
        })
    }
}

/// A check of one rule of the contract.
#[derive(Clone, Copy)]
pub struct Case {
    /// The operation under test.
    pub group: &'static str,
    /// The rule, in a few words.
    pub name: &'static str,
    /// The requirements for running it.
    pub needs: &'static [Need],
    /// The source of the rule in the contract, or the defect of an earlier system that
    /// it rules out.
    pub source: &'static str,
    /// The check.
    pub run: for<'e> fn(&'e Env) -> BoxFuture<'e, CaseResult>,
}

impl Case {
    /// Returns `group::name`.
    pub fn id(&self) -> String {
        format!("{}::{}", self.group, self.name)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Case({})", self.id())
    }
}

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

    #[track_caller]
    pub(crate) fn unprovided(need: Need, path: &VPath, detail: &str) -> Self {
        Self::new(format!(
            "the fixture says it provides {need} but does not implement it ({path} {detail})"
        ))
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

/// Fails the case unless the condition holds.
#[macro_export]
macro_rules! check {
    ($condition:expr $(,)?) => {
        $crate::check!($condition, "{}", stringify!($condition))
    };
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Failure::new(format!($($message)+)));
        }
    };
}

/// Fails the case unless both sides are equal.
#[macro_export]
macro_rules! check_eq {
    ($left:expr, $right:expr $(,)?) => {
        match (&$left, &$right) {
            (left, right) => {
                if !(*left == *right) {
                    return Err($crate::Failure::new(format!(
                        "{} is {left:?}, expected {right:?}",
                        stringify!($left)
                    )));
                }
            }
        }
    };
}
