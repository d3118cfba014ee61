//! Converts typed text to a [`VPath`].
//!
//! Every spelling of a path is converted to the same path before anything is decided, so
//! that no spelling can get a better answer than another.

use backend_core::{PathError, Quoted, VPath};

/// Parses a path typed by an agent.
///
/// Backslashes become slashes, white space at either end is dropped, and a path starts at
/// the root with or without a leading slash. Text that looks like a home directory or a
/// drive is refused, and so is climbing above the root.
pub(crate) fn path(typed: &str) -> Result<VPath, PathError> {
    let text = with_slashes(typed);
    let text = text.trim();
    if text.contains('\0') {
        return Err(PathError::Nul(Quoted::new(typed)));
    }
    if text.starts_with('~') {
        return Err(PathError::Home(Quoted::new(typed)));
    }
    let path = fold(text)?;
    if has_drive(text) || has_drive(path.as_str()) {
        return Err(PathError::Drive(Quoted::new(typed)));
    }
    Ok(path)
}

/// Parses a mount point from a configuration. Like [`path`], but the text must be empty
/// or begin with a slash. Returns `None` otherwise.
pub(crate) fn point(typed: &str) -> Option<Result<VPath, PathError>> {
    let text = with_slashes(typed);
    let text = text.trim();
    if text.contains('\0') {
        return Some(Err(PathError::Nul(Quoted::new(typed))));
    }
    (text.is_empty() || text.starts_with('/')).then(|| fold(text))
}

/// Returns whether a component is `..`.
pub(crate) fn has_parent_component(typed: &str) -> bool {
    with_slashes(typed)
        .trim()
        .split('/')
        .any(|name| name == "..")
}

fn with_slashes(typed: &str) -> String {
    typed.replace('\\', "/")
}

/// Returns whether the second character is `:`, whatever the first one is.
fn has_drive(text: &str) -> bool {
    text.chars().nth(1) == Some(':')
}

/// Normalizes until there is no trailing white space. Dropping a component can leave some
/// at the end, and then the result would have a second spelling.
fn fold(text: &str) -> Result<VPath, PathError> {
    let mut path = VPath::parse(text)?;
    loop {
        let trimmed = path.as_str().trim_end();
        if trimmed.len() == path.as_str().len() {
            return Ok(path);
        }
        path = VPath::parse(trimmed)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(typed: &str) -> String {
        path(typed).map_or_else(|error| format!("{error}"), |path| path.to_string())
    }

    #[test]
    fn what_is_typed_means_one_path() {
        for (typed, meant) in [
            ("", "/"),
            ("   ", "/"),
            (".", "/"),
            ("/.", "/"),
            ("data/f", "/data/f"),
            ("\\data\\f", "/data/f"),
            ("  /data/f  ", "/data/f"),
            ("//data///f/", "/data/f"),
            ("/data/./f", "/data/f"),
            ("./data/f", "/data/f"),
            ("/data/x/../f", "/data/f"),
            ("/data\\..\\f", "/f"),
            ("/data/f /", "/data/f"),
            ("/data/ /.", "/data"),
            ("ab:c", "/ab:c"),
            ("/C:/x", "/C:/x"),
            ("/data/a:b", "/data/a:b"),
            ("/~", "/~"),
            ("/%2e%2e/$HOME", "/%2e%2e/$HOME"),
        ] {
            assert_eq!(parsed(typed), meant, "{typed:?}");
        }
    }

    #[test]
    fn what_means_no_path_is_refused() {
        for (typed, hint) in [
            ("a\0b", "NUL"),
            ("~", "not expanded"),
            ("~user/x", "not expanded"),
            (" ~backup", "not expanded"),
            ("C:/x", "Windows"),
            ("C:\\x", "Windows"),
            ("a:b", "Windows"),
            ("é:b", "Windows"),
            ("/:b", "Windows"),
            ("//:b", "Windows"),
            ("..", "above the root"),
            ("/data/../..", "above the root"),
            ("..\\x", "above the root"),
        ] {
            let text = parsed(typed);
            assert!(text.contains(hint), "{typed:?}: {text}");
        }
    }

    #[test]
    fn only_a_whole_component_climbs() {
        assert!(
            has_parent_component("/a/../b")
                && has_parent_component("a\\..")
                && has_parent_component(" .. ")
        );
        assert!(
            !has_parent_component("/a/..b")
                && !has_parent_component("/a/...")
                && !has_parent_component("/.")
        );
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(typed in "[a:~ \t\\\\/.\u{a0}]{0,16}") {
            if let Ok(once) = path(&typed) {
                prop_assert_eq!(path(once.as_str()), Ok(once.clone()));
            }
            if let Some(Ok(once)) = point(&typed) {
                prop_assert_eq!(point(once.as_str()), Some(Ok(once.clone())));
            }
        }

        #[test]
        fn any_text_is_a_path_or_an_error(typed in any::<String>()) {
            if let Ok(once) = path(&typed) {
                prop_assert_eq!(path(once.as_str()), Ok(once.clone()));
            }
            let _ = point(&typed);
            let _ = has_parent_component(&typed);
        }
    }
}
