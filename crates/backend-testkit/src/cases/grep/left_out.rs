//! Files that a search leaves out: hidden, ignored, generated, binary and excluded ones.

use backend_core::ops::{GrepQuery, GrepResult};

use super::{SNIFFED_BYTES, files, put_needles, search};
use crate::cases::glob::hide;
use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

/// Files in generated directories that no ignore file mentions.
const GENERATED: [&str; 5] = [
    "a/build/b",
    "dist/b",
    "node_modules/m/dist/b",
    "target/b",
    "venv/b",
];

/// Checks that a file with a `needle` is searched when it is named.
async fn check_named(t: &Env, path: &str) -> CaseResult {
    let result = search(t, GrepQuery::new("needle", t.path(path)?)).await?;
    check_eq!(t.hits(&result), [format!("{path}:1:needle")])?;
    check!(result.skipped.is_empty(), "{:?}", result.skipped)
}

/// A hidden file that is named is searched.
pub async fn named_hidden_file_is_searched(t: &Env) -> CaseResult {
    put_needles(t, &[".env", ".hidden/.a"]).await?;
    check_named(t, ".env").await?;
    check_named(t, ".hidden/.a").await
}

/// An ignored file that is named is searched.
pub async fn named_ignored_file_is_searched(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\nbuild/\n").await?;
    put_needles(t, &["a.log", "build/b"]).await?;
    check_named(t, "a.log").await?;
    check_named(t, "build/b").await
}

/// A hidden directory that is named is searched.
pub async fn hidden_start_directory_is_searched(t: &Env) -> CaseResult {
    put_needles(t, &[".config/.b", ".config/a", ".config/c/d"]).await?;
    let query = GrepQuery::new("needle", t.path(".config")?);
    check_eq!(files(t, query).await?, [".config/a", ".config/c/d"])
}

/// Hidden entries are left out and counted, each directory once.
pub async fn hidden_left_out_and_counted(t: &Env) -> CaseResult {
    put_needles(t, &[".a/b", ".a/c", ".env", "d", "e/.f"]).await?;
    let result = search(t, t.grep_query("needle")).await?;
    check_eq!(t.files_hit(&result), ["d"])?;
    check_eq!((result.skipped.hidden, result.skipped.ignored), (3, 0))
}

/// Hidden files are searched when asked for, `.git` only when named.
pub async fn hidden_on_request(t: &Env) -> CaseResult {
    put_needles(t, &[".a/b", ".env", ".git/config", "d"]).await?;
    let query = t.grep_query("needle").hidden(true);
    check_eq!(files(t, query).await?, [".a/b", ".env", "d"])?;
    let query = t.grep_query("needle").files(".git/*");
    check_eq!(files(t, query).await?, [".git/config"])?;
    let query = GrepQuery::new("needle", t.path(".git")?);
    check_eq!(files(t, query).await?, [".git/config"])
}

/// Files ignored by `.gitignore` are left out and counted, unless asked for.
pub async fn gitignore_is_honoured(t: &Env) -> CaseResult {
    t.put(".gitignore", "*.log\nbuild/\n").await?;
    put_needles(t, &["a", "b.log", "build/c", "build/d"]).await?;
    let result = search(t, t.grep_query("needle")).await?;
    check_eq!(t.files_hit(&result), ["a"])?;
    check_eq!((result.skipped.hidden, result.skipped.ignored), (1, 2))?;
    let query = t.grep_query("needle").ignored(true);
    check_eq!(files(t, query).await?, ["a", "b.log", "build/c", "build/d"])
}

/// Generated directories are left out, and each is counted once.
pub async fn generated_left_out_and_counted(t: &Env) -> CaseResult {
    put_needles(t, &GENERATED).await?;
    put_needles(t, &["build", "dist.txt", "targets/b"]).await?;
    let result = search(t, t.grep_query("needle")).await?;
    check_eq!(t.files_hit(&result), ["build", "dist.txt", "targets/b"])?;
    check_eq!((result.skipped.generated, result.skipped.ignored), (5, 0))
}

/// Generated directories are searched when asked for, together with everything that is
/// ignored.
pub async fn generated_on_request(t: &Env) -> CaseResult {
    put_needles(t, &GENERATED).await?;
    for query in [
        t.grep_query("needle").generated(true),
        t.grep_query("needle").ignored(true),
    ] {
        let result = search(t, query).await?;
        check_eq!(t.files_hit(&result), GENERATED)?;
        check_eq!(result.skipped.generated, 0)?;
    }
    Ok(())
}

/// The start of the search is searched whatever its name is, and so is a directory that
/// the filter names, with all its contents.
pub async fn generated_when_named(t: &Env) -> CaseResult {
    put_needles(t, &GENERATED).await?;
    for path in ["a/build/b", "dist/b", "target/b", "venv/b"] {
        let start = path.trim_end_matches("/b");
        let query = GrepQuery::new("needle", t.path(start)?);
        check_eq!(files(t, query).await?, [path])?;
        let query = GrepQuery::new("needle", t.path(path)?);
        check_eq!(files(t, query).await?, [path])?;
    }
    let query = t.grep_query("needle").files("**/build/*");
    check_eq!(files(t, query).await?, ["a/build/b"])?;
    let query = t.grep_query("needle").files("node_modules/**");
    check_eq!(files(t, query).await?, ["node_modules/m/dist/b"])
}

/// A file with a NUL in its first 8 KiB is skipped and counted.
pub async fn binary_is_passed_over_and_counted(t: &Env) -> CaseResult {
    let mut late = b"needle\n".repeat(SNIFFED_BYTES / 7 + 1);
    late.truncate(SNIFFED_BYTES - 1);
    late.extend_from_slice(b"\0\nneedle\n");
    t.put("early", b"needle\n\0\n").await?;
    t.put("late", late).await?;
    put_needles(t, &["text"]).await?;
    let result = search(t, t.grep_query("needle")).await?;
    check_eq!(t.hits(&result), ["text:1:needle"])?;
    check_eq!(result.skipped.binary, 2)
}

/// Excluded files give no lines, are not counted, and cannot be named.
pub async fn exclude_hides_content(t: &Env) -> CaseResult {
    put_needles(t, &["a.secret", "b", "vault/c", "vault/d/e"]).await?;
    t.put("f.secret", b"\0needle").await?;
    let exclude = hide("*.secret")?.and(&hide(t.path("vault")?.as_str())?);
    let result = search(t, t.grep_query("needle").exclude(exclude.clone())).await?;
    check_eq!(t.hits(&result), ["b:1:needle"])?;
    check!(result.skipped.is_empty(), "{:?}", result.skipped)?;
    for path in ["a.secret", "vault", "vault/c", "vault/d"] {
        let query = GrepQuery::new("needle", t.path(path)?).exclude(exclude.clone());
        check_eq!(search(t, query).await?, GrepResult::default())?;
    }
    Ok(())
}

/// Excluded files do not count towards the maximum.
pub async fn exclude_comes_before_the_maximum(t: &Env) -> CaseResult {
    put_needles(t, &["a.secret", "b", "c", "d.secret"]).await?;
    let query = t.grep_query("needle").max_matches(2);
    let result = search(t, query.exclude(hide("*.secret")?)).await?;
    check_eq!(t.files_hit(&result), ["b", "c"])?;
    check!(!result.truncated)
}
