//! Lines of a file, or the picture or document that it holds.

use std::borrow::Cow;

use backend_core::limits::EDIT_BYTES;
use backend_core::ops::{ReadOptions, StatOptions, TextOptions};
use backend_core::text::{SNIFF_BYTES, WindowError, window};
use backend_core::{Error, ErrorKind};
use bytes::Bytes;

use crate::args::console::ReadFileArgs;
use crate::context::Context;
use crate::counted::counted;
use crate::files::hashline_adapter;
use crate::files::model_path::ModelPath;
use crate::files::numbered_lines::{Budget, ShownLines, numbered};
use crate::files::output::{ReadKind, ReadOutput};
use crate::media::{Media, ScaleError, scale};
use crate::number_bounds::at_least;
use crate::options::EditFormat;
use crate::reply::{Block, Reply, ToolError, ToolResult, fixable};
use crate::tracker::{HASHED_BYTES, SeenFile, Stamp};

/// Reads the file, and records what the conversation has seen of it.
pub(super) async fn read(context: &Context, args: &ReadFileArgs) -> ToolResult {
    let limits = &context.options.limits;
    let limit = match args.limit {
        None => limits.read_lines,
        Some(limit) => usize::try_from(at_least("limit", limit, 1)?)
            .unwrap_or(usize::MAX)
            .min(limits.read_lines),
    };
    let call = Call {
        context,
        file: ModelPath::console(context, "path", &args.path)?,
        offset: at_least("offset", args.offset, 0)?,
        limit: limit.max(1),
        budget: Budget::of(limits),
    };
    // Anything learnt during the read is newer than its result.
    let since = context.conversation.tracker.now();
    let (reply, seen) = call.read().await?;
    if let Some(seen) = seen {
        let tracker = &context.conversation.tracker;
        tracker.read(&call.file.path, since, seen);
    }
    Ok(reply)
}

/// A call with checked arguments.
struct Call<'a> {
    context: &'a Context,
    file: ModelPath,
    offset: u64,
    limit: usize,
    budget: Budget,
}

