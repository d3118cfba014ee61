//! `edit_file`: one exact replacement.
//!
//! The backend applies the edit. If that fails, the file is read to explain the
//! failure, or to find the text with different line endings than the model was shown.

use async_trait::async_trait;
use backend_core::derived::edit_bytes;
use backend_core::limits::EDIT_BYTES;
use backend_core::ops::{ContentHash, EditOptions, ReadOptions, WriteMode, WriteOptions};
use backend_core::text::{Candidate, Edit, EditError, apply};
use backend_core::{Error, ErrorKind};
use bytes::Bytes;
use permissions::Access;
use permissions::access::Intent;
use serde_json::Value;

use super::chars;
use super::model_path::ModelPath;
use super::read_file::{not_text, other_error};
use super::repr::preview;
use crate::args::filesystem as args;
use crate::tool::{Annotations, Builtin, Preview};
use crate::{Context, Reply, ToolError, ToolResult};

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
        None
    }

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        let file = ModelPath::new(context, &args.path)?;
        Ok(Intent::edit(file.path).accesses().collect())
    }

    fn call_description(args: &Self::Args) -> String {
        let (old, new) = (chars(&args.old_text), chars(&args.new_text));
        let path = &args.path;
        format!("Edit {path}: replace {old} chars with {new} chars")
    }

    async fn preview(context: &Context, args: &Self::Args) -> Preview {
        match ModelPath::new(context, &args.path) {
            Ok(file) => Preview::editing(context, &file.path, |now| edited(now, args)).await,
            Err(_) => Preview::default(),
        }
    }

    fn explain_refusal(context: &Context, args: &Self::Args, error: Error) -> ToolError {
        match ModelPath::new(context, &args.path) {
            Ok(file) => explain(&file, error),
            Err(other) => other,
        }
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let file = ModelPath::new(context, &args.path)?;
        edit(context, &file, &args).await?;
        let (old, new) = (chars(&args.old_text), chars(&args.new_text));
        let shown = &file.shown;
        Ok(Reply::text(format!(
            "Edited {shown}: replaced {old} chars with {new} chars"
        )))
    }
}

async fn edit(
    context: &Context,
    file: &ModelPath,
    args: &args::EditFileArgs,
) -> Result<(), ToolError> {
    let (old, new) = (&args.old_text, &args.new_text);
    // Also if there is nothing to change: the backend decides whether the file may be
    // edited.
    match replace(context, file, &[Edit::new(old, new)]).await {
        Ok(()) => return Ok(()),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::NoMatch | ErrorKind::MultipleMatches
            ) => {}
        Err(error) => return Err(explain(file, error)),
    }
    let text = read(context, file).await?;
    match next_step(&text, old, new) {
        Step::Done => Ok(()),
        // There is no text to search for. Only an empty file has a unique position.
        Step::Fill => fill(context, file, new).await,
        Step::Retry(edit) => replace(context, file, &[edit])
            .await
            .map_err(|error| explain(file, error)),
        Step::Fail(reason, nearest) => Err(failed(file, old, &reason, &nearest)),
    }
}

/// Returns the content after the edit, or `None` if it fails.
fn edited(now: &Bytes, args: &args::EditFileArgs) -> Option<Bytes> {
    let (old, new) = (&*args.old_text, &*args.new_text);
    let plain = [Edit::new(old, new)];
    if let Ok((after, _)) = edit_bytes(now, &plain, &EditOptions::default()) {
        return Some(after);
    }
    let text = str::from_utf8(now).ok()?;
    match next_step(text, old, new) {
        Step::Fill => Some(new.to_owned().into()),
        Step::Retry(edit) => Some(apply(text, &[edit]).ok()?.text.into()),
        Step::Done | Step::Fail(..) => None,
    }
}

async fn replace(context: &Context, file: &ModelPath, edits: &[Edit]) -> Result<(), Error> {
    let options = EditOptions::default();
    context.backend.edit(&file.path, edits, options).await?;
    Ok(())
}

async fn read(context: &Context, file: &ModelPath) -> Result<String, ToolError> {
    let options = ReadOptions::default().max_bytes(EDIT_BYTES);
    let read = context.backend.read(&file.path, options).await;
    let bytes = read.map_err(|error| explain(file, error))?.data;
    String::from_utf8(bytes.into()).map_err(|_| ToolError::fixable(not_text(&file.shown, "edit")))
}

