//! [`ModelPath`]: a path from the model in either dialect, and the messages about it.

use backend_core::limits::PATH_BYTES;
use backend_core::{Error, ErrorKind, PathError, Quoted, VPath};
use permissions::Refusal;
use permissions::tool::Tool;

use crate::context::Context;
use crate::reply::{ToolError, fixable};

/// Maximum number of bytes of a path in a message of the console tools.
const SHOWN_BYTES: usize = 500;

#[derive(Debug)]
pub(super) struct ModelPath {
    pub(super) path: VPath,
    /// The path as the model wrote it, made safe for a message.
    pub(super) shown: String,
}

impl ModelPath {
    /// Parses `typed`, the value of the argument `field` of a console tool. Disguising
    /// characters are shown escaped, and a long path is truncated.
    pub(super) fn console(context: &Context, field: &str, typed: &str) -> Result<Self, ToolError> {
        let path = context.path(typed);
        let path = path.map_err(|error| fixable!("{field}: {error}"))?;
        let is_host_name = context.backend.working_dir().join(typed).ok().as_ref() != Some(&path);
        let whole = if typed.is_empty() || typed.len() > PATH_BYTES || is_host_name {
            path.as_str()
        } else {
            typed
        };
        let begins = &whole[..whole.floor_char_boundary(SHOWN_BYTES)];
        let mut shown = escaped_if(begins, is_disguising);
        if begins.len() < whole.len() {
            shown.push('…');
        }
        Ok(Self { path, shown })
    }

    /// Parses `typed`, an argument of a tool of the `filesystem` profile. A backslash is
    /// a slash, surrounding white space is dropped, and `~` and drives are refused. With
    /// mounts every path starts at the root, with or without a leading slash. Without
    /// mounts, a relative path starts at the working directory.
    pub(super) fn filesystem(context: &Context, typed: &str) -> Result<Self, ToolError> {
        let path = match &context.scope {
            Some(scope) => scope.parse(typed),
            None => plain(context, typed).map_err(|problem| {
                let typed = &typed[..typed.floor_char_boundary(PATH_BYTES)];
                let root = context.backend.working_dir().to_string();
                Refusal::invalid_path(typed, problem, vec![root])
            }),
        };
        let path =
            path.map_err(|refusal| ToolError::fixable(respelled(&refusal, &[]).filesystem_text()))?;
        let shown = match typed.len() {
            1..=PATH_BYTES => escaped_if(typed, char::is_control),
            _ => path.to_string(),
        };
        Ok(Self { path, shown })
    }

    /// Converts a backend's error about this path, in the words of the console tools.
    pub(super) fn explain(&self, error: Error) -> ToolError {
        let shown = &self.shown;
        match error.kind() {
            ErrorKind::NotFound => fixable!(
                "File '{shown}' not found. Check the path with `ls` or `glob`, then try again."
            ),
            ErrorKind::IsADirectory => {
                fixable!("'{shown}' is a directory; list it with `ls` and name a file in it")
            }
            _ => {
                let message = format!("'{shown}': {}", error.message());
                ToolError::from(error).reworded_if_fixable(message)
            }
        }
    }

    /// Converts an error of a tool of the `filesystem` profile. A refusal is told in the
    /// words of the policy. `own` returns the tool's own text for a kind of error, given
    /// the path as it is shown. Any other text names the `verb`, and omits details that
    /// only the host may know.
    pub(super) fn explain_for(
        &self,
        (tool, verb): (Tool, &str),
        error: Error,
        own: impl FnOnce(&str, ErrorKind) -> Option<String>,
    ) -> ToolError {
        let shown = &self.shown;
        if let Some(refused) = refusal(tool, &error, &[self]) {
            return refused;
        }
        if let Some(text) = own(shown, error.kind()) {
            return ToolError::fixable(text);
        }
        let message = format!("Cannot {verb} '{shown}': {}", error.message());
        ToolError::from(error).reworded(message)
    }

    /// Returns the error of the `filesystem` profile for a file that is not text.
    pub(super) fn not_text(&self, verb: &str) -> ToolError {
        let shown = &self.shown;
        fixable!(
            "Cannot {verb} '{shown}': file appears to be binary or not UTF-8 encoded.\n\
             This tool only {verb}s text files. For binary files, pass them as attachments."
        )
    }

    /// Returns the error of the console tools for a file that cannot be edited as text.
    pub(super) fn not_utf8(&self) -> ToolError {
        let shown = &self.shown;
        fixable!(
            "'{shown}' is not valid UTF-8 text and cannot be edited; nothing was changed. Replace \
             it with write_file, or change it with a command."
        )
    }
}

/// Returns the message about an error of a policy, with `paths` as the model wrote them.
pub(super) fn refusal(tool: Tool, error: &Error, paths: &[&ModelPath]) -> Option<ToolError> {
    let refusal = Refusal::of(error)?;
    let text = respelled(refusal, paths).filesystem_text_for(tool.name());
    // Builds a new error, because the class depends only on the kind.
    Some(ToolError::from(Error::new(error.kind(), "")).reworded(text))
}

/// Returns the refusal with its path as the model wrote it.
fn respelled(refusal: &Refusal, paths: &[&ModelPath]) -> Refusal {
    let mut refusal = refusal.clone();
    match &mut refusal {
        Refusal::InvalidPath { path, .. } => *path = escaped_if(path, char::is_control),
        Refusal::Outside { path, .. }
        | Refusal::ReadOnly { path, .. }
        | Refusal::MountRoot { path, .. }
        | Refusal::Suffix { path, .. }
        | Refusal::TooLarge { path, .. } => {
            let known = paths
                .iter()
                .find(|known| known.path.as_str() == path.as_str());
            if let Some(known) = known {
                path.clone_from(&known.shown);
            }
        }
        _ => {}
    }
    refusal
}

/// Parses `typed` for a backend without mounts.
fn plain(context: &Context, typed: &str) -> Result<VPath, PathError> {
    let text = typed.replace('\\', "/");
    let text = text.trim();
    if text.starts_with('~') {
        return Err(PathError::Home(Quoted::new(typed)));
    }
    if text.chars().nth(1) == Some(':') {
        return Err(PathError::Drive(Quoted::new(typed)));
    }
    context.backend.working_dir().join(text)
}

/// Returns `true` for control characters and those that are invisible or change direction.
fn is_disguising(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Escapes a text that contains a disguising character.
fn escaped_if(text: &str, is_disguising: fn(char) -> bool) -> String {
    if text.contains(is_disguising) {
        text.escape_debug().to_string()
    } else {
        text.to_owned()
    }
}
