//! The tools that list and search.

mod glob;
mod grep;
mod line_cutter;
mod ls;
mod skipped;
#[cfg(test)]
mod tests;

pub(crate) use glob::GlobTool;
pub(crate) use grep::GrepTool;
pub(crate) use ls::LsTool;

use backend_core::search::is_generated;
use backend_core::{Error, ErrorKind, VPath};

use crate::context::Context;
use crate::reply::{ToolError, fixable};
use crate::terminal::visible;

/// Bytes reserved in a reply for the text after a list.
const CLOSING_BYTES: usize = 1_000;

/// Maximum length of a message about a pattern, in bytes.
const MESSAGE_BYTES: usize = 1_000;

/// The root of a search and the form in which found paths are shown: relative to the
/// working directory or absolute, as the model wrote its own path. Every tool accepts
/// either form.
struct SearchRoot<'a> {
    /// The path as the model wrote it.
    typed: &'a str,
    path: VPath,
    working_dir: Option<VPath>,
}

impl<'a> SearchRoot<'a> {
    fn new(context: &Context, typed: &'a str) -> Result<Self, ToolError> {
        let path = context.path(typed);
        let path = path.map_err(|error| fixable!("path: {error}"))?;
        let relative = !typed.starts_with('/');
        let working_dir = relative.then(|| context.backend.working_dir());
        Ok(Self {
            typed: if typed.is_empty() { "." } else { typed },
            path,
            working_dir,
        })
    }

    /// Returns `true` if a search here includes generated directories: if the options
    /// say so, or if the path names one. Names above the working directory do not
    /// count, because the model did not choose them.
    fn generated(&self, context: &Context) -> bool {
        let from_here = self.path.strip_prefix(&context.backend.working_dir());
        let mut names = from_here.unwrap_or(self.path.as_str()).split('/');
        !context.options.skip_generated || names.any(is_generated)
    }

    /// Returns a found path in the form in which it is shown.
    fn shown<'p>(&self, path: &'p VPath) -> &'p str {
        let working_dir = self.working_dir.as_ref();
        match working_dir.and_then(|dir| path.strip_prefix(dir)) {
            Some("") => ".",
            Some(path) => path,
            None => path.as_str(),
        }
    }
}

/// Lines of a reply, up to a size limit.
struct Lines {
    text: String,
    limit: usize,
}

impl Lines {
    fn new(context: &Context, first: &str) -> Self {
        let limit = context.options.limits.reply_bytes;
        Self {
            text: first.to_owned(),
            limit: limit.saturating_sub(CLOSING_BYTES),
        }
    }

    /// Adds a line with `text` and returns `true`, unless the reply is full. Control
    /// characters become pictures, so a name cannot break the line.
    fn add(&mut self, indent: &str, text: &str) -> bool {
        if self.text.len() + indent.len() + text.len() + 1 > self.limit {
            return false;
        }
        self.text.push('\n');
        self.text.push_str(indent);
        self.text.extend(text.chars().map(visible));
        true
    }
}

/// Converts the error of a failed search for the model. Invalid input is blamed on the
/// pattern, because everything else was checked before.
fn about_pattern(field: &str, error: Error) -> ToolError {
    if error.kind() != ErrorKind::InvalidInput {
        return error.into();
    }
    let message = error.message();
    let message = match message.rfind("error: ") {
        // A long expression is not repeated, only its problem.
        Some(at) if message.len() > MESSAGE_BYTES => message.get(at..).unwrap_or_default(),
        _ => message,
    };
    let shown = &message[..message.floor_char_boundary(MESSAGE_BYTES)];
    // The backend does not know the names of the fields.
    for (asked, set) in [
        ("ask for a literal search", "set literal"),
        ("ask for a multi-line search", "set multi_line"),
    ] {
        if let Some(shown) = shown.strip_suffix(asked) {
            return fixable!("{field}: {shown}{set}");
        }
    }
    fixable!("{field}: {shown}")
}
