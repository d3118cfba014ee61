//! The texts of the file system profile.

use permissions::tool::Tool;

use super::Text;

pub(super) fn text(tool: Tool) -> Text {
    let (summary, usage) = match tool {
        Tool::ReadFile => (
            "Reads a text file.",
            "At most max_chars characters from the character offset on; truncated says whether \
             there are more.",
        ),
        Tool::WriteFile => (
            "Writes a text file, replacing any existing content.",
            "Parent directories are created.",
        ),
        Tool::EditFile => (
            "Replaces text in a file.",
            "old_text must match exactly and occur only once.",
        ),
        Tool::DeleteFile => ("Deletes a file.", "This cannot be undone."),
        Tool::MoveFile => (
            "Moves or renames a file.",
            "The destination must not exist.",
        ),
        Tool::CopyFile => ("Copies a file.", "The destination must not exist."),
        Tool::ListFiles => (
            "Lists files beneath a directory that match a pattern.",
            "Patterns are such as '**/*.md'.",
        ),
        _ => ("", ""),
    };
    Text {
        summary,
        usage,
        ..Text::default()
    }
}
