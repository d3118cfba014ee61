//! Finding files by name.

mod left_out;

use std::time::{Duration, SystemTime};

use backend_core::ops::{GlobOrder, GlobQuery, GlobResult, StatOptions};
use backend_core::search::Exclude;
use backend_core::{Error, ErrorKind};

use super::create_dir::create_dir;
use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

pub use left_out::*;

/// An empty result.
pub(crate) const NONE: [&str; 0] = [];

/// Names that a shell, an option parser or a line parser would split, in byte order.
pub(crate) const ODD_NAMES: [&str; 10] = [
    "$HOME.txt",
    "-rf.txt",
    "a:1:b.txt",
    "back\\slash.txt",
    "it's \"quoted\".txt",
    "new\nline.txt",
    "tab\tand \u{7f}.txt",
    "with  spaces .txt",
    "é 日本語.txt",
    "🦀.txt",
];

/// Patterns that create a file `made` if a search passes them to a shell.
pub(crate) const SHELL_WORDS: [&str; 4] = [
    "$(touch made)",
    "'; touch made; '",
    "\"; touch made; \"",
    "`touch made`",
];

/// Returns a rule that hides the files that match a pattern.
pub(crate) fn hide(pattern: impl Into<String>) -> Result<Exclude, Failure> {
    Ok(Exclude::hide([pattern.into()]).map_err(Error::from)?)
}

async fn search(t: &Env, query: GlobQuery) -> Result<GlobResult, Failure> {
    Ok(t.backend().glob(query).await?)
}

async fn found(t: &Env, query: GlobQuery) -> Result<Vec<String>, Failure> {
    Ok(t.found(&search(t, query).await?))
}

async fn is_invalid(t: &Env, query: GlobQuery) -> CaseResult {
    let pattern = query.pattern.clone();
    match t.backend().glob(query).await {
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        other => Err(Failure::new(format!("{pattern:?} gave {other:?}"))),
    }
}

async fn put_at(t: &Env, path: &str, seconds: u64) -> CaseResult {
    t.put(path, "text\n").await?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
    t.fixture().set_modified(&t.path(path)?, time).await
}

fn newest_first_query(t: &Env) -> GlobQuery {
    t.glob_query("**").order(GlobOrder::NewestFirst)
}

/// `*` matches within one name only.
pub async fn star_stays_in_one_component(t: &Env) -> CaseResult {
    t.put_all(&["top/a", "top/a.b", "top/sub/a", "tops"])
        .await?;
    check_eq!(t.glob("top/*").await?, ["top/a", "top/a.b"])?;
    check_eq!(t.glob("t*/a").await?, ["top/a"])?;
    check_eq!(t.glob("t*a").await?, NONE)
}

/// A pattern without a slash is matched in every directory.
pub async fn pattern_without_slash_matches_at_any_depth(t: &Env) -> CaseResult {
    let python = ["a.py", "one/b.py", "one/two/three/c.py"];
    t.put_all(&python).await?;
    t.put_all(&["a.rs", "one/b.rs"]).await?;
    check_eq!(t.glob("*.py").await?, python)?;
    check_eq!(t.glob("c.py").await?, ["one/two/three/c.py"])
}

/// A pattern with a slash is anchored at the start of the search.
pub async fn pattern_with_slash_is_anchored(t: &Env) -> CaseResult {
    t.put_all(&["lib/src/a.rs", "src/a.rs"]).await?;
    check_eq!(t.glob("src/*.rs").await?, ["src/a.rs"])?;
    check_eq!(t.glob("src/a.rs").await?, ["src/a.rs"])
}

/// `**` matches any number of directories, including none.
pub async fn double_star_matches_any_depth(t: &Env) -> CaseResult {
    let all = ["a.rs", "src/b.rs", "src/x/c.rs", "src/x/y/d.rs"];
    t.put_all(&all).await?;
    for pattern in ["**", "**/*", "**/*.rs"] {
        check_eq!(t.glob(pattern).await?, all)?;
    }
    check_eq!(t.glob("src/**").await?, all[1..])?;
    check_eq!(t.glob("src/**/*.rs").await?, all[1..])?;
    check_eq!(t.glob("**/x/**/*.rs").await?, all[2..])?;
    check_eq!(t.glob("src/**/d.rs").await?, all[3..])
}

/// `?` matches one character of any number of bytes, but not a slash.
pub async fn question_mark_is_one_character(t: &Env) -> CaseResult {
    t.put_all(&["x/a-b", "x/ab", "x/aé", "x/a🦀", "x/b/b"])
        .await?;
    check_eq!(t.glob("x/a?").await?, ["x/ab", "x/aé", "x/a🦀"])?;
    check_eq!(t.glob("x/?-?").await?, ["x/a-b"])?;
    check_eq!(t.glob("x/b?b").await?, NONE)
}

