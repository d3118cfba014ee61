//! [`Options`]: which tools there are and how they behave.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::table::tables_only;

/// How a model edits files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditFormat {
    /// By exact text: `edit_file`.
    #[default]
    StrReplace,
    /// By line number and line hash: `hashline_edit`.
    Hashline,
}

/// How much the tools' descriptions say, and which tools there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Profile {
    /// For agents that write code: with advice.
    #[default]
    Coding,
    /// The same tools, without advice. pydantic-ai-backend calls it `agent`.
    #[serde(alias = "agent")]
    Lean,
    /// The seven tools of a mounted file system, and nothing else.
    Filesystem,
}

/// What a toolset offers. The defaults are those of pydantic-ai-backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Options {
    /// Whether there is `execute`.
    pub include_execute: bool,
    /// Whether there are background shells.
    pub include_background: bool,
    /// Whether there are `delete_file`, `move_file` and `copy_file`.
    pub include_file_operations: bool,
    /// Whether writing and editing ask, where no ruleset says otherwise.
    pub require_write_approval: bool,
    /// Whether commands ask, where no ruleset says otherwise.
    pub require_execute_approval: bool,
    /// Whether only what can be shown whole is asked about: longer changes and commands
    /// are refused, since a yes would count for what was not seen.
    pub require_whole_questions: bool,
    /// Whether `grep` leaves hidden files out unless told otherwise.
    pub default_ignore_hidden: bool,
    /// Whether `glob` and `grep` leave out [generated
    /// directories](backend_core::search::GENERATED_DIRECTORIES) unless told
    /// otherwise.
    pub skip_generated: bool,
    /// How files are edited.
    pub edit_format: EditFormat,
    /// Whether `read_file` shows pictures.
    pub image_support: bool,
    /// Whether `read_file` shows documents.
    pub document_support: bool,
    /// Whether only files that were read can be edited.
    pub require_read_before_edit: bool,
    /// Whether a command whose time runs out goes on as a background shell.
    pub timeout_to_background: bool,
    /// How much the descriptions say.
    pub profile: Profile,
    /// Descriptions to use instead: of a tool by its name, of an argument by
    /// `tool.argument`.
    pub descriptions: BTreeMap<String, String>,
    /// How much a reply may hold.
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

/// How much a reply may hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Most bytes of arguments that a call may have.
    pub argument_bytes: usize,
    /// Most bytes of text in any reply.
    pub reply_bytes: usize,
    /// Most lines that `read_file` returns.
    pub read_lines: usize,
    /// Most bytes of a line before it is cut.
    pub line_bytes: usize,
    /// Most entries that `ls` shows.
    pub ls_entries: usize,
    /// Most files that `glob` shows.
    pub glob_files: usize,
    /// Most files or lines that `grep` shows.
    pub grep_results: usize,
    /// Most characters of a line that `grep` shows.
    pub grep_line_chars: usize,
    /// Most bytes of a command's output in the reply: half from its beginning,
    /// half from its end.
    pub output_bytes: usize,
    /// Most bytes of a command's output that are kept to be read later.
    pub spill_bytes: usize,
    /// Most bytes that all kept outputs of a conversation have together.
    pub spill_total_bytes: usize,
    /// Seconds that a command may run if the call does not say.
    pub execute_seconds: u64,
    /// Most bytes of a picture's file.
    pub image_bytes: u64,
    /// Longest edge of a picture; larger ones are made smaller.
    pub image_edge: u32,
    /// Most bytes of a document's file.
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

tables_only!(Options, Limits);
