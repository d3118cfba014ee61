//! The tools that read and change files, in two dialects.
//!
//! The console tools are those of the coding and lean profiles. They track what the
//! conversation has seen, and refuse to change a file that differs from it.
//!
//! The `filesystem` profile has the seven tools of pydantic-ai-filesystem-sandbox. Names,
//! parameters, defaults and texts match that library, so a prompt written for it carries
//! over. Where the library gives a wrong answer, this profile gives the right one. The
//! tests say where. Results that are objects there are returned as structured data and,
//! as JSON, as the text, so a model that sees only text learns as much. The text of a
//! failure is the library's text without a prefix.
//!
//! Each tool is a module, with a type for each dialect.

mod char_window;
pub(crate) mod copy_file;
pub(crate) mod delete_file;
mod diff;
pub(crate) mod edit_file;
mod edit_hint;
mod hashline_adapter;
pub(crate) mod hashline_edit;
pub(crate) mod list_files;
mod model_path;
pub(crate) mod move_file;
mod numbered_lines;
mod output;
mod python_repr;
mod read_before_edit;
pub(crate) mod read_file;
#[cfg(test)]
mod tests;
mod transfer;
pub(crate) mod write_file;
