//! A command's first process: its start and its exit.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use backend_core::ops::CommandStatus;
use backend_core::{Error, ErrorKind};

use super::pump::ChildEnds;

#[derive(Debug)]
pub(crate) struct StartRequest {
    pub(crate) line: String,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) directory: Arc<OwnedFd>,
    pub(crate) ends: ChildEnds,
    /// Whether the process ID will be asked for.
    pub(crate) announce: bool,
    /// Whether the ends belong to a terminal, which the command is to control.
    pub(crate) terminal: bool,
}

/// The exit of a command's first process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exited {
    pub(crate) status: CommandStatus,
    /// Whether its process group still has members.
    pub(crate) group: bool,
}

/// The error for a command that could not be started.
pub(crate) fn spawn_error(directory: bool, error: std::io::Error) -> Error {
    use std::io::ErrorKind as Io;
    let answer = match (error.kind(), directory) {
        (Io::ArgumentListTooLong, _) => Error::invalid_input(
            "the command and its variables are longer than the system takes; put them into a file",
        ),
        (Io::PermissionDenied, true) => Error::new(
            ErrorKind::PermissionDenied,
            "commands may not run in that directory; choose another",
        ),
        (_, true) => Error::unavailable("the command's directory cannot be entered"),
        (Io::NotFound | Io::PermissionDenied, false) => Error::unavailable(
            "the shell is not there or cannot be run; choose another with `Commands::shell`",
        ),
        _ => Error::unavailable("the command could not be started; see the cause and try again"),
    };
    answer.with_source(error)
}
