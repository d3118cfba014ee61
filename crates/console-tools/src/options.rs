//! [`Options`]: the selection of tools and their behaviour.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The format in which a model edits files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditFormat {
    /// By exact text: `edit_file`.
    #[default]
    StrReplace,
    /// By line number and line hash: `hashline_edit`.
    Hashline,
}

/// The set of tools, and the detail of their descriptions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Profile {
    /// For agents that write code. Descriptions include advice.
    #[default]
    Coding,
    /// The same tools without advice. pydantic-ai-backend calls this profile `agent`.
    #[serde(alias = "agent")]
    Lean,
    /// Only the seven tools of a mounted file system.
    Filesystem,
}

/// The options of a toolset. The defaults are those of pydantic-ai-backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Options {
    /// Whether `execute` is offered.
    pub include_execute: bool,
    /// Whether background shells are offered.
    pub include_background: bool,
    /// Whether `delete_file`, `move_file` and `copy_file` are offered.
    pub include_file_operations: bool,
    /// Whether writing and editing need approval if there is no ruleset.
    pub require_write_approval: bool,
    /// Whether commands need approval if there is no ruleset.
    pub require_execute_approval: bool,
    /// Whether questions must be shown whole. Longer changes and commands are then
    /// refused, because an approval would cover what the user did not see.
    pub require_whole_questions: bool,
    /// Whether `grep` skips hidden files by default.
    pub default_ignore_hidden: bool,
    /// Whether `glob` and `grep` skip [generated
    /// directories](backend_core::search::GENERATED_DIRECTORIES) by default.
    pub skip_generated: bool,
    /// The format of edits.
    pub edit_format: EditFormat,
    /// Whether `read_file` shows pictures.
    pub image_support: bool,
    /// Whether `read_file` shows documents.
    pub document_support: bool,
    /// Whether a file must be read before it can be edited.
    pub require_read_before_edit: bool,
    /// Whether a command that times out continues as a background shell.
    pub timeout_to_background: bool,
    /// The profile.
    pub profile: Profile,
    /// Replacement descriptions, by the name of the tool or by `tool.argument`.
    pub descriptions: BTreeMap<String, String>,
    /// The size limits.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            include_execute: true,
            include_background: true,
            include_file_operations: false,
            require_write_approval: false,
            require_execute_approval: true,
            require_whole_questions: false,
            default_ignore_hidden: true,
            skip_generated: true,
            edit_format: EditFormat::default(),
            image_support: false,
            document_support: false,
            require_read_before_edit: false,
            timeout_to_background: false,
            profile: Profile::default(),
            descriptions: BTreeMap::new(),
            limits: Limits::default(),
        }
    }
}

/// The size limits of requests and replies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum size of the arguments of a call, in bytes.
    pub argument_bytes: usize,
    /// Maximum size of the text of any reply, in bytes.
    pub reply_bytes: usize,
    /// Maximum number of lines that `read_file` returns.
    pub read_lines: usize,
    /// Length at which a line is truncated, in bytes.
    pub line_bytes: usize,
    /// Maximum number of entries that `ls` shows.
    pub ls_entries: usize,
    /// Maximum number of files that `glob` shows.
    pub glob_files: usize,
    /// Maximum number of files or lines that `grep` shows.
    pub grep_results: usize,
    /// Maximum number of characters of a line that `grep` shows.
    pub grep_line_chars: usize,
    /// Maximum number of bytes of a command's output in the reply: half from its
    /// beginning, half from its end.
    pub output_bytes: usize,
    /// Maximum number of bytes of a command's output that are kept for later reading.
    pub spill_bytes: usize,
    /// Maximum total size of the kept outputs of a conversation, in bytes.
    pub spill_total_bytes: usize,
    /// Default timeout of a command, in seconds.
    pub execute_seconds: u64,
    /// Maximum size of a picture's file, in bytes.
    pub image_bytes: u64,
    /// Longest edge of a picture. Larger pictures are scaled down.
    pub image_edge: u32,
    /// Maximum size of a document's file, in bytes.
    pub document_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            argument_bytes: 8 * 1024 * 1024,
            reply_bytes: 256 * 1024,
            read_lines: 2_000,
            line_bytes: 2_000,
            ls_entries: 1_000,
            glob_files: 100,
            grep_results: 50,
            grep_line_chars: 100,
            output_bytes: 30_000,
            spill_bytes: 8 * 1024 * 1024,
            spill_total_bytes: 64 * 1024 * 1024,
            execute_seconds: 120,
            image_bytes: 50 * 1024 * 1024,
            image_edge: 1_568,
            document_bytes: 50 * 1024 * 1024,
        }
    }
}

impl Options {
    /// Returns `true` if a command that times out continues as a shell that tools can reach.
    pub(crate) fn continues_in_background(&self) -> bool {
        self.timeout_to_background && self.include_background
    }
}

permissions::tables_only!(Options, Limits);
