//! The grep dialect and the search of one file's bytes.
//!
//! A [`Grep`] is a compiled query. Each searching thread takes a [`GrepWorker`]
//! from it. A [`GrepCollector`] combines the results of the files, added in path
//! order, and cuts them at the query's maximum. So the result is the head of the
//! complete one, however the work was distributed.

use std::borrow::Cow;
use std::io::{self, Read};

use bytes::Bytes;
use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use regex_syntax::hir::Look;

use crate::error::Error;
use crate::limits::{GREP_LINE_BYTES, PATTERN_BYTES, REGEX_BYTES};
use crate::ops::{Case, FileMatches, GrepQuery, GrepResult, LineKind, RawLine, Skipped};
use crate::path::VPath;
use crate::text::{Encoding, SNIFF_BYTES, detect, is_binary_for_search};

mod sink;

use sink::{LineSink, cut_at};

/// The reason why a pattern cannot be searched for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrepPatternError {
    /// The pattern is longer than [`PATTERN_BYTES`].
    #[error("the pattern has {0} bytes, more than {PATTERN_BYTES}; search for less at once")]
    TooLong(usize),
    /// The pattern contains a line end but matches may not span lines.
    #[error(
        "the pattern names a line end, but a match may not span lines; ask for a multi-line search"
    )]
    LineEnd,
    /// The pattern refers to the beginning or end of the file but the search goes
    /// line by line.
    #[error(
        "the pattern names the beginning or end of the file (\\A, \\z), but the search goes line by line; use ^ and $, or ask for a multi-line search"
    )]
    FileAnchor,
    /// The pattern is not a regular expression. The text points at the position.
    #[error("{0}\nescape special characters with '\\', or ask for a literal search")]
    Syntax(String),
    /// The pattern is valid but too expensive to search for.
    #[error("{0}; search for something simpler")]
    TooComplex(String),
}

impl From<GrepPatternError> for Error {
    fn from(error: GrepPatternError) -> Self {
        Self::invalid_input(error.to_string())
    }
}

/// A compiled [`GrepQuery`].
#[derive(Debug, Clone)]
pub struct Grep {
    matcher: RegexMatcher,
    before: usize,
    after: usize,
    multi_line: bool,
    max_line_bytes: usize,
    max_matches: usize,
    max_bytes: usize,
}

impl Grep {
    /// Compiles the query's pattern.
    ///
    /// # Errors
    ///
    /// A [`GrepPatternError`] that says what is wrong with the pattern, and where.
    pub fn new(query: &GrepQuery) -> Result<Self, GrepPatternError> {
        if query.pattern.len() > PATTERN_BYTES {
            return Err(GrepPatternError::TooLong(query.pattern.len()));
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .fixed_strings(query.literal)
            .case_insensitive(query.case == Case::Insensitive)
            .case_smart(query.case == Case::Smart)
            .size_limit(REGEX_BYTES)
            .dfa_size_limit(REGEX_BYTES)
            .crlf(true);
        if query.multi_line {
            builder.line_terminator(None);
        }
        let pattern = check_pattern(query)?;
        let matcher = builder
            .build(&pattern)
            .map_err(|error| match error.kind() {
                grep_regex::ErrorKind::NotAllowed(_) => GrepPatternError::LineEnd,
                _ => GrepPatternError::TooComplex(error.to_string()),
            })?;
        Ok(Self {
            matcher,
            before: query.before,
            after: query.after,
            multi_line: query.multi_line,
            max_line_bytes: query.max_line_bytes,
            max_matches: query.max_matches,
            max_bytes: query.max_bytes,
        })
    }

    /// Creates the state that one thread needs to search files.
    pub fn worker(&self) -> GrepWorker<'_> {
        let searcher = SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .multi_line(self.multi_line)
            .before_context(self.before)
            .after_context(self.after)
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(true)
            .heap_limit(Some(GREP_LINE_BYTES))
            .build();
        GrepWorker {
            grep: self,
            searcher,
            lines: Vec::new(),
            copied: Vec::new(),
        }
    }

    /// Whether only single matching lines are requested, without context.
    fn is_plain(&self) -> bool {
        !self.multi_line && self.before == 0 && self.after == 0
    }
}

/// Checks a pattern alone, before the matcher puts a group around it: the error
/// must refer to the pattern as it was given, `a)|(b` must not close that group,
/// and a comment at its end must not swallow the group's end.
fn check_pattern(query: &GrepQuery) -> Result<Cow<'_, str>, GrepPatternError> {
    if query.literal {
        return Ok(Cow::Borrowed(&query.pattern));
    }
    let syntax = |error: &dyn std::fmt::Display| GrepPatternError::Syntax(error.to_string());
    let expression = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .multi_line(true)
        .crlf(true)
        .build()
        .parse(&query.pattern)
        .map_err(|error| syntax(&error))?;
    let anchors = expression.properties().look_set();
    if !query.multi_line && (anchors.contains(Look::Start) || anchors.contains(Look::End)) {
        return Err(GrepPatternError::FileAnchor);
    }
    let parsed = regex_syntax::ast::parse::Parser::new()
        .parse_with_comments(&query.pattern)
        .map_err(|error| syntax(&error))?;
    let ends_in_comment = |comment: &regex_syntax::ast::Comment| {
        comment.span.end.offset == query.pattern.len() && !query.pattern.ends_with('\n')
    };
    Ok(if parsed.comments.last().is_some_and(ends_in_comment) {
        Cow::Owned(format!("{}\n", query.pattern))
    } else {
        Cow::Borrowed(&query.pattern)
    })
}

