//! Parts that depend on the operating system: signals, terminals, owners of files.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::ffi::OsString;

#[cfg(unix)]
use self::unix as platform;
#[cfg(windows)]
use self::windows as platform;

pub(crate) use self::platform::{
    ProcessGroup, StopSignals, Stream, TerminalState, allow_open_files, columns_of, file_owner,
    ignores_hangup, is_executable, is_same, make_directories, make_executable, make_private,
    restore_terminal,
};
#[cfg(unix)]
pub(crate) use self::platform::{RawTerminal, read_unless, terminal_size};

/// Whether this system tells the owner of a file.
pub(crate) const REPORTS_FILE_OWNERS: bool = cfg!(unix);

/// The owner of a file, and the permissions of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileOwner {
    /// Whether the owner is the user that runs this program.
    pub(crate) is_own: bool,
    pub(crate) is_root: bool,
    pub(crate) mode: u32,
}

/// Returns an environment variable that is not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the program looks where others keep such things"
)]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
