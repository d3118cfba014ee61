//! `read_file`: a window of characters.

use async_trait::async_trait;
use backend_core::ops::ReadOptions;
use backend_core::{Error, ErrorKind};
use permissions::access::Intent;
use permissions::approval::Effect;
use permissions::{Access, Refusal};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::failure;
use super::model_path::ModelPath;
use super::window::{CharWindow, NotText, WindowText};
use crate::args::filesystem as args;
use crate::tool::{Annotations, Builtin, Preview, UpFront};
use crate::{Context, Reply, ToolError, ToolResult};

/// Number of bytes requested at a time.
const PIECE_BYTES: u64 = 256 * 1024;

/// Largest file whose characters are counted.
const COUNTED_BYTES: u64 = 256 * 1024 * 1024;

/// Bytes of the reply reserved for everything but the content.
const FRAME_BYTES: usize = 160;

/// The result of `read_file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
struct ReadResult {
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

pub(crate) struct ReadFileTool;

#[async_trait]
impl Builtin for ReadFileTool {
    type Args = args::ReadFileArgs;
    const NAME: &'static str = "read_file";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        Some(crate::definition::schema_of_data::<ReadResult>())
    }

    // A file is read in pieces.
    const UP_FRONT: UpFront = UpFront::IfInDoubt;

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        non_negative("offset", args.offset)?;
        non_negative("max_chars", args.max_chars)?;
        let file = ModelPath::new(context, &args.path)?;
        Ok(Intent::read(file.path).accesses().collect())
    }

    fn call_description(args: &Self::Args) -> String {
        format!("Read from {}", args.path)
    }

    async fn preview(_: &Context, args: &Self::Args) -> Preview {
        Preview::new(Effect::read(&*args.path))
    }

    fn explain_refusal(context: &Context, args: &Self::Args, error: Error) -> ToolError {
        match ModelPath::new(context, &args.path) {
            Ok(file) => explain(&file, error),
            Err(other) => other,
        }
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let offset = non_negative("offset", args.offset)?;
        let max_chars = non_negative("max_chars", args.max_chars)?;
        let file = ModelPath::new(context, &args.path)?;
        let budget = context.options.limits.reply_bytes;
        let window = CharWindow::new(offset, max_chars, budget.saturating_sub(FRAME_BYTES));
        let found = read(context, &file, window).await?;
        let result = ReadResult {
            truncated: offset.saturating_add(found.chars_read) < found.total_chars,
            content: found.content,
            total_chars: found.total_chars,
            offset,
            chars_read: found.chars_read,
        };
        json(&result)
    }
}

/// Returns a value as JSON, both as text and as structured data.
pub(super) fn json(value: &impl Serialize) -> ToolResult {
    let cannot = |error| ToolError::environment(format!("the reply cannot be written: {error}"));
    let text = serde_json::to_string(value).map_err(cannot)?;
    let value = serde_json::to_value(value).map_err(cannot)?;
    Ok(Reply::text(text).structured(value))
}

fn non_negative(field: &str, number: i64) -> Result<u64, ToolError> {
    u64::try_from(number)
        .map_err(|_| ToolError::fixable(format!("{field} must be >= 0, got {number}")))
}

async fn read(
    context: &Context,
    file: &ModelPath,
    mut window: CharWindow,
) -> Result<WindowText, ToolError> {
    let binary = |NotText| ToolError::fixable(not_text(&file.shown, "read"));
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
    ToolError::fixable(format!(
        "Cannot read '{shown}': the file changed while it was read; read it again"
    ))
}

/// Returns the message for a file that is not text.
pub(super) fn not_text(shown: &str, verb: &str) -> String {
    format!(
        "Cannot {verb} '{shown}': file appears to be binary or not UTF-8 encoded.\n\
         This tool only {verb}s text files. For binary files, pass them as attachments."
    )
}

/// Converts an error of reading a file.
pub(super) fn explain(file: &ModelPath, error: Error) -> ToolError {
    if let Some(refused) = file.refusal(ReadFileTool::NAME, &error) {
        return refused;
    }
    let shown = &file.shown;
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            ToolError::fixable(format!("File not found: {shown}"))
        }
        // A range from the start is always valid, so invalid input means that it is not
        // a regular file.
        ErrorKind::IsADirectory | ErrorKind::InvalidInput => {
            ToolError::fixable(format!("Not a file: {shown}"))
        }
        _ => other_error("read", file, error),
    }
}

/// Converts any other failure. The text omits details that only the host may know.
pub(super) fn other_error(verb: &str, file: &ModelPath, error: Error) -> ToolError {
    let message = format!("Cannot {verb} '{}': {}", file.shown, error.message());
    failure(ToolError::from(error).class(), message)
}
