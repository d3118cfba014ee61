//! Refuses to change a file that differs from what the conversation last saw.

use backend_core::Error;
use backend_core::ops::{ContentHash, EditOptions, ReadOptions, StatOptions};
use bytes::Bytes;
use permissions::Access;
use permissions::access::Intent;

use super::diff::diff;
use super::model_path::ModelPath;
use crate::context::Context;
use crate::counted::counted;
use crate::reply::{ToolError, fixable};
use crate::tool::Preview;
use crate::tracker::{HASHED_BYTES, SeenFile, Stamp, count_lines};

/// Maximum size of the diff in a refusal, in bytes.
const CHANGE_BYTES: usize = 4 * 1024;

/// Returns the tracked state of a file that is about to be changed. The caller holds
/// the file's lock.
///
/// The backend compares a file tracked by its hash, at the moment of the change: see
/// [`edit_options`]. A file tracked by size and modification time is compared here, so a
/// change between this check and the edit goes unnoticed.
pub(super) async fn last_seen(
    context: &Context,
    file: &ModelPath,
) -> Result<Option<SeenFile>, ToolError> {
    let Some(seen) = context.conversation.tracker.seen(&file.path) else {
        return Ok(None);
    };
    if let Stamp::Stat { .. } = seen.stamp {
        let backend = &context.non_interactive;
        let found = backend.stat(&file.path, StatOptions::default()).await;
        let entry = Error::none_if_missing(found).map_err(|error| file.explain(error))?;
        if entry.is_some_and(|entry| Stamp::of_entry(&entry) != seen.stamp) {
            return Err(changed_error(context, file, &seen).await);
        }
    }
    Ok(Some(seen))
}

/// Returns the tracked state, or an error for an unread file if the options forbid it.
pub(super) async fn last_seen_or_unread(
    context: &Context,
    file: &ModelPath,
) -> Result<Option<SeenFile>, ToolError> {
    let seen = last_seen(context, file).await?;
    if seen.is_none() && context.options.require_read_before_edit {
        return Err(unread_error(file));
    }
    Ok(seen)
}

pub(super) fn unread_error(file: &ModelPath) -> ToolError {
    let shown = &file.shown;
    fixable!("'{shown}' has not been read yet; read it with read_file first, then change it")
}

/// Returns the accesses of an edit, or of its dry run.
pub(super) fn edit_accesses(file: &ModelPath, dry_run: bool) -> Vec<Access> {
    let path = file.path.clone();
    if dry_run {
        Intent::read(path).accesses().collect()
    } else {
        Intent::edit(path).accesses().collect()
    }
}

/// Builds the preview of an edit, or of its dry run, for the approver. `edited` returns
/// the text after the edit, or `None` if it fails.
pub(super) async fn edit_preview(
    unguarded: &Context,
    file: &ModelPath,
    dry_run: bool,
    edited: impl FnOnce(&Bytes) -> Option<Bytes> + Send,
) -> Preview {
    let seen = unguarded.conversation.tracker.seen(&file.path);
    if seen.is_none() && unguarded.options.require_read_before_edit {
        // Refused before any access.
        return Preview::default().with_accesses([]);
    }
    if dry_run {
        return Preview::reading(&file.path);
    }
    let edited = |before: &Bytes| {
        check_unchanged(file, seen.as_ref(), before).ok()?;
        edited(before)
    };
    Preview::editing(unguarded, &file.path, edited).await
}

pub(super) fn dry_run_text(file: &ModelPath, diff: &str) -> String {
    let shown = &file.shown;
    format!("Dry run, nothing was written. {shown} would change like this:\n{diff}")
}

/// Returns edit options that detect a concurrent change.
pub(super) fn edit_options(seen: Option<&SeenFile>) -> EditOptions {
    match seen.and_then(SeenFile::hash) {
        Some(hash) => EditOptions::default().expected(hash),
        None => EditOptions::default(),
    }
}

/// Refuses content that differs from what was seen.
pub(super) fn check_unchanged(
    file: &ModelPath,
    seen: Option<&SeenFile>,
    now: &Bytes,
) -> Result<(), ToolError> {
    match seen {
        Some(seen) if seen.hash().is_some_and(|hash| hash != ContentHash::of(now)) => {
            Err(refusal(file, Some(seen), Some(now)))
        }
        _ => Ok(()),
    }
}

/// Returns the error for a file that has changed, with the changes if they are known.
pub(super) async fn changed_error(
    context: &Context,
    file: &ModelPath,
    seen: &SeenFile,
) -> ToolError {
    let options = ReadOptions::default().max_bytes(HASHED_BYTES);
    let now = context.non_interactive.read(&file.path, options).await;
    let now = now.ok().map(|bytes| bytes.data);
    refusal(file, Some(seen), now.as_ref())
}

pub(super) fn raced_error(file: &ModelPath) -> ToolError {
    refusal(file, None, None)
}

fn refusal(file: &ModelPath, seen: Option<&SeenFile>, now: Option<&Bytes>) -> ToolError {
    let shown = &file.shown;
    let hash = now.map(|now| ContentHash::of(now));
    let Some(seen) = seen.filter(|seen| hash.is_none() || seen.hash() != hash) else {
        return fixable!("'{shown}' was changed concurrently, and nothing was written; try again");
    };
    let mut text = format!(
        "'{shown}' changed since you last read it. Read it again before editing so your change \
         applies to the current contents."
    );
    if let Some(what) = now.and_then(|now| what_changed(seen, now)) {
        text.push_str(" What changed:\n");
        text.push_str(&what);
    }
    ToolError::fixable(text)
}

/// Returns a diff if both texts are available, else the old and new sizes.
fn what_changed(seen: &SeenFile, now: &Bytes) -> Option<String> {
    if let (Some(before), Ok(after)) = (seen.text(), str::from_utf8(now)) {
        return Some(diff(before, after, CHANGE_BYTES));
    }
    let lines = counted(count_lines(now), "line");
    let before = match (seen.lines, seen.stamp) {
        (Some(before), _) => format!("it had {}", counted(before, "line")),
        (None, Stamp::Stat { size, .. }) => format!("it had {}", counted(size, "byte")),
        (None, Stamp::Hash(_) | Stamp::Content) => return Some(format!("it has {lines} now")),
    };
    Some(format!(
        "{before}, it has {lines} and {} now",
        counted(now.len() as u64, "byte")
    ))
}
