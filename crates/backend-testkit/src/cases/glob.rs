//! Finding files by name.

use std::time::{Duration, SystemTime};

use backend_core::ops::{CreateDirOptions, GlobOrder, GlobQuery, GlobResult, StatOptions};
use backend_core::search::Exclude;
use backend_core::{Error, ErrorKind};

use crate::case::{CaseResult, Failure};
use crate::env::Env;
use crate::{check, check_eq};

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
    check_eq!(t.glob("top/*").await?, ["top/a", "top/a.b"]);
    check_eq!(t.glob("t*/a").await?, ["top/a"]);
    check_eq!(t.glob("t*a").await?, NONE);
    Ok(())
}

/// A pattern without a slash is matched in every directory.
pub async fn pattern_without_slash_matches_at_any_depth(t: &Env) -> CaseResult {
    let python = ["a.py", "one/b.py", "one/two/three/c.py"];
    t.put_all(&python).await?;
    t.put_all(&["a.rs", "one/b.rs"]).await?;
    check_eq!(t.glob("*.py").await?, python);
    check_eq!(t.glob("c.py").await?, ["one/two/three/c.py"]);
    Ok(())
}

/// A pattern with a slash is anchored at the start of the search.
pub async fn pattern_with_slash_is_anchored(t: &Env) -> CaseResult {
    t.put_all(&["lib/src/a.rs", "src/a.rs"]).await?;
    check_eq!(t.glob("src/*.rs").await?, ["src/a.rs"]);
    check_eq!(t.glob("src/a.rs").await?, ["src/a.rs"]);
    Ok(())
}

/// `**` matches any number of directories, including none.
pub async fn double_star_matches_any_depth(t: &Env) -> CaseResult {
    let all = ["a.rs", "src/b.rs", "src/x/c.rs", "src/x/y/d.rs"];
    t.put_all(&all).await?;
    for pattern in ["**", "**/*", "**/*.rs"] {
        check_eq!(t.glob(pattern).await?, all);
    }
    check_eq!(t.glob("src/**").await?, all[1..]);
    check_eq!(t.glob("src/**/*.rs").await?, all[1..]);
    check_eq!(t.glob("**/x/**/*.rs").await?, all[2..]);
    check_eq!(t.glob("src/**/d.rs").await?, all[3..]);
    Ok(())
}

/// `?` matches one character of any number of bytes, but not a slash.
pub async fn question_mark_is_one_character(t: &Env) -> CaseResult {
    t.put_all(&["x/a-b", "x/ab", "x/aé", "x/a🦀", "x/b/b"])
        .await?;
    check_eq!(t.glob("x/a?").await?, ["x/ab", "x/aé", "x/a🦀"]);
    check_eq!(t.glob("x/?-?").await?, ["x/a-b"]);
    check_eq!(t.glob("x/b?b").await?, NONE);
    Ok(())
}

/// `[…]` matches one of the listed characters.
pub async fn class_and_range(t: &Env) -> CaseResult {
    t.put_all(&["f1", "f2", "f5", "fA", "fé"]).await?;
    check_eq!(t.glob("f[1-3]").await?, ["f1", "f2"]);
    check_eq!(t.glob("f[5A]").await?, ["f5", "fA"]);
    check_eq!(t.glob("f[à-ü1]").await?, ["f1", "fé"]);
    Ok(())
}

/// `[!…]` matches one character that is not listed, but not a slash.
pub async fn negated_class(t: &Env) -> CaseResult {
    t.put_all(&["x/a-c", "x/a/c", "x/abc", "x/aéc"]).await?;
    check_eq!(t.glob("x/a[!b]c").await?, ["x/a-c", "x/aéc"]);
    check_eq!(t.glob("x/a[!a-z]c").await?, ["x/a-c", "x/aéc"]);
    Ok(())
}

