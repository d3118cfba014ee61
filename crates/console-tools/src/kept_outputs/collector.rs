//! Prepares the output of a command for a reply: rendered, cut to its beginning and
//! end, and kept as a whole.

use backend_core::ops::OutputBuffer;

use super::store::OutputStore;
use crate::counted::counted;
use crate::options::Limits;
use crate::terminal::Renderer;

/// Collects the output of a command, in bounded memory.
#[derive(Debug)]
pub(crate) struct Collector {
    renderer: Renderer,
    text: OutputBuffer,
    newlines: u64,
}

/// The part of an output that a reply shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ShownOutput {
    /// The output, or its beginning and its end.
    pub(crate) text: String,
    pub(crate) truncated: bool,
    pub(crate) output_file: Option<String>,
}

impl Collector {
    pub(crate) fn new(limits: &Limits) -> Self {
        let kept = limits.spill_bytes.min(limits.spill_total_bytes);
        Self {
            renderer: Renderer::new(),
            text: OutputBuffer::new(kept.max(limits.output_bytes)),
            newlines: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.renderer.push(bytes);
        let done = self.renderer.take_done();
        self.push_text(&done);
    }

    /// Adds text that was already rendered.
    pub(crate) fn push_text(&mut self, text: &str) {
        self.text.push(text.as_bytes());
        self.newlines += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
    }

    /// Hands over the terminal. The text that it shows so far belongs to this output.
    pub(crate) fn release(&mut self) -> Renderer {
        let shown = self.renderer.drain();
        self.push_text(&shown);
        std::mem::take(&mut self.renderer)
    }

    /// Returns the text for the reply. If it is truncated, the whole output is kept.
    pub(crate) fn finish(mut self, limits: &Limits, outputs: &OutputStore) -> ShownOutput {
        let rest = std::mem::take(&mut self.renderer).finish();
        self.push_text(&rest);
        let total = self.text.total();
        let output = self.text.finish();
        // A character can be cut in two only where the buffer dropped bytes.
        let head = without_half_end(&output.head);
        let tail = without_half_start(&output.tail);
        let budget = limits.output_bytes.min(limits.reply_bytes / 2);
        if !output.is_truncated() && head.len() <= budget {
            return ShownOutput {
                text: head.into(),
                ..ShownOutput::default()
            };
        }
        let half = budget / 2;
        let first = beginning(head, half);
        let last = end(if output.is_truncated() { tail } else { head }, half);
        let newlines = [first, last].concat().matches('\n').count() as u64;
        let lines = self.newlines.saturating_sub(newlines);
        let bytes = total.saturating_sub((first.len() + last.len()) as u64);
        let dropped = total.saturating_sub((head.len() + tail.len()) as u64);
        let whole = match dropped {
            0 => head.to_owned(),
            _ => format!("{head}\n[... {dropped} bytes were not kept ...]\n{tail}"),
        };
        let path = (limits.spill_bytes > 0).then(|| outputs.keep(whole, limits));
        let output_file = path.flatten().map(|path| path.as_str().to_owned());
        let rest = match &output_file {
            Some(path) if dropped == 0 => format!(
                "; the whole output is in {path}: use read_file or grep on it, commands do not see it"
            ),
            Some(path) => format!(
                "; all but {dropped} bytes of its middle are in {path}: use read_file or grep on it, commands do not see it"
            ),
            None => "; write the output to a file to see all of it".into(),
        };
        let is_whole = first.is_empty() || first.ends_with('\n');
        let line_end = if is_whole { "" } else { "\n" };
        let (lines, bytes) = (counted(lines, "line"), counted(bytes, "byte"));
        ShownOutput {
            text: format!("{first}{line_end}[... {lines} ({bytes}) left out{rest} ...]\n{last}"),
            truncated: true,
            output_file,
        }
    }
}

/// Returns at most `limit` bytes from the beginning, up to a line break if one is near.
fn beginning(text: &str, limit: usize) -> &str {
    let (start, _) = text.split_at(text.floor_char_boundary(limit));
    match start.rfind('\n') {
        Some(at) if at >= limit / 2 => start.split_at(at + 1).0,
        _ => start,
    }
}

/// Returns at most `limit` bytes from the end, from the start of a line if one is near.
fn end(text: &str, limit: usize) -> &str {
    let from = text.len().saturating_sub(limit);
    let (_, end) = text.split_at(text.ceil_char_boundary(from));
    match end.find('\n') {
        Some(at) if at + 1 < end.len() && at < limit / 2 => end.split_at(at + 1).1,
        _ => end,
    }
}

/// Decodes text whose last character may be incomplete.
fn without_half_end(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// Decodes text whose first character may be incomplete.
fn without_half_start(bytes: &[u8]) -> &str {
    let is_inside = |byte: &&u8| (0x80..0xc0).contains(*byte);
    let inside = bytes.iter().take_while(is_inside).count();
    str::from_utf8(bytes.split_at(inside).1).unwrap_or_default()
}

#[cfg(test)]
mod tests;