/// The reason why a file was not searched.
#[derive(Debug)]
#[non_exhaustive]
pub enum SkipReason {
    /// It is not text.
    Binary,
    /// It has a line longer than [`GREP_LINE_BYTES`].
    LongLine,
    /// Reading it failed.
    Unreadable(io::Error),
}

impl SkipReason {
    /// Counts the file under this reason.
    pub fn count(&self, skipped: &mut Skipped) {
        match self {
            Self::Binary => skipped.binary += 1,
            Self::LongLine => skipped.long_line += 1,
            Self::Unreadable(_) => skipped.unreadable += 1,
        }
    }
}

/// Searches one file after another, reusing its buffers.
#[derive(Debug)]
pub struct GrepWorker<'g> {
    grep: &'g Grep,
    searcher: Searcher,
    /// Buffer for the lines of a file.
    lines: Vec<RawLine>,
    /// Buffer for their text, unless it is shared.
    copied: Vec<u8>,
}

impl GrepWorker<'_> {
    /// Searches a file that is in memory. The lines found share `content`.
    ///
    /// Returns no lines if nothing matches. Stops one match past the query's
    /// maximum, or one line past its bytes: enough for the collector to know that there is more.
    ///
    /// # Errors
    ///
    /// A [`SkipReason`] if the file was not searched.
    pub fn search_bytes(
        &mut self,
        path: &VPath,
        content: &Bytes,
    ) -> Result<FileMatches, SkipReason> {
        self.search_content(path, content, Some(content))
    }

    /// As [`search_bytes`](Self::search_bytes), for a file in a buffer of the caller. The
    /// lines found are copied, so a result holds no more than it shows.
    pub fn search_slice(
        &mut self,
        path: &VPath,
        content: &[u8],
    ) -> Result<FileMatches, SkipReason> {
        self.search_content(path, content, None)
    }

    fn search_content(
        &mut self,
        path: &VPath,
        content: &[u8],
        shared: Option<&Bytes>,
    ) -> Result<FileMatches, SkipReason> {
        if is_binary_for_search(content) {
            return Err(SkipReason::Binary);
        }
        if content.len() > GREP_LINE_BYTES {
            let spans_lines = self.searcher.multi_line_with_matcher(&self.grep.matcher);
            if spans_lines || has_long_line(content) {
                return Err(SkipReason::LongLine);
            }
        }
        // With a byte-order mark the searcher sees a converted copy, so its offsets
        // do not refer to `content`.
        let has_mark = detect(content) != Encoding::Utf8;
        if !has_mark && self.grep.is_plain() {
            return Ok(self.search_plain(path, content, shared));
        }
        let shared = shared.filter(|_| !has_mark);
        let mut sink = LineSink::new(self.grep, path, shared.is_some());
        self.searcher
            .search_slice(&self.grep.matcher, content, &mut sink)
            .map_err(skip_reason)?;
        Ok(sink.finish(shared))
    }

    /// Searches the whole content for matches and then finds the lines they are on,
    /// which is much less work than going line by line. The pattern was compiled so
    /// that no match spans lines.
    fn search_plain(&mut self, path: &VPath, bytes: &[u8], shared: Option<&Bytes>) -> FileMatches {
        let width = self.grep.max_line_bytes.min(u32::MAX as usize);
        let mut file = FileMatches::new(path.clone(), Bytes::new());
        self.lines.clear();
        self.copied.clear();
        let mut shown_bytes = 0;
        let mut number = 1;
        let mut at = 0;
        let is_ended = bytes.ends_with(b"\n");
        while at < bytes.len()
            // Searching starts at a line start, as if the file began there.
            && let Ok(Some(found)) = self.grep.matcher.find(&bytes[at..])
        {
            let found = at + found.start();
            // An empty match after the last line end is not on any line.
            if is_ended && found == bytes.len() {
                break;
            }
            let start = memchr::memrchr(b'\n', &bytes[at..found]).map_or(at, |end| at + end + 1);
            number += memchr::memchr_iter(b'\n', &bytes[at..start]).count() as u64;
            let end = memchr::memchr(b'\n', &bytes[found..]).map_or(bytes.len(), |end| found + end);
            let line = without_return(&bytes[start..end], end < bytes.len());
            let shown = cut_at(line, width);
            if shown < line.len() {
                file.cut(self.lines.len(), (line.len() - shown) as u64);
            }
            self.lines.push(RawLine {
                number,
                start: if shared.is_some() { start } else { shown_bytes },
                // At most `width`, which is at most u32::MAX.
                length: shown as u32,
                kind: LineKind::Match,
            });
            if shared.is_none() {
                self.copied.extend_from_slice(&line[..shown]);
            }
            shown_bytes += shown;
            if self.lines.len() > self.grep.max_matches || shown_bytes > self.grep.max_bytes {
                break;
            }
            number += 1;
            at = end + 1;
        }
        if !self.lines.is_empty() {
            let text = shared.map_or_else(|| Bytes::copy_from_slice(&self.copied), Bytes::clone);
            file.set_lines(self.lines.as_slice().into(), text);
        }
        file
    }

    /// Searches the output of `reader`, in memory bounded by one line.
    ///
    /// # Errors
    ///
    /// A [`SkipReason`] if the file was not searched.
    pub fn search_reader(
        &mut self,
        path: &VPath,
        mut reader: impl Read,
    ) -> Result<FileMatches, SkipReason> {
        let mut prefix = Vec::with_capacity(SNIFF_BYTES);
        reader
            .by_ref()
            .take(SNIFF_BYTES as u64)
            .read_to_end(&mut prefix)
            .map_err(SkipReason::Unreadable)?;
        if is_binary_for_search(&prefix) {
            return Err(SkipReason::Binary);
        }
        let mut sink = LineSink::new(self.grep, path, false);
        self.searcher
            .search_reader(&self.grep.matcher, prefix.chain(reader), &mut sink)
            .map_err(skip_reason)?;
        Ok(sink.finish(None))
    }
}

