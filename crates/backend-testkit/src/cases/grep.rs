//! Finding lines by content.

mod left_out;
mod limits;

use backend_core::ErrorKind;
use backend_core::ops::{Case, GrepQuery, GrepResult};

use crate::cases::glob::{NONE, ODD_NAMES, SHELL_WORDS};
use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

pub use left_out::*;
pub use limits::*;

/// Length of the beginning of a file that decides whether it is binary.
const SNIFFED_BYTES: usize = 8 * 1024;

async fn search(t: &Env, query: GrepQuery) -> Result<GrepResult, Failure> {
    Ok(t.backend().grep(query).await?)
}

async fn hits(t: &Env, query: GrepQuery) -> Result<Vec<String>, Failure> {
    Ok(t.hits(&search(t, query).await?))
}

async fn files(t: &Env, query: GrepQuery) -> Result<Vec<String>, Failure> {
    Ok(t.files_hit(&search(t, query).await?))
}

async fn is_invalid(t: &Env, query: GrepQuery) -> CaseResult {
    let pattern: String = query.pattern.chars().take(40).collect();
    match t.backend().grep(query).await {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        other => Err(Failure::new(format!("{pattern:?} gave {other:?}"))),
    }
}

/// Writes files that all contain the line `needle`.
async fn put_needles(t: &Env, paths: &[&str]) -> CaseResult {
    for path in paths {
        t.put(path, "needle\n").await?;
    }
    Ok(())
}

/// Whether a message shows the pattern with a `^` below this byte of it.
fn points_at(message: &str, pattern: &str, spot: usize) -> bool {
    let lines: Vec<_> = message.lines().collect();
    let found = |line: &str| line.find(pattern).map(|start| start + spot);
    lines
        .windows(2)
        .any(|pair| found(pair[0]).is_some_and(|spot| pair[1].find('^') == Some(spot)))
}

fn utf16(text: &str, bytes_of: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
    units.flat_map(bytes_of).collect()
}

/// A match has its file, its line number and the text of the line.
pub async fn finds_lines(t: &Env) -> CaseResult {
    t.put("a.txt", "first\n  the needle, here\nlast\n").await?;
    t.put("sub/b.txt", "needle\n\nneedles: needle\n").await?;
    t.put("sub/c.txt", "nothing\n").await?;
    let expected = [
        "a.txt:2:  the needle, here",
        "sub/b.txt:1:needle",
        "sub/b.txt:3:needles: needle",
    ];
    check_eq!(t.grep("needle").await?, expected)
}

/// Patterns have the syntax of the `regex` crate.
pub async fn rust_dialect(t: &Env) -> CaseResult {
    t.put("f", "cat 42\ndog\n<a><b>\nnaïve\ncatapult\n").await?;
    check_eq!(t.grep(r"\d+").await?, ["f:1:cat 42"])?;
    check_eq!(t.grep(r"\bcat\b|dogs?").await?, ["f:1:cat 42", "f:2:dog"])?;
    check_eq!(t.grep(r"^<.+?><b>").await?, ["f:3:<a><b>"])?;
    check_eq!(t.grep(r"^\w{5}$").await?, ["f:4:naïve"])?;
    check_eq!(t.grep(r"^(?P<pet>c\p{Ll}t)[^a]").await?, ["f:1:cat 42"])?;
    check_eq!(t.grep(r"(?i)CATA(?-i:p)").await?, ["f:5:catapult"])
}

/// A malformed pattern is an error that points at the position. It is never a search
/// without results.
pub async fn bad_pattern_points_at_the_spot(t: &Env) -> CaseResult {
    put_needles(t, &["a"]).await?;
    for (pattern, spot) in [
        ("fn (x", 3),
        ("[a-", 0),
        ("b{2,1}", 1),
        ("*a", 0),
        (r"(a)\1", 3),
        ("a(?=b)", 1),
        ("a\\", 1),
    ] {
        let Err(error) = t.backend().grep(t.grep_query(pattern)).await else {
            return Err(Failure::new(format!("{pattern:?} was searched for")));
        };
        check_eq!(error.kind(), ErrorKind::InvalidInput)?;
        check!(points_at(error.message(), pattern, spot), "{error}")?;
    }
    Ok(())
}

