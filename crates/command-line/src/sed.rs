//! Checks whether a sed script only prints and replaces.

use crate::options::{self, Parsed};
use crate::tables;
use crate::word::Word;

/// Whether a script may run a command or write a file: any that is not plainly harmless.
pub(crate) fn runs_or_writes(words: &[Word]) -> bool {
    let parsed = options::parse(&tables::SED, words);
    if parsed.has(&["f", "file"]) {
        return true;
    }
    let scripts = scripts(&parsed, words);
    // A computed file is harmless, a computed script is not.
    let harmless = |script: Option<&Word>| script.and_then(Word::literal).and_then(harmless);
    !scripts.into_iter().all(|script| harmless(script).is_some())
}

/// Returns the scripts given to it.
fn scripts<'w>(parsed: &'w Parsed, words: &'w [Word]) -> Vec<Option<&'w Word>> {
    let given = parsed.given(&["e", "expression"]);
    let mut scripts: Vec<Option<&Word>> = given.map(|given| given.value.as_ref()).collect();
    if scripts.is_empty() {
        let first = parsed.operands.first();
        scripts.extend(first.map(|at| words.get(*at)));
    }
    scripts
}

/// Whether it edits its files in place.
pub(crate) fn edits(words: &[Word]) -> bool {
    options::parse(&tables::SED, words).has(&["i", "in-place"])
}

/// Returns `None` unless every command of the script is known to be harmless.
fn harmless(script: &str) -> Option<()> {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}']);
        if rest.is_empty() {
            return Some(());
        }
        rest = address(rest)?;
        if let Some(next) = rest.strip_prefix(',') {
            rest = address(next.trim_start_matches([' ', '+', '~']))?;
        }
        rest = rest.trim_start_matches([' ', '\t', '!']);
        let command = rest.chars().next()?;
        rest = rest.get(command.len_utf8()..)?;
        match command {
            '{' | '}' => continue,
            'p' | 'd' | 'q' | 'Q' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x' | 'P' | 'D' | '='
            | 'l' | 'z' => {
                rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            }
            // A label. In some implementations, it ends only at the end of the line.
            ':' | 'b' | 't' | 'T' => {
                rest = rest.trim_start_matches([' ', '\t']);
                rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
            }
            // Text up to the end of the line.
            'a' | 'i' | 'c' | '#' => {
                rest = rest
                    .find('\n')
                    .and_then(|end| rest.get(end..))
                    .unwrap_or_default();
            }
            's' | 'y' => {
                let delimiter = rest.chars().next().filter(|c| *c != '\\' && *c != '\n')?;
                rest = rest.get(delimiter.len_utf8()..)?;
                rest = after(rest, delimiter)?;
                rest = after(rest, delimiter)?;
                rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || "gpiIM".contains(c));
            }
            _ => return None,
        }
        // The next command must be separated from this one.
        if !rest
            .trim_start_matches([' ', '\t'])
            .starts_with([';', '\n', '}', '{'])
            && !rest.trim().is_empty()
        {
            return None;
        }
    }
}

/// Skips an address, if there is one.
fn address(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('/') {
        let rest = after(rest, '/')?;
        return Some(rest.trim_start_matches(['I', 'M']));
    }
    let rest = text.strip_prefix('$').unwrap_or(text);
    Some(rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '~'))
}

/// Returns the text after the next `delimiter` that is not escaped.
fn after(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == delimiter {
            return text.get(at + c.len_utf8()..);
        }
    }
    None
}

/// The effects of scripts besides printing and replacing.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Files they read, and words that may be files.
    pub(crate) reads: Vec<String>,
    pub(crate) writes: Vec<String>,
    /// Shell programs they run.
    pub(crate) runs: Vec<String>,
}

impl Script {
    /// Analyzes the scripts of the command `words`.
    pub(crate) fn of(words: &[Word]) -> Self {
        let parsed = options::parse(&tables::SED, words);
        let mut all = Self::default();
        let scripts = scripts(&parsed, words);
        for text in scripts.into_iter().flatten().filter_map(Word::literal) {
            all.tokens(text);
            all.read(text);
        }
        all
    }