/// Separates the searcher's own "line does not fit" from a failed read: the former
/// is its only error of kind `Other`.
fn skip_reason(error: io::Error) -> SkipReason {
    if error.kind() == io::ErrorKind::Other {
        SkipReason::LongLine
    } else {
        SkipReason::Unreadable(error)
    }
}

fn has_long_line(content: &[u8]) -> bool {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', content) {
        if end - start > GREP_LINE_BYTES {
            return true;
        }
        start = end + 1;
    }
    content.len() - start > GREP_LINE_BYTES
}

/// Strips the `\r` of a line end, if the line has a line end.
fn without_return(line: &[u8], is_ended: bool) -> &[u8] {
    match line {
        [line @ .., b'\r'] if is_ended => line,
        line => line,
    }
}

/// Combines the results of files, in path order, up to the query's maximum.
#[derive(Debug)]
pub struct GrepCollector {
    result: GrepResult,
    max_matches: usize,
    bytes_left: usize,
    after: u64,
}

impl GrepCollector {
    /// Creates a collector for `query`.
    pub fn new(query: &GrepQuery) -> Self {
        Self {
            result: GrepResult::default(),
            max_matches: query.max_matches,
            bytes_left: query.max_bytes,
            after: query.after as u64,
        }
    }

    /// Adds the result of one file. The caller must add files in path order.
    ///
    /// Returns `true` if the result is full, so that no further file can add to it.
    pub fn add(&mut self, searched: Result<FileMatches, SkipReason>) -> bool {
        if self.result.truncated {
            return true;
        }
        match searched {
            Err(reason) => reason.count(&mut self.result.skipped),
            Ok(file) if file.is_empty() => {}
            Ok(mut file) => {
                if let Some(index) = self.first_over(&file) {
                    file.truncate(index);
                    self.result.truncated = true;
                }
                self.result.matches += file.matches;
                if file.matches > 0 {
                    self.result.files.push(file);
                }
            }
        }
        self.result.truncated
    }

    /// Returns the index of the first line that is not part of the result.
    fn first_over(&mut self, file: &FileMatches) -> Option<usize> {
        let mut matches_left = self.max_matches - self.result.matches;
        let bytes = file.shown_bytes();
        if file.matches <= matches_left && bytes <= self.bytes_left {
            self.bytes_left -= bytes;
            return None;
        }
        // One past the last match kept, with the context that follows it.
        let mut kept = 0;
        let mut last_match = None;
        for (index, line) in file.lines().enumerate() {
            let over = self.bytes_left < line.bytes.len();
            if over || (line.kind == LineKind::Match && matches_left == 0) {
                return Some(kept);
            }
            self.bytes_left -= line.bytes.len();
            if line.kind == LineKind::Match {
                matches_left -= 1;
                last_match = Some(line.number);
                kept = index + 1;
            } else if last_match.is_some_and(|last| line.number <= last + self.after) {
                kept = index + 1;
            }
        }
        None
    }

    /// Returns the result, with further counts of what was skipped.
    pub fn finish(mut self, skipped: Skipped) -> GrepResult {
        self.result.skipped += skipped;
        self.result
    }
}

#[cfg(test)]
mod tests;