/// A pattern is parsed by itself: text added around it cannot close its groups or end
/// up in its comments.
pub async fn pattern_stands_alone(t: &Env) -> CaseResult {
    t.put("f", "a\nb\na b\n").await?;
    for pattern in ["a)|(b", "a)(b", "(?:a)|b)|(?:c"] {
        is_invalid(t, t.grep_query(pattern)).await?;
    }
    check_eq!(t.grep(r"(?x)^ a \  b # comment").await?, ["f:3:a b"])?;
    check_eq!(t.grep("^a$|^b$").await?, ["f:1:a", "f:2:b"])
}

/// Anchors of the whole file are allowed only in a multi-line search.
pub async fn file_anchors_need_multi_line(t: &Env) -> CaseResult {
    t.put("f", "a\nb\na\n").await?;
    for pattern in [r"\Aa", r"a\z"] {
        is_invalid(t, t.grep_query(pattern)).await?;
    }
    let query = t.grep_query(r"\Aa").multi_line(true);
    check_eq!(hits(t, query).await?, ["f:1:a"])
}

/// A search that finds nothing succeeds.
pub async fn no_match_is_empty_success(t: &Env) -> CaseResult {
    put_needles(t, &["a", "b/c"]).await?;
    let result = search(t, t.grep_query("nothing like it")).await?;
    check_eq!(result, GrepResult::default())
}

/// A search in a missing path is an error.
pub async fn missing_path(t: &Env) -> CaseResult {
    let query = GrepQuery::new("needle", t.path("missing")?);
    t.fails(ErrorKind::NotFound, t.backend().grep(query).await)
}

/// A single file can be searched, even if it does not match the file filter.
pub async fn single_file(t: &Env) -> CaseResult {
    put_needles(t, &["a.txt", "sub/a.txt"]).await?;
    let query = GrepQuery::new("needle", t.path("sub/a.txt")?);
    check_eq!(hits(t, query.clone()).await?, ["sub/a.txt:1:needle"])?;
    let query = query.files("*.rs");
    check_eq!(hits(t, query).await?, ["sub/a.txt:1:needle"])
}

/// A file filter without a slash applies in every directory.
pub async fn filter_matches_at_any_depth(t: &Env) -> CaseResult {
    put_needles(t, &["a.py", "a.rs", "one/b.py", "one/two/c.py"]).await?;
    let query = t.grep_query("needle").files("*.py");
    check_eq!(files(t, query).await?, ["a.py", "one/b.py", "one/two/c.py"])
}

/// A file filter may contain alternatives.
pub async fn filter_with_braces(t: &Env) -> CaseResult {
    put_needles(t, &["a.py", "b.rs", "c/d.toml", "e.txt"]).await?;
    let query = t.grep_query("needle").files("*.{py,toml}");
    check_eq!(files(t, query).await?, ["a.py", "c/d.toml"])
}

/// A file filter with a slash is anchored at the searched directory.
pub async fn filter_with_slash_is_anchored(t: &Env) -> CaseResult {
    put_needles(t, &["lib/src/a.rs", "src/a.rs", "src/b/c.rs"]).await?;
    let query = t.grep_query("needle").files("src/*.rs");
    check_eq!(files(t, query).await?, ["src/a.rs"])?;
    let query = GrepQuery::new("needle", t.path("lib")?).files("src/**");
    check_eq!(files(t, query).await?, ["lib/src/a.rs"])
}

/// A malformed file filter is rejected. It is not a search without results.
pub async fn bad_filter_is_invalid(t: &Env) -> CaseResult {
    put_needles(t, &["a.txt"]).await?;
    for filter in ["", "[", "*.{py", "../*", "src/", "a\0b"] {
        is_invalid(t, t.grep_query("needle").files(filter)).await?;
    }
    Ok(())
}

