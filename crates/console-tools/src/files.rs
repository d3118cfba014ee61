//! The tools that read and change files.

mod copy_file;
mod delete_file;
mod diff;
mod edit_file;
mod hashline_adapter;
mod hashline_edit;
mod hint;
mod move_file;
mod output;
mod read_before_edit;
mod read_file;
mod text;
mod transfer;
mod write_file;

#[cfg(test)]
#[path = "files/delete_move_copy_tests.rs"]
mod delete_move_copy_tests;
#[cfg(test)]
#[path = "files/edit_file_tests.rs"]
mod edit_file_tests;
#[cfg(test)]
#[path = "files/hashline_edit_tests.rs"]
mod hashline_edit_tests;
#[cfg(test)]
#[path = "files/read_before_edit_tests.rs"]
mod read_before_edit_tests;
#[cfg(test)]
#[path = "files/read_file_tests.rs"]
mod read_file_tests;
#[cfg(test)]
#[path = "files/support.rs"]
mod support;

use backend_core::limits::PATH_BYTES;
use backend_core::{Error, ErrorKind, VPath};

pub(crate) use copy_file::CopyFileTool;
pub(crate) use delete_file::DeleteFileTool;
pub(crate) use edit_file::EditFileTool;
pub(crate) use hashline_edit::HashlineEditTool;
pub(crate) use move_file::MoveFileTool;
pub(crate) use read_file::ReadFileTool;
pub(crate) use write_file::WriteFileTool;

use crate::{Class, Context, ToolError};

/// Maximum number of bytes of a path in a message.
const SHOWN_BYTES: usize = 500;

/// Returns `true` for a character that could disguise a text: control characters, and
/// those that are invisible or change the direction.
fn is_disguising(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A path from the model.
#[derive(Debug)]
struct ModelPath {
    /// The parsed path.
    path: VPath,
    /// The path as the model wrote it, made safe for a message: disguising characters
    /// are escaped, and a long path is truncated.
    shown: String,
}

impl ModelPath {
    /// Parses `text`, the value of the argument `field`.
    fn new(context: &Context, field: &str, text: &str) -> Result<Self, ToolError> {
        let path = context
            .path(text)
            .map_err(|error| ToolError::fixable(format!("{field}: {error}")))?;
        let is_host_name = context.backend.working_dir().join(text).ok().as_ref() != Some(&path);
        let shown = if text.is_empty() || text.len() > PATH_BYTES || is_host_name {
            path.as_str()
        } else {
            text
        };
        let begins = shown.get(..shown.floor_char_boundary(SHOWN_BYTES));
        let begins = begins.unwrap_or_default();
        let mut told = if begins.contains(is_disguising) {
            begins.escape_debug().to_string()
        } else {
            begins.to_owned()
        };
        if begins.len() < shown.len() {
            told.push('…');
        }
        Ok(Self { path, shown: told })
    }

    /// Converts a backend's error about this path for the model.
    fn explain(&self, error: Error) -> ToolError {
        let shown = &self.shown;
        match error.kind() {
            ErrorKind::NotFound => ToolError::fixable(format!(
                "File '{shown}' not found. Check the path with `ls` or `glob`, then try again."
            )),
            ErrorKind::IsADirectory => ToolError::fixable(format!(
                "'{shown}' is a directory; list it with `ls` and name a file in it"
            )),
            _ => {
                let message = format!("'{shown}': {}", error.message());
                let told = ToolError::from(error);
                // Refusals and failures of the environment keep the text of their
                // source.
                match told.class() {
                    Class::Fixable => ToolError::fixable(message),
                    _ => told,
                }
            }
        }
    }
}

/// Checks that the argument `field` is at least `least`.
fn at_least(field: &str, number: i64, least: i64) -> Result<u64, ToolError> {
    u64::try_from(number)
        .ok()
        .filter(|_| number >= least)
        .ok_or_else(|| ToolError::fixable(format!("{field} must be {least} or more, not {number}")))
}
