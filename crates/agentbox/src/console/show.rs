//! Prints replies: in colour on a terminal, plain elsewhere.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use anstyle::Style;
use backend_core::sync::lock;
use console_tools::{Block, Observer, Reply};
use serde_json::Value;

use crate::output;
use crate::terminal::safe::{self, Filter};
use crate::terminal::{BOLD, CYAN, GREEN, RED, YELLOW, wrap};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) terminal: bool,
    pub(crate) colour: bool,
}

impl Screen {
    pub(crate) const fn new(terminal: bool, colour: bool) -> Self {
        Self { terminal, colour }
    }

    /// Styles a text, line by line, so that no line end is coloured.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let line = |line: &str| {
            if line.is_empty() {
                String::new()
            } else {
                format!("{style}{line}{style:#}")
            }
        };
        let lines: Vec<String> = text.split('\n').map(line).collect();
        lines.join("\n")
    }

    /// Returns the number of columns, or `None` without a terminal.
    pub(crate) fn width(self) -> Option<usize> {
        self.terminal.then(wrap::columns)
    }

    /// Writes text to standard output, with a line end if it has none.
    pub(crate) fn print(self, text: &str) -> io::Result<()> {
        output::write_line(&mut io::stdout().lock(), text)
    }

    /// Writes text and stays on its line.
    pub(crate) fn prompt(self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let text = wrap::lines(text, self.width());
        out.write_all(self.paint(BOLD, &text).as_bytes())?;
        out.write_all(b" ")?;
        out.flush()
    }

    /// Reports an error: in red on a terminal, else on standard error.
    pub(crate) fn print_error(self, text: &str) -> io::Result<()> {
        self.print_error_verbatim(&wrap::lines(text, self.width()))
    }

    /// Reports an error without wrapping lines.
    fn print_error_verbatim(self, text: &str) -> io::Result<()> {
        let text = safe::text(text.trim_end());
        if self.terminal {
            return self.print(&self.paint(RED, &text));
        }
        writeln!(io::stderr().lock(), "{text}")
    }

    pub(crate) fn diff(self, diff: &str) -> String {
        let line = |line: &str| {
            let style = match line.as_bytes() {
                [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => BOLD,
                [b'+', ..] => GREEN,
                [b'-', ..] => RED,
                [b'@', b'@', ..] => CYAN,
                _ => return line.to_owned(),
            };
            self.paint(style, line)
        };
        let safe = safe::text(diff.trim_end_matches('\n'));
        let lines: Vec<String> = safe.split('\n').map(line).collect();
        lines.join("\n")
    }

    /// Prints a reply, of which `live` has shown a part. `diff` is the known change.
    pub(crate) fn reply(
        self,
        reply: &Reply,
        live: &LiveOutput,
        diff: Option<&str>,
    ) -> io::Result<()> {
        let seen = live.finish()?;
        if !reply.is_success() {
            return self.print_error_verbatim(&failure(&reply.text, self.width()));
        }
        let mut out = self.text(reply, seen);
        let own = string(reply, "diff");
        if let Some(diff) = own.or(diff).filter(|diff| !reply.text.contains(diff)) {
            out = format!("{}\n{}", out.trim_end_matches('\n'), self.diff(diff));
        }
        for block in &reply.blocks {
            if !out.is_empty() && !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(&self.paint(CYAN, &picture(block, reply)));
        }
        self.print(&out)
    }

    /// Returns the text of a reply, without the output that was shown live.
    fn text(self, reply: &Reply, seen: bool) -> String {
        let output = string(reply, "output").filter(|output| seen && !output.is_empty());
        if let Some(output) = output {
            let note = reply.text.replacen(output, "", 1);
            let note = note.trim().trim_end_matches("Output so far:");
            let note = safe::text(note.trim_end_matches([':', ' ', '\n']));
            return self.paint(YELLOW, &note);
        }
        match string(reply, "diff") {
            // The text of a dry run includes the diff.
            Some(diff) if !diff.is_empty() && reply.text.contains(diff) => {
                let (before, after) = reply.text.split_once(diff).unwrap_or_default();
                let (before, after) = (safe::text(before), safe::text(after));
                format!("{before}{}\n{after}", self.diff(diff))
            }
            _ if failed(reply) => self.paint(YELLOW, &safe::text(&reply.text)),
            _ => safe::text(&reply.text),
        }
    }
}

/// Returns a text field of a reply's data.
pub(crate) fn string<'r>(reply: &'r Reply, name: &str) -> Option<&'r str> {
    reply.structured.as_ref()?.get(name)?.as_str()
}

/// Returns `true` for a failure, also of a command, which is a success for a model.
pub(crate) fn failed(reply: &Reply) -> bool {
    let field = |name: &str| reply.structured.as_ref().and_then(|data| data.get(name));
    let is_true = |name: &str| field(name).and_then(Value::as_bool) == Some(true);
    let code = field("exit_code").and_then(Value::as_i64);
    !reply.is_success()
        || code.is_some_and(|code| code != 0)
        || field("signal").is_some_and(|signal| !signal.is_null())
        || is_true("timed_out")
        || is_true("output_limited")
}

