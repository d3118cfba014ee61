//! Keys by name, and the bytes that a terminal sends for them.

use crate::reply::{ToolError, fixable};

/// Maximum number of keys in a call.
const MAX_KEYS: usize = 1_000;

/// Keys that always send the same bytes.
const FIXED: &[(&str, &str)] = &[
    ("enter", "\r"),
    ("return", "\r"),
    ("tab", "\t"),
    ("shift-tab", "\x1b[Z"),
    ("space", " "),
    ("escape", "\x1b"),
    ("esc", "\x1b"),
    ("backspace", "\x7f"),
    ("insert", "\x1b[2~"),
    ("delete", "\x1b[3~"),
    ("pageup", "\x1b[5~"),
    ("pagedown", "\x1b[6~"),
    ("f1", "\x1bOP"),
    ("f2", "\x1bOQ"),
    ("f3", "\x1bOR"),
    ("f4", "\x1bOS"),
    ("f5", "\x1b[15~"),
    ("f6", "\x1b[17~"),
    ("f7", "\x1b[18~"),
    ("f8", "\x1b[19~"),
    ("f9", "\x1b[20~"),
    ("f10", "\x1b[21~"),
    ("f11", "\x1b[23~"),
    ("f12", "\x1b[24~"),
];

/// Keys that move the cursor, and their letter. A program chooses what is before it.
const CURSOR: &[(&str, char)] = &[
    ("up", 'A'),
    ("down", 'B'),
    ("right", 'C'),
    ("left", 'D'),
    ("home", 'H'),
    ("end", 'F'),
];

/// Returns the bytes of all keys, one after the other. `application` is the other encoding
/// of the cursor keys, which full-screen programs ask for.
pub(super) fn encode(names: &[String], application: bool) -> Result<String, ToolError> {
    if names.len() > MAX_KEYS {
        return Err(fixable!(
            "keys has {} keys; give at most {MAX_KEYS}, or text in input",
            names.len()
        ));
    }
    let mut bytes = String::new();
    for name in names {
        let key = key(name, application);
        bytes.push_str(&key.ok_or_else(|| unknown(name))?);
    }
    Ok(bytes)
}

fn unknown(name: &str) -> ToolError {
    let name = crate::terminal::on_one_line(name);
    fixable!(
        "there is no key '{name}'; the keys are Enter, Tab, Shift-Tab, Space, Escape, Backspace, \
         Insert, Delete, Up, Down, Left, Right, Home, End, PageUp, PageDown, F1 to F12, Ctrl- \
         with a letter, Alt- with any key, and single characters; text goes into input"
    )
}

fn key(name: &str, application: bool) -> Option<String> {
    let mut chars = name.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Some(c.to_string());
    }
    // `Ctrl+C`, `Page_Up` and `page-up` are common spellings, too.
    let plain = name.to_ascii_lowercase().replace(['+', '_'], "-");
    for prefix in ["alt-", "meta-", "m-"] {
        if plain.starts_with(prefix) {
            // The key after it keeps its case.
            let key = key(name.get(prefix.len()..)?, application)?;
            return Some(format!("\x1b{key}"));
        }
    }
    for prefix in ["ctrl-", "control-", "c-"] {
        if let Some(letter) = plain.strip_prefix(prefix) {
            return control(letter);
        }
    }
    let plain = match plain.as_str() {
        "page-up" => "pageup",
        "page-down" => "pagedown",
        plain => plain,
    };
    if let Some((_, letter)) = CURSOR.iter().find(|(key, _)| *key == plain) {
        let before = if application { 'O' } else { '[' };
        return Some(format!("\x1b{before}{letter}"));
    }
    let fixed = FIXED.iter().find(|(key, _)| *key == plain)?;
    Some(fixed.1.to_owned())
}

/// Returns the control character of a key.
fn control(key: &str) -> Option<String> {
    let code = match key.as_bytes() {
        [letter @ b'a'..=b'z'] => letter - b'a' + 1,
        b"space" | b"@" => 0,
        b"[" => 0x1b,
        b"\\" => 0x1c,
        b"]" => 0x1d,
        b"^" => 0x1e,
        // Underscores became dashes.
        b"-" | b"/" => 0x1f,
        _ => return None,
    };
    Some(char::from(code).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        encode(&names, false).unwrap()
    }

    #[test]
    fn keys_have_the_bytes_that_terminals_send() {
        for (name, bytes) in [
            ("Enter", "\r"),
            ("Escape", "\x1b"),
            ("Ctrl-C", "\x03"),
            ("ctrl+d", "\x04"),
            ("C-x", "\x18"),
            ("Ctrl-\\", "\x1c"),
            ("Ctrl-_", "\x1f"),
            ("Ctrl-Space", "\0"),
            ("Alt-x", "\x1bx"),
            ("Alt-X", "\x1bX"),
            ("Alt-Enter", "\x1b\r"),
            ("Alt-Ctrl-A", "\x1b\x01"),
            ("Page_Down", "\x1b[6~"),
            ("PageUp", "\x1b[5~"),
            ("F1", "\x1bOP"),
            ("F12", "\x1b[24~"),
            ("q", "q"),
            ("Q", "Q"),
            ("é", "é"),
            ("-", "-"),
        ] {
            assert_eq!(encoded(&[name]), bytes, "{name}");
        }
        assert_eq!(encoded(&["Escape", ":", "q", "Enter"]), "\x1b:q\r");
    }

    #[test]
    fn a_program_chooses_the_encoding_of_the_cursor_keys() {
        let up = ["Up".to_owned()];
        assert_eq!(encode(&up, false).unwrap(), "\x1b[A");
        assert_eq!(encode(&up, true).unwrap(), "\x1bOA");
    }

    #[test]
    fn an_unknown_key_is_named_together_with_those_there_are() {
        for name in [
            "Entr", "", "Ctrl-", "Ctrl-Up", "Alt-", "F13", "hello", "Ctrl-é",
        ] {
            let error = encode(&[name.to_owned()], false).unwrap_err();
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("there is no key '{name}'; ")),
                "{text}"
            );
        }
        let many = vec!["x".to_owned(); MAX_KEYS + 1];
        let error = encode(&many, false).unwrap_err().to_string();
        assert!(error.starts_with("keys has 1001 keys; "), "{error}");
    }
}
