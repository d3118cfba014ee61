//! Finds the end of a program that stands within a word.

use super::Trouble;
use super::scan::{MAX_DEPTH, Scanner};

impl Scanner {
    /// Passes over a program up to the parenthesis that closes it. If this finds
    /// another end than the shell does, what is cut out is no program, and that is
    /// found when it is read.
    pub(super) fn close_paren(&mut self, depth: usize) -> Result<(), Trouble> {
        const OPEN: Trouble = Trouble("a substitution is not closed");
        if depth > MAX_DEPTH {
            return Err(Trouble("its expansions are nested too deep"));
        }
        let mut open = 1_usize;
        let mut documents: Vec<(String, bool)> = Vec::new();
        let mut fresh = true;
        while let Some(c) = self.next() {
            let begins_word = std::mem::replace(&mut fresh, " \t\n;&|(".contains(c));
            match c {
                '\\' => {
                    self.next();
                }
                '\'' => {
                    self.until('\'')?;
                }
                '`' => {
                    self.until('`')?;
                }
                '"' => self.close_quote(depth)?,
                '#' if begins_word => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                '\n' => {
                    for (delimiter, tabs) in documents.drain(..) {
                        self.skip_document(&delimiter, tabs)?;
                    }
                }
                '<' if self.peek(0) == Some('<') && self.peek(1) != Some('<') => {
                    self.at += 1;
                    documents.push(self.delimiter());
                }
                '(' => open += 1,
                ')' => {
                    open -= 1;
                    if open == 0 {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
        Err(OPEN)
    }

    /// Passes over the rest of a double-quoted string.
    fn close_quote(&mut self, depth: usize) -> Result<(), Trouble> {
        while let Some(c) = self.next() {
            match c {
                '"' => return Ok(()),
                '\\' => {
                    self.next();
                }
                '`' => {
                    self.until('`')?;
                }
                '$' if self.peek(0) == Some('(') => {
                    self.at += 1;
                    self.close_paren(depth + 1)?;
                }
                _ => {}
            }
        }
        Err(Trouble("a quote is not closed"))
    }

    /// The delimiter of a here-document without its quotes, and whether leading
    /// tabs are left off.
    fn delimiter(&mut self) -> (String, bool) {
        let tabs = self.peek(0) == Some('-');
        if tabs {
            self.at += 1;
        }
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.at += 1;
        }
        let mut delimiter = String::new();
        while let Some(c) = self.peek(0).filter(|c| !" \t\n;&|<>()".contains(*c)) {
            if !"'\"\\".contains(c) {
                delimiter.push(c);
            }
            self.at += 1;
        }
        (delimiter, tabs)
    }

    fn skip_document(&mut self, delimiter: &str, tabs: bool) -> Result<(), Trouble> {
        loop {
            let from = self.at;
            let mut ended = true;
            while let Some(c) = self.next() {
                if c == '\n' {
                    ended = false;
                    break;
                }
            }
            let line = self.slice(from, if ended { self.at } else { self.at - 1 });
            let line = if tabs {
                line.trim_start_matches('\t')
            } else {
                &line
            };
            if line == delimiter {
                // The newline ends the next document's line, if there is one.
                return Ok(());
            }
            if ended {
                return Err(Trouble("a here-document is not closed"));
            }
        }
    }
}