/// `[…]` matches one of the listed characters.
pub async fn class_and_range(t: &Env) -> CaseResult {
    t.put_all(&["f1", "f2", "f5", "fA", "fé"]).await?;
    check_eq!(t.glob("f[1-3]").await?, ["f1", "f2"])?;
    check_eq!(t.glob("f[5A]").await?, ["f5", "fA"])?;
    check_eq!(t.glob("f[à-ü1]").await?, ["f1", "fé"])
}

/// `[!…]` matches one character that is not listed, but not a slash.
pub async fn negated_class(t: &Env) -> CaseResult {
    t.put_all(&["x/a-c", "x/a/c", "x/abc", "x/aéc"]).await?;
    check_eq!(t.glob("x/a[!b]c").await?, ["x/a-c", "x/aéc"])?;
    check_eq!(t.glob("x/a[!a-z]c").await?, ["x/a-c", "x/aéc"])
}

/// `{a,b}` matches either. Groups nest, and an alternative may be empty.
pub async fn braces(t: &Env) -> CaseResult {
    t.put_all(&["a.md", "a.rs", "b1.rs", "b2.rs", "x/c"])
        .await?;
    check_eq!(t.glob("{*.md,[c-d]}").await?, ["a.md", "x/c"])?;
    check_eq!(t.glob("{a,b{1,2}}.rs").await?, ["a.rs", "b1.rs", "b2.rs"])?;
    check_eq!(t.glob("b{,1}{,.rs}").await?, ["b1.rs"])
}

/// An alternative may contain a slash.
pub async fn braces_with_slashes(t: &Env) -> CaseResult {
    t.put_all(&["it/a.rs", "src/a.rs", "tests/it/a.rs"]).await?;
    let both = ["src/a.rs", "tests/it/a.rs"];
    check_eq!(t.glob("{src,tests/it}/*.rs").await?, both)?;
    check_eq!(t.glob("{src/a,tests/**/a}.rs").await?, both)
}

/// A backslash makes the next character literal.
pub async fn escaped_metacharacters(t: &Env) -> CaseResult {
    t.put_all(&["[x].c", "a*b", "a?b", "axb", "x.c", "{p,q}"])
        .await?;
    check_eq!(t.glob(r"a\*b").await?, ["a*b"])?;
    check_eq!(t.glob(r"a\?b").await?, ["a?b"])?;
    check_eq!(t.glob(r"\[x\].c").await?, ["[x].c"])?;
    check_eq!(t.glob(r"\{p,q\}").await?, ["{p,q}"])?;
    check_eq!(t.glob(r"a[\*\?]b").await?, ["a*b", "a?b"])
}

/// Files are sorted by the bytes of the whole path, with directories compared as their
/// name and a slash.
pub async fn sorted_by_bytes(t: &Env) -> CaseResult {
    let sorted = [
        "Z", "a b", "a-b", "a.b", "a/x", "a/x.y", "a0", "aZ", "b", "é",
    ];
    let turned: Vec<_> = sorted.iter().rev().copied().collect();
    t.put_all(&turned).await?;
    check_eq!(t.glob("**").await?, sorted)?;
    check_eq!(found(t, t.glob_query("**").metadata(false)).await?, sorted)
}

/// On request, the most recently changed file comes first.
pub async fn newest_first(t: &Env) -> CaseResult {
    for (path, seconds) in [("a", 20), ("b/x", 40), ("c", 10), ("d", 30)] {
        put_at(t, path, seconds).await?;
    }
    let sorted = ["b/x", "d", "a", "c"];
    check_eq!(found(t, newest_first_query(t)).await?, sorted)?;
    let query = newest_first_query(t).metadata(false);
    check_eq!(found(t, query).await?, sorted)
}

/// Files with the same time are in byte order.
pub async fn newest_first_ties_by_path(t: &Env) -> CaseResult {
    for (path, seconds) in [("c", 10), ("a/x", 10), ("a-b", 10), ("d", 20)] {
        put_at(t, path, seconds).await?;
    }
    let ordered = ["d", "a-b", "a/x", "c"];
    check_eq!(found(t, newest_first_query(t)).await?, ordered)?;
    for limit in 1..ordered.len() {
        let query = newest_first_query(t).limit(limit);
        check_eq!(found(t, query).await?, ordered[..limit])?;
    }
    Ok(())
}