impl Call<'_> {
    /// Reads the file: a small one whole, so that the tracked state is that of the reply.
    async fn read(&self) -> Result<(Reply, Option<SeenFile>), ToolError> {
        match self.bytes(HASHED_BYTES).await {
            Ok(data) => {
                let reply = match Media::sniff(&data) {
                    Some(media) if self.shown(media).0 => self.media(media, data.clone()).await?,
                    media => self.lines(media, &data)?,
                };
                Ok((reply, Some(SeenFile::whole(&data))))
            }
            Err(error) if error.kind() == ErrorKind::TooLarge => self.read_large().await,
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Reads a large file. It is tracked by size and modification time from before the
    /// read. If those cannot be read without asking the user, it stays untracked.
    async fn read_large(&self) -> Result<(Reply, Option<SeenFile>), ToolError> {
        let path = &self.file.path;
        let non_interactive = &self.context.non_interactive;
        let entry = non_interactive.stat(path, StatOptions::default()).await;
        let seen = entry.map(|entry| SeenFile::stamped(Stamp::of_entry(&entry)));
        let seen = seen.ok();
        let head = ReadOptions::default().range(0..SNIFF_BYTES as u64);
        let head = self.context.backend.read(path, head).await;
        let head = head.map_err(|error| self.explain(error))?;
        let (head, size) = (head.data, head.size);
        let media = Media::sniff(&head);
        if let Some(media) = media.filter(|media| self.shown(*media).0) {
            self.check_size(media, size)?;
            let data = self.bytes(self.shown(media).1).await;
            let data = data.map_err(|error| self.explain(error))?;
            return Ok((self.media(media, data).await?, seen));
        }
        self.check_text(media, &head, size)?;
        if self.context.options.edit_format == EditFormat::Hashline && size <= EDIT_BYTES {
            let data = self.bytes(EDIT_BYTES).await;
            let data = data.map_err(|error| self.explain(error))?;
            return Ok((self.lines(None, &data)?, Some(SeenFile::whole(&data))));
        }
        Ok((self.large_lines(size).await?, seen))
    }

    async fn bytes(&self, max_bytes: u64) -> Result<Bytes, Error> {
        let options = ReadOptions::default().max_bytes(max_bytes);
        let read = self.context.backend.read(&self.file.path, options).await;
        Ok(read?.data)
    }

    /// Shows lines of a file in memory.
    fn lines(&self, media: Option<Media>, data: &Bytes) -> ToolResult {
        self.check_text(media, data, data.len() as u64)?;
        if self.context.options.edit_format == EditFormat::Hashline
            && let Ok(text) = str::from_utf8(data)
        {
            let shown = hashline_adapter::render(text, self.offset, self.limit, self.budget);
            return Ok(self.reply(shown.map_err(|lines| self.past_end(lines))?));
        }
        let window = window(data, self.window().count_total(true));
        let window = window.map_err(|error| match error {
            WindowError::PastEnd { lines, .. } => self.past_end(lines),
            WindowError::NotText => self.not_text(media, data.len() as u64),
            other @ WindowError::ZeroLimit => ToolError::fixable(other.to_string()),
        })?;
        Ok(self.reply(numbered(&window, self.budget)))
    }

    fn window(&self) -> TextOptions {
        TextOptions::default()
            .offset(self.offset)
            .limit(self.limit)
            .max_line_bytes(self.budget.line_bytes)
            .max_bytes(self.budget.bytes)
    }

    /// Shows lines of a file that is too large for memory.
    async fn large_lines(&self, size: u64) -> ToolResult {
        let backend = &self.context.backend;
        match backend.read_text(&self.file.path, self.window()).await {
            Ok(window) => Ok(self.reply(numbered(&window, self.budget))),
            Err(error) if error.kind() == ErrorKind::NotText => Err(self.not_text(None, size)),
            Err(error) if error.kind() == ErrorKind::InvalidInput && self.offset > 0 => {
                let count = TextOptions::default().limit(1).count_total(true);
                let counted = backend.read_text(&self.file.path, count).await;
                match counted.ok().and_then(|window| window.total_lines) {
                    Some(lines) if lines <= self.offset => Err(self.past_end(lines)),
                    _ => Err(self.explain(error)),
                }
            }
            Err(error) => Err(self.explain(error)),
        }
    }

    fn reply(&self, shown: ShownLines) -> Reply {
        let output = ReadOutput {
            path: self.file.path.as_str().to_owned(),
            kind: ReadKind::Text,
            first_line: Some(self.offset + 1),
            lines: Some(shown.lines),
            total_lines: shown.total,
            next_offset: shown.next,
            ..ReadOutput::default()
        };
        let text = if shown.lines == 0 {
            "(empty file)".to_owned()
        } else {
            shown.with_notes(self.budget)
        };
        Reply::text(text).data(&output)
    }

    /// Shows a picture or a document in memory.
    async fn media(&self, media: Media, data: Bytes) -> ToolResult {
        let bytes = data.len() as u64;
        self.check_size(media, bytes)?;
        let media_type = media.media_type();
        let noun = media.noun();
        let shown = &self.file.shown;
        let mut output = ReadOutput {
            path: self.file.path.as_str().to_owned(),
            kind: ReadKind::Document,
            media_type: Some(media_type.to_owned()),
            bytes: Some(bytes),
            ..ReadOutput::default()
        };
        let Media::Image(kind) = media else {
            let name = self.file.path.file_name().unwrap_or("document.pdf");
            let size = counted(bytes, "byte");
            let text = format!("{noun} {shown} ({media_type}, {size})");
            let block = Block::Document {
                media_type: Cow::Borrowed(media_type),
                data,
                name: name.to_owned(),
            };
            return Ok(Reply::text(text).block(block).data(&output));
        };
        let edge = self.context.options.limits.image_edge;
        let picture = scale(data, kind, edge).await;
        let picture = picture.map_err(|error| self.not_scaled(error, bytes))?;
        let size = match (picture.size, picture.original) {
            (Some((w, h)), Some((from_w, from_h))) => {
                format!(", {from_w}x{from_h} pixels, shown as {w}x{h}")
            }
            (Some((w, h)), None) => format!(", {w}x{h} pixels"),
            (None, _) => String::new(),
        };
        output.kind = ReadKind::Image;
        (output.width, output.height) = picture.size.unzip();
        let text = format!("{noun} {shown} ({media_type}{size})");
        let block = Block::Image {
            media_type: Cow::Borrowed(media_type),
            data: picture.data,
        };
        Ok(Reply::text(text).block(block).data(&output))
    }

    /// Returns whether the options enable this kind of file, and its maximum size.
    fn shown(&self, media: Media) -> (bool, u64) {
        let options = &self.context.options;
        match media {
            Media::Image(_) => (options.image_support, options.limits.image_bytes),
            Media::Pdf => (options.document_support, options.limits.document_bytes),
        }
    }

    fn check_size(&self, media: Media, size: u64) -> Result<(), ToolError> {
        let (_, most) = self.shown(media);
        if size <= most {
            return Ok(());
        }
        Err(fixable!(
            "{} '{}' too large ({}, max {}); make it smaller with a command, then read that",
            media.noun(),
            self.file.shown,
            megabytes(size),
            megabytes(most)
        ))
    }

    /// Refuses what would show as garbage: a picture, or a document that is not plain text.
    fn check_text(&self, media: Option<Media>, head: &[u8], size: u64) -> Result<(), ToolError> {
        let head = head.get(..SNIFF_BYTES).unwrap_or(head);
        // The head may end within a character.
        let error = str::from_utf8(head).err();
        let is_plain = error.is_none_or(|error| error.error_len().is_none());
        match media {
            Some(Media::Image(_)) => Err(self.not_text(media, size)),
            Some(Media::Pdf) if !is_plain => Err(self.not_text(media, size)),
            _ => Ok(()),
        }
    }

    fn not_text(&self, media: Option<Media>, size: u64) -> ToolError {
        let shown = &self.file.shown;
        let size = counted(size, "byte");
        let named = self.file.path.file_name().and_then(Media::of_name);
        ToolError::fixable(match (media, named) {
            (Some(media), _) => format!(
                "File '{shown}' is binary: {} of {size}, and {}s are not shown here; use \
                 a command that understands it",
                media.media_type(),
                media.noun().to_ascii_lowercase()
            ),
            (None, Some(named)) => format!(
                "File '{shown}' is binary ({size}) and, despite its name, not {}; use \
                 a command to find out what it is",
                named.media_type()
            ),
            (None, None) => format!(
                "File '{shown}' is binary ({size}) and cannot be shown as text; use a \
                 command that understands it"
            ),
        })
    }

    fn not_scaled(&self, error: ScaleError, size: u64) -> ToolError {
        let shown = &self.file.shown;
        match error {
            ScaleError::Pixels(width, height) => fixable!(
                "Image '{shown}' too large ({width}x{height} pixels); make it smaller with a \
                 command, then read that"
            ),
            ScaleError::Animation(width, height) => fixable!(
                "Image '{shown}' too large (an animation of {width}x{height} pixels, {}); take \
                 a frame out of it with a command, then read that",
                megabytes(size)
            ),
            ScaleError::NoThread => ToolError::environment(format!(
                "Image '{shown}' cannot be made smaller now: the system has no thread to spare; \
                 try again later"
            )),
        }
    }

    fn past_end(&self, lines: u64) -> ToolError {
        let offset = self.offset;
        let next = match lines {
            0 => "the file is empty".to_owned(),
            1 => "use offset 0".to_owned(),
            _ => format!("use an offset below {lines}"),
        };
        let lines = counted(lines, "line");
        fixable!("Offset {offset} exceeds file length ({lines}); {next}")
    }

    fn explain(&self, error: Error) -> ToolError {
        match error.kind() {
            ErrorKind::NotFound => fixable!(
                "File '{}' not found. Check the path with `ls` or `glob`, then read it again.",
                self.file.shown
            ),
            _ => self.file.explain(error),
        }
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}MB", bytes as f64 / (1024.0 * 1024.0))
}