/// A NUL after the first 8 KiB is an ordinary character.
pub async fn late_nul_is_text(t: &Env) -> CaseResult {
    let mut content = b"x\n".repeat(SNIFFED_BYTES / 2);
    content.extend_from_slice(b"\0 needle\nneedle\n");
    t.put("f", content).await?;
    let result = search(t, t.grep_query("needle")).await?;
    check_eq!(t.hits(&result), ["f:4097:\0 needle", "f:4098:needle"])?;
    check_eq!(result.skipped.binary, 0)
}

/// UTF-16 with a byte-order mark is searched as text and shown as UTF-8.
pub async fn utf16_is_searched(t: &Env) -> CaseResult {
    let text = "first\r\nschöne Grüße 🦀 needle\n";
    t.put("big", utf16(text, u16::to_be_bytes)).await?;
    t.put("little", utf16(text, u16::to_le_bytes)).await?;
    let result = search(t, t.grep_query("Grüße . needle$")).await?;
    let expected = ["big", "little"].map(|path| format!("{path}:2:schöne Grüße 🦀 needle"));
    check_eq!(t.hits(&result), expected)?;
    check_eq!(result.skipped.binary, 0)?;
    check_eq!(t.grep("^first$").await?, ["big:1:first", "little:1:first"])
}

/// A byte-order mark is not part of the first line.
pub async fn byte_order_mark_is_no_content(t: &Env) -> CaseResult {
    t.put("f", "\u{feff}first\nsecond\n").await?;
    check_eq!(t.grep("^first").await?, ["f:1:first"])?;
    check_eq!(t.grep("\u{feff}").await?, NONE)?;
    let query = t.grep_query("second").context(1, 0);
    check_eq!(hits(t, query).await?, ["f-1-first", "f:2:second"])
}

/// Bytes that are not UTF-8 do not stop a search and are shown as U+FFFD.
pub async fn invalid_utf8_is_searched(t: &Env) -> CaseResult {
    t.put("f", b"caf\xe9 needle\n\xff\xfe\nneedle\n").await?;
    let expected = ["f:1:caf\u{fffd} needle", "f:3:needle"];
    check_eq!(t.grep("needle").await?, expected)
}

/// In a literal search, every character is literal.
pub async fn literal_is_literal(t: &Env) -> CaseResult {
    t.put("f", "a.b(c)\naxb(c)\n\\d [x]\n7 x\n").await?;
    for (text, line) in [("a.b(", "f:1:a.b(c)"), (r"\d [x", r"f:3:\d [x]")] {
        let query = t.grep_query(text).literal(true);
        check_eq!(hits(t, query).await?, [line])?;
    }
    let query = t.grep_query("A.B(").literal(true).case(Case::Insensitive);
    check_eq!(hits(t, query).await?, ["f:1:a.b(c)"])
}

/// Upper and lower case differ by default.
pub async fn case_insensitive(t: &Env) -> CaseResult {
    t.put("f", "needle\nNEEDLE\nécole\nÉCOLE\n").await?;
    check_eq!(t.grep("Needle").await?, NONE)?;
    check_eq!(t.grep("needle").await?, ["f:1:needle"])?;
    let either = |pattern: &str| t.grep_query(pattern).case(Case::Insensitive);
    check_eq!(hits(t, either("Needle")).await?.len(), 2)?;
    check_eq!(hits(t, either("École")).await?, ["f:3:école", "f:4:ÉCOLE"])
}

/// With smart case, an upper-case letter in the pattern makes the search
/// case-sensitive.
pub async fn smart_case(t: &Env) -> CaseResult {
    t.put("f", "needle\nNeedle\nNEEDLE\n").await?;
    let smart = |pattern: &str| t.grep_query(pattern).case(Case::Smart);
    check_eq!(hits(t, smart("needle")).await?.len(), 3)?;
    check_eq!(hits(t, smart("Needle")).await?, ["f:2:Needle"])
}