/// A limit keeps the newest of all files, not of those visited first.
pub async fn newest_first_limit(t: &Env) -> CaseResult {
    for (path, seconds) in [("a", 10), ("b", 50), ("c", 20), ("d", 40), ("e", 30)] {
        put_at(t, path, seconds).await?;
    }
    let result = search(t, newest_first_query(t).limit(2)).await?;
    check_eq!(t.found(&result), ["b", "d"])?;
    check!(result.truncated)?;
    let result = search(t, newest_first_query(t).limit(5)).await?;
    check_eq!(t.found(&result), ["b", "d", "e", "c", "a"])?;
    check!(!result.truncated)
}

/// A limit returns the beginning of the complete result and reports that there is more.
pub async fn limit_gives_the_head(t: &Env) -> CaseResult {
    let all = ["a-b", "a/x", "a0", "b/c/d", "e"];
    t.put_all(&all).await?;
    for limit in 1..all.len() {
        let result = search(t, t.glob_query("**").limit(limit)).await?;
        check_eq!(t.found(&result), all[..limit])?;
        check!(result.truncated, "a limit of {limit} left nothing out")?;
    }
    Ok(())
}

/// A result of exactly the limit is complete.
pub async fn exactly_the_limit_is_not_truncated(t: &Env) -> CaseResult {
    t.put_all(&["a", "b/c", "d"]).await?;
    for limit in [3, 4, usize::MAX] {
        let result = search(t, t.glob_query("**").limit(limit)).await?;
        check_eq!(result.files.len(), 3)?;
        check!(!result.truncated, "a limit of {limit} was reached")?;
    }
    Ok(())
}

/// A limit of zero is rejected.
pub async fn zero_limit_is_invalid(t: &Env) -> CaseResult {
    is_invalid(t, t.glob_query("**").limit(0)).await
}

/// An empty pattern is rejected.
pub async fn empty_pattern_is_invalid(t: &Env) -> CaseResult {
    is_invalid(t, t.glob_query("")).await
}

/// A malformed pattern is rejected. It is not a search without results.
pub async fn bad_pattern_is_invalid(t: &Env) -> CaseResult {
    for pattern in ["a[", "a[b", "[!", "{a,b", "a/{b", "[z-a]", "a\\"] {
        is_invalid(t, t.glob_query(pattern)).await?;
    }
    Ok(())
}

/// A pattern must not contain `..`.
pub async fn parent_component_is_invalid(t: &Env) -> CaseResult {
    for pattern in ["..", "../*", "a/../b", "**/..", "{..,a}/b"] {
        is_invalid(t, t.glob_query(pattern)).await?;
    }
    Ok(())
}

/// A pattern that can only match directories is rejected.
pub async fn trailing_slash_is_invalid(t: &Env) -> CaseResult {
    for pattern in ["src/", "**/", "a/b/"] {
        is_invalid(t, t.glob_query(pattern)).await?;
    }
    Ok(())
}

/// A NUL in a pattern is rejected.
pub async fn nul_in_pattern_is_invalid(t: &Env) -> CaseResult {
    is_invalid(t, t.glob_query("a\0b")).await
}

/// A pattern may be absolute.
pub async fn absolute_pattern(t: &Env) -> CaseResult {
    t.put_all(&["a.rs", "b/src/a.rs", "src/a.rs", "src/x/b.rs"])
        .await?;
    let source = t.path("src")?;
    check_eq!(t.glob(&format!("{source}/*.rs")).await?, ["src/a.rs"])?;
    let both = ["src/a.rs", "src/x/b.rs"];
    check_eq!(t.glob(&format!("{source}/**")).await?, both)?;
    let query = GlobQuery::new(format!("{source}/**/*.rs"), source.clone());
    check_eq!(found(t, query).await?, both)
}

/// An absolute pattern for files outside the start is rejected. It is not a search
/// without results.
pub async fn absolute_pattern_outside_is_invalid(t: &Env) -> CaseResult {
    t.put_all(&["one/a.txt", "two/a.txt"]).await?;
    let pattern = format!("{}/*.txt", t.path("two")?);
    is_invalid(t, GlobQuery::new(pattern, t.path("one")?)).await
}

/// Directories are not found, empty or not.
pub async fn files_only(t: &Env) -> CaseResult {
    t.put_all(&["name/a", "other/name"]).await?;
    create_dir(t, "empty").await?;
    check_eq!(t.glob("name").await?, ["other/name"])?;
    check_eq!(t.glob("e*").await?, NONE)?;
    let result = search(t, t.glob_query("**")).await?;
    check_eq!(t.found(&result), ["name/a", "other/name"])?;
    check!(result.files.iter().all(|file| file.is_file() && !file.link))
}

