//! `edit_file`: replaces exact text.

use async_trait::async_trait;
use backend_core::derived::edit_bytes;
use backend_core::limits::EDIT_BYTES;
use backend_core::ops::{ContentHash, EditOptions, EditOutcome, ReadOptions};
use backend_core::text::{self, Edit};
use backend_core::{Error, ErrorKind};
use bytes::Bytes;
use permissions::Access;
use serde_json::Value;

use super::diff::diff;
use super::hint::failed_edit;
use super::output::{DIFF_BYTES, EditOutput, schema, value};
use super::{ModelPath, read_before_edit};
use crate::args::files as args;
use crate::counted::counted;
use crate::tool::{Annotations, Builtin, Preview, UpFront};
use crate::tracker::{HASHED_BYTES, Seen, Stamp};
use crate::{Context, Reply, ToolError, ToolResult};

/// Replaces exact text in a file.
#[derive(Debug)]
pub(crate) struct EditFileTool;

#[async_trait]
impl Builtin for EditFileTool {
    type Args = args::EditFileArgs;
    const NAME: &'static str = "edit_file";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        schema::<EditOutput>()
    }

    const UP_FRONT: UpFront = UpFront::IfInDoubt;

    fn accesses(context: &Context, args: &args::EditFileArgs) -> Result<Vec<Access>, ToolError> {
        let file = ModelPath::new(context, "path", &args.path)?;
        Ok(read_before_edit::edit_accesses(&file, args.dry_run))
    }

    async fn preview(context: &Context, args: &args::EditFileArgs) -> Preview {
        let Ok(file) = ModelPath::new(context, "path", &args.path) else {
            return Preview::default();
        };
        let edits = replacements(args.clone()).map(|(edits, _)| edits);
        let edited = |before: &Bytes| {
            let edited = edit_bytes(before, &edits.ok()?, &EditOptions::default());
            edited.ok().map(|(after, _)| after)
        };
        read_before_edit::edit_preview(context, &file, args.dry_run, edited).await
    }

    async fn run(context: &Context, args: args::EditFileArgs) -> ToolResult {
        let file = ModelPath::new(context, "path", &args.path)?;
        let dry_run = args.dry_run;
        let (edits, listed) = replacements(args)?;
        let _lock = context.lock_path(&file.path).await;
        let seen = read_before_edit::last_seen_or_unread(context, &file).await?;
        let call = Call {
            context,
            file,
            edits,
            listed,
            seen,
        };
        if dry_run {
            call.preview().await
        } else {
            call.edit().await
        }
    }
}

/// Returns the requested edits, and whether they were given as a list.
fn replacements(args: args::EditFileArgs) -> Result<(Vec<Edit>, bool), ToolError> {
    let edit = |old, new, replace_all| Edit {
        replace_all,
        ..Edit::new(old, new)
    };
    let single = args.old_string.is_some() || args.new_string.is_some();
    // Some models fill in every field, so an empty list beside a text is ignored.
    let edits = args.edits.filter(|edits| !edits.is_empty() || !single);
    match edits {
        Some(_) if single || args.replace_all == Some(true) => Err(ToolError::fixable(
            "edits cannot be combined with old_string, new_string or replace_all; give edits, or \
             old_string and new_string",
        )),
        Some(edits) if edits.is_empty() => Err(ToolError::fixable(
            "edits is empty; give at least one replacement",
        )),
        Some(edits) => {
            let edits = edits.into_iter();
            let edits = edits.map(|one| edit(one.old_string, one.new_string, one.replace_all));
            Ok((edits.collect(), true))
        }
        None => match (args.old_string, args.new_string) {
            (Some(old), Some(new)) => {
                let one = edit(old, new, args.replace_all.unwrap_or(false));
                Ok((vec![one], false))
            }
            (None, None) => Err(ToolError::fixable(
                "old_string and new_string are missing; give both, or edits",
            )),
            (None, _) => Err(ToolError::fixable(
                "old_string is missing; give the text to replace, exactly as in the file",
            )),
            (_, None) => Err(ToolError::fixable(
                "new_string is missing; give the text to put there, \"\" to delete",
            )),
        },
    }
}

/// A single call.
struct Call<'a> {
    context: &'a Context,
    file: ModelPath,
    edits: Vec<Edit>,
    listed: bool,
    seen: Option<Seen>,
}

