//! Reads commands from a pipe or a file.

use std::io::{BufRead, Read as _};

use console_tools::Definitions;

use super::Input;
use crate::console::language::{self, ParseError};
use crate::console::words::MissingInput;

/// Maximum size of one command with its text, in bytes.
const MAX_COMMAND_BYTES: u64 = 16 * 1024 * 1024;

/// Returns a function that reads one command.
pub(super) fn reader(mut from: impl BufRead) -> impl FnMut(Definitions) -> Input {
    move |tools| read(&mut from, &tools, MAX_COMMAND_BYTES).unwrap_or_else(Input::Failed)
}

/// Reads lines until they form a command.
fn read(from: &mut impl BufRead, tools: &Definitions, limit: u64) -> Result<Input, String> {
    let mut text = String::new();
    let mut until: Option<MissingInput> = None;
    loop {
        let begun = text.len();
        let left = limit.saturating_sub(begun as u64);
        let line = from.take(left).read_line(&mut text);
        let line = line.map_err(|error| {
            format!("the standard input cannot be read: {error}; give it UTF-8 text")
        })?;
        if line == 0 {
            return match (text.is_empty(), left) {
                (true, _) => Ok(Input::End),
                (false, 0) => Err(format!(
                    "a command has more than {limit} bytes; split what it writes"
                )),
                (false, _) => Ok(Input::Text(text)),
            };
        }
        // Parsing the whole text again for each line would take quadratic time.
        let line = text.get(begun..).unwrap_or_default();
        if until.as_ref().is_some_and(|until| !until.is_met_by(line)) {
            continue;
        }
        match language::parse(&text, tools) {
            Err(ParseError::Incomplete(missing)) => until = Some(missing),
            _ => return Ok(Input::Text(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::language::tests::tools;

    fn all(text: &str, limit: u64) -> Vec<Result<String, String>> {
        let mut from = text.as_bytes();
        let mut found = Vec::new();
        loop {
            match read(&mut from, &tools(), limit) {
                Ok(Input::Text(text)) => found.push(Ok(text)),
                Ok(_) => return found,
                Err(error) => {
                    found.push(Err(error));
                    return found;
                }
            }
        }
    }

    #[test]
    fn lines_belong_together() {
        let commands = [
            "ls\n",
            "write a <<X\n'\nX\n",
            "wirte a <<X\nrm b\nX\n",
            "write a 'b\nc'\n",
            "read {\n\"path\": \"a\"}\n",
            "ls",
        ];
        let commands = commands.map(|command| Ok(command.to_owned()));
        let whole: String = commands.iter().flatten().cloned().collect();
        assert_eq!(all(&whole, MAX_COMMAND_BYTES), commands);
        assert_eq!(
            all("write a <<X\nb\n", MAX_COMMAND_BYTES),
            [Ok("write a <<X\nb\n".to_owned())]
        );
    }

    #[test]
    fn there_is_a_limit() {
        let found = all("ls\nwrite a 'bbbbbbbbbbbbbbbbbbbbbb\n", 20);
        assert_eq!(found.len(), 2);
        assert!(
            found[1]
                .as_ref()
                .is_err_and(|error| error.contains("more than 20 bytes"))
        );
    }
}
