//! Converts the daemon's build output into events.
//!
//! The classic builder sends lines of text. BuildKit sends its status as a
//! protocol-buffer message in base64. The few fields that matter are decoded here by
//! hand. The output comes from commands that ran in the build, so it is not trusted:
//! lengths are bounded and control characters are removed.

use std::collections::{HashSet, VecDeque};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::event::BuildEvent;

/// The longest line that is passed on.
const LONGEST_LINE: usize = 2000;
/// Number of lines kept for the error, and the width each is cut to.
const KEPT_LINES: usize = 20;
const KEPT_WIDTH: usize = 300;
/// Number of steps remembered as shown.
const MOST_STEPS: usize = 1000;

/// One line of the daemon's response.
#[derive(Debug, Deserialize)]
struct Line {
    id: Option<String>,
    stream: Option<String>,
    aux: Option<Value>,
    error: Option<String>,
    message: Option<String>,
}

pub(super) fn message(line: &[u8]) -> String {
    let read = serde_json::from_slice::<Line>(line);
    let said = read.ok().and_then(|line| line.message.or(line.error));
    clean(&said.unwrap_or_else(|| String::from_utf8_lossy(line).into_owned()))
}

/// Converts lines into events and keeps the end of the log.
#[derive(Debug, Default)]
pub(super) struct ProgressReader {
    total: Option<u32>,
    shown: HashSet<u32>,
    partial: String,
    last: VecDeque<String>,
    /// The error that made the build fail.
    pub(super) failure: Option<String>,
    /// Whether the daemon named the image it built.
    pub(super) built: bool,
}

impl ProgressReader {
    /// Creates a reader. `total` overrides the number of steps that the daemon reports.
    pub(super) fn new(total: Option<u32>) -> Self {
        Self {
            total,
            ..Self::default()
        }
    }

    /// Processes one line of the response.
    pub(super) fn line(&mut self, line: &[u8], send: &mut dyn FnMut(BuildEvent)) {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            return;
        };
        if let Some(error) = line.error {
            self.failure = Some(clean(&error));
        }
        if let Some(text) = line.stream {
            self.built |= text.starts_with("Successfully ");
            self.text(&text, send);
        }
        match line.aux {
            Some(Value::String(status)) if line.id.as_deref() == Some("moby.buildkit.trace") => {
                if let Ok(status) = STANDARD.decode(status) {
                    self.status(&status, send);
                }
            }
            Some(Value::Object(aux)) => self.built |= aux.contains_key("ID"),
            _ => {}
        }
    }

    /// Passes on the last line, which has no newline.
    pub(super) fn flush(&mut self, send: &mut dyn FnMut(BuildEvent)) {
        let line = std::mem::take(&mut self.partial);
        self.whole_line(&line, send);
    }

    /// Returns the end of the log.
    pub(super) fn last_lines(&self) -> Vec<&str> {
        self.last.iter().map(String::as_str).collect()
    }

    /// Decodes BuildKit's status: vertexes in field 1, logs in field 3.
    fn status(&mut self, status: &[u8], send: &mut dyn FnMut(BuildEvent)) {
        for (field, value) in Fields(status) {
            match (field, value) {
                (1, Field::Bytes(vertex)) => self.vertex(vertex, send),
                (3, Field::Bytes(log)) => {
                    for (field, value) in Fields(log) {
                        if let (4, Field::Bytes(text)) = (field, value) {
                            self.text(&String::from_utf8_lossy(text), send);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Decodes a step: its name in field 3, cached in 4, started in 5.
    fn vertex(&mut self, vertex: &[u8], send: &mut dyn FnMut(BuildEvent)) {
        let (mut name, mut cached, mut started) = (None, false, false);
        for (field, value) in Fields(vertex) {
            match (field, value) {
                (3, Field::Bytes(text)) => name = std::str::from_utf8(text).ok(),
                (4, Field::Number(number)) => cached = number != 0,
                (5, _) => started = true,
                _ => {}
            }
        }
        let step = name.filter(|_| started || cached).and_then(buildkit_step);
        if let Some((number, total, name)) = step {
            self.step(number, total, name, cached, send);
        }
    }

    fn step(
        &mut self,
        number: u32,
        total: u32,
        name: &str,
        cached: bool,
        send: &mut dyn FnMut(BuildEvent),
    ) {
        if self.shown.len() < MOST_STEPS && self.shown.insert(number) {
            send(BuildEvent::Step {
                number,
                total: self.total.unwrap_or(total),
                name: clean(name),
                cached,
            });
        }
    }

    fn text(&mut self, text: &str, send: &mut dyn FnMut(BuildEvent)) {
        for piece in text.split_inclusive(['\n', '\r']) {
            self.partial.push_str(piece);
            let whole = piece.ends_with(['\n', '\r']);
            if whole || self.partial.len() > LONGEST_LINE {
                self.flush(send);
            }
        }
    }

    fn whole_line(&mut self, line: &str, send: &mut dyn FnMut(BuildEvent)) {
        let line = clean(line);
        if line.is_empty() {
            return;
        }
        if let Some((number, total, name)) = classic_step(&line) {
            self.step(number, total, name, false, send);
            return;
        }
        if self.last.len() == KEPT_LINES {
            self.last.pop_front();
        }
        self.last.push_back(cut(&line, KEPT_WIDTH).to_owned());
        send(BuildEvent::Log { line });
    }
}

/// Parses `[2/5] RUN x` and `[stage-0 2/5] RUN x`.
fn buildkit_step(name: &str) -> Option<(u32, u32, &str)> {
    let (place, name) = name.strip_prefix('[')?.split_once("] ")?;
    let (number, total) = place.rsplit(' ').next()?.split_once('/')?;
    Some((number.parse().ok()?, total.parse().ok()?, name))
}

/// Parses `Step 2/5 : RUN x`.
fn classic_step(line: &str) -> Option<(u32, u32, &str)> {
    let (place, name) = line.strip_prefix("Step ")?.split_once(" : ")?;
    let (number, total) = place.split_once('/')?;
    Some((number.parse().ok()?, total.parse().ok()?, name))
}

/// Removes escape sequences, control characters and the newline, and truncates the
/// line.
pub(super) fn clean(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            // An escape sequence ends at its first letter.
            '\u{1b}' => drop(chars.by_ref().find(char::is_ascii_alphabetic)),
            '\t' => out.push(' '),
            c if c.is_control() => {}
            c => out.push(c),
        }
        if out.len() > LONGEST_LINE {
            out.truncate(cut(&out, LONGEST_LINE).len());
            out.push('…');
            break;
        }
    }
    out.truncate(out.trim_end().len());
    out
}

fn cut(text: &str, width: usize) -> &str {
    text.get(..text.floor_char_boundary(width)).unwrap_or(text)
}

/// A value of a protocol-buffer message.
#[derive(Debug)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Iterates over the fields of a protocol-buffer message. Ends at the first malformed
/// field.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Field<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.number()?;
        let value = match key & 7 {
            0 => Field::Number(self.number()?),
            1 => Field::Bytes(self.take(8)?),
            2 => {
                let length = self.number()?;
                Field::Bytes(self.take(usize::try_from(length).ok()?)?)
            }
            5 => Field::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let &[byte] = self.take(1)? else { return None };
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
