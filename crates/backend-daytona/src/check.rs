//! Validation of options. Every error says what would be valid.

use std::time::Duration;

use backend_core::{Error, ErrorKind, Quoted, Result};

use crate::labels::PREFIX;

/// The longest name of a sandbox, snapshot or region.
const NAME_BYTES: usize = 255;
/// The longest key and value of a label.
const KEY_BYTES: usize = 255;
const VALUE_BYTES: usize = 4096;
/// The longest time that can be given.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Returns the error for an invalid option unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::check::wrong(format!($($message)+)));
        }
    };
}

pub(crate) use ensure;

pub(crate) fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message.into()).on("daytona")
}

/// Whether a text begins with a letter or digit, has only these, '-', '_' and '.', and so
/// can be part of a request's path.
pub(crate) fn is_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(is_plain)
        && text.len() <= NAME_BYTES
        && text.chars().all(|c| is_plain(c) || "-_.".contains(c))
}

/// Checks the name or the id of a sandbox.
pub(crate) fn sandbox(text: &str) -> Result<()> {
    ensure!(
        is_word(text),
        "{} is not a valid name for a sandbox; use up to 255 letters, digits, '-', '_' and '.', a letter or digit first",
        Quoted::new(text)
    );
    Ok(())
}

/// Checks a name of something else, which is only sent: a snapshot, a region, a user.
pub(crate) fn name(what: &str, text: &str) -> Result<()> {
    let is_plain = |c: char| !c.is_control();
    ensure!(
        !text.trim().is_empty() && text.len() <= NAME_BYTES && text.chars().all(is_plain),
        "{} is not a valid name for {what}; give up to 255 characters",
        Quoted::new(text)
    );
    Ok(())
}

pub(crate) fn label(key: &str, value: &str) -> Result<()> {
    let shown = Quoted::new(key);
    ensure!(
        !key.is_empty() && key.len() <= KEY_BYTES && !key.contains(char::is_control),
        "{shown} is not a valid key for a label; give up to 255 characters"
    );
    ensure!(
        !key.starts_with(PREFIX),
        "{shown} is reserved for sandboxes; choose another key for a label"
    );
    ensure!(
        value.len() <= VALUE_BYTES && !value.contains('\0'),
        "the value of the label {shown} is longer than 4096 bytes or holds a NUL character; shorten it"
    );
    Ok(())
}

/// Checks a part of an allow list, whose parts are separated by commas.
pub(crate) fn allowed(what: &str, text: &str) -> Result<()> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "./:*-_".contains(c);
    ensure!(
        !text.is_empty() && text.len() <= NAME_BYTES && text.chars().all(is_good),
        "{} is not a valid {what}; write 192.0.2.0/24 or *.example.com",
        Quoted::new(text)
    );
    Ok(())
}

/// Returns a time in whole minutes, rounded up.
pub(crate) fn minutes(what: &str, time: Duration) -> Result<u64> {
    ensure!(
        !time.is_zero() && time <= LONGEST,
        "the {what} is zero or longer than ten years; give another one, or none"
    );
    Ok(time.as_secs().div_ceil(60).max(1))
}

/// Checks a path in a sandbox that the toolbox gets.
pub(crate) fn path(text: &str) -> Result<()> {
    ensure!(
        text.starts_with('/') && text.trim() == text && !text.contains(char::is_control),
        "{} is not a valid path for a file; give an absolute one without spaces at its ends",
        Quoted::new(text)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place_in_a_request() {
        for good in ["a", "agentbox-s-app-x_41", "0b1e-44", &"a".repeat(255)] {
            sandbox(good).unwrap();
        }
        for bad in [
            "",
            "-a",
            ".",
            "..",
            "a/b",
            "a?b",
            "a%2f",
            "ä",
            &"a".repeat(256),
        ] {
            assert_eq!(sandbox(bad).unwrap_err().kind(), ErrorKind::Config, "{bad}");
        }
        name("a snapshot", "org/base:1").unwrap();
        for bad in ["", " ", "a\nb"] {
            name("a snapshot", bad).unwrap_err();
        }
    }

    #[test]
    fn labels_lists_times_and_paths() {
        label("team", "red & blue ü").unwrap();
        for (key, value) in [
            ("", "x"),
            ("agentbox.dev/owner", "x"),
            ("a\n", ""),
            ("a", "\0"),
        ] {
            label(key, value).unwrap_err();
        }
        label("a", &"x".repeat(VALUE_BYTES + 1)).unwrap_err();
        for good in ["192.0.2.0/24", "2001:db8::/32", "*.example.com"] {
            allowed("address", good).unwrap();
        }
        for bad in ["", "a,b", "a b", "a\""] {
            allowed("address", bad).unwrap_err();
        }
        assert_eq!(minutes("ttl", Duration::from_secs(1)).unwrap(), 1);
        assert_eq!(minutes("ttl", Duration::from_secs(61)).unwrap(), 2);
        minutes("ttl", Duration::ZERO).unwrap_err();
        minutes("ttl", Duration::MAX).unwrap_err();
        path("/a b/c").unwrap();
        for bad in ["", "a", "/a ", "/a\nb"] {
            path(bad).unwrap_err();
        }
    }
}