/// `{a,b}` matches either. Groups nest, and an alternative may be empty.
pub async fn braces(t: &Env) -> CaseResult {
    t.put_all(&["a.md", "a.rs", "b1.rs", "b2.rs", "x/c"])
        .await?;
    check_eq!(t.glob("{*.md,[c-d]}").await?, ["a.md", "x/c"]);
    check_eq!(t.glob("{a,b{1,2}}.rs").await?, ["a.rs", "b1.rs", "b2.rs"]);
    check_eq!(t.glob("b{,1}{,.rs}").await?, ["b1.rs"]);
    Ok(())
}

/// An alternative may contain a slash.
pub async fn braces_with_slashes(t: &Env) -> CaseResult {
    t.put_all(&["it/a.rs", "src/a.rs", "tests/it/a.rs"]).await?;
    let both = ["src/a.rs", "tests/it/a.rs"];
    check_eq!(t.glob("{src,tests/it}/*.rs").await?, both);
    check_eq!(t.glob("{src/a,tests/**/a}.rs").await?, both);
    Ok(())
}

/// A backslash makes the next character literal.
pub async fn escaped_metacharacters(t: &Env) -> CaseResult {
    t.put_all(&["[x].c", "a*b", "a?b", "axb", "x.c", "{p,q}"])
        .await?;
    check_eq!(t.glob(r"a\*b").await?, ["a*b"]);
    check_eq!(t.glob(r"a\?b").await?, ["a?b"]);
    check_eq!(t.glob(r"\[x\].c").await?, ["[x].c"]);
    check_eq!(t.glob(r"\{p,q\}").await?, ["{p,q}"]);
    check_eq!(t.glob(r"a[\*\?]b").await?, ["a*b", "a?b"]);
    Ok(())
}

/// Files are sorted by the bytes of the whole path, with directories compared as their
/// name and a slash.
pub async fn sorted_by_bytes(t: &Env) -> CaseResult {
    let sorted = [
        "Z", "a b", "a-b", "a.b", "a/x", "a/x.y", "a0", "aZ", "b", "é",
    ];
    let turned: Vec<_> = sorted.iter().rev().copied().collect();
    t.put_all(&turned).await?;
    check_eq!(t.glob("**").await?, sorted);
    Ok(())
}

/// On request, the most recently changed file comes first.
pub async fn newest_first(t: &Env) -> CaseResult {
    for (path, seconds) in [("a", 20), ("b/x", 40), ("c", 10), ("d", 30)] {
        put_at(t, path, seconds).await?;
    }
    let sorted = ["b/x", "d", "a", "c"];
    check_eq!(found(t, newest_first_query(t)).await?, sorted);
    Ok(())
}

/// Files with the same time are in byte order.
pub async fn newest_first_ties_by_path(t: &Env) -> CaseResult {
    for (path, seconds) in [("c", 10), ("a/x", 10), ("a-b", 10), ("d", 20)] {
        put_at(t, path, seconds).await?;
    }
    let ordered = ["d", "a-b", "a/x", "c"];
    check_eq!(found(t, newest_first_query(t)).await?, ordered);
    for limit in 1..ordered.len() {
        let query = newest_first_query(t).limit(limit);
        check_eq!(found(t, query).await?, ordered[..limit]);
    }
    Ok(())
}

/// A limit keeps the newest of all files, not of those visited first.
pub async fn newest_first_limit(t: &Env) -> CaseResult {
    for (path, seconds) in [("a", 10), ("b", 50), ("c", 20), ("d", 40), ("e", 30)] {
        put_at(t, path, seconds).await?;
    }
    let result = search(t, newest_first_query(t).limit(2)).await?;
    check_eq!(t.found(&result), ["b", "d"]);
    check!(result.truncated);
    let result = search(t, newest_first_query(t).limit(5)).await?;
    check_eq!(t.found(&result), ["b", "d", "e", "c", "a"]);
    check!(!result.truncated);
    Ok(())
}

