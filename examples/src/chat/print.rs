//! A conversation on the terminal.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::io::Write as _;

use super::Event;

/// Maximum number of characters shown of a line.
const LINE_CHARS: usize = 160;

/// Prints an event: text as it arrives, then each call and its reply.
pub fn print(event: Event<'_>) {
    match event {
        Event::Text(text) => print!("{}", printable(text)),
        Event::Call(call) => println!("\n> {} {}", brief(&call.name, 1), brief(&call.arguments, 1)),
        // The reply shows it.
        Event::Output(..) => {}
        Event::Reply(_, reply) => println!("{}", brief(&reply.text, 20)),
    }
    let _ = std::io::stdout().flush();
}

/// Returns the text without characters that a terminal obeys or does not show. Models and
/// files are not trusted to write to the terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c,
        // Marks that reorder a line, or take no room in it.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' => '\u{fffd}',
        '\u{feff}' | '\u{061c}' | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// Returns the first lines of a text, printable and each of bounded length.
#[must_use]
pub fn brief(text: &str, lines: usize) -> String {
    let all = text.trim_end().lines();
    let mut shown: Vec<String> = Vec::new();
    for line in all.clone().take(lines) {
        let mut line = line.chars();
        let start: String = line.by_ref().take(LINE_CHARS).collect();
        let rest = line.next().map_or("", |_| "...");
        shown.push(printable(&start) + rest);
    }
    let more = all.count().saturating_sub(lines);
    if more > 0 {
        shown.push(format!("... ({more} more lines)"));
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_controlled() {
        assert_eq!(
            printable("a\x1b[2J\r\u{202e}b\n"),
            "a\u{fffd}[2J\u{fffd}\u{fffd}b\n"
        );
    }
    #[test]
    fn long_text_is_cut() {
        assert_eq!(brief("a\nb\nc\n", 2), "a\nb\n... (1 more lines)");
        assert_eq!(brief(&"x".repeat(1000), 1).len(), LINE_CHARS + 3);
        assert_eq!(brief("", 1), "");
    }
}
