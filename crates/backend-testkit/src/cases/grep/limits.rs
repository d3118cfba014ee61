//! Limits on patterns, context, matches, lines and bytes.

use backend_core::limits::{GREP_CONTEXT_LINES, LINE_BYTES, PATTERN_BYTES};
use backend_core::ops::{GrepLine, GrepQuery};

use super::{hits, is_invalid, put_needles, search};
use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

/// Writes three files with three matches each, and checks the results for each of these
/// maxima.
async fn check_heads(t: &Env, maxima: &[usize]) -> CaseResult {
    for path in ["a", "b/c", "d"] {
        t.put(path, "hit 1\nmiss\nhit 3\nmiss\nhit 5\n").await?;
    }
    let all = t.grep("hit").await?;
    check_eq!(all.len(), 9)?;
    for &maximum in maxima {
        let result = search(t, t.grep_query("hit").max_matches(maximum)).await?;
        let kept = maximum.min(all.len());
        check_eq!(t.hits(&result), all[..kept])?;
        check_eq!((result.matches, result.truncated), (kept, kept < all.len()))?;
    }
    Ok(())
}

/// Returns the text of the found lines, and how many bytes of each were cut off.
async fn cut_lines(t: &Env, query: GrepQuery) -> Result<Vec<(String, u64)>, Failure> {
    let result = search(t, query).await?;
    let lines = result.files.iter().flat_map(|file| file.lines());
    let text_and_cut = |line: GrepLine<'_>| (line.text().into_owned(), line.cut_bytes);
    Ok(lines.map(text_and_cut).collect())
}

/// Context above the limit is rejected. Exactly the limit is allowed.
pub async fn too_much_context_is_invalid(t: &Env) -> CaseResult {
    put_needles(t, &["a"]).await?;
    let (most, over) = (GREP_CONTEXT_LINES, GREP_CONTEXT_LINES + 1);
    is_invalid(t, t.grep_query("needle").context(over, 0)).await?;
    is_invalid(t, t.grep_query("needle").context(0, over)).await?;
    is_invalid(t, t.grep_query("needle").context(usize::MAX, usize::MAX)).await?;
    let query = t.grep_query("needle").context(most, most);
    check_eq!(hits(t, query).await?, ["a:1:needle"])
}

/// A maximum returns the beginning of the complete result and reports that there is
/// more.
pub async fn maximum_gives_the_head(t: &Env) -> CaseResult {
    check_heads(t, &[3, 6]).await
}

/// A maximum can be reached inside a file.
pub async fn maximum_cuts_inside_a_file(t: &Env) -> CaseResult {
    check_heads(t, &[1, 2, 4, 5, 7, 8]).await
}

/// A result of exactly the maximum is complete.
pub async fn exactly_the_maximum_is_not_truncated(t: &Env) -> CaseResult {
    check_heads(t, &[9, 10, usize::MAX]).await
}

/// The last match within a maximum keeps its context. Later matches are dropped with
/// theirs.
pub async fn maximum_keeps_trailing_context(t: &Env) -> CaseResult {
    t.put("f", "1\nx 2\n3\n4\n5\nx 6\n7\n8\nx 9\n").await?;
    let query = t.grep_query("x").context(1, 1);
    let one = ["f-1-1", "f:2:x 2", "f-3-3"];
    check_eq!(hits(t, query.clone().max_matches(1)).await?, one)?;
    let two = ["f-1-1", "f:2:x 2", "f-3-3", "f-5-5", "f:6:x 6", "f-7-7"];
    let result = search(t, query.max_matches(2)).await?;
    check_eq!(t.hits(&result), two)?;
    check!(result.truncated)?;
    let query = t.grep_query("x 9").context(2, 2).max_matches(1);
    check!(!search(t, query).await?.truncated)
}

/// A maximum of zero is rejected.
pub async fn zero_maximum_is_invalid(t: &Env) -> CaseResult {
    put_needles(t, &["a"]).await?;
    is_invalid(t, t.grep_query("needle").max_matches(0)).await?;
    is_invalid(t, t.grep_query("needle").max_bytes(0)).await?;
    is_invalid(t, t.grep_query("needle").max_line_bytes(0)).await
}

/// A long line is cut between two characters and reports how many bytes are missing.
pub async fn long_line_is_cut(t: &Env) -> CaseResult {
    let long = format!("needleééé\n{} last\n", "x".repeat(LINE_BYTES));
    t.put("f", long).await?;
    for (width, text, cut) in [(6, "needle", 6), (9, "needleé", 4), (12, "needleééé", 0)] {
        let query = t.grep_query("needle").max_line_bytes(width);
        check_eq!(cut_lines(t, query).await?, [(text.to_owned(), cut)])?;
    }
    let shown = "x".repeat(LINE_BYTES);
    check_eq!(cut_lines(t, t.grep_query("last$")).await?, [(shown, 5)])
}

/// A pattern that is too long, or compiles to something too large, is rejected.
pub async fn too_large_pattern_is_invalid(t: &Env) -> CaseResult {
    put_needles(t, &["a"]).await?;
    let long = "a".repeat(PATTERN_BYTES + 1);
    for pattern in ["(a{1000}){1000}", &long] {
        is_invalid(t, t.grep_query(pattern)).await?;
    }
    is_invalid(t, t.grep_query(&long).literal(true)).await
}

/// A result contains no more bytes than requested, and reports that there is more.
pub async fn max_bytes_bounds_the_result(t: &Env) -> CaseResult {
    for path in ["a", "b"] {
        t.put(path, "1234\n".repeat(5)).await?;
    }
    for (bytes, lines) in [(1, 0), (4, 1), (11, 2), (20, 5), (39, 9)] {
        let result = search(t, t.grep_query("1").max_bytes(bytes)).await?;
        check_eq!(t.hits(&result).len(), lines)?;
        check_eq!(result.matches, lines)?;
        check!(result.truncated, "{bytes} bytes left nothing out")?;
    }
    let result = search(t, t.grep_query("1").max_bytes(40)).await?;
    check_eq!(result.matches, 10)?;
    check!(!result.truncated)
}

/// Matching lines are counted, neither matches within a line nor context.
pub async fn matches_are_counted(t: &Env) -> CaseResult {
    t.put("a", "x x x\ny\nx\n").await?;
    t.put("b", "y\nx\ny\n").await?;
    let result = search(t, t.grep_query("x").context(1, 1)).await?;
    check_eq!(result.matches, 3)?;
    let counts: Vec<_> = result.files.iter().map(|file| file.matches).collect();
    check_eq!(counts, [2, 1])
}
