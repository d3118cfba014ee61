//! The `filesystem` profile: the seven tools of pydantic-ai-filesystem-sandbox.
//!
//! Names, parameters, defaults and texts match that library, so a prompt written for it
//! carries over. Where the library gives a wrong answer, this profile gives the right
//! one. The tests say where.
//!
//! Results that are objects there are returned as structured data and, as JSON, as the
//! text, so a model that sees only text learns as much. The text of a failure is the
//! library's text without a prefix.

mod edit;
mod list;
mod manage;
mod pattern;
mod place;
mod read;
mod repr;
mod window;
mod write;

#[cfg(test)]
#[path = "filesystem/edit_tests.rs"]
mod edit_tests;
#[cfg(test)]
#[path = "filesystem/list_tests.rs"]
mod list_tests;
#[cfg(test)]
#[path = "filesystem/manage_tests.rs"]
mod manage_tests;
#[cfg(test)]
#[path = "filesystem/read_tests.rs"]
mod read_tests;
#[cfg(test)]
#[path = "filesystem/refusal_tests.rs"]
mod refusal_tests;
#[cfg(test)]
#[path = "filesystem/support.rs"]
mod support;

pub(crate) use edit::EditFile;
pub(crate) use list::ListFiles;
pub(crate) use manage::{CopyFile, DeleteFile, MoveFile};
pub(crate) use read::ReadFile;
pub(crate) use write::WriteFile;

use crate::{Class, ToolError};

/// Creates an error of the given class.
fn failure(class: Class, message: String) -> ToolError {
    match class {
        Class::Fixable => ToolError::fixable(message),
        Class::Refused => ToolError::refused(message),
        Class::Environment => ToolError::environment(message),
    }
}

/// Counts the characters of a text, as the library does.
fn chars(text: &str) -> usize {
    text.chars().count()
}