/// Writes `new` to an empty file, provided that it is still empty.
async fn fill(context: &Context, file: &ModelPath, new: &str) -> Result<(), ToolError> {
    let mode = WriteMode::IfUnchanged(ContentHash::of(b""));
    let options = WriteOptions::default().mode(mode);
    let written = context.backend.write(&file.path, new.into(), options);
    written.await.map_err(|error| explain(file, error))?;
    Ok(())
}

/// The next step after a failed edit.
enum Step {
    /// There is nothing to change.
    Done,
    /// The file is empty: write the new text.
    Fill,
    /// Repeat the edit with the line endings of the file.
    Retry(Edit),
    /// Report the reason and the nearest text.
    Fail(String, Vec<Candidate>),
}

fn next_step(text: &str, old: &str, new: &str) -> Step {
    let found = |count| Step::Fail(format!("text found {count} times (must be unique)"), vec![]);
    if old.is_empty() {
        return match chars(text) {
            0 if new.is_empty() => Step::Done,
            0 => Step::Fill,
            // An empty text occurs before each character and at the end.
            count => found(count + 1),
        };
    }
    // Only tests whether the text occurs once. The replacement does not matter, but
    // must differ.
    let probe = Edit::new(old, format!("{old}."));
    match apply(text, std::slice::from_ref(&probe)) {
        Err(EditError::MultipleMatches { count, .. }) => found(count),
        Ok(_) if old == new => Step::Done,
        // The file has changed since the edit failed.
        Ok(_) => Step::Retry(Edit::new(old, new)),
        Err(EditError::NoMatch { candidates, .. }) => match in_its_line_ends(text, old) {
            Ok(_) if old == new => Step::Done,
            Ok(actual) => Step::Retry(Edit::new(actual, with_ends_of(actual, new))),
            Err(0) => Step::Fail("text not found in file".to_owned(), candidates),
            Err(count) => found(count),
        },
        Err(error) => Step::Fail(error.to_string(), vec![]),
    }
}

/// Returns the only part of `text` that equals `old` after all line endings are
/// normalized to `\n`, or the number of such parts. The model was shown the normalized
/// file.
fn in_its_line_ends<'a>(text: &'a str, old: &str) -> Result<&'a str, usize> {
    if !text.contains('\r') {
        return Err(0);
    }
    let old = normal(old);
    let whole = normal(text);
    let mut starts = whole.match_indices(&old).map(|(start, _)| start);
    let Some(start) = starts.next() else {
        return Err(0);
    };
    match starts.count() {
        0 => {}
        more => return Err(more + 1),
    }
    let end = start + old.len();
    let from = original(text, start);
    let to = original(text, end);
    text.get(from..to).ok_or(0)
}

fn normal(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Maps byte `at` of the normalized text to its position in `text`.
fn original(text: &str, at: usize) -> usize {
    let mut seen = 0;
    let mut before = ' ';
    for (here, c) in text.char_indices() {
        // A pair counts at its `\r`.
        let is_second = before == '\r' && c == '\n';
        if seen == at && !is_second {
            return here;
        }
        if !is_second {
            seen += c.len_utf8();
        }
        before = c;
    }
    text.len()
}

/// Returns `new` with the line endings of `actual`.
fn with_ends_of(actual: &str, new: &str) -> String {
    let new = normal(new);
    if actual.contains("\r\n") {
        new.replace('\n', "\r\n")
    } else if actual.contains('\r') {
        new.replace('\n', "\r")
    } else {
        new
    }
}

fn failed(file: &ModelPath, old: &str, reason: &str, nearest: &[Candidate]) -> ToolError {
    let shown = &file.shown;
    let searched = preview(old);
    let mut text = format!("Cannot edit '{shown}': {reason}.\nSearched for: {searched}");
    if !nearest.is_empty() {
        let nearest: Vec<_> = nearest.iter().map(Candidate::to_string).collect();
        text.push_str("\nNearest: ");
        text.push_str(&nearest.join("; "));
    }
    ToolError::fixable(text)
}

fn explain(file: &ModelPath, error: Error) -> ToolError {
    if let Some(refused) = file.refusal(EditFileTool::NAME, &error) {
        return refused;
    }
    let shown = &file.shown;
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            ToolError::fixable(format!("File not found: {shown}"))
        }
        ErrorKind::IsADirectory => ToolError::fixable(format!("Not a file: {shown}")),
        ErrorKind::NotText => ToolError::fixable(not_text(shown, "edit")),
        _ => other_error("edit", file, error),
    }
}
