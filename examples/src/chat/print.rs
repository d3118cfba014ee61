//! A conversation on the terminal.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::io::Write as _;

use super::Event;

/// Prints an event: text as it arrives, then each call and its reply.
pub fn print(event: Event<'_>) {
    match event {
        Event::Text(text) => print!("{}", printable(text)),
        Event::Call(call) => println!("\n> {} {}", printable(&call.name), line(&call.arguments)),
        Event::Reply(_, reply) => println!("{}", printable(reply.text.trim_end())),
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

fn line(text: &str) -> String {
    printable(text).replace('\n', " ")
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
}
