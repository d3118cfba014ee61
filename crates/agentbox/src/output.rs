//! Printing: results to standard output, everything else to standard error.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal as _, Write};

use serde::Serialize;

use crate::exit::{Failure, environment};
use crate::terminal::safe::sanitized;

/// Prints to standard output, in colour on a terminal. A closed pipe is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    written(write_line(&mut anstream::stdout().lock(), text))
}

/// Writes text, with a line end if it has none.
pub(crate) fn write_line(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') && !text.is_empty() {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Prints text of a file or a command. A terminal gets no control codes.
pub(crate) fn print_foreign(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let text = if out.is_terminal() {
        sanitized(text)
    } else {
        Cow::Borrowed(text)
    };
    written(write_line(&mut out, &text))
}

/// Prints bytes of a file. A terminal gets no control codes; a pipe gets them unchanged.
/// Returns `false` if the reader is gone.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    let printed = if out.is_terminal() {
        let text = String::from_utf8_lossy(bytes);
        out.write_all(sanitized(&text).as_bytes())
    } else {
        out.write_all(bytes)
    };
    match printed.and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => written(result).map(|()| true),
    }
}

/// Prints data as JSON, byte for byte.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|error| environment!("JSON could not be written: {error}"))?;
    written(write_line(&mut io::stdout().lock(), &text))
}

/// Prints a message to standard error. Errors are ignored.
pub(crate) fn note(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = writeln!(out, "{text}");
}

/// Reports a failure, unless it has no message.
pub(crate) fn error(failure: &Failure) {
    let message = failure.to_string();
    if !message.is_empty() {
        let style = anstyle::AnsiColor::Red.on_default().bold();
        note(&format!("{style}error:{style:#} {}", sanitized(&message)));
    }
}

/// Formats names and texts as two columns.
pub(crate) fn table<'t>(rows: impl Iterator<Item = (&'t str, String)>) -> String {
    let rows: Vec<(&str, String)> = rows.collect();
    let width = rows.iter().map(|(name, _)| name.len()).max();
    let width = width.unwrap_or_default();
    let bold = anstyle::Style::new().bold();
    let line = |(name, text): &(&str, String)| format!("{bold}{name:width$}{bold:#}  {text}\n");
    rows.iter().map(line).collect()
}

fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(environment!(
            "standard output cannot be written: {error}; make room or write elsewhere"
        )),
        _ => Ok(()),
    }
}
