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
        "dirs" => Error::directory_at_destination(),
        "conflict" => Error::conflict(),
        "special" => Error::not_a_file(),
        "stranger" => Error::invalid_input(
            "there is a FIFO, a socket or a device inside it, which cannot be copied; delete it or copy the rest",
        ),
        "itself" => Error::into_itself(),
        "home" => Error::contains_working_dir(),
        "inside" => Error::too_deep_inside(),
        "link" => Error::is_a_link(),
        "circle" => Error::link_loop(),
        "denied" => Error::not_permitted(),
        "full" => Error::disk_full(),
        "unsteady" => Error::unavailable("the files on the way keep changing; try again"),
        "unkilled" => Error::unavailable("some processes do not end; stop the machine to end them"),
        "tool" => tool(&String::from_utf8_lossy(text)),
        _ => return Err(broken("unknown status word")),
    })
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
        ("Permission denied", Error::not_permitted),
        ("Operation not permitted", Error::not_permitted),
        ("Read-only file system", Error::read_only_file_system),
        ("No space left on device", Error::disk_full),
        ("isk quota exceeded", Error::disk_full),
        ("File too large", Error::disk_full),
        ("ile name too long", Error::name_too_long),
        ("ilename too long", Error::name_too_long),
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
