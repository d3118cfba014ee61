//! Operating systems: signals, terminals, and who has a file. Everything else is the same
//! on all of them.

use std::ffi::OsString;

#[cfg(unix)]
#[path = "system/unix.rs"]
mod this;
#[cfg(windows)]
#[path = "system/windows.rs"]
mod this;

pub(crate) use self::this::{
    Group, Stops, Stream, Terminal, columns_of, holder, ignores_hangup, is_executable, is_same,
    make_directories, make_executable, make_private,
};

/// Whether this system tells who has a file.
pub(crate) const TELLS_HOLDERS: bool = cfg!(unix);

/// Who has a file, and what the others may do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Whether it is the user that runs this program.
    pub(crate) is_own: bool,
    /// Whether it is the administrator.
    pub(crate) is_root: bool,
    /// The bits of `chmod`.
    pub(crate) mode: u32,
}

/// A variable that is not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the program looks where others keep such things"
)]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
