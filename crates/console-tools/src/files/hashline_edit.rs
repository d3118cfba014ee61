//! `hashline_edit`: changes lines named by number and hash.

use async_trait::async_trait;
use backend_core::ErrorKind;
use backend_core::limits::EDIT_BYTES;
use backend_core::ops::{ContentHash, EditOptions, ReadOptions, WriteMode, WriteOptions};
use backend_core::text::Edit;
use bytes::Bytes;
use permissions::Access;
use permissions::tool::Tool;

use super::diff::diff;
use super::model_path::ModelPath;
use super::output::{DIFF_BYTES, EditOutput};
use super::{hashline_adapter, read_before_edit};
use crate::args::console::{HashlineEditArgs, LineEdit};
use crate::context::Context;
use crate::reply::{Reply, ToolError, ToolResult, fixable};
use crate::tool::{Builtin, Preview};
use crate::tracker::SeenFile;

pub(crate) struct HashlineEditTool;

#[async_trait]
impl Builtin for HashlineEditTool {
    type Args = HashlineEditArgs;
    type Output = EditOutput;
    const TOOL: Tool = Tool::HashlineEdit;

    fn accesses(context: &Context, args: &HashlineEditArgs) -> Result<Vec<Access>, ToolError> {
        let file = ModelPath::console(context, "path", &args.path)?;
        Ok(read_before_edit::edit_accesses(&file, args.dry_run))
    }

    async fn preview(context: &Context, args: &HashlineEditArgs) -> Preview {
        let Ok(file) = ModelPath::console(context, "path", &args.path) else {
            return Preview::default();
        };
        let edits = line_edits(args.clone());
        let edited = |before: &Bytes| {
            let (edits, listed) = edits.ok()?;
            let text = str::from_utf8(before).ok()?;
            let after = hashline_adapter::apply(text, &edits, listed).ok()?.text;
            (after != text).then(|| after.into())
        };
        read_before_edit::edit_preview(context, &file, args.dry_run, edited).await
    }

    async fn run(context: &Context, args: HashlineEditArgs) -> ToolResult {
        let file = ModelPath::console(context, "path", &args.path)?;
        let dry_run = args.dry_run;
        let (edits, listed) = line_edits(args)?;
        let _lock = context.lock_path(&file.path).await;
        let seen = read_before_edit::last_seen_or_unread(context, &file).await?;
        let options = ReadOptions::default().max_bytes(EDIT_BYTES);
        let read = context.backend.read(&file.path, options).await;
        let before = read.map_err(|error| file.explain(error))?.data;
        read_before_edit::check_unchanged(&file, seen.as_ref(), &before)?;
        let text = str::from_utf8(&before).map_err(|_| file.not_utf8())?;
        let applied = hashline_adapter::apply(text, &edits, listed).map_err(ToolError::fixable)?;
        if applied.text == text {
            return Err(ToolError::fixable(
                "the lines are already as new_content says; change it or leave the edit out",
            ));
        }
        let room = DIFF_BYTES.min(context.options.limits.reply_bytes / 2);
        let shown = diff(text, &applied.text, room);
        let reply = if dry_run {
            read_before_edit::dry_run_text(&file, &shown)
        } else {
            let after = Bytes::from(applied.text);
            replace(context, &file, &before, text, &after).await?;
            let tracker = &context.conversation.tracker;
            tracker.wrote(&file.path, SeenFile::whole(&after));
            format!("Edited {}: {}", file.shown, applied.summary)
        };
        let output = EditOutput {
            path: file.path.as_str().to_owned(),
            replacements: applied.lines,
            first_line: applied.first_line,
            diff: Some(shown),
            dry_run,
        };
        Ok(Reply::text(reply).data(&output))
    }
}

/// Replaces the text of an unchanged file by an edit, so that the approver sees a diff.
async fn replace(
    context: &Context,
    file: &ModelPath,
    before: &Bytes,
    text: &str,
    after: &Bytes,
) -> Result<(), ToolError> {
    let expected = ContentHash::of(before);
    let new = str::from_utf8(after).map_err(|_| file.not_utf8())?;
    let backend = &context.backend;
    let done = if text.is_empty() {
        // There is no text to replace in an empty file.
        let options = WriteOptions::default().mode(WriteMode::IfUnchanged(expected));
        let written = backend.write(&file.path, after.clone().into(), options);
        written.await.map(drop)
    } else {
        let options = EditOptions::default().expected(expected);
        let edits = [Edit::new(text, new)];
        let edited = backend.edit(&file.path, &edits, options);
        edited.await.map(drop)
    };
    match done {
        Err(error) if error.kind() == ErrorKind::Conflict => {
            let seen = SeenFile::whole(before);
            Err(read_before_edit::changed_error(context, file, &seen).await)
        }
        done => done.map_err(|error| file.explain(error)),
    }
}

/// Returns the requested edits, and whether they were given as a list.
fn line_edits(args: HashlineEditArgs) -> Result<(Vec<LineEdit>, bool), ToolError> {
    let given = [
        ("start_line", args.start_line.is_some()),
        ("start_hash", args.start_hash.is_some()),
        ("new_content", args.new_content.is_some()),
        ("end_line", args.end_line.is_some()),
        ("end_hash", args.end_hash.is_some()),
        ("insert_after", args.insert_after.is_some()),
    ];
    let names = |fields: &[(&'static str, bool)], wanted: bool| {
        let fields = fields.iter().filter(|(_, given)| *given == wanted);
        fields.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    if let Some(edits) = args.edits.filter(|edits| !edits.is_empty()) {
        return match names(&given, true).as_str() {
            "" => Ok((edits, true)),
            given => Err(fixable!(
                "edits cannot be combined with {given}; give either"
            )),
        };
    }
    let (Some(start_line), Some(start_hash), Some(new_content)) =
        (args.start_line, args.start_hash, args.new_content)
    else {
        let missing = names(&given[..3], false);
        return Err(fixable!(
            "{missing} must be given; copy the line number and hash that read_file shows, or give edits"
        ));
    };
    let edit = LineEdit {
        start_line,
        start_hash,
        new_content,
        end_line: args.end_line,
        end_hash: args.end_hash,
        insert_after: args.insert_after.unwrap_or(false),
    };
    Ok((vec![edit], false))
}
