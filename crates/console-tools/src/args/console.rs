//! The arguments of the console tools that read and change files.
//!
//! Numbers in braces are placeholders for the options. A description does not repeat a
//! default that the schema already gives. Numbers are signed, so a negative one gets
//! our own message, which names the field and the allowed range.

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFileArgs {
    /// The file. A relative path starts at the working directory.
    pub(crate) path: String,
    /// How many lines to skip: 0 starts at line 1.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub(crate) offset: i64,
    /// Maximum number of lines, up to {read_lines}. Default: {read_lines}.
    #[schemars(range(min = 1))]
    pub(crate) limit: Option<i64>,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFileArgs {
    /// The file.
    pub(crate) path: String,
    /// The whole content of the file.
    pub(crate) content: String,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditFileArgs {
    /// The file.
    pub(crate) path: String,
    /// The text to replace, exactly as in the file, without line numbers. It must
    /// occur only once, unless replace_all is true.
    pub(crate) old_string: Option<String>,
    /// The text to put in its place; empty deletes.
    pub(crate) new_string: Option<String>,
    /// Replace every occurrence. Default: false.
    pub(crate) replace_all: Option<bool>,
    /// Several replacements, instead of old_string and new_string. Each applies to
    /// the result of the one before; all are made or none.
    pub(crate) edits: Option<Vec<Replacement>>,
    /// Return the diff and change nothing.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replacement {
    /// The text to replace.
    pub(crate) old_string: String,
    /// The text to put in its place.
    pub(crate) new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    pub(crate) replace_all: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HashlineEditArgs {
    /// The file.
    pub(crate) path: String,
    /// The number of the line, or of the first line of a range. 0 with
    /// insert_after inserts before line 1.
    #[schemars(range(min = 0))]
    pub(crate) start_line: Option<i64>,
    /// The hash that read_file shows for that line; "" for line 0.
    pub(crate) start_hash: Option<String>,
    /// The lines to put there. Empty deletes; "\n" is one blank line.
    pub(crate) new_content: Option<String>,
    /// The last line of a range. Default: only start_line.
    #[schemars(range(min = 1))]
    pub(crate) end_line: Option<i64>,
    /// The hash of end_line. Default: not checked.
    pub(crate) end_hash: Option<String>,
    /// Insert after start_line instead of replacing it. Default: false.
    pub(crate) insert_after: Option<bool>,
    /// Several edits, instead of the fields above and with the same meaning. All use
    /// the line numbers that read_file showed; all are made or none.
    pub(crate) edits: Option<Vec<LineEdit>>,
    /// Return the diff and change nothing.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineEdit {
    /// The first line.
    #[schemars(range(min = 0))]
    pub(crate) start_line: i64,
    /// Its hash.
    pub(crate) start_hash: String,
    /// The lines to put there.
    pub(crate) new_content: String,
    /// The last line.
    #[schemars(range(min = 1))]
    pub(crate) end_line: Option<i64>,
    /// Its hash.
    pub(crate) end_hash: Option<String>,
    /// Insert after start_line.
    #[serde(default)]
    pub(crate) insert_after: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteFileArgs {
    /// The file or directory to delete.
    pub(crate) path: String,
    /// Also delete a directory, with its contents.
    #[serde(default)]
    pub(crate) recursive: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveFileArgs {
    /// The file or directory to move.
    pub(crate) source: String,
    /// Its new path. Missing directories are created.
    pub(crate) destination: String,
    /// Replace a file at the destination.
    #[serde(default)]
    pub(crate) overwrite: bool,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CopyFileArgs {
    /// The file or directory to copy.
    pub(crate) source: String,
    /// The path of the copy. Missing directories are created.
    pub(crate) destination: String,
    /// Replace a file at the destination.
    #[serde(default)]
    pub(crate) overwrite: bool,
    /// Also copy a directory, with its contents.
    #[serde(default)]
    pub(crate) recursive: bool,
}
