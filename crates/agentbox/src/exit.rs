//! Exit codes, and errors that name the fix.

use std::fmt;
use std::process::ExitCode;

use backend_core::ErrorKind;
use console_tools::{BuildError, FailureClass};
use permissions::Refusal;

pub(crate) const SUCCESS: u8 = 0;
/// Other arguments can succeed.
pub(crate) const FIXABLE: u8 = 1;
/// A policy or the user said no.
pub(crate) const REFUSED: u8 = 2;
/// The backend cannot do it, or not now.
pub(crate) const ENVIRONMENT: u8 = 3;
/// The command line, a file or a variable is wrong; as in `sysexits.h`.
pub(crate) const USAGE: u8 = 64;
/// `run`: the command timed out; as with `timeout`.
pub(crate) const TIMED_OUT: u8 = 124;
/// `run`: the command was not started; as with `timeout`.
pub(crate) const NOT_RUN: u8 = 125;

/// Returns the code of a program that a signal ended, like shells do.
pub(crate) fn signalled(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |signal| 128_u8.saturating_add(signal))
}

/// Returns the code for a tool's reply.
pub(crate) fn of_reply(failure: Option<FailureClass>) -> u8 {
    match failure {
        None => SUCCESS,
        Some(FailureClass::Fixable) => FIXABLE,
        Some(FailureClass::Refused) => REFUSED,
        Some(_) => ENVIRONMENT,
    }
}

/// The reason for a failure of the program. The message ends with the fix.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Creates a failure for a wrong command line, file or variable.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message)
    }

    /// Creates a failure for something that this machine cannot do, or not now.
    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Self::new(ENVIRONMENT, message)
    }

    /// Returns the same failure with another code.
    pub(crate) fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// Returns `true` if the command line, a file or a variable is to blame.
    pub(crate) fn is_usage(&self) -> bool {
        self.code == USAGE
    }
}

/// Formats the message of [`Failure::usage`].
macro_rules! usage {
    ($($message:tt)*) => {
        $crate::exit::Failure::usage(format!($($message)*))
    };
}

/// Formats the message of [`Failure::environment`].
macro_rules! environment {
    ($($message:tt)*) => {
        $crate::exit::Failure::environment(format!($($message)*))
    };
}

pub(crate) use {environment, usage};

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<backend_core::Error> for Failure {
    fn from(error: backend_core::Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Config
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidPath
            | ErrorKind::NoMatch
            | ErrorKind::MultipleMatches => USAGE,
            ErrorKind::PermissionDenied | ErrorKind::ApprovalRequired => REFUSED,
            _ => ENVIRONMENT,
        };
        let message = match Refusal::of(&error) {
            Some(refusal) => refusal.console_text(),
            None => with_sources(&error),
        };
        Self::new(code, message)
    }
}

/// Returns the message of an error with its sources, but without the answer of a service, whose
/// status is in the message.
fn with_sources(error: &backend_core::Error) -> String {
    let text = error.chain().to_string();
    #[cfg(feature = "daytona")]
    if let Some(answer) = backend_daytona::Refusal::of(error)
        && let Some(message) = text.strip_suffix(&format!(": {answer}"))
    {
        return message.to_owned();
    }
    text
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::environment(format!("{error:#}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_signals_are_those_of_shells() {
        assert_eq!(signalled(2), 130);
        assert_eq!(signalled(9), 137);
        assert_eq!(signalled(1_000), 255);
    }

    #[test]
    fn what_is_configured_wrong_is_usage() {
        let failure = Failure::from(backend_core::Error::new(ErrorKind::Config, "x"));
        assert!(failure.is_usage());
        assert!(!Failure::from(backend_core::Error::not_found()).is_usage());
    }
}
