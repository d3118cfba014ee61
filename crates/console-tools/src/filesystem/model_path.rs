//! [`ModelPath`]: a path from the model, and the messages about it.

use backend_core::limits::PATH_BYTES;
use backend_core::{Error, PathError, Quoted, VPath};
use permissions::Refusal;

use super::failure;
use crate::{Context, ToolError};

/// A path from the model.
#[derive(Debug)]
pub(super) struct ModelPath {
    /// The parsed path.
    pub(super) path: VPath,
    /// The path as the model wrote it, which is how every message shows it.
    pub(super) shown: String,
}

impl ModelPath {
    /// Parses `typed`. A backslash is a slash, surrounding white space is dropped, and
    /// `~` and drives are refused. With mounts every path starts at the root, with or
    /// without a leading slash. Without mounts, a relative path starts at the working
    /// directory.
    pub(super) fn new(context: &Context, typed: &str) -> Result<Self, ToolError> {
        let path = match &context.scope {
            Some(scope) => scope.parse(typed),
            None => plain(context, typed).map_err(|problem| {
                let typed = typed.get(..typed.floor_char_boundary(PATH_BYTES));
                let root = context.backend.working_dir().to_string();
                Refusal::invalid_path(typed.unwrap_or_default(), problem, vec![root])
            }),
        };
        let path =
            path.map_err(|refusal| ToolError::fixable(respelled(&refusal, &[]).filesystem_text()))?;
        let shown = match typed.len() {
            1..=PATH_BYTES => printable(typed),
            _ => path.to_string(),
        };
        Ok(Self { path, shown })
    }

    /// Returns the message for the model if `error` comes from a policy.
    pub(super) fn refusal(&self, tool: &str, error: &Error) -> Option<ToolError> {
        refusal(tool, error, &[self])
    }
}

/// Returns the message for the model if `error` comes from a policy, with `paths` as
/// the model wrote them.
pub(super) fn refusal(tool: &str, error: &Error, paths: &[&ModelPath]) -> Option<ToolError> {
    let refusal = Refusal::of(error)?;
    let text = respelled(refusal, paths).filesystem_text_for(tool);
    // Builds a new error, because the class depends only on the kind.
    let class = ToolError::from(Error::new(error.kind(), "")).class();
    Some(failure(class, text))
}

/// Returns the refusal with its path as the model wrote it.
fn respelled(refusal: &Refusal, paths: &[&ModelPath]) -> Refusal {
    let shown = |path: &String| {
        let known = paths.iter().find(|known| known.path.as_str() == path);
        known.map_or_else(|| path.clone(), |known| known.shown.clone())
    };
    match refusal {
        Refusal::Outside { path, readable, .. } => Refusal::outside(shown(path), readable.clone()),
        Refusal::ReadOnly { path, writable, .. } => {
            Refusal::read_only(shown(path), writable.clone())
        }
        Refusal::MountRoot { path, .. } => Refusal::mount_root(shown(path)),
        Refusal::Suffix {
            path,
            suffix,
            allowed,
            ..
        } => Refusal::suffix(shown(path), suffix.clone(), allowed.clone()),
        Refusal::TooLarge {
            path, size, limit, ..
        } => Refusal::too_large(shown(path), *size, *limit),
        Refusal::InvalidPath {
            path,
            problem,
            readable,
            ..
        } => Refusal::invalid_path(printable(path), problem.clone(), readable.clone()),
        other => other.clone(),
    }
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

/// Escapes a path that contains control characters, which could disguise it.
fn printable(path: &str) -> String {
    match path.contains(char::is_control) {
        true => path.escape_debug().to_string(),
        false => path.to_owned(),
    }
}
