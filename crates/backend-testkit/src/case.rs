//! A case of the suite, how it ends, and what it needs to run.

use std::fmt;
use std::panic::Location;

use backend_core::VPath;
use futures::future::BoxFuture;

use crate::env::Env;

/// Something that not every backend or fixture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Need {
    /// The backend can be written to.
    Write,
    /// The backend knows when a file was last changed.
    Times,
    /// The fixture can set when a file was last changed.
    SetTime,
    /// The fixture can make symbolic links.
    Links,
    /// The fixture can make FIFOs.
    Fifo,
    /// The fixture can make names that are not UTF-8.
    RawName,
    /// The fixture can set permission bits.
    Modes,
    /// There is a place outside the backend that a link can lead to.
    Outside,
    /// The fixture has a second backend on the same place that changes nothing.
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

/// One promise of the contract, checked.
#[derive(Clone, Copy)]
pub struct Case {
    /// The operation it is about.
    pub group: &'static str,
    /// What it promises.
    pub name: &'static str,
    /// What it needs to run.
    pub needs: &'static [Need],
    /// Where the promise is written down, or the defect of an earlier system
    /// that it rules out.
    pub proves: &'static str,
    /// The check.
    pub run: for<'e> fn(&'e Env) -> BoxFuture<'e, CaseResult>,
}

impl Case {
    /// `group::name`.
    pub fn id(&self) -> String {
        format!("{}::{}", self.group, self.name)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Case({})", self.id())
    }
}

/// Whether a promise was kept.
pub type CaseResult = Result<(), Failure>;

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    message: String,
    at: &'static Location<'static>,
}

impl Failure {
    /// A broken promise. Remembers where it was noticed.
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
