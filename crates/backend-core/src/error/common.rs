//! Errors that several backends give, with one text for each.

use crate::error::{Error, ErrorKind};

macro_rules! common_errors {
    ($($(#[$doc:meta])+ $name:ident: $kind:ident, $message:literal;)+) => {
        impl Error {$(
            $(#[$doc])+
            pub fn $name() -> Self {
                Self::new(ErrorKind::$kind, $message)
            }
        )+}
    };
}

common_errors! {
    /// Creates an error for a path at which nothing exists.
    not_found: NotFound, "no such file or directory; list its parent to see what is there";

    /// Creates an error for a path that exists already.
    already_exists: AlreadyExists, "it exists already; ask to overwrite it or choose another path";

    /// Creates an error for a directory to create where something else exists.
    exists_as_non_directory: AlreadyExists,
        "it exists and is not a directory; choose another path or delete it";

    /// Creates an error for a move or copy of or onto a directory that exists.
    directory_at_destination: AlreadyExists,
        "the destination exists, and directories are neither replaced nor merged";

    /// Creates an error for a directory where a file was expected.
    is_a_directory: IsADirectory, "it is a directory; name a file in it";

    /// Creates an error for a copy of a directory that does not ask for one.
    needs_recursive_copy: IsADirectory, "it is a directory; ask for a recursive copy";

    /// Creates an error for a deletion of a directory that does not ask for one.
    needs_recursive_delete: IsADirectory, "it is a directory; ask for a recursive delete";

    /// Creates an error for a file where a directory was expected.
    not_a_directory: NotADirectory, "it, or a part of the path above it, is not a directory";

    /// Creates an error for an entry that is neither a file nor a directory.
    not_a_file: InvalidInput,
        "it is a FIFO, a socket or a device and holds no content; name a file";

    /// Creates an error for a link on the path of a call that refuses links.
    is_a_link: IsALink, "a symbolic link is in the way; resolve the path and use what it leads to";

    /// Creates an error for links that never end.
    link_loop: InvalidPath, "symbolic links go in a circle or are too many; name the file itself";

    /// Creates an error for a name or a path that the file system does not take.
    name_too_long: InvalidPath,
        "a name or the path is longer than the file system takes; choose a shorter one";

    /// Creates an error for a move or copy after which a path would be invalid.
    too_deep_inside: InvalidPath,
        "a path inside it would be too long or too deep; choose a shorter destination";

    /// Creates an error for a move or copy of something onto or into itself.
    into_itself: InvalidInput, "the destination is the source or lies inside it; choose another";

    /// Creates an error for a deletion or move of the working directory or of one above it.
    contains_working_dir: InvalidInput,
        "it is the working directory or lies above it; name what is in it instead";

    /// Creates an error for an access that the operating system denies.
    not_permitted: PermissionDenied,
        "the operating system does not permit it; change the permissions or choose another path";

    /// Creates an error for a file system that cannot be written to.
    read_only_file_system: PermissionDenied, "the file system cannot be written to; choose another path";

    /// Creates an error for a full disk.
    disk_full: TooLarge, "there is no room left on the disk; delete something first";

    /// Creates an error for a file that changed since the caller read it.
    conflict: Conflict, "the file has changed since it was last read; read it again";

    /// Creates an error for a watch on a backend that tells no changes.
    no_watch: Unsupported, "this backend tells no changes; list the directory again instead";

    /// Creates an error for a command on a backend that runs none.
    no_commands: Unsupported, "this backend runs no commands; use one that does";

    /// Creates an error for a terminal where there are none.
    no_terminals: Unsupported,
        "there are no terminals here, and shells cannot be attached to or signalled; read and write the shell, or use a sandbox with an agent or a supervisor";
}
