//! A window of characters of a file.

use backend_core::ops::ReadOptions;
use backend_core::{Error, ErrorKind};
use permissions::Refusal;
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::filesystem::ReadFileArgs;
use crate::context::Context;
use crate::files::char_window::{CharWindow, NotText, WindowText};
use crate::files::model_path::ModelPath;
use crate::files::output::json_text;
use crate::reply::{Reply, ToolError, ToolResult, fixable};

/// Number of bytes requested at a time.
const PIECE_BYTES: u64 = 256 * 1024;

/// Largest file whose characters are counted.
const COUNTED_BYTES: u64 = 256 * 1024 * 1024;

/// Bytes of the reply reserved for everything but the content.
const FRAME_BYTES: usize = 160;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ReadCharsOutput {
    /// The characters asked for.
    content: String,
    /// Whether more follow.
    truncated: bool,
    /// How many characters the file has.
    total_chars: u64,
    /// How many were skipped, as asked for.
    offset: u64,
    /// How many characters content has.
    chars_read: u64,
}

pub(super) async fn read(context: &Context, args: &ReadFileArgs) -> ToolResult {
    let (offset, max_chars) = check_window(args)?;
    let file = ModelPath::filesystem(context, &args.path)?;
    let budget = context.options.limits.reply_bytes;
    let window = CharWindow::new(offset, max_chars, budget.saturating_sub(FRAME_BYTES));
    let found = read_window(context, &file, window).await?;
    let result = ReadCharsOutput {
        truncated: offset.saturating_add(found.chars_read) < found.total_chars,
        content: found.content,
        total_chars: found.total_chars,
        offset,
        chars_read: found.chars_read,
    };
    Ok(Reply::text(json_text(&result)?).data(&result))
}

/// Returns the offset and the maximum number of characters.
pub(super) fn check_window(args: &ReadFileArgs) -> Result<(u64, u64), ToolError> {
    let non_negative = |field: &str, number: i64| {
        u64::try_from(number).map_err(|_| fixable!("{field} must be >= 0, got {number}"))
    };
    let offset = non_negative("offset", args.offset)?;
    Ok((offset, non_negative("max_chars", args.max_chars)?))
}

async fn read_window(
    context: &Context,
    file: &ModelPath,
    mut window: CharWindow,
) -> Result<WindowText, ToolError> {
    let binary = |NotText| file.not_text("read");
    let mut size = None;
    let mut start = 0;
    loop {
        let options = ReadOptions::default()
            .range(start..start + PIECE_BYTES)
            .max_bytes(PIECE_BYTES);
        let piece = match context.backend.read(&file.path, options).await {
            Ok(piece) => piece,
            Err(error) if start > 0 && error.kind() == ErrorKind::InvalidInput => {
                return Err(changed(file));
            }
            Err(error) => return Err(explain(file, error)),
        };
        if piece.size > COUNTED_BYTES {
            let refusal = Refusal::too_large(&file.shown, piece.size, COUNTED_BYTES);
            return Err(ToolError::fixable(refusal.filesystem_text()));
        }
        if *size.get_or_insert(piece.size) != piece.size {
            return Err(changed(file));
        }
        window.push(&piece.data).map_err(binary)?;
        start += piece.data.len() as u64;
        if start >= piece.size {
            return window.finish().map_err(binary);
        }
        if piece.data.is_empty() {
            return Err(changed(file));
        }
    }
}

fn changed(file: &ModelPath) -> ToolError {
    let shown = &file.shown;
    fixable!("Cannot read '{shown}': the file changed while it was read; read it again")
}

pub(super) fn explain(file: &ModelPath, error: Error) -> ToolError {
    file.explain_for((Tool::ReadFile, "read"), error, |shown, kind| match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Some(format!("File not found: {shown}")),
        // A range from the start is valid for any regular file.
        ErrorKind::IsADirectory | ErrorKind::InvalidInput => Some(format!("Not a file: {shown}")),
        _ => None,
    })
}
