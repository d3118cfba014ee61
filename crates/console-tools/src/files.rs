//! The tools that read and change files.

mod diff;
mod edit;
mod guard;
mod hash;
mod hashline;
mod hint;
mod manage;
mod output;
mod read;
mod text;
mod write;

#[cfg(test)]
#[path = "files/edit_tests.rs"]
mod edit_tests;
#[cfg(test)]
#[path = "files/guard_tests.rs"]
mod guard_tests;
#[cfg(test)]
#[path = "files/hashline_tests.rs"]
mod hashline_tests;
#[cfg(test)]
#[path = "files/manage_tests.rs"]
mod manage_tests;
#[cfg(test)]
#[path = "files/read_tests.rs"]
mod read_tests;
#[cfg(test)]
#[path = "files/support.rs"]
mod support;

use backend_core::limits::PATH_BYTES;
use backend_core::{Error, ErrorKind, VPath};

pub(crate) use edit::EditFile;
pub(crate) use hashline::HashlineEdit;
pub(crate) use manage::{CopyFile, DeleteFile, MoveFile};
pub(crate) use read::ReadFile;
pub(crate) use write::WriteFile;

use crate::{Class, Context, ToolError};

/// Most bytes of a path that a message shows.
const SHOWN_BYTES: usize = 500;

/// Whether a character does more to a text than to stand in it: control characters,
/// and those that change the direction or cannot be seen.
fn disturbs(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A path that a model typed, and what it means.
#[derive(Debug)]
struct Target {
    /// What it means.
    path: VPath,
    /// What was typed, fit for a message: without what disturbs, and not all of it if
    /// it is long.
    shown: String,
}

impl Target {
    /// What `text`, given as `field`, means.
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
        let mut told = if begins.contains(disturbs) {
            begins.escape_debug().to_string()
        } else {
            begins.to_owned()
        };
        if begins.len() < shown.len() {
            told.push('…');
        }
        Ok(Self { path, shown: told })
    }

    /// What the model is told of a backend's error about this path.
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
                // What is refused or out of order was said by whoever refuses.
                match told.class() {
                    Class::Fixable => ToolError::fixable(message),
                    _ => told,
                }
            }
        }
    }
}

/// A number given as `field`, which has to be at least `least`.
fn at_least(field: &str, number: i64, least: i64) -> Result<u64, ToolError> {
    u64::try_from(number)
        .ok()
        .filter(|_| number >= least)
        .ok_or_else(|| ToolError::fixable(format!("{field} must be {least} or more, not {number}")))
}
