//! The structured results of the file tools.

use schemars::JsonSchema;
use serde::Serialize;

use crate::reply::ToolError;

/// Returns data as JSON, for a reply whose text is the data.
pub(super) fn json_text(data: &impl Serialize) -> Result<String, ToolError> {
    serde_json::to_string(data)
        .map_err(|error| ToolError::environment(format!("the reply cannot be written: {error}")))
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ReadOutput {
    /// The file, as an absolute path.
    pub(crate) path: String,
    /// The kind of content.
    pub(crate) kind: ReadKind,
    /// The number of the first line shown, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_line: Option<u64>,
    /// How many lines are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lines: Option<u64>,
    /// How many lines the file has, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total_lines: Option<u64>,
    /// The offset at which to read on, if more lines follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_offset: Option<u64>,
    /// The media type of a picture or a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    /// How many bytes the file of a picture or a document has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// The width of a picture as it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) width: Option<u32>,
    /// The height of a picture as it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) height: Option<u32>,
}

/// The kind of content that `read_file` found.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReadKind {
    /// Lines of text.
    #[default]
    Text,
    /// A picture.
    Image,
    /// A document.
    Document,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WriteOutput {
    /// The file, as an absolute path.
    pub(crate) path: String,
    /// How many lines were written.
    pub(crate) lines: u64,
    /// How many bytes were written.
    pub(crate) bytes: u64,
    /// Whether the file is new.
    pub(crate) created: bool,
}

/// Maximum size of the diff of an [`EditOutput`], in bytes.
pub(super) const DIFF_BYTES: usize = 16 * 1024;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EditOutput {
    /// The file, as an absolute path.
    pub(crate) path: String,
    /// How many places, or lines with `hashline_edit`, each edit changed, in the
    /// order given.
    pub(crate) replacements: Vec<u64>,
    /// The line of the first change, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_line: Option<u64>,
    /// The changes as a unified diff, if the text before is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<String>,
    /// Whether this was a dry run, which changes nothing.
    pub(crate) dry_run: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DeleteOutput {
    /// The deleted file or directory, as an absolute path.
    pub(crate) path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TransferOutput {
    /// Where it was, as an absolute path.
    pub(crate) source: String,
    /// Where it, or its copy, is now, as an absolute path.
    pub(crate) destination: String,
}
