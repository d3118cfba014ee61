//! `edit_file`: replaces exact text.

mod line_endings;
mod tracked;

use async_trait::async_trait;
use backend_core::derived::edit_bytes;
use backend_core::limits::EDIT_BYTES;
use backend_core::ops::{ContentHash, EditOptions, ReadOptions, WriteMode, WriteOptions};
use backend_core::text::{Candidate, Edit, apply};
use backend_core::{Error, ErrorKind};
use bytes::Bytes;
use permissions::Access;
use permissions::access::Intent;
use permissions::tool::Tool;

use self::line_endings::{Step, next_step};
use super::model_path::ModelPath;
use super::output::EditOutput;
use super::python_repr::preview;
use super::read_before_edit;
use crate::args::{console, filesystem};
use crate::context::Context;
use crate::reply::{Reply, ToolError, ToolResult};
use crate::tool::{Builtin, Preview};

/// Replaces exact text in a file that the conversation has read.
pub(crate) struct Console;

#[async_trait]
impl Builtin for Console {
    type Args = console::EditFileArgs;
    type Output = EditOutput;
    const TOOL: Tool = Tool::EditFile;
    const IN_DOUBT_ONLY: bool = true;

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        let file = ModelPath::console(context, "path", &args.path)?;
        Ok(read_before_edit::edit_accesses(&file, args.dry_run))
    }

    async fn preview(context: &Context, args: &Self::Args) -> Preview {
        let Ok(file) = ModelPath::console(context, "path", &args.path) else {
            return Preview::default();
        };
        let edits = replacements(args.clone()).map(|(edits, _)| edits);
        let edited = |before: &Bytes| {
            let edited = edit_bytes(before, &edits.ok()?, &EditOptions::default());
            edited.ok().map(|(after, _)| after)
        };
        read_before_edit::edit_preview(context, &file, args.dry_run, edited).await
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let file = ModelPath::console(context, "path", &args.path)?;
        let dry_run = args.dry_run;
        let (edits, listed) = replacements(args)?;
        let _lock = context.lock_path(&file.path).await;
        let seen = read_before_edit::last_seen_or_unread(context, &file).await?;
        let call = tracked::Call {
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
fn replacements(args: console::EditFileArgs) -> Result<(Vec<Edit>, bool), ToolError> {
    let edit = |old, new, replace_all| Edit {
        replace_all,
        ..Edit::new(old, new)
    };
    let single = args.old_string.is_some() || args.new_string.is_some();
    // Some models fill in every field, so an empty list beside a text is ignored.
    let edits = args.edits.filter(|edits| !edits.is_empty() || !single);
    let replace_all = args.replace_all.unwrap_or(false);
    let problem = match (edits, args.old_string, args.new_string) {
        (Some(_), ..) if single || replace_all => {
            "edits cannot be combined with old_string, new_string or replace_all; give edits, or \
             old_string and new_string"
        }
        (Some(edits), ..) if edits.is_empty() => "edits is empty; give at least one replacement",
        (Some(edits), ..) => {
            let edits = edits.into_iter();
            let edits = edits.map(|one| edit(one.old_string, one.new_string, one.replace_all));
            return Ok((edits.collect(), true));
        }
        (_, Some(old), Some(new)) => return Ok((vec![edit(old, new, replace_all)], false)),
        (_, None, None) => "old_string and new_string are missing; give both, or edits",
        (_, None, _) => "old_string is missing; give the text to replace, exactly as in the file",
        (_, _, None) => "new_string is missing; give the text to put there, \"\" to delete",
    };
    Err(ToolError::fixable(problem))
}

/// Replaces one exact text, whether or not the file was read.
pub(crate) struct Filesystem;

#[async_trait]
impl Builtin for Filesystem {
    type Args = filesystem::EditFileArgs;
    type Output = ();
    const TOOL: Tool = Console::TOOL;

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        let file = ModelPath::filesystem(context, &args.path)?;
        Ok(Intent::edit(file.path).accesses().collect())
    }

    fn call_description(args: &Self::Args) -> String {
        format!("Edit {}: replace {}", args.path, replaced(args))
    }

    async fn preview(context: &Context, args: &Self::Args) -> Preview {
        match ModelPath::filesystem(context, &args.path) {
            Ok(file) => Preview::editing(context, &file.path, |now| edited(now, args)).await,
            Err(_) => Preview::default(),
        }
    }

    fn explain_refusal(context: &Context, args: &Self::Args, error: Error) -> ToolError {
        ModelPath::filesystem(context, &args.path)
            .map_or_else(|other| other, |file| explain(&file, error))
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let file = ModelPath::filesystem(context, &args.path)?;
        edit(context, &file, &args).await?;
        let text = format!("Edited {}: replaced {}", file.shown, replaced(&args));
        Ok(Reply::text(text))
    }
}

/// Describes the size of a replacement.
fn replaced(args: &filesystem::EditFileArgs) -> String {
    let (old, new) = (args.old_text.chars(), args.new_text.chars());
    format!("{} chars with {} chars", old.count(), new.count())
}

/// Lets the backend apply the edit. If that fails, the file is read to explain the
/// failure, or to find the text with different line endings than the model was shown.
async fn edit(
    context: &Context,
    file: &ModelPath,
    args: &filesystem::EditFileArgs,
) -> Result<(), ToolError> {
    let (old, new) = (&args.old_text, &args.new_text);
    // Also without a change: the backend decides whether the file may be edited.
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
fn edited(now: &Bytes, args: &filesystem::EditFileArgs) -> Option<Bytes> {
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
    String::from_utf8(bytes.into()).map_err(|_| file.not_text("edit"))
}

/// Writes `new` to an empty file, provided that it is still empty.
async fn fill(context: &Context, file: &ModelPath, new: &str) -> Result<(), ToolError> {
    let mode = WriteMode::IfUnchanged(ContentHash::of(b""));
    let options = WriteOptions::default().mode(mode);
    let written = context.backend.write(&file.path, new.into(), options);
    written.await.map_err(|error| explain(file, error))?;
    Ok(())
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
    file.explain_for(
        (Filesystem::TOOL, "edit"),
        error,
        |shown, kind| match kind {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                Some(format!("File not found: {shown}"))
            }
            ErrorKind::IsADirectory => Some(format!("Not a file: {shown}")),
            ErrorKind::NotText => Some(file.not_text("edit").to_string()),
            _ => None,
        },
    )
}
