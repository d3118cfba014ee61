//! Reads lines from a terminal, with history, completion and multi-line input.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use console_tools::{Chat, Definitions};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{
    Cmd, ConditionalEventHandler, Config, Context, Editor, Event, EventContext, EventHandler,
    Helper, KeyEvent, RepeatCount,
};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{Input, Prompt};
use crate::console::complete::{self, Entry};
use crate::console::language::{self, ParseError};

/// Maximum number of lines in the history.
const HISTORY_LINES: usize = 1_000;

/// Time that completion waits for a directory listing.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns a function that reads one line.
pub(super) fn reader(prompt: Prompt, runtime: Handle) -> impl FnMut(Definitions) -> Input {
    let empty = Arc::new(AtomicBool::new(true));
    let mut editor = editor(&prompt, &empty);
    let shown = (prompt.text.clone(), styled(&prompt));
    move |tools| {
        let editor = match &mut editor {
            Ok(editor) => editor,
            Err(error) => return Input::Failed(format!("the terminal cannot be used: {error}")),
        };
        editor.set_helper(Some(EditorHelper {
            tools,
            chat: prompt.chat.clone(),
            runtime: runtime.clone(),
            colour: prompt.colour,
        }));
        match editor.readline(&shown) {
            Ok(line) => {
                remember(editor, &line, prompt.history.as_deref());
                Input::Text(line)
            }
            Err(ReadlineError::Interrupted) => Input::Interrupted {
                empty: empty.load(Ordering::Relaxed),
            },
            Err(ReadlineError::Eof) => Input::End,
            // The window was resized.
            Err(ReadlineError::Signal(_)) => Input::Text(String::new()),
            Err(error) => Input::Failed(format!("the terminal cannot be read: {error}")),
        }
    }
}

fn styled(prompt: &Prompt) -> String {
    if prompt.colour {
        format!("\x1b[1;36m{}\x1b[0m", prompt.text)
    } else {
        prompt.text.clone()
    }
}

type LineEditor = Editor<EditorHelper, DefaultHistory>;

fn editor(prompt: &Prompt, empty: &Arc<AtomicBool>) -> rustyline::Result<LineEditor> {
    let config = Config::builder()
        .max_history_size(HISTORY_LINES)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(rustyline::CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bracketed_paste(true)
        .build();
    let mut editor = Editor::with_config(config)?;
    let handler = Box::new(Interrupt(Arc::clone(empty)));
    editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(handler));
    if let Some(path) = &prompt.history {
        // Without a file the history is empty.
        let _ = editor.load_history(path);
    }
    Ok(editor)
}

/// Adds a line to the history. A history that cannot be written is no error.
fn remember(editor: &mut LineEditor, line: &str, history: Option<&Path>) {
    if line.trim().is_empty() || !matches!(editor.add_history_entry(line), Ok(true)) {
        return;
    }
    if let Some(path) = history {
        if let Some(directory) = path.parent() {
            let _ = std::fs::create_dir_all(directory);
        }
        let _ = editor.append_history(path);
    }
}

/// Records whether the line was empty when Ctrl-C was pressed.
struct Interrupt(Arc<AtomicBool>);

impl ConditionalEventHandler for Interrupt {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, at: &EventContext<'_>) -> Option<Cmd> {
        self.0.store(at.line().is_empty(), Ordering::Relaxed);
        Some(Cmd::Interrupt)
    }
}

struct EditorHelper {
    tools: Definitions,
    chat: Chat,
    runtime: Handle,
    colour: bool,
}

impl EditorHelper {
    /// Lists a directory, if that needs no approval.
    fn list(&self, directory: &str) -> Vec<Entry> {
        let path = if directory.is_empty() { "." } else { directory };
        let name = language::full_name("ls", &self.tools);
        let arguments = match name {
            "ls" => json!({"path": path}),
            _ => json!({"path": path, "pattern": "*"}),
        };
        let call = self.chat.call(name, arguments);
        let call = async { tokio::time::timeout(LIST_TIMEOUT, call).await };
        match self.runtime.block_on(call) {
            Ok(reply) => entries(&reply.structured.unwrap_or_default()),
            Err(_) => Vec::new(),
        }
    }
}

fn entries(listing: &Value) -> Vec<Entry> {
    let array = |name: &str| listing.get(name).and_then(Value::as_array);
    let entry = |entry: &Value| {
        Some(Entry {
            name: entry.get("name")?.as_str()?.to_owned(),
            directory: entry.get("kind")?.as_str()? == "directory",
        })
    };
    let file = |path: &Value| {
        Some(Entry {
            name: path.as_str()?.rsplit('/').next()?.to_owned(),
            directory: false,
        })
    };
    let entries = array("entries").into_iter().flatten().filter_map(entry);
    let files = array("files").into_iter().flatten().filter_map(file);
    entries.chain(files).collect()
}

impl Completer for EditorHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let line = line.get(..at).unwrap_or_default();
        let list = |directory: &str| self.list(directory);
        Ok(complete::complete(line, &self.tools, list))
    }
}

impl Validator for EditorHelper {
    fn validate(&self, at: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match language::parse(at.input(), &self.tools) {
            Err(ParseError::Incomplete(_)) => ValidationResult::Incomplete,
            _ => ValidationResult::Valid(None),
        })
    }
}

/// The fields to come: shown, but never inserted.
struct Usage(String);

impl Hint for Usage {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for EditorHelper {
    type Hint = Usage;

    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<Usage> {
        // Without colours it would look like typed text.
        if !self.colour || at < line.len() {
            return None;
        }
        complete::hint(line, &self.tools).map(Usage)
    }
}

impl Highlighter for EditorHelper {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[2m{hint}\x1b[0m"))
    }
}

impl Helper for EditorHelper {}