/// A search that finds nothing succeeds.
pub async fn no_match_is_empty_success(t: &Env) -> CaseResult {
    t.put_all(&["a.txt"]).await?;
    for pattern in ["*.rs", "missing/*", "a.txt/**"] {
        let result = search(t, t.glob_query(pattern)).await?;
        check_eq!(result, GlobResult::default())?;
    }
    Ok(())
}

/// A search in a missing directory is an error.
pub async fn missing_path(t: &Env) -> CaseResult {
    let query = GlobQuery::new("**", t.path("missing")?);
    t.fails(ErrorKind::NotFound, t.backend().glob(query).await)
}

/// Searching a file, or a path below one, is an error.
pub async fn path_is_a_file(t: &Env) -> CaseResult {
    t.put_all(&["file"]).await?;
    for path in ["file", "file/beneath"] {
        let query = GlobQuery::new("**", t.path(path)?);
        t.fails(ErrorKind::NotADirectory, t.backend().glob(query).await)?;
    }
    Ok(())
}

/// A pattern is relative to the searched directory.
pub async fn path_narrows_the_search(t: &Env) -> CaseResult {
    t.put_all(&["a/x/1", "a/y/1", "ab/x/1", "x/1"]).await?;
    let within = |pattern: &str| Ok::<_, Failure>(GlobQuery::new(pattern, t.path("a")?));
    check_eq!(found(t, within("**")?).await?, ["a/x/1", "a/y/1"])?;
    check_eq!(found(t, within("x/*")?).await?, ["a/x/1"])?;
    check_eq!(found(t, within("a/x/*")?).await?, NONE)
}

/// A pattern, a directory or a file that looks like an option is not one.
pub async fn pattern_with_leading_dash(t: &Env) -> CaseResult {
    let all = ["--help.txt", "-delete", "-exec/a", "kept.txt"];
    t.put_all(&all).await?;
    check_eq!(t.glob("-delete").await?, ["-delete"])?;
    check_eq!(t.glob("--help*").await?, ["--help.txt"])?;
    check_eq!(t.glob("-print0").await?, NONE)?;
    let query = GlobQuery::new("*", t.path("-exec")?);
    check_eq!(found(t, query).await?, ["-exec/a"])?;
    check_eq!(t.glob("**").await?, all)
}

/// No part of a search is passed to a shell.
pub async fn shell_characters_are_only_text(t: &Env) -> CaseResult {
    t.put_all(&SHELL_WORDS).await?;
    for word in SHELL_WORDS {
        check_eq!(t.glob(word).await?, [word])?;
    }
    check_eq!(t.glob("made").await?, NONE)
}

/// Every valid name is found, and can be read under the returned path.
pub async fn names_with_special_characters(t: &Env) -> CaseResult {
    for name in ODD_NAMES {
        t.put(&format!("odd {name}/{name}"), name).await?;
    }
    let result = t.glob("**/*.txt").await?;
    check_eq!(result, ODD_NAMES.map(|name| format!("odd {name}/{name}")))?;
    for (path, name) in result.iter().zip(ODD_NAMES) {
        check_eq!(t.get(path).await?, name.as_bytes())?;
    }
    Ok(())
}

/// Results include file sizes.
pub async fn sizes_are_reported(t: &Env) -> CaseResult {
    t.put("empty", "").await?;
    t.put("five", "12345").await?;
    let result = search(t, t.glob_query("**")).await?;
    let sizes: Vec<_> = result.files.iter().map(|file| file.size).collect();
    check_eq!(sizes, [Some(0), Some(5)])
}

/// Results include modification times, as in `stat`.
pub async fn times_are_reported(t: &Env) -> CaseResult {
    t.put_all(&["a", "b/c"]).await?;
    let result = search(t, t.glob_query("**")).await?;
    check_eq!(result.files.len(), 2)?;
    for file in result.files {
        let options = StatOptions::default();
        let stat = t.backend().stat(&file.path, options).await?;
        check!(file.modified.is_some())?;
        check_eq!(file.modified, stat.modified)?;
    }
    Ok(())
}

/// Upper and lower case differ.
pub async fn case_matters(t: &Env) -> CaseResult {
    t.put_all(&["Readme.md", "src/Main.rs"]).await?;
    check_eq!(t.glob("readme.md").await?, NONE)?;
    check_eq!(t.glob("SRC/*").await?, NONE)?;
    check_eq!(t.glob("[a-z]*.rs").await?, NONE)?;
    check_eq!(t.glob("R*.md").await?, ["Readme.md"])
}