    /// Reads commands up to the first that cannot be parsed.
    fn read(&mut self, script: &str) -> Option<()> {
        let mut rest = script;
        loop {
            rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}']);
            rest = any_address(rest)?;
            rest = rest.trim_start_matches([' ', '\t']);
            if let Some(next) = rest.strip_prefix(',') {
                rest = any_address(next.trim_start_matches([' ', '\t', '+', '~']))?;
            }
            rest = rest.trim_start_matches([' ', '\t', '!']);
            let command = rest.chars().next()?;
            rest = rest.get(command.len_utf8()..)?;
            match command {
                'r' | 'R' => rest = line(rest, &mut self.reads),
                'w' | 'W' => rest = line(rest, &mut self.writes),
                'e' => rest = line(rest, &mut self.runs),
                'a' | 'i' | 'c' | '#' => rest = line(rest, &mut Vec::new()),
                's' | 'y' => {
                    let delimiter = rest.chars().next()?;
                    let pattern = rest.get(delimiter.len_utf8()..)?;
                    let replacement = after(pattern, delimiter)?;
                    rest = after(replacement, delimiter)?;
                    let end = replacement.len() - rest.len() - delimiter.len_utf8();
                    let replacement = replacement.get(..end)?;
                    let is_flag = |c: char| c.is_ascii_digit() || "gpiImMe".contains(c);
                    let flags = rest.trim_start_matches(is_flag);
                    let given = rest.get(..rest.len() - flags.len())?;
                    if command == 's' && given.contains('e') {
                        let escaped = format!("\\{delimiter}");
                        let program = replacement.replace(&escaped, &delimiter.to_string());
                        self.runs.push(program);
                    }
                    rest = match flags.strip_prefix('w') {
                        Some(file) if command == 's' => line(file, &mut self.writes),
                        _ => flags,
                    };
                }
                // Skip a number or a label.
                _ => {
                    let end = rest.find(['\n', ';', '}']).unwrap_or(rest.len());
                    rest = rest.get(end..)?;
                }
            }
        }
    }

    /// Collects words that may be files, in case a sed parses the script differently
    /// than [`read`](Self::read): `r file`, `$rfile`.
    fn tokens(&mut self, text: &str) {
        let mut found: Vec<&str> = Vec::new();
        let parts = |c: char| c.is_whitespace() || ";{}".contains(c);
        let mut tokens = text
            .split(parts)
            .filter(|token| !token.is_empty())
            .peekable();
        while let Some(token) = tokens.next() {
            // Strip the address of a command: `3`, `$!`, `/x/`.
            let command = token.rsplit('/').next().unwrap_or(token);
            let command = command.trim_start_matches(|c: char| "0123456789,$!~+".contains(c));
            if matches!(command, "r" | "R" | "w" | "W") {
                found.extend(tokens.peek().copied());
            }
            let whole = token.trim_start_matches(|c: char| "0123456789,$!~+".contains(c));
            let glued = whole.strip_prefix(['r', 'R', 'w', 'W']);
            found.extend(glued);
        }
        found.retain(|file| file.contains(['/', '.']));
        self.reads.extend(found.into_iter().map(str::to_owned));
    }
}

/// Takes the line, which a backslash at its end continues, and returns the rest.
fn line<'s>(text: &'s str, taken: &mut Vec<String>) -> &'s str {
    let goes_on = |at: usize| text.get(..at).is_some_and(|before| before.ends_with('\\'));
    let mut ends = text.match_indices('\n').map(|(at, _)| at);
    let end = ends.find(|at| !goes_on(*at)).unwrap_or(text.len());
    let (line, rest) = text.split_at(end);
    let line = line.trim();
    if !line.is_empty() {
        taken.push(line.to_owned());
    }
    rest
}

/// Skips an address, which may also have another delimiter: `\,x,`.
fn any_address(text: &str) -> Option<&str> {
    match text.strip_prefix('\\') {
        None => address(text),
        Some(rest) => {
            let delimiter = rest.chars().next()?;
            let rest = after(rest.get(delimiter.len_utf8()..)?, delimiter)?;
            Some(rest.trim_start_matches(['I', 'M']))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspicious(args: &[&str]) -> bool {
        let mut words = vec![Word::text("sed")];
        words.extend(args.iter().map(|arg| Word::text(arg)));
        runs_or_writes(&words)
    }

    #[test]
    fn plain_scripts_are_harmless() {
        for args in [
            &["-n", "1,20p", "file"][..],
            &["-i", "s/a/b/g", "file"],
            &["s|a/b|c|; s/x/y/2", "file"],
            &["-n", "/start/,/end/p"],
            &["-i.bak", "-e", "s/a/b/", "-e", "/x/d", "f"],
            &["-E", "s/^(a|b)$/\\1/I"],
            &["$d"],
            &[":a;N;$!ba;s/\n/ /g", "file"],
            &["-n", "/x/{p;b};d"],
        ] {
            assert!(!suspicious(args), "{args:?}");
        }
    }

    #[test]
    fn scripts_that_run_or_write_are_not() {
        for args in [
            &["1e id", "file"][..],
            &["e"],
            &["s/a/id/e", "file"],
            &["s/a/b/gw /etc/passwd"],
            &["w out"],
            &["-n", "1!e id"],
            &["-f", "script"],
            &["-nf", "script"],
            &["r /etc/shadow"],
            &["s/a/b"],
            &["1,2e"],
            &["pe id"],
            &["-e1eid", "p"],
            &["-ne1eid", "p"],
            &["-es/a/id/e"],
            &["--expr=1e id", "p"],
            &["--exp", "1e id", "p"],
            &["--fi", "p"],
            &[":a;1e id", "file"],
            &["t;1e id", "file"],
            &["/q/b;1e id", "file"],
            &["/q/{b};1e id", "file"],
            &["bx }1e id", "file"],
            &["T;1e id", "file"],
        ] {
            assert!(suspicious(args), "{args:?}");
        }
    }
}
