//! The `filesystem` profile: the seven tools of pydantic-ai-filesystem-sandbox.
//!
//! Names, parameters, defaults and texts are those of that library, so that a
//! prompt written for it carries over. What it answers wrongly is answered
//! rightly here; the tests say where.
//!
//! What is an object there, the reply has as data and, as JSON, as its text: a
//! model that sees only texts learns as much. A failure is the library's text and
//! nothing besides, so that no mark stands before it.

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

/// A failure of `class`.
fn failure(class: Class, message: String) -> ToolError {
    match class {
        Class::Fixable => ToolError::fixable(message),
        Class::Refused => ToolError::refused(message),
        Class::Environment => ToolError::environment(message),
    }
}

/// How many characters a text has, as that library counts.
fn chars(text: &str) -> usize {
    text.chars().count()
}