/// A limit returns the beginning of the complete result and reports that there is more.
pub async fn limit_gives_the_head(t: &Env) -> CaseResult {
    let all = ["a-b", "a/x", "a0", "b/c/d", "e"];
    t.put_all(&all).await?;
    for limit in 1..all.len() {
        let result = search(t, t.glob_query("**").limit(limit)).await?;
        check_eq!(t.found(&result), all[..limit]);
        check!(result.truncated, "a limit of {limit} left nothing out");
    }
    Ok(())
}

/// A result of exactly the limit is complete.
pub async fn exactly_the_limit_is_not_truncated(t: &Env) -> CaseResult {
    t.put_all(&["a", "b/c", "d"]).await?;
    for limit in [3, 4, usize::MAX] {
        let result = search(t, t.glob_query("**").limit(limit)).await?;
        check_eq!(result.files.len(), 3);
        check!(!result.truncated, "a limit of {limit} was reached");
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
    check_eq!(t.glob(&format!("{source}/*.rs")).await?, ["src/a.rs"]);
    let both = ["src/a.rs", "src/x/b.rs"];
    check_eq!(t.glob(&format!("{source}/**")).await?, both);
    let query = GlobQuery::new(format!("{source}/**/*.rs"), source.clone());
    check_eq!(found(t, query).await?, both);
    Ok(())
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
    let empty = t.path("empty")?;
    t.backend()
        .create_dir(&empty, CreateDirOptions::default())
        .await?;
    check_eq!(t.glob("name").await?, ["other/name"]);
    check_eq!(t.glob("e*").await?, NONE);
    let result = search(t, t.glob_query("**")).await?;
    check_eq!(t.found(&result), ["name/a", "other/name"]);
    check!(result.files.iter().all(|file| file.is_file() && !file.link));
    Ok(())
}

/// A search that finds nothing succeeds.
pub async fn no_match_is_empty_success(t: &Env) -> CaseResult {
    t.put_all(&["a.txt"]).await?;
    for pattern in ["*.rs", "missing/*", "a.txt/**"] {
        let result = search(t, t.glob_query(pattern)).await?;
        check_eq!(result, GlobResult::default());
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
    check_eq!(found(t, within("**")?).await?, ["a/x/1", "a/y/1"]);
    check_eq!(found(t, within("x/*")?).await?, ["a/x/1"]);
    check_eq!(found(t, within("a/x/*")?).await?, NONE);
    Ok(())
}

/// Names that begin with a dot are left out.
pub async fn hidden_left_out(t: &Env) -> CaseResult {
    t.put_all(&[".a/b", ".env", "a", "b/.c", "b/.d/e"]).await?;
    for pattern in ["**", "*", "**/*", "{a,*}"] {
        check_eq!(t.glob(pattern).await?, ["a"]);
    }
    check_eq!(t.glob("?env").await?, NONE);
    check_eq!(t.glob("[.]env").await?, NONE);
    Ok(())
}

/// Names that begin with a dot are found when asked for.
pub async fn hidden_on_request(t: &Env) -> CaseResult {
    let all = [".a/b", ".env", "a", "b/.c", "b/.d/e"];
    t.put_all(&all).await?;
    check_eq!(found(t, t.glob_query("**").hidden(true)).await?, all);
    check_eq!(found(t, t.glob_query("*env").hidden(true)).await?, [".env"]);
    Ok(())
}

/// A name is found if the pattern spells out its dot. Others stay hidden.
pub async fn hidden_when_named(t: &Env) -> CaseResult {
    t.put_all(&[".github/.a/b", ".github/b/c", ".x/b/c"])
        .await?;
    t.put_all(&[".env", ".x/.env", "b/.env", "b/.envrc"])
        .await?;
    check_eq!(t.glob(".github/**").await?, [".github/b/c"]);
    check_eq!(t.glob("**/.env").await?, [".env", "b/.env"]);
    check_eq!(t.glob(".env").await?, [".env", "b/.env"]);
    check_eq!(t.glob("b/.env*").await?, ["b/.env", "b/.envrc"]);
    Ok(())
}

/// A hidden directory that is the start of the search is searched.
pub async fn hidden_start_directory_is_searched(t: &Env) -> CaseResult {
    t.put_all(&[".config/.x", ".config/a", ".config/b/c"])
        .await?;
    let query = GlobQuery::new("**", t.path(".config")?);
    check_eq!(found(t, query).await?, [".config/a", ".config/b/c"]);
    let query = GlobQuery::new("c", t.path(".config/b")?);
    check_eq!(found(t, query).await?, [".config/b/c"]);
    Ok(())
}

/// Files in `.git` are found only by a pattern that names it.
pub async fn git_only_when_named(t: &Env) -> CaseResult {
    t.put_all(&[".git/config", ".gitx/a", "b/.git/config"])
        .await?;
    let asked = found(t, t.glob_query("**").hidden(true)).await?;
    check_eq!(asked, [".gitx/a"]);
    check_eq!(t.glob(".git/*").await?, [".git/config"]);
    let both = [".git/config", "b/.git/config"];
    check_eq!(t.glob("**/.git/config").await?, both);
    Ok(())
}

/// Files ignored by `.gitignore` are left out, even outside a repository.
pub async fn gitignore_is_honoured(t: &Env) -> CaseResult {
    t.put(".gitignore", "# comment\n\n*.log\nmade\n").await?;
    t.put_all(&["a.log", "b/c.log", "b/d", "b/made/e", "made/f"])
        .await?;
    check_eq!(t.glob("**").await?, ["b/d"]);
    check_eq!(t.glob("*.log").await?, NONE);
    check_eq!(t.glob("made/f").await?, NONE);
    Ok(())
}

/// Ignored files are found when asked for. That does not include hidden ones.
pub async fn ignored_on_request(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\n").await?;
    t.put(".ignore", "target\n").await?;
    t.put_all(&["a", "b.log", "target/c"]).await?;
    let asked = found(t, t.glob_query("**").ignored(true)).await?;
    check_eq!(asked, ["a", "b.log", "target/c"]);
    Ok(())
}

/// In one directory, `.ignore` takes precedence.
pub async fn ignore_beats_gitignore(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\n!secret.txt\n").await?;
    t.put(".ignore", "!kept.log\nsecret.txt\n").await?;
    t.put_all(&["a.log", "kept.log", "secret.txt"]).await?;
    check_eq!(t.glob("**").await?, ["kept.log"]);
    Ok(())
}

/// A deeper ignore file takes precedence over those above it.
pub async fn deeper_beats_shallower(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\n!*.txt\n").await?;
    t.put("sub/.gitignore", "!kept.log\n*.txt\n").await?;
    t.put_all(&["a.txt", "kept.log", "sub/a.txt", "sub/b.log"])
        .await?;
    t.put_all(&["sub/kept.log", "sub/x/kept.log"]).await?;
    let kept = ["a.txt", "sub/kept.log", "sub/x/kept.log"];
    check_eq!(t.glob("**").await?, kept);
    Ok(())
}

/// A later `!name` cancels an earlier rule.
pub async fn negation_brings_back(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\n!kept.log\n").await?;
    t.put_all(&["a.log", "b/kept.log", "kept.log"]).await?;
    check_eq!(t.glob("*.log").await?, ["b/kept.log", "kept.log"]);
    Ok(())
}

/// Files in an ignored directory stay ignored, whatever other rules say.
pub async fn nothing_comes_back_inside_an_ignored_directory(t: &Env) -> CaseResult {
    t.put(".gitignore", "build/\n!build/a\n!b\n").await?;
    t.put("build/.gitignore", "!*\n").await?;
    t.put_all(&["build/a", "build/b", "c"]).await?;
    check_eq!(t.glob("**").await?, ["c"]);
    check_eq!(t.glob("build/*").await?, NONE);
    Ok(())
}

/// `!name` stops a file from being ignored. It does not unhide it.
pub async fn negation_does_not_unhide(t: &Env) -> CaseResult {
    t.put(".gitignore", "!.env\n").await?;
    t.put(".ignore", "!.env\n!.config\n").await?;
    t.put_all(&[".config/a", ".env", "b"]).await?;
    check_eq!(t.glob("**").await?, ["b"]);
    Ok(())
}

/// Rules above the searched directory apply to it.
pub async fn rules_above_the_start_apply(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\n/src/made\n").await?;
    t.put_all(&["src/a", "src/b.log", "src/made/c"]).await?;
    t.put_all(&["src/x/d.log", "src/x/made/e"]).await?;
    let query = GlobQuery::new("**", t.path("src")?);
    check_eq!(found(t, query).await?, ["src/a", "src/x/made/e"]);
    Ok(())
}

/// A rule with a slash at its start or inside applies at its own level only.
pub async fn anchored_rules(t: &Env) -> CaseResult {
    t.put(".gitignore", "/build\ndoc/made\n").await?;
    t.put("sub/.gitignore", "/out\n").await?;
    t.put_all(&["build/a", "doc/made/a", "out/a"]).await?;
    t.put_all(&["sub/out/a", "sub/x/out/a", "x/build/a"])
        .await?;
    t.put_all(&["x/doc/made/a"]).await?;
    let kept = ["out/a", "sub/x/out/a", "x/build/a", "x/doc/made/a"];
    check_eq!(t.glob("**").await?, kept);
    Ok(())
}

/// A rule with a slash at its end applies to directories only.
pub async fn directory_only_rules(t: &Env) -> CaseResult {
    t.put(".gitignore", "logs/\n").await?;
    t.put_all(&["a/logs", "b/logs/c", "logs/d"]).await?;
    check_eq!(t.glob("**").await?, ["a/logs"]);
    Ok(())
}

/// The rules do not apply to the start of the search itself.
pub async fn start_inside_ignored_directory_is_searched(t: &Env) -> CaseResult {
    t.put(".gitignore", "build/\n*.log\n").await?;
    t.put_all(&["build/a", "build/b.log", "build/c/d"]).await?;
    let query = GlobQuery::new("**", t.path("build")?);
    check_eq!(found(t, query).await?, ["build/a", "build/c/d"]);
    let query = GlobQuery::new("**", t.path("build/c")?);
    check_eq!(found(t, query).await?, ["build/c/d"]);
    Ok(())
}

/// Excluded files do not count towards the limit and leave no trace.
pub async fn exclude_comes_before_the_limit(t: &Env) -> CaseResult {
    t.put_all(&["a.secret", "b", "c", "d.secret"]).await?;
    let query = t.glob_query("**").limit(2).exclude(hide("*.secret")?);
    let result = search(t, query).await?;
    check_eq!(t.found(&result), ["b", "c"]);
    check!(!result.truncated);
    check!(result.skipped.is_empty(), "{:?}", result.skipped);
    Ok(())
}

/// Everything in an excluded directory is excluded, however it is asked for.
pub async fn exclude_hides_what_is_inside(t: &Env) -> CaseResult {
    t.put_all(&["a", "vault/.b", "vault/c", "vault/x/d"])
        .await?;
    let vault = t.path("vault")?;
    let exclude = hide(vault.as_str())?;
    for pattern in ["**", "{a,vault/**}"] {
        let query = t.glob_query(pattern).hidden(true).ignored(true);
        let result = search(t, query.exclude(exclude.clone())).await?;
        check_eq!(t.found(&result), ["a"]);
        check!(result.skipped.is_empty(), "{:?}", result.skipped);
    }
    for start in ["vault", "vault/x"] {
        let query = GlobQuery::new("**", t.path(start)?).exclude(exclude.clone());
        check_eq!(search(t, query).await?, GlobResult::default());
    }
    Ok(())
}

/// A pattern, a directory or a file that looks like an option is not one.
pub async fn pattern_with_leading_dash(t: &Env) -> CaseResult {
    let all = ["--help.txt", "-delete", "-exec/a", "kept.txt"];
    t.put_all(&all).await?;
    check_eq!(t.glob("-delete").await?, ["-delete"]);
    check_eq!(t.glob("--help*").await?, ["--help.txt"]);
    check_eq!(t.glob("-print0").await?, NONE);
    let query = GlobQuery::new("*", t.path("-exec")?);
    check_eq!(found(t, query).await?, ["-exec/a"]);
    check_eq!(t.glob("**").await?, all);
    Ok(())
}

/// No part of a search is passed to a shell.
pub async fn shell_characters_are_only_text(t: &Env) -> CaseResult {
    t.put_all(&SHELL_WORDS).await?;
    for word in SHELL_WORDS {
        check_eq!(t.glob(word).await?, [word]);
    }
    check_eq!(t.glob("made").await?, NONE);
    Ok(())
}

/// Every valid name is found, and can be read under the returned path.
pub async fn names_with_special_characters(t: &Env) -> CaseResult {
    for name in ODD_NAMES {
        t.put(&format!("odd {name}/{name}"), name).await?;
    }
    let result = t.glob("**/*.txt").await?;
    check_eq!(result, ODD_NAMES.map(|name| format!("odd {name}/{name}")));
    for (path, name) in result.iter().zip(ODD_NAMES) {
        check_eq!(t.get(path).await?, name.as_bytes());
    }
    Ok(())
}

/// Results include file sizes.
pub async fn sizes_are_reported(t: &Env) -> CaseResult {
    t.put("empty", "").await?;
    t.put("five", "12345").await?;
    let result = search(t, t.glob_query("**")).await?;
    let sizes: Vec<_> = result.files.iter().map(|file| file.size).collect();
    check_eq!(sizes, [Some(0), Some(5)]);
    Ok(())
}

/// Results include modification times, as in `stat`.
pub async fn times_are_reported(t: &Env) -> CaseResult {
    t.put_all(&["a", "b/c"]).await?;
    let result = search(t, t.glob_query("**")).await?;
    check_eq!(result.files.len(), 2);
    for file in result.files {
        let options = StatOptions::default();
        let stat = t.backend().stat(&file.path, options).await?;
        check!(file.modified.is_some());
        check_eq!(file.modified, stat.modified);
    }
    Ok(())
}

/// Upper and lower case differ.
pub async fn case_matters(t: &Env) -> CaseResult {
    t.put_all(&["Readme.md", "src/Main.rs"]).await?;
    check_eq!(t.glob("readme.md").await?, NONE);
    check_eq!(t.glob("SRC/*").await?, NONE);
    check_eq!(t.glob("[a-z]*.rs").await?, NONE);
    check_eq!(t.glob("R*.md").await?, ["Readme.md"]);
    Ok(())
}

/// If no ignore file has rules, generated directories are left out, and each is counted
/// once. The names of files, and directory names that are only similar, do not matter.
pub async fn generated_left_out_and_counted(t: &Env) -> CaseResult {
    t.put_all(&["__pycache__/a", "a/build/b", "a/build/dist/c", "b/venv"])
        .await?;
    t.put_all(&[".venv/lib/a", "node_modules.d/a", "node_modules/m/a"])
        .await?;
    let result = search(t, t.glob_query("**")).await?;
    check_eq!(t.found(&result), ["b/venv", "node_modules.d/a"]);
    check_eq!((result.skipped.generated, result.skipped.hidden), (3, 1));
    let result = search(t, t.glob_query("**").hidden(true)).await?;
    check_eq!(t.found(&result), ["b/venv", "node_modules.d/a"]);
    check_eq!((result.skipped.generated, result.skipped.hidden), (4, 0));
    // Directories that the pattern cannot reach are not counted.
    let result = search(t, t.glob_query("a/*/b")).await?;
    check_eq!((result.files.len(), result.skipped.generated), (0, 1));
    Ok(())
}

/// Generated directories are searched when asked for, together with everything that is
/// ignored.
pub async fn generated_on_request(t: &Env) -> CaseResult {
    t.put_all(&["a/build/b", "node_modules/m/dist/a"]).await?;
    for query in [
        t.glob_query("**").generated(true),
        t.glob_query("**").ignored(true),
    ] {
        let result = search(t, query).await?;
        check_eq!(t.found(&result), ["a/build/b", "node_modules/m/dist/a"]);
        check_eq!(result.skipped.generated, 0);
    }
    Ok(())
}

/// A generated directory is searched with all its contents if a component of the
/// pattern is its name.
pub async fn generated_when_named(t: &Env) -> CaseResult {
    t.put_all(&["a/build/b", "build/target/c", "dist/d", "dist/venv/e"])
        .await?;
    for (pattern, found) in [
        ("build/**", &["build/target/c"][..]),
        ("**/build/**", &["a/build/b", "build/target/c"]),
        ("{dist,src}/**", &["dist/d", "dist/venv/e"]),
        ("a/build/b", &["a/build/b"]),
        // Neither a wildcard that happens to match, nor the name of a file.
        ("d*/**", &[]),
        ("*/b*/*", &[]),
        ("**/build", &[]),
    ] {
        let names = t.glob(pattern).await?;
        check!(names == found, "{pattern} finds {names:?}");
    }
    Ok(())
}

/// The start is searched, whatever its name and the names of its parents are.
pub async fn generated_start_directory_is_searched(t: &Env) -> CaseResult {
    t.put_all(&["build/a", "build/target/b", "build/src/c"])
        .await?;
    for (start, found_there, skipped) in [
        ("build", &["build/a", "build/src/c"][..], 1),
        ("build/target", &["build/target/b"], 0),
        ("build/src", &["build/src/c"], 0),
    ] {
        let query = GlobQuery::new("**", t.path(start)?);
        let result = search(t, query).await?;
        check_eq!(t.found(&result), found_there);
        check_eq!(result.skipped.generated, skipped);
    }
    Ok(())
}

/// If an ignore file has rules, only ignore files decide what is left out.
pub async fn ignore_files_overrule_generated(t: &Env) -> CaseResult {
    t.put("git/.gitignore", "target/\n").await?;
    t.put("kept/.ignore", "!build/\n").await?;
    t.put("bare/.gitignore", "# no rule\n").await?;
    t.put_all(&[
        "bare/build/a",
        "git/build/a",
        "git/sub/dist/a",
        "git/target/a",
    ])
    .await?;
    t.put_all(&["kept/build/a"]).await?;
    let result = search(t, t.glob_query("**")).await?;
    let kept = ["git/build/a", "git/sub/dist/a", "kept/build/a"];
    check_eq!(t.found(&result), kept);
    check_eq!((result.skipped.ignored, result.skipped.generated), (1, 1));
    // The same if the ignore file is above the start.
    let query = GlobQuery::new("**", t.path("git/sub")?);
    check_eq!(found(t, query).await?, ["git/sub/dist/a"]);
    Ok(())
}

/// Skipped entries are counted, each directory once.
pub async fn skipped_is_counted(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\nbuild/\n").await?;
    t.put_all(&[".a/b", ".a/c", ".env", "b.log"]).await?;
    t.put_all(&["build/d", "build/e", "sub/f.log", "sub/g"])
        .await?;
    let result = search(t, t.glob_query("**")).await?;
    check_eq!(t.found(&result), ["sub/g"]);
    let skipped = result.skipped;
    check_eq!((skipped.hidden, skipped.ignored), (3, 3));
    let others = [skipped.binary, skipped.unreadable, skipped.not_utf8];
    check_eq!(others, [0, 0, 0]);
    Ok(())
}
