//! `edit_file`: one exact replacement.
//!
//! The backend makes the edit. What it answers is looked into only if it fails:
//! then the file is read to say what was wrong, or to find the text there with
//! other line ends than the model was shown.

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
use super::place::Place;
use super::read::{not_text, other};
use super::repr::preview;
use crate::args::filesystem as args;
use crate::tool::{Annotations, Builtin, Preview};
use crate::{Context, Reply, ToolError, ToolResult};

pub(crate) struct EditFile;

#[async_trait]
impl Builtin for EditFile {
    type Args = args::EditFile;
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
        let place = Place::new(context, &args.path)?;
        Ok(Intent::edit(place.path).accesses().collect())
    }

    fn words(args: &Self::Args) -> String {
        let (old, new) = (chars(&args.old_text), chars(&args.new_text));
        let path = &args.path;
        format!("Edit {path}: replace {old} chars with {new} chars")
    }

    async fn preview(context: &Context, args: &Self::Args) -> Preview {
        match Place::new(context, &args.path) {
            Ok(place) => Preview::editing(context, &place.path, |now| edited(now, args)).await,
            Err(_) => Preview::default(),
        }
    }

    fn refused(context: &Context, args: &Self::Args, error: Error) -> ToolError {
        match Place::new(context, &args.path) {
            Ok(place) => explain(&place, error),
            Err(other) => other,
        }
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let place = Place::new(context, &args.path)?;
        edit(context, &place, &args).await?;
        let (old, new) = (chars(&args.old_text), chars(&args.new_text));
        let shown = &place.shown;
        Ok(Reply::text(format!(
            "Edited {shown}: replaced {old} chars with {new} chars"
        )))
    }
}

async fn edit(context: &Context, place: &Place, args: &args::EditFile) -> Result<(), ToolError> {
    let (old, new) = (&args.old_text, &args.new_text);
    // Also where there is nothing to change: whether it may be is for the backend
    // to say.
    match replace(context, place, &[Edit::new(old, new)]).await {
        Ok(()) => return Ok(()),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::NoMatch | ErrorKind::MultipleMatches
            ) => {}
        Err(error) => return Err(explain(place, error)),
    }
    let text = read(context, place).await?;
    match look(&text, old, new) {
        Step::Done => Ok(()),
        // Nothing to search for: only an empty file has one place for it.
        Step::Fill => fill(context, place, new).await,
        Step::Retry(edit) => replace(context, place, &[edit])
            .await
            .map_err(|error| explain(place, error)),
        Step::Fail(reason, nearest) => Err(failed(place, old, &reason, &nearest)),
    }
}

/// What the file is to hold, if the edit can be made.
fn edited(now: &Bytes, args: &args::EditFile) -> Option<Bytes> {
    let (old, new) = (&*args.old_text, &*args.new_text);
    let plain = [Edit::new(old, new)];
    if let Ok((after, _)) = edit_bytes(now, &plain, &EditOptions::default()) {
        return Some(after);
    }
    let text = str::from_utf8(now).ok()?;
    match look(text, old, new) {
        Step::Fill => Some(new.to_owned().into()),
        Step::Retry(edit) => Some(apply(text, &[edit]).ok()?.text.into()),
        Step::Done | Step::Fail(..) => None,
    }
}

async fn replace(context: &Context, place: &Place, edits: &[Edit]) -> Result<(), Error> {
    let options = EditOptions::default();
    context.backend.edit(&place.path, edits, options).await?;
    Ok(())
}

async fn read(context: &Context, place: &Place) -> Result<String, ToolError> {
    let options = ReadOptions::default().max_bytes(EDIT_BYTES);
    let read = context.backend.read(&place.path, options).await;
    let bytes = read.map_err(|error| explain(place, error))?.data;
    String::from_utf8(bytes.into()).map_err(|_| ToolError::fixable(not_text(&place.shown, "edit")))
}

/// Puts `new` into a file that is empty, and still is when it is written.
async fn fill(context: &Context, place: &Place, new: &str) -> Result<(), ToolError> {
    let mode = WriteMode::IfUnchanged(ContentHash::of(b""));
    let options = WriteOptions::default().mode(mode);
    let written = context.backend.write(&place.path, new.into(), options);
    written.await.map_err(|error| explain(place, error))?;
    Ok(())
}

/// What is to be done about an edit that was not made.
enum Step {
    /// There is nothing to change.
    Done,
    /// The file is empty and takes the new text.
    Fill,
    /// The same edit in the file's own line ends.
    Retry(Edit),
    /// Say why not, and what is near.
    Fail(String, Vec<Candidate>),
}

fn look(text: &str, old: &str, new: &str) -> Step {
    let found = |count| Step::Fail(format!("text found {count} times (must be unique)"), vec![]);
    if old.is_empty() {
        return match chars(text) {
            0 if new.is_empty() => Step::Done,
            0 => Step::Fill,
            // Before each character and at the end.
            count => found(count + 1),
        };
    }
    // Whether the text is there once is all that counts: what it becomes is not.
    let probe = Edit::new(old, format!("{old}."));
    match apply(text, std::slice::from_ref(&probe)) {
        Err(EditError::MultipleMatches { count, .. }) => found(count),
        Ok(_) if old == new => Step::Done,
        // The file is not what it was when the edit failed.
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

/// The one piece of `text` that reads as `old` once every line end is `\n`, or
/// how many there are. The model was shown the file like that.
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

/// The byte of `text` that byte `at` of its normal form stands for.
fn original(text: &str, at: usize) -> usize {
    let mut seen = 0;
    let mut before = ' ';
    for (here, c) in text.char_indices() {
        // The `\r` of a pair is the one that counts.
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

/// `new` with the line ends that `actual` has.
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

fn failed(place: &Place, old: &str, reason: &str, nearest: &[Candidate]) -> ToolError {
    let shown = &place.shown;
    let searched = preview(old);
    let mut text = format!("Cannot edit '{shown}': {reason}.\nSearched for: {searched}");
    if !nearest.is_empty() {
        let nearest: Vec<_> = nearest.iter().map(Candidate::to_string).collect();
        text.push_str("\nNearest: ");
        text.push_str(&nearest.join("; "));
    }
    ToolError::fixable(text)
}

fn explain(place: &Place, error: Error) -> ToolError {
    if let Some(refused) = place.refusal(EditFile::NAME, &error) {
        return refused;
    }
    let shown = &place.shown;
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            ToolError::fixable(format!("File not found: {shown}"))
        }
        ErrorKind::IsADirectory => ToolError::fixable(format!("Not a file: {shown}")),
        ErrorKind::NotText => ToolError::fixable(not_text(shown, "edit")),
        _ => other("edit", place, error),
    }
}
