//! Questions at the terminal, for commands that are not the console.

use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _};

use permissions::approval::{Answer, ApproverError, Interactive};

use crate::output;
use crate::terminal::wrap;

/// The device to read the answer from: standard input may hold something else.
const TERMINAL: &str = "/dev/tty";

/// Returns an approver that asks on the terminal. Without a terminal everything that
/// needs approval is refused; `instead` says how to allow it.
pub(crate) fn terminal(instead: &'static str) -> Interactive {
    Interactive::blocking(move |question| {
        let terminal = Some(TERMINAL).filter(|_| std::io::stderr().is_terminal());
        let terminal = terminal.and_then(|terminal| File::open(terminal).ok());
        let terminal = terminal.ok_or_else(|| {
            ApproverError::new(format!("there is no terminal to ask on; {instead}"))
        })?;
        // The question's text is safe to print if its lines are not broken.
        let width = wrap::columns_of(std::io::stderr());
        let shown = wrap::hard(&question.to_string(), Some(width));
        output::note(&format!("{shown}\nallow it? [y/N]"));
        let mut line = String::new();
        let read = BufReader::new(terminal).read_line(&mut line);
        match read {
            Ok(_) if yes(&line) => Ok(Answer::yes()),
            Ok(_) => Ok(Answer::no()),
            Err(error) => Err(ApproverError::new(format!(
                "the terminal cannot be read: {error}; try again"
            ))),
        }
    })
}

/// Returns `true` only for an explicit yes.
fn yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::yes;

    #[test]
    fn only_a_yes_is_one() {
        assert!(yes("y\n") && yes(" YES \n"));
        for no in ["", "\n", "n\n", "yeah\n", "yn\n"] {
            assert!(!yes(no), "{no}");
        }
    }
}
