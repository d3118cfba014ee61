//! The `filesystem` profile: the seven tools of pydantic-ai-filesystem-sandbox.
//!
//! Names, parameters, defaults and texts match that library, so a prompt written for it
//! carries over. Where the library gives a wrong answer, this profile gives the right
//! one. The tests say where.
//!
//! Results that are objects there are returned as structured data and, as JSON, as the
//! text, so a model that sees only text learns as much. The text of a failure is the
//! library's text without a prefix.

mod copy_file;
mod delete_file;
mod edit_file;
mod list_files;
mod model_path;
mod move_file;
mod pattern;
mod read_file;
mod repr;
mod transfer;
mod window;
mod write_file;

#[cfg(test)]
#[path = "filesystem/delete_move_copy_tests.rs"]
mod delete_move_copy_tests;
#[cfg(test)]
#[path = "filesystem/edit_file_tests.rs"]
mod edit_file_tests;
#[cfg(test)]
#[path = "filesystem/list_files_tests.rs"]
mod list_files_tests;
#[cfg(test)]
#[path = "filesystem/read_file_tests.rs"]
mod read_file_tests;
#[cfg(test)]
#[path = "filesystem/refusal_tests.rs"]
mod refusal_tests;
#[cfg(test)]
#[path = "filesystem/support.rs"]
mod support;

pub(crate) use copy_file::CopyFileTool;
pub(crate) use delete_file::DeleteFileTool;
pub(crate) use edit_file::EditFileTool;
pub(crate) use list_files::ListFilesTool;
pub(crate) use move_file::MoveFileTool;
pub(crate) use read_file::ReadFileTool;
pub(crate) use write_file::WriteFileTool;

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