/// Wraps the first line of a failure. The others may be from files and stay.
fn failure(text: &str, width: Option<usize>) -> String {
    let first = text.lines().next().unwrap_or_default();
    let rest = text.get(first.len()..).unwrap_or_default();
    format!("{}{rest}", wrap::lines(first, width))
}

/// Returns one line that describes a block that is not text.
fn picture(block: &Block, reply: &Reply) -> String {
    let line = match block {
        Block::Image { media_type, data } => {
            let number = |name: &str| reply.structured.as_ref()?.get(name)?.as_u64();
            let sides = number("width").zip(number("height"));
            let sides = sides.map(|(width, height)| format!(", {width}x{height}"));
            let (size, sides) = (size(data.len()), sides.unwrap_or_default());
            format!("[picture: {media_type}, {size}{sides}]")
        }
        Block::Document {
            media_type,
            data,
            name,
        } => format!("[document {name}: {media_type}, {}]", size(data.len())),
        _ => "[something that cannot be shown here]".to_owned(),
    };
    safe::text(&line).replace('\n', "␊")
}

fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// Number of bytes printed at once. Ctrl-C is handled between two pieces.
const PIECE_BYTES: usize = 1024;

/// Shows a command's output while it runs.
#[derive(Debug)]
pub(crate) struct LiveOutput {
    state: Mutex<State>,
    /// Set when the user has cancelled. Otherwise a command that prints endlessly would
    /// not stop before the terminal has shown everything received so far.
    enough: Arc<AtomicBool>,
}

#[derive(Debug)]
struct State {
    filter: Filter,
    seen: bool,
    /// The error of standard output, such as a closed pipe.
    broken: Option<io::ErrorKind>,
}

impl LiveOutput {
    pub(crate) fn new(screen: Screen, enough: Arc<AtomicBool>) -> Arc<Self> {
        let state = Mutex::new(State {
            filter: Filter::new(screen.colour),
            seen: false,
            broken: None,
        });
        Arc::new(Self { state, enough })
    }

    /// Ends the last line. Returns `true` if anything was shown.
    pub(crate) fn finish(&self) -> io::Result<bool> {
        let mut state = lock(&self.state);
        let end = state.filter.finish();
        write(&mut state, &end);
        match state.broken {
            Some(kind) => Err(kind.into()),
            None => Ok(state.seen),
        }
    }
}

fn write(state: &mut State, text: &str) {
    if state.broken.is_some() {
        return;
    }
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    state.broken = written.err().map(|error| error.kind());
}

impl Observer for LiveOutput {
    fn output(&self, bytes: &[u8]) {
        if self.enough.load(Ordering::Acquire) {
            return;
        }
        let mut state = lock(&self.state);
        let text = state.filter.push(bytes);
        state.seen = true;
        // A slow terminal takes a while for each piece.
        let mut rest = text.as_str();
        while !rest.is_empty() && !self.enough.load(Ordering::Acquire) {
            let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            write(&mut state, piece);
            rest = behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COLOURED: Screen = Screen::new(true, true);
    const PLAIN: Screen = Screen::new(false, false);

    #[test]
    fn diffs_have_colours() {
        let diff = "--- a\n+++ a\n@@ -1 +1 @@\n-old\x1b[2J\n+new\n same\n";
        assert_eq!(
            COLOURED.diff(diff),
            "\x1b[1m--- a\x1b[0m\n\x1b[1m+++ a\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n\
             \x1b[31m-old␛[2J\x1b[0m\n\x1b[32m+new\x1b[0m\n same"
        );
        assert_eq!(PLAIN.diff("-a\n+b\n"), "-a\n+b");
    }

    #[test]
    fn what_was_seen_is_not_shown_again() {
        let reply = Reply::text("Command failed (exit code 3):\nhello\n")
            .structured(json!({"output": "hello\n", "exit_code": 3}));
        assert_eq!(PLAIN.text(&reply, true), "Command failed (exit code 3)");
        assert_eq!(PLAIN.text(&reply, false), reply.text);
        assert!(failed(&reply));
        let reply = Reply::text("hello\n").structured(json!({"output": "hello\n", "exit_code": 0}));
        assert_eq!(PLAIN.text(&reply, true), "");
        assert!(!failed(&reply));
    }

    #[test]
    fn failures_break_at_words_and_lines_of_files_do_not() {
        let text = "Error: there is no such text\nnearest: let number = 1;\n";
        assert_eq!(
            failure(text, Some(16)),
            "Error: there is\nno such text\nnearest: let number = 1;\n"
        );
        assert_eq!(failure(text, None), text);
        assert_eq!(failure("", Some(16)), "");
    }

    #[test]
    fn pictures_are_one_line() {
        let block = Block::Document {
            media_type: "application/pdf".into(),
            data: vec![0; 20_000].into(),
            name: "a\nb.pdf".into(),
        };
        let line = picture(&block, &Reply::text(""));
        assert_eq!(line, "[document a␊b.pdf: application/pdf, 20 kB]");
        let block = Block::Image {
            media_type: "image/png".into(),
            data: vec![0; 70].into(),
        };
        let reply = Reply::text("").structured(json!({"width": 2, "height": 3}));
        assert_eq!(
            picture(&block, &reply),
            "[picture: image/png, 70 bytes, 2x3]"
        );
    }
}
