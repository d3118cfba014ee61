//! Edits of a file whose content the conversation has seen.

use backend_core::limits::EDIT_BYTES;
use backend_core::ops::{ContentHash, EditOutcome, ReadOptions};
use backend_core::text::{self, Edit};
use backend_core::{Error, ErrorKind};
use bytes::Bytes;

use crate::context::Context;
use crate::counted::counted;
use crate::files::diff::diff;
use crate::files::edit_hint::failed_edit;
use crate::files::model_path::ModelPath;
use crate::files::output::{DIFF_BYTES, EditOutput};
use crate::files::read_before_edit;
use crate::reply::{Reply, ToolError, ToolResult};
use crate::tracker::{HASHED_BYTES, SeenFile, Stamp};

/// A single call. It holds the lock of the file.
pub(super) struct Call<'a> {
    pub(super) context: &'a Context,
    pub(super) file: ModelPath,
    pub(super) edits: Vec<Edit>,
    pub(super) listed: bool,
    pub(super) seen: Option<SeenFile>,
}

impl Call<'_> {
    pub(super) async fn edit(&self) -> ToolResult {
        let options = read_before_edit::edit_options(self.seen.as_ref());
        let backend = &self.context.backend;
        let edited = backend.edit(&self.file.path, &self.edits, options);
        let outcome = match edited.await {
            Ok(outcome) => outcome,
            Err(error) => return Err(self.failure(error).await),
        };
        let (after, diff) = self.after(&outcome).unzip();
        let seen = match &after {
            Some(after) => SeenFile::hashed(after, outcome.hash),
            None => SeenFile::stamped(Stamp::Hash(outcome.hash)),
        };
        let tracker = &self.context.conversation.tracker;
        tracker.wrote(&self.file.path, seen);
        let count: usize = outcome.replacements.iter().sum();
        let shown = &self.file.shown;
        let output = self.output(&outcome.replacements, outcome.first_line, diff, false);
        let replaced = counted(count as u64, "occurrence");
        let text = format!("Edited {shown}: replaced {replaced}");
        Ok(Reply::text(text).data(&output))
    }

    /// Returns the text after the edit and the diff, if the text before is known. The
    /// hash proves that the text matches the file.
    fn after(&self, outcome: &EditOutcome) -> Option<(Bytes, String)> {
        let before = self.seen.as_ref()?.text()?;
        if outcome.size > HASHED_BYTES {
            return None;
        }
        let after = text::apply(before, &self.edits).ok()?.text;
        let shown = diff(before, &after, DIFF_BYTES);
        let after = Bytes::from(after);
        (ContentHash::of(&after) == outcome.hash).then_some((after, shown))
    }

    /// Returns the diff of the edit without applying it.
    pub(super) async fn preview(&self) -> ToolResult {
        let options = ReadOptions::default().max_bytes(EDIT_BYTES);
        let read = self.context.backend.read(&self.file.path, options).await;
        let now = read.map_err(|error| self.file.explain(error))?.data;
        read_before_edit::check_unchanged(&self.file, self.seen.as_ref(), &now)?;
        let before = str::from_utf8(&now).map_err(|_| self.file.not_utf8())?;
        let applied = match text::apply(before, &self.edits) {
            Ok(applied) => applied,
            Err(error) => {
                let told = failed_edit(&self.file, before, &self.edits, self.listed);
                return Err(told.unwrap_or_else(|| ToolError::fixable(error.to_string())));
            }
        };
        let room = self.context.options.limits.reply_bytes / 2;
        let shown = diff(before, &applied.text, DIFF_BYTES.min(room));
        let text = read_before_edit::dry_run_text(&self.file, &shown);
        let output = self.output(&applied.replacements, applied.first_line, Some(shown), true);
        Ok(Reply::text(text).data(&output))
    }

    fn output(
        &self,
        replacements: &[usize],
        first_line: u64,
        diff: Option<String>,
        dry_run: bool,
    ) -> EditOutput {
        EditOutput {
            path: self.file.path.as_str().to_owned(),
            replacements: replacements.iter().map(|count| *count as u64).collect(),
            first_line: Some(first_line),
            diff,
            dry_run,
        }
    }

    /// Explains an error: it shows what changed, or which lines were probably meant.
    async fn failure(&self, error: Error) -> ToolError {
        match (error.kind(), &self.seen) {
            (ErrorKind::Conflict, Some(seen)) => {
                read_before_edit::changed_error(self.context, &self.file, seen).await
            }
            (ErrorKind::Conflict, None) => read_before_edit::raced_error(&self.file),
            (ErrorKind::InvalidInput | ErrorKind::NoMatch | ErrorKind::MultipleMatches, _) => {
                let hint = self.hint().await;
                hint.unwrap_or_else(|| self.file.explain(error))
            }
            (ErrorKind::NotText, _) => self.file.not_utf8(),
            _ => self.file.explain(error),
        }
    }

    /// Finds the lines that were probably meant. The kept text equals the file, since
    /// the backend would otherwise have reported a conflict.
    async fn hint(&self) -> Option<ToolError> {
        if let Some(text) = self.seen.as_ref().and_then(SeenFile::text) {
            return failed_edit(&self.file, text, &self.edits, self.listed);
        }
        let options = ReadOptions::default().max_bytes(HASHED_BYTES);
        let backend = &self.context.non_interactive;
        let read = backend.read(&self.file.path, options).await;
        let data = read.ok()?.data;
        let text = str::from_utf8(&data).ok()?;
        failed_edit(&self.file, text, &self.edits, self.listed)
    }
}
