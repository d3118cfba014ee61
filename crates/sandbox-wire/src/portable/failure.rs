//! Converts the scripts' status words to errors.

use backend_core::{Error, ErrorKind, Quoted, Result};

/// The error for a malformed reply.
pub(crate) fn broken(how: &str) -> Error {
    Error::unavailable(format!(
        "the shell in the machine does not answer as it should: {how}; check whether its tools were changed"
    ))
}

/// Whether an error concerns one file, which a search skips. Other errors
/// concern the machine and end the search.
pub(crate) fn is_about_entry(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
            | ErrorKind::IsALink
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidPath
            | ErrorKind::PermissionDenied
            | ErrorKind::TooLarge
    )
}

/// Returns the error for a status word of the worker script. `text` is the
/// output of a tool.
///
/// # Errors
///
/// `Unavailable` if the word is unknown.
pub(crate) fn of(word: &str, text: &[u8]) -> Result<Error> {
    Ok(match word {
        "notfound" => Error::not_found(),
        "notdir" => Error::not_a_directory(),
        "isdir" => Error::is_a_directory(),
        "exists" => Error::already_exists(),
        "dirs" => Error::new(
            ErrorKind::AlreadyExists,
            "the destination exists, and directories are neither replaced nor merged",
        ),
        "conflict" => Error::conflict(),
        "special" => Error::invalid_input(
            "it is a FIFO, a socket or a device and holds no content; name a file",
        ),
        "stranger" => Error::invalid_input(
            "there is a FIFO, a socket or a device inside it, which cannot be copied; delete it or copy the rest",
        ),
        "itself" => {
            Error::invalid_input("the destination is the source or lies inside it; choose another")
        }
        "home" => Error::invalid_input(
            "it is the working directory or lies above it; name what is in it instead",
        ),
        "inside" => Error::new(
            ErrorKind::InvalidPath,
            "a path inside it would be too long or too deep; choose a shorter destination",
        ),
        "link" => Error::new(
            ErrorKind::IsALink,
            "a symbolic link is in the way; resolve the path and use what it leads to",
        ),
        "circle" => Error::new(
            ErrorKind::InvalidPath,
            "symbolic links go in a circle or are too many; name the file itself",
        ),
        "denied" => denied(),
        "full" => no_room(),
        "unsteady" => Error::unavailable("the files on the way keep changing; try again"),
        "unkilled" => Error::unavailable("some processes do not end; stop the machine to end them"),
        "tool" => tool(&String::from_utf8_lossy(text)),
        _ => return Err(broken("unknown status word")),
    })
}

fn denied() -> Error {
    Error::new(
        ErrorKind::PermissionDenied,
        "the operating system does not permit it; change the permissions or choose another path",
    )
}

fn no_room() -> Error {
    Error::too_large("there is no room left on the disk; delete something first")
}

/// A part of an error message, and its meaning.
type Meaning = (&'static str, fn() -> Error);

/// Interprets a tool's error message. The texts are those of the C libraries.
fn tool(text: &str) -> Error {
    const MEANINGS: [Meaning; 13] = [
        ("No such file or directory", Error::not_found),
        ("Not a directory", Error::not_a_directory),
        ("File exists", Error::already_exists),
        ("Is a directory", Error::is_a_directory),
        ("Permission denied", denied),
        ("Operation not permitted", denied),
        ("Read-only file system", read_only),
        ("No space left on device", no_room),
        ("isk quota exceeded", no_room),
        ("File too large", no_room),
        ("ile name too long", too_long),
        ("ilename too long", too_long),
        ("not found", missing_tool),
    ];
    let meaning = MEANINGS.iter().find(|(part, _)| text.contains(part));
    let error = match meaning {
        Some((_, error)) => error(),
        None => Error::internal(format!(
            "a tool in the machine failed and said {}; check its file system",
            Quoted::new(text.trim())
        )),
    };
    error.with_source(Quoted::new(text.trim()).to_string())
}

fn read_only() -> Error {
    Error::new(
        ErrorKind::PermissionDenied,
        "the file system cannot be written to; choose another path",
    )
}

fn too_long() -> Error {
    Error::new(
        ErrorKind::InvalidPath,
        "a name or the path is longer than the file system takes; choose a shorter one",
    )
}

fn missing_tool() -> Error {
    Error::unsupported(
        "a tool that is needed is not in the machine; use the agent, which needs none",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_kinds() {
        for (word, text, kind) in [
            ("notfound", "", ErrorKind::NotFound),
            ("link", "", ErrorKind::IsALink),
            ("home", "", ErrorKind::InvalidInput),
            ("full", "", ErrorKind::TooLarge),
            (
                "tool",
                "rm: cannot remove 'x': Read-only file system",
                ErrorKind::PermissionDenied,
            ),
            ("tool", "sh: link: not found", ErrorKind::Unsupported),
            ("tool", "mv: x: Input/output error", ErrorKind::Internal),
        ] {
            let error = of(word, text.as_bytes()).unwrap();
            assert_eq!(error.kind(), kind, "{word} {text}");
            assert!(error.message().contains(';'), "{error} names no next step");
        }
        assert_eq!(
            of("rubbish", b"").unwrap_err().kind(),
            ErrorKind::Unavailable
        );
    }
}
