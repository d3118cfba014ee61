//! The input of the console, and the parameters of its line editor.

use std::path::PathBuf;

use console_tools::Chat;

/// A piece of input.
#[derive(Debug)]
pub(crate) enum Input {
    /// One or more requests, or an incomplete one at the end of input.
    Text(String),
    /// Ctrl-C at the prompt; `empty` if nothing was typed.
    Interrupted { empty: bool },
    /// The end of input.
    End,
    /// Reading failed.
    Failed(String),
}

/// The settings for reading from a terminal.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) colour: bool,
    /// The history file.
    pub(crate) history: Option<PathBuf>,
    /// Lists directories for completion, without asking for approval.
    pub(crate) chat: Chat,
}