impl Call<'_> {
    async fn edit(&self) -> ToolResult {
        let options = read_before_edit::edit_options(self.seen.as_ref());
        let edited = self
            .context
            .backend
            .edit(&self.file.path, &self.edits, options);
        let outcome = match edited.await {
            Ok(outcome) => outcome,
            Err(error) => return Err(self.failure(error).await),
        };
        let (after, diff) = self.after(&outcome).unzip();
        let seen = match &after {
            Some(after) => Seen::whole(after),
            None => Seen::stamped(Stamp::Hash(outcome.hash)),
        };
        self.context
            .conversation
            .tracker
            .wrote(&self.file.path, seen);
        let count: usize = outcome.replacements.iter().sum();
        let shown = &self.file.shown;
        let output = self.output(&outcome.replacements, outcome.first_line, diff, false);
        let replaced = counted(count as u64, "occurrence");
        let text = format!("Edited {shown}: replaced {replaced}");
        Ok(Reply::text(text).structured(output))
    }

    /// Returns the text after the edit and the diff, if the text before is known. The
    /// hash proves that the text matches the file.
    fn after(&self, outcome: &EditOutcome) -> Option<(Bytes, String)> {
        let before = self.seen.as_ref()?.text()?;
        if outcome.size > HASHED_BYTES {
            return None;
        }
        let after = text::apply(before, &self.edits).ok()?.text;
        let shown = diff(before, &after, DIFF_BYTES).text;
        let after = Bytes::from(after);
        (ContentHash::of(&after) == outcome.hash).then_some((after, shown))
    }

    /// Returns the diff of the edit without applying it.
    async fn preview(&self) -> ToolResult {
        let options = ReadOptions::default().max_bytes(EDIT_BYTES);
        let read = self.context.backend.read(&self.file.path, options).await;
        let now = read.map_err(|error| self.file.explain(error))?.data;
        read_before_edit::check_unchanged(&self.file, self.seen.as_ref(), &now)?;
        let before = str::from_utf8(&now).map_err(|_| not_utf8(&self.file))?;
        let applied = match text::apply(before, &self.edits) {
            Ok(applied) => applied,
            Err(error) => {
                let told = failed_edit(&self.file, before, &self.edits, self.listed);
                return Err(told.unwrap_or_else(|| ToolError::fixable(error.to_string())));
            }
        };
        let room = self.context.options.limits.reply_bytes / 2;
        let shown = diff(before, &applied.text, DIFF_BYTES.min(room)).text;
        let text = preview_text(&self.file, &shown);
        let output = self.output(&applied.replacements, applied.first_line, Some(shown), true);
        Ok(Reply::text(text).structured(output))
    }

    fn output(
        &self,
        replacements: &[usize],
        first_line: u64,
        diff: Option<String>,
        dry_run: bool,
    ) -> Value {
        value(&EditOutput {
            path: self.file.path.as_str().to_owned(),
            replacements: replacements.iter().map(|count| *count as u64).collect(),
            first_line: Some(first_line),
            diff,
            dry_run,
        })
    }

    /// Explains an error: it shows what changed, or which lines were probably meant.
    async fn failure(&self, error: Error) -> ToolError {
        match (error.kind(), &self.seen) {
            (ErrorKind::Conflict, Some(seen)) => {
                read_before_edit::changed_error(self.context, &self.file, seen).await
            }
            (ErrorKind::Conflict, None) => read_before_edit::raced_error(&self.file),
            (ErrorKind::InvalidInput | ErrorKind::NoMatch | ErrorKind::MultipleMatches, _) => {
                match self.hint().await {
                    Some(hint) => hint,
                    None => self.file.explain(error),
                }
            }
            (ErrorKind::NotText, _) => not_utf8(&self.file),
            _ => self.file.explain(error),
        }
    }

    /// Finds the lines that were probably meant. The kept text equals the file, since
    /// the backend would otherwise have reported a conflict.
    async fn hint(&self) -> Option<ToolError> {
        if let Some(text) = self.seen.as_ref().and_then(Seen::text) {
            return failed_edit(&self.file, text, &self.edits, self.listed);
        }
        let options = ReadOptions::default().max_bytes(HASHED_BYTES);
        let read = self
            .context
            .non_interactive
            .read(&self.file.path, options)
            .await;
        let data = read.ok()?.data;
        let text = str::from_utf8(&data).ok()?;
        failed_edit(&self.file, text, &self.edits, self.listed)
    }
}

/// Returns the text of a dry run.
pub(super) fn preview_text(file: &ModelPath, diff: &str) -> String {
    let shown = &file.shown;
    format!("Dry run, nothing was written. {shown} would change like this:\n{diff}")
}

/// Returns the error for a file that cannot be edited as text.
pub(super) fn not_utf8(file: &ModelPath) -> ToolError {
    let shown = &file.shown;
    ToolError::fixable(format!(
        "'{shown}' is not valid UTF-8 text and cannot be edited; nothing was changed. Replace \
         it with write_file, or change it with a command."
    ))
}
