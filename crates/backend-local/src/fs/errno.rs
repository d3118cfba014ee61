//! The mapping from kernel errors to the crate's errors.
//!
//! The kernel error is kept as the source. It holds a number and no path, so it
//! reveals nothing about the host.

use std::io;
use std::path::Path;

use backend_core::{Error, ErrorKind};
use rustix::io::Errno;

/// Maximum number of directories listed in one message.
const SHOWN_DIRECTORIES: usize = 10;

/// Converts `errno` to the error that a caller gets.
pub(crate) fn error(errno: Errno) -> Error {
    let error = match errno {
        Errno::NOENT => Error::not_found(),
        Errno::NOTDIR => Error::not_a_directory(),
        Errno::ISDIR => Error::is_a_directory(),
        Errno::EXIST | Errno::NOTEMPTY => Error::already_exists(),
        Errno::ACCESS | Errno::PERM => Error::not_permitted(),
        Errno::ROFS => Error::read_only_file_system(),
        Errno::TXTBSY => denied("the program is running; end it first"),
        Errno::LOOP => Error::link_loop(),
        Errno::NAMETOOLONG => Error::name_too_long(),
        Errno::NOSPC | Errno::DQUOT => Error::disk_full(),
        Errno::FBIG => Error::too_large("the file system holds no file of that size; split it"),
        Errno::MLINK => Error::too_large("the directory holds too many entries; use another"),
        Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP => Error::not_a_file(),
        Errno::MFILE | Errno::NFILE => Error::unavailable(
            "too many files are open; try again, or raise the limit of open files",
        ),
        Errno::NOMEM | Errno::NOBUFS => {
            Error::unavailable("there is no memory left; try again later")
        }
        Errno::AGAIN | Errno::BUSY | Errno::STALE | Errno::INTR | Errno::TIMEDOUT => {
            Error::unavailable("the file system is busy with it; try again")
        }
        _ => Error::internal("the file system failed; see the cause and the host's log"),
    };
    error.with_source(io::Error::from(errno))
}

/// The error for a link that would have to be followed and leads out of the
/// backend's directories.
pub(crate) fn link_leads_outside() -> Error {
    denied("a symbolic link on the way leads outside, where nothing can be reached")
}

/// The error for a path outside the backend's directories, with those that can be
/// shown.
pub(crate) fn outside_roots(readable: &[&Path]) -> Error {
    let shown = readable.iter().take(SHOWN_DIRECTORIES);
    let mut next: Vec<String> = shown
        .map(|path| path.to_string_lossy().escape_debug().to_string())
        .collect();
    let more = readable.len() - next.len();
    if more > 0 {
        next.push(format!("and {more} more"));
    }
    let next = if next.is_empty() {
        "list the working directory".to_owned()
    } else {
        format!("readable: {}", next.join(", "))
    };
    let message = format!("the path lies outside the directories of this backend; {next}");
    Error::new(ErrorKind::PermissionDenied, message)
}

/// The error for a directory of the backend that was removed while it was in use.
pub(crate) fn root_removed() -> Error {
    Error::unavailable(
        "the directory of this backend was removed; create it again, and then open the backend again",
    )
}

/// The error for a tree that changes faster than it can be followed.
pub(crate) fn keeps_changing() -> Error {
    Error::unavailable("the directories on the way keep changing; try again")
}

pub(crate) fn denied(message: &'static str) -> Error {
    Error::new(ErrorKind::PermissionDenied, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_callers_match_on() {
        for (errno, kind) in [
            (Errno::NOENT, ErrorKind::NotFound),
            (Errno::ROFS, ErrorKind::PermissionDenied),
            (Errno::NOSPC, ErrorKind::TooLarge),
            (Errno::DQUOT, ErrorKind::TooLarge),
            (Errno::FBIG, ErrorKind::TooLarge),
            (Errno::IO, ErrorKind::Internal),
            (Errno::NXIO, ErrorKind::InvalidInput),
            (Errno::AGAIN, ErrorKind::Unavailable),
            (Errno::MFILE, ErrorKind::Unavailable),
            (Errno::NAMETOOLONG, ErrorKind::InvalidPath),
        ] {
            let error = error(errno);
            assert_eq!(error.kind(), kind, "{errno:?}");
            assert!(std::error::Error::source(&error).is_some());
        }
    }

    #[test]
    fn not_every_directory_is_listed() {
        let one = outside_roots(&[Path::new("/a\n")]);
        assert!(one.message().ends_with("; readable: /a\\n"), "{one}");
        let many = outside_roots(&[Path::new("/a"); 12]);
        assert!(many.message().ends_with("/a, and 2 more"), "{many}");
        let hidden = outside_roots(&[]);
        assert!(hidden.message().ends_with("; list the working directory"));
    }
}