/// Context lines are returned once, in order, and marked as context.
pub async fn context_lines(t: &Env) -> CaseResult {
    t.put("f", "x 1\n2\n3\n4\nx 5\n6\nx 7\n8\n9\n").await?;
    t.put("g", "1\nx 2").await?;
    let around = "f:1:x 1|f-2-2|f-4-4|f:5:x 5|f-6-6|f:7:x 7|f-8-8|g-1-1|g:2:x 2";
    let above = "f:1:x 1|f-3-3|f-4-4|f:5:x 5|f-6-6|f:7:x 7|g-1-1|g:2:x 2";
    let below = "f:1:x 1|f-2-2|f-3-3|f:5:x 5|f-6-6|f:7:x 7|f-8-8|f-9-9|g:2:x 2";
    for (before, after, expected) in [(1, 1, around), (2, 0, above), (0, 2, below)] {
        let result = search(t, t.grep_query("x").context(before, after)).await?;
        check_eq!(t.hits(&result).join("|"), expected)?;
        check_eq!(result.matches, 4)?;
    }
    Ok(())
}

/// In a multi-line search, every line that a match touches is a match.
pub async fn multi_line_spans(t: &Env) -> CaseResult {
    t.put("f", "zero\none\ntwo\nthree\none\nfour\n").await?;
    let query = t.grep_query(r"one\ntwo").multi_line(true);
    let result = search(t, query.clone()).await?;
    check_eq!(t.hits(&result), ["f:2:one", "f:3:two"])?;
    check_eq!(result.matches, 2)?;
    let expected = ["f-1-zero", "f:2:one", "f:3:two", "f-4-three"];
    check_eq!(hits(t, query.context(1, 1)).await?, expected)?;
    let query = t.grep_query("(?s)two.*one").multi_line(true);
    check_eq!(hits(t, query).await?, ["f:3:two", "f:4:three", "f:5:one"])
}

/// A pattern that can match only across lines is rejected in a search by line.
pub async fn line_end_in_pattern_needs_multi_line(t: &Env) -> CaseResult {
    t.put("f", "one\ntwo\n").await?;
    for pattern in [r"one\ntwo", "one\ntwo", r"one\x0atwo", r"one[\n]two"] {
        is_invalid(t, t.grep_query(pattern)).await?;
    }
    is_invalid(t, t.grep_query("one\ntwo").literal(true)).await
}

/// Files are sorted by the bytes of their paths, lines by number.
pub async fn ordered_by_path_then_line(t: &Env) -> CaseResult {
    let sorted = ["Z", "a-b", "a.b", "a/x", "a/x.y", "a0", "b", "é"];
    for path in sorted.iter().rev() {
        t.put(path, "x\n".repeat(11)).await?;
    }
    let result = search(t, t.grep_query("x")).await?;
    check_eq!(t.files_hit(&result), sorted)?;
    for file in &result.files {
        let numbers: Vec<_> = file.lines().map(|line| line.number).collect();
        check_eq!(numbers, (1..=11).collect::<Vec<u64>>())?;
    }
    Ok(())
}

/// `\r\n` is a line ending and not part of the line.
pub async fn crlf_end_is_not_content(t: &Env) -> CaseResult {
    t.put("f", "an end\r\n\r\nend\r\nlast end").await?;
    let ends = ["f:1:an end", "f:3:end", "f:4:last end"];
    check_eq!(t.grep("end$").await?, ends)?;
    check_eq!(t.grep("^$").await?, ["f:2:"])?;
    let query = t.grep_query("^end$").context(2, 0);
    check_eq!(hits(t, query).await?, ["f-1-an end", "f-2-", "f:3:end"])?;
    let query = t.grep_query(r"end$\s+end").multi_line(true);
    check_eq!(hits(t, query).await?, ["f:1:an end", "f:2:", "f:3:end"])
}

/// `.` matches no line ending, unless the pattern enables it.
pub async fn dot_does_not_match_line_ends(t: &Env) -> CaseResult {
    t.put("dos", "one\r\ntwo\r\n").await?;
    t.put("unix", "one\ntwo\n").await?;
    check_eq!(t.grep("one.").await?, NONE)?;
    check_eq!(t.grep("^.{3}$").await?.len(), 4)?;
    let query = t.grep_query("one.+two").multi_line(true);
    check_eq!(hits(t, query).await?, NONE)?;
    let query = t.grep_query("(?s)one.+two").multi_line(true);
    check_eq!(hits(t, query).await?.len(), 4)
}

