//! [`Place`]: a path that a model typed, and what is said about it.

use backend_core::limits::PATH_BYTES;
use backend_core::{Error, PathError, Quoted, VPath};
use permissions::Refusal;

use super::failure;
use crate::{Context, ToolError};

/// A path that a model typed, and what it means.
#[derive(Debug)]
pub(super) struct Place {
    /// What it means.
    pub(super) path: VPath,
    /// What was typed: every text shows a path as the model spelled it.
    pub(super) shown: String,
}

impl Place {
    /// What `typed` means: a backslash is a slash, white space around it is
    /// dropped, and `~` and drives are refused. With mounts a path starts at the
    /// root whether it says so or not; without, a relative one starts at the
    /// working directory.
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

    /// What the model is told if `error` is a policy's.
    pub(super) fn refusal(&self, tool: &str, error: &Error) -> Option<ToolError> {
        refusal(tool, error, &[self])
    }
}

/// What the model is told if `error` is a policy's that is about one of `places`.
pub(super) fn refusal(tool: &str, error: &Error, places: &[&Place]) -> Option<ToolError> {
    let refusal = Refusal::of(error)?;
    let text = respelled(refusal, places).filesystem_text_for(tool);
    // Copied before anything of the error is lost: the kind decides the class.
    let class = ToolError::from(Error::new(error.kind(), "")).class();
    Some(failure(class, text))
}

/// The refusal with the path as the model spelled it.
fn respelled(refusal: &Refusal, places: &[&Place]) -> Refusal {
    let shown = |path: &String| {
        let place = places.iter().find(|place| place.path.as_str() == path);
        place.map_or_else(|| path.clone(), |place| place.shown.clone())
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

/// What `typed` means where there are no mounts.
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

/// A path that no control character lets look like something else.
fn printable(path: &str) -> String {
    match path.contains(char::is_control) {
        true => path.escape_debug().to_string(),
        false => path.to_owned(),
    }
}