/// A match has the exact name of its file, for every valid name.
pub async fn names_with_special_characters(t: &Env) -> CaseResult {
    for name in ODD_NAMES {
        t.put(&format!("odd {name}/{name}"), format!("x\nin {name:?}\n"))
            .await?;
    }
    let expected = ODD_NAMES.map(|name| format!("odd {name}/{name}:2:in {name:?}"));
    check_eq!(t.grep("^in ").await?, expected)?;
    for (name, line) in ODD_NAMES.iter().zip(&expected) {
        let path = t.path(&format!("odd {name}/{name}"))?;
        let query = GrepQuery::new("^in ", path);
        check_eq!(hits(t, query).await?, [line.as_str()])?;
    }
    Ok(())
}

/// A pattern, a filter or a path that looks like an option is not one.
pub async fn pattern_with_leading_dash(t: &Env) -> CaseResult {
    let words = ["--pre=sh", "-f/etc/passwd", "-e", "--", "@file", "-r x"];
    t.put("-e", words.join("\n")).await?;
    t.put("-r/a", "touch made\n").await?;
    for word in words {
        let hits = t.grep(&format!("^{word}$")).await?;
        check_eq!(hits.len(), 1)?;
        let hits = t.grep(word).await?;
        check!(hits.iter().all(|hit| hit.contains(word)), "{hits:?}")?;
        check!(!hits.is_empty(), "{word:?} was not found")?;
    }
    let query = t.grep_query("-").files("-e");
    check_eq!(files(t, query).await?, ["-e"])?;
    let query = GrepQuery::new("touch", t.path("-r")?);
    check_eq!(hits(t, query).await?, ["-r/a:1:touch made"])?;
    check_eq!(t.names("").await?, ["-r/", "-e"])
}

/// No part of a search is passed to a shell.
pub async fn shell_characters_are_only_text(t: &Env) -> CaseResult {
    t.put("f", SHELL_WORDS.join("\n")).await?;
    for word in SHELL_WORDS {
        let query = t.grep_query(word).literal(true);
        check_eq!(hits(t, query.clone()).await?.len(), 1)?;
        check_eq!(hits(t, query.files(word)).await?, NONE)?;
    }
    check_eq!(t.names("").await?, ["f"])
}

/// An empty file has no line that could match.
pub async fn empty_file_matches_nothing(t: &Env) -> CaseResult {
    t.put("empty", "").await?;
    for pattern in ["", "^", "^$", ".*"] {
        let result = search(t, t.grep_query(pattern)).await?;
        check_eq!(result, GrepResult::default())?;
        let query = t.grep_query(pattern).multi_line(true);
        check_eq!(search(t, query).await?, GrepResult::default())?;
    }
    Ok(())
}

/// An empty pattern matches every line, once.
pub async fn empty_pattern_matches_every_line(t: &Env) -> CaseResult {
    t.put("f", "one\n\ntwo\n").await?;
    check_eq!(t.grep("").await?, ["f:1:one", "f:2:", "f:3:two"])?;
    let query = t.grep_query("").literal(true);
    check_eq!(hits(t, query).await?, ["f:1:one", "f:2:", "f:3:two"])
}

/// The last line is a line, with or without a newline.
pub async fn last_line_without_newline(t: &Env) -> CaseResult {
    t.put("f", "one\ntwo").await?;
    t.put("g", "one\ntwo\n").await?;
    check_eq!(t.grep("two$").await?, ["f:2:two", "g:2:two"])
}

/// A pattern that makes backtracking engines run forever finishes quickly.
pub async fn nested_quantifiers_end_soon(t: &Env) -> CaseResult {
    t.put("f", format!("{}b\n", "a".repeat(50_000))).await?;
    for pattern in ["(a+)+$", "^(a|a)*$", "^(a*)*c"] {
        check_eq!(t.grep(pattern).await?, NONE)?;
    }
    Ok(())
}
